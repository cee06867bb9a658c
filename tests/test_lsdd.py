"""LSDD against numerical integration, cvxpy, refits by hand, and known densities."""

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import dblquad, quad, trapezoid
from scipy.stats import multivariate_normal, norm

from llpbook import lsdd
from llpbook.base import _predictions, canonical_order, fold_numbers, median_distance
from llpbook.density_difference import (
    gaussian_basis,
    labeling_error_rate,
    prior_weights,
    toy_problem,
)
from llpbook.lsdd import LSDD
from llpbook.proportions import label_proportions


def two_samples(n=25, n_prime=30, d=2, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.normal(size=(n_prime, d)) + 1.0


def setting(sigma=0.8, **kwargs):
    X_p, X_q = two_samples(**kwargs)
    C = np.vstack([X_p, X_q])
    G = lsdd.basis_integrals(C, sigma)
    return X_p, X_q, C, G, lsdd.mean_difference((X_p, X_q), C, sigma)


def criterion(G, h, theta):
    """The squared error of a fit, up to a constant and the factor 1/v."""
    return theta @ G @ theta / 2 - h @ theta


# --- the equations -------------------------------------------------------------------------------------------


@pytest.mark.equation("eq-lsdd-gram")
@pytest.mark.parametrize("sigma", [0.3, 1.2])
def test_integrals_in_one_dimension(sigma):
    C = np.array([[-1.0], [0.2], [0.9]])
    H = np.exp(lsdd.log_volume(sigma, 1)) * lsdd.basis_integrals(C, sigma)
    bump = lambda t, c: np.exp(-((t - c) ** 2) / (2 * sigma**2))  # noqa: E731
    for i, a in enumerate(C[:, 0]):
        for j, b in enumerate(C[:, 0]):
            value = quad(lambda t, a=a, b=b: bump(t, a) * bump(t, b), -15, 15)[0]
            assert H[i, j] == pytest.approx(value, rel=1e-8)


@pytest.mark.equation("eq-lsdd-gram")
def test_integrals_in_two_dimensions():
    C, sigma = np.array([[0.0, 0.5], [0.7, -0.4]]), 0.6
    H = np.exp(lsdd.log_volume(sigma, 2)) * lsdd.basis_integrals(C, sigma)
    bump = lambda u, c: np.exp(-np.sum((u - c) ** 2) / (2 * sigma**2))  # noqa: E731
    for i, j in ((0, 0), (0, 1), (1, 1)):
        both = lambda s, t, i=i, j=j: bump((t, s), C[i]) * bump((t, s), C[j])  # noqa: E731
        value = dblquad(both, *(-5, 5, -5, 5), epsabs=1e-7)[0]
        assert H[i, j] == H[j, i] == pytest.approx(value, rel=1e-5)


@pytest.mark.equation("eq-lsdd-h")
def test_mean_difference_one_instance_at_a_time():
    X_p, X_q, C, *_ = setting()
    bump = lambda x, c: np.exp(-np.sum((x - c) ** 2) / (2 * 0.8**2))  # noqa: E731
    one, two = ([np.mean([bump(x, c) for x in X]) for c in C] for X in (X_p, X_q))
    slow = 2 * np.array(one) - 3 * np.array(two)
    found = lsdd.mean_difference((X_p, X_q), C, 0.8, (2.0, 3.0))
    assert_allclose(found, slow, atol=1e-12)


@pytest.mark.parametrize("batch_size", [4, 1000])
def test_sums_and_values_in_batches(batch_size, monkeypatch):
    monkeypatch.setattr(_predictions, "BLOCK", 9 * batch_size)
    X, C = two_samples(60, 9, d=3)
    Phi = gaussian_basis(X, C, 0.7)
    theta = np.random.default_rng(0).normal(size=(9, 2))
    found = lsdd.basis_sum(X, C, 0.7, batch_size)
    assert_allclose(found, Phi.sum(axis=0))
    found = lsdd.model_values(X, C, 0.7, theta)
    assert_allclose(found, Phi @ theta)


@pytest.mark.equation("eq-lsdd-theta")
def test_solution_equals_cvxpy():
    *_, C, G, h = setting()
    lam = 0.05
    theta = cp.Variable(len(C))
    objective = cp.quad_form(theta, cp.psd_wrap(G)) / 2 - h @ theta
    objective += lam / 2 * cp.sum_squares(theta)
    best = cp.Problem(cp.Minimize(objective)).solve(solver=cp.CLARABEL)
    found = lsdd.solve(G, h, lam)
    assert_allclose(found, theta.value, atol=1e-5)
    value = criterion(G, h, found) + lam / 2 * found @ found
    assert value == pytest.approx(best, rel=1e-6)


def test_rescaled_solution_is_the_papers():
    *_, C, G, h = setting(sigma=0.8)
    v, lam = np.pi * 0.8**2, 0.3
    paper = np.linalg.inv(v * G + v * lam * np.eye(len(C))) @ h
    assert_allclose(lsdd.solve(G, h, lam), v * paper, rtol=1e-8)
    full = 0.5 * paper @ (v * G) @ paper - h @ paper
    assert criterion(G, h, v * paper) / v == pytest.approx(full)


@pytest.mark.equation("eq-lsdd-cv")
def test_criterion_over_v_is_the_squared_error_but_for_a_constant():
    # f known: p, p' normal, so h and the error can be computed exactly; one constant for all widths.
    p, q = norm(0, 1), norm(1, 0.8)
    C = np.linspace(-3, 3, 8)[:, None]
    f = lambda t: p.pdf(t) - q.pdf(t)  # noqa: E731
    rng, found, brackets = np.random.default_rng(0), [], []
    for sigma in (0.3, 0.7, 1.5):
        v, theta = np.exp(lsdd.log_volume(sigma, 1)), rng.normal(size=8)
        bump = lambda t, s=sigma: np.exp(-((t - C[:, 0]) ** 2) / (2 * s**2))  # noqa: E731
        h = [
            quad(lambda t, i=i, b=bump: b(t)[i] * f(t), -9, 9, limit=200)[0]
            for i in range(8)
        ]
        g = lambda t, b=bump, a=theta / v: a @ b(t)  # noqa: E731
        error = quad(lambda t, g=g: 0.5 * (g(t) - f(t)) ** 2, -12, 12, limit=300)[0]
        bracket = criterion(lsdd.basis_integrals(C, sigma), np.array(h), theta)
        found.append(bracket / v - error)
        brackets.append(bracket - error)
    constant = -0.5 * quad(lambda t: f(t) ** 2, -12, 12)[0]
    assert_allclose(found, constant, rtol=1e-6)
    assert np.ptp(brackets) > 0.1  # without v it is no constant


@pytest.mark.equation("eq-lsdd-distance")
def test_l2_distance_of_two_normals():
    d, shift, n = 2, 1.0, 4000
    rng = np.random.default_rng(0)
    X_p, X_q = rng.normal(size=(n, d)), rng.normal(size=(n, d)) + shift
    eye = 2 * np.eye(d)
    truth = 2 * multivariate_normal.pdf(np.zeros(d), cov=eye)
    truth -= 2 * multivariate_normal.pdf(np.full(d, shift), cov=eye)
    model = LSDD(random_state=0).fit(np.vstack([X_p, X_q]), np.repeat([0, 1], n))
    found = model.l2_distance_
    assert found == pytest.approx(truth, rel=0.1)
    G = lsdd.basis_integrals(model.centers_, model.sigma_)
    moved = X_p - model.origin_, X_q - model.origin_
    h = lsdd.mean_difference(moved, model.centers_, model.sigma_)
    by_hand = lsdd.l2_distance(G, h, model.coef_, model.log_volume_)
    assert by_hand == pytest.approx(found)


@pytest.mark.equation("eq-lsdd-distance")
def test_l2_distance_is_exact_for_the_unpenalized_solution_and_second_order_else():
    G, h = setting(n=3, n_prime=3)[3:]
    exact = lsdd.solve(G, h, 1e-12)
    truth = h @ exact
    assert lsdd.l2_distance(G, h, exact, 0.0) == pytest.approx(truth, rel=1e-6)
    assert lsdd.l2_distance(G, h, exact, np.log(2)) == pytest.approx(truth / 2)
    errors = {}
    for lam in (1e-3, 1e-4):
        theta = lsdd.solve(G, h, lam)
        errors[lam] = truth - lsdd.l2_distance(G, h, theta, 0.0)
        assert abs(errors[lam]) < abs(truth - h @ theta)
        assert abs(errors[lam]) < abs(truth - theta @ G @ theta)
    assert errors[1e-3] / errors[1e-4] > 30  # a tenth of the penalty, a hundredth


# --- cross-validation ----------------------------------------------------------------------------------------


def test_path_equals_solutions_one_by_one():
    *_, C, G, h = setting()
    h = np.column_stack([h, np.random.default_rng(0).normal(size=len(C))])
    lams = np.array([0.01, 1.0, 10.0])
    path = lsdd.penalty_path(G, h, lams)
    for i, lam in enumerate(lams):
        for k in (0, 1):
            assert_allclose(path[i, :, k], lsdd.solve(G, h[:, k], lam), atol=1e-9)


def slow_cross_validation(samples, C, sigma, lams, folds, weights, what):
    """Refit without each fold and judge on it, one penalty at a time."""
    scores, G = np.zeros(len(lams)), lsdd.basis_integrals(C, sigma)
    for j, lam in enumerate(lams):
        for k in range(max(folds[0]) + 1):
            train = [X[f != k] for X, f in zip(samples, folds, strict=True)]
            test = [X[f == k] for X, f in zip(samples, folds, strict=True)]
            theta = lsdd.solve(G, lsdd.mean_difference(train, C, sigma, weights), lam)
            h = lsdd.mean_difference(test, C, sigma, weights)
            share = [np.mean(gaussian_basis(X, C, sigma) @ theta > 0) for X in test]
            sign = weights[1] * share[1] - weights[0] * share[0]
            scores[j] += criterion(G, h, theta) if what == "l2" else sign
    return scores / (max(folds[0]) + 1)


@pytest.mark.equation("eq-lsdd-cv")
@pytest.mark.parametrize("what", ["l2", "sign"])
@pytest.mark.parametrize("sigma", [0.4, 1.5])
def test_cross_validation_equals_refits(what, sigma):
    samples = two_samples(23, 31)
    C, rng = np.vstack(samples)[::2], np.random.default_rng(1)
    folds = [rng.permutation(len(X)) % 4 for X in samples]
    args = samples, C, sigma, np.array([10.0, 0.5, 0.01]), folds, (1.2, 0.8), what
    slow = slow_cross_validation(*args)
    assert_allclose(lsdd.cross_validate(*args), slow, atol=1e-9)
    none = np.zeros((1, len(C), 4))  # neither sign: no instance is above 0
    assert lsdd.sign_criteria(samples, C, sigma, none, folds, (1.2, 0.8)) == 0


def in_fit(model, X, bags, n_folds, first):
    """The two samples and the folds, as `fit` makes them with ``random_state=0``."""
    rng = np.random.RandomState(0)
    rng.permutation(len(X))  # drawn for the centers
    seed = rng.randint(2**31 - 1)
    samples = [(X - model.origin_)[bags == k] for k in (first, 1 - first)]
    samples = [part[canonical_order(part)] for part in samples]
    return samples, [fold_numbers(len(part), n_folds, seed) for part in samples]


@pytest.mark.parametrize("what", ["l2", "sign"])
def test_tuning_weighs_the_samples(what):
    X, _, bags = toy_problem(1, n=30, random_state=0)
    lams = np.array([1.0, 0.1])
    model = LSDD(0.9, lams, criterion=what, class_prior=0.2, random_state=0)
    model.fit(X, bags, [0.3, 0.7])
    samples, folds = in_fit(model, X, bags, 5, first=1)
    rest = lams, folds, prior_weights(0.7, 0.3, 0.2), what
    slow = slow_cross_validation(samples, model.centers_, 0.9, *rest)
    assert_allclose(model.cv_results_["score"], -slow, rtol=1e-6)
    G, C = lsdd.basis_integrals(model.centers_, 0.9), model.centers_
    h = lsdd.mean_difference(samples, C, 0.9, prior_weights(0.7, 0.3, 0.2))
    coef = lsdd.solve(G, h, model.alpha_)
    assert_allclose(model.coef_, coef, rtol=1e-6, atol=1e-9)
    distance = lsdd.l2_distance(G, h, coef, np.log(np.pi * 0.9**2))
    assert model.l2_distance_ == pytest.approx(distance)


def test_no_more_folds_than_the_smaller_sample_has_instances():
    X, _, bags = toy_problem(1, n=(3, 20), random_state=0)
    lams = np.array([1.0, 0.1])
    model = LSDD(0.9, lams, random_state=0).fit(X, bags)
    samples, folds = in_fit(model, X, bags, 3, first=0)
    rest = lams, folds, (1.0, 1.0), "l2"
    slow = slow_cross_validation(samples, model.centers_, 0.9, *rest)
    assert_allclose(model.cv_results_["score"], -slow, rtol=1e-6)


@pytest.mark.parametrize("what", ["l2", "sign"])
@pytest.mark.parametrize("grids", ["own", "widths", "penalties"])
def test_estimator_picks_the_best_pair(what, grids):
    X, _, bags = toy_problem(2, n=(25, 30), random_state=3)
    sigmas, lams = np.array([0.5, 1.7, 0.9]), [3.0, 0.01]
    params = {"sigma": sigmas, "alpha": lams}
    if grids == "widths":
        sigmas, params["sigma"] = lsdd.PUBLIC_SIGMAS, "public"
    if grids == "penalties":
        params["alpha"] = "public"
    model = LSDD(criterion=what, random_state=0, **params).fit(X, bags)
    samples, folds = in_fit(model, X, bags, 5, first=0)
    rows = []
    for sigma in sigmas:
        v = np.pi * sigma**2  # in two dimensions
        mus = np.array(lams if params["alpha"] == lams else lsdd.PUBLIC_LAMS / v)
        args = samples, model.centers_, sigma, mus, folds, (1.0, 1.0), what
        values = slow_cross_validation(*args) / (v if what == "l2" else 1)
        rows += list(zip(np.full(len(mus), sigma), mus, -values, strict=True))
    rows = np.array(rows)
    table = model.cv_results_.to_numpy()
    assert_allclose(table[:, :2], rows[:, :2])
    unit = table[:, 2].max() / rows[:, 2].max() if what == "l2" else 1
    assert_allclose(table[:, 2], rows[:, 2] * unit, atol=1e-8)
    best = rows[rows[:, 2] > rows[:, 2].max() - 1e-10][0]
    assert_allclose([model.sigma_, model.alpha_], best[:2])


def test_public_grid_depends_on_the_units_of_the_data():
    """Its widths are numbers: in other units it is another method."""
    X, _, bags = toy_problem(2, n=60, random_state=0)
    public = LSDD(sigma="public", alpha="public", random_state=0)
    one = public.fit(X, bags).predict(X)
    two = public.fit(100 * X, bags).predict(100 * X)
    assert public.sigma_ == 5.0 or not np.array_equal(one, two)
    assert_array_equal(two == 1, bags == 0)  # bumps that hold one instance
    high = np.random.default_rng(0).normal(size=(40, 500))
    public.fit(high, np.repeat([0, 1], 20))  # the volume is no number any more
    assert public.alpha_ >= 1e-12 and np.isfinite(public.coef_).all()


@pytest.mark.parametrize("scale", [0.01, 1000.0])
def test_units_of_the_data_do_not_matter(scale):
    X, _, bags = toy_problem(2, random_state=0)
    one = LSDD(random_state=0).fit(X, bags)
    two = LSDD(random_state=0).fit(scale * X, bags)
    assert two.sigma_ == pytest.approx(scale * one.sigma_)
    assert two.alpha_ == one.alpha_
    one, two = one.decision_function(X), two.decision_function(scale * X)
    assert_allclose(two, one, atol=1e-8)


def test_penalty_keeps_its_meaning_in_high_dimension():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 200)
    X = rng.normal(size=(400, 200)) + 0.5 * y[:, None]
    bags = np.where(rng.random(400) < 0.8, y, 1 - y)
    model = LSDD(random_state=0).fit(X, bags)
    assert np.isfinite([*model.coef_, *model.cv_results_["score"]]).all()
    assert abs(model.log_volume_) > 500  # exp of it is no number to compute with
    assert labeling_error_rate(model.predict(X), y) < 0.1


# --- the estimator -------------------------------------------------------------------------------------------


def test_difference_of_known_normals():
    rng = np.random.default_rng(0)
    p, q, errors = norm(-0.5, 1), norm(0.7, 0.8), []
    grid = np.linspace(-4, 4, 161)
    truth = p.pdf(grid) - q.pdf(grid)
    for n in (100, 1000, 10000):
        X = np.concatenate([p.rvs(n, rng), q.rvs(n, rng)])[:, None]
        model = LSDD(random_state=0).fit(X, np.repeat([0, 1], n))
        found = model.density_difference(grid[:, None])
        errors.append(trapezoid((found - truth) ** 2, grid))
    size = trapezoid(truth**2, grid)
    assert errors[0] < 0.2 * size and errors[1] < 0.03 * size
    assert errors[2] < 0.005 * size


def test_swapping_the_samples_flips_the_sign():
    X, y, bags = toy_problem(1, n=250, random_state=0)  # 500 instances, 300 centers
    one = LSDD(random_state=0).fit(X, bags).decision_function(X)
    two = LSDD(random_state=0).fit(X, 1 - bags).decision_function(X)
    assert_allclose(one, -two, atol=1e-9)
    P = label_proportions(y, bags)
    three = LSDD(random_state=0).fit(X, bags, P).decision_function(X)
    assert_allclose(three, two, atol=1e-9)  # class 1 is rare in bag 0


def test_fixed_and_median_hyper_parameters():
    X, _, bags = toy_problem(1, random_state=0)
    model = LSDD(sigma="median", alpha=0.1).fit(X, bags)
    assert model.sigma_ == pytest.approx(median_distance(X)) and model.alpha_ == 0.1
    assert model.cv_results_["score"].isna().all() and len(model.cv_results_) == 1
    C, moved = model.centers_, X - model.origin_
    h = lsdd.mean_difference((moved[bags == 0], moved[bags == 1]), C, model.sigma_)
    by_hand = lsdd.solve(lsdd.basis_integrals(C, model.sigma_), h, 0.1)
    assert_allclose(model.coef_, by_hand, atol=1e-10)
    scores = gaussian_basis(moved, C, model.sigma_) @ by_hand
    assert_allclose(model.decision_function(X), scores)
    part = LSDD(sigma=0.9, random_state=0).fit(X, bags)  # only the penalty is searched
    assert part.sigma_ == 0.9 and len(part.cv_results_) == len(lsdd.LAMS)
    part = LSDD(alpha=0.3, random_state=0).fit(X, bags)
    assert part.alpha_ == 0.3 and len(part.cv_results_) == len(lsdd.SIGMAS)


def test_tiny_samples():
    X = np.array([[0.0], [1.0], [5.0], [6.0]])
    model = LSDD(random_state=0).fit(X, [0, 0, 1, 1])
    assert_array_equal(model.predict(X), [1, 1, 0, 0])
    same = LSDD(random_state=0).fit(np.ones((6, 2)), [0, 0, 0, 1, 1, 1])
    assert_allclose(same.decision_function(np.ones((2, 2))), 0)
