"""Shares that were printed with few digits, turned back into the counts that they were."""

from typing import NamedTuple

import numpy as np
from scipy.special import bdtrc

from ._arguments import quote

#: The most decimals that count as few, and how far a share may be from its decimals: single precision.
MOST_DECIMALS, EXACT = 5, 1e-7
#: How far a count may be from a whole number, as a part of its bag.
WHOLE = 1e-6
#: Shares are rounded counts if each is a possible one and the step is fine. With a coarser step, or where a part of the
#: bags, at most this one, has no possible count, chance must make as many possible with at most this probability.
FINE, MOST_ODD, BY_CHANCE = 0.01, 0.1, 0.05


def whole_bags(counts, sizes):
    """Mark the bags whose counts are whole, up to rounding, and sum to their sizes.

    Parameters
    ----------
    counts : ndarray, shape (n_bags, n_classes)
    sizes : ndarray of int, shape (n_bags,)

    Returns
    -------
    ndarray of bool, shape (n_bags,)
    """
    nearest = np.round(counts)
    whole = np.abs(counts - nearest) < WHOLE * np.maximum(sizes, 1)[:, None]
    return whole.all(axis=1) & (nearest.sum(axis=1) == sizes)


class Restored(NamedTuple):
    """Counts of bags, as far as the digits of their shares determine them.

    Attributes
    ----------
    shares : ndarray, shape (n_bags, n_classes)
        Counts divided by sizes where one count is possible, the shares as they were elsewhere.
    counts : ndarray, shape (n_bags, n_classes)
        NaN where not one count is possible, and where the shares are no rounded counts.
    possible : ndarray of int, shape (n_bags,)
        How many counts of the classes are possible: 0, 1, or 2 for two and more; -1 for a bag without instances.
    step : float
        The unit of the last digit, such as 0.01; 0 for shares with more digits, or that are whole counts as they are.
    sizes : ndarray of int, shape (n_bags,)
    chance : float, default 0.0
        From `chance_of_counts`, for shares with few digits.
    """

    shares: np.ndarray
    counts: np.ndarray
    possible: np.ndarray
    step: float
    sizes: np.ndarray
    chance: float = 0.0

    @property
    def agree(self):
        """True if the shares are rounded counts; if not, none is changed."""
        odd = np.mean(self.possible[self.sizes > 0] == 0)
        if odd == 0 and self.step <= FINE:
            return True
        return bool(odd <= MOST_ODD and self.chance <= BY_CHANCE)

    def odd(self, bag_labels=None):
        """Sentence on bags whose shares are not rounded counts although those of the others are; "" without such bags.

        Parameters
        ----------
        bag_labels : pandas.Index, optional
            Names of the bags; numbers if not given.

        Returns
        -------
        str
        """
        rows = np.flatnonzero(self.possible == 0)
        if not len(rows) or not self.agree:
            return ""
        k = rows[0]
        name = k if bag_labels is None else bag_labels[k]
        share = f"{self.shares[k, -1]:.{decimals_of(self.step)}f}"
        return (
            f"the shares of {(self.possible > 0).sum()} bags are rounded counts, but those of {len(rows)} are not: "
            f"no count of {self.sizes[k]} instances gives the share {share} of bag {quote(name)}. Look for a typing "
            "error, or for instances that are missing; these shares are taken as they are"
        )


def decimals_of(step):
    """Decimals of a number whose last digit has this unit."""
    return int(np.ceil(-np.log10(step) - 1e-9))


def printed_step(shares):
    """The step of printed shares: 1, 5 or 2 units of a decimal, such as 0.01; 0 where they have too many digits.

    Parameters
    ----------
    shares : ndarray
        NaN is left out.

    Returns
    -------
    float
    """
    for decimals in range(1, MOST_DECIMALS + 1):
        for unit in (1, 0.5, 0.2):
            step = unit * 10.0**-decimals
            if not (np.abs(shares - step * np.round(shares / step)) > EXACT).any():
                return step
    return 0.0


def possible_counts(shares, sizes, half):
    """The smallest and the largest count of each class in each bag, among the counts that agree with its shares.

    Parameters
    ----------
    shares : ndarray, shape (n_bags, n_classes)
    sizes : ndarray of int, shape (n_bags,)
    half : float
        How far a share may be from a count divided by the size.

    Returns
    -------
    low, high : ndarray of int, shape (n_bags, n_classes)
        Attained; in a bag where no counts are possible, some ``low`` is above ``high``.
    """
    n = sizes[:, None]
    low = np.maximum(np.ceil(n * (shares - half - EXACT)), 0).astype(np.int64)
    high = np.minimum(np.floor(n * (shares + half + EXACT)), n).astype(np.int64)
    # The counts of a bag sum to its size.
    least, most = low.sum(axis=1, keepdims=True), high.sum(axis=1, keepdims=True)
    return np.maximum(low, n - (most - high)), np.minimum(high, n - (least - low))


def restored(shares, sizes):
    """Counts from printed shares, in bags where their digits leave one possibility.

    Parameters
    ----------
    shares : ndarray, shape (n_bags, n_classes)
    sizes : ndarray of int, shape (n_bags,)
        Bags without instances are left as they are.

    Returns
    -------
    Restored
    """
    used = sizes > 0
    counts, possible = np.full(shares.shape, np.nan), np.full(len(sizes), -1)
    n, p = sizes[used, None], shares[used]
    if whole_bags(n * p, n[:, 0]).all():
        counts[used], possible[used] = np.round(n * p), 1
        return Restored(shares, counts, possible, 0.0, sizes)
    step = printed_step(p)
    if not step:
        possible[used] = 0
        return Restored(shares, counts, possible, 0.0, sizes)
    low, high = possible_counts(p, n[:, 0], step / 2)
    if shares.shape[1] > 2 and (low > high).any() and sums_to_one(p):
        # Digits that were chosen so that each row sums to 1 are up to a whole unit away.
        low, high = possible_counts(p, n[:, 0], step)
    none, one = (low > high).any(axis=1), (low == high).all(axis=1)
    possible[used] = np.select([none, one], [0, 1], 2)
    chance = chance_of_counts(possible[used], p, n[:, 0], step)
    result = Restored(shares, counts, possible, step, sizes, chance)
    if not result.agree:
        return result
    counts[possible == 1] = low[one]
    exact = counts / np.maximum(sizes, 1)[:, None]
    return result._replace(shares=np.where(possible[:, None] == 1, exact, shares))


def chance_of_counts(possible, shares, sizes, step):
    """The probability that chance makes as many shares possible counts, if all shares with these digits are as likely.

    Equal shares of bags of equal size say so once.

    Parameters
    ----------
    possible : ndarray of int, shape (n_bags,)
        As of `Restored`.
    shares : ndarray, shape (n_bags, n_classes)
    sizes : ndarray of int, shape (n_bags,)
    step : float

    Returns
    -------
    float
    """
    rows = np.column_stack([possible > 0, sizes, np.round(shares / step)])
    rows = np.unique(rows, axis=0)
    each = np.minimum((rows[:, 1] + 1) * step / (1 + step), 1.0)
    each = each ** (shares.shape[1] - 1)
    return float(bdtrc(rows[:, 0].sum() - 1, len(each), each.mean()))


def sums_to_one(shares):
    """True if all rows sum to 1, in single precision."""
    return bool((np.abs(shares.sum(axis=1) - 1) <= EXACT).all())
