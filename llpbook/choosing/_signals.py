"""Signals: what bags and shares show without labels."""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils import check_random_state

from ..base import NotIdentifiableError
from ..baselines import MajorityClass
from ..count_likelihood import CountBoosting, CountLogistic
from ..em import EMLR
from ..model_selection import (
    FullBagKFold,
    OutOfFold,
    SplitBagKFold,
    count_log_likelihood,
)
from ..proportions import class_prior, identifiability

#: By name: what may be recommended, and ``other``, a method that assumes something else, to compare with.
METHODS = {
    "line": CountLogistic(C=0.1),
    "trees": CountBoosting(),
    "other": EMLR(C=0.01),
    "majority": MajorityClass(),
}
#: Folds of the gain; instances that are enough to look at, and the least number of bags to look at.
FOLDS, MOST, LEAST = 3, 10_000, 30


class Signals(NamedTuple):
    """What bags and shares show without labels.

    - ``n_instances``, ``n_features``, ``n_bags``, ``n_classes``: bags without instances are not counted.
    - ``largest``: the share of the largest class.
    - ``worth``: how many labels the bags are worth (`llpbook.proportions.identifiability`), for the class for which
      they are worth least.
    - ``agreement``: the share of instances to which the line and EM give the same label.
    - ``other``: the share of the instances that the likelier of line and trees gives to another class than the largest.
    - ``line``, ``trees``: gain of the count likelihood with a line and with trees on held-out parts of bags, in nats,
      for the bags that were looked at; NaN where trees cannot be fitted, to a sparse matrix.
    - ``whole``: gain of the better of the two on held-out whole bags; NaN where these cannot be predicted.
    """

    n_instances: int
    n_features: int
    n_bags: int
    n_classes: int
    largest: float
    worth: float
    agreement: float
    other: float
    line: float
    trees: float
    whole: float

    @property
    def gain(self):
        """The larger of the two gains."""
        return float(np.fmax(self.line, self.trees))


def agreement(first, second):
    """The share of instances for which two methods predict the same label.

    Parameters
    ----------
    first, second : ndarray, shape (n_instances,)
        Predicted labels.

    Returns
    -------
    float
    """
    # eq: eq-choosing-agreement
    return float(np.mean(first == second))


def held_out_gain(estimator, X, bags, proportions, splits):
    r"""How much better a method predicts the counts of whole bags than the class prior, out of fold.

    :math:`G = \sum_k \log \frac{P(c_k \mid \hat p)}{P(c_k \mid \eta)}`, equation :eq:`eq-choosing-gain`.

    Parameters
    ----------
    estimator : LLPClassifier
        With ``predict_proba``.
    X : ndarray or sparse array, shape (n_instances, n_features)
    bags : ndarray of int, shape (n_instances,)
        Without gaps.
    proportions : ndarray, shape (n_bags, n_classes)
    splits : list of (ndarray, ndarray)
        Rows to fit to, and rows held out; each row is held out once.

    Returns
    -------
    float
        In nats.
    """
    scores = []
    for model in (estimator, MajorityClass()):
        fitted = OutOfFold(clone(model), splits).fit(X, bags, proportions=proportions)
        p = fitted.predict_proba(X)
        scores.append(count_log_likelihood(p, bags, proportions))
    # eq: eq-choosing-gain
    return len(proportions) * (scores[0] - scores[1])


def likelier(line, trees):
    """The name of the larger gain; trees that cannot be fitted gain NaN."""
    return "trees" if trees > line else "line"


def whole_bags(bags, most, least, rng):
    """Rows of whole bags, drawn until there are enough.

    Parameters
    ----------
    bags : ndarray of int, shape (n_instances,)
    most : int
        Instances that are enough; the last bag drawn may exceed them.
    least : int
        Bags that are drawn whatever their sizes, if there are so many.
    rng : RandomState

    Returns
    -------
    ndarray of int
        Ascending.
    """
    order = rng.permutation(np.unique(bags))
    sizes = np.bincount(bags)[order]
    enough = 1 + int(np.searchsorted(np.cumsum(sizes), most))
    return np.flatnonzero(np.isin(bags, order[: max(least, enough)]))


def measure(X, bags, proportions, random_state=0, step=lambda: None):
    """The signals that need fits.

    Parameters
    ----------
    X : ndarray or sparse array, shape (n_instances, n_features)
        Scaled.
    bags : ndarray of int, shape (n_instances,)
        Without gaps.
    proportions : ndarray, shape (n_bags, n_classes)
    random_state : int, RandomState or None, default 0
        Of the folds, and of the bags that are looked at (`whole_bags`).
    step : callable, optional
        Called after each of at most six steps.

    Returns
    -------
    dict
        ``agreement``, ``other``, ``line``, ``trees`` and ``whole`` of `Signals`.
    """
    rng = check_random_state(random_state)
    rows = whole_bags(bags, MOST, LEAST, rng)
    drawn, codes = np.unique(bags[rows], return_inverse=True)
    part = X[rows], codes, proportions[drawn]
    parts = list(SplitBagKFold(FOLDS, random_state=rng).split(X[rows], groups=codes))
    gains = {"line": np.nan, "trees": np.nan}
    for name in ("line",) if sp.issparse(X) else gains:
        gains[name] = held_out_gain(METHODS[name], *part, parts)
        step()
    better, seen = likelier(**gains), {}
    for name in {"line": 0, "other": 0, better: 0}:
        seen[name] = clone(METHODS[name]).fit(*part).predict(part[0])
        step()
    whole = whole_bag_gain(METHODS[better], *part, rng)
    step()
    largest = class_prior(proportions, np.bincount(bags)).argmax()
    return {
        "agreement": agreement(seen["line"], seen["other"]),
        "other": float(np.mean(seen[better] != largest)),
        **gains,
        "whole": whole,
    }


def whole_bag_gain(estimator, X, bags, proportions, random_state=None):
    """`held_out_gain` for folds of whole bags.

    Parameters
    ----------
    estimator, X, bags, proportions
        As for `held_out_gain`.
    random_state : int, RandomState or None
        Of the folds.

    Returns
    -------
    float
        In nats; NaN where a fold cannot be fitted: there is one bag, or a class is in no bag of the fold.
    """
    n_folds = min(FOLDS, len(proportions))
    if n_folds < 2:
        return np.nan
    splitter = FullBagKFold(n_folds, proportions, random_state=random_state)
    try:
        splits = list(splitter.split(X, groups=bags))
        return held_out_gain(estimator, X, bags, proportions, splits)
    except NotIdentifiableError:
        return np.nan


def look(X, bags, proportions, random_state, progress):
    """All signals.

    Parameters
    ----------
    X, bags, proportions, random_state
        As for `measure`.
    progress : Progress

    Returns
    -------
    Signals
        Those of `measure` are NaN where the bags that are looked at cannot tell the classes apart.
    """
    facts, sizes = identifiability(bags, proportions), np.bincount(bags)
    known = {
        "n_instances": X.shape[0],
        "n_features": X.shape[1],
        "n_bags": len(proportions),
        "n_classes": proportions.shape[1],
        "largest": float(class_prior(proportions, sizes).max()),
        "worth": float(facts.worth_in_labels.min()),
    }
    try:
        return Signals(
            **known, **measure(X, bags, proportions, random_state, progress.step)
        )
    except NotIdentifiableError:
        names = ("agreement", "other", "line", "trees", "whole")
        return Signals(**known, **dict.fromkeys(names, np.nan))
