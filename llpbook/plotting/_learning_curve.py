"""Accuracy against bag size."""

import numpy as np
import pandas as pd
from sklearn.isotonic import isotonic_regression

from ._style import HOLLOW, ink, legend_below, literal, look, pyplot, sample

DULL = "#666666"
PAPER = HOLLOW | {"linestyle": (0, (4, 2)), "linewidth": 1.1}


def plot_learning_curve(
    table,
    x="bag_size",
    y="accuracy",
    hue="method",
    paper=None,
    *,
    hue_order=None,
    references=None,
    xlabel=None,
    ylabel=None,
    log2=True,
    direct_labels=True,
    ax=None,
    figsize=None,
):
    """Accuracy against bag size, a line a method: mean over repetitions, with a band of one standard deviation.

    Parameters
    ----------
    table : DataFrame
        One row a run, with the columns ``x``, ``y`` and ``hue``; rows that agree in ``x`` and ``hue`` are repetitions.
    x, y, hue : str
        Columns: where on the axis (bag size), what is measured (accuracy), which line (method).
    paper : DataFrame, optional
        Published values in the same three columns: hollow markers and dashed lines in the color of their method.
    hue_order : sequence, optional
        The methods to draw, in the order of the colors; by default all, as they come in ``table``, then in ``paper``.
    references : dict of str to float, optional
        Horizontal lines with their names, as ``{"majority class": 0.56}``.
    xlabel, ylabel : str, optional
        Labels of the axes, which may hold formulas between ``$``; the columns' names, with spaces for underscores, if
        not given. All other texts are drawn as they are.
    log2 : bool
        A logarithmic axis of base 2, with a tick at each value of ``x``.
    direct_labels : bool
        Names at the ends of the lines, if there is room for all; else a legend beside the data.
    ax : matplotlib Axes, optional
    figsize : pair of float, optional
        Inches, ``(7, 3)``. Not used with ``ax``.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ValueError
        If a table is empty, lacks a column or holds a missing value in one, ``x`` is not positive on a logarithmic
        axis, or ``hue_order`` names a method that no table has.
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
    tables = {"table": table} if paper is None else {"table": table, "paper": paper}
    for name, frame in tables.items():
        if not isinstance(frame, pd.DataFrame) or len(frame) == 0:
            raise ValueError(
                f"{name} must be a DataFrame with at least one row, got {type(frame).__name__}"
            )
        for column in (x, y, hue):
            if not isinstance(column, str) or column not in frame.columns:
                raise ValueError(
                    f"{name} has no column {column!r}; it has {list(frame.columns)}"
                )
            if frame[column].isna().any():
                raise ValueError(
                    f"{name} has a missing value in column {column!r}, row {frame[column].isna().argmax()}"
                )
        if log2 and not (frame[x] > 0).all():
            raise ValueError(
                f"column {x!r} of {name} must be positive on a logarithmic axis, got {frame[x].min()}"
            )
    known = list(dict.fromkeys(v for frame in tables.values() for v in frame[hue]))
    if hue_order is not None and (
        isinstance(hue_order, str) or not np.iterable(hue_order)
    ):
        raise ValueError(f"hue_order must be a list of methods, got {hue_order!r}")
    methods = known if hue_order is None else list(hue_order)
    if not methods:
        raise ValueError("hue_order must name a method, got none")
    if references is not None and not isinstance(references, dict):
        raise ValueError(f"references must be a dict of heights, got {references!r}")
    for method in methods:
        if method not in known:
            raise ValueError(
                f"hue_order holds {method!r}, but column {hue!r} has {known}"
            )

    if ax is None:
        ax = plt.subplots(figsize=figsize or (7, 3), layout="constrained")[1]
    ends, ticks = {}, set()  # name: (x, y, color) of the end of its line
    for k, method in enumerate(methods):
        color, marker, _ = look(k)
        dark = ink(color)
        mine = table[table[hue] == method]
        if len(mine):
            runs = mine.groupby(x)[y]
            mean, sd = runs.mean(), runs.std().fillna(0)  # one run has no spread
            band = {"color": color, "alpha": 0.16, "linewidth": 0}
            ax.fill_between(mean.index, mean - sd, mean + sd, zorder=1, **band)
            edge = {"markeredgecolor": dark, "markeredgewidth": 0.6, "zorder": 3}
            ax.plot(mean, color=color, marker=marker, label=literal(method), **edge)
            ends[str(method)] = (mean.index[-1], mean.iloc[-1], dark)
            ticks |= set(mean.index)
        if paper is not None and (paper[hue] == method).any():
            theirs = paper[paper[hue] == method].groupby(x)[y].mean()
            dashed = PAPER | {"color": dark, "marker": marker, "zorder": 2}
            ax.plot(theirs, label=literal(f"{method} (paper)"), **dashed)
            ends.setdefault(str(method), (theirs.index[-1], theirs.iloc[-1], dark))
            ticks |= set(theirs.index)
    if log2:
        ax.set_xscale("log", base=2)
    ax.set_xticks(sorted(ticks), [f"{t:g}" for t in sorted(ticks)])
    ax.minorticks_off()
    ax.set_xlabel(xlabel or literal(x.replace("_", " ")))
    ax.set_ylabel(ylabel or literal(y.replace("_", " ")))
    ax.grid(axis="y", color="#DDDDDD", linewidth=0.7)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    for name, value in (references or {}).items():
        dots = {"color": DULL, "linestyle": ":", "linewidth": 1.2, "zorder": 1}
        ax.axhline(value, label=literal(name), gid="reference", **dots)
        ends[name] = (ax.get_xlim()[1], value, DULL)
    if not (direct_labels and label_ends(ax, ends)):
        beside = {"loc": "upper left", "bbox_to_anchor": (1.01, 1)}
        ax.legend(borderaxespad=0, frameon=False, **beside)
    elif paper is not None:
        repeated = table.groupby([hue, x]).size().max() > 1
        ours = "mean ± standard deviation" if repeated else "here"
        for label, style in {ours: {"linestyle": "-"}, "paper": PAPER}.items():
            sample(ax, label, **style | {"color": DULL})
        legend_below(ax, last=2)
    return ax.figure


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
