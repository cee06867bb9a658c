r"""MeanMap: class means from bag means, then a classifier that depends on the labels through class means only.

If instances and bags are independent given the class, each bag mean is a mixture of the class means with the label
proportions as weights, :math:`S X = \Pi M`. Solve for the class means :math:`M`, form the mean operator
:math:`\hat\mu`, through which alone the likelihood of an exponential family depends on the labels, and minimize

.. math:: \sum_i \log \sum_y \exp \langle \phi(x_i, y), \theta \rangle - n \langle \hat\mu, \theta \rangle
          + \tfrac{\lambda}{2} \lVert \theta \rVert^2 .

Chapter: ``book/mean_map``. Sources: quadrianto2009; grid and protocol of yu2013 (section 6.2).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh
from scipy.special import logsumexp

from ._input import require_rank
from ._linear import (
    BagCounts,
    BagLoss,
    label_factors,
    linear_objective,
    warn_if_too_sure,
)
from .base import (
    ArrayLike,
    KernelClassifier,
    NotIdentifiableError,
    probabilities,
    softplus,
    warn_if_short,
)

__all__ = ["MeanMap"]


def class_means(bag_means, proportions, weights, covariances=None):
    r"""Weighted least-squares solution of bag means = proportions times class means.

    :math:`M = (\Pi^\top W \Pi)^{-1} \Pi^\top W S X`, equation :eq:`eq-mean-map-class-means`. If the proportions have
    errors: least squares with errors in variables, equation :eq:`eq-mean-map-errors`.

    Parameters
    ----------
    bag_means : ndarray, shape (n_bags, n_features)
    proportions : ndarray, shape (n_bags, n_classes)
    weights : ndarray, shape (n_bags,)
        Weight of each bag; 0 leaves a bag out.
    covariances : ndarray, shape (n_bags, n_classes, n_classes), optional
        Of the error of each row of ``proportions``; see `llpbook.base.error_covariances`.

    Returns
    -------
    ndarray, shape (n_classes, n_features)

    Raises
    ------
    NotIdentifiableError
        If the weighted proportions have a rank below ``n_classes``, or if their errors explain all their differences.
    """
    require_rank(proportions, weights)
    root = np.sqrt(weights / weights.max())[:, None]
    # eq: eq-mean-map-class-means
    means = np.linalg.lstsq(root * proportions, root * bag_means, rcond=1e-8)[0]
    if covariances is None:
        return means
    moment = (root * proportions).T @ (root * proportions)
    # eq: eq-mean-map-errors
    corrected = moment - np.tensordot(root[:, 0] ** 2, covariances, 1)
    reliability = eigh(corrected, moment, eigvals_only=True)[0]
    if reliability < 1e-8:
        raise NotIdentifiableError(
            "proportion_errors explain all differences between the proportions: their "
            f"reliability is {reliability:.3g}, and must be above 0"
        )
    return np.linalg.solve(corrected, moment @ means)


def mean_operator(prior, means):
    r"""Mean of the joint features of instance and label.

    :math:`\hat\mu = \eta\, m_+ - (1 - \eta)\, m_-` for two classes (equation :eq:`eq-mean-map-operator`), one row
    :math:`\eta_y m_y` per class for more (equation :eq:`eq-mean-map-operator-multi`).

    Parameters
    ----------
    prior : ndarray, shape (n_classes,)
    means : ndarray, shape (n_classes, n_features)

    Returns
    -------
    ndarray, shape (1, n_features) or (n_classes, n_features)
    """
    if len(prior) == 2:
        # eq: eq-mean-map-operator
        return (prior[1] * means[1] - prior[0] * means[0])[None, :]
    # eq: eq-mean-map-operator-multi
    return prior[:, None] * means


@dataclass(frozen=True)
class LogPartition(BagLoss):
    r"""Part of MeanMap's objective that depends on single instances, as a function of their scores.

    :math:`\log \sum_y e^{f_y}`; by the log-odds :math:`f = 2 \langle w, x \rangle` of two classes
    :math:`\log (2 \cosh \tfrac f2)`, with the derivatives :math:`\tfrac12 \tanh \tfrac f2` and
    :math:`\tfrac14 \operatorname{sech}^2 \tfrac f2`. Equations :eq:`eq-mean-map-binary`, :eq:`eq-mean-map-gradient`,
    :eq:`eq-mean-map-hessian`, and :eq:`eq-mean-map-softmax` for several classes.
    """

    several_classes = True

    def of_counts(self, scores, observed):
        """See `llpbook.bag_losses.BagLoss`; counts are not used."""
        s = probabilities(scores)
        if scores.ndim == 1:
            # eq: eq-mean-map-binary, eq-mean-map-gradient, eq-mean-map-hessian
            value, gradient = softplus(scores) - scores / 2, s[:, 1] - 0.5
            return observed.total(value), gradient, s[:, 0] * s[:, 1]
        # eq: eq-mean-map-softmax
        return observed.total(logsumexp(scores, axis=1)), s, s * (1 - s)

    def factors(self, scores, observed, state=None):
        """See `llpbook.bag_losses.BagLoss.factors`."""
        return label_factors(scores)


def mean_map_objective(X, mu, lam, frequencies=None):
    r"""MeanMap's objective, summed over the instances, as a function of the weights of the log-odds.

    For two classes these weights are 2 w.

    Parameters
    ----------
    X : ndarray, sparse array or InChunks, shape (n_instances, n_features)
    mu : ndarray, shape (1, n_features) or (n_classes, n_features)
    lam : float
    frequencies : ndarray of int, shape (n_instances,), optional
        How many equal instances each row stands for.

    Returns
    -------
    LinearObjective
    """
    rows, factor = X.shape[0], 2.0 if len(mu) == 1 else 1.0
    n = rows if frequencies is None else int(frequencies.sum())
    all_rows = BagCounts(
        np.zeros(rows, int), sizes=np.array([n]), counts=None, errors=None,
        frequencies=frequencies,
    )  # fmt: skip
    return linear_objective(
        LogPartition(), X, all_rows, penalty=lam / factor**2, linear=n / factor * mu
    )


def minimize(X, mu, lam, *, max_iter=1000, tol=1e-6, init=None, frequencies=None):
    r"""Minimize `mean_map_objective` by Newton's method, or by L-BFGS for many weights.

    Parameters
    ----------
    X, mu, lam, frequencies
        As for `mean_map_objective`.
    max_iter : int
    tol : float
        Bound on the entries of the gradient per instance at the solution, relative to the norm of ``mu`` where this
        exceeds 1.
    init : ndarray, shape of ``mu``, optional
        Weights to start from; 0 if not given.

    Returns
    -------
    weights : ndarray, shape of ``mu``
        For two classes, the probability of the positive one is :math:`\sigma(2 \langle w, x \rangle)`.
    n_iter : int
    gap : float
        Largest entry of the gradient, on the scale of ``tol``.
    """
    scale, factor = max(1.0, float(np.linalg.norm(mu))), 2.0 if len(mu) == 1 else 1.0
    start = np.zeros(mu.shape) if init is None else factor * init
    objective = mean_map_objective(X, mu, lam, frequencies)
    end = objective.solve(start, max_iter, tol * scale / factor)
    return end.w / factor, end.n_iter, factor * end.gap / scale


class MeanMap(KernelClassifier):
    r"""MeanMap classifier (Quadrianto et al. 2009).

    Parameters
    ----------
    alpha : float, default 1.0
        Weight of the penalty :math:`\frac{\lambda}{2} \lVert \theta \rVert^2`, beside a sum over instances, not a mean.
    kernel : {"linear", "rbf", "laplacian", "precomputed"} or callable, default "linear"
        All but "linear" cost :math:`O(n r^2)` time, with r the numerical rank of the kernel matrix, and
        :math:`O(n^2)` memory.
    gamma : float or "scale", default "scale"
        Kernel coefficient of "rbf" and "laplacian"; "scale" is 1 / (n_features * X.var()).
    fit_intercept : bool, default True
        Add the feature 1; its weight is penalized like the others.
    bag_weights : {"size", "uniform"} or array-like, shape (n_bags,), default "size"
        The matrix :math:`W` of the least squares: bag sizes, 1 for each bag (the paper), or your own numbers, in the
        order of the rows of ``proportions``: small for an uncertain proportion, 0 to leave a bag out.
    proportion_errors : None or array-like, shape (n_bags,) or (n_bags, n_classes, n_classes), default None
        If proportions are estimates: the standard error of each share of the positive class, in the order of the rows
        of ``proportions``, or a Series or dict with their keys; for several classes the covariance matrix of each row.
        If they are not stated, errors pull the estimated class means together. Do not state errors of shares of a
        larger group of which the bag is a sample.
    max_iter : int, default 1000
    tol : float, default 1e-6
        Largest entry of the gradient of the objective per instance at which to stop.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
    coef_ : ndarray, shape (1, n_features) or (n_classes, n_features)
        Weights on the scale of log-odds, twice the :math:`w` of the paper for two classes. Not with a kernel.
    intercept_ : ndarray, shape (1,) or (n_classes,)
        0 with a kernel, which contains the constant feature.
    dual_coef_ : ndarray, shape (n_instances, 1) or (n_instances, n_classes)
        Weights of the training instances, with a kernel only.
    class_prior_ : ndarray, shape (n_classes,)
    class_means_, mean_operator_ : ndarray
        As estimated, in the features used by the solver (the constant 1 last, with an intercept).
    n_iter_ : int
    gap_ : float
        Largest entry of the gradient of the objective per instance, on the scale of ``tol``: 0 at the minimum.

    Raises
    ------
    NotIdentifiableError
        If all bags in use have the same proportions, if these have a rank below the number of classes, or if
        ``proportion_errors`` explain all their differences.
    ValueError
        For malformed input; see `llpbook.base`.

    Notes
    -----
    Linear: :math:`O(n d^2)` per iteration for two classes, :math:`O(n d K)` for more. With bags of size 1 this is
    ridge-penalized logistic regression: scikit-learn's with ``C = 4 / alpha`` (two classes), ``C = 1 / alpha`` (more).
    Swapping two classes swaps the predictions; giving all data twice has the effect of half of ``alpha``. An
    `LLPWarning` is given if probabilities near 0 and 1 contradict the shares of the bags.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 200)
    >>> X = rng.normal(size=(200, 2)) + 3.0 * y[:, None]
    >>> bags = np.repeat(np.arange(40), 5)
    >>> p = np.bincount(bags, y) / 5
    >>> float(MeanMap().fit(X, bags, p).score(X, y)) > 0.9
    True
    """

    assumes = ("X_B|Y", "class means are the same in all bags")
    cost = "a logistic regression that sees all labels"
    _log_odds = _uses_frequencies = True
    _gram_copies = 3.4

    def __init__(
        self, alpha: float = 1.0, *, kernel: str | Callable = "linear",
        gamma: float | str = "scale", fit_intercept: bool = True,
        bag_weights: str | ArrayLike = "size",
        proportion_errors: ArrayLike | Mapping | None = None,
        max_iter: int = 1000, tol: float = 1e-6,
    ):  # fmt: skip
        self.alpha, self.proportion_errors = alpha, proportion_errors
        self.kernel, self.gamma, self.fit_intercept = kernel, gamma, fit_intercept
        self.bag_weights, self.max_iter, self.tol = bag_weights, max_iter, tol

    def _sums_needed(self):
        return "instances"

    def _solve(self, data, Z):
        means = class_means(
            data.bag_means(Z), data.proportions, data.bag_weights, data.covariances
        )
        mu = mean_operator(data.class_prior, means)
        theta, self.n_iter_, self.gap_ = minimize(
            Z, mu, self.alpha, max_iter=self.max_iter, tol=self.tol,
            frequencies=data.frequencies,
        )  # fmt: skip
        self.class_prior_, self.class_means_ = data.class_prior, means
        self.mean_operator_ = mu
        warn_if_short(self)
        coef = 2 * theta if len(theta) == 1 else theta  # log-odds are 2 <w, x>
        if data.covariances is None:  # else the shares are known to be wrong
            warn_if_too_sure(self, Z, coef, data)
        return coef
