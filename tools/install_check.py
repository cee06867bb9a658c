"""Try an installed package where only the package is: README's examples, all data sets, every estimator.

ENVIRONMENT/bin/python -I install_check.py README.md VERSION
"""

import re
import sys
import warnings
from importlib.metadata import version
from pathlib import Path

import llpbook
from llpbook.datasets import dataset_names, load

home = Path(llpbook.__file__).parent
assert Path(sys.prefix) in home.parents, f"{home} is not the installed package"
assert llpbook.__version__ == version("llpbook") == sys.argv[2]
assert (home / "py.typed").is_file()
for room in llpbook.__all__:
    getattr(llpbook, room)
for name in dataset_names():
    load(name)
for example in re.findall(
    r"```python\n(.*?)```", Path(sys.argv[1]).read_text("utf-8"), re.S
):
    exec(example, {})
data = llpbook.load_bags("heart", bag_size=8, random_state=0)
warnings.simplefilter("ignore", llpbook.LLPWarning)
for name, cls in llpbook.all_estimators():
    model = cls().fit(data.X, data.bags, data.proportions)
    assert set(model.predict(data.X)) <= {*model.classes_}, name
print(f"Python {sys.version.split()[0]}, NumPy {version('numpy')}: all estimators fit")
