"""Drawings of the directed acyclic graphs on features X, label Y and bag B.

:func:`draw_dag` draws one graph, :func:`draw_dags` those of all variants. The bag is shaded:
it is the vertex that supervised learning does not have. matplotlib is imported only when a figure is drawn.

Chapter: ``book/taxonomy``. Source: franco2023 (Table 1).
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..taxonomy import dags_of, pattern_of_dag, table
from ._style import pyplot

_PLACES = {"X": (0.0, 1.0), "Y": (1.2, 1.0), "B": (0.6, 0.0)}
_RADIUS = 0.26
_LINE = "#005D92"
_SHADE = "#D9E8F3"  # light enough for black text on it
_CELL = (1.0, 0.85)  # inches a graph
_LABEL = 1.3  # inches for the names on the left


def draw_dag(dag: Iterable[tuple[str, str]], *, ax: Any = None) -> Any:
    """Draw a graph: three circles and its arrows.

    Parameters
    ----------
    dag : set of (str, str)
        Edges (parent, child) between X, Y and B.
    ax : matplotlib.axes.Axes, optional
        A new figure if None.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ValueError
        If ``dag`` has a cycle or other nodes.

    Examples
    --------
    >>> from llpbook.plotting import draw_dag
    >>> ax = draw_dag([("Y", "X"), ("Y", "B")])
    >>> sorted(text.get_text() for text in ax.texts if text.get_text())
    ['B', 'X', 'Y']
    """
    plt = pyplot()
    from matplotlib.patches import Circle, FancyArrowPatch

    pairs = isinstance(dag, set | frozenset | list | tuple) and all(
        isinstance(edge, tuple) and len(edge) == 2 for edge in dag
    )
    if not pairs:
        raise ValueError(f"dag must be a set of edges (parent, child), got {dag!r}")
    edges = frozenset(dag)
    pattern_of_dag(edges)  # raises if this is no DAG on X, Y and B
    ax = plt.subplots(figsize=_CELL)[1] if ax is None else ax
    for node, place in _PLACES.items():
        fill = _SHADE if node == "B" else "white"
        ax.add_patch(Circle(place, _RADIUS, facecolor=fill, edgecolor=_LINE, lw=1.1))
        x, y = place
        ax.text(x, y, node, ha="center", va="center_baseline", fontsize=9)
    for parent, child in sorted(edges):
        start, end = np.array(_PLACES[parent]), np.array(_PLACES[child])
        step = (end - start) / np.linalg.norm(end - start) * (_RADIUS + 0.03)
        style: dict[str, Any] = {"arrowstyle": "-|>", "mutation_scale": 9, "lw": 1.2}
        style |= {"color": _LINE, "shrinkA": 0, "shrinkB": 0}
        ax.add_patch(FancyArrowPatch(start + step, end - step, **style))
    ax.set(xlim=(-0.35, 1.55), ylim=(-0.35, 1.35), aspect="equal")
    ax.axis("off")
    return ax


def draw_dags() -> np.ndarray:
    """Draw all 25 graphs, a row for each variant, those with features and label independent last.

    Returns
    -------
    ndarray of matplotlib.axes.Axes, shape (n_variants, n_columns)

    Examples
    --------
    >>> from llpbook.plotting import draw_dags
    >>> draw_dags().shape  # doctest: +SKIP
    (8, 6)
    """
    labels = [*table()["name"], "Uninteresting"]
    rows = {label: dags for label in labels if (dags := dags_of(label))}
    n_rows, n_columns = len(rows), max(map(len, rows.values()))
    size = (_LABEL + _CELL[0] * n_columns, _CELL[1] * n_rows)
    axes = pyplot().subplots(n_rows, n_columns, figsize=size, squeeze=False)[1]
    for ax in axes.ravel():
        ax.axis("off")
    for row, (label, dags) in zip(axes, rows.items(), strict=True):
        for ax, dag in zip(row, dags, strict=False):
            draw_dag(dag, ax=ax)
        text = label if label != "Uninteresting" else "X and Y\nindependent"
        row[0].text(-0.6, 0.5, text, ha="right", va="center", fontsize=9.5)
    return axes
