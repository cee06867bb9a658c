"""Tables of other libraries: Polars and Arrow as pandas, and what has not been read yet."""

import pandas as pd

#: What reads the rows of an object that holds none yet, by a method that it has: of Dask, Spark, Polars, Arrow, DuckDB.
READING = {
    "__dask_graph__": "compute()",
    "toPandas": "toPandas()",
    "collect": "collect()",
    "read_all": "read_all()",
    "to_table": "to_table()",
    "fetchdf": "df()",
}


def reading(value):
    """Call that reads the rows of an object which has not read them yet, such as "collect()"; None for any other."""
    calls = (call for method, call in READING.items() if hasattr(type(value), method))
    return next(calls, None)


def refuse_lazy(name, value):
    """Refuse what describes rows and holds none, such as a LazyFrame of Polars, and say how to read them."""
    call = reading(value)
    if call is not None:
        raise ValueError(
            f"{name} is a {type(value).__name__}, whose rows are not read yet: pass {name}.{call}"
        )


def is_foreign(table):
    """True for a table of Polars, Arrow or another library than pandas."""
    return hasattr(table, "to_pandas") and hasattr(table, "columns")


def as_frame(table, columns=None):
    """Convert a table of Polars, Arrow or another library to a DataFrame; return anything else as it is.

    Parameters
    ----------
    table : object
    columns : list, optional
        Those that are needed, of a foreign table.

    Returns
    -------
    object
        A null is NaN in a column of numbers, None in another one.
    """
    if not is_foreign(table):
        return table
    if type(table).__module__.startswith("polars"):  # whose own way needs pyarrow
        names = [c for c in table.columns if columns is None or c in columns]
        values = ((name, table[name].to_numpy()) for name in names)
        # an entry may be a list or a struct
        return pd.DataFrame({n: v if v.ndim == 1 else list(v) for n, v in values})
    if columns is not None and hasattr(table, "column_names"):
        table = table.select([c for c in table.column_names if c in columns])
    return table.to_pandas()
