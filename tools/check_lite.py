"""Run chapters of _build/lite in a real browser that reaches no other host.

    .venv/bin/python tools/check_lite.py BROWSER NAME ...

It needs `make lite` and playwright. `check_lite.mjs` runs all chapters, faster; this tool looks at the pages of some.
A finding is what `check_jupyter.py` looks for, or a request to another host. It prints the seconds until all cells have
run, and the megabytes that were sent.
"""

import functools
import http.server
import json
import os
import shutil
import sys
import threading
import time

from _book import ROOT
from check_jupyter import SETTINGS, look
from playwright.sync_api import sync_playwright

FOLDER = ROOT / "_build/lite"
ALONE = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"


class Sender(http.server.SimpleHTTPRequestHandler):
    """Sends the files of a folder and counts their bytes."""

    sent = 0

    def copyfile(self, source, outputfile):
        Sender.sent += os.fstat(source.fileno()).st_size
        super().copyfile(source, outputfile)

    def log_message(self, *words):
        pass


def with_all_cells(route):
    """Let JupyterLab show every cell, also those far from what the window shows."""
    settings = json.loads((FOLDER / "jupyter-lite.json").read_text("utf-8"))
    settings["jupyter-config-data"]["settingsOverrides"] = SETTINGS
    settings["jupyter-config-data"]["exposeAppInBrowser"] = True
    route.fulfill(json=settings)


def check(browser, address, name):
    """Findings of a chapter, in a browser that has stored nothing."""
    context = browser.new_context(viewport={"width": 1300, "height": 1000})
    context.route(f"{address}/jupyter-lite.json*", with_all_cells)
    asked = []
    context.on("request", lambda request: asked.append(request.url))
    Sender.sent, start = 0, time.time()
    chapter = f"{address}/lab/index.html?path=book/{name}.ipynb"
    found = look(context.new_page(), chapter, plain=False)
    seconds, size = time.time() - start, Sender.sent / 1e6
    print(f"{name}: {seconds:.0f} s, {size:.0f} MB", flush=True)
    context.close()
    elsewhere = {u for u in asked if u.startswith("http") and not u.startswith(address)}
    return found + [f"asked {url}" for url in sorted(elsewhere)]


def main(browser, *names):
    handler = functools.partial(Sender, directory=str(FOLDER))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address, status = f"http://127.0.0.1:{server.server_port}", 0
    options = {
        "executable_path": shutil.which(browser),
        "args": ["--no-sandbox", ALONE],
    }
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(**options)
        for name in names:
            found = check(chromium, address, name)
            print(*found, sep="\n  ", flush=True)
            status |= bool(found)
        chromium.close()
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
