"""The graph of bags: how similar two of them are, and its Laplacian."""

from functools import cached_property

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn.neighbors import kneighbors_graph
from sklearn.utils import gen_batches


def gaussian_similarity(bag_means, sigma, *, n_neighbors=None):
    r"""Similarity of bags by the distance of their means.

    :math:`e^{-\lVert \bar x_k - \bar x_l \rVert / \sigma}`, equation :eq:`eq-lmm-gaussian`, with the plain distance.

    Parameters
    ----------
    bag_means : ndarray, shape (n_bags, n_features)
    sigma : float
    n_neighbors : int, optional
        Two bags have the similarity 0 if neither is among so many nearest neighbors of the other.

    Returns
    -------
    ndarray, or sparse array where ``n_neighbors`` is given, or `AllPairs`, shape (n_bags, n_bags)
        Symmetric, 0 on the diagonal. `AllPairs` where there are more than 5,000 bags.
    """
    n_bags = len(bag_means)
    if n_neighbors is not None and n_neighbors < n_bags - 1:
        near = kneighbors_graph(bag_means, n_neighbors, mode="distance")
        # eq: eq-lmm-gaussian
        near.data = np.exp(-near.data / sigma)
        return sp.csr_array(near.maximum(near.T))
    if n_bags > AllPairs.HELD:
        return AllPairs(bag_means, sigma)
    similarity = cdist(bag_means, bag_means)
    similarity /= -sigma
    np.exp(similarity, out=similarity)
    np.fill_diagonal(similarity, 0.0)
    return similarity


class AllPairs:
    """Gaussian similarities of all pairs of bags: a matrix that is computed block by block and never held.

    Parameters
    ----------
    bag_means : ndarray, shape (n_bags, n_features)
    sigma : float

    Attributes
    ----------
    shape : (int, int)
    tell : callable
        Called after each block of ``BLOCK`` rows.
    """

    #: Most bags for which `gaussian_similarity` holds all pairs: 200 MB.
    HELD = 5_000
    #: Rows computed at once.
    BLOCK = 64

    def __init__(self, bag_means, sigma):
        self.bag_means, self.sigma, self.tell = bag_means, sigma, lambda: None
        self.shape = len(bag_means), len(bag_means)

    def __getitem__(self, pairs):
        """Similarities of the pairs of `numpy.ix_`."""
        rows, columns = pairs
        found = cdist(self.bag_means[rows[:, 0]], self.bag_means[columns[0]])
        found /= -self.sigma
        np.exp(found, out=found)
        found[rows == columns] = 0.0
        return found

    def __matmul__(self, vectors):
        n_bags, product = len(vectors), np.zeros(vectors.shape)
        for block in gen_batches(n_bags, self.BLOCK):
            # The pairs on and above the diagonal: those below are the same.
            rows, later = np.arange(block.start, block.stop), slice(block.stop, None)
            found = self[np.ix_(rows, np.arange(block.start, n_bags))]
            product[block] += found @ vectors[block.start :]
            product[later] += found[:, len(rows) :].T @ vectors[block]
            self.tell()
        return product

    @cached_property
    def _degree(self):
        return self @ np.ones(self.shape[0])

    def sum(self, axis):
        """The sum of each row, which equals that of the same column."""
        return self._degree


def laplacian_times(similarity, means):
    r"""The graph Laplacian times one row per bag.

    :math:`L_a = \operatorname{diag}(V 1) - V`; the energy of the differences is :math:`\operatorname{tr} M^\top L_a M`.

    Parameters
    ----------
    similarity : ndarray or sparse array, shape (n_bags, n_bags)
    means : ndarray, shape (n_bags, ...)

    Returns
    -------
    ndarray, shape of ``means``
    """
    rows = means.reshape(len(means), -1)
    rows = rows - rows.mean(axis=0)  # changes the rounding only
    degree = similarity.sum(axis=1)
    return (degree[:, None] * rows - similarity @ rows).reshape(means.shape)
