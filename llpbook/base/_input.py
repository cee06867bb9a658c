"""What users hand in, checked once: proportions, bags, labels, weights of bags."""

import re
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np
import pandas as pd
from sklearn.utils import check_array

from ..proportions import (
    _check_codes,
    averaging_matrix,
    class_prior,
    keyed_rows,
    refuse_mask,
)
from ._chunked import InChunks
from ._counts import crosstab
from ._running import require_memory, warn
from ._sklearn import StrOptions


class NotIdentifiableError(ValueError):
    """The proportions cannot answer the question, however many instances there are."""


#: The documentation, which `project.urls` of pyproject.toml names too.
SITE = "https://llpbook.github.io/llpbook/"


def page(name):
    """The address of a page of the book.

    Parameters
    ----------
    name : str
        Such as "mean_map", or "intro.html#two-baselines" for a section.

    Returns
    -------
    str
    """
    return f"{SITE}book/{name}" + ".html" * (".html" not in name)


@dataclass(frozen=True)
class BagData:
    """Checked training input: what every method of the package computes with.

    Attributes
    ----------
    X : ndarray or sparse array, shape (n_instances, n_features)
    bags : ndarray of int, shape (n_instances,)
        Rows of ``proportions``.
    proportions : ndarray, shape (n_bags, n_classes)
        Rows without instances are allowed.
    classes : ndarray, shape (n_classes,)
    bag_labels : pandas.Index or None
        The user's names of the bags where ``proportions`` was keyed by them.
    labels : ndarray of int, shape (n_instances,), or None
        Column of ``classes`` for an instance with a known label, else -1.
    n_pure : int
        Pure bags, last in ``proportions``, that `labels_to_pure_bags` made from known labels.
    before : BagData or None
        The bags with the labels, from which `labels_to_pure_bags` made these.
    bag_weights : ndarray, shape (n_bags,), or None
        Checked by `check_bag_weights`, where the estimator has this parameter.
    covariances : ndarray, shape (n_bags, n_classes, n_classes), or None
        Of the error of each row of ``proportions``, by `error_covariances`; None where none is stated.
    frequencies : ndarray of int, shape (n_rows,), or None
        How many equal instances each row of X stands for, at least 1; None for one. With frequencies, what is said
        above to be of n_instances is one per row.
    """

    X: object
    bags: np.ndarray
    proportions: np.ndarray
    classes: np.ndarray
    bag_labels: object = None
    labels: object = None
    n_pure: int = 0
    before: object = None
    bag_weights: object = None
    covariances: object = None
    frequencies: object = None

    @property
    def used(self):
        """Which bags the method looks at: those with instances and a weight, shape (n_bags,)."""
        return (self.bag_sizes if self.bag_weights is None else self.bag_weights) > 0

    @cached_property
    def bag_sizes(self):
        """Instances in each bag, shape (n_bags,)."""
        if self.frequencies is not None:
            return sums_of_counts(self.bags, self.frequencies, len(self.proportions))
        return np.bincount(self.bags, minlength=len(self.proportions))

    @property
    def n_instances(self):
        """Instances of all bags."""
        return int(self.bag_sizes.sum())

    @cached_property
    def S(self):
        """The averaging matrix, sparse, shape (n_bags, n_instances)."""
        S = averaging_matrix(self.bags, len(self.proportions))
        if self.frequencies is not None:
            S.data = (self.frequencies / self.bag_sizes[self.bags])[S.indices]
        return S

    def bag_means(self, features):
        """Means of the rows of ``features``, dense, sparse or in chunks, over each bag, shape (n_bags, n_features)."""
        if isinstance(features, InChunks):
            features = features.bag_means()
        means = self.S @ features
        return means if isinstance(means, np.ndarray) else means.toarray()

    def one_vs_rest(self, k):
        """The same bags with two classes: the k-th, as the positive one, against the others."""
        positive = self.proportions[:, k]
        labels = self.labels
        if labels is not None:
            labels = np.where(labels < 0, -1, labels == k)
        return replace(
            self,
            proportions=np.column_stack([1 - positive, positive]),
            classes=np.array([0, 1]),
            labels=labels,
            before=self.before and self.before.one_vs_rest(k),
        )

    @cached_property
    def class_prior(self):
        """Share of each class over all instances, shape (n_classes,)."""
        return class_prior(self.proportions, self.bag_sizes)


def sums_of_counts(bags, counts, n_bags):
    """Sums of whole numbers over each bag, exactly."""
    return np.bincount(bags, counts, n_bags).round().astype(np.int64)


#: Fewest rows among which equal ones are looked for, most columns, and the rows that are looked at to see whether it
#: pays: not where some column has as many values as half of these.
FEW_ROWS, MANY_COLUMNS, PROBE = 1000, 1000, 400


def merge_rows(data):
    """Equal rows of a bag as one row with a frequency, where that halves the rows.

    Parameters
    ----------
    data : BagData

    Returns
    -------
    BagData
        The same object where it does not pay.
    """
    X, n = data.X, data.X.shape[0]
    if n < FEW_ROWS or not isinstance(X, np.ndarray) or X.shape[1] > MANY_COLUMNS:
        return data
    probe = X[:: max(1, n // PROBE)]
    if any(len(np.unique(column)) > len(probe) // 2 for column in probe.T):
        return data
    keys, direction = np.zeros(n), np.random.RandomState(0).normal(size=X.shape[1])
    for column, factor in zip(X.T, direction, strict=True):  # equal rows: equal keys
        keys += factor * column
    order = np.lexsort((keys, data.bags))
    key, bags = keys[order], data.bags[order]
    other = (key[1:] != key[:-1]) | (bags[1:] != bags[:-1])
    first = np.flatnonzero(np.append(True, other))
    if len(first) > n // 2:
        return data
    rows = X[order]
    cell = np.repeat(first, np.diff(np.append(first, n)))
    if (rows != rows[cell]).any():  # two rows with one key: next to impossible
        return data
    given = np.ones(n, int) if data.frequencies is None else data.frequencies[order]
    frequencies = np.add.reduceat(given, first)
    return replace(data, X=rows[first], bags=bags[first], frequencies=frequencies)


def single_rows(data):
    """Each row as often as its frequency says, for a method that cannot use frequencies."""
    if data.frequencies is None:
        return data
    cells = float(data.frequencies.sum()) * data.X.shape[1]
    require_memory("an X with one row per instance", 8 * cells, "fit a sample")
    rows = np.repeat(np.arange(data.X.shape[0]), data.frequencies)
    before = data.before and single_rows(data.before)
    labels = None if data.labels is None else data.labels[rows]
    return replace(
        data,
        X=data.X[rows],
        bags=data.bags[rows],
        frequencies=None,
        labels=labels,
        before=before,
    )


#: What a hyper-parameter ``bag_weights`` may be, see `check_bag_weights`.
BAG_WEIGHTS = [StrOptions({"size", "uniform"}), "array-like"]


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


def check_column(name, values, n_instances, X=None, missing=False):
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
    missing : bool, default False
        Whether missing values pass.

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
        raise ValueError(
            f"{name} must have one entry for each of the {n_instances} instances in X, got shape {column.shape}"
        )
    lost = pd.isna(column)
    if lost.any() and not missing:
        raise ValueError(
            f"{name} has a missing value at position {int(np.argmax(lost))}"
            + "; mark unknown labels by -1: labels.fillna(-1)" * (name == "labels")
        )
    return column


def refuse_columns(proportions):
    """Answer a DataFrame of names and shares, or of shares only, with the line that reads it.

    Neither is guessed: a share's column may be named after its class, or after nothing.
    """
    if not isinstance(proportions, pd.DataFrame):
        return
    columns = [proportions.iloc[:, i] for i in range(proportions.shape[1])]
    names = [_show(c.name) for c in columns if _holds_names(c)]
    shares = [_show(c.name) for c in columns if _holds_shares(c)]
    if len(columns) == len(shares) == 1:
        raise ValueError(
            "proportions has one column; pass a vector for the share of the positive class, here "
            f"proportions[{shares[0]}], or one column per class"
        )
    if len(names) == 1 and len(shares) == len(columns) - 1 > 0:
        line = f"proportions.set_index({names[0]})" + f"[{shares[0]}]" * (
            len(shares) == 1
        )
        raise ValueError(
            f"proportions must have the names of its bags in the index: if column {names[0]} holds them, pass {line}"
        )


def _holds_names(column):
    """Whether a column holds text, or whole numbers that differ: names of bags."""
    if not pd.api.types.is_numeric_dtype(column):
        return _holds_text(column)
    whole = column.notna().all() and (column == column.round()).all()
    return whole and column.is_unique and not _holds_shares(column)


def _holds_shares(column):
    """Whether a column holds numbers in [0, 1], or none."""
    return (
        pd.api.types.is_numeric_dtype(column)
        and not (column * (1 - column) < -SLACK).any()
    )


def _holds_text(column):
    """Whether a column holds a text that is no number."""
    return not pd.api.types.is_numeric_dtype(column) and any(
        isinstance(value, str) and not _is_number(value) for value in column
    )


def _is_number(text):
    try:
        float(text)
    except ValueError:
        return False
    return True


#: How far a share may be outside of [0, 1], and a row's sum from 1: rounding, in single precision too.
SLACK = 1e-6


def check_proportions(proportions, empty_rows=False, noisy=False, remedy=""):
    """Read label proportions in any of the accepted forms.

    Parameters
    ----------
    proportions : array-like, Series, dict or DataFrame
        ``(n_bags,)``: the share of the positive class, classes 0 and 1. ``(n_bags, n_classes)``: a row of shares a bag,
        classes 0, 1, …. A Series or dict is keyed by bag; its values are shares of the positive class, or (dict) rows.
        A DataFrame is keyed by bag and its columns are the classes, in their order; of two, the second is the positive.
    empty_rows : bool, default False
        Whether a row may be NaN, as that of a bag without instances is.
    noisy : bool, default False
        Whether noise was added to the shares, so that they may lie outside of [0, 1].
    remedy : str, default ""
        What the message for a share outside of [0, 1] says, unless the shares look like percent or counts.

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
    keys = classes = None
    refuse_mask("proportions", proportions)
    refuse_columns(proportions)
    if isinstance(proportions, dict):
        keys = pd.Index(list(proportions), tupleize_cols=False)
        proportions = list(proportions.values())
    elif isinstance(proportions, pd.Series | pd.DataFrame):
        keys = proportions.index
        keys = keys.to_flat_index() if isinstance(keys, pd.MultiIndex) else keys
        if isinstance(proportions, pd.DataFrame):
            classes = proportions.columns.to_numpy()
    if keys is not None and not keys.is_unique:
        raise ValueError(
            f"proportions has more than one entry for bag {_show(keys[keys.duplicated()][0])}"
        )
    try:
        if np.iscomplexobj(proportions):
            raise TypeError("they are complex")
        matrix = np.asarray(proportions, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"proportions must be numbers, one a bag or one row of equal length a bag: {error}"
        ) from error
    if matrix.ndim not in (1, 2) or matrix.shape[0] == 0:
        raise ValueError(
            f"proportions must have shape (n_bags,) or (n_bags, n_classes), got {matrix.shape}"
        )
    if keys is not None and pd.isna(keys).any():
        raise ValueError("proportions has a missing value among the names of its bags")
    unknown = np.isnan(matrix.reshape(len(matrix), -1)).all(axis=1) & empty_rows
    limit = np.inf if noisy else SLACK
    outside = ~((matrix >= -limit) & (matrix <= 1 + limit))
    outside[unknown] = False
    if outside.any():
        where = tuple(int(i) for i in np.argwhere(outside)[0])
        bag = _show(where[0] if keys is None else keys[where[0]])
        least, most = np.nanmin(matrix, initial=0), np.nanmax(matrix, initial=0)
        percent = bool(least >= -SLACK and 2 <= most < np.inf)
        hint = "" if np.isnan(matrix[where]) else remedy
        if percent:
            hint = "; divide percent by 100, and counts by the sizes of the bags"
        raise ValueError(
            f"proportions must lie in [0, 1], got {matrix[where]} for bag {bag}{hint}"
        )
    matrix = matrix if noisy else matrix.clip(0, 1)
    if matrix.ndim == 1:
        matrix = np.column_stack([1 - matrix, matrix])
    elif matrix.shape[1] < 2:
        raise ValueError(
            "proportions has one column; pass a vector for the share of the positive class, or one column per class"
        )
    off = np.flatnonzero(np.abs(matrix.sum(axis=1) - 1) > SLACK)
    if off.size:
        bag = _show(off[0] if keys is None else keys[off[0]])
        raise ValueError(
            f"proportions of bag {bag} sum to {matrix[off[0]].sum():.6g}, not 1; "
            "if that is rounding, divide each row by its sum, with a DataFrame P: P.div(P.sum(axis=1), axis=0)"
        )
    classes = np.arange(matrix.shape[1]) if classes is None else classes
    if pd.isna(classes).any():
        raise ValueError(
            f"proportions has a column without a class: {classes.tolist()}"
        )
    if len(set(classes)) < len(classes):
        raise ValueError(
            f"proportions has two columns for one class: {classes.tolist()}"
        )
    return matrix, classes, keys


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
    largest = np.abs(values).max(initial=0)
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


def refuse_shares_of_instances(matrix, codes):
    """Refuse proportions, or labels, with an entry per instance: read as one per bag, they would mean nothing."""
    if len(matrix) != len(codes):
        return
    used, first, place = np.unique(codes, return_index=True, return_inverse=True)
    if 2 * len(used) >= len(codes):
        return
    same_in_bag = np.array_equal(matrix, matrix[first[place]], equal_nan=True)
    if same_in_bag or np.isin(matrix, (0, 1)).all():
        raise ValueError(
            f"proportions has {len(matrix)} entries, one per instance, for only {len(used)} bags: give one share per "
            "bag, such as pd.Series(shares).groupby(bags).mean()"
        )


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


def read_task(X, bags, proportions, labels=None, *, counts=None, name="X"):
    """What `LLPClassifier.fit` takes, checked, for a function that is no estimator.

    Parameters
    ----------
    X : array-like, sparse or dense, shape (n_instances, n_features)
    bags, proportions, labels, counts
        As for `LLPClassifier.fit`.
    name : str, default "X"
        Of the argument, for messages.

    Returns
    -------
    BagData
        Known labels as given, in ``labels``.

    Raises
    ------
    ValueError
        If something is malformed.
    """
    checked = check_features(X, name, accept_sparse="csr")
    return read_bags(checked, bags, proportions, labels, X, counts=counts)


def read_bags(
    X, bags, proportions, labels=None, given=None, noisy=False, *, counts=None
):
    """What users hand in beside X, checked: the one place where bags, proportions and labels come together.

    Parameters
    ----------
    X : ndarray or sparse array, shape (n_instances, n_features)
        Checked.
    bags : array-like, shape (n_instances,)
    proportions : array-like, Series, dict or DataFrame
        See `check_proportions`. The row of a bag without instances may be NaN.
    labels : array-like, shape (n_instances,), optional
        Known labels, -1 for unknown.
    given : object, optional
        X as the user gave it, whose index is compared with those of ``bags`` and ``labels``.
    noisy : bool, default False
        See `check_proportions`.
    counts : array-like of int, shape (n_instances,), optional
        Frequencies of the rows of X. Rows that stand for no instance are left out.

    Returns
    -------
    BagData

    Raises
    ------
    ValueError
        If something is malformed, or a bag with instances has no proportions.
    """
    n = X.shape[0]
    matrix, classes, keys = check_proportions(proportions, True, noisy)
    codes = check_bags(bags, n, len(matrix), keys, given)
    if keys is None:
        refuse_shares_of_instances(matrix, codes)
    columns = None if labels is None else check_labels(labels, classes, n, given)
    frequencies = None
    if counts is not None:
        frequencies = read_counts(counts, n, given)
        there = frequencies > 0
        X, codes, frequencies = X[there], codes[there], frequencies[there]
        columns = None if columns is None else columns[there]
    matrix = fill_empty_rows(matrix, codes, keys)
    return BagData(X, codes, matrix, classes, keys, columns, frequencies=frequencies)


def fill_empty_rows(matrix, codes, keys):
    """Proportions without NaN, which only the row of a bag without instances may hold.

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
        name = _show(bag if keys is None else keys[bag])
        raise ValueError(
            f"proportions must lie in [0, 1], got nan for bag {name}, which has instances"
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
    rank = int(np.linalg.matrix_rank(R, rtol=1e-8))
    if rank < proportions.shape[1]:
        raise NotIdentifiableError(
            f"proportions has rank {rank} over the bags in use, which cannot tell "
            f"{proportions.shape[1]} class means apart: shares must differ between "
            "bags, and every class must occur"
        )


#: Shares that differ by no more are equal: rounding.
EQUAL = 1e-8


def check_differences(data, estimator, part=False):
    """One refusal and one warning, for all estimators, where the shares of the bags do not differ.

    Parameters
    ----------
    data : BagData
        After `labels_to_pure_bags`.
    estimator : LLPClassifier
        Its ``_equal_shares`` says what the same shares in every bag do to the method: "refused" where it learns from
        their differences, "warned" where it can go on without differences, "ignored" where it
        never looks. Its ``_names_classes_by_shares`` says that it only asks labels to agree with shares, so that two
        classes with equal shares could be swapped.
    part : bool, default False
        Whether this is one class against the rest: such parts refuse and do not warn.

    Raises
    ------
    NotIdentifiableError
    """
    rule, shares = estimator._equal_shares, data.proportions[data.used]
    if rule == "ignored":
        return
    name = type(estimator).__name__
    if estimator._names_classes_by_shares:
        for j, k in combinations(np.flatnonzero(shares.max(axis=0) > 0), 2):
            if (np.abs(shares[:, j] - shares[:, k]) <= EQUAL).all():
                raise NotIdentifiableError(
                    f"proportions give classes {_show(data.classes[j])} and {_show(data.classes[k])} equal shares in "
                    f"every bag: {name} could swap the two and agree as well. A share must differ; or give some labels="
                )
    # One class against the rest may be absent.
    if (np.ptp(shares, axis=0) > EQUAL).any() or shares[0].max() == 1:
        return
    same = ", ".join(f"{share:.6g}" for share in shares[0])
    if rule == "refused":
        raise NotIdentifiableError(
            f"proportions are the same in every bag in use ({same}): {name} learns from their differences. Shares "
            "must differ between bags; or give some labels="
        )
    if part:
        return
    warn(
        f"proportions are the same in every bag in use ({same}): no difference between bags tells the classes apart, "
        f"and {name} rests on its assumption, {estimator.assumes[1]!r}"
    )


def labels_to_pure_bags(data, noisy=False):
    """Turn known labels into proportions: one pure bag a class, and each bag without its labeled instances.

    With every label known the bags are the classes: supervised learning. Where proportions and labels disagree by more
    than rounding, what is left of a bag is clipped to possible shares, and an `LLPWarning` says so.

    Parameters
    ----------
    data : BagData
    noisy : bool, default False
        Whether noise was added to the shares: then nothing is clipped.

    Returns
    -------
    BagData
        With ``n_classes`` more bags (rows) and ``labels`` None; the same object where no label is known.
    """
    if data.labels is None or (data.labels < 0).all():
        return data if data.labels is None else replace(data, labels=None)
    L, K = data.proportions.shape
    known = data.labels >= 0
    rows = np.flatnonzero(known)
    if data.frequencies is not None:
        rows = np.repeat(rows, data.frequencies[rows])
    counts = crosstab(data.bags[rows], data.labels[rows], (L, K))
    left = data.bag_sizes[:, None] * data.proportions - counts
    if left.min() < -1 and not noisy:
        bag = int(left.min(axis=1).argmin())
        name = bag if data.bag_labels is None else data.bag_labels[bag]
        warn(
            f"bag {_show(name)} has more labeled instances of a class than its proportions allow; its rest is clipped"
        )
    left = left if noisy else np.maximum(left, 0)
    total = left.sum(axis=1, keepdims=True)
    rest = np.divide(left, total, out=data.proportions.copy(), where=total > 0)
    bags = np.where(known, L + data.labels, data.bags)
    return replace(
        data,
        bags=bags,
        proportions=np.vstack([rest, np.eye(K)]),
        labels=None,
        n_pure=K,
        before=data,
    )


def check_bag_weights(bag_weights, data):
    """One weight a bag: bag sizes, 1 for each bag, or the user's own.

    Parameters
    ----------
    bag_weights : {"size", "uniform"} or array-like, shape (n_bags,)
        An array is in the order of the rows of ``proportions``; a Series or dict is keyed as these are.
    data : BagData
        After `labels_to_pure_bags`, where labels are known; the pure bags that it appends weigh their size, with
        "uniform" 1.

    Returns
    -------
    ndarray, shape (n_bags,)
        0 for a bag without instances.

    Raises
    ------
    ValueError
        If an array has another length, a negative or non-finite entry, or is 0 on all bags with instances.
    """
    sizes = data.bag_sizes.astype(float)
    if isinstance(bag_weights, str) and bag_weights == "size":
        return sizes
    weights = np.minimum(sizes, 1)
    if not isinstance(bag_weights, str):
        n_rows = len(sizes) - data.n_pure
        own = keyed_rows("bag_weights", bag_weights, n_rows, data.bag_labels)
        if own.shape != (n_rows,) or not (np.isfinite(own) & (own >= 0)).all():
            raise ValueError(
                f"bag_weights must be one finite, non-negative number for each of the {n_rows} rows of proportions, "
                f"got {bag_weights!r}"
            )
        weights[:n_rows] *= own
        weights[n_rows:] = sizes[n_rows:]
    if not weights.any():
        raise ValueError(
            f"bag_weights must not be 0 for every bag with instances, got {bag_weights!r}"
        )
    return weights


def error_covariances(proportion_errors, data):
    r"""The covariance matrix of the error of each row of the proportions.

    For two classes :math:`\mathrm{se}_k^2 \left(\begin{smallmatrix} 1 & -1 \\ -1 & 1 \end{smallmatrix}\right)`. Known
    labels carry no error: where :math:`l` of the :math:`n_k` instances of a bag are known, the error of the share of
    the others is :math:`n_k / (n_k - l)` times as large.

    Parameters
    ----------
    proportion_errors : Series, dict or array-like, shape (n_bags,) or (n_bags, n_classes, n_classes)
        The standard error of the share of the positive class in each bag, for two classes; or the covariance matrix of
        the shares of each bag. An array is in the order of the rows of ``proportions``; what has keys is matched by
        them, see `llpbook.base.keyed_rows`.
    data : BagData
        After `labels_to_pure_bags`.

    Returns
    -------
    ndarray, shape (n_bags, n_classes, n_classes)
        0 for the pure bags.

    Raises
    ------
    ValueError
        If keys are not those of the proportions, an error is missing, negative or not finite, the shape is another, or
        a matrix is no covariance of shares that sum to 1.
    """
    n_bags, n_classes = len(data.proportions) - data.n_pure, len(data.classes)
    errors = keyed_rows("proportion_errors", proportion_errors, n_bags, data.bag_labels)
    if errors.shape == (n_bags,) and n_classes == 2 and (errors >= 0).all():
        errors = errors[:, None, None] ** 2 * np.array([[1.0, -1.0], [-1.0, 1.0]])
    if (
        errors.shape != (n_bags, n_classes, n_classes)
        or not np.isfinite(errors).all()
        or not np.allclose(errors.sum(axis=1), 0)
        or not np.allclose(errors, errors.transpose(0, 2, 1))
        or np.linalg.eigvalsh(errors).min() < -1e-10
    ):
        raise ValueError(
            "proportion_errors must be one finite standard error, not negative, for each of the "
            f"{n_bags} rows of proportions (two classes), or one covariance matrix of the "
            f"{n_classes} shares each, whose rows sum to 0, got {proportion_errors!r}"
        )
    left, all_sizes = data.bag_sizes[:n_bags], (data.before or data).bag_sizes
    wider = np.divide(all_sizes[:n_bags], left, out=np.zeros(n_bags), where=left > 0)
    errors = errors * wider[:, None, None] ** 2
    return np.append(errors, np.zeros((data.n_pure, n_classes, n_classes)), axis=0)
