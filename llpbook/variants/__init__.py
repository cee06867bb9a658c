r"""Bags of a wanted variant, made from instances with labels.

A variant says how bag B, features X and label Y depend on one another (`llpbook.taxonomy`). To make bags of one from
instances with labels, choose a table of counts, bag by cluster by class, with the structure of the variant and the
margins of the task,

.. math:: \sum_c t_{bcy} = n_b \pi_{by}, \qquad \sum_b t_{bcy} = n_{cy},

and deal the instances of each cluster and class to the bags accordingly. The table is scaled to the margins by
iterative proportional fitting,

.. math:: t \leftarrow t \cdot \frac{m_{\text{wanted}}}{m(t)} \quad \text{for each margin in turn,}

then rounded such that rows and columns keep their sums. To find the variant of given bags is the task of
`llpbook.diagnosis`.

Chapter: ``book/variants``. Sources: franco2023 (sections 4 and A.4, which leave the algorithms open); deming1940 for
the fitting; cox1987 for the rounding.
"""

from typing import NamedTuple

import numpy as np
from sklearn.cluster import KMeans
from sklearn.utils import check_random_state

from ..base import check_features, label_codes
from ..diagnosis import class_probabilities, crosstab, embed
from ._count_tables import (
    bag_counts,
    deal,
    fill_table,
    fit_margins,
    largest_remainder,
    round_table,
    tilt_sizes,
)
from ._generated_bags import (
    GeneratedBags,
    count_bags,
    describe,
    read_clusters,
    read_sizes,
    read_wanted,
    variant_name,
)

__all__ = [
    "GeneratedBags",
    "Task",
    "bag_counts",
    "cluster_to_bag",
    "collider_counts",
    "complete_targets",
    "cross_bag_counts",
    "cross_bag_table",
    "deal",
    "fill_table",
    "fit_margins",
    "hard_table",
    "intermediate_table",
    "kmeans_clusters",
    "label_collider_table",
    "largest_remainder",
    "make_bags",
    "project_rows",
    "read_task",
    "round_table",
    "score_strata",
    "simple_counts",
    "tilt_sizes",
    "variant_counts",
]


# --- one table a variant -------------------------------------------------------------------------------------


def simple_counts(codes, sizes, proportions):
    r"""Counts of bags that depend on the label alone.

    In shares, :math:`P(B = b \mid Y = y) = n_b \pi_{by} / \sum_j n_j \pi_{jy}`: :eq:`eq-var-simple`.

    Parameters
    ----------
    codes : ndarray of int, shape (n_instances,)
        Classes.
    sizes : ndarray of int, shape (n_bags,)
    proportions : ndarray, shape (n_bags, n_classes)

    Returns
    -------
    ndarray of int, shape (n_bags, n_classes)
    """
    # eq: eq-var-simple
    wanted = sizes[:, None] * proportions
    return bag_counts(wanted, sizes, np.bincount(codes))


def project_rows(matrix):
    r"""Each row to the nearest point of the probability simplex.

    :math:`\max(a - \theta, 0)` with the :math:`\theta` that makes it sum to 1: :eq:`eq-var-simplex`.

    Parameters
    ----------
    matrix : ndarray, shape (n_rows, n_columns)

    Returns
    -------
    ndarray, shape (n_rows, n_columns)
    """
    falling = -np.sort(-matrix, axis=1)
    excess = np.cumsum(falling, axis=1) - 1
    last = (falling * np.arange(1, matrix.shape[1] + 1) > excess).sum(axis=1) - 1
    theta = np.take_along_axis(excess, last[:, None], 1) / (last + 1)[:, None]
    # eq: eq-var-simplex
    return np.maximum(matrix - theta, 0)


def cluster_to_bag(cells, wanted, rng, tol=1e-7, max_iter=5000):
    r"""The share of each cluster that goes to each bag, whatever the label.

    :math:`\min_A \lVert N^\top A - T^\top \rVert_F^2` over matrices with rows on the simplex, :math:`N` the counts of
    the clusters by class, :math:`T` the wanted counts of the bags: :eq:`eq-var-least-squares`. Projected gradient with
    step :math:`1 / \lVert N \rVert_2^2` and momentum, from random rows: many :math:`A` fit as well, and equal rows
    would be random bags.

    Parameters
    ----------
    cells : ndarray, shape (n_clusters, n_classes)
    wanted : ndarray, shape (n_bags, n_classes)
    rng : RandomState
    tol : float, default 1e-7
        Largest change of an entry at which to stop; another reason to is that all counts are met to 0.01.
    max_iter : int, default 5000

    Returns
    -------
    ndarray, shape (n_clusters, n_bags)
    """
    A = before = rng.dirichlet(np.ones(len(wanted)), len(cells))
    step = 1 / np.linalg.norm(cells, 2) ** 2
    for i in range(max_iter):
        ahead = A + i / (i + 3) * (A - before)
        before, gap = A, cells.T @ ahead - wanted.T
        # eq: eq-var-least-squares
        A = project_rows(ahead - step * cells @ gap)
        if np.abs(A - before).max() < tol or np.abs(gap).max() < 0.01:
            break
    return A


def intermediate_table(cells, wanted, rng):
    r"""Bags that depend on the cluster alone.

    :math:`t_{bcy} = n_{cy} A_{cb}`, :eq:`eq-var-intermediate`.

    Parameters
    ----------
    cells : ndarray, shape (n_clusters, n_classes)
    wanted : ndarray, shape (n_bags, n_classes)
    rng : RandomState

    Returns
    -------
    ndarray, shape (n_bags, n_clusters, n_classes)
    """
    A = cluster_to_bag(cells, wanted, rng)
    # eq: eq-var-intermediate
    return A.T[:, :, None] * cells


def hard_table(cells, counts, rng):
    r"""Bags that depend on the cluster and on the label, with the margins wanted.

    `fit_margins` from :math:`n_{cy} e_{bcy}` with exponential draws :math:`e`, which is no product, to the counts of
    clusters by class and of bags by class: :eq:`eq-var-hard`.

    Parameters
    ----------
    cells : ndarray, shape (n_clusters, n_classes)
    counts : ndarray, shape (n_bags, n_classes)
    rng : RandomState

    Returns
    -------
    ndarray, shape (n_bags, n_clusters, n_classes)
    """
    start = cells * rng.exponential(size=(len(counts), *cells.shape))
    margins = [((1, 2), cells.astype(float)), ((0, 2), counts.astype(float))]
    # eq: eq-var-hard
    return fit_margins(start, margins)[0]


def label_collider_table(cells, counts):
    r"""Bags that depend on the label within a stratum, and not on the stratum.

    `fit_margins` from ones, with the margin of bags by stratum a product: :math:`\sum_y t_{bcy} = n_b n_c / n`,
    :eq:`eq-var-label-collider`.

    Parameters
    ----------
    cells : ndarray, shape (n_strata, n_classes)
    counts : ndarray, shape (n_bags, n_classes)

    Returns
    -------
    table : ndarray, shape (n_bags, n_strata, n_classes)
    gap : float
        Largest error of a margin, as a share of all instances: not small if the counts are out of reach.
    """
    product = np.outer(counts.sum(axis=1), cells.sum(axis=1)) / cells.sum()
    margins = [
        ((0, 1), product), ((0, 2), counts.astype(float)), ((1, 2), cells.astype(float)),
    ]  # fmt: skip
    start = np.ones((len(counts), *cells.shape))
    # eq: eq-var-label-collider
    return fit_margins(start, margins, 1e-7, 500)


def cross_bag_table(cells, sizes, proportions, max_iter=3000):
    r"""Bags within which the stratum tells nothing about the label.

    Stratum :math:`c` is spread over the bags by weights :math:`v_{cb}` such that
    :math:`n_{cy} = \sum_b v_{cb} \pi_{by}`; then :math:`t_{bcy} = n_{cy} v_{cb} \pi_{by} / \sum_j v_{cj} \pi_{jy}`. The
    weights are those of a mixture of known components, found by EM: :eq:`eq-var-cross-bag`.

    Parameters
    ----------
    cells : ndarray, shape (n_strata, n_classes)
    sizes : ndarray, shape (n_bags,)
        Where EM starts.
    proportions : ndarray, shape (n_bags, n_classes)
    max_iter : int, default 3000

    Returns
    -------
    table : ndarray, shape (n_bags, n_strata, n_classes)
    gap : ndarray, shape (n_strata,)
        Largest error of a class share in each stratum: not small if no mix of the bags has the shares of a stratum.
    """
    shares = cells / cells.sum(axis=1, keepdims=True)
    v = np.tile(sizes / sizes.sum(), (len(cells), 1))
    for _ in range(max_iter):
        mixed = np.maximum(v @ proportions, 1e-300)
        before, v = v, v * ((shares / mixed) @ proportions.T)
        if np.abs(v - before).max() < 1e-9:
            break
    mixed = np.maximum(v @ proportions, 1e-300)
    # eq: eq-var-cross-bag
    table = np.einsum("cy,cb,by->bcy", cells / mixed, v, proportions)
    return table, np.abs(mixed - shares).max(axis=1)


# --- bags ---------------------------------------------------------------------------------------------------


def kmeans_clusters(X, n_clusters, rng):
    """Clusters of the standardised features.

    Parameters
    ----------
    X : ndarray, shape (n_instances, n_features)
    n_clusters : int
    rng : RandomState

    Returns
    -------
    ndarray of int, shape (n_instances,)

    Raises
    ------
    ValueError
        If X has fewer distinct rows than ``n_clusters``.
    """
    if len(np.unique(X, axis=0)) < n_clusters:
        raise ValueError(
            f"n_bags={n_clusters} k-means clusters need as many distinct rows of X; give sizes, proportions, clusters"
        )
    scale = X.std(axis=0)
    model = KMeans(n_clusters, n_init=1, max_iter=100, random_state=rng)
    return model.fit_predict(X / np.where(scale > 0, scale, 1)).astype(np.intp)


def score_strata(X, codes, rng):
    """Strata of instances whose label is predicted with about the same probability.

    Quantiles of P(y = 1 | x), estimated out of fold; of more than two classes, k-means clusters of the probabilities.
    Within a stratum of the true probabilities, label and features are independent.

    Parameters
    ----------
    X : ndarray, shape (n_instances, n_features)
    codes : ndarray of int, shape (n_instances,)
    rng : RandomState

    Returns
    -------
    ndarray of int, shape (n_instances,)
    """
    n, onehot = len(X), np.eye(codes.max() + 1)[codes]
    features = embed(X, random_state=rng)
    found = class_probabilities(X, features, onehot, rng)
    n_strata = int(np.clip(n // 50, 2, 200))
    if onehot.shape[1] == 2:
        return np.argsort(np.argsort(found[:, 1])) * n_strata // n
    return KMeans(n_strata, n_init=1, random_state=rng).fit_predict(found)


class Task(NamedTuple):
    """What bags to make: checked input of `make_bags`.

    sizes (n_bags,), wanted proportions (n_bags, n_classes), whether these were given, clusters (n_instances,), and
    whether the clusters are the bags that are wanted.
    """

    sizes: np.ndarray
    wanted: np.ndarray
    wanted_given: bool
    clusters: np.ndarray
    clusters_are_bags: bool


def read_task(X, codes, classes, variant, n_bags, sizes, proportions, clusters, rng):
    """Bag sizes, proportions and clusters: those given, or those of k-means.

    Parameters
    ----------
    X : ndarray, shape (n_instances, n_features)
    codes : ndarray of int, shape (n_instances,)
    classes : ndarray, shape (n_classes,)
    variant : str
    n_bags, sizes, proportions, clusters
        As the user gave them to `make_bags`.
    rng : RandomState

    Returns
    -------
    Task
    """
    n, by_strata = len(codes), variant in ("label collider", "cross-bag")
    by_chance = variant in ("naive", "feature collider")
    by_cluster = variant in ("intermediate", "hard", "feature collider")
    sizes, wanted = read_sizes(sizes, n), read_wanted(proportions, classes)
    clusters, given = read_clusters(clusters, n), wanted is not None
    if by_chance and given:
        raise ValueError(
            f"proportions must not be given for variant={variant!r}, which leaves them to chance"
        )
    model = None if by_strata else clusters  # strata are no model for bags
    n_bags = count_bags(n_bags, sizes=sizes, proportions=wanted)
    n_bags = n_bags or (10 if model is None else model.max() + 1)
    untold = sizes is None or not (given or by_chance)
    as_many = model is not None and model.max() + 1 == n_bags
    same = as_many or model is None
    if (untold and not as_many) or (by_cluster and model is None):
        model = kmeans_clusters(X, n_bags, rng)
    if clusters is None:
        spare = np.zeros(n, dtype=int) if model is None else model
        clusters = score_strata(X, codes, rng) if by_strata else spare
    same = same and sizes is None and not given
    if untold:
        sizes, wanted = complete_targets(model, codes, n_bags, sizes, wanted)
    wanted = np.zeros((n_bags, len(classes))) if wanted is None else wanted
    return Task(sizes, wanted, given, clusters, same)


def complete_targets(model, codes, n_bags, sizes, wanted):
    """Sizes and proportions of model bags, where they are not given.

    Parameters
    ----------
    model, codes : ndarray of int, shape (n_instances,)
        Model bags and classes.
    n_bags : int
    sizes, wanted : ndarray or None

    Returns
    -------
    sizes : ndarray of int, shape (n_bags,)
    wanted : ndarray, shape (n_bags, n_classes)
    """
    n, counts = len(codes), crosstab(model, codes)
    base = counts.sum(axis=1)
    if sizes is None and wanted is not None:
        shares = tilt_sizes(base, wanted, counts.sum(axis=0) / n)
        sizes = largest_remainder(np.maximum(n * shares, 1), n)
    return (
        base if sizes is None else sizes,
        counts / base[:, None] if wanted is None else wanted,
    )


def collider_counts(cells, sizes, wanted):
    """Counts of a label collider.

    The proportions are pulled towards the prior as far as X ⊥ B asks for.

    Parameters
    ----------
    cells : ndarray, shape (n_strata, n_classes)
    sizes : ndarray of int, shape (n_bags,)
    wanted : ndarray, shape (n_bags, n_classes)
        Proportions.

    Returns
    -------
    table : ndarray, shape (n_bags, n_strata, n_classes)
    counts : ndarray of int, shape (n_bags, n_classes)
    share : float
        Of the distance to the prior that is left.

    Raises
    ------
    ValueError
        If less than 2 % of it is left: X tells the label, so bags independent of X are independent of the label.
    """
    totals = cells.sum(axis=0)
    prior = totals / totals.sum()
    for share in 0.8 ** np.arange(18):
        pulled = sizes[:, None] * (prior + share * (wanted - prior))
        counts = bag_counts(pulled, sizes, totals)
        table, gap = label_collider_table(cells, counts)
        if gap < 2e-4:
            return table, counts, float(share)
    raise ValueError(
        "variant='label collider' cannot be made of this X and y: X tells the label (nearly) for sure, so bags that do "
        "not depend on X cannot depend on the label"
    )


def cross_bag_counts(cells, sizes, wanted):
    """Counts of cross-bag bags.

    Parameters
    ----------
    cells : ndarray, shape (n_strata, n_classes)
    sizes : ndarray, shape (n_bags,)
    wanted : ndarray, shape (n_bags, n_classes), or None
        Proportions; None for an even range just as wide as the class shares of the strata (two classes).

    Returns
    -------
    table : ndarray, shape (n_bags, n_strata, n_classes)
    counts : ndarray of int, shape (n_bags, n_classes)
    wanted : ndarray, shape (n_bags, n_classes)

    Raises
    ------
    ValueError
        If the class shares of a stratum are no mean of the proportions, or there are more than two classes and no
        proportions.
    """
    shares = cells / cells.sum(axis=1, keepdims=True)
    if wanted is None and shares.shape[1] > 2:
        raise ValueError(
            "variant='cross-bag' needs proportions for more than two classes"
        )
    if wanted is None:
        positive = np.linspace(shares[:, 1].min(), shares[:, 1].max(), len(sizes))
        wanted = np.column_stack([1 - positive, positive])
    table, gap = cross_bag_table(cells, sizes, wanted)
    worst = int(gap.argmax())
    if gap[worst] > 0.02:
        raise ValueError(
            "variant='cross-bag' cannot be made with these proportions: X and y are to be independent within bags, but "
            f"X tells a group of {cells[worst].sum()} instances with the class shares {shares[worst].round(3).tolist()}"
            ", which is no mean of the bags' proportions; give more extreme ones"
        )
    margin = table.sum(axis=1)
    sizes = largest_remainder(margin.sum(axis=1), int(cells.sum()))
    return table, bag_counts(margin, sizes, cells.sum(axis=0)), wanted


def variant_counts(variant, codes, task, rng):
    r"""The table of a variant, and how many instances of each class each bag gets.

    Parameters
    ----------
    variant : str
    codes : ndarray of int, shape (n_instances,)
        Classes.
    task : Task
    rng : RandomState

    Returns
    -------
    table : ndarray, shape (n_bags, n_clusters, n_classes)
        Wanted counts, not whole.
    counts : ndarray of int, shape (n_bags, n_classes)
    wanted : ndarray, shape (n_bags, n_classes), or None
        The proportions aimed at.
    """
    sizes, wanted, clusters = task.sizes, task.wanted, task.clusters
    cells = crosstab(clusters, codes)
    totals, target = cells.sum(axis=0), sizes[:, None] * wanted
    if variant == "label collider":
        return (*collider_counts(cells, sizes, wanted)[:2], wanted)
    if variant == "cross-bag":
        return cross_bag_counts(cells, sizes, wanted if task.wanted_given else None)
    if variant == "intermediate":
        table = intermediate_table(cells, target, rng)
        margin = table.sum(axis=1)
        sizes = largest_remainder(margin.sum(axis=1), len(codes))
        return table, bag_counts(margin, sizes, totals), wanted
    if variant == "feature collider":
        bags = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
        counts = crosstab(bags, codes)
        return hard_table(cells, counts, rng), counts, None
    counts = bag_counts(target, sizes, totals)
    return hard_table(cells, counts, rng), counts, wanted


def make_bags(
    X, y, variant="simple", n_bags=None, sizes=None, proportions=None, clusters=None,
    random_state=None,
):  # fmt: skip
    r"""Assign labelled instances to bags that make a variant of the problem.

    Counts are exact, not draws: sizes and proportions are met to one instance where they can be, and ``report`` says by
    how much not. Which instance of a cluster and class goes to which bag is random.

    - naive: bags are drawn, whatever features and label. Proportions are those of chance.
    - simple: bags depend on the label alone.
    - intermediate: on the cluster alone; the clusters themselves if neither ``sizes`` nor ``proportions`` is given.
    - hard: on both.
    - feature collider: as hard, with proportions that are those of chance.
    - label collider: on the label within strata in which it is equally likely, but not on the stratum. The proportions
      are pulled towards the prior as far as that asks for.
    - cross-bag: such that, within a bag, the stratum does not tell the label. Sizes come out as they can.

    Parameters
    ----------
    X : array-like, shape (n_instances, n_features)
    y : array-like, shape (n_instances,)
    variant : str, default "simple"
        A name of `llpbook.taxonomy.VARIANTS`, in any case, with spaces, hyphens or underscores.
    n_bags : int, optional
        As many as ``sizes``, ``proportions`` or ``clusters`` have; else 10.
    sizes : array-like of int, shape (n_bags,), optional
        Those of k-means clusters of X if not given, but such that the proportions add up to the class prior.
    proportions : array-like or DataFrame, shape (n_bags,) or (n_bags, n_classes), optional
        Those of k-means clusters if not given. A vector is the share of the second of two classes. Where they do not
        add up to the classes of y, the odds of all bags shift alike.
    clusters : array-like, shape (n_instances,), optional
        What bags depend on besides the label; k-means clusters of the standardised X, ``n_bags`` many, if not given.
        For label collider and cross-bag: strata within which y and X are independent; instances with about the same
        estimated P(y | x) if not given. The variant then holds as well as that estimate.
    random_state : int, RandomState or None

    Returns
    -------
    GeneratedBags
        ``bags, proportions = make_bags(…)``; ``.sizes``, ``.report``, ``.to_dataset(X, y)``.

    Raises
    ------
    ValueError
        For malformed input; if ``proportions`` are given for a variant that leaves them to chance; or if X and y rule
        the variant out: a label collider where X tells the label, cross-bag with proportions that are not extreme
        enough.

    Notes
    -----
    Source: franco2023, A.4; the algorithms are ours.
    """
    variant, rng = variant_name(variant), check_random_state(random_state)
    X = check_features(X)
    classes, codes = label_codes(y, len(X))
    task = read_task(
        X, codes, classes, variant, n_bags, sizes, proportions, clusters, rng
    )
    if variant == "naive":
        bags = rng.permutation(np.repeat(np.arange(len(task.sizes)), task.sizes))
        return describe(bags, codes, classes, task, variant, None)
    if variant == "intermediate" and task.clusters_are_bags:
        return describe(task.clusters, codes, classes, task, variant, task.wanted)
    if variant == "simple":
        counts = simple_counts(codes, task.sizes, task.wanted)
        bags = deal(codes, counts.T, rng)
        return describe(bags, codes, classes, task, variant, task.wanted)
    table, counts, wanted = variant_counts(variant, codes, task, rng)
    cells = crosstab(task.clusters, codes)
    exact = variant not in ("label collider", "cross-bag")
    whole = [
        fill_table(table[:, :, y], counts[:, y], cells[:, y], rng, exact)
        for y in range(len(classes))
    ]
    dealt = np.stack(whole).transpose(2, 0, 1).reshape(-1, len(counts))
    bags = deal(task.clusters * len(classes) + codes, dealt, rng)
    return describe(bags, codes, classes, task, variant, wanted)
