"""MeanMap against slow versions, its supervised limit, optimality conditions, and cvxpy."""

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import approx_fprime
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import rbf_kernel

from llpbook import mean_map
from llpbook.base import NotIdentifiableError, kernel_features
from llpbook.mean_map import MeanMap
from llpbook.proportions import averaging_matrix, label_proportions


def problem(n=240, d=4, size=6, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    X = rng.normal(size=(n, d)) + 1.5 * rng.normal(size=(n_classes, d))[y]
    bags = rng.permutation(n) // size
    return X, y, bags, label_proportions(y, bags, classes=range(n_classes))


# --- the equations -----------------------------------------------------------------------------------------


@pytest.mark.equation("eq-mean-map-class-means")
def test_class_means_solve_the_normal_equations():
    X, _, bags, P = problem(n_classes=3)
    weights = np.random.default_rng(1).uniform(0.5, 2, len(P))
    SX, W = averaging_matrix(bags) @ X, np.diag(weights)
    slow = np.linalg.inv(P.T @ W @ P) @ P.T @ W @ SX
    np.testing.assert_allclose(mean_map.class_means(SX, P, weights), slow, atol=1e-10)


def test_class_means_are_exact_when_bag_means_are_mixtures():
    rng = np.random.default_rng(2)
    M, P = rng.normal(size=(3, 5)), rng.dirichlet(np.ones(3), 7)
    np.testing.assert_allclose(
        mean_map.class_means(P @ M, P, np.ones(7)), M, atol=1e-12
    )


@pytest.mark.equation("eq-mean-map-operator", "eq-mean-map-operator-multi")
@pytest.mark.parametrize("n_classes", [2, 3])
def test_mean_operator_is_the_mean_of_joint_features(n_classes):
    X, y, _, _ = problem(n_classes=n_classes)
    prior = np.bincount(y) / len(y)
    means = np.array([X[y == c].mean(axis=0) for c in range(n_classes)])
    phi = (
        (lambda x, c: (2 * c - 1) * x[None, :])
        if n_classes == 2
        else (lambda x, c: np.outer(np.eye(n_classes)[c], x))
    )
    slow = sum(phi(x, c) for x, c in zip(X, y, strict=True)) / len(y)
    np.testing.assert_allclose(mean_map.mean_operator(prior, means), slow, atol=1e-12)


def slow_objective(theta, X, mu, lam):
    """The definition, one instance and one class at a time."""
    codes = np.array([[-1.0], [1.0]]) if len(mu) == 1 else np.eye(len(mu))
    theta = theta.reshape(mu.shape)
    total = sum(
        np.log(sum(np.exp(np.sum(np.outer(c, x) * theta)) for c in codes)) for x in X
    )
    return (total - len(X) * np.sum(mu * theta) + lam / 2 * np.sum(theta**2)) / len(X)


@pytest.mark.equation(
    "eq-mean-map-binary", "eq-mean-map-gradient", "eq-mean-map-softmax"
)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_objective_and_gradient(n_classes):
    X = problem(n=30)[0]
    rng = np.random.default_rng(3)
    mu = rng.normal(size=(1 if n_classes == 2 else n_classes, 4))
    theta = rng.normal(size=mu.size)
    objective = (
        mean_map.binary_objective if n_classes == 2 else mean_map.softmax_objective
    )
    value, gradient = objective(theta, X, mu, 0.7)
    assert value == pytest.approx(slow_objective(theta, X, mu, 0.7))
    numeric = approx_fprime(theta, lambda t: slow_objective(t, X, mu, 0.7), 1e-6)
    np.testing.assert_allclose(gradient, numeric, atol=1e-5)


@pytest.mark.equation("eq-mean-map-hessian")
def test_hessian_is_the_derivative_of_the_gradient():
    X, rng = problem(n=40)[0], np.random.default_rng(4)
    w, mu = rng.normal(size=4), rng.normal(size=(1, 4))
    numeric = approx_fprime(
        w, lambda v: mean_map.binary_objective(v, X, mu, 0.3)[1], 1e-7
    )
    np.testing.assert_allclose(
        mean_map.binary_hessian(w, X, mu, 0.3), numeric, atol=1e-5
    )


def test_objective_does_not_overflow():
    X = np.array([[1e5], [-1e5]])
    for w in (-1e3, 1e3):
        value, gradient = mean_map.binary_objective(
            np.array([w]), X, np.zeros((1, 1)), 0.0
        )
        assert value == pytest.approx(1e8) and np.isfinite(gradient).all()
        assert np.isfinite(mean_map.binary_hessian(np.array([w]), X, None, 1.0)).all()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_minimum_equals_cvxpy(n_classes):
    X, _, bags, P = problem(n=60, n_classes=n_classes)
    M = mean_map.class_means(averaging_matrix(bags) @ X, P, np.ones(len(P)))
    mu = mean_map.mean_operator(P.mean(axis=0), M)
    theta = cp.Variable(mu.shape)
    scores = X @ theta.T
    scores = cp.hstack([scores, -scores]) if n_classes == 2 else scores
    objective = (
        cp.sum(cp.log_sum_exp(scores, axis=1))
        - 60 * cp.sum(cp.multiply(mu, theta))
        + cp.sum_squares(theta)
    )
    best = cp.Problem(cp.Minimize(objective / 60)).solve(solver=cp.CLARABEL)
    found, _, gap = mean_map.minimise(X, mu, 2.0)
    assert gap < 1e-6
    assert slow_objective(found, X, mu, 2.0) == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("lam", [0.1, 1, 10])
def test_newton_and_lbfgs_agree(lam):
    X, rng = problem()[0], np.random.default_rng(5)
    mu = rng.normal(size=(1, 4)) / 4
    newton = mean_map.minimise(X, mu, lam, tol=1e-10)[0]
    both = mean_map.minimise(X, np.vstack([-mu, mu]) / 2, lam / 2, tol=1e-10)[
        0
    ]  # the same as two soft-max classes
    np.testing.assert_allclose(newton[0], (both[1] - both[0]) / 2, atol=1e-6)


@pytest.mark.equation("eq-mean-map-kernel")
def test_kernel_features_reproduce_the_kernel():
    K = rbf_kernel(problem(n=50)[0], gamma=0.3)
    Z, to_dual = kernel_features(K)
    np.testing.assert_allclose(Z @ Z.T, K, atol=1e-10)
    w = np.random.default_rng(6).normal(size=Z.shape[1])
    np.testing.assert_allclose(K @ to_dual(w[:, None])[:, 0], Z @ w, atol=1e-6)


# --- limits and symmetries ---------------------------------------------------------------------------------


@pytest.mark.parametrize("lam", [0.1, 1.0, 10.0])
def test_bags_of_size_one_are_logistic_regression(lam):
    X, y, *_ = problem()
    ones = np.column_stack([X, np.ones(len(X))])
    supervised = LogisticRegression(
        C=4 / lam, fit_intercept=False, solver="newton-cholesky", tol=1e-12
    ).fit(ones, y)
    model = MeanMap(lam=lam).fit(X, np.arange(len(X)), y.astype(float))
    np.testing.assert_allclose(
        np.append(model.coef_, model.intercept_), supervised.coef_[0], atol=1e-6
    )
    np.testing.assert_allclose(
        model.predict_proba(X), supervised.predict_proba(ones), atol=1e-6
    )


def test_bags_of_size_one_are_multinomial_logistic_regression():
    X, y, *_ = problem(n_classes=3)
    supervised = LogisticRegression(
        C=1 / 2.0, fit_intercept=False, tol=1e-10, max_iter=10_000
    ).fit(X, y)
    model = MeanMap(lam=2.0, fit_intercept=False, tol=1e-9).fit(
        X, np.arange(len(X)), np.eye(3)[y]
    )
    np.testing.assert_allclose(model.coef_, supervised.coef_, atol=1e-4)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kernel", ["precomputed", "callable"])
def test_linear_kernel_form_equals_the_primal(n_classes, kernel):
    X, _, bags, P = problem(n_classes=n_classes)
    primal = MeanMap(lam=0.5, tol=1e-8).fit(X, bags, P).decision_function(X)
    if kernel == "precomputed":
        dual = (
            MeanMap(lam=0.5, kernel=kernel, tol=1e-8)
            .fit(X @ X.T, bags, P)
            .decision_function(X @ X.T)
        )
    else:
        dual = (
            MeanMap(lam=0.5, kernel=lambda A, B: A @ B.T, tol=1e-8)
            .fit(X, bags, P)
            .decision_function(X)
        )
    np.testing.assert_allclose(dual, primal, atol=1e-5)


def test_rbf_kernel_separates_what_no_line_can():
    rng = np.random.default_rng(7)
    X = rng.uniform(-1, 1, size=(600, 2))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    bags = np.where(rng.random(600) < 0.8, y, 1 - y)  # two bags, 80 % pure
    P = label_proportions(y, bags)
    assert MeanMap(kernel="rbf", gamma=2.0, lam=0.1).fit(X, bags, P).score(X, y) > 0.85
    assert MeanMap().fit(X, bags, P).score(X, y) < 0.65


def test_sparse_equals_dense():
    X, _, bags, P = problem()
    X = X * (X > 0)
    for n_classes, shares in ((2, P), (3, problem(n_classes=3)[3])):
        dense = MeanMap().fit(X, bags, shares).decision_function(X)
        sparse = (
            MeanMap()
            .fit(sp.csr_array(X), bags, shares)
            .decision_function(sp.csr_array(X))
        )
        np.testing.assert_allclose(sparse, dense, atol=1e-6, err_msg=str(n_classes))


def test_label_swap_swaps_the_prediction():
    X, _, bags, P = problem()
    one, two = MeanMap().fit(X, bags, P[:, 1]), MeanMap().fit(X, bags, 1 - P[:, 1])
    np.testing.assert_allclose(
        one.decision_function(X), -two.decision_function(X), atol=1e-8
    )


def test_duplicating_every_bag_with_twice_the_penalty_changes_nothing():
    X, _, bags, P = problem()
    one = MeanMap(lam=1.0).fit(X, bags, P)
    two = MeanMap(lam=2.0).fit(
        np.vstack([X, X]), np.append(bags, bags + len(P)), np.vstack([P, P])
    )
    np.testing.assert_allclose(one.coef_, two.coef_, atol=1e-8)


def test_size_weights_recover_the_class_means_of_unequal_bags_better():
    errors = {"size": [], "uniform": []}
    for seed in range(30):
        rng = np.random.default_rng(seed)
        y = rng.integers(0, 2, 600)
        X = rng.normal(size=(600, 3)) + y[:, None]
        bags = np.searchsorted(
            np.cumsum([280, 280, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4]),
            np.arange(600),
            side="right",
        )
        P = label_proportions(y, bags)
        for weights, found in errors.items():
            gap = np.diff(
                MeanMap(bag_weights=weights, fit_intercept=False)
                .fit(X, bags, P)
                .class_means_,
                axis=0,
            )
            found.append(np.sum((gap - 1) ** 2))
    assert np.mean(errors["size"]) < np.mean(errors["uniform"])


def test_own_bag_weights():
    X, _, bags, P = problem()
    sizes = np.bincount(bags)
    np.testing.assert_allclose(
        MeanMap(bag_weights=3 * sizes).fit(X, bags, P).coef_,
        MeanMap(bag_weights="size").fit(X, bags, P).coef_,
    )
    wrong = P[:, 1].copy()
    wrong[0] = 1 - wrong[0]
    without = np.where(np.arange(len(P)) == 0, 0.0, 1.0)
    np.testing.assert_allclose(  # a bag of weight 0 has no say in the class means, whatever its proportion
        MeanMap(bag_weights=without).fit(X, bags, wrong).class_means_,
        MeanMap(bag_weights=without).fit(X, bags, P[:, 1]).class_means_,
    )
    for bad in (sizes[:-1], -sizes, 0 * sizes, np.full(len(sizes), np.nan)):
        with pytest.raises(ValueError, match="bag_weights"):
            MeanMap(bag_weights=bad).fit(X, bags, P)


# --- what cannot be answered -------------------------------------------------------------------------------


def test_equal_proportions_are_not_identifiable():
    X, _, bags, P = problem()
    with pytest.raises(NotIdentifiableError, match="rank 1"):
        MeanMap().fit(X, bags, np.full(len(P), 0.4))


def test_too_few_bags_for_the_classes_are_not_identifiable():
    X, y, *_ = problem(n_classes=3)
    bags = np.arange(len(X)) % 2
    with pytest.raises(NotIdentifiableError, match="3 class means"):
        MeanMap().fit(X, bags, label_proportions(y, bags))


def test_stopping_short_warns():
    X, _, bags, P = problem(n_classes=3)
    with pytest.warns(ConvergenceWarning, match="MeanMap stopped after 1 iterations"):
        MeanMap(max_iter=1).fit(X, bags, P)
