r"""Label proportions: the data of the problem, and the errors that can be measured on it.

A learner sees instances :math:`x_1, \dots, x_n` in bags :math:`B_1, \dots, B_L` and, of the labels, only the matrix
:math:`\Pi` of the share of each class in each bag:

.. math:: \pi_{kj} = \frac{1}{n_k} \sum_{i \in B_k} [y_i = j], \qquad k = 1, \dots, L, \quad j = 1, \dots, K.

Chapter: ``book/proportions``. Sources: stolpe2011 (section 2), yu2013 (section 6.2), franco2023 (section 5).
Bags are integers here: ``bags[i]`` is the row of :math:`\Pi` that holds instance ``i``.
"""

from dataclasses import dataclass
from math import comb, prod
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from ._input import (
    ArrayLike,
    NDArray,
    Proportions,
    as_column,
    as_frame,
    check_codes,
    doubt_of_numbers,
    doubt_of_totals,
    fill_empty_rows,
    keyed_rows,
    match_bags,
    numbers,
    printed_step,
    read_counts,
    refuse_columns,
    restored,
    sorted_values,
    sum_to_one,
)
from ._input import check_bags as check_bags  # the page of this room documents them
from ._input import check_proportions as check_proportions
from ._printed import Printed

__all__ = [
    "Identifiability",
    "RestoredCounts",
    "averaging_matrix",
    "class_prior",
    "count_labelings",
    "identifiability",
    "label_proportions",
    "prior_mse",
    "proportion_mae",
    "proportion_mse",
    "proportion_weighted_mse",
    "restore_counts",
]


def averaging_matrix(
    bags: ArrayLike, *, n_bags: int | None = None, counts: ArrayLike | None = None
) -> sp.csr_array:
    r"""Sparse matrix S whose product with instances gives bag means.

    :math:`S_{ki} = 1/n_k` if instance :math:`i` lies in bag :math:`k`, else 0, so that :math:`S X` holds the bag means
    (:eq:`eq-prop-averaging`) and :math:`S Y` the label proportions when :math:`Y` holds one-hot labels.

    Parameters
    ----------
    bags : array-like of int, shape (n_instances,)
        The bag of each instance, in ``[0, n_bags)``.
    n_bags : int, optional
        Number of bags; ``max(bags) + 1`` if not given. A bag without instances has a row of zeros. At most a million,
        or a hundred for each instance.
    counts : array-like of int, shape (n_instances,), optional
        How many equal instances each row stands for, as in a table of cells; one if not given.

    Returns
    -------
    scipy.sparse.csr_array, shape (n_bags, n_instances)

    Raises
    ------
    ValueError
        If ``bags`` is empty, not integer, negative, or at least ``n_bags``, or ``n_bags`` is too large.

    Examples
    --------
    >>> from llpbook.proportions import averaging_matrix
    >>> S = averaging_matrix([0, 0, 1])
    >>> (S @ [1.0, 3.0, 5.0]).tolist()
    [2.0, 5.0]
    """
    codes, n_rows = check_codes(bags, n_bags)
    times = instances_of_rows(counts, bags)
    # eq: eq-prop-averaging
    values = times / np.maximum(np.bincount(codes, times), 1)[codes]
    places = codes, np.arange(codes.size)
    return sp.csr_array((values, places), shape=(n_rows, codes.size))


def instances_of_rows(counts, bags):
    """Frequencies of the rows, shape (n_instances,)."""
    n_rows = np.size(bags)
    return np.ones(n_rows) if counts is None else read_counts(counts, n_rows, bags)


def label_proportions(
    y: ArrayLike, bags: ArrayLike, *, n_bags: int | None = None,
    classes: ArrayLike | None = None, counts: ArrayLike | None = None,
) -> NDArray:  # fmt: skip
    r"""Share of each class in each bag, from labels or from predictions.

    From true labels this is :math:`\Pi`, from a model's predictions it is :math:`\Gamma_g`
    (:eq:`eq-prop-gamma`; stolpe2011, eq. 3).

    Parameters
    ----------
    y : array-like, shape (n_instances,)
        A class label for each instance.
    bags : array-like of int, shape (n_instances,)
        The bag of each instance.
    n_bags : int, optional
        Number of bags; ``max(bags) + 1`` if not given. At most a million, or a hundred for each instance.
    classes : array-like, shape (n_classes,), optional
        The classes, in the order of the columns; the sorted distinct values of ``y`` if not given.
    counts : array-like of int, shape (n_instances,), optional
        How many equal instances each row stands for, as in a table of cells; one if not given.

    Returns
    -------
    ndarray, shape (n_bags, n_classes)
        Rows sum to 1; the row of a bag without instances is NaN.

    Raises
    ------
    ValueError
        If the lengths differ, the indices of two pandas objects differ, ``bags`` is malformed, or ``y`` holds a value
        that is not in ``classes``.

    Examples
    --------
    >>> from llpbook import label_proportions
    >>> label_proportions(["no", "yes", "yes", "yes"], [0, 0, 1, 1]).tolist()
    [[0.5, 0.5], [0.0, 1.0]]
    """
    labels, (codes, n_rows) = as_column(y), check_codes(bags, n_bags, y)
    if labels.shape != codes.shape:
        raise ValueError(
            f"y must have one label for each of the {codes.size} instances in bags, "
            f"got shape {labels.shape}"
        )
    columns = as_column(sorted_values(labels) if classes is None else classes)
    if columns.ndim != 1:
        raise ValueError(f"classes must be a list of class labels, got {classes!r}")
    hits = labels[:, None] == columns[None, :]
    if not hits.any(axis=1).all():
        bad = labels[~hits.any(axis=1)].tolist()[0]
        raise ValueError(
            f"y holds {bad!r}, which is not one of classes {columns.tolist()}"
        )
    times = instances_of_rows(counts, bags)
    of_class = [np.bincount(codes, times * hit, n_rows) for hit in hits.T]
    sizes = np.bincount(codes, times, n_rows)[:, None]
    with np.errstate(invalid="ignore"):  # a bag without instances: 0 / 0 is NaN
        # eq: eq-prop-gamma
        return np.column_stack(of_class) / sizes


def read_shares(bags, proportions, counts=None):
    """Shares of the bags that hold instances, with counts restored."""
    n_rows = np.shape(bags)[0] if np.ndim(bags) else 1
    matched = match_bags(proportions, bags, n_rows)
    times = instances_of_rows(counts, bags)
    sizes = np.bincount(matched.codes, times, len(matched.matrix)).round().astype(int)
    doubt_of_numbers(matched, sizes)
    matrix = fill_empty_rows(matched.matrix, np.flatnonzero(sizes), matched.keys)
    doubt_of_totals(matrix, sizes, matched.keys)
    return restored(matrix[sizes > 0], sizes[sizes > 0])


def _align_tables(proportions, predicted=..., bag_sizes=...):
    """Arrays with one row per bag: keyed tables are matched by `keyed_rows`, columns take the order of the first."""
    named = {"proportions": proportions, "predicted": predicted, "bag_sizes": bag_sizes}
    tables = {name: table for name, table in named.items() if table is not ...}
    frames = [t for t in tables.values() if isinstance(t, pd.DataFrame)]
    keyed = isinstance(proportions, pd.Series | pd.DataFrame)
    keys = proportions.index if keyed else None
    arrays = []
    for name, table in tables.items():
        if isinstance(table, pd.DataFrame) and set(table.columns) == set(frames[0]):
            table = table[frames[0].columns]
        n_bags = len(proportions) if np.ndim(proportions) else 0
        arrays.append(keyed_rows(name, table, n_bags, keys))
    shapes = [a.shape for a in arrays]
    n_sizes = "bag_sizes" in tables
    wanted = shapes[:1] * (len(shapes) - n_sizes) + [shapes[0][:1]] * n_sizes
    if len(shapes[0]) != 2 or shapes != wanted:
        raise ValueError(
            "proportions, predicted and bag_sizes must have one row per bag, and the "
            f"first two one column per class, got shapes {shapes}"
        )
    return arrays


def class_prior(proportions: ArrayLike, bag_sizes: ArrayLike) -> NDArray:
    r"""Class prior: proportions averaged with the bag sizes as weights.

    Written :math:`\eta`, equation :eq:`eq-prop-prior`.

    Parameters
    ----------
    proportions : array-like, shape (n_bags, n_classes)
    bag_sizes : array-like, shape (n_bags,)
        Instances in each bag; a bag of size 0 has no say.

    Returns
    -------
    ndarray, shape (n_classes,)
        Source: stolpe2011, eq. 2.

    Examples
    --------
    >>> from llpbook.proportions import class_prior
    >>> class_prior([[0.5, 0.5], [0.0, 1.0]], [20, 10]).round(2).tolist()
    [0.33, 0.67]
    """
    P, sizes = _align_tables(proportions, bag_sizes=bag_sizes)
    # eq: eq-prop-prior
    return sizes @ np.where(sizes[:, None] > 0, P, 0.0) / sizes.sum()


def proportion_mse(proportions: ArrayLike, predicted: ArrayLike) -> float:
    r"""Mean squared error over all entries of two proportion matrices.

    Equation :eq:`eq-prop-mse`, stolpe2011 eq. 4.

    Parameters
    ----------
    proportions, predicted : array-like, shape (n_bags, n_classes)

    Returns
    -------
    float
        NaN if a bag without instances has NaN for its shares.

    Examples
    --------
    >>> from llpbook.proportions import proportion_mse
    >>> round(proportion_mse([[0.5, 0.5], [0.0, 1.0]], [[0.5, 0.5], [0.2, 0.8]]), 3)
    0.02
    """
    P, G = _align_tables(proportions, predicted)
    # eq: eq-prop-mse
    return float(np.mean((P - G) ** 2))


def proportion_mae(
    proportions: ArrayLike, predicted: ArrayLike, *, bag_sizes: ArrayLike | None = None
) -> float:
    r"""Mean over bags of the share of instances that would have to change class.

    Equation :eq:`eq-prop-mae`.

    For two classes this is the mean of :math:`|p_k - \tilde p_k|`, the error by which yu2013 and franco2023 tune; for
    more classes :math:`\frac12 \sum_j |\pi_{kj} - \gamma_{kj}|`, the total variation distance.

    Parameters
    ----------
    proportions, predicted : array-like, shape (n_bags, n_classes)
    bag_sizes : array-like, shape (n_bags,), optional
        Weights of the bags; all bags weigh the same if not given.

    Returns
    -------
    float
        Between 0 and 1. A bag of size 0 has no say; without ``bag_sizes`` its NaN makes the mean NaN.

    Examples
    --------
    >>> from llpbook.proportions import proportion_mae
    >>> round(proportion_mae([[0.5, 0.5], [0.0, 1.0]], [[0.5, 0.5], [0.2, 0.8]]), 3)
    0.1
    """
    sizes = np.ones(np.shape(predicted)[:1]) if bag_sizes is None else bag_sizes
    P, G, weights = _align_tables(proportions, predicted, sizes)
    distance = 0.5 * np.abs(P - G).sum(axis=1)
    distance = np.where(weights > 0, distance, 0.0)
    # eq: eq-prop-mae
    return float(np.average(distance, weights=weights))


def proportion_weighted_mse(
    proportions: ArrayLike, predicted: ArrayLike, bag_sizes: ArrayLike
) -> float:
    r"""Squared error weighted by the sizes of bags and classes.

    :math:`\frac{1}{L K} \sum_{k, j} \eta_j \frac{n_k}{n} (\pi_{kj} - \gamma_{kj})^2`, stolpe2011 eq. 6.

    Parameters
    ----------
    proportions, predicted : array-like, shape (n_bags, n_classes)
    bag_sizes : array-like, shape (n_bags,)

    Returns
    -------
    float

    Examples
    --------
    >>> from llpbook.proportions import proportion_weighted_mse
    >>> round(proportion_weighted_mse([[0.5, 0.5], [0.0, 1.0]], [[0.5, 0.5], [0.2, 0.8]], [10, 10]), 4)
    0.005
    """
    P, G, sizes = _align_tables(proportions, predicted, bag_sizes)
    weights = np.outer(sizes / sizes.sum(), class_prior(P, sizes))
    gap = np.where(sizes[:, None] > 0, P - G, 0.0)
    return float(np.mean(weights * gap**2))


def prior_mse(
    proportions: ArrayLike, predicted: ArrayLike, bag_sizes: ArrayLike
) -> float:
    r"""Squared error between the class priors of two proportion matrices.

    :math:`\frac1K \sum_j (\eta_j(\Pi) - \eta_j(\Gamma))^2`, stolpe2011 eq. 7.

    Parameters
    ----------
    proportions, predicted : array-like, shape (n_bags, n_classes)
    bag_sizes : array-like, shape (n_bags,)

    Returns
    -------
    float

    Examples
    --------
    >>> from llpbook.proportions import prior_mse
    >>> round(prior_mse([[0.5, 0.5], [0.0, 1.0]], [[0.5, 0.5], [0.2, 0.8]], [10, 10]), 3)
    0.01
    """
    P, G, sizes = _align_tables(proportions, predicted, bag_sizes)
    gap = class_prior(P, sizes) - class_prior(G, sizes)
    return float(np.mean(gap**2))


def count_labelings(counts: ArrayLike) -> int:
    r"""Number of labelings of the instances with exactly these class counts in each bag.

    Equation :eq:`eq-prop-count`.

    Parameters
    ----------
    counts : array-like of int, shape (n_bags, n_classes)
        Instances of each class in each bag, :math:`n_k \pi_{kj}`.

    Returns
    -------
    int
        Exact, of any length.

    Raises
    ------
    ValueError
        If a count is negative or not a whole number.

    Examples
    --------
    >>> from llpbook.proportions import count_labelings
    >>> count_labelings([[3, 1], [2, 2]])  # 4 for the first bag, 6 for the second
    24
    """
    table = np.asarray(counts)
    whole = table.ndim == 2 and table.dtype.kind in "iuf"
    if (
        not whole
        or not (np.isfinite(table) & (table >= 0)).all()
        or not np.allclose(table, np.round(table), atol=1e-6)
    ):
        raise ValueError(
            "counts must be whole numbers, none negative, one row per bag, "
            f"got {table.tolist()}"
        )
    rows = [[round(c) for c in row] for row in table.tolist()]
    # eq: eq-prop-count
    return prod(
        comb(sum(row[: j + 1]), row[j]) for row in rows for j in range(len(row))
    )


@dataclass(frozen=True, eq=False)
class RestoredCounts(Printed):
    """Counts that printed shares allow, from `restore_counts`; `print` it.

    Attributes
    ----------
    proportions : Series, DataFrame or ndarray
        To be used in the place of the printed shares: counts divided by sizes in bags with one possible count, the
        printed shares elsewhere. Rows sum to 1.
    counts : DataFrame, shape (n_bags, n_classes)
        A row per bag with instances; <NA> where not one count is possible.
    possible : Series
        For each of these bags "one", "several" or "none".
    step : float
        The unit of the last printed digit, such as 0.01; 0 for shares that are whole counts, or have all digits.

    Examples
    --------
    >>> from llpbook.proportions import restore_counts
    >>> print(restore_counts([0] * 9 + [1] * 9, [0.33, 0.78]))
    shares in steps of 0.01: 2 of 2 bags have one possible count
    """

    proportions: Any
    counts: pd.DataFrame
    possible: pd.Series
    step: float

    def __str__(self):
        digits = f"in steps of {self.step:g}" if self.step else "with all digits"
        one, n = (self.possible == "one").sum(), len(self.possible)
        text = f"shares {digits}: {one} of {n} bags have one possible count"
        for word in ("several", "none"):
            names = self.possible.index[self.possible == word].tolist()
            if names:
                shown = ", ".join(map(str, names[:3])) + ", …" * (len(names) > 3)
                text += f"\n{word}, so their shares stay as they are: {len(names)} bags ({shown})"
        if self.counts.isna().all(axis=None):
            text += "\nthese are no rounded counts of these instances, and no share was changed"
        return text


def restore_counts(
    bags: ArrayLike, proportions: Proportions, *, counts: ArrayLike | None = None
) -> RestoredCounts:
    r"""Turn printed shares back into the counts that they were rounded from.

    In a bag of 9 people the share 0.33 is 3 of 9. Each function that reads shares does the same; this one says in which
    bags it works, and takes rows of several classes whose sum misses 1 because each share was rounded.

    Parameters
    ----------
    bags : array-like, shape (n_instances,)
    proportions : array-like, Series, dict or DataFrame
        See `llpbook.proportions.check_proportions`.
    counts : array-like of int, shape (n_instances,), optional
        How many equal instances each row stands for; one if not given.

    Returns
    -------
    RestoredCounts

    Raises
    ------
    ValueError
        For malformed input.

    Notes
    -----
    With the size :math:`n_k` of a bag and the step :math:`\delta` of the digits, possible counts :math:`c_{kj}` have
    :math:`|c_{kj} / n_k - \pi_{kj}| \le \delta / 2` and :math:`\sum_j c_{kj} = n_k`. If rows of three or more classes
    were made to sum to 1, the limit is :math:`\delta`. Where more than a tenth of the bags have no possible count, the
    shares belong to other people, or carry noise, and none is changed.

    Examples
    --------
    >>> import pandas as pd
    >>> from llpbook.proportions import restore_counts
    >>> bags, shares = ["a"] * 9 + ["b"] * 30, pd.Series({"a": 0.33, "b": 0.47})
    >>> restored = restore_counts(bags, shares)
    >>> restored.counts[1].to_dict(), restored.proportions.round(4).to_dict()
    ({'a': 3, 'b': 14}, {'a': 0.3333, 'b': 0.4667})
    """
    printed, total = _as_table(proportions), 1.0
    refuse_columns(printed)
    values = numbers("proportions", printed)
    if values.ndim == 2 and sum_to_one(values, printed_step(values) / 2):
        total = values.sum(axis=1, keepdims=True)
    n_rows = np.shape(bags)[0] if np.ndim(bags) else 1
    matrix, classes, keys, codes = match_bags(printed / total, bags, n_rows)
    times = None if counts is None else read_counts(counts, len(codes), bags)
    sizes = np.bincount(codes, times, len(matrix)).round().astype(np.int64)
    matrix = fill_empty_rows(matrix, np.flatnonzero(sizes), keys)
    there, used = restored(matrix * total, sizes), sizes > 0
    shares = there.shares / there.shares.sum(axis=1, keepdims=True)
    shares = shares[:, 1] if printed.ndim == 1 else shares
    if isinstance(printed, pd.Series | pd.DataFrame):
        shares = 0.0 * printed.fillna(0.0) + shares
    index = (pd.RangeIndex(len(sizes)) if keys is None else keys)[used]
    return RestoredCounts(
        shares,
        pd.DataFrame(there.counts[used], index, classes).astype("Int64"),
        pd.Series(np.array(["none", "one", "several"])[there.possible[used]], index),
        there.step,
    )


def _as_table(proportions):
    """Proportions as a Series or DataFrame, or as an array where they have no keys."""
    if isinstance(proportions, dict):
        rows = list(proportions.values())
        keys = pd.Index(list(proportions), tupleize_cols=False)
        return pd.Series(rows, keys) if np.ndim(rows) == 1 else pd.DataFrame(rows, keys)
    table = as_frame(proportions)
    if isinstance(table, pd.Series | pd.DataFrame):
        return table
    return numbers("proportions", table)


@dataclass(frozen=True)
class Identifiability:
    """Rank, conditioning, spread and worth of a set of proportions, from `identifiability`; `print` it.

    Attributes
    ----------
    n_bags, n_instances, n_classes : int
        Bags that hold instances, their instances, and classes.
    rank : int
        Numerical rank of the proportion matrix; class means need ``rank == n_classes``.
    condition_number : float
        Ratio of its extreme singular values.
    spread, noise : ndarray, shape (n_classes,)
        Standard deviation of each class's share over the bags (weighted by size), and the one that random bags of these
        sizes would show (root mean square, without replacement).
    worth_in_labels : ndarray, shape (n_classes,)
        For each class against the rest, the number of labeled instances that pin down the difference of the two class
        means as well as these bags do.
    step : float
        The unit of the last digit of the shares where they are rounded counts; 0 elsewhere.
    n_restored : int
        Bags whose shares are exact because one count is possible, see `restore_counts`.
    doubt : str
        What is printed below, where rows seem to stand for several instances; else empty.

    Examples
    --------
    >>> from llpbook import identifiability
    >>> result = identifiability([0, 0, 0, 0, 1, 1, 1, 1], [0.25, 0.75])
    >>> result.rank, result.worth_in_labels.round(1).tolist()
    (2, [2.0, 2.0])
    """

    n_bags: int
    n_instances: int
    n_classes: int
    rank: int
    condition_number: float
    spread: np.ndarray
    noise: np.ndarray
    worth_in_labels: np.ndarray
    step: float = 0.0
    n_restored: int = 0
    doubt: str = ""

    def _repr_html_(self):
        return f"<pre>{self}</pre>"

    def __str__(self):
        full = self.rank == self.n_classes
        verdict = "full rank" if full else "too low: class means are not identifiable"
        shown = slice(1, None) if self.n_classes == 2 else slice(None)
        spread = ", ".join(f"{v:.3f}" for v in self.spread[shown])
        noise = ", ".join(f"{v:.3f}" for v in self.noise[shown])
        worth = ", ".join(f"{v:.0f}" for v in self.worth_in_labels[shown])
        per_class = "" if self.n_classes == 2 else ", each class against the rest"
        digits = ""
        if self.step:
            digits = (
                f"shares in steps of {self.step:g}: turned back into counts in "
                f"{self.n_restored} of {self.n_bags} bags\n"
            )
        return (
            f"{self.n_instances} instances in {self.n_bags} bags, "
            f"{self.n_classes} classes\n{digits}"
            f"rank of the proportions: {self.rank} ({verdict}), "
            f"condition number {self.condition_number:.1f}\n"
            f"spread of the shares: {spread} (random bags of these sizes: {noise})\n"
            f"worth, to tell class means apart{per_class}: {worth} labeled instances"
        ) + f"\n{self.doubt}" * bool(self.doubt)


def identifiability(
    bags: ArrayLike, proportions: Proportions, *, counts: ArrayLike | None = None
) -> Identifiability:
    r"""Compute the rank, conditioning, spread, and worth in labels of a set of proportions: look before you fit.

    Parameters
    ----------
    bags : array-like, shape (n_instances,)
        Integers that index the rows of ``proportions``, or their keys where they have some.
    proportions : array-like, Series, dict or DataFrame, shape (n_bags,) or (n_bags, n_classes)
        A vector is the share of the positive class.
    counts : array-like of int, shape (n_instances,), optional
        How many equal instances each row stands for, as in a table of cells; one if not given.

    Returns
    -------
    Identifiability
        Its ``worth_in_labels`` is :math:`n \operatorname{Var}(\pi_{\cdot j}) / (\eta_j (1 - \eta_j))`,
        :eq:`eq-prop-worth`: for random bags one less than their number, on average.

    Raises
    ------
    ValueError
        If a share is outside of [0, 1], a row does not sum to 1, a bag has no row, or one that holds instances has NaN.

    Examples
    --------
    >>> from llpbook import identifiability, load_bags
    >>> data = load_bags("heart", bag_size=8, random_state=0)
    >>> print(identifiability(data.bags, data.proportions))
    270 instances in 34 bags, 2 classes
    rank of the proportions: 2 (full rank), condition number 2.9
    spread of the shares: 0.178 (random bags of these sizes: 0.174)
    worth, to tell class means apart: 35 labeled instances
    """
    restored_counts = read_shares(bags, proportions, counts)
    shares, sizes = restored_counts.shares, restored_counts.sizes
    eta, total = class_prior(shares, sizes), sizes.sum()
    variance = sizes @ (shares - eta) ** 2 / total
    pure = eta * (1 - eta)
    # eq: eq-prop-worth
    worth = total * np.divide(variance, pure, out=np.zeros_like(eta), where=pure > 0)
    values = np.linalg.svd(shares, compute_uv=False)
    rank = int((values > 1e-8 * values[0]).sum())
    condition = values[0] / values[-1] if rank == len(eta) else np.inf
    noise = np.sqrt(pure * (len(sizes) - 1) / max(total - 1, 1))
    doubt = "" if counts is not None else doubt_of_rows(shares, sizes)
    return Identifiability(
        len(sizes), int(total), len(eta), rank, float(condition),
        spread=variance**0.5, noise=noise, worth_in_labels=worth,
        step=restored_counts.step if restored_counts.agree else 0.0,
        n_restored=int((restored_counts.possible == 1).sum()), doubt=doubt,
    )  # fmt: skip


#: Of fewer bags nothing is said about their rows.
FEW_BAGS = 10


def doubt_of_rows(shares, sizes):
    """Message where shares differ and most are no counts of so few rows, not even rounded to a percent."""
    counts = sizes[:, None] * shares
    off = np.abs(counts - np.round(counts)).max(axis=1) > 0.005 * sizes + 1e-6
    if len(off) < FEW_BAGS or off.mean() <= 0.5 or np.ptp(shares[:, 0]) == 0:
        return ""
    return f"{off.sum()} shares are no counts of so few rows: pass counts= if a row stands for several instances"
