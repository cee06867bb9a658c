"""Every cell of the papers' tables beside ours: the verdict of the one rule, and what a difference is put down to.

A cell that *differs* is one of three things. It is *small* where the difference is less than what the table resolves.
It is *explained* where the paper's number cannot be what it says it is (``IMPOSSIBLE``), or where it agrees under
another reading of what the paper leaves open. Such a reading must have been run with as many draws, and over the cells
of its method for which it was run, in all tables of the paper, more must agree under it and fewer must differ. Else it
is *open*. Where several readings of a method qualify, the one under which most cells agree counts, and no other.
"""

from functools import cache

import numpy as np
import pandas as pd

from llpbook.plotting import Table

from . import duplessis2013, franco2023_beside, perezortiz2016, stolpe2011, yu2013
from ._agreement import paper_table, resolution

PAPERS = {
    "stolpe2011": "Stolpe and Morik (2011)",
    "duplessis2013": "du Plessis and Sugiyama (2013)",
    "yu2013": "Yu et al. (2013)",
    "perezortiz2016": "Pérez-Ortiz et al. (2016)",
    "franco2023": "Franco et al. (2023)",
}
VERDICTS = ("agrees", "not distinguishable", "differs")
MARKS = {"agrees": "", "not distinguishable": "?", "differs": "*", "": ""}
KEYS = ["table", "dataset", "method", "bag_size"]
# Settings of a study that are readings of what the paper leaves open; those of ours that no paper suggests are not.
READINGS = {
    "duplessis2013": tuple(duplessis2013.SETTINGS),
    "yu2013": ("no intercept", "folds split bags", "mean loss"),
    "perezortiz2016": ("features as they are", "no prior", "linear logits"),
}
# Cells of Table II in which the paper prints one number for three methods and three bag sizes.
IMPOSSIBLE = {"perezortiz2016": ("II", ("glass", "primary-tumor"))}


def _stolpe():
    found = stolpe2011.compare().assign(table="2", dataset="rank over 8 sets")
    return found, {"2": _resolves("stolpe2011_table2", ["bag_size"], "average_rank")}


@cache  # many draws, and each setting is asked for twice
def _duplessis(setting=None):
    parts, sizes = [], {}
    for priors, name in duplessis2013.PAPER_TABLES.items():
        number = name[-1]
        sizes[number] = _resolves(name, ["dataset"], "ler_mean")
        if setting is None:
            part = duplessis2013.compare(name)
        elif priors in duplessis2013.SETTINGS[setting][2]:
            settings = "duplessis2013_settings"
            part = duplessis2013.compare(settings, priors, setting=setting)
        else:
            continue
        parts.append(part.dropna(subset="paper").assign(table=number, bag_size=40))
    return pd.concat(parts, ignore_index=True), sizes


def _yu(setting=None):
    if setting is not None:
        rows = yu2013.compare("yu2013_meanmap_settings")
        return rows[rows["setting"] == setting].assign(table="2"), None
    parts = [yu2013.compare(f"yu2013_{name}") for name in ("meanmap", "margins")]
    found = pd.concat(parts, ignore_index=True).assign(table="2")
    return found, {"2": _resolves("yu2013_table2", ["dataset", "bag_size"], "acc_mean")}


def _perezortiz(setting=None):
    if setting is not None:
        rows = perezortiz2016.compare("perezortiz2016_settings")
        return rows[rows["setting"] == setting].assign(table="II"), None
    found = perezortiz2016.compare()
    one = found["method"] == "LDA"
    size = _resolves("perezortiz2016_table2", ["dataset", "bag_size"], "acc_mean")
    return found.assign(table=np.where(one, "I", "II")), {"I": size, "II": size}


def _franco():
    found = franco2023_beside.beside()
    percent = ["paper", "ours", "difference", "se"]
    found[percent] = 100 * found[percent]
    found["bag_size"] = found["strategy"].map(franco2023_beside.SHORT)
    cases = found["dataset"].str.replace(r"-\d+bags.*", "", regex=True)
    gap = resolution(franco2023_beside.published(), ["dataset", "method"], "mean")
    return found.assign(dataset=cases, table=""), {"": 100 * gap}


LOADERS = {
    "stolpe2011": _stolpe,
    "duplessis2013": _duplessis,
    "yu2013": _yu,
    "perezortiz2016": _perezortiz,
    "franco2023": _franco,
}


def _resolves(name, rows, value):
    return resolution(paper_table(name), rows, value)


def cells(paper):
    """Every cell of a paper's tables for which there are rows.

    Parameters
    ----------
    paper : str
        A key of ``PAPERS``.

    Returns
    -------
    DataFrame
        ``table, dataset, method, bag_size, paper, here, difference, se, draws, verdict, why, reading``: ``here`` is our
        mean and ``why`` is "small", "explained" or "open" where the verdict is "differs", else empty; ``reading`` names
        the reading under which an explained cell agrees. ``bag_size`` holds the strategy of franco2023.

    Raises
    ------
    ValueError
        If there is no such paper.
    """
    if paper not in PAPERS:
        raise ValueError(f"paper={paper!r} is none of: {', '.join(PAPERS)}")
    found, sizes = LOADERS[paper]()
    found = found.rename(columns={"ours": "here", "n_seeds": "draws"})
    found = found.reset_index(drop=True)
    differs = found["verdict"] == "differs"
    small = found["difference"].abs() < found["table"].map(sizes)
    reading = _agreeing_reading(paper, found)
    if paper in IMPOSSIBLE:
        table, sets = IMPOSSIBLE[paper]
        hit = (found["table"] == table) & found["dataset"].isin(sets)
        reading = reading.mask(hit, "the print is a constant")
    why = np.where(small, "small", np.where(reading != "", "explained", "open"))
    found["why"] = np.where(differs, why, "")
    found["reading"] = reading.where(found["why"] == "explained", "")
    columns = ["paper", "here", "difference", "se", "draws", "verdict", "why"]
    return found[[*KEYS, *columns, "reading"]]


def readings(paper):
    """What each reading of what a paper leaves open does to the verdicts, over the cells for which it was run.

    Parameters
    ----------
    paper : str

    Returns
    -------
    DataFrame
        A row for each method and reading: ``cells``, ``draws`` (the fewest of the reading), the cells that agree and
        differ as we read the paper (``agree, differ``) and under the reading (``then agree, then differ``), and
        ``counts``: whether the reading counts as an explanation, by the rule of this module but for the choice of one.
    """
    base = _keyed(LOADERS[paper]()[0])
    rows = []
    for name in READINGS.get(paper, ()):
        other = _keyed(LOADERS[paper](name)[0])
        both = other.join(base.add_suffix("_base")).reset_index()
        for method, part in both.groupby("method", sort=False):
            row = {"method": method, "reading": name, "cells": len(part)}
            row["draws"] = part["n_seeds"].min()
            for label, column in (("", "verdict_base"), ("then ", "verdict")):
                for verdict, word in (("agrees", "agree"), ("differs", "differ")):
                    row[label + word] = (part[column] == verdict).sum()
            enough = (part["n_seeds"] >= part["n_seeds_base"]).all()
            better = row["then agree"] > row["agree"]
            row["counts"] = enough and better and row["then differ"] < row["differ"]
            rows.append(row)
    return pd.DataFrame(rows)


def _keyed(found):
    return found.set_index(KEYS)[["verdict", "n_seeds"]]


def _agreeing_reading(paper, found):
    """For each cell the reading of its method that counts, where the cell agrees under it; else an empty string."""
    table = readings(paper)
    result = pd.Series("", index=pd.MultiIndex.from_frame(found[KEYS]))
    if len(table):
        table = table[table["counts"]].sort_values("then agree", kind="stable")
        for method, name in table.groupby("method")["reading"].last().items():
            other = _keyed(LOADERS[paper](name)[0]).query("verdict == 'agrees'")
            other = other[other.index.get_level_values("method") == method]
            result.loc[result.index.isin(other.index)] = name
    return result.reset_index(drop=True)


def counts(found, by):
    """Cells of each verdict, what the differing ones are put down to, and draws.

    Parameters
    ----------
    found : DataFrame
        From `cells`.
    by : str or list of str

    Returns
    -------
    DataFrame
        ``cells``, one column for each verdict, ``small, explained, open`` of those that differ, ``draws`` as
        "fewest–most".
    """
    keys = [found[name] for name in np.atleast_1d(by)]
    groups = found.groupby(keys, sort=False)
    table = groups.size().rename("cells").to_frame()
    for column, values in (
        ("verdict", VERDICTS),
        ("why", ("small", "explained", "open")),
    ):
        for value in values:
            table[value] = found[column].eq(value).groupby(keys, sort=False).sum()
    span = groups["draws"].agg(["min", "max"]).astype(int).astype(str)
    same = span["min"] == span["max"]
    return table.assign(draws=span["min"].where(same, span["min"] + "–" + span["max"]))


def own_verdicts(paper, method=None, name=None):
    """How many cells of a paper's tables agree with ours, as the table of a page.

    Parameters
    ----------
    paper : str
        A key of ``PAPERS``.
    method : str, optional
        As in `cells`; all methods of the paper if not given.
    name : str, optional
        What the page calls the method; ``method`` if not given.

    Returns
    -------
    llpbook.plotting.Table
    """
    found = cells(paper)
    found = found[found["method"] == method] if method else found
    columns = {head: "{:d}" for head in ("cells", *VERDICTS)}
    caption = (
        f"Verdicts for {name or method} on the tables of {PAPERS[paper]}. Cells: how many the paper prints and we have "
        "run. Not distinguishable: our standard error is too large to tell."
    )
    return Table(counts(found, "table"), caption, columns, rows="table")


def overview():
    """The counts of all papers' tables.

    Returns
    -------
    DataFrame
        A row for each table and a last one for all: ``printed``, cells of the table as we have it, then `counts`.
    """
    names = {
        ("stolpe2011", "2"): "stolpe2011_table2",
        ("duplessis2013", "1"): "duplessis2013_table1",
        ("duplessis2013", "2"): "duplessis2013_table2",
        ("yu2013", "2"): "yu2013_table2",
        ("perezortiz2016", "I"): "perezortiz2016_table1",
        ("perezortiz2016", "II"): "perezortiz2016_table2",
        ("franco2023", ""): "franco2023_results",
    }
    every = pd.concat(cells(paper).assign(key=paper) for paper in PAPERS)
    table = counts(every, ["key", "table"]).loc[list(names)]
    table.insert(0, "printed", [len(paper_table(name)) for name in names.values()])
    total = table.drop(columns="draws").sum().rename(("all", ""))
    table = pd.concat([table, total.to_frame().T.assign(draws="")])
    return table.astype({c: int for c in table if c != "draws"})


#: What a table of verdicts says in its caption.
OF_VERDICTS = (
    "Cells by verdict. Not distinguishable: the standard error is too large to tell. Small, explained and open divide "
    "the cells that differ. Draws: the results behind one of our means, fewest to most."
)


def verdict_table(found, by, what, rows=""):
    """`counts` as the table of a page.

    Parameters
    ----------
    found, by
        As for `counts`.
    what : str
        Which cells, the beginning of the caption.
    rows : str, default ""
        What a row is.

    Returns
    -------
    llpbook.plotting.Table
    """
    table = counts(found, by)
    return Table(table, f"{what}. {OF_VERDICTS}", dict.fromkeys(table, "{}"), rows=rows)


def difference_table(found, what, digits=1, columns="bag_size", heads="bags of {}"):
    """Differences, ours minus the paper's, as the table of a page: a row per data set, and per method of several.

    Parameters
    ----------
    found : DataFrame
        From `cells`, of one table.
    what : str
        Of which table and method, and the unit: the beginning of the caption.
    digits : int, default 1
    columns : {"bag_size", "method"}, default "bag_size"
    heads : str, default "bags of {}"
        Head of a column from its value.

    Returns
    -------
    llpbook.plotting.Table
        A star marks a cell that differs, a question mark one that is not distinguishable.
    """
    text = found["difference"].map(f"{{:+z.{digits}f}}".format)
    shown = found.assign(shown=text + found["verdict"].map(MARKS))
    shown = shown.assign(head=shown[columns].map(heads.format))
    words = {"method": "method", "dataset": "data set"}
    keys = [key for key in words if key != columns and found[key].nunique() > 1]
    wide = shown.set_index([*keys, "head"])["shown"].unstack(sort=False)
    caption = (
        f"{what}: ours minus the paper's. A star marks a cell that differs, a question mark one that is not "
        "distinguishable; a cell without a mark agrees."
    )
    rows = ", ".join(words[key] for key in keys)
    return Table(wide, caption, dict.fromkeys(wide, "{}"), rows=rows)


def cell_table(found, what, digits=1, sizes="bag size"):
    """Every cell as the table of a page, with the verdict and what a difference is put down to.

    Parameters
    ----------
    found : DataFrame
        From `cells`.
    what : str
        Of which table, and the unit: the beginning of the caption.
    digits : int, default 1
    sizes : str, default "bag size"
        What ``bag_size`` holds.

    Returns
    -------
    llpbook.plotting.Table
    """
    words = dict(zip(KEYS, ("table", "data set", "method", sizes), strict=True))
    keys = [key for key in KEYS if found[key].nunique() > 1]
    verdict = found["verdict"].where(
        found["why"] == "", found["verdict"] + ", " + found["why"]
    )
    table = found.assign(verdict=verdict).set_index(keys)
    number = f"{{:.{digits}f}}"
    columns = {
        "paper": number,
        "here": number,
        "difference": (f"{{:+z.{digits}f}} ± {number}", "difference", "se"),
        "draws": "{:d}",
        "verdict": "{}",
    }
    caption = (
        f"{what}. Difference: ours minus the paper's, ± its standard error. A cell that differs is small, explained or "
        "open."
    )
    return Table(table, caption, columns, rows=", ".join(words[key] for key in keys))


def reading_table(paper):
    """`readings` as the table of a page.

    Parameters
    ----------
    paper : str

    Returns
    -------
    llpbook.plotting.Table
    """
    table = readings(paper).set_index(["method", "reading"])
    table["counts"] = table["counts"].map({True: "yes", False: "no"})
    columns = {
        "cells": "{:d}",
        "draws": "{:d}",
        "agree, our reading": ("{:d}", "agree"),
        "agree, other reading": ("{:d}", "then agree"),
        "differ, our reading": ("{:d}", "differ"),
        "differ, other reading": ("{:d}", "then differ"),
        "explains": ("{}", "counts"),
    }
    caption = (
        "Cells that agree and differ as we read the paper, and under another reading of what it leaves open. Explains: "
        "whether the reading counts as an explanation."
    )
    return Table(table, caption, columns, rows="method, reading")
