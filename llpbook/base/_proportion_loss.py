"""The loss of shares: what networks minimize, and where the search for other minima begins."""

from dataclasses import dataclass

import numpy as np
from scipy.special import xlogy

from ._bag_loss import BagLoss, curvature
from ._predictions import probabilities

#: A mean prediction counts as no less.
SMALLEST_MEAN = 1e-300


@dataclass(frozen=True)
class ProportionLoss(BagLoss):
    r"""The divergence of the share of a bag and its mean prediction.

    :math:`n_k D(p_k, \bar s_k)`, equation :eq:`eq-losses-proportion`: the loss of networks that learn from label
    proportions (mann2007, as expectation regularization; ardehaly2017 for networks).

    Parameters
    ----------
    divergence : {"cross_entropy", "squares"}, default "cross_entropy"
        :math:`\sum_j p_j \log (p_j / \bar s_j)`, the cross-entropy less its smallest value; or
        :math:`\sum_j (\bar s_j - p_j)^2`, which has the same curvature at :math:`p = \bar s = 1/2`.

    Examples
    --------
    >>> from llpbook.base import ProportionLoss
    >>> value, gradient, hessian = ProportionLoss()([0.0, 0.0], [0, 0], [0.75])
    >>> round(value, 3), gradient.tolist()  # both scores should rise
    (0.262, [-0.25, -0.25])
    """

    divergence: str = "cross_entropy"
    several_classes = by_bag = True

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

    def factors(self, scores, known, state=None):
        """See `BagLoss.factors`: those of Gauss and Newton, without the part that a perfect fit does not have."""
        s = probabilities(scores)
        if self.divergence == "squares":
            weights = np.sqrt(2 / known.sizes)[:, None] * np.ones(s.shape[1])
        else:
            mean = np.maximum(known.sums(s) / known.sizes[:, None], SMALLEST_MEAN)
            weights = 1 / np.sqrt(mean * known.sizes[:, None])
        weights = weights[known.bags]
        if scores.ndim == 1:
            return [s[:, 0] * s[:, 1] * np.linalg.norm(weights, axis=1)]
        eye = np.eye(s.shape[1])
        return [
            (w * q)[:, None] * (e - s)
            for w, q, e in zip(weights.T, s.T, eye, strict=True)
        ]
