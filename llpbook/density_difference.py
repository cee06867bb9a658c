r"""Two bags: the sign of the difference of their densities labels the instances.

Two samples have the same class-conditional densities :math:`p_+, p_-` and different class priors
:math:`\theta > \theta'`, so :math:`p = \theta p_+ + (1 - \theta) p_-` and :math:`p' = \theta' p_+ + (1 - \theta') p_-`.
Subtract: :math:`p - p' = (\theta - \theta')(p_+ - p_-)`. The Bayes rule for balanced classes is

.. math:: y = \operatorname{sign} [p(x) - p'(x)] ,

up to a swap of the classes; the proportions tell which class is which. This module holds what all methods for two bags
share, and the plainest of these methods: estimate each density by kernels, then compare.

Chapter: ``book/density_difference``. Source: duplessis2013 (sections 2 and 4).
"""

from abc import ABC, abstractmethod
from numbers import Real

import numpy as np
import pandas as pd
from scipy.spatial.distance import pdist
from scipy.special import logsumexp
from sklearn.metrics import euclidean_distances
from sklearn.utils import check_random_state

from ._counts import whole_counts
from ._input import (
    ArrayLike,
    Matrix,
    Proportions,
    RandomState,
    as_column,
    check_bags,
    check_positional,
    sorted_values,
)
from .base import (
    BagData,
    Interval,
    LLPClassifier,
    NotIdentifiableError,
    StrOptions,
    candidates,
    canonical_order,
    fitting,
    in_blocks,
    median_distance,
    require_memory,
    thin,
    tune,
    warn,
)

__all__ = ["KDEDifference", "TwoBagClassifier", "labeling_error_rate", "toy_problem"]

#: Widths that `lscv_width` tries, in units of the median distance.
KDE_WIDTHS = np.geomspace(0.02, 2.0, 41)
#: Peak memory of `lscv_width`, in matrices of one distance for each pair.
WIDTH_COPIES = 4.0


def pool_bags(bags, proportions, bag_sizes):
    r"""Make two samples of many bags: those above the class prior, and the others.

    The pooled share is :math:`\theta = \sum_{k \in P} n_k \pi_k / \sum_{k \in P} n_k`, equation :eq:`eq-dd-pooled`.

    Parameters
    ----------
    bags : ndarray of int, shape (n_instances,)
        Rows of ``proportions``.
    proportions : ndarray, shape (n_bags,)
        Share of the positive class.
    bag_sizes : ndarray, shape (n_bags,)
        0 for a bag without instances.

    Returns
    -------
    in_p : ndarray of bool, shape (n_instances,)
        The instances of the first sample. A bag at the prior (up to 2e-6) is in the second.
    theta, theta_prime : float
        Share of the positive class in each of the two samples.

    Raises
    ------
    NotIdentifiableError
        If no share exceeds the prior by more than 2e-6: all are equal.
    """
    prior = np.average(proportions, weights=bag_sizes)
    # A share and the prior may each be off by 1e-6: this must move no bag.
    above = (proportions > prior + 2e-6) & (bag_sizes > 0)
    if not above.any():
        raise NotIdentifiableError(
            f"proportions has the same share of the positive class, {prior:.6g}, "
            "for all bags: two samples with different class balances are needed"
        )
    # eq: eq-dd-pooled
    theta, theta_prime = (
        float(np.average(proportions, weights=bag_sizes * side))
        for side in (above, ~above)
    )
    return above[bags], theta, theta_prime


def prior_weights(theta, theta_prime, eta=0.5):
    r"""Weights of the two densities whose difference has the sign of the Bayes rule.

    Solve the two mixtures for the class densities; then :math:`\eta p_+ - (1 - \eta) p_- \propto w\, p - w' p'` with
    :math:`w = \eta (1 - \theta') + (1 - \eta) \theta'`, :math:`w' = \eta (1 - \theta) + (1 - \eta) \theta`, equation
    :eq:`eq-dd-weights`, here rescaled to a mean of 1.

    Parameters
    ----------
    theta, theta_prime : float
        Share of the positive class in the first and second sample, ``theta > theta_prime``.
    eta : float, default 0.5
        Class prior of the instances to predict, in (0, 1).

    Returns
    -------
    w, w_prime : float
        Both 1 for ``eta = 0.5``.
    """
    # eq: eq-dd-weights
    w = eta * (1 - theta_prime) + (1 - eta) * theta_prime
    w_prime = eta * (1 - theta) + (1 - eta) * theta
    return 2 * w / (w + w_prime), 2 * w_prime / (w + w_prime)


def gaussian_basis(X, centers, sigma):
    r"""Gaussian bumps of one width around centers.

    :math:`\varphi_\ell(x) = \exp(-\lVert x - z_\ell \rVert^2 / 2 \sigma^2)`, equation :eq:`eq-dd-basis`.
    :math:`O(n b d)`.

    Parameters
    ----------
    X : ndarray, shape (n, n_features)
    centers : ndarray, shape (b, n_features)
    sigma : float
        Width, in the units of X.

    Returns
    -------
    ndarray, shape (n, b)
    """
    phi = euclidean_distances(X, centers, squared=True)
    phi *= -1 / (2 * sigma**2)
    # eq: eq-dd-basis
    return np.exp(phi, out=phi)


def scores_in_one_unit(values, log_scales):
    """Turn criteria to minimize, whose units may overflow, into comparable scores: the larger, the better.

    Parameters
    ----------
    values, log_scales : ndarray, shape (m,)
        The criteria are ``values * exp(log_scales)``.

    Returns
    -------
    ndarray, shape (m,)
        Minus the criteria, in the unit of the smallest of them, so that the best score is finite.
    """
    with np.errstate(divide="ignore", over="ignore"):
        size = np.log(np.abs(values)) + log_scales
        best = np.lexsort((np.where(values < 0, -size, size), values >= 0))[0]
        return -np.sign(values) * np.exp(size - log_scales[best])


def kde_log_density(X, points, sigma):
    r"""Logarithm of a Gaussian kernel density estimate.

    :math:`\hat p(x) = \frac1n (2 \pi \sigma^2)^{-d/2} \sum_i \exp(-\lVert x - x_i \rVert^2 / 2 \sigma^2)`, equation
    :eq:`eq-dd-kde`, duplessis2013 section 2.3. :math:`O(m n d)` time, some rows of X at a time.

    Parameters
    ----------
    X : ndarray, shape (m, n_features)
        Where to evaluate.
    points : ndarray, shape (n, n_features)
        The sample.
    sigma : float

    Returns
    -------
    ndarray, shape (m,)
        Finite, however far a row is from the sample.
    """
    n, d = points.shape

    def log_sum(part):
        squared = euclidean_distances(part, points, squared=True)
        return logsumexp(squared / (-2 * sigma**2), axis=1)

    scale = np.log(n) + d / 2 * np.log(2 * np.pi * sigma**2)
    # eq: eq-dd-kde
    return in_blocks(X, n, log_sum) - scale


def lscv_criterion(squared_distances, n, d, sigma):
    r"""Least-squares cross-validation of a kernel density, in closed form.

    :math:`\int \hat p^2 - \frac2n \sum_i \hat p_{-i}(x_i)`, which estimates :math:`\int (\hat p - p)^2 - \int p^2`. All
    integrals are Gaussian.

    Parameters
    ----------
    squared_distances : ndarray, shape (n (n - 1) / 2,)
        One for each pair.
    n, d : int
        Size and dimension of the sample.
    sigma : float

    Returns
    -------
    float
        The criterion times :math:`(2 \pi \sigma^2)^{d/2}`, a factor that overflows in high dimension: compare widths by
        `scores_in_one_unit`.
    """
    wide = np.exp(squared_distances / (-4 * sigma**2))
    square = (1 / n + 2 / n**2 * wide.sum()) * 2.0 ** (-d / 2)
    return square - 4 / (n * (n - 1)) * (wide @ wide)


def lscv_width(X, sigma="cv", max_points=1000):
    r"""Width of a Gaussian kernel density estimate by least-squares cross-validation.

    The best of `KDE_WIDTHS` times the median distance. Of a large sample, ``max_points`` rows (`thin`) are used,
    and the width is scaled by :math:`(m / n)^{1 / (d + 4)}`, the rate at which the best width falls with n.

    Parameters
    ----------
    X : ndarray, shape (n, n_features)
        At least 2 rows. Many equal rows make the criterion fall without bound as the width goes to 0 (the density has
        atoms): expect the smallest width of the grid.
    sigma : float, "cv", "median" or array-like, default "cv"
        The candidates, see `llpbook.base.candidates`.
    max_points : int, default 1000

    Returns
    -------
    sigma : float
    cv_results : DataFrame
        Columns ``sigma``, ``score``.
    """
    points = thin(X, max_points)
    m, d = points.shape
    pairs, way = 8.0 * m**2 / 2, "take a smaller max_points"
    require_memory(f"lscv_width on {m} points", WIDTH_COPIES * pairs, way)
    shrink = (m / len(X)) ** (1 / (d + 4))
    widths = candidates("sigma", sigma, shrink * KDE_WIDTHS, median_distance(points))
    scores = np.full(len(widths), np.nan)
    if len(widths) > 1:
        wide, distances = widths / shrink, pdist(points, "sqeuclidean")
        values = np.array([lscv_criterion(distances, m, d, s) for s in wide])
        scores = scores_in_one_unit(values, -d * np.log(wide))
    best, table = tune(list(zip(widths, scores, strict=True)), sigma=float)
    return best["sigma"], table


def labeling_error_rate(labels: ArrayLike, y: ArrayLike) -> float:
    """Share of wrong labels, up to a swap of the classes.

    The smaller of e and 1 - e, e the share of wrong labels among all instances. (The paper adds the shares of the two
    samples, a number between 0 and 2, of which 1 less it is no rate.)

    Parameters
    ----------
    labels, y : array-like, shape (n_instances,)
        In the same two values.

    Returns
    -------
    float
        At most 0.5; labels by the toss of a coin have about 0.5 - (2 pi n)^(-1/2) on average.

    Raises
    ------
    ValueError
        If the lengths differ, or there are more than two values.

    Examples
    --------
    >>> from llpbook.density_difference import labeling_error_rate
    >>> labeling_error_rate([0, 0, 1, 1], [1, 1, 0, 1])
    0.25
    """
    labels, y = as_column(labels), as_column(y)
    if labels.shape != y.shape or labels.ndim != 1 or len(y) == 0:
        raise ValueError(
            "labels must have one entry for each of y, "
            f"got shapes {labels.shape} and {y.shape}"
        )
    values = sorted_values(np.append(labels, y))
    if len(values) > 2:
        raise ValueError(
            f"labels and y must share two values, got {values.tolist()[:5]}"
        )
    error = np.mean(labels != y)
    return float(min(error, 1 - error))


def class_counts(size, prior):
    """Number of instances of each class in a sample, whole numbers by `whole_counts`.

    Parameters
    ----------
    size : int
    prior : float
        Share of the positive class.

    Returns
    -------
    ndarray of int, shape (2,)

    Raises
    ------
    ValueError
        If ``size`` is below 1 or ``prior`` outside [0, 1].
    """
    if size < 1 or not 0 <= prior <= 1:
        raise ValueError(
            f"sizes must be at least 1 and priors in [0, 1], got size {size!r} and prior {prior!r}"
        )
    return whole_counts(np.array([1 - prior, prior]), size)


def toy_means(which):
    """Centers of the unit Gaussians in the two classes of a toy problem.

    The Gaussians of a class are mixed with equal weights (duplessis2013, section 4.1).

    Parameters
    ----------
    which : {1, 2}

    Returns
    -------
    negative, positive : ndarray, shape (n_components, 2)

    Raises
    ------
    ValueError
        For another number.
    """
    means = {
        1: ([[1, 1]], [[-1, -1]]),
        2: ([[0, 3], [0, -3]], [[3, 0], [-3, 0]]),
    }
    if which not in means:
        raise ValueError(f"which must be 1 or 2, got {which!r}")
    return tuple(np.array(m, dtype=float) for m in means[which])


def toy_problem(
    which: int, *, n: int | tuple[int, int] = 30,
    priors: tuple[float, float] = (0.3, 0.7), random_state: RandomState = None,
):  # fmt: skip
    """Draw two bags from a toy problem of the paper.

    Parameters
    ----------
    which : {1, 2}
        1: one Gaussian per class; 2: two per class, placed so that the clusters of the data are not the classes.
    n : int or (int, int), default 30
        Sizes of the two samples.
    priors : (float, float), default (0.3, 0.7)
        Share of the positive class (the paper's y = 1) in each; counts are exact, as by `class_counts`.
    random_state : int, RandomState or None

    Returns
    -------
    X : ndarray, shape (n + n', 2)
    y : ndarray of int, shape (n + n',)
    bags : ndarray of int, shape (n + n',)
        0 for the first sample, 1 for the second.

    Examples
    --------
    >>> import numpy as np
    >>> from llpbook.density_difference import toy_problem
    >>> X, y, bags = toy_problem(1, n=20, random_state=0)
    >>> X.shape, np.bincount(bags, y).tolist()
    ((40, 2), [6.0, 14.0])
    """
    rng, means, X, y = check_random_state(random_state), toy_means(which), [], []
    sizes = np.broadcast_to(n, 2)
    counts = [class_counts(n, prior) for n, prior in zip(sizes, priors, strict=True)]
    for label, count in ((c, bag[c]) for bag in counts for c in (0, 1)):
        component = rng.randint(len(means[label]), size=count)
        X.append(means[label][component] + rng.normal(size=(count, 2)))
        y.append(np.full(count, label))
    return np.vstack(X), np.concatenate(y), np.repeat([0, 1], np.sum(counts, axis=1))


def toy_log_densities(which, X):
    """True class-conditional log densities of a toy problem.

    The Bayes rule for balanced classes is their order.

    Parameters
    ----------
    which : {1, 2}
    X : array-like, shape (m, 2)

    Returns
    -------
    ndarray, shape (m, 2)
        Columns: the negative and the positive class.
    """
    X = np.asarray(X, dtype=float)
    return np.column_stack([kde_log_density(X, m, 1.0) for m in toy_means(which)])


class TwoBagClassifier(LLPClassifier, ABC):
    r"""Base of the methods for two bags.

    Reads the input, makes two samples and passes them on. Without proportions there must be exactly two bags, and the
    classes are 0 and 1: class 1 is where the first bag (the smaller name) is denser. That is the true labeling
    up to a swap. With proportions, of two bags or of many, the bags above the class prior are pooled into the first
    sample and the others into the second (`pool_bags`), and class 1 is the positive class. Pooling uses of
    each share only its side of the prior: where more than two different shares are pooled, an `LLPWarning` says so.

    All methods use distances only, and a large offset (a column of times in seconds) would cost digits. So the median
    of the training instances is subtracted. Leave out a feature that is constant in them: it changes no distance, but
    counts as a dimension where `KDEDifference` and `LSDD` choose a width by cross-validation, which is then too small.

    Attributes
    ----------
    classes_ : ndarray, shape (2,)
    origin_ : ndarray, shape (n_features,)
        The median of the training instances, which is subtracted at fit and prediction. The instances and centers that
        a method stores are relative to this origin.
    pooled_proportions_ : (float, float) or None
        Share of the positive class in the two samples, where known.

    Notes
    -----
    Swapping the classes swaps the predictions, unless a bag is at the class prior: it is in the second sample before
    and after the swap, because it has to be in one of the two.

    Examples
    --------
    >>> from llpbook import KDEDifference, LSDD
    >>> from llpbook.density_difference import TwoBagClassifier
    >>> issubclass(LSDD, TwoBagClassifier)
    True
    >>> model = KDEDifference().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])  # no share is needed
    >>> model.predict([[0.5], [2.5]]).tolist()  # class 1 is where the first bag is denser
    [1, 0]
    """

    assumes = ("X_B|Y", "the two samples differ in the class prior alone")
    _several_classes, _scale = "refused", "distances"
    _parameter_constraints = {
        "class_prior": [
            StrOptions({"balanced", "match"}),
            Interval(Real, 0, 1, closed="neither"),
        ],
    }

    def fit(
        self, X: Matrix, bags: ArrayLike, proportions: Proportions | None = None,
        labels: ArrayLike | None = None, *, counts: ArrayLike | None = None,
    ):  # fmt: skip
        """Learn from two bags, or from two pools of bags.

        Parameters
        ----------
        X : array-like, shape (n_instances, n_features)
        bags : array-like, shape (n_instances,)
        proportions : array-like, Series, dict or DataFrame, optional
            Two classes. Not given: two bags, labels up to a swap.
        labels : array-like, shape (n_instances,), optional
            Known labels, -1 for unknown; with proportions only.
        counts : array-like of int, shape (n_instances,), optional
            How many equal instances each row stands for; with proportions only.

        Returns
        -------
        TwoBagClassifier
            This estimator, fitted.

        Raises
        ------
        NotIdentifiableError
            If all proportions are equal.
        ValueError
            If there are not two bags (without proportions) or not two classes, or a sample has fewer than 2 instances.
        """
        if proportions is not None:
            return super().fit(X, bags, proportions, labels, counts=counts)
        if labels is not None or counts is not None or self.class_prior != "balanced":
            raise ValueError(
                f"labels, counts and class_prior={self.class_prior!r} have a meaning "
                "with proportions only; give these too"
            )
        with fitting(self):
            self._fit_data(self._read_two_bags(X, bags))
        return self

    def _read_two_bags(self, X, bags):
        """`BagData` of two bags without shares: all are pure, since the bag of an instance serves as its class."""
        self._validate_params()
        check_positional("bags", bags, X)
        X = self._check_X(X, reset=True)
        names = pd.Index(sorted_values(as_column(bags).ravel()), tupleize_cols=False)
        codes = check_bags(bags, X.shape[0], len(names), names)
        if len(names) != 2:
            raise ValueError(
                "proportions is missing: without it bags must be exactly two, "
                f"got {len(names)}: {names.tolist()[:5]}"
            )
        pure = np.array([[0.0, 1.0], [1.0, 0.0]])  # class 1 is the first bag
        return BagData(X, codes, pure, classes=np.array([0, 1]), n_pure=2)

    def _check_X(self, X, reset):
        """Checked X minus its median, which is exact on a grid, independent of the order, and robust to outliers."""
        X = super()._check_X(X, reset)
        if reset:
            self.origin_ = np.median(X, axis=0)
        return X - self.origin_

    def _fit(self, data):
        """Pool the bags on either side of the class prior."""
        positive = data.proportions[:, 1]
        in_p, theta, theta_prime = pool_bags(data.bags, positive, data.bag_sizes)
        if data.has_shares:
            warn_of_pooling(self, data, in_p, theta - theta_prime)
        prior = {"balanced": 0.5, "match": data.class_prior[1]}
        self.pooled_proportions_ = (theta, theta_prime) if data.has_shares else None
        eta = prior.get(self.class_prior, self.class_prior)
        self._fit_samples(data.X, in_p, prior_weights(theta, theta_prime, eta))

    def _fit_samples(self, X, in_p, weights):
        """Pass on the two samples, each in canonical order."""
        n, n_prime = int(in_p.sum()), int((~in_p).sum())
        if min(n, n_prime) < 2:
            raise ValueError(
                "bags must give at least 2 instances to each of the two samples, "
                f"got {n} and {n_prime}"
            )
        samples = (part[canonical_order(part)] for part in (X[in_p], X[~in_p]))
        self._fit_two(tuple(samples), weights)

    @abstractmethod
    def _fit_two(self, samples, weights):
        """Learn the sign of w p - w' p' from samples of p and p' and the weights w and w'."""


def warn_of_pooling(estimator, data, in_p, gap):
    """Warn if bags of more than two different shares become two samples, which uses the shares only in part.

    Also warn if the shares of the samples differ by less than chance makes their densities differ: on the toy problems
    of the paper KDEDifference and LSDD then label 54 to 71 % correctly, where 92 % are possible.
    """
    own = np.unique(data.bags)
    own = own[own < len(data.proportions) - data.n_pure]  # without known labels
    if len(np.unique(data.proportions[own, 1].round(6))) > 2:
        warn(
            f"{type(estimator).__name__} pooled {len(own)} bags into two samples, those above the overall share of the "
            "positive class and the others, and uses nothing else of their shares; a method for many bags, such as "
            "MeanMap or CountLogistic, uses the share of each"
        )
    n, n_prime = in_p.sum(), (~in_p).sum()
    noise = np.sqrt(1 / n + 1 / n_prime)
    if gap < noise:
        warn(
            f"the shares of the two samples differ by {gap:.2g}, less than the chance of {n} and {n_prime} "
            f"instances, {noise:.2g}: {type(estimator).__name__} can hardly see the classes. Take bags that differ "
            "more, or more instances"
        )


class KDEDifference(TwoBagClassifier):
    r"""Two kernel density estimates, compared (duplessis2013, section 2.3).

    With proportions class 1 is the positive class; without, there are two bags and the labels are true up to a swap.
    Many bags are pooled into those above and those below the class prior (see `TwoBagClassifier`).

    Parameters
    ----------
    sigma : float, "cv" or array-like, default "cv"
        Width of both densities, or for each the best by `lscv_width`. There is no "median" as in other methods: for a
        density the median distance is far too wide.
    class_prior : "balanced", "match" or float, default "balanced"
        Share of the positive class among the instances to predict: a half (the paper), that of the training data, or
        a number. The last two need proportions.

    Attributes
    ----------
    classes_ : ndarray, shape (2,)
    pooled_proportions_ : (float, float) or None
    sigmas_ : (float, float)
    samples_ : (ndarray, ndarray)
        The two samples, relative to ``origin_``.
    cv_results_ : DataFrame
        Columns ``sample`` (0, 1), ``sigma``, ``score``; the larger, the better.
    log_odds_ : float
        :math:`\log w - \log w'`, the weights of `prior_weights`.

    Raises
    ------
    NotIdentifiableError
        If all proportions are equal.
    ValueError
        For malformed input; see `llpbook.base`.

    Notes
    -----
    Fit: :math:`O(m^2 d)` with m at most 1,000. Prediction: :math:`O(n m d)` for m instances, in bounded memory.

    Repeating every instance changes nothing with a ``sigma`` that is a number. With "cv" it makes the densities narrow:
    each instance then predicts its own copy, best with the smallest width (see `lscv_width`). Swapping the classes: see
    `TwoBagClassifier`.

    Examples
    --------
    >>> X, y, bags = toy_problem(1, n=200, random_state=0)
    >>> labeling_error_rate(KDEDifference().fit(X, bags).predict(X), y) < 0.2
    True
    """

    cost = "less than a second for hundreds, quadratic beyond"
    _parameter_constraints = {
        "sigma": [StrOptions({"cv"}), Real, "array-like"],
    }

    def __init__(
        self, sigma: float | str | ArrayLike = "cv", *,
        class_prior: float | str = "balanced",
    ):  # fmt: skip
        self.sigma, self.class_prior = sigma, class_prior

    def _fit_two(self, samples, weights):
        self.samples_ = samples
        tuned = [lscv_width(part, self.sigma) for part in samples]
        self.sigmas_ = tuple(sigma for sigma, _ in tuned)
        self.cv_results_ = pd.concat(
            [table.assign(sample=i) for i, (_, table) in enumerate(tuned)]
        )[["sample", "sigma", "score"]].reset_index(drop=True)
        self.log_odds_ = float(np.log(weights[0] / weights[1]))

    def _scores(self, X):
        r"""Log of the ratio of the weighted densities.

        :math:`\log w\,\hat p(x) - \log w'\,\hat p'(x)`, equation :eq:`eq-dd-sign`: its sign is that of the difference
        of the densities, and it does not underflow.
        """
        log_p, log_q = (
            kde_log_density(X, part, sigma)
            for part, sigma in zip(self.samples_, self.sigmas_, strict=True)
        )
        # eq: eq-dd-sign
        return self.log_odds_ + log_p - log_q
