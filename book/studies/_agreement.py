"""The tables of the papers, and one rule beside each: which of our means agree with the printed ones."""

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


def agreement(table, n_paper, level=0.05):
    r"""Compare means of ours with the printed means of a paper.

    If both come from the same protocol, the N results behind a printed mean and our n have one distribution, whose
    standard deviation s *ours* estimate, since ours can be recomputed. Then

    .. math:: t = \frac{\text{ours} - \text{paper}}{s \sqrt{1/n + 1/N}}

    has Student's distribution with n - 1 degrees of freedom (exactly for normal results, nearly for means of these
    numbers), and a cell *agrees* where a two-sided test at ``level`` does not reject. The denominator is the standard
    error. Three things follow. Of 60 cells that do agree three are expected to differ. What agrees is not proved equal:
    with a large standard error anything agrees, so it is shown. And more draws make the rule stricter, as they should.

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
    level : float, default 0.05

    Returns
    -------
    DataFrame
        ``table`` with the columns ``difference`` (ours less the paper's), ``se``, ``verdict`` ("agrees", "differs", ""
        without a printed mean or with a single result of ours) and ``paper_sd_fits`` ("yes", "no", "").

    Raises
    ------
    ValueError
        If a column is missing, or ``n_paper`` is below 1.
    """
    missing = {"paper", "paper_sd", "ours", "sd", "n_seeds"} - set(table.columns)
    if missing or n_paper < 1:
        raise ValueError(
            f"table must have the column {missing}"
            if missing
            else f"n_paper must be at least 1, got {n_paper!r}"
        )
    n, difference = table["n_seeds"], table["ours"] - table["paper"]
    se = table["sd"] * np.sqrt(1 / n + 1 / n_paper)
    bar = stats.t.ppf(1 - level / 2, np.maximum(n - 1, 1)) * se
    inside = difference.abs() <= bar + 1e-12
    ratio = (table["paper_sd"] / table["sd"].where(table["sd"] > 0)) ** 2
    low, high = (
        stats.f.ppf(p, max(n_paper - 1, 1), np.maximum(n - 1, 1))
        for p in (0.0005, 0.9995)
    )
    return table.assign(
        difference=difference,
        se=se,
        verdict=_words(inside, difference.notna() & se.notna(), "agrees", "differs"),
        paper_sd_fits=_words(
            (ratio >= low) & (ratio <= high), ratio.notna() & (n_paper > 1), "yes", "no"
        ),
    )


def _words(holds, known, yes, no):
    """A word for each truth value, none where it is not known."""
    return np.where(known, np.where(holds, yes, no), "")


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
