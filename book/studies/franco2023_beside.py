"""The published results of franco2023 beside ours: the one rule, the paper's test, and its figures drawn from both.

It reads stored rows and needs no data. The published table has 36 of the paper's 112 cases, so that a figure "from the
published rows" is not the paper's figure, which counts all cases.
"""

import numpy as np
import pandas as pd
from scipy import stats

from llpbook.comparison import (
    effect_sizes,
    paired_differences,
    resampled_t_test,
    wilcoxon_test,
)  # fmt: skip
from llpbook.plotting import PALETTE

from ._agreement import agreement, paper_table, resolution
from .franco2023 import (
    FULL_BAG,
    HELD_OUT,
    PUBLISHED,
    SIZE,
    STRATEGIES,
    VARIANTS,
    read_case,
)
from .runner import load

KEYS = ["dataset", "method", "strategy"]
SPLIT_BAG = STRATEGIES[1:]
OUTCOMES = ("better", "worse", "open")
SHORT = {
    "split-bag-bootstrap": "bootstrap",
    "split-bag-k-fold": "k-fold",
    "split-bag-shuffle": "shuffle",
    FULL_BAG: "full bag",
}
ORDERS = {
    "variant": VARIANTS,
    "method": tuple(PUBLISHED.values()),
    "kind": ("tabular", "digits"),
}
TESTED = ["sets", "difference", "se", "rank-biserial", "p"]
TITLES = ("published rows", "ours")
COLORS = dict(zip(OUTCOMES, (PALETTE[0], PALETTE[1], "#BBBBBB"), strict=True))


def _described(cells):
    """Cells with the columns ``data``, ``variant`` and ``kind``."""
    parts = cells["dataset"].map(read_case)
    data = parts.str[0]
    kind = np.where(data.str.startswith("mnist"), "digits", "tabular")
    return cells.assign(data=data, variant=parts.str[1], kind=kind)


def published():
    """The published cells.

    Returns
    -------
    DataFrame
        ``dataset``, ``method``, ``strategy``, ``mean``, ``sd``, ``n``, and ``data``, ``variant`` and ``kind`` of the
        case.
    """
    table = paper_table("franco2023_results")
    names = {"model": "method", "split_method": "strategy", "std": "sd", "count": "n"}
    table = table.rename(columns=names).drop(columns="n_splits")
    return _described(table.assign(method=table["method"].map(PUBLISHED)))


def ours(size=SIZE, results=None):
    """Our cells, as `published`, of those methods and strategies that choose.

    Parameters
    ----------
    size : int, default SIZE
        Of the training part; 0 for the whole.
    results : path, optional
        Folder of the rows; that of the studies if not given.

    Returns
    -------
    DataFrame
    """
    rows = load("franco2023", results)
    rows = rows[(rows["size"] == size) & rows["strategy"].isin(STRATEGIES)]
    found = rows.groupby(KEYS)["accuracy"]
    cells = found.agg(mean="mean", sd="std", n="count").reset_index()
    return _described(cells)


def beside(size=SIZE, results=None, lmm="LMM"):
    """Our means beside the published ones, by the one rule (`studies.agreement`).

    Parameters
    ----------
    size, results
        As for `ours`.
    lmm : str, default "LMM"
        Whose rows stand for LMM; "LMM one penalty" has the penalty 1 only.

    Returns
    -------
    DataFrame
        A row for each published cell that has been run.
    """
    theirs = published().rename(columns={"mean": "paper", "sd": "paper_sd"})
    own = ours(size, results)[[*KEYS, "mean", "sd", "n"]]
    own = own[own["method"].isin([lmm, *PUBLISHED.values()])]
    own = own[(own["method"] == lmm) | (own["method"] != "LMM")].replace(lmm, "LMM")
    own = own.rename(columns={"mean": "ours", "n": "n_seeds"})
    both = theirs.merge(own, on=KEYS)
    resolves = resolution(published(), ["dataset", "method"], "mean")
    parts = [agreement(part, n, resolves) for n, part in both.groupby("n")]
    return pd.concat(parts).sort_index()


def against_full_bag(cells, level=0.05):
    """Each split-bag strategy less the full-bag strategy, by the paper's test: Welch's t test of two means.

    Parameters
    ----------
    cells : DataFrame
        Of `published` or `ours`.
    level : float, default 0.05

    Returns
    -------
    DataFrame
        A row for each case, method and split-bag strategy: ``difference``, ``se``, ``pvalue`` and ``outcome``, which
        is "better" or "worse" where the test rejects, else "open".
    """
    full = cells["strategy"] == FULL_BAG
    keys, values = ["dataset", "method"], ["mean", "sd", "n"]
    beside = cells[full][[*keys, *values]]
    pairs = cells[~full].merge(beside, on=keys, suffixes=("", "_full"))
    columns = ["mean", "sd", "n", "mean_full", "sd_full", "n_full"]
    given = pairs[columns].to_numpy(dtype=float).T
    with np.errstate(all="ignore"):
        pvalue = stats.ttest_ind_from_stats(*given, equal_var=False).pvalue
    difference = pairs["mean"] - pairs["mean_full"]
    se = np.sqrt(
        pairs["sd"] ** 2 / pairs["n"] + pairs["sd_full"] ** 2 / pairs["n_full"]
    )
    return pairs.assign(difference=difference, se=se, pvalue=pvalue).assign(
        outcome=_outcomes(difference, pvalue, level)
    )


def _outcomes(difference, pvalue, level):
    """In words; a test that cannot be made (NaN) rejects nothing."""
    found = np.where(np.asarray(difference) > 0, *OUTCOMES[:2])
    return np.where(np.asarray(pvalue) <= level, found, OUTCOMES[2])


def paired_against_full_bag(size=SIZE, results=None, level=0.05):
    """The same of our rows, execution by execution, by the corrected t test of `llpbook.comparison`.

    All strategies have the same splits, which the paper's test does not use, and the splits share instances, which it
    does not allow for.

    Parameters
    ----------
    size, results
        As for `ours`.
    level : float, default 0.05

    Returns
    -------
    DataFrame
        As `against_full_bag`.
    """
    rows = load("franco2023", results)
    rows = rows[(rows["size"] == size) & rows["strategy"].isin(STRATEGIES)]
    found, ratio = [], HELD_OUT / (1 - HELD_OUT)
    wide = rows.pivot(
        index=["dataset", "method", "seed"], columns="strategy", values="accuracy"
    )
    for (dataset, method), part in wide.groupby(["dataset", "method"]):
        for strategy in SPLIT_BAG:
            pair = part[[strategy, FULL_BAG]].dropna()
            if len(pair) > 1:
                test = resampled_t_test(
                    pair[strategy], pair[FULL_BAG], test_train_ratio=ratio
                )
                found.append((dataset, method, strategy, *test))
    names = [*KEYS, "difference", "se", "t", "pvalue", "n"]
    table = pd.DataFrame(found, columns=names)
    outcome = _outcomes(table["difference"], table["pvalue"], level)
    return _described(table).assign(outcome=outcome)


def fractions(pairs, by):
    """How often a split-bag strategy is better, worse or not told apart.

    Parameters
    ----------
    pairs : DataFrame
        Of `against_full_bag`.
    by : {"variant", "method", "kind"}
        The paper's Figs. 2, 3 and 4.

    Returns
    -------
    DataFrame
        A row for each value of ``by`` and strategy, in the order of the figures: the shares of `OUTCOMES`, and ``n``.
    """
    counts = pairs.groupby([by, "strategy", "outcome"]).size().unstack(fill_value=0)
    counts = counts.reindex(columns=list(OUTCOMES), fill_value=0)
    order = pd.MultiIndex.from_product([ORDERS[by], SPLIT_BAG], names=[by, "strategy"])
    counts = counts.reindex(order[order.isin(counts.index)])
    n = counts.sum(axis=1)
    return counts.div(n, axis=0).assign(n=n)


def won(pairs):
    """Of the pairs that the test tells apart, the share in which the split-bag strategy is better, and their number."""
    told = pairs[pairs["outcome"] != "open"]
    return (told["outcome"] == "better").mean(), len(told)


def over_data(cells, by="variant"):
    """Split-bag strategies against the full-bag one over data sets: effect sizes and Wilcoxon's test.

    Parameters
    ----------
    cells : DataFrame
        Of `published` or `ours`.
    by : {"variant", "kind"}, default "variant"
        What to separate; "kind" averages over all variants but naive.

    Returns
    -------
    DataFrame
        A row for each method that has all strategies and each value of ``by``: means over the three strategies, less
        the full-bag strategy, over ``sets`` data sets. ``p`` is NaN for fewer than six.
    """
    index = ["method", "kind", "variant", "data"]
    wide = cells.pivot(index=index, columns="strategy", values="mean").dropna()
    if by == "kind":
        wide = wide.drop("naive", level="variant", errors="ignore")
    wide = wide.groupby(["method", by, "data"]).mean()
    rows = {}
    for key, part in wide.groupby(["method", by]):
        rows[key] = _tested(part[list(SPLIT_BAG)].mean(axis=1), part[FULL_BAG])
    table = pd.DataFrame(rows, index=TESTED).T.astype({"sets": int})
    table.index.names = ["method", by]
    return table.reindex(ORDERS[by], level=by)


def _tested(first, second):
    """Number of sets, difference, standard error, rank-biserial correlation and Wilcoxon's p of two columns."""
    few = len(first) < 6
    p = np.nan if few else wilcoxon_test(first, second).pvalue
    return [len(first), *effect_sizes(first, second)[:3], p]


def against_bootstrap(cells):
    """*k-fold* and *shuffle* less *bootstrap*, over data sets.

    Parameters
    ----------
    cells : DataFrame
        Of `published` or `ours`.

    Returns
    -------
    DataFrame
        Columns as those of `over_data`, for each method that has all strategies; means over all variants.
    """
    index, other = ["method", "data", "variant"], SPLIT_BAG[0]
    wide = cells.pivot(index=index, columns="strategy", values="mean").dropna()
    wide, rows = wide.groupby(["method", "data"]).mean(), {}
    for method, part in wide.groupby("method"):
        for strategy in SPLIT_BAG[1:]:
            rows[method, SHORT[strategy]] = _tested(part[strategy], part[other])
    table = pd.DataFrame(rows, index=TESTED).T.astype({"sets": int})
    table.index.names = ["method", "strategy"]
    return table


def lost(size=SIZE, results=None):
    """Points of accuracy lost to the setting that held-out labels would choose.

    Parameters
    ----------
    size, results
        As for `ours`.

    Returns
    -------
    DataFrame
        In percent, a row for each method and variant: each strategy, a choice ``at random`` among the settings, and
        ``se``, the largest standard error of the strategies over data sets.
    """
    rows = load("franco2023", results)
    rows = _described(rows[rows["size"] == size])
    keys = ["method", "variant", "data", "seed"]
    best = rows[rows["strategy"] == "oracle"].set_index(keys)[["accuracy", "mean"]]
    wide = rows[rows["strategy"].isin(STRATEGIES)].pivot(
        index=keys, columns="strategy", values="accuracy"
    )
    wide = wide.join(best, how="inner").dropna()
    wide["at random"] = wide["mean"]
    gaps = 100 * wide[[*STRATEGIES, "at random"]].rsub(wide["accuracy"], axis=0)
    by_data = gaps.groupby(["method", "variant", "data"]).mean()
    by_data.index.names = by = ["model", "variant", "data"]
    found = paired_differences(by_data, None, unit="data", by=by[:2])
    table = found["difference"].unstack()[list(gaps)].rename(columns=SHORT)
    table["se"] = found["error"].unstack()[list(STRATEGIES)].max(axis=1)
    table.index.names = ["method", "variant"]
    return table.reindex(VARIANTS, level="variant")


def ties(results=None):
    """LMM on digits: the full-bag strategy with the grid as it is and in reverse order, beside split-bag-shuffle.

    Parameters
    ----------
    results : path, optional
        As for `ours`.

    Returns
    -------
    DataFrame
        In percent, a row for each variant: ``full bag``, ``reversed`` and ``shuffle``, means over pairs of digits, and
        ``gain`` and ``se`` of ``reversed`` less ``full bag``.
    """
    rows = load("franco2023", results)
    rows = _described(rows[rows["method"].str.startswith("LMM")])
    rows = rows[(rows["kind"] == "digits") & (rows["size"] == SIZE)]
    by_data = rows.groupby(["variant", "data", "method", "strategy"])["accuracy"].mean()
    wide = 100 * by_data.unstack(["method", "strategy"])
    table = pd.DataFrame({
        "full bag": wide["LMM", FULL_BAG],
        "reversed": wide["LMM reversed", FULL_BAG],
        "shuffle": wide["LMM", SPLIT_BAG[-1]],
    })  # fmt: skip
    table = table.dropna()
    gain = paired_differences(
        table[["reversed", "full bag"]], "full bag", unit="data", by=["variant"]
    ).xs("reversed", level="method")
    means = table.groupby("variant").mean()
    means["gain"], means["se"] = gain["difference"], gain["error"]
    return means.reindex(VARIANTS)


def same_choice(size=SIZE, results=None):
    """Share of executions in which a split-bag strategy chooses the setting that the full-bag strategy chooses.

    Parameters
    ----------
    size, results
        As for `ours`.

    Returns
    -------
    DataFrame
        A row for each method, a column for each strategy.
    """
    rows = load("franco2023", results)
    rows = rows[(rows["size"] == size) & rows["strategy"].isin(STRATEGIES)]
    index = ["method", "dataset", "seed"]
    wide = rows.pivot(index=index, columns="strategy", values="chosen")
    wide = wide.dropna(subset=[FULL_BAG])
    same = wide[list(SPLIT_BAG)].eq(wide[FULL_BAG], axis=0).where(wide.notna())
    return same.astype(float).groupby("method").mean().rename(columns=SHORT)


def plot_fractions(left, right, by, axes):
    """Figs. 2, 3 and 4: a bar for each strategy, in groups.

    Parameters
    ----------
    left, right : DataFrame
        Of `fractions`: the published rows and ours.
    by : str
        As for `fractions`.
    axes : pair of matplotlib Axes
    """
    for ax, table, title in zip(axes, (left, right), TITLES, strict=True):
        groups = table.index.get_level_values(by).to_numpy()
        turns = np.append(0, groups[1:] != groups[:-1]).cumsum()
        places = np.arange(len(table)) + 0.8 * turns
        bottom = np.zeros(len(table))
        for outcome in OUTCOMES:
            height = table[outcome].to_numpy()
            ax.bar(places, height, bottom=bottom, color=COLORS[outcome], label=outcome)
            bottom += height
        names = table.index.get_level_values("strategy").map(SHORT)
        ax.set_xticks(places, names, rotation=90)
        for group in dict.fromkeys(groups):
            ax.text(
                places[groups == group].mean(), 1.02, group, ha="center", fontsize=9
            )
        ax.set_title(title, pad=16)
        ax.set(ylim=(0, 1))
    axes[0].set_ylabel("share of experiments")
