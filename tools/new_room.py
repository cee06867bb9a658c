"""Write the skeleton of a room, which runs: a module, its test, its chapter and every entry.

    tools/new_room.py my_method

The templates are in ``tools/room/``. The chapter stands last before the back matter: move its line in ``_toc.yml``.
"""

import argparse
import re
import sys
from pathlib import Path

import _book
import course_map
import execute
import hours
import sync_cells
from _book import ROOT, BookError

NEXT = """{0} runs, with its test. `make check` lists each TODO of the templates that is left. Beside them
- move its line in _toc.yml to its part; say in its row of book/teaching.md which chapters it needs;
- METHODS in book/studies/benchmark.py: the estimator and a grid of 5 or 6 settings, and in book/studies/natural.py
  one of at most 5 (an empty grid if there is nothing to choose), or their tests fail; then make reproduce TABLE=thread;
- a method that imports another method: BUILT_ON in tests/test_base.py says why;
- a warning of its own: a case in tests/test_running.py provokes it;
- names that managed cells use are imported in the chapter's first cell (ruff finds those that are not).
Then: make sync, make run CH={0}, make check test portable book. CONTRIBUTING.md has the rest."""
TEMPLATES = Path(__file__).parent / "room"
FILES = {
    "module.py": "llpbook/{}.py",
    "test.py": "tests/test_{}.py",
    "chapter.md": "book/src/{}.md",
}


def insert(path, before, line):
    """Put a line before the first one that begins with ``before``."""
    text = _book.read(path)
    if not re.search(rf"^{re.escape(before)}", text, re.MULTILINE):
        raise BookError(f"{path.name} has no line '{before.strip()}'")
    new = re.sub(rf"^(?={re.escape(before)})", line, text, count=1, flags=re.MULTILINE)
    _book.write(path, new, text)


def write_room(root, name):
    """The files of the room, and its lines wherever rooms are listed."""
    paths = {FILES[kind].format(name): _book.read(TEMPLATES / kind) for kind in FILES}
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name):
        raise BookError(f"a room has a name such as my_method, not {name!r}")
    there = [path for path in paths if (root / path).exists()]
    if there:
        raise BookError(f"{there[0]} is there already")
    names = {"my_room": name, "my-room": name.replace("_", "-")}
    names["MyRoom"] = name.title().replace("_", "")
    for path, text in paths.items():
        for old, new in names.items():
            text = text.replace(old, new)
        _book.write(root / path, text)
    cls = names["MyRoom"]
    for path, before, line in (
        ("_toc.yml", "  - caption: Back matter", f"      - file: book/{name}.ipynb\n"),
        ("book/api.md", "   baselines\n", f"   {name}\n"),
        ("llpbook/__init__.py", '    "plotting": [', f'    "{name}": ["{cls}"],\n'),
        (
            "book/teaching.md",
            "\n## How long it takes",
            f"| [{cls}]({name}.ipynb) | [Label proportions](proportions.ipynb) | TODO |\n",
        ),
    ):
        insert(root / path, before, line)
    page = (
        f"# `llpbook.{name}`\n\n```{{eval-rst}}\n.. automodule:: llpbook.{name}\n   :members:\n\n"
        f".. chapter-functions:: llpbook.{name}\n```\n"
    )
    _book.write(root / f"book/api/{name}.md", page)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", metavar="NAME")
    parser.add_argument("--root", type=Path, default=ROOT, help="the book's folder")
    args = parser.parse_args(argv)
    root = ["--root", str(args.root)]
    try:
        write_room(args.root, args.name)
    except BookError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    sync = sync_cells.sync(args.root, [])
    if sync or execute.main([args.name, "intro", *root]):
        return 1
    picture = course_map.picture(_book.Book(args.root))
    _book.write(args.root / course_map.PICTURE, picture)
    status = hours.main(root)
    print(NEXT.format(args.name))
    return status


if __name__ == "__main__":
    sys.exit(main())
