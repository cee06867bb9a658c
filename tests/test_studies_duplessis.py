"""The protocol of duplessis2013: the same draws for every method, no label in a fit, the bold face by hand."""

import itertools

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import ttest_rel

from llpbook.density_difference import labeling_error_rate
from studies import agreement, load, paper_table, resolution, run_table, tables
from studies import duplessis2013 as study

TABLE = next(t for t in study.TABLES if t.name == "duplessis2013_table1")


def test_the_table_has_every_cell_of_the_paper():
    printed = paper_table("duplessis2013_table1")[["dataset", "method"]]
    paper = set(printed.itertuples(index=False, name=None))
    own = {(cell["dataset"], cell["method"]) for cell in TABLE.cells}
    ours = itertools.product(study.DATASETS, ("SVC", "first round"))
    assert own - paper == set(ours)
    assert paper < own and len(TABLE.cells) == 80
    assert {t.name for t in study.TABLES} <= set(tables())


def test_every_instance_is_drawn_equally_often():
    y, seen = np.repeat([0, 1], [12, 8]), np.zeros((2, 20))
    for seed in range(600):
        *_, bags, rows = study.draw_two_bags(y[:, None], y, (5, 5), (0.2, 0.8), seed)
        np.add.at(seen, (bags, rows), 1)
    expected = np.vstack([np.where(y, 1 / 8, 4 / 12), np.where(y, 4 / 8, 1 / 12)])
    assert_allclose(seen / 600, expected, atol=0.08)


@pytest.mark.parametrize("dataset", study.DATASETS)
def test_draws_are_disjoint_and_have_the_shares_they_say(dataset):
    X, y, bags = study.make_problem(dataset, "0.2-0.8", "40-40", 3)
    for bag, share in ((0, 0.2), (1, 0.8)):
        assert (bags == bag).sum() == 40
        assert_allclose(y[bags == bag].mean(), share)
    whole, labels = study.features(dataset)
    assert_allclose(whole.mean(axis=0), 0, atol=1e-9)
    assert set(np.round(whole.std(axis=0), 9)) <= {0.0, 1.0}
    assert len(labels) == len(whole)
    rows = pd.DataFrame(whole).groupby(list(range(whole.shape[1]))).size()
    drawn = pd.DataFrame(X).groupby(list(range(X.shape[1]))).size()
    assert (drawn <= rows.reindex(drawn.index)).all()  # none is drawn twice


def test_sizes_priors_seeds_and_variants_reach_the_draw():
    X, y, bags = study.make_problem("heart", "0.3-0.7", "60-40", 0)
    assert_array_equal(np.bincount(bags), [60, 40])
    assert [y[bags == b].sum() for b in (0, 1)] == [18, 28]
    again = study.make_problem("heart", "0.3-0.7", "60-40", 0)
    assert_array_equal(again[0], X)
    other = study.make_problem("heart", "0.3-0.7", "60-40", 1)
    assert not np.array_equal(other[0], X)
    raw = study.make_problem("heart", "0.3-0.7", "60-40", 0, scaling="none")
    assert raw[0].std() > 10
    given = "heart", "0.2-0.8", "40-40"
    draws = [study.make_problem(*given, s, counts="drawn")[1] for s in range(60)]
    counts = [drawn[:40].sum() for drawn in draws]
    assert len(set(counts)) > 5 and abs(np.mean(counts) - 8) < 1.5
    with pytest.raises(ValueError, match="sizes and priors ask for"):
        study.make_problem("thyroid", "0.2-0.8", "100-100", 0)


def cell_of(dataset, method):
    own = {"dataset": dataset, "method": method}
    return own | {"priors": "0.2-0.8", "sizes": "40-40"}


@pytest.mark.parametrize("method", study.METHODS)
def test_every_method_sees_the_same_draw_and_no_label(method):
    seen = []

    def spy(X, bags, seed):
        seen.append((X.copy(), bags.copy(), seed))
        return study.METHODS[method](X, bags, seed)

    X, y, bags = study.make_problem("twonorm", "0.2-0.8", "40-40", 5)
    found = study.evaluate(spy, X, y, bags, 5)
    swapped = study.evaluate(spy, X, 1 - y, bags, 5)
    assert found == swapped  # the error is up to a swap, and nothing else reads y
    assert_array_equal(seen[0][0], X)
    row = study.run(cell_of("twonorm", method), 5)
    assert row == found
    assert 0 <= row["ler"] <= (0.21 if method in ("KDE", "SVC") else 0.2)
    labels = study.METHODS[method](X, bags, 5)[0]
    assert_allclose(row["ler"], labeling_error_rate(labels, y))


def test_comparable_is_the_best_and_what_the_t_test_cannot_tell_from_it():
    rng = np.random.default_rng(0)
    best = rng.normal(0.20, 0.02, 30)
    errors = pd.DataFrame({"best": best})
    errors["near"] = best + rng.normal(0.0005, 0.01, 30)
    errors["worse"] = best + rng.normal(0.02, 0.01, 30)
    errors["same"], errors["shifted"] = best, best + 0.001
    bold = study.comparable(errors)
    assert bold.to_dict() == {
        "best": True, "near": True, "worse": False, "same": True, "shifted": False
    }  # fmt: skip
    near, worse = (ttest_rel(errors[x], best).pvalue for x in ("near", "worse"))
    assert near > 0.05 > worse
    with pytest.raises(ValueError, match="at least 2 draws"):
        study.comparable(errors.iloc[:1])
    errors.loc[3, "near"] = np.nan
    with pytest.raises(ValueError, match="1 missing"):
        study.comparable(errors)


def test_compare_puts_the_paper_beside_ours(tmp_path):
    only = {"dataset": ["heart", "twonorm"], "method": ["KM", "KDE", "first round"]}
    run_table(TABLE, seeds=3, only=only, results=tmp_path)
    assert len(load(TABLE, tmp_path)) == 18  # compare shows METHODS only
    both = study.compare(TABLE, results=tmp_path).set_index(["dataset", "method"])
    assert {"paper", "ours", "sd", "difference", "se", "verdict", "bold"} <= {*both}
    assert len(both) == 4 and (both["n_seeds"] == 3).all()
    assert both.loc[("twonorm", "KM"), "paper"] == 0.036
    rows = load(TABLE, tmp_path)
    mine = rows[(rows["dataset"] == "heart") & (rows["method"] == "KM")]["ler"]
    assert_allclose(both.loc[("heart", "KM"), "ours"], mine.mean())
    assert_allclose(both.loc[("heart", "KM"), "sd"], mine.std())
    assert_allclose(both["difference"], both["ours"] - both["paper"])
    assert both["bold"]["twonorm"].to_dict() == {"KM": True, "KDE": False}


# --- agreement -------------------------------------------------------------------------------------------------


def one_cell(paper=0.2, paper_sd=0.05, ours=0.21, sd=0.05, n_seeds=100):
    return pd.DataFrame(
        [dict(paper=paper, paper_sd=paper_sd, ours=ours, sd=sd, n_seeds=n_seeds)]
    )


def verdict(resolves=0.01, **cell):
    return agreement(one_cell(**cell), 1000, resolves).iloc[0]["verdict"]


def test_agreement_by_hand():
    found = agreement(one_cell(), 1000, 0.01).iloc[0]
    assert found["se"] == pytest.approx(0.05 * np.sqrt(1 / 100 + 1 / 1000))
    assert found["difference"] == pytest.approx(0.01)
    assert found["verdict"] == "agrees"  # t = 1.90 of 1.98
    assert verdict(ours=0.2106) == verdict(ours=0.1894) == "differs"
    assert verdict(ours=0.2, sd=0.0, paper_sd=0.0) == "agrees"
    assert verdict(paper=np.nan) == verdict(sd=np.nan, n_seeds=1) == ""
    # The printed deviation decides nothing, and is judged apart.
    for paper_sd, fits in ((0.15, "no"), (0.02, "no"), (0.05, "yes"), (np.nan, "")):
        cell = agreement(one_cell(ours=0.2106, paper_sd=paper_sd), 1000, 0.01).iloc[0]
        assert cell["verdict"] == "differs" and cell["paper_sd_fits"] == fits
    with pytest.raises(ValueError, match="n_paper must be at least 1"):
        agreement(one_cell(), 0, 0.01)
    with pytest.raises(ValueError, match=r"must have the column \{'sd'\}"):
        agreement(one_cell().drop(columns="sd"), 1000, 0.01)


def test_a_standard_error_above_what_the_table_resolves_is_not_distinguishable():
    se = 0.05 * np.sqrt(1 / 100 + 1 / 1000)
    assert verdict(1.01 * se) == "agrees"
    assert verdict(0.99 * se) == "not distinguishable"
    # What the test rejects differs, however large the standard error.
    assert verdict(0.99 * se, ours=0.3) == "differs"
    # At this standard error the test finds a difference of the size in a sixth of the cases.
    ours = np.random.default_rng(1).normal(0.2 + se, se, 20_000)
    table = pd.DataFrame({"paper": 0.2, "paper_sd": 0.05, "ours": ours, "sd": 0.05})
    found = agreement(table.assign(n_seeds=100), 1000, 1.01 * se)
    assert np.mean(found["verdict"] == "differs") == pytest.approx(1 / 6, abs=0.01)
    with pytest.raises(ValueError, match="resolves must be above 0"):
        agreement(one_cell(), 1000, 0)


def test_resolution_is_the_median_gap_between_the_best_and_the_second():
    printed = pd.DataFrame({
        "dataset": ["a"] * 3 + ["b"] * 2 + ["c"] * 2 + ["d"],
        "acc_mean": [90, 80, 70, 50, 50, 63, 60, 1], "ler_mean": [1, 2, 5, 3, 3, 4, 9, 0],
    })  # fmt: skip
    assert resolution(printed, ["dataset"], "acc_mean") == 3  # of 10, 0 and 3
    assert resolution(printed, ["dataset"], "ler_mean") == 1  # of 1, 0 and 5


# --- new instances ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", study.PREDICTORS)
def test_new_instances_are_in_neither_bag_and_both_classes_count_half(
    method, monkeypatch
):
    seen = {}

    def spy(X, y, bags, shares, seed):
        predict = original(X, y, bags, shares, seed)
        seen.update(X=X, y=y, bags=bags, shares=shares)

        def keep(Z):
            seen.setdefault("new", Z)
            return predict(Z)

        return keep

    original = study.PREDICTORS[method]
    monkeypatch.setitem(study.PREDICTORS, method, spy)
    row = study.run_new(cell_of("thyroid", method), 1)
    whole, _ = study.features("thyroid")
    assert len(seen["new"]) == len(whole) - 80
    together = np.vstack([seen["X"], seen["new"]])
    assert_array_equal(np.sort(together, axis=0), np.sort(whole, axis=0))
    assert seen["shares"] == [0.2, 0.8] and seen["y"][seen["bags"] == 1].mean() == 0.8
    assert 0 <= row["error"] <= 1 and 0 <= row["ler"] <= 0.5
    if method in ("supervised", "LSDD"):
        assert row["error"] < 0.25
