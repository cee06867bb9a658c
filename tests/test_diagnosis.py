"""The diagnosis: each equation against a slow version, enumeration, scipy or a simulation; level, power, report."""

from itertools import combinations, product
from math import comb

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import pdist
from scipy.stats import chi2_contingency, f_oneway, norm, pearson3
from sklearn.linear_model import Ridge
from sklearn.metrics.pairwise import rbf_kernel

from llpbook import diagnosis, taxonomy
from llpbook.diagnosis import diagnose
from llpbook.proportions import averaging_matrix
from llpbook.reproduce import diagnosis as protocol
from llpbook.reproduce import load
from llpbook.variants import make_bags

NAMES = [name.lower() for name in taxonomy.VARIANTS]


def problem(seed=0, n=600, d=3, n_classes=2):
    """Classes that overlap, as the label collider needs."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.array([2.0, 1.5, *np.ones(d - 2)])
    scores = np.column_stack([k * X[:, 0] + k % 2 * X[:, 1] for k in range(n_classes)])
    y = (scores / n_classes + rng.gumbel(size=scores.shape)).argmax(axis=1)
    return X, y


def logistic(seed=0, n=400, d=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = (rng.random(n) < 1 / (1 + np.exp(-2 * X[:, 0]))).astype(int)
    return X, y, rng


# --- features ------------------------------------------------------------------------------------------------


@pytest.mark.equation("eq-diag-embedding")
def test_embedding_is_linear_features_and_a_gaussian_kernel():
    X = logistic(n=60)[0] * [1, 10, 100]
    F = diagnosis.embed(X, n_frequencies=20_000, random_state=0)
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
    F = diagnosis.embed(X, 30, 10, random_state=1)
    assert F.shape == (200, 50)
    for block in (F[:, :30], F[:, 30:]):
        assert np.square(block).sum() == pytest.approx(200)
        np.testing.assert_allclose(block.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_array_equal(F, diagnosis.embed(X, 30, 10, random_state=1))
    with pytest.raises(ValueError, match="X has no column"):
        diagnosis.embed(np.ones((5, 2)))


def test_codes_and_tables():
    np.testing.assert_array_equal(
        diagnosis.cell_codes(["b", "a", "b"], [1, 1, 0]), [2, 0, 1]
    )
    np.testing.assert_array_equal(
        diagnosis.crosstab(np.array([0, 0, 2]), np.array([1, 1, 0])),
        [[0, 2], [0, 0], [1, 0]],
    )


# --- permutations --------------------------------------------------------------------------------------------


@pytest.mark.equation("eq-diag-energy")
def test_energy_is_its_definition():
    X, y, rng = logistic(n=50)
    groups = rng.integers(0, 3, 50)
    cells = diagnosis.cell_codes(groups, y)
    slow = 0.0
    for g in range(3):
        for c in (0, 1):
            part = X[(groups == g) & (y == c)]
            slow += len(part) * np.sum(
                (part.mean(axis=0) - X[groups == g].mean(axis=0)) ** 2
            )
    assert diagnosis.between_energy(X, cells, groups) == pytest.approx(slow)


@pytest.mark.equation("eq-diag-permutation")
def test_pvalue_is_the_share_of_all_splits():
    X = np.random.default_rng(0).normal(size=(8, 2)) + np.repeat([0.0, 1.2], 4)[:, None]
    cells = np.repeat([0, 1], 4)
    energies = []
    for chosen in combinations(range(8), 4):
        split = np.isin(np.arange(8), chosen).astype(int)
        energies.append(diagnosis.between_energy(X, split, np.zeros(8, dtype=int)))
    observed = diagnosis.between_energy(X, cells, np.zeros(8, dtype=int))
    exact = np.mean(np.array(energies) >= observed - 1e-9)
    found = diagnosis.permutation_test(X, cells, None, 3000, 0)
    assert found.statistic == pytest.approx(observed)
    assert found.pvalue == pytest.approx(exact, abs=0.03)


def test_permutations_stay_within_groups():
    rng = np.random.default_rng(1)
    groups = np.repeat([0, 1], 100)
    X = rng.normal(size=(200, 2)) + 5.0 * groups[:, None]
    cells = diagnosis.cell_codes(groups, rng.integers(0, 2, 200))
    between = diagnosis.permutation_test(X, cells, None, 99, 0)
    within = diagnosis.permutation_test(X, cells, groups, 99, 0)
    assert between.pvalue == 0.01 and within.pvalue > 0.05


def test_permutation_test_holds_its_level_and_has_power():
    pvalues = []
    for seed in range(200):
        X, y, rng = logistic(seed, n=60)
        bags = rng.permutation(60) % 6
        pvalues.append(diagnosis.permutation_test(X**3, bags, None, 39, seed).pvalue)
    assert 2 <= np.sum(np.array(pvalues) <= 0.05) <= 20
    X, y, _ = logistic()
    assert diagnosis.permutation_test(X, y, None, 99, 0).pvalue == 0.01


def test_one_cell_a_group_says_nothing():
    X, y, _ = logistic()
    assert np.isnan(diagnosis.permutation_test(X, y, y).pvalue)


@pytest.mark.equation("eq-diag-g")
def test_g_test_is_scipys():
    counts = np.array([[10, 25, 9], [20, 30, 11], [31, 15, 12]])
    slow = chi2_contingency(counts, lambda_="log-likelihood", correction=False)
    found = diagnosis.table_test(counts)
    assert tuple(found) == pytest.approx((slow.statistic, slow.pvalue))
    padded = np.pad(counts, ((0, 1), (1, 0)))  # an empty bag, an empty class
    assert tuple(diagnosis.table_test(padded)) == pytest.approx(tuple(found))


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
            diagnosis.table_test(diagnosis.crosstab(bags, y), 199, seed).pvalue < 0.05
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


@pytest.mark.equation("eq-diag-bag-effects")
def test_bag_effects_are_ridge_regressions():
    rng = np.random.default_rng(0)
    S, e, bags = (
        rng.normal(size=(90, 3)),
        rng.normal(size=(90, 2)),
        rng.integers(0, 4, 90),
    )
    found = diagnosis.bag_effects(e, S, bags, 5, ridge=2.0)
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
        F, flip = diagnosis.embed(X, random_state=seed), rng.random(400) < 0.35
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
            found = diagnosis.label_test(X, F, y, b, seed)
            assert found.pvalue == pytest.approx(norm.sf(found.statistic))
            statistics[name].append(found.statistic)
    mean = {name: np.mean(values) for name, values in statistics.items()}
    assert abs(mean["random"]) < 1 and abs(mean["by features"]) < 1  # sd 0.35
    assert mean["by label"] > 3 and mean["by both"] > 0.6


def test_label_test_of_three_classes():
    X, y, rng = logistic(n=600)
    three = np.where(rng.random(600) < 0.4, 2, y)
    F = diagnosis.embed(X, random_state=0)
    assert diagnosis.label_test(X, F, three, rng.integers(0, 5, 600), 0).pvalue > 0.01
    bags = np.where(rng.random(600) < 0.5, three, rng.integers(0, 3, 600))
    assert diagnosis.label_test(X, F, three, bags, 0).pvalue < 1e-4


def test_label_test_needs_instances_classes_and_bags():
    X, y, rng = logistic()
    F, bags = diagnosis.embed(X, random_state=0), rng.integers(0, 4, 400)
    for rows, labels, codes in (
        (slice(40), y, bags), (slice(None), 0 * y, bags), (slice(None), y, 0 * bags),
    ):  # fmt: skip
        found = diagnosis.label_test(X[rows], F[rows], labels[rows], codes[rows], 0)
        assert np.isnan(found.pvalue)


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
    design = diagnosis.affine_design(moments.proportions, moments.sizes)
    grow = moments.sizes / (moments.sizes - 1)
    mixing = grow[:, None, None] * diagnosis.label_covariance(moments.proportions)
    return moments, design, mixing


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


@pytest.mark.equation("eq-diag-design", "eq-diag-lack-of-fit")
def test_design_and_lack_of_fit_are_weighted_least_squares():
    X, _, bags, P = uneven()
    moments, design, _ = parts(X, bags, P)
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


@pytest.mark.equation("eq-diag-label-covariance")
def test_label_covariance_is_that_of_one_hot_labels():
    P = np.array([[0.2, 0.5, 0.3], [1.0, 0.0, 0.0]])
    for p, found in zip(P, diagnosis.label_covariance(P), strict=True):
        slow = sum(
            p[c] * np.outer(np.eye(3)[c] - p, np.eye(3)[c] - p) for c in range(3)
        )
        np.testing.assert_allclose(found, slow, atol=1e-12)


@pytest.mark.equation("eq-diag-noise", "eq-diag-gram")
def test_noise_is_its_definition_and_has_little_bias():
    X, _, bags, P = uneven()
    moments, design, mixing = parts(X, bags, P)
    means = design.solve @ moments.means
    error = design.solve @ np.diag(moments.traces / moments.sizes) @ design.solve.T
    gram = means @ means.T - error
    slow = [
        trace - n / (n - 1) * np.sum((np.diag(p) - np.outer(p, p)) * gram)
        for trace, n, p in zip(moments.traces, moments.sizes, P, strict=True)
    ]
    found = diagnosis.within_class_noise(moments, design, mixing)
    np.testing.assert_allclose(found, slow, atol=1e-10)
    sums = []
    for seed in range(300):
        X, _, bags, P = bags_with_counts(seed, gap=3.0, n_bags=24)
        moments, design, mixing = parts(X, bags, P)
        true = 4 * (1 + 1.25 * P[:, 1])  # variances 1 and 2.25 in four features
        noise = diagnosis.within_class_noise(moments, design, mixing)
        sums.append(design.free @ np.column_stack([noise, true, moments.traces]))
    found, true, raw = np.mean(sums, axis=0)
    assert 0.99 * true < found < 1.06 * true  # the bias, to the careful side
    assert raw > 1.2 * true  # what the correction is for


@pytest.mark.equation("eq-diag-shape")
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


@pytest.mark.equation("eq-diag-fit-cumulants")
def test_cumulants_of_the_lack_of_fit_are_those_of_the_quadratic_form():
    X, _, bags, P = uneven()
    _, design, _ = parts(X, bags, P)
    tau = np.random.default_rng(1).uniform(1, 2, len(P))
    shape = shape_of(np.diag([3.0, 2.0, 1.0]))
    form = np.kron(
        (np.eye(len(P)) - design.basis @ design.basis.T) @ np.diag(tau), shape.matrix
    )  # all bag means in one vector
    slow = 2 * np.trace(form @ form), 8 * np.trace(form @ form @ form)
    np.testing.assert_allclose(diagnosis.fit_cumulants(design, tau, shape), slow)


@pytest.mark.equation("eq-diag-noise-cumulants")
def test_cumulants_of_the_noise_are_those_of_gaussian_variances():
    X, _, bags, P = uneven(n_bags=4)
    moments, design, _ = parts(X, bags, P)
    shape, tau = shape_of(np.diag([3.0, 2.0, 1.0])), np.arange(1.0, 5.0)
    # tr W_k is a mean of n_k - 1 weighted chi-square variables for each feature.
    second = third = 0.0
    for n, h, t in zip(moments.sizes, design.free, tau, strict=True):
        for weight in np.diag(shape.matrix):
            second += 2 * (n - 1) * (h * t * weight / (n - 1)) ** 2
            third += 8 * (n - 1) * (h * t * weight / (n - 1)) ** 3
    found = diagnosis.noise_cumulants(moments, design, tau, shape)
    np.testing.assert_allclose(found, [second, third])


@pytest.mark.equation("eq-diag-gram-cumulants")
def test_cumulants_of_the_gram_matrix_are_those_of_the_quadratic_form():
    X, _, bags, P = uneven()
    moments, design, mixing = parts(X, bags, P)
    tau = np.random.default_rng(1).uniform(1, 2, len(P))
    shape = shape_of(np.array([[3.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 1.0]]))
    A = np.kron(np.tensordot(design.free, mixing, 1), np.eye(3))
    C = design.solve @ np.diag(tau / moments.sizes) @ design.solve.T
    V, mean = np.kron(C, shape.matrix), (design.solve @ moments.means).ravel()
    second = 2 * np.trace(A @ V @ A @ V) + 4 * mean @ A @ V @ A @ mean
    third = 8 * np.trace(A @ V @ A @ V @ A @ V) + 24 * mean @ A @ V @ A @ V @ A @ mean
    for k, (n, h, t) in enumerate(zip(moments.sizes, design.free, tau, strict=True)):
        # In bag k the labels are given: the mean of its class means is at a fixed distance, plus noise.
        label = np.kron(diagnosis.label_covariance(P)[k], shape.matrix)
        second += 4 * h**2 * t * n / (n - 1) ** 2 * mean @ label @ mean
    found = diagnosis.gram_cumulants(moments, design, mixing, tau, shape)
    np.testing.assert_allclose(found, [second, third])


@pytest.mark.equation("eq-diag-cumulants")
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
        moments, design, mixing = parts(X, bags, P)
        noise = diagnosis.within_class_noise(moments, design, mixing)
        lack = diagnosis.lack_of_fit(moments.means, moments.sizes, design.basis)
        lacks.append(lack - design.free @ noise)
        if seed < 100:
            predicted.append(diagnosis.cumulants(moments, design, mixing, noise, True))
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
        assert found.pvalue == pytest.approx(slow.pvalue, abs=0.015)
        assert found.pvalue == pytest.approx(
            pearson3.sf(found.deviation, found.skewness)
        )


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
            diagnosis.affine_test(
                diagnosis.embed(X, 30, 10, random_state=seed), bags, P
            ).pvalue
        )
    assert 2 <= np.sum(np.array(pvalues) < 0.05) <= 20  # 10 expected, standard error 3
    assert 75 <= np.sum(np.array(pvalues) < 0.5) <= 125


def test_without_the_correction_the_test_is_too_careful():
    rates = {True: 0, False: 0}
    for seed in range(100):
        X, _, bags, P = bags_with_counts(seed, n_bags=40, size=10, gap=6.0)
        for exact in rates:
            rates[exact] += diagnosis.affine_test(X, bags, P, exact).pvalue < 0.5
    assert rates[False] < 5 and 30 <= rates[True] <= 70


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


# --- the diagnosis -------------------------------------------------------------------------------------------


def test_pvalues_are_of_the_statements_tested():
    X, y = problem()
    bags, P = make_bags(X, y, n_bags=6, random_state=0)
    found = diagnose(X, bags, P)
    assert set(found.pvalues.index) == {"X_B", "Y_B", "X_B|Y"}
    assert found.tests.columns.tolist() == ["test", "statistic", "pvalue"]
    six = diagnose(X, bags, P, y)
    assert tuple(six.pvalues.index) == taxonomy.STATEMENTS
    pd.testing.assert_series_equal(six.pvalues, diagnose(X, bags, P, y).pvalues)


def test_with_labels_the_variant_is_found():
    found = {name: [] for name in NAMES}
    for seed in range(2):
        X, y = problem(seed, n=2000)
        for name in NAMES:
            made = make_bags(X, y, name, n_bags=8, random_state=seed)
            result = diagnose(X, *made, y, n_permutations=99, random_state=seed)
            found[name].append(result)
            held = {n.lower(): s for n, s in taxonomy.VARIANTS.items()}[name]
            # Every dependence of the variant is found.
            assert set(taxonomy.STATEMENTS) - held <= {*result.rejected}, (name, seed)
            assert "hard" in result.variants
    # An independence is rejected in 5 % of 2 seeds x 10 statements: in 3 or more with probability 0.08.
    wrong = [n for n in NAMES for r in found[n] if r.simplest != [n]]
    assert len(wrong) <= 3, wrong


def test_without_labels():
    rejected = {name: np.zeros(3) for name in NAMES}
    for seed, name in product(range(20), ["naive", "simple", "intermediate", "hard"]):
        X, y = problem(seed, n=800)
        made = make_bags(X, y, name, n_bags=10, random_state=seed)
        pvalues = diagnose(X, *made, n_permutations=39, random_state=seed).pvalues
        rejected[name] += (pvalues[["Y_B", "X_B", "X_B|Y"]] <= 0.05).to_numpy()
    assert (rejected["naive"] <= 4).all()
    assert (rejected["simple"][:2] >= 15).all() and rejected["simple"][2] <= 4
    assert (rejected["intermediate"] == 20).all() and (rejected["hard"] >= 19).all()


def made_up(**pvalues):
    tests = pd.DataFrame(
        {"test": "t", "statistic": 0.0, "pvalue": pd.Series(pvalues, dtype=float)}
    )
    return diagnosis.Diagnosis(tests, 0.05, 5, 100, 0, True)


def test_rejections_are_read_by_the_taxonomy():
    table = taxonomy.table().set_index("name")
    for p in product((0.01, 0.5), repeat=6):
        pvalues = dict(zip(taxonomy.STATEMENTS, p, strict=True))
        found = made_up(**pvalues)
        left = [
            name.lower()
            for name in taxonomy.VARIANTS
            if not any(table.loc[name, s] and v < 0.05 for s, v in pvalues.items())
        ]
        assert set(found.variants) == set(left)
        assert set(found.simplest) <= set(left)
    assert made_up(X_B=0.5, Y_B=np.nan).simplest == ["naive"]
    assert made_up(X_B=0.01, **{"X_B|Y": 0.5}).variants[-1] == "hard"
    assert "naive" not in made_up(X_B=0.01).variants


def test_report_says_what_was_tested_and_what_cannot_be():
    X, y = problem(n=1000)
    made = make_bags(X, y, "intermediate", n_bags=8, random_state=0)
    text = str(diagnose(X, *made))
    for words in (
        "1000 instances in 8 bags, no labels; level 0.05",
        "cannot be told from these data: X ⊥ Y, X ⊥ Y | B, Y ⊥ B | X",
        "variants not rejected: cross-bag, intermediate, hard",
        "split-bag",
        "MeanMap: class means are the same in all bags (X ⊥ B | Y rejected)",
        "EMLR: one P(y | x) holds in all bags (Y ⊥ B | X not tested)",
    ):
        assert words in text, words
    assert "cannot be told" not in str(diagnose(X, *made, y))
    naive = make_bags(X, y, "naive", n_bags=8, random_state=1)
    assert "full-bag" in str(diagnose(X, *naive))


def test_proportions_that_are_no_counts_are_said_and_tested_with_care():
    X, y = problem()
    bags, P = make_bags(X, y, n_bags=6, random_state=0)
    rounded = diagnose(X, bags, P.round(2))
    assert not rounded.exact and "no whole counts" in str(rounded)
    assert diagnose(X, bags, P).exact


def test_some_labels_are_enough():
    X, y = problem(n=1200)
    bags, P = make_bags(X, y, "hard", n_bags=5, random_state=0)
    some = np.where(np.arange(1200) % 2, y, -1)
    found = diagnose(X, bags, P, some)
    assert found.n_labelled == 600 and len(found.pvalues) == 6
    pd.testing.assert_series_equal(
        found.pvalues, diagnose(X[1::2], bags[1::2], P, y[1::2]).pvalues
    )


def test_bags_may_be_named_and_classes_more_than_two():
    X, y = problem(n=900, n_classes=3)
    made = make_bags(X, y, n_bags=6, random_state=0)
    names = np.array(list("abcdef"))
    named = made.proportions.set_index(names)
    plain, by_name = diagnose(X, *made), diagnose(X, names[made.bags], named)
    pd.testing.assert_series_equal(plain.pvalues, by_name.pvalues)
    assert plain.pvalues["X_B|Y"] > 0.01
    assert diagnose(X, *made, y).simplest == ["simple"]


def test_two_bags_cannot_be_tested_for_simple():
    X, y = problem()
    found = diagnose(X, *make_bags(X, y, n_bags=2, random_state=0))
    assert np.isnan(found.pvalues["X_B|Y"])
    assert found.verdict("X_B|Y") == "not tested" and "no test" in str(found)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"alpha": 1.0}, r"alpha must lie in \(0, 1\), got 1.0"),
        ({"n_permutations": 0}, "n_permutations must be at least 1"),
        ({"bags": [0, 1]}, "bags must name one bag for each of the 600"),
        ({"proportions": [0.5, 2.0]}, "proportions must lie in"),
        ({"labels": [-1] * 600}, "labels holds no known label"),
        ({"labels": [7] * 600}, "labels holds 7"),
        ({"X": np.full((600, 3), np.inf)}, "X must be a matrix of finite numbers"),
    ],
)
def test_malformed_input_of_the_diagnosis(change, message):
    X, y = problem()
    bags, P = make_bags(X, y, n_bags=6, random_state=0)
    with pytest.raises(ValueError, match=message):
        diagnose(**{"X": X, "bags": bags, "proportions": P, **change})


def test_plot():
    plt = pytest.importorskip("matplotlib.pyplot")
    X, y = problem()
    made = make_bags(X, y, "hard", n_bags=6, random_state=0)
    ax = diagnose(X, *made).plot()
    texts = [t.get_text() for t in ax.texts]
    assert texts.count("needs labels") == 3 and len(ax.lines) == 3 + 1
    assert next(t.get_text() for t in ax.get_yticklabels()) == "X ⊥ Y"
    _, own = plt.subplots()
    assert diagnose(X, *made, y).plot(own) is own and len(own.lines) == 6 + 1
    plt.close("all")


# --- the table of level and power ----------------------------------------------------------------------------


def test_cells_of_the_table_make_what_they_say():
    for cell in protocol.TABLES[0].cells:
        if cell["data"] == "adult" or cell["variant"] == "label collider":
            continue
        X, y, made = protocol.draw_bags(cell, np.random.RandomState(0))
        assert made.variant == cell["variant"] and len(X) == len(y)
        assert made.sizes.mean() == cell["bag_size"]
        assert len(made.sizes) == cell["n_bags"]
        if cell["variant"] != "intermediate":
            assert (np.ptp(made.sizes) <= 1) == (cell["sizes"] == "equal")
        if cell["variant"] in protocol.BY_CHANCE:
            assert made.report[1] == "proportions: those of chance"
        else:
            assert made.proportions[1].std() > 0.05


def test_a_row_counts_rejections(monkeypatch):
    monkeypatch.setattr(protocol, "N_DRAWS", 2)
    cell = {"data": "blobs", "variant": "hard", "sizes": "equal", "n_bags": 10}
    row = protocol.run({**cell, "bag_size": 200}, 0)
    assert row == {f"reject {s}": 1.0 for s in protocol.STATEMENTS} | {
        "tested X_B|Y": 1.0
    }
    assert protocol.run({**cell, "bag_size": 200}, 0) == row
    found = protocol.run({**cell, "variant": "simple", "n_bags": 2, "bag_size": 20}, 0)
    assert found["tested X_B|Y"] == 0 and found["reject X_B|Y"] == 0


def test_stored_rates_hold_the_level():
    frame = load("diagnosis_levels")
    equal = frame.groupby(["data", "variant", "sizes", "n_bags", "bag_size"])
    rates, draws = equal.mean(numeric_only=True), protocol.N_DRAWS * equal.size()
    assert draws.min() >= 200
    true = {
        "naive": protocol.STATEMENTS, "simple": ["X_B|Y"], "feature collider": ["Y_B"],
        "label collider": ["X_B"],
    }  # fmt: skip
    for variant, statements in true.items():
        level = rates.xs(variant, level="variant")[[f"reject {s}" for s in statements]]
        # 5 % of 200 draws has a standard error of 1.5 %; there are some 80 such rates.
        assert level.to_numpy().max() <= 0.11 and level.to_numpy().mean() <= 0.065
    large = rates.query("bag_size >= 100 and variant in ('intermediate', 'hard')")
    assert (large["reject X_B|Y"] > 0.9).all()
