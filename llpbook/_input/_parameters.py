"""Constraints of hyper-parameters: a name has the same meaning in all estimators, and so one constraint."""

from numbers import Integral, Real

from ._sklearn import HasMethods, Interval, StrOptions

_POSITIVE = [Interval(Real, 0, None, closed="neither")]
_FROM_1 = [Interval(Integral, 1, None, closed="left")]

#: By name, as scikit-learn's constraints; an estimator states its own where it means something else.
CONSTRAINTS = {
    "C": _POSITIVE,
    "C_p": _POSITIVE,
    "alpha": [Interval(Real, 0, None, closed="left")],
    "bag_deviation": [
        StrOptions({"estimate"}),
        Interval(Real, 0, None, closed="left"),
        None,
    ],
    "bag_weights": [StrOptions({"size", "uniform"}), "array-like"],
    "estimator": [
        HasMethods(["fit", "predict_proba"]),
        HasMethods(["fit", "decision_function"]),
        None,
    ],
    "exact_up_to": [Interval(Integral, 0, None, closed="left")],
    "fit_intercept": ["boolean"],
    "gamma": [StrOptions({"scale"}), *_POSITIVE],
    "kernel": [StrOptions({"linear", "rbf", "laplacian", "precomputed"}), callable],
    "learning_rate": _POSITIVE,
    "max_iter": _FROM_1,
    "max_leaf_nodes": [Interval(Integral, 2, None, closed="left")],
    "n_centers": _FROM_1,
    "n_folds": [Interval(Integral, 2, None, closed="left")],
    "n_init": _FROM_1,
    "n_jobs": [Integral, None],
    "penalize_intercept": ["boolean"],
    "proportion_errors": ["array-like", None],
    "proportion_noise": [StrOptions({"gaussian", "laplace"}), None],
    "random_state": ["random_state"],
    "tol": _POSITIVE,
    "validation_fraction": [Interval(Real, 0, 0.5, closed="right")],
    "verbose": ["verbose"],
}


def constraints(cls):
    """Constraints of the parameters of an estimator: its own, those of its bases, or the general ones of their names.

    Parameters
    ----------
    cls : type

    Returns
    -------
    dict
        Of a base without ``__init__``, the constraints that it and its bases state.
    """
    stated = {}
    for one in reversed(cls.__mro__):
        stated |= vars(one).get("_parameter_constraints", {})
    names = cls._get_param_names()
    every = CONSTRAINTS | stated
    return {name: every[name] for name in names if name in every} if names else stated
