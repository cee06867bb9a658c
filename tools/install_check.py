"""Install what a release publishes, in empty environments, and run README's examples and every estimator there.

    tools/install_check.py FOLDER [VERSION ...]

The folder holds wheel and sdist (`make dist`). Each is installed on every Python of ``pyproject.toml`` that is found,
or on those named, with the newest libraries, and on the oldest Python also with the oldest that are allowed.
"""

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
OLDEST = [re.sub(">=(.*)", r"==\1.*", each) for each in PROJECT["dependencies"]]
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
for name, cls in llpbook.all_estimators():
    model = cls().fit(data.X, data.bags, data.proportions)
    assert set(model.predict(data.X)) <= {*model.classes_}, name
print(len(llpbook.all_estimators()), "estimators")
"""


def run(*command, cwd=None):
    """Run a command; show what it says only if it fails."""
    done = subprocess.run([*map(str, command)], cwd=cwd, text=True, capture_output=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout.strip()


def check(python, file, pins):
    """Install a file in an empty environment, and run the programs there; return what they said."""
    readme = (ROOT / "README.md").read_text("utf-8")
    with tempfile.TemporaryDirectory() as name:
        folder, inside = Path(name), Path(name, "env/bin/python")
        run(python, "-m", "venv", folder / "env")
        run(inside, "-m", "pip", "install", file, *pins)
        (folder / "smoke.py").write_text(SMOKE, "utf-8")
        examples = "\n".join(re.findall(r"```python\n(.*?)```", readme, re.DOTALL))
        (folder / "readme.py").write_text(examples, "utf-8")
        run(inside, "-I", "readme.py", cwd=folder)
        return run(inside, "-I", "smoke.py", PROJECT["version"], cwd=folder)


def works(version):
    """Whether a Python is here, and not only a name for one."""
    asks = [f"python{version}", "-V"]
    there = shutil.which(asks[0])
    return bool(there) and not subprocess.run(asks, capture_output=True).returncode


def main(folder, *versions):
    files = [p for p in Path(folder).resolve().iterdir() if p.suffix in (".whl", ".gz")]
    if len(files) != 2:
        raise SystemExit(f"{folder}: {len(files)} files instead of wheel and sdist")
    found = [version for version in versions or PYTHONS if works(version)]
    for version in found:
        for pins in [[], OLDEST] if version == PYTHONS[0] else [[]]:
            for file in files:
                said = check(f"python{version}", file, pins)
                age = "oldest" if pins else "newest"
                print(f"Python {version}, {age}: {file.name}: {said}", flush=True)
    if not found:
        raise SystemExit(f"found none of Python {', '.join(versions or PYTHONS)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
