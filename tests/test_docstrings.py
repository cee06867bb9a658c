"""Every public name has an example in its docstring, and the examples do what they say."""

import ast
import doctest
import importlib
import pkgutil
import re
from inspect import getsource, isclass, isfunction, signature

import matplotlib.pyplot as plt
import pytest

import llpbook

plt.switch_backend("agg")
MODULES = [llpbook.__name__] + [
    module.name for module in pkgutil.walk_packages(llpbook.__path__, "llpbook.")
]
EXAMPLES = [
    example
    for name in MODULES
    for example in doctest.DocTestFinder().find(importlib.import_module(name))
    if example.examples
]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
@pytest.mark.filterwarnings("default::llpbook.base.LLPWarning")
def test_example(example):
    if "parquet" in example.docstring:
        pytest.importorskip("pyarrow")
    said = []
    runner = doctest.DocTestRunner(optionflags=doctest.REPORT_ONLY_FIRST_FAILURE)
    runner.run(example, out=said.append)
    assert not runner.failures, "".join(said)


@pytest.mark.parametrize("room", llpbook._ROOMS)
def test_every_public_name_has_an_example(room):
    module = getattr(llpbook, room)
    names = [
        n for n in module.__all__ if isclass(o := getattr(module, n)) or isfunction(o)
    ]
    assert not [n for n in names if ">>>" not in (getattr(module, n).__doc__ or "")]


VAGUE = re.compile(
    r"(The same|What|How|Whether|Which|Where|When|Who|Why|As|It|Its|They|This|That)\b"
)


@pytest.mark.parametrize("module", MODULES)
def test_no_summary_is_a_clause_or_a_pronoun(module):
    nodes = ast.walk(ast.parse(getsource(importlib.import_module(module))))
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
    texts = [ast.get_docstring(n) or "" for n in nodes if isinstance(n, kinds)]
    vague = [text for text in texts if VAGUE.match(text)]
    assert not vague, "a summary begins with a verb or a noun, not with Which or What"


@pytest.mark.parametrize("room", llpbook._ROOMS)
def test_types_in_signatures_can_be_looked_up(room):
    module = getattr(llpbook, room)
    shown = [
        str(signature(o))
        for o in map(vars(module).get, module.__all__)
        if isfunction(o)
    ]
    assert "llpbook._" not in "".join(shown)
