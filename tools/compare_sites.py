"""Compare two builds of the book page by page: text, links and figures.

tools/compare_sites.py _build/html _build/sphinx/html     # `make sphinx`

A difference is listed once, with how often it stands and the first of its pages. A page, a link or a figure that is
lost, new or another is an error; other words are not.
"""

import difflib
import re
import sys
from collections import defaultdict
from pathlib import Path

from bs4 import BeautifulSoup

# The sign that links to a heading, and what readers do not see as text.
SPARE = ".headerlink, script, style"


def contents(page):
    """Words, links and figures of a page and of the list of pages beside it."""
    soup = BeautifulSoup(page.read_bytes(), "html.parser")
    for part in soup.select(SPARE):
        part.decompose()
    parts = soup.select("article, nav.bd-links")
    links = [a["href"] for part in parts for a in part.select("a[href]")]
    images = [image for part in parts for image in part.select("img")]
    figures = [f"{i['src']} {i.get('alt', '')}".strip() for i in images]
    text = " ".join(part.get_text(" ") for part in parts)
    words = re.findall(r"\w+|[^\w\s]", text)
    return {"text": words, "link": links, "figure": figures}


def changes(old, new):
    """Yield ``(before, after)`` for each place where two lists differ."""
    match = difflib.SequenceMatcher(None, old, new)  # skips frequent words
    for what, a, b, c, d in match.get_opcodes():
        if what != "equal":
            yield old[a:b], new[c:d]


def differences(before, after):
    """The pages that have a difference, for each kind of difference."""
    found = defaultdict(list)
    pages = [
        {p.relative_to(s) for p in s.glob("book/**/*.html")} for s in (before, after)
    ]
    for name in sorted(pages[0] | pages[1]):
        if name not in pages[0] & pages[1]:
            found["page", str(name), "new" if name in pages[1] else "lost"].append(name)
            continue
        old, new = contents(before / name), contents(after / name)
        for kind in old:
            for a, b in changes(old[kind], new[kind]):
                shown = [" ".join(part)[:160] for part in (a, b)]
                found[kind, *shown].append(name)
    return len(pages[0]), found


if __name__ == "__main__":
    count, found = differences(*map(Path, sys.argv[1:]))
    for (kind, old, new), pages in sorted(found.items(), key=lambda x: -len(x[1])):
        print(f"{kind}, {len(pages)} places, as in {pages[0]}:\n  - {old}\n  + {new}")
    print(f"{count} pages, {len(found)} kinds of difference")
    sys.exit(any(kind != "text" for kind, _, _ in found))
