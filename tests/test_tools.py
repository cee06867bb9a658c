"""Every rule of the authoring tools can fail: tiny books, each with one thing wrong."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))

import _book  # noqa: E402
import check_book  # noqa: E402
import execute  # noqa: E402
import sync_cells  # noqa: E402

SETTINGS = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
PYPROJECT = re.search(r"\[tool\.jupytext\].*?(?=\n\[)", SETTINGS, re.DOTALL)[0]

MODULE = '''"""A toy."""

import numpy as np

__all__ = ["SCALE", "Toy", "double"]
SCALE = 2


def double(x):
    """Twice the input.

    Parameters
    ----------
    x : float
    """
    # the factor is that of the text
    return SCALE * np.asarray(x)  # eq: eq-double


class Toy:
    r"""A model with \\alpha in its summary.

    Nothing more.
    """

    def __init__(self, lam=1.0):
        self.lam = lam

    def fit(self, x):
        """Fit the toy.

        A long story.
        """
        self.mean_ = double(x).mean()  # eq: eq-mean, eq-double
        return self

    @property
    def two(self):
        return 2

    def _hidden(self):
        return 0
'''

TESTS = """import pytest

from llpbook.toy import double


@pytest.mark.equation("eq-double")
def test_double():
    assert double(1) == 2


@pytest.mark.parametrize("x", [1, pytest.param(2, marks=pytest.mark.equation("eq-mean"))])
def test_mean(x):
    assert double(x) == 2 * x
"""

TWIN = """---
kernelspec:
  display_name: Python 3
  language: python
  name: python3
---

# A toy for Bayes

Twice $x$:

$$
y = 2 x
$$ (eq-double)

## The mean of LLP

```{math}
:label: eq-mean
m = y
```

A step, $$ 2 = 1 + 1 $$ (step-two)

```{code-cell} ipython3
import numpy as np

x = np.arange(3)
```

```{code-cell} ipython3
:tags: [llpbook]

# llpbook.toy.double
```

```{code-cell} ipython3
double(x).sum()
```

```{code-cell} ipython3
:tags: [llpbook]

# llpbook.toy.Toy
```

## Concordance

<!-- concordance -->
<!-- /concordance -->
"""


class Tiny:
    """A small book on disk, and the things that tests do to it."""

    def __init__(self, root):
        self.root = root
        self.twin, self.notebook = root / "book/src/toy.md", root / "book/toy.ipynb"
        self.module, self.tests = root / "llpbook/toy.py", root / "tests/test_toy.py"
        for path, text in {
            "pyproject.toml": PYPROJECT,
            "_toc.yml": "format: jb-book\nroot: book/toy.ipynb\nchapters:\n  - file: book/concordance\n",
            "llpbook/__init__.py": "",
            "llpbook/toy.py": MODULE,
            "tests/test_toy.py": TESTS,
            "book/src/toy.md": TWIN,
        }.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, encoding="utf-8")

    def sync(self, *args):
        return sync_cells.main([*args, "--root", str(self.root)])

    def execute(self, *args):
        return execute.main([*args, "--root", str(self.root)])

    def check(self, rule):
        """The findings of one rule, without the lines of the twin."""
        return [
            re.sub(r" \(src/\w+\.md line \d+\)", "", message)
            for _, message in check_book.findings(_book.Book(self.root), [rule])
        ]

    def edit(self, path, old, new):
        text = path.read_text(encoding="utf-8")
        assert text.count(old) == 1, (
            f"{old!r} is {text.count(old)} times in {path.name}"
        )
        path.write_text(text.replace(old, new), encoding="utf-8")

    def load(self):
        return nbformat.read(self.notebook, 4)

    def save(self, nb):
        self.notebook.write_text(_book.dump_notebook(nb), encoding="utf-8")

    def change(self, i, **fields):
        """Set fields of code cell ``i`` (from 0) in the stored notebook."""
        nb = self.load()
        [c for c in nb.cells if c.cell_type == "code"][i].update(
            nbformat.from_dict(fields)
        )
        self.save(nb)

    def change_text(self, i, old, new):
        """Edit cell ``i`` (from 0) of the stored notebook, as in Jupyter."""
        nb = self.load()
        assert old in nb.cells[i].source
        nb.cells[i].source = nb.cells[i].source.replace(old, new)
        self.save(nb)

    def add(self, markdown):
        """Put a paragraph before the concordance, and bring the notebook up to date."""
        self.edit(self.twin, "## Concordance", f"{markdown}\n\n## Concordance")
        self.sync()

    def files(self):
        return {p: p.read_bytes() for p in sorted(self.root.rglob("*")) if p.is_file()}

    def pretend_run(self):
        """Give the cells counts and one output, as an execution would."""
        nb = self.load()
        for n, cell in enumerate((c for c in nb.cells if c.cell_type == "code"), 1):
            cell.execution_count = n
        data = {"text/plain": "np.int64(6)"}
        nb.cells[3].outputs = [
            nbformat.v4.new_output("execute_result", data, execution_count=3)
        ]
        self.save(nb)


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    tiny = Tiny(tmp_path_factory.mktemp("book"))
    assert tiny.sync() == 0
    tiny.pretend_run()
    return tiny.root


@pytest.fixture
def tiny(template, tmp_path):
    book = Tiny(tmp_path / "book")
    shutil.copytree(template, tmp_path / "book", dirs_exist_ok=True)
    return book


# --- the good book -------------------------------------------------------------------------------------------


def test_good_book_passes(tiny, capsys):
    assert tiny.sync("--check") == 0
    assert check_book.main(["--root", str(tiny.root)]) == 0
    assert capsys.readouterr().out == ""


def test_empty_folder_passes(tmp_path):
    assert sync_cells.main(["--root", str(tmp_path)]) == 0
    assert sync_cells.main(["--check", "--root", str(tmp_path)]) == 0
    assert check_book.main(["--root", str(tmp_path)]) == 0
    assert list(tmp_path.iterdir()) == []


def test_rules_are_explained(capsys):
    assert check_book.main(["--rules"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(check_book.RULES)


def test_findings_are_printed_with_their_rule(tiny, capsys):
    tiny.tests.unlink()
    assert check_book.main(["--root", str(tiny.root), "--only", "rooms"]) == 1
    assert capsys.readouterr().out.strip().endswith("[rooms]")


# --- sync ----------------------------------------------------------------------------------------------------


def test_managed_cells_hold_the_source(tiny):
    code = [c for c in tiny.load().cells if c.cell_type == "code"]
    assert code[1].source == (
        '# llpbook.toy.double\ndef double(x):\n    """Twice the input."""\n'
        "    # the factor is that of the text\n    return SCALE * np.asarray(x)  # eq: eq-double"
    )
    shown = code[3].source
    assert r'r"""A model with \alpha in its summary."""' in shown
    assert '        """Fit the toy."""\n        self.mean_' in shown
    assert "@property" in shown and "_hidden" in shown and "long story" not in shown
    names = {"np": __import__("numpy"), "SCALE": 2}
    exec(code[1].source, names)
    exec(shown, names)  # what a reader runs is complete
    assert names["Toy"]().fit([1, 2]).mean_ == 3


def test_several_names_methods_and_constants(tiny):
    tiny.add(
        "```{code-cell} ipython3\n:tags: [llpbook]\n\n# llpbook.toy.SCALE, llpbook.toy.Toy.two\n```"
    )
    source = next(
        c.source
        for c in tiny.load().cells
        if c.source.startswith("# llpbook.toy.SCALE")
    )
    assert (
        source.split("\n", 1)[1]
        == "SCALE = 2\n\n\n@property\ndef two(self):\n    return 2"
    )


def test_sync_twice_changes_no_byte(tiny):
    before = tiny.files()
    assert tiny.sync() == 0
    assert tiny.files() == before


def test_sync_is_the_same_from_scratch(tiny, template, tmp_path):
    for path in (tiny.notebook, tiny.root / "book/concordance.md"):
        path.unlink()
    tiny.sync()
    first = tiny.notebook.read_bytes()
    tiny.notebook.unlink()
    tiny.sync()
    assert tiny.notebook.read_bytes() == first


def test_check_writes_nothing(tiny):
    tiny.edit(tiny.module, "SCALE * np", "3 * np")
    tiny.edit(tiny.twin, "# A toy", "# One toy")
    before = tiny.files()
    assert tiny.sync("--check") == 1
    assert tiny.files() == before


def test_check_shows_a_drifted_managed_cell_once(tiny, capsys):
    tiny.edit(tiny.module, "return SCALE * np.asarray(x)", "return 3 * np.asarray(x)")
    assert tiny.sync("--check") == 1
    captured = capsys.readouterr()
    assert captured.out.splitlines()[:3] == [
        "book/src/toy.md and book/toy.ipynb are behind the package (llpbook.toy.double) (make sync)",
        "--- book/src/toy.md",
        "+++ book/src/toy.md (after)",
    ]
    for line in (
        "-    return SCALE * np.asarray(x)  # eq: eq-double",
        "+    return 3 * np.asarray(x)  # eq: eq-double",
    ):
        assert captured.out.count(line) == 1
    assert captured.err == ""  # the module was edited, not the cell


@pytest.mark.parametrize(
    ("edits", "line"),
    [
        (["twin"], "book/toy.ipynb is behind book/src/toy.md"),
        (
            ["twin", "module"],
            "book/toy.ipynb is behind book/src/toy.md, and both are behind the package (llpbook.toy.double)",
        ),
        (
            ["tests"],
            "book/src/toy.md and book/toy.ipynb are behind the package or the tests (the concordance)",
        ),
        (["form"], "book/src/toy.md is behind the form that sync writes"),
        (
            ["metadata"],
            "book/toy.ipynb has other metadata than sync writes",
        ),
    ],
)
def test_drift_begins_with_what_is_behind_what(tiny, capsys, edits, line):
    if "twin" in edits:
        tiny.edit(tiny.twin, "Twice $x$", "Two times $x$")
    if "module" in edits:
        tiny.edit(tiny.module, "return SCALE *", "return 3 *")
    if "tests" in edits:
        tiny.edit(tiny.tests, "def test_double", "def test_twice")
    if "form" in edits:
        tiny.edit(tiny.twin, "  language: python\n", "")
    if "metadata" in edits:
        nb = tiny.load()
        nb.metadata["language_info"]["version"] = "3.13"
        tiny.save(nb)
    assert tiny.sync("--check") == 1
    assert capsys.readouterr().out.splitlines()[0] == f"{line} (make sync)"
    assert tiny.sync() == 0 and tiny.sync("--check") == 0


# --- edits that a sync would lose ------------------------------------------------------------------------------

KEEP = (
    "book/toy.ipynb was edited after the last sync. Keep the edit: .venv/bin/python tools/sync_cells.py "
    "--from-notebook toy. Discard it: .venv/bin/python tools/sync_cells.py --force toy"
)


def test_edit_in_jupyter_is_not_lost(tiny, capsys):
    tiny.change_text(0, "Twice", "Two times")
    before = tiny.files()
    for args in ([], ["toy"], ["--check"]):
        assert tiny.sync(*args) == 1
        captured = capsys.readouterr()
        assert captured.err == f"error: {KEEP}\n"
        assert ("+Two times $x$:" in captured.out) == ("--check" in args)
    assert tiny.check("twins") == [KEEP]
    assert tiny.files() == before
    assert tiny.sync("--from-notebook", "toy") == 0
    assert "Two times" in tiny.twin.read_text(encoding="utf-8")
    assert tiny.sync("--check") == 0


def test_edit_in_jupyter_can_be_discarded(tiny):
    tiny.change_text(0, "Twice", "Two times")
    assert tiny.sync("--force", "toy") == 0
    assert "Two times" not in tiny.notebook.read_text(encoding="utf-8")
    assert tiny.sync("--check") == 0


def test_new_alt_text_or_cell_is_an_edit(tiny):
    tiny.change(2, metadata={"mystnb": {"image": {"alt": "A line."}}})
    assert tiny.sync() == 1
    assert tiny.sync("--force", "toy") == 0
    nb = tiny.load()
    nb.cells.append(nbformat.v4.new_code_cell("x + 1"))
    tiny.save(nb)
    assert tiny.sync() == 1


def test_an_empty_cell_at_the_end_is_no_edit(tiny):
    nb = tiny.load()
    nb.cells.append(nbformat.v4.new_code_cell(""))
    tiny.save(nb)
    assert tiny.sync() == 0
    assert tiny.sync("--check") == 0


def test_both_sides_edited(tiny, capsys):
    tiny.change_text(0, "Twice", "Two times")
    tiny.edit(tiny.twin, "Twice $x$", "Doubly $x$")
    before = tiny.files()
    for args in ([], ["--check"], ["--from-notebook"]):
        assert tiny.sync(*args) == 1
        error = capsys.readouterr().err
        assert (
            "both book/toy.ipynb and book/src/toy.md were edited after the last sync"
            in error
        )
        assert "--from-notebook --force toy" in error
    expect(tiny, "twins", "^both book/toy.ipynb and")
    assert tiny.files() == before
    assert tiny.sync("--from-notebook", "--force", "toy") == 0
    assert "Two times" in tiny.twin.read_text(encoding="utf-8")


def test_both_sides_edited_alike(tiny):
    tiny.change_text(0, "Twice", "Two times")
    tiny.edit(tiny.twin, "Twice $x$", "Two times $x$")
    assert tiny.sync() == 0


def test_edit_of_the_twin_is_not_lost_to_the_notebook(tiny, capsys):
    tiny.edit(tiny.twin, "Twice $x$", "Two times $x$")
    assert tiny.sync("--from-notebook") == 1
    error = "book/src/toy.md was edited after the last sync. Keep the edit: .venv/bin/python tools/sync_cells.py toy."
    assert error in capsys.readouterr().err
    assert tiny.sync("toy") == 0
    assert "Two times $x$" in tiny.notebook.read_text(encoding="utf-8")


def test_force_names_its_chapters(tiny):
    with pytest.raises(SystemExit):
        tiny.sync("--force")


def test_an_edit_stops_only_its_chapter(tiny):
    (tiny.root / "book/src/other.md").write_text("# Other\n", encoding="utf-8")
    tiny.change_text(0, "Twice", "Two times")
    assert tiny.sync() == 1
    assert (tiny.root / "book/other.ipynb").exists()


def test_what_sync_writes_is_no_edit(tiny):
    tiny.edit(tiny.module, "return SCALE *", "return 3 *")
    tiny.edit(tiny.tests, "def test_double", "def test_twice")
    tiny.change(2, execution_count=9)
    assert tiny.sync() == 0
    tiny.change_text(5, "test_twice", "test_other")  # of the concordance
    assert tiny.sync() == 0
    assert "test_other" not in tiny.notebook.read_text(encoding="utf-8")


def test_notebook_of_before_is_taken_as_it_is(tiny):
    nb = tiny.load()
    del nb.metadata[_book.SYNCED]
    tiny.save(nb)
    assert tiny.sync("--check") == 0
    tiny.change_text(0, "Twice", "Two times")
    assert tiny.sync() == 0  # nothing tells that the notebook was edited
    assert "Two times" not in tiny.notebook.read_text(encoding="utf-8")
    tiny.change_text(0, "Twice", "Two times")
    assert tiny.sync() == 1


def test_twin_saved_while_sync_reads(tiny, capsys, monkeypatch):
    expected = sync_cells.Chapter.expected

    def slow(chapter, equations):
        tiny.edit(tiny.twin, "Twice $x$", "Two times $x$")
        return expected(chapter, equations)

    monkeypatch.setattr(sync_cells.Chapter, "expected", slow)
    assert tiny.sync() == 1
    assert "book/src/toy.md changed while it was read" in capsys.readouterr().err
    assert "Two times" in tiny.twin.read_text(encoding="utf-8")


def test_edit_of_a_managed_cell_is_told(tiny, capsys):
    tiny.edit(tiny.twin, "return SCALE *", "return 4 *")
    note = (
        "book/src/toy.md line 34: managed cell llpbook.toy.double differs from llpbook/toy.py; the package wins. "
        "If you edited the cell, make the change in the module.\n"
    )
    assert tiny.sync("--check") == 1
    assert capsys.readouterr().err == note
    tiny.edit(tiny.module, "return SCALE *", "return 3 *")  # and the module too
    assert tiny.sync() == 0
    assert capsys.readouterr().err == note
    assert tiny.sync() == 0 and capsys.readouterr().err == ""


def test_edit_of_a_managed_cell_in_jupyter_is_told(tiny, capsys):
    tiny.change_text(2, "return SCALE *", "return 4 *")
    assert tiny.sync("--from-notebook") == 0
    assert (
        "book/toy.ipynb cell 3: managed cell llpbook.toy.double differs from llpbook/toy.py"
        in capsys.readouterr().err
    )


def test_new_managed_cell_is_no_edit(tiny, capsys):
    tiny.add("```{code-cell} ipython3\n:tags: [llpbook]\n\n# llpbook.toy.SCALE\n```")
    assert capsys.readouterr().err == ""


def test_check_shows_a_managed_cell_edited_by_hand(tiny):
    nb = tiny.load()
    nb.cells[2].source = nb.cells[2].source.replace("SCALE *", "4 *")
    tiny.save(nb)
    tiny.twin.write_text(_book.twin_text(nb, tiny.notebook), encoding="utf-8")
    assert tiny.check("twins") == []
    assert tiny.sync("--check") == 1


def test_a_longer_docstring_is_no_drift(tiny):
    tiny.edit(tiny.module, "    x : float\n", "    x : float\n        The input.\n")
    assert tiny.sync("--check") == 0


@pytest.mark.parametrize(
    "name",
    [
        "llpbook.toy.triple",
        "llpbook.nothing.double",
        "llpbook.toy.Toy.predict",
        "llpbook.toy.np",
    ],
)
def test_unknown_object_names_notebook_cell_and_object(tiny, capsys, name):
    tiny.edit(tiny.twin, "# llpbook.toy.double", f"# {name}")
    before = tiny.files()
    for args in ([], ["--check"]):
        assert tiny.sync(*args) == 1
        assert (
            f"book/toy.ipynb cell 3 (src/toy.md line 34): the package has no object {name}"
            in capsys.readouterr().err
        )
    assert tiny.files() == before


def test_managed_cell_without_a_name(tiny, capsys):
    tiny.edit(tiny.twin, "# llpbook.toy.double", "# the double")
    assert tiny.sync() == 1
    error = "line 34): the first line of a cell tagged llpbook"
    assert error in capsys.readouterr().err


def test_one_bad_chapter_does_not_stop_another(tiny):
    (tiny.root / "book/src/bad.md").write_text(
        TWIN.replace("toy.double", "toy.nothing"), encoding="utf-8"
    )
    (tiny.root / "book/src/good.md").write_text("# Good\n", encoding="utf-8")
    assert tiny.sync() == 1
    assert (tiny.root / "book/good.ipynb").exists() and not (
        tiny.root / "book/bad.ipynb"
    ).exists()
    assert tiny.sync("good") == 0


def test_module_that_does_not_parse_is_named(tiny, capsys):
    tiny.edit(tiny.module, "return SCALE", "return return")
    assert tiny.sync() == 1
    assert "llpbook/toy.py line 17: invalid syntax" in capsys.readouterr().err


def test_unknown_chapter(tiny, capsys):
    assert tiny.sync("nothing") == 1
    assert "no chapter nothing" in capsys.readouterr().err


def test_outputs_of_unchanged_cells_are_kept(tiny):
    ids = [c.id for c in tiny.load().cells]
    tiny.edit(tiny.twin, "x = np.arange(3)", "x = np.arange(4)")
    tiny.add("+++\n\nOne more cell.\n\n```{code-cell} ipython3\nx + 1\n```")
    nb = tiny.load()
    code = [c for c in nb.cells if c.cell_type == "code"]
    assert code[0].execution_count is None
    assert (
        code[2].outputs[0].data["text/plain"] == "np.int64(6)"
        and code[2].execution_count == 3
    )
    assert code[4].execution_count is None and code[4].outputs == []
    new = [c.id for c in nb.cells]
    assert new[:5] == ids[:5] and ids[-1] in new and len(set(new)) == len(new)


def test_from_notebook_takes_the_notebook(tiny):
    nb = tiny.load()
    nb.cells[0].source = nb.cells[0].source.replace("Twice", "Two times")
    nb.metadata["language_info"]["version"] = "3.13"  # what Jupyter adds
    nb.cells[0].metadata["editable"] = True
    tiny.save(nb)
    assert tiny.sync("--from-notebook") == 0
    assert "Two times" in tiny.twin.read_text(encoding="utf-8")
    assert '"3.13"' not in tiny.notebook.read_text(encoding="utf-8")
    assert [c.id for c in tiny.load().cells] == [c.id for c in nb.cells]
    assert tiny.load().cells[3].outputs == nb.cells[3].outputs
    assert tiny.sync("--check") == 0


def test_twin_wins_without_a_flag(tiny):
    tiny.edit(tiny.twin, "Twice $x$", "Two times $x$")
    assert tiny.sync("--check") == 1
    assert tiny.sync() == 0
    assert "Two times $x$" in tiny.notebook.read_text(encoding="utf-8")


def test_notebook_without_twin_gets_one(tiny):
    text = tiny.twin.read_text(encoding="utf-8")
    tiny.twin.unlink()
    assert tiny.sync("--check") == 1
    assert tiny.sync() == 0
    assert tiny.twin.read_text(encoding="utf-8") == text


def test_broken_notebook_is_named(tiny, capsys):
    tiny.notebook.write_text("<<<<<<< HEAD", encoding="utf-8")
    assert tiny.sync() == 1
    assert "book/toy.ipynb: not a notebook" in capsys.readouterr().err
    assert check_book.main(["--root", str(tiny.root)]) == 1


# --- concordance ---------------------------------------------------------------------------------------------

ROWS = [
    "| {eq}`eq-double` | {py:func}`~llpbook.toy.double`, {py:meth}`Toy.fit <llpbook.toy.Toy.fit>` | "
    "`test_toy.py::test_double` |",
    "| {eq}`eq-mean` | {py:meth}`Toy.fit <llpbook.toy.Toy.fit>` | `test_toy.py::test_mean` |",
]


def test_concordance_of_the_chapter(tiny):
    text = tiny.twin.read_text(encoding="utf-8")
    block = text[
        text.index("<!-- concordance -->") : text.index("<!-- /concordance -->")
    ]
    assert [line for line in block.splitlines() if line.startswith("| {eq}")] == ROWS


def test_concordance_page(tiny):
    text = (tiny.root / "book/concordance.md").read_text(encoding="utf-8")
    assert text.startswith("(concordance)=\n# Concordance\n")
    assert [line for line in text.splitlines() if "{eq}" in line] == [
        "| {doc}`toy` " + row for row in ROWS
    ]


def test_concordance_page_follows_the_table_of_contents(tiny):
    (tiny.root / "book/src/zebra.md").write_text(
        "# Z\n\n$$ z $$ (eq-zebra)\n", encoding="utf-8"
    )
    (tiny.root / "book/src/ape.md").write_text(
        "# A\n\n$$ a $$ (eq-ape)\n", encoding="utf-8"
    )
    toc = tiny.root / "_toc.yml"
    tiny.edit(
        toc,
        "root: book/toy.ipynb\nchapters:\n",
        "root: book/zebra.ipynb\nchapters:\n  - file: book/toy.ipynb\n",
    )
    tiny.sync()
    text = (tiny.root / "book/concordance.md").read_text(encoding="utf-8")
    assert re.findall(r"\{doc\}`(\w+)`", text) == ["zebra", "toy", "toy", "ape"]


def test_stale_concordance_is_drift(tiny, capsys):
    tiny.edit(tiny.tests, "def test_double", "def test_twice")
    assert tiny.sync("--check") == 1
    out = capsys.readouterr().out
    assert "test_toy.py::test_twice" in out and "book/concordance.md" in out


def test_private_function_is_not_linked(tiny):
    tiny.edit(tiny.module, "        return 0\n", "        return 0  # eq: eq-mean\n")
    assert tiny.sync() == 0
    assert ", `llpbook.toy.Toy._hidden` |" in tiny.twin.read_text(encoding="utf-8")


def test_concordance_block_must_close(tiny, capsys):
    tiny.edit(tiny.twin, "<!-- /concordance -->", "")
    assert tiny.sync() == 1
    assert "cell 6: one '<!-- concordance -->'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("$$ a $$ (eq-a)\n\n$$\nb\n$$ (eq-b)", ["eq-a", "eq-b"]),
        ("$$ a $$\n\n(b) not a label", []),
        ("```{math}\n:label: eq-c\nx\n```", ["eq-c"]),
        (":::{math}\n:nowrap:\n:label: eq-c\nx\n:::", ["eq-c"]),
        ("```{math}\n---\nlabel: eq-d\n---\nx\n```", ["eq-d"]),
        (
            "````{dropdown} Proof\n```{math}\n:label: step-e\nx\n```\n$$ y $$ (step-f)\n````",
            ["step-e", "step-f"],
        ),
        ("```latex\n$$ a $$ (eq-a)\n```\n`$$ b $$ (eq-b)`", []),
        ("````{code-block} md\n```{math}\n:label: eq-c\n```\n````", []),
    ],
)
def test_equation_labels_are_found(text, labels):
    assert _book.equation_labels(text) == labels


# --- the rules -----------------------------------------------------------------------------------------------


def expect(tiny, rule, pattern):
    found = tiny.check(rule)
    assert any(re.search(pattern, message) for message in found), (
        f"{rule}: {pattern!r} not in {found}"
    )


def test_stale_twin(tiny):
    tiny.edit(tiny.notebook, "Twice $x$", "Two times $x$")
    expect(tiny, "twins", r"book/toy.ipynb was edited after the last sync")
    tiny.sync("--force", "toy")
    tiny.edit(tiny.twin, "Twice $x$", "Two times $x$")
    expect(tiny, "twins", r"book/toy.ipynb: differs from book/src/toy.md \(make sync")


def test_missing_twin_or_notebook(tiny):
    tiny.twin.rename(tiny.twin.with_name("other.md"))
    expect(tiny, "twins", r"book/toy.ipynb: has no twin")
    expect(tiny, "twins", r"book/src/other.md: has no notebook")


@pytest.mark.parametrize("count", [None, 7])
def test_unexecuted_cell(tiny, count):
    tiny.change(2, execution_count=count)
    message = (
        "book/toy.ipynb: 1 cell has not run in order, from cell 4 (make run CH=toy)"
    )
    assert tiny.check("executed") == [message]
    tiny.change(0, execution_count=count)
    expect(tiny, "executed", r"toy.ipynb: 2 cells have not run in order, from cell 2 ")


def test_findings_give_the_line_of_the_twin(tiny):
    tiny.change(2, outputs=[PNG])
    book = _book.Book(tiny.root)
    found = [message for _, message in check_book.findings(book, ["alt_text"])]
    line = tiny.twin.read_text(encoding="utf-8").split("\n").index("double(x).sum()")
    place = f"book/toy.ipynb cell 4 (src/toy.md line {line + 1})"
    assert found == [f"{place}: a figure without alt text (mystnb: image: alt)"]


def test_lines_of_cells():
    text = "---\na: x\n---\n\n# A\n\n```{code-cell}\nx\n```\n\n+++\n\nA\n"
    new = nbformat.v4
    cells = [new.new_markdown_cell("# A"), new.new_code_cell("x")]
    cells += [new.new_markdown_cell("gone"), new.new_code_cell("")]
    cells += [new.new_markdown_cell("A")]
    nb = new.new_notebook(cells=cells)
    assert _book.cell_lines(nb, text) == [5, 8, None, None, 13]


def test_stderr_and_errors(tiny):
    warning = {
        "output_type": "stream",
        "name": "stderr",
        "text": "x.py:1: UserWarning\nmind the gap",
    }
    error = {
        "output_type": "error",
        "ename": "ValueError",
        "evalue": "no",
        "traceback": [],
    }
    tiny.change(0, outputs=[warning])
    tiny.change(2, outputs=[error])
    expect(tiny, "clean_outputs", "cell 2: wrote to stderr: mind the gap")
    expect(tiny, "clean_outputs", "cell 4: ended with ValueError: no")


PNG = {
    "output_type": "display_data",
    "data": {"image/png": "iVBORw0KGgo="},
    "metadata": {},
}


def test_figure_without_alt_text(tiny):
    tiny.change(2, outputs=[PNG])
    expect(tiny, "alt_text", "cell 4: a figure without alt text")
    tiny.change(2, outputs=[PNG], metadata={"mystnb": {"image": {"alt": "A line."}}})
    assert tiny.check("alt_text") == []


@pytest.mark.parametrize(
    "markdown",
    [
        "![](a.png)",
        "```{figure} a.png\n:width: 3\n\nA caption.\n```",
        '<img src="a.png">',
        "```{image} a.png\n```",
    ],
)
def test_image_without_alt_text(tiny, markdown):
    tiny.add(markdown)
    expect(tiny, "alt_text", "toy.ipynb cell 6: .*(alt text|:alt:)")


@pytest.mark.parametrize(
    "markdown",
    [
        "![what](a.png)",
        "```{figure} a.png\n:alt: What.\n```",
        '<img alt="what" src="a">',
        "```md\n![](a.png)\n```",
    ],
)
def test_image_with_alt_text(tiny, markdown):
    tiny.add(markdown)
    assert tiny.check("alt_text") == []


def test_output_size(tiny):
    tiny.change(2, outputs=[{**PNG, "data": {"image/png": "A" * 199_000}}])
    assert tiny.check("output_size") == []
    tiny.change(2, outputs=[{**PNG, "data": {"image/png": "A" * 201_000}}])
    expect(tiny, "output_size", r"book/toy.ipynb: 201 kB")


def test_long_cell(tiny):
    tiny.change(0, source="x = 1\n" * 31)
    expect(tiny, "cell_length", "cell 2: 31 lines")
    tiny.change(0, source="x = 1\n" * 30 + "\n# why\n" * 9)
    assert not any("cell 2" in message for message in tiny.check("cell_length"))
    tiny.change(
        1, source="# llpbook.toy.double\n" + "x = 1\n" * 90
    )  # managed: as long as the module has it
    assert not any("cell 3" in message for message in tiny.check("cell_length"))


def test_wide_line(tiny):
    tiny.change(0, source="x = '" + "a" * 82 + "'")
    assert tiny.check("line_length") == []
    tiny.change(0, source="x = '" + "a" * 83 + "'")
    expect(tiny, "line_length", "cell 2: a line of 89 characters")


def test_proof_that_would_stop_all_folding(tiny):
    tiny.add("```{dropdown} Proof\nClear.\n```\n\n```{prf:proof}\nClear.\n```")
    assert tiny.check("folding_proofs") == []
    tiny.add("```{prf:proof}\n:class: dropdown\n\nClear.\n```")
    expect(tiny, "folding_proofs", "cannot fold")


def test_median_cell(tiny):
    tiny.change(0, source="x = 1\n" * 6)
    tiny.change(2, source="x = 1\n" * 6)
    expect(tiny, "cell_length", "book/toy.ipynb: the median cell has 6 lines")


def test_forgotten_tag(tiny):
    tiny.change(1, metadata={})
    expect(tiny, "untagged", r"cell 3: the first line names llpbook.toy.double")


@pytest.mark.parametrize(
    ("title", "bad"),
    [
        ("What breaks it", []),
        ("What Breaks It", ["Breaks", "It"]),
        ("what breaks it", ["what"]),
        ("Two bags: A hand example", []),
        ("Does it work? Known truth first", []),
        ("AlterSVM and the EM of LLP, with L2", []),
        ("The Gaussian case of Bayes' rule", []),
        ("The Kullback-Leibler divergence", []),
        ("The Two-Bag Problem", ["Two", "Bag", "Problem"]),
        ("`fit` and $X Y$ in {term}`Bag Size`", []),
        ("`fit` And predict", ["And"]),
        ("scikit-learn and k-means", []),
        ("Monte Carlo runs", []),
        ("12. Summary", []),
        ("Notation (The symbols) used", []),
    ],
)
def test_heading_case_words(title, bad):
    assert check_book.bad_case(title, check_book._nouns()) == bad


def test_heading_case(tiny):
    tiny.add("## What Breaks it\n\n```python\n# Not A Heading\n```")
    expect(tiny, "heading_case", "cell 6: heading 'What Breaks it' .*: Breaks ")
    assert len(tiny.check("heading_case")) == 1


@pytest.mark.parametrize(
    ("markdown", "pattern"),
    [
        ("#### Deep", "level 4 after level 2"),
        ("# Second", "2 headings of level 1, not one"),
    ],
)
def test_heading_levels(tiny, markdown, pattern):
    tiny.add(markdown)
    expect(tiny, "heading_levels", pattern)


def test_page_needs_a_title(tiny):
    (tiny.root / "book/notes.md").write_text("Text only.\n", encoding="utf-8")
    expect(tiny, "heading_levels", "book/notes.md: 0 headings")


@pytest.mark.parametrize(
    "path",
    [
        "/home/me/x.py",
        "/tmp/ipykernel_12/1.py",
        "lib/site-packages/numpy",
        "File '/root/a'",
        "/work/x",
    ],
)
def test_path_of_a_machine(tiny, path):
    tiny.change(
        2,
        outputs=[{"output_type": "stream", "name": "stdout", "text": f"see {path}\n"}],
    )
    expect(tiny, "machine_paths", "toy.ipynb cell 4 output: a path")
    tiny.edit(tiny.module, "A long story.", f"See {path}")
    expect(tiny, "machine_paths", "llpbook/toy.py: a path")


def test_path_in_a_url_is_fine(tiny):
    tiny.add("See https://example.org/home/page and book/work/x.")
    assert tiny.check("machine_paths") == []


@pytest.mark.parametrize(
    "text",
    [
        "As an AI I think",
        "as in the previous session",
        "TODO: more",
        "Claude wrote this",
    ],
)
def test_session_talk(tiny, text):
    tiny.add(text)
    expect(tiny, "session_talk", "toy.ipynb cell 6: talk")


def test_toc(tiny):
    toc = tiny.root / "_toc.yml"
    (tiny.root / "book/loose.md").write_text("# Loose\n", encoding="utf-8")
    tiny.edit(
        toc,
        "  - file: book/concordance",
        "  - file: book/concordance\n  - file: book/gone\n  - file: book/gone",
    )
    expect(tiny, "toc", "book/loose.md: not in _toc.yml")
    expect(tiny, "toc", "_toc.yml: book/gone is not a file")
    expect(tiny, "toc", "_toc.yml: book/gone is listed 2 times")
    tiny.edit(toc, "book/toy.ipynb", "book/toy")
    expect(tiny, "toc", "book/toy is a notebook: list it with its suffix")
    toc.unlink()
    expect(tiny, "toc", "_toc.yml: missing")


def test_module_without_tests(tiny):
    tiny.tests.rename(tiny.tests.with_name("test_other.py"))
    expect(tiny, "rooms", r"llpbook/toy.py: has a chapter but no tests/test_toy.py")


@pytest.mark.parametrize(
    "new", ["def forgotten(x):\n    return x\n", "class Forgotten:\n    pass\n"]
)
def test_public_object_missing_from_the_chapter(tiny, new):
    tiny.module.write_text(MODULE + "\n\n" + new, encoding="utf-8")
    expect(
        tiny, "shown", r"book/toy.ipynb: no managed cell shows llpbook.toy.[fF]orgotten"
    )
    tiny.module.write_text(
        MODULE + "\n\n" + new.replace("Forg", "_F").replace("forg", "_f"),
        encoding="utf-8",
    )
    assert tiny.check("shown") == []


def test_a_method_does_not_show_its_class(tiny):
    tiny.edit(tiny.twin, "# llpbook.toy.Toy\n", "# llpbook.toy.Toy.fit\n")
    nb = tiny.load()
    nb.cells[4].source = "# llpbook.toy.Toy.fit"
    tiny.save(nb)
    expect(tiny, "shown", r"no managed cell shows llpbook.toy.Toy$")


def test_module_size(tiny):
    body = "    x = x + 1\n"
    long = (
        '\n\ndef long(x):\n    """Sum.\n\n'
        + "    more\n" * 40
        + '    """\n    # why\n\n'
    )
    tiny.module.write_text(MODULE + long + body * 25, encoding="utf-8")
    assert tiny.check("module_size") == []
    tiny.module.write_text(MODULE + long + body * 26, encoding="utf-8")
    expect(tiny, "module_size", "llpbook/toy.py line .*: long has 26 lines, above 25")
    tiny.module.write_text(
        MODULE + "\n\nclass Wide:\n" + "    x = 1\n" * 60, encoding="utf-8"
    )
    expect(tiny, "module_size", "class Wide has 61 lines, above 60")
    boilerplate = (
        "    _parameter_constraints: ClassVar[dict] = {\n"
        + "        'a': 1,\n" * 9
        + "    }\n    _parameter_constraints = {\n    }\n"
        + "    def __init__(\n        self,\n    ):\n        self.x = 1\n"
    )
    for n, others in ((59, ""), (60, " and 61 lines")):
        wide = "\n\nclass Wide:\n" + boilerplate + "    x = 1\n" * n
        tiny.module.write_text(MODULE + wide, encoding="utf-8")
        assert len(tiny.check("module_size")) == bool(others)
    tiny.module.write_text(MODULE + "# comment\n" * 300, encoding="utf-8")
    assert tiny.check("module_size") == []
    tiny.module.write_text(MODULE + "x = 1\n" * 300, encoding="utf-8")
    expect(tiny, "module_size", r"llpbook/toy.py: \d+ lines, above 300")


def test_label_of_an_equation(tiny):
    tiny.add("$$ a $$ (mean)\n\n$$ b $$ (eq-double)")
    expect(tiny, "equation_labels", "cell 6: the label mean starts with neither")
    expect(
        tiny,
        "equation_labels",
        "cell 1, book/toy.ipynb cell 6: the label eq-double is used 2 times",
    )


def test_equation_without_code_and_test(tiny):
    tiny.add("$$ a $$ (eq-lost)\n\n$$ b $$ (step-fine)")
    expect(tiny, "equations_kept", "cell 6: eq-lost has no '# eq: eq-lost'")
    expect(tiny, "equations_kept", "cell 6: eq-lost has no test")
    assert len(tiny.check("equations_kept")) == 2


def test_equation_whose_code_or_test_is_lost(tiny):
    tiny.edit(tiny.module, "  # eq: eq-mean, eq-double", "")
    assert [m.split(": ")[1] for m in tiny.check("equations_kept")] == [
        "eq-mean has no '# eq"
    ]
    tiny.edit(tiny.tests, '@pytest.mark.equation("eq-double")\n', "")
    expect(tiny, "equations_kept", "eq-double has no test")


def test_code_that_names_no_equation(tiny):
    tiny.edit(tiny.module, "# eq: eq-mean,", "# eq: eq-meen,")
    expect(
        tiny,
        "marks_known",
        r"llpbook/toy.py line 34: no chapter has an equation eq-meen",
    )


def test_test_that_names_no_equation(tiny):
    tiny.edit(tiny.tests, 'equation("eq-double")', 'equation("eq-double", "eq-dubble")')
    expect(
        tiny,
        "marks_known",
        r"tests/test_toy.py line 6: no chapter has an equation eq-dubble",
    )


def test_marks_in_the_wrong_place(tiny):
    tiny.edit(tiny.module, "SCALE = 2\n", "SCALE = 2  # eq: eq-double\n")
    expect(
        tiny, "marks_known", "toy.py line 6: eq-double is named outside of a function"
    )
    tiny.edit(tiny.tests, "def test_double", "def helper")
    expect(tiny, "marks_known", "test_toy.py line 6: eq-double is named outside")
    tiny.edit(tiny.module, "# the factor is that of the text", "# eq: step-two")
    expect(tiny, "marks_known", "step-two is a step")


def test_a_string_is_no_mark(tiny):
    tiny.edit(tiny.module, "A long story.", "# eq: eq-nothing")
    assert tiny.check("marks_known") == []


def test_chapter_without_its_concordance(tiny):
    tiny.edit(tiny.twin, "<!-- concordance -->", "")
    text = tiny.twin.read_text(encoding="utf-8")
    tiny.twin.write_text(text.replace("<!-- /concordance -->", ""), encoding="utf-8")
    assert tiny.sync() == 0
    expect(tiny, "concordance_shown", "book/toy.ipynb: labelled equations, but no")


NAMED = """(ch-toy)=

```{prf:theorem} Two
:label: thm-two
Text.
```

````{exercise}
:label: ex-Two
Text.
````

```{figure} a.png
---
name: fig-two
alt: Two.
---
```

```{code-cell} ipython3
---
mystnb:
  figure:
    name: fig-cell
---
x
```
"""


@pytest.mark.parametrize(
    "text",
    [
        "{eq}`eq-double` and {eq}`step-two`",
        "{ref}`ch-toy`, {ref}`the chapter <Ch-Toy>`, {ref}`ex-two`, {ref}`genindex`",
        "{numref}`fig-two`, {numref}`Figure %s <fig-cell>`, {prf:ref}`thm-two`",
        "{ref}`sklearn:svm`",
        "``{eq}`nothing` `` and\n\n```md\n{eq}`nothing`\n```",
    ],
)
def test_reference_to_what_exists(tiny, text):
    tiny.add(NAMED + "\n\n+++\n\n" + text)
    (tiny.root / "book/page.md").write_text(f"# Page\n\n{text}\n", encoding="utf-8")
    tiny.edit(
        tiny.module,
        "A long story.",
        "See :eq:`eq-mean`, ``:eq:`LABEL` ``, :ref:`ex-two`.",
    )
    assert tiny.check("references") == []


@pytest.mark.parametrize(
    "text",
    [
        "{eq}`eq-doubel`",
        "{eq}`eq-Double`",
        "{eq}`ex-two`",
        "{ref}`the chapter <ch-tyo>`",
        "{numref}`fig-cel`",
        "{prf:ref}`thm-tow`",
    ],
)
def test_reference_to_nothing(tiny, text):
    tiny.add(NAMED + "\n\n+++\n\n" + text)
    (tiny.root / "book/page.md").write_text(f"# Page\n\n{text}\n", encoding="utf-8")
    role, label = re.fullmatch(r"(\{.*\})`.*?([\w-]+)>?`", text).groups()
    assert tiny.check("references") == [
        f"book/toy.ipynb cell 8: {role}`{label}` refers to nothing in the book",
        f"book/page.md: {role}`{label}` refers to nothing in the book",
    ]


def test_docstring_that_refers_to_nothing(tiny):
    tiny.edit(
        tiny.module, "A long story.", "See :eq:`eq-mean`\n        and :eq:`eq-meen`."
    )
    assert tiny.check("references") == [
        "llpbook/toy.py line 33: :eq:`eq-meen` refers to nothing in the book"
    ]


# --- make ----------------------------------------------------------------------------------------------------


@pytest.fixture
def make(tmp_path):
    """``make`` in a folder whose programs only write down that they were called."""
    if shutil.which("make") is None:
        pytest.skip("needs make")
    shutil.copy(ROOT / "Makefile", tmp_path)
    for name in ("requirements.txt", "pyproject.toml"):
        (tmp_path / name).touch()

    def program(path, status):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            f'#!/bin/sh\necho "{path.name} $*" >> {tmp_path}/log\nexit {status}\n',
            encoding="utf-8",
        )
        path.chmod(0o755)

    def run(*args):
        command = ["make", f"PYTHON={tmp_path}/python", *args]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        log = tmp_path / "log"
        calls = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
        log.unlink(missing_ok=True)
        return done, calls

    run.program, run.root = program, tmp_path
    return run


def test_failed_setup_removes_nothing(make):
    make.program(make.root / "python", 1)
    (make.root / ".venv/lib").mkdir(parents=True)
    (make.root / ".venv/lib/mine").touch()
    done, calls = make("setup")
    assert done.returncode and calls == ["python -m venv .venv"]
    lines = done.stdout.splitlines()
    assert lines.index("cannot create .venv") < next(
        i for i, line in enumerate(lines) if line.startswith("on Debian")
    )
    assert (make.root / ".venv/lib/mine").exists()


def test_changed_requirements_keep_the_environment(make):
    make.program(make.root / ".venv/bin/python", 0)
    done, calls = make("setup")
    assert done.returncode == 0
    assert [call.split(" -q")[0] for call in calls] == ["python -m pip install"]
    assert make("setup")[1] == []


@pytest.mark.parametrize("failing", ["ruff", "python", None])
def test_check_runs_everything_and_fails_at_the_end(make, failing):
    for name in ("ruff", "python"):
        make.program(make.root / ".venv/bin" / name, int(name == failing))
    (make.root / ".venv/.stamp").touch()
    done, calls = make("check")
    assert calls == [
        "ruff check -q .",
        "ruff format -q --check .",
        "python tools/sync_cells.py --check",
        "python tools/check_book.py",
    ]
    assert (done.returncode != 0) == (failing is not None)
    named = done.stdout.partition("failed:")[2]
    assert named.count(".venv/bin/") == (2 if failing else 0)
    assert failing is None or named.count(f".venv/bin/{failing}") == 2


def test_from_notebook_needs_a_chapter(make):
    make.program(make.root / ".venv/bin/python", 0)
    (make.root / ".venv/.stamp").touch()
    assert make("from-notebook")[0].returncode
    assert make("from-notebook", "CH=toy")[1] == [
        "python tools/sync_cells.py --from-notebook toy"
    ]
    assert make("rules")[1] == ["python tools/check_book.py --rules"]


# --- execute -------------------------------------------------------------------------------------------------

RUN = """# Run

```{code-cell} ipython3
import os
import matplotlib.pyplot as plt

for i in range(3):
    print(i, flush=True)
```

```{code-cell} ipython3
---
mystnb:
  image:
    alt: A line.
---
plt.plot([0, 1])
plt.show()
```

```{code-cell} ipython3
os.path.basename(os.getcwd()), os.environ["OMP_NUM_THREADS"], len({"a", "b"})
```
"""


@pytest.fixture
def run(tmp_path):
    """A book of one chapter that needs nothing of the package."""
    book = Tiny(tmp_path)
    book.twin.unlink()
    book.twin, book.notebook = tmp_path / "book/src/run.md", tmp_path / "book/run.ipynb"
    book.twin.write_text(RUN, encoding="utf-8")
    for path in (book.module, book.tests):
        path.unlink()
    (tmp_path / "_toc.yml").write_text(
        "root: book/run.ipynb\nchapters:\n- file: book/concordance\n", encoding="utf-8"
    )
    assert book.sync() == 0
    return book


def test_execute_twice_gives_the_same_bytes(run, capsys, monkeypatch):
    monkeypatch.setenv(
        "MPLBACKEND", "agg"
    )  # as `make` sets it: the figure must be stored all the same
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    metadata = run.load().metadata
    assert run.execute("run") == 0
    first = run.files()
    out = capsys.readouterr().out
    assert (
        re.search(r"^run: \d+\.\d s$", out, re.MULTILINE)
        and out.count(" s  cell ") == 3
    )
    assert run.load().metadata == metadata
    nb = run.load()
    code = [c for c in nb.cells if c.cell_type == "code"]
    assert [c.execution_count for c in code] == [1, 2, 3]
    assert code[0].outputs == [
        {"output_type": "stream", "name": "stdout", "text": "0\n1\n2\n"}
    ]
    assert "image/png" in code[1].outputs[0].data
    assert code[2].outputs[0].data["text/plain"] == "('book', '1', 2)"
    assert nb.metadata == {**_book.METADATA, _book.SYNCED: _book.synced(nb)}
    assert _book.synced(nb)["text"] == _book.own_text(nb)
    assert check_book.main(["--root", str(run.root)]) == 0
    assert run.execute("run") == 0
    assert run.sync() == 0
    assert run.files() == first


def test_execute_stops_at_an_error(run, capsys):
    run.edit(run.twin, "plt.plot([0, 1])", "raise KeyError('lost')")
    run.sync()
    before = run.files()
    assert run.execute("run", "nothing") == 1
    err = capsys.readouterr().err
    assert "KeyError: 'lost'" in err and "no notebook book/nothing.ipynb" in err
    assert run.files() == before
