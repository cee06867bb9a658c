r"""SMIC: cluster by squared-loss mutual information, whose relaxed maximum is a pair of eigenvectors.

A clustering ignores the bags: cut the union of the instances into clusters that are as informative as possible about
the instance, in the squared-loss mutual information

.. math:: \mathrm{SMI} = \frac12 \sum_k \int r(x)\, r(k) \Bigl(\frac{r(x, k)}{r(x)\, r(k)} - 1\Bigr)^2 \mathrm{d}x ,

:math:`r(x)` the density of all instances, :math:`k` the cluster. With clusters of equal probability :math:`1/m` and the
model :math:`r(k \mid x) = \sum_i \alpha_{k,i} K(x, x_i)` this is
:math:`\frac{m}{2N} \sum_k \alpha_k^\top K^2 \alpha_k - \frac12` on the sample, largest over orthonormal
:math:`\alpha_k` at the leading eigenvectors of :math:`K`. The number of neighbors in the kernel is the one whose
clusters have the largest SMI, estimated anew by least squares (LSMI).

Chapter: ``book/smic``. Sources: sugiyama2011; suzuki2009 (LSMI); duplessis2013 (section 4.2: the competitor).
Where we could not establish the authors' choice, ours is stated at `assign_clusters`, `leading_eigenvectors`,
`local_scaling_kernel` and `lsmi`.
"""

from numbers import Integral

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.linalg import eigh
from scipy.sparse.linalg import eigsh
from scipy.spatial.distance import cdist
from sklearn.metrics import pairwise_distances_argmin
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import check_random_state

from ._input import ArrayLike, RandomState
from .base import (
    StrOptions,
    candidates,
    canonical_order,
    in_blocks,
    median_distance,
    require_memory,
    tune,
)
from .density_difference import TwoBagClassifier, gaussian_basis

__all__ = ["SMIC"]

NEIGHBORS = tuple(range(1, 11))  # the grid of the paper
SIGMAS = (0.15, 0.25, 0.5, 0.75, 1.0, 1.5)  # widths for LSMI, in median distances
LAMS = (0.001, 0.01, 0.1, 1.0, 10.0)  # penalties for LSMI
DENSE = 500  # up to this many instances the dense eigensolver is used
# Peak memory, in matrices of: instances by neighbors; instances by centers, and for each fold and penalty centers by
# centers (LSMI).
GRAPH_COPIES, LSMI_COPIES = 13.0, 3.5
ZERO = 1e-10  # an entry of an eigenvector below this share of the largest is 0


def nearest_neighbors(X, n_neighbors):
    """Distances and indices of the nearest other instances.

    Parameters
    ----------
    X : ndarray, shape (n_instances, n_features)
    n_neighbors : int

    Returns
    -------
    distances : ndarray, shape (n_instances, n_neighbors)
        Ascending in each row, and exact: 0 for equal rows of X.
    indices : ndarray of int, shape (n_instances, n_neighbors)
        Of neighbors at equal distances, those that the search happens to find.
    """
    indices = NearestNeighbors(n_neighbors=n_neighbors).fit(X).kneighbors()[1]
    # The distances of the fast search are rounded as differences of squares.
    columns = [np.linalg.norm(X - X[column], axis=1) for column in indices.T]
    distances = np.column_stack(columns)
    order = np.argsort(distances, axis=1, kind="stable")
    return tuple(np.take_along_axis(a, order, axis=1) for a in (distances, indices))


def affinity(distances, products):
    r"""Local-scaling affinity of pairs that are neighbors.

    :math:`\exp(-\lVert x - x' \rVert^2 / (2 s s'))`, equation :eq:`eq-smic-kernel`.

    Parameters
    ----------
    distances : ndarray
    products : ndarray, same shape
        The product :math:`s s'` of the two scales; where it is 0, the affinity is 1 at distance 0, else 0 (the limit).

    Returns
    -------
    ndarray, same shape
    """
    limit = np.where(distances > 0, np.inf, 0.0)
    ratio = np.divide(distances**2, 2 * products, out=limit, where=products > 0)
    # eq: eq-smic-kernel
    return np.exp(-ratio)


def local_scaling_kernel(X, t, nearest=None):
    r"""The sparse local-scaling kernel matrix of the instances.

    Equation :eq:`eq-smic-kernel` between instances one of which is among the t nearest of the other, 0 between others;
    the scale of an instance is its distance to the t-th nearest other.

    Parameters
    ----------
    X : ndarray, shape (n_instances, n_features)
    t : int
        Below n_instances.
    nearest : (ndarray, ndarray), optional
        Distances and indices of at least t nearest neighbors of each instance, where they are known.

    Returns
    -------
    kernel : sparse array, shape (n_instances, n_instances)
        Symmetric, with 1 on the diagonal: that an instance is a neighbor of itself is our choice, and does not matter,
        since the identity shifts eigenvalues and keeps eigenvectors.
    scales : ndarray, shape (n_instances,)
    """
    distances, indices = nearest or nearest_neighbors(X, t)
    n = len(distances)
    scales = distances[:, t - 1]
    rows, columns = np.repeat(np.arange(n), t), indices[:, :t].ravel()
    values = affinity(distances[:, :t].ravel(), scales[rows] * scales[columns])
    directed = sp.csr_array((values, (rows, columns)), shape=(n, n))
    either = directed.maximum(directed.T)  # in one direction or the other
    return (either + sp.eye_array(n)).tocsr(), scales


def smi_approximation(kernel, alpha):
    r"""SMI of the kernel model, on the sample, for clusters of equal probability.

    :math:`\frac{m}{2N} \sum_k \alpha_k^\top K^2 \alpha_k - \frac12`, equation :eq:`eq-smic-objective`.

    Parameters
    ----------
    kernel : ndarray or sparse array, shape (n_instances, n_instances)
        Symmetric.
    alpha : ndarray, shape (n_instances, n_clusters)

    Returns
    -------
    float
    """
    n, m = alpha.shape
    # eq: eq-smic-objective
    value = m / (2 * n) * np.sum((kernel @ alpha) ** 2) - 0.5
    return float(value)


def leading_eigenvectors(kernel, n_clusters):
    r"""Eigenvectors of the largest eigenvalues, with a non-negative sum each.

    Equation :eq:`eq-smic-eigenvectors`. A sum of 0 leaves the sign open; then the largest entry is made positive. The
    eigenvalues are largest in value, not in magnitude: the two differ only if a negative one is among the largest in
    magnitude, and its eigenvector changes sign between neighbors, which no cluster does.

    Parameters
    ----------
    kernel : sparse array, shape (n_instances, n_instances)
        Symmetric.
    n_clusters : int

    Returns
    -------
    values : ndarray, shape (n_clusters,)
        Descending.
    vectors : ndarray, shape (n_instances, n_clusters)
        Orthonormal columns.

    Notes
    -----
    Dense, :math:`O(n^3)`, up to 500 instances; else Lanczos from a fixed start.
    """
    n = kernel.shape[0]
    if n <= DENSE:
        subset = (n - n_clusters, n - 1)
        values, vectors = eigh(kernel.toarray(), subset_by_index=subset)
    else:
        start = np.linspace(1, 2, n)
        values, vectors = eigsh(kernel, n_clusters, which="LA", v0=start)
    order = np.argsort(-values, kind="stable")
    values, vectors = values[order], vectors[:, order]
    total = vectors.sum(axis=0)
    largest = vectors[np.abs(vectors).argmax(axis=0), np.arange(n_clusters)]
    sign = np.where(np.abs(total) > 1e-8, total, largest)
    # eq: eq-smic-eigenvectors
    return values, np.where(sign < 0, -vectors, vectors)


def cluster_scores(outputs, vectors):
    r"""Cluster posteriors up to one factor per instance: negative outputs are set to 0.

    :math:`\max(0, u_{k,i}) / \sum_j \max(0, u_{k,j})`, equation :eq:`eq-smic-assign`; the sum stands for the
    equal probabilities of the clusters.

    Parameters
    ----------
    outputs : ndarray, shape (m, n_clusters)
        Rows of the eigenvectors, or of their extension to other instances.
    vectors : ndarray, shape (n_instances, n_clusters)
        The eigenvectors. Entries below 1e-10 of the largest count as 0.

    Returns
    -------
    ndarray, shape (m, n_clusters)
        A row of zeros for an instance that no cluster claims.
    """
    positive = np.where(outputs > ZERO * np.abs(vectors).max(axis=0), outputs, 0.0)
    # eq: eq-smic-assign
    return positive / np.maximum(vectors, 0).sum(axis=0)


def assign_clusters(scores, X):
    """Cluster of each instance; an unclaimed one joins the nearest claimed one.

    Our choice for instances whose entry is positive in no eigenvector: those outside the connected parts of the graph
    on which the eigenvectors live, common where t is 1 or 2.

    Parameters
    ----------
    scores : ndarray, shape (n_instances, n_clusters)
        From `cluster_scores`.
    X : ndarray, shape (n_instances, n_features)

    Returns
    -------
    labels : ndarray of int, shape (n_instances,)
    scores : ndarray, shape (n_instances, n_clusters)
        As given, with the row of the nearest claimed instance in place of a row of zeros.
    """
    claimed, scores = scores.max(axis=1) > 0, scores.copy()
    if not claimed.all():
        nearest = pairwise_distances_argmin(X[~claimed], X[claimed])
        scores[~claimed] = scores[claimed][nearest]
    return scores.argmax(axis=1), scores


def smic_clusters(X, t, nearest=None):
    """Cluster the instances in two for one number of neighbors.

    Parameters
    ----------
    X : ndarray, shape (n_instances, n_features)
    t : int
        Below n_instances.
    nearest : (ndarray, ndarray), optional
        As in `local_scaling_kernel`.

    Returns
    -------
    dict
        ``labels``, ``scores`` of `assign_clusters`; ``values``, ``vectors`` of `leading_eigenvectors`; ``scales`` of
        `local_scaling_kernel`.
    """
    kernel, scales = local_scaling_kernel(X, t, nearest)
    values, vectors = leading_eigenvectors(kernel, 2)
    labels, scores = assign_clusters(cluster_scores(vectors, vectors), X)
    return dict(
        labels=labels, scores=scores, values=values, vectors=vectors, scales=scales
    )


def extend(X_new, X, t, scales, values, vectors):
    r"""Extend the eigenvectors to new instances.

    :math:`u_k(x) = \frac{1}{\nu_k} \sum_i K(x, x_i)\, u_{k,i}`, with
    :math:`\nu_k` the eigenvalue and the training instances as the neighbors of a new one.

    Parameters
    ----------
    X_new : ndarray, shape (n_new, n_features)
    X : ndarray, shape (n_instances, n_features)
    t : int
    scales, values, vectors : ndarray
        From `smic_clusters`.

    Returns
    -------
    outputs : ndarray, shape (n_new, n_clusters)
    nearest : ndarray of int, shape (n_new,)
        The nearest training instance.
    equal : ndarray of bool, shape (n_new,)
        True where it is equal to the new one.
    """

    def extended(part):
        D = cdist(part, X)
        scale = np.partition(D, t - 1, axis=1)[:, t - 1 : t]
        near = np.maximum(scale, scales) >= D
        K = np.where(near, affinity(D, scale * scales), 0.0)
        return np.column_stack([K @ vectors / values, D.argmin(axis=1)])

    columns = in_blocks(X_new, len(X), extended)
    outputs, nearest = columns[:, :-1], columns[:, -1].astype(int)
    return outputs, nearest, (X_new == X[nearest]).all(axis=1)


def lsmi_sums(basis, member):
    """Sums in the moments of LSMI for one cluster, from which the sums of a fold can be subtracted.

    Parameters
    ----------
    basis : ndarray, shape (n_instances, n_basis)
        Basis functions of the cluster at all instances.
    member : ndarray of bool, shape (n_instances,)

    Returns
    -------
    gram : ndarray, shape (n_basis, n_basis)
    total : ndarray, shape (n_basis,)
        Sums over the members.
    n_members, n : int
    """
    return basis.T @ basis, member @ basis, member.sum(), len(member)


def lsmi_moments(gram, total, n_members, n):
    r"""Quadratic and linear term of LSMI for one cluster.

    :math:`H_k = \frac{N_k}{N^2} \sum_i \varphi(x_i) \varphi(x_i)^\top`,
    :math:`h_k = \frac1N \sum_{i: k_i = k} \varphi(x_i)`.

    Parameters
    ----------
    gram : ndarray, shape (..., n_basis, n_basis)
        Sum of the outer products over all instances.
    total : ndarray, shape (..., n_basis)
        Sum of the basis functions over the members of the cluster.
    n_members, n : ndarray or float, shape (...)
        Numbers of members and of instances.

    Returns
    -------
    H : ndarray, shape (..., n_basis, n_basis)
    h : ndarray, shape (..., n_basis)
    """
    n = np.asarray(n, dtype=float)
    H = (n_members / n**2)[..., None, None] * gram
    return H, total / n[..., None]


def lsmi_weights(H, h, lam):
    r"""Weights of the density ratio.

    :math:`(H + \lambda I)^{-1} h`.

    Parameters
    ----------
    H : ndarray, shape (..., n_basis, n_basis)
    h : ndarray, shape (..., n_basis)
    lam : ndarray or float, shape (...)

    Returns
    -------
    ndarray, shape (..., n_basis)
    """
    ridge = H + np.asarray(lam)[..., None, None] * np.eye(H.shape[-1])
    h = np.broadcast_to(h, ridge.shape[:-1])
    return np.linalg.solve(ridge, h[..., None])[..., 0]


def lsmi_loss(beta, H, h):
    r"""Squared error of a density ratio up to a constant, for one cluster.

    :math:`J = \frac12 \beta^\top H \beta - h^\top \beta`. Summed over the clusters, its negative less 1/2 is the
    estimate of SMI, equation :eq:`eq-smic-lsmi`.

    Parameters
    ----------
    beta, h : ndarray, shape (..., n_basis)
        The weights of `lsmi_weights`, or any others.
    H : ndarray, shape (..., n_basis, n_basis)

    Returns
    -------
    ndarray, shape (...)
    """
    quadratic = np.einsum("...i,...ij,...j->...", beta, H, beta)
    return quadratic / 2 - np.sum(h * beta, axis=-1)


def lsmi_cv(basis, member, folds, lams):
    """Held-out loss of one cluster for each penalty.

    Parameters
    ----------
    basis, member
        As in `lsmi_sums`.
    folds : ndarray of int, shape (n_instances,)
    lams : ndarray, shape (n_lams,)

    Returns
    -------
    ndarray, shape (n_lams,)
        Mean over the folds.
    """
    parts = [folds == fold for fold in np.unique(folds)]
    sums = [lsmi_sums(basis[part], member[part]) for part in parts]
    gram, total, n_members, n = map(np.array, zip(*sums, strict=True))
    H, h = lsmi_moments(
        gram.sum(axis=0) - gram,
        total.sum(axis=0) - total,
        n_members.sum() - n_members,
        n.sum() - n,
    )
    beta = lsmi_weights(H[:, None], h[:, None], lams[None, :])
    H, h = lsmi_moments(gram, total, n_members, n)
    return lsmi_loss(beta, H[:, None], h[:, None]).mean(axis=0)


def lsmi(
    X, labels, sigmas=None, lams=LAMS, n_centers=200, n_folds=5, random_state=None
):
    r"""Least-squares estimate of the SMI between instances and their cluster.

    The density ratio :math:`r(x, k) / (r(x) r(k))` is fitted by Gaussians at the centers of cluster :math:`k`, its
    width and penalty chosen by cross-validation; the estimate is the bound
    :math:`\sum_k (h_k^\top \beta_k - \frac12 \beta_k^\top H_k \beta_k) - \frac12`, equation :eq:`eq-smic-lsmi`.

    Parameters
    ----------
    X : ndarray, shape (n_instances, n_features)
    labels : ndarray of int, shape (n_instances,)
    sigmas : sequence of float, optional
        Widths to choose from; ``SIGMAS`` times the median distance if not given.
    lams : sequence of float, default ``LAMS``
    n_centers : int, default 200
        Random centers over all clusters; all instances where there are fewer. A cluster without one adds nothing.
    n_folds : int, default 5
    random_state : int, RandomState or None
        Centers and folds, drawn on canonically ordered instances.

    Returns
    -------
    value : float
    sigma, lam : float
        As chosen.

    Notes
    -----
    With b centers, :math:`O(n b^2)` for each width, and :math:`O(b^3)` for each width, penalty and fold. The other
    estimate in use, :math:`\frac12 \sum_k h_k^\top \beta_k - \frac12`, is the same without penalty; which one the
    authors of SMIC maximize, and on what grids, we could not establish.
    """
    order, rng = canonical_order(X), check_random_state(random_state)
    X, labels, n, lams = X[order], labels[order], len(X), np.asarray(lams, dtype=float)
    b, parts = min(n_centers, n), min(n_folds, n) * len(lams)
    require_memory(
        f"LSMI with {b} centers, {parts} folds and penalties, on {n} instances",
        8.0 * LSMI_COPIES * b * (n + b * parts),
        "take smaller n_centers or n_folds, or fewer instances",
    )
    centers = np.sort(rng.permutation(n)[:n_centers])
    folds = rng.permutation(n) % n_folds
    sigmas = np.multiply(SIGMAS, median_distance(X)) if sigmas is None else sigmas
    best = np.inf
    for sigma in sigmas:
        basis = gaussian_basis(X, X[centers], sigma)
        own = [(basis[:, labels[centers] == y], labels == y) for y in np.unique(labels)]
        losses = sum(lsmi_cv(phi, member, folds, lams) for phi, member in own)
        if losses.min() < best:
            best, lam, kept = losses.min(), lams[losses.argmin()], (sigma, own)
    loss = 0.0
    for phi, member in kept[1]:
        gram, total, n_members, _ = lsmi_sums(phi, member)
        H, h = lsmi_moments(gram, total, n_members, n)
        loss += lsmi_loss(lsmi_weights(H, h, lam), H, h)
    # eq: eq-smic-lsmi
    return float(-loss - 0.5), float(kept[0]), float(lam)


def select_neighbors(X, neighbors=NEIGHBORS, random_state=None, step=lambda: None):
    r"""Cluster for each number of neighbors, and keep the clusters with the largest LSMI.

    Ties go to the first.

    Parameters
    ----------
    X : ndarray, shape (n_instances, n_features)
    neighbors : sequence of int, default 1, …, 10
        Below n_instances.
    random_state : int, RandomState or None
        Of LSMI: one seed, so the same centers and folds, for all numbers of neighbors.
    step : callable, optional
        Called after each number of neighbors.

    Returns
    -------
    t : int
    clusters : dict
        From `smic_clusters`.
    cv_results : DataFrame
        Columns ``n_neighbors`` and ``score``, the LSMI; NaN where there is nothing to choose.
    """
    neighbors, seed = list(dict.fromkeys(neighbors)), random_state
    if not isinstance(seed, Integral):
        seed = check_random_state(seed).randint(2**31 - 1)
    n, t = len(X), max(neighbors)
    require_memory(
        f"A graph of {t} neighbors for each of {n} instances",
        8.0 * GRAPH_COPIES * n * t,
        "take smaller n_neighbors, or fewer instances",
    )
    nearest = nearest_neighbors(X, t)
    clusters, values, rows = {}, {}, []
    for t in neighbors:
        clusters[t] = smic_clusters(X, t, nearest)
        labels, value = clusters[t]["labels"], np.nan
        if len(neighbors) > 1:
            # Equal clusters, whatever their numbers, are judged once.
            key = pd.factorize(labels)[0].tobytes()
            if key not in values:
                values[key] = lsmi(X, labels, random_state=seed)[0]
            value = values[key]
        rows.append((t, value))
        step()
    best, table = tune(rows, n_neighbors=int)
    return best["n_neighbors"], clusters[best["n_neighbors"]], table


def name_clusters(in_second, in_p, targets, weights):
    r"""Choose the positive one of two clusters by the proportions.

    The naming with the smaller proportion error :math:`n \lvert a - \theta \rvert + n' \lvert a' - \theta' \rvert`,
    :math:`a` and :math:`a'` the shares of the cluster in the two samples.

    Parameters
    ----------
    in_second, in_p : ndarray of bool, shape (n_instances,)
        The instances of the second cluster, and of the first sample.
    targets : (float, float)
        Share of the positive class in the first and in the second sample.
    weights : (float, float)

    Returns
    -------
    int
        0 or 1; 1 for a tie, up to the rounding of proportions.
    """
    share = np.array([in_second[in_p].mean(), in_second[~in_p].mean()])
    errors = [np.abs(a - np.array(targets)) @ weights for a in (1 - share, share)]
    return int(errors[1] <= errors[0] + 1e-5 * np.sum(weights))


class SMIC(TwoBagClassifier):
    r"""Two clusters by squared-loss mutual information, named by the bags.

    SMIC (Sugiyama et al. 2011). The clusters are those of all instances together, whatever their bags: a baseline that
    shows what the bags are worth. With proportions the positive class is the cluster that fits them better, the bags
    pooled into those above and below the class prior (see `TwoBagClassifier`); without, the one with the larger share
    in the first of two bags.

    Parameters
    ----------
    n_neighbors : int, "cv" or array-like of int, default "cv"
        Neighbors in the kernel; "cv" takes the best of 1, …, 10 by `lsmi`; or give your own to choose from.
    random_state : int, RandomState or None, default None
        Of the folds and centers of LSMI.
    verbose : int, default 0
        1 prints the progress of the choice of ``n_neighbors``, at most a line a second.

    Attributes
    ----------
    classes_ : ndarray, shape (2,)
    pooled_proportions_ : (float, float) or None
    n_neighbors_ : int
    cv_results_ : DataFrame
        Columns ``n_neighbors`` and ``score``, the LSMI; NaN where there was nothing to choose.
    X_fit_, scales_, eigenvalues_, eigenvectors_ : ndarray
        What a prediction needs, instances in canonical order.
    cluster_scores_ : ndarray, shape (n_instances, 2)
        Posteriors of the two clusters, up to one factor per instance.
    positive_ : int
        The cluster that is class 1.

    Raises
    ------
    NotIdentifiableError
        If all proportions are equal.
    ValueError
        For malformed input, or as many neighbors as instances; see `llpbook.base`.

    Notes
    -----
    A training instance gets the cluster of the fit; any other one the sign of the extended eigenvectors (`extend`),
    or, where both are 0 or less, the score of the nearest training instance. Fit: eigenvectors in :math:`O(n^3)` up to
    500 instances, Lanczos above, for each of ten numbers of neighbors, and `lsmi`. Prediction: :math:`O(n d)` each.

    Repeating every instance changes the clusters: the nearest neighbor of an instance is then its copy, at distance 0.
    Swapping the classes: see `TwoBagClassifier`.

    Examples
    --------
    >>> from llpbook.density_difference import toy_problem
    >>> X, y, bags = toy_problem(1, n=50, priors=(0.2, 0.8), random_state=0)
    >>> SMIC(random_state=0).fit(X, bags).predict(X).shape
    (100,)
    """

    # The base class reads this; clusters have no prior to correct for.
    class_prior = "balanced"
    assumes = (None, "the classes are clusters of X, which the bags only name")
    cost = "a quarter of a second for 80 instances, a second for 1,000"

    _parameter_constraints = {
        "n_neighbors": [StrOptions({"cv"}), Integral, "array-like"],
    }

    def __init__(
        self, n_neighbors: str | ArrayLike = "cv", *,
        random_state: RandomState = None, verbose: int = 0,
    ):  # fmt: skip
        self.n_neighbors, self.random_state = n_neighbors, random_state
        self.verbose = verbose

    def _fit_two(self, samples, weights):
        X = np.vstack(samples)
        order = canonical_order(X)
        X, in_p = X[order], order < len(samples[0])
        neighbors = self._neighbors(len(X))
        progress = self._progress(len(neighbors), "candidate")
        t, clusters, self.cv_results_ = select_neighbors(
            X, neighbors, random_state=self.random_state, step=progress.step
        )
        targets, weights = (1.0, 0.0), (1.0, 1.0)
        if self.pooled_proportions_ is not None:
            targets, weights = self.pooled_proportions_, (in_p.sum(), (~in_p).sum())
        self.positive_ = name_clusters(clusters["labels"] == 1, in_p, targets, weights)
        self.X_fit_, self.n_neighbors_, self.scales_ = X, t, clusters["scales"]
        self.eigenvalues_, self.eigenvectors_ = clusters["values"], clusters["vectors"]
        self.cluster_scores_ = clusters["scores"]

    def _neighbors(self, n):
        """The numbers of neighbors to choose from, those of the default grid below n."""
        own = candidates("n_neighbors", self.n_neighbors, NEIGHBORS)
        if isinstance(self.n_neighbors, str):
            own = own[own < n]
        if (own % 1).any() or own.max() >= n:
            raise ValueError(
                "n_neighbors must be whole numbers below the number of instances, "
                f"{n}, got {self.n_neighbors!r}"
            )
        return own.astype(int).tolist()

    def _scores(self, X):
        """Score of the positive cluster minus the score of the other."""
        vectors = self.eigenvectors_
        outputs, nearest, equal = extend(
            X, self.X_fit_, self.n_neighbors_, self.scales_, self.eigenvalues_, vectors
        )
        scores = cluster_scores(outputs, vectors)
        settled = equal | (scores.max(axis=1) == 0)
        scores[settled] = self.cluster_scores_[nearest[settled]]
        return scores[:, self.positive_] - scores[:, 1 - self.positive_]
