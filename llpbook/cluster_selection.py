r"""Cluster model selection (LLP): weigh the features so that labeled clusters explain the proportions.

Cluster the instances with weights :math:`w` of the features, give each cluster the label that fits the proportions
best, and search for the weights with the best fit:

.. math:: \min_{w} \operatorname{Err}_\Pi \bigl( \Gamma_{\lambda^*, \mathcal{C}^*} \bigr), \quad
          \lambda^* = \operatorname*{arg\,min}_\lambda \operatorname{Err}_\Pi ( \Gamma_{\lambda, \mathcal{C}^*} ), \quad
          \mathcal{C}^* = \operatorname*{arg\,max}_{\mathcal{C}} q_w(\mathcal{C}) .

The error of a labeling depends only on the table of how many instances of each bag lie in each cluster, so its cost
does not grow with the number of instances.

Chapter: ``book/cluster_selection``. Source: stolpe2011 (section 3), whose equation numbers are given below.
"""

from numbers import Integral, Real
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.metrics import pairwise_distances
from sklearn.utils import check_random_state

from ._counts import crosstab
from ._input import RandomState
from .base import (
    Interval,
    LLPClassifier,
    StrOptions,
    canonical_order,
    require_memory,
    row_keys,
)

__all__ = ["ClusterModelSelection"]

#: Most labelings that the exhaustive labeler tries.
MOST_LABELINGS = 2_000_000
#: Labelings whose errors are computed at once; errors closer than a tie are equal.
BLOCK, TIE = 65_536, 1e-12
#: Rounds of k-means: the paper's bound on time asks for a limit.
KMEANS_ROUNDS = 20
#: Stands for the distance to a class that no cluster has.
FAR = 1e12
#: Results in memory at once, as a multiple of the population.
KEPT = 4


class ErrorForms(NamedTuple):
    """Moments that determine the error of any labeling of given clusters.

    Attributes
    ----------
    A : ndarray, shape (k, k)
        Second moments of the shares of the clusters in the bags, weighted by size.
    B : ndarray, shape (k, n_classes)
        Their moments with the proportions.
    c : ndarray, shape (n_classes,)
        Second moments of the proportions.
    shares : ndarray, shape (k,)
        Of the clusters, over all instances.
    prior : ndarray, shape (n_classes,)
    n_bags : int
    hits : ndarray, shape (k, n_classes), or None
        Share of all instances with a known label that lie in the cluster and have the class.
    """

    A: np.ndarray
    B: np.ndarray
    c: np.ndarray
    shares: np.ndarray
    prior: np.ndarray
    n_bags: int
    hits: np.ndarray | None


def error_forms(table, proportions, *, hits=None):
    """Compute the moments that `labeling_errors` needs.

    Parameters
    ----------
    table : ndarray, shape (n_bags, k)
    proportions : ndarray, shape (n_bags, n_classes)
        Rows of bags without instances are ignored.
    hits : ndarray, shape (k, n_classes), optional

    Returns
    -------
    ErrorForms
    """
    sizes = table.sum(axis=1)
    table, P, sizes = table[sizes > 0], proportions[sizes > 0], sizes[sizes > 0]
    G, weights = table / sizes[:, None], sizes / sizes.sum()
    weighted = weights[:, None] * G
    return ErrorForms(
        G.T @ weighted, weighted.T @ P, weights @ P**2,
        weights @ G, weights @ P, len(P), hits,
    )  # fmt: skip


def labeling_errors(labelings, forms, *, combine="weighted"):
    r"""Errors of labelings of the clusters.

    Equations :eq:`eq-clusters-weight` (the paper's 6), :eq:`eq-clusters-prior` (7) and :eq:`eq-clusters-combined`: the
    first alone, the sum of both, or the root of their product (5). Known labels add their share of wrong ones (8).

    Parameters
    ----------
    labelings : ndarray of int, shape (m, k)
        A class for each cluster.
    forms : ErrorForms
    combine : {"weighted", "sum", "product"}

    Returns
    -------
    ndarray, shape (m,)
        :math:`O(k^2)` each.
    """
    K = len(forms.prior)
    Z = np.eye(K)[labelings]  # shape (m, k, K)
    square = np.einsum("mkj,mkj->mj", Z, np.einsum("kq,mqj->mkj", forms.A, Z))
    misfit = forms.c - 2 * np.einsum("mkj,kj->mj", Z, forms.B) + square
    # eq: eq-clusters-weight
    weight = np.maximum(misfit, 0) @ forms.prior / (forms.n_bags * K)
    predicted = np.einsum("mkj,k->mj", Z, forms.shares)
    # eq: eq-clusters-prior
    prior = np.mean((forms.prior - predicted) ** 2, axis=1)
    factors = [weight] if combine == "weighted" else [weight, prior]
    if forms.hits is not None:
        factors.append(1 - np.einsum("mkj,kj->m", Z, forms.hits))
    if combine == "product":
        return np.sqrt(np.prod(np.maximum(factors, 0), axis=0))
    # eq: eq-clusters-combined
    return np.sum(factors, axis=0)


def label_exhaustively(forms, *, combine="weighted"):
    """Find the best of all labelings.

    Parameters
    ----------
    forms : ErrorForms
    combine : {"weighted", "sum", "product"}

    Returns
    -------
    labeling : ndarray of int, shape (k,)
        The first of equally good ones.
    error : float

    Raises
    ------
    ValueError
        If there are more than two million labelings.
    """
    k, K = forms.B.shape
    if K**k > MOST_LABELINGS:
        raise ValueError(
            f"labeler='exhaustive' would try {K}**{k} labelings; take labeler='greedy', or fewer clusters"
        )
    best, lowest = None, np.inf
    for start in range(0, K**k, BLOCK):
        numbers = np.arange(start, min(start + BLOCK, K**k))
        block = np.column_stack(np.unravel_index(numbers, k * (K,)))
        errors = labeling_errors(block, forms, combine=combine)
        if errors.min() < lowest - TIE:
            first = np.argmax(errors <= errors.min() + TIE)
            best, lowest = block[first], float(errors[first])
    return best, lowest


def label_greedily(forms, *, combine="weighted"):
    """Algorithm 2: give all clusters the first class, then each in turn the class that is best given the others.

    Parameters
    ----------
    forms : ErrorForms
    combine : {"weighted", "sum", "product"}

    Returns
    -------
    labeling : ndarray of int, shape (k,)
    error : float
    """
    k, K = forms.B.shape
    labeling = np.zeros(k, dtype=int)
    for i in range(k):
        tries = np.tile(labeling, (K, 1))
        tries[:, i] = np.arange(K)
        errors = labeling_errors(tries, forms, combine=combine)
        # eq: eq-clusters-greedy
        labeling[i] = np.argmax(errors <= errors.min() + TIE)
    return labeling, float(errors[labeling[i]])


def normalize(weights):
    """Clip weights to [0, 1] and scale the largest of each row to 1; a row without a weight above 0 becomes 1."""
    weights = np.clip(weights, 0, 1)
    top = weights.max(axis=1, keepdims=True)
    return np.divide(weights, top, out=np.ones_like(weights), where=top > 0)


def evolve(
    evaluate, d, rng, *, max_iter, population_size, mutation_variance,
    crossover_probability, tournament_size,
):  # fmt: skip
    """Algorithm 1: the evolution strategy over weights of features.

    Parameters
    ----------
    evaluate : callable
        From weights, shape (m, d), to a list of m results, whose first entries are errors.
    d : int
    rng : RandomState
    max_iter, population_size, mutation_variance, crossover_probability, tournament_size
        See `ClusterModelSelection`.

    Returns
    -------
    best : tuple
        The result with the lowest error, the first of equal ones, and its weights at the end.
    history : ndarray, shape (max_iter,)
        The lowest error up to each generation.
    """

    def scored(W):
        return [(*result, w) for result, w in zip(evaluate(W), W, strict=True)]

    population = scored(normalize(rng.uniform(size=(population_size, d))))
    best = min(population, key=lambda r: r[0])
    history = [best[0]]
    for _ in range(max_iter - 1):
        W = np.array([r[-1] for r in population])
        mutants = normalize(W + np.sqrt(mutation_variance) * rng.normal(size=W.shape))
        children = cross(np.vstack([W, mutants]), crossover_probability, rng)
        population += scored(np.vstack([mutants, children]))
        best = min([best, *population], key=lambda r: r[0])
        history.append(best[0])
        errors = np.array([r[0] for r in population])
        kept = tournament(errors, population_size, tournament_size, rng)
        population = [population[i] for i in kept]
    return best, np.array(history)


def cross(W, probability, rng):
    """Uniform crossover: individuals drawn with this probability have a child, which mixes two individuals' weights."""
    parents = np.flatnonzero(rng.uniform(size=len(W)) < probability)
    others = W[rng.randint(len(W), size=len(parents))]
    coin = rng.uniform(size=others.shape) < 0.5
    return normalize(np.where(coin, W[parents], others))


def tournament(errors, n_survivors, share, rng):
    """Indices of the survivors, each the best of a random part, a ``share`` of the population."""
    size = max(1, round(share * len(errors)))
    drawn = rng.randint(len(errors), size=(n_survivors, size))
    return drawn[np.arange(n_survivors), errors[drawn].argmin(axis=1)]


def cluster(clusterer, X, weights):
    """Cluster the weighted instances; clusters are numbered from 0, and may be fewer than asked for."""
    Z = X * np.sqrt(weights)
    different = len(np.unique(row_keys(Z)))  # scikit-learn warns where these are fewer
    n_clusters = min(clusterer.n_clusters, different)
    clusters = clone(clusterer).set_params(n_clusters=n_clusters).fit_predict(Z)
    return np.unique(clusters, return_inverse=True)[1].astype(np.int32)


def cluster_means(X, clusters):
    """The mean of each cluster, shape (k, n_features)."""
    sums = np.column_stack([np.bincount(clusters, column) for column in X.T])
    return sums / np.bincount(clusters)[:, None]


class ClusterModelSelection(LLPClassifier):
    """Learning from label proportions by clustering (LLP; Stolpe and Morik 2011).

    Parameters
    ----------
    n_clusters : int, default 6
        Of k-means with one start and 20 rounds.
    labeler : {"exhaustive", "greedy"}, default "exhaustive"
    combine : {"weighted", "sum", "product"}, default "weighted"
        The error: that of the bags alone, or combined with that of the class prior. The paper takes the product, which
        is 0 as soon as one of the two is. In the sum the prior outweighs the bags. On the data sets of the chapter the
        sum and the product are about ten points less accurate than the weighted error.
    max_iter : int, default 10
        Generations; 1 is a random search.
    population_size : int, default 25
        Individuals in a generation.
    mutation_variance : float, default 1.0
        Variance of a mutation.
    crossover_probability : float, default 0.3
    tournament_size : float, default 0.25
        Share of the population in a tournament.
    n_jobs : int or None, default None
        Processes that evaluate individuals.
    verbose : int, default 0
        1 prints the progress of the search, at most a line a second; 2 a line for each generation.
    random_state : int, RandomState or None, default None

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
    feature_weights_ : ndarray, shape (n_features,)
    cluster_means_ : ndarray, shape (k, n_features)
    cluster_labels_ : ndarray, shape (k,)
        Of ``classes_``.
    labeling_ : ndarray of int, shape (k,)
        The labels of the clusters as columns of ``classes_``.
    objective_ : float
        The error of the best weighting.
    n_iter_ : int
        Generations.
    history_ : ndarray, shape (max_iter,)
        The lowest error up to each generation.

    Raises
    ------
    ValueError
        For malformed input; see `llpbook.base`.
    NotIdentifiableError
        If two classes have equal shares in every bag and no label is known.

    Notes
    -----
    An instance gets the label of the nearest cluster mean, in weighted features. About 40 clusterings per generation.
    One count of the instances per clustering is all that labelings add to the cost that grows with n. Known labels
    enter the error (equation 8 of the paper).

    If the two classes are swapped, the exhaustive labeler swaps the predictions, unless two labelings fit equally well:
    then it takes the first. With the greedy labeler the predictions can change much, because all clusters begin in the
    first class. Repeating each instance changes no error of a labeling, only the random start of k-means.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 200)
    >>> X = rng.normal(size=(200, 2)) + 5.0 * y[:, None]
    >>> bags = np.repeat(np.arange(40), 5)
    >>> p = np.bincount(bags, y) / 5
    >>> model = ClusterModelSelection(n_clusters=2, max_iter=1, random_state=0)
    >>> float(model.fit(X, bags, p).score(X, y)) > 0.9
    True
    """

    assumes = (None, "the classes are unions of clusters of X")
    cost = "hundreds of runs of k-means; minutes for a million"
    _equal_shares, _names_classes_by_shares, _scale = "warned", True, "distances"
    _parameter_constraints = {
        "n_clusters": [Interval(Integral, 2, None, closed="left")],
        "labeler": [StrOptions({"exhaustive", "greedy"})],
        "combine": [StrOptions({"weighted", "sum", "product"})],
        "population_size": [Interval(Integral, 1, None, closed="left")],
        "mutation_variance": [Interval(Real, 0, None, closed="left")],
        "crossover_probability": [Interval(Real, 0, 1, closed="both")],
        "tournament_size": [Interval(Real, 0, 1, closed="right")],
    }

    def __init__(
        self, n_clusters: int = 6, *,
        labeler: str = "exhaustive", combine: str = "weighted",
        max_iter: int = 10, population_size: int = 25,
        mutation_variance: float = 1.0, crossover_probability: float = 0.3,
        tournament_size: float = 0.25, n_jobs: int | None = None, verbose: int = 0,
        random_state: RandomState = None,
    ):  # fmt: skip
        self.n_clusters, self.labeler = n_clusters, labeler
        self.combine, self.max_iter = combine, max_iter
        self.population_size, self.tournament_size = population_size, tournament_size
        self.mutation_variance = mutation_variance
        self.crossover_probability = crossover_probability
        self.n_jobs, self.verbose, self.random_state = n_jobs, verbose, random_state

    def _fit(self, data):
        data = data.before or data  # known labels enter the error
        check_search(self, data)
        order = canonical_order(data.X)
        X, rng = data.X[order], check_random_state(self.random_state)
        labels = None if data.labels is None else data.labels[order]
        bags, clusterer = data.bags[order], self._kmeans(len(X), rng)
        progress = self._progress(self.max_iter, "generation")

        def evaluate(W):
            tasks = (
                delayed(label_clusters)(
                    weights, X, bags, data.proportions, labels,
                    clusterer=clusterer, labeler=self.labeler, combine=self.combine,
                ) for weights in W
            )  # fmt: skip
            results = Parallel(n_jobs=self.n_jobs)(tasks)
            progress.step(f"error {min(result[0] for result in results):.3g}")
            return results

        best, self.history_ = evolve(
            evaluate, X.shape[1], rng, max_iter=self.max_iter,
            population_size=self.population_size,
            mutation_variance=self.mutation_variance,
            crossover_probability=self.crossover_probability,
            tournament_size=self.tournament_size,
        )  # fmt: skip
        self.objective_, clusters, labeling, w = best
        self.n_iter_ = self.max_iter
        self.feature_weights_, self.labeling_ = w, labeling
        self.cluster_means_ = cluster_means(X, clusters)
        self.cluster_labels_ = data.classes[labeling]

    def _kmeans(self, n, rng):
        seed, k = rng.randint(2**31 - 1), min(self.n_clusters, n)
        return KMeans(k, n_init=1, max_iter=KMEANS_ROUNDS, random_state=seed)

    def _scores(self, X):
        root, K = np.sqrt(self.feature_weights_), len(self.classes_)
        distances = pairwise_distances(X * root, self.cluster_means_ * root)
        scores = np.full((len(X), K), -FAR)
        for j in np.unique(self.labeling_):
            scores[:, j] = -distances[:, self.labeling_ == j].min(axis=1)
        return scores[:, 1] - scores[:, 0] if K == 2 else scores


def label_clusters(weights, X, bags, proportions, labels, clusterer, labeler, combine):
    """Cluster with given weights of the features, and label the clusters; return the error, clusters and labeling."""
    clusters = cluster(clusterer, X, weights)
    (L, K), k, hits = proportions.shape, clusters.max() + 1, None
    if labels is not None and (labels >= 0).any():
        rows = labels >= 0
        hits = crosstab(clusters[rows], labels[rows], (k, K)) / rows.sum()
    forms = error_forms(crosstab(bags, clusters, (L, k)), proportions, hits=hits)
    label = label_exhaustively if labeler == "exhaustive" else label_greedily
    labeling, error = label(forms, combine=combine)
    # Errors that differ by rounding are equal, whatever the order of the sums.
    return TIE * round(error / TIE), clusters, labeling


def check_search(estimator, data):
    """Refuse a search that takes more memory than there is."""
    n, n_bags = len(data.X), len(data.proportions)
    k, size = min(estimator.n_clusters, n), estimator.population_size
    each = 4.0 * n + 24.0 * data.X.shape[1] + 16.0 * estimator.tournament_size * size
    require_memory(
        f"{type(estimator).__name__} with {k} clusters and population_size={size}",
        8.0 * k * (2 * k + 3 * n_bags) + KEPT * size * each,
        "take smaller n_clusters, population_size or tournament_size",
    )
