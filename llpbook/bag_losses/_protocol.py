"""What a loss of bags is: from scores, bags and shares to a value, its gradient and a positive curvature."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from numbers import Real

import numpy as np

from ..base import BagCounts
from ..count_likelihood import bag_counts


def read_scores(scores, bags, proportions):
    """Check what a loss is given.

    Parameters
    ----------
    scores : array-like, shape (n_instances,) or (n_instances, n_classes)
    bags : array-like of int, shape (n_instances,)
        Rows of ``proportions``; a bag without instances is left out, as in a batch of some bags.
    proportions : array-like, shape (n_bags,) or (n_bags, n_classes)

    Returns
    -------
    scores : ndarray
    known : BagCounts
        Of the bags that have instances.

    Raises
    ------
    ValueError
        For scores that are not finite, a bag that is no row of ``proportions``, shares that are outside [0, 1] or do
        not sum to 1, or lengths and numbers of classes that differ.
    """
    scores, bags = np.asarray(scores, dtype=float), np.asarray(bags)
    shares = np.asarray(proportions, dtype=float)
    if shares.ndim == 1:
        shares = np.column_stack([1 - shares, shares])
    if bags.dtype.kind not in "iufb":
        raise ValueError(
            f"bags must be integers, the rows of proportions, got {bags.ravel()[:1].tolist()}"
        )
    if bags.shape != scores.shape[:1]:
        raise ValueError(
            f"bags must have one entry per row of scores: {bags.shape} and {scores.shape}"
        )
    if scores.ndim > 2 or (scores.ndim == 2 and scores.shape[1] != shares.shape[1]):
        raise ValueError(
            f"scores must have one column per class of proportions, {shares.shape[1]}, got shape {scores.shape}"
        )
    if scores.ndim == 1 and shares.shape[1] != 2:
        raise ValueError(
            f"scores of one column are of two classes; proportions has {shares.shape[1]}"
        )
    _refuse_values(scores, bags, shares)
    return scores, bag_counts(bags.astype(int), shares)


def _refuse_values(scores, bags, shares):
    """The part of `read_scores` that looks at values."""
    if not np.isfinite(scores).all():
        raise ValueError("scores must be finite numbers, got NaN or infinity")
    outside = ~((shares >= 0) & (shares <= 1))  # also NaN
    if outside.any():
        wrong = shares[outside][-1]  # of two classes, that which was given
        raise ValueError(f"proportions must be in [0, 1], got {wrong}")
    sums = shares.sum(axis=1)
    if np.abs(sums - 1).max() > 1e-6:
        wrong = sums[np.abs(sums - 1).argmax()]
        raise ValueError(f"rows of proportions must sum to 1, got {wrong}")
    if len(bags) == 0:
        raise ValueError("bags must not be empty")
    if (bags != bags.astype(int)).any():
        wrong = bags[bags != bags.astype(int)][0]
        raise ValueError(f"bags must be integers, got {wrong}")
    if bags.min() < 0 or bags.max() >= len(shares):
        wrong = bags.min() if bags.min() < 0 else bags.max()
        raise ValueError(
            f"bags must be rows of proportions, 0 to {len(shares) - 1}, got {wrong}"
        )


class BagLoss(ABC):
    r"""A loss that sees whole bags: ``loss(scores, bags, proportions)`` gives value, gradient and curvature.

    A subclass defines ``of_counts(scores, known)``. The value is a sum over bags or instances. Losses are added with
    ``+`` and weighed with ``*``; `EntropyTerm` and `ConsistencyTerm` use no share, and are added to a loss that does.

    Attributes
    ----------
    several_classes : bool
        Whether scores can have one column per class.
    before : tuple of BagLoss
        Losses that a linear learner minimizes first, for a better start.
    """

    several_classes = False
    before: tuple = ()

    def __call__(self, scores, bags, proportions):
        """Value, gradient and curvature.

        Parameters
        ----------
        scores : array-like, shape (n_instances,) or (n_instances, n_classes)
            Log-odds of the positive class; or one score per class, whose soft-max are the probabilities.
        bags : array-like of int, shape (n_instances,)
            Rows of ``proportions``. Not all need to occur: a batch has the instances of some bags.
        proportions : array-like, shape (n_bags,) or (n_bags, n_classes)
            Share of the positive class, or of each class.

        Returns
        -------
        value : float
        gradient : ndarray, of the shape of scores
        hessian : ndarray, of the shape of scores
            Not negative: what a step is divided by, in trees or in a learner of somebody else. It stands for the
            second derivatives, which have no sign of their own (see `llpbook.count_likelihood.curvature`).

        Raises
        ------
        ValueError
            For malformed input, see `read_scores`.
        """
        scores, known = read_scores(scores, bags, proportions)
        if scores.ndim == 2 and not self.several_classes:
            raise ValueError(
                f"{self!r} is a loss of two classes; scores must have one column, got {scores.shape[1]}"
            )
        return self.of_counts(scores, known)

    @abstractmethod
    def of_counts(self, scores, known):
        """The same from checked input.

        Parameters
        ----------
        scores : ndarray, shape (n_instances,) or (n_instances, n_classes)
        known : BagCounts
            Each bag has instances.

        Returns
        -------
        value, gradient, hessian
            As of a call.
        """

    def with_prior(self, prior):
        """This loss, told the shares of the classes in all bags; most losses do not need them.

        Parameters
        ----------
        prior : ndarray, shape (n_classes,)

        Returns
        -------
        BagLoss
        """
        return self

    def objective(self, proportions):
        """The form that XGBoost and LightGBM call: from labels and scores to gradient and curvature.

        Parameters
        ----------
        proportions : array-like, shape (n_bags,)

        Returns
        -------
        callable
            ``objective(bags, scores)``, to be passed as ``objective=``; the bag numbers are handed to ``fit`` in the
            place of labels, ``fit(X, bags)``.
        """
        return _Objective(self, proportions)

    def __add__(self, other):
        if not isinstance(other, BagLoss):
            return NotImplemented
        return SumOfLosses((self, other))

    def __mul__(self, factor):
        if not isinstance(factor, Real):
            return NotImplemented
        if not 0 < factor < float("inf"):
            raise ValueError(f"a loss is weighed by a positive number, got {factor!r}")
        return SumOfLosses((self,), (float(factor),))

    __rmul__ = __mul__


@dataclass(frozen=True, eq=False)
class _Objective:
    """A loss and shares as a function of bags and scores; unlike a closure it can be stored with a model."""

    loss: BagLoss
    proportions: object

    def __call__(self, bags, scores):
        return self.loss(scores, bags, self.proportions)[1:]


@dataclass(frozen=True)
class SumOfLosses(BagLoss):
    """A weighted sum of losses, as ``loss + 0.1 * term`` makes it.

    Parameters
    ----------
    parts : tuple of BagLoss
    factors : tuple of float, optional
        All 1 if not given.
    """

    parts: tuple
    factors: tuple | None = None

    @property
    def several_classes(self):
        """Whether all parts can have scores of several classes."""
        return all(part.several_classes for part in self.parts)

    @property
    def before(self):
        """What any part minimizes first."""
        return sum((part.before for part in self.parts), ())

    def of_counts(self, scores, known):
        """See `BagLoss.of_counts`."""
        factors = self.factors or (1.0,) * len(self.parts)
        found = [part.of_counts(scores, known) for part in self.parts]
        return tuple(
            sum(a * part[j] for a, part in zip(factors, found, strict=True))
            for j in range(3)
        )

    def with_prior(self, prior):
        """See `BagLoss.with_prior`."""
        parts = tuple(part.with_prior(prior) for part in self.parts)
        return SumOfLosses(parts, self.factors)


def first_half(scores, known):
    """Of scores with copies behind them, those before, and their bags.

    Parameters
    ----------
    scores : ndarray, shape (2 * n_instances,)
    known : BagCounts
        Of instances and copies, each copy in the bag of its instance.

    Returns
    -------
    ndarray, shape (n_instances,)
    BagCounts
    """
    n = len(scores) // 2
    halves = known.bags[:n], known.bags[n:]
    if len(scores) % 2 or (halves[0] != halves[1]).any():
        raise ValueError(
            "scores must be those of all instances and then those of their copies, in the same bags and order"
        )
    half = known.sizes // 2, known.counts / 2, known.errors / 4
    return scores[:n], BagCounts(halves[0], *half)
