"""The study of the losses of bags: one protocol for all, no label where none belongs, tables by hand."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from llpbook.bag_losses import LOSSES
from llpbook.proportions import label_proportions
from studies import bag_losses as study
from studies import complexllp, load, run_table

BENCHMARK, NATURAL = study.TABLES
METRICS = ["accuracy", "f1", "auc", "log_loss", "ece", "cpu_seconds", "chosen"]
SMALL = complexllp.names()[7]


# --- the protocol ----------------------------------------------------------------------------------------------------


# --- the bags of others ----------------------------------------------------------------------------------------------


def test_the_sets_of_others_are_whole():
    names = complexllp.names()
    assert len(names) == 26 == len(set(names))
    of = [complexllp.variant(name) for name in names]
    kinds = {"hard": 8, "intermediate": 7, "naive": 4, "simple": 7}
    assert {v: of.count(v) for v in of} == kinds
    X, y, bags = complexllp.load_set(names[0])
    assert X.shape == (48842, 179) and X.min() == 0 and X.max() == 1
    assert y.mean() == pytest.approx(0.2393, abs=1e-4)
    for name in names:
        bags = complexllp.load_set(name)[2]
        assert 5 <= len(np.unique(bags)) <= 30
        # Of naive bags the shares are those of random ones: with thousands of instances, nearly all alike.
        spread = label_proportions(y, bags)[:, 1].std()
        assert (spread < 0.02) == (complexllp.variant(name) == "naive")


def test_a_split_is_that_of_the_protocol():
    X, X_new, y, y_new, bags, shares = complexllp.split(SMALL, 2)
    assert len(X) == 36631 and len(X_new) == len(y_new) == 12211
    assert X.min() == -1 and X.max() == 1
    assert X_new.min() < -0.99  # scaled by the training part alone: can be beyond
    assert_allclose(shares[:, 1], [y[bags == k].mean() for k in range(5)])
    original, _, _ = complexllp.load_set(SMALL)
    rows = np.random.RandomState(complexllp.SEEDS[2]).permutation(48842)
    scale = np.ptp(original[rows[12211:]], axis=0)
    low = original[rows[12211:]].min(axis=0)
    wide = scale > 0
    again = 2 * (original[rows[:12211]] - low)[:, wide] / scale[wide] - 1
    assert_allclose(X_new[:, wide], again, atol=1e-6)
    assert len(set(complexllp.SEEDS)) == 30


# --- the tables ------------------------------------------------------------------------------------------------------


def fake(accuracy):
    def run(cell, seed):
        value = accuracy(cell, seed)
        return {**dict.fromkeys(METRICS[:-1], value), "chosen": ""}

    return run


def test_means_differences_and_standard_errors_by_hand(tmp_path):
    def accuracy(cell, seed):
        gain = {"counts": 0.0, "easy": [-0.1, -0.2, -0.3][seed], "labels": 0.1}
        return 0.6 + 0.1 * seed + gain.get(cell["method"], 0.05)

    run_table(replace(BENCHMARK, run=fake(accuracy)), seeds=3, results=tmp_path)
    table = study.less("bag_losses", results=tmp_path)
    assert list(table) == [m for m in [*LOSSES, "labels", "majority"] if m != "counts"]
    # 2,300 points of 5,300 are new: 10 sqrt(1 / 3 + 23 / 30)
    less = table.loc["banana", "linear"]
    assert less["easy"] == "-20.0 (10.5)" and less["labels"] == "+10.0 (0.0)"
    fresh = table.loc["1e4 in bags of 50", "trees"]  # each draw its own: 10 / sqrt(3)
    assert fresh["easy"] == "-20.0 (5.8)" and fresh["majority"] == "+5.0 (0.0)"
    seconds = study.seconds("bag_losses", tmp_path)
    assert seconds.loc["banana", "linear"]["counts"] == 0.7
    auc = study.less("bag_losses", "auc", results=tmp_path)
    assert auc.loc["banana", "trees"]["easy"] == "-0.200 (0.105)"


@pytest.mark.parametrize("table", study.TABLES, ids=lambda table: table.name)
def test_stored_rows_are_in_range_and_beside_their_limits(table):
    rows = load(table)
    for column in ("accuracy", "f1", "auc", "ece"):
        assert rows[column].between(0, 1).all()
    constant = rows[rows["method"] == "majority"]
    assert (constant["auc"] == 0.5).all()
    found = study.paired(table.name, "log_loss")
    every = found[[*LOSSES, "labels", "majority"]]  # the others: on some problems
    assert len(found) and every.notna().all(axis=None)
    means = found.groupby(level=[0, 1]).mean()
    assert (means["labels"] < means[list(LOSSES)].min(axis=1)).all()


def test_a_page_quotes_what_easy_loses():
    less = study.less("bag_losses").loc["1e4 in bags of 50", "easy"]
    page = (Path(__file__).parents[1] / "book/any_learner.md").read_text()
    for words in less:
        gap, error = words.strip("-)").split(" (")
        assert f"{gap} ± {error}" in page
