"""Make slides for a course from the decks in ``book/slides/`` and the pictures of the chapters.

    tools/slides.py [NAME ...] [--browser chromium]

A deck ``book/slides/NAME.md`` is markdown: a line ``---`` begins a slide, what follows a line ``Notes:`` is for the
speaker, ``![](fig-intro-heart)`` is the stored figure of that name of a chapter (``{height=500}`` behind it makes it
larger), and ``[words](mean_map.ipynb)`` or ``[words](#thm-mean-map-stability)`` becomes a link to the site. A name that
the book does not have is an error.

``_build/slides/NAME.ipynb`` is the deck as a notebook, each cell with the slide type that Jupyter knows, and
``_build/slides/NAME.html`` is what nbconvert makes of it: slides of reveal.js, which with MathJax lies beside them. So
the folder asks no other host for anything, and opens from a file. With ``--browser`` each deck is opened, and a slide
that does not fit its page is an error.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import _book
import check_site
import nbformat
from _book import ROOT, Book, BookError

FOLDER = "book/slides"
TEMPLATES = Path(__file__).parent / "slides_template"
WIDTH, HEIGHT = "1180", "700"
ROOM = 650  # of the height, above the arrows
FIGURE = re.compile(r"^!\[\]\(([\w-]+)\)(?:\{height=(\d+)\})?$", re.MULTILINE)
LINK = re.compile(r"(\[[^]]*\])\((?:(\w+)\.(?:ipynb|md)|#([\w-]+))\)")
LABEL = r"^(?:\({0}\)=|:label: {0}|\$\$ \({0}\)|\s+name: {0})$"

# Writes the lowest edge of each slide into the page.
MEASURE = """<script>
MathJax.startup.promise.then(() => setTimeout(() => {
  const low = [...document.querySelectorAll(".slides > section")].map((section, i) => {
    Reveal.slide(i);
    const parts = [...section.querySelectorAll("h2, p, li, img, pre, table, blockquote")];
    const edges = parts.filter((e) => !e.closest("aside")).map((e) => e.getBoundingClientRect().bottom);
    return Math.round((Math.max(0, ...edges) - section.getBoundingClientRect().top) / Reveal.getScale());
  });
  document.body.setAttribute("data-low", low.join(" "));
}, 500));
</script>"""


def figures(book):
    """``{name: (chapter, picture, alternative text)}`` of every stored figure with a name."""
    found = {}
    for chapter, _, cell in book.cells:
        shown = cell.metadata.get("mystnb", {})
        name = shown.get("figure", {}).get("name")
        for output in cell.get("outputs", []) if name else []:
            if "image/png" in output.get("data", {}):
                alt = shown.get("image", {}).get("alt", "")
                found[name] = chapter, output.data["image/png"], alt
    return found


def site_address(book):
    """The address of the site's pages, as ``_config.yml`` states it."""
    found = re.search(r"baseurl: (\S+)", _book.read(book.root / "_config.yml"))
    return f"{found[1]}book/" if found else ""


def follow(text, book, where):
    """The text with each link to a chapter, a page or a label made one to the site."""

    def address(match):
        words, page, label = match.groups()
        if label:
            line = re.compile(LABEL.format(re.escape(label)), re.MULTILINE)
            twins = {n: _book.read(book.twin_path(n)) for n in book.notebooks}
            page = next((n for n, text in twins.items() if line.search(text)), None)
        if page not in book.notebooks and f"book/{page}.md" not in book.pages:
            raise BookError(f"{where}: the book has no {label or page}")
        return (
            f"{words}({site_address(book)}{page}.html{'#' * bool(label)}{label or ''})"
        )

    return LINK.sub(address, text)


def slide_cells(text, pictures, where):
    """The cells of one slide: markdown, code cells that hold a figure as their output, and the speaker's notes."""
    shown, _, notes = text.partition("\nNotes:")
    first, *rest = FIGURE.split(shown)
    parts = [(None, None, first), *zip(rest[::3], rest[1::3], rest[2::3], strict=True)]
    for name, height, words in parts:
        if name is not None and name not in pictures:
            raise BookError(f"{where}: no chapter has a stored figure {name}")
        if name is not None:
            chapter, png, alt = pictures[name]
            said = {"alt": alt, **({"height": int(height)} if height else {})}
            image = nbformat.v4.new_output(
                "display_data", {"image/png": png}, metadata={"image/png": said}
            )
            source = f"# {name} of book/{chapter}.ipynb"
            yield nbformat.v4.new_code_cell(source, outputs=[image])
        if words.strip():
            yield nbformat.v4.new_markdown_cell(words.strip())
    if notes.strip():
        cell = nbformat.v4.new_markdown_cell(notes.strip())
        cell.metadata["slideshow"] = {"slide_type": "notes"}
        yield cell


def deck(book, name):
    """The notebook of a deck, with the slide types that Jupyter and nbconvert know."""
    path = book.root / FOLDER / f"{name}.md"
    text, pictures, cells = _book.read(path), figures(book), []
    if not text:
        raise BookError(f"no deck {FOLDER}/{name}.md")
    title = re.search(r"^# (.+)$", text, re.MULTILINE)
    for number, slide in enumerate(re.split(r"^---$", text, flags=re.MULTILINE), 1):
        where = f"{FOLDER}/{name}.md slide {number}"
        new = list(slide_cells(follow(slide, book, where), pictures, where))
        if not new or new[0].metadata.get("slideshow"):
            raise BookError(f"{where}: nothing to show")
        new[0].metadata["slideshow"] = {"slide_type": "slide"}
        cells += new
    for i, cell in enumerate(cells):
        cell["id"] = f"{name}-{i}".replace("_", "-")[:64]
    metadata = {**_book.METADATA, "title": title[1] if title else name}
    return nbformat.v4.new_notebook(cells=cells, metadata=metadata)


def html(nb, name):
    """The deck as one page of reveal.js, by nbconvert."""
    try:
        from nbconvert.exporters import SlidesExporter
    except ModuleNotFoundError as error:
        raise BookError("slides need nbconvert, which make slides installs") from error
    exporter = SlidesExporter(
        extra_template_basedirs=[str(TEMPLATES)],
        template_name="llpbook",
        exclude_input=True,
        exclude_input_prompt=True,
        exclude_output_prompt=True,
        exclude_anchor_links=True,
        reveal_url_prefix="reveal",
        reveal_theme="serif",
        reveal_transition="none",
        reveal_number="c/t",
        reveal_width=WIDTH,
        reveal_height=HEIGHT,
        mathjax_url="mathjax/tex-mml-chtml.js",
    )
    return exporter.from_notebook_node(nb, {"metadata": {"name": name}})[0]


def too_tall(browser, folder, name):
    """``(slide, height)`` of the slides of a deck that do not fit, in a headless browser."""
    with tempfile.TemporaryDirectory() as tmp:
        page = folder / f"_{name}.html"
        page.write_text(_book.read(folder / f"{name}.html") + MEASURE, "utf-8")
        command = [browser, *check_site.FLAGS, check_site.NO_OTHER_HOST, "--dump-dom"]
        command += ["--window-size=1300,800", "--virtual-time-budget=20000"]
        command += [f"--user-data-dir={tmp}", page.resolve().as_uri()]
        run = subprocess.run(command, capture_output=True, text=True, timeout=120)
        page.unlink()
    low = re.search(r'data-low="([\d ]+)"', run.stdout)
    if not low:
        raise BookError(f"{browser} does not open {name}.html: {run.stderr[-200:]}")
    heights = map(int, low[1].split())
    return [(n, height) for n, height in enumerate(heights, 1) if height > ROOM]


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--browser", help="open the decks, see whether slides fit")
    parser.add_argument("--root", type=Path, default=ROOT, help="the book's folder")
    args = parser.parse_args(argv)
    book = Book(args.root)
    folder = book.root / "_build/slides"
    decks = sorted(path.stem for path in (book.root / FOLDER).glob("*.md"))
    wrong = []
    for part in ("reveal", "mathjax"):
        source = ROOT / "book/_static" / part
        shutil.copytree(source, folder / part, dirs_exist_ok=True)
    try:
        for name in args.names or decks:
            nb = deck(book, name)
            _book.write(folder / f"{name}.ipynb", _book.dump_notebook(nb))
            _book.write(folder / f"{name}.html", html(nb, name))
            print(f"_build/slides/{name}.html", flush=True)
            for n, height in (
                too_tall(args.browser, folder, name) if args.browser else ()
            ):
                wrong.append(f"{name} slide {n}: {height} high, above {ROOM}")
    except BookError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    for path, address in check_site.scan(folder):
        wrong.append(f"_build/slides/{path} asks for {address}")
    for message in wrong:
        print(f"error: {message}", file=sys.stderr)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
