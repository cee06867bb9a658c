"""Write chapters for a course: without their solutions, which stand beside them.

    tools/student.py [--run] [NAME ...]

``_build/student/NAME.ipynb`` has nothing instead of the solution of an exercise whose starter and check stand before
it, an empty cell instead of other code, and an empty place instead of words.
``_build/solutions/NAME.ipynb`` is the chapter as it is, outside of the folder that is handed out. Without a name both
folders are written anew. With ``--run`` each notebook is run from top to bottom, and it is an error if a cell fails.
"""

import re
import shutil
import sys

import _book
from _book import ROOT, Book
from execute import run

TARGET, SOLVED = ROOT / "_build/student", ROOT / "_build/solutions"
SOLUTION = re.compile(
    r"^(?P<colons>:{3,})\{solution\} (?P<label>\S+)\n.*?^(?P=colons)$"
    r"|^:{3,}\{solution-start\} (?P<start>\S+)\n.*?^(?P<end>:{3,})\{solution-end\}\n(?P=end)$",
    re.DOTALL | re.MULTILINE,
)


def without_solutions(text):
    """The text of a chapter for students."""

    def place(match):
        if "{code-cell}" not in match[0]:
            return "*Your answer:*"
        label = match["label"] or match["start"]
        asked = text.rfind(f":label: {label}\n", 0, match.start())
        if "{code-cell}" in text[asked : match.start()]:
            return ""  # the chapter has the starter and the check
        return "```{code-cell} ipython3\n# Your turn.\n```"

    return SOLUTION.sub(place, text)


def copy_beside(book, folder):
    """Put beside chapters what they import, else their first cell asks the network for it, and pages they link to."""
    caches = shutil.ignore_patterns("__pycache__", "*.lock", "*.part")
    studies = ROOT / "book/studies"
    shutil.copytree(studies, folder / "studies", dirs_exist_ok=True, ignore=caches)
    for page in book.pages:
        shutil.copy(ROOT / page, folder)


def for_students(book, name):
    """A chapter as a notebook without solutions."""
    text = without_solutions(_book.read(book.twin_path(name)))
    nb = _book.twin_read(text, book.notebook_path(name))
    return _book.keep_outputs(nb, book.notebooks[name])


def main(*names, runs=False):
    book = Book()
    for folder in (TARGET, SOLVED):
        if not names:
            shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True, exist_ok=True)
    copy_beside(book, TARGET)
    for name in names or book.notebooks:
        path, nb = book.notebook_path(name), for_students(book, name)
        _book.write(TARGET / path.name, _book.dump_notebook(nb))
        shutil.copy(path, SOLVED)
        if runs:
            run(nb, path.parent)
        print(f"_build/student/{name}.ipynb", flush=True)


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if word != "--run"]
    main(*words, runs="--run" in sys.argv)
