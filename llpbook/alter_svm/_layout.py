"""Instances sorted by bag, with the bag step for rounded hinges."""

import numpy as np

from .._counts import ranks, whole_counts
from ._steps import count_cost


def rounded_hinge(z, width):
    """The hinge max(0, 1 - z) with its kink rounded over a width."""
    slope = np.clip(0.5 + (1 - z) / width, 0, 1)
    return slope * (1 - z) + width / 2 * slope * (1 - slope)


class Layout:
    """Instances sorted by the size of their bag, then by bag, then in a given order.

    Bags of one size are in the order of their first instances, so that the names of bags have no effect. Of equal
    scores in a bag the first ones become positive.
    """

    def __init__(self, order, bags, shares, penalties):
        own, self.sizes = bags[order], np.bincount(bags, minlength=len(shares))
        _, first, which = np.unique(own, return_index=True, return_inverse=True)
        self.order = order[np.lexsort((first[which], self.sizes[own]))]
        self.bags, self.shares, self.penalties = bags[self.order], shares, penalties

    def best_labels(self, f, C, width):
        """Labels of `bag_step` for rounded hinges."""
        bags, rank = self.bags, ranks(f, self.bags)
        sizes, shares = self.sizes[bags], self.shares[bags]
        costs = count_cost(rank, sizes, shares, self.penalties[bags])
        falls = rounded_hinge(-f, width) - rounded_hinge(f, width)
        return np.where(C * falls > costs, 1.0, -1.0)

    def first_labels(self, f):
        """Label the largest scores of each bag positive, as many as the rounded share says."""
        both = np.column_stack([1 - self.shares, self.shares])
        counts = whole_counts(both, self.sizes)[:, 1]
        return np.where(ranks(f, self.bags) < counts[self.bags], 1.0, -1.0)
