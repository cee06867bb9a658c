"""Counts of the classes in bags: whole numbers, cross-tables, ranks within bags, and the best labels for counts."""

import numpy as np
from scipy.optimize import linear_sum_assignment, linprog
from scipy.sparse import coo_array

#: Above so many seats a bag of several classes is labeled by linear programming.
MANY_SEATS = 1000


def whole_counts(shares, totals):
    r"""Round shares to whole numbers with given sums, each less than one away from its share.

    :math:`\lfloor s_j \rfloor`, plus 1 for the :math:`n - \sum_j \lfloor s_j \rfloor` largest fractional parts, where
    :math:`s` are the shares scaled to sum to the total :math:`n`. Of equal parts, the first is rounded up: half an
    instance goes to the first class.

    Parameters
    ----------
    shares : ndarray, shape (n_classes,) or (n_bags, n_classes)
        Not negative, not all 0 in a row.
    totals : int or ndarray of int, shape (n_bags,)

    Returns
    -------
    ndarray of int, of the shape of shares
        Rows sum to ``totals``.
    """
    totals = np.asarray(totals)[..., None]
    wanted = np.round(totals * (shares / shares.sum(axis=-1, keepdims=True)), 9)
    counts = np.floor(wanted).astype(int)
    missing = totals - counts.sum(axis=-1, keepdims=True)
    order = np.argsort(np.round(counts - wanted, 9), axis=-1, kind="stable")
    return counts + (np.argsort(order, axis=-1) < missing)


def crosstab(rows, columns, shape=None):
    """Count the instances of each pair of two codes, such as bag and cluster.

    Equation :eq:`eq-clusters-table`.

    Parameters
    ----------
    rows, columns : ndarray of int, shape (n_instances,)
        From 0.
    shape : (int, int), optional
        Numbers of codes; if not given, one more than the largest codes.

    Returns
    -------
    ndarray of int, shape (n_rows, n_columns)
    """
    n_rows, n_columns = shape or (rows.max() + 1, columns.max() + 1)
    # eq: eq-clusters-table
    cells = (rows * n_columns + columns).astype(np.intp)  # has 32 bits in a browser
    counts = np.bincount(cells, minlength=n_rows * n_columns)
    return counts.reshape(n_rows, n_columns)


def ranks(f, bags):
    r"""Rank of each score within its bag, 0 for the largest; equal scores in the order given.

    Parameters
    ----------
    f : ndarray, shape (n_instances,)
    bags : ndarray of int, shape (n_instances,)

    Returns
    -------
    ndarray of int, shape (n_instances,)
        :math:`O(n \log n)`.
    """
    sizes, order = np.bincount(bags), np.argsort(-f)
    if (f[order[1:]] == f[order[:-1]]).any():  # a stable sort takes longer
        order = np.argsort(-f, kind="stable")
    order = order[by_bag(bags[order], len(sizes))]
    rank = np.empty(len(f), int)
    rank[order] = np.arange(len(f)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return rank


def by_bag(bags, n_bags):
    """Indices of the instances in the order of their bags."""
    if n_bags <= 2**16:  # integers this short are sorted in linear time
        bags = bags.astype(np.uint16)
    return np.argsort(bags, kind="stable")


def label_by_counts(scores, bags, counts):
    r"""Labels with the largest sum of scores among those with the given counts in each bag.

    Equation :eq:`eq-em-labels`. Two classes: in each bag the highest scores are positive, one sort for all bags,
    :math:`O(n \log n)`. More: `label_by_seats`, with as many free seats as the count says.

    Parameters
    ----------
    scores : ndarray, shape (n_instances, n_classes)
        Logarithms of probabilities, up to a constant per instance.
    bags : ndarray of int, shape (n_instances,)
    counts : ndarray of int, shape (n_bags, n_classes)

    Returns
    -------
    ndarray of int, shape (n_instances,)
        Of equal scores, the first in the order of the instances is positive.
    """
    if counts.shape[1] == 2:
        gap = scores[:, 1] - scores[:, 0]
        # eq: eq-em-labels
        return (ranks(gap, bags) < counts[bags, 1]).astype(int)

    def prices(k, size):
        return np.where(np.arange(size) < counts[k][:, None], 0, np.inf)

    return label_by_seats(scores, bags, prices)


def label_by_seats(scores, bags, prices):
    """Labels with the largest sum of scores minus the prices of the seats that are taken in each bag.

    Parameters
    ----------
    scores : ndarray, shape (n_instances, n_classes)
    bags : ndarray of int, shape (n_instances,)
    prices : callable
        From the number of a bag and its size to the prices of its seats as of `take_seats`.

    Returns
    -------
    ndarray of int, shape (n_instances,)
    """
    labels, order = np.empty(len(bags), dtype=int), np.argsort(bags, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(bags[order])) + 1):
        if len(rows):
            seats = prices(bags[rows[0]], len(rows))
            labels[rows] = take_seats(scores[rows], seats)
    return labels


def take_seats(scores, prices):
    """`label_by_seats` for one bag: an assignment problem, or for a large bag a linear program.

    Parameters
    ----------
    scores : ndarray, shape (n, n_classes)
        Minus infinity for a class that an instance must not have.
    prices : ndarray, shape (n_classes, n)
        Each next seat of a class costs as much or more; infinite for a seat that is not there.

    Returns
    -------
    ndarray of int, shape (n,)
    """
    (n, K), (j, r) = scores.shape, np.nonzero(np.isfinite(prices))
    if len(j) <= MANY_SEATS:
        return j[linear_sum_assignment(prices[j, r] - scores[:, j])[1]]
    # Each seat is a row, too: it balances its class while it is empty, else it counts in the last column.
    gains = np.full((n + len(j), K + 1), -np.inf)
    gains[:n, :K], gains[n:, K] = scores, -prices[j, r]
    gains[n + np.arange(len(j)), j] = 0
    columns = np.append(np.bincount(j, minlength=K), n)
    return transport(gains, np.ones(len(gains)), columns)[:n].argmax(axis=1)


def transport(gains, rows, columns):
    r"""Table of zeros and ones with given sums of rows and columns and the largest gain.

    :math:`\max \sum_{ij} g_{ij} u_{ij}`, :math:`0 \le u \le 1`: a transport problem, whose vertices are whole numbers.

    Parameters
    ----------
    gains : ndarray, shape (n_rows, n_columns)
        Minus infinity where the table must be 0.
    rows : ndarray, shape (n_rows,)
    columns : ndarray, shape (n_columns,)

    Returns
    -------
    ndarray of int, shape (n_rows, n_columns)
    """
    table, limits = np.zeros(gains.shape, int), np.append(rows, columns)
    i, j = np.nonzero(gains > -np.inf)
    if len(i):
        at = np.append(i, len(rows) + j), np.tile(np.arange(len(i)), 2)
        sums = coo_array((np.ones(2 * len(i)), at), (len(limits), len(i)))
        solution = linprog(
            -gains[i, j], A_eq=sums, b_eq=limits, bounds=(0, 1), method="highs-ds"
        )
        table[i, j] = np.round(solution.x)
    return table
