"""Install what a release publishes, in empty environments, and run README's examples and every estimator there.

    tools/install_check.py [--dist FOLDER]

Without ``--dist`` the wheel and the sdist are built first. Each is installed on every Python from 3.11 that is found,
with the newest libraries, and on 3.11 also with the oldest that ``pyproject.toml`` allows. A Python that is missing is
named as skipped.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
PYTHONS = [x.rpartition(" ")[2] for x in PROJECT["classifiers"] if "Python :: 3." in x]
# Runs where only the package is: no checkout, no test library.
SMOKE = """
import sys, warnings
from importlib.metadata import version
from pathlib import Path
import llpbook
from llpbook.datasets import dataset_names, load

assert llpbook.__version__ == version("llpbook") == sys.argv[1]
home = Path(llpbook.__file__).parent
assert Path(sys.prefix) in home.parents, f"{home} is not the installed package"
assert (home / "py.typed").is_file()
for room in llpbook.__all__:
    getattr(llpbook, room)
for name in dataset_names():
    load(name)
data = llpbook.load_bags("heart", bag_size=8, random_state=0)
warnings.simplefilter("ignore", llpbook.LLPWarning)
fitted = 0
for name, cls in llpbook.all_estimators():
    model = cls().fit(data.X, data.bags, data.proportions)
    assert set(model.predict(data.X)) <= {*model.classes_}, name
    fitted += 1
print(f"{fitted} estimators")
"""


def run(*command, cwd=None):
    """Run a command; show what it says only if it fails."""
    done = subprocess.run([*map(str, command)], cwd=cwd, text=True, capture_output=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def environment(folder, python):
    """The python of an empty environment."""
    run(python, "-m", "venv", folder)
    return folder / "bin/python"


def install(python, *what):
    run(python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *what)


def build(folder):
    """Build sdist and wheel from the files that git knows."""
    tree = folder / "tree"
    names = run("git", "ls-files", "-z", cwd=ROOT).split("\0")
    for name in filter(None, names):
        target = tree / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, target)
    python = environment(folder / "build", sys.executable)
    install(python, "build==1.6.1")
    run(python, "-m", "build", "-o", folder / "dist", tree)
    return folder / "dist"


def examples():
    """README's examples, as one program."""
    text = (ROOT / "README.md").read_text("utf-8")
    return "\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL))


def oldest():
    """The requirements, each at its oldest version."""
    return [re.sub(">=(.*)", r"==\1.*", each) for each in PROJECT["dependencies"]]


def check(python, file, pins=()):
    """Install a file in an empty environment, and run the programs there; return what they said."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        inside = environment(folder / "env", python)
        install(inside, file, *pins)
        (folder / "smoke.py").write_text(SMOKE, "utf-8")
        (folder / "readme.py").write_text(examples(), "utf-8")
        smoke = run(inside, "-I", "smoke.py", PROJECT["version"], cwd=folder)
        run(inside, "-I", "readme.py", cwd=folder)
        return smoke.strip()


def found(version):
    """The interpreter of a version, or None."""
    python = shutil.which(f"python{version}")
    asks = [python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    works = python and subprocess.run(asks, capture_output=True, text=True)
    return python if works and works.stdout.strip() == version else None


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dist", type=Path, help="folder of the built files")
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        dist = args.dist.resolve() if args.dist else build(Path(folder))
        files = [*dist.glob("*.whl"), *dist.glob("*.tar.gz")]
        if len(files) != 2:
            raise SystemExit(f"{dist}: {len(files)} files instead of wheel and sdist")
        done = 0
        for version in PYTHONS:
            python = found(version)
            if python is None:
                print(f"Python {version}: skipped, no python{version} here")
                continue
            cases = {"newest": ()} | ({"oldest": oldest()} if version == "3.11" else {})
            for file in files:
                for age, pins in cases.items():
                    said = check(python, file, pins)
                    print(f"Python {version}, {age}: {file.name}: {said}", flush=True)
                    done += 1
    if not done:
        raise SystemExit("no Python was found")


if __name__ == "__main__":
    main()
