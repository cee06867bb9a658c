"""Colors, markers and the small things that all figures share."""

import numpy as np

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#56B4E9", "#CC79A7", "#E69F00", "#000000", "#F0E442")  # fmt: skip
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


def ink(color: str, *, contrast: float = 4.5) -> str:
    """A color darkened until it reads on white: for text and for the outlines of markers.

    Parameters
    ----------
    color : str
        ``"#rrggbb"``.
    contrast : float
        The contrast ratio with white to reach, in [1, 21]; 4.5 is what WCAG 2 asks of text.

    Returns
    -------
    str
        ``"#rrggbb"``, the same hue; the color itself if it is dark enough.

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
    for share in np.linspace(0, 1, 101):
        darker = mix(color, share, 0)
        if contrast_with_white(darker) >= contrast:
            break
    return darker


def mix(color, share, level=1):
    """``color`` mixed with a ``share`` of white (level 1) or black (level 0)."""
    rgb = (1 - share) * channels(color) + share * level
    return "#" + "".join(f"{round(255 * c):02X}" for c in rgb)


def channels(color):
    """Red, green and blue of ``"#rrggbb"``, in [0, 1]."""
    return np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)]) / 255


def contrast_with_white(color):
    """The contrast ratio of WCAG 2: 1 for white, 21 for black."""
    rgb = channels(color)
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return 1.05 / (linear @ [0.2126, 0.7152, 0.0722] + 0.05)


def look(k):
    """Color, marker and its area, of the ``k``-th thing; 64 pairs before one comes again."""
    m = (k + k // 8) % 8
    return PALETTE[k % 8], MARKERS[m], AREAS[m]


def literal(text):
    """Text that matplotlib draws as it is: ``$`` starts no formula, and a leading ``_`` hides no entry of a legend."""
    text = str(text).replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text


def check_names(names, default, argument):
    """One name for each of ``default``, as text."""
    if names is not None and (isinstance(names, str) or not np.iterable(names)):
        raise ValueError(f"{argument} must be a list of names, got {names!r}")
    names = [str(name) for name in (default if names is None else names)]
    if len(names) != len(default):
        raise ValueError(
            f"{argument} must have {len(default)} entries, got {len(names)}"
        )
    return names


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
