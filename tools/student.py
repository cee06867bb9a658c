"""Write chapters for a course: without their solutions, which stand beside them.

    tools/student.py [--run] [NAME ...]

``_build/student/NAME.ipynb`` has, instead of the solution of a code exercise, one cell with the stub under the name
that the exercise asks for, and the check, which says False until the stub is replaced; instead of any other solution
an empty place. ``_build/student/solutions/NAME.ipynb`` is the chapter as it is. With ``--run`` each notebook is run
from top to bottom, and it is an error if a cell fails or a stub passes.
"""

import argparse
import ast
import re
import shutil
import sys
from pathlib import Path

import _book
from _book import ROOT, Book, BookError
from nbclient import NotebookClient

SOLUTION = re.compile(
    r"^(?P<colons>:{3,})\{solution\} (?P<label>\S+)\n.*?^(?P=colons)$"
    r"|^:{3,}\{solution-start\} (?P<start>\S+)\n.*?^(?P<end>:{3,})\{solution-end\}\n(?P=end)$",
    re.DOTALL | re.MULTILINE,
)
EXERCISE = (
    r"^(?P<colons>:{{3,}})\{{exercise\}}[^\n]*\n:label: {}\n(?P<text>.*?)^(?P=colons)$"
)
CELL = re.compile(
    r"^```\{code-cell\}[^\n]*\n(?:---\n.*?^---\n|(?::[^\n]*\n)+)?(.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
STUB = "    # Your turn: what stands below is the stub, which fails the check."


def exercise_cell(code, text, where):
    """The code of a solution with the stub in the place of the function that the exercise asks for."""
    tree, lines = ast.parse(code), code.split("\n")
    functions = {n.name: n for n in tree.body if isinstance(n, ast.FunctionDef)}
    asked = [n for n in re.findall(r"`(\w+)\(", text) if n in functions]
    if not asked or "check" not in functions:
        raise BookError(f"{where}: a stub needs `NAME(...)` in the text, and a check")
    kept, dropped = [], {"stub"}
    for node in tree.body:
        source = "\n".join(lines[n - 1] for n in _book.line_range(node))
        used = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        if node is functions["stub"]:
            head, _, body = source.partition(":\n")
            head = head.replace("stub", asked[0], 1)
            kept.append(f"{head}:\n{STUB}\n{body}")
        elif used & dropped:  # what compares the solution with the stub
            dropped |= {n.id for n in ast.walk(node) if _is_assigned(n)}
        elif node is not functions[asked[0]]:
            kept.append(source)
    return "\n\n\n".join([*kept, f'print("{asked[0]}:", check({asked[0]}))'])


def _is_assigned(node):
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def without_solutions(text, where="chapter"):
    """The text of a chapter for students."""

    def place(match):
        label = match["label"] or match["start"]
        code = "\n\n\n".join(found.strip("\n") for found in CELL.findall(match[0]))
        if not code:
            return "*Your answer:*"
        if not re.search(r"^def stub\(", code, re.MULTILINE):
            return "```{code-cell} ipython3\n# Your turn.\n```"
        exercise = re.search(EXERCISE.format(label), text, re.DOTALL | re.MULTILINE)
        cell = exercise_cell(code, exercise["text"], f"{where}: {label}")
        return f"```{{code-cell}} ipython3\n{cell}\n```"

    return SOLUTION.sub(place, text)


def student_notebook(book, name):
    """The notebook for students; cells that are the chapter's keep its outputs."""
    text = without_solutions(_book.read(book.twin_path(name)), f"src/{name}.md")
    nb = _book.twin_read(text, book.notebook_path(name))
    return _book.keep_outputs(nb, book.notebooks[name])


def run(nb, folder):
    """Run a notebook; the stubs that pass, which must be none."""
    NotebookClient(nb, timeout=600, resources={"metadata": {"path": folder}}).execute()
    for cell in nb.cells:
        if STUB in cell.source:
            said = "".join(o.get("text", "") for o in cell.outputs)
            if not re.search(r": \(?False\b", said):
                yield said.strip()


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--run", action="store_true", help="run the notebooks as well")
    parser.add_argument("--root", type=Path, default=ROOT, help="the book's folder")
    args = parser.parse_args(argv)
    book, status = Book(args.root), 0
    folder = book.root / "_build/student"
    (folder / "solutions").mkdir(parents=True, exist_ok=True)
    for page in book.pages:  # to which chapters link
        shutil.copy(book.root / page, folder)
    for name in args.names or book.notebooks:
        nb = student_notebook(book, name)
        _book.write(folder / f"{name}.ipynb", _book.dump_notebook(nb))
        shutil.copy(book.notebook_path(name), folder / "solutions")
        for said in run(nb, folder) if args.run else ():
            print(f"{name}: a stub passes: {said}")
            status = 1
        print(f"_build/student/{name}.ipynb", flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main())
