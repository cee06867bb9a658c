"""Let links to papers, theorems and equations resolve, and keep their words.

A chapter has links, ``[Yu et al. (2013)](#yu2013)``, and no roles, which a notebook
would show as code. sphinxcontrib-bibtex replaces the words of such a link by its own
label, sphinx-proof does not know it, and Sphinx replaces the words of a link to an
equation by its number, which fits words in brackets only: ``[(class means)](#eq-…)``.
"""

from docutils import nodes
from sphinx.domains.math import MathDomain
from sphinx.util.nodes import make_refnode
from sphinx_proof.domain import ProofDomain
from sphinxcontrib.bibtex.domain import BibtexDomain


class PapersInWords(BibtexDomain):
    def resolve_any_xref(self, env, docname, builder, target, node, words):
        found = super().resolve_any_xref(env, docname, builder, target, node, words)
        links = [link for _, cited in found for link in cited.findall(nodes.reference)]
        for link in links:
            link.children = []
            link += words.deepcopy()
        return [("cite:p", link) for link in links]


class TheoremsInWords(ProofDomain):
    def resolve_any_xref(self, env, docname, builder, target, node, words):
        if target not in env.proof_list:
            return []
        home = env.proof_list[target]["docname"]
        return [("prf:ref", make_refnode(builder, docname, home, target, words))]


class EquationsInWords(MathDomain):
    def resolve_any_xref(self, env, docname, builder, target, node, words):
        found = super().resolve_any_xref(env, docname, builder, target, node, words)
        for _, link in found:
            if not words.astext().startswith("("):
                link.children = []
                link += words.deepcopy()
        return found


def setup(app):
    app.add_domain(EquationsInWords, override=True)
    for name, domain in (
        ("sphinxcontrib.bibtex", PapersInWords),
        ("sphinx_proof", TheoremsInWords),
    ):
        app.setup_extension(name)
        app.add_domain(domain, override=True)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
