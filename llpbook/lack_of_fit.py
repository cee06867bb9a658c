r"""Is the mean embedding of a bag affine in its label proportions? The test of X ⊥ B | Y that needs no labels.

If features do not depend on the bag given the label, the mean of :math:`\phi(X)` in bag :math:`k` is
:math:`\mathbb E[m_k] = \sum_c \pi_{kc}\, \mu_c`, with the same class means :math:`\mu_c` for all bags. This is a linear
regression with replicates, and the test is that of lack of fit: what the bag means leave of the regression,

.. math:: T = \min_{\mu} \sum_k n_k \Big\lVert m_k - \sum_c \pi_{kc}\, \mu_c \Big\rVert^2 ,

against the noise. The replicates of a bag vary too much, for they hold the difference between the classes, whereas the
numbers of the classes in the bag are known and do not vary; with the class means, that part can be taken out.

Chapter: ``book/variants``. Sources: franco2023 (section 4.5 leaves the test open; the test is ours); box1954 for the
distribution.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.stats import f

from .proportions import averaging_matrix


class BagMoments(NamedTuple):
    """Bags of two or more instances: what the lack of fit is computed from.

    sizes (n_bags,), means (n_bags, n_embedded), traces (n_bags,) of the covariances within bags, centred
    (n_instances, n_embedded), codes (n_instances,), proportions (n_bags, n_classes).
    """

    sizes: np.ndarray
    means: np.ndarray
    traces: np.ndarray
    centred: np.ndarray
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
    centred = rows - means[codes]
    squares = np.square(centred).sum(axis=1)
    traces = np.bincount(codes, squares, len(sizes)) / (sizes - 1)
    return BagMoments(sizes, means, traces, centred, codes, proportions[kept])


class Design(NamedTuple):
    """Weighted least squares of bag means on proportions.

    basis (n_bags, rank) is orthonormal and spans the weighted proportions; solve (n_classes, n_bags) gives the class
    means; free (n_bags,) is one minus the leverage of each bag.
    """

    basis: np.ndarray
    solve: np.ndarray
    free: np.ndarray


def affine_design(proportions, sizes):
    r"""Least squares with the bag sizes as weights.

    With :math:`N^{1/2} \Pi = U D V^\top`, the class means are
    :math:`\hat M = A\, m`, :math:`A = V D^{-1} U^\top N^{1/2}`, and bag :math:`k` has the leverage
    :math:`h_k = \lVert U_k \rVert^2`: :eq:`eq-var-design`.

    Parameters
    ----------
    proportions : ndarray, shape (n_bags, n_classes)
    sizes : ndarray, shape (n_bags,)

    Returns
    -------
    Design
        Directions in which the proportions do not vary are left out.
    """
    root = np.sqrt(sizes)[:, None]
    U, values, Vt = np.linalg.svd(root * proportions, full_matrices=False)
    rank = int((values > 1e-8 * values[0]).sum())
    U, solve = U[:, :rank], (Vt[:rank].T / values[:rank]) @ (root * U[:, :rank]).T
    return Design(U, solve, 1 - np.square(U).sum(axis=1))  # eq: eq-var-design


def lack_of_fit(means, sizes, basis):
    r"""What the bag means leave of the affine model, weighted by the bag sizes.

    :math:`T = \sum_k n_k \lVert m_k - \sum_c \pi_{kc} \hat\mu_c \rVert^2 = \lVert (I - U U^\top) N^{1/2} m \rVert^2`,
    :eq:`eq-var-lack-of-fit`.

    Parameters
    ----------
    means : ndarray, shape (n_bags, n_embedded)
    sizes : ndarray, shape (n_bags,)
    basis : ndarray, shape (n_bags, rank)

    Returns
    -------
    float
    """
    scaled = np.sqrt(sizes)[:, None] * means
    return float(
        np.square(scaled - basis @ (basis.T @ scaled)).sum()
    )  # eq: eq-var-lack-of-fit


def label_covariance(proportions):
    r"""Covariance of the one-hot label of an instance of each bag.

    :math:`\operatorname{diag}(\pi_k) - \pi_k \pi_k^\top`, :eq:`eq-var-label-covariance`.

    Parameters
    ----------
    proportions : ndarray, shape (n_bags, n_classes)

    Returns
    -------
    ndarray, shape (n_bags, n_classes, n_classes)
    """
    diagonal = proportions[:, :, None] * np.eye(proportions.shape[1])
    return (
        diagonal - proportions[:, :, None] * proportions[:, None, :]
    )  # eq: eq-var-label-covariance


def within_class_noise(moments, design, mixing):
    r"""Variance of an instance around its class mean, for the mix of classes in each bag.

    The variance around the *bag* mean, :math:`\operatorname{tr} W_k`, is larger, for it holds the difference between
    the classes. Both follow from one another: with the Gram matrix :math:`G` of the class means,
    :math:`\tau_k = \operatorname{tr} W_k - \frac{n_k}{n_k - 1} \langle \operatorname{diag}(\pi_k) - \pi_k \pi_k^\top,
    G \rangle` (:eq:`eq-var-noise`), and free of bias
    :math:`G = \hat M \hat M^\top - A \operatorname{diag}(\tau / n) A^\top` (:eq:`eq-var-gram`): iterate.

    Parameters
    ----------
    moments : BagMoments
    design : Design
    mixing : ndarray, shape (n_bags, n_classes, n_classes)
        :math:`\frac{n_k}{n_k - 1}` times `label_covariance`.

    Returns
    -------
    ndarray, shape (n_bags,)
    """
    class_means, noise = design.solve @ moments.means, moments.traces
    for _ in range(100):
        error = (design.solve * (noise / moments.sizes)) @ design.solve.T
        gram = class_means @ class_means.T - error  # eq: eq-var-gram
        before = noise
        noise = moments.traces - np.tensordot(mixing, gram)  # eq: eq-var-noise
        if np.abs(noise - before).max() <= 1e-10 * moments.traces.max():
            break
    return noise


def noise_shape(moments, design, mixing, corrected):
    r"""Shape of the covariance within classes, of trace 1, and its effective dimension.

    The covariances within bags, weighted by :math:`1 - h_k`, less what the difference of the class means adds. The
    effective dimension :math:`D = (\operatorname{tr} \Sigma)^2 / \operatorname{tr} \Sigma^2` is the number of features
    of equal variance, uncorrelated, that would make energies as variable: :eq:`eq-var-dimension`.

    Parameters
    ----------
    moments : BagMoments
    design : Design
    mixing : ndarray, shape (n_bags, n_classes, n_classes)
    corrected : bool
        Whether to take the class means out.

    Returns
    -------
    shape : ndarray, shape (n_embedded, n_embedded)
    dimension : float
    """
    weights = design.free / (moments.sizes - 1)
    within = (moments.centred * weights[moments.codes][:, None]).T @ moments.centred
    if corrected:
        class_means = design.solve @ moments.means
        total = np.tensordot(design.free, mixing, 1)
        error = (design.solve / moments.sizes) @ design.solve.T
        within = within * (1 + (total * error).sum() / design.free.sum())
        within = within - class_means.T @ total @ class_means
    values, vectors = eigh(within)
    values = np.maximum(values, 0) / np.maximum(values, 0).sum()
    dof, squares = moments.sizes.sum() - len(moments.sizes), np.square(values).sum()
    # A sample covariance has too large a sum of squares, by known terms if Gaussian.
    squares = max(
        (squares - 1 / dof) * dof**2 / ((dof - 1) * (dof + 2)), 1 / len(values)
    )
    return (vectors * values) @ vectors.T, 1 / squares  # eq: eq-var-dimension


def fit_variance(design, noise, dimension):
    r"""Variance of the lack of fit if the bag means are affine.

    :math:`\frac2D \sum_{jk} R_{jk}^2 \tau_j \tau_k` with :math:`R = I - U U^\top`, :eq:`eq-var-fit-variance`.

    Parameters
    ----------
    design : Design
    noise : ndarray, shape (n_bags,)
    dimension : float

    Returns
    -------
    float
    """
    inner = design.basis.T @ (noise[:, None] * design.basis)
    total = np.square(noise) @ (2 * design.free - 1) + np.square(inner).sum()
    return 2 / dimension * total  # eq: eq-var-fit-variance


def noise_variance(moments, design, mixing, noise, shape, dimension, corrected):
    r"""Variance of the estimate of the expected lack of fit.

    That of the variances within bags, :math:`\frac2D \sum_k (1 - h_k)^2 \tau_k^2 / (n_k - 1)`, and, where the class
    means are taken out, that of their Gram matrix: :eq:`eq-var-noise-variance`.

    Parameters
    ----------
    moments : BagMoments
    design : Design
    mixing : ndarray, shape (n_bags, n_classes, n_classes)
    noise : ndarray, shape (n_bags,)
    shape : ndarray, shape (n_embedded, n_embedded)
    dimension : float
    corrected : bool

    Returns
    -------
    float
    """
    sizes, weights = moments.sizes, np.square(design.free)
    value = 2 / dimension * (weights * np.square(noise) / (sizes - 1)).sum()
    if corrected:
        class_means = design.solve @ moments.means
        spread = class_means @ shape @ class_means.T
        error = (design.solve * (noise / sizes)) @ design.solve.T
        total = np.tensordot(design.free, mixing, 1)
        inner = np.tensordot(weights * noise / (sizes - 1), mixing, 1)
        value += 4 * (inner * spread).sum()
        value += 2 / dimension * np.trace(total @ error @ total @ error)
        value += 4 * np.trace(total @ error @ total @ spread)
    return value  # eq: eq-var-noise-variance


class AffineResult(NamedTuple):
    """What `affine_test` finds.

    statistic is the lack of fit over its expectation, 1 on average where the bag means are affine; df are the degrees
    of freedom of its F distribution; corrected says whether the class means were taken out of the noise.
    """

    statistic: float
    pvalue: float
    df: tuple
    corrected: bool


def smooth_noise(moments, design, noise, expected):
    """The noise of each bag, smoothed: affine in the proportions, positive, and with the same expected lack of fit.

    Parameters
    ----------
    moments : BagMoments
    design : Design
    noise : ndarray, shape (n_bags,)
    expected : float

    Returns
    -------
    ndarray, shape (n_bags,)
    """
    root = np.sqrt(moments.sizes - 1)
    P = moments.proportions
    classes = np.linalg.lstsq(root[:, None] * P, root * noise, rcond=1e-8)[0]
    smooth = np.maximum(P @ classes, 0.05 * moments.traces.mean())
    return smooth * expected / (design.free @ smooth)


def class_means_are_known(moments, design, mixing):
    """Whether the class means can be taken out of the noise: they are determined, and less than half of it is error.

    Parameters
    ----------
    moments : BagMoments
    design : Design
    mixing : ndarray, shape (n_bags, n_classes, n_classes)

    Returns
    -------
    bool
    """
    error = (design.solve * (moments.traces / moments.sizes)) @ design.solve.T
    share = (np.tensordot(design.free, mixing, 1) * error).sum()
    determined = design.basis.shape[1] == moments.proportions.shape[1]
    return bool(determined and share < 0.5 * design.free @ moments.traces)


def affine_test(features, bags, proportions, exact=True):
    r"""Are the mean embeddings of the bags affine in their label proportions, as X ⊥ B | Y has it?

    The lack of fit :math:`T`, weighted by bag sizes, against its expectation
    :math:`E = \sum_k (1 - h_k) \tau_k`: :math:`T / E` is taken to be :math:`F`-distributed with the degrees of freedom
    :math:`2 E^2 / \operatorname{Var} T` and :math:`2 E^2 / \operatorname{Var} \hat E` (Box's approximation),
    :eq:`eq-var-f`. With one feature,
    one class and bags of one size it is the F-test of a one-way analysis of variance. Bags of one instance are left out.
    Cost :math:`O(n D^2 + L K^2)`.

    Parameters
    ----------
    features : ndarray, shape (n_instances, n_embedded)
        See `llpbook.independence.embed`.
    bags : ndarray of int, shape (n_instances,)
    proportions : ndarray, shape (n_bags, n_classes)
    exact : bool, default True
        Whether the proportions are counts of these very instances. If they are not, or vary so little that the class
        means cannot be told, the noise is that around the bag means: for counts, too large, a test that holds its level
        and has less power.

    Returns
    -------
    AffineResult
        NaN where no more bags of two instances are left than the rank of their proportions.
    """
    moments = bag_moments(features, bags, proportions[:, proportions.any(axis=0)])
    sizes, traces = moments.sizes, moments.traces
    if len(sizes) < 2 or sizes.sum() - len(sizes) < 2 or not traces.any():
        return AffineResult(np.nan, np.nan, (np.nan, np.nan), False)
    design = affine_design(moments.proportions, sizes)
    if design.basis.shape[1] >= len(sizes):
        return AffineResult(np.nan, np.nan, (np.nan, np.nan), False)
    grow = (sizes / (sizes - 1))[:, None, None]
    mixing = grow * label_covariance(moments.proportions)
    corrected = exact and class_means_are_known(moments, design, mixing)
    noise = within_class_noise(moments, design, mixing) if corrected else traces
    expected = max(design.free @ noise, 0.02 * design.free @ traces)
    noise = smooth_noise(moments, design, noise, expected)
    shape, dimension = noise_shape(moments, design, mixing, corrected)
    of_fit = fit_variance(design, noise, dimension)
    of_noise = noise_variance(
        moments, design, mixing, noise, shape, dimension, corrected
    )
    df = 2 * expected**2 / of_fit, 2 * expected**2 / of_noise
    statistic = lack_of_fit(moments.means, sizes, design.basis) / expected
    return AffineResult(
        statistic, float(f.sf(statistic, *df)), df, corrected
    )  # eq: eq-var-f
