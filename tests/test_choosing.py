"""Advice: signals by their definitions, the decision by hand, a limit of time, and what is done for odd bags."""

import contextlib
import json
import pickle
import time
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import binom
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import MaxAbsScaler

from llpbook import CountBoosting, CountLogistic, choosing, load_bags, recommend
from llpbook.base import LLPClassifier, LLPWarning, TimeIsUp
from llpbook.baselines import MajorityClass
from llpbook.choosing import METHODS, RULE, Signals, _advice, _decision, _signals
from llpbook.ecological import polling_errors
from llpbook.proportions import label_proportions
from studies import choosing as study


def line_problem(n=300, n_bags=15, seed=0, n_classes=2):
    """Classes that lines tell apart, in bags whose shares differ: X, y, bags, shares."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    X = rng.normal(size=(n, 3)) * 0.5
    X[np.arange(n), y % 3] += 1.5
    tilt = rng.normal(size=(n_bags, n_classes))[:, y] + rng.gumbel(size=(n_bags, n))
    bags = tilt.argmax(axis=0)
    return X, y, bags, label_proportions(y, bags, n_bags=n_bags)


def noise_problem(seed=0, n=300, n_bags=12, d=30):
    """Features that say nothing, three of four in class 0."""
    rng = np.random.default_rng(seed)
    y, bags = (rng.random(n) < 0.25).astype(int), rng.integers(0, n_bags, n)
    return rng.normal(size=(n, d)), y, bags, label_proportions(y, bags)


@pytest.fixture(scope="module", autouse=True)
def few_rounds():
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(METHODS, "trees", CountBoosting(max_iter=10))
        yield


@pytest.fixture(scope="module")
def line():
    X, y, bags, P = line_problem(1200, 60)
    return X, y, bags, P, recommend(X, bags, P)


@pytest.fixture(scope="module")
def ring():
    """Classes that no line tells apart, in bags whose shares differ; every tenth label is known."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 2))
    y = (np.hypot(*X.T) > 1.1).astype(int)
    bags = np.argsort(np.argsort(y + 0.7 * rng.normal(size=2000))) // 50
    P, labels = label_proportions(y, bags), np.where(np.arange(2000) % 10 == 0, y, -1)
    return X, labels, bags, P, recommend(X, bags, P, labels=labels)


# --- signals ---------------------------------------------------------------------------------------------------------


@pytest.mark.equation("eq-choosing-agreement")
def test_agreement_bounds_the_error_of_the_worse_of_two():
    y, first, second = np.random.default_rng(0).integers(0, 3, (3, 400))
    a = choosing.agreement(first, second)
    assert a == sum(i == j for i, j in zip(first, second, strict=True)) / 400
    assert max(np.mean(first != y), np.mean(second != y)) >= (1 - a) / 2


@pytest.mark.equation("eq-choosing-gain")
def test_gain_by_the_binomial_distribution():
    # Features that say which of two groups an instance is in: within a group all probabilities are equal.
    rng = np.random.default_rng(1)
    group = np.sort(np.arange(400) % 2)
    y = (rng.random(400) < np.where(group == 1, 0.8, 0.2)).astype(int)
    bags = np.where(group == 1, 0, 10) + np.arange(400) // 20 % 10  # pure in group
    shares, X = label_proportions(y, bags), np.where(group == 1, 1.0, -1.0)[:, None]
    splits = list(_signals.SplitBagKFold(2, random_state=0).split(group, groups=bags))
    found = choosing.held_out_gain(CountLogistic(C=1e4), X, bags, shares, splits)
    sizes, (p, prior), slow = np.bincount(bags), np.empty((2, 400)), 0.0
    counts = np.round(sizes * shares[:, 1])
    for train, test in splits:
        model = CountLogistic(C=1e4).fit(X[train], bags[train], shares)
        p[test] = model.predict_proba(X[test])[:, 1]
        kept = np.bincount(bags[train], minlength=20)
        prior[test] = kept @ shares[:, 1] / kept.sum()
    for k in range(20):
        for q, sign in ((p[bags == k], 1), (prior[bags == k], -1)):
            law = np.ones(1)  # of the sum of independent coins
            for v in q:
                law = np.convolve(law, [1 - v, v])
            slow += sign * np.log(law[int(counts[k])])
    assert found == pytest.approx(slow, rel=1e-6)
    assert found > 50


def test_whole_bags_are_whole(monkeypatch):
    bags, P = np.random.default_rng(0).integers(0, 50, 1000), np.full((50, 2), 0.5)
    sizes = np.bincount(bags)

    def draw(most, least, P):
        monkeypatch.setattr(_signals, "MOST", most)
        monkeypatch.setattr(_signals, "LEAST", least)
        rows = _signals.whole_bags(bags, P, np.random.RandomState(0))
        assert_array_equal(rows, np.flatnonzero(np.isin(bags, bags[rows])))
        return rows, np.unique(bags[rows])

    varied = P + np.outer(np.arange(50) / 100, [1, -1])
    assert 200 <= len(draw(200, 1, varied)[0]) < 200 + sizes.max()
    assert len(draw(1, 30, varied)[1]) == 30
    assert len(draw(10**6, 1, varied)[0]) == 1000
    for bag in (7, 31):  # the only one that differs is among them
        one = np.where(np.arange(50)[:, None] == bag, [0.9, 0.1], P)
        assert bag in draw(100, 1, one)[1]


def test_signals_of_trees_are_those_of_trees(ring):
    """`other` and the gain of whole bags belong to the likelier method, here by slow computation."""
    X, _, bags, P, advice = ring
    found = advice.signals
    assert found.trees > found.line + 10
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    models = {n: clone(METHODS[n]).fit(Z, bags, P) for n in ("line", "trees", "other")}
    most = P.mean(axis=0).argmax()
    other = {n: np.mean(m.predict(Z) != most) for n, m in models.items()}
    assert found.other == other["trees"] != other["line"]
    same = models["line"].predict(Z) == models["other"].predict(Z)
    assert found.agreement == np.mean(same)
    rng = np.random.RandomState(0)
    _signals.whole_bags(bags, P, rng)
    parts = list(_signals.SplitBagKFold(3, random_state=rng).split(X, groups=bags))
    assert found.line == choosing.held_out_gain(METHODS["line"], Z, bags, P, parts)
    folds = _signals.FullBagKFold(3, proportions=P, random_state=rng)
    splits = list(folds.split(Z, groups=bags))
    whole = choosing.held_out_gain(METHODS["trees"], Z, bags, P, splits)
    assert found.whole == whole


def test_bags_that_are_not_looked_at_do_not_move_the_others(monkeypatch):
    X, y, bags, P = line_problem(600, 30, n_classes=3)
    monkeypatch.setattr(_signals, "MOST", 200)
    monkeypatch.setattr(_signals, "LEAST", 5)
    X[bags == 0] += 100  # not drawn
    found = recommend(X, bags, P).signals
    drawn = _signals.whole_bags(bags, P, np.random.RandomState(0))
    assert 5 <= len(np.unique(bags[drawn])) < 20 and 0 not in bags[drawn]
    X[bags == 0] -= 1000
    assert recommend(X, bags, P).signals == found
    eta = label_proportions(y, np.zeros(600, int))[0]
    assert found.largest == pytest.approx(eta.max())
    variances = [np.bincount(bags) @ (P[:, j] - eta[j]) ** 2 for j in range(3)]
    assert found.worth == pytest.approx(min(variances / (eta * (1 - eta))))


def test_of_many_numbers_a_part_of_each_bag_is_fitted_to(monkeypatch):
    X, _, bags, P = line_problem(1200, 20)
    seen, fit = [], LLPClassifier.fit

    def spy(self, X, bags, proportions):
        seen.append(len(X))
        return fit(self, X, bags, proportions)

    monkeypatch.setattr(LLPClassifier, "fit", spy)
    monkeypatch.setattr(_signals, "MOST_NUMBERS", X.size // 3)
    advice = recommend(X, bags, P)
    assert max(seen) == pytest.approx(400, abs=1)
    assert advice.verdict == "fit" and advice.signals.n_instances == 1200


# --- the decision ----------------------------------------------------------------------------------------------------

SEEN = Signals(1000, 10, 20, 2, 0.7, 5.0, 0.9, 0.2, 3.0, 20.0, 1.0)


@pytest.mark.parametrize("change, verdict, method", [
    ({}, "fit", "trees"), ({"trees": 2.0, "line": 10.0}, "fit", "line"), ({"trees": 9.9}, "weak", "trees"),
    ({"trees": 10.0}, "fit", "trees"), ({"trees": 3.0}, "weak", "line"),
    ({"line": np.nan, "trees": 3.0}, "weak", "line"), ({"agreement": 0.4, "largest": 0.0}, "fit", "trees"),
    ({"trees": np.nan, "line": 11.0}, "fit", "line"), ({"whole": 0.0}, "weak", "trees"),
    ({"whole": np.nan}, "weak", "trees"), ({"agreement": 0.81}, "do not fit", "majority"),
    ({"agreement": np.nan}, "do not fit", "majority"), ({"agreement": 0.81, "worth": 10.0}, "weak", "trees"),
    ({"agreement": 0.81, "worth": 9.9}, "do not fit", "majority"),
    ({"agreement": 0.81, "largest": 0.4}, "fit", "trees"), ({"largest": 0.8, "agreement": 0.98}, "fit", "trees"),
    ({"largest": 0.81, "agreement": 0.98}, "weak", "trees"),
    ({"largest": 0.95, "agreement": 0.96}, "do not fit", "majority"), ({"other": 0.0}, "do not fit", "majority"),
    ({"other": np.nan, "worth": 10.0}, "do not fit", "majority"),
])  # fmt: skip
def test_decision_by_hand(change, verdict, method):
    signals = SEEN._replace(**change)
    found, path = choosing.decide(signals)
    assert found == verdict and len(path) == (1 if "other" in change else 3)
    assert method in (signals.likelier, "majority")
    assert (method == "majority") == (found == "do not fit")


def test_the_rule_is_that_of_the_study():
    for _, row in study.signal_table().iterrows():
        signals = Signals(
            row["n"], row["d"], row["bags"], row["classes"], row["largest"], row["worth"],
            row["agreement"], 0.1, row["line"], row["trees"], row["whole"],
        )  # fmt: skip
        verdict, _ = choosing.decide(signals)
        assert verdict == study.verdict(row)
        named = {"line": "counts", "trees": "count trees"}[signals.likelier]
        assert study.advised(row) in (named, "majority")


def test_what_the_package_says_of_the_study_is_in_its_rows():
    path = Path(choosing.__file__).with_name("study.json")
    assert json.loads(path.read_text()) == study.findings() == _advice.STUDY
    rows = study.signal_table().query("part == 'testing'")
    assert rows["largest"].max() <= _decision.COMMON
    table = study.calibration("testing")
    assert table["n"].sum() == 2 * len(study.TASKS["testing"])  # two draws of each
    weak = list(table.loc["weak", ["n", "most", "below"]])
    assert weak == _advice.STUDY["record"]["weak"]


# --- labels ----------------------------------------------------------------------------------------------------------


def test_labels_needed_are_those_of_a_binomial_test():
    for n in (0, 1, 5, 34, 100):
        tail = [binom.sf(k - 1, n, 0.5) for k in range(n + 2)]
        wanted = next(k for k, p in enumerate(tail) if p <= 0.05)
        assert choosing.needed(n) == wanted


@pytest.mark.parametrize("verdict, counts", [
    ("fit", [(9, 2), (5, 0)]), ("do not fit", [(2, 9), (0, 5)]), ("weak", [(6, 4), (0, 0), (4, 0), (0, 4)]),
])  # fmt: skip
def test_known_labels_overrule_where_they_are_enough(verdict, counts):
    for alone in counts:
        table = pd.DataFrame({"alone": alone}, index=["fit", "majority"])
        assert choosing.judge("weak", table) == verdict


def test_right_labels_are_counted_by_hand():
    predicted, labels = np.array([0, 1, 1, 2]), np.array([0, 1, 0, 2])
    found = choosing.count_right(predicted, labels, largest=0)
    assert found.loc["fit"].tolist() == [3, 4, 2]
    assert found.loc["majority"].tolist() == [2, 4, 1]


def test_labels_that_were_chosen_by_class_warn():
    X, y, bags, P = line_problem()
    drawn = np.where(np.random.default_rng(0).random(300) < 0.3, y, -1)
    with warnings.catch_warnings(action="error"):
        recommend(X, bags, P, labels=drawn)
    named = pd.DataFrame(P, columns=["healthy", "ill"])
    labels, n = np.array(["healthy", -1], dtype=object)[y], np.sum(y == 0)
    message = f"0 of {n} known .* their bags say {P[bags[y == 0], 1].sum():.0f}:"
    with pytest.warns(LLPWarning, match=message):
        assert recommend(X, bags, named, labels=labels).labeled is not None


def test_a_probability_below_a_thousandth_warns():
    """None of 10 has one of 2 / 1024 where shares are a half, none of 11 one of 2 / 2048."""
    halves, names = np.full((11, 2), 0.5), np.array(["a", "b", "c"])
    for labels, shares, said in (
        (np.zeros(10, int), halves[1:], []),
        (np.zeros(11, int), halves, [(0, 11, "b", 6)]),
        (np.arange(40) // 20, np.tile([0.2, 0.5, 0.3], (40, 1)), [(20, 40, "a", 8), (0, 40, "c", 12)]),
    ):  # fmt: skip
        with warnings.catch_warnings(record=True, action="always") as caught:
            _decision.warn_if_chosen(labels, shares, names[: shares.shape[1]])
        words = "{} of {} known labels are of class {!r} where the shares of their bags say {}:"
        for warned, numbers in zip(caught, said, strict=True):
            assert str(warned.message).startswith(words.format(*numbers))


def test_labels_judge_the_fit_that_is_named_and_do_not_enter_it(ring, monkeypatch):
    """A ring: trees are recommended, and a line would be right less often."""
    X, labels, bags, P, advice = ring
    assert isinstance(advice.method, CountBoosting)
    fitted, known = advice.fit(X, bags, P), labels >= 0
    right = int(np.sum(fitted.predict(X[known]) == labels[known]))
    assert advice.labeled.loc["fit", ["right", "of"]].tolist() == [right, 200]
    largest = np.sum(labels == P.mean(axis=0).argmax())
    assert advice.labeled.loc["majority", ["right", "of"]].tolist() == [largest, 200]
    text = str(advice)
    assert "They decide." in text and f"has {right} of 200 right" in text
    assert len(text.splitlines()) <= 12 and "Record" not in text


def test_labels_speak_also_where_the_signals_say_no_and_none_is_no_labels():
    bagged = load_bags("german", by="employment")
    advice = recommend(*bagged)
    assert advice.verdict == "do not fit" and advice.majority == "good"
    assert isinstance(advice.estimator, MajorityClass)
    assert (advice.fit(*bagged).predict(bagged.X) == "good").all()
    y = bagged.true_labels_for_evaluation().astype(object)
    assert recommend(*bagged, labels=y).labeled.loc["fit", "of"] == 1000
    none = recommend(*bagged, labels=np.full(1000, -1))
    assert none.labeled is None and str(none) == str(advice)


# --- what cannot be fitted, and what takes too long ------------------------------------------------------------------


def proportional(n_bags=30):
    """Three classes, the third with twice the share of the second in every bag."""
    second = np.linspace(0.1, 0.3, n_bags)
    return np.column_stack([1 - 3 * second, second, 2 * second])


@pytest.mark.parametrize(
    "shares", [np.full(30, 0.25), np.full((30, 3), 1 / 3), proportional()]
)
def test_what_cannot_be_fitted_is_not_recommended(shares):
    X, bags = np.random.default_rng(0).normal(size=(600, 4)), np.arange(600) % 30
    advice = recommend(X, bags, shares)
    refused = []
    for name in ("line", "trees"):
        try:
            clone(METHODS[name]).fit(X, bags, shares)
        except ValueError as error:
            refused.append(str(error))
    if refused:
        assert advice.verdict == "do not fit" and advice.refusal in refused
        text = " ".join(str(advice).split())
        assert f"No method can be fitted to these bags: {advice.refusal}" in text
    advice.fit(X, bags, shares)  # whatever is named


def test_a_rare_class_is_looked_at(monkeypatch):
    X, y, bags, _ = line_problem(600, 60)
    y[0], bags[0] = 2, 60  # one instance of the third class, a bag of its own
    monkeypatch.setattr(_signals, "MOST", 100)
    monkeypatch.setattr(_signals, "LEAST", 1)
    P = label_proportions(y, bags, n_bags=61)
    for seed in (0, 1):
        advice = recommend(X, bags, P, random_state=seed)
        assert advice.refusal is None and advice.signals.other > 0
        assert advice.signals.worth > 100
        advice.fit(X, bags, P)


def test_a_fold_without_a_class_has_no_gain():
    X, y, _, _ = line_problem(60, 6)
    bags, y[:58], y[58:] = np.arange(60) // 2, y[:58] % 2, 2  # one bag has the class
    advice = recommend(X, bags, label_proportions(y, bags))
    assert np.isnan(advice.signals.whole) and np.isfinite(advice.signals.agreement)
    assert "whole bags not known" in " ".join(str(advice).split())


def test_a_second_method_that_refuses_is_no_agreement(monkeypatch):
    class Refuses(CountLogistic):
        def _fit(self, data):
            raise choosing._signals.NotIdentifiableError("no")

    monkeypatch.setitem(METHODS, "other", Refuses())
    X, _, bags, P = line_problem()
    advice = recommend(X, bags, P)
    assert advice.verdict == "weak" and np.isnan(advice.signals.agreement)
    assert "Two methods" not in str(advice).partition("yes")[0]


@pytest.mark.parametrize("seconds", [1e-9, 0.05])
def test_the_limit_of_time_is_kept_and_what_was_not_tried_is_said(seconds):
    X, _, bags, P = line_problem(20_000, 40)
    X = np.hstack([X, np.random.default_rng(0).normal(size=(20_000, 60))])
    began = time.process_time()
    advice = recommend(X, bags, P, max_seconds=seconds)
    assert time.process_time() - began < 3
    assert advice.not_tried and advice.max_seconds == seconds
    text = " ".join(str(advice).split())
    assert f"Not tried within max_seconds={seconds:g}: {advice.not_tried[0]}" in text
    assert "Record" not in text and len(str(advice).splitlines()) <= 14
    if seconds < 1e-6:
        assert advice.verdict == "do not fit" and "Nothing was fitted" in text
        assert np.isnan(advice.signals.other) and not len(advice.reasons)
    advice.plot()


@pytest.mark.parametrize("slow, missing, verdict", [
    ("trees", "gain of CountBoosting", "fit"), ("other", "EMLR", "weak"), ("line", "CountLogistic", "do not fit"),
])  # fmt: skip
def test_a_method_that_takes_too_long_is_missing(monkeypatch, slow, missing, verdict):
    X, _, bags, P = line_problem()
    fit = type(METHODS[slow])._fit

    def late(self, data):
        raise TimeIsUp

    monkeypatch.setattr(type(METHODS[slow]), "_fit", late)
    advice = recommend(X, bags, P)
    monkeypatch.setattr(type(METHODS[slow]), "_fit", fit)
    assert advice.not_tried[0] == missing and advice.verdict == verdict
    advice.fit(X, bags, P)


def corners(n=1500):
    """Classes that trees find and a line does not, in sorted bags of 20."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (n, 2))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    bags = np.empty(n, int)
    bags[np.argsort(y + rng.normal(size=n))] = np.arange(n) // 20
    return X, y, bags, np.bincount(bags, y) / 20


@pytest.mark.parametrize("d, n_classes", [(2000, 2), (600, 3)])
def test_many_weights_take_no_newton_matrix(monkeypatch, d, n_classes):
    rng, bags, P = (
        np.random.default_rng(0),
        np.arange(400) % 20,
        np.linspace(0.2, 0.8, 20),
    )
    X = sp.random_array((400, d), density=0.01, rng=rng).tocsr()
    P = np.column_stack([1 - P, P] if n_classes == 2 else [1 - P, P**2, P - P**2])
    seen = []
    monkeypatch.setattr("llpbook.em._fits.WarmFits", lambda *args: seen.append(args))
    advice = recommend(X, bags, P)
    Z, inside = (
        MaxAbsScaler().fit_transform(X),
        LogisticRegression(C=0.01, max_iter=1000),
    )
    two = METHODS["line"], clone(METHODS["other"]).set_params(estimator=inside)
    first, second = (clone(m).fit(Z, bags, P).predict(Z) for m in two)
    assert advice.signals.agreement == np.mean(first == second) and not seen
    assert advice.signals.trees_tried and advice.not_tried == []


@pytest.mark.filterwarnings("ignore:CountLogistic with C")
@pytest.mark.parametrize("kind", [sp.csr_array, sp.coo_matrix])
def test_sparse_features_get_the_advice_of_dense_ones(kind):
    X, y, bags, p = corners()
    dense, sparse = recommend(X, bags, p), recommend(kind(X), bags, p)
    assert sparse.verdict == dense.verdict == "fit" and sparse.signals.trees_tried
    assert type(sparse.method) is type(dense.method) is CountBoosting
    assert_allclose(sparse.signals.trees, dense.signals.trees, rtol=1e-6)
    model = sparse.fit(kind(X), bags, p)
    assert model.score(kind(X), y) > 0.95
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.predict(kind(X)), model.predict(kind(X)))
    labels = np.where(np.arange(len(y)) < 60, y, -1)
    labeled = recommend(kind(X), bags, p, labels=labels).labeled
    assert labeled.loc["fit", "right"] > 55


@pytest.mark.filterwarnings("ignore:CountLogistic with C")
def test_sparse_features_that_are_too_large_for_trees_are_named(monkeypatch):
    X, _, bags, p = corners()
    assert _signals.MOST_DENSE == 50_000_000  # in the notes of `recommend`
    monkeypatch.setattr(_signals, "MOST_DENSE", X.size - 1)
    advice = recommend(sp.csr_array(X), bags, p)
    said = " ".join(str(advice).split())
    assert "Trees were not tried: X is sparse, and they need it dense, 1,500 × 2 numbers" in said  # fmt: skip
    assert "only trees may find them" in said and np.isnan(advice.signals.trees)
    assert recommend(X, bags, p).signals.trees_tried


def test_an_attempt_must_fit_into_its_share_of_the_time(monkeypatch):
    now, limits, steps = [0.0], [], []

    def limit(seconds):
        limits.append(seconds)
        return contextlib.nullcontext()

    monkeypatch.setattr(_signals, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    monkeypatch.setattr(_signals, "time_limit", limit)
    clock = _signals.Clock(100, SimpleNamespace(step=steps.append))

    def lasts(seconds):
        now[0] += seconds
        return seconds

    assert clock.attempt("first", lambda: lasts(20.0)) == 20
    assert np.isnan(clock.attempt("four", lambda: lasts(1.0), cost=4))
    assert clock.attempt("half", lambda: lasts(1.0), 2, "late", share=0.5) == "late"
    assert clock.attempt("less", lambda: lasts(2.0), 1.9, share=0.5) == 2
    assert clock.attempt("more", lambda: lasts(1.0), 3.8) == 1  # in units of the first
    assert limits == [100, 40, 78] and clock.not_tried == ["four", "half"]
    assert steps == ["first", "four", "half", "less", "more"]


def test_a_sample_has_rows_and_errors_of_its_bags(monkeypatch):
    rng = np.random.default_rng(0)
    X = sp.random_array((600, 10), density=0.1, rng=rng).tocsr()
    bags, P = np.arange(600) % 30, np.linspace([0.8, 0.2], [0.1, 0.9], 30)
    stated = _signals.MOST, _signals.LEAST, _signals.MOST_NUMBERS
    assert stated == (10_000, 30, 7_000_000)  # in the notes of `recommend`
    monkeypatch.setattr(_signals, "MOST", 200)
    monkeypatch.setattr(_signals, "LEAST", 5)
    for most, seen in ((X.nnz, 200), (50, None)):
        monkeypatch.setattr(_signals, "MOST_NUMBERS", most)
        random, errors = np.random.RandomState(0), np.arange(30.0)
        sample = _signals.draw_sample(X, bags, P, MaxAbsScaler(), random, errors)
        rows = _signals.whole_bags(bags, P, np.random.RandomState(0))
        assert_array_equal(sample.errors[sample.bags], bags[rows])
        assert_array_equal(sample.proportions[sample.bags], P[bags[rows]])
        assert len(rows) == 200
        wanted = seen or 200 * most / sample.X.nnz
        assert sample.part.sum() == pytest.approx(wanted, abs=1)


@pytest.mark.parametrize("seconds", [0, -1, "60", None, np.nan])
def test_a_limit_that_is_none(seconds):
    X, _, bags, P = line_problem()
    with pytest.raises(ValueError, match="max_seconds must be a number above 0"):
        recommend(X, bags, P, max_seconds=seconds)


# --- advice ----------------------------------------------------------------------------------------------------------

SMALL = "the fit gives only 4 instances to another class than well, too few to check"
LABELED = choosing.count_right(np.array([0, 1, 1, 1]), np.array([0, 1, 1, 0]), 0)


@pytest.mark.parametrize(
    ("change", "words", "missing"),
    [
        (
            {},
            "Fit CountBoosting.|Seen: 1000 instances, 10 features, 20 bags worth 5 labels; 70% in the largest of 2 "
            "classes.|A line and EM agree on 90%. Gain in nats: held-out parts 3.0 with a line, 20.0 with trees; whole "
            "bags 1.0.|yes 1. Does the fit|yes 2. Do two methods|yes 3. Do held-out|Parameters: LLPGridSearchCV|Record"
            ": given 41 times to tasks that the rule was not made on, 29 times to bags of one data set; the fit was "
            "then worse than the largest class 0 times.",
            "Check|would help|Known|if the shares",
        ),
        ({"trees": np.nan, "line": 11.0}, "Fit CountLogistic.|parts 11.0 with a line; whole", "trees"),
        (
            {"trees": 9.99},
            "Weak: fit CountBoosting, and|9.9 with trees|no 3. Do held-out|label 100 instances that the fit gives to "
            "another class than well,|at least 59 are right|given 62 times|, 30 times|class 3 times",
            "Parameters|would help",
        ),
        ({"trees": 9.0, "other": 0.034}, "label 34 instances|at least 23 are right", "too few"),
        (
            {"trees": 9.0, "n_classes": 3},
            "largest of 3 classes|label 100|right exceed those of class well by 18",
            "at least",
        ),
        ({"trees": 9.0, "other": 0.004}, SMALL, "use it if"),
        ({"n_bags": 3}, "Record: none, since no task of the study has fewer than 4 bags", "given"),
        (
            {"agreement": np.nan, "line": np.nan, "whole": np.nan},
            "Do not fit: predict the largest class, well.|What would help|parts not known with a line, 20.0 with "
            "trees; whole bags not known.|no 2. Do two|no Are the bags|given 37 times|, 33 times|class 9 times",
            "A line and EM agree|Parameters|Check",
        ),
        ({"other": np.nan}, "Nothing was fitted: the time was too short", "Gain in nats"),
        (
            {"labeled": LABELED},
            "Known labels: the fit has 3 of 4 right, the largest class 2. They are too few to decide.",
            "Record",
        ),
        ({"not_tried": ["EMLR", "this"]}, "Not tried within max_seconds=7: EMLR, this. What is", "Record"),
        ({"refusal": "of this."}, "No method can be fitted to these bags: of this.", "Gain in nats"),
    ],
)  # fmt: skip
def test_what_the_advice_says(change, words, missing):
    own = {n: change.get(n) for n in ("labeled", "refusal", "not_tried")}
    signals = SEEN._replace(**{n: v for n, v in change.items() if n not in own})
    verdict, path = choosing.decide(signals)
    model = METHODS["majority" if verdict == "do not fit" else signals.likelier]
    asked = pd.DataFrame(path, columns=["ask", "answer"])
    own |= {"reasons": asked, "majority": "well", "max_seconds": 7.0}
    text = str(choosing.Advice(verdict, model, signals, **own))
    assert len(text.splitlines()) <= 14
    flat = " ".join(text.split())
    assert [w for w in words.split("|") if w not in flat] == []
    assert [w for w in missing.split("|") if w in flat] == []


def test_what_can_be_learned_is_recommended(line):
    X, y, bags, P, advice = line
    model = advice.fit(X, bags, P)
    assert advice.verdict == "fit" and np.mean(model.predict(X) == y) > 0.85
    assert model[-1].get_params() == advice.method.get_params()
    assert type(model[-1]) is type(advice.method)
    seen, table = advice.signals, advice.alternatives.set_index("estimator")["gain"]
    assert table[METHODS["line"]] == seen.line and table[METHODS["trees"]] == seen.trees
    assert table.is_monotonic_decreasing
    assert advice.max_seconds == 60
    assert recommend(X, bags, P, random_state=1).signals.line != seen.line
    assert not any(hasattr(m, "classes_") for m in METHODS.values())


@pytest.mark.parametrize("seed", range(3))
def test_noise_is_never_to_be_used_unchecked(seed):
    X, _, bags, P = noise_problem(seed)
    advice = recommend(X, bags, P)
    assert advice.verdict != "fit"
    lines = str(advice).splitlines()
    assert len(lines) <= 14 and max(map(len, lines)) <= _advice.WIDTH
    constant = recommend(np.ones((300, 2)), bags, P)
    assert constant.verdict == "do not fit" and constant.signals.other == 0


def test_the_largest_class_is_that_of_the_instances():
    """One large bag outweighs four small ones."""
    bags, P = np.repeat(np.arange(5), [90, 5, 5, 5, 5]), [0.9, 0, 0.2, 0, 0.2]
    X = np.random.default_rng(0).normal(size=(110, 1)) + 2 * (bags == 0)[:, None]
    advice = recommend(X, bags, pd.DataFrame({"rare": 1 - np.array(P), "most": P}))
    assert advice.majority == "most"
    assert advice.signals.largest == pytest.approx((81 + 2) / 110)
    assert 0 < advice.signals.other < 0.5


def test_bags_of_one_are_labels():
    X, y, *_ = line_problem(120, 2)
    advice = recommend(X, np.arange(120), y.astype(float))
    assert advice.verdict == "fit" and advice.signals.worth == pytest.approx(120)


def test_frames_names_gaps_and_several_classes():
    X, _, bags, P = line_problem(300, 15, n_classes=3)
    plain = recommend(X, bags, P)
    assert plain.verdict == "fit" and plain.signals.n_classes == 3
    gaps = recommend(X, 2 * bags, np.repeat(P, 2, axis=0))
    assert gaps.signals == plain.signals and gaps.signals.n_bags == 15
    names = np.array([f"county {k:02}" for k in range(15)])
    shares = pd.DataFrame(P, names, ["a", "b", "c"])
    frame = pd.DataFrame(X, columns=["age", "wage", "size"])
    named = recommend(frame, names[bags], shares)
    assert named.signals == plain.signals
    assert named.majority == "abc"[plain.majority]


def test_progress_is_printed_when_asked_for(capsys):
    X, _, bags, P = line_problem()
    for verbose in (2, 0):
        recommend(X, bags, P, verbose=verbose)
        assert (capsys.readouterr().out.count("recommend: ") >= 5) == (verbose == 2)


def test_the_picture_shows_each_question_and_the_way(line):
    texts = {t.get_text(): t.get_weight() for t in line[-1].plot().texts}
    assert {RULE.ask, RULE.yes.ask, RULE.yes.no.ask, "do not fit"} <= set(texts)
    assert texts[RULE.ask] == texts["fit"] == "bold"
    assert texts[RULE.yes.no.ask] == texts["do not fit"] == "normal"
    ax = choosing.plot_decision([True, False, True])
    bold = [t.get_text() for t in ax.texts if t.get_weight() == "bold"]
    assert bold == [RULE.ask, RULE.yes.ask, RULE.yes.no.ask, "weak"]
    thick = [line.get_ydata()[0] for line in ax.lines if line.get_linewidth() == 2]
    assert thick == [0, -1, -1]
    assert {t.get_weight() for t in choosing.plot_decision().texts} == {"normal"}


def test_yes_leads_down_and_no_to_the_right_also_to_the_same_verdict():
    ax = choosing.plot_decision()
    at = {}
    for text in ax.texts:
        at.setdefault(text.get_text(), set()).add(text.get_position())
    (first,), (second,), (third,) = (at[q.ask] for q in (RULE, RULE.yes, RULE.yes.yes))
    (side,), (weak,), (fit,) = at[RULE.yes.no.ask], at["weak"], at["fit"]
    assert first[0] == second[0] == third[0] == fit[0] < side[0] == weak[0]
    assert first[1] > second[1] == side[1] > third[1] == weak[1] > fit[1]


def test_errors_of_shares_reach_the_fits_and_the_advice():
    """Shares of other people: with the errors of a poll, the pipeline that is advised knows them."""
    rng = np.random.default_rng(0)
    bags, X = np.repeat(np.arange(40), 30), rng.normal(size=(1200, 2))
    X[:, 0] += np.repeat(rng.normal(size=40), 30)
    p = label_proportions(X[:, 0] + rng.normal(size=1200) > 0, bags)[:, 1]
    official = np.clip(p + rng.normal(scale=0.08, size=40), 0.02, 0.98)
    errors = polling_errors(bags, official)
    plain = recommend(X, bags, official)
    told = recommend(X, bags, official, proportion_errors=errors)
    assert told.verdict == "fit"
    assert_allclose(told.estimator[-1].proportion_errors, errors)
    assert plain.estimator[-1].proportion_errors is None
    assert plain.signals.line != told.signals.line
    assert told._repr_html_().startswith("<pre>Fit ")
    said = [" ".join(str(advice).split()) for advice in (plain, told)]
    assert ["labels if the shares were exact;" in text for text in said] == [False, True]  # fmt: skip
    # A bag without instances, numbered first, changes nothing.
    more = {"proportion_errors": np.append(0.3, errors)}
    shifted = recommend(X, bags + 1, np.append(0.5, official), **more)
    assert shifted.signals.line == pytest.approx(told.signals.line)
    with pytest.raises(ValueError, match="proportion_errors must be"):
        recommend(X, bags, official, proportion_errors=-errors)
