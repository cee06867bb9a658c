"""What holds for every function of bags: frequencies are repeated rows, empty bags and orders say nothing."""

import ast
import importlib
import inspect
import pkgutil
import pydoc
import re

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from problems import Newton
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import llpbook
from llpbook import (
    CountLogistic,
    FullBagKFold,
    KDEDifference,
    LLPGridSearchCV,
    MajorityClass,
    bag_bootstrap,
    bag_deviation,
    bag_report,
    coefficient_table,
    diagnose,
    group_rate,
    identifiability,
    label_proportions,
    label_worth,
    proportion_scorer,
    recommend,
)
from llpbook.bag_losses import LogOddsClassifier, ProportionLoss
from llpbook.choosing import Advice
from llpbook.ecological import effect_needed, goodman, group_rate_band, polling_errors
from llpbook.model_selection import count_log_likelihood
from llpbook.plotting import plot_bags
from llpbook.proportions import averaging_matrix, restore_counts
from llpbook.uncertainty import (
    accuracy_bounds,
    bag_influence,
    expected_accuracy,
    group_rate_bounds,
    tomography,
)

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


def line_advice():
    """To fit a line behind a scaler."""
    line = make_pipeline(StandardScaler(), CountLogistic(tol=1e-9))
    return Advice("fit", line, None, None, None, None, None, [], 1.0)


def worth_of(found):
    return [found.rank, found.n_instances, *found.spread, *found.worth_in_labels]


def numbered(bags):
    return np.searchsorted(NAMES, bags)


def columns_of(p):
    return np.column_stack([1 - p, p])


def resampled(X, bags, p, **kw):
    model = CountLogistic(1.0, tol=1e-9)
    found = bag_bootstrap(
        model, X, bags, p, lambda m: m.coef_[0], n_resamples=3, random_state=0, **kw
    )
    return [*found.estimate, *found.replicates.ravel()]


def pvalues(X, bags, p, **kw):
    found = diagnose(X, bags, p, n_permutations=99, **kw)
    return found.pvalues.dropna()


def bars(X, bags, p, **kw):
    figure = plot_bags(X, bags, p, max_bags=30, **kw)
    right = figure.axes[1]
    found = [bar.get_width() for bar in right.patches] + [
        x for line in right.lines for x in line.get_xdata()
    ]
    plt.close(figure)
    return found


#: By name, a call whose numbers are compared; those of COUNTED take frequencies.
COUNTED = {
    "accuracy_bounds": lambda m, X, b, p, g, **kw: accuracy_bounds(
        m.predict(X), b, p, **kw
    ),
    "averaging_matrix": lambda m, X, b, p, g, **kw: (
        averaging_matrix(numbered(b), **kw) @ X
    ),
    "bag_bootstrap": lambda m, X, b, p, g, **kw: resampled(X, b, p, **kw),
    "bag_influence": lambda m, X, b, p, g, **kw: np.hstack(
        [bag_influence(m, X, b, p, **kw), bag_influence(m, X, b, p, group=g, **kw)]
    ),
    "count_log_likelihood": lambda m, X, b, p, g, **kw: count_log_likelihood(
        m.predict_proba(X), numbered(b), columns_of(p), **kw
    ),
    "diagnose": lambda m, X, b, p, g, **kw: pvalues(X, b, p, **kw),
    "expected_accuracy": lambda m, X, b, p, g, **kw: [
        expected_accuracy(m, X, bags=b, proportions=p, **kw),
        expected_accuracy(m, X, **kw),
    ],
    "group_rate_bounds": lambda m, X, b, p, g, **kw: group_rate_bounds(b, p, g, **kw),
    "identifiability": lambda m, X, b, p, g, **kw: worth_of(
        identifiability(b, p, **kw)
    ),
    "label_proportions": lambda m, X, b, p, g, **kw: label_proportions(
        m.predict(X), numbered(b), **kw
    ),
    "restore_counts": lambda m, X, b, p, g, **kw: (
        restore_counts(b, p.round(2), **kw).proportions
    ),
    "plot_bags": lambda m, X, b, p, g, **kw: bars(X, b, p, **kw),
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
#: Methods of classes, likewise.
METHODS = {
    "Advice.fit": lambda m, X, b, p, g, **kw: (
        line_advice().fit(X, b, p, **kw)[-1].coef_
    ),
    "BagLoss.__call__": lambda m, X, b, p, g, **kw: ProportionLoss()(
        X[:, 1], b, p, **kw
    )[0],
    "BagSearch.fit": lambda m, X, b, p, g, **kw: (
        LLPGridSearchCV(MajorityClass(), {}, cv=FullBagKFold(3))
        .fit(X, b, p, **kw)
        .best_score_
    ),
    "BagSearch.predict_proportions": lambda m, X, b, p, g, **kw: (
        LLPGridSearchCV(m, {}, cv=FullBagKFold(3))
        .fit(X, b, p, **kw)
        .predict_proportions(X, b, **kw)
    ),
    "LLPClassifier.fit": lambda m, X, b, p, g, **kw: fitted(X, b, p, **kw).coef_,
    "LLPClassifier.predict_proportions": lambda m, X, b, p, g, **kw: np.hstack(
        [m.predict_proportions(X, b, soft=soft, **kw) for soft in (True, False)]
    ),
    "LogOddsClassifier.fit": lambda m, X, b, p, g, **kw: (
        LogOddsClassifier(Newton()).fit(X, b, p, **kw).decision_function(np.eye(2))
    ),
    "LogOddsClassifier.predict_proportions": lambda m, X, b, p, g, **kw: (
        LogOddsClassifier(m.decision_function)
        .predict_proportions(X, b, soft=True, **kw)
        .reindex(NAMES)
    ),
    "ProportionScorer.__call__": lambda m, X, b, p, g, **kw: [
        proportion_scorer(p, error=error)(m, X, b, **kw)
        for error in ("weighted_mae", "log_likelihood", "unbiased")
    ],
    "TwoBagClassifier.fit": lambda m, X, b, p, g, **kw: (
        KDEDifference().fit(X, b, p, **kw).decision_function(np.eye(2))
    ),
}
#: Of bags, but without frequencies, and why.
NONE = {
    "fit_chunks sample_bags chunk_coefficient_table chunk_group_rate": "names of columns, see test_beyond_memory",
    "make_dataset BagDataset.__init__ GeneratedBags.__init__": "instances with labels",
    "LinearBagModel.decision_function LinearBagModel.predict LinearBagModel.predict_proba": "each row by itself",
    "BagBatches.__init__": "whole bags, whatever their rows",
    "OutOfFold.fit": "hands on what the fits take",
    "BagLoss.some SumOfLosses.some": "numbers of bags",
    "CheckedMargins.__init__": "tables of counts",
}
#: The order of bags is not theirs to choose, or chance depends on it.
ORDERED = (
    "averaging_matrix bag_bootstrap bag_influence count_log_likelihood diagnose label_proportions plot_bags "
    "restore_counts"
)
CALLS = {name: call for name, call in COUNTED.items() if name not in ORDERED.split()}


def public_objects():
    rooms = [m.name for m in pkgutil.iter_modules(llpbook.__path__) if m.name[0] != "_"]
    modules = [importlib.import_module(f"llpbook.{room}") for room in rooms]
    return {name: getattr(m, name) for m in modules for name in m.__all__}


def public_functions():
    found = {name: f for name, f in public_objects().items() if inspect.isfunction(f)}
    return {name: (f, inspect.signature(f).parameters) for name, f in found.items()}


def public_methods():
    """Of public classes, by the class that defines them."""
    for f in public_objects().values():
        for name, method in inspect.getmembers(f, inspect.isfunction):
            if inspect.isclass(f) and (
                name[0] != "_" or name in ("__init__", "__call__")
            ):
                yield (
                    method.__qualname__,
                    (method, inspect.signature(method).parameters),
                )


def test_every_public_function_and_method_of_bags_takes_frequencies():
    every = public_functions() | dict(public_methods())
    of_bags = {name: p for name, (_, p) in every.items() if "bags" in p}
    assert {name for name, p in of_bags.items() if "counts" in p} >= {
        *COUNTED,
        *METHODS,
    }
    of_chunks = {name for name, p in of_bags.items() if "chunks" in p}
    assert len(of_chunks) == 4 and all("counts" in of_bags[n] for n in of_chunks)
    assert {*of_bags} == {*COUNTED, *METHODS, *" ".join(NONE).split()}


def test_the_docstring_states_the_defaults_of_every_public_function_and_method():
    line = r"(?m)^(\w[\w, ]*)(?: : .*)??(?:(default .+|optional)|\n    (?:As|See)[^`]*`([\w.]+).*)$"
    functions = public_functions()
    methods = {  # a docstring without parameters points to another
        name: (method, parameters)
        for name, (method, parameters) in public_methods()
        if method.__module__.startswith("llpbook.")
        and "Parameters\n" in (method.__doc__ or "")
    }
    assert len(methods) > 30
    for name, (function, parameters) in (functions | methods).items():
        section, stated = inspect.getdoc(function).split("Returns\n")[0], {}
        for names, default, other in re.findall(line, section):
            text = default.partition("default ")[2] or "None"
            named = text[0] == "`"
            value = pydoc.locate(text[1:-1]) if named else ast.literal_eval(text)
            shared = functions.get(other.rpartition(".")[2], (None, {}))[1]
            for one in names.split(", "):
                stated[one] = shared[one].default if one in shared else value
        for one, value in parameters.items():
            wanted = stated.get(one)
            assert value.default in (inspect.Parameter.empty, wanted), (name, one)


@pytest.mark.parametrize("name", COUNTED | METHODS)
def test_frequencies_are_repeated_rows(name):
    call = (COUNTED | METHODS)[name]
    X, bags, p, group, counts = table()
    if name == "BagLoss.__call__":  # takes no row without instances
        counts[5] = 1
    model = fitted(X, bags, p, counts)
    rows = [np.repeat(of_rows, counts, axis=0) for of_rows in (X, bags, group)]
    wanted = call(model, rows[0], rows[1], p, rows[2])
    same(call(model, X, bags, p, group, counts=counts), wanted)


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
