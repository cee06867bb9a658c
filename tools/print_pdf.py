"""Print the one-page build of the book as a PDF with headless Chromium: no LaTeX needed.

tools/print_pdf.py chromium     # after jupyter-book build . --builder singlehtml
"""

import re
import subprocess
import sys
import tempfile

from _book import PROJECT, ROOT

DOCUMENTATION = PROJECT["urls"]["Documentation"]
SITE, TARGET = ROOT / "_build/singlehtml", ROOT / "_build/llpbook.pdf"
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer"]
FLAGS += ["--generate-pdf-document-outline", "--virtual-time-budget=60000"]
FLAGS += ["--allow-file-access-from-files", "--host-resolver-rules=MAP * ~NOTFOUND"]
LEAD_IN = r"<p>(?=[^<]*(?:<(?!/?p[ >])[^<]*)*:</p>)"  # a paragraph: "so:"


def links_within(text, name):
    """The page with links to its parts that hold under any name; those to an index go to the site."""
    first = re.search(r'<section [^>]*?id="([^"]+)"', text)[1]
    text = text.replace(f'href="{name}#', 'href="#')
    document = f'href="#document-{name.removesuffix(".html")}"'
    text = text.replace(document, f'href="#{first}"')
    text = re.sub(r'href="([\w-]+index\.html)"', rf'href="{DOCUMENTATION}\1"', text)
    ends = {*re.findall(r'\sid="([^"]+)"', text)}
    lost = {*re.findall(r'href="#([^"]+)"', text)} - ends
    if lost:
        raise SystemExit(f"links inside the book that lead nowhere: {sorted(lost)}")
    return text


def print_pdf(chromium):
    """Open the build in a headless Chromium, let MathJax finish, and write the PDF."""
    pages = [page for page in SITE.rglob("*.html") if page.name != "print.html"]
    if not pages:
        raise SystemExit(f"no page under {SITE}: use `make pdf`")
    # The book is the largest page, and lies in book/ with references that hold at the root of the site.
    book = max(pages, key=lambda page: page.stat().st_size)
    text = links_within(book.read_text("utf-8"), book.relative_to(SITE).as_posix())
    text = re.sub(LEAD_IN, '<p class="lead-in">', text)
    (SITE / "print.html").write_text(text, "utf-8")
    TARGET.unlink(missing_ok=True)  # else an old file would pass for a new one
    with tempfile.TemporaryDirectory() as profile:
        command = [chromium, *FLAGS, f"--user-data-dir={profile}"]
        command += [f"--print-to-pdf={TARGET}", (SITE / "print.html").as_uri()]
        run = subprocess.run(command, capture_output=True, text=True, timeout=1800)
    if run.returncode or not TARGET.exists():
        raise SystemExit(f"{chromium} wrote no PDF:\n{run.stderr}")
    pages = len(re.findall(rb"/Type\s*/Page\b", TARGET.read_bytes()))
    print(f"{TARGET}: {TARGET.stat().st_size / 1e6:.1f} MB, {pages} pages")


if __name__ == "__main__":
    print_pdf(*sys.argv[1:])
