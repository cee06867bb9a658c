"""Write chapters for a course: without their solutions, which stand beside them.

    tools/student.py [--run] [NAME ...]

``_build/student/NAME.ipynb`` has nothing instead of the solution of an exercise whose starter and check stand before
it, an empty cell instead of other code, and an empty place instead of words.
``_build/solutions/NAME.ipynb`` is the chapter as it is, outside of the folder that is handed out. With ``--run`` each
notebook is run from top to bottom, and it is an error if a cell fails.
"""

import re
import shutil
import sys

import _book
from _book import ROOT, Book
from course import copy_studies
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


def main(*names, runs=False):
    book = Book()
    shutil.rmtree(TARGET, ignore_errors=True)  # an older one held the solutions, too
    for folder in (TARGET, SOLVED):
        folder.mkdir(parents=True, exist_ok=True)
    for page in book.pages:  # to which chapters link
        shutil.copy(ROOT / page, TARGET)
    copy_studies(TARGET)
    for name in names or book.notebooks:
        path = book.notebook_path(name)
        text = without_solutions(_book.read(book.twin_path(name)))
        nb = _book.keep_outputs(_book.twin_read(text, path), book.notebooks[name])
        _book.write(TARGET / path.name, _book.dump_notebook(nb))
        shutil.copy(path, SOLVED)
        if runs:
            run(nb, path.parent)
        print(f"_build/student/{name}.ipynb", flush=True)


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if word != "--run"]
    main(*words, runs="--run" in sys.argv)
