"""Shares that are not keyed by bag: one for each row, as after a merge, or under row numbers that are off by one."""

import numpy as np
import pandas as pd

from ._keys import places_of, quote

#: Shares that are the same in all rows of each bag are shares of rows, unless rows in random order are so likely.
CHANCE = 1e-3


def refuse_shares_of_rows(proportions, matrix, keys, bags, values, X=None):
    """Refuse shares that are given for each row and would be read as keyed by bag.

    Where each key names a bag, the keys are believed. Else the shares are read by row, too, by the index of the rows or
    by their order. They are shares of rows if they are then the same in all rows of each bag, which shares of bags are
    by chance only, or if they have the very index of the rows.

    Parameters
    ----------
    proportions : array-like, Series, dict or DataFrame
        As given, for the message.
    matrix : ndarray, shape (n_shares, n_classes)
    keys : pandas.Index or None
        Of the shares.
    bags : array-like, shape (n_rows,)
        As given.
    values : ndarray, shape (n_rows,)
        The bags, checked.
    X : object, optional
        Its index is that of the rows, where the bags have none.

    Raises
    ------
    ValueError
    """
    codes, names = pd.factorize(values)
    n_rows, n_bags, n_shares = len(codes), len(names), len(matrix)
    names = pd.Index(names, tupleize_cols=False)
    by_bag = None if keys is None else places_of(keys, names)
    named = by_bag is not None and bool((by_bag >= 0).all())
    if named and n_bags == n_shares and n_bags < n_rows:
        return
    index = index_of_rows(bags, X)
    places = places_by_row(keys, index, n_shares, n_rows)
    if places is None:
        return
    every = bool((places >= 0).all())
    if named and every and same(matrix[by_bag[codes]], matrix[places]).all():
        return  # bags are numbered as rows are
    by_index = (
        keys is not None
        and index is not None
        and bool((places_of(keys, index) >= 0).any())
    )
    pandas = isinstance(proportions, pd.Series | pd.DataFrame)
    of_table = pandas and by_index and every and keys.name == index.name
    if n_bags == n_rows:
        if of_table and named:
            refuse_two_readings(matrix, by_bag[codes], places, values)
    elif are_of_rows(matrix, places, codes, of_table):
        odd = first_change(matrix, places, codes)
        labels = bool(np.isin(matrix, (0, 1)).all())
        more, how = n_shares > n_rows, "mean" if labels else "first"
        line = line_per_bag(proportions, bags, by_index, more, how)
        advice = f": give one share per bag, such as {line}"
        if odd is not None and not labels:
            advice = differing_shares(matrix[places[list(odd)]], values[odd[0]])
        raise ValueError(
            f"proportions has {n_shares} entries, one per instance, for only {n_bags} bags{advice}"
        )


def are_of_rows(matrix, places, codes, of_table):
    """True for shares that were read by row and are shares of rows.

    Parameters
    ----------
    matrix : ndarray, shape (n_shares, n_classes)
    places : ndarray of int, shape (n_rows,)
        Of `places_by_row`.
    codes : ndarray of int, shape (n_rows,)
        The bags of the rows.
    of_table : bool
        Whether the shares have the index of the rows.

    Returns
    -------
    bool
    """
    as_many, n_bags = len(matrix) == len(codes), codes.max() + 1
    many = as_many and 2 * n_bags < len(codes)
    if first_change(matrix, places, codes) is not None:
        labels = np.isin(matrix, (0, 1)).all()
        return bool(many and labels) or (of_table and as_many)
    there = np.flatnonzero(places >= 0)
    chance = chance_of_no_change(matrix[places[there]], codes[there])
    return many or chance < CHANCE


def differing_shares(shares, bag):
    """Message about two rows of a bag with different shares."""
    first, second = map(share_of, shares)
    return (
        f", and the shares of bag {quote(bag)} differ: {first} and {second}. A bag has one share; if these are "
        'shares of bags after all, name their index: proportions.rename_axis("bag")'
    )


def index_of_rows(bags, X):
    """The index of the rows, flat, by the bags or by X; None where neither has one."""
    frames = [v for v in (bags, X) if isinstance(v, pd.Series | pd.DataFrame)]
    return frames[0].index.to_flat_index() if frames else None


def places_by_row(keys, index, n_shares, n_rows):
    """The entry of the shares for each row, by index or, if there are as many, by order; None if there is neither."""
    if keys is not None and index is not None:
        places = places_of(keys, index)
        if (places >= 0).any():
            return places
    return np.arange(n_rows) if n_shares == n_rows else None


def same(one, other):
    """Mask of the rows that are equal in two arrays of shares, NaN being equal to NaN."""
    return ((one == other) | (np.isnan(one) & np.isnan(other))).all(axis=1)


def first_change(matrix, places, codes):
    """The first two rows of one bag that have different shares, or None."""
    there = np.flatnonzero(places >= 0)
    _, first, code = np.unique(codes[there], return_index=True, return_inverse=True)
    leader = there[first[code]]
    odd = np.flatnonzero(~same(matrix[places[leader]], matrix[places[there]]))
    return (int(leader[odd[0]]), int(there[odd[0]])) if odd.size else None


def chance_of_no_change(shares, codes):
    """The probability that rows in random order have the same shares in all rows of each bag."""
    often = np.unique(shares, axis=0, return_counts=True)[1] / len(shares)
    return float(np.sum(often**2) ** (len(codes) - len(np.unique(codes))))


def refuse_two_readings(matrix, by_bag, by_row, values):
    """Refuse shares of bags of one row each, where row numbers name bags, too, and mean other shares."""
    one, other = matrix[by_bag], matrix[by_row]
    i = int(np.argmax(~same(one, other)))
    raise ValueError(
        f"proportions can be read by bag and by row, since its keys are bags and rows: bag {quote(values[i])} has "
        f"{share_of(one[i])} by bag and {share_of(other[i])} by row. If it is a column of the table of X, pass "
        'proportions.set_axis(bags); if it is keyed by bag, name its index: proportions.rename_axis("bag")'
    )


def share_of(row):
    """The share of the second of two classes, or the shares of all, for a message."""
    return f"{row[1]:.6g}" if len(row) == 2 else [round(v, 6) for v in row.tolist()]


def line_per_bag(proportions, bags, by_index, more, how):
    """The line that makes one share per bag of shares per row."""
    table = "proportions"
    if isinstance(proportions, dict):
        flat = np.ndim(next(iter(proportions.values()))) == 0
        rows = "pd.DataFrame.from_dict(proportions, orient='index')"
        table = "pd.Series(proportions)" if flat else rows
    elif hasattr(proportions, "to_pandas"):
        table = "proportions.to_pandas()"
    elif not isinstance(proportions, pd.Series | pd.DataFrame):
        table = (
            f"pd.{'Series' if np.ndim(proportions) == 1 else 'DataFrame'}(proportions)"
        )
    by = "bags"
    if isinstance(bags, pd.Series) and not by_index:
        by = "bags.to_numpy()"
    elif by_index and not isinstance(bags, pd.Series):
        by = "pd.Series(bags, X.index)"
    if by_index and more:
        table += ".loc[bags.index]" if by == "bags" else ".loc[X.index]"
    return f"{table}.groupby({by}).{how}()"


def is_default(keys):
    """True for keys that are the numbers that pandas gives to rows without names."""
    return isinstance(keys, pd.RangeIndex) and keys.name is None and keys.start == 0


def is_off_by_one(matrix, keys, sizes):
    """True for row numbers that are meant to be one less than the numbers of bags, which begin at 1.

    Then bag 0 is the only one without instances, and the last row is that of no bag, such as a row of totals. The
    counts decide: shares times sizes are whole numbers where each row is that of its bag.

    Parameters
    ----------
    matrix : ndarray, shape (n_bags, n_classes)
    keys : pandas.Index or None
    sizes : ndarray of int, shape (n_bags,)

    Returns
    -------
    bool or None
        None where the counts do not decide.
    """
    numbered = keys is None or is_default(keys)
    if not numbered or len(sizes) < 3 or sizes[0] or not sizes[1:].all():
        return False
    own, before = (whole(sizes[1:], p).mean() for p in (matrix[1:], matrix[:-1]))
    if max(own, before) > 0.9 and min(own, before) < 0.5:
        return bool(before > own)
    return None


def whole(sizes, shares):
    """Mask of the bags whose shares are counts of their instances, shape (n_bags,)."""
    counts = sizes[:, None] * shares
    return (np.abs(counts - np.round(counts)) <= 1e-6 * sizes[:, None]).all(axis=1)
