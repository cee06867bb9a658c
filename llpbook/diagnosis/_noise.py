r"""The noise of bag means: what varies within bags, less the difference between the classes; and its cumulants.

Bag :math:`b` has :math:`n_b` instances, the shares :math:`\pi_b`, the mean :math:`m_b` and the covariance :math:`S_b`.
If features do not depend on the bag given the label, :math:`m_b` varies around :math:`\sum_y \pi_{by} \mu_y` with a
covariance of trace :math:`\tau_b / n_b`. This :math:`\tau_b` is smaller than :math:`\operatorname{tr} S_b`, which also
holds the difference between the classes. That difference adds no noise to :math:`m_b`, for the numbers of the classes
in a bag are given.

Chapter: ``book/diagnosis``.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from ..proportions import averaging_matrix

#: Directions of the weighted proportions with a singular value below this share of the largest are left out.
NO_DIRECTION = 1e-8
#: Least noise of a bag after smoothing, as a share of the mean variance within bags.
LEAST_NOISE = 0.05
#: Least expected lack of fit, as a share of the one with the class means left in the noise.
LEAST_EXPECTED = 0.02
#: Class means are known if their error makes up less than this share of the noise,
MOST_ERROR = 0.2
#: and if the noise that is left without them is more than so many standard errors from 0.
ERRORS_LEFT = 2


class BagMoments(NamedTuple):
    """Means and spread of the bags of two or more instances.

    Attributes
    ----------
    sizes : ndarray, shape (n_bags,)
    means : ndarray, shape (n_bags, n_embedded)
    traces : ndarray, shape (n_bags,)
        Traces of the covariances within bags.
    centered : ndarray, shape (n_instances, n_embedded)
        Features less the mean of their bag.
    codes : ndarray of int, shape (n_instances,)
        The bag of each row of ``centered``.
    proportions : ndarray, shape (n_bags, n_classes)
    """

    sizes: np.ndarray
    means: np.ndarray
    traces: np.ndarray
    centered: np.ndarray
    codes: np.ndarray
    proportions: np.ndarray


def bag_moments(features, bags, proportions):
    """Means and spread of the bags of two or more instances.

    Parameters
    ----------
    features : ndarray, shape (n_instances, n_embedded)
    bags : ndarray of int, shape (n_instances,)
    proportions : ndarray, shape (n_bags, n_classes)

    Returns
    -------
    BagMoments
    """
    sizes = np.bincount(bags, minlength=len(proportions))
    kept = sizes > 1
    codes = (np.cumsum(kept) - 1)[bags[kept[bags]]]
    rows, sizes = features[kept[bags]], sizes[kept].astype(float)
    means = averaging_matrix(codes, len(sizes)) @ rows
    centered = rows - means[codes]
    squares = np.square(centered).sum(axis=1)
    traces = np.bincount(codes, squares, len(sizes)) / (sizes - 1)
    return BagMoments(sizes, means, traces, centered, codes, proportions[kept])


class Design(NamedTuple):
    r"""Weighted least squares of bag means on proportions.

    Attributes
    ----------
    basis : ndarray, shape (n_bags, rank)
        :math:`U`, orthonormal, spans the weighted proportions.
    solve : ndarray, shape (n_classes, n_bags)
        :math:`H`: times the bag means, it gives the class means.
    free : ndarray, shape (n_bags,)
        :math:`1 - h_b`, one minus the leverage of each bag.
    mixing : ndarray, shape (n_bags, n_classes, n_classes)
        :math:`\frac{n_b}{n_b - 1} C_b`: what the Gram matrix of the class means adds to the variance within a bag.
    """

    basis: np.ndarray
    solve: np.ndarray
    free: np.ndarray
    mixing: np.ndarray

    @property
    def total_mixing(self):
        r""":math:`\Lambda = \sum_b (1 - h_b) \frac{n_b}{n_b - 1} C_b`: what it adds to the expected lack of fit."""
        return np.tensordot(self.free, self.mixing, 1)

    def error(self, variances):
        r"""Covariance of the class means, :math:`H \operatorname{diag}(v_b) H^\top`, by the variances of bag means."""
        return (self.solve * variances) @ self.solve.T


def affine_design(proportions, sizes):
    r"""Least squares with the bag sizes as weights.

    With :math:`\operatorname{diag}(n)^{1/2} \Pi = U D V^\top`, the class means are :math:`\hat M = H m`,
    :math:`H = V D^{-1} U^\top \operatorname{diag}(n)^{1/2}`, and bag :math:`b` has the leverage
    :math:`h_b = \lVert U_b \rVert^2`.

    Parameters
    ----------
    proportions : ndarray, shape (n_bags, n_classes)
    sizes : ndarray, shape (n_bags,)
        Above 1.

    Returns
    -------
    Design
        Directions in which the proportions do not vary are left out.
    """
    root = np.sqrt(sizes)[:, None]
    U, values, Vt = np.linalg.svd(root * proportions, full_matrices=False)
    rank = int((values > NO_DIRECTION * values[0]).sum())
    U, solve = U[:, :rank], (Vt[:rank].T / values[:rank]) @ (root * U[:, :rank]).T
    mixing = (sizes / (sizes - 1))[:, None, None] * label_covariance(proportions)
    return Design(U, solve, 1 - np.square(U).sum(axis=1), mixing)


def label_covariance(proportions):
    r"""Covariance of the one-hot label of an instance of each bag.

    :math:`C_b = \operatorname{diag}(\pi_b) - \pi_b \pi_b^\top`.

    Parameters
    ----------
    proportions : ndarray, shape (n_bags, n_classes)

    Returns
    -------
    ndarray, shape (n_bags, n_classes, n_classes)
    """
    diagonal = proportions[:, :, None] * np.eye(proportions.shape[1])
    return diagonal - proportions[:, :, None] * proportions[:, None, :]


def within_class_noise(moments, design):
    r"""Variance of an instance around its class mean, for the mix of each bag.

    The variance around the *bag* mean, :math:`\operatorname{tr} S_b`, is larger, for it holds the difference between
    the classes: :math:`\tau_b = \operatorname{tr} S_b - \frac{n_b}{n_b - 1} \langle C_b, \hat\Gamma \rangle`
    (:eq:`eq-diag-noise`) with the Gram matrix of the class means, less its bias,
    :math:`\hat\Gamma = \hat M \hat M^\top - H \operatorname{diag}(\operatorname{tr} S_b / n_b) H^\top`. The bias is
    taken at its largest, so that the noise is too large rather than too small.

    Parameters
    ----------
    moments : BagMoments
    design : Design

    Returns
    -------
    ndarray, shape (n_bags,)
    """
    class_means = design.solve @ moments.means
    gram = class_means @ class_means.T - design.error(moments.traces / moments.sizes)
    # eq: eq-diag-noise
    return moments.traces - np.tensordot(design.mixing, gram)


def class_means_are_known(moments, design):
    """Whether the class means can be taken out of the noise.

    The proportions must determine them, and little of what is taken out may be their error. The noise that is left must
    differ from 0 by more than chance: with noise near 0 by chance, the test would reject what is true. Noise far below
    0 is allowed, for it contradicts affine bag means.

    Parameters
    ----------
    moments : BagMoments
    design : Design

    Returns
    -------
    bool
    """
    if design.basis.shape[1] < moments.proportions.shape[1]:
        return False
    error = design.total_mixing * design.error(moments.traces / moments.sizes)
    if error.sum() >= MOST_ERROR * design.free @ moments.traces:
        return False
    left = design.free @ within_class_noise(moments, design)
    variance = taken_variance(moments, design, noise_shape(moments, design, True))
    return bool(abs(left) > ERRORS_LEFT * variance**0.5)


def expected_lack(moments, design, noise):
    """Expectation of the lack of fit for this noise of the bags, kept away from 0."""
    return max(design.free @ noise, LEAST_EXPECTED * design.free @ moments.traces)


def smooth_noise(moments, design, noise):
    """The noise of each bag, smoothed: affine in the proportions, above 0, with the same expected lack of fit.

    Parameters
    ----------
    moments : BagMoments
    design : Design
    noise : ndarray, shape (n_bags,)

    Returns
    -------
    ndarray, shape (n_bags,)
    """
    root, P = np.sqrt(moments.sizes - 1), moments.proportions
    classes = np.linalg.lstsq(root[:, None] * P, root * noise, rcond=NO_DIRECTION)[0]
    smooth = np.maximum(P @ classes, LEAST_NOISE * moments.traces.mean())
    return smooth * expected_lack(moments, design, noise) / (design.free @ smooth)


class Shape(NamedTuple):
    r"""Covariance within classes, scaled to the trace 1.

    Attributes
    ----------
    matrix : ndarray, shape (n_embedded, n_embedded)
        :math:`\Sigma`.
    squares, cubes : float
        Estimates of :math:`\operatorname{tr} \Sigma^2` and :math:`\operatorname{tr} \Sigma^3`.
    """

    matrix: np.ndarray
    squares: float
    cubes: float


def noise_shape(moments, design, corrected):
    r"""Shape of the covariance within classes.

    The covariances within bags, weighted by :math:`1 - h_b`, less what the difference of the class means adds; negative
    variances are set to 0. :math:`\operatorname{tr} \Sigma^2`, which is 1 over the effective dimension, is freed of the
    bias that it has in Gaussian samples.

    Parameters
    ----------
    moments : BagMoments
    design : Design
    corrected : bool
        Whether to take the class means out.

    Returns
    -------
    Shape
    """
    weights = (design.free / (moments.sizes - 1))[moments.codes]
    within = (moments.centered * weights[:, None]).T @ moments.centered
    if corrected:
        within = _without_class_means(within, moments, design)
    values, vectors = eigh(within)
    values = np.maximum(values, 0) / np.maximum(values, 0).sum()
    dof, raw = moments.sizes.sum() - len(moments.sizes), np.square(values).sum()
    unbiased = (raw - 1 / dof) * dof**2 / ((dof - 1) * (dof + 2))
    squares = max(unbiased, 1 / len(values))
    cubes = (values**3).sum() * (squares / raw) ** 2
    return Shape((vectors * values) @ vectors.T, squares, cubes)


def _without_class_means(within, moments, design):
    """A weighted sum of covariances within bags, less what the class means add, unless nothing would be left."""
    class_means, total = design.solve @ moments.means, design.total_mixing
    error = (total * design.error(1 / moments.sizes)).sum() / design.free.sum()
    left = within * (1 + error) - class_means.T @ total @ class_means
    return left if np.linalg.eigvalsh(left)[-1] > 0 else within


def cumulants(moments, design, noise, corrected):
    r"""Variance and third cumulant of lack of fit less estimated expectation.

    The sum of those of three parts: the lack of fit, the variances within bags, and :math:`g`, which is taken out for
    the class means. Where :math:`g` is mostly error, the noise comes out small when the lack of fit comes out large.
    The cumulants therefore rest on noise from which only :math:`g^2 / (g^2 + \operatorname{Var} g)` of :math:`g` is
    taken out: :eq:`eq-diag-cumulants`.

    Parameters
    ----------
    moments : BagMoments
    design : Design
    noise : ndarray, shape (n_bags,)
    corrected : bool
        Whether the class means were taken out of ``noise``.

    Returns
    -------
    ndarray, shape (2,)
    """
    shape, careful = noise_shape(moments, design, corrected), moments.traces
    if corrected:
        error = taken_variance(moments, design, shape)
        taken = max(design.free @ (moments.traces - noise), 0.0) ** 2
        sure = taken / (taken + error) if taken else 0.0
        careful = sure * noise + (1 - sure) * moments.traces
    careful = smooth_noise(moments, design, careful)
    down = noise_cumulants(moments, design, careful, shape)
    total = fit_cumulants(design, careful, shape) + down * [1, -1]
    if corrected:
        total += gram_cumulants(moments, design, careful, shape)
    # eq: eq-diag-cumulants
    return total


def taken_variance(moments, design, shape):
    """Variance of what is taken out of the expected lack of fit for the class means, where all noise is left in."""
    noise = smooth_noise(moments, design, moments.traces)
    return gram_cumulants(moments, design, noise, shape)[0]


def fit_cumulants(design, noise, shape):
    r"""Variance and third cumulant of the lack of fit if the bag means are affine.

    With :math:`R = I - U U^\top` and :math:`\Theta = \operatorname{diag}(\tau_b)`,
    :math:`2 \operatorname{tr} \Sigma^2 \operatorname{tr} (R \Theta)^2` and
    :math:`8 \operatorname{tr} \Sigma^3 \operatorname{tr} (R \Theta)^3`.

    Parameters
    ----------
    design : Design
    noise : ndarray, shape (n_bags,)
    shape : Shape

    Returns
    -------
    ndarray, shape (2,)
    """
    U = design.basis
    once, twice = (U.T @ (noise[:, None] ** k * U) for k in (1, 2))
    second = noise**2 @ (2 * design.free - 1) + np.square(once).sum()
    third = noise**3 @ (3 * design.free - 2) + 3 * np.sum(once * twice)
    third -= np.trace(once @ once @ once)
    return np.array([2 * shape.squares * second, 8 * shape.cubes * third])


def noise_cumulants(moments, design, noise, shape):
    r"""Variance and third cumulant of the variances within bags, as the expected lack of fit sums them.

    :math:`2 \operatorname{tr} \Sigma^2 \sum_b (1 - h_b)^2 \tau_b^2 / (n_b - 1)` and
    :math:`8 \operatorname{tr} \Sigma^3 \sum_b (1 - h_b)^3 \tau_b^3 / (n_b - 1)^2`.

    Parameters
    ----------
    moments : BagMoments
    design, noise, shape
        As for `fit_cumulants`.

    Returns
    -------
    ndarray, shape (2,)
    """
    part, dof = design.free * noise, moments.sizes - 1
    second, third = (part**2 / dof).sum(), (part**3 / dof**2).sum()
    return np.array([2 * shape.squares * second, 8 * shape.cubes * third])


def gram_cumulants(moments, design, noise, shape):
    r"""Variance and third cumulant of what the class means take out of the expected lack of fit.

    Those of the quadratic form :math:`\langle \Lambda, \hat M \hat M^\top \rangle` of Gaussian class means with the
    covariances :math:`\Omega \otimes \Sigma`, :math:`\Omega = H \operatorname{diag}(\tau_b / n_b) H^\top`; the variance
    within bags of a difference between classes is added. The error of the estimated class means makes the cumulants too
    large rather than too small.

    Parameters
    ----------
    moments, design, noise, shape
        As for `noise_cumulants`.

    Returns
    -------
    ndarray, shape (2,)
    """
    means, total = design.solve @ moments.means, design.total_mixing
    once = means @ shape.matrix @ means.T
    twice = means @ shape.matrix @ shape.matrix @ means.T
    form = total @ design.error(noise / moments.sizes)
    inside = design.free**2 * noise / (moments.sizes - 1)
    second = 2 * shape.squares * np.trace(form @ form)
    second += 4 * np.trace(form @ total @ once)
    second += 4 * np.sum(np.tensordot(inside, design.mixing, 1) * once)
    third = 8 * shape.cubes * np.trace(form @ form @ form)
    third += 24 * np.trace(form @ form @ total @ twice)
    return np.array([second, third])


def third_moment_cumulant(moments, design):
    r"""What skewed features add to the third cumulant of the lack of fit less its expectation, for a single feature.

    The difference is :math:`\sum_{i \ne j} a_{ij} x_i x_j`, with :math:`a_{ij} = (1 - h_b) / (n_b - 1)` in bag
    :math:`b` (and next to nothing between bags), so that its third cumulant has the term
    :math:`4 \mu_3^2 \sum_{i \ne j} a_{ij}^3` beside the Gaussian one. It matters where a value of a column is rare.

    Parameters
    ----------
    moments : BagMoments
        With one embedded feature.
    design : Design

    Returns
    -------
    float
    """
    n = moments.sizes
    third = (moments.centered**3).sum() / max(((n - 1) * (n - 2) / n).sum(), 1.0)
    inside = (n * design.free**3 / (n - 1) ** 2).sum()
    return float(4 * third**2 * inside)
