"""The pages of the API: one per room, and one per class and function.

They are written below ``book/api/`` when a build begins, and are no part of the
repository. A page names the chapters that use its name; keys of the bibliography in
docstrings become links in words.
"""

import importlib
import inspect
import re
from _collections import _tuplegetter
from pathlib import Path

import llpbook
from docutils import nodes
from pybtex.database import parse_file
from sphinx.roles import AnyXRefRole

#: Names of other rooms that a room documents, since links lead to them.
SHARED = {
    "bag_losses": ["BoostedBagModel", "curvature", "read_scores"],
    "cluster_selection": ["crosstab"],
    "count_likelihood": [
        "BagCounts",
        "LinearObjective",
        "bag_counts",
        "fisher_scoring",
    ],
    "em": ["label_by_counts"],
    "invcal": ["gram_matrix", "kernel_coefficient", "kernel_features"],
    "kernel_kmeans": ["label_by_seats"],
    "proportions": ["check_bags", "check_proportions", "keyed_rows"],
}
ROOM = """
{title}
{line}

.. automodule:: {module}
{tables}"""
TABLE = """
{head}
{line}

{words}

.. autosummary::
   :nosignatures:

   {names}
"""
FROZEN = (
    "Frozen names",
    "Each stays, with its parameters, from one version to the next.",
)
STEPS = (
    "Functions of the chapter",
    "These functions and classes belong to the book: its managed cells show them, the"
    " links of its chapters lead to them, and they may change without notice.",
)
TOOLS = (
    "Other names",
    "The package is made of these functions and classes, and the chapters show some of"
    " them. They may change without notice.",
)
PAGE = """:orphan:

{title}
{line}

:doc:`API </book/api>` › :doc:`llpbook.{room} </book/api/{room}>`

.. auto{kind}:: {full}{members}
{words}
"""


def unfrozen(room):
    """Names that no room has in `__all__`, and those that a room shares."""
    module = importlib.import_module(f"llpbook.{room}")
    rooms = [getattr(llpbook, name) for name in llpbook._ROOMS]
    frozen = {n: getattr(r, n) for r in rooms for n in getattr(r, "__all__", ())}
    names = []
    for name, value in vars(module).items():
        if name[0] == "_" or not (inspect.isfunction(value) or inspect.isclass(value)):
            continue
        within = f"{value.__module__}.".startswith(f"{module.__name__}.")
        own = within or name in SHARED.get(room, ())
        if own and frozen.get(name) is not value and value.__doc__:
            names.append(name)
    return names


def documented(room):
    """Frozen and other names of a room that have a page."""
    # `llpbook.typing` says in its docstring what its types are
    frozen = [] if room == "typing" else getattr(llpbook, room).__all__
    return list(frozen), unfrozen(room)


def page_of(name, names):
    """The file of a name, also where files do not tell `Views` from `views`."""
    clash = [n.lower() for n in names].count(name.lower()) > 1
    return f"{name}-class" if clash and name[0].isupper() else name


def room_page(room, chapters):
    """The text of a room's page: its docstring, and tables of its names."""
    tables = ""
    kinds = FROZEN, STEPS if room in chapters.code else TOOLS
    for names, (head, words) in zip(documented(room), kinds, strict=True):
        tables += bool(names) * TABLE.format(
            head=head,
            line="-" * len(head),
            words=words,
            names="\n   ".join(names),
        )
    return module_page(f"llpbook.{room}", tables)


def module_page(module, tables):
    title = f"``{module}``"
    return ROOM.format(title=title, line="=" * len(title), module=module, tables=tables)


class Chapters:
    """The words of the chapters' code: which of them uses a name."""

    def __init__(self, folder):
        self.code = {}
        for path in sorted(folder.glob("src/*.md")):
            text = path.read_text("utf-8")
            cells = re.findall(r"^```\{code-cell\}.*?^```", text, re.M | re.S)
            self.code[path.stem] = "\n".join(cells)

    def using(self, room, name, is_frozen):
        """Names of chapters; those of a step of a derivation show it."""
        pattern = rf"\b{name}\b" if is_frozen else rf"\bllpbook\.{room}\.{name}\b"
        return [c for c, code in self.code.items() if re.search(pattern, code)]


def name_page(room, name, is_frozen, chapters):
    """The text of the page of a class or function."""
    value = getattr(getattr(llpbook, room), name)
    is_class = inspect.isclass(value)
    words = ""
    if is_class and issubclass(value, llpbook.base.LLPClassifier):
        if value is not llpbook.base.LLPClassifier:
            words += (
                "\n``fit``, ``predict``, ``predict_proportions`` and ``score``, if they"
                " are not above, are those of :class:`llpbook.base.LLPClassifier`.\n"
            )
    used = [f":doc:`/book/{c}`" for c in chapters.using(room, name, is_frozen)]
    if used:
        words += f"\n**{'Used' if is_frozen else 'Shown'} in** {', '.join(used)}.\n"
    title = f"``{room}.{name}``"
    return PAGE.format(
        title=title,
        room=room,
        line="=" * len(title),
        kind="class" if is_class else "function",
        full=f"llpbook.{room}.{name}",
        members="\n   :members:" * is_class,
        words=words,
    )


def write_pages(app):
    """Write the pages of all rooms, and of all their names."""
    folder = Path(app.srcdir) / "book"
    chapters = Chapters(folder)
    files = {"studies": module_page("studies", "   :members:\n")}
    app.source_of = {"studies": importlib.import_module("studies")}
    for room in llpbook._ROOMS:
        frozen, steps = documented(room)
        files[room], app.source_of[room] = (
            room_page(room, chapters),
            getattr(llpbook, room),
        )
        for name in frozen + steps:
            page = f"{room}/{page_of(name, frozen + steps)}"
            files[page] = name_page(room, name, name in frozen, chapters)
            app.source_of[page] = getattr(getattr(llpbook, room), name)
    for path in folder.glob("api/**/*.rst"):
        if path.relative_to(folder / "api").with_suffix("").as_posix() not in files:
            path.unlink()  # of a name that is gone
    for page, text in files.items():
        path = folder / f"api/{page}.rst"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


# --- docstrings -----------------------------------------------------------------------

WHERE = r"(?: \(((?:section|Section|equation|Equation|appendix|eq\.|p\.)[^()`]*)\))?"


def cite_as(persons, year, where, inside):
    """The words of a citation, such as 'Yu et al. (2013, section 5)'."""
    last = [
        " ".join(t.render_as("text") for t in p.rich_prelast_names + p.rich_last_names)
        for p in persons
    ]
    who = " and ".join(last) if len(last) < 3 else f"{last[0]} et al."
    where = f", {where}" if where else ""
    return f"{who}, {year}{where}" if inside else f"{who} ({year}{where})"


def read_papers(app):
    """The keys of the bibliography, with authors and years."""
    path = Path(app.srcdir) / app.config.bibtex_bibfiles[0]
    entries = parse_file(str(path)).entries
    app.papers = {
        k: (e.persons["author"], e.fields["year"]) for k, e in entries.items()
    }
    app.keys_of_papers = re.compile(
        rf"(?<![\w\"'`])({'|'.join(app.papers)})(?![\w\"'`]){WHERE}"
    )


class Paper(AnyXRefRole):
    """A link to an entry of the bibliography, in words that are no code."""

    innernodeclass = nodes.inline

    def process_link(self, env, refnode, has_explicit_title, title, target):
        refnode["reftype"] = "any"
        return super().process_link(env, refnode, has_explicit_title, title, target)


def cite_in_words(app, what, name, obj, options, lines):
    """Let keys of the bibliography in a docstring become links in words."""

    def link(match):
        before = match.string[: match.start()].rpartition("\n\n")[2]
        inside = before.count("(") > before.count(")")
        words = cite_as(*app.papers[match[1]], match[2], inside)
        return f":paper:`{words} <{match[1]}>`"

    lines[:] = app.keys_of_papers.sub(link, "\n".join(lines)).split("\n")


def link_nearest(app, doctree, page):
    """Link a name in a docstring to the nearest object of that name.

    That is a method of the same class, or a name of the same room, then of any.
    """
    if not page.startswith("book/api"):
        return
    objects = app.env.domains["py"].objects
    room, _, name = page[len("book/api/") :].partition("/")
    name = name.removesuffix("-class")
    starts = f"llpbook.{room}.{name}.", f"llpbook.{room}.", "llpbook.", ""
    for node in list(doctree.findall(nodes.title_reference)):
        full = next(
            (s + node.astext() for s in starts if s + node.astext() in objects), ""
        )
        inner = nodes.literal("", node.astext())
        if full and full != f"llpbook.{room}.{name}":
            entry = objects[full]
            address = app.builder.get_relative_uri(page, entry.docname)
            address += f"#{entry.node_id}"
            inner = nodes.reference("", "", inner, refuri=address)
        node.replace_self(inner)


def skip_field(app, what, name, obj, skip, options):
    """Leave out the fields of a named tuple: its docstring says what they are."""
    return True if isinstance(obj, _tuplegetter) else None


def edit_source(app, page, template, context, doctree):
    """Let the button for edits lead to the module that holds the docstring."""
    if (short := page.removeprefix("book/api/")) in app.source_of:
        module = inspect.getmodule(app.source_of[short])
        path = Path(inspect.getsourcefile(module))
        depth = module.__name__.count(".") + 1 + (path.stem == "__init__")
        path = Path("book" * (short == "studies"), *path.parts[-depth:])
        before, _, _ = context["edit_page_url_template"].partition("{{ file_name")
        context["edit_page_url_template"] = (
            f"{before}{path.as_posix()}{{# file_name #}}"
        )


def share_sidebar(app, page, template, context, doctree):
    """Let all pages of a folder that the contents do not list have the same sidebar."""
    folder = page.rpartition("/")[0]
    if folder.startswith(("book/api/", "_modules")):
        write = context["toctree"]

        def once(**options):
            key = folder, *options.items()
            if key not in app.sidebars:
                app.sidebars[key] = write(**options)
            return app.sidebars[key]

        context["toctree"] = once


def keep_pages(app, config):
    """Let Sphinx read the pages of names, which the table of contents does not list."""
    config.exclude_patterns = [
        x for x in config.exclude_patterns if not x.startswith("book/api/")
    ]


def setup(app):
    app.sidebars = {}
    app.connect("html-page-context", edit_source, priority=400)  # before the theme's
    app.connect("html-page-context", share_sidebar, priority=400)
    app.connect("config-inited", keep_pages, priority=999)  # after the contents' files
    app.connect("builder-inited", write_pages)
    app.connect("builder-inited", read_papers)
    app.connect("autodoc-process-docstring", cite_in_words)
    app.connect("autodoc-skip-member", skip_field)
    app.connect(
        "doctree-resolved", link_nearest, priority=400
    )  # before all other names
    app.add_role("paper", Paper(warn_dangling=True))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
