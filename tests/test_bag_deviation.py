"""Intercepts of bags: against sums over labelings and quadrature, today's fit at 0, learners, and the test of bags."""

from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from scipy.optimize import approx_fprime
from scipy.special import expit
from scipy.stats import norm
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from llpbook import (
    BagBoosting,
    BagLogistic,
    CountLogistic,
    bag_deviation,
    fit_chunks,
    label_proportions,
)
from llpbook import count_likelihood as cl
from llpbook import uncertainty as un
from llpbook._linear import BagCounts
from llpbook._linear._effects import averaged_probabilities
from llpbook.count_likelihood import CountLoss
from llpbook.uncertainty._deviation import drawn_counts

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(150)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


def bags_that_differ(n_bags=80, size=40, tau=1.0, seed=0, d=2):
    """Features shifted by bag, one slope of 1, and an intercept of each bag."""
    rng = np.random.default_rng(seed)
    bags = np.repeat(np.arange(n_bags), size)
    X = rng.normal(size=(len(bags), d)) + 0.7 * rng.normal(size=(n_bags, d))[bags]
    u = tau * rng.normal(size=n_bags)
    y = (rng.random(len(bags)) < expit(X[:, 0] - 0.5 + u[bags])).astype(int)
    return X, y, bags, label_proportions(y, bags, classes=[0, 1]), u


def small_bags(seed=0):
    rng = np.random.default_rng(seed)
    bags = np.repeat(np.arange(5), [1, 2, 4, 5, 6])
    f = 1.5 * rng.normal(size=len(bags))
    counts = np.array([1, 0, 1, 5, 3.0])
    return f, BagCounts(bags, np.bincount(bags), counts, np.zeros(5))


@pytest.mark.parametrize("tau", [0.2, 1.0, 2.5])
def test_likelihood_and_gradient_by_labelings_and_quadrature(tau):
    f, known = small_bags()
    value, slope, _ = CountLoss(20, tau).evaluate(f, known)
    q, log_p = cl.count_posterior(f, known)[1], []
    for k in range(5):
        mine, c = f[known.bags == k], known.counts[k]
        given = expit(mine + tau * NODES[:, None])
        total, ones = 0.0, np.zeros(len(mine))
        for y in map(np.array, product([0, 1], repeat=len(mine))):
            if y.sum() == c:
                p = WEIGHTS @ np.prod(np.where(y, given, 1 - given), axis=1)
                total, ones = total + p, ones + p * y
        log_p.append(np.log(total))
        assert_allclose(q[known.bags == k], ones / total, atol=1e-4)
        alone = replace(known.part(np.arange(5) == k), bags=np.zeros(len(mine), int))
        assert CountLoss(20, tau).evaluate(mine, alone)[0] == pytest.approx(
            -log_p[k], abs=1e-4
        )
    assert value == pytest.approx(-sum(log_p), abs=5e-4)
    numeric = approx_fprime(f, lambda g: CountLoss(20, tau).evaluate(g, known)[0])
    assert_allclose(slope, numeric, atol=3e-4)


def test_a_bag_of_one_has_the_averaged_probability():
    f, tau = np.array([-2.0, 0.3, 4.0]), 1.3
    known = BagCounts(np.arange(3), np.ones(3, int), np.array([0, 1, 1.0]), np.zeros(3))
    p = [quad(lambda u, g=g: expit(g + u) * norm.pdf(u, 0, tau), -12, 12)[0] for g in f]
    assert_allclose(averaged_probabilities(f, tau), p, atol=1e-4)
    value = CountLoss(20, tau).evaluate(f, known)[0]
    wanted = np.where(known.counts, p, 1 - np.array(p))
    assert value == pytest.approx(-np.log(wanted).sum(), abs=1e-4)


def test_effects_are_the_moments_of_the_intercept():
    f, known = small_bags(1)
    means, errors = CountLoss(bag_deviation=0.8).effects(f, known)
    for k in range(5):
        mine, c = f[known.bags == k], known.counts[k]

        def density(u, mine=mine, c=c):
            s = expit(mine + u)
            return np.exp(u * c + np.log1p(-s).sum()) * norm.pdf(u, 0, 0.8)

        m = [quad(lambda u, j=j: u**j * density(u), -8, 8)[0] for j in range(3)]
        assert_allclose(means[k], m[1] / m[0], atol=1e-5)
        assert_allclose(errors[k] ** 2, m[2] / m[0] - (m[1] / m[0]) ** 2, atol=1e-5)


def test_without_deviation_it_is_todays_fit():
    X, _, bags, P, _ = bags_that_differ(20, 10)
    today = CountLogistic().fit(X, bags, P)
    none = CountLogistic(bag_deviation=0).fit(X, bags, P)
    proba = today.predict_proba(X)
    assert_array_equal(none.predict_proba(X), proba)
    assert_allclose(none.predict_proba(X, bags), proba, atol=1e-12)
    assert today.bag_deviation_ == 0 and not today.bag_effects_.any()
    nearly = CountLogistic(bag_deviation=1e-4, tol=1e-9).fit(X, bags, P)
    exact = CountLogistic(tol=1e-9).fit(X, bags, P)
    assert_allclose(nearly.coef_, exact.coef_, atol=1e-5)
    assert_allclose(nearly.objective_, exact.objective_, atol=1e-5)


@pytest.mark.parametrize("form", ["number", "estimate"])
def test_learners_keep_the_contract(form):
    X, y, bags, P, u = bags_that_differ()
    tau = 1.0 if form == "number" else "estimate"
    model = CountLogistic(bag_deviation=tau).fit(X, bags, P)
    assert 0.8 < model.bag_deviation_ < 1.2
    assert np.corrcoef(model.bag_effects_, u)[0, 1] > 0.8
    assert model.score(X, y) < np.mean(model.predict(X, bags) == y)
    same = BagLogistic(bag_deviation=tau).fit(X, bags, P)
    assert_allclose(same.coef_, model.coef_)
    order = np.random.default_rng(1).permutation(len(X))
    names = np.array([f"b{k:02}" for k in range(82)])
    frame = pd.DataFrame(P, names[:80], ["no", "yes"]).sample(frac=1, random_state=0)
    frame.loc["empty"] = [0.5, 0.5]
    turned = clone(model).fit(X[order], names[bags][order], frame)
    assert_allclose(turned.coef_, model.coef_, atol=1e-4)
    effects = pd.Series(turned.bag_effects_, turned.bag_labels_)
    assert_allclose(effects[names[:80]], model.bag_effects_, atol=1e-3)
    assert effects["empty"] == 0
    assert turned.bag_effect_errors_[-1] == turned.bag_deviation_
    one, two = turned.predict_proba(X, names[bags]), model.predict_proba(X, bags)
    assert_allclose(one, two, atol=1e-3)


def test_cells_are_equal_rows():
    X, _, bags, P, _ = bags_that_differ(30, 20)
    X = np.round(X)
    cells = pd.DataFrame(X).assign(bag=bags).value_counts(sort=False)
    rows = cells.index.to_frame().to_numpy()
    whole = CountLogistic(bag_deviation=0.7).fit(X, bags, P)
    given = rows[:, :2], rows[:, 2].astype(int), P
    merged = CountLogistic(bag_deviation=0.7).fit(*given, counts=cells.to_numpy())
    assert_allclose(merged.coef_, whole.coef_, atol=1e-6)
    assert_allclose(merged.bag_effects_, whole.bag_effects_, atol=1e-6)


def test_predictions_in_bags_and_pipelines():
    X, _, bags, P, _ = bags_that_differ()
    pipe = make_pipeline(StandardScaler(), CountLogistic(bag_deviation="estimate"))
    pipe.fit(X, bags, countlogistic__proportions=P)
    model, Z = pipe[-1], pipe[0].transform(X)
    assert_array_equal(pipe.predict(X, bags=bags), model.predict(Z, bags))
    scores = model.decision_function(Z)
    assert_allclose(model.decision_function(Z, bags), scores + model.bag_effects_[bags])
    # A new bag: the mean over its intercept, nearer to a half than the middle bag.
    mean = averaged_probabilities(scores, model.bag_deviation_)
    assert_allclose(model.predict_proba(Z)[:, 1], mean)
    shares = model.predict_proba(Z, bags)[:, 1]
    found = np.bincount(bags, shares) / np.bincount(bags)
    assert np.abs(found - P[:, 1]).mean() < 0.05


def test_what_cannot_have_intercepts_is_refused():
    X, y, bags, P, _ = bags_that_differ(20, 10)
    some = CountLogistic(bag_deviation=0.5)
    three = np.column_stack([P[:, 0], P[:, 1] ** 2, P[:, 1] - P[:, 1] ** 2])
    with pytest.raises(ValueError, match="needs the likelihood of the counts"):
        BagLogistic("proportion", bag_deviation=0.5).fit(X, bags, P)
    refused = "is for two classes, without labels="
    with pytest.raises(ValueError, match=refused):
        some.fit(X, bags, P, labels=np.where(np.arange(200) < 9, y, -1))
    with pytest.raises(ValueError, match=refused):
        clone(some).set_params(proportion_errors=np.full(20, 0.1)).fit(X, bags, P)
    with pytest.raises(ValueError, match=refused):
        some.fit(X, bags, three)
    with pytest.raises(ValueError, match="two classes"):
        BagBoosting(CountLoss(bag_deviation=1.0)).fit(X, bags, three)
    frame = pd.DataFrame(X).assign(bag=bags)
    with pytest.raises(ValueError, match="does not reduce to sums"):
        fit_chunks(some, [frame], P, bags="bag")
    with pytest.raises(ValueError, match="bag_deviation='estimate'"):
        CountLogistic().fit(X, bags, P).predict(X, bags)
    with pytest.raises(ValueError, match=r"bags\.index differs from X\.index"):
        some.fit(X, bags, P).predict_proba(pd.DataFrame(X), frame["bag"][::-1])
    with pytest.raises(ValueError, match="bags holds 99"):
        some.fit(X, bags, P).predict(X[:1], [99])
    with pytest.raises(ValueError, match="bag_deviation must be a number"):
        CountLoss(bag_deviation=-1.0)


# --- the test of bags ---------------------------------------------------------------------------------------


def test_the_normal_counts_are_the_marginal_likelihood():
    """Against the covariance matrix of the counts, written out."""
    X, _, bags, P, _ = bags_that_differ(12, 9, 0.5)
    fit, _ = un.read_fit(CountLogistic().fit(X, bags, P), X, bags, P)
    assert_allclose(fit.penalty, [10, 10, 0])
    P0, noise = np.array([2.0, 2.0, 1e-3]), np.linspace(0, 3, 12)
    s, w = expit(fit.Z @ fit.weights[0]), fit.weights[0]
    normal = un.NormalCounts.of(s, fit.observed.counts, noise, fit.Z, fit.observed)
    normal = normal.with_prior(w, P0)
    found = []
    for tau in (0.0, 0.7):
        A = np.array([(s * (1 - s) * (bags == k)) @ fit.Z for k in range(12)])
        V = np.bincount(bags, s * (1 - s))
        cov = A @ np.diag(1 / P0) @ A.T + np.diag(V + noise + tau**2 * V**2)
        y = fit.observed.counts - np.bincount(bags, s) + A @ fit.weights[0]
        by_hand = -0.5 * (np.linalg.slogdet(cov)[1] + y @ np.linalg.solve(cov, y))
        found.append(by_hand - normal.log_likelihood(tau))
    assert_allclose(found[0], found[1], atol=1e-8)  # equal but for a constant


def test_bags_that_differ_are_told_and_others_are_not():
    X, _, bags, P, _ = bags_that_differ(60, 40, 0.7)
    model = CountLogistic().fit(X, bags, P)
    found = bag_deviation(model, X, bags, P, n_resamples=39, random_state=0)
    assert found.verdict == "differ" and found.p_value == 1 / 40
    assert 0.5 < found.estimate < 0.9
    assert "60 bags differ" in str(found) and "follow the means" in str(found)
    again = bag_deviation(model, X, bags, P, n_resamples=39, random_state=0)
    assert again == found
    X, _, bags, P, _ = bags_that_differ(60, 40, 0.0, seed=1)
    model = CountLogistic().fit(X, bags, P)
    same = bag_deviation(model, X, bags, P, n_resamples=39, random_state=0)
    assert same.verdict == "no sign" and same.p_value > 0.05 and same.estimate < 0.2
    assert "no sign" in str(same)
    # No draw has less than no deviation at all, so where the shares have none, all have as much.
    P = np.bincount(bags, expit(X[:, 0] - 0.5)) / 40
    none = bag_deviation(
        model.fit(X, bags, P), X, bags, P, n_resamples=9, random_state=0
    )
    assert none.p_value == 1 and none.estimate == 0


@pytest.mark.slow
def test_the_p_value_is_calibrated():
    found = []
    for seed in range(30):
        X, _, bags, P, _ = bags_that_differ(30, 15, 0.0, seed=seed)
        given = CountLogistic().fit(X, bags, P), X, bags, P
        test = bag_deviation(*given, C=(1.0,), n_resamples=9, random_state=seed)
        found.append(test.p_value)
    assert np.mean(np.array(found) <= 0.1) <= 0.25
    assert np.mean(np.array(found) <= 0.5) >= 0.3


def test_intercepts_that_follow_a_feature_are_not_seen():
    """The confounded case: no deviation, a wrong slope, and an interval that excludes the truth, which is 1."""
    rng, bags = np.random.default_rng(3), np.repeat(np.arange(100), 50)
    shift = rng.normal(size=100)[bags]
    X = (rng.normal(size=5000) + shift)[:, None]
    P = label_proportions(rng.random(5000) < expit(X[:, 0] - shift), bags)
    model = CountLogistic(100.0, bag_deviation="estimate").fit(X, bags, P)
    ends = un.coefficient_table(model, X, bags, P).interval().iloc[0]
    assert model.bag_deviation_ < 0.2 and ends["high"] < 0.5


def test_bags_that_cannot_tell():
    for n_bags in (13, 14):
        X, _, bags, P, _ = bags_that_differ(n_bags, 20, 1.0, d=12)
        given = CountLogistic().fit(X, bags, P), X, bags, P
        rng = np.random.RandomState(0)
        found = bag_deviation(*given, n_resamples=1, random_state=rng)
        used = rng.randint(1e9) != np.random.RandomState(0).randint(1e9)
        assert used == (n_bags == 14)
        assert found.n_bags == n_bags and found.n_coefficients == 13
        if n_bags == 13:
            assert found.verdict == "cannot tell" and np.isnan(found.estimate)
        assert ("there are 13 coefficients" in str(found)) == (n_bags == 13)
    torn = un.judged({0.1: 0.4, 1.0: 0.0}, {0.1: 0.01, 1.0: 0.6}, 30, 9)
    assert torn.verdict == "cannot tell" and torn.p_value == 0.6
    assert str(torn) == (
        "30 bags cannot tell whether they differ: the answer depends on the penalty (p = 0.01 at C = 0.1, p = 0.60 at "
        "C = 1)"
    )
    for p, q, verdict in ((0.05, 0.02, "differ"), (0.3, 0.06, "no sign")):
        found = un.judged({1.0: 0.444, 0.1: 0.2}, {1.0: q, 0.1: p}, 30, 9)
        assert (found.estimate, found.p_value, found.verdict) == (0.444, p, verdict)
        text = f"deviation 0.44 in log-odds (p = {p:.3f}). Inter"
        assert text in str(found)
        assert str(found).startswith("no sign that " * (p > 0.1) + "30 bags differ")
    torn = un.judged({1.0: 0.4, 0.1: 0.2}, {1.0: 0.02, 0.1: 0.0501}, 30, 9)
    assert torn.verdict == "cannot tell"
    for bad in ((), (0.1, 0.0), (np.nan,), (np.inf,)):
        with pytest.raises(ValueError, match="C must hold positive numbers"):
            bag_deviation(*given, C=bad)
    for bad in (0, 1.5):
        with pytest.raises(ValueError, match="n_resamples must be"):
            bag_deviation(*given, n_resamples=bad)


def test_drawn_counts_are_those_of_their_probabilities():
    """Rows in any order, with frequencies, and a bag without instances."""
    bags, n = np.array([2, 0, 2, 0, 0]), np.array([3, 1, 2, 5, 1])
    known = BagCounts(
        bags, np.array([7, 0, 5]), np.zeros(3), np.zeros(3), frequencies=n
    )
    rng, s = np.random.RandomState(0), np.array([0.2, 0.5, 1.0, 0.9, 0.0])
    draws = np.array([drawn_counts(s, known, rng) for _ in range(4000)])
    assert_allclose(draws.mean(axis=0), [5, 0, 2.6], atol=0.06)
    assert_allclose(draws.var(axis=0), [0.25 + 0.45, 0, 0.48], atol=0.06)
    alone = replace(known, frequencies=None)
    assert drawn_counts(np.ones(5), alone, rng).tolist() == [3, 0, 2]


def test_the_sandwich_of_intercepts_is_that_of_their_likelihood():
    X, _, bags, P, _ = bags_that_differ(40, 30)
    model = CountLogistic(100.0, bag_deviation=1.0, tol=1e-8).fit(X, bags, P)
    fit, _ = un.read_fit(model, X, bags, P)
    assert fit.loss == CountLoss(20, 1.0)

    def likelihood(w):
        return -fit.loss.evaluate(fit.Z @ w, fit.observed)[0]

    w, total = fit.weights[0], un.bag_gradients(fit).sum(axis=0)
    assert_allclose(total, approx_fprime(w, likelihood, 1e-6), atol=1e-2)
    assert_allclose(total, fit.curvature @ w, atol=1e-3)


def test_a_laplace_or_several_classes_has_no_test():
    X, _, bags, P, _ = bags_that_differ(20, 10)
    three = np.column_stack([P[:, 0], P[:, 1] ** 2, P[:, 1] - P[:, 1] ** 2])
    with pytest.raises(ValueError, match="two classes"):
        bag_deviation(CountLogistic().fit(X, bags, three), X, bags, three)
    noisy = CountLogistic(proportion_errors=np.full(20, 0.1)).fit(X, bags, P)
    with pytest.raises(ValueError, match="without stated errors"):
        bag_deviation(noisy, X, bags, P)
    known = small_bags()[1]
    with pytest.raises(ValueError, match="without errors"):
        CountLoss(20, 1.0).evaluate(small_bags()[0], replace(known, errors=np.ones(5)))


@pytest.mark.parametrize("seed", range(3))
def test_weak_penalties_and_few_bags_leave_the_deviation_its_scale(seed):
    """With a prior as wide as the penalty, weights and deviation grow together: 3 and more instead of 0.5."""
    X, _, bags, P, _ = bags_that_differ(20, 50, 0.5, seed=seed, d=4)
    model = CountLogistic(100.0, bag_deviation="estimate").fit(X, bags, P)
    assert 0.2 < model.bag_deviation_ < 1.0 and abs(model.coef_[0, 0]) < 2.5
