"""The directive `chapter-functions`: what a room holds beside its frozen names.

A chapter's derivation runs as functions of its room, which links of the book lead to;
`automodule` documents the names in `__all__` only.
"""

import importlib
import inspect
from _collections import _tuplegetter

import llpbook
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
    """Functions and classes that no room has in `__all__`, and those it shares."""
    module = importlib.import_module(room)
    rooms = [getattr(llpbook, name) for name in llpbook._ROOMS]
    frozen = {n: getattr(r, n) for r in rooms for n in getattr(r, "__all__", ())}
    found = []
    for name, value in vars(module).items():
        if name[0] == "_" or not (inspect.isfunction(value) or inspect.isclass(value)):
            continue
        # `automodule` takes all that a room without `__all__` defines
        own = value.__module__ == room and not hasattr(module, "__all__")
        within = f"{value.__module__}.".startswith(f"{room}.")
        is_public = own or frozen.get(name) is value
        if (within or name in shared) and not is_public and value.__doc__:
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
