"""Run each chapter where nothing is installed but a kernel: its first cell installs the rest.

    tools/lonely.py [NAME ...]

The package is that of the last commit: git takes the address that the cell names for the folder of this book.
"""

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from _book import ROOT, Book
from execute import ENV
from sync_cells import HOME

# No package but those of the environment, and no other answer from git.
GIT = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": f"url.file://{ROOT}.insteadOf"}
HERE = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
HERE |= ENV | GIT | {"GIT_CONFIG_VALUE_0": HOME}


def run(python, path, folder):
    """Run a copy of a notebook in an empty folder; what went wrong."""
    copy = Path(folder, path.name)
    copy.write_bytes(path.read_bytes())
    command = [python.with_name("jupyter-execute"), "--timeout=600", copy]
    options = {"cwd": folder, "env": HERE, "capture_output": True, "text": True}
    done = subprocess.run(command, **options)
    return done.stderr[-2000:] if done.returncode else ""


def main(names):
    """Run chapters one after the other in one environment, which the first of them fills."""
    book, status = Book(), 0
    with tempfile.TemporaryDirectory() as home:
        venv.create(home, with_pip=True)
        python = Path(home, "bin/python")
        pip = [python, "-m", "pip", "install", "-q", "ipykernel", "nbclient"]
        subprocess.run(pip, check=True)
        for name in names or book.notebooks:
            with tempfile.TemporaryDirectory() as folder:
                said = run(python, book.notebook_path(name), folder)
            print(f"{name}: {said or 'ok'}", flush=True)
            status |= bool(said)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
