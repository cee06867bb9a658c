"""The likelihood of the count of each bag, taken as normal."""

from dataclasses import dataclass

import numpy as np

from .._linear import BagLoss, ProportionLoss, curvature
from ..base import expit

#: Added to the variance of a normal count, that of rounding it to a whole number.
ROUNDING = 1 / 12


@dataclass(frozen=True)
class NormalLoss(BagLoss):
    r"""Minus the log-density of the count of each bag, taken as normal.

    Equation :eq:`eq-losses-normal`. Mean :math:`\sum_i s_i` and variance :math:`\sum_i s_i (1 - s_i) + 1/12`, as
    independent labels have, plus that of rounding. The constant :math:`\tfrac12 \log 2 \pi` per bag is left out.

    Predictions that are sure and wrong leave little variance and cost very much: from a poor start the descent ends in
    a poor minimum, so linear learners go by way of the proportion loss.

    Examples
    --------
    >>> from llpbook.bag_losses import NormalLoss
    >>> value, gradient, hessian = NormalLoss()([0.0, 0.0, 0.0, 0.0], [0, 0, 0, 0], [0.75])
    >>> round(value, 3), gradient.round(2).tolist()  # all scores should rise
    (0.502, [-0.23, -0.23, -0.23, -0.23])
    """

    before, takes_errors, by_bag = (ProportionLoss(),), True, True

    def of_counts(self, scores, observed):
        """See `BagLoss.of_counts`."""
        s = expit(scores)
        v = s * (1 - s)
        variance = observed.sums(v) + ROUNDING + observed.errors
        miss = observed.counts - observed.sums(s)
        # eq: eq-losses-normal
        value = 0.5 * np.sum(np.log(variance) + miss**2 / variance)
        by_mean = -miss / variance
        by_variance = 0.5 * (1 - miss**2 / variance) / variance
        slope = by_mean[observed.bags] + (1 - 2 * s) * by_variance[observed.bags]
        return float(value), v * slope, curvature(s)

    def factors(self, scores, observed, state=None):
        """See `BagLoss.factors`: the information of a normal variable on its mean and its variance."""
        s = expit(scores)
        v = s * (1 - s)
        variance = (observed.sums(v) + ROUNDING + observed.errors)[observed.bags]
        return [v / np.sqrt(variance), v * (1 - 2 * s) / (np.sqrt(2) * variance)]

    def n_factors(self, n_rows):
        """See `BagLoss.n_factors`."""
        return 2
