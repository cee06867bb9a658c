"""What the authoring tools share: the book as it lies on disk, read once.

A chapter is a notebook ``book/NAME.ipynb`` with its twin ``book/src/NAME.md``; a page is any other ``book/*.md``.
"""

import ast
import dataclasses
import functools
import hashlib
import io
import json
import os
import re
import tokenize
from difflib import SequenceMatcher
from pathlib import Path

import jupytext
import nbformat
import yaml
from jupytext.config import load_jupytext_config

ROOT = Path(__file__).resolve().parents[1]
DEFS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)

# Written into every notebook, so that the machine on which it ran leaves no trace in it.
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python", "pygments_lexer": "ipython3"},
}
CELL_METADATA = ("tags", "mystnb")
# The key of a notebook's metadata under which sync stores what it wrote (`Synced`). jupytext keeps it out of the twin.
SYNCED = "llpbook"

SYNC = ".venv/bin/python tools/sync_cells.py"


class BookError(ValueError):
    """A mistake of the author that a tool reports in one line, without a traceback."""


# --- files ---------------------------------------------------------------------------------------------------


def write(path, text):
    """Write ``text`` if the file differs; whole or not at all, so that a reader at the same time sees no half file."""
    path = Path(path)
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)
    return True


def read_notebook(path):
    """The notebook; a file that is no notebook is a BookError that names it."""
    try:
        return nbformat.reads(Path(path).read_text(encoding="utf-8"), as_version=4)
    except (
        nbformat.reader.NotJSONError,
        nbformat.ValidationError,
        json.JSONDecodeError,
    ) as error:
        raise BookError(
            f"book/{Path(path).name}: not a notebook ({str(error).splitlines()[0]})"
        ) from error


def dump_notebook(nb):
    """The text of a notebook file, the same for the same notebook."""
    return nbformat.writes(nb, version=4) + "\n"


def normalise(nb):
    """Drop, in place, what depends on the machine or on the editor from a notebook's metadata."""
    synced = {SYNCED: nb.metadata[SYNCED]} if SYNCED in nb.metadata else {}
    nb.metadata = nbformat.from_dict({**METADATA, **synced})
    nb.nbformat, nb.nbformat_minor = 4, 5
    for cell in nb.cells:
        cell.metadata = nbformat.from_dict(
            {k: cell.metadata[k] for k in CELL_METADATA if k in cell.metadata}
        )
        cell.pop("attachments", None)
    return nb


def twin_text(nb, path):
    """The MyST twin of a notebook, by the settings of ``[tool.jupytext]`` above ``path``."""
    return jupytext.writes(nb, fmt="md:myst", config=load_jupytext_config(str(path)))


def twin_read(text, path):
    """The notebook, without outputs, that a twin stands for."""
    return normalise(
        jupytext.reads(text, fmt="md:myst", config=load_jupytext_config(str(path)))
    )


def cell_lines(nb, text):
    """The number of the line of a twin on which each cell of ``nb`` begins; None for a cell that is not in the twin."""
    lines, at = [], 0
    for cell in nb.cells:
        source = cell.source.strip("\n")
        end = "\n```" if cell.cell_type == "code" else "\n"
        found = f"\n{text}\n".find(f"\n{source}{end}", at) if source else -1
        lines.append(None if found < 0 else text.count("\n", 0, found) + 1)
        at = at if found < 0 else found + len(source)
    return lines


def place(name, i, line):
    """Where cell ``i`` (from 1) of a chapter stands: in the notebook, and in the twin if its line is known."""
    twin = f" (src/{name}.md line {line})" if line else ""
    return f"book/{name}.ipynb cell {i}{twin}"


def meaning(cell):
    """What a cell says: of code, what runs, without comments, layout and docstrings."""
    if cell.cell_type != "code":
        return cell.source
    try:
        tree = ast.parse(cell.source)
    except SyntaxError:
        return cell.source
    for node in ast.walk(tree):
        if isinstance(node, DEFS) and docstring_node(node) is not None:
            node.body[0].value.value = ""
    return ast.dump(tree)


def merge(source, stored):
    """Give the cells of ``source``, in place, the ids and, where the text is the same, the outputs of ``stored``.

    A new cell's id is a hash of its text: the same twin gives the same bytes on every machine.
    """
    old = stored.cells if stored is not None else []
    matcher = SequenceMatcher(
        None,
        [(c.cell_type, meaning(c)) for c in old],
        [(c.cell_type, meaning(c)) for c in source.cells],
        autojunk=False,
    )
    kept = {}
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag in ("equal", "replace"):
            kept.update(
                {
                    j: (old[i], tag == "equal")
                    for i, j in zip(range(a, b), range(c, d), strict=False)
                }
            )
    used = set()
    for j, (cell, _) in kept.items():
        if (
            cell.cell_type == source.cells[j].cell_type
            and cell.get("id")
            and cell["id"] not in used
        ):
            used.add(cell["id"])
            source.cells[j]["id"] = cell["id"]
        else:
            source.cells[j].pop("id", None)
    for j, cell in enumerate(source.cells):
        before, same = kept.get(j, (None, False))
        if j not in kept or "id" not in cell:
            cell["id"] = _new_id(cell, used)
        if cell.cell_type == "code":
            cell.outputs = before.outputs if same else []
            cell.execution_count = before.execution_count if same else None
    return source


def _new_id(cell, used):
    for salt in range(len(used) + 1):
        new = hashlib.sha256(
            f"{cell.cell_type}\n{cell.source}\n{salt}".encode()
        ).hexdigest()[:8]
        if new not in used:
            used.add(new)
            return new
    raise AssertionError("more ids tried than used")


# --- who edited what since the last sync -----------------------------------------------------------------------

CONCORDANCE = re.compile(
    r"(<!-- concordance -->)(.*?)(<!-- /concordance -->)", re.DOTALL
)


def _hash(text):
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def own_text(nb):
    """A hash of what an author writes in a chapter: not the outputs, nor what sync writes itself.

    It is taken of the cells, so that twin and notebook have the same one although a file holds more than they say.
    Empty cells, which Jupyter adds at the end of a notebook, do not count.
    """
    cells = []
    for cell in nb.cells:
        source = cell.source.strip()
        if is_managed(cell):
            source = source.split("\n", 1)[0]
        elif cell.cell_type == "markdown":
            source = CONCORDANCE.sub(r"\1\3", source)
        metadata = {k: cell.metadata[k] for k in CELL_METADATA if k in cell.metadata}
        if source:
            cells.append([cell.cell_type, source, metadata])
    return _hash(json.dumps(cells, sort_keys=True))


def managed_hashes(cells):
    """``{first line: hash}`` of the managed ones among some cells."""
    sources = [cell.source.strip() for cell in cells if is_managed(cell)]
    return {source.split("\n", 1)[0]: _hash(source) for source in sources}


def synced(nb):
    """What the last sync stored in a notebook (see `stamp`); empty for a notebook that it has not written yet."""
    stored = nb.metadata.get(SYNCED) if nb is not None else None
    return stored if isinstance(stored, dict) else {}


def stamp(nb):
    """Store in the notebook, in place, what its text is, so that a later sync can tell who edited it."""
    nb.metadata[SYNCED] = nbformat.from_dict(
        {"text": own_text(nb), "managed": managed_hashes(nb.cells)}
    )
    return nb


def lost_edit(name, notebook, twin, from_notebook=False):
    """Why a sync would lose an edit, with the commands that decide; None if it would not.

    Parameters
    ----------
    name : str
        The chapter.
    notebook, twin : notebook
        The notebook as stored, and the one that the twin stands for.
    from_notebook : bool
        Whether the notebook wins.
    """
    before = synced(notebook).get("text")
    mine, other = own_text(notebook), own_text(twin)
    if before is None or mine == other or before == (other if from_notebook else mine):
        return None
    take_notebook, take_twin = f"{SYNC} --from-notebook", SYNC
    if before not in (mine, other):
        return (
            f"both book/{name}.ipynb and book/src/{name}.md were edited after the last sync. "
            f"See the difference: {SYNC} --check {name}. Keep the notebook: {take_notebook} --force {name}. "
            f"Keep the text: {take_twin} --force {name}"
        )
    if from_notebook:
        return (
            f"book/src/{name}.md was edited after the last sync. Keep the edit: {take_twin} {name}. "
            f"Discard it: {take_notebook} --force {name}"
        )
    return (
        f"book/{name}.ipynb was edited after the last sync. Keep the edit: {take_notebook} {name}. "
        f"Discard it: {take_twin} --force {name}"
    )


# --- MyST markdown -------------------------------------------------------------------------------------------

_FENCE = re.compile(r"^\s*(?:[-*+>]\s+)?(`{3,}|~{3,}|:{3,})(.*)$")
_LITERAL = {
    "code",
    "code-block",
    "code-cell",
    "sourcecode",
    "literalinclude",
    "eval-rst",
    "mermaid",
    "raw",
}


def prose_lines(text):
    """Yield ``(line, depth)`` for each line: blank where it is code to show; depth is the number of open directives."""
    if text.startswith("---\n") and "\n---" in text[3:]:  # front matter of a page
        head, text = text[4:].split("\n---", 1)
        yield from (("", 0) for _ in range(head.count("\n") + 2))
    stack = []  # (fence, is literal)
    for line in text.split("\n"):
        match = _FENCE.match(line)
        literal = bool(stack) and stack[-1][1]
        if not match or (match[1][0] == "`" and "`" in match[2]):
            yield ("" if literal else line), len(stack)
            continue
        fence, info = match[1], match[2].strip()
        closes = (
            bool(stack)
            and not info
            and fence[0] == stack[-1][0][0]
            and len(fence) >= len(stack[-1][0])
        )
        if closes:
            stack.pop()
            yield ("" if literal else line), len(stack)
        elif literal:
            yield "", len(stack)
        else:
            name = re.match(r"\{([\w:+.-]+)\}", info)
            is_literal = name[1] in _LITERAL if name else fence[0] != ":"
            yield ("" if is_literal else line), len(stack)
            stack.append((fence, is_literal))


def prose(text):
    """The text with code to show blanked, line for line."""
    return "\n".join(line for line, _ in prose_lines(text))


_DOLLAR_MATH = re.compile(r"\$\$.*?\$\$[ \t]*(?:\(([^)\s]+)\))?", re.DOTALL)
_DIRECTIVE_MATH = re.compile(
    r"(?:`{3,}|:{3,})\{math\}[^\n]*\n((?:[ \t]*:[\w-]+:[^\n]*\n)+|---\n.*?\n---\n)",
    re.DOTALL,
)
_LABEL = re.compile(r"^[ \t]*:?label:[ \t]*(\S+)", re.MULTILINE)


def equation_labels(text):
    """The labels of the display equations of a markdown text, in order."""
    text = re.sub(r"(?<!`)`[^`\n]+`(?!`)", lambda m: " " * len(m[0]), prose(text))
    found = [(m.start(), m[1]) for m in _DOLLAR_MATH.finditer(text) if m[1]]
    for match in _DIRECTIVE_MATH.finditer(text):
        label = _LABEL.search(match[1])
        if label:
            found.append((match.start(), label[1]))
    return [label for _, label in sorted(found)]


_TARGET = re.compile(r"^[ \t]*\(([^()\n]+)\)=[ \t]*$", re.MULTILINE)
_NAME = re.compile(
    r"^[ \t]*(?::(?:label|name):|label:|name:)[ \t]*(\S.*?)[ \t]*$", re.MULTILINE
)
_RST_LABEL = re.compile(
    r"^[ \t]*(?:\.\. _([^:\n]+):|:(?:label|name):[ \t]*(\S+))[ \t]*$", re.MULTILINE
)
_CODE = re.compile(r"(?<!`)(``+)(?!`)(?:(?!\n\s*\n).)*?(?<!`)\1(?!`)", re.DOTALL)
_ROLE = re.compile(
    r"(?:\{(eq|ref|numref|prf:ref)\}|:(eq|ref|numref|prf:ref):)`([^`]+)`"
)


def labels(text):
    """What a markdown text or a docstring gives a name to: targets, and the labels and names of directives.

    Those in code to show are among them: a label too many is better than a reference that is called wrong.
    """
    found = [*_TARGET.findall(text), *_NAME.findall(text), *equation_labels(text)]
    found += [a or b for a, b in _RST_LABEL.findall(text)]
    return {label.strip("`'\"") for label in found}


def references(text):
    """Yield ``(line, role, label)`` of the references in a markdown text or a docstring, lines counted from 0."""
    text = _CODE.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)
    for match in _ROLE.finditer(text):
        target = re.search(r"<([^<>]+)>\s*$", match[3])
        label = " ".join((target[1] if target else match[3]).split())
        yield text.count("\n", 0, match.start()), match[1] or match[2], label


# --- the package and its tests ---------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Module:
    """A Python file, parsed."""

    name: str  # "llpbook.mean_map", or for a test its file name
    where: str
    source: str

    @functools.cached_property
    def tree(self):
        try:
            return ast.parse(self.source)
        except SyntaxError as error:
            raise BookError(f"{self.where} line {error.lineno}: {error.msg}") from error

    @functools.cached_property
    def lines(self):
        return self.source.split("\n")

    def find(self, parts):
        """The node of a top-level function, class or constant, or of something inside a class; None without one."""
        node, body = None, self.tree.body
        for part in parts:
            node = next((n for n in body if part in _names(n)), None)
            if node is None:
                return None
            body = node.body if isinstance(node, ast.ClassDef) else []
        return node

    @property
    def public(self):
        """The public functions and classes, in the order of the file."""
        return [
            n
            for n in self.tree.body
            if isinstance(n, DEFS) and not n.name.startswith("_")
        ]

    @functools.cached_property
    def code_lines(self):
        """The numbers of the lines that hold code: not blank, not only a comment, not in a docstring."""
        skip = set()
        for node in ast.walk(self.tree):
            if (
                isinstance(node, (*DEFS, ast.Module))
                and docstring_node(node) is not None
            ):
                doc = docstring_node(node)
                skip.update(range(doc.lineno, doc.end_lineno + 1))
        return {
            n
            for n, line in enumerate(self.lines, 1)
            if line.strip() and not line.lstrip().startswith("#") and n not in skip
        }


def _names(node):
    if isinstance(node, DEFS):
        return [node.name]
    if isinstance(node, ast.Assign):
        return [t.id for t in node.targets if isinstance(t, ast.Name)]
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return [node.target.id]
    return []


def docstring_node(node):
    """The expression statement that is a node's docstring, or None."""
    first = node.body[0] if node.body else None
    value = first.value if isinstance(first, ast.Expr) else None
    return (
        first
        if isinstance(value, ast.Constant) and isinstance(value.value, str)
        else None
    )


def first_line(node):
    """The number of a definition's first line, decorators included."""
    return min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])


def docstrings(module):
    """``(line, text)`` of every docstring of a module, the text as it stands in the file."""
    for node in ast.walk(module.tree):
        doc = docstring_node(node) if isinstance(node, (*DEFS, ast.Module)) else None
        if doc is not None:
            yield doc.lineno, "\n".join(module.lines[doc.lineno - 1 : doc.end_lineno])


@dataclasses.dataclass(frozen=True)
class Equation:
    """A labelled display equation: where it stands."""

    label: str
    page: str
    where: str


@dataclasses.dataclass(frozen=True)
class Mark:
    """Something that names an equation: a line of the package (``# eq: label``) or a test."""

    label: str
    name: str  # dotted name of the function, or FILE::TEST; "" when outside of one
    role: str  # "func", "meth", "class", or "" where the API page has no entry
    where: str


def code_marks(module):
    """The ``# eq: label`` comments of a module, as Marks."""
    found = []
    _ = (
        module.tree
    )  # a file that does not parse is a BookError here, not an error of the tokenizer
    for token in tokenize.generate_tokens(io.StringIO(module.source).readline):
        match = (
            re.match(r"#\s*eq:(.*)", token.string)
            if token.type == tokenize.COMMENT
            else None
        )
        if match:
            name, role = _enclosing(module, token.start[0])
            where = f"{module.where} line {token.start[0]}"
            found += [
                Mark(label.strip(), name, role, where) for label in match[1].split(",")
            ]
    return found


def _enclosing(module, line):
    """The dotted name and the role of the outermost function or method that holds a line."""
    parts, role, body = [], "", module.tree.body
    while True:
        node = next(
            (
                n
                for n in body
                if isinstance(n, DEFS) and first_line(n) <= line <= n.end_lineno
            ),
            None,
        )
        if node is None:
            break
        parts.append(node.name)
        if not isinstance(node, ast.ClassDef):
            role = "meth" if role == "class" else "func"
            break
        role, body = "class", node.body
    if not parts:
        return "", ""
    if any(part.startswith("_") for part in parts):
        role = ""
    return ".".join([re.sub(r"\._\w+", "", module.name), *parts]), role


def test_marks(module):
    """The ``pytest.mark.equation("label", ...)`` decorators of a test file, as Marks."""
    found = []

    def visit(body, prefix):
        for node in body:
            if not isinstance(node, DEFS):
                continue
            name = f"{prefix}::{node.name}"
            for call in (
                n
                for d in node.decorator_list
                for n in ast.walk(d)
                if isinstance(n, ast.Call)
            ):
                if ast.unparse(call.func).endswith("mark.equation"):
                    where = f"{module.where} line {call.lineno}"
                    collected = node.name.startswith(
                        "Test" if isinstance(node, ast.ClassDef) else "test"
                    )
                    for arg in call.args:
                        is_text = isinstance(arg, ast.Constant) and isinstance(
                            arg.value, str
                        )
                        label = arg.value if is_text else ast.unparse(arg)
                        found.append(Mark(label, name if collected else "", "", where))
            if isinstance(node, ast.ClassDef):
                visit(node.body, name)

    visit(module.tree.body, module.name)
    return found


# --- the book ------------------------------------------------------------------------------------------------


class Book:
    """A book's root folder, read lazily and once.

    Parameters
    ----------
    root : path
        The folder that holds ``book/``, ``llpbook/``, ``tests/`` and ``_toc.yml``; each may be missing.
    """

    def __init__(self, root=ROOT):
        self.root = Path(root).resolve()
        self.folder = self.root / "book"

    def where(self, path):
        return Path(path).relative_to(self.root).as_posix()

    def notebook_path(self, name):
        return self.folder / f"{name}.ipynb"

    def twin_path(self, name):
        return self.folder / "src" / f"{name}.md"

    @functools.cached_property
    def toc(self):
        """The ``file:`` entries of ``_toc.yml`` in reading order, as written; None without the file."""
        path = self.root / "_toc.yml"
        if not path.exists():
            return None
        found = []

        def visit(node):
            if isinstance(node, dict):
                found.extend(str(node[key]) for key in ("root", "file") if key in node)
                for value in node.values():
                    visit(value)
            elif isinstance(node, list):
                for value in node:
                    visit(value)

        visit(yaml.safe_load(path.read_text(encoding="utf-8")))
        return found

    @functools.cached_property
    def chapters(self):
        """The names of the chapters: in the order of the table of contents, then those not in it."""
        names = {p.stem for p in self.folder.glob("*.ipynb")} | {
            p.stem for p in self.folder.glob("src/*.md")
        }
        listed = [
            Path(entry).name.removesuffix(".ipynb").removesuffix(".md")
            for entry in self.toc or []
        ]
        order = {name: i for i, name in reversed(list(enumerate(listed)))}
        return sorted(names, key=lambda name: (order.get(name, len(order)), name))

    @functools.cached_property
    def pages(self):
        """The pages that are not notebooks: ``{"book/NAME.md": text}``."""
        return {
            self.where(p): p.read_text(encoding="utf-8")
            for p in sorted(self.folder.glob("*.md"))
        }

    @functools.cached_property
    def notebooks(self):
        """``{name: notebook}`` as stored, in the order of the chapters."""
        paths = {name: self.notebook_path(name) for name in self.chapters}
        return {
            name: read_notebook(path) for name, path in paths.items() if path.exists()
        }

    @functools.cached_property
    def _lines(self):
        found = {}
        for name, nb in self.notebooks.items():
            twin = self.twin_path(name)
            text = twin.read_text(encoding="utf-8") if twin.exists() else ""
            found[name] = cell_lines(nb, text)
        return found

    def cell(self, name, i):
        """Where cell ``i`` (from 1) of a chapter stands: see `place`."""
        return place(name, i, self._lines[name][i - 1])

    def _modules(self, folder, pattern, named):
        paths = sorted((self.root / folder).glob(pattern))
        modules = (
            Module(named(p), self.where(p), p.read_text(encoding="utf-8"))
            for p in paths
        )
        return {m.name: m for m in modules}

    @functools.cached_property
    def modules(self):
        """``{"llpbook.mean_map": Module}`` of the package."""

        def named(path):
            return ".".join(
                path.relative_to(self.root).with_suffix("").parts
            ).removesuffix(".__init__")

        return self._modules("llpbook", "**/*.py", named)

    @functools.cached_property
    def tests(self):
        """``{"test_mean_map.py": Module}`` of the tests that `make test` runs."""
        return self._modules("tests", "*.py", lambda path: path.name)

    @functools.cached_property
    def markdown(self):
        """``(page, where, text)`` of every markdown text: the cells of the chapters in order, then the pages."""
        cells = [
            (name, self.cell(name, i), cell.source)
            for name, nb in self.notebooks.items()
            for i, cell in enumerate(nb.cells, 1)
            if cell.cell_type == "markdown"
        ]
        return cells + [
            (Path(where).stem, where, text) for where, text in self.pages.items()
        ]

    @functools.cached_property
    def equations(self):
        """Every labelled display equation of the book, in reading order."""
        return [
            Equation(label, page, where)
            for page, where, text in self.markdown
            for label in equation_labels(text)
        ]

    @functools.cached_property
    def code_marks(self):
        return [mark for module in self.modules.values() for mark in code_marks(module)]

    @functools.cached_property
    def test_marks(self):
        return [mark for module in self.tests.values() for mark in test_marks(module)]


# --- managed cells -------------------------------------------------------------------------------------------

_NAMES = re.compile(r"^#\s*(llpbook(?:\.\w+)+(?:\s*,\s*llpbook(?:\.\w+)+)*)\s*$")


def is_managed(cell):
    return cell.cell_type == "code" and "llpbook" in cell.metadata.get("tags", [])


def managed_names(source):
    """The dotted names on the first line of a cell; empty if the line is no such list."""
    match = _NAMES.match(source.split("\n", 1)[0])
    return [name.strip() for name in match[1].split(",")] if match else []


def resolve(modules, name):
    """The module and the parts inside it that a dotted name means; the longest module name wins."""
    parts = name.split(".")
    for n in range(len(parts) - 1, 0, -1):
        module = modules.get(".".join(parts[:n]))
        if module is not None:
            # What a package takes from its private parts is public there.
            inside = [m for k, m in modules.items() if k.startswith(f"{module.name}._")]
            found = (m for m in [module, *inside] if m.find(parts[n:]) is not None)
            return next(found, module), parts[n:]
    return None, parts
