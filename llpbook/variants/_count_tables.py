"""Tables of whole numbers with given margins: how many instances of each kind go to each bag."""

import numpy as np
from scipy.optimize import linprog, minimize
from scipy.sparse import coo_array, vstack


def largest_remainder(shares, total):
    r"""Whole numbers with a given sum, each less than one away from its share.

    :math:`\lfloor s_k \rfloor`, plus 1 for the :math:`n - \sum_k \lfloor s_k \rfloor` largest fractional parts
    (:eq:`eq-var-remainder`), where :math:`s` are the shares scaled to sum to the total.

    Parameters
    ----------
    shares : ndarray, shape (n,)
        Not negative.
    total : int

    Returns
    -------
    ndarray of int, shape (n,)
    """
    exact = shares * (total / shares.sum())
    counts = np.floor(exact + 1e-9).astype(int)
    rest = np.argsort(counts - exact, kind="stable")[: total - counts.sum()]
    # eq: eq-var-remainder
    counts[rest] += 1
    return counts


def fit_margins(table, margins, tol=1e-9, max_iter=2000):
    r"""Iterative proportional fitting: scale a table until its margins are met.

    In turn for each margin, :math:`t \leftarrow t \cdot m_{\text{wanted}} / m(t)` (:eq:`eq-var-ipf`). The fixed point
    is the table with these margins that is nearest to the start in Kullback-Leibler divergence: its odds ratios of the
    highest order are those of the start.

    Parameters
    ----------
    table : ndarray
        The start; zeros stay zeros.
    margins : list of (tuple of int, ndarray)
        The axes to keep, and the sums over the others.
    tol : float, default 1e-9
        Largest error of a margin, as a share of the total.
    max_iter : int, default 2000

    Returns
    -------
    table : ndarray
        The last margin is met exactly where the start is positive.
    gap : float
        Largest error of a margin, as a share of the total.
    """
    axes = range(table.ndim)
    others = [tuple(a for a in axes if a not in kept) for kept, _ in margins]
    wanted = [np.expand_dims(m, o) for (_, m), o in zip(margins, others, strict=True)]
    for _ in range(max_iter):
        gap = 0.0
        for other, goal in zip(others, wanted, strict=True):
            sums = table.sum(axis=other, keepdims=True)
            gap = max(gap, np.abs(sums - goal).max() / goal.sum())
            # eq: eq-var-ipf
            table = table * np.divide(
                goal, sums, out=np.zeros_like(sums), where=sums > 0
            )
        if gap < tol:
            break
    return table, gap


def round_table(table):
    r"""Controlled rounding: whole numbers with the same row and column sums.

    Each is less than one away from its entry.

    Which entries to round up is a transport problem, whose vertices are whole numbers (:eq:`eq-var-rounding`):
    :math:`\max \sum_{kj} r_{kj} u_{kj}` for the fractional parts :math:`r`, :math:`0 \le u \le [r > 0]` and the row and
    column sums of :math:`u` equal to those of :math:`r`.

    Parameters
    ----------
    table : ndarray, shape (n_rows, n_columns)
        Row and column sums are whole numbers.

    Returns
    -------
    ndarray of int, shape (n_rows, n_columns)
    """
    floor = np.floor(table + 1e-7)
    part = np.maximum(table - floor, 0)
    rows, columns = np.nonzero(part > 1e-7)
    counts = floor.astype(int)
    if len(rows):
        edge, ones = np.arange(len(rows)), np.ones(len(rows))
        sums = vstack(
            [coo_array((ones, (at, edge)), (m, len(rows)))
             for at, m in zip((rows, columns), table.shape, strict=True)]
        )  # fmt: skip
        goal = np.concatenate([np.round((table - floor).sum(axis=a)) for a in (1, 0)])
        # eq: eq-var-rounding
        up = linprog(
            -part[rows, columns], A_eq=sums, b_eq=goal, bounds=(0, 1), method="highs-ds"
        )
        counts[rows, columns] += np.round(up.x).astype(int)
    return counts


def fill_table(table, rows, columns, rng, exact=True):
    r"""Whole numbers with given row and column sums, near to a table.

    :math:`\lfloor t_{kc} \rfloor` first. Of the rest, entries get one more in an order in which the next is
    :math:`(k, c)` with a probability proportional to its fractional part, as long as row and column have room.

    Parameters
    ----------
    table : ndarray, shape (n_rows, n_columns)
        Its sums are at most one away from ``rows`` and ``columns``.
    rows, columns : ndarray of int
        Of equal sum.
    rng : RandomState
    exact : bool, default True
        If not, all is left to the draws, in tenths of the entries: numbers that vary as those of random bags do.

    Returns
    -------
    ndarray of int, shape (n_rows, n_columns)
    """
    counts = np.floor(table + 1e-9).astype(int) if exact else np.zeros(table.shape, int)
    part = np.maximum(table - counts, 0)
    tickets = np.where(part > 1e-9, 1 if exact else np.ceil(10 * part), 0).astype(int)
    k, c = (np.repeat(at.ravel(), tickets.ravel()) for at in np.indices(table.shape))
    # Sorting by -log(u) / weight draws without replacement with these weights (Efraimidis and Spirakis).
    weights = part[k, c] / tickets[k, c]
    order = np.argsort(-np.log(rng.random_sample(len(k))) / weights)
    room, space = rows - counts.sum(axis=1), columns - counts.sum(axis=0)
    while min(room.min(), space.min()) < 0:  # whole parts above a wanted sum
        over = np.minimum(room[:, None], space[None, :]) < 0
        i, j = np.unravel_index(np.argmax(counts * over), counts.shape)
        counts[i, j] -= 1
        room[i] += 1
        space[j] += 1
    for i, j in zip(k[order].tolist(), c[order].tolist(), strict=True):
        if room[i] > 0 and space[j] > 0:
            counts[i, j] += 1
            room[i] -= 1
            space[j] -= 1
    while room.any():
        i, j = np.argmax(room), np.argmax(space)
        step = min(room[i], space[j])
        counts[i, j] += step
        room[i] -= step
        space[j] -= step
    return counts


def bag_counts(table, sizes, class_counts):
    r"""How many instances of each class each bag gets.

    The table with the wanted sizes as row sums and the class totals of the data as column sums that is nearest to
    :math:`n_b \pi_{by}` (`fit_margins`), in whole numbers (`round_table`): :eq:`eq-var-bag-counts`. If the wanted
    proportions do not add up to the class totals, all bags' odds shift by one factor a class.

    Parameters
    ----------
    table : ndarray, shape (n_bags, n_classes)
        Wanted counts, not whole.
    sizes : ndarray of int, shape (n_bags,)
    class_counts : ndarray of int, shape (n_classes,)

    Returns
    -------
    ndarray of int, shape (n_bags, n_classes)
        Rows sum to ``sizes``, columns to ``class_counts``.
    """
    margins = [((1,), class_counts.astype(float)), ((0,), sizes.astype(float))]
    start = table + 1e-6 * table.sum() / table.size  # so that every total can be met
    fitted, _ = fit_margins(start, margins, 1e-12, 20_000)
    # eq: eq-var-bag-counts
    return round_table(fitted)


def tilt_sizes(sizes, proportions, prior):
    r"""Sizes, near to given ones, with which proportions add up to the prior.

    :math:`n_b \propto s_b \exp(\sum_y \lambda_y \pi_{by})`, with :math:`\lambda` such that
    :math:`\sum_b n_b \pi_{by} = n \eta_y`: :eq:`eq-var-tilt`.

    Parameters
    ----------
    sizes : ndarray, shape (n_bags,)
    proportions : ndarray, shape (n_bags, n_classes)
    prior : ndarray, shape (n_classes,)

    Returns
    -------
    ndarray, shape (n_bags,)
        Shares of the instances; those of ``sizes`` if the prior is no mean of the proportions.
    """

    def dual(multipliers):
        weights = np.log(sizes / sizes.sum()) + (proportions - prior) @ multipliers
        top = weights.max()
        tilted = np.exp(weights - top)
        shares = tilted / tilted.sum()
        # The penalty keeps the multipliers finite where the prior is at the border of the proportions, or outside.
        value = top + np.log(tilted.sum()) + 5e-7 * multipliers @ multipliers
        return value, shares @ (proportions - prior) + 1e-6 * multipliers, shares

    start = np.zeros(len(prior))
    found = minimize(lambda m: dual(m)[:2], start, jac=True, method="BFGS")
    # eq: eq-var-tilt
    shares = dual(found.x)[2]
    gap = np.abs(shares @ proportions - prior).max()
    return shares if gap < 1e-3 else sizes / sizes.sum()


def deal(cells, counts, rng):
    r"""Deal the instances of each cell to the bags at random, in the numbers given.

    Parameters
    ----------
    cells : ndarray of int, shape (n_instances,)
        Codes 0, 1, … of cluster and class.
    counts : ndarray of int, shape (n_cells, n_bags)
        Row sums are the sizes of the cells.
    rng : RandomState

    Returns
    -------
    ndarray of int, shape (n_instances,)
        The bag of each instance.
    """
    bags = np.empty(len(cells), dtype=np.intp)
    turns = np.tile(np.arange(counts.shape[1]), len(counts))
    order = np.lexsort((rng.random_sample(len(cells)), cells))
    bags[order] = np.repeat(turns, counts.ravel())
    return bags
