"""Measure the chapters, and write the hours that they take into ``book/teaching.md``.

    tools/hours.py [--check]

Between the lines ``<!-- hours -->`` and ``<!-- /hours -->`` stands one row per chapter: words, labeled equations, code
cells, exercises, and the hours that follow from ``MINUTES``. A table whose last column is *Hours* is a syllabus; the
last cell of a row holds the hours of the chapters that the row links to, whole (``[EM](em.ipynb)``), up to a section
(``[EM](em.ipynb) to "Notation"``) or to the first section (``the box of [EM](em.ipynb)``), and of the exercises that it
links to. A chapter after *or*, in parentheses, takes the place of one that counts already.
"""

import argparse
import re
import sys
from collections import namedtuple
from pathlib import Path

import _book
from _book import ROOT, Book, BookError

PAGE = "book/teaching.md"
# For each: a hundred words, a labeled equation with a pencil, a code cell, an exercise.
MINUTES = {"words": 1.5, "equations": 4, "cells": 1, "exercises": 20}
OWN = 2  # exercises that a reader does in a chapter where a syllabus names none
LINK = r"\[[^]]*\]\((\w+)\.ipynb\)"
NAMED = re.compile(rf'(the box of )?{LINK}(?: to "([^"]+)")?')
OTHERS = re.compile(rf"\(or {LINK}(?: or {LINK})*\)")

Size = namedtuple("Size", "words equations cells exercises")


def count_words(text):
    """The words of a markdown text, as a reader meets them: a formula is one, an address is none."""
    text = _book.CONCORDANCE.sub("", text)
    text = re.sub(r"^:{3,}\{(?:dropdown|admonition|prf:\w+)\}", "", text, flags=re.M)
    text = re.sub(r"^(:\w+:.*|:{3,}.*|\(.*\)=|\|[-:| ]+\|)$", "", text, flags=re.M)
    text = re.sub(r"\$\$.*?\$\$(?: *\([\w-]+\))?", " formula ", text, flags=re.DOTALL)
    text = re.sub(r"\$[^$]+\$", "formula", text)
    text = re.sub(r"!?\[([^]]*)\]\((?:<[^>]*>|[^)]*)\)", r"\1", text)
    return len(re.findall(r"[^\W_][^\s|]*", text))


def measure(nb, until=None):
    """The `Size` of a chapter before its exercises, and their number; or of what stands before a section."""
    texts, cells, exercises, inside = [], 0, 0, True
    for cell in nb.cells:
        if cell.cell_type == "code":
            cells += inside
            continue
        exercises += len(re.findall(r"^:{3,}\{exercise\}", cell.source, re.M))
        stop = "Exercises" if until is None else until
        end = re.search(rf"^## {re.escape(stop)}".rstrip(), cell.source, re.M)
        if inside:
            texts.append(cell.source[: end.start()] if end else cell.source)
        inside = inside and not end
    if until and inside:
        raise BookError(f"{PAGE}: no section {until!r}")
    equations = sum(len(_book.equation_labels(text)) for text in texts)
    return Size(sum(map(count_words, texts)), equations, cells, exercises)


def minutes(size, exercises):
    """Minutes for a text of this size and so many exercises."""
    parts = size._replace(words=size.words / 100, exercises=exercises)
    return sum(MINUTES[name] * n for name, n in parts._asdict().items())


def hours(minutes):
    """Hours to the next half."""
    return round(minutes / 30) / 2


def table(book):
    """One row per chapter, in reading order, and the sum."""
    rows = ["| Chapter | Words | Equations | Cells | Exercises | Hours |"]
    rows.append("| --- | ---: | ---: | ---: | ---: | ---: |")
    sizes, total = [], 0
    for name, nb in book.notebooks.items():
        size = measure(nb)
        taken = hours(minutes(size, min(OWN, size.exercises)))
        title = re.search(r"^# (.+)$", nb.cells[0].source, re.MULTILINE)[1]
        short = re.match(r"[^:?]+\??", title)[0]
        size = size._replace(words=round(size.words, -2))
        numbers = " | ".join(f"{n:,}" for n in size)
        rows.append(f"| [{short}]({name}.ipynb) | {numbers} | {taken:g} |")
        sizes, total = [*sizes, size], total + taken
    numbers = " | ".join(f"{sum(column):,}" for column in zip(*sizes, strict=True))
    return "\n".join([*rows, f"| all | {numbers} | {total:g} |"])


def row_hours(book, row):
    """The hours of the chapters and the exercises that a row of a syllabus names."""
    linked = len(re.findall(r"\(#ex-", row))
    taken = linked * MINUTES["exercises"]
    for box, name, section in NAMED.findall(OTHERS.sub("", row)):
        if name not in book.notebooks:
            raise BookError(f"{PAGE}: no chapter {name}")
        size = measure(book.notebooks[name], "" if box else section or None)
        own = 0 if linked or box else min(OWN, size.exercises)
        taken += minutes(size, own)
    return hours(taken)


def with_hours(book, text):
    """The text with the last column of each syllabus filled."""
    lines, inside, total = [], False, 0
    for line in text.split("\n"):
        if line.endswith("| Hours |"):
            inside, total = True, 0
        elif not line.startswith("|"):
            inside = False
        elif inside and "---" not in line:
            taken = total if line.startswith("| all |") else row_hours(book, line)
            line = re.sub(r"[^|]*\|$", f" {taken:g} |", line)
            total += taken
        lines.append(line)
    return "\n".join(lines)


def written(book):
    """The text that the page must have."""
    before, start, rest = book.pages[PAGE].partition("<!-- hours -->")
    _, end, after = rest.partition("<!-- /hours -->")
    if not end:
        raise BookError(f"{PAGE}: <!-- hours --> without <!-- /hours -->")
    measured = f"\n\n{table(book)}\n\n"
    return with_hours(book, before) + start + measured + end + with_hours(book, after)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    parser.add_argument("--root", type=Path, default=ROOT, help="the book's folder")
    args = parser.parse_args(argv)
    book = Book(args.root)
    old = book.pages.get(PAGE, "")
    if "<!-- hours -->" not in old:
        return 0
    try:
        new = written(book)
    except BookError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if old == new:
        return 0
    if args.check:
        print(f"error: {PAGE} is not what sync writes (make sync)", file=sys.stderr)
        return 1
    _book.write(args.root / PAGE, new, old)
    print(f"wrote {PAGE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
