"""Find rows of a table of counts that are sums of other rows: totals and subtotals, which are no bags."""

import re

import numpy as np

from ._keys import quote

#: Of more bags names are not looked at.
MOST_NAMES = 20_000
#: A match of a row with a sum counts as no chance if the numbers that could have stood in the row are more than this,
#: for each sum that is tried.
SURE = 1000

#: Names of rows of totals: a word anywhere in the name, or the whole name.
_WORD = r"\b(sub-?)?totals?\b"
_NAME = r"(grand )?(sum|sums|overall|statewide|gesamt|insgesamt|summe|zusammen|totale|somme|suma|all)"


def named_totals(names):
    """True for names of totals, such as "Total", "Wake subtotal" or "Sum".

    Parameters
    ----------
    names : iterable

    Returns
    -------
    ndarray of bool, shape (n_rows,)
    """
    texts = [str(name).strip(" :.").lower() for name in names]
    return np.array(
        [bool(re.search(_WORD, t) or re.fullmatch(_NAME, t)) for t in texts]
    )


def sums_of_rows(table, slack=None):
    """Find the rows that are the sum of other rows: of all others, or, for subtotals, of a run of neighbors.

    Subtotals that stand in a block before or after all other rows are found by their sum, which is that of the others.

    Parameters
    ----------
    table : ndarray, shape (n_rows, n_columns)
        Counts, not negative, in columns of which none follows from the others: sizes, and all classes but one.
    slack : ndarray, shape (n_rows, n_columns), optional
        Largest rounding error of each entry; then only the sum of all others is looked for. Exact counts if not given.

    Returns
    -------
    dict of int to ndarray of int
        From a row of totals to the rows that it sums, none of them a total. Where small counts make a match by chance
        likely, it is left out.
    """
    table = np.asarray(table, float)
    left, totals = np.arange(len(table)), {}
    if slack is None:
        slack, table = np.zeros_like(table), np.round(table).astype(np.int64)
        for direction in (1, -1):
            totals |= _runs(table, left[::direction])
            left = np.setdiff1d(left, list(totals))
        totals |= _block(table, left)
        left = np.setdiff1d(left, list(totals))
    for row in _sums_of_all(table[left], slack[left]):
        totals[int(left[row])] = np.delete(left, row)
    return totals


def doubt_of_totals(shares, sizes, bag_labels=None):
    """A sentence where a bag only has the name of a total, else ""; ValueError where a bag is the sum of others.

    Parameters
    ----------
    shares : ndarray, shape (n_bags, n_classes)
    sizes : ndarray of int, shape (n_bags,)
    bag_labels : pandas.Index, optional
        Names of the bags; numbers if not given.

    Returns
    -------
    str
    """
    used = np.flatnonzero(sizes > 0)
    table = np.column_stack([sizes, sizes[:, None] * shares[:, 1:]])[used]
    names, named = used if bag_labels is None else bag_labels[used], []
    if len(used) <= MOST_NAMES:
        texts = [name for name in names if isinstance(name, str)]
        named = [t for t in texts if named_totals([t])[0]]
    if len(used) < 3:
        return ""
    whole = np.abs(table - np.round(table)).max() < 1e-6 * table[:, 0].max()
    slack = np.full(table.shape, 0.5)
    slack[:, 0] = 0  # sizes are exact
    totals = sums_of_rows(table, None if whole else slack)
    if totals:
        row = max(totals, key=lambda k: table[k, 0])
        same = [k for k in totals if totals[k] is totals[row]]
        is_sum = f"bag {quote(names[row])} is"
        if len(same) > 1:
            is_sum = f"bags {', '.join(quote(names[k]) for k in same[:5])} together are"
        raise ValueError(
            f"{is_sum} the sum of {len(totals[row])} other bags ({table[same, 0].sum():.0f} instances): a row of "
            "totals is no bag. Leave out its rows; check_margins finds such rows in published tables"
        )
    if not named:
        return ""
    return f"bag {named[0]!r} has the name of a total, but is not the sum of the others: leave it out if it is one"


def _evidence(table, slack=0):
    """Logarithm of the number of possible rows of each size, of which one would match by chance."""
    # Of sizes such as 100, 200, 500 only multiples of 100 are possible.
    unit = np.maximum(np.gcd.reduce(np.round(table).astype(np.int64)), 1)
    unit = np.where(np.any(slack), 1, unit)
    return np.sum(np.log((1 + table / unit) / (1 + 2 * slack)), axis=-1)


def _sums_of_all(table, slack):
    """Find the rows, of three or more, that are the sum of all other rows."""
    if len(table) < 3:
        return []
    off = np.abs(2 * table - table.sum(axis=0))
    same = (off <= slack.sum(axis=0) + 1e-9 * table.sum(axis=0)).all(axis=1)
    return np.flatnonzero(same & (_evidence(table, slack) > np.log(SURE))).tolist()


def _ends_run(table):
    """Mask of the rows that may be the sum of rows right before them; False is sure of the first total."""
    factors = np.random.RandomState(0).randint(1, 2**31, size=table.shape[1])
    row = table @ factors.astype(np.int64)  # overflow is harmless: sums stay equal
    ends = np.append(0, np.cumsum(row))
    return np.isin(ends[:-1] - row, ends)


def _block(table, rows):
    """Find the first or last rows, of these, whose sum is that of the rows of the longer rest."""
    ends = np.cumsum(table[rows], axis=0)
    n = len(rows)
    if n < 5:
        return {}
    half = np.vstack([table, ends[-1] // 2])
    if _evidence(half)[-1] <= np.log(SURE * n):
        return {}
    for k in 1 + np.flatnonzero((2 * ends == ends[-1]).all(axis=1)):
        short, long = sorted((rows[:k], rows[k:]), key=len)
        if 1 < len(short) < len(long):
            return dict.fromkeys(short.tolist(), long)
    return {}


def _runs(table, order):
    """Find the rows that are the sum of two or more rows right before them in this order, without earlier totals."""
    totals, used = {}, []
    before, total = {tuple(0 * table[0]): 0}, 0 * table[0]
    sure = _evidence(table) > np.log(SURE * len(table))
    if not (sure[order] & _ends_run(table[order])).any():
        return totals
    for row in order.tolist():
        start = before.get(tuple(total - table[row]), len(used))
        if sure[row] and start <= len(used) - 2:
            totals[row] = np.sort(used[start:])
            continue
        used.append(row)
        total = total + table[row]
        before[tuple(total)] = len(used)
    return totals
