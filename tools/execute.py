"""Run chapters and store their outputs, so that a second run gives the same bytes.

    tools/execute.py NAME [NAME ...]

A chapter is executed in ``book/`` from its notebook as it is: bring twin and notebook together first
(``tools/sync_cells.py``). If a cell fails, the notebook on disk stays as it was.
"""

import base64
import io
import os
import sys
import time

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
KERNEL = "ignore::DeprecationWarning:tornado.ioloop,ignore::PendingDeprecationWarning:ipykernel.kernelbase"
ENV["PYTHONWARNINGS"] = ",".join([*(f"error::{soon}" for soon in SOON), KERNEL])


def compress_figures(nb):
    """Store each figure with 256 colors, which is a third of its size and looks the same."""
    for output in (o for cell in nb.cells for o in cell.get("outputs", [])):
        png = output.get("data", {}).get("image/png")
        if png:
            picture = Image.open(io.BytesIO(base64.b64decode(png))).convert("RGB")
            few, small = picture.quantize(256, dither=Image.Dither.NONE), io.BytesIO()
            few.save(small, "PNG", optimize=True)
            text = base64.b64encode(small.getvalue()).decode()
            output["data"]["image/png"] = f"{text}\n"


def run(nb, folder):
    """Run a notebook, in place, with the kernel of this environment, not one of the user's."""
    env = {**os.environ, **ENV}
    os.environ["JUPYTER_PREFER_ENV_PATH"] = "1"
    where = {"metadata": {"path": str(folder)}}
    # A kernel warns at each start that its sockets, on this machine, are not encrypted.
    quiet = ["--IPKernelApp.log_level=ERROR"]
    client = NotebookClient(
        nb, timeout=600, coalesce_streams=True, resources=where, extra_arguments=quiet
    )
    client.execute(env=env)


def main(names, root=_book.ROOT):
    status = 0
    for name in names:
        begin, path = time.perf_counter(), _book.Book(root).notebook_path(name)
        try:
            nb = _book.read_notebook(path)
            run(nb, path.parent)
            compress_figures(_book.normalize(nb))
            _book.write(path, _book.dump_notebook(nb))
            print(f"{name}: {time.perf_counter() - begin:.1f} s")
        except (_book.BookError, CellControlSignal, DeadKernelError) as error:
            print(f"error: {name} is left as it was\n{error}", file=sys.stderr)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
