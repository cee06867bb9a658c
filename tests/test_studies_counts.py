"""The study of learners from counts: bags as promised, no label where none belongs, rows as the chapter reads them."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from llpbook.count_likelihood import CountLogistic
from llpbook.em import EMLR
from llpbook.proportions import label_proportions
from studies import count_likelihood as study
from studies import counts_fair as fair
from studies import load


def test_calibration_error_by_hand():
    p, y = np.array([0.05, 0.05, 0.95, 1.0]), np.array([0, 1, 1, 1])
    assert study.calibration_error(p, y) == pytest.approx((0.9 + 0.05) / 4)


@pytest.mark.parametrize(
    "table", [*study.TABLES, *fair.TABLES], ids=lambda table: table.name
)
def test_stored_rows_are_whole_draws(table):
    rows = load(table)
    assert rows.groupby("seed").size().eq(len(table.cells)).all()
    assert rows.seed.nunique() >= 6


def test_what_the_chapter_says_of_trees():
    rows = load(study.TABLES[0])
    mean = rows.pivot_table("accuracy", ["dataset", "variant"], "method")
    sets = mean.groupby("dataset").mean()
    curved, people = ["banana", "image"], ["adult", "census-income-balanced"]
    people.append("default-credit-card")
    trees = sets["counts, trees"]
    assert (sets["EM, trees"] - sets["linear, labels"])[curved].min() > 0.02
    assert (trees - sets["linear, labels"])[curved].min() > 0.03
    gained = trees - sets["counts"]
    assert gained[people[:2]].abs().max() < 0.015
    assert gained[["default-credit-card", "nursery"]].between(0.005, 0.035).all()
    assert (sets["linear, labels"] - sets["counts"])[people].max() < 0.05
    assert trees["nursery"] < sets["trees, labels"]["nursery"] - 0.05
    over_em = gains(rows, "accuracy", "counts, trees", "EM, trees", by="variant")
    assert clear(over_em["Naive"], 5) and clear(over_em["Hard"], 0.5)
    over_line = gains(rows, "accuracy", "counts, trees", "counts", by="variant")
    assert clear(over_line["Intermediate"], 4)
    ece = rows.groupby("method")["ece"].mean()
    assert ece["counts, trees"] < 0.8 * ece["EM, trees"]


def gains(rows, how, one, other, by=None):
    """Points of accuracy per draw, means over the settings; of each group a column."""
    keys = ["seed", *([by] if by else [])]
    index = ["seed", "dataset", "variant"]
    right = 100 * rows.pivot(index=index, columns="method", values=how)
    gain = (right[one] - right[other]).groupby(keys).mean()
    return gain.unstack() if by else gain


def clear(gain, than=0.0):
    """Above a number by two standard errors."""
    return gain.mean() - 2 * gain.sem() > than


def fair_rows(*left_out):
    rows = load(fair.TABLES[0])
    return rows[~rows["dataset"].isin(left_out)]


@pytest.mark.parametrize("how", fair.CHOICES)
def test_what_the_chapters_say_of_lines_tuned_fairly(how):
    rows = fair_rows("banana")

    def gain(one, other):
        return gains(rows, how, one, other)

    for rival in ("ridge on bag means", "MeanMap", "EM, majority", "EM, MeanMap"):
        assert clear(gain("counts", rival), 0.8)
        assert not clear(gain("counts", rival), 3)
    assert clear(gain("linear, labels", "counts"), 1.5)
    assert clear(gain("counts", "MeanMap"), 1.5)
    for start in ("EM, majority", "EM, MeanMap"):
        assert clear(gain("soft EM", start), 1)
        # No better than the ridge or MeanMap, once these are tuned.
        assert not clear(gain(start, "ridge on bag means"), 0.5)
        if how != "untuned":
            assert abs(gain(start, "MeanMap").mean()) < 0.6
    assert abs(gain("EM, MeanMap", "EM, majority").mean()) < 0.5
    # The same likelihood; a normal count; shares.
    assert abs(gain("soft EM", "counts").mean()) < 0.25
    assert abs(gain("normal counts", "counts").mean()) < 0.3
    assert -0.6 < gain("shares", "counts").mean() < 0.2


def test_tuning_gains_hard_em_nothing():
    rows = fair_rows("banana").query("method == 'EM, majority'")
    means = 100 * rows.groupby("seed")[list(fair.CHOICES)].mean()
    for how in ("by_shares", "by_unbiased"):
        assert not clear(means[how] - means["untuned"])


def test_the_likelihood_as_a_criterion_costs_hard_em_alone():
    keys = ["dataset", "variant", "seed"]
    biased, fairly = load(study.TABLES[0]), fair_rows("banana")
    lost = {}
    for name, here in (("EM", "EM, majority"), ("MeanMap", "MeanMap"), ("counts",) * 2):
        one = fairly[fairly["method"] == here].set_index(keys)["by_shares"]
        other = biased[biased["method"] == name].set_index(keys)["accuracy"]
        lost[name] = 100 * (one - other).dropna().groupby("seed").mean()
    assert clear(lost["EM"], 1.5)
    em = biased.query("method == 'EM' and dataset != 'banana'")["chosen"]
    assert em.isin(["C=0.001", "C=0.01"]).mean() > 0.65
    for how in ("C_shares", "C_unbiased"):
        assert (fairly.query("method == 'EM, majority'")[how] <= 0.01).mean() < 0.45
    assert not clear(lost["MeanMap"], 0.3) and not clear(lost["counts"], 0.3)


def test_lines_on_banana_and_on_single_sets():
    rows = fair_rows()
    of_set = {
        other: gains(rows, "by_shares", "counts", other, by="dataset")
        for other in ("ridge on bag means", "MeanMap", "EM, majority", "shares")
    }
    for other in ("ridge on bag means", "MeanMap", "EM, majority"):
        for name in ("image", "nursery"):
            assert clear(of_set[other][name], 1.5)
    assert abs(of_set["ridge on bag means"]["default-credit-card"].mean()) < 0.7
    assert abs(of_set["MeanMap"]["default-credit-card"].mean()) < 0.7
    for other in ("EM, majority", "shares"):
        assert clear(-of_set[other]["banana"], 1)
    right = rows.groupby(["dataset", "method"])["by_shares"].mean()["banana"]
    assert right.max() < 0.58 and right["EM, majority"] > 0.53
    assert right[["soft EM", "counts"]].max() < 0.53


def test_calibration_of_lines_tuned_fairly():
    rows = fair_rows("banana")
    gap = rows.pivot_table("ece", "seed", "method")

    def wider(one, other):
        return gap[one] - gap[other]

    assert abs(wider("soft EM", "counts").mean()) < 0.006
    for rival in ("normal counts", "ridge on bag means", "MeanMap", "shares"):
        assert clear(wider(rival, "counts"))
    for rival in ("MeanMap", "shares"):
        assert 1.2 < gap[rival].mean() / gap["counts"].mean() < 1.7
    for start in ("EM, majority", "EM, MeanMap"):
        assert 1.7 < gap[start].mean() / gap["counts"].mean() < 2.3


def test_a_strong_penalty_costs_hard_em_points_off_gaussian_data():
    lost = []
    for seed in range(2):
        for name in ("adult", "image", "nursery"):
            X, X_new, y, y_new, bags = study.make_problem(name, "Simple", seed)
            shares = label_proportions(y, bags)
            weak, strong = (
                EMLR(C).fit(X, bags, shares).score(X_new, y_new) for C in (1.0, 0.01)
            )
            lost.append(weak - strong)
    assert np.mean(lost) > 0.02


def test_the_table_of_a_chapter_by_hand(monkeypatch):
    rows = [
        # Draw, method, accuracy: less A, the method B has +10 and +20 points.
        {"seed": seed, "dataset": data, "variant": "Hard", "method": method,
         **dict.fromkeys(fair.CHOICES, right), "ece": 0.25}
        for seed, method, right in ((0, "A", 0.5), (0, "B", 0.6), (1, "A", 0.6), (1, "B", 0.8))
        for data in ("adult", "banana")
    ]  # fmt: skip
    monkeypatch.setattr(fair, "load", lambda name: pd.DataFrame(rows))
    table = fair.chapter_table("A", ["B"])
    assert list(table["shares"]) == ["55.0", "+15.0 (5.0)"]
    assert list(table["ahead"]) == ["", "1, 1"] and list(table["gap"]) == [0.25, 0.25]


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


STALE = pytest.mark.xfail(reason="rows with a penalized intercept; make them again")


@pytest.mark.parametrize(
    "rival", ["normal counts", pytest.param("shares", marks=STALE)]
)
def test_stored_rows_of_the_rivals_reproduce(rival):
    rows = load(fair.TABLES[0]).set_index(["dataset", "variant", "method", "seed"])
    stored = rows.loc["image", "Simple", rival, 1]
    cell = {"dataset": "image", "variant": "Simple", "method": rival}
    again = fair.run(cell, 1)
    for key in (*fair.CHOICES, "ece"):
        assert abs(again[key] - stored[key]) < 0.005, key


def partitions(left, size):
    """All ways to cut instances into bags of one size."""
    if not left:
        yield []
        return
    first, *others = left
    for rest in combinations(others, size - 1):
        beyond = [i for i in others if i not in rest]
        for bags in partitions(beyond, size):
            yield [(first, *rest), *bags]


@pytest.mark.parametrize("size", [1, 2, 3])
def test_the_unbiased_error_over_all_cuts_into_bags(size):
    # Of N instances a bag is drawn without replacement: its other labels lean away from the label of each, by
    # (size - 1) / (N - 1), which falls to 0 for a large population.
    y = np.array([1, 1, 0, 1, 0, 0, 0, 0, 0])[: 9 if size == 3 else 8]
    s = np.array([0.9, 0.2, 0.1, 0.8, 0.7, 0.3, 0.6, 0.1, 0.4])[: len(y)]
    estimates = []
    for cut in partitions(list(range(len(y))), size):
        bags = np.empty(len(y), dtype=int)
        for k, members in enumerate(cut):
            bags[list(members)] = k
        shares = np.array([y[list(members)].mean() for members in cut])
        estimates.append(fair.unbiased_error(s, bags, shares))
    guess, lean = s > 0.5, (size - 1) / (len(y) - 1)
    wrong, chance = np.mean(guess != y), np.where(guess, 1 - y.mean(), y.mean()).mean()
    assert np.mean(estimates) == pytest.approx((1 - lean) * wrong + lean * chance)


def test_both_criteria_see_whole_bags_held_out_and_no_label(monkeypatch):
    seen, own = [], CountLogistic.fit

    def spy(self, X, bags, proportions, labels=None):
        seen.append((self.C, np.unique(bags), np.asarray(proportions), labels))
        return own(self, X, bags, proportions)

    monkeypatch.setattr(CountLogistic, "fit", spy)
    row = fair.run({"dataset": "image", "variant": "Naive", "method": "counts"}, 0)
    _, _, y, _, bags = study.make_problem("image", "Naive", 0)
    wanted = label_proportions(y, bags, classes=[0, 1])
    for _, _, shares, labels in seen:
        assert labels is None
        assert_array_equal(shares, wanted)
    first = fair.FOLDS * len(fair.PENALTIES)
    used = [np.isin(np.arange(len(wanted)), bags) for _, bags, *_ in seen]
    for fold in range(0, first, fair.FOLDS):
        # Of the three fits at a penalty, two have seen a bag.
        assert_array_equal(np.sum(used[fold : fold + fair.FOLDS], axis=0), 2)
    assert all(u.all() for u in used[first:])
    final = {C for C, *_ in seen[first:]}
    assert final == {1.0, row["C_shares"], row["C_unbiased"]}
