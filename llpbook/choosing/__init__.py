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
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from ..base import Progress, told
from ..baselines import MajorityClass
from ._decision import (
    CHECKED,
    CHOSEN,
    COMMON,
    ENOUGH,
    LEVEL,
    RULE,
    SLACK,
    TOO_FEW,
    Question,
    choose_method,
    count_right,
    decide,
    judge,
    needed,
    warn_if_chosen,
)
from ._picture import plot_decision
from ._report import FEWEST, RECORD, WIDTH, code_of, last_step, report
from ._signals import (
    FOLDS,
    LEAST,
    METHODS,
    MOST,
    Signals,
    agreement,
    held_out_gain,
    likelier,
    look,
    measure,
    whole_bag_gain,
    whole_bags,
)


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

    def fit(self, X, bags, proportions):
        """Fit the recommended estimator.

        Parameters
        ----------
        X, bags, proportions
            As for `recommend`, of these bags or of more of their kind.

        Returns
        -------
        Pipeline or MajorityClass
            Fitted; `estimator` stays as it is.
        """
        model = clone(self.estimator)
        last = last_step(model)
        if last is model:
            return model.fit(X, bags, proportions)
        name = type(last).__name__.lower()
        return model.fit(X, bags, **{f"{name}__proportions": proportions})

    @property
    def code(self):
        """Lines to paste: they fit the recommended estimator to ``X``, ``bags`` and ``proportions``."""
        return code_of(self)

    @property
    def alternatives(self):
        """What could be recommended, a DataFrame: ``estimator``, ``gain`` in nats; the largest gain first."""
        rows = {n: (METHODS[n], getattr(self.signals, n)) for n in ("line", "trees")}
        table = pd.DataFrame(rows, index=["estimator", "gain"]).T
        return table.sort_values("gain", ascending=False)

    def __str__(self):
        wrap = textwrap.TextWrapper(WIDTH, subsequent_indent="    ")
        return "\n".join(line for part in report(self) for line in wrap.wrap(part))

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
        Known labels, -1 for unknown, of instances that were drawn at random. They do not enter the fits: they judge
        them (`judge`), and overrule the signals where they are enough.
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
        If known labels are no random sample (`warn_if_chosen`).

    Notes
    -----
    Two or three fits and three times three fits, to parts of the bags and to whole bags; of more than 10,000
    instances only whole bags with about so many are looked at, but at least 30 bags. Covered: two and more classes,
    two and more bags, sparse matrices (without trees). Not covered: kernels, clusters, shares with errors, and
    instances that depend on one another.
    """
    baseline = MajorityClass()
    with told(baseline):
        checked = baseline._validate_fit(X, bags, proportions, labels)
    data = checked.before or checked
    used, codes = np.unique(data.bags, return_inverse=True)
    scaler = MaxAbsScaler() if sp.issparse(data.X) else StandardScaler()
    Z, shares = scaler.fit_transform(data.X), data.proportions[used]
    progress = Progress("recommend", verbose, 6)
    signals = look(Z, codes, shares, random_state, progress)
    (verdict, path), labeled = decide(signals), None
    largest = int(np.argmax(checked.class_prior))
    if data.labels is not None and not np.isnan(signals.agreement):
        warn_if_chosen(data.labels, codes, shares, data.classes)
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


class Recommend(NamedTuple):
    """What `Progress` asks of an estimator."""

    verbose: int


__all__ = [
    "CHECKED",
    "CHOSEN",
    "COMMON",
    "ENOUGH",
    "FEWEST",
    "FOLDS",
    "LEAST",
    "LEVEL",
    "METHODS",
    "MOST",
    "RECORD",
    "RULE",
    "SLACK",
    "TOO_FEW",
    "WIDTH",
    "Advice",
    "Question",
    "Signals",
    "agreement",
    "choose_method",
    "count_right",
    "decide",
    "held_out_gain",
    "judge",
    "likelier",
    "look",
    "measure",
    "needed",
    "plot_decision",
    "recommend",
    "warn_if_chosen",
    "whole_bag_gain",
    "whole_bags",
]
