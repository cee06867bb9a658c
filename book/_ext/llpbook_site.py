"""What the site needs and no extension gives.

Numbers that stay when a chapter is added, links from names to their documentation,
and the front door.
"""

import html
import os
import re
import sys
import textwrap
from collections import Counter
from pathlib import Path

import yaml
from docutils import nodes
from pybtex.plugin import register_plugin
from pybtex.richtext import Text
from pybtex.style.formatting.alpha import Style
from pybtex.style.labels import BaseLabelStyle

ROOT = Path(__file__).parents[2]
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
#: Whether an older version than that of these files is released.
OLDER = re.search(r"^## \d", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
#: The tag of a release, where its pages are built; see `make site`.
TAG = os.environ.get("LLPBOOK_TAG", "")
BINDER = "https://mybinder.org/v2/gh/llpbook/llpbook/"


def above(node):
    """Yield the node's parents, from the nearest."""
    while node.parent is not None:
        node = node.parent
        yield node


# --- numbers and names ----------------------------------------------------------------


class AuthorsAndYear(BaseLabelStyle):
    """Labels of the bibliography that name an entry as the text cites it."""

    def format_labels(self, sorted_entries):
        labels = [self.label(entry) for entry in sorted_entries]
        several, seen = Counter(labels), Counter()
        for label in labels:
            letter = "abcdef"[seen[label]] if several[label] > 1 else ""
            seen[label] += 1
            yield label + letter

    def label(self, entry):
        """Return one or two authors, or the first and "et al.", and the year."""
        people = [p.prelast_names + p.last_names for p in entry.persons["author"]]
        names = [str(Text.from_latex(" ".join(parts))) for parts in people]
        if len(names) > 2 or "others" in names:
            names = [names[0] + " et al."]
        return f"{' and '.join(names)} {entry.fields['year']}"


class ByAuthors(Style):
    """The bibliography, in the order of its authors."""

    default_label_style = AuthorsAndYear


register_plugin("pybtex.style.formatting", "by_authors", ByAuthors)

NUMBERED = re.compile(r"([A-Z][a-z]+\.? )?\(?\d+\)?")


def number_by_chapter(app, env):
    """Count equations, figures, theorems and exercises from 1 in each chapter.

    So a new chapter moves no other's numbers.
    """
    env.home_of = {}
    for name, kinds in env.toc_fignumbers.items():
        for numbers in kinds.values():
            for n, label in enumerate(sorted(numbers, key=numbers.get), 1):
                numbers[label] = (n,)
                env.home_of[label] = name
    return []  # no page to read again


def name_chapter(app, doctree, name):
    """Let a reference by number to another chapter say which: '(2) in MeanMap'."""
    for link in list(doctree.findall(nodes.reference)):
        # on the one page of the print a section tells its file
        files = (n["docname"] for n in above(link) if "docname" in n)
        here = next(files, name)
        home = app.env.home_of.get(link.get("refuri", "").rpartition("#")[2], here)
        # the tables of the concordance stand under the names of their chapters
        listed = here == "book/concordance"
        if home != here and not listed and NUMBERED.fullmatch(link.astext()):
            link += nodes.Text(f" in {app.env.titles[home].astext().split(':')[0]}")


def collect_names(app, env):
    """The addresses of the classes and functions that a page may name."""
    env.address_of = {}
    for site in ("numpy", "sklearn"):
        for kind in ("py:function", "py:class"):
            inventory = env.intersphinx_named_inventory[site].get(kind, {})
            for full, item in inventory.items():
                address = getattr(item, "uri", "") or item[2]  # a tuple before Sphinx 8
                short = full.split(".")[-1]
                if "._" not in full and (kind == "py:class" or "_" in short):
                    env.address_of |= {full: address, short: address}
    own = env.domains["py"].objects
    members = {x.split(".")[-1] for x, e in own.items() if e.objtype == "method"}
    for full, entry in own.items():
        short = full.split(".")[-1]
        word = "_" not in short or short in members  # or a method of the same name
        if entry.objtype == "class" or (entry.objtype == "function" and not word):
            address = entry.docname, f"#{entry.node_id}"
            env.address_of |= {full: address, short: address}
    env.address_of |= {page: (page, "") for page in env.titles}
    return []


def link_names(app, doctree, name):
    """Link the first mention of a name such as `SVC` on a page to its documentation."""
    linked = set()
    kinds, outside = (nodes.literal, nodes.title_reference), nodes.Titular
    for node in [n for kind in kinds for n in doctree.findall(kind)]:
        text = node.astext().removesuffix("()")
        address = app.env.address_of.get(text)
        inside = any(isinstance(n, nodes.reference | outside) for n in above(node))
        if address is None or inside or text in linked:
            continue
        linked.add(text)
        if not isinstance(address, str):
            page, anchor = address
            address = app.builder.get_relative_uri(name, page) + anchor
        inner = nodes.literal("", node.astext())
        node.replace_self(nodes.reference("", "", inner, refuri=address))


# --- pages ----------------------------------------------------------------------------


def name_folds(app, doctree):
    """Say on the bar of a folded cell what its code makes."""
    for cell in doctree.findall(nodes.container):
        if "prompt_show" not in cell:
            continue
        source, outputs = cell.children[0].astext(), cell.children[1:]
        raw = (r.astext() for part in outputs for r in part.findall(nodes.raw))
        shown = re.match(r"(?:# llpbook\.(?:\w+\.)*|def )(\w+)", source)
        if cell["hide_mode"] == "output":
            words = "Output"
        elif any(part.next_node(nodes.image) for part in outputs):
            words = "Code of the figure"
        elif any('class="book-table"' in text for text in raw):
            words = "Code of the table"
        elif shown:
            words = f"Code of {shown[1]}"
        elif re.search(r"^(import|from) ", source, re.MULTILINE):
            words = "Imports and settings"
        else:
            words = "Code"
        cell["prompt_show"] = cell["prompt_hide"] = words


def describe(app, page, template, context, doctree):
    """Describe a page by its first sentences, not by the words on its first picture."""
    if doctree is not None:
        texts = (p.astext() for p in doctree.findall(nodes.paragraph))
        text = next((text for text in texts if len(text) > 60), app.config.html_title)
        text = textwrap.shorten(text, 160, placeholder=" …")
        context["meta"] = {**(context["meta"] or {}), "og:description": text}
        tag = f'<meta name="description" content="{html.escape(text)}" />\n'
        context["metatags"] += tag


def finish_page(app, page, template, context, doctree):
    """Mend what the theme leaves unfit, and add how to cite the page."""
    context |= {"released": bool(TAG), "older": OLDER}
    context["sites"] = app.config.html_baseurl.removesuffix("stable/")
    # the words on a fold are its name
    body = context.get("body", "").replace(' aria-label="Toggle hidden content"', "")
    body = SIZE.sub(r'width="\1" height="\2" />', UNFIT.sub("", body))
    body = PICTURE.sub(SCROLLING, body)
    body = PARAMETERS.sub(as_lines, body)
    body = TEST.sub(lambda name: "<wbr>" + name[0].replace("_", "_<wbr>"), body)
    if TAG:
        body = body.replace(f"{BINDER}main?", f"{BINDER}{TAG}?")
    if page.startswith("_modules/"):
        body = BACK.sub(lambda match: back_to_page(app, page, match), body)
    if doctree is not None:
        title = html.unescape(re.sub("<.*?>", "", context["title"]))
        body += how_to_cite(app, page, title)
    context["body"] = body


BACK = re.compile(r'id="([\w.]+)">\n<a class="viewcode-back" href="([^"#]*)#[^"]*"')


def back_to_page(app, page, match):
    """The link from source to documentation, where viewcode knows one room for a file.

    What a file of a folder such as ``llpbook/_linear`` holds is documented in several.
    """
    name, address = match.groups()
    own = app.env.domains["py"].objects.items()
    for entry in [entry for full, entry in own if full.endswith(f".{name}")]:
        if app.builder.get_relative_uri(page, entry.docname) == address:
            address += f"#{entry.node_id}"
            break
    return f'id="{name}">\n<a class="viewcode-back" href="{address}"'


ENTRY = """```bibtex
@software{{llpbook,
  author  = {{{{{authors}}}}},
  title   = {{{title}}},
  year    = {{{year}}},
  version = {{{version}}},
  note    = {{Version {state}}},{doi}
  url     = {{{repository-code}}}
}}
```"""


def year(config):
    """The year of the release; before it, of the copyright."""
    return str(CITATION.get("date-released", config.copyright))[:4]


def state():
    """The version, and that it is not released if so."""
    dev = "" if "date-released" in CITATION else ", not yet released"
    return f"{CITATION['version']}{dev}"


def cite_in_text(app, config):
    """Name the version, and let `{{ bibtex }}` in a text be the entry of the book."""
    config.release = config.version = CITATION["version"]
    words = {"authors": config.author, "year": year(config), "state": state()}
    doi = f"\n  doi     = {{{CITATION['doi']}}}," if "doi" in CITATION else ""
    entry = ENTRY.format(**{**CITATION, **words, "doi": doi})
    config.myst_substitutions = {**config.myst_substitutions, "bibtex": entry}


CITE = """
<details class="how-to-cite"><summary>Cite this page</summary>
<p>{authors} ({year}): {title}. In: <em>{site}</em>, version {release}. {address}</p>
<pre>@incollection{{llpbook-{key},
  author    = {{{{{authors}}}}},
  title     = {{{title}}},
  booktitle = {{{site}}},
  year      = {{{year}}},
  note      = {{version {release}}},
  url       = {{{address}}}
}}</pre>
<p>Cite the paper of a method as well: each chapter names it under <em>Sources</em>.</p>
</details>
"""


def how_to_cite(app, page, title):
    """A fold that says how to cite a page of this version."""
    words = {
        "authors": app.config.author,
        "title": title,
        "site": app.config.html_title or app.config.project,
        "year": year(app.config),
        "release": state(),
        "address": f"{app.config.html_baseurl}{page}.html",
        "key": page.rpartition("/")[2].replace("_", "-"),
    }
    return CITE.format(**{key: html.escape(word) for key, word in words.items()})


# Names of parts that several parts of a page have; roles that ARIA has given up, or
# that allow no such children.
UNFIT = re.compile(r' id="[a-z]+-content"| role="doc-biblioentry"| role="list"')
# On a narrow screen a picture scrolls, as a table does, before its words are too small.
PICTURE = re.compile(r'<img alt="[^"]*"[^>]* src="[./]*_images/[^"]*"[^>]* />')
SCROLLING = r'<span class="picture pst-scrollable-table-container">\g<0></span>'
# A narrow page may overrule a size that is an attribute, but not one that is a style.
SIZE = re.compile(r'style="width: (\d+)px; height: (\d+)px;" />')
# The theme lets keys reach what scrolls, but looks only when a window changes.
SEE_FOLDS = 'addEventListener("toggle", () => dispatchEvent(new Event("resize")), true)'


# A signature on several lines: Sphinx writes a definition list that defines nothing.
PARAMETERS = re.compile('<dl>\n((?:<dd><em class="sig-param">.*</dd>\n)+)</dl>')


# The name of a test is broken between its words only.
TEST = re.compile(r"(?<=\.py::)\w+(?=</span>)")


def as_lines(signature):
    """The parameters of a signature, one a line."""
    opened = signature[1].replace("<dd>", '<span class="sig-line">')
    return opened.replace("</dd>", "</span>")


def finish(app, error):
    """Write the front door, which is the first page seen from the root."""
    if error or app.builder.name != "html":
        return
    pages = {path: path.read_text("utf-8") for path in app.outdir.rglob("*.html")}
    home = f"{app.config.root_doc}.html"
    first = pages[app.outdir / home]
    door = first.replace("<head>", f'<head>\n    <base href="{home}" />', 1)
    (app.outdir / "index.html").write_text(door, "utf-8")
    (app.outdir / "llms.txt").write_text(pages_in_words(app, pages), "utf-8")


SAID = re.compile(r'<meta property="og:(title|url|description)" content="([^"]*)"')


def pages_in_words(app, pages):
    """The file `llms.txt`: each page's title, address and first sentence."""
    text = f"# {app.config.html_title}\n\n## Pages\n\n"
    for path, page in sorted(pages.items()):
        said = dict(SAID.findall(page))
        if len(said) == 3 and path.parts[-3] != "api":  # the page of a function
            line = f"- [{said['title']}]({said['url']}): {said['description']}\n"
            text += html.unescape(line)
    return text


# --- other extensions -----------------------------------------------------------------


def mend_extensions(app):
    """Let `make pdf` show proofs and exercises, and keep thebe off the pages.

    sphinx-proof and sphinx-exercise register how their nodes are written for ``html``.
    Sphinx hands a ``singlehtml`` build only what was registered under that very name as
    soon as anything was. sphinx-thebe adds its script, and twice, where it is off.
    """
    handlers = app.registry.translation_handlers
    if "singlehtml" in handlers:
        handlers["singlehtml"] = {**handlers.get("html", {}), **handlers["singlehtml"]}
    for listeners in app.events.listeners.values():
        listeners[:] = [x for x in listeners if x.handler.__module__ != "sphinx_thebe"]


def start(app):
    """Let pages of a release launch its own files."""
    if TAG:
        app.config.html_theme_options["repository_branch"] = TAG


def setup(app):
    sys.path.insert(0, str(Path(__file__).parents[1]))  # studies, for autodoc
    app.connect("config-inited", cite_in_text)
    app.connect("builder-inited", mend_extensions)
    app.connect("builder-inited", start)
    app.connect("doctree-read", name_folds)
    app.connect("env-get-updated", number_by_chapter, priority=900)  # after Sphinx's
    app.connect("env-get-updated", collect_names)
    app.connect("doctree-resolved", name_chapter)
    app.connect("doctree-resolved", link_names)
    app.connect("html-page-context", describe, priority=400)  # before opengraph's
    app.connect("html-page-context", finish_page)
    app.add_js_file(None, body=SEE_FOLDS)
    app.connect("build-finished", finish)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
