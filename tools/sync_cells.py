"""Bring notebooks, their twins, the managed cells and the concordance up to date.

    tools/sync_cells.py [NAME ...]         write; all chapters, or those named
    tools/sync_cells.py --check            write nothing, print what would change, exit 1 if anything would
    tools/sync_cells.py --from-notebook NAME ...    take the text of the notebook, not of the twin (edited in Jupyter)

The twin ``book/src/NAME.md`` is what an author edits, and it wins: its cells replace those of ``book/NAME.ipynb``,
which keeps the output of each cell whose code did not change but for comments, layout and docstrings. A code cell
tagged ``llpbook`` is *managed*: it begins with a comment that names objects of the package
(``# llpbook.mean_map.MeanMap``; several with commas; a method as ``MeanMap.fit``), and their source is written below
with each docstring cut to its summary. What stands in a chapter between the lines ``<!-- concordance -->`` and
``<!-- /concordance -->`` is written too: equation, function, test; and so are the lines at the top of its first code
cell that install what it imports where it stands alone, ``book/concordance.md``, one table a chapter, and the hours in
``book/teaching.md``.

A sync stores in the notebook's metadata what the text was. If the side that would lose was edited since, the chapter is
left as it is and the command says how to decide.
"""

import argparse
import difflib
import inspect
import re
import sys
import textwrap
from pathlib import Path
from typing import NamedTuple

import _book
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
REVISION = f"v{_book.VERSION}" if _book.IS_RELEASED else "main"
FILES = f"{HOME}/archive/{REVISION}.zip"  # needs no git
PACKAGE = f"llpbook[plot] @ {FILES}"
# `studies` lies beside the chapters.
STUDIES = f"""\
    from pathlib import Path
    from shutil import move, unpack_archive
    from tempfile import mkdtemp
    from urllib.request import urlretrieve
    folder = mkdtemp()
    files, _ = urlretrieve("{FILES}")
    unpack_archive(files, folder, "zip")
    move(next(Path(folder).glob("*/book/studies")), ".")"""
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
    lines.append(f'    %pip install -q "{PACKAGE}"')
    for name in sorted(imported - WITH_PACKAGE - sys.stdlib_module_names):
        get = STUDIES if name == "studies" else f"    %pip install -q {name}"
        lines += [f'if not find_spec("{name}"):', get]
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
    words = label.partition("-")[2].replace("-", " ")
    cells = [", ".join(dict.fromkeys(cells)) or "none" for cells in (code, tests)]
    return f"[({words})](#{label})", *cells


def table(*head, rows, rule="---"):
    lines = [head, ["---", *[rule] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def concordance_page(chapters):
    """The back matter page: one table a chapter."""
    text = (
        "(concordance)=\n# Concordance: equation, function, test\n\n"
        "Every equation that the package implements, with the function that computes it and the test that holds it to "
        "account.\n"
    )
    for chapter in chapters:
        if chapter.rows:
            body = table("Equation", "Function", "Test", rows=chapter.rows)
            text += f"\n## [{chapter.title}]({chapter.name}.ipynb)\n\n{body}\n"
    return text


# --- the hours of a chapter ----------------------------------------------------------------------------------

HOURS = re.compile(r"(<!-- hours -->).*?(<!-- /hours -->)", re.DOTALL)
# For each: a word, a labeled equation with a pencil, a code cell, an exercise, of which a reader does two.
MINUTES, OWN = (0.015, 4, 1, 20), 2
NO_WORDS = r"\$\$.*?\$\$(?: *\([\w-]+\))?|\$[^$]+\$|\]\([^)]*\)|^:[^\n]*$|^\([^\n]*\)=$"


def hours_row(chapter):
    """Exercises of a chapter, and the hours that follow from `MINUTES` for what stands before them."""
    every = "\n\n".join(cell.source for cell in chapter.nb.cells)
    n_exercises = len(re.findall(r"^:{3,}\{exercise\}", every, re.MULTILINE))
    end = [i for i, c in enumerate(chapter.nb.cells) if "## Exercises" in c.source]
    cells = chapter.nb.cells[: end[0]] if end else chapter.nb.cells
    text = "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    n_cells = sum(cell.cell_type == "code" for cell in cells)
    n_equations = len(_book.equation_labels(text))
    text = re.sub(NO_WORDS, " ", _book.CONCORDANCE.sub("", text), flags=re.S | re.M)
    n_words = len(re.findall(r"[^\W_][^\s|]*", text))
    sizes = n_words, n_equations, n_cells, min(OWN, n_exercises)
    minutes = sum(n * each for n, each in zip(sizes, MINUTES, strict=True))
    link = f"[{re.match('[^:?]+[?]?', chapter.title)[0]}]({chapter.name}.ipynb)"
    return link, str(n_exercises), f"{round(minutes / 30) / 2:g}"


def with_hours(text, chapters):
    """The page on teaching with the hours of every chapter."""
    rows = map(hours_row, chapters)
    body = table("Chapter", "Exercises", "Hours", rows=rows, rule="---:")
    return HOURS.sub(rf"\1\n\n{body}\n\n\2", text)


# --- chapters ------------------------------------------------------------------------------------------------


class Chapter(NamedTuple):
    """A chapter as the winning side says it must be.

    Attributes
    ----------
    rows : list of tuple
        Of the concordance.
    files : dict
        ``{path: (content, content that it must have)}`` of twin and notebook.
    lost : str or None
        Why the files must not be written.
    """

    name: str
    title: str
    nb: object
    rows: list
    files: dict
    lost: str | None


def chapter(book, name, from_notebook=False):
    """Compute a `Chapter`."""
    path, twin_path = book.notebook_path(name), book.twin_path(name)
    text, content = _book.read(twin_path), _book.read(path)
    if not text and not content:
        raise BookError(f"no chapter {name}: no {book.where(twin_path)}")
    twin = _book.twin_read(text, path) if text else None
    stored = _book.normalize(_book.read_notebook(path)) if content else None
    is_choice = twin and stored
    lost = _book.lost_edit(name, stored, twin, from_notebook) if is_choice else None
    nb = twin
    if stored and (from_notebook or not twin):
        nb = _book.twin_read(_book.twin_text(stored, path), path)
    for cell, where in zip(nb.cells, book.places(name, nb), strict=True):
        if _book.is_managed(cell):
            cell.source = managed_source(book, cell, where)
    code = [cell for cell in nb.cells if cell.cell_type == "code"]
    if code:
        own = [_book.own_source(cell.source) for cell in code]
        code[0].source = with_install(own[0], "\n".join(own))
    texts = [cell for cell in nb.cells if cell.cell_type == "markdown"]
    title = re.search("^# (.*)", "\n".join(cell.source for cell in texts), re.M)[1]
    labels = [x for cell in texts for x in _book.equation_labels(cell.source)]
    rows = [row(book, label) for label in labels if label.startswith("eq-")]
    body = table("Equation", "Function", "Test", rows=rows)
    for cell in texts:
        cell.source = _book.CONCORDANCE.sub(rf"\1\n\n{body}\n\n\2", cell.source)
    new = _book.twin_text(nb, path)
    # the round trip fixes blank lines at the ends of cells
    same = nb is twin and new == text
    nb = _book.normalize(nb) if same else _book.twin_read(new, path)
    nb = _book.keep_outputs(nb, stored)
    nb.metadata[_book.SYNCED] = {"text": _book.own_text(nb)}
    files = {twin_path: (text, new), path: (content, _book.dump_notebook(nb))}
    return Chapter(name, title, nb, rows, files, lost)


def sync(root, names, check=False, from_notebook=False):
    """Compute every derived file and either write it or say how it differs; return the exit status."""
    book, chapters, files, errors = Book(root), [], {}, []
    for name in dict.fromkeys([*book.chapters, *names]):
        wanted = not names or name in names
        try:
            one = chapter(book, name, from_notebook and wanted)
        except BookError as error:
            errors += [str(error)] * wanted
            continue
        chapters.append(one)
        errors += [one.lost] * bool(wanted and one.lost)
        if wanted and (check or not one.lost):
            files |= one.files
    if not errors:  # else a chapter would lose its rows
        pages = {"concordance.md": lambda text: concordance_page(chapters)}
        pages["teaching.md"] = lambda text: with_hours(text, chapters)
        for page, written in pages.items():
            text = _book.read(book.folder / page)
            files[book.folder / page] = text, written(text)
    behind = {path: texts for path, texts in files.items() if texts[0] != texts[1]}
    for path, (old, new) in behind.items():
        if check:
            errors.append(f"{book.where(path)} is not what sync writes (make sync)")
            lines = ([line[:120] for line in text.splitlines()] for text in (old, new))
            print(
                *difflib.unified_diff(*lines, book.where(path), lineterm=""), sep="\n"
            )
        else:
            _book.write(path, new)
            print(f"wrote {book.where(path)}")
    for error in errors:
        print(f"error: {error}", file=sys.stderr)
    return int(bool(errors))


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    for flag in ("--check", "--from-notebook"):
        parser.add_argument(flag, action="store_true")
    parser.add_argument("--root", type=Path, default=ROOT, help="the book's folder")
    return sync(**vars(parser.parse_args(argv)))


if __name__ == "__main__":
    sys.exit(main())
