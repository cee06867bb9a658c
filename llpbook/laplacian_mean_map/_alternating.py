"""Alternating Mean Map: labels that fit the counts and the classifier, and the classifier that fits the labels."""

from numbers import Integral

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from ..base import (
    Interval,
    KernelClassifier,
    Progress,
    StrOptions,
    check_bag_weights,
    warn,
    warn_if_short,
)
from ..mean_map import binary_objective, class_means, mean_operator, minimise
from ._laplacian import LaplacianMeanMap


def consistent_labels(scores, bags, counts):
    r"""The labels, with the counts given, that fit scores best: in each bag the highest scores are positive.

    Equation :eq:`eq-lmm-labels`: they maximise :math:`\sum_i y_i f_i` over all labels with these counts. For the labels
    that fit worst hand in ``-scores``.

    Parameters
    ----------
    scores : ndarray, shape (n_instances,)
    bags : ndarray of int, shape (n_instances,)
    counts : ndarray of int, shape (n_bags,)
        Positives of each bag.

    Returns
    -------
    ndarray, shape (n_instances,)
        1.0 and -1.0. :math:`O(n \log n)`.
    """
    if len(counts) <= 2**16:  # integers this short are sorted in linear time
        bags = bags.astype(np.uint16)
    order = np.argsort(-scores)
    order = order[np.argsort(bags[order], kind="stable")]
    sizes = np.bincount(bags, minlength=len(counts))
    rank = np.arange(len(bags)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    labels = np.empty(len(bags))
    # eq: eq-lmm-labels
    labels[order] = np.where(rank < np.repeat(counts, sizes), 1.0, -1.0)
    return labels


def alternate(
    X, bags, counts, w, lam, max_rounds=100, max_iter=1000, tol=1e-6, tell=None
):
    r"""Labels that fit best, then the classifier that fits these, until the labels repeat.

    Both steps lower :math:`J(w, y)` of equation :eq:`eq-lmm-alternate`, and there are finitely many labelings.

    Parameters
    ----------
    X : ndarray or sparse array, shape (n_instances, n_features)
    bags : ndarray of int, shape (n_instances,)
    counts : ndarray of int, shape (n_bags,)
    w : ndarray, shape (1, n_features)
        Where to start.
    lam : float
    max_rounds, max_iter : int
    tol : float
    tell : callable, optional
        Called after each round.

    Returns
    -------
    w : ndarray, shape (1, n_features)
    values : list of float
        The objective after each round.
    flips : float
        0 where the labels repeat, else the share of labels that would have changed.
    gap : float
        Of the last fit, see `llpbook.mean_map.minimise`.
    """
    values, labels, gap = [], np.zeros(len(bags)), 0.0
    for _ in range(max_rounds):
        # eq: eq-lmm-alternate
        new = consistent_labels(X @ w[0], bags, counts)
        flips, labels = np.mean(new != labels), new
        if flips == 0:
            break
        mu = (X.T @ labels / len(labels))[None, :]
        w, _, gap = minimise(X, mu, lam, max_iter, tol, start=w)
        values.append(float(binary_objective(w[0], X, mu, lam)[0]))
        if tell is not None:
            tell(f"{flips:.2%} of the labels changed")
    else:
        flips = np.mean(consistent_labels(X @ w[0], bags, counts) != labels)
    return w, values, float(flips), gap


def alternate_worst(
    X, bags, counts, w, lam, max_rounds=100, max_iter=1000, tol=1e-6, tell=None
):
    r"""Labels that fit worst, then the classifier that fits these; of all rounds the classifier with the least loss.

    Equation :eq:`eq-lmm-worst`. The rounds do not settle, they swing between two sides: they end where labels repeat,
    or where six in a row have not been better.

    Parameters
    ----------
    X, bags, counts, w, lam, max_rounds, max_iter, tol, tell
        As for `alternate`.

    Returns
    -------
    w : ndarray, shape (1, n_features)
    values : list of float
        The loss of each round, of the classifier on the labels that it fits.
    """
    values, best, since, seen = [], w, 0, set()
    for _ in range(max_rounds):
        # eq: eq-lmm-worst
        labels = consistent_labels(-(X @ w[0]), bags, counts)
        if labels.tobytes() in seen or since > 5:
            break
        seen.add(labels.tobytes())
        mu = (X.T @ labels / len(labels))[None, :]
        w = minimise(X, mu, lam, max_iter, tol, start=w)[0]
        value = float(binary_objective(w[0], X, mu, lam)[0])
        better = not values or value < min(values) * (1 - 1e-9)
        best, since = (w, 0) if better else (best, since + 1)
        values.append(value)
        if tell is not None:
            tell()
    return best, values


class AlternatingMeanMap(KernelClassifier):
    r"""Alternating Mean Map (Patrini et al. 2014).

    Several classes one against the rest.

    Parameters
    ----------
    lam : float, default 1.0
        Weight of the penalty of the classifier, as in `MeanMap`.
    mode : {"min", "max"}, default "min"
        In each round, the labels with the smallest, or with the largest loss that the counts allow.
    start : {"laplacian", "mean map", "random"}, default "laplacian"
        The classifier to start from: that of `LaplacianMeanMap`, of `MeanMap`, or a random direction.
    max_rounds : int, default 100
    random_state : int, RandomState or None, default None
        For ``start="random"``.
    smoothness, sigma, similarity, n_neighbors, epsilon, bag_weights, operator_weights : see `LaplacianMeanMap`
        Of the start.
    kernel, gamma, fit_intercept, max_iter, tol : see `LaplacianMeanMap`
    verbose : int, default 0
        1 prints progress, one line each second.

    Attributes
    ----------
    classes_, coef_, intercept_, dual_coef_
        As for `LaplacianMeanMap`; with several classes in ``estimators_``.
    objectives_ : list of float
        The objective after each round; with "max" the least of them is that of the model.
    n_iter_ : int
        Rounds.

    Raises
    ------
    NotIdentifiableError
        If the start cannot be had from the proportions; "random" always can.
    ValueError
        For malformed input; see `llpbook.base`.

    Notes
    -----
    A round costs a sort of the scores and some Newton steps. Counts are :math:`n_k p_k`, rounded. Swapping the two
    classes swaps the predictions, but for ``start="random"``: the random direction is the same, and the rounds may end
    in another local minimum. Instances given twice, in the same bags, act as half of ``lam``.

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
        "start": [StrOptions({"laplacian", "mean map", "random"})],
        "max_rounds": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self, lam=1.0, mode="min", start="laplacian", max_rounds=100, random_state=None,
        smoothness=0.1, sigma="median", similarity="gaussian", n_neighbors=None,
        epsilon=0.0, bag_weights="size", operator_weights="size", kernel="linear",
        gamma="scale", fit_intercept=True, max_iter=1000, tol=1e-6, verbose=0,
    ):  # fmt: skip
        self.lam, self.mode, self.start, self.max_rounds = lam, mode, start, max_rounds
        self.random_state, self.smoothness, self.sigma = random_state, smoothness, sigma
        self.similarity, self.n_neighbors = similarity, n_neighbors
        self.epsilon, self.bag_weights = epsilon, bag_weights
        self.operator_weights, self.kernel, self.gamma = operator_weights, kernel, gamma
        self.fit_intercept, self.max_iter, self.tol = fit_intercept, max_iter, tol
        self.verbose = verbose

    def _solve(self, data, Z):
        counts = np.round(data.bag_sizes * data.proportions[:, 1]).astype(int)
        given = Z, data.bags, counts, self._start(data, Z), self.lam
        progress = Progress(self, self.max_rounds, "round", usual=30)
        limits = self.max_rounds, self.max_iter, self.tol, progress.step
        if self.mode == "max":
            w, self.objectives_ = alternate_worst(*given, *limits)
        else:
            w, self.objectives_, flips, gap = alternate(*given, *limits)
            if flips:
                warn(
                    f"AlternatingMeanMap stopped after {self.max_rounds} rounds with "
                    f"{flips:.2%} of the labels still changing; raise max_rounds",
                    ConvergenceWarning,
                )
            self.n_iter_ = len(self.objectives_)
            warn_if_short(self, gap)
        self.n_iter_ = len(self.objectives_)
        return 2 * w  # log-odds are 2 <w, x>

    def _start(self, data, Z):
        if self.start == "random":
            rng = check_random_state(self.random_state)
            w = rng.normal(size=(1, Z.shape[1]))
            return w / max(float(np.abs(Z @ w[0]).mean()), 1e-300)
        if self.start == "laplacian":
            own = LaplacianMeanMap().get_params()
            start = LaplacianMeanMap(**{name: getattr(self, name) for name in own})
            mu = start._operator(data, *start._graph(data, Z))
        else:
            weights = check_bag_weights(self.bag_weights, data)
            means = class_means(data.bag_means(Z), data.proportions, weights)
            mu = mean_operator(data.class_prior, means)
        return minimise(Z, mu, self.lam, self.max_iter, self.tol)[0]
