"""When is a method of class means better than another: bags of seven variants, and three natural groupings.

Draw 1,000 instances for bags and 2,000 new ones (german: 600 and 400), standardize all by those in bags, fit, and take
the accuracy on both. Hyper-parameters are chosen by the shares of held-out parts of the bags (five splits, weighted by
size), never by labels. ``supervised`` is logistic regression on the true labels of the instances in bags, tuned by
labels: the limit.

``how``, the bags:

- the name of a variant: forty bags by `llpbook.variants.make_bags` from adult, as many rich people as others, seven
  columns. Where the variant takes them, sizes are 25 and shares uniform on [0.2, 0.8].
- ``adult by occupation``, ``census by education``, ``german by purpose``: the column that makes the bags is taken out.
  Of adult the same columns; of census-income-balanced the numbers (age, weeks worked, capital gains and the like) and
  sex; german as it is.
"""

import warnings
from functools import lru_cache

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler

from llpbook.base import median_distance
from llpbook.baselines import BagMeanRegression, MajorityClass
from llpbook.datasets import load_bags
from llpbook.discriminant import (
    Gaussians,
    WeightedLDA,
    between_covariance,
    discriminants,
    inverse_root,
    whitening,
)
from llpbook.invcal import InvCal
from llpbook.laplacian_mean_map import AlternatingMeanMap, LaplacianMeanMap
from llpbook.mean_map import MeanMap, class_means
from llpbook.model_selection import (
    LLPGridSearchCV,
    SplitBagKFold,
    proportion_scorer,
)
from llpbook.proportions import averaging_matrix, label_proportions
from llpbook.taxonomy import VARIANTS
from llpbook.variants import make_bags

from .runner import Table, cells, outcome

PROTOCOL = "means-1"
N_BAGS, N_BAGGED, N_NEW = 40, 1000, 2000
SPLITS = 5
PENALTIES = [1.0, 10.0, 100.0, 1e3, 1e4]
SHRINKAGE = {"shrinkage": [0.0, 0.1, 0.5, 0.9]}
ADULT = [
    "age", "education-num", "capital-gain", "capital-loss", "hours-per-week",
    "sex=Male", "marital-status=Married-civ-spouse",
]  # fmt: skip
CENSUS = [
    "age", "wage_per_hour", "capital_gains", "capital_losses", "dividends",
    "num_persons_worked", "weeks_worked", "sex=Male",
]  # fmt: skip
NATURAL = {
    "adult by occupation": ("adult", "occupation", ADULT),
    "census by education": ("census-income-balanced", "education", CENSUS),
    "german by purpose": ("german", "purpose", None),
}


class UnmixedLDA(ClassifierMixin, BaseEstimator):
    """Discriminant analysis with the class means of MeanMap in the place of weighted ones: what a skeptic tries.

    Parameters
    ----------
    shrinkage : float
    """

    def __init__(self, shrinkage=0.0):
        self.shrinkage = shrinkage

    def fit(self, X, bags, proportions):
        """Unmix the class means, and take what they leave of the covariance."""
        P, S = np.asarray(proportions), averaging_matrix(bags, len(proportions))
        sizes = np.bincount(bags, minlength=len(P)).astype(float)
        prior = sizes @ P / sizes.sum()
        means = class_means(S @ X, P, sizes)
        within = np.cov(X.T, bias=True) - between_covariance(means, prior)
        root = inverse_root(within, whitening(X), shrinkage=self.shrinkage)
        self.coef_, self.intercept_ = discriminants(Gaussians(means, root, prior))
        self.classes_ = np.arange(len(prior))
        return self

    def predict(self, X):
        """The class of each instance, shape (n_instances,)."""
        return (X @ self.coef_.T + self.intercept_).argmax(axis=1)


def laplacian(unit):
    """Laplacian Mean Map and its grid: widths in units of the median distance of bag means."""
    grid = {"alpha": PENALTIES, "smoothness": [0.01, 0.1, 1.0]}
    return LaplacianMeanMap(), {**grid, "sigma": [0.1 * unit, 0.3 * unit, unit]}


# By name: (unit of distance) -> estimator and grid; ties go to the first. To add a method, add an entry.
METHODS = {
    "majority": lambda unit: (MajorityClass(), {}),
    "ridge": lambda unit: (BagMeanRegression(), {"alpha": [0.01, 0.1, 1, 10, 100]}),
    "MeanMap": lambda unit: (MeanMap(), {"alpha": PENALTIES}),
    "LMM": laplacian,
    "AMM min": lambda unit: (AlternatingMeanMap(), {"alpha": PENALTIES}),
    "AMM max": lambda unit: (AlternatingMeanMap(mode="max"), {"alpha": PENALTIES[::2]}),
    "InvCal": lambda unit: (
        InvCal(),
        {"C_p": [0.01, 0.1, 1, 10], "epsilon": [0.0, 0.1]},
    ),
    "unmixed LDA": lambda unit: (UnmixedLDA(), SHRINKAGE),
    "SWS-LDA": lambda unit: (WeightedLDA("sws"), SHRINKAGE),
    "FWS-LDA": lambda unit: (WeightedLDA("fws"), SHRINKAGE),
    "WWS-LDA": lambda unit: (WeightedLDA("wws"), SHRINKAGE),
    "balanced": lambda unit: (WeightedLDA("wws", balance=True), SHRINKAGE),
    "supervised": None,
}


@lru_cache(maxsize=2)
def table_of(name, by, columns):
    """Features, labels (0 and 1) and the bags by a column of a data set; without a column all are one bag."""
    data = load_bags(name, n_bags=1) if by is None else load_bags(name, by=by)
    X = data.X if columns is None else data.X[list(columns)]
    y = data.true_labels_for_evaluation() == data.classes[1]
    return X.to_numpy(dtype=float), y.astype(int), data.bags


def make_problem(how, seed):
    """Instances in bags and new ones.

    Parameters
    ----------
    how : str
        See the module.
    seed : int

    Returns
    -------
    X, X_new : ndarray
        Standardized by the mean and deviation of X.
    y, y_new : ndarray of 0 and 1
        Serve the proportions and the evaluation.
    bags : ndarray of int
    """
    rng, natural = np.random.RandomState(seed), how in NATURAL
    name, by, columns = NATURAL[how if natural else "adult by occupation"]
    X, y, groups = table_of(name, by, None if columns is None else tuple(columns))
    n = min(N_BAGGED, int(0.6 * len(X)))
    if natural:
        rows = rng.permutation(len(X))[: n + N_NEW]
    else:
        half = [
            rng.permutation(np.flatnonzero(y == k))[: (n + N_NEW) // 2] for k in (0, 1)
        ]
        rows = rng.permutation(np.concatenate(half))
    scaler = StandardScaler().fit(X[rows[:n]])
    Z, y = scaler.transform(X[rows]), y[rows]
    bags = groups[rows[:n]] if natural else made_bags(Z[:n], y[:n], how, rng)
    return Z[:n], Z[n:], y[:n], y[n:], np.unique(bags, return_inverse=True)[1]


def made_bags(X, y, variant, rng):
    """Forty bags of a variant, with sizes and shares where it takes them."""
    options = {"n_bags": N_BAGS, "random_state": rng}
    if variant not in ("Label collider", "Cross-bag"):
        options["sizes"] = [len(X) // N_BAGS] * N_BAGS
    if variant in ("Simple", "Intermediate", "Hard"):
        options["proportions"] = rng.uniform(0.2, 0.8, N_BAGS)
    return make_bags(X, y, variant, **options).bags


def run(cell, seed):
    """One row: bags, a method and a seed."""
    X, X_new, y, y_new, bags = make_problem(cell["how"], seed)
    if cell["method"] == "supervised":
        grid = {"C": [0.01, 0.1, 1, 10, 100]}
        model = GridSearchCV(LogisticRegression(max_iter=1000), grid).fit(X, y)
    else:
        shares = label_proportions(y, bags, classes=[0, 1])
        unit = median_distance(averaging_matrix(bags) @ X)
        estimator, grid = METHODS[cell["method"]](unit)
        model = LLPGridSearchCV(
            estimator,
            grid,
            scoring=proportion_scorer(None, error="weighted_mae", soft=False),
            cv=SplitBagKFold(SPLITS, random_state=seed),
            error_score="raise",
        )
        with warnings.catch_warnings():  # it may be: the rows say how accurate it is
            warnings.filterwarnings("ignore", ".* is no better than the majority")
            model.fit(X, bags, shares)
    return outcome(model, X, y, X_new, y_new)


TABLES = [
    Table(
        "means",
        PROTOCOL,
        cells(how=[*VARIANTS, *NATURAL], method=list(METHODS)),
        run,
        "methods of class means on bags of seven variants and of three natural groupings",
    )
]
