"""How well scores of held-out bags rank models: rank correlation with accuracy, by variant, bag size and split.

Draw 500 instances for bags and 4,000 new ones; make bags of a variant; fit a method in seven settings of its penalty to
all bags, and take the accuracy of each on the new instances. Then score the same settings on splits of the bags alone,
and compare: ``rho`` is Spearman's rank correlation of score and accuracy over the settings (NaN where all are equal),
``chosen`` the accuracy of the setting with the best score. ``best`` is the highest of the seven accuracies, which only
labels can find; ``labels`` the accuracy on one half of the new instances of the setting that is best on the other half.

What is drawn (``data``):

- ``tilted``: two Gaussian classes in ten features with standard deviations from 2 to 0.2, mixed by a rotation. The
  classes are 0.8 standard deviations apart in each of the three widest directions, and 0.2 in the others.
- ``adult``: rows of that data set, standardized, 104 columns.

Bags have one size. Naive ones are dealt at random; the others have shares uniform on [0.2, 0.8] times twice the prior;
intermediate and hard ones follow ten k-means clusters.
"""

from functools import cache

import numpy as np
import pandas as pd
from scipy.stats import spearmanr
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.preprocessing import StandardScaler

from llpbook.baselines import BagMeanRegression
from llpbook.datasets import binary_labels, load
from llpbook.mean_map import MeanMap
from llpbook.model_selection import (
    FullBagKFold,
    LLPGridSearchCV,
    SplitBagBootstrap,
    SplitBagKFold,
    SplitBagShuffle,
    proportion_scorer,
)
from llpbook.variants import make_bags

from .runner import Table, cells

PROTOCOL = "model_selection-1"
N_BAGGED, N_NEW = 500, 4000
ERRORS = ["mae", "mse"]
VARIANTS = ("naive", "simple", "intermediate", "hard")
PENALTIES = [float(f"{v:.3g}") for v in np.logspace(-1, 5, 7)]
METHODS = {
    "MeanMap": (MeanMap(), "alpha"),
    "BagMeanRegression": (BagMeanRegression(), "alpha"),
}


def splitter(name, proportions):
    """The splitter of a cell: five splits, drawn with a fixed seed."""
    return {
        "whole bags": FullBagKFold(5, proportions=proportions, random_state=0),
        "k-fold": SplitBagKFold(5, random_state=0),
        "shuffle": SplitBagShuffle(5, random_state=0),
        "bootstrap": SplitBagBootstrap(5, random_state=0),
        "out of bag": SplitBagBootstrap(5, out_of_bag=True, random_state=0),
    }[name]


STRATEGIES = ("whole bags", "k-fold", "shuffle", "bootstrap", "out of bag")


def draw_tilted(n, rng):
    """Instances whose classes differ along the directions of large variance, as the module says.

    Parameters
    ----------
    n : int
    rng : RandomState

    Returns
    -------
    X : ndarray, shape (n, 10)
    y : ndarray of 0 and 1, shape (n,)
    """
    y, scale = rng.randint(0, 2, n), np.geomspace(2, 0.2, 10)
    apart = np.where(np.arange(10) < 3, 0.8, 0.2)
    rotation = np.linalg.qr(np.random.RandomState(0).normal(size=(10, 10)))[0]
    Z = rng.normal(size=(n, 10)) + (y[:, None] - 0.5) * apart
    return (Z * scale) @ rotation, y


@cache
def adult():
    """Features and labels of the data set, read once a process."""
    X, y = load("adult")
    return X.to_numpy(), binary_labels(y, ">50K")


def draw_problem(cell, seed):
    """Instances with labels, and bags of the first 500 of them.

    Parameters
    ----------
    cell : dict
    seed : int

    Returns
    -------
    X : ndarray, shape (4500, n_features)
    y : ndarray of 0 and 1, shape (4500,)
    made : GeneratedBags
    """
    rng, n = np.random.RandomState(seed), N_BAGGED + N_NEW
    if cell["data"] == "tilted":
        X, y = draw_tilted(n, rng)
    else:
        X, y = adult()
        rows = rng.choice(len(X), n, replace=False)
        X, y = StandardScaler().fit_transform(X[rows]), y[rows]
    n_bags = N_BAGGED // cell["bag_size"]
    options = {"sizes": [cell["bag_size"]] * n_bags, "random_state": rng}
    if cell["variant"] != "naive":
        options["proportions"] = rng.uniform(0.2, 0.8, n_bags) * 2 * min(y.mean(), 0.5)
    if cell["variant"] in ("intermediate", "hard"):
        kinds = KMeans(10, n_init=1, random_state=rng)
        options["clusters"] = kinds.fit_predict(X[:N_BAGGED])
    return X, y, make_bags(X[:N_BAGGED], y[:N_BAGGED], cell["variant"], **options)


def predict_new(method, X, made):
    """What a method that has learned from all bags predicts for the new instances, by penalty.

    Parameters
    ----------
    method : str
        One of `METHODS`.
    X : ndarray, shape (4500, n_features)
    made : GeneratedBags
        Of the first 500 of them, see `draw_problem`.

    Returns
    -------
    ndarray of 0 and 1, shape (7, 4000)
    """
    estimator, name = METHODS[method]
    models = [clone(estimator).set_params(**{name: value}) for value in PENALTIES]
    return np.array([
        model.fit(X[:N_BAGGED], *made).predict(X[N_BAGGED:]) for model in models
    ])  # fmt: skip


def run(cell, seed):
    """One row: how the scores of one strategy rank seven settings of a method."""
    X, y, made = draw_problem(cell, seed)
    estimator, name = METHODS[cell["method"]]
    right = predict_new(cell["method"], X, made) == y[N_BAGGED:]
    search = LLPGridSearchCV(
        estimator,
        {name: PENALTIES},
        scoring={e: proportion_scorer(None, error=e, soft=False) for e in ERRORS},
        refit=False,
        cv=splitter(cell["strategy"], made.proportions),
        error_score="raise",
    ).fit(X[:N_BAGGED], *made)
    accuracy, row = right.mean(axis=1), {}
    for error in ERRORS:
        score = search.cv_results_[f"mean_test_{error}"]
        varies = np.ptp(score) > 0 and np.ptp(accuracy) > 0
        rho = float(spearmanr(score, accuracy)[0]) if varies else np.nan
        row[f"rho {error}"] = round(rho, 4)
        row[f"chosen {error}"] = float(accuracy[np.argmax(score)])
    by_labels = np.argmax(right[:, ::2].mean(axis=1))
    row["labels"] = float(right[by_labels, 1::2].mean())
    return {
        **row,
        "best": float(accuracy.max()),
        "mean": round(float(accuracy.mean()), 6),
    }


def tidy(rows):
    """Rows of the table, one score each: the columns ``error``, ``rho``, ``chosen`` instead of one for each error.

    Parameters
    ----------
    rows : DataFrame
        As `studies.load` gives them.

    Returns
    -------
    DataFrame
    """
    parts = []
    for error in ERRORS:
        own = {f"rho {error}": "rho", f"chosen {error}": "chosen"}
        others = [c for e in ERRORS if e != error for c in (f"rho {e}", f"chosen {e}")]
        parts.append(rows.drop(columns=others).rename(columns=own).assign(error=error))
    return pd.concat(parts, ignore_index=True)


def grid(data, strategies):
    """Cells of the table."""
    return cells(
        data=[data],
        variant=VARIANTS,
        bag_size=[10, 50],
        method=list(METHODS),
        strategy=list(strategies),
    )


TABLES = [
    Table(
        "model_selection_ranks",
        PROTOCOL,
        grid("tilted", STRATEGIES) + grid("adult", STRATEGIES[:2]),
        run,
        "rank correlation of scores of held-out bags with accuracy, by variant, bag size and split",
        value="chosen mae",
    )
]
