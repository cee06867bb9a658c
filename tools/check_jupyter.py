"""Open chapters in a real JupyterLab, run all their cells, and look for what a reader should not see.

    .venv/bin/python tools/check_jupyter.py [--plain] BROWSER [NAME ...]

By hand or by night: it takes minutes. It needs `make lab` and, in the same environment, playwright. A finding is an
error, a cell that did not run, a role or directive shown as code, or a formula that is not typeset. With `--plain`
JupyterLab runs without jupyterlab-myst, as a reader's own does. The notebooks are copies: nothing in book/ changes.
"""

import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from _book import ROOT, Book
from playwright.sync_api import Error, sync_playwright

# Every cell in the page, also those far from what the window shows; and no question to a server of news.
SETTINGS = {
    "@jupyterlab/notebook-extension:tracker": {"windowingMode": "none"},
    "@jupyterlab/apputils-extension:notification": {"fetchNews": "false"},
}
READY = "() => jupyterapp.shell.currentWidget?.sessionContext?.session?.kernel?.status == 'idle'"
# without its promise: JupyterLab resolves it to what no browser can hand over
RUN = """() => {
  jupyterapp.commands.execute("notebook:clear-all-cell-outputs")
    .then(() => { window.cleared = true; jupyterapp.commands.execute("notebook:run-all-cells"); });
}"""
# as the notebook has it, for the code of a solution is folded
PARTS = """
const cells = () => jupyterapp.shell.currentWidget.content.widgets.map(cell => cell.model);
const failure = c => c.type == "code" && c.outputs.toJSON().find(o => o.output_type == "error");
const ran = c => c.type != "code" || c.executionCount;
"""
DONE = f"() => {{ {PARTS} return window.cleared && (cells().every(ran) || cells().some(failure)); }}"
LOOK = (
    f"isPlain => {{ {PARTS}"
    r"""
  return [...document.querySelectorAll(".jp-Notebook .jp-Cell")].flatMap((cell, i) => {
    const found = [], say = (what, text) => found.push(`cell ${i + 1}: ${what}: ${text.trim().slice(0, 90)}`);
    const c = cells()[i];
    if (failure(c)) say("error", `${failure(c).ename} ${failure(c).evalue}`);
    if (!ran(c)) say("did not run", c.sharedModel.source);
    for (const shown of cell.querySelectorAll(".jp-MarkdownOutput")) {
      for (const e of shown.querySelectorAll("mjx-merror, .katex-error, .myst-error, .text-error, .text-red-600"))
        say("not typeset", e.innerText);
      for (const e of shown.querySelectorAll("pre"))
        if (/^\s*(:label:|\{)|\$\$/.test(e.innerText)) say("directive as code", e.innerText);
      const words = shown.cloneNode(true);
      words.querySelectorAll("pre, code, mjx-container, .katex, script, style").forEach(e => e.replaceWith("·"));
      const raw = /.{0,30}((?<!:)\{[a-z]+(:[a-z]+)?\}|\$|\\(frac|sum|begin|mathbb|hat|lVert)).{0,30}/g;
      for (const m of words.textContent.matchAll(raw)) say("role or formula as text", m[0]);
      if (!isPlain) for (const m of words.textContent.matchAll(/^.*:::.*$/gm)) say("directive", m[0]);
    }
    return found;
  });
}"""
)


def serve(folder, plain):
    """JupyterLab on a folder that holds ``book/``, for this machine and a random token; process and address."""
    config = folder / "config/labconfig"
    config.mkdir(parents=True)
    disabled = {"disabledExtensions": {"jupyterlab-myst": plain}}
    (config / "page_config.json").write_text(json.dumps(disabled))
    (config / "default_setting_overrides.json").write_text(json.dumps(SETTINGS))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"]
    command += ["--expose-app-in-browser", f"--port={port}"]
    token = secrets.token_hex(16)  # not an argument, which every user may read
    env = {**os.environ, "JUPYTER_TOKEN": token, "JUPYTER_PREFER_ENV_PATH": "1"}
    env |= {"JUPYTER_CONFIG_DIR": str(folder / "config")}
    options = {"cwd": folder / "book", "env": env, "stderr": subprocess.DEVNULL}
    lab = subprocess.Popen(command, **options)
    return lab, f"http://127.0.0.1:{port}/lab/tree/{{}}.ipynb?reset&token={token}"


def look(page, address, plain):
    """Run all cells of the notebook at an address; what is wrong with what it shows."""
    page.set_default_timeout(600_000)
    for wait in [0.5] * 100 + [0]:
        try:
            page.goto(address)
            break
        except Error:  # the server is about to start
            time.sleep(wait)
    page.wait_for_selector(".jp-Notebook .jp-CodeCell")
    page.wait_for_function(READY)
    page.evaluate(RUN)
    page.wait_for_function(DONE)
    page.wait_for_timeout(3000)  # for the typesetting
    return page.evaluate(LOOK, plain)


def main(browser, *names, plain=False):
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        shutil.copytree(ROOT / "book", Path(folder, "book"))
        lab, address = serve(Path(folder), plain)
        options = {"executable_path": shutil.which(browser), "args": ["--no-sandbox"]}
        chromium, status = playwright.chromium.launch(**options), 0
        try:
            for name in names or Book().notebooks:
                page = chromium.new_page(viewport={"width": 1300, "height": 1000})
                found = look(page, address.format(name), plain)
                page.close()
                print(f"{name}: {len(found)} findings", *found, sep="\n  ", flush=True)
                status |= bool(found)
        finally:
            chromium.close()
            lab.terminate()
            lab.wait()
    return status


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if word != "--plain"]
    sys.exit(main(*words, plain="--plain" in sys.argv))
