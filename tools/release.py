"""Check that a tag is the version which every file names, dated in the changelog and the citation, and is on main.

tools/release.py v0.1.0
"""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DATED = r"^## {} \((\d{{4}}-\d\d-\d\d)\)$"


def faults(tag, read):
    """What is wrong with the files of a release; `read` gives a file's text."""
    version = tomllib.loads(read("pyproject.toml"))["project"]["version"]
    if tag != f"v{version}":
        yield f"the tag is {tag}, the version of pyproject.toml {version}"
    wanted = {"llpbook/__init__.py": f'\n__version__ = "{version}"\n'}
    wanted["CITATION.cff"] = f"\nversion: {version}\n"
    for name, line in wanted.items():
        if line not in read(name):
            yield f"{name}: another version than {version}"
    heading = re.search(DATED.format(re.escape(version)), read("CHANGELOG.md"), re.M)
    if heading is None:
        yield f"CHANGELOG.md: no heading '## {version} (YEAR-MONTH-DAY)'"
    elif f"\ndate-released: {heading[1]}\n" not in read("CITATION.cff"):
        yield f"CITATION.cff: no date-released {heading[1]}"


def is_on(branch, commit, root=ROOT):
    """Whether a commit belongs to the history of a branch."""
    command = ["git", "merge-base", "--is-ancestor", commit, branch]
    return subprocess.run(command, cwd=root, capture_output=True).returncode == 0


if __name__ == "__main__":
    tag = sys.argv[1]
    found = list(faults(tag, lambda name: (ROOT / name).read_text("utf-8")))
    if not is_on("origin/main", tag):
        found.append(f"{tag} is not on main: merge first, then tag what was merged")
    sys.exit("\n".join(found) or None)
