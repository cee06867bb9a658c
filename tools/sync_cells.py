"""Bring notebooks, their twins, the managed cells and the concordance up to date.

    tools/sync_cells.py [NAME ...]         write; all chapters, or those named
    tools/sync_cells.py --check            write nothing, print what would change, exit 1 if anything would
    tools/sync_cells.py --from-notebook    take the text of the notebooks, not of the twins (after an edit in Jupyter)
    tools/sync_cells.py --force NAME       the same, although the edit of the losing side is lost

The twin ``book/src/NAME.md`` is what an author edits, and it wins: its cells replace those of ``book/NAME.ipynb``,
which keeps the output of each cell whose text did not change. A code cell tagged ``llpbook`` is *managed*: its first
line names objects of the package (``# llpbook.mean_map.MeanMap``; several with commas; a method as ``MeanMap.fit``),
and their source is written below it with each docstring cut to its summary. What stands in a chapter between the lines
``<!-- concordance -->`` and ``<!-- /concordance -->`` is written too: equation, function, test. So is
``book/concordance.md``, the same table over all chapters. A module is edited in ``llpbook/``, never in a cell.

A sync stores in the notebook's metadata what the text was. If the side that would lose was edited since, the chapter is
left as it is and the command says how to decide. An edit of a managed cell is always lost, with a note.
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
        cell.source = _book.CONCORDANCE.sub(
            lambda m: f"{m[1]}\n\n{body}\n\n{m[3]}", cell.source
        )


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


class Chapter:
    """A chapter as it lies on disk, and as the winning side says it must be.

    Parameters
    ----------
    book : Book
    name : str
    from_notebook : bool
        Whether the notebook wins over the twin.

    Attributes
    ----------
    nb : notebook
        What the winning side says, without outputs, its managed cells filled.
    stored, twin : notebook or None
        The notebook on disk, and what the twin on disk stands for.
    stored_text, text : str
        What both say, as the text of a twin; empty for a file that is missing.
    """

    def __init__(self, book, name, from_notebook=False):
        self.book, self.name, self.from_notebook = book, name, from_notebook
        self.path, self.twin_path = book.notebook_path(name), book.twin_path(name)
        if not self.path.exists() and not self.twin_path.exists():
            raise BookError(
                f"no chapter {name}: neither {book.where(self.path)} nor {book.where(self.twin_path)}"
            )
        self.text, self.stored_text, self.bytes = "", "", ""
        self.twin, self.stored = None, None
        if self.twin_path.exists():
            self.text = self.twin_path.read_text(encoding="utf-8")
            self.twin = _book.twin_read(self.text, self.path)
        if self.path.exists():
            self.bytes = self.path.read_text(encoding="utf-8")
            self.stored = _book.normalise(_book.read_notebook(self.path))
            self.stored_text = _book.twin_text(self.stored, self.path)
        self.twin_wins = self.twin is not None and not (from_notebook and self.stored)
        text = self.text if self.twin_wins else self.stored_text
        self.nb = _book.twin_read(text, self.path)
        for cell, where in zip(self.nb.cells, self.places(self.nb), strict=True):
            if _book.is_managed(cell):
                cell.source = managed_source(book.modules, cell, where)

    def places(self, nb):
        """Where each cell stands, in the notebook and in the twin."""
        lines = enumerate(_book.cell_lines(nb, self.text), 1)
        return [_book.place(self.name, i, line) for i, line in lines]

    def expected(self, equations):
        """The bytes of the notebook, and the twin, that the chapter must have."""
        fill_concordance(self.book, self.nb, equations, f"book/{self.name}.ipynb")
        text = _book.twin_text(self.nb, self.path)
        # the round trip fixes blank lines at the ends of cells
        nb = _book.stamp(_book.twin_read(text, self.path))
        return _book.merge(nb, self.stored), text

    def lost_edit(self):
        """Why the chapter must not be written: see `_book.lost_edit`."""
        if self.stored is None or self.twin is None:
            return None
        return _book.lost_edit(self.name, self.stored, self.twin, self.from_notebook)

    def edited_managed(self):
        """Yield a note for each managed cell that says neither what the package says nor what it said at the last sync.

        A cell of one line has not been filled yet, which is no edit.
        """
        right = _book.managed_hashes(self.nb.cells)
        before = _book.synced(self.stored).get("managed", {})
        seen = set()
        for nb in filter(None, (self.twin, self.stored)):
            lines = _book.cell_lines(nb, self.text)
            for cell, where, line in zip(nb.cells, self.places(nb), lines, strict=True):
                for names, now in _book.managed_hashes([cell]).items():
                    known = now in (before.get(names, now), right.get(names))
                    if known or now in seen or cell.source.strip() == names:
                        continue
                    seen.add(now)
                    if nb is self.twin:
                        where = f"book/src/{self.name}.md line {line}"
                    yield (
                        f"{where}: managed cell {names[2:]} differs from {self.modules_of(names)}; the package wins. "
                        "If you edited the cell, make the change in the module."
                    )

    def modules_of(self, names):
        found = [
            _book.resolve(self.book.modules, name)[0]
            for name in _book.managed_names(names)
        ]
        return ", ".join(dict.fromkeys(m.where if m else "the package" for m in found))

    def causes(self):
        """What the text of the winning side is behind, with the managed cells that sync changes."""
        before = self.twin if self.twin_wins else self.stored
        old = {cell.source.strip() for cell in before.cells}
        new = [cell for cell in self.nb.cells if cell.source.strip() not in old]
        found = [c.source.split("\n", 1)[0][2:] for c in new if _book.is_managed(c)]
        behind = "the package"
        if any(_book.CONCORDANCE.search(cell.source) for cell in new):
            behind = "the package or the tests"
            found.append("the concordance")
        names = ", ".join(dict.fromkeys(found))
        return f"{behind} ({names})" if found else "the form that sync writes"


def promises(name, texts):
    """The equations of some markdown texts that must be implemented."""
    labels = (label for text in texts for label in _book.equation_labels(text))
    return [
        _book.Equation(label, name, "") for label in labels if label.startswith("eq-")
    ]


def _diff(old, new, where):
    lines = difflib.unified_diff(
        old.splitlines(), new.splitlines(), where, f"{where} (after)", lineterm=""
    )
    return "\n".join(lines) or "only white space at the end of the file differs"


class Sync:
    """Compute every derived file and either write it or say how it differs."""

    def __init__(self, root, check=False, from_notebook=False, force=False):
        self.book, self.check, self.from_notebook = Book(root), check, from_notebook
        self.force, self.status = force, 0

    def put(self, path, text):
        if _book.write(path, text):
            print(f"wrote {self.book.where(path)}")

    def drift(self, line, diff=None):
        print(line if diff is None else f"{line}\n{diff}")
        self.status = 1

    def fail(self, error):
        print(f"error: {error}", file=sys.stderr)
        self.status = 1

    def run(self, names):
        book, chapters, equations = self.book, {}, {}
        names = names or book.chapters
        for name in dict.fromkeys([*book.chapters, *names]):
            try:
                # Only the chapters asked for are read from the other side; the rest tell their equations.
                from_notebook = self.from_notebook and name in names
                chapters[name] = Chapter(book, name, from_notebook)
                texts = [
                    c.source
                    for c in chapters[name].nb.cells
                    if c.cell_type == "markdown"
                ]
                equations[name] = promises(name, texts)
            except BookError as error:
                if name in names:
                    self.fail(error)
        for name in names:
            if name in chapters:
                try:
                    self.chapter(chapters[name], equations[name])
                except BookError as error:
                    self.fail(error)
        try:
            self.page(chapters, equations)
        except BookError as error:
            self.fail(error)
        return self.status

    def page(self, chapters, equations):
        book = self.book
        if not book.chapters:
            return
        # A broken chapter must not lose its rows for the others: the page waits until all can be read.
        if not set(book.chapters) <= set(chapters):
            missing = ", ".join(sorted(set(book.chapters) - set(chapters)))
            print(
                f"book/concordance.md left as it is: cannot read {missing}",
                file=sys.stderr,
            )
            return
        path = book.folder / "concordance.md"
        every = [e for name in book.chapters for e in equations[name]]
        text = concordance_page(book, every)
        old = path.read_text(encoding="utf-8") if path.exists() else ""
        if not self.check:
            self.put(path, text)
        elif old != text:
            self.drift(
                "book/concordance.md is behind the chapters, the package or the tests (make sync)",
                _diff(old, text, "book/concordance.md"),
            )

    def chapter(self, chapter, equations):
        nb, text = chapter.expected(equations)
        for note in chapter.edited_managed():
            print(note, file=sys.stderr)
        lost = None if self.force else chapter.lost_edit()
        if lost:
            self.fail(lost)
            if self.check:
                twin = self.book.where(chapter.twin_path)
                sides = [chapter.text, chapter.stored_text]
                print(_diff(*(sides[::-1] if self.from_notebook else sides), twin))
        elif self.check:
            self.compare(chapter, nb, text)
        else:
            self.write(chapter, nb, text)

    def write(self, chapter, nb, text):
        for path, before in (
            (chapter.twin_path, chapter.text),
            (chapter.path, chapter.bytes),
        ):
            if path.exists() and path.read_text(encoding="utf-8") != before:
                raise BookError(
                    f"{self.book.where(path)} changed while it was read: run the command again"
                )
        # The twin first: if the second write fails, no side looks as if it had lost nothing.
        self.put(chapter.twin_path, text)
        self.put(chapter.path, _book.dump_notebook(nb))

    def compare(self, chapter, nb, text):
        """Say in one line what of a chapter is behind what, and show how its text differs, once."""
        if not _book.synced(chapter.stored):
            del nb.metadata[_book.SYNCED]  # the next sync stores it; it is no drift
        twin = (self.book.where(chapter.twin_path), chapter.text)
        notebook = (self.book.where(chapter.path), chapter.stored_text)
        (winner, new), (loser, old) = (
            (twin, notebook) if chapter.twin_wins else (notebook, twin)
        )
        if new == old == text:
            if chapter.bytes != _book.dump_notebook(nb):
                self.drift(
                    f"{notebook[0]} has other metadata than sync writes (make sync)"
                )
            return
        package = "" if new == text else chapter.causes()
        if new == old:
            line = f"{winner} and {loser} are behind {package}"
        elif old == text:
            line = f"{winner} is behind {package}"
        else:
            line = f"{loser} is behind {winner}"
            line += f", and both are behind {package}" if package else ""
        before = twin[1] if twin[1] != text else notebook[1]
        self.drift(f"{line} (make sync)", _diff(before, text, twin[0]))


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
        "--force",
        action="store_true",
        help="write the named chapters although an edit is lost",
    )
    parser.add_argument(
        "--root", type=Path, default=ROOT, help="the folder of the book"
    )
    args = parser.parse_args(argv)
    if args.force and not args.names:
        parser.error("--force loses edits: name the chapters")
    sync = Sync(args.root, args.check, args.from_notebook, args.force)
    status = sync.run(args.names)
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
