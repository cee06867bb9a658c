"""Class means of bags, the mean operator computed from them, and the estimator."""

from collections.abc import Callable
from numbers import Integral, Real

import numpy as np

from ..base import (
    ArrayLike,
    Interval,
    KernelClassifier,
    StrOptions,
    median_distance,
    warn_if_short,
)
from ..mean_map import minimize, warn_if_too_sure
from ._graph import gaussian_similarity, laplacian_times
from ._solver import solve_normal_equations


def normal_equations(
    means, proportions, weights, similarity, smoothness, *, epsilon=0.0
):
    r"""Left side of the normal equations of the class means of bags.

    Equation :eq:`eq-lmm-normal`.

    :math:`(P^\top D P + \tau \operatorname{Lap}) M`; at the solution it equals :math:`P^\top D S X`.

    Parameters
    ----------
    means : ndarray, shape (n_bags, n_classes, m)
    proportions : ndarray, shape (n_bags, n_classes)
    weights : ndarray, shape (n_bags,)
        The diagonal of :math:`D`.
    similarity : ndarray or sparse array, shape (n_bags, n_bags)
    smoothness, epsilon : float

    Returns
    -------
    ndarray, shape of ``means``
    """
    mixed = np.einsum("kj,kjm->km", proportions, means)
    data = (weights[:, None] * proportions)[:, :, None] * mixed[:, None]
    # eq: eq-lmm-normal
    return data + smoothness * (laplacian_times(similarity, means) + epsilon * means)


def bag_class_means(
    bag_means, proportions, weights, similarity, smoothness, *, epsilon=0.0
):
    r"""Class means of each bag, by conjugate gradients.

    The solution of :eq:`eq-lmm-normal`.

    Parameters
    ----------
    bag_means : ndarray, shape (n_bags, n_features)
    proportions, weights, similarity, smoothness, epsilon
        As for `normal_equations`.

    Returns
    -------
    ndarray, shape (n_bags, n_classes, n_features)

    Raises
    ------
    NotIdentifiableError
        If the proportions of connected bags cannot tell their classes apart.
    """
    rhs = (weights[:, None] * proportions)[:, :, None] * bag_means[:, None]
    return solve_normal_equations(
        rhs, proportions, weights, similarity, smoothness, epsilon
    )[0]


def operator_weights(proportions, bag_shares):
    r"""Weight of each class mean of each bag in the mean operator.

    Parameters
    ----------
    proportions : ndarray, shape (n_bags, n_classes)
    bag_shares : ndarray, shape (n_bags,)
        Share of the instances, or another weight per bag; they sum to 1.

    Returns
    -------
    ndarray, shape (n_bags, n_classes, 1) or (n_bags, n_classes, n_classes)
        Two classes: :math:`\mp \alpha_k \pi_{kj}`, one row of the operator. More classes: one row per class.
    """
    masses = bag_shares[:, None] * proportions
    if masses.shape[1] == 2:
        return (masses * [-1.0, 1.0])[:, :, None]
    return masses[:, :, None] * np.eye(masses.shape[1])


def operator_of_bags(means, proportions, bag_shares):
    r"""Mean operator of class means of bags.

    :math:`\sum_k \alpha_k (p_k m_k^+ - (1 - p_k) m_k^-)` for two classes, a row
    :math:`\sum_k \alpha_k \pi_{kj} m_{kj}` per class for more.

    Parameters
    ----------
    means : ndarray, shape (n_bags, n_classes, n_features)
    proportions : ndarray, shape (n_bags, n_classes)
    bag_shares : ndarray, shape (n_bags,)

    Returns
    -------
    ndarray, shape (1, n_features) or (n_classes, n_features)
    """
    return np.einsum("kjr,kjm->rm", operator_weights(proportions, bag_shares), means)


def operator_by_adjoint(
    bag_means, proportions, weights, bag_shares, similarity, smoothness, *,
    epsilon=0.0,
):  # fmt: skip
    r"""The mean operator without the class means of the bags.

    Equation :eq:`eq-lmm-adjoint`.

    Solve :math:`A Z = a` with the weights :math:`a` of the operator on the right, then
    :math:`\hat\mu = (P Z)^\top D\, S X`: one column for two classes, however many features there are.

    Parameters
    ----------
    bag_means : ndarray, shape (n_bags, n_features)
    proportions, weights, similarity, smoothness, epsilon
        As for `normal_equations`.
    bag_shares : ndarray, shape (n_bags,)

    Returns
    -------
    ndarray, shape (1, n_features) or (n_classes, n_features)
    """
    rhs = operator_weights(proportions, bag_shares)
    mixed = solve_normal_equations(
        rhs, proportions, weights, similarity, smoothness, epsilon
    )[1]
    # eq: eq-lmm-adjoint
    return mixed.T @ (weights[:, None] * bag_means)


class LaplacianMeanMap(KernelClassifier):
    r"""Laplacian Mean Map (Patrini et al. 2014).

    Parameters
    ----------
    alpha : float, default 1.0
        Weight of the penalty of the classifier, as in `MeanMap`.
    smoothness : float, default 0.1
        Weight :math:`\tau` of the graph (:math:`\gamma` in the papers): the larger, the more alike the class means of
        similar bags. It multiplies a sum over pairs of bags, so :math:`\tau L` matters.
    sigma : float or "median", default "median"
        Width of the Gaussian similarity, in the units of the features; "median" is the median distance of bag means.
    n_neighbors : int, optional
        Keep the similarities to so many nearest bags only.
    epsilon : float, default 0.0
        Pulls all class means to 0; above 0 the solution is always unique.
    bag_weights : {"size", "uniform"} or array-like, shape (n_bags,), default "size"
        Weights :math:`D` of the bag means, up to a factor: they are scaled to the mean 1.
    operator_weights : {"size", "uniform"}, default "size"
        Weight of each bag in the mean operator: its size (the paper), or the same for all bags (public code).
    kernel : {"linear", "rbf", "laplacian", "precomputed"} or callable, default "linear"
    gamma : float or "scale", default "scale"
        Kernel coefficient, not the :math:`\gamma` of the papers.
    fit_intercept : bool, default True
        Add the feature 1; its weight is penalized like the others.
    max_iter : int, default 1000
    tol : float, default 1e-6
        As in `MeanMap`.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
    coef_ : ndarray, shape (1, n_features) or (n_classes, n_features)
        On the scale of log-odds. Not with a kernel.
    intercept_ : ndarray, shape (1,) or (n_classes,)
    dual_coef_ : ndarray, shape (n_instances, 1) or (n_instances, n_classes)
        With a kernel only.
    mean_operator_ : ndarray
        As estimated, in the features used by the solver (the constant 1 last, with an intercept).
    n_iter_ : int
    gap_ : float
        As for `MeanMap`.

    Raises
    ------
    NotIdentifiableError
        If the proportions of connected bags cannot tell their classes apart.
    ValueError
        For malformed input; see `llpbook.base`.

    Notes
    -----
    :math:`O(L^2)` time for the graph and each of some ten iterations, then the classifier of `MeanMap`;
    :math:`O(L^2)` memory, or :math:`O(L)` with ``n_neighbors``. With bags of size 1 this is ridge-penalized logistic
    regression if ``bag_weights`` and ``operator_weights`` are the same and ``epsilon`` is 0. Swapping two classes swaps
    the predictions; giving all instances twice, in the same bags, has the effect of half of ``alpha``. An
    `LLPWarning` is given if probabilities near 0 and 1 contradict the shares of the bags.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 200)
    >>> X = rng.normal(size=(200, 2)) + 3.0 * y[:, None]
    >>> bags = np.repeat(np.arange(40), 5)
    >>> p = np.bincount(bags, y) / 5
    >>> float(LaplacianMeanMap().fit(X, bags, p).score(X, y)) > 0.9
    True
    """

    assumes = (None, "bags with similar means have similar class means")
    cost = "MeanMap's, and the similarities of all pairs of bags"
    _log_odds = True
    _gram_copies = 3.4
    _parameter_constraints = {
        "smoothness": [Interval(Real, 0, None, closed="neither")],
        "sigma": [StrOptions({"median"}), Interval(Real, 0, None, closed="neither")],
        "n_neighbors": [Interval(Integral, 1, None, closed="left"), None],
        "epsilon": [Interval(Real, 0, None, closed="left")],
        "operator_weights": [StrOptions({"size", "uniform"})],
    }

    def __init__(
        self, alpha: float = 1.0, smoothness: float = 0.1, *,
        sigma: float | str = "median", n_neighbors: int | None = None,
        epsilon: float = 0.0,
        bag_weights: str | ArrayLike = "size", operator_weights: str = "size",
        kernel: str | Callable = "linear", gamma: float | str = "scale",
        fit_intercept: bool = True, max_iter: int = 1000, tol: float = 1e-6,
    ):  # fmt: skip
        self.alpha, self.smoothness, self.sigma = alpha, smoothness, sigma
        self.n_neighbors, self.epsilon = n_neighbors, epsilon
        self.bag_weights, self.operator_weights = bag_weights, operator_weights
        self.kernel, self.gamma, self.fit_intercept = kernel, gamma, fit_intercept
        self.max_iter, self.tol = max_iter, tol

    @property
    def _equal_shares(self):
        return "warned" if self.epsilon > 0 else "refused"

    def _sums_needed(self):
        return "instances"

    def _solve(self, data, Z):
        self.mean_operator_ = mu = self._operator(data, Z)
        theta, self.n_iter_, self.gap_ = minimize(
            Z,
            mu,
            self.alpha,
            max_iter=self.max_iter,
            tol=self.tol,
            frequencies=data.frequencies,
        )
        weights = theta * (2 if len(mu) == 1 else 1)  # log-odds are 2 <w, x>
        warn_if_short(self)
        warn_if_too_sure(self, Z, weights, data)
        return weights

    def _operator(self, data, Z):
        used = data.bag_sizes > 0
        means = data.bag_means(Z)[used]
        sigma = median_distance(means) if self.sigma == "median" else self.sigma
        similarity = gaussian_similarity(means, sigma, n_neighbors=self.n_neighbors)
        counts = data.bag_sizes if self.operator_weights == "size" else used
        weights = data.bag_weights[used]
        return operator_by_adjoint(
            means,
            data.proportions[used],
            weights / weights.mean(),
            counts[used] / counts.sum(),
            similarity,
            self.smoothness,
            epsilon=self.epsilon,
        )
