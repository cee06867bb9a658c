"""Warnings of a fit: features on different scales, and a solver that stopped early."""

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from ._chunked import InChunks
from ._numbers import blocks
from ._running import warn


def warn_if_short(
    estimator, left="a gradient of {:.1e}",
    advice="scale the features, penalize more, or raise max_iter", slack=2,
):  # fmt: skip
    """Warn if an iterative fit stopped before it converged.

    Parameters
    ----------
    estimator : LLPClassifier
        With ``n_iter_``, ``gap_`` (what is left of the optimality condition) and ``tol``, on the scale of the gap.
    left : str
        Name of the gap, with a place for the number.
    advice : str
    slack : float, default 2
        The fit warns if the gap exceeds so many tolerances.
    """
    if estimator.gap_ > slack * estimator.tol:
        warn(
            f"{type(estimator).__name__} stopped after {estimator.n_iter_} iterations with "
            f"{left.format(estimator.gap_)}, above tol={estimator.tol}; {advice}",
            ConvergenceWarning,
        )


#: Ratio of the largest to the smallest standard deviation of the features above which `warn_of_scale` speaks: of a
#: penalty, and of distances, which a single wide feature takes over.
SCALES = {"penalty": 1000, "distances": 30}
#: Standard deviations between a mean and 0, and the largest standard deviation, which a penalty makes wrong.
OFFSETS, TINY = 30, 1e-3


def moments(X, frequencies=None):
    """Means and standard deviations of the columns of X, dense or in chunks, each of shape (n_features,)."""
    if isinstance(X, InChunks):
        return X.moments()
    times = np.ones(len(X)) if frequencies is None else frequencies
    means = times @ X / times.sum()
    squares = sum(times[rows] @ (x - means) ** 2 for rows, x in blocks(X))
    return means, np.sqrt(squares / times.sum())


def warn_of_scale(estimator, X, frequencies=None):
    """Warn where a penalty or a distance acts on features of very different scale, far from 0, or tiny.

    Parameters
    ----------
    estimator : LLPClassifier
        Its ``_scale`` names what acts; with a kernel it is distances, except for one that the user computes.
    X : ndarray, sparse array or InChunks, shape (n_instances, n_features)
        No warning for a sparse one: columns of counts are rare by nature.
    frequencies : ndarray, shape (n_instances,), optional
        Of the rows.
    """
    if not sp.issparse(X):
        means, stds = moments(X, frequencies)
        warn_of_moments(estimator, means, stds)


def warn_of_moments(estimator, means, stds):
    """`warn_of_scale` by the means and standard deviations of the features, each of shape (n_features,)."""
    kernel, acts = getattr(estimator, "kernel", "linear"), estimator._scale
    if kernel != "linear":
        acts = None if kernel == "precomputed" or callable(kernel) else "distances"
    if acts is None:
        return
    means = np.abs(means)
    varies = stds > 1e-10 * (means + stds)
    if not varies.any():
        return
    means, stds, reasons = means[varies], stds[varies], []
    ratio, offset = stds.max() / stds.min(), (means / stds).max()
    if ratio > SCALES[acts]:
        reasons.append(f"their standard deviations differ by a factor of {ratio:.0f}")
    if acts == "penalty" and offset > OFFSETS:
        reasons.append(f"a mean is {offset:.0f} standard deviations from 0")
    if acts == "penalty" and stds.max() < TINY:
        reasons.append(f"no standard deviation is above {stds.max():.1g}")
    if reasons:
        what = {"penalty": "penalizes its weights", "distances": "measures distances"}
        warn(
            f"{type(estimator).__name__} {what[acts]}, but the features are not on one scale: "
            f"{', and '.join(reasons)}; put a StandardScaler in front",
            of_one_fit=True,  # a part of scaled features is not on one scale
        )
