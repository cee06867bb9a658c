"""The shared parts of the two-bag methods, and KDEDifference, against enumeration, integration and Bayes' rule."""

import re
import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from scipy.spatial.distance import pdist
from scipy.stats import multivariate_normal, norm
from sklearn.base import clone
from sklearn.neighbors import KernelDensity

from llpbook import density_difference as dd
from llpbook import smic
from llpbook.base import (
    LLPWarning,
    NotIdentifiableError,
    _running,
    median_distance,
    thin,
)
from llpbook.density_difference import KDEDifference
from llpbook.dsdd import DSDD
from llpbook.lsdd import LSDD
from llpbook.proportions import label_proportions
from llpbook.smic import SMIC

# `many_bags` are pooled on purpose; the warning has a test of its own.
pytestmark = pytest.mark.filterwarnings("ignore:.* bags into two samples")


def many_bags(seed=0, n=400):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 2)) + 2 * y[:, None]
    bags = np.argsort(np.argsort(y + rng.normal(size=n))) // 20
    return X, y, bags, label_proportions(y, bags)


# --- pooling and prior ---------------------------------------------------------------------------------------


@pytest.mark.equation("eq-dd-pooled")
def test_pooled_shares_are_those_of_the_instances():
    _, y, bags, _ = many_bags()
    bags = np.where(bags == 1, 0, np.where(bags == 19, 17, bags))  # unequal sizes
    P = np.nan_to_num(label_proportions(y, bags, n_bags=20))  # empty ones do not count
    sizes = np.bincount(bags, minlength=20)
    in_p, theta, theta_prime = dd.pool_bags(bags, P[:, 1], sizes)
    assert theta == pytest.approx(y[in_p].mean())
    assert theta_prime == pytest.approx(y[~in_p].mean())
    for i in range(len(y)):  # each bag by its side of the prior
        assert in_p[i] == (y[bags == bags[i]].mean() > y.mean())


def test_pooling_ignores_bags_without_instances():
    bags, sizes = np.array([0, 0, 2, 2]), np.array([2, 0, 2])
    in_p, *shares = dd.pool_bags(bags, np.array([0.5, 1.0, 0.0]), sizes)
    assert_array_equal(in_p, [True, True, False, False])
    assert shares == [0.5, 0.0]
    with pytest.raises(NotIdentifiableError, match=r"proportions .*0.5"):
        dd.pool_bags(bags, np.array([0.5, 1.0, 0.5]), sizes)


def test_bag_at_the_prior_is_in_the_second_sample():
    p = np.array([0.1, 0.3, 0.2])
    in_p, *shares = dd.pool_bags(np.arange(3), p, np.array([5, 5, 5]))
    assert_array_equal(in_p, [False, True, False])
    assert shares == pytest.approx([0.3, 0.15])


@pytest.mark.equation("eq-dd-weights")
@pytest.mark.parametrize("theta, theta_prime", [(0.8, 0.2), (0.5, 0.1), (1.0, 0.0)])
@pytest.mark.parametrize("eta", [0.05, 0.3, 0.5, 0.9])
def test_weighted_difference_has_the_sign_of_the_bayes_rule(theta, theta_prime, eta):
    x = np.linspace(-6, 6, 1001)
    plus, minus = norm.pdf(x, 1, 1.0), norm.pdf(x, -0.5, 1.7)
    p = theta * plus + (1 - theta) * minus
    q = theta_prime * plus + (1 - theta_prime) * minus
    c, c_prime = dd.prior_weights(theta, theta_prime, eta)
    bayes, weighted = eta * plus - (1 - eta) * minus, c * p - c_prime * q
    clear = np.abs(bayes) > 1e-12
    assert_array_equal(np.sign(weighted)[clear], np.sign(bayes)[clear])
    # proportional, not only of the same sign
    assert_allclose(weighted * bayes[500], bayes * weighted[500], 1e-9)
    assert c + c_prime == pytest.approx(2)
    if eta == 0.5:
        assert c == c_prime == 1


# --- helpers -------------------------------------------------------------------------------------------------


@pytest.mark.equation("eq-dd-basis")
def test_gaussian_basis():
    rng = np.random.default_rng(0)
    X, C = rng.normal(size=(7, 3)), rng.normal(size=(4, 3))
    slow = [[np.exp(-np.sum((x - c) ** 2) / (2 * 0.7**2)) for c in C] for x in X]
    assert_allclose(dd.gaussian_basis(X, C, 0.7), slow, rtol=1e-10)


def test_scores_in_one_unit_rank_like_the_products_and_do_not_overflow():
    rng = np.random.default_rng(0)
    for _ in range(200):
        values, scales = rng.normal(size=6) + rng.choice([-3, 0, 3]), rng.normal(size=6)
        criteria = values * np.exp(scales)
        scores = dd.scores_in_one_unit(values, scales)
        assert_array_equal(np.argsort(-scores), np.argsort(criteria))
        # One unit for all: ratios are those of the criteria.
        assert_allclose(scores / scores[0], criteria / criteria[0])
    best = lambda *pair: np.argmax(dd.scores_in_one_unit(*map(np.array, pair)))  # noqa: E731
    assert best([-1.0, -1e-3], [0.0, 2000.0]) == 1
    assert best([1.0, 2.0], [900.0, -900.0]) == 1
    assert best([1.0, 0.0, 0.0], [0.0, 0.0, 0.0]) == 1


# --- kernel density ------------------------------------------------------------------------------------------


@pytest.mark.equation("eq-dd-kde")
@pytest.mark.parametrize("d", [1, 3])
def test_kde_equals_scikit_learn(d):
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(30, d)), rng.normal(size=(11, d))
    reference = KernelDensity(bandwidth=0.4).fit(X).score_samples(Z)
    found = dd.kde_log_density(Z, X, 0.4)
    assert_allclose(found, reference, rtol=1e-10)
    assert np.isfinite(dd.kde_log_density(Z + 1e4, X, 0.4)).all()


def slow_lscv(X, sigma):
    """Integral by quadrature, leave-one-out one instance at a time (one feature)."""
    density = lambda t, points: norm.pdf(t, points, sigma).mean()  # noqa: E731
    square = quad(lambda t: density(t, X) ** 2, -12, 12, limit=400, epsabs=1e-12)[0]
    left = sum(density(X[i], np.delete(X, i)) for i in range(len(X)))
    return square - 2 / len(X) * left


@pytest.mark.parametrize("sigma", [0.1, 0.4, 1.5])
def test_lscv_criterion_equals_integration_and_leave_one_out(sigma):
    X = np.random.default_rng(0).normal(size=15)
    found = dd.lscv_criterion(pdist(X[:, None], "sqeuclidean"), 15, 1, sigma)
    found /= np.sqrt(2 * np.pi * sigma**2)
    assert found == pytest.approx(slow_lscv(X, sigma), rel=1e-8)


def test_lscv_criterion_in_two_dimensions():
    X, sigma = np.random.default_rng(1).normal(size=(12, 2)), 0.5
    grid = np.stack(np.meshgrid(*2 * [np.linspace(-7, 7, 281)]), -1).reshape(-1, 2)
    density = np.exp(dd.kde_log_density(grid, X, sigma))
    square = np.sum(density**2) * 0.05**2
    rest = [dd.kde_log_density(X[[i]], np.delete(X, i, 0), sigma) for i in range(12)]
    found = dd.lscv_criterion(pdist(X, "sqeuclidean"), 12, 2, sigma)
    found /= 2 * np.pi * sigma**2
    assert found == pytest.approx(square - 2 * np.mean(np.exp(rest)), rel=1e-8)


def test_lscv_width_is_the_best_of_its_grid():
    X = np.random.default_rng(2).normal(size=(40, 1))
    widths = dd.KDE_WIDTHS * median_distance(X)
    best = widths[np.argmin([slow_lscv(X[:, 0], s) for s in widths])]
    assert dd.lscv_width(X)[0] == pytest.approx(best)


def test_lscv_width_of_a_part_is_scaled_to_the_whole():
    X = np.random.default_rng(5).normal(size=(400, 3))
    part, table = dd.lscv_width(thin(X, 50))
    assert dd.lscv_width(X, max_points=50)[0] == pytest.approx(part / 8 ** (1 / 7))
    pairs, own = pdist(thin(X, 50), "sqeuclidean"), [0.4, 0.7, 1.0]
    given = dd.lscv_width(X, own, max_points=50)[1]
    assert given["sigma"].tolist() == own
    for found, shrink in ((table, 1.0), (given, 8 ** (-1 / 7))):
        wide = found["sigma"].to_numpy() / shrink
        values = [dd.lscv_criterion(pairs, 50, 3, s) / s**3 for s in wide]
        unit = values[found["score"].argmax()] / -found["score"].max()
        assert_allclose(-found["score"] * unit, values)


def test_the_median_is_the_median_whatever_the_size():
    X = np.random.default_rng(0).normal(size=(1500, 2))
    assert dd.lscv_width(X, "median")[0] == median_distance(thin(X, 1000))


def test_lscv_width_in_very_high_dimension():
    X = np.random.default_rng(4).normal(size=(30, 3000))
    assert 0 < dd.lscv_width(X)[0] <= 2 * median_distance(X)


# --- labeling error rate -------------------------------------------------------------------------------------


def test_labeling_error_rate():
    y = np.array([0, 0, 1, 1, 1])
    assert dd.labeling_error_rate(y, y) == dd.labeling_error_rate(1 - y, y) == 0
    assert dd.labeling_error_rate([1, 0, 1, 1, 1], y) == pytest.approx(0.2)
    assert dd.labeling_error_rate([0, 1, 0, 0, 0], y) == pytest.approx(0.2)
    words = np.array(["no", "yes"])
    assert dd.labeling_error_rate(words[y], words[1 - y]) == 0


# --- drawing -------------------------------------------------------------------------------------------------


def test_counts_are_rounded_not_cut():
    assert dd.class_counts(100, 0.29).tolist() == [71, 29]  # 100 * 0.29 is below 29
    assert dd.class_counts(10, 0.26).tolist() == [7, 3]
    assert dd.class_counts(5, 0.5).tolist() == [3, 2]
    assert [dd.class_counts(1, p).tolist() for p in (0, 1)] == [[1, 0], [0, 1]]


@pytest.mark.parametrize(
    "call, args, said",
    [
        (dd.class_counts, (5, np.nan), "got size 5 and prior nan"),
        (dd.class_counts, (0, 0.5), "got size 0 and prior 0.5"),
        (dd.class_counts, (3, -0.1), "got size 3 and prior -0.1"),
        (dd.class_counts, (3, 1.1), "got size 3 and prior 1.1"),
        (dd.toy_means, (3,), "which must be 1 or 2, got 3"),
        (dd.labeling_error_rate, ([0, 1], [1]), r"shapes \(2,\) and \(1,\)"),
        (dd.labeling_error_rate, ([], []), r"shapes \(0,\) and \(0,\)"),
        (dd.labeling_error_rate, ([[0]], [[1]]), r"shapes \(1, 1\) and \(1, 1\)"),
        (dd.labeling_error_rate, ([0, 1], [1, 2]), r"two values, got \[0, 1, 2\]"),
    ],
)
def test_malformed_calls(call, args, said):
    with pytest.raises(ValueError, match=said):
        call(*args)


@pytest.mark.parametrize("which", [1, 2])
def test_toy_problems_have_the_papers_densities(which):
    eye = np.eye(2)
    at = lambda *means: (  # noqa: E731
        lambda X: sum(multivariate_normal.pdf(X, m, eye) for m in means) / len(means)
    )
    negative, positive = {
        1: (at([1, 1]), at([-1, -1])),
        2: (at([0, 3], [0, -3]), at([3, 0], [-3, 0])),
    }[which]
    Z = np.random.default_rng(0).normal(size=(20, 2)) * 2
    densities = np.column_stack([negative(Z), positive(Z)])
    assert_allclose(np.exp(dd.toy_log_densities(which, Z)), densities)
    X, y, bags = dd.toy_problem(which, n=(6000, 4000), random_state=0)
    assert np.bincount(bags).tolist() == [6000, 4000]
    shares = [y[bags == b].mean() for b in (0, 1)]
    assert shares == pytest.approx([0.3, 0.7])
    for label in (0, 1):
        drawn, means = X[y == label], dd.toy_means(which)[label]
        assert_allclose(drawn.mean(0), means.mean(0), atol=0.15)
        covariance = eye + np.cov(means.T, bias=True) * (len(means) > 1)
        assert_allclose(np.cov(drawn.T), covariance, atol=0.25)


# --- reading the input ---------------------------------------------------------------------------------------


def test_without_proportions_class_one_is_where_the_first_bag_is_denser():
    X, y, bags = dd.toy_problem(1, n=300, random_state=0)  # class 1 rare in bag 0
    free = KDEDifference().fit(X, bags)
    assert free.pooled_proportions_ is None
    assert np.mean(free.predict(X) != y) > 0.7  # swapped
    known = KDEDifference().fit(X, bags, [0.3, 0.7])
    assert known.score(X, y) > 0.7
    assert_array_equal(known.decision_function(X), -free.decision_function(X))
    assert known.pooled_proportions_ == pytest.approx((0.7, 0.3))
    for names in ("ab", "ba"):  # the order of the names decides, not of appearance
        named = KDEDifference().fit(X, np.array(list(names))[bags])
        sign = 1 if names == "ab" else -1
        assert_array_equal(named.decision_function(X), sign * free.decision_function(X))
    for other in (bags + 7, pd.Series(bags), bags.astype(float)):
        found = KDEDifference().fit(X, other).decision_function(X)
        assert_array_equal(np.abs(found), np.abs(free.decision_function(X)))


def test_rounding_of_shares_moves_no_bag_to_the_other_side():
    sizes = np.array([40, 4, 4, 4])
    bags, p = np.repeat(np.arange(4), sizes), np.array([0.475, 0.5, 0.25, 1.0])
    assert np.average(p, weights=sizes) == 0.5
    for off in (0, 5e-7, -5e-7, 1e-6 * np.array([-1, 1, 1, 0])):
        in_p = dd.pool_bags(bags, p * (1 + off), sizes)[0]
        assert_array_equal(np.unique(bags[in_p]), [3])


def test_many_bags_are_two_pools():
    X, y, bags, P = many_bags()
    above = (P[:, 1] > y.mean())[bags]
    many = KDEDifference().fit(X, bags, P)
    two = KDEDifference().fit(X, above.astype(int), label_proportions(y, above * 1))
    assert_array_equal(many.decision_function(X), two.decision_function(X))
    shares = y[above].mean(), y[~above].mean()
    assert many.pooled_proportions_ == pytest.approx(shares)
    assert many.score(X, y) > 0.85


def test_malformed_input():
    X, y, bags, P = many_bags()
    for bags_, got in ((bags, r"20: \[0, 1, 2, 3, 4\]"), (0 * bags, r"1: \[0\]")):
        with pytest.raises(ValueError, match=f"bags must be exactly two.*got {got}\n"):
            KDEDifference().fit(X, bags_)
    words = r"labels, counts and class_prior.*proportions"
    for more in ({"labels": y}, {"counts": y}):
        with pytest.raises(ValueError, match=words):
            KDEDifference().fit(X, y, **more)
    with pytest.raises(ValueError, match="class_prior='match"):
        KDEDifference(class_prior="match").fit(X, y)
    for prior in (0.0, 1.0, "other"):
        with pytest.raises(ValueError, match="'class_prior' parameter"):
            KDEDifference(class_prior=prior).fit(X, bags, P)
    with pytest.raises(ValueError, match=r"bags must give at least 2.*got 1 and 399"):
        KDEDifference().fit(X, np.arange(400) > 0)


# --- the method ----------------------------------------------------------------------------------------------


@pytest.mark.equation("eq-dd-sign")
def test_decision_is_the_log_ratio_of_the_weighted_densities():
    X, _, bags, P = many_bags()
    model = KDEDifference(class_prior=0.2).fit(X, bags, P)
    in_p, *shares = dd.pool_bags(bags, P[:, 1], np.bincount(bags))
    c, c_prime = dd.prior_weights(*shares, 0.2)
    p, q = (
        KernelDensity(bandwidth=dd.lscv_width(part)[0]).fit(part).score_samples(X)
        for part in (X[in_p], X[~in_p])
    )
    expected = np.log(c / c_prime) + p - q
    assert_allclose(model.decision_function(X), expected, atol=1e-8)
    own = model.cv_results_.groupby("sample")
    for k, part in enumerate((X[in_p], X[~in_p])):
        best, table = dd.lscv_width(part)
        assert model.sigmas_[k] == best
        assert_allclose(own.get_group(k)[["sigma", "score"]], table)


@pytest.mark.parametrize("which", [1, 2])
def test_large_samples_reach_the_bayes_rule(which):
    X, y, bags = dd.toy_problem(which, n=1000, random_state=0)
    new, truth, _ = dd.toy_problem(which, n=1000, random_state=1)
    bayes = np.diff(dd.toy_log_densities(which, new))[:, 0] > 0
    for model in (KDEDifference(), LSDD(), LSDD(criterion="sign")):
        model.fit(X, bags, label_proportions(y, bags))
        assert model.score(new, truth) > np.mean(bayes == truth) - 0.02


def test_match_takes_the_prior_of_the_training_data():
    X, y, bags, _ = many_bags()
    keep = (y == 1) | (np.arange(400) % 2 == 0)
    X, bags, P = X[keep], bags[keep], label_proportions(y[keep], bags[keep])
    prior = y[keep].mean()
    assert prior > 0.6
    match, number = (
        KDEDifference(class_prior=c).fit(X, bags, P) for c in ("match", float(prior))
    )
    assert match.log_odds_ == pytest.approx(number.log_odds_)
    half = KDEDifference(class_prior=0.5).fit(X, bags, P)
    assert half.log_odds_ == KDEDifference().fit(X, bags, P).log_odds_ == 0


def test_far_away_and_equal_instances_have_finite_scores():
    X, _, bags, P = many_bags()
    model = KDEDifference().fit(X, bags, P)
    assert np.isfinite(model.decision_function(X + 1e5)).all()
    constant = KDEDifference().fit(np.ones((400, 2)), bags, P)
    assert_array_equal(constant.decision_function(np.ones((3, 2))), 0)


def test_memory_of_a_prediction_is_bounded_and_chunks_do_not_matter():
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(30_000, 2)), rng.normal(size=(3_000, 2))
    tracemalloc.start()
    found = dd.kde_log_density(Z, X, 0.3)
    assert tracemalloc.get_traced_memory()[1] < 60e6  # all pairs are 720 MB
    tracemalloc.stop()
    slow = KernelDensity(bandwidth=0.3).fit(X).score_samples(Z[:20])
    assert_allclose(found[:20], slow, rtol=1e-9)


@pytest.mark.parametrize(
    "model",
    [KDEDifference(), LSDD(random_state=0), DSDD(random_state=0), SMIC(random_state=0)],
)
def test_a_large_offset_changes_nothing(model):
    X, y, bags = dd.toy_problem(2, n=60, priors=(0.1, 0.9), random_state=0)
    new = np.random.default_rng(1).normal(size=(50, 2)) * 3
    # A power of two, and values on a grid: what is lost is lost by the method.
    X, new = np.round(X * 1024) / 1024, np.round(new * 1024) / 1024
    times = np.array([2.0**31, 0.0])
    near = model.fit(X, bags, [0.1, 0.9]).predict(np.vstack([X, new]))
    far = model.fit(X + times, bags, [0.1, 0.9]).predict(np.vstack([X, new]) + times)
    assert_array_equal(far, near)
    if not isinstance(model, SMIC):
        assert np.mean(near[:120] == y) > 0.85


# --- what a user is told -------------------------------------------------------------------------------------

FOUR = pytest.mark.parametrize(
    "model",
    [KDEDifference(1.0), LSDD(1.0, 0.1), DSDD(1.0, 0.1), SMIC(7)],
    ids=lambda model: type(model).__name__,
)


@FOUR
def test_pooling_more_than_two_shares_is_said_once(model, recwarn):
    X, y, bags, P = many_bags(n=80)
    model.fit(X, bags, P)
    (said,) = recwarn.list
    assert said.category is LLPWarning and said.filename == __file__
    assert re.match(f"{type(model).__name__} pooled 4 bags.*MeanMap", str(said.message))
    recwarn.clear()
    # Counted are the bags with instances, not those of known labels.
    labels = np.where(np.arange(80) < 20, y, -1)
    model.fit(X, bags, np.vstack([P, [0.5, 0.5]]), labels=labels)
    assert "pooled 4 bags" in str(recwarn.pop().message)
    assert not recwarn.list
    # Nothing is lost where the pooled bags of a side have one share, as parts of two bags have; or by known labels.
    above = P[:, 1] > y.mean()
    model.fit(X, bags, np.where(above, 0.7, 0.3))
    model.fit(X, bags, np.where(above, 0.7 + 1e-7 * np.arange(4), 0.3))
    model.fit(X, bags % 2, [0.3, 0.7], labels=labels)
    model.fit(X, y, [0.0, 1.0])
    assert not recwarn.list


def double(X, bags):
    return np.vstack([X, X]), np.concatenate([bags, bags])


def test_what_the_notes_say_of_repeated_instances():
    X, _, bags, P = many_bags(n=80)
    fixed = KDEDifference(0.8).fit(X, bags, P).decision_function(X)
    again = KDEDifference(0.8).fit(*double(X, bags), P).decision_function(X)
    assert_allclose(again, fixed)
    pairs = np.vstack([X, X])
    assert dd.lscv_width(pairs)[0] == dd.KDE_WIDTHS[0] * median_distance(pairs)
    one = LSDD(1.0, 0.1).fit(X, bags, P).decision_function(X)
    two = LSDD(1.0, 0.2).fit(*double(X, bags), P).decision_function(X)
    assert_allclose(two, one, rtol=1e-6)
    widths = [LSDD(random_state=0).fit(*d, P) for d in ((X, bags), double(X, bags))]
    assert widths[1].sigma_ < widths[0].sigma_
    one = DSDD(1.0, 0.5).fit(X, bags, P)
    two = DSDD(1.0, 1.0).fit(*double(X, bags), P)
    one, two = one.decision_function(X), two.decision_function(X)
    assert_allclose(one, two, rtol=1e-3, atol=1e-5)
    distances, nearest = smic.nearest_neighbors(pairs, 1)
    assert not distances.any() and (nearest[:80, 0] % 80 == np.arange(80)).all()


@FOUR
def test_swapped_classes_swap_the_predictions_but_for_a_bag_at_the_prior(model):
    X, _, bags, P = many_bags(n=80)
    found, swapped = (model.fit(X, bags, p).predict(X) for p in (P, P[:, ::-1]))
    assert_array_equal(found, 1 - swapped)
    at_prior = np.array([0.1, 0.9, 0.5, 0.5])
    sizes = np.bincount(bags)
    sides = [dd.pool_bags(bags, p, sizes)[0] for p in (at_prior, 1 - at_prior)]
    assert_array_equal(sides[0] == sides[1], bags >= 2)


def test_memory_is_asked_for_before_a_fit(monkeypatch):
    X, y, bags = dd.toy_problem(1, n=100, random_state=0)
    huge = 10**12  # is clipped to the instances, or takes no memory
    LSDD(1.0, 0.1, n_centers=huge, n_folds=huge).fit(X, bags)
    DSDD(1.0, 0.1, n_centers=huge, n_folds=huge, n_tuning=huge).fit(X, bags)
    assert len(dd.lscv_width(X, max_points=huge)[1]) == len(dd.KDE_WIDTHS)
    smic.lsmi(X, y, [1.0], [0.1], n_centers=huge)
    way = "more than 75% of the 0.0 GiB that this machine has: take"
    wide = [0.1] * 9
    for name, entries, ask in (
        ("LSDD with 50 centers", 4 * 50 * (50 + 9 * 5), LSDD(1.0, wide, n_centers=50)),
        ("LSDD with 200 centers", 4 * 200 * (200 + 5), LSDD(1.0, 1.0, n_centers=huge)),
        ("DSDD with 50 centers on 200", 4 * 50 * 200, DSDD(n_centers=50)),
        ("DSDD with 200 centers on 200", 4 * 200**2, DSDD(n_centers=huge)),
        ("A graph of 150 neighbors for each of 200", 13 * 200 * 150, SMIC([5, 150])),
        (
            "LSMI with 50 centers, 10 folds and penalties, on 200",
            3.5 * 50 * (200 + 50 * 10),
            lambda *_: smic.lsmi(X, y, [1.0], [0.1, 1], n_centers=50),
        ),
        (
            "lscv_width on 100 points",
            4 * 100**2 / 2,
            lambda *_: dd.lscv_width(X, max_points=100),
        ),
    ):
        for share, told, end in ((0.76, ValueError, way), (0.74, LLPWarning, "of 0.0")):
            has = 8 * entries / share
            monkeypatch.setattr(_running, "machine_memory", lambda has=has: has)
            with pytest.raises(told, match=f"{name}.* needs about .*{end}"):
                getattr(ask, "fit", ask)(X, bags)
    monkeypatch.setattr(_running, "machine_memory", lambda: 1e10)
    LSDD(1.0, 0.1).fit(X, bags)


@pytest.mark.parametrize(
    "model, steps",
    [(LSDD([1.0, 2.0]), 2), (DSDD([1.0, 2.0], 1.0, n_folds=3), 6), (SMIC([5, 6]), 2)],
)
def test_progress_is_printed_where_it_is_asked_for(model, steps, capsys):
    X, _, bags = dd.toy_problem(1, n=30, random_state=0)
    quiet = clone(model).set_params(random_state=0).fit(X, bags)
    assert capsys.readouterr().out == ""
    told = clone(model).set_params(random_state=0, verbose=2).fit(X, bags)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == steps and f": {steps} of at most {steps} " in lines[-1]
    assert_array_equal(told.predict(X), quiet.predict(X))


@FOUR
def test_shares_that_differ_by_less_than_chance_are_said(model):
    name = type(model).__name__
    for n, priors, said in (
        ((40, 40), (0.4, 0.6), "by 0.2, less than the chance of 40 and 40 .*, 0.22"),
        ((40, 40), (0.375, 0.625), ""),
        ((10, 60), (0.7, 0.4), "by 0.3, less than the chance of 10 and 60 .*, 0.34"),
        ((10, 60), (0.8, 0.4), ""),
        ((8, 8), (0.25, 0.75), ""),  # exactly by chance
    ):
        X, y, bags = dd.toy_problem(1, n=n, priors=priors, random_state=0)
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            model.fit(X, bags, np.bincount(bags, y) / n)
        words = [str(w.message) for w in heard if "than the chance" in str(w.message)]
        assert len(words) == bool(said)
        assert all(re.search(f"{said}: {name} can", w) for w in words)
