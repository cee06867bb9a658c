"""Print the one-page build of the book as a PDF with headless Chromium: no LaTeX needed.

jupyter-book build . --builder singlehtml && python tools/print_pdf.py --chromium chromium
"""

import argparse
import re
import subprocess
import tempfile
import tomllib

from check_site import FLAGS, NO_OTHER_HOST, ROOT, serve

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
DOCUMENTATION = PROJECT["urls"]["Documentation"]
SITE, TARGET = ROOT / "_build" / "singlehtml", ROOT / "_build" / "llpbook.pdf"
PRE = '<div class="highlight"><pre>{}</pre></div>'
LEAD_IN = r"<p>(?=[^<]*(?:<(?!/?p[ >])[^<]*)*:</p>)"  # a paragraph: "so:"
WHOLE, PART = 24, 8  # lines of a block: a longer one may end after every eighth


def links_within(text: str, name: str) -> str:
    """The page with links to its parts that hold under any name; those to an index go to the site."""
    first = re.search(r'<section [^>]*?id="([^"]+)"', text)[1]
    text = text.replace(f'href="{name}#', 'href="#')
    text = text.replace(
        f'href="#document-{name.removesuffix(".html")}"', f'href="#{first}"'
    )
    text = re.sub(r'href="([\w-]+index\.html)"', rf'href="{DOCUMENTATION}\1"', text)
    lost = {*re.findall(r'href="#([^"]+)"', text)} - {
        *re.findall(r'\sid="([^"]+)"', text)
    }
    if lost:
        raise SystemExit(f"links inside the book that lead nowhere: {sorted(lost)}")
    return text


def long_blocks_in_parts(text: str) -> str:
    """The page with long code in parts, between which a page may end: a style sheet counts no lines."""

    def cut(block):
        lines = block[1].rstrip("\n").split("\n")
        if len(lines) <= WHOLE:
            return block[0]
        starts = range(0, len(lines) - PART // 2, PART)
        ends = [*starts[1:], len(lines)]
        parts = ["\n".join(lines[a:b]) for a, b in zip(starts, ends, strict=True)]
        # a newline after <pre> is not part of its text
        return "".join(PRE.format(f"\n{part}\n") for part in parts)

    return re.sub(PRE.format("(.*?)"), cut, text, flags=re.DOTALL)


def print_pdf(chromium: str) -> None:
    """Serve the build to a headless Chromium, let MathJax finish, and write the PDF."""
    pages = [page for page in SITE.rglob("*.html") if page.name != "print.html"]
    if not pages:
        raise SystemExit(f"no page under {SITE}: use `make pdf`")
    # The book is the largest page, and lies in book/ with references that hold at the root of the site.
    book = max(pages, key=lambda page: page.stat().st_size)
    name = book.relative_to(SITE).as_posix()
    text = links_within(book.read_text("utf-8"), name)
    text = re.sub(LEAD_IN, '<p class="lead-in">', text)
    (SITE / "print.html").write_text(long_blocks_in_parts(text), "utf-8")
    TARGET.unlink(missing_ok=True)  # else an old file would pass for a new one
    server, home, missing = serve(SITE)
    with tempfile.TemporaryDirectory() as profile:
        command = [chromium, *FLAGS, NO_OTHER_HOST, f"--user-data-dir={profile}"]
        command += ["--virtual-time-budget=60000", "--no-pdf-header-footer"]
        command += ["--generate-pdf-document-outline", f"--print-to-pdf={TARGET}"]
        command += [f"{home}/print.html"]
        run = subprocess.run(command, capture_output=True, text=True, timeout=1800)
    server.shutdown()
    if run.returncode or not TARGET.exists():
        raise SystemExit(f"{chromium} wrote no PDF:\n{run.stderr}")
    # one page has no search
    missing = [line for line in missing if "searchindex.js" not in line]
    if missing:
        raise SystemExit("the page lacks files:\n" + "\n".join(missing))


def main(argv=None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--chromium", default="chromium")
    print_pdf(parser.parse_args(argv).chromium)
    pages = len(re.findall(rb"/Type\s*/Page\b", TARGET.read_bytes()))
    print(f"{TARGET}: {TARGET.stat().st_size / 1e6:.1f} MB, {pages} pages")


if __name__ == "__main__":
    main()
