"""Check the book's files: each rule is a function below, and its docstring says what it asks for.

A finding reads ``FILE cell N (TWIN line M): message``; cells of all kinds are counted from 1, and M is the line of the
chapter's text on which the cell begins, or on which a TODO stands. Style is checked by ruff, references and headings by
the build of the site.
"""

import argparse
import ast
import itertools
import json
import re
import statistics
import sys
from collections import defaultdict
from pathlib import Path

import _book
from _book import ROOT, Book

OUTPUT_BYTES = 400_000  # of a chapter
CELL_LINES, CELL_MEDIAN = 30, 5
FUNCTION_LINES, CLASS_LINES, MODULE_LINES = 40, 60, 300
UNCOMPARED = "nbval-ignore-output"
RULES = {}


def rule(check):
    RULES[check.__name__] = check
    return check


# --- notebooks -----------------------------------------------------------------------------------------------


@rule
def executed(book):
    """Code cells carry the counts 1 to n: nbval passes a cell that never ran. None wrote to stderr, or failed."""
    for name, nb in book.notebooks.items():
        counts = [c.execution_count for c in nb.cells if c.cell_type == "code"]
        if counts != [*range(1, len(counts) + 1)]:
            yield f"book/{name}.ipynb: cells have not run in order (make run CH={name})"
    for where, cell in book.code:
        for output in cell.outputs:
            if output.get("name") == "stderr":
                yield f"{where}: wrote to stderr: {output.text.strip()[-80:]}"
            elif output.output_type == "error":
                yield f"{where}: ended with {output.ename}: {output.evalue[:80]}"


@rule
def uncompared(book):
    """A cell whose output is not compared (tag nbval-ignore-output) asserts its claim, of a name that it computes."""
    for where, cell in book.code:
        if UNCOMPARED in cell.metadata.get("tags", []):
            nodes = ast.walk(ast.parse(_book.own_source(cell.source)))
            tests = [node.test for node in nodes if isinstance(node, ast.Assert)]
            names = (n for test in tests for n in ast.walk(test))
            if not any(isinstance(n, ast.Name) for n in names):
                yield f"{where}: its output is not compared, and it asserts nothing"


@rule
def output_size(book):
    """At most 400 kB of stored outputs a chapter."""
    for name, nb in book.notebooks.items():
        size = len(json.dumps([c.get("outputs") for c in nb.cells]).encode())
        if size > OUTPUT_BYTES:
            yield f"book/{name}.ipynb: {size / 1000:.0f} kB of stored outputs"


@rule
def cell_length(book):
    """No code cell above 30 lines of code, the median of the open ones at most 5; managed cells do not count."""
    lengths = defaultdict(list)
    for name, where, cell in book.cells:
        if cell.cell_type == "code" and not _book.is_managed(cell):
            source = _book.own_source(cell.source)
            length = len(re.findall(r"^[ \t]*[^#\s]", source, re.MULTILINE))
            if "source_hidden" not in cell.metadata.get("jupyter", {}):
                lengths[name].append(length)
            if length > CELL_LINES:
                yield f"{where}: {length} lines of code, above {CELL_LINES}"
    for name, found in lengths.items():
        if statistics.median(found) > CELL_MEDIAN:
            yield f"book/{name}.ipynb: median cell of {statistics.median(found):g} lines"


@rule
def untagged(book):
    """A code cell that starts with '# llpbook.X' is managed."""
    for where, cell in book.code:
        if not _book.is_managed(cell) and _book.managed_names(cell.source):
            yield f"{where}: begins as a managed cell, but the tag llpbook is missing"


# --- text ----------------------------------------------------------------------------------------------------


@rule
def plain_notebook(book):
    """A chapter reads well in a notebook without MyST: directives are colon fences, references are links in words."""
    for _, where, cell in book.cells:
        role = re.search(r":[a-z]+:`[^`]*`", cell.source)
        if role and cell.cell_type == "code":
            yield f"{where}: {role[0]} is shown as it is: say the first sentence of the docstring in words"
        for token in _book.tokens(cell.source) if cell.cell_type != "code" else ():
            if token.type == "directive" and not token.markup.startswith(":"):
                yield f"{where}: ```{{{token.tag}}} is shown as code: write :::{{{token.tag}}}"
            for one, two in itertools.pairwise(token.children or []):
                role = re.search(r"\{[a-z]+(:[a-z]+)?\}$", one.content)
                if role and two.type == "code_inline":
                    shown = f"{role[0]}`{two.content}`"
                    yield f"{where}: {shown} is shown as code: write [words](#label)"
                if (one.type, two.type) == ("link_open", "link_close"):
                    yield f"{where}: the link to {one.attrs['href']} has no words"


@rule
def private_modules(book):
    """No chapter and no page names a private module of the package."""
    cells = [(where, cell.source) for _, where, cell in book.cells]
    for where, text in [*cells, *book.pages.items()]:
        named = re.findall(r"\bllpbook(?:\.\w+)+", text)
        for module, objects in re.findall(r"from (llpbook[\w.]*) import (.*)", text):
            named += [f"{module}.{name}" for name in re.findall(r"\w+", objects)]
        for name in sorted({re.sub(r"(\._\w+).*", r"\1", name) for name in named}):
            if "._" in name and name in book.modules:
                yield f"{where}: {name} is a private module"


# --- the table of contents and the three rooms ----------------------------------------------------------------


@rule
def toc(book):
    """The table of contents and the files of book/ are the same set, notebooks with their suffix."""
    files = {f"book/{name}.ipynb" for name in book.notebooks}
    files |= {page.removesuffix(".md") for page in book.pages}
    listed = {entry.removesuffix(".md") for entry in book.toc}
    for entry in sorted(listed - files):  # the Binder link follows the suffix
        yield f"_toc.yml: {entry} is neither a page nor, with .ipynb, a notebook"
    for path in sorted(files - listed):
        yield f"{path}: not in _toc.yml"


ROAD, METHODS, REFERENCE = "Core", "Methods from the papers", "Reference"
LABEL = re.compile(r"^\(([\w-]+)\)=|^:label: (\S+)|\$\$ \(([\w-]+)\)", re.MULTILINE)


FENCE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
IMPORTED = re.compile(r"^from llpbook import \(?([\w ,\n]+)", re.MULTILINE)


@rule
def road(book):
    """A page of the road imports, runs and cites nothing of a page of the methods; a link to the page is allowed."""
    own = [name for name in book.parts.get(METHODS, []) if name in book.notebooks]
    rooms = [(name, files) for name, files in book.rooms if name in own]
    public = {*own, *(x.name for _, files in rooms for x in _functions(files))}
    words = {x for _, files in rooms for x in _estimators(files)}
    words |= {f"llpbook.{name}" for name, _ in rooms}
    texts, code = defaultdict(str), defaultdict(str)
    for name, _, text in book.markdown:
        texts[name] += f"\n{text}"
        code[name] += "\n".join(FENCE.findall(text))
    for name, _, cell in book.cells:
        code[name] += f"\n{cell.source}" * (cell.cell_type == "code")
    labels = {"".join(x) for name in own for x in LABEL.findall(texts[name])}
    for name in book.parts.get(ROAD, []):
        used = {w for w in words if re.search(rf"\b{re.escape(w)}\b", code[name])}
        used |= public & {*re.findall(r"\w+", " ".join(IMPORTED.findall(code[name])))}
        cited = {*re.findall(r"\]\(#([\w-]+)\)", texts[name])}
        used |= {f"#{label}" for label in labels & cited}
        page = f"{name}.ipynb" if name in book.notebooks else f"{name}.md"
        for found in sorted(used):
            yield f"book/{page}: {found} is of a page of the methods; the road needs none"


def _estimators(files):
    """The names of the estimators of a room."""
    is_one = re.compile(r"^class ([A-Z]\w*)\(.*Classifier\b.*\):", re.MULTILINE)
    return [name for module in files for name in is_one.findall(module.source)]


def _functions(files):
    """The functions of a room."""
    return [x for m in files for x in m.tree.body if isinstance(x, ast.FunctionDef)]


# Most words of a chapter of each part: exercises and folds count, the concordance does not.
WORDS = {ROAD: 3400, METHODS: 2400}


@rule
def length(book):
    """A chapter has at most as many words as its form allows."""
    for part, most in WORDS.items():
        for name in [n for n in book.parts.get(part, []) if n in book.notebooks]:
            cells = book.notebooks[name].cells
            text = "\n".join(c.source for c in cells if c.cell_type == "markdown")
            words = len(_book.CONCORDANCE.sub("", text).split())
            if words > most:
                yield f"book/{name}.ipynb: {words} words, above {most}"


@rule
def ends(book):
    """A chapter's last lines lead to the next page of the table of contents, and say where to skip to."""
    for name, following in itertools.pairwise(Path(entry).stem for entry in book.toc):
        cells = book.notebooks[name].cells if name in book.notebooks else []
        last = [c.source for c in cells if c.cell_type == "markdown"][-1:]
        for text in last:
            for word in ("**Next:**", "**Skip to**"):
                if word not in text:
                    yield f"book/{name}.ipynb: the last paragraph has no {word}"
            leads = re.search(r"\*\*Next:\*\*.*?\]\(([\w-]+)\.(?:ipynb|md)\)", text)
            if leads and leads[1] != following:
                yield f"book/{name}.ipynb: the next page is {following}, not {leads[1]}"


@rule
def shown(book):
    """Managed cells show, whole, what implements an equation (# eq:), on its page or the room's, and the estimators."""
    pages = {e.label: e.page for e in book.equations if e.page in book.notebooks}
    for name, files in book.rooms:
        room = f"llpbook.{name}."
        wanted = [
            (m.name, pages.get(m.label, name))
            for m in book.code_marks
            if m.name.startswith(room)
        ]
        wanted += [(room + estimator, name) for estimator in _estimators(files)]
        for want, page in dict.fromkeys(wanted):
            nbs = book.notebooks[name], book.notebooks[page]
            cells = [source for nb in nbs for source in _book.managed(nb).values()]
            seen = {n for source in cells for n in _book.managed_names(source)}
            if not {want, want.rpartition(".")[0]} & seen:
                yield f"book/{page}.ipynb: no managed cell shows {want}"


@rule
def module_size(book):
    """Functions have at most 40 lines of code; in a room with a chapter, classes 60 and each file 300.

    Docstrings, blank lines and comments do not count; in a class, nor do __init__ and _parameter_constraints.
    """
    shown = {module.name for _, files in book.rooms for module in files}
    for module in book.modules.values():
        kinds = _book.DEFS if module.name in shown else _book.DEFS[:2]
        if module.name in shown and len(module.code_lines) > MODULE_LINES:
            yield f"{module.where}: {len(module.code_lines)} lines, above {MODULE_LINES}"
        for node in ast.walk(module.tree):
            if isinstance(node, kinds):
                size = len(module.code_lines & _own_lines(node))
                is_class = isinstance(node, ast.ClassDef)
                limit = CLASS_LINES if is_class else FUNCTION_LINES
                if size > limit:
                    where = f"{module.where} line {node.lineno}"
                    yield f"{where}: {node.name} has {size} lines, above {limit}"


def _own_lines(node):
    """The lines of a function's body; of a class without what scikit-learn wants in every one."""
    if not isinstance(node, ast.ClassDef):
        return set(range(node.body[0].lineno, node.end_lineno + 1))
    lines = set(_book.line_range(node))
    for inner in node.body:
        if _book.names(inner) in (["__init__"], ["_parameter_constraints"]):
            lines.difference_update(_book.line_range(inner))
    return lines


@rule
def spelled(book):
    """Calls spell their arguments: only args that a function passes on, or what zip and product get, is starred."""
    for module in book.modules.values():
        for call in [n for n in ast.walk(module.tree) if isinstance(n, ast.Call)]:
            starred = [a for a in call.args if isinstance(a, ast.Starred)]
            bundles = {ast.unparse(arg) for arg in starred} - {"*args"}
            if bundles and ast.unparse(call.func) not in {"zip", "product"}:
                where = f"{module.where} line {call.lineno}"
                yield f"{where}: spell the arguments in {', '.join(sorted(bundles))}"


def line_below(where, n):
    """Place of line n, counted from 0, of a text that stands at ``where``."""
    first = re.search(r"(?<= line )\d+(?=\)$)", where)
    if not first:
        return f"{where} line {n + 1}"
    return f"{where[: first.start()]}{int(first[0]) + n})"


@rule
def filled(book):
    """Nothing of the templates of `make new` is left: they say TODO where an author has to write.

    A TODO is told where the author writes: not in a managed cell, nor in the concordance, which are derived.
    """
    cells = [(w, c.source) for _, w, c in book.cells if not _book.is_managed(c)]
    pages = {w: text for w, text in book.pages.items() if w != "book/concordance.md"}
    files = [m for _, files in book.rooms for m in files] + book.tests
    files = [(m.where, m.source) for m in files if m.name != "test_tools.py"]
    for where, text in [*cells, *files, *pages.items()]:
        for n, line in enumerate(text.split("\n")):
            if re.search(r"\bTODO\b", line):
                place = line_below(where, n)
                yield f"{place}: still to be written: {line.strip()[:80]}"


# --- the concordance -----------------------------------------------------------------------------------------


@rule
def equations_kept(book):
    """A label is eq- or step-; eq- has a '# eq: LABEL' in the package, a test, and a row of its chapter's table."""
    in_code = {m.label for m in book.code_marks if m.name}
    in_tests = {m.label for m in book.test_marks}
    ends = {page for page, _, text in book.markdown if _book.CONCORDANCE.search(text)}
    for label, page, where in book.equations:
        if not label.startswith(("eq-", "step-")):
            yield f"{where}: the label {label} starts with neither eq- nor step-"
        elif label.startswith("eq-"):
            if label not in in_code:
                yield f"{where}: {label} has no '# eq: {label}' in llpbook/"
            if label not in in_tests:
                yield f'{where}: {label} has no test marked equation("{label}")'
            if page not in ends:
                yield f"{where}: the chapter has no '<!-- concordance -->' block"


@rule
def marks_known(book):
    """What code and tests name is an eq- equation; '# eq:' stands in a function."""
    known = {e.label for e in book.equations}
    for mark in [*book.code_marks, *book.test_marks]:
        if mark.label not in known:
            yield f"{mark.where}: no chapter has an equation {mark.label or '(empty)'}"
        elif not mark.name:
            yield f"{mark.where}: {mark.label} is named outside of a function"
        elif not mark.label.startswith("eq-"):
            yield f"{mark.where}: {mark.label} is a step (only eq- is implemented)"


def findings(book, names=None):
    """Yield ``(rule, message)`` for every breach of the named rules, or of all."""
    for name in names or RULES:
        for message in RULES[name](book):
            yield name, message


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=Path, default=ROOT, help="the book's folder")
    book = Book(parser.parse_args(argv).root)
    found = [f"{message} [{name}]" for name, message in findings(book)]
    print(*found, sep="\n", end="\n" * bool(found))
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
