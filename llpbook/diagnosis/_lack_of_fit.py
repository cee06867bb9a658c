r"""Is the mean embedding of a bag affine in its label proportions? The test of X ⊥ B | Y that needs no labels.

If features do not depend on the bag given the label, the mean of :math:`\phi(X)` in bag :math:`k` is
:math:`\mathbb E[m_k] = \sum_c \pi_{kc}\, \mu_c`, with the same class means :math:`\mu_c` for all bags. This is a linear
regression with replicates, and the test is that of lack of fit: what the bag means leave of the regression,

.. math:: T = \min_{\mu} \sum_k n_k \Big\lVert m_k - \sum_c \pi_{kc}\, \mu_c \Big\rVert^2 ,

against the noise. The replicates of a bag vary too much, for they hold the difference between the classes, whereas the
numbers of the classes in the bag are known and do not vary; with the class means, that part can be taken out.

Chapter: ``book/diagnosis``. Sources: franco2023 (section 4.5 leaves the test open; the test is ours); the approximation
of a quadratic form by three moments is that of imhof1961 (Pearson's).
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.stats import f, pearson3

from ..proportions import averaging_matrix
from ._combine import TestResult, combine_views, smallest_shift


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
    :math:`h_k = \lVert U_k \rVert^2`.

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
    return Design(U, solve, 1 - np.square(U).sum(axis=1))


def lack_of_fit(means, sizes, basis):
    r"""What the bag means leave of the affine model, weighted by the bag sizes.

    :math:`T = \sum_k n_k \lVert m_k - \sum_c \pi_{kc} \hat\mu_c \rVert^2 = \lVert (I - U U^\top) N^{1/2} m \rVert^2`,
    :eq:`eq-diag-lack-of-fit`.

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
    # eq: eq-diag-lack-of-fit
    return float(np.square(scaled - basis @ (basis.T @ scaled)).sum())


def label_covariance(proportions):
    r"""Covariance of the one-hot label of an instance of each bag.

    :math:`\operatorname{diag}(\pi_k) - \pi_k \pi_k^\top`.

    Parameters
    ----------
    proportions : ndarray, shape (n_bags, n_classes)

    Returns
    -------
    ndarray, shape (n_bags, n_classes, n_classes)
    """
    diagonal = proportions[:, :, None] * np.eye(proportions.shape[1])
    return diagonal - proportions[:, :, None] * proportions[:, None, :]


def within_class_noise(moments, design, mixing):
    r"""Variance of an instance around its class mean, for the mix of each bag.

    The variance around the *bag* mean, :math:`\operatorname{tr} W_k`, is larger, for it holds the difference between
    the classes: :math:`\tau_k = \operatorname{tr} W_k - \frac{n_k}{n_k - 1} \langle \operatorname{diag}(\pi_k) -
    \pi_k \pi_k^\top, G \rangle` (:eq:`eq-diag-noise`) with the Gram matrix of the class means, less its bias,
    :math:`G = \hat M \hat M^\top - A \operatorname{diag}(\operatorname{tr} W_k / n_k) A^\top`. The
    bias is taken at its largest: the noise errs, if at all, to the careful side.

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
    class_means = design.solve @ moments.means
    error = (design.solve * (moments.traces / moments.sizes)) @ design.solve.T
    gram = class_means @ class_means.T - error
    # eq: eq-diag-noise
    return moments.traces - np.tensordot(mixing, gram)


class Shape(NamedTuple):
    """Covariance within classes, scaled to trace 1.

    matrix (n_embedded, n_embedded); squares and cubes are the traces of its second and third power, as estimated.
    """

    matrix: np.ndarray
    squares: float
    cubes: float


def noise_shape(moments, design, mixing, corrected):
    r"""Shape of the covariance within classes.

    The covariances within bags, weighted by :math:`1 - h_k`, less what the difference of the class means adds; negative
    variances are set to 0. :math:`\operatorname{tr} S^2` is 1 over the effective dimension, freed of the bias that it
    has in Gaussian samples.

    Parameters
    ----------
    moments : BagMoments
    design : Design
    mixing : ndarray, shape (n_bags, n_classes, n_classes)
    corrected : bool
        Whether to take the class means out.

    Returns
    -------
    Shape
    """
    weights = design.free / (moments.sizes - 1)
    within = (moments.centred * weights[moments.codes][:, None]).T @ moments.centred
    if corrected:
        class_means = design.solve @ moments.means
        total = np.tensordot(design.free, mixing, 1)
        error = (design.solve / moments.sizes) @ design.solve.T
        grown = within * (1 + (total * error).sum() / design.free.sum())
        left = grown - class_means.T @ total @ class_means
        within = left if np.linalg.eigvalsh(left)[-1] > 0 else within
    values, vectors = eigh(within)
    values = np.maximum(values, 0) / np.maximum(values, 0).sum()
    dof, raw = moments.sizes.sum() - len(moments.sizes), np.square(values).sum()
    unbiased = (raw - 1 / dof) * dof**2 / ((dof - 1) * (dof + 2))
    squares = max(unbiased, 1 / len(values))
    cubes = (values**3).sum() * (squares / raw) ** 2
    return Shape((vectors * values) @ vectors.T, squares, cubes)


def fit_cumulants(design, noise, shape):
    r"""Variance and third cumulant of the lack of fit if the bag means are affine.

    With :math:`R = I - U U^\top` and :math:`T = \operatorname{diag}(\tau)`,
    :math:`2 \operatorname{tr} S^2 \operatorname{tr} (R T)^2` and
    :math:`8 \operatorname{tr} S^3 \operatorname{tr} (R T)^3`.

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
    r"""Variance and third cumulant of the variances within bags.

    As they enter the estimate of the expected lack of fit:

    :math:`2 \operatorname{tr} S^2 \sum_k (1 - h_k)^2 \tau_k^2 / (n_k - 1)` and
    :math:`8 \operatorname{tr} S^3 \sum_k (1 - h_k)^3 \tau_k^3 / (n_k - 1)^2`.

    Parameters
    ----------
    moments : BagMoments
    design : Design
    noise : ndarray, shape (n_bags,)
    shape : Shape

    Returns
    -------
    ndarray, shape (2,)
    """
    part, dof = design.free * noise, moments.sizes - 1
    return np.array(
        [
            2 * shape.squares * (part**2 / dof).sum(),
            8 * shape.cubes * (part**3 / dof**2).sum(),
        ]
    )


def gram_cumulants(moments, design, mixing, noise, shape):
    r"""Variance and third cumulant of what the class means take out of the noise.

    With :math:`\Omega = \sum_k (1 - h_k) \frac{n_k}{n_k - 1} (\operatorname{diag}(\pi_k) - \pi_k \pi_k^\top)` and
    :math:`C = A \operatorname{diag}(\tau / n) A^\top`, those of the quadratic form
    :math:`\langle \Omega, \hat M \hat M^\top \rangle` of Gaussian class means with the covariances :math:`C \otimes S`;
    the variance within bags of a difference between classes is added. The error of the
    estimated class means makes them too large rather than too small.

    Parameters
    ----------
    moments : BagMoments
    design : Design
    mixing : ndarray, shape (n_bags, n_classes, n_classes)
    noise : ndarray, shape (n_bags,)
    shape : Shape

    Returns
    -------
    ndarray, shape (2,)
    """
    means = design.solve @ moments.means
    once = means @ shape.matrix @ means.T
    twice = means @ shape.matrix @ shape.matrix @ means.T
    total = np.tensordot(design.free, mixing, 1)
    form = total @ (design.solve * (noise / moments.sizes)) @ design.solve.T
    inside = design.free**2 * noise / (moments.sizes - 1)
    second = 2 * shape.squares * np.trace(form @ form)
    second += 4 * np.trace(form @ total @ once)
    second += 4 * np.sum(np.tensordot(inside, mixing, 1) * once)
    third = 8 * shape.cubes * np.trace(form @ form @ form)
    third += 24 * np.trace(form @ form @ total @ twice)
    return np.array([second, third])


class AffineResult(NamedTuple):
    """What `affine_test` finds.

    statistic is the lack of fit over its expectation, 1 on average where the bag means are affine; deviation is their
    difference in standard deviations, and skewness that of its distribution; relative_sd is that standard deviation
    over the expectation; corrected says whether the class means were taken out of the noise, note why there is no test.
    """

    statistic: float
    pvalue: float
    deviation: float
    skewness: float
    relative_sd: float
    corrected: bool
    note: str = ""


#: The result where there is no test; its note says why.
NO_TEST = AffineResult(*[np.nan] * 5, False)


def smooth_noise(moments, design, noise):
    """The noise of each bag, smoothed.

    Affine in the proportions, positive, and the same in the expected lack of fit.

    Parameters
    ----------
    moments : BagMoments
    design : Design
    noise : ndarray, shape (n_bags,)

    Returns
    -------
    ndarray, shape (n_bags,)
    """
    root = np.sqrt(moments.sizes - 1)
    P = moments.proportions
    classes = np.linalg.lstsq(root[:, None] * P, root * noise, rcond=1e-8)[0]
    smooth = np.maximum(P @ classes, 0.05 * moments.traces.mean())
    expected = max(design.free @ noise, 0.02 * design.free @ moments.traces)
    return smooth * expected / (design.free @ smooth)


def cumulants(moments, design, mixing, noise, corrected):
    r"""Variance and third cumulant of lack of fit less estimated expectation.

    The sum of those of the parts. Where what is taken out for the class means, :math:`q`, is itself mostly error, the
    noise would come out small just when the lack of fit comes out large; the variances therefore rest on noise from
    which only :math:`q^2 / (q^2 + \operatorname{Var} q)` of it is taken out: :eq:`eq-diag-cumulants`.

    Parameters
    ----------
    moments : BagMoments
    design : Design
    mixing : ndarray, shape (n_bags, n_classes, n_classes)
    noise : ndarray, shape (n_bags,)
    corrected : bool

    Returns
    -------
    ndarray, shape (2,)
    """
    shape = noise_shape(moments, design, mixing, corrected)
    careful = smooth_noise(moments, design, moments.traces)
    if corrected:
        error = gram_cumulants(moments, design, mixing, careful, shape)[0]
        taken = max(design.free @ (moments.traces - noise), 0.0) ** 2
        sure = taken / (taken + error) if taken else 0.0
        mixed = sure * noise + (1 - sure) * moments.traces
        careful = smooth_noise(moments, design, mixed)
    down = noise_cumulants(moments, design, careful, shape)
    total = fit_cumulants(design, careful, shape) + down * [1, -1]
    if corrected:
        total += gram_cumulants(moments, design, mixing, careful, shape)
    # eq: eq-diag-cumulants
    return total


def class_means_are_known(moments, design, mixing):
    """Whether the class means can be taken out of the noise.

    They are determined, little of what they take out is error, and what they leave is no noise of next to nothing by
    chance, which would reject what is true: it is two standard errors of what they take out, or as far below nothing,
    which contradicts them.

    Parameters
    ----------
    moments : BagMoments
    design : Design
    mixing : ndarray, shape (n_bags, n_classes, n_classes)

    Returns
    -------
    bool
    """
    total = design.free @ moments.traces
    error = (design.solve * (moments.traces / moments.sizes)) @ design.solve.T
    share = (np.tensordot(design.free, mixing, 1) * error).sum()
    determined = design.basis.shape[1] == moments.proportions.shape[1]
    if not determined or share >= 0.2 * total:
        return False
    left = design.free @ within_class_noise(moments, design, mixing)
    shape = noise_shape(moments, design, mixing, True)
    careful = smooth_noise(moments, design, moments.traces)
    variance = gram_cumulants(moments, design, mixing, careful, shape)[0]
    return bool(abs(left) > 2 * variance**0.5)


def third_moment_cumulant(moments, design):
    r"""What skewed features add to the third cumulant of the lack of fit less its expectation, for a single feature.

    The difference is :math:`\sum_{i \ne j} a_{ij} x_i x_j`, with :math:`a_{ij} = (1 - h_k) / (n_k - 1)` in bag
    :math:`k` (and next to nothing between bags), so that its third cumulant has the term
    :math:`4 \mu_3^2 \sum_{i \ne j} a_{ij}^3` beside the Gaussian one. It is what makes the rare value of a column
    lumpy.

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
    third = (moments.centred**3).sum() / max(((n - 1) * (n - 2) / n).sum(), 1.0)
    inside = (n * design.free**3 / (n - 1) ** 2).sum()
    return float(4 * third**2 * inside)


def without_class_differences(features, moments, design):
    r"""Features orthogonal to the differences of the estimated class means.

    Shares that carry an error :math:`e_k` move the mean of bag :math:`k` by :math:`\sum_c e_{kc} \hat\mu_c`, in the
    span of the differences of the class means and nowhere else.

    Parameters
    ----------
    features : ndarray, shape (n_instances, n_embedded)
    moments : BagMoments
    design : Design

    Returns
    -------
    ndarray, shape (n_instances, n_embedded)
    """
    class_means = design.solve @ moments.means
    gaps = class_means - class_means.mean(axis=0)
    vectors = np.linalg.svd(gaps, full_matrices=False)[2][: len(gaps) - 1]
    return features - features @ vectors.T @ vectors


def affine_test(features, bags, proportions, exact=True):
    r"""Are bag means affine in the label proportions, as X ⊥ B | Y has it?

    The lack of fit :math:`T`, weighted by bag sizes, less its estimated expectation
    :math:`E = \sum_k (1 - h_k) \hat\tau_k`: under affine means the difference has mean 0 and the variance and third
    cumulant of `cumulants`. The p-value is the tail of the Pearson type III distribution with these moments, a shifted
    gamma distribution: :eq:`eq-diag-pearson`. Bags of one instance are left out. Cost :math:`O(n D^2 + L K^2)`.

    Parameters
    ----------
    features : ndarray, shape (n_instances, n_embedded)
        See `llpbook.diagnosis.embed`.
    bags : ndarray of int, shape (n_instances,)
    proportions : ndarray, shape (n_bags, n_classes)
    exact : bool, default True
        Whether the proportions are counts of these very instances. If they are not, the differences of the class means
        are taken out of the features (`without_class_differences`). If they are, and vary so little that the class
        means cannot be told, the noise is that around the bag means: too large, a test that holds its level and has
        less power.

    Returns
    -------
    AffineResult
        NaN, with a note, where no more bags of two instances are left than the rank of their proportions, and where the
        proportions are not exact and the class means cannot be told.
    """
    if (np.bincount(bags) > 1).sum() < 2:
        return NO_TEST._replace(note="fewer than two bags of two or more instances")
    proportions = proportions[:, proportions.any(axis=0)]
    moments = bag_moments(features, bags, proportions)
    design = affine_design(moments.proportions, moments.sizes)
    rank, n_classes = design.basis.shape[1], moments.proportions.shape[1]
    if rank >= len(moments.sizes):
        return NO_TEST._replace(
            note="no more bags than classes: any bag means are affine"
        )
    if not exact:
        if rank < n_classes or features.shape[1] <= n_classes:
            return NO_TEST._replace(
                note="shares that may carry error, and no direction free of it"
            )
        free = without_class_differences(features, moments, design)
        moments = bag_moments(free, bags, proportions)
    if 0 < moments.traces.sum() >= 1e12 * design.free @ moments.traces:
        return NO_TEST._replace(
            note="each bag that varies is needed for the class means"
        )
    return affine_pvalue(moments, design, exact)


def affine_pvalue(moments, design, exact):
    """The result of `affine_test` from moments and design; see there."""
    sizes, traces = moments.sizes, moments.traces
    lack = lack_of_fit(moments.means, sizes, design.basis)
    scale = sizes @ np.square(moments.means).sum(axis=1)
    if traces.sum() <= 1e-12 * scale:  # no variance within bags: affine, or not
        off = lack > 1e-9 * scale
        return AffineResult(np.inf if off else 0.0, float(not off), np.nan, 0, 0, exact)
    mixing = (
        label_covariance(moments.proportions) * (sizes / (sizes - 1))[:, None, None]
    )
    corrected = exact and class_means_are_known(moments, design, mixing)
    noise = within_class_noise(moments, design, mixing) if corrected else traces
    var, third = cumulants(moments, design, mixing, noise, corrected)
    if not var > 0:
        return NO_TEST._replace(
            note="too few instances to estimate the noise of bag means"
        )
    if moments.means.shape[1] == 1:
        third += third_moment_cumulant(moments, design)
    expected = max(design.free @ noise, 0.02 * design.free @ traces)
    deviation, skewness = (lack - expected) / var**0.5, third / var**1.5
    # eq: eq-diag-pearson
    pvalue = float(pearson3.sf(deviation, skewness))
    if moments.means.shape[1] == 1:
        pvalue = max(pvalue, ratio_tail(moments, design, noise, var, lack, expected))
    ratio, spread = lack / expected, var**0.5 / expected
    return AffineResult(ratio, pvalue, deviation, skewness, spread, corrected)


def ratio_tail(moments, design, noise, variance, lack, expected):
    """The tail of an F distribution for one feature: misfit over noise, with the degrees of freedom of their variances.

    Where few instances tell the noise, it is the heavier tail; in the analysis of variance it is exact.
    """
    smooth = smooth_noise(moments, design, noise)
    own = fit_cumulants(design, smooth, Shape(np.eye(1), 1.0, 1.0))[0]
    rest = max(variance - own, 1e-12 * own)
    ratio, square = lack / expected, 2 * expected**2
    return float(f.sf(ratio, square / own, square / rest))


def affine_tests(seen, bags, proportions, exact=True, alpha=0.05):
    r"""Are bag means affine in the label proportions? `affine_test` of each view, combined.

    Where the shares may carry error, the single columns are not tested: in one dimension such an error looks like a
    shift.

    Parameters
    ----------
    seen : Views
        See `llpbook.diagnosis.views`.
    bags : ndarray of int, shape (n_instances,)
    proportions : ndarray, shape (n_bags, n_classes)
    exact : bool, default True
    alpha : float, default 0.05
        For the smallest shift that would be found.

    Returns
    -------
    TestResult
        statistic and detectable are those of the whitened components.
    """
    F, used = seen.features, np.bincount(bags)
    used = used[used > 1]
    first, pvalues = None, np.full(len(seen.weights), np.nan)
    for i, weights in enumerate(seen.weights):
        part = np.flatnonzero(weights)
        if i > 1 and not (exact and is_varied(F[:, part], len(used))):
            continue
        found = affine_test(
            F[:, part] * np.sqrt(weights[part]), bags, proportions, exact
        )
        if found.note and i > 1:
            continue
        if found.note:
            return TestResult(np.nan, np.nan, note=found.note)
        pvalues[i], first = found.pvalue, first or found
    shift = smallest_shift(first.relative_sd, len(used), used.sum(), alpha)
    columns = pvalues[2:] if exact else None
    return TestResult(first.statistic, combine_views(pvalues), shift, columns)


def is_varied(column, n_bags, per_bag=1.0):
    """Whether enough instances have another value than the commonest: one a bag on average, and ten at least."""
    _, counts = np.unique(column, return_counts=True)
    return len(column) - counts.max() >= max(10, per_bag * n_bags)
