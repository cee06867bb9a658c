"""Colors, markers and helpers that all figures share."""

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#56B4E9", "#CC79A7", "#E69F00", "#000000", "#F0E442")  # fmt: skip
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")

DARK, GRAY, LIGHT = "#222222", "#777777", "#C4C4C4"


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
    """Apply the style of the book to all later figures, like ``plt.style.use("llpbook.llpbook")``.

    In a notebook, figures have twice the pixels, shown at the same size: sharp on today's screens.

    Raises
    ------
    ImportError
        If matplotlib is not installed.

    Examples
    --------
    >>> from llpbook.plotting import use_style
    >>> use_style()  # doctest: +SKIP
    """
    plt = pyplot()
    plt.style.use("llpbook.llpbook")
    if plt.get_backend().endswith("inline"):
        from matplotlib_inline.backend_inline import set_matplotlib_formats

        set_matplotlib_formats("retina")


def literal(text):
    """Escape text so that matplotlib draws it as it is: no formula by ``$``, no legend entry hidden by ``_``."""
    text = str(text).replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text
