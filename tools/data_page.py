"""Write the tables of book/data.md from the provenance of the data sets; with --check, exit 1 if out of date."""

import argparse
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "book" / "data.md"
SOURCE = ROOT / "llpbook" / "datasets" / "data" / "provenance.json"


def classes(entry):
    """Number of classes, and the positive one of two with its share."""
    counts = entry["classes"]
    if len(counts) != 2:
        return str(len(counts))
    positive = str(entry["positive"])
    return f"2 (`{positive}`: {100 * counts[positive] / sum(counts.values()):.0f} %)"


def sets_table(catalog):
    """Sizes and classes of every set, and who used it."""
    sets, papers = catalog["sets"], catalog["papers"]
    yield f"{len(sets)} names; the package ships {sum('file' in e for e in sets.values())} files.\n"
    yield "| set | instances | columns | classes | used by |"
    yield "| --- | ---: | ---: | --- | --- |"
    for name, e in sorted(sets.items()):
        users = "".join(
            key[0].upper()
            for key, paper in papers.items()
            if any(entry["set"] == name for entry in paper["sets"].values())
        )
        gaps = f" ({e['missing_rows']:,})" if e["missing_rows"] else ""
        sizes = f"{e['n']:,}{gaps} | {e['raw']}/{e['onehot']} | {classes(e)}"
        yield f"| {name} | {sizes} | {users} |"


def papers_tables(catalog):
    """One section a paper: its rules, its sets with their sizes, and the rule of each set that has one."""
    for key, paper in catalog["papers"].items():
        rule = f"{paper['rule'][0].upper()}{paper['rule'][1:]}"
        yield f"### {paper['paper']}: `{key}`\n"
        scaling = f"Scaling in the paper: {paper['scaling']}."
        yield f"{rule} {scaling} {paper.get('absent', '')}".rstrip() + "\n"
        sets = paper["sets"].items()
        yield ", ".join(f"{name} ({e['n']:,}×{e['m']})" for name, e in sets) + ".\n"
        for name, e in sets:
            own = f"our {e['set']}" if e["set"] != name else ""
            width = f"{e['printed_m']} columns printed" if "printed_m" in e else ""
            said = "; ".join(filter(None, [own, width, e.get("note")]))
            if said:
                yield f"- *{name}*: {said}"
        yield ""


#: What nearly every entry says, once above the list and short in it.
USUAL = "CC BY 4.0 (UCI)"
SHORT = {"UCI Machine Learning Repository": "UCI", "Python package": "PyPI"}


def sources_list(catalog):
    """What every set is, its citation, origin, license and notes."""
    legend = ", ".join(f"*{short}* is “{long}”" for long, short in SHORT.items())
    yield f"{legend}. Where no license is given, it is {USUAL}.\n"
    for name, text in catalog["licences"].items():
        yield f"*{name}* is {text}.\n"
    for name, e in sorted(catalog["sets"].items()):
        text = f"- **{name}**. {_source(e)}{''.join(f' {n}' for n in e['notes'])}"
        for long, short in SHORT.items():
            text = text.replace(long, short)
        yield text


def _source(e):
    if "of" in e:
        return f"{e['title']}. From {e['of']}."
    title = e["title"] if e["title"].endswith("?") else f"{e['title']}."
    copied = f"; copy: {e['copy']}" if "file" in e else ""
    license = "" if e["licence"] == USUAL else f" *License:* {e['licence']}."
    return f"{title} *Cite:* {e['citation']}. *From:* {e['source']}{copied}.{license}"


BLOCKS = {"sets": sets_table, "papers": papers_tables, "sources": sources_list}


def render(page, catalog):
    """The page with every generated block made anew."""
    for name, lines in BLOCKS.items():
        begin, end = f"% generated: {name}\n", "% end\n"
        head, found, rest = page.partition(begin)
        _, closed, tail = rest.partition(end)
        if not found or not closed:
            raise ValueError(f"{PAGE.name} has no lines '{begin[:-1]}' and '% end'")
        block = "\n".join(lines(catalog)).strip("\n")
        page = f"{head}{begin}\n{block}\n\n{end}{tail}"
    return page


def main(argv=None):
    """Write the page, or with ``--check`` compare only. Returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing")
    check = parser.parse_args(argv).check
    page = PAGE.read_text(encoding="utf-8")
    text = render(page, json.loads(SOURCE.read_text(encoding="utf-8")))
    if page != text and check:
        print("book/data.md is out of date (make sync)", file=sys.stderr)
        return 1
    if page != text:
        PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
