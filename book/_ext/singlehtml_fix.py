"""Make the one-page build (`make pdf`) show proofs and exercises as the site does.

sphinx-proof and sphinx-exercise register how their nodes are written for the ``html``
builder. Sphinx hands a ``singlehtml`` build only what was registered under that very
name as soon as anything was, and the nodes of all other extensions are lost. Here the
handlers for ``html`` fill the gaps.
"""


def _share_html_handlers(app):
    handlers = app.registry.translation_handlers
    if "singlehtml" in handlers:
        handlers["singlehtml"] = {**handlers.get("html", {}), **handlers["singlehtml"]}


def setup(app):
    app.connect("builder-inited", _share_html_handlers)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
