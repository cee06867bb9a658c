"""Weighted discriminant analysis against slow sums, the paper's example, scikit-learn, and its own fixed points."""

import warnings
from functools import partial
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import gaussian_bags
from scipy.linalg import eigh
from scipy.special import log_softmax
from scipy.stats import multivariate_normal as normal
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import ConvergenceWarning

from llpbook import discriminant as da
from llpbook.base import LLPWarning
from llpbook.discriminant import WeightedLDA
from llpbook.mean_map import class_means
from llpbook.proportions import averaging_matrix, label_proportions

SCHEMES = [{"scheme": name} for name in ("sws", "fws", "wws")]
SCHEMES += [{"scheme": "wws", "logits": "linear"}]
schemes = pytest.mark.parametrize(
    "options", SCHEMES, ids=lambda o: "-".join(map(str, o.values()))
)


problem = partial(gaussian_bags, n_classes=3, apart=2.0)


def instance_weights(seed=0, n=40, n_classes=3):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 4)), rng.uniform(0, 2, size=(n, n_classes))


# --- the equations -----------------------------------------------------------------------------------------


@pytest.mark.equation("eq-da-means", "eq-da-within")
def test_moments_of_weighted_instances():
    X, w = instance_weights()
    mass, rows = w.sum(axis=0), w.sum(axis=1)
    means = np.array([np.average(X, axis=0, weights=v) for v in w.T])
    assert_allclose(da.weighted_means(X, w), means)
    covariances = [np.cov(X.T, aweights=v, bias=True) for v in w.T]
    within = da.within_covariance(X, w, means)
    assert_allclose(within, np.average(covariances, axis=0, weights=mass), atol=1e-12)
    total = np.cov(X.T, aweights=rows, bias=True)
    between = da.between_covariance(means, mass)
    assert_allclose(within + between, total, atol=1e-12)


@pytest.mark.equation("eq-da-scores")
def test_scores_are_those_of_normal_distributions():
    X, w = instance_weights(1)
    model = da.fit_gaussians(X, w, da.whitening(X))
    within = da.within_covariance(X, w, model.means)
    slow = [normal.logpdf(X, m, within) for m in model.means]
    slow += np.log(model.prior)[:, None]
    coef, intercept = da.discriminants(model)
    found = log_softmax(X @ coef.T + intercept, axis=1)
    assert_allclose(found, log_softmax(slow.T, axis=1), atol=1e-10)
    coef, intercept = da.discriminants(model, logits="linear")
    center = model.prior @ model.means
    slow = (X - center) @ np.linalg.inv(within) @ (model.means - center).T
    assert_allclose(X @ coef.T + intercept, slow, atol=1e-10)


@pytest.mark.equation("eq-da-closeness")
def test_closeness():
    X, w = instance_weights(2)
    means = da.weighted_means(X, w)
    found = da.closeness(X, means)
    for i, j in product(range(40), range(3)):
        distances = [np.sqrt(np.sum((X[i] - m) ** 2)) for m in means]
        assert found[i, j] == pytest.approx(1 - distances[j] / sum(distances))
    assert_allclose(found.sum(axis=1), 3 - 1)
    assert_array_equal(da.closeness(X[:1], np.tile(X[0], (2, 1))), 0.5)


@pytest.mark.equation("eq-da-weights")
def test_the_example_of_the_paper():
    p = np.array([[0.750, 0.250], [0.516, 0.484], [0.302, 0.698]])
    found = da.matched_weights(np.log(p), np.array([0]), np.array([[2.0, 1.0]]))
    expected = [[0.957, 0.175], [0.658, 0.338], [0.385, 0.487]]
    assert_allclose(found, expected, atol=5e-4)


@pytest.mark.equation("eq-da-weights")
def test_matched_weights_equal_the_formula_and_keep_counts():
    rng = np.random.default_rng(3)
    sizes, starts = np.array([3, 1, 6]), np.array([0, 3, 4])
    counts = rng.dirichlet(np.ones(3), 3) * sizes[:, None]
    near = rng.normal(size=(10, 3))
    found = da.matched_weights(near, starts, counts)
    bags, p = np.repeat(np.arange(3), sizes), np.exp(near)
    for i, j in product(range(10), range(3)):
        k = bags[i]
        slow = p[i, j] / p[bags == k, j].sum() * counts[k, j]
        assert found[i, j] == pytest.approx(slow)
    far = near - 1e5 * np.array([1.0, 0, 2.0])  # exp underflows
    assert_allclose(da.matched_weights(far, starts, counts), found)
    far[:3, 1] = -np.inf
    spread = da.matched_weights(far, starts, counts)
    assert_allclose(spread[:3, 1], counts[0, 1] / 3)
    assert_allclose(np.add.reduceat(spread, starts), counts)


def test_projections_solve_the_generalized_eigenproblem():
    X, w = instance_weights(6)
    model = da.fit_gaussians(X, w, da.whitening(X))
    within = da.within_covariance(X, w, model.means)
    between = da.between_covariance(model.means, w.sum(axis=0))
    values, vectors = eigh(between, within)
    V, ratio = da.projections(model)
    assert V.shape == (4, 2)
    assert_allclose(ratio, values[:-3:-1] / values[-2:].sum())
    assert_allclose(np.abs(V), np.abs(vectors[:, :-3:-1]), atol=1e-9)
    assert_allclose(V.T @ within @ V, np.eye(2), atol=1e-9)
    assert (V[np.abs(V).argmax(axis=0), [0, 1]] > 0).all()


# --- what weights do ---------------------------------------------------------------------------------------


@schemes
def test_weights_keep_the_counts_of_every_bag(options):
    X, _, bags, P = problem()
    for n_rounds in (1, 2, 40):
        model = WeightedLDA(**options, max_iter=n_rounds, tol=1e-99)
        with warnings.catch_warnings(action="ignore"):
            model.fit(X, bags, P)
        found = averaging_matrix(bags) @ model.weights_
        assert_allclose(found, P, atol=1e-10)


def test_sws_means_are_class_means_mixed_once_more():
    """M(SWS) = C M(MeanMap): SWS is MeanMap without the unmixing."""
    X, _, bags, P = problem(size=7)
    sizes = np.bincount(bags).astype(float)
    C = (P.T * sizes) @ P / (P.T @ sizes)[:, None]
    assert_allclose(C.sum(axis=1), 1)
    unmixed = class_means(averaging_matrix(bags) @ X, P, sizes)
    model = WeightedLDA(scheme="sws").fit(X, bags, P)
    assert_allclose(model.means_, C @ unmixed, atol=1e-10)


def slow_refinement(X, bags, P, scheme, n_rounds, shrinkage):
    """The pseudocode of figures 3 and 4, one instance at a time."""
    n, K = len(X), P.shape[1]
    w = P[bags]
    for _ in range(n_rounds):
        m, eta = (w.T @ X) / w.sum(axis=0)[:, None], w.sum(axis=0) / w.sum()
        S = np.zeros((4, 4))
        for i, j in product(range(n), range(K)):
            S += w[i, j] * np.outer(X[i] - m[j], X[i] - m[j]) / w.sum()
        S = (1 - shrinkage) * S + shrinkage * np.diag(S).mean() * np.eye(len(S))
        p = np.empty((n, K))
        for i, x in enumerate(X):
            if scheme == "fws":
                d = np.linalg.norm(x - m, axis=1)
                p[i] = 1 - d / d.sum()
            elif scheme == "linear":
                p[i] = np.exp((m - eta @ m) @ np.linalg.solve(S, x - eta @ m))
            else:
                mahalanobis = [(x - c) @ np.linalg.solve(S, x - c) for c in m]
                p[i] = eta * np.exp(-0.5 * np.array(mahalanobis))
            p[i] /= p[i].sum() if scheme != "fws" else 1
        new = np.empty_like(w)
        for i, j in product(range(n), range(K)):
            k = bags[i]
            new[i, j] = p[i, j] / p[bags == k, j].sum() * (bags == k).sum() * P[k, j]
        w = new
    return w


@pytest.mark.filterwarnings("ignore:WeightedLDA stopped")
@pytest.mark.parametrize(
    "slow, options",
    [
        ("fws", {"scheme": "fws"}),
        ("wws", {"shrinkage": 0.4}),
        ("linear", {"logits": "linear"}),
    ],
)
def test_refinement_equals_the_pseudocode(slow, options):
    X, _, bags, P = problem(n=60, size=7)
    expected = slow_refinement(X, bags, P, slow, 3, options.get("shrinkage", 0.0))
    model = WeightedLDA(**options, max_iter=3, tol=1e-99).fit(X, bags, P)
    assert_allclose(model.weights_, expected, atol=1e-8)


@pytest.mark.filterwarnings("ignore:WeightedLDA stopped")
def test_rounds_end_where_the_weights_of_an_instance_change_by_tol():
    X, _, bags, P = problem(n=60, size=7)
    rounds = [WeightedLDA(max_iter=m, tol=1e-99).fit(X, bags, P) for m in range(1, 9)]
    weights = np.array([P[bags], *(model.weights_ for model in rounds)])
    changes = np.abs(np.diff(weights, axis=0)).sum(axis=2).mean(axis=1)
    for m, change in enumerate(changes, 1):
        if change == changes[:m].min():
            found = WeightedLDA(tol=1.0001 * change).fit(X, bags, P)
            assert found.n_iter_ == m and found.gap_ == pytest.approx(change)
    enough = WeightedLDA(tol=found.gap_, max_iter=m)
    with warnings.catch_warnings(action="error"):
        enough.fit(X, bags, P)
    words = f"stopped after {m} iterations with weights that change by {change:.1e} per"
    with pytest.warns(ConvergenceWarning, match=words):
        enough.set_params(tol=0.99 * found.gap_).fit(X, bags, P)


@schemes
def test_the_end_is_a_fixed_point(options):
    X, _, bags, P = problem()
    model = WeightedLDA(**options, tol=1e-9, max_iter=5000).fit(X, bags, P)
    order = np.argsort(bags, kind="stable")
    w = model.weights_[order]
    if options["scheme"] == "sws":
        assert_array_equal(w, P[bags[order]])
        return
    near = model._log_closeness(X[order], w, da.whitening(X))
    found = da.matched_weights(near, np.arange(0, 240, 6), 6 * P)
    assert_allclose(found, w, atol=1e-5)


@pytest.mark.parametrize("options", SCHEMES[2:])
def test_single_precision_comes_first_and_changes_nothing(options, monkeypatch):
    X, _, bags, P = problem(n=600, apart=1.0)
    X = X @ np.diag([1e-3, 1.0, 1e3, 1e6]) + 1e4
    X[:, 1] += 1e3 * X[:, 0]  # collinear up to a thousandth
    model = WeightedLDA(**options, tol=1e-9, max_iter=5000)
    slow, seen = clone(model).fit(X, bags, P), []
    monkeypatch.setattr(da, "LIGHT", 0)
    fit_gaussians = da.fit_gaussians

    def watched(X, *more, **options):
        seen.append(X.dtype)
        return fit_gaussians(X, *more, **options)

    monkeypatch.setattr(da, "fit_gaussians", watched)
    fast = model.fit(X, bags, P)
    assert abs(fast.n_iter_ - slow.n_iter_) < 3 and fast.gap_ < 1e-9
    assert_allclose(fast.weights_, slow.weights_, atol=1e-7)
    switch = seen.index(np.float64)
    assert 3 < switch < fast.n_iter_ - 3 and set(seen[switch:]) == {X.dtype}


@schemes
def test_an_offset_costs_no_digits(options):
    X, _, bags, P = problem()
    near, far = (WeightedLDA(**options).fit(Z, bags, P) for Z in (X, X + 1e6))
    assert_allclose(far.covariance_, near.covariance_, atol=1e-6)
    assert_allclose(far.means_, near.means_ + 1e6, atol=1e-6, rtol=0)
    assert_allclose(far.predict_proba(X + 1e6), near.predict_proba(X), atol=1e-5)


# --- limits and symmetries ---------------------------------------------------------------------------------


@schemes
@pytest.mark.parametrize("shrinkage", [None, 0.3])
def test_bags_of_size_one_are_discriminant_analysis(options, shrinkage):
    X, y, *_ = problem(apart=0.7)
    limit = LinearDiscriminantAnalysis(solver="eigen", shrinkage=shrinkage).fit(X, y)
    model = WeightedLDA(**options, shrinkage=shrinkage)
    model.fit(X, np.arange(240), np.eye(3)[y])
    assert_allclose(model.predict_proba(X), limit.predict_proba(X), atol=1e-9)
    assert_array_equal(model.predict(X), limit.predict(X))
    raw = LinearDiscriminantAnalysis(solver="eigen").fit(X, y)  # before shrinkage
    assert_allclose(model.covariance_, raw.covariance_, atol=1e-10)
    if shrinkage is None:
        theirs = limit.transform(X) - limit.transform(X.mean(axis=0, keepdims=True))
        assert_allclose(np.abs(model.transform(X)), np.abs(theirs), atol=1e-9)
        ratio = limit.explained_variance_ratio_
        assert_allclose(model.explained_variance_ratio_, ratio)


def test_two_classes_are_log_odds():
    X, y, bags, P = problem(n_classes=2)
    model = WeightedLDA().fit(X, bags, P)
    odds = np.log(model.predict_proba(X)[:, 1] / model.predict_proba(X)[:, 0])
    assert_allclose(model.decision_function(X), odds, atol=1e-9)
    assert model.coef_.shape == (1, 4) and model.transform(X).shape == (240, 1)
    swapped = WeightedLDA().fit(X, bags, 1 - P[:, 1])
    assert_allclose(swapped.decision_function(X), -odds, atol=1e-6)
    assert model.score(X, y) > 0.9


@schemes
def test_units_do_not_matter_but_to_distances(options):
    X, _, bags, P = problem(apart=1.0)
    rng = np.random.default_rng(7)
    A, shift = rng.normal(size=(4, 4)), rng.normal(size=4)
    moved = (X @ A + shift) * [1e-6, 1.0, 1e4, 1e8]
    one = WeightedLDA(**options).fit(X, bags, P).predict_proba(X)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", LLPWarning)
        two = WeightedLDA(**options).fit(moved, bags, P).predict_proba(moved)
    measures = any("measures distances" in str(w.message) for w in said)
    assert measures == (options["scheme"] == "fws")
    if measures:
        assert np.abs(one - two).max() > 0.01
    else:
        assert_allclose(two, one, atol=1e-5)


# --- degenerate data ---------------------------------------------------------------------------------------


@schemes
@pytest.mark.filterwarnings("ignore:.* predicts class")
def test_classes_that_always_come_together(options):
    X, y, bags, _ = problem(n_classes=2)
    P = label_proportions(y, bags)
    tied = np.column_stack([P[:, 0], P[:, 1] / 2, P[:, 1] / 2])
    with pytest.warns(LLPWarning, match="rank 2 over the bags, which cannot tell 3"):
        model = WeightedLDA(**options)  # a bag without instances tells nothing apart
        model.fit(X, bags, np.vstack([tied, [0.1, 0.7, 0.2]]))
    two = WeightedLDA(**options).fit(X, bags, P)
    assert_allclose(model.means_[1], model.means_[2])
    if options["scheme"] != "fws":
        assert_allclose(model.means_[0], two.means_[0], atol=0.2)


@schemes
def test_a_class_in_no_bag_is_never_predicted(options):
    X, _, bags, P = problem(n_classes=2)
    model = WeightedLDA(**options).fit(X, bags, np.column_stack([P, np.zeros(len(P))]))
    two = WeightedLDA(**options).fit(X, bags, P)
    moved = clone(model).fit(X + 50, bags, np.column_stack([P, np.zeros(len(P))]))
    assert_allclose(moved.weights_, model.weights_, atol=1e-5)
    assert (model.predict_proba(X)[:, 2] == 0).all()
    if options["scheme"] != "fws":  # whose distances to the empty class count
        assert_allclose(model.predict_proba(X)[:, :2], two.predict_proba(X), atol=1e-9)


@schemes
def test_singular_covariance(options):
    X, y, bags, P = problem()
    constant, copied = np.full((240, 1), 3.3), X[:, :1] - 2 * X[:, 1:2]
    plain = WeightedLDA(**options).fit(X, bags, P).predict_proba(X)
    for column in (constant, copied)[: 1 + (options["scheme"] != "fws")]:
        wide = np.hstack([X, column])
        found = WeightedLDA(**options).fit(wide, bags, P).predict_proba(wide)
        assert_allclose(found, plain, atol=1e-6)
    wide = np.hstack([X, copied, constant])
    assert WeightedLDA(**options, shrinkage=0.1).fit(wide, bags, P).score(wide, y) > 0.6


@schemes
def test_a_feature_that_is_constant_within_classes_decides(options):
    """A pseudo-inverse would drop it; with nursery that costs 35 points."""
    rng = np.random.default_rng(9)
    y = rng.integers(0, 3, 600)
    X = np.column_stack([rng.normal(size=(600, 3)), y == 2])
    bags = np.where(y == 2, 300, rng.permutation(600) // 4)  # the others in bags
    P = label_proportions(y, bags, n_bags=301, classes=range(3))
    P[np.bincount(bags, minlength=301) == 0] = 1 / 3
    model = WeightedLDA(**options).fit(X, bags, P)
    assert_array_equal(model.predict(X) == 2, y == 2)
    limit = WeightedLDA("sws").fit(X, np.arange(600), np.eye(3)[y])
    assert_array_equal(limit.predict(X) == 2, y == 2)


@schemes
def test_features_that_say_nothing_give_the_largest_class(options):
    _, y, bags, P = problem()
    model = WeightedLDA(**options).fit(np.ones((240, 2)), bags, P)
    assert (model.predict(np.ones((240, 2))) == np.bincount(y).argmax()).all()
    assert_allclose(model.predict_proba(np.ones((1, 2)))[0], np.bincount(y) / 240)
    assert model.transform(np.ones((240, 2))).shape == (240, 0)


@schemes
def test_more_features_than_instances(options):
    X, y, bags, P = problem(n=60)
    wide = np.hstack([X, np.random.default_rng(0).normal(size=(60, 200))])
    for shrinkage in (None, 0.5):
        model = WeightedLDA(**options, shrinkage=shrinkage, max_iter=2000)
        model.fit(wide, bags, P)
        assert np.isfinite(model.decision_function(wide)).all()
    assert model.score(wide, y) > 0.35
