"""ConvSVM against cvxpy with every labeling enumerated, brute force, and what must hold of a relaxation."""

import re
import warnings
from itertools import product

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from llpbook import conv_svm
from llpbook.base import LLPWarning, _running
from llpbook.conv_svm import ConvSVM, _interior, _solver
from llpbook.proportions import label_proportions


def problem(n=120, d=3, size=6, gap=2.5):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    X = rng.normal(size=(n, d)) + gap * (y[:, None] - 0.5)
    bags = rng.permutation(n) // size
    return X, y, bags, label_proportions(y, bags, classes=[0, 1])


def small(seed=0, epsilon=0.0):
    """Ten instances in two bags, and all labelings that agree."""
    rng = np.random.default_rng(seed)
    X, bags, sizes = rng.normal(size=(10, 3)), np.repeat([0, 1], 5), np.array([5, 5])
    counts = conv_svm.allowed_counts(sizes, np.array([0.6, 0.2]), epsilon)
    every = np.array(list(product([-1.0, 1.0], repeat=10)))
    found = np.array([(every[:, bags == k] > 0).sum(axis=1) for k in (0, 1)]).T
    fits = ((counts[0] <= found) & (found <= counts[1])).all(axis=1)
    return X, bags, counts, every[fits]


def enumerated(X, Y, C):
    """The relaxed problem by cvxpy."""
    alpha, theta = cp.Variable(len(X), nonneg=True), cp.Variable()
    lengths = [cp.sum_squares(X.T @ cp.multiply(y, alpha)) / 2 <= theta for y in Y]
    goal = cp.Maximize(cp.sum(alpha) - theta)
    return cp.Problem(goal, [alpha <= C, *lengths]).solve(solver=cp.CLARABEL)


def test_allowed_counts():
    sizes = np.array([5, 5, 4, 3, 0, 5, 5])
    shares = np.array([0.6, 0.5, 0.5, 1 / 3, 0.5, 0.54, 0.46])
    for epsilon, wanted in (
        (0.0, ([3, 2, 2, 1, 0, 3, 2], [3, 3, 2, 1, 0, 3, 2])),
        (0.2, ([2, 2, 2, 1, 0, 2, 2], [4, 3, 2, 1, 0, 3, 3])),
        (1.0, ([0] * 7, sizes)),
    ):
        assert_array_equal(conv_svm.allowed_counts(sizes, shares, epsilon), wanted)


@pytest.mark.equation("eq-conv-svm-bag-step")
@pytest.mark.parametrize("epsilon", [0.0, 0.3])
def test_best_labels_are_the_best_of_all(epsilon):
    _, bags, counts, Y = small(epsilon=epsilon)
    for seed in range(30):
        scores = np.random.default_rng(seed).normal(size=10).round(seed % 3)
        found = conv_svm.best_labels(scores, bags, *counts)
        assert (found == Y).all(axis=1).any()
        assert scores @ found == pytest.approx((Y @ scores).max())


@pytest.mark.equation("eq-conv-svm-relaxed")
@pytest.mark.parametrize("C", [0.01, 1.0, 10.0])
def test_the_relaxed_problem_equals_cvxpy(C):
    X, _, _, Y = small()
    best = enumerated(X, Y, C)
    for gram in (None, X @ X.T):
        alpha, mu = conv_svm.solve_relaxed(X, Y, C, gram=gram)
        assert conv_svm.relaxed_value(X, Y, alpha) == pytest.approx(best, rel=1e-5)
        assert (alpha >= 0).all() and (alpha <= C).all()
        assert (mu >= 0).all() and mu.sum() == pytest.approx(1)
    slow = alpha.sum() - max(np.sum(((alpha * y) @ X) ** 2) / 2 for y in Y)
    assert conv_svm.relaxed_value(X, Y, alpha) == pytest.approx(slow)


def test_a_cut_is_the_best_for_single_columns_and_an_ascent_from_there():
    for seed in range(6):
        X, bags, counts, Y = small(seed)
        alpha, columns = np.random.default_rng(seed).random(10), X[:, :2]
        plain = conv_svm.cut(X, columns, alpha, bags, *counts, ascent=False)
        reached = np.abs((plain * alpha) @ columns).max()
        assert reached == pytest.approx(np.abs((Y * alpha) @ columns).max())
        top = conv_svm.climb(X, alpha, plain, bags, *counts)
        up = conv_svm.cut(X, columns, alpha, bags, *counts)
        lengths = conv_svm.quadratics(X, np.array([plain, top, up]), alpha)
        assert (np.diff(lengths) >= -1e-12).all()
        assert len(_solver.violated(X, Y, X, alpha, bags, *counts, True)) == 0
        for y in (top, up):  # no labeling is better along the gradient
            slope = alpha * (X @ ((alpha * y) @ X))
            assert slope @ y == pytest.approx((Y @ slope).max())
    X, _, bags, P = problem(n=200, d=8)
    counts = conv_svm.allowed_counts(np.bincount(bags), P[:, 1], 0.1)
    alpha = np.random.default_rng(0).random(200)
    first = conv_svm.cut(X, X, alpha, bags, *counts, ascent=False)
    found = conv_svm.cut(X, X, alpha, bags, *counts, n_tried=1)
    assert_array_equal(found, conv_svm.climb(X, alpha, first, bags, *counts))


def two_clumps(seed=0, n=120, T=5):
    """Instances and a few labelings, none of them right."""
    rng = np.random.default_rng(seed)
    X = np.hstack([rng.normal(size=(n, 3)), np.ones((n, 1))])
    return X, np.sign(X @ rng.normal(size=(4, T)) + rng.normal(size=(n, T))).T


@pytest.mark.parametrize("C", [1e-4, 0.1, 1.0, 100.0])
def test_the_relaxed_solution_is_proved_by_the_primal_one(C):
    X, Y = two_clumps()
    for Z, gram in ((X, None), (X, X @ X.T), (sp.csr_array(X), None)):
        alpha, mu = conv_svm.solve_relaxed(Z, Y, C, gram=gram, tol=1e-7)
        # One vector of weights a labeling, each penalized by its share.
        W = mu[:, None] * ((Y * alpha) @ X)
        margins = sum(y * (X @ w) for y, w in zip(Y, W, strict=True))
        used = mu > 0
        primal = (np.sum(W[used] ** 2, axis=1) / mu[used]).sum() / 2
        primal += C * np.maximum(0, 1 - margins).sum()
        value = conv_svm.relaxed_value(X, Y, alpha)
        assert value <= primal * (1 + 1e-12) and primal - value <= 1e-5 * primal


def test_the_sign_of_an_eigenvector_is_chosen_by_the_bags(monkeypatch):
    X, y, bags, P = problem()
    usual = ConvSVM().fit(X, bags, P)
    turned = conv_svm.leading_labels
    monkeypatch.setattr(conv_svm, "leading_labels", lambda Y, mu: -turned(Y, mu))
    assert_array_equal(ConvSVM().fit(X, bags, P).coef_, usual.coef_)
    assert usual.score(X, y) > 0.9
    # 6 labels are wrong with the one sign, 16 with the other, though in one of four bags.
    x, bags = np.repeat([1.0, -1.0, 1.0], [18, 2, 6])[:, None], np.arange(26) // 2
    found = np.ones(26), x.T, np.ones(1), [1.0], 0.0
    monkeypatch.setattr(conv_svm, "minimize", lambda *_, **__: found)
    model = ConvSVM(fit_intercept=False)
    model.fit(x, np.maximum(bags - 9, 0), [0.9, 0, 0, 0])
    assert model.coef_[0, 0] > 0


def test_a_warm_start_changes_nothing():
    X, Y = two_clumps()
    nearby = conv_svm.solve_relaxed(X, Y[:3], 1.0)
    far = np.full(120, 0.5), np.array([1.0, 0.0, 0.0])
    cold = conv_svm.solve_relaxed(X, Y, 1.0, tol=1e-8)
    for warm in (nearby, far):
        found = conv_svm.solve_relaxed(X, Y, 1.0, warm=warm, tol=1e-8)
        assert_allclose(found[1], cold[1], atol=1e-3)
        values = [conv_svm.relaxed_value(X, Y, a) for a, _ in (found, cold)]
        assert values[0] == pytest.approx(values[1], rel=1e-7)


def hostile(seed=0, n=60):
    """What people have: few features, duplicates, columns on other scales, equal shares, nothing at all."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    X, bags = rng.normal(size=(n, 4)) + 1.5 * y[:, None], rng.permutation(n) // 6
    return y, {
        "duplicates": (X[rng.integers(0, 8, n)], bags),
        "scales": (X * [1, 10, 0.05, 3], bags),
        "offset": (X + 10, bags),
        "nothing": (0 * X, bags),
        "one bag": (X, 0 * bags),
        "singletons": (X, np.arange(n)),
        "wide": (rng.normal(size=(n, 150)), bags),
    }


@pytest.mark.filterwarnings("ignore::llpbook.base.LLPWarning")
@pytest.mark.parametrize("name", hostile()[1])
def test_no_fit_stops_short(name):
    y, cases = hostile()
    X, bags = cases[name]
    some = np.where(np.arange(60) < 10, y, -1)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        ways = ("linear", some), ("rbf", None)
        for C, (kernel, labels) in product([1e-5, 1.0, 1e4], ways):
            model = ConvSVM(C=C, kernel=kernel, max_cutting_planes=8)
            model.fit(X, bags, label_proportions(y, bags), labels=labels)
            curve = np.array(model.objective_curve_)
            assert (np.diff(curve) <= 1e-3 * curve[0]).all()
            assert model.relaxation_gap_ > -1e-3


@pytest.mark.filterwarnings("error::sklearn.exceptions.ConvergenceWarning")
def test_many_instances_of_which_few_have_weight():
    """All alpha inside make long weights together: from there sixty steps did not do."""
    rng = np.random.default_rng(0)
    y, bags = rng.integers(0, 2, 8_000), rng.permutation(8_000) // 10
    X = np.column_stack([rng.normal(size=(8_000, 2)), np.ones(8_000)])
    X[:, 0] += 1.5 * y - 0.75
    counts = np.bincount(bags, y).astype(int)
    values = conv_svm.minimize(X, bags, counts, counts, 1.0, max_planes=4)[3]
    assert (np.diff(values) < 0).all() and values[-1] > 0


def test_a_fit_that_stops_short_says_so_once(monkeypatch):
    X, _, bags, P = problem()
    monkeypatch.setattr(_interior, "MAX_STEPS", 2)
    with pytest.warns(ConvergenceWarning) as caught:
        ConvSVM().fit(X, bags, P)
    assert len(caught) == 1
    words = r"conv-∝SVM is solved to .* accuracy of (\S*) only, not of 2.0e-04.*tol"
    assert float(re.search(words, str(caught[0].message))[1]) > 0.01


def test_memory_without_a_kernel(monkeypatch):
    """Twice the features of all labelings, or three matrices of all pairs, and moments of features."""
    monkeypatch.setattr(conv_svm, "minimize", None)  # refused before it is called
    for n, T, d, pairs in ((120, 20, 4, 3 * 120**2), (500, 5, 4, 2 * 20 * (500 + 20))):
        X, _, bags, P = problem(n)
        words = f"{n} instances, 3 features, {T} labelings.*max_cutting_planes"
        needs = 8 * (pairs + 6 * n * d + 3 * d**2)
        for share, told in ((0.751, ValueError), (0.749, LLPWarning)):
            has = needs / share
            monkeypatch.setattr(_running, "machine_memory", lambda has=has: has)
            with pytest.raises(told, match=words):
                ConvSVM(max_cutting_planes=T).fit(X, bags, P)


@pytest.mark.equation("eq-conv-svm-cut")
def test_cuts_come_down_to_the_bound_of_all_labelings():
    for seed in range(4):
        X, bags, counts, Y = small(seed)
        best = enumerated(X, Y, 1.0)
        for ascent in (True, False):
            how = {"ascent": ascent, "max_planes": 60, "tol": 0.0}
            values = conv_svm.minimize(X, bags, *counts, 1.0, **how)[3]
            assert values[-1] >= best - 1e-4 * abs(best)
            assert (np.diff(values) <= 1e-5 * abs(best)).all()
            assert not ascent or values[-1] <= best + 0.02 * abs(best)


@pytest.mark.equation("eq-conv-svm-leading")
def test_leading_labels_are_the_leading_eigenvector():
    rng = np.random.default_rng(0)
    Y, mu = rng.choice([-1.0, 1.0], (4, 12)), rng.dirichlet(np.ones(4))
    values, vectors = np.linalg.eigh((Y.T * mu) @ Y)
    found = conv_svm.leading_labels(Y, mu)
    slow = np.sqrt(values[-1]) * vectors[:, -1]
    assert_allclose(np.outer(found, found), np.outer(slow, slow), atol=1e-9)
    one = conv_svm.leading_labels(Y[:1], np.ones(1))
    assert_allclose(np.abs(one), 1)


def test_the_relaxed_value_bounds_every_labeling():
    X, _, _, Y = small()
    relaxed = enumerated(X, Y, 1.0)
    values = [conv_svm.labeled_value(X, y, 1.0) for y in Y[::7]]
    assert min(values) >= relaxed - 1e-6
    y = Y[0]
    w = cp.Variable(3)
    hinges = cp.sum(cp.pos(1 - cp.multiply(y, X @ w)))
    goal = cp.Minimize(cp.sum_squares(w) / 2 + hinges)
    assert values[0] == pytest.approx(cp.Problem(goal).solve(solver=cp.CLARABEL))


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_bags_of_size_one_are_the_machine_without_intercept(kernel):
    X, y, *_ = problem()
    model = ConvSVM(kernel=kernel, gamma=0.3).fit(X, np.arange(120), y.astype(float))
    gram = X @ X.T if kernel == "linear" else rbf_kernel(X, gamma=0.3)
    assert model.n_cutting_planes_ == 1 and abs(model.relaxation_gap_) < 1e-4
    assert model.lower_bound_ == pytest.approx(model.upper_bound_, rel=1e-3)
    svc = SVC(kernel="precomputed").fit(gram + 1, y)  # its intercept is free
    assert np.mean(svc.predict(gram + 1) == model.predict(X)) > 0.95


def test_only_longer_labelings_are_added_and_no_matrix_of_instances(monkeypatch):
    matrices, solve, add = [], _solver.solve_relaxed, _solver.violated

    def watched(X, Y, C, *, gram, **rest):
        matrices.append(gram is not None)
        return solve(X, Y, C, gram=gram, **rest)

    def longer(X, Y, columns, alpha, *rest):
        new = add(X, Y, columns, alpha, *rest)
        old = conv_svm.quadratics(X, Y, alpha).max()
        assert (conv_svm.quadratics(X, new, alpha) > old).all()
        return new

    monkeypatch.setattr(_solver, "solve_relaxed", watched)
    monkeypatch.setattr(_solver, "violated", longer)
    for d, wanted in ((3, False), (60, True)):
        X, _, bags, P = problem(n=500, d=d, size=50, gap=0.5)
        model = ConvSVM(tol=0.02).fit(X, bags, P)
        assert matrices.pop() == wanted
        falls = -np.diff(model.objective_curve_) / model.objective_curve_[1:]
        assert (falls[:-1] > 0.02).all() and len(falls) > 2
        assert falls[-1] <= 0.02 or model.n_cutting_planes_ == 20


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_the_gap_is_the_last_fall_of_the_value(kernel):
    X, _, bags, P = problem(gap=0.5)
    for tol in (0.3, 0.02, 1e-99):
        model = ConvSVM(kernel=kernel, max_cutting_planes=8, tol=tol).fit(X, bags, P)
        *_, last, value = model.objective_curve_
        assert model.n_iter_ == len(model.objective_curve_)
        assert model.gap_ in (0.0, pytest.approx((last - value) / value))
        assert model.gap_ <= tol or model.n_cutting_planes_ == 8
    assert model.gap_ > tol
    first = ConvSVM(0.5, kernel=kernel, max_cutting_planes=1).fit(X, bags, P)
    (value,) = first.objective_curve_
    assert first.gap_ == pytest.approx((60 - value) / value) and first.n_iter_ == 1


def test_the_main_columns_hold_their_share_and_no_more():
    X = np.random.default_rng(0).normal(size=(50, 6)) * np.arange(1, 7)
    squares = np.linalg.svd(X, compute_uv=False) ** 2
    kept = (np.cumsum(squares) < 0.9 * squares.sum()).sum() + 1
    for Z in (X, sp.csr_array(X)):
        found = np.sum(conv_svm.main_columns(Z) ** 2, axis=0)
        assert_allclose(found, squares[:kept])


def test_known_labels_and_the_gap():
    X, y, bags, P = problem()
    known = ConvSVM(epsilon=1.0).fit(X, bags, P, labels=y)
    assert known.n_cutting_planes_ == 1 and known.score(X, y) > 0.95
    unknown = ConvSVM(0.3).fit(X, bags, P)
    assert 0 <= unknown.relaxation_gap_ <= 1
    counts = conv_svm.allowed_counts(np.full(20, 6), P[:, 1], 0)
    labels = conv_svm.best_labels(unknown.decision_function(X), bags, *counts)
    value = conv_svm.labeled_value(np.column_stack([X, np.ones(120)]), labels, 0.3)
    assert unknown.labeled_value_ == pytest.approx(value)
    value = unknown.labeled_value_ * (1 - unknown.relaxation_gap_)
    assert value == pytest.approx(unknown.objective_curve_[-1])


@pytest.mark.equation("eq-conv-svm-certified")
@pytest.mark.parametrize("C", [0.1, 10.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.3])
def test_certified_relaxation_and_labelings_are_in_order(C, epsilon):
    every = np.array(list(product([-1.0, 1.0], repeat=9)))
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = np.column_stack([rng.normal(size=(9, 1 + seed % 4)), np.ones(9)])
        bags, shares = np.repeat([0, 1, 2], 3), rng.integers(0, 4, 3) / 3
        rest = bags, *conv_svm.allowed_counts(np.full(3, 3), shares, epsilon)
        counts = np.array([np.bincount(bags, y > 0, 3) for y in every])
        inside = ((counts >= rest[1]) & (counts <= rest[2])).all(axis=1)
        Y = every[inside]
        alpha = conv_svm.solve_relaxed(X, Y, C, tol=1e-9)[0]
        optimum = conv_svm.relaxed_value(X, Y, alpha)
        best = min(conv_svm.labeled_value(X, y, C) for y in Y)
        assert optimum <= best * (1 + 1e-5)
        for a in (alpha, np.full(9, C), C * rng.uniform(size=9), np.zeros(9)):
            certified = conv_svm.certified_value(X, a, *rest, C)
            assert 0 <= certified <= optimum * (1 + 1e-5)
            t = np.geomspace(1e-6, 1, 4001) * C / max(a.max(), 1e-9)  # multiples of a
            squares = np.sum(conv_svm.longest_columns(X, a, *rest) ** 2)
            best_multiple = (t * a.sum() - t**2 * squares / 2).max()
            assert certified == pytest.approx(best_multiple, rel=1e-4)
        for max_cutting_planes in (1, 2, 20):
            options = {"C": C, "epsilon": epsilon, "fit_intercept": False}
            model = ConvSVM(max_cutting_planes=max_cutting_planes, **options)
            with warnings.catch_warnings(action="ignore"):
                if 0 < (P := shares).sum() < 3 and len(set(shares)) > 1:
                    model.fit(X, bags, P)
                    assert model.lower_bound_ <= optimum * (1 + 1e-5)
                    assert model.upper_bound_ >= optimum * (1 - 1e-3)


def test_lengths_along_columns_by_brute_force():
    rng = np.random.default_rng(3)
    X, alpha, bags = rng.normal(size=(8, 4)), rng.uniform(size=8), np.arange(8) // 4
    fewest, most = np.array([1, 2]), np.array([2, 2])
    Y = np.array(list(product([-1.0, 1.0], repeat=8)))
    counts = np.array([np.bincount(bags, y > 0, 2) for y in Y])
    Y = Y[((counts >= fewest) & (counts <= most)).all(axis=1)]
    slow = np.abs(Y @ (alpha[:, None] * X)).max(axis=0)
    for form in (X, sp.csr_array(X)):
        found = conv_svm.longest_columns(form, alpha, bags, fewest, most)
        assert_allclose(found, slow)
