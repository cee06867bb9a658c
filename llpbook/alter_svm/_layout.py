"""The bag step of all bags at once: instances are sorted so that the bags of one size are the rows of a matrix."""

import numpy as np

from ..base import whole_counts
from ._steps import count_cost


def rounded_hinge(z, width):
    """The hinge max(0, 1 - z) with its kink rounded over a width."""
    slope = np.clip(0.5 + (1 - z) / width, 0, 1)
    return slope * (1 - z) + width / 2 * slope * (1 - slope)


class Layout:
    """Instances sorted by the size of their bag, then by bag, then in a given order.

    Bags of one size are in the order of their first instances, so that the names of bags have no effect. They are a
    block: the slice of their instances, their shares, and `count_cost` by bag and rank. Of equal scores in a bag the
    first ones become positive.
    """

    def __init__(self, order, bags, shares, penalties):
        own, sizes = bags[order], np.bincount(bags, minlength=len(shares))
        _, first, which = np.unique(own, return_index=True, return_inverse=True)
        self.order = order[np.lexsort((first[which], sizes[own]))]
        self.bags, self.shares = bags[self.order], shares
        self.penalties, self.blocks = penalties, []
        found, first = np.unique(sizes[self.bags], return_index=True)
        for size, *ends in zip(found, first, [*first[1:], len(bags)], strict=True):
            rows = slice(*ends)
            own = self.bags[rows][::size]
            given = size, shares[own, None], penalties[own, None]
            costs = count_cost(np.arange(size), *given)
            self.blocks.append((rows, shares[own], costs))

    def best_labels(self, f, C, width):
        """Labels as by `bag_step`, but with rounded hinges."""

        def count(ranked, _, costs):
            falls = rounded_hinge(-ranked, width) - rounded_hinge(ranked, width)
            return (costs < C * falls).sum(axis=1)

        return self.largest(f, count)

    def first_labels(self, f):
        """In each bag the largest scores are positive, as many as the rounded share says."""

        def count(ranked, shares, _):
            both = np.column_stack([1 - shares, shares])
            return whole_counts(both, ranked.shape[1])[:, 1]

        return self.largest(f, count)

    def largest(self, f, count):
        """+1 for the largest scores of each bag, as many as ``count`` says by ranked scores and block; else -1."""
        y = np.empty(len(f))
        for rows, shares, costs in self.blocks:
            scores = f[rows].reshape(costs.shape)
            ranked = np.sort(scores, axis=1)[:, ::-1]
            y[rows] = top(scores, ranked, count(ranked, shares, costs)).ravel()
        return y


def top(scores, ranked, count):
    """+1 for the ``count`` largest of each row, else -1; of equal ones the first."""
    last = np.take_along_axis(ranked, np.maximum(count - 1, 0)[:, None], axis=1)
    chosen = scores >= np.where(count[:, None] > 0, last, np.inf)
    for row in np.flatnonzero(chosen.sum(axis=1) > count):
        chosen[row] = False
        chosen[row, np.argsort(-scores[row], kind="stable")[: count[row]]] = True
    return np.where(chosen, 1.0, -1.0)
