"""Saved models hold arrays and builtins, which load under any version of pandas and without pyarrow."""

import numpy as np
import pandas as pd


def plain_keys(keys):
    """Names of bags as an array of numbers, dates, or objects that are builtins.

    Parameters
    ----------
    keys : pandas.Index

    Returns
    -------
    ndarray, shape (n_bags,)
        A `Period` or an `Interval` has no builtin that is equal to it, and stays what it is.
    """
    if isinstance(keys.dtype, np.dtype) and keys.dtype.kind in "biufM":
        return keys.to_numpy()
    return np.fromiter(map(_plain_key, keys.tolist()), dtype=object, count=len(keys))


def _plain_key(key):
    if isinstance(key, tuple):
        return tuple(map(_plain_key, key))
    if isinstance(key, pd.Timestamp) and key.nanosecond == 0:
        return key.to_pydatetime()
    return key.item() if isinstance(key, np.generic) else key


def plain(value):
    """Turn a parameter with keys into a dict, and any other column or table into an array, for a saved model."""
    if isinstance(value, pd.Series | pd.DataFrame):
        rows = value.to_numpy(dtype=object).tolist()
        return dict(zip(plain_keys(value.index).tolist(), rows, strict=True))
    foreign = hasattr(value, "to_numpy") or hasattr(value, "__arrow_c_stream__")
    return np.asarray(value) if foreign else value


class StoredTable:
    """Attribute with a table: a DataFrame for its reader, columns in a saved model."""

    def __set_name__(self, owner, name):
        self.name = name

    def __get__(self, model, owner=None):
        if model is None:
            return self
        if self.name not in vars(model):
            raise AttributeError(f"{type(model).__name__} has no table {self.name!r}")
        return pd.DataFrame(vars(model)[self.name])

    def __set__(self, model, table):
        columns = {name: column.to_numpy() for name, column in table.items()}
        vars(model)[self.name] = columns


class StoredShares:
    """Mixin for estimators with ``proportions`` and ``bag_sizes``, which are saved without objects of pandas."""

    def __getstate__(self):
        state = {name: plain(value) for name, value in vars(self).items()}
        if isinstance(self.proportions, pd.DataFrame):
            state["classes"] = self.proportions.columns.tolist()
        return state

    def __setstate__(self, state):
        shares = state["proportions"]
        if "classes" in state:
            names = state["classes"]
            shares = pd.DataFrame.from_dict(shares, "index", columns=names)
        own = {k: v for k, v in state.items() if k != "classes"}
        vars(self).update(own | {"proportions": shares})
