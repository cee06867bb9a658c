"""Data sets: tables in the encodings the papers used, and data sets of bags that keep their instance labels private.

`load` gives ``X, y``; `load_bags` gives a `BagDataset`, whose ``X, bags, proportions`` go to ``fit`` and whose labels
go to evaluation only. Sources, licences and citations: `provenance` and ``book/data``.
"""

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import accuracy_score
from sklearn.utils import check_random_state

from .._input import (
    ArrayLike,
    Matrix,
    RandomState,
    as_column,
    check_column,
    check_whole,
    refuse_mask,
    sorted_values,
)
from ..base import warn
from ..proportions import label_proportions
from . import _encodings as enc
from ._plain import plain_table

__all__ = [
    "BagDataset",
    "binary_labels",
    "dataset_names",
    "load",
    "load_bags",
    "load_table",
    "make_dataset",
    "plain_table",
    "provenance",
    "random_bags",
]


class BagDataset:
    """Instances in bags, their label proportions, and labels that are for evaluation only.

    ``clf.fit(*dataset)`` learns, ``dataset.evaluate(clf)`` gives the accuracy: the labels reach neither fit nor tuning.
    Made by `load_bags` and `make_dataset`.

    Attributes
    ----------
    X : DataFrame or array, shape (n_instances, n_features)
    bags : ndarray of int, shape (n_instances,)
        Rows of ``proportions``.
    proportions : DataFrame, shape (n_bags, n_classes)
        The columns are the classes, which become ``classes_`` of an estimator, so that predictions and evaluation speak
        the same labels. Of two classes the positive one is the second. The index is 0, 1, ….
    bag_names : ndarray, shape (n_bags,)
        Names of the bags, for instance the occupations.
    name : str

    Examples
    --------
    >>> from llpbook import BagMeanRegression, load_bags
    >>> data = load_bags("heart", bag_size=8, random_state=0)
    >>> data
    BagDataset('heart': 270 instances, 13 features, 34 bags, 2 classes)
    >>> model = BagMeanRegression().fit(*data)  # X, bags, proportions
    >>> data.evaluate(model) > 0.7
    True
    """

    def __init__(self, X, bags, proportions, y, bag_names, name):
        self.X, self.bags, self.proportions = X, bags, proportions
        self.bag_names, self.name, self._y = bag_names, name, y

    def __iter__(self):
        return iter((self.X, self.bags, self.proportions))

    def __repr__(self):
        (n, d), n_classes = self.X.shape, len(self.classes)
        return f"BagDataset({self.name!r}: {n} instances, {d} features, {self.n_bags} bags, {n_classes} classes)"

    @property
    def classes(self):
        """The class labels in the order of the columns, shape (n_classes,)."""
        return self.proportions.columns.to_numpy()

    @property
    def n_bags(self):
        """Number of bags."""
        return len(self.proportions)

    @property
    def bag_sizes(self):
        """Instances in each bag, shape (n_bags,)."""
        return np.bincount(self.bags, minlength=self.n_bags)

    def true_labels_for_evaluation(self):
        """A copy of the instance labels, shape (n_instances,): for plots and results, never for fit or tuning."""
        return self._y.copy()

    def evaluate(self, estimator, *, metric=accuracy_score):
        """Compare predictions with the true labels.

        Parameters
        ----------
        estimator : object with ``predict``, or array-like, shape (n_instances,)
            A fitted estimator, or its predictions for ``X``.
        metric : callable, default `sklearn.metrics.accuracy_score`
            ``metric(true, predicted)``.

        Returns
        -------
        float

        Raises
        ------
        ValueError
            If the predictions have another length or hold something that is not a class.
        """
        predicted = np.asarray(
            estimator.predict(self.X) if hasattr(estimator, "predict") else estimator
        )
        if predicted.shape != self._y.shape:
            raise ValueError(
                f"predictions must be one for each instance, {self._y.shape}, got {predicted.shape}"
            )
        strange = [
            p for p in np.unique(predicted).tolist() if p not in self.classes.tolist()
        ]
        if strange:
            raise ValueError(
                f"predictions hold {strange[0]!r}, which is none of the classes {self.classes.tolist()}"
            )
        return float(metric(self._y, predicted))


def dataset_names(*, encoding: str | None = None) -> list[str]:
    """List the names that `load` accepts.

    Parameters
    ----------
    encoding : str, optional
        A paper: the names in its own table. All names if not given.

    Returns
    -------
    list of str

    Examples
    --------
    >>> from llpbook.datasets import dataset_names
    >>> "heart" in dataset_names(), len(dataset_names(encoding="yu2013"))
    (True, 11)
    """
    papers = enc.catalog()["papers"]
    if encoding is not None and encoding not in (*enc.PLAIN, *papers):
        raise enc.unknown("encoding", encoding, [*enc.PLAIN, *papers])
    return list(
        papers[encoding]["sets"] if encoding in papers else enc.catalog()["sets"]
    )


def provenance(name: str, *, encoding: str = "onehot") -> dict[str, Any]:
    """Look up the facts of a data set: source, licence, citation, sizes, class counts, notes, positive class.

    Parameters
    ----------
    name, encoding : str
        As for `load`.

    Returns
    -------
    dict
        For a paper's encoding also what the paper prints: ``n``, ``m``, ``n_classes``.

    Examples
    --------
    >>> from llpbook.datasets import provenance
    >>> facts = provenance("heart")
    >>> facts["n"], facts["positive"]
    (270, 'present')
    """
    return copy.deepcopy(enc.recipe(name, encoding))


def load(
    name: str, *, encoding: str = "onehot", missing: str | None = None,
    classes: Sequence | None = None,
) -> tuple[pd.DataFrame, pd.Series]:  # fmt: skip
    """Load a data set as numbers.

    Nothing is scaled: put scikit-learn's ``MinMaxScaler`` or ``StandardScaler`` in front of the estimator.

    Parameters
    ----------
    name : str
        One of `dataset_names`. With a paper's encoding, the name that the paper prints, which wins, or ours.
    encoding : str, default "onehot"
        Encoding of nominal columns; numeric ones stay as they are.

        - ``"onehot"``: one column per value that occurs, ``column=value``; two values make ONE column, the indicator of
          the second.
        - ``"full"``: one column for every value that occurs.
        - ``"raw"``: one column with the codes 0, 1, … of the values, sorted by the number they start with if all of
          them start with one, else alphabetically.
        - ``"stolpe2011"``, ``"duplessis2013"``, ``"perezortiz2016"``, ``"yu2013"``, ``"franco2023"``: the rows, columns
          and widths of that paper's table (declared values that never occur, ordinals as numbers and the like).
    missing : {"impute", "keep", "drop", "category"}, optional
        ``"impute"``: the column's median, or its most frequent value (of several, the first in the order above), over
        all rows of the set; a column without any value becomes 0. ``"keep"``: NaN, in every column made from the value.
        ``"drop"``: rows with a missing value are left out. ``"category"``: nominal columns get a value of their own,
        ``?``, numeric ones are imputed. Not given: ``"category"`` for franco2023's adult and census-kdd, else
        ``"impute"``. Columns do not depend on it, but for ``"category"``. A row rule of the set itself comes first.
    classes : sequence, optional
        Keep the instances of these classes only, for instance ``(1, 7)`` of satimage.

    Returns
    -------
    X : DataFrame of float, shape (n_instances, n_features)
    y : Series, shape (n_instances,)
        Class labels: integers where all of them are, else strings.

    Raises
    ------
    ValueError
        If ``name``, ``encoding``, ``missing`` or a class is not known, or the paper has no such set.

    Warns
    -----
    LLPWarning
        For franco2023's adult and census-kdd: how the paper came to its number of columns is not established.

    Examples
    --------
    >>> from llpbook import load
    >>> X, y = load("heart")
    >>> X.shape, y.value_counts().to_dict()
    ((270, 13), {'absent': 150, 'present': 120})
    """
    X, y, _ = _prepare(name, encoding, missing, classes)
    return X, y


def load_table(name: str) -> pd.DataFrame:
    """Load a data set as users have it: text, numbers and missing values, nothing encoded.

    Parameters
    ----------
    name : str
        One of `dataset_names`.

    Returns
    -------
    DataFrame
        Numeric columns as floats, nominal ones as text, the last column ``class``. The rows are those of `load`.

    Raises
    ------
    ValueError, FileNotFoundError
        See `load`.

    Examples
    --------
    >>> from llpbook.datasets import load_table
    >>> load_table("hepatitis").iloc[:2, [0, 1, -1]]
        age  sex class
    0  30.0  2.0  live
    1  50.0  1.0  live
    """
    spec = enc.recipe(name, "onehot")
    table, y = enc.choose_rows(enc.read_table(spec), spec)
    return table.assign(**{"class": np.asarray(y)})


def _prepare(name, encoding, missing=None, classes=None, by=None):
    """Read X, y and the column ``by``, which is taken out of X before encoding."""
    spec = enc.recipe(name, encoding)
    missing = spec.get("missing_rule", "impute") if missing is None else missing
    if not isinstance(missing, str) or missing not in enc.MISSING:
        raise enc.unknown("missing", missing, enc.MISSING)
    table, y = enc.choose_rows(enc.read_table(spec), spec)
    table = table.drop(columns=[c for c in spec.get("drop", []) if c != by])
    if by is not None and by not in table:
        raise enc.unknown("by", by, table.columns)
    groups = None if by is None else table.pop(by)
    X = enc.encode(table, spec, "keep" if missing == "drop" else missing)
    kept = table.notna().all(axis=1).to_numpy() | (missing != "drop")
    if classes is not None:
        if isinstance(classes, str) or not np.iterable(classes) or len(classes) < 1:
            raise ValueError(
                f"classes must be one class or more, in a list, got {classes!r}"
            )
        absent = [c for c in classes if c not in y.unique()]
        if absent:
            raise enc.unknown("classes", absent[0], sorted(y.unique()))
        kept &= y.isin(list(classes)).to_numpy()
    if not kept.all():
        X, y = X[kept].reset_index(drop=True), y[kept].reset_index(drop=True)
        groups = None if groups is None else groups[kept].reset_index(drop=True)
    if "printed_m" in spec:
        printed = f"{encoding} prints {spec['printed_m']} columns for {name!r}"
        warn(f"{printed}, these are {X.shape[1]}: {spec['note']}")
    return X, y, groups


def binary_labels(y: ArrayLike, positive: Any) -> np.ndarray:
    """Code labels as 1 for the positive class and 0 for every other.

    Parameters
    ----------
    y : array-like, shape (n_instances,)
    positive : label
        One of the classes in ``y``.

    Returns
    -------
    ndarray of int, shape (n_instances,)

    Examples
    --------
    >>> from llpbook.datasets import binary_labels
    >>> binary_labels(["cat", "dog", "cat"], "cat").tolist()
    [1, 0, 1]
    """
    refuse_mask("y", y)
    labels = as_column(y)
    if labels.ndim != 1 or not labels.size:
        raise ValueError(f"y must have one label per instance, got {y!r}")
    if positive not in labels.tolist():
        raise enc.unknown("positive", positive, sorted_values(labels))
    return (labels == positive).astype(int)


def random_bags(
    y: Matrix | int, *, bag_size: int | None = None, n_bags: int | None = None,
    random_state: RandomState = None,
) -> np.ndarray:  # fmt: skip
    """Make random bags: shuffle the instances, and cut them into consecutive chunks.

    Parameters
    ----------
    y : array-like, shape (n_instances,), or int
        Anything with one entry per instance, or the number of instances. Its values are not used.
    bag_size : int, optional
        Instances in a bag; what remains makes a last, smaller bag.
    n_bags : int, optional
        Instead of ``bag_size``: that many bags, whose sizes differ by at most 1.
    random_state : int, RandomState or None

    Returns
    -------
    ndarray of int, shape (n_instances,)
        The bag of each instance, 0, 1, ….

    Raises
    ------
    ValueError
        If not exactly one of ``bag_size`` and ``n_bags`` is given, or it is not a whole number from 1 to n_instances.

    Examples
    --------
    >>> import numpy as np
    >>> from llpbook import random_bags
    >>> np.bincount(random_bags(10, bag_size=4, random_state=0)).tolist()
    [4, 4, 2]
    """
    n = check_whole("y", y) if np.ndim(y) == 0 else len(y)  # type: ignore[arg-type]
    if n == 0:
        raise ValueError("y must have one entry or more, got none")
    if (bag_size is None) == (n_bags is None):
        raise ValueError(
            f"give either bag_size or n_bags, got bag_size={bag_size!r} and n_bags={n_bags!r}"
        )
    if bag_size is not None:
        chunks = np.arange(n) // check_whole("bag_size", bag_size, most=n)
    else:
        chunks = np.arange(n) * check_whole("n_bags", n_bags, most=n) // n
    bags = np.empty(n, dtype=np.intp)
    bags[check_random_state(random_state).permutation(n)] = chunks
    return bags


def make_dataset(
    X: Matrix, y: ArrayLike, bags: ArrayLike, *, positive: Any = None,
    name: str = "data",
) -> BagDataset:  # fmt: skip
    """Make a `BagDataset` from labeled instances and their bags.

    Parameters
    ----------
    X : array-like or sparse, shape (n_instances, n_features)
    y : array-like, shape (n_instances,)
        Class labels; they are hidden, but for their proportions.
    bags : array-like, shape (n_instances,)
        The bag of each instance: integers, names, anything that sorts. Sorted, they become the bags 0, 1, ….
    positive : label, optional
        Of two classes, the one whose column comes second; the last in sorted order if not given. With more classes, the
        one set against all others: classes are then 0 and 1.
    name : str, default "data"

    Returns
    -------
    BagDataset

    Raises
    ------
    ValueError
        If lengths differ, ``y`` or ``bags`` has a missing value, or ``y`` has fewer than two classes.

    Examples
    --------
    >>> from llpbook import make_dataset
    >>> data = make_dataset([[1.0], [2.0], [3.0], [4.0]], ["no", "no", "no", "yes"], ["A", "A", "B", "B"])
    >>> data.proportions["yes"].tolist()
    [0.0, 0.5]
    """
    A: Any = X if hasattr(X, "shape") else np.asarray(X)
    if len(A.shape) != 2:
        raise ValueError(f"X must have shape (n_instances, n_features), got {A.shape}")
    labels = check_column("y", y, A.shape[0], A)
    codes, names = pd.factorize(check_column("bags", bags, A.shape[0], A), sort=True)
    return _build(A, labels, codes, np.asarray(names), positive, name)


def _build(X, y, codes, names, positive, name):
    y = np.array(y)  # a copy, which does not change with the user's array
    classes = sorted_values(y)
    if len(classes) < 2:
        raise ValueError(f"y must have at least two classes, got {classes.tolist()}")
    if positive is not None and positive not in classes.tolist():
        raise enc.unknown("positive", positive, classes)
    if positive is not None and len(classes) > 2:
        y, classes = binary_labels(y, positive), np.array([0, 1])
    elif positive is not None:
        classes = np.array(
            [*classes[classes != positive], positive], dtype=classes.dtype
        )
    shares = pd.DataFrame(
        label_proportions(y, codes, n_bags=len(names), classes=classes), columns=classes
    )
    return BagDataset(X, np.asarray(codes, dtype=np.intp), shares, y, names, name)


def load_bags(
    name: str, *, bag_size: int | None = None, n_bags: int | None = None, by: str | None = None,
    encoding: str = "onehot", missing: str | None = None, classes: Sequence | None = None,
    random_state: RandomState = None, positive: Any = None,
) -> BagDataset:  # fmt: skip
    """Load a data set in bags.

    Parameters
    ----------
    name, encoding, missing, classes
        As for `load`.
    bag_size, n_bags : int, optional
        Random bags, see `random_bags`.
    by : str, optional
        Natural bags instead: a raw column, taken out of X before encoding. Each of its values is a bag; instances where
        it is missing form a bag of their own, the last, named ``(missing)``. No instance is dropped for it.
    random_state : int, RandomState or None
        For random bags.
    positive : label, optional
        As for `make_dataset`; not given, the positive class that `provenance` names, where there are two classes.

    Returns
    -------
    BagDataset

    Raises
    ------
    ValueError
        As `load`, and if not exactly one of ``bag_size``, ``n_bags`` and ``by`` is given, or ``by`` is not a column.

    Examples
    --------
    >>> from llpbook.datasets import load_bags
    >>> load_bags("heart", bag_size=16, random_state=0)
    BagDataset('heart': 270 instances, 13 features, 17 bags, 2 classes)
    """
    arguments = {"bag_size": bag_size, "n_bags": n_bags, "by": by}
    stated = [name for name, value in arguments.items() if value is not None]
    if len(stated) != 1:
        raise ValueError(
            f"give exactly one of bag_size, n_bags and by, got {' and '.join(stated) or 'none'}"
        )
    X, y, groups = _prepare(name, encoding, missing, classes, by)
    if by is None:
        rng = check_random_state(random_state)
        codes = random_bags(y, bag_size=bag_size, n_bags=n_bags, random_state=rng)
        names = np.arange(codes.max() + 1)
    else:
        codes, names = _natural(groups)
    usual = enc.recipe(name, encoding).get("positive")
    if positive is None and y.nunique() == 2 and usual in y.unique():
        positive = usual
    return _build(X, y.to_numpy(), codes, names, positive, name)


def _natural(groups):
    """Bag numbers and names from a column; missing values form the last bag."""
    text = groups.dtype.kind not in "fiu"
    levels = enc.levels_of(groups) if text else sorted(groups.dropna().unique())
    codes = pd.Categorical(groups.astype(object), categories=levels).codes
    codes = codes.astype(np.intp)
    names = [*levels, *["(missing)"] * bool((codes < 0).any())]
    codes[codes < 0] = len(levels)
    return codes, np.array(names, dtype=object)
