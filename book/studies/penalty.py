"""How to penalize the likelihood of the counts: metrics of the penalty, sizes, and ways to choose them without labels.

A task is one of `studies.choosing`, of ``docstrings`` (the documents of installed packages, as TF-IDF; functions
against classes, in bags by module or in random bags of 50) or ``two bags`` (Yu et al., 2013, figure 1, whose means
mislead; 50 instances per bag). The penalty is w'Mw / 2C, where the metric M is

- ``given``: the identity matrix, today's;
- ``covariance``: the covariance matrix of the features, so that rescaling and turning them changes nothing;
- ``information``: the information of the counts about slopes of 0, scaled to a trace of d, plus a hundredth of the
  identity matrix.

For each C, ``accuracy C`` on new instances, ``evidence C`` (the Laplace approximation of the logarithm of the
probability of the counts under the penalty as prior) and ``held out C`` (the log-likelihood of the counts of whole
bags, predicted out of three folds, where there are three bags; not for tasks of `studies.choosing`). ``trace`` is the
sum of the variances of the features, ``n_predicted`` the number of classes that are predicted for the bags with C = .1.
"""

import importlib
import inspect
import warnings
from functools import lru_cache

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from llpbook import CountLogistic, NotIdentifiableError
from llpbook.base import append_one, one_column
from llpbook.comparison import paired_differences
from llpbook.count_likelihood import CountLoss, LinearObjective, bag_counts
from llpbook.datasets import random_bags
from llpbook.model_selection import FullBagKFold
from llpbook.proportions import label_proportions

from . import choosing
from .runner import Table, load

PROTOCOL = "penalty-1"
SIZES = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0)
METRICS = ("given", "covariance", "information")
OWN = {"docstrings": ("natural", "random"), "two bags": ("natural",)}
FLAT, N_TEXT = 1e-9, 3000
MODULES = (
    "numpy", "numpy.linalg", "numpy.polynomial", "numpy.random", "numpy.ma", "pandas",
    *(f"scipy.{name}" for name in (
        "cluster", "fft", "integrate", "interpolate", "io", "linalg", "ndimage",
        "optimize", "signal", "sparse", "spatial", "special", "stats",
    )),
    *(f"sklearn.{name}" for name in (
        "base", "calibration", "cluster", "compose", "covariance", "datasets",
        "decomposition", "ensemble", "feature_extraction", "feature_selection",
        "gaussian_process", "impute", "inspection", "linear_model", "manifold",
        "metrics", "mixture", "model_selection", "multiclass", "naive_bayes",
        "neighbors", "neural_network", "pipeline", "preprocessing", "svm", "tree",
        "utils",
    )),
)  # fmt: skip


@lru_cache(maxsize=1)
def documents():
    """Docstrings of public functions and classes: text, whether it is of a class, and the module."""
    found = {}
    for module in map(importlib.import_module, MODULES):
        for name in dir(module):
            thing = getattr(module, name)
            own = {"": thing}
            if inspect.isclass(thing):
                own |= {
                    key: value for key, value in vars(thing).items() if key[0] != "_"
                }
            for key, value in own.items():
                text = inspect.getdoc(value) if callable(value) else None
                if text and len(text) > 150:
                    found.setdefault(text, (not key, module.__name__))
    texts = sorted(found)
    kinds = np.array([found[text][0] for text in texts]).astype(int)
    return texts, kinds, np.array([found[text][1] for text in texts])


def of_text(how, seed):
    """Documents in bags and new ones."""
    texts, y, modules = documents()
    rows = np.random.RandomState(seed).permutation(len(texts))
    n = min(N_TEXT, len(rows) * 3 // 4)
    words = TfidfVectorizer(min_df=2, sublinear_tf=True)
    words.fit([texts[i] for i in rows[:n]])
    X = words.transform([texts[i] for i in rows])
    y, old = y[rows], modules[rows[:n]]
    if how == "random":
        old = random_bags(y[:n], bag_size=50, random_state=seed)
    return X[:n], X[n:], y[:n], y[n:], np.unique(old, return_inverse=True)[1]


def misleading(_, seed):
    """Two bags of which the one with more positives has the smaller mean."""
    rng = np.random.default_rng(seed)
    x = np.repeat([1, 1, 1, -4, -4, 4, 4, -1, -1, -1], 10)
    y, bags = np.repeat([1, 1, 1, 0, 0, 1, 1, 0, 0, 0], 10), np.repeat([0, 1], 50)
    X, X_new = (x[:, None] + 0.3 * rng.normal(size=(2, 100, 1)))[:]
    return X, X_new, y, y, bags


def make_problem(part, task, seed):
    """One draw; see `studies.choosing.make_problem`."""
    if part in OWN:
        return {"docstrings": of_text, "two bags": misleading}[part](task, seed)
    return choosing.make_problem(part, task, seed)


def features_of(metric, X, bags, shares):
    """The map after which the penalty of a metric is that of the identity, shape (n_features, n_new)."""
    d = X.shape[1]
    if metric == "given":
        return np.eye(d)
    if metric == "covariance":
        M = np.atleast_2d(np.cov(X.T))
    else:
        sizes = np.bincount(bags)
        means = np.array([X[bags == k].mean(axis=0) for k in range(len(sizes))])
        apart = means - X.mean(axis=0)
        M = (apart * sizes[:, None]).T @ apart
        M = M * d / max(np.trace(M), 1e-12) + 0.01 * np.eye(d)
    values, vectors = np.linalg.eigh(M)
    kept = values > FLAT * values[-1]
    return vectors[:, kept] / np.sqrt(values[kept])


def evidence(model, C, Z, known):
    """The Laplace approximation of the log probability of the counts, up to a constant of the intercept."""
    W = np.column_stack([model.coef_, model.intercept_])
    Z = append_one(Z)
    prior = np.full(Z.shape[1], C)
    prior[-1] = 1e4
    F = LinearObjective(CountLoss(), Z, known).factors(one_column(np.asarray(Z @ W.T)))
    F = F * np.sqrt(np.tile(prior, len(W)))
    G = F @ F.T if len(F) < F.shape[1] else F.T @ F
    return -model.objective_ - np.linalg.slogdet(np.eye(len(G)) + G)[1] / 2


def held_out(C, Z, bags, shares, seed):
    """Log-likelihood of the counts of whole bags out of fold, NaN with fewer than three bags or a refusal."""
    if len(shares) < 3:
        return np.nan
    total = 0.0
    for old, new in FullBagKFold(3, proportions=shares, random_state=seed).split(
        Z, groups=bags
    ):
        try:
            model = CountLogistic(C=C).fit(Z[old], bags[old], shares)
        except NotIdentifiableError:
            return np.nan
        names, of = np.unique(bags[new], return_inverse=True)
        scores = Z[new] @ model.coef_.T + model.intercept_
        total -= CountLoss().evaluate(
            one_column(scores), bag_counts(of, shares[names])
        )[0]
    return total


def run(cell, seed):
    """One row: a task, a metric and a draw."""
    X, X_new, y, y_new, bags = make_problem(cell["part"], cell["task"], seed)
    classes = np.unique(y)
    codes = np.searchsorted(classes, y_new)
    shares = label_proportions(y, bags, classes=classes)
    row = {
        f"{what} {C:g}": np.nan
        for what in ("accuracy", "evidence", "held out")
        for C in SIZES
    }
    dense = not sp.issparse(X)
    T = features_of(cell["metric"], X, bags, shares) if dense else None
    Z, Z_new = (X @ T, X_new @ T) if dense else (X, X_new)
    known = bag_counts(bags, shares)
    with warnings.catch_warnings(action="ignore"):
        try:
            for C in SIZES:
                model = CountLogistic(C=C).fit(Z, bags, shares)
                row[f"accuracy {C:g}"] = np.mean(model.predict(Z_new) == codes)
                row[f"evidence {C:g}"] = evidence(model, C, Z, known)
                if cell["part"] in OWN:
                    row[f"held out {C:g}"] = held_out(C, Z, bags, shares, seed)
                if C == 0.1:
                    row["n_predicted"] = len(np.unique(model.predict(Z)))
        except NotIdentifiableError:
            row["n_predicted"] = 0
        limit = LogisticRegression(C=0.1 if dense else 10.0, max_iter=1000).fit(X, y)
    largest = classes[np.argmax(np.bincount(np.searchsorted(classes, y)))]
    squares = X.multiply(X) if not dense else X * X
    row |= {
        "trace": float(np.sum(squares) / len(y) - np.sum(np.square(X.mean(axis=0)))),
        "n": len(y), "d": X.shape[1], "bags": len(shares), "classes": len(classes),
        "accuracy majority": np.mean(y_new == largest),
        "accuracy labels": np.mean(limit.predict(X_new) == y_new),
    }  # fmt: skip
    return {name: round(float(value), 6) for name, value in row.items()}


def all_cells():
    """Each task with each metric; text, of more words than documents, with the given one."""
    tasks = [(part, task) for part, some in choosing.TASKS.items() for task in some]
    found = [(*task, metric) for task in tasks for metric in METRICS]
    found += [(part, task, "given") for part, tasks in OWN.items() for task in tasks]
    found += [("two bags", "natural", "covariance")]
    return [dict(zip(("part", "task", "metric"), each, strict=True)) for each in found]


def less(results=None):
    """Accuracy on the tasks of `studies.choosing` less that of today's default, C = .1 and the metric ``given``.

    Parameters
    ----------
    results : path, optional
        Folder of the files; that of the studies if not given.

    Returns
    -------
    DataFrame
        One row per metric and size, or way to choose it: ``difference`` in points with its ``error`` over data sets,
        ``n_dataset``, and on how many of ``tasks`` it is over a point ``worse`` or ``better``. A size of v / trace is
        the next power of ten. A refusal counts as the majority class.
    """
    rows = load("penalty", results).query("part in ['making', 'testing'] and seed == 0")
    rows = rows.set_index("task")
    found = {}
    for metric, part in rows.groupby("metric"):
        values = part[[f"accuracy {C:g}" for C in SIZES]].to_numpy()
        values = 100 * np.where(np.isnan(values), part[["accuracy majority"]], values)
        each = pd.DataFrame(values, part.index)
        for j, C in enumerate(SIZES):
            found[f"{metric}, {C:g}"] = each[j]
        evidence = part[[f"evidence {C:g}" for C in SIZES]].fillna(-np.inf).to_numpy()
        chosen = {"evidence": evidence.argmax(axis=1)}
        if metric == "given":
            for v in (1, 3, 10):
                power = np.round(np.log10(v / part["trace"])).astype(int) + 3
                chosen[f"{v} / trace"] = power.clip(0, len(SIZES) - 1).to_numpy()
        for way, j in chosen.items():
            found[f"{metric}, {way}"] = pd.Series(
                values[np.arange(len(j)), j], part.index
            )
    wide = pd.DataFrame(found).dropna()
    first = wide.index.str.split(" by |, | ").str[0]
    name = pd.Index(np.where(wide.index.str.contains("adult"), "adult", first))
    wide.index = pd.MultiIndex.from_arrays(
        [name, wide.index], names=["dataset", "task"]
    )
    table = paired_differences(wide, "given, 0.1", unit="dataset").reset_index(
        drop=True
    )
    table.index = wide.columns.drop("given, 0.1")
    gaps = wide.sub(wide["given, 0.1"], axis=0)
    return table.assign(
        tasks=len(wide), worse=(gaps < -1).sum(), better=(gaps > 1).sum()
    )


TABLES = [
    Table(
        "penalty",
        PROTOCOL,
        all_cells(),
        run,
        "metrics and sizes of the penalty of the likelihood of the counts, with ways to choose the size",
        value="accuracy 0.1",
    )
]
