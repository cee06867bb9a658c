"""The same for several classes: a tilt, a covariance matrix and a determinant where two classes have numbers."""

import numpy as np
from scipy.special import log_softmax, softmax, xlogy

from ._binary import MISCOUNT, TILT_STEPS

#: Halvings of a Newton step of `tilt_classes`, its largest entry (where all labels of a bag are sure, the matrix of
#: the step is near 0), and the range of scores that it can start from 0.
HALVINGS, LONGEST, STEEP = 40, 5.0, 20.0


def tilt_classes(F, known):
    r"""The numbers to add to the scores of a bag so that the expected counts are the observed ones.

    Damped Newton's method, all bags at once, on the convex function whose
    gradient is the miscount. Steep scores are halved until they are not, and
    then doubled, each tilt starting from twice the last one.

    Parameters
    ----------
    F : ndarray, shape (n_instances, n_classes)
        Scores, whose soft-max are the probabilities.
    known : BagCounts

    Returns
    -------
    ndarray, shape (n_bags, n_classes)
        :math:`-\infty` for a class that is known to be absent; else with mean 0.
    """
    absent = (known.counts <= 0) & (np.diagonal(known.errors, 0, 1, 2) == 0)
    T = np.where(absent, -np.inf, 0.0)
    halvings = np.log2(max(np.ptp(F) / STEEP, 1))
    for half in reversed(range(int(np.ceil(halvings)) + 1)):
        T = _newton(F / 2**half, 2 * T, known, absent)
    return T


def saddlepoint_classes(pi, known):
    r"""Probability of the counts, and of each label given them, from the moments of the tilted counts.

    :math:`P \approx \det(I + 2 \pi a \Sigma)^{-1/2}`, with
    :math:`a = m^{-1/(m - 1)}` for the m classes that a bag holds; of two classes it is `saddlepoint_posterior`.

    Parameters
    ----------
    pi : ndarray, shape (n_instances, n_classes)
        Tilted probabilities.
    known : BagCounts

    Returns
    -------
    log_p : ndarray, shape (n_bags,)
    posterior : ndarray, shape (n_instances, n_classes)
    """
    absent = _sums(pi, known) <= 0
    m = np.maximum((~absent).sum(axis=1), 2)
    unit = (2 * np.pi * m ** (-1 / (m - 1)))[:, None, None]
    H, eye = _covariances(pi, known) + known.errors, np.eye(pi.shape[1])
    log_p = -0.5 * np.linalg.slogdet(eye + unit * H)[1]
    log_p += 0.5 * np.linalg.slogdet(eye + unit * known.errors)[1]
    M = (unit * np.linalg.inv(eye + unit * H))[known.bags]
    along = np.diagonal(M, 0, 1, 2) - 2 * _times(M, pi)
    direct = _times_covariance(pi, along)
    moved = np.linalg.solve(_regular(H, absent), _sums(direct, known)[:, :, None])
    through_tilt = _times_covariance(pi, moved[known.bags, :, 0])
    return log_p, pi - 0.5 * (direct - through_tilt)


def class_posterior(F, known):
    r"""Log-likelihood of the counts of each bag, and the posterior of each label, for several classes.

    Parameters
    ----------
    F : ndarray, shape (n_instances, n_classes)
        Scores, whose soft-max are the probabilities.
    known : BagCounts

    Returns
    -------
    log_likelihood : ndarray, shape (n_bags,)
    posterior : ndarray, shape (n_instances, n_classes)
        Its difference to the probabilities is the gradient of the sum of the log-likelihoods.
    """
    T = tilt_classes(F, known)
    pi = softmax(F + T[known.bags], axis=1)
    log_p, posterior = saddlepoint_classes(pi, known)
    divergence = xlogy(pi, pi).sum(axis=1) - (pi * log_softmax(F, axis=1)).sum(axis=1)
    finite = np.where(np.isfinite(T), T, 0)
    misfit = np.sum(finite * _times(known.errors, finite), axis=1) / 2
    return log_p - known.sums(divergence) - misfit, posterior


def _newton(F, T, known, absent):
    """The tilt from a first guess of it."""
    value, pi = _dual(F, T, known)
    for _ in range(TILT_STEPS):
        gap = _sums(pi, known) + _times(known.errors, T) - known.counts
        if np.all(np.abs(gap) <= MISCOUNT * known.sizes[:, None]):
            break
        H = _covariances(pi, known) + known.errors
        step = -np.linalg.solve(_regular(H, absent), gap[:, :, None])[:, :, 0]
        step *= LONGEST / np.abs(step).max(axis=1, keepdims=True, initial=LONGEST)
        slope, rate = np.sum(gap * step, axis=1), np.ones(len(T))
        for _ in range(HALVINGS):
            new_value, pi = _dual(F, T + rate[:, None] * step, known)
            worse = new_value > value + 1e-4 * rate * slope + 1e-12 * np.abs(value)
            if not worse.any():
                break
            rate[worse] /= 2
        T, value = T + rate[:, None] * step, new_value
    return T


def _dual(F, T, known):
    """The convex function that the tilt minimises, and the tilted probabilities."""
    tilted = F + T[known.bags]
    top = tilted.max(axis=1)
    weights = np.exp(tilted - top[:, None])
    total = weights.sum(axis=1)
    finite = np.where(np.isfinite(T), T, 0)
    penalty = _times(known.errors, finite) / 2 - known.counts
    value = known.sums(np.log(total) + top) + np.sum(finite * penalty, axis=1)
    return value, weights / total[:, None]


def _sums(values, known):
    """Sums over each bag, shape (n_bags, n_columns)."""
    return np.column_stack([known.sums(column) for column in values.T])


def _times(matrices, vectors):
    """Each matrix times its vector; what is infinite meets only zeros, and counts as 0."""
    finite = np.where(np.isfinite(vectors), vectors, 0)
    return (matrices @ finite[:, :, None])[:, :, 0]


def _times_covariance(pi, vectors):
    """The covariance matrix of each label times a vector."""
    return pi * (vectors - np.sum(pi * vectors, axis=1, keepdims=True))


def _covariances(pi, known):
    """The covariance matrix of the counts of each bag, shape (n_bags, n_classes, n_classes)."""
    K = pi.shape[1]
    H = np.zeros((len(known.sizes), K, K))
    for j in range(K):
        H[:, j] = -_sums(pi * pi[:, [j]], known)
        H[:, j, j] += known.sums(pi[:, j])
    return H


def _regular(H, absent):
    """H made invertible: it is 0 along the constant vector of the classes that are there, and on those absent."""
    size = np.maximum(np.trace(H, axis1=1, axis2=2), 1e-12)[:, None, None]
    present = (~absent).astype(float)
    constant = present[:, :, None] * present[:, None, :]
    lone = absent[:, :, None] * np.eye(H.shape[1])
    return H + size * (constant / H.shape[1] + lone + 1e-12 * np.eye(H.shape[1]))
