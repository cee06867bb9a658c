"""The contract's parts: reading of bags, proportions and labels, and what is made of them."""

import ast
import re
import subprocess
import sys
import warnings
from dataclasses import replace
from functools import partial
from importlib.util import resolve_name
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from joblib import parallel_config
from numpy.testing import assert_allclose, assert_array_equal
from problems import named, uneven_bags
from scipy import special
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics.pairwise import euclidean_distances, rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import llpbook
from llpbook import _counts, _input, _linear, base, diagnosis
from llpbook._input import check_labels
from llpbook.base import (
    _bag_data,
    _estimator,
    _predictions,
    _tuning,
    _warnings,
)
from llpbook.base._bag_data import check_bag_weights
from llpbook.baselines import BagMeanRegression, MajorityClass
from llpbook.count_likelihood import CountLogistic, CountLoss
from llpbook.density_difference import class_counts
from llpbook.mean_map import MeanMap
from llpbook.model_selection import LLPGridSearchCV
from llpbook.proportions import averaging_matrix, label_proportions
from llpbook.taxonomy import STATEMENTS


def test_all_forms_of_proportions_mean_the_same():
    p, P = [0.25, 1.0], [[0.75, 0.25], [0.0, 1.0]]
    keyed = pd.Series(p), dict(enumerate(p)), dict(enumerate(P)), pd.DataFrame(P)
    for form in (p, np.array(P), *keyed):
        matrix, classes, _ = _input.check_proportions(form)
        assert_allclose(matrix, P)
        assert_array_equal(classes, [0, 1])


def test_labels_are_columns_and_minus_one():
    classes = np.array(["no", "yes"], dtype=object)
    assert_array_equal(check_labels(["yes", -1, "no"], classes, 3), [1, -1, 0])
    text = np.array(["yes", -1])  # now "-1", a string
    assert_array_equal(check_labels(text, classes, 2), [1, -1])
    for two in (np.array([-1, 1]), np.array(["-1", "1"], dtype=object)):
        with pytest.raises(ValueError, match="-1 is one of the classes"):
            check_labels(np.array(two.tolist()), two, 2)
    some = np.array(["-1", -1, "1"], dtype=object)
    assert_array_equal(check_labels(some, two, 3), [0, -1, 1])


# --- what several estimators share -------------------------------------------------------------------------


three_classes = partial(uneven_bags, n=300, d=2, size=10, n_classes=3, apart=3.0)


class OneAgainstTheRest(MeanMap):
    _several_classes = "one-vs-rest"


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_one_vs_rest_is_one_binary_fit_a_class(kernel):
    X, y, bags, P = three_classes()
    frame = pd.DataFrame(P, columns=["low", "mid", "high"])
    model = OneAgainstTheRest(kernel=kernel).fit(X, bags, frame)
    for k in range(3):
        alone = MeanMap(kernel=kernel).fit(X, bags, P[:, k])
        assert_array_equal(model.decision_function(X)[:, k], alone.decision_function(X))
    found = special.expit(model.decision_function(X))
    assert_allclose(model.predict_proba(X).T, found.T / found.sum(axis=1), atol=1e-12)
    best = model.decision_function(X).argmax(axis=1)
    assert_array_equal(model.predict(X), model.classes_[best])
    assert model.score(X, frame.columns.to_numpy()[y]) > 0.85


def test_tuning_takes_the_first_of_ties_up_to_rounding():
    rows = [(1.0, 0.5), (2.0, 0.7), (3.0, 0.7 * (1 + 1e-12)), (4.0, np.nan)]
    best, table = base.tune(rows, sigma=float)
    assert best == {"sigma": 2.0}
    assert list(table.columns) == ["sigma", "score"]
    assert base.tune([(1.0, -3.0), (2.0, -3.0 + 1e-3)], sigma=float)[0]["sigma"] == 2.0
    assert base.tune([(7, np.nan)], t=int)[0] == {"t": 7}


def test_pivoted_cholesky_of_a_singular_kernel():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(60, 5))
    features, to_dual = _input.kernel_features(A @ A.T)
    assert features.shape == (60, 5)
    assert_allclose(features @ features.T, A @ A.T, atol=1e-10)
    w = rng.normal(size=(5, 2))
    assert_allclose(A @ A.T @ to_dual(w), features @ w, atol=1e-10)


def test_bag_weights_of_pure_bags_are_their_sizes():
    X, y, bags, P = three_classes()
    labels = np.where(bags < 4, y, -1)
    given = base.BagData(X, bags, P, np.arange(3), labels=labels)
    data = base.labels_to_pure_bags(given)
    known = np.bincount(y[bags < 4], minlength=3)
    assert_array_equal(check_bag_weights("size", data)[-3:], known)
    own = check_bag_weights(np.full(30, 2.0), data)
    assert_array_equal(own[-3:], known)
    assert_array_equal(own[4:30], 2)
    assert_array_equal(own[:4], 0)  # all of these instances are labeled
    uniform = check_bag_weights("uniform", data)
    assert_array_equal(uniform[-3:], known > 0)


def test_canonical_order_is_that_of_tuples():
    X = np.random.default_rng(0).integers(0, 3, (40, 3)).astype(float)
    assert list(map(tuple, X[base.canonical_order(X)])) == sorted(map(tuple, X))


def test_choices_among_rows_do_not_depend_on_their_order():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(30, 2))
    for choose in (
        lambda Z: base.thin(Z, 12),
        lambda Z: base.choose_centers(Z, 12, np.random.RandomState(0)),
    ):
        chosen = choose(X)
        assert len({*map(tuple, chosen)}) == 12 < len({*map(tuple, [*chosen, *X])})
        assert_array_equal(chosen, choose(X[rng.permutation(30)]))
    assert base.thin(X, 30) is X and len(base.thin(X, 29)) == 29
    centers = base.choose_centers(X, 40, np.random.RandomState(0))
    assert_array_equal(centers, X[base.canonical_order(X)])


def test_the_unit_of_distance_is_the_median_over_unequal_pairs():
    X = np.random.default_rng(2).normal(size=(610, 2))
    few = X[:9]
    slow = [np.linalg.norm(a - b) for i, a in enumerate(few) for b in few[:i]]
    assert base.median_distance(few) == pytest.approx(np.median(slow))
    assert base.median_distance(X) == base.median_distance(base.thin(X, 500))
    for unit in (0.01, 7.0):
        expected = unit * base.median_distance(X)
        assert base.median_distance(unit * X) == pytest.approx(expected)
    mostly_equal = [[0.0]] * 8 + [[0.25], [0.5], [2.0]]
    assert base.median_distance(np.array(mostly_equal)) == 0.5
    two_equal = [[0.0], [0.0], [0.25], [0.5], [0.75]]  # 0, 4 of .25, 3 of .5, 2 of .75
    assert base.median_distance(np.array(two_equal)) == 0.375
    for nothing_apart in ([[3.0]], [[3.0]] * 5):
        assert base.median_distance(np.array(nothing_apart)) == 1


def test_folds_differ_by_one_and_depend_on_the_seed_alone():
    folds = base.fold_numbers(23, 5, 0)
    assert sorted(np.bincount(folds)) == [4, 4, 5, 5, 5]
    assert_array_equal(folds, base.fold_numbers(23, 5, 0))
    assert not np.array_equal(folds, base.fold_numbers(23, 5, 1))
    assert not np.array_equal(folds, np.arange(23) % 5)


def test_a_grid_is_in_units_and_the_users_numbers_are_not():
    grid = (0.5, 1.0, 2.0)
    for value, expected in (
        ("cv", [1.5, 3.0, 6.0]),
        ("median", [3.0]),
        (0.2, [0.2]),
        ([0.2, 7], [0.2, 7]),
    ):
        assert_allclose(base.candidates("s", value, grid, 3.0), expected)
    assert_array_equal(base.candidates("s", "cv", grid), grid)
    assert base.candidates("s", [1, 2], grid).dtype == float
    for bad in (0, -1.0, np.inf, [], [[1.0]], [1.0, np.nan], [1.0, 0.0]):
        with pytest.raises(ValueError, match="s must be finite numbers above 0"):
            base.candidates("s", bad, grid)


def test_probabilities_of_two_and_of_several_classes():
    scores = np.random.default_rng(3).normal(size=(5, 3))
    P = base.probabilities(scores)
    assert_allclose(P.sum(axis=1), 1)
    assert_allclose(np.log(P[:, 1] / P[:, 0]), scores[:, 1] - scores[:, 0], atol=1e-12)
    two = np.column_stack([np.zeros(5), scores[:, 0]])
    assert_allclose(base.probabilities(scores[:, 0]), base.probabilities(two))
    f = np.append(np.linspace(-800, 800, 2001), [-np.inf, np.inf])
    assert_allclose(base.expit(f), special.expit(f), rtol=1e-14)


def test_kernels_are_what_their_names_say():
    rng = np.random.default_rng(4)
    X, Z = rng.normal(size=(4, 3)), rng.normal(size=(5, 3))
    gaps = X[:, None] - Z[None]
    for kernel, expected in (
        ("rbf", np.exp(-0.7 * (gaps**2).sum(axis=2))),
        ("laplacian", np.exp(-0.7 * np.abs(gaps).sum(axis=2))),
        (lambda A, B: A @ B.T, X @ Z.T),
    ):
        assert_allclose(_input.gram_matrix(X, Z, kernel, 0.7), expected)
    assert _input.gram_matrix(X, X[:3], "precomputed", 0.7) is X


def test_an_rbf_kernel_depends_on_differences_alone():
    X, Z = np.random.default_rng(0).normal(size=(2, 20, 3))
    far = 2.0**30
    X, Z = (X + far) - far, (Z + far) - far  # as they are rounded there
    for A, B in ((X, Z), (X, X)):
        near, away = (
            _input.gram_matrix(A + c, A + c if A is B else B + c, "rbf", 0.7)
            for c in (0, far)
        )
        assert_allclose(away, near, atol=1e-6)
    C = X + far
    assert (_input.gram_matrix(C, C, "rbf", 0.7).diagonal() == 1).all()
    mixed = _input.gram_matrix(X, sp.csr_array(Z), "rbf", 0.7)
    assert_allclose(mixed, _input.gram_matrix(X, Z, "rbf", 0.7))


def test_a_sparse_precomputed_kernel_is_a_kernel():
    K = np.diag([1.0, 2.0, 3.0])
    found = _input.gram_matrix(sp.csr_array(K), sp.csr_array(K), "precomputed", 1.0)
    assert_array_equal(found, K)


KERNELS = [cls for _, cls in llpbook.all_estimators() if "kernel" in cls().get_params()]
LINEAR = [cls for cls in KERNELS if issubclass(cls, base.KernelClassifier)]
#: Where a fit may predict one class for all.
ONE_CLASS = pytest.mark.filterwarnings("ignore:.* predicts class")
each_kernel = pytest.mark.parametrize("cls", KERNELS, ids=lambda cls: cls.__name__)
each_linear = pytest.mark.parametrize("cls", LINEAR, ids=lambda cls: cls.__name__)


def kernel_problem(n=48):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 3)) + 1.5 * y[:, None]
    bags = np.arange(n) // 6
    return X, bags, np.bincount(bags, y) / 6


def kernel_model(cls, kernel):
    small = {"random_state": 0, "n_init": 2, "kernel": kernel}
    return cls(**{k: v for k, v in small.items() if k in cls().get_params()})


@each_kernel
@pytest.mark.parametrize("called", [False, True], ids=["precomputed", "callable"])
@pytest.mark.parametrize("power", [1, 2])
def test_distances_are_no_kernel(cls, called, power):
    X, bags, p = kernel_problem()

    def distances(A, B):
        return euclidean_distances(A, B) ** power

    kernel, Z = (distances, X) if called else ("precomputed", distances(X, X))
    with pytest.raises(ValueError, match="kernel"):
        kernel_model(cls, kernel).fit(Z, bags, p)


@each_linear
@pytest.mark.parametrize("wrong", ["unsymmetric", "negative", "zero"])
def test_other_matrices_that_are_no_kernel(cls, wrong):
    X, bags, p = kernel_problem()
    K = rbf_kernel(X)
    noise = np.random.default_rng(1).normal(size=K.shape)
    Z = {"unsymmetric": K + 0.3 * noise, "negative": -K, "zero": 0 * K}[wrong]
    model = kernel_model(cls, "precomputed")
    if "fit_intercept" in model.get_params():
        model.set_params(fit_intercept=False)
    with pytest.raises(ValueError, match="kernel"):
        model.fit(Z, bags, p)


@ONE_CLASS
@each_kernel
def test_a_kernel_may_be_rounded_or_of_rank_one(cls):
    X, bags, p = kernel_problem()
    K, u = rbf_kernel(X), X[:, 0]
    vector = np.linalg.eigh(K)[1][:, 0]
    rounded = K - 1e-12 * np.outer(vector, vector)
    for Z in (K.astype(np.float32), np.outer(u, u), rounded):
        model = kernel_model(cls, "precomputed").fit(Z, bags, p)
        assert np.isfinite(model.decision_function(Z)).all()


@each_linear
@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (lambda A, B: np.full((len(A), len(B)), np.nan), "finite"),
        (lambda A, B: (A @ B.T).astype(object), "object"),
        (lambda A, B: A @ B.T + 0j, "complex128"),
        (lambda A, B: "no matrix", "shape"),
        (lambda A, B: A @ A.T, r"shape \(1, 48\)"),
    ],
    ids=["nan", "object", "complex", "text", "of one argument"],
)
def test_a_callable_that_predict_could_not_use_is_refused_by_fit(cls, kernel, message):
    X, bags, p = kernel_problem()
    with pytest.raises(ValueError, match=rf"(?s)\bkernel\b.*{message}"):
        kernel_model(cls, kernel).fit(X, bags, p)


def test_the_scale_of_a_kernel_is_one_over_the_variance():
    X = np.random.default_rng(5).poisson(0.7, size=(40, 3)).astype(float)
    for factor in (0.1, 10.0):
        for form in (factor * X, sp.csr_array(factor * X)):
            gamma = _input.kernel_coefficient("scale", form)
            assert gamma == pytest.approx(1 / (3 * factor**2 * X.var()))
    for form in (np.ones((4, 2)), sp.csr_array(np.ones((4, 2)))):
        assert _input.kernel_coefficient("scale", form) == 1
        assert _input.kernel_coefficient(0.3, form) == 0.3


def test_a_pivot_ends_the_factor_by_its_share():
    for unit in (1e-6, 1.0, 1e6):
        gram = unit * np.diag([1e-3, 1.0, 1e-6])
        assert _input.kernel_features(gram, tol=1e-4)[0].shape == (3, 2)
        gram = unit * np.diag([1e-11, 1.0, 1e-13])
        assert _input.kernel_features(gram)[0].shape == (3, 2)


def test_a_named_kernel_is_its_matrix():
    X, _, bags, P = three_classes(n=60)
    D = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    named = MeanMap(kernel="rbf", gamma=2.0).fit(X[:40], bags[:40], P)
    K = np.exp(-2 * D[:, :40])
    given = MeanMap(kernel="precomputed").fit(K[:40], bags[:40], P)
    assert named.gamma_ == 2
    assert_allclose(named.decision_function(X), given.decision_function(K))


def test_one_against_the_rest_keeps_bags_and_known_labels():
    X, _, bags, P = three_classes(n=30)
    labels = np.arange(30) % 4 - 1
    data = base.BagData(X, bags, P, np.array(["a", "b", "c"]), labels=labels)
    for k in range(3):
        part = data.one_vs_rest(k)
        assert_allclose(part.proportions[:, 1], P[:, k])
        before = replace(data, before=data).one_vs_rest(k).before
        assert_array_equal(before.proportions, part.proportions)
        assert_allclose(part.proportions.sum(axis=1), 1)
        assert_array_equal(part.classes, [0, 1])
        assert_array_equal(part.labels == -1, labels == -1)
        assert_array_equal(part.labels == 1, labels == k)
        assert set(part.labels) == {-1, 0, 1}
    assert base.BagData(X, bags, P, np.arange(3)).one_vs_rest(0).labels is None


def test_a_fit_is_short_from_twice_the_tolerance_on():
    model = MeanMap(tol=1e-3)
    model.n_iter_, model.gap_ = 7, 2e-3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        base.warn_if_short(model)
    model.gap_ = 2.5e-3
    words = r"MeanMap stopped after 7 iterations with a gradient of 2.5e-03, above tol=0.001;"
    with pytest.warns(ConvergenceWarning, match=words):
        base.warn_if_short(model)


@pytest.mark.parametrize("counts", [None, np.array([9, 1])])
@pytest.mark.parametrize("unit", [2.0**-6, 1.0, 2.0**20])
def test_scales_differ_and_means_are_far_in_any_unit(unit, counts):
    X = np.array([[-1.0, -1e3, 29, 7], [1.0, 1e3, 31, 7]])
    tells("", _warnings.warn_of_scale, MeanMap(), unit * X)
    X[:, 2] += 1
    far = "a mean is 31 " if counts is None else "a mean is 50 "
    fit = partial(MeanMap().fit, unit * X, counts=counts)
    tells(far, fit, [0, 1], [0.2, 0.8])


def column_with(code, rows, n=500):
    """Two features, of which the second holds a code in some rows."""
    X = np.random.default_rng(0).normal(50, 10, size=(n, 2))
    X[rows, 1] = code
    return X


CODED = {
    "-666666666": column_with(-666666666, [3, 7, 9]),
    "once": column_with(9999, [400]),
    "two codes": column_with([-666666666, -222222222], [3, 4]),
    "standardized": StandardScaler().fit_transform(column_with(-999, slice(0, 60))),
    "many rows": column_with(-9999, [17], 50_000),
    "sparse": sp.csr_array(np.hstack([np.eye(500)[:, :3], column_with(-999, [5, 9])])),
}
PLAIN = {
    "no code": column_with(60, [3]),
    "an outlier": column_with(200, [3]),
    "a long tail": column_with(2000, [3]),
    "classes of a code": np.array([[0.0, 1, 999]] * 60).T.repeat(2, axis=1),
    "a dummy": np.eye(500)[:, :2],
    "constant": np.ones((500, 2)),
    "two groups": np.append(np.linspace(0, 1, 30), np.linspace(20, 21, 40))[:, None],
    "incomes": np.exp(np.random.default_rng(0).normal(10, 1.2, size=(3000, 2))),
    "mostly zero": np.arange(600.0)[:, None] * (np.arange(600)[:, None] % 20 == 0),
    "few rows": column_with(-999, [3])[:9],
    "counts of words": sp.csr_array(np.random.default_rng(0).poisson(0.1, (500, 4))),
}


@pytest.mark.parametrize("case", [*CODED, *PLAIN])
def test_a_code_among_numbers_is_said_and_an_outlier_is_not(case):
    X = {**CODED, **PLAIN}[case]
    tells("If it is a code" if case in CODED else "", _warnings.warn_of_codes, MeanMap(), X)  # fmt: skip


def test_a_fit_names_the_column_and_the_code():
    X = pd.DataFrame(column_with(-999, [3, 7]), columns=["age", "income"])
    bags, p = np.arange(500) % 5, [0.1, 0.3, 0.5, 0.7, 0.9]
    tells("column 'income' of X holds -999, ", MeanMap().fit, X / 1.0, bags, p)
    X["income"] = X["income"].replace(-999, X["income"].median())
    with warnings.catch_warnings():
        warnings.simplefilter("error", base.LLPWarning)
        MeanMap().fit(StandardScaler().fit_transform(X), bags, p)


@pytest.mark.parametrize("size, n_bags, said", [(4, 12, True), (1, 48, False), (4, 9, False)])  # fmt: skip
def test_labels_of_bags_are_told_from_shares(size, n_bags, said):
    X = np.random.default_rng(0).normal(size=(size * n_bags, 2))
    bags = np.repeat(np.arange(n_bags), size)
    labels = np.arange(n_bags) % 2 * 1.0
    tells("it is the label of a bag" if said else "", MeanMap(alpha=1.0).fit, X, bags, labels)  # fmt: skip
    labels[0] = round(0.25 * size) / size
    if size > 1:
        tells("", MeanMap(alpha=1.0).fit, X, bags, labels)


def test_the_constant_feature_is_last_and_the_form_stays():
    X = np.eye(3)[:, :2]
    ones = [[1, 0, 1], [0, 1, 1], [0, 0, 1]]
    assert_array_equal(base.append_one(X), ones)
    assert_array_equal(base.append_one(sp.csr_array(X)).toarray(), ones)


def test_a_score_of_zero_is_the_negative_class():
    X, _, bags, p = keyed_problem()
    model = MeanMap(fit_intercept=False).fit(X, bags, p)
    assert model.predict(np.zeros((1, 3))) == 0
    assert model.predict(model.coef_) == 1


def test_accuracy_with_weights():
    X, y, bags, p = keyed_problem()
    model = MeanMap().fit(X, bags, p)
    weights = np.arange(len(y)) + 1.0
    right = model.predict(X) == y
    assert model.score(X, y, weights) == pytest.approx(weights @ right / weights.sum())
    assert not right.all()


# --- nothing silently wrong --------------------------------------------------------------------------------


def keyed_problem():
    X, y, bags, P = uneven_bags(n=120, size=6, apart=2.5)
    names, frame = named(bags, P)
    return X, y, names, frame[1].sample(frac=1, random_state=1)


def test_predicted_proportions_come_in_the_order_of_the_fit():
    X, _, bags, p = keyed_problem()
    model = MeanMap().fit(X, bags, p)
    table = model.predict_proportions(X, bags)
    assert table.index.tolist() == p.index.tolist()
    more = model.predict_proportions(X, np.where(bags == p.index[3], "another", bags))
    assert more.index.tolist() == [*p.index.drop(p.index[3]), "another"]


def test_predicted_proportions_of_any_classifier_and_any_names():
    X, y = np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.array([0, 0, 1, 1])
    for model in (
        LogisticRegression().fit(X, y),
        make_pipeline(StandardScaler(), StandardScaler(), LogisticRegression()).fit(
            X, y
        ),
        MeanMap().fit(X, y, [0.0, 1.0]),
    ):
        codes = base.predict_proportions(model, X, [0.0, 1.0, 1.0, 1.0], 3)
        assert_allclose(codes, [[1, 0], [1 / 3, 2 / 3], [np.nan] * 2])
        # one class is predicted, both are shown
        assert_array_equal(base.predict_proportions(model, X[:2], [0, 0]), [[1, 0]])
        for names, order in (
            (["v", "u", "u", "u"], ["u", "v"]),
            (np.array(["0", 5, 5, 5], dtype=object), [5, "0"]),
            ([("a", 2), ("a", 1), ("a", 1), ("a", 1)], [("a", 1), ("a", 2)]),
        ):
            table = base.predict_proportions(model, X, names)
            assert table.index.tolist() == order
            assert_allclose(table, [[1 / 3, 2 / 3], [1, 0]])
        one = base.predict_proportions(model, X[:2], ["u", "u"])
        assert one.to_numpy().tolist() == [[1, 0]] and list(one) == [0, 1]


def test_soft_proportions_are_mean_probabilities():
    X, _, bags, p = keyed_problem()
    model = MeanMap().fit(X, bags, p)
    table = model.predict_proportions(X, bags, soft=True)
    chances = pd.DataFrame(model.predict_proba(X), columns=model.classes_)
    expected = chances.groupby(bags).mean().loc[p.index]
    assert_allclose(table, expected)
    codes = pd.factorize(bags)[0]
    rows = MeanMap().fit(X, codes, p[pd.unique(bags)].to_numpy())
    found = rows.predict_proportions(X[codes != 1], codes[codes != 1], 20, soft=True)
    assert np.isnan(found[1]).all() and np.isnan(found[len(p) :]).all()
    assert_allclose(found[0], rows.predict_proba(X[codes == 0]).mean(axis=0))
    with pytest.raises(
        ValueError, match="predict_proba, which BagMeanRegression has not"
    ):
        BagMeanRegression().fit(X, bags, p).predict_proportions(X, bags, soft=True)


def test_keyed_bag_weights_are_matched_by_name():
    X, _, bags, p = keyed_problem()
    weights = pd.Series(np.arange(1.0, 21), p.index)
    plain = MeanMap(bag_weights=weights.to_numpy()).fit(X, bags, p)
    for form in (weights.sample(frac=1, random_state=2), weights.to_dict()):
        model = MeanMap(bag_weights=form).fit(X, bags, p)
        assert_allclose(model.coef_, plain.coef_, rtol=1e-9)
    with pytest.raises(ValueError, match="bag_weights is matched by its keys"):
        MeanMap(bag_weights=weights.iloc[:-1]).fit(X, bags, p)


@pytest.mark.parametrize("name", ["X", "bags", "proportions", "labels"])
def test_a_mask_is_refused(name):
    X, y, bags, p = keyed_problem()
    codes = p.index.get_indexer(bags)
    given = {"X": X, "bags": codes, "proportions": p.to_numpy(), "labels": y}
    mask = np.zeros(given[name].shape, dtype=bool)
    mask.flat[3] = True
    given[name] = np.ma.masked_array(given[name], mask)
    with pytest.raises(ValueError, match=f"{name} is .*masked"):
        MeanMap().fit(**given)


def test_index_of_bags_is_compared_wherever_both_have_one():
    X, y, bags, p = keyed_problem()
    frame = pd.DataFrame(X, columns=list("abc"))
    shuffled = pd.Series(bags).sample(frac=1, random_state=0)
    model = MeanMap().fit(frame, pd.Series(bags), p)
    for call in (
        lambda: MeanMap().fit(frame, shuffled, p),
        lambda: MeanMap().fit(frame, bags, p, pd.Series(y, shuffled.index)),
        lambda: model.predict_proportions(frame, shuffled),
        lambda: llpbook.proportion_scorer(p)(model, frame, shuffled),
        lambda: model.score(frame, pd.Series(y).sample(frac=1, random_state=0)),
        lambda: llpbook.plot_bags(frame, shuffled, p),
        lambda: llpbook.diagnose(frame, shuffled, p),
        lambda: llpbook.make_bags(frame, pd.Series(y, shuffled.index), "simple"),
    ):
        with pytest.raises(ValueError, match=r"index differs from X\.index"):
            call()
    pipe = make_pipeline(StandardScaler().set_output(transform="pandas"), MeanMap())
    with pytest.raises(ValueError, match=r"index differs from X\.index"):
        pipe.fit(frame, shuffled, meanmap__proportions=p)


def test_tuples_name_bags():
    X, _, bags, p = keyed_problem()
    pairs = [("state", bag) for bag in bags]
    keyed = p.copy()
    keyed.index = pd.MultiIndex.from_tuples([("state", bag) for bag in p.index])
    reference = MeanMap().fit(X, bags, p)
    for form in (keyed, {("state", k): v for k, v in p.items()}):
        model = MeanMap().fit(X, pairs, form)
        assert_allclose(model.coef_, reference.coef_)
        assert model.predict_proportions(X, pairs).shape == (20, 2)


def test_labels_become_columns_of_the_sorted_classes():
    classes, codes = _input.label_codes(["b", "a", "c", "a"], 4)
    assert classes.tolist() == ["a", "b", "c"] and codes.tolist() == [1, 0, 2, 0]
    assert _input.label_codes([True, False], 2)[1].tolist() == [1, 0]
    backwards = pd.Series(["b", "a", "c", "a"], [3, 2, 1, 0])
    for y, message in (
        (["a"] * 4, "y must hold two classes or more, got only 'a'"),
        (["a", None, "b", "b"], "y has a missing value at position 1"),
        (backwards, r"y\.index differs from X\.index"),
    ):
        with pytest.raises(ValueError, match=message):
            _input.label_codes(y, 4, pd.DataFrame(np.eye(4)))


NAN, DAY = float("nan"), pd.Timestamp("2020-01-01")


def test_features_are_a_matrix_of_finite_numbers():
    X = _input.check_features([[1, 2], [3, 4]])
    assert X.dtype == float and X.tolist() == [[1, 2], [3, 4]]
    _input.check_features([[1e100]])
    for bad, message in (
        ([[-1e101]], "too large"),
        (np.array([[1, NAN]]), "column 1 holds missing values"),
        (np.ma.masked_array([[1.0, 2.0]], [[True, False]]), "masked"),
        (np.array([[3]], "timedelta64[D]"), "times"),
        (pd.DataFrame([["x", "y"]], columns=["a", "a"]), "column 'a', 'a' holds text"),
    ):
        with pytest.raises(ValueError, match=f"X must be a matrix .*{message}"):
            _input.check_features(bad)


COLUMNS = [
    ({"job": ["x", "y"], "a": [1, 2]}, "column 'job' holds text; put a OneHot"),
    ({"job": ["x", None]}, "'job' holds text.* Also, column 'job' holds missing"),
    ({"n": ["1", "2"], "a": [NAN, 1]}, "column 'a' holds missing values .*Imputer"),
    ({"a": [1.0, 2.0], "day": [DAY, DAY]}, "column 'day' holds times"),
    ({c: ["x", "y"] for c in "abcde"}, "column 'a', 'b', 'c' and 2 more holds text"),
    ({c: ["x", "y"] for c in "abc"}, "column 'a', 'b', 'c' holds text"),
    ({"a": [1.0, np.inf]}, "infinity"),
]


@pytest.mark.parametrize(("columns", "said"), COLUMNS)
def test_messages_name_the_columns_and_what_to_put_in_front(columns, said):
    X = pd.DataFrame(columns)
    with pytest.raises(ValueError, match=f"X must be a matrix .*{said}"):
        _input.check_features(X)
    with pytest.raises(ValueError, match=f"X is not valid .* MajorityClass: .*{said}"):
        MajorityClass().fit(X, [0, 1], [0.2, 0.8])


def test_columns_of_another_fit_are_named_as_such():
    model = MajorityClass().fit(pd.DataFrame({"a": [1, 2]}), [0, 1], [0.2, 0.8])
    for other in ({"a": [1.0], "job": ["x"]}, {"b": [NAN]}):
        with pytest.raises(ValueError, match="feature names should match"):
            model.predict(pd.DataFrame(other))
    with pytest.raises(ValueError, match="column 'a' holds missing values"):
        model.predict(pd.DataFrame({"a": [NAN]}))


@pytest.mark.parametrize(
    "frame",
    [
        {"county": ["p", "q"], "share": [0.2, 0.8]},
        {"fips": [1001, 1003], "share": [0.2, 0.8]},
        {"county": ["p", "q"], "no": [0.8, 0.2], "yes": [0.2, 0.8]},
        {"share": [0.2, 0.8]},
    ],
)
def test_a_frame_of_names_and_shares_is_answered_with_the_line_that_reads_it(frame):
    proportions = pd.DataFrame(frame)
    with pytest.raises(ValueError, match="proportions") as caught:
        _input.check_proportions(proportions)
    line = re.search(r"proportions[.[]\S*[])]", str(caught.value))[0]
    matrix, _, keys = _input.check_proportions(eval(line))
    assert_allclose(matrix[:, 1], [0.2, 0.8])
    assert keys.tolist() in ([0, 1], ["p", "q"], [1001, 1003])
    assert len(frame) == 1 or keys.tolist() != [0, 1]


def test_an_error_of_fit_says_where_to_read():
    X, bags = np.eye(4), [0, 0, 1, 1]

    def notes(method, *data):
        with pytest.raises(ValueError) as caught:
            method.fit(*data)
        return caught.value.__notes__

    (note,) = notes(MeanMap(), X, bags, [0.2, 1.8])
    assert note == f"To read: {_input.page('your_data')} and {_input.page('mean_map')}"
    (note,) = notes(MeanMap(alpha=-1), X, bags, [0.2, 0.8])
    assert note == f"To read: {_input.page('mean_map')}"
    around = llpbook.CountCalibration(MeanMap(alpha=-1))
    (inner,) = notes(around, np.eye(6), np.arange(6) // 2, [0.2, 0.8, 0.5])
    assert inner == note
    assert _input.page("proportions") in notes(MeanMap(), X, bags, [0.5, 0.5])[0]
    assert _input.page("intro.html#two-baselines") in notes(MajorityClass(), X, bags)[0]


def test_missing_proportions_are_asked_for_in_the_words_of_a_pipeline():
    pipe = make_pipeline(StandardScaler(), MeanMap())
    for method in (MeanMap(), pipe):
        with pytest.raises(ValueError, match=r"meanmap__proportions=proportions"):
            method.fit(np.eye(4), [0, 0, 1, 1])
    pipe.fit(np.eye(4), [0, 0, 1, 1], meanmap__proportions=[0.2, 0.8])
    with pytest.raises(ValueError, match=r"proportions is missing"):
        llpbook.LLPGridSearchCV(pipe, {"meanmap__alpha": [1]}).fit(np.eye(4), [0] * 4)


def test_shares_out_of_range_by_rounding_are_cut_and_others_named():
    matrix, _, _ = _input.check_proportions([-1e-6, 1 + 1e-6, 0.5])
    assert_array_equal(matrix, [[1, 0], [0, 1], [0.5, 0.5]])


class Foreign:
    """A table of another library: columns, and a way to pandas."""

    def __init__(self, frame):
        self.frame, self.columns = frame, list(frame)

    def to_pandas(self):
        """The DataFrame."""
        return self.frame


def test_columns_that_are_no_classes_are_asked_about():
    """Two shares of the same thing are not divided by their sum, whatever the table is."""
    shares = {"vote": [0.41, 0.55], "vote of two": [0.42, 0.56]}
    table = pd.DataFrame({"district": ["a", "b"], **shares})
    for given, line in ((table, ""), (Foreign(table), r"\.to_pandas\(\)")):
        line = rf"{line}\.set_index\('district'\)\['vote'\]; .* are not the classes"
        with pytest.raises(ValueError, match=line):
            _input.check_proportions(given)
    with pytest.raises(ValueError, match="no rounding: are the columns 'vote', 'vote"):
        _input.check_proportions(table.set_index("district"))
    rounded = pd.DataFrame({"no": [0.33, 0.5], "yes": [0.66, 0.5]})
    with pytest.raises(ValueError, match=r"if that is rounding, pass .*restore_counts"):
        _input.check_proportions(rounded)
    matrix, classes, _ = _input.check_proportions(
        Foreign(rounded.assign(no=[0.34, 0.5]))
    )
    assert classes.tolist() == ["no", "yes"] and matrix[0, 1] == 0.66


MISSED = r"predicts class 1 for [0-5]% of 1000 .* although 24% are .* Try a larger C,"


def held_back():
    """Bags of which a small C predicts class 1 for nobody: features, bags, shares."""
    rng = np.random.default_rng(0)
    bags, X = np.repeat(np.arange(60), 20), rng.normal(size=(1200, 1))
    y = X[:, 0] + rng.normal(scale=0.3, size=1200) > 0.7
    return X, bags, label_proportions(y, bags)


def times_warned(fit, text=MISSED, action="always"):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter(action)
        fit()
    return sum(bool(re.search(text, str(w.message))) for w in found)


@pytest.mark.parametrize(("C", "warned"), [(1e-4, 1), (0.003, 1), (10.0, 0)])
def test_a_class_that_is_hardly_predicted_warns(C, warned):
    """A penalty that leaves little of the slopes; not a class of 3 %, and not the baseline."""
    X, bags, p = held_back()
    assert times_warned(lambda: CountLogistic(C).fit(X, bags, p)) == warned
    assert times_warned(lambda: MajorityClass().fit(X, bags, p), "predicts class") == 0
    rare = label_proportions(X[:, 0] > 1.9, bags)
    assert times_warned(lambda: CountLogistic(C).fit(X, bags, rare)) == 0


@pytest.mark.parametrize("scoring", [None, "mae"])  # pooled, and fold by fold
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_of_the_fits_of_a_search_only_the_last_warns_of_a_missing_class(
    n_jobs, scoring
):
    X, bags, p = held_back()
    for refit in (False, True):
        search = LLPGridSearchCV(
            CountLogistic(), {"C": [1e-4, 1e-3]}, scoring=scoring, cv=2, refit=refit,
            n_jobs=n_jobs,
        )  # fmt: skip
        with parallel_config("threading"):
            assert times_warned(lambda s=search: s.fit(X, bags, p)) == refit


def test_codes_may_be_objects_and_names_need_keys():
    codes = _input.check_bags(np.array([1, 0], dtype=object), 2, 2)
    assert codes.tolist() == [1, 0] and codes.dtype == np.intp
    assert _input.check_bags([0], 1, 1).tolist() == [0]
    pairs = pd.MultiIndex.from_tuples([("a", 1), ("b", 1), ("a", 2)])
    keys = _input.check_proportions({("a", 2): 0.1, ("a", 1): 0.9, ("b", 1): 0.5})[2]
    assert _input.check_bags(pairs, 3, 3, keys).tolist() == [1, 2, 0]


def test_labels_of_one_class_are_labels_and_none_are_none():
    data = base.read_bags(np.zeros((4, 1)), [0, 0, 1, 1], np.full((2, 2), 0.5))
    assert base.labels_to_pure_bags(data) is data
    unknown = replace(data, labels=np.full(4, -1))
    assert base.labels_to_pure_bags(unknown).labels is None
    one = base.labels_to_pure_bags(replace(data, labels=np.array([0, -1, -1, -1])))
    assert one.bags.tolist() == [2, 0, 1, 1]
    assert_array_equal(one.proportions, [[0, 1], [0.5, 0.5], [1, 0], [0, 1]])


@ONE_CLASS
def test_a_sparse_matrix_may_hold_nothing():
    model = MeanMap().fit(sp.csr_array((4, 2)), [0, 0, 1, 1], [0.5, 1.0])
    assert_array_equal(model.coef_, 0)


def test_the_rest_of_a_bag_is_what_its_labels_leave():
    # Bags of 2, 3 and 2 instances: all known, all but one known, and one label more of class 0 than the share allows.
    bags, y = np.array([0, 0, 1, 1, 1, 2, 2]), np.array([0, 1, 0, 0, -1, 0, -1])
    P = np.array([[0.5, 0.5], [2 / 3, 1 / 3], [0.0, 1.0]])
    data = base.read_bags(np.zeros((7, 1)), bags, P, y)
    rest = base.labels_to_pure_bags(data).proportions
    assert_allclose(rest, [P[0], [0, 1], [0, 1], [1, 0], [0, 1]], atol=1e-12)
    keyed = pd.Series([0.5, 1.0], list("ab"))
    more = base.read_bags(np.zeros((4, 1)), list("aabb"), keyed, [-1, -1, 0, 0])
    with pytest.warns(base.LLPWarning, match="bag 'b' has more labeled"):
        base.labels_to_pure_bags(more)
    rounded = replace(more, labels=np.array([-1, -1, 0, -1]))
    tells("", base.labels_to_pure_bags, rounded)
    tells("", base.labels_to_pure_bags, more, True)
    # Of four instances three are of class 1; a labeled row is two of them.
    cells = base.read_bags(np.zeros((2, 1)), [0, 0], [0.75], [1, -1], counts=[2, 2])
    assert_allclose(base.labels_to_pure_bags(cells).proportions[0], [0.5, 0.5])


def test_of_one_class_against_the_rest_little_worth_is_no_news():
    X, _, bags, P = three_classes()
    gap = 1e-3 * (-1.0) ** np.arange(len(P))
    p = 0.1 + 0.6 * P[:, 0]
    P = np.column_stack([p - gap, 0.8 - p, 0.2 + gap])
    data = base.read_bags(X, bags, P)
    data = replace(data, bag_weights=data.bag_sizes)
    tells("", OneAgainstTheRest(1e6)._fit_one_vs_rest, data)


class TwoClassesOnly(MeanMap):
    _several_classes = "refused"


def test_several_classes_are_native_one_vs_rest_or_refused():
    X, _, bags, P = three_classes()
    native = MeanMap().fit(X, bags, P)
    assert native.estimators_ is None
    assert native.decision_function(X).shape == (300, 3)
    several = OneAgainstTheRest().fit(X, bags, P)
    for part in several.estimators_:
        assert part.classes_.tolist() == [0, 1]
    assert several.fit(X, bags, P[:, 1]).estimators_ is None
    with pytest.raises(ValueError, match="must be of two classes for TwoClassesOnly"):
        TwoClassesOnly().fit(X, bags, P)
    for cls in (MeanMap, OneAgainstTheRest, TwoClassesOnly):
        tags = cls().__sklearn_tags__()
        assert tags.classifier_tags.multi_class == (cls is not TwoClassesOnly)
        assert not tags.input_tags.pairwise
    assert MeanMap(kernel="precomputed").__sklearn_tags__().input_tags.pairwise


# --- what is said, and where it begins to be said -----------------------------------------------------------

CLASSES, KEYS = np.array(["no", "yes"], dtype=object), pd.Index(["a", "b"])
TWO_BAGS = base.BagData(np.zeros((4, 1)), np.repeat([0, 1], 2), np.eye(2), CLASSES)
WEIGHTS = "bag_weights must be one finite, non-negative number for each of the 2 rows"
ERRORS = "for each of the 2 rows of proportions (two classes)"
check = _input.check_proportions
#: By function, arguments and what the error says; $ is its end.
REFUSALS = [
    (_input.check_whole, ("n", 9, 2, 8), "from 2 to 8, got 9"),
    (_input.check_whole, ("n", True), "got True"),
    (_input.check_flag, ("f", 1, ("auto",)), "f must be auto, True or False, got 1"),
    (_input.keyed_rows, ("w", pd.Series(range(4), list("pqrs")), 2, KEYS),
     "must be the bags of proportions, such as ['a', 'b'], got ['p', 'q', 'r'];"),
    (_input.keyed_rows, ("w", {5: 1.0}, 2), "be the row numbers of proportions, such as [0, 1], got [5];"),
    (_input.keyed_rows, ("w", np.array([DAY], "M8[s]"), 1), "w must be numbers: real ones, got datetime64[s]"),
    (_input.check_column, ("labels", [1, None, None], 3), "at position 1; mark unknown labels by -1"),
    (_input.check_column, ("bags", [1, None, None], 3), "bags has a missing value at position 1; give it a name, or "),
    (_input.check_column, ("bags", [[0], [1, 2]], 2), "bags must be one value an instance: "),
    (_input.check_column, ("bags", pd.DataFrame({"k": [1, 2]}), 2), "got shape (2, 1): pass bags['k']"),
    (_input.check_bags, ([0, 5, 1], 3, 3), "holds 5, but proportions has no such row (it has 3, as many as X:"),
    (_input.check_bags, ([0, 5, 1, 1], 4, 3), "holds 5, but proportions has no such row (it has 3)"),
    (_input.check_bags, ([0.0, 1.5], 2, 2), "must be integers that index the rows of proportions, got 1.5"),
    (_input.check_bags, (list("ac"), 2, 2, KEYS), "bags holds 'c', which is not a key"),
    (check_labels, (["no", "?"], CLASSES, 2), "holds '?', which is neither -1 nor one of the classes ['no', 'yes']"),
    (_input.read_counts, ([1, -1], 2), "counts must be whole numbers, 0 or more: how many"),
    (_input.read_counts, ([0, 0], 2), "counts are all 0"),
    (_input.read_counts, ([1, 2], 3), "counts must have one entry for each of the 3 instances"),
    (_input.read_counts, ([1, 0.5], 2), "got 0.5. Weights"),
    (_input.read_counts, ([1, 2.0**53], 2), "got 9007199254740992.0. Weights"),
    (_input.gram_matrix, (np.eye(2), np.eye(3), "precomputed", 1.0), "of the 3 training instances with kernel"),
    (averaging_matrix, ([[0, 1]],), "bags must be one-dimensional and not empty, got an array of shape (1, 2)"),
    (averaging_matrix, ([0.5, 1.0],), "bags must be integers that index the rows of proportions, got dtype float64"),
    (averaging_matrix, ([-1, 0],), "bags must not be negative, got -1"),
    (label_proportions, (pd.Series([0, 1], [1, 0]), pd.Series([0, 1])), "y.index differs from bags.index"),
    (label_proportions, (["a", "b", "c"], [0, 1]), "each of the 2 instances in bags, got shape (3,)"),
    (partial(label_proportions, classes=[0, 1]), ([0, 7], [0, 1]), "y holds 7, which is not one of classes [0, 1]"),
    (partial(label_proportions, n_bags=2), ([0, 7], [0, 2]), "proportions has no such row (it has 2)"),
    (check, ([0.5, 20, 90],), "got 20.0 for bag 1; divide percent by 100, and counts"),
    (check, ([[2, 0], [1, 1]],), "got 2.0 for bag 0; these are counts"),
    (check, ([-0.5, 7],), "got -0.5 for bag 0; a share is not negative"),
    (partial(check, remedy="; so"), ([0.5, 1.5],), "got 1.5 for bag 1; so$"),
    (check, (pd.Series([0.5, 0.1, 0.2], list("abb")),), "or a missing value: 'b'"),
    (check, ([[0.5, 0.49]],), "bag 0 sum to 0.99, not 1; if that is rounding"),
    (check, ([[0.5, 0.485]],), "bag 0 sum to 0.985, not 1, which is no rounding: are the columns 0, 1 "),
    (check, ([[0.5, 0.2, 0.285]],), "bag 0 sum to 0.985, not 1; if that is rounding"),
    (partial(check, empty_rows=True), ([[0.5, NAN], [1, 0]],), "got nan for bag 0; class 1 has no share there"),
    (check, (pd.DataFrame([[0.5, 0.5], [1.2, -0.2]], list("ab")),), "got 1.2 for bag 'b'"),
    (check, (pd.DataFrame([[0.5, 0.5], [0.5, 0.4]], list("ab")),), "of bag 'b' sum to 0.9"),
    (_input.in_order_of, ([0, 1], np.eye(3), [0, 1, 2]), "has the classes [0, 1, 2], and must have [0, 1]"),
    (_input.in_order_of, (CLASSES, np.eye(2), ["no", "?"]), "has the classes ['no', '?'], and must have ['no', 'yes']"),
    (_input.require_rank, (np.full((3, 2), 0.5), np.ones(3)), "has rank 1 over the bags in use, which cannot tell 2"),
    (_input.fill_empty_rows, (np.full((2, 2), NAN), np.array([1]), KEYS), "got nan for bag 'b', which has"),
    (base.read_bags, (np.zeros((5, 1)), [0, 0, 1, 1, 0], [0.5, 0.5, NAN, NAN, 0.5]), "per instance, for only 2 bags"),
    (base.error_covariances, ([[[1.0, -1.0], [-1.0, 2.0]]] * 2, TWO_BAGS), ERRORS),
    (base.error_covariances, ([[[-1.0, 1.0], [1.0, -1.0]]] * 2, TWO_BAGS), ERRORS),
    (base.error_covariances, ([0.1, -0.1], TWO_BAGS), ERRORS),
    (check_bag_weights, ([1.0], TWO_BAGS), WEIGHTS),
    (check_bag_weights, ([1.0, np.inf], TWO_BAGS), WEIGHTS),
    (check_bag_weights, ([0.0, 0.0], TWO_BAGS), "must not be 0 for every bag with instances, got [0.0, 0.0]"),
    (CountLoss(bag_deviation=1.0), (np.eye(3), [0, 0, 0], [[0.5, 0.5, 0]]), "bag_deviation=1.0 is for two classes"),
    (CountLogistic(proportion_noise="gaussian").fit, (np.eye(2), [0, 1], [0, 1]), "'gaussian' needs proportion_errors"),
    (CountLogistic(proportion_errors=np.zeros((3, 3, 3)), proportion_noise="laplace").fit,
     (np.eye(3), [0, 1, 2], np.eye(3)), "proportion_noise='laplace' is for two classes, got [0, 1, 2]"),
    (_linear.read_scores, (np.zeros((2, 3)), [0, 0], [0.5]), "one column per class of proportions, 2, or"),
    (MajorityClass().fit, (np.eye(2), KEYS, pd.DataFrame([[0.0, 1.0]] * 2, KEYS, CLASSES)), "is of class 'yes';"),
    (MeanMap().fit(np.eye(2), [0, 1], [0, 1]).score, (np.eye(2), ["x", 1]), "'x', which is none of the classes [0, 1]"),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(REFUSALS)))
def test_a_refusal_says_what_was_given(case):
    function, given, words = REFUSALS[case]
    with pytest.raises(ValueError) as caught:
        function(*given)
    assert words in f"{caught.value}$"


def test_what_is_just_inside_a_limit_passes():
    assert [_input.check_whole("n", *v) for v in ((1,), (8, 2, 8))] == [1, 8]
    _input.check_flag("f", np.True_)
    _input.check_flag("f", "auto", ("auto",))
    assert _input.read_counts([0, 2**53 - 1], 2)[1] == 2**53 - 1
    y, bags = np.arange(20_000) % 2, np.full(20_000, 1_999_999)
    assert len(label_proportions(y, bags)) == 2_000_000
    some = [0, 1, 2, 2], [0.2, NAN, 0.8]
    data = base.read_bags(np.zeros((4, 1)), *some, counts=[2, 0, 1, 3])
    assert data.bag_sizes.tolist() == [2, 0, 4] and data.X.shape == (3, 1)
    turned = _input.in_order_of([*"cab"], np.array([[0.1, 0.2, 0.7]]), [*"abc"])
    assert turned.tolist() == [[0.7, 0.1, 0.2]]
    assert _input.in_order_of([*"abc"], turned, [0, 1, 2]) is turned


def tells(words, function, *given):
    """All that a call warns of has these words; with none, it says nothing."""
    with warnings.catch_warnings(record=True, action="always") as caught:
        function(*given)
    text = "|".join(str(w.message) for w in caught)
    assert words in text and bool(words) == bool(text)


@pytest.mark.parametrize(
    ("kernel", "acts", "means", "stds", "words"),
    [
        ("linear", "penalty", [0, 0, 5], [1000, 1, 0], ""),
        ("linear", "penalty", [0, 0], [1001, 1], "MeanMap penalizes its weights, but the features are not on one "
         "scale: their standard deviations differ by a factor of 1001; put a StandardScaler"),
        ("linear", "penalty", [-30, 0], [1, 1], ""),
        ("linear", "penalty", [-62, 0], [2, 1], "scale: a mean is 31 standard deviations from 0;"),
        ("linear", "penalty", [0, 0], [1e-3, 1e-4], ""),
        ("linear", "penalty", [1, 0], [9e-4, 9e-8], "factor of 10000, and a mean is 1111 standard deviations from 0, "
         "and no standard deviation is above 0.0009;"),
        ("rbf", "penalty", [0, 99], [30, 1], ""),
        ("linear", "distances", [0, 0], [31, 1], "MeanMap measures distances, but the features are not on one scale"),
        ("laplacian", None, [0, 0], [31, 1], "differ by a factor of 31;"),
        ("linear", None, [0, 0], [1e9, 1], ""),
        ("precomputed", "penalty", [0, 0], [1e9, 1], ""),
        (np.dot, "penalty", [0, 0], [1e9, 1], ""),
    ],
)  # fmt: skip
def test_scales_are_told_with_their_numbers(kernel, acts, means, stds, words):
    model = MeanMap(kernel=kernel)
    model._scale = acts
    tells(
        words, _warnings.warn_of_moments, model, np.array(means), np.array(stds, float)
    )


@pytest.mark.parametrize(
    ("C", "x", "w", "words"),
    [
        (0.39, 0.5, 0.0, "C=0.39 holds all log-odds near the intercept, because the variances of the features sum to "
         "0.25; values of C between 12 and 40 are"),
        (0.41, 0.5, 0.0, ""),  # C times the variance is above 0.1
        (0.39, 0.5, 0.62, "C=0.39"),
        (0.39, 0.5, 0.63, ""),  # log-odds vary as much as the penalty lets them
        (0.01, 0.98, 0.0, "sum to 0.96; values of C between 3.1 and 10 are"),
        (0.01, 1.0, 0.0, ""),  # standardized
    ],
)  # fmt: skip
def test_a_penalty_that_holds_log_odds_is_told_at_its_limits(C, x, w, words):
    X, often, model = np.array([[-x], [x], [x]]), np.array([2, 1, 1]), CountLogistic(C)
    for form, weights in product((X, sp.csr_array(X)), ([[w]], [[0.0], [w]])):
        given = model, form, np.array(weights), often
        tells(words, _linear.warn_if_held, *given)


@pytest.mark.parametrize(
    ("n_bags", "found", "share", "score", "words"),
    [
        (1, 1, 0.0, 1e3, ""),  # one label of ten is wrong
        (1, 2, 0.0, 1e3, "say that 0.00% of the predicted labels are wrong, but the shares show that at least 20% are"),
        (2, 7, 0.5, 1e3, ""),  # 20 % are shown, 12.6 % by chance
        (2, 8, 0.5, 1e3, "at least 30% are."),
        (1, 2, 0.0, np.log(19), ""),  # 5 % are stated
        (1, 3, 0.0, np.log(19), "5.00% of the predicted labels are wrong, but the shares show that at least 3"),
        (30, 7, 0.5, 1e3, "but the counts of the bags miss as if 40% or more were."),
        (29, 7, 0.5, 1e3, ""),
        (30, 7, 0.5, np.log(999), ""),
        (30, 6, 0.5, 1e3, ""),  # 10 %
    ],
)  # fmt: skip
def test_a_model_that_is_too_sure_is_told_at_its_limits(n_bags, found, share, score, words):  # fmt: skip
    X, often = np.tile([[1.0], [-1.0]], (n_bags, 1)), np.tile([found, 10 - found], n_bags)  # fmt: skip
    given = X, np.repeat(np.arange(n_bags), 2), np.array([[1 - share, share]] * n_bags)
    data = base.BagData(*given, CLASSES, frequencies=often)
    tells(words, _linear.warn_if_too_sure, MeanMap(), X, np.array([[score]]), data)


class ByFirst(base.LLPClassifier):
    """Its score is the feature."""

    _cure, estimators_ = "something else", None

    def _fit(self, data):
        pass

    def _scores(self, X):
        return X[:, 0] if X.shape[1] == 1 else X


@pytest.mark.parametrize(
    ("often", "times", "cells", "prior", "words"),
    [
        ([899, 101], 1, 20, 0.4, ""),
        ([901, 99], 1, 20, 0.4, "ByFirst predicts class 'yes' for 10% of 1000 training instances, although 40% are of "
         "it by the shares. Its probabilities or scores may still rank them. Try something else, and compare"),
        ([901, 99], 1, 19, 0.4, ""),
        ([900, 100], 10, 20, 0.4, "'yes' for 1% of 1000 training"),
        ([2800, 200], 1, 90, 0.4, "'yes' for 7% of 1000 training"),
        ([500, 0], 1, 50, 0.24, "'yes' for 0% of 500 training instances, although 24% are"),
        ([500, 0], 1, 50, 0.22, ""),  # so rare that the best rule may leave it out
    ],
)  # fmt: skip
def test_a_class_that_is_missed_is_told_at_its_limits(often, times, cells, prior, words):  # fmt: skip
    """Frequencies are those of the negative rows."""
    n = sum(often)
    size = 1 + np.arange(n) % (cells // 2) + (np.arange(n) == 0) * (cells % 2)
    X = np.repeat([-1.0, 1.0], often) * size
    frequencies = None if times == 1 else np.where(X < 0, times, 1)
    P = np.array([[0.99 - prior, prior + 0.01], [1.01 - prior, prior - 0.01]])
    given = X[:, None], np.arange(n) % 2, P, CLASSES
    data = base.BagData(*given, frequencies=frequencies)
    tells(words, _estimator.warn_of_missing_class, ByFirst(), data)
    P = [[0.4, 0.25, 0.35], [0.41, 0.24, 0.35]]  # two of three are missed
    F = np.column_stack([9.0 + np.arange(n), 0 * X, 0 * X])
    several = base.BagData(F[:100], np.arange(100) % 2, np.array(P), np.arange(3))
    words = "class 2 for 0% of 100 training instances, although 35% are"
    tells(words, _estimator.warn_of_missing_class, ByFirst(), several)


@pytest.mark.parametrize(
    ("shares", "words"),
    [
        ([0.465, 0.535, 0.5], "all 3 bags together are worth 0.98 labels (see identifiability), so what is learned may "
         "be chance. Are these the shares of the classes 'no', 'yes'?"),
        ([0.464, 0.536, 0.5], ""),
        ([0.465, 0.535], ""),  # of two classes
        ([0.465, 0.535, 0.5, 0.9], "all 3 bags"),
    ],
)  # fmt: skip
def test_shares_that_hardly_differ_are_told_at_their_limits(shares, words):
    P, L = np.column_stack([1 - np.array(shares), shares]), min(len(shares), 3)
    rows = base.BagData(np.zeros((L, 1)), np.arange(L), P, CLASSES, frequencies=np.full(L, 100))  # fmt: skip
    tells(words, _bag_data.check_differences, rows, MeanMap())
    tells("", _bag_data.check_differences, rows, MeanMap(), True)


@pytest.mark.parametrize(("gap", "equal"), [(5e-9, True), (2e-8, False)])
def test_equal_shares_are_equal_up_to_rounding_and_in_the_bags_in_use(gap, equal):
    weights, used = np.array([1.0, 2.0, 0.0]), [np.zeros((3, 1)), np.arange(3)]
    for P, words in (
        ([[0.3, 0.7 - gap, gap], [0.3, 0.7, 0.0]], r"in use \(0.3, 0.7, 5e-09\): MeanMap learns"),
        ([[0.3, 0.4 - gap, 0.3 + gap], [0.2, 0.6, 0.2]], "classes 0 and 2 equal shares in every bag: MeanMap"),
    ):  # fmt: skip
        P, model = np.array([*P, [0.9, 0.1, 0.0]]), MeanMap()
        model._names_classes_by_shares = True
        data = base.BagData(*used, P, np.arange(3), bag_weights=weights)
        refused = pytest.raises(base.NotIdentifiableError, match=words)
        with refused if equal else warnings.catch_warnings(action="ignore"):
            _bag_data.check_differences(data, model)
    # One class against the rest may be absent.
    absent = replace(data, proportions=np.array([[1.0, 0.0]] * 3))
    _bag_data.check_differences(absent, MeanMap(), True)


def test_an_order_of_bags_is_by_the_rarest_class_then_by_the_lengths_of_means():
    rng, L = np.random.default_rng(0), 40
    sizes, means = rng.integers(1, 4, L), rng.normal(size=(L, 2))
    rare, other = rng.integers(0, 3, L) / 10, rng.integers(3, 5, L) / 10
    P, length = np.column_stack([other, 1 - rare - other, rare]), np.hypot(*means.T)
    slow = sorted(range(L), key=lambda k: (rare[k], other[k], length[k]))
    assert _tuning.feature_free_order(P, sizes, means).tolist() == slow


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_two_baselines_are_a_prior_and_a_ridge_on_bag_means(n_classes):
    X, _, bags, P = uneven_bags(60, size=6, n_classes=n_classes)
    # Of unequal sizes, and two without instances.
    bags, P = np.where(bags == 9, 8, bags), P[[*range(9), 0, 1]]
    sizes = np.bincount(bags)
    means = np.array([X[bags == k].mean(axis=0) for k in range(9)])
    for given, weights in (
        ("size", sizes), ("uniform", np.ones(9)), (np.arange(11.0), np.arange(9.0))
    ):  # fmt: skip
        truth = Ridge(2.0).fit(means, P[:9], weights)
        model = BagMeanRegression(2.0, bag_weights=given).fit(X, bags, P)
        assert_allclose(model.coef_, truth.coef_)
        f = truth.predict(X)
        f = f if n_classes > 2 else f[:, 1] - f[:, 0]
        assert_allclose(model.decision_function(X), f)
    prior = MajorityClass().fit(X, bags, P).predict_proba(X[:3])
    assert_allclose(prior, [sizes @ P[:9] / 60] * 3)


# --- the package -------------------------------------------------------------------------------------------


def test_import_is_light_and_lazy():
    code = "import sys, llpbook; print('sklearn' in sys.modules)\n"
    code += "from llpbook import MeanMap, diagnose, dsdd\n"
    code += "print({'matplotlib', 'cvxpy', 'seaborn'} & set(sys.modules))"
    alone = [sys.executable, "-c", code]
    done = subprocess.run(alone, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "set()"]


def test_dir_shows_rooms_and_what_most_people_want():
    shown = set(dir(llpbook))
    assert {name for name, _ in llpbook.all_estimators()} <= shown
    assert {"mean_map", "dsdd", "diagnosis", "diagnose", "make_bags", "base"} <= shown
    assert not {name for name in shown if name.endswith("lib")}
    for name in shown:
        assert getattr(llpbook, name) is not None
    with pytest.raises(ImportError):
        from llpbook import nothing  # noqa: F401


def test_every_estimator_says_what_it_assumes():
    for name, cls in llpbook.all_estimators():
        statement, words = cls.assumes
        either = statement if isinstance(statement, tuple) else (statement,)
        assert all(each is None or each in STATEMENTS for each in either), name
        assert words


def test_shares_per_instance_are_not_read_as_shares_per_bag():
    X, _, bags, p = keyed_problem()
    codes, shares = p.index.get_indexer(bags), p.to_numpy()
    MeanMap().fit(X, codes, shares)
    for per_instance in (shares[codes], shares[codes].round()):
        with pytest.raises(ValueError, match=r"one per instance, .*groupby\(bags\)"):
            MeanMap().fit(X, codes, per_instance)
    each = np.arange(len(X))  # bags of size 1 have as many shares
    MeanMap().fit(X, each, shares[codes])
    # Half of the bags may be empty: as many shares as instances, in bags of two.
    data = base.read_bags(np.zeros((4, 1)), [0, 0, 1, 1], [0.0, 1.0, 1.0, 0.0])
    assert data.bag_sizes.tolist() == [2, 2, 0, 0]


def test_error_covariances_of_partly_known_bags():
    # Bags of 4 instances, of which 4, 3, 2 and 0 are known; the errors are given in another order.
    bags, y = np.repeat(np.arange(4), 4), np.tile([0, 1], 8)
    labels = np.where(np.arange(16) % 4 < np.array([4, 3, 2, 0])[bags], y, -1)
    names = pd.Index(list("abcd"))
    data = base.BagData(
        np.zeros((16, 1)), bags, np.full((4, 2), 0.5), np.arange(2), names, labels
    )
    se = pd.Series([0.04, 0.03, 0.02, 0.01], list("dcba"))
    found = base.error_covariances(se, base.labels_to_pure_bags(data))
    wider = np.array([0, 4 * 0.02, 2 * 0.03, 0.04, 0, 0])
    sign = np.array([[1, -1], [-1, 1]])
    assert_allclose(found, wider[:, None, None] ** 2 * sign, atol=1e-15)
    in_order = base.error_covariances(se.to_numpy(), data)
    assert_allclose(in_order[:, 0, 0], se.to_numpy() ** 2)
    with pytest.raises(ValueError, match="proportion_errors is matched by its keys"):
        base.error_covariances(se, replace(data, bag_labels=None))


# --- counts ------------------------------------------------------------------------------------------------


def test_half_an_instance_is_of_the_first_class_whoever_rounds():
    sizes, positives = np.array([5, 7, 3, 9]), [2, 3, 1, 4]
    halves, bags = np.full((4, 2), 0.5), np.repeat(np.arange(4), sizes)
    assert _counts.whole_counts(halves, sizes)[:, 1].tolist() == positives
    assert [_counts.whole_counts(np.ones(2), n)[1] for n in sizes] == positives
    assert [class_counts(n, 0.5)[1] for n in sizes] == positives
    X = np.random.default_rng(0).normal(size=(24, 2))
    exact = diagnosis.read_problem(X, bags, halves, exact=True).proportions
    assert_allclose(sizes * exact[:, 1], positives)


def test_whole_counts_are_nearest_of_all_with_their_sums():
    rng = np.random.default_rng(2)
    sizes, P = rng.integers(0, 9, 50), rng.dirichlet(np.ones(3), 50)
    counts, wanted = _counts.whole_counts(P, sizes), sizes[:, None] * P
    ups = np.floor(wanted)[:, None] + np.array(list(product([0, 1], repeat=3)))
    gaps = np.abs(ups - wanted[:, None]).sum(axis=2)
    least = np.where(ups.sum(axis=2) == sizes[:, None], gaps, np.inf).min(axis=1)
    assert_array_equal(counts.sum(axis=1), sizes)
    assert_allclose(np.abs(counts - wanted).sum(axis=1), least)


def test_equal_remainders_up_to_rounding_go_to_the_first_class():
    shares = np.array([[1.1, 2.1, 5.1, 0.7], [0.1, 0.4, 0.4, 0.1], [0, 0, 1, 3]])
    found = _counts.whole_counts(shares, np.array([9, 3, 0]))
    assert found.tolist() == [[1, 2, 5, 1], [1, 1, 1, 0], [0, 0, 0, 0]]
    third = np.array([1, 4, 4]) / 9
    assert _counts.whole_counts(third, 3).tolist() == [1, 1, 1]
    assert _counts.whole_counts(third[::-1], 3).tolist() == [2, 1, 0]


def test_ranks_of_ties_and_many_bags():
    rng = np.random.default_rng(0)
    for n_bags in (1, 7, 70_000):
        f, bags = rng.integers(0, 9, 4000) / 3, rng.integers(0, n_bags, 4000)
        bags[0] = n_bags - 1
        for scores in (f, rng.normal(size=4000)):
            order = np.lexsort((np.arange(4000), -scores, bags))
            found = _counts.ranks(scores, bags)[order]
            new = np.append(True, np.diff(bags[order]) > 0)
            assert (found[new] == 0).all() and (np.diff(found)[~new[1:]] == 1).all()
    assert _counts.ranks(np.array([]), np.array([], int)).tolist() == []


@pytest.mark.parametrize("limit", [1000, 0])
def test_seats_are_taken_for_the_largest_gain_less_their_prices(limit, monkeypatch):
    monkeypatch.setattr(_counts, "MANY_SEATS", limit)
    rng, rows = np.random.default_rng(2), np.arange(6)
    scores, prices = rng.normal(size=(6, 3)), rng.random((3, 6)).cumsum(axis=1)

    def gain(labels):
        taken = np.arange(6) < np.bincount(labels, minlength=3)[:, None]
        return scores[rows, labels].sum() - prices[taken].sum()

    most = max(gain(np.array(labels)) for labels in product(range(3), repeat=6))
    assert gain(_counts.take_seats(scores, prices)) == pytest.approx(most)


@pytest.mark.parametrize(("block", "sizes"), [(2**20, [10]), (9, [3, 3, 3, 1])])
def test_functions_of_blocks_are_those_of_the_whole(block, sizes, monkeypatch):
    monkeypatch.setattr(_predictions, "BLOCK", block)
    X, seen = np.arange(20.0).reshape(10, 2), []

    def first(part):
        seen.append(len(part))
        return part[:, 0]

    assert_array_equal(base.in_blocks(X, 3, first), X[:, 0])
    assert seen == sizes


# --- imports -----------------------------------------------------------------------------------------------

#: Which method may import which, and why: it stands on the idea of the other. A helper belongs into base.
BUILT_ON = {
    ("laplacian_mean_map", "mean_map"): "class means of each bag, then its classifier",
    ("laplacian_mean_map", "em"): "rounds of labels by thresholds and fits, as in EM",
    ("count_likelihood", "mean_map"): "starts at it, and calibrates it by default",
    ("bag_losses", "count_likelihood"): "one of its losses, and the start of all",
    ("em", "count_likelihood"): "soft labels are its posterior, and its start",
    ("lsdd", "density_difference"): "one of its estimates of the difference",
    ("dsdd", "density_difference"): "the sign of its difference, directly",
    ("smic", "density_difference"): "clusters, named as its two bags are",
}


def imports():
    """For each import of one room from another: room, module that is named, name. The version belongs to no room."""
    root = Path(llpbook.__file__).parents[1]
    for path in root.glob("llpbook/**/*.py"):
        package = ".".join(path.relative_to(root).parent.parts)
        room = path.relative_to(root).with_suffix("").parts[1]
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                source = resolve_name("." * node.level + (node.module or ""), package)
                for alias in node.names:
                    found = f"{source}.{alias.name}".split(".")
                    if found[0] == "llpbook" and found[1] not in (room, "__version__"):
                        yield room, found[1:-1] or found[1:], alias.name


def test_type_checkers_read_the_names_that_python_reads():
    body = ast.parse(Path(llpbook.__file__).read_text("utf-8")).body
    (block,) = [node for node in body if isinstance(node, ast.If)]
    assert ast.unparse(block.test) == "_typing.TYPE_CHECKING"
    assert all(name.name == name.asname for node in block.body for name in node.names)
    read = {node.module: [name.asname for name in node.names] for node in block.body}
    assert read == llpbook._HOMES


def test_methods_import_only_the_methods_that_they_build_on():
    methods = {cls.__module__.split(".")[1] for _, cls in llpbook.all_estimators()}
    found = {(room, source[0]) for room, source, _ in imports() if room in methods}
    found = {pair for pair in found if pair[1] in methods}
    assert found == set(BUILT_ON), "BUILT_ON above says why a method imports another"


#: From the ground up: a room imports from those below its own. All others are above.
LAYERS = {"_counts": 0, "_printed": 0, "_input": 0, "proportions": 1, "base": 2, "_linear": 3}  # fmt: skip


def test_imports_point_one_way_and_end_at_what_a_room_lets_out():
    neighbors = set()
    for room, source, name in imports():
        assert len(source) == 1 and name[0] != "_", f"{room} takes {name} of {source}"
        assert LAYERS.get(room, 4) > LAYERS.get(source[0], 3), (room, source, name)
        neighbors |= {room} if source[0] == "_linear" else set()
    assert neighbors == set(_linear.NEIGHBORS), "its docstring says who may use it"


def test_a_class_that_no_label_had_is_below_all_scores():
    class Model:
        classes_ = np.array([0, 2])

        def decision_function(self, X):
            return np.array([[-1000.0, -900.0], [1000.0, 900.0]])

    scores = base.class_scores(Model(), np.zeros((2, 1)), 3)
    assert (scores[:, 1] < scores[:, [0, 2]].min()).all()


def test_equal_rows_are_merged_within_bags_and_never_across():
    bags = np.repeat([0, 1, 3], [500, 300, 400])
    X = np.repeat([[1.0], [2.0]], [1000, 200], axis=0)  # bag 1 and bag 3 begin alike
    data = base.BagData(X, bags, None, None)
    merged = base.merge_rows(data)
    assert_array_equal(merged.X[:, 0], [1, 1, 1, 2])
    assert_array_equal(merged.bags, [0, 1, 3, 3])
    assert_array_equal(merged.frequencies, [500, 300, 200, 200])
