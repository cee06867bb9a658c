"""The button that runs a chapter in the reader's browser, if `make lite` was built."""

import os
import shutil
from pathlib import Path

#: The folder that `make lite` wrote; without it there is no button. See `make site`.
LITE = os.environ.get("LLPBOOK_LITE", "")
#: JupyterLab itself, in megabytes; `tools/check_lite.py` measures what is sent.
LAB = 11


def megabytes(folder):
    """What a reader's browser loads to run a chapter, to the next ten."""
    python = (folder / "static/pyodide").iterdir()
    size = LAB + sum(file.stat().st_size for file in python) / 1e6
    return 10 * round(size / 10)


def start(app):
    if LITE:
        buttons = app.config.html_theme_options["launch_buttons"]
        buttons["jupyterlite_url"] = "../lite/lab/index.html"


def say_cost(app, page, template, context, doctree):
    """Say on the button what it costs; a chapter that no browser can run has none."""
    for group in context.get("header_buttons", []):
        buttons = group.get("buttons", [])
        for button in [b for b in buttons if b["text"] == "JupyterLite"]:
            if not Path(LITE, "files", f"{page}.ipynb").exists():
                buttons.remove(button)
            size = megabytes(Path(LITE))
            button["text"] = f"This browser ({size} MB, 30 s)"
            button["tooltip"] = (
                f"Run in this browser, without a server: it loads {size} MB once, and "
                "Python starts in half a minute; all cells take half a minute to four"
            )


def copy(app, error):
    """Lay the folder where the buttons point."""
    if LITE and not error and app.builder.name == "html":
        shutil.copytree(LITE, app.outdir / "lite")


def setup(app):
    app.connect("builder-inited", start)
    app.connect("html-page-context", say_cost, priority=502)  # after the theme's
    app.connect("build-finished", copy, priority=900)  # no page of the book
    return {"parallel_read_safe": True, "parallel_write_safe": True}
