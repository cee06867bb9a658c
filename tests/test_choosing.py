"""Advice: signals by their definitions, the decision by hand, and what is done for odd bags."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from scipy.stats import binom
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from llpbook import (
    CountBoosting,
    CountLogistic,
    MajorityClass,
    SplitBagKFold,
    choosing,
    label_proportions,
    load_bags,
    recommend,
)
from llpbook.base import LLPClassifier, LLPWarning
from llpbook.choosing import RULE, Question, Signals, decide
from llpbook.diagnosis import _report
from studies import choosing as study


def line_problem(n=1200, n_bags=60, noise=0.5, seed=0, n_classes=2):
    """Classes that lines tell apart, in bags whose shares differ: X, y, bags, shares."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    X = rng.normal(size=(n, 3)) * noise
    X[np.arange(n), y % 3] += 1.5
    tilt = rng.normal(size=(n_bags, n_classes))[:, y] + rng.gumbel(size=(n_bags, n))
    bags = tilt.argmax(axis=0)
    return X, y, bags, label_proportions(y, bags, n_bags)


def ring_problem(n=2000, n_bags=40, seed=0):
    """Classes that no line tells apart, in bags whose shares differ."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = (np.hypot(*X.T) > 1.1).astype(int)
    bags = np.argsort(np.argsort(y + 0.7 * rng.normal(size=n))) // (n // n_bags)
    return X, y, bags, label_proportions(y, bags)


def noise_problem(n=600, n_bags=12, d=30, seed=0):
    """Features that say nothing, three of four in class 0."""
    rng = np.random.default_rng(seed)
    y, bags = (rng.random(n) < 0.25).astype(int), rng.integers(0, n_bags, n)
    return rng.normal(size=(n, d)), y, bags, label_proportions(y, bags)


# --- signals ---------------------------------------------------------------------------------------------------------


@pytest.mark.equation("eq-choosing-agreement")
def test_agreement_bounds_the_error_of_the_worse_of_two():
    rng = np.random.default_rng(0)
    for k in (2, 3, 5):
        y, first, second = rng.integers(0, k, (3, 400))
        second = np.where(rng.random(400) < 0.7, first, second)
        a = choosing.agreement(first, second)
        assert a == sum(i == j for i, j in zip(first, second, strict=True)) / 400
        errors = np.mean(first != y), np.mean(second != y)
        assert max(errors) >= (1 - a) / 2 - 1e-12


@pytest.mark.equation("eq-choosing-gain")
def test_gain_by_the_binomial_distribution():
    # Features that say which of two groups an instance is in: within a group all probabilities are equal.
    rng = np.random.default_rng(1)
    group = np.arange(400) % 2
    bags = np.repeat(np.arange(20), 20)[np.argsort(group, kind="stable")]
    group = np.sort(group)
    y = (rng.random(400) < np.where(group == 1, 0.8, 0.2)).astype(int)
    bags = np.where(group == 1, bags % 10, 10 + bags % 10)  # pure in their group
    shares = label_proportions(y, bags)
    splits = list(SplitBagKFold(2, random_state=0).split(group, groups=bags))
    X = np.where(group == 1, 1.0, -1.0)[:, None]
    found = choosing.held_out_gain(CountLogistic(C=1e4), X, bags, shares, splits)
    sizes = np.bincount(bags)
    counts, slow = np.round(sizes * shares[:, 1]), 0.0
    p = np.empty(400)
    prior = np.empty(400)
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


def test_whole_bags_are_whole():
    bags = np.random.default_rng(0).integers(0, 50, 1000)
    rng = np.random.RandomState(0)
    rows = choosing.whole_bags(bags, 200, 1, rng)
    drawn = np.unique(bags[rows])
    assert_array_equal(rows, np.flatnonzero(np.isin(bags, drawn)))
    assert 200 <= len(rows) < 200 + np.bincount(bags).max()
    assert len(np.unique(bags[choosing.whole_bags(bags, 1, 30, rng)])) == 30
    assert len(choosing.whole_bags(bags, 10**6, 1, rng)) == 1000


# --- the decision ----------------------------------------------------------------------------------------------------

SEEN = Signals(1000, 10, 20, 2, 0.7, 5.0, 0.9, 0.2, 3.0, 20.0, 1.0)


@pytest.mark.parametrize(
    ("change", "verdict", "method"),
    [
        ({}, "fit", "trees"),
        ({"trees": 2.0, "line": 10.0}, "fit", "line"),
        ({"trees": 9.9}, "weak", "trees"),
        ({"trees": np.nan, "line": 11.0}, "fit", "line"),
        ({"whole": 0.0}, "weak", "trees"),
        ({"whole": np.nan}, "weak", "trees"),
        ({"agreement": 0.81}, "do not fit", "majority"),
        ({"agreement": 0.81, "worth": 10.0}, "weak", "trees"),
        ({"agreement": 0.81, "largest": 0.4}, "fit", "trees"),
        ({"largest": 0.8, "agreement": 0.98}, "fit", "trees"),
        ({"largest": 0.81, "agreement": 0.98}, "weak", "trees"),
        ({"largest": 0.95, "agreement": 0.96}, "do not fit", "majority"),
        ({"agreement": np.nan, "line": np.nan}, "do not fit", "majority"),
        ({"other": np.nan, "agreement": np.nan}, "do not fit", "majority"),
    ],
)
def test_decision_by_hand(change, verdict, method):
    signals = SEEN._replace(**change)
    found, path = decide(signals)
    assert found == verdict and len(path) == 3
    assert choosing.choose_method(found, signals) == method


def test_a_fit_that_never_differs_from_the_largest_class_is_no_fit():
    verdict, path = decide(SEEN._replace(other=0.0))
    assert verdict == "do not fit" and len(path) == 1
    X = np.ones((200, 2))
    advice = recommend(X, np.repeat(np.arange(10), 20), np.linspace(0.1, 0.5, 10))
    assert advice.verdict == "do not fit" and advice.signals.other == 0


def test_the_rule_is_that_of_the_study():
    rows = study.signal_table()
    assert (choosing.SLACK, choosing.ENOUGH) == (study.SLACK, study.ENOUGH)
    for _, row in rows.iterrows():
        signals = Signals(
            row["n"], row["d"], row["bags"], row["classes"], row["largest"],
            row["worth"], row["agreement"], np.nan, row["line"], row["trees"],
            row["whole"],
        )  # fmt: skip
        verdict, _ = decide(signals)
        assert verdict == study.verdict(row)
        named = {"line": "counts", "trees": "count trees", "majority": "majority"}
        assert named[choosing.choose_method(verdict, signals)] == study.advised(row)


def test_the_record_is_that_of_the_stored_rows():
    table = study.calibration("testing")
    assert table["n"].sum() == 2 * len(study.TASKS["testing"])  # two draws of each
    for verdict, counts in choosing.RECORD.items():
        assert tuple(table.loc[verdict, ["n", "most", "below"]]) == counts
    rows = study.signal_table().query("part == 'testing'")
    assert rows["largest"].max() <= choosing.COMMON
    assert rows["bags"].min() == choosing.FEWEST


def test_the_report_of_the_diagnosis_lists_methods_in_the_order_of_the_study():
    tables = [study.compare_rules(part)["regret"] for part in ("making", "testing")]
    names = {
        type(model).__name__: sum(table[f"always {name}"] for table in tables)
        for name, model in reversed(study.CANDIDATES.items())  # of one class, the first
    }
    del names["MajorityClass"]
    assert sorted(names, key=names.get) == list(_report.ORDER)


def test_each_verdict_is_a_leaf_of_the_rule():
    def leaves(node):
        if isinstance(node, Question):
            return leaves(node.yes) | leaves(node.no)
        return {node}

    assert leaves(RULE) == {"fit", "weak", "do not fit"} == set(choosing.RECORD)


# --- labels ----------------------------------------------------------------------------------------------------------


def test_labels_needed_are_those_of_a_binomial_test():
    for n in (0, 1, 5, 34, 100):
        tail = [binom.sf(k - 1, n, 0.5) for k in range(n + 2)]
        wanted = next(k for k, p in enumerate(tail) if p <= 0.05)
        assert choosing.needed(n) == wanted
    assert choosing.needed(choosing.CHECKED) == 59


@pytest.mark.parametrize(
    ("alone", "verdict"),
    [
        ((9, 2), "fit"),
        ((2, 9), "do not fit"),
        ((6, 4), "weak"),
        ((0, 0), "weak"),
        ((5, 0), "fit"),
        ((4, 0), "weak"),
        ((0, 5), "do not fit"),
        ((0, 4), "weak"),
    ],
)
def test_known_labels_overrule_where_they_are_enough(alone, verdict):
    table = pd.DataFrame({"alone": alone}, index=["fit", "majority"])
    assert choosing.judge("weak", table) == verdict


def test_right_labels_are_counted_by_hand():
    predicted, labels = np.array([0, 1, 1, 0, 2]), np.array([0, 1, 0, -1, 2])
    found = choosing.count_right(predicted, labels, largest=0)
    assert found.loc["fit"].tolist() == [3, 4, 2]
    assert found.loc["majority"].tolist() == [2, 4, 1]


def test_labels_that_were_chosen_by_class_warn():
    X, y, bags, P = line_problem(300, 15)
    drawn = np.where(np.random.default_rng(0).random(300) < 0.3, y, -1)
    with warnings.catch_warnings(action="error"):
        recommend(X, bags, P, drawn)
    with pytest.warns(LLPWarning, match="163 of 163 known labels are of class 1 where"):
        recommend(X, bags, P, np.where(y == 1, 1, -1))


def test_the_warning_of_chosen_labels_names_the_class_and_not_its_column():
    X, y, bags, P = line_problem(300, 15)
    named = pd.DataFrame(P, columns=["healthy", "ill"])
    labels = np.array([-1, "ill"], dtype=object)[y]
    with pytest.warns(LLPWarning, match="are of class 'ill' where the shares"):
        recommend(X, bags, named, labels)
    with pytest.warns(LLPWarning, match="are of class 9 where"):
        choosing.warn_if_chosen(
            np.zeros(30, int),
            np.zeros(30, int),
            np.array([[0.5, 0.5]]),
            np.array([7, 9]),
        )


def test_input_is_checked_once(monkeypatch):
    X, y, bags, P = line_problem(300, 15)
    seen, check = [], MajorityClass._check_X
    monkeypatch.setattr(
        MajorityClass,
        "_check_X",
        lambda self, X, reset: seen.append(reset) or check(self, X, reset),
    )
    labels = np.where(np.arange(300) % 5 == 0, y, -1)
    monkeypatch.setattr(choosing, "look", lambda *args: SEEN._replace(agreement=np.nan))
    recommend(X, bags, P, labels)
    assert seen == [True]


def test_no_known_label_is_no_labels():
    X, _, bags, P = line_problem(300, 15)
    advice = recommend(X, bags, P, np.full(300, -1))
    assert advice.labeled is None and str(advice) == str(recommend(X, bags, P))


def test_labels_judge_the_fit_that_is_named():
    """A ring: trees are recommended, and a line would be right less often."""
    X, y, bags, P = ring_problem()
    labels = np.where(np.arange(len(y)) % 10 == 0, y, -1)
    advice = recommend(X, bags, P, labels)
    assert isinstance(advice.estimator[-1], CountBoosting)
    fitted = advice.fit(X, bags, P)
    known = labels >= 0
    right = int(np.sum(fitted.predict(X[known]) == y[known]))
    assert abs(advice.labeled.loc["fit", "right"] - right) <= 3
    assert "They decide." in str(advice)


def test_signals_of_trees_are_those_of_trees():
    """`other` and the gain of whole bags belong to the likelier method, here by slow computation."""
    X, _, bags, P = ring_problem()
    found = choosing.measure(X, bags, P, random_state=0)
    assert found["trees"] > found["line"] + 10
    trees = clone(choosing.METHODS["trees"]).fit(X, bags, P)
    assert found["other"] == np.mean(trees.predict(X) != P.mean(axis=0).argmax())
    line = clone(choosing.METHODS["line"]).fit(X, bags, P)
    assert found["other"] != np.mean(line.predict(X) != P.mean(axis=0).argmax())
    rng = np.random.RandomState(0)
    choosing.whole_bags(bags, choosing.MOST, choosing.LEAST, rng)
    list(SplitBagKFold(3, random_state=rng).split(X, groups=bags))
    whole = choosing.whole_bag_gain(choosing.METHODS["trees"], X, bags, P, rng)
    assert found["whole"] == whole


def test_labels_judge_and_do_not_enter_the_fits(monkeypatch):
    X, y, bags, P = line_problem(300, 15)
    labels, seen, fit = np.where(np.arange(300) % 5 == 0, y, -1), [], LLPClassifier.fit

    def spy(self, X, bags, proportions, labels=None):
        seen.append(labels)
        return fit(self, X, bags, proportions, labels)

    monkeypatch.setattr(LLPClassifier, "fit", spy)
    advice = recommend(X, bags, P, labels)
    assert seen and all(given is None for given in seen)
    assert advice.verdict == "fit" and advice.labeled.loc["fit", "of"] == 60
    assert "Known labels: the fit has" in str(advice)
    assert len(str(advice).splitlines()) <= 12 and "Record" not in str(advice)


# --- advice ----------------------------------------------------------------------------------------------------------


def test_what_can_be_learned_is_recommended_and_its_code_runs():
    X, y, bags, P = line_problem()
    advice = recommend(X, bags, P)
    assert advice.verdict == "fit" and isinstance(advice.estimator, Pipeline)
    names = {"X": X, "bags": bags, "proportions": P}
    exec(advice.code, names)
    assert np.mean(names["model"].predict(X) == y) > 0.85
    assert type(names["model"][-1]) is type(advice.estimator[-1])
    assert names["model"][-1].get_params() == advice.estimator[-1].get_params()
    assert advice.alternatives["gain"].is_monotonic_decreasing


def test_noise_is_never_to_be_used_unchecked():
    for seed in range(5):
        X, _, bags, P = noise_problem(seed=seed)
        assert recommend(X, bags, P).verdict != "fit"


def test_few_bags_and_many_features_are_not_to_be_fitted():
    X, bags, P = load_bags("german", by="employment")
    advice = recommend(X, bags, P)
    assert advice.verdict == "do not fit" and advice.majority == "good"
    assert isinstance(advice.estimator, MajorityClass)
    names = {"X": X, "bags": bags, "proportions": P}
    exec(advice.code, names)
    assert (names["model"].predict(X) == "good").all()


def test_equal_shares_are_not_to_be_fitted():
    X, _, bags, P = noise_problem()
    advice = recommend(X, bags, np.full(len(P), 0.25))
    assert advice.verdict == "do not fit"
    assert "cannot tell the classes apart" in str(advice)
    assert advice.signals.worth == pytest.approx(0, abs=1e-9)


def test_a_class_that_the_bags_looked_at_lack_is_no_lack_of_worth(monkeypatch):
    X, y, bags, _ = line_problem(600, 60, n_classes=3)
    y[y == 2], bags = 1, bags.copy()
    y[0], bags[0] = 2, 60  # one instance of the third class, a bag of its own
    P = label_proportions(y, bags, 61)
    monkeypatch.setattr(choosing._signals, "MOST", 100)
    monkeypatch.setattr(choosing._signals, "LEAST", 1)
    advice = recommend(X, bags, P, random_state=1)
    assert np.isnan(advice.signals.agreement)
    assert advice.signals.worth > 100 and advice.verdict == "weak"


def test_bags_that_are_not_looked_at_do_not_move_the_others(monkeypatch):
    X, y, bags, _ = line_problem(900, 30, n_classes=3)
    monkeypatch.setattr(choosing._signals, "MOST", 300)
    monkeypatch.setattr(choosing._signals, "LEAST", 5)
    P = label_proportions(y, bags, 30)
    found = choosing.measure(X, bags, P, random_state=0)
    rng = np.random.RandomState(0)
    rows = choosing.whole_bags(bags, 300, 5, rng)
    drawn, codes = np.unique(bags[rows], return_inverse=True)
    splits = list(SplitBagKFold(3, random_state=rng).split(X[rows], groups=codes))
    slow = choosing.held_out_gain(
        choosing.METHODS["line"], X[rows], codes, P[drawn], splits
    )
    assert found["line"] == slow and 5 <= len(drawn) < 20
    whole = choosing.look(X, bags, P, 0, choosing.Progress("recommend", 0, 5))
    eta = label_proportions(y, np.zeros(900, int))[0]
    assert whole.largest == pytest.approx(eta.max())
    variances = [np.bincount(bags) @ (P[:, j] - eta[j]) ** 2 for j in range(3)]
    assert whole.worth == pytest.approx(min(variances / (eta * (1 - eta))))


def test_features_of_the_bag_alone_are_not_to_be_used_unchecked():
    rng = np.random.default_rng(0)
    bags = rng.integers(0, 15, 900)
    X = rng.normal(size=(15, 4))[bags] + 0.5 * rng.normal(size=(900, 4))
    y = (rng.random(900) < 0.35).astype(int)
    assert recommend(X, bags, label_proportions(y, bags)).verdict != "fit"


def test_labels_speak_also_where_the_signals_say_no():
    X, bags, P = load_bags("german", by="employment")
    data = load_bags("german", by="employment")
    y = data.true_labels_for_evaluation().astype(object)
    advice = recommend(X, bags, P, labels=y)
    assert advice.labeled.loc["fit", "of"] == 1000


def test_bags_of_one_are_labels():
    X, y, *_ = line_problem(120, 2)
    advice = recommend(X, np.arange(120), y.astype(float))
    assert advice.verdict == "fit" and advice.signals.worth == pytest.approx(120)


def test_frames_names_and_several_classes():
    X, y, bags, _ = line_problem(900, 30, n_classes=3)
    names = np.array([f"county {k}" for k in range(30)])
    shares = pd.DataFrame(label_proportions(y, bags, 30), names, ["a", "b", "c"])
    frame = pd.DataFrame(X, columns=["age", "wage", "size"])
    advice = recommend(frame, names[bags], shares)
    assert advice.verdict == "fit" and advice.signals.n_classes == 3
    assert advice.majority in ("a", "b", "c")


def test_sparse_matrices_have_no_trees():
    X, _, bags, P = line_problem(400, 20)
    advice = recommend(sp.csr_array(np.abs(X)), bags, P)
    assert np.isnan(advice.signals.trees)
    assert isinstance(advice.estimator[-1], CountLogistic)
    advice.estimator.fit(sp.csr_array(X), bags, countlogistic__proportions=P)


def test_it_is_the_same_again_and_however_bags_are_named():
    X, _, bags, P = line_problem(400, 20)
    first = recommend(X, bags, P)
    again = recommend(X, bags, P)
    assert first.signals == again.signals
    gaps = recommend(X, 2 * bags, np.repeat(P, 2, axis=0))
    assert gaps.signals.n_bags == 20
    assert gaps.verdict == first.verdict


@pytest.mark.parametrize("problem", [line_problem, noise_problem])
def test_at_most_twelve_lines(problem):
    X, _, bags, P = problem()
    text = str(recommend(X, bags, P))
    assert len(text.splitlines()) <= 12
    assert max(map(len, text.splitlines())) <= choosing.WIDTH


def test_bad_input_is_named():
    X, _, bags, P = line_problem(100, 5)
    with pytest.raises(ValueError, match="proportions"):
        recommend(X, bags, P + 1)
    with pytest.raises(ValueError, match="bags"):
        recommend(X, bags[:-1], P)
    with pytest.raises(ValueError, match="labels"):
        recommend(X, bags, P, labels=np.full(100, 7))


def test_progress_is_printed_when_asked_for(capsys):
    X, _, bags, P = line_problem(300, 15)
    recommend(X, bags, P, verbose=2)
    assert capsys.readouterr().out.count("of at most 6 steps") >= 5
    recommend(X, bags, P)
    assert not capsys.readouterr().out


def test_the_picture_shows_each_question_and_the_way():
    X, _, bags, P = line_problem(300, 15)
    advice = recommend(X, bags, P)
    texts = {t.get_text(): t.get_weight() for t in advice.plot().texts}
    assert {RULE.ask, RULE.yes.ask, RULE.yes.no.ask, "do not fit"} <= set(texts)
    assert texts[RULE.ask] == texts["fit"] == "bold"
    assert texts[RULE.yes.no.ask] == texts["do not fit"] == "normal"


def test_methods_are_not_fitted_in_place():
    X, _, bags, P = line_problem(300, 15)
    recommend(X, bags, P)
    assert not any(hasattr(m, "classes_") for m in choosing.METHODS.values())
