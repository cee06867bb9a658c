r"""InvCal: support vector regression of the log-odds of the shares on the bag means.

Each bag is represented by one instance, its mean, and the share of the bag is taken as the probability of the positive
class there. So the score of the mean must be the log-odds of the share, up to a free error of :math:`\epsilon_k`:

.. math:: \min_{w, b} \tfrac12 \lVert w \rVert^2 + C_p \sum_k
          \max\bigl(0, \lvert \langle w, \bar x_k \rangle + b - t_k \rvert - \epsilon_k\bigr),
          \qquad t_k = -\log\bigl(\tfrac{1}{p_k} - 1\bigr) .

Chapter: ``book/invcal``. Sources: rueping2010; grid and protocol of yu2013 (sections 3.3 and 6.2).
"""

from collections.abc import Callable
from numbers import Real

import numpy as np
from scipy.special import logit

from ._input import (
    WITHOUT_GRAM,
    ArrayLike,
    gram_matrix,
    kernel_coefficient,
    kernel_features,
    refuse_indefinite,
)
from ._linear import MAX_ROUNDS, USUAL_ROUNDS, minimize_hinges
from .base import Interval, KernelClassifier, StrOptions, require_memory, warn

__all__ = ["InvCal"]


def targets(shares, n_instances):
    r"""Log-odds that the mean of each bag should have.

    :math:`t_k = -\log(1 / p_k - 1)`, with shares clipped to :math:`[1/n, 1 - 1/n]`, equation :eq:`eq-invcal-target`.

    Parameters
    ----------
    shares : ndarray, shape (n_bags,)
        Share of the positive class in each bag.
    n_instances : int
        Number n of all instances.

    Returns
    -------
    ndarray, shape (n_bags,)
    """
    # eq: eq-invcal-target
    return logit(np.clip(shares, 1 / n_instances, 1 - 1 / n_instances))


def tubes(shares, n_instances, epsilon, *, epsilon_unit="log_odds"):
    r"""Half width of the tube of each bag.

    "log_odds" gives each bag ``epsilon``; "share" gives :math:`\epsilon_k = \epsilon / (p_k (1 - p_k))`, which allows
    an error of about :math:`\epsilon` in the share itself, equation :eq:`eq-invcal-tube`.

    Parameters
    ----------
    shares : ndarray, shape (n_bags,)
    n_instances : int
        As for `targets`.
    epsilon : float
    epsilon_unit : {"log_odds", "share"}, default "log_odds"

    Returns
    -------
    ndarray, shape (n_bags,)
    """
    if epsilon_unit == "log_odds":
        return np.full(len(shares), epsilon)
    p = np.clip(shares, 1 / n_instances, 1 - 1 / n_instances)
    # eq: eq-invcal-tube
    return epsilon / (p * (1 - p))


def objective(w, b, means, t, eps, penalties):
    r"""Objective of InvCal.

    Equation :eq:`eq-invcal-objective`.

    Parameters
    ----------
    w : ndarray, shape (n_features,)
    b : float
    means : ndarray, shape (n_bags, n_features)
    t, eps, penalties : ndarray, shape (n_bags,)
        Targets, half widths of the tubes, and the cost of a unit outside the tube.

    Returns
    -------
    float
    """
    outside = np.maximum(0, np.abs(means @ w + b - t) - eps)
    # eq: eq-invcal-objective
    return w @ w / 2 + penalties @ outside


def minimize(means, t, eps, penalties, *, intercept=True, tol=1e-9, progress=None):
    r"""Minimize `objective`: each side of a tube is a hinge.

    Equation :eq:`eq-invcal-hinges`.

    :math:`\max(0, |r| - \epsilon) = \max(0, -r - \epsilon) + \max(0, r - \epsilon)`, so the problem is a support
    vector machine with two instances per bag.

    Parameters
    ----------
    means, t, eps, penalties
        As for `objective`.
    intercept : bool, default True
        If false, b is 0.
    tol : float, default 1e-9
        Gap between primal and dual, relative to the minimum.
    progress : callable, optional
        Called with a text after each round of the solver.

    Returns
    -------
    w : ndarray, shape (n_features,)
    b : float
        The middle of the interval of optimal values.
    dual : ndarray, shape (n_bags,)
        The difference of the two multipliers of each bag; w is ``dual @ means``.
    n_iter : int
        Newton steps.
    gap : float
        Gap between primal and dual at the end, relative to the minimum.
    """
    signs = np.repeat([1.0, -1.0], len(t))
    # eq: eq-invcal-hinges
    offsets = np.concatenate([t - eps, -t - eps])
    # An offset of the features moves b alone; without it no digits are lost.
    center = means.mean(axis=0) * intercept
    rows, costs = np.vstack([means - center] * 2), np.tile(penalties, 2)
    w, b, nu, n_iter, gap = minimize_hinges(
        rows, signs, offsets, costs,
        intercept=intercept, tol=tol, cost="C_p", progress=progress,
    )  # fmt: skip
    return w, b - center @ w, nu[: len(t)] - nu[len(t) :], n_iter, gap


def bag_kernel(X, averages, kernel, gamma, *, block=2000):
    r"""The kernel between bags: the mean of the kernel over all pairs of their instances.

    :math:`S K S^\top`, equation :eq:`eq-invcal-kernel`, in blocks of rows: :math:`O(n^2)` kernel values, at most
    ``block`` times n of them in memory.

    Parameters
    ----------
    X : ndarray or sparse array, shape (n_instances, n_features)
    averages : sparse array, shape (n_bags, n_instances)
        The averaging matrix S.
    kernel, gamma
        See `llpbook.invcal.gram_matrix`.
    block : int, default 2000

    Returns
    -------
    ndarray, shape (n_bags, n_bags)
    """
    half = np.empty((X.shape[0], averages.shape[0]))
    for start in range(0, X.shape[0], block):
        rows = slice(start, start + block)
        half[rows] = (averages @ gram_matrix(X[rows], X, kernel, gamma).T).T
    # eq: eq-invcal-kernel
    return averages @ half


def peak_memory(n, L, *, block=2000):
    """Bytes that a fit with a kernel needs: those of `bag_kernel`, or those of a dozen L x L matrices afterwards."""
    return 8.0 * max(n * (L + 2 * min(n, block)), 12 * L**2)


class InvCal(KernelClassifier):
    r"""Inverse calibration (Rüping 2010): regression of the log-odds of shares on bag means.

    Parameters
    ----------
    C_p : float, default 1.0
        Cost of a unit outside the tube.
    epsilon : float, default 0.1
        Half width of the tube. If one tube contains the targets of all bags, the score is constant, and the fit warns.
    epsilon_unit : {"log_odds", "share"}, default "log_odds"
        Unit of ``epsilon``: the log-odds of a share, as in the paper, so that all tubes have one width; or
        the share itself, with the half width :math:`\epsilon / (p_k (1 - p_k))`, as in public code of the authors of
        yu2013.
    kernel : {"linear", "rbf", "laplacian", "precomputed"} or callable, default "linear"
        A kernel other than "linear" costs :math:`n^2` of its values.
    gamma : float or "scale", default "scale"
        Kernel coefficient of "rbf" and "laplacian"; "scale" is 1 / (n_features * X.var()).
    fit_intercept : bool, default True
        Add an offset b to the score, which is not penalized.
    bag_weights : {"uniform", "size"} or array-like, shape (n_bags,), default "uniform"
        Factors of ``C_p``: 1 for each bag (the paper), the sizes of bags, or one number per row of ``proportions``.
    tol : float, default 1e-9
        Stop at this gap between primal and dual objective, relative to the minimum.
    verbose : int, default 0
        Progress over rounds of the solver: 0 none, 1 a line per second, 2 a line per round.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
    coef_ : ndarray, shape (1, n_features) or (n_classes, n_features)
        Weights of the features; absent with a kernel.
    intercept_ : ndarray, shape (1,) or (n_classes,)
    dual_coef_ : ndarray, shape (n_instances, 1)
        Weights of the training instances; only with a kernel.
    objective_ : float
        The minimum. This and the next two are attributes for two classes only.
    n_iter_ : int
        Newton steps.
    gap_ : float
        Gap between primal and dual objective at the end, on the scale of ``tol``.
    estimators_ : list of InvCal, or None
        One per class, for more than two.

    Raises
    ------
    NotIdentifiableError
        If all bags in use have the same share: every score would be its log-odds.
    ValueError
        For malformed input; see `llpbook.base`.

    Notes
    -----
    Linear: :math:`O(n d)` for the bag means, then :math:`O(L d^2)` per iteration with L bags. Probabilities are
    :math:`\sigma(f)`, calibrated for means of bags, not for instances. With a kernel: :math:`O(n^2)` time, then
    :math:`O(L^3)` per iteration, and :math:`O(n L + L^2)` memory. If the two classes are swapped, the predictions are
    swapped. If every instance is given twice, only the clipping changes: shares of 0 and 1 are clipped nearer to 0 and
    1, because n is larger.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 200)
    >>> X = rng.normal(size=(200, 2)) + 3.0 * y[:, None]
    >>> bags = np.repeat(np.arange(40), 5)
    >>> p = np.bincount(bags, y) / 5
    >>> float(InvCal().fit(X, bags, p).score(X, y)) > 0.9
    True
    """

    assumes = (None, "the log-odds of a share are linear in the mean of the bag")
    cost = "a support vector regression on the means of the bags"
    _several_classes, _cure = "one-vs-rest", "a larger C_p"
    _log_odds = _free_intercept = _uses_frequencies = True
    _parameter_constraints = {
        "epsilon": [Interval(Real, 0, None, closed="left")],
        "epsilon_unit": [StrOptions({"log_odds", "share"})],
    }

    def __init__(
        self, C_p: float = 1.0, epsilon: float = 0.1, *, epsilon_unit: str = "log_odds",
        kernel: str | Callable = "linear", gamma: float | str = "scale",
        fit_intercept: bool = True, bag_weights: str | ArrayLike = "uniform",
        tol: float = 1e-9, verbose: int = 0,
    ):  # fmt: skip
        self.C_p, self.epsilon, self.epsilon_unit = C_p, epsilon, epsilon_unit
        self.kernel, self.gamma, self.fit_intercept = kernel, gamma, fit_intercept
        self.bag_weights, self.tol, self.verbose = bag_weights, tol, verbose

    def _sums_needed(self):
        return "bag means"

    def _fit(self, data):
        if self.kernel == "linear":
            return super()._fit(data)
        # The fit needs bag means only: a kernel between bags suffices, no n x n matrix.
        L, n = data.S.shape
        need = f"InvCal with a kernel on {n} instances in {L} bags"
        require_memory(need, peak_memory(n, L), WITHOUT_GRAM)
        self.X_fit_ = data.X
        self.gamma_ = kernel_coefficient(self.gamma, data.X, data.frequencies)
        gram = bag_kernel(data.X, data.S, self.kernel, self.gamma_)
        means, to_dual = kernel_features(gram)
        refuse_indefinite(gram, means, self.kernel)
        self._gram(data.X[:1])  # a check, as in `KernelClassifier`
        weights = self._solve_means(data, means)
        self.dual_coef_ = data.S.T @ to_dual(weights[:, :-1].T)
        self.intercept_ = weights[:, -1]

    def _solve(self, data, Z):
        return self._solve_means(data, data.bag_means(Z))

    def _solve_means(self, data, means):
        penalties = self.C_p * data.bag_weights
        used, n = penalties > 0, data.n_instances
        means, p, penalties = means[used], data.proportions[used, 1], penalties[used]
        eps = tubes(p, n, self.epsilon, epsilon_unit=self.epsilon_unit)
        t = targets(p, n)
        low, high = (t - eps).max(), (t + eps).min()
        constant = low <= high if self.fit_intercept else low <= 0 <= high
        if constant and np.ptp(t) > 0:
            message = "every target is inside one tube, so that the score is a constant"
            warn(f"{message}; lower epsilon")
        progress = self._progress(MAX_ROUNDS, "round", USUAL_ROUNDS)
        w, b, _, self.n_iter_, self.gap_ = minimize(
            means, t, eps, penalties,
            intercept=self.fit_intercept, tol=self.tol, progress=progress.step,
        )  # fmt: skip
        self.objective_ = float(objective(w, b, means, t, eps, penalties))
        return np.append(w, b)[None, :]
