"""Natural bags: every method of the package on three natural groupings, and on random bags beside them.

Draw 2,000 instances (german: all 1,000). One half is in bags, the other half holds new instances. Standardize both by
the half in bags, fit, and take the accuracy on both halves. ``how``, the bags:

- ``adult by occupation``, ``adult by education``, ``german by purpose``: the column that makes the bags is taken out,
  and of adult by education the years of education, too, which repeat it. All other columns stay.
- ``adult, random``: the same columns as by occupation, forty random bags of 25.

Hyper-parameters, at most five settings per method, are chosen by two criteria, and no label enters either. Both hold
out a third of each bag, three times, and take the mean absolute error of shares, weighted by size: ``accuracy`` is of
the setting whose predicted *labels* have the right shares, ``soft`` of the setting whose mean *probabilities* have
them (of its labels, where a method has no probabilities). The methods for two bags choose their widths and penalties
themselves, and take the class prior that the shares tell. ``labels`` is logistic regression on the true labels of the
instances in bags, tuned by labels: the limit.

Four columns say what a user without labels could have seen. ``error`` and ``soft_error`` are the errors of the chosen
settings on the parts held out, to be compared with those of ``majority`` on the same draw. ``warned`` is the number of
`llpbook.LLPWarning` that the fit behind ``accuracy`` gives. ``worth`` is how many labels the bags are worth, as
`llpbook.identifiability` says.

The draws overlap on german, of which each takes all rows: there a standard error says what another division into two
halves would change, not what other loans would.
"""

import warnings
from functools import lru_cache

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler

from llpbook import (
    DSDD,
    EMLR,
    LSDD,
    SMIC,
    AlternatingMeanMap,
    AlterSVM,
    AOCKernelKMeans,
    BagBoosting,
    BagLogistic,
    BagMeanRegression,
    ClusterModelSelection,
    ConvSVM,
    CountBoosting,
    CountLogistic,
    InvCal,
    KDEDifference,
    LaplacianMeanMap,
    LLPGridSearchCV,
    LLPWarning,
    MajorityClass,
    MeanMap,
    SplitBagKFold,
    WeightedLDA,
)
from llpbook.datasets import load_bags, random_bags
from llpbook.model_selection import proportion_scorer
from llpbook.proportions import identifiability, label_proportions

from .runner import Table, cells

PROTOCOL = "natural-1"
N_DRAWN, BAG_SIZE, SPLITS = 2000, 25, 3
GROUPINGS = {
    "adult by occupation": ("adult", "occupation", []),
    "adult by education": ("adult", "education", ["education-num"]),
    "german by purpose": ("german", "purpose", []),
    "adult, random": ("adult", "occupation", []),
}
#: Instances tested on per instance trained on, for the errors over draws, which share instances. A draw of `adult`
#: tests on 1,000 of 48,842 rows, one of `german` on half of them.
RATIOS = {how: 1.0 if how.startswith("german") else 1000 / 47842 for how in GROUPINGS}
PENALTIES = [1.0, 10.0, 100.0, 1e3, 1e4]
# By name: estimator and grid; ties go to the first setting. To add a method, add an entry.
METHODS = {
    "majority": (MajorityClass(), {}),
    "ridge": (BagMeanRegression(), {"alpha": [0.01, 0.1, 1.0, 10.0, 100.0]}),
    "MeanMap": (MeanMap(), {"alpha": PENALTIES}),
    "LaplacianMeanMap": (LaplacianMeanMap(), {"alpha": PENALTIES}),
    "AlternatingMeanMap": (AlternatingMeanMap(), {"alpha": PENALTIES}),
    "WeightedLDA": (
        WeightedLDA(),
        [
            {"scheme": ["wws"], "shrinkage": [0.1, 0.5, 0.9]},
            {"scheme": ["sws"], "shrinkage": [0.1, 0.5]},
        ],
    ),
    "InvCal": (InvCal(), {"C_p": [0.01, 0.1, 1.0, 10.0, 100.0]}),
    "AlterSVM": (AlterSVM(n_init=3), {"C": [0.01, 0.1, 1.0]}),
    "ConvSVM": (ConvSVM(max_cutting_planes=10), {"C": [0.01, 0.1, 1.0]}),
    "ClusterModelSelection": (
        ClusterModelSelection(max_iter=3, population_size=10),
        {"n_clusters": [2, 3, 6, 9]},
    ),
    "AOCKernelKMeans": (AOCKernelKMeans(), {"C_p": [0.1, 1.0, 10.0, 100.0]}),
    "EMLR": (EMLR(), {"C": [1e-3, 0.01, 0.1, 1.0]}),
    "CountLogistic": (CountLogistic(), {"C": [1e-3, 0.01, 0.1, 1.0, 10.0]}),
    "CountBoosting": (CountBoosting(max_iter=50), {"C": [0.01, 0.1, 1.0]}),
    "BagLogistic": (
        BagLogistic("proportion"),
        {"C": [1e-3, 0.01, 0.1, 1.0, 10.0]},
    ),
    "BagBoosting": (
        BagBoosting("proportion", max_iter=50),
        {"C": [0.01, 0.1, 1.0]},
    ),
    "KDEDifference": (KDEDifference(class_prior="match"), {}),
    "LSDD": (LSDD(class_prior="match"), {}),
    "DSDD": (DSDD(class_prior="match", n_folds=3), {}),
    "SMIC": (SMIC(), {}),
    "labels": (LogisticRegression(max_iter=1000), {"C": [1e-3, 0.01, 0.1, 1.0, 10.0]}),
}


@lru_cache(maxsize=2)
def table_of(how):
    """Features, labels (0 and 1) and natural bags of a data set."""
    return grouped(*GROUPINGS[how])


def grouped(name, by, dropped):
    """Features but for those dropped, labels (0 and 1), and bags by a column."""
    data = load_bags(name, by=by)
    y = data.true_labels_for_evaluation() == data.classes[1]
    X = data.X.drop(columns=dropped).to_numpy(dtype=float)
    return X, y.astype(int), data.bags


def make_problem(how, seed):
    """One draw: instances in bags and new ones.

    Parameters
    ----------
    how : str
        See the module.
    seed : int

    Returns
    -------
    X, X_new : ndarray, shape (n, n_features) and (n_new, n_features)
        Standardized by the mean and deviation of X.
    y, y_new : ndarray of 0 and 1
        Serve the proportions and the evaluation.
    bags : ndarray of int, shape (n,)
    """
    rng = np.random.RandomState(seed)
    X, y, groups = table_of(how)
    rows = rng.permutation(len(X))[:N_DRAWN]
    n = len(rows) // 2
    Z = StandardScaler().fit(X[rows[:n]]).transform(X[rows])
    bags = groups[rows[:n]]
    if how == "adult, random":
        bags = random_bags(n, bag_size=BAG_SIZE, random_state=rng)
    y, bags = y[rows], np.unique(bags, return_inverse=True)[1]
    return Z[:n], Z[n:], y[:n], y[n:], bags


def scorers(shares):
    """The two criteria, by name; larger is better.

    Parameters
    ----------
    shares : ndarray, shape (n_bags, 2)

    Returns
    -------
    dict of str to callable
        ``scorer(estimator, X, bags)``.
    """
    return {
        "labels": proportion_scorer(shares, error="weighted_mae", soft=False),
        "probabilities": proportion_scorer(shares, error="weighted_mae"),
    }


def search(estimator, grid, X, bags, shares, seed):
    """The models that the two criteria choose, with their settings and errors on held-out parts; no label is seen.

    Parameters
    ----------
    estimator : LLPClassifier
    grid : dict or list of dict
    X : ndarray, shape (n, n_features)
    bags : ndarray of int, shape (n,)
    shares : ndarray, shape (n_bags, 2)
    seed : int

    Returns
    -------
    list of (estimator, dict, float)
        By labels, and by probabilities.
    warned : int
        How often the fit of the first one warned.
    """
    if "random_state" in estimator.get_params():
        estimator = clone(estimator).set_params(random_state=seed)
    criteria, cv = scorers(shares), SplitBagKFold(SPLITS, random_state=seed)
    found = LLPGridSearchCV(estimator, grid, scoring=criteria, refit=False, cv=cv)
    results = found.set_params(error_score="raise").fit(X, bags, shares).cv_results_
    chosen = []
    for name in criteria:
        scores = results[f"mean_test_{name}"]
        setting = results["params"][scores.argmax()]
        if not chosen or setting != chosen[0][1]:
            with warnings.catch_warnings(record=True) as heard:
                warnings.simplefilter("always")
                model = clone(estimator).set_params(**setting).fit(X, bags, shares)
        chosen.append((model, setting, -scores.max()))
        if len(chosen) == 1:
            warned = sum(issubclass(w.category, LLPWarning) for w in heard)
    return chosen, warned


def limit(estimator, grid, X, y, bags, shares, seed):
    """The same of a classifier that sees the labels y: it is chosen once, and scored by both criteria."""
    found = GridSearchCV(estimator, grid).fit(X, y)
    errors = {name: [] for name in scorers(shares)}
    for train, test in SplitBagKFold(SPLITS, random_state=seed).split(X, None, bags):
        model = clone(found.best_estimator_).fit(X[train], y[train])
        for name, scorer in scorers(shares).items():
            errors[name].append(-scorer(model, X[test], bags[test]))
    return [
        (found.best_estimator_, found.best_params_, np.mean(some))
        for some in errors.values()
    ], 0


def run(cell, seed):
    """One row: bags, a method and a seed."""
    return judge(cell["method"], make_problem(cell["how"], seed), seed)


def judge(method, problem, seed):
    """Tune and fit a method on a problem, and score it.

    Parameters
    ----------
    method : str
        A key of ``METHODS``.
    problem : tuple
        As `make_problem` returns it.
    seed : int

    Returns
    -------
    dict
        Columns of a row, see the module.
    """
    X, X_new, y, y_new, bags = problem
    estimator, grid = METHODS[method]
    shares = label_proportions(y, bags, classes=[0, 1])
    find = limit if method == "labels" else search
    seen = (y, bags, shares) if method == "labels" else (bags, shares)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        chosen, warned = find(estimator, grid, X, *seen, seed)
        (hard, hard_setting, error), (soft, soft_setting, soft_error) = chosen
        found = {
            "accuracy": np.mean(hard.predict(X_new) == y_new),
            "soft": np.mean(soft.predict(X_new) == y_new),
            "in_bags": np.mean(hard.predict(X) == y),
            "error": error,
            "soft_error": soft_error,
            "worth": identifiability(bags, shares).worth_in_labels[1],
            "warned": warned,
        }
    found = {key: round(float(value), 6) for key, value in found.items()}
    return {**found, "chosen": _text(hard_setting), "soft_chosen": _text(soft_setting)}


def _text(setting):
    return " ".join(f"{key}={value}" for key, value in setting.items())


TABLES = [
    Table(
        "natural",
        PROTOCOL,
        cells(how=list(GROUPINGS), method=list(METHODS)),
        run,
        "all methods on three natural groupings and on random bags: the table that ends their chapters",
    )
]
