"""One function for all estimators whose fit reduces to sums over chunks."""

from builtins import map as in_this_process
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from numbers import Real

import numpy as np
import pandas as pd
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.validation import check_is_fitted

from ..base import (
    BagData,
    check_proportions,
    fill_empty_rows,
    told,
    warn_of_moments,
)
from ..proportions import check_whole
from ._chunks import Engine, Layout, with_columns
from ._first import first_pass, standardize
from ._kinds import kind_of
from ._passes import Passes


def fit_chunks(
    estimator, chunks, proportions, *, bags, features=None, map=in_this_process,
    read=None, tol=1e-3, max_passes=50, timeout=600.0, verbose=0, labels=None,
):  # fmt: skip
    r"""Fit an estimator to data that is read in chunks, with the answer of the fit in memory.

    Parameters
    ----------
    estimator : estimator or Pipeline
        `MeanMap`, `LaplacianMeanMap` with the Gaussian similarity, `CountLogistic`, `InvCal` and `BagMeanRegression`,
        all with a linear kernel, or `WeightedLDA` with the scheme "sws". In a `Pipeline` the steps before it must be
        fitted already (such as a `ColumnTransformer`, fitted to one chunk that holds all categories), but the last of
        them may be a `StandardScaler`. The first pass fits this scaler anew, also one that was fitted before.
    chunks : sequence, or Dask DataFrame
        Each chunk is read several times. It is a path (.parquet, .feather, .csv), a DataFrame, a function without
        arguments that returns one, a Dask ``delayed``, or whatever ``read`` understands. Chunks without rows are left
        out.
    proportions : array-like, Series, dict or DataFrame
        See `llpbook.base.check_proportions`.
    bags : hashable
        The column of the chunks that names the bag of each instance.
    features : list, optional
        The columns of the instances; all others of the first chunk if not given.
    map : callable, default the builtin ``map``
        Applies a function to a list of tasks. It returns the results in order, or futures with ``result(timeout)``:
        ``executor.map`` of `concurrent.futures`, ``client.map`` of a Dask client, or a function of your own.
    read : callable, optional
        From a chunk to a DataFrame, for chunks of another kind.
    tol : float, default 1e-3
        The passes end with the first Newton step whose length, the Newton decrement, is below ``tol``. For
        `CountLogistic` the length is in standard errors of the weights. For `MeanMap` and `LaplacianMeanMap` it is in
        the standard errors that labels would give, which are smaller than their own, so the rule is stricter. ``tol``
        and ``max_iter`` of these three estimators are for the fit in memory and are ignored here.
    max_passes : int, default 50
        The most Newton passes over all chunks.
    timeout : float or None, default 600.0
        Seconds to wait for the next chunk in order, where ``map`` gives futures; then the fit ends with an error.
    verbose : int, default 0
        1 prints a line for each pass.
    labels : None
        Known labels are given as bags: anything else ends in an error that says how.

    Returns
    -------
    estimator
        The same, fitted, with the attributes of a fit in memory; `WeightedLDA` without ``weights_``. ``gap_`` of
        the three that take Newton passes is the length of the last step as in ``tol``. ``n_iter_`` is the number of
        Newton passes over all chunks; the first pass, those of the start and the count of predictions are not in it.

    Raises
    ------
    ValueError
        If the estimator does not reduce to sums, or the input is malformed; `ChunkError` names the chunk that is
        damaged, lacks a column, or changed during the fit, and for `CountLogistic` two chunks that share a bag.
    NotIdentifiableError
        As of the estimator.
    EngineError
        If a worker died, or gave no answer within ``timeout``.

    After an error the estimator is as it was before the call.

    Notes
    -----
    `InvCal`, `BagMeanRegression` and `WeightedLDA` take one pass. `MeanMap` and `LaplacianMeanMap` take the first pass,
    about three Newton passes, and one that counts the predictions. `CountLogistic` takes the first pass, a start of up
    to four passes of MeanMap, looks at two chunks to shorten its weights, and five Newton passes in random bags, 13 to
    20 where MeanMap is a bad start. With many chunks the start reads only some of them. A worker needs the memory of
    one chunk in double precision three times. The caller needs the sums of all bags, or for `WeightedLDA`,
    `CountLogistic` and `MeanMap` with ``bag_weights="size"`` those of the classes and the size of each bag.

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
    steps, scaler, model = parts(estimator)
    kind = kind_of(model)
    check_options(tol, max_passes, labels)
    engine = Engine(chunks, map, timeout)
    with told(model), unchanged_by_errors(model, scaler):
        model._validate_params()
        layout = with_columns(engine, Layout(bags, features, read, steps))
        matrix, classes, keys = read_shares(proportions)
        state = first_pass(engine, layout, kind, matrix, keys)
        layout = replace(layout, model=None)
        layout = told_of_columns(model, scaler, state, layout)
        rows = np.flatnonzero(state.sizes)
        matrix = fill_empty_rows(matrix, rows, keys)
        data = BagData(None, rows, matrix, classes, keys, sizes=state.sizes)
        data = model._accept(data)
        model.estimators_ = None
        say = partial(print, type(model).__name__, flush=True) if verbose else None
        kind.fit(model, data, state, Passes(engine, layout, tol, max_passes, say))
    return estimator


@contextmanager
def unchanged_by_errors(*fitted):
    """After an error the estimators have the attributes of the fit before, so that they still belong together."""
    before = [(part, dict(vars(part))) for part in fitted if part is not None]
    try:
        yield
    except BaseException:
        for part, attributes in before:
            vars(part).clear()
            vars(part).update(attributes)
        raise


def read_shares(proportions):
    """`check_proportions`, with the way out for shares outside of [0, 1]."""
    remedy = "; clip noisy shares, shares.clip(0, 1), and state their standard errors by proportion_errors"
    return check_proportions(proportions, empty_rows=True, remedy=remedy)


def check_options(tol, max_passes, labels):
    """Refuse what `fit_chunks` cannot do."""
    if labels is not None:
        raise ValueError(
            "fit_chunks takes no labels, but bags of known labels: write the labeled rows into bags of their own, one "
            "per class (for CountLogistic one per class and chunk), with the shares 0 and 1; the bag that they leave "
            "has the share (size * share - positives) / (size - labeled)"
        )
    if not (isinstance(tol, Real) and tol > 0):
        raise ValueError(f"tol must be above 0, got {tol!r}")
    check_whole("max_passes", max_passes)


def told_of_columns(model, scaler, state, layout):
    """Set what scaler and model learn of the columns; the layout with the scaler."""
    mean, named = [state.total.mean], not layout.steps
    given = pd.DataFrame(mean, columns=layout.features) if named else None
    if scaler is None:
        warn_of_moments(model, state.total.mean, state.total.scale)
    else:
        layout = standardize(scaler, state, layout, given)
    model._check_X(given if named and scaler is None else mean, reset=True)
    return layout


def parts(estimator):
    """The fitted steps of a pipeline, its scaler, which the first pass fits, and the classifier."""
    if not isinstance(estimator, Pipeline):
        return (), None, estimator
    *before, (_, model) = estimator.steps
    steps = [step for _, step in before if step not in (None, "passthrough")]
    scaler = None
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
    """The rows of a chunk that lie in some bags."""
    return frame.loc[
        pd.Index(layout.bag_column(frame), tupleize_cols=False).isin(names)
    ]


def sample_bags(
    chunks, proportions, n_bags, *, bags, features=None, map=in_this_process, read=None,
    timeout=600.0, random_state=None,
):  # fmt: skip
    """All instances of some bags, drawn at random: for methods that need the instances together.

    Parameters
    ----------
    chunks, proportions, bags, features, map, read, timeout
        As for `fit_chunks`.
    n_bags : int
        Bags to draw, among those whose share is not NaN.
    random_state : int, RandomState or None, default None

    Returns
    -------
    DataFrame
        The features and the column of the bags. Methods take it as ``fit(frame[features], frame[bags], proportions)``,
        where ``proportions`` are the same.

    Raises
    ------
    ValueError
        If there are fewer bags with a share, or a drawn bag has no instances; `ChunkError` and `EngineError`
        as of `fit_chunks`.
    """
    matrix, _, keys = read_shares(proportions)
    names = pd.RangeIndex(len(matrix)) if keys is None else keys
    known = np.flatnonzero(np.isfinite(matrix).all(axis=1))
    check_whole("n_bags", n_bags, most=len(known))
    drawn = check_random_state(random_state).choice(known, n_bags, replace=False)
    engine = Engine(chunks, map, timeout)
    layout = with_columns(engine, Layout(bags, features, read))
    run = engine.run("sample of bags", chosen_rows, layout, (names[np.sort(drawn)],))
    found = [part for _, part in run if part is not None]
    if not found:
        raise ValueError("chunks hold no rows")
    sample = pd.concat(found, ignore_index=True)[[*layout.features, bags]]
    present = sample[bags].nunique()
    if present < n_bags:
        raise ValueError(
            f"chunks hold instances of only {present} of the {n_bags} bags that were drawn from the {len(known)} bags "
            f"of proportions; check that the column {bags!r} holds the same names as proportions, and give proportions "
            "only for bags that have instances"
        )
    return sample
