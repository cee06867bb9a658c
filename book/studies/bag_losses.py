"""The losses of bags compared: by a linear model and by boosted trees, with the true labels and the majority beside.

A row is one draw, one learner and one method: a loss of `llpbook.bag_losses.LOSSES`, ``labels`` (logistic regression,
or boosted trees with eight leaves, on the true labels of the instances in bags: the limit), ``majority``, or, of a line
on natural bags, ``easy n/w``: EasyLLP with the factor of the worth of the shares. All
results are of new instances: ``accuracy``, ``f1`` (of the positive class), ``auc``, ``log_loss`` (natural logarithm,
probabilities cut at 1e-12), ``ece`` (`studies.counts_fair.calibration_error`); ``cpu_seconds`` is the processor
time of one fit, without the choice of its setting. A fit that does not converge counts as it ends.

``bag_losses``: untuned, all defaults. Random bags of 50 or 500 of scikit-learn's `make_classification`, 20
features, and 4,000 new instances; ``banana``: 3,000 points in random bags of 25, the other 2,300 new.

``bag_losses_natural``: the draws of `studies.natural`. Its splits of parts of bags choose C: the setting whose mean
probabilities are nearest to the shares, a criterion that no loss minimizes. ``labels`` are tuned by the logarithmic
loss of labels held out.
"""

import time
import warnings

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, log_loss, roc_auc_score
from sklearn.model_selection import GridSearchCV, ParameterGrid

from llpbook import BagBoosting, BagLogistic, LLPGridSearchCV, MajorityClass
from llpbook.bag_losses import LOSSES, EasyLoss
from llpbook.comparison import paired_differences
from llpbook.datasets import random_bags
from llpbook.model_selection import SplitBagKFold, proportion_scorer
from llpbook.proportions import label_proportions

from . import complexllp, natural
from .counts_fair import calibration_error, table_of
from .runner import Table, cells, load

PROTOCOL = "bag-losses-2"
N_NEW, N_FEATURES = 4000, 20
BANANA, N_BANANA, BANANA_SIZE = "banana", 3000, 25
#: Instances tested on per instance trained on, where draws share instances; the other problems are drawn anew.
RATIOS = {BANANA: 2300 / N_BANANA, **natural.RATIOS}
# By name: instances in bags, and size of a bag.
RANDOM = {
    "1e4 in bags of 50": (10_000, 50),
    "1e4 in bags of 500": (10_000, 500),
    "1e5 in bags of 50": (100_000, 50),
    "1e5 in bags of 500": (100_000, 500),
}
LEARNERS = {"linear": BagLogistic, "trees": BagBoosting}
PENALTY = {"linear": 1.0, "trees": 0.1}
LIMITS = {
    "linear": LogisticRegression(max_iter=1000),
    "trees": HistGradientBoostingClassifier(max_leaf_nodes=8, early_stopping=False),
}
PENALTIES = {"C": [1e-3, 0.01, 0.1, 1.0, 10.0]}
# What is chosen in a table, by learner and kind of method. C of trees is that of their linear start.
GRIDS = {
    "bag_losses_natural": {
        ("linear", "loss"): PENALTIES,
        ("linear", "labels"): PENALTIES,
        ("trees", "loss"): {"C": [0.01, 0.1, 1.0], "max_iter": [50]},
        ("trees", "labels"): {"max_iter": [10, 30, 100]},
    },
}
#: A loss without a name in the package.
UNMIXED = {"easy n/w": EasyLoss(factor="worth")}
SMALLEST = 1e-12


def make_problem(problem, seed):
    """Instances in random bags, and new ones.

    Parameters
    ----------
    problem : str
        A key of ``RANDOM``, or "banana".
    seed : int

    Returns
    -------
    X, X_new : ndarray
    y, y_new : ndarray of 0 and 1
        Serve the proportions and the evaluation.
    bags : ndarray of int
    """
    rng = np.random.RandomState((seed, 1))  # not the stream of make_classification
    if problem == BANANA:
        X, y = table_of(BANANA)
        rows, n, size = rng.permutation(len(X)), N_BANANA, BANANA_SIZE
        X, y = X[rows], y[rows]
    else:
        n, size = RANDOM[problem]
        X, y = make_classification(n + N_NEW, n_features=N_FEATURES, random_state=seed)
    return X[:n], X[n:], y[:n], y[n:], random_bags(n, bag_size=size, random_state=rng)


def build(learner, method):
    """An estimator with its default settings.

    Parameters
    ----------
    learner : {"linear", "trees", "none"}
    method : str
        A loss, "labels" or "majority".

    Returns
    -------
    classifier
    """
    if method == "majority":
        return MajorityClass()
    if method == "labels":
        return clone(LIMITS[learner])
    return LEARNERS[learner](UNMIXED.get(method, method), C=PENALTY[learner])


def choose(model, grid, X, given, cv):
    """The best setting of a grid, on what is held out.

    Parameters
    ----------
    model : classifier
    grid : dict of list
        A single setting is taken without a search.
    X : ndarray, shape (n, n_features)
    given : bags and shares, or (y,)
        Of bags, the setting whose mean probabilities are nearest to the shares of the parts held out is chosen; of
        labels, the one with the smallest logarithmic loss, three folds.
    cv : splitter
        Of bags into parts.

    Returns
    -------
    dict
    """
    settings = list(ParameterGrid(grid))
    if len(settings) == 1:
        return settings[0]
    if len(given) == 1:
        search = GridSearchCV(model, grid, scoring="neg_log_loss", cv=3, refit=False)
    else:
        score = proportion_scorer(given[1], error="weighted_mae")
        search = LLPGridSearchCV(model, grid, scoring=score, cv=cv, refit=False)
    found = search.set_params(error_score="raise").fit(X, *given).cv_results_
    return found["params"][np.argmax(found["mean_test_score"])]


def judge(model, X, y):
    """All results of a fitted model on new instances.

    Parameters
    ----------
    model : classifier
    X : ndarray, shape (n, n_features)
    y : ndarray of 0 and 1, shape (n,)

    Returns
    -------
    dict of str to float
    """
    s = model.predict_proba(X)[:, 1]
    cut, labels = np.clip(s, SMALLEST, 1 - SMALLEST), model.predict(X)
    found = {
        "accuracy": np.mean(labels == y),
        "f1": f1_score(y, labels, zero_division=0.0),
        "auc": roc_auc_score(y, s),
        "log_loss": log_loss(y, cut, labels=[0, 1]),
        "ece": calibration_error(s, y),
    }
    return {name: round(float(value), 6) for name, value in found.items()}


def fit_and_judge(cell, parts, shares, grids=None, cv=None):
    """One row.

    Parameters
    ----------
    cell : dict
        With ``learner`` and ``method``.
    parts : X, X_new, y, y_new, bags
    shares : ndarray, shape (n_bags, 2)
    grids : dict, optional
        By learner and kind of method, "loss" or "labels"; the default settings where there is no entry.
    cv : splitter, optional
        See `choose`.

    Returns
    -------
    dict
    """
    X, X_new, y, y_new, bags = parts
    learner, method = cell["learner"], cell["method"]
    grid = (grids or {}).get((learner, "labels" if method == "labels" else "loss"), {})
    given = (y,) if method == "labels" else (bags, shares)
    with warnings.catch_warnings(action="ignore"):
        model = build(learner, method)
        setting = choose(model, grid, X, given, cv)
        model.set_params(**setting)
        start = time.process_time()
        model.fit(X, *given)
        spent = round(time.process_time() - start, 4)
    chosen = " ".join(f"{key}={value}" for key, value in setting.items())
    return {**judge(model, X_new, y_new), "cpu_seconds": spent, "chosen": chosen}


def run(cell, seed):
    """One row of the benchmark."""
    parts = make_problem(cell["problem"], seed)
    return fit_and_judge(
        cell, parts, label_proportions(parts[2], parts[4], classes=[0, 1])
    )


def run_natural(cell, seed):
    """One row of natural bags."""
    parts = natural.make_problem(cell["how"], seed)
    shares = label_proportions(parts[2], parts[4], classes=[0, 1])
    cv = SplitBagKFold(natural.SPLITS, random_state=seed)
    return fit_and_judge(cell, parts, shares, GRIDS["bag_losses_natural"], cv)


def by_learner(key, values):
    """The cells of a table in which all methods see the same bags."""
    methods = [*LOSSES, "labels"]
    return (
        cells(**{key: values}, learner=["none"], method=["majority"])
        + cells(**{key: values}, learner=["linear"], method=methods)
        + cells(**{key: values}, learner=["trees"], method=methods)
    )


TABLES = [
    Table(
        "bag_losses",
        PROTOCOL,
        by_learner("problem", [*RANDOM, BANANA]),
        run,
        "losses of bags by a line and by trees, untuned, on large random bags",
        value="auc",
    ),
    Table(
        "bag_losses_natural",
        PROTOCOL,
        by_learner("how", list(natural.GROUPINGS))
        + cells(how=list(natural.GROUPINGS), learner=["linear"], method=[*UNMIXED]),
        run_natural,
        "losses of bags by a line and by trees, tuned without labels, on the bags of the study natural",
        value="auc",
    ),
]


def paired(name, value="accuracy", results=None):
    """One result of all methods on the same draws.

    Parameters
    ----------
    name : str
        Of a table of this module.
    value : str, default "accuracy"
        A column of results.
    results : path, optional
        Folder of the files; that of the studies if not given.

    Returns
    -------
    DataFrame
        A column per method, a row per problem, learner and draw that all losses with a name have been run on.
    """
    rows = load(name, results)
    key = rows.columns[1]
    losses = rows[rows["method"].isin([*LOSSES, *UNMIXED])]
    wide = losses.pivot(index=[key, "learner", "seed"], columns="method", values=value)
    for method, by in (("labels", ["learner"]), ("majority", [])):
        found = rows[rows["method"] == method].set_index([key, *by, "seed"])[value]
        wide = wide.join(found.rename(method), on=[key, *by, "seed"])
    wide = wide.dropna(subset=[*LOSSES, "labels", "majority"])
    more = [name for name in UNMIXED if name in wide]
    return wide[[*LOSSES, *more, "labels", "majority"]]


def less(name, value="accuracy", other="counts", results=None):
    """Differences of each method to another on the same draws, with standard errors.

    Parameters
    ----------
    name, value, results
        As for `paired`.
    other : str, default "counts"

    Returns
    -------
    DataFrame of str
        A row per problem and learner: the mean difference and, in parentheses, its standard error over draws, corrected
        where draws share training instances. Accuracy and f1 are in percent.
    """
    scale, form = (100, ".1f") if value in ("accuracy", "f1") else (1, ".3f")
    found, shown = scale * paired(name, value, results), {}
    *kept, unit = found.index.names
    for key, part in found.groupby(level=kept, sort=False):
        ratio = RATIOS.get(key[0], 0)
        gaps = paired_differences(part, other, unit=unit, test_train_ratio=ratio)
        shown[key] = {
            method: f"{gap:+{form}} ({error:{form}})"
            for method, gap, error in gaps[["difference", "error"]].itertuples()
        }
    table = pd.DataFrame.from_dict(shown, orient="index").rename_axis(kept)
    return table.fillna("")  # a loss that has not been run with every learner


def seconds(name, results=None):
    """Processor seconds of one fit, mean over the draws.

    Parameters
    ----------
    name, results
        As for `paired`.

    Returns
    -------
    DataFrame
    """
    found = paired(name, "cpu_seconds", results)
    return found.groupby(level=[0, 1], sort=False).mean().round(2)


def best_published(value="accuracy"):
    """Published results of the best of eight methods on each set of `studies.complexllp`, mean by variant.

    Each method has chosen its settings by one criterion without labels; the best of the eight is told by its
    published mean on labeled instances, which no user could know.

    Parameters
    ----------
    value : {"accuracy", "f1"}, default "accuracy"

    Returns
    -------
    DataFrame
        In percent: a row per variant, a column for each criterion, ``abs`` and ``hypergeo``.

    Raises
    ------
    ValueError
        If nothing is published of ``value``.
    """
    columns = {"accuracy": "acc_mean", "f1": "f1_mean"}
    if value not in columns:
        raise ValueError(f"value must be one of {[*columns]}, got {value!r}")
    rows = complexllp.published().query("metric != 'oracle'")
    best = rows.groupby(["dataset", "metric"])[columns[value]].max().unstack()
    return (100 * best.groupby(complexllp.variant).mean()).round(1).rename_axis(None)
