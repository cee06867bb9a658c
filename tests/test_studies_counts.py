"""The study of learners from counts: bags as promised, no label where none belongs, rows as the chapter reads them."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.linear_model import LogisticRegression

from llpbook.count_likelihood import CountLogistic
from llpbook.invcal import InvCal
from llpbook.proportions import label_proportions
from studies import count_likelihood as study
from studies import load


@pytest.mark.parametrize("variant", study.VARIANTS)
def test_problems_are_balanced_and_their_bags_as_large_as_said(variant):
    X, X_new, y, y_new, bags = study.make_problem("banana", variant, 1)
    assert len(X) == study.N_BAGGED and len(X_new) == len(y_new) > 1900
    assert abs(np.append(y, y_new).mean() - 0.5) < 1e-9
    assert_array_equal(np.bincount(bags), study.BAG_SIZE)
    np.testing.assert_allclose(X.mean(axis=0), 0, atol=1e-9)
    spread = label_proportions(y, bags)[:, 1].std()
    assert (spread < 0.13) == (variant == "Naive")


def test_labels_reach_the_fit_and_the_choice_through_counts_alone(monkeypatch):
    seen, own = [], CountLogistic.fit

    def spy(self, X, bags, proportions, labels=None):
        seen.append((bags, np.asarray(proportions), labels))
        return own(self, X, bags, proportions)

    monkeypatch.setattr(CountLogistic, "fit", spy)
    cell = {"dataset": "banana", "variant": "Simple", "method": "counts"}
    first = study.run(cell, 0)
    _, _, y, _, bags = study.make_problem("banana", "Simple", 0)
    wanted = label_proportions(y, bags, classes=[0, 1])
    assert len(seen) == study.FOLDS * len(study.PENALTIES) + 1
    for _, shares, labels in seen:
        assert labels is None
        assert_array_equal(shares, wanted)
    # Whole bags are held out.
    assert len(np.unique(seen[0][0])) < len(wanted)
    assert first == study.run(cell, 0)


def test_twenty_bags_of_fifty():
    for problem in ("gap", "slope"):
        X, X_new, y, y_new, bags = study.few_bags(problem, 1)
        assert_array_equal(np.bincount(bags), [50] * 20)
        assert X.shape == (1000, 20) and len(X_new) == len(y_new) == 4000
        # Of two classes and features that tell them apart; bags say nothing of either.
        assert 0.4 < np.append(y, y_new).mean() < 0.6
        assert LogisticRegression().fit(X, y).score(X_new, y_new) > 0.75
        assert label_proportions(y, bags)[:, 1].std() < 0.12


@pytest.mark.parametrize("choice", ["default", "tuned"])
def test_margin_methods_are_chosen_by_the_shares_of_held_out_bags(monkeypatch, choice):
    seen, own = [], InvCal.fit

    def spy(self, X, bags, proportions, labels=None):
        seen.append((self.C_p, np.unique(bags), np.asarray(proportions), labels))
        return own(self, X, bags, proportions)

    monkeypatch.setattr(InvCal, "fit", spy)
    row = study.run_few({"problem": "gap", "method": "InvCal", "choice": choice}, 0)
    tried = {C_p for C_p, *_ in seen}
    assert tried == ({1.0} if choice == "default" else set(study.PENALTIES))
    _, _, y, _, bags = study.few_bags("gap", 0)
    for *_, shares, labels in seen:
        assert labels is None
        assert_array_equal(shares, label_proportions(y, bags))
    assert {len(used) for _, used, *_ in seen} == {16, 20}  # four bags held out
    assert (row["chosen"] == "") == (choice == "default")
    assert list(row) == ["accuracy", "in_bags", "chosen"]


def test_calibration_error_by_hand():
    p, y = np.array([0.05, 0.05, 0.95, 1.0]), np.array([0, 1, 1, 1])
    assert study.calibration_error(p, y) == pytest.approx((0.9 + 0.05) / 4)


@pytest.mark.parametrize("table", study.TABLES, ids=lambda table: table.name)
def test_stored_rows_are_whole_draws(table):
    rows = load(table)
    assert rows.groupby("seed").size().eq(len(table.cells)).all()
    assert rows.seed.nunique() >= 6


def test_what_the_chapter_says_of_the_study():
    rows = load(study.TABLES[0])
    mean = rows.pivot_table("accuracy", ["dataset", "variant"], "method")
    sets, kinds = mean.groupby("dataset").mean(), mean.groupby("variant").mean()
    curved, people = ["banana", "image"], ["adult", "census-income-balanced"]
    people.append("default-credit-card")
    trees = sets["counts, trees"]
    assert (trees - sets["linear, labels"])[curved].min() > 0.03
    assert (trees - sets["counts"])[people].abs().max() < 0.015
    assert (sets["linear, labels"] - sets["counts"])[people].max() < 0.05
    assert abs(trees["nursery"] - sets["counts"]["nursery"]) < 0.015
    over_em = kinds["counts, trees"] - kinds["EM, trees"]
    assert over_em.idxmax() == "Naive" and over_em["Naive"] > 0.05
    gain = (mean["counts, trees"] - mean["counts"]).unstack("variant")
    assert gain.loc["banana"].min() > 0.2
    assert gain.loc["image", "Intermediate"] == gain.loc["image"].min() > 0.03
    ece = rows.groupby("method")["ece"].mean()
    assert max(ece[["counts", "counts, trees"]]) < 0.6 * ece["EM"]
    assert min(ece[["counts", "counts, trees"]]) > ece["linear, labels"]


def test_what_the_chapter_says_of_twenty_bags():
    rows = load(study.TABLES[1])
    tuned = rows.query("choice == 'tuned'")
    tuned = tuned.pivot(index=["problem", "seed"], columns="method", values="accuracy")
    ahead = tuned["alter-∝SVM"] > tuned["counts"]
    assert ahead["gap"].mean() > 0.8 and not ahead["slope"].any()
    gap, slope = tuned.loc["gap"].mean(), tuned.loc["slope"].mean()
    assert gap["counts"] < gap["EM"] < gap["alter-∝SVM"]
    assert gap[["InvCal", "conv-∝SVM"]].max() < gap["counts"] - 0.05
    assert slope.drop("linear, labels").max() < slope["linear, labels"] - 0.14
    assert slope.nlargest(3).index[1:].isin(["MeanMap", "InvCal"]).all()
    trees = rows.query("method == 'counts, trees' and problem == 'gap'")
    by_choice = trees.groupby("choice")["accuracy"].mean()
    assert by_choice["default"] > by_choice["tuned"] + 0.03
