"""Pipelines around a method: find the steps that learn from bags, and the steps that take the bags for labels."""

from inspect import signature
from typing import Any, NamedTuple

import numpy as np
from sklearn import config_context
from sklearn.base import BaseEstimator
from sklearn.feature_selection import (
    RFE,
    RFECV,
    SelectFromModel,
    SelectorMixin,
    VarianceThreshold,
)
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from .._input import with_article
from ._running import warn


class Step(NamedTuple):
    """A step of a pipeline of any depth: its name from outside, as in ``set_params``, and itself."""

    name: str
    estimator: Any


def flat_steps(estimator, name=""):
    """List the steps of an estimator: all steps of nested pipelines in their order, or the estimator itself.

    Parameters
    ----------
    estimator : estimator or Pipeline
    name : str, default ""
        Of the estimator from outside.

    Returns
    -------
    list of Step
        Without those that pass everything through.
    """
    if not isinstance(estimator, Pipeline):
        return [Step(name, estimator)]
    front = f"{name}__" if name else ""
    return [
        inner
        for key, step in estimator.steps
        if step not in (None, "passthrough")
        for inner in flat_steps(step, front + key)
    ]


def last_step(estimator):
    """Last step of nested pipelines, which learns and predicts; another estimator is returned as it is."""
    while isinstance(estimator, Pipeline):
        estimator = estimator.steps[-1][1]
    return estimator


def split_steps(model):
    """Split a model into the steps before the last one, and the last one.

    Parameters
    ----------
    model : estimator or Pipeline
        Fitted.

    Returns
    -------
    before : Pipeline or None
        With the steps of inner pipelines as its own; None where there is no such step.
    last : estimator
    """
    *before, last = flat_steps(model)
    named = [(step.name.replace("__", "-"), step.estimator) for step in before]
    return (Pipeline(named) if named else None), last.estimator


def learns_from_bags(estimator):
    """True if an estimator, or the last step of a pipeline, is fitted with proportions."""
    last = last_step(estimator)
    able = hasattr(last, "fit") and not isinstance(last, type)
    return able and has_fit_parameter(last, "proportions")


def hands_on(step):
    """True if a step selects features by an estimator that learns from bags, and passes proportions to it."""
    selects = isinstance(step, SelectFromModel | RFE) and not isinstance(step, RFECV)
    return selects and learns_from_bags(step.estimator)


def learners(estimator):
    """List the steps that are fitted with proportions.

    Parameters
    ----------
    estimator : estimator or Pipeline

    Returns
    -------
    list of Step
        The name is that of the step which the outermost ``fit`` names; a selector hands on to its inner estimator.
    """
    steps = []
    for name, step in flat_steps(estimator):
        if hands_on(step):
            for inner, learner in learners(step.estimator):
                path = [part for part in (name, inner) if part]
                steps.append(Step("__".join(path), learner))
        elif learns_from_bags(step):
            steps.append(Step(name, step))
    return steps


def reads_labels(step):
    """True if a transformer uses ``y``, which in a pipeline of this package are the bags.

    scikit-learn's tags do not say so of `SelectKBest`, `SelectFromModel` and `PLSRegression`. So a selector other than
    `VarianceThreshold` counts too, and a ``fit`` whose ``y`` has no default.
    """
    if hasattr(step, "fit_resample") or get_tags(step).target_tags.required:
        return True
    if isinstance(step, SelectorMixin):
        return not isinstance(step, VarianceThreshold)
    y = signature(step.fit).parameters.get("y")
    return y is not None and y.default is y.empty


def inner_steps(step):
    """Yield transformers among the parameters of a step, such as those of a `ColumnTransformer`, with their names."""
    for key, value in step.get_params(deep=False).items():
        pairs = value if isinstance(value, list) else [(key, value)]
        for pair in pairs:
            if isinstance(pair, tuple) and len(pair) > 1 and hasattr(pair[1], "fit"):
                name, inner = pair[:2]
                if hasattr(inner, "transform") or isinstance(inner, Pipeline):
                    yield Step(str(name), inner)


def label_readers(estimator):
    """List the steps before the last that use ``y``, at any depth.

    Parameters
    ----------
    estimator : estimator or Pipeline

    Returns
    -------
    list of Step
        A step that is frozen, or fitted before, is none. Nor is a selector that hands proportions on; inside of a
        `FeatureUnion` or a `ColumnTransformer`, which hand nothing on, it is one.
    """
    if not isinstance(estimator, Pipeline):
        return []
    *before, last = flat_steps(estimator)
    readers = label_readers(last.estimator)
    for name, step in before:
        if hands_on(step):
            readers += label_readers(step.estimator)
        else:
            readers += _readers_in(name, step)
    return readers


def _readers_in(name, step):
    """The step itself if it uses ``y``, else its inner steps that use it."""
    fitted = isinstance(step, FrozenEstimator) or getattr(step, "prefit", None) is True
    if fitted or not isinstance(step, BaseEstimator):
        return []
    if not isinstance(step, Pipeline) and reads_labels(step):
        return [Step(name, step)]
    return [
        reader
        for inner, inside in inner_steps(step)
        for reader in _readers_in(f"{name}__{inner}", inside)
    ]


#: What to do about a step that looks at y.
MEND = (
    "Take a step that looks at X only, such as PCA or OneHotEncoder; or a step of the pipeline that is fitted with "
    "proportions, SelectFromModel(CountLogistic()); or FrozenEstimator(step) if it was fitted to labels elsewhere"
)


def check_learner(estimator, name="estimator"):
    """ValueError where an estimator does not learn from bags, or a step before the one that does looks at ``y``.

    Parameters
    ----------
    estimator : estimator or Pipeline
        It is about to be fitted with bags in the place of ``y``.
    name : str, default "estimator"
        Of the argument.
    """
    if not learns_from_bags(estimator):
        last = type(last_step(estimator)).__name__
        raise ValueError(
            f"{name} must learn from bags, but the fit of {last} takes no proportions: EMLR and CountBoosting learn "
            "from bags around such an estimator, and llpbook.bag_losses.LogOddsClassifier around a regressor of "
            f"XGBoost or LightGBM; got {estimator!r}"
        )
    for step, reader in label_readers(estimator):
        raise ValueError(
            f"{name} has the step {step!r}, {with_article(reader)}, which looks at y; with bags in the place of y "
            f"it would look for what tells bags apart, and not classes. {MEND}"
        )


def check_fitted_to_bags(model):
    """Check that no step of a fitted model has taken the bags for labels, which its last step cannot see.

    Parameters
    ----------
    model : estimator or Pipeline
        Fitted.

    Raises
    ------
    ValueError
        If the model has no classes, or not those of a fit to bags inside of it, as in a `CalibratedClassifierCV`.

    Warns
    -----
    LLPWarning
        If a step of the pipeline looks at ``y``.
    """
    last = last_step(model)
    if not hasattr(last, "classes_"):
        if isinstance(last, BaseEstimator):
            check_is_fitted(last)
        raise ValueError(
            f"model must be a fitted classifier, and {type(last).__name__} has no classes_: if its predict returns "
            "log-odds, as of a booster or a network that minimizes a loss of bags, pass "
            "llpbook.bag_losses.LogOddsClassifier(model)"
        )
    if learns_from_bags(last):
        warn_of_label_readers(model)
        return
    classes = np.asarray(getattr(last, "classes_", ())).tolist()
    for inner in fits_inside(last):
        if learns_from_bags(inner) and inner.classes_.tolist() != classes:
            own, name = type(last).__name__, type(inner).__name__
            raise ValueError(
                f"model is a {own} with the classes {shown(classes)}, and the {name} inside of it has "
                f"{shown(inner.classes_.tolist())}: {own} takes the bags that it gets as y for labels. Fit {name} by "
                "itself; CountCalibration calibrates it, and LLPGridSearchCV compares it with others"
            )


def warn_of_label_readers(model):
    """Warn where a step before the last one has used ``y``."""
    for step, reader in label_readers(model):
        warn(
            f"the step {step!r} of the pipeline, {with_article(reader)}, looks at y, and fit(X, bags) hands it the "
            f"bags: it looked for what tells bags apart, and not classes. {MEND}"
        )


def fits_inside(model, depth=4):
    """Yield fitted estimators among the attributes of a fitted one, and in lists among these, up to a depth."""
    for value in vars(model).values() if depth and hasattr(model, "__dict__") else ():
        for inner in value if isinstance(value, list) else [value]:
            if type(inner).__module__.startswith(("sklearn.", "llpbook.")):
                fitted = hasattr(inner, "classes_") and hasattr(inner, "fit")
                yield from [inner] if fitted else []
                yield from fits_inside(inner, depth - 1)


def shown(values, most=4):
    """Format a list, shortened."""
    return f"[{', '.join(map(repr, values[:most]))}{', …' * (len(values) > most)}]"


def fit_to_bags(
    estimator, X, bags, proportions, labels=None, *, counts=None, params=None
):
    """Fit an estimator or a pipeline of any depth; each of its steps that learns from bags gets the proportions.

    Parameters
    ----------
    estimator : estimator or Pipeline
    X : array-like, shape (n_instances, n_features)
    bags : array-like, shape (n_instances,)
    proportions : array-like, Series, dict or DataFrame
    labels, counts : array-like, shape (n_instances,), optional
    params : dict, optional
        Further parameters of the fit, such as those of other steps.

    Returns
    -------
    estimator
        The estimator itself, fitted.
    """
    values = {"proportions": proportions, "labels": labels, "counts": counts}
    of_learners = {
        "__".join(part for part in (name, key) if part): value
        for name, learner in learners(estimator)
        for key, value in values.items()
        if value is not None and has_fit_parameter(learner, key)
    }
    # With routing a Pipeline would ask its steps for requests that name what every estimator here takes.
    with config_context(enable_metadata_routing=False):
        return estimator.fit(X, bags, **of_learners, **(params or {}))
