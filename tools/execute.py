"""Run chapters and store their outputs, so that a second run gives the same bytes.

    tools/execute.py NAME [NAME ...]

A chapter is executed in ``book/`` from its notebook as it is: bring twin and notebook together first
(``tools/sync_cells.py``). If a cell fails, the notebook on disk stays as it was.
"""

import argparse
import base64
import io
import os
import re
import sys
import time
from pathlib import Path

import _book
from _book import ROOT, Book, BookError
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from PIL import Image

# One thread, so that sums do not depend on the machine. No fixed hash seed: an output that depends on it must show.
THREADS = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"
)
ENV = {**THREADS, "PYTHONNOUSERSITE": "1"}


def kernel_env():
    """The environment of the kernel. ``MPLBACKEND`` is dropped: with agg from outside no figure would be stored."""
    return {**{k: v for k, v in os.environ.items() if k != "MPLBACKEND"}, **ENV}


def execute(nb, folder, timeout=600):
    """Run a notebook in place.

    Returns
    -------
    seconds : dict
        Wall time of each code cell, keyed by its place in the notebook, counted from 1.
    """
    seconds, started = {}, {}
    for cell in nb.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None

    def start(cell, cell_index):
        started[cell_index] = time.perf_counter()

    def stop(cell, cell_index, **_):
        seconds[cell_index + 1] = time.perf_counter() - started[cell_index]

    NotebookClient(
        nb,
        timeout=timeout,
        kernel_name="python3",
        record_timing=False,
        coalesce_streams=True,
        store_widget_state=False,
        resources={"metadata": {"path": str(folder)}},
        on_cell_execute=start,
        on_cell_executed=stop,
    ).execute(env=kernel_env())
    _book.normalise(nb)
    compress_figures(nb)
    return seconds


def compress_figures(nb):
    """Store each figure with 256 colours, which is a third of its size and looks the same."""
    for cell in nb.cells:
        for output in cell.get("outputs", []):
            png = output.get("data", {}).get("image/png")
            if png:
                small, picture = (
                    io.BytesIO(),
                    Image.open(io.BytesIO(base64.b64decode(png))).convert("RGB"),
                )
                picture.quantize(256, dither=Image.Dither.NONE).save(
                    small, "PNG", optimize=True
                )
                output["data"]["image/png"] = (
                    base64.b64encode(small.getvalue()).decode() + "\n"
                )


def report(name, nb, seconds, total):
    print(f"{name}: {total:.1f} s")
    for i, spent in sorted(seconds.items(), key=lambda item: -item[1])[:3]:
        lines = [line for line in nb.cells[i - 1].source.splitlines() if line.strip()]
        print(f"  {spent:6.2f} s  cell {i}: {lines[0][:80] if lines else ''}")


def main(argv=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="+", metavar="NAME", help="chapters, by name")
    parser.add_argument(
        "--timeout", type=int, default=600, help="seconds a cell may take"
    )
    parser.add_argument(
        "--root", type=Path, default=ROOT, help="the folder of the book"
    )
    args = parser.parse_args(argv)
    os.environ.setdefault(
        "JUPYTER_PREFER_ENV_PATH", "1"
    )  # the kernel of this environment, not one of the user's
    book, status = Book(args.root), 0
    for name in args.names:
        path = book.notebook_path(name)
        if not path.exists():
            print(
                f"error: no notebook {book.where(path)} (make sync makes it from the twin)",
                file=sys.stderr,
            )
            status = 1
            continue
        try:
            nb, begin = _book.read_notebook(path), time.perf_counter()
            seconds = execute(nb, book.folder, args.timeout)
        except (
            BookError,
            CellExecutionError,
            CellTimeoutError,
            DeadKernelError,
        ) as error:
            text = re.sub(
                r"\x1b\[[0-9;]*m", "", str(error)
            )  # IPython colours its tracebacks
            print(
                f"error: {name}: the notebook is left as it was\n{text}",
                file=sys.stderr,
            )
            status = 1
            continue
        report(name, nb, seconds, time.perf_counter() - begin)
        _book.write(path, _book.dump_notebook(nb))
    return status


if __name__ == "__main__":
    sys.exit(main())
