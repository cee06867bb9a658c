r"""Kernel k-means with one cluster per class, and the error of the proportions in its objective (AOC-KK).

.. math:: \min_{Z} \sum_i \lVert \varphi(x_i) - m_{z_i} \rVert^2
          + \lambda\, v \sum_k n_k \lVert (S Z)_k - \pi_k \rVert^2 ,

:math:`Z` the one-hot labels of the instances, :math:`m_j` the mean of class j in the space of the kernel, and :math:`v`
the variance there, which makes :math:`\lambda` a number without a unit. Two steps alternate: means from labels, and
labels from distances to the means. The original solves a quadratic program in each iteration, for labels relaxed to
shares; here one sort per bag finds the best labels.

Chapter: ``book/kernel_kmeans``. Sources: chen2009, as stolpe2011 (sections 4.1 and 5) describes it; the scale of
:math:`\lambda`, the weights of the bags and the starts are ours, because we know of no code by the authors.
"""

from collections.abc import Callable
from numbers import Real

import numpy as np
from joblib import Parallel, delayed
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from ._counts import crosstab, label_by_counts, label_by_seats, ranks
from ._input import (
    RandomState,
    gram_matrix,
    kernel_coefficient,
    kernel_features,
    refuse_indefinite,
)
from .base import (
    Interval,
    LLPClassifier,
    NotIdentifiableError,
    in_blocks,
    require_memory,
    row_order,
    warn,
)

__all__ = ["AOCKernelKMeans"]

#: Objectives whose relative difference is smaller are equal.
TIE = 1e-9
#: A variance below this share of the largest entry of the kernel is rounding error.
ALIKE = 1e-13
#: Peak memory of a fit in kernel matrices, where the matrix is computed and where it is given.
GRAM_COPIES, GIVEN_COPIES = 1.1, 3.2


def kernel_variance(gram):
    """Mean squared distance of the instances to their mean: the unit of the penalty.

    Parameters
    ----------
    gram : ndarray, shape (n_instances, n_instances)

    Returns
    -------
    float
    """
    # eq: eq-aoc-variance
    return float(gram.diagonal().mean() - gram.mean())


def class_distances(gram, labels, n_classes):
    r"""Squared distances to the means of the classes, minus the squared norm of the instance.

    :math:`m_j^\top m_j - 2 \varphi(x_i)^\top m_j`, equation :eq:`eq-aoc-distances`.

    Parameters
    ----------
    gram : ndarray, shape (n_instances, n_instances)
    labels : ndarray of int, shape (n_instances,)
    n_classes : int

    Returns
    -------
    distances : ndarray, shape (n_instances, n_classes)
    weights : ndarray, shape (n_instances, n_classes)
        Of the instances in the means.
    norms : ndarray, shape (n_classes,)
        :math:`m_j^\top m_j`; infinite for a class without instances.
    """
    Z = np.eye(n_classes)[labels]
    weights = Z / np.maximum(Z.sum(axis=0), 1)
    towards = gram @ weights
    norms = np.where(Z.any(axis=0), np.sum(weights * towards, axis=0), np.inf)
    # eq: eq-aoc-distances
    return norms - 2 * towards, weights, norms


def label_bags(distances, bags, proportions, price):
    r"""Labels with the smallest sum of distances and penalty, given the means.

    :math:`\min \sum_{i \in B_k} d_{i z_i} + \text{price} \cdot n_k \lVert (S Z)_k - \pi_k \rVert^2`, equation
    :eq:`eq-aoc-labels`. The r-th instance of class j in a bag adds :math:`\text{price}\, ((2r - 1) / n_k - 2 \pi_{kj})`
    to the penalty. With two classes instances become positive in the order of their gain, as long as it exceeds this
    penalty: one sort for all bags. With more classes it is an assignment of instances to such seats.

    Parameters
    ----------
    distances : ndarray, shape (n_instances, n_classes)
    bags : ndarray of int, shape (n_instances,)
    proportions : ndarray, shape (n_bags, n_classes)
    price : float

    Returns
    -------
    ndarray of int, shape (n_instances,)
    """
    sizes = np.bincount(bags, minlength=len(proportions))
    if proportions.shape[1] == 2:
        loss = distances[:, 1] - distances[:, 0]
        place = (2 * ranks(-loss, bags) + 1) / sizes[bags]
        added = 2 * price * (place - 2 * proportions[bags, 1])
        # eq: eq-aoc-labels
        return (loss + added < 0).astype(int)

    def prices(k, size):
        place = (2 * np.arange(size) + 1) / size
        return price * (place - 2 * proportions[k][:, None])

    return label_by_seats(-distances, bags, prices)


def objective(gram, labels, bags, proportions, price):
    """Objective of given labels, with their own class means.

    Equation :eq:`eq-aoc-objective`.

    Parameters
    ----------
    gram : ndarray, shape (n_instances, n_instances)
    labels, bags : ndarray of int, shape (n_instances,)
    proportions : ndarray, shape (n_bags, n_classes)
    price : float

    Returns
    -------
    float
    """
    K, sizes = proportions.shape[1], np.bincount(bags, minlength=len(proportions))
    distances, *_ = class_distances(gram, labels, K)
    table = crosstab(bags, labels, proportions.shape)
    gap = table - sizes[:, None] * proportions
    misfit = np.sum(gap**2, axis=1)[sizes > 0] / sizes[sizes > 0]
    spread = gram.trace() + distances[np.arange(len(labels)), labels].sum()
    # eq: eq-aoc-objective
    return float(spread + price * misfit.sum())


def descend(gram, labels, bags, proportions, price, *, max_iter=100, fixed=None):
    """Alternate means and labels until no label changes.

    Parameters
    ----------
    gram, labels, bags, proportions, price
        As for `objective`; the labels are the start.
    max_iter : int
    fixed : ndarray of int, shape (n_instances,), optional
        Labels that are held, -1 for unknown: any other class of such an instance is infinitely far.

    Returns
    -------
    labels : ndarray of int, shape (n_instances,)
    n_iter : int
    gap : float
        Share of the labels that the last iteration changed; 0 if the labels have converged.
    """
    K, barred = proportions.shape[1], 0.0
    if fixed is not None:
        held = fixed >= 0
        labels = np.where(held, fixed, labels)
        barred = np.where(held[:, None] & (fixed[:, None] != np.arange(K)), np.inf, 0)
    gap, n_iter = 1.0, 0
    while gap > 0 and n_iter < max_iter:
        distances, *_ = class_distances(gram, labels, K)
        new = label_bags(distances + barred, bags, proportions, price)
        gap, labels, n_iter = float(np.mean(new != labels)), new, n_iter + 1
    return labels, n_iter, gap


def random_labels(draws, bags, proportions):
    """Random labels with the counts of the bags; a count that is not whole is rounded at random, without bias.

    Parameters
    ----------
    draws : ndarray, shape (n_instances, n_classes)
        Uniform on [0, 1).
    bags : ndarray of int, shape (n_instances,)
    proportions : ndarray, shape (n_bags, n_classes)

    Returns
    -------
    ndarray of int, shape (n_instances,)
    """
    sizes = np.bincount(bags, minlength=len(proportions))
    phase = np.bincount(bags, draws[:, 0], minlength=len(proportions)) % 1
    ends = np.round(np.cumsum(sizes[:, None] * proportions, axis=1), 9)
    counts = np.diff(np.floor(ends + phase[:, None]), axis=1, prepend=0)
    return label_by_counts(draws, bags, counts.astype(int))


class AOCKernelKMeans(LLPClassifier):
    """Kernel k-means for aggregate outputs (AOC-KK; Chen et al. 2009).

    Parameters
    ----------
    C_p : float, default 1.0
        Weight of the error of the proportions, in units of the variance in the space of the kernel. To meet the counts
        of larger bags it must be larger.
    kernel : {"linear", "rbf", "laplacian", "precomputed"} or callable, default "linear"
    gamma : float or "scale", default "scale"
        Kernel coefficient of "rbf" and "laplacian"; "scale" is 1 / (n_features * X.var()).
    n_init : int, default 10
        Number of starts, random labels with the right counts; the lowest objective is kept.
    max_iter : int, default 100
    random_state : int, RandomState or None, default None
    n_jobs : int or None, default None
        Starts that run at once; the result does not depend on it.
    verbose : int, default 0
        1 prints at most one line per second, 2 one line per start.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
    labels_ : ndarray, shape (n_instances,)
        Of the training instances; known labels are held.
    objective_ : float
    dual_coef_ : ndarray, shape (n_instances, n_classes)
        Weights of the training instances ``X_fit_`` in the means.
    n_iter_ : int
        Iterations of the start that is kept.
    gap_ : float
        Share of the labels that the last iteration changed: 0 at a local minimum.
    norms_ : ndarray, shape (n_classes,)
        Squared norms of the means in the space of the kernel, infinite for a class without instances.
    X_fit_ : ndarray, shape (n_instances, n_features)
        The training instances, in an order that depends on the instances only.
    gamma_ : float
        The kernel coefficient that was used.

    Raises
    ------
    NotIdentifiableError
        If all instances are at one point in the space of the kernel, or two classes have the same share in every bag.
    ValueError
        For malformed input; see `llpbook.base`; and where the kernel matrix, :math:`O(n^2)`, does not fit into memory.

    Notes
    -----
    :math:`O(n^2)` memory, and as much time per iteration and start. The scale of a feature is its weight, so put a
    StandardScaler in front. A class without instances is never predicted. With bags of size 1 and a large ``C_p`` this
    predicts the nearest class mean.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 200)
    >>> X = rng.normal(size=(200, 2)) + 4.0 * y[:, None]
    >>> bags = np.repeat(np.arange(40), 5)
    >>> p = np.bincount(bags, y) / 5
    >>> float(AOCKernelKMeans(random_state=0).fit(X, bags, p).score(X, y)) > 0.9
    True
    """

    assumes = (None, "each class is one cluster in the space of the kernel")
    cost = "half a second to three for 2,000 instances, quadratic beyond"
    _cure = "a larger C_p"
    _equal_shares, _names_classes_by_shares, _scale = "warned", True, "distances"
    _parameter_constraints = {"C_p": [Interval(Real, 0, None, closed="left")]}

    def __init__(
        self, C_p: float = 1.0, *, kernel: str | Callable = "linear",
        gamma: float | str = "scale", n_init: int = 10, max_iter: int = 100,
        random_state: RandomState = None, n_jobs: int | None = None, verbose: int = 0,
    ):  # fmt: skip
        self.C_p, self.kernel, self.gamma = C_p, kernel, gamma
        self.n_init, self.max_iter = n_init, max_iter
        self.random_state, self.n_jobs, self.verbose = random_state, n_jobs, verbose

    def _fit(self, data):
        data = data.before or data  # known labels are held, not read as bags
        precomputed = self.kernel == "precomputed"
        order = np.arange(len(data.X)) if precomputed else row_order(data)
        X, bags, P = data.X[order], data.bags[order], data.proportions
        fixed = None if data.labels is None else data.labels[order]
        self.X_fit_, self.gamma_ = X, kernel_coefficient(self.gamma, X)
        check_size(len(X), GIVEN_COPIES if precomputed else GRAM_COPIES)
        gram = self._gram(X)
        price = self.C_p * checked_variance(gram)
        if precomputed or callable(self.kernel):
            refuse_indefinite(gram, kernel_features(gram)[0], self.kernel)
        progress, self.objective_ = self._progress(self.n_init, "start"), np.inf
        tasks = (
            delayed(descend)(
                gram, start, bags, P, price, max_iter=self.max_iter, fixed=fixed
            )
            for start in self._starts(bags, P)
        )
        pool = Parallel(self.n_jobs, prefer="threads", return_as="generator")
        for result in pool(tasks):  # threads share the kernel matrix
            value = objective(gram, result[0], bags, P, price)
            if value < self.objective_ - TIE * abs(value):
                best, self.objective_ = result, value
            progress.step(f"lowest objective {self.objective_:.6g}")
        labels, self.n_iter_, self.gap_ = best
        _, self.dual_coef_, self.norms_ = class_distances(gram, labels, P.shape[1])
        self.labels_ = data.classes[labels[np.argsort(order)]]
        empty = np.isinf(self.norms_) & (data.class_prior > 0)
        warn_short(self.max_iter, self.gap_, data.classes[empty].tolist())

    def _starts(self, bags, P):
        """Yield random labels with the right counts."""
        rng = check_random_state(self.random_state)
        for _ in range(self.n_init):
            yield random_labels(rng.uniform(size=(len(bags), P.shape[1])), bags, P)

    def _gram(self, X):
        """Kernel of X and the training instances, centered, so that large offsets cause no cancellation."""
        if callable(self.kernel) or self.kernel == "precomputed":
            return gram_matrix(X, self.X_fit_, self.kernel, self.gamma_)
        center = self.X_fit_.mean(axis=0)
        X, Z = X - center, self.X_fit_ - center
        if self.kernel == "linear":
            return X @ Z.T
        return gram_matrix(X, Z, self.kernel, self.gamma_)

    def _scores(self, X):
        towards = in_blocks(
            X, len(self.X_fit_), lambda part: self._gram(part) @ self.dual_coef_
        )
        scores = 2 * towards - self.norms_
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores


def check_size(n, copies):
    """Refuse a fit of n instances if so many copies of the kernel matrix do not fit into memory."""
    advice = "fit to fewer instances; predict takes any number"
    require_memory(f"AOCKernelKMeans on {n} instances", 8.0 * copies * n**2, advice)


def checked_variance(gram):
    """`kernel_variance`; refuses a matrix that is no kernel, or that puts all instances at one point.

    Parameters
    ----------
    gram : ndarray, shape (n_instances, n_instances)

    Returns
    -------
    float

    Raises
    ------
    NotIdentifiableError
        If the variance in the space of the kernel is 0 up to rounding, or no number.
    ValueError
        If it is negative.
    """
    largest, variance = max(gram.max(), -gram.min()), kernel_variance(gram)
    if variance < -TIE * largest:
        raise ValueError(
            f"X or kernel gives a matrix with the variance {variance:.3g} in the space of the kernel, which must not "
            "be negative: a kernel matrix holds similarities, not distances"
        )
    if not variance > ALIKE * largest:
        raise NotIdentifiableError(
            f"X and kernel put all instances at one point: their variance in the space of the kernel is {variance:.3g} "
            "up to rounding, and clusters need distances; scale the features, or choose another gamma"
        )
    return variance


def warn_short(max_iter, gap, empty):
    """Warn that labels would still change, or that a class has vanished.

    Parameters
    ----------
    max_iter : int
    gap : float
        As of `descend`.
    empty : list
        Classes with a positive share in some bag, and without instances.
    """
    if gap > 0:
        warn(
            f"AOCKernelKMeans stopped after {max_iter} iterations; raise max_iter",
            ConvergenceWarning,
        )
    if empty:
        warn(
            f"AOCKernelKMeans gives no instance to {empty}, which it will never predict, and whose score is infinite; "
            "raise C_p, so that the counts of the bags are met"
        )
