"""What holds for every function of bags: frequencies are repeated rows, empty bags and orders say nothing."""

import ast
import importlib
import inspect
import pkgutil
import re

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import llpbook
from llpbook import (
    CountLogistic,
    bag_deviation,
    bag_report,
    coefficient_table,
    group_rate,
    identifiability,
    label_worth,
    recommend,
)
from llpbook.ecological import effect_needed, goodman, group_rate_band, polling_errors
from llpbook.uncertainty import expected_accuracy, group_rate_bounds, tomography

pytestmark = pytest.mark.filterwarnings("default::llpbook.base.LLPWarning")
NAMES = np.array([f"bag {k:02}" for k in range(30)])


def table():
    """Rows with frequencies; features, bags by name, their shares, a group; no bag is of one row."""
    rng = np.random.default_rng(3)
    codes = np.repeat(np.arange(30), 4)
    group = rng.random(120) < np.repeat([0.3, 0.7], 60)
    X = np.column_stack([group, rng.normal(size=120) + codes / 20])
    counts = rng.integers(1, 5, 120)
    counts[5] = 0
    sizes = np.bincount(codes, counts)
    chance = 1 / (1 + np.exp(1 - X @ [1.0, 1.0]))
    ones = rng.binomial(sizes.astype(int), np.bincount(codes, counts * chance) / sizes)
    return X, NAMES[codes], pd.Series(ones / sizes, NAMES), group, counts


def fitted(X, bags, p, counts=None):
    return CountLogistic(1.0, tol=1e-9).fit(X, bags, p, counts=counts)


def same(found, wanted):
    if isinstance(wanted, pd.DataFrame | pd.Series):
        assert list(found.index) == list(wanted.index)
    assert_allclose(np.asarray(found, float), np.asarray(wanted, float), 1e-6, 1e-8)


def advised(X, bags, p, **given):
    signals = recommend(X, bags, p, random_state=0, **given).signals
    return [signals.n_instances, signals.n_bags, signals.largest, signals.worth]


def reported(found):
    more = found.spread, found.limit, found.spread_limit, found.deviation
    return found.table.sort_index().assign(**dict(zip("abcd", more, strict=True)))


def printed(found):
    return found.table.assign(n=found.n_instances, bags=found.n_bags, df=found.df)


def worths(found):
    means = found.harmonic_mean, found.excess_log_loss, found.excess_error
    return [*found.spectrum, *means]


#: By name, a call whose numbers are compared; those of COUNTED take frequencies.
COUNTED = {
    "bag_deviation": lambda m, X, b, p, g, **kw: (
        bag_deviation(m, X, b, p, n_resamples=1, random_state=0, **kw).estimate
    ),
    "bag_report": lambda m, X, b, p, g, **kw: reported(bag_report(m, X, b, p, **kw)),
    "coefficient_table": lambda m, X, b, p, g, **kw: printed(
        coefficient_table(m, X, b, p, **kw)
    ),
    "effect_needed": lambda m, X, b, p, g, **kw: effect_needed(
        m, X, b, p, g, value=0.5, **kw
    ),
    "goodman": lambda m, X, b, p, g, **kw: goodman(b, p, g, **kw),
    "group_rate": lambda m, X, b, p, g, **kw: group_rate(m, X, b, p, g, **kw),
    "group_rate_band": lambda m, X, b, p, g, **kw: group_rate_band(m, X, b, p, g, **kw),
    "label_worth": lambda m, X, b, p, g, **kw: worths(label_worth(X, b, p, m, **kw)),
    "polling_errors": lambda m, X, b, p, g, **kw: polling_errors(b, p, **kw).reindex(
        NAMES
    ),
    "recommend": lambda m, X, b, p, g, **kw: advised(X, b, p, **kw),
    "tomography": lambda m, X, b, p, g, **kw: tomography(
        b, p, g, model=m, X=X, **kw
    ).sort_index(),
}
CALLS = COUNTED | {
    "expected_accuracy": lambda m, X, b, p, g: expected_accuracy(
        m, X, bags=b, proportions=p
    ),
    "group_rate_bounds": lambda m, X, b, p, g: group_rate_bounds(b, p, g),
    "identifiability": lambda m, X, b, p, g: identifiability(b, p).rank,
}


def public_functions():
    rooms = [m.name for m in pkgutil.iter_modules(llpbook.__path__) if m.name[0] != "_"]
    modules = [importlib.import_module(f"llpbook.{room}") for room in rooms]
    public = {name: getattr(m, name) for m in modules for name in m.__all__}
    found = {name: f for name, f in public.items() if inspect.isfunction(f)}
    return {name: (f, inspect.signature(f).parameters) for name, f in found.items()}


def test_every_public_function_with_frequencies_is_here():
    found = {
        n for n, (_, p) in public_functions().items() if {"counts", "bags"} <= {*p}
    }
    assert found == {*COUNTED}


def test_the_docstring_states_the_defaults_of_every_public_function():
    line = r"(?m)^(\w[\w, ]*)(?: : .*)??(?:(default .+|optional)|\n    (?:As|See)[^`]*`([\w.]+).*)$"
    functions = public_functions()
    for name, (function, parameters) in functions.items():
        section, stated = inspect.getdoc(function).split("Returns\n")[0], {}
        for names, default, other in re.findall(line, section):
            value = ast.literal_eval(default.partition("default ")[2] or "None")
            shared = functions.get(other.rpartition(".")[2], (None, {}))[1]
            for one in names.split(", "):
                stated[one] = shared[one].default if one in shared else value
        for one, value in parameters.items():
            wanted = stated.get(one)
            assert value.default in (inspect.Parameter.empty, wanted), (name, one)


@pytest.mark.parametrize("name", COUNTED)
def test_frequencies_are_repeated_rows(name):
    X, bags, p, group, counts = table()
    model = fitted(X, bags, p, counts)
    rows = [np.repeat(of_rows, counts, axis=0) for of_rows in (X, bags, group)]
    wanted = COUNTED[name](model, rows[0], rows[1], p, rows[2])
    same(COUNTED[name](model, X, bags, p, group, counts=counts), wanted)


@pytest.mark.parametrize("name", CALLS)
def test_empty_bags_and_orders_say_nothing(name):
    X, bags, p, group, _ = table()
    p = (p * 4).round() / 4
    model = fitted(X, bags, p)
    more = pd.concat([p, pd.Series({"nobody": 0.5, "none": 1.0})]).sample(
        frac=1, random_state=0
    )
    order = np.random.default_rng(0).permutation(len(X))
    found = CALLS[name](model, X[order], bags[order], more, group[order])
    same(found, CALLS[name](model, X, bags, p, group))
