"""Accuracy without labels: the accuracy that a model expects of itself, and bounds that need no assumption."""

from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import logit

from .._input import (
    ArrayLike,
    Matrix,
    Proportions,
    check_column,
    places_of,
    read_counts,
    refuse_cells,
)
from .._linear import bag_counts
from ..base import (
    check_fitted_to_bags,
    error_covariances,
    last_step,
    read_bags,
    require_probabilities,
    warn,
)
from ..count_likelihood import posterior

#: A probability of a model counts as no less.
SMALLEST = 1e-12


def stated_noise(model):
    """The errors of the shares that a model states, and their distribution.

    Parameters
    ----------
    model : estimator or Pipeline
        Of a pipeline the last step counts.

    Returns
    -------
    errors : object or None
        ``proportion_errors``.
    noise : str or None
        ``proportion_noise``.
    """
    last = last_step(model)
    errors = getattr(last, "proportion_errors", None)
    return errors, getattr(last, "proportion_noise", None)


def read_shares(model, X, bags, proportions, proportion_errors=None, counts=None):
    """Bags as of `llpbook.base.read_bags`, with the errors of the shares that the model states.

    Parameters
    ----------
    model : estimator or Pipeline, or None
    X : array-like, shape (n_instances, n_features), or None
    bags : array-like, shape (n_instances,)
    proportions : array-like, Series, dict or DataFrame
        Outside of [0, 1] only where noise is stated.
    proportion_errors : array-like, Series or dict, optional
        Stands in the place of those of the model.
    counts : array-like of int, shape (n_instances,), optional
        How many equal instances each row stands for.

    Returns
    -------
    BagData
        With ``covariances``, None where no errors are stated.
    """
    errors, noise = stated_noise(model)
    noisy = noise is not None or proportion_errors is not None
    errors = errors if proportion_errors is None else proportion_errors
    data = read_bags(
        no_features(bags),
        bags,
        proportions,
        original=bags if X is None else X,
        noisy=noisy,
        counts=counts,
    )
    if counts is None and X is not None:
        refuse_cells(X, data.bags, data.proportions)
    if errors is None:
        return data
    return replace(data, covariances=error_covariances(errors, data))


def no_features(bags):
    """An X without columns and with a row per entry of ``bags``; ValueError where these have no length."""
    if not hasattr(bags, "__len__"):
        raise ValueError(f"bags must hold one bag per instance, got {bags!r}")
    return np.empty((len(bags), 0))


def slack_of_counts(data, rounding=0.0):
    """Largest error of the count of each bag; warns where shares look rounded and no rounding is stated.

    Parameters
    ----------
    data : BagData
    rounding : float, default 0.0
        Half-width: a share rounded to a percent has 0.005.

    Returns
    -------
    ndarray, shape (n_bags,)
    """
    if not (isinstance(rounding, Real) and 0 <= rounding < 1):
        raise ValueError(f"rounding must lie in [0, 1), got {rounding!r}")
    counts = data.bag_sizes[:, None] * data.proportions
    off = np.abs(counts - np.round(counts)).max(axis=1) > 1e-6 * data.bag_sizes
    if rounding == 0 and off.any():
        warn(
            f"the shares of {off.sum()} bags give no whole counts, so the bounds are not sure: state how far a share "
            "may be from the true one, such as rounding=0.005 for shares in percent, or twice the "
            "largest of polling_errors for shares of other people"
        )
    return data.bag_sizes * float(rounding)


def both_or_neither(**pair):
    """ValueError where one of two arguments is missing that mean nothing alone."""
    if len({value is None for value in pair.values()}) > 1:
        raise ValueError(f"give both {' and '.join(pair)}, or neither, got one of them")


def check_classes(data, model):
    """ValueError where the classes of `BagData` are not those of a fitted model."""
    if data.classes.tolist() != list(model.classes_):
        raise ValueError(
            f"proportions has the classes {data.classes.tolist()}, the model {list(model.classes_)}"
        )


def class_probabilities(model, X, data):
    """Probabilities of the classes of ``data``; ValueError where a model has none or other classes.

    Parameters
    ----------
    model : estimator or Pipeline
        Fitted.
    X : array-like, shape (n_instances, n_features)
    data : BagData

    Returns
    -------
    ndarray, shape (n_rows, n_classes)
        None is below 1e-12.
    """
    check_fitted_to_bags(model)
    require_probabilities(model, "model")
    check_classes(data, model)
    rows = slice(None) if data.kept is None else data.kept
    return np.clip(model.predict_proba(X)[rows], SMALLEST, 1 - SMALLEST)


def expected_labels(P, model, data):
    """Posterior probability of each label given the counts of the bags, from the probabilities of any model.

    Parameters
    ----------
    P : ndarray, shape (n_instances, n_classes)
        From `class_probabilities`.
    model : estimator or Pipeline
    data : BagData
        Errors of the shares are its ``covariances``, of the distribution that the model states.

    Returns
    -------
    ndarray, shape (n_instances, n_classes)
    """
    observed = bag_counts(
        data.bags, data.proportions, data.covariances, data.frequencies
    )
    observed = replace(observed, laplace=stated_noise(model)[1] == "laplace")
    if P.shape[1] > 2:
        return posterior(np.log(P), observed)[1]
    q = np.clip(posterior(logit(P[:, 1]), observed)[1], 0, 1)
    return np.column_stack([1 - q, q])


def expected_accuracy(
    model: Any, X: Matrix, *, bags: ArrayLike | None = None,
    proportions: Proportions | None = None, counts: ArrayLike | None = None,
) -> float:  # fmt: skip
    r"""Expected share of right labels, by the probabilities of a model.

    Without bags :math:`\frac1n \sum_i \max_y P(y \mid x_i)`. With bags the
    probability of each predicted label given the counts stands in the place of the largest one.

    Parameters
    ----------
    model : estimator or Pipeline
        Fitted, with ``predict_proba``.
    X : array-like, shape (n_instances, n_features)
    bags : array-like, shape (n_instances,), optional
    proportions : array-like, Series, dict or DataFrame, optional
        See `llpbook.proportions.check_proportions`.
    counts : array-like of int, shape (n_instances,), optional
        How many equal instances each row stands for, as in a table of cells; one if not given.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If the model has no probabilities, only one of ``bags`` and ``proportions`` is given, or one is malformed.

    Notes
    -----
    Right where the probabilities are calibrated, which shares do not prove. Errors of the shares are those that the
    model states.

    Examples
    --------
    >>> from llpbook import CountLogistic, expected_accuracy
    >>> X, bags, shares = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1], [0.0, 1.0]
    >>> model = CountLogistic().fit(X, bags, shares)
    >>> 0.5 <= expected_accuracy(model, X) <= 1
    True
    """
    both_or_neither(bags=bags, proportions=proportions)
    if bags is None:
        check_fitted_to_bags(model)
        require_probabilities(model, "model")
        sure = model.predict_proba(X).max(axis=1)
        times = None if counts is None else read_counts(counts, len(sure), X)
        return float(np.average(sure, weights=times))
    data = read_shares(model, X, bags, proportions, counts=counts)
    P = class_probabilities(model, X, data)
    q = expected_labels(P, model, data)
    sure = q[np.arange(len(q)), P.argmax(axis=1)]
    return float(np.average(sure, weights=data.frequencies))


def agreement_bounds(predicted, counts, slack=0.0):
    r"""The least and the largest number of right labels in each bag.

    :math:`\max_y \max(0, m_{ky} + c_{ky} - n_k)` and :math:`\sum_y \min(m_{ky}, c_{ky})`, equation
    :eq:`eq-uncertainty-accuracy`.

    Parameters
    ----------
    predicted, counts : ndarray, shape (n_bags, n_classes)
        Predicted and true counts of the classes.
    slack : float or ndarray, shape (n_bags,), default 0.0
        By how much each true count may be wrong.

    Returns
    -------
    low, high : ndarray, shape (n_bags,)
    """
    sizes = predicted.sum(axis=1)
    # eq: eq-uncertainty-accuracy
    low = np.maximum(0, (predicted + counts).max(axis=1) - slack - sizes)
    more = counts + np.reshape(slack, (-1, 1))
    return low, np.minimum(predicted, more).sum(axis=1)


def accuracy_bounds(
    predicted: ArrayLike, bags: ArrayLike, proportions: Proportions, *,
    counts: ArrayLike | None = None, rounding: float = 0.0,
) -> tuple[float, float]:  # fmt: skip
    """Sharp bounds of the accuracy of predicted labels, over all labels that fit the shares.

    Parameters
    ----------
    predicted : array-like, shape (n_instances,)
        Labels, of any method.
    bags : array-like, shape (n_instances,)
    proportions : array-like, Series, dict or DataFrame
        See `llpbook.proportions.check_proportions`.
    counts : array-like of int, shape (n_instances,), optional
        How many equal instances each row stands for, as in a table of cells; one if not given.
    rounding : float, default 0.0
        How far each share may be from the true one: 0.005 for shares in percent.

    Returns
    -------
    low, high : float
        Sharp for exact shares: some true labels with the given shares attain each.

    Raises
    ------
    ValueError
        If a label is none of the classes, or the input is malformed.

    Examples
    --------
    >>> from llpbook import accuracy_bounds
    >>> accuracy_bounds([1, 1, 0, 0], [0, 0, 0, 0], [0.75])
    (0.25, 0.75)
    """
    data = read_bags(no_features(bags), bags, proportions, original=bags, counts=counts)
    n_rows = len(data.bags if data.kept is None else data.kept)
    labels = check_column("predicted", predicted, n_rows, bags)
    labels = labels if data.kept is None else labels[data.kept]
    codes = places_of(pd.Index(data.classes), pd.Index(labels))
    if (codes < 0).any():
        strange = labels[codes < 0].tolist()[0]
        raise ValueError(
            f"predicted holds {strange!r}, which is none of the classes {data.classes.tolist()}"
        )
    hits = codes[:, None] == np.arange(len(data.classes))
    predicted_counts = data.sums(hits)
    low, high = agreement_bounds(
        predicted_counts,
        data.bag_sizes[:, None] * data.proportions,
        slack=slack_of_counts(data, rounding),
    )
    n = data.n_instances
    return float(low.sum() / n), float(high.sum() / n)
