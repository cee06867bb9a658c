"""Print the one-page build of the book as a PDF with headless Chromium: no LaTeX needed.

tools/print_pdf.py chromium     # after jupyter-book build . --builder singlehtml
"""

import html
import itertools
import re
import subprocess
import sys
import tempfile

import _book
from _book import PROJECT, ROOT

DOCUMENTATION = PROJECT["urls"]["Documentation"]
SITE, TARGET = ROOT / "_build/singlehtml", ROOT / "_build/llpbook.pdf"
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer"]
FLAGS += ["--generate-pdf-document-outline", "--virtual-time-budget=60000"]
FLAGS += ["--allow-file-access-from-files", "--host-resolver-rules=MAP * ~NOTFOUND"]
# A link of a figure to its own file, which a reader of the PDF does not have.
TO_PICTURE = r'<a class="reference internal image-reference" href="[^"]*">(.*?)</a>'
LEAD_IN = r"<p>(?=[^<]*(?:<(?!/?p[ >])[^<]*)*:</p>)"  # a paragraph: "so:"
TITLE = "Learning from Label Proportions"
AUTHORS = PROJECT["authors"][0]["name"]
EMPTY = 45  # runs of text, about ten lines: of fewer a page is nearly empty
SIZE, DIGIT = 9, 5.0  # points: of the numbers in the contents, and how wide a digit is


def links_within(text, name):
    """The page with links to its parts that hold under any name; those to other pages go to the site."""
    first = re.search(r'<section [^>]*?id="([^"]+)"', text)[1]
    text = text.replace(f'href="{name}#', 'href="#')
    document = f'href="#document-{name.removesuffix(".html")}"'
    text = text.replace(document, f'href="#{first}"')
    other = r'href="(?:\.\./)*((?:slides/\w+|[\w-]+index)\.html)"'
    text = re.sub(other, rf'href="{DOCUMENTATION}\1"', text)
    ends = {*re.findall(r'\sid="([^"]+)"', text)}
    api = rf'href="{DOCUMENTATION}book/api/\2.html"'
    text = re.sub(
        r'href="#((?:document-book/api/|llpbook\.)(\w+)[^"]*)"',
        lambda link: link[0] if link[1] in ends else link.expand(api),
        text,
    )
    lost = {*re.findall(r'href="#([^"]+)"', text)} - ends
    if lost:
        raise SystemExit(f"links inside the book that lead nowhere: {sorted(lost)}")
    return text


# --- the first pages -----------------------------------------------------------------------------------------


def title_page(state):
    """The title, who wrote it, which version this is, and what one may do with it."""
    return f"""
<div id="title-page">
<h1>{TITLE}</h1>
<p>A textbook that runs, and the Python package of the same code</p>
<p>{html.escape(AUTHORS)}</p>
<img src="_static/llpbook-hero.png" alt="">
<p>Version {html.escape(state)}</p>
<p>Read it online, with chapters that run: <a href="{DOCUMENTATION}">{DOCUMENTATION}</a></p>
<p>Text and figures: Creative Commons Attribution 4.0 International (CC BY 4.0). Code: BSD 3-Clause License.
Data sets keep the licenses of their sources.</p>
</div>"""


ENTRY = re.compile(
    r'caption-text">(?P<part>[^<]*)<|toctree-l1\b[^>]*><a [^>]*href="#(?P<to>[^"]*)">(?P<words>.*?)</a>'
)
# Of a section of a chapter, but for those that only link to another.
HEADING = re.compile(r'<h3>((?:(?!</?a).)*)(?=<a class="headerlink")')
# The name of a chapter ends the page before where its title begins the next; one in the title does not.
IN_TITLE = "-title"
CHAPTER = re.compile(
    r'<span id="(document-book/[^"]+)"></span>.*?<h[23][^>]*>', re.DOTALL
)
NAMED = re.compile(r'<h3 id="(heading-\d+)">(.*?)<a class="headerlink"')


def with_names(body):
    """The text with names of its sections: their own, such as "exercises", several chapters share."""
    n = itertools.count(1)
    return HEADING.sub(lambda words: f'<h3 id="heading-{next(n)}">{words[1]}', body)


def sections(body, chapters):
    """``{chapter: links to its sections}``, in the order of the book."""
    goals = "|".join(map(re.escape, chapters))
    parts = re.split(f'<span id="({goals})"></span>', body)
    return {
        chapter: [
            f'<a class="section" href="#{to}">{words}</a>'
            for to, words in NAMED.findall(text)
        ]
        for chapter, text in zip(parts[1::2], parts[2::2], strict=True)
    }


def contents(nav, body):
    """The parts of the theme's list of pages, the chapters and their sections, with room for the numbers of pages."""
    first, words = re.search(
        r'<section [^>]*?id="([^"]+)">\s*<h1>([^<]*)', body
    ).groups()
    within = sections(body, [m["to"] for m in ENTRY.finditer(nav) if m["to"]])
    lines = [f'<a href="#{first}">{words}</a>']
    for m in ENTRY.finditer(nav):
        if m["part"]:
            lines += [f"<h3>{m['part']}</h3>"]
        else:
            goal = m["to"] + IN_TITLE
            lines += [f'<a href="#{goal}">{m["words"]}</a>', *within[m["to"]]]
    return '<div id="contents">\n<h2>Contents</h2>\n' + "\n".join(lines) + "\n</div>"


def with_front_matter(text, state):
    """The page with a title page and the contents where the theme has a list of all pages."""
    begin = text.index('<div id="jb-print-docs-body"')
    end = text.index("</nav>", begin)
    after = text.index('<div id="searchbox">', end)
    body = with_names(text[after:])
    front = title_page(state) + contents(text[begin:end], body)
    body = CHAPTER.sub(rf'\g<0><span id="\1{IN_TITLE}"></span>', body)
    return f'{text[:begin]}<div class="onlyprint">{front}</div>{body}'


def state_of_files():
    """The version and its date."""
    if _book.IS_RELEASED:
        return _book.CHANGES_OF
    day = ["git", "log", "-1", "--format=%cs"]
    day = subprocess.check_output(day, cwd=ROOT, text=True).strip()
    return f"{_book.VERSION}.dev, not yet released (state of {day})"


def entries(page):
    """``(name of its goal, right end, middle of its height)`` of each link of a page of contents."""
    for link in (note.get_object() for note in page.get("/Annots", ())):
        if "/Dest" in link:
            _, bottom, right, top = map(float, link["/Rect"])
            yield link["/Dest"], right, (bottom + top) / 2


def number_contents(pdf):
    """Write at each entry of the contents on which page it begins, which a style sheet cannot know."""
    from pypdf import PageObject
    from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

    face = {"/Type": "/Font", "/Subtype": "/Type1", "/BaseFont": "/Helvetica"}
    face = DictionaryObject({NameObject(k): NameObject(v) for k, v in face.items()})
    fonts = DictionaryObject({NameObject("/F"): face})
    goals = pdf.named_destinations
    first = next(entries(pdf.pages[1]))[0]  # the page behind the contents
    for page in pdf.pages[1 : pdf.get_destination_page_number(goals[first])]:
        lines = []
        for name, right, middle in entries(page):
            number = str(pdf.get_destination_page_number(goals[name]) + 1)
            left = right - DIGIT * len(number)
            lines.append(
                f"BT /F {SIZE} Tf {left} {middle - SIZE / 3} Td ({number}) Tj ET"
            )
        over = PageObject.create_blank_page(None, *page.mediabox[2:])
        over[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
        over[NameObject("/Contents")] = stream = DecodedStreamObject()
        stream.set_data("\n".join(lines).encode())
        page.merge_page(over)


def nearly_empty(pdf):
    """The numbers of the pages with a few lines only and no picture."""
    shown = [page.get_contents().get_data() for page in pdf.pages]
    runs = [len(re.findall(rb"\bT[jJ]\b", data)) for data in shown]
    few = (n for n, n_runs in enumerate(runs, 1) if n_runs < EMPTY)
    return [n for n in few if not re.search(rb"\bDo\b", shown[n - 1])]


def print_page(chromium, page, target):
    """Open the page in a headless Chromium, let MathJax finish, and write the PDF."""
    target.unlink(missing_ok=True)  # else an old file would pass for a new one
    with tempfile.TemporaryDirectory() as profile:
        command = [chromium, *FLAGS, f"--user-data-dir={profile}"]
        command += [f"--print-to-pdf={target}", page.as_uri()]
        run = subprocess.run(command, capture_output=True, text=True, timeout=1800)
    if run.returncode or not target.exists():
        raise SystemExit(f"{chromium} wrote no PDF:\n{run.stderr}")


def main(chromium, site=SITE, target=TARGET):
    from pypdf import PdfWriter

    pages = [page for page in site.rglob("*.html") if page.name != "print.html"]
    if not pages:
        raise SystemExit(f"no page under {site}: use `make pdf`")
    # The book is the largest page, and lies in book/ with references that hold at the root of the site.
    book = max(pages, key=lambda page: page.stat().st_size)
    text = with_front_matter(book.read_text("utf-8"), state_of_files())
    text = links_within(text, book.relative_to(site).as_posix())
    text = re.sub(LEAD_IN, '<p class="lead-in">', text)
    text = re.sub(TO_PICTURE, r"\1", text, flags=re.DOTALL)
    (site / "print.html").write_text(text, "utf-8")
    print_page(chromium, site / "print.html", target)
    pdf = PdfWriter(clone_from=target)
    number_contents(pdf)
    pdf.add_metadata({"/Title": TITLE, "/Author": AUTHORS})
    pdf.write(target)
    print(f"{target}: {target.stat().st_size / 1e6:.1f} MB, {len(pdf.pages)} pages")
    print("nearly empty:", nearly_empty(pdf) or "none")


if __name__ == "__main__":
    main(*sys.argv[1:])
