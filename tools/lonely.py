"""Run each chapter where nothing is installed but what its own first cell installs, and a kernel.

    tools/lonely.py [NAME ...]

The package is that of the last commit. Environments stay in ``_build/lonely/``, one for each line of installation.
"""

import argparse
import os
import re
import subprocess
import sys
import venv

from _book import ROOT, Book
from check_book import INSTALL
from execute import ENV

HOME = INSTALL.partition("git+")[2]


def requirements(nb):
    """What the line of installation of a chapter installs, the package from this folder."""
    line = next(
        (
            line
            for cell in nb.cells
            for line in cell.source.split("\n")
            if INSTALL in line
        ),
        "",
    )
    return tuple(
        line.partition("%pip install ")[2].replace(HOME, ROOT.as_uri()).split()
    )


def environment(wanted, folder):
    """The folder of programs of a new environment with the requirements and a kernel."""
    venv.create(folder, with_pip=True, clear=True)
    pip = [folder / "bin/python", "-m", "pip", "install", "-q"]
    subprocess.run(
        [*pip, "--disable-pip-version-check", "ipykernel", "nbclient", *wanted],
        check=True,
    )
    return folder / "bin"


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="chapters; all if none"
    )
    names = parser.parse_args(argv).names
    book, programs, failed = Book(), {}, []
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | ENV
    for name in names or book.notebooks:
        wanted = requirements(book.notebooks[name])
        if wanted not in programs:
            folder = (
                ROOT
                / "_build/lonely"
                / re.sub(r"\W+", "_", " ".join(wanted[1:]) or "plot")
            )
            programs[wanted] = environment(wanted, folder)
        command = [programs[wanted] / "jupyter-execute", "--timeout=600"]
        done = subprocess.run(
            [*command, book.notebook_path(name)],
            env=env,
            capture_output=True,
            text=True,
        )
        print(f"{name}: {'failed' if done.returncode else 'ok'}", flush=True)
        if done.returncode:
            print(done.stderr[-2000:])
            failed.append(name)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
