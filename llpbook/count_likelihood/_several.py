"""The likelihood of the counts of several classes, by a saddlepoint approximation."""

import numpy as np
from scipy.special import log_softmax, softmax, xlogy

from .._linear import tilt_classes, tilt_step


def saddlepoint_classes(pi, observed):
    r"""Probability of the counts, and of each label given them, from the moments of the tilted counts.

    :math:`P \approx \det(I + 2 \pi a \Sigma)^{-1/2}`, with
    :math:`a = m^{-1/(m - 1)}` for the m classes that a bag holds; of two classes it is `saddlepoint_posterior`.

    Parameters
    ----------
    pi : ndarray, shape (n_instances, n_classes)
        Tilted probabilities.
    observed : BagCounts

    Returns
    -------
    log_p : ndarray, shape (n_bags,)
    posterior : ndarray, shape (n_instances, n_classes)
    """
    absent = observed.sums(pi) <= 0
    m = np.maximum((~absent).sum(axis=1), 2)
    unit = (2 * np.pi * m ** (-1 / (m - 1)))[:, None, None]
    H, eye = observed.covariances(pi), np.eye(pi.shape[1])
    log_p = -0.5 * np.linalg.slogdet(eye + unit * H)[1]
    log_p += 0.5 * np.linalg.slogdet(eye + unit * observed.errors)[1]
    M = (unit * np.linalg.inv(eye + unit * H))[observed.bags]
    along = np.diagonal(M, 0, 1, 2) - 2 * (M @ pi[:, :, None])[:, :, 0]
    direct = _times_covariance(pi, along)
    moved = tilt_step(H, absent, observed.sums(direct))
    through_tilt = _times_covariance(pi, moved[observed.bags])
    return log_p, pi - 0.5 * (direct - through_tilt)


def class_posterior(F, observed, *, T=None):
    r"""Log-likelihood of the counts of each bag, and the posterior of each label, for several classes.

    Parameters
    ----------
    F : ndarray, shape (n_instances, n_classes)
        Scores, whose soft-max are the probabilities.
    observed : BagCounts
    T : ndarray, shape (n_bags, n_classes), optional
        The tilt, where it is known.

    Returns
    -------
    log_likelihood : ndarray, shape (n_bags,)
    posterior : ndarray, shape (n_instances, n_classes)
        Its difference to the probabilities is the gradient of the sum of the log-likelihoods.
    """
    T = tilt_classes(F, observed) if T is None else T
    pi = softmax(F + T[observed.bags], axis=1)
    log_p, posterior = saddlepoint_classes(pi, observed)
    divergence = xlogy(pi, pi).sum(axis=1) - (pi * log_softmax(F, axis=1)).sum(axis=1)
    finite = np.where(np.isfinite(T), T, 0)
    misfit = np.einsum("kij,ki,kj->k", observed.errors, finite, finite) / 2
    return log_p - observed.sums(divergence) - misfit, posterior


def _times_covariance(pi, vectors):
    """The covariance matrix of each label times a vector."""
    return pi * (vectors - np.sum(pi * vectors, axis=1, keepdims=True))


def class_factors(F, observed):
    r"""Factors of the Fisher information of the counts of several classes, to first order.

    They hold the part of the labels that is linear in the counts.

    With :math:`C_i` the covariance matrix of the label of an instance and :math:`V_k` that of the counts, the
    information is :math:`\sum_k R_k^\top V_k^+ R_k`, :math:`R_k = \sum_{i \in B_k} C_i \otimes x_i^\top`.

    Parameters
    ----------
    F : ndarray, shape (n_instances, n_classes)
        Scores.
    observed : BagCounts

    Returns
    -------
    list of ndarray, shape (n_instances, n_classes)
        One per class.
    """
    s = softmax(F, axis=1)
    values, vectors = np.linalg.eigh(observed.covariances(s))
    large = values > 1e-9 * np.maximum(values[:, -1:], 1e-300)
    root = np.where(large, values, np.inf) ** -0.5
    factors = []
    for m in range(F.shape[1]):
        w = (root[:, [m]] * vectors[:, :, m])[observed.bags]
        factors.append(s * (w - np.sum(w * s, axis=1, keepdims=True)))
    return factors
