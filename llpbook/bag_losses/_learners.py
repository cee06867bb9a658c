"""Two learners of any loss of bags: a linear one, and boosted trees; and batches of whole bags for others."""

import warnings
from dataclasses import replace
from numbers import Integral, Real

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from ..base import (
    Interval,
    KernelClassifier,
    LLPClassifier,
    Progress,
    StrOptions,
    canonical_order,
    warn,
    warn_if_short,
)
from ..count_likelihood import (
    bag_counts,
    boost_trees,
    descend,
    held_out_bags,
    mean_map_start,
    one_column,
    tree_scores,
)
from ._losses import CountLoss, NormalLoss, ProportionLoss
from ._protocol import BagLoss
from ._unbiased import EasyLoss, ForwardLoss, easy_labels

#: The losses by the names that `BagLogistic` and `BagBoosting` know.
LOSSES = {
    "counts": CountLoss(),
    "normal": NormalLoss(),
    "proportion": ProportionLoss(),
    "squares": ProportionLoss("squares"),
    "easy": EasyLoss(),
    "forward": ForwardLoss(),
}
#: A label of `EasyLoss` of which a fit warns: bags of 500 and an even prior have a standard deviation of 11.
FAR = 50.0


def loss_of(name, prior):
    """A loss by its name, or itself, told the class prior.

    Parameters
    ----------
    name : str or BagLoss
    prior : ndarray, shape (n_classes,)

    Returns
    -------
    BagLoss
    """
    return (LOSSES[name] if isinstance(name, str) else name).with_prior(prior)


def objective(w, X, known, loss, C):
    r"""Penalized loss of a linear model and its gradient, per instance.

    :math:`\frac1n \bigl( \ell(Xw) + \frac{1}{2C} \lVert w \rVert^2 \bigr)`.

    Parameters
    ----------
    w : ndarray, shape (n_columns,) or (n_classes * n_columns,)
    X : ndarray or sparse array, shape (n_instances, n_columns)
    known : BagCounts
    loss : BagLoss
    C : float

    Returns
    -------
    value : float
    gradient : ndarray, of the shape of w
    """
    n, d = X.shape
    rows = w.reshape(-1, d)
    value, slope, _ = loss.of_counts(one_column(X @ rows.T), known)
    gradient = (X.T @ slope).T.reshape(rows.shape) / n + rows / (C * n)
    return (value + w @ w / (2 * C)) / n, gradient.ravel()


def known_alone(data):
    """Known labels as bags of one, for losses to which a bag of many known labels is not the same.

    Parameters
    ----------
    data : BagData
        With its known labels as one pure bag per class.

    Returns
    -------
    BagData
        With one pure bag per known label.
    """
    n_bags = len(data.proportions) - data.n_pure
    rows = np.flatnonzero(data.bags >= n_bags)
    shares = data.proportions[data.bags[rows]]
    bags = data.bags.copy()
    bags[rows] = n_bags + np.arange(len(rows))
    shares = np.vstack([data.proportions[:n_bags], shares])
    return replace(data, bags=bags, proportions=shares, n_pure=len(rows))


def warn_of_easy(loss, data):
    """Warn where the labels of an `EasyLoss` are far outside of [0, 1].

    Parameters
    ----------
    loss : BagLoss
    data : BagData
    """
    if isinstance(loss, EasyLoss):
        known = bag_counts(data.bags, data.proportions)
        labels = np.abs(easy_labels(known, np.array(loss.prior))).max(axis=1)
        worst = labels.argmax()
        if labels[worst] > FAR:
            warn(
                f"the loss 'easy' gives each instance of a bag of {known.sizes[worst]} the label {labels[worst]:.0f}, "
                "not 0 or 1: its variance grows with the size of the bag; loss='proportion' has no such labels"
            )


class LossClassifier(LLPClassifier):
    """Base of the learners by ``loss``: several classes as it can, natively or one against the rest.

    Known labels are bags of one.
    """

    def _fit_checked(self, data):
        loss = loss_of(self.loss, data.class_prior)
        self._several_classes = "native" if loss.several_classes else "one-vs-rest"
        data = known_alone(data)
        warn_of_easy(loss, data)
        super()._fit_checked(data)


class BagLogistic(LossClassifier, KernelClassifier):
    r"""A linear model of log-odds by any loss of bags, from MeanMap on.

    Parameters
    ----------
    loss : {"counts", "normal", "proportion", "squares", "easy", "forward"} or BagLoss, default "counts"
        "counts" is `CountLogistic`.
    C : float, default 0.1
        The penalty is :math:`\lVert w \rVert^2 / (2C)`.
    kernel : {"linear", "rbf", "laplacian", "precomputed"} or callable, default "linear"
    gamma : float or "scale", default "scale"
        Kernel coefficient; "scale" is 1 / (n_features * X.var()).
    fit_intercept : bool, default True
        Add the feature 1; its weight is penalized like the others.
    max_iter : int, default 1000
    tol : float, default 1e-5
        Largest entry of the gradient of the objective per instance at which to stop.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
    loss_ : BagLoss
        The loss that was minimized, with the class prior where it needs that.
    coef_ : ndarray, shape (1, n_features) or (n_classes, n_features)
        Log-odds. Not with a kernel.
    intercept_ : ndarray, shape (1,) or (n_classes,)
    dual_coef_ : ndarray, shape (n_instances, 1) or (n_instances, n_classes)
        With a kernel only.
    n_iter_ : int
    gap_ : float
        Largest entry of the gradient of the objective per instance: 0 at a local minimum.

    Raises
    ------
    NotIdentifiableError
        If all bags have the same proportions, or fewer of them differ than there are classes.
    ValueError
        For malformed input; see `llpbook.base`.

    Notes
    -----
    The losses "normal" and "forward" know two classes; several are fitted one against the rest. "easy" is convex, the
    others are not; all start from MeanMap's solution with the same penalty, "normal" by way of the solution of
    "proportion". In bags of size 1 "counts", "proportion" and "easy" are ridge-penalized logistic regression; known
    labels become such bags.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 200)
    >>> X = rng.normal(size=(200, 2)) + 3.0 * y[:, None]
    >>> bags = np.repeat(np.arange(40), 5)
    >>> p = np.bincount(bags, y) / 5
    >>> float(BagLogistic("proportion").fit(X, bags, p).score(X, y)) > 0.9
    True
    """

    assumes = (
        "Y_B|X",
        "one P(y | x) holds in all bags, with log-odds linear in x; loss='easy' needs "
        "random bags, loss='forward' bags that differ in their shares alone",
    )
    cost = "some logistic regressions: half a second for 100,000"
    _log_odds = True
    _parameter_constraints = {
        **KernelClassifier._parameter_constraints,
        "loss": [StrOptions({*LOSSES}), BagLoss],
        "C": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self, loss="counts", C=0.1, kernel="linear", gamma="scale", fit_intercept=True,
        max_iter=1000, tol=1e-5,
    ):  # fmt: skip
        self.loss, self.C = loss, C
        self.kernel, self.gamma, self.fit_intercept = kernel, gamma, fit_intercept
        self.max_iter, self.tol = max_iter, tol

    def _solve(self, data, Z):
        known = bag_counts(data.bags, data.proportions)
        self.loss_ = loss_of(self.loss, data.class_prior)
        weights = mean_map_start(Z, known, self.C)
        for loss in [*self.loss_.before, self.loss_]:
            weights, self.n_iter_, self.gap_ = descend(
                objective, weights, (Z, known, loss, self.C), self.max_iter, self.tol
            )
        warn_if_short(self)
        return weights


class BagBoosting(LossClassifier):
    r"""Boosted trees by any loss of bags.

    Starts from a linear model of the same loss; each round fits a tree to the Newton steps of the log-odds. All
    rounds are fitted at once, and those up to the best on bags held out are kept.

    Parameters
    ----------
    loss : {"counts", "normal", "proportion", "squares", "easy", "forward"} or BagLoss, default "counts"
        "counts" is `CountBoosting`.
    learning_rate : float, default 1.5
        Share of each step that is added to the log-odds.
    max_iter : int, default 100
        Rounds.
    max_leaf_nodes : int, default 8
        Leaves of a tree.
    validation_fraction : float, default 0.1
        Share of the bags that are held out to say which round is the best; their labels stay unknown.
    C : float, default 0.1
        Of the linear start, see `BagLogistic`.
    verbose : int, default 0
        1 prints a line a second while the rounds go on, 2 a line for each round.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
    loss_ : BagLoss
    start_ : BagLogistic
        The linear start.
    trees_ : object
        The trees of the rounds that are kept, see `llpbook.count_likelihood.boost_trees`.
    n_iter_ : int
        Rounds that are kept.
    validation_loss_ : ndarray, shape (max_iter + 1,)
        The loss of the bags held out per instance, before the first round and after each.

    Raises
    ------
    NotIdentifiableError
        If the proportions cannot give a start, see `BagLogistic`.
    ValueError
        For malformed input; see `llpbook.base`.

    Notes
    -----
    Of few bags (up to three per class) none is held out, and the loss of all bags chooses. Where one bag is held out,
    "forward" cannot pair it, and keeps the start.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 400)
    >>> X = rng.normal(size=(400, 2)) + 3.0 * y[:, None]
    >>> bags = np.repeat(np.arange(80), 5)
    >>> p = np.bincount(bags, y) / 5
    >>> float(BagBoosting("proportion").fit(X, bags, p).score(X, y)) > 0.9
    True
    """

    assumes = (
        "Y_B|X",
        "one P(y | x) holds in all bags; loss='easy' needs random bags, loss='forward' "
        "bags that differ in their shares alone",
    )
    cost = "boosted trees: three seconds for 100,000, two with the proportion loss"
    _log_odds, _scale = True, "penalty"  # of the linear start
    _parameter_constraints = {
        "loss": [StrOptions({*LOSSES}), BagLoss],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 0, None, closed="left")],
        "max_leaf_nodes": [Interval(Integral, 2, None, closed="left")],
        "validation_fraction": [Interval(Real, 0, 0.5, closed="right")],
        "C": [Interval(Real, 0, None, closed="neither")],
        "verbose": ["verbose"],
    }

    def __init__(
        self, loss="counts", learning_rate=1.5, max_iter=100, max_leaf_nodes=8,
        validation_fraction=0.1, C=0.1, verbose=0,
    ):  # fmt: skip
        self.loss, self.learning_rate, self.max_iter = loss, learning_rate, max_iter
        self.max_leaf_nodes, self.validation_fraction = (
            max_leaf_nodes,
            validation_fraction,
        )
        self.C, self.verbose = C, verbose

    def _fit(self, data):
        order = canonical_order(np.hstack([data.X, data.proportions[data.bags]]))
        X, known = data.X[order], bag_counts(data.bags[order], data.proportions)
        held_out = held_out_bags(known, X, self.validation_fraction)
        rows, self.loss_ = ~held_out[known.bags], loss_of(self.loss, data.class_prior)
        self.start_ = BagLogistic(self.loss_, self.C)
        parts = known.part(~held_out), known.part(held_out)
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
            # Trees go on from a start that stopped short, too.
            self.start_.fit(X[rows], parts[0].bags, parts[0].shares)
        progress = Progress(self, self.max_iter, "round")
        self.trees_, self.validation_loss_ = boost_trees(
            X, self.start_.decision_function(X), two_parts(self.loss_, *parts, rows),
            rows, self.learning_rate, self.max_iter, self.max_leaf_nodes, progress.step,
        )  # fmt: skip
        self.n_iter_ = int(np.argmin(self.validation_loss_))

    def _scores(self, X):
        return self.start_.decision_function(X) + tree_scores(self.trees_, X)


def two_parts(loss, seen, held_out, rows):
    """A loss of scores for `llpbook.count_likelihood.boost_trees`: steps of the bags seen, the value of the others.

    Parameters
    ----------
    loss : BagLoss
    seen, held_out : BagCounts
    rows : ndarray of bool, shape (n_instances,)
        The instances of the bags seen.

    Returns
    -------
    callable
    """

    def step(scores):
        gradient, hessian = np.zeros_like(scores), np.zeros_like(scores)
        value, gradient[rows], hessian[rows] = loss.of_counts(scores[rows], seen)
        if rows.all():
            return value / len(rows), gradient, hessian
        value = loss.of_counts(scores[~rows], held_out)[0]
        return value / np.sum(~rows), gradient, hessian

    return step


class BagBatches:
    """Batches of whole bags, for a learner that sees some instances at a time.

    Iterating gives, for each batch, the rows of its instances: as ``batch_sampler`` of a PyTorch ``DataLoader`` it
    keeps each bag in one batch. Each pass has another order of the bags.

    Parameters
    ----------
    bags : array-like of int, shape (n_instances,)
    bags_per_batch : int, default 8
    random_state : int, RandomState instance or None, default None

    Raises
    ------
    ValueError
        If ``bags`` is empty or not of one dimension, or ``bags_per_batch`` is no whole number above 0.

    Examples
    --------
    >>> [rows.tolist() for rows in BagBatches([0, 1, 0, 1], 2, random_state=0)]
    [[0, 1, 2, 3]]
    """

    def __init__(self, bags, bags_per_batch=8, random_state=None):
        bags = np.asarray(bags)
        if bags.ndim != 1 or len(bags) == 0:
            raise ValueError(
                f"bags must be of one dimension and not empty, got shape {bags.shape}"
            )
        whole = isinstance(bags_per_batch, Integral)
        if not whole or bags_per_batch < 1:
            raise ValueError(
                f"bags_per_batch must be a whole number above 0, got {bags_per_batch!r}"
            )
        _, codes, sizes = np.unique(bags, return_inverse=True, return_counts=True)
        order = np.argsort(codes, kind="stable")
        self.rows = np.split(order, np.cumsum(sizes)[:-1])
        self.bags_per_batch = int(bags_per_batch)
        self.random = check_random_state(random_state)

    def __len__(self):
        return -(-len(self.rows) // self.bags_per_batch)

    def __iter__(self):
        order = self.random.permutation(len(self.rows))
        for first in range(0, len(order), self.bags_per_batch):
            chosen = order[first : first + self.bags_per_batch]
            yield np.sort(np.concatenate([self.rows[k] for k in chosen]))
