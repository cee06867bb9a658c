"""Bags that differ by an intercept each: coverage, the test without labels, accuracy; and more coefficients than bags.

``deviation_coverage``: bags of 50 with four features, whose means differ between bags (deviation 0.7); the log-odds
have the slopes `SLOPES`, the offset -0.5, and an intercept of each bag of the deviation ``tau``. In the world
``follows`` the intercept is half of the mean of the last feature in the bag, and ``tau`` is 0. A row is one draw:
``counts_95`` and ``mixed_95`` are the shares of the four slopes that the intervals of 95 % contain, of
`CountLogistic(C=100)` without and with ``bag_deviation="estimate"``; ``counts_4`` and ``mixed_4`` say so of the last
slope, ``counts_width`` and ``mixed_width`` are mean widths; ``counts_slope`` and ``mixed_slope`` are estimates of the
first, whose truth is 1; ``counts_rate`` and ``mixed_rate`` say whether the interval of `group_rate` holds the rate of
those whose first feature is positive; ``found`` is the estimated deviation.

``deviation_test``: the same draws with other sizes, and `bag_deviation` with 39 resamples: p-value, estimate, verdict.
``strength`` multiplies the slopes.

``deviation_natural``: natural bags of 1,000 people, accuracy on 2,000 others of `CountLogistic(C=0.1)`: ``counts``
without intercepts, ``fixed`` with the deviation 0.35, ``estimate`` with the estimated one, ``known`` and
``known_estimate`` the same with the effects of known bags. ``found`` is the estimated deviation.

``penalized_coverage``: 60 bags of 20 with 100 features and C = 0.1, ``world``: slopes drawn from the prior of the
penalty, five slopes of 0.5 and the rest 0, or twenty times the prior's variance. ``slopes`` is the share of the slopes
that the intervals of 95 % contain, ``rate`` whether the interval of a group's rate by its error, cut at the bounds,
holds the truth, and ``bounds`` the width of the bounds.

``few_bags``: bags of 50 with ten features and ``per_weight`` bags for each of eleven coefficients; the means of the
features have the deviation ``shift`` between bags. ``rate`` says whether the rate of those whose first feature is
positive is within the quantile of t times its error, ``group_rate`` whether the interval that is printed holds it.
"""

import warnings
from functools import lru_cache

import numpy as np
from scipy.special import expit
from scipy.stats import norm
from scipy.stats import t as student
from sklearn.preprocessing import StandardScaler

from llpbook import (
    CountLogistic,
    LLPWarning,
    bag_deviation,
    coefficient_table,
    group_rate,
)
from llpbook.comparison import paired_differences
from llpbook.proportions import label_proportions

from .natural import grouped
from .runner import Table, cells, load

PROTOCOL, WAYS = "deviation-1", ("counts", "mixed")
SLOPES, OFFSET, SHIFT = np.array([1.0, -0.5, 0.5, 0.0]), -0.5, 0.7


def draw(world, tau, n_bags, size, rng, strength=1.0):
    """Instances in bags that differ: X, y, bags, shares; see the module."""
    bags = np.repeat(np.arange(n_bags), size)
    means = SHIFT * rng.normal(size=(n_bags, len(SLOPES)))
    X = rng.normal(size=(len(bags), len(SLOPES))) + means[bags]
    u = (
        0.5 * means[:, 3] / SHIFT
        if world == "follows"
        else tau * rng.normal(size=n_bags)
    )
    p = expit(strength * X @ SLOPES + OFFSET + u[bags])
    y = (rng.random(len(bags)) < p).astype(int)
    return X, y, bags, label_proportions(y, bags, classes=[0, 1])


def run_coverage(cell, seed):
    """One draw: see the module."""
    L, size, tau = cell["n_bags"], cell["bag_size"], cell["tau"]
    rng = np.random.default_rng([seed, L, size, int(100 * tau)])
    X, y, bags, P = draw(cell["world"], tau, L, size, rng)
    group, found = X[:, 0] > 0, {}
    for name, deviation in (("counts", None), ("mixed", "estimate")):
        model = CountLogistic(100.0, bag_deviation=deviation, tol=1e-6).fit(X, bags, P)
        with warnings.catch_warnings(action="ignore", category=LLPWarning):
            ends = coefficient_table(model, X, bags, P).interval().to_numpy()[:4]
            rate = group_rate(model, X, bags, P, group).iloc[0]
        inside = (ends[:, 0] < SLOPES) & (ends[:, 1] > SLOPES)
        found |= {f"{name}_95": inside.mean(), f"{name}_4": inside[3]}
        found |= {f"{name}_slope": model.coef_[0, 0]}
        found[f"{name}_rate"] = rate["low"] <= y[group].mean() <= rate["high"]
        found[f"{name}_width"] = np.mean(ends[:, 1] - ends[:, 0])
    found["found"] = model.bag_deviation_
    return {key: round(float(value), 5) for key, value in found.items()}


def run_test(cell, seed):
    """One draw: see the module."""
    L, size, tau = cell["n_bags"], cell["bag_size"], cell["tau"]
    rng = np.random.default_rng([seed, L, size, int(100 * tau)])
    X, _, bags, P = draw(cell["world"], tau, L, size, rng, cell["strength"])
    model = CountLogistic(100.0).fit(X, bags, P)
    found = bag_deviation(model, X, bags, P, n_resamples=39, random_state=seed)
    return {
        "verdict": found.verdict,
        "estimate": round(found.estimates[1.0], 4),
        **{f"p_{C:g}": round(p, 4) for C, p in found.p_values.items()},
    }


GROUPINGS = {
    "adult by occupation": ("adult", "occupation", []),
    "adult by education": ("adult", "education", ["education-num"]),
    "adult by workclass": ("adult", "workclass", []),
    "adult by age": ("adult", "age", []),
    "adult by relationship": ("adult", "relationship", []),
    "german by purpose": ("german", "purpose", []),
    "german by employment": ("german", "employment", []),
    "credit by age": ("default-credit-card", "AGE", []),
    "mammographic by margin": ("mammographic", "margin", []),
    "credit-a by A6": ("credit-a", "A6", []),
    "breast-cancer by size": ("breast-cancer", "tumor-size", []),
}


@lru_cache(maxsize=2)
def table_of(task):
    """Features, labels and bags of a data set."""
    return grouped(*GROUPINGS[task])


def run_natural(cell, seed):
    """One draw of a task: see the module."""
    X, y, groups = table_of(cell["task"])
    n = min(1000, len(X) // 2)
    rows = np.random.default_rng(seed).permutation(len(X))[: n + 2000]
    Z = StandardScaler().fit(X[rows[:n]]).transform(X[rows])
    Z, y, groups = Z[:, Z[:n].std(axis=0) > 0], y[rows], groups[rows]
    names, bags = np.unique(groups[:n], return_inverse=True)
    known = np.isin(groups, names)
    new, old = (
        np.arange(n, len(rows)),
        np.flatnonzero(known & (np.arange(len(rows)) >= n)),
    )
    P = label_proportions(y[:n], bags, classes=[0, 1])
    found = {}
    ways = {"counts": None, "fixed": 0.35, "estimate": "estimate"}
    for name, deviation in ways.items():
        model = CountLogistic(bag_deviation=deviation).fit(Z[:n], bags, P)
        found[name] = np.mean(model.predict(Z[new]) == y[new])
        if deviation is not None:
            guess = model.predict(Z)
            guess[old] = model.predict(Z[old], np.searchsorted(names, groups[old]))
            place = "known" if name == "fixed" else "known_estimate"
            found[place] = np.mean(guess[new] == y[new])
    found["found"] = model.bag_deviation_
    return {key: round(float(value), 5) for key, value in found.items()}


def run_penalized(cell, seed):
    """One draw with more coefficients than bags: see the module."""
    rng = np.random.default_rng(seed)
    bags, C, d = np.repeat(np.arange(60), 20), 0.1, 100
    X = rng.normal(size=(1200, d)) + SHIFT * rng.normal(size=(60, d))[bags]
    w = np.sqrt(C) * rng.normal(size=d)
    if cell["world"] == "five":
        w = np.where(np.arange(d) < 5, 0.5, 0.0)
    if cell["world"] == "wide":
        w = np.sqrt(20.0) * w
    y = (rng.random(1200) < expit(X @ w + OFFSET)).astype(int)
    P, group = label_proportions(y, bags, classes=[0, 1]), X[:, 0] > 0
    model = CountLogistic(C, tol=1e-7).fit(X, bags, P)
    with warnings.catch_warnings(action="ignore", category=LLPWarning):
        ends = coefficient_table(model, X, bags, P).interval().to_numpy()[:d]
        rate = group_rate(model, X, bags, P, group).iloc[0]
    found = {"slopes": np.mean((ends[:, 0] < w) & (w < ends[:, 1]))}
    half = norm.isf(0.025) * rate["error"]
    low, high = (
        max(rate["rate"] - half, rate["least"]),
        min(rate["rate"] + half, rate["most"]),
    )
    found["rate"], found["width"] = low <= y[group].mean() <= high, high - low
    found["bounds"] = rate["most"] - rate["least"]
    return {key: round(float(value), 5) for key, value in found.items()}


def run_few(cell, seed):
    """One draw with few bags per coefficient: see the module."""
    d, size, L = 10, 50, round(11 * cell["per_weight"])
    rng = np.random.default_rng([seed, L, int(10 * cell["shift"])])
    bags = np.repeat(np.arange(L), size)
    X = rng.normal(size=(len(bags), d)) + cell["shift"] * rng.normal(size=(L, d))[bags]
    w = rng.normal(size=d) / np.sqrt(d)
    y = (rng.random(len(bags)) < expit(X @ w + OFFSET)).astype(int)
    P, group = label_proportions(y, bags, classes=[0, 1]), X[:, 0] > 0
    model = CountLogistic(cell["C"], tol=1e-7).fit(X, bags, P)
    with warnings.catch_warnings(action="ignore", category=LLPWarning):
        rate = group_rate(model, X, bags, P, group).iloc[0]
    truth, half = y[group].mean(), norm.isf(0.025) * rate["error"]
    if d + 1 < L:
        half = student.isf(0.025, L - d - 1) * rate["error"]
    return {
        "rate": int(abs(rate["rate"] - truth) <= half),
        "group_rate": int(rate["low"] <= truth <= rate["high"]),
    }


def coverage_cells():
    """Deviations 0, 0.5 and 1 with 100 bags of 50, 30 bags, and intercepts that follow a feature."""
    worlds = [("own", tau, 100, 50) for tau in (0.0, 0.5, 1.0)]
    worlds += [("own", 0.5, 30, 50), ("follows", 0.0, 100, 50)]
    keys = "world", "tau", "n_bags", "bag_size"
    return [dict(zip(keys, values, strict=True)) for values in worlds]


def test_cells():
    """No deviation with moderate and steep slopes, two deviations, and intercepts that follow a feature."""
    worlds = [("own", tau, 60, 20, 1.0) for tau in (0.0, 0.25, 0.5)]
    worlds += [("own", 0.0, 20, 50, 2.0), ("follows", 0.0, 60, 20, 1.0)]
    keys = "world", "tau", "n_bags", "bag_size", "strength"
    return [dict(zip(keys, values, strict=True)) for values in worlds]


TABLES = [
    Table(
        "deviation_coverage",
        PROTOCOL,
        coverage_cells(),
        run_coverage,
        "coverage of intervals of slopes where bags differ by an intercept",
        value="mixed_95",
    ),
    Table(
        "deviation_test",
        PROTOCOL,
        test_cells(),
        run_test,
        "the test of bags that differ, without labels",
        value="p_1",
    ),
    Table(
        "deviation_natural",
        PROTOCOL,
        cells(task=list(GROUPINGS)),
        run_natural,
        "accuracy with intercepts of bags on natural bags",
        value="fixed",
    ),
    Table(
        "penalized_coverage",
        PROTOCOL,
        cells(world=["prior", "five", "wide"]),
        run_penalized,
        "coverage with more coefficients than bags",
        value="rate",
    ),
    Table(
        "few_bags",
        PROTOCOL,
        cells(per_weight=[0.9, 1.5, 2, 3, 6, 12], shift=[0, 0.7], C=[0.1, 10]),
        run_few,
        "coverage of a group's rate with few bags per coefficient",
        value="rate",
    ),
]


def coverage_table(results=None):
    """Per world: how many of 100 intervals hold the slope, means of the first slope and of the deviation, draws."""
    frame = load("deviation_coverage", results)
    groups = frame.groupby(["world", "tau", "n_bags"], sort=False)
    shares = [f"{how}_{what}" for what in ("95", "4", "rate") for how in WAYS]
    table = 100 * groups[shares].mean()
    means = groups[["counts_slope", "mixed_slope", "found"]].mean()
    return table.join(means).assign(draws=groups.size())


def test_table(results=None):
    """Per world: how many of 100 draws are said to differ, or cannot tell, the mean estimate, draws."""
    frame = load("deviation_test", results)
    frame["differ"] = 100.0 * (frame["verdict"] == "differ")
    frame["cannot tell"] = 100.0 * (frame["verdict"] == "cannot tell")
    groups = frame.groupby(["world", "tau", "n_bags", "strength"], sort=False)
    table = groups[["differ", "cannot tell", "estimate"]].mean()
    return table.assign(draws=groups.size())


test_cells.__test__ = test_table.__test__ = False  # tables of tests, not tests


def natural_table(results=None):
    """Points of accuracy ahead of the counts alone, mean over data sets and its standard error."""
    frame = load("deviation_natural", results)
    ways = ["fixed", "estimate", "known", "known_estimate"]
    frame["dataset"] = frame["task"].map(lambda task: GROUPINGS[task][0])
    scores = 100 * frame.set_index(["dataset", "task", "seed"])[["counts", *ways]]
    return paired_differences(scores, "counts", unit="dataset")


def penalized_table(results=None):
    """Per world: how many of 100 intervals of slopes and of the rate hold the truth, and the widths for the rate."""
    groups = load("penalized_coverage", results).groupby("world", sort=False)
    table = (100 * groups[["slopes", "rate"]].mean()).join(
        groups[["width", "bounds"]].mean()
    )
    return table.assign(draws=groups.size())


def few_table(results=None):
    """How many of 100 rates of a group its interval holds, per bags for each coefficient, and `group_rate` prints."""
    frame = load("few_bags", results)
    frame["cell"] = [
        f"C={C:g}, {s:g}" for C, s in zip(frame["C"], frame["shift"], strict=True)
    ]
    table = 100 * frame.pivot_table("rate", "per_weight", "cell")
    return table.assign(printed=100 * frame.groupby("per_weight")["group_rate"].mean())
