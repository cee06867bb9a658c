"""Colors, markers and the small things that all figures share."""

import numpy as np

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#56B4E9", "#CC79A7", "#E69F00", "#000000", "#F0E442")  # fmt: skip
# As dark as text on white must be.
INKS = ("#0072B2", "#C25600", "#008662", "#3B7CA1", "#A36186", "#9C6C00", "#000000", "#7F7923")  # fmt: skip
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
AREAS = (1, 1, 1.2, 0.75, 1.2, 1.25, 1.25, 1.8)  # so that all look equally large

DARK, GRAY, LIGHT = "#222222", "#777777", "#C4C4C4"
PRIOR = {"color": DARK, "linestyle": (0, (4, 2.5)), "linewidth": 1.2, "zorder": 3}
SHARES = [0, 0.25, 0.5, 0.75, 1], ["0", "0.25", "0.5", "0.75", "1"]  # ticks, labels


def pyplot():
    """matplotlib.pyplot, or an ImportError that says what to install."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as err:
        raise ImportError(
            "llpbook.plotting needs matplotlib: pip install matplotlib"
        ) from err
    return plt


def use_style() -> None:
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
    pyplot().style.use("llpbook.llpbook")


def mix(color, share):
    """A color of the palette with a share of white, as a hexadecimal number."""
    rgb = np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)])
    return "#" + "".join(f"{round(c):02X}" for c in (1 - share) * rgb + share * 255)


def look(k):
    """Color, marker, its area, and the color of its edge, of the ``k``-th thing; 64 pairs before one comes again."""
    m = (k + k // 8) % 8
    return PALETTE[k % 8], MARKERS[m], AREAS[m], INKS[k % 8]


def literal(text):
    """Text that matplotlib draws as it is: ``$`` starts no formula, and a leading ``_`` hides no entry of a legend."""
    text = str(text).replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text


def sample(ax, label, **style):
    """An entry of the legend for what has no artist of its own."""
    ax.plot([], [], **{"linestyle": "none", "marker": "o", "color": DARK, "label": label} | style)  # fmt: skip


def legend_below(ax, at=0.5, **options):
    """The legend of what has a label, under the x axis, in as many columns as fit."""
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
