"""The likelihood of counts against a sum over all labelings, its limits, and the learners that climb it."""

from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import gaussian_bags
from scipy.optimize import approx_fprime
from scipy.special import expit, logit, softmax
from scipy.stats import binom
from sklearn.linear_model import LogisticRegression

from llpbook import count_likelihood as cl
from llpbook._linear import BagCounts, LinearObjective, bag_counts, tilt_classes
from llpbook._linear._learners import held_out_bags
from llpbook.bag_losses import ProportionLoss
from llpbook.base import LLPWarning
from llpbook.count_likelihood import CountBoosting, CountLogistic, CountLoss, restricted
from llpbook.mean_map import MeanMap
from llpbook.proportions import label_proportions

problem = partial(gaussian_bags, d=3)


def drawn(size, n_bags, scale=1.5, error=0.0, n_classes=None, seed=0):
    """Scores, and counts of labels drawn from them."""
    rng = np.random.default_rng(seed)
    bags = rng.permutation(np.repeat(np.arange(n_bags), size))
    sizes = np.full(n_bags, size)
    if n_classes is None:
        f = scale * rng.normal(size=len(bags))
        counts = np.bincount(bags, rng.random(len(f)) < expit(f), n_bags)
        return f, BagCounts(bags, sizes, counts, np.full(n_bags, error))
    F = scale * rng.normal(size=(len(bags), n_classes))
    y = [rng.choice(n_classes, p=s) for s in softmax(F, axis=1)]
    counts = sizes[:, None] * label_proportions(y, bags, classes=range(n_classes))
    centered = np.eye(n_classes) - 1 / n_classes
    errors = np.tile(error * centered, (n_bags, 1, 1))
    return F, BagCounts(bags, sizes, counts, errors)


def slow_posterior(f, count, error=0.0):
    """The definition: every labeling of one bag, weighed by how well its count explains what was said."""
    total, posterior = 0.0, np.zeros(len(f))
    for y in map(np.array, product([0, 1], repeat=len(f))):
        off = abs(y.sum() - count)
        weight = np.exp(-(off**2) / (2 * error)) if error else max(0, 1 - off)
        p = weight * np.prod(np.where(y, expit(f), expit(-f)))
        total, posterior = total + p, posterior + p * y
    return np.log(total), posterior / total


def slow_classes(F, counts):
    total, posterior = 0.0, np.zeros(F.shape)
    S = softmax(F, axis=1)
    for y in map(np.array, product(range(F.shape[1]), repeat=len(F))):
        if (np.bincount(y, minlength=F.shape[1]) == counts).all():
            p = np.prod(S[np.arange(len(F)), y])
            total += p
            posterior[np.arange(len(F)), y] += p
    return np.log(total), posterior / total


# --- the equations -----------------------------------------------------------------------------------------


@pytest.mark.equation("eq-counts-tilt")
@pytest.mark.parametrize("error", [0.0, 0.5])
@pytest.mark.parametrize("scale", [0.1, 3.0, 30.0])
def test_the_tilt_makes_the_expected_count_the_observed_one(scale, error):
    f, known = drawn(12, 2000, scale, error)
    t = cl.tilt(f, known)
    pure = (known.counts % 12 == 0) & (error == 0)
    assert (np.isinf(t) == pure).all()
    found = known.sums(expit(f + t[known.bags]))
    finite = np.where(np.isfinite(t), t, 0)
    assert_allclose(found + error * finite, known.counts, rtol=0, atol=2e-11)


@pytest.mark.equation("eq-counts-tilted", "eq-counts-forward", "eq-counts-posterior")
@pytest.mark.parametrize("error", [0.0, 0.6])
@pytest.mark.parametrize("scale", [0.3, 3.0, 12.0])
def test_small_bags_are_exact(scale, error):
    rng = np.random.default_rng(1)
    for size in (1, 2, 5, 8):
        f, known = drawn(size, 12, scale, error, seed=size)
        said = known.counts + rng.choice([0, 0.3], 12) * (known.counts < size)
        known = replace(known, counts=said)
        value, posterior = cl.count_posterior(f, known, exact_up_to=size)
        for k in range(12):
            slow, q = slow_posterior(f[known.bags == k], said[k], error)
            assert value[k] == pytest.approx(slow, abs=1e-6)
            assert_allclose(posterior[known.bags == k], q, atol=1e-7)


@pytest.mark.parametrize("laplace", [True, False])
def test_shares_with_noise_against_the_sum_over_all_counts(laplace):
    # Counts may be outside of what is possible.
    f, sizes = np.random.default_rng(0).normal(size=15), np.array([1, 3, 5, 6])
    bags, c, tau = np.repeat(np.arange(4), sizes), [-0.7, 1.3, 6.2, 2.0], [0.5, 2, 1, 3]
    known = BagCounts(bags, sizes, np.array(c), np.array(tau), laplace)
    # With Laplace noise bags of any size are exact.
    value, posterior = cl.count_posterior(f, known, 0 if laplace else 20)
    for k in range(4):
        total, q, s = 0.0, 0.0, expit(f[bags == k])
        for y in map(np.array, product([0, 1], repeat=sizes[k])):
            off = abs(y.sum() - c[k])
            fits = -off / np.sqrt(tau[k] / 2) if laplace else -(off**2) / (2 * tau[k])
            p = np.exp(fits) * np.prod(np.where(y, s, 1 - s))
            total, q = total + p, q + p * y
        assert value[k] == pytest.approx(np.log(total), abs=1e-7)
        assert_allclose(posterior[bags == k], q / total, atol=1e-9)


def test_laplace_noise_and_steep_scores_that_contradict_it():
    # The tails of the noise are heavy: far counts must not outweigh near ones on the way.
    f = 30 * np.random.default_rng(0).normal(size=50)
    known = BagCounts(np.zeros(50, int), np.array([50]), *np.array([[4.3], [0.02]]))
    value, posterior = cl.count_posterior(f, replace(known, laplace=True))
    chances = np.ones(1)  # of each count
    for p in expit(f):
        chances = np.convolve(chances, [1 - p, p])
    weights = np.exp(-np.abs(np.arange(51) - 4.3) / 0.1)
    assert value[0] == pytest.approx(np.log(chances @ weights), abs=1e-6)
    expected = np.arange(51) @ (chances * weights) / (chances @ weights)
    assert posterior.sum() == pytest.approx(expected, abs=1e-6)


def test_laplace_bags_are_computed_in_parts(monkeypatch):
    f, known = drawn(30, 7, error=9.0)
    known = replace(known, laplace=True)
    whole = cl.count_posterior(f, known)
    for cells in (1, 2500):  # a bag, or two, at a time
        monkeypatch.setattr(cl._binary, "EXACT_CELLS", cells)
        for one, other in zip(cl.count_posterior(f, known), whole, strict=True):
            assert_allclose(one, other, atol=1e-10)


def test_noise_and_known_labels():
    X, y, bags, P = gaussian_bags(n=240, size=6, apart=0.5)
    rng = np.random.default_rng(0)
    noisy = P[:, 1] + rng.laplace(scale=0.5, size=40)  # most shares are impossible
    assert noisy.min() < 0 and noisy.max() > 1
    errors = np.full(40, 0.5 * np.sqrt(2))
    options = {"C": 1.0, "proportion_errors": errors, "proportion_noise": "laplace"}
    labels = np.where(rng.random(240) < 0.5, y, -1)
    model = CountLogistic(**options).fit(X, bags, noisy, labels=labels)
    alone = CountLogistic(**options).fit(X, bags, noisy)
    assert model.score(X, y) > alone.score(X, y) + 0.02
    # As a share of the unlabeled instances whose noise is that of all of them.
    known = labels >= 0
    left = np.maximum(np.bincount(bags[~known], minlength=40), 1)
    counts = 6 * noisy - np.bincount(bags[known], y[known], 40)
    codes = np.where(known, 40 + labels, bags)
    shares = np.append(counts / left, [0.0, 1.0])
    options["proportion_errors"] = np.append(errors * 6 / left, [0.0, 0.0])
    by_hand = CountLogistic(**options).fit(X, codes, shares)
    assert_allclose(model.coef_, by_hand.coef_, atol=1e-3)


@pytest.mark.equation("eq-counts-saddlepoint", "eq-counts-saddle-posterior")
@pytest.mark.parametrize("scale, off", [(0.5, 5e-4), (1, 6e-4), (2, 1.5e-3)])
def test_the_saddlepoint_is_near_for_bags_of_fifty(scale, off):
    f, known = drawn(50, 60, scale)
    exact, q = cl.count_posterior(f, known, exact_up_to=50)
    value, near = cl.count_posterior(f, known, exact_up_to=0)
    assert_allclose(value, exact, atol=0.03)
    assert_allclose(near, q, atol=off)
    tilted = expit(f + cl.tilt(f, known)[known.bags])
    assert np.abs(near - q).max() < np.abs(tilted - q).max() / 8


def test_the_saddlepoint_of_equal_probabilities_is_stirlings_formula():
    # A binomial count at its mean: the error falls with the variance, and a certain count has probability 1.
    for n, c in ((4, 2), (40, 20), (400, 200), (40, 4)):
        known = BagCounts(np.zeros(n, int), *np.array([[n], [c], [0]]))
        log_p, _ = cl.saddlepoint_posterior(np.full(n, c / n), known)
        V = n * (c / n) * (1 - c / n)
        assert abs(log_p[0] - binom.logpmf(c, n, c / n)) < 0.03 / V
    single = BagCounts(np.zeros(3, int), *np.array([[3], [2], [0]]))
    log_p, q = cl.saddlepoint_posterior(np.array([0.0, 1.0, 1.0]), single)
    assert log_p[0] == 0 and (q == [0, 1, 1]).all()


@pytest.mark.parametrize("error", [0.0, 2.0])
@pytest.mark.parametrize("exact_up_to", [0, 10])
def test_the_posterior_minus_the_prior_is_the_gradient(exact_up_to, error):
    f, known = drawn(10, 3, error=error)

    def total(f):
        return cl.count_posterior(f, known, exact_up_to)[0].sum()

    numeric = approx_fprime(f, total, 1e-5)
    q = cl.count_posterior(f, known, exact_up_to)[1]
    assert_allclose(q - expit(f), numeric, atol=2e-4)


def test_an_error_of_the_counts_is_a_wider_count():
    # Against the exact sum over what the true count may have been.
    f, known = drawn(50, 20, error=4.0)
    exact, q = cl.count_posterior(f, known, exact_up_to=50)
    value, near = cl.count_posterior(f, known, exact_up_to=0)
    assert_allclose(value, exact, atol=0.02)
    assert_allclose(near, q, atol=1e-3)
    certain = cl.count_posterior(f, replace(known, errors=np.zeros(20)))[1]
    useless = cl.count_posterior(f, replace(known, errors=np.full(20, 1e9)))[1]
    assert_allclose(useless, expit(f), atol=1e-5)
    assert np.abs(certain - expit(f)).max() > np.abs(q - expit(f)).max() > 1e-3


def tilted_counts(F, known):
    """The expected counts of each bag under the tilted probabilities."""
    pi = softmax(F + tilt_classes(F, known)[known.bags], axis=1)
    return np.column_stack([known.sums(column) for column in pi.T])


@pytest.mark.parametrize("error", [0.0, 0.5])
@pytest.mark.parametrize("scale", [0.3, 3.0, 20.0])
def test_the_tilt_of_several_classes(scale, error):
    F, known = drawn(15, 20, scale, error, n_classes=4)
    T = tilt_classes(F, known)
    assert (np.isinf(T) == ((known.counts == 0) & (error == 0))).all()
    found = tilted_counts(F, known)
    finite = np.where(np.isfinite(T), T, 0)
    found += np.einsum("kij,kj->ki", known.errors, finite)
    assert_allclose(found, known.counts, atol=1e-6)


def test_steep_scores_that_contradict_the_counts_are_tilted_too():
    _, known = drawn(20, 60, n_classes=6)
    rng = np.random.default_rng(0)
    F = 300 * rng.normal(size=(1200, 3)) @ rng.normal(size=(3, 6))
    assert_allclose(tilted_counts(F, known), known.counts, atol=1e-6)


@pytest.mark.parametrize("weights", [(0, -1.5, 1.5), (0, -3, 3), (-2, 1, 1)])
def test_bags_whose_labels_are_all_sure_and_wrong_are_tilted_in_few_steps(weights):
    rng = np.random.default_rng(0)
    bags = np.repeat(np.arange(30), 50)
    x = rng.normal(size=30)[bags] + rng.normal(size=1500)
    y = (np.c_[0 * x, x, 1 - x] + rng.gumbel(size=(1500, 3))).argmax(axis=1)
    known = bag_counts(bags, label_proportions(y, bags))
    found = tilted_counts(np.outer(x, weights), known)
    assert_allclose(found, known.counts, atol=1e-6)


def test_several_classes_against_all_labelings():
    F, known = drawn(7, 12, 0.7, n_classes=3)
    value, q = cl.class_posterior(F, known)
    for k in range(12):
        slow, posterior = slow_classes(F[known.bags == k], known.counts[k])
        assert value[k] == pytest.approx(slow, abs=0.12)
        assert_allclose(q[known.bags == k], posterior, atol=0.06)
    assert_allclose(q.sum(axis=1), 1)


@pytest.mark.parametrize("error", [0.0, 2.0])
def test_two_of_several_classes_are_two_classes(error):
    f, known = drawn(30, 10, error=error)
    counts = np.column_stack([30 - known.counts, known.counts])
    errors = known.errors[:, None, None] * np.array([[1, -1], [-1, 1]])
    two = replace(known, counts=counts, errors=errors)
    value, q = cl.class_posterior(np.column_stack([-f / 2, f / 2]), two)
    expected, posterior = cl.count_posterior(f, known, exact_up_to=0)
    assert_allclose(value, expected, atol=1e-9)
    assert_allclose(q[:, 1], posterior, atol=1e-9)
    absent = np.column_stack([counts, np.zeros(10)])  # a third class that is nowhere
    wide = np.zeros((10, 3, 3))
    wide[:, :2, :2] = errors
    F = np.column_stack([-f / 2, f / 2, np.full(300, 3.0)])
    value, q = cl.class_posterior(F, replace(two, counts=absent, errors=wide))
    present = known.sums(np.log1p(-softmax(F, axis=1)[:, 2]))
    assert_allclose(value, expected + present, atol=1e-9)
    assert_allclose(q, np.column_stack([1 - posterior, posterior, 0 * f]), atol=1e-9)


@pytest.mark.parametrize("error", [0.0, 2.0])
def test_the_gradient_for_several_classes(error):
    F, known = drawn(12, 2, error=error, n_classes=3)

    def total(flat):
        return cl.class_posterior(flat.reshape(F.shape), known)[0].sum()

    numeric = approx_fprime(F.ravel(), total, 1e-5).reshape(F.shape)
    q = cl.class_posterior(F, known)[1]
    assert_allclose(q - softmax(F, axis=1), numeric, atol=2e-4)


def brute_information(f, Z, size):
    """The covariance of the conditional mean of the score of the weights given the count, over all labelings."""
    scores, chances = np.zeros((size + 1, Z.shape[1])), np.zeros(size + 1)
    for y in map(np.array, product([0, 1], repeat=size)):
        p = np.prod(np.where(y, expit(f), expit(-f)))
        scores[y.sum()] += p * ((y - expit(f)) @ Z)
        chances[y.sum()] += p
    return (scores / chances[:, None]).T @ scores


@pytest.mark.equation("eq-counts-information")
def test_the_information_of_a_count_is_the_variance_of_its_score():
    rng = np.random.default_rng(0)
    Z, w = np.column_stack([rng.normal(size=(12, 2)), np.ones(12)]), [[0.6, -0.4, 0.2]]
    f = Z @ w[0]
    known = BagCounts(np.zeros(12, int), *np.array([[12], [5], [0]]))
    found = LinearObjective(CountLoss(), Z, known).at(np.array(w)).information()
    exact = brute_information(f, Z, 12)
    assert_allclose(found, exact, atol=0.03 * exact.max())
    # Nothing about the offset is lost; the first root alone is a lower bound.
    labels = Z.T @ (Z * (expit(f) * expit(-f))[:, None])
    assert_allclose(found[2], labels[2])
    v, noisy = expit(f) * expit(-f), replace(known, errors=np.array([4.0]))
    assert_allclose(cl.count_factors(f, noisy)[0], v / np.sqrt(v.sum() + 4))
    # With intercepts the variance is S = V + 0.49 V^2, and its slope in V is 1 + 0.98 V.
    V, first, second = v.sum(), *cl.count_factors(f, known, 0.7)
    assert_allclose(first, v / np.sqrt(V + 0.49 * V**2))
    slope = (1 + 0.98 * V) / (1 + 0.49 * V)
    assert_allclose(second, cl.count_factors(f, known)[1] * slope)
    assert_allclose(exact[2], labels[2])
    first = known.weighted_sums(cl.count_factors(f, known)[0], Z)
    assert np.linalg.eigvalsh(exact - first.T @ first).min() > -1e-12
    assert np.linalg.eigvalsh(labels - exact).min() > -1e-12


def test_two_columns_have_the_information_of_one_to_first_order():
    f, known = drawn(9, 4)
    counts = np.column_stack([9 - known.counts, known.counts])
    two = replace(known, counts=counts, errors=np.zeros((4, 2, 2)))
    Z = np.random.default_rng(1).normal(size=(36, 2))
    roots = [known.weighted_sums(cl.count_factors(f, known)[0], Z)]
    one = roots[0].T @ roots[0]
    factors = cl.class_factors(np.column_stack([0 * f, f]), two)
    blocks = [known.weighted_sums(a[:, 1], Z) for a in factors]
    assert_allclose(sum(b.T @ b for b in blocks), one, atol=1e-9)


@pytest.mark.equation("eq-counts-objective")
@pytest.mark.parametrize("n_classes", [2, 3])
def test_objective_and_its_gradient(n_classes):
    X, _, bags, P = problem(n=40, n_classes=n_classes)
    known = bag_counts(bags, P)
    at = LinearObjective(CountLoss(), X, known, 1 / 0.7).at
    w = np.random.default_rng(3).normal(size=(1 if n_classes == 2 else 3, 3))
    scores = (X @ w.T)[:, 0] if n_classes == 2 else X @ w.T
    posterior = cl.count_posterior if n_classes == 2 else cl.class_posterior
    slow = -posterior(scores, known)[0].sum() + np.sum(w**2) / 1.4
    assert at(w).value == pytest.approx(slow)
    numeric = approx_fprime(w.ravel(), lambda v: at(v.reshape(w.shape)).value, 1e-6)
    assert_allclose(at(w).gradient.ravel(), numeric, atol=1e-4)


def test_counts_from_shares():
    P = np.array([[0, 1], [0.3, 0.7], [0, 1], [2 / 3, 1 / 3]])
    known = bag_counts(np.array([3, 3, 3, 1]), P)
    assert_array_equal(known.bags, [1, 1, 1, 0])
    assert_array_equal(known.sizes, [1, 3])
    assert_allclose(known.counts, [0.7, 1])
    assert known.counts[1] == 1  # to the last bit
    assert_allclose(known.shares, [[0.3, 0.7], [2 / 3, 1 / 3]])
    errors, rows = np.arange(16.0).reshape(4, 2, 2), np.array([3, 1, 1])
    known = bag_counts(np.array([3, 1]), P, errors, rows[:2])
    assert_array_equal(known.sizes, [1, 3])
    assert_array_equal(known.errors, [7 * 1, 15 * 9])
    three = bag_counts(np.array([1, 3]), np.eye(3)[[0, 1, 2, 0]], np.ones((4, 3, 3)))
    assert_array_equal(three.errors, np.ones((2, 3, 3)))
    bags = np.array([0, 1, 0])
    known = BagCounts(bags, rows[:2] + 1, *np.array([[-1, 5], [2, 3]]), True, rows)
    part, turned = known.part(np.array([True, False])), known.reordered([2, 0, 1])
    assert [*part.bags, *part.frequencies, *part.counts, *part.errors] == [
        0,
        0,
        3,
        1,
        -1,
        2,
    ]
    assert part.laplace and [*turned.bags, *turned.frequencies] == [0, 0, 1, 1, 3, 1]
    assert_array_equal(known.possible().counts, [0, 2])
    several = replace(known, counts=np.array([[-1, 3, 3], [1, 1, 0]]))
    assert_allclose(several.possible().counts, [[0, 2, 2], [1, 1, 0]])


# --- the learners ------------------------------------------------------------------------------------------


def test_bags_of_size_one_are_multinomial_logistic_regression():
    X, y, *_ = problem(n_classes=3)
    supervised = LogisticRegression(fit_intercept=False, tol=1e-10).fit(X, y)
    model = CountLogistic(C=1.0, fit_intercept=False, tol=1e-8)
    model.fit(X, np.arange(len(X)), np.eye(3)[y])
    assert_allclose(model.coef_, supervised.coef_, atol=1e-4)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_fit_is_a_stationary_point_below_mean_map(n_classes):
    X, _, bags, P = problem(n_classes=n_classes)
    model = CountLogistic(C=0.5, fit_intercept=False, tol=1e-8).fit(X, bags, P)
    at = LinearObjective(CountLoss(), X, bag_counts(bags, P), 2.0).at
    assert np.abs(at(model.coef_).gradient).max() < 1e-5
    assert model.objective_ == pytest.approx(at(model.coef_).value)
    start = cl.mean_map_start(X, bag_counts(bags, P), 0.5)
    lam = 4 / 0.5 if n_classes == 2 else 1 / 0.5
    same = MeanMap(lam, fit_intercept=False).fit(X, bags, P)
    assert_allclose(start, same.coef_, atol=1e-5)
    assert model.objective_ < at(start).value


def test_fewer_bags_than_columns_start_twice():
    """With many columns the two starts end in different minima; the lower one is kept."""
    rng, lower = np.random.default_rng(0), 0
    for _ in range(6):
        X = rng.normal(size=(120, 40))
        y = (X[:, 0] + rng.normal(size=120) > 0).astype(int)
        bags = np.arange(120) // 10
        P = label_proportions(y, bags)
        model = CountLogistic(C=10.0).fit(X, bags, P)
        Z, penalty = np.column_stack([X, np.ones(120)]), np.append(np.full(40, 0.1), 0)
        given = Z, bag_counts(bags, P), penalty
        start = np.zeros((1, 41))
        start[0, -1] = logit(y.mean())
        other = LinearObjective(ProportionLoss(), *given).solve(start).w
        objective = LinearObjective(CountLoss(), *given)
        ends = [objective.solve(w).value for w in (start, other)]
        assert model.objective_ == pytest.approx(min(ends), abs=1e-4)
        lower += ends[1] < ends[0] - 1e-4
    assert 0 < lower < 6  # each start is the better one somewhere


def test_the_same_cells_with_frequencies_are_the_same_fit():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, size=(3000, 2)).astype(float)
    bags = rng.integers(0, 30, 3000)
    y = (rng.random(3000) < expit(X @ [1.0, -1.0] + bags / 30)).astype(int)
    for labels in (y, y + (X[:, 0] == 2)):
        P = label_proportions(labels, bags)
        cells = pd.DataFrame({"bag": bags, "a": X[:, 0], "b": X[:, 1]}).value_counts()
        cells = cells.reset_index()
        given = cells[["a", "b"]].to_numpy(), cells["bag"], P
        model = CountLogistic().fit(*given, counts=cells["count"])
        whole = CountLogistic(exact_up_to=10_000).fit(X, bags, P)
        assert_allclose(model.coef_, whole.coef_, atol=0.01)
        same = CountLogistic().fit(X, bags, P)
        assert_allclose(model.coef_, same.coef_, atol=1e-8)
        assert_allclose(model.intercept_, same.intercept_, atol=1e-8)
        assert len(model.intercept_) == 1 or abs(model.intercept_.sum()) < 1e-9
        times = rng.integers(0, 4, 3000)  # of rows that are merged
        rows = np.repeat(np.arange(3000), times)
        P = label_proportions(labels[rows], bags[rows])
        errors = 0.1 * (np.eye(P.shape[1]) - 1 / P.shape[1])
        some = CountLogistic(proportion_errors=np.array([errors] * 30))
        coef = some.fit(X, bags, P, counts=times).coef_
        assert_allclose(some.fit(X[rows], bags[rows], P).coef_, coef, atol=1e-7)


def test_exact_likelihoods_of_cells_are_those_of_their_instances():
    f, bags = np.array([0.5, -1.0, 2.0]), np.array([0, 0, 1])
    sums = np.array([[5, 2], [3, 1], [0, 0]])
    cells = BagCounts(bags, *sums, False, np.array([2, 3, 2]))
    times = np.repeat(np.arange(3), [2, 3, 2])
    single = replace(cells, bags=bags[times], frequencies=None)
    for exact_up_to in (0, 20):
        one, two = (
            cl.count_posterior(*g, exact_up_to)
            for g in ((f, cells), (f[times], single))
        )
        assert_allclose(one[0], two[0])
        assert_allclose(one[1][times], two[1])
    Z = np.array([[1.0, 2.0], [1.0, 0.0], [1.0, -1.0]])
    start = cl.mean_map_start(Z, cells, 0.5)
    assert_allclose(start, cl.mean_map_start(Z[times], single, 0.5))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_linear_kernel_form_equals_the_primal(n_classes):
    X, _, bags, P = problem(n_classes=n_classes)
    primal = CountLogistic(tol=1e-7).fit(X, bags, P).decision_function(X)
    dual = CountLogistic(kernel="precomputed", tol=1e-7).fit(X @ X.T, bags, P)
    assert_allclose(dual.decision_function(X @ X.T), primal, atol=1e-3)


@pytest.mark.parametrize("learner", [CountLogistic(), CountBoosting(max_iter=9)])
def test_the_numbers_of_classes_and_columns_change_nothing(learner):
    X, _, bags, P = problem(size=12)
    f = learner.fit(X, bags, P[:, 1]).decision_function(X)
    swapped = learner.fit(X, bags, P[:, 0]).decision_function(X)
    assert_allclose(-swapped, f, atol=1e-3)
    turned = learner.fit(X[:, ::-1], bags, P[:, 1]).decision_function(X[:, ::-1])
    assert_allclose(turned, f, atol=1e-3)


@pytest.mark.parametrize(
    "options",
    [{}, {"C": 0.01}, {"exact_up_to": 0}, {"proportion_errors": np.full(40, 0.2)}],
)
def test_without_trees_boosting_is_the_linear_fit_on_the_bags_seen(options):
    X, _, bags, P = problem()
    known = bag_counts(bags, P)
    held_out = held_out_bags(known, X, 0.1)
    assert held_out.sum() == 4
    rows = ~held_out[bags]

    def linear(**options):
        model = CountLogistic(**{"C": 1.0, "tol": 1e-7, **options})
        return model.fit(X[rows], bags[rows], P).decision_function(X)

    none = CountBoosting(max_iter=0, **{"C": 1.0, **options}).fit(X, bags, P)
    assert_allclose(none.decision_function(X), linear(**options), atol=4e-3)
    gap = np.abs(linear(**options) - linear()).max()
    assert gap > 0.04 if options else gap == 0  # each option says something


@pytest.mark.parametrize("exact_up_to", [0, 20])
def test_boosting_is_judged_by_the_likelihood_of_the_bags_held_out(exact_up_to):
    X, _, bags, P = problem()
    known = bag_counts(bags, P)
    held_out = held_out_bags(known, X, 0.1)
    model = CountBoosting(max_iter=4, exact_up_to=exact_up_to).fit(X, bags, P)
    for n_rounds in (0, model.n_iter_):
        f = CountBoosting(max_iter=n_rounds, exact_up_to=exact_up_to)
        f = f.fit(X, bags, P).decision_function(X)
        value = -cl.count_posterior(f, known, exact_up_to)[0][held_out].mean()
        found = model.validation_loss_[n_rounds]
        assert found == pytest.approx(value, abs=1e-9)


@pytest.mark.parametrize("n_classes", [3, 5])
def test_the_step_of_equally_probable_classes_is_newtons(n_classes):
    labels = np.arange(20) % n_classes
    known = bag_counts(np.arange(20), np.eye(n_classes)[labels])
    _, gradient, hessian = CountLoss().of_counts(np.zeros((20, n_classes)), known)
    s = np.full(n_classes, 1 / n_classes)
    newton = -gradient @ np.linalg.pinv(np.diag(s) - np.outer(s, s))
    assert_allclose(-gradient / hessian, newton, atol=1e-9)


def test_held_out_bags_are_a_tenth_with_the_median_share():
    shares = np.random.default_rng(0).permutation(40) / 40
    bags, X = np.repeat(np.arange(40), 40), np.zeros((1600, 1))
    known = bag_counts(bags, np.column_stack([1 - shares, shares]))
    held_out = held_out_bags(known, X, 0.1)
    assert_allclose(np.sort(shares[held_out]) * 40, [5, 15, 25, 35])
    few = known.part(np.arange(40) < 6)
    assert not held_out_bags(few, X[:240], 0.1).any()
    more = known.part(np.arange(40) < 8)
    assert held_out_bags(more, X[:320], 0.1).sum() == 1


def test_weights_are_integrated_out_and_a_free_intercept_is_next_to_free():
    X, _, bags, P = problem(n=60)
    Z, penalty = np.column_stack([X, np.ones(60)]), np.array([2.0, 2.0, 2.0, 0.0])
    objective = LinearObjective(CountLoss(), Z, bag_counts(bags, P), penalty)
    found, prior = objective.solve(np.zeros((1, 4))), np.diag([2.0, 2.0, 2.0, 2e-4])
    J = objective.at(found.w).information()
    more = np.linalg.slogdet(prior + J)[1] - np.linalg.slogdet(prior)[1]
    assert restricted(found, objective) == pytest.approx(found.value + more / 2)


def test_counts_that_vary_less_than_by_chance_show_no_deviation():
    bags, X = np.repeat(np.arange(12), 10), np.random.default_rng(0).normal(size=120)
    p = np.bincount(bags, expit(2 * X)).round() / 10
    model = CountLogistic(1.0, bag_deviation="estimate").fit(X[:, None], bags, p)
    assert model.bag_deviation_ == 0


def test_a_bag_without_instances_has_no_effect_and_the_deviation_of_all():
    X, _, bags, P = problem(n=60)
    own, more = CountLogistic(bag_deviation=0.7), np.insert(P, 4, 0.5, axis=0)
    one = own.fit(X, bags, P)
    effects, errors = one.bag_effects_, one.bag_effect_errors_
    two = own.fit(X, bags + (bags > 3), more)
    assert_allclose(two.bag_effects_, np.insert(effects, 4, 0.0), atol=1e-6)
    assert_allclose(two.bag_effect_errors_, np.insert(errors, 4, 0.7), atol=1e-6)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_shares_with_noise_and_fewer_bags_than_columns(n_classes):
    """The second start is a fit to shares, which noise can put outside of [0, 1]."""
    X, _, bags, P = problem(n=80, d=12, size=20, n_classes=n_classes)
    noise = np.zeros(P.shape)
    noise[:, 0], noise[:, 1] = 0.6, -0.6
    noise[::2] *= -1
    errors = np.zeros((len(P), n_classes, n_classes))
    errors[:, :2, :2] = [[0.4, -0.4], [-0.4, 0.4]]
    model = CountLogistic(proportion_errors=errors, proportion_noise="gaussian")
    assert model.fit(X, bags, P + noise).gap_ < 1e-5


def test_the_covariance_of_counts_is_one_where_labels_are_sure():
    """No negative eigenvalue by rounding, on which a Newton step of the tilt would stop as singular."""
    rng = np.random.default_rng(0)
    y, bags = rng.integers(0, 3, 60), np.repeat(np.arange(6), 10)
    known = bag_counts(bags, label_proportions(y, bags))
    for scale in (1, 20, 60):
        pi = softmax(scale * np.eye(3)[y] + rng.normal(size=(60, 3)), axis=1)
        H = known.covariances(pi)
        assert (H.trace(axis1=1, axis2=2) > 0).all()
        smallest = np.linalg.eigvalsh(H)[:, 0]
        assert (smallest >= -1e-12 * H.trace(axis1=1, axis2=2)).all()


@pytest.mark.filterwarnings("ignore:.* predicts class")
def test_a_penalty_that_holds_all_log_odds_is_warned_of():
    X, y, bags, _ = gaussian_bags(200)
    counts = np.where(X[:, 0] > 0.5, 9, 1)
    rows = np.repeat(np.arange(200), counts)
    total, P = (
        0.0025 * X[rows].var(axis=0).sum(),
        label_proportions(y[rows], bags[rows]),
    )
    words = rf"C=0.001 holds all .* sum to {total:.2g}; values"
    with pytest.warns(LLPWarning, match=words):
        CountLogistic(1e-3).fit(0.05 * X, bags, P, counts=counts)
