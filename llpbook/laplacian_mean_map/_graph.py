"""The graph of bags: how similar two of them are, and its Laplacian."""

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import pdist, squareform
from sklearn.neighbors import kneighbors_graph

from ..base import require_memory


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
    ndarray, or sparse array where ``n_neighbors`` is given, shape (n_bags, n_bags)
        Symmetric, 0 on the diagonal.
    """
    n_bags = len(bag_means)
    if n_neighbors is not None and n_neighbors < n_bags - 1:
        near = kneighbors_graph(bag_means, n_neighbors, mode="distance")
        # eq: eq-lmm-gaussian
        near.data = np.exp(-near.data / sigma)
        return sp.csr_array(near.maximum(near.T))
    require_memory(f"a graph of {n_bags} bags", 30.0 * n_bags**2, "set n_neighbors=50")
    similarity = pdist(bag_means)
    similarity /= -sigma
    return squareform(np.exp(similarity, out=similarity))


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
