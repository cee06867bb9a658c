r"""Pictures of bags: the one standard figure of the book, and the two that go with it.

:func:`plot_bags` draws what a learner from label proportions sees: instances coloured by bag, and the proportions of
the bags as bars. True labels enter only when ``y`` is given, and the figure then says so. :func:`plot_proportions`
shows the proportions of many bags against sampling noise, :func:`plot_learning_curve` accuracy against bag size.

Colours are those of Okabe and Ito (2008), ordered so that the first ones differ most for colour-blind readers; every
colour comes with its own marker, so no figure depends on colour alone. Nothing here changes matplotlib's settings but
:func:`use_style`, nothing calls ``plt.show()``, and matplotlib is imported only when a figure is drawn.
"""

import textwrap

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.ndimage import distance_transform_edt
from scipy.stats import binom, hypergeom
from sklearn.decomposition import PCA
from sklearn.isotonic import isotonic_regression
from sklearn.utils import check_array

from ..base import check_bags, check_proportions
from ..proportions import class_prior, label_proportions

__all__ = [
    "MARKERS",
    "PALETTE",
    "draw_dag",
    "draw_dags",
    "ink",
    "plot_bags",
    "plot_learning_curve",
    "plot_proportions",
    "use_style",
]

PALETTE = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#56B4E9",
    "#CC79A7",
    "#E69F00",
    "#000000",
    "#F0E442",
)
"""Okabe and Ito's colours: blue, vermillion, green, sky blue, purple, orange, black, yellow."""

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
"""One marker for each colour of :data:`PALETTE`."""

_AREA = {
    "^": 1.2,
    "v": 1.2,
    "P": 1.25,
    "X": 1.25,
    "*": 1.8,
    "D": 0.75,
}  # so that all markers look equally large
_GREY, _DARK = "#C4C4C4", "#222222"
_GRID = 240  # points a side on which a decision region is evaluated


def _pyplot():
    """matplotlib.pyplot, or an ImportError that says what to install."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as err:
        raise ImportError(
            "llpbook.plotting needs matplotlib: pip install llpbook[plot]"
        ) from err
    return plt


def use_style():
    """Apply the style of the book to every figure from here on; the same as ``plt.style.use("llpbook.llpbook")``.

    Raises
    ------
    ImportError
        If matplotlib is not installed.

    Examples
    --------
    >>> from llpbook.plotting import use_style
    >>> use_style()  # doctest: +SKIP
    """
    _pyplot().style.use("llpbook.llpbook")


# --- colours ---------------------------------------------------------------------------------------------------------
def _rgb(color):
    """The three channels of ``"#rrggbb"``, in [0, 1]."""
    return np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)]) / 255


def _hex(rgb):
    return "#" + "".join(f"{round(255 * c):02X}" for c in np.clip(rgb, 0, 1))


def _contrast_with_white(color):
    """The contrast ratio of WCAG 2: 1 for white, 21 for black."""
    rgb = _rgb(color)
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return 1.05 / (linear @ [0.2126, 0.7152, 0.0722] + 0.05)


def ink(color, contrast=4.5):
    """A colour darkened until it reads on white: for text and for the outlines of markers.

    Parameters
    ----------
    color : str
        ``"#rrggbb"``.
    contrast : float
        The contrast ratio with white to reach, in [1, 21]; 4.5 is what WCAG 2 asks of text.

    Returns
    -------
    str
        ``"#rrggbb"``, the same hue; the colour itself if it is dark enough.

    Raises
    ------
    ValueError
        If ``contrast`` is outside [1, 21].

    Examples
    --------
    >>> from llpbook.plotting import ink
    >>> ink("#0072B2"), ink("#F0E442")
    ('#0072B2', '#7F7923')
    """
    if not 1 <= contrast <= 21:
        raise ValueError(f"contrast must be in [1, 21], got {contrast}")
    for keep in np.linspace(1, 0, 101):
        darker = _hex(keep * _rgb(color))
        if _contrast_with_white(darker) >= contrast:
            break
    return darker


def _tint(color, share):
    """``color`` mixed with a ``share`` of white."""
    return _hex((1 - share) * _rgb(color) + share)


def _look(k):
    """Colour and marker of the ``k``-th thing; 64 pairs before one comes again."""
    return PALETTE[k % 8], MARKERS[(k + k // 8) % 8]


# --- input -----------------------------------------------------------------------------------------------------------
def _check_classes(n_classes, columns, estimator, y):
    """The classes in the order of the columns of the proportions: from those, else the estimator, else ``y``."""
    if columns is not None:
        classes = np.asarray(columns)
    elif estimator is not None:
        classes = np.asarray(estimator.classes_)
    elif y is not None and not np.isin(y, np.arange(n_classes)).all():
        classes = np.unique(y)
    else:
        classes = np.arange(n_classes)
    if len(classes) != n_classes:
        source = "estimator" if columns is None and estimator is not None else "y"
        raise ValueError(
            f"{source} has the classes {classes.tolist()}, but proportions has {n_classes} columns"
        )
    if estimator is not None and set(np.asarray(estimator.classes_).tolist()) != set(
        classes.tolist()
    ):
        raise ValueError(
            f"estimator has the classes {np.asarray(estimator.classes_).tolist()}, "
            f"but proportions has {classes.tolist()}"
        )
    if y is not None and not np.isin(y, classes).all():
        raise ValueError(
            f"y holds {y[~np.isin(y, classes)][0]!r}, which is not one of the classes {classes.tolist()}"
        )
    return classes


def _check_names(names, default, argument):
    names = list(default) if names is None else [str(name) for name in names]
    if len(names) != len(default):
        raise ValueError(
            f"{argument} must have {len(default)} entries, got {len(names)}"
        )
    return names


def _spread(P, sizes, max_bags):
    """The rows to show: all bags with instances, or ``max_bags`` at evenly spaced ranks of their proportions."""
    rows = np.flatnonzero(sizes > 0)
    if len(rows) <= max_bags:
        return rows
    column = P.shape[1] - 1 if P.shape[1] == 2 else P[rows].var(axis=0).argmax()
    ranked = rows[np.argsort(P[rows, column], kind="stable")]
    return ranked[np.round(np.linspace(0, len(ranked) - 1, max_bags)).astype(int)]


# --- the decision of an estimator ------------------------------------------------------------------------------------
def _margins(estimator, X, classes):
    """For each instance and class, how far the class is ahead of the best other one: > 0 where it is predicted.

    From ``decision_function`` or ``predict_proba`` where they agree with ``predict``, so that boundaries are smooth;
    else +1 and -1 from ``predict`` alone.
    """
    predicted = np.asarray(estimator.predict(X))
    order = [np.asarray(estimator.classes_).tolist().index(c) for c in classes.tolist()]
    hard = np.where(predicted[:, None] == classes, 1.0, -1.0)
    for name in ("decision_function", "predict_proba"):
        if not hasattr(estimator, name):
            continue
        scores = np.asarray(getattr(estimator, name)(X), dtype=float)
        if scores.ndim == 1:
            scores = np.column_stack([-scores, scores])
        if scores.shape != hard.shape:  # one column a pair of classes
            continue
        scores = scores[:, order]
        others = np.stack(
            [np.delete(scores, c, axis=1).max(axis=1) for c in range(len(classes))],
            axis=1,
        )
        margins = scores - others
        if np.mean(classes[scores.argmax(axis=1)] == predicted) > 0.999:
            return margins
    return hard


def _label_spots(margins, points, xlim, ylim, lengths):
    """For each class, a place for a text in its region, clear of borders and instances (None: no room)."""
    ny, nx, n_classes = margins.shape
    free = np.ones((ny, nx), dtype=bool)
    j = ((points[:, 0] - xlim[0]) / (xlim[1] - xlim[0]) * (nx - 1)).round().astype(int)
    i = ((points[:, 1] - ylim[0]) / (ylim[1] - ylim[0]) * (ny - 1)).round().astype(int)
    free[np.clip(i, 0, ny - 1), np.clip(j, 0, nx - 1)] = False
    spots = []
    half = ny / 28  # of the height of a text, in cells
    for c, length in zip(range(n_classes), lengths, strict=True):
        sampling = (1, 2.6 / length)  # the more letters, the more room to the sides
        border = distance_transform_edt(
            np.pad(margins[:, :, c] > 0, 1), sampling=sampling
        )[1:-1, 1:-1]
        crowd = distance_transform_edt(free, sampling=sampling)
        score = np.where(
            border > half, np.minimum(crowd, 1.7 * half) + 0.02 * border, -1
        )
        row, col = np.unravel_index(score.argmax(), score.shape)
        at = (
            xlim[0] + col / (nx - 1) * (xlim[1] - xlim[0]),
            ylim[0] + row / (ny - 1) * (ylim[1] - ylim[0]),
        )
        spots.append(at if score[row, col] > 0 else None)
    return spots


def _halo(text):
    from matplotlib import patheffects

    text.set_path_effects([patheffects.withStroke(linewidth=2.5, foreground="white")])


def _draw_regions(ax, estimator, columns, classes, names, points):
    """Decision regions of an estimator on one or two features: grey tints, black borders, a label in each region."""

    def frame(mesh):  # as the estimator saw it in fit
        return mesh if columns is None else pd.DataFrame(mesh, columns=columns)

    xlim, ylim = ax.get_xlim(), ax.get_ylim()
    tints = np.linspace(0, 0.13, len(classes)) if len(classes) > 2 else [0, 0.09]
    if points.shape[1] == 1:
        xs = np.linspace(*xlim, 20 * _GRID)
        margins = _margins(estimator, frame(xs[:, None]), classes)
        which = margins.argmax(axis=1)
        cuts = np.flatnonzero(np.diff(which))
        at = []
        for k in cuts:  # where the margin of the class on the left crosses zero
            left, right = margins[k, which[k]], margins[k + 1, which[k]]
            at.append(xs[k] + (xs[k + 1] - xs[k]) * left / (left - right))
            ax.axvline(
                at[-1], color=_DARK, linewidth=1.4, zorder=3, gid="decision boundary"
            )
        edges = [xlim[0], *at, xlim[1]]
        for c, left, right in zip(
            which[np.r_[cuts, -1]], edges[:-1], edges[1:], strict=True
        ):
            ax.axvspan(
                left, right, color="black", alpha=tints[c], linewidth=0, zorder=0
            )
        spans = list(zip(which[np.r_[cuts, -1]], edges[:-1], edges[1:], strict=True))
        # A letter is about a sixtieth of the panel wide; where a text does not fit, all say the name alone.
        room = {
            c: 60 * (right - left) / (xlim[1] - xlim[0]) for c, left, right in spans
        }
        full = all(len(f"predicts {names[c]}") < room[c] for c in room)
        for c, left, right in spans:
            if len(names[c]) < 60 * (right - left) / (xlim[1] - xlim[0]):
                ax.annotate(
                    f"predicts {names[c]}" if full else names[c],
                    ((left + right) / 2, 1),
                    xycoords=("data", "axes fraction"),
                    xytext=(0, -3),
                    textcoords="offset points",
                    ha="center",
                    va="top",
                    fontsize="small",
                )
        return
    xs, ys = np.linspace(*xlim, _GRID), np.linspace(*ylim, _GRID)
    mesh = np.column_stack([a.ravel() for a in np.meshgrid(xs, ys)])
    margins = _margins(estimator, frame(mesh), classes).reshape(
        _GRID, _GRID, len(classes)
    )
    for c in range(len(classes)):
        m = margins[:, :, c]
        if m.max() > 0 and tints[c] > 0:
            ax.contourf(
                xs,
                ys,
                m,
                levels=[0, 2 * m.max()],
                colors="black",
                alpha=tints[c],
                zorder=0,
            )
        if m.min() < 0 < m.max() and (len(classes) > 2 or c == 1):
            border = ax.contour(
                xs, ys, m, levels=[0], colors=_DARK, linewidths=1.4, zorder=3
            )
            border.set_gid("decision boundary")
    shown = margins.max(axis=(0, 1)) > 0
    for texts in ([f"predicts {name}" for name in names], names):
        spots = _label_spots(margins, points, xlim, ylim, [len(t) for t in texts])
        if all(
            spot is not None for spot, here in zip(spots, shown, strict=True) if here
        ):
            break  # else the names alone, where they fit
    for text, spot in zip(texts, spots, strict=True):
        if spot is not None:
            _halo(
                ax.annotate(
                    text, spot, ha="center", va="center", fontsize="small", zorder=6
                )
            )


# --- panels ----------------------------------------------------------------------------------------------------------
def _legend_below(ax, handles, ncols=None, drop=0, title=None, letters=50):
    """A legend under the label of the x axis, outside the data."""
    from matplotlib import rcParams
    from matplotlib.font_manager import FontProperties
    from matplotlib.transforms import ScaledTranslation

    if not handles:
        return
    size = (
        FontProperties(size=rcParams["xtick.labelsize"]).get_size_in_points()
        + ax.xaxis.label.get_size()
    )
    down = ScaledTranslation(
        0, -(1.35 * size + 9 + drop) / 72, ax.figure.dpi_scale_trans
    )
    ax.legend(
        handles=handles,
        loc="upper center",
        bbox_to_anchor=(0.5, 0),
        bbox_transform=ax.transAxes + down,
        ncols=ncols or _columns([h.get_label() for h in handles], letters),
        title=title,
        title_fontsize="small",
        frameon=False,
        borderaxespad=0,
        columnspacing=1.2,
        handletextpad=0.5,
    )


def _columns(labels, letters):
    """The most columns, at most 4, in which the entries of a legend fit into the width of so many letters."""
    for ncols in range(min(4, len(labels)), 1, -1):
        columns = np.array_split(labels, ncols)  # as matplotlib fills them
        if sum(max(len(t) for t in column) + 6 for column in columns) <= letters:
            return ncols
    return 1


def _handle(label, marker="o", face=_DARK, edge=_DARK, line="none", **kwargs):
    from matplotlib.lines import Line2D

    return Line2D(
        [],
        [],
        linestyle=line,
        marker=marker,
        markerfacecolor=face,
        markeredgecolor=edge,
        color=edge,
        label=label,
        **{"markersize": 5.5, **kwargs},
    )


def _draw_prior(ax, values, label):
    """Dashed lines at the class prior, and their entry in the legend."""
    dashes, width = (0, (4, 2.5)), 1.2
    for value in values:
        ax.axvline(
            value,
            color=_DARK,
            linestyle=dashes,
            linewidth=width,
            zorder=3,
            gid="class prior",
        )
    return _handle(label, marker="", line=dashes, linewidth=width)


def _plane(X, feature_names):
    """Instances in at most two coordinates, with the labels of the axes."""
    d = X.shape[1]
    if d <= 2:
        dense = X.toarray() if sp.issparse(X) else X
        names = (
            [rf"$x_{j + 1}$" for j in range(d)]
            if feature_names is None
            else feature_names
        )
        return dense, names
    pca = PCA(2, svd_solver="arpack" if sp.issparse(X) else "auto", random_state=0).fit(
        X
    )
    labels = [
        f"PC {j + 1} ({100 * r:.0f} % of variance)"
        for j, r in enumerate(pca.explained_variance_ratio_)
    ]
    return pca.transform(X), labels


def _pick_instances(shown, max_instances, rng):
    """At most ``max_instances`` indices, those in shown bags first, in random order."""
    order = rng.permutation(len(shown))
    return order[np.argsort(~shown[order], kind="stable")][:max_instances]


def _frame_instances(ax, Z, d, xy_labels, strips):
    """Limits and labels of the left panel, set before anything is drawn: regions fill exactly what is seen."""
    low, high = Z.min(axis=0), Z.max(axis=0)
    pad = np.where(high > low, 0.06 * (high - low), 1.0)
    ax.set_xlim(low[0] - pad[0], high[0] + pad[0])
    ax.set_ylim(strips if d == 1 else (low[1] - pad[1], high[1] + pad[1]))
    ax.set_xlabel(xy_labels[0])
    ax.spines[["top", "right"]].set_visible(False)
    if d == 1:
        ax.set_yticks([])
        ax.spines["left"].set_visible(False)
    else:
        ax.set_ylabel(xy_labels[1])


def _draw_instances(ax, Z, codes, rows, color_by, filled, drawn):
    """Scatter the drawn instances: marker by bag, colour by ``color_by`` (a number each), hollow where not filled."""
    palette = [_look(k)[0] for k in range(color_by.max() + 1)]
    area = np.clip(420 / np.sqrt(len(drawn)), 10, 34)
    other = drawn[~np.isin(codes[drawn], rows)]
    if len(other):
        ax.scatter(
            *Z[other].T,
            s=0.5 * area,
            marker="o",
            color=_GREY,
            linewidths=0,
            zorder=1,
            gid="other bags",
        )
    for k, row in enumerate(rows):
        marker = _look(k)[1]
        mine = drawn[codes[drawn] == row]
        full = filled[mine]
        paint = np.array(palette)[color_by[mine]]
        edges = np.array([ink(c) for c in palette])[color_by[mine]]
        faces = np.where(full, paint, "#FFFFFF")
        ax.scatter(
            *Z[mine].T,
            s=area * _AREA.get(marker, 1),
            marker=marker,
            facecolors=faces,
            edgecolors=edges,
            linewidths=np.where(full, 0.5, 1.1),
            zorder=2,
            gid=f"bag {row}",
        )


def _draw_bars(ax, P, rows, ticks, names, eta, predicted, by_class):
    """One horizontal bar a bag, the share of the positive class, or a stack of all classes; returns the legend."""
    from matplotlib.transforms import ScaledTranslation

    n, K = len(rows), P.shape[1]
    at, height = np.arange(n), min(0.62, 0.17 * n)
    looks = [_look(k) for k in range(n)]
    handles = []
    if K == 2:
        ax.barh(
            at, P[rows, 1], height=height, color=[color for color, _ in looks], zorder=2
        )
        for i, p in zip(at, P[rows, 1], strict=True):
            beside = {
                "xytext": (5, 0),
                "textcoords": "offset points",
                "va": "center",
                "fontsize": "small",
            }
            ax.annotate(
                f"{p:.2f}",
                (1, i),
                xycoords=("axes fraction", "data"),
                annotation_clip=False,
                **beside,
            )
    else:
        left = np.zeros(n)
        for c in range(
            K
        ):  # in the colour of the class, or in tints of the bags' colours, whose key is grey
            share = 0.8 * c / (K - 1)
            colors = (
                [_look(c)[0]] * n
                if by_class
                else [_tint(color, share) for color, _ in looks]
            )
            ax.barh(
                at,
                P[rows, c],
                height,
                left,
                color=colors,
                edgecolor="white",
                linewidth=0.8,
                zorder=2,
            )
            left += P[rows, c]
            key = _look(c)[0] if by_class else _tint("#444444", share)
            handles.append(
                _handle(names[c], marker="s", face=key, edge=key, markersize=7)
            )
    before = ax.get_yaxis_transform() + ScaledTranslation(
        -8 / 72, 0, ax.figure.dpi_scale_trans
    )
    for i, (color, marker) in enumerate(
        looks
    ):  # the key of the bags: each one's marker before its bar
        face = "#777777" if by_class else color
        size = 6.5 * _AREA.get(marker, 1) ** 0.5
        look = {
            "markerfacecolor": face,
            "markeredgecolor": ink(face),
            "markeredgewidth": 0.6,
            "markersize": size,
        }
        ax.plot(
            0,
            i,
            transform=before,
            marker=marker,
            linestyle="none",
            clip_on=False,
            zorder=5,
            gid="key",
            **look,
        )
    prior = np.cumsum(eta)[:-1] if K > 2 else eta[1:]
    label = f"class prior {eta[1]:.2f}" if K == 2 else "class prior"
    handles.append(_draw_prior(ax, prior, label))
    if predicted is not None:
        values = (
            np.cumsum(predicted[rows], axis=1)[:, :-1] if K > 2 else predicted[rows, 1:]
        )
        ax.plot(
            values.ravel(),
            np.repeat(at, values.shape[1]),
            linestyle="none",
            marker="D",
            markersize=5.5,
            markerfacecolor="white",
            markeredgecolor=_DARK,
            markeredgewidth=1.2,
            zorder=4,
            clip_on=False,
            gid="predicted proportions",
        )
        handles.append(
            _handle("predicted", marker="D", face="white", markeredgewidth=1.2)
        )
    ax.set_yticks(at, ticks)
    ax.tick_params(axis="y", length=0, pad=16)
    ax.set_xlim(0, 1)
    ax.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "0.25", "0.5", "0.75", "1"])
    ax.grid(axis="x", color="#DDDDDD", linewidth=0.7, zorder=0)
    ax.set_axisbelow(True)
    ax.spines[["left", "top", "right"]].set_visible(False)
    return handles


def _bag_label(name, size, roomy):
    """Name and size of a bag beside its bar; a long name takes two lines where there is room, else it is cut."""
    if len(name) > 14 and not roomy:
        name = name[:13] + "…"
    elif len(name) > 14:
        name = textwrap.fill(name, 20, max_lines=2, placeholder=" …")
        return (
            f"{name}\n(n = {size})"
            if "\n" not in name and len(name) > 14
            else f"{name} (n = {size})"
        )
    return f"{name} (n = {size})"


def plot_bags(
    X,
    bags,
    proportions,
    estimator=None,
    y=None,
    *,
    class_names=None,
    bag_names=None,
    max_bags=8,
    max_instances=1500,
    feature_names=None,
    axes=None,
    figsize=None,
    random_state=0,
):
    """The standard figure of the book: instances coloured by bag, and the proportions of the bags as bars.

    Left, the instances, with colour and marker by bag. One feature: a jittered strip a bag, in the order of the bars.
    Two: as they are. More: in their first two principal components (of ``X`` as given, centred, not scaled). Right, one
    bar a bag, as long as its share of the positive class; with three classes or more, a stack of all shares.

    **With an estimator** the right panel shows its predicted proportions. In one or two features the left panel shows
    its decision regions. In more it draws none: a boundary on the plane of the principal components would be that of
    points of this plane, and the instances do not lie in it. Instead each instance shows what is predicted for
    it: filled if it is the positive class, hollow if not; by colour with three classes or more.

    **With true labels** the left panel is an evaluation plot and its title says so: instances of the positive class are
    filled, the others hollow; with three classes or more, the colour is the class and the marker the bag. With an
    estimator and more than two features, wrong predictions are crossed out.

    Parameters
    ----------
    X : array-like, sparse matrix or DataFrame, shape (n_instances, n_features)
    bags : array-like, shape (n_instances,)
        The bag of each instance: a row number of ``proportions``, or one of its keys.
    proportions : array-like, Series, dict or DataFrame, shape (n_bags,) or (n_bags, n_classes)
        The share of the positive class in each bag, or of every class.
    estimator : fitted classifier, optional
        With ``predict`` and ``classes_``, of this package or any other; ``decision_function`` or ``predict_proba`` make
        the boundary smooth. Predicted proportions are the shares of ``predict`` in each bag.
    y : array-like, shape (n_instances,), optional
        True labels. For evaluation only: no other part of the figure uses them.
    class_names : sequence of str, shape (n_classes,), optional
        In the order of the columns of ``proportions``; "class 0" and so on if not given.
    bag_names : sequence of str, shape (n_bags,), optional
        In the order of the rows of ``proportions``; the keys or row numbers if not given.
    max_bags : int
        With more bags than this, so many are shown: those at evenly spaced ranks of the proportion of the positive
        class (with three classes or more, of the class whose proportion varies most), from the smallest to the
        largest, and in this order. The others are grey, or left out with one feature. The title of the right panel
        says how many are shown of how many. Bags without instances are not counted.
    max_instances : int
        With more instances than this, a random choice is drawn (those of shown bags first), and the title says so.
    feature_names : sequence of str, shape (n_features,), optional
        Labels of the axes if ``n_features`` is 1 or 2; the columns of a DataFrame if not given.
    axes : pair of matplotlib Axes, optional
        Where to draw; None in place of one of them leaves this panel out.
    figsize : pair of float, optional
        Inches; ``(7, 3)`` or a little more if many bags are shown. Not used with ``axes``.
    random_state : int
        Seed of the jitter and of the choice of instances.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ValueError
        If lengths or shapes disagree, ``X`` has missing values, a bag has no row in ``proportions``, a proportion is
        outside [0, 1], a row does not sum to 1, or labels, ``estimator`` and ``proportions`` have different classes.
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
    ['instances, coloured by bag', 'label proportions']
    """
    plt = _pyplot()
    # Everything that can fail comes before the first figure is made.
    A = check_array(X, accept_sparse="csr", dtype=float, input_name="X")
    names_of_features = X.columns if isinstance(X, pd.DataFrame) else None
    if names_of_features is None:
        X = A
    elif feature_names is None:
        feature_names = X.columns.astype(str).to_list()
    n, d = A.shape
    for name, value in (("max_bags", max_bags), ("max_instances", max_instances)):
        if not isinstance(value, int | np.integer) or value < 1:
            raise ValueError(f"{name} must be an integer of at least 1, got {value!r}")
    P, class_columns, keys = check_proportions(proportions)
    if not isinstance(proportions, pd.DataFrame):
        class_columns = None  # 0, 1, ... only for want of names
    codes = check_bags(bags, n, len(P), keys)
    K = P.shape[1]
    if y is not None:
        y = np.asarray(y)
        if y.shape != (n,):
            raise ValueError(
                f"y must have one label for each of the {n} instances in X, got shape {y.shape}"
            )
    classes = _check_classes(K, class_columns, estimator, y)
    names = _check_names(
        class_names, [f"class {c}" for c in classes.tolist()], "class_names"
    )
    default = (
        [f"bag {k}" for k in range(len(P))] if keys is None else [str(k) for k in keys]
    )
    bag_names = _check_names(bag_names, default, "bag_names")
    if feature_names is not None and len(feature_names) != d:
        raise ValueError(
            f"feature_names must have {d} entries, one a feature, got {len(feature_names)}"
        )
    if axes is not None and len(axes) != 2:
        raise ValueError(
            f"axes must be a pair of Axes (or None in place of one), got {len(axes)}"
        )

    if axes is not None and axes[0] is None and axes[1] is None:
        raise ValueError("axes must hold at least one Axes, got (None, None)")

    sizes = np.bincount(codes, minlength=len(P))
    rows, n_bags = _spread(P, sizes, max_bags), int((sizes > 0).sum())
    rng = np.random.default_rng(random_state)
    drawn = _pick_instances(np.isin(codes, rows), max_instances, rng)
    position = np.zeros(len(P), dtype=int)
    position[rows] = np.arange(len(rows))
    y_hat = None if estimator is None else np.asarray(estimator.predict(X))
    predicted = (
        None
        if estimator is None
        else label_proportions(y_hat, codes, n_bags=len(P), classes=classes)
    )
    Z, xy_labels = _plane(A, feature_names)
    if d == 1:
        Z = np.column_stack([Z[:, 0], position[codes] + rng.uniform(-0.27, 0.27, n)])
        drawn = drawn[np.isin(codes[drawn], rows)]

    # Which labels the left panel shows, if any, and what colour means then: the bag, or one of many classes.
    labels = y if y is not None else (y_hat if d > 2 else None)
    columns_shown = (
        None if labels is None else (labels[:, None] == classes).argmax(axis=1)
    )
    by_class = labels is not None and K > 2

    if axes is None:
        height = 3 + 0.22 * max(0, len(rows) - 8)
        _, axes = plt.subplots(
            1,
            2,
            figsize=figsize or (7, height),
            layout="constrained",
            width_ratios=[1.25, 1],
        )
    left, right = axes
    rows_ylim = (
        len(rows) - 0.5,
        -0.95 if d == 1 and estimator is not None else -0.5,
    )  # room for the regions' names

    if left is not None:
        _frame_instances(left, Z, d, xy_labels, rows_ylim)
        handles, legend_title = [], None
        if estimator is not None and d <= 2:
            _draw_regions(left, estimator, names_of_features, classes, names, Z[:, :d])
            handles.append(
                _handle("decision boundary", marker="", line="-", linewidth=1.4)
            )
        filled = (
            np.ones(n, dtype=bool)
            if columns_shown is None or by_class
            else columns_shown == 1
        )
        _draw_instances(
            left,
            Z,
            codes,
            rows,
            columns_shown if by_class else position[codes],
            filled,
            drawn,
        )
        if by_class:
            handles += [
                _handle(names[c], face=_look(c)[0], edge=ink(_look(c)[0]))
                for c in range(K)
            ]
            legend_title = "true class" if y is not None else "predicted class"
        elif labels is not None:
            verb = "" if y is not None else "predicted "
            handles += [
                _handle(verb + names[1]),
                _handle(verb + names[0], face="white"),
            ]
        if y is not None and estimator is not None and d > 2:
            wrong = drawn[(y != y_hat)[drawn] & np.isin(codes[drawn], rows)]
            left.scatter(
                *Z[wrong].T,
                s=22,
                marker="x",
                color=_DARK,
                linewidths=0.9,
                zorder=4,
                gid="wrong predictions",
            )
            handles.append(_handle("wrong prediction", marker="x"))
        if len(rows) < n_bags and d > 1:
            handles.append(_handle("other bags", face=_GREY, edge=_GREY, markersize=4))
        if y is not None:
            title = "true labels (evaluation only)"
        elif labels is not None:
            title = "instances by bag and prediction"
        else:
            title = "instances, coloured by bag"
        if len(drawn) < n and d > 1:
            title += f", {len(drawn)} of {n}"
        left.set_title(title, loc="left")
        _legend_below(left, handles, title=legend_title)

    if right is not None:
        ticks = [_bag_label(bag_names[r], sizes[r], roomy=len(rows) <= 5) for r in rows]
        handles = _draw_bars(
            right, P, rows, ticks, names, class_prior(P, sizes), predicted, by_class
        )
        right.set_ylim(rows_ylim)
        right.set_xlabel(
            f"proportion of {names[1]}" if K == 2 else "proportions of the classes"
        )
        if (
            len(rows) < n_bags
        ):  # a long title grows to the left, over the names of the bags
            right.set_title(
                f"label proportions, {len(rows)} of {n_bags} bags", loc="right"
            )
        else:
            right.set_title("label proportions", loc="left")
        if by_class and left is not None:
            handles = handles[K:]  # the left panel has the key of the classes
        _legend_below(right, handles, letters=42)
    return (left if left is not None else right).figure


def plot_proportions(
    proportions,
    bag_sizes=None,
    *,
    noise=None,
    class_names=None,
    bins=None,
    axes=None,
    figsize=None,
):
    """Histogram and rug of the proportions of many bags, with the class prior and the spread of sampling noise.

    Where the noise alone explains the spread, as with random bags, the bags say no more than the class prior.

    Parameters
    ----------
    proportions : array-like, Series, dict or DataFrame, shape (n_bags,) or (n_bags, n_classes)
        The share of the positive class in each bag, or of every class: two classes give one panel, for the second;
        more give a panel each.
    bag_sizes : int or array-like of int, shape (n_bags,), optional
        Instances in each bag. The class prior is the mean weighted by them, unweighted if not given. Bags of size 0
        are left out.
    noise : {None, "binomial", "hypergeometric"}
        The number of bags to expect in each bar if all differences were chance, as a line, with its standard deviation
        in the legend: bags drawn from a population with the class prior, with replacement, or without (random bags that
        divide a finite data set). Each bag counts with its own size.
    class_names : sequence of str, shape (n_classes,), optional
    bins : int or array-like, optional
        Number of bars over [0, 1], or their edges. By default, where all bags have one size, edges half-way between
        possible proportions, and otherwise 20 to 40 bars, as the spread asks.
    axes : Axes or sequence of Axes, optional
        As many as panels.
    figsize : pair of float, optional
        Inches. Not used with ``axes``.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ValueError
        If proportions are malformed, sizes negative, none positive or of another number, ``noise`` is not one of the
        values above or given without ``bag_sizes``, or the number of ``axes`` is not that of the panels.
    ImportError
        If matplotlib is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> from llpbook.plotting import plot_proportions
    >>> p = np.random.default_rng(0).binomial(50, 0.44, size=200) / 50
    >>> fig = plot_proportions(p, bag_sizes=50, noise="binomial")
    >>> len(fig.axes)
    1
    """
    plt = _pyplot()
    P, columns, _ = check_proportions(proportions)
    L, K = P.shape
    if noise not in (None, "binomial", "hypergeometric"):
        raise ValueError(
            f'noise must be None, "binomial" or "hypergeometric", got {noise!r}'
        )
    if noise is not None and bag_sizes is None:
        raise ValueError(f"noise={noise!r} needs bag_sizes, got None")
    sizes = np.asarray(1 if bag_sizes is None else bag_sizes)
    if sizes.shape not in ((), (L,)):
        raise ValueError(
            f"bag_sizes must be one number or one for each of the {L} bags, got shape {sizes.shape}"
        )
    if (
        not np.all(sizes == np.round(sizes))
        or np.any(sizes < 0)
        or not np.any(sizes > 0)
    ):
        raise ValueError(
            f"bag_sizes must be integers of at least 0, not all 0, got {sizes.min()}"
        )
    sizes = np.broadcast_to(sizes, (L,)).astype(int)
    P, sizes = P[sizes > 0], sizes[sizes > 0]
    names = _check_names(
        class_names, [f"class {c}" for c in columns.tolist()], "class_names"
    )
    shown = [1] if K == 2 else list(range(K))
    eta = class_prior(P, sizes)
    all_edges = [
        _edges(P[:, c], None if bag_sizes is None else sizes, bins) for c in shown
    ]

    if axes is None:
        ncols = 2 if len(shown) == 4 else min(len(shown), 3)
        nrows = -(-len(shown) // ncols)
        fig, axes = plt.subplots(
            nrows,
            ncols,
            figsize=figsize or (7 if ncols > 1 else 5.5, 2.8 * nrows),
            layout="constrained",
            squeeze=False,
        )
        for spare in axes.ravel()[len(shown) :]:
            spare.remove()
        axes = axes.ravel()[: len(shown)]
    else:
        axes = np.atleast_1d(np.asarray(axes, dtype=object)).ravel()
        if len(axes) != len(shown):
            raise ValueError(
                f"axes must hold {len(shown)} Axes, one a panel, got {len(axes)}"
            )
        fig = axes[0].figure

    for panel, (ax, c, edges) in enumerate(zip(axes, shown, all_edges, strict=True)):
        p, color = P[:, c], PALETTE[panel % 8]
        ax.hist(
            p,
            bins=edges,
            color=_tint(color, 0.35),
            edgecolor="white",
            linewidth=0.5,
            zorder=2,
        )
        ax.plot(
            p,
            np.full(len(p), -0.035),
            linestyle="none",
            marker="|",
            markersize=7,
            markeredgewidth=0.8,
            color=color,
            alpha=float(np.clip(20 / len(p), 0.15, 0.8)),
            transform=ax.get_xaxis_transform(),
            clip_on=False,
            gid="rug",
        )
        handles = [
            _handle(
                f"{len(p)} bags, sd {p.std():.3f}",
                marker="s",
                face=_tint(color, 0.35),
                edge="white",
                markersize=8,
            )
        ]
        if noise is not None:
            expected, sd = _noise(sizes, eta[c], edges, noise)
            ax.stairs(
                expected,
                edges,
                color=_DARK,
                linewidth=1.4,
                zorder=3,
                gid="sampling noise",
            )
            handles.append(
                _handle(f"noise alone, sd {sd:.3f}", marker="", line="-", linewidth=1.4)
            )
        handles.append(_draw_prior(ax, eta[[c]], f"class prior {eta[c]:.2f}"))
        pad = 0.005 + max(0, -edges[0])  # half a bar where 0 and 1 are centres
        ax.set_xlim(-pad, 1 + pad)
        ax.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "0.25", "0.5", "0.75", "1"])
        ax.tick_params(axis="x", pad=9)  # room for the rug
        ax.set_xlabel(f"proportion of {names[c]}")
        ax.set_ylabel("number of bags")
        ax.yaxis.get_major_locator().set_params(integer=True)
        ax.spines[["top", "right"]].set_visible(False)
        _legend_below(ax, handles, ncols=1 if len(shown) > 1 else 3, drop=6)
    return fig


def _edges(p, sizes, bins):
    """Edges of a histogram of proportions; half-way between possible values where all bags have one size."""
    if bins is not None and np.ndim(bins) > 0:
        return np.asarray(bins, dtype=float)
    if bins is not None:
        return np.linspace(0, 1, bins + 1)
    spread = np.subtract(*np.percentile(p, [75, 25]))
    width = np.clip(
        2 * spread / np.cbrt(len(p)), 1 / 40, 1 / 20
    )  # Freedman and Diaconis
    if sizes is None or (sizes != sizes[0]).any() or sizes[0] == 1:
        return np.linspace(0, 1, round(1 / width) + 1)
    step = max(1, round(width * sizes[0]))
    return (np.arange(0, sizes[0] + step + 1, step) - 0.5) / sizes[0]


def _noise(sizes, prior, edges, kind):
    """The expected number of bags in each bar, and the standard deviation of proportions, by chance alone."""
    total, expected, variance = int(sizes.sum()), np.zeros(len(edges) - 1), 0.0
    for size, count in zip(*np.unique(sizes, return_counts=True), strict=True):
        law = (
            binom(size, prior)
            if kind == "binomial"
            else hypergeom(total, round(prior * total), size)
        )
        possible = np.arange(size + 1)
        expected += (
            count
            * np.histogram(possible / size, bins=edges, weights=law.pmf(possible))[0]
        )
        variance += count * law.var() / size**2
    return expected, float(np.sqrt(variance / len(sizes)))


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
        Published values in the same three columns: hollow markers and dashed lines in the colour of their method.
    hue_order : sequence, optional
        The methods to draw, in the order of the colours; by default all, as they come in ``table``, then in ``paper``.
    references : dict of str to float, optional
        Horizontal lines with their names, as ``{"majority class": 0.56}``.
    xlabel, ylabel : str, optional
        Labels of the axes; the columns' names, with spaces for underscores, if not given.
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
    plt = _pyplot()
    tables = {"table": table} if paper is None else {"table": table, "paper": paper}
    for name, frame in tables.items():
        if not isinstance(frame, pd.DataFrame) or len(frame) == 0:
            raise ValueError(
                f"{name} must be a DataFrame with at least one row, got {type(frame).__name__}"
            )
        for column in (x, y, hue):
            if column not in frame.columns:
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
    methods = known if hue_order is None else list(hue_order)
    for method in methods:
        if method not in known:
            raise ValueError(
                f"hue_order holds {method!r}, but column {hue!r} has {known}"
            )

    if ax is None:
        fig, ax = plt.subplots(figsize=figsize or (7, 3), layout="constrained")
    fig = ax.figure
    ends, ticks = {}, set()
    for k, method in enumerate(methods):
        color, marker = _look(k)
        mine = table[table[hue] == method]
        if len(mine):
            runs = mine.groupby(x)[y].agg(["mean", "std"])
            sd = runs["std"].fillna(0)  # one run has no spread to show
            ax.fill_between(
                runs.index,
                runs["mean"] - sd,
                runs["mean"] + sd,
                color=color,
                alpha=0.16,
                linewidth=0,
                zorder=1,
            )
            ax.plot(
                runs.index,
                runs["mean"],
                color=color,
                marker=marker,
                markeredgecolor=ink(color),
                markeredgewidth=0.6,
                label=str(method),
                zorder=3,
            )
            ends[method] = (runs.index[-1], runs["mean"].iloc[-1], ink(color))
            ticks |= set(runs.index)
        if paper is not None and (paper[hue] == method).any():
            theirs = paper[paper[hue] == method].groupby(x)[y].mean()
            ax.plot(
                theirs.index,
                theirs,
                color=ink(color),
                linestyle=(0, (4, 2)),
                linewidth=1.1,
                marker=marker,
                markerfacecolor="white",
                markeredgecolor=ink(color),
                markeredgewidth=1.1,
                zorder=2,
                label=f"{method} (paper)",
            )
            ends.setdefault(method, (theirs.index[-1], theirs.iloc[-1], ink(color)))
            ticks |= set(theirs.index)

    ticks = sorted(ticks)
    if log2:
        ax.set_xscale("log", base=2)
    ax.set_xticks(ticks, [f"{t:g}" for t in ticks])
    ax.minorticks_off()
    ax.set_xlabel(xlabel or x.replace("_", " "))
    ax.set_ylabel(ylabel or y.replace("_", " "))
    ax.grid(axis="y", color="#DDDDDD", linewidth=0.7, zorder=0)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    labels = {str(m): end for m, end in ends.items()}
    for name, value in (references or {}).items():
        ax.axhline(
            value,
            color="#666666",
            linestyle=":",
            linewidth=1.2,
            zorder=1,
            gid="reference",
        )
        labels[name] = (None, value, "#666666")
    if not (direct_labels and _label_ends(ax, labels)):
        handles, _ = ax.get_legend_handles_labels()
        handles += [
            _handle(name, marker="", line=":", edge="#666666", linewidth=1.2)
            for name in references or {}
        ]
        ax.legend(
            handles=handles,
            loc="upper left",
            bbox_to_anchor=(1.01, 1),
            borderaxespad=0,
            frameon=False,
        )
    elif paper is not None:
        sd = (
            "mean ± standard deviation"
            if table.groupby([hue, x]).size().max() > 1
            else "here"
        )
        _legend_below(
            ax,
            [
                _handle(sd, line="-", face="#666666", edge="#666666"),
                _handle("paper", line=(0, (4, 2)), face="white", edge="#666666"),
            ],
        )
    return fig


def _label_ends(ax, labels):
    """Write names beside the ends of lines, moved apart so that none overlap; False if there is no room for all."""
    from matplotlib.font_manager import FontProperties

    points = FontProperties(size="small").get_size_in_points()
    height = (
        67 * ax.figure.get_figheight() * ax.get_position().height
    )  # points; the layout leaves at least so much
    gap = 1.25 * points / height
    if len(labels) * gap > 1.05:
        return False
    low, high = ax.get_ylim()
    ax.set_ylim(low, high)
    wanted = np.array([(value - low) / (high - low) for _, value, _ in labels.values()])
    order = np.argsort(wanted, kind="stable")
    placed = _move_apart(wanted[order], gap)
    right = ax.get_xlim()[1]
    ax.set_xlim(ax.get_xlim())
    for at, k in zip(placed, order, strict=True):
        name, (end, value, color) = list(labels.items())[k]
        far = abs(at - wanted[k]) > 0.3 * gap or (end is not None and end < 0.9 * right)
        ax.annotate(
            name,
            (right if end is None else end, value),
            xycoords="data",
            xytext=(1.03, at),
            textcoords="axes fraction",
            color=color,
            fontsize="small",
            va="center",
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "color": color,
                "linewidth": 0.5,
                "shrinkA": 1,
                "shrinkB": 4,
            }
            if far
            else None,
        )
    return True


def _move_apart(wanted, gap):
    """The positions nearest to sorted ``wanted`` (least squares) that are at least ``gap`` apart."""
    steps = gap * np.arange(len(wanted))
    return isotonic_regression(wanted - steps) + steps


from ._dags import draw_dag, draw_dags  # noqa: E402
