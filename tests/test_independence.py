"""Tests of independence against enumeration, scipy, slow versions; level and power of Y ⊥ B | X."""

from itertools import combinations
from math import comb

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from scipy.stats import chi2_contingency, norm
from sklearn.linear_model import Ridge
from sklearn.metrics.pairwise import rbf_kernel

from llpbook import diagnosis as ind


def problem(seed=0, n=400, d=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = (rng.random(n) < 1 / (1 + np.exp(-2 * X[:, 0]))).astype(int)
    return X, y, rng


# --- features ------------------------------------------------------------------------------------------------


@pytest.mark.equation("eq-var-embedding")
def test_embedding_is_linear_features_and_a_gaussian_kernel():
    X = problem(n=60)[0] * [1, 10, 100]
    F = ind.embed(X, n_frequencies=20_000, random_state=0)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    np.testing.assert_allclose(F[:, :3], Z / np.sqrt(3), atol=1e-12)
    K = rbf_kernel(Z, gamma=1 / (2 * np.median(pdist(Z)) ** 2))
    H = np.eye(60) - 1 / 60
    centred = H @ K @ H
    gram = F[:, 3:] @ F[:, 3:].T
    np.testing.assert_allclose(gram, centred * 60 / np.trace(centred), atol=0.05)


def test_embedding_has_blocks_of_one_variance_and_few_columns():
    rng = np.random.default_rng(0)
    X = np.hstack([rng.normal(size=(200, 50)), np.ones((200, 1))])
    F = ind.embed(X, 30, 10, random_state=1)
    assert F.shape == (200, 50)
    for block in (F[:, :30], F[:, 30:]):
        assert np.square(block).sum() == pytest.approx(200)
        np.testing.assert_allclose(block.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_array_equal(F, ind.embed(X, 30, 10, random_state=1))
    with pytest.raises(ValueError, match="X has no column"):
        ind.embed(np.ones((5, 2)))


def test_codes_and_tables():
    np.testing.assert_array_equal(ind.cell_codes(["b", "a", "b"], [1, 1, 0]), [2, 0, 1])
    np.testing.assert_array_equal(
        ind.crosstab(np.array([0, 0, 2]), np.array([1, 1, 0])), [[0, 2], [0, 0], [1, 0]]
    )


# --- permutations --------------------------------------------------------------------------------------------


@pytest.mark.equation("eq-var-energy")
def test_energy_is_its_definition():
    X, y, rng = problem(n=50)
    groups = rng.integers(0, 3, 50)
    cells = ind.cell_codes(groups, y)
    slow = 0.0
    for g in range(3):
        for c in (0, 1):
            part = X[(groups == g) & (y == c)]
            slow += len(part) * np.sum(
                (part.mean(axis=0) - X[groups == g].mean(axis=0)) ** 2
            )
    assert ind.between_energy(X, cells, groups) == pytest.approx(slow)


@pytest.mark.equation("eq-var-permutation")
def test_pvalue_is_the_share_of_all_splits():
    X = np.random.default_rng(0).normal(size=(8, 2)) + np.repeat([0.0, 1.2], 4)[:, None]
    cells = np.repeat([0, 1], 4)
    energies = []
    for chosen in combinations(range(8), 4):
        split = np.isin(np.arange(8), chosen).astype(int)
        energies.append(ind.between_energy(X, split, np.zeros(8, dtype=int)))
    observed = ind.between_energy(X, cells, np.zeros(8, dtype=int))
    exact = np.mean(np.array(energies) >= observed - 1e-9)
    found = ind.permutation_test(X, cells, None, 3000, 0)
    assert found.statistic == pytest.approx(observed)
    assert found.pvalue == pytest.approx(exact, abs=0.03)


def test_permutations_stay_within_groups():
    rng = np.random.default_rng(1)
    groups = np.repeat([0, 1], 100)
    X = rng.normal(size=(200, 2)) + 5.0 * groups[:, None]
    cells = ind.cell_codes(groups, rng.integers(0, 2, 200))
    between = ind.permutation_test(X, cells, None, 99, 0)
    within = ind.permutation_test(X, cells, groups, 99, 0)
    assert between.pvalue == 0.01 and within.pvalue > 0.05


def test_permutation_test_holds_its_level_and_has_power():
    pvalues = []
    for seed in range(200):
        X, y, rng = problem(seed, n=60)
        bags = rng.permutation(60) % 6
        pvalues.append(ind.permutation_test(X**3, bags, None, 39, seed).pvalue)
    assert 2 <= np.sum(np.array(pvalues) <= 0.05) <= 20
    X, y, _ = problem()
    assert ind.permutation_test(X, y, None, 99, 0).pvalue == 0.01


def test_one_cell_a_group_says_nothing():
    X, y, _ = problem()
    assert np.isnan(ind.permutation_test(X, y, y).pvalue)


@pytest.mark.equation("eq-var-g")
def test_g_test_is_scipys():
    counts = np.array([[10, 25, 9], [20, 30, 11], [31, 15, 12]])
    slow = chi2_contingency(counts, lambda_="log-likelihood", correction=False)
    found = ind.table_test(counts)
    assert tuple(found) == pytest.approx((slow.statistic, slow.pvalue))
    padded = np.pad(counts, ((0, 1), (1, 0)))  # an empty bag, an empty class
    assert tuple(ind.table_test(padded)) == pytest.approx(tuple(found))


def test_small_counts_are_compared_with_all_tables_of_the_margins():
    counts = np.array([[3, 1], [0, 4], [2, 2]])

    def g(t):
        e = np.outer(t.sum(axis=1), t.sum(axis=0)) / t.sum()
        return 2 * sum(
            o * np.log(o / v) for o, v in zip(t.flat, e.flat, strict=True) if o
        )

    total = weight = 0.0
    for a in range(5):
        for b in range(5):
            c = 5 - a - b
            if 0 <= c <= 4:
                chance = comb(4, a) * comb(4, b) * comb(4, c)
                total += chance
                other = np.array([[a, 4 - a], [b, 4 - b], [c, 4 - c]])
                weight += chance * (g(other) >= g(counts) - 1e-9)
    found = ind.table_test(counts, n_draws=20_000, random_state=0)
    assert found.pvalue == pytest.approx(weight / total, abs=0.015)


def test_a_table_of_one_row_says_nothing():
    assert np.isnan(ind.table_test([[3, 4]]).pvalue)
    assert np.isnan(ind.table_test([[3, 0], [4, 0]]).pvalue)


def test_many_small_bags_hold_the_level():
    rejected = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        bags, y = rng.permutation(300) // 3, rng.integers(0, 2, 300)
        rejected += ind.table_test(ind.crosstab(bags, y), 199, seed).pvalue < 0.05
    assert 2 <= rejected <= 20


# --- the label and the bag, given the features ---------------------------------------------------------------


def test_out_of_fold_never_predicts_what_it_trained_on():
    seen = []

    def fit(train, test):
        assert not set(train) & set(test) and len(train) + len(test) == 23
        seen.extend(test)
        return np.full((len(test), 2), len(train))

    rng = np.random.RandomState(0)
    found = ind.out_of_fold(fit, np.zeros((23, 2)), 5, rng)
    assert sorted(seen) == list(range(23)) and set(found[:, 0]) == {18, 19}


def test_class_probabilities_are_near_the_truth():
    X, y, _ = problem(n=3000)
    rng = np.random.RandomState(0)
    F = ind.embed(X, random_state=0)
    found = ind.class_probabilities(X, F, np.eye(2)[y], rng)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    true = 1 / (1 + np.exp(-2 * X[:, 0]))
    assert np.mean(np.abs(found[:, 1] - true)) < 0.06
    three = np.digitize(X[:, 0] + 0.1 * X[:, 1], [-0.5, 0.5])
    found = ind.class_probabilities(X, F, np.eye(3)[three], rng)
    assert np.mean(found.argmax(axis=1) == three) > 0.9


def test_conditional_mean_finds_steps_and_slopes():
    X, _, _ = problem(n=2000)
    target = np.column_stack([X[:, 0], np.sign(X[:, 1])])
    found = ind.conditional_mean(
        X, ind.embed(X, random_state=0), target, np.random.RandomState(0)
    )
    assert np.mean((found - target) ** 2, axis=0).max() < 0.12


@pytest.mark.equation("eq-var-bag-effects")
def test_bag_effects_are_ridge_regressions():
    rng = np.random.default_rng(0)
    S, e, bags = (
        rng.normal(size=(90, 3)),
        rng.normal(size=(90, 2)),
        rng.integers(0, 4, 90),
    )
    found = ind.bag_effects(e, S, bags, 5, ridge=2.0)
    slow = np.zeros((5, 3, 2))
    for b in range(4):
        model = Ridge(alpha=2.0, fit_intercept=False)
        slow[b] = model.fit(S[bags == b], e[bags == b]).coef_.T
    slow -= np.tensordot(np.bincount(bags, minlength=5) / 90, slow, 1)
    np.testing.assert_allclose(found, slow, atol=1e-10)


@pytest.mark.equation("eq-var-label")
def test_label_given_features_and_bag():
    statistics = {"random": [], "by features": [], "by label": [], "by both": []}
    for seed in range(8):
        X, y, rng = problem(seed)
        F, flip = ind.embed(X, random_state=seed), rng.random(400) < 0.35
        bags = {
            "random": rng.integers(0, 6, 400),
            "by features": np.digitize(X[:, 0], [-1, -0.5, 0, 0.5, 1]),
            "by label": np.where(
                flip, rng.integers(0, 6, 400), 3 * y + rng.integers(0, 3, 400)
            ),
            # In a bag the label leans on the second feature, and the other way in the next one: no shift on average.
            "by both": ((X[:, 1] > 0) ^ (y == 1) ^ flip).astype(int),
        }
        for name, b in bags.items():
            found = ind.label_test(X, F, y, b, seed)
            assert found.pvalue == pytest.approx(norm.sf(found.statistic))
            statistics[name].append(found.statistic)
    mean = {name: np.mean(values) for name, values in statistics.items()}
    assert abs(mean["random"]) < 1 and abs(mean["by features"]) < 1  # sd 0.35
    assert mean["by label"] > 3 and mean["by both"] > 0.6


def test_label_test_of_three_classes():
    X, y, rng = problem(n=600)
    three = np.where(rng.random(600) < 0.4, 2, y)
    F = ind.embed(X, random_state=0)
    assert ind.label_test(X, F, three, rng.integers(0, 5, 600), 0).pvalue > 0.01
    bags = np.where(rng.random(600) < 0.5, three, rng.integers(0, 3, 600))
    assert ind.label_test(X, F, three, bags, 0).pvalue < 1e-4


def test_label_test_needs_instances_classes_and_bags():
    X, y, rng = problem()
    F, bags = ind.embed(X, random_state=0), rng.integers(0, 4, 400)
    for rows, labels, codes in (
        (slice(40), y, bags), (slice(None), 0 * y, bags), (slice(None), y, 0 * bags),
    ):  # fmt: skip
        found = ind.label_test(X[rows], F[rows], labels[rows], codes[rows], 0)
        assert np.isnan(found.pvalue)
