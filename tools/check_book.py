"""Check the book's files: each rule is a function below, listed in RULES.

    tools/check_book.py               print every finding, exit 1 if there is one
    tools/check_book.py --rules       print the rules
    tools/check_book.py --only RULE   check one rule (may be given more than once)

A finding reads ``FILE cell N (TWIN line M): message``; cells of all kinds are counted from 1, and M is the line of the
chapter's text on which the cell begins.
"""

import argparse
import ast
import json
import re
import statistics
import sys
from collections import Counter
from pathlib import Path

import _book
from _book import ROOT, Book, BookError

OUTPUT_BYTES = 200_000  # of a chapter
CELL_LINES, CELL_MEDIAN, LINE_LENGTH = 30, 5, 88
FUNCTION_LINES, CLASS_LINES, MODULE_LINES = 25, 60, 300
NOUNS = Path(__file__).with_name("proper_nouns.txt")


def _cells(book, kind=None):
    """Yield ``(where, cell)`` for the cells of all chapters."""
    for name, nb in book.notebooks.items():
        for i, cell in enumerate(nb.cells, 1):
            if kind is None or cell.cell_type == kind:
                yield book.cell(name, i), cell


def _length(source):
    """Lines of code: blank lines and lines that are only a comment do not count."""
    return sum(
        1
        for line in source.splitlines()
        if line.strip() and not line.lstrip().startswith("#")
    )


# --- notebooks -----------------------------------------------------------------------------------------------


def twins(book):
    for name in book.chapters:
        notebook, twin = book.notebook_path(name), book.twin_path(name)
        if not notebook.exists():
            yield f"{book.where(twin)}: has no notebook {book.where(notebook)} (make sync)"
        elif not twin.exists():
            yield f"{book.where(notebook)}: has no twin {book.where(twin)} (make sync)"
        else:
            nb = _book.normalise(_book.read_notebook(notebook))
            text = twin.read_text(encoding="utf-8")
            if _book.twin_text(nb, notebook) != text:
                lost = _book.lost_edit(name, nb, _book.twin_read(text, notebook))
                behind = f"{book.where(notebook)}: differs from {book.where(twin)} (make sync)"
                yield lost or behind


def executed(book):
    for name, nb in book.notebooks.items():
        code = [i for i, cell in enumerate(nb.cells, 1) if cell.cell_type == "code"]
        wrong = [
            i
            for count, i in enumerate(code, 1)
            if nb.cells[i - 1].execution_count != count
        ]
        if wrong:
            cells = "1 cell has" if len(wrong) == 1 else f"{len(wrong)} cells have"
            yield (
                f"book/{name}.ipynb: {cells} not run in order, from cell {wrong[0]} (make run CH={name})"
            )


def clean_outputs(book):
    for where, cell in _cells(book, "code"):
        for output in cell.outputs:
            if output.get("name") == "stderr":
                yield f"{where}: wrote to stderr: {output.text.strip().splitlines()[-1][:80]}"
            elif output.output_type == "error":
                yield f"{where}: ended with {output.ename}: {output.evalue[:80]}"


def alt_text(book):
    for where, cell in _cells(book, "code"):
        shown = any(
            key.startswith("image/")
            for output in cell.outputs
            for key in output.get("data", {})
        )
        if (
            shown
            and not str(
                cell.metadata.get("mystnb", {}).get("image", {}).get("alt") or ""
            ).strip()
        ):
            yield f"{where}: a figure without alt text (mystnb: image: alt)"
    for _, where, text in book.markdown:
        text = _book.prose(text)
        if re.search(r"!\[\s*\]\(", text):
            yield f"{where}: an image without alt text (![what it shows](file))"
        for tag in re.findall(r"<img\b[^>]*>", text):
            if not re.search(r"alt=[\"'][^\"']", tag):
                yield f"{where}: {tag[:60]} without alt text"
        for options in re.findall(
            r"(?:`{3,}|:{3,})\{(?:figure|image)\}[^\n]*\n((?:[ \t]*:[\w-]+:[^\n]*\n)*)",
            text,
        ):
            if not re.search(r"^[ \t]*:alt:[ \t]*\S", options, re.MULTILINE):
                yield f"{where}: a figure or image directive without :alt:"


def output_size(book):
    for name, nb in book.notebooks.items():
        size = sum(
            len(json.dumps(c.outputs, ensure_ascii=False).encode())
            for c in nb.cells
            if c.cell_type == "code"
        )
        if size > OUTPUT_BYTES:
            yield f"book/{name}.ipynb: {size / 1000:.0f} kB of stored outputs, above {OUTPUT_BYTES // 1000} kB"


def cell_length(book):
    for name, nb in book.notebooks.items():
        lengths = []
        for i, cell in enumerate(nb.cells, 1):
            if cell.cell_type == "code" and not _book.is_managed(cell):
                lengths.append(_length(cell.source))
                if lengths[-1] > CELL_LINES:
                    yield f"{book.cell(name, i)}: {lengths[-1]} lines of code, above {CELL_LINES}"
        if lengths and statistics.median(lengths) > CELL_MEDIAN:
            yield f"book/{name}.ipynb: the median cell has {statistics.median(lengths):g} lines, above {CELL_MEDIAN}"


def line_length(book):
    for where, cell in _cells(book, "code"):
        for line in cell.source.splitlines():
            if len(line) > LINE_LENGTH and not _book.is_managed(cell):
                yield f"{where}: a line of {len(line)} characters, the page shows {LINE_LENGTH}: {line[:50]}"


def folding_proofs(book):
    for _, where, text in book.markdown:
        if re.search(r"\{prf:proof\}[^\n]*\n:class:[^\n]*dropdown", text):
            yield f"{where}: a prf:proof cannot fold, and stops the folding of all that follows; use {{dropdown}} Proof"


def untagged(book):
    for where, cell in _cells(book, "code"):
        if not _book.is_managed(cell) and _book.managed_names(cell.source):
            yield f"{where}: the first line names {_book.managed_names(cell.source)[0]}, but the tag llpbook is missing"


# --- text ----------------------------------------------------------------------------------------------------


def _headings(text):
    """``(level, title, depth)`` of the headings of a markdown text; depth is the number of directives around it."""
    for line, depth in _book.prose_lines(text):
        match = re.match(r"(#{1,6})\s+(.*?)\s*#*\s*$", line)
        if match:
            yield len(match[1]), match[2], depth


def _nouns():
    lines = NOUNS.read_text(encoding="utf-8").splitlines()
    return {line.strip() for line in lines if line.strip() and not line.startswith("#")}


def bad_case(title, nouns):
    """The words of a heading whose capital letter, or lack of one, breaks sentence case.

    Code, mathematics, roles, acronyms and words with a capital or a digit inside (MeanMap, LLP) may stand anywhere; a
    word after a full stop, colon, question mark or dash may have a capital; so may the words in ``nouns``.
    """
    for name in sorted(
        nouns, key=len, reverse=True
    ):  # names of several words, or of a fixed lower case
        if " " in name or name[0].islower():
            title = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", "0", title)
    title = re.sub(r"(\{[\w:]+\})?`[^`]*`|\$[^$]*\$|<[^>]*>", "0", title)
    title = re.sub(r"\[([^\]]*)\]\([^)]*\)|[*_]", lambda m: m[1] or "", title)
    bad, fresh = [], True
    for word in re.findall(r"[^\s\-/–—:.?!;,()\[\]\"“”]+|[:.?!—–(]", title):
        if not word[0].isalnum():
            fresh = fresh or word in ":.?!—–("
            continue
        stem = re.sub(r"['’]s?$", "", word)
        known = stem in nouns or stem.removesuffix("s") in nouns
        free = (
            fresh
            or known
            or len(stem) == 1
            or any(c.isupper() or c.isdigit() for c in stem[1:])
        )
        if not free and stem[0].isupper():
            bad.append(word)
        fresh = False
    first = re.match(r"\W*(\w)", title)
    if first and first[1].islower() and first[1].isalpha():
        bad.insert(0, title.split()[0])
    return bad


def heading_case(book):
    nouns = _nouns()
    for _, where, text in book.markdown:
        for _, title, _ in _headings(text):
            bad = bad_case(title, nouns)
            if bad:
                yield f"{where}: heading '{title}' is not in sentence case: {', '.join(bad)} (tools/{NOUNS.name})"


def heading_levels(book):
    texts = {f"book/{name}.ipynb": [] for name in book.notebooks} | {
        where: [] for where in book.pages
    }
    for _, where, text in book.markdown:
        texts[where.split(" ")[0]].append((where, text))
    for file, parts in texts.items():
        found = [
            (where, level, title)
            for where, text in parts
            for level, title, depth in _headings(text)
            if not depth
        ]
        tops = sum(1 for _, level, _ in found if level == 1)
        if tops != 1:
            yield f"{file}: {tops} headings of level 1, not one"
        before = 0
        for where, level, title in found:
            if level > before + 1:
                yield f"{where}: heading '{title}' of level {level} after level {before}"
            before = level


_MACHINE = re.compile(
    r"(?<![\w.~])/(?:home|work|root|tmp|Users)/[^\s\"'`)]*|\bsite-packages\b|\bipykernel_\d+"
)
_TALK = re.compile(
    r"\b(?:as an ai|ai (?:assistant|model|agent)|claude|chatgpt|gpt-\d|anthropic|openai|copilot|"
    r"sub-?agent|(?:this|previous|earlier|last) (?:session|conversation|prompt)|the user asked|as (?:you )?requested|"
    r"todo|fixme|xxx)\b",
    re.IGNORECASE,
)


def _all_text(book):
    for where, cell in _cells(book):
        yield where, cell.source
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            shown = [data[key] for key in data if key.startswith("text/")]
            yield (
                f"{where} output",
                "\n".join(map(str, [output.get("text", ""), *shown])),
            )
    yield from book.pages.items()
    for module in book.modules.values():
        yield module.where, module.source
    for name in ("README.md", "CONTRIBUTING.md"):
        if (book.root / name).exists():
            yield name, (book.root / name).read_text(encoding="utf-8")


def machine_paths(book):
    for where, text in _all_text(book):
        for match in _MACHINE.finditer(text):
            yield f"{where}: a path of one machine: {match[0]}"


def session_talk(book):
    for where, text in _all_text(book):
        for match in _TALK.finditer(text):
            yield f"{where}: talk about how the text was made: {match[0]}"


# --- the table of contents and the three rooms ----------------------------------------------------------------


def toc(book):
    files = {f"book/{name}.ipynb" for name in book.notebooks} | set(book.pages)
    if book.toc is None:
        if files:
            yield "_toc.yml: missing"
        return
    listed = {}
    for entry in book.toc:
        found = (
            [entry]
            if (book.root / entry).is_file()
            else [entry + s for s in (".ipynb", ".md")]
        )
        found = [path for path in found if (book.root / path).is_file()]
        if not found:
            yield f"_toc.yml: {entry} is not a file"
        elif found[0].endswith(".ipynb") and not entry.endswith(".ipynb"):
            yield f"_toc.yml: {entry} is a notebook: list it with its suffix, the Binder link follows it"
        listed.update((path, entry) for path in found[:1])
    for path, count in Counter(book.toc).items():
        if count > 1:
            yield f"_toc.yml: {path} is listed {count} times"
    for path in sorted(files - set(listed)):
        yield f"{path}: not in _toc.yml"


def _method_modules(book):
    """The modules that have a chapter of the same name."""
    for name in book.notebooks:
        if f"llpbook.{name}" in book.modules:
            yield name, book.modules[f"llpbook.{name}"]


def rooms(book):
    for name, module in _method_modules(book):
        if f"test_{name}.py" not in book.tests:
            yield f"{module.where}: has a chapter but no tests/test_{name}.py"


def shown(book):
    for name, module in _method_modules(book):
        cells = [cell for cell in book.notebooks[name].cells if _book.is_managed(cell)]
        names = {n for cell in cells for n in _book.managed_names(cell.source)}
        for node in module.public:
            if f"{module.name}.{node.name}" not in names:
                yield f"book/{name}.ipynb: no managed cell shows {module.name}.{node.name}"


def _is_boilerplate(node):
    """What scikit-learn wants in every class, one line a parameter: the limit is for what the method adds to it."""
    if isinstance(node, ast.FunctionDef):
        return node.name == "__init__"
    targets = node.targets if isinstance(node, ast.Assign) else [node]
    names = [getattr(getattr(t, "target", t), "id", None) for t in targets]
    return names == ["_parameter_constraints"]


def _class_size(module, node):
    lines = set(range(_book.first_line(node), node.end_lineno + 1))
    for inner in node.body:
        if _is_boilerplate(inner):
            lines -= set(range(_book.first_line(inner), inner.end_lineno + 1))
    return len(lines & module.code_lines)


def module_size(book):
    for _, module in _method_modules(book):
        if len(module.code_lines) > MODULE_LINES:
            yield f"{module.where}: {len(module.code_lines)} lines, above {MODULE_LINES}"
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef):
                size = _class_size(module, node)
                if size > CLASS_LINES:
                    yield f"{module.where} line {node.lineno}: class {node.name} has {size} lines, above {CLASS_LINES}"
            elif isinstance(node, _book.DEFS):
                body = set(range(node.body[0].lineno, node.end_lineno + 1))
                size = len(body & module.code_lines)
                if size > FUNCTION_LINES:
                    yield f"{module.where} line {node.lineno}: {node.name} has {size} lines, above {FUNCTION_LINES}"


# --- the concordance -----------------------------------------------------------------------------------------


def equation_labels(book):
    for equation in book.equations:
        if not equation.label.startswith(("eq-", "step-")):
            yield f"{equation.where}: the label {equation.label} starts with neither eq- nor step-"
    for label, count in Counter(e.label for e in book.equations).items():
        if count > 1:
            where = ", ".join(e.where for e in book.equations if e.label == label)
            yield f"{where}: the label {label} is used {count} times"


def equations_kept(book):
    in_code = {m.label for m in book.code_marks if m.name}
    in_tests = {m.label for m in book.test_marks if m.name}
    for equation in book.equations:
        if equation.label.startswith("eq-"):
            if equation.label not in in_code:
                yield f"{equation.where}: {equation.label} has no '# eq: {equation.label}' in llpbook/"
            if equation.label not in in_tests:
                yield f'{equation.where}: {equation.label} has no test marked equation("{equation.label}")'


def marks_known(book):
    known = {e.label for e in book.equations}
    for mark in [*book.code_marks, *book.test_marks]:
        if mark.label not in known:
            yield f"{mark.where}: no chapter has an equation {mark.label or '(empty)'}"
        elif not mark.name:
            yield f"{mark.where}: {mark.label} is named outside of a function, or of a test"
        elif not mark.label.startswith("eq-"):
            yield f"{mark.where}: {mark.label} is a step, not an equation (only labels in eq- are implemented)"


def concordance_shown(book):
    for name, nb in book.notebooks.items():
        text = "\n".join(
            cell.source for cell in nb.cells if cell.cell_type == "markdown"
        )
        has_promise = any(
            e.page == name and e.label.startswith("eq-") for e in book.equations
        )
        if has_promise and "<!-- concordance -->" not in text:
            yield f"book/{name}.ipynb: labelled equations, but no '<!-- concordance -->' block"


# --- references ----------------------------------------------------------------------------------------------

SPHINX_LABELS = {"genindex", "modindex", "py-modindex", "search"}


def _names_in(value):
    """The values of all keys ``name`` in nested dictionaries: how MyST-NB names the figure of a cell."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from [str(inner)] if key == "name" else _names_in(inner)


def references(book):
    docs = [
        (module, *doc)
        for module in book.modules.values()
        for doc in _book.docstrings(module)
    ]
    known = {
        label
        for text in [text for *_, text in book.markdown] + [text for *_, text in docs]
        for label in _book.labels(text)
    } | SPHINX_LABELS
    for _, cell in _cells(book):
        known.update(_names_in(cell.metadata.get("mystnb", {})))
    equations = {e.label for e in book.equations}
    equations |= {label for *_, text in docs for label in _book.labels(text)}
    # Sphinx writes all labels but those of equations in lower case.
    known = {label.lower() for label in known}

    def bad(role, label):
        if ":" in label:  # of another site: NAME:label
            return False
        return label not in equations if role == "eq" else label.lower() not in known

    for _, where, text in book.markdown:
        for _, role, label in _book.references(_book.prose(text)):
            if bad(role, label):
                yield f"{where}: {{{role}}}`{label}` refers to nothing in the book"
    for module, line, text in docs:
        for below, role, label in _book.references(text):
            if bad(role, label):
                yield f"{module.where} line {line + below}: :{role}:`{label}` refers to nothing in the book"


RULES = {
    "twins": (twins, "every notebook has a twin that says the same"),
    "executed": (
        executed,
        "code cells carry the counts 1 to n: nbval passes a cell that never ran",
    ),
    "clean_outputs": (clean_outputs, "no cell wrote to stderr or ended with an error"),
    "alt_text": (alt_text, "every figure and image says in words what it shows"),
    "output_size": (
        output_size,
        f"at most {OUTPUT_BYTES // 1000} kB of stored outputs a chapter",
    ),
    "cell_length": (
        cell_length,
        f"no code cell above {CELL_LINES} lines, the median of a chapter at most {CELL_MEDIAN} (managed cells, blank "
        "lines and comments do not count)",
    ),
    "line_length": (
        line_length,
        f"no line of code above {LINE_LENGTH} characters (managed cells are formatted with the package)",
    ),
    "folding_proofs": (folding_proofs, "a proof that folds is a {dropdown}"),
    "untagged": (untagged, "a code cell that starts with '# llpbook.X' is managed"),
    "heading_case": (
        heading_case,
        f"headings are in sentence case; names are listed in tools/{NOUNS.name}",
    ),
    "heading_levels": (
        heading_levels,
        "one heading of level 1 a page, and no level skipped",
    ),
    "machine_paths": (
        machine_paths,
        "no path of the machine that made the book, in text or outputs",
    ),
    "session_talk": (
        session_talk,
        "no talk about how the text was made, no notes left to do",
    ),
    "toc": (toc, "the table of contents and the files of book/ are the same set"),
    "rooms": (rooms, "a module with a chapter has a test file"),
    "shown": (
        shown,
        "a chapter shows every public function and class of its module, whole, in a managed cell",
    ),
    "module_size": (
        module_size,
        f"in a module with a chapter: functions at most {FUNCTION_LINES} lines, classes {CLASS_LINES}, the file "
        f"{MODULE_LINES} (docstrings, blank lines and comments do not count; in a class, nor do __init__ and "
        "_parameter_constraints)",
    ),
    "equation_labels": (
        equation_labels,
        "a labelled equation starts with eq- or step-, and its label is used once",
    ),
    "equations_kept": (
        equations_kept,
        "an eq- equation has a '# eq: LABEL' in the package and a test that names it",
    ),
    "marks_known": (
        marks_known,
        "what code and tests name is an eq- equation of a chapter, from inside a function",
    ),
    "concordance_shown": (
        concordance_shown,
        "a chapter with eq- equations ends with the concordance table",
    ),
    "references": (
        references,
        "what {eq}, {ref}, {numref} and {prf:ref} name exists, in the text and in the docstrings (:eq:)",
    ),
}


def findings(book, names=None):
    """Yield ``(rule, message)`` for every breach of the named rules, or of all."""
    for name in names or RULES:
        for message in RULES[name][0](book):
            yield name, message


def main(argv=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rules", action="store_true", help="print the rules and stop")
    parser.add_argument(
        "--only", action="append", choices=RULES, metavar="RULE", help="check this rule"
    )
    parser.add_argument(
        "--root", type=Path, default=ROOT, help="the folder of the book"
    )
    args = parser.parse_args(argv)
    if args.rules:
        width = max(map(len, RULES))
        print(
            "\n".join(f"{name:<{width}}  {text}" for name, (_, text) in RULES.items())
        )
        return 0
    count = 0
    try:
        for name, message in findings(Book(args.root), args.only):
            count += 1
            print(f"{message} [{name}]")
    except BookError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return int(count > 0)


if __name__ == "__main__":
    sys.exit(main())
