"""Rows that are visibly cells of a table, though no counts say for how many instances they stand."""

import numpy as np
import pandas as pd
from scipy.special import gammaln
from scipy.stats import poisson

from ._rows import whole
from ._tables import as_frame

#: Rows are cells if rows in random bags would have as few equal pairs in a bag with a smaller probability than this.
CHANCE = 1e-4
#: Rows that are looked at first, and the part of them that differ where nearly all rows do.
PROBE, MOSTLY = 400, 0.95
#: Of more kinds of rows the pairs decide alone.
MOST_KINDS = 100


#: What to do, where a function takes counts, and where it does not.
GIVE = (
    "Pass counts=, how many instances each row stands for; if each row is one instance, "
    "counts=np.ones(len(bags), dtype=int)"
)
OF_CHUNKS = (
    "Pass counts=, the column of the chunks that says how many instances each row stands for; if each row is one "
    "instance, a column of ones"
)
REPEAT = (
    "Repeat each row, rows = np.repeat(np.arange(len(bags)), counts), and split these; if each row is one instance, "
    "split(bags, groups=bags)"
)


def refuse_cells(X, codes, matrix=None, remedy=GIVE):
    """Refuse rows that are visibly cells: too evenly spread over bags whose shares are not counts of so few rows.

    Parameters
    ----------
    X : ndarray or sparse array, shape (n_rows, n_columns)
        Features, or masks of groups.
    codes : ndarray of int, shape (n_rows,)
        Rows of ``matrix``.
    matrix : ndarray, shape (n_bags, n_classes), optional
        Shares. Without them the rows alone decide.
    remedy : str
        What the message says that is to be done.

    Raises
    ------
    ValueError

    Notes
    -----
    In a table of cells each bag has each kind of row once. Instances whose order is chance have about
    :math:`\\binom{n}{2}^{-1} \\sum_k \\binom{n_k}{2} \\sum_d \\binom{N_d}{2}` pairs of equal rows in one bag, where
    :math:`n_k` rows are in bag :math:`k` and :math:`N_d` rows are equal to row :math:`d`; where bags differ, more.
    Where all bags have the same numbers of each kind, the probability of this is known exactly.
    """
    sizes = np.bincount(codes, minlength=0 if matrix is None else len(matrix))
    used = sizes > 0
    if matrix is not None and whole(sizes[used], matrix[used]).mean() > 0.5:
        return
    kinds = row_kinds(X)
    if kinds is None or len(codes) < 2:
        return
    n_pairs = pairs(np.bincount(kinds))
    expected = pairs(sizes) * n_pairs / pairs(np.array([len(codes)]))
    cells = np.unique(codes * (kinds.max() + 1) + kinds, return_counts=True)[1]
    few = ", whose shares no labels of so few rows have" * (matrix is not None)
    chance = min(poisson.cdf(pairs(cells), expected), chance_of_one_mix(codes, kinds))
    if chance < CHANCE:
        raise ValueError(
            f"counts is missing: the {len(codes)} rows are visibly cells of a table, {kinds.max() + 1} kinds of rows "
            f"spread evenly over {used.sum()} bags{few}. {remedy}"
        )


def chance_of_one_mix(codes, kinds):
    """The probability that all bags have the kinds of rows in the same numbers, if they have; else 1."""
    if kinds.max() >= MOST_KINDS:
        return 1.0
    table = pd.crosstab(codes, kinds).to_numpy()
    if (table != table[0]).any():
        return 1.0
    n_bags, n = len(table), table[0].sum()
    one = gammaln(n + 1) - gammaln(table[0] + 1).sum()
    chosen = gammaln(n_bags * n + 1) - gammaln(n_bags * table[0] + 1).sum()
    return float(np.exp(n_bags * one - chosen))


def pairs(sizes):
    """The number of pairs in groups of these sizes, all together."""
    return float(np.sum(sizes * (sizes - 1.0)) / 2)


def row_kinds(X):
    """The number of the kind of each row, equal rows being of a kind; None where most rows differ."""
    X = as_frame(X)
    if not hasattr(X, "shape") or len(X.shape) != 2 or not X.shape[1]:
        return None
    step = max(1, X.shape[0] // PROBE)
    probe = row_keys(X.iloc[::step] if isinstance(X, pd.DataFrame) else X[::step])
    if len(np.unique(probe)) > MOSTLY * len(probe):
        return None
    return np.unique(row_keys(X), return_inverse=True)[1]


def row_keys(X):
    """The inner product of each row with a fixed random vector, summed in the order of the features."""
    if isinstance(X, pd.DataFrame):
        return pd.util.hash_pandas_object(X, index=False).to_numpy()
    if X.dtype.kind not in "biuf":
        return row_keys(pd.DataFrame(X))
    direction = np.random.RandomState(0).normal(size=X.shape[1])
    if not isinstance(X, np.ndarray):
        return X.tocsr().sorted_indices() @ direction
    keys = np.zeros(len(X))
    for column, factor in zip(X.T, direction, strict=True):
        keys += factor * column
    return keys
