"""`recommend`, the advice that it returns, and the advice in words."""

import json
import textwrap
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from .._input import (
    ArrayLike,
    Matrix,
    Proportions,
    RandomState,
    check_features,
    num_samples,
    read_counts,
)
from .._printed import Printed
from ..base import (
    Progress,
    error_covariances,
    fit_to_bags,
    last_step,
    read_bags,
    single_rows,
)
from ._decision import (
    CHECKED,
    count_right,
    decide,
    judge,
    needed,
    plot_decision,
    warn_if_chosen,
)
from ._signals import DENSE, METHODS, MOST_DENSE, Clock, Signals, look

#: Columns of the printed advice.
WIDTH = 100
#: Fewer labels than so many check nothing.
TOO_FEW = 5
#: Results of the study, written by ``python -m studies.choosing``. ``record`` counts, per verdict, draws of tasks of
#: data sets that the rule was not made on: how often the verdict was given, how often of these to bags of the same
#: data set, and how often the fit (for "do not fit": the fit that was not made) was less accurate than the majority
#: class. ``fewest``: the smallest number of bags of these tasks.
STUDY = json.loads((Path(__file__).parent / "study.json").read_text())


@dataclass(frozen=True)
class Advice(Printed):
    """Advice of `recommend`; `print` shows it in words.

    Attributes
    ----------
    verdict : {"fit", "weak", "do not fit"}
    estimator : Pipeline or MajorityClass
        Not fitted: a scaler and the method; in front of them a step that makes sparse features dense for trees.
    signals : Signals
        Sizes, gains and agreement, from which the verdict follows.
    reasons : DataFrame
        A row per question that was asked: ``ask``, ``answer`` (bool). None was asked where nothing could be fitted.
    labeled : DataFrame or None
        Where labels are known: how many of them the fit and the majority class predict, in the columns ``right``,
        ``of`` and ``alone`` (right where the other is wrong).
    majority : object
        The majority class.
    refusal : str or None
        Why no method can be fitted to these bags, where none can.
    not_tried : list of str
        What was left out because of ``max_seconds``.
    max_seconds : float

    Examples
    --------
    >>> import numpy as np
    >>> from llpbook import recommend
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 600)
    >>> X = rng.normal(size=(600, 2)) + 2.0 * y[:, None]
    >>> bags = np.argsort(np.argsort(y + rng.normal(size=600))) // 20
    >>> shares = np.bincount(bags, y) / 20
    >>> advice = recommend(X, bags, shares)
    >>> advice.verdict, advice.not_tried
    ('fit', [])
    >>> model = advice.fit(X, bags, shares)
    >>> bool(np.mean(model.predict(X) == y) > 0.8)
    True
    """

    verdict: str
    estimator: Any
    signals: Signals
    reasons: pd.DataFrame
    labeled: pd.DataFrame | None
    majority: object
    refusal: str | None
    not_tried: list
    max_seconds: float

    @property
    def method(self):
        """The last step of the estimator."""
        return last_step(self.estimator)

    def fit(
        self, X: Matrix, bags: ArrayLike, proportions: Proportions, *,
        counts: ArrayLike | None = None,
    ):  # fmt: skip
        """Fit the recommended estimator.

        Parameters
        ----------
        X, bags, proportions, counts
            As for `recommend`, of these bags or of more of their kind.

        Returns
        -------
        Pipeline or MajorityClass
            Fitted; `estimator` stays as it is.
        """
        estimator, scaling = clone(self.estimator), {}
        if counts is not None and self.method is not self.estimator:
            times = read_counts(counts, num_samples(X), X)
            scaling = {
                f"{name}__sample_weight": times
                for name, step in self.estimator.steps
                if isinstance(step, StandardScaler)
            }
        return fit_to_bags(
            estimator, X, bags, proportions, counts=counts, params=scaling
        )

    @property
    def alternatives(self) -> pd.DataFrame:
        """The two methods that could be recommended: ``estimator``, ``gain`` in nats; the larger gain first."""
        rows = {n: (METHODS[n], getattr(self.signals, n)) for n in ("line", "trees")}
        table = pd.DataFrame(rows, index=["estimator", "gain"]).T
        return table.sort_values("gain", ascending=False)

    def __str__(self):
        wrap = textwrap.TextWrapper(WIDTH, subsequent_indent="    ")
        return "\n".join(line for part in _report(self) for line in wrap.wrap(part))

    def plot(self, *, ax=None):
        """Draw the decision, with the answers that led to the verdict in bold.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            A new figure if not given.

        Returns
        -------
        matplotlib Axes
        """
        return plot_decision(self.reasons["answer"].tolist(), ax)


def recommend(
    X: Matrix,
    bags: ArrayLike,
    proportions: Proportions,
    *,
    labels: ArrayLike | None = None,
    counts: ArrayLike | None = None,
    proportion_errors: ArrayLike | None = None,
    max_seconds: float = 60.0,
    random_state: RandomState = 0,
    verbose: int = 0,
) -> Advice:
    """Recommend a method for given bags, or to fit none.

    Parameters
    ----------
    X : array-like or sparse array, shape (n_instances, n_features)
        Numbers; scaled or not.
    bags : array-like, shape (n_instances,)
    proportions : array-like, Series, dict or DataFrame
        See `llpbook.proportions.check_proportions`.
    labels : array-like, shape (n_instances,), optional
        Known labels, -1 for unknown, of instances that were drawn at random. They do not enter the fits: they judge
        them, and overrule the signals where they are enough.
    counts : array-like of int, shape (n_instances,), optional
        How many equal instances each row stands for; one if not given. Each is then a row of its own.
    proportion_errors : array-like, optional
        Standard errors of the shares, as of `llpbook.ecological.polling_errors` or `CountLogistic`; the methods that
        can use them are fitted with them.
    max_seconds : float, default 60.0
        Fits end after so many seconds, within one iteration. The cheapest come first; ``not_tried`` and a line of the
        printed advice say which are missing, and what is missing never makes the verdict better.
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

    Warns
    -----
    LLPWarning
        If known labels are no random sample: the counts of their classes contradict the shares of their bags.

    Notes
    -----
    Two or three fits and three times three fits, to parts of the bags and to whole bags; of more than 10,000
    instances only whole bags with about so many are looked at, but at least 30 bags, and of more than seven million
    numbers a part of each bag is fitted to. Covered: two and more classes, two and more bags, sparse matrices. These
    are made dense for trees up to 50 million numbers, zeros included; above, trees are left out, and the printed advice
    says so. Not covered: kernels, clusters, and instances that depend on one another.

    Examples
    --------
    >>> import numpy as np
    >>> from llpbook import recommend
    >>> X, bags = np.random.default_rng(0).normal(size=(200, 2)), np.repeat(np.arange(20), 10)
    >>> print(recommend(X, bags, np.full(20, 0.3)))  # doctest: +ELLIPSIS
    Do not fit: predict the largest class, 0.
    Seen: 200 instances, 2 features, 20 bags worth 0 labels; 70% in the largest of 2 classes.
    No method can be fitted to these bags: proportions are the same in every bag...
    """
    if not isinstance(max_seconds, Real) or not max_seconds > 0:
        raise ValueError(f"max_seconds must be a number above 0, got {max_seconds!r}")
    clock = Clock(max_seconds, Progress("recommend", verbose, 6))
    features = check_features(X, accept_sparse="csr")
    data = single_rows(read_bags(features, bags, proportions, labels, X, counts=counts))
    largest = int(np.argmax(data.class_prior))
    used, codes = np.unique(data.bags, return_inverse=True)
    scaler = MaxAbsScaler() if sp.issparse(data.X) else StandardScaler()
    errors = None
    if proportion_errors is not None:
        errors = error_covariances(proportion_errors, data)[used]
    shares = data.proportions[used]
    signals, model, refusal = look(
        data.X, codes, shares, scaler, random_state, clock, errors
    )
    verdict, path = ("do not fit", []) if model is None else decide(signals)
    labeled = None
    if labels is not None and model is not None and (data.labels >= 0).any():
        labeled = _count_right(model, scaler, data, largest)
        verdict = judge(verdict, labeled)
    estimator = METHODS["majority"]
    if verdict != "do not fit":
        method = clone(METHODS[signals.likelier])
        method.set_params(proportion_errors=proportion_errors)
        dense = sp.issparse(data.X) and signals.likelier == "trees"
        estimator = make_pipeline(scaler, method)
        if dense:
            estimator = Pipeline([*DENSE.steps, ("countboosting", method)])
    return Advice(
        verdict=verdict,
        estimator=clone(estimator),
        signals=signals,
        reasons=pd.DataFrame(path, columns=["ask", "answer"]),
        labeled=labeled,
        majority=data.classes[largest],
        refusal=refusal,
        not_tried=clock.not_tried,
        max_seconds=max_seconds,
    )


def _count_right(model, scaler, data, largest):
    """`count_right` of the model's predictions for the instances with a known label."""
    rows = np.flatnonzero(data.labels >= 0)
    truth = data.labels[rows]
    warn_if_chosen(truth, data.proportions[data.bags[rows]], data.classes)
    predicted = model.predict(scaler.transform(data.X[rows]))
    return count_right(predicted, truth, largest)


def _report(advice):
    """Yield the lines of the advice, before they are wrapped."""
    name, s = type(advice.method).__name__, advice.signals
    yield {
        "fit": f"Fit {name}.",
        "weak": f"Weak: fit {name}, and check some labels before use.",
        "do not fit": f"Do not fit: predict the largest class, {advice.majority}.",
    }[advice.verdict]
    stated = getattr(advice.method, "proportion_errors", None) is not None
    exact = " if the shares were exact" * stated
    yield (
        f"Seen: {s.n_instances} instances, {s.n_features} features, {s.n_bags} bags worth {s.worth:.0f} labels{exact}; "
        f"{s.largest:.0%} in the largest of {s.n_classes} classes."
    )
    yield _measured(advice)
    for ask, held in advice.reasons.itertuples(index=False):
        yield f"  {'yes' if held else 'no':<4} {' '.join(ask.split())}"
    yield _of_labels(advice)
    yield {
        "fit": "Parameters: LLPGridSearchCV with its default score; compare with MajorityClass().",
        "do not fit": "What would help: more bags, bags whose shares differ more, or some labels.",
    }.get(advice.verdict) or _check(advice)
    if not s.trees_tried:
        yield _without_trees(s)
    yield _missing(advice) if advice.not_tried else _record(advice)
    yield "Not shown: whether features that tell the bags apart also tell the classes apart within a bag."


def _measured(advice):
    """One line on the gains and the agreement of the fits."""
    s = advice.signals
    if advice.refusal is not None:
        return f"No method can be fitted to these bags: {advice.refusal}"
    if np.isnan(s.other):
        return "Nothing was fitted: the time was too short."
    agree = (
        "" if np.isnan(s.agreement) else f"A line and EM agree on {s.agreement:.0%}. "
    )
    # rounded down: a gain that is too small must not be printed as enough
    line, trees, whole = (
        "not known" if np.isnan(v) else f"{np.floor(10 * v) / 10:.1f}"
        for v in (s.line, s.trees, s.whole)
    )
    trees = "" if np.isnan(s.trees) else f", {trees} with trees"
    return f"{agree}Gain in nats: held-out parts {line} with a line{trees}; whole bags {whole}."


def _of_labels(advice):
    """One line on the known labels that the fit and the largest class have right."""
    if advice.labeled is None:
        return ""
    fit, majority = advice.labeled.loc["fit"], advice.labeled.loc["majority"]
    decided = judge(None, advice.labeled) is not None
    return (
        f"Known labels: the fit has {fit['right']} of {fit['of']} right, the largest class {majority['right']}. "
        + ("They decide." if decided else "They are too few to decide.")
    )


def _missing(advice):
    """One line on the fits that the limit of time left out."""
    return (
        f"Not tried within max_seconds={advice.max_seconds:g}: {', '.join(advice.not_tried)}. What is missing counts "
        "against a fit."
    )


def _without_trees(s):
    """One line on trees that were left out, and what that costs."""
    return (
        f"Trees were not tried: X is sparse, and they need it dense, {s.n_instances:,} × {s.n_features:,} numbers, "
        f"more than {MOST_DENSE:,}. If the classes are not linear in the features, only trees may find them: drop "
        "columns, or compare CountBoosting on X.toarray() by LLPGridSearchCV."
    )


def _check(advice):
    """One line on the labels to check where the verdict is "weak"."""
    s = advice.signals
    n = min(CHECKED, round(s.other * s.n_instances))
    if n < TOO_FEW:
        return f"Check: the fit gives only {n} instances to another class than {advice.majority}, too few to check."
    enough, more = f"at least {needed(n)} are right", 2 * needed(n) - n
    if s.n_classes > 2:
        enough = (
            f"those that are right exceed those of class {advice.majority} by {more}"
        )
    return (
        f"Check: label {n} instances that the fit gives to another class than {advice.majority}, new ones if you will "
        f"predict new ones; use it if {enough}."
    )


def _record(advice):
    """One line on how often such advice was right in the study, if no known labels entered it."""
    if advice.labeled is not None:
        return ""
    if advice.signals.n_bags < STUDY["fewest"]:
        return f"Record: none, since no task of the study has fewer than {STUDY['fewest']} bags."
    times, one, below = STUDY["record"][advice.verdict]
    return (
        f"Record: given {times} times to tasks that the rule was not made on, {one} times to bags of one data set; the "
        f"fit was then worse than the largest class {below} times."
    )
