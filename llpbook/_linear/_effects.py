"""Bags that differ by an intercept each: their deviation, estimated, and predictions in known bags."""

import numpy as np
import pandas as pd
from scipy.optimize import minimize_scalar

from .._input import check_bags
from ..base import expit, one_column

#: Nodes of Gauss-Hermite quadrature and the logarithms of their weights.
NODES = np.polynomial.hermite.hermgauss(11)[0]
WEIGHTS = np.log(np.polynomial.hermite.hermgauss(11)[1])
#: The largest deviation that is tried, in log-odds, and how exactly it is found.
MOST_DEVIATION, STEP_OF_DEVIATION = 4.0, 0.005
#: The deviation of the weights' prior, beyond which their scale and the deviation of the bags are one.
WIDEST_PRIOR = 1.0
#: Precision of the prior of a free intercept, as a share of the largest: next to none.
NEXT_TO_NONE = 1e-4


def restricted(solution, objective):
    r"""Minus the logarithm of what is left of the likelihood when the weights are integrated out.

    By Laplace's approximation with the penalty as the prior: the objective plus
    :math:`\tfrac12 \log\det(I + P^{-1/2} F^\top F P^{-1/2})`, with the roots :math:`F` of the information.

    Parameters
    ----------
    solution : Solution
    objective : LinearObjective

    Returns
    -------
    float
    """
    F = objective.roots(one_column(objective.Z @ solution.w.T))
    F = F / np.sqrt(prior_precision(objective.penalty, len(solution.w)))
    gram = F @ F.T if len(F) < F.shape[1] else F.T @ F
    values = np.maximum(np.linalg.eigvalsh(gram), 0)
    return solution.value + 0.5 * float(np.log1p(values).sum())


def prior_precision(penalty, n_rows=1):
    """The penalty as the precision of a prior, where a free intercept has next to none, shape (n_weights,)."""
    return np.tile(np.maximum(penalty, NEXT_TO_NONE * penalty.max()), n_rows)


def with_deviation(objective, deviation):
    """The objective of a loss with intercepts of another deviation."""
    return objective.changed(loss=objective.loss.with_deviation(float(deviation)))


def estimate_deviation(objective, start, max_iter=1000, tol=1e-5):
    """The deviation of the intercepts that makes the counts likeliest, with the weights integrated out.

    Where weights are free, weights and deviation could grow together, and a few bags would not notice: a prior of the
    deviation 1 or less holds the weights here, whatever the penalty of the objective.

    Parameters
    ----------
    objective : LinearObjective
        Of a loss with the method ``with_deviation``.
    start : ndarray, shape (1, n_columns)
    max_iter : int
    tol : float

    Returns
    -------
    float
        0 where no deviation is better than none.
    """
    held = objective.penalty > 0
    penalty = np.where(held, np.maximum(objective.penalty, WIDEST_PRIOR**-2), 0.0)
    objective, last = objective.changed(penalty=penalty), [start]

    def value(deviation):
        trial = with_deviation(objective, deviation)
        found = trial.solve(last[0], max_iter, tol)
        last[0] = found.w
        return restricted(found, trial)

    none = value(0.0)
    found = minimize_scalar(
        value, bounds=(0, MOST_DEVIATION), method="bounded",
        options={"xatol": STEP_OF_DEVIATION},
    )  # fmt: skip
    return float(found.x) if found.fun < none else 0.0


def averaged_probabilities(scores, errors):
    """The mean probability of a score with a normal error.

    Parameters
    ----------
    scores : ndarray, shape (n_instances,)
    errors : float or ndarray, shape (n_instances,)
        Standard deviations.

    Returns
    -------
    ndarray, shape (n_instances,)
    """
    weights = np.exp(WEIGHTS) / np.sqrt(np.pi)
    return sum(
        w * expit(scores + np.sqrt(2) * errors * x)
        for x, w in zip(NODES, weights, strict=True)
    )


class BagEffects:
    """Part of an estimator with the parameter ``bag_deviation``: predictions for instances of known bags.

    Attributes
    ----------
    bag_deviation_ : float
    bag_effects_, bag_effect_errors_ : ndarray, shape (n_bags,)
    """

    def _require_deviation(self, data):
        """The loss, told a deviation that is a number; ValueError where bags cannot have intercepts."""
        loss, given = self.loss_, self.bag_deviation
        if given is None:
            return loss
        if not hasattr(loss, "with_deviation"):
            raise ValueError(
                f"bag_deviation={given!r} needs the likelihood of the counts, loss='counts', got {loss!r}"
            )
        if data.n_pure or data.covariances is not None or len(data.classes) > 2:
            raise ValueError(
                f"bag_deviation={given!r} is for two classes, without labels= and proportion_errors"
            )
        return loss.with_deviation(0.0 if given == "estimate" else float(given))

    def _solve_with_effects(self, objective, data):
        """The `Solution` and the effects of the bags, which are stored."""
        found = self._linear_fit(objective, self.max_iter, self.tol)
        self.loss_ = objective.loss
        if self.bag_deviation == "estimate":
            limits = self.max_iter, self.tol
            deviation = estimate_deviation(objective, found.w, *limits)
            objective = with_deviation(objective, deviation)
            found = objective.solve(found.w, *limits)
            self.loss_ = objective.loss
        self.bag_deviation_ = getattr(self.loss_, "bag_deviation", 0.0)
        n = len(data.proportions) - data.n_pure
        self.bag_effects_ = np.zeros(n)
        self.bag_effect_errors_ = np.full(n, self.bag_deviation_)
        if self.bag_deviation_:
            scores = one_column(objective.Z @ found.w.T)
            effects = self.loss_.effects(scores, objective.known)
            for all_bags, own in zip(
                (self.bag_effects_, self.bag_effect_errors_), effects, strict=True
            ):
                all_bags[data.used[:n]] = own
        return found

    def _effect(self, bags, n, X):
        """Mean and standard deviation of the intercepts of instances; of a new bag where ``bags`` is None."""
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
        """Score of the positive class (above 0: predicted), or one score a class.

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
        """Class probabilities, shape (n_instances, n_classes), means over what is not known of the effect of a bag.

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
        """The class of each instance.

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
