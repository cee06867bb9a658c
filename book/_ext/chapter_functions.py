"""The directive `chapter-functions`: what a room holds beside its frozen names.

A chapter's derivation runs as functions of its room, which links of the book lead to;
`automodule` documents the names in `__all__` only.
"""

import importlib
import inspect
from _collections import _tuplegetter

from docutils import nodes
from docutils.parsers.rst import directives
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

TITLE = "Functions of the chapter"
SENTENCE = (
    "These functions and classes belong to the book: its managed cells show them, the"
    " links of its chapters lead to them, and they may change without notice."
)


def unfrozen(room, shared=()):
    """Functions and classes of a room that are not in `__all__`, and shared ones."""
    module = importlib.import_module(room)
    frozen = getattr(module, "__all__", None)
    found = []
    for name, value in vars(module).items():
        if name[0] == "_" or not (inspect.isfunction(value) or inspect.isclass(value)):
            continue
        home = value.__module__
        if frozen is None and home == room:
            continue  # `automodule` takes all that such a room defines
        within = name in shared or f"{home}.".startswith(f"{room}.")
        if within and name not in (frozen or ()) and value.__doc__:
            found.append(name)
    return found


class ChapterFunctions(SphinxDirective):
    """A section with these names, their documentation, and what to expect of them."""

    required_arguments = 1
    option_spec = {"title": directives.unchanged, "shared": directives.unchanged}
    has_content = True

    def run(self):
        room, title = self.arguments[0], self.options.get("title", TITLE)
        names = unfrozen(room, self.options.get("shared", "").split())
        if not names:
            return []
        module = importlib.import_module(room)
        lines = [*(self.content or [SENTENCE]), ""]
        for name in names:
            kind = "class" if inspect.isclass(vars(module)[name]) else "function"
            lines += [
                f".. auto{kind}:: {room}.{name}",
                "   :members:" * (kind == "class"),
                "",
            ]
        section = nodes.section(ids=[nodes.make_id(title)])
        section += nodes.title("", title)
        self.state.nested_parse(StringList(lines, self.block_text), 0, section)
        return [section]


def skip_field(app, what, name, obj, skip, options):
    """Leave out the fields of a named tuple: its docstring says what they are."""
    return True if isinstance(obj, _tuplegetter) else None


def setup(app):
    app.add_directive("chapter-functions", ChapterFunctions)
    app.connect("autodoc-skip-member", skip_field)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
