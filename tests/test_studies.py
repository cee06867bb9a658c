"""The runner (resumable, one row a cell and seed, no mixed protocols) and the protocol of yu2013 (no label leaks)."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.tree import DecisionTreeClassifier

from llpbook.base import LLPClassifier
from llpbook.mean_map import class_means
from llpbook.proportions import averaging_matrix, label_proportions, proportion_mae
from studies import load, run_table, summary, tables, yu2013
from studies.__main__ import main
from studies.runner import DamagedTableError, Table, done, outcome

CELLS = [{"dataset": d, "size": s} for d in ("a, b", "c") for s in (2, 4)]


def fake(cell, seed):
    """Values that can be summed by hand: size + seed² for one data set, ten times that for the other."""
    value = (cell["size"] + seed**2) * (10 if cell["dataset"] == "c" else 1)
    return {"accuracy": float(value), "note": "x=1, y=2"}


class Stops:
    """A run that is killed after some rows."""

    def __init__(self, after):
        self.after, self.calls = after, 0

    def __call__(self, cell, seed):
        if self.calls == self.after:
            raise KeyboardInterrupt
        self.calls += 1
        return fake(cell, seed)


def table(run=fake, **changes):
    return replace(Table("fake", "1", CELLS, run, "a fake"), **changes)


# --- the runner ------------------------------------------------------------------------------------------------------


def test_resumes_where_it_was_killed(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        run_table(table(Stops(5)), seeds=3, results=tmp_path)
    kept = (tmp_path / "fake.csv").read_text()
    assert len(kept.splitlines()) == 1 + 5
    counts = Counter()

    def counting(cell, seed):
        counts[cell["dataset"], cell["size"], seed] += 1
        return fake(cell, seed)

    assert run_table(table(counting), seeds=3, results=tmp_path) == 7
    assert sum(counts.values()) == 7 and max(counts.values()) == 1
    text = (tmp_path / "fake.csv").read_text()
    assert text.startswith(kept)
    check_whole(tmp_path, 3)
    assert run_table(table(Stops(0)), seeds=3, results=tmp_path) == 0
    assert (tmp_path / "fake.csv").read_text() == text


def test_another_protocol_is_refused_and_nothing_is_written(tmp_path):
    run_table(table(), seeds=1, results=tmp_path)
    before = (tmp_path / "fake.csv").read_bytes()
    new = table(protocol="2")
    words = "rows of protocol '1', the code is '2': move fake.csv"
    with pytest.raises(ValueError, match=words):
        run_table(new, seeds=2, results=tmp_path)
    with pytest.raises(ValueError, match="protocol"):
        load(new, tmp_path)
    assert (tmp_path / "fake.csv").read_bytes() == before


def test_other_columns_are_refused(tmp_path):
    run_table(table(), seeds=1, results=tmp_path)
    with pytest.raises(ValueError, match="not the parameters"):
        run_table(table(cells=[{"dataset": "c", "gamma": 2}]), results=tmp_path)
    with pytest.raises(ValueError, match="a new row"):
        run_table(table(lambda cell, seed: {"auc": 1.0}), seeds=2, results=tmp_path)
    assert len(load(table(), tmp_path)) == 4


def test_a_row_twice_is_one_and_two_answers_are_refused(tmp_path):
    run_table(table(), seeds=1, results=tmp_path)
    path = tmp_path / "fake.csv"
    text = path.read_text()
    last = text.splitlines()[-1]
    again = last.rsplit(",", 1)[0] + ",99.5\n"  # it took another time
    path.write_text(text + again)
    assert len(load("fake", tmp_path)) == len(done(table(), tmp_path)) == 4
    assert run_table(table(), seeds=1, results=tmp_path) == 0
    path.write_text(text + last.replace("40", "41") + "\n")
    with pytest.raises(DamagedTableError, match=r"fake\.csv line 6 .*other results"):
        load("fake", tmp_path)


def damage(number, change):
    """The line of this number changed, as bytes."""

    def apply(data):
        lines = data.split(b"\n")
        lines[number - 1] = change(lines[number - 1])
        return b"\n".join(lines)

    return number, apply


DAMAGE = {
    "a lost header": damage(1, lambda line: b"1,c,2,0,5.0,x,0.1"),
    "a blank line": damage(3, lambda line: b"\n" + line),
    "lost columns": damage(3, lambda line: b"1,c,4"),
    "bad UTF-8": damage(3, lambda line: b"\xff" + line[1:]),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_line_is_named_and_nothing_is_lost_or_doubled(tmp_path, name):
    run_table(table(), seeds=1, results=tmp_path)
    path = tmp_path / "fake.csv"
    number, change = DAMAGE[name]
    path.write_bytes(change(path.read_bytes()))
    before = path.read_bytes()
    for call in (
        lambda: load("fake", tmp_path),
        lambda: done(table(), tmp_path),
        lambda: run_table(table(), results=tmp_path),
    ):
        with pytest.raises(DamagedTableError, match=rf"fake\.csv line {number} is no "):
            call()
    assert path.read_bytes() == before


def check_whole(folder, seeds):
    frame = load("fake", folder)
    assert len(frame) == 4 * seeds
    assert not frame.duplicated(["dataset", "size", "seed"]).any()
    expected = [fake(r, r["seed"])["accuracy"] for r in frame.to_dict("records")]
    assert_array_equal(frame["accuracy"], expected)
    lines = (folder / "fake.csv").read_text().splitlines()
    assert len(lines) == 1 + 4 * seeds


def test_summary_by_hand(tmp_path):
    # size + 0, 1, 4: mean size + 5/3, variance (25 + 4 + 49) / 9 / 2 = 13/3
    run_table(table(), seeds=3, results=tmp_path)
    frame = summary(table(), results=tmp_path).set_index(["dataset", "size"])
    assert_allclose(frame.loc[("a, b", 4)], [4 + 5 / 3, np.sqrt(13 / 3), 3])
    assert_allclose(frame.loc[("c", 2)], [10 * (2 + 5 / 3), 10 * np.sqrt(13 / 3), 3])
    with pytest.raises(ValueError, match="value='auc'"):
        summary("fake", "auc", tmp_path)


def test_outcome_of_a_search_by_hand():
    X, y = np.array([[0.0], [1], [2], [3]]), np.array([0, 0, 1, 1])
    grid = {"max_depth": [1], "ccp_alpha": [0.25]}
    search = GridSearchCV(DecisionTreeClassifier(), grid, cv=2).fit(X, y)
    new = np.array([[-1.0], [4], [5]])
    row = outcome(search, X, y, new, np.array([1, 1, 0]), ece=1 / 3)
    assert list(row.values()) == [0.333333, 1.0, 0.333333, "ccp_alpha=0.25 max_depth=1"]
    search.best_params_ = {"estimator": HistGradientBoostingClassifier(max_iter=7)}
    assert outcome(search, X, y, X, y)["chosen"] == "estimator=7"


# --- the command line ------------------------------------------------------------------------------------------------


def test_command_line(tmp_path, capsys):
    argv = ["yu2013_meanmap", "--seeds", "2", "--results", str(tmp_path)]
    argv += ["--only", "dataset=heart", "method=MajorityClass,MeanMap", "bag_size=32"]
    assert main(argv) == 0
    assert "4 new rows" in capsys.readouterr().out
    frame = load("yu2013_meanmap", tmp_path)
    assert len(frame) == 4 and set(frame["bag_size"]) == {32}
    assert main(argv) == 0
    assert "0 new rows" in capsys.readouterr().out
    assert str(tmp_path) not in (tmp_path / "yu2013_meanmap.meta.json").read_text()
    assert main(["--list", "--results", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in tables()) and "4 rows" in out


# --- yu2013 ----------------------------------------------------------------------------------------------------------


class Spy(LLPClassifier):
    """Predicts the sign of the second feature; remembers everything that reached fit and predict."""

    calls: list = []
    _parameter_constraints = {}

    def __init__(self, shift=0.0):
        self.shift = shift

    def fit(self, *args, **kwargs):
        Spy.calls.append(("fit", args, kwargs))
        return super().fit(*args, **kwargs)

    def _fit(self, data):
        """Nothing: fit has seen all."""

    def decision_function(self, X):
        Spy.calls.append(("predict", (X,), {}))
        return self._validate_predict(X)[:, 1] + self.shift


def labeled_bags(n=60, bag_size=4):
    """The first feature is the number of the instance, so that a spy can say which ones it saw."""
    rng = np.random.default_rng(0)
    y = rng.permutation(np.arange(n) % 3 == 0).astype(int)
    X = np.column_stack([np.arange(n), 2.0 * y - 1])
    return X, y, rng.permutation(np.arange(n) // bag_size)


def test_labels_reach_neither_fit_nor_tuning():
    X, y, bags = labeled_bags()
    Spy.calls = []
    method = yu2013.Method(Spy(), {"shift": [-9.0, 0.0]})
    found = yu2013.cross_validate(method, X, y, bags)
    fits = [(args, kwargs) for kind, args, kwargs in Spy.calls if kind == "fit"]
    assert len(fits) == 5 * (2 * 5 + 1)
    for args, kwargs in fits:
        assert len(args) == 3 and not kwargs
        rows, codes, shares = args[0][:, 0].astype(int), args[1], args[2]
        assert_array_equal(args[0], X[rows])
        assert shares.shape[0] < len(rows)  # one row a bag, not one an instance
        names = [np.unique(bags[rows[codes == code]]) for code in np.unique(codes)]
        # codes are bags, not labels in disguise
        assert all(len(name) == 1 for name in names)
        truth = label_proportions(y, bags)[np.concatenate(names)]
        assert_array_equal(shares[np.unique(codes)], truth)
    assert found["accuracy"] == 1.0 and found["chosen"] == "; ".join(["shift=0.0"] * 5)


def test_splits_are_by_whole_bags_and_each_instance_is_tested_once():
    X, y, bags = labeled_bags(n=62)
    Spy.calls = []
    yu2013.cross_validate(yu2013.Method(Spy()), X, y, bags)
    sizes, tested, previous = np.bincount(bags), [], None
    for kind, args, _ in Spy.calls:
        rows = args[0][:, 0].astype(int)
        seen = bags[rows]
        counts = np.bincount(seen, minlength=len(sizes))
        assert_array_equal(counts[counts > 0], sizes[counts > 0])
        if kind == "fit":
            previous = set(rows)
        else:
            assert not previous & set(rows)
            tested.append(rows)
    outer = tested[5::6]  # five inner folds, then the test part
    assert_array_equal(np.sort(np.concatenate(outer)), np.arange(62))


def test_folds_of_instances_give_each_training_part_its_own_proportions():
    X, y, bags = labeled_bags(n=60, bag_size=12)
    Spy.calls = []
    yu2013.cross_validate(yu2013.Method(Spy()), X, y, bags, split_bags=0)
    calls = {
        kind: [a for k, a, _ in Spy.calls if k == kind] for kind in ("fit", "predict")
    }
    tested = np.concatenate([Z[:, 0] for (Z,) in calls["predict"][5::6]])
    assert_array_equal(np.sort(tested), np.arange(60))
    split = 0
    for rows, codes, shares in calls["fit"]:
        seen = rows[:, 0].astype(int)
        split += set(seen) != set(np.flatnonzero(np.isin(bags, bags[seen])))
        for code in np.unique(codes):
            assert_allclose(shares[code, 1], y[seen[codes == code]].mean())
    assert split == 5 * (5 + 1)


def test_the_supervised_limit_sees_only_labels_of_the_training_part():
    seen = []

    class Recorder(LogisticRegression):
        def fit(self, X, y):
            seen.append((X[:, 0].astype(int), y))
            return super().fit(X, y)

    X, y, bags = labeled_bags()
    method = yu2013.Method(Recorder(), {"C": [1.0]}, supervised=True)
    yu2013.cross_validate(method, X, y, bags)
    for rows, labels in seen:
        assert_array_equal(labels, y[rows])
    assert max(len(rows) for rows, _ in seen) == 48


def test_a_fold_that_cannot_be_fitted_is_answered_by_the_majority_and_counted():
    X, y, bags = labeled_bags(n=60, bag_size=3)
    # 1/3 in each bag
    bags[np.argsort(y, kind="stable")] = [*np.repeat(np.arange(20), 2), *range(20)]
    found = yu2013.cross_validate(yu2013.METHODS["MeanMap"], X, y, bags)
    assert found["n_failed"] == 5
    assert found["accuracy"] == pytest.approx(2 / 3, abs=1e-6)


def test_scaling():
    X = np.array([[0.0, 5.0], [2.0, np.nan], [4.0, 9.0]])
    assert_allclose(yu2013.scale(X, "[-1, 1]"), [[-1, -1], [0, 0], [1, 1]])
    assert_allclose(yu2013.scale(X, "[0, 1]"), [[0, 0], [0.5, 0.5], [1, 1]])
    assert_allclose(yu2013.scale(X, "standard")[:, 0].std(), 1)


def test_the_inverse_covariance_penalty_is_minimized():
    # per instance: log 2 cosh f - <mu, w> + lam/2 (w' C^-1 w + the weight of the constant, squared)
    X, y, bags = yu2013.make_problem("heart", 4, 0)
    shares, lam = label_proportions(y, bags), 3.0
    ours = yu2013.PerInstance(lam, inverse_covariance=True).fit(X, bags, shares)
    Z = np.column_stack([X - X.mean(axis=0), np.ones(len(X))])
    penalty = np.zeros((14, 14))
    penalty[:13, :13], penalty[13, 13] = np.linalg.inv(np.cov(X.T)), 1.0
    weights = np.bincount(bags).astype(float)
    means = class_means(averaging_matrix(bags) @ Z, shares, weights)
    mu = y.mean() * means[1] - (1 - y.mean()) * means[0]
    w = np.append(ours.basis_ @ ours.model_.coef_[0], ours.model_.intercept_) / 2
    gradient = Z.T @ np.tanh(Z @ w) / len(Z) - mu + lam * penalty @ w
    assert_allclose(gradient, 0, atol=1e-5)
    scores = Z @ w
    assert_array_equal(ours.predict(X), (scores > 0).astype(int))


def test_counts_alone_keeps_the_classifiers_whose_counts_fit_best():
    X, y, bags = yu2013.make_problem("heart", 8, 0)
    shares, sizes = label_proportions(y, bags), np.bincount(bags)
    vote = yu2013.CountsAlone(n_drawn=300, n_voting=10).fit(X, bags, shares)
    every = yu2013.CountsAlone(n_drawn=300, n_voting=300).fit(X, bags, shares)

    def errors(model):
        called = (X - X.mean(axis=0)) @ model.coef_ > model.cuts_
        assert_allclose(called.mean(axis=0), y.mean(), atol=2 / len(X))
        counts = [label_proportions(z, bags, classes=[0, 1]) for z in called.T]
        return np.array([proportion_mae(shares, c, bag_sizes=sizes) for c in counts])

    assert_allclose(errors(vote), np.sort(errors(every))[:10])
    assert np.mean(vote.predict(X) == y) > np.mean(every.predict(X) == y)
