"""The study of all methods on the bags of others: choices without labels, results and tables by hand."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from problems import thinned
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid

from llpbook.model_selection import OutOfFold, SplitBagKFold, count_log_likelihood
from studies import bag_losses, complexllp, run_table
from studies import outside as study

(TABLE,) = study.TABLES
SMALL = complexllp.names()[7]
RESULTS = [f"{value}_{how}" for value in study.VALUES for how in study.CHOICES]


@pytest.fixture(autouse=True)
def few_instances(monkeypatch):
    """The bags of others with every fortieth instance."""
    monkeypatch.setattr(complexllp, "split", thinned(complexllp.split, 40))


# --- the protocol ----------------------------------------------------------------------------------------------------


def test_each_criterion_chooses_its_best_setting():
    X, _, _, _, bags, shares = complexllp.split(SMALL, 0)
    estimator, grid = study.build("CountLogistic", 0)
    found = study.choices(estimator, grid, X, bags, shares, 0)
    splits = list(SplitBagKFold(2, random_state=0).split(X, None, bags))
    scores = {name: [] for name in study.CRITERIA}
    for setting in ParameterGrid(grid):
        model = OutOfFold(clone(estimator).set_params(**setting), splits)
        s = model.fit(X, bags, proportions=shares).predict_proba(X)
        means = np.array([s[bags == k, 1].mean() for k in range(len(shares))])
        error = np.abs(means - shares[:, 1]) @ np.bincount(bags) / len(bags)
        scores["shares"].append(-error)
        scores["likelihood"].append(count_log_likelihood(s, bags, shares))
    for name, (setting, score) in found.items():
        assert setting == ParameterGrid(grid)[int(np.argmax(scores[name]))]
        assert score == pytest.approx(max(scores[name]), abs=1e-6)


def test_limits_see_no_bags():
    *_, y_new, _, _ = complexllp.split(SMALL, 2)
    row = study.run({"dataset": study.ANY, "method": "majority"}, 2)
    for how in study.CHOICES:
        assert row[f"accuracy_{how}"] == pytest.approx(1 - y_new.mean(), abs=1e-6)
        assert row[f"f1_{how}"] == 0
    limit = study.run({"dataset": study.ANY, "method": "labels"}, 2)
    assert list(limit) == list(row)
    assert limit["accuracy_shares"] == limit["accuracy_likelihood"]
    assert limit["accuracy_shares"] > row["accuracy_shares"]


# --- the tables ------------------------------------------------------------------------------------------------------


@pytest.fixture
def fake(tmp_path):
    """A folder of rows: MeanMap is ``gain`` above the majority, by set and split; ridge has run on one set only."""

    def make(gain, seeds=2):
        def run(cell, seed):
            own = 0.75 + 0.01 * seed
            own += 0.1 * (cell["method"] == "labels")
            if cell["dataset"] != study.ANY:
                own += gain(cell["dataset"])
            found = dict.fromkeys(RESULTS, own)
            found |= {"cpu_seconds": 1.0, "score_shares": 0.0, "score_likelihood": 0.0}
            return {**found, "chosen_shares": "", "chosen_likelihood": ""}

        some = replace(TABLE, run=run)
        for only in (
            {"dataset": [study.ANY]},
            {"method": ["MeanMap"]},
            {"method": ["ridge"], "dataset": [SMALL]},
        ):
            run_table(some, seeds=seeds, only=only, results=tmp_path)
        return tmp_path

    return make


def test_means_over_splits_then_over_sets(fake):
    places = {name: 0.001 * i for i, name in enumerate(complexllp.names())}
    folder = fake(places.get)
    found = study.by_set(results=folder).set_index(["dataset", "method", "choice"])
    one = found.loc[SMALL, "MeanMap", "shares"]
    assert one["ours"] == pytest.approx(0.755 + 0.007) and one["n"] == 2
    assert one["majority"] == pytest.approx(0.755)
    wide = study.by_variant(results=folder)
    for name in wide:
        own = [v for k, v in places.items() if complexllp.variant(k) == name]
        mean = wide.loc[("MeanMap", "untuned"), name]
        assert mean == pytest.approx(0.755 + np.mean(own))
    assert wide.drop("MeanMap", level=0).isna().all(axis=None)


def test_the_table_holds_theirs_and_ours(fake):
    folder = fake(lambda name: 0.02)
    found = study.table("f1", folder)
    theirs = bag_losses.best_published("f1")
    for criterion in ("abs", "hypergeo"):
        assert_array_equal(found.loc[("best of eight", criterion)], theirs[criterion])
    assert (found.loc[("MeanMap", "likelihood")] == 77.5).all()
    assert (found.loc["majority"] == 75.5).all(axis=None)
    assert (found.loc["labels"] == 85.5).all(axis=None)
    for shown in (study.table, study.by_set):
        with pytest.raises(ValueError, match=r"value must be one of .*, got 'auc'"):
            shown("auc", folder)


def test_each_side_is_taken_over_its_own_majority(fake):
    folder = fake(lambda name: 0.02)
    found = study.over_majority(folder)
    ours = found[found["method"] == "MeanMap"]
    assert np.allclose(ours["over"], 2) and (ours["n"] == 2).all()
    rows = complexllp.published()
    nobody = rows[rows["f1_mean"] == 0]["acc_mean"]
    assert nobody.std() < 1e-4 and study.their_majority() == nobody.median()
    one = found.query("method == 'best of eight' and choice == 'oracle'")
    best = rows.query("metric == 'oracle' and dataset == @SMALL")["acc_mean"].max()
    over = one.set_index("dataset").loc[SMALL, "over"]
    assert over == pytest.approx(100 * (best - nobody.median()))
    lead = study.leads(folder).query("method == 'MeanMap' and dataset == @SMALL")
    free = rows.query("metric != 'oracle' and dataset == @SMALL")["acc_mean"].max()
    assert np.allclose(lead["lead"], 2 - 100 * (free - nobody.median()))
