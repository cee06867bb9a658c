"""Check that a tag is the version which every file names, dated in the changelog and the citation.

tools/release.py v0.1.0
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def faults(tag, read):
    """What is wrong with the files of a release; `read` gives a file's text."""
    version = tomllib.loads(read("pyproject.toml"))["project"]["version"]
    if tag != f"v{version}":
        yield f"the tag is {tag}, the version of pyproject.toml {version}"
    if f'__version__ = "{version}"' not in read("llpbook/__init__.py"):
        yield f"llpbook/__init__.py: another version than {version}"
    heading = re.search(
        rf"^## {re.escape(version)} \((\d{{4}}-\d\d-\d\d)\)$",
        read("CHANGELOG.md"),
        re.M,
    )
    if heading is None:
        yield f"CHANGELOG.md: no heading '## {version} (YEAR-MONTH-DAY)'"
    citation = read("CITATION.cff")
    if f"\nversion: {version}\n" not in citation:
        yield f"CITATION.cff: another version than {version}"
    if heading and f"\ndate-released: {heading[1]}\n" not in citation:
        yield f"CITATION.cff: no date-released {heading[1]}"


if __name__ == "__main__":
    found = list(faults(sys.argv[1], lambda name: (ROOT / name).read_text("utf-8")))
    sys.exit("\n".join(found) or None)
