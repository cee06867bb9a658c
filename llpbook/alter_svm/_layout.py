"""Instances sorted by bag, with the bag step for rounded hinges."""

import numpy as np

from .._counts import ranks, whole_counts
from ._steps import count_cost


def rounded_hinge(z, width):
    """The hinge max(0, 1 - z) with its kink rounded over a width."""
    slope = np.clip(0.5 + (1 - z) / width, 0, 1)
    return slope * (1 - z) + width / 2 * slope * (1 - slope)


def rounded_gain(f, width):
    """`flip_gain` of rounded hinges."""
    return rounded_hinge(-f, width) - rounded_hinge(f, width)


class Layout:
    """Instances sorted by the size of their bag, then by bag, then in a given order.

    Bags of one size are in the order of their first instances, so that the names of bags have no effect. They are rows
    of a matrix, so that a sort within bags is a sort of its rows. Of equal scores in a bag the first ones become
    positive.
    """

    def __init__(self, order, bags, shares, penalties):
        own, sizes = bags[order], np.bincount(bags, minlength=len(shares))
        _, first, which = np.unique(own, return_index=True, return_inverse=True)
        self.order = order[np.lexsort((first[which], sizes[own]))]
        self.bags, self.shares, self.penalties = bags[self.order], shares, penalties
        self.starts = np.flatnonzero(np.diff(self.bags, prepend=-1))
        self.present = self.bags[self.starts]
        self.sizes = sizes[self.present]
        rank = np.arange(len(order)) - np.repeat(self.starts, self.sizes)
        size, share, penalty = (v[self.bags] for v in (sizes, shares, penalties))
        self.costs = count_cost(rank, size, share, penalty)

    def best_labels(self, f, C, width):
        """Labels of `bag_step` for rounded hinges."""
        f_sorted = self._sort(f)
        better = C * rounded_gain(f_sorted, width) > self.costs
        counts = np.add.reduceat(better, self.starts, dtype=int)
        return self._highest(f, f_sorted, counts)

    def first_labels(self, f):
        """Label the largest scores of each bag positive, as many as the rounded share says."""
        share = self.shares[self.present]
        counts = whole_counts(np.column_stack([1 - share, share]), self.sizes)[:, 1]
        return self._highest(f, self._sort(f), counts)

    def _sort(self, f):
        """Sort the scores of each bag, the largest first."""
        falling, start = -f, 0
        for size, n_bags in zip(
            *np.unique(self.sizes, return_counts=True), strict=True
        ):
            end = start + size * n_bags
            falling[start:end].reshape(n_bags, size).sort(axis=1)
            start = end
        return np.negative(falling, out=falling)

    def _highest(self, f, f_sorted, counts):
        """Label the largest scores of each bag positive, as many as its count says."""
        least = f_sorted[self.starts + np.maximum(counts, 1) - 1]
        least[counts == 0] = np.inf
        positive = f >= np.repeat(least, self.sizes)
        tied = np.add.reduceat(positive, self.starts, dtype=int) != counts
        rows = np.flatnonzero(np.repeat(tied, self.sizes))
        if len(rows):
            wanted = np.repeat(counts, self.sizes)[rows]
            positive[rows] = ranks(f[rows], self.bags[rows]) < wanted
        return np.where(positive, 1.0, -1.0)

    def share_cost(self, y):
        """Cost of the errors of the shares, without known labels."""
        n = np.add.reduceat(y > 0, self.starts, dtype=int)
        errors = np.abs(n / self.sizes - self.shares[self.present])
        penalties = self.penalties[self.present]
        soft = np.isfinite(penalties)
        return penalties[soft] @ errors[soft]
