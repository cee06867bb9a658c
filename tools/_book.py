"""What the authoring tools share: the book as it lies on disk, read once.

A chapter is a notebook ``book/NAME.ipynb`` with its twin ``book/src/NAME.md``; a page is any other ``book/*.md``. A
room is a module ``llpbook/NAME.py``, or a package ``llpbook/NAME/`` whose private parts ``_part.py`` belong to it.
"""

import ast
import dataclasses
import functools
import hashlib
import json
import os
import re
import tomllib
from collections import Counter, defaultdict, namedtuple
from pathlib import Path

import jupytext
import nbformat
from jupytext.config import load_jupytext_config
from markdown_it import MarkdownIt
from mdit_py_plugins.colon_fence import colon_fence_plugin
from mdit_py_plugins.dollarmath import dollarmath_plugin

ROOT = Path(__file__).resolve().parents[1]
WIDTH = 88  # of a line of code on a page
DEFS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)

# Written into every notebook, so that the machine on which it ran leaves no trace in it.
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python", "pygments_lexer": "ipython3"},
}
CELL_METADATA = ("tags", "mystnb")
# What JupyterLab folds for a tag of the site.
FOLDS = {"hide-input": ["source_hidden"], "hide-output": ["outputs_hidden"]}
FOLDS["hide-cell"] = FOLDS["remove-cell"] = ["source_hidden", "outputs_hidden"]
FOLDS["remove-input"] = FOLDS["hide-input"]
# The key of a notebook's metadata under which sync stores what it wrote (`stamp`). jupytext keeps it out of the twin.
SYNCED = "llpbook"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
VERSION = PROJECT["version"]
# "0.1.0 (YEAR-MONTH-DAY)" in the files of a release, else "Unreleased".
_CHANGES = (ROOT / "CHANGELOG.md").read_text("utf-8")
CHANGES_OF = re.search("^## (.*)$", _CHANGES, re.MULTILINE)[1]
IS_RELEASED = CHANGES_OF.startswith(f"{VERSION} (")


class BookError(ValueError):
    """A mistake of the author that a tool reports in one line, without a traceback."""


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()[:16]


# --- files ---------------------------------------------------------------------------------------------------


def read(path):
    """The text of a file; empty without the file."""
    return path.read_text(encoding="utf-8") if path.exists() else ""


def write(path, text):
    """Write a file, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)


def read_notebook(path):
    """The notebook; a file that is no notebook is a BookError that names it."""
    try:
        return nbformat.reads(read(path), as_version=4)
    except (nbformat.reader.NotJSONError, nbformat.ValidationError) as error:
        reason = str(error).splitlines()[0]
        raise BookError(f"book/{path.name}: not a notebook ({reason})") from error


def dump_notebook(nb):
    """The text of a notebook file, the same for the same notebook."""
    return nbformat.writes(nb, version=4) + "\n"


def own_metadata(cell):
    """What of a cell's metadata an author sets."""
    return {key: cell.metadata[key] for key in CELL_METADATA if key in cell.metadata}


def normalize(nb):
    """Drop, in place, what depends on the machine or on the editor; a cell's id is a hash of its text.

    JupyterLab folds what the site folds: the code of a solution, and what a tag hides.
    """
    kept = {SYNCED: nb.metadata[SYNCED]} if SYNCED in nb.metadata else {}
    nb.metadata = nbformat.from_dict({**METADATA, **kept})
    nb.nbformat, nb.nbformat_minor = 4, 5
    seen, solution = Counter(), False
    for cell in nb.cells:
        cell.metadata = nbformat.from_dict(own_metadata(cell))
        hidden = {
            part for tag in cell.metadata.get("tags", []) for part in FOLDS.get(tag, ())
        }
        for gate in re.findall(r"\{solution-(start|end)\}", cell.source):
            solution = gate == "start"
        hidden.update(FOLDS["hide-cell"] if solution else ())
        if hidden and cell.cell_type == "code":
            cell.metadata["jupyter"] = dict.fromkeys(sorted(hidden), True)
        cell.pop("attachments", None)
        text = f"{cell.cell_type}\n{cell.source}"
        cell["id"] = digest(f"{text}\n{seen[text]}")[:8]
        seen[text] += 1
    return nb


def twin_text(nb, path):
    """The MyST twin of a notebook, by the settings of ``[tool.jupytext]`` above ``path``."""
    return jupytext.writes(nb, fmt="md:myst", config=load_jupytext_config(str(path)))


def twin_read(text, path):
    """The notebook, without outputs, that a twin stands for."""
    config = load_jupytext_config(str(path))
    return normalize(jupytext.reads(text, fmt="md:myst", config=config))


# How the lines begin that sync writes at the top of a chapter's first code cell; an empty line ends them.
INSTALL = "# Installs what is missing, as in Colab; where the book is set up, nothing happens."


def own_source(source):
    """The source of a cell without the lines that install what the chapter needs."""
    first, _, rest = source.partition("\n\n")
    return rest if first.startswith(INSTALL) else source


@functools.cache
def code_key(source):
    """What a code cell does: its syntax without comments, layout and docstrings; its text where it does not parse."""
    source = own_source(source)
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return source
    for node in ast.walk(tree):
        if isinstance(node, DEFS) and ast.get_docstring(node) is not None:
            del node.body[0]
    quiet = source.rstrip().endswith(";")  # which IPython reads, and Python does not
    return f"{ast.dump(tree)}{quiet}"


def keep_outputs(nb, stored):
    """Give the code cells of ``nb``, in place, the outputs of the stored cells that do the same."""
    pool = defaultdict(list)
    for cell in stored.cells if stored else []:
        if cell.cell_type == "code":
            pool[code_key(cell.source)].append(cell)
    for cell in nb.cells:
        same = cell.cell_type == "code" and pool[code_key(cell.source)]
        if same:
            before = same.pop(0)
            cell.outputs, cell.execution_count = before.outputs, before.execution_count
    return nb


# --- who edited what since the last sync -----------------------------------------------------------------------

CONCORDANCE = re.compile(r"(<!-- concordance -->).*?(<!-- /concordance -->)", re.S)


def own_text(nb):
    """A hash of what an author writes in a chapter: not the outputs, nor what sync writes itself.

    Empty cells, which Jupyter adds at the end of a notebook, do not count.
    """
    cells = []
    for cell in nb.cells:
        source = own_source(cell.source).strip()
        if is_managed(cell):
            source = header(source) or source.split("\n", 1)[0]
        elif cell.cell_type == "markdown":
            source = CONCORDANCE.sub(r"\1\2", source)
        if source:
            cells.append([cell.cell_type, source, own_metadata(cell)])
    return digest(json.dumps(cells, sort_keys=True))


def lost_edit(name, notebook, twin, from_notebook=False):
    """Why a sync would lose an edit, with the commands that decide; None if it would not."""
    before = notebook.metadata.get(SYNCED, {}).get("text")
    texts = own_text(notebook), own_text(twin)
    if before in (None, texts[from_notebook]) or texts[0] == texts[1]:
        return None
    if from_notebook:
        keep, file = f"make sync CH={name}", f"book/src/{name}.md"
    else:
        keep, file = f"make from-notebook CH={name}", f"book/{name}.ipynb"
    return f"{file} was edited after the last sync. Keep it: {keep}. Give it up: git checkout {file}"


# --- MyST markdown -------------------------------------------------------------------------------------------

_MYST = MarkdownIt("commonmark").use(colon_fence_plugin)
_MYST.use(dollarmath_plugin, allow_labels=True, double_inline=True)
# Directives whose content is no markdown.
_LITERAL = {"code", "code-block", "code-cell", "eval-rst", "math", "mermaid", "raw"}


@functools.cache
def tokens(text):
    """The tokens of a markdown text, also those inside directives.

    A directive is a token of type ``directive``: its name is the ``tag``, its options are the ``meta``.
    """
    return tuple(_tokens(text))


def _tokens(text):
    for token in _MYST.parse(text):
        name = re.match(r"\s*\{([\w:+.-]+)\}", token.info)
        if not name or token.type not in ("fence", "colon_fence"):
            yield token
            continue
        # the options of either form; those of directives inside are among them
        options = re.findall(r"^\s*:?([\w-]+):[ \t]*(.+)$", token.content, re.MULTILINE)
        token.type, token.tag, token.meta = "directive", name[1], dict(options[::-1])
        yield token
        if name[1] not in _LITERAL:
            yield from tokens(token.content)


def equation_labels(text):
    """The labels of the display equations of a markdown text, in order."""
    found = []
    for token in tokens(text):
        if token.type == "math_block_label":
            found.append(token.info)
        elif token.type == "directive" and token.tag == "math":
            found.append(token.meta.get("label", ""))
    return list(filter(None, found))


# --- the package and its tests ---------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Module:
    """A Python file, parsed."""

    name: str  # "llpbook.mean_map", or for a test its file name
    where: str
    source: str

    @functools.cached_property
    def tree(self):
        return ast.parse(self.source, self.where)

    @property
    def room(self):
        """The module to which this one belongs: for a private part of a package the package, else itself."""
        # llpbook.variants._parts gives llpbook.variants; llpbook._kernels stays
        return re.sub(r"^(llpbook\.[a-z][\w.]*?)\._.*$", r"\1", self.name)

    def find(self, parts):
        """The node of a top-level function, class or constant, or of something inside a class; None without one."""
        node, body = None, self.tree.body
        for part in parts:
            node = next((n for n in body if part in names(n)), None)
            body = node.body if isinstance(node, ast.ClassDef) else []
        return node

    def source_of(self, node):
        """The name of the module that a relative import takes from."""
        parts = self.name.split(".")
        parts += [""] * self.where.endswith("/__init__.py")  # a package is one level up
        return ".".join([*parts[: -node.level], *filter(None, [node.module])])

    def around(self, line):
        """The classes that hold a line and the outermost function in them, from the outside."""
        found, body = [], self.tree.body
        while body:
            here = [n for n in body if isinstance(n, DEFS) and line in line_range(n)]
            found += here
            body = here[0].body if here and isinstance(here[0], ast.ClassDef) else []
        return found

    @functools.cached_property
    def code_lines(self):
        """The numbers of the lines that hold code: not blank, not only a comment, not in a docstring."""
        skip = {n for doc in docstrings(self.tree) for n in line_range(doc)}
        return {
            n
            for n, line in enumerate(self.source.split("\n"), 1)
            if line.strip() and not line.lstrip().startswith("#") and n not in skip
        }


def names(node):
    """What a statement defines, or takes from a part of its package."""
    if isinstance(node, DEFS):
        return [node.name]
    if isinstance(node, ast.ImportFrom) and node.level:
        return [alias.name for alias in node.names]
    targets = getattr(node, "targets", [getattr(node, "target", None)])
    return [t.id for t in targets if isinstance(t, ast.Name)]


def docstrings(tree):
    """The statements that are docstrings of a tree and of what it defines."""
    for node in ast.walk(tree):
        is_documented = isinstance(node, (*DEFS, ast.Module))
        if is_documented and ast.get_docstring(node) is not None:
            yield node.body[0]


def line_range(node):
    """The numbers of a node's lines, decorators included."""
    first = [node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))]
    return range(min(first), node.end_lineno + 1)


# A labeled display equation.
Equation = namedtuple("Equation", "label page where")
# What names an equation: a comment of the package, or a test. `name` is the public name of the function, or FILE::TEST,
# empty outside of one; `role` is that of its entry on the API page, if it has one.
Mark = namedtuple("Mark", "label where name role", defaults=("",))


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
        """The files of ``_toc.yml`` in reading order, as written."""
        text = read(self.root / "_toc.yml")
        return re.findall(r"^[-\s]*(?:root|file): *(\S+)", text, re.MULTILINE)

    @functools.cached_property
    def parts(self):
        """``{caption: names}`` of the parts of the table of contents."""
        _, *parts = read(self.root / "_toc.yml").split("- caption: ")
        files = {
            part.split("\n")[0]: re.findall(r"file: *(\S+)", part) for part in parts
        }
        return {
            caption: [Path(f).stem for f in found] for caption, found in files.items()
        }

    @functools.cached_property
    def chapters(self):
        """The names of the chapters: in the order of the table of contents, then those not in it."""
        files = [*self.folder.glob("*.ipynb"), *self.folder.glob("src/*.md")]
        listed = [Path(entry).stem for entry in self.toc]
        names = {path.stem for path in files}
        return [n for n in listed if n in names] + sorted(names - set(listed))

    @functools.cached_property
    def pages(self):
        """The pages that are not notebooks: ``{"book/NAME.md": text}``."""
        return {self.where(p): read(p) for p in sorted(self.folder.glob("*.md"))}

    @functools.cached_property
    def notebooks(self):
        """``{name: notebook}`` as stored, in the order of the chapters."""
        paths = {name: self.notebook_path(name) for name in self.chapters}
        return {n: read_notebook(path) for n, path in paths.items() if path.exists()}

    def places(self, name, nb):
        """Yield where each cell of a chapter stands: in the notebook, and in the twin if it is there."""
        text, at = read(self.twin_path(name)), 0
        for i, cell in enumerate(nb.cells, 1):
            hit = text.find(f"\n{cell.source}\n", at)
            at = max(at, hit + 1)
            line = text.count("\n", 0, at) + 1
            twin = f" (src/{name}.md line {line})" if hit >= 0 else ""
            yield f"book/{name}.ipynb cell {i}{twin}"

    @functools.cached_property
    def cells(self):
        """``(chapter, where, cell)`` for every cell of the book."""
        return [
            (name, where, cell)
            for name, nb in self.notebooks.items()
            for where, cell in zip(self.places(name, nb), nb.cells, strict=True)
        ]

    @property
    def code(self):
        """``(where, cell)`` of every code cell."""
        return [(where, c) for _, where, c in self.cells if c.cell_type == "code"]

    @functools.cached_property
    def markdown(self):
        """``(page, where, text)`` of every markdown text: the cells of the chapters in order, then the pages."""
        texts = [(n, w, c.source) for n, w, c in self.cells if c.cell_type != "code"]
        return texts + [(Path(w).stem, w, text) for w, text in self.pages.items()]

    @functools.cached_property
    def equations(self):
        """Every labeled display equation of the book, in reading order."""
        found = ((equation_labels(text), p, where) for p, where, text in self.markdown)
        return [Equation(x, p, where) for labels, p, where in found for x in labels]

    @functools.cached_property
    def modules(self):
        """``{"llpbook.mean_map": Module}`` of the package."""
        found = {}
        for path in sorted(self.root.glob("llpbook/**/*.py")):
            parts = path.relative_to(self.root).with_suffix("").parts
            name = ".".join(parts).removesuffix(".__init__")
            found[name] = Module(name, self.where(path), read(path))
        return found

    @functools.cached_property
    def tests(self):
        """The test files that `make test` runs."""
        paths = sorted(self.root.glob("tests/*.py"))
        return [Module(path.name, self.where(path), read(path)) for path in paths]

    @property
    def rooms(self):
        """``(chapter, files)`` of every room that has a chapter: its module, and the private parts of a package."""
        for name in self.notebooks:
            files = [m for m in self.modules.values() if m.room == f"llpbook.{name}"]
            if files:
                yield name, files

    def resolve(self, name):
        """The module and the node that a dotted name means, also through an ``__init__``; or None, None."""
        parts = name.split(".")
        for n in range(len(parts) - 1, 0, -1):
            module = self.modules.get(".".join(parts[:n]))
            if module:
                node = module.find(parts[n : n + 1])
                while module and isinstance(node, ast.ImportFrom):
                    module = self.modules.get(module.source_of(node))
                    node = module and module.find(parts[n : n + 1])
                node = module and module.find(parts[n:])
                return (module, node) if node else (None, None)
        return None, None

    @functools.cached_property
    def code_marks(self):
        """The ``# eq: label`` comments of the package, named as a reader imports what they stand in."""
        return [mark for m in self.modules.values() for mark in self._marks_of(m)]

    def _marks_of(self, module):
        docs = {n for doc in docstrings(module.tree) for n in line_range(doc)}
        for n, line in enumerate(module.source.split("\n"), 1):
            _, sign, labels = line.partition("# eq:")
            for label in map(
                str.strip, labels.split(",") if sign and n not in docs else ()
            ):
                place = self._public_name(module, n, label)
                yield Mark(label, f"{module.where} line {n}", *place)

    def _public_name(self, module, line, label):
        """The name under which a reader imports what is around a line, and its role on the API page.

        What rooms share, in a folder such as ``llpbook/_linear``, has its name in the room whose chapter derives it.
        """
        nodes = module.around(line)
        if not nodes:
            return "", ""
        path = [node.name for node in nodes]
        pages = [e.page for e in self.equations if e.label == label]
        shared = module.name.startswith("llpbook._") and pages
        name = ".".join([f"llpbook.{pages[0]}" if shared else module.room, *path])
        if self.resolve(name)[0] is not module:
            name = ".".join([module.name, *path])
        role = "meth" if len(nodes) > 1 else "func"
        role = "class" if isinstance(nodes[-1], ast.ClassDef) else role
        return name, "" if "._" in name else role

    @functools.cached_property
    def test_marks(self):
        """The ``pytest.mark.equation("label", ...)`` of the tests."""
        return [
            Mark(arg.value, f"{m.where} line {call.lineno}", f"{m.name}::{node.name}")
            for m in self.tests
            for node in ast.walk(m.tree if "mark.equation" in m.source else ast.Pass())
            for decorator in getattr(node, "decorator_list", ())
            for call in ast.walk(decorator)
            if isinstance(call, ast.Call)
            and ast.unparse(call.func).endswith("mark.equation")
            for arg in call.args
        ]


# --- managed cells -------------------------------------------------------------------------------------------


def is_managed(cell):
    return cell.cell_type == "code" and "llpbook" in cell.metadata.get("tags", [])


def managed_names(source):
    """The dotted names in the comment that begins a cell; empty if it is no such list."""
    head = re.match(r"(?:#[ \w.,]+,\n)*#[ \w.,]+(?=\n|$)", source)
    names = re.findall(r"[\w.]+", head[0]) if head else []
    return names if all(name.startswith("llpbook.") for name in names) else []


def managed(nb):
    """``{header: source}`` of the managed cells of a notebook."""
    return {header(c.source): c.source for c in nb.cells if is_managed(c)}


def header(source):
    """The names of a managed cell as one line, whatever their layout; empty without names."""
    names = managed_names(source)
    return f"# {', '.join(names)}" if names else ""
