"""Bring notebooks, their twins, the managed cells and the concordance up to date.

    tools/sync_cells.py [NAME ...]         write; all chapters, or those named
    tools/sync_cells.py --check            write nothing, print what would change, exit 1 if anything would
    tools/sync_cells.py --from-notebook    take the text of the notebooks, not of the twins (after an edit in Jupyter)
    tools/sync_cells.py --force NAME       the same, although the edit of the losing side is lost

The twin ``book/src/NAME.md`` is what an author edits, and it wins: its cells replace those of ``book/NAME.ipynb``,
which keeps the output of each cell whose code did not change but for comments, layout and docstrings. A code cell
tagged ``llpbook`` is *managed*: it begins with a comment that names objects of the package
(``# llpbook.mean_map.MeanMap``; several with commas; a method as ``MeanMap.fit``), and their source is written below
with each docstring cut to its summary. What stands in a chapter between the lines ``<!-- concordance -->`` and
``<!-- /concordance -->`` is written too: equation, function, test; and so are the lines at the top of its first code
cell that install what it imports where it stands alone. So is ``book/concordance.md``, one such
table a chapter. The hours in ``book/teaching.md`` are those of ``tools/hours.py``.

A sync stores in the notebook's metadata what the text was. If the side that would lose was edited since, the chapter is
left as it is and the command says how to decide. An edit of a managed cell is always lost, with a note.
"""

import argparse
import difflib
import inspect
import re
import sys
import textwrap
from pathlib import Path

import _book
import data_page
import hours
from _book import ROOT, Book, BookError

# --- managed cells -------------------------------------------------------------------------------------------

WRAP = textwrap.TextWrapper(_book.WIDTH, break_long_words=False, break_on_hyphens=False)


def wrap(text, indent):
    WRAP.initial_indent = WRAP.subsequent_indent = indent
    return WRAP.fill(text)


def shown_source(module, node):
    """The source of a node as a chapter shows it: decorators and comments kept, docstrings cut to their summary."""
    lines = dict(enumerate(module.source.split("\n"), 1))
    for doc in _book.docstrings(node):
        indent = " " * doc.col_offset
        summary = inspect.cleandoc(doc.value.value).split("\n\n", 1)[0]
        raw = "r" if "\\" in summary else ""
        text = f'{raw}"""{" ".join(summary.split())}"""'
        for n in _book.line_range(doc)[1:]:
            del lines[n]
        lines[doc.lineno] = wrap(text, indent)
    shown = [lines[n] for n in _book.line_range(node) if n in lines]
    return textwrap.dedent("\n".join(shown))


def managed_source(book, cell, where):
    """The text that a managed cell must have."""
    names, parts = _book.managed_names(cell.source), []
    if not names:
        raise BookError(f"{where}: a managed cell begins with '# llpbook.NAME.OBJECT'")
    for name in names:
        module, node = book.resolve(name)
        if node is None:
            raise BookError(f"{where}: the package has no object {name}")
        parts.append(shown_source(module, node))
    head = wrap(", ".join(names), "# ")
    return f"{head}\n" + "\n\n\n".join(parts)


# --- a chapter alone -----------------------------------------------------------------------------------------

HOME = _book.PROJECT["urls"]["Homepage"]
# What `llpbook[plot]` and a kernel bring.
WITH_PACKAGE = {"IPython", "joblib", "llpbook", "matplotlib"}
WITH_PACKAGE |= {"numpy", "pandas", "scipy", "seaborn", "sklearn"}


def with_install(source, code):
    """The first cell of a chapter, which installs what all its code imports, before the first import of a library."""
    imported = {*re.findall(r"^ *(?:from|import) (\w+)", code, re.MULTILINE)}
    if not imported & {"llpbook", "studies"}:
        return source
    lines = [_book.INSTALL, "from importlib.util import find_spec"]
    lines.append('if not (find_spec("llpbook") and find_spec("seaborn")):')
    lines.append(f'    %pip install -q "llpbook[plot]@git+{HOME}"')
    for name in sorted(imported - WITH_PACKAGE - sys.stdlib_module_names):
        get = f"%pip install -q {name}"
        if name == "studies":  # they lie beside the chapters
            get = f"!git clone -q {HOME} x && mv x/book/studies ."
        lines += [f'if not find_spec("{name}"):', f"    {get}"]
    return "\n".join([*lines, "", source]).strip()


# --- the concordance -----------------------------------------------------------------------------------------


def link(mark):
    """A link with words: a notebook would show a role as code."""
    if not mark.role:
        return f"`{mark.name}`"
    names = mark.name.split(".")
    # Class.method says more than the bare method
    shown = ".".join(names[-2:] if mark.role == "meth" else names[-1:])
    return f"[`{shown}`](#{mark.name})"


def row(book, label):
    """Equation, functions, tests, each as a cell of a table."""
    code = [link(m) for m in book.code_marks if m.label == label and m.name]
    tests = [f"`{m.name}`" for m in book.test_marks if m.label == label and m.name]
    found = (", ".join(dict.fromkeys(cells)) or "none" for cells in (code, tests))
    words = label.partition("-")[2].replace("-", " ")
    return f"[({words})](#{label})", *found


def table(*head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def concordance_page(book, chapters):
    """The back matter page: one table a chapter."""
    text = (
        "(concordance)=\n# Concordance\n\n"
        "Every equation that the package implements, with the function that computes it and the test that holds it to "
        "account.\n"
    )
    for chapter in chapters:
        rows = [row(book, label) for label in chapter.promises]
        if rows:
            body = table("Equation", "Function", "Test", rows=rows)
            text += f"\n## [{chapter.title}]({chapter.name}.ipynb)\n\n{body}\n"
    return text


# --- chapters ------------------------------------------------------------------------------------------------


class Chapter:
    """A chapter as it lies on disk, and as the winning side says it must be.

    Attributes
    ----------
    files : dict
        ``{path: (content, content that it must have)}`` of twin and notebook.
    title : str
    promises : list of str
        The labels of the equations that must be implemented.
    lost : str or None
        Why the files must not be written.
    """

    def __init__(self, book, name, from_notebook=False):
        self.name = name
        path, twin_path = book.notebook_path(name), book.twin_path(name)
        text, content = _book.read(twin_path), _book.read(path)
        if not text and not content:
            raise BookError(f"no chapter {name}: no {book.where(twin_path)}")
        twin = _book.twin_read(text, path) if text else None
        stored = _book.normalize(_book.read_notebook(path)) if content else None
        self.lost = None
        if twin and stored:
            self.lost = _book.lost_edit(name, stored, twin, from_notebook)
        nb = twin
        if stored and (from_notebook or not twin):
            nb = _book.twin_read(_book.twin_text(stored, path), path)
        sides = [_book.managed(side) for side in (twin, stored) if side]
        for cell, where in zip(nb.cells, book.places(name, nb), strict=True):
            if _book.is_managed(cell):
                head = _book.header(cell.source)
                cell.source = managed_source(book, cell, where)
                if len({side.get(head, head) for side in sides} - {head}) > 1:
                    note = "twin and notebook differ here; the package wins: edit it"
                    print(f"{where}: {head[2:]}: {note}", file=sys.stderr)
        code = [cell for cell in nb.cells if cell.cell_type == "code"]
        if code:
            own = [_book.own_source(cell.source) for cell in code]
            code[0].source = with_install(own[0], "\n".join(own))
        texts = [c.source for c in nb.cells if c.cell_type == "markdown"]
        self.title = next(
            t for text in texts for t in re.findall("^# (.*)", text, re.M)
        )
        labels = [label for text in texts for label in _book.equation_labels(text)]
        self.promises = [label for label in labels if label.startswith("eq-")]
        rows = [row(book, label) for label in self.promises]
        body = table("Equation", "Function", "Test", rows=rows)
        for cell in nb.cells:
            if cell.cell_type == "markdown":
                filled = rf"\1\n\n{body}\n\n\2"
                cell.source = _book.CONCORDANCE.sub(filled, cell.source)
        new = _book.twin_text(nb, path)
        # the round trip fixes blank lines at the ends of cells
        same = nb is twin and new == text
        nb = _book.normalize(nb) if same else _book.twin_read(new, path)
        nb = _book.keep_outputs(_book.stamp(nb), stored)
        self.files = {twin_path: (text, new), path: (content, _book.dump_notebook(nb))}


def sync(root, names, check=False, from_notebook=False, force=False):
    """Compute every derived file and either write it or say how it differs; return the exit status."""
    book, chapters, files, errors = Book(root), [], {}, []
    every = dict.fromkeys([*book.chapters, *names])
    for name in every:
        wanted = not names or name in names
        try:
            # of the chapters that are not asked for, only the equations count
            chapter = Chapter(book, name, from_notebook and wanted)
        except BookError as error:
            errors += [str(error)] * wanted
            continue
        chapters.append(chapter)
        lost = wanted and not force and chapter.lost
        errors += [lost] if lost else []
        if wanted and (check or not lost):
            files |= chapter.files
    if chapters and len(chapters) == len(every):  # else a chapter would lose its rows
        path = book.folder / "concordance.md"
        files[path] = _book.read(path), concordance_page(book, chapters)
    behind = {path: texts for path, texts in files.items() if texts[0] != texts[1]}
    for path, (old, new) in behind.items():
        if check:
            errors.append(f"{book.where(path)} is not what sync writes (make sync)")
            lines = ([line[:120] for line in text.splitlines()] for text in (old, new))
            diff = difflib.unified_diff(*lines, book.where(path), lineterm="")
            print("\n".join(diff))
        else:
            _book.write(path, new, old)
            print(f"wrote {book.where(path)}")
    for error in errors:
        print(f"error: {error}", file=sys.stderr)
    return int(bool(errors))


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    for flag in ("--check", "--from-notebook", "--force"):
        parser.add_argument(flag, action="store_true")
    parser.add_argument("--root", type=Path, default=ROOT, help="the book's folder")
    args = parser.parse_args(argv)
    if args.force and not args.names:
        parser.error("--force loses edits: name the chapters")
    try:
        status = sync(**vars(args))
    except (BookError, SyntaxError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if not args.names:
        check = ["--check"] if args.check else []
        status |= hours.main([*check, "--root", str(args.root)])
    if args.root == ROOT and not args.names:
        status |= data_page.main(["--check"] if args.check else [])
    return status


if __name__ == "__main__":
    sys.exit(main())
