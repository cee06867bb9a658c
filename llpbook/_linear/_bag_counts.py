"""Observed counts of the classes in bags."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from .._input import repeated_rows, whole_bags


@dataclass(frozen=True, eq=False)
class BagCounts:
    """Observed counts of the classes in bags, with their errors.

    Attributes
    ----------
    bags : ndarray of int, shape (n_rows,)
        In ``[0, n_bags)``; each bag has instances.
    sizes : ndarray of int, shape (n_bags,)
        Instances of each bag.
    counts : ndarray, shape (n_bags,) or (n_bags, n_classes)
        Of the positive class, or of each of several.
    errors : ndarray, shape (n_bags,) or (n_bags, n_classes, n_classes)
        Variance of the error of each count, 0 for an exact one; for several classes a covariance matrix.
    laplace : bool
        True if the errors have a Laplace distribution, and not a normal one.
    frequencies : ndarray of int, shape (n_rows,), or None
        Number of equal instances that a row stands for; None for one.
    """

    bags: np.ndarray
    sizes: np.ndarray
    counts: np.ndarray
    errors: np.ndarray
    laplace: bool = False
    frequencies: np.ndarray | None = None

    @property
    def shares(self):
        """Shares of the classes, shape (n_bags, n_classes)."""
        if self.counts.ndim == 1:
            return (
                np.column_stack([self.sizes - self.counts, self.counts])
                / self.sizes[:, None]
            )
        return self.counts / self.sizes[:, None]

    @cached_property
    def matrix(self):
        """Sparse matrix whose product with values of rows is their sum over each bag, shape (n_bags, n_rows)."""
        rows, L = np.arange(len(self.bags)), len(self.sizes)
        values = np.ones(len(rows))
        if self.frequencies is not None:
            values = self.frequencies.astype(float)
        return sp.csr_array((values, (self.bags, rows)), shape=(L, len(rows)))

    def sums(self, values):
        """Sum over the instances of each bag, shape (n_bags,) or (n_bags, n_columns)."""
        return self.matrix @ values

    def total(self, values):
        """Sum over all instances."""
        return float(
            np.sum(values) if self.frequencies is None else values @ self.frequencies
        )

    def of_rows(self, values, rows=slice(None)):
        """Multiply values of single instances by the frequencies of their rows."""
        if self.frequencies is None:
            return values
        times = self.frequencies[rows]
        return values * (times if values.ndim == 1 else times[:, None])

    def weighted_sums(self, weights, Z):
        r"""Sums :math:`\sum_{i \in B_k} a_i x_i` over each bag, shape (n_bags, n_columns), dense.

        Parameters
        ----------
        weights : ndarray, shape (n_rows,)
        Z : ndarray or sparse array, shape (n_rows, n_columns)
        """
        S = self.matrix
        data = S.data * weights[S.indices]
        sums = sp.csr_array((data, S.indices, S.indptr), shape=S.shape) @ Z
        return sums if isinstance(sums, np.ndarray) else sums.toarray()

    def bounds(self, values):
        """Smallest and largest value of each bag."""
        S = self.matrix
        ordered = values[S.indices]
        first = S.indptr[:-1]
        return np.minimum.reduceat(ordered, first), np.maximum.reduceat(ordered, first)

    def covariances(self, pi):
        """Covariances of the counts of several classes with their errors, for probabilities pi: (n_bags, K, K)."""
        K = pi.shape[1]
        H = np.zeros((len(self.sizes), K, K))
        for j in range(K):
            H[:, j] = -self.sums(pi * pi[:, [j]])
        every = np.arange(K)
        H[:, every, every] = 0
        # Not p - p^2, which is nothing but rounding where labels are sure.
        H[:, every, every] = -H.sum(axis=2)
        return H + self.errors

    def possible(self):
        """Copy with counts that bags can have, where noise was added to them."""
        if self.counts.ndim == 1:
            return replace(self, counts=np.clip(self.counts, 0, self.sizes))
        counts = np.maximum(self.counts, 0)
        total = counts.sum(axis=1, keepdims=True)
        return replace(self, counts=counts * self.sizes[:, None] / total)

    def reordered(self, order):
        """Copy with the rows in another order."""
        times = None if self.frequencies is None else self.frequencies[order]
        return replace(self, bags=self.bags[order], frequencies=times)

    def part(self, keep):
        """Keep the bags of a mask, renumbered."""
        number, rows = np.cumsum(keep) - 1, keep[self.bags]
        return replace(
            self, bags=number[self.bags[rows]], sizes=self.sizes[keep],
            counts=self.counts[keep], errors=self.errors[keep],
            frequencies=None if self.frequencies is None else self.frequencies[rows],
        )  # fmt: skip

    def instances(self):
        """The row of each instance, and these counts with a row per instance."""
        if self.frequencies is None:
            return np.arange(len(self.bags)), self
        rows = repeated_rows(self.frequencies)
        return rows, replace(self, bags=self.bags[rows], frequencies=None)


def bag_counts(bags, proportions, covariances=None, frequencies=None, *, laplace=False):
    r"""Compute counts from shares: :math:`c_k = n_k p_k`.

    Parameters
    ----------
    bags : ndarray of int, shape (n_rows,)
    proportions : ndarray, shape (n_bags, n_classes)
    covariances : ndarray, shape (n_bags, n_classes, n_classes), optional
        Of the errors of the shares; see `llpbook.base.error_covariances`.
    frequencies : ndarray of int, shape (n_rows,), optional
        Number of equal instances that each row stands for.
    laplace : bool, default False
        True if the errors have a Laplace distribution.

    Returns
    -------
    BagCounts
        Of the bags with instances. Counts that are whole up to rounding are made whole, all of a bag or none, so that
        they sum to its size. Others are taken as they are: a count of 0.3 is 1 with probability 0.3, else 0.
    """
    occurs = np.bincount(bags, minlength=len(proportions))
    used = np.flatnonzero(occurs)
    codes = (np.cumsum(occurs > 0) - 1)[bags]
    sizes = np.bincount(codes, frequencies).astype(int)
    counts = sizes[:, None] * proportions[used]
    whole = whole_bags(counts, sizes)
    counts[whole] = np.round(counts[whole])
    n_classes = counts.shape[1]
    errors = np.zeros((len(used), n_classes, n_classes))
    if covariances is not None:
        errors = sizes[:, None, None] ** 2 * covariances[used]
    if n_classes == 2:
        counts, errors = counts[:, 1], errors[:, 1, 1]
    return BagCounts(codes, sizes, counts, errors, laplace, frequencies)
