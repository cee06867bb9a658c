"""Check that the built site stands on its own: no page may ask another host for anything.

    python tools/check_site.py                          # scan the files of _build/html
    python tools/check_site.py --browser chromium       # and open every page, watching the network

The scan reads what a browser would fetch by itself: ``src``, ``srcset``, style sheets, icons and preloads, ``@import``
and ``url()``, and absolute addresses handed to the loading functions of scripts. Links to follow (``<a href>``)
may lead anywhere. With a browser, each page is opened with every other host unreachable, and the run fails if the page
asks for another host or for a missing file, if formulas are not typeset, if the search finds nothing, or
if the page does not follow the reader's preference for a dark or a light screen.
"""

from __future__ import annotations

import argparse
import functools
import html.parser
import http.server
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[1]
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update",
)  # fmt: skip
NO_OTHER_HOST = "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1"
OTHER_HOST = re.compile(r"\s*(?:[a-z][a-z0-9+.-]*:)?//", re.I)
LOADED_RELS = {
    "stylesheet", "preload", "prefetch", "modulepreload", "preconnect", "dns-prefetch", "icon", "apple-touch-icon",
    "manifest",
}  # fmt: skip
CSS_REFERENCE = re.compile(r"""(?:url\(\s*["']?|@import\s+["'])([^"')\s]+)""", re.I)
JS_CALL = r"(?:fetch|import|importScripts|getScript|loadScript|load|Worker|WebSocket|EventSource|sendBeacon)"
JS_REFERENCE = re.compile(
    rf"""(?:\b{JS_CALL}\(\s*|\bimport\s+|\bfrom\s+|\.open\(\s*["'][A-Z]+["']\s*,\s*|\.(?:src|href)\s*=\s*)"""
    r"""["'`]((?:https?:|wss?:)?//[^"'`]+)"""
)


def is_other_host(address: str) -> bool:
    """Whether a reference leaves the site (``https://x``, ``//x``), not merely the page."""
    return bool(OTHER_HOST.match(address)) and not address.strip().lower().startswith(
        ("data:", "file:")
    )


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
        candidates = [
            attrs.get("src", ""),
            attrs.get("poster", ""),
            attrs.get("xlink:href", "") if tag != "a" else "",
        ]
        candidates += [
            part.split()[0]
            for part in attrs.get("srcset", "").split(",")
            if part.strip()
        ]
        if tag == "object":
            candidates.append(attrs.get("data", ""))
        if tag in ("image", "use") or (
            tag == "link" and LOADED_RELS & set(attrs.get("rel", "").lower().split())
        ):
            candidates.append(attrs.get("href", ""))
        self.found += [url for url in candidates if is_other_host(url)]
        self.found += scan_css(attrs.get("style", ""))
        self._inside = tag if tag in ("style", "script") else None

    def handle_endtag(self, tag):
        self._inside = None

    def handle_data(self, data):
        if self._inside:
            self.found += scan_css(data) if self._inside == "style" else scan_js(data)


def scan(site: pathlib.Path) -> list[tuple[str, str]]:
    """Every (file, address) with which the files under `site` would ask another host."""
    found = []
    for path in sorted(site.rglob("*")):
        kind = path.suffix
        if kind not in (".html", ".css", ".js", ".svg") or not path.is_file():
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        if kind in (".html", ".svg"):
            scanner = PageScanner()
            scanner.feed(text)
            urls = scanner.found
        else:
            urls = scan_css(text) if kind == ".css" else scan_js(text)
        found += [(str(path.relative_to(site)), url) for url in urls]
    return found


class _Handler(http.server.SimpleHTTPRequestHandler):
    missing: list[str]  # set per server, below

    def send_error(self, code, message=None, explain=None):
        if (
            self.path != "/favicon.ico"
        ):  # browsers ask for it by habit, whatever the page says
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


def open_page(browser: str, address: str, dark: bool = False) -> tuple[str, list[str]]:
    """The page as it stands after its scripts ran, and every address it asked for."""
    with tempfile.TemporaryDirectory() as tmp:
        log, scheme = pathlib.Path(tmp) / "net.json", 0 if dark else 1
        command = [
            browser, *FLAGS, NO_OTHER_HOST, f"--user-data-dir={tmp}/profile", f"--log-net-log={log}",
            f"--blink-settings=preferredColorScheme={scheme}", "--virtual-time-budget=20000", "--dump-dom", address,
        ]  # fmt: skip
        run = subprocess.run(command, capture_output=True, text=True, timeout=120)
        if run.returncode:
            raise SystemExit(f"{browser} failed on {address}:\n{run.stderr}")
        return run.stdout, page_requests(json.loads(log.read_text()), address)


def page_requests(log: dict, address: str) -> list[str]:
    """The addresses that the page at `address` asked for, from a browser's network log.

    A request carries the origin of the page that made it; the browser's own errands carry none, and are not ours.
    """
    start = log["constants"]["logEventTypes"]["URL_REQUEST_START_JOB"]
    origin = "{0.scheme}://{0.netloc}".format(urllib.parse.urlsplit(address))
    params = [
        event.get("params", {}) for event in log["events"] if event["type"] == start
    ]
    return [p["url"] for p in params if p.get("initiator", "").startswith(origin)]


def check_in_browser(site: pathlib.Path, browser: str, query: str) -> list[str]:
    """Open every page of `site`; return what is wrong."""
    server, home, missing = serve(site)
    wrong = []
    try:
        pages = sorted(
            p.relative_to(site).as_posix()
            for p in site.rglob("*.html")
            if "_static" not in p.parts
        )
        typeset = 0
        for page in pages:
            dom, asked = open_page(browser, f"{home}/{page}")
            source = (site / page).read_text(encoding="utf-8")
            if not asked and "<script src" in source:
                wrong.append(
                    f"{page}: the browser logged no request, so nothing was checked"
                )
            wrong += [
                f"{page}: asks for {url}"
                for url in asked
                if not url.startswith((home, "data:", "blob:"))
            ]
            if 'class="math' in source:
                typeset += 1
                if "<mjx-container" not in dom:
                    wrong.append(f"{page}: the formulas are not typeset")
                if "<mjx-merror" in dom or re.search(
                    r'<mjx-mtext[^>]*style="[^"]*color: red', dom
                ):
                    wrong.append(
                        f"{page}: a formula has an error or an unknown command (shown in red)"
                    )
        if not typeset:
            wrong.append("no page has a formula: the check of MathJax saw nothing")
        dom, _ = open_page(browser, f"{home}/search.html?q={urllib.parse.quote(query)}")
        results = re.search(r'<ul class="search"[^>]*>(.*?)</ul>', dom, re.S)
        if not results or "<li" not in results.group(1):
            wrong.append(f"the search for {query!r} finds nothing")
        first = next((page for page in pages if page.startswith("book/")), pages[0])
        for dark, theme in ((False, "light"), (True, "dark")):
            dom, _ = open_page(browser, f"{home}/{first}", dark=dark)
            if f'data-theme="{theme}"' not in dom:
                wrong.append(
                    f"{first}: not shown {theme} to a reader who prefers {theme}"
                )
        wrong += [f"missing: {line}" for line in dict.fromkeys(missing)]
        print(f"{len(pages)} pages opened, {typeset} with formulas")
    finally:
        server.shutdown()
    return wrong


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "site", nargs="?", type=pathlib.Path, default=ROOT / "_build" / "html"
    )
    parser.add_argument("--browser", help="a Chromium, to open every page with")
    parser.add_argument(
        "--query",
        default="bag",
        help="a word that the site's search must find (default: bag)",
    )
    args = parser.parse_args(argv)
    if not any(args.site.rglob("*.html")):
        parser.error(f"no page under {args.site}: run `make book` first")
    wrong = [f"{path}: refers to {url}" for path, url in scan(args.site)]
    if args.browser:
        wrong += check_in_browser(args.site, args.browser, args.query)
    print("\n".join(wrong) or "the site asks no other host for anything")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
