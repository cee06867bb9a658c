"""Write chapters for a course: without their solutions, which stand beside them.

    tools/student.py [--run] [NAME ...]

``_build/student/NAME.ipynb`` has, instead of the solution of a code exercise, one cell with the stub under the name
that the exercise asks for, and the check, which says False until the stub is replaced; nothing where the chapter
itself has a starter and a check before the solution; instead of any other solution an empty place.
``_build/student/solutions/NAME.ipynb`` is the chapter as it is. With ``--run`` each notebook is run from top to
bottom, and it is an error if a cell fails or a stub passes.
"""

import ast
import re
import shutil
import sys

import _book
from _book import ROOT, Book, BookError
from execute import run

TARGET = ROOT / "_build/student"
SOLUTION = re.compile(
    r"^(?P<colons>:{3,})\{solution\} (?P<label>\S+)\n.*?^(?P=colons)$"
    r"|^:{3,}\{solution-start\} (?P<start>\S+)\n.*?^(?P<end>:{3,})\{solution-end\}\n(?P=end)$",
    re.DOTALL | re.MULTILINE,
)
EXERCISE = r"^(:{{3,}})\{{exercise\}}[^\n]*\n:label: {}\n(.*?)^\1$"
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
        used = [n for n in ast.walk(node) if isinstance(n, ast.Name)]
        if node is functions["stub"]:
            head, _, body = source.replace("stub", asked[0], 1).partition(":\n")
            kept.append(f"{head}:\n{STUB}\n{body}")
        elif dropped & {n.id for n in used}:  # what compares the solution with the stub
            dropped |= {n.id for n in used if isinstance(n.ctx, ast.Store)}
        elif node is not functions[asked[0]]:
            kept.append(source)
    return "\n\n\n".join([*kept, f'print("{asked[0]}:", check({asked[0]}))'])


def without_solutions(text, where="chapter"):
    """The text of a chapter for students."""

    def place(match):
        label = match["label"] or match["start"]
        code = "\n\n\n".join(found.strip("\n") for found in CELL.findall(match[0]))
        if not code:
            return "*Your answer:*"
        asked = text.rfind(f":label: {label}\n", 0, match.start())
        if "{code-cell}" in text[asked : match.start()]:
            return ""  # the chapter has the starter and the check
        if re.search(r"^def stub\(", code, re.MULTILINE):
            exercise = re.search(EXERCISE.format(label), text, re.DOTALL | re.MULTILINE)
            code = exercise_cell(code, exercise[2], f"{where}: {label}")
        else:
            code = "# Your turn."
        return f"```{{code-cell}} ipython3\n{code}\n```"

    return SOLUTION.sub(place, text)


def passing_stubs(nb):
    """Yield what a stub said that passes its check; none must."""
    for cell in nb.cells:
        if STUB in cell.source:
            said = "".join(o.get("text", "") for o in cell.outputs)
            if not re.search(r": \(?False\b", said):
                yield f"a stub passes: {said.strip()}"


def main(*names, runs=False):
    book, wrong = Book(), []
    (TARGET / "solutions").mkdir(parents=True, exist_ok=True)
    for page in book.pages:  # to which chapters link
        shutil.copy(ROOT / page, TARGET)
    for name in names or book.notebooks:
        path = book.notebook_path(name)
        text = without_solutions(_book.read(book.twin_path(name)), f"src/{name}.md")
        nb = _book.keep_outputs(_book.twin_read(text, path), book.notebooks[name])
        _book.write(TARGET / path.name, _book.dump_notebook(nb))
        shutil.copy(path, TARGET / "solutions")
        if runs:
            run(nb, path.parent)
            wrong += [f"{name}: {said}" for said in passing_stubs(nb)]
        print(f"_build/student/{name}.ipynb", flush=True)
    return "\n".join(wrong) or None


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if word != "--run"]
    sys.exit(main(*words, runs="--run" in sys.argv))
