"""Draw which chapter needs which, from the table of ``book/teaching.md``: ``book/_static/prerequisites.svg``.

tools/course_map.py
"""

import re
import sys
import textwrap

import _book
from _book import ROOT, Book

PICTURE = "book/_static/prerequisites.svg"
WIDTH, HEIGHT, GAP_X, GAP_Y = 140, 56, 32, 10
STYLE = (
    "rect{fill:#fff;stroke:#777;stroke-width:1.5}.road{fill:#dbe9f6}path{fill:none;stroke:#777;stroke-width:1.5}"
    "text{font:14px sans-serif;text-anchor:middle;fill:#111}#head{fill:#777;stroke:none}"
    "svg{background:#fff}"
)


def needs(page):
    """``{chapter: chapters that it needs}``, as the table says."""
    link = r"\[[^]]*\]\((\w+)\.ipynb\)"
    table = page.partition("## How long it takes")[0]
    rows = re.findall(rf"^\| {link} \| ([^|]*)\|", table, re.MULTILINE)
    return {name: re.findall(link, cell) for name, cell in rows}


def draw(wanted, titles, road=()):
    """The SVG: a column holds what stands one step after the one before; chapters of the road are shaded."""
    depth = {}
    for name, before in wanted.items():  # a chapter comes after what it needs
        depth[name] = 1 + max((depth[other] for other in before), default=-1)
    columns = [[n for n in wanted if depth[n] == d] for d in sorted({*depth.values()})]
    tall = max(map(len, columns)) * (HEIGHT + GAP_Y)
    place, boxes, arrows = {}, [], []
    for x, column in enumerate(columns):
        top = (tall - len(column) * (HEIGHT + GAP_Y) + GAP_Y) / 2
        for y, name in enumerate(column):
            left, up = 4 + x * (WIDTH + GAP_X), top + y * (HEIGHT + GAP_Y)
            place[name] = left, up + HEIGHT / 2
            size = f'width="{WIDTH}" height="{HEIGHT}" rx="6"'
            kind = ' class="road"' if name in road else ""
            boxes.append(f'<rect x="{left}" y="{up:g}" {size}{kind}/>')
            lines = textwrap.wrap(titles[name], 16)
            for n, line in enumerate(lines):
                down = up + HEIGHT / 2 + 5 + 17 * (n - (len(lines) - 1) / 2)
                text = f'<text x="{left + WIDTH / 2:g}" y="{down:g}">{line}</text>'
                boxes.append(text)
    for name, before in wanted.items():
        for other in before:
            (x, y), (end, down) = place[other], place[name]
            start, half = x + WIDTH, (x + WIDTH + end) / 2
            curve = (
                f"M{start},{y:g} C{half:g},{y:g} {half:g},{down:g} {end - 8},{down:g}"
            )
            arrows.append(f'<path d="{curve}" marker-end="url(#arrow)"/>')
    wide = len(columns) * (WIDTH + GAP_X) - GAP_X + 8
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {tall}" width="{wide}" height="{tall}">'
        f"<style>{STYLE}</style>"
        '<defs><marker id="arrow" viewBox="0 0 8 8" refX="1" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path id="head" d="M0,0 L8,4 L0,8 z"/></marker></defs>\n'
        + "\n".join(arrows + boxes)  # an arrow passes behind the boxes on its way
        + "\n</svg>\n"
    )


def picture(book):
    """The text of the file."""
    titles = {}
    for name in book.notebooks:
        title = re.search(
            r"^# (.+)$", _book.read(book.twin_path(name)).split("```")[0], re.MULTILINE
        )[1]
        titles[name] = re.match(r"[^:?,]+\??", title)[0]
    wanted = needs(book.pages["book/teaching.md"])
    return draw(wanted, titles, book.parts.get("The road", []))


if __name__ == "__main__":
    _book.write(ROOT / PICTURE, picture(Book()))
    sys.exit()
