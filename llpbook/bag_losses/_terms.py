"""Terms that need no share and are added to a loss: entropy of predictions, and consistency with shifted copies."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, xlogy

from .._linear import BagCounts, BagLoss, curvature
from ..base import probabilities


def first_half(scores, observed):
    """Scores of the instances without the copies behind them, and the counts of their bags.

    Parameters
    ----------
    scores : ndarray, shape (2 * n_instances,)
    observed : BagCounts
        Of instances and copies, each copy in the bag of its instance.

    Returns
    -------
    ndarray, shape (n_instances,)
    BagCounts

    Raises
    ------
    ValueError
        If the second half are not copies of the first in the same bags and order.
    """
    if observed.frequencies is not None:
        raise ValueError(
            "counts must not be given, nor equal rows merged, for a loss of instances and their copies: give it a row "
            "for each, in the order of scores"
        )
    n = len(scores) // 2
    bags = observed.bags[:n]
    if len(scores) % 2 or (bags != observed.bags[n:]).any():
        raise ValueError(
            "scores must be those of all instances and then those of their copies, in the same bags and order"
        )
    sizes, counts, errors = (
        observed.sizes // 2,
        observed.counts / 2,
        observed.errors / 4,
    )
    return scores[:n], BagCounts(bags, sizes, counts, errors)


@dataclass(frozen=True)
class EntropyTerm(BagLoss):
    r"""Sum of the entropies of the predictions, which is small where predictions are sure.

    Equation :eq:`eq-losses-entropy`. Added to a loss of bags it is soft self-training (grandvalet2004): the model
    learns from its own predictions.

    Notes
    -----
    The entropy is concave near the even prediction, so the curvature returned is 0: that of the loss that it is added
    to serves both.

    Examples
    --------
    >>> from llpbook.bag_losses import EntropyTerm
    >>> unsure, _, _ = EntropyTerm()([0.0, 0.0], [0, 0], [0.5])
    >>> sure, _, _ = EntropyTerm()([5.0, -5.0], [0, 0], [0.5])
    >>> unsure > sure
    True
    """

    several_classes = True

    def of_counts(self, scores, observed):
        """See `BagLoss.of_counts`."""
        s, columns = probabilities(scores), slice(None) if scores.ndim == 2 else 1
        # eq: eq-losses-entropy
        entropy = -np.sum(xlogy(s, s), axis=1, keepdims=True)
        gradient = -xlogy(s, s) - s * entropy
        value = observed.total(entropy[:, 0])
        return value, gradient[:, columns], np.zeros_like(scores)


@dataclass(frozen=True)
class ConsistencyTerm(BagLoss):
    r"""Sum of the divergences of each prediction from that of its shifted copy.

    Equation :eq:`eq-losses-consistency`, :math:`\sum_i \mathrm{KL}(s_i \Vert \tilde s_i)`, is what LLP-VAT (tsai2020)
    adds to the proportion loss. The scores are those of all instances, and then those of their copies in the same order
    and bags. The gradient also moves the prediction at the instance; LLP-VAT holds that fixed.

    Examples
    --------
    >>> import numpy as np
    >>> from llpbook.bag_losses import ConsistencyTerm
    >>> scores = np.array([1.0, -1.0, 1.0, 2.0])  # two instances, then their shifted copies
    >>> value, gradient, hessian = ConsistencyTerm()(scores, [0, 0, 0, 0], [0.5])
    >>> value > 0, gradient.shape
    (True, (4,))
    """

    def of_counts(self, scores, observed):
        """See `BagLoss.of_counts`."""
        f = first_half(scores, observed)[0]
        moved = scores[len(f) :]
        s, s_moved = expit(f), expit(moved)
        # eq: eq-losses-consistency
        value = np.sum(s * (f - moved) - np.logaddexp(0, f) + np.logaddexp(0, moved))
        gradient = np.concatenate([s * (1 - s) * (f - moved), s_moved - s])
        return float(value), gradient, curvature(expit(scores))


@dataclass(frozen=True)
class WithCopies(BagLoss):
    """A loss of bags that ignores the shifted copies behind the instances.

    Parameters
    ----------
    loss : BagLoss

    Examples
    --------
    >>> import numpy as np
    >>> from llpbook.bag_losses import ConsistencyTerm, NormalLoss, WithCopies
    >>> loss = WithCopies(NormalLoss()) + 0.5 * ConsistencyTerm()
    >>> scores = np.array([1.0, -1.0, 1.0, 2.0])  # two instances, then their shifted copies
    >>> value, gradient, hessian = loss(scores, [0, 0, 0, 0], [0.5])
    >>> gradient.shape
    (4,)
    """

    loss: BagLoss

    @property
    def fewest_bags(self):
        """Fewest bags of the loss inside."""
        return self.loss.fewest_bags

    @property
    def bounded(self):
        """True if the loss inside is bounded."""
        return self.loss.bounded

    def of_counts(self, scores, observed):
        """See `BagLoss.of_counts`."""
        f, half = first_half(scores, observed)
        value, gradient, hessian = self.loss.of_counts(f, half)
        zeros = np.zeros_like(gradient)
        return value, np.append(gradient, zeros), np.append(hessian, zeros)

    def with_prior(self, prior):
        """See `BagLoss.with_prior`."""
        return WithCopies(self.loss.with_prior(prior))


def adversarial_shift(
    decision_function: Callable, X: np.ndarray, *, radius: float = 0.1,
    step: float = 1e-4,
) -> np.ndarray:  # fmt: skip
    r"""Shift of each instance, of a given length, that changes its prediction most, by finite differences.

    To second order the divergence of a prediction and that at a shift r is :math:`s (1 - s) (r^\top \nabla f)^2 / 2`:
    the worst direction is that of the gradient of the log-odds, which differences of two scores per feature estimate.

    Parameters
    ----------
    decision_function : callable
        From instances to log-odds.
    X : ndarray, shape (n_instances, n_features)
    radius : float, default 0.1
        Length of the shift, in the units of X.
    step : float, default 1e-4
        Of the differences. Trees are constant nearby: for them it must be as large as the radius. A network in single
        precision needs about 0.01.

    Returns
    -------
    ndarray, shape (n_instances, n_features)
        0 where the score does not change.

    Examples
    --------
    >>> import numpy as np
    >>> from llpbook.bag_losses import adversarial_shift
    >>> shift = adversarial_shift(lambda X: X @ np.array([3.0, 4.0]), np.zeros((1, 2)), radius=0.1)
    >>> np.abs(shift).round(2).tolist()  # along (3, 4), of length 0.1
    [[0.06, 0.08]]
    """
    slopes = np.empty(X.shape)
    for j, shift in enumerate(step * np.eye(X.shape[1])):
        slopes[:, j] = decision_function(X + shift) - decision_function(X - shift)
    lengths = np.linalg.norm(slopes, axis=1, keepdims=True)
    return radius * np.divide(
        slopes, lengths, out=np.zeros_like(slopes), where=lengths > 0
    )
