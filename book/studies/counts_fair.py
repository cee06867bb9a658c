r"""EM, MeanMap and learners from counts, each tuned by two criteria that belong to none of them.

The instances, the bags and the new instances are those of `studies.count_likelihood`: six data sets, four variants, 80
bags of 25. Every method has the same six penalties. Three folds of whole bags give each instance a probability by a
fit that has not seen its bag; the penalty is chosen by

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

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

from llpbook import EMLR, BagLogistic, BagMeanRegression, CountLogistic, MeanMap
from llpbook.base import NotIdentifiableError
from llpbook.model_selection import FullBagKFold
from llpbook.proportions import label_proportions

from .count_likelihood import DATASETS, VARIANTS, calibration_error, make_problem
from .runner import Table, cells, load

PROTOCOL = "counts-fair-1"
FOLDS = 3
PENALTIES = [0.001, 0.01, 0.1, 1.0, 10.0, 100.0]
#: The columns of accuracy, and what chose the penalty.
CHOICES = {"by_shares": "shares", "by_unbiased": "unbiased", "untuned": "C = 1"}


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


def chapter_table(beside, methods, leave_out=("banana",)):
    """The stored rows as the chapters show them, in percent of new instances.

    Parameters
    ----------
    beside : str
        The method that the others are compared with.
    methods : list of str
        The others, a row each.
    leave_out : sequence of str
        Data sets. On `banana` no line is right for more than 55 %.

    Returns
    -------
    DataFrame
        A row per method, a column for each choice of the penalty. The first row is the accuracy of ``beside``. The
        others are differences to it: the mean over the settings and, in parentheses, its standard error over the draws.
        *ahead* counts the settings in which the mean difference is positive, by the error of shares and by the unbiased
        error. *gap* is the calibration error, by the error of shares.
    """
    rows = load("counts_fair")
    rows = rows[~rows["dataset"].isin(leave_out)]
    first = rows[rows["method"] == beside]
    table, ahead = {}, []
    for how, title in CHOICES.items():
        right = rows.pivot(
            index=["seed", "dataset", "variant"], columns="method", values=how
        )
        gain = 100 * right[methods].sub(right[beside], axis=0)
        draws = gain.groupby("seed").mean()
        means = zip(draws.mean(), draws.sem(), strict=True)
        accuracy = f"{100 * first[how].mean():.1f}"
        table[title] = [accuracy, *(f"{m:+.1f} ({e:.1f})" for m, e in means)]
        won = gain.groupby(["dataset", "variant"]).mean() > 0
        ahead.append(["", *won.sum().astype(str)])
    table["ahead"] = [
        ", ".join(filter(None, pair)) for pair in zip(*ahead[:2], strict=True)
    ]
    gaps = rows.groupby("method")["ece"].mean()
    table["gap"] = gaps[[beside, *methods]].round(3).to_list()
    index = [beside, *(f"{name}, less it" for name in methods)]
    return pd.DataFrame(table, index=index)
