"""AOC kernel k-means against brute force over labelings, the relaxation by cvxpy, and its limits."""

import re
import tracemalloc
import warnings
from itertools import product

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.neighbors import NearestCentroid

from llpbook import kernel_kmeans as kk
from llpbook.base import LLPWarning, NotIdentifiableError, _predictions, _running
from llpbook.kernel_kmeans import AOCKernelKMeans
from llpbook.proportions import averaging_matrix, label_proportions


def problem(n=200, size=8, n_classes=2, gap=4.0, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    X = rng.normal(size=(n, 2)) + gap * np.array([[0, 0], [1, 0], [0, 1]])[y]
    bags = rng.permutation(n) // size
    return X, y, bags, label_proportions(y, bags, classes=range(n_classes))


def slow_objective(X, labels, bags, P, price):
    """The definition, with the features themselves."""
    value = 0.0
    for j in np.unique(labels):
        value += ((X[labels == j] - X[labels == j].mean(axis=0)) ** 2).sum()
    shares = label_proportions(labels, bags, n_bags=len(P), classes=range(P.shape[1]))
    for k in np.unique(bags):
        value += price * np.sum(bags == k) * np.sum((shares[k] - P[k]) ** 2)
    return value


@pytest.mark.equation("eq-aoc-objective", "eq-aoc-distances", "eq-aoc-variance")
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_kernel_form_is_the_definition(n_classes):
    X, y, bags, P = problem(n_classes=n_classes)
    gram, P_, P = X @ X.T, P, np.vstack([P, P[:1]])  # the last has no instances
    found = kk.objective(gram, y, bags, P, 0.7)
    P[:5] = P[:5][:, ::-1]
    for value, shares in ((found, P_), (kk.objective(gram, y, bags, P, 0.7), P)):
        assert value == pytest.approx(slow_objective(X, y, bags, shares, 0.7))
    distances, weights, norms = kk.class_distances(gram, y, n_classes)
    means = np.array([X[y == j].mean(axis=0) for j in range(n_classes)])
    slow = ((X[:, None] - means) ** 2).sum(axis=2) - (X**2).sum(axis=1)[:, None]
    assert_allclose(distances, slow, atol=1e-9)
    assert_allclose(weights.T @ X, means)
    assert_allclose(norms, (means**2).sum(axis=1))
    assert kk.kernel_variance(gram) == pytest.approx(X.var(axis=0).sum())


def penalized(distances, labels, bags, P, price):
    Z = np.eye(P.shape[1])[labels]
    sizes = np.bincount(bags, minlength=len(P))
    gap = averaging_matrix(bags, n_bags=len(P)) @ Z - P
    return (Z * distances).sum() + price * sizes @ (gap**2).sum(axis=1)


@pytest.mark.equation("eq-aoc-labels")
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("price", [0.0, 1.0, 10.0])
def test_labels_are_the_best_of_all(n_classes, price):
    rng = np.random.default_rng(0)
    for _ in range(3):
        bags = rng.permutation([0] * 6 + [2] * 3 + [3])
        P = rng.dirichlet(np.ones(n_classes), 4)
        distances = rng.normal(size=(10, n_classes))
        labels = kk.label_bags(distances, bags, P, price)
        for k in (0, 2, 3):
            rows, one = bags == k, np.zeros((bags == k).sum(), int)
            every = map(np.array, product(range(n_classes), repeat=rows.sum()))
            values = [penalized(distances[rows], y, one, P[[k]], price) for y in every]
            found = penalized(distances[rows], labels[rows], one, P[[k]], price)
            assert found == pytest.approx(min(values))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_no_iteration_climbs_and_the_end_is_a_fixed_point(n_classes):
    X, _, bags, P = problem(n_classes=n_classes, gap=1.0)
    gram = rbf_kernel(X, gamma=0.5)
    labels = np.random.default_rng(2).integers(0, n_classes, 200)
    values = [kk.objective(gram, labels, bags, P, 0.2)]
    for _ in range(30):
        labels, _, gap = kk.descend(gram, labels, bags, P, 0.2, max_iter=1)
        values.append(kk.objective(gram, labels, bags, P, 0.2))
    assert gap == 0 and (np.diff(values) < 1e-9).all() and values[-1] < values[0]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_separated_classes_are_found(n_classes):
    X, y, bags, P = problem(n_classes=n_classes, gap=8.0)
    told = 0.9 * P + 0.1 / n_classes  # the penalty is not 0
    model = AOCKernelKMeans(0.5, random_state=0).fit(X, bags, told)
    assert model.score(X, y) > 0.99
    assert_array_equal(model.labels_, y)
    slow = slow_objective(X, y, bags, told, 0.5 * X.var(axis=0).sum())
    assert model.objective_ == pytest.approx(slow)


def test_bags_of_size_one_are_the_nearest_class_mean():
    X, y, *_ = problem(gap=2.0)
    model = AOCKernelKMeans(C_p=100, random_state=0)
    model.fit(X, np.arange(200), y.astype(float))
    supervised = NearestCentroid().fit(X, y)
    assert_array_equal(model.predict(X), supervised.predict(X))


@pytest.mark.parametrize("gamma", [0.03, 0.6])
def test_the_kernel_has_the_coefficient_given(gamma):
    X, y, bags, P = problem()
    model = AOCKernelKMeans(kernel="rbf", gamma=gamma).fit(X, bags, P, labels=y)
    spread = kk.objective(rbf_kernel(X, gamma=gamma), y, bags, P, 0.0)
    assert model.objective_ == pytest.approx(spread)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_known_labels_are_held(n_classes):
    # The best labels among those that agree with what is known, though two known ones are wrong and far away.
    X, y, bags, P = problem(n=60, size=6, n_classes=n_classes, gap=3.0)
    known = np.where(np.arange(60) % 4 == 0, y, -1)
    known[:2] = (y[:2] + 1) % n_classes
    held = known >= 0
    model = AOCKernelKMeans(random_state=0).fit(X, bags, P, labels=known)
    assert_array_equal(model.labels_[held], known[held])
    assert np.mean(model.labels_[~held] == y[~held]) > 0.9
    gram = X @ X.T
    distances, *_ = kk.class_distances(gram, model.labels_, n_classes)
    price = kk.kernel_variance(gram)
    for k in range(10):
        rows, one = bags == k, np.zeros(6, int)
        every = map(np.array, product(range(n_classes), repeat=6))
        agree = held[rows]
        values = [
            penalized(distances[rows], z, one, P[[k]], price)
            for z in every
            if (z[agree] == known[rows][agree]).all()
        ]
        found = penalized(distances[rows], model.labels_[rows], one, P[[k]], price)
        assert found == pytest.approx(min(values))
    known[3], absent = n_classes, np.column_stack([P, np.zeros(10)])
    model = AOCKernelKMeans(random_state=0).fit(X, bags, absent, labels=known)
    assert model.labels_[3] == n_classes
    all_known = AOCKernelKMeans(C_p=0.0, random_state=0).fit(X, bags, P, labels=y)
    supervised = NearestCentroid().fit(X, y)
    assert_array_equal(all_known.predict(X), supervised.predict(X))


def test_a_few_labels_name_classes_whose_shares_are_equal():
    X, y, *_ = problem(gap=8.0)
    known = np.where(np.arange(200) < 6, y, -1)
    halves = np.full(100, 0.5)
    for seed in range(5):
        model = AOCKernelKMeans(n_init=3, random_state=seed)
        assert model.fit(X, np.arange(200) // 2, halves, labels=known).score(X, y) > 0.9
    with pytest.raises(ValueError, match="equal shares in every bag"):
        AOCKernelKMeans().fit(X, np.arange(200) // 2, halves)
    with pytest.raises(ValueError, match="equal shares in every bag"):
        # The bag whose shares differ is empty.
        AOCKernelKMeans().fit(X, np.arange(200) // 2, np.append(halves, 0.9))


def test_counts_that_are_not_whole_are_rounded_at_random():
    rng = np.random.default_rng(5)
    bags = rng.permutation(np.repeat(np.arange(40), 5))
    P = rng.dirichlet(np.ones(3), 41)  # the last bag is empty
    P[0] = 0.2, 0.6, 0.2
    total = np.zeros((41, 3))
    for _ in range(300):
        labels = kk.random_labels(rng.uniform(size=(200, 3)), bags, P)
        counts = np.bincount(bags * 3 + labels, minlength=123).reshape(41, 3)
        assert (np.abs(counts - 5 * P)[:40] < 1).all()
        assert_array_equal(counts[0], [1, 3, 1])
        total += counts
    assert_allclose(total[:40] / 300, 5 * P[:40], atol=0.15)


def test_a_class_with_less_than_half_an_instance_in_each_bag_does_not_vanish():
    rng = np.random.default_rng(6)
    y = (rng.uniform(size=400) < 0.15).astype(int)
    X = rng.normal(size=(400, 2)) + 5 * y[:, None]
    p = np.clip(0.15 + 0.02 * rng.normal(size=200), 0, 1)  # rounds to none in pairs
    model = AOCKernelKMeans(random_state=0).fit(X, np.arange(400) // 2, p)
    assert model.score(X, y) > 0.98


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_neither_offset_nor_scale_matter(kernel):
    X, _, bags, P = problem(gap=5.0)
    given = AOCKernelKMeans(kernel=kernel, random_state=0).fit(X, bags, P)
    for moved in (X + 1.7e9, 1e7 * X):  # seconds since 1970; incomes
        absent = np.column_stack([P, np.zeros(len(P))])
        model = AOCKernelKMeans(kernel=kernel, gamma="scale", random_state=0)
        model.fit(moved, bags, absent)
        assert np.mean(model.predict(moved) == given.predict(X)) > 0.99


@pytest.mark.parametrize("kernel", ["linear", "rbf", "laplacian", "callable"])
def test_instances_that_are_all_alike_are_refused(kernel):
    X, _, bags, P = problem()
    if kernel == "callable":
        kernel = lambda X, Z: np.full((len(X), len(Z)), 0.7)  # noqa: E731
    for Z in (np.ones((200, 1)), np.zeros((200, 2)), np.tile(0.1 + X[0], (200, 1))):
        words = "all instances at one point: .* kernel is (.*) up to rounding"
        with pytest.raises(NotIdentifiableError, match=words) as said:
            AOCKernelKMeans(kernel=kernel, random_state=0).fit(Z, bags, P)
        assert abs(float(re.search(words, str(said.value))[1])) < 1e-9
    distances = cdist(X, X, "sqeuclidean")  # -2 times the variance
    words = f"variance {-2 * X.var(axis=0).sum():.3g} in .* similarities, not distances"
    with pytest.raises(ValueError, match=words):
        AOCKernelKMeans(kernel="precomputed").fit(distances, bags, P)


def test_degenerate_features_give_finite_scores_or_an_error():
    X, y, bags, P = problem(gap=8.0)
    one_differs = np.where(np.arange(200)[:, None] < 199, 1.0, X)
    for Z in (1e-150 * X, 1e-160 * X, np.column_stack([X, np.ones(200)]), one_differs):
        model = AOCKernelKMeans(random_state=0).fit(Z, bags, P)
        assert np.isfinite(model.decision_function(Z)).all()
        assert Z is one_differs or model.score(Z, y) > 0.99
    with (
        np.errstate(invalid="ignore"),
        pytest.raises(NotIdentifiableError, match="scale the features, or choose"),
    ):
        AOCKernelKMeans(kernel="rbf").fit(1e-160 * X, bags, P)  # gamma overflows


def test_a_class_that_vanishes_is_said():
    X, _, bags, _ = problem(n=60, size=6)
    X[0] = 40  # the only cluster that is worth its cost
    P = np.column_stack([np.full(10, 0.5), np.full(10, 0.47), np.full(10, 0.03)])
    P[:5, :2] = P[:5, 1::-1]
    model = AOCKernelKMeans(C_p=1e-9, n_init=3, random_state=0)
    start = np.where(np.arange(60) == 0, 0, 1)
    model._starts = lambda bags, P: iter([start])
    P = pd.DataFrame(P, columns=[10, 20, 30])
    with pytest.warns(LLPWarning, match=r"no instance to \[30\].*raise C_p"):
        model.fit(X, bags, P)
    assert not (model.predict(X) == 30).any()


def test_a_fit_that_stops_short_says_after_how_many_iterations():
    X, _, bags, P = problem(gap=1.0)
    with warnings.catch_warnings(action="error"):
        free = AOCKernelKMeans(n_init=1, random_state=0).fit(X, bags, P)
        enough = clone(free).set_params(max_iter=free.n_iter_).fit(X, bags, P)
    most = free.n_iter_ - 1  # the last iteration changes nothing
    short = clone(free).set_params(max_iter=most)
    with pytest.warns(ConvergenceWarning, match=f"stopped after {most} iterations; ra"):
        short.fit(X, bags, P)
    assert free.gap_ == enough.gap_ == 0 < short.gap_ and most > 1
    before = clone(free).set_params(max_iter=most - 1)
    with pytest.warns(ConvergenceWarning):
        before.fit(X, bags, P)
    assert short.gap_ == np.mean(before.labels_ != short.labels_)


@pytest.mark.parametrize("kernel", ["linear", "laplacian", "precomputed"])
def test_the_stated_memory_is_the_peak_and_predictions_need_a_block(
    kernel, monkeypatch
):
    X, _, bags, P = problem(n=1000)
    X = X @ X.T if kernel == "precomputed" else X
    model = AOCKernelKMeans(kernel=kernel, n_init=2, random_state=0)
    tracemalloc.start()
    model.fit(X, bags, P)
    peak = tracemalloc.get_traced_memory()[1] / (8 * 1000**2)
    said = kk.GIVEN_COPIES if kernel == "precomputed" else kk.GRAM_COPIES
    assert 0.85 * said < peak < 1.05 * said
    for share, told in ((0.76, ValueError), (0.74, LLPWarning)):
        has = 8 * said * 1000**2 / share
        monkeypatch.setattr(_running, "machine_memory", lambda has=has: has)
        with pytest.raises(told, match="AOCKernelKMeans on 1000 instances"):
            clone(model).fit(X, bags, P)
    whole = model.decision_function(X)
    monkeypatch.setattr(_predictions, "BLOCK", 7 * 1000)
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    assert_allclose(model.decision_function(X), whole)
    if kernel != "precomputed":
        assert tracemalloc.get_traced_memory()[1] - before < 0.1 * 8 * 1000**2
    tracemalloc.stop()


def test_of_objectives_that_differ_by_rounding_the_first_is_kept(monkeypatch):
    X, _, bags, P = problem()
    values = iter([2.0, 1.0, 1 + 1e-12, 1 - 1e-12, 1.5])
    monkeypatch.setattr(kk, "objective", lambda *args: next(values))
    numbers = iter(range(5))
    descend = lambda gram, start, *_, **__: (start, next(numbers), True)  # noqa: E731
    monkeypatch.setattr(kk, "descend", descend)
    model = AOCKernelKMeans(n_init=5, random_state=0).fit(X, bags, P)
    assert model.n_iter_ == 1 and model.objective_ == 1.0
