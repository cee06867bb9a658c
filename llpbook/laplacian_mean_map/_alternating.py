"""Alternating Mean Map: labels that fit the counts and the classifier, then a classifier that fits the labels."""

from collections.abc import Callable

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from ..base import (
    ArrayLike,
    KernelClassifier,
    RandomState,
    StrOptions,
    warn,
    warn_if_short,
    whole_counts,
)
from ..em import WarmFits, label_by_thresholds
from ..mean_map import class_means, mean_operator, minimize
from ._laplacian import LaplacianMeanMap

#: Most features of a fit by Newton's method, and most steps of another one.
NEWTON, FIT_ITERATIONS = 500, 1000
#: A fit by Newton's method is exact to this share of ``tol``: then the labels of a round are those of exact fits.
EXACT = 1e-4


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
            Of `llpbook.mean_map.binary_objective`.
        gap : float
            Of `llpbook.mean_map.minimize`.
        """

        def slower(w):
            found = minimize(
                self.X, mu, self.lam, max_iter=FIT_ITERATIONS, tol=self.tol, init=w
            )
            self.w, _, self.gap = found
            return 2 * self.w[0]

        if self.fits is None:
            f = self.X @ slower(self.w)
        else:
            target = (self.mean + mu[0]) / 2
            f = self.fits(target, lambda w: slower(w[None] / 2))
            self.w = self.fits.w[None] / 2
            self.gap = 2 * self.fits.gap / max(1.0, float(np.linalg.norm(mu)))
        size, w = np.abs(f), self.w[0]
        log_partition = size.mean() / 2 + np.log1p(np.exp(-size)).mean()
        value = log_partition - mu[0] @ w + self.lam / (2 * self.n) * w @ w
        return self.w, f, float(value), self.gap


def consistent_labels(scores, bags, counts, *, thresholds=None):
    r"""Of all labels with the given counts those that fit the scores best: in each bag the highest scores are positive.

    Equation :eq:`eq-lmm-labels`: they maximize :math:`\sum_i y_i f_i` over all labels with these counts. For the labels
    that fit worst pass ``-scores``.

    Parameters
    ----------
    scores : ndarray, shape (n_instances,)
    bags : ndarray of int, shape (n_instances,)
    counts : ndarray of int, shape (n_bags,)
        Positives of each bag.
    thresholds : ndarray, shape (n_bags,), optional
        Of the last call, see `llpbook.em.label_by_thresholds`.

    Returns
    -------
    ndarray, shape (n_instances,)
        1.0 and -1.0. :math:`O(n \log n)`.
    """
    if thresholds is None:
        thresholds = np.full(len(counts), np.nan)
    both = np.column_stack([counts, counts])  # of negatives, none is read
    # eq: eq-lmm-labels
    return 2.0 * label_by_thresholds(scores, bags, both, thresholds) - 1


def alternate(X, bags, counts, w, fit, *, max_iter=100, tell=None):
    r"""The labels that fit best, then the classifier that fits these labels, until the labels repeat.

    Both steps lower :math:`J(w, y)` of equation :eq:`eq-lmm-alternate`, and there are finitely many labelings.

    Parameters
    ----------
    X : ndarray or sparse array, shape (n_instances, n_features)
    bags : ndarray of int, shape (n_instances,)
    counts : ndarray of int, shape (n_bags,)
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
    gap : float
        Of the last fit.
    """
    values, labels, gap, f = [], np.zeros(len(bags)), 0.0, X @ w[0]
    thresholds = np.full(len(counts), np.nan)
    for _ in range(max_iter):
        # eq: eq-lmm-alternate
        new = consistent_labels(f, bags, counts, thresholds=thresholds)
        flips, labels = np.mean(new != labels), new
        if flips == 0:
            break
        w, f, value, gap = fit((X.T @ labels / len(labels))[None, :])
        values.append(value)
        if tell is not None:
            tell(f"{flips:.2%} of the labels changed")
    else:
        flips = np.mean(consistent_labels(f, bags, counts) != labels)
    return w, values, float(flips), gap


def alternate_worst(X, bags, counts, w, fit, *, max_iter=100, tell=None):
    r"""The labels that fit worst, then the classifier that fits these; the classifier of the round with the least loss.

    Equation :eq:`eq-lmm-worst`. The rounds do not converge, they alternate between two sides. They end if labels
    repeat, or if six rounds in a row bring no improvement.

    Parameters
    ----------
    X, bags, counts, w, fit, max_iter, tell
        As for `alternate`.

    Returns
    -------
    w : ndarray, shape (1, n_features)
    values : list of float
        The loss of each round: of its classifier on the labels that this classifier fits.
    gap : float
        Of the fit that gave ``w``.
    """
    values, best, since, seen, f = [], (w, 0.0), 0, set(), X @ w[0]
    for _ in range(max_iter):
        # eq: eq-lmm-worst
        labels = consistent_labels(-f, bags, counts)
        if labels.tobytes() in seen or since > 5:
            break
        seen.add(labels.tobytes())
        w, f, value, gap = fit((X.T @ labels / len(labels))[None, :])
        better = not values or value < min(values) * (1 - 1e-9)
        best, since = ((w, gap), 0) if better else (best, since + 1)
        values.append(value)
        if tell is not None:
            tell()
    return best[0], values, best[1]


class AlternatingMeanMap(KernelClassifier):
    r"""Alternating Mean Map (Patrini et al. 2014).

    Several classes are fitted one-vs-rest.

    Parameters
    ----------
    alpha : float, default 1.0
        Weight of the penalty of the classifier, as in `MeanMap`.
    mode : {"min", "max"}, default "min"
        Each round takes the labels with the smallest, or with the largest, loss that the counts allow.
    init : {"laplacian", "mean_map", "random"}, default "laplacian"
        The classifier to start from: that of `LaplacianMeanMap`, of `MeanMap`, or a random direction.
    max_iter : int, default 100
        Rounds; each fits a classifier with at most `FIT_ITERATIONS` Newton steps.
    random_state : int, RandomState or None, default None
        For ``init="random"``.
    smoothness, sigma, similarity, n_neighbors, epsilon, bag_weights, operator_weights : see `LaplacianMeanMap`
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
        The objective of the model: the last of ``objective_curve_``, or its least for "max".
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
    (`llpbook.base.whole_counts`). Swapping the two classes swaps the predictions, except for ``init="random"``: the
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

    assumes = (None, "the labels that a linear rule fits best, given the counts")
    cost = "some tens of logistic regressions, started warm"
    _several_classes = "one-vs-rest"
    _log_odds = True
    _gram_copies = 3.4
    _parameter_constraints = {
        **LaplacianMeanMap._parameter_constraints,
        "mode": [StrOptions({"min", "max"})],
        "init": [StrOptions({"laplacian", "mean_map", "random"})],
        "random_state": ["random_state"],
    }

    def __init__(
        self, alpha: float = 1.0, mode: str = "min", *, init: str = "laplacian",
        max_iter: int = 100, random_state: RandomState = None,
        smoothness: float = 0.1, sigma: float | str = "median",
        similarity: str = "gaussian", n_neighbors: int | None = None,
        epsilon: float = 0.0, bag_weights: str | ArrayLike = "size",
        operator_weights: str = "size", kernel: str | Callable = "linear",
        gamma: float | str = "scale", fit_intercept: bool = True, tol: float = 1e-6,
        verbose: int = 0,
    ):  # fmt: skip
        self.alpha, self.mode, self.init, self.max_iter = alpha, mode, init, max_iter
        self.random_state, self.smoothness, self.sigma = random_state, smoothness, sigma
        self.similarity, self.n_neighbors = similarity, n_neighbors
        self.epsilon, self.bag_weights = epsilon, bag_weights
        self.operator_weights, self.kernel, self.gamma = operator_weights, kernel, gamma
        self.fit_intercept, self.tol, self.verbose = fit_intercept, tol, verbose

    @property
    def _equal_shares(self):
        pulled = self.init == "laplacian" and self.epsilon > 0
        return "warned" if pulled or self.init == "random" else "refused"

    def _solve(self, data, Z):
        counts = whole_counts(data.proportions, data.bag_sizes)[:, 1]
        fit = WarmMeanMap(Z, self.alpha, self.tol)
        given = Z, data.bags, counts, self._start(data, Z, fit), fit
        progress = self._progress(self.max_iter, "round", usual=30)
        limits = {"max_iter": self.max_iter, "tell": progress.step}
        if self.mode == "max":
            w, values, self.gap_ = alternate_worst(*given, **limits)
            self.objective_, flips = min(values), 0.0
        else:
            w, values, flips, gap = alternate(*given, **limits)
            self.objective_, self.gap_ = values[-1], max(flips, gap)
            if flips:
                warn(
                    f"AlternatingMeanMap stopped after {self.max_iter} rounds with "
                    f"{flips:.2%} of the labels still changing; raise max_iter",
                    ConvergenceWarning,
                )
        self.objective_curve_, self.n_iter_ = values, len(values)
        if self.gap_ != flips:
            warn_if_short(self)
        return 2 * w  # log-odds are 2 <w, x>

    def _start(self, data, Z, fit):
        if self.init == "random":
            rng = check_random_state(self.random_state)
            w = rng.normal(size=(1, Z.shape[1]))
            return w / max(float(np.abs(Z @ w[0]).mean()), 1e-300)
        if self.init == "laplacian":
            own = LaplacianMeanMap().get_params()
            own = {name: getattr(self, name) for name in own if name != "max_iter"}
            start = LaplacianMeanMap(**own)
            mu = start._operator(data, *start._graph(data, Z))
        else:
            bags = data.proportions, data.bag_weights
            means = class_means(data.bag_means(Z), *bags)
            mu = mean_operator(data.class_prior, means)
        return fit(mu)[0]
