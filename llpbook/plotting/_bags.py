"""The standard figure of the book: bags of instances, and their label proportions."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.decomposition import PCA

from .._input import ArrayLike, Matrix, Proportions, check_features, check_whole
from ..base import read_bags
from ..proportions import class_prior
from ._style import DARK, LIGHT, MARKERS, PALETTE, literal, pyplot

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DRAWN = 1500  # instances
# As dark as text on white must be.
INKS = ("#0072B2", "#C25600", "#008662", "#3B7CA1", "#A36186", "#9C6C00", "#000000", "#7F7923")  # fmt: skip
AREAS = (1, 1, 1.2, 0.75, 1.2, 1.25, 1.25, 1.8)  # so that all look equally large
PRIOR = {"color": DARK, "linestyle": (0, (4, 2.5)), "linewidth": 1.2, "zorder": 3}
TICKS = {0: "0", 0.25: "0.25", 0.5: "0.5", 0.75: "0.75", 1: "1"}


def plot_bags(
    X: Matrix, bags: ArrayLike, proportions: Proportions, *,
    class_names: Sequence[str] | None = None, counts: ArrayLike | None = None,
    max_bags: int = 8, figsize: tuple[float, float] | None = None,
) -> Figure:  # fmt: skip
    """Draw the standard figure of the book: instances colored by bag, and the proportions of the bags as bars.

    Left, the instances, with color and marker by bag. At most 1,500 are drawn, at
    random, and the title says so. One feature is drawn as a jittered strip per bag, in the order of the bars; two as
    they are; more in their first two principal components (of ``X`` as given, centered, not scaled). Right,
    one bar per bag, as long as its share of the positive class; with three classes or more, a stack of all shares.

    Parameters
    ----------
    X : array-like, sparse matrix or DataFrame, shape (n_instances, n_features)
    bags : array-like, shape (n_instances,)
        The bag of each instance: a row number of ``proportions``, or one of its keys.
    proportions : array-like, Series, dict or DataFrame, shape (n_bags,) or (n_bags, n_classes)
        The share of the positive class in each bag, or of every class. Its keys name the bags; long names take two
        lines where there is room, and are cut where there is not.
    class_names : sequence of str, shape (n_classes,), optional
        In the order of the columns of ``proportions``; "class 0" and so on if not given.
    counts : array-like of int, shape (n_instances,), optional
        How many equal instances each row stands for; each row is one point.
    max_bags : int, default 8
        With more bags than this, so many are shown: those at evenly spaced ranks of the proportion of the positive
        class (with three classes or more, of the class whose proportion varies most), from the smallest to the
        largest, and in this order. The others are gray, or left out with one feature. The title of the right panel
        says how many are shown of how many. Bags without instances are not counted.
    figsize : pair of float, optional
        Inches; ``(7, 3)`` or a little more if many bags are shown.

    Returns
    -------
    matplotlib.figure.Figure
        Names of bags, classes and features are drawn as they are: a ``$`` in them starts no formula.

    Raises
    ------
    ValueError
        If lengths or shapes disagree, ``X`` has missing values, a bag has no row in ``proportions``, a proportion is
        outside [0, 1], or a row does not sum to 1.
    ImportError
        If matplotlib is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> from llpbook.plotting import plot_bags
    >>> rng = np.random.default_rng(0)
    >>> X, bags = rng.normal(size=(40, 2)), np.repeat([0, 1], 20)
    >>> fig = plot_bags(X, bags, [0.6, 0.4], class_names=["healthy", "ill"])
    >>> [ax.get_title(loc="left") for ax in fig.axes]
    ['instances, colored by bag', 'label proportions']
    """
    plt = pyplot()
    # Everything that can fail comes before the first figure is made.
    A = check_features(X, accept_sparse="csr")
    columns = X.columns if isinstance(X, pd.DataFrame) else None
    check_whole("max_bags", max_bags)
    index = A if columns is None else X
    data = read_bags(A, bags, proportions, original=index, counts=counts)
    A, P, sizes = data.X, data.proportions, data.bag_sizes
    classes = (
        [f"class {c}" for c in data.classes] if class_names is None else class_names
    )
    if isinstance(classes, str) or np.shape(classes) != (P.shape[1],):
        raise ValueError(f"class_names must be {P.shape[1]} names, got {class_names!r}")
    keys = data.bag_labels
    names = [f"bag {k}" for k in range(len(P))] if keys is None else [*map(str, keys)]
    rows = spread(P, sizes, max_bags)
    long = max(len(names[r]) for r in rows) > 20 and len(rows) <= 8
    height = max(3, 1 + 0.36 * len(rows) * long, 1.2 + 0.22 * len(rows))
    size = {"figsize": figsize or (7, height), "width_ratios": [1.25, 1]}
    figure, (left, right) = plt.subplots(1, 2, layout="constrained", **size)
    draw_left(left, A, columns, data.bags, rows)
    draw_right(right, P, sizes, rows, names, [literal(name) for name in classes])
    return figure


def draw_left(ax, A, columns, bags, rows):
    """Draw the instances, with color and marker by bag; those of bags that are not shown in gray."""
    row_of = np.full(bags.max() + 1, -1)
    row_of[rows] = np.arange(len(rows))
    rng, row, (n, d) = np.random.default_rng(0), row_of[bags], A.shape
    Z, labels = in_the_plane(A, columns)
    order = rng.permutation(n)
    drawn = order[np.argsort(row[order] < 0, kind="stable")][:DRAWN]
    if d == 1:  # a strip for each bag that is shown
        Z = np.column_stack([Z, row + rng.uniform(-0.27, 0.27, n)])
        drawn = drawn[row[drawn] >= 0]
    some = f", {len(drawn)} of {n}" if len(drawn) < n and d > 1 else ""
    ax.set_title("instances, colored by bag" + some, loc="left")
    frame(ax, Z, labels, len(rows))
    draw_instances(ax, Z[drawn], row[drawn], rows)
    if (row[drawn] < 0).any():
        sample(ax, "other bags", color=LIGHT, markersize=4)
        legend_below(ax)


def draw_right(ax, P, sizes, rows, names, classes):
    """Draw the bars of the proportions, with the names of the bags, and a key of several classes."""
    draw_bars(ax, P[rows], class_prior(P, sizes), classes)
    inches = ax.figure.get_figheight() * ax.get_position().height
    roomy = 72 * inches / len(rows) > 25  # points, for two lines of text
    ticks = [bag_label(names[r], sizes[r], roomy) for r in rows]
    ax.set_yticks(range(len(rows)), ticks)
    what = classes[1] if len(classes) == 2 else "each class"
    ax.set(ylim=(len(rows) - 0.5, -0.5), xlabel=f"proportion of {what}")
    n_bags = np.count_nonzero(sizes)
    some = f", {len(rows)} of {n_bags} bags" if len(rows) < n_bags else ""
    ax.set_title(f"label proportions{some}", loc="right" if some else "left")
    legend_below(ax, at=1)  # there is room under the names of the bags


def spread(P, sizes, max_bags):
    """The rows to show: all bags with instances, or ``max_bags`` at evenly spaced ranks of their proportions."""
    rows = np.flatnonzero(sizes > 0)
    if len(rows) <= max_bags:
        return rows
    column = 1 if P.shape[1] == 2 else P[rows].var(axis=0).argmax()
    ranked = rows[np.argsort(P[rows, column], kind="stable")]
    return ranked[np.round(np.linspace(0, len(ranked) - 1, max_bags)).astype(int)]


def in_the_plane(A, columns):
    """Instances in at most two coordinates, with the labels of the axes."""
    if A.shape[1] > 2:
        pca = PCA(2, random_state=0).fit(A)
        shares = enumerate(pca.explained_variance_ratio_, start=1)
        labels = [f"PC {j} ({100 * r:.0f} % of variance)" for j, r in shares]
        return pca.transform(A), labels
    names = [rf"$x_{j + 1}$" for j in range(A.shape[1])]
    names = names if columns is None else [literal(name) for name in columns]
    return A.toarray() if sp.issparse(A) else A, names


def frame(ax, Z, labels, n_strips):
    """Set the limits of the axes, and their labels."""
    low, high = Z.min(axis=0), Z.max(axis=0)
    pad = np.where(high > low, 0.06 * (high - low), 1.0)
    (left, bottom), (right, top) = low - pad, high + pad
    ax.set(xlim=(left, right), ylim=(bottom, top), xlabel=labels[0])
    if len(labels) == 2:
        ax.set_ylabel(labels[1])
    else:
        ax.set(yticks=[], ylim=(n_strips - 0.5, -0.5))
        ax.spines["left"].set_visible(False)
    ax.spines[["top", "right"]].set_visible(False)


def bag_label(name, size, roomy):
    """Name and size of a bag; a long name takes two lines where there is room."""
    if roomy:
        name = textwrap.fill(name, 20, max_lines=2, placeholder="…")
    elif len(name) > 20:
        name = name[:19] + "…"
    return literal(f"{name} (n = {size})")


def draw_instances(ax, Z, row, rows):
    """Scatter the instances, with marker and color by bag."""
    area = np.clip(420 / np.sqrt(len(Z)), 10, 34)
    other = {"color": LIGHT, "linewidths": 0, "gid": "other bags"}
    of_others = Z[row < 0]
    ax.scatter(of_others[:, 0], of_others[:, 1], area / 2, zorder=1, **other)
    for k, bag in enumerate(rows):
        color, marker, factor, edge = look(k)
        style = {"color": color, "edgecolors": edge, "linewidths": 0.5}
        style |= {"gid": f"bag {bag}", "zorder": 2}
        own = Z[row == k]
        ax.scatter(own[:, 0], own[:, 1], factor * area, marker=marker, **style)


def draw_bars(ax, P, prior, names):
    """Draw one horizontal bar per bag, the share of the positive class, or a stack of all classes."""
    n, K = P.shape
    at, height = np.arange(n), min(0.62, 0.17 * n)
    colors = [look(k)[0] for k in range(n)]
    if K == 2:
        ax.barh(at, P[:, 1], height, color=colors, zorder=2)
        for i, p in enumerate(P[:, 1]):
            ax.text(1, i, f"{p:.2f}", va="center", fontsize="small", **beside(ax, 5))
    else:
        draw_stacks(ax, P, height, colors, names)
    for i in at:  # the key of the bags
        color, marker, factor, edge = look(i)
        line = {"markeredgecolor": edge, "markeredgewidth": 0.6, "clip_on": False}
        key = {"color": color, "markersize": 6.5 * factor**0.5} | beside(ax, -8)
        ax.plot(0, i, marker, **key, **line)
    for value in prior[1:] if K == 2 else prior.cumsum()[:-1]:
        ax.axvline(value, gid="class prior", **PRIOR)
    number = f" {prior[1]:.2f}" if K == 2 else ""
    sample(ax, f"class prior{number}", marker="", **PRIOR)
    ax.tick_params(axis="y", length=0, pad=16)
    ax.set_xlim(0, 1)
    ax.set_xticks([*TICKS], TICKS.values())
    ax.grid(axis="x", color="#DDDDDD", linewidth=0.7)
    ax.set_axisbelow(True)
    ax.spines[["left", "top", "right"]].set_visible(False)


def draw_stacks(ax, P, height, colors, names):
    """Draw a stack of the shares of all classes per bag, in tints of the color of the bag."""
    for c, name in enumerate(names):
        share, left = 0.8 * c / (len(names) - 1), P[:, :c].sum(axis=1)
        tints = [mix(color, share) for color in colors]
        white = {"edgecolor": "white", "linewidth": 0.8, "zorder": 2}
        ax.barh(np.arange(len(P)), P[:, c], height, left, color=tints, **white)
        sample(ax, name, marker="s", color=mix("#444444", share), markersize=7)


def beside(ax, points):
    """A transform: x in the width of the panel, shifted by some points, y in bags."""
    from matplotlib.transforms import offset_copy

    sides = ax.get_yaxis_transform()
    return {"transform": offset_copy(sides, ax.figure, x=points, units="points")}


def mix(color, share):
    """Mix a color of the palette with a share of white, as a hexadecimal number."""
    rgb = np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)])
    return "#" + "".join(f"{round(c):02X}" for c in (1 - share) * rgb + share * 255)


def look(k):
    """Color, marker, area of the marker and color of its edge for the ``k``-th bag; 64 pairs differ."""
    m = (k + k // 8) % 8
    return PALETTE[k % 8], MARKERS[m], AREAS[m], INKS[k % 8]


def sample(ax, label, **style):
    """Add an entry to the legend that has no artist of its own."""
    ax.plot([], [], **{"linestyle": "none", "marker": "o", "color": DARK, "label": label} | style)  # fmt: skip


def legend_below(ax, at=0.5, **options):
    """Draw the legend of all labels under the x axis, in as many columns as fit."""
    from matplotlib.transforms import offset_copy

    handles, labels = ax.get_legend_handles_labels()
    down = -2.7 * ax.xaxis.label.get_size() - 9  # points, below ticks and label
    options |= {"loc": "upper right" if at == 1 else "upper center", "frameon": False}
    options |= {"borderaxespad": 0, "columnspacing": 1.2, "handletextpad": 0.5}
    where = offset_copy(ax.transAxes, ax.figure, y=down, units="points")
    for ncols in range(len(handles), 0, -1):
        place = {"bbox_to_anchor": (at, 0), "bbox_transform": where, "ncols": ncols}
        legend = ax.legend(handles, labels, **options, **place)
        if legend.get_window_extent().width < 1.3 * ax.get_window_extent().width:
            break  # the panel with its labels is about so wide
