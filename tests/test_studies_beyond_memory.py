"""The study of costs: its data, the reports of the case, and the table that the chapter prints."""

import numpy as np
import pandas as pd
import pytest

from studies import beyond_memory as study
from studies import load


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


def test_costs_are_those_of_the_text():
    keys = ["method", "n", "engine", "workers"]
    table = study.cost_table().set_index(keys)
    reads = table["reads"].xs(("none", 1), level=["engine", "workers"])
    assert round(reads["InvCal", 10**7]) == 3 and round(reads["MeanMap", 10**7]) == 9
    assert round(reads["CountLogistic", 10**7]) == 23
    assert round(table["reads"]["CountLogistic", 10**7, "dask", 2]) == 37

    assert round(reads["logistic on labels", 10**7]) == 14
    more = reads["CountLogistic", 10**7] / reads["logistic on labels", 10**7]
    assert round(more, 1) == 1.7
    cpu = table["cpu"].xs(("none", 1), level=["engine", "workers"])
    for method, times in (("MeanMap", 11), ("CountLogistic", 11), ("InvCal", 13)):
        assert round(cpu[method, 10**8] / cpu[method, 10**7]) == times
    case = study.case_table().set_index(["method", "n", "noise"])["cpu"]
    case = case["CountLogistic", 10**6].mean()
    assert 13 < case / cpu["CountLogistic", 10**6] < 15
    assert (table["newton"]["CountLogistic"] == 5).all()


def test_two_processes_are_as_fast_as_the_text_says():
    rows = load("beyond_memory").set_index(["method", "engine", "workers"])["wall"]
    for method, least, most in (("MeanMap", 1.45, 1.6), ("CountLogistic", 1.65, 1.75)):
        one, two = (rows[method, "processes", k] for k in (1, 2))
        assert least < one / two < most
    assert rows["InvCal", "processes", 1] < rows["InvCal", "processes", 2]


def test_a_row_of_the_case(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    pytest.importorskip("psutil")
    monkeypatch.setenv("LLPBOOK_CHUNKS", str(tmp_path))
    monkeypatch.setattr(study, "DAYS_IN_FILE", 2)
    found = study.run_case({"method": "InvCal", "n": 30_000, "noise": 4.0}, 0)
    assert len(list(tmp_path.rglob("*.parquet"))) == 2
    assert 0 < found["mean_error"] < found["largest"] < 0.5


def test_errors_of_the_case_fall_as_the_chapter_says():
    table = study.case_table().set_index(["method", "n", "noise"])
    assert (table.xs(10**5, level="n")["draws"] == 10).all()
    table = table["mean_error"]
    exact, noisy = (table["CountLogistic"].xs(c, level="noise") for c in (0, 4))
    assert noisy.tolist() == [0.0046, 0.0025, 0.001] and exact[10**5] == 0.0025
    assert 1.6 < noisy[10**5] / exact[10**5] < 2
    labels = table["labels", 10**5, 0]
    assert labels == 0.0012 and 1.9 < exact[10**5] / labels < 2.2
    tuned = table["InvCal tuned"].xs(4, level="noise")
    assert tuned.round(3).tolist() == [0.008, 0.01, 0.009]
