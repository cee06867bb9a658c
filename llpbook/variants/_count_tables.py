"""Whole numbers of instances with given sums: fit a table, round it, deal the instances."""

import numpy as np

from ..base import transport


def fit_margins(table, margins, tol=1e-9, max_iter=2000):
    r"""Iterative proportional fitting: scale a table until its margins are met.

    In turn for each margin, :math:`t \leftarrow t \cdot m_{\text{wanted}} / m(t)` (:eq:`eq-var-ipf`). The fixed point
    is the table with these margins that is nearest to the start in Kullback-Leibler divergence: its odds ratios of the
    highest order are those of the start.

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
        The last margin is met exactly where the start is positive.
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
    r"""Controlled rounding: whole numbers with the same row and column sums.

    Each is less than one away from its entry. Which entries to round up is a problem for `llpbook.base.transport`
    (:eq:`eq-var-rounding`): :math:`\max \sum_{by} r_{by} u_{by}` for the fractional parts :math:`r`, :math:`0 \le u
    \le [r > 0]` and the row and column sums of :math:`u` equal to those of :math:`r`.

    Parameters
    ----------
    table : ndarray, shape (n_rows, n_columns)
        Row and column sums are whole numbers.

    Returns
    -------
    ndarray of int, shape (n_rows, n_columns)
    """
    counts = np.floor(table + 1e-7).astype(int)
    part = np.maximum(table - counts, 0)
    gains = np.where(part > 1e-7, part, -np.inf)
    sums = [np.round((table - counts).sum(axis=axis)) for axis in (1, 0)]
    # eq: eq-var-rounding
    return counts + transport(gains, *sums)


def bag_counts(wanted, sizes, class_counts):
    r"""How many instances of each class each bag gets.

    The table with the bag sizes as row sums and the class totals of the data as column sums that is nearest to
    :math:`n_b \pi_{by}` (`fit_margins`), in whole numbers (`round_table`): :eq:`eq-var-bag-counts`. If the wanted
    proportions do not add up to the class totals, all bags' odds shift by one factor a class.

    Parameters
    ----------
    wanted : ndarray, shape (n_bags, n_classes)
        Wanted counts, not whole.
    sizes : ndarray of int, shape (n_bags,)
    class_counts : ndarray of int, shape (n_classes,)

    Returns
    -------
    ndarray of int, shape (n_bags, n_classes)
        Rows sum to ``sizes``, columns to ``class_counts``.
    """
    start = wanted + 1e-6 * wanted.sum() / wanted.size  # so that all totals can be met
    fitted, _ = fit_margins(start, [class_counts[None], sizes[:, None]], 1e-12, 20_000)
    # eq: eq-var-bag-counts
    return round_table(fitted)


def fill_table(table, rows, columns, rng, exact=True):
    """Whole numbers with given row and column sums, near to a table.

    Whole parts first. Of the rest, entries get one more in an order in which the next is chosen with a probability
    proportional to its fractional part, as long as row and column have room.

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
    """What is left of the wanted sums, after counts that are above them were cut in place."""
    room, space = rows - counts.sum(axis=1), columns - counts.sum(axis=0)
    while min(room.min(), space.min()) < 0:
        over = np.minimum(room[:, None], space[None, :]) < 0
        row, column = np.unravel_index(np.argmax(counts * over), counts.shape)
        counts[row, column] -= 1
        room[row] += 1
        space[column] += 1
    return room, space


def deal(cells, counts, rng):
    """Deal the instances of each cell to the bags at random, in the numbers given.

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
