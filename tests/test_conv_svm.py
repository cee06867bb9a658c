"""ConvSVM against cvxpy with every labelling enumerated, brute force, and what must hold of a relaxation."""

from itertools import product

import cvxpy as cp
import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from llpbook import conv_svm
from llpbook.conv_svm import ConvSVM
from llpbook.proportions import label_proportions


def problem(n=120, d=3, size=6, gap=2.5, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    X = rng.normal(size=(n, d)) + gap * (y[:, None] - 0.5)
    bags = rng.permutation(n) // size
    return X, y, bags, label_proportions(y, bags, classes=[0, 1])


def small(seed=0, epsilon=0.0):
    """Ten instances in two bags, and all labellings that agree."""
    rng = np.random.default_rng(seed)
    X, bags, sizes = rng.normal(size=(10, 3)), np.repeat([0, 1], 5), np.array([5, 5])
    counts = list(conv_svm.allowed_counts(sizes, np.array([0.6, 0.2]), epsilon))
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


@pytest.mark.equation("eq-conv-svm-counts")
def test_allowed_counts():
    sizes = np.array([5, 5, 4, 3, 0])
    shares = np.array([0.6, 0.5, 0.5, 1 / 3, 0.5])
    for epsilon, wanted in (
        (0.0, ([3, 2, 2, 1, 0], [3, 3, 2, 1, 0])),
        (0.2, ([2, 2, 2, 1, 0], [4, 3, 2, 1, 0])),
        (1.0, ([0] * 5, sizes)),
    ):
        for found, bound in zip(
            conv_svm.allowed_counts(sizes, shares, epsilon), wanted, strict=True
        ):
            np.testing.assert_array_equal(found, bound)


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
        alpha, mu = conv_svm.solve_relaxed(X, Y, C, gram)
        assert conv_svm.relaxed_value(X, Y, alpha) == pytest.approx(best, rel=1e-5)
        assert (alpha >= 0).all() and (alpha <= C).all()
        assert (mu >= 0).all() and mu.sum() == pytest.approx(1)
    slow = alpha.sum() - max(np.sum(((alpha * y) @ X) ** 2) / 2 for y in Y)
    assert conv_svm.relaxed_value(X, Y, alpha) == pytest.approx(slow)


@pytest.mark.equation("eq-conv-svm-cut")
def test_cuts_come_down_to_the_bound_of_all_labellings():
    for seed in range(4):
        X, bags, counts, Y = small(seed)
        best = enumerated(X, Y, 1.0)
        found = {
            ascent: conv_svm.minimise(X, bags, *counts, 1.0, ascent, 60, 0.0)[3]
            for ascent in (True, False)
        }
        for values in found.values():
            assert values[-1] >= best - 1e-4 * abs(best)
            assert (np.diff(values) <= 1e-5 * abs(best)).all()
        assert found[True][-1] <= best + 0.02 * abs(best)


@pytest.mark.equation("eq-conv-svm-leading")
def test_leading_labels_are_the_leading_eigenvector():
    rng = np.random.default_rng(0)
    Y, mu = rng.choice([-1.0, 1.0], (4, 12)), rng.dirichlet(np.ones(4))
    values, vectors = np.linalg.eigh((Y.T * mu) @ Y)
    found = conv_svm.leading_labels(Y, mu)
    slow = np.sqrt(values[-1]) * vectors[:, -1]
    np.testing.assert_allclose(np.outer(found, found), np.outer(slow, slow), atol=1e-9)
    one = conv_svm.leading_labels(Y[:1], np.ones(1))
    np.testing.assert_allclose(np.abs(one), 1)


@pytest.mark.equation("eq-conv-svm-labelled")
def test_the_relaxed_value_bounds_every_labelling():
    X, _, _, Y = small()
    relaxed = enumerated(X, Y, 1.0)
    values = [conv_svm.labelled_value(X, y, 1.0) for y in Y[::7]]
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
    assert model.n_iter_ == 1 and abs(model.relaxation_gap_) < 1e-4
    svc = SVC(kernel="precomputed").fit(gram + 1, y)  # its intercept is free
    assert np.mean(svc.predict(gram + 1) == model.predict(X)) > 0.95


def test_a_linear_kernel_is_the_linear_method():
    X, _, bags, P = problem()
    primal = ConvSVM(max_cuts=4).fit(X, bags, P)
    dual = ConvSVM(max_cuts=4, kernel="precomputed").fit(X @ X.T, bags, P)
    assert dual.values_[-1] == pytest.approx(primal.values_[-1], rel=0.05)


def test_known_labels_and_the_gap():
    X, y, bags, P = problem()
    known = ConvSVM().fit(X, bags, P, labels=y)
    assert known.n_iter_ == 1 and known.score(X, y) > 0.95
    unknown = ConvSVM().fit(X, bags, P)
    assert 0 <= unknown.relaxation_gap_ <= 1
    value = unknown.labelled_value_ * (1 - unknown.relaxation_gap_)
    assert value == pytest.approx(unknown.values_[-1])


def test_two_bags_whose_means_lie_on_the_wrong_sides():
    """Figure 1 of yu2013."""
    rng = np.random.default_rng(0)
    y = np.repeat([1, 0, 1, 0], [30, 20, 20, 30])
    x = np.repeat([1.0, -6.0, 6.0, -1.0], [30, 20, 20, 30])
    X = np.column_stack([x, np.zeros(100)]) + 0.1 * rng.normal(size=(100, 2))
    model = ConvSVM().fit(X, np.repeat([0, 1], 50), [0.6, 0.4])
    assert model.score(X, y) == 1
