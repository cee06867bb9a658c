"""Checks of arguments that every room uses, and values read by the keys of the bags."""

from numbers import Integral

import numpy as np
import pandas as pd


def refuse_mask(name, values):
    """A mask would be lost without a word."""
    if np.ma.is_masked(values):
        raise ValueError(
            f"{name} is a masked array with masked entries; drop these instances, or fill them"
        )


def check_whole(name, value, least=1, most=None):
    """A number that counts something, as an int.

    Parameters
    ----------
    name : str
        Of the argument, for the message.
    value : int
    least : int, default 1
    most : int, optional

    Returns
    -------
    int

    Raises
    ------
    ValueError
        If it is no whole number, or out of range.
    """
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or value < least or (most is not None and value > most):
        limit = f"from {least}" if most is None else f"from {least} to {most}"
        raise ValueError(f"{name} must be a whole number {limit}, got {value!r}")
    return int(value)


def check_flag(name, value, also=()):
    """ValueError where an argument is neither True nor False, nor one of ``also``."""
    if not isinstance(value, bool | np.bool_) and not any(value is v for v in also):
        known = ", ".join([*map(str, also), "True or False"])
        raise ValueError(f"{name} must be {known}, got {value!r}")


def numbers(name, values):
    """Values of the argument of this name as an array of floats, or a ValueError; none may be masked."""
    refuse_mask(name, values)
    try:
        given = np.asarray(values)
        if given.dtype.kind in "cmM":
            raise TypeError(f"real ones, got {given.dtype}")
        return given.astype(float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be numbers: {error}") from error


def keyed_rows(name, values, n_bags, bag_labels=None):
    """What a user gives for each bag beside the proportions, in the order of the rows of these.

    Parameters
    ----------
    name : str
        Of the argument, for messages.
    values : array-like, Series, DataFrame or dict
        An array is read by position. What has keys is matched by them: by the names of the bags where ``proportions``
        has names, else by the numbers of its rows.
    n_bags : int
        Rows of ``proportions``.
    bag_labels : pandas.Index, optional
        Their keys, where they have names.

    Returns
    -------
    ndarray of float
        Its first axis is that of the rows of ``proportions``.

    Raises
    ------
    ValueError
        If the keys are not those of ``proportions``, or an entry is masked or no number.
    """
    refuse_mask(name, values)
    if isinstance(values, dict):
        values = pd.Series(values, dtype=object)
    if isinstance(values, pd.Series | pd.DataFrame):
        keys = pd.RangeIndex(n_bags) if bag_labels is None else bag_labels
        if not values.index.is_unique or set(values.index) != set(keys):
            rows = "bags" if bag_labels is not None else "row numbers"
            raise ValueError(
                f"{name} is matched by its keys, which must be the {rows} of proportions, "
                f"such as {keys.tolist()[:3]}, got {values.index.tolist()[:3]}; "
                f"to match by position, pass {name} as an array"
            )
        values = values.reindex(keys)
        if isinstance(values, pd.Series):
            values = values.tolist()
    return numbers(name, values)
