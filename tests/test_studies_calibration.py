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
    mean = load(TABLE).groupby("method").mean(numeric_only=True)
    ece, held, own = (mean[f"ece{end}"] for end in ("", "_held", "_own"))
    assert held["MeanMap"] < 0.4 * ece["MeanMap"]
    assert held["ridge"] < 0.06 and ece["labels"] < 0.055
    assert own["CountLogistic"] > max(held["CountLogistic"], ece["CountLogistic"])
