"""Standard errors of a linear model of counts: the sandwich, bag by bag, in memory or from chunks of whole bags."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from .._input import repeated_rows
from .._linear import LinearBagModel
from ..base import (
    check_fitted_to_bags,
    one_column,
    read_bags,
    split_steps,
)
from ..count_likelihood import CountLoss
from ._accuracy import check_classes

#: Change of the log-odds, root mean square, by which gradients are differentiated.
STEP = 1e-4
#: A Newton step of so many standard errors says that a model is not at its maximum.
AWAY = 0.5


class BagSums(NamedTuple):
    """Contribution of a chunk of whole bags to the sums over all bags.

    Attributes
    ----------
    n_instances : int
    used : ndarray of int, shape (n_bags,)
    gradient : ndarray, shape (n_weights,)
        Sum of the gradients of the bags.
    hessian : ndarray, shape (n_weights, n_weights)
        Sum of minus the second derivatives.
    """

    n_instances: int
    used: np.ndarray
    gradient: np.ndarray
    hessian: np.ndarray


def bag_gradients(fit):
    r"""Gradient of the log-likelihood of each bag.

    :math:`g_k = \sum_{i \in B_k} (q_i - \sigma(f_i))\, x_i`, equation :eq:`eq-uncertainty-gradient`.

    Parameters
    ----------
    fit : Problem

    Returns
    -------
    ndarray, shape (n_bags, n_weights)
        The weights of one class after those of another.
    """
    scores = one_column(fit.Z @ fit.weights.T)
    slopes = fit.loss.evaluate(scores, fit.observed)[1].reshape(len(scores), -1)
    # eq: eq-uncertainty-gradient
    return np.hstack([fit.observed.weighted_sums(-s, fit.Z) for s in slopes.T])


def steps_of(fit):
    """Yield small changes of each weight, and their sizes.

    Parameters
    ----------
    fit : Problem

    Yields
    ------
    more, less : Problem
        The model with a larger and with a smaller weight.
    size : float
        Half of the difference of the two.
    """
    power = fit.Z.power(2) if sp.issparse(fit.Z) else fit.Z**2
    root = np.sqrt(np.asarray(power.mean(axis=0)).ravel())
    for j in range(fit.weights.size):
        size = STEP / (root[j % len(root)] or 1.0)
        step = np.zeros(fit.weights.size)
        step[j] = size
        step = step.reshape(fit.weights.shape)
        more = replace(fit, weights=fit.weights + step)
        yield more, replace(fit, weights=fit.weights - step), size


def bag_hessians(fit):
    r"""Minus the second derivatives of the log-likelihood of each bag, by differences of its gradient.

    :math:`J_k = \sum_{i, j \in B_k} \bigl( \mathrm{Cov}(y_i, y_j) - \mathrm{Cov}(y_i, y_j \mid c_k) \bigr)
    x_i x_j^\top`, equation :eq:`eq-uncertainty-hessian`.

    Parameters
    ----------
    fit : Problem

    Returns
    -------
    ndarray, shape (n_bags, n_weights, n_weights)
        Costs 2 n_weights evaluations of the gradient.
    """
    columns = []
    for more, less, size in steps_of(fit):
        # eq: eq-uncertainty-hessian
        columns.append((bag_gradients(less) - bag_gradients(more)) / (2 * size))
    J = np.stack(columns, axis=-1)
    return (J + J.transpose(0, 2, 1)) / 2


def influences(gradients, hessians, J, left=0.5):
    r"""Contribution of each bag to the error of the weights.

    :math:`\psi_k = \bigl( J - \tfrac12 J_k \bigr)^{-1} g_k`, equation :eq:`eq-uncertainty-influence`. Leaving out the
    whole of :math:`J_k` gives minus the change of the weights when the bag is left out.

    Parameters
    ----------
    gradients : ndarray, shape (n_bags, n_weights)
    hessians : ndarray, shape (n_bags, n_weights, n_weights)
    J : ndarray, shape (n_weights, n_weights)
        Of all bags, with the penalty.
    left : float, default 0.5
        Part of the curvature of the bag itself that is left out.

    Returns
    -------
    ndarray, shape (n_bags, n_weights)
    """
    # eq: eq-uncertainty-influence
    return np.linalg.solve(J - left * hessians, gradients[:, :, None])[:, :, 0]


def sandwich(psi):
    r"""Sandwich covariance matrix of the weights.

    :math:`\frac{L}{L - 1} \sum_k \psi_k \psi_k^\top`, equation :eq:`eq-uncertainty-sandwich`.

    Parameters
    ----------
    psi : ndarray, shape (n_bags, n_weights)

    Returns
    -------
    ndarray, shape (n_weights, n_weights)
    """
    # eq: eq-uncertainty-sandwich
    return len(psi) / (len(psi) - 1) * psi.T @ psi


def bag_sums(fit):
    """Compute the sums of the first pass over a chunk of whole bags.

    Parameters
    ----------
    fit : Problem

    Returns
    -------
    BagSums
    """
    J = bag_hessians(fit).sum(axis=0)
    return BagSums(
        fit.observed.sizes.sum(), fit.used, bag_gradients(fit).sum(axis=0), J
    )


def bag_squares(fit, J):
    r"""Compute :math:`\sum_k \psi_k \psi_k^\top` in the second pass over a chunk.

    Parameters
    ----------
    fit : Problem
    J : ndarray, shape (n_weights, n_weights)
        From the first pass, with the penalty.

    Returns
    -------
    ndarray, shape (n_weights, n_weights)
    """
    psi = influences(bag_gradients(fit), bag_hessians(fit), J)
    return psi.T @ psi


def split_model(model):
    """Split a model into the steps before the last one, and the last one, which must be a linear `CountLogistic`.

    Parameters
    ----------
    model : CountLogistic or Pipeline
        Fitted.

    Returns
    -------
    before : Pipeline or None
    last : CountLogistic

    Raises
    ------
    ValueError
        If it is another estimator, has a kernel, or is not fitted.
    """
    before, last = split_steps(model)
    if not isinstance(last, LinearBagModel):
        raise ValueError(
            f"model must be a CountLogistic or a pipeline that ends in one, got {type(last).__name__}: for other "
            "methods there is bag_bootstrap"
        )
    if last.kernel != "linear":
        raise ValueError(
            f"model must have kernel='linear', got {last.kernel!r}: the weights of a kernel have no standard errors"
        )
    if not hasattr(last, "coef_"):
        raise ValueError("model is not fitted: call fit first")
    if not isinstance(last.loss_, CountLoss):
        raise ValueError(
            f"model must maximize the likelihood of the counts, got the loss {last.loss_!r}: for other losses there is "
            "bag_bootstrap"
        )
    check_fitted_to_bags(model)
    return before, last


def read_fit(model, X, bags, proportions, labels=None, counts=None):
    """Check a fitted model and its bags.

    Each instance with a known label is a bag of its own.

    Parameters
    ----------
    model : CountLogistic or Pipeline
        Fitted to these bags.
    X : array-like, shape (n_instances, n_features)
    bags : array-like, shape (n_instances,)
    proportions : array-like, Series, dict or DataFrame
        See `llpbook.proportions.check_proportions`.
    labels : array-like, shape (n_instances,), optional
        Known labels, -1 for unknown.
    counts : array-like of int, shape (n_instances,), optional
        Number of equal instances that each row stands for; rows that stand for none are left out.

    Returns
    -------
    fit : Problem
    data : BagData
        As given, with a row for each labeled instance.

    Raises
    ------
    ValueError
        For malformed input, or if the classes are not those of the model.
    """
    before, last = split_model(model)
    Z = last._validate_predict(X if before is None else before.transform(X))
    noisy = last.proportion_noise is not None
    data = read_bags(Z, bags, proportions, labels, X, noisy, counts=counts)
    data, rows = labels_in_rows(data)
    check_classes(data, last)
    return replace(last.problem(data), rows=rows), data


def labels_in_rows(data):
    """Repeat rows so that each instance with a known label has its own; also return the rows that these were."""
    if data.labels is None or data.frequencies is None:
        return data, slice(None)
    times = np.where(data.labels < 0, 1, data.frequencies)
    rows = repeated_rows(times)
    X, bags, labels = (v[rows] for v in (data.X, data.bags, data.labels))
    often = (data.frequencies // times)[rows]
    return replace(data, X=X, bags=bags, labels=labels, frequencies=often), rows
