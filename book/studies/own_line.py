"""One method's line of the common tables: natural bags, the wards of heart, the benchmark.

Each entry is a paired difference of accuracies on new instances with its standard error over what is independent: over
data sets in the benchmark, over draws elsewhere. Draws of one data set share training instances, so their errors are
the corrected ones of `llpbook.comparison.paired_differences`, which are up to six times as large as the usual ones.
"""

import pandas as pd

from llpbook.comparison import paired_differences
from llpbook.plotting import Table

from .benchmark import DATASETS
from .benchmark_tables import results
from .natural import RATIOS
from .runner import load
from .thread import PARTS

RIVALS = {"majority": "majority", "ridge": "ridge", "CountLogistic": "counts", "labels": "labels"}  # fmt: skip
#: A draw of the wards is a whole cross-validation: the mean over k folds has k / (k - 1).
WARDS, WARDS_RATIO = "heart, wards of 8", PARTS / (PARTS - 1)


def own_line(method, folder=None):
    """What a method gains over others, on the tables that all methods share.

    Parameters
    ----------
    method : str
        A key of ``METHODS`` of the studies.
    folder : path, optional
        Of the results; that of the studies if not given.

    Returns
    -------
    DataFrame of str
        One row per grouping, for the wards, and for the benchmark with two and with several classes. ``accuracy`` in
        percent; then the accuracy less that of the majority class, of the ridge on bag means, of the likelihood of the
        counts and of the same learner with labels, in points, with the standard error; ``over``: of what the error is.

    Raises
    ------
    ValueError
        As `load`, or if a table has no row of the method; the message says how to run it.
    """
    natural, wards = load("natural", folder), load("thread", folder)
    known = {
        "natural": natural,
        "thread": wards,
        "benchmark": load("benchmark", folder),
    }
    for table, rows in known.items():
        if method not in set(rows["method"]):
            raise ValueError(
                f"method must have rows in the table {table}, got {method!r}; an entry of METHODS gets them by "
                f'make reproduce TABLE={table} ARGS="--only method={method}", see CONTRIBUTING.md'
            )
    lines = {}
    for how, ratio in RATIOS.items():
        scores = natural[natural["how"] == how].pivot(
            index="seed", columns="method", values="accuracy"
        )
        lines[how] = _line(scores, method, "seed", "draws", ratio)
    scores = wards.pivot(index="seed", columns="method", values="accuracy")
    lines[WARDS] = _line(scores, method, "seed", "draws", WARDS_RATIO)
    scores = _benchmark(method, folder)
    several = scores.index.get_level_values("dataset").map(lambda n: DATASETS[n][1] > 2)
    for name, some in (("two classes", ~several), ("several classes", several)):
        if scores[some][method].notna().any():
            lines[f"benchmark, {name}"] = _line(scores[some], method, "dataset", "sets")
    return pd.DataFrame(lines).T.fillna("")


def own_table(method, name=None):
    """The line of `own_line` as the table of a page.

    Parameters
    ----------
    method : str
        A key of ``METHODS`` of the studies.
    name : str, optional
        What the page calls the method; ``method`` if not given.

    Returns
    -------
    llpbook.plotting.Table
    """
    line = own_line(method)
    columns = {"accuracy, %": ("{}", "accuracy")}
    columns |= {
        f"minus {rival}, points": ("{}", f"less {rival}") for rival in RIVALS.values()
    }
    caption = (
        f"{name or method}'s accuracy on new instances, and the difference to the majority class, to the ridge on bag "
        "means, to the likelihood of the counts and to logistic regression on all labels, ± standard error. Negative: "
        f"{name or method} is less accurate. A row is the mean over 20 draws of the bags of one data set; in the two "
        "benchmark rows, the mean over data sets. Adult: 1,000 people in bags (random: 40 bags of 25)."
    )
    return Table(line, caption, columns | {"mean over": ("{}", "over")}, rows="bags")


def every_line(folder=None):
    """All methods beside the ridge on bag means, on natural bags and on the wards.

    Parameters
    ----------
    folder : path, optional
        Of the results; that of the studies if not given.

    Returns
    -------
    DataFrame
        One row per method. For each grouping and the wards ``accuracy`` in percent, the difference to the ridge in
        points (``less ridge``) and its corrected standard error over the draws (``±``).
    """
    natural, wards, parts = load("natural", folder), load("thread", folder), {}
    for how, ratio in {**RATIOS, WARDS: WARDS_RATIO}.items():
        rows = wards if how == WARDS else natural[natural["how"] == how]
        scores = 100 * rows.pivot(index="seed", columns="method", values="accuracy")
        found = paired_differences(scores, "ridge", unit="seed", test_train_ratio=ratio)
        found = found[["difference", "error"]].set_axis(["less ridge", "±"], axis=1)
        parts[how] = scores.mean().to_frame("accuracy").join(found)
    return pd.concat(parts, axis=1).rename_axis(None)


def _benchmark(method, folder):
    """Accuracies of the benchmark: a row per draw, a column per method; the limits are beside the method."""
    index = ["dataset", "task", "seed"]
    found = results(folder=folder)
    found["task"] = found["kind"] + found["bag_size"]
    limits = found[found["method"] == method].set_index(index)
    scores = found.pivot(index=index, columns="method", values="accuracy")
    trees = method in ("CountBoosting", "BagBoosting")
    labels = limits["trees" if trees else "linear"]
    return scores.assign(majority=limits["majority"], labels=labels)


def _line(scores, method, unit, units, ratio=0):
    """One row of the table, as text."""
    scores = 100 * scores[scores[method].notna()]
    level = scores[[method]].assign(nothing=0.0)
    level = paired_differences(level, "nothing", unit=unit, test_train_ratio=ratio)
    line = {"accuracy": f"{level['difference'].iloc[0]:.1f}"}
    for rival, name in RIVALS.items():
        if rival == method:
            continue
        found = paired_differences(
            scores[[method, rival]], rival, unit=unit, test_train_ratio=ratio
        )
        if len(found):
            difference, error = found.iloc[0, :2]
            line[f"less {name}"] = f"{difference:+.1f} ± {error:.1f}"
    return {**line, "over": f"{int(level.iloc[0, 2])} {units}"}
