"""Pack the book for a course without a network: site, notebooks, data and the package, in one zip.

    tools/course.py     # after `make book dist`; or `make course-zip`

The first cell of a chapter installs what is missing from the folder ``wheels`` of the zip.
"""

import shutil
from pathlib import Path

import sync_cells
from _book import ROOT, VERSION, Book, dump_notebook, read, write
from student import copy_beside, for_students

FROM_FOLDER = "%pip install -q --no-index --find-links ../wheels "
README = f"""\
Learning from Label Proportions, version {VERSION}, for a course without a network

site/index.html  The book. It opens in a browser, with search and slides (Reference, Teaching).
notebooks/       The chapters, and the results that they read.
student/         The same without the solutions of the exercises: to hand out.
data/            The data sets as compressed CSV; the package holds them, too.
wheels/          The package.

To run chapters you need Python 3.11 or later with Jupyter, NumPy, SciPy, scikit-learn, pandas,
matplotlib and seaborn; Anaconda has them all. Open a notebook in Jupyter: its first cell installs
the package from wheels/.

If something is missing, add it to wheels/ once, on a computer with a network and with the system
and the Python of those in the class:

    python -m pip download -d wheels --find-links wheels "llpbook[plot]" jupyterlab

Carry the folder to the class. There, on each computer:

    python -m pip install --no-index --find-links wheels "llpbook[plot]" jupyterlab
    python -m jupyterlab notebooks/intro.ipynb

Code: BSD 3-Clause. Text and figures: CC BY 4.0. Data sets: see site/book/data.html.
"""


def from_folder(notebook):
    """The text of a chapter whose first cell installs from the folder of wheels."""
    text = notebook.replace(sync_cells.PACKAGE, "llpbook[plot]")
    return text.replace("%pip install -q ", FROM_FOLDER)


def pack(site, wheel, folder):
    """Write the folder and its zip; the path of the zip."""
    for path in (site / "index.html", wheel):
        if not path.exists():
            raise SystemExit(f"no {path}: use `make course-zip`")
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(site, folder / "site")
    (folder / "wheels").mkdir()
    shutil.copy(wheel, folder / "wheels")
    shutil.copytree(ROOT / "llpbook/datasets/data", folder / "data")
    book, whole, student = Book(), folder / "notebooks", folder / "student"
    for part in (whole, student):
        copy_beside(book, part)
    for name in book.notebooks:
        file, handed_out = f"{name}.ipynb", dump_notebook(for_students(book, name))
        write(whole / file, from_folder(read(book.notebook_path(name))))
        write(student / file, from_folder(handed_out))
    write(folder / "README.txt", README)
    return shutil.make_archive(folder, "zip", folder.parent, folder.name)


if __name__ == "__main__":
    path = pack(
        site=ROOT / "_build/html",
        wheel=ROOT / f"dist/llpbook-{VERSION}-py3-none-any.whl",
        folder=ROOT / f"_build/course/llpbook-{VERSION}-course",
    )
    print(f"{path}: {Path(path).stat().st_size / 1e6:.0f} MB")
