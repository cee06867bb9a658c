"""Where the likelihood of the counts gains, and where not: six data sets, four variants, tuned by held-out bags.

Draw as many instances of either class, 2,000 for bags of 25 and 2,000 new ones (where a set is smaller, six tenths of
it for bags), standardize all by those in bags, fit, and take the accuracy on both. Hyper-parameters are chosen by the
likelihood of the counts of whole bags that are held out (three folds), never by labels. ``linear, labels`` and
``trees, labels`` are logistic regression and boosted trees on the true labels of the instances in bags, tuned by
labels: the limits.

``variant`` makes the bags, `llpbook.variants.make_bags`: 80 of size 25 (fewer where the set is smaller), with shares
uniform on [0.2, 0.8] where the variant takes them. ``ece`` is the expected calibration error on new instances: ten bins
of equal width, the mean of |share of positives - mean probability|, weighted by their sizes.

Of twenty bags: 1,000 instances of twenty features in random bags of 50, and 4,000 new ones. `gap` is scikit-learn's
`make_classification`, each class two clumps, one label in a hundred wrong; in `slope` the features are normal and the
log-odds :math:`2 x_1 + x_2`: nothing but the labels tells the classes apart. Five folds of whole bags choose, for the
margin methods, which have no likelihood, by the error of the shares; ``default`` is the same without a choice.
"""

from functools import lru_cache

import numpy as np
from scipy.special import expit
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler

from llpbook.alter_svm import AlterSVM
from llpbook.conv_svm import ConvSVM
from llpbook.count_likelihood import CountBoosting, CountLogistic
from llpbook.datasets import load
from llpbook.em import EMLR
from llpbook.invcal import InvCal
from llpbook.mean_map import MeanMap
from llpbook.model_selection import FullBagKFold, LLPGridSearchCV, proportion_scorer
from llpbook.proportions import label_proportions
from llpbook.variants import make_bags

from .means import ADULT, CENSUS
from .runner import Table, cells, outcome

PROTOCOL = "count-likelihood-1"
N_BAGGED, N_NEW, BAG_SIZE = 2000, 2000, 25
FOLDS = 3
BINS = 10
VARIANTS = ["Naive", "Simple", "Intermediate", "Hard"]
N_FEW, N_FEW_NEW, FEW_SIZE, FEW_FOLDS = 1000, 4000, 50, 5
PENALTIES = [0.001, 0.01, 0.1, 1.0, 10.0]
# By name: classes and columns, None for all.
DATASETS = {
    "adult": (None, ADULT),
    "banana": (None, None),
    "census-income-balanced": (None, CENSUS),
    "default-credit-card": (None, None),
    "image": (None, None),
    "nursery": (["priority", "spec_prior"], None),
}


def trees(n, rounds):
    """Boosted trees of at most fifteen leaves, each with at least n / 50 instances."""
    return HistGradientBoostingClassifier(
        max_iter=rounds,
        max_leaf_nodes=15,
        min_samples_leaf=max(20, n // 50),
        early_stopping=False,
    )


def penalties(n):
    """MeanMap's penalty in the words of the others."""
    return {"alpha": [4 / C for C in PENALTIES]}


# By name: number of instances in bags -> estimator and grid; ties go to the first. To add a method, add an entry.
METHODS = {
    "MeanMap": lambda n: (MeanMap(), penalties(n)),
    "EM": lambda n: (EMLR(), {"C": PENALTIES}),
    "EM, trees": lambda n: (
        EMLR(max_iter=30),
        {"estimator": [trees(n, 10), trees(n, 40)]},
    ),
    "counts": lambda n: (CountLogistic(), {"C": PENALTIES}),
    "counts, trees": lambda n: (
        CountBoosting(),
        {"C": [0.01, 1.0], "learning_rate": [0.5, 1.5]},
    ),
    "linear, labels": lambda n: (LogisticRegression(max_iter=1000), {"C": PENALTIES}),
    "trees, labels": lambda n: (trees(n, 100), {"max_iter": [10, 30, 100]}),
}
MARGINS = {
    "InvCal": lambda n: (InvCal(), {"C_p": PENALTIES}),
    "alter-∝SVM": lambda n: (AlterSVM(random_state=0), {"C": PENALTIES}),
    "conv-∝SVM": lambda n: (ConvSVM(), {"C": PENALTIES}),
}
#: Margins are chosen by the shares of their labels, all others by the likelihood of the counts.
OF_LABELS = proportion_scorer(None, "weighted_mae", soft=False)
FEW = ["MeanMap", "EM", "counts", "counts, trees", *MARGINS, "linear, labels"]


@lru_cache(maxsize=2)
def table_of(name):
    """Features and labels, 0 and 1."""
    classes, columns = DATASETS[name]
    X, y = load(name, classes=classes)
    X = X if columns is None else X[columns]
    return X.to_numpy(dtype=float), np.unique(y, return_inverse=True)[1]


def make_problem(name, variant, seed):
    """Instances in bags and new ones.

    Parameters
    ----------
    name, variant : str
    seed : int

    Returns
    -------
    X, X_new : ndarray
        Standardized by the mean and deviation of X.
    y, y_new : ndarray of 0 and 1
        Serve the proportions and the evaluation.
    bags : ndarray of int
    """
    rng = np.random.RandomState(seed)
    X, y = table_of(name)
    most = 2 * int(np.bincount(y).min())
    n = min(N_BAGGED, int(0.6 * most) // BAG_SIZE * BAG_SIZE)
    half = min(most, n + N_NEW) // 2
    rows = [rng.permutation(np.flatnonzero(y == k))[:half] for k in (0, 1)]
    rows = rng.permutation(np.concatenate(rows))
    Z, y = StandardScaler().fit(X[rows[:n]]).transform(X[rows]), y[rows]
    options = {"sizes": [BAG_SIZE] * (n // BAG_SIZE), "random_state": rng}
    if variant != "Naive":
        options["proportions"] = rng.uniform(0.2, 0.8, n // BAG_SIZE)
    bags = make_bags(Z[:n], y[:n], variant, **options).bags
    return Z[:n], Z[n:], y[:n], y[n:], np.unique(bags, return_inverse=True)[1]


def calibration_error(probabilities, labels):
    """Expected calibration error.

    Parameters
    ----------
    probabilities : ndarray, shape (n,)
        Of class 1.
    labels : ndarray of 0 and 1, shape (n,)

    Returns
    -------
    float
    """
    cell = np.minimum((BINS * probabilities).astype(int), BINS - 1)
    gaps = np.bincount(cell, labels - probabilities, BINS)
    return float(np.abs(gaps).sum() / len(labels))


def fit(method, X, y, bags, seed, folds=FOLDS, tune=True):
    """A method with what held-out bags choose; the limits have the labels.

    Parameters
    ----------
    method : str
    X, y, bags : ndarray
    seed : int
        Of the folds.
    folds : int
    tune : bool
        Choose; else the defaults.

    Returns
    -------
    estimator
        Fitted, with ``best_params_``.
    """
    estimator, grid = {**METHODS, **MARGINS}[method](len(X))
    grid = grid if tune else {}
    if method.endswith("labels"):
        search = GridSearchCV(estimator, grid, cv=folds, scoring="neg_log_loss")
        return search.fit(X, y)
    shares = label_proportions(y, bags, classes=[0, 1])
    return LLPGridSearchCV(
        estimator,
        grid,
        scoring=OF_LABELS if method in MARGINS else "log_likelihood",
        cv=FullBagKFold(folds, proportions=shares, random_state=seed),
        error_score="raise",
    ).fit(X, bags, shares)


def run(cell, seed):
    """One row: bags, a method and a seed."""
    X, X_new, y, y_new, bags = make_problem(cell["dataset"], cell["variant"], seed)
    model = fit(cell["method"], X, y, bags, seed)
    ece = calibration_error(model.predict_proba(X_new)[:, 1], y_new)
    return outcome(model, X, y, X_new, y_new, ece=ece)


def few_bags(problem, seed):
    """Twenty bags and new instances.

    Parameters
    ----------
    problem : {"gap", "slope"}
    seed : int

    Returns
    -------
    X, X_new, y, y_new, bags
        As `make_problem`.
    """
    rng, n = np.random.default_rng(seed), N_FEW + N_FEW_NEW
    bags = rng.permutation(N_FEW) // FEW_SIZE
    if problem == "gap":
        X, y = make_classification(n, n_features=20, random_state=seed)
    else:
        X = rng.normal(size=(n, 20))
        y = (rng.random(n) < expit(2 * X[:, 0] + X[:, 1])).astype(int)
    return X[:N_FEW], X[N_FEW:], y[:N_FEW], y[N_FEW:], bags


def run_few(cell, seed):
    """One row: twenty bags, a method, default or tuned, and a seed."""
    X, X_new, y, y_new, bags = few_bags(cell["problem"], seed)
    tune = cell["choice"] == "tuned"
    model = fit(cell["method"], X, y, bags, seed, FEW_FOLDS, tune)
    return outcome(model, X, y, X_new, y_new)


TABLES = [
    Table(
        "count_likelihood",
        PROTOCOL,
        cells(dataset=list(DATASETS), variant=VARIANTS, method=list(METHODS)),
        run,
        "learners from counts beside MeanMap, EM and the true labels, on four variants of six data sets",
    ),
    Table(
        "count_likelihood_few",
        PROTOCOL,
        cells(problem=["gap", "slope"], method=FEW, choice=["default", "tuned"]),
        run_few,
        "learners from counts beside margin methods on twenty random bags of 50",
    ),
]
