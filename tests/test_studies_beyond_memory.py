"""The study of costs: its data, and the reports of the case."""

import numpy as np
import pandas as pd
import pytest

from studies import beyond_memory as study


def test_reports_count_what_the_logs_hold():
    log = study.impressions(3, 5000)
    table = study.report(log, np.random.default_rng(0))
    assert table["impressions"].sum() == 5000
    noise = table["conversions"] - log.groupby("key")["converted"].sum()
    assert 0.5 < noise.std() / (np.sqrt(2) * study.NOISE) < 1.6
    assert table.index.min() >= 300 and len(table) == study.CAMPAIGNS
    again = study.impressions(3, 5000)
    pd.testing.assert_frame_equal(log, again)


def test_a_row_is_measured(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    pytest.importorskip("psutil")
    monkeypatch.setenv("LLPBOOK_CHUNKS", str(tmp_path))
    cell = {"method": "InvCal", "n": 5000, "engine": "none", "workers": 1}
    found = study.run(cell, 0)
    assert found["passes"] == 1 and found["memory"] > 50 and found["accuracy"] > 0.5


def test_a_row_of_the_case(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    pytest.importorskip("psutil")
    monkeypatch.setenv("LLPBOOK_CHUNKS", str(tmp_path))
    monkeypatch.setattr(study, "DAYS_IN_FILE", 2)
    found = study.run_case({"method": "InvCal", "n": 30_000, "noise": 4.0}, 0)
    assert len(list(tmp_path.rglob("*.parquet"))) == 2
    assert 0 < found["mean_error"] < found["largest"] < 0.5
