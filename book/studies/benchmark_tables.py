"""What the rows of `studies.benchmark` say: differences that are paired, errors over data sets, and the site's table.

A difference is taken on the same task and draw, averaged over the draws of a task, then over the tasks of a data set;
its standard error is over data sets, which are independent, while the tasks of one set are not.
"""

from html import escape

import pandas as pd

from llpbook.comparison import average_ranks, paired_differences, wilcoxon_test

from .benchmark import (
    ANY,
    DATASETS,
    KINDS,
    LIMITS,
    METHODS,
    N_BAGGED,
    N_NEW,
    NATURAL,
    SIZES,
    VALUES,
)  # fmt: skip
from .runner import load

TASK = ["dataset", "kind", "bag_size"]
DRAW = [*TASK, "seed"]
#: The limit that a method is compared with: the same learner with labels; others than these are compared with a line.
TREES = ["CountBoosting", "BagBoosting"]
#: Columns of the site's table: from what, title, unit, digits.
SHOWN = (
    ("accuracy", "accuracy", 100, 1),
    ("error", "error", 100, 1),
    ("shares", "by shares", 100, 1),
    ("untuned", "untuned", 100, 1),
    ("over majority", "over majority", 100, 1),
    ("below labels", "below labels", 100, 1),
    ("auc", "AUC", 1, 3),
    ("loss", "log-loss", 1, 3),
    ("ece", "calibration", 1, 3),
    ("cpu", "CPU seconds", 1, 2),
)


def results(choice="likelihood", folder=None):
    """The rows of one choice; a method that refuses the bags has the results of the majority.

    Parameters
    ----------
    choice : {"likelihood", "shares", "untuned"}, default "likelihood"
    folder : path, optional
        Of the files; that of the studies if not given.

    Returns
    -------
    DataFrame
        A row per task, method and draw whose limits have been run: ``VALUES``, ``cpu`` (seconds of the choice and of
        one fit, which for "untuned" are those of the fit), ``failed`` (bool), ``n_bags``, ``warned``, and the
        accuracies ``majority``, ``linear`` and ``trees``, the limits.

    Raises
    ------
    ValueError
        As `studies.load`, or for another ``choice``.
    """
    rows = load("benchmark", folder)
    if f"accuracy_{choice}" not in rows:
        raise ValueError(f"choice={choice!r} is not one of the table")
    rows = rows.rename(columns={f"{value}_{choice}": value for value in VALUES})
    rows["bag_size"], rows["failed"] = rows["bag_size"].astype(str), rows["failed"] > ""
    search = 0 if choice == "untuned" else rows["cpu_search"]
    rows["cpu"] = rows["cpu_fit"] + search
    rows["part"] = rows["kind"].where(rows["kind"] == NATURAL, ANY)
    keys, given = ["dataset", "part", "seed"], rows["method"].isin([*LIMITS])
    limits = rows[given].pivot(index=keys, columns="method", values=VALUES)
    known = limits["accuracy"].set_axis(["linear", "trees", "majority"], axis=1)
    found = rows[~given].join(known, on=keys, how="inner")
    majority = limits.xs("majority", axis=1, level="method")
    majority = found[keys].join(majority, on=keys)[VALUES]
    found[VALUES] = found[VALUES].mask(found["failed"], majority)
    columns = [*DRAW, "method", *VALUES, "cpu", "failed", "n_bags", "warned"]
    return found[[*columns, *known]].reset_index(drop=True)


def gains(found, beside, value="accuracy"):
    """What each method has more than another one, or than a limit, on the same tasks and draws.

    Parameters
    ----------
    found : DataFrame
        From `results`, or some of its rows.
    beside : str
        A method, or for accuracies "majority", "linear", "trees", or "labels": the limit of the same learner.
    value : str, default "accuracy"

    Returns
    -------
    DataFrame
        The rows for which there is a difference, with the column ``gain``.
    """
    if beside in METHODS:
        one = found[found["method"] == beside].set_index(DRAW)[value].rename("other")
        found = found.join(one, on=DRAW)
    elif beside == "labels":
        linear = ~found["method"].isin(TREES)
        found = found.assign(other=found["linear"].where(linear, found["trees"]))
    else:
        found = found.assign(other=found[beside])
    return found.assign(gain=found[value] - found["other"]).dropna(subset="gain")


def over_sets(found, value="gain", by=("method",)):
    """Mean over data sets and its standard error.

    Parameters
    ----------
    found : DataFrame
        From `results` or `gains`.
    value : str, default "gain"
    by : sequence of str, default ("method",)
        What to keep apart.

    Returns
    -------
    DataFrame
        ``mean``, ``error`` (nan for one set) and ``n_sets``, by ``by``.
    """
    kept = [f"by {name}" for name in by]  # "method" is a level of the result
    rows = found.assign(task=found["kind"] + found["bag_size"])
    rows[kept] = rows[list(by)]
    cases = rows.groupby([*kept, "dataset", "task", "seed"])[value].mean()
    table = paired_differences(cases, None, unit="dataset", by=kept).droplevel("method")
    table.index.names = list(by)
    return table.set_axis(["mean", "error", "n_sets"], axis=1).sort_index()


def common(found, methods):
    """The rows of some methods on the tasks and draws that all of them have run."""
    some = found[found["method"].isin(list(methods))]
    counts = some.groupby(DRAW)["method"].transform("nunique")
    return some[counts == len(set(methods))]


def ranks(found, methods):
    """Average ranks over data sets, on common draws; the tasks of a set are averaged before.

    Parameters
    ----------
    found : DataFrame
        From `results`.
    methods : sequence of str

    Returns
    -------
    Series
        By method, the best first.
    """
    return average_ranks(scores(found, methods)).sort_values()


def scores(found, methods, value="accuracy"):
    """Means of some methods on common draws, a row per data set: what the tests of `llpbook.comparison` take."""
    tasks = common(found, methods).groupby([*TASK, "method"])[value].mean()
    return tasks.groupby(["dataset", "method"]).mean().unstack()[list(methods)]


def ahead(found, first, rivals):
    """How much more accurate one method is than others, and Wilcoxon's test over data sets.

    Parameters
    ----------
    found : DataFrame
        From `results`.
    first : str
    rivals : sequence of str

    Returns
    -------
    DataFrame
        By rival: ``ahead`` in percent and its ``error`` over the data sets that both have run; on how many of these
        ``sets`` the first method has ``won``; ``p``, two-sided.
    """
    lines = {}
    for rival in rivals:
        pair = 100 * scores(found, [first, rival])
        gap, test = pair[first] - pair[rival], wilcoxon_test(pair[first], pair[rival])
        mean, error, n_sets = paired_differences(gap, None, unit="dataset").iloc[0]
        lines[rival] = mean, error, (gap > 0).sum(), n_sets, test.pvalue
    columns = ["ahead", "error", "won", "sets", "p"]
    table = pd.DataFrame.from_dict(lines, orient="index", columns=columns)
    return table.astype({"won": int, "sets": int})


def what_chooses(folder=None):
    """How much more accurate the choice by the likelihood is than that by the shares and the untuned setting.

    Parameters
    ----------
    folder : path, optional
        As for `results`.

    Returns
    -------
    DataFrame
        Percent, by method with a choice, and ``all`` of these methods: for ``shares`` and ``untuned`` the mean over
        data sets and its error (``± shares``, ``± untuned``).
    """
    found, table = results("likelihood", folder), pd.DataFrame()
    found = found[found["method"].map(lambda method: bool(METHODS[method][1]))]
    for choice in ("shares", "untuned"):
        other = results(choice, folder)["accuracy"]
        more = found.assign(gain=100 * (found["accuracy"] - other))
        part = over_sets(more)
        part.loc["all"] = over_sets(more.assign(method="all")).loc["all"]
        table[choice], table[f"± {choice}"] = part["mean"], part["error"]
    return table


def by_bags(found, beside="labels"):
    """Gains by bag size, on the data sets that have bags of all three sizes; natural bags are left out.

    Parameters
    ----------
    found : DataFrame
        From `results`.
    beside : str, default "labels"
        As for `gains`.

    Returns
    -------
    DataFrame
        ``mean``, ``error`` and ``n_sets`` in percent, by ``bag_size`` and ``method``, for methods that have run on all
        three sizes; the larger bags are the fewer ones.
    """
    rows = found[found["kind"] != NATURAL]
    sizes = rows.groupby(["dataset", "method"])["bag_size"].transform("nunique")
    rows = gains(rows[sizes == len(SIZES)], beside)
    table = over_sets(rows.assign(gain=100 * rows["gain"]), by=["bag_size", "method"])
    return table.loc[[str(size) for size in SIZES if str(size) in table.index]]


def summary_table(choice="likelihood", folder=None):
    """One row per method, the most accurate above the majority first.

    Parameters
    ----------
    choice, folder
        As for `results`.

    Returns
    -------
    DataFrame
        Percent: ``over majority`` and ``over counts`` (`CountLogistic`), paired, each with its error over data sets,
        and ``below labels``, the gap to the same learner with labels. Means over data sets of ``auc``, ``loss``,
        ``ece``; ``cpu`` is the median over rows. ``failed`` counts rows of ``n``; ``sets``, ``tasks`` and ``draws``
        (the most of one task) say what has run.
    """
    found = results(choice, folder)
    table = pd.DataFrame(index=pd.Index([*METHODS], name="method"))
    for name, beside in (
        ("over majority", "majority"),
        ("over counts", "CountLogistic"),
        ("below labels", "labels"),
    ):
        part = 100 * over_sets(gains(found, beside))
        table[name] = -part["mean"] if name == "below labels" else part["mean"]
        table[f"± {name.split()[1]}"] = part["error"]
    for value in VALUES[1:]:
        table[value] = over_sets(found, value)["mean"]
    groups = found.groupby("method")
    table["cpu"], table["failed"] = groups["cpu"].median(), groups["failed"].sum()
    table["n"], table["sets"] = groups.size(), groups["dataset"].nunique()
    table["tasks"] = found.drop_duplicates([*TASK, "method"]).groupby("method").size()
    table["draws"] = groups["seed"].nunique()
    table = table.dropna(subset="n").sort_values("over majority", ascending=False)
    return table.astype(dict.fromkeys(["failed", "n", "sets", "tasks", "draws"], int))


def dominated(found, margin=0.0):
    """Methods that are never worth their time: another one is as accurate on every kind of bags, and cheaper.

    Parameters
    ----------
    found : DataFrame
        From `results`.
    margin : float, default 0
        How much the mean of the other may be lower on a kind.

    Returns
    -------
    DataFrame
        A row per method and method that dominates it on their common draws, over at least two kinds: ``gain`` (mean
        over data sets, with ``error``) and ``times``, the median over these draws of how many times cheaper the other
        one is. Draws on which one of them refuses the bags count for the accuracy, not for the time.
    """
    lines = []
    for method in METHODS:
        for other in METHODS:
            pair = common(found, [method, other])
            if method == other or pair["kind"].nunique() < 2:
                continue
            more = gains(pair, method)
            more = more[more["method"] == other]
            cost = pair.pivot(index=DRAW, columns="method", values="cpu")
            times = (cost[method] / cost[other]).median()
            kinds = over_sets(more, by=["kind"])["mean"]
            if (kinds >= -margin).all() and times > 1:
                mean, error, n_sets = over_sets(more).loc[other]
                lines.append((method, other, mean, error, n_sets, times))
    columns = ["method", "by", "gain", "error", "n_sets", "times"]
    return pd.DataFrame(lines, columns=columns).astype({"n_sets": int})


def site_rows(folder=None):
    """The table of the site: a row per task and method, means over draws, in words and rounded.

    Parameters
    ----------
    folder : path, optional
        As for `results`.

    Returns
    -------
    DataFrame
        Accuracies in percent: of the choice by the likelihood, with its standard error over the draws
        (corrected: they share training instances), by the shares
        and untuned; the gain over the majority and the gap to the same learner with labels. Then of the choice by
        likelihood. Empty where there is nothing.
    """
    keys, found = [*TASK, "method"], results("likelihood", folder)
    found["below labels"] = -gains(found, "labels")["gain"]
    found["over majority"] = found["accuracy"] - found["majority"]
    for choice in ("shares", "untuned"):
        found[choice] = results(choice, folder)["accuracy"]
    groups = found.groupby(keys)
    means = groups.mean(numeric_only=True).assign(error=_over_draws(found))
    table = pd.DataFrame(index=means.index)
    for column, title, unit, digits in SHOWN:
        values = (unit * means[column]).round(digits) + 0.0  # no -0.0
        table[title] = values.map(f"{{:.{digits}f}}".format).where(values.notna(), "")
    table["classes"] = [DATASETS[name][1] for name, *_ in means.index]
    table["bags"] = means["n_bags"].round().astype(int)
    table["draws"], table["failed"] = groups.size(), groups["failed"].sum()
    table = table.assign(best=-means["accuracy"]).reset_index()
    for key, names in {"dataset": [*DATASETS], "kind": [*KINDS, NATURAL]}.items():
        table[key] = pd.Categorical(table[key], names)
    table["place"] = pd.to_numeric(table["bag_size"], errors="coerce")
    table = table.sort_values(["dataset", "kind", "place", "best"], kind="stable")
    names = {"dataset": "data set", "bag_size": "size"}
    return table.drop(columns=["place", "best"]).rename(columns=names)


def _over_draws(found):
    """Errors of accuracies over the draws of a task, which share the instances of its data set."""
    parts = []
    for name, part in found.set_index([*DRAW, "method"]).groupby(level="dataset"):
        n = DATASETS[name][0]
        trained = min(n // 2, N_BAGGED)
        ratio = min(n - trained, N_NEW) / trained
        wide = part["accuracy"].unstack()
        options = {"unit": "seed", "by": TASK, "test_train_ratio": ratio}
        parts.append(paired_differences(wide, None, **options)["error"])
    return pd.concat(parts)


def site_table(folder=None):
    """`site_rows` as HTML; the script ``benchmark.js`` of the site lets a reader sort and filter it."""
    rows = site_rows(folder)
    head = "".join(f'<th scope="col">{escape(name)}' for name in rows)
    body = "\n".join(
        "<tr>" + "".join(f"<td>{escape(str(value))}" for value in row)
        for row in rows.itertuples(index=False)
    )
    return (
        '<div class="benchmark" tabindex="0" role="region" aria-label="All rows of the benchmark">\n'
        f"<table><thead><tr>{head}</thead>\n<tbody>\n{body}\n</tbody></table></div>\n"
    )
