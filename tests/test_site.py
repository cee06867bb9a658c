"""The site's configuration, the documents of the repository, and the check that the site asks no other host."""

import importlib
import os
import re
import subprocess
import sys
import tomllib
from collections import Counter
from math import comb, exp, sqrt
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import yaml

import llpbook
from llpbook import _input
from llpbook.datasets import load

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))

import _book  # noqa: E402
import check_site  # noqa: E402
import compare_sites  # noqa: E402
import print_pdf  # noqa: E402


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


PYPROJECT = tomllib.loads(read("pyproject.toml"))
CONFIG = yaml.safe_load(read("_config.yml"))
HOME = PYPROJECT["project"]["urls"]["Homepage"]
SITE = PYPROJECT["project"]["urls"]["Documentation"]


# --- one home, one version, one set of pins ------------------------------------------------------------------


def test_every_file_names_the_same_home():
    assert CONFIG["repository"]["url"] == HOME
    assert yaml.safe_load(read("CITATION.cff"))["repository-code"] == HOME
    assert CONFIG["html"]["baseurl"] == SITE
    assert f"({SITE})" in read("README.md") and f'"{SITE}"' in read("book/404.html")
    slug = HOME.removeprefix("https://github.com/")
    readme = read("README.md")
    assert f"mybinder.org/v2/gh/{slug}/{CONFIG['repository']['branch']}?" in readme
    assert f"git clone {HOME} " in readme and f"git+{HOME}`" in readme
    # and no other repository passes for the book's
    names = "README.md", "CITATION.cff", "_config.yml", "book/src/intro.md"
    text = "".join(map(read, names))
    assert set(re.findall(r"github\.com/([\w-]+/[\w-]+)", text)) == {slug}


def test_links_of_estimators_and_messages_lead_to_pages_of_the_site():
    estimators = [estimator() for _, estimator in llpbook.all_estimators()]
    searches = [llpbook.LLPGridSearchCV(estimators[0], {})]
    for estimator in estimators + searches:
        link, _, section = estimator._get_doc_link().partition("#")
        assert link in estimator._repr_html_()
        name = link.removeprefix(f"{SITE}book/").removesuffix(".html")
        assert (ROOT / f"book/{name}.ipynb").is_file()
        assert not section or f"({section})=" in read(f"book/src/{name}.md")
    for name in ("proportions", "your_data"):
        assert _input.page(name) == f"{SITE}book/{name}.html"
        assert (ROOT / f"book/{name}.ipynb").is_file()


def test_every_file_names_the_same_version():
    citation = yaml.safe_load(read("CITATION.cff"))
    assert PYPROJECT["project"]["version"] == llpbook.__version__ == _book.VERSION
    dev = "" if _book.IS_RELEASED else ".dev"
    assert citation["version"] == _book.VERSION + dev
    assert ("date-released" in citation) == _book.IS_RELEASED
    assert citation.get("license") == PYPROJECT["project"]["license"]
    assert citation["authors"] == PYPROJECT["project"]["authors"]


def test_pythons_are_the_same_everywhere():
    """Classifiers, README, the Makefile, and the jobs that test what a release publishes."""
    about = PYPROJECT["project"]["classifiers"]
    pythons = [x.rpartition(" ")[2] for x in about if "Python :: 3." in x]
    assert f"Python {pythons[0]} to {pythons[-1]}," in read("README.md")
    assert read("Makefile").count(f"in {' '.join(pythons)}; do") == 2
    jobs = yaml.safe_load(read(".github/workflows/release.yml"))["jobs"]
    assert jobs["install"]["strategy"]["matrix"]["python"] == pythons
    tested = set(re.findall(r'python: "(3\.\d+)"', read(".github/workflows/ci.yml")))
    assert tested == {*pythons}


PINNED = r"[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+|\./\.github/(workflows/\w+\.yml|actions/\w+)"


def test_workflows_run_pinned_actions_with_least_rights():
    for path in (ROOT / ".github/workflows").glob("*.yml"):
        text = path.read_text(encoding="utf-8")
        for action in re.findall(r"uses: (.*)", text):
            assert re.fullmatch(PINNED, action), action
        workflow = yaml.safe_load(text)
        assert workflow["permissions"] == {"contents": "read"}
        checkouts = text.count("actions/checkout@")
        assert text.count("persist-credentials: false") == checkouts
    jobs = yaml.safe_load(read(".github/workflows/release.yml"))["jobs"]
    assert jobs["publish"]["needs"] == ["test", "install"]
    assert jobs["site"]["needs"] == "publish" and jobs["install"]["needs"] == "build"
    rights = {name: job.get("permissions") for name, job in jobs.items()}
    assert rights["publish"] == {"id-token": "write"}
    assert not any(rights[name] for name in ("test", "build", "install"))


def test_a_release_has_its_version_and_date_and_is_on_main(tmp_path):
    dated = "version: 1.2.0\ndate-released: 2030-01-02\n"
    good = {
        "pyproject.toml": 'version = "1.2.0"\n',
        "CHANGELOG.md": "## 1.2.0 (2030-01-02)\n",
        "CITATION.cff": dated,
        "llpbook/__init__.py": '__version__ = "1.2.0"\n',
    }
    (tmp_path / "llpbook").mkdir()
    who = ["-c", "user.name=a", "-c", "user.email=a@b.example"]

    def git(*words):
        subprocess.run(["git", *who, *words], cwd=tmp_path, check=True)

    git("init", "-q")
    for tag in ("origin/main", "aside", "v1.2.0"):  # the last is a branch, too
        git("checkout", "-q", "-B", tag, *["HEAD~"] * (tag == "v1.2.0"))
        git("commit", "-q", "--allow-empty", "-m", tag)
    git("branch", "-f", "origin/main", "v1.2.0")

    def said(tag="v1.2.0", **changed):
        for name, text in {**good, **changed}.items():
            (tmp_path / name).write_text(text)
        command = ["make", "-s", "-f", ROOT / "Makefile", "release-check", f"TAG={tag}"]
        done = subprocess.run(command, cwd=tmp_path, text=True, capture_output=True)
        assert bool(done.returncode) == bool(done.stdout)
        return done.stdout

    assert not said()
    assert "the tag is v1.2.1" in said("v1.2.1")
    assert "CHANGELOG.md: no heading" in said(**{"CHANGELOG.md": "## Unreleased\n"})
    other = {"CITATION.cff": dated.replace("2030", "2031")}
    assert "CITATION.cff: no date-released: 2030-01-02" in said(**other)
    git("branch", "-f", "origin/main", "aside")
    assert "v1.2.0 is not on main" in said()
    steps = read(".github/workflows/release.yml").partition("release-check")[0]
    assert "fetch-depth: 0 " in steps  # main is there


def test_every_pin_of_the_lock_has_hashes_and_pip_can_take_it():
    pins = re.split(r"\n(?=\S)", read("requirements.txt").strip())
    pin = r"[\w.-]+==[\w.]+( ; .+)? \\\n( +--hash=sha256:[0-9a-f]{64}( \\\n)?)+"
    assert not [text for text in pins if not re.fullmatch(pin, text)]
    # with hashes pip takes nothing without one, so Binder gets the rest afterwards
    assert read("binder/requirements.txt").endswith("\n-r ../requirements.txt\n")
    assert "--no-deps -e ." in read("binder/postBuild")
    assert os.access(ROOT / "binder/postBuild", os.X_OK)


def test_no_text_installs_from_an_index_that_has_no_such_project():
    """Until the first release; then it is `pip install llpbook`."""
    assert "Until the first release" in read("RELEASING.md")
    folders = ("llpbook/**/*.py", "book/*.md", "book/src/*.md", "book/studies/*.py")
    paths = [path for pattern in folders for path in ROOT.glob(pattern)]
    for path in [*paths, ROOT / "README.md"]:
        for line in re.findall(r"pip install .*llpbook.*", path.read_text("utf-8")):
            homes = f"git+{HOME}", f"{HOME}/archive/"
            assert any(home in line for home in homes), f"{path.name}: {line}"


# --- the site's configuration --------------------------------------------------------------------------------


def test_site_shows_stored_outputs_and_keeps_to_itself():
    sphinx = CONFIG["sphinx"]["config"]
    assert CONFIG["execute"]["execute_notebooks"] == "off"
    assert CONFIG["launch_buttons"]["thebe"] is False
    assert sphinx["nb_ipywidgets_js"] == {}
    assert (ROOT / "book/_static" / sphinx["mathjax_path"]).is_file()


@pytest.fixture
def api_pages(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "book/_ext")
    monkeypatch.syspath_prepend(ROOT / "book")  # studies
    return importlib.import_module("api_pages")


def test_api_lists_each_frozen_name_under_one_task_and_each_room():
    by_task, by_room = read("book/api.md").split("## By room")
    names = re.findall(r"^ {3}~(\w+\.\w+)$", by_task, re.MULTILINE)
    rooms = [room for room in llpbook._ROOMS if room != "typing"]
    frozen = [f"{room}.{n}" for room in rooms for n in getattr(llpbook, room).__all__]
    assert sorted(names) == sorted(frozen)
    assert sorted(re.findall(r"^ {3}(\w+)$", by_room, re.M)) == sorted(llpbook._ROOMS)


def test_each_name_has_a_page_that_says_who_uses_it(tmp_path, api_pages):
    (tmp_path / "book/src").mkdir(parents=True)
    cells = (
        "MeanMap in words",
        "# llpbook.mean_map.class_means\nMeanMap()",
        "MeanMaps()",
    )
    for name, cell in zip(("words", "code", "other"), cells, strict=True):
        fence = "" if name == "words" else "```"
        text = f"{fence}{{code-cell}}\n{cell}\n{fence}\n"
        (tmp_path / f"book/src/{name}.md").write_text(text)
    (tmp_path / "book/api/em").mkdir(parents=True)
    (tmp_path / "book/api/em/gone.rst").touch()  # of an earlier build
    app = SimpleNamespace(srcdir=tmp_path)
    api_pages.write_pages(app)
    pages = {
        page.relative_to(tmp_path / "book/api") for page in tmp_path.rglob("*.rst")
    }
    assert len({str(page).lower() for page in pages}) == len(pages)  # on any disk
    assert {page.with_suffix("").as_posix() for page in pages} == {*app.source_of}
    for room in llpbook._ROOMS:
        listed = read_table((tmp_path / f"book/api/{room}.rst").read_text())
        assert listed == [n for names in api_pages.documented(room) for n in names]
        folder = [page.stem for page in pages if page.parent.name == room]
        assert sorted(n.removesuffix("-class") for n in folder) == sorted(listed)
    for page in app.source_of:  # the button for edits leads to a file of the repository
        context = {"edit_page_url_template": "edit/{{ file_name }}"}
        api_pages.edit_source(app, f"book/api/{page}", "", context, None)
        address = context["edit_page_url_template"].removesuffix("{# file_name #}")
        assert (ROOT / address.removeprefix("edit/")).is_file(), page
    for name, words in (("MeanMap", "Used"), ("class_means", "Shown")):
        page = (tmp_path / f"book/api/mean_map/{name}.rst").read_text()
        assert f"**{words} in** :doc:`/book/code`.\n" in page


def read_table(page):
    return re.findall(r"^ {3}(\w+)$", page, re.MULTILINE)


def test_keys_of_papers_become_words(api_pages):
    app = SimpleNamespace(srcdir=ROOT, config=SimpleNamespace(**CONFIG))
    api_pages.read_papers(app)
    for text, wanted in (
        ("Of yu2013 (section 5).", "Of Yu et al. (2013, section 5)."),
        ("A (see demsar2006,\nSection 3)", "A (see Demšar, 2006,\nSection 3)"),
        ("mann2007 (b)", "Mann and McCallum (2007) (b)"),
        ('``"yu2013"``, `yu2013`', '``"yu2013"``, `yu2013`'),
    ):
        lines = text.split("\n")
        api_pages.cite_in_words(app, "", "", None, None, lines)
        link = r":paper:`([^<]*) <\w+>`"
        assert re.sub(link, r"\1", "\n".join(lines)) == wanted


def test_links_lead_to_names_that_have_a_page(api_pages):
    pages = [*(ROOT / "book/src").glob("*.md"), *(ROOT / "book").glob("*.md")]
    text = "".join(page.read_text() for page in pages)
    for room, name in set(re.findall(r"\(#llpbook\.(\w+)\.(\w+)[\w.]*\)", text)):
        frozen, steps = api_pages.documented(room)
        assert name in frozen + steps, f"{room}.{name} has no documentation"


# --- README, and what no file may hold -----------------------------------------------------------------------


#: Texts of the site; and links that are names of pages: in the first column of a table, and before and after a chapter.
TEXTS = {p.stem: p.relative_to(ROOT) for p in sorted((ROOT / "book").glob("*.md"))}
TEXTS |= {p.stem: p.relative_to(ROOT) for p in sorted((ROOT / "book/src").glob("*.md"))}
NAMED = re.compile(
    r"(?:^\| |\*\*(?:Next:|Skip to|You need)\*\* )\[([A-Z][^]`]*)\]\((\w+)\.(?:ipynb|md)\)",
    re.MULTILINE,
)


def test_readme_example_runs(capsys):
    code = re.findall(r"```python\n(.*?)```", read("README.md"), re.S)
    assert code
    for block in code:
        exec(compile(block, "README.md", "exec"), {})
    said = r"([01]\.\d\d) of the (?:hidden labels|incomes) are right"
    out = capsys.readouterr().out
    assert "\nFit Count" in out  # as a comment says
    hidden, incomes = re.findall(said, out)
    assert 0.75 < float(hidden) < 1  # the majority class has 0.56
    assert 0.79 < float(incomes) < 0.9  # the majority class has 0.76


def test_readme_names_things_that_exist():
    readme = read("README.md")
    makefile = read("Makefile")
    for target in re.findall(r"^make (\w+)", readme, re.M):
        assert re.search(rf"^{target}:", makefile, re.M), target
    # absolute, so that they also work where a package index shows the README
    links = re.findall(r"\]\(([^)]*)\)", readme)
    assert all(link.startswith("https://") for link in links)
    raw = HOME.replace("github.com", "raw.githubusercontent.com")
    for start in (f"{HOME}/blob/main/", f"{raw}/main/"):
        files = [link.removeprefix(start) for link in links if link.startswith(start)]
        assert files and all((ROOT / name).is_file() for name in files)


def test_a_page_has_one_name_in_the_sidebar_above_its_text_and_in_links():
    toc = dict(re.findall(r'file: book/(\w+).*\n\s*title: "(.*)"', read("_toc.yml")))
    texts = {name: read(path) for name, path in TEXTS.items()}
    titles = {name: re.search("^# (.*)", t, re.M)[1] for name, t in texts.items()}
    named = [*toc.items()]
    named += [(to, words) for t in texts.values() for words, to in NAMED.findall(t)]
    assert len(toc) > 50 and len(named) > 150

    def is_named(title, words):
        plain = (x.lower().removeprefix("the ") for x in (title, words))
        return str.startswith(*plain)

    other = [(to, words) for to, words in named if not is_named(titles[to], words)]
    assert not other


def test_the_page_on_teaching_says_what_every_chapter_needs():
    needs = read("book/teaching.md").partition("## How long it takes")[0]
    listed = re.findall(r"^\| \[[^]]*\]\((\w+)\.ipynb\) \| ", needs, re.MULTILINE)
    assert {*listed, "intro"} == {*_book.Book(ROOT).notebooks}


PRIVATE = re.compile(
    "|".join(
        [
            r"(?<![\w.])/(?:work|root|home|Users)/(?!me/)[\w.-]+/",  # a path of somebody's machine (not of an example)
            r"\bipykernel_\d+|\bsite-packages/",  # where a cell ran
            r"(?:index|registry)-url[ =]+https?:|find-links[ =]+(?:https?:|/)",
            r"(?:pypi|pythonhosted|npmjs|registry\.[a-z-]+)\.(?:org|com|io|net|example)",  # a package registry
        ]
    )
)


TEXT = re.compile(r"(\.(py|md|ipynb|toml|yml|txt|cff|cfg|json|bib|csv|css))?")


def test_no_paths_of_a_machine_and_no_registries():
    skipped = {".git", ".hypothesis", "_build", "mathjax", "__pycache__"}
    found = []
    for path in sorted(ROOT.rglob("*")):
        parts = path.relative_to(ROOT).parts
        derived = any(part.endswith((".egg-info", "_cache")) for part in parts)
        derived = derived or parts[0].startswith(".venv")
        text = TEXT.fullmatch(path.suffix) and path.is_file()
        if text and not derived and not skipped & {*parts} and path != Path(__file__):
            text = path.read_text(encoding="utf-8", errors="replace")
            found += [f"{parts}: {match[0]}" for match in PRIVATE.finditer(text)]
    assert not found
    assert PRIVATE.search("see /home/you/book/x") and PRIVATE.search(
        "--index-url https://x"
    )


# --- tools/check_site.py -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "html",
    [
        '<script src="https://cdn.example/x.js"></script>',
        '<img srcset="a.png 1x, https://cdn.example/x.png 2x">',
        '<link rel="stylesheet" href="https://cdn.example/x.css">',
        '<div style="background: url(https://cdn.example/x.png)"></div>',
        '<style>@import "https://cdn.example/x.css";</style>',
        '<script>var s = document.createElement("script"); s.src = "https://cdn.example/x.js"</script>',
        '<script type="module">import x from "https://cdn.example/x.js"</script>',
    ],
)
def test_scan_finds_a_reference_to_another_host(tmp_path, html):
    (tmp_path / "page.html").write_text(f"<html><body>{html}</body></html>")
    said = next(check_site.findings(tmp_path))
    assert said.startswith("page.html: refers to https://cdn.example/x")


def test_scan_lets_links_and_own_files_be(tmp_path):
    (tmp_path / "page.html").write_text(
        '<a href="https://example.org">x</a> <p id="a"><a href="page.html#a">x</a></p>'
        '<img src="x.png" alt="x"> <img src="data:image/png;base64,AA==" alt="x"> '
        '<link rel="canonical" href="https://example.org/page"> <link rel="stylesheet" href="../x.css">'
        '<svg xmlns="http://www.w3.org/2000/svg"></svg> <script>var u = "https://example.org"</script>'
    )
    assert list(check_site.findings(tmp_path)) == []


@pytest.mark.parametrize(
    ("html", "said"),
    [
        ('<img src="x.svg">', "a picture without words"),
        ('<p><img alt="a" src="_images/x.png" /></p>', "a picture that cannot scroll"),
        ('<th class="head"><p></p></th>', "a column without a name"),
        ('<p id="a"></p><p id="a"></p>', "2 parts named a"),
        ('<a href="#b">b</a>', "a link leads nowhere: #b"),
        ('<a href="gone.html">b</a>', "a link leads nowhere: gone.html"),
        ('<a href="page.html#b">b</a>', "a link leads nowhere: page.html#b"),
    ],
)
def test_scan_finds_what_some_readers_cannot_use(tmp_path, html, said):
    (tmp_path / "page.html").write_text(html)
    assert list(check_site.findings(tmp_path)) == [f"page.html: {said}"]


# --- book/_ext/llpbook_site.py --------------------------------------------------------------------------------

APE = """# An ape: another chapter

$$ a = 1 $$ (eq-ape)

:::{prf:theorem}
:label: thm-ape

Holds by {eq}`eq-ape` and {eq}`eq-mean`, [(a)](#eq-ape), [one](#eq-ape); see `SVC`, again `SVC`.
:::

:::{exercise}
:label: ex-ape

Prove {prf:ref}`thm-ape`.
:::

{{ bibtex }}
"""


EXTENSIONS = ["myst_parser", "sphinx_design", "sphinx_proof", "sphinx_exercise"]
EXTENSIONS += ["sphinx.ext.intersphinx", "links_in_words", "llpbook_site"]


def build(folder, *chapters):
    """Build a book of the tiny book's chapter and of others; return the numbers on each page, and the pages."""
    sphinx = pytest.importorskip("sphinx.application")
    toy = read("tests/tiny_book/book/src/toy.md")
    toy = re.sub("```{code-cell}.*?```", "", toy, flags=re.S)
    zebra = APE.replace("ape", "zebra").replace("eq-mean", "thm-ape")
    zebra = zebra.replace("{eq}`thm", "{prf:ref}`thm")
    texts = {"toy": toy, "ape": APE, "zebra": zebra}
    texts["index"] = "\n".join(["# Book", "```{toctree}", *chapters, "```"])
    folder.mkdir()
    for name in ("index", *chapters):
        (folder / f"{name}.md").write_text(texts[name], encoding="utf-8")
    settings = {
        "extensions": EXTENSIONS,
        "myst_enable_extensions": ["colon_fence", "dollarmath", "substitution"],
        "copyright": "2030",
        "html_baseurl": "https://book.example/",
        "bibtex_bibfiles": [],
        "intersphinx_mapping": {
            name: (f"https://{name}.example", str(ROOT / f"book/_inv/{name}.inv"))
            for name in ("numpy", "sklearn")
        },
    }
    out = folder / "html"
    app = sphinx.Sphinx(folder, None, out, out, "dirhtml", settings, status=None)
    app.build()
    pages = {c: (out / c / "index.html").read_text(encoding="utf-8") for c in chapters}
    number = r'class="eqno">\((\d+)\)|caption-number">(\w+ \d+) '
    return {c: re.findall(number, page) for c, page in pages.items()}, pages


def test_a_new_chapter_moves_no_number(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "book/_ext")
    before, pages = build(tmp_path / "before", "toy", "ape")
    assert before["toy"] == [("1", ""), ("2", ""), ("3", "")]
    assert before["ape"] == [("1", ""), ("", "Theorem 1"), ("", "Exercise 1")]
    after, _ = build(tmp_path / "after", "zebra", "toy", "ape")
    assert after == before | {"zebra": before["ape"]}
    assert ">(1)</a> and" in pages["ape"]  # of the same chapter
    assert ">(2) in A toy for Bayes</a>" in pages["ape"]
    assert '<span class="xref myst eq">one</span></a>' in pages["ape"]  # words stay
    assert pages["ape"].count("https://sklearn.example/") == 1  # the first SVC only
    address = "https://book.example/ape.html"
    said = yaml.safe_load(read("CITATION.cff"))
    year = str(said.get("date-released", 2030))[:4]
    entries = re.sub("<.*?>", "", pages["ape"])
    assert re.search(rf" \({year}\): .* version {said['version']}.*{address}", entries)
    assert f"year    = {{{year}}},\n  version = {{{said['version']}}}," in entries
    assert f"url       = {{{address}}}" in pages["ape"]


@pytest.mark.parametrize(
    ("source", "mode", "shown", "words"),
    [
        ("plt.show()", "input", "image", "Code of the figure"),
        ("Table(x)", "input", '<figure class="book-table">', "Code of the table"),
        ("# llpbook.em.EMLR.fit\n", "input", "3", "Code of fit"),
        ("def check(x):\n    return x", "input", "", "Code of check"),
        ("a = 1\nimport numpy", "input", "", "Imports and settings"),
        ("a = 1", "input", "", "Code"),
        ("print(3)", "output", "3", "Output"),
    ],
)
def test_the_bar_of_a_fold_names_what_the_code_makes(
    monkeypatch, source, mode, shown, words
):
    monkeypatch.syspath_prepend(ROOT / "book/_ext")
    import llpbook_site
    from docutils import nodes

    node = nodes.image() if shown == "image" else nodes.raw("", shown)
    attributes = {"hide_mode": mode, "prompt_show": "Show", "prompt_hide": "Hide"}
    code = nodes.container("", nodes.literal_block("", source))
    cell = nodes.container("", code, nodes.container("", node), **attributes)
    llpbook_site.name_folds(None, nodes.section("", cell))
    assert cell["prompt_show"] == cell["prompt_hide"] == words


# --- book/_ext/light_pages.py ---------------------------------------------------------------------------------


def test_a_page_waits_for_no_script_and_no_search(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "book/_ext")
    from light_pages import light

    picture = '<span class="picture x"><img alt="a" src="_images/a.png" />'
    head = (
        '<script src="_static/documentation_options.js"></script>'
        '<script data-a="b" src="_static/doctools.js"></script>'
        '<script src="_static/searchtools.js"></script>\n<script src="searchindex.js"></script>'
        '<script defer="defer" src="_static/mathjax/tex.js?v=1"></script>'
    )
    page = light("page.html", f'{head}<i class="fas fa-file"></i>{picture * 3}')
    blocking = re.findall(r'<script (?!defer)[^>]*src="([^"]*)"', page)
    assert blocking == ["_static/documentation_options.js"]
    assert "search" not in page and '{src: "_static/mathjax/tex.js?v=1"}' in page
    assert page.count('loading="lazy"') == 2 and '<i aria-hidden="true" ' in page
    assert light("page.html", page) == page
    assert "searchindex" in light("search.html", head)


def test_style_sheets_keep_what_the_site_names(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "book/_ext")
    from light_pages import used_rules

    kept = [
        "/*! MIT */",
        "a:hover, .other .used{x: 1.5em}",
        "p:not(.other){x:1}",
        "@font-face{x:1}",
        r".w-1\/2{x:1}",
        "@media (width > 5px){.used{x:1}",
    ]
    lost = ["/* words */", ".other{x:1}", ".used.other>a{x:1}", ".other{x:1}"]
    css = "".join(a + b for a, b in zip(kept, [*lost, "", ""], strict=True))
    assert used_rules(css + "}", {"used", "w-1/2"}) == "".join(kept) + "}"


def test_two_builds_are_compared_by_words_links_and_figures(tmp_path):
    page = (
        '<h1>Top</h1><article>{} <a href="x.html">x</a><img src="{}" alt=""></article>'
    )
    for site, text, image in (
        ("a", "one two three", "1.png"),
        ("b", "one 2 three", "2.png"),
    ):
        (tmp_path / site / "book").mkdir(parents=True)
        for name in ("left", "right"):
            path = tmp_path / site / f"book/{name}.html"
            path.write_text(page.format(text, image), encoding="utf-8")
    (tmp_path / "b/book/left.html").rename(tmp_path / "b/book/new.html")
    count, found = compare_sites.differences(tmp_path / "a", tmp_path / "b")
    assert count == 2
    assert {key: [p.stem for p in pages] for key, pages in found.items()} == {
        ("page", "book/left.html", "lost"): ["left"],
        ("page", "book/new.html", "new"): ["new"],
        ("text", "two", "2"): ["right"],
        ("figure", "1.png", "2.png"): ["right"],
    }


def test_links_of_the_printed_book_stay_inside():
    body = '<section class="x" id="top"><p id="a"></p><a href="{}"></a></section>'
    for given, wanted in (
        ("book/intro.html#a", "#a"),
        ("#document-book/intro", "#top"),
        ("genindex.html", f"{SITE}genindex.html"),
        ("#llpbook.em.EMLR.fit", f"{SITE}book/api/em.html"),
        ("https://example.org", "https://example.org"),
    ):
        text = print_pdf.links_within(body.format(given), "book/intro.html")
        assert f'href="{wanted}"' in text
    with pytest.raises(SystemExit, match="lead nowhere"):
        print_pdf.links_within(body.format("#b"), "book/intro.html")


def test_what_a_colon_announces_stays_with_it_in_print():
    text = re.sub(print_pdf.LEAD_IN, "!", "<p>a</p>:<p>b</p><p>c <i>d</i>:</p>")
    assert text == "<p>a</p>:<p>b</p>!c <i>d</i>:</p>"


# --- the arithmetic of the errata ----------------------------------------------------------------------------


def test_errata_say_what_the_arithmetic_says():
    critical = 2.128 * sqrt(4 * 5 / (6 * 8))  # Demšar's, for 8 data sets
    sets = (40, 60, 80)
    few = [sum(min(i, n - i) * comb(n, i) for i in range(n + 1)) for n in sets]
    levels = [total / (2**n * n) for n, total in zip(sets, few, strict=True)]
    p = np.array([[0.750, 0.250], [0.516, 0.484], [0.302, 0.698]])
    one, two, three = (p / p.sum(axis=0) * [2, 1]).sum(axis=1)
    numbers = [f"{critical:.3f}", f"{1.375 + 2.375 + 2.275 + 3.875:.1f}"]
    numbers += [", ".join(f"{level:.3f}" for level in levels)]
    numbers += [f"{one:.3f}, {two:.3f} and {three:.3f}", str(112 * 2 * 4 + 24 * 3)]
    numbers += [f"{1 - exp(-0.5):.2f}"]
    text = read("book/errata.md")
    assert not [number for number in numbers if number not in text]


def test_constant_predictions_of_perezortiz2016_are_shares_of_one_class():
    glass, tumor = (Counter(load(name)[1]) for name in ("glass", "primary-tumor"))
    assert sorted(glass.values())[-2:] == [70, 76] and sum(glass.values()) == 214
    assert max(tumor.values()) == 84 and sum(tumor.values()) == 339
    # the printed means are over ten folds of unequal size
    assert abs(70 / 214 - 0.3273) < 0.001 and abs(84 / 339 - 0.2479) < 0.001
