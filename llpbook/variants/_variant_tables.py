"""Tables of counts, bag by cluster by class: one function per variant."""

import numpy as np

from .._counts import crosstab, transport, whole_counts


def project_rows(matrix):
    """Project each row to the nearest point of the simplex: max(a - θ, 0) with the θ that makes it sum to 1."""
    falling = -np.sort(-matrix, axis=1)
    excess = np.cumsum(falling, axis=1) - 1
    last = (falling * np.arange(1, matrix.shape[1] + 1) > excess).sum(axis=1) - 1
    theta = np.take_along_axis(excess, last[:, None], 1) / (last + 1)[:, None]
    return np.maximum(matrix - theta, 0)


def cluster_to_bag(cells, wanted, rng, tol=1e-7, max_iter=5000):
    r"""Share of each cluster that goes to each bag, the same for all labels, shape (n_clusters, n_bags).

    :math:`\min_A \lVert N^\top A - T^\top \rVert_F^2` over matrices with rows on the simplex, :math:`N` the counts of
    the clusters by class, :math:`T` the wanted counts of the bags: :eq:`eq-var-least-squares`. Projected gradient with
    step :math:`1 / \lVert N \rVert_2^2` and momentum, from random rows: many :math:`A` fit as well, and equal rows
    would be random bags. Stops where no entry changes by ``tol``, or all counts are met to 0.01.
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
    """Table of bags that depend on the cluster alone, shape (n_bags, n_clusters, n_classes)."""
    A = cluster_to_bag(cells, wanted, rng)
    return A.T[:, :, None] * cells


def hard_table(cells, counts, rng):
    """Table of bags that depend on the cluster and on the label, with the margins wanted.

    `fit_margins` from the cells times exponential draws, which is no product: :eq:`eq-var-hard`.
    """
    start = cells * rng.exponential(size=(len(counts), *cells.shape))
    # eq: eq-var-hard
    return fit_margins(start, [cells[None], counts[:, None]])[0]


def label_collider_table(cells, counts):
    r"""Table of bags that depend on the label within a stratum, and not on the stratum.

    `fit_margins` from ones, with the margin of bags by stratum a product: :math:`\sum_y t_{bcy} = n_b n_c / n`,
    :eq:`eq-var-label-collider`. Its gap is not small if ``counts``, shape (n_bags, n_classes), are out of reach.
    """
    product = np.outer(counts.sum(axis=1), cells.sum(axis=1)) / cells.sum()
    start = np.ones((len(counts), *cells.shape))
    # eq: eq-var-label-collider
    return fit_margins(
        start, [product[:, :, None], counts[:, None], cells[None]], 1e-7, 500
    )


def cross_bag_table(cells, sizes, proportions, max_iter=3000):
    r"""Table of bags within which stratum and label are independent.

    Stratum :math:`c` is spread over the bags by weights :math:`v_{cb}` such that
    :math:`n_{cy} = n_c \sum_b v_{cb} \pi_{by}`; then :math:`t_{bcy} = n_c v_{cb} \pi_{by}`. The weights are those of a
    mixture of known components, found by EM from the sizes: :eq:`eq-var-cross-bag`.

    Returns
    -------
    table : ndarray, shape (n_bags, n_strata, n_classes)
        Scaled to have the sums ``cells`` where the mix is not exact.
    gap : ndarray, shape (n_strata,)
        Largest error of a class share in each stratum: not small if no mix of the bags has the shares of a stratum.
    """
    shares = cells / cells.sum(axis=1, keepdims=True)
    v = np.tile(sizes / sizes.sum(), (len(cells), 1))
    for _ in range(max_iter):
        mixed = np.maximum(v @ proportions, 1e-300)
        # eq: eq-var-cross-bag
        before, v = v, v * ((shares / mixed) @ proportions.T)
        if np.abs(v - before).max() < 1e-9:
            break
    mixed = np.maximum(v @ proportions, 1e-300)
    table = np.einsum("cy,cb,by->bcy", cells / mixed, v, proportions)
    return table, np.abs(mixed - shares).max(axis=1)


def collider_counts(cells, sizes, wanted):
    """Table of a label collider, with proportions pulled towards the prior as far as X ⊥ B needs."""
    totals = cells.sum(axis=0)
    prior = totals / totals.sum()
    for share in 0.8 ** np.arange(18):
        pulled = sizes[:, None] * (prior + share * (wanted - prior))
        counts = bag_counts(pulled, sizes, totals)
        table, gap = label_collider_table(cells, counts)
        if gap < 2e-4:
            return table, counts
    raise ValueError(
        "variant='label collider' cannot be made of this X and y: X tells the label "
        "(nearly) for sure, so bags that do not depend on X cannot depend on the "
        "label; take fewer features, or another variant"
    )


def cross_bag_counts(cells, sizes, wanted):
    """Table of cross-bag bags, whose sizes follow, and whose proportions are those of strata if none are wanted."""
    in_stratum = cells.sum(axis=1)
    shares = cells / in_stratum[:, None]
    if wanted is None and shares.shape[1] > 2:
        raise ValueError(
            "variant='cross-bag' needs proportions for more than two classes"
        )
    if wanted is None:
        levels = np.linspace(0, 1, len(sizes))
        positive = np.quantile(np.repeat(shares[:, 1], in_stratum), levels)
        wanted = np.column_stack([1 - positive, positive])
    table, gap = cross_bag_table(cells, sizes, wanted)
    worst = int(gap.argmax())
    if gap[worst] > 0.02:
        raise ValueError(
            "variant='cross-bag' cannot be made with these proportions: X and y are to "
            f"be independent within bags, but X tells a group of {in_stratum[worst]} "
            f"instances with the class shares {shares[worst].round(3).tolist()}, which "
            "is no mean of the bags' proportions; give more extreme ones"
        )
    return table, rounded_counts(table, cells), wanted


def rounded_counts(table, cells):
    """Bag by class in whole numbers, with the sizes that the table has."""
    margin = table.sum(axis=1)
    sizes = whole_counts(margin.sum(axis=1), int(cells.sum()))
    return bag_counts(margin, sizes, cells.sum(axis=0))


def variant_table(task, rng):
    """The table of a variant, how many instances of each class each bag gets, and the proportions aimed at."""
    sizes, wanted = task.sizes, task.wanted
    cells = crosstab(task.clusters, task.codes)
    if task.variant == "cross-bag":
        return cross_bag_counts(cells, sizes, wanted if task.wanted_given else None)
    if task.variant == "label collider":
        return *collider_counts(cells, sizes, wanted), wanted
    if task.variant == "intermediate":
        table = intermediate_table(cells, sizes[:, None] * wanted, rng)
        return table, rounded_counts(table, cells), wanted
    if task.variant == "feature collider":
        counts = crosstab(chance_bags(sizes, rng), task.codes)
        return hard_table(cells, counts, rng), counts, None
    counts = bag_counts(sizes[:, None] * wanted, sizes, cells.sum(axis=0))
    table = (
        counts[:, None] if task.variant == "simple" else hard_table(cells, counts, rng)
    )
    return table, counts, wanted


def chance_bags(sizes, rng):
    """Draw random bags of given sizes."""
    return rng.permutation(np.repeat(np.arange(len(sizes)), sizes))


def fit_margins(table, margins, tol=1e-9, max_iter=2000):
    r"""Iterative proportional fitting: scale a table until its margins are met.

    In turn for each margin, :math:`t \leftarrow t \cdot m_{\text{wanted}} / m(t)` (:eq:`eq-var-ipf`). The fixed point
    is the table with these margins that is nearest to the start in Kullback-Leibler divergence.

    Parameters
    ----------
    table : ndarray
        The start; zeros stay zeros.
    margins : list of ndarray
        Wanted sums, with as many axes as the table: an axis of length 1 is summed over.
    tol : float, default 1e-9
        Largest error of a margin, as a share of the total.
    max_iter : int, default 2000

    Returns
    -------
    table : ndarray
    gap : float
        Largest error of a margin, as a share of the total.
    """
    for _ in range(max_iter):
        gap = 0.0
        for wanted in margins:
            axes = tuple(a for a, n in enumerate(wanted.shape) if n == 1)
            sums = table.sum(axis=axes, keepdims=True)
            gap = max(gap, np.abs(sums - wanted).max() / wanted.sum())
            # eq: eq-var-ipf
            table = table * np.where(sums > 0, wanted / np.where(sums > 0, sums, 1), 0)
        if gap < tol:
            break
    return table, gap


def round_table(table):
    """Controlled rounding (cox1987): whole numbers with the same row and column sums, each less than one away."""
    counts = np.floor(table + 1e-7).astype(int)
    part = np.maximum(table - counts, 0)
    gains = np.where(part > 1e-7, part, -np.inf)
    left = table - counts
    row_sums, column_sums = np.round(left.sum(axis=1)), np.round(left.sum(axis=0))
    return counts + transport(gains, row_sums, column_sums)


def bag_counts(wanted, sizes, class_counts):
    """Whole counts per bag and class, with the row sums ``sizes`` and the column sums ``class_counts``.

    The nearest table to ``wanted``, shape (n_bags, n_classes), in whole numbers. If the wanted proportions do not add
    up to the class totals, the odds of all bags shift by one factor per class.
    """
    start = wanted + 1e-6 * wanted.sum() / wanted.size  # so that all totals can be met
    fitted, _ = fit_margins(start, [class_counts[None], sizes[:, None]], 1e-12, 20_000)
    return round_table(fitted)


def fill_table(table, rows, columns, rng, exact=True):
    """Whole numbers with the sums ``rows`` and ``columns``, near to a table whose sums are at most one away.

    Whole parts first. Then entries get one more in a random order, in which the next entry is chosen with a probability
    proportional to its fractional part, as long as row and column have room. If not ``exact``, everything is drawn, in
    tenths of the entries: the numbers then vary like those of random bags.
    """
    counts = np.floor(table + 1e-9).astype(int) if exact else np.zeros(table.shape, int)
    part = np.maximum(table - counts, 0)
    tickets = np.where(part > 1e-9, 1 if exact else np.ceil(10 * part), 0).astype(int)
    i, j = (np.repeat(at.ravel(), tickets.ravel()) for at in np.indices(table.shape))
    # Sorting by -log(u) / weight draws without replacement with these weights (Efraimidis and Spirakis).
    weights = part[i, j] / tickets[i, j]
    order = np.argsort(-np.log(rng.random_sample(len(i))) / weights)
    room, space = _cut(counts, rows, columns)
    for row, column in zip(i[order].tolist(), j[order].tolist(), strict=True):
        if room[row] > 0 and space[column] > 0:
            counts[row, column] += 1
            room[row] -= 1
            space[column] -= 1
    while room.any():
        row, column = np.argmax(room), np.argmax(space)
        step = min(room[row], space[column])
        counts[row, column] += step
        room[row] -= step
        space[column] -= step
    return counts


def _cut(counts, rows, columns):
    """Cut counts in place where they exceed the wanted sums; return the remaining row and column sums."""
    room, space = rows - counts.sum(axis=1), columns - counts.sum(axis=0)
    while min(room.min(), space.min()) < 0:
        over = np.minimum(room[:, None], space[None, :]) < 0
        row, column = np.unravel_index(np.argmax(counts * over), counts.shape)
        counts[row, column] -= 1
        room[row] += 1
        space[column] += 1
    return room, space


def deal(cells, counts, rng):
    """Deal the instances of each cell to the bags at random, in the numbers ``counts``, shape (n_cells, n_bags)."""
    bags = np.empty(len(cells), dtype=np.intp)
    turns = np.tile(np.arange(counts.shape[1]), len(counts))
    order = np.lexsort((rng.random_sample(len(cells)), cells))
    bags[order] = np.repeat(turns, counts.ravel())
    return bags
