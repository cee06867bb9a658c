"""The twenty largest open cells of four papers, each with one change of the protocol at a time.

A row is a cell, a change and a seed; ``value`` is in the unit of the print. A change that brings a cell near the print
explains nothing by itself: it was tried only where we differ. So these rows serve no verdict (`studies.papers` takes
its readings from other tables); they say which changes are near, and which are not.

The cells are those of `largest` when the rows were made. ``penalty by labels`` is no protocol: it is the best accuracy
of any penalty of MeanMap, which no choice of the penalty can exceed.
"""

import warnings
from functools import partial

import pandas as pd

from llpbook import SMIC, ConvSVM, MeanMap

from . import duplessis2013, papers, perezortiz2016, yu2013
from .runner import Table, load

PROTOCOL = "open_cells-1"
N_CELLS = 20
CELL = ["key", "table", "dataset", "method", "bag_size"]
PAPERS = ("stolpe2011", "duplessis2013", "yu2013", "perezortiz2016")
PENALTIES = [10.0**k for k in range(-3, 5)]
WEIGHTS = ("one round", "five rounds")
COMMON = ("no prior", "nearest mean in two directions", "folds not stratified")
CHANGES = {
    "SMIC": (
        "features as they are",
        "counts drawn",
        "unit range and one start",
        "seven neighbors",
    ),
    "MeanMap": ("no intercept", "folds split bags", "mean loss", "penalty by labels"),
    "ConvSVM": ("one labeling", "six labelings"),
    "LDA": COMMON,
    "SWS-LDA": COMMON,
    "FWS-LDA": ("features as they are", *COMMON, *WEIGHTS),
    "WWS-LDA": (*COMMON, *WEIGHTS),
}
#: Key, table, data set, method and bag size.
CELLS = [
    ("yu2013", "2", "australian", "ConvSVM", 64),
    ("perezortiz2016", "II", "ecoli", "WWS-LDA", 10),
    ("perezortiz2016", "I", "primary-tumor", "LDA", 1),
    ("yu2013", "2", "colic", "MeanMap", 64),
    ("yu2013", "2", "dna-1", "MeanMap", 64),
    ("perezortiz2016", "II", "nursery", "WWS-LDA", 5),
    ("perezortiz2016", "I", "glass", "LDA", 1),
    ("perezortiz2016", "II", "ecoli", "SWS-LDA", 3),
    ("perezortiz2016", "II", "nursery", "WWS-LDA", 10),
    ("perezortiz2016", "II", "ecoli", "FWS-LDA", 3),
    ("yu2013", "2", "heart", "MeanMap", 64),
    ("perezortiz2016", "II", "ecoli", "WWS-LDA", 5),
    ("duplessis2013", "1", "heart", "SMIC", 40),
    ("yu2013", "2", "vote", "MeanMap", 64),
    ("perezortiz2016", "II", "wisconsin", "FWS-LDA", 10),
    ("duplessis2013", "2", "heart", "SMIC", 40),
    ("yu2013", "2", "heart", "MeanMap", 32),
    ("perezortiz2016", "II", "ecoli", "WWS-LDA", 3),
    ("perezortiz2016", "II", "zoo", "SWS-LDA", 5),
    ("yu2013", "2", "dna-1", "MeanMap", 32),
]


def largest(n=N_CELLS):
    """The open cells of the four papers whose difference is the most of what its table resolves.

    Parameters
    ----------
    n : int, default N_CELLS

    Returns
    -------
    DataFrame
        ``CELL``, ``paper``, ``here``, ``draws``, and ``times``, the difference over what the table resolves.
    """
    parts = []
    for key in PAPERS:
        found, (_, sizes) = papers.cells(key), papers.LOADERS[key]()
        times = found["difference"].abs() / found["table"].map(sizes)
        parts.append(found.assign(key=key, times=times)[found["why"] == "open"])
    found = pd.concat(parts).nlargest(n, "times")
    return found[[*CELL, "paper", "here", "draws", "times"]].reset_index(drop=True)


def _yu(cell, seed):
    if cell["method"] == "ConvSVM":
        most = {"one labeling": 1, "six labelings": 6}[cell["change"]]
        grid = yu2013.METHODS["ConvSVM"].grid
        method = yu2013.Method(ConvSVM(max_cutting_planes=most), grid)
        methods = [yu2013.distinct_counts(method, cell["bag_size"])]
    elif cell["change"] == "penalty by labels":
        methods = [yu2013.Method(MeanMap(alpha=alpha)) for alpha in PENALTIES]
    else:
        found = yu2013.run_setting({**cell, "setting": cell["change"]}, seed)
        return 100 * found["accuracy"]
    problem = yu2013.make_problem(cell["dataset"], cell["bag_size"], seed)
    return 100 * max(yu2013.cross_validate(m, *problem)["accuracy"] for m in methods)


def _duplessis(cell, seed):
    priors = {"1": "0.2-0.8", "2": "0.35-0.65"}[cell["table"]]
    where = {"dataset": cell["dataset"], "priors": priors, "sizes": "40-40"}
    if cell["change"] != "seven neighbors":
        where |= {"method": "SMIC", "setting": cell["change"]}
        return duplessis2013.run_setting(where, seed)["ler"]
    problem = duplessis2013.make_problem(*where.values(), seed)
    label = duplessis2013.two_bags(partial(SMIC, n_neighbors=7), lambda model: "")
    return duplessis2013.evaluate(label, *problem, seed)["ler"]


def _perezortiz(cell, seed):
    found = perezortiz2016.run({**cell, "setting": cell["change"]}, seed)
    return 100 * found["accuracy"]


def run(cell, seed):
    """One row: a cell under one change."""
    studies = {
        "yu2013": _yu,
        "duplessis2013": _duplessis,
        "perezortiz2016": _perezortiz,
    }
    with warnings.catch_warnings(action="ignore"):
        value = studies[cell["key"]](cell, seed)
    return {"value": round(float(value), 6)}


def beside(results=None):
    """The twenty cells with each change beside the print.

    Parameters
    ----------
    results : path, optional

    Returns
    -------
    DataFrame
        Indexed by ``CELL``, in the order of ``CELLS``: ``paper``, ``here``, the change that is ``nearest`` to the
        print, its mean (``then``), ``left``, the share of the difference that is left, and ``tried``, the number of
        changes. "penalty by labels" is no candidate.
    """
    rows = load("open_cells", results)
    rows["table"] = rows["table"].astype(str)
    means = rows.groupby([*CELL, "change"])["value"].mean().unstack()
    means = means.drop(columns="penalty by labels", errors="ignore")
    # Of two classes there is one direction, in which the nearest mean is no prior.
    means = means[sorted(means, key=lambda name: name != "no prior")]
    every = pd.concat(papers.cells(key).assign(key=key) for key in PAPERS)
    index = pd.MultiIndex.from_tuples(CELLS, names=CELL)
    both = every.set_index(CELL)[["paper", "here"]].loc[index]
    gaps = means.loc[index].sub(both["paper"], axis=0)
    nearest = gaps.abs().idxmin(axis=1)
    then = pd.Series([means.loc[c, name] for c, name in nearest.items()], index=index)
    left = (then - both["paper"]) / (both["here"] - both["paper"])
    tried = gaps.notna().sum(axis=1)
    return both.assign(nearest=nearest, then=then, left=left, tried=tried)


def penalty_by_labels(results=None):
    """Mean and deviation over draws of MeanMap with the best penalty by labels, beside the print (``paper``)."""
    rows = load("open_cells", results).query("change == 'penalty by labels'")
    found = rows.groupby(["dataset", "bag_size"])["value"].agg(["mean", "std"])
    printed = beside(results)["paper"].xs("MeanMap", level="method")
    return found.join(printed.droplevel(["key", "table"]))


TABLES = [
    Table(
        "open_cells",
        PROTOCOL,
        [
            {**dict(zip(CELL, cell, strict=True)), "change": change}
            for cell in CELLS
            for change in CHANGES[cell[3]]
        ],
        run,
        "the twenty largest open cells of four papers, with one change of the protocol at a time",
        value="value",
    )
]
