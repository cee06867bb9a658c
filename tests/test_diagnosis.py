"""The diagnosis: equations against slow versions, enumeration and scipy; level, power, the report."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import overlapping_classes as problem
from scipy.optimize import brentq
from scipy.spatial.distance import pdist
from scipy.stats import chi2, chi2_contingency, f, f_oneway, gamma, ncx2, norm
from sklearn.linear_model import Ridge
from sklearn.metrics.pairwise import rbf_kernel

from llpbook import diagnosis, taxonomy
from llpbook.diagnosis import _affine, _permutations, _views, diagnose
from llpbook.diagnosis import _label_given_features as by_label
from llpbook.proportions import averaging_matrix, label_proportions
from llpbook.variants import make_bags


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


# --- features and permutations ---------------------------------------------------------------------------------


def test_normal_scores_are_those_of_ranks():
    rng = np.random.default_rng(0)
    X = rng.standard_t(1, size=(200, 3))
    Z = _views.normal_scores(X)
    assert_array_equal(np.argsort(Z, axis=0), np.argsort(X, axis=0))
    assert_allclose(Z, _views.normal_scores(np.arcsinh(X)), atol=1e-12)
    assert_allclose(Z.std(axis=0), 1)
    assert np.abs(Z).max() < 3.1  # no tail is heavy
    two = np.column_stack([rng.random(200) < 0.1, np.ones(200)]).astype(float)
    found = _views.normal_scores(two)
    standard = (two[:, 0] - two[:, 0].mean()) / two[:, 0].std()
    assert_allclose(found, np.column_stack([standard, 0 * standard]))


def test_views_are_whitened_components_a_kernel_and_columns(monkeypatch):
    monkeypatch.setattr(_views, "FREQUENCIES", 20_000)
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(60, 2)), np.ones(60)])
    seen = diagnosis.views(X, random_state=0)
    assert_array_equal(seen.varied, [True, True, False])
    Z = _views.normal_scores(X)[:, :2]
    white = seen.features[:, seen.weights[0] > 0]
    assert_allclose(white.T @ white / 60, np.eye(2), atol=1e-9)
    assert_allclose(white @ white.T, Z @ np.linalg.inv(Z.T @ Z / 60) @ Z.T)
    gram = (seen.features * seen.weights[1]) @ seen.features.T
    K = rbf_kernel(Z, gamma=1 / (2 * np.median(pdist(Z)) ** 2))
    H = np.eye(60) - 1 / 60
    kernel = H @ K @ H
    assert_allclose(gram, kernel * 60 / np.trace(kernel), atol=0.06)
    for j in (0, 1):
        assert_array_equal(seen.features @ seen.weights[2 + j], Z[:, j])
    assert _views.whiten(rng.normal(size=(100, 40))).shape[1] == 10
    with pytest.raises(ValueError, match="X has no column"):
        diagnosis.views(np.ones((5, 2)))


def slow_energy(X, cells, groups):
    total = 0.0
    for g in np.unique(groups):
        for c in np.unique(cells[groups == g]):
            part = X[cells == c]
            gap = part.mean(axis=0) - X[groups == g].mean(axis=0)
            total += len(part) * gap**2
    return total


def test_permuted_energies_are_of_permutations_within_groups():
    X, y, rng = logistic(n=40)
    groups = rng.integers(0, 2, 40)
    cells = _permutations.cell_codes(groups, y)
    draw = np.random.RandomState(0)
    found = _permutations.permuted_energies(X, cells, groups, 400, draw)
    assert_allclose(found[0], slow_energy(X, cells, groups), rtol=1e-4)
    slow = []
    for _ in range(400):
        order = np.arange(40)
        for g in (0, 1):
            order[groups == g] = rng.permutation(order[groups == g])
        slow.append(slow_energy(X[order], cells, groups))
    assert_allclose(found[1:].mean(axis=0), np.mean(slow, axis=0), rtol=0.2)
    assert_allclose(found[1:].std(axis=0), np.std(slow, axis=0), rtol=0.25)


def test_pvalue_is_the_share_of_all_splits():
    X = np.random.default_rng(0).normal(size=(8, 1)) + np.repeat([0.0, 1.2], 4)[:, None]
    cells, one = np.repeat([0, 1], 4), np.zeros(8, dtype=int)
    energies = []
    for chosen in combinations(range(8), 4):
        split = np.isin(np.arange(8), chosen).astype(int)
        energies.append(slow_energy(X, split, one)[0])
    observed = slow_energy(X, cells, one)[0]
    exact = np.mean(np.array(energies) >= observed - 1e-9)
    found = diagnosis.permutation_test(plain(X), cells, None, 3000, random_state=0)
    assert found.statistic == pytest.approx(observed / np.mean(energies), rel=0.05)
    assert found.pvalue == pytest.approx(exact, abs=0.03)


def test_the_permutation_test_holds_its_level():
    found = []
    for seed in range(100):
        X, _, rng = logistic(seed, n=60)
        seen = diagnosis.views(X**3, random_state=seed)
        bags = rng.permutation(60) % 6
        found.append(
            diagnosis.permutation_test(seen, bags, None, 39, random_state=seed)
        )
    assert 1 <= sum(test.pvalue <= 0.05 for test in found) <= 12
    assert 0.02 <= np.mean([test.by_column <= 0.05 for test in found]) <= 0.08


def test_tails_are_those_of_pearsons_type_three():
    draws = np.random.default_rng(0).gamma(3, size=20_000)
    parts = np.column_stack([draws, np.full(20_000, 5.0)])
    tails = _permutations.permutation_tails(parts)
    assert_allclose(tails[:, 0], gamma.sf(draws, 3), atol=0.01)
    assert (tails[:, 1] == 1).all()


def test_one_cell_a_group_says_nothing():
    X, y, _ = logistic()
    found = diagnosis.permutation_test(plain(X), y, y)
    assert np.isnan(found.pvalue) and found.note


def test_views_are_combined_by_bonferroni():
    p = np.array([[0.3, 0.2, 0.04, 0.5], [0.3, 0.01, np.nan, 0.5], [0.9] * 4])
    assert_allclose(diagnosis.combine_views(p), [0.24, 0.03, 1])
    assert diagnosis.combine_views(np.array([0.2, 0.1, np.nan])) == pytest.approx(0.2)


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
    hits = []
    for seed in range(60):
        X, _, bags, P = bags_with_counts(seed, n_bags=20, size=30, gap=1.0)
        seen = diagnosis.views(X, random_state=0)
        shift = diagnosis.affine_tests(seen, bags, P).detectable
        X += shift * np.random.default_rng(seed).normal(size=(20, 4))[bags] * X.std(0)
        seen = diagnosis.views(X, random_state=0)
        hits.append(diagnosis.affine_tests(seen, bags, P).pvalue <= 0.05)
    assert 0.65 < np.mean(hits) < 0.95


def test_two_tests_of_a_statement_double_the_pvalues_of_their_columns():
    one = diagnosis.TestResult(1.0, 0.2, 0.5, np.array([0.08, 0.02, np.nan]))
    other = diagnosis.TestResult(2.0, 0.1, 0.3, np.array([0.03, 0.7, np.nan]))
    name, found = diagnosis.join_tests({"a": one, "b": other})
    assert name == "a + b" and found.pvalue == 0.2 and found.detectable == 0.3
    assert_allclose(found.by_column, [0.06, 0.04, np.nan])
    single = diagnosis.TestResult(2.0, 0.1, 0.3)
    alone = diagnosis.join_tests({"a": one, "b": single})[1].by_column
    assert_allclose(alone, one.by_column)


def test_a_column_of_one_value_but_for_a_few_is_not_tested_alone():
    X, _, bags, P = bags_with_counts(n_bags=20, size=10)
    others = np.random.default_rng(0).permutation(200)
    for n_others, tested in ((5, False), (19, False), (20, True)):
        X[:, 1] = 0.0
        X[others[:n_others], 1] = 1.0
        seen = diagnosis.views(X, random_state=0)
        found = diagnosis.affine_tests(seen, bags, P).by_column
        assert np.isfinite(found[1]) == tested and np.isfinite(found[0])


def test_bags_of_one_instance_tell_nothing_of_bag_means():
    X, _, bags, P = bags_with_counts(0, n_bags=20, size=30)
    seen = diagnosis.views(X, random_state=0)
    more = seen._replace(features=np.vstack([seen.features, seen.features[:9] + 1]))
    alone = np.append(bags, 20 + np.arange(9)), np.vstack([P, P[:9]])
    one, two = (
        diagnosis.affine_tests(seen, bags, P),
        diagnosis.affine_tests(more, *alone),
    )
    assert_allclose(two[:3], one[:3])


def test_two_bags():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(80, 3)), rng.normal(size=(60, 3))
    assert diagnosis.two_bag_test(X, Y).pvalue > 0.05
    moved = diagnosis.two_bag_test(X, Y + np.array([0, 1, 0]))
    assert moved.pvalue == 0.001 and moved.by_column.argmin() == 1
    again = diagnosis.two_bag_test(X, Y + np.array([0, 1, 0]))
    assert_array_equal(moved.by_column, again.by_column)
    wide = diagnosis.two_bag_test(X, 2.5 * Y)  # the means agree
    assert wide.pvalue < 0.01
    padded = diagnosis.two_bag_test(np.c_[X, np.ones(80)], np.c_[Y, np.ones(60)])
    assert np.isnan(padded.by_column[3]) and 0 < padded.detectable < 0.5
    with pytest.raises(ValueError, match="same columns, got 3 and 2"):
        diagnosis.two_bag_test(X, Y[:, :2])


# --- tables of counts ----------------------------------------------------------------------------------------


def test_table_test_is_scipys():
    counts = np.array([[10, 25, 9], [20, 30, 11], [31, 15, 12]])
    slow = chi2_contingency(counts, correction=False)
    found = diagnosis.table_test(counts)
    assert found[:2] == pytest.approx((slow.statistic, slow.pvalue))
    padded = np.pad(counts, ((0, 1), (1, 0)))  # an empty bag, an empty class
    assert diagnosis.table_test(padded)[:2] == pytest.approx(found[:2])


def test_a_table_of_small_counts_is_drawn_by_the_seed():
    counts = np.array([[3, 1], [1, 3], [2, 2], [4, 1]])
    values = [
        diagnosis.table_test(counts, 99, random_state=k).pvalue for k in (0, 0, 1, 2)
    ]
    assert values[0] == values[1] and len({*values}) > 1


def test_small_counts_are_compared_with_all_tables_of_the_margins():
    def statistic(positives):
        return chi2_contingency([4 - positives, positives], correction=False)[0]

    cells = np.arange(12) // 4
    every = combinations(range(12), 7)
    drawn = [statistic(np.bincount(cells[list(c)], minlength=3)) for c in every]
    exact = np.mean(np.array(drawn) >= statistic(np.array([1, 4, 2])) - 1e-9)
    counts = [[3, 1], [0, 4], [2, 2]]
    found = diagnosis.table_test(counts, n_draws=20_000, random_state=0)
    assert found.pvalue == pytest.approx(exact, abs=0.015)


def test_a_table_of_one_row_says_nothing_and_five_expected_are_many():
    for one in ([[3, 4]], [[3, 0], [4, 0]]):
        found = diagnosis.table_test(one)
        assert np.isnan(found.pvalue) and found.note == "one bag, or one class"
    many, few = (
        np.array([[7, 3], [3, 7]]),
        np.array([[6, 3], [3, 6]]),
    )  # 5 and 4.5 expected
    assert diagnosis.table_test(many).pvalue == pytest.approx(chi2.sf(16 / 5, 1))
    for n_draws, options in ((1999, {}), (99, {"n_draws": 99})):
        p = diagnosis.table_test(few, random_state=0, **options).pvalue * (n_draws + 1)
        assert p == pytest.approx(round(p)) and p != chi2.sf(2, 1) * (n_draws + 1)
    sure = diagnosis.table_test([[4, 0], [0, 4]], n_draws=99, random_state=0).pvalue
    same = diagnosis.table_test([[4, 4], [4, 4]], n_draws=99, random_state=0).pvalue
    assert sure < 0.1 and same == 1  # ties with the observed table count


# --- the label and the bag, given the features ---------------------------------------------------------------


def test_out_of_fold_never_predicts_what_it_trained_on():
    seen = []

    def fit(train, test):
        assert not set(train) & set(test) and len(train) + len(test) == 23
        seen.extend(test)
        return np.full((len(test), 2), len(train))

    rng = np.random.RandomState(0)
    found = by_label.out_of_fold(fit, np.zeros((23, 2)), 5, rng)
    assert sorted(seen) == list(range(23)) and set(found[:, 0]) == {18, 19}


def test_label_shifts_are_ridge_regressions():
    rng = np.random.default_rng(0)
    S, e = rng.normal(size=(90, 3)), rng.normal(size=(90, 2))
    bags = rng.integers(0, 4, 90)
    found = by_label.label_shifts(e, S, bags, 5, ridge=2.0)
    slow = np.zeros((5, 3, 2))
    for b in range(4):
        model = Ridge(alpha=2.0, fit_intercept=False)
        slow[b] = model.fit(S[bags == b], e[bags == b]).coef_.T
    slow -= np.tensordot(np.bincount(bags, minlength=5) / 90, slow, 1)
    assert_allclose(found, slow, atol=1e-10)


def test_label_given_features_and_bag():
    X, y, rng = logistic(n=1500)
    flip = rng.random(1500) < 0.3
    # In a bag the label leans on the second feature, and the other way in the next one: no shift on average.
    leaning = ((X[:, 1] > 0) ^ (y == 1) ^ flip).astype(int)
    told = np.digitize(X[:, 0] + rng.normal(size=1500), [-1, -0.5, 0, 0.5, 1])
    for bags, sure in (
        (leaning, True),
        (rng.integers(0, 6, 1500), False),
        (told, False),
    ):
        found = by_label.label_test(X, y, bags, random_state=0)
        assert found.pvalue == pytest.approx(norm.sf(found.statistic))
        assert found.statistic > 4 if sure else abs(found.statistic) < 2


def test_label_test_of_three_classes():
    X, y, rng = logistic(n=600)
    three = np.where(rng.random(600) < 0.4, 2, y)
    found = by_label.label_test(X, three, rng.integers(0, 5, 600), random_state=0)
    assert found.pvalue > 0.01
    bags = np.where(rng.random(600) < 0.5, three, rng.integers(0, 3, 600))
    assert by_label.label_test(X, three, bags, random_state=0).pvalue < 1e-4


def test_label_test_needs_instances_classes_and_bags():
    X, y, rng = logistic()
    bags = rng.integers(0, 4, 400)
    for rows, labels, codes in (
        (slice(49), y, bags), (slice(None), 0 * y, bags), (slice(None), y, 0 * bags),
    ):  # fmt: skip
        found = by_label.label_test(X[rows], labels[rows], codes[rows], random_state=0)
        assert (
            np.isnan(found.pvalue)
            and found.note == "fewer than 50 labels, 2 classes, 2 bags"
        )
    found = by_label.label_test(X[:50], y[:50], bags[:50], random_state=0)
    dof = (
        4 * 7
    )  # bags times 1, the probability, five features; on half of the instances
    reach = norm.isf(0.05) + norm.ppf(0.8)
    assert found.detectable == pytest.approx(np.sqrt(reach / dof**0.5 * dof / 25))


def test_many_columns_are_embedded_by_their_components_and_a_class_may_be_missing_in_training():
    X, *_ = logistic(n=200, d=40)
    X[:, 1] += X[:, 0]
    Z = by_label.embed(5 * X + 2, np.random.RandomState(0))[:, :30]
    values = np.linalg.eigvalsh(np.corrcoef(X.T))[-30:]
    assert_allclose(np.cov(Z.T, ddof=0), np.diag(values / values.sum()), atol=1e-9)
    onehot = np.eye(2)[(np.arange(60) == 7).astype(int)]
    features = by_label.embed(X[:60], np.random.RandomState(0))
    found = by_label.class_probabilities(
        X[:60], features, onehot, np.random.RandomState(0)
    )
    assert_allclose(found.sum(axis=1), 1)
    assert found[7, 1] == pytest.approx(0.001 / 1.001)  # not seen in training


def test_label_test_withdraws_where_the_features_tell_the_bag():
    X, y, _ = logistic(n=3000)
    bags = np.digitize(X[:, 0], [-0.6, 0, 0.6])
    found = by_label.label_test(X, y, bags, random_state=0)
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


@pytest.mark.equation("eq-diag-lack-of-fit")
def test_lack_of_fit_is_that_of_weighted_least_squares():
    X, _, bags, P = uneven()
    n, means = np.bincount(bags), averaging_matrix(bags) @ X
    root = np.sqrt(n)[:, None]
    fitted = P @ np.linalg.lstsq(root * P, root * means)[0]
    slow = sum(n * np.sum((means - fitted) ** 2, axis=1))
    found, free = diagnosis.lack_of_fit(means, n, P)
    assert found == pytest.approx(slow)
    hat = root * P @ np.linalg.pinv(root * P)
    assert_allclose(free, 1 - np.diag(hat), atol=1e-10)
    # Directions in which shares differ by rounding are left out.
    p, tiny = np.linspace(0.1, 0.8, 8), 1e-9 * (-1.0) ** np.arange(8)
    P = np.column_stack([1 - p, p / 2 + tiny, p / 2 - tiny])
    free = diagnosis.lack_of_fit(np.zeros((8, 1)), np.full(8, 12), P)[1]
    assert free.sum() == pytest.approx(6)


def test_bag_moments_leave_out_bags_of_one_instance():
    rng = np.random.default_rng(0)
    X, bags = rng.normal(size=(9, 2)), np.array([0, 0, 0, 1, 3, 3, 3, 3, 2])
    P = np.column_stack([np.linspace(0, 1, 5), np.linspace(1, 0, 5)])  # bag 4 is empty
    moments = diagnosis.bag_moments(X, bags, P)
    assert_array_equal(moments.sizes, [3, 4])
    assert_array_equal(moments.proportions, P[[0, 3]])
    for k, bag in enumerate([0, 3]):
        assert_allclose(moments.means[k], X[bags == bag].mean(axis=0))
        trace = np.trace(np.cov(X[bags == bag].T))
        assert_allclose(moments.traces[k], trace)


def test_dimension_of_round_and_flat_clouds():
    rng = np.random.default_rng(0)
    bags, P = np.repeat(np.arange(20), 30), np.ones((20, 1))
    round_, flat = rng.normal(size=(600, 7)), np.outer(rng.normal(size=600), [1, 2, 3])
    for cloud, dimension in ((round_, 7), (flat, 1)):
        found = diagnosis.bag_moments(cloud, bags, P).dimension
        assert found == pytest.approx(dimension, rel=0.03)
    # The expected square of a Gaussian covariance, given that of its distribution.
    cloud = rng.normal(size=(24, 7)) * np.arange(1, 8)
    found = diagnosis.bag_moments(cloud, np.repeat(np.arange(6), 4), P[:6])
    tau, dof = 1 / found.dimension, 18
    ratio = tau * (1 - 1 / dof) * (1 + 2 / dof) + 1 / dof
    assert ratio == pytest.approx(np.sum(found.shape**2)) and 1 / 7 < tau < 1
    for flat in (cloud[:, :1], 0 * cloud):
        assert (
            diagnosis.bag_moments(flat, np.repeat(np.arange(6), 4), P[:6]).dimension
            == 1
        )


@pytest.mark.equation("eq-diag-noise")
def test_the_expected_lack_of_fit_and_its_variance_are_their_definitions():
    X, _, bags, P = uneven(n_bags=30)
    moments = diagnosis.bag_moments(X, bags, P)
    n, traces = moments.sizes, moments.traces
    _, free = diagnosis.lack_of_fit(moments.means, n, P)
    H = np.linalg.pinv(np.sqrt(n)[:, None] * P) * np.sqrt(n)
    M, noise = H @ moments.means, free @ traces / free.sum()
    gram = M @ M.T - H @ np.diag(traces / n) @ H.T
    mixing = P[:, :, None] * np.eye(3) - P[:, :, None] * P[:, None, :]
    mixing *= (n / (n - 1))[:, None, None]
    slow = free @ (traces - np.sum(mixing * gram, axis=(1, 2)))
    found, fit_dof, noise_dof = diagnosis.expected_lack(moments, free)
    assert found == pytest.approx(slow)
    assert fit_dof == pytest.approx(27 * moments.dimension)
    # The class means are Gaussian with this covariance; the quadratic form of A is taken out.
    spread, A = H @ np.diag(noise / n) @ H.T, np.tensordot(free, mixing, 1)
    m, form, V = M.ravel(), A @ spread, np.kron(spread, moments.shape)
    A = np.kron(A, np.eye(3))
    variance = 2 / moments.dimension * np.trace(form @ form) + 4 * m @ A @ V @ A @ m
    for k, f_, C in zip(n, free, mixing, strict=True):  # the difference within bags
        variance += 4 * f_**2 * noise / (k - 1) * m @ np.kron(C, moments.shape) @ m
        variance += 2 / moments.dimension * (f_ * found / free.sum()) ** 2 / (k - 1)
    assert noise_dof == pytest.approx(2 * found**2 / variance)


def test_where_the_shares_do_not_tell_the_classes_nothing_is_taken_out():
    X, y, bags, _ = uneven(n_bags=30)
    p = averaging_matrix(bags) @ (y == 0)
    P = np.column_stack([p, (1 - p) / 3, 2 * (1 - p) / 3])  # three classes, rank two
    moments = diagnosis.bag_moments(X, bags, P)
    free = diagnosis.lack_of_fit(moments.means, moments.sizes, P)[1]
    expected, *_ = diagnosis.expected_lack(moments, free)
    assert expected == pytest.approx(free @ moments.traces)


def test_where_the_classes_are_uncertain_their_difference_stays_in_the_noise():
    X, _, bags, P = bags_with_counts(n_bags=12, spread=0.0)  # equal shares
    moments = diagnosis.bag_moments(X, bags, P)
    free = diagnosis.lack_of_fit(moments.means, moments.sizes, P)[1]
    expected = diagnosis.expected_lack(moments, free)[0]
    assert expected == pytest.approx(free @ moments.traces)
    assert diagnosis.affine_test(X, bags, P).pvalue > 0.01
    x = np.array([2.0, 3, 4, 1, 1, 3, 3, 5, 3, 0, 1, 2])[:, None]  # of the chapter
    P = np.array([[0.25, 0.75], [0.5, 0.5], [0.75, 0.25]])
    found = diagnosis.affine_test(x, np.repeat([0, 1, 2], 4), P)
    assert found.statistic == pytest.approx((8 / 3) / (7 / 3))
    assert found.pvalue == pytest.approx(f.sf(8 / 7, 1, 6))


def test_the_difference_is_taken_out_of_the_noise_from_two_errors_on(monkeypatch):
    sides = set()
    for gap in np.linspace(0.5, 6, 40):
        X, _, bags, P = bags_with_counts(n_bags=12, gap=gap)
        moments = diagnosis.bag_moments(X, bags, P)
        free = diagnosis.lack_of_fit(moments.means, moments.sizes, P)[1]
        found = diagnosis.expected_lack(moments, free)[0]
        with monkeypatch.context() as patch:
            patch.setattr(_affine, "ERRORS_LEFT", -np.inf)
            left, _, dof = diagnosis.expected_lack(moments, free)
        within = (free**2 / (moments.sizes - 1)).sum() / free.sum() ** 2
        variance = 2 * left**2 * (1 / dof - within / moments.dimension)
        errors = left / variance**0.5
        assert found == pytest.approx(left if errors >= 2 else free @ moments.traces)
        sides |= {errors >= 2} if 1.5 < errors < 2.5 else set()
    assert sides == {True, False}


@pytest.mark.equation("eq-diag-pvalue")
def test_one_class_is_the_analysis_of_variance():
    for seed in range(5):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(120, 1)) + 0.3 * rng.normal(size=6).repeat(20)[:, None]
        bags, p = np.repeat(np.arange(6), 20), np.linspace(0.2, 0.8, 6)
        found = diagnosis.affine_test(x, bags, np.ones((6, 1)))
        slow = f_oneway(*(x[bags == k, 0] for k in range(6)))
        assert found[:2] == pytest.approx((slow.statistic, slow.pvalue))
        assert found.relative_sd == pytest.approx((2 / 5 + 2 / 114) ** 0.5)
        P = np.column_stack([1 - p, p])
        found = diagnosis.affine_test(x, bags, P)
        for unit in (1e-9, 1e9):
            again = diagnosis.affine_test(unit * x, bags, P)
            assert again[:3] == pytest.approx(found[:3])


@pytest.mark.parametrize("unit", [1e-3, 1e3])
def test_without_variance_within_bags_means_are_affine_or_not(unit):
    bags, p = np.repeat(np.arange(6), 4), np.linspace(0.1, 0.7, 6)
    P = np.column_stack([1 - p, p])
    for power, expected in ((1, (0, 1)), (2, (np.inf, 0))):
        x = unit * (1 + 2 * p[bags][:, None]) ** power
        assert diagnosis.affine_test(x, bags, P)[:2] == expected


@pytest.mark.parametrize(
    "options",
    [
        {"n_bags": 8, "size": 10},
        {"n_bags": 60, "size": 2, "gap": 1.0},
        {"n_bags": 10, "size": 40, "gap": 1.0, "spread": 0.15},
    ],
)
@pytest.mark.parametrize("kind", ["normal", "skewed", "rare"])
def test_the_affine_test_holds_its_level(options, kind):
    rejected = 0
    for seed in range(150):
        X, _, bags, P = bags_with_counts(seed, **options)
        X = {"normal": X, "skewed": np.exp(X), "rare": (X > 1.7).astype(float)}[kind]
        if not X.any():
            continue
        seen = diagnosis.views(X, random_state=seed)
        rejected += diagnosis.affine_tests(seen, bags, P).pvalue <= 0.05
    assert rejected <= 15  # 7.5 expected at most, standard error 2.7


def test_where_the_affine_test_ends():
    X, _, bags, P = uneven(n_classes=2, n_bags=9, d=3)
    found = diagnosis.affine_test(X, bags, P)
    more = np.column_stack([P[:, 0], np.zeros(9), P[:, 1]])  # a class that no bag has
    assert diagnosis.affine_test(X, bags, more) == found and not found.note
    for n_bags, note in (
        (1, "fewer than two bags"),
        (2, "no more bags than classes"),
        (3, ""),
    ):
        rows = bags < n_bags
        one = diagnosis.affine_test(X[rows], bags[rows], P[:n_bags])
        assert one.note.startswith(note) and np.isnan(one.pvalue) == bool(note)
    for d, note in (
        (2, "shares that may carry error, and no direction free of it"),
        (3, ""),
    ):
        assert diagnosis.affine_test(X[:, :d], bags, P, exact=False).note == note
    for n_others in (9, 10):  # of few bags, ten instances are enough
        X[:, 1] = np.arange(len(X)) < n_others
        seen = diagnosis.views(X, random_state=0)
        columns = diagnosis.affine_tests(seen, bags, P).by_column
        assert np.isfinite(columns).tolist() == [True, n_others == 10, True]


def test_the_affine_test_finds_shifts_of_means_and_of_variances():
    X, _, bags, P = bags_with_counts(size=30, same=False)
    assert diagnosis.affine_tests(diagnosis.views(X), bags, P).pvalue < 1e-6
    rng, bags = np.random.default_rng(0), np.repeat(np.arange(20), 50)
    X = rng.normal(size=(1000, 2)) * np.where(bags % 2, 0.6, 1.2)[:, None]
    P = np.tile([[0.4, 0.6], [0.6, 0.4], [0.6, 0.4], [0.4, 0.6]], (5, 1))
    assert diagnosis.affine_tests(diagnosis.views(X), bags, P).pvalue < 1e-6


def test_errors_of_shares_move_means_only_along_the_class_differences():
    X, _, bags, P = uneven(d=5)
    n, means = np.bincount(bags), averaging_matrix(bags) @ X
    root = np.sqrt(n)[:, None]
    classes = np.linalg.lstsq(root * P, root * means)[0]
    plain_ = diagnosis.affine_test(X, bags, P, exact=False)
    for seed in range(3):
        errors = np.random.default_rng(seed).normal(size=P.shape)
        errors -= errors.mean(axis=1, keepdims=True)
        errors -= P @ np.linalg.lstsq(root * P, root * errors)[0]  # same class means
        moved = X + (errors @ classes)[bags]
        found = diagnosis.affine_test(moved, bags, P, exact=False)
        assert found[:2] == pytest.approx(plain_[:2])
        assert diagnosis.affine_test(moved, bags, P).statistic > 2 * plain_.statistic


def test_whether_shares_are_counts_is_judged_told_and_said():
    X, y = problem()
    bags, P = make_bags(X, y, "simple", n_bags=6, random_state=0)
    judged, told = diagnose(X, bags, P), diagnose(X, bags, P, exact=True)
    assert judged.exact and "if they are estimates, say exact=False" in str(judged)
    assert told.exact and "estimates" not in str(told)
    rounded = diagnose(X, bags, P.round(2))
    assert not rounded.exact and "no whole counts" in " ".join(str(rounded).split())
    assert rounded.verdict("Y_B") == "not tested"
    assert diagnose(X, bags, P.round(2), labels=y).verdict("Y_B") != "not tested"
    off = np.array([0.019, -0.019]) / np.bincount(bags).max()
    assert (
        diagnose(X, bags, P + off).exact and not diagnose(X, bags, P + 1.2 * off).exact
    )
    # Bags of 100 at most: two decimals tell the counts.
    small = make_bags(X, y, "simple", n_bags=6, sizes=[100] * 6, random_state=0)
    near = small.proportions.round(2) + np.array([0.001, -0.001])
    restored = diagnose(X, small.bags, near, exact=True)
    assert_allclose(restored.pvalues, diagnose(X, *small).pvalues)


# --- the diagnosis ---------------------------------------------------------------------------------------------------


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
    (X, y), wrong = problem(1, n=2000), []
    for name, held in taxonomy.VARIANTS.items():
        made = make_bags(X, y, name.lower(), n_bags=8, random_state=1)
        found = diagnose(X, *made, labels=y, n_permutations=99, random_state=1)
        # Every dependence of the variant is found, where it is tested.
        tested = {*found.pvalues.dropna().index}
        assert tested - held <= {*found.rejected}, name
        assert "hard" in found.variants
        wrong += [name] * (name.lower() not in found.variants)
    # A true variant is rejected in 5 % of draws; the bags of these are functions of clusters, or of estimates.
    assert len(wrong) <= 1, wrong


def made_up(detectable=0.05, **pvalues):
    columns = {"test": "t", "statistic": 0.0, "detectable": detectable, "note": ""}
    tests = pd.DataFrame(columns | {"pvalue": pd.Series(pvalues, dtype=float)})
    none = pd.DataFrame()
    return diagnosis.Diagnosis(tests, none, 0.05, 5, 100, 0, True, True)


@pytest.mark.slow
def test_rejections_are_read_by_the_taxonomy():
    table = taxonomy.table().set_index("name")
    rng = np.random.default_rng(0)
    for p in rng.choice((0.001, 0.02, 0.5), (60, 6), p=[0.1, 0.1, 0.8]):
        pvalues = dict(zip(taxonomy.STATEMENTS, p, strict=True))
        found = made_up(**pvalues)
        for name in taxonomy.VARIANTS:
            claimed = [v for s, v in pvalues.items() if table.loc[name, s]]
            rejected = any(v * len(claimed) <= 0.05 for v in claimed)
            assert (name.lower() in found.variants) != rejected
    assert made_up(X_B=0.01, **{"X_B|Y": 0.5}).variants[-1] == "hard"
    assert "naive" not in made_up(X_B=0.01).variants
    # Not tested is not counted, and not rejected.
    assert made_up(X_B=0.04, Y_B=np.nan).variant_pvalues["naive"] == 0.04
    assert made_up(X_B=0.5).variant_pvalues["simple"] == 1


def test_each_line_of_the_report_says_its_own_number():
    p = [4e-7, 0.05, 0.3, np.nan, 0.0512, 1e-6]
    tests = made_up(**dict(zip(taxonomy.STATEMENTS, p, strict=True))).tests
    tests = tests.assign(detectable=np.arange(11, 17) / 100, note="why")
    columns = pd.DataFrame(
        {"X_B": [0.007, 1e-9, 0.002, 0.003, 0.004, 0.001, 0.9, np.nan]},
        list("fabcdegh"),
    )
    found = diagnosis.Diagnosis(tests, columns, 0.05, 5, 100, 7, False, False)
    every = "in every direction of the features, four times in five"
    text = " ".join(str(found).split())
    for words in (
        "100 instances in 5 bags, 7 labels; level 0.05; Holm",
        "of one another; the shares may carry error X ⊥ Y p < 1e-6 rejected features tell nothing about the label",
        f"would find a shift of 0.11 sd {every} X ⊥ B p = 0.05 rejected bags have the same features would find a shift "
        f"of 0.12 sd {every}; by itself moves: a (p < 1e-6), e (p = 0.001), b (p = 0.002), c (p = 0.003), "
        "d (p = 0.004) and 1 more Y ⊥ B p = 0.3 not rejected bags have the same label proportions would find a shift "
        "of 0.13 sd of the label, four times in five X ⊥ Y | B no test not tested within a bag, features tell nothing "
        "about the label why X ⊥ B | Y p = 0.0512 not rejected within a class, bags have the same features",
        "Y ⊥ B | X p = 1e-06 rejected given the features, the bag tells nothing about the label would find a shift of "
        "0.16 sd of what the features leave of the label, four times in five variants "
        "not rejected: feature collider, cross-bag, simple, hard not told",
        "told by these data: X ⊥ Y | B; a shift smaller than those above, or one that no smooth feature shows. What",
        "split-bag); bags differ, so whole bags",
    ):
        assert words in text, words
    assert found.moving("X_B").index.tolist() == list("aebcdf") and not len(
        found.moving("Y_B")
    )
    assert found.rejected == ["X_Y", "X_B", "Y_B|X"]
    assert "shift along with the shares" not in text
    assert "shift along with the shares" in str(replace(found, n_labeled=0))
    all_ = replace(found, tests=tests.fillna(0.5), by_column=columns[:6])
    assert "e (p = 0.001)" in str(all_) and "and 1 more" in " ".join(str(all_).split())
    assert "not told by these data: a shift" in " ".join(str(all_).split())
    five = replace(found, by_column=columns[1:6])
    assert "more" not in str(five).split("Y ⊥ B ")[0]


def test_what_is_said_of_model_selection():
    fine = {"X_B": 0.5, "Y_B": 0.5}
    for detectable, others, words in (
        (0.1, {}, "shifts of 0.1 sd in all features together"),
        (0.1, {"X_Y": 0.001, "X_Y|B": 0.001}, "whole bags may be held out (full-bag)"),
        (0.1001, {}, "no difference of bags was found, but"),
        (0.1, {"Y_B": np.nan}, "no difference of bags was found, but"),
        ([0.2, 0.05], {}, "no difference of bags was found, but"),
        ([0.05, 0.2], {}, "no difference of bags was found, but"),
        (0.05, {"X_B": 0.05}, "bags differ"),
        (0.05, {"Y_B": 0.05}, "bags differ"),
        (0.05, {"X_B|Y": 0.05}, "bags differ"),
        (0.05, {"Y_B|X": 0.05}, "bags differ"),
        (0.05, {"Y_B|X": 0.0501}, "whole bags may be held out"),
    ):
        found = made_up(detectable=detectable, **fine | others)
        assert words in " ".join(str(found).split()), others
        assert found.whole_bags == (
            ("held" not in words and "shifts" in words) or "may be" in words
        )


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
    bags, P = make_bags(X, y, "simple", n_bags=10, random_state=0)
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
    made = make_bags(X, y, "simple", n_bags=6, random_state=0)
    names = np.array(list("abcdef"))
    named = made.proportions.set_index(names)
    plain_, by_name = diagnose(X, *made), diagnose(X, names[made.bags], named)
    pd.testing.assert_series_equal(plain_.pvalues, by_name.pvalues)
    assert plain_.pvalues["X_B|Y"] > 0.01
    assert "simple" in diagnose(X, *made, labels=y).variants


def labels_known(b, y, known):
    """Labels of all, of one bag, of one class, or of one instance."""
    one = np.arange(len(b)) == 0
    rows = {"all": b >= 0, "bag": b == 0, "class": y == y[0], "one": one}
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
    labels = labels_known(b, y, known)
    found = diagnose(X, b, p, labels=labels, exact=exact, n_permutations=99)
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


@pytest.mark.parametrize(
    ("alpha", "together", "enough", "p"),
    [
        (0.05, 3, 59, 0.0169),
        (0.05, 4, 79, 0.0127),
        (0.01, 3, 299, 0.00334),
        (0.5, 3, 19, 0.0526),
    ],
)
def test_permutations_just_enough_for_the_level_and_one_fewer(
    alpha, together, enough, p
):
    diagnosis.check_levels(alpha, enough, together)
    said = (
        f"n_permutations={enough - 1} makes {p} the least .* for alpha={alpha} / {together} statements take "
        f"n_permutations={enough} or"
    )
    with pytest.raises(ValueError, match=said):
        diagnosis.check_levels(alpha, enough - 1, together)


def test_level_permutations_and_seed_reach_each_test():
    """Ratios of what would be found at two levels, by hand; the least p-value; what a seed changes."""
    rng = np.random.default_rng(0)
    y, bags = rng.integers(0, 2, 120), np.repeat(np.arange(3), 40)
    X = rng.normal(size=(120, 2)) + 3 * y[:, None] + 2 * bags[:, None]
    P = label_proportions(y, bags, classes=[0, 1])
    given = {"labels": y, "n_permutations": 99}
    found, other = (diagnose(X, bags, P, alpha=a, **given) for a in (0.05, 0.3))
    ratio = (found.tests["detectable"] / other.tests["detectable"]) ** 2
    reach = {n: norm.isf([0.05 / n, 0.3 / n]) + norm.ppf(0.8) for n in (1, 3)}
    wanted = {s: reach[3][0] / reach[3][1] for s in taxonomy.STATEMENTS}
    wanted["Y_B|X"] = reach[1][0] / reach[1][1]
    cut = chi2.isf([0.05, 0.3], 2)
    lam = [brentq(lambda c, q=q: ncx2.sf(q, 2, c) - 0.8, 1e-9, 99) for q in cut]
    wanted["Y_B"] = lam[0] / lam[1]
    tested = ratio.dropna()
    assert len(tested) >= 5
    assert_allclose(tested, [wanted[s] for s in tested.index])
    assert found.tests.loc["Y_B", "detectable"] == pytest.approx(
        np.sqrt(lam[0] / 120 * 3 / 2)
    )
    assert_allclose(found.pvalues[["X_Y", "X_B", "X_Y|B"]], 0.01)
    blind = diagnose(X, bags, P)  # the defaults: 199 permutations, seed 0, level .05
    again = diagnose(X, bags, P, random_state=0, alpha=0.05, n_permutations=199)
    assert blind.pvalues["X_B"] == pytest.approx(1 / 200) and str(blind) == str(again)
    assert (
        diagnose(X, bags, P, random_state=1).tests.loc["X_B", "statistic"]
        != again.tests.loc["X_B", "statistic"]
    )
    two = [diagnosis.two_bag_test(X[:60], X[60:], alpha=a) for a in (0.05, 0.3)]
    assert (two[0].detectable / two[1].detectable) ** 2 == pytest.approx(wanted["X_B"])
    p = diagnosis.two_bag_test(X[:60], X[60:], n_permutations=19).pvalue
    assert p == pytest.approx(1 / 20)
    with pytest.raises(ValueError, match="n_permutations must"):
        diagnosis.two_bag_test(X[:60], X[60:], n_permutations=18)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_permutations": 0}, "take n_permutations=59 or more"),
        ({"alpha": 0.01}, "n_permutations=199 makes 0.005 the least .* n_permutations=299 or more"),
        ({"labels": np.arange(600) % 2, "n_permutations": 78}, "take n_permutations=79 or more"),
        ({"labels": [-1] * 600}, "labels holds no known label"),
    ],
)  # fmt: skip
def test_malformed_input_of_the_diagnosis(change, message):
    X, y = problem()
    bags, P = make_bags(X, y, "simple", n_bags=6, random_state=0)
    with pytest.raises(ValueError, match=message):
        diagnose(**{"X": X, "bags": bags, "proportions": P, **change})


@pytest.mark.parametrize("n_bags", [2, 6])
def test_methods_are_listed_by_what_they_assume(n_bags):
    rng, bags = np.random.default_rng(0), np.repeat(np.arange(n_bags), 25)
    shares = np.linspace(0.2, 0.8, n_bags)
    found = diagnose(rng.normal(size=(len(bags), 2)), bags, shares)
    text = " ".join(str(found).split())
    verdict = found.verdict("X_B|Y")
    assert f"X ⊥ B | Y ({verdict}): " in text and "Y ⊥ B | X (not tested): " in text
    either = f"Y ⊥ B | X (not tested) or X ⊥ B | Y ({verdict}): BagBoosting, "
    assert either in text
    assert (verdict == "not tested") == (n_bags == 2)
    for name in ("DSDD", "LSDD", "SMIC", "KDEDifference"):
        assert (f" {name}" in text) == (n_bags == 2)
