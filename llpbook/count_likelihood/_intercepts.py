r"""The likelihood of the counts with a random intercept of each bag, :math:`u_k \sim N(0, \tau^2)`."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from .._linear import NODES, WEIGHTS
from ..base import expit, softplus
from ._binary import tilt


class Intercepts(NamedTuple):
    """Distribution of the random intercepts of bags given their counts, on the nodes of a quadrature.

    Attributes
    ----------
    log_ratio : ndarray, shape (n_bags,)
        Logarithm of the likelihood of the count, divided by that without an intercept.
    values, weights : ndarray, shape (n_bags, n_nodes)
        Possible intercepts, and their probabilities.
    mode : ndarray, shape (n_bags,)
    """

    log_ratio: np.ndarray
    values: np.ndarray
    weights: np.ndarray
    mode: np.ndarray

    @property
    def means(self):
        """Expected intercepts, shape (n_bags,)."""
        return np.sum(self.weights * self.values, axis=1)

    @property
    def errors(self):
        """Standard deviations of the intercepts given the counts, shape (n_bags,)."""
        squares = np.sum(self.weights * self.values**2, axis=1)
        return np.sqrt(np.maximum(squares - self.means**2, 0))


def bag_intercepts(f, observed, deviation, start=None):
    r"""Distribution of the random intercept of each bag, given its count.

    .. math:: \log \int e^{u c_k - K_k(u)}\, N(u; 0, \tau^2)\, du, \qquad
              K_k(u) = \sum_{i \in B_k} \log \frac{1 + e^{f_i + u}}{1 + e^{f_i}},

    is what an intercept adds to the log-likelihood of a bag: given u the count has the odds of the tilt by u. The
    integrand is log-concave, and its mode is the `tilt` of a count with the error variance :math:`1 / \tau^2`: adaptive
    Gauss-Hermite quadrature.

    Parameters
    ----------
    f : ndarray, shape (n_rows,)
        Log-odds without the intercepts.
    observed : BagCounts
        Of two classes, without errors.
    deviation : float
        :math:`\tau`, above 0.
    start : ndarray, shape (n_bags,), optional
        The modes for other log-odds that were nearly these.

    Returns
    -------
    Intercepts
    """
    precision = np.full(len(observed.sizes), deviation**-2.0)
    mode = tilt(f, replace(observed, errors=precision), start)
    s = expit(f + mode[observed.bags])
    width = np.sqrt(2 / (observed.sums(s * (1 - s)) + precision))
    u = mode[:, None] + width[:, None] * NODES
    base = softplus(f)
    K = [observed.sums(softplus(f + v[observed.bags]) - base) for v in u.T]
    bell = -(u**2) * precision[:, None] / 2
    logs = WEIGHTS + NODES**2 + u * observed.counts[:, None] - np.transpose(K) + bell
    total = logsumexp(logs, axis=1)
    log_ratio = total + np.log(width / deviation) - 0.5 * np.log(2 * np.pi)
    return Intercepts(log_ratio, u, np.exp(logs - total[:, None]), mode)


def expected_probabilities(f, observed, intercepts):
    """Mean of the probability of each instance over the random intercept of its bag, given the count.

    Parameters
    ----------
    f : ndarray, shape (n_rows,)
    observed : BagCounts
    intercepts : Intercepts

    Returns
    -------
    ndarray, shape (n_rows,)
    """
    nodes = zip(intercepts.values.T, intercepts.weights.T, strict=True)
    return sum(r[observed.bags] * expit(f + u[observed.bags]) for u, r in nodes)
