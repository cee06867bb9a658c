"""Statistics of comparisons: published examples recomputed, slow versions, and the level of each test."""

from itertools import combinations, permutations, product

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from llpbook import LLPWarning, average_ranks, comparison, critical_difference, friedman
from llpbook.comparison import effect_sizes, paired_differences, wilcoxon_test
from studies import paper_table

# Demšar (2006), Table 6: AUC of C4.5 and of C4.5 with tuned parameters. On voting both .975 are printed with the ranks
# 2 and 3, so they differed before rounding: a fourth decimal restores that order.
TUNED = ["C4.5", "C4.5+m", "C4.5+cf", "C4.5+m+cf"]
AUC = pd.DataFrame(
    {
        "adult (sample)": [0.763, 0.768, 0.771, 0.798],
        "breast cancer": [0.599, 0.591, 0.590, 0.569],
        "breast cancer wisconsin": [0.954, 0.971, 0.968, 0.967],
        "cmc": [0.628, 0.661, 0.654, 0.657],
        "ionosphere": [0.882, 0.888, 0.886, 0.898],
        "iris": [0.936, 0.931, 0.916, 0.931],
        "liver disorders": [0.661, 0.668, 0.609, 0.685],
        "lung cancer": [0.583, 0.583, 0.563, 0.625],
        "lymphography": [0.775, 0.838, 0.866, 0.875],
        "mushroom": [1.000, 1.000, 1.000, 1.000],
        "primary tumor": [0.940, 0.962, 0.965, 0.962],
        "rheum": [0.619, 0.666, 0.614, 0.669],
        "voting": [0.972, 0.981, 0.9751, 0.975],
        "wine": [0.957, 0.978, 0.946, 0.970],
    },
    index=TUNED,
).T


# --- Demšar's example ----------------------------------------------------------------
def test_demsar_ranks_and_friedman():
    ranks = average_ranks(AUC)
    assert ranks.round(3).tolist() == [3.143, 2.000, 2.893, 1.964]
    assert comparison.rank_methods(AUC).loc["iris"].tolist() == [1, 2.5, 4, 2.5]
    found = friedman(AUC, correct_ties=False)
    assert (round(found.chi2, 2), round(found.f, 2)) == (9.28, 3.69)
    assert found.f_pvalue < 0.05 and round(stats.f.isf(0.05, 3, 39), 2) == 2.85
    assert comparison.friedman_from_ranks(ranks, 14) == pytest.approx(found)
    # from the printed ranks, to what three decimals allow
    printed = comparison.friedman_from_ranks([3.143, 2.000, 2.893, 1.964], 14)
    assert printed.chi2 == pytest.approx(found.chi2, abs=0.01)


@pytest.mark.equation("eq-comparison-critical")
@pytest.mark.parametrize(
    ("test", "level", "printed"),
    [
        ("nemenyi", 0.05, "1.960 2.343 2.569 2.728 2.850 2.949 3.031 3.102 3.164"),
        ("nemenyi", 0.10, "1.645 2.052 2.291 2.459 2.589 2.693 2.780 2.855 2.920"),
        ("bonferroni-dunn", 0.05, "1.960 2.241 2.394 2.498 2.576 2.638 2.690 2.734 2.773"),
        ("bonferroni-dunn", 0.10, "1.645 1.960 2.128 2.241 2.326 2.394 2.450 2.498 2.539"),
    ],
)  # fmt: skip
def test_demsar_critical_values(test, level, printed):
    # Table 5: q for 2 to 10 methods, with three decimals, some of them cut off instead of rounded. For nine methods
    # and Bonferroni-Dunn at 5 % the paper prints 2.724; the quantile is 2.734.
    for k, value in enumerate(printed.split(), start=2):
        q = critical_difference(k, 1, test=test, level=level) / np.sqrt(k * (k + 1) / 6)
        assert q == pytest.approx(float(value), abs=0.001)


def test_demsar_verdicts():
    ranks = average_ranks(AUC)
    strict = critical_difference(4, 14, test="nemenyi", level=0.05)
    assert round(strict, 2) == 1.25  # no pair differs
    assert comparison.indistinct_groups(ranks, strict) == [list(ranks.sort_values().index)]  # fmt: skip
    wider = critical_difference(4, 14, test="nemenyi", level=0.1)
    groups = comparison.indistinct_groups(ranks, wider)
    assert round(wider, 2) == 1.12
    assert groups == [["C4.5+m+cf", "C4.5+m", "C4.5+cf"], ["C4.5+cf", "C4.5"]]


def test_demsar_wilcoxon():
    found = wilcoxon_test(AUC["C4.5+m"], AUC["C4.5"])
    assert (found.positive, found.negative, found.n_pairs) == (93, 12, 14)
    assert found.pvalue < 0.05
    assert effect_sizes(AUC["C4.5+m"], AUC["C4.5"]).rank_biserial == (93 - 12) / 105


def test_what_the_solutions_of_the_chapter_say():
    for k, q, n in ((8, 2.450, 73), (20, 2.791, 546)):
        assert critical_difference(k, n) <= 1 < critical_difference(k, n - 1)
        root = np.sqrt(k * (k + 1) / 6)
        assert critical_difference(k, 1) / root == pytest.approx(q, abs=0.001)
    wins = ([[1, 0]] * w + [[0, 1]] * (20 - w) for w in (14, 15))
    few, enough = (friedman(table).chi2_pvalue for table in wins)
    assert enough < 0.05 < few
    turned = [[4, 3, 2, 1], [4, 3, 2, 1], [1, 4, 3, 2]]  # A, B, C, D; C and D between
    assert average_ranks([row[:2] for row in turned]).is_monotonic_increasing
    ranks = average_ranks(turned)
    assert (ranks[0], ranks[1]) == (2, pytest.approx(5 / 3))


# --- Table 2 of Stolpe and Morik (2011) ----------------------------------------------
def table_2():
    """Printed average ranks on eight data sets, by bag size."""
    printed = paper_table("stolpe2011_table2").set_index(["bag_size", "method"])
    wide = printed["average_rank"].unstack()
    return {size: row.dropna() for size, row in wide.iterrows()}


def test_the_critical_difference_of_stolpe2011_has_two_digits_exchanged():
    assert round(critical_difference(3, 8), 2) == 0.98
    assert round(critical_difference(4, 8), 3) == 1.374
    root = np.sqrt(4 * 5 / (6 * 8))
    assert round(critical_difference(4, 8) / root, 3) == 2.128
    assert round(2.218 * root, 4) == 1.4317  # the printed value, with 2.218 for 2.128


def test_the_verdicts_of_stolpe2011_hold_with_both_critical_differences():
    printed = {4: {"MeanMap"}, 8: {"AOC-KK", "MeanMap"}, 32: {"MeanMap"}, 64: {"MeanMap"}, 128: {"InvCal"}}  # fmt: skip
    for size, ranks in table_2().items():
        behind = ranks - ranks["LLP"]
        limit = critical_difference(len(ranks), 8)
        for critical in (limit, 1.4317 if len(ranks) == 4 else 0.98):
            assert set(behind.index[behind >= critical]) == printed.get(size, set())


def test_friedman_on_the_ranks_of_stolpe2011():
    """What the errata say of Sec. 4.3 and of the misprinted rank."""
    ranks = table_2()
    with pytest.raises(
        ValueError, match=r"ranks of 4 methods must sum to 10, got 9\.9"
    ):
        comparison.friedman_from_ranks(ranks[64], 8)
    ranks[64]["InvCal"] = 2.375
    found = {size: comparison.friedman_from_ranks(r, 8) for size, r in ranks.items()}
    assert [size for size, test in found.items() if test.f_pvalue > 0.06] == [16]
    assert (round(found[16].f, 2), round(found[16].f_pvalue, 3)) == (1.89, 0.162)
    # a pair of methods that tie lowers the factor c by 6 / (N k (k^2 - 1))
    corrected = found[16].chi2 / (1 - 6 * np.arange(17) / (8 * 4 * 15))
    pvalue = stats.f.sf(7 * corrected / (24 - corrected), 3, 21)
    assert np.argmax(pvalue < 0.1) == 13


# --- slow versions -------------------------------------------------------------------
def slow_ranks(row):
    """One plus the number of better methods, plus half of the others that tie."""
    return [1 + sum(b > a for b in row) + sum(b == a for b in row) / 2 - 0.5 for a in row]  # fmt: skip


def scores(seed=0, shape=(9, 5), values=6):
    """Scores with many ties."""
    return np.random.default_rng(seed).integers(0, values, shape) / 10


@pytest.mark.equation("eq-comparison-ranks")
@pytest.mark.parametrize("seed", range(5))
def test_ranks_by_loops(seed):
    table = scores(seed)
    want = np.array([slow_ranks(row) for row in table])
    assert_array_equal(comparison.rank_methods(table), want)
    assert_allclose(average_ranks(table), want.mean(axis=0))
    assert_array_equal(comparison.rank_methods(-table), 6 - want)


def test_ranks_follow_order_only_and_scores_equal_up_to_rounding_tie():
    table = scores(1, (6, 4), 40)
    assert_array_equal(comparison.rank_methods(table), comparison.rank_methods(np.exp(table)))  # fmt: skip
    assert comparison.rank_methods([[0.1 + 0.2, 0.3, 0.2]]).to_numpy().tolist() == [[1.5, 1.5, 3]]  # fmt: skip
    assert comparison.rank_methods([[0.0, -1e-12, -1.0]]).to_numpy().tolist() == [[1.5, 1.5, 3]]  # fmt: skip
    tiny = 1e-30 * table  # small units are no ties
    assert_array_equal(comparison.rank_methods(table), comparison.rank_methods(tiny))
    assert (comparison.rank_methods(np.zeros((2, 3))).to_numpy().tolist() == [[2.0] * 3] * 2)  # fmt: skip


def test_draws_of_one_set_are_averaged_before_they_are_ranked():
    index = pd.MultiIndex.from_product([["b", "a"], [10, 50]], names=["set", "size"])
    means = pd.DataFrame([[3, 1], [1, 2], [5, 6], [7, 0]], index, ["A", "B"]) / 10
    draws = pd.concat([means.add([1, 0]), means.sub([1, 0]), means])
    pd.testing.assert_frame_equal(comparison.rank_methods(draws), comparison.rank_methods(means))  # fmt: skip
    assert average_ranks(draws).to_dict() == {"A": 1.5, "B": 1.5}


def test_rows_of_several_levels_are_no_independent_sets():
    index = pd.MultiIndex.from_product([range(6), range(2)], names=["set", None])
    table = pd.DataFrame(scores(0, (12, 3), 100), index)
    with pytest.warns(LLPWarning, match=r"12 combinations of \['set', 1\]"):
        found = friedman(table)
    assert found == friedman(table.to_numpy())


@pytest.mark.equation("eq-comparison-ties", "eq-comparison-friedman", "eq-comparison-f")
@pytest.mark.parametrize("seed", range(5))
def test_friedman_with_ties_is_that_of_scipy_and_an_analysis_of_variance(seed):
    table = scores(seed)
    found = friedman(table)
    theirs = stats.friedmanchisquare(*table.T)
    assert found.chi2 == pytest.approx(theirs.statistic)
    assert found.chi2_pvalue == pytest.approx(theirs.pvalue)
    ranks = comparison.rank_methods(table).to_numpy()
    n, k = ranks.shape
    between = n * np.sum((ranks.mean(axis=0) - ranks.mean()) ** 2)
    rest = np.sum((ranks - ranks.mean()) ** 2) - between  # rows have the same mean
    assert found.f == pytest.approx(between / (k - 1) / (rest / ((n - 1) * (k - 1))))
    assert found.f_pvalue == pytest.approx(stats.f.sf(found.f, 4, 32))
    assert (found.n_methods, found.n_sets) == (5, 9)
    assert friedman(-table) == pytest.approx(found)
    assert friedman(table, correct_ties=False).chi2 < found.chi2


def test_friedman_at_its_ends():
    found = friedman(np.tile([0.9, 0.8, 0.7], (5, 1)))
    assert found.chi2 == pytest.approx(10) and found.f == np.inf and found.f_pvalue == 0
    two = [[0.9, 0.8, 0.8], [0.7, 0.6, 0.6]]  # ties, and still the same order
    assert friedman(two).f == np.inf
    nearly = np.ones((9, 3))  # eight sets on which all methods tie
    nearly[0] = [1, 2, 3]
    theirs = stats.friedmanchisquare(*nearly.T)
    assert friedman(nearly).chi2 == pytest.approx(theirs.statistic)
    equal = friedman(np.ones((5, 3)))
    assert (equal.chi2, equal.f, equal.chi2_pvalue, equal.f_pvalue) == (0, 0, 1, 1)


@pytest.mark.parametrize("seed", range(20))
def test_indistinct_groups_are_the_largest_ones(seed):
    rng = np.random.default_rng(seed)
    ranks = average_ranks(rng.random((4, 6)))
    critical = rng.integers(2, 12) / 4  # the very gap of some: these differ
    close = [
        set(group)
        for size in range(2, 7)
        for group in combinations(ranks.index, size)
        if np.ptp(ranks[list(group)]) < critical
    ]
    largest = [g for g in close if not any(g < other for other in close)]
    found = comparison.indistinct_groups(ranks, critical)
    # methods of the same rank are all in one group
    assert sorted(map(sorted, found)) == sorted(map(sorted, largest))
    assert all(ranks[group].is_monotonic_increasing for group in found)


def slow_wilcoxon(gaps):
    """R+, R- and the exact two-sided p-value, by all signs of the differences; ties of a pair split their ranks."""
    gaps = np.round(gaps, 9)
    ranks = np.array([slow_ranks(-np.abs(gaps))]).ravel()

    def positive(signs):
        return sum(r * (s + 1) / 2 for r, s in zip(ranks, signs, strict=True))

    seen = positive(np.sign(gaps))
    flips = product(*([-1, 1] if g else [0] for g in gaps))
    drawn = np.array([positive(signs) for signs in flips])
    center = ranks.sum() / 2
    pvalue = np.mean(np.abs(drawn - center) >= abs(seen - center) - 1e-9)
    return seen, ranks.sum() - seen, pvalue


@pytest.mark.equation("eq-comparison-wilcoxon")
@pytest.mark.parametrize("seed", range(6))
def test_wilcoxon_by_all_signs(seed):
    values = 6 if seed % 2 else 10**6  # with ties and zeros, and without
    first, second = scores(seed, (2, 9), values)
    found = wilcoxon_test(first, second)
    positive, negative, pvalue = slow_wilcoxon(first - second)
    assert (found.positive, found.negative) == (positive, negative)
    assert found.pvalue == pytest.approx(pvalue)
    swapped = wilcoxon_test(second, first)
    assert swapped.positive == negative and swapped.pvalue == pytest.approx(pvalue)
    assert wilcoxon_test(1e-12 * first, 1e-12 * second)[:2] == (positive, negative)


def test_wilcoxon_of_equal_scores_rejects_nothing():
    found = wilcoxon_test([0.1 + 0.2, 0.5, 0.7], [0.3, 0.5, 0.7])
    assert (found.positive, found.negative, found.pvalue) == (3, 3, 1)


def test_resampled_t_without_shared_data_is_the_paired_t_test():
    first, second = np.random.default_rng(0).random((2, 12))
    found = comparison.resampled_t_test(first, second, test_train_ratio=0)
    theirs = stats.ttest_rel(first, second)
    assert found.t == pytest.approx(theirs.statistic)
    assert found.pvalue == pytest.approx(theirs.pvalue)
    assert found.standard_error == pytest.approx(stats.sem(first - second))
    tiny = comparison.resampled_t_test(1e-12 * first, 1e-12 * second, test_train_ratio=0)  # fmt: skip
    assert tiny.t == pytest.approx(found.t)
    wider = comparison.resampled_t_test(first, second, test_train_ratio=1 / 3)
    factor = np.sqrt((1 / 12 + 1 / 3) / (1 / 12))
    assert wider.standard_error == pytest.approx(factor * found.standard_error)
    assert wider.difference == found.difference and wider.pvalue > found.pvalue


def test_resampled_t_where_draws_do_not_vary():
    same = comparison.resampled_t_test([0.1 + 0.2, 0.5], [0.3, 0.5], test_train_ratio=0.5)  # fmt: skip
    assert (same.difference, same.t, same.pvalue) == (0, 0, 1)
    shifted = comparison.resampled_t_test([0.7, 0.8, 0.9], [0.4, 0.5, 0.6], test_train_ratio=0.5)  # fmt: skip
    assert shifted.t == np.inf and shifted.pvalue == 0
    assert (comparison.resampled_t_test([0, 0], [1, 1], test_train_ratio=0.5).t == -np.inf)  # fmt: skip


@pytest.mark.equation("eq-comparison-effect")
@pytest.mark.parametrize("seed", range(4))
def test_effect_sizes_by_loops(seed):
    first, second = scores(seed, (2, 8))
    found = effect_sizes(first, second)
    gap = first - second
    wins = [(a > b) + (a == b) / 2 for a, b in zip(first, second, strict=True)]
    assert found.probability == np.mean(wins)
    assert found.difference == pytest.approx(gap.mean())
    assert found.standard_error == pytest.approx(stats.sem(gap))
    positive, negative, _ = slow_wilcoxon(gap)
    assert found.rank_biserial == pytest.approx((positive - negative) / 36)
    other = effect_sizes(second, first)
    assert other.rank_biserial == pytest.approx(-found.rank_biserial)
    assert other.probability == pytest.approx(1 - found.probability)
    assert effect_sizes([1, 2, 3], [0, 0, 0])[2:] == (1, 1)


# --- levels --------------------------------------------------------------------------
@pytest.mark.equation("eq-comparison-critical")
@pytest.mark.parametrize("level", [0.05, 0.1])
def test_critical_differences_hold_their_level(level):
    """Average ranks of six equal methods on 50 sets, in 10,000 draws; and the theorem on their moments."""
    rng, k, n = np.random.default_rng(0), 6, 50
    rows = np.tile(np.arange(1.0, k + 1), (10_000, 1))
    ranks = np.mean([rng.permuted(rows, axis=1) for _ in range(n)], axis=0)
    assert ranks.var() == pytest.approx((k**2 - 1) / (12 * n), rel=0.05)
    behind = np.abs(ranks[:, 1:] - ranks[:, :1])
    assert np.mean(behind**2) == pytest.approx(k * (k + 1) / (6 * n), rel=0.05)
    nemenyi, dunn = (
        critical_difference(k, n, test=test, level=level)
        for test in ("nemenyi", "bonferroni-dunn")
    )
    assert np.mean(np.ptp(ranks, axis=1) >= nemenyi) == pytest.approx(level, rel=0.15)
    assert np.mean(behind >= dunn) == pytest.approx(level / (k - 1), rel=0.15)
    assert 0.7 * level < np.mean(behind.max(axis=1) >= dunn) < level


def test_friedman_beside_all_permutations():
    # three methods on four sets: all 6^4 orders are equally probable under the null hypothesis
    orders = list(permutations([1, 2, 3]))
    found = [friedman(-np.array(rows)) for rows in product(orders[:1], *[orders] * 3)]
    pvalue = np.array([f.f_pvalue for f in found])
    chi2 = np.array([f.chi2 for f in found])
    assert chi2.mean() == pytest.approx(2)  # k - 1, exactly
    for level in (0.05, 0.1):
        assert level < np.mean(pvalue <= level) < level + 0.03
    six = np.isclose(chi2, 6)  # as the docstring says
    assert round(np.mean(chi2 > 6 - 1e-9), 3) == 0.069
    assert pvalue[six] == pytest.approx(0.016, abs=0.0005)


@pytest.mark.equation("eq-comparison-resampled")
def test_resampled_t_is_exact_at_the_assumed_correlation_and_the_t_test_is_not():
    # differences with the correlation n_test / (n_train + n_test): a part that all draws share, and one of their own
    rng, ratio, n_draws = np.random.default_rng(0), 1 / 3, 10
    shared = rng.normal(size=(2000, 1)) * np.sqrt(ratio / (1 + ratio))
    own = rng.normal(size=(2000, n_draws)) * np.sqrt(1 / (1 + ratio))
    zero = np.zeros(n_draws)
    corrected, usual = (
        [
            comparison.resampled_t_test(d, zero, test_train_ratio=r).pvalue
            for d in shared + own
        ]
        for r in (ratio, 0)
    )
    assert stats.kstest(corrected, "uniform").pvalue > 0.01
    assert np.mean(np.array(usual) <= 0.05) > 0.25


# --- bad input -----------------------------------------------------------------------
TABLE, FIRST, SECOND = [[0.9, 0.8], [0.7, 0.6]], [0.9, 0.8], [0.7, 0.6]
TWICE = pd.DataFrame(TABLE, columns=[7, 7])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: comparison.rank_methods([0.9, 0.8]), r"scores must have a row .* shape \(2,\)"),
        (lambda: comparison.rank_methods([[0.9], [0.8]]), r"at least two methods, .* \(2, 1\)"),
        (lambda: average_ranks([[1, 2], [np.nan, 3]]), "scores must be finite, got nan for the method 0 in row 1"),
        (lambda: comparison.rank_methods(TWICE), "one column per method, got 7 twice"),
        (lambda: comparison.friedman_from_ranks(pd.Series([1, 2], [3, 3]), 4), "one entry per method, got 3 twice"),
        (lambda: comparison.friedman_from_ranks([1, 1.98], 4), "ranks of 2 methods must sum to 3, got 2.98"),
        (lambda: comparison.friedman_from_ranks([1, 2], 1), "n_sets must be a whole number from 2"),
        (lambda: comparison.friedman_from_ranks([1, 2], 4, tie_factor=1.1), r"in \[0, 1\], got 1.1"),
        (lambda: critical_difference(1, 4), "n_methods must be a whole number from 2"),
        (lambda: critical_difference(2, 4, level=1), r"level must be a number in \(0, 1\), got 1"),
        (lambda: critical_difference(2, 4, level=0), r"level must be a number in \(0, 1\), got 0"),
        (lambda: comparison.indistinct_groups([1, 2], 0), "critical must be a number above 0, got 0"),
        (lambda: wilcoxon_test(FIRST, [0.1, np.inf]), "second must be finite, got inf"),
        (lambda: wilcoxon_test([np.nan, 1], SECOND), "first must be finite, got nan"),
        (lambda: wilcoxon_test([1], [2]), r"two or more, got the shapes \(1,\) and \(1,\)"),
        (lambda: friedman(TABLE[:1]), "at least two data sets, got 1"),
        (lambda: comparison.friedman_from_ranks([0.5, 2.5], 4), r"ranks must lie in \[1, 2\], got 0.5"),
        (lambda: wilcoxon_test(FIRST, [1, 2, 3]), r"must each hold as many scores.*\(3,\)"),
        (lambda: wilcoxon_test(pd.Series(FIRST), pd.Series(SECOND, [1, 0])), "second.index differs"),
    ],
)  # fmt: skip
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_friedman_of_published_ranks_by_hand():
    """Three methods in one order on five sets: chi2 is 10 without ties; the factor of ties divides it."""
    assert comparison.friedman_from_ranks([1, 2, 3], 5).chi2 == pytest.approx(10)
    assert comparison.friedman_from_ranks([1, 2, 3], 5, tie_factor=0.5).chi2 == pytest.approx(10)  # fmt: skip
    found = comparison.friedman_from_ranks([1.8, 2.0, 2.2], 5, tie_factor=0.5)
    assert found.chi2 == pytest.approx(0.4 / 0.5)
    # two methods, each rank rounded by up to 0.005
    assert comparison.friedman_from_ranks([1, 1.99], 4).chi2 == pytest.approx(4 * 2 * (0.5**2 + 0.49**2))  # fmt: skip
    assert comparison.friedman_from_ranks([1, 2, 3], 5, tie_factor=0).chi2 == 0


# --- tables of differences -----------------------------------------------------------
def rows_of_studies(seed=0):
    """Scores of two methods on five data sets with one to three tasks, of two to four draws."""
    rng, rows = np.random.default_rng(seed), []
    for dataset in "abcde":
        for task in range(rng.integers(1, 4)):
            for draw in range(rng.integers(2, 5)):
                rows.append((dataset, task, draw, *rng.normal(size=3)))
    columns = ["dataset", "task", "draw", "one", "two", "old"]
    return pd.DataFrame(rows, columns=columns).set_index(columns[:3])


def test_a_difference_is_averaged_over_draws_then_tasks_then_sets():
    scores = rows_of_studies()
    found = paired_differences(scores, "old", unit="dataset")
    for method in ("one", "two"):
        sets = []
        for name in "abcde":
            part = scores.loc[name]
            tasks = part.index.get_level_values("task").unique()
            gaps = [(part.loc[t, method] - part.loc[t, "old"]).mean() for t in tasks]
            sets.append(np.mean(gaps))
        row = found.loc[method]
        assert_allclose(row["difference"], np.mean(sets))
        assert_allclose(row["error"], np.std(sets, ddof=1) / 5**0.5)
        assert row["n_dataset"] == 5
    assert list(found) == ["difference", "error", "n_dataset"]
    one = paired_differences(scores.loc[["a"]], "old", unit="dataset")
    assert list(one.index) == list(found.index) == ["one", "two"]
    assert one["error"].isna().all() and (one["n_dataset"] == 1).all()


def test_draws_of_one_set_have_the_corrected_error():
    part = rows_of_studies().loc["a"].droplevel("task")
    part.index = pd.RangeIndex(len(part), name="draw")
    found = paired_differences(part, "old", unit="draw", test_train_ratio=0.5)
    for method in ("one", "two"):
        known = comparison.resampled_t_test(part[method], part["old"], test_train_ratio=0.5)  # fmt: skip
        expected = known.difference, known.standard_error, known.n_draws
        assert_allclose(found.loc[method], expected)


def test_levels_kept_apart_and_rows_in_any_order():
    scores = rows_of_studies()
    kept = paired_differences(scores, "old", unit="draw", by=["dataset", "task"])
    alone = paired_differences(scores.loc["c", 0], "old", unit="draw")
    pd.testing.assert_frame_equal(kept.loc["c", 0], alone)
    mixed = paired_differences(scores.sample(frac=1, random_state=0), "old", unit="dataset")  # fmt: skip
    pd.testing.assert_frame_equal(mixed.sort_index(), paired_differences(scores, "old", unit="dataset"))  # fmt: skip


def test_missing_scores_leave_the_pairs_of_their_method():
    scores = rows_of_studies()
    scores.loc["a", "one"] = np.nan
    found = paired_differences(scores, "old", unit="dataset")
    assert found["n_dataset"].to_dict() == {"one": 4, "two": 5}
    gap = (scores["one"] - scores["old"]).rename("one")
    pd.testing.assert_frame_equal(paired_differences(gap, None, unit="dataset"), found.loc[["one"]])  # fmt: skip


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (lambda s: s, {"unit": "set"}, "must be levels of the index of scores, .* got 'set'"),
        (lambda s: s, {"unit": "task", "by": ["draw", "task"]}, "unit must be averaged over, got 'task' in by"),
        (lambda s: s, {"unit": "task", "reference": "new"}, "reference must be a column .* got 'new'"),
        (lambda s: s.reset_index(drop=True), {"unit": "task"}, "must have names"),
        (lambda s: pd.concat([s, s]), {"unit": "task"}, "one row per case, got .* twice"),
    ],
)  # fmt: skip
def test_tables_of_differences_refuse_bad_input(change, options, message):
    with pytest.raises(ValueError, match=message):
        paired_differences(change(rows_of_studies()), **{"reference": None, **options})
