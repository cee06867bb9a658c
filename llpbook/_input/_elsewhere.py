"""Arguments of other tools that no method takes, labels or shares in the place of bags, and what to write instead."""

from collections.abc import Callable
from difflib import get_close_matches
from functools import wraps
from inspect import signature
from typing import Any, TypeVar, cast

import numpy as np
import pandas as pd

from ._arguments import as_column
from ._keys import quote

Method = TypeVar("Method", bound=Callable[..., Any])

#: With so few different values, what stands in the place of bags may be classes.
MOST_CLASSES = 10
#: Arguments of scikit-learn's and other tools, and what to do here.
INSTEAD = {
    "class_weight": "the shares say how frequent each class is. To find more of a rare class, lower the threshold, "
    "model.predict_proba(X)[:, 1] > 0.2",
    "sample_weight": "frequencies of equal rows, whole numbers, are counts; with weights of a survey, pass the "
    "weighted share of each bag",
    "groups": "the groups are the bags, fit(X, groups, proportions)",
    "y": "labels of instances are not needed, fit(X, bags, proportions). Where you have all of them, take a classifier "
    "of scikit-learn; where you have some, pass labels, -1 for unknown",
    "random_state": "nothing in its fit is random",
    "n_jobs": "LLPGridSearchCV and bag_bootstrap take it",
}
#: What other tools of ecological inference call the people or the weight of a place.
WEIGHTS = "weights sample_weight total totals sizes counts n N precinct_pops"
#: Parameters of methods, what they are called elsewhere, and what else differs.
ALIKE = {
    "C": (
        "alpha lambda_ lam reg_lambda l2_regularization weight_decay",
        ", which is large where the penalty is small",
    ),
    "C_p": ("C alpha", ", which is large where the shares are to be met closely"),
    "alpha": ("C lambda_ lam reg_lambda", ", which is large where the penalty is"),
    "max_iter": ("n_estimators n_iter epochs num_boost_round", ""),
    "max_leaf_nodes": ("max_depth num_leaves", ""),
    "learning_rate": ("eta lr", ""),
    "random_state": ("seed", ""),
}


def advised(method: Method) -> Method:
    """Decorate a function, so that an argument that it does not take is refused with what to write instead."""
    parameters = signature(method).parameters
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return method
    taken = [name for name in parameters if name != "self"]

    @wraps(method)
    def checked(*args, **others):
        for name in others:
            if name not in parameters:
                call = method.__name__
                if "self" in parameters:
                    call = type(args[0]).__name__ + f".{call}" * (call != "__init__")
                raise TypeError(
                    f"{call} takes no {name}{_instead_of(name, taken)}. It takes {', '.join(taken) or 'nothing'}"
                )
        return method(*args, **others)

    return cast(Method, checked)


def _instead_of(name, taken):
    """Say what to write instead of an argument; empty where nothing is known."""
    if taken[:2] == ["groups", "classes"] and name in WEIGHTS.split():
        return (
            ": groups and classes are numbers of people, so each place has the weight of its people, and a small place "
            "little; of shares and sizes make groups = shares.mul(sizes, axis=0)"
        )
    if name in INSTEAD:
        return f": {INSTEAD[name]}"
    alike = (own for own in taken if name in ALIKE.get(own, [""])[0].split())
    own = next(alike, None)
    if own:
        return f": write {own}{ALIKE[own][1]}"
    close = get_close_matches(name, taken, 1)
    return f": perhaps {close[0]}" if close else ""


def refuse_missing(proportions, bags, step):
    """Refuse a fit without shares, and say how to pass them, and what seems to stand in the place of the bags.

    Parameters
    ----------
    proportions : object
        None where missing.
    bags : array-like
        As given.
    step : str or None
        Name of the step of a pipeline; None for a search.

    Raises
    ------
    ValueError
    """
    if proportions is not None:
        return
    values = np.atleast_1d(as_column(bags))
    said = "proportions is missing: pass fit(X, bags, proportions)"
    if values.dtype.kind == "f" and ((values > 0) & (values < 1)).any():
        raise ValueError(
            f"{said}. The second argument looks like shares, and these come third: with a row for each place, pass "
            "fit(X, np.arange(len(X)), shares), and the people of each place as counts"
        )
    said += "; cross_val_score and its like take params={'proportions': proportions}"
    if step:
        said += (
            f"; a Pipeline takes STEP__proportions, such as make_pipeline(…, {step}()).fit(X, bags, "
            f"{step.lower()}__proportions=proportions); RFECV and its like take proportions after "
            f"sklearn.set_config(enable_metadata_routing=True) for {step}().set_fit_request(proportions=True)"
        )
    if _n_different(values) <= min(MOST_CLASSES, len(values) / 2):
        said += (
            ". If the second argument holds labels of instances, take a classifier of scikit-learn; to try a method "
            "with labels hidden, bags = random_bags(X, bag_size=20) and proportions = label_proportions(labels, bags)"
        )
    raise ValueError(said)


def _n_different(values):
    """The number of different values of an array of any type."""
    return len(set(map(repr, values.tolist())))


def refuse_exchanged(bags, proportions):
    """Refuse bags in the place of the shares, after labels in the place of the bags.

    Parameters
    ----------
    bags : ndarray, shape (n_rows,)
        Checked.
    proportions : object
        As given.

    Raises
    ------
    ValueError
    """
    several = isinstance(proportions, np.ndarray | pd.Series)
    if not several or proportions.shape != bags.shape:
        return
    values = as_column(proportions)
    texts = any(isinstance(value, str) for value in values)
    codes = values.dtype.kind in "iu" and values.max() > 1
    different = _n_different(values) if texts or codes else 0
    if _n_different(bags) < different <= len(bags) / 2:
        raise ValueError(
            f"proportions has an entry for each of the {len(bags)} instances, with {different} different values such "
            f"as {quote(values[0])}: if these are the bags, they come second, and one share per bag third, such as "
            "fit(X, bags, label_proportions(labels, bags))"
        )
