"""Write the skeleton of a room, which runs: a module, its test, its chapter and every entry.

    tools/new_room.py my_method [MyMethod]

The second argument is the name of the estimator; without it, the words of the room, capitalized. The templates are in
``tools/room/``. The chapter stands last before the back matter: move its line in ``_toc.yml``.
"""

import re
import sys
from pathlib import Path

import _book
import execute
import sync_cells
from _book import ROOT, BookError

NEXT = """{0} runs, with its test. `make check` lists each TODO of the templates that is left. Beside them
- move its line in _toc.yml to its part, and change **Next** at the end of the chapter that is now before it;
- say in its row of book/teaching.md which chapters and what mathematics it needs;
- METHODS in book/studies/benchmark.py: the estimator and a grid of 5 or 6 settings, and in book/studies/natural.py
  one of at most 5 (an empty grid if there is nothing to choose), or their tests fail; then run the three common tables;
- a method that imports another method: BUILT_ON in tests/test_base.py says why;
- the defaults of the estimator: a line of DEFAULTS in tests/test_consistency.py;
- a warning of its own: a case in tests/test_running.py provokes it;
- names that managed cells use are imported in the chapter's first cell (ruff finds those that are not);
- a line in CHANGELOG.md.
Then: make sync, make run CH={0}, make run CH=intro (its table of methods), make check test portable book.
CONTRIBUTING.md, "Add a method", says how to do each step."""
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
    _book.write(path, new)


def write_room(root, name, cls):
    """The files of the room, and its lines wherever rooms are listed."""
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name):
        raise BookError(f"a room has a name such as my_method, not {name!r}")
    if not re.fullmatch(r"[A-Z][A-Za-z0-9]*", cls):
        raise BookError(f"an estimator has a name such as MyMethod, not {cls!r}")
    if f'"{cls}"' in _book.read(root / "llpbook/__init__.py"):
        raise BookError(f"llpbook has a {cls} already: choose another CLASS")
    names = {"my_room": name, "my-room": name.replace("_", "-"), "MyRoom": cls}
    for kind, path in FILES.items():
        if (root / path.format(name)).exists():
            raise BookError(f"{path.format(name)} is there already")
        text = _book.read(TEMPLATES / kind)
        for old, new in names.items():
            text = text.replace(old, new)
        _book.write(root / path.format(name), text)
    label = f"[{cls}]({name}.ipynb)"
    need = f"| {label} | [Label proportions](proportions.ipynb) | TODO |\n"
    insert(
        root / "_toc.yml",
        "  - caption: Reference",
        f'      - file: book/{name}.ipynb\n        title: "{cls}"\n',
    )
    api = root / "book/api.md"
    insert(api, "   ~baselines.", f"   ~{name}.{cls}\n")
    insert(api, "   baselines\n", f"   {name}\n")
    insert(
        root / "llpbook/__init__.py", '    "plotting": [', f'    "{name}": ["{cls}"],\n'
    )
    insert(root / "book/teaching.md", "\n## How long it takes", need)


def main(name, cls="", root=ROOT):
    try:
        write_room(root, name, cls or name.title().replace("_", ""))
    except BookError as error:
        return f"error: {error}"
    failed = sync_cells.sync(root, []) or execute.main([name], root)
    print(NEXT.format(name))
    return failed


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
