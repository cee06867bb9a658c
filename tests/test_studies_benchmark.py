"""The benchmark: paired problems, no label where none belongs, failures as rows, summaries and the table by hand."""

import re
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import ParameterGrid

from llpbook import all_estimators
from llpbook.datasets import load as load_data
from llpbook.proportions import label_proportions
from studies import benchmark as study
from studies import benchmark_tables as shown
from studies import load, outside, run_table
from studies.runner import select

TABLE = study.TABLES[0]
ROOT = Path(__file__).parents[1]
HEART = {"dataset": "heart", "kind": "simple", "bag_size": 10}


@pytest.fixture
def numbered(monkeypatch):
    """Problems whose last feature is the number of the instance; it is standardized, and still tells each one."""
    own = study.table_of

    def table_of(name, natural):
        X, y, groups = own(name, natural)
        return np.column_stack([X, np.arange(len(X))]), y, groups

    monkeypatch.setattr(study, "table_of", table_of)
    study.make_problem.cache_clear()
    yield
    study.make_problem.cache_clear()


# --- the protocol ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["german", "satimage"])
def test_all_kinds_and_sizes_meet_the_same_two_halves(numbered, name):
    tasks = {(c["kind"], c["bag_size"]) for c in TABLE.cells if c["dataset"] == name}
    first = study.make_problem(name, study.ANY, study.ANY, 3)
    n = min(study.N_BAGGED, study.DATASETS[name][0] // 2)
    assert len(first[0]) == n and len(first[1]) <= study.N_NEW
    assert_allclose(first[0].mean(axis=0), 0, atol=1e-9)
    assert not np.intersect1d(first[0][:, -1], first[1][:, -1]).size
    for kind, size in tasks:
        found = study.make_problem(name, kind, size, 3)
        for one, two in zip(first[:2], found[:2], strict=True):
            assert_array_equal(one[:, -1], two[:, -1])
        for one, two in zip(first[2:4], found[2:4], strict=True):
            assert_array_equal(one, two)
        assert len(found[4]) == n
    other = study.make_problem(name, study.ANY, study.ANY, 4)
    assert not np.array_equal(first[0][:, -1], other[0][:, -1])


def test_every_task_has_four_bags_and_the_sizes_that_the_study_states():
    for name, (n, k) in study.DATASETS.items():
        X, y = load_data(name, classes=study.PARTS.get(name))
        assert (len(X), y.nunique()) == (n, k)
        for natural in [False, True][: 1 + (name in study.GROUPINGS)]:
            kind = study.NATURAL if natural else "naive"
            cells = select(TABLE.cells, {"dataset": [name], "kind": [kind]})
            for size in {cell["bag_size"] for cell in cells}:
                *_, bags = study.make_problem(name, kind, size, 0)
                assert bags.max() + 1 >= study.LEAST_BAGS
    assert len(study.DATASETS) >= 10
    assert sum(k > 2 for _, k in study.DATASETS.values()) >= 3


def test_every_estimator_has_a_grid_of_the_same_size():
    both = {**study.METHODS, **study.LIMITS}
    known = {type(estimator).__name__ for estimator, _ in both.values()}
    # CountCalibration is around another method; `studies.calibration` has its table.
    methods = {name for name, _ in all_estimators()} - {"CountCalibration"}
    missing = methods - known
    assert not missing, f"add a grid to METHODS of book/studies/benchmark.py: {missing}"
    for method, (_, grid) in both.items():
        estimator, same = study.build(method, 5)
        assert same is grid and len(ParameterGrid(grid)) in ({5, 6} if grid else {1})
        assert estimator.get_params().get("random_state", 5) == 5
        estimator.set_params(**ParameterGrid(grid)[0])


def test_a_row_by_hand():
    row = study.run({**HEART, "method": "CountLogistic"}, 2)
    X, X_new, y, y_new, bags = study.make_problem("heart", "simple", 10, 2)
    shares = label_proportions(y, bags, classes=[0, 1])
    estimator, grid = study.build("CountLogistic", 2)
    chosen = outside.choices(estimator, grid, X, bags, shares, 2)
    settings = {how: setting for how, (setting, _) in chosen.items()}
    for how, setting in {**settings, "untuned": {"C": 0.1}}.items():
        model = estimator.set_params(**setting).fit(X, bags, shares)
        p = model.predict_proba(X_new)[:, 1]
        loss = -np.mean(np.log(np.where(y_new == 1, p, 1 - p)))
        bins = np.minimum((10 * p).astype(int), 9)
        ece = sum(abs((y_new - p)[bins == k].sum()) for k in range(10)) / len(p)
        wanted = [np.mean((p > 0.5) == y_new), roc_auc_score(y_new, p), loss, ece]
        found = [row[f"{value}_{how}"] for value in study.VALUES]
        assert_allclose(found, wanted, atol=1e-5)
    assert row["n_bags"] == 13 and row["failed"] == "" and row["cpu_search"] > 0
    again = study.run({**HEART, "method": "CountLogistic"}, 2)
    free = {"cpu_fit": 0, "cpu_search": 0}
    assert {**again, **free} == {**row, **free}


def test_areas_of_several_classes_are_a_mean_over_them():
    y = np.array([0, 0, 1, 2, 2])
    S = np.array([[3, 1, 2], [1, 2, 0], [2, 3, 1], [0, 1, 4], [2, 0, 1]])
    pairs = [list(product(S[y == k, k], S[y != k, k])) for k in range(3)]
    pairs = [np.mean([(a > b) + (a == b) / 2 for a, b in part]) for part in pairs]
    assert study.area(S, y) == pytest.approx(np.mean(pairs))
    assert study.area(S[:, 2], (y == 2).astype(int)) == pytest.approx(pairs[2])


def test_a_refusal_is_a_row_and_nothing_else_is_caught(monkeypatch):
    cell = {"dataset": "segment", "kind": "naive", "bag_size": 250, "method": "MeanMap"}
    row = study.run(cell, 0)
    assert row["failed"] == "NotIdentifiableError" and row["n_bags"] == 4
    for how in study.CHOICES:
        assert all(np.isnan(row[f"{value}_{how}"]) for value in study.VALUES)
    fine = study.run({**HEART, "method": "MeanMap"}, 0)
    assert list(fine) == list(row)

    def refuse(self, data):
        raise ValueError("another reason")

    monkeypatch.setattr(type(study.METHODS["MeanMap"][0]), "_fit", refuse)
    with pytest.raises(ValueError, match="another reason"):
        study.run({**HEART, "method": "MeanMap"}, 0)


# --- the tables ------------------------------------------------------------------------------------------------------


def score(cell, seed):
    """A made-up accuracy: it depends on all parts of a row."""
    parts = "".join(map(str, cell.values())) + str(seed)
    return 0.5 + (sum(map(ord, parts)) * 37 % 101) / 250


@pytest.fixture
def rows(tmp_path):
    """A folder of made-up rows: ridge misses a data set, and MeanMap fails at size 50 of german."""

    def fake(cell, seed):
        fails = cell["method"] == "MeanMap" and cell["bag_size"] == 50
        value = np.nan if fails and cell["dataset"] == "german" else score(cell, seed)
        names = product(study.VALUES, enumerate(study.CHOICES))
        found = {f"{name}_{how}": value + 0.001 * k for name, (k, how) in names}
        cost = {"MeanMap": 2.0, "CountBoosting": 8.0}.get(cell["method"], 1.0)
        found |= {"cpu_fit": cost, "cpu_search": cost, "n_bags": 9}
        failed = "NotIdentifiableError" if np.isnan(value) else ""
        words = {"warned": "", "chosen_shares": "", "chosen_likelihood": ""}
        return {**found, "failed": failed, **words}

    some = replace(TABLE, run=fake)
    sets = {"dataset": ["german", "sonar", "wine"]}
    methods = [*study.LIMITS, "MeanMap", "CountLogistic", "CountBoosting"]
    run_table(some, 2, only={**sets, "method": methods}, results=tmp_path)
    sets["dataset"].remove("wine")
    run_table(some, 1, only={**sets, "method": ["ridge"]}, results=tmp_path)
    return tmp_path


def by_hand(method, beside):
    """Mean gain and its error over data sets, by loops."""
    means = []
    for name in ("german", "sonar", "wine"):
        if method == "ridge" and name == "wine":
            continue
        gains = []
        for cell in TABLE.cells:
            if cell["dataset"] != name or cell["method"] != method:
                continue
            part = {k: study.NATURAL if cell["kind"] == study.NATURAL else study.ANY
                    for k in ("kind", "bag_size")}  # fmt: skip
            over = []
            for seed in range(1 if method == "ridge" else 2):

                def of(name, cell=cell, part=part, seed=seed):
                    given = part if name in study.LIMITS else {}
                    return score({**cell, **given, "method": name}, seed)

                own, other = of(method), of(beside)
                if (method, cell["bag_size"], name) == ("MeanMap", 50, "german"):
                    own = of("majority")
                over.append(own - other)
            gains.append(np.mean(over))
        means.append(np.mean(gains))
    return np.mean(means), np.std(means, ddof=1) / np.sqrt(len(means))


@pytest.mark.parametrize("method", ["ridge", "MeanMap", "CountBoosting"])
def test_the_summary_by_loops(rows, method):
    found = shown.summary_table("shares", rows).loc[method]
    for name, beside in (
        ("majority", "majority"),
        ("counts", "CountLogistic"),
        ("labels", f"labels ({'trees' if method == 'CountBoosting' else 'linear'})"),
    ):
        mean, error = by_hand(method, beside)
        sign, title = (-1, "below labels") if name == "labels" else (1, f"over {name}")
        assert found[title] == pytest.approx(sign * 100 * mean)
        assert found[f"± {name}"] == pytest.approx(100 * error)
    assert found["sets"] == (2 if method == "ridge" else 3)
    assert found["failed"] == (8 if method == "MeanMap" else 0)
    assert found["cpu"] == {"MeanMap": 4.0, "CountBoosting": 16.0}.get(method, 2.0)


def test_a_failure_is_scored_as_the_majority_in_every_value(rows):
    found = shown.results("untuned", rows)
    failed = found[found["failed"]]
    assert len(failed) == 8 and (failed["accuracy"] == failed["majority"]).all()
    assert found[study.VALUES].notna().all(axis=None)
    assert (failed["auc"] == failed["majority"]).all()  # the same made-up number
    with pytest.raises(ValueError, match="choice='best'"):
        shown.results("best", rows)


def test_the_table_of_the_site_holds_all_rows(rows):
    table, html = shown.site_rows(rows), shown.site_table(rows)
    stored = load("benchmark", rows)
    stored = stored[~stored["method"].isin([*study.LIMITS])]
    assert len(table) == len(stored.drop_duplicates([*shown.TASK, "method"]))
    lines = re.findall(r"^<tr><td>(.*)$", html, re.MULTILINE)
    assert [line.split("<td>") for line in lines] == table.astype(
        str
    ).to_numpy().tolist()
    assert html.count('<th scope="col">') == table.shape[1]
    one = table.set_index(["data set", "kind", "size", "method"])
    one = one.loc["sonar", "hard", "10", "CountLogistic"]
    cell = {"dataset": "sonar", "kind": "hard", "bag_size": 10}
    values = [score({**cell, "method": "CountLogistic"}, k) for k in (0, 1)]
    mean = 100 * np.mean(values)
    assert float(one["accuracy"]) == pytest.approx(mean + 0.1, abs=0.051)
    variance = 1e4 * np.var(values, ddof=1)  # both draws test on 104 of 208
    assert float(one["error"]) == pytest.approx((1.5 * variance) ** 0.5, abs=0.051)
    assert float(one["untuned"]) == pytest.approx(mean + 0.2, abs=0.051)


def test_the_first_setting_is_the_default():
    for method, (_, grid) in study.METHODS.items():
        own = study.build(method, 0)[0].get_params()
        assert all(own[name] == values[0] for name, values in grid.items()), method


@pytest.mark.parametrize(
    ("method", "low", "high"),
    [("BagLogistic", 0.25, 0.4), ("AlterSVM", 0.25, 0.45), ("ridge", 0.18, 0.3)],
)
def test_the_page_states_how_often_an_edge_is_chosen(method, low, high):
    rows = load("benchmark").query(f"method == '{method}' and failed == ''")
    [[_, values]] = study.METHODS[method][1].items()
    chosen = rows["chosen_likelihood"].str.partition("=")[2].astype(float)
    assert low < chosen.isin([min(values), max(values)]).mean() < high
