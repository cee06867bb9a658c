"""The directive `benchmark-table`: every row of the benchmark.

It is made from the stored rows as the site is built.
"""

import sys
from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

BOOK = Path(__file__).resolve().parents[1]


ON_PAPER = """<p class="on-paper">The table has too many rows for paper. It stands on
this page of the site; its draws are <code>book/studies/results/benchmark.csv</code>.
</p>"""


class BenchmarkTable(SphinxDirective):
    """A table that needs no script; with ``benchmark.js`` it sorts and filters."""

    def run(self):
        sys.path.insert(0, str(BOOK))
        try:
            from studies.benchmark_tables import site_table
            from studies.runner import RESULTS
        finally:
            sys.path.remove(str(BOOK))
        self.env.note_dependency(str(RESULTS / "benchmark.csv"))
        return [nodes.raw("", site_table() + ON_PAPER, format="html")]


def setup(app):
    app.add_directive("benchmark-table", BenchmarkTable)
    app.add_js_file("benchmark.js", loading_method="defer")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
