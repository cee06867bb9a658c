"""The first pass over chunks, and what stands in the place of the matrix of features after it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pandas as pd
from joblib import effective_n_jobs

from ..base import (
    MOST_ROWS,
    MOST_WEIGHTS,
    BagCounts,
    BagData,
    InChunks,
    LinearObjective,
    Point,
    check_bags,
    check_features,
    merge_rows,
    warn,
)
from ._chunks import ChunkError, Engine, Layout, name_of, with_names
from ._sums import Moments, bag_sums, class_sums, merge, moments, within_of_sums

#: Relative difference of two sums that is rounding.
SAME = 1e-12
#: Bytes of features, after equal rows are merged, that are kept after the first pass, which then was the last.
KEPT = 2**28
#: The fraction of its multiples is spread evenly: a weight for each bag.
GOLDEN = 0.6180339887498949


def checksums(X, codes):
    """Sums by which a later pass notices other rows; they do not depend on the order of the rows.

    Parameters
    ----------
    X : ndarray, shape (n_instances, n_features)
    codes : ndarray of int, shape (n_instances,)

    Returns
    -------
    sums : ndarray, shape (2, n_features)
        Of each column, with a weight of the bag, and with the column before it.
    bounds : ndarray, shape (2, n_features)
        Of what is summed.
    """
    before = weight = (GOLDEN * (codes + 1)) % 1
    length, sums, bounds = np.sqrt(len(X)), [], []
    for x in X.T:
        size = np.sqrt(x @ x)
        sums.append((weight @ x, before @ x))
        bounds.append((np.sqrt(len(X)) * size, length * size))
        before, length = x, size
    return np.array(sums).T, np.array(bounds).T


def summarize(frame, layout, products, wanted, check, keep, merged):
    """A chunk in the first pass: its bags, their sizes and sums, its moments, checksums and rows; None without rows."""
    if not len(frame):
        return None
    codes, names = pd.factorize(layout.bag_column(frame))
    X = layout.matrix(frame)
    with np.errstate(all="ignore"):
        found = moments(X, products)
    if not np.isfinite(found.squares).all():
        check_features(
            with_names(X, layout.steps) if layout.steps else frame[layout.features]
        )
    sizes, sums, rows = np.bincount(codes), None, None
    if wanted:
        sums = bag_sums(X, codes, len(names))[1]
    checks = checksums(X, codes) if check else None
    data = BagData(X, codes, None, None)
    if merged:
        data = merge_rows(data)
    if keep or data.frequencies is not None:
        rows = data.X, data.bags, data.frequencies
    return names, sizes, sums, found, checks, rows


def again(frame, layout, what, part, function, args):
    """A chunk in a later pass: what a function makes of its features and bags, if it is what it was."""
    now, first = len(frame), 0 if part is None else part.sizes.sum()
    if now != first:
        refuse_change(f"had {first} rows in the first pass and has {now} in the {what}")
    if not now:
        return None
    names = pd.Index(layout.bag_column(frame), tupleize_cols=False)
    codes = pd.Index(part.names, tupleize_cols=False).get_indexer(names)
    X, changed = layout.matrix(frame), (codes < 0).any()
    if part.sums is not None and not changed:
        (was, bounds), (found, _) = part.sums, checksums(X, codes)
        changed = not np.all(np.abs(found - was) <= SAME * bounds)  # NaN: changed
    if changed:
        refuse_change(f"holds other values in the {what} than in the first pass")
    X -= part.center
    X /= part.scale
    if part.constant:
        X = np.asfortranarray(np.column_stack([X, np.ones(len(X))]))
    groups = () if layout.group is None else (frame[layout.group],)
    return function(X, codes, *groups, *args)


def refuse_change(said):
    """A chunk is not what it was."""
    raise ValueError(
        f"it {said}: chunks must not change during a fit, and a function that makes a chunk must make the same one "
        "each time"
    )


@dataclass(frozen=True, eq=False)
class Part:
    """What is known of a chunk after the first pass, and what is done to its features.

    Attributes
    ----------
    names, sizes : ndarray, shape (n_bags,)
        Its bags, and the instances of each.
    rows : ndarray of int, shape (n_bags,)
        Of the proportions.
    sums : tuple or None
        Of `checksums`.
    center, scale : ndarray, shape (n_features,), or float
    constant : bool
        Whether the feature 1 is added.
    """

    names: np.ndarray
    sizes: np.ndarray
    rows: np.ndarray
    sums: object = None
    center: object = 0.0
    scale: object = 1.0
    constant: bool = False


@dataclass(frozen=True, eq=False)
class Instances(InChunks):
    """The features of all chunks after the first pass.

    Attributes
    ----------
    engine : Engine
    layout : Layout
    parts : list of Part or None
        For each chunk; None for a chunk without rows.
    sizes : ndarray of int, shape (n_bags,)
        Of all bags.
    total : Moments
        Of the features before they are centered and scaled.
    sums : ndarray, shape (n_bags, n_features), or None
        Likewise; None where each bag is whole, until they are asked for.
    kept : list of tuple, or None
        Likewise, all rows, where these are few: their features, rows of the proportions, and frequencies.
    center, scale : ndarray, shape (n_features,), or float
    constant : bool
    """

    engine: Engine
    layout: Layout
    parts: list
    sizes: np.ndarray
    total: Moments
    sums: np.ndarray | None
    kept: list | None = None
    center: object = 0.0
    scale: object = 1.0
    constant: bool = False

    @property
    def shape(self):
        """See `InChunks`."""
        return np.count_nonzero(self.sizes), len(self.total.mean) + self.constant

    def with_constant(self):
        """See `InChunks`."""
        return replace(self, constant=True)

    def bag_means(self):
        """See `InChunks`."""
        sums, used = self.sums, self.sizes > 0
        if sums is None:
            plain = replace(self, center=0.0, scale=1.0, constant=False)
            [sums] = plain.sums_by_bag(_only_sums)
        means = sums[used] / self.sizes[used, None]
        means = (means - self.center) / self.scale
        return np.column_stack([means, *[np.ones(len(means))] * self.constant])

    def run(self, what, function, args=()):
        """A pass: pairs of a `Part` and what ``function(X, codes, *args)`` returned, of chunks with rows."""
        more = args if isinstance(args, list) else [args] * len(self.parts)
        change = {"center": self.center, "scale": self.scale, "constant": self.constant}
        parts = [part and replace(part, **change) for part in self.parts]
        tasks = [(what, p, function, m) for p, m in zip(parts, more, strict=True)]
        found = self.engine.run(what, again, self.layout, tasks)
        return ((p, one) for p, one in zip(parts, found, strict=True) if p)

    def counts(self, known):
        """For each chunk the arguments (sizes, counts, errors, laplace) of its `BagCounts`, of whole bags."""
        if known.counts is None:  # none are looked at
            return [None] * len(self.parts)
        place = np.cumsum(self.sizes > 0) - 1
        of_bags = known.sizes, known.counts, known.errors
        rows = [part and place[part.rows] for part in self.parts]
        return [
            r is not None and (*(v[r] for v in of_bags), known.laplace) for r in rows
        ]

    def objective(self, loss, known, penalty=0.0, linear=None):
        """See `InChunks`."""
        return ChunkObjective(loss, self, known, penalty, linear)

    def sums_by_bag(self, function, *args):
        """See `InChunks`."""
        totals = None
        for part, found in self.run("pass over bags", _by_bag, (function, args)):
            if totals is None:
                totals = [_nothing(one, len(self.sizes)) for one in found]
            for total, one in zip(totals, found, strict=True):
                total[part.rows if np.ndim(one) else ...] += one
        return [total if total.ndim else total.item() for total in totals]

    def class_moments(self, shares):
        """See `InChunks`."""
        return class_moments(self, shares)


def in_memory(X):
    """All features, the rows of the proportions that are their bags, and frequencies, of `Instances` that are kept."""
    features, bags, times = zip(*X.kept, strict=True)
    frequencies = None
    if any(t is not None for t in times):
        ones = [np.ones(len(b), int) for b in bags]
        times = [o if t is None else t for t, o in zip(times, ones, strict=True)]
        frequencies = np.concatenate(times)
    features = (np.concatenate(features) - X.center) / X.scale
    return features, np.concatenate(bags), frequencies


def class_moments(X, shares):
    """`InChunks.class_moments` of `Instances`."""
    n, mean, squares = X.total
    scale = np.broadcast_to(X.scale, mean.shape)
    total = Moments(n, (mean - X.center) / scale, squares / np.outer(scale, scale))
    mass = X.sizes @ shares
    sums = class_sums(X.sums, shares) - mass[:, None] * X.center
    means, within = within_of_sums(sums / scale, mass, total)
    return means, within, total.squares / n


def _nothing(one, n_bags):
    """Zeros to which a number, or rows of single bags, are added."""
    shape = (n_bags, *one.shape[1:]) if np.ndim(one) else ()
    return np.zeros(shape, getattr(one, "dtype", float))


def _by_bag(X, codes, function, args):
    return function(X, *args, codes, int(codes.max()) + 1)


def _only_sums(X, codes, n_bags):
    return (bag_sums(X, codes, n_bags)[1],)


def part_counts(codes, given):
    """The `BagCounts` of a chunk, of `Instances.counts`."""
    if given is None:
        n = np.array([len(codes)])
        return BagCounts(np.zeros(len(codes), int), n, None, None)
    return BagCounts(codes, *given)


def terms(X, codes, given, loss, w, few):
    """Value, gradient and information of a chunk, or the square roots of the information where these are few."""
    point = LinearObjective(loss, X, part_counts(codes, given)).at(w)
    if few:
        return point.value, point.gradient, [point.roots()]
    curved = w.size <= MOST_WEIGHTS
    return point.value, point.gradient, point.information() if curved else 0.0


class ChunkObjective(LinearObjective):
    """The objective of a linear model of bags that lie in chunks: each evaluation is a pass.

    Equation :eq:`eq-beyond-memory-terms`.

    Parameters
    ----------
    loss : BagLoss
    Z : Instances
    known : BagCounts
        One row per bag, with its size as the frequency.
    penalty, linear
        See `LinearObjective`.
    """

    def __init__(self, loss, Z, known, penalty=0.0, linear=None):
        self.loss, self.Z, self.known, self.linear = loss, Z, known, linear
        self.penalty = np.broadcast_to(penalty, Z.shape[1])
        self.n, self.n_passes = int(known.sizes.sum()), 0

    def at(self, w):
        """See `LinearObjective.at`: one pass."""
        rows = self.loss.n_factors(len(w)) * len(self.known.sizes)
        few = rows < w.size if w.size <= MOST_WEIGHTS else rows <= MOST_ROWS
        few, self.n_passes = few and self.loss.by_bag, self.n_passes + 1
        args = [(given, self.loss, w, few) for given in self.Z.counts(self.known)]
        linear = np.zeros(w.shape) if self.linear is None else self.linear
        value = float(np.sum((0.5 * self.penalty * w - linear) * w))
        gradient, curvature = self.penalty * w - linear, [] if few else 0.0
        for _, found in self.Z.run(f"pass {self.n_passes}", terms, args):
            # eq: eq-beyond-memory-terms
            value, gradient = value + found[0], gradient + found[1]
            curvature = curvature + found[2]
        roots = partial(np.vstack, curvature) if few else None
        penalty = np.tile(self.penalty, len(w))
        return Point(w, value, gradient, curvature, penalty, roots)


def rows_of(names, n_bags, keys, number, engine):
    """The rows of the proportions that the bags of a chunk name."""
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
        Whether `checksums` are taken.
    merged : bool, optional
        Whether equal rows of a bag can be one row with a frequency; None where no row is to be kept.

    Returns
    -------
    Instances
    """
    found = FirstPass(n_bags, needed == "whole bags", None if merged is None else [])
    here = merged is not None and effective_n_jobs(engine.n_jobs) == 1
    args = needed == "class moments", not found.whole, check, here, bool(merged)
    for number, one in enumerate(engine.run("first pass", summarize, layout, args)):
        rows = None if one is None else rows_of(one[0], n_bags, keys, number, engine)
        if found.whole and one is not None:
            refuse_scattered(found.owner[rows], one[0], number, engine, layout)
        found.add(number, rows, one)
    refuse_shares_of_rows(found.sizes, keys)
    warn_of_restarts(found.parts, found.sizes, keys)
    layout = replace(layout, model=None)
    return Instances(engine, layout, found.parts, found.sizes, found.total, found.sums, found.kept)  # fmt: skip


class FirstPass:
    """What the first pass has added up so far; attributes as of `Instances`.

    Parameters
    ----------
    n_bags : int
    whole : bool
        Whether each bag lies in one chunk, so that no sums are needed.
    kept : list or None
    """

    def __init__(self, n_bags, whole, kept):
        self.sizes, self.owner = np.zeros(n_bags, int), np.full(n_bags, -1)
        self.whole, self.kept, self.room = whole, kept, KEPT
        self.total, self.sums, self.parts = None, None, []

    def add(self, number, rows, found):
        """One more chunk, of `summarize`, with the rows of the proportions that are its bags."""
        if found is None:
            self.parts.append(None)
            return
        names, counts, of_bags, here, checks, kept = found
        self.owner[rows] = number
        self.parts.append(Part(names, counts, rows, checks))
        self.sizes[rows] += counts
        self.total = here if self.total is None else merge(self.total, here)
        if not self.whole:
            if self.sums is None:
                self.sums = np.zeros((len(self.sizes), of_bags.shape[1]))
            self.sums[rows] += of_bags
        self.room -= np.inf if kept is None else kept[0].nbytes
        if self.room < 0 or self.kept is None:
            self.kept = None
        else:
            self.kept.append((kept[0], rows[kept[1]], kept[2]))


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


def warn_of_restarts(parts, sizes, keys):
    """Warn of bag numbers that start again in each chunk, or in each file, where different bags would be merged.

    Bags that truly span chunks, such as counties, have one share each. Where numbers start again there is one share for
    each bag of each file, and the shares at the end have no bag.
    """
    n_shares, of_chunks = len(sizes), sum(len(part.rows) for part in parts if part)
    numbered = keys is None or keys.equals(pd.RangeIndex(n_shares))
    end, found = np.flatnonzero(sizes).max() + 1, np.count_nonzero(sizes)
    recur = of_chunks > found and of_chunks >= LEAST * n_shares
    if numbered and recur and end <= MOST * n_shares:
        warn(
            f"bag numbers seem to start again in each chunk: proportions has {n_shares} entries, but only {found} "
            "different numbers occur, several of them in more than one chunk, and bags of one number are merged. "
            "Number the bags across all files, or name them by file and number and key proportions by these names"
        )


def refuse_scattered(owners, names, number, engine, layout):
    """A bag in two chunks, where the method needs it whole."""
    if (owners < 0).all():
        return
    twice = (owners >= 0).argmax()
    bag, first = names.tolist()[twice], owners[twice]
    raise ChunkError(
        f"bag {bag!r} has instances in chunk {first} and in chunk {number}, but {engine.name} needs each bag whole in "
        "one chunk. If these are two different bags, number them across all chunks. If not, bring the bags together "
        f"first: chunks = frame.shuffle(on={layout.bags!r}).persist() of a Dask DataFrame, such as "
        "dask.dataframe.read_parquet(paths), or chunks = [part for _, part in "
        f"frame.groupby(frame[{layout.bags!r}].map(hash) % n_chunks)] of one DataFrame in memory; MeanMap and InvCal "
        "take the chunks as they are"
    )
