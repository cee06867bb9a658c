"""The test of X ⊥ B | Y that needs no labels: bag means must be affine in the label proportions.

It is the classical test of lack of fit of a regression with replicates: the bag means are regressed on the
proportions, the instances of a bag are the replicates, and the F distribution says whether what the regression leaves
is large beside the variance within bags, less the difference between the classes.

Chapter: ``book/diagnosis``. Source: franco2023 (section 4.5 leaves the test open; the test is ours).
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import orth
from scipy.stats import f

from ..proportions import averaging_matrix
from ._views import TestResult, combine_views, smallest_shift

#: Directions of the weighted proportions with a singular value below this share of the largest are left out.
NO_DIRECTION = 1e-8
#: Shares of a sum of squares below which a variance, and a lack of fit, are rounding.
NO_VARIANCE, NO_LACK = 1e-12, 1e-9
#: A column is tested alone if so many instances, and one per bag on average, differ from its commonest value.
LEAST_VARIED = 10
#: The difference between the classes is taken out of the noise if what is left is so many standard errors above 0.
ERRORS_LEFT = 2


class BagMoments(NamedTuple):
    """Moments of the bags of two or more instances.

    sizes (n_bags,); means (n_bags, n_embedded); traces (n_bags,) of the covariances within bags; shape (n_embedded,
    n_embedded), their pooled covariance scaled to the trace 1, and dimension, the effective number of features in it;
    proportions (n_bags, n_classes).
    """

    sizes: np.ndarray
    means: np.ndarray
    traces: np.ndarray
    shape: np.ndarray
    dimension: float
    proportions: np.ndarray


def bag_moments(features, bags, proportions):
    """Compute the moments of the bags of two or more instances.

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
    means = averaging_matrix(codes, n_bags=len(sizes)) @ rows
    centered = rows - means[codes]
    squares = np.bincount(codes, np.square(centered).sum(axis=1), len(sizes))
    shape = centered.T @ centered / max(squares.sum(), np.finfo(float).tiny)
    dimension = effective_dimension(shape, sizes.sum() - len(sizes))
    traces, proportions = squares / (sizes - 1), proportions[kept]
    return BagMoments(sizes, means, traces, shape, dimension, proportions)


def effective_dimension(shape, dof):
    r"""Number of independent features of equal variance that vary as much: :math:`1 / \operatorname{tr} \Sigma^2`.

    :math:`\Sigma` is a covariance of trace 1, and its square is freed of the bias that it has in Gaussian samples of
    ``dof`` degrees of freedom.
    """
    if len(shape) == 1 or not shape.any():
        return 1.0
    unbiased = (np.square(shape).sum() - 1 / dof) * dof**2 / ((dof - 1) * (dof + 2))
    return 1 / min(max(unbiased, 1 / len(shape)), 1.0)


def lack_of_fit(means, sizes, proportions):
    r"""Residual sum of squares of the bag means, by weighted least squares on the proportions.

    :math:`Q = \min_\mu \sum_b n_b \lVert m_b - \sum_y \pi_{by} \mu_y \rVert^2`, :eq:`eq-diag-lack-of-fit`.

    Parameters
    ----------
    means : ndarray, shape (n_bags, n_embedded)
    sizes : ndarray, shape (n_bags,)
    proportions : ndarray, shape (n_bags, n_classes)

    Returns
    -------
    lack : float
        :math:`Q`.
    free : ndarray, shape (n_bags,)
        :math:`1 - h_b`, one minus the leverage of each bag.
    """
    root = np.sqrt(sizes)[:, None]
    U = orth(root * proportions, rcond=NO_DIRECTION)
    # eq: eq-diag-lack-of-fit
    left = root * means - U @ (U.T @ (root * means))
    return float(np.square(left).sum()), 1 - np.square(U).sum(axis=1)


def expected_lack(moments, free):
    r"""Lack of fit to expect by chance, and the degrees of freedom of the lack of fit and of its expectation.

    :math:`\hat E = \sum_b (1 - h_b) \bigl( \operatorname{tr} S_b - \frac{n_b}{n_b - 1} \langle C_b, \hat\Gamma \rangle
    \bigr)`, :eq:`eq-diag-noise`: the variance within a bag holds the difference between the classes, which is no noise
    of the bag mean. With the class means :math:`\hat M = H m`, :math:`\hat\Gamma` is :math:`\hat M \hat M^\top` less
    its bias. Where less than `ERRORS_LEFT` standard errors of noise would remain, the difference stays in: the noise is
    then too large, and the test too careful. Degrees of freedom are Satterthwaite's, :math:`2 \hat E^2` over the
    variance.

    Parameters
    ----------
    moments : BagMoments
    free : ndarray, shape (n_bags,)
        :math:`1 - h_b`.

    Returns
    -------
    expected, fit_dof, noise_dof : float
    """
    sizes, traces, P = moments.sizes, moments.traces, moments.proportions
    root, dimension = np.sqrt(sizes)[:, None], moments.dimension
    solve = np.linalg.pinv(root * P, rcond=NO_DIRECTION) * root.T  # H
    labels = P[:, :, None] * (np.eye(P.shape[1]) - P[:, None, :])  # C_b
    mixing = (sizes / (sizes - 1))[:, None, None] * labels
    means, bound = solve @ moments.means, free @ traces
    gram = means @ means.T - (solve * (traces / sizes)) @ solve.T
    # eq: eq-diag-noise
    expected = bound - np.sum(np.tensordot(free, mixing, 1) * gram)
    error = difference_variance(moments, free, solve, mixing)
    full_rank = round(free.sum()) == len(sizes) - P.shape[1]
    if not full_rank or expected < ERRORS_LEFT * error**0.5:
        expected, error = bound, 0.0
    within = (free**2 / (sizes - 1)).sum() / free.sum() ** 2
    variance = error + 2 / dimension * within * expected**2
    return expected, dimension * free.sum(), 2 * expected**2 / variance


def difference_variance(moments, free, solve, mixing):
    """Variance of the difference between the classes that `expected_lack` takes out of the noise."""
    noise = free @ moments.traces / free.sum()
    total, means = np.tensordot(free, mixing, 1), solve @ moments.means
    spread = means @ moments.shape @ means.T
    form = total @ ((solve * (noise / moments.sizes)) @ solve.T)
    inside = np.tensordot(free**2 * noise / (moments.sizes - 1), mixing, 1)
    own = 2 / moments.dimension * np.trace(form @ form)
    return own + 4 * np.sum((form @ total + inside) * spread)


class AffineResult(NamedTuple):
    """Result of `affine_test`.

    statistic, the lack of fit divided by its expectation, about 1 where the bag means are affine; pvalue;
    relative_sd, the standard deviation of the statistic; note, the reason if there is no test.
    """

    statistic: float
    pvalue: float
    relative_sd: float
    note: str = ""


def affine_test(features, bags, proportions, exact=True):
    r"""Test whether bag means are affine in the label proportions, as they are under X ⊥ B | Y.

    The ratio of the lack of fit to its expectation is compared with the F distribution, :eq:`eq-diag-pvalue`. Bags of
    one instance are left out.

    Parameters
    ----------
    features : ndarray, shape (n_instances, n_embedded)
    bags : ndarray of int, shape (n_instances,)
    proportions : ndarray, shape (n_bags, n_classes)
    exact : bool, default True
        True if the proportions are counts of these very instances. If not, the differences of the estimated class
        means are taken out of the features: an error of a share moves a bag mean along these and nowhere else.

    Returns
    -------
    AffineResult
        NaN, with a note, where no more bags of two instances are left than the rank of their proportions, and where the
        proportions are not exact and the class means cannot be told.
    """
    if (np.bincount(bags) > 1).sum() < 2:
        return no_test("fewer than two bags of two or more instances")
    proportions = proportions[:, proportions.any(axis=0)]
    moments = bag_moments(features, bags, proportions)
    sizes, matrix = moments.sizes, moments.proportions
    lack, free = lack_of_fit(moments.means, sizes, matrix)
    rank = round(len(sizes) - free.sum())
    if rank >= len(sizes):
        return no_test("no more bags than classes: any bag means are affine")
    if not exact:
        if rank < matrix.shape[1] or features.shape[1] <= matrix.shape[1]:
            return no_test("shares that may carry error, and no direction free of it")
        features = without_class_differences(features, moments)
        moments = bag_moments(features, bags, proportions)
        lack, free = lack_of_fit(moments.means, sizes, matrix)
    variance, scale = moments.traces.sum(), sizes @ np.square(moments.means).sum(axis=1)
    if variance <= NO_VARIANCE * scale:  # no noise: affine, or not
        off = lack > NO_LACK * scale
        return AffineResult(np.inf if off else 0.0, float(not off), 0.0)
    if free @ moments.traces <= NO_VARIANCE * variance:
        return no_test("each bag that varies is needed for the class means")
    expected, fit_dof, noise_dof = expected_lack(moments, free)
    # eq: eq-diag-pvalue
    pvalue = float(f.sf(lack / expected, fit_dof, noise_dof))
    relative_sd = (2 / fit_dof + 2 / noise_dof) ** 0.5
    return AffineResult(lack / expected, pvalue, relative_sd)


def no_test(note):
    """The result where there is no test, with a note that says why."""
    return AffineResult(np.nan, np.nan, np.nan, note)


def without_class_differences(features, moments):
    """Features orthogonal to the differences of the estimated class means."""
    root = np.sqrt(moments.sizes)[:, None]
    class_means = np.linalg.lstsq(root * moments.proportions, root * moments.means)[0]
    gaps = class_means - class_means.mean(axis=0)
    vectors = np.linalg.svd(gaps, full_matrices=False)[2][: len(gaps) - 1]
    return features - features @ vectors.T @ vectors


def affine_tests(seen, bags, proportions, exact=True, alpha=0.05):
    r"""Combine the `affine_test` of each view of the features.

    Where the shares may carry error, the single columns are not tested: in one dimension such an error looks like a
    shift.

    Parameters
    ----------
    seen : Views
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
    sizes = np.bincount(bags)
    n_bags, n_instances = (sizes > 1).sum(), sizes[sizes > 1].sum()
    first, pvalues = None, np.full(len(seen.weights), np.nan)
    for i, weights in enumerate(seen.weights):
        used, is_column = np.flatnonzero(weights), i > 1
        features = seen.features[:, used]
        if is_column and not (exact and _is_varied(features, n_bags)):
            continue
        one = affine_test(features * np.sqrt(weights[used]), bags, proportions, exact)
        if one.note and not is_column:
            return TestResult(np.nan, np.nan, note=one.note)
        pvalues[i], first = one.pvalue, first or one
    shift = smallest_shift(first.relative_sd, n_bags, n_instances, alpha)
    columns = seen.spread(pvalues[2:]) if exact else None
    return TestResult(first.statistic, combine_views(pvalues), shift, columns)


def _is_varied(column, n_bags):
    """True if enough instances have another value than the commonest."""
    _, counts = np.unique(column, return_counts=True)
    return len(column) - counts.max() >= max(LEAST_VARIED, n_bags)
