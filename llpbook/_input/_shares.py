"""Checks of label proportions in every accepted form."""

from typing import NamedTuple

import numpy as np
import pandas as pd

from ._arguments import (
    NotIdentifiableError,
    _holds_text,
    check_bags,
    check_column,
    numbers,
    refuse_mask,
)
from ._elsewhere import refuse_exchanged
from ._keys import READ_AS_MISSING, quote
from ._no_shares import why_no_number, why_outside
from ._rows import is_off_by_one, refuse_shares_of_rows
from ._tables import as_frame, refuse_lazy

#: How far the shares of a row may be from a sum of 1 if each is rounded to a percent.
ROUNDED = 0.005


def refuse_columns(proportions, before=""):
    """Refuse a DataFrame of names and shares, or with one column, and say how to pass it.

    Neither is guessed: a column of shares may have any name.
    """
    if not isinstance(proportions, pd.DataFrame):
        return
    columns = [proportions.iloc[:, i] for i in range(proportions.shape[1])]
    names = [quote(c.name) for c in columns if _holds_names(c)]
    shares = [quote(c.name) for c in columns if _holds_shares(c)]
    if len(columns) == len(shares) == 1:
        raise ValueError(
            "proportions has one column; pass a vector for the share of the positive class, here "
            f"proportions[{shares[0]}], or one column per class"
        )
    if len(names) == 1 and len(shares) == len(columns) - 1 > 0:
        line, reason = f"proportions{before}.set_index({names[0]})", ""
        if len(shares) == 1:
            line += f"[{shares[0]}]"
        elif not sum_to_one(proportions[[c.name for c in columns if _holds_shares(c)]]):
            line += f"[{shares[0]}]"
            reason = f"; the columns {', '.join(shares)} do not sum to 1, so they are not the classes: choose one"
        raise ValueError(
            "proportions must have the names of its bags in the index: if column "
            f"{names[0]} holds them, pass {line}{reason}"
        )


def sum_to_one(shares, rounded=ROUNDED):
    """True if the rows of shares sum to 1, up to rounding of each share; rows with NaN are left out."""
    matrix = np.asarray(shares, dtype=float)
    miss = np.abs(matrix.sum(axis=1) - 1)
    return not (miss > rounded * matrix.shape[1] + 1e-9).any()


def _holds_names(column):
    """True if a column holds text, or whole numbers that differ: names of bags."""
    if not pd.api.types.is_numeric_dtype(column):
        return _holds_text(column)
    whole = column.notna().all() and (column == column.round()).all()
    return whole and column.is_unique and not _holds_shares(column)


def _holds_shares(column):
    """True if all numbers in a column are in [0, 1]."""
    return (
        pd.api.types.is_numeric_dtype(column)
        and not (column * (1 - column) < -SLACK).any()
    )


#: How far a share may be outside of [0, 1], and a row's sum from 1: rounding, in single precision too.
SLACK = 1e-6
#: How far the sum of a row is from 1 by arithmetic alone.
LAST_BITS = 1e-12


def check_proportions(proportions, empty_rows=False, noisy=False, remedy=""):
    """Read label proportions in any of the accepted forms.

    Parameters
    ----------
    proportions : array-like, Series, dict or DataFrame
        ``(n_bags,)``: the share of the positive class, classes 0 and 1. ``(n_bags, n_classes)``: one row per bag,
        classes 0, 1, …. A Series or dict is keyed by bag; its values are shares of the positive class, or (dict) rows.
        A DataFrame is keyed by bag and its columns are the classes, in their order; of two, the second is the positive.
    empty_rows : bool, default False
        Allow rows of NaN, for bags without instances.
    noisy : bool, default False
        True if noise was added to the shares, so that they may lie outside of [0, 1].
    remedy : str, default ""
        End of the message for a share outside of [0, 1], unless the shares look like percent or counts.

    Returns
    -------
    matrix : ndarray, shape (n_bags, n_classes)
    classes : ndarray, shape (n_classes,)
    bag_labels : pandas.Index or None
        The keys; None for an array, whose rows are the bags 0, 1, ….

    Raises
    ------
    ValueError
        If a share is not a number in [0, 1], a row does not sum to 1 (up to 1e-6), a key or class occurs twice, there
        are fewer than two classes, or there is no bag.
    """
    refuse_mask("proportions", proportions)
    values, keys, classes = _read_table(proportions)
    matrix = _read_numbers(values)
    if matrix.ndim not in (1, 2) or len(matrix) == 0 or matrix.shape[1:] == (1,):
        raise ValueError(
            "proportions must have shape (n_bags,), the shares of the positive class, or (n_bags, n_classes), one "
            f"column per class, got {matrix.shape}"
        )
    _refuse_outside(matrix, keys, classes, empty_rows, noisy, remedy)
    matrix = matrix if noisy else matrix.clip(0, 1)
    if matrix.ndim == 1:
        matrix = np.column_stack([1 - matrix, matrix])
    total = matrix.sum(axis=1, keepdims=True)
    miss = np.abs(total - 1)
    # Counts of a bag sum to its size. Rows that miss 1 by the last bits are left as they are.
    np.divide(matrix, total, out=matrix, where=(miss > LAST_BITS) & (miss <= SLACK))
    _refuse_sums(matrix, keys, classes)
    classes = np.arange(matrix.shape[1]) if classes is None else classes
    if pd.isna(classes).any() or len(set(classes)) < len(classes):
        raise ValueError(
            f"proportions must have one named column per class, got {classes.tolist()}"
            + f"; {READ_AS_MISSING}" * bool(pd.isna(classes).any())
        )
    return matrix, classes, keys


def _read_table(proportions):
    """Values, keys and classes of proportions in any form; keys and classes None where there are none."""
    keys, classes, values = None, None, proportions
    refuse_lazy("proportions", values)
    values = as_frame(values)
    refuse_columns(values, ".to_pandas()" * (values is not proportions))
    _refuse_named_rows(values)
    if isinstance(values, dict):
        keys = pd.Index(list(values), tupleize_cols=False)
        values = list(values.values())
    elif isinstance(values, pd.Series | pd.DataFrame):
        keys = values.index.to_flat_index()
        classes = values.columns.to_numpy() if values.ndim == 2 else None
    if keys is not None and not (keys.is_unique and keys.notna().all()):
        bad = keys[keys.duplicated() | keys.isna()][0]
        raise ValueError(
            "proportions must name each bag once, got more than one entry or a missing value: "
            f"{quote(bad)}{_why_twice(values, keys, bad)}"
        )
    return values, keys, classes


def _refuse_named_rows(values):
    """Refuse rows that name their classes, such as those of value_counts: their order may differ between bags."""
    rows = values.values() if isinstance(values, dict) else values
    if not isinstance(values, dict | pd.Series | list | tuple) or not len(values):
        return
    if not all(isinstance(row, dict | pd.Series) for row in rows):
        return
    line = "list(proportions), range(len(proportions))"
    if isinstance(values, dict):
        line = "list(proportions.values()), list(proportions)"
    elif isinstance(values, pd.Series):
        line = "list(proportions), proportions.index"
    classes = sorted({name for row in rows for name in dict(row)}, key=str)
    raise ValueError(
        f"proportions has a {type(next(iter(rows))).__name__} per bag, whose classes may stand in another order in "
        f"each: pass pd.DataFrame({line}).fillna(0)[[{', '.join(map(quote, classes))}]], the positive class last"
    )


def _why_twice(values, keys, bad):
    """Advice about a key that occurs twice."""
    if np.ndim(bad) == 0 and pd.isna(bad):
        return (
            "; leave out the row if it is without a name: proportions[proportions.index.notna()]. But "
            + READ_AS_MISSING
        )
    rows = values[keys == bad].to_numpy().reshape(np.sum(keys == bad), -1)
    other = rows[np.argmax((rows != rows[0]).any(axis=1))]
    if (rows == rows[0]).all():
        return "; if it stands in each row of the bag, pass proportions.groupby(level=0).first()"
    return (
        f", once with {rows[0].tolist()} and once with {other.tolist()}: leave out the wrong one, or, if they are two "
        "places, key both proportions and bags by a second column, too"
    )


def _read_numbers(values):
    """`numbers` of proportions; what is none is explained."""
    try:
        return numbers("proportions", values)
    except ValueError as error:
        why = why_no_number(values)
        if not why:
            raise
        raise ValueError(f"proportions must be numbers: {why}") from error


def _refuse_outside(matrix, keys, classes, empty_rows, noisy, remedy):
    """Refuse what is no number in [0, 1]; noisy shares may lie outside, and a row may be NaN where this is said."""
    unknown = np.isnan(matrix.reshape(len(matrix), -1)).all(axis=1) & empty_rows
    limit = np.inf if noisy else SLACK
    outside = ~((matrix >= -limit) & (matrix <= 1 + limit))
    outside[unknown] = False
    if outside.any():
        row, *column = (int(i) for i in np.argwhere(outside)[0])
        bag = quote(row if keys is None else keys[row])
        column = column[0] if column else 0
        value = matrix[row].reshape(-1)[column]
        why = why_outside(matrix, row, column, classes)
        hint = (
            remedy if remedy and np.isfinite(value) and -1 < value < 2 else f"; {why}"
        )
        raise ValueError(
            f"proportions must lie in [0, 1], got {value} for bag {bag}{hint}"
        )


def _refuse_sums(matrix, keys, classes):
    """Refuse rows that do not sum to 1."""
    off = np.flatnonzero(np.abs(matrix.sum(axis=1) - 1) > SLACK)
    if not off.size:
        return
    bag = quote(off[0] if keys is None else keys[off[0]])
    total = f"proportions of bag {bag} sum to {matrix[off[0]].sum():.6g}, not 1"
    if not matrix[off[0]].any():
        rest = "[(proportions != 0).any(axis=1)]"
        line = "[~proportions.any(axis=1)] = np.nan" if keys is None else rest
        raise ValueError(
            f"{total}: nobody was counted there. Leave out such bags, proportions{line}, and the rows that are in them"
        )
    if sum_to_one(matrix):
        raise ValueError(
            f"{total}; if that is rounding, pass llpbook.proportions.restore_counts(bags, proportions).proportions"
        )
    whole = matrix[~np.isnan(matrix).any(axis=1)]
    twice = np.flatnonzero(
        (np.abs(2 * whole - whole.sum(axis=1, keepdims=True)) <= SLACK).all(axis=0)
    )
    if twice.size and whole.shape[1] > 2:
        name = quote(twice[0] if classes is None else classes[twice[0]])
        raise ValueError(f"{total}; column {name} is the sum of the others: drop it")
    columns = range(matrix.shape[1]) if classes is None else classes
    if sum_to_one(matrix.T):
        raise ValueError(
            f"{total}, but each column does: a row must be a bag, and a column a class: pass proportions.T, or, if "
            "pd.crosstab made the table, normalize='index'"
        )
    if abs(np.nansum(matrix) - 1) < SLACK:
        raise ValueError(
            f"{total}, but all numbers do: divide each row by its sum, as pd.crosstab does by normalize='index'"
        )
    raise ValueError(
        f"{total}, which is no rounding: are the columns {', '.join(map(quote, columns))} the classes? If a class "
        f"is missing, add it, P.assign(rest=1 - P.sum(axis=1)); if each column is a share of its own, pass one, "
        f"P[{quote(columns[0])}]{_if_ranges(matrix, columns, classes)}"
    )


def _if_ranges(matrix, columns, classes):
    """Say what to pass where two columns are the ends of a range; empty where they are not."""
    if matrix.shape[1] != 2 or (matrix[:, 0] > matrix[:, 1]).any():
        return ""
    low, high = (f"P[{':, ' * (classes is None)}{quote(c)}]" for c in columns)
    return (
        f"; if they are the least and the most that a share can be, pass ({low} + {high}) / 2, and "
        f"CountLogistic(proportion_errors=({high} - {low}) / 12**0.5)"
    )


def in_order_of(wanted, matrix, classes):
    """Order the columns of proportions by the wanted classes; columns without names are in this order."""
    present, wanted = pd.Index(classes).tolist(), pd.Index(wanted).tolist()
    named, unnamed = set(present) == set(wanted), present == list(range(len(present)))
    if len(present) != len(wanted) or not (named or unnamed):
        raise ValueError(
            f"proportions has the classes {present}, and must have {wanted}"
        )
    return matrix[:, [present.index(c) for c in wanted]] if named else matrix


class Matched(NamedTuple):
    """Shares and the bags of the rows.

    Attributes
    ----------
    matrix : ndarray, shape (n_bags, n_classes)
    classes : ndarray, shape (n_classes,)
    keys : pandas.Index or None
    codes : ndarray of int, shape (n_rows,)
        Rows of ``matrix``.
    """

    matrix: np.ndarray
    classes: np.ndarray
    keys: pd.Index | None
    codes: np.ndarray


def match_bags(proportions, bags, n_rows, X=None, *, noisy=False):
    """Shares and bags, checked, and matched by the keys or the row numbers of the shares.

    Parameters
    ----------
    proportions : array-like, Series, dict or DataFrame
        See `check_proportions`; the row of a bag without instances may be NaN.
    bags : array-like, shape (n_rows,)
    n_rows : int
    X : object, optional
        As given, see `check_column`.
    noisy : bool, default False

    Returns
    -------
    Matched

    Raises
    ------
    ValueError
        If either is malformed, there is a share in each row, or a bag has none.
    """
    values = check_column("bags", bags, n_rows, X)
    refuse_exchanged(values, proportions)
    matrix, classes, keys = check_proportions(proportions, True, noisy)
    refuse_shares_of_rows(proportions, matrix, keys, bags, values, X)
    codes = check_bags(values, n_rows, len(matrix), keys)
    return Matched(matrix, classes, keys, codes)


def doubt_of_numbers(matched, sizes):
    """Message where row numbers of shares may be off by one; ValueError where they are.

    Parameters
    ----------
    matched : Matched
    sizes : ndarray of int, shape (n_bags,)
        Instances of each bag.

    Returns
    -------
    str
        Empty where there is no doubt.
    """
    off = is_off_by_one(matched.matrix, matched.keys, sizes)
    last = len(sizes) - 1
    if matched.keys is None and last > 8 and sizes[:2].all() and not sizes[2:].any():
        return (
            f"bags holds only 0 and 1 of the {last + 1} rows of proportions. If these are labels of instances, pass "
            "the bag of each instance in their place: fit(X, bags, proportions)"
        )
    if off is False or (off is None and matched.keys is None):
        return ""
    read = f"bags are numbered from 1 to {last}, and the {last + 1} rows of proportions are those of bags 0 to {last}"
    if off:
        raise ValueError(
            f"{read}: the counts say that each row is that of the bag with the next number. Name the bags: "
            f"proportions[:{last}].set_axis(range(1, {last + 1})), or set_index with their column"
        )
    return (
        f"{read}, so that bag 0 has no instances. If the rows are those of bags 1 to {last} and a row of totals, name "
        "the bags by set_index"
    )


def fill_empty_rows(matrix, codes, keys):
    """Replace the NaN of bags without instances by equal shares; refuse NaN in other rows.

    Parameters
    ----------
    matrix : ndarray, shape (n_bags, n_classes)
        Of `check_proportions`.
    codes : ndarray of int
        The rows of bags with instances, in any number and order.
    keys : pandas.Index or None

    Returns
    -------
    ndarray, shape (n_bags, n_classes)

    Raises
    ------
    ValueError
        If the row of a bag with instances is NaN.
    """
    empty = np.isnan(matrix).any(axis=1)
    if empty[codes].any():
        bag = codes[empty[codes]][0]
        name = quote(bag if keys is None else keys[bag])
        why = why_outside(matrix, bag, 0, None)
        raise ValueError(
            f"proportions must lie in [0, 1], got nan for bag {name}, which has instances; {why}"
        )
    # Of no influence: no instance is there.
    return np.where(empty[:, None], 1 / matrix.shape[1], matrix)


def require_rank(proportions, weights):
    """Refuse proportions that cannot tell the classes apart.

    Parameters
    ----------
    proportions : ndarray, shape (n_bags, n_classes)
    weights : ndarray, shape (n_bags,)

    Raises
    ------
    NotIdentifiableError
        If the weighted proportions have a rank below ``n_classes``.
    """
    root = np.sqrt(weights / weights.max())[:, None]
    R = np.linalg.qr(root * proportions, mode="r")
    values = np.linalg.svd(R, compute_uv=False)
    rank = int((values > 1e-8 * values[0]).sum())
    if rank < proportions.shape[1]:
        raise NotIdentifiableError(
            f"proportions has rank {rank} over the bags in use, which cannot tell "
            f"{proportions.shape[1]} class means apart: shares must differ between "
            "bags, and every class must occur"
        )
