"""The tables of the papers, and one rule beside each: do our means agree with the printed ones, and can we tell?"""

from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

TABLES = Path(__file__).parent / "tables"


def paper_table(name):
    """A table as a paper prints it.

    Parameters
    ----------
    name : str
        For instance "yu2013_table2"; rows that the source lacks are lacking here.

    Returns
    -------
    DataFrame

    Raises
    ------
    ValueError
        If there is no such table.
    """
    known = {path.stem: path for path in sorted(TABLES.glob("*.csv"))}
    if name not in known:
        raise ValueError(f"name={name!r} is not a table; known: {', '.join(known)}")
    return pd.read_csv(known[name])


def resolution(printed, rows, value):
    r"""What a paper's table resolves: the median, over its rows, of the gap between its best and its second method.

    Differences of this size are what the table is read for. The median, because many rows have ties: the gap of its own
    row would ask for a precision that the paper does not have, and rows with one method have none.

    Parameters
    ----------
    printed : DataFrame
        From `paper_table`.
    rows : list of str
        Columns that name a row, such as the data set and the bag size.
    value : str
        Column of the printed means: the smallest is the best in tables of errors and ranks (``ler_mean``,
        ``average_rank``), the largest in those of accuracies.

    Returns
    -------
    float
    """
    sign = 1 if value in ("ler_mean", "average_rank") else -1
    sorted_rows = (np.sort(sign * v) for _, v in printed.groupby(rows)[value])
    return float(np.median([v[1] - v[0] for v in sorted_rows if len(v) > 1]))


def agreement(table, n_paper, resolves, level=0.05):
    r"""Compare means of ours with the printed means of a paper.

    If both come from the same protocol, the N results behind a printed mean and our n have one distribution, whose
    standard deviation s *ours* estimate, since ours can be recomputed. Then

    .. math:: t = \frac{\text{ours} - \text{paper}}{s \sqrt{1/n + 1/N}}

    has Student's distribution with n - 1 degrees of freedom (exactly for normal results, nearly for means of these
    numbers), and the denominator is the standard error. A cell *differs* where a two-sided test at ``level`` rejects.
    One that it does not reject *agrees* if the standard error is at most ``resolves``, the size of a difference that
    the table is read for (`resolution`), and is *not distinguishable* if it is larger: then even a difference of that
    size would be found in one case of six at most. Three things follow. Of 60 cells from the same protocol three are
    expected to differ. What differs may differ by little, and what agrees is not proved equal, so the difference is
    shown. And more draws make the rule stricter, as they should.

    The printed deviation is not used: where it is the deviation over the paper's results, it adds little; in tables
    where it cannot be that, a rule that trusts it calls cells equal because a paper printed a large number. Whether it
    can be is told apart: the ratio of the variances has the F distribution with N - 1 and n - 1 degrees of freedom,
    and outside its central 99.9 % (wide, since results need not be normal) the printed deviation *does not fit*.

    Parameters
    ----------
    table : DataFrame
        Columns ``paper``, ``paper_sd`` (NaN where nothing is printed), ``ours``, ``sd``, ``n_seeds``.
    n_paper : int
        Results behind a printed mean.
    resolves : float
        In the unit of the means, above 0.
    level : float, default 0.05

    Returns
    -------
    DataFrame
        ``table`` with the columns ``difference`` (ours less the paper's), ``se``, ``verdict`` ("agrees", "differs",
        "not distinguishable", "" without a printed mean or with a single result of ours) and ``paper_sd_fits`` ("yes",
        "no", "").

    Raises
    ------
    ValueError
        If a column is missing, ``n_paper`` is below 1, or ``resolves`` is not above 0.
    """
    missing = {"paper", "paper_sd", "ours", "sd", "n_seeds"} - set(table.columns)
    if missing or n_paper < 1:
        raise ValueError(
            f"table must have the column {missing}"
            if missing
            else f"n_paper must be at least 1, got {n_paper!r}"
        )
    if not resolves > 0:
        raise ValueError(f"resolves must be above 0, got {resolves!r}")
    n, difference = table["n_seeds"], table["ours"] - table["paper"]
    se = table["sd"] * np.sqrt(1 / n + 1 / n_paper)
    bar = stats.t.ppf(1 - level / 2, np.maximum(n - 1, 1)) * se
    verdict = np.where(se <= resolves, "agrees", "not distinguishable")
    verdict = np.where(difference.abs() > bar + 1e-12, "differs", verdict)
    fits = table["paper_sd"].notna() & (table["sd"] > 0) & (n_paper > 1)
    ratio = (table["paper_sd"] / table["sd"].where(table["sd"] > 0)) ** 2
    low, high = (
        stats.f.ppf(p, max(n_paper - 1, 1), np.maximum(n - 1, 1))
        for p in (0.0005, 0.9995)
    )
    return table.assign(
        difference=difference,
        se=se,
        verdict=np.where(difference.notna() & se.notna(), verdict, ""),
        paper_sd_fits=np.where(
            fits, np.where((ratio >= low) & (ratio <= high), "yes", "no"), ""
        ),
    )


def draws_behind(first, second, sd):
    r"""How many draws stand behind printed means, from a quantity that is printed twice.

    Two independent means of N draws with standard deviation s differ by :math:`s \sqrt{2 / N}` (root mean square), so
    :math:`N = 2 \sum_k s_k^2 / \sum_k (a_k - b_k)^2`.

    Parameters
    ----------
    first, second : array-like, shape (m,)
        Printed means of the same m quantities.
    sd : array-like, shape (m,)
        Standard deviations of one draw.

    Returns
    -------
    float
    """
    gaps, sd = np.subtract(first, second), np.asarray(sd, dtype=float)
    return float(2 * np.sum(sd**2) / np.sum(gaps**2))
