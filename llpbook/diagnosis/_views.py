"""Three views of the features, whose distributions are compared, and one p-value from those of the views."""

from numbers import Real
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.spatial.distance import pdist
from scipy.stats import norm, rankdata
from sklearn.utils import check_random_state

#: Random frequencies of the Fourier features, each of which gives two.
FREQUENCIES = 30
#: Most whitened components, and the least share of the mean variance that one has.
COMPONENTS, FLOOR = 50, 1e-4


class TestResult(NamedTuple):
    """Result of a test.

    statistic; pvalue (NaN where the data cannot say anything, and ``note`` says why); detectable, the smallest shift
    that would have been found four times in five, in standard deviations; by_column, the p-values of the single
    columns of X (NaN for a column that was not tested), or None; note.

    Examples
    --------
    >>> from llpbook.diagnosis import TestResult
    >>> result = TestResult(statistic=3.0, pvalue=0.02)
    >>> result.pvalue < 0.05
    True
    """

    statistic: float
    pvalue: float
    detectable: float = np.nan
    by_column: np.ndarray | None = None
    note: str = ""

    __test__ = False  # type: ignore[misc]  # not for pytest to collect


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
        of_all = np.full(len(self.varied), np.nan)
        of_all[self.varied] = values
        return of_all


def views(X, random_state=None):
    """Compute whitened components, Fourier features, and single columns, all of the normal scores of the columns."""
    rng, varied = check_random_state(random_state), np.ptp(X, axis=0) > 0
    if not varied.any():
        raise ValueError("X has no column with two values: nothing can depend on it")
    Z = normal_scores(X[:, varied])
    blocks = [whiten(Z), unit_total(waves(Z, FREQUENCIES, rng)), Z]
    a, b, c = (block.shape[1] for block in blocks)
    first = np.repeat([1 / a, 0.0, 0.0], [a, b, c])
    second = np.repeat([0.0, 1.0, 0.0], [a, b, c])
    weights = np.vstack([first, second, np.eye(c, a + b + c, a + b)])
    return Views(np.hstack(blocks), weights, varied)


def normal_scores(X):
    """Normal scores of each column: quantiles at its ranks, scaled to variance 1; 0 if the column is constant.

    An independence of X is one of its scores and the other way round, and no tail is heavy any more. Ties share their
    rank, so a column of two values is only shifted and scaled.
    """
    scores = norm.ppf((rankdata(X, axis=0) - 0.5) / len(X))
    scores -= scores.mean(axis=0)
    spread = scores.std(axis=0)
    return np.where(spread > 1e-9, scores / np.where(spread > 1e-9, spread, 1), 0.0)


def waves(Z, n_frequencies, rng):
    r"""Random Fourier features, two for each frequency: :math:`\cos \omega_j^\top z, \sin \omega_j^\top z`.

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


def whiten(Z):
    """Principal components of all instances, no more than a tenth of them, each scaled to variance 1.

    The covariance is that of all bags together, so that it does not depend on which instance is in which bag: with that
    *within* the bags, the bags would be found to differ whether or not they do.
    """
    values, vectors = eigh(Z.T @ Z / len(Z))
    most = max(1, min(COMPONENTS, len(Z) // 10))
    kept = np.flatnonzero(values > FLOOR * values.mean())[-most:]
    return Z @ vectors[:, kept] / np.sqrt(values[kept])


def combine_views(pvalues):
    """One p-value for all views, by Bonferroni: the smallest of them times their number.

    The whitened components are one view, the Fourier features another, and all columns together the third.

    Parameters
    ----------
    pvalues : ndarray, shape (..., 2 + n_columns)
        NaN where a view was not tested.

    Returns
    -------
    float or ndarray, shape (...)
    """
    tested = np.isfinite(pvalues)
    times = np.ones(pvalues.shape)
    times[..., 2:] = tested[..., 2:].sum(axis=-1, keepdims=True)
    n_views = tested[..., :2].sum(axis=-1) + tested[..., 2:].any(axis=-1)
    least = np.where(tested, times * pvalues, np.inf).min(axis=-1)
    return np.minimum(1.0, n_views * least)


def smallest_shift(relative_sd, n_cells, n_instances, alpha, power=0.8, n_views=3):
    r"""Typical shift that a test of a quadratic form finds with the given power.

    Cells shifted independently, with standard deviation :math:`\delta` in each component, add to a statistic with
    expectation :math:`E` and standard deviation :math:`s` the share :math:`\delta^2 n / L` of :math:`E`, so
    :math:`\delta^2 = (z_{1 - \alpha / 3} + z_{0.8}) \frac{s}{E} \frac{L}{n}`: :eq:`eq-diag-shift`. The level is
    shared by the three views.

    Parameters
    ----------
    relative_sd : float
        :math:`s / E`, where nothing shifts.
    n_cells : int
        Cells, or bags.
    n_instances : int
    alpha : float
    power : float, default 0.8
    n_views : int, default 3

    Returns
    -------
    float
    """
    reach = norm.isf(alpha / n_views) + norm.ppf(power)
    # eq: eq-diag-shift
    return float(np.sqrt(reach * relative_sd * n_cells / n_instances))


def check_level(alpha):
    """Refuse a level outside of (0, 1)."""
    if not isinstance(alpha, Real) or not 0 < alpha < 1:
        raise ValueError(f"alpha must lie in (0, 1), got {alpha!r}")
