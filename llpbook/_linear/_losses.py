"""Losses of bags: functions from scores, bags and shares to a value, its gradient and a positive curvature."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import partial
from numbers import Real

import numpy as np
from scipy.special import xlogy

from .._input import fill_empty_rows, match_bags, numbers, quote, read_counts
from ..base import probabilities
from ._bag_counts import bag_counts

#: A variance of a label counts as no less where something is divided by it.
SMALLEST_VARIANCE = 0.05


def curvature(s):
    r"""Curvature of logistic regression, :math:`\max(s (1 - s), .05)`, by which trees divide a gradient.

    The second derivatives of a loss of bags have no sign of their own, and can be larger; this stands for them. The K
    scores of an instance all move at once: their joint curvature, where the classes are equally probable, is
    K / (K - 1) times that of one.

    Parameters
    ----------
    s : ndarray, shape (n_instances,) or (n_instances, n_classes)
        Probabilities.

    Returns
    -------
    ndarray, of the shape of s
    """
    joint = s.shape[1] / (s.shape[1] - 1) if s.ndim == 2 else 1.0
    return joint * np.maximum(s * (1 - s), SMALLEST_VARIANCE)


def read_scores(scores, bags, proportions, counts=None):
    """Check scores, bags and proportions of a call of a loss.

    Parameters
    ----------
    scores : array-like, shape (n_instances,) or (n_instances, n_classes)
    bags : array-like, shape (n_instances,)
        Rows or keys of ``proportions``; a bag without instances is left out, as in a batch of some bags.
    proportions : array-like, Series, dict or DataFrame
        See `check_proportions`.
    counts : array-like of int, shape (n_instances,), optional
        How many equal instances each row stands for, at least 1.

    Returns
    -------
    scores : ndarray
    observed : BagCounts
        Of the bags that have instances.

    Raises
    ------
    ValueError
        For scores that are not finite, malformed bags or proportions, or lengths and numbers of classes that differ.
    """
    scores = numbers("scores", scores)
    matched = match_bags(proportions, bags, len(scores) if scores.ndim else 0)
    shares, codes, K = matched.matrix, matched.codes, matched.matrix.shape[1]
    if not scores.size or (scores.shape[1:] != (K,) and (scores.ndim != 1 or K > 2)):
        raise ValueError(
            f"scores must have one row per instance and one column per class of proportions, {K}, or of two classes be "
            f"a vector; they must not be empty, got shape {scores.shape}"
        )
    if not np.isfinite(scores).all():
        raise ValueError("scores must be finite numbers, got NaN or infinity")
    times = None if counts is None else read_counts(counts, len(scores), bags)
    if times is not None and not times.all():
        raise ValueError(
            "counts must be 1 or more for a loss: leave out rows that stand for no instance"
        )
    shares = fill_empty_rows(shares, codes, matched.keys)
    return scores, bag_counts(codes, shares, frequencies=times)


class BagLoss(ABC):
    r"""A loss that sees whole bags: ``loss(scores, bags, proportions)`` gives value, gradient and curvature.

    A subclass defines ``of_counts(scores, observed)``. The value is a sum over bags or instances. Losses are added with
    ``+`` and weighed with ``*``; `EntropyTerm` and `ConsistencyTerm` use no share, and are added to a loss that does.

    Attributes
    ----------
    several_classes : bool
        True if scores can have one column per class.
    before : tuple of BagLoss
        Losses that a linear learner minimizes first, for a better start.
    takes_errors : bool
        True if it uses stated errors of the counts.
    by_bag : bool
        True if its `factors` are summed over each bag, and not taken of single instances.
    fewest_bags : int
        Bags of a call below which its value means nothing. Above 1 it compares bags, so that the bags that are given
        must be all bags; `of_all` may return a loss that knows what it takes from all of them.
    bounded : bool
        Whether it has a lower bound for any shares.

    Examples
    --------
    >>> import numpy as np
    >>> from llpbook.bag_losses import BagLoss, ProportionLoss
    >>> loss = ProportionLoss() + 0.1 * ProportionLoss("squares")
    >>> isinstance(loss, BagLoss)
    True
    >>> value, gradient, hessian = loss([0.0, 0.0, 1.0], [0, 0, 1], [0.5, 1.0])
    >>> gradient.round(2).tolist()  # the first bag fits, the score of the second is too low
    [0.0, 0.0, -0.29]
    """

    several_classes = takes_errors = by_bag = False
    fewest_bags, bounded = 1, True
    before: tuple = ()

    def __call__(self, scores, bags, proportions, *, counts=None):
        """Compute value, gradient and curvature.

        Parameters
        ----------
        scores : array-like, shape (n_instances,) or (n_instances, n_classes)
            Log-odds of the positive class; or one score per class, whose soft-max are the probabilities.
        bags : array-like of int, shape (n_instances,)
            Rows of ``proportions``. Not all need to occur: a batch has the instances of some bags.
        proportions : array-like, shape (n_bags,) or (n_bags, n_classes)
            Share of the positive class, or of each class.
        counts : array-like of int, shape (n_instances,), optional
            How many equal instances each row stands for, at least 1; gradient and curvature are then those of all of
            them.

        Returns
        -------
        value : float
        gradient : ndarray, of the shape of scores
        hessian : ndarray, of the shape of scores
            Not negative: the divisor of a step, in trees or in a learner of another library. It replaces the second
            derivatives, which can have any sign (see `llpbook.bag_losses.curvature`).

        Raises
        ------
        ValueError
            For malformed input, see `read_scores`; and for a single bag, of a loss that compares bags.
        """
        scores, observed = read_scores(scores, bags, proportions, counts)
        if scores.ndim == 2 and not self.several_classes:
            raise ValueError(
                f"{self!r} is a loss of two classes; scores must have one column, got {scores.shape[1]}"
            )
        n_bags = len(observed.sizes)
        if n_bags < self.fewest_bags:
            raise ValueError(
                f"bags must be {self.fewest_bags} or more for {self!r}, which compares bags, got {n_bags}: "
                "put more whole bags into a batch, or state the prior of EasyLoss"
            )
        value, gradient, hessian = self.of_counts(scores, observed)
        return value, observed.of_rows(gradient), observed.of_rows(hessian)

    @abstractmethod
    def of_counts(self, scores, observed):
        """Compute value, gradient and curvature from checked input.

        Parameters
        ----------
        scores : ndarray, shape (n_instances,) or (n_instances, n_classes)
        observed : BagCounts
            Each bag has instances.

        Returns
        -------
        value, gradient, hessian
            As of a call.
        """

    def evaluate(self, scores, observed, state=None):
        """Compute value and gradient for a solver, whose scores change little from call to call.

        Parameters
        ----------
        scores, observed
            As for `of_counts`.
        state : object, optional
            The last state that this method returned.

        Returns
        -------
        value, gradient
            As of a call.
        state : object
            Used at the next scores, and in `factors` at these.
        """
        return self.of_counts(scores, observed)

    def curved(self, scores, state):
        """Curvature of a call, from the state of `evaluate` at these scores; by default this state itself."""
        return state

    def factors(self, scores, observed, state=None):
        r"""Factors of the expected curvature, for Newton steps of a linear model.

        Parameters
        ----------
        scores, observed
            As for `of_counts`.
        state : object, optional
            Of `evaluate` at these scores.

        Returns
        -------
        list of ndarray, each of the shape of scores
            Numbers :math:`a_{mi}`. The curvature by weights is the sum over m of
            :math:`\sum_k u_k u_k^\top` with :math:`u_k = \sum_{i \in B_k} a_{mi} x_i` if ``by_bag``, else of
            :math:`\sum_i a_{mi}^2 x_i x_i^\top`. If not defined by the loss: of its positive curvature.
        """
        hessian = self.of_counts(scores, observed)[2] if state is None else state
        root = np.sqrt(hessian)
        if root.ndim == 1:
            return [root]
        return [root * unit for unit in np.eye(root.shape[1])]

    def n_factors(self, n_rows):
        """Number of `factors` for so many rows of weights."""
        return n_rows

    def with_prior(self, prior):
        """Copy with the shares of the classes in all bags; most losses do not need these, and return themselves.

        Parameters
        ----------
        prior : ndarray, shape (n_classes,)

        Returns
        -------
        BagLoss
        """
        return self

    def of_all(self, observed):
        """Copy for a call with some of these bags at a time; most losses compare no bags, and return themselves.

        Parameters
        ----------
        observed : BagCounts
            All bags.

        Returns
        -------
        BagLoss
            Its method `some` says which.
        """
        return self

    def some(self, bags):
        """Restrict the result of `of_all` to some of these bags, given as numbers in their order."""
        return self

    def check_counts(self, observed):
        """Return the counts of a fit; a loss that is not made for them raises or warns."""
        return observed

    def objective(self, proportions, counts=None):
        """Make the function that XGBoost and LightGBM call: from labels and scores to gradient and curvature.

        Parameters
        ----------
        proportions : array-like, shape (n_bags,)
        counts : array-like of int, shape (n_instances,), optional
            As of a call, for the instances of the fit.

        Returns
        -------
        callable
            ``objective(bags, scores)``, to be passed as ``objective=``; the bag numbers are passed to ``fit`` in place
            of labels, ``fit(X, bags)``.
        """
        return partial(_derivatives, self, proportions, counts)

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


def _derivatives(loss, proportions, counts, bags, scores):
    """Gradient and curvature of a loss, with arguments in the order of other libraries."""
    try:
        return loss(scores, bags, proportions, counts=counts)[1:]
    except ValueError as error:
        if not str(error).startswith("bags "):
            raise
        raise ValueError(
            f"{error}. A booster gets bags in place of labels, as the second argument of its fit: fit(X, bags)"
        ) from error


@dataclass(frozen=True)
class SumOfLosses(BagLoss):
    """Weighted sum of losses, such as ``loss + 0.1 * term``.

    Parameters
    ----------
    parts : tuple of BagLoss
    weights : tuple of float, optional
        All 1 if not given.

    Examples
    --------
    >>> from llpbook.bag_losses import ProportionLoss, SumOfLosses
    >>> shares, squares = ProportionLoss(), ProportionLoss("squares")
    >>> both = SumOfLosses((shares, squares), (1.0, 0.1))
    >>> scores, bags, p = [0.0, 1.0], [0, 0], [0.75]
    >>> both(scores, bags, p)[0] == (shares + 0.1 * squares)(scores, bags, p)[0]
    True
    """

    parts: tuple
    weights: tuple | None = None

    @property
    def several_classes(self):
        """True if all parts can have scores of several classes."""
        return all(part.several_classes for part in self.parts)

    @property
    def before(self):
        """Losses that any part minimizes first."""
        return sum((part.before for part in self.parts), ())

    @property
    def fewest_bags(self):
        """Fewest bags that all parts need."""
        return max(part.fewest_bags for part in self.parts)

    @property
    def bounded(self):
        """True if all parts have a lower bound."""
        return all(part.bounded for part in self.parts)

    def of_counts(self, scores, observed):
        """See `BagLoss.of_counts`."""
        weights = self.weights or (1.0,) * len(self.parts)
        parts = [part.of_counts(scores, observed) for part in self.parts]
        value, gradient, hessian = (
            sum(a * part for a, part in zip(weights, each, strict=True))
            for each in zip(*parts, strict=True)
        )
        return value, gradient, hessian

    def with_prior(self, prior):
        """See `BagLoss.with_prior`."""
        return self._each(lambda part: part.with_prior(prior))

    def of_all(self, observed):
        """See `BagLoss.of_all`."""
        return self._each(lambda part: part.of_all(observed))

    def some(self, bags):
        """See `BagLoss.some`."""
        return self._each(lambda part: part.some(bags))

    def check_counts(self, observed):
        """See `BagLoss.check_counts`; each part warns for itself."""
        for part in self.parts:
            part.check_counts(observed)
        return observed

    def _each(self, change):
        return SumOfLosses(tuple(map(change, self.parts)), self.weights)


#: Log-odds at which every probability is 0 or 1.
FAR_AWAY = 50.0


def refuse_unbounded(loss, observed, classes):
    """ValueError where a loss falls without end as a free intercept moves.

    Parameters
    ----------
    loss : BagLoss
    observed : BagCounts
    classes : ndarray, shape (n_classes,)
    """
    if loss.bounded:
        return
    L, K = observed.shares.shape
    bags = replace(
        observed, bags=np.arange(L), frequencies=observed.sizes
    )  # one row each
    for k in range(K):
        scores = np.zeros((L, K))
        scores[:, k] = -FAR_AWAY  # the class is predicted for nobody
        if K == 2:
            scores = scores[:, 1] - scores[:, 0]
        gradient = bags.of_rows(loss.of_counts(scores, bags)[1])
        slope = float(np.sum(gradient * scores)) / FAR_AWAY
        if slope < -1e-9 * observed.sizes.sum():
            raise ValueError(
                f"the loss {type(loss).__name__} has no minimum along the free intercept: far from class "
                f"{quote(classes[k])} it falls by {-slope:.3g} per unit. The labels of 'easy' do so where bags differ "
                "much in size, or a stated prior is not theirs. EasyLoss(factor='worth') without a prior and "
                "loss='proportion' have a minimum; so has BagLogistic with penalize_intercept=True"
            )


#: A mean prediction counts as no less.
SMALLEST_MEAN = 1e-300


@dataclass(frozen=True)
class ProportionLoss(BagLoss):
    r"""Divergence of the share of a bag from its mean prediction.

    :math:`n_k D(p_k, \bar s_k)`, equation :eq:`eq-losses-proportion`: the loss of networks that learn from label
    proportions (mann2007, as expectation regularization; ardehaly2017 for networks).

    Parameters
    ----------
    divergence : {"cross_entropy", "squares"}, default "cross_entropy"
        :math:`\sum_j p_j \log (p_j / \bar s_j)`, the cross-entropy minus its smallest value; or
        :math:`\sum_j (\bar s_j - p_j)^2`, which has the same curvature at :math:`p = \bar s = 1/2`.

    Examples
    --------
    >>> from llpbook.bag_losses import ProportionLoss
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

    def of_counts(self, scores, observed):
        """See `BagLoss.of_counts`."""
        s, p = probabilities(scores), observed.shares
        mean = np.maximum(observed.sums(s) / observed.sizes[:, None], SMALLEST_MEAN)
        # eq: eq-losses-proportion
        if self.divergence == "squares":
            divergence, slope = (mean - p) ** 2, 2 * (mean - p)
        else:
            divergence, slope = xlogy(p, p / mean), -p / mean
        slope = slope[observed.bags]
        gradient = s * (slope - np.sum(s * slope, axis=1, keepdims=True))
        columns = slice(None) if scores.ndim == 2 else 1
        value = float(observed.sizes @ divergence.sum(axis=1))
        return value, gradient[:, columns], curvature(s[:, columns])

    def factors(self, scores, observed, state=None):
        """See `BagLoss.factors`: those of Gauss-Newton, without the part that vanishes for a perfect fit."""
        s = probabilities(scores)
        if self.divergence == "squares":
            weights = np.sqrt(2 / observed.sizes)[:, None] * np.ones(s.shape[1])
        else:
            mean = np.maximum(observed.sums(s) / observed.sizes[:, None], SMALLEST_MEAN)
            weights = 1 / np.sqrt(mean * observed.sizes[:, None])
        weights = weights[observed.bags]
        if scores.ndim == 1:
            return [s[:, 0] * s[:, 1] * np.linalg.norm(weights, axis=1)]
        eye = np.eye(s.shape[1])
        return [
            (w * q)[:, None] * (e - s)
            for w, q, e in zip(weights.T, s.T, eye, strict=True)
        ]
