"""The study of costs: its data, the reports of the case, and the table that the chapter prints."""

import numpy as np
import pandas as pd
import pytest

from studies import beyond_memory as study


def test_data_are_random_bags_of_fifty():
    frame = study.draw(1000, 0)
    assert (
        frame["bag"].value_counts().eq(50).all()
        and frame["bag"].is_monotonic_increasing
    )
    assert frame[study.FEATURES].dtypes.eq(np.float32).all()
    assert 0.3 < frame["y"].mean() < 0.5


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


def test_the_table_is_in_units_of_a_read():
    table = study.cost_table()
    reads = table[table["method"] == "read"]
    assert (reads["reads"] == 1).all()
    assert {"InvCal", "MeanMap", "CountLogistic"} <= set(table["method"])
