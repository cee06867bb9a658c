"""Open chapters in a real JupyterLab, run all their cells, and look for what a reader should not see.

    .venv/bin/python tools/check_jupyter.py [NAME ...] [--plain] [--browser PROGRAM]

By hand or by night: it takes minutes. It needs `make lab` and, in the same environment, playwright. A finding is an
error, a cell that did not run, a role or directive shown as code, or a formula that is not typeset. With `--plain`
JupyterLab runs without jupyterlab-myst, as a reader's own does. The notebooks are copies: nothing in book/ changes.
"""

import argparse
import json
import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

from _book import ROOT, Book

# Every cell in the page, also those far from what the window shows; and no question to a server of news.
SETTINGS = {
    "notebook-extension/tracker": {"windowingMode": "none"},
    "apputils-extension/notification": {"fetchNews": "false"},
}
MINUTES = 10  # for a chapter
READY = "() => jupyterapp.shell.currentWidget?.sessionContext?.session?.kernel?.status == 'idle'"
# without its promise: JupyterLab resolves it to what no browser can hand over
RUN = """() => {
  jupyterapp.commands.execute("notebook:clear-all-cell-outputs")
    .then(() => { window.cleared = true; jupyterapp.commands.execute("notebook:run-all-cells"); });
}"""
# as the notebook has it, for the code of a solution is folded
CELLS = "jupyterapp.shell.currentWidget.content.widgets.map(cell => cell.model)"
FAILED = "c.type == 'code' && c.outputs.toJSON().find(o => o.output_type == 'error')"
RAN = "c.type != 'code' || c.executionCount"
DONE = f"() => window.cleared && ({CELLS}.every(c => {RAN}) || {CELLS}.some(c => {FAILED}))"
LOOK = r"""() => [...document.querySelectorAll(".jp-Notebook .jp-Cell")].flatMap((cell, i) => {
  const found = [], say = (what, text) => found.push(`cell ${i + 1}: ${what}: ${text.trim().slice(0, 90)}`);
  const c = CELLS[i], failed = FAILED;
  if (failed) say("error", `${failed.ename} ${failed.evalue}`);
  if (c.type == "code" && !c.executionCount) say("did not run", c.sharedModel.source);
  for (const shown of cell.querySelectorAll(".jp-MarkdownCell .jp-MarkdownOutput, .jp-MarkdownOutput")) {
    for (const e of shown.querySelectorAll("mjx-merror, .katex-error, .myst-error, .text-error, .text-red-600"))
      say("not typeset", e.innerText);
    for (const e of shown.querySelectorAll("pre"))
      if (/^\s*(:label:|\{)/.test(e.innerText) || /\$\$/.test(e.innerText)) say("directive as code", e.innerText);
    const words = shown.cloneNode(true);
    words.querySelectorAll("pre, code, mjx-container, .katex, script, style").forEach(e => e.replaceWith("·"));
    const text = words.textContent;
    for (const m of text.matchAll(/.{0,30}(?<!:)\{[a-z]+(:[a-z]+)?\}.{0,30}/g)) say("role", m[0]);
    for (const m of text.matchAll(/.{0,30}(\$|\\(frac|sum|begin|mathbb|hat|lVert)).{0,30}/g)) say("formula", m[0]);
    if (MYST) for (const m of text.matchAll(/^.*:::.*$/gm)) say("directive", m[0]);
  }
  return found;
})"""


def serve(folder, plain):
    """JupyterLab on a folder that holds ``book/``, for this machine and a random token; process, address, token."""
    for name, values in SETTINGS.items():
        path = folder / f"settings/@jupyterlab/{name}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(values))
    (folder / "config/labconfig").mkdir(parents=True)
    disabled = {"disabledExtensions": {"jupyterlab-myst": plain}}
    (folder / "config/labconfig/page_config.json").write_text(json.dumps(disabled))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"]
    command += ["--expose-app-in-browser", f"--port={port}"]
    command += [f"--LabApp.user_settings_dir={folder / 'settings'}"]
    command += [f"--LabApp.workspaces_dir={folder / 'workspaces'}"]
    token = secrets.token_hex(16)
    env = {
        **os.environ,
        "JUPYTER_TOKEN": token,  # not an argument, which every user of the machine may read
        "JUPYTER_CONFIG_DIR": str(folder / "config"),
        "JUPYTER_PREFER_ENV_PATH": "1",
    }
    with open(folder / "log", "w") as log:
        lab = subprocess.Popen(
            command, cwd=folder / "book", env=env, stdout=log, stderr=log
        )
    home = f"http://127.0.0.1:{port}"
    for _ in range(600):
        try:
            urllib.request.urlopen(f"{home}/api").close()
            return lab, home, token
        except urllib.error.URLError:
            time.sleep(0.1)
    lab.terminate()
    raise SystemExit(f"JupyterLab did not start:\n{(folder / 'log').read_text()}")


def look(page, address, plain):
    """Run all cells of the notebook at an address; what is wrong with what it shows."""
    page.goto(address)
    page.wait_for_selector(".jp-Notebook .jp-CodeCell")
    page.wait_for_function(READY)
    page.evaluate(RUN)
    page.wait_for_function(DONE)
    page.wait_for_timeout(3000)  # for the typesetting
    names = {"MYST": "false" if plain else "true", "CELLS": CELLS, "FAILED": FAILED}
    script = re.sub(r"\b(MYST|CELLS|FAILED)\b", lambda name: names[name[0]], LOOK)
    return page.evaluate(script)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--plain", action="store_true", help="without jupyterlab-myst")
    parser.add_argument("--browser", help="program; default: playwright's own")
    args = parser.parse_args(argv)
    from playwright.sync_api import sync_playwright

    names, status = args.names or list(Book().notebooks), 0
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        folder = Path(folder)
        shutil.copytree(ROOT / "book", folder / "book")
        lab, home, token = serve(folder, args.plain)
        browser = playwright.chromium.launch(
            executable_path=args.browser and shutil.which(args.browser),
            args=["--no-sandbox"],
        )
        try:
            for name in names:
                page = browser.new_page(viewport={"width": 1300, "height": 1000})
                page.set_default_timeout(MINUTES * 60_000)
                address = f"{home}/lab/tree/{name}.ipynb?reset&token={token}"
                found = look(page, address, args.plain)
                page.close()
                print(f"{name}: {len(found)} findings", *found, sep="\n  ", flush=True)
                status |= bool(found)
        finally:
            browser.close()
            lab.terminate()
            lab.wait()
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
