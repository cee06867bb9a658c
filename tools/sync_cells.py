"""Bring notebooks, their twins, the managed cells and the concordance up to date.

    tools/sync_cells.py [NAME ...]         write; all chapters, or those named
    tools/sync_cells.py --check            write nothing, print what would change, exit 1 if anything would
    tools/sync_cells.py --from-notebook    take the text of the notebooks, not of the twins (after an edit in Jupyter)

The twin ``book/src/NAME.md`` is what an author edits, and it wins: its cells replace those of ``book/NAME.ipynb``,
which keeps the output of each cell whose text did not change. A code cell tagged ``llpbook`` is *managed*: its first
line names objects of the package (``# llpbook.mean_map.MeanMap``; several with commas; a method as ``MeanMap.fit``),
and their source is written below it with each docstring cut to its summary. What stands in a chapter between the lines
``<!-- concordance -->`` and ``<!-- /concordance -->`` is written too: equation, function, test. So is
``book/concordance.md``, the same table over all chapters. A module is edited in ``llpbook/``, never in a cell.
"""

import argparse
import ast
import difflib
import importlib
import inspect
import re
import sys
import textwrap
from pathlib import Path

import _book
from _book import ROOT, Book, BookError

BLOCK = re.compile(r"(<!-- concordance -->)(.*?)(<!-- /concordance -->)", re.DOTALL)
# Other generators of derived files: modules beside this one, each with main(argv) that knows --check.
GENERATORS = ("data_page",)


# --- managed cells -------------------------------------------------------------------------------------------


def shown_source(module, node):
    """The source of a node as a chapter shows it: decorators and comments kept, docstrings cut to their summary."""
    lines = list(module.lines)
    for inner in ast.walk(node):
        doc = _book.docstring_node(inner) if isinstance(inner, _book.DEFS) else None
        if doc is None:
            continue
        indent = lines[doc.lineno - 1][: doc.col_offset]
        lines[doc.lineno - 1] = indent + _one_line_docstring(doc.value.value)
        for i in range(doc.lineno, doc.end_lineno):
            lines[i] = None
    start = _book.first_line(node) - 1
    text = textwrap.dedent(
        "\n".join(line for line in lines[start : node.end_lineno] if line is not None)
    )
    try:
        ast.parse(text)
    except SyntaxError as error:
        line = text.splitlines()[(error.lineno or 1) - 1]
        raise BookError(
            f"{module.where}: cut to its summary, a docstring does not parse: {line.strip()}"
        ) from error
    return text


def _one_line_docstring(doc):
    summary = " ".join(inspect.cleandoc(doc).split("\n\n", 1)[0].split())
    prefix = "r" if "\\" in summary else ""
    return f'{prefix}"""{summary}"""'


def managed_source(modules, cell, where):
    """The text that a managed cell must have."""
    names = _book.managed_names(cell.source)
    if not names:
        raise BookError(
            f"{where}: the first line of a cell tagged llpbook is '# llpbook.MODULE.OBJECT'"
        )
    parts = []
    for name in names:
        module, inner = _book.resolve(modules, name)
        node = module.find(inner) if module is not None else None
        if node is None:
            raise BookError(f"{where}: the package has no object {name}")
        parts.append(shown_source(module, node))
    return f"# {', '.join(names)}\n" + "\n\n\n".join(parts)


# --- the concordance -----------------------------------------------------------------------------------------


def concordance_rows(book, equations):
    """One row an equation that is a promise: label, functions, tests, each as a cell of a table."""
    rows = []
    for equation in equations:
        code = [
            _link(m) for m in book.code_marks if m.label == equation.label and m.name
        ]
        tests = [
            f"`{m.name}`"
            for m in book.test_marks
            if m.label == equation.label and m.name
        ]
        rows.append(
            (
                f"{{eq}}`{equation.label}`",
                *(", ".join(dict.fromkeys(c)) or "none" for c in (code, tests)),
            )
        )
    return rows


def _link(mark):
    if not mark.role:
        return f"`{mark.name}`"
    if mark.role == "meth":  # Class.method says more than the bare method()
        return f"{{py:meth}}`{'.'.join(mark.name.split('.')[-2:])} <{mark.name}>`"
    return f"{{py:{mark.role}}}`~{mark.name}`"


def table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(row) + " |" for row in lines)


def fill_concordance(book, nb, equations, where):
    """Write the table of a chapter between its two marks, in place."""
    rows = concordance_rows(book, equations)
    body = (
        table(("Equation", "Function", "Test"), rows)
        if rows
        else "No equation of this chapter is implemented."
    )
    for i, cell in enumerate(nb.cells, 1):
        if cell.cell_type != "markdown" or "concordance -->" not in cell.source:
            continue
        marks = re.findall(r"<!-- /?concordance -->", cell.source)
        if marks != ["<!-- concordance -->", "<!-- /concordance -->"]:
            raise BookError(
                f"{where} cell {i}: one '<!-- concordance -->' and one '<!-- /concordance -->' a cell"
            )
        cell.source = BLOCK.sub(lambda m: f"{m[1]}\n\n{body}\n\n{m[3]}", cell.source)


def concordance_page(book, equations):
    """The back matter page: one table over all chapters."""
    rows = []
    for page in dict.fromkeys(e.page for e in equations):
        of_page = [e for e in equations if e.page == page]
        rows += [(f"{{doc}}`{page}`", *row) for row in concordance_rows(book, of_page)]
    body = (
        table(("Chapter", "Equation", "Function", "Test"), rows)
        if rows
        else "No equation is implemented yet."
    )
    return (
        "(concordance)=\n# Concordance\n\n"
        "Every equation that the package implements, with the function that computes it and the test that holds it to "
        f"account.\n\n{body}\n"
    )


# --- chapters ------------------------------------------------------------------------------------------------


def source_of(book, name, from_notebook):
    """The notebook, without outputs, that the winning side of a chapter stands for."""
    notebook, twin = book.notebook_path(name), book.twin_path(name)
    if notebook.exists() and (from_notebook or not twin.exists()):
        nb = _book.normalise(_book.read_notebook(notebook))
        return _book.twin_read(_book.twin_text(nb, notebook), notebook)
    if twin.exists():
        return _book.twin_read(twin.read_text(encoding="utf-8"), notebook)
    raise BookError(
        f"no chapter {name}: neither {book.where(notebook)} nor {book.where(twin)}"
    )


def cells_of(book, name, from_notebook=False):
    """A chapter's notebook without outputs, its managed cells filled."""
    nb = source_of(book, name, from_notebook)
    for i, cell in enumerate(nb.cells, 1):
        if _book.is_managed(cell):
            cell.source = managed_source(
                book.modules, cell, f"book/{name}.ipynb cell {i}"
            )
    return nb


def promises(name, texts):
    """The equations of some markdown texts that must be implemented."""
    labels = (label for text in texts for label in _book.equation_labels(text))
    return [
        _book.Equation(label, name, "") for label in labels if label.startswith("eq-")
    ]


def expected(book, name, nb, equations):
    """The bytes of the notebook and of the twin that a chapter must have."""
    path = book.notebook_path(name)
    fill_concordance(book, nb, equations, f"book/{name}.ipynb")
    text = _book.twin_text(nb, path)
    nb = _book.twin_read(
        text, path
    )  # the round trip fixes blank lines at the ends of cells
    stored = _book.read_notebook(path) if path.exists() else None
    return _book.dump_notebook(_book.merge(nb, stored)), text


def stored_twin(book, name):
    """The twin that the notebook on disk would have: outputs aside, what the notebook says."""
    path = book.notebook_path(name)
    return (
        _book.twin_text(_book.normalise(_book.read_notebook(path)), path)
        if path.exists()
        else ""
    )


class Sync:
    """Compute every derived file and either write it or show how it differs."""

    def __init__(self, root, check=False, from_notebook=False):
        self.book, self.check, self.from_notebook = Book(root), check, from_notebook
        self.status = 0

    def put(self, path, text, shown=None):
        """Write a file, or print the difference; of ``shown``, two texts that say it more plainly, if they differ."""
        where = self.book.where(path)
        if not self.check:
            if _book.write(path, text):
                print(f"wrote {where}")
            return
        old = path.read_text(encoding="utf-8") if path.exists() else ""
        if old == text:
            return
        self.status = 1
        if shown is not None and shown[0] != shown[1]:
            old, text = shown
        diff = difflib.unified_diff(
            old.splitlines(),
            text.splitlines(),
            where,
            f"{where} (make sync)",
            lineterm="",
        )
        print(
            "\n".join(diff) or f"{where}: differs in white space at the end (make sync)"
        )

    def fail(self, error):
        print(f"error: {error}", file=sys.stderr)
        self.status = 1

    def run(self, names):
        book, cells, equations = self.book, {}, {}
        names = names or book.chapters
        for name in dict.fromkeys([*book.chapters, *names]):
            try:
                # Only the chapters asked for are read from the other side; the rest tell their equations.
                cells[name] = cells_of(book, name, self.from_notebook and name in names)
                texts = [
                    c.source for c in cells[name].cells if c.cell_type == "markdown"
                ]
                equations[name] = promises(name, texts)
            except BookError as error:
                if name in names:
                    self.fail(error)
        for name in names:
            if name in cells:
                try:
                    self.chapter(name, cells[name], equations[name])
                except BookError as error:
                    self.fail(error)
        try:
            self.page(cells, equations)
        except BookError as error:
            self.fail(error)
        return self.status

    def page(self, cells, equations):
        book = self.book
        if book.chapters:
            # A broken chapter must not lose its rows for the others: the page waits until all can be read.
            if set(book.chapters) <= set(cells):
                every = [e for name in book.chapters for e in equations[name]]
                self.put(book.folder / "concordance.md", concordance_page(book, every))
            else:
                missing = ", ".join(sorted(set(book.chapters) - set(cells)))
                print(
                    f"book/concordance.md left as it is: cannot read {missing}",
                    file=sys.stderr,
                )

    def chapter(self, name, nb, equations):
        notebook, twin = expected(self.book, name, nb, equations)
        shown = (stored_twin(self.book, name), twin) if self.check else None
        self.put(self.book.notebook_path(name), notebook, shown)
        self.put(self.book.twin_path(name), twin)


def main(argv=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="chapters; all if none is named"
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="write nothing; exit 1 if a file would change",
    )
    parser.add_argument(
        "--from-notebook", action="store_true", help="the notebook wins over the twin"
    )
    parser.add_argument(
        "--root", type=Path, default=ROOT, help="the folder of the book"
    )
    args = parser.parse_args(argv)
    status = Sync(args.root, args.check, args.from_notebook).run(args.names)
    if args.root.resolve() == ROOT and not args.names:
        for generator in GENERATORS:
            if (Path(__file__).parent / f"{generator}.py").exists():
                flags = ["--check"] if args.check else []
                status = max(
                    status, int(importlib.import_module(generator).main(flags) or 0)
                )
    return status


if __name__ == "__main__":
    sys.exit(main())
