"""The likelihood of the counts as a loss of bags."""

from dataclasses import dataclass, replace
from numbers import Integral, Real

from scipy.special import softmax

from .._linear import BagLoss, curvature, tilt_classes
from ..base import expit
from ._binary import count_factors, count_posterior, tilt
from ._deviation import estimate_deviation
from ._intercepts import bag_intercepts, expected_probabilities
from ._several import class_factors, class_posterior


def posterior(scores, observed, exact_up_to=20):
    """`count_posterior` of one column of scores, `class_posterior` of several.

    Parameters
    ----------
    scores : ndarray, shape (n_instances,) or (n_instances, n_classes)
    observed : BagCounts
    exact_up_to : int, default 20

    Returns
    -------
    log_likelihood : ndarray, shape (n_bags,)
    posterior : ndarray, of the shape of scores
    """
    if scores.ndim == 2:
        return class_posterior(scores, observed)
    return count_posterior(scores, observed, exact_up_to)


@dataclass(frozen=True)
class CountLoss(BagLoss):
    r"""Minus the log-likelihood of the count of each bag; chapter `count_likelihood`.

    Parameters
    ----------
    exact_up_to : int, default 20
        Bags of two classes with at most so many instances have their exact likelihood by the recursion, larger ones
        the saddlepoint's.
    bag_deviation : float, default 0.0
        The standard deviation of an intercept of each bag, in log-odds; for two classes.

    Examples
    --------
    >>> from llpbook.bag_losses import CountLoss
    >>> value, gradient, hessian = CountLoss()([0.0, 0.0], [0, 0], [0.5])
    >>> round(value, 3)  # one of two by fair coins has probability 1/2: -log(1/2)
    0.693
    """

    exact_up_to: int = 20
    bag_deviation: float = 0.0
    several_classes = takes_errors = by_bag = True

    def __post_init__(self):
        if not (isinstance(self.exact_up_to, Integral) and self.exact_up_to >= 0):
            raise ValueError(
                f"exact_up_to must be a whole number, 0 or more, got {self.exact_up_to!r}"
            )
        tau = self.bag_deviation
        if not (isinstance(tau, Real) and 0 <= tau < float("inf")):
            raise ValueError(f"bag_deviation must be a number, 0 or more, got {tau!r}")

    def with_deviation(self, deviation):
        """Copy with another `bag_deviation`."""
        return replace(self, bag_deviation=deviation)

    def with_estimated_deviation(self, objective, start, *, max_iter, tol):
        """Copy with the deviation of `estimate_deviation`; parameters as there."""
        return self.with_deviation(estimate_deviation(objective, start, max_iter, tol))

    def effects(self, scores, observed):
        """Mean and standard deviation of the random intercept of each bag given its count, each of shape (n_bags,)."""
        intercepts = bag_intercepts(scores, observed, self.bag_deviation)
        return intercepts.means, intercepts.errors

    def of_counts(self, scores, observed):
        """See `BagLoss.of_counts`."""
        value, slope, state = self.evaluate(scores, observed)
        return value, slope, self.curved(scores, state)

    def curved(self, scores, state):
        """See `BagLoss.curved`."""
        s = expit(scores) if scores.ndim == 1 else softmax(scores, axis=1)
        return curvature(s)

    def evaluate(self, scores, observed, state=None):
        """See `BagLoss.evaluate`; the state holds the tilts, and the modes of the intercepts.

        The gradient is the probability of a label before the count, minus that given the count. With intercepts it is
        the mean over the intercept given the count; the posterior of a label does not depend on the intercept.
        """
        tilts, modes = state or (None, None)
        if self.bag_deviation and (scores.ndim == 2 or observed.errors.any()):
            raise ValueError(
                f"bag_deviation={self.bag_deviation!r} is for two classes, and for shares without errors"
            )
        if scores.ndim == 2:
            tilts = tilt_classes(scores, observed, tilts)
            log_likelihood, q = class_posterior(scores, observed, T=tilts)
            return (
                -float(log_likelihood.sum()),
                softmax(scores, axis=1) - q,
                (tilts, None),
            )
        tilts, prior = tilt(scores, observed, tilts), expit(scores)
        log_likelihood, q = count_posterior(scores, observed, self.exact_up_to, t=tilts)
        if self.bag_deviation:
            intercepts = bag_intercepts(scores, observed, self.bag_deviation, modes)
            prior = expected_probabilities(scores, observed, intercepts)
            log_likelihood, modes = (
                log_likelihood + intercepts.log_ratio,
                intercepts.mode,
            )
        return -float(log_likelihood.sum()), prior - q, (tilts, modes)

    def factors(self, scores, observed, state=None):
        """See `BagLoss.factors`."""
        if scores.ndim == 1:
            return count_factors(scores, observed, self.bag_deviation)
        return class_factors(scores, observed)

    def n_factors(self, n_rows):
        """See `BagLoss.n_factors`."""
        return max(2, n_rows)
