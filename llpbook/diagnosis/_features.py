"""What of the features is compared: normal scores, their means, their whitened components, random Fourier features."""

from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.spatial.distance import pdist
from scipy.stats import norm, rankdata
from sklearn.utils import check_random_state


def normal_scores(X):
    r"""Each column by its ranks, as a normal sample would have them.

    :math:`z_{ij} = \Phi^{-1}\bigl((r_{ij} - \tfrac12) / n\bigr)`, :math:`r_{ij}` the rank of :math:`x_{ij}` in its
    column, ties sharing theirs; then centered and scaled to variance 1. An independence of X is one of its
    scores and the other way round, and no tail is heavy any more. A column of two values is only shifted and scaled.

    Parameters
    ----------
    X : ndarray, shape (n_instances, n_features)

    Returns
    -------
    ndarray, shape (n_instances, n_features)
        A constant column is 0.
    """
    scores = norm.ppf((rankdata(X, axis=0) - 0.5) / len(X))
    scores -= scores.mean(axis=0)
    spread = scores.std(axis=0)
    return np.where(spread > 1e-9, scores / np.where(spread > 1e-9, spread, 1), 0.0)


def waves(Z, n_frequencies, rng):
    r"""Random Fourier features of Z, shape (n_instances, 2 n_frequencies).

    :math:`\cos \omega_j^\top z, \sin \omega_j^\top z`,
    :math:`\omega_j \sim N(0, s^{-2} I)`, :math:`s` the median distance between (at most 500) instances.
    """
    some = Z[rng.permutation(len(Z))[:500]]
    distances = pdist(some)
    scale = np.median(distances[distances > 0]) if distances.any() else 1.0
    angles = Z @ (rng.normal(size=(Z.shape[1], n_frequencies)) / scale)
    return np.hstack([np.cos(angles), np.sin(angles)])


def unit_total(block):
    """Centered columns, scaled by one factor to a total variance of 1."""
    block = block - block.mean(axis=0)
    return block / np.sqrt(np.square(block).sum() / len(block))


def embed(X, n_components=30, n_frequencies=30, random_state=None):
    r"""Features whose means tell distributions apart: linear and Fourier.

    The columns, standardized, or their first principal components, and random Fourier features of them. Each of the two
    blocks is centered and scaled to a total variance of 1.

    Parameters
    ----------
    X : ndarray, shape (n_instances, n_features)
    n_components : int, default 30
        Most linear features.
    n_frequencies : int, default 30
        Each gives two features.
    random_state : int, RandomState or None

    Returns
    -------
    ndarray, shape (n_instances, at most n_components + 2 * n_frequencies)

    Raises
    ------
    ValueError
        If every column of X is constant.
    """
    rng, spread = check_random_state(random_state), np.ptp(X, axis=0)
    if not spread.any():
        raise ValueError("X has no column with two values: nothing can depend on it")
    Z = X[:, spread > 0]
    Z = (Z - Z.mean(axis=0)) / Z.std(axis=0)
    if Z.shape[1] > n_components:
        Z = Z @ eigh(Z.T @ Z)[1][:, -n_components:]
    return np.hstack([unit_total(Z), unit_total(waves(Z, n_frequencies, rng))])


def whiten(Z, n_components=50, floor=1e-4):
    r"""Principal components of all instances, each scaled to variance 1.

    The covariance is that of all bags together, so that it does not depend on which instance is in which bag: with that
    *within* the bags, the bags would be found to differ whether or not they do.

    Parameters
    ----------
    Z : ndarray, shape (n_instances, n_features)
        Centered.
    n_components : int, default 50
        Most components; no more than a tenth of the instances.
    floor : float, default 1e-4
        Components with less than this share of the mean variance are left out.

    Returns
    -------
    ndarray, shape (n_instances, n_kept)
    """
    values, vectors = eigh(Z.T @ Z / len(Z))
    most = max(1, min(n_components, len(Z) // 10))
    kept = np.flatnonzero(values > floor * values.mean())[-most:]
    return Z @ vectors[:, kept] / np.sqrt(values[kept])


class Views(NamedTuple):
    """Three views of the features, each of which sees something that the others miss.

    features (n_instances, n_embedded) holds the whitened components, Fourier features, and the normal scores of the
    columns; weights (2 + n_columns, n_embedded) says what each view is made of: the whitened components, the Fourier
    features, each column alone. varied (n_features,) says which columns of X these are: those not constant.
    """

    features: np.ndarray
    weights: np.ndarray
    varied: np.ndarray

    def spread(self, values):
        """A value for each column that varies, among NaN for the others, shape (n_features,)."""
        found = np.full(len(self.varied), np.nan)
        found[self.varied] = values
        return found


def views(X, n_frequencies=30, random_state=None):
    r"""Whitened components, Fourier features, and single columns, all of the normal scores.

    With :math:`\omega_j \sim N(0, s^{-2} I)` and :math:`s` the median distance between instances, the second view is
    :math:`(\cos \omega_j^\top z, \sin \omega_j^\top z)_j`.

    Parameters
    ----------
    X : ndarray, shape (n_instances, n_features)
    n_frequencies : int, default 30
    random_state : int, RandomState or None

    Returns
    -------
    Views

    Raises
    ------
    ValueError
        If every column of X is constant.
    """
    rng, varied = check_random_state(random_state), np.ptp(X, axis=0) > 0
    if not varied.any():
        raise ValueError("X has no column with two values: nothing can depend on it")
    Z = normal_scores(X[:, varied])
    blocks = [whiten(Z), unit_total(waves(Z, n_frequencies, rng)), Z]
    a, b, c = (block.shape[1] for block in blocks)
    first = np.repeat([1 / a, 0.0, 0.0], [a, b, c])
    second = np.repeat([0.0, 1.0, 0.0], [a, b, c])
    weights = np.vstack([first, second, np.eye(c, a + b + c, a + b)])
    return Views(np.hstack(blocks), weights, varied)
