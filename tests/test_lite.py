"""Chapters in the browser: what `tools/lite.py` copies, and the button that `book/_ext/in_browser.py` shows."""

import json
import os
import subprocess
import sys
import zipfile
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "book/_ext")]
import check_site  # noqa: E402
import in_browser  # noqa: E402
import lite  # noqa: E402


@pytest.fixture
def pyodide(tmp_path):
    """A distribution whose packages are their names, with one that no chapter needs."""
    folder = tmp_path / "pyodide"
    folder.mkdir()
    asked = {name for depends in lite.WHEELS.values() for name in depends}
    names = sorted({*lite.KERNEL, *asked, "prompt-toolkit", "boost"} - {*lite.WHEELS})
    packages = {
        name: {
            "name": name, "file_name": f"{name}.whl", "depends": [],
            "sha256": sha256(name.encode()).hexdigest(),
        }
        for name in names
    }  # fmt: skip
    packages["ipython"]["depends"] = ["prompt_toolkit"]  # as Pyodide spells it
    for name in names:
        (folder / f"{name}.whl").write_text(name)
    for name in ("pyodide.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "boost.js"):
        (folder / name).write_text(name)
    lock = {"info": {"version": "0"}, "packages": packages}
    (folder / "pyodide-lock.json").write_text(json.dumps(lock))
    return folder


@pytest.fixture
def wheels(tmp_path):
    paths = [tmp_path / f"{name}-1.0-py3-none-any.whl" for name in lite.WHEELS]
    for path in paths:
        path.write_text(path.name)
    return paths


def test_a_site_has_what_chapters_import_and_no_more(tmp_path, pyodide, wheels):
    lite.copy_pyodide(pyodide, wheels, tmp_path / "out")
    lock = json.loads((tmp_path / "out/pyodide-lock.json").read_text())["packages"]
    assert {"studies", "llpbook", "scikit-learn", "prompt-toolkit"} <= {*lock}
    assert "boost" not in lock and lock["studies"]["depends"] == ["llpbook", "seaborn"]
    files = {path.name for path in (tmp_path / "out").iterdir()}
    core = {"pyodide-lock.json", "pyodide.mjs", "pyodide.asm.wasm", "python_stdlib.zip"}
    assert files == core | {package["file_name"] for package in lock.values()}


def test_a_package_that_is_not_what_its_lock_says_is_refused(tmp_path, pyodide, wheels):
    (pyodide / "scipy.whl").write_text("another")
    with pytest.raises(SystemExit, match=r"scipy\.whl differs from the hash"):
        lite.copy_pyodide(pyodide, wheels, tmp_path / "out")


def test_a_wheel_that_is_missing_is_named(tmp_path, pyodide, wheels):
    with pytest.raises(SystemExit, match="no wheel of seaborn"):
        short = [wheel for wheel in wheels if "seaborn" not in wheel.name]
        lite.copy_pyodide(pyodide, short, tmp_path / "out")


def test_the_wheel_of_the_studies_has_their_rows(tmp_path):
    rows = zipfile.Path(lite.write_studies(tmp_path)) / "studies/results/natural.csv"
    assert rows.read_text("utf-8").count("\n") > 100


def test_the_kernel_asks_no_index_and_loads_what_a_first_cell_looks_for(tmp_path):
    path = tmp_path / "jupyter-lite.json"
    written = {"litePluginSettings": {lite.PLUGIN: {"pyodideUrl": "./pyodide.mjs"}}}
    path.write_text(json.dumps({"jupyter-config-data": written}))
    lite.set_options(path)
    data = json.loads(path.read_text())["jupyter-config-data"]
    kernel = data["litePluginSettings"][lite.PLUGIN]
    assert kernel["pyodideUrl"] == "./pyodide.mjs" and kernel["disablePyPIFallback"]
    assert kernel["loadPyodideOptions"]["packages"][0] == "studies"
    depends = lite.WHEELS["studies"]  # loaded with it
    assert {*depends} == {"llpbook", "seaborn"}


def test_jupyterlite_gets_texts_not_lines(tmp_path):
    lite.write_chapter(ROOT / "book/theory_proofs.ipynb", tmp_path)
    cells = json.loads((tmp_path / "theory_proofs.ipynb").read_text())["cells"]
    assert all(isinstance(cell["source"], str) for cell in cells)
    outputs = [o for cell in cells for o in cell.get("outputs", []) if "data" in o]
    assert outputs and all(
        isinstance(v, str) for o in outputs for v in o["data"].values()
    )


@pytest.mark.slow
def test_package_and_studies_are_read_where_no_process_can_be_started():
    """As in a browser; a chapter imports the studies and reads their rows."""
    code = """
import concurrent.futures, importlib, pkgutil, sys
import joblib, sklearn.metrics  # which know how to do without
vars(concurrent.futures).pop("ProcessPoolExecutor", None)
sys.modules["concurrent.futures.process"] = sys.modules["fcntl"] = None
import llpbook, studies
for module in pkgutil.walk_packages(llpbook.__path__, "llpbook."):
    importlib.import_module(module.name)
studies.load("natural")
print(len(studies.tables()))
"""
    said = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True,
        cwd=ROOT / "book", env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert said.stderr == "" and int(said.stdout) > 20


# --- the button ----------------------------------------------------------------------------------------------


def buttons(page):
    """The texts of the launch buttons that a page shows."""
    launch = [{"text": "Binder"}, {"text": "JupyterLite"}]
    context = {"header_buttons": [{"text": "Download"}, {"buttons": launch}]}
    in_browser.say_cost(None, page, None, context, None)
    return [button["text"] for button in launch]


def test_a_button_says_what_it_costs_and_leads_to_a_chapter(tmp_path, monkeypatch):
    (tmp_path / "lite/files/book").mkdir(parents=True)
    (tmp_path / "lite/files/book/em.ipynb").touch()
    (tmp_path / "lite/static/pyodide").mkdir(parents=True)
    (tmp_path / "lite/static/pyodide/a.whl").write_bytes(bytes(32_000_000))
    monkeypatch.setattr(in_browser, "LITE", str(tmp_path / "lite"))
    assert buttons("book/em") == ["Binder", "This browser (40 MB, 30 s)"]
    assert buttons("book/large") == ["Binder"]  # no browser can run it
    builder, options = SimpleNamespace(name="html"), {"launch_buttons": {}}
    app = SimpleNamespace(
        builder=builder, outdir=tmp_path / "html",
        config=SimpleNamespace(html_theme_options=options),
    )  # fmt: skip
    in_browser.start(app)
    in_browser.copy(app, None)
    page = tmp_path / "html/book/em.html"
    page.parent.mkdir()
    address = options["launch_buttons"]["jupyterlite_url"] + "?path=book/em.ipynb"
    page.write_text(f'<a href="{address}">This browser</a>')
    said = [
        "book/em.html: a link leads nowhere: ../lite/lab/index.html?path=book/em.ipynb"
    ]
    assert list(check_site.findings(tmp_path / "html")) == said
    (tmp_path / "html/lite/lab").mkdir()
    (tmp_path / "html/lite/lab/index.html").write_text('<script src="https://a.b/c">')
    assert list(check_site.findings(tmp_path / "html")) == []


def test_without_the_folder_there_is_no_button(monkeypatch):
    monkeypatch.setattr(in_browser, "LITE", "")
    options = {"launch_buttons": {}}
    app = SimpleNamespace(config=SimpleNamespace(html_theme_options=options))
    in_browser.start(app)
    in_browser.copy(app, None)
    assert options == {"launch_buttons": {}}
