r"""Statistics of comparisons: several methods on the same data sets, or two methods on the same draws.

*Several methods.* `rank_methods` ranks the methods on each data set, 1 for the best, and `average_ranks` averages the
ranks over the sets. `friedman` tests whether the average ranks differ at all. If they do, two methods differ where
their average ranks are at least a `critical_difference` apart, and `indistinct_groups` lists the methods that are not.
`llpbook.plotting.plot_critical_difference` draws the result.

*Two methods.* `wilcoxon_test` compares two methods over data sets, which are independent. `resampled_t_test` compares
them over draws from one data set: such draws share training instances, so their scores are correlated, and the usual
t test rejects too often. `effect_sizes` says how large a difference is.

*Tables.* `paired_differences` makes a table of differences from scores of data sets, tasks and draws, with the standard
error over what is independent, which it names.

Two scores that differ only by rounding tie: a gap of less than ``TIE`` times the largest score counts as none.

Chapter: ``book/comparison``. Sources: demsar2006 (Sections 3.1.3, 3.2.2 and 3.2.4); nadeau2003; Kerby (2014), The
Simple Difference Formula, Comprehensive Psychology 3.
"""

from collections.abc import Hashable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from ._input import ArrayLike, check_flag, check_whole, numbers
from .base import warn

__all__ = [
    "EffectSizes",
    "FriedmanTest",
    "ResampledTTest",
    "WilcoxonTest",
    "average_ranks",
    "critical_difference",
    "effect_sizes",
    "friedman",
    "friedman_from_ranks",
    "indistinct_groups",
    "paired_differences",
    "rank_methods",
    "resampled_t_test",
    "wilcoxon_test",
]

#: Scores tie if they differ by less than this times the largest absolute score of the data set, or of the pairs.
TIE = 1e-9

#: The rounding error allowed in each published average rank: two decimals.
PRINTED = 0.005


class FriedmanTest(NamedTuple):
    """Result of `friedman`.

    - ``chi2``: Friedman's statistic, in [0, N (k - 1)] for N sets and k methods.
    - ``chi2_pvalue``: its p-value, from the chi-square distribution with k - 1 degrees of freedom.
    - ``f``: the correction of Iman and Davenport; infinite if all data sets rank the methods alike.
    - ``f_pvalue``: its p-value, from the F distribution with k - 1 and (k - 1)(N - 1) degrees of freedom.
    - ``n_methods``, ``n_sets``: k and N.

    Examples
    --------
    >>> from llpbook import friedman
    >>> result = friedman([[0.9, 0.8, 0.7], [0.8, 0.7, 0.6], [0.9, 0.7, 0.8]])
    >>> result.n_sets, result.n_methods, round(result.chi2, 2)
    (3, 3, 4.67)
    """

    chi2: float
    chi2_pvalue: float
    f: float
    f_pvalue: float
    n_methods: int
    n_sets: int


class WilcoxonTest(NamedTuple):
    """Result of `wilcoxon_test`.

    - ``positive``, ``negative``: the sums of the ranks of the pairs in which the first, or the second, score is
      larger. Pairs that tie give half of their ranks to each sum, so together the two are n (n + 1) / 2.
    - ``pvalue``: two-sided p-value.
    - ``n_pairs``: n.

    Examples
    --------
    >>> from llpbook.comparison import wilcoxon_test
    >>> result = wilcoxon_test([0.9, 0.8, 0.7, 0.9], [0.8, 0.7, 0.5, 0.6])
    >>> result.positive, result.negative, result.n_pairs
    (10.0, 0.0, 4)
    """

    positive: float
    negative: float
    pvalue: float
    n_pairs: int


class ResampledTTest(NamedTuple):
    """Result of `resampled_t_test`.

    - ``difference``: the mean of first - second, in the units of the scores.
    - ``standard_error``: its corrected standard error.
    - ``t``: their ratio; 0 if both are 0, infinite if only the standard error is.
    - ``pvalue``: two-sided p-value, from Student's distribution with n_draws - 1 degrees of freedom.
    - ``n_draws``: the number of draws.

    Examples
    --------
    >>> from llpbook.comparison import resampled_t_test
    >>> result = resampled_t_test([0.9, 0.8, 0.7, 0.9], [0.8, 0.8, 0.5, 0.8], test_train_ratio=0.25)
    >>> result.n_draws, round(result.difference, 3)
    (4, 0.1)
    """

    difference: float
    standard_error: float
    t: float
    pvalue: float
    n_draws: int


class EffectSizes(NamedTuple):
    """Result of `effect_sizes`.

    - ``difference``: the mean of first - second, in the units of the scores.
    - ``standard_error``: of the difference.
    - ``rank_biserial``: matched-pairs rank-biserial correlation, in [-1, 1]: the difference of the two sums of
      signed ranks, divided by their total. It is 1 if the first score is larger in every pair.
    - ``probability``: the share of pairs in which the first score is larger; a pair that ties counts half.

    Examples
    --------
    >>> from llpbook.comparison import effect_sizes
    >>> result = effect_sizes([0.9, 0.8, 0.7], [0.8, 0.8, 0.5])
    >>> round(result.difference, 2), round(result.probability, 2)
    (0.1, 0.83)
    """

    difference: float
    standard_error: float
    rank_biserial: float
    probability: float


# --- input ---------------------------------------------------------------------------
def score_table(scores):
    """Scores as a DataFrame of finite numbers, one row per data set: rows with the same index are averaged."""
    values = numbers("scores", scores)
    if values.ndim != 2 or values.shape[0] < 1 or values.shape[1] < 2:
        raise ValueError(
            "scores must have a row per data set and a column for each of at least two methods, "
            f"got the shape {values.shape}"
        )
    table = pd.DataFrame(values)
    if isinstance(scores, pd.DataFrame):
        table.index, table.columns = scores.index, scores.columns
    if not table.columns.is_unique:
        twice = table.columns[table.columns.duplicated()].tolist()[0]
        raise ValueError(f"scores must have one column per method, got {twice!r} twice")
    if not np.isfinite(values).all():
        row, column = np.argwhere(~np.isfinite(values))[0]
        raise ValueError(
            f"scores must be finite, got {values[row, column]} for the method {table.columns[column]!r} in row {row}"
        )
    if table.index.is_unique:
        return table
    levels = list(range(table.index.nlevels))
    return table.groupby(level=levels, sort=False, dropna=False).mean()


def warn_of_levels(index):
    """Warn of an index of several levels: its rows are most often draws or settings of one data set."""
    if index.nlevels > 1:
        names = [name or level for level, name in enumerate(index.names)]
        warn(
            f"scores have a row for each of {len(index)} combinations of {names}, and the test takes each row for an "
            "independent data set: average draws and settings first, as pivot_table with one index column does"
        )


def check_ranks(ranks):
    """Average ranks as a Series by method: between 1 and their number, with the sum that ranks have."""
    values = pd.Series(ranks) if isinstance(ranks, dict) else ranks
    checked = numbers("ranks", values)
    if checked.ndim != 1 or len(checked) < 2:
        raise ValueError(
            f"ranks must be one average rank for each of at least two methods, got the shape {checked.shape}"
        )
    k = len(checked)
    outside = checked[~((checked >= 1) & (checked <= k))]
    if len(outside):
        raise ValueError(f"ranks must lie in [1, {k}], got {outside[0]}")
    if abs(checked.sum() - k * (k + 1) / 2) > PRINTED * k:
        raise ValueError(
            f"ranks of {k} methods must sum to {k * (k + 1) / 2:g}, got {checked.sum():.4g}"
        )
    index = values.index if isinstance(values, pd.Series) else pd.RangeIndex(k)
    if not index.is_unique:
        twice = index[index.duplicated()].tolist()[0]
        raise ValueError(f"ranks must have one entry per method, got {twice!r} twice")
    return pd.Series(checked, index=index, name="rank")


def check_pairs(first, second):
    """Check two columns of scores: finite, of the same length and in the same order."""
    both = isinstance(first, pd.Series) and isinstance(second, pd.Series)
    if both and not first.index.equals(second.index):
        raise ValueError(
            "second.index differs from first.index: pairs are read by position, so give both the same index"
        )
    one, other = numbers("first", first), numbers("second", second)
    if one.ndim != 1 or one.shape != other.shape or len(one) < 2:
        raise ValueError(
            f"first and second must each hold as many scores, two or more, got the shapes {one.shape} and {other.shape}"
        )
    for name, values in (("first", one), ("second", other)):
        if not np.isfinite(values).all():
            wrong = values[~np.isfinite(values)][0]
            raise ValueError(f"{name} must be finite, got {wrong}")
    return one, other


def check_number(name, value, condition, holds):
    """Check that a condition, in words and as a function, holds for a number; return it as a float."""
    number = numbers(name, value)
    if number.ndim or not np.isfinite(number) or not holds(number):
        raise ValueError(f"{name} must be {condition}, got {value!r}")
    return float(number)


def tie_steps(values, scale):
    """The rank of each value among the distinct values; values closer than TIE times ``scale`` are one."""
    order = np.argsort(values, kind="stable")
    steps = np.empty(len(values))
    gaps = np.diff(values[order], prepend=values[order[0]])
    steps[order] = np.cumsum(gaps > TIE * scale)
    return steps


# --- several methods on several data sets --------------------------------------------
def rank_methods(scores: ArrayLike) -> pd.DataFrame:
    """Rank the methods on each data set.

    Parameters
    ----------
    scores : DataFrame or array-like of shape (n_sets, n_methods)
        One score per data set and method, of which a larger one is better (minus the losses). Rows of a DataFrame
        that have the same index are draws from one data set and are averaged first.

    Returns
    -------
    DataFrame of shape (n_sets, n_methods)
        1 for the best method; methods that tie share the mean of their ranks, so each row sums to
        n_methods (n_methods + 1) / 2.

    Raises
    ------
    ValueError
        If ``scores`` is not a table with at least one row and two columns, holds a value that is not finite, or has a
        column twice.

    Examples
    --------
    >>> from llpbook.comparison import rank_methods
    >>> rank_methods([[0.9, 0.8, 0.8], [0.7, 0.6, 0.5]]).to_numpy()
    array([[1. , 2.5, 2.5],
           [1. , 2. , 3. ]])
    """
    table = score_table(scores)
    ladders = [tie_steps(-row, np.abs(row).max()) for row in table.to_numpy()]
    # eq: eq-comparison-ranks
    ranks = stats.rankdata(ladders, axis=1)
    return pd.DataFrame(ranks, index=table.index, columns=table.columns)


def average_ranks(scores: ArrayLike) -> pd.Series:
    """Average the ranks of each method over data sets.

    Parameters
    ----------
    scores : DataFrame or array-like of shape (n_sets, n_methods)
        As for `rank_methods`: rows with the same index are averaged before they are ranked.

    Returns
    -------
    Series of shape (n_methods,)
        By method; 1 if the method is the best on every set. The ranks sum to n_methods (n_methods + 1) / 2.

    Raises
    ------
    ValueError
        As for `rank_methods`.

    Examples
    --------
    >>> from llpbook.comparison import average_ranks
    >>> average_ranks([[0.9, 0.8, 0.8], [0.7, 0.6, 0.5]]).tolist()
    [1.0, 2.25, 2.75]
    """
    return rank_methods(scores).mean().rename("rank")


def friedman(scores: ArrayLike, *, correct_ties: bool = True) -> FriedmanTest:
    r"""Friedman's test that all methods are equally good, with the F correction of Iman and Davenport.

    With the average ranks :math:`R_j` of k methods on N sets (demsar2006, Section 3.2.2),

    .. math:: \chi_F^2 = \frac{12 N}{c\, k (k + 1)} \sum_j \Big(R_j - \frac{k + 1}{2}\Big)^2, \qquad
              F_F = \frac{(N - 1) \chi_F^2}{N (k - 1) - \chi_F^2} .

    The factor c is 1 without ties and 1 - Σ (t³ - t) / (N k (k² - 1)) over groups of t methods that tie on a set.

    Parameters
    ----------
    scores : DataFrame or array-like of shape (n_sets, n_methods)
        As for `rank_methods`, at least two sets. The test is the same for scores and for losses.
    correct_ties : bool, default True
        Divide by c, as `scipy.stats.friedmanchisquare` does; False takes c = 1, as Demšar does. With the
        correction :math:`F_F` is the F statistic of a two-way analysis of variance of the ranks.

    Returns
    -------
    FriedmanTest
        ``chi2, chi2_pvalue, f, f_pvalue, n_methods, n_sets``. Demšar recommends ``f_pvalue``, because the chi-square
        test rejects too rarely. Both p-values are approximations: for three methods on four sets ``f_pvalue`` can be
        0.016 where all permutations of the ranks give 0.069, and it is 0 where all sets agree; with 25 sets its level
        is right. If all methods tie on all sets, the statistics are 0.

    Raises
    ------
    ValueError
        As for `rank_methods`, or if there is only one set.

    Warns
    -----
    LLPWarning
        If the rows have an index of several levels, such as data set and draw: each is taken for a data set.

    Examples
    --------
    >>> from llpbook.comparison import friedman
    >>> result = friedman([[0.9, 0.8, 0.7], [0.8, 0.7, 0.6], [0.9, 0.6, 0.8], [0.7, 0.6, 0.5]])
    >>> round(result.chi2, 3), round(result.f, 3), round(result.f_pvalue, 3)
    (6.5, 13.0, 0.007)
    """
    check_flag("correct_ties", correct_ties)
    ranks = rank_methods(scores)
    warn_of_levels(ranks.index)
    n_sets, k = ranks.shape
    if n_sets < 2:
        raise ValueError("scores must have at least two data sets, got 1")
    rows = [np.unique(row, return_counts=True)[1] for row in ranks.to_numpy()]
    tied = np.concatenate(rows)
    # eq: eq-comparison-ties
    factor = 1 - np.sum(tied**3 - tied) / (n_sets * k * (k**2 - 1))
    return friedman_from_ranks(
        ranks.mean(), n_sets, tie_factor=factor if correct_ties else 1
    )


def friedman_from_ranks(
    ranks: ArrayLike | dict, n_sets: int, *, tie_factor: float = 1
) -> FriedmanTest:
    """`friedman` from average ranks, such as published ones.

    Parameters
    ----------
    ranks : Series, dict or array-like of shape (n_methods,)
        Average ranks, rounded to two decimals or more.
    n_sets : int
        The number of data sets behind them, at least 2.
    tie_factor : float, default 1
        The factor c of `friedman`, in [0, 1]; 1 without ties, or where they are not known. 0 says that all methods tie
        on all sets.

    Returns
    -------
    FriedmanTest

    Raises
    ------
    ValueError
        If a rank is outside [1, n_methods], or the ranks do not sum to n_methods (n_methods + 1) / 2 up to rounding:
        then at least one of them is misprinted. Or if ``n_sets`` or ``tie_factor`` is outside its range.

    Examples
    --------
    >>> from llpbook.comparison import friedman_from_ranks
    >>> round(friedman_from_ranks([1.375, 2.0, 2.625], n_sets=8).chi2, 2)
    6.25
    """
    average = check_ranks(ranks).to_numpy()
    n_sets, k = check_whole("n_sets", n_sets, least=2), len(average)
    c = check_number(
        "tie_factor", tie_factor, "a number in [0, 1]", lambda v: 0 <= v <= 1
    )
    top = n_sets * (k - 1)
    # eq: eq-comparison-friedman
    chi2 = 12 * n_sets / (k * (k + 1)) * np.sum((average - (k + 1) / 2) ** 2)
    chi2 = min(chi2 / c, top) if c > TIE else 0.0
    # eq: eq-comparison-f
    f = (n_sets - 1) * chi2 / (top - chi2) if top - chi2 > TIE * top else np.inf
    chi2_pvalue = stats.chi2.sf(chi2, k - 1)
    f_pvalue = stats.f.sf(f, k - 1, (k - 1) * (n_sets - 1))
    return FriedmanTest(
        float(chi2), float(chi2_pvalue), float(f), float(f_pvalue), k, n_sets
    )


def critical_difference(
    n_methods: int, n_sets: int, *,
    test: str = "bonferroni-dunn", level: float = 0.1,
) -> float:  # fmt: skip
    r"""Smallest significant difference of two average ranks.

    .. math:: \mathrm{CD} = q \sqrt{\frac{k (k + 1)}{6 N}}

    for k methods on N sets (demsar2006, Section 3.2.2). Both tests treat the ranks as normal, and hold their level
    only approximately when there are few sets.

    Parameters
    ----------
    n_methods : int
        k, at least 2, the control included.
    n_sets : int
        N, at least 1.
    test : {"bonferroni-dunn", "nemenyi"}, default "bonferroni-dunn"
        "bonferroni-dunn" compares one control with k - 1 others: q is the normal quantile at
        1 - level / (2 (k - 1)). "nemenyi" compares all pairs: q is the quantile of the studentized range of k normal
        variables at 1 - level, divided by √2. For k = 2 both are the same.
    level : float, default 0.1
        The probability, in (0, 1), of one significant difference or more among methods that do not differ.

    Returns
    -------
    float
        In units of ranks.

    Raises
    ------
    ValueError
        If an argument is outside its range, or ``test`` is neither name.

    Examples
    --------
    >>> from llpbook.comparison import critical_difference
    >>> round(critical_difference(4, 14, test="nemenyi", level=0.05), 2)
    1.25
    >>> round(critical_difference(4, 8), 3)
    1.374
    """
    k = check_whole("n_methods", n_methods, least=2)
    n_sets = check_whole("n_sets", n_sets)
    level = check_number("level", level, "a number in (0, 1)", lambda v: 0 < v < 1)
    if not isinstance(test, str) or test not in ("bonferroni-dunn", "nemenyi"):
        raise ValueError(f"test must be 'bonferroni-dunn' or 'nemenyi', got {test!r}")
    if test == "nemenyi":
        q = stats.studentized_range.isf(level, k, np.inf) / np.sqrt(2)
    else:
        q = stats.norm.isf(level / (2 * (k - 1)))
    # eq: eq-comparison-critical
    return float(q * np.sqrt(k * (k + 1) / (6 * n_sets)))


def indistinct_groups(ranks: ArrayLike | dict, critical: float) -> list[list]:
    """Find the largest groups of methods whose average ranks are all less than a critical difference apart.

    Parameters
    ----------
    ranks : Series, dict or array-like of shape (n_methods,)
        Average ranks by method.
    critical : float
        `critical_difference` with ``test="nemenyi"``; above 0.

    Returns
    -------
    list of list
        The methods of each group, the best first. A method can be in several groups; a method that differs from all
        others is in none.

    Raises
    ------
    ValueError
        If ``ranks`` are not average ranks, or ``critical`` is not a number above 0.

    Examples
    --------
    >>> from llpbook.comparison import indistinct_groups
    >>> indistinct_groups({"A": 1.2, "B": 2.1, "C": 2.7}, critical=1)
    [['A', 'B'], ['B', 'C']]
    """
    critical = check_number("critical", critical, "a number above 0", lambda v: v > 0)
    sorted_ranks = check_ranks(ranks).sort_values(kind="stable")
    # the first that is too far away
    ends = np.searchsorted(sorted_ranks, sorted_ranks + critical)
    starts = [0, *(b + 1 for b, (old, new) in enumerate(pairwise(ends)) if new > old)]
    names = sorted_ranks.index
    return [list(names[s : ends[s]]) for s in starts if ends[s] > s + 1]


# --- two methods on the same data sets or draws --------------------------------------
def signed_ranks(first, second):
    """Signs of first - second, 0 for ties, and ranks of the absolute differences, from checked pairs."""
    first, second = check_pairs(first, second)
    gap = first - second
    scale = np.abs([first, second]).max()
    steps = tie_steps(np.append(np.abs(gap), 0), scale)[:-1]
    return np.sign(gap) * (steps > 0), stats.rankdata(steps)


def wilcoxon_test(first: ArrayLike, second: ArrayLike) -> WilcoxonTest:
    """Wilcoxon's signed-rank test that two methods are equally good, over independent data sets.

    Pairs that tie keep their ranks, and each sum gets half of them (demsar2006, Section 3.1.3). The p-value is that of
    `scipy.stats.wilcoxon`: exact for few sets, else from the normal distribution.

    Parameters
    ----------
    first, second : array-like of shape (n_sets,)
        The scores of two methods on the same sets, in the same order. Scores of a set from several draws are averaged
        before.

    Returns
    -------
    WilcoxonTest
        ``positive, negative, pvalue, n_pairs``. If all pairs tie, ``pvalue`` is 1.

    Raises
    ------
    ValueError
        If the scores are not two columns of finite numbers of the same length, at least 2, and with the same index if
        both are Series.

    Examples
    --------
    >>> from llpbook.comparison import wilcoxon_test
    >>> result = wilcoxon_test([0.9, 0.8, 0.7, 0.9], [0.8, 0.6, 0.4, 0.5])
    >>> result.positive, result.negative, round(result.pvalue, 3)
    (10.0, 0.0, 0.125)
    """
    signs, ranks = signed_ranks(first, second)
    half = ranks[signs == 0].sum() / 2
    # eq: eq-comparison-wilcoxon
    positive, negative = (float(ranks[signs == s].sum() + half) for s in (1, -1))
    if not signs.any():
        return WilcoxonTest(positive, negative, 1.0, len(signs))
    p = stats.wilcoxon(signs * ranks, zero_method="zsplit").pvalue
    return WilcoxonTest(positive, negative, float(p), len(signs))


def resampled_t_test(
    first: ArrayLike, second: ArrayLike, *, test_train_ratio: float
) -> ResampledTTest:
    r"""The corrected t test that two methods are equally good, over draws that share training instances.

    Over J draws, with the differences :math:`d_j` and their sample variance :math:`S_d^2`,

    .. math:: t = \frac{\bar d}{\sqrt{(1 / J + n_{test} / n_{train})\, S_d^2}}

    (Nadeau and Bengio, 2003). The correction is exact for normal differences that have the same pairwise correlation
    n_test / (n_train + n_test), which is the authors' guess; the usual t test takes 0 and rejects too often.

    Parameters
    ----------
    first, second : array-like of shape (n_draws,)
        The scores of two methods on the same draws from one data set, in the same order.
    test_train_ratio : float
        Instances tested on per instance trained on, at least 0: 1/3 if a quarter is held out. 0 gives the usual
        paired t test, for draws that share no training instance.

    Returns
    -------
    ResampledTTest
        ``difference, standard_error, t, pvalue, n_draws``.

    Raises
    ------
    ValueError
        As for `wilcoxon_test`, or if ``test_train_ratio`` is not a number from 0.

    Examples
    --------
    >>> from llpbook.comparison import resampled_t_test
    >>> result = resampled_t_test([0.9, 0.8, 0.9, 0.8], [0.8, 0.8, 0.7, 0.7], test_train_ratio=1 / 3)
    >>> round(result.difference, 3), round(result.standard_error, 3), round(result.pvalue, 3)
    (0.1, 0.062, 0.207)
    """
    ratio = check_number(
        "test_train_ratio", test_train_ratio, "a number from 0", lambda v: v >= 0
    )
    one, other = check_pairs(first, second)
    gap = one - other
    # eq: eq-comparison-resampled
    error = np.sqrt((1 / len(gap) + ratio) * gap.var(ddof=1))
    least = TIE * np.abs([one, other]).max()  # smaller ones are rounding
    rounded = (float(v) if abs(v) > least else 0.0 for v in (gap.mean(), error))
    difference, error = rounded
    with np.errstate(divide="ignore"):
        t = float(np.divide(difference, error)) if difference else 0.0
    p = float(2 * stats.t.sf(abs(t), len(gap) - 1))
    return ResampledTTest(difference, error, t, p, len(gap))


def effect_sizes(first: ArrayLike, second: ArrayLike) -> EffectSizes:
    """Measure how much the scores of one method exceed those of another, on the same data sets.

    Parameters
    ----------
    first, second : array-like of shape (n_pairs,)
        Scores of two methods, in the same order. All measures speak of larger scores; for losses, exchange the two.

    Returns
    -------
    EffectSizes
        ``difference, standard_error, rank_biserial, probability``; the standard error is of independent data sets.

    Raises
    ------
    ValueError
        As for `resampled_t_test`.

    Examples
    --------
    >>> from llpbook.comparison import effect_sizes
    >>> result = effect_sizes([0.9, 0.8, 0.7, 0.9], [0.8, 0.9, 0.4, 0.5])
    >>> round(result.difference, 3), round(result.rank_biserial, 3), result.probability
    (0.175, 0.7, 0.75)
    """
    mean, error, *_ = resampled_t_test(first, second, test_train_ratio=0)
    signs, ranks = signed_ranks(first, second)
    # eq: eq-comparison-effect
    rank_biserial = float(np.sum(signs * ranks) / ranks.sum())
    probability = float(np.mean((signs + 1) / 2))
    return EffectSizes(mean, error, rank_biserial, probability)


# --- tables of differences -----------------------------------------------------------
def paired_differences(
    scores: pd.DataFrame | pd.Series, reference: Hashable | None, *, unit: str,
    by: Sequence[str] = (), test_train_ratio: float = 0,
) -> pd.DataFrame:  # fmt: skip
    """Mean differences from one method, each with its standard error over independent units.

    The difference is taken in each row and averaged over the rows of a unit, one level of the index after the other,
    the last level first: each task of a data set counts alike, however many draws it has. The standard error is that
    of the mean over the units. If the units are draws of one data set that share training instances, give
    ``test_train_ratio`` (see `resampled_t_test`).

    Parameters
    ----------
    scores : DataFrame of shape (n_rows, n_methods) or Series
        One column per method; the levels of the index have names, such as "dataset", "task", "seed", from the outer
        to the inner one. A missing score (NaN) leaves its row out of the pairs of its method.
    reference : label of a column or None
        The method that is subtracted from each other one. If None, ``scores`` holds differences already.
    unit : str
        The level of the index whose values are independent: data sets where data sets are compared, else draws.
    by : sequence of str, default ()
        Levels that are kept apart: one row of the table for each of their values.
    test_train_ratio : float, default 0
        Instances tested on per instance trained on, if the units share training instances; 0 if they are independent.

    Returns
    -------
    DataFrame
        One row per method and value of ``by``: ``difference`` in the unit of the scores, ``error`` (NaN for one unit),
        and the number of units, in a column that says what they are, such as ``n_dataset``.

    Raises
    ------
    ValueError
        If a level has no name, ``unit`` or ``by`` names none or the same, ``reference`` is not a column, a row of the
        index comes twice, or a score is not a number.

    Examples
    --------
    >>> import pandas as pd
    >>> from llpbook.comparison import paired_differences
    >>> rows = pd.MultiIndex.from_product([["a", "b"], [0, 1]], names=["dataset", "seed"])
    >>> scores = pd.DataFrame({"new": [0.9, 0.7, 0.6, 0.6], "old": [0.7, 0.7, 0.6, 0.4]}, rows)
    >>> table = paired_differences(scores, "old", unit="dataset")
    >>> list(table), table.round(3).loc["new"].tolist()
    (['difference', 'error', 'n_dataset'], [0.1, 0.0, 2.0])
    """
    ratio = check_number(
        "test_train_ratio", test_train_ratio, "a number from 0", lambda v: v >= 0
    )
    gap = _gaps(scores, reference)
    by, levels = list(by), list(gap.index.names)
    for name in [unit, *by]:
        if name not in levels:
            raise ValueError(
                f"unit and by must be levels of the index of scores, {levels}, got {name!r}"
            )
    if unit in by:
        raise ValueError(f"unit must be averaged over, got {unit!r} in by too")
    kept = [*by, "method", unit]
    inner = [name for name in levels if name not in kept]
    for last in range(len(inner), -1, -1):
        gap = gap.groupby([*kept, *inner[:last]], sort=False).mean()
    groups = gap.groupby([*by, "method"], sort=False)
    table = groups.mean().to_frame("difference")
    table["error"] = np.sqrt((1 / groups.size() + ratio) * groups.var(ddof=1))
    return table.assign(**{f"n_{unit}": groups.size()})


def _gaps(scores, reference):
    """The differences as a Series; the last level of its index is the method."""
    table = scores.to_frame(scores.name or "difference") if scores.ndim == 1 else scores
    if None in table.index.names:
        raise ValueError(
            f"the levels of the index of scores must have names, got {list(table.index.names)}"
        )
    if not table.index.is_unique:
        twice = table.index[table.index.duplicated()].tolist()[0]
        raise ValueError(f"scores must have one row per case, got {twice!r} twice")
    values = pd.DataFrame(numbers("scores", table), table.index, table.columns)
    if reference is not None:
        if reference not in table:
            raise ValueError(
                f"reference must be a column of scores, {list(table)}, got {reference!r}"
            )
        values = values.drop(columns=reference).sub(values[reference], axis=0)
    return values.rename_axis(columns="method").stack().dropna()
