"""EM against a search through all labelings, its descent, its limits, and its starts."""

import re
from functools import partial
from itertools import product

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from problems import gaussian_bags
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from llpbook import MeanMap, em
from llpbook._counts import label_by_counts, whole_counts
from llpbook._linear import bag_counts
from llpbook.base import NotIdentifiableError, class_scores, read_bags, row_order
from llpbook.count_likelihood import CountLogistic, count_posterior
from llpbook.em import EMLR
from llpbook.proportions import label_proportions

problem = partial(gaussian_bags, d=3, apart=2.0)


def slow_labels(scores, counts):
    """The best of all labelings of one bag with these counts."""
    n, K = scores.shape
    every = (np.array(y) for y in product(range(K), repeat=n))
    fitting = [y for y in every if (np.bincount(y, minlength=K) == counts).all()]
    return max(fitting, key=lambda y: scores[np.arange(n), y].sum())


# --- the steps ---------------------------------------------------------------------------------------------


@pytest.mark.equation("eq-em-labels")
@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_labels_are_the_best_of_all_with_these_counts(n_classes):
    rng = np.random.default_rng(0)
    for _ in range(10):
        bags = rng.permutation(np.repeat([0, 2, 3], [1, 6, 5]))  # bag 1 is empty
        scores = rng.normal(size=(12, n_classes))
        P, sizes = rng.dirichlet(np.ones(n_classes), 4), np.bincount(bags, minlength=4)
        counts = whole_counts(P, sizes)
        found = label_by_counts(scores, bags, counts)
        for k in (0, 2, 3):
            slow = slow_labels(scores[bags == k], counts[k])
            assert_array_equal(found[bags == k], slow)


def test_thresholds_of_another_time_give_the_same_labels():
    rng = np.random.default_rng(8)
    bags = rng.permutation(np.repeat([0, 2, 3, 4, 5], [1, 6, 9, 20, 4]))
    sizes = np.bincount(bags)
    thresholds = np.full(6, np.nan)
    for trial in range(100):
        positives = rng.integers(0, sizes + 1)
        counts = np.column_stack([sizes - positives, positives])
        gap = rng.normal(size=40) + 0.1 * trial
        gap = np.round(gap, trial % 3)  # most trials have ties
        slow = label_by_counts(np.column_stack([0 * gap, gap]), bags, counts)
        for _ in range(2):  # the second time with thresholds that hold
            found = em.label_by_thresholds(gap, bags, counts, thresholds)
            assert_array_equal(found, slow)


def test_exchanges_give_the_best_labels_and_label_few_bags_anew(monkeypatch):
    rng, bags = np.random.default_rng(0), np.arange(60) % 6
    F, y = rng.normal(size=(60, 4)), rng.integers(0, 3, 60)
    counts, rows = np.eye(4, dtype=int)[y], []
    counts = np.array([counts[bags == k].sum(axis=0) for k in range(6)])
    best = label_by_counts(F, bags, counts)
    for start in (y, 0 * y + 3):
        assert_array_equal(em.label_by_exchanges(F, bags, counts, start), best)
    moved = F + rng.normal(size=(60, 4)) * (bags == 2)[:, None]
    slow = label_by_counts(moved, bags, counts)
    assert (slow != best).any()

    def watched(scores, bags, counts):
        rows.extend(bags)
        return label_by_counts(scores, bags, counts)

    monkeypatch.setattr(em, "label_by_counts", watched)
    assert_array_equal(em.label_by_exchanges(moved, bags, counts, best), slow)
    assert rows == [2] * 10


@pytest.mark.parametrize("size", [3, 4])
def test_a_ring_of_exchanges_is_found_where_no_pair_gains(size):
    last, counts = np.arange(size), np.ones((1, size), int)
    for gain, best in ((2, np.roll(last, -1)), (0, last)):
        scores = np.full((size, size), -9.0) + 9 * np.eye(size)
        scores[last, np.roll(last, -1)] = gain
        scores[size - 1, 0] = 0.5 - (size - 1) * 2  # around it, 1/2 or less is gained
        found = em.label_by_exchanges(scores, 0 * last, counts, last.copy())
        assert_array_equal(found, best)


@pytest.mark.equation("eq-em-majority")
def test_majority_labels():
    P, bags = np.array([[0.6, 0.4], [0.2, 0.8]]), np.array([1, 0, 0, 1])
    assert_array_equal(em.majority_labels(bags, P), [1, 0, 0, 1])
    # No bag has a positive majority: the share of the second is above the mean of all instances, 0.11.
    P = np.array([[0.9, 0.1], [0.85, 0.15], [0.6, 0.4]])
    bags = np.repeat([0, 1, 2], [40, 1, 1])
    assert_array_equal(em.majority_labels(bags, P), [0] * 40 + [1, 1])
    # The mean of the instances is 0.57, 0.295, 0.135; that of the bags would give the first the second class.
    P = np.array([[0.5, 0.3, 0.2], [0.4, 0.25, 0.35], [0.6, 0.3, 0.1]])
    bags = np.repeat([0, 1, 2], [1, 1, 8])
    assert_array_equal(em.majority_labels(bags, P), [2, 2, *[0] * 8])


@pytest.mark.equation("eq-em-soft")
def test_soft_labels_are_posteriors_that_keep_the_counts():
    _, _, bags, P = problem()
    observed = bag_counts(bags, P)
    f = np.random.default_rng(3).normal(size=240)
    q = em.soft_labels(np.column_stack([f - f, f]), observed)
    assert_allclose(observed.sums(q[:, 1]), observed.counts, atol=1e-7)
    assert_allclose(q[:, 1], count_posterior(f, observed)[1], atol=1e-12)


def test_soft_labels_of_a_count_between_two_whole_ones():
    observed, s = bag_counts(np.zeros(2, int), np.array([[0.75, 0.25]])), 0.3
    q = em.soft_labels(np.log([[1 - s, s], [1 - s, s]]), observed)[:, 1]
    # None or one of the two, as likely: s (1 - s) against (1 - s)^2 + 2 s (1 - s).
    assert_allclose(q, s / (1 + s))


def test_the_start_at_mean_map_is_mean_map_wherever_the_origin_is():
    X, y, bags, P = problem()
    observed = bag_counts(bags, P)
    counts = whole_counts(P, observed.sizes)
    for shift in (0, 20):
        mean_map = MeanMap(alpha=4.0).fit(X + shift, bags, P)
        f = mean_map.decision_function(X + shift)
        best = label_by_counts(np.column_stack([0 * f, f]), bags, counts)
        start = em.start_labels("mean_map", X + shift, observed, counts, None)
        assert np.mean(start == best) > 0.97 and np.mean(start == y) > 0.85


@pytest.mark.parametrize("start", ["proportions", "mean_map"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_starts_with_counts_have_them(start, n_classes):
    X, _, bags, P = problem(n_classes=n_classes)
    observed = bag_counts(bags, P)
    counts, rng = whole_counts(P, observed.sizes), np.random.RandomState(0)
    y = em.start_labels(start, X, observed, counts, rng)
    assert_allclose(label_proportions(y, bags, classes=range(n_classes)), P)
    y = em.start_labels("random", X, observed, counts, rng)
    assert_allclose(np.bincount(y) / 240, 1 / n_classes, atol=0.1)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("n_classes", [2, 3])
def test_every_iteration_descends_and_the_end_is_a_fixed_point(n_classes):
    X, _, bags, P = problem(n_classes=n_classes)
    counts = whole_counts(P, np.bincount(bags))
    model = EMLR(0.5, init="proportions", random_state=0).fit(X, bags, P)
    assert model.n_iter_ > 2 and model.flips_[-1] == 0
    again = label_by_counts(class_scores(model.estimator_, X, n_classes), bags, counts)
    assert_array_equal(again, model.labels_)
    exact, values = LogisticRegression(C=0.5, tol=1e-9, max_iter=1000), []
    for limit in range(1, model.n_iter_ + 1):
        y = model.set_params(max_iter=limit).fit(X, bags, P).labels_
        chosen = exact.fit(X, y).predict_log_proba(X)[np.arange(240), y]
        values.append((exact.coef_**2).sum() - chosen.sum())  # 1 / 2C is 1
    assert (np.diff(values) < 1e-5).all() and values[-1] < values[0] - 1


# --- the whole ---------------------------------------------------------------------------------------------


def slow_em(X, bags, P, C, start, seed):
    """The obvious version: scikit-learn fits from scratch, every bag is sorted."""
    order = row_order(read_bags(X, bags, P))
    X, observed = X[order], bag_counts(bags[order], P)
    counts = whole_counts(observed.shares, observed.sizes)
    y, rng = np.empty(len(X), int), np.random.RandomState(seed)
    new, flips = em.start_labels(start, X, observed, counts, rng), []
    while not flips or flips[-1]:
        model = LogisticRegression(C=C, solver="newton-cholesky", tol=1e-8)
        scores = class_scores(model.fit(X, new), X, P.shape[1])
        y[order] = new
        new = label_by_counts(scores, observed.bags, counts)
        flips.append(np.sum(new != y[order]))
    return y, flips, model


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("block", [0, 2, 3])
def test_warm_fits_give_the_labels_of_exact_ones_in_every_iteration(block):
    for seed in range(10 * block, 10 * block + 10):
        rng = np.random.default_rng(seed)
        n, d, size = rng.integers(30, 600), rng.integers(1, 9), rng.integers(2, 40)
        K = 3 if seed % 5 == 0 else 2
        prior, means = rng.dirichlet(np.full(K, 3.0)), rng.normal(size=(K, d))
        y = rng.choice(K, n, p=prior)
        X = rng.normal(size=(n, d)) + rng.choice([0.3, 1, 3]) * means[y]
        X = X * rng.choice([0.1, 1, 30])
        bags, C = rng.permutation(n) // size, 10 ** rng.uniform(-3, 2)
        P = label_proportions(y, bags, classes=range(K))
        start = ["majority", "proportions", "random", "mean_map"][seed % 4]
        slow, flips, exact = slow_em(X, bags, P, C, start, seed)
        model = EMLR(C, init=start, random_state=seed).fit(X, bags, P)
        assert_array_equal(model.labels_, slow)
        assert model.flips_.tolist() == flips
        probabilities = [m.predict_proba(X) for m in (model.estimator_, exact)]
        assert_allclose(*probabilities, atol=1e-4)
        sparse = EMLR(C, init=start, random_state=seed)
        sparse.fit(sp.csr_array(X), bags, P)
        assert_array_equal(sparse.labels_, slow)


@pytest.mark.parametrize("light", [0, np.inf])  # with and without single precision
def test_warm_fits_are_exact_and_take_few_steps(light, monkeypatch):
    monkeypatch.setattr(em._fits, "LIGHT", light)
    X, y = make_classification(1000, random_state=1)
    exact = LogisticRegression(C=0.5, fit_intercept=False, tol=1e-10, max_iter=1000)
    fits, rng = em.WarmFits(X, np.full(20, 2.0)), np.random.default_rng(0)
    for _ in range(20):
        y[rng.permutation(1000)[:2]] ^= 1
        f = exact.fit(X, y).decision_function(X)
        assert_allclose(fits(X.T @ y / 1000, None), f, atol=1e-6)
        assert fits.gap() <= em._fits.WARM_TOL
        assert_allclose(X @ fits.w, f, atol=1e-6)
    assert (fits.light is None) == (light > 0)
    step, change, _ = fits.steps[-1]  # the secant equation
    found = em._fits.corrected_step(fits.factor, fits.steps, change)
    assert_allclose(found, step, rtol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_single_precision_changes_no_label(n_classes, monkeypatch):
    X, _, bags, P = problem(n_classes=n_classes, size=12, n=1200)
    slow = EMLR().fit(X, bags, P)
    monkeypatch.setattr(em._fits, "LIGHT", 0)
    fast = EMLR().fit(X, bags, P)
    assert_array_equal(fast.flips_, slow.flips_)
    assert_array_equal(fast.labels_, slow.labels_)


@pytest.mark.filterwarnings("ignore:EMLR penalizes", "ignore::RuntimeWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_where_newton_steps_fail_scikit_learn_fits():
    # Collinear features, an offset that rounds the gradient off, almost no penalty and classes apart.
    X, y, bags, P = problem(apart=8.0)
    for Z, C in ((np.hstack([X, X]), 1e8), (1e6 + X, 1.0), (X, 1e12)):
        model = EMLR(C).fit(Z, bags, P)
        assert np.isfinite(model.estimator_.coef_).all() and model.score(Z, y) > 0.9
    fits = em.warm_logistic(EMLR(1e12)._base(), X, 2)
    assert ((fits(y.astype(np.int8)) > 0) == y).all()
    fits((X[:, 0] > X[:, 0].mean()).astype(np.int8))
    f = fits((np.arange(240) % 2).astype(np.int8))
    exact = LogisticRegression(C=1e12, tol=1e-10, solver="newton-cholesky")
    exact.fit(X, np.arange(240) % 2)
    assert_allclose(f, exact.decision_function(X), atol=1e-6)
    with pytest.raises(NotIdentifiableError, match="every instance gets the same"):
        fits(np.zeros(240, np.int8))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("soft", [False, True])
def test_bags_of_size_one_are_logistic_regression(n_classes, soft):
    X, y, *_ = problem(n_classes=n_classes)
    supervised = LogisticRegression(C=2.0, tol=1e-10, max_iter=1000).fit(X, y)
    model = EMLR(C=2.0, soft=soft).fit(X, np.arange(len(X)), np.eye(n_classes)[y])
    assert_allclose(model.predict_proba(X), supervised.predict_proba(X), atol=1e-4)


def test_label_swap_changes_what_is_tied():
    # The docstring: a majority of equal shares is the first class; of equal scores the first are positive.
    shares, bags = np.array([[0.5, 0.5], [0.25, 0.75], [0.75, 0.25]]), np.arange(3)
    assert em.majority_labels(bags, shares).tolist() == [0, 1, 0]
    assert em.majority_labels(bags, shares[:, ::-1]).tolist() == [0, 0, 1]
    found = label_by_counts(np.zeros((8, 2)), np.arange(8) // 4, np.full((2, 2), 2))
    assert found.tolist() == [1, 1, 0, 0] * 2
    X, _, bags, P = problem()
    for base in (None, DecisionTreeClassifier(max_depth=3, random_state=0)):
        model = EMLR(estimator=base, init="mean_map")
        one, two = (model.fit(X, bags, p).predict(X) for p in (P, P[:, ::-1]))
        assert (one == two).any() == (base is not None)


def test_soft_em_climbs_the_likelihood_of_the_counts():
    # Where it stops, the gradient of the likelihood is 0: the answer is that of CountLogistic.
    X, _, bags, P = problem(n=400, size=4)
    ones = np.column_stack([X, np.ones(400)])
    base = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-10, max_iter=1000)
    soft = EMLR(estimator=base, soft=True, init="mean_map", tol=1e-7).fit(ones, bags, P)
    direct = CountLogistic(C=1.0, penalize_intercept=True, tol=1e-8).fit(X, bags, P)
    assert_allclose(soft.estimator_.coef_[0, :3], direct.coef_[0], atol=1e-3)
    f = soft.decision_function(ones)
    q = em.soft_labels(np.column_stack([0 * f, f]), bag_counts(bags, P))
    assert 0 <= soft.gap_ <= 1e-7
    assert_array_equal(soft.labels_, q.argmax(axis=1))


@pytest.mark.parametrize("how", [{"stop": "llp-learn"}, {"soft": True, "tol": 0.1}])
def test_a_class_without_a_majority_is_learned_in_the_second_round(how):
    y = np.tile([0, 0, 0, 1, 2, 2, 1, 1, 1, 0, 0, 2, 0, 0, 0, 0, 1, 1], 10)
    X = np.random.default_rng(0).normal(size=(180, 2)) + 5 * np.eye(3)[y, :2]
    bags = np.arange(180) // 6
    P = label_proportions(y, bags)
    assert np.max(em.majority_labels(bags, P)) == 1
    model = EMLR(**how).fit(X, bags, P)
    assert_array_equal(np.unique(model.predict(X)), [0, 1, 2])


def test_the_public_rule_compares_two_rounds():
    # Labels that change, of 100; the second number differs by 5, the third by less.
    for changed in ([70, 75, 79], [79, 74, 70]):
        moves = iter([*changed, 0])

        def guess(y, moves=moves):
            return np.where(np.arange(100) < next(moves), 1 - y, y)

        y = np.arange(100) % 2
        found = em.alternate(y, lambda y: y, guess, "llp-learn", 9, 0)
        _, flips, settled, gap = found
        assert settled and flips.tolist() == changed and gap == changed[-1] / 100


def test_soft_labels_have_converged_when_none_changes_by_more_than_tol():
    def guess(q):  # one label in a hundred halves its distance to 1/2
        new = q.copy()
        new[0] = (new[0] + 0.5) / 2
        return new

    first, same = np.eye(2)[np.zeros(100, int)], lambda q: q
    for tol, n in ((0.1, 3), (0.0625, 3), (0.06, 4)):
        q, flips, settled, gap = em.alternate(first, same, guess, "fixed_point", 9, tol)
        assert settled and len(flips) == n and gap == 0.5 ** (n + 1)
        assert q[0, 1] == 0.5 - 0.5**n


def test_a_circle_is_noticed():
    first = np.eye(2)[np.arange(10) % 2]
    steps = (lambda q: q), (lambda q: q[:, ::-1].copy())
    _, flips, settled, gap = em.alternate(first, *steps, "fixed_point", 99, 0)
    assert not settled and flips.tolist() == [10, 10] and gap == 1


@pytest.mark.parametrize("limit", [1, 2])
def test_stopped_short_the_classifier_is_that_of_the_labels(limit, capsys):
    X, _, bags, P = problem()
    model = EMLR(init="random", random_state=0, max_iter=limit, verbose=2)
    with pytest.warns(ConvergenceWarning) as said:
        model.fit(X, bags, pd.DataFrame(P, columns=["no", "yes"]))
    last = model.flips_[-1]
    assert model.n_iter_ == limit and model.gap_ == last / 240 > 0
    assert f"{limit} iterations, and {last} labels would" in str(said[0].message)
    told = re.findall(r"EMLR.*; (\d+) labels changed", capsys.readouterr().out)
    assert [int(n) for n in told] == model.flips_.tolist()
    again = LogisticRegression(tol=1e-8, max_iter=1000).fit(X, model.labels_ == "yes")
    assert_allclose(model.estimator_.coef_, again.coef_, atol=1e-4)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("start", ["majority", "proportions", "random", "mean_map"])
def test_the_order_of_the_instances_does_not_matter(start):
    X, _, bags, P = problem()
    order = np.random.default_rng(7).permutation(240)
    first = EMLR(init=start, random_state=0, max_iter=1)
    one = first.fit(X, bags, P).labels_
    two = first.fit(X[order], bags[order], P).labels_
    assert_array_equal(one[order], two)


def test_a_machine_without_probabilities():
    X, y, bags, P = problem()
    machine = EMLR(estimator=LinearSVC()).fit(X, bags, P)
    assert machine.score(X, y) > 0.8 and not hasattr(machine, "predict_proba")


@pytest.mark.parametrize("start", ["majority", "proportions", "random", "mean_map"])
def test_classes_that_could_change_names_are_refused(start):
    X, y, bags, P = problem()
    halves = np.append(np.full(40, 0.5), 0.9)  # the last bag is empty
    with pytest.raises(NotIdentifiableError, match="classes 0 and 1 equal shares"):
        EMLR(init=start, random_state=0).fit(X, bags, halves)
    split = pd.DataFrame(P[:, [0, 1, 1]] / [1, 2, 2], columns=["a", "b", "c"])
    with pytest.raises(NotIdentifiableError, match="classes 'b' and 'c' equal"):
        EMLR(init=start, random_state=0).fit(X, bags, split)
    some = np.where(np.arange(240) < 60, y, -1)
    model = EMLR(random_state=0).fit(X, bags, np.full(40, 0.5), labels=some)
    assert model.score(X, y) > 0.7


def test_classes_absent_from_every_bag_are_never_predicted():
    X, y, bags, P = problem(n_classes=3)
    P = np.column_stack([P, np.zeros((40, 2))])
    model = EMLR().fit(X, bags, P)
    assert model.predict_proba(X).shape == (240, 5) and model.score(X, y) > 0.8
    assert np.isin(model.predict(X), [0, 1, 2]).all()


def test_estimators_that_cannot_are_refused():
    X, _, bags, P = problem()
    with pytest.raises(ValueError, match="'estimator' parameter of EMLR"):
        EMLR(estimator=Ridge()).fit(X, bags, P)
    with pytest.raises(ValueError, match="soft=True needs an estimator that takes"):
        EMLR(estimator=KNeighborsClassifier(), soft=True).fit(X, bags, P)
    tree = EMLR(estimator=DecisionTreeClassifier(max_depth=2, random_state=0))
    tree.fit(X * [1e6, 1, 1], bags, P)  # has no penalty, so none of its scale is said


@pytest.mark.parametrize("soft", [False, True])
def test_a_fitted_estimator_is_copied_and_keeps_its_fit(soft):
    X, y, bags, P = problem()
    base = LogisticRegression().fit(X, 1 - y)
    before = base.coef_.copy()
    EMLR(estimator=base, soft=soft).fit(X, bags, P)
    assert_array_equal(base.coef_, before)
