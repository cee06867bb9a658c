"""Make slides for a course from the decks in ``book/slides/`` and the stored figures of the chapters.

    tools/slides.py [NAME ...]

A deck ``book/slides/NAME.md`` is markdown: a line ``---`` begins a slide, what follows a line ``Notes:`` is for the
speaker, ``![](fig-intro-heart)`` is the figure of that name of a chapter (``{height=500}`` behind it makes it larger),
and links lead to chapters, ``[words](mean_map.ipynb#thm-mean-map-stability)``. ``_build/slides/NAME.html`` is what
nbconvert makes of it: slides of reveal.js, which lies beside them with MathJax, so that the folder opens from a file.
"""

import re
import shutil
import sys
from pathlib import Path

import _book
import nbformat
from _book import ROOT, Book, BookError

FOLDER = ROOT / "book/slides"
TARGET = ROOT / "_build/slides"
SITE = f"{_book.PROJECT['urls']['Documentation']}book/"
FIGURE = re.compile(r"!\[\]\(([\w-]+)\)(?:\{height=(\d+)\})?")
LINK = re.compile(r"\]\((\w+)\.(?:ipynb|md)(?:#([\w-]+))?\)")


def figures(book):
    """``{name: (alternative text, picture)}`` of every stored figure with a name."""
    return {
        cell.metadata["mystnb"]["figure"]["name"]: (
            cell.metadata["mystnb"]["image"]["alt"],
            output["data"]["image/png"].replace("\n", ""),
        )
        for _, cell in book.code
        for output in cell.outputs
        if "figure" in cell.metadata.get("mystnb", {})
        and "image/png" in output.get("data", {})
    }


def deck(book, name):
    """The notebook of a deck, with the slide types that Jupyter and nbconvert know."""
    pictures, cells = figures(book), []

    def show(match):
        if match[1] not in pictures:
            raise BookError(f"{name}: no chapter has a stored figure {match[1]}")
        alt, png = pictures[match[1]]
        style = f' style="height: {match[2]}px"' if match[2] else ""
        return f'<img{style} src="data:image/png;base64,{png}" alt="{alt}">'

    def follow(match):
        page, label = match.groups()
        file = book.folder / f"{page}.md"
        file = file if file.exists() else book.twin_path(page)
        if not file.exists() or (label or "") not in _book.read(file):
            raise BookError(f"{name}: the book has no {match[0][2:-1]}")
        return f"]({SITE}{page}.html{'#' * bool(label)}{label or ''})"

    text = _book.read(FOLDER / f"{name}.md")
    for slide in text.split("\n---\n"):
        shown, *notes = LINK.sub(follow, slide).split("\nNotes:")
        for kind, part in [
            ("slide", FIGURE.sub(show, shown)),
            *[("notes", n) for n in notes],
        ]:
            cell = nbformat.v4.new_markdown_cell(
                part.strip(), id=f"{kind}-{len(cells)}"
            )
            cell.metadata["slideshow"] = {"slide_type": kind}
            cells.append(cell)
    title = text.partition("\n")[0].removeprefix("# ")
    return nbformat.v4.new_notebook(
        cells=cells, metadata={**_book.METADATA, "title": title}
    )


def html(nb):
    """The deck as one page of reveal.js, by nbconvert, which comes with JupyterLab."""
    from nbconvert.exporters import SlidesExporter

    exporter = SlidesExporter(
        extra_template_basedirs=[str(Path(__file__).parent / "slides_template")],
        template_name="llpbook",
        exclude_anchor_links=True,
        reveal_url_prefix="reveal",
        reveal_theme="serif",
        reveal_transition="none",
        reveal_number="c/t",
        reveal_width="1180",
        reveal_height="700",
        mathjax_url="mathjax/tex-mml-chtml.js",
    )
    return exporter.from_notebook_node(nb)[0]


def main(names):
    book = Book()
    for part in ("reveal", "mathjax"):
        source = ROOT / "book/_static" / part
        shutil.copytree(source, TARGET / part, dirs_exist_ok=True)
    for name in names or sorted(path.stem for path in FOLDER.glob("*.md")):
        _book.write(TARGET / f"{name}.html", html(deck(book, name)))
        print(f"_build/slides/{name}.html", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
