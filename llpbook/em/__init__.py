r"""EM around a classifier: guess the labels so that the counts are right, learn from them, guess again.

Hard EM descends, in turns, in the weights and in the labels on

.. math:: \min_{w} \min_{y \in \mathcal{Y}} \sum_i \ell(y_i, f_w(x_i)) + \tfrac{1}{2C} \lVert w \rVert^2 ,

:math:`\mathcal{Y}` all labelings with the known counts in each bag. For fixed labels this is supervised learning; for a
fixed classifier the best labels of a bag are its highest scores, as many as the count says. Soft EM replaces the best
labels by the posterior probability of each label given the count, which is that of `llpbook.count_likelihood`.

Chapter: ``book/em``. Source: comarela2018; franco2023 (section 6), which calls it EM/LR.
"""

import numpy as np
from sklearn.base import ClassifierMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.utils import check_random_state
from sklearn.utils.validation import has_fit_parameter

from .._counts import by_bag, label_by_counts, label_by_seats, ranks, whole_counts
from .._linear import bag_counts
from ..base import (
    LLPClassifier,
    RandomState,
    StrOptions,
    append_one,
    class_scores,
    row_order,
    warn,
)
from ..count_likelihood import (
    class_posterior,
    count_posterior,
    mean_map_start,
)
from ._fits import WarmFits, fit_to_labels, warm_logistic

__all__ = ["EMLR"]

#: The public implementation stops when the number of labels that change differs by less than this share of n.
FEW_FLIPS = 0.05
#: Iterations that a fit usually takes, for the estimate of its time.
USUAL = 50


def majority_labels(bags, proportions):
    r"""Each instance gets the largest class of its bag.

    Equation :eq:`eq-em-majority`. Where one class is the largest of every bag, it gets the class whose share is
    farthest above the mean share instead.

    Parameters
    ----------
    bags : ndarray of int, shape (n_instances,)
    proportions : ndarray, shape (n_bags, n_classes)

    Returns
    -------
    ndarray of int, shape (n_instances,)
    """
    # eq: eq-em-majority
    labels = proportions.argmax(axis=1)[bags]
    if (labels == labels[0]).all():
        above = proportions - proportions[bags].mean(axis=0)
        labels = np.round(above, 12).argmax(axis=1)[bags]
    return labels


def label_by_thresholds(scores, bags, counts, thresholds):
    """`label_by_counts` of two classes, faster where the last thresholds of most bags still cut off their counts.

    Where as many scores as the count says lie above the threshold, they are the highest; only the other bags are
    sorted.

    Parameters
    ----------
    scores : ndarray, shape (n_instances, n_classes) or (n_instances,)
        Of two classes, log-odds are enough.
    bags : ndarray of int, shape (n_instances,)
    counts : ndarray of int, shape (n_bags, n_classes)
    thresholds : ndarray, shape (n_bags,)
        Any numbers, or NaN; those of bags that are sorted are overwritten.

    Returns
    -------
    ndarray of int, shape (n_instances,)
        Of two classes, of the type int8.
    """
    gap, c = scores if scores.ndim == 1 else scores[:, 1] - scores[:, 0], counts[:, 1]
    labels = (gap > thresholds[bags]).view(np.int8)
    off = np.bincount(bags, labels, len(c)) != c
    rows = np.flatnonzero(off[bags])
    f, b = gap[rows], bags[rows]
    rank = ranks(f, b)
    labels[rows] = rank < c[b]
    above, below = np.full(len(c), np.inf), np.full(len(c), -np.inf)
    for border, place in ((above, c - 1), (below, c)):
        at = rank == place[b]
        border[b[at]] = f[at]
    thresholds[off] = above[off] / 2 + below[off] / 2
    return labels


def label_by_exchanges(scores, bags, counts, last):
    """`label_by_counts`, faster where the last labels of most bags are still the best.

    They are where no ring of classes gains if each gives an instance to the next; only the other bags are labeled anew.

    Parameters
    ----------
    scores : ndarray, shape (n_instances, n_classes)
    bags : ndarray of int, shape (n_instances,)
    counts : ndarray of int, shape (n_bags, n_classes)
    last : ndarray of int, shape (n_instances,)
        Any labels; those of bags that are labeled anew are overwritten.

    Returns
    -------
    ndarray of int, shape (n_instances,)
    """
    (L, K), cells = counts.shape, bags * counts.shape[1] + last
    sizes, order = np.bincount(cells, minlength=L * K), by_bag(cells, L * K)
    gains = scores - scores[np.arange(len(bags)), last][:, None]
    first = (np.cumsum(sizes) - sizes)[sizes > 0]
    best = np.full((L * K, K), -np.inf)
    best[sizes > 0] = np.maximum.reduceat(gains[order], first)
    best = best.reshape(L, K, K)
    for k in range(K):  # the largest gain of a chain from one class to another
        best = np.maximum(best, best[:, :, [k]] + best[:, [k]])
    gained = np.diagonal(best, axis1=1, axis2=2) > 0
    bad = (gained | (sizes.reshape(L, K) != counts)).any(axis=1)
    rows = np.flatnonzero(bad[bags])
    last[rows] = label_by_counts(scores[rows], bags[rows], counts)
    return last.copy()


def soft_labels(scores, observed):
    """The posterior probability of each label given the counts of its bag.

    Equation :eq:`eq-em-soft`. Exact for two classes in bags of up to 20; else the saddlepoint approximation of
    `llpbook.count_likelihood`, which for several classes in small bags is off by 0.03 to 0.06 (median, at worst 0.12).

    Parameters
    ----------
    scores : ndarray, shape (n_instances, n_classes)
    observed : BagCounts
        See `llpbook.count_likelihood.bag_counts`.

    Returns
    -------
    ndarray, shape (n_instances, n_classes)
    """
    if scores.shape[1] > 2:
        return np.clip(class_posterior(scores, observed)[1], 0, 1)
    # eq: eq-em-soft
    q = np.clip(count_posterior(scores[:, 1] - scores[:, 0], observed)[1], 0, 1)
    return np.column_stack([1 - q, q])


def start_labels(init, X, observed, counts, rng):
    """First labels.

    Parameters
    ----------
    init : {"majority", "proportions", "random", "mean_map"}
        See `EMLR`.
    X : ndarray or sparse array, shape (n_instances, n_features)
    observed : BagCounts
    counts : ndarray of int, shape (n_bags, n_classes)
    rng : RandomState

    Returns
    -------
    ndarray of int, shape (n_instances,)
    """
    bags, K = observed.bags, counts.shape[1]
    if init == "majority":
        return majority_labels(bags, observed.shares)
    if init == "random":
        return rng.randint(K, size=len(bags))
    if init == "proportions":
        return label_by_counts(rng.uniform(size=(len(bags), K)), bags, counts)
    X = append_one(X)
    weights = mean_map_start(X, observed, 1.0)
    weights = np.vstack([0 * weights, weights]) if K == 2 else weights
    return label_by_counts(X @ weights.T, bags, counts)


def likeliest(q):
    """Labels as they are; of weights of labels, the label with the largest."""
    return q if q.ndim == 1 else q.argmax(axis=1)


def alternate(q, fit, guess, stop, max_iter, tol, *, tell=None):
    """Fit to labels, guess them anew, until they stay.

    Parameters
    ----------
    q : ndarray, shape (n_instances,) or (n_instances, n_classes)
        First labels, or weights of labels.
    fit : callable
        From labels to scores.
    guess : callable
        From scores to labels.
    stop, max_iter, tol
        See `EMLR`.
    tell : callable, optional
        Called after each iteration with what happened.

    Returns
    -------
    q : ndarray, of the shape of q
        The labels of the last fit.
    flips : ndarray of int, shape (n_iter,)
    settled : bool
        False if the iterations ran out, or went round in a circle.
    gap : float
        The share of the labels that the last iteration changed; of weights, their largest change.
    """
    seen, flips, settled, new, gap = set(), [], False, q, 1.0
    few = FEW_FLIPS * len(q)
    while len(flips) < max_iter and not settled:
        key = hash(new.tobytes())
        if key in seen:
            break
        seen.add(key)
        q, new = new, guess(fit(new))
        flips.append(int(np.sum(likeliest(new) != likeliest(q))))
        gap = flips[-1] / len(q) if q.ndim == 1 else float(np.abs(new - q).max())
        settled = gap == 0 or (q.ndim == 2 and gap <= tol)
        if stop == "llp-learn" and len(flips) > 1:
            settled = abs(flips[-1] - flips[-2]) < few
        if tell is not None:
            tell(f"{flips[-1]} labels changed")
    return q, np.array(flips), settled, gap


def alternate_warm(q, warm, fit, guess, stop, max_iter, tol, *, tell=None):
    """`alternate` with fits that are fast, and then, from the labels of the last, with those that they stand for.

    Parameters
    ----------
    warm : callable
        From labels to scores, nearly those of ``fit``.
    q, fit, guess, stop, max_iter, tol, tell
        See `alternate`.

    Returns
    -------
    q, flips, settled, gap
        As those of `alternate`.
    """
    q, flips, *_ = alternate(q, warm, guess, stop, max_iter, tol, tell=tell)
    fits_left = max_iter + 1 - len(flips)  # the last labels are fitted once more
    q, last, settled, gap = alternate(q, fit, guess, stop, fits_left, tol)
    return q, np.append(flips[:-1], last), settled, gap


class EMLR(LLPClassifier):
    r"""EM around logistic regression, or any classifier (EM/LR).

    Parameters
    ----------
    C : float, default 1.0
        Of the logistic regression, as in scikit-learn; it does not act where ``estimator`` is given. No value is good
        everywhere: choose it by the shares of held-out bags.
    estimator : None or classifier, default None
        In the place of logistic regression, cloned once and fitted in each iteration; it must have ``predict_proba`` or
        ``decision_function`` (a column per class), and for ``soft=True`` take ``sample_weight``.
    init : {"majority", "proportions", "random", "mean_map"}, default "majority"
        First labels: the largest class of the bag; random ones with the right counts; random ones; those with the right
        counts that MeanMap finds likeliest.
    soft : bool, default False
        Weigh each instance by the posterior of its labels given the count, instead of guessing one.
    stop : {"fixed_point", "llp-learn"}, default "fixed_point"
        When the labels repeat; or, as the public implementation does, when the number of labels that change differs
        from the last one by less than 5 % of the instances.
    max_iter : int, default 500
    tol : float, default 1e-4
        Soft labels have converged when none changes by more.
    random_state : int, RandomState or None, default None
        For ``init`` "proportions" and "random".
    verbose : int, default 0
        1 prints a line a second with the number of labels that change, 2 a line for each iteration.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
    estimator_ : classifier
        Fitted to the labels of the last iteration, as 0, 1, ….
    labels_ : ndarray, shape (n_instances,)
        Of ``classes_``: the labels that it was fitted to; with ``soft``, the likeliest.
    flips_ : ndarray of int, shape (n_iter,)
        Labels that changed in each iteration.
    n_iter_ : int
        Fits of the classifier.
    gap_ : float
        Share of the labels that the last iteration changed, 0 at a fixed point; with ``soft``, the largest change of a
        weight.

    Raises
    ------
    NotIdentifiableError
        If two classes have the same share in every bag; or if all bags have the same shares, and ``init`` is
        "majority" or "mean_map".
    ValueError
        For malformed input; see `llpbook.base`; and for ``soft=True`` with an estimator without ``sample_weight``.

    Notes
    -----
    An iteration costs a fit and :math:`O(n \log n)`. Some tens of iterations are usual, some hundreds where n is a
    million. With bags of size 1 the first is the last: the classifier learns from the true labels.

    Exchanging the two classes can change the labels where something is tied: a bag whose shares are equal has the first
    class as its majority, and of equal scores in a bag, as a tree gives them, the first instances become positive, in
    an order that depends on their features only. Two copies of the data are the data with twice the ``C``.

    With the default estimator and hard labels, each fit starts at the last one and corrects its Newton matrix
    (`WarmFits`), and only bags whose labels would change are labeled anew: three or four passes over X per iteration.
    These fits are exact, too, and scikit-learn's own fit of their last labels must give the same labels, or else EM
    goes on with scikit-learn's fits.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 200)
    >>> X = rng.normal(size=(200, 2)) + 3.0 * y[:, None]
    >>> bags = np.repeat(np.arange(40), 5)
    >>> p = np.bincount(bags, y) / 5
    >>> float(EMLR().fit(X, bags, p).score(X, y)) > 0.9
    True
    """

    assumes = ("Y_B|X", "one P(y | x) holds in all bags")
    cost = "three seconds for 200,000 instances, a minute for a million"
    _equal_shares, _names_classes_by_shares = "warned", True
    _accept_sparse, _cure = "csr", "a larger C"
    _parameter_constraints = {
        "init": [StrOptions({"majority", "proportions", "random", "mean_map"})],
        "soft": ["boolean"],
        "stop": [StrOptions({"fixed_point", "llp-learn"})],
    }

    def __init__(
        self, C: float = 1.0, estimator: ClassifierMixin | None = None, *,
        init: str = "majority", soft: bool = False, stop: str = "fixed_point",
        max_iter: int = 500, tol: float = 1e-4, random_state: RandomState = None,
        verbose: int = 0,
    ):  # fmt: skip
        self.C, self.estimator, self.init, self.soft = C, estimator, init, soft
        self.stop, self.max_iter, self.tol = stop, max_iter, tol
        self.random_state, self.verbose = random_state, verbose

    @property
    def _scale(self):
        return "penalty" if self.estimator is None else None

    @property
    def _log_odds(self):
        return hasattr(self._base(), "predict_proba")

    def _base(self):
        if self.estimator is not None:
            return self.estimator
        return LogisticRegression(
            C=self.C, solver="newton-cholesky", tol=1e-8, warm_start=True
        )

    def _fit(self, data):
        if self.soft and not has_fit_parameter(self._base(), "sample_weight"):
            raise ValueError("soft=True needs an estimator that takes sample_weight")
        order = row_order(data)
        X, observed = data.X[order], bag_counts(data.bags[order], data.proportions)
        counts = whole_counts(observed.shares, observed.sizes)
        rng = check_random_state(self.random_state)
        y = start_labels(self.init, X, observed, counts, rng)
        labels, self.flips_, settled, self.gap_ = self._rounds(X, observed, counts, y)
        self.n_iter_ = len(self.flips_)
        self.labels_ = data.classes[likeliest(labels)[np.argsort(order)]]
        if not settled:
            warn_unsettled(self)

    def _rounds(self, X, observed, counts, y):
        K, bags = counts.shape[1], observed.bags
        last = np.full(len(counts), np.nan) if K == 2 else y.copy()
        self.estimator_ = clone(self._base())

        def fit(q):
            self.estimator_ = fit_to_labels(self.estimator_, X, q)
            return class_scores(self.estimator_, X, K)

        def guess(scores):
            if self.soft:
                return soft_labels(scores, observed)
            by = label_by_thresholds if K == 2 else label_by_exchanges
            return by(scores, bags, counts, last)

        tell = self._progress(self.max_iter, "iteration", usual=USUAL).step
        if self.soft or self.stop != "fixed_point" or self.estimator is not None:
            q = np.eye(K)[y] if self.soft else y
            return alternate(
                q, fit, guess, self.stop, self.max_iter, self.tol, tell=tell
            )
        warm, q = warm_logistic(self.estimator_, X, K), y.astype(np.int16)
        return alternate_warm(
            q, warm, fit, guess, self.stop, self.max_iter, self.tol, tell=tell
        )

    def _scores(self, X):
        scores = class_scores(self.estimator_, X, len(self.classes_))
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores


def warn_unsettled(model):
    """Warn that labels would still change."""
    warn(
        f"EMLR stopped after {model.n_iter_} iterations, and {model.flips_[-1]} labels would change; raise max_iter, "
        "or take an estimator that is not random",
        ConvergenceWarning,
    )
