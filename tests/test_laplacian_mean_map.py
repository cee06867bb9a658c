"""Laplacian Mean Map against dense algebra, its limits and its degenerate cases; alternating labels by brute force."""

import warnings
from itertools import combinations, product

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from problems import binary_objective
from problems import gaussian_bags as problem
from scipy.spatial.distance import cdist
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from llpbook import _counts, base, em
from llpbook import laplacian_mean_map as lmm
from llpbook.base import LLPWarning, NotIdentifiableError, _running
from llpbook.laplacian_mean_map import AlternatingMeanMap, LaplacianMeanMap
from llpbook.laplacian_mean_map._solver import connected_parts
from llpbook.mean_map import MeanMap, minimize
from llpbook.proportions import averaging_matrix

both = pytest.mark.parametrize("cls", [LaplacianMeanMap, AlternatingMeanMap])


def system(seed, n_classes=2, L=12, d=3, sigma=1.0):
    """A random problem of bags alone: means, proportions, weights, similarities."""
    rng = np.random.default_rng(seed)
    means, P = rng.normal(size=(L, d)), rng.dirichlet(np.ones(n_classes), L)
    return means, P, rng.uniform(0.3, 2, L), lmm.gaussian_similarity(means, sigma)


def block_matrix(P, weights, V, tau, epsilon):
    """The matrix of the paper, L x K rows and columns, all of it."""
    L, K = P.shape
    lap = np.diag(V.sum(axis=1)) - V + epsilon * np.eye(L)
    stacked = np.hstack([np.diag(P[:, j]) for j in range(K)])
    return stacked.T @ np.diag(weights) @ stacked + tau * np.kron(np.eye(K), lap)


def dense_class_means(means, P, weights, V, tau, epsilon=0.0):
    (L, K), d = P.shape, means.shape[1]
    stacked = np.hstack([np.diag(P[:, j]) for j in range(K)])
    rhs = stacked.T @ np.diag(weights) @ means
    found = np.linalg.solve(block_matrix(P, weights, V, tau, epsilon), rhs)
    return found.reshape(K, L, d).transpose(1, 0, 2)


# --- similarities ------------------------------------------------------------------------------------------


@pytest.mark.equation("eq-lmm-gaussian")
def test_gaussian_similarity():
    means = np.random.default_rng(0).normal(size=(7, 3))
    V = lmm.gaussian_similarity(means, 0.7)
    for k, other in product(range(7), repeat=2):
        distance = np.sqrt(np.sum((means[k] - means[other]) ** 2))
        expected = 0.0 if k == other else np.exp(-distance / 0.7)
        assert V[k, other] == pytest.approx(expected, abs=1e-15)


def test_neighbors_keep_the_largest_similarities():
    means = np.random.default_rng(1).normal(size=(30, 2))
    V = lmm.gaussian_similarity(means, 0.5)
    near = lmm.gaussian_similarity(means, 0.5, n_neighbors=4)
    assert sp.issparse(near)
    nearest = np.argsort(np.argsort(-V)) < 4
    kept = V * (nearest | nearest.T)
    assert_allclose(near.toarray(), kept, rtol=1e-9)
    every = lmm.gaussian_similarity(means, 0.5, n_neighbors=29)
    assert_array_equal(every, V)


def test_the_laplacian_measures_differences_of_similar_bags():
    means, _, _, V = system(2)
    energy = np.sum(means * lmm.laplacian_times(V, means))
    slow = np.sum(V * cdist(means, means, "sqeuclidean")) / 2
    assert energy == pytest.approx(slow)
    for form in (sp.csr_array(V), sp.csr_array(V).tocsc()):
        assert_allclose(lmm.laplacian_times(form, means), lmm.laplacian_times(V, means))


# --- class means of bags -----------------------------------------------------------------------------------


@pytest.mark.equation("eq-lmm-normal")
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("epsilon", [0.0, 0.05])
def test_normal_equations_are_those_of_the_paper(n_classes, epsilon):
    means, P, D, V = system(3, n_classes)
    M = np.random.default_rng(4).normal(size=(12, n_classes, 3))
    flat = M.transpose(1, 0, 2).reshape(-1, 3)
    slow = block_matrix(P, D, V, 0.4, epsilon) @ flat
    found = lmm.normal_equations(M, P, D, V, 0.4, epsilon=epsilon)
    assert_allclose(found.transpose(1, 0, 2).reshape(-1, 3), slow)
    solved = lmm.bag_class_means(means, P, D, V, 0.4, epsilon=epsilon)
    rhs = (D[:, None] * P)[:, :, None] * means[:, None]
    left = lmm.normal_equations(solved, P, D, V, 0.4, epsilon=epsilon)
    assert_allclose(left, rhs, atol=1e-9)


def test_class_means_of_bags_equal_cvxpy():
    means, P, D, V = system(5, L=8)
    M = [cp.Variable((8, 3)) for _ in range(2)]
    fit = cp.multiply(P[:, [0]], M[0]) + cp.multiply(P[:, [1]], M[1])
    loss = cp.sum(cp.multiply(D[:, None], cp.square(means - fit)))
    for k, m in combinations(range(8), 2):
        for part in M:
            loss += 0.3 * V[k, m] * cp.sum_squares(part[k] - part[m])
    cp.Problem(cp.Minimize(loss)).solve(solver=cp.CLARABEL)
    found = lmm.bag_class_means(means, P, D, V, 0.3)
    expected = np.stack([part.value for part in M], axis=1)
    assert_allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize("seed", range(8))
def test_conjugate_gradients_equal_the_dense_solution(seed):
    rng = np.random.default_rng(seed)
    K, L = int(rng.integers(2, 5)), int(rng.integers(8, 60))
    means, P, D, V = system(seed, K, L, sigma=10 ** rng.uniform(-0.7, 1))
    tau, epsilon = 10 ** rng.uniform(-2, 1), [0.0, 0.02][seed % 2]
    slow = dense_class_means(means, P, D, V, tau, epsilon)
    found = lmm.bag_class_means(means, P, D, V, tau, epsilon=epsilon)
    assert_allclose(found, slow, atol=1e-7 * np.abs(slow).max())
    shares = rng.dirichlet(np.ones(L))
    operator = lmm.operator_by_adjoint(means, P, D, shares, V, tau, epsilon=epsilon)
    expected = lmm.operator_of_bags(slow, P, shares)
    assert_allclose(operator, expected, atol=1e-8 * np.abs(expected).max())


def test_weak_similarities_have_a_limit():
    """What neighbors say of the classes is not lost in rounding beside what the data say of the means."""
    means, P, D, V = system(6, 3, 20)
    shares = np.full(20, 1 / 20)
    weak, weaker = (
        lmm.operator_by_adjoint(means, P, D, shares, unit * V, 0.1)
        for unit in (1e-14, 1e-40)
    )
    assert_allclose(weak, weaker, rtol=1e-7)


@pytest.mark.equation("eq-lmm-adjoint")
@pytest.mark.parametrize("n_classes", [2, 3])
def test_operator_of_bags(n_classes):
    means, P, D, V = system(8, n_classes)
    shares = np.random.default_rng(9).dirichlet(np.ones(12))
    M = dense_class_means(means, P, D, V, 0.5, 0.1)
    slow = np.zeros((n_classes, 3))
    for k, j in product(range(12), range(n_classes)):
        slow[j] += shares[k] * P[k, j] * M[k, j]
    slow = slow[1:] - slow[:1] if n_classes == 2 else slow
    assert_allclose(lmm.operator_of_bags(M, P, shares), slow)
    adjoint = lmm.operator_by_adjoint(means, P, D, shares, V, 0.5, epsilon=0.1)
    assert_allclose(adjoint, slow, atol=1e-10)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_all_bags_alike_is_mean_map(n_classes):
    X, _, bags, P = problem(n_classes=n_classes)
    plain = MeanMap(tol=1e-9).fit(X, bags, P)
    gaps = []
    for smoothness in (1e2, 1e4, 1e8):
        tied = LaplacianMeanMap(smoothness=smoothness, tol=1e-9).fit(X, bags, P)
        gaps.append(np.abs(tied.coef_ - plain.coef_).max())
    assert gaps[2] < 1e-5 < gaps[0] and gaps[1] < gaps[0] / 20
    assert_allclose(tied.mean_operator_, plain.mean_operator_, atol=1e-6)


def test_one_part_a_bag_and_neighbors_is_two_problems():
    means, P, D, _ = system(10, L=16)
    means[8:] += 1e4
    V = lmm.gaussian_similarity(means, 1.0)
    assert (V[:8, 8:] == 0).all()
    found = lmm.bag_class_means(means, P, D, V, 0.3)
    for half in (slice(0, 8), slice(8, 16)):
        alone = lmm.bag_class_means(means[half], P[half], D[half], V[half, half], 0.3)
        assert_allclose(found[half], alone, rtol=1e-7, atol=1e-7)


def test_parts_that_cannot_answer():
    means, P, D, _ = system(11, L=16)
    means[8:] += 1e4
    P[8:] = [0.3, 0.7]
    P[15], D[15] = [0.9, 0.1], 0.0  # a bag of weight 0 is no help
    V = lmm.gaussian_similarity(means, 1.0)
    words = r"8 bags have rank 1, .* their 2 classes apart, and no other .*raise sigma"
    with pytest.raises(NotIdentifiableError, match=words):
        lmm.bag_class_means(means, P, D, V, 0.3)
    three = np.full((16, 3), 1 / 3)
    words = "16 bags have rank 1, .* their 3 classes apart: shares must differ"
    with pytest.raises(NotIdentifiableError, match=words):
        lmm.bag_class_means(means[:, :0], three, D, np.ones((16, 16)), 0.3)
    assert np.isfinite(lmm.bag_class_means(means, P, D, V, 0.3, epsilon=0.1)).all()
    near = sp.csr_array(V)
    with pytest.raises(NotIdentifiableError, match="8 bags have rank 1"):
        lmm.bag_class_means(means, P, D, near, 0.3)
    P[8:] = [0.0, 1.0]  # pure bags need no neighbor
    found = lmm.operator_by_adjoint(means, P, D, D / D.sum(), V, 0.3)
    pure = D[8:] @ means[8:]
    half = means[:8], P[:8], D[:8], D[:8], V[:8, :8]
    rest = lmm.operator_by_adjoint(*half, 0.3)
    assert_allclose(found * D.sum(), rest + pure, rtol=1e-9)


def test_many_parts_of_the_graph():
    """More parts than are deflated one by one."""
    rng = np.random.default_rng(12)
    means = np.repeat(1e4 * np.arange(150.0), 3)[:, None] + rng.normal(size=(450, 1))
    P = np.column_stack([(p := rng.uniform(0.1, 0.9, 450)), 1 - p])
    V = lmm.gaussian_similarity(means, 1.0)
    found = lmm.bag_class_means(means, P, np.ones(450), V, 1.0)
    rhs = P[:, :, None] * means[:, None]
    left = lmm.normal_equations(found, P, np.ones(450), V, 1.0)
    assert_allclose(left, rhs, atol=1e-6 * np.abs(rhs).max())


def test_class_means_that_are_not_exact_are_said(monkeypatch):
    means, P, D, V = system(5, L=60)
    slow = dense_class_means(means, P, D, V, 0.1)
    monkeypatch.setattr(lmm._solver, "MOST_ROUNDS", 2)
    with pytest.warns(ConvergenceWarning, match=r"residual of \de-0\d only") as caught:
        found = lmm.bag_class_means(means, P, D, V, 0.1)
    said = float(str(caught[0].message).split("residual of ")[1].split()[0])
    assert 1e-5 < said < 1 and 1e-4 < np.abs(found - slow).max() < 10


# --- the estimator -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("lam", [0.1, 10.0])
def test_bags_of_size_one_are_logistic_regression(lam):
    X, y, *_ = problem(n=120)
    ones = np.column_stack([X, np.ones(len(X))])
    limit = LogisticRegression(C=4 / lam, fit_intercept=False, tol=1e-10).fit(ones, y)
    far = LaplacianMeanMap(lam, 5.0, sigma=0.05)
    for model in (LaplacianMeanMap(lam), far, AlternatingMeanMap(lam)):
        model.fit(X, np.arange(120), y.astype(float))
        found = np.append(model.coef_, model.intercept_)
        assert_allclose(found, limit.coef_[0], atol=1e-5)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_estimator_is_its_functions(n_classes):
    X, _, bags, P = problem(n_classes=n_classes, size=7)
    sizes = np.bincount(bags)
    for weights, counting in product(("size", "uniform"), repeat=2):
        options = {"bag_weights": weights, "operator_weights": counting}
        options |= {"sigma": 0.8, "smoothness": 0.3, "epsilon": 0.01}
        model = LaplacianMeanMap(**options).fit(X, bags, np.vstack([P, P[:1]]))
        Z = np.column_stack([X, np.ones(len(X))])
        means = averaging_matrix(bags) @ Z
        V = np.exp(-cdist(means, means) / 0.8) - np.eye(len(P))
        one, by_size = np.ones(len(P)), sizes / sizes.mean()
        D, w = (by_size if how == "size" else one for how in (weights, counting))
        M = dense_class_means(means, P, D, V, 0.3, 0.01)
        mu = lmm.operator_of_bags(M, P, w / w.sum())
        assert_allclose(model.mean_operator_, mu, atol=1e-9)


def test_bags_of_weight_0_tell_no_classes_apart():
    X, _, bags, P = problem()
    P[:2] = [0.3, 0.7], [0.6, 0.4]
    two, one = np.zeros((2, len(P)))
    two[:2], one[0] = 1.0, 1.0
    assert np.isfinite(LaplacianMeanMap(bag_weights=two).fit(X, bags, P).coef_).all()
    with pytest.raises(NotIdentifiableError, match="the same in every bag"):
        LaplacianMeanMap(bag_weights=one).fit(X, bags, P)


def test_label_swap_swaps_the_prediction():
    X, _, bags, P = problem()
    for cls in (LaplacianMeanMap, AlternatingMeanMap):
        one, two = cls().fit(X, bags, P[:, 1]), cls().fit(X, bags, 1 - P[:, 1])
        assert_allclose(one.decision_function(X), -two.decision_function(X), atol=1e-6)


def test_neighbors_only_is_near_all_pairs():
    X, _, bags, P = problem(n=1600, size=4, seed=1)
    whole = LaplacianMeanMap(sigma=0.3).fit(X, bags, P)
    near = LaplacianMeanMap(sigma=0.3, n_neighbors=50).fit(X, bags, P)
    assert np.mean(near.predict(X) == whole.predict(X)) > 0.97
    means = averaging_matrix(bags) @ np.column_stack([X, np.ones(1600)])
    V, ones = lmm.gaussian_similarity(means, 0.3, n_neighbors=50), np.ones(400)
    mu = lmm.operator_by_adjoint(means, P, ones, ones / 400, V, 0.1)
    assert_allclose(near.mean_operator_, mu, atol=1e-8)
    assert np.abs(whole.mean_operator_ - mu).max() > 1e-4


def test_a_graph_is_refused_before_it_fills_the_memory(monkeypatch):
    X, _, bags, P = problem(n=1200)
    for share, told in ((0.76, ValueError), (0.74, LLPWarning)):
        has = 30 * 200**2 / share
        monkeypatch.setattr(_running, "machine_memory", lambda has=has: has)
        with pytest.raises(told, match=r"graph of 200 bags needs .*n_neighbors=50"):
            LaplacianMeanMap().fit(X, bags, P)
    LaplacianMeanMap(n_neighbors=5).fit(X, bags, P)


def exact_fits(X, lam):
    """What `WarmMeanMap` does, each time from 0."""

    def fit(mu):
        w = minimize(X, mu, lam, tol=1e-10)[0]
        return w, 2 * X @ w[0], binary_objective(w[0], X, mu, lam)[0]

    return fit


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("lam", [0.0, 1.0, 100.0])
def test_warm_fits_are_exact(lam, monkeypatch):
    """In whatever order mean operators come, also where Newton's method is left or fails."""
    rng = np.random.default_rng(0)
    for newton, far in product((500, 0), (1, 100)):
        monkeypatch.setattr(lmm._alternating, "NEWTON", newton)
        X = far * np.column_stack([rng.normal(size=(200, 3)), np.ones(200)])
        warm, exact = lmm.WarmMeanMap(X, lam, 1e-8), exact_fits(X, lam)
        y = rng.choice([-1.0, 1.0], 200)
        for flips in (0, 3, 100, 1, 1):
            y[rng.permutation(200)[:flips]] *= -1
            mu = (y @ X / 200)[None]
            for found, wanted in zip(warm(mu), exact(mu), strict=True):
                assert_allclose(found, wanted, 1e-5, 1e-6)
            assert warm.gap() < 1e-7


def test_value_and_gap_are_those_of_the_model(monkeypatch):
    monkeypatch.setattr(lmm._alternating, "minimize", None)  # Newton's steps are enough
    X, _, bags, P = problem(n=1200, seed=3)
    Z = np.column_stack([X, np.ones(1200)])
    counts = _counts.whole_counts(P, np.bincount(bags))
    model = AlternatingMeanMap(tol=1e-2).fit(X, bags, P)
    w = np.append(model.coef_, model.intercept_) / 2
    mu = (best_signs(Z @ w, bags, counts) @ Z / 1200)[None]
    value, gradient = binary_objective(w, Z, mu, 1.0)
    assert model.objective_ == model.objective_curve_[-1] == pytest.approx(value)
    gap = np.abs(gradient).max() / max(1, np.linalg.norm(mu))
    assert 0 < model.gap_ == pytest.approx(gap)


# --- degenerate data ---------------------------------------------------------------------------------------


@both
def test_constant_features_and_more_features_than_instances(cls):
    X, _, bags, P = problem(n=60)
    wide = np.hstack([X, np.random.default_rng(0).normal(size=(60, 100)), X[:, :1] * 0])
    with np.errstate(over="raise", divide="raise", invalid="raise"):
        model = cls().fit(wide, bags, P)
    assert np.isfinite(model.decision_function(wide)).all()
    flat = cls().fit(np.ones((60, 3)), bags, P)
    majority = int(P[:, 1] @ np.bincount(bags) / 60 > 0.5)
    assert (flat.predict(np.ones((60, 3))) == majority).all()


def test_no_penalty():
    X, _, bags, P = problem(n=60)
    with pytest.warns(ConvergenceWarning, match="penalize more"):
        model = LaplacianMeanMap(alpha=0.0, max_iter=30).fit(X, bags, P)
    assert np.isfinite(model.decision_function(X)).all()  # there is no minimum
    X, y, *_ = problem(n=300, seed=6)
    y = np.where(np.random.default_rng(0).random(300) < 0.2, 1 - y, y)
    twice = np.hstack([X, X[:, :2], np.ones((300, 1))])  # depend on one another
    for cls in (LaplacianMeanMap, MeanMap):
        found, alone = (
            cls(alpha=0.0).fit(Z, np.arange(300), y.astype(float)).decision_function(Z)
            for Z in (twice, X)
        )
        assert_allclose(found, alone, atol=1e-6)


# --- alternating -------------------------------------------------------------------------------------------


def best_signs(scores, bags, counts):
    """1 and -1: in each bag the highest scores are positive, as many as ``counts[:, 1]``."""
    both = np.column_stack([0 * scores, scores])
    return 2.0 * _counts.label_by_counts(both, bags, counts) - 1


def labelings(bags, counts):
    """Every labeling with these counts, as rows of 1 and -1."""
    choices = []
    for k, count in enumerate(counts[:, 1]):
        members = np.flatnonzero(bags == k)
        choices.append([list(chosen) for chosen in combinations(members, count)])
    for chosen in product(*choices):
        y = -np.ones(len(bags))
        y[[i for part in chosen for i in part]] = 1.0
        yield y


def small(seed=0, n=12):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    X = np.column_stack([rng.normal(size=(n, 2)) + y[:, None], np.ones(n)])
    bags = np.arange(n) // 4
    return X, bags, _counts.crosstab(bags, y, (3, 2))


def best_value(X, y, lam):
    """The smallest loss for given labels, by an independent solver."""
    C, codes = 4 / lam, (y > 0).astype(int)
    if codes.min() == codes.max():
        return np.inf
    fit = LogisticRegression(C=C, fit_intercept=False, tol=1e-10).fit(X, codes)
    mu = (X.T @ y / len(y))[None, :]
    return binary_objective(fit.coef_[0] / 2, X, mu, lam)[0]


@pytest.mark.equation("eq-lmm-alternate")
@pytest.mark.parametrize("seed", range(4))
def test_alternating_never_rises_ends_at_a_fixed_point_and_misses_no_lower_bound(seed):
    X, bags, counts = small(seed)
    start = np.random.default_rng(seed).normal(size=(1, 3))
    fit = lmm.WarmMeanMap(X, 1.0, 1e-6)
    w, values, flips = lmm.alternate(X, bags, counts, start, fit)
    assert flips == 0 and (np.diff(values) < 1e-12).all()
    labels = best_signs(X @ w[0], bags, counts)
    assert best_value(X, labels, 1.0) == pytest.approx(values[-1], abs=1e-8)
    lowest = min(best_value(X, y, 1.0) for y in labelings(bags, counts))
    assert values[-1] >= lowest - 1e-9
    starts = np.random.default_rng(9).normal(size=(25, 1, 3))
    ends = [lmm.alternate(X, bags, counts, v, fit)[1][-1] for v in starts]
    assert min(ends) == pytest.approx(lowest, abs=1e-7)


@pytest.mark.parametrize("cls", [MeanMap, LaplacianMeanMap])
def test_the_gap_is_what_is_left_of_the_gradient(cls):
    X, _, bags, P = problem()
    with pytest.warns(ConvergenceWarning) as caught:
        model = cls(max_iter=1).fit(X, bags, P)
    w, mu = np.append(model.coef_, model.intercept_) / 2, model.mean_operator_
    _, gradient = binary_objective(w, np.column_stack([X, np.ones(len(X))]), mu, 1.0)
    gap = np.abs(gradient).max() / max(1, np.linalg.norm(mu))
    assert model.gap_ == pytest.approx(gap) and gap > 1e-3
    words = f"after 1 iterations with a gradient of {gap:.1e}, above tol=1e-06;"
    assert words in str(caught[0].message)


@pytest.mark.filterwarnings("ignore:proportions are the same")
def test_starts():
    X, _, bags, P = problem(n=600, seed=3)
    graph = LaplacianMeanMap(
        2.0, 0.5, sigma=0.7, epsilon=0.01, bag_weights="uniform",
        operator_weights="uniform", n_neighbors=20,
    )  # fmt: skip
    few = MeanMap(bag_weights=np.where(np.arange(len(P)) < 5, 1.0, 0.001))
    for first in (graph, LaplacianMeanMap(), MeanMap(), few):
        name = "mean_map" if isinstance(first, MeanMap) else first
        own = {"alpha": first.alpha, "bag_weights": first.bag_weights}
        found = AlternatingMeanMap(init=name, **own).fit(X, bags, P).objective_curve_
        first.fit(X, bags, P)
        counts = np.round(np.bincount(bags)[:, None] * P).astype(int)
        w = np.append(first.coef_, first.intercept_)[None] / 2
        Z = np.column_stack([X, np.ones(len(X))])
        slow = lmm.alternate(Z, bags, counts, w, exact_fits(Z, first.alpha))[1]
        assert_allclose(found, slow, atol=1e-9)
        assert (np.diff(found) < 1e-12).all()
    for seed in (1, 2):
        model = AlternatingMeanMap(init="random", random_state=seed)
        curve = model.fit(X, bags, P).objective_curve_
        assert_array_equal(model.fit(X, bags, P).objective_curve_, curve)
        assert curve[0] != found[0]
        found = curve
    halves = X, np.arange(600) % 3, [0.5, 0.5, 0.5]
    for identified in (model, graph, AlternatingMeanMap(init=graph)):  # by epsilon
        assert np.isfinite(identified.fit(*halves).gap_)
    for first in ("laplacian", "mean_map", LaplacianMeanMap()):
        with pytest.raises(NotIdentifiableError, match="same in every bag"):
            AlternatingMeanMap(init=first).fit(*halves)


def test_stopping_short_warns():
    X, _, bags, P = problem(n=600)
    counts, ends = _counts.whole_counts(P, np.bincount(bags)), []
    with pytest.warns(ConvergenceWarning) as caught:
        one = AlternatingMeanMap(init="mean_map", max_iter=1).fit(X, bags, P)
    for model in (MeanMap().fit(X, bags, P), one):
        ends.append(best_signs(model.decision_function(X), bags, counts))
    assert one.gap_ == np.mean(ends[0] != ends[1]) > 0
    words = f"after 1 rounds with {one.gap_:.2%} of the labels still changing"
    assert len(caught) == 1 and words in str(caught[0].message)
    enough = AlternatingMeanMap().fit(X, bags, P)
    with warnings.catch_warnings(action="error"):  # the next round moves no label
        same = AlternatingMeanMap(max_iter=enough.n_iter_).fit(X, bags, P)
    assert_array_equal(same.coef_, enough.coef_)


@pytest.mark.parametrize("C", [0.05, 1.0, 20.0])
def test_alternating_with_the_minimum_is_hard_em(C):
    X, _, bags, P = problem(n=400, seed=7, apart=0.8)
    X = np.column_stack([X, np.ones(len(X))])  # an intercept that is penalized
    counts = _counts.whole_counts(P, np.bincount(bags))
    for seed in range(2):
        w = np.random.default_rng(seed).normal(size=(1, X.shape[1]))
        fits = lmm.WarmMeanMap(X, 4 / C, 1e-6)
        found = lmm.alternate(X, bags, counts, w, fits)[0]
        first = best_signs(X @ w[0], bags, counts)
        options = {"solver": "newton-cholesky", "tol": 1e-12}
        model = LogisticRegression(C=C, fit_intercept=False, **options)

        def fit(labels, model=model):
            return base.class_scores(model.fit(X, labels), X, 2)

        def guess(scores):
            return _counts.label_by_counts(scores, bags, counts)

        start = (first > 0).astype(int)
        labels, *_ = em.alternate(start, fit, guess, "fixed_point", 100, 0.1)
        assert_allclose(model.coef_, 2 * found, atol=1e-5)
        ends = best_signs(X @ found[0], bags, counts) > 0
        assert_array_equal(labels, ends)


@pytest.mark.parametrize("seed", range(6))
def test_parts_of_a_dense_graph_are_those_of_a_sparse_one(seed):
    rng = np.random.default_rng(seed)
    V = rng.uniform(size=(30, 30)) * (rng.uniform(size=(30, 30)) < 0.03 * seed)
    V[0, 9] = 1e-14  # no link: beside the others, its similarity is lost in rounding
    V[[0, 9], [1, 10]] = 1.0
    chain = np.arange(12, 18)  # is reached in several steps
    V[chain[1:], chain[:-1]] = 1.0
    V = np.maximum(V, V.T)
    parts = connected_parts(V)
    assert_array_equal(parts, connected_parts(sp.csr_array(V)))
    assert len(set(parts[chain])) == 1 and (seed or parts[0] != parts[9])
