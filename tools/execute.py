"""Run chapters and store their outputs, so that a second run gives the same bytes.

    tools/execute.py NAME [NAME ...]

A chapter is executed in ``book/`` from its notebook as it is: bring twin and notebook together first
(``tools/sync_cells.py``). If a cell fails, the notebook on disk stays as it was.
"""

import argparse
import base64
import io
import os
import sys
import time
from pathlib import Path

import _book
from nbclient import NotebookClient
from nbclient.exceptions import CellControlSignal, DeadKernelError
from PIL import Image

# One thread, so that sums do not depend on the machine; figures inline, whatever the backend outside.
ENV = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
ENV["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"
# What a library in use is about to change is an error, as in the unit tests (pyproject.toml), but for what the kernel's
# own machinery does as it starts and ends. Later entries are stronger.
SOON = ("DeprecationWarning", "PendingDeprecationWarning", "FutureWarning")
ENV["PYTHONWARNINGS"] = ",".join(
    [
        *(f"error::{category}" for category in SOON),
        "ignore::DeprecationWarning:tornado.ioloop",
        "ignore::PendingDeprecationWarning:ipykernel.kernelbase",
    ]
)


def compress_figures(nb):
    """Store each figure with 256 colors, which is a third of its size and looks the same."""
    for output in (o for cell in nb.cells for o in cell.get("outputs", [])):
        png = output.get("data", {}).get("image/png")
        if png:
            picture = Image.open(io.BytesIO(base64.b64decode(png))).convert("RGB")
            small = io.BytesIO()
            few = picture.quantize(256, dither=Image.Dither.NONE)
            few.save(small, "PNG", optimize=True)
            text = base64.b64encode(small.getvalue()).decode()
            output["data"]["image/png"] = f"{text}\n"


def execute(path, timeout):
    """Run a notebook and write it."""
    nb = _book.read_notebook(path)
    folder = {"metadata": {"path": str(path.parent)}}
    client = NotebookClient(
        nb, timeout=timeout, coalesce_streams=True, resources=folder
    )
    client.execute(env={**os.environ, **ENV})
    compress_figures(_book.normalize(nb))
    _book.write(path, _book.dump_notebook(nb))


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="+", metavar="NAME", help="chapters, by name")
    parser.add_argument("--timeout", type=int, default=600, help="seconds a cell")
    parser.add_argument(
        "--root", type=Path, default=_book.ROOT, help="the book's folder"
    )
    args = parser.parse_args(argv)
    # the kernel of this environment, not one of the user's
    os.environ.setdefault("JUPYTER_PREFER_ENV_PATH", "1")
    status = 0
    for name in args.names:
        begin = time.perf_counter()
        try:
            execute(_book.Book(args.root).notebook_path(name), args.timeout)
            print(f"{name}: {time.perf_counter() - begin:.1f} s")
        except (_book.BookError, CellControlSignal, DeadKernelError) as error:
            print(f"error: {name} is left as it was\n{error}", file=sys.stderr)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
