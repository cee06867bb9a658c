"""From signals and known labels to a verdict."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import binom, binomtest

from ..base import warn
from ._signals import likelier

#: Two methods agree if they disagree on at most this share of as many instances as are outside of the largest class.
SLACK = 0.6
#: Gain in nats that a verdict "fit" asks for, and the largest share of a class, above which the study has no task.
ENOUGH, COMMON = 10.0, 0.8
#: Level of the tests on known labels, and the most labels to check where the verdict is "weak".
LEVEL, CHECKED = 0.05, 100
#: Labels of which so improbable a number are of one class were not drawn at random; fewer than so many check nothing.
CHOSEN, TOO_FEW = 0.001, 5


class Question(NamedTuple):
    """A node of the decision: ``ask``, in words; ``holds``, a function of `Signals`; the next node or a verdict."""

    ask: str
    holds: Callable
    yes: "Question | str"
    no: "Question | str"


#: The decision. `decide` follows it, `plot_decision` draws it.
RULE = Question(
    "Does the fit give any instance\nto another class than the largest?",
    lambda s: s.other != 0,
    Question(
        f"Do two methods disagree on at most {SLACK:.0%} as many\ninstances as are outside of the largest class?",
        lambda s: 1 - s.agreement <= SLACK * (1 - s.largest),
        Question(
            f"Do held-out parts gain\n{ENOUGH:g} nats or more,\nheld-out whole bags anything,"
            f"\nand has no class over {COMMON:.0%}?",
            lambda s: s.gain >= ENOUGH and s.whole > 0 and s.largest <= COMMON,
            "fit",
            "weak",
        ),
        Question(
            "Are the bags worth\nat least as many labels\nas there are features?",
            lambda s: s.worth >= s.n_features,
            "weak",
            "do not fit",
        ),
    ),
    "do not fit",
)


def decide(signals, rule=RULE):
    """Follow the questions to a verdict.

    Parameters
    ----------
    signals : Signals
        NaN answers a question with no.
    rule : Question, default `RULE`

    Returns
    -------
    verdict : {"fit", "weak", "do not fit"}
    path : list of (str, bool)
        The questions that were asked, and their answers.
    """
    path = []
    while isinstance(rule, Question):
        held = bool(rule.holds(signals))
        path.append((rule.ask, held))
        rule = rule.yes if held else rule.no
    return rule, path


def choose_method(verdict, signals):
    """Line or trees, whichever gains more; the majority class where the verdict is "do not fit".

    Parameters
    ----------
    verdict : str
    signals : Signals

    Returns
    -------
    str
        A key of ``METHODS``.
    """
    if verdict == "do not fit":
        return "majority"
    return likelier(signals.line, signals.trees)


def count_right(predicted, labels, largest):
    """How many known labels a fit and the majority class predict.

    Parameters
    ----------
    predicted, labels : ndarray of int, shape (n_instances,)
        Columns of the classes; -1 for an unknown label.
    largest : int
        The column of the majority class.

    Returns
    -------
    DataFrame
        Rows ``fit`` and ``majority``; columns ``right``, ``of`` (the number of known labels) and ``alone`` (right where
        the other is wrong).
    """
    known = labels >= 0
    fit, majority = predicted[known] == labels[known], labels[known] == largest
    counts = {
        "fit": [fit.sum(), known.sum(), (fit & ~majority).sum()],
        "majority": [majority.sum(), known.sum(), (majority & ~fit).sum()],
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
    if ahead + behind == 0:
        return verdict
    if binomtest(ahead, ahead + behind, alternative="greater").pvalue <= LEVEL:
        return "fit"
    if binomtest(behind, ahead + behind, alternative="greater").pvalue <= LEVEL:
        return "do not fit"
    return verdict


def warn_if_chosen(labels, bags, shares, classes):
    """Warn where known labels are no random sample: their classes contradict the shares of their bags.

    Parameters
    ----------
    labels : ndarray of int, shape (n_instances,)
        Columns of the classes; -1 for an unknown label.
    bags : ndarray of int, shape (n_instances,)
    shares : ndarray, shape (n_bags, n_classes)
    classes : ndarray, shape (n_classes,)
        The class labels, in the order of the columns.

    Warns
    -----
    LLPWarning
        If the count of a class has a probability below 0.001 in a random sample of these bags.
    """
    known = labels >= 0
    both = len(classes) == 2  # the second class says what the first would say
    for column in range(int(both), len(classes)):
        p = shares[bags[known], column]
        count = int(np.sum(labels[known] == column))
        if known.any() and binomtest(count, len(p), p.mean()).pvalue < CHOSEN:
            name = classes.tolist()[column]
            warn(
                f"{count} of {len(p)} known labels are of class {name!r} where the shares of their bags say "
                f"{p.sum():.0f}: if labels are known for a reason that depends on the class, they judge the fit wrongly"
            )


def needed(checked):
    """How many of the labels checked must be right, so that fewer than 5 % of bad fits pass.

    Parameters
    ----------
    checked : int
        Labels of instances that the fit gives to another class than the largest. If the fit is no better than the
        largest class there, at most half of them are right, for two classes. For more classes the excess of those that
        are right over those of the largest class must be at least ``2 * needed(checked) - checked``.

    Returns
    -------
    int
    """
    return 1 + int(binom.isf(LEVEL, checked, 0.5))
