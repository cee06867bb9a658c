"""Tables that each step of scikit-learn can read, from tables of any library."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from .._input import as_frame, quote, refuse_lazy
from ..base import warn


def plain_table(table: Any, *, codes: Sequence[str] = ()) -> pd.DataFrame:
    """Convert a table of any library to a DataFrame that each step of scikit-learn can read.

    Parameters
    ----------
    table : DataFrame
        Of pandas, with columns of any type, of Polars, or a table of Arrow.
    codes : list of str, default ()
        Columns of numbers that are names, such as the number of a district.

    Returns
    -------
    DataFrame
        Numbers are floats, NaN where one is missing. Text, categories, truth values and codes are text, NaN where one
        is missing: `OneHotEncoder` gives missing values a column of their own. A column without any value is of this
        kind, which imputers read, too. Times are left as they are; dates without a time and periods are text.

    Warns
    -----
    LLPWarning
        Of columns of times, dates and periods: an encoder would make a column of each of their values.

    Raises
    ------
    ValueError
        If the table has no rows yet, or no such column.

    Examples
    --------
    >>> import pandas as pd
    >>> from llpbook.datasets import plain_table
    >>> people = pd.DataFrame({"age": [31, None], "job": ["cook", None], "district": [101, 102]})
    >>> people = people.convert_dtypes()  # types with <NA>, at which encoders fail
    >>> plain_table(people, codes=["district"]).to_dict("list")
    {'age': [31.0, nan], 'job': ['cook', nan], 'district': ['101', '102']}

    In a pipeline the step does the same for new instances.

    >>> from sklearn.preprocessing import FunctionTransformer
    >>> step = FunctionTransformer(plain_table, kw_args={"codes": ["district"]})
    """
    refuse_lazy("table", table)
    frame = as_frame(table)
    if not isinstance(frame, pd.DataFrame):
        raise ValueError(f"table must be a table, got {type(table).__name__}")
    for code in codes:
        if code not in frame.columns:
            raise ValueError(
                f"codes holds {code!r}, which is no column of the table; it has {frame.columns.tolist()}"
            )
    columns = [frame.iloc[:, i] for i in range(frame.shape[1])]
    kinds = [pd.api.types.infer_dtype(column, skipna=True) for column in columns]
    times = [n for n, k in zip(frame, kinds, strict=True) if k.startswith(TIMES)]
    if times:
        warn(
            f"{', '.join(map(quote, times))} of the table holds times or dates, of which OneHotEncoder makes a column "
            "per value: first make numbers of them, such as the days since a fixed date"
        )
    columns = [
        _plain_column(column, kind, column.name in codes)
        for column, kind in zip(columns, kinds, strict=True)
    ]
    plain = pd.concat(columns, axis=1) if columns else frame
    return plain.set_axis(frame.columns, axis=1)


#: Kinds of columns of objects, as pandas names them, that hold numbers.
NUMBERS = ("integer", "floating", "mixed-integer-float", "decimal")
#: Beginnings of the kinds that hold times.
TIMES = ("date", "time", "period")


def _plain_column(column, kind, is_code):
    """A column of floats, or of text; of times as given."""
    if kind.startswith(("datetime", "timedelta")):
        return column
    number = pd.api.types.is_numeric_dtype(column) or kind in NUMBERS
    there = column.notna().to_numpy(dtype=bool)
    if number and there.any() and kind != "boolean" and not is_code:
        values = np.full(len(column), np.nan)
        values[there] = column[there].to_numpy(dtype=float)
    else:
        values = np.full(len(column), np.nan, dtype=object)
        values[there] = [_text(v) for v in column[there].tolist()]
    return pd.Series(values, column.index, values.dtype)


def _text(value):
    """A value as text: a number that is whole without a decimal point."""
    whole = isinstance(value, float) and value.is_integer()
    return str(int(value) if whole else value)
