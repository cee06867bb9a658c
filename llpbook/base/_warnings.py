"""Warnings of a fit: features on different scales, codes among numbers, and a solver that stopped early."""

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from .._input import quote
from ._chunked import InChunks
from ._numbers import blocks
from ._running import is_comparing, warn


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


#: At most `CODES` different values, so many ranges of all others away from them, look like a code, if the others have
#: `VALUES` different ones; what stands in one row only must be `ONCE_GAP` ranges away, since columns with a long tail
#: have such values. They are sought in about `LOOKED_AT` rows and among the extremes; `MOST` columns with such
#: values are then read whole.
CODE_GAP, ONCE_GAP, CODES, VALUES, LOOKED_AT, MOST = 10, 50, 2, 10, 2000, 20
#: Where there are many columns, about so many entries are sorted, in so many rows at least.
ENTRIES, FEWEST = 2 * 10**6, 50
#: Smaller ranges, in gaps, are rounding.
LEAST_RANGE = 1e-12


def warn_of_codes(estimator, X):
    """Warn where a feature holds a value far from all others, such as -999 for a missing one.

    Parameters
    ----------
    estimator : LLPClassifier
        Its ``feature_names_in_``, if there, name the column.
    X : ndarray, sparse array or InChunks, shape (n_instances, n_features)
        Chunks are not looked at, and of a sparse array only columns with few zeros.
    """
    if is_comparing() or isinstance(X, InChunks) or X.shape[0] < VALUES:
        return
    columns = np.arange(X.shape[1])
    if sp.issparse(X):
        columns = np.flatnonzero(
            np.bincount(X.indices, minlength=X.shape[1]) > X.shape[0] / 2
        )
        X = X[:, columns].toarray()
    odd = far_values(X)
    if not odd:
        return
    j, (value, ranges) = next(iter(odd.items()))
    name = columns[j]
    if hasattr(estimator, "feature_names_in_"):
        name = estimator.feature_names_in_[name]
    warn(
        f"column {quote(name)} of X holds {value:.10g}, {ranges:.0f} times the range of the other values away from "
        "them. If it is a code for a missing value, make it NaN before any step, people.replace(code, np.nan), and "
        "impute it by SimpleImputer(); if it is real, clip it",
        of_one_fit=True,
    )


def far_values(X):
    """Find the columns with values far from all others: the farthest value, and how many ranges they are away.

    Parameters
    ----------
    X : ndarray, shape (n_instances, n_features)

    Returns
    -------
    dict
        Column to (value, ranges).
    """
    rows = min(LOOKED_AT, max(FEWEST, ENTRIES // max(1, X.shape[1])))
    some = X[:: max(1, len(X) // rows)]
    some = np.vstack([some, X.min(axis=0), X.max(axis=0)])
    columns = list(_far_values_of_all(some))[:MOST]
    odd = _far_values_of_all(X[:, columns])
    return {columns[j]: value for j, value in odd.items()}


def _far_values_of_all(X):
    """`far_values` of every row and column."""
    Z = np.sort(X, axis=0)
    low = np.arange(len(Z) - 1)[:, None] < len(Z) // 2  # most values are above the gap
    rest = np.where(low, Z[-1] - Z[1:], Z[:-1] - Z[0])
    gaps = np.diff(Z, axis=0)
    far = (gaps > CODE_GAP * rest) & (rest > LEAST_RANGE * gaps)
    odd = {}
    for j in np.flatnonzero(far.any(axis=0)):
        k = min(np.flatnonzero(far[:, j]), key=lambda k: abs(k - len(gaps) / 2))
        below, above = np.unique(Z[: k + 1, j]), np.unique(Z[k + 1 :, j])
        codes, others = (below, above) if low[k] else (above, below)
        repeated = (k + 1 if low[k] else len(gaps) - k) > len(codes)
        far_enough = repeated or gaps[k, j] > ONCE_GAP * rest[k, j]
        if far_enough and len(codes) <= CODES and len(others) >= VALUES:
            odd[int(j)] = Z[0 if low[k] else -1, j], gaps[k, j] / rest[k, j]
    return odd


#: Bags of several instances, and their part of all bags, from which on it is no chance that each has one class alone:
#: persons that are bags of one, drawn with replacement, are two or more in two fifths of the bags.
PURE_BAGS, MANY = 10, 0.75


def warn_of_bag_labels(sizes, proportions):
    """Warn where each bag of several instances has one class alone, as labels of bags would say.

    Parameters
    ----------
    sizes : ndarray, shape (n_bags,)
    proportions : ndarray, shape (n_bags, n_classes)
    """
    several = sizes > 1
    enough = several.sum() >= max(PURE_BAGS, MANY * (sizes > 0).sum())
    if enough and np.isin(proportions[several], (0, 1)).all():
        warn(
            f"each of the {several.sum()} bags with several instances has one class alone by its share, so every one "
            "of its instances is taken for this class. If 1 says that at least one instance is positive, it is the "
            "label of a bag and no share: multiple-instance learning is for such labels, and this package has none",
            of_one_fit=True,
        )
