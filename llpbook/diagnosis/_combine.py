"""Several p-values into one, and what a test that found nothing would have found."""

from numbers import Real
from typing import NamedTuple

import numpy as np
from scipy.stats import norm, pearson3


class TestResult(NamedTuple):
    """What a test says.

    statistic; pvalue (NaN where the data cannot say anything, and ``note`` says why); detectable, the smallest shift
    that would have been found four times in five, in standard deviations; by_column, the p-values of the single
    columns of X (NaN for a column that was not tested), or None; note.
    """

    statistic: float
    pvalue: float
    detectable: float = np.nan
    by_column: np.ndarray | None = None
    note: str = ""

    __test__ = False  # type: ignore[misc]  # not for pytest to collect


def check_level(alpha):
    """Refuse a level that is none."""
    if not isinstance(alpha, Real) or not 0 < alpha < 1:
        raise ValueError(f"alpha must lie in (0, 1), got {alpha!r}")


def cauchy_combination(pvalues, axis=-1):
    r"""One p-value from several, however they depend on one another.

    :math:`p = \tfrac12 - \tfrac1\pi \arctan \bigl( \tfrac1m \sum_j \tan((\tfrac12 - p_j) \pi) \bigr)`,
    :eq:`eq-diag-cauchy`: a mean of Cauchy variables is one again, and its tail, which the smallest p-values make,
    hardly depends on how they depend.

    Parameters
    ----------
    pvalues : array-like
        NaN are left out; above 0.95 they count as that, so that no view silences the others.
    axis : int, default -1

    Returns
    -------
    float or ndarray
        NaN where there is none.

    Notes
    -----
    Source: liu2020.
    """
    p = np.clip(np.asarray(pvalues, dtype=float), 1e-300, 0.95)
    small = p < 1e-15  # where tan loses its digits
    angle = np.where(small, 0.25, 0.5 - p) * np.pi
    found = np.where(small, 1 / (p * np.pi), np.tan(angle))
    count = np.maximum(np.isfinite(found).sum(axis=axis), 1)
    mean = np.nansum(found, axis=axis) / count
    # eq: eq-diag-cauchy
    combined = np.where(
        mean > 1e14, 1 / (np.maximum(mean, 1) * np.pi), 0.5 - np.arctan(mean) / np.pi
    )
    combined = np.where(np.isfinite(p).any(axis=axis), combined, np.nan)
    return float(combined) if combined.ndim == 0 else combined


def combine_views(pvalues):
    r"""One p-value for all views: the whitened components, the Fourier features, and the single columns.

    The columns first become one, :math:`1 - (1 - \min_j p_j)^d` (Šidák's correction, which correlated columns make too
    careful rather than too bold); the three are combined by `cauchy_combination`.

    Parameters
    ----------
    pvalues : ndarray, shape (..., 2 + n_columns)
        NaN where a view was not tested.

    Returns
    -------
    float or ndarray, shape (...)
    """
    columns = np.where(np.isfinite(pvalues[..., 2:]), pvalues[..., 2:], np.inf)
    count, least = np.isfinite(columns).sum(axis=-1), columns.min(axis=-1)
    tested = count > 0
    single = -np.expm1(
        count * np.log1p(-np.where(tested, np.minimum(least, 1 - 1e-12), 0))
    )
    single = np.where(tested, np.maximum(single, 1e-300), np.nan)
    return cauchy_combination(
        np.stack([pvalues[..., 0], pvalues[..., 1], single], axis=-1)
    )


def pearson_tail(values, mean, sd, skewness):
    """Upper tail of Pearson's type III distribution with these moments; 1 where the deviation is 0."""
    safe = np.where(sd > 0, sd, 1)
    return np.where(sd > 0, pearson3.sf((values - mean) / safe, skewness), 1.0)


def smallest_shift(relative_sd, n_cells, n_instances, alpha, power=0.8, n_views=3):
    r"""The typical shift that a test of a quadratic form finds with the given power.

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
