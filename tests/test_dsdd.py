"""DSDD against cvxpy, brute force, optimality conditions, and the robust support vector machine it is."""

import itertools

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import linprog
from sklearn.exceptions import ConvergenceWarning

from llpbook import dsdd
from llpbook._linear import _hinge
from llpbook.base import (
    canonical_order,
    choose_centers,
    fold_numbers,
    median_distance,
    thin,
)
from llpbook.density_difference import (
    gaussian_basis,
    prior_weights,
    toy_problem,
)
from llpbook.dsdd import DSDD

WEIGHTS = [(1.0, 1.0), (0.4, 1.6)]


def make_basis(n=15, n_prime=9, d=2, width=0.5, seed=0):
    """Gaussian basis functions at two samples, and the scale of the penalty."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n + n_prime, d))
    X[:n] += 0.8
    Phi = gaussian_basis(X, X, width * median_distance(X))
    basis = Phi[:n], Phi[n:]
    return basis, dsdd.penalty_unit(basis)


def random_bits(basis, seed=0, real=False):
    rng = np.random.default_rng(seed)
    draw = rng.random if real else lambda size: rng.integers(0, 2, size).astype(float)
    return draw(len(basis[1])), draw(len(basis[0]))


# --- from the distance to the objective --------------------------------------------------------------------


def test_ramp_is_a_difference_of_hinges():
    z = np.linspace(-3, 3, 601)
    assert [dsdd.hinge(v, 0.5) for v in (-1, 0.5, 2)] == [0, 0, 1.5]
    split = dsdd.hinge(z, -1) - dsdd.hinge(z, 1) - 1
    assert_allclose(split, dsdd.clip(z), atol=1e-15)


@pytest.mark.equation("eq-dsdd-objective")
@pytest.mark.parametrize("weights", WEIGHTS)
def test_objective_by_loops(weights):
    basis, _ = make_basis()
    rng = np.random.default_rng(1)
    for scale in (0.1, 1, 10):
        alpha = scale * rng.normal(size=24)
        slow = 0.35 * sum(a * a for a in alpha)
        for row in basis[0]:
            slow -= weights[0] / 15 * max(-1, min(1, sum(row * alpha)))
        for row in basis[1]:
            slow += weights[1] / 9 * max(-1, min(1, sum(row * alpha)))
        found = dsdd.objective(alpha, basis, 0.7, weights)
        assert found == pytest.approx(slow)
        # the theorem: the support vector machine with the ramp loss
        margins = basis[0] @ alpha, -basis[1] @ alpha
        loss = [np.clip(1 - m, 0, 2).mean() for m in margins] @ np.array(weights)
        assert loss + 0.35 * alpha @ alpha == pytest.approx(found + 2)


def test_the_best_bounded_function_is_the_sign_and_its_value_the_distance():
    """Of all functions with the values -1, 0 and 1 at five points."""
    p, q = np.array([4, 3, 1, 1, 1]), np.array([1, 0, 1, 5, 3])
    every = np.array(list(itertools.product((-1, 0, 1), repeat=5)))
    P, Q = np.repeat(every, p, axis=1), np.repeat(every, q, axis=1)
    values = -np.array([dsdd.sign_gap(*g) for g in zip(P, Q, strict=True)])
    assert values.max() == pytest.approx(np.abs(p - q).sum() / 10)
    best = every[values > values.max() - 1e-9]
    assert_array_equal(best[:, p != q], np.tile(np.sign(p - q)[p != q], (3, 1)))


# --- the bound ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", WEIGHTS)
def test_objective_is_convex_plus_concave(weights):
    basis, _ = make_basis()
    rng = np.random.default_rng(2)

    def convex(a):
        return dsdd.convex_part(a, basis, 0.3, weights)

    def concave(a):
        return dsdd.objective(a, basis, 0.3, weights) - convex(a)

    for _ in range(50):
        one, two = 3 * rng.normal(size=(2, 24))
        slow = -weights[1] * np.maximum(0, basis[1] @ one - 1).mean()
        slow -= weights[0] * np.maximum(0, basis[0] @ one + 1).mean()
        assert concave(one) == pytest.approx(slow + weights[0] - weights[1])
        middle = (one + two) / 2
        assert convex(middle) <= (convex(one) + convex(two)) / 2 + 1e-12
        assert concave(middle) >= (concave(one) + concave(two)) / 2 - 1e-12


@pytest.mark.equation("eq-dsdd-bound")
@pytest.mark.parametrize("weights", WEIGHTS)
def test_bound_is_above_and_touches_where_tightened(weights):
    basis, _ = make_basis()
    rng = np.random.default_rng(3)
    args = (basis, 0.3, weights)
    for seed in range(50):
        alpha = 3 * rng.normal(size=24)
        bits = random_bits(basis, seed, real=seed % 2 == 0)
        whole = dsdd.objective(alpha, *args)
        assert dsdd.upper_bound(alpha, *bits, *args) >= whole - 1e-12
        tight = dsdd.tighten_bound(alpha, basis)
        assert dsdd.upper_bound(alpha, *tight, *args) == pytest.approx(whole)


@pytest.mark.equation("eq-dsdd-tighten")
def test_tightening_equals_brute_force_and_a_linear_program():
    basis, _ = make_basis(n=5, n_prime=4)
    rng = np.random.default_rng(5)
    for _ in range(5):
        alpha = 3 * rng.normal(size=9)

        def bound(bits, alpha=alpha):
            bits = np.array(bits, dtype=float)
            return dsdd.upper_bound(alpha, bits[:4], bits[4:], basis, 0.3)

        b, c = dsdd.tighten_bound(alpha, basis)
        found = bound([*b, *c])
        all_bits = itertools.product((0, 1), repeat=9)
        assert found == pytest.approx(min(map(bound, all_bits)))
        constant = bound(np.zeros(9))
        slopes = [bound(unit) - constant for unit in np.eye(9)]
        best = linprog(slopes, bounds=[(0, 1)] * 9)
        assert found == pytest.approx(best.fun + constant)


def test_tightening_at_the_kinks():
    Phi = np.eye(3)
    b, c = dsdd.tighten_bound(np.array([1.0, 0.999, 5.0]), (Phi, Phi))
    assert_array_equal([b, c], [[1, 0, 1], [1, 1, 1]])
    b, c = dsdd.tighten_bound(np.array([-1.0, -1.001, -5.0]), (Phi, Phi))
    assert_array_equal([b, c], [[0, 0, 0], [1, 0, 0]])


# --- the inner problem -------------------------------------------------------------------------------------


def cvxpy_inner(b, c, basis, lam, weights):
    """Equation (9) as the paper writes it, with slack variables."""
    Phi_p, Phi_q = basis
    n, n_prime = len(Phi_p), len(Phi_q)
    alpha = cp.Variable(Phi_p.shape[1])
    xi, xi_prime = cp.Variable(n, nonneg=True), cp.Variable(n_prime, nonneg=True)
    linear = weights[1] / n_prime * b @ Phi_q + weights[0] / n * c @ Phi_p
    value = weights[1] / n_prime * cp.sum(xi_prime) + weights[0] / n * cp.sum(xi)
    value += lam / 2 * cp.sum_squares(alpha) - alpha @ linear
    kinks = [xi_prime >= Phi_q @ alpha + 1, xi >= Phi_p @ alpha - 1]
    tight = {f"tol_{name}": 1e-11 for name in ("gap_abs", "gap_rel", "feas")}
    problem = cp.Problem(cp.Minimize(value), kinks)
    problem.solve(solver=cp.CLARABEL, **tight)
    # (9) leaves out what has no alpha.
    constant = weights[0] * (1 - c.mean()) - weights[1] * (1 - b.mean())
    return problem.value + constant, alpha.value


@pytest.mark.equation("eq-dsdd-inner")
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("rel", [1e-3, 1e-2, 1e-1, 1.0, 10.0])
@pytest.mark.parametrize(
    "shape", [(15, 9, 2), (40, 40, 2), (8, 30, 6)], ids=lambda s: f"{s[0]}+{s[1]}"
)
def test_minimum_of_the_bound_equals_cvxpy(shape, rel, weights):
    for seed, width in enumerate((0.3, 1.0)):
        basis, unit = make_basis(*shape, width, seed)
        nobody, everybody = np.zeros(len(basis[1])), np.ones(len(basis[0]))
        for b, c in (random_bits(basis, seed), (nobody, everybody)):
            data = (basis, rel * unit, weights)
            best, _ = cvxpy_inner(b, c, *data)
            alpha, _, gap = dsdd.minimize_bound(b, c, *data)
            found = dsdd.upper_bound(alpha, b, c, *data)
            assert gap <= 1e-9
            assert found == pytest.approx(best, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("rel", [1e-3, 1e-2, 1e-1, 1.0])
def test_optimality_conditions_of_the_inner_problem(rel, weights):
    basis, unit = make_basis(40, 25)
    Phi, lam = np.vstack(basis), rel * unit
    cap = np.repeat([weights[0] / 40, weights[1] / 25], [40, 25])
    kink = np.repeat([1, -1], [40, 25])
    for seed in range(5):
        b, c = random_bits(basis, seed)
        data = (basis, lam, weights)
        alpha, nu, _ = dsdd.minimize_bound(b, c, *data, tol=1e-11)
        assert (nu >= 0).all() and (nu <= cap).all()
        rest = (cap * np.append(c, b)) @ Phi - nu @ Phi
        assert_allclose(lam * alpha, rest, atol=1e-6)  # stationary
        g = Phi @ alpha
        assert_array_equal(nu[g < kink - 1e-4], 0)  # complementary slackness
        assert_array_equal(nu[g > kink + 1e-4], cap[g > kink + 1e-4])
        constant = weights[0] * (1 - c.mean()) - weights[1] * (1 - b.mean())
        dual = constant - kink @ nu - rest @ rest / (2 * lam)
        primal = dsdd.upper_bound(alpha, b, c, *data)
        assert dual == pytest.approx(primal, abs=1e-9)
        other = np.random.default_rng(seed).random(65) * cap  # weak duality
        at = (cap * np.append(c, b) - other) @ Phi
        assert constant - kink @ other - at @ at / (2 * lam) <= primal + 1e-12


# --- the whole algorithm -----------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("start", ["hinge", "convex"])
@pytest.mark.parametrize("rel", [1e-3, 1e-2, 1e-1])
def test_objective_never_rises_and_the_bound_is_tight_at_the_end(rel, start, weights):
    for seed in range(5):
        basis, unit = make_basis(40, 30, seed=seed)
        data = (basis, rel * unit, weights)
        rounds = dsdd.cccp(*data, init=start)
        values = np.array([r.objective for r in rounds])
        bounds = np.array([r.bound for r in rounds])
        assert (np.diff(values) <= 1e-9).all()
        falls = -np.diff(values, prepend=np.inf)
        assert_allclose([r.gain for r in rounds], np.minimum(falls, bounds - values))
        assert (bounds >= values - 1e-12).all()
        assert (bounds[1:] <= values[:-1] + 1e-9).all()  # tightened, then minimized
        last = rounds[-1]
        assert len(rounds) < 50
        assert last.bound == pytest.approx(last.objective, abs=1e-9)
        tight = dsdd.tighten_bound(last.alpha, basis)
        again, _, _ = dsdd.minimize_bound(*tight, *data)  # a fixed point
        assert dsdd.objective(again, *data) == pytest.approx(last.objective, abs=1e-8)


def test_first_round_of_either_start():
    basis, unit = make_basis(40, 30)
    data = (basis, 0.01 * unit, (1.0, 1.0))
    first = dsdd.cccp(*data, init="convex")[0]
    best, _ = cvxpy_inner(np.zeros(30), np.zeros(40), *data)
    assert dsdd.convex_part(first.alpha, *data) == pytest.approx(best, rel=1e-6)
    first = dsdd.cccp(*data, init="hinge")[0]
    svm = cp.Variable(70)
    losses = cp.sum(cp.pos(1 - basis[0] @ svm)) / 40
    losses += cp.sum(cp.pos(1 + basis[1] @ svm)) / 30
    best = cp.Problem(
        cp.Minimize(losses + data[1] / 2 * cp.sum_squares(svm))
    ).solve(solver=cp.CLARABEL)  # fmt: skip
    assert first.bound == pytest.approx(best - 2, abs=1e-6)
    for start, same in (("hinge", True), ("convex", False)):  # errata, Sec. 3.2, step 1
        ends = [dsdd.cccp(b, data[1], init=start)[0] for b in (basis, basis[::-1])]
        assert np.allclose(ends[0].alpha, -ends[1].alpha, atol=1e-4) == same


# --- cross-validation --------------------------------------------------------------------------------------


@pytest.mark.equation("eq-dsdd-cv")
def test_cv_gaps_by_loops():
    basis, unit = make_basis(20, 14)
    folds = fold_numbers(20, 4, 0), fold_numbers(14, 4, 0)
    lams, weights = unit * np.array([0.1, 0.01]), (0.8, 1.2)
    found = dsdd.cv_gaps(basis, lams, folds, weights)
    for lam, value in zip(lams, found, strict=True):
        total = 0.0
        for k in range(4):
            train = [P[fold != k] for P, fold in zip(basis, folds, strict=True)]
            test = [P[fold == k] for P, fold in zip(basis, folds, strict=True)]
            alpha = dsdd.cccp(train, lam, weights)[-1].alpha
            total += 1.2 / 14 * dsdd.clip(test[1] @ alpha).sum()
            total -= 0.8 / 20 * dsdd.clip(test[0] @ alpha).sum()
        assert value == pytest.approx(total, abs=1e-5)
    backwards = dsdd.cv_gaps(basis, lams[::-1], folds, weights)
    assert_allclose(backwards[::-1], found, atol=1e-5)


def test_unit_of_the_penalty():
    basis, unit = make_basis()
    assert unit == pytest.approx(np.mean([row @ row for row in np.vstack(basis)]))
    # each basis function twice, the penalty in its unit: the same function
    one = dsdd.cccp(basis, 0.01 * unit)[-1].alpha
    twice = [np.hstack([part, part]) for part in basis]
    two = dsdd.cccp(twice, 0.01 * dsdd.penalty_unit(twice))[-1].alpha
    assert_allclose(twice[0] @ two, basis[0] @ one, atol=1e-4)


def test_cv_picks_the_best_of_its_table():
    X, _, bags = toy_problem(1, n=40, random_state=0)
    model = DSDD(random_state=0).fit(X, bags)
    table = model.cv_results_
    assert len(table) == len(dsdd.SIGMAS) * len(dsdd.LAMS)
    best = table.loc[table["score"].idxmax()]
    assert (model.sigma_, model.alpha_) == (best["sigma"], best["alpha"])
    unit = median_distance(X)
    assert_allclose(table["sigma"].unique(), unit * np.array(dsdd.SIGMAS))
    widest = table[table["sigma"] == table["sigma"].max()]
    Phi = gaussian_basis(X, X, widest["sigma"].iloc[0])
    size = np.mean(np.sum(Phi**2, axis=1))
    assert_allclose(widest["alpha"], size * np.array(dsdd.LAMS))
    fixed = DSDD(sigma=model.sigma_, alpha=model.alpha_, random_state=0).fit(X, bags)
    assert_allclose(fixed.decision_function(X), model.decision_function(X))
    assert fixed.cv_results_["score"].isna().all()


def in_fit(model, X, bags, n_folds, first):
    """Basis functions of the two samples and folds, as `fit` makes them with ``random_state=0``."""
    samples = [(X - model.origin_)[bags == k] for k in (first, 1 - first)]
    samples = [part[canonical_order(part)] for part in samples]
    basis = [gaussian_basis(part, model.centers_, model.sigma_) for part in samples]
    seed = seed_of_folds(0, len(X))
    return basis, [fold_numbers(len(part), n_folds, seed) for part in samples]


def test_tuning_weighs_the_samples():
    X, _, bags = toy_problem(1, n=30, random_state=0)
    model = DSDD(0.9, [1.0, 0.1], class_prior=0.2, random_state=0)
    model.fit(X, bags, [0.3, 0.7])
    data = in_fit(model, X, bags, 5, first=1)
    weights = prior_weights(0.7, 0.3, 0.2)
    found = dsdd.cv_gaps(data[0], [1.0, 0.1], data[1], weights)
    assert_allclose(model.cv_results_["score"], -found, atol=1e-6)
    last = dsdd.cccp(data[0], model.alpha_, weights)[-1]
    assert_allclose(model.coef_, last.alpha, atol=1e-6)


def test_no_more_folds_than_the_smaller_sample_has_instances():
    X, _, bags = toy_problem(1, n=(3, 20), random_state=0)
    model = DSDD(0.9, [1.0, 0.1], random_state=0).fit(X, bags)
    basis, folds = in_fit(model, X, bags, 3, first=0)
    found = dsdd.cv_gaps(basis, [1.0, 0.1], folds)
    assert_allclose(model.cv_results_["score"], -found, atol=1e-6)


def test_own_grids():
    X, _, bags = toy_problem(1, n=20, random_state=0)
    model = DSDD(sigma=[1.0, 2.0], alpha=[0.1, 1.0, 3.0], random_state=0).fit(X, bags)
    assert len(model.cv_results_) == 6
    assert model.sigma_ in (1.0, 2.0) and model.alpha_ in (0.1, 1.0, 3.0)
    model = DSDD(sigma="median", alpha=0.5, random_state=0).fit(X, bags)
    assert model.sigma_ == median_distance(X) and model.alpha_ == 0.5


# --- the estimator -----------------------------------------------------------------------------------------


def test_decision_function_is_the_linear_model():
    X, _, bags = toy_problem(2, n=30, random_state=0)
    model = DSDD(sigma=1.5, alpha=0.3).fit(X, bags)
    grid = np.random.default_rng(0).normal(size=(5, 2))
    centers = model.centers_ + model.origin_
    for x, found in zip(grid, model.decision_function(grid), strict=True):
        bumps = [np.exp(-np.sum((x - c) ** 2) / (2 * 1.5**2)) for c in centers]
        assert found == pytest.approx(np.dot(bumps, model.coef_))
    assert len(model.centers_) == 60
    some = DSDD(1.5, 0.3, n_centers=20, random_state=5).fit(X, bags).centers_
    samples = [(X - model.origin_)[bags == k] for k in (0, 1)]
    both = np.vstack([part[canonical_order(part)] for part in samples])
    assert_array_equal(some, choose_centers(both, 20, np.random.RandomState(5)))
    assert model.n_iter_ == len(model.history_)


@pytest.mark.parametrize("sizes", [40, (40, 40), (30, 50)])
def test_swapping_the_bags_swaps_the_labels(sizes):
    X, _, bags = toy_problem(1, n=sizes, random_state=1)
    one = DSDD(random_state=0).fit(X, bags).decision_function(X)
    two = DSDD(random_state=0).fit(X, 1 - bags).decision_function(X)
    assert_allclose(one, -two, atol=1e-5)


def test_large_samples_are_tuned_on_a_part():
    X, _, bags = toy_problem(2, n=(60, 30), random_state=0)
    model = DSDD(n_tuning=25, random_state=0).fit(X, bags)
    samples = [X[bags == k] - model.origin_ for k in (0, 1)]
    parts = [thin(part, 25) for part in samples]
    basis = [gaussian_basis(part, model.centers_, model.sigma_) for part in parts]
    table = model.cv_results_[model.cv_results_["sigma"] == model.sigma_]
    folds = [fold_numbers(25, 5, seed_of_folds(0, 90))] * 2
    found = dsdd.cv_gaps(basis, table["alpha"].to_numpy(), folds)
    assert_allclose(table["score"], -found, atol=1e-6)
    last = [gaussian_basis(part, model.centers_, model.sigma_) for part in samples]
    expected = dsdd.cccp(last, model.alpha_)[-1].objective
    assert model.history_[-1].objective == pytest.approx(expected, abs=1e-8)
    every = DSDD(n_tuning=60, random_state=0).fit(X, bags)
    default = DSDD(random_state=0).fit(X, bags)
    assert_array_equal(every.coef_, default.coef_)


def seed_of_folds(random_state, n):
    rng = np.random.RandomState(random_state)
    rng.permutation(n)  # drawn for the centers
    return rng.randint(2**31 - 1)


def test_the_first_round_alone_is_asked_for_and_warns_of_nothing(recwarn):
    X, _, bags = toy_problem(1, n=60, random_state=0)
    model = DSDD(sigma=0.5, alpha=0.05, max_iter=0).fit(X, bags)
    assert model.n_iter_ == 1 and not recwarn.list
    basis, _ = in_fit(model, X, bags, 5, first=0)
    first = dsdd.cccp(basis, 0.05)[0]
    assert_allclose(model.coef_, first.alpha)
    assert first.b.sum() == 0 and first.c.all()  # nobody is given up


def test_rounds_that_end_by_themselves_at_max_iter_do_not_warn():
    X, _, bags = toy_problem(2, n=60, random_state=0)
    free = DSDD(sigma=1.0, alpha=0.05).fit(X, bags)
    just = DSDD(sigma=1.0, alpha=0.05, max_iter=free.n_iter_ - 1).fit(X, bags)
    assert_array_equal(just.coef_, free.coef_)
    assert just.gap_ == free.gap_ < 1e-9
    rounds = free.n_iter_ - 1
    short = DSDD(sigma=1.0, alpha=0.05, max_iter=rounds - 1)
    words = rf"after {rounds} rounds \(max_iter={rounds - 1}\).*still falling"
    with pytest.warns(ConvergenceWarning, match=words):
        short.fit(X, bags)
    before, now = (one.objective for one in short.history_[-2:])
    assert short.gap_ == pytest.approx((before - now) / abs(now)) and now < before


def test_a_duality_gap_warns(monkeypatch):
    monkeypatch.setattr(_hinge, "MAX_ROUNDS", 1)
    X, _, bags = toy_problem(1, n=20, random_state=0)
    with pytest.warns(ConvergenceWarning, match="accuracy of .* lower 1 / alpha"):
        assert DSDD(sigma=1.0, alpha=0.1).fit(X, bags).gap_ > 1e-9
