"""Check the built site: no page asks another host for anything, each link inside leads somewhere, and all can use it.

    tools/check_site.py [FOLDER]     # _build/html

What a browser fetches by itself may not lie elsewhere: ``src``, ``srcset``, style sheets, icons and preloads,
``@import`` and ``url()``, and addresses handed to the loading functions of scripts. Links to follow may lead anywhere,
and inside of the site to a part that is there. A page must not have a picture without words, or one that cannot scroll
on a narrow screen; a column of a table without a name; or two parts with one name.
"""

import re
import sys
from collections import Counter
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parents[1]
ELSEWHERE = r"(?:[a-z][a-z0-9+.-]*:)?//[^\"'\s)>]+"
# what a link element only states
STATED = r"(?:canonical|alternate|search|index|next|prev|license|author|help)"
JS_CALL = r"(?:fetch|import|importScripts|getScript|loadScript|load|Worker|WebSocket|EventSource|sendBeacon)"
FETCHED = {
    "html": re.compile(
        rf"<(?!a\b|area\b|link\b[^>]*\brel=\"{STATED})\w[^>]*?\s(?:src|srcset|poster|data|href|xlink:href)="
        rf"\"(?:[^\"]*,)?\s*({ELSEWHERE})",
        re.IGNORECASE,
    ),
    "css": re.compile(rf"(?:url\(\s*[\"']?|@import\s+[\"'])({ELSEWHERE})", re.I),
    "js": re.compile(
        rf"(?:\b{JS_CALL}\(\s*|\bimport\s+|\bfrom\s+|\.open\(\s*[\"'][A-Z]+[\"']\s*,\s*|\.(?:src|href)\s*=\s*)"
        rf"[\"'`]({ELSEWHERE})"
    ),
}
INSIDE = re.compile(r"<(style|script)\b[^>]*>(.*?)</\1>", re.DOTALL | re.IGNORECASE)
IMAGE = r"<img(?=[^>]*_images/)[^>]*>"
UNFIT = {
    "a picture without words": re.compile(r'<img(?![^>]* alt="[^"])[^>]*>'),
    "a picture that cannot scroll": re.compile(rf'(?<!container">){IMAGE}'),
    "a column without a name": re.compile(r"<th\b[^>]*>(?:\s|</?p>)*</th>"),
}
PART = re.compile(r'\s(?:id|name)="([^"]*)"')


def fetched(text, kind):
    """The addresses of other hosts that a browser would ask by itself for a page, a style sheet or a script."""
    if kind in ("css", "js"):
        return FETCHED[kind].findall(text)
    found = [
        a
        for tag, inner in INSIDE.findall(text)
        for a in fetched(inner, "css" if tag == "style" else "js")
    ]
    text = INSIDE.sub(lambda match: match[0].partition(">")[0] + ">", text)
    styles = " ".join(re.findall(r'style="([^"]*)"', text))
    return found + FETCHED["html"].findall(text) + fetched(styles, "css")


def dead_links(site, pages):
    """Yield ``(page, link)`` for each link inside of the site that leads to no file, or to no part of a page."""
    parts = {path: {*PART.findall(text)} for path, text in pages.items()}
    for path, text in pages.items():
        for link in set(re.findall(r'<a\b[^>]*?href="([^"]*)"', text)):
            if re.match(r"[a-z]+:|//|#?$", link):
                continue
            base = re.search(r'<base href="([^"]*)"', text)  # of the front door
            home = path.parent / base[1] if base else path
            file, _, part = unquote(re.sub(r"\?[^#]*", "", link)).partition("#")
            goal = (home.parent / file).resolve() if file else home
            there = goal in parts if part else goal.exists()
            if not there or (part and part not in parts[goal]):
                yield path, link


def findings(site):
    """Yield what is wrong with a site, one line each."""
    kinds = {".html": "html", ".svg": "html", ".css": "css", ".js": "js"}
    pages = {}
    for path in sorted(site.resolve().rglob("*")):
        # JupyterLite is no page of the book; tools/check_lite.py looks at what it asks
        own = path.relative_to(site.resolve()).parts[0] != "lite"
        if own and path.suffix in kinds:
            name, text = (
                path.relative_to(site.resolve()),
                path.read_text("utf-8", "replace"),
            )
            for address in fetched(text, kinds[path.suffix]):
                yield f"{name}: refers to {address}"
            if path.suffix == ".html" and name.parts[0] != "_static":
                pages[path] = text
                yield from (
                    f"{name}: {what}"
                    for what, pattern in UNFIT.items()
                    if pattern.search(text)
                )
                ids = Counter(re.findall(r'\sid="([^"]*)"', text))
                yield from (
                    f"{name}: {n} parts named {part}"
                    for part, n in ids.items()
                    if n > 1
                )
    if not pages:
        yield f"no page under {site}: run `make book` first"
    for path, link in dead_links(site, pages):
        yield f"{path.relative_to(site.resolve())}: a link leads nowhere: {link}"


if __name__ == "__main__":
    found = list(findings(Path(*sys.argv[1:] or [ROOT / "_build/html"])))
    print(
        "\n".join(found)
        or "the site asks no other host for anything, and its links and parts are sound"
    )
    sys.exit(bool(found))
