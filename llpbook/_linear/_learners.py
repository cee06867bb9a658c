"""Two learners of any loss of bags: a linear model by Fisher scoring, and boosting."""

import warnings
from abc import abstractmethod
from dataclasses import replace
from numbers import Integral

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._input import Interval, require_rank
from ..base import (
    InChunks,
    KernelClassifier,
    LLPClassifier,
    append_one,
    feature_free_order,
    one_column,
    warn_if_short,
)
from ._bag_counts import bag_counts
from ._booster import boost_trees, tree_scores
from ._effects import BagEffects
from ._losses import ProportionLoss, refuse_unbounded
from ._objective import LinearObjective, linear_objective
from ._warnings import warn_if_held


class BagLossClassifier(LLPClassifier):
    """Base of the learners by a loss of bags: several classes as the loss can, natively or one against the rest.

    Known labels are bags of one. A subclass says which loss it minimizes in ``_bag_loss(prior)``.
    """

    _log_odds = _uses_frequencies = _labels_alone = True

    def _fit_checked(self, data):
        self.loss_ = self._bag_loss(data.class_prior)
        self._several_classes = (
            "native" if self.loss_.several_classes else "one-vs-rest"
        )
        super()._fit_checked(data)

    @abstractmethod
    def _bag_loss(self, prior):
        """The loss, told the class prior of shape (n_classes,)."""

    def _counts(self, data):
        """What is known of the labels; ValueError where the loss has no use for what was stated."""
        if not self.loss_.takes_errors and data.covariances is not None:
            raise ValueError(
                f"proportion_errors are of no use to {self.loss_!r}; the likelihood of the counts, loss='counts', "
                "takes them"
            )
        return bag_counts(
            data.bags, data.proportions, data.covariances, data.frequencies
        )

    def _linear_fit(self, objective, max_iter=1000, tol=1e-5):
        """The `Solution` of a linear model from zero slopes.

        Where there are fewer bags than weights also from the solution of the proportion loss; the lower one is kept.
        """
        Z, known = objective.Z, objective.known
        require_rank(known.shares, known.sizes)
        if objective.penalty.min() == 0:  # a free intercept
            refuse_unbounded(objective.loss, known, self.classes_)
        prior = known.sizes @ known.shares / objective.n
        start = np.zeros((1 if len(prior) == 2 else len(prior), Z.shape[1]))
        logs = np.log(np.maximum(prior, 0.5 / objective.n))
        if self._has_intercept:
            start[:, -1] = logs[1] - logs[0] if len(start) == 1 else logs - logs.mean()
        ways = [self.loss_.before]
        if len(known.sizes) < start.size and not isinstance(self.loss_, ProportionLoss):
            ways.append((ProportionLoss(),))
        found = [
            self._by_way_of(way, objective, start, max_iter, tol)
            for way in dict.fromkeys(ways)
        ]
        return min(found, key=lambda solution: solution.value)

    def _by_way_of(self, losses, objective, w, max_iter, tol):
        """The solution from a start, by way of those of other losses."""
        for loss in losses:
            parts = objective.Z, objective.known.possible(), objective.penalty
            first = linear_objective(loss, *parts)
            w = first.solve(w, max_iter, tol).w
        return objective.solve(w, max_iter, tol)


class LinearBagModel(BagEffects, BagLossClassifier, KernelClassifier):
    r"""Base of linear models of log-odds by a loss of bags.

    .. math:: \min_w \; \ell(Zw) + \tfrac{1}{2C} \lVert w \rVert^2

    Minimized by Fisher scoring from zero slopes, see `fisher_scoring`; where there are fewer bags than weights also
    from a second start, and the lower minimum is kept.

    Parameters
    ----------
    C : float
    kernel, gamma, fit_intercept
        See `KernelClassifier`.
    penalize_intercept : bool
        Whether the intercept is penalized like a weight, or free.
    proportion_errors, proportion_noise
        See `llpbook.count_likelihood.CountLogistic`.
    bag_deviation : None, float or "estimate"
        See `llpbook.count_likelihood.CountLogistic`.
    max_iter : int
    tol : float

    Attributes
    ----------
    loss_ : BagLoss
    bag_deviation_ : float
        The deviation of the intercepts of bags that was used; 0 for none.
    bag_effects_, bag_effect_errors_ : ndarray, shape (n_bags,)
        The intercept of each row of the proportions given its count, and its standard deviation.
    objective_ : float
        The penalized loss at the solution.
    n_iter_ : int
    gap_ : float

    Examples
    --------
    >>> from llpbook import CountLogistic
    >>> from llpbook.bag_losses import LinearBagModel
    >>> issubclass(CountLogistic, LinearBagModel)
    True
    >>> model = CountLogistic().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1], [0.0, 1.0])
    >>> model.predict([[0.5], [2.5]]).tolist()
    [0, 1]
    """

    _cure = "a larger C"

    @property
    def _free_intercept(self):
        return self.fit_intercept and not self.penalize_intercept

    @property
    def _has_intercept(self):
        return self.fit_intercept and (self._free_intercept or self.kernel == "linear")

    def _objective(self, data, Z):
        """The `LinearObjective` of checked data and the features of the solver."""
        known = replace(self._counts(data), laplace=check_noise(self, data))
        penalty = np.full(Z.shape[1] + self._free_intercept, 1 / self.C)
        if self._free_intercept:
            Z, penalty[-1] = append_one(Z), 0.0
        return linear_objective(self._require_deviation(data), Z, known, penalty)

    def _sums_needed(self):
        return "whole bags" if self.bag_deviation is None else None

    def _solve(self, data, Z):
        objective = self._objective(data, Z)
        found = self._solve_with_effects(objective, data)
        self.n_iter_, self.gap_, self.objective_ = found.n_iter, found.gap, found.value
        warn_if_short(self)
        if self.kernel == "linear" and not isinstance(Z, InChunks):
            warn_if_held(self, Z, found.w[:, : Z.shape[1]], data.frequencies)
        if self._free_intercept and len(found.w) > 1:
            found.w[:, -1] -= found.w[:, -1].mean()  # no objective tells their mean
        return found.w


def check_noise(estimator, data):
    """Whether the noise of the shares is Laplace noise.

    Parameters
    ----------
    estimator : LinearBagModel
    data : BagData

    Returns
    -------
    bool

    Raises
    ------
    ValueError
        If its size is not stated, or there are more than two classes for Laplace noise.
    """
    noise = estimator.proportion_noise
    if noise is not None and data.covariances is None:
        raise ValueError(
            f"proportion_noise={noise!r} needs proportion_errors, the standard deviation of the noise of each share"
        )
    if noise == "laplace" and len(data.classes) > 2:
        raise ValueError(
            f"proportion_noise='laplace' is for two classes, got {data.classes.tolist()}; 'gaussian' takes more"
        )
    return noise == "laplace"


class BoostedBagModel(BagLossClassifier):
    """Base of boosting by a loss of bags: starts from a linear model, then adds trees.

    The rounds end when bags held out have not gained for some rounds, and those up to the best are kept.

    Parameters
    ----------
    learning_rate : float
    max_iter : int
    max_leaf_nodes : int
    validation_fraction : float
    C : float
    proportion_errors : None or array-like
    verbose : int

    Attributes
    ----------
    loss_ : BagLoss
    start_coef_ : ndarray, shape (1, n_features + 1) or (n_classes, n_features + 1)
        The linear start, its intercept last.
    trees_ : object
        The trees up to the best round, for `tree_scores`; see `boost_trees`.
    n_iter_ : int
        The best round, which is the last one kept.
    validation_loss_ : ndarray
        Loss of the bags held out, per bag, before the first round and after each.
    """

    _scale, _cure = "penalty", "a larger C"  # of the linear start
    _uses_frequencies = False
    _has_intercept = True
    _parameter_constraints = {
        "max_iter": [Interval(Integral, 0, None, closed="left")],
    }

    def _fit(self, data):
        X, known = data.X, self._counts(data)
        held_out = held_out_bags(known, X, self.validation_fraction)
        rows, seen = ~held_out[known.bags], known.part(~held_out)
        scores = self._start(append_one(X), rows, seen)
        step = held_out_step(self.loss_, seen, known.part(held_out), rows)
        self.trees_, history = boost_trees(
            X, scores, step, rows, self.learning_rate, self.max_iter,
            max_leaf_nodes=self.max_leaf_nodes,
            after_round=self._progress(self.max_iter, "round").step,
        )  # fmt: skip
        self.validation_loss_, self.n_iter_ = history, int(np.argmin(history))

    def _start(self, Z, rows, seen):
        """Scores of all instances by a linear model of the bags seen."""
        penalty = np.full(Z.shape[1], 1 / self.C)
        penalty[-1] = 0.0
        # Trees go on from a start that stopped short, too.
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
            objective = LinearObjective(self.loss_, Z[rows], seen, penalty)
            self.start_coef_ = self._linear_fit(objective).w
        return one_column(Z @ self.start_coef_.T)

    def _scores(self, X):
        scores = one_column(append_one(X) @ self.start_coef_.T)
        return scores + tree_scores(self.trees_, X)


def held_out_bags(known, X, share):
    """Every tenth bag, say, in the order of their shares, and neither the first nor the last.

    Parameters
    ----------
    known : BagCounts
    X : ndarray, shape (n_instances, n_features)
    share : float
        Of the bags, to hold out; at least one is. None is if there are no more bags than three for each class.

    Returns
    -------
    ndarray of bool, shape (n_bags,)
        The same for any order of the instances, of the bags, of the features and of the classes: the order is by the
        share of the rarest class, and ties are broken by the lengths of the bag means.
    """
    L, K = known.shares.shape
    held_out = np.zeros(L, dtype=bool)
    if L > 3 * K:
        m = max(1, int(share * L))
        means = known.sums(X) / known.sizes[:, None]
        order = feature_free_order(known.shares, known.sizes, means)
        held_out[order[((np.arange(m) + 0.5) * L / m).astype(int)]] = True
    return held_out


def held_out_step(loss, seen, held_out, rows):
    """What boosting asks at some scores: the loss of the bags held out, and the Newton step of the others.

    Parameters
    ----------
    loss : BagLoss
    seen, held_out : BagCounts
    rows : ndarray of bool, shape (n_instances,)
        The instances of the bags seen.

    Returns
    -------
    callable
        From scores to a value per bag, the gradient and the curvature, 0 on the instances held out.
    """

    states = [None, None]

    def step(scores):
        gradient, hessian = np.zeros_like(scores), np.zeros_like(scores)
        found = loss.evaluate(scores[rows], seen, states[0])
        value, gradient[rows], states[0] = found
        hessian[rows], judged = loss.curved(scores[rows], states[0]), seen
        if not rows.all():
            value, _, states[1] = loss.evaluate(scores[~rows], held_out, states[1])
            judged = held_out
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            raise ValueError(
                f"{loss!r} must give finite numbers, got the value {value}"
            )
        return value / len(judged.sizes), gradient, hessian

    return step
