"""InvCal against cvxpy, scikit-learn's SVR, slow versions, and what must hold of a solution."""

from itertools import product

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from problems import gaussian_bags as problem
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVR

from llpbook import invcal
from llpbook._linear import _hinge, minimize_hinges
from llpbook.base import LLPWarning, NotIdentifiableError, _running
from llpbook.invcal import InvCal
from llpbook.proportions import averaging_matrix


def regression(seed=0, L=60, d=5, epsilon=0.3):
    """Means, targets, tubes and penalties that all differ."""
    rng = np.random.default_rng(seed)
    means, t = rng.normal(size=(L, d)), rng.normal(size=L)
    return means, t, epsilon * rng.uniform(0.5, 2, L), rng.uniform(0.1, 3, L)


def slow_objective(w, b, means, t, eps, penalties):
    total = sum(x * x for x in w) / 2
    for m, t_k, e_k, c_k in zip(means, t, eps, penalties, strict=True):
        error = abs(sum(m * w) + b - t_k)
        total += c_k * (error - e_k if error > e_k else 0)
    return total


# --- the equations -----------------------------------------------------------------------------------------


@pytest.mark.equation("eq-invcal-target")
def test_targets_are_log_odds_and_finite():
    p = np.array([0.0, 0.25, 0.5, 0.9, 1.0])
    t = invcal.targets(p, 100)
    assert_allclose(expit(t), [0.01, 0.25, 0.5, 0.9, 0.99])
    assert_allclose(t[1:4], [-np.log(1 / q - 1) for q in p[1:4]])
    assert_allclose(invcal.targets(1 - p, 100), -t, atol=1e-12)


@pytest.mark.equation("eq-invcal-tube")
def test_a_tube_by_share_allows_an_error_of_the_share():
    p, epsilon = np.array([0.1, 0.3, 0.5, 0.8]), 1e-5
    eps = invcal.tubes(p, 1000, epsilon, epsilon_unit="share")
    moved = expit(invcal.targets(p, 1000) + eps)
    assert_allclose(moved - p, epsilon, rtol=1e-3)
    assert (invcal.tubes(p, 1000, 0.2) == 0.2).all()
    pure = invcal.tubes(np.array([0.0, 1.0]), 50, 0.1, epsilon_unit="share")
    assert_allclose(pure, 0.1 / (0.02 * 0.98))  # clipped as the targets are


@pytest.mark.equation("eq-invcal-objective")
def test_objective_is_the_definition():
    parts = regression()
    rng = np.random.default_rng(1)
    for _ in range(5):
        w, b = rng.normal(size=5), rng.normal()
        slow = slow_objective(w, b, *parts)
        assert invcal.objective(w, b, *parts) == pytest.approx(slow)


@pytest.mark.equation("eq-invcal-hinges")
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("epsilon", [0.0, 0.01, 0.3])
@pytest.mark.parametrize("shape", [(60, 5), (12, 30)])
def test_minimum_equals_cvxpy(shape, epsilon, intercept):
    for seed, scale in enumerate([0.1, 1, 10]):
        means, t, eps, penalties = regression(seed, *shape, epsilon)
        penalties = scale * penalties
        w, b = cp.Variable(shape[1]), cp.Variable() if intercept else 0
        outside = cp.pos(cp.abs(means @ w + b - t) - eps)
        goal = cp.sum_squares(w) / 2 + penalties @ outside
        best = cp.Problem(cp.Minimize(goal)).solve(solver=cp.CLARABEL)
        found = invcal.minimize(means, t, eps, penalties, intercept=intercept)
        value = slow_objective(*found[:2], means, t, eps, penalties)
        assert value == pytest.approx(best, rel=1e-7)
        assert intercept or found[1] == 0


@pytest.mark.parametrize("tol", [1e-1, 1e-2, 1e-7])
def test_a_minimum_is_as_exact_as_is_asked_for(tol):
    """The gap to the dual, from the multipliers alone; many draws, for most solutions are better than asked for."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X, a = rng.normal(size=(60, 5)), rng.choice([-1.0, 1.0], 60)
        e, c = rng.normal(size=60), rng.uniform(0.1, 3, 60)
        w, _, nu, n_iter, gap = minimize_hinges(X, a, e, c, intercept=False, tol=tol)
        assert (nu >= 0).all() and (nu <= c).all() and n_iter > 1
        primal = w @ w / 2 + c @ np.maximum(0, e - a * (X @ w))
        dual = nu @ e - np.sum(((nu * a) @ X) ** 2) / 2
        assert gap <= tol and 0 <= primal - dual <= (gap + 1e-12) * primal


@pytest.mark.parametrize("shape", [(60, 30), (30, 60)])
def test_conjugate_gradients_find_the_newton_direction(shape, monkeypatch):
    """In at most as many steps as there are columns, which steepest descent could not do."""
    rng = np.random.default_rng(0)
    X, g = rng.normal(size=shape) * 3, rng.normal(size=shape[1])
    stiffness = rng.uniform(0.5, 2, shape[0])
    exact, b = _hinge.newton_direction(X, slice(None), stiffness, g, 0.3)
    monkeypatch.setattr(_hinge, "RESIDUAL", 1e-9)
    monkeypatch.setattr(_hinge, "MAX_CG", 2 * min(shape))
    found = _hinge.newton_direction(X, slice(None), stiffness, g, 0.3, largest=0)
    assert_allclose(found[0], exact, atol=1e-6 * np.abs(exact).max())
    assert found[1] == pytest.approx(b, abs=1e-6)


def test_a_machine_that_stops_short_names_the_parameter_of_the_user(monkeypatch):
    X, _, bags, P = problem()
    monkeypatch.setattr(_hinge, "MAX_ROUNDS", 1)
    with pytest.warns(ConvergenceWarning, match="lower C_p") as caught:
        model = InvCal().fit(X, bags, P)
    assert len(caught) == 1 and model.gap_ > 1e-3 > model.tol
    words = f"relative accuracy of {model.gap_:.1e} only, not of 1.0e-09; scale"
    assert words in str(caught[0].message)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_gap_is_within_the_tolerance_and_bounds_what_is_left(kernel, n_classes):
    X, _, bags, P = problem(n_classes=n_classes)
    rough, fine = (InvCal(kernel=kernel, tol=t).fit(X, bags, P) for t in (1e-2, 1e-9))
    pairs = zip(rough.estimators_ or [rough], fine.estimators_ or [fine], strict=True)
    for one, best in pairs:
        assert 0 <= best.gap_ <= 1e-9 < one.gap_ <= 1e-2
        assert 1 <= one.n_iter_ < best.n_iter_
        assert best.objective_ >= one.objective_ * (1 - one.gap_) - 1e-12


def test_a_kernel_asks_for_memory_before_it_is_made(monkeypatch):
    X, _, bags, P = problem()
    monkeypatch.setattr(invcal, "bag_kernel", None)  # refused before it is called
    cases = (bags, 240 * (40 + 2 * 240)), (np.arange(240), 12 * 240**2)
    for (names, entries), told in product(cases, (ValueError, LLPWarning)):
        has = 8 * entries / (0.76 if told is ValueError else 0.74)
        monkeypatch.setattr(_running, "machine_memory", lambda has=has: has)
        shares, words = P[bags[np.unique(names, return_index=True)[1]]], "Nystroem"
        with pytest.raises(told, match=f"on 240 instances in {len(shares)} b.*{words}"):
            InvCal(kernel="rbf").fit(X, names, shares)
    InvCal().fit(X, bags, P)
    assert invcal.peak_memory(5000, 10) == 8 * 5000 * (10 + 2 * 2000)  # in blocks


def test_multipliers_satisfy_the_optimality_conditions():
    means, t, eps, penalties = regression()
    w, b, dual, *_ = invcal.minimize(means, t, eps, penalties, tol=1e-12)
    assert_allclose(dual @ means, w, atol=1e-6)
    assert abs(dual.sum()) < 1e-6 and (np.abs(dual) <= penalties + 1e-9).all()
    error = t - means @ w - b
    inside, outside = np.abs(error) < eps - 1e-5, np.abs(error) > eps + 1e-5
    assert inside.any() and outside.any()
    assert_allclose(dual[inside], 0, atol=1e-8)
    bound = (penalties * np.sign(error))[outside]
    assert_allclose(dual[outside], bound, atol=1e-8)


def test_an_intercept_that_is_not_unique_is_the_middle():
    # No multiplier is free: a penalty so small that both bags stay outside of their tubes.
    means, t = np.array([[-1.0], [1.0]]), np.array([-2.0, 5.0])
    w, b, dual, *_ = invcal.minimize(means, t, np.zeros(2), np.full(2, 0.1))
    assert_allclose(w, 0.2, atol=1e-9)
    assert_allclose(dual, [-0.1, 0.1], atol=1e-9)
    assert b == pytest.approx(((-2 + 0.2) + (5 - 0.2)) / 2)


def test_the_best_intercept_is_the_middle_of_all_that_are_as_good():
    flat = 0
    for seed in range(50):
        rng = np.random.default_rng(seed)
        f, e, a = rng.normal(size=7), rng.normal(size=7), np.resize([1.0, -1, -1], 7)
        c = rng.integers(1, 4, 7).astype(float)
        bends = a * e - f
        values = [c @ np.maximum(0, e - a * (f + b)) for b in bends]
        best = bends[values <= min(values) + 1e-9]
        flat += len(best) > 1
        middle = (best.min() + best.max()) / 2
        assert sum(_hinge.best_intercepts(f, a, e, c)) / 2 == pytest.approx(middle)
    assert 0 < flat < 50


@pytest.mark.equation("eq-invcal-kernel")
@pytest.mark.parametrize("block", [7, 1000])
def test_the_kernel_between_bags_is_the_mean_of_the_block(block):
    X, _, bags, _ = problem(n=60)
    gram = rbf_kernel(X, gamma=0.2)
    own = [bags == k for k in range(10)]
    slow = [[gram[np.ix_(a, b)].mean() for b in own] for a in own]
    S = averaging_matrix(bags)
    found = invcal.bag_kernel(X, S, "rbf", 0.2, block=block)
    assert_allclose(found, slow, atol=1e-12)
    given = invcal.bag_kernel(gram, S, "precomputed", None, block=block)
    assert_allclose(given, slow, atol=1e-12)


# --- limits and symmetries ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_equals_support_vector_regression_on_the_bag_means(kernel):
    X, _, bags, P = problem(size=8)
    S, t = averaging_matrix(bags), invcal.targets(P[:, 1], len(X))
    inner = X @ X.T if kernel == "linear" else rbf_kernel(X, gamma=0.3)
    svr = SVR(kernel="precomputed", C=2.0, tol=1e-10)  # epsilon is 0.1 in both
    svr.fit(S @ (S @ inner).T, t)
    model = InvCal(C_p=2.0, kernel=kernel, gamma=0.3).fit(X, bags, P)
    scores = svr.predict((S @ inner).T)
    assert_allclose(model.decision_function(X), scores, atol=1e-4)


@pytest.mark.parametrize("size", [1, 6])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_linear_kernel_is_the_linear_method(size, n_classes):
    X, _, bags, P = problem(size=size, n_classes=n_classes)
    primal = InvCal(tol=1e-12).fit(X, bags, P)
    for kernel, Z in (("precomputed", X @ X.T), ("linear", sp.csr_array(X))):
        dual = InvCal(kernel=kernel, tol=1e-12).fit(Z, bags, P)
        found = dual.decision_function(Z)
        assert_allclose(found, primal.decision_function(X), atol=1e-5)


def test_swapped_labels_bags_given_twice_and_weights_of_bags():
    X, _, bags, P = problem()
    one, swapped = (InvCal().fit(X, bags, p).coef_ for p in P.T)
    assert_allclose(one, -swapped, atol=1e-5)
    both = np.vstack([X, X]), np.append(bags, bags + 40), np.vstack([P, P])
    # n enters by the clipping of shares, which none of these reaches
    weighted = InvCal(bag_weights=np.full(40, 2.0)).fit(X, bags, P).coef_
    assert_allclose(InvCal().fit(*both).coef_, weighted, atol=1e-5)
    without, wrong = InvCal(bag_weights=np.arange(40.0)), P.copy()
    wrong[0] = 0.3, 0.7
    coefs = [without.fit(X, bags, p).coef_ for p in (P, wrong)]
    assert_allclose(*coefs)  # the first bag has the weight 0
    sizes, larger = InvCal(bag_weights="size"), InvCal(C_p=6.0)
    coefs = [model.fit(X, bags, P).coef_ for model in (sizes, larger)]
    assert_allclose(*coefs, atol=1e-5)


def test_the_objective_is_that_of_the_fit():
    X, _, bags, P = problem(size=8)
    weights, P[5] = np.arange(30.0), [0, 1]  # a pure bag is clipped by all instances
    model = InvCal(3.0, epsilon=0.05, bag_weights=weights).fit(X, bags, P)
    means, t = averaging_matrix(bags) @ X, invcal.targets(P[:, 1], len(X))
    given = means, t, np.full(30, 0.05), 3 * weights
    at = slow_objective(model.coef_[0], model.intercept_[0], *given)
    assert model.objective_ == pytest.approx(at)


def test_fit_minimizes_with_its_own_parameters():
    X, _, bags, P = problem(size=8)
    p, c = P[:, 1], np.full(30, 2.0)
    how = {"epsilon_unit": "share", "fit_intercept": False}
    model = InvCal(2.0, 0.05, **how, tol=1e-2).fit(X, bags, P)
    assert model.intercept_ == 0
    t = invcal.targets(p, len(X))
    eps = invcal.tubes(p, len(X), 0.05, epsilon_unit="share")
    given = averaging_matrix(bags) @ X, t, eps, c
    w, *_ = invcal.minimize(*given, intercept=False, tol=1e-2)
    exact, *_ = invcal.minimize(*given, intercept=False, tol=1e-9)
    assert_allclose(model.coef_[0], w, rtol=1e-9)
    assert np.abs(w - exact).max() > 1e-5  # so that the tolerance is seen to arrive
    probability = model.predict_proba(X)[:, 1]
    assert_allclose(probability, expit(model.decision_function(X)))


def test_an_offset_of_the_features_moves_the_intercept_alone():
    X, _, bags, P = problem()
    far = np.column_stack([X, np.zeros(240)]) + 1e6
    with pytest.warns(LLPWarning, match="StandardScaler"):
        model = InvCal().fit(far, bags, P)
    near = np.append(InvCal().fit(X, bags, P).coef_[0], 0)
    assert_allclose(model.coef_[0], near, atol=1e-5)
    scores = []
    for gram in (X @ X.T, X @ X.T + 1e3):
        model = InvCal(kernel="precomputed").fit(gram, bags, P)
        scores.append(model.decision_function(gram))
    assert_allclose(*scores, atol=1e-3)


# --- where it fails ----------------------------------------------------------------------------------------


def test_equal_shares_of_the_bags_in_use_are_not_identifiable():
    X, _, bags, P = problem()
    shares = np.where(np.arange(40) < 20, 0.4, P[:, 1])
    weights = np.where(np.arange(40) < 20, 1.0, 0.0)
    with pytest.raises(NotIdentifiableError, match="in use"):
        InvCal(bag_weights=weights).fit(X, bags, shares)


@pytest.mark.filterwarnings("ignore:.* predicts class")
def test_one_tube_for_all_is_a_constant_with_a_warning():
    X, _, bags, P = problem()
    t = invcal.targets(P[:, 1], len(X))
    half = np.ptp(t) / 2
    with pytest.warns(LLPWarning, match="lower epsilon"):
        f = InvCal(10.0, epsilon=half * 1.001).fit(X, bags, P).decision_function(X)
    assert_allclose(f, (t.max() + t.min()) / 2, atol=0.01 * half)
    f = InvCal(10.0, epsilon=half * 0.9).fit(X, bags, P).decision_function(X)
    assert np.ptp(f) > 0
    # Without an intercept the constant is 0, which is in no tube here: there is no warning.
    shares, model = 0.7 + 0.2 * P[:, 1], InvCal(10.0, fit_intercept=False)
    t = invcal.targets(shares, len(X))
    model.set_params(epsilon=0.999 * t.max())
    assert np.ptp(model.fit(X, bags, shares).decision_function(X)) > 0
    model.set_params(epsilon=1.001 * t.max())
    with pytest.warns(LLPWarning, match="lower epsilon"):
        assert_allclose(model.fit(X, bags, shares).decision_function(X), 0, atol=1e-9)
    assert t.max() > np.ptp(t) > 0  # one tube for all is not enough
    InvCal().fit(X, bags, np.column_stack([P, np.zeros(40)]))  # nothing to say
