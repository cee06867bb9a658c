"""The likelihood of the counts as a loss of bags."""

from dataclasses import dataclass
from numbers import Integral

from scipy.special import expit, softmax

from ..base import BagLoss, curvature, tilt_classes
from ._binary import count_factors, count_posterior, tilt
from ._several import class_factors, class_posterior


def posterior(scores, known, exact_up_to=20):
    """`count_posterior` of one column of scores, `class_posterior` of several, and the probabilities before it.

    Parameters
    ----------
    scores : ndarray, shape (n_instances,) or (n_instances, n_classes)
    known : BagCounts
    exact_up_to : int, default 20

    Returns
    -------
    log_likelihood : ndarray, shape (n_bags,)
    posterior, prior : ndarray, of the shape of scores
    """
    if scores.ndim == 1:
        return *count_posterior(scores, known, exact_up_to), expit(scores)
    return *class_posterior(scores, known), softmax(scores, axis=1)


@dataclass(frozen=True)
class CountLoss(BagLoss):
    r"""Minus the log-likelihood of the count of each bag; chapter `count_likelihood`.

    Parameters
    ----------
    exact_up_to : int, default 20
        Bags of two classes with at most so many instances have their exact likelihood by the recursion, larger ones
        the saddlepoint's.
    """

    exact_up_to: int = 20
    several_classes = takes_errors = by_bag = True

    def __post_init__(self):
        if not (isinstance(self.exact_up_to, Integral) and self.exact_up_to >= 0):
            raise ValueError(
                f"exact_up_to must be a whole number, 0 or more, got {self.exact_up_to!r}"
            )

    def of_counts(self, scores, known):
        """See `BagLoss.of_counts`."""
        log_likelihood, q, s = self._posterior(scores, known)
        return -float(log_likelihood.sum()), s - q, curvature(s)

    def evaluate(self, scores, known, state=None):
        """See `BagLoss.evaluate`; the state is the tilt."""
        if scores.ndim == 1:
            t = tilt(scores, known, state)
            log_likelihood, q = count_posterior(scores, known, self.exact_up_to, t=t)
            return -float(log_likelihood.sum()), expit(scores) - q, t
        T = tilt_classes(scores, known, state)
        log_likelihood, q = class_posterior(scores, known, T=T)
        return -float(log_likelihood.sum()), softmax(scores, axis=1) - q, T

    def factors(self, scores, known, state=None):
        """See `BagLoss.factors`."""
        return (count_factors if scores.ndim == 1 else class_factors)(scores, known)

    def n_factors(self, n_rows):
        """See `BagLoss.n_factors`."""
        return max(2, n_rows)

    def _posterior(self, scores, known):
        return posterior(scores, known, self.exact_up_to)
