"""Print the one-page build of the book as a PDF with headless Chromium: no LaTeX needed.

jupyter-book build . --builder singlehtml && python tools/print_pdf.py --chromium chromium
"""

from __future__ import annotations

import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from check_site import FLAGS, NO_OTHER_HOST, ROOT, serve


def find_page(site: pathlib.Path) -> pathlib.Path:
    """The page that holds the book: the largest one (the root page may only forward to it)."""
    pages = [
        page for page in site.rglob("*.html") if page.name != "print.html"
    ]  # made below by an earlier run
    if not pages:
        raise SystemExit(
            f"no page under {site}: run `jupyter-book build . --builder singlehtml` first"
        )
    return max(pages, key=lambda page: page.stat().st_size)


def print_pdf(chromium: str, site: pathlib.Path, target: pathlib.Path) -> None:
    """Serve `site` to a headless Chromium, let MathJax finish, and write `target`."""
    # The builder writes the page into book/, with references that hold at the root of the site.
    page = shutil.copyfile(find_page(site), site / "print.html").name
    target.unlink(missing_ok=True)  # else an old file would pass for a new one
    server, home, missing = serve(site)
    with tempfile.TemporaryDirectory() as profile:
        command = [
            chromium, *FLAGS, NO_OTHER_HOST, f"--user-data-dir={profile}", "--virtual-time-budget=60000",
            "--no-pdf-header-footer", "--generate-pdf-document-outline", f"--print-to-pdf={target.resolve()}",
            f"{home}/{page}",
        ]  # fmt: skip
        run = subprocess.run(command, capture_output=True, text=True, timeout=600)
    server.shutdown()
    if run.returncode or not target.exists():
        raise SystemExit(f"{chromium} wrote no PDF:\n{run.stderr}")
    missing = [
        line for line in missing if "searchindex.js" not in line
    ]  # one page has no search
    if missing:
        raise SystemExit("the page lacks files:\n" + "\n".join(missing))


def count_pages(target: pathlib.Path) -> int:
    return len(re.findall(rb"/Type\s*/Page\b", target.read_bytes()))


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--chromium", default="chromium")
    parser.add_argument(
        "--site", type=pathlib.Path, default=ROOT / "_build" / "singlehtml"
    )
    parser.add_argument(
        "--output", type=pathlib.Path, default=ROOT / "_build" / "llpbook.pdf"
    )
    args = parser.parse_args(argv)
    print_pdf(args.chromium, args.site, args.output)
    print(
        f"{args.output}: {args.output.stat().st_size / 1e6:.1f} MB, {count_pages(args.output)} pages"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
