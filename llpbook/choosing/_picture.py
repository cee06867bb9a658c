"""The decision as a picture."""

from ._decision import RULE, Question


def plot_decision(path=(), ax=None):
    """Draw the questions of `RULE` and the answers to them.

    Parameters
    ----------
    path : sequence of bool, optional
        Answers to the questions that were asked, to be drawn bold.
    ax : matplotlib Axes, optional
        A new figure if not given.

    Returns
    -------
    matplotlib Axes
    """
    from ..plotting._style import pyplot

    if ax is None:
        _, ax = pyplot().subplots(figsize=(6.4, 5.4), layout="constrained")
    _draw(ax, RULE, 0, 0, list(path), True)
    ax.set(xlim=(0, _leaves(RULE)), ylim=(-3.3, 0.4))
    ax.axis("off")
    return ax


def _leaves(node):
    """The number of verdicts below a node."""
    return _leaves(node.yes) + _leaves(node.no) if isinstance(node, Question) else 1


def _draw(ax, node, left, depth, path, taken):
    """A node in the middle of its verdicts, and what follows it; what is on the path is bold."""
    weight, color = ("bold", "black") if taken else ("normal", "gray")
    box = {"boxstyle": "round,pad=0.4", "facecolor": "white", "edgecolor": color}
    style = {"ha": "center", "va": "center", "fontsize": 9}
    text = node.ask if isinstance(node, Question) else node
    x = left + _leaves(node) / 2
    ax.text(x, -depth, text, weight=weight, bbox=box, **style)
    if not isinstance(node, Question):
        return
    for child, answer in ((node.yes, True), (node.no, False)):
        on_path = taken and (not path or path[0] == answer)
        line = {"color": color, "linewidth": 2.0 if on_path and path else 0.8}
        below = left + _leaves(child) / 2
        ax.plot([x, below], [-depth, -depth - 1], zorder=0, **line)
        word, middle = "yes" if answer else "no", (x + below) / 2
        ax.text(middle, -depth - 0.5, word, backgroundcolor="w", **style)
        _draw(ax, child, left, depth + 1, path[1:], on_path)
        left += _leaves(child)
