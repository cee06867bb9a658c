"""Probabilities from bags alone: methods as they are, through `CountCalibration`, and calibrated on their own bags.

A row is one draw and one method with its default settings. The columns without an ending are of the method as it is
(nan where it has no probabilities), those in ``_held`` of `CountCalibration` around it, and those in ``_own`` of what
a skeptic tries first: the same slope and offset, but by the counts of the bags that the method was fitted to, with the
scores of that fit. ``ece`` is the expected calibration error on new instances (ten bins; of several classes that of the
largest probability), ``loss`` the mean of minus the logarithm of the probability of the true label, ``accuracy`` of
labels, ``confidence`` the mean of the largest probability; ``slope_held`` and ``slope_own`` are slopes per score.

``problem``:

- adult (seven columns), default-credit-card, image: as many instances of either class as `studies.counts_fair`
  draws, in random bags of ``size``;
- digits: scikit-learn's images of 3, 5 and 8, 304 in random bags and the rest new;
- adult by occupation: as `studies.natural` draws it, all columns and natural bags (``size`` 0).

``MeanMap, tuned`` chooses its penalty by the likelihood of the counts of whole bags held out, three folds; ``labels``
is logistic regression on the true labels of the instances in bags.
"""

import warnings

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.preprocessing import StandardScaler

from llpbook import (
    EMLR,
    AlterSVM,
    BagMeanRegression,
    CountCalibration,
    CountLogistic,
    FullBagKFold,
    InvCal,
    LLPGridSearchCV,
    MeanMap,
)
from llpbook.count_likelihood import bag_counts, calibrate, lapsed, scores_of
from llpbook.proportions import label_proportions

from . import counts_fair, natural
from .runner import Table, cells

PROTOCOL = "calibration-2"
N_BAGGED, N_NEW = 2000, 2000
N_DIGITS = 304
PENALTIES = {"alpha": [0.4, 4.0, 40.0, 400.0]}
METHODS = {
    "ridge": BagMeanRegression(),
    "InvCal": InvCal(),
    "AlterSVM": AlterSVM(random_state=0),
    "MeanMap": MeanMap(),
    "MeanMap, tuned": LLPGridSearchCV(
        MeanMap(), PENALTIES, scoring="log_likelihood", cv=FullBagKFold(3)
    ),
    "EMLR": EMLR(),
    "CountLogistic": CountLogistic(C=1.0),
    "labels": LogisticRegression(max_iter=1000),
}
TWO = ["adult", "default-credit-card", "image"]
OCCUPATION = "adult by occupation"


def make_problem(problem, size, seed):
    """Instances in bags and new ones.

    Parameters
    ----------
    problem : str
    size : int
        Of the bags; 0 for natural ones.
    seed : int

    Returns
    -------
    X, X_new : ndarray
        Standardized by the mean and deviation of X.
    y, y_new : ndarray of int
        0, 1, …: for the proportions and the evaluation.
    bags : ndarray of int
    """
    if problem == OCCUPATION:
        return natural.make_problem(problem, seed)
    rng = np.random.RandomState(seed)
    if problem in TWO:
        X, y = counts_fair.table_of(problem)
        half = min(np.bincount(y).min(), (N_BAGGED + N_NEW) // 2)
        rows = [rng.permutation(np.flatnonzero(y == k))[:half] for k in (0, 1)]
        rows = rng.permutation(np.concatenate(rows))
        n = min(N_BAGGED, int(0.6 * len(rows)))
    else:
        X, y = load_digits(return_X_y=True)
        keep = np.isin(y, [3, 5, 8])
        X, y = X[keep], np.searchsorted([3, 5, 8], y[keep])
        rows, n = rng.permutation(len(y)), N_DIGITS
    n = n // size * size
    Z = StandardScaler().fit(X[rows[:n]]).transform(X[rows])
    y = y[rows]
    return Z[:n], Z[n:], y[:n], y[n:], rng.permutation(n) // size


def judge(P, y, end=""):
    """Calibration error, mean loss, accuracy and mean confidence of probabilities.

    Parameters
    ----------
    P : ndarray, shape (n, n_classes)
    y : ndarray of int, shape (n,)
    end : str
        Of the names.

    Returns
    -------
    dict of str to float
    """
    top, right = P.max(axis=1), P.argmax(axis=1) == y
    two = P.shape[1] == 2
    ece = counts_fair.calibration_error(
        *((P[:, 1], y) if two else (top, right.astype(int)))
    )
    found = {
        "ece": ece,
        "loss": log_loss(y, P, labels=range(P.shape[1])),
        "accuracy": right.mean(),
        "confidence": top.mean(),
    }
    return {name + end: value for name, value in found.items()}


def run(cell, seed):
    """One row: a method on one draw."""
    X, X_new, y, y_new, bags = make_problem(cell["problem"], cell["size"], seed)
    K, method = y.max() + 1, METHODS[cell["method"]]
    shares = label_proportions(y, bags, classes=range(K))
    nothing = {"ece": np.nan, "loss": np.nan, "accuracy": np.nan, "confidence": np.nan}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if cell["method"] == "labels":
            found = judge(method.fit(X, y).predict_proba(X_new), y_new)
            for end in ("_held", "_own"):
                found |= {name + end: np.nan for name in (*nothing, "slope")}
        else:
            model = CountCalibration(method).fit(X, bags, shares)
            inner = model.estimator_
            found = nothing | {"accuracy": np.mean(inner.predict(X_new) == y_new)}
            if hasattr(inner, "predict_proba"):
                found = judge(inner.predict_proba(X_new), y_new)
            found |= judge(model.predict_proba(X_new), y_new, "_held")
            found["slope_held"] = model.slope_
            slope, offset = calibrate(scores_of(inner, X), bag_counts(bags, shares))
            own = slope * scores_of(inner, X_new) + offset
            own = np.exp(lapsed(own, model.class_prior_, model.lapse))
            found |= judge(own, y_new, "_own") | {"slope_own": slope}
    return {name: round(float(value), 6) for name, value in found.items()}


TABLES = [
    Table(
        "calibration",
        PROTOCOL,
        cells(problem=[*TWO, "digits"], size=[8, 25], method=list(METHODS))
        + cells(problem=[OCCUPATION], size=[0], method=list(METHODS)),
        run,
        "probabilities of methods as they are, by counts held out, and by the counts of their own bags",
        value="ece_held",
    ),
]
