"""Run each chapter where nothing is installed but what its own first cell installs, and a kernel.

    tools/lonely.py [NAME ...]

The package is that of the last commit. ``_build/lonely/`` keeps an environment for each line of installation.
"""

import argparse
import os
import shutil
import subprocess
import sys
import venv

from _book import ROOT, Book
from check_book import INSTALL, MISSING
from execute import ENV

PLACE = ROOT / "_build/lonely"
PACKAGE, HOME = INSTALL.split()[-1].split("@")


def requirements(nb):
    """What the lines of installation of a chapter install, the package from a clone of this folder."""
    wanted = MISSING.findall("\n".join(cell.source for cell in nb.cells))
    here = PACKAGE.replace("llpbook", str(PLACE / "llpbook"))
    return tuple(here if one == f"{PACKAGE}@{HOME}" else one for one in wanted)


def environment(wanted):
    """The folder of programs of a new environment with the requirements and a kernel."""
    folder = PLACE / "-".join(["plot", *wanted[1:]])
    venv.create(folder, with_pip=True)
    pip = [folder / "bin/python", "-m", "pip", "install", "-q"]
    pip += ["--disable-pip-version-check", "ipykernel", "nbclient"]
    subprocess.run([*pip, *wanted], check=True)
    return folder / "bin"


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="chapters; all if none"
    )
    names = parser.parse_args(argv).names
    shutil.rmtree(PLACE, ignore_errors=True)
    subprocess.run(["git", "clone", "-q", ROOT, PLACE / "llpbook"], check=True)
    book, programs, status = Book(), {}, 0
    # no package but those of the environment
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | ENV
    for name in names or book.notebooks:
        wanted = requirements(book.notebooks[name])
        if wanted not in programs:
            programs[wanted] = environment(wanted)
        command = [programs[wanted] / "jupyter-execute", "--timeout=600"]
        command.append(book.notebook_path(name))
        done = subprocess.run(command, env=env, capture_output=True, text=True)
        print(f"{name}: {'failed' if done.returncode else 'ok'}", flush=True)
        if done.returncode:
            print(done.stderr[-2000:])
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
