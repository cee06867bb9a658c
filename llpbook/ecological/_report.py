"""Reports of a band: sentences, a picture, and the strength of an unseen effect that reaches a value."""

from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from .._input import ArrayLike, Matrix, Proportions
from ..uncertainty import class_of, of_second_class
from ._band import plain_intervals, rates_between, rates_within, read_cells, split_of


def robustness_value(bias, scale):
    r"""Share of two variances that an unseen property must explain to cause a bias.

    :math:`\mathrm{rv} = \tfrac12 (\sqrt{f^4 + 4 f^2} - f^2)` with :math:`f = |\text{bias}| / \text{scale}`.

    Parameters
    ----------
    bias : ndarray
        Of a slope.
    scale : ndarray
        Standard deviation of the residuals of the slope's regression, per standard deviation of its predictor.

    Returns
    -------
    ndarray
        In [0, 1].
    """
    f = np.abs(bias) / np.maximum(scale, 1e-12)
    # The form without a difference of nearly equal numbers.
    return 2 * f / (f + np.sqrt(f**2 + 4))


def effect_needed(
    model: Any, X: Matrix, bags: ArrayLike, proportions: Proportions, group: ArrayLike, *,
    value: float | None = None, counts: ArrayLike | None = None, rounding: float = 0.0,
) -> pd.DataFrame:  # fmt: skip
    """Smallest limit, and strength of an unseen effect, with which the rate of a group reaches a value.

    Parameters
    ----------
    model, X, bags, proportions, group, counts, rounding
        See `group_rate_band`.
    value : float, optional
        A rate in [0, 1]. If not given, the share of the class in all bags, as if the group were like everybody.

    Returns
    -------
    DataFrame
        A row per group, or group and class: ``plain``, the rate of the model; ``value``; ``limit``, the smallest limit
        of `group_rate_band` with which the band reaches the value, infinite where the bounds exclude it; ``strength``,
        the part of the variance of the shares of the class and of the share of the group that an unseen property of
        the bags must explain, both at once and beyond what the other explains (the robustness value).

    Raises
    ------
    ValueError
        For malformed input, or a value outside of [0, 1].

    Notes
    -----
    The strength is that of omitted variables in the regression of the shares of the class on the share of the group,
    weighted by the sizes of the bags; the package seine (McCartan and Kuriwaki 2026) reports it for its own estimate.

    Examples
    --------
    >>> import numpy as np
    >>> from llpbook import CountLogistic
    >>> rng = np.random.default_rng(0)
    >>> share = np.linspace(0.1, 0.9, 40)
    >>> members = np.round(1000 * share).astype(int)
    >>> X, bags = np.tile([[0.0], [1.0]], (40, 1)), np.repeat(np.arange(40), 2)
    >>> counts = np.column_stack([1000 - members, members]).ravel()
    >>> p = np.round(0.2 + 0.4 * share + rng.normal(scale=0.03, size=40), 3)
    >>> model = CountLogistic().fit(X, bags, p, counts=counts)
    >>> table = effect_needed(model, X, bags, p, X[:, 0] == 1, counts=counts, value=0.5)
    >>> bool(table["limit"].between(0.05, 0.3).all())
    True
    """
    if value is not None and not (isinstance(value, Real) and 0 <= value <= 1):
        raise ValueError(f"value must be a rate in [0, 1], got {value!r}")
    cells = read_cells(model, X, bags, proportions, group, counts, rounding)
    plain_intervals(cells)  # warns where a penalty holds a rate
    split = split_of(cells, cells.probabilities(cells.scores))
    sizes, n_places = cells.observed.sizes, len(cells.places)
    shares = cells.observed.shares[:, -cells.n_columns :]
    goal = np.tile(sizes @ shares / sizes.sum(), n_places)
    if value is not None:
        goal = np.full(len(split.even), value)
    plain, swing = rates_within(split, split.lean), split.total(split.swing)
    limit = _limit_for(split, goal)
    scale = _scale(split.inside / sizes, np.tile(shares.T, (n_places, 1)), sizes)
    bias = np.divide(plain - goal, swing, out=np.zeros_like(plain), where=swing > 0)
    strength = np.where(np.isfinite(limit), robustness_value(bias, scale), np.nan)
    columns = {"plain": plain, "value": goal, "limit": limit, "strength": strength}
    table = pd.DataFrame(columns, cells.index)
    return of_second_class(table, cells.classes) if cells.n_columns == 1 else table


def _limit_for(split, goal):
    """Smallest limit with which the band of each row reaches a rate; infinite where none does."""
    low, high = np.zeros(len(goal)), np.full(len(goal), 2.0)
    for _ in range(40):
        middle = (low + high) / 2
        ends = rates_between(split, middle)
        reached = (ends[0] <= goal) & (goal <= ends[1])
        low, high = np.where(reached, low, middle), np.where(reached, middle, high)
    ends = rates_between(split, 2.0)
    outside = (goal < ends[0] - 1e-9) | (goal > ends[1] + 1e-9)
    return np.where(outside, np.inf, np.where(high < 1e-9, 0.0, high))


def _scale(s, y, sizes):
    """Standard deviation of the residuals of each row of y on s, per standard deviation of s, by size."""
    w = sizes / sizes.sum()
    s, y = s - (s @ w)[:, None], y - (y @ w)[:, None]
    variance = np.maximum(s**2 @ w, 1e-12)
    residual = y - ((s * y) @ w / variance)[:, None] * s
    return np.sqrt(residual**2 @ w / variance)


def band_sentences(band: pd.DataFrame, *, outcome: str | None = None) -> pd.Series:
    """Write a sentence for a report for each row of a band, with the assumption that it needs.

    Parameters
    ----------
    band : DataFrame
        From `group_rate_band`.
    outcome : str, optional
        The event whose rate it is, where there are two classes; the name of the second class if not given.

    Returns
    -------
    Series of str
        With the index of the band.

    Examples
    --------
    >>> import pandas as pd
    >>> columns = ["low", "high", "plain", "contextual", "limit", "least", "most", "n"]
    >>> band = pd.DataFrame([[0.47, 0.72, 0.55, 0.7, 0.3, 0.22, 0.98, 900]], ["black"], columns)
    >>> print(band_sentences(band, outcome="being registered")["black"])
    The rate of being registered in group black is between 47 and 72 percent (the model says 55), if for nearly all \
members the difference between the group and the rest of the bag is between half of the fitted one and the whole, up \
to 30 points more or less. Without this assumption it is between 22 and 98 percent.
    """
    if outcome is None:
        outcome = f"the {class_of(band) or 'class'}"
    several, sentences = "class" in band.index.names, []
    for name, row in zip(band.index, band.itertuples(), strict=True):
        keys = list(name) if isinstance(name, tuple) else [name]
        of = f"the class {keys.pop()}" if several else outcome
        who = "the group" if keys[-1] is True else f"group {keys[-1]}"
        who += f" of {keys[0]}" if len(keys) > 1 else ""
        sentences.append(_sentence(row, f"of {of} in {who}", band.attrs.get("widest")))
    return pd.Series(sentences, band.index, dtype=object)


def _sentence(row, of, widest):
    """The sentence for a row of a band: an exact rate, its bounds only, or the band with its condition."""
    least, most = f"{100 * row.least:.0f}", f"{100 * row.most:.0f}"
    if row.most - row.least < 1e-9:
        return f"The rate {of} is {most} percent, the share of its bags: none of them holds others."
    if not np.isfinite(row.limit):
        return f"The bags say of the rate {of} only that it is between {least} and {most} percent."
    widest_limit = " (the widest limit whose range is half as wide as the one without this assumption)"
    return (
        f"The rate {of} is between {100 * row.low:.0f} and {100 * row.high:.0f} percent (the model says "
        f"{100 * row.plain:.0f}), if for nearly all members the difference between the group and the rest of the bag "
        f"is between half of the fitted one and the whole, up to {100 * row.limit:.0f} points more or less"
        f"{widest_limit if widest else ''}. Without this assumption it is between {least} and {most} percent."
    )


def plot_band(
    band: pd.DataFrame, *, truth: ArrayLike | None = None, ax: Any = None
) -> Any:
    """Draw bands: the bounds thin, the band thick, a point for the model, a tick for the contextual fit.

    Parameters
    ----------
    band : DataFrame
        From `group_rate_band`.
    truth : array-like, shape (n_rows,), optional
        True rates, as crosses.
    ax : matplotlib Axes, optional
        A new figure if not given.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import pandas as pd
    >>> from llpbook.ecological import plot_band
    >>> columns = ["least", "low", "plain", "contextual", "high", "most"]
    >>> ax = plot_band(pd.DataFrame([[0.1, 0.3, 0.4, 0.45, 0.5, 0.9]], ["old"], columns))
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['old']
    """
    from ..plotting import GRAY, literal, pyplot

    if ax is None:
        height = 0.8 + 0.32 * len(band)
        _, ax = pyplot().subplots(figsize=(5, height), layout="constrained")
    rows, low, high = np.arange(len(band)), band["low"], band["high"]
    ax.hlines(rows, band["least"], band["most"], GRAY, linewidth=1, label="bounds")
    ax.hlines(rows, low, high, "C0", linewidth=6, alpha=0.5, label="band")
    ax.plot(band["plain"], rows, "C0o", markersize=4, label="model")
    ax.plot(band["contextual"], rows, "C0|", markersize=9, label="contextual")
    if truth is not None:
        ax.plot(np.asarray(truth), rows, "x", color="C1", markersize=6, label="truth")
    several = band.index.nlevels > 1
    names = [literal(", ".join(map(str, i)) if several else i) for i in band.index]
    rate = literal(f"rate{class_of(band, ' of ')}")
    ax.set(yticks=rows, yticklabels=names, xlim=(-0.02, 1.02), xlabel=rate)
    ax.invert_yaxis()
    return ax


def rate_sentences(table, level, correlation):
    """A sentence for each row of a table of rates, differences or shares of an `EcologicalRates`.

    Parameters
    ----------
    table : DataFrame
    level, correlation : float

    Returns
    -------
    Series of str
    """
    texts, unit = [], "points" if "difference" in table else "percent"
    for subject, row in zip(_subjects(table), table.itertuples(), strict=True):
        percent = {k: f"{100 * getattr(row, k):.0f}" for k in table.columns if k != "n"}
        value = percent.get("difference", percent.get("rate"))
        text = (
            f"{subject} is {value} {unit}: {percent['low']} to {percent['high']} ({100 * level:g} % interval) if the "
            "rates of a group have no relation to its share in the places of a stratum, "
            f"{percent['band_low']} to {percent['band_high']} with a correlation up to {correlation:g}"
        )
        if "least" in percent:
            text += (
                f", and {percent['least']} to {percent['most']} without an assumption"
            )
        texts.append(text + ".")
    return pd.Series(texts, table.index, dtype=object)


def _subjects(table):
    """Describe each row of a table: a rate, a difference of two groups or classes, or a share among classes."""
    of, among = list(table.index.names), ""
    if "difference" not in table and "least" not in table:
        others = [str(name) for name in table.index.unique("class")]
        among = " among those in " + ", ".join(others)
    for group, label in table.index:
        if of[0] == "groups":
            yield f"The difference {group} in the rate of {label}"
        elif of[1] == "classes":
            yield f"The difference {label} in group {group}"
        elif among:
            yield f"The share of {label}{among} in group {group}"
        else:
            yield f"The rate of {label} in group {group}"


def plot_rates(table, level, correlation, truth=None, ax=None):
    """The picture of a table of rates, differences or shares of an `EcologicalRates`.

    Parameters
    ----------
    table : DataFrame
    level, correlation : float
    truth : array-like, shape (n_rows,), optional
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
    """
    from ..plotting import GRAY, literal, pyplot

    if ax is None:
        height = 1.3 + 0.3 * len(table)
        _, ax = pyplot().subplots(figsize=(5.5, height), layout="constrained")
    rows, value = np.arange(len(table)), "rate"
    left = -0.02
    if "difference" in table:
        value, left = "difference", -1.02
        ax.axvline(0, color=GRAY, linewidth=0.8)
    for low, high, color, width, alpha, label in (
        ("least", "most", GRAY, 1, 1, "bounds"),
        ("band_low", "band_high", "C0", 7, 0.35, f"correlation to {correlation:g}"),
        ("low", "high", "C0", 3, 1, f"{100 * level:g} % interval"),
    ):
        style = {"linewidth": width, "alpha": alpha, "label": label}
        if low in table:
            ax.hlines(rows, table[low], table[high], color, **style)
    ax.plot(table[value], rows, "o", color="C0", markersize=5, label=value)
    if truth is not None:
        ax.plot(np.asarray(truth), rows, "x", color="C1", markersize=7, label="truth")
    names = [literal(", ".join(map(str, i))) for i in table.index]
    ax.set(yticks=rows, yticklabels=names, xlim=(left, 1.02), xlabel=value)
    ax.invert_yaxis()
    ax.figure.legend(loc="outside lower center", ncols=3, frameon=False)
    return ax
