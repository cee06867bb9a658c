"""The study of calibration: bags as promised, no label where none belongs, and what the chapter says of the rows."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from llpbook.baselines import BagMeanRegression
from llpbook.proportions import label_proportions
from studies import calibration as study
from studies import load

TABLE = study.TABLES[0]


@pytest.mark.parametrize("problem", [*study.TWO, "digits"])
@pytest.mark.parametrize("size", [8, 25])
def test_bags_are_random_and_as_large_as_said(problem, size):
    X, X_new, y, y_new, bags = study.make_problem(problem, size, 1)
    assert_array_equal(np.bincount(bags), size)
    assert len(X) == len(y) == len(bags) and len(X_new) == len(y_new) > 230
    np.testing.assert_allclose(X.mean(axis=0), 0, atol=1e-9)
    K = y.max() + 1
    assert (problem == "digits") == (K == 3)
    shares = label_proportions(y, bags, classes=range(K))
    expected = np.sqrt(np.prod([y.mean(), 1 - y.mean()]) / size) if K == 2 else 0.17
    assert shares[:, 1].std() < 1.25 * expected


def test_no_label_reaches_a_fit(monkeypatch):
    seen, own = [], BagMeanRegression.fit

    def spy(self, X, bags, proportions=None, labels=None):
        seen.append((len(np.unique(bags)), np.asarray(proportions), labels))
        return own(self, X, bags, proportions)

    monkeypatch.setattr(BagMeanRegression, "fit", spy)
    cell = {"problem": "digits", "size": 8, "method": "ridge"}
    first = study.run(cell, 0)
    _, _, y, _, bags = study.make_problem("digits", 8, 0)
    assert next(used for used, *_ in seen) == 38 and len(seen) == 11
    assert sum(38 - used for used, *_ in seen) == 38  # each bag is held out once
    for _, shares, labels in seen:
        assert labels is None
        assert_array_equal(shares, label_proportions(y, bags, classes=range(3)))
    assert list(first) == list(study.run({**cell, "method": "labels"}, 0))


def test_judgement_by_hand():
    P = np.array([[0.9, 0.1], [0.1, 0.9], [0.1, 0.9], [0.4, 0.6]])
    found = study.judge(P, np.array([0, 1, 0, 1]), "_x")
    assert found["accuracy_x"] == 0.75
    assert found["confidence_x"] == pytest.approx(0.825)
    assert found["loss_x"] == pytest.approx(-np.log([0.9, 0.9, 0.1, 0.6]).mean())
    assert found["ece_x"] == pytest.approx((0.1 + 0.8 + 0.4) / 4)
    three = np.column_stack([P / 2, np.full(4, 0.5)])
    assert study.judge(three, np.full(4, 2))["ece"] == pytest.approx(0.5)


def test_what_the_chapter_says_of_calibration():
    rows = load(TABLE)
    mean = rows.groupby("method").mean(numeric_only=True)
    ece, held, own = (mean[f"ece{end}"] for end in ("", "_held", "_own"))
    sure = ["MeanMap", "EMLR"]
    assert (held[sure] < 0.4 * ece[sure]).all() and held["InvCal"] < 0.6 * ece["InvCal"]
    assert held[["ridge", "AlterSVM"]].max() < 0.07 and ece["labels"] < 0.055
    assert 0.4 < ece["MeanMap, tuned"] / ece["MeanMap"] < 0.6
    assert 0.03 < ece["MeanMap, tuned"] - held["MeanMap, tuned"] < 0.06
    assert (own / held)[["EMLR", "CountLogistic"]].between(1.3, 2.1).all()
    kinds = rows.groupby(["problem", "size"]).mean(numeric_only=True)
    gap = kinds["ece_own"] - kinds["ece_held"]
    assert gap["adult"].abs().max() < 0.01 and gap.drop("adult").min() > -0.01
    many = ["default-credit-card", "digits", "adult by occupation"]
    assert gap[many].min() > 0.01
    by = rows[rows["problem"] == study.OCCUPATION].groupby("method")
    moved = by["accuracy_held"].mean() - by["accuracy"].mean()
    assert moved["MeanMap"] > 0.06
    flat = rows[rows["slope_held"] == 0].groupby(["problem", "size", "method"]).size()
    assert flat["digits", 25, "EMLR"] == 5 and len(flat["default-credit-card", 25]) == 6
    assert len(flat) == 8
