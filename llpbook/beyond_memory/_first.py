"""The first pass: bags, their sizes and sums, and the moments of all instances."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from ..base import check_bags, check_features, warn
from ._chunks import ChunkError, name_of, with_names
from ._sums import bag_sums, class_sums, merge, moments


@dataclass
class FirstPass:
    """What the first pass over the chunks learns.

    Attributes
    ----------
    total : Moments
        Of all instances, in the columns after the steps.
    sizes : ndarray of int, shape (n_bags,)
    sums : ndarray, shape (n_bags, n_features) or (n_classes, n_features)
        Of the instances of each bag, or of each class.
    labels, rows : dict of int to ndarray
        The names of the bags of each chunk, and their rows in the proportions.
    """

    total: object
    sizes: np.ndarray
    sums: np.ndarray
    labels: dict
    rows: dict


def summarize(frame, layout, products):
    """A chunk in the first pass: its bags, their sizes and sums, and its moments."""
    codes, labels = pd.factorize(layout.bag_column(frame))
    X = layout.matrix(frame)
    with np.errstate(all="ignore"):
        found = moments(X, products)
    if not np.isfinite(found.squares).all():
        check_features(
            with_names(X, layout.steps) if layout.steps else frame[layout.features]
        )
    return labels, *bag_sums(X, codes, len(labels)), found


def rows_of(labels, n_bags, keys, number, engine):
    """The rows of the proportions that the bags of a chunk name."""
    try:
        return check_bags(labels, len(labels), n_bags, keys)
    except ValueError as error:
        name, hint = name_of(number, engine.chunks[number]), ""
        if keys is not None:
            hint = "; give its share, or drop its rows"
        elif "no such row" in str(error):
            hint = "; bags are numbered from 0; if yours start at 1, key the proportions: pd.Series(shares, names)"
        raise ChunkError(f"{name}: {error}{hint}") from error


def first_pass(engine, layout, kind, matrix, keys):
    """Read all chunks once."""
    sizes, owner = np.zeros(len(matrix), int), np.full(len(matrix), -1)
    total, sums, labels, rows = None, None, {}, {}
    for number, found in engine.run("first pass", summarize, layout, (kind.products,)):
        if found is None:
            continue
        labels[number], bag_sizes, part, here = found
        codes = rows_of(labels[number], len(matrix), keys, number, engine)
        if kind.whole_bags and (owner[codes] >= 0).any():
            twice = (owner[codes] >= 0).argmax()
            places = owner[codes[twice]], number
            refuse_scattered(labels[number].tolist()[twice], places, engine, layout)
        owner[codes], rows[number] = number, codes
        sizes[codes] += bag_sizes
        total = here if total is None else merge(total, here)
        by_class = kind.by_class(matrix)
        if sums is None:
            sums = np.zeros((matrix.shape[by_class], part.shape[1]))
        if by_class:
            sums += class_sums(part, matrix[codes])
        else:
            sums[codes] += part
    refuse_shares_of_rows(sizes, keys)
    warn_of_restarts(rows, sizes, keys)
    return FirstPass(total, sizes, sums, labels, rows)


def refuse_shares_of_rows(sizes, keys):
    """Refuse chunks without rows, and one share per instance, as `llpbook.base.read_bags` does."""
    n_shares, n_rows, n_bags = len(sizes), sizes.sum(), np.count_nonzero(sizes)
    if n_rows == 0:
        raise ValueError("chunks hold no rows")
    if keys is None and n_shares == n_rows and 2 * n_bags < n_rows:
        raise ValueError(
            f"proportions has {n_shares} entries, one per instance, for only {n_bags} bags: give one share per bag, "
            "such as pd.Series(shares).groupby(bags).mean()"
        )


#: Where bag numbers start again in each file: the largest number, and the least number of bags in all chunks together,
#: as shares of the entries of `proportions`.
MOST, LEAST = 0.6, 0.75


def warn_of_restarts(rows, sizes, keys):
    """Warn of bag numbers that start again in each chunk, or in each file, where different bags would be merged.

    Bags that truly span chunks, such as counties, have one share each. Where numbers start again there is one share for
    each bag of each file, and the shares at the end have no bag.
    """
    n_shares, of_chunks = len(sizes), sum(map(len, rows.values()))
    numbered = keys is None or keys.equals(pd.RangeIndex(n_shares))
    end, found = np.flatnonzero(sizes).max() + 1, np.count_nonzero(sizes)
    recur = of_chunks > found and of_chunks >= LEAST * n_shares
    if numbered and recur and end <= MOST * n_shares:
        warn(
            f"bag numbers seem to start again in each chunk: proportions has {n_shares} entries, but only {found} "
            "different numbers occur, several of them in more than one chunk, and bags of one number are merged. "
            "Number the bags across all files, or name them by file and number and key proportions by these names"
        )


def refuse_scattered(bag, places, engine, layout):
    """A bag in two chunks, where the method needs it whole."""
    first, second = places
    frame, source = "frame", "a Dask DataFrame"
    if isinstance(engine.chunks[second], str | Path):
        frame, source = "dask.dataframe.read_parquet(paths)", "Parquet files"
    raise ChunkError(
        f"bag {bag!r} has instances in chunk {first} and in chunk {second}, but CountLogistic needs each bag whole in "
        "one chunk. If these are two different bags, number them across all chunks. If not, bring the bags together "
        f"first: chunks = {frame}.shuffle(on={layout.bags!r}).persist() of {source}, or chunks = [part for _, part in "
        f"frame.groupby(frame[{layout.bags!r}].map(hash) % n_chunks)] of one DataFrame in memory; MeanMap and InvCal "
        "take the chunks as they are"
    )


def standardize(scaler, state, layout, given):
    """Fit a `StandardScaler` from the moments of all chunks; the layout that applies it."""
    n, mean, var = state.total.n, state.total.mean, state.total.scale**2
    eps = np.finfo(float).eps
    constant = var <= n * eps * var + (n * mean * eps) ** 2  # as scikit-learn decides
    # Two rows set what does not depend on the rows: names and numbers of features.
    two = (
        np.vstack([mean, mean + 1]) if given is None else pd.concat([given, given + 1])
    )
    scaler.fit(two)
    scaler.n_samples_seen_ = n
    if scaler.with_mean or scaler.with_std:
        scaler.mean_ = mean
    if scaler.with_std:
        scaler.var_, scaler.scale_ = var, np.where(constant, 1.0, np.sqrt(var))
    return replace(
        layout,
        center=mean if scaler.with_mean else None,
        scale=scaler.scale_ if scaler.with_std else None,
    )


def standardized(state, layout, mass):
    """The sums, and the moments with products, in the columns that the estimator sees."""
    d = len(state.total.mean)
    center = np.zeros(d) if layout.center is None else layout.center
    scale = np.ones(d) if layout.scale is None else layout.scale
    n, mean, squares = state.total
    if squares.ndim == 2:
        squares = squares / np.outer(scale, scale)
    total = type(state.total)(n, (mean - center) / scale, squares)
    return (state.sums - mass[:, None] * center) / scale, total
