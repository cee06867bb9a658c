"""Probabilities from scores, and shares of bags from predictions."""

import numpy as np
import pandas as pd
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression
from sklearn.utils import gen_batches

from .._input import check_bags, check_column, check_flag, places_of
from ..proportions import averaging_matrix, label_proportions
from ._numbers import expit
from ._steps import check_fitted_to_bags, last_step


def probabilities(scores):
    """Compute class probabilities from log-odds of the positive class, or from the scores of several classes.

    Parameters
    ----------
    scores : ndarray, shape (n_instances,) or (n_instances, n_classes)

    Returns
    -------
    ndarray, shape (n_instances, n_classes)
    """
    if scores.ndim == 1:
        return np.column_stack([expit(-scores), expit(scores)])
    return softmax(scores, axis=1)


def bag_shares(predicted, bags, n_bags=None, classes=None, counts=None):
    """Share of each class in each bag, by predicted labels or by predicted probabilities.

    Parameters
    ----------
    predicted : ndarray, shape (n_instances,) or (n_instances, n_classes)
        A label for each instance; or a matrix of probabilities, whose means are taken.
    bags : ndarray of int, shape (n_instances,)
    n_bags : int, optional
        ``max(bags) + 1`` if not given.
    classes : ndarray, shape (n_classes,)
        For labels only.
    counts : array-like of int, shape (n_instances,), optional

    Returns
    -------
    ndarray, shape (n_bags, n_classes)
        The row of a bag without instances is NaN.
    """
    if predicted.ndim == 1:
        named = {"n_bags": n_bags, "classes": classes, "counts": counts}
        return label_proportions(predicted, bags, **named)
    S = averaging_matrix(bags, n_bags=n_bags, counts=counts)
    means = S @ predicted
    means[S.sum(axis=1) == 0] = np.nan
    return means


def require_probabilities(estimator, name="with soft=True the estimator"):
    """ValueError where an estimator, of this name in the message, predicts no probabilities."""
    if not hasattr(estimator, "predict_proba"):
        raise ValueError(
            f"{name} must have predict_proba, which {type(estimator).__name__} has not: CountCalibration around it has"
        )


def predict_proportions(estimator, X, bags, n_bags=None, soft=False, *, counts=None):
    """Share of each class among the predictions of an estimator or `Pipeline` for each bag.

    Parameters
    ----------
    estimator : estimator or Pipeline
        Fitted.
    X : array-like, shape (n_instances, n_features)
    bags : array-like, shape (n_instances,)
        The bags of these instances; they need not be those of the fit.
    n_bags : int, optional
        Number of rows where bags are integers; ``max(bags) + 1`` if not given.
    soft : bool, default False
        False: the share of the instances whose predicted label is the class. True: the mean of the predicted
        probabilities, which estimates the share of a bag better: labels leave out a class that is likely nowhere, such
        as a rare one.
    counts : array-like of int, shape (n_instances,), optional
        How many equal instances each row stands for; one if not given.

    Returns
    -------
    ndarray or DataFrame, shape (n_bags, n_classes)
        Row ``k`` is bag ``k``, NaN for a bag without instances. Where the fit had proportions keyed by bag, or bags
        are not integers: a DataFrame with one row for each bag that occurs, in the order of the fit, then the others
        sorted, and the classes as columns.

    Raises
    ------
    ValueError
        If ``bags`` has another length than ``X`` or a missing value, or with ``soft=True`` the estimator has no
        probabilities.
    """
    check_flag("soft", soft)
    if soft:
        require_probabilities(estimator)
    check_fitted_to_bags(estimator)
    predicted = estimator.predict_proba(X) if soft else estimator.predict(X)
    classes = estimator.classes_
    values = check_column("bags", bags, len(predicted), X)
    keys = getattr(last_step(estimator), "bag_labels_", None)
    if keys is None and pd.api.types.infer_dtype(values) in ("integer", "floating"):
        codes = check_bags(values, len(predicted), n_bags)
        return bag_shares(predicted, codes, n_bags, classes, counts)
    occurring = pd.Index(pd.factorize(values, sort=True)[1], tupleize_cols=False)
    fitted = pd.Index([] if keys is None else keys, tupleize_cols=False)
    fitted = fitted[places_of(occurring, fitted) >= 0]
    names = fitted.append(occurring[places_of(fitted, occurring) < 0])
    codes = places_of(names, pd.Index(values, tupleize_cols=False))
    shares = bag_shares(predicted, codes, len(names), classes, counts)
    return pd.DataFrame(shares, names, classes)


#: A probability of an estimator counts as no less.
SMALLEST = 1e-12


def class_scores(model, X, n_classes):
    """Logarithms of probabilities, up to a constant per instance, or the decision function of the classifier.

    Parameters
    ----------
    model : classifier
        Fitted to labels 0, 1, …, of which some may not have occurred.
    X : ndarray or sparse array, shape (n_instances, n_features)
    n_classes : int

    Returns
    -------
    ndarray, shape (n_instances, n_classes)
    """
    if hasattr(model, "predict_proba") and not isinstance(model, LogisticRegression):
        own = np.log(np.maximum(model.predict_proba(X), SMALLEST))
    else:
        own = model.decision_function(X)
        own = own if own.ndim == 2 else np.column_stack([0 * own, own])
    scores = np.full((X.shape[0], n_classes), own.min() + np.log(SMALLEST))
    scores[:, model.classes_] = own
    return scores


#: Distances, or values of a kernel, between new and training instances that are held at once: they stay near the cache.
BLOCK = 2**20


def in_blocks(X, n_columns, function):
    """Apply a function of instances to some rows at a time, so that no intermediate matrix is large.

    Parameters
    ----------
    X : ndarray or sparse array, shape (n_instances, n_features)
    n_columns : int
        Of the largest matrix that ``function`` makes.
    function : callable
        From rows of X to an array with as many rows.

    Returns
    -------
    ndarray
        With ``n_instances`` rows.
    """
    parts = gen_batches(X.shape[0], max(1, BLOCK // n_columns))
    return np.concatenate([function(X[part]) for part in parts])
