"""The diagram of average ranks of methods, with the critical difference."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pandas as pd

from .._input import ArrayLike
from ..comparison import check_ranks, critical_difference, indistinct_groups
from ._style import DARK, GRAY, PALETTE, literal, pyplot

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIRST = 0.9  # rows between the axis and the first name, without bars
BAR = 0.45  # rows from the bar of a group to the next
INCH = 0.26  # height of a row, which holds a name


def plot_critical_difference(
    ranks: ArrayLike | Mapping[str, float], n_sets: int, *, control: str | None = None,
    level: float = 0.1, ax: Any = None, figsize: tuple[float, float] | None = None,
) -> Figure:  # fmt: skip
    """Draw the critical-difference diagram: average ranks on a line, the best on the right.

    Without a control, a bar joins each group of methods that do not differ by Nemenyi's test. With a control, a band
    reaches one critical difference of the Bonferroni–Dunn test to both sides of its rank: methods outside the band
    differ from the control, and their markers are filled (demsar2006, Figure 1).

    Parameters
    ----------
    ranks : Series, dict or array-like of shape (n_methods,)
        Average ranks by method, as `llpbook.comparison.average_ranks` returns them.
    n_sets : int
        The number of data sets behind them.
    control : str, optional
        The method that all others are compared with.
    level : float, default 0.1
        Of the test, in (0, 1).
    ax : matplotlib Axes, optional
    figsize : pair of float, optional
        Inches; by default as high as the names need. Not used with ``ax``.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ValueError
        If ``ranks`` are not average ranks, ``n_sets`` is not a whole number from 1, ``level`` is outside (0, 1), or
        ``control`` is not among the methods.
    ImportError
        If matplotlib is not installed.

    Examples
    --------
    >>> from llpbook.plotting import plot_critical_difference
    >>> fig = plot_critical_difference({"A": 1.2, "B": 2.1, "C": 2.7}, n_sets=10)
    >>> fig.axes[0].get_title(loc="left")
    'CD = 0.92 (Nemenyi, level 0.1)'
    """
    plt = pyplot()
    order = check_ranks(ranks).sort_values(kind="stable")
    test = "Nemenyi" if control is None else "Bonferroni–Dunn"
    name = test.lower().replace("–", "-")
    critical = critical_difference(len(order), n_sets, test=name, level=level)
    methods = order.index.tolist()
    valid = pd.api.types.is_hashable(control) and control in methods
    if control is not None and not valid:
        raise ValueError(f"control must be one of {methods}, got {control!r}")
    groups = indistinct_groups(order, critical) if control is None else []
    start = FIRST + BAR * len(groups)
    depth = start + (len(order) + 1) // 2
    if ax is None:
        size = figsize or (6.4, INCH * (depth + 2) + 0.4)
        ax = plt.subplots(figsize=size, layout="constrained")[1]
    draw_axis(ax, len(order), depth)
    draw_groups(ax, order, groups)
    filled = set(order.index)
    if control is not None:
        draw_band(ax, order[control], critical, len(order))
        filled = set(order.index[(order - order[control]).abs() >= critical])
    draw_names(ax, order, start, filled, control)
    title = f"CD = {critical:.2f} ({test}, level {level:g})"
    ax.set_title(title, loc="left", fontsize="small")
    return ax.figure


def draw_axis(ax, n_methods, depth):
    """Draw the axis of ranks on top, with the best on the right."""
    ax.set(xlim=(n_methods + 0.05, 0.95), ylim=(depth, -0.2))
    ax.spines[["left", "right", "bottom"]].set_visible(False)
    ax.spines["top"].set(visible=True, position=("data", 0), bounds=(1, n_methods))
    ax.xaxis.set_ticks_position("top")
    ax.set_xticks(range(1, n_methods + 1))
    ax.set_yticks([])
    ax.grid(False)
    ax.set_xlabel("average rank, 1 is the best")


def draw_groups(ax, ranks, groups):
    """Draw a bar for each group, below one another."""
    for k, group in enumerate(groups):
        ends = ranks[group].min() - 0.02, ranks[group].max() + 0.02
        style = {"color": PALETTE[0], "linewidth": 4, "solid_capstyle": "butt"}
        ax.plot(ends, [0.5 + BAR * k] * 2, gid="group", zorder=2, **style)


def draw_band(ax, center, critical, n_methods):
    """Draw the band of ranks that do not differ from that of the control."""
    ends = max(center - critical, 1), min(center + critical, n_methods)
    style = {"color": PALETTE[3], "linewidth": 9, "alpha": 0.55}
    ax.plot(ends, [0, 0], gid="band", solid_capstyle="butt", zorder=1, **style)


def draw_names(ax, ranks, start, filled, control):
    """Draw the names on both sides, the better half on the right, each with a line to its rank."""
    half = len(ranks) // 2
    places = [(name, 0, row) for row, name in enumerate(ranks.index[: half - 1 : -1])]
    places += [(name, 1, row) for row, name in enumerate(ranks.index[:half])]
    for name, right, row in places:
        rank, y, edge = ranks[name], start + row, ax.get_xlim()[right]
        leader = {"color": GRAY, "linewidth": 0.9, "zorder": 1, "gid": "leader"}
        ax.plot([rank, rank, edge], [0, y, y], **leader)
        face = DARK if name in filled else "white"
        dot = {"markerfacecolor": face, "markeredgecolor": DARK, "markersize": 6}
        ax.plot(rank, 0, "o", gid=f"method {name}", clip_on=False, zorder=4, **dot)
        parts = [literal(name), f"{rank:.2f}"]
        style = {"ha": "left" if right else "right", "va": "center"}
        style |= {"weight": "bold" if name == control else "normal"}
        text, shift = "  ".join(parts if right else parts[::-1]), 5 if right else -5
        place = {"xytext": (shift, 0), "textcoords": "offset points"}
        ax.annotate(text, (edge, y), annotation_clip=False, **place, **style)
