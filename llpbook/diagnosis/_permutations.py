r"""Tests of equal distributions in cells: by permutations, and for tables of counts."""

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.optimize import brentq
from scipy.stats import chi2, ncx2, pearson3, random_table
from sklearn.utils import check_random_state

from .._input import Matrix, RandomState, check_features, check_whole
from ._views import TestResult, check_level, combine_views, smallest_shift, views

#: Permutations whose sums are taken in one pass over the rows.
BATCH = 10


def cell_codes(*keys):
    """Number the combinations of keys that occur 0, 1, …, sorted by the first key, then the second, …."""
    return pd.MultiIndex.from_arrays(keys).factorize(sort=True)[0]


def cell_sums(rows, cells, n_cells):
    """Sum the rows of each cell, shape (n_cells, n_columns)."""
    at = (cells, np.arange(len(cells)))
    return sp.csr_array((np.ones(len(cells)), at), shape=(n_cells, len(cells))) @ rows


def group_means(rows, groups):
    """The mean of the group of each instance, shape of ``rows``."""
    sizes = np.bincount(groups)
    return (cell_sums(rows, groups, len(sizes)) / sizes[:, None])[groups]


def permuted_energies(features, cells, groups, n_permutations, rng):
    r"""Energy of the means between the cells of a group, summed over groups; then that of permutations in groups.

    :math:`Q_j = \sum_g \sum_{k \in g} n_k (m_{kj} - m_{gj})^2` by feature, shape (1 + n_permutations, n_embedded).
    """
    order = np.lexsort((cells, groups))
    # Centered in groups, so that only the sums over cells change; single precision halves the time.
    rows = (features - group_means(features, groups))[order].astype(np.float32)
    blocks, cells, n = groups[order], cells[order], len(cells)
    sizes, energies = np.bincount(cells), []
    for at in range(0, 1 + n_permutations, BATCH):
        many = np.empty((n, min(BATCH, 1 + n_permutations - at)), dtype=np.int32)
        for j in range(many.shape[1]):
            many[:, j] = cells[shuffled(blocks, rng)] if at + j else cells
        energies.append(cell_energies(rows, many, sizes))
    return np.vstack(energies)


def shuffled(blocks, rng):
    """A permutation within blocks of neighbors."""
    if blocks[0] == blocks[-1]:
        return rng.permutation(len(blocks))
    return np.lexsort((rng.random_sample(len(blocks)), blocks))


def cell_energies(rows, cells, sizes):
    """Energies of many assignments of centered rows to cells, shape (n_assignments, n_columns)."""
    n, m = cells.shape
    at = (cells + len(sizes) * np.arange(m, dtype=np.int32)).ravel()
    start, ones = np.arange(0, m * n + 1, m), np.ones(m * n, dtype=rows.dtype)
    sums = sp.csc_array((ones, at, start), shape=(m * len(sizes), n)) @ rows
    sums = sums.reshape(m, len(sizes), -1)
    return np.einsum("mkj,mkj,k->mj", sums, sums, 1.0 / sizes)


def permutation_tails(parts):
    """P-values of energies by Pearson's type III distribution with the moments of their columns.

    1 in a column that is constant up to rounding.
    """
    mean = parts.mean(axis=0)
    gaps = parts - mean
    sd = np.sqrt(np.square(gaps).mean(axis=0))
    varied = sd > 1e-5 * np.abs(mean)  # single precision
    skewness = (gaps**3).mean(axis=0) / np.where(varied, sd, 1) ** 3
    tails = pearson3.sf(gaps / np.where(varied, sd, 1), np.where(varied, skewness, 0))
    return np.where(varied, tails, 1.0)


def permutation_test(
    seen, cells, groups=None, n_permutations=199, alpha=0.05, random_state=None,
    single="one cell in each group",
):  # fmt: skip
    r"""Test whether features differ between the cells of a group, by permutations.

    Each view of the features has its energy, each energy a p-value from the moments of its permutations, and the
    combination of these is the statistic whose rank among its own permutations is the p-value,
    :math:`p = (1 + \#\{r : C_r \le C\}) / (1 + R)`. Exact: under independence given the group, every permutation of
    instances within groups is as likely (anderson2001).

    Parameters
    ----------
    seen : Views
    cells : ndarray of int, shape (n_instances,)
        Codes 0, 1, ….
    groups : ndarray of int, shape (n_instances,), optional
        Groups to condition on; one group if not given. All instances of a cell are in one group.
    n_permutations : int, default 199
    alpha : float, default 0.05
        For the smallest shift that would be found.
    random_state : int, RandomState or None
    single : str
        The note where each group has only one cell.

    Returns
    -------
    TestResult
        statistic is the energy of the whitened components over its mean under permutations, 1 on average; by_column
        has NaN for a constant column. NaN, with a note, where each group has only one cell, or no permutation changes
        the energy.
    """
    rng = check_random_state(random_state)
    groups = np.zeros_like(cells) if groups is None else groups
    n_cells, n_groups = cells.max() + 1, groups.max() + 1
    if n_cells == n_groups:
        return TestResult(np.nan, np.nan, note=single)
    energies = permuted_energies(seen.features, cells, groups, n_permutations, rng)
    parts = energies @ seen.weights.T
    mean, sd = parts[:, 0].mean(), parts[:, 0].std()
    if sd <= 1e-10 * len(cells):  # of a total energy of len(cells): rounding
        return TestResult(np.nan, np.nan, note="no permutation changes the features")
    tails = permutation_tails(parts)
    together = combine_views(tails)
    pvalue = np.mean(together <= together[0] * (1 + 1e-6))
    shift = smallest_shift(sd / mean, n_cells, len(cells), alpha)
    columns = seen.spread(tails[0, 2:])
    return TestResult(parts[0, 0] / mean, float(pvalue), shift, columns)


def table_test(counts, n_draws=1999, alpha=0.05, random_state=None):
    r"""Test whether the shares of the columns differ between the rows of a table of counts.

    Pearson's :math:`X^2 = \sum_{kj} (o_{kj} - e_{kj})^2 / e_{kj}`. Where all expected counts are 5
    or more, its p-value is that of :math:`\chi^2`; else it is the rank among random tables with these margins.

    Parameters
    ----------
    counts : ndarray of int, shape (n_rows, n_columns)
        Rows and columns without a count are left out.
    n_draws : int, default 1999
    alpha : float, default 0.05
        For the smallest shift that would be found, in standard deviations of the label.
    random_state : int, RandomState or None

    Returns
    -------
    TestResult
        NaN if fewer than two rows or columns are left.
    """
    rng, counts = check_random_state(random_state), np.asarray(counts)
    counts = counts[counts.sum(axis=1) > 0][:, counts.sum(axis=0) > 0]
    if min(counts.shape) < 2:
        return TestResult(np.nan, np.nan, note="one bag, or one class")
    row_sums, column_sums = counts.sum(axis=1), counts.sum(axis=0)
    expected = np.outer(row_sums, column_sums) / counts.sum()

    def squares(tables):
        return (np.square(tables - expected) / expected).sum(axis=(-2, -1))

    statistic, dof = float(squares(counts)), np.prod(np.array(counts.shape) - 1)
    shift = smallest_table_shift(counts.shape, counts.sum(), alpha)
    if expected.min() >= 5:
        return TestResult(statistic, float(chi2.sf(statistic, dof)), shift)
    draws = random_table(row_sums, column_sums, seed=rng)
    block = max(1, 10**6 // counts.size)  # tables at a time, to bound the memory
    exceeding = 0
    for at in range(0, n_draws, block):
        drawn = squares(draws.rvs(min(block, n_draws - at)))
        exceeding += int((drawn >= statistic * (1 - 1e-9)).sum())
    return TestResult(statistic, (1 + exceeding) / (1 + n_draws), shift)


def smallest_table_shift(shape, n_instances, alpha, power=0.8):
    r"""Typical shift of shares that Pearson's test finds with the given power.

    In standard deviations of the label, independent in each of :math:`L` rows:
    :math:`\delta^2 = \frac{\lambda}{n} \frac{L}{L - 1}`, :math:`\lambda` the noncentrality with which the
    :math:`\chi^2` distribution has this power.
    """
    dof = (shape[0] - 1) * (shape[1] - 1)
    critical = chi2.isf(alpha, dof)
    top = 10 + 10 * critical
    noncentrality = brentq(lambda c: ncx2.sf(critical, dof, c) - power, 1e-9, top)
    return float(np.sqrt(noncentrality / n_instances * shape[0] / (shape[0] - 1)))


def two_bag_test(
    X_p: Matrix,
    X_q: Matrix,
    *,
    n_permutations: int = 999,
    alpha: float = 0.05,
    random_state: RandomState = 0,
) -> TestResult:
    """Test whether two bags differ.

    A permutation test of equal distributions, by whitened components, Fourier features and each column: it finds any
    smooth difference. The difference need not be one of the class priors: methods for two bags assume that nothing else
    differs, which two bags cannot show.

    Parameters
    ----------
    X_p, X_q : array-like, shape (n_p, n_features) and (n_q, n_features)
    n_permutations : int, default 999
    alpha : float, default 0.05
        For the smallest shift that would be found.
    random_state : int, RandomState or None, default 0

    Returns
    -------
    TestResult
        ``statistic`` is 1 on average where the bags do not differ; ``pvalue``; ``detectable``, the root mean square
        shift of the two bags from their common mean, in standard deviations of every feature, that would have been
        found four times in five; ``by_column``, a p-value for each column (NaN for a constant one).

    Raises
    ------
    ValueError
        For malformed input, different numbers of columns, columns that are all constant, or fewer than 19 permutations.

    Examples
    --------
    >>> import numpy as np
    >>> from llpbook.diagnosis import two_bag_test
    >>> rng = np.random.default_rng(0)
    >>> result = two_bag_test(rng.normal(size=(80, 3)), rng.normal(size=(60, 3)) + [1, 0, 0])
    >>> result.pvalue <= 0.001
    True
    """
    X_p, X_q = check_features(X_p, "X_p"), check_features(X_q, "X_q")
    if X_p.shape[1] != X_q.shape[1]:
        raise ValueError(
            f"X_p and X_q must have the same columns, got {X_p.shape[1]} and {X_q.shape[1]}"
        )
    check_whole("n_permutations", n_permutations, 19)
    check_level(alpha)
    rng, X = check_random_state(random_state), np.vstack([X_p, X_q])
    seen, cells = views(X, random_state=rng), np.repeat([0, 1], [len(X_p), len(X_q)])
    return permutation_test(seen, cells, None, n_permutations, alpha, rng)
