r"""EM, MeanMap and learners from counts, each tuned by two criteria that belong to none of them.

Draw as many instances of either class, 2,000 for bags of 25 and 2,000 new ones (where a set is smaller, six tenths of
it for bags), and standardize all by those in bags. ``variant`` makes the bags, `llpbook.variants.make_bags`: 80 of size
25 (fewer where the set is smaller), with shares uniform on [0.2, 0.8] where the variant takes them. ``ece`` is the
expected calibration error on new instances: ten bins of equal width, the mean of |share of positives - mean
probability|, weighted by their sizes. Every method has the same six penalties. Three folds of whole
bags give each instance a probability by a fit that has not seen its bag; the penalty is chosen by

- the error of the shares: the mean over instances of :math:`|\bar s_k - p_k|`, where :math:`\bar s_k` is the mean
  probability of bag k;
- the unbiased error (Busa-Fekete et al. 2023): of an instance that is predicted as class 0, the weight
  :math:`k (a - p) + p`, else :math:`k (p - a) + 1 - p`, with the size k and the share a of its bag and the class prior
  p; its mean over random bags is the share of wrong labels.

``untuned`` is :math:`C = 1`. Two rivals stand beside the methods of the book: ``normal counts``, whose likelihood takes
the count of a bag as normal with the mean and the variance of independent labels, and ``shares``, the cross-entropy of
the share and the mean probability of each bag (the proportion loss of networks). Both start at MeanMap, as the counts
do.
"""

from functools import lru_cache

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from llpbook import EMLR, BagLogistic, BagMeanRegression, CountLogistic, MeanMap
from llpbook.base import NotIdentifiableError
from llpbook.comparison import paired_differences
from llpbook.datasets import load as read
from llpbook.model_selection import FullBagKFold
from llpbook.proportions import label_proportions
from llpbook.variants import make_bags

from .people import ADULT, CENSUS
from .runner import Table, cells, load

PROTOCOL = "counts-fair-2"
N_BAGGED, N_NEW, BAG_SIZE = 2000, 2000, 25
BINS = 10
VARIANTS = ["Naive", "Simple", "Intermediate", "Hard"]
# By name: classes and columns, None for all.
DATASETS = {
    "adult": (None, ADULT),
    "banana": (None, None),
    "census-income-balanced": (None, CENSUS),
    "default-credit-card": (None, None),
    "image": (None, None),
    "nursery": (["priority", "spec_prior"], None),
}
FOLDS = 3
PENALTIES = [0.001, 0.01, 0.1, 1.0, 10.0, 100.0]
#: The columns of accuracy, and what chose the penalty.
CHOICES = {"by_shares": "shares", "by_unbiased": "unbiased", "untuned": "C = 1"}


@lru_cache(maxsize=2)
def table_of(name):
    """Features and labels, 0 and 1."""
    classes, columns = DATASETS[name]
    X, y = read(name, classes=classes)
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


class Ridge(BagMeanRegression):
    """The ridge on bag means, whose share counts as a probability."""

    def _probabilities(self, X):
        s = np.clip((self._scores(X) + 1) / 2, 0, 1)
        return np.column_stack([1 - s, s])


# By name: from C to an estimator.
METHODS = {
    "ridge on bag means": lambda C: Ridge(alpha=1 / C),
    "MeanMap": lambda C: MeanMap(alpha=4 / C),
    "EM, majority": lambda C: EMLR(C),
    "EM, MeanMap": lambda C: EMLR(C, init="mean_map"),
    "soft EM": lambda C: EMLR(C, init="mean_map", soft=True, tol=1e-3, max_iter=100),
    "counts": lambda C: CountLogistic(C),
    "normal counts": lambda C: BagLogistic("normal", C),
    "shares": lambda C: BagLogistic("proportion", C),
    "linear, labels": None,
}


def unbiased_error(s, bags, shares):
    """The unbiased estimate of the share of wrong labels, for bags drawn from one population.

    Parameters
    ----------
    s : ndarray, shape (n_instances,)
        Probabilities of the positive class.
    bags : ndarray of int, shape (n_instances,)
    shares : ndarray, shape (n_bags,)
        Of the positive class.

    Returns
    -------
    float
    """
    k, a = np.bincount(bags)[bags], shares[bags]
    p = a.mean()
    weight = np.where(s > 0.5, k * (p - a) + 1 - p, k * (a - p) + p)
    return float(weight.mean())


def share_error(s, bags, shares):
    """Mean over instances of the error of the mean probability of their bag.

    Parameters
    ----------
    s, bags, shares
        As for `unbiased_error`.

    Returns
    -------
    float
    """
    sizes = np.bincount(bags)
    mean = np.bincount(bags, s) / sizes
    return float(np.average(np.abs(mean - shares), weights=sizes))


def out_of_fold(make, C, X, bags, shares, seed):
    """Probabilities by fits that have not seen the bag of an instance; NaN where no fit is possible."""
    s = np.full(len(bags), np.nan)
    splits = FullBagKFold(FOLDS, proportions=shares, random_state=seed)
    for train, test in splits.split(X, groups=bags):
        try:
            model = make(C).fit(X[train], bags[train], shares)
        except NotIdentifiableError:
            return s * np.nan
        s[test] = model.predict_proba(X[test])[:, 1]
    return s


def choose(make, X, bags, shares, seed, penalties=PENALTIES):
    """The penalty that each criterion chooses; of equally good ones the strongest.

    Parameters
    ----------
    make : callable
        From C to an estimator.
    X : ndarray, shape (n_instances, n_features)
    bags : ndarray of int, shape (n_instances,)
    shares : ndarray, shape (n_bags, 2)
    seed : int
        Of the folds.
    penalties : list of float
        Values of C, the strongest penalty first.

    Returns
    -------
    dict of str to float
        By the name of the criterion.
    """
    found = [out_of_fold(make, C, X, bags, shares, seed) for C in penalties]
    chosen = {}
    for how, error in (("shares", share_error), ("unbiased", unbiased_error)):
        errors = [error(s, bags, shares[:, 1]) for s in found]
        chosen[how] = penalties[int(np.nanargmin(np.round(errors, 9)))]
    return chosen


def run(cell, seed):
    """One row: bags, a method and a seed."""
    X, X_new, y, y_new, bags = make_problem(cell["dataset"], cell["variant"], seed)
    make, shares = METHODS[cell["method"]], label_proportions(y, bags, classes=[0, 1])
    if make is None:
        model = LogisticRegression(max_iter=1000).fit(X, y)
        right, ece = judge(model, X_new, y_new)
        return {
            **{f"{how}": right for how in ("by_shares", "by_unbiased", "untuned")},
            "C_shares": 1.0, "C_unbiased": 1.0, "ece": ece,
        }  # fmt: skip
    chosen = choose(make, X, bags, shares, seed)
    judged = {
        C: judge(make(C).fit(X, bags, shares), X_new, y_new)
        for C in {1.0, *chosen.values()}
    }
    return {
        "by_shares": judged[chosen["shares"]][0],
        "by_unbiased": judged[chosen["unbiased"]][0],
        "untuned": judged[1.0][0],
        "C_shares": chosen["shares"],
        "C_unbiased": chosen["unbiased"],
        "ece": judged[chosen["shares"]][1],
    }


def judge(model, X, y):
    """Accuracy and calibration error on new instances."""
    s = model.predict_proba(X)[:, 1]
    right = round(float(np.mean((s > 0.5) == y)), 6)
    return right, round(calibration_error(s, y), 6)


TABLES = [
    Table(
        "counts_fair",
        PROTOCOL,
        cells(dataset=list(DATASETS), variant=VARIANTS, method=list(METHODS)),
        run,
        "EM, MeanMap and learners from counts, tuned by two criteria that belong to none of them",
        value="by_shares",
    )
]


def chapter_table(beside, methods):
    """The stored rows as the chapters show them: differences to one method, in points of accuracy on new instances.

    Parameters
    ----------
    beside : str
        The method that the others are compared with.
    methods : list of str
        The others, a row each.

    Returns
    -------
    DataFrame
        A row per method, a column for each choice of the penalty. The first row is the accuracy of ``beside`` in
        percent. The others are differences to it with the standard error over data sets. *gap* is the calibration
        error, by the error of shares.
    """
    rows, table = load("counts_fair"), {}
    for how, title in CHOICES.items():
        scores = 100 * rows.pivot(
            index=["dataset", "variant", "seed"], columns="method", values=how
        )
        found = paired_differences(
            scores[[beside, *methods]], beside, unit="dataset"
        ).loc[methods]
        pairs = zip(found["difference"], found["error"], strict=True)
        level = f"{scores[beside].mean():.1f}"
        table[title] = [level, *(f"{m:+.1f} ± {e:.1f}" for m, e in pairs)]
    gaps = rows.groupby("method")["ece"].mean()
    table["gap"] = gaps[[beside, *methods]].round(3).to_list()
    return pd.DataFrame(
        table, index=[beside, *(f"{name}, less it" for name in methods)]
    )
