"""The affine test: each equation against a slow version or a simulation, then its level and power."""

import numpy as np
import pytest
from scipy.stats import f_oneway, pearson3

from llpbook import diagnosis as fit
from llpbook.diagnosis import embed
from llpbook.proportions import averaging_matrix


def problem(seed=0, n_bags=12, size=8, gap=2.0, d=4, spread=0.4, same=True):
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
    moments = fit.bag_moments(X, bags, P)
    design = fit.affine_design(moments.proportions, moments.sizes)
    grow = moments.sizes / (moments.sizes - 1)
    mixing = grow[:, None, None] * fit.label_covariance(moments.proportions)
    return moments, design, mixing


# --- the equations -------------------------------------------------------------------------------------------


def test_bag_moments_leave_out_bags_of_one_instance():
    rng = np.random.default_rng(0)
    X, bags = rng.normal(size=(9, 2)), np.array([0, 0, 0, 1, 3, 3, 3, 3, 2])
    P = np.column_stack([np.linspace(0, 1, 5), np.linspace(1, 0, 5)])  # bag 4 is empty
    moments = fit.bag_moments(X, bags, P)
    np.testing.assert_array_equal(moments.sizes, [3, 4])
    np.testing.assert_array_equal(moments.proportions, P[[0, 3]])
    for k, bag in enumerate([0, 3]):
        np.testing.assert_allclose(moments.means[k], X[bags == bag].mean(axis=0))
        np.testing.assert_allclose(
            moments.traces[k], np.trace(np.cov(X[bags == bag].T))
        )


@pytest.mark.equation("eq-var-design", "eq-var-lack-of-fit")
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
    assert fit.lack_of_fit(moments.means, moments.sizes, design.basis) == pytest.approx(
        slow
    )


@pytest.mark.equation("eq-var-label-covariance")
def test_label_covariance_is_that_of_one_hot_labels():
    P = np.array([[0.2, 0.5, 0.3], [1.0, 0.0, 0.0]])
    for p, found in zip(P, fit.label_covariance(P), strict=True):
        slow = sum(
            p[c] * np.outer(np.eye(3)[c] - p, np.eye(3)[c] - p) for c in range(3)
        )
        np.testing.assert_allclose(found, slow, atol=1e-12)


@pytest.mark.equation("eq-var-noise", "eq-var-gram")
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
    found = fit.within_class_noise(moments, design, mixing)
    np.testing.assert_allclose(found, slow, atol=1e-10)
    sums = []
    for seed in range(300):
        X, _, bags, P = problem(seed, gap=3.0, n_bags=24)
        moments, design, mixing = parts(X, bags, P)
        true = 4 * (1 + 1.25 * P[:, 1])  # variances 1 and 2.25 in four features
        noise = fit.within_class_noise(moments, design, mixing)
        sums.append(design.free @ np.column_stack([noise, true, moments.traces]))
    found, true, raw = np.mean(sums, axis=0)
    assert 0.99 * true < found < 1.06 * true  # the bias, to the careful side
    assert raw > 1.2 * true  # what the correction is for


@pytest.mark.equation("eq-var-shape")
def test_shape_of_round_and_flat_clouds():
    rng = np.random.default_rng(0)
    bags, P = np.repeat(np.arange(20), 30), np.ones((20, 1))
    round_, flat = rng.normal(size=(600, 7)), np.outer(rng.normal(size=600), [1, 2, 3])
    for cloud, dimension in ((round_, 7), (flat, 1)):
        shape = fit.noise_shape(*parts(cloud, bags, P), False)
        assert np.trace(shape.matrix) == pytest.approx(1)
        assert shape.squares == pytest.approx(1 / dimension, rel=0.03)
        assert shape.cubes == pytest.approx(1 / dimension**2, rel=0.1)
    # Two classes far apart make a bag look flat, and a class does not.
    X, _, bags, P = problem(n_bags=40, size=40, gap=20.0, d=6)
    assert fit.noise_shape(*parts(X, bags, P), True).squares < 1 / 4.5
    assert fit.noise_shape(*parts(X, bags, P), False).squares > 1 / 2


def shape_of(covariance):
    S = covariance / np.trace(covariance)
    return fit.Shape(S, np.trace(S @ S), np.trace(S @ S @ S))


@pytest.mark.equation("eq-var-fit-cumulants")
def test_cumulants_of_the_lack_of_fit_are_those_of_the_quadratic_form():
    X, _, bags, P = uneven()
    _, design, _ = parts(X, bags, P)
    tau = np.random.default_rng(1).uniform(1, 2, len(P))
    shape = shape_of(np.diag([3.0, 2.0, 1.0]))
    form = np.kron(
        (np.eye(len(P)) - design.basis @ design.basis.T) @ np.diag(tau), shape.matrix
    )  # all bag means in one vector
    slow = 2 * np.trace(form @ form), 8 * np.trace(form @ form @ form)
    np.testing.assert_allclose(fit.fit_cumulants(design, tau, shape), slow)


@pytest.mark.equation("eq-var-noise-cumulants")
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
    found = fit.noise_cumulants(moments, design, tau, shape)
    np.testing.assert_allclose(found, [second, third])


@pytest.mark.equation("eq-var-gram-cumulants")
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
        label = np.kron(fit.label_covariance(P)[k], shape.matrix)
        second += 4 * h**2 * t * n / (n - 1) ** 2 * mean @ label @ mean
    found = fit.gram_cumulants(moments, design, mixing, tau, shape)
    np.testing.assert_allclose(found, [second, third])


@pytest.mark.equation("eq-var-cumulants")
@pytest.mark.parametrize("gap", [0.0, 3.0])
def test_cumulants_are_those_of_simulations_or_too_large(gap):
    _, _, bags, P = problem(0, n_bags=20, size=10)  # the counts are always these
    y = (np.tile(np.arange(10), 20) < 10 * P[bags, 1] - 0.5).astype(int)
    lacks, predicted = [], []
    for seed in range(800):
        X = np.random.default_rng(seed).normal(size=(200, 3))
        X[:, 0] += gap * y
        moments, design, mixing = parts(X, bags, P)
        noise = fit.within_class_noise(moments, design, mixing)
        lack = fit.lack_of_fit(moments.means, moments.sizes, design.basis)
        lacks.append(lack - design.free @ noise)
        if seed < 100:
            predicted.append(fit.cumulants(moments, design, mixing, noise, True))
    variance, third = np.mean(predicted, axis=0)
    assert 0.9 * np.var(lacks) < variance < 1.35 * np.var(lacks)
    central = np.mean((lacks - np.mean(lacks)) ** 3)
    assert 0.4 * central < third < 2 * central


@pytest.mark.equation("eq-var-pearson")
def test_one_feature_and_one_class_is_nearly_the_analysis_of_variance():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(120, 1)) + 0.3 * rng.normal(size=6).repeat(20)[:, None]
        bags = np.repeat(np.arange(6), 20)
        found = fit.affine_test(x, bags, np.ones((6, 1)))
        slow = f_oneway(*(x[bags == k, 0] for k in range(6)))
        assert found.statistic == pytest.approx(slow.statistic)
        assert found.pvalue == pytest.approx(slow.pvalue, abs=0.015)
        assert found.pvalue == pytest.approx(
            pearson3.sf(found.deviation, found.skewness)
        )


def test_the_correction_is_for_counts():
    X, _, bags, P = problem(n_bags=20)
    assert fit.affine_test(X, bags, P).corrected
    assert not fit.affine_test(X, bags, P, exact=False).corrected


# --- level, power and what cannot be answered ----------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"n_bags": 8, "size": 10},
        {"n_bags": 40, "size": 5, "gap": 4.0},
        {"n_bags": 10, "size": 40, "gap": 4.0, "spread": 0.15},
    ],
)
def test_level(options):
    pvalues = []
    for seed in range(200):
        X, _, bags, P = problem(seed, **options)
        pvalues.append(
            fit.affine_test(embed(X, 30, 10, random_state=seed), bags, P).pvalue
        )
    assert 2 <= np.sum(np.array(pvalues) < 0.05) <= 20  # 10 expected, standard error 3
    assert 75 <= np.sum(np.array(pvalues) < 0.5) <= 125


def test_without_the_correction_the_test_is_too_careful():
    rates = {True: 0, False: 0}
    for seed in range(100):
        X, _, bags, P = problem(seed, n_bags=40, size=10, gap=6.0)
        for exact in rates:
            rates[exact] += fit.affine_test(X, bags, P, exact).pvalue < 0.5
    assert rates[False] < 5 and 30 <= rates[True] <= 70


def test_power():
    X, _, bags, P = problem(size=30, same=False)
    assert fit.affine_test(embed(X, random_state=0), bags, P).pvalue < 1e-6


def test_it_sees_more_than_means():
    rng = np.random.default_rng(0)
    bags = np.repeat(np.arange(20), 50)
    X = rng.normal(size=(1000, 2)) * np.where(bags % 2, 0.6, 1.2)[:, None]
    P = np.tile([[0.4, 0.6], [0.6, 0.4], [0.6, 0.4], [0.4, 0.6]], (5, 1))
    assert fit.affine_test(embed(X, random_state=0), bags, P).pvalue < 1e-6


def test_a_shift_that_goes_with_the_proportions_shows_only_inside_the_bags():
    X, _, bags, P = problem(n_bags=30, size=30)
    for shift, seen in ((0.3, False), (6.0, True)):
        # Bags shift both classes: X and B depend given Y, but bag means are affine.
        shifted = X + shift * P[bags, 1][:, None]
        assert fit.affine_test(shifted, bags, P, exact=False).pvalue > 0.05
        assert (fit.affine_test(shifted, bags, P).pvalue < 0.05) == seen


def test_nothing_to_say():
    X, _, bags, P = problem(n_bags=2)
    assert np.isnan(fit.affine_test(X, bags, P).pvalue)  # a line through two points
    ones = np.arange(10)
    rows = np.column_stack([ones % 2, 1 - ones % 2]).astype(float)
    assert np.isnan(fit.affine_test(X[:10], ones, rows).pvalue)


def test_equal_proportions_leave_the_class_means_in():
    X, _, bags, P = problem(n_bags=12, spread=0.0)
    found = fit.affine_test(X, bags, P)
    assert not found.corrected and found.pvalue > 0.01
    X, _, bags, P = problem(n_bags=12, spread=0.0, same=False)
    assert fit.affine_test(X, bags, P).pvalue < 1e-3
