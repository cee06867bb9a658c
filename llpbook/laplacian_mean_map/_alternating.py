"""Alternating Mean Map: labels that fit the counts and the classifier, then a classifier that fits the labels."""

from collections.abc import Callable

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from .._counts import whole_counts
from ..base import (
    ArrayLike,
    KernelClassifier,
    RandomState,
    StrOptions,
    warn,
    warn_if_short,
)
from ..em import WarmFits, label_by_thresholds
from ..mean_map import class_means, mean_operator, minimize
from ._laplacian import LaplacianMeanMap

#: Most features of a fit by Newton's method, and most steps of another one.
NEWTON, FIT_ITERATIONS = 500, 1000
#: A fit by Newton's method is exact to this share of ``tol``: then the labels of a round are those of exact fits.
EXACT = 1e-2


class WarmMeanMap:
    """MeanMap's classifier of two classes for one mean operator after the other, each fit from the last one.

    Parameters
    ----------
    X : ndarray or sparse array, shape (n_instances, n_features)
        Of more than `NEWTON` features, `llpbook.mean_map.minimize` does each fit.
    lam : float
    tol : float
        Of `minimize`.
    """

    def __init__(self, X, lam, tol):
        self.X, self.lam, self.tol, (self.n, d) = X, lam, tol, X.shape
        self.mean, self.w = X.T @ np.ones(self.n) / self.n, None
        # In log-odds, 2 <w, x>, a quarter of the penalty.
        penalty = np.full(d, lam / 4)
        self.fits = WarmFits(X, penalty, tol=EXACT * tol) if d <= NEWTON else None

    def __call__(self, mu):
        """The next fit.

        Parameters
        ----------
        mu : ndarray, shape (1, n_features)

        Returns
        -------
        w : ndarray, shape (1, n_features)
        f : ndarray, shape (n_instances,)
            Log-odds.
        value : float
            Of `llpbook.mean_map.mean_map_objective`.
        """

        def slower(w):
            self.w, _, self._gap = minimize(
                self.X, mu, self.lam, max_iter=FIT_ITERATIONS, tol=self.tol, init=w
            )
            return 2 * self.w[0]

        if self.fits is None:
            f = self.X @ slower(self.w)
        else:
            target = (self.mean + mu[0]) / 2
            f = self.fits(target, lambda w: slower(w[None] / 2))
            self.w, self.mu = self.fits.w[None] / 2, mu
        size, w = np.abs(f), self.w[0]
        log_partition = size.mean() / 2 + np.log1p(np.exp(-size)).mean()
        value = log_partition - mu[0] @ w + self.lam / (2 * self.n) * w @ w
        return self.w, f, float(value)

    def gap(self):
        """The gap of the last fit, as `llpbook.mean_map.minimize` returns it."""
        if self.fits is None:
            return self._gap
        return 2 * self.fits.gap() / max(1.0, float(np.linalg.norm(self.mu)))


def alternate(X, bags, counts, w, fit, *, max_iter=100, tell=None):
    r"""The labels that fit best, then the classifier that fits these labels, until the labels repeat.

    Both steps of equation :eq:`eq-lmm-alternate` lower :math:`J(w, y)`, and there are finitely many labelings.

    Parameters
    ----------
    X : ndarray or sparse array, shape (n_instances, n_features)
    bags : ndarray of int, shape (n_instances,)
    counts : ndarray of int, shape (n_bags, 2)
    w : ndarray, shape (1, n_features)
        Weights to start from.
    fit : callable
        A `WarmMeanMap` of X.
    max_iter : int
        Rounds.
    tell : callable, optional
        Called after each round.

    Returns
    -------
    w : ndarray, shape (1, n_features)
    values : list of float
        The objective after each round.
    flips : float
        0 if the labels repeat, else the share of labels that would still change.
    """
    values, labels, f = [], np.zeros(len(bags)), X @ w[0]
    thresholds = np.full(len(counts), np.nan)
    while True:
        # eq: eq-lmm-alternate
        new = 2.0 * label_by_thresholds(f, bags, counts, thresholds) - 1
        flips, labels = float(np.mean(new != labels)), new
        if flips == 0 or len(values) == max_iter:
            return w, values, flips
        w, f, value = fit((X.T @ labels / len(labels))[None, :])
        values.append(value)
        if tell is not None:
            tell(f"{flips:.2%} of the labels changed")


class AlternatingMeanMap(KernelClassifier):
    r"""Alternating Mean Map (Patrini et al. 2014).

    Several classes are fitted one-vs-rest.

    Parameters
    ----------
    alpha : float, default 1.0
        Weight of the penalty of the classifier, as in `MeanMap`.
    init : {"laplacian", "mean_map", "random"} or LaplacianMeanMap, default "laplacian"
        The classifier to start from: that of `LaplacianMeanMap`, by default or with your graph of bags, of `MeanMap`,
        or a random direction.
    max_iter : int, default 100
        Rounds; each fits a classifier with at most `FIT_ITERATIONS` Newton steps.
    random_state : int, RandomState or None, default None
        For ``init="random"``.
    bag_weights : see `LaplacianMeanMap`
        Of the start.
    kernel, gamma, fit_intercept, tol : see `LaplacianMeanMap`
    verbose : int, default 0
        1 prints progress, one line per second.

    Attributes
    ----------
    classes_, coef_, intercept_, dual_coef_
        As for `LaplacianMeanMap`; with several classes in ``estimators_``.
    objective_curve_ : list of float
        The objective after each round.
    objective_ : float
        The last of ``objective_curve_``.
    n_iter_ : int
        Rounds.
    gap_ : float
        As for `MeanMap`, for the fit that gave the model; at least the share of the labels that would still change.

    Raises
    ------
    NotIdentifiableError
        If the proportions do not identify the start; "random" needs no proportions.
    ValueError
        For malformed input; see `llpbook.base`.

    Notes
    -----
    A round costs a sort of the scores and some Newton steps. Counts are :math:`n_k p_k`, rounded
    (`whole_counts`). Swapping the two classes swaps the predictions, except for ``init="random"``: the
    random direction stays the same, and the rounds may end in another local minimum. Giving all instances twice, in the
    same bags, has the effect of half of ``alpha``.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 200)
    >>> X = rng.normal(size=(200, 2)) + 3.0 * y[:, None]
    >>> bags = np.repeat(np.arange(40), 5)
    >>> p = np.bincount(bags, y) / 5
    >>> float(AlternatingMeanMap().fit(X, bags, p).score(X, y)) > 0.9
    True
    """

    assumes = (None, "of all labelings with the counts, a line fits the true one best")
    cost = "some tens of logistic regressions, started warm"
    _several_classes = "one-vs-rest"
    _log_odds = True
    _gram_copies = 3.4
    _parameter_constraints = {
        "init": [StrOptions({"laplacian", "mean_map", "random"}), LaplacianMeanMap],
    }

    def __init__(
        self, alpha: float = 1.0, *, init: str | LaplacianMeanMap = "laplacian",
        max_iter: int = 100, random_state: RandomState = None,
        bag_weights: str | ArrayLike = "size", kernel: str | Callable = "linear",
        gamma: float | str = "scale", fit_intercept: bool = True, tol: float = 1e-6,
        verbose: int = 0,
    ):  # fmt: skip
        self.alpha, self.init, self.max_iter = alpha, init, max_iter
        self.random_state, self.bag_weights = random_state, bag_weights
        self.kernel, self.gamma, self.fit_intercept = kernel, gamma, fit_intercept
        self.tol, self.verbose = tol, verbose

    @property
    def _equal_shares(self):
        if self.init == "random":
            return "warned"
        return getattr(self.init, "_equal_shares", "refused")

    def _solve(self, data, Z):
        counts = whole_counts(data.proportions, data.bag_sizes)
        fit = WarmMeanMap(Z, self.alpha, self.tol)
        w = self._start(data, Z, fit)
        tell = self._progress(self.max_iter, "round", usual=30).step
        w, values, flips = alternate(
            Z, data.bags, counts, w, fit, max_iter=self.max_iter, tell=tell
        )
        self.objective_curve_, self.objective_ = values, values[-1]
        self.n_iter_, self.gap_ = len(values), max(flips, fit.gap())
        if flips:
            warn(
                f"AlternatingMeanMap stopped after {self.max_iter} rounds with "
                f"{flips:.2%} of the labels still changing; raise max_iter",
                ConvergenceWarning,
            )
        if self.gap_ != flips:
            warn_if_short(self)
        return 2 * w  # log-odds are 2 <w, x>

    def _start(self, data, Z, fit):
        if self.init == "random":
            rng = check_random_state(self.random_state)
            w = rng.normal(size=(1, Z.shape[1]))
            return w / max(float(np.abs(Z @ w[0]).mean()), 1e-300)
        if self.init == "mean_map":
            means = class_means(data.bag_means(Z), data.proportions, data.bag_weights)
            return fit(mean_operator(data.class_prior, means))[0]
        first = LaplacianMeanMap() if self.init == "laplacian" else self.init
        return fit(first._operator(data, Z))[0]
