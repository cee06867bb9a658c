"""Whole numbers of instances with given sums: fit a table, round it, deal the instances."""

import numpy as np

from ..base import transport


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
    sums = [np.round((table - counts).sum(axis=axis)) for axis in (1, 0)]
    return counts + transport(gains, *sums)


def bag_counts(wanted, sizes, class_counts):
    """How many instances of each class each bag gets, with the row sums ``sizes`` and the column sums ``class_counts``.

    The nearest table to ``wanted``, shape (n_bags, n_classes), in whole numbers. If the wanted proportions do not add
    up to the class totals, the odds of all bags shift by one factor per class.
    """
    start = wanted + 1e-6 * wanted.sum() / wanted.size  # so that all totals can be met
    fitted, _ = fit_margins(start, [class_counts[None], sizes[:, None]], 1e-12, 20_000)
    return round_table(fitted)


def fill_table(table, rows, columns, rng, exact=True):
    """Whole numbers with the sums ``rows`` and ``columns``, near to a table whose sums are at most one away.

    Whole parts first. Of the rest, entries get one more in an order in which the next is chosen with a probability
    proportional to its fractional part, as long as row and column have room. If not ``exact``, all is left to the
    draws, in tenths of the entries: numbers that vary as those of random bags do.
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
    """Bags of the instances of ``cells``, dealt at random in the numbers ``counts``, shape (n_cells, n_bags)."""
    bags = np.empty(len(cells), dtype=np.intp)
    turns = np.tile(np.arange(counts.shape[1]), len(counts))
    order = np.lexsort((rng.random_sample(len(cells)), cells))
    bags[order] = np.repeat(turns, counts.ravel())
    return bags
