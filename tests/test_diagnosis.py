"""The diagnosis: each equation against a slow version, enumeration, scipy or a simulation; level, power, report."""

import json
import re
from itertools import combinations, product
from math import comb
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from problems import overlapping_classes as problem
from scipy.spatial.distance import pdist
from scipy.stats import cauchy, chi2_contingency, f_oneway, norm, pearson3
from sklearn.linear_model import Ridge
from sklearn.metrics.pairwise import rbf_kernel

from llpbook import diagnosis, taxonomy
from llpbook.base import crosstab
from llpbook.diagnosis import diagnose
from llpbook.proportions import averaging_matrix
from llpbook.variants import make_bags
from studies import diagnosis as protocol
from studies import load

ROOT = Path(__file__).resolve().parents[1]

NAMES = [name.lower() for name in taxonomy.VARIANTS]


def plain(X):
    """Views of the columns as they are: together, together once more, and one by one."""
    d = X.shape[1]
    weights = np.vstack([np.ones((2, d)), np.eye(d)])
    return diagnosis.Views(X - X.mean(axis=0), weights, np.ones(d, dtype=bool))


def logistic(seed=0, n=400, d=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = (rng.random(n) < 1 / (1 + np.exp(-2 * X[:, 0]))).astype(int)
    return X, y, rng


# --- features ------------------------------------------------------------------------------------------------


def test_embedding_is_linear_features_and_a_gaussian_kernel():
    X = logistic(n=60)[0] * [1, 10, 100]
    F = diagnosis.embed(X, n_frequencies=20_000, random_state=0)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    np.testing.assert_allclose(F[:, :3], Z / np.sqrt(3), atol=1e-12)
    K = rbf_kernel(Z, gamma=1 / (2 * np.median(pdist(Z)) ** 2))
    H = np.eye(60) - 1 / 60
    centered = H @ K @ H
    gram = F[:, 3:] @ F[:, 3:].T
    np.testing.assert_allclose(gram, centered * 60 / np.trace(centered), atol=0.05)


def test_embedding_has_blocks_of_one_variance_and_few_columns():
    rng = np.random.default_rng(0)
    X = np.hstack([rng.normal(size=(200, 50)), np.ones((200, 1))])
    F = diagnosis.embed(X, 30, 10, random_state=1)
    assert F.shape == (200, 50)
    for block in (F[:, :30], F[:, 30:]):
        assert np.square(block).sum() == pytest.approx(200)
        np.testing.assert_allclose(block.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_array_equal(F, diagnosis.embed(X, 30, 10, random_state=1))
    with pytest.raises(ValueError, match="X has no column"):
        diagnosis.embed(np.ones((5, 2)))


def test_normal_scores_are_those_of_ranks():
    rng = np.random.default_rng(0)
    X = rng.standard_t(1, size=(200, 3))
    Z = diagnosis.normal_scores(X)
    np.testing.assert_array_equal(np.argsort(Z, axis=0), np.argsort(X, axis=0))
    np.testing.assert_allclose(Z, diagnosis.normal_scores(np.arcsinh(X)), atol=1e-12)
    np.testing.assert_allclose(Z.std(axis=0), 1)
    assert np.abs(Z).max() < 3.1  # no tail is heavy
    two = np.column_stack([rng.random(200) < 0.1, np.ones(200)]).astype(float)
    found = diagnosis.normal_scores(two)
    standard = (two[:, 0] - two[:, 0].mean()) / two[:, 0].std()
    np.testing.assert_allclose(found, np.column_stack([standard, 0 * standard]))


def test_views_are_whitened_components_a_kernel_and_columns():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(60, 2)), np.ones(60)])
    seen = diagnosis.views(X, 20_000, random_state=0)
    np.testing.assert_array_equal(seen.varied, [True, True, False])
    Z = diagnosis.normal_scores(X)[:, :2]
    white = seen.features[:, seen.weights[0] > 0]
    np.testing.assert_allclose(white.T @ white / 60, np.eye(2), atol=1e-9)
    np.testing.assert_allclose(white @ white.T, Z @ np.linalg.inv(Z.T @ Z / 60) @ Z.T)
    gram = (seen.features * seen.weights[1]) @ seen.features.T
    K = rbf_kernel(Z, gamma=1 / (2 * np.median(pdist(Z)) ** 2))
    H = np.eye(60) - 1 / 60
    kernel = H @ K @ H
    np.testing.assert_allclose(gram, kernel * 60 / np.trace(kernel), atol=0.06)
    for j in (0, 1):
        np.testing.assert_array_equal(seen.features @ seen.weights[2 + j], Z[:, j])
    assert diagnosis.whiten(rng.normal(size=(100, 40))).shape[1] == 10
    with pytest.raises(ValueError, match="X has no column"):
        diagnosis.views(np.ones((5, 2)))


def test_codes_and_tables():
    np.testing.assert_array_equal(
        diagnosis.cell_codes(["b", "a", "b"], [1, 1, 0]), [2, 0, 1]
    )
    np.testing.assert_array_equal(
        crosstab(np.array([0, 0, 2]), np.array([1, 1, 0])),
        [[0, 2], [0, 0], [1, 0]],
    )


# --- permutations --------------------------------------------------------------------------------------------


@pytest.mark.equation("eq-diag-energy")
def test_energy_is_its_definition():
    X, y, rng = logistic(n=50)
    groups = rng.integers(0, 3, 50)
    cells = diagnosis.cell_codes(groups, y)
    slow = np.zeros(3)
    for g in range(3):
        for c in (0, 1):
            part = X[(groups == g) & (y == c)]
            gap = part.mean(axis=0) - X[groups == g].mean(axis=0)
            slow += len(part) * gap**2
    np.testing.assert_allclose(diagnosis.between_energy(X, cells, groups), slow)


def test_permuted_energies_are_of_permutations_within_groups():
    X, y, rng = logistic(n=40)
    groups = rng.integers(0, 2, 40)
    cells = diagnosis.cell_codes(groups, y)
    found = diagnosis.permuted_energies(X, cells, groups, 400, np.random.RandomState(0))
    first = diagnosis.between_energy(X, cells, groups)
    np.testing.assert_allclose(found[0], first, rtol=1e-4)
    slow = []
    for _ in range(400):
        order = np.arange(40)
        for g in (0, 1):
            order[groups == g] = rng.permutation(order[groups == g])
        slow.append(diagnosis.between_energy(X[order], cells, groups))
    np.testing.assert_allclose(found[1:].mean(axis=0), np.mean(slow, axis=0), rtol=0.2)
    np.testing.assert_allclose(found[1:].std(axis=0), np.std(slow, axis=0), rtol=0.25)


@pytest.mark.equation("eq-diag-permutation")
def test_pvalue_is_the_share_of_all_splits():
    X = np.random.default_rng(0).normal(size=(8, 1)) + np.repeat([0.0, 1.2], 4)[:, None]
    cells = np.repeat([0, 1], 4)
    energies = []
    for chosen in combinations(range(8), 4):
        split = np.isin(np.arange(8), chosen).astype(int)
        energies.append(diagnosis.between_energy(X, split, np.zeros(8, dtype=int))[0])
    observed = diagnosis.between_energy(X, cells, np.zeros(8, dtype=int))[0]
    exact = np.mean(np.array(energies) >= observed - 1e-9)
    found = diagnosis.permutation_test(plain(X), cells, None, 3000, random_state=0)
    assert found.statistic == pytest.approx(observed / np.mean(energies), rel=0.05)
    assert found.pvalue == pytest.approx(exact, abs=0.03)


def test_permutations_stay_within_groups():
    rng = np.random.default_rng(1)
    groups = np.repeat([0, 1], 100)
    X = rng.normal(size=(200, 2)) + 5.0 * groups[:, None]
    cells = diagnosis.cell_codes(groups, rng.integers(0, 2, 200))
    between = diagnosis.permutation_test(plain(X), cells, None, 99, random_state=0)
    within = diagnosis.permutation_test(plain(X), cells, groups, 99, random_state=0)
    assert between.pvalue == 0.01 and within.pvalue > 0.05


def test_permutation_test_holds_its_level_and_has_power():
    pvalues, single = [], []
    for seed in range(200):
        X, y, rng = logistic(seed, n=60)
        seen = diagnosis.views(X**3, 5, random_state=seed)
        found = diagnosis.permutation_test(
            seen, rng.permutation(60) % 6, None, 39, random_state=seed
        )
        pvalues.append(found.pvalue)
        single.extend(found.by_column)
    assert 2 <= np.sum(np.array(pvalues) <= 0.05) <= 20
    assert 0.03 <= np.mean(np.array(single) <= 0.05) <= 0.07
    X, y, _ = logistic()
    found = diagnosis.permutation_test(diagnosis.views(X), y, None, 99, random_state=0)
    assert found.pvalue == 0.01 and found.by_column[0] < 0.01 < found.by_column[2]


def test_one_cell_a_group_says_nothing():
    X, y, _ = logistic()
    found = diagnosis.permutation_test(plain(X), y, y)
    assert np.isnan(found.pvalue) and found.note


def test_a_single_column_a_thin_direction_and_heavy_tails_are_found():
    rng = np.random.default_rng(0)
    bags, shift = np.arange(600) % 6, np.array([-0.5, 0, 0.5, 0, -0.5, 0.5])
    one = rng.normal(size=(600, 50))
    one[:, 7] += shift[bags]
    thin = rng.normal(size=(600, 5))
    thin[:, 4] = thin[:, 3] + 0.1 * thin[:, 4] + 0.05 * shift[bags]
    heavy = rng.standard_t(1, size=(600, 5)) + shift[bags][:, None]
    for X in (one, thin, heavy):
        seen = diagnosis.views(X, random_state=0)
        found = diagnosis.permutation_test(seen, bags, None, 199, random_state=0)
        assert found.pvalue <= 0.02
    found = diagnosis.permutation_test(diagnosis.views(one), bags, random_state=0)
    assert found.by_column.argmin() == 7


# --- p-values together, and what would have been found -------------------------------------------------------


@pytest.mark.equation("eq-diag-cauchy")
def test_cauchy_combination():
    for p in (1e-200, 1e-15, 1e-5, 0.03, 0.7):
        assert diagnosis.cauchy_combination([p] * 4) == pytest.approx(p, rel=1e-6)
    p = np.array([0.002, 0.3, 0.8])
    slow = cauchy.sf(np.mean(cauchy.isf(p)))
    assert diagnosis.cauchy_combination(p) == pytest.approx(slow)
    assert diagnosis.cauchy_combination([np.nan, *p]) == pytest.approx(slow)
    assert np.isnan(diagnosis.cauchy_combination([np.nan]))
    assert diagnosis.cauchy_combination([1e-30, 0.5]) == pytest.approx(2e-30, rel=1e-6)
    rng = np.random.default_rng(0)
    for mix in (0.0, 0.5, 0.95):  # however they depend
        z = np.sqrt(mix) * rng.normal(size=(20_000, 1))
        z = z + np.sqrt(1 - mix) * rng.normal(size=(20_000, 10))
        found = diagnosis.cauchy_combination(norm.sf(z))
        assert 0.04 < np.mean(found < 0.05) < 0.07


@pytest.mark.equation("eq-diag-shift")
def test_the_smallest_shift_is_found_four_times_in_five():
    found, at = [], np.repeat(np.arange(10), 40)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4))
    expect = diagnosis.permutation_test(diagnosis.views(X), at, random_state=0)
    for seed in range(100):
        rng = np.random.default_rng(seed)
        delta = expect.detectable * rng.normal(size=(10, 4))
        seen = diagnosis.views(rng.normal(size=(400, 4)) + delta[at], random_state=0)
        found.append(diagnosis.permutation_test(seen, at, None, 59, random_state=0))
    assert 0.65 < np.mean([f.pvalue <= 0.05 for f in found]) < 0.95
    table = diagnosis.table_test(np.full((10, 2), 20))
    hits = []
    for seed in range(400):
        rng = np.random.default_rng(seed)
        delta = rng.normal(size=10)
        delta *= table.detectable / 2 / np.sqrt(np.mean(delta**2))
        ones = rng.binomial(40, 0.5 + delta)
        counts = np.column_stack([40 - ones, ones])
        hits.append(diagnosis.table_test(counts).pvalue < 0.05)
    assert 0.72 < np.mean(hits) < 0.88


def test_only_the_three_views_share_the_level():
    def reach(alpha, n_views):
        return np.sqrt(norm.isf(alpha / n_views) + norm.ppf(0.8))

    X, y, bags, P = bags_with_counts(n_bags=12, size=20)
    seen = diagnosis.views(X, random_state=0)
    tests = {
        3: lambda alpha: diagnosis.affine_tests(seen, bags, P, alpha=alpha),
        1: lambda alpha: diagnosis.label_test(X, y, bags, alpha, random_state=0),
    }
    for n_views, test in tests.items():
        ratio = test(0.001).detectable / test(0.05).detectable
        assert ratio == pytest.approx(reach(0.001, n_views) / reach(0.05, n_views))


def test_two_tests_of_a_statement_double_the_pvalues_of_their_columns():
    one = diagnosis.TestResult(1.0, 0.2, 0.5, np.array([0.08, 0.02, np.nan]))
    other = diagnosis.TestResult(2.0, 0.1, 0.3, np.array([0.03, 0.7, np.nan]))
    name, found = diagnosis.join_tests({"a": one, "b": other})
    assert name == "a + b" and found.pvalue == 0.2 and found.detectable == 0.3
    np.testing.assert_allclose(found.by_column, [0.06, 0.04, np.nan])
    single = diagnosis.TestResult(2.0, 0.1, 0.3)
    alone = diagnosis.join_tests({"a": one, "b": single})[1].by_column
    np.testing.assert_allclose(alone, one.by_column)


def test_a_column_of_one_value_but_for_a_few_is_not_tested_alone():
    X, _, bags, P = bags_with_counts(n_bags=20, size=10)
    others = np.random.default_rng(0).permutation(200)
    for n_others, tested in ((5, False), (19, False), (20, True)):
        X[:, 1] = 0.0
        X[others[:n_others], 1] = 1.0
        seen = diagnosis.views(X, random_state=0)
        found = diagnosis.affine_tests(seen, bags, P).by_column
        assert np.isfinite(found[1]) == tested and np.isfinite(found[0])


def test_two_bags():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(80, 3)), rng.normal(size=(60, 3))
    assert diagnosis.two_bag_test(X, Y).pvalue > 0.05
    moved = diagnosis.two_bag_test(X, Y + np.array([0, 1, 0]))
    assert moved.pvalue == 0.001 and moved.by_column.argmin() == 1
    again = diagnosis.two_bag_test(X, Y + np.array([0, 1, 0]))
    np.testing.assert_array_equal(moved.by_column, again.by_column)
    wide = diagnosis.two_bag_test(X, 2.5 * Y)  # the means agree
    assert wide.pvalue < 0.01
    padded = diagnosis.two_bag_test(np.c_[X, np.ones(80)], np.c_[Y, np.ones(60)])
    assert np.isnan(padded.by_column[3]) and 0 < padded.detectable < 0.5
    with pytest.raises(ValueError, match="same columns, got 3 and 2"):
        diagnosis.two_bag_test(X, Y[:, :2])
    with pytest.raises(
        ValueError, match="n_permutations must be a whole number from 19"
    ):
        diagnosis.two_bag_test(X, Y, n_permutations=3)


# --- tables of counts ----------------------------------------------------------------------------------------


def test_table_test_is_scipys():
    counts = np.array([[10, 25, 9], [20, 30, 11], [31, 15, 12]])
    slow = chi2_contingency(counts, correction=False)
    found = diagnosis.table_test(counts)
    assert found[:2] == pytest.approx((slow.statistic, slow.pvalue))
    padded = np.pad(counts, ((0, 1), (1, 0)))  # an empty bag, an empty class
    assert diagnosis.table_test(padded)[:2] == pytest.approx(found[:2])


def test_small_counts_are_compared_with_all_tables_of_the_margins():
    counts = np.array([[3, 1], [0, 4], [2, 2]])

    def squares(t):
        e = np.outer(t.sum(axis=1), t.sum(axis=0)) / t.sum()
        return np.sum((t - e) ** 2 / e)

    total = weight = 0.0
    for a in range(5):
        for b in range(5):
            c = 5 - a - b
            if 0 <= c <= 4:
                chance = comb(4, a) * comb(4, b) * comb(4, c)
                total += chance
                other = np.array([[a, 4 - a], [b, 4 - b], [c, 4 - c]])
                weight += chance * (squares(other) >= squares(counts) - 1e-9)
    found = diagnosis.table_test(counts, n_draws=20_000, random_state=0)
    assert found.pvalue == pytest.approx(weight / total, abs=0.015)


def test_a_table_of_one_row_says_nothing():
    assert np.isnan(diagnosis.table_test([[3, 4]]).pvalue)
    assert np.isnan(diagnosis.table_test([[3, 0], [4, 0]]).pvalue)


def test_many_small_bags_hold_the_level():
    rejected = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        bags, y = rng.permutation(300) // 3, rng.integers(0, 2, 300)
        rejected += (
            diagnosis.table_test(crosstab(bags, y), 199, 0.05, seed).pvalue < 0.05
        )
    assert 2 <= rejected <= 20


# --- the label and the bag, given the features ---------------------------------------------------------------


def test_out_of_fold_never_predicts_what_it_trained_on():
    seen = []

    def fit(train, test):
        assert not set(train) & set(test) and len(train) + len(test) == 23
        seen.extend(test)
        return np.full((len(test), 2), len(train))

    rng = np.random.RandomState(0)
    found = diagnosis.out_of_fold(fit, np.zeros((23, 2)), 5, rng)
    assert sorted(seen) == list(range(23)) and set(found[:, 0]) == {18, 19}


def test_class_probabilities_are_near_the_truth():
    X, y, _ = logistic(n=3000)
    rng = np.random.RandomState(0)
    F = diagnosis.embed(X, random_state=0)
    found = diagnosis.class_probabilities(X, F, np.eye(2)[y], rng)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    true = 1 / (1 + np.exp(-2 * X[:, 0]))
    assert np.mean(np.abs(found[:, 1] - true)) < 0.06
    three = np.digitize(X[:, 0] + 0.1 * X[:, 1], [-0.5, 0.5])
    found = diagnosis.class_probabilities(X, F, np.eye(3)[three], rng)
    assert np.mean(found.argmax(axis=1) == three) > 0.9


def test_conditional_mean_finds_steps_and_slopes():
    X, _, _ = logistic(n=2000)
    target = np.column_stack([X[:, 0], np.sign(X[:, 1])])
    found = diagnosis.conditional_mean(
        X, diagnosis.embed(X, random_state=0), target, np.random.RandomState(0)
    )
    assert np.mean((found - target) ** 2, axis=0).max() < 0.12


def test_label_shifts_are_ridge_regressions():
    rng = np.random.default_rng(0)
    S, e, bags = (
        rng.normal(size=(90, 3)),
        rng.normal(size=(90, 2)),
        rng.integers(0, 4, 90),
    )
    found = diagnosis.label_shifts(e, S, bags, 5, ridge=2.0)
    slow = np.zeros((5, 3, 2))
    for b in range(4):
        model = Ridge(alpha=2.0, fit_intercept=False)
        slow[b] = model.fit(S[bags == b], e[bags == b]).coef_.T
    slow -= np.tensordot(np.bincount(bags, minlength=5) / 90, slow, 1)
    np.testing.assert_allclose(found, slow, atol=1e-10)


@pytest.mark.equation("eq-diag-label")
def test_label_given_features_and_bag():
    statistics = {"random": [], "by features": [], "by label": [], "by both": []}
    for seed in range(8):
        X, y, rng = logistic(seed)
        flip = rng.random(400) < 0.35
        noisy = X[:, 0] + rng.normal(size=400)
        bags = {
            "random": rng.integers(0, 6, 400),
            "by features": np.digitize(noisy, [-1, -0.5, 0, 0.5, 1]),
            "by label": np.where(
                flip, rng.integers(0, 6, 400), 3 * y + rng.integers(0, 3, 400)
            ),
            # In a bag the label leans on the second feature, and the other way in the next one: no shift on average.
            "by both": ((X[:, 1] > 0) ^ (y == 1) ^ flip).astype(int),
        }
        for name, b in bags.items():
            found = diagnosis.label_test(X, y, b, random_state=seed)
            assert found.pvalue == pytest.approx(norm.sf(found.statistic))
            statistics[name].append(found.statistic)
    mean = {name: np.mean(values) for name, values in statistics.items()}
    assert abs(mean["random"]) < 1 and abs(mean["by features"]) < 1  # sd 0.35
    assert mean["by label"] > 3 and mean["by both"] > 0.6


def test_the_mean_of_the_halves_has_at_most_variance_one():
    found = []
    for seed in range(25):
        X, y, rng = logistic(seed, n=160)
        bags = rng.integers(0, 6, 160)
        found.append(diagnosis.label_test(X, y, bags, random_state=seed).statistic)
    assert 0.5 < np.sqrt(np.mean(np.square(found))) < 1.1


def test_label_test_of_three_classes():
    X, y, rng = logistic(n=600)
    three = np.where(rng.random(600) < 0.4, 2, y)
    found = diagnosis.label_test(X, three, rng.integers(0, 5, 600), random_state=0)
    assert found.pvalue > 0.01
    bags = np.where(rng.random(600) < 0.5, three, rng.integers(0, 3, 600))
    assert diagnosis.label_test(X, three, bags, random_state=0).pvalue < 1e-4


def test_label_test_needs_instances_classes_and_bags():
    X, y, rng = logistic()
    bags = rng.integers(0, 4, 400)
    for rows, labels, codes in (
        (slice(40), y, bags), (slice(None), 0 * y, bags), (slice(None), y, 0 * bags),
    ):  # fmt: skip
        found = diagnosis.label_test(X[rows], labels[rows], codes[rows], random_state=0)
        assert np.isnan(found.pvalue) and found.note


def test_label_test_withdraws_where_the_features_tell_the_bag():
    X, y, _ = logistic(n=3000)
    bags = np.digitize(X[:, 0], [-0.6, 0, 0.6])
    found = diagnosis.label_test(X, y, bags, random_state=0)
    assert np.isnan(found.pvalue) and "the features tell the bag" in found.note


# --- the affine test: problems, equations ----------------------------------------


def bags_with_counts(seed=0, n_bags=12, size=8, gap=2.0, d=4, spread=0.4, same=True):
    """Bags with given counts; features depend on the label alone, or (not same) on the bag within a class too."""
    rng = np.random.default_rng(seed)
    counts = np.round(size * rng.uniform(0.5 - spread, 0.5 + spread, n_bags))
    bags = np.repeat(np.arange(n_bags), size)
    y = (np.tile(np.arange(size), n_bags) < counts[bags]).astype(int)
    X = rng.normal(size=(len(y), d)) * (1 + 0.5 * y[:, None])
    X[:, 0] += gap * y
    if not same:
        X += rng.normal(size=(n_bags, d))[bags]
    P = np.column_stack([1 - counts / size, counts / size])
    return X, y, bags, P


def uneven(seed=0, n_classes=3, n_bags=9, d=3):
    rng = np.random.default_rng(seed)
    bags = np.repeat(np.arange(n_bags), rng.integers(2, 15, n_bags))
    y = rng.integers(0, n_classes, len(bags))
    X = rng.normal(size=(len(y), d)) + 2 * np.eye(n_classes, d)[y]
    P = averaging_matrix(bags) @ np.eye(n_classes)[y]
    return X, y, bags, P


def parts(X, bags, P):
    moments = diagnosis.bag_moments(X, bags, P)
    return moments, diagnosis.affine_design(moments.proportions, moments.sizes)


# --- the equations -------------------------------------------------------------------------------------------


def test_bag_moments_leave_out_bags_of_one_instance():
    rng = np.random.default_rng(0)
    X, bags = rng.normal(size=(9, 2)), np.array([0, 0, 0, 1, 3, 3, 3, 3, 2])
    P = np.column_stack([np.linspace(0, 1, 5), np.linspace(1, 0, 5)])  # bag 4 is empty
    moments = diagnosis.bag_moments(X, bags, P)
    np.testing.assert_array_equal(moments.sizes, [3, 4])
    np.testing.assert_array_equal(moments.proportions, P[[0, 3]])
    for k, bag in enumerate([0, 3]):
        np.testing.assert_allclose(moments.means[k], X[bags == bag].mean(axis=0))
        np.testing.assert_allclose(
            moments.traces[k], np.trace(np.cov(X[bags == bag].T))
        )


@pytest.mark.equation("eq-diag-lack-of-fit")
def test_design_and_lack_of_fit_are_weighted_least_squares():
    X, _, bags, P = uneven()
    moments, design = parts(X, bags, P)
    root = np.sqrt(moments.sizes)[:, None]
    means, *_ = np.linalg.lstsq(root * P, root * moments.means)
    np.testing.assert_allclose(design.solve @ moments.means, means, atol=1e-10)
    hat = root * P @ np.linalg.pinv(root * P)
    np.testing.assert_allclose(design.free, 1 - np.diag(hat), atol=1e-10)
    slow = sum(
        n * np.sum((m - p @ means) ** 2)
        for n, m, p in zip(moments.sizes, moments.means, P, strict=True)
    )
    assert diagnosis.lack_of_fit(
        moments.means, moments.sizes, design.basis
    ) == pytest.approx(slow)


def test_label_covariance_is_that_of_one_hot_labels():
    P = np.array([[0.2, 0.5, 0.3], [1.0, 0.0, 0.0]])
    for p, found in zip(P, diagnosis.label_covariance(P), strict=True):
        slow = sum(
            p[c] * np.outer(np.eye(3)[c] - p, np.eye(3)[c] - p) for c in range(3)
        )
        np.testing.assert_allclose(found, slow, atol=1e-12)


@pytest.mark.equation("eq-diag-noise")
def test_noise_is_its_definition_and_has_little_bias():
    X, _, bags, P = uneven()
    moments, design = parts(X, bags, P)
    means = design.solve @ moments.means
    error = design.solve @ np.diag(moments.traces / moments.sizes) @ design.solve.T
    gram = means @ means.T - error
    slow = [
        trace - n / (n - 1) * np.sum((np.diag(p) - np.outer(p, p)) * gram)
        for trace, n, p in zip(moments.traces, moments.sizes, P, strict=True)
    ]
    found = diagnosis.within_class_noise(moments, design)
    np.testing.assert_allclose(found, slow, atol=1e-10)
    sums = []
    for seed in range(300):
        X, _, bags, P = bags_with_counts(seed, gap=3.0, n_bags=24)
        moments, design = parts(X, bags, P)
        true = 4 * (1 + 1.25 * P[:, 1])  # variances 1 and 2.25 in four features
        noise = diagnosis.within_class_noise(moments, design)
        sums.append(design.free @ np.column_stack([noise, true, moments.traces]))
    found, true, raw = np.mean(sums, axis=0)
    assert 0.99 * true < found < 1.06 * true  # the bias, to the careful side
    assert raw > 1.2 * true  # what the correction is for


def test_shape_of_round_and_flat_clouds():
    rng = np.random.default_rng(0)
    bags, P = np.repeat(np.arange(20), 30), np.ones((20, 1))
    round_, flat = rng.normal(size=(600, 7)), np.outer(rng.normal(size=600), [1, 2, 3])
    for cloud, dimension in ((round_, 7), (flat, 1)):
        shape = diagnosis.noise_shape(*parts(cloud, bags, P), False)
        assert np.trace(shape.matrix) == pytest.approx(1)
        assert shape.squares == pytest.approx(1 / dimension, rel=0.03)
        assert shape.cubes == pytest.approx(1 / dimension**2, rel=0.1)
    # Two classes far apart make a bag look flat, and a class does not.
    X, _, bags, P = bags_with_counts(n_bags=40, size=40, gap=20.0, d=6)
    assert diagnosis.noise_shape(*parts(X, bags, P), True).squares < 1 / 4.5
    assert diagnosis.noise_shape(*parts(X, bags, P), False).squares > 1 / 2


def shape_of(covariance):
    S = covariance / np.trace(covariance)
    return diagnosis.Shape(S, np.trace(S @ S), np.trace(S @ S @ S))


def test_cumulants_of_the_lack_of_fit_are_those_of_the_quadratic_form():
    X, _, bags, P = uneven()
    _, design = parts(X, bags, P)
    tau = np.random.default_rng(1).uniform(1, 2, len(P))
    shape = shape_of(np.diag([3.0, 2.0, 1.0]))
    form = np.kron(
        (np.eye(len(P)) - design.basis @ design.basis.T) @ np.diag(tau), shape.matrix
    )  # all bag means in one vector
    slow = 2 * np.trace(form @ form), 8 * np.trace(form @ form @ form)
    np.testing.assert_allclose(diagnosis.fit_cumulants(design, tau, shape), slow)


def test_cumulants_of_the_noise_are_those_of_gaussian_variances():
    X, _, bags, P = uneven(n_bags=4)
    moments, design = parts(X, bags, P)
    shape, tau = shape_of(np.diag([3.0, 2.0, 1.0])), np.arange(1.0, 5.0)
    # tr W_k is a mean of n_k - 1 weighted chi-square variables for each feature.
    second = third = 0.0
    for n, h, t in zip(moments.sizes, design.free, tau, strict=True):
        for weight in np.diag(shape.matrix):
            second += 2 * (n - 1) * (h * t * weight / (n - 1)) ** 2
            third += 8 * (n - 1) * (h * t * weight / (n - 1)) ** 3
    found = diagnosis.noise_cumulants(moments, design, tau, shape)
    np.testing.assert_allclose(found, [second, third])


def test_cumulants_of_the_gram_matrix_are_those_of_the_quadratic_form():
    X, _, bags, P = uneven()
    moments, design = parts(X, bags, P)
    tau = np.random.default_rng(1).uniform(1, 2, len(P))
    shape = shape_of(np.array([[3.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 1.0]]))
    A = np.kron(design.total_mixing, np.eye(3))
    C = design.solve @ np.diag(tau / moments.sizes) @ design.solve.T
    V, mean = np.kron(C, shape.matrix), (design.solve @ moments.means).ravel()
    second = 2 * np.trace(A @ V @ A @ V) + 4 * mean @ A @ V @ A @ mean
    third = 8 * np.trace(A @ V @ A @ V @ A @ V) + 24 * mean @ A @ V @ A @ V @ A @ mean
    for k, (n, h, t) in enumerate(zip(moments.sizes, design.free, tau, strict=True)):
        # In bag k the labels are given: the mean of its class means is at a fixed distance, plus noise.
        label = np.kron(diagnosis.label_covariance(P)[k], shape.matrix)
        second += 4 * h**2 * t * n / (n - 1) ** 2 * mean @ label @ mean
    found = diagnosis.gram_cumulants(moments, design, tau, shape)
    np.testing.assert_allclose(found, [second, third])


def equal_spread(sizes, noise, seed=0):
    """One feature, with exactly this variance within each bag."""
    rng = np.random.default_rng(seed)
    bags = np.repeat(np.arange(len(sizes)), sizes)
    x = rng.normal(size=(len(bags), 1))
    for k in range(len(sizes)):
        part = x[bags == k] - x[bags == k].mean()
        x[bags == k] = part * np.sqrt(noise / part.var(ddof=1))
    return x + rng.normal(size=len(sizes))[bags][:, None], bags


@pytest.mark.equation("eq-diag-cumulants")
def test_cumulants_without_classes_are_those_of_one_quadratic_form():
    sizes = np.array([2, 3, 5, 4, 9, 3])
    x, bags = equal_spread(sizes, 1.7)
    P = np.column_stack([np.linspace(0.1, 0.7, 6), 1 - np.linspace(0.1, 0.7, 6)])
    moments, design = parts(x, bags, P)
    found = diagnosis.cumulants(moments, design, moments.traces, False)
    # Lack of fit less expected lack of fit is x' A x.
    S = averaging_matrix(bags).toarray()
    root = np.sqrt(sizes)[:, None] * S
    U = design.basis
    A = root.T @ (np.eye(6) - U @ U.T) @ root
    for k, (n, free) in enumerate(zip(sizes, design.free, strict=True)):
        inside = np.diag(bags == k) - n * np.outer(S[k], S[k])
        A -= free * inside / (n - 1)
    A *= 1.7
    slow = 2 * np.trace(A @ A), 8 * np.trace(A @ A @ A)
    np.testing.assert_allclose(found, slow, rtol=1e-9)
    assert (
        abs(np.diag(A)).max() < 1e-9
    )  # why skewness adds what it does, and kurtosis nothing


@pytest.mark.equation("eq-diag-cumulants")
def test_cumulants_with_classes_are_those_of_three_parts_with_careful_noise():
    X, _, bags, P = bags_with_counts(n_bags=20, gap=1.0)
    moments, design = parts(X, bags, P)
    estimate = diagnosis.within_class_noise(moments, design)
    shape = diagnosis.noise_shape(moments, design, True)
    for noise, known in ((estimate, True), (1.1 * moments.traces, False)):
        taken = design.free @ (moments.traces - noise)
        plain_noise = diagnosis.smooth_noise(moments, design, moments.traces)
        error = diagnosis.gram_cumulants(moments, design, plain_noise, shape)
        sure = taken**2 / (taken**2 + error[0]) if known else 0
        assert (taken > 0) == known and (0.1 < sure < 0.9) == known
        careful = diagnosis.smooth_noise(
            moments, design, moments.traces - sure * (moments.traces - noise)
        )
        fit = diagnosis.fit_cumulants(design, careful, shape)
        within = diagnosis.noise_cumulants(moments, design, careful, shape)
        gram = diagnosis.gram_cumulants(moments, design, careful, shape)
        found = diagnosis.cumulants(moments, design, noise, True)
        np.testing.assert_allclose(
            found, [fit[0] + within[0] + gram[0], fit[1] - within[1] + gram[1]]
        )


def test_directions_in_which_shares_differ_by_rounding_are_left_out():
    p, tiny = np.linspace(0.1, 0.8, 8), 1e-9 * (-1.0) ** np.arange(8)
    P = np.column_stack([1 - p, p / 2 + tiny, p / 2 - tiny])
    design = diagnosis.affine_design(P, np.full(8, 12))
    assert design.basis.shape == (8, 2) and design.free.sum() == pytest.approx(6)


@pytest.mark.equation("eq-diag-pearson")
@pytest.mark.parametrize("exact", [True, False])
def test_affine_test_is_made_of_its_parts(exact):
    X, _, bags, P = bags_with_counts(n_bags=20)
    moments, design = parts(X, bags, P)
    noise = diagnosis.within_class_noise(moments, design)
    noise = noise if exact else moments.traces
    variance, third = diagnosis.cumulants(moments, design, noise, exact)
    lack = diagnosis.lack_of_fit(moments.means, moments.sizes, design.basis)
    expected = design.free @ noise
    found = diagnosis.affine_pvalue(moments, design, exact)
    assert found.corrected == exact
    assert found.statistic == pytest.approx(lack / expected)
    assert found.deviation == pytest.approx((lack - expected) / variance**0.5)
    assert found.skewness == pytest.approx(third / variance**1.5)
    assert found.relative_sd == pytest.approx(variance**0.5 / expected)
    for unit in (1e-9, 1e9):
        again = diagnosis.affine_pvalue(*parts(unit * X, bags, P), exact)
        assert again[:4] == pytest.approx(found[:4])


@pytest.mark.parametrize("unit", [1e-3, 1e3])
def test_without_variance_within_bags_means_are_affine_or_not(unit):
    bags, p = np.repeat(np.arange(6), 4), np.linspace(0.1, 0.7, 6)
    P = np.column_stack([1 - p, p])
    for power, expected in ((1, (0, 1)), (2, (np.inf, 0))):
        x = unit * (1 + 2 * p[bags][:, None]) ** power
        found = diagnosis.affine_test(x, bags, P)
        assert found[:2] == expected and np.isnan(found.deviation)
        assert found.corrected and found[3:5] == (0, 0)


def test_third_moments_add_to_the_third_cumulant():
    bags, P = np.repeat(np.arange(30), 5), np.ones((30, 1))
    found, values = [], []
    for seed in range(4000):
        x = np.random.default_rng(seed).exponential(size=(150, 1)) - 1
        moments, design = parts(x, bags, P)
        lack = diagnosis.lack_of_fit(moments.means, moments.sizes, design.basis)
        values.append(lack - design.free @ moments.traces)
        if seed < 300:
            found.append(diagnosis.third_moment_cumulant(moments, design))
    shape = diagnosis.Shape(np.eye(1), 1.0, 1.0)
    gauss = diagnosis.fit_cumulants(design, np.ones(30), shape)
    gauss = gauss + [1, -1] * diagnosis.noise_cumulants(
        moments, design, np.ones(30), shape
    )
    third = np.mean((values - np.mean(values)) ** 3)
    assert np.var(values) == pytest.approx(gauss[0], rel=0.1)
    # 4 times the square of the third moment of the exponential distribution, 2, by 30 bags.
    exact = 4 * 2**2 * 30 * 5 * (29 / 30) ** 3 / 16
    assert third == pytest.approx(gauss[1] + exact, rel=0.3)
    assert third > 1.5 * gauss[1]
    assert (
        0.7 * exact < np.mean(found) < 1.6 * exact
    )  # moments within bags of five are small


def test_cubes_of_the_shape_have_little_bias():
    bags, P = np.repeat(np.arange(6), 4), np.ones((6, 1))
    cubes = []
    for seed in range(400):
        X = np.random.default_rng(seed).normal(size=(24, 7))
        cubes.append(diagnosis.noise_shape(*parts(X, bags, P), False).cubes)
    assert 0.6 / 49 < np.mean(cubes) < 1.4 / 49


def test_class_means_are_known_if_their_error_is_small_and_enough_noise_is_left():
    shares, left, found = [], [], []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        bags = np.repeat(np.arange(8), rng.integers(3, 12, 8))
        P = 0.5 + np.outer(rng.uniform(-0.4, 0.4, 8), [1, -1])
        X = rng.normal(size=(len(bags), 2)) + seed % 4 * P[bags]
        moments, design = parts(X, bags, P)
        error = design.solve @ np.diag(moments.traces / moments.sizes) @ design.solve.T
        total = design.free @ moments.traces
        taken = sum(
            free * np.sum(mix * error)
            for free, mix in zip(design.free, design.mixing, strict=True)
        )
        shares.append(taken / total)
        means = design.solve @ moments.means
        gram = sum(
            free * np.sum(mix * (means @ means.T - error))
            for free, mix in zip(design.free, design.mixing, strict=True)
        )
        shape = diagnosis.noise_shape(moments, design, True)
        tau = diagnosis.smooth_noise(moments, design, moments.traces)
        variance = diagnosis.gram_cumulants(moments, design, tau, shape)[0]
        left.append((total - gram) / variance**0.5)
        found.append(diagnosis.class_means_are_known(moments, design))
    known, enough = np.array(shares) < 0.2, np.abs(left) > 2
    assert min(np.sum(known & enough), np.sum(known & ~enough)) >= 3
    assert np.sum(~known) >= 3
    np.testing.assert_array_equal(found, known & enough)


def test_a_noise_that_is_taken_out_entirely_is_not_believed():
    rng = np.random.default_rng(5)
    sizes = np.array([32, 3, 32, 20, 22, 26, 13, 39, 4, 13, 17, 24, 18, 7, 4])
    bags = np.repeat(np.arange(15), sizes)
    shares = rng.dirichlet([2, 2, 2], 15)
    y = np.array([rng.choice(3, p=shares[bag]) for bag in bags])
    P = averaging_matrix(bags) @ np.eye(3)[y]
    pvalues = []
    for seed in range(200):
        X = np.random.default_rng(seed).normal(size=(len(y), 2))
        X *= (1 + 0.4 * y)[:, None]
        X[:, 0] += 2.2 * y
        pvalues.append(diagnosis.affine_test(X, bags, P).pvalue)
    assert np.mean(np.array(pvalues) < 0.001) <= 0.01
    assert np.mean(np.array(pvalues) < 0.05) <= 0.09


@pytest.mark.parametrize("gap", [0.0, 3.0])
def test_cumulants_are_those_of_simulations_or_too_large(gap):
    _, _, bags, P = bags_with_counts(
        0, n_bags=20, size=10
    )  # the counts are always these
    y = (np.tile(np.arange(10), 20) < 10 * P[bags, 1] - 0.5).astype(int)
    lacks, predicted = [], []
    for seed in range(800):
        X = np.random.default_rng(seed).normal(size=(200, 3))
        X[:, 0] += gap * y
        moments, design = parts(X, bags, P)
        noise = diagnosis.within_class_noise(moments, design)
        lack = diagnosis.lack_of_fit(moments.means, moments.sizes, design.basis)
        lacks.append(lack - design.free @ noise)
        if seed < 100:
            predicted.append(diagnosis.cumulants(moments, design, noise, True))
    variance, third = np.mean(predicted, axis=0)
    assert 0.9 * np.var(lacks) < variance < 1.35 * np.var(lacks)
    central = np.mean((lacks - np.mean(lacks)) ** 3)
    assert 0.4 * central < third < 2 * central


@pytest.mark.equation("eq-diag-pearson")
def test_one_feature_and_one_class_is_nearly_the_analysis_of_variance():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(120, 1)) + 0.3 * rng.normal(size=6).repeat(20)[:, None]
        bags = np.repeat(np.arange(6), 20)
        found = diagnosis.affine_test(x, bags, np.ones((6, 1)))
        slow = f_oneway(*(x[bags == k, 0] for k in range(6)))
        assert found.statistic == pytest.approx(slow.statistic)
        pearson = pearson3.sf(found.deviation, found.skewness)
        assert pearson == pytest.approx(slow.pvalue, abs=0.015)
        # With one feature the heavier of two tails: here that of F.
        assert found.pvalue == pytest.approx(max(pearson, slow.pvalue), rel=0.02)


def test_the_correction_is_for_counts():
    X, _, bags, P = bags_with_counts(n_bags=20)
    assert diagnosis.affine_test(X, bags, P).corrected
    assert not diagnosis.affine_test(X, bags, P, exact=False).corrected


# --- level, power and what cannot be answered ----------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"n_bags": 8, "size": 10},
        {"n_bags": 40, "size": 5, "gap": 4.0},
        {"n_bags": 10, "size": 40, "gap": 4.0, "spread": 0.15},
    ],
)
def test_level_of_the_affine_test(options):
    pvalues = []
    for seed in range(200):
        X, _, bags, P = bags_with_counts(seed, **options)
        pvalues.append(
            diagnosis.affine_tests(
                diagnosis.views(X, 10, random_state=seed), bags, P
            ).pvalue
        )
    assert 2 <= np.sum(np.array(pvalues) < 0.05) <= 20  # 10 expected, standard error 3
    assert 75 <= np.sum(np.array(pvalues) < 0.5) <= 125


def test_without_the_correction_the_test_is_too_careful():
    rates = {True: 0, False: 0}
    for seed in range(100):
        X, _, bags, P = bags_with_counts(seed, n_bags=40, size=10, gap=6.0)
        moments, design = parts(X, bags, P)
        for exact in rates:
            found = diagnosis.affine_pvalue(moments, design, exact)
            rates[exact] += found.pvalue < 0.5
    assert rates[False] < 5 and 25 <= rates[True] <= 70


def test_power_of_the_affine_test():
    X, _, bags, P = bags_with_counts(size=30, same=False)
    assert (
        diagnosis.affine_test(diagnosis.embed(X, random_state=0), bags, P).pvalue < 1e-6
    )


def test_it_sees_more_than_means():
    rng = np.random.default_rng(0)
    bags = np.repeat(np.arange(20), 50)
    X = rng.normal(size=(1000, 2)) * np.where(bags % 2, 0.6, 1.2)[:, None]
    P = np.tile([[0.4, 0.6], [0.6, 0.4], [0.6, 0.4], [0.4, 0.6]], (5, 1))
    assert (
        diagnosis.affine_test(diagnosis.embed(X, random_state=0), bags, P).pvalue < 1e-6
    )


def test_a_shift_that_goes_with_the_proportions_shows_only_inside_the_bags():
    X, _, bags, P = bags_with_counts(n_bags=30, size=30)
    for shift, seen in ((0.3, False), (6.0, True)):
        # Bags shift both classes: X and B depend given Y, but bag means are affine.
        shifted = X + shift * P[bags, 1][:, None]
        assert diagnosis.affine_test(shifted, bags, P, exact=False).pvalue > 0.05
        assert (diagnosis.affine_test(shifted, bags, P).pvalue < 0.05) == seen


def test_affine_test_has_nothing_to_say():
    X, _, bags, P = bags_with_counts(n_bags=2)
    assert np.isnan(
        diagnosis.affine_test(X, bags, P).pvalue
    )  # a line through two points
    ones = np.arange(10)
    rows = np.column_stack([ones % 2, 1 - ones % 2]).astype(float)
    assert np.isnan(diagnosis.affine_test(X[:10], ones, rows).pvalue)


def test_equal_proportions_leave_the_class_means_in():
    X, _, bags, P = bags_with_counts(n_bags=12, spread=0.0)
    found = diagnosis.affine_test(X, bags, P)
    assert not found.corrected and found.pvalue > 0.01
    X, _, bags, P = bags_with_counts(n_bags=12, spread=0.0, same=False)
    assert diagnosis.affine_test(X, bags, P).pvalue < 1e-3


# --- shares that carry error ---------------------------------------------------------------------------------


def test_errors_of_shares_move_means_only_along_the_class_differences():
    X, _, bags, P = uneven()
    moments, design = parts(X, bags, P)
    free = diagnosis.without_class_differences(X, moments, design)
    means = design.solve @ moments.means
    gaps = means - means.mean(axis=0)
    errors = np.random.default_rng(0).normal(size=P.shape)
    errors -= errors.mean(axis=1, keepdims=True)
    moved = free - X
    assert np.linalg.matrix_rank(moved, tol=1e-9) == 2
    left = diagnosis.without_class_differences(errors @ means, moments, design)
    np.testing.assert_allclose(left, 0, atol=1e-10)
    np.testing.assert_allclose(free @ gaps.T, 0, atol=1e-10)


def test_surveyed_shares_reject_what_is_true_unless_told_that_they_carry_error():
    rejected = {True: 0, False: 0}
    for seed in range(40):
        rng = np.random.default_rng(seed)
        p, bags = rng.uniform(0.2, 0.8, 10), np.repeat(np.arange(10), 400)
        y = (rng.random(4000) < p[bags]).astype(int)
        X = rng.normal(size=(4000, 4))
        X[:, 0] += 2 * y
        true = np.bincount(bags, y) / 400
        asked = rng.binomial(100, true) / 100
        P = np.column_stack([1 - asked, asked])
        seen = diagnosis.views(X, 10, random_state=seed)
        for exact in rejected:
            rejected[exact] += (
                diagnosis.affine_tests(seen, bags, P, exact).pvalue < 0.05
            )
    assert rejected[True] >= 20 and rejected[False] <= 6


def test_no_direction_is_free_of_error_in_one_column():
    X, _, bags, P = bags_with_counts(d=1)
    seen = diagnosis.Views(X, np.ones((3, 1)), np.ones(1, dtype=bool))
    found = diagnosis.affine_tests(seen, bags, P, exact=False)
    assert np.isnan(found.pvalue) and "no direction" in found.note


def test_whether_shares_are_counts_is_judged_told_and_said():
    X, y = problem()
    bags, P = make_bags(X, y, n_bags=6, random_state=0)
    judged, told = diagnose(X, bags, P), diagnose(X, bags, P, exact=True)
    assert judged.exact and "if they are estimates, say exact=False" in str(judged)
    assert told.exact and "estimates" not in str(told)
    rounded = diagnose(X, bags, P.round(2))
    assert not rounded.exact and "no whole counts" in " ".join(str(rounded).split())
    assert rounded.verdict("Y_B") == "not tested"
    assert diagnose(X, bags, P.round(2), labels=y).verdict("Y_B") != "not tested"
    # Bags of 100 at most: two decimals tell the counts.
    small = make_bags(X, y, n_bags=6, sizes=[100] * 6, random_state=0)
    restored = diagnose(
        X,
        small.bags,
        small.proportions.round(2) + np.array([0.001, -0.001]),
        exact=True,
    )
    np.testing.assert_allclose(restored.pvalues, diagnose(X, *small).pvalues)


# --- the diagnosis -------------------------------------------------------------------------------------------


def test_pvalues_are_of_the_statements_tested():
    X, y = problem()
    bags, P = make_bags(X, y, n_bags=6, random_state=0)
    found = diagnose(X, bags, P)
    assert set(found.pvalues.index) == {"X_B", "Y_B", "X_B|Y"}
    assert found.tests.columns.tolist() == [
        "test", "statistic", "pvalue", "detectable", "note",
    ]  # fmt: skip
    six = diagnose(X, bags, P, labels=y)
    assert tuple(six.pvalues.index) == taxonomy.STATEMENTS
    pd.testing.assert_series_equal(six.pvalues, diagnose(X, bags, P, labels=y).pvalues)


def test_labels_add_tests_and_replace_none():
    X, y = problem(n=1200)
    bags, P = make_bags(X, y, "hard", n_bags=5, random_state=0)
    blind = diagnose(X, bags, P)
    some = diagnose(X, bags, P, labels=np.where(np.arange(1200) < 100, y, -1))
    assert some.n_labeled == 100 and len(some.pvalues) == 6
    assert some.pvalues["Y_B"] == blind.pvalues["Y_B"]
    assert some.pvalues["X_B"] == blind.pvalues["X_B"]
    assert some.pvalues["X_B|Y"] <= 2 * blind.pvalues["X_B|Y"]
    assert "twice the smaller" in some.tests.loc["X_B|Y", "note"]
    for statement in blind.rejected:
        assert statement in some.rejected


def test_with_labels_the_variant_is_found():
    found = {name: [] for name in NAMES}
    for seed in range(2):
        X, y = problem(seed, n=2000)
        for name in NAMES:
            made = make_bags(X, y, name, n_bags=8, random_state=seed)
            result = diagnose(X, *made, labels=y, n_permutations=99, random_state=seed)
            found[name].append(result)
            held = {n.lower(): s for n, s in taxonomy.VARIANTS.items()}[name]
            # Every dependence of the variant is found.
            missed = set(taxonomy.STATEMENTS) - held - {*result.rejected}
            missed -= {s for s in missed if result.verdict(s) == "not tested"}
            assert not missed, (name, seed)
            assert "hard" in result.variants
    # A true variant is rejected in 5 % of draws; the bags of these are functions of clusters, or of estimates.
    wrong = [n for n in NAMES for r in found[n] if n not in r.variants]
    assert len(wrong) <= 3, wrong


def test_without_labels():
    rejected = {name: np.zeros(3) for name in NAMES}
    for seed, name in product(range(20), ["naive", "simple", "intermediate", "hard"]):
        X, y = problem(seed, n=800)
        made = make_bags(X, y, name, n_bags=10, random_state=seed)
        pvalues = diagnose(X, *made, n_permutations=59, random_state=seed).pvalues
        rejected[name] += (pvalues[["Y_B", "X_B", "X_B|Y"]] <= 0.05).to_numpy()
    assert (rejected["naive"] <= 4).all()
    assert (rejected["simple"][:2] >= 15).all() and rejected["simple"][2] <= 4
    assert (rejected["intermediate"] == 20).all() and (rejected["hard"] >= 19).all()


def made_up(detectable=0.05, correction="holm", **pvalues):
    tests = pd.DataFrame(
        {
            "test": "t",
            "statistic": 0.0,
            "pvalue": pd.Series(pvalues, dtype=float),
            "detectable": detectable,
            "note": "",
        }
    )
    none = pd.DataFrame()
    return diagnosis.Diagnosis(tests, none, 0.05, correction, 5, 100, 0, True, True)


@pytest.mark.parametrize("correction", ["holm", None])
@pytest.mark.slow
def test_rejections_are_read_by_the_taxonomy(correction):
    table = taxonomy.table().set_index("name")
    rng = np.random.default_rng(0)
    for p in rng.choice((0.001, 0.02, 0.5), (60, 6), p=[0.1, 0.1, 0.8]):
        pvalues = dict(zip(taxonomy.STATEMENTS, p, strict=True))
        found = made_up(correction=correction, **pvalues)
        for name in taxonomy.VARIANTS:
            claimed = [v for s, v in pvalues.items() if table.loc[name, s]]
            times = len(claimed) if correction else 1
            rejected = any(v * times <= 0.05 for v in claimed)
            assert (name.lower() in found.variants) != rejected
    assert made_up(X_B=0.01, **{"X_B|Y": 0.5}).variants[-1] == "hard"
    assert "naive" not in made_up(X_B=0.01).variants
    # Not tested is not counted, and not rejected.
    assert made_up(X_B=0.04, Y_B=np.nan).variant_pvalues["naive"] == 0.04
    assert made_up(X_B=0.5).variant_pvalues["simple"] == 1


def test_whole_bags_only_where_small_shifts_would_have_been_found():
    fine = {"X_B": 0.5, "Y_B": 0.5}
    assert made_up(**fine).whole_bags
    assert not made_up(detectable=0.2, **fine).whole_bags
    assert not made_up(X_B=0.5, Y_B=np.nan).whole_bags
    # Each alone speaks against naive, whether or not Holm's correction lets it pass.
    for statement in ("X_B|Y", "Y_B|X", "X_B", "Y_B"):
        assert not made_up(**{**fine, statement: 0.03}).whole_bags
    hard = []
    for seed in range(10):
        X, y = problem(seed, n=50)
        made = make_bags(X, y, "hard", sizes=[5] * 10, n_bags=10, random_state=seed)
        hard.append(diagnose(X, *made, n_permutations=59, random_state=seed))
    assert not any(d.whole_bags for d in hard)
    assert all("hold out a part of each bag (split-bag)" in str(d) for d in hard)
    X, y = problem(n=6000)
    naive = diagnose(X, *make_bags(X, y, "naive", n_bags=8, random_state=1))
    assert naive.whole_bags and "whole bags may be held out" in str(naive)


def test_report_says_what_was_tested_and_what_cannot_be():
    X, y = problem(n=1000)
    made = make_bags(X, y, "intermediate", n_bags=8, random_state=0)
    text = " ".join(str(diagnose(pd.DataFrame(X, columns=list("abc")), *made)).split())
    for words in (
        "1000 instances in 8 bags, no labels; level 0.05; Holm's correction within",
        "assumed: instances are independent of one another",
        "sd in every direction of the features, four times in five; by itself moves: ",
        "not told by these data: X ⊥ Y, X ⊥ Y | B, Y ⊥ B | X;",
        "whether features shift along with the shares",
        "What is not rejected is not shown to hold",
        "variants not rejected: cross-bag, intermediate, hard",
        "split-bag",
        "MeanMap: class means are the same in all bags (X ⊥ B | Y rejected)",
    ):
        assert words in text, words
    assert "simplest" not in text
    assert "not told by these data: a shift" in " ".join(
        str(diagnose(X, *made, labels=np.where(np.arange(1000) % 3, y, -1))).split()
    ) or "Y ⊥ B | X" in str(diagnose(X, *made, labels=y))


def test_the_report_as_a_frame():
    X, y = problem(n=1000)
    made = make_bags(X, y, "hard", n_bags=8, random_state=0)
    found = diagnose(pd.DataFrame(X, columns=list("abc")), *made)
    frame = found.to_frame()
    assert len(frame) == 6 and frame.loc["X ⊥ Y", "test"] == "needs labels"
    assert frame.loc["X ⊥ B | Y", "p"] == found.pvalues["X_B|Y"]
    assert frame["verdict"].tolist() == [found.verdict(s) for s in taxonomy.STATEMENTS]
    assert list(found.by_column.index) == list("abc")
    assert {*found.moving("X_B").index} <= set("abc") and len(found.moving("X_B"))


def test_the_column_that_moves_is_named():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1000, 20)), rng.integers(0, 2, 1000)
    X[:, 0] += y
    bags, P = make_bags(X, y, n_bags=10, random_state=0)
    X[:, 7] += rng.normal(size=10)[bags]
    found = diagnose(X, bags, P)
    assert found.moving("X_B|Y").index.tolist() == ["7"]
    assert "moves: 7 (p < 1e-6)" in " ".join(str(found).split())


def test_the_strongest_contradiction_is_not_called_untested():
    share = np.array([0.2, 0.4, 0.6, 0.8, 0.3, 0.7])
    P, bags = np.column_stack([share, 1 - share]), np.repeat(np.arange(6), 10)
    between = np.array([0.0, 1, 0, 1, 0, 1])[bags][:, None]  # no variance within bags
    assert diagnosis.affine_test(between, bags, P).pvalue == 0
    assert diagnosis.affine_test(P[bags][:, :1], bags, P).pvalue == 1
    assert diagnose(between, bags, P).verdict("X_B|Y") == "rejected"
    # Classes so far apart that bags of mixed classes cannot vary so little.
    rng = np.random.default_rng(0)
    narrow = 5 * P[bags][:, :1] + 0.01 * rng.normal(size=(60, 1))
    found = diagnose(narrow, bags, P)
    assert np.isfinite(found.pvalues["X_B|Y"])


def test_bags_may_be_named_and_classes_more_than_two():
    X, y = problem(n=900, n_classes=3)
    made = make_bags(X, y, n_bags=6, random_state=0)
    names = np.array(list("abcdef"))
    named = made.proportions.set_index(names)
    plain_, by_name = diagnose(X, *made), diagnose(X, names[made.bags], named)
    pd.testing.assert_series_equal(plain_.pvalues, by_name.pvalues)
    assert plain_.pvalues["X_B|Y"] > 0.01
    assert "simple" in diagnose(X, *made, labels=y).variants


def test_two_bags_cannot_be_tested_for_simple():
    X, y = problem()
    found = diagnose(X, *make_bags(X, y, n_bags=2, random_state=0))
    assert np.isnan(found.pvalues["X_B|Y"])
    assert found.verdict("X_B|Y") == "not tested" and "no test" in str(found)
    assert "any bag means are affine" in str(found)


def labels_known(b, y, known):
    """Labels of all, of one bag, of one class, or of one instance."""
    rows = {
        "all": b >= 0,
        "bag": b == 0,
        "class": y == y[0],
        "one": np.arange(len(b)) == 0,
    }
    return np.where(rows[known], y, -1)


@pytest.mark.parametrize(
    ("n_bags", "size", "known", "exact", "untested"),
    [
        (1, 40, "all", None, {"X_B", "Y_B", "X_B|Y", "Y_B|X"}),
        (2, 40, "bag", None, {"X_B|Y", "Y_B|X"}),
        (6, 20, "bag", False, {"X_B|Y", "Y_B", "Y_B|X"}),
        (6, 20, "class", False, {"X_Y", "X_Y|B", "Y_B", "Y_B|X"}),
        (3, 20, "one", None, {"X_Y", "X_Y|B", "Y_B|X"}),
        (2, 1, "all", None, {"X_B|Y", "X_Y|B", "Y_B|X"}),
        (3, 1, "all", None, {"X_B|Y", "X_Y|B", "Y_B|X"}),
        (6, 1, "bag", None, {"X_B|Y", "X_Y", "X_Y|B", "Y_B|X"}),
    ],
)
@pytest.mark.filterwarnings("error")
def test_a_statement_without_a_test_says_why(n_bags, size, known, exact, untested):
    rng = np.random.default_rng(0)
    b = np.repeat(np.arange(n_bags), size)
    y = (np.arange(len(b)) % 3 == 0).astype(int)
    X = rng.normal(size=(len(b), 2)) + y[:, None]
    p = np.bincount(b, y) / size
    found = diagnose(
        X, b, p, labels=labels_known(b, y, known), exact=exact, n_permutations=99
    )
    missing = found.tests[found.pvalues.isna()]
    assert untested <= {*missing.index}
    assert (missing["note"] != "").all() and (found.to_frame()["verdict"] != "").all()
    tested = found.tests[found.pvalues.notna()]
    assert (tested["detectable"] > 0).all()
    report = " ".join(str(found).split())
    assert all(note in report for note in missing["note"])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("seed", [245, 656])
def test_ties_in_tiny_bags_are_no_noise(seed):
    """Bags of 2, 2, 3 with hardly a value that varies: 0 / 0 and roots of negative variances before."""
    rng = np.random.default_rng(seed)
    bags = np.repeat([0, 1, 2], [2, 2, 3])
    y = (rng.random(7) < rng.random()).astype(int)
    X = np.round((rng.normal(size=(7, 2)) + 2 * y[:, None]) / 4)
    p = np.bincount(bags, y) / [2, 2, 3]
    found = diagnose(X, bags, p, n_permutations=99)
    assert found.verdict("X_B|Y") == "not tested" and found.tests.loc["X_B|Y", "note"]


def test_why_there_is_no_test_is_said_of_both():
    X, y = problem()
    b = np.arange(len(y)) % 2
    found = diagnose(
        X, b, np.bincount(b, y) / np.bincount(b), labels=labels_known(b, y, "bag")
    )
    assert found.tests.loc["X_B|Y", "note"] == (
        "no more bags than classes: any bag means are affine (affine bag means); no class has labels in two bags "
        "(permutation of bags within classes)"
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": None}, "X must be a matrix"),
        ({"n_permutations": -1}, "n_permutations must be a whole number from 0, got -1"),
        ({"alpha": 1.0}, r"alpha must lie in \(0, 1\), got 1.0"),
        ({"n_permutations": 0}, "take n_permutations=59 or more"),
        ({"alpha": 0.01}, "n_permutations=199 makes 0.005 the least .* n_permutations=299 or more"),
        ({"alpha": 0.004, "correction": None}, "n_permutations=249 or more"),
        ({"correction": "no"}, "correction must be 'holm' or None, got 'no'"),
        ({"exact": "yes"}, "exact must be None, True or False, got 'yes'"),
        ({"bags": [0, 1]}, "bags must have one entry for each of the 600"),
        ({"proportions": [0.5, 2.0]}, "proportions must lie in"),
        ({"labels": [-1] * 600}, "labels holds no known label"),
        ({"labels": [7] * 600}, "labels holds 7"),
        ({"X": np.full((600, 3), np.inf)}, "X must be a matrix of finite numbers"),
    ],
)  # fmt: skip
def test_malformed_input_of_the_diagnosis(change, message):
    X, y = problem()
    bags, P = make_bags(X, y, n_bags=6, random_state=0)
    with pytest.raises(ValueError, match=message):
        diagnose(**{"X": X, "bags": bags, "proportions": P, **change})


def test_a_level_that_permutations_can_just_reach():
    X, y = problem()
    made = make_bags(X, y, "intermediate", n_bags=6, random_state=0)
    found = diagnose(X, *made, alpha=0.01, n_permutations=299)
    assert found.pvalues["X_B"] == pytest.approx(1 / 300)
    assert found.variant_pvalues["naive"] <= 0.01
    assert diagnose(X, *made, alpha=0.005, correction=None).verdict("X_B") != "x"


# --- the table of level and power ----------------------------------------------------------------------------


def test_cells_of_the_table_make_what_they_say():
    for cell in protocol.TABLES[0].cells:
        if cell["data"] == "adult" or cell["n_bags"] * cell["bag_size"] > 1000:
            continue
        X, bags, shares, y = protocol.draw_problem(cell, np.random.RandomState(0))
        sizes = np.bincount(bags)
        assert len(X) == len(y) == len(bags) == cell["n_bags"] * cell["bag_size"]
        assert shares.shape == (cell["n_bags"], y.max() + 1) and len(sizes) == len(
            shares
        )
        np.testing.assert_allclose(shares.sum(axis=1), 1)
        if cell["variant"] != "intermediate":
            assert (np.ptp(sizes) <= 1) == (cell["sizes"] == "equal")
        if cell["variant"] not in protocol.WITH_ERROR:
            true = averaging_matrix(bags) @ np.eye(y.max() + 1)[y]
            np.testing.assert_allclose(shares, true)


def test_spoiled_bags_differ_in_one_column():
    cell = {"data": "wide", "sizes": "equal", "n_bags": 10, "bag_size": 50}
    plain_, *_ = protocol.draw_problem(
        {**cell, "variant": "simple"}, np.random.RandomState(0)
    )
    for how in protocol.SPOILED:
        X, bags, *_ = protocol.draw_problem(
            {**cell, "variant": how}, np.random.RandomState(0)
        )
        changed = np.flatnonzero((plain_ != X).any(axis=0))
        assert len(changed) == 1
        between = averaging_matrix(bags) @ X[:, changed]
        assert between.std() > 1.5 * X[:, changed].std() / np.sqrt(50) or how == "thin"


def test_a_row_counts_rejections(monkeypatch):
    monkeypatch.setattr(protocol, "N_DRAWS", 2)
    cell = {"data": "blobs", "variant": "hard", "sizes": "equal", "labels": 0}
    cell |= {"shares": "judged", "n_bags": 10, "bag_size": 200}
    row = protocol.run(cell, 0)
    for s in ("X_B", "Y_B", "X_B|Y"):
        assert row[f"reject {s}"] == row[f"tested {s}"] == 1
    assert row["tested X_Y"] == row["naive kept"] == row["whole bags"] == 0
    assert protocol.run(cell, 0) == row
    few = {**cell, "variant": "simple", "n_bags": 2, "bag_size": 20}
    found = protocol.run(few, 0)
    assert found["tested X_B|Y"] == found["reject X_B|Y"] == 0
    assert found["simple kept"] == 1


def test_stored_rates_hold_the_level():
    frame = load("diagnosis_levels")
    cell = ["data", "variant", "sizes", "n_bags", "bag_size", "labels", "shares"]
    rates = frame.groupby(cell).mean(numeric_only=True)
    rates["draws"] = protocol.N_DRAWS * frame.groupby(cell).size()
    true = {
        "naive": ["X_B", "Y_B", "X_B|Y", "Y_B|X"], "simple": ["X_B|Y"],
        "intermediate": ["Y_B|X"], "surveyed": ["X_B|Y"], "rounded": ["X_B|Y"],
        "sampled": ["X_B|Y"],
    }  # fmt: skip
    level, draws = [], []
    for key, row in rates.iterrows():
        if key[-1] == "counts":
            continue
        held = [s for s in true.get(key[1], []) if row[f"tested {s}"]]
        level += [row[f"reject {s}"] for s in held]
        draws += [row["draws"]] * len(held)
    level, draws = np.array(level), np.array(draws)
    assert len(level) > 40
    assert (draws >= 300).all()
    assert (level < 0.09).all()
    assert (level > 0.07).sum() <= 1  # the cell that the chapter names
    assert abs(np.average(level, weights=draws) - 0.04) < 0.02
    hard = rates.xs("hard", level="variant").query("bag_size == 100 and labels == 0")
    assert (hard["reject X_B|Y"] > 0.8).all()


@pytest.mark.parametrize("n_bags", [2, 6])
def test_methods_for_two_bags_are_listed_for_two_bags(n_bags):
    rng, bags = np.random.default_rng(0), np.repeat(np.arange(n_bags), 20)
    shares = np.linspace(0.2, 0.8, n_bags)
    text = str(diagnose(rng.normal(size=(len(bags), 2)), bags, shares))
    listed = re.findall(r"^  (\w+): ", text, re.MULTILINE)
    assert listed[0] == "CountBoosting" and len(set(listed)) == len(listed)
    assert ({"DSDD", "LSDD", "SMIC", "KDEDifference"} <= set(listed)) == (n_bags == 2)
    assert ("DSDD" in listed) == (n_bags == 2)


def test_the_report_on_the_page_lists_the_methods_of_the_package():
    def methods(report):
        _, _, listed = report.partition("assumptions of the methods:")
        return re.findall(r"^  (\w+): ", listed, re.MULTILINE)

    cells = json.loads((ROOT / "book" / "diagnosis.ipynb").read_text())["cells"]
    printed = ["".join(o.get("text", "")) for c in cells for o in c.get("outputs", [])]
    pages = [methods(text) for text in printed if "assumptions of the methods" in text]
    rng = np.random.default_rng(0)
    bags = np.repeat(np.arange(6), 20)
    found = diagnose(rng.normal(size=(120, 2)), bags, np.arange(2, 8) / 10)
    assert pages and all(page == methods(str(found)) for page in pages)
