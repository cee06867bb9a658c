"""Put the site of the newest release and that of this checkout side by side in ``_build/site``.

    tools/versions.py     # after `make book`

``/dev/`` is this checkout. ``/stable/`` is built from the newest tag such as v0.1.0, by its own Makefile; before there
is one, it is this checkout, too. The root leads to ``/stable/``.
"""

import re
import shutil
import subprocess
from pathlib import Path

BUILD = Path(__file__).resolve().parents[1] / "_build"
DOOR = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Learning from Label Proportions</title>
<meta http-equiv="refresh" content="0; url=stable/"></head>
<body><a href="stable/">Learning from Label Proportions</a></body></html>
"""


def newest(tags):
    """The newest release among tags, or None: of v0.9.0, v0.10.0 and v1.0.0rc1 it is v0.10.0."""
    releases = [tag for tag in tags if re.fullmatch(r"v\d+\.\d+\.\d+", tag)]
    return max(releases, key=lambda tag: [*map(int, tag[1:].split("."))], default=None)


def run(*command):
    options = {"cwd": BUILD, "check": True, "text": True, "stdout": subprocess.PIPE}
    return subprocess.run(command, **options).stdout


def build(tag):
    """The site of a tag, built in a clone of its own."""
    tree = BUILD / "released"
    shutil.rmtree(tree, ignore_errors=True)
    run("git", "clone", "-q", "--branch", tag, str(BUILD.parent), str(tree))
    run("make", "-C", str(tree), "book")
    return tree / "_build/html"


def main():
    site, dev = BUILD / "site", BUILD / "html"
    shutil.rmtree(site, ignore_errors=True)
    tag = newest(run("git", "tag").split())
    for name, source in {"dev": dev, "stable": build(tag) if tag else dev}.items():
        shutil.copytree(source, site / name)
    (site / "index.html").write_text(DOOR, "utf-8")
    for name in ("404.html", "llms.txt"):
        shutil.copyfile(site / "stable" / name, site / name)
    print(f"{site}: /dev/ is this checkout, /stable/ {tag or 'too'}")


if __name__ == "__main__":
    main()
