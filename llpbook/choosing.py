r"""Advice: which method to fit to given bags, or none, from what can be seen without labels.

Two signals decide whether to fit.

- *Agreement.* Two methods that assume different things should predict the same labels. Their agreement is
  :math:`a = \frac1n \#\{i : \hat y_i = \hat y'_i\}`. Of two methods that agree on a share :math:`a`, the worse one errs
  on at least :math:`(1 - a) / 2` of the instances, equation :eq:`eq-choosing-agreement`.
- *Gain.* The features should predict the counts of the bags better than the class prior does. Each instance gets a
  probability from a fit to other folds, and the gain is the log-likelihood of the counts of whole bags under these
  probabilities less that under the prior, :math:`G = \sum_k \log \frac{P(c_k \mid \hat p)}{P(c_k \mid \eta)}`, in nats,
  equation :eq:`eq-choosing-gain`. The folds are parts of all bags, and, for a second gain, whole bags.

The gain also chooses between a line and trees. The thresholds and the record of the answers come from the study
``choosing`` (`RECORD`).

Chapter: ``book/choosing``. The rule is ours.
"""

import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.stats import binom, binomtest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler
from sklearn.utils import check_random_state

from .base import NotIdentifiableError, Progress, read_bags
from .baselines import MajorityClass
from .count_likelihood import CountBoosting, CountLogistic
from .em import EMLR
from .model_selection import (
    FullBagKFold,
    OutOfFold,
    SplitBagKFold,
    count_log_likelihood,
)
from .proportions import class_prior, identifiability

#: By name: what may be recommended, and ``other``, a method that assumes something else, to compare with.
METHODS = {
    "line": CountLogistic(C=0.1),
    "trees": CountBoosting(),
    "other": EMLR(C=0.01),
    "majority": MajorityClass(),
}
#: Two methods agree if they disagree on at most this share of as many instances as are outside of the largest class.
SLACK = 0.6
#: Gain in nats that a verdict "fit" asks for.
ENOUGH = 10.0
#: Columns of the printed advice.
WIDTH = 100
NOT_SHOWN = (
    "whether features that tell bags apart also tell the classes apart within a bag; bags that are predicted well "
    "prove nothing of that"
)
PARAMETERS = (
    "Parameters: LLPGridSearchCV with its default score; compare with MajorityClass()."
)
HELP = "What would help: more bags, bags whose shares differ more, or some labels."
#: Folds of the gain; instances that are enough to look at, and the least number of bags to look at.
FOLDS, MOST, LEAST = 3, 10_000, 30
#: Level of the tests on known labels, and the most labels to check where the verdict is "weak".
LEVEL, CHECKED = 0.05, 100
#: By verdict: how often it was given in two draws of 70 tasks of data sets that the rule was not made on, and how often
#: the fit (for "do not fit": the fit that was not made) was then less accurate than the majority class.
RECORD = {"fit": (44, 0), "weak": (58, 7), "do not fit": (38, 10)}


class Signals(NamedTuple):
    """What is seen of the bags without labels.

    - ``n_instances``, ``n_features``, ``n_bags``, ``n_classes``: bags without instances are not counted.
    - ``largest``: the share of the largest class.
    - ``worth``: how many labels the bags are worth (`llpbook.proportions.identifiability`), for the class for which
      they are worth least.
    - ``agreement``: of the line and of EM.
    - ``other``: the share of the instances that the line gives to another class than the largest.
    - ``line``, ``trees``: gain of the count likelihood with a line and with trees on held-out parts of bags, in nats,
      for the bags that were looked at; NaN where trees cannot be fitted, to a sparse matrix.
    - ``whole``: gain of the better of the two on held-out whole bags; NaN where these cannot be predicted.
    """

    n_instances: int
    n_features: int
    n_bags: int
    n_classes: int
    largest: float
    worth: float
    agreement: float
    other: float
    line: float
    trees: float
    whole: float

    @property
    def gain(self):
        """The larger of the two gains."""
        return float(np.fmax(self.line, self.trees))


def agreement(first, second):
    """The share of instances for which two methods predict the same label.

    Parameters
    ----------
    first, second : ndarray, shape (n_instances,)
        Predicted labels.

    Returns
    -------
    float
    """
    # eq: eq-choosing-agreement
    return float(np.mean(first == second))


def held_out_gain(estimator, X, bags, proportions, splits):
    r"""How much better a method predicts the counts of whole bags than the class prior, out of fold.

    :math:`G = \sum_k \log \frac{P(c_k \mid \hat p)}{P(c_k \mid \eta)}`, equation :eq:`eq-choosing-gain`.

    Parameters
    ----------
    estimator : LLPClassifier
        With ``predict_proba``.
    X : ndarray or sparse array, shape (n_instances, n_features)
    bags : ndarray of int, shape (n_instances,)
        Without gaps.
    proportions : ndarray, shape (n_bags, n_classes)
    splits : list of (ndarray, ndarray)
        Rows to fit to, and rows held out; each row is held out once.

    Returns
    -------
    float
        In nats.
    """
    scores = []
    for model in (estimator, MajorityClass()):
        fitted = OutOfFold(clone(model), splits).fit(X, bags, proportions=proportions)
        p = fitted.predict_proba(X)
        scores.append(count_log_likelihood(p, bags, proportions))
    # eq: eq-choosing-gain
    return len(proportions) * (scores[0] - scores[1])


class Question(NamedTuple):
    """A node of the decision: ``ask``, in words; ``holds``, a function of `Signals`; the next node or a verdict."""

    ask: str
    holds: Callable
    yes: "Question | str"
    no: "Question | str"


#: The decision. `decide` follows it, `plot_decision` draws it.
RULE = Question(
    f"Do two methods disagree on at most {SLACK:.0%} as many\ninstances as are outside of the largest class?",
    lambda s: 1 - s.agreement <= SLACK * (1 - s.largest),
    Question(
        f"Do held-out parts of bags gain {ENOUGH:g} nats or more,\nand held-out whole bags anything?",
        lambda s: s.gain >= ENOUGH and s.whole > 0,
        "fit",
        "weak",
    ),
    Question(
        "Are the bags worth at least as many\nlabels as there are features?",
        lambda s: s.worth >= s.n_features,
        "weak",
        "do not fit",
    ),
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
    return "trees" if signals.trees > signals.line else "line"


def whole_bags(bags, most, least, rng):
    """Rows of whole bags, drawn until there are enough.

    Parameters
    ----------
    bags : ndarray of int, shape (n_instances,)
    most : int
        Instances that are enough; the last bag drawn may exceed them.
    least : int
        Bags that are drawn whatever their sizes, if there are so many.
    rng : RandomState

    Returns
    -------
    ndarray of int
        Ascending.
    """
    order = rng.permutation(np.unique(bags))
    sizes = np.bincount(bags)[order]
    enough = 1 + int(np.searchsorted(np.cumsum(sizes), most))
    return np.flatnonzero(np.isin(bags, order[: max(least, enough)]))


def measure(X, bags, proportions, random_state=0, step=lambda: None):
    """The signals that need fits.

    Parameters
    ----------
    X : ndarray or sparse array, shape (n_instances, n_features)
        Scaled.
    bags : ndarray of int, shape (n_instances,)
        Without gaps.
    proportions : ndarray, shape (n_bags, n_classes)
    random_state : int, RandomState or None, default 0
        Of the folds, and of the bags that are looked at (`whole_bags`).
    step : callable, optional
        Called after each of five steps.

    Returns
    -------
    dict
        ``agreement``, ``other``, ``line``, ``trees`` and ``whole`` of `Signals`.
    """
    rng = check_random_state(random_state)
    rows = whole_bags(bags, MOST, LEAST, rng)
    drawn, codes = np.unique(bags[rows], return_inverse=True)
    part = X[rows], codes, proportions[drawn]
    parts = list(SplitBagKFold(FOLDS, random_state=rng).split(X[rows], groups=codes))
    seen, gains = [], {"line": np.nan, "trees": np.nan}
    for name in ("line", "other"):
        seen.append(clone(METHODS[name]).fit(*part).predict(part[0]))
        step()
    for name in ("line",) if sp.issparse(X) else gains:
        gains[name] = held_out_gain(METHODS[name], *part, parts)
        step()
    better = METHODS["trees" if gains["trees"] > gains["line"] else "line"]
    whole = whole_bag_gain(better, *part, rng)
    step()
    largest = class_prior(proportions, np.bincount(bags)).argmax()
    other = float(np.mean(seen[0] != largest))
    return {"agreement": agreement(*seen), "other": other, **gains, "whole": whole}


def whole_bag_gain(estimator, X, bags, proportions, random_state=None):
    """`held_out_gain` for folds of whole bags.

    Parameters
    ----------
    estimator, X, bags, proportions
        As for `held_out_gain`.
    random_state : int, RandomState or None
        Of the folds.

    Returns
    -------
    float
        In nats; NaN where a fold cannot be fitted: there is one bag, or a class is in no bag of the fold.
    """
    n_folds = min(FOLDS, len(proportions))
    if n_folds < 2:
        return np.nan
    splitter = FullBagKFold(n_folds, proportions, random_state=random_state)
    try:
        splits = list(splitter.split(X, groups=bags))
        return held_out_gain(estimator, X, bags, proportions, splits)
    except NotIdentifiableError:
        return np.nan


def look(X, bags, proportions, random_state, progress):
    """All signals.

    Parameters
    ----------
    X, bags, proportions, random_state
        As for `measure`.
    progress : Progress

    Returns
    -------
    Signals
        Those of `measure` are NaN where the bags that are looked at cannot tell the classes apart.
    """
    facts, sizes = identifiability(bags, proportions), np.bincount(bags)
    known = {
        "n_instances": X.shape[0],
        "n_features": X.shape[1],
        "n_bags": len(proportions),
        "n_classes": proportions.shape[1],
        "largest": float(class_prior(proportions, sizes).max()),
        "worth": float(facts.worth_in_labels.min()),
    }
    try:
        return Signals(
            **known, **measure(X, bags, proportions, random_state, progress.step)
        )
    except NotIdentifiableError:
        names = ("agreement", "other", "line", "trees", "whole")
        return Signals(**known, **dict.fromkeys(names, np.nan))


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


def needed(checked):
    """How many of the labels checked must be right, so that fewer than 5 % of bad fits pass.

    Parameters
    ----------
    checked : int
        Labels of instances that the fit gives to another class than the largest. If the fit is no better than the
        largest class there, at most half of them are right, for two classes.

    Returns
    -------
    int
    """
    return 1 + int(binom.isf(LEVEL, checked, 0.5))


@dataclass(frozen=True)
class Advice:
    """What `recommend` returns; `print` it.

    Attributes
    ----------
    verdict : {"fit", "weak", "do not fit"}
    estimator : Pipeline or MajorityClass
        Not fitted: a scaler and the method.
    signals : Signals
        What was seen.
    reasons : DataFrame
        A row per question that was asked: ``ask``, ``answer`` (bool).
    labeled : DataFrame or None
        Where labels are known: `count_right`.
    majority : object
        The majority class.
    """

    verdict: str
    estimator: object
    signals: Signals
    reasons: pd.DataFrame
    labeled: pd.DataFrame | None
    majority: object

    @property
    def code(self):
        """Lines to paste: they fit the recommended estimator to ``X``, ``bags`` and ``proportions``."""
        return _code(self)

    @property
    def alternatives(self):
        """What could be recommended, a DataFrame: ``estimator``, ``gain`` in nats; the largest gain first."""
        rows = {n: (METHODS[n], getattr(self.signals, n)) for n in ("line", "trees")}
        table = pd.DataFrame(rows, index=["estimator", "gain"]).T
        return table.sort_values("gain", ascending=False)

    def __str__(self):
        wrap = textwrap.TextWrapper(WIDTH, subsequent_indent="    ")
        return "\n".join(line for part in _text(self) for line in wrap.wrap(part))

    def plot(self, ax=None):
        """The decision, with the way that was taken.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            A new figure if not given.

        Returns
        -------
        matplotlib Axes
        """
        return plot_decision(self.reasons["answer"].tolist(), ax)


def recommend(X, bags, proportions, labels=None, random_state=0, verbose=0):
    """Which method to fit to these bags, or none.

    Parameters
    ----------
    X : array-like or sparse array, shape (n_instances, n_features)
        Numbers; scaled or not.
    bags : array-like, shape (n_instances,)
    proportions : array-like, Series, dict or DataFrame
        See `llpbook.base.check_proportions`.
    labels : array-like, shape (n_instances,), optional
        Known labels, -1 for unknown. They do not enter the fits: they judge them (`judge`), and overrule the signals
        where they are enough.
    random_state : int, RandomState or None, default 0
    verbose : int, default 0
        1 prints the progress, at most a line a second.

    Returns
    -------
    Advice

    Raises
    ------
    ValueError
        For malformed input; see `llpbook.base`.

    Notes
    -----
    Two fits and three times three fits, to parts of the bags and to whole bags; of more than 10,000 instances only
    whole bags with about so many are looked at, but at least 30 bags. Covered: two and more classes, two and more bags,
    sparse matrices (without trees). Not covered: kernels, clusters, shares with errors, and instances that depend on
    one another.
    """
    baseline = MajorityClass().fit(X, bags, proportions, labels)  # checks the input
    data = read_bags(baseline._validate_predict(X), bags, proportions, labels, X)
    used, codes = np.unique(data.bags, return_inverse=True)
    scaler = MaxAbsScaler() if sp.issparse(data.X) else StandardScaler()
    Z, shares = scaler.fit_transform(data.X), data.proportions[used]
    progress = Progress(_Printing(verbose), 5, "step")
    signals = look(Z, codes, shares, random_state, progress)
    (verdict, path), labeled = decide(signals), None
    largest = int(np.argmax(baseline.class_prior_))
    if labels is not None and not np.isnan(signals.agreement):
        fitted = clone(METHODS[choose_method("fit", signals)]).fit(Z, codes, shares)
        labeled = count_right(fitted.predict(Z), data.labels, largest)
        verdict = judge(verdict, labeled)
    named = clone(METHODS[choose_method(verdict, signals)])
    return Advice(
        verdict,
        named if verdict == "do not fit" else make_pipeline(clone(scaler), named),
        signals,
        pd.DataFrame(path, columns=["ask", "answer"]),
        labeled,
        data.classes[largest],
    )


class _Printing(NamedTuple):
    """What `Progress` asks of an estimator."""

    verbose: int


def _text(advice):
    """At most twelve lines."""
    name = type(_last(advice.estimator)).__name__
    yield {
        "fit": f"Fit {name}.",
        "weak": f"Weak: fit {name}, and check some labels before use.",
        "do not fit": f"Do not fit: predict the largest class, {advice.majority}.",
    }[advice.verdict]
    yield from _seen(advice.signals)
    for ask, held in advice.reasons.itertuples(index=False):
        yield f"  {'yes' if held else 'no':<4} {' '.join(ask.split())}"
    if advice.labeled is not None:
        fit, majority = advice.labeled.loc["fit"], advice.labeled.loc["majority"]
        yield (
            f"Known labels: the fit has {fit['right']} of {fit['of']} right, the largest class {majority['right']}. "
            "Where they are enough they overrule the answers above."
        )
    yield {"fit": PARAMETERS, "weak": _check(advice), "do not fit": HELP}[
        advice.verdict
    ]
    if advice.labeled is None:  # the record is that of the signals alone
        times, below = RECORD[advice.verdict]
        yield (
            f"Record: given {times} times on tasks of data sets that the rule was not made on; the fit was then worse "
            f"than the largest class {below} times."
        )
    yield f"Not shown: {NOT_SHOWN}."


def _check(advice):
    """What to check where the verdict is "weak"."""
    s = advice.signals
    n = CHECKED if np.isnan(s.other) else min(CHECKED, round(s.other * s.n_instances))
    enough = f"at least {needed(n)} are right" if n else "it gives any"
    if s.n_classes > 2:
        enough = f"clearly more of them are right than belong to {advice.majority}"
    return f"Check: label {n} instances that the fit does not give to {advice.majority}; use it if {enough}."


def _seen(s):
    """The signals in words."""
    yield (
        f"Seen: {s.n_instances} instances, {s.n_features} features, {s.n_bags} bags worth {s.worth:.0f} labels; "
        f"{s.largest:.0%} in the largest of {s.n_classes} classes."
    )
    if np.isnan(s.agreement):
        yield "The bags that were looked at cannot tell the classes apart, so nothing was fitted."
    else:
        trees = "" if np.isnan(s.trees) else f", {s.trees:.1f} with trees"
        yield (
            f"Two methods agree on {s.agreement:.0%}; held-out parts gain {s.line:.1f} nats with a line{trees}; "
            f"held-out whole bags gain {s.whole:.1f}."
        )


def _last(estimator):
    """The last step of a pipeline, or the estimator itself."""
    return getattr(estimator, "steps", [(None, estimator)])[-1][1]


def _code(advice):
    """Lines that fit the estimator."""
    method = _last(advice.estimator)
    if method is advice.estimator:
        return "from llpbook import MajorityClass\n\nmodel = MajorityClass().fit(X, bags, proportions)"
    scaler, name = type(advice.estimator[0]).__name__, type(method).__name__
    return "\n".join([
        f"from llpbook import {name}",
        "from sklearn.pipeline import make_pipeline",
        f"from sklearn.preprocessing import {scaler}",
        "",
        f"model = make_pipeline({scaler}(), {method!r})",
        f"model.fit(X, bags, {name.lower()}__proportions=proportions)",
    ])  # fmt: skip


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
    from .plotting._style import pyplot

    if ax is None:
        _, ax = pyplot().subplots(figsize=(9, 4.6), layout="constrained")
    _draw(ax, RULE, 0.0, 2.0, 0, list(path), True)
    ax.set(xlim=(-4, 4), ylim=(-2.4, 0.4))
    ax.axis("off")
    return ax


def _draw(ax, node, x, step, depth, path, taken):
    """A node and what follows it; what is on the path is bold."""
    weight, color = ("bold", "black") if taken else ("normal", "gray")
    box = {"boxstyle": "round,pad=0.5", "facecolor": "white", "edgecolor": color}
    text = node.ask if isinstance(node, Question) else node
    ax.text(x, -depth, text, ha="center", va="center", weight=weight, bbox=box)
    if not isinstance(node, Question):
        return
    for child, answer, side in ((node.yes, True, -1), (node.no, False, 1)):
        on_path = taken and (not path or path[0] == answer)
        line = {"color": color, "linewidth": 2.0 if on_path and path else 0.8}
        ax.plot([x, x + side * step], [-depth, -depth - 1], zorder=0, **line)
        word = "yes" if answer else "no"
        ax.text(
            x + side * step / 2, -depth - 0.5, word, ha="center", backgroundcolor="w"
        )
        _draw(ax, child, x + side * step, step / 2, depth + 1, path[1:], on_path)
