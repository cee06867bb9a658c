"""Which score chooses the best model, among methods and among settings of one: points of accuracy lost, by score.

Draw up to 800 instances for bags and up to 2,000 new ones, standardize all by those in bags, and fit 18 candidates:
nine methods, two settings each. The accuracy of a candidate is that on the new instances, after a fit to all bags.
Each score sees the bags alone, in five splits of parts of bags or of whole bags, and chooses the candidate whose
score is highest. ``lost X`` is how much less accurate the choice of score X is than the best candidate; ``within X``
is the same for a choice among the settings of one method, averaged over the methods; ``over X`` is the score of the
choice minus that of the majority class under the same splits, ``error X`` the standard error of this difference over
the splits (NaN for one split). Each method, in its best setting by score X, is compared with the majority class:
``alarms X`` is how often it scores no higher where it is less accurate, ``false X`` how often where it is not (NaN
where there is no such method). Accuracies: ``best`` of the best candidate, ``mean`` of all candidates on average,
``majority`` of the majority class, ``labels`` of logistic regression on the true labels.

The bags (``task``) are natural, by a column that is taken out of the features, or random, of one size. Of adult,
census-income-balanced and default-credit-card the instances are drawn anew for each seed; the other data sets are split
into instances for bags and new ones, two to one.

``choice_tuning``: four or five settings of one method, among them penalties that are far too strong, on random bags of
eight and of 32 instances from two thirds of a data set, by five splits of parts of bags: the accuracy, on the other
third, of the setting that each score chooses.

Scores: those of `llpbook.model_selection`; "pooled" in front: whole bags are scored once by predictions out of fold;
"labels" behind: shares are those of predicted labels, not mean probabilities, even where a model has these.
"""

import warnings

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from llpbook.alter_svm import AlterSVM
from llpbook.baselines import BagMeanRegression, MajorityClass
from llpbook.count_likelihood import CountBoosting, CountLogistic
from llpbook.datasets import random_bags
from llpbook.discriminant import WeightedLDA
from llpbook.em import EMLR
from llpbook.invcal import InvCal
from llpbook.laplacian_mean_map import AlternatingMeanMap
from llpbook.mean_map import MeanMap
from llpbook.model_selection import (
    FullBagKFold,
    LLPGridSearchCV,
    OutOfFold,
    SplitBagKFold,
    proportion_scorer,
)
from llpbook.proportions import label_proportions

from .people import CENSUS, table_of
from .runner import Table, cells

PROTOCOL = "choice-2"
N_BAGGED, N_NEW, SPLITS = 800, 2000, 5
# By name: data set, the column that makes the bags or the size of random ones, and the columns that are kept.
NATURAL = {
    f"{name} by {by}": (name, by, columns)
    for name, columns, groupings in (
        ("adult", None, ("occupation", "education", "native-country", "relationship", "workclass", "age")),
        ("german", None, ("purpose", "employment", "age")),
        ("census-income-balanced", CENSUS, ("education", "major_industry", "marital_status")),
        ("default-credit-card", None, ("AGE", "EDUCATION")),
        ("mammographic", None, ("margin",)),
        ("credit-a", None, ("A6",)),
        ("breast-cancer", None, ("tumor-size",)),
    )
    for by in groupings
}  # fmt: skip
RANDOM = {
    f"{name}, bags of {size}": (name, size, None)
    for name, size in (
        ("adult", 10), ("adult", 40), ("german", 10), ("heart", 8), ("diabetes", 16), ("ionosphere", 16),
    )
}  # fmt: skip
TASKS = {**NATURAL, **RANDOM}
METHODS = {
    "ridge": (BagMeanRegression(), {"alpha": [0.1, 10]}),
    "MeanMap": (MeanMap(), {"alpha": [10, 1000]}),
    "AMM": (AlternatingMeanMap(), {"alpha": [10, 1000]}),
    "InvCal": (InvCal(), {"C_p": [0.1, 1]}),
    "alter-SVM": (AlterSVM(n_init=3, random_state=0), {"C": [0.01, 0.1]}),
    "WWS-LDA": (WeightedLDA("wws"), {"shrinkage": [0.1, 0.9]}),
    "EM": (EMLR(), {"C": [0.01, 1]}),
    "counts": (CountLogistic(), {"C": [0.01, 0.1]}),
    "count trees": (CountBoosting(), {"max_iter": [5, 20]}),
}
CANDIDATES = [
    (method, clone(estimator).set_params(**{name: value}))
    for method, (estimator, grid) in METHODS.items()
    for name, values in grid.items()
    for value in values
]
ALONE = {
    "mae labels": ("mae", False),
    "weighted_mae labels": ("weighted_mae", False),
    "mae": ("mae", None),
    "weighted_mae": ("weighted_mae", None),
    "mse": ("mse", None),
    "weighted_mse": ("weighted_mse", None),
    "unbiased": ("unbiased", None),
    "regression": ("regression", None),
    "log_likelihood": ("log_likelihood", None),
}
SCORES = {**ALONE, **{f"pooled {name}": how for name, how in ALONE.items()}}


def make_problem(task, seed):
    """Instances in bags and new ones.

    Parameters
    ----------
    task : str
    seed : int

    Returns
    -------
    X, X_new : ndarray
        Standardized by the mean and deviation of X.
    y, y_new : ndarray of 0 and 1
        Serve the proportions and the evaluation.
    bags : ndarray of int
    """
    name, by, columns = TASKS[task]
    natural, columns = isinstance(by, str), None if columns is None else tuple(columns)
    X, y, groups = table_of(name, by if natural else None, columns)
    rng, n = np.random.RandomState(seed), min(N_BAGGED, 2 * len(X) // 3)
    rows = rng.permutation(len(X))[: n + N_NEW]
    scaler = StandardScaler().fit(X[rows[:n]])
    Z, y = scaler.transform(X[rows]), y[rows]
    bags = (
        groups[rows[:n]]
        if natural
        else random_bags(y[:n], bag_size=by, random_state=rng)
    )
    return Z[:n], Z[n:], y[:n], y[n:], np.unique(bags, return_inverse=True)[1]


def score_all(model, X, bags, shares, splits):
    """Each score of a model, one value per split: a dict of arrays."""
    sizes, found = np.bincount(bags), {name: [] for name in SCORES}
    fitted = OutOfFold(model, splits).fit(X, bags, proportions=shares)
    for name, (error, soft) in SCORES.items():
        given = sizes if error in ("log_likelihood", "unbiased") else None
        scorer = proportion_scorer(shares, error=error, bag_sizes=given, soft=soft)
        if name.startswith("pooled"):
            found[name] = [scorer(fitted, X, bags)]
        else:
            parts = zip(fitted.models_, splits, strict=True)
            found[name] = [scorer(m, X[test], bags[test]) for m, (_, test) in parts]
    return {name: np.array(values) for name, values in found.items()}


def run(cell, seed):
    """One row: what each score chooses for one draw of bags."""
    X, X_new, y, y_new, bags = make_problem(cell["task"], seed)
    shares, n_splits = label_proportions(y, bags), min(SPLITS, bags.max() + 1)
    cv = SplitBagKFold(n_splits, random_state=seed)
    if cell["held out"] == "whole bags":
        cv = FullBagKFold(n_splits, proportions=shares, random_state=seed)
    splits = list(cv.split(X, groups=bags))
    with warnings.catch_warnings(action="ignore"):
        models = [clone(m).fit(X, bags, shares) for _, m in CANDIDATES]
        scored = [score_all(m, X, bags, shares, splits) for _, m in CANDIDATES]
        floor = score_all(MajorityClass(), X, bags, shares, splits)
    right = np.array([np.mean(m.predict(X_new) == y_new) for m in models])
    limit = LogisticRegression(C=0.1, max_iter=1000).fit(X, y)
    row = {
        "best": right.max(),
        "mean": right.mean(),
        "majority": np.mean(y_new == (y.mean() > 0.5)),
        "labels": np.mean(limit.predict(X_new) == y_new),
    }
    names = np.array([method for method, _ in CANDIDATES])
    for name in SCORES:
        values = np.array([scores[name] for scores in scored])
        means = values.mean(axis=1)
        chosen, within, worse, warned = np.argmax(means), [], [], []
        for method in METHODS:
            own = np.flatnonzero(names == method)
            best = own[np.argmax(means[own])]
            within.append(right[own].max() - right[best])
            worse.append(right[best] < row["majority"])
            warned.append(means[best] <= floor[name].mean())
        worse, warned = np.array(worse), np.array(warned)
        gain = values[chosen] - floor[name]
        row[f"lost {name}"] = right.max() - right[chosen]
        row[f"within {name}"] = np.mean(within)
        row[f"alarms {name}"] = warned[worse].mean() if worse.any() else np.nan
        row[f"false {name}"] = warned[~worse].mean() if not worse.all() else np.nan
        row[f"over {name}"] = gain.mean()
        several = len(gain) > 1
        row[f"error {name}"] = (
            gain.std(ddof=1) / len(gain) ** 0.5 if several else np.nan
        )
    return {key: round(float(value), 6) for key, value in row.items()}


PENALTIES = {"C": [0.001, 0.01, 0.1, 1]}
TUNED = {
    "MeanMap": (MeanMap(), {"alpha": [1, 10, 100, 1000, 10_000]}),
    "InvCal": (InvCal(), {"C_p": [0.01, 0.1, 1, 10]}),
    "EM": (EMLR(), PENALTIES),
    "counts": (CountLogistic(), PENALTIES),
}
BY = {
    "mae labels": proportion_scorer(None, soft=False),
    **{
        name: name.replace(" ", "_")
        for name in (
            "regression", "mae", "mse", "log_likelihood", "pooled mae", "pooled mse",
            "pooled log_likelihood",
        )
    },
}  # fmt: skip


def tune_one(cell, seed):
    """One row: the accuracy of what each score chooses among the settings of one method."""
    X, y, _ = table_of(cell["dataset"], None, None)
    rows, n = np.random.RandomState(seed).permutation(len(X)), 2 * len(X) // 3
    X, y = StandardScaler().fit(X[rows[:n]]).transform(X[rows]), y[rows]
    bags = random_bags(
        y[:n], bag_size=cell["bag_size"], random_state=np.random.RandomState(seed)
    )
    shares, row = label_proportions(y[:n], bags), {}
    estimator, grid = TUNED[cell["method"]]
    with warnings.catch_warnings(action="ignore"):
        for name, scoring in BY.items():
            search = LLPGridSearchCV(estimator, grid, scoring=scoring)
            search.fit(X[:n], bags, shares)
            row[name] = round(np.mean(search.predict(X[n:]) == y[n:]), 6)
    return row


TABLES = [
    Table(
        "choice",
        PROTOCOL,
        cells(task=list(TASKS), **{"held out": ["parts of bags", "whole bags"]}),
        run,
        "points of accuracy lost by each score that chooses among nine methods and their settings",
        value="lost log_likelihood",
    ),
    Table(
        "choice_tuning",
        PROTOCOL,
        cells(
            dataset=["heart", "diabetes", "german"],
            bag_size=[8, 32],
            method=list(TUNED),
        ),
        tune_one,
        "accuracy of the setting of one method that each score chooses, in random bags",
        value="pooled log_likelihood",
    ),
]
