"""The first pass over chunks, and the object that replaces the matrix of features after it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd
from joblib import effective_n_jobs

from .._input import check_bags, check_features
from .._linear import MOST_WEIGHTS, BagCounts, LinearObjective, Point
from ..base import SOME_ROWS, BagData, InChunks, evenly_spaced, merge_rows
from ._chunks import ChunkError, Engine, Layout, name_of
from ._sums import Moments, bag_sums, class_sums, merge, moments, within_of_sums

#: Relative difference of two sums that is rounding.
SAME = 1e-12
#: Bytes of features, after equal rows are merged, that are kept after the first pass, which then was the last.
KEPT = 2**28
#: The fraction of its multiples is spread evenly: a weight for each bag.
GOLDEN = 0.6180339887498949


def checksums(X, codes, times=None):
    """Sums of the columns, weighted by bag, and their bounds; a later pass compares them, to notice other rows.

    They do not depend on the order of the rows.
    """
    times = np.ones(len(X)) if times is None else times
    weight = times * ((GOLDEN * (codes + 1)) % 1)
    bounds = [np.sqrt((times @ times) * (x @ x)) for x in X.T]
    return np.array([weight @ x for x in X.T]), np.array(bounds)


class FirstPass(NamedTuple):
    """Sums and rows that the first pass computes.

    Attributes
    ----------
    products : bool
        Products of two features.
    sums : bool
        Sums of bags.
    checks : bool
        `checksums`.
    keep, merge : bool
        Keep all rows, and equal rows of a bag as one with a frequency; rows that were merged are always kept.
    n_rows : int
        Rows of each chunk, evenly spaced, that stand for it.
    """

    products: bool
    sums: bool
    checks: bool
    keep: bool
    merge: bool
    n_rows: int


def values_or(values, default):
    """The values, or the default for None."""
    return default if values is None else values


class Rows(NamedTuple):
    """Rows of chunks: features as they were read, the bag of each, and how many instances it stands for."""

    X: np.ndarray
    bags: np.ndarray
    frequencies: np.ndarray


class Summary(NamedTuple):
    """A chunk after the first pass; `sums` and `rows` are None if they are not needed."""

    part: Part
    moments: Moments
    some: Rows
    sums: np.ndarray | None = None
    rows: Rows | None = None


def summarize(frame, layout, wanted):
    """Read a chunk in the first pass, and return its `Summary` as `FirstPass` asks; None without rows."""
    frame, times = layout.instances(frame)
    n = len(frame)
    if not n:
        return None
    codes, names = pd.factorize(layout.bag_column(frame))
    X, ones = layout.matrix(frame), np.ones(n, int)
    with np.errstate(all="ignore"):
        total = moments(X, wanted.products, times)
    if not np.isfinite(total.squares).all():
        check_features(layout.transformed(frame))
    checks = checksums(X, codes, times) if wanted.checks else None
    sizes = np.bincount(codes, times).round().astype(np.int64)
    part = Part(names, sizes, n, checks)
    sums = None
    if wanted.sums:
        weighted = X if times is None else times[:, None] * X
        sums = bag_sums(weighted, codes, len(names))[1]
    data, rows = BagData(X, codes, None, None, frequencies=times), None
    if wanted.merge:
        data = merge_rows(data)
    if wanted.keep or len(data.X) < n:
        rows = Rows(data.X, data.bags, values_or(data.frequencies, ones))
    at = evenly_spaced(n, wanted.n_rows)
    times = values_or(times, ones)[at]
    some = Rows(X[at], codes[at], times * (total.n / max(times.sum(), 1)))
    return Summary(part, total, some, sums, rows)


def again(frame, layout, what, part, view, function, args):
    """Read an unchanged chunk in a later pass, and apply a function to its features and bags."""
    frame, times = layout.instances(frame)
    now, first = len(frame), 0 if part is None else part.n_rows
    if now != first:
        refuse_change(f"had {first} rows in the first pass and has {now} in the {what}")
    if not now:
        return None
    names = pd.Index(layout.bag_column(frame), tupleize_cols=False)
    codes = pd.Index(part.names, tupleize_cols=False).get_indexer(names)
    X, changed = layout.matrix(frame), (codes < 0).any()
    if part.checks is not None and not changed:
        (before, bounds), (now, _) = part.checks, checksums(X, codes, times)
        changed = not np.all(np.abs(now - before) <= SAME * bounds)  # NaN: changed
    if changed:
        refuse_change(f"holds other values in the {what} than in the first pass")
    X = view.of(X)
    if layout.group is not None:
        args = frame[layout.group], *args
    return function(X, codes, *args, times=times)


def refuse_change(change):
    """Refuse a chunk that has changed."""
    raise ValueError(
        f"it {change}: chunks must not change during a fit, and a function that makes a chunk must make the same one "
        "each time"
    )


@dataclass(frozen=True, eq=False)
class Part:
    """Part of the data in a chunk, as the later passes expect it.

    Attributes
    ----------
    names, sizes : ndarray, shape (n_bags,)
        Its bags, and the instances of each.
    n_rows : int
        Rows that stand for an instance.
    checks : tuple or None
        Of `checksums`.
    rows : ndarray of int, shape (n_bags,)
        Of the proportions.
    """

    names: np.ndarray
    sizes: np.ndarray
    n_rows: int
    checks: tuple | None
    rows: np.ndarray | None = None


class View(NamedTuple):
    """Map from the features of a chunk to those of the solver: centered, scaled, and with the feature 1 if constant."""

    center: object = 0.0
    scale: object = 1.0
    constant: bool = False

    def of(self, X):
        """Features of rows that were read, which are overwritten, shape (n_rows, n_columns)."""
        X -= self.center
        X /= self.scale
        if self.constant:
            X = np.asfortranarray(np.column_stack([X, np.ones(len(X))]))
        return X


@dataclass(eq=False)
class Instances(InChunks):
    """Features of all chunks; the first pass adds one chunk after the other.

    Attributes
    ----------
    engine : Engine
    layout : Layout
    sizes : ndarray of int, shape (n_bags,)
        Of all bags.
    kept : list of Rows, or None
        All rows, where these are few, with rows of the proportions as their bags.
    room : float
        Bytes of features that may still be kept.
    some : list of Rows
        Some rows of each chunk.
    sums : ndarray, shape (n_bags, n_features), or None
        Before the features are centered and scaled; None where each bag is whole.
    total : Moments
        Likewise, of the features.
    parts : list of Part or None
        For each chunk; None for a chunk without rows.
    view : View
    """

    engine: Engine
    layout: Layout
    sizes: np.ndarray
    kept: list | None = None
    room: float = 0.0
    some: list = field(default_factory=list)
    sums: np.ndarray | None = None
    total: Moments | None = None
    parts: list = field(default_factory=list)
    view: View = field(default_factory=View)

    @property
    def shape(self):
        """See `InChunks`."""
        return np.count_nonzero(self.sizes), len(self.total.mean) + self.view.constant

    def moments(self):
        """See `InChunks`."""
        center, scale, _ = self.view
        return (self.total.mean - center) / scale, self.total.scale / scale

    def some_rows(self):
        """See `InChunks`."""
        rows = stacked(self.some)
        return self.view.of(rows.X), rows.frequencies

    def with_constant(self):
        """See `InChunks`."""
        return replace(self, view=self.view._replace(constant=True))

    def bag_means(self):
        """See `InChunks`."""
        used = self.sizes > 0
        return self.view.of(self.sums[used] / self.sizes[used, None])

    def run(self, what, function, args=()):
        """Run a pass: pairs of a `Part` and the result of a function, for chunks with rows.

        The call is ``function(X, codes, *args, times=times)`` with the frequencies of the rows, None for one each.
        """
        own = args if isinstance(args, list) else [args] * len(self.parts)
        tasks = [
            (what, part, self.view, function, arguments)
            for part, arguments in zip(self.parts, own, strict=True)
        ]
        results = self.engine.run(what, again, self.layout, tasks)
        pairs = zip(self.parts, results, strict=True)
        return ((part, result) for part, result in pairs if part)

    def counts(self, observed):
        """`BagCounts` of the whole bags of each chunk, without their rows; None for a chunk without rows."""
        if observed.counts is None:  # of a loss that does not look at them
            alone = replace(observed, bags=None, frequencies=None)
            return [alone] * len(self.parts)
        place = np.cumsum(self.sizes > 0) - 1
        return [part and bags_alone(observed, place[part.rows]) for part in self.parts]

    def objective(self, loss, observed, penalty=0.0, linear=None):
        """See `InChunks`."""
        return ChunkObjective(loss, self, observed, penalty, linear)

    def sums_by_bag(self, function, *args):
        """See `InChunks`."""
        totals = None
        for part, sums in self.run("pass over bags", _by_bag, (function, args)):
            if totals is None:
                totals = [_nothing(one, len(self.sizes)) for one in sums]
            for total, one in zip(totals, sums, strict=True):
                total[part.rows if np.ndim(one) else ...] += one
        return [total if total.ndim else total.item() for total in totals]

    def class_moments(self, shares):
        """See `InChunks`."""
        n, mean, squares = self.total
        scale = np.broadcast_to(self.view.scale, mean.shape)
        squares = squares / np.outer(scale, scale)
        total = Moments(n, self.moments()[0], squares)
        mass = self.sizes @ shares
        sums = class_sums(self.sums, shares) - mass[:, None] * self.view.center
        means, within = within_of_sums(sums / scale, mass, total)
        return means, within, squares / n


def add_chunk(X, rows, chunk):
    """Add the `Summary` of a chunk to `Instances`, with the rows of the proportions that are its bags."""
    X.parts.append(replace(chunk.part, rows=rows))
    X.sizes[rows] += chunk.part.sizes
    X.total = chunk.moments if X.total is None else merge(X.total, chunk.moments)
    X.some.append(chunk.some)
    if chunk.sums is not None:
        if X.sums is None:
            X.sums = np.zeros((len(X.sizes), chunk.sums.shape[1]))
        X.sums[rows] += chunk.sums
    if X.kept is not None:
        X.room -= np.inf if chunk.rows is None else chunk.rows.X.nbytes
        if X.room < 0:
            X.kept = None
        else:
            X.kept.append(chunk.rows._replace(bags=rows[chunk.rows.bags]))


def stacked(rows):
    """The `Rows` of several chunks as one."""
    return Rows(
        np.concatenate([each.X for each in rows]),
        np.concatenate([each.bags for each in rows]),
        np.concatenate([each.frequencies for each in rows]),
    )


def in_memory(data):
    """`BagData` of `Instances` whose rows are kept; unchanged where they are not."""
    X = data.X
    if X.kept is None:
        return data
    rows = stacked(X.kept)
    times = rows.frequencies if (rows.frequencies > 1).any() else None
    return replace(data, X=X.view.of(rows.X), bags=rows.bags, frequencies=times)


def _nothing(one, n_bags):
    """Zeros of the shape of a sum over chunks, of a number or of rows of bags."""
    shape = (n_bags, *one.shape[1:]) if np.ndim(one) else ()
    return np.zeros(shape, getattr(one, "dtype", float))


def _by_bag(X, codes, function, args, times=None):
    return function(X, *args, codes, int(codes.max()) + 1, times)


def bags_alone(observed, bags=slice(None)):
    """`BagCounts` of some bags, whose rows lie elsewhere."""
    return BagCounts(
        None, observed.sizes[bags], observed.counts[bags], observed.errors[bags],
        observed.laplace,
    )  # fmt: skip


def in_chunk(observed, codes, times=None):
    """`BagCounts` of a chunk, from those of its bags alone, the bag of each row, and the frequencies of the rows."""
    observed = replace(observed, bags=codes, frequencies=times)
    if observed.counts is None:
        sizes = np.array([len(codes) if times is None else times.sum()])
        return replace(observed, bags=np.zeros(len(codes), int), sizes=sizes)
    return observed


class Terms(NamedTuple):
    """Contribution of a chunk to an objective: value, gradient, and information or, in a list, factors of it."""

    value: float
    gradient: np.ndarray
    curvature: np.ndarray | list | float


def terms(X, codes, observed, loss, w, few, times=None):
    """Compute the `Terms` of a chunk, with factors of the information if these have few rows."""
    point = LinearObjective(loss, X, in_chunk(observed, codes, times)).at(w)
    if few:
        return Terms(point.value, point.gradient, [point.factors()])
    curvature = point.information() if w.size <= MOST_WEIGHTS else 0.0
    return Terms(point.value, point.gradient, curvature)


def losses_of(Z, loss, observed):
    """Loss of the bags of each chunk; ValueError for one that compares bags and cannot know those of other chunks."""
    if observed.counts is None:  # of a loss that does not look at them
        return [loss] * len(Z.parts)
    loss, place = loss.of_all(observed), np.cumsum(Z.sizes > 0) - 1
    if loss.fewest_bags > 1:
        raise ValueError(
            f"{loss!r} compares bags, of which a chunk holds some only: define its method `of_all`, see "
            "llpbook.bag_losses.BagLoss, or fit it to a sample of whole bags, sample_bags(…)"
        )
    return [part and loss.some(place[part.rows]) for part in Z.parts]


class ChunkObjective(LinearObjective):
    """Objective of a linear model of bags in chunks: each evaluation is a pass.

    Equation :eq:`eq-beyond-memory-terms`.

    Parameters
    ----------
    loss : BagLoss
    Z : Instances
    observed : BagCounts
        One row per bag, with its size as the frequency.
    penalty, linear
        See `LinearObjective`.
    """

    def __init__(self, loss, Z, observed, penalty=0.0, linear=None):
        self.loss, self.Z, self.observed, self.linear = loss, Z, observed, linear
        self.losses = losses_of(Z, loss, observed)
        self.penalty = np.broadcast_to(penalty, Z.shape[1])
        self.n, self.n_passes = int(observed.sizes.sum()), 0

    def at(self, w):
        """See `LinearObjective.at`: one pass."""
        few, self.n_passes = self.has_few_factors(w), self.n_passes + 1
        counts = self.Z.counts(self.observed)
        chunks = zip(counts, self.losses, strict=True)
        args = [(observed, loss, w, few) for observed, loss in chunks]
        linear = np.zeros(w.shape) if self.linear is None else self.linear
        value = float(np.sum((0.5 * self.penalty * w - linear) * w))
        gradient, curvature = self.penalty * w - linear, [] if few else 0.0
        for _, chunk in self.Z.run(f"pass {self.n_passes}", terms, args):
            # eq: eq-beyond-memory-terms
            value, gradient = value + chunk.value, gradient + chunk.gradient
            curvature = curvature + chunk.curvature
        factors = partial(np.vstack, curvature) if few else None
        penalty = np.tile(self.penalty, len(w))
        return Point(w, value, gradient, curvature, penalty, factors)


def rows_of(names, n_bags, keys, number, engine):
    """Rows of the proportions of the bags of a chunk."""
    try:
        return check_bags(names, len(names), n_bags, keys)
    except ValueError as error:
        name, hint = name_of(number, engine.chunks[number]), ""
        if keys is not None:
            hint = "; give its share, or drop its rows"
        elif "no such row" in str(error):
            hint = "; bags are numbered from 0; if yours start at 1, key the proportions: pd.Series(shares, names)"
        raise ChunkError(f"{name}: {error}{hint}") from error


def first_pass(engine, layout, needed, n_bags, keys, *, check=True, merged=None):
    """Read all chunks once.

    Parameters
    ----------
    engine : Engine
    layout : Layout
    needed : str
        Of `LLPClassifier._sums_needed`.
    n_bags : int
        Rows of the proportions.
    keys : Index or None
    check : bool, default True
        Compute `checksums`.
    merged : bool, optional
        True if equal rows of a bag can be one row with a frequency; None where no row is to be kept.

    Returns
    -------
    Instances
    """
    whole, here = needed == "whole bags", effective_n_jobs(engine.n_jobs) == 1
    plain, kept = replace(layout, model=None), None if merged is None else []
    X = Instances(engine, plain, np.zeros(n_bags, int), kept, KEPT)
    wanted = FirstPass(
        products=needed == "class moments", sums=not whole, checks=check,
        keep=merged is not None and here, merge=bool(merged),
        n_rows=-(-SOME_ROWS // len(engine.chunks)),
    )  # fmt: skip
    chunks = engine.run("first pass", summarize, layout, (wanted,))
    for number, chunk in enumerate(chunks):
        if chunk is None:
            X.parts.append(None)
            continue
        rows = rows_of(chunk.part.names, n_bags, keys, number, engine)
        if whole:
            refuse_scattered(X, rows, number)
        add_chunk(X, rows, chunk)
    if not X.sizes.any():
        raise ValueError("chunks hold no rows")
    return X


def refuse_scattered(X, rows, number):
    """Refuse a bag in two chunks, where the method needs it whole."""
    twice = rows[X.sizes[rows] > 0]
    if not len(twice):
        return
    before = enumerate(X.parts)
    first, part = next((k, p) for k, p in before if p and twice[0] in p.rows)
    [bag] = part.names[part.rows == twice[0]].tolist()
    raise ChunkError(
        f"bag {bag!r} has instances in chunk {first} and in chunk {number}, but {X.engine.name} needs each bag whole "
        "in one chunk. If these are two different bags, number them across all chunks. If not, bring the bags together "
        f"first: chunks = frame.shuffle(on={X.layout.bags!r}).persist() of a Dask DataFrame, or chunks = "
        f"[part for _, part in frame.groupby(frame[{X.layout.bags!r}].map(hash) % n_chunks)] of one DataFrame; "
        "MeanMap and InvCal take the chunks as they are"
    )
