"""The study of calibration: its judgement by hand."""

import numpy as np
import pytest

from studies import calibration as study


def test_judgement_by_hand():
    P = np.array([[0.9, 0.1], [0.1, 0.9], [0.1, 0.9], [0.4, 0.6]])
    found = study.judge(P, np.array([0, 1, 0, 1]), "_x")
    assert found["accuracy_x"] == 0.75
    assert found["confidence_x"] == pytest.approx(0.825)
    assert found["loss_x"] == pytest.approx(-np.log([0.9, 0.9, 0.1, 0.6]).mean())
    assert found["ece_x"] == pytest.approx((0.1 + 0.8 + 0.4) / 4)
    three = np.column_stack([P / 2, np.full(4, 0.5)])
    assert study.judge(three, np.full(4, 2))["ece"] == pytest.approx(0.5)
