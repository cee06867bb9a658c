"""Fits from chunks: the sums by loops, the answer of the fit in memory, faults, and what is said of bad chunks."""

import itertools
import os
import re
import signal
import sys
import time
import warnings
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from multiprocessing.pool import ThreadPool
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from llpbook import (
    EMLR,
    BagMeanRegression,
    CountBoosting,
    CountLogistic,
    InvCal,
    LaplacianMeanMap,
    LLPWarning,
    MeanMap,
    NotIdentifiableError,
    WeightedLDA,
    beyond_memory,
    fit_chunks,
    sample_bags,
)
from llpbook.base import LinearObjective, bag_counts
from llpbook.beyond_memory import ChunkError, EngineError, _kinds
from llpbook.beyond_memory import _passes as passes
from llpbook.count_likelihood import CountLoss, posterior
from llpbook.discriminant import weighted_means, within_covariance
from llpbook.mean_map import class_means, predicted_counts


def problem(n=2000, d=3, size=10, K=2, seed=0, spread=0.3):
    """A frame with the columns x0, …, "bag" and "y", sorted by bag, and the shares."""
    rng = np.random.default_rng(seed)
    level = spread * rng.normal(size=(n // size, d))
    bags = np.arange(n) // size
    X = (rng.normal(size=(n, d)) + level[bags]) * np.arange(1, d + 1) + 5
    scores = ((X - 5) / np.arange(1, d + 1)) @ rng.normal(size=(d, K))
    y = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(d)])
    frame["bag"], frame["y"] = bags, y
    shares = np.stack([np.bincount(bags, y == k) / size for k in range(K)], axis=1)
    return frame, shares


def cut(frame, *where):
    """Parts of a frame, cut before some rows."""
    ends = [0, *where, len(frame)]
    return [frame[a:b] for a, b in itertools.pairwise(ends)]


def in_memory(model, frame, shares):
    """The fit that has all."""
    step = getattr(model, "steps", [("", model)])[-1][0]
    name = f"{step}__proportions" if step else "proportions"
    return model.fit(frame[features(frame)], frame["bag"], **{name: shares})


def features(frame):
    return [name for name in frame if name[0] == "x"]


def from_chunks(model, chunks, shares, **options):
    """The fit from chunks, with features by name."""
    options = {"bags": "bag", **options}
    if "features" not in options:
        options["features"] = features(chunks[0])
    return fit_chunks(model, chunks, shares, **options)


def weights(model):
    model = model[-1] if hasattr(model, "steps") else model
    if model.estimators_:
        return np.vstack([weights(part) for part in model.estimators_])
    return np.column_stack([model.coef_, model.intercept_])


# --- sums ------------------------------------------------------------------------------------------------------


@pytest.mark.equation("eq-beyond-memory-sums", "eq-beyond-memory-class-sums")
def test_sums_by_loops():
    frame, shares = problem(200)
    X, bags = frame[features(frame)].to_numpy(), frame["bag"].to_numpy()
    sizes, sums = beyond_memory.bag_sums(X, bags, 22)
    by_loop, by_class = np.zeros((22, 3)), np.zeros((2, 3))
    for x, bag in zip(X, bags, strict=True):
        by_loop[bag] += x
        by_class += np.outer(shares[bag], x)
    assert_allclose(sums, by_loop, rtol=1e-12)
    assert_array_equal(sizes, np.bincount(bags, minlength=22))
    assert_allclose(beyond_memory.class_sums(sums[:20], shares), by_class, rtol=1e-12)


@pytest.mark.equation("eq-beyond-memory-moments")
@pytest.mark.parametrize("products", [False, True])
def test_moments_merge_to_those_of_all_also_far_from_zero(products):
    X = np.random.default_rng(0).normal(size=(300, 2)) + 1e6
    parts = [beyond_memory.moments(part, products) for part in np.split(X, [1, 120])]
    found = beyond_memory.merge(beyond_memory.merge(*parts[:2]), parts[2])
    assert found.n == 300
    assert_allclose(found.mean, X.mean(axis=0), rtol=1e-12)
    assert_allclose(found.scale, X.std(axis=0), rtol=1e-9)
    if products:
        assert_allclose(found.squares / 300, np.cov(X.T, bias=True), atol=1e-9)


@pytest.mark.equation("eq-beyond-memory-class-means")
def test_class_means_need_no_bag_means():
    frame, shares = problem(K=3)
    X, bags = frame[features(frame)].to_numpy(), frame["bag"].to_numpy()
    sizes, sums = beyond_memory.bag_sums(X, bags, len(shares))
    by_class = beyond_memory.class_sums(sums, shares)
    found = beyond_memory.means_of_sums(by_class, shares, sizes)
    assert_allclose(found, class_means(sums / sizes[:, None], shares, sizes), rtol=1e-9)
    flat = np.tile(shares[:1], (len(shares), 1))
    with pytest.raises(NotIdentifiableError, match="rank 1"):
        beyond_memory.means_of_sums(by_class, flat, sizes)


@pytest.mark.equation("eq-beyond-memory-within")
def test_covariance_within_classes_from_sums():
    frame, shares = problem(K=3)
    X, bags = frame[features(frame)].to_numpy(), frame["bag"].to_numpy()
    sums = beyond_memory.class_sums(X, shares[bags])
    total = beyond_memory.moments(X, products=True)
    found = beyond_memory.within_of_sums(sums, shares[bags].sum(axis=0), total)
    means = weighted_means(X, shares[bags])
    assert_allclose(found[0], means)
    assert_allclose(found[1], within_covariance(X, shares[bags], means))
    mass = np.append(shares[bags].sum(axis=0), 0)
    means, _ = beyond_memory.within_of_sums(
        np.vstack([sums, 0 * sums[:1]]), mass, total
    )
    assert_allclose(means[3], total.mean)


def differences(function, w, h=1e-5):
    """The derivatives of a function of weights, by differences, as a matrix of its values by the weights."""
    steps = h * np.eye(w.size).reshape(w.size, *w.shape)
    return np.array([(function(w + s) - function(w - s)) / (2 * h) for s in steps])


@pytest.mark.equation("eq-beyond-memory-partition")
@pytest.mark.parametrize("K", [2, 3])
def test_partition_terms_by_differences_and_slices(K, monkeypatch):
    frame, _ = problem(200)
    X = np.asfortranarray(frame[features(frame)].to_numpy() - 5)
    w = np.random.default_rng(1).normal(size=(1 if K == 2 else K, 3)) / 3
    value, gradient, hessian = beyond_memory.partition_terms(w, X)
    f = X @ w.T
    by_hand = (
        np.log(np.exp(f) + np.exp(-f)) if K == 2 else np.log(np.exp(f).sum(axis=1))
    )
    assert_allclose(value, by_hand.sum())
    terms = lambda v: beyond_memory.partition_terms(v, X)  # noqa: E731
    assert_allclose(gradient.ravel(), differences(lambda v: terms(v)[0], w), rtol=1e-6)
    numeric = differences(lambda v: terms(v)[1].ravel(), w)
    assert_allclose(hessian, numeric, rtol=1e-5, atol=1e-5)
    monkeypatch.setattr(beyond_memory._sums, "SLICE", 7)
    for whole, sliced in zip((value, gradient, hessian), terms(w), strict=True):
        assert_allclose(sliced, whole, rtol=1e-10)


@pytest.mark.equation("eq-beyond-memory-score")
def test_count_terms_are_those_of_the_objective():
    frame, shares = problem()
    X, bags = frame[features(frame)].to_numpy() - 5, frame["bag"].to_numpy()
    known, w = bag_counts(bags, shares), np.array([[0.3, -0.2, 0.1]])
    value, gradient, _ = beyond_memory.count_terms(w, X, known)
    wanted = LinearObjective(CountLoss(), X, known).at(w)
    assert_allclose(value, wanted.value)
    assert_allclose(gradient, wanted.gradient)


def louis_by_enumeration(X, bags, counts, w):
    """Information of labels less the covariance of the score given the counts, over all labelings of each bag."""
    s, H = expit(X @ w), 0.0
    for k, count in enumerate(counts):
        Z, p = X[bags == k], s[bags == k]
        H = H + Z.T @ (Z * (p * (1 - p))[:, None])
        labelings = [
            y for y in itertools.product((0, 1), repeat=len(Z)) if sum(y) == count
        ]
        labelings = np.array(labelings)
        chance = np.prod(np.where(labelings, p, 1 - p), axis=1)
        scores = labelings @ Z
        centered = scores - chance @ scores / chance.sum()
        H = H - (centered * chance[:, None]).T @ centered / chance.sum()
    return H


@pytest.mark.equation("eq-beyond-memory-louis")
def test_hessian_of_counts_is_near_and_above_that_of_all_labelings():
    rng = np.random.default_rng(0)
    X, bags = rng.normal(size=(40, 2)), np.arange(40) // 5
    counts, w = rng.integers(0, 6, 8), np.array([0.5, -0.4])
    known = bag_counts(bags, np.column_stack([1 - counts / 5, counts / 5]))
    _, q, s = posterior(X @ w, known)
    found = beyond_memory.count_hessian(q, s, X, known)
    exact = louis_by_enumeration(X, bags, counts, w)
    assert_allclose(
        exact,
        differences(
            lambda v: LinearObjective(CountLoss(), X, known).at(v[None]).gradient[0], w
        ),
        rtol=1e-5,
    )
    ratio = np.linalg.eigvals(np.linalg.solve(found, exact)).real
    assert ratio.min() > 0.9 and ratio.max() < 1.1
    # One feature per instance: the traces are those of the labels, and those of the labels given the count.
    X = np.eye(5)
    for count in range(6):
        known = bag_counts(np.zeros(5, int), np.array([[1 - count / 5, count / 5]]))
        w = np.array([2.0, 1.0, 0.0, -0.5, -3.0])
        _, q, s = posterior(w, known)
        found = beyond_memory.count_hessian(q, s, X, known)
        exact = louis_by_enumeration(X, np.zeros(5), [count], w)
        assert_allclose(np.trace(found), np.trace(exact), rtol=1e-9)
        assert_allclose(found.sum(), np.sum(s * (1 - s)), rtol=1e-9)


@pytest.mark.parametrize("slope", [0.3, 1.0, 2.0])
@pytest.mark.parametrize("size", [5, 20, 50])
def test_hessian_of_counts_in_random_bags(size, slope, monkeypatch):
    """The ranges that the chapter states, with the factor of the trace and without it."""
    rng, n = np.random.default_rng(size), 20_000
    X, bags = np.c_[rng.normal(size=(n, 5)), np.ones(n)], np.arange(n) // size
    w = np.append(slope * rng.normal(size=5), -0.5)
    p = np.bincount(bags, rng.random(n) < expit(X @ w)) / size
    known = bag_counts(bags, np.column_stack([1 - p, p]))
    slopes = partial(beyond_memory.count_terms, X=X, known=known, curved=False)
    exact = differences(lambda v: slopes(v)[1].ravel(), w[None], h=1e-4)
    _, q, s = posterior(X @ w, known)
    found = beyond_memory.count_hessian(q, s, X, known)
    ratio = np.linalg.eigvals(np.linalg.solve(found, exact)).real
    assert ratio.min() > 0.845 and ratio.max() < 1.055
    monkeypatch.setattr(beyond_memory._sums, "trace_factor", lambda a, b: a * 0 + 1)
    short = beyond_memory.count_hessian(q, s, X, known)
    ratio = np.linalg.eigvals(np.linalg.solve(short, exact)).real
    assert 0.405 < ratio.min() < 0.55 and ratio.max() < 1.01


def test_hessian_of_three_classes_has_the_trace_of_the_labels():
    """One feature per instance: the label information less that of the labels given the counts."""
    rng, X = np.random.default_rng(0), np.eye(6)
    known = bag_counts(np.zeros(6, int), np.array([[1 / 6, 2 / 6, 3 / 6]]))
    _, q, s = posterior(rng.normal(size=(6, 3)), known)
    found = beyond_memory.count_hessian(q, s, X, known)
    assert_allclose(np.trace(found), np.sum(s * (1 - s)) - np.sum(q * (1 - q)))
    label = beyond_memory.label_information(s, X).reshape(3, 6, 3, 6)
    rows = found.reshape(3, 6, 3, 6).sum(axis=(1, 3))
    assert_allclose(rows, label.sum(axis=(1, 3)), atol=1e-9)


@pytest.mark.parametrize("K", [2, 3])
def test_hessian_of_bags_of_one_is_that_of_logistic_regression(K):
    frame, shares = problem(60, size=1, K=K)
    X = frame[features(frame)].to_numpy() - 5
    known = bag_counts(frame["bag"].to_numpy(), shares)
    w = np.random.default_rng(0).normal(size=(1 if K == 2 else K, 3)) / 3
    scores = X @ w.T
    _, q, s = posterior(scores[:, 0] if K == 2 else scores, known)
    found = beyond_memory.count_hessian(q, s, X, known)
    assert_allclose(found, beyond_memory.label_information(s, X), atol=1e-8)


@pytest.mark.parametrize("noise", [0.0, 0.7])
@pytest.mark.parametrize("size", [4, 40])
def test_hessian_of_several_classes_is_that_of_two_where_there_are_two(size, noise):
    """Soft-max of scores (0, f): the lower right block."""
    frame, shares = problem(400, size=size)
    X, w = frame[features(frame)].to_numpy() - 5, np.array([0.3, -0.2, 0.1])
    known = bag_counts(frame["bag"].to_numpy(), shares)
    _, q, s = posterior(X @ w, known)
    known = replace(known, errors=np.full(len(shares), noise))
    two = beyond_memory.count_hessian(q, s, X, known)
    errors = np.tile(noise * np.array([[1, -1], [-1, 1]]), (len(shares), 1, 1))
    counts = np.column_stack([known.sizes - known.counts, known.counts])
    several = replace(known, counts=counts, errors=errors)
    both = beyond_memory.count_hessian(np.c_[1 - q, q], np.c_[1 - s, s], X, several)
    assert_allclose(both[3:, 3:], two, rtol=1e-7)


@pytest.mark.equation("eq-beyond-memory-decrement")
def test_decrement_is_the_step_in_standard_errors():
    H = np.array([[4.0, 1.0], [1.0, 9.0]])
    step, length = beyond_memory.newton_decrement(np.array([2.0, -3.0]), H)
    assert_allclose(H @ step, [-2.0, 3.0])
    assert_allclose(length**2, step @ H @ step)
    # An eigenvalue below 0 is turned: the step still goes downhill.
    step, _ = beyond_memory.newton_decrement(np.array([1.0, 1.0]), np.diag([1.0, -2.0]))
    assert_allclose(step, [-1.0, -0.5])


# --- the answer of the fit in memory ---------------------------------------------------------------------------

ESTIMATORS = [
    (MeanMap(alpha=2.0), 1e-9),
    (MeanMap(bag_weights="uniform", fit_intercept=False), 1e-9),
    (LaplacianMeanMap(alpha=2.0), 1e-7),
    (LaplacianMeanMap(n_neighbors=5, bag_weights="uniform"), 1e-7),
    (InvCal(C_p=0.5), 1e-6),
    (BagMeanRegression(), 1e-9),
    (WeightedLDA("sws", shrinkage=0.1), 1e-9),
    (CountLogistic(C=0.1, tol=1e-8), 1e-4),
]


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("scaled", [True, False])
@pytest.mark.parametrize(("model", "tol"), ESTIMATORS, ids=lambda e: type(e).__name__)
def test_same_answer_as_in_memory(model, tol, scaled, K):
    frame, shares = problem(K=K, d=2)
    make = partial(make_pipeline, StandardScaler()) if scaled else lambda m: m
    wanted = in_memory(make(clone(model)), frame, shares)
    chunks = cut(frame, 300, 310, 1200)
    found = from_chunks(make(clone(model)), chunks, shares, tol=1e-6)
    # Of several classes the fit in memory ends at its tol.
    several = isinstance(model, MeanMap | LaplacianMeanMap) and K == 3
    assert_allclose(
        weights(found), weights(wanted), rtol=0, atol=1e-4 if several else tol
    )
    X = frame[features(frame)]
    assert np.mean(found.predict(X) == wanted.predict(X)) > 0.999
    last, whole = (found[-1], wanted[-1]) if scaled else (found, wanted)
    hidden = {"weights_", "dual_coef_"}
    assert {k for k in vars(whole) if k[-1] == "_"} - hidden == {
        k for k in vars(last) if k[-1] == "_"
    }
    if scaled:
        assert_allclose(found[0].mean_, wanted[0].mean_)
        assert_allclose(found[0].scale_, wanted[0].scale_)
        assert found[0].n_samples_seen_ == wanted[0].n_samples_seen_
        assert_array_equal(found.feature_names_in_, wanted.feature_names_in_)
    else:
        assert_array_equal(last.feature_names_in_, whole.feature_names_in_)


@pytest.mark.parametrize(
    ("model", "atol"),
    [(MeanMap(), 1e-10), (InvCal(), 1e-6), (CountLogistic(C=0.1, tol=1e-8), 1e-4)],
    ids=str,
)
def test_same_answer_at_a_hundred_thousand_with_the_default_tolerance(model, atol):
    frame, shares = problem(100_000, d=5, size=50, spread=0)
    wanted = weights(in_memory(model, frame, shares)).copy()
    found = from_chunks(model, cut(frame, 30_000, 60_000), shares)
    assert_allclose(weights(found), wanted, rtol=0, atol=atol)


@pytest.mark.parametrize(
    "model",
    [MeanMap(), LaplacianMeanMap(tol=1e-9), InvCal(), WeightedLDA("sws")],
    ids=str,
)
def test_bags_may_span_chunks_and_rows_come_in_any_order(model):
    frame, shares = problem()
    mixed = frame.sample(frac=1, random_state=0)
    wanted = weights(in_memory(model, frame, shares)).copy()
    chunks = cut(mixed, 3, 700, 1999)
    for order in (chunks, chunks[::-1], [mixed], cut(mixed, *range(100, 2000, 100))):
        assert_allclose(weights(from_chunks(model, order, shares)), wanted, atol=1e-8)


@pytest.mark.parametrize("model", [MeanMap(), CountLogistic(C=0.1)], ids=str)
def test_the_start_on_some_chunks_leads_to_the_same_answer(model, monkeypatch):
    frame, shares = problem(4000)
    wanted = weights(from_chunks(model, [frame], shares)).copy()
    monkeypatch.setattr(passes, "START_ROWS", 200)
    monkeypatch.setattr(passes, "START_SHARE", 0.01)
    found = from_chunks(model, cut(frame, *range(200, 4000, 200)), shares, tol=1e-5)
    assert_allclose(weights(found), wanted, atol=1e-5)


def test_the_start_of_counts_has_their_penalty(monkeypatch):
    """For bags of one the start is the answer, if its penalty is that of the answer."""
    starts = []

    def spy(passes, terms, w, state, only):
        starts.append(w)
        return w

    monkeypatch.setattr(_kinds, "shortened", spy)
    monkeypatch.setattr(_kinds, "ROUGH", 1e-6)
    monkeypatch.setattr(_kinds, "FEW", 50)
    for K in (2, 3):
        frame, shares = problem(500, size=1, K=K)
        scaled = make_pipeline(StandardScaler(), CountLogistic(C=0.01))
        model = from_chunks(scaled, cut(frame, 100), shares, tol=1e-6)
        assert_allclose(starts.pop(), weights(model), atol=1e-5)


def test_predictions_are_counted_by_bag_also_in_bags_that_span_chunks(monkeypatch):
    frame, shares = problem(400)
    mixed, found = frame.sample(frac=1, random_state=0), []
    count = _kinds.predictions
    monkeypatch.setattr(
        _kinds, "predictions", lambda *a: found.append(count(*a)) or found[-1]
    )
    model = from_chunks(MeanMap(), cut(mixed, 90, 200), shares)
    X = np.column_stack([frame[features(frame)], np.ones(400)])
    wanted = predicted_counts(X @ weights(model).T, frame["bag"].to_numpy(), 40)
    for part, whole in zip(found[0], wanted, strict=True):
        assert_allclose(part, whole)


def test_a_second_fit_has_its_own_scaler():
    frame, shares = problem()
    model = make_pipeline(StandardScaler(), InvCal())
    from_chunks(model, cut(frame, 700), shares)
    moved = frame.assign(x0=100 * frame["x0"] + 7)
    from_chunks(model, cut(moved, 700), shares)
    assert_allclose(model[0].mean_, moved[features(moved)].mean())
    wanted = in_memory(make_pipeline(StandardScaler(), InvCal()), moved, shares)
    assert_allclose(weights(model), weights(wanted), atol=1e-6)


def test_single_precision_and_other_types_of_columns():
    frame, shares = problem()
    wanted = weights(
        in_memory(MeanMap(), frame.astype({"x0": "f4", "x1": "f4", "x2": "f4"}), shares)
    ).copy()
    single = frame.astype({"x0": "f4", "x1": "f4", "x2": "f4"})
    assert_allclose(
        weights(from_chunks(MeanMap(), cut(single, 900), shares)), wanted, atol=1e-9
    )
    nullable = single.astype({"x0": "Float32"})
    assert_allclose(
        weights(from_chunks(MeanMap(), cut(nullable, 900), shares)), wanted, atol=1e-9
    )


def test_errors_and_weights_of_bags_count_as_in_memory():
    frame, shares = problem()
    keyed = pd.DataFrame(shares, index=[f"b{k}" for k in range(200)])
    frame["bag"] = "b" + frame["bag"].astype(str)
    errors = pd.Series(np.linspace(0.01, 0.05, 200), keyed.index)
    own = pd.Series(np.linspace(0, 2, 200), keyed.index)
    for model in (
        MeanMap(proportion_errors=errors),
        MeanMap(bag_weights=own),
        CountLogistic(C=0.1, tol=1e-8, proportion_errors=errors),
        InvCal(bag_weights=own),
    ):
        wanted = weights(in_memory(model, frame, keyed)).copy()
        found = weights(from_chunks(model, cut(frame, 1000), keyed))
        assert_allclose(
            found, wanted, atol=1e-4 if isinstance(model, CountLogistic) else 1e-8
        )
        assert model.bag_labels_ is not None


def test_known_labels_are_pure_bags_of_the_callers_own():
    """What the message for ``labels=`` says to do."""
    frame, shares = problem()
    chunks, known = cut(frame, 1000), frame.index % 40 < 3
    y, known_of = frame["y"], frame["bag"][known]
    size, labeled = frame["bag"].value_counts(sort=False), known_of.value_counts()
    labeled, positives = labeled.reindex(size.index, fill_value=0), y[known]
    positives = positives.groupby(known_of).sum().reindex(size.index, fill_value=0)
    rest = (size * shares[:, 1] - positives) / (size - labeled)
    for model in (MeanMap(), InvCal(), CountLogistic(C=0.1, tol=1e-8)):
        whole = isinstance(model, CountLogistic)
        own = 200 + y + 2 * (frame.index >= 1000) * whole
        bags = frame["bag"].where(~known, own)
        pure = [0, 1] * (1 + whole)
        given = cut(frame.assign(bag=bags), 1000)
        found = weights(from_chunks(model, given, np.append(rest, pure))).copy()
        labels = np.where(known, y, -1)
        X = frame[features(frame)]
        wanted = weights(model.fit(X, frame["bag"], shares[:, 1], labels))
        assert_allclose(found, wanted, rtol=0, atol=1e-4 if whole else 1e-7)
    with pytest.raises(ValueError, match="takes no labels, but bags of known labels"):
        from_chunks(MeanMap(), chunks, shares, labels="y")


def test_bags_of_one_are_logistic_regression():
    frame, shares = problem(500, size=1)
    found = weights(
        from_chunks(CountLogistic(C=0.5), cut(frame, 100), shares, tol=1e-6)
    )
    X = np.c_[frame[features(frame)], np.ones(500)]
    options = {"C": 0.5, "fit_intercept": False, "tol": 1e-10, "max_iter": 10_000}
    supervised = LogisticRegression(**options).fit(X, frame["y"])
    assert_allclose(found, supervised.coef_, atol=1e-4)


def test_a_fitted_transformer_is_applied_to_each_chunk():
    frame, shares = problem()
    frame["xkind"] = np.where(frame["x0"] > 5, "a", "b")
    columns = make_column_transformer(
        (OneHotEncoder(drop="first"), ["xkind"]), remainder="passthrough"
    )
    columns.fit(frame[features(frame)])
    model = make_pipeline(columns, StandardScaler(), MeanMap())
    found = weights(from_chunks(model, cut(frame, 500), shares))
    wanted = make_pipeline(columns, StandardScaler(), MeanMap())
    assert_allclose(found, weights(in_memory(wanted, frame, shares)), atol=1e-9)
    with pytest.raises(
        ValueError, match="OneHotEncoder must be fitted before fit_chunks"
    ):
        from_chunks(make_pipeline(OneHotEncoder(), MeanMap()), [frame], shares)


def test_constant_features_and_scalers_that_do_less():
    frame, shares = problem()
    frame["x3"] = 7.25
    for scaler in (
        StandardScaler(),
        StandardScaler(with_mean=False),
        StandardScaler(with_std=False),
    ):
        found = from_chunks(make_pipeline(scaler, InvCal()), cut(frame, 500), shares)
        again = StandardScaler(**scaler.get_params())
        wanted = in_memory(make_pipeline(again, InvCal()), frame, shares)
        assert_allclose(weights(found), weights(wanted), atol=1e-8)


def test_the_scaler_keeps_small_features():
    frame, shares = problem()
    frame["x3"] = 1e-9 * (frame["x0"] - frame["x0"].mean())
    frame["x4"] = 1e8 / 3
    model = make_pipeline(StandardScaler(), InvCal())
    from_chunks(model, cut(frame, 500), shares)
    wanted = StandardScaler().fit(frame[features(frame)])
    assert_allclose(model[0].scale_, wanted.scale_, rtol=1e-6)


def test_constant_features_of_discriminant_analysis():
    frame, shares = problem()
    frame["x3"] = 7.25
    found = from_chunks(WeightedLDA("sws"), cut(frame, 500), shares)
    wanted = in_memory(WeightedLDA("sws"), frame, shares)
    assert_allclose(weights(found), weights(wanted), atol=1e-8)


# --- chunks and engines ----------------------------------------------------------------------------------------


def test_paths_functions_and_readers(tmp_path):
    frame, shares = problem()
    wanted = weights(from_chunks(MeanMap(), [frame], shares)).copy()
    chunks = cut(frame, 800)
    paths = [tmp_path / f"part-{i}.csv.gz" for i in range(2)]
    for chunk, path in zip(chunks, paths, strict=True):
        chunk.to_csv(path, index=False)
    functions = [partial(pd.read_csv, path) for path in paths]
    for given in (paths, list(map(str, paths)), functions):
        found = fit_chunks(
            MeanMap(), given, shares, bags="bag", features=features(frame)
        )
        assert_allclose(weights(found), wanted, atol=1e-8)
    found = fit_chunks(
        MeanMap(),
        [0, 1],
        shares,
        bags="bag",
        features=features(frame),
        read=lambda i: chunks[i],
    )
    assert_allclose(weights(found), wanted, atol=1e-12)
    everything = fit_chunks(
        MeanMap(), [c.drop(columns="y") for c in chunks], shares, bags="bag"
    )
    assert_array_equal(everything.feature_names_in_, features(frame))


def test_files_of_parquet_and_their_row_groups(tmp_path):
    pytest.importorskip("pyarrow")
    frame, shares = problem()
    path = tmp_path / "all.parquet"
    frame.to_parquet(path, row_group_size=300)
    groups = beyond_memory.row_groups(path)
    assert len(groups) == 7
    wanted = weights(from_chunks(CountLogistic(C=0.1), [frame], shares)).copy()
    for chunks in ([path], groups):
        found = fit_chunks(
            CountLogistic(C=0.1), chunks, shares, bags="bag", features=features(frame)
        )
        assert_allclose(weights(found), wanted, atol=1e-6)


def test_an_executor_computes_the_same():
    frame, shares = problem()
    wanted = weights(from_chunks(CountLogistic(C=0.1), [frame], shares)).copy()
    with ThreadPoolExecutor(2) as executor:
        found = from_chunks(
            CountLogistic(C=0.1), cut(frame, 500, 900), shares, map=executor.map
        )
    assert_allclose(weights(found), wanted, atol=1e-5)


def test_verbose_tells_of_passes(capsys):
    frame, shares = problem()
    from_chunks(MeanMap(), [frame], shares, verbose=1)
    assert "MeanMap Newton pass 1: a step of" in capsys.readouterr().out


def test_a_line_with_too_many_fields_is_refused(tmp_path):
    frame, shares = problem(400)
    path, options = tmp_path / "a.csv", {"bags": "bag", "features": features(frame)}
    lines = frame.to_csv(index=False).splitlines()
    for places in ([1], [7], range(1, 401)):
        longer = [line + ",5" * (i in places) for i, line in enumerate(lines)]
        path.write_text("\n".join(longer))
        with pytest.raises(
            ChunkError, match=r"a\.csv.*(more fields|Expected 5 fields)"
        ):
            fit_chunks(MeanMap(), [path], shares, **options)


def test_results_are_let_go_after_their_turn():
    answers = []

    def engine(function, tasks):
        answers.append([Kept(function(task)) for task in tasks])
        return answers.pop()

    class Kept(Future):
        alive = 0

        def __init__(self, result):
            super().__init__()
            Kept.alive += 1
            most.append(Kept.alive)
            self.set_result(result)

        def __del__(self):
            Kept.alive -= 1

        def result(self, timeout=None):
            left.append(Kept.alive)
            return super().result(timeout)

    frame, shares = problem(400)
    most, left = [], []
    from_chunks(InvCal(), cut(frame, 100, 200, 300), shares, map=engine)
    assert max(most) == 4 and left[-4:] == [4, 3, 2, 1]


# --- faults ----------------------------------------------------------------------------------------------------


class Never:
    """An engine whose second answer never comes."""

    def __init__(self):
        self.cancelled = 0

    def map(self, function, tasks):
        futures = [Future() for _ in tasks]
        futures[0].set_result(function(tasks[0]))
        for future in futures[1:]:
            future.cancel = self.count
        return futures

    def count(self):
        self.cancelled += 1


def test_a_timeout_says_what_it_waits_for():
    frame, shares = problem()
    engine = Never()
    with pytest.raises(
        EngineError,
        match=r"the first pass got no answer for chunk 1 within timeout=0\.05 seconds",
    ):
        from_chunks(
            MeanMap(), cut(frame, 500, 900), shares, map=engine.map, timeout=0.05
        )
    assert engine.cancelled == 2


def slow(_):
    raise TimeoutError("a database")


def test_a_timeout_of_the_reader_is_its_own():
    with pytest.raises(
        ChunkError, match="chunk 0 cannot be read: TimeoutError: a database"
    ):
        fit_chunks(MeanMap(), [0], [0.5], bags="bag", features=["x0"], read=slow)


def test_a_timeout_raised_by_a_worker_is_passed_on():
    def engine(function, tasks):
        future = Future()
        future.set_exception(TimeoutError("a database"))
        return [future]

    with pytest.raises(TimeoutError, match="a database"):
        from_chunks(MeanMap(), [FRAME], SHARES, map=engine)


def test_a_task_that_killed_workers_of_dask_is_said():
    class KilledWorker(Exception):
        pass

    def engine(function, tasks):
        future = Future()
        future.set_exception(KilledWorker("work-1"))
        return [future]

    with pytest.raises(EngineError, match="a worker process died in the first pass"):
        from_chunks(MeanMap(), [FRAME], SHARES, map=engine)


def end_of_worker(chunk):
    """Kill the process that reads, in a given pass over the last chunk."""
    frame, last, marks = chunk
    if last is not None:
        reads = len(list(marks.iterdir()))
        (marks / f"{reads}-{time.monotonic_ns()}").touch()
        if reads == last:
            os.kill(os.getpid(), signal.SIGKILL)
    return frame


@pytest.mark.parametrize("which", [0, 1])
def test_a_killed_process_is_said_and_never_a_hang(which, tmp_path):
    frame, shares = problem(400)
    chunks = [(part, None, tmp_path) for part in cut(frame, 100, 200)]
    chunks[-1] = (chunks[-1][0], which, tmp_path)
    with (
        ProcessPoolExecutor(1, get_context("fork")) as executor,
        pytest.raises(
            EngineError, match=r"a worker process died in the (first|Newton) pass"
        ),
    ):
        fit_chunks(
            MeanMap(), chunks, shares, bags="bag", features=features(frame),
            map=executor.map, read=end_of_worker, timeout=60,
        )  # fmt: skip


def test_a_pool_that_hides_deaths_is_refused():
    frame, shares = problem()
    with (
        ThreadPool(1) as pool,
        pytest.raises(
            ValueError,
            match="never says that a worker has died: pass the map of a concurrent",
        ),
    ):
        from_chunks(MeanMap(), [frame], shares, map=pool.map)


# --- Dask, Ray, Spark ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def client():
    """A cluster of two processes."""
    distributed = pytest.importorskip("distributed")
    options = {"threads_per_worker": 1, "dashboard_address": None}
    with (
        distributed.LocalCluster(2, **options) as cluster,
        distributed.Client(cluster) as one,
    ):
        yield one


@pytest.mark.dask
def test_dask_frames_delayed_futures_and_paths(client, tmp_path):
    dd = pytest.importorskip("dask.dataframe")
    frame, shares = problem()
    wanted = weights(from_chunks(CountLogistic(C=0.1), [frame], shares)).copy()
    lazy = dd.from_pandas(frame.set_index("bag", drop=False), npartitions=4)
    path = tmp_path / "a.csv"
    frame.to_csv(path, index=False)
    given = [
        lazy,
        lazy.persist(),
        lazy.to_delayed(),
        client.scatter(cut(frame, 500)),
        [path],
    ]
    options = {
        "bags": "bag",
        "features": features(frame),
        "map": client.map,
        "timeout": 60,
    }
    for chunks in given:
        found = fit_chunks(CountLogistic(C=0.1), chunks, shares, **options)
        assert_allclose(weights(found), wanted, atol=1e-5)
    predicted = lazy[features(frame)].map_partitions(found.predict, meta=(None, int))
    assert_array_equal(predicted.compute(), found.predict(frame[features(frame)]))
    alone = fit_chunks(MeanMap(), lazy, shares, bags="bag", features=features(frame))
    assert_allclose(
        weights(alone), weights(from_chunks(MeanMap(), [frame], shares)), atol=1e-9
    )


@pytest.mark.dask
def test_a_shuffle_mends_scattered_bags_and_leaves_empty_parts(client):
    dd = pytest.importorskip("dask.dataframe")
    frame, shares = problem(400)
    wanted = weights(from_chunks(CountLogistic(C=0.1), [frame], shares)).copy()
    mixed = dd.from_pandas(
        frame.sample(frac=1, random_state=0), npartitions=4, sort=False
    )
    options = {
        "bags": "bag",
        "features": features(frame),
        "map": client.map,
        "timeout": 60,
    }
    with pytest.raises(ChunkError, match=r"frame\.shuffle\(on='bag'\)"):
        fit_chunks(CountLogistic(C=0.1), mixed, shares, **options)
    whole = mixed.shuffle(on="bag", npartitions=60).persist()
    found = fit_chunks(CountLogistic(C=0.1), whole, shares, **options)
    assert_allclose(weights(found), wanted, atol=1e-5)


@pytest.mark.dask
@pytest.mark.parametrize("kind", ["paths", "delayed", "persisted"])
@pytest.mark.parametrize("which", [0, 3])
def test_a_killed_dask_worker_changes_nothing(kind, which, tmp_path):
    distributed = pytest.importorskip("distributed")
    dd = pytest.importorskip("dask.dataframe")
    frame, shares = problem(400)
    parts = cut(frame, 100, 200)
    wanted = weights(from_chunks(MeanMap(), parts, shares)).copy()
    killer = parts[-1], which, tmp_path
    options = {"bags": "bag", "features": features(frame), "timeout": 60}
    local = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with (
        distributed.LocalCluster(**local) as cluster,
        distributed.Client(cluster) as client,
    ):
        if kind == "paths":
            chunks = [(part, None, tmp_path) for part in parts[:-1]] + [killer]
            found = fit_chunks(
                MeanMap(), chunks, shares, map=client.map, read=end_of_worker, **options
            )
        else:
            chunks = dd.from_pandas(frame, npartitions=3)
            chunks = chunks.persist() if kind == "persisted" else chunks
            distributed.wait(chunks)
            engine = Killing(client, which)
            found = fit_chunks(MeanMap(), chunks, shares, map=engine.map, **options)
    assert_allclose(weights(found), wanted, atol=1e-9)


class Killing:
    """A Dask client that kills a worker at the start of a pass."""

    def __init__(self, client, which):
        self.client, self.left = client, which
        self.scheduler_info = client.scheduler_info

    def map(self, *args, **options):
        return self.client.map(*args, **options)

    def compute(self, tasks):
        if self.left == 0:
            pids = self.client.run(os.getpid)
            os.kill(next(iter(pids.values())), signal.SIGKILL)
        self.left -= 1
        return self.client.compute(tasks)


PAGE = Path(__file__).resolve().parents[1] / "book" / "src" / "beyond_memory.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.S | re.M)


@pytest.mark.dask
@pytest.mark.parametrize("library", ["dask", "ray", "pyspark", "xgboost"])
def test_engines_as_on_the_page(library, tmp_path, monkeypatch):
    """The blocks of the chapter that need another library, as they stand there."""
    pytest.importorskip("pyarrow")
    pytest.importorskip("dask.distributed")
    pytest.importorskip(library)
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    first = {"dask": 0, "ray": 1, "pyspark": 2, "xgboost": 3}[library]
    imports = [
        re.findall(r"^(?:import|from) (\w+)", b, re.M) for b in BLOCKS if "shares" in b
    ][1:]
    assert library in imports[first]
    frame, shares = problem(1000)
    frame = frame.drop(columns="y").rename(columns={"bag": "key"})
    for number, part in enumerate(cut(frame, 300, 600)):
        part.to_parquet(tmp_path / f"part-{number}.parquet")
    names = {"parquet": tmp_path, "paths": sorted(tmp_path.iterdir()), "shares": shares}
    names |= {"fit_chunks": fit_chunks, "CountLogistic": CountLogistic}
    code = [b for b in BLOCKS if "shares" in b][1:][first]
    exec(compile(code, str(PAGE), "exec"), names)
    if library == "xgboost":
        scores = names["trees"].predict(xgboost_matrix(frame), output_margin=True)
        right = np.corrcoef(scores, frame["x0"])[0, 1]
        assert np.isfinite(scores).all() and abs(right) > 0.1
    else:
        model = CountLogistic(C=0.1)
        wanted = weights(from_chunks(model, [frame], shares, bags="key"))
        assert_allclose(weights(names["model"]), wanted, atol=1e-5)
    for name in ("client", "cluster"):
        if name in names:
            names[name].close()
    if library == "ray":
        names["ray"].shutdown()
    if library == "pyspark":
        names["spark"].stop()


def xgboost_matrix(frame):
    import xgboost

    return xgboost.DMatrix(frame[features(frame)])


# --- what is said of bad chunks --------------------------------------------------------------------------------

FRAME, SHARES = problem(400)
KEYED = pd.Series(SHARES[:, 1], [f"b{k}" for k in range(40)])


def said(match, chunks, shares=SHARES, model=None, error=ChunkError, **options):
    with pytest.raises(error, match=match):
        from_chunks(model or MeanMap(), chunks, shares, **options)


def test_empty_chunks_are_left_out():
    wanted = weights(from_chunks(CountLogistic(C=0.1), [FRAME], SHARES)).copy()
    chunks = [FRAME[:0], FRAME[:200], FRAME[:0], FRAME[200:]]
    found = from_chunks(CountLogistic(C=0.1), chunks, SHARES)
    assert_allclose(weights(found), wanted, atol=1e-6)
    found = fit_chunks(
        CountLogistic(C=0.1), [c.drop(columns="y") for c in chunks], SHARES, bags="bag"
    )
    assert_allclose(weights(found), wanted, atol=1e-6)
    said("chunks hold no rows", [FRAME[:0]], error=ValueError)


def test_what_is_wrong_with_a_chunk_is_said_with_its_name(tmp_path):
    def spoiled(row, **values):
        second = FRAME[200:].copy()
        for name, value in values.items():
            second[name] = second[name].astype(object)
            second.iloc[row, second.columns.get_loc(name)] = value
        return [FRAME[:200], second]

    said(
        r"chunk 1: column 'bag' has a missing value at position 3", spoiled(3, bag=None)
    )
    said(r"chunk 1: bags holds 77, but proportions has no such row", spoiled(0, bag=77))
    said(r"bags are numbered from 0; if yours start", [FRAME.assign(bag=FRAME.bag + 1)])
    said(
        r"chunk 0: bags holds 0, which is not a key .*; give its share", [FRAME], KEYED
    )
    said(
        r"chunk 1: X must be a matrix of finite numbers: column 'x1' holds text",
        spoiled(0, x1="a"),
    )
    broken = [FRAME[:200], FRAME[200:].assign(x1=np.nan)]
    said(r"chunk 1: X must be .* column 'x1' holds missing values", broken)
    said(
        r"chunk 1 has no column 'x2'; it has \['x0'", [FRAME, FRAME.drop(columns="x2")]
    )
    said(r"chunk 0 has no column 'county'", [FRAME], bags="county")
    said(
        r"chunk 0 must be a DataFrame.* got int",
        [0],
        read=lambda chunk: 5,
        features=["x0"],
    )
    path = tmp_path / "part-7.csv.gz"
    path.write_bytes(b"cut short")
    said(r"chunk 1 \(.*part-7\.csv\.gz\) cannot be read: BadGzipFile", [FRAME, path])
    said(
        r"chunk 0 \(.*none\.csv\) cannot be read: FileNotFound",
        [tmp_path / "none.csv"],
        features=["x0"],
    )
    said(r"a path must end in", ["a.txt"], features=["x0"])


def test_what_is_wrong_with_the_shares_is_said():
    unknown = SHARES.copy()
    unknown[3] = np.nan
    said("got nan for bag 3, which has instances", [FRAME], unknown, error=ValueError)
    more = np.vstack([SHARES, [[np.nan, np.nan]]])
    assert from_chunks(MeanMap(), [FRAME], more).n_iter_ > 0
    said("same in every bag", [FRAME], np.full(40, 0.5), error=NotIdentifiableError)
    said("every instance is of class 1", [FRAME], np.ones(40), error=ValueError)
    with pytest.raises(ValueError, match="same in every bag") as caught:
        from_chunks(InvCal(), [FRAME], np.full(40, 0.5))
    assert "To read:" in caught.value.__notes__[0]


def test_scattered_bags_are_refused_where_they_matter():
    said(
        r"bag 20 has instances in chunk 0 and in chunk 1, but CountLogistic needs .*shuffle\(on='bag'\)",
        cut(FRAME, 205), model=CountLogistic(C=0.1),
    )  # fmt: skip
    said("number them across all chunks", cut(FRAME, 205), model=CountLogistic())
    mended = [part for _, part in FRAME.groupby(FRAME["bag"].map(hash) % 3)]
    assert from_chunks(CountLogistic(C=0.1), mended, SHARES).n_iter_ > 0


def test_scattered_bags_of_files_are_mended_by_reading_all(tmp_path):
    paths = [tmp_path / f"{i}.csv" for i in range(2)]
    for path, part in zip(paths, cut(FRAME, 205), strict=True):
        part.to_csv(path, index=False)
    said(
        r"dask\.dataframe\.read_parquet\(paths\)\.shuffle\(on='bag'\)", paths,
        model=CountLogistic(), features=features(FRAME),
    )  # fmt: skip


def test_more_columns_than_the_first_chunk_are_refused():
    first, second = (part.drop(columns="y") for part in cut(FRAME, 200))
    more = second.assign(site_z=1.0)
    for call in (
        lambda chunks: fit_chunks(MeanMap(), chunks, SHARES, bags="bag"),
        lambda chunks: sample_bags(chunks, SHARES, 40, bags="bag"),
    ):
        with pytest.raises(
            ChunkError,
            match="chunk 2 has the column 'site_z', which chunk 1 has not; name the",
        ):
            call([pd.DataFrame(), first, more])
        assert call([pd.DataFrame(), first, second]) is not None
    from_chunks(MeanMap(), [first, more], SHARES)


def test_a_share_per_instance_is_refused():
    shares = SHARES[FRAME["bag"]]
    with pytest.raises(ValueError, match="400 entries") as caught:
        from_chunks(MeanMap(), [FRAME], shares)
    with pytest.raises(ValueError, match="400 entries") as wanted:
        in_memory(MeanMap(), FRAME, shares)
    assert str(caught.value) == str(wanted.value)


def test_messages_behind_a_transformer_name_its_columns():
    frame = FRAME.assign(xkind=np.where(FRAME["x0"] > 5, "a", "b"))
    columns = make_column_transformer(
        (OneHotEncoder(drop="first"), ["xkind"]), remainder="passthrough"
    )
    columns.fit(frame[features(frame)])
    model = make_pipeline(columns, MeanMap())
    broken = frame.assign(x1=np.where(frame.index == 3, np.nan, frame["x1"]))
    said(r"column 'remainder__x1' holds missing", [broken], model=model)
    text = frame.assign(x1="a")
    said(r"column 'remainder__x1' holds text", [text], model=model)


def test_chunks_that_change_are_noticed():
    shrinking = [FRAME[:200]]

    class Chunk:
        def __call__(self):
            shrinking.append(shrinking[-1][:-5])
            return shrinking[-1]

    said(
        "chunk 0 had 195 rows in the first pass and has 190",
        [Chunk()],
        features=features(FRAME),
    )
    named = FRAME.assign(bag="b" + FRAME["bag"].astype(str))
    unknown = []
    for n_same in range(1, 8):
        turns = [named] * n_same + [named.assign(bag="a" + named["bag"])] * 9
        with pytest.raises(ChunkError, match="first pass: chunks must not") as caught:
            from_chunks(
                CountLogistic(C=0.1), [partial(next, iter(turns))], KEYED,
                features=features(FRAME),
            )  # fmt: skip
        unknown += ["bag 'ab0' was not there" in str(caught.value)]
    assert any(unknown)


CHANGES = {
    "drawn": lambda f: f.assign(x0=np.random.default_rng(0).normal(size=400)),
    "edited": lambda f: f.assign(x1=f["x1"] + 1e-6 * (f.index == 7)),
    "permuted": lambda f: f.assign(x1=f["x1"].to_numpy()[::-1]),
    "permuted in a bag": lambda f: f.assign(x1=f["x1"].iloc[[1, 0, *range(2, 400)]].to_numpy()),
    "bags": lambda f: f.assign(bag=f["bag"] + (f.index == 7)),
    "bags permuted": lambda f: f.assign(bag=f["bag"].to_numpy()[::-1]),
    "text": lambda f: f.assign(bag=f["bag"].astype(str)),
    "missing": lambda f: f.assign(x2=f["x2"].where(f.index != 7)),
}  # fmt: skip


def changed_later(frame, change):
    """A chunk that another pass than the first finds changed."""
    first = [frame]
    return lambda: first.pop() if first else change(frame)


@pytest.mark.parametrize("kind", CHANGES)
def test_other_values_in_a_later_pass_are_noticed(kind):
    options = {"features": features(FRAME), "map": map}
    match = "chunk 1 holds other values in the Newton pass than in the first pass"
    chunks = [FRAME[:0], changed_later(FRAME, CHANGES[kind])]
    said(match, chunks, **options)


class Plain(TransformerMixin, BaseEstimator):
    """A step that makes numbers of columns of each type."""

    def fit(self, X):
        self.fitted_ = True
        return self

    def transform(self, X):
        days = (X["xdate"] - pd.Timestamp("2020-01-01")).dt.days / 1e3
        found = X[["x0", "x1"]].fillna(5.0).assign(xdate=days)
        found["xkind"] = (X["xkind"] == "a").astype(float)
        return found.assign(x2=X["x2"] / 1e25).astype(float)


def of_each_type():
    """A missing value, a nullable type, a large single precision, a category and a date."""
    many = FRAME.assign(
        x0=FRAME["x0"].where(FRAME.index % 50 > 0), x1=FRAME["x1"].astype("Float64")
    )
    many["x2"] = (1e25 * FRAME["x2"]).astype("float32")
    many["xkind"] = pd.Categorical(np.where(FRAME["x0"] > 5, "a", "b"))
    return many.assign(xdate=pd.date_range("2020-01-01", periods=400))


@pytest.mark.parametrize("name", ["x0", "x1", "x2", "xkind", "xdate"])
def test_other_values_in_columns_of_each_type_are_noticed(name):
    many = of_each_type()
    model = make_pipeline(Plain().fit(many), StandardScaler(), CountLogistic(C=0.1))
    turns = itertools.cycle([many, many.sample(frac=1, random_state=0)])
    options = {"bags": "bag", "features": features(many)}
    fit_chunks(model, [lambda: next(turns)], SHARES, **options)
    back = changed_later(many, lambda f: f.assign(**{name: f[name].to_numpy()[::-1]}))
    with pytest.raises(ChunkError, match="chunk 0 holds other values in the"):
        fit_chunks(model, [back], SHARES, **options)


def test_a_failed_fit_leaves_the_one_before():
    model = make_pipeline(StandardScaler(), MeanMap())
    from_chunks(model, [FRAME], SHARES)
    before = dict(vars(model[0])), dict(vars(model[1]))
    moved = FRAME.assign(x0=100 * FRAME["x0"] + 500)
    chunk = changed_later(moved, lambda f: f.assign(x0=0.0))
    said("holds other values", [chunk], model=model, features=features(FRAME))
    assert (vars(model[0]), vars(model[1])) == before


def test_each_error_of_a_worker_names_the_chunk():
    step = FunctionTransformer(lambda X: X.assign(x0=abs(X["x0"])))
    broken = FRAME[200:].assign(x0="text")
    model = make_pipeline(step, MeanMap())
    said("chunk 1: TypeError: bad operand", [FRAME[:200], broken], model=model)
    twice = FRAME.drop(columns="y").set_axis(["x0", "x0", "x2", "bag"], axis=1)
    for names in (None, ["x0", "x2"]):
        said("chunk 0 has two columns with the name 'x0'", [twice], features=names)
    infinite = FRAME.assign(x1=FRAME["x1"].where(FRAME.index != 3, np.inf))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        said("chunk 0: X must be a matrix of finite numbers", [infinite])


def test_noisy_shares_are_refused_with_a_way_out():
    for shares in (1.3 * SHARES[:, 1] - 0.15, 4 * SHARES[:, 1] - 1.2):
        said(r"in \[0, 1\], .*clip noisy shares", [FRAME], shares, error=ValueError)
        with pytest.raises(ValueError, match=r"clip noisy shares.*proportion_errors"):
            sample_bags([FRAME], shares, 5, bags="bag")
    for times in (10, 100, 1000):
        said(
            "divide percent by 100, and counts by the sizes", [FRAME],
            times * SHARES[:, 1], error=ValueError,
        )  # fmt: skip


def test_other_rounding_and_another_order_are_no_change():
    frame = FRAME.astype({"x0": "f4"}).assign(x1=1e8 + FRAME["x1"])
    near = frame.assign(x1=frame["x1"] * (1 + 1e-16), x2=frame["x2"] * (1 + 1e-15))
    turns = itertools.cycle([frame, near, frame.sample(frac=1, random_state=0)])
    given = {"features": features(FRAME), "bags": "bag"}
    model = make_pipeline(StandardScaler(), CountLogistic(C=0.1))
    assert fit_chunks(model, [lambda: next(turns)], SHARES, **given)[-1].n_iter_ > 1


def test_bag_numbers_that_start_again_are_warned_of():
    parts = cut(FRAME, 100, 200, 300)
    again = [part.assign(bag=part["bag"] - part["bag"].min()) for part in parts]
    numbered = pd.DataFrame(SHARES)  # as of pd.concat(…, ignore_index=True)
    groups = [half for part in again for half in cut(part, 55)]
    lost = [again[0][again[0]["bag"] != 7], *again[1:]]
    ragged = [again[0], again[1][:80], *again[2:]], np.delete(SHARES, [18, 19], axis=0)
    warned = [(again, SHARES), (again, numbered), (groups, SHARES), (lost, SHARES)]
    warned += [ragged, (again[:2], SHARES[:20])]
    for model, (chunks, shares) in itertools.product((MeanMap(), InvCal()), warned):
        with pytest.warns(
            LLPWarning,
            match=rf"start again in each chunk: proportions has {len(shares)} entries, but only 10 dif",
        ):
            from_chunks(model, chunks, shares)


def test_bags_that_span_chunks_are_not_warned_of():
    """Counties, with one share each, also if the chunks hold only a half of them."""
    parts, mixed = cut(FRAME, 105, 200, 305), FRAME.sample(frac=1, random_state=0)
    more = np.vstack([SHARES, SHARES])
    for model in (MeanMap(), InvCal()):
        for chunks, shares in (
            (cut(mixed, 100, 200, 300), SHARES),
            (parts, SHARES),
            (parts, more),
            ([FRAME], more),
            (cut(mixed, 150), pd.DataFrame(SHARES)),
        ):
            from_chunks(model, chunks, shares)


@pytest.mark.parametrize(
    ("model", "match"),
    [
        (
            EMLR(),
            "EMLR does not reduce to sums over chunks; fit EMLR to a sample of whole bags, sample_bags",
        ),
        (CountBoosting(), "CountBoosting does not reduce"),
        (MeanMap(kernel="rbf"), "kernel='rbf' compares all pairs of instances"),
        (
            LaplacianMeanMap(similarity="normalized_cut"),
            "similarity='normalized_cut' compares all pairs of instances",
        ),
        (WeightedLDA("wws"), "needs scheme='sws', got 'wws'"),
        (LogisticRegression(), "LogisticRegression does not reduce"),
    ],
    ids=str,
)
def test_what_does_not_reduce_is_refused_with_a_way_out(model, match):
    said(match, [FRAME], model=model, error=ValueError)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (
            {"chunks": iter([FRAME])},
            "chunks is an iterator, which can be read only once",
        ),
        ({"chunks": []}, "chunks is empty"),
        ({"chunks": lambda: iter([FRAME])}, "chunks must be a list .* got function"),
        ({"chunks": Path(__file__).parent}, r"chunks is a folder; .*\.glob"),
        ({"features": ["x0", "bag"]}, "none of them that of the bags"),
        ({"features": ["x0", "x0"]}, "features must be different columns"),
        ({"tol": 0}, "tol must be above 0"),
        ({"max_passes": 0}, "max_passes must be a whole number"),
        ({"estimator": MeanMap(alpha=-1.0)}, "alpha"),
    ],
)
def test_arguments_are_checked(options, match):
    given = {"estimator": MeanMap(), "chunks": [FRAME], "features": features(FRAME)}
    with pytest.raises(ValueError, match=match):
        fit_chunks(proportions=SHARES, bags="bag", **given | options)


def test_warnings_of_the_fit_in_memory_come_from_chunks_too():
    with pytest.warns(LLPWarning, match="not on one scale"):
        from_chunks(InvCal(), [FRAME.assign(x0=FRAME["x0"] * 1e6)], SHARES)
    with pytest.warns(
        ConvergenceWarning, match="stopped after 1 passes with a step of"
    ):
        from_chunks(MeanMap(), [FRAME], SHARES, max_passes=1)
    rng = np.random.default_rng(0)
    level = FRAME.assign(x0=5 * SHARES[FRAME["bag"], 1] + rng.normal(size=400))
    with pytest.warns(LLPWarning, match="MeanMap is too sure"):
        from_chunks(
            MeanMap(alpha=1e-6), cut(level[["x0", "bag"]], 150), SHARES, max_passes=200
        )


def test_bags_may_be_many_more_than_a_chunk_has_rows():
    rng, n = np.random.default_rng(0), 1_050_000
    frame = pd.DataFrame({"x": rng.normal(size=n), "bag": np.arange(n)})
    shares = (frame["x"] + rng.normal(size=n) > 0).to_numpy(float)
    parts = [frame[:1000], frame[1000:]]
    model = fit_chunks(WeightedLDA("sws"), parts, shares, bags="bag", features=["x"])
    assert model.score(frame[["x"]][:1000], shares[:1000]) > 0.7


# --- a sample of bags ------------------------------------------------------------------------------------------


def test_a_sample_holds_whole_bags():
    mixed = FRAME.sample(frac=1, random_state=0)
    found = sample_bags(cut(mixed, 130), SHARES, 7, bags="bag", random_state=0)
    assert found.columns.tolist() == ["x0", "x1", "x2", "y", "bag"]
    assert (found["bag"].value_counts() == 10).all() and found["bag"].nunique() == 7
    again = sample_bags(cut(mixed, 200), SHARES, 7, bags="bag", random_state=0)
    assert set(again["bag"]) == set(found["bag"])
    model = EMLR(C=1.0).fit(found[["x0", "x1", "x2"]], found["bag"], SHARES)
    assert model.classes_.tolist() == [0, 1]
    with pytest.raises(ValueError, match="n_bags must be a whole number from 1 to 40"):
        sample_bags([FRAME], SHARES, 41, bags="bag")


def test_a_sample_is_complete_and_its_shares_known():
    unknown = np.where(np.arange(40) < 35, np.nan, SHARES[:, 1])
    found = sample_bags([FRAME], unknown, 5, bags="bag")
    assert sorted(found["bag"].unique()) == [35, 36, 37, 38, 39]
    named = FRAME.assign(bag="b" + FRAME["bag"].astype(str))
    for frame, present in ((FRAME[:50], 5), (named, 0)):
        with pytest.raises(ValueError, match=f"only {present} of the 40 bags"):
            sample_bags([frame], SHARES, 40, bags="bag")
