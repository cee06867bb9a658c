"""Two learners of any loss of bags: a linear model by Fisher scoring, and boosting."""

from abc import abstractmethod
from dataclasses import replace
from numbers import Integral

import numpy as np
import pandas as pd

from .._input import Interval, check_bags
from ..base import (
    InChunks,
    KernelClassifier,
    LLPClassifier,
    append_one,
    feature_free_order,
    one_column,
    warn_if_short,
)
from ._booster import boost_trees, tree_scores
from ._effects import averaged_probabilities
from ._groups import warn_if_groups_held
from ._problem import linear_problem, minimize_from_zero, observed_counts
from ._warnings import warn_if_held


class BagLossClassifier(LLPClassifier):
    """Base of learners by a loss of bags: several classes natively if the loss can, else one against the rest.

    Known labels are bags of one. A subclass returns the loss that its parameters ask for in ``_bag_loss()``.

    Attributes
    ----------
    loss_ : BagLoss
        With the class prior, where it needs that.
    """

    _log_odds = _uses_frequencies = _labels_alone = True

    @property
    def _several_classes(self):
        native = getattr(self._bag_loss(), "several_classes", False)
        return "native" if native else "one-vs-rest"

    @abstractmethod
    def _bag_loss(self):
        """The loss of the parameters, without a class prior."""

    def _fit_one_vs_rest(self, data):
        self.loss_ = self._bag_loss().with_prior(data.class_prior)
        super()._fit_one_vs_rest(data)


class LinearBagModel(BagLossClassifier, KernelClassifier):
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

    def _loss_for(self, data):
        """The loss with the class prior and a deviation of bags; ValueError if bags cannot have intercepts."""
        loss = self._bag_loss().with_prior(data.class_prior)
        deviation = self.bag_deviation
        if deviation is None:
            return loss
        if not hasattr(loss, "with_deviation"):
            raise ValueError(
                f"bag_deviation={deviation!r} needs the likelihood of the counts, loss='counts', got {loss!r}"
            )
        if data.n_pure or data.covariances is not None or len(data.classes) > 2:
            raise ValueError(
                f"bag_deviation={deviation!r} is for two classes, without labels= and proportion_errors"
            )
        return loss.with_deviation(0.0 if deviation == "estimate" else float(deviation))

    def _problem(self, data, features, loss):
        """Make the `Problem` of checked data and the features of the solver, without a free intercept."""
        used, n_bags = np.unique(data.bags), len(data.proportions) - data.n_pure
        return linear_problem(
            loss, features, observed_counts(data, loss, check_noise(self, data)),
            self.C, self.classes_, free_intercept=self._free_intercept,
            used=np.where(used < n_bags, used, -1),
        )  # fmt: skip

    def problem(self, data):
        """Make the `Problem` that this fitted linear model solves for some bags, with its weights.

        Parameters
        ----------
        data : BagData
            As read, in memory or in chunks; known labels become bags of one.

        Returns
        -------
        Problem
        """
        data = self._with_parameters(data)
        constant = self.fit_intercept and not self._free_intercept
        features = append_one(data.X) if constant else data.X
        intercept = self.intercept_[:, None][:, : int(self.fit_intercept)]
        return replace(
            self._problem(data, features, self.loss_),
            weights=np.hstack([self.coef_, intercept]),
            slack=10 * max(getattr(self, "gap_", 0.0), self.tol),
        )

    def _sums_needed(self):
        return "whole bags" if self.bag_deviation is None else None

    def _solve(self, data, features):
        problem = self._problem(data, features, self._loss_for(data))
        objective = problem.objective()
        limits = {"max_iter": self.max_iter, "tol": self.tol}
        solution = minimize_from_zero(objective, self._has_intercept, **limits)
        if self.bag_deviation == "estimate":
            loss = objective.loss.with_estimated_deviation(
                objective, solution.w, **limits
            )
            objective = objective.changed(loss=loss)
            solution = objective.solve(solution.w, **limits)
        self.loss_, self.n_iter_ = objective.loss, solution.n_iter
        self.gap_, self.objective_ = solution.gap, solution.value
        self._set_effects(
            objective, solution.w, problem.used, len(data.proportions) - data.n_pure
        )
        warn_if_short(self)
        w, d = solution.w, features.shape[1]
        if self.kernel == "linear" and not isinstance(features, InChunks):
            warn_if_held(self, features, w[:, :d], data.frequencies)
            warn_if_groups_held(replace(problem, weights=w))
        if self._free_intercept and len(w) > 1:
            w[:, -1] -= w[:, -1].mean()  # no objective determines their mean
        return w

    def _set_effects(self, objective, w, used, n_bags):
        """Set the deviation of the bags and, if it is not 0, their intercepts given the counts."""
        self.bag_deviation_ = getattr(objective.loss, "bag_deviation", 0.0)
        self.bag_effects_ = np.zeros(n_bags)
        self.bag_effect_errors_ = np.full(n_bags, self.bag_deviation_)
        if self.bag_deviation_:
            scores = one_column(objective.Z @ w.T)
            means, errors = objective.loss.effects(scores, objective.observed)
            self.bag_effects_[used], self.bag_effect_errors_[used] = means, errors

    def _effect(self, bags, n, X):
        """Mean and standard deviation of the intercept of each instance; of a new bag where ``bags`` is None."""
        if bags is None:
            return 0.0, getattr(self, "bag_deviation_", 0.0)
        if self.bag_deviation is None:
            raise ValueError(
                "bags are for a model with intercepts of bags: fit it with bag_deviation='estimate', or leave bags out"
            )
        keys = self.bag_labels_
        keys = None if keys is None else pd.Index(keys, tupleize_cols=False)
        codes = check_bags(bags, n, len(self.bag_effects_), keys, X)
        return self.bag_effects_[codes], self.bag_effect_errors_[codes]

    def decision_function(self, X, bags=None):
        """Compute the score of the positive class (above 0: predicted), or one score per class.

        Parameters
        ----------
        X : array-like, shape (n_instances, n_features)
        bags : array-like, shape (n_instances,), optional
            Bags of the fit, whose effects are added; new bags, whose effect is 0, if not given.

        Returns
        -------
        ndarray, shape (n_instances,) or (n_instances, n_classes)
        """
        scores = super().decision_function(X)
        if bags is None:
            return scores
        return scores + self._effect(bags, len(scores), X)[0]

    def predict_proba(self, X, bags=None):
        """Predict class probabilities, shape (n_instances, n_classes), averaged over the uncertainty of bag effects.

        Parameters
        ----------
        X : array-like, shape (n_instances, n_features)
        bags : array-like, shape (n_instances,), optional
            See `decision_function`.
        """
        if bags is None and not getattr(self, "bag_deviation_", 0.0):
            return super().predict_proba(X)
        scores = super().decision_function(X)
        effect, error = self._effect(bags, len(scores), X)
        s = averaged_probabilities(scores + effect, error)
        return np.column_stack([1 - s, s])

    def predict(self, X, bags=None):
        """Predict the class of each instance.

        Parameters
        ----------
        X : array-like, shape (n_instances, n_features)
        bags : array-like, shape (n_instances,), optional
            See `decision_function`.

        Returns
        -------
        ndarray, shape (n_instances,)
            Entries of ``classes_``.
        """
        if bags is None:
            return super().predict(X)
        return self.classes_[(self.decision_function(X, bags) > 0).astype(int)]


def check_noise(estimator, data):
    """Check the noise of the shares; True if it is Laplace noise.

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
        X, self.loss_ = data.X, self._bag_loss().with_prior(data.class_prior)
        observed = observed_counts(data, self.loss_)
        held_out = held_out_bags(observed, X, self.validation_fraction)
        rows, seen = ~held_out[observed.bags], observed.part(~held_out)
        self.start_coef_ = self._start(X[rows], seen)
        step = held_out_step(self.loss_, seen, observed.part(held_out), rows)
        self.trees_, self.validation_loss_ = boost_trees(
            X, self._start_scores(X), step, rows, self.learning_rate, self.max_iter,
            max_leaf_nodes=self.max_leaf_nodes,
            after_round=self._progress(self.max_iter, "round").step,
        )  # fmt: skip
        self.n_iter_ = int(np.argmin(self.validation_loss_))

    def _start(self, X, seen):
        """Weights of a linear model of the training bags."""
        problem = linear_problem(
            self.loss_, X, seen, self.C, self.classes_, free_intercept=True
        )
        # Trees go on from a start that stopped short, too.
        return minimize_from_zero(problem.objective(), has_intercept=True).w

    def _start_scores(self, X):
        return one_column(append_one(X) @ self.start_coef_.T)

    def _scores(self, X):
        return self._start_scores(X) + tree_scores(self.trees_, X)


def held_out_bags(observed, X, share):
    """Choose bags to hold out, such as every tenth in the order of their shares, but neither the first nor the last.

    Parameters
    ----------
    observed : BagCounts
    X : ndarray, shape (n_instances, n_features)
    share : float
        Of the bags, to hold out; at least one is. None is if there are no more bags than three for each class.

    Returns
    -------
    ndarray of bool, shape (n_bags,)
        Independent of the order of the instances, of the bags, of the features and of the classes: bags are sorted by
        the share of the rarest class, and ties are broken by the lengths of the bag means.
    """
    L, K = observed.shares.shape
    held_out = np.zeros(L, dtype=bool)
    if L > 3 * K:
        m = max(1, int(share * L))
        means = observed.sums(X) / observed.sizes[:, None]
        order = feature_free_order(observed.shares, observed.sizes, means)
        held_out[order[((np.arange(m) + 0.5) * L / m).astype(int)]] = True
    return held_out


def held_out_step(loss, seen, held_out, rows):
    """Make the function that boosting calls with scores: the held-out loss, and the Newton step of the other bags.

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
        value, part, states[0] = loss.evaluate(scores[rows], seen, states[0])
        gradient[rows], judged = part, seen
        hessian[rows] = loss.curved(scores[rows], states[0])
        if not rows.all():
            value, _, states[1] = loss.evaluate(scores[~rows], held_out, states[1])
            judged = held_out
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            raise ValueError(
                f"{loss!r} must give finite numbers, got the value {value}"
            )
        return value / len(judged.sizes), gradient, hessian

    return step
