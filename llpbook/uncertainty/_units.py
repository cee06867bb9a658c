"""Coefficients in the units of the features that were given, where the steps before the model allow it."""

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    RobustScaler,
    StandardScaler,
)

SCALERS = (MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler)


def affine(step, d):
    """Slope and offset by which a fitted step changes each of its columns.

    Parameters
    ----------
    step : transformer, None or "passthrough"
    d : int
        Columns that go into the model.

    Returns
    -------
    slope, offset : ndarray, shape (d,); or None
        None where the step is not known to keep and scale each column. An imputer changes no value that is present.
    """
    slope, offset = np.ones(d), np.zeros(d)
    if step is None or isinstance(step, str):
        return slope, offset
    if type(step) is SimpleImputer:
        kept = not step.add_indicator and len(step.get_feature_names_out()) == d
        return (slope, offset) if kept else None
    if type(step) not in SCALERS or step.n_features_in_ != d:
        return None
    if type(step) is MinMaxScaler:
        return step.scale_, step.min_
    slope = slope / (1.0 if step.scale_ is None else step.scale_)
    center = step.mean_ if getattr(step, "with_mean", False) else None
    center = getattr(step, "center_", center)
    return slope, offset if center is None else -center * slope


def scaling(before, d):
    """Slope and offset of all steps together, or None where one of them is not known to scale columns."""
    slope, offset = np.ones(d), np.zeros(d)
    for _, step in before.steps:
        change = affine(step, d)
        if change is None:
            return None
        slope, offset = change[0] * slope, change[0] * offset + change[1]
    return slope, offset


def given_names(before, X):
    """The names of the features that go into the first step."""
    if isinstance(X, pd.DataFrame):
        return [str(name) for name in X.columns]
    seen = getattr(before, "feature_names_in_", None)
    return [f"x{j}" for j in range(X.shape[1])] if seen is None else [*map(str, seen)]


def returned_names(before, X, d):
    """Names of the columns that the steps return, marked where the unit of a feature may have changed."""
    try:
        names = [str(name) for name in before.get_feature_names_out()]
    except (AttributeError, ValueError):  # a step without names of its columns
        return [f"column {j} (transformed)" for j in range(d)]
    scaled = any(type(step) in SCALERS for _, step in before.steps)
    own = set(given_names(before, X))
    return [f"{n} (transformed)" if scaled or n in own else n for n in names]


def scales(slope, more):
    """Sparse matrix with the slopes on its diagonal, followed by ``more`` columns of zeros."""
    return sp.diags_array(slope, shape=(len(slope), len(slope) + more), format="csr")


def in_units(before, last, X, names=None):
    """Matrix from weights to coefficients in the units of the features as given, and the coefficients' names.

    Parameters
    ----------
    before : Pipeline or None
        Scalers are undone where each step is a scaler of scikit-learn, a `SimpleImputer` that keeps the columns, or
        "passthrough". Else the coefficients are those of the columns that the steps return, and the names say so; also
        if the scalers shift the features and the model has no intercept.
    last : CountLogistic
    X : array-like, shape (n_instances, n_features)
    names : list of str, optional
        Of the features.

    Returns
    -------
    A : sparse array, shape (n_coefficients, n_columns)
        With several classes, of one after those of another.
    names : list of str
    """
    d, seen = last.n_features_in_, getattr(last, "feature_names_in_", None)
    A, own = sp.eye_array(d + last.fit_intercept, format="csr"), names
    if before is not None:
        X = X if hasattr(X, "shape") else np.asarray(X)
        steps, seen = scaling(before, d), given_names(before, X)
        slope, offset = steps or (None, None)
        if steps is None:
            seen = returned_names(before, X, d)
        elif last.fit_intercept:
            row = sp.csr_array([np.append(offset, 1.0)])
            A = sp.vstack([scales(slope, 1), row], format="csr")
        elif not offset.any():
            A = scales(slope, 0)
        else:
            own = [f"{name} (scaled)" for name in (seen if own is None else own)]
    if own is None:
        own = [f"x{j}" for j in range(d)] if seen is None else map(str, seen)
    own = [*own]
    if len(own) != d:
        raise ValueError(f"names must be one for each of {d} features, got {names!r}")
    names = own + ["intercept"] * last.fit_intercept
    if len(last.classes_) == 2:
        return A, names
    A = sp.kron(sp.eye_array(len(last.classes_)), A, format="csr")
    return A, [f"{c}: {name}" for c in last.classes_ for name in names]
