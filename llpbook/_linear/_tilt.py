"""The tilt of class probabilities with which counts of several classes are expected."""

import numpy as np

#: Newton steps of a tilt, and the miscount, as a share of the bag, that ends them.
TILT_STEPS, MISCOUNT = 100, 1e-12
#: Halvings of a Newton step of `tilt_classes`, its largest entry (where all labels of a bag are sure, the matrix of
#: the step is near 0), and the range of scores that it can start from 0.
HALVINGS, LONGEST, STEEP = 40, 5.0, 20.0


def tilt_classes(F, observed, start=None):
    r"""Numbers to add to the scores of a bag so that the expected counts are the observed ones.

    Damped Newton's method, all bags at once, on the convex function whose
    gradient is the miscount. Steep scores are halved until they are not, and
    then doubled, each tilt starting from twice the last one.

    Parameters
    ----------
    F : ndarray, shape (n_instances, n_classes)
        Scores, whose soft-max are the probabilities.
    observed : BagCounts
        Of several classes.
    start : ndarray, shape (n_bags, n_classes), optional
        The tilt for other scores that were nearly these.

    Returns
    -------
    ndarray, shape (n_bags, n_classes)
        :math:`-\infty` for a class that is known to be absent; else with mean 0.
    """
    absent = (observed.counts <= 0) & (np.diagonal(observed.errors, 0, 1, 2) == 0)
    if start is not None:
        T, settled = _newton(F, start, observed, absent)
        if settled:
            return T
    T = np.where(absent, -np.inf, 0.0)
    halvings = np.log2(max(np.ptp(F[np.isfinite(F)]) / STEEP, 1))
    for half in reversed(range(int(np.ceil(halvings)) + 1)):
        T, _ = _newton(F / 2**half, 2 * T, observed, absent)
    return T


def tilt_step(H, absent, gap):
    """Change of the tilts that changes expected counts by ``gap``, to first order.

    Parameters
    ----------
    H : ndarray, shape (n_bags, n_classes, n_classes)
        As of `BagCounts.covariances`: 0 along the constant vector of the classes that are there, and on those absent.
    absent : ndarray of bool, shape (n_bags, n_classes)
    gap : ndarray, shape (n_bags, n_classes)

    Returns
    -------
    ndarray, shape (n_bags, n_classes)
    """
    K = H.shape[1]
    size = np.maximum(np.trace(H, axis1=1, axis2=2), 1e-12)[:, None, None]
    present = (~absent).astype(float)
    constant = present[:, :, None] * present[:, None, :]
    lone = absent[:, :, None] * np.eye(K)
    regular = H + size * (constant / K + lone + 1e-12 * np.eye(K))
    return np.linalg.solve(regular, gap[:, :, None])[:, :, 0]


def _newton(F, T, observed, absent):
    """Newton's method for the tilt from a first guess; returns the tilt, and True if it meets the counts."""
    value, pi = _dual(F, T, observed)
    for _ in range(TILT_STEPS):
        gap = observed.sums(pi) + _pull(observed, T) - observed.counts
        if np.all(np.abs(gap) <= 1e3 * MISCOUNT * observed.sizes[:, None]):
            return T, True
        step = -tilt_step(observed.covariances(pi), absent, gap)
        step *= LONGEST / np.abs(step).max(axis=1, keepdims=True, initial=LONGEST)
        slope, rate = np.sum(gap * step, axis=1), np.ones(len(T))
        for _ in range(HALVINGS):
            new_value, pi = _dual(F, T + rate[:, None] * step, observed)
            worse = new_value > value + 1e-4 * rate * slope + 1e-12 * np.abs(value)
            if not worse.any():
                break
            rate[worse] /= 2
        T, value = T + rate[:, None] * step, new_value
    return T, False


def _dual(F, T, observed):
    """Value of the convex function that the tilt minimizes, and the tilted probabilities."""
    tilted = F + T[observed.bags]
    top = tilted.max(axis=1)
    weights = np.exp(tilted - top[:, None])
    total = weights.sum(axis=1)
    finite = np.where(np.isfinite(T), T, 0)
    penalty = _pull(observed, T) / 2 - observed.counts
    value = observed.sums(np.log(total) + top) + np.sum(finite * penalty, axis=1)
    return value, weights / total[:, None]


def _pull(observed, T):
    """Product of the errors of the counts with the tilt; an infinite tilt meets only zeros, and counts as 0."""
    return (observed.errors @ np.where(np.isfinite(T), T, 0)[:, :, None])[:, :, 0]
