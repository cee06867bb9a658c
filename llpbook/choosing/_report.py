"""The advice in words, and as code to paste."""

import numpy as np

from ._decision import CHECKED, TOO_FEW, judge, needed

#: Columns of the printed advice.
WIDTH = 100
NOT_SHOWN = (
    "whether features that tell the bags apart also tell the classes apart within a bag"
)
PARAMETERS = (
    "Parameters: LLPGridSearchCV with its default score; compare with MajorityClass()."
)
HELP = "What would help: more bags, bags whose shares differ more, or some labels."
#: By verdict, on draws of tasks of data sets that the rule was not made on: how often it was given, how often of these
#: to bags of the same data set, and how often the fit (for "do not fit": the fit that was not made) was less accurate
#: than the majority class. None of these tasks has fewer bags than `FEWEST`.
RECORD = {"fit": (44, 31, 0), "weak": (58, 27, 7), "do not fit": (38, 34, 10)}
FEWEST = 4


def report(advice):
    """At most twelve lines."""
    name = type(last_step(advice.estimator)).__name__
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
        decided = judge(None, advice.labeled) is not None
        yield (
            f"Known labels: the fit has {fit['right']} of {fit['of']} right, the largest class {majority['right']}. "
            + ("They decide." if decided else "They are too few to decide.")
        )
    yield {"fit": PARAMETERS, "weak": _check(advice), "do not fit": HELP}[
        advice.verdict
    ]
    if advice.labeled is None:  # the record is that of the signals alone
        yield _record(advice)
    yield f"Not shown: {NOT_SHOWN}."


def _record(advice):
    """How often such advice was right."""
    if advice.signals.n_bags < FEWEST:
        return f"Record: none, since no task of the study has fewer than {FEWEST} bags."
    times, one, below = RECORD[advice.verdict]
    return (
        f"Record: given {times} times to tasks that the rule was not made on, {one} times to bags of one data set; the "
        f"fit was then worse than the largest class {below} times."
    )


def _check(advice):
    """What to check where the verdict is "weak"."""
    s = advice.signals
    n = CHECKED if np.isnan(s.other) else min(CHECKED, round(s.other * s.n_instances))
    if n < TOO_FEW:
        return f"Check: the fit gives only {n} instances to another class than {advice.majority}, too few to check."
    enough = f"at least {needed(n)} are right"
    if s.n_classes > 2:
        more = 2 * needed(n) - n
        enough = (
            f"those that are right exceed those of class {advice.majority} by {more}"
        )
    return (
        f"Check: label {n} instances that the fit gives to another class than {advice.majority}, new ones if you will "
        f"predict new ones; use it if {enough}."
    )


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
        whole = "not known" if np.isnan(s.whole) else f"{s.whole:.1f}"
        yield (
            f"Two methods agree on {s.agreement:.0%}. Gain in nats: held-out parts {s.line:.1f} with a line{trees}; "
            f"whole bags {whole}."
        )


def last_step(estimator):
    """The last step of a pipeline, or the estimator itself."""
    return getattr(estimator, "steps", [(None, estimator)])[-1][1]


def code_of(advice):
    """Lines that fit the estimator."""
    method = last_step(advice.estimator)
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
