"""Messages about values that are no shares: text, nothing, percent, counts, other numbers."""

import re

import numpy as np
import pandas as pd

from ._arguments import page
from ._keys import quote

#: How far the sum of percents of a row may be from 100 by rounding, for each class.
ROUNDED_PERCENT = 0.5


def why_no_number(values):
    """Explain why shares are no numbers, with the line that mends it; empty where they are text of another kind.

    Parameters
    ----------
    values : array-like, Series or DataFrame

    Returns
    -------
    str
    """
    table = isinstance(values, pd.DataFrame)
    columns = [values.iloc[:, j] for j in range(values.shape[1])] if table else [values]
    if not pd.api.types.is_list_like(values):
        return ""
    if any(isinstance(v, pd.Interval) for v in columns[0]):
        return "these are ranges: put their middles, proportions.map(lambda range: range.mid).astype(float)"
    for column in columns:
        line = f"proportions[{quote(column.name)}]" if table else "proportions"
        for text in (v for v in column if isinstance(v, str)):
            why = _why_text(text, line)
            if why:
                return why
    return ""


def _why_text(text, line):
    """Of one entry."""
    if re.fullmatch(r"\s*[-+]?\d+([.,]\d+)?\s*%\s*", text):
        dot = ".str.replace(',', '.')" * ("," in text)
        return f"{text!r} is text: {line}{dot}.str.rstrip('% ').astype(float) / 100"
    if re.fullmatch(r"\s*\d+,\d+\s*", text):
        return f"{text!r} is text, with a comma: {line}.str.replace(',', '.').astype(float) if it is a decimal comma"
    span = re.fullmatch(r"\s*([\d.]+)\s*%?\s*(?:-|–|to)\s*([\d.]+)\s*(%?)\s*", text)
    if span:
        ends = rf"{line}.str.extract(r'([\d.]+)\D+([\d.]+)').astype(float)"
        ends += " / 100" * bool(span[3])
        return (
            f"{text!r} is a range. With ends = {ends}, pass its middle, ends.mean(axis=1), and "
            "CountLogistic(proportion_errors=(ends[1] - ends[0]) / 12**0.5)"
        )
    below = re.fullmatch(r"\s*[<≤]\s*(\d+(?:\.\d+)?)\s*(%?)\s*", text)
    if below:
        middle = float(below[1]) / (200 if below[2] else 2)
        return f"{text!r} is text: put the middle of what it can be, {line}.replace({quote(text)}, {middle:g})"
    try:
        float(text)
    except ValueError:
        return (
            f"{text!r} is text. Where a share is not published, leave out the rows of its bag: "
            f"{line} = pd.to_numeric({line}, errors='coerce').dropna(), and keep the rows where bags.isin({line}.index)"
        )
    return ""


def why_outside(matrix, row, column, classes):
    """Explain why a number is no share, and say what to do.

    Parameters
    ----------
    matrix : ndarray, shape (n_bags,) or (n_bags, n_classes)
        As given.
    row, column : int
        Where the number stands that is no share; column 0 of a vector.
    classes : ndarray or None
        Names of the columns.

    Returns
    -------
    str
    """
    table = matrix.reshape(len(matrix), -1)
    value, whole_row = table[row, column], table[row]
    if np.isnan(value):
        return _why_missing(whole_row, column, classes)
    if np.isinf(value):
        return (
            "a division by 0? A bag without a share is left out with its rows: set it to NaN by "
            "proportions.replace(np.inf, np.nan), and keep the rows where bags.isin(proportions.dropna().index)"
        )
    if value < -1:
        shown = (
            "(proportions >= 0).all(axis=1)" if matrix.ndim > 1 else "proportions >= 0"
        )
        return (
            "a share is not negative. If it marks a share that is not known, leave out its bag: proportions = "
            f"proportions[{shown}], and keep the rows where bags.isin(proportions.index)"
        )
    if value < 0:
        return (
            "a share is not negative. If it is what is left of a count, another count is larger than it should be, "
            "such as more ballots than voters: correct these first. If noise was added to protect people, "
            'CountLogistic(proportion_errors=errors, proportion_noise="laplace"), or "gaussian", takes such shares'
        )
    return _why_large(table[np.isfinite(table).all(axis=1)], classes)


def _why_missing(row, column, classes):
    """Of a bag without a share, or with some."""
    if np.isnan(row).all():
        return (
            "a bag with instances needs a share. If it has not reported, leave out its rows: keep those where "
            "bags.isin(proportions.dropna().index)"
        )
    name = column if classes is None else classes[column]
    if abs(np.nansum(row) - 1) < 1e-6:
        return (
            f"the other classes sum to 1, so class {quote(name)} does not occur there, as after unstack: "
            "proportions.fillna(0)"
        )
    rest = ""
    if np.isnan(row).sum() == 1 and classes is not None:
        rest = (
            ": if it is the rest, which was too small to be published, proportions.fillna({"
            f"{quote(name)}: 1 - proportions.sum(axis=1)}})"
        )
    return f"class {quote(name)} has no share there, and the others sum to {np.nansum(row):.6g}{rest}"


def _why_large(table, classes):
    """Of numbers above 1: percent, counts, or numbers of another kind."""
    least, most, several = (
        table.min(initial=0),
        table.max(initial=0),
        table.shape[1] > 1,
    )
    whole = bool((table == np.round(table)).all())
    if most < 2 and least >= 0 and np.mean(table > 1) < 0.5:
        return (
            "a share is not above 1. If it is a count by a size, the two disagree, such as more votes than residents: "
            "correct these first"
        )
    if several and np.all(
        np.abs(table.sum(axis=1) - 100) <= ROUNDED_PERCENT * table.shape[1]
    ):
        return "these are percent: divide percent by 100"
    if several and whole:
        return _why_counts(table, classes)
    if whole or 2 <= most <= 100:
        other = "" if whole else (COUNTED_TWICE if most <= 10 else "") + OTHER_NUMBERS
        rate = "; a rate per 1,000 or 100,000 people by that number" * bool(most > 100)
        return (
            f"divide percent by 100, and counts by the sizes of the bags{rate}{other}"
        )
    return OTHER_NUMBERS.removeprefix(". ")


def _why_counts(table, classes):
    """Of counts of the classes, or of one class and of all."""
    said = (
        "these are counts: proportions.div(proportions.sum(axis=1), axis=0)"
        if classes is not None
        else "these are counts: proportions / proportions.sum(axis=1, keepdims=True), where the columns are the "
        "classes 0, 1, … in this order, so that failures stand before successes"
    )
    for total, part in ((0, 1), (1, 0)) if table.shape[1] == 2 else ():
        if (table[:, total] >= table[:, part]).all():
            one, other = (f"proportions[:, {j}]" for j in (part, total))
            if classes is not None:
                one, other = (
                    f"proportions[{quote(classes[j])}]" for j in (part, total)
                )
            return f"{said}. If one column counts all people, {one} / {other}"
    return said


#: Of counts above the size of their bag.
COUNTED_TWICE = "; a count by a size is above 1 where it is counted several times, such as the votes for two offices"
#: Of means, sums and other numbers per bag.
OTHER_NUMBERS = (
    ". Means of a number, such as test scores or incomes, are no shares of a class: state the share of each bag above "
    "a threshold instead, or fit a regression. A rate per 1,000 or 100,000 people is divided by that number; see "
    f"{page('your_data')}"
)
