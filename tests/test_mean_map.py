"""MeanMap against slow versions, its supervised limit, optimality conditions, and cvxpy."""

import warnings
from itertools import product

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from problems import binary_objective
from problems import gaussian_bags as problem
from scipy.optimize import approx_fprime
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from llpbook import mean_map
from llpbook._linear._warnings import implied_errors, predicted_counts, shown_errors
from llpbook.base import LLPWarning, NotIdentifiableError
from llpbook.datasets import load_bags
from llpbook.laplacian_mean_map import LaplacianMeanMap
from llpbook.mean_map import MeanMap
from llpbook.proportions import averaging_matrix, label_proportions

# --- the equations -----------------------------------------------------------------------------------------


@pytest.mark.equation("eq-mean-map-class-means")
def test_class_means_solve_the_normal_equations():
    X, _, bags, P = problem(n_classes=3)
    weights = np.random.default_rng(1).uniform(0.5, 2, len(P))
    SX, W = averaging_matrix(bags) @ X, np.diag(weights)
    slow = np.linalg.inv(P.T @ W @ P) @ P.T @ W @ SX
    assert_allclose(mean_map.class_means(SX, P, weights), slow, atol=1e-10)


def test_class_means_are_exact_when_bag_means_are_mixtures():
    rng = np.random.default_rng(2)
    M, P = rng.normal(size=(3, 5)), rng.dirichlet(np.ones(3), 7)
    assert_allclose(mean_map.class_means(P @ M, P, np.ones(7)), M, atol=1e-12)
    p = 0.4 + 1e-5 * (-1.0) ** np.arange(40)  # nearly equal shares are enough
    P = np.column_stack([1 - p, p])
    found = mean_map.class_means(P @ M[:2], P, np.ones(40))
    assert_allclose(found, M[:2], rtol=1e-6)


@pytest.mark.equation("eq-mean-map-operator", "eq-mean-map-operator-multi")
@pytest.mark.parametrize("n_classes", [2, 3])
def test_mean_operator_is_the_mean_of_joint_features(n_classes):
    X, y, _, _ = problem(n_classes=n_classes)
    prior = np.bincount(y) / len(y)
    means = np.array([X[y == c].mean(axis=0) for c in range(n_classes)])
    codes = np.array([[-1], [1]]) if n_classes == 2 else np.eye(n_classes)
    slow = sum(np.outer(codes[c], x) for x, c in zip(X, y, strict=True)) / len(y)
    assert_allclose(mean_map.mean_operator(prior, means), slow, atol=1e-12)


def slow_objective(theta, X, mu, lam):
    """The definition, one instance and one class at a time."""
    codes = np.array([[-1.0], [1.0]]) if len(mu) == 1 else np.eye(len(mu))
    theta = theta.reshape(mu.shape)
    scores = X @ (codes @ theta).T
    total = np.log(np.exp(scores).sum(axis=1)).sum()
    return (total - len(X) * np.sum(mu * theta) + lam / 2 * np.sum(theta**2)) / len(X)


@pytest.mark.equation("eq-mean-map-binary", "eq-mean-map-gradient")
@pytest.mark.equation("eq-mean-map-hessian", "eq-mean-map-softmax")
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_objective_gradient_and_hessian(n_classes, sparse):
    X, rng = problem(n=30)[0], np.random.default_rng(3)
    mu = rng.normal(size=(1 if n_classes == 2 else n_classes, 4))
    theta = rng.normal(size=mu.size)
    to = 2.0 if n_classes == 2 else 1.0  # log-odds are 2 <w, x>
    given = sp.csr_array(X) if sparse else X
    objective = mean_map.mean_map_objective(given, mu, 0.7)

    def gradient(t):
        return to * objective.at(to * t.reshape(mu.shape)).gradient.ravel() / 30

    point = objective.at(to * theta.reshape(mu.shape))
    assert point.value / 30 == pytest.approx(slow_objective(theta, X, mu, 0.7))
    numeric = approx_fprime(theta, lambda t: slow_objective(t, X, mu, 0.7), 1e-6)
    assert_allclose(gradient(theta), numeric, atol=1e-5)
    hessian = to**2 / 30 * (point.information() + np.diag(point.penalty))
    numeric = approx_fprime(theta, gradient, 1e-7)
    assert_allclose(hessian, numeric, atol=1e-5)


def test_objective_does_not_overflow():
    X = np.array([[1e5], [-1e5]])
    objective = mean_map.mean_map_objective(X, np.zeros((1, 1)), 0)
    for w in (-1e3, 1e3):
        point = objective.at(np.array([[2 * w]]))
        assert point.value / 2 == pytest.approx(1e8) and point.is_finite
        assert np.isfinite(point.information()).all()


@pytest.mark.parametrize("eta", [0.5, 0.2])
def test_a_small_penalty_enlarges_errors_of_the_class_means(eta):
    # the theorem "A small penalty enlarges errors", with many instances for infinitely many
    rng, n, size = np.random.default_rng(0), 200_000, 0.02
    spread = np.linalg.cholesky(np.array([[1.0, 0.5], [0.5, 2.0]]))
    within = spread @ spread.T
    g = np.array([2.0, 1.0])
    delta = within @ np.array([1.0, -2.0])  # orthogonal to g by the inverse of within
    z = rng.normal(size=(n, 2)) @ spread.T
    y = np.arange(n) < eta * n
    X = np.column_stack([z + np.where(y, 1 - eta, -eta)[:, None] * g, np.ones(n)])
    f = X[:, :2] @ np.linalg.solve(within, g)
    f += np.log(eta / (1 - eta)) - (1 - 2 * eta) / 2 * g @ np.linalg.solve(within, g)
    c = 4 * eta * (1 - eta) / np.mean(np.cosh(f / 2) ** -2)
    mu = (np.where(y, 1, -1) @ X / n)[None]
    error = np.append(2 * eta * (1 - eta) * size * delta, 0)[None]
    w = [mean_map.minimize(X, mu + s * error, 0.0, tol=1e-10)[0][0] for s in (-1, 1)]
    moved = (w[1] - w[0])[:2] / (2 * size)
    wanted = c / 2 * np.linalg.solve(within, delta)
    assert np.linalg.norm(moved - wanted) < 0.03 * np.linalg.norm(wanted)
    assert c > 1.3


@pytest.mark.parametrize("n_classes", [2, 3])
def test_minimum_equals_cvxpy(n_classes):
    X, _, bags, P = problem(n=60, n_classes=n_classes)
    M = mean_map.class_means(averaging_matrix(bags) @ X, P, np.ones(len(P)))
    mu = mean_map.mean_operator(P.mean(axis=0), M)
    theta = cp.Variable(mu.shape)
    scores = X @ theta.T
    scores = cp.hstack([scores, -scores]) if n_classes == 2 else scores
    objective = cp.sum(cp.log_sum_exp(scores, axis=1)) + cp.sum_squares(theta)
    objective -= 60 * cp.sum(cp.multiply(mu, theta))
    best = cp.Problem(cp.Minimize(objective / 60)).solve(solver=cp.CLARABEL)
    found, _, gap = mean_map.minimize(X, mu, 2.0)
    assert gap < 1e-6
    assert slow_objective(found, X, mu, 2.0) == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("lam", [0.1, 1, 10])
def test_two_classes_are_soft_max_of_two(lam):
    X, rng = problem()[0], np.random.default_rng(5)
    mu = rng.normal(size=(1, 4)) / 4
    newton = mean_map.minimize(X, mu, lam, tol=1e-10)[0]
    two = np.vstack([-mu, mu]) / 2  # the same as two soft-max classes
    both = mean_map.minimize(X, two, lam / 2, tol=1e-10)[0]
    assert_allclose(newton[0], (both[1] - both[0]) / 2, atol=1e-6)


def test_class_means_depend_on_ratios_of_the_weights_only():
    X, _, bags, P = problem(n_classes=3)
    SX, C = averaging_matrix(bags) @ X, np.zeros((len(P), 3, 3))
    weights = np.random.default_rng(1).uniform(0.5, 2, len(P))
    for unit in (1e-200, 1e200):
        for errors in (None, C):
            found = mean_map.class_means(SX, P, unit * weights, errors)
            expected = mean_map.class_means(SX, P, weights, errors)
            assert_allclose(found, expected, rtol=1e-9)


def test_shares_that_differ_by_rounding_are_not_identifiable():
    X, _, bags, P = problem()
    p = 0.4 + 1e-9 * (-1.0) ** np.arange(len(P))
    with pytest.raises(NotIdentifiableError, match="the same in every bag"):
        MeanMap().fit(X, bags, p)


def test_the_gap_is_relative_to_a_large_mean_operator():
    X = problem(n=30)[0]
    for norm in (0.5, 1.5, 4.0):
        mu = np.full((1, 4), norm / 2)
        w, _, gap = mean_map.minimize(X, mu, 1.0, max_iter=1)
        gradient = binary_objective(w[0], X, mu, 1.0)[1]
        assert gap == pytest.approx(np.abs(gradient).max() / max(1, norm))


# --- limits and symmetries ---------------------------------------------------------------------------------


@pytest.mark.parametrize("lam", [0.1, 1.0, 10.0])
def test_bags_of_size_one_are_logistic_regression(lam):
    X, y, *_ = problem()
    ones = np.column_stack([X, np.ones(len(X))])
    supervised = LogisticRegression(C=4 / lam, fit_intercept=False, tol=1e-10)
    supervised.fit(ones, y)
    model = MeanMap(alpha=lam).fit(X, np.arange(len(X)), y.astype(float))
    weights = np.append(model.coef_, model.intercept_)
    assert_allclose(weights, supervised.coef_[0], atol=1e-5)
    assert_allclose(model.predict_proba(X), supervised.predict_proba(ones), atol=1e-5)


def test_bags_of_size_one_are_multinomial_logistic_regression():
    X, y, *_ = problem(n_classes=3)
    supervised = LogisticRegression(C=1 / 2.0, fit_intercept=False, tol=1e-10)
    model = MeanMap(alpha=2.0, fit_intercept=False, tol=1e-9)
    model.fit(X, np.arange(len(X)), np.eye(3)[y])
    supervised.fit(X, y)
    assert_allclose(model.coef_, supervised.coef_, atol=1e-4)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kernel", ["precomputed", "callable"])
def test_linear_kernel_form_equals_the_primal(n_classes, kernel):
    X, _, bags, P = problem(n_classes=n_classes)
    primal = MeanMap(alpha=0.5, tol=1e-8).fit(X, bags, P).decision_function(X)
    Z, kernel = (X @ X.T, kernel) if kernel == "precomputed" else (X, np.inner)
    dual = MeanMap(alpha=0.5, kernel=kernel, tol=1e-8).fit(Z, bags, P)
    dual = dual.decision_function(Z)
    assert_allclose(dual, primal, atol=1e-5)


def test_rbf_kernel_separates_what_no_line_can():
    rng = np.random.default_rng(7)
    X = rng.uniform(-1, 1, size=(600, 2))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    bags = np.where(rng.random(600) < 0.8, y, 1 - y)  # two bags, 80 % pure
    P = label_proportions(y, bags)
    for gamma in (0.1, 2.0, 100.0):  # the chapter: any gamma from 0.1 to 100 will do
        radial = MeanMap(kernel="rbf", gamma=gamma, alpha=0.1).fit(X, bags, P)
        assert radial.score(X, y) > 0.85
    assert MeanMap().fit(X, bags, P).score(X, y) < 0.65


def test_label_swap_swaps_the_prediction():
    X, _, bags, P = problem()
    one, two = MeanMap().fit(X, bags, P[:, 1]), MeanMap().fit(X, bags, 1 - P[:, 1])
    assert_allclose(one.decision_function(X), -two.decision_function(X), atol=1e-8)


def test_duplicating_every_bag_with_twice_the_penalty_changes_nothing():
    X, _, bags, P = problem()
    one = MeanMap(alpha=1.0).fit(X, bags, P)
    twice = np.vstack([X, X]), np.append(bags, bags + len(P)), np.vstack([P, P])
    two = MeanMap(alpha=2.0).fit(*twice)
    assert_allclose(one.coef_, two.coef_, atol=1e-8)


def test_own_bag_weights():
    X, _, bags, P = problem()
    sizes = np.bincount(bags)
    one, two = (MeanMap(bag_weights=w).fit(X, bags, P) for w in (3 * sizes, "size"))
    assert_allclose(one.coef_, two.coef_)
    wrong = P[:, 1].copy()
    wrong[0] = 1 - wrong[0]
    without = np.where(np.arange(len(P)) == 0, 0.0, 1.0)
    # A bag of weight 0 has no say in the class means, whatever its proportion.
    one, two = (MeanMap(bag_weights=without).fit(X, bags, p) for p in (wrong, P[:, 1]))
    assert_allclose(one.class_means_, two.class_means_)
    for bad in (sizes[:-1], -sizes, 0 * sizes, np.full(len(sizes), np.nan)):
        with pytest.raises(ValueError, match="bag_weights"):
            MeanMap(bag_weights=bad).fit(X, bags, P)


# --- proportions that carry errors -------------------------------------------------------------------------


@pytest.mark.equation("eq-mean-map-errors")
@pytest.mark.parametrize("n_classes", [2, 3])
def test_corrected_class_means_solve_the_corrected_normal_equations(n_classes):
    X, _, bags, P = problem(n_classes=n_classes)
    rng = np.random.default_rng(1)
    weights = rng.uniform(0.5, 2, len(P))
    draws = rng.dirichlet(50 * np.ones(n_classes), size=(len(P), 9))
    covariances = np.array([np.cov(draw.T) for draw in draws])
    SX = averaging_matrix(bags) @ X
    A = P.T @ np.diag(weights) @ P - np.tensordot(weights, covariances, 1)
    slow = np.linalg.inv(A) @ P.T @ np.diag(weights) @ SX
    found = mean_map.class_means(SX, P, weights, covariances)
    assert_allclose(found, slow, atol=1e-9)
    assert not np.allclose(mean_map.class_means(SX, P, weights), slow, atol=1e-3)


def test_the_slope_is_divided_by_the_reliability():
    # Two classes: the plain difference of the class means over
    # (variance of the shares - mean squared error) / variance.
    X, _, bags, P = problem()
    p, sizes = P[:, 1], np.bincount(bags)
    se = np.linspace(0.02, 0.12, len(p))
    variance = np.average((p - np.average(p, weights=sizes)) ** 2, weights=sizes)
    reliability = 1 - np.average(se**2, weights=sizes) / variance
    plain = MeanMap().fit(X, bags, p).class_means_
    found = MeanMap(proportion_errors=se).fit(X, bags, p).class_means_
    gap = (plain[1] - plain[0]) / reliability
    assert_allclose(found[1] - found[0], gap, rtol=1e-8, atol=1e-10)
    prior = sizes @ P / sizes.sum()
    assert_allclose(prior @ found, prior @ plain, atol=1e-10)


def test_no_error_is_the_plain_fit():
    for n_classes in (2, 3):
        X, _, bags, P = problem(n_classes=n_classes)
        none = np.zeros(len(P)) if n_classes == 2 else np.zeros((len(P), 3, 3))
        plain = MeanMap().fit(X, bags, P)
        found = MeanMap(proportion_errors=none).fit(X, bags, P)
        assert_allclose(found.class_means_, plain.class_means_, atol=1e-10)
        assert_allclose(found.coef_, plain.coef_, atol=1e-5)


def test_errors_that_explain_everything_are_not_identifiable():
    X, _, bags, P = problem()
    sizes, p = np.bincount(bags), P[:, 1]
    spread = np.sqrt(np.average((p - sizes @ p / sizes.sum()) ** 2, weights=sizes))
    for share, said in ((1.0001, "-0.0002,"), (2.0, "-3,")):  # 1 - share ** 2
        with pytest.raises(NotIdentifiableError, match=f"reliability is {said}"):
            MeanMap(proportion_errors=np.full(len(p), share * spread)).fit(X, bags, p)
    enough = np.full(len(p), 0.9999 * spread)
    MeanMap(alpha=1e6, proportion_errors=enough).fit(X, bags, p)


def test_errors_are_read_by_key_and_permute_with_the_bags():
    X, _, bags, P = problem()
    names = np.array([f"ward {k}" for k in range(len(P))])
    p, se = pd.Series(P[:, 1], names), pd.Series(np.linspace(0, 0.1, len(P)), names)
    own = {"bag_weights": np.arange(1.0, len(P) + 1)}
    expected = MeanMap(**own, proportion_errors=se.to_numpy()).fit(X, bags, P[:, 1])
    found = MeanMap(**own, proportion_errors=se[::-1]).fit(X, names[bags], p)
    assert_allclose(found.coef_, expected.coef_, rtol=1e-9)
    for keyed in (se, se.to_dict()):
        with pytest.raises(ValueError, match="must be the row numbers of proportions"):
            MeanMap(proportion_errors=keyed).fit(X, bags, P)
    with pytest.raises(ValueError, match="must be the bags of proportions"):
        MeanMap(proportion_errors=se[1:]).fit(X, names[bags], p)
    # Proportions given as an array have the numbers of their rows as keys.
    for numbered in (se.reset_index(drop=True)[::-1], dict(enumerate(se))):
        found = MeanMap(**own, proportion_errors=numbered).fit(X, bags, P)
        assert_allclose(found.coef_, expected.coef_, rtol=1e-9)


@pytest.mark.parametrize(
    "bad",
    [
        lambda L: np.zeros(L - 1),
        lambda L: np.full(L, -0.1),
        lambda L: np.zeros((L, 3)),
        lambda L: np.tile(0.01 * np.eye(2), (L, 1, 1)),
        lambda L: np.tile(np.array([[0.01, 0.0], [-0.01, 0.0]]), (L, 1, 1)),
        lambda L: np.tile(-0.01 * np.array([[1.0, -1.0], [-1.0, 1.0]]), (L, 1, 1)),
    ],
)
def test_malformed_errors(bad):
    X, _, bags, P = problem()
    with pytest.raises(ValueError, match="proportion_errors must be"):
        MeanMap(proportion_errors=bad(len(P))).fit(X, bags, P)


def test_standard_errors_do_not_do_for_three_classes():
    X, _, bags, P = problem(n_classes=3)
    with pytest.raises(ValueError, match="one covariance matrix of the 3 shares each"):
        MeanMap(proportion_errors=np.full(len(P), 0.1)).fit(X, bags, P)


# --- probabilities that the shares contradict ---------------------------------------------------------------


def counts_of(scores, bags, P):
    """Predicted counts of a model whose scores, one column or several, are the features."""
    return predicted_counts(scores, np.eye(scores.shape[1]), bags, len(P))


def test_shown_errors_by_hand():
    # Predicted: 2 of 4 and 2 of 2 are positive; the shares say 1 of 4 and 1 of 2.
    scores = np.log([1 / 9, 1 / 9, 9, 9, 9, 9])[:, None]
    bags, P = np.array([0, 0, 0, 0, 1, 1]), np.array([[0.75, 0.25], [0.5, 0.5]])
    for same in (scores, np.hstack([0 * scores, scores])):
        stated, found, _ = counts_of(same, bags, P)
        shown, chance = shown_errors(found, P)
        assert stated / 6 == pytest.approx(0.1) and shown == pytest.approx(2 / 6)
        by_hand = 0.8 * (4 * np.sqrt(0.25 * 0.75 / 4) + 2 * np.sqrt(0.25 / 2)) / 6
        assert chance == pytest.approx(by_hand)


def implied(scores, bags, P):
    return implied_errors(counts_of(scores, bags, P)[2], P)


def test_implied_errors_by_hand():
    # Counts of 1 and 1 where 2 and 2 are expected.
    scores = np.log([1 / 9, 1 / 9, 9, 9, 1e9, 1e9])[:, None]
    bags, P = np.array([0, 0, 0, 0, 1, 1]), np.array([[0.75, 0.25], [0.5, 0.5]])
    assert implied(scores, bags, P) == pytest.approx(2 / 6)
    several = np.hstack([0 * scores, scores])
    assert implied(several, bags, P) == pytest.approx(2 / 6)


def test_implied_errors_are_those_of_a_sure_model():
    rng = np.random.default_rng(0)
    bags, y = np.repeat(np.arange(400), 20), rng.integers(0, 2, 8000)
    wrong = rng.random(8000) < 0.15
    scores = 1e3 * (2.0 * np.where(wrong, 1 - y, y) - 1)[:, None]
    P = label_proportions(y, bags)
    assert implied(scores, bags, P) == pytest.approx(0.15, abs=0.03)


@pytest.mark.parametrize("alpha", [0.04, 1.0])
def test_extrapolated_class_means_warn_where_predicted_shares_fit(alpha):
    # Features shift with the bag and one logistic model holds: weights in the thousands, and shares that are met well.
    warned = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        bags = np.repeat(np.arange(60), 40)
        X = rng.normal(size=(2400, 4)) + 0.7 * rng.normal(size=(60, 4))[bags]
        y = rng.random(2400) < 1 / (1 + np.exp(-X @ [1.0, -1.0, 0.5, 0.0]))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", LLPWarning)
            model = MeanMap(alpha=alpha).fit(X, bags, label_proportions(y, bags))
        warned += any("counts of the bags miss as if" in str(w.message) for w in caught)
        assert np.abs(model.coef_).max() > 1000
        X[y] += 40  # now the classes can be told apart
        P = label_proportions(y, bags)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            MeanMap(alpha=alpha).fit(X - X.mean(axis=0), bags, P)
    assert warned >= 8


@pytest.mark.parametrize("cls", [MeanMap, LaplacianMeanMap])
def test_never_more_errors_are_shown_than_made(cls):
    X, y, bags, P = problem(n=600, n_classes=3, apart=0.5, seed=4)
    model = cls().fit(X, bags, P)
    shown = shown_errors(counts_of(model.decision_function(X), bags, P)[1], P)[0]
    assert 0 < shown <= 1 - model.score(X, y) + 1e-12


def test_features_that_shift_with_the_bag_warn():
    rng, warned = np.random.default_rng(0), 0
    for _ in range(20):
        X, _, bags, P = problem(n=400, size=20, seed=rng.integers(10**6))
        shifted = X + 5 * rng.normal(size=(20, 4))[bags]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = MeanMap(alpha=0.01).fit(shifted, bags, P)
        said = [w for w in caught if "MeanMap is too sure" in str(w.message)]
        warned += len(said)
        sure = model.predict_proba(shifted).max(axis=1).mean() > 0.97
        assert len(said) <= sure  # it speaks of models that are sure, and once
        if said:
            assert np.abs(model.coef_).max() > 100 and said[0].filename == __file__
            # Shares with errors contradict nothing: LLPWarning is an error here.
            MeanMap(0.01, proportion_errors=np.zeros(20)).fit(shifted, bags, P)
    assert warned >= 12


@pytest.mark.parametrize("cls", [MeanMap, LaplacianMeanMap])
def test_ordinary_and_separable_problems_do_not_warn(cls):
    sure = 0
    for seed, apart in product(range(10), (0.5, 1.0, 2.0, 8.0)):
        n_classes = 2 + seed % 2
        options = {"size": 5 + seed, "n_classes": n_classes, "apart": apart}
        X, _, bags, P = problem(n=400, seed=seed, **options)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = cls(alpha=(0.1, 1.0)[seed % 2]).fit(X, bags, P)
        sure += model.predict_proba(X).max(axis=1).mean() > 0.99
    assert sure > 10  # where sureness is right


# --- what cannot be answered -------------------------------------------------------------------------------


def test_too_few_bags_for_the_classes_are_not_identifiable():
    X, y, *_ = problem(n_classes=3)
    bags = np.arange(len(X)) % 2
    with pytest.raises(NotIdentifiableError, match="3 class means"):
        MeanMap().fit(X, bags, label_proportions(y, bags))


def test_an_offset_costs_accuracy_because_the_intercept_is_penalized():
    # the sentence "six points" of the chapter, section In practice
    heart = load_bags("heart", bag_size=8, random_state=0)
    X = StandardScaler().fit_transform(heart.X)
    given, scores = (heart.bags, heart.proportions), []
    for Z in (X, X + 10):
        scores.append(heart.evaluate(MeanMap(1.0).fit(Z, *given).predict(Z)))
    assert 0.04 < scores[0] - scores[1] < 0.08
