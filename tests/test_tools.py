"""Every rule of the authoring tools can fail: tiny books, each with one thing wrong."""

import base64
import itertools
import os
import re
import shutil
import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).resolve().parents[1]
TINY = ROOT / "tests/tiny_book"
sys.path.insert(0, str(ROOT / "tools"))

import _book  # noqa: E402
import check_book  # noqa: E402
import course  # noqa: E402
import execute  # noqa: E402
import new_room  # noqa: E402
import print_pdf  # noqa: E402
import student  # noqa: E402
import sync_cells  # noqa: E402

import slides  # noqa: E402

SETTINGS = _book.read(ROOT / "pyproject.toml")
PYPROJECT = re.search(r"\[tool\.jupytext\].*?(?=\n\[)", SETTINGS, re.DOTALL)[0]


class Tiny:
    """A small book on disk, and the things that tests do to it."""

    def __init__(self, root):
        self.root = root
        self.twin, self.notebook = root / "book/src/toy.md", root / "book/toy.ipynb"
        self.module, self.tests = root / "llpbook/toy.py", root / "tests/test_toy.py"

    def put(self, path, text):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text, encoding="utf-8")

    def sync(self, *args):
        return sync_cells.main([*args, "--root", str(self.root)])

    def check(self, rule):
        """The findings of one rule, without the lines of the twin."""
        book = _book.Book(self.root)
        found = (message for _, message in check_book.findings(book, [rule]))
        return [re.sub(r" \(src/\w+\.md line \d+\)", "", text) for text in found]

    def edit(self, path, old, new):
        text = _book.read(path)
        assert text.count(old) == 1, f"{old!r}: {text.count(old)} in {path.name}"
        path.write_text(text.replace(old, new), encoding="utf-8")

    def load(self):
        return nbformat.read(self.notebook, 4)

    def code(self):
        return [c for c in self.load().cells if c.cell_type == "code"]

    def save(self, nb):
        self.notebook.write_text(_book.dump_notebook(nb), encoding="utf-8")

    def change(self, i, **fields):
        """Set fields of code cell ``i`` (from 0) in the stored notebook."""
        nb = self.load()
        cell = [c for c in nb.cells if c.cell_type == "code"][i]
        cell.update(nbformat.from_dict(fields))
        self.save(nb)

    def edit_notebook(self, old, new):
        """Edit a cell of the stored notebook, as in Jupyter."""
        nb = self.load()
        cell = next(c for c in nb.cells if old in c.source)
        cell.source = cell.source.replace(old, new)
        self.save(nb)

    def add(self, markdown):
        """Put a paragraph before the concordance, and bring the notebook up to date."""
        self.edit(self.twin, "## Concordance", f"{markdown}\n\n## Concordance")
        self.sync()

    def methods(self, *road):
        """Put the chapter among the methods, and pages on the road."""
        parts = {"Core": road, "Methods from the papers": ["toy"]}
        toc = "format: jb-book\nroot: book/concordance\nparts:\n"
        for caption, names in parts.items():
            toc += f"  - caption: {caption}\n    chapters:\n"
            toc += "".join(f"      - file: book/{name}.ipynb\n" for name in names)
        (self.root / "_toc.yml").write_text(toc, encoding="utf-8")

    def files(self):
        return {p: p.read_bytes() for p in sorted(self.root.rglob("*")) if p.is_file()}


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    tiny = Tiny(shutil.copytree(TINY, tmp_path_factory.mktemp("book") / "tiny"))
    tiny.put("pyproject.toml", PYPROJECT)
    assert tiny.sync() == 0
    nb = tiny.load()  # as if it had run
    for n, cell in enumerate((c for c in nb.cells if c.cell_type == "code"), 1):
        cell.execution_count = n
    data = {"text/plain": "np.int64(6)"}
    result = nbformat.v4.new_output("execute_result", data, execution_count=3)
    nb.cells[3].outputs = [result]
    tiny.save(nb)
    return tiny.root


@pytest.fixture
def tiny(template, tmp_path):
    return Tiny(shutil.copytree(template, tmp_path / "book"))


def expect(tiny, rule, pattern):
    found = tiny.check(rule)
    assert any(re.search(pattern, text) for text in found), f"{pattern!r}: {found}"


# --- the good book -------------------------------------------------------------------------------------------


def test_good_book_passes(tiny, capsys):
    assert tiny.sync("--check") == 0
    assert check_book.main(["--root", str(tiny.root)]) == 0
    assert capsys.readouterr().out == ""
    tiny.tests.unlink()
    assert check_book.main(["--root", str(tiny.root)]) == 1
    assert "has no test marked equation" in capsys.readouterr().out


# --- sync ----------------------------------------------------------------------------------------------------


def test_folded_cells_do_not_count_for_the_median(tiny):
    long = "\n".join(f"y{n} = {n}" for n in range(9))
    folded = {"jupyter": {"source_hidden": True}}
    for i in (0, 2):
        tiny.change(i, source=long)
    assert "median cell of 9" in tiny.check("cell_length")[0]
    tiny.change(0, metadata=folded)
    assert tiny.check("cell_length") != []
    tiny.change(2, metadata=folded)
    assert tiny.check("cell_length") == []


def test_jupyterlab_folds_what_the_site_folds(tiny):
    twin = tiny.twin
    fence = "```{code-cell} ipython3\n"
    text = twin.read_text(encoding="utf-8").replace(
        f"{fence}import", f"{fence}:tags: [hide-input]\n\nimport"
    )
    solution = f":::{{solution-start}} ex-a\n:::\n\n{fence}2\n```\n\n:::{{solution-end}}\n:::\n"
    twin.write_text(f"{text}\n{solution}\n{fence}3\n```\n", encoding="utf-8")
    assert tiny.sync() == 0
    folds = {c.source: c.metadata.get("jupyter") for c in tiny.code()}
    code = {"source_hidden": True}
    assert folds["import numpy as np\n\nx = np.arange(3)"] == code
    assert folds["2"] == {"outputs_hidden": True, **code}
    assert folds["double(x).sum()"] is folds["3"] is None


def test_managed_cells_hold_the_source(tiny):
    code = tiny.code()
    assert code[1].source == (
        '# llpbook.toy.double\ndef double(x):\n    """Twice the input."""\n'
        "    # the factor is that of the text\n    # eq: eq-double\n"
        "    return SCALE * np.asarray(x)"
    )
    shown = code[3].source
    assert r'r"""A model with \alpha in its summary."""' in shown
    assert '        """Fit the toy."""\n        # eq: eq-mean' in shown
    assert "@property" in shown and "_hidden" in shown and "long story" not in shown
    names = {"np": __import__("numpy"), "SCALE": 2, "BaseClassifier": object}
    exec(code[1].source, names)
    exec(shown, names)  # what a reader runs is complete
    assert names["Toy"]().fit([1, 2]).mean_ == 3


def test_check_writes_nothing_and_shows_what_differs(tiny, capsys):
    tiny.edit(tiny.module, "return SCALE *", "return 3 *")
    tiny.edit(tiny.tests, "def test_double", "def test_twice")
    before = tiny.files()
    assert tiny.sync("--check") == 1
    assert tiny.files() == before
    out, err = capsys.readouterr()
    assert "-    return SCALE *" in out and "+    return 3 *" in out
    for name in ("src/toy.md", "toy.ipynb", "concordance.md"):
        assert f"book/{name} is not what sync writes (make sync)" in err
    assert "test_toy.py::test_twice" in out
    assert tiny.sync() == 0 and tiny.sync("--check") == 0


@pytest.mark.parametrize("name", ["gone.x", "toy.Toy.go", "toy.np"])
def test_unknown_object_names_cell_and_object(tiny, capsys, name):
    tiny.edit(tiny.twin, "# llpbook.toy.double", f"# llpbook.{name}")
    before = tiny.files()
    for args in ([], ["--check"]):
        assert tiny.sync(*args) == 1
        error = "cell 3 (src/toy.md line 38): the package has no object llpbook." + name
        assert error in capsys.readouterr().err
    assert tiny.files() == before


def test_a_chapter_is_as_long_as_it_may_be(tiny, monkeypatch):
    assert tiny.check("length") == []
    tiny.methods()
    monkeypatch.setattr(check_book, "WORDS", {check_book.METHODS: 10})
    expect(tiny, "length", r"book/toy.ipynb: \d+ words, above 10")


@pytest.mark.parametrize(
    ("planted", "named"),
    [
        ("```{code-cell} ipython3\nfrom llpbook import np, double\n```", "double"),
        ("```{code-cell} ipython3\nimport llpbook.toy as t\n```", "llpbook.toy"),
        ("```python\nmodel = Toy()\n```", "Toy"),
        ("By [(double)](#eq-double) it is 2.", "#eq-double"),
        ("See [its page](toy.ipynb), which doubles by `Toy`.", None),
    ],
)
def test_the_road_needs_no_page_of_the_methods(tiny, planted, named):
    tiny.methods("way")
    head = _book.read(tiny.twin).split("# ", 1)[0]
    tiny.put("book/src/way.md", f"{head}# The way\n\n{planted}\n")
    tiny.sync()
    told = "is of a page of the methods; the road needs none"
    wanted = [f"book/way.ipynb: {named} {told}"] if named else []
    assert tiny.check("road") == wanted


def test_the_last_lines_lead_to_the_next_page(tiny):
    assert tiny.check("ends") == []
    tiny.edit(tiny.twin, "**Next:** nothing.", "**Next:** [here](toy.ipynb).")
    tiny.sync()
    expect(tiny, "ends", "book/toy.ipynb: the next page is concordance, not toy")
    tiny.edit(tiny.twin, "**Next:** [here](toy.ipynb). **Skip to** the end.", "End.")
    tiny.sync()
    for word in ("Next", "Skip to"):
        expect(tiny, "ends", rf"the last paragraph has no \*\*{word}")


# --- outputs -------------------------------------------------------------------------------------------------


def test_outputs_of_unchanged_cells_are_kept(tiny):
    tiny.edit(tiny.twin, "x = np.arange(3)", "x = np.arange(4)")
    tiny.add("+++\n\nOne more cell.\n\n```{code-cell} ipython3\nx + 1\n```")
    code = tiny.code()
    assert [c.execution_count for c in code] == [None, 2, 3, 4, None]
    assert code[2].outputs[0].data["text/plain"] == "np.int64(6)"
    ids = [cell.id for cell in tiny.load().cells]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize(
    ("new", "same"),
    [
        ("double(\n    x\n).sum()", True),
        ("double(x).sum();", False),  # which shows nothing
        ("double(x).mean()", False),
    ],
)
def test_outputs_survive_comments_and_layout(tiny, new, same):
    tiny.edit(tiny.twin, "double(x).sum()", new)
    assert tiny.sync() == 0
    assert tiny.code()[2].source == new
    assert bool(tiny.code()[2].outputs) == same
    assert bool(tiny.check("executed")) != same


# --- edits that a sync would lose ------------------------------------------------------------------------------


def test_edit_in_jupyter_is_not_lost(tiny, capsys):
    tiny.edit_notebook("Twice", "Two times")
    before = tiny.files()
    for args in ([], ["toy"], ["--check"]):
        assert tiny.sync(*args) == 1
        out, err = capsys.readouterr()
        assert (
            "book/toy.ipynb was edited after the last sync. Keep it: make from" in err
        )
        assert ("Two times $x$:" in out) == ("--check" in args)
    assert tiny.files() == before
    assert tiny.sync("--from-notebook", "toy") == 0
    assert "Two times" in _book.read(tiny.twin)
    assert tiny.sync("--check") == 0


def test_edit_of_the_text_is_not_lost_to_the_notebook(tiny, capsys):
    tiny.edit(tiny.twin, "Twice $x$", "Two times $x$")
    before = tiny.files()
    assert tiny.sync("--from-notebook", "toy") == 1
    assert "book/src/toy.md was edited after the last sync" in capsys.readouterr().err
    assert tiny.files() == before
    assert tiny.sync() == 0 and "Two times" in _book.read(tiny.notebook)


# --- equations and the concordance -----------------------------------------------------------------------------

ROWS = [
    "| [(double)](#eq-double) | [`double`](#llpbook.toy.double), [`Toy.fit`](#llpbook.toy.Toy.fit) | "
    "`test_toy.py::test_double` |",
    "| [(mean)](#eq-mean) | [`Toy.fit`](#llpbook.toy.Toy.fit) | `test_toy.py::test_mean` |",
]


def test_concordance(tiny):
    text = _book.read(tiny.twin)
    block = text[text.index("<!-- conc") : text.index("<!-- /conc")]
    assert [line for line in block.splitlines() if line.startswith("| [(")] == ROWS
    page = _book.read(tiny.root / "book/concordance.md")
    assert page.startswith("(concordance)=\n# Concordance: ")
    head = "| Equation | Function | Test |\n| --- | --- | --- |"
    end = "\n".join(["## [A toy for Bayes](toy.ipynb)\n", head, *ROWS]) + "\n"
    assert page.endswith(end)


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("$$ a $$ (eq-a)\n\n$$\nb\n$$ (eq-b)", ["eq-a", "eq-b"]),
        ("```{math}\n:label: eq-c\nx\n```", ["eq-c"]),
        ("::::{dropdown} P\n:open:\n\n:::{math}\n:label: eq-e\nx\n:::\n$$ y $$ (eq-f)\n::::", ["eq-e", "eq-f"]),
        ("::::{exercise}\n:label: ex\n\n- a\n\n  $$\n  y\n  $$ (eq-g)\n::::", ["eq-g"]),
        ("```latex\n$$ a $$ (eq-a)\n```\n`$$ b $$ (eq-b)`", []),
    ],
)  # fmt: skip
def test_equation_labels_are_found(text, labels):
    assert _book.equation_labels(text) == labels


# --- the rules -----------------------------------------------------------------------------------------------


def stream(name, text):
    return {"output_type": "stream", "name": name, "text": text}


@pytest.mark.parametrize("count", [None, 7])
def test_unexecuted_cell(tiny, count):
    tiny.change(2, execution_count=count)
    expect(tiny, "executed", r"^book/toy.ipynb: .* \(make run CH=toy\)$")


def test_stderr_and_errors(tiny):
    error = nbformat.v4.new_output("error", ename="KeyError", evalue="no")
    tiny.change(0, outputs=[stream("stderr", "x.py:1: UserWarning\nmind the gap")])
    tiny.change(2, outputs=[error])
    expect(tiny, "executed", "(?s)cell 2: wrote to stderr: .*mind the gap")
    expect(tiny, "executed", "cell 4: ended with KeyError: no")


def test_uncompared_cell_needs_an_assertion(tiny):
    cell = "```{code-cell} ipython3\n"
    tagged = f"{cell}:tags: [nbval-ignore-output]\n\ndouble"
    tiny.edit(tiny.twin, f"{cell}double", tagged)
    assert tiny.sync() == 0 and "nbval-ignore-output" in tiny.code()[2].metadata.tags
    expect(tiny, "uncompared", "cell 4: its output is not compared, and it asserts")
    tiny.edit(tiny.twin, "output]\n\ndouble", "output]\n\nassert True\ndouble")
    assert tiny.sync() == 0  # what cannot fail is no claim
    expect(tiny, "uncompared", "cell 4: its output is not compared, and it asserts")
    tiny.edit(tiny.twin, "double(x).sum()", "assert double(x).sum() > 5")
    assert tiny.sync() == 0 and tiny.check("uncompared") == []


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        ("```{note}\nText.\n```", "```{note} is shown as code"),
        (":::{dropdown} P\n\n```{math}\nx\n```\n:::", "```{math} is shown as code"),
        ("See {prf:ref}`thm-x`.", "{prf:ref}`thm-x` is shown as code"),
        ("See [](#eq-double).", "the link to #eq-double has no words"),
        (":::{note}\n[The double](#eq-double), $\\{a\\}$ and `{x}`.\n:::", None),
        ("```text\n{ref}`x`\n```", None),
    ],
)
def test_what_a_notebook_shows_as_code(tiny, text, finding):
    tiny.add(text)
    found = tiny.check("plain_notebook")
    assert len(found) == (finding is not None)
    assert not finding or finding in found[0]


def test_the_first_cell_installs_before_any_import(tiny):
    assert tiny.code()[0].source.startswith("import numpy")  # without llpbook, nothing
    tiny.add(
        "```{code-cell} ipython3\nimport cvxpy\nfrom llpbook import x\nimport studies\n```"
    )
    guard, _, own = tiny.code()[0].source.partition("\n\n")
    assert guard.startswith(_book.INSTALL) and own.startswith("import numpy as np")
    found = [line.strip() for line in guard.split("\n") if "%pip" in line]
    assert found == [
        f'%pip install -q "{sync_cells.PACKAGE}"', "%pip install -q cvxpy",
    ]  # fmt: skip
    assert tiny.code()[0].execution_count == 1  # the cell does what it did
    assert tiny.sync("--check") == 0


def test_the_first_cell_brings_the_studies_once(tmp_path):
    """From an archive of the repository, into the folder of the chapter, and nothing else."""
    archive, chapter = tmp_path / "main.zip", tmp_path / "chapter"
    with zipfile.ZipFile(archive, "w") as files:
        files.writestr("llpbook-main/book/studies/__init__.py", "")
        files.writestr("llpbook-main/README.md", "")
    chapter.mkdir()
    guard = sync_cells.with_install("", "import studies")
    guard = re.sub("%pip.*", "raise SystemExit", guard)
    guard = guard.replace(sync_cells.FILES, archive.as_uri())
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    command = [sys.executable, "-c", f"{guard}\nimport studies"]
    for _ in range(2):  # the second time without the archive
        subprocess.run(command, cwd=chapter, env=env, check=True)
        archive.unlink(missing_ok=True)
        assert {p.name for p in chapter.iterdir()} == {"studies"}


def test_what_the_first_cells_of_the_chapters_do_here():
    """Nothing: no line of installation runs where the book is set up, and readers find them folded."""
    for name, nb in _book.Book().notebooks.items():
        first = next(c for c in nb.cells if c.cell_type == "code")
        guard = first.source.partition("\n\n")[0]
        wanted = re.findall(r'find_spec\("(\w+)"\)', guard)
        assert wanted[:2] == ["llpbook", "seaborn"], name
        assert all(map(find_spec, wanted)), name
        assert first.metadata["jupyter"]["source_hidden"], name


def test_equation_without_code_or_test(tiny):
    tiny.add("$$ a $$ (eq-lost)\n\n$$ b $$ (step-fine)")
    code, test = tiny.check("equations_kept")
    assert code.endswith("cell 6: eq-lost has no '# eq: eq-lost' in llpbook/")
    assert "cell 6: eq-lost has no test" in test
    tiny.edit(tiny.twin, "<!-- concordance -->", "")
    tiny.sync()
    expect(tiny, "equations_kept", "the chapter has no '<!-- concordance -->' block")


def test_marks_that_name_no_equation(tiny):
    tiny.edit(tiny.module, "# eq: eq-mean,", "# eq: eq-meen,")
    tiny.edit(tiny.tests, 'equation("eq-double")', 'equation("eq-double", "eq-dubble")')
    tiny.edit(tiny.module, "A long story.", "# eq: eq-nothing")  # text is no mark
    assert tiny.check("marks_known") == [
        "llpbook/toy.py line 36: no chapter has an equation eq-meen",
        "tests/test_toy.py line 5: no chapter has an equation eq-dubble",
    ]


# --- a new room, notebooks for students -----------------------------------------------------------------------


@pytest.mark.slow
def test_a_new_room_passes_all_checks_once_it_is_filled(tmp_path, monkeypatch, capsys):
    for part in ("book", "llpbook", "tests"):
        ignored = shutil.ignore_patterns("__pycache__", "_static", "results")
        shutil.copytree(ROOT / part, tmp_path / part, ignore=ignored)
    for name in ("_toc.yml", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    root = ["--root", str(tmp_path)]
    run, names = execute.main, []
    first = lambda some, where: names.extend(some) or run(some[:1], where)  # noqa: E731
    monkeypatch.setattr(execute, "main", first)
    assert not new_room.main("share_direction", "ByDirection", tmp_path)
    assert "a grid of 5 or 6 settings" in capsys.readouterr().out
    assert check_book.main(root) == 1  # until an author has filled the templates
    left = capsys.readouterr().out.splitlines()
    assert all("still to be written: " in line for line in left), left
    assert {re.match(r"[\w/]+", line)[0] for line in left} == {
        "llpbook/share_direction",
        "book/share_direction",
        "book/teaching",
    }  # and not what is derived from them
    for line in left:  # each names the line on which the TODO stands
        file, n = re.search(r"([\w/.]+) line (\d+)", line).groups()
        file = tmp_path / file.replace("src/", "book/src/")
        assert "TODO" in _book.read(file).split("\n")[int(n) - 1]
    new = ["llpbook/share_direction.py", "tests/test_share_direction.py"]
    chapter = ["--select", "E501,F821", "book/share_direction.ipynb"]
    for command in (["check", *new], ["check", *chapter], ["format", "--check", *new]):
        ruff = [sys.executable, "-m", "ruff", *command]
        subprocess.run(ruff, cwd=tmp_path, check=True)
    source = _book.read(tmp_path / "llpbook/share_direction.py")
    assert "my_room" not in source and "class ByDirection(" in source
    # its own test, and those that every estimator has to pass
    own = ["tests/test_share_direction.py", "tests/test_contract.py", "-k"]
    own = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *own]
    where = {"cwd": tmp_path, "env": {**os.environ, "PYTHONPATH": str(tmp_path)}}
    own.append("share_direction or ByDirection")
    done = subprocess.run(own, capture_output=True, text=True, **where)
    assert done.returncode == 0, done.stdout
    assert int(re.search(r"(\d+) passed", done.stdout)[1]) > 20
    # it is listed wherever rooms are
    assert names == ["share_direction"]
    assert "share_direction" in _book.read(tmp_path / "_toc.yml")
    assert "[ByDirection](share_dir" in _book.read(tmp_path / "book/teaching.md")
    for name, cls, message in (
        ("share_direction", "Other", "is there already"),
        ("share_direction", "", "is there already"),
        ("another", "ByDirection", "has a ByDirection already"),
        ("another", "by_direction", "a name such as MyMethod"),
        ("Share-Direction", "", "a name such as my_method"),
    ):
        assert message in new_room.main(name, cls, tmp_path)


def test_each_row_of_the_hours_has_a_name_of_its_own():
    hours = sync_cells.HOURS.search(_book.read(ROOT / "book/teaching.md"))[0]
    names = re.findall(r"^\| \[(.*?)\]", hours, re.MULTILINE)
    assert len({*names}) == len(names) == len(_book.Book().notebooks)


def test_chapters_can_be_handed_out_and_no_starter_passes_its_check():
    book, starters = _book.Book(), 0
    for name, nb in book.notebooks.items():
        text = student.without_solutions(_book.read(book.twin_path(name)))
        assert "{solution" not in text
        code = [cell for cell in nb.cells if cell.cell_type == "code"]
        said = ["".join(o.get("text", "") for o in cell.outputs) for cell in code]
        for cell, own, after in zip(code, said, said[1:], strict=False):
            if "# write your own here" in cell.source:  # the check is there, or next
                assert (own or after).split()[0].lower().strip(".") != "right", name
                starters += 1
    assert starters > 20
    text = _book.read(book.twin_path("theory"))
    assert "def labels_solved(" in text and "def labels_for_slope(" in text
    text = student.without_solutions(text)
    assert "_solved(" not in text and "Your turn" not in text
    assert text.count("def labels_for_slope(") == 1


def test_a_chapter_to_hand_out_leaves_the_others(tmp_path, monkeypatch):
    for folder in ("TARGET", "SOLVED"):
        monkeypatch.setattr(student, folder, tmp_path / folder)
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mean_map.ipynb").write_text("mine")
    student.main("theory")
    for folder in ("TARGET", "SOLVED"):
        assert (tmp_path / folder / "mean_map.ipynb").read_text() == "mine"
    handed_out = _book.read(tmp_path / "TARGET/theory.ipynb")
    assert "_solved(" not in handed_out
    assert "_solved(" in _book.read(tmp_path / "SOLVED/theory.ipynb")


# --- a course without a network ------------------------------------------------------------------------------


def test_a_chapter_of_the_course_installs_from_its_folder():
    for name in _book.Book().notebooks:
        text = course.from_folder(_book.read(_book.Book().notebook_path(name)))
        installed = re.findall("%pip install (.*)", text)
        assert installed, name
        assert all("--no-index --find-links ../wheels" in one for one in installed)
        assert not any("//" in one for one in installed), name


@pytest.mark.slow
def test_the_zip_for_a_course(tmp_path):
    site, wheel = tmp_path / "html", tmp_path / "llpbook.whl"
    with pytest.raises(SystemExit, match="make course-zip"):
        course.pack(site, wheel, tmp_path / "course")
    site.mkdir()
    (site / "index.html").touch()
    wheel.touch()
    names = zipfile.ZipFile(course.pack(site, wheel, tmp_path / "course")).namelist()
    for path in (
        "README.txt", "site/index.html", "wheels/llpbook.whl", "data/heart.csv.gz",
        "notebooks/mean_map.ipynb", "notebooks/data.md", "notebooks/studies/__init__.py",
        "notebooks/studies/results/natural.csv", "student/studies/__init__.py", "student/data.md",
    ):  # fmt: skip
        assert f"course/{path}" in names
    handed_out = _book.read(tmp_path / "course/student/theory.ipynb")
    assert "--find-links ../wheels" in handed_out and "_solved(" not in handed_out
    assert not [name for name in names if "__pycache__" in name]


# --- print ---------------------------------------------------------------------------------------------------

THEME = """<div id="jb-print-docs-body" class="onlyprint"><nav>
<p class="caption"><span class="caption-text">Core</span></p><ul>
<li class="toctree-l1 nav-item"><a class="nav-link" href="#document-book/toy">1. <em>Toy</em></a><ul>
<li class="toctree-l2 nav-item"><a class="nav-link" href="#document-book/part">A part</a></li></ul></li></ul>
</nav></div><div id="searchbox"></div><article><section id="first">
<h1>Door<a></a></h1>
<a href="../slides/session_1.html">s</a> <a href="genindex.html">i</a> <a href="book/index.html#first">f</a>
<span id="document-book/toy"></span><h3>A <i>b</i><a class="headerlink" href="#first"></a></h3>
<h3><a href="x">c</a><a class="headerlink" href="#first"></a></h3></section></article>"""


def test_the_first_pages_of_the_print():
    """Title page and contents take the place of the theme's list."""
    text = print_pdf.with_front_matter(THEME, "0.1.0 & state")
    assert "Version 0.1.0 &amp; state" in text and "CC BY 4.0" in text
    assert print_pdf.AUTHORS in text and "A part" not in text
    lines = '<a href="#first">Door</a>\n<h3>Core</h3>\n'
    lines += '<a href="#document-book/toy-title">1. <em>Toy</em></a>\n'
    assert f'{lines}<a class="section" href="#heading-1">A <i>b</i></a>\n</div>' in text
    assert text.endswith("</section></article>")
    title = '<h3 id="heading-1"><span id="document-book/toy-title"></span>A <i>b</i>'
    assert title in text  # with which it goes to the next page
    printed = print_pdf.links_within(text, "book/index.html")
    links = re.findall(r'<a href="([^"]*)">[sif]<', printed)
    site = print_pdf.DOCUMENTATION
    assert links == [f"{site}slides/session_1.html", f"{site}genindex.html", "#first"]
    with pytest.raises(SystemExit, match="lead nowhere"):
        print_pdf.links_within(
            text.replace('id="document-book/toy-title"', ""), "book/a.html"
        )


# --- slides --------------------------------------------------------------------------------------------------


OPEN = {"## Such data come from"}  # an answer under another title


def test_the_decks_find_their_figures_and_labels():
    book = _book.Book()
    decks = sorted(path.stem for path in slides.FOLDER.glob("*.md"))
    assert decks == [f"session_{n}" for n in range(1, 5)]
    for name in decks:
        deck = [*slides.deck(book, name)]
        assert 15 <= len(deck) <= 25
        shown = "".join(slides.MARKDOWN.render(one.shown) for one in deck)
        assert "$" not in re.sub("<code.*?</code>", "", shown, flags=re.S), name
        text = _book.read(slides.FOLDER / f"{name}.md")
        for one, two in itertools.pairwise(text.split("\n---\n")):
            title = two.strip().split("\n")[0]
            asked = "Question:" in one.partition("\nNotes:")[0]
            assert asked <= title.startswith("## Answer") or title in OPEN, title


def test_a_slide_as_a_page():
    """Formulas reach MathJax as they are written, and notes are for the speaker."""
    deck = [
        slides.Slide(
            "# A & B\n\n$a_i^* < b_j^*$\n\n$$\n\\sum_i x_i\n$$", "Two *minutes*."
        )
    ]
    text = slides.page(deck)
    assert "<title>A &amp; B</title>" in text
    assert r"\(a_i^* &lt; b_j^*\)" in text
    assert re.search(r"\\\[\s*\\sum_i x_i\s*\\\]", text)
    notes = '<aside class="notes"><p>Two <em>minutes</em>.</p>\n</aside>\n</section>'
    assert notes in text and text.count("<section>") == 1


def test_figures_have_twice_the_pixels_of_their_size():
    for name, nb in _book.Book().notebooks.items():
        for output in (o for cell in nb.cells for o in cell.get("outputs", [])):
            if "image/png" in output.get("data", {}):
                width = output.metadata["image/png"]["width"]
                head = base64.b64decode(output.data["image/png"][:32])
                pixels = int.from_bytes(head[16:20], "big")  # as PNG has it
                assert pixels in (2 * width, 2 * width + 1), name


# What a deck says was measured, and what a chapter prints.
MEASURED = [
    ("session_2", "mean_map", ["0.56", "0.71", "0.85", "0.738", "0.847", "5,983"]),
    ("session_2", "mean_map", ["0.77", "0.83"]),
    ("session_3", "taxonomy", ["79", "54", "56 %"]),
    ("session_3", "diagnosis", ["0.26", "0.99", "1.00", "0.27", "0.13", "0.06"]),
]


@pytest.mark.parametrize(("deck", "chapter", "numbers"), MEASURED)
def test_numbers_of_the_slides_are_printed_by_the_chapters(deck, chapter, numbers):
    said = _book.read(slides.FOLDER / f"{deck}.md")
    cells = _book.Book().notebooks[chapter].cells
    outputs = [o for c in cells for o in c.get("outputs", [])]
    tables = [o.get("data", {}).get("text/plain", "") for o in outputs]
    printed = "".join([*tables, *(o.get("text", "") for o in outputs)])
    for number in numbers:
        assert number in said and number in printed, number
