"""Checks of arguments given per instance or per bag, their errors, and the addresses of pages that explain them."""

import re
import warnings
from contextlib import contextmanager
from numbers import Integral
from threading import Lock
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils import check_array

from ._keys import READ_AS_MISSING, explain_key, places_of, quote
from ._tables import as_frame, refuse_lazy


class NotIdentifiableError(ValueError):
    """The proportions cannot answer the question, however many instances there are.

    Examples
    --------
    >>> from llpbook import MeanMap, NotIdentifiableError
    >>> try:
    ...     MeanMap().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1], [0.5, 0.5])
    ... except NotIdentifiableError as error:
    ...     print(str(error)[:40])
    proportions are the same in every bag in
    """


#: The documentation, which `project.urls` of pyproject.toml names too.
SITE = "https://llpbook.github.io/llpbook/stable/"


def page(name):
    """Address of a page of the book.

    Parameters
    ----------
    name : str
        Such as "mean_map", or "intro.html#two-baselines" for a section.

    Returns
    -------
    str
    """
    return f"{SITE}book/{name}" + ".html" * (".html" not in name)


def refuse_mask(name, values):
    """Refuse masked entries, whose mask would be lost silently."""
    if np.ma.is_masked(values):
        raise ValueError(
            f"{name} is a masked array with masked entries; drop these instances, or fill them"
        )


def check_whole(name, value, least=1, most=None):
    """Check a whole number, and return it as an int.

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
        values = ", ".join([*map(str, also), "True or False"])
        raise ValueError(f"{name} must be {values}, got {value!r}")


def numbers(name, values):
    """Convert values to an array of floats; ValueError if one is masked or no number."""
    refuse_mask(name, values)
    refuse_lazy(name, values)
    try:
        original = np.asarray(values)
        if original.dtype.kind in "cmM":
            raise TypeError(f"real ones, got {original.dtype}")
        return original.astype(float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be numbers: {error}") from error


def keyed_rows(name, values, n_bags, bag_labels=None):
    """Bring values per bag into the order of the rows of the proportions.

    Parameters
    ----------
    name : str
        Of the argument, for messages.
    values : array-like, Series, DataFrame or dict
        An array is read by position. A Series, DataFrame or dict is matched by its keys: by the names of the bags where
        ``proportions`` has names, else by the numbers of its rows.
    n_bags : int
        Rows of ``proportions``.
    bag_labels : pandas.Index, optional
        Names of the rows of ``proportions``, where they have names.

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


#: The most rows of proportions that numbers of bags may ask for, and the most for each instance, if that is more.
MOST_ROWS, ROWS_PER_INSTANCE = 10**6, 100


def _check_rows(n_bags, n_instances):
    """Refuse numbers of bags that would need too many rows, such as 10^12."""
    most = max(MOST_ROWS, ROWS_PER_INSTANCE * n_instances)
    if n_bags > most:
        raise ValueError(
            f"bags up to {n_bags - 1} (n_bags={n_bags}) ask for more than {most} rows, the most for {n_instances} "
            "instances: number the bags 0, 1, …, or pass proportions keyed by bag"
        )


def check_codes(bags, n_bags=None, y=None, there=False):
    """Check bags, in the order of y: return them as integers in ``[0, n_bags)``, and ``n_bags``.

    With ``there`` the rows exist already, so their number is not checked.
    """
    refuse_mask("bags", bags)
    refuse_mask("y", y)
    indices = [v.index for v in (bags, y) if isinstance(v, pd.Series)]
    if not all(index.equals(indices[0]) for index in indices):
        raise ValueError("y.index differs from bags.index: both are read by position")
    bags = np.asarray(bags)
    if bags.ndim != 1 or bags.size == 0:
        raise ValueError(
            f"bags must be one-dimensional and not empty, got an array of shape {bags.shape}"
        )
    if bags.dtype.kind not in "iu":
        raise ValueError(
            f"bags must be integers that index the rows of proportions, got dtype {bags.dtype}"
        )
    cure = "" if y is None or len(bags) == np.size(y) else _of_sizes(bags, np.size(y))
    if cure:
        raise ValueError(f"bags has {len(bags)} entries, and y {np.size(y)}{cure}")
    if bags.min() < 0:
        coded = "; pd.factorize and cat.codes write -1 for a missing name"
        raise ValueError(
            f"bags must not be negative, got {bags.min()}{coded * bool(bags.min() == -1)}"
        )
    n_bags = int(bags.max()) + 1 if n_bags is None else check_whole("n_bags", n_bags)
    if bags.max() >= n_bags:
        raise ValueError(
            f"bags holds {bags.max()}, but proportions has no such row (it has {n_bags})"
        )
    if not there:
        _check_rows(n_bags, bags.size)
    return bags.astype(np.intp), n_bags


def check_positional(name, values, X):
    """Refuse a pandas object whose index differs from that of X.

    Values per instance are read by position. Where both have an index, the two must be equal; a `Pipeline` that
    turns a DataFrame into an array prevents this check, unless ``set_output(transform="pandas")`` keeps the index.
    """
    if (
        isinstance(values, pd.Series | pd.DataFrame)
        and isinstance(X, pd.Series | pd.DataFrame)
        and not values.index.equals(X.index)
    ):
        raise ValueError(
            f"{name}.index differs from X.index: {name} is read by position, so give both the same index, or pass "
            f"{name}.to_numpy() if the order is already right"
        )


def as_column(values: Any) -> np.ndarray:
    """NumPy's array of values, one of which may be a tuple, and 1 another than "1"."""
    if isinstance(values, list | tuple):
        kinds = {str if isinstance(v, str) else type(v) for v in values}
        if tuple in kinds or (str in kinds and len(kinds) > 1):  # NumPy makes all text
            values = pd.Series(list(values), dtype=object)
    if isinstance(values, pd.MultiIndex):
        values = values.to_flat_index()
    return np.asarray(values)


def sorted_values(column: Any) -> np.ndarray:
    """Different values of a column, sorted, also where it holds numbers and texts."""
    return np.asarray(pd.factorize(column, sort=True)[1])


def check_column(name, values, n_instances, X=None, kind=None):
    """Check one value per instance: right length, in the order of X, none masked, none missing; return an array.

    Parameters
    ----------
    name : str
        Of the argument, for messages.
    values : array-like, shape (n_instances,)
        Tuples, such as the keys of a groupby, are values like others.
    n_instances : int
    X : object, optional
        Where it is a DataFrame and ``values`` a Series, their indices must agree.

    Returns
    -------
    ndarray, shape (n_instances,)

    Raises
    ------
    ValueError
        If one of these conditions is violated.
    """
    check_positional(name, values, X)
    refuse_mask(name, values)
    refuse_lazy(name, values)
    values = as_frame(values)
    try:
        column = as_column(values)
    except ValueError as error:
        raise ValueError(f"{name} must be one value an instance: {error}") from error
    if column.shape != (n_instances,):
        raise ValueError(
            f"{name} must have one entry for each of the {n_instances} instances in X, got shape {column.shape}"
            + _one_column(name, values, column.shape, n_instances)
        )
    lost = pd.isna(column)
    if lost.any():
        cure = MISSING.get(kind or name, "")
        if any(isinstance(value, pd.Interval) for value in column):
            cure = "; its value is outside of the edges of pd.cut: widen these, or leave out its row"
        raise ValueError(
            f"{name} has a missing value at position {int(np.argmax(lost))}{cure}"
        )
    return column


def _one_column(name, values, shape, n_instances):
    """Say how to make one value per instance of a table; empty where it has other rows."""
    frame = isinstance(values, pd.DataFrame)
    if frame and shape == (n_instances, 1):
        return f": pass {name}[{quote(values.columns[0])}]"
    if name == "counts" and len(shape) == 1 and shape[0] < n_instances:
        return ": they are of the rows. The sizes of the bags are counted from bags"
    if name in ("bags", "groups") and len(shape) == 1:
        return _of_sizes(values, n_instances, name)
    if name != "bags" or len(shape) != 2 or shape[0] != n_instances:
        return ""
    matrix = values if frame else np.asarray(values)
    if np.isin(matrix, (0, 1)).all() and (np.sum(matrix, axis=1) == 1).all():
        line = "bags.idxmax(axis=1)" if frame else "np.argmax(bags, axis=1)"
        return f": if each column marks a bag, pass {line}"
    how = "from_frame(bags)" if frame else "from_arrays(bags.T)"
    return (
        f": if all columns together name a bag, pass pd.MultiIndex.{how}, and proportions keyed by the same columns; "
        "bags that overlap, such as one division by each column, are not possible. Where columns are parts of a row in "
        "several bags, such as of a ZIP code in several counties, put it into the bag that holds most of it"
    )


def _of_sizes(values, n_instances, name="bags"):
    """Say how to make the bag of each instance of the sizes of the bags; empty where values are no sizes."""
    sizes = as_column(values)
    if sizes.dtype.kind not in "iu" or sizes.sum() != n_instances or (sizes < 1).any():
        return ""
    numbered = isinstance(getattr(values, "index", None), pd.RangeIndex)
    named = isinstance(values, pd.Series) and not numbered
    names = f"{name}.index" if named else f"np.arange({len(sizes)})"
    return (
        f": if these are the sizes of {len(sizes)} bags, since their sum is {n_instances}, and the rows stand bag by "
        f"bag, pass np.repeat({names}, {name})"
    )


#: What to do about a missing entry of an argument.
NAMELESS = f"; give it a name, or leave out its row; {READ_AS_MISSING}"
MISSING = {
    "labels": "; mark unknown labels by -1: labels.fillna(-1)",
    **dict.fromkeys(
        ("bags", "groups", "group", "strata", "units", "clusters"), NAMELESS
    ),
}


def _holds_text(column):
    """True if a column holds text that is no number."""
    texts = [value for value in column if isinstance(value, str)]
    return bool(
        pd.to_numeric(pd.Series(texts, dtype=object), errors="coerce").isna().any()
    )


def _holds_several(column):
    """True if an entry of a column is a list, a dict or an array."""
    return any(np.iterable(value) and not isinstance(value, str) for value in column)


TIMES = "times; subtract a date and divide by a unit to make them numbers"


def refuse_unusable(X, name="X"):
    """Refuse masked entries and times, which `check_array` would read as numbers."""
    refuse_mask(name, X)
    refuse_lazy(name, X)
    kinds = X.dtypes if isinstance(X, pd.DataFrame) else [getattr(X, "dtype", None)]
    if any(getattr(kind, "kind", None) in ("m", "M") for kind in kinds):
        raise ValueError(f"a column holds {TIMES}")


def explain(X, error):
    """Explain an error: the columns that hold no numbers, and the remedy; else the message of the error.

    Parameters
    ----------
    X : DataFrame, ndarray or anything else
    error : Exception

    Returns
    -------
    str
    """
    if isinstance(X, list | tuple | np.ndarray) and len(X) and np.ndim(X[0]) == 2:
        return (
            "it holds a table for each bag. Pass one row per instance, np.concatenate(X), and for these rows bags = "
            "np.repeat(np.arange(len(X)), [len(x) for x in X])"
        )
    if isinstance(X, np.ndarray) and X.ndim == 2 and not np.ma.isMaskedArray(X):
        X = pd.DataFrame(X)
    others = re.search(r"feature names|\d feature", str(error))  # than those of the fit
    if others or not isinstance(X, pd.DataFrame):
        return str(error)
    columns = [X.iloc[:, i] for i in range(X.shape[1])]
    faults = {
        TIMES: [c for c in columns if c.dtype.kind in "mM"],
        "text; put a OneHotEncoder in front, in a ColumnTransformer": [
            c for c in columns if _holds_text(c)
        ],
        "several values in an entry; make a column of each": [
            c for c in columns if c.dtype == object and _holds_several(c)
        ],
        "missing values (NaN); put a SimpleImputer in front": [
            c for c in columns if c.isna().any()
        ],
    }
    said = []
    for what, those in faults.items():
        names = ", ".join(quote(c.name) for c in those[:3])
        more = f" and {len(those) - 3} more" * (len(those) > 3)
        said += [f"column {names}{more} holds {what}"] * bool(those)
    return ". Also, ".join(said) or str(error)


def refuse_huge(X):
    """Refuse numbers whose squares would overflow when summed."""
    values = X if isinstance(X, np.ndarray) else X.data
    largest = max(values.max(initial=0), -values.min(initial=0))
    if largest > 1e100:
        raise ValueError(
            f"it holds {largest:.3g}, whose square is too large to compute with; scale the features"
        )


#: What scikit-learn makes an error for the moment of a check.
_PASSING = np.exceptions.ComplexWarning, np.exceptions.VisibleDeprecationWarning
_checks: list = []
_filters: list = []
_turn = Lock()


def _as_text(one):
    """A filter with the text of its regular expressions."""
    return tuple(getattr(part, "pattern", part) for part in one)


@contextmanager
def filters_kept():
    """Within this context scikit-learn may set filters of warnings in several threads, and leaves them as they were.

    Filters belong to the process. scikit-learn's checks of arrays add some, its parallel loops take all out and in
    again, and each sets back what it found. Of two threads each can find what the other is about to set, which then
    stays: the last to leave this context puts that right. Filters that the user has added meanwhile stay.
    """
    with _turn:
        if not _checks:
            _filters[:] = warnings.filters
        _checks.append(1)
    try:
        yield
    finally:
        with _turn:
            _checks.pop()
            if not _checks and warnings.filters != _filters:
                before = {_as_text(one) for one in _filters}
                added = [
                    one
                    for one in warnings.filters
                    if _as_text(one) not in before and one[2] not in _PASSING
                ]
                warnings.filters[:] = added + _filters


@filters_kept()
def check_features(X, name="X", *, accept_sparse=False):
    """Check X, and return it as a matrix of finite numbers."""
    try:
        X = as_frame(X)
        refuse_unusable(X, name)
        X = check_array(X, dtype=np.float64, accept_sparse=accept_sparse)
        refuse_huge(X)
        return X
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name} must be a matrix of finite numbers: {explain(X, error)}"
        ) from error


def label_codes(y, n_instances, X=None):
    """Code labels: the sorted classes, and the column of the class of each instance.

    Parameters
    ----------
    y : array-like, shape (n_instances,)
    n_instances : int
    X : object, optional
        See `check_column`.

    Returns
    -------
    classes : ndarray, shape (n_classes,)
    codes : ndarray of int, shape (n_instances,)

    Raises
    ------
    ValueError
        If the length differs from X's, a label is missing, or all labels are equal.
    """
    values = check_column("y", y, n_instances, X)
    codes, classes = pd.factorize(values, sort=True)
    if len(classes) < 2:
        raise ValueError(
            f"y must hold two classes or more, got only {classes.tolist()[0]!r}"
        )
    return np.asarray(classes), codes


def refuse_rounded(name, column):
    """Refuse whole numbers as floats so large that others have been rounded to them."""
    if column.dtype.kind != "f":
        return
    wrong = np.abs(column) >= 2.0 ** (np.finfo(column.dtype).nmant + 1)
    if wrong.any():
        raise ValueError(
            f"{name} holds {column[wrong][0]:.0f} in the type {column.dtype}, which cannot tell it from the next "
            "number: read the column as integers or as text"
        )


def check_bags(bags, n_instances, n_bags, bag_labels=None, X=None):
    """Translate the bag of each instance into a row of the proportions.

    Parameters
    ----------
    bags : array-like, shape (n_instances,)
    n_instances : int
    n_bags : int or None
        Rows of the proportions; None for as many as the bags need.
    bag_labels : pandas.Index, optional
        Keys of the proportions, where these have keys.
    X : object, optional
        See `check_column`.

    Returns
    -------
    ndarray of int, shape (n_instances,)

    Raises
    ------
    ValueError
        If the length differs from X's, a value is missing, or a bag has no row of proportions.
    """
    values = check_column("bags", bags, n_instances, X)
    if bag_labels is None:
        if (
            values.dtype == object and pd.api.types.infer_dtype(values) == "integer"
        ):  # pandas' nullable integers
            values = values.astype(np.int64)
        if values.dtype.kind in "OUS":
            raise ValueError(
                f"bags holds {quote(values[0])}: bags other than integers need proportions keyed by them "
                "(Series, dict or DataFrame), such as pd.Series(shares, index=names)"
            )
        if values.dtype.kind == "f":
            odd = values[~np.isfinite(values) | (values != np.round(values))]
            if odd.size:
                raise ValueError(
                    f"bags must be integers that index the rows of proportions, got {odd[0]}"
                )
            values = values.astype(np.int64)
        if n_bags == n_instances < values.max(initial=0) + 1:
            raise ValueError(
                f"bags holds {values.max()}, but proportions has no such row (it has {n_bags}, as many as X: if a tool "
                "of scikit-learn cut both, give proportions keyed by bag; if bags holds the size of each bag, pass "
                f"np.repeat(np.arange({n_bags}), bags))"
            )
        return check_codes(values, n_bags, there=True)[0]
    refuse_rounded("bags", values)
    codes = places_of(bag_labels, pd.Index(values, tupleize_cols=False))
    if (codes < 0).any():
        lost = pd.unique(values[codes < 0])
        n_names = len(pd.unique(values))
        raise ValueError(
            f"bags holds {quote(lost[0])}, which is not a key of proportions ({len(lost)} of {n_names} bags are none): "
            f"{explain_key(lost[0], bag_labels)}"
        )
    return codes


def check_labels(labels, classes, n_instances, X=None):
    """Read the labels of some instances: the column of the class, -1 where unknown.

    Parameters
    ----------
    labels : array-like, shape (n_instances,)
        A class label, or -1 for unknown.
    classes : ndarray, shape (n_classes,)
    n_instances : int
    X : object, optional
        See `check_column`.

    Returns
    -------
    ndarray of int, shape (n_instances,)

    Raises
    ------
    ValueError
        If the length differs from X's, a label is not one of the classes, or -1 is itself a class.
    """
    values = check_column("labels", labels, n_instances, X)
    names = classes.tolist()
    # NumPy turns the -1 of a list of strings into "-1".
    turned = values.dtype.kind in "US" and (values == "-1").any()
    if -1 in names or (turned and "-1" in names):
        raise ValueError(
            "labels marks unknown instances by -1, but -1 is one of the classes; rename the class"
        )
    values = values.astype(object)
    unknown = np.array([v == -1 or (turned and v == "-1") for v in values.tolist()])
    columns = places_of(pd.Index(classes), pd.Index(values))
    columns[unknown] = -1
    if ((columns < 0) & ~unknown).any():
        bad = values[(columns < 0) & ~unknown][0]
        raise ValueError(
            f"labels holds {quote(bad)}, which is neither -1 nor one of the classes {classes.tolist()}"
        )
    return columns


def read_counts(counts, n_rows, original=None, *, name="counts", some=True):
    """Check frequencies of rows: whole numbers, 0 or more, and not all 0 unless ``some`` is False.

    Raises
    ------
    ValueError
    """
    values = check_column(name, counts, n_rows, original)
    rule = f"{name} must be whole numbers, 0 or more: how many equal instances a row stands for"
    if values.dtype == bool or any(isinstance(v, bool | np.bool_) for v in values):
        raise ValueError(f"{rule}, got True and False. Leave out rows by X[mask]")
    times = _read_times(values, rule)
    wrong = ~((times >= 0) & (times == np.round(times)) & (times < 2**53))
    if wrong.any():
        first = values[wrong][0]
        why = (
            "Weights of a survey are no frequencies: leave out counts, and pass the weighted share of each bag as "
            "proportions"
        )
        if times[wrong][0] < 0:
            why = "A negative number is often a mark for a number that is not published"
        raise ValueError(
            f"{rule}, got {quote(first)}. {why}; see {page('your_data')}. Numbers that were estimated for a place, "
            "such as residents of a part of a tract, can be rounded: counts.round()"
        )
    if some and not times.any():
        raise ValueError("counts are all 0: no row stands for an instance")
    return times.astype(np.int64)


def rows_of_instances(counts, n_rows, original=None):
    """The number of each row as often as it stands for an instance; without counts a slice of all rows."""
    if counts is None:
        return slice(None)
    return repeated_rows(read_counts(counts, n_rows, original))


def repeated_rows(times):
    """The number of each row as often as it stands for an instance.

    Counts are int64, since sums of them pass 2³¹; NumPy repeats by ``np.intp`` only, which has 32 bits in a browser.
    """
    return np.repeat(np.arange(len(times)), times.astype(np.intp))


def _read_times(values, rule):
    """Numbers, of text too; ValueError with the line that reads text of another kind."""
    try:
        return numbers("counts", values)
    except ValueError as error:
        odd = [v for v in values if isinstance(v, str) and not _is_number(v)]
        line = hidden_number(odd, "counts") or "pd.to_numeric(counts)"
        if odd and re.fullmatch(r"\s*\d{1,3}([, .\u00a0\u202f']\d{3})+\s*", odd[0]):
            line = f"counts.str.replace({odd[0].strip().lstrip('0123456789')[0]!r}, '').astype(int)"
        if not odd:
            raise
        raise ValueError(f"{rule}, got the text {quote(odd[0])}: {line}") from error


def hidden_number(values, name):
    """Advise about a text such as "<6" or "*" in the place of a count; empty where there is none.

    Parameters
    ----------
    values : iterable
    name : str
        Of the table that holds them.

    Returns
    -------
    str
    """
    for text in (v for v in values if isinstance(v, str)):
        below = re.fullmatch(r"\s*(?:<|≤|under|less than|fewer than)\s*(\d+)\s*", text)
        if below or not re.search(r"\d", text):
            middle = int(below[1]) // 2 if below else "MIDDLE"
            return (
                f"if {quote(text)} marks a small number that is not published, put the middle of what it can be, "
                f"{name}.replace({quote(text)}, {middle}).astype(int). Leaving out such places would raise the rates"
            )
    return ""


def _is_number(text):
    """True for a text that is a number as Python writes it."""
    try:
        float(text)
    except ValueError:
        return False
    return True
