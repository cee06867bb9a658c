"""What users hand in by instance, checked once: features, bags, labels, frequencies."""

import re

import numpy as np
import pandas as pd
from sklearn.utils import check_array

from .._checks import refuse_mask
from ..proportions import _check_codes
from ._errors import page


def _show(value):
    """A value as the user wrote it, not as NumPy wraps it."""
    return repr(value.item() if isinstance(value, np.generic) else value)


def check_positional(name, values, X):
    """Refuse a pandas object whose index says another order than that of X.

    What is given by instance is read by position. Where both have an index, the two must be equal; a `Pipeline` that
    turns a DataFrame into an array takes that check away, unless ``set_output(transform="pandas")`` keeps the index.
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


def check_column(name, values, n_instances, X=None):
    """One value an instance, as an array: of the right length, in the order of X, none masked, none missing.

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
        If one of these does not hold.
    """
    check_positional(name, values, X)
    refuse_mask(name, values)
    if isinstance(values, list | tuple) and any(isinstance(v, tuple) for v in values):
        values = pd.Series(list(values), dtype=object)
    if isinstance(values, pd.MultiIndex):
        values = values.to_flat_index()
    try:
        column = np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{name} must be one value an instance: {error}") from error
    if column.shape != (n_instances,):
        only = isinstance(values, pd.DataFrame) and column.shape == (n_instances, 1)
        raise ValueError(
            f"{name} must have one entry for each of the {n_instances} instances in X, got shape {column.shape}"
            + (f": pass {name}[{_show(values.columns[0])}]" if only else "")
        )
    lost = pd.isna(column)
    if lost.any():
        raise ValueError(
            f"{name} has a missing value at position {int(np.argmax(lost))}"
            + "; mark unknown labels by -1: labels.fillna(-1)" * (name == "labels")
        )
    return column


def _holds_text(column):
    """Whether a column holds a text that is no number."""
    texts = [value for value in column if isinstance(value, str)]
    return bool(
        pd.to_numeric(pd.Series(texts, dtype=object), errors="coerce").isna().any()
    )


TIMES = "times; subtract a date and divide by a unit to make them numbers"


def refuse_unusable(X, name="X"):
    """What `check_array` would read as numbers although it is none: masked entries, times."""
    refuse_mask(name, X)
    kinds = X.dtypes if isinstance(X, pd.DataFrame) else [getattr(X, "dtype", None)]
    if any(getattr(kind, "kind", None) in ("m", "M") for kind in kinds):
        raise ValueError(f"a column holds {TIMES}")


def explain(X, error):
    """Which columns hold what is no number, and what to put in front; where none does, what was said of X.

    Parameters
    ----------
    X : DataFrame, ndarray or anything else
    error : Exception

    Returns
    -------
    str
    """
    if isinstance(X, np.ndarray) and X.ndim == 2 and not np.ma.isMaskedArray(X):
        X = pd.DataFrame(X)
    others = re.search(r"feature names|\d feature", str(error))  # than those of the fit
    if others or not isinstance(X, pd.DataFrame):
        return str(error)
    columns = [X.iloc[:, i] for i in range(X.shape[1])]
    found = {
        TIMES: [c for c in columns if c.dtype.kind in "mM"],
        "text; put a OneHotEncoder in front, in a ColumnTransformer": [
            c for c in columns if _holds_text(c)
        ],
        "missing values (NaN); put a SimpleImputer in front": [
            c for c in columns if c.isna().any()
        ],
    }
    said = []
    for what, those in found.items():
        names = ", ".join(_show(c.name) for c in those[:3])
        more = f" and {len(those) - 3} more" * (len(those) > 3)
        said += [f"column {names}{more} holds {what}"] * bool(those)
    return ". Also, ".join(said) or str(error)


def refuse_huge(X):
    """Numbers whose squares would overflow when summed."""
    values = X if isinstance(X, np.ndarray) else X.data
    largest = max(values.max(initial=0), -values.min(initial=0))
    if largest > 1e100:
        raise ValueError(
            f"it holds {largest:.3g}, whose square is too large to compute with; scale the features"
        )


def check_features(X, name="X", *, accept_sparse=False):
    """X as a matrix of finite numbers, or a ValueError that says what is wrong."""
    try:
        refuse_unusable(X, name)
        X = check_array(X, dtype=np.float64, accept_sparse=accept_sparse)
        refuse_huge(X)
        return X
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name} must be a matrix of finite numbers: {explain(X, error)}"
        ) from error


def label_codes(y, n_instances, X=None):
    """The classes, sorted, and the column of the class of each instance.

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


def check_bags(bags, n_instances, n_bags, bag_labels=None, X=None):
    """Translate the bag of each instance into a row of the proportions.

    Parameters
    ----------
    bags : array-like, shape (n_instances,)
    n_instances : int
    n_bags : int or None
        Rows of the proportions; None for as many as the bags need.
    bag_labels : pandas.Index, optional
        Their keys, where the proportions are keyed.
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
                f"bags holds {_show(values[0])}: bags other than integers need proportions keyed by them "
                "(Series, dict or DataFrame), such as pd.Series(shares, index=names)"
            )
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            raise ValueError(
                f"bags must be integers that index the rows of proportions, got {values[~np.isfinite(values)][0]}"
            )
        if values.dtype.kind == "f" and (values == np.round(values)).all():
            values = values.astype(np.int64)
        if n_bags == n_instances < values.max(initial=0) + 1:
            raise ValueError(
                f"bags holds {values.max()}, but proportions has no such row (it has {n_bags}, as many as X: if a tool "
                "of scikit-learn cut both, give proportions keyed by bag)"
            )
        return _check_codes(values, n_bags, there=True)[0].astype(np.intp)
    codes = bag_labels.get_indexer(pd.Index(values, tupleize_cols=False))
    if (codes < 0).any():
        raise ValueError(
            f"bags holds {_show(values[codes < 0][0])}, which is not a key of proportions"
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
    columns = pd.Index(classes).get_indexer(pd.Index(values))
    columns[unknown] = -1
    if ((columns < 0) & ~unknown).any():
        bad = values[(columns < 0) & ~unknown][0]
        raise ValueError(
            f"labels holds {_show(bad)}, which is neither -1 nor one of the classes {classes.tolist()}"
        )
    return columns


def read_counts(counts, n_rows, given=None):
    """Frequencies of rows: whole numbers, 0 or more, and not all 0.

    Raises
    ------
    ValueError
    """
    values = check_column("counts", counts, n_rows, given)
    try:
        numbers = values.astype(float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"counts must be whole numbers: {error}") from error
    wrong = ~((numbers >= 0) & (numbers == np.round(numbers)) & (numbers < 2**53))
    if wrong.any():
        raise ValueError(
            f"counts must be whole numbers, 0 or more: how many equal instances a row stands for, got "
            f"{_show(values[wrong][0])}. Weights of a survey are no frequencies; see {page('your_data')}"
        )
    if not numbers.any():
        raise ValueError("counts are all 0: no row stands for an instance")
    return numbers.astype(np.int64)
