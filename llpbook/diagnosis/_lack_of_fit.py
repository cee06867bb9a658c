r"""Is the mean embedding of a bag affine in its label proportions? The test of X ⊥ B | Y that needs no labels.

If features do not depend on the bag given the label, the mean of :math:`\phi(X)` in bag :math:`b` is
:math:`\mathbb E[m_b] = \sum_y \pi_{by}\, \mu_y`, with the same class means :math:`\mu_y` for all bags. This is a linear
regression with replicates, and the test is that of lack of fit: what the bag means leave of the regression,

.. math:: Q = \min_{\mu} \sum_b n_b \Big\lVert m_b - \sum_y \pi_{by}\, \mu_y \Big\rVert^2 ,

against the noise.

Chapter: ``book/diagnosis``. Sources: franco2023 (section 4.5 leaves the test open; the test is ours); the approximation
of a quadratic form by three moments is that of imhof1961 (Pearson's).
"""

from typing import NamedTuple

import numpy as np
from scipy.stats import f, pearson3

from ._combine import TestResult, combine_views, smallest_shift
from ._noise import (
    Shape,
    affine_design,
    bag_moments,
    class_means_are_known,
    cumulants,
    expected_lack,
    fit_cumulants,
    smooth_noise,
    third_moment_cumulant,
    within_class_noise,
)

#: Shares of a sum of squares below which a variance, and a lack of fit, are rounding.
NO_VARIANCE, NO_LACK = 1e-12, 1e-9
#: A column is tested alone if so many instances, and one per bag on average, differ from its commonest value.
LEAST_VARIED = 10


def lack_of_fit(means, sizes, basis):
    r"""What the bag means leave of the affine model, weighted by the bag sizes.

    :math:`Q = \sum_b n_b \lVert m_b - \sum_y \pi_{by} \hat\mu_y \rVert^2
    = \lVert (I - U U^\top) \operatorname{diag}(n)^{1/2} m \rVert^2`, :eq:`eq-diag-lack-of-fit`.

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


class AffineResult(NamedTuple):
    """What `affine_test` finds.

    Attributes
    ----------
    statistic : float
        The lack of fit over its expectation: 1 on average where the bag means are affine.
    pvalue : float
    deviation : float
        Lack of fit less expectation, in standard deviations.
    skewness : float
        Of that difference.
    relative_sd : float
        The standard deviation over the expectation.
    corrected : bool
        Whether the class means were taken out of the noise.
    note : str
        Why there is no test.
    """

    statistic: float
    pvalue: float
    deviation: float
    skewness: float
    relative_sd: float
    corrected: bool
    note: str = ""


def no_test(note):
    """The result where there is no test, with a note that says why."""
    return AffineResult(*[np.nan] * 5, False, note)


def without_class_differences(features, moments, design):
    r"""Features orthogonal to the differences of the estimated class means.

    Shares that carry an error :math:`e_b` move the mean of bag :math:`b` by :math:`\sum_y e_{by} \hat\mu_y`, in the
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

    The lack of fit :math:`Q`, weighted by bag sizes, less its estimated expectation
    :math:`\hat E = \sum_b (1 - h_b) \hat\tau_b`: under affine means the difference has mean 0 and the variance and
    third cumulant of `cumulants`. The p-value is the tail of the Pearson type III distribution with these moments, a
    shifted gamma distribution: :eq:`eq-diag-pearson`. Bags of one instance are left out. Cost
    :math:`O(n q^2 + L K^2)`.

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
        return no_test("fewer than two bags of two or more instances")
    proportions = proportions[:, proportions.any(axis=0)]
    moments = bag_moments(features, bags, proportions)
    design = affine_design(moments.proportions, moments.sizes)
    rank, n_classes = design.basis.shape[1], moments.proportions.shape[1]
    if rank >= len(moments.sizes):
        return no_test("no more bags than classes: any bag means are affine")
    if not exact:
        if rank < n_classes or features.shape[1] <= n_classes:
            return no_test("shares that may carry error, and no direction free of it")
        free = without_class_differences(features, moments, design)
        moments = bag_moments(free, bags, proportions)
    variance = moments.traces.sum()
    if variance > 0 and design.free @ moments.traces <= NO_VARIANCE * variance:
        return no_test("each bag that varies is needed for the class means")
    return affine_pvalue(moments, design, exact)


def affine_pvalue(moments, design, exact):
    """The result of `affine_test` from moments and design; see there."""
    lack = lack_of_fit(moments.means, moments.sizes, design.basis)
    scale = moments.sizes @ np.square(moments.means).sum(axis=1)
    if moments.traces.sum() <= NO_VARIANCE * scale:  # no noise: affine, or not
        off = lack > NO_LACK * scale
        return AffineResult(np.inf if off else 0.0, float(not off), np.nan, 0, 0, exact)
    corrected = exact and class_means_are_known(moments, design)
    noise = within_class_noise(moments, design) if corrected else moments.traces
    var, third = cumulants(moments, design, noise, corrected)
    if not var > 0:
        return no_test("too few instances to estimate the noise of bag means")
    expected, tail = expected_lack(moments, design, noise), 0.0
    if moments.means.shape[1] == 1:
        third += third_moment_cumulant(moments, design)
        tail = ratio_tail(moments, design, noise, var, lack / expected, expected)
    deviation, skewness = (lack - expected) / var**0.5, third / var**1.5
    # eq: eq-diag-pearson
    pvalue = max(float(pearson3.sf(deviation, skewness)), tail)
    spread = var**0.5 / expected
    return AffineResult(lack / expected, pvalue, deviation, skewness, spread, corrected)


def ratio_tail(moments, design, noise, variance, ratio, expected):
    """The p-value of a single feature by an F distribution: misfit over noise, degrees of freedom from their variances.

    Where few instances tell the noise, its tail is the heavier one; in the analysis of variance it is exact.
    """
    smooth = smooth_noise(moments, design, noise)
    own = fit_cumulants(design, smooth, Shape(np.eye(1), 1.0, 1.0))[0]
    rest = max(variance - own, NO_VARIANCE * own)
    square = 2 * expected**2
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
    sizes = np.bincount(bags)
    n_bags, n_instances = (sizes > 1).sum(), sizes[sizes > 1].sum()
    first, pvalues = None, np.full(len(seen.weights), np.nan)
    for i, weights in enumerate(seen.weights):
        used, is_column = np.flatnonzero(weights), i > 1
        features = seen.features[:, used]
        if is_column and not (exact and _is_varied(features, n_bags)):
            continue
        found = affine_test(features * np.sqrt(weights[used]), bags, proportions, exact)
        if found.note and not is_column:
            return TestResult(np.nan, np.nan, note=found.note)
        pvalues[i], first = found.pvalue, first or found
    shift = smallest_shift(first.relative_sd, n_bags, n_instances, alpha)
    columns = seen.spread(pvalues[2:]) if exact else None
    return TestResult(first.statistic, combine_views(pvalues), shift, columns)


def _is_varied(column, n_bags):
    """Whether enough instances have another value than the commonest."""
    _, counts = np.unique(column, return_counts=True)
    return len(column) - counts.max() >= max(LEAST_VARIED, n_bags)
