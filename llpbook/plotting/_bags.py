"""The standard figure of the book: bags of instances, and their label proportions."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.decomposition import PCA
from sklearn.utils import check_array

from .._typing import ArrayLike, Matrix, Proportions
from ..base import check_column, read_bags
from ..proportions import check_whole, class_prior, label_proportions
from ._style import (
    DARK,
    GRAY,
    HOLLOW,
    LIGHT,
    PRIOR,
    SHARES,
    check_names,
    ink,
    legend_below,
    literal,
    look,
    mix,
    pyplot,
    sample,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

GRID = 200  # points a side on which a decision region is evaluated
DRAWN = 1500  # instances


def plot_bags(
    X: Matrix, bags: ArrayLike, proportions: Proportions, *, estimator: Any = None,
    y: ArrayLike | None = None, class_names: Sequence[str] | None = None,
    bag_names: Sequence[str] | None = None, max_bags: int = 8,
    axes: Sequence[Any] | None = None, figsize: tuple[float, float] | None = None,
) -> Figure:  # fmt: skip
    """The standard figure of the book: instances colored by bag, and the proportions of the bags as bars.

    Left, the instances, with color and marker by bag. At most 1,500 are drawn, at
    random, and the title says so. One feature: a jittered strip a bag, in the order of the bars.
    Two: as they are. More: in their first two principal components (of ``X`` as given, centered, not scaled). Right,
    one bar per bag, as long as its share of the positive class; with three classes or more, a stack of all shares.

    **With an estimator** the right panel shows its predicted proportions. In one or two features the left panel shows
    its decision regions: of two classes, that of the positive one is shaded. In more it draws none: a boundary on the
    plane of the principal components would be that of points of this plane, and the instances do not lie in it. Instead
    each instance shows what is predicted for it: filled if it is the positive class, hollow if not; by color with
    three classes or more.

    **With true labels** the left panel is an evaluation plot and its title says so: instances of the positive class are
    filled, the others hollow; with three classes or more, the color is the class and the marker the bag. With an
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
        In the order of the rows of ``proportions``; the keys or row numbers if not given. Long ones take two lines
        where there is room, and are cut where there is not.
    max_bags : int
        With more bags than this, so many are shown: those at evenly spaced ranks of the proportion of the positive
        class (with three classes or more, of the class whose proportion varies most), from the smallest to the
        largest, and in this order. The others are gray, or left out with one feature. The title of the right panel
        says how many are shown of how many. Bags without instances are not counted.
    axes : pair of matplotlib Axes, optional
        Where to draw; None in place of one of them leaves this panel out.
    figsize : pair of float, optional
        Inches; ``(7, 3)`` or a little more if many bags are shown. Not used with ``axes``.

    Returns
    -------
    matplotlib.figure.Figure
        Names of bags, classes and features are drawn as they are: a ``$`` in them starts no formula.

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
    ['instances, colored by bag', 'label proportions']
    """
    plt = pyplot()
    # Everything that can fail comes before the first figure is made.
    facts = read(X, bags, proportions, estimator, y, max_bags)
    facts.name(class_names, bag_names)
    pair = axes is None or (np.iterable(axes) and len(axes) == 2)
    if not pair or (axes is not None and all(ax is None for ax in axes)):
        raise ValueError(f"axes must be a pair of Axes, at most one None, got {axes}")
    if axes is None:
        rows = facts.rows
        long = max(len(facts.bag_names[r]) for r in rows) > 20 and len(rows) <= 8
        height = max(3, 1 + 0.36 * len(rows) * long, 1.2 + 0.22 * len(rows))
        size = {"figsize": figsize or (7, height), "width_ratios": [1.25, 1]}
        axes = plt.subplots(1, 2, layout="constrained", **size)[1]
    left, right = axes
    if left is not None:
        draw_left(left, facts)
    if right is not None:
        draw_right(right, facts, keyed=left is None or not facts.by_class)
    return (right if left is None else left).figure


@dataclass
class Facts:
    """What both panels show; ``row`` is -1 for instances of bags that are not shown."""

    A: Any
    columns: Any
    estimator: Any
    P: np.ndarray
    codes: np.ndarray
    classes: np.ndarray
    keys: Any
    y: Any
    y_hat: Any
    predicted: Any
    rows: np.ndarray
    names: Any = None
    bag_names: Any = None

    def __post_init__(self):
        self.sizes = np.bincount(self.codes, minlength=len(self.P))
        row_of = np.full(len(self.P), -1)
        row_of[self.rows] = np.arange(len(self.rows))
        self.row, (self.n, self.d) = row_of[self.codes], self.A.shape
        self.regions = self.estimator is not None and self.d <= 2
        # Labels shown on the left, if any. Color means the bag, or one of several classes.
        self.labels = self.y if self.y is not None else (None if self.d <= 2 else self.y_hat)  # fmt: skip
        self.by_class = self.labels is not None and len(self.classes) > 2

    def name(self, class_names, bag_names):
        """The names of classes and bags, as they are drawn."""
        plain = [f"class {c}" for c in self.classes]
        names = check_names(class_names, plain, "class_names")
        self.names = [literal(name) for name in names]
        plain = [f"bag {k}" for k in range(len(self.P))]
        default = plain if self.keys is None else self.keys
        self.bag_names = check_names(bag_names, default, "bag_names")


def read(X, bags, proportions, estimator, y, max_bags):
    """Check the arguments of `plot_bags`, and predict."""
    try:
        A = check_array(X, accept_sparse="csr", dtype=float, input_name="X")
    except (TypeError, ValueError) as error:
        raise ValueError(f"X must be a matrix of finite numbers: {error}") from error
    columns = X.columns if isinstance(X, pd.DataFrame) else None
    X = A if columns is None else X
    check_whole("max_bags", max_bags)
    data = read_bags(A, bags, proportions, given=X)
    y = None if y is None else check_column("y", y, A.shape[0], X)
    if estimator is not None and not hasattr(estimator, "classes_"):
        raise ValueError(f"estimator must be a fitted classifier, got {estimator!r}")
    named = isinstance(proportions, pd.DataFrame)
    classes = find_classes(data.classes, named, estimator, y)
    P, codes, y_hat, predicted = data.proportions, data.bags, None, None
    if estimator is not None:
        y_hat = np.asarray(estimator.predict(X))
        predicted = label_proportions(y_hat, codes, n_bags=len(P), classes=classes)
    rows = spread(P, np.bincount(codes, minlength=len(P)), max_bags)
    return Facts(A, columns, estimator, P, codes, classes, data.bag_labels, y, y_hat, predicted, rows)  # fmt: skip


def draw_left(ax, facts):
    """The instances, with decision regions, labels and wrong predictions where they are known."""
    rng, row, d = np.random.default_rng(0), facts.row, facts.d
    Z, xy_labels = in_the_plane(facts)
    order = rng.permutation(facts.n)
    drawn = order[np.argsort(row[order] < 0, kind="stable")][:DRAWN]
    if d == 1:  # a strip for each bag that is shown
        Z = np.column_stack([Z, row + rng.uniform(-0.27, 0.27, facts.n)])
        drawn = drawn[row[drawn] >= 0]
    some = f", {len(drawn)} of {facts.n}" if len(drawn) < facts.n and d > 1 else ""
    ax.set_title(left_title(facts) + some, loc="left")
    frame(ax, Z, xy_labels, len(facts.rows))
    if facts.regions:
        draw_regions(ax, facts)
    which = None
    if facts.labels is not None:
        which = (facts.labels[drawn, None] == facts.classes).argmax(axis=1)
    draw_instances(ax, Z[drawn], row[drawn], facts.rows, which, facts.by_class)
    title = key_of_labels(ax, facts)
    if facts.y is not None and facts.estimator is not None and d > 2:
        wrong = drawn[(facts.y != facts.y_hat)[drawn] & (row[drawn] >= 0)]
        cross = {"marker": "x", "color": DARK, "linewidths": 0.9, "gid": "wrong"}
        ax.scatter(*Z[wrong].T, s=22, zorder=4, **cross)
        sample(ax, "wrong prediction", marker="x")
    if (row[drawn] < 0).any():
        sample(ax, "other bags", color=LIGHT, markersize=4)
    legend_below(ax, title=title, title_fontsize="small")


def left_title(facts):
    """What the instances show."""
    if facts.y is not None:
        return "true labels (evaluation only)"
    if facts.labels is not None:
        return "instances by bag and prediction"
    return "instances, colored by bag"


def key_of_labels(ax, facts):
    """The entries of the legend for the labels that are shown; the title of the legend."""
    if facts.by_class:
        for c, name in enumerate(facts.names):
            sample(ax, name, color=look(c)[0])
        title = "predicted class" if facts.y is None else "true class"
        return title + "; area: predicted" * facts.regions
    if facts.labels is not None:
        verb = "predicted " if facts.y is None else ""
        sample(ax, verb + facts.names[1])
        sample(ax, verb + facts.names[0], **HOLLOW)
    return None


def draw_right(ax, facts, keyed):
    """The bars of the proportions, with the names of the bags; of several classes the key, if it is not on the left."""
    rows, sizes = facts.rows, facts.sizes
    guess = None if facts.predicted is None else facts.predicted[rows]
    prior = class_prior(facts.P, sizes)
    draw_bars(ax, facts.P[rows], prior, guess, facts.by_class, facts.names if keyed else None)  # fmt: skip
    inches = ax.figure.get_figheight() * ax.get_position().height
    roomy = 72 * inches / len(rows) > 25  # points, for two lines of text
    ticks = [bag_label(facts.bag_names[r], sizes[r], roomy) for r in rows]
    ax.set_yticks(range(len(rows)), ticks)
    what = facts.names[1] if len(facts.classes) == 2 else "each class"
    ax.set(ylim=(len(rows) - 0.5, -0.5), xlabel=f"proportion of {what}")
    n_bags = np.count_nonzero(sizes)
    some = f", {len(rows)} of {n_bags} bags" if len(rows) < n_bags else ""
    ax.set_title(f"label proportions{some}", loc="right" if some else "left")
    legend_below(ax, at=1)  # there is room under the names of the bags


def find_classes(classes, named, estimator, y):
    """The classes, in the order of the columns of the proportions: from those, the estimator, or ``y``."""
    found = classes
    if estimator is not None and not named:
        found = np.asarray(estimator.classes_)
    elif y is not None and not named and not np.isin(y, classes).all():
        found = np.unique(y)
    if len(found) != len(classes):
        found = classes
    given = {
        "estimator": estimator if estimator is None else estimator.classes_,
        "y": y,
    }
    for source, labels in given.items():
        if labels is not None and not np.isin(labels, found).all():
            raise ValueError(
                f"{source} has the classes {np.unique(labels).tolist()}, but proportions has {found.tolist()}"
            )
    return found


def spread(P, sizes, max_bags):
    """The rows to show: all bags with instances, or ``max_bags`` at evenly spaced ranks of their proportions."""
    rows = np.flatnonzero(sizes > 0)
    if len(rows) <= max_bags:
        return rows
    column = 1 if P.shape[1] == 2 else P[rows].var(axis=0).argmax()
    ranked = rows[np.argsort(P[rows, column], kind="stable")]
    return ranked[np.round(np.linspace(0, len(ranked) - 1, max_bags)).astype(int)]


def in_the_plane(facts):
    """Instances in at most two coordinates, with the labels of the axes."""
    A = facts.A
    if facts.d <= 2 and facts.columns is not None:
        return A, [literal(name) for name in facts.columns]
    if facts.d <= 2:
        names = [rf"$x_{j + 1}$" for j in range(facts.d)]
        return A.toarray() if sp.issparse(A) else A, names
    pca = PCA(2, random_state=0).fit(A)
    shares = enumerate(pca.explained_variance_ratio_, start=1)
    return pca.transform(A), [
        f"PC {j} ({100 * r:.0f} % of variance)" for j, r in shares
    ]


def frame(ax, Z, labels, n_strips):
    """Limits of the axes, set before anything is drawn (regions fill just what is seen), and their labels."""
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


def margins(estimator, X, classes):
    """For each instance and class, how far the class is ahead of the best other one: > 0 where it is predicted.

    From scores where they agree with ``predict``, so that boundaries are smooth; else 1 and -1.
    """
    hard = np.asarray(estimator.predict(X))[:, None] == classes
    for name in ("decision_function", "predict_proba"):
        scores = np.asarray(getattr(estimator, name, lambda X: 0.0)(X), dtype=float)
        if scores.ndim == 1:
            scores = np.column_stack([-scores, scores])
        if scores.shape == hard.shape:  # not one column a pair of classes
            theirs = np.asarray(estimator.classes_).tolist()
            scores = scores[:, [theirs.index(c) for c in classes.tolist()]]
            second, first = np.sort(scores, axis=1)[:, -2:].T[:, :, None]
            ahead = scores - np.where(scores == first, second, first)
            if np.mean((ahead > 0) == hard) > 0.999:
                return ahead
    return np.where(hard, 1.0, -1.0)


def draw_regions(ax, facts):
    """Decision regions of an estimator on one or two features, in grays or in light colors of the classes."""
    xs, ys = (np.linspace(*sorted(lim), GRID) for lim in (ax.get_xlim(), ax.get_ylim()))
    classes, by_class = facts.classes, facts.by_class
    ys = ys[[0, -1]] if facts.d == 1 else ys
    mesh = np.stack(np.meshgrid(xs, ys), axis=-1).reshape(-1, 2)[:, : facts.d]
    if facts.columns is not None:
        mesh = pd.DataFrame(mesh, columns=facts.columns)
    ahead = margins(facts.estimator, mesh, classes).reshape(len(ys), GRID, -1)
    for c in range(len(classes) == 2, len(classes)):  # of two classes, the second
        share, m = 0.09 + 0.05 * (len(classes) - 2), ahead[:, :, c]
        gray = mix("#000000", 1 - share * c / (len(classes) - 1))
        fill = mix(look(c)[0], 0.8) if by_class else gray
        if m.max() > 0:
            ax.contourf(xs, ys, m, [0, 2 * m.max()], colors=[fill], zorder=0)
        if m.min() < 0 < m.max():
            border = ax.contour(xs, ys, m, [0], colors=DARK, linewidths=1.4, zorder=3)
            border.set_gid("decision boundary")
        if not by_class:
            key = {"edgecolor": DARK, "label": f"predicts {facts.names[c]}"}
            ax.fill([], [], facecolor=fill, **key)


def draw_instances(ax, Z, row, rows, which, by_class):
    """Scatter: marker by bag, color by bag or by class; of two classes, hollow where it is not the positive one."""
    area = np.clip(420 / np.sqrt(len(Z)), 10, 34)
    other = {"color": LIGHT, "linewidths": 0, "gid": "other bags"}
    ax.scatter(*Z[row < 0].T, s=area / 2, zorder=1, **other)
    paint = which if by_class else row
    colors = np.array([look(k)[0] for k in range(paint.max() + 1)])
    full = np.ones(len(Z), bool) if which is None or by_class else which == 1
    faces = np.where(full, colors[paint], "#FFFFFF")
    edges = np.array([ink(color) for color in colors])[paint]
    widths = np.where(full, 0.5, 1.1)
    for k, bag in enumerate(rows):
        mine = row == k
        _, marker, factor = look(k)
        inside = {"facecolors": faces[mine], "gid": f"bag {bag}", "zorder": 2}
        outline = {"edgecolors": edges[mine], "linewidths": widths[mine]}
        ax.scatter(*Z[mine].T, factor * area, marker=marker, **inside, **outline)


def draw_bars(ax, P, prior, predicted, by_class, names):
    """One horizontal bar per bag, the share of the positive class, or a stack of all classes (named, if not None)."""
    n, K = P.shape
    at, height = np.arange(n), min(0.62, 0.17 * n)
    colors = [look(k)[0] for k in range(n)]
    if K == 2:
        ax.barh(at, P[:, 1], height, color=colors, zorder=2)
        for i, p in enumerate(P[:, 1]):
            ax.text(1, i, f"{p:.2f}", va="center", fontsize="small", **beside(ax, 5))
    else:
        draw_stacks(ax, P, height, colors, by_class, names)
    for i in at:  # the key of the bags
        color, marker, factor = look(i)
        color = GRAY if by_class else color
        edge = {"markeredgecolor": ink(color), "markeredgewidth": 0.6, "clip_on": False}
        key = {"color": color, "markersize": 6.5 * factor**0.5} | beside(ax, -8)
        ax.plot(0, i, marker, **key, **edge)
    for value in ends(prior[None])[0]:
        ax.axvline(value, gid="class prior", **PRIOR)
    number = f" {prior[1]:.2f}" if K == 2 else ""
    sample(ax, f"class prior{number}", marker="", **PRIOR)
    if predicted is not None:
        marks = {"label": "predicted", "gid": "predicted", "clip_on": False} | HOLLOW
        where = ends(predicted).ravel(), np.repeat(at, K - 1)
        ax.plot(*where, "D", markersize=5.5, zorder=4, **marks)
    ax.tick_params(axis="y", length=0, pad=16)
    ax.set_xlim(0, 1)
    ax.set_xticks(*SHARES)
    ax.grid(axis="x", color="#DDDDDD", linewidth=0.7)
    ax.set_axisbelow(True)
    ax.spines[["left", "top", "right"]].set_visible(False)


def draw_stacks(ax, P, height, colors, by_class, names):
    """A stack of the shares of all classes per bag, in tints of the bag's color or in the colors of the classes."""
    n, K = P.shape
    for c in range(K):
        share = 0.8 * c / (K - 1)
        tints, key = [mix(color, share) for color in colors], mix("#444444", share)
        if by_class:
            tints = key = look(c)[0]
        left = P[:, :c].sum(axis=1)
        white = {"edgecolor": "white", "linewidth": 0.8, "zorder": 2}
        ax.barh(np.arange(n), P[:, c], height, left, color=tints, **white)
        if names is not None:
            sample(ax, names[c], marker="s", color=key, markersize=7)


def beside(ax, points):
    """A transform: x in the width of the panel, shifted by some points, y in bags."""
    from matplotlib.transforms import offset_copy

    sides = ax.get_yaxis_transform()
    return {"transform": offset_copy(sides, ax.figure, x=points, units="points")}


def ends(Q):
    """Where the shares of all classes but the last end in a stack; of two classes, the share of the second."""
    return Q[:, 1:] if Q.shape[1] == 2 else Q.cumsum(axis=1)[:, :-1]
