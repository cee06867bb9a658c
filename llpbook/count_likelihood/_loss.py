"""The likelihood of the counts as a loss of bags."""

from dataclasses import dataclass, replace
from numbers import Integral, Real

from scipy.special import softmax

from .._linear import BagLoss, curvature, tilt_classes
from ..base import expit
from ._binary import count_factors, count_posterior, tilt
from ._intercepts import bag_intercepts, expected_probabilities
from ._several import class_factors, class_posterior


def posterior(scores, known, exact_up_to=20, deviation=0.0):
    """`count_posterior` of one column of scores, `class_posterior` of several, and the probabilities before it.

    Parameters
    ----------
    scores : ndarray, shape (n_instances,) or (n_instances, n_classes)
    known : BagCounts
    exact_up_to : int, default 20
    deviation : float, default 0.0
        Of an intercept of each bag, see `bag_intercepts`.

    Returns
    -------
    log_likelihood : ndarray, shape (n_bags,)
    posterior, prior : ndarray, of the shape of scores
        Their difference is the gradient. With intercepts the prior is the mean over the intercept given the count; the
        posterior of a label does not depend on the intercept.

    Raises
    ------
    ValueError
        For a deviation with several classes or with errors of the counts.
    """
    return with_state(scores, known, exact_up_to, deviation)[0]


def with_state(scores, known, exact_up_to, deviation, state=(None, None)):
    """What `posterior` returns, and the tilts to start from the next time."""
    if deviation and (scores.ndim == 2 or known.errors.any()):
        raise ValueError(
            f"bag_deviation={deviation!r} is for two classes, and for shares without errors"
        )
    if scores.ndim == 2:
        T = tilt_classes(scores, known, state[0])
        found = class_posterior(scores, known, T=T)
        return (*found, softmax(scores, axis=1)), (T, None)
    t = tilt(scores, known, state[0])
    log_likelihood, q = count_posterior(scores, known, exact_up_to, t=t)
    if not deviation:
        return (log_likelihood, q, expit(scores)), (t, None)
    found = bag_intercepts(scores, known, deviation, state[1])
    mean = expected_probabilities(scores, known, found)
    return (log_likelihood + found.log_ratio, q, mean), (t, found.mode)


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
        """The same loss with another `bag_deviation`."""
        return replace(self, bag_deviation=deviation)

    def effects(self, scores, known):
        """The intercept of each bag given its count: mean and standard deviation, each of shape (n_bags,)."""
        found = bag_intercepts(scores, known, self.bag_deviation)
        return found.means, found.errors

    def of_counts(self, scores, known):
        """See `BagLoss.of_counts`."""
        value, slope, state = self.evaluate(scores, known)
        return value, slope, self.curved(scores, state)

    def curved(self, scores, state):
        """See `BagLoss.curved`."""
        s = expit(scores) if scores.ndim == 1 else softmax(scores, axis=1)
        return curvature(s)

    def evaluate(self, scores, known, state=None):
        """See `BagLoss.evaluate`; the state are tilts."""
        given = scores, known, self.exact_up_to, self.bag_deviation
        (log_likelihood, q, s), state = with_state(*given, state or (None, None))
        return -float(log_likelihood.sum()), s - q, state

    def factors(self, scores, known, state=None):
        """See `BagLoss.factors`."""
        if scores.ndim == 1:
            return count_factors(scores, known, self.bag_deviation)
        return class_factors(scores, known)

    def n_factors(self, n_rows):
        """See `BagLoss.n_factors`."""
        return max(2, n_rows)
