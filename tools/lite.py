"""Build _build/lite: the chapters in JupyterLab with Python in the browser, without a server.

    _build/lite-env/bin/python tools/lite.py PYODIDE WHEELS

PYODIDE is a folder with a distribution of Pyodide, WHEELS one with the wheels that the chapters need beside it. Copied
is what `llpbook` needs of both, each file as its hash in Pyodide's lock says; a reader's browser asks no other host for
anything. `make lite` calls it.
"""

import json
import shutil
import subprocess
import sys
import zipfile
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OUT, WORK = ROOT / "_build/lite", ROOT / "_build/lite-work"
#: Chapters that a browser cannot run, and why.
LEFT_OUT = {}
#: By wheel, the packages of Pyodide or other wheels that it imports.
WHEELS = {
    "llpbook": ["numpy", "scipy", "scikit-learn", "pandas", "joblib", "threadpoolctl"],
    "seaborn": ["matplotlib", "numpy", "pandas"],
    "studies": ["llpbook", "seaborn"],
    "comm": ["traitlets"],
}
CORE = ("pyodide*js", "pyodide.asm.wasm", "python_stdlib.zip")
#: What the kernel itself imports.
KERNEL = ("ipython", "jedi", "micropip", "packaging", "matplotlib-inline")
#: Parts of Python that some versions of Pyodide load as packages, and the kernel with them.
APART = ("ssl", "sqlite3")
SETTINGS = {
    "disablePyPIFallback": True,
    # Loaded with Python, so that the first cell of a chapter finds all it needs.
    "loadPyodideOptions": {"packages": ["studies", "comm", "ipython"]},
}
PLUGIN = "@jupyterlite/pyodide-kernel-extension:kernel"


def spelled(name):
    """The name of a package as the lock spells it in its keys."""
    return name.lower().replace("_", "-")


def needed(packages, names):
    """Names of packages and of all that they depend on."""
    left, seen = [*names], set()
    while left:
        name = spelled(left.pop())
        if name not in seen:
            seen.add(name)
            left += packages[name]["depends"]
    return seen


def digest(file):
    return sha256(file.read_bytes()).hexdigest()


def entry(wheel):
    """What the lock of Pyodide says of a package, for a wheel."""
    name, version = wheel.name.split("-")[:2]
    return {
        "name": name, "version": version, "file_name": wheel.name,
        "sha256": digest(wheel), "depends": WHEELS[name], "imports": [name],
        "install_dir": "site", "package_type": "package", "unvendored_tests": False,
    }  # fmt: skip


def write_studies(folder):
    """The wheel of `book/studies`, with its rows."""
    path, info = folder / "studies-0-py3-none-any.whl", "studies-0.dist-info"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for source in sorted((ROOT / "book/studies").rglob("*")):
            if source.is_file() and "__pycache__" not in source.parts:
                file.write(source, source.relative_to(ROOT / "book"))
        head = "Metadata-Version: 2.1\nName: studies\nVersion: 0\n"
        file.writestr(f"{info}/METADATA", head)
        tags = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        file.writestr(f"{info}/WHEEL", tags)
        file.writestr(f"{info}/RECORD", "")
    return path


def copy_pyodide(source, wheels, target):
    """Copy what the chapters need of a distribution, and the wheels, and write their lock."""
    lock = json.loads((source / "pyodide-lock.json").read_text("utf-8"))
    packages = lock["packages"] | {each["name"]: each for each in map(entry, wheels)}
    if lacking := {*WHEELS} - {*packages}:
        raise SystemExit(f"no wheel of {', '.join(sorted(lacking))}")
    apart = [name for name in APART if name in packages]
    keep = sorted(needed(packages, [*KERNEL, *apart, *WHEELS]))
    lock["packages"] = {name: packages[name] for name in keep}
    target.mkdir(parents=True)
    for file in [*wheels, *(file for pattern in CORE for file in source.glob(pattern))]:
        shutil.copy(file, target)
    for package in lock["packages"].values():
        file = target / package["file_name"]
        if not file.exists():
            shutil.copy(source / file.name, target)
        if digest(file) != package["sha256"]:
            raise SystemExit(f"{file.name} differs from the hash in pyodide-lock.json")
    (target / "pyodide-lock.json").write_text(json.dumps(lock), "utf-8")


def write_chapter(path, folder):
    """Copy a chapter; JupyterLite finds the headings of a text only, not of a list of lines."""
    chapter = json.loads(path.read_text("utf-8"))
    for cell in chapter["cells"]:
        cell["source"] = "".join(cell["source"])
        for output in cell.get("outputs", []):
            for kind, lines in output.get("data", {}).items():
                output["data"][kind] = "".join(lines)
    (folder / path.name).write_text(json.dumps(chapter), "utf-8")


def set_options(path):
    """Add our settings of the kernel to those that the build wrote."""
    config = json.loads(path.read_text("utf-8"))
    data = config["jupyter-config-data"] | {"appName": "llpbook"}
    data["litePluginSettings"][PLUGIN] |= SETTINGS
    config["jupyter-config-data"] = data
    path.write_text(json.dumps(config), "utf-8")


def main(pyodide, wheels):
    for folder in (OUT, WORK):
        shutil.rmtree(folder, ignore_errors=True)
    chapters = WORK / "files/book"
    chapters.mkdir(parents=True)
    for path in sorted(ROOT.glob("book/*.ipynb")):
        if path.stem not in LEFT_OUT:
            write_chapter(path, chapters)
    built = [*Path(wheels).glob("*.whl"), write_studies(WORK)]
    copy_pyodide(Path(pyodide), built, WORK / "static/pyodide")
    command = [sys.executable, "-m", "jupyterlite_core", "build", "--apps", "lab"]
    command += ["--no-sourcemaps", "--contents", "files", "--output-dir", str(OUT)]
    subprocess.run(command, cwd=WORK, check=True, stdout=subprocess.DEVNULL)
    set_options(OUT / "jupyter-lite.json")
    size = sum(file.stat().st_size for file in OUT.rglob("*") if file.is_file())
    print(f"_build/lite: {size / 1e6:.0f} MB")


if __name__ == "__main__":
    main(*sys.argv[1:])
