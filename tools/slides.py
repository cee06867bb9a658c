"""Make slides for a course from the decks in ``book/slides/`` and the stored figures of the chapters.

    tools/slides.py [NAME ...]

A deck ``book/slides/NAME.md`` is markdown: a line ``---`` begins a slide, what follows a line ``Notes:`` is for the
speaker, ``![](fig-intro-heart)`` is the figure of that name of a chapter (``{height=500}`` behind it makes it larger),
and links lead to chapters, ``[words](mean_map.ipynb#thm-mean-map-stability)``. ``slides/NAME.html`` in the folder of
the site is a page of slides by reveal.js that opens from a file.
"""

import html
import re
import shutil
import sys
from pathlib import Path
from typing import NamedTuple

import _book
from _book import ROOT, Book, BookError
from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin

FOLDER = ROOT / "book/slides"
SITE = ROOT / "_build/html"
TEMPLATE = Path(__file__).with_name("slides_template")
FIGURE = re.compile(r"!\[\]\(([\w-]+)\)(?:\{height=(\d+)\})?")
LINK = re.compile(r"\]\((\w+)\.(?:ipynb|md)(?:#([\w-]+))?\)")


def show_math(text, options):
    """The formula between the delimiters of MathJax."""
    text = html.escape(text)
    return rf"\[{text}\]" if options["display_mode"] else rf"\({text}\)"


MARKDOWN = MarkdownIt("commonmark").enable("table")
MARKDOWN.use(dollarmath_plugin, renderer=show_math, double_inline=True)


class Slide(NamedTuple):
    """What a slide shows, and what the speaker sees; both are markdown."""

    shown: str
    notes: str


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
    """The slides of a deck, with the pictures and the addresses of its figures and links."""
    pictures = figures(book)

    def show(match):
        if match[1] not in pictures:
            raise BookError(f"{name}: no chapter has a stored figure {match[1]}")
        alt, png = pictures[match[1]]
        style = f' style="height: {match[2]}px"' if match[2] else ""
        alt = html.escape(alt)
        return f'<img{style} src="data:image/png;base64,{png}" alt="{alt}">'

    def follow(match):
        page, label = match.groups()
        file = book.folder / f"{page}.md"
        file = file if file.exists() else book.twin_path(page)
        if not file.exists() or (label or "") not in _book.read(file):
            raise BookError(f"{name}: the book has no {match[0][2:-1]}")
        return f"](../book/{page}.html{'#' * bool(label)}{label or ''})"

    text = LINK.sub(follow, _book.read(FOLDER / f"{name}.md"))
    for slide in text.split("\n---\n"):
        shown, _, notes = slide.partition("\nNotes:")
        yield Slide(FIGURE.sub(show, shown), notes)


def page(slides):
    """The deck as one page of reveal.js."""
    sections = []
    for shown, notes in slides:
        aside = notes and f'<aside class="notes">{MARKDOWN.render(notes)}</aside>\n'
        sections.append(f"<section>\n{MARKDOWN.render(shown)}{aside}</section>")
    return _book.read(TEMPLATE / "deck.html").format(
        title=html.escape(slides[0].shown.partition("\n")[0].removeprefix("# ")),
        css=_book.read(TEMPLATE / "slides.css"),
        slides="\n".join(sections),
    )


def main(names):
    book, static = Book(), ROOT / "book/_static"
    for part in ("reveal", "mathjax"):  # where no site is built yet
        shutil.copytree(static / part, SITE / "_static" / part, dirs_exist_ok=True)
    for name in names or sorted(path.stem for path in FOLDER.glob("*.md")):
        _book.write(SITE / f"slides/{name}.html", page([*deck(book, name)]))
        print(f"_build/html/slides/{name}.html", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
