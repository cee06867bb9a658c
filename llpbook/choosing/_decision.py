"""From signals and known labels to a verdict; the decision as a picture."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import binom, binomtest

from ..base import warn

#: Two methods agree if they disagree on at most this share of as many instances as are outside of the largest class.
SLACK = 0.6
#: Gain in nats that a verdict "fit" asks for, and the largest share of a class, above which the study has no task.
ENOUGH, COMMON = 10.0, 0.8
#: Level of the tests on known labels, and the most labels to check where the verdict is "weak".
LEVEL, CHECKED = 0.05, 100
#: Labels of which so improbable a number are of one class were not drawn at random.
CHOSEN = 0.001


class Question(NamedTuple):
    """A node of the decision: ``ask``, in words; ``holds``, a function of `Signals`; the next node or a verdict."""

    ask: str
    holds: Callable
    yes: "Question | str"
    no: "Question | str"


#: The decision. `decide` follows it, `plot_decision` draws it.
RULE = Question(
    "1. Does the fit predict\nmore than one class?",
    lambda s: s.other > 0,
    Question(
        f"2. Do two methods agree?\n(disagreement ≤\n{SLACK:g} × (1 − largest share))",
        lambda s: 1 - s.agreement <= SLACK * (1 - s.largest),
        Question(
            f"3. Do held-out counts gain?\n(parts ≥ {ENOUGH:g} nats,\nwhole bags > 0,\nlargest share ≤ {COMMON:.0%})",
            lambda s: s.gain >= ENOUGH and s.whole > 0 and s.largest <= COMMON,
            "fit",
            "weak",
        ),
        Question(
            "Are the bags worth\none label per feature?",
            lambda s: s.worth >= s.n_features,
            "weak",
            "do not fit",
        ),
    ),
    "do not fit",
)


def decide(signals, question=RULE):
    """Follow the questions to a verdict.

    Parameters
    ----------
    signals : Signals
        NaN answers a question with no.
    question : Question, default `RULE`
        The first one.

    Returns
    -------
    verdict : {"fit", "weak", "do not fit"}
    path : list of (str, bool)
        The questions that were asked, and their answers.
    """
    path = []
    while isinstance(question, Question):
        held = bool(question.holds(signals))
        path.append((question.ask, held))
        question = question.yes if held else question.no
    return question, path


def count_right(predicted, labels, largest):
    """Count the known labels that a fit and the majority class predict correctly.

    Parameters
    ----------
    predicted, labels : ndarray of int, shape (n_known,)
        Columns of the classes.
    largest : int
        The column of the majority class.

    Returns
    -------
    DataFrame
        Rows ``fit`` and ``majority``; columns ``right``, ``of`` (the number of known labels) and ``alone`` (right where
        the other is wrong).
    """
    fit, majority = predicted == labels, labels == largest
    counts = {
        "fit": [fit.sum(), len(labels), (fit & ~majority).sum()],
        "majority": [majority.sum(), len(labels), (majority & ~fit).sum()],
    }
    return pd.DataFrame(counts, index=["right", "of", "alone"]).T


def judge(verdict, labeled):
    """The verdict of `decide`, overruled by known labels where these are enough.

    Parameters
    ----------
    verdict : str
    labeled : DataFrame
        From `count_right`. Where one is right and the other is wrong, each is as often right if both are equally good:
        a binomial test at 5 % on each side.

    Returns
    -------
    str
    """
    ahead, behind = labeled["alone"]
    for times, proved in ((ahead, "fit"), (behind, "do not fit")):
        if binom.sf(times - 1, ahead + behind, 0.5) <= LEVEL:
            return proved
    return verdict


def warn_if_chosen(labels, shares, classes):
    """Warn where known labels are no random sample: their classes contradict the shares of their bags.

    Parameters
    ----------
    labels : ndarray of int, shape (n_known,)
        Columns of the classes.
    shares : ndarray, shape (n_known, n_classes)
        Of the bags of these instances.
    classes : ndarray, shape (n_classes,)
        The class labels, in the order of the columns.

    Warns
    -----
    LLPWarning
        If the count of a class has a probability below 0.001 in a random sample of these bags.
    """
    both = len(classes) == 2  # then the second class suffices
    for column in range(int(both), len(classes)):
        p, count = shares[:, column], int(np.sum(labels == column))
        if binomtest(count, len(p), p.mean()).pvalue < CHOSEN:
            name = classes.tolist()[column]
            warn(
                f"{count} of {len(p)} known labels are of class {name!r} where the shares of their bags say "
                f"{p.sum():.0f}: if labels are known for a reason that depends on the class, they judge the fit wrongly"
            )


def needed(checked: int) -> int:
    """Number of checked labels that must be right, so that fewer than 5 % of bad fits pass.

    Parameters
    ----------
    checked : int
        Labels of instances that the fit gives to another class than the largest. If the fit is no better than the
        largest class there, at most half of them are right, for two classes. For more classes the excess of those that
        are right over those of the largest class must be at least ``2 * needed(checked) - checked``.

    Returns
    -------
    int

    Examples
    --------
    >>> needed(100)
    59
    """
    return 1 + int(binom.isf(LEVEL, checked, 0.5))


#: Colors of the verdicts, as places in the palette of `llpbook.plotting`, and of their letters.
VERDICTS = {"fit": (2, "white"), "weak": (5, "black"), "do not fit": (1, "white")}


def plot_decision(path=(), ax=None):
    """Draw the questions of `RULE` and the answers to them: yes leads down, no to the right.

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
    from ..plotting import pyplot

    if ax is None:
        _, ax = pyplot().subplots(figsize=(7.6, 4.2), layout="constrained")
    _draw(ax, RULE, (0, 0), list(path), bool(path))
    ax.set(xlim=(-0.85, 3.65), ylim=(-3.3, 0.35))
    ax.axis("off")
    return ax


def _draw(ax, node, at, path, taken):
    """Draw a node and what follows from it; the nodes on the path are bold and cover others."""
    from ..plotting import PALETTE

    (x, y), asked = at, isinstance(node, Question)
    place, letters = VERDICTS.get(node, (0, "black"))
    box = {"boxstyle": "round,pad=0.5", "edgecolor": "black" if taken else "0.5"}
    box["facecolor"] = "white" if asked else PALETTE[place]
    style = {"ha": "center", "va": "center", "fontsize": 11, "zorder": 3 + taken}
    style |= {"color": letters, "weight": "bold" if taken else "normal"}
    ax.text(x, y, node.ask if asked else node, bbox=box, **style)
    if not asked:
        return
    for child, answer in ((node.yes, True), (node.no, False)):
        on_path = taken and path[:1] == [answer]
        end = (x, y - 1) if answer else (x + 1.8 - x / 4, y)  # the right part is narrow
        line = {"color": "black", "lw": 2.0} if on_path else {"color": "0.5", "lw": 0.8}
        ax.plot([x, end[0]], [y, end[1]], zorder=0, **line)
        right, up, word = (0.05, -0.57, "yes") if answer else (0.95, 0.08, "no")
        ax.text(x + right, y + up, word, fontsize=11, color="0.3")
        _draw(ax, child, end, path[1:], on_path)
