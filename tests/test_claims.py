"""The ledger of claims: its numbers for four papers, computed anew from printed tables and stored rows."""

from functools import lru_cache
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from llpbook.comparison import paired_differences
from studies import duplessis2013, load, paper_table, papers, stolpe2011

LEDGER = (Path(__file__).parents[1] / "book/claims.md").read_text(encoding="utf-8")
PAIRS = [*product(("AlterSVM", "ConvSVM"), ("MeanMap", "InvCal"))]


def signed(value, error, digits=1):
    """As the ledger writes a difference and its standard error."""
    return f"{value:+.{digits}f} ± {error:.{digits}f}".replace("-", "−")


def over(differences, digits=1):
    """A mean over data sets and its standard error."""
    return signed(differences.mean(), differences.sem(), digits)


# --- Stolpe and Morik (2011) -----------------------------------------------------------------------------------


def stolpe():
    both = stolpe2011.compare()
    ours = both.pivot(index="bag_size", columns="method", values="ours")
    rows = stolpe2011.complete()
    best = rows.groupby(["dataset", "method", "bag_size"])["best"].mean().unstack()
    spread = best.std(axis=1).unstack()[stolpe2011.TABLE_2]
    fall = 100 * (best[128] - best[2])
    picked = rows[rows["method"] == "LLP"]["best_candidate"]
    times = load("cluster_times").query("method == 'LLP' and n >= 10_000")
    slope = np.polyfit(np.log(times["n"]), np.log(times["cpu"]), 1)[0]
    means = rows.groupby("method")["best"].mean()
    gap = f"{ours.loc[128, 'LLP'] - ours.loc[128, 'InvCal']:+.2f}"
    found = {
        "LLP": ", ".join(f"{r:.1f}" for r in ours["LLP"]),
        "MeanMap": ", ".join(f"{r:.1f}" for r in ours["MeanMap"].dropna()),
        "InvCal, 128": gap.replace("-", "−"),
        "AOC, 8": f"{ours.loc[8, 'LLP'] - ours.loc[8, 'AOC-KK']:+.2f}",
        "spread": f"{(spread.idxmin(axis=1) == 'LLP').sum()} of 8",
        "fall LLP": over(fall.xs("LLP", level="method")),
        "fall InvCal": over(fall.xs("InvCal", level="method")),
        "exhaustive": f"{picked.str.contains('exhaustive').sum()} of {len(picked)}",
        "tree": f"{picked.str.contains('tree').sum()} of {len(picked)}",
        "slope": f"{slope:.2f}",
        "best": f"{means['LLP']:.3f}",
        "ridge": f"{means['ridge']:.3f}",
    }
    gaps = ours["LLP"] - ours["MeanMap"]
    found["over MeanMap"] = ", ".join(f"{g:+.1f}" for g in gaps.loc[[4, 8, 32, 64]])
    return found


# --- du Plessis and Sugiyama (2013) ----------------------------------------------------------------------------

DIRECT, BLIND = ["DSDD", "LSDD", "KDE"], ["KM", "SC", "SMIC"]


def duplessis():
    found = {}
    for k in (1, 2):
        table = duplessis2013.compare(f"duplessis2013_table{k}")
        for who in ("paper", "ours"):
            wide = table.pivot(index="dataset", columns="method", values=who)
            gap = wide[BLIND].mean(axis=1) - wide[DIRECT].mean(axis=1)
            found[k, who, "direct"] = over(gap, 3)
            found[k, who, "order"] = ", ".join(f"{m:.3f}" for m in wide[DIRECT].mean())
            thyroid = wide.loc["thyroid"]
            best, other = thyroid[DIRECT].max(), thyroid[BLIND].min()
            found[k, who, "thyroid"] = f"{best:.3f} against {other:.3f}"
            if who == "ours":
                found[k, "SVC"] = f"{wide['SVC'].mean():.3f}"
    first = load("duplessis2013_table1")
    first = first.pivot_table("ler", ["dataset", "seed"], "method")
    found["clip"] = by_set(first["DSDD"] - first["first round"])
    new = load("duplessis2013_new")
    part = new.query("priors == '0.35-0.65'")
    part = part.pivot_table("error", ["dataset", "seed"], "method")
    found["new, Table 2"] = by_set(part["DSDD"] - part["SVC"])
    new = new.query("priors == '0.2-0.8'")
    new = new.pivot_table("error", ["dataset", "seed"], "method")
    found["new"] = by_set(new["DSDD"] - new["SVC"])
    found["new clip"] = by_set(new["DSDD"] - new["first round"])
    return found


def by_set(gap):
    """The mean of paired differences over data sets, each the mean of its draws, with its standard error."""
    return over(gap.dropna().groupby("dataset").mean(), 3)


# --- Yu et al. (2013) ------------------------------------------------------------------------------------------


def yu():
    cells = papers.cells("yu2013")
    found = {}
    for who in ("paper", "here"):
        wide = cells.pivot(index=["dataset", "bag_size"], columns="method", values=who)
        for method in ("AlterSVM", "ConvSVM"):
            lead = wide[method] - wide[["MeanMap", "InvCal"]].max(axis=1)
            found[who, method] = f"{(lead > 0).sum()} of 42"
            if method == "AlterSVM":
                by = lead.groupby("bag_size").mean()
                found[who, "lead"] = ", ".join(f"{v:.1f}" for v in by)
        gap = (wide["AlterSVM"] - wide["ConvSVM"]).groupby("dataset").mean()
        found[who, "conv"] = over(gap)
        found[who, "InvCal"] = f"{(wide['InvCal'] > wide['MeanMap']).sum()} of 42"
    printed = paper_table("yu2013_table2").set_index(["dataset", "bag_size", "method"])
    names = {"AlterSVM": "alter-SVM", "ConvSVM": "conv-SVM"}
    parts = printed.unstack("method")
    told = 0
    for ours, other in PAIRS:
        args = []
        for m in (ours, other):
            args += [parts[c][names.get(m, m)] for c in ("acc_mean", "acc_std")] + [5]
        test = stats.ttest_ind_from_stats(*args, equal_var=False)
        told += ((test.statistic > 0) & (test.pvalue < 0.05)).sum()
    found["paper", "told"] = f"{told} of 168"
    rows = pd.concat([load("yu2013_meanmap"), load("yu2013_margins")])
    wide = rows.pivot_table("accuracy", ["dataset", "bag_size", "seed"], "method")
    told = 0
    for ours, other in PAIRS:
        gap = paired_differences(
            (wide[ours] - wide[other]).dropna(),
            None, unit="seed", by=["dataset", "bag_size"], test_train_ratio=5 / 4,
        )  # fmt: skip
        mean, error, n = gap["difference"], gap["error"], gap["n_seed"]
        told += ((mean > stats.t.ppf(0.975, n - 1) * error) & (mean > 1e-9)).sum()
    found["here", "told"] = f"{told} of 168"
    study = load("relaxation")
    gap = 100 * (study["started"] - study["alter"])
    sets = gap.groupby([study["dataset"]]).mean()
    found["start"] = over(sets)
    return found


# --- Pérez-Ortiz et al. (2016) ---------------------------------------------------------------------------------


@lru_cache
def perezortiz():
    cells = papers.cells("perezortiz2016")
    classes = paper_table("perezortiz2016_table1").set_index("dataset")["n_classes"]
    found = {}
    for who in ("paper", "here"):
        if who == "paper":
            two = paper_table("perezortiz2016_table2").rename(columns={"acc_mean": who})
            one = paper_table("perezortiz2016_table1").set_index("dataset")
            one = one["lda_acc_mean"]
        else:
            two = cells[cells["table"] == "II"]
            one = cells[cells["table"] == "I"].set_index("dataset")["here"]
        wide = two.pivot(index=["dataset", "bag_size"], columns="method", values=who)
        best = wide["WWS-LDA"] >= wide.max(axis=1)
        n = len(wide)
        found[who, "FWS"] = f"{(wide['FWS-LDA'] > wide['SWS-LDA']).sum()} of {n}"
        found[who, "WWS"] = f"{(wide['WWS-LDA'] > wide['SWS-LDA']).sum()} of {n}"
        found[who, "best"] = f"{best.sum()} of {n}"
        several = wide.index.get_level_values("dataset").map(classes) > 2
        gap = wide["WWS-LDA"] - wide["FWS-LDA"]
        for name, rows in (("several", several), ("two", ~several)):
            for size in (3, 10):
                part = gap[rows].xs(size, level="bag_size")
                found[who, name, size] = over(part)
        for method in ("FWS-LDA", "WWS-LDA"):
            gain = (wide[method] - wide["SWS-LDA"]).groupby("dataset").mean()
            found[who, method, "gain"] = over(gain)
            less = one - wide[method].xs(3, level="bag_size")
            counts = (less.abs() <= 1).sum(), (less > 1).sum(), (less < -1).sum()
            found[who, method, "LDA"] = "{}, {} and {}".format(*counts)
        for method in ("SWS-LDA", "WWS-LDA"):
            fall = wide[method].unstack()
            found[who, method, "fall"] = over(fall[10] - fall[3])
    rows = load("perezortiz2016")
    for method in ("FWS-LDA", "WWS-LDA"):
        part = rows[rows["method"] == method]
        found[method, "short"] = f"{part['n_short'].sum()} of {10 * len(part):,}"
    return found


@pytest.mark.parametrize("paper", [stolpe, duplessis, yu, perezortiz])
def test_the_ledger_states_what_tables_and_rows_say(paper):
    missing = {key: text for key, text in paper().items() if text not in LEDGER}
    assert not missing
