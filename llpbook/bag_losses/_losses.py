"""Losses that compare a bag with what is predicted for it: its mean prediction, or the likelihood of its count."""

from dataclasses import dataclass
from numbers import Integral

import numpy as np
from scipy.special import expit, xlogy

from ..base import probabilities
from ..count_likelihood import curvature, posterior
from ._fft import fft_count_posterior
from ._protocol import BagLoss

#: Added to the variance of a normal count, that of rounding it to a whole number.
ROUNDING = 1 / 12
#: A mean prediction counts as no less.
SMALLEST_MEAN = 1e-300


@dataclass(frozen=True)
class ProportionLoss(BagLoss):
    r"""The divergence of the share of a bag and its mean prediction.

    :math:`n_k D(p_k, \bar s_k)`, equation :eq:`eq-losses-proportion`: the loss of networks that learn from label
    proportions (ardehaly2017).

    Parameters
    ----------
    divergence : {"cross_entropy", "squares"}, default "cross_entropy"
        :math:`\sum_j p_j \log (p_j / \bar s_j)`, the cross-entropy less its smallest value; or
        :math:`\sum_j (\bar s_j - p_j)^2`, which has the same curvature at :math:`p = \bar s = 1/2`.
    """

    divergence: str = "cross_entropy"
    several_classes = True

    def __post_init__(self):
        if self.divergence not in ("cross_entropy", "squares"):
            raise ValueError(
                "divergence must be 'cross_entropy' or 'squares', got "
                f"{self.divergence!r}"
            )

    def of_counts(self, scores, known):
        """See `BagLoss.of_counts`."""
        s, p = probabilities(scores), known.shares
        mean = np.maximum(known.sums(s) / known.sizes[:, None], SMALLEST_MEAN)
        # eq: eq-losses-proportion
        if self.divergence == "squares":
            divergence, slope = (mean - p) ** 2, 2 * (mean - p)
        else:
            divergence, slope = xlogy(p, p / mean), -p / mean
        slope = slope[known.bags]
        gradient = s * (slope - np.sum(s * slope, axis=1, keepdims=True))
        columns = slice(None) if scores.ndim == 2 else 1
        value = float(known.sizes @ divergence.sum(axis=1))
        return value, gradient[:, columns], curvature(s[:, columns])

    def diagonal(self, scores, known):
        """The second derivatives by each score, which can be negative.

        Equation :eq:`eq-losses-diagonal`.

        Parameters
        ----------
        scores : ndarray, shape (n_instances,)
            Log-odds.
        known : BagCounts
            Of two classes.

        Returns
        -------
        ndarray, shape (n_instances,)
        """
        s, p = expit(scores), known.counts / known.sizes
        mean = known.sums(s) / known.sizes
        second = p / mean**2 + (1 - p) / (1 - mean) ** 2
        if self.divergence == "squares":
            second = 4.0 * np.ones_like(mean)
        gradient, v = self.of_counts(scores, known)[1], s * (1 - s)
        # eq: eq-losses-diagonal
        return (1 - 2 * s) * gradient + v**2 * (second / known.sizes)[known.bags]


@dataclass(frozen=True)
class CountLoss(BagLoss):
    r"""Minus the log-likelihood of the count of each bag; chapter `count_likelihood`.

    Parameters
    ----------
    exact_up_to : int, optional
        Bags of two classes with at most so many instances have their exact likelihood by the recursion. Not given, it
        is 20 with the saddlepoint, and with the transform 300, above which that is faster.
    large : {"saddlepoint", "fft"}, default "saddlepoint"
        What larger bags have: the saddlepoint approximation, or the exact likelihood by `fft_count_posterior`, for two
        classes and known counts.
    """

    exact_up_to: int | None = None
    large: str = "saddlepoint"
    several_classes = True

    def __post_init__(self):
        if self.large not in ("saddlepoint", "fft"):
            raise ValueError(
                f"large must be 'saddlepoint' or 'fft', got {self.large!r}"
            )
        if self.exact_up_to is None:
            usual = {"saddlepoint": 20, "fft": 300}[self.large]
            object.__setattr__(self, "exact_up_to", usual)
        if not (isinstance(self.exact_up_to, Integral) and self.exact_up_to >= 0):
            raise ValueError(
                f"exact_up_to must be a whole number, 0 or more, got {self.exact_up_to!r}"
            )

    def of_counts(self, scores, known):
        """See `BagLoss.of_counts`."""
        log_likelihood, q, s = self._posterior(scores, known)
        return -float(log_likelihood.sum()), s - q, curvature(s)

    def diagonal(self, scores, known):
        """The second derivatives by each score: the variance of a label before its count less that after it.

        Parameters
        ----------
        scores : ndarray, shape (n_instances,)
        known : BagCounts

        Returns
        -------
        ndarray, shape (n_instances,)
            As exact as the posterior.
        """
        _, q, s = self._posterior(scores, known)
        return s * (1 - s) - q * (1 - q)

    def _posterior(self, scores, known):
        if self.large == "fft" and scores.ndim == 1:
            return *fft_count_posterior(scores, known, self.exact_up_to), expit(scores)
        return posterior(scores, known, self.exact_up_to)


@dataclass(frozen=True)
class NormalLoss(BagLoss):
    r"""Minus the log-density of the count of each bag, taken as normal.

    Equation :eq:`eq-losses-normal`. Mean :math:`\sum_i s_i` and variance :math:`\sum_i s_i (1 - s_i) + 1/12`, as
    independent labels have, plus that of rounding. The constant :math:`\tfrac12 \log 2 \pi` per bag is left out.

    Predictions that are sure and wrong leave little variance and cost very much: from a poor start the descent ends in
    a poor minimum, so linear learners go by way of the proportion loss.
    """

    before = (ProportionLoss(),)

    def of_counts(self, scores, known):
        """See `BagLoss.of_counts`."""
        s = expit(scores)
        v = s * (1 - s)
        variance = known.sums(v) + ROUNDING + known.errors
        miss = known.counts - known.sums(s)
        # eq: eq-losses-normal
        value = 0.5 * np.sum(np.log(variance) + miss**2 / variance)
        by_mean = -miss / variance
        by_variance = 0.5 * (1 - miss**2 / variance) / variance
        slope = by_mean[known.bags] + (1 - 2 * s) * by_variance[known.bags]
        return float(value), v * slope, curvature(s)
