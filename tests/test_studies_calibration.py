"""The study of calibration: bags as promised, no label where none belongs, and what the chapter says of the rows."""

import numpy as np
import pytest

from studies import calibration as study
from studies import load

TABLE = study.TABLES[0]


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
