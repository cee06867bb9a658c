"""The graph of bags: how similar two of them are, and its Laplacian."""

from functools import cached_property

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn.neighbors import kneighbors_graph
from sklearn.utils import gen_batches

from ..base import require_memory, thin

#: Instances over all bags between which `mean_distances` measures; at least two per bag.
MEASURED = 10_000
#: Peak memory of the normalized cut, counted in matrices of all pairs of bags.
MATRICES = 6.2


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


def mean_distances(X, bags, n_bags):
    """Mean distance between an instance of one bag and one of another, or of two of the same bag.

    Parameters
    ----------
    X : ndarray or sparse array, shape (n_instances, n_features)
    bags : ndarray of int, shape (n_instances,)
        Every bag has instances.
    n_bags : int

    Returns
    -------
    ndarray, shape (n_bags, n_bags)
        With more than 10,000 instances, only some of each bag are measured, the same ones for the same data. 0 on the
        diagonal for a bag of one instance.
    """
    require_memory(
        f"similarity='normalized cut' of {n_bags} bags",
        8.0 * MATRICES * n_bags**2,
        "take similarity='gaussian', or fewer bags",
    )
    limit = max(2, MEASURED // n_bags)
    order = np.argsort(bags, kind="stable")
    parts = np.split(order, np.cumsum(np.bincount(bags, minlength=n_bags))[:-1])
    rows = [thin(_dense(X[part]), limit) for part in parts]
    sizes = np.array([len(part) for part in rows])
    points, starts = np.vstack(rows), np.cumsum(sizes) - sizes
    sums = np.empty((n_bags, n_bags))
    for k, part in enumerate(rows):
        sums[k] = np.add.reduceat(cdist(part, points).sum(axis=0), starts)
    pairs = np.outer(sizes, sizes) - np.diag(sizes)
    return np.divide(sums, pairs, out=np.zeros_like(sums), where=pairs > 0)


def _dense(rows):
    return rows if isinstance(rows, np.ndarray) else rows.toarray()


def normalized_cut_similarity(distances, bag_sizes):
    r"""Similarity of bags from distances of instances: within a bag, compared with between two bags.

    With :math:`a_{kl} = \sum_{i \in B_k} \sum_{i' \in B_l} \lVert x_i - x_{i'} \rVert`, equation :eq:`eq-lmm-cut`,
    :math:`V_{kl} = \frac{a_{kk}}{a_{kk} + a_{kl}} + \frac{a_{ll}}{a_{ll} + a_{kl}}`.

    Parameters
    ----------
    distances : ndarray, shape (n_bags, n_bags)
        From `mean_distances`.
    bag_sizes : ndarray, shape (n_bags,)

    Returns
    -------
    ndarray, shape (n_bags, n_bags)
        Symmetric, 0 on the diagonal. A bag of one instance has no distances within; 1 for two bags that coincide.
    """
    pairs = np.outer(bag_sizes, bag_sizes) - np.diag(bag_sizes)
    a = distances * pairs
    within, total = np.diag(a)[:, None], np.diag(a)[:, None] + a
    share = np.divide(within, total, out=np.full_like(a, 0.5), where=total > 0)
    # eq: eq-lmm-cut
    similarity = share + share.T
    np.fill_diagonal(similarity, 0.0)
    return similarity


def laplacian_times(similarity, means):
    r"""The graph Laplacian times one row per bag.

    :math:`L_a = \operatorname{diag}(V 1) - V`, equation :eq:`eq-lmm-graph`.

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
    # eq: eq-lmm-graph
    return (degree[:, None] * rows - similarity @ rows).reshape(means.shape)
