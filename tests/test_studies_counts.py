"""The study of learners from counts: bags as promised, no label where none belongs, rows as the chapter reads them."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from llpbook.comparison import paired_differences
from llpbook.count_likelihood import CountLogistic
from llpbook.proportions import label_proportions
from studies import counts_fair as fair
from studies import load


def test_calibration_error_by_hand():
    p, y = np.array([0.05, 0.05, 0.95, 1.0]), np.array([0, 1, 1, 1])
    assert fair.calibration_error(p, y) == pytest.approx((0.9 + 0.05) / 4)


@pytest.mark.parametrize("table", fair.TABLES, ids=lambda table: table.name)
def test_stored_rows_are_whole_draws(table):
    rows = load(table)
    assert rows.groupby("seed").size().eq(len(table.cells)).all()
    assert rows.seed.nunique() >= 6


def differences(how):
    """Points of accuracy of each method less the counts, with errors over the data sets."""
    index = ["dataset", "variant", "seed"]
    scores = load(fair.TABLES[0]).pivot(index=index, columns="method", values=how)
    return paired_differences(100 * scores, "counts", unit="dataset")


@pytest.mark.parametrize("how", fair.CHOICES)
def test_what_the_chapters_say_of_lines_tuned_fairly(how):
    found = differences(how)
    gap, error = found["difference"], found["error"]
    assert gap.drop("linear, labels").max() < 1
    for rival in ("MeanMap", "ridge on bag means"):
        assert -2.2 < gap[rival] < -1 and abs(gap[rival]) > 1.5 * error[rival]
    for same in ("soft EM", "normal counts"):
        assert abs(gap[same]) < 0.2
    assert gap["linear, labels"] > 4 * error["linear, labels"]


def test_calibration_of_lines_tuned_fairly():
    gap = load(fair.TABLES[0]).groupby("method")["ece"].mean()
    gap = gap.drop("linear, labels") / gap["counts"]
    assert gap["soft EM"] < 1.05 and gap.drop(["soft EM", "counts"]).min() > 1.05
    assert gap[["EM, majority", "EM, MeanMap"]].min() > 2


def test_the_table_of_a_chapter_by_hand(monkeypatch):
    rows = [
        # Data set, method, accuracy: less A, the method B has +10 and +20 points.
        {"seed": seed, "dataset": data, "variant": "Hard", "method": method,
         **dict.fromkeys(fair.CHOICES, right), "ece": 0.25}
        for data, method, right in (("a", "A", 0.5), ("a", "B", 0.6), ("b", "A", 0.6), ("b", "B", 0.8))
        for seed in (0, 1)
    ]  # fmt: skip
    monkeypatch.setattr(fair, "load", lambda name: pd.DataFrame(rows))
    table = fair.chapter_table("A", ["B"])
    assert list(table["shares"]) == ["55.0", "+15.0 ± 5.0"]
    assert list(table["gap"]) == [0.25, 0.25]


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
    _, _, y, _, bags = fair.make_problem("image", "Naive", 0)
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
