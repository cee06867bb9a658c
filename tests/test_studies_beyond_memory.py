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


def test_costs_are_those_of_the_text():
    keys = ["method", "n", "engine", "workers"]
    table = study.cost_table().set_index(keys)
    reads = table["reads"].xs(("none", 1), level=["engine", "workers"])
    assert round(reads["InvCal", 10**7]) == 3 and round(reads["MeanMap", 10**7]) == 9
    assert round(reads["CountLogistic", 10**7]) == 26
    assert 4 < reads["SGD on labels", 10**7] < 5
    assert 5.5 < reads["CountLogistic", 10**7] / reads["SGD on labels", 10**7] < 6.5
    one, two = (table["wall"]["MeanMap", 10**7, "processes", k] for k in (1, 2))
    assert 1.45 < one / two < 1.6


def test_true_rates_are_those_of_the_logs():
    log = pd.concat([study.impressions(day, 20_000) for day in range(10)])
    rates = log.groupby(["device", "site"])["converted"].agg(["mean", "size"])
    truth = study.true_rates()
    error = np.sqrt(truth * (1 - truth) / rates["size"])
    assert ((rates["mean"] - truth).abs() < 4 * error).all() and len(truth) == 12


def test_a_row_of_the_case(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    pytest.importorskip("psutil")
    monkeypatch.setenv("LLPBOOK_CHUNKS", str(tmp_path))
    monkeypatch.setattr(study, "DAYS_IN_FILE", 2)
    found = study.run_case({"method": "InvCal", "n": 30_000, "noise": 4.0}, 0)
    assert len(list(tmp_path.rglob("*.parquet"))) == 2
    assert 0 < found["mean_error"] < found["largest"] < 0.5


def test_errors_of_the_case_fall_as_the_chapter_says():
    table = study.case_table().set_index(["method", "n", "noise"])["mean_error"]
    exact, noisy = (table["CountLogistic"].xs(c, level="noise") for c in (0, 4))
    assert (noisy.diff().dropna() < 0).all() and (exact.diff().dropna() < 0).all()
    assert noisy[10**5] < 1.5 * exact[10**5] and noisy[10**6] > 2.5 * exact[10**6]
    assert table["InvCal"].loc[[10**6, 10**7]].between(0.012, 0.015).all()
