"""The bag step of all bags at once: instances are sorted so that the bags of one size are the rows of a matrix."""

from dataclasses import dataclass

import numpy as np

from ..base import whole_counts
from ._steps import count_cost


def rounded_hinge(z, width):
    """The hinge max(0, 1 - z) with its kink rounded over a width."""
    slope = np.clip(0.5 + (1 - z) / width, 0, 1)
    return slope * (1 - z) + width / 2 * slope * (1 - slope)


@dataclass
class Block:
    """Bags of one size: the rows of their instances, their shares, and `count_cost` by bag and rank."""

    rows: slice
    size: int
    shares: np.ndarray
    costs: np.ndarray


class Layout:
    """Instances sorted by the size of their bag, then by bag, then in a given order.

    Bags of one size are in the order of their first instances, so that the names of bags have no effect. Of equal
    scores in a bag the first ones become positive.
    """

    def __init__(self, order, bags, shares, penalties, loss):
        own, sizes = bags[order], np.bincount(bags, minlength=len(shares))
        _, first, which = np.unique(own, return_index=True, return_inverse=True)
        self.order = order[np.lexsort((first[which], sizes[own]))]
        self.bags, self.shares = bags[self.order], shares
        self.penalties, self.loss = penalties, loss
        found, first = np.unique(sizes[self.bags], return_index=True)
        rows = map(slice, first, [*first[1:], len(bags)])
        self.blocks = [self.block(*pair) for pair in zip(found, rows, strict=True)]

    def block(self, size, rows):
        """The block of all bags of one size, whose instances are in ``rows``."""
        own = self.bags[rows][::size]
        shares, penalties = self.shares[own, None], self.penalties[own, None]
        costs = count_cost(np.arange(size), size, shares, penalties, self.loss)
        return Block(rows, size, shares[:, 0], costs)

    def best_labels(self, f, C, width):
        """Labels as by `bag_step`, but with rounded hinges."""

        def count(block, ranked):
            falls = rounded_hinge(-ranked, width) - rounded_hinge(ranked, width)
            return (block.costs < C * falls).sum(axis=1)

        return self.largest(f, count)

    def first_labels(self, f):
        """In each bag the largest scores are positive, as many as the rounded share says."""

        def count(block, _):
            shares = np.column_stack([1 - block.shares, block.shares])
            return whole_counts(shares, block.size)[:, 1]

        return self.largest(f, count)

    def largest(self, f, count):
        """+1 for the largest scores of each bag, as many as ``count`` says by block and ranked scores; else -1."""
        y = np.empty(len(f))
        for block in self.blocks:
            scores = f[block.rows].reshape(-1, block.size)
            ranked = np.sort(scores, axis=1)[:, ::-1]
            y[block.rows] = top(scores, ranked, count(block, ranked)).ravel()
        return y


def top(scores, ranked, count):
    """+1 for the ``count`` largest of each row, else -1; of equal ones the first."""
    last = np.take_along_axis(ranked, np.maximum(count - 1, 0)[:, None], axis=1)
    chosen = scores >= np.where(count[:, None] > 0, last, np.inf)
    for row in np.flatnonzero(chosen.sum(axis=1) > count):
        chosen[row] = False
        chosen[row, np.argsort(-scores[row], kind="stable")[: count[row]]] = True
    return np.where(chosen, 1.0, -1.0)
