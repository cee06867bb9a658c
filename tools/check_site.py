"""Check that the built site stands on its own: no page may ask another host for anything.

    python tools/check_site.py          # scan the files of _build/html

A page also must not have a picture without words, or one that cannot scroll on a narrow screen; a column of a table
without a name; or two parts with one name.

The scan reads what a browser would fetch by itself: ``src``, ``srcset``, style sheets, icons and preloads, ``@import``
and ``url()``, and absolute addresses handed to the loading functions of scripts. Links to follow (``<a href>``)
may lead anywhere.
"""

import argparse
import collections
import functools
import html.parser
import http.server
import pathlib
import re
import sys
import threading

ROOT = pathlib.Path(__file__).resolve().parents[1]
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update",
)  # fmt: skip
NO_OTHER_HOST = "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1"
OTHER_HOST = re.compile(r"\s*(?:[a-z][a-z0-9+.-]*:)?//", re.I)
LOADED_RELS = {"stylesheet", "preload", "prefetch", "modulepreload", "preconnect"}
LOADED_RELS |= {"dns-prefetch", "icon", "apple-touch-icon", "manifest"}
LOADED = ("src", "srcset", "poster", "data", "href", "xlink:href")  # attributes
CSS_REFERENCE = re.compile(r"""(?:url\(\s*["']?|@import\s+["'])([^"')\s]+)""", re.I)
JS_CALL = r"(?:fetch|import|importScripts|getScript|loadScript|load|Worker|WebSocket|EventSource|sendBeacon)"
JS_REFERENCE = re.compile(
    rf"""(?:\b{JS_CALL}\(\s*|\bimport\s+|\bfrom\s+|\.open\(\s*["'][A-Z]+["']\s*,\s*|\.(?:src|href)\s*=\s*)"""
    r"""["'`]((?:https?:|wss?:)?//[^"'`]+)"""
)


def is_other_host(address: str) -> bool:
    """Whether a reference leaves the site (``https://x``, ``//x``), not merely the page."""
    return bool(OTHER_HOST.match(address)) and not address.strip().startswith("data:")


def scan_css(text: str) -> list[str]:
    return [url for url in CSS_REFERENCE.findall(text) if is_other_host(url)]


def scan_js(text: str) -> list[str]:
    return JS_REFERENCE.findall(text)


class PageScanner(html.parser.HTMLParser):
    """Collects, in ``found``, the references to other hosts that a browser would fetch by itself."""

    def __init__(self):
        super().__init__()
        self.found: list[str] = []
        self._inside = None

    def handle_starttag(self, tag, attrs):
        attrs = {name: value or "" for name, value in attrs}
        rels = set(attrs.get("rel", "").lower().split())
        if tag not in ("a", "area") and (tag != "link" or rels & LOADED_RELS):
            parts = ",".join(attrs.get(name, "") for name in LOADED).split(",")
            self.found += [url for url in map(str.strip, parts) if is_other_host(url)]
        self.found += scan_css(attrs.get("style", ""))
        self._inside = tag if tag in ("style", "script") else None

    def handle_endtag(self, tag):
        self._inside = None

    def handle_data(self, data):
        if self._inside:
            self.found += scan_css(data) if self._inside == "style" else scan_js(data)


def scan_html(text: str) -> list[str]:
    scanner = PageScanner()
    scanner.feed(text)
    return scanner.found


def scan(site: pathlib.Path) -> list[tuple[str, str]]:
    """Every (file, address) with which the files under `site` would ask another host."""
    readers = {".html": scan_html, ".svg": scan_html, ".css": scan_css, ".js": scan_js}
    return [
        (str(path.relative_to(site)), url)
        for path in sorted(site.rglob("*"))
        if path.suffix in readers
        for url in readers[path.suffix](path.read_text("utf-8", errors="replace"))
    ]


IMAGE = r"<img(?=[^>]*_images/)[^>]*>"
UNFIT = {
    "a picture without words": re.compile(r'<img(?![^>]* alt="[^"])[^>]*>'),
    "a picture that cannot scroll": re.compile(rf'(?<!container">){IMAGE}'),
    "a column without a name": re.compile(r"<th\b[^>]*>(?:\s|</?p>)*</th>"),
}


def unfit(text: str) -> list[str]:
    """What a page has that some readers cannot use."""
    ids = collections.Counter(re.findall(r'\sid="([^"]*)"', text))
    return [what for what, pattern in UNFIT.items() if pattern.search(text)] + [
        f"{n} parts named {name}" for name, n in ids.items() if n > 1
    ]


class _Handler(http.server.SimpleHTTPRequestHandler):
    missing: list[str]  # set per server, below

    def send_error(self, code, message=None, explain=None):
        # browsers ask for this one by habit, whatever the page says
        if self.path != "/favicon.ico":
            self.missing.append(f"{code} {self.path}")
        super().send_error(code, message, explain)

    def log_message(self, *args):
        pass


def serve(site: pathlib.Path):
    """Serve `site` on a free port of this computer; return (server, address, list that collects missing files)."""
    missing: list[str] = []
    handler = type("Handler", (_Handler,), {"missing": missing})
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(handler, directory=str(site))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, f"http://127.0.0.1:{server.server_address[1]}", missing


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    site = ROOT / "_build" / "html"
    parser.add_argument("site", nargs="?", type=pathlib.Path, default=site)
    args = parser.parse_args(argv)
    if not any(args.site.rglob("*.html")):
        parser.error(f"no page under {args.site}: run `make book` first")
    wrong = [f"{path}: refers to {url}" for path, url in scan(args.site)]
    for path in sorted(args.site.rglob("*.html")):
        page = path.relative_to(args.site).as_posix()
        if not page.startswith("_static/"):
            wrong += [f"{page}: {what}" for what in unfit(path.read_text("utf-8"))]
    print(
        "\n".join(wrong)
        or "the site asks no other host for anything, and all its parts have names"
    )
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
