"""One function for all estimators whose fit reduces to sums over chunks."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.validation import check_is_fitted

from .._input import (
    OF_CHUNKS,
    Chunks,
    Matched,
    Proportions,
    RandomState,
    check_flag,
    check_proportions,
    check_whole,
    doubt_of_numbers,
    doubt_of_totals,
    fill_empty_rows,
    refuse_cells,
    refuse_shares_of_rows,
    restored,
    whole,
)
from ..base import SOME_ROWS, BagData, fitting, flat_steps, warn
from ._chunks import Engine, Layout, name_of, with_columns
from ._instances import View, first_pass, in_memory


def fit_chunks(
    estimator: BaseEstimator, chunks: Chunks, proportions: Proportions, *, bags: Hashable,
    counts: Hashable | None = None, features: list | None = None, n_jobs: int | None = None, check_chunks: bool = True,
    verbose: int = 0,
) -> BaseEstimator:  # fmt: skip
    r"""Fit an estimator to data that is read in chunks, with the result of the fit in memory.

    Parameters
    ----------
    estimator : estimator or Pipeline
        `CountLogistic` and `BagLogistic` (without ``bag_deviation``), `MeanMap`, `LaplacianMeanMap`, `InvCal` and
        `BagMeanRegression`, all with a linear kernel, `WeightedLDA` with the scheme "sws", and their subclasses. In a
        `Pipeline` the steps before it must be fitted already (such as a `ColumnTransformer`, fitted to one chunk that
        holds all categories), but the last of them may be a `StandardScaler`. The first pass fits this scaler anew,
        also one that was fitted before.
    chunks : list, path, DataFrame or Dask DataFrame
        Each chunk is read several times. It is a path of this machine (.parquet, .csv), a DataFrame, a
        function without arguments that returns one, a Dask ``delayed``, or a fragment of a ``pyarrow.dataset``. A
        folder stands for its files of Parquet. Chunks without rows are left out.
    proportions : array-like, Series, dict or DataFrame
        See `llpbook.proportions.check_proportions`.
    bags : hashable
        The column of the chunks that names the bag of each instance.
    counts : hashable, optional
        The column of the chunks that says how many equal instances each row stands for; one if not given.
    features : list, optional
        The columns of the instances; all others of the first chunk if not given.
    n_jobs : int, optional
        Workers, as in scikit-learn: None is this process, -1 all processors. ``joblib.parallel_config`` chooses what
        they are: processes, Dask, Ray or Spark.
    check_chunks : bool, default True
        Compare sums over all features with those of the first pass, so that chunks that change are noticed. The number
        of rows and the names of the bags are always compared.
    verbose : int, default 0
        Progress over the chunks of a pass: 0 none, 1 a line per second, 2 a line per chunk.

    Returns
    -------
    estimator
        The estimator itself, fitted, with the attributes of a fit in memory; `WeightedLDA` without ``weights_``.

    Raises
    ------
    ValueError
        If the estimator does not reduce to sums, or the input is malformed; `ChunkError` names the chunk that is
        damaged, lacks a column, or changed during the fit, and the two chunks that share a bag that must be whole.
    NotIdentifiableError
        As of the estimator.
    EngineError
        If a worker died.

    After an error the estimator is as it was before the call.

    Notes
    -----
    `InvCal`, `BagMeanRegression` and `WeightedLDA` take one pass. `MeanMap` and `LaplacianMeanMap` take a pass per
    Newton step and one that counts the predictions, `CountLogistic` and `BagLogistic` a pass per step of Fisher
    scoring, all after a first pass. Known labels are given as bags: one bag for each class (and chunk, where bags must
    be whole) with the shares 0 and 1.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from llpbook import MeanMap
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 200)
    >>> frame = pd.DataFrame({"x": rng.normal(size=200) + 3.0 * y, "bag": np.repeat(np.arange(40), 5)})
    >>> chunks = [frame[:70], frame[70:]]
    >>> model = fit_chunks(MeanMap(), chunks, np.bincount(frame.bag, y) / 5, bags="bag")
    >>> float(model.score(frame[["x"]], y)) > 0.9
    True
    """
    check_flag("check_chunks", check_chunks)
    steps, scaler, model = parts(estimator)
    needed = sums_needed(model)
    engine = Engine(type(model).__name__, chunks, n_jobs, verbose)
    with fitting(model, scaler):
        model._validate_params()
        again = needed in ("instances", "whole bags")
        merged = model._uses_frequencies if again else None
        data = read_chunks(
            engine, proportions, Layout(bags, features, steps, counts=counts), needed,
            noisy=noise_of(model), check=check_chunks and again, merged=merged,
        )  # fmt: skip
        data = replace(data, X=with_columns_set(model, scaler, data.X))
        model._fit_data(in_memory(data))
    return estimator


def sums_needed(model):
    """Sums over chunks that a model needs; ValueError where it does not reduce to sums."""
    kernel = getattr(model, "kernel", "linear")
    needed = getattr(model, "_sums_needed", lambda: None)()
    if needed is not None and kernel == "linear":
        return needed
    way = "fit it to a sample of whole bags, sample_bags(chunks, proportions, n_bags, bags=…)"
    if needed is not None:
        way = f"take kernel='linear' behind a fitted Nystroem in a pipeline, or {way}"
    raise ValueError(f"{model!r} does not reduce to sums over chunks: {way}")


def read_chunks(
    engine, proportions, layout, needed, *, noisy=False, check=True, merged=None
):
    """Read chunks in a first pass, and the proportions.

    Parameters
    ----------
    engine : Engine
    proportions : array-like, Series, dict or DataFrame
    layout : Layout
    needed, check, merged
        See `first_pass`.
    noisy : bool, default False
        See `llpbook.proportions.check_proportions`.

    Returns
    -------
    BagData
        Its X are `Instances`, one row per bag.
    """
    matrix, classes, keys = read_shares(proportions, noisy)
    layout = with_columns(engine, layout)
    X = first_pass(
        engine, layout, needed, len(matrix), keys, check=check, merged=merged
    )
    refuse_shares_per_row(X, proportions, matrix, keys)
    rows = np.flatnonzero(X.sizes)
    doubts = [doubt_of_numbers(Matched(matrix, classes, keys, rows), X.sizes)]
    matrix = fill_empty_rows(matrix, rows, keys)
    if not noisy:
        counts = restored(matrix, X.sizes)
        doubts.append(counts.odd(keys))
        matrix = counts.shares
        doubts.append(doubt_of_totals(matrix, X.sizes, keys))
    for doubt in filter(None, doubts):
        warn(doubt)
    if layout.counts is None and whole(X.sizes[rows], matrix[rows]).mean() <= 0.5:
        features, codes = some_rows_with_bags(X)
        refuse_cells(features, codes, remedy=OF_CHUNKS)
    return BagData(X, rows, matrix, classes, keys, frequencies=X.sizes[rows])


def refuse_shares_per_row(X, proportions, matrix, keys):
    """Refuse shares that are given for each row of the chunks, as `llpbook.base.read_bags` does.

    There is a further pass only where there are as many shares as rows, or more.
    """
    n_rows = sum(part.n_rows for part in X.parts if part)
    if not np.count_nonzero(X.sizes) < n_rows <= len(matrix):
        return
    bags = pd.concat(X.engine.run("pass over bags", bags_of_rows, X.layout))
    column = bags if bags.index.is_unique else bags.to_numpy()
    try:
        refuse_shares_of_rows(proportions, matrix, keys, column, bags.to_numpy())
    except ValueError as error:
        raise ValueError(
            f"{error}, with bags the column {X.layout.bags!r} of all chunks"
        ) from error


def bags_of_rows(frame, layout):
    """The bags of all rows of a chunk, with its index."""
    return frame[layout.bags]


def some_rows_with_bags(X):
    """Features and numbers of bags of the first chunks with `SOME_ROWS` rows together, or of all."""
    parts, n_rows = [], 0
    for number, chunk in enumerate(X.engine.chunks):
        frame = X.layout.frame(chunk, name_of(number, chunk))
        if len(frame):
            parts.append((X.layout.matrix(frame), X.layout.bag_column(frame)))
            n_rows += len(frame)
        if n_rows >= SOME_ROWS:
            break
    features, bags = (np.concatenate(each) for each in zip(*parts, strict=True))
    return features, pd.factorize(bags)[0]


def noise_of(model):
    """True if noise was added to the shares on purpose, so that they may lie outside of [0, 1]."""
    return model.get_params(deep=False).get("proportion_noise") is not None


def read_shares(proportions, noisy=False):
    """`check_proportions`, with a remedy for shares outside of [0, 1]."""
    remedy = "; for noisy shares state the noise: CountLogistic(proportion_noise=…, proportion_errors=…)"
    return check_proportions(proportions, empty_rows=True, noisy=noisy, remedy=remedy)


def with_columns_set(model, scaler, X):
    """Set the attributes of scaler and model that describe the columns; return the instances with the scaler."""
    mean, layout = X.total.mean[None], X.layout
    names = None if layout.steps else layout.features
    if scaler is not None:
        model._check_X(mean, reset=True)
        return standardized(scaler, X, names)
    row = mean if names is None else pd.DataFrame(mean, columns=names)
    model._check_X(row, reset=True)
    return X


def standardized(scaler, X, names):
    """Fit a `StandardScaler` from the moments of all chunks; return the scaled instances."""
    n, mean, var = X.total.n, X.total.mean, X.total.scale**2
    eps = np.finfo(float).eps
    constant = var <= n * eps * var + (n * mean * eps) ** 2  # as scikit-learn decides
    scaler.n_features_in_, scaler.n_samples_seen_ = len(mean), n
    if names is not None and all(isinstance(name, str) for name in names):
        scaler.feature_names_in_ = np.asarray(names, dtype=object)
    some = scaler.with_mean or scaler.with_std
    scaler.mean_, scaler.var_, scaler.scale_ = mean if some else None, None, None
    if scaler.with_std:
        scaler.var_, scaler.scale_ = var, np.where(constant, 1.0, np.sqrt(var))
    center = mean if scaler.with_mean else 0.0
    return replace(X, view=View(center, scaler.scale_ if scaler.with_std else 1.0))


def parts(estimator):
    """Split a pipeline of any depth into fitted steps, the scaler that the first pass fits, and the classifier."""
    *before, (_, model) = flat_steps(estimator)
    steps, scaler = [step.estimator for step in before], None
    if steps and isinstance(steps[-1], StandardScaler):
        scaler = steps.pop()
    for step in steps:
        if get_tags(step).requires_fit:
            try:
                check_is_fitted(step)
            except ValueError as error:
                raise ValueError(
                    f"{type(step).__name__} must be fitted before fit_chunks, which fits only a StandardScaler that "
                    "stands last before the estimator: fit the step to one chunk, or to a sample of rows, first"
                ) from error
    return tuple(steps), scaler, model


def chosen_rows(frame, layout, names):
    """Rows of a chunk that lie in given bags."""
    frame, _ = layout.instances(frame)
    if not len(frame):
        return None
    bags = pd.Index(layout.bag_column(frame), tupleize_cols=False)
    return frame.loc[bags.isin(names)]


def sample_bags(
    chunks: Chunks, proportions: Proportions, n_bags: int, *, bags: Hashable,
    counts: Hashable | None = None, features: list | None = None, n_jobs: int | None = None, verbose: int = 0,
    random_state: RandomState = None,
) -> pd.DataFrame:  # fmt: skip
    """Draw bags at random, and return all their instances, for methods that need the instances together.

    Parameters
    ----------
    chunks, proportions, bags, counts, features, n_jobs, verbose
        As for `fit_chunks`.
    n_bags : int
        Bags to draw, among those whose share is not NaN.
    random_state : int, RandomState or None, default None

    Returns
    -------
    DataFrame
        The features, the column of the bags and, if given, that of the counts. Methods take it as
        ``fit(frame[features], frame[bags], proportions)``, where ``proportions`` are the same.

    Raises
    ------
    ValueError
        If there are fewer bags with a share, or a drawn bag has no instances; `ChunkError` and `EngineError`
        as of `fit_chunks`.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from llpbook import sample_bags
    >>> chunks = [pd.DataFrame({"x": np.arange(4.0), "bag": [k, k, k + 1, k + 1]}) for k in (0, 2, 4)]
    >>> shares = {bag: 0.5 for bag in range(6)}
    >>> some = sample_bags(chunks, shares, 2, bags="bag", random_state=0)
    >>> some.shape, some["bag"].nunique()
    ((4, 2), 2)
    """
    matrix, _, keys = read_shares(proportions, noisy=True)
    names = pd.RangeIndex(len(matrix)) if keys is None else keys
    stated = np.flatnonzero(np.isfinite(matrix).all(axis=1))
    check_whole("n_bags", n_bags, most=len(stated))
    drawn = check_random_state(random_state).choice(stated, n_bags, replace=False)
    engine = Engine("sample_bags", chunks, n_jobs, verbose)
    layout = with_columns(engine, Layout(bags, features, counts=counts))
    run = engine.run("sample of bags", chosen_rows, layout, (names[np.sort(drawn)],))
    parts = [part for part in run if part is not None]
    if not parts:
        raise ValueError("chunks hold no rows")
    sample = pd.concat(parts, ignore_index=True)[[*layout.features, *layout.others]]
    present = sample[bags].nunique()
    if present < n_bags:
        raise ValueError(
            f"chunks hold instances of only {present} of the {n_bags} bags that were drawn from the {len(stated)} bags "
            f"of proportions; check that the column {bags!r} holds the same names as proportions, and give proportions "
            "only for bags that have instances"
        )
    return sample
