"""Accuracy against bag size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.isotonic import isotonic_regression

from ._style import ink, literal, look, pyplot

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DULL = "#666666"


def plot_learning_curve(
    table: pd.DataFrame, *, x: str = "bag_size", y: str = "accuracy", hue: str = "method",
    references: dict[str, float] | None = None, ax: Any = None,
    figsize: tuple[float, float] | None = None,
) -> Figure:  # fmt: skip
    """Accuracy against bag size, a line per method: mean over repetitions, with a band of one standard deviation.

    Parameters
    ----------
    table : DataFrame
        One row per run, with the columns ``x``, ``y`` and ``hue``; rows alike in ``x`` and ``hue`` are repetitions.
    x, y, hue : str
        Columns: where on the axis (bag size, on a logarithmic scale), what is measured (accuracy), which line (method).
    references : dict of str to float, optional
        Horizontal lines with their names, as ``{"majority class": 0.56}``.
    ax : matplotlib Axes, optional
    figsize : pair of float, optional
        Inches, ``(7, 3)``. Not used with ``ax``.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ValueError
        If ``table`` is empty, lacks a column or holds a missing value in one, or ``x`` is not positive.
    ImportError
        If matplotlib is not installed.

    Examples
    --------
    >>> import pandas as pd
    >>> from llpbook.plotting import plot_learning_curve
    >>> accuracy = [0.90, 0.80, 0.70, 0.88, 0.82, 0.72]
    >>> runs = pd.DataFrame({"bag_size": [2, 4, 8] * 2, "accuracy": accuracy, "method": "MeanMap"})
    >>> fig = plot_learning_curve(runs)
    >>> [tick.get_text() for tick in fig.axes[0].get_xticklabels()]
    ['2', '4', '8']
    """
    plt = pyplot()
    _check(table, x, y, hue)
    if references is not None and not isinstance(references, dict):
        raise ValueError(f"references must be a dict of heights, got {references!r}")
    if ax is None:
        ax = plt.subplots(figsize=figsize or (7, 3), layout="constrained")[1]
    ends = {}  # name: (x, y, color) of the end of its line
    for k, (method, rows) in enumerate(table.groupby(hue, sort=False)):
        ends[str(method)] = _draw_line(ax, rows.groupby(x)[y], k, method)
    ax.set_xscale("log", base=2)
    ticks = sorted(table[x].unique())
    ax.set_xticks(ticks, [f"{t:g}" for t in ticks])
    ax.minorticks_off()
    ax.set_xlabel(literal(x.replace("_", " ")))
    ax.set_ylabel(literal(y.replace("_", " ")))
    ax.grid(axis="y", color="#DDDDDD", linewidth=0.7)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    for name, value in (references or {}).items():
        dots = {"color": DULL, "linestyle": ":", "linewidth": 1.2, "zorder": 1}
        ax.axhline(value, label=literal(name), gid="reference", **dots)
        ends[name] = (ax.get_xlim()[1], value, DULL)
    if not label_ends(ax, ends):
        beside = {"loc": "upper left", "bbox_to_anchor": (1.01, 1)}
        ax.legend(borderaxespad=0, frameon=False, **beside)
    return ax.figure


def _check(table, x, y, hue):
    """Refuse a table without rows or columns, with missing values, or without a logarithm."""
    if not isinstance(table, pd.DataFrame) or len(table) == 0:
        raise ValueError(
            f"table must be a DataFrame with at least one row, got {type(table).__name__}"
        )
    for column in (x, y, hue):
        if not isinstance(column, str) or column not in table.columns:
            raise ValueError(
                f"table has no column {column!r}; it has {list(table.columns)}"
            )
        if table[column].isna().any():
            raise ValueError(
                f"table has a missing value in column {column!r}, row {table[column].isna().argmax()}"
            )
    if not (table[x] > 0).all():
        raise ValueError(
            f"column {x!r} of table must be positive on a logarithmic axis, got {table[x].min()}"
        )


def _draw_line(ax, runs, k, method):
    """Line and band of the ``k``-th method; the end of the line, and its color."""
    color, marker, _ = look(k)
    dark, mean, sd = ink(color), runs.mean(), runs.std().fillna(0)
    band = {"color": color, "alpha": 0.16, "linewidth": 0}
    ax.fill_between(mean.index, mean - sd, mean + sd, zorder=1, **band)
    edge = {"markeredgecolor": dark, "markeredgewidth": 0.6, "zorder": 3}
    ax.plot(mean, color=color, marker=marker, label=literal(method), **edge)
    return mean.index[-1], mean.iloc[-1], dark


def label_ends(ax, ends):
    """Write names beside the ends of lines, moved apart so that none overlap; False if there is no room for all."""
    from matplotlib.font_manager import FontProperties

    points = FontProperties(size="small").get_size_in_points()
    panel = ax.figure.get_figheight() * ax.get_position().height  # inches, or more
    gap = 1.25 * points / (67 * panel)
    if len(ends) * gap > 1:
        return False
    low, high = ax.get_ylim()
    ax.set(xlim=ax.get_xlim(), ylim=(low, high))
    ends = sorted(ends.items(), key=lambda item: item[1][1])
    wanted = np.array([(value - low) / (high - low) for _, (_, value, _) in ends])
    places = move_apart(wanted, gap)
    moved = np.abs(places - wanted) > gap / 3
    text = {"textcoords": "axes fraction", "fontsize": "small", "va": "center"}
    for k, (name, (end, value, color)) in enumerate(ends):
        leader = {"arrowstyle": "-", "color": color, "linewidth": 0.5}
        leader |= {"relpos": (0, 0.5), "shrinkB": 4}
        text |= {"color": color, "xytext": (1.03, places[k]), "annotation_clip": False}
        leader = leader if moved[k] or color != DULL else None
        ax.annotate(literal(name), (end, value), arrowprops=leader, **text)
    return True


def move_apart(wanted, gap):
    """The positions nearest to sorted ``wanted`` (least squares) in [0, 1] that are at least ``gap`` apart."""
    steps = gap * np.arange(len(wanted))
    return isotonic_regression(wanted - steps, y_min=0, y_max=1 - steps[-1]) + steps
