"""The first pass over chunks, and what stands in the place of the matrix of features after it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import pandas as pd
from joblib import effective_n_jobs

from .._input import check_bags, check_features
from .._linear import MOST_WEIGHTS, BagCounts, LinearObjective, Point
from ..base import BagData, InChunks, merge_rows
from ._chunks import ChunkError, Engine, Layout, name_of
from ._sums import Moments, bag_sums, class_sums, merge, moments, within_of_sums

#: Relative difference of two sums that is rounding.
SAME = 1e-12
#: Bytes of features, after equal rows are merged, that are kept after the first pass, which then was the last.
KEPT = 2**28
#: The fraction of its multiples is spread evenly: a weight for each bag.
GOLDEN = 0.6180339887498949


def checksums(X, codes):
    """Sums of the columns, weighted by bag, by which a later pass notices other rows, and their bounds.

    They do not depend on the order of the rows.
    """
    weight = (GOLDEN * (codes + 1)) % 1
    bounds = [np.sqrt(len(X) * (x @ x)) for x in X.T]
    return np.array([weight @ x for x in X.T]), np.array(bounds)


def summarize(frame, layout, products, wanted, check, keep, merged):
    """A chunk in the first pass: its bags, their sizes and sums, its moments, checksums and rows; None without rows."""
    if not len(frame):
        return None
    codes, names = pd.factorize(layout.bag_column(frame))
    X = layout.matrix(frame)
    with np.errstate(all="ignore"):
        found = moments(X, products)
    if not np.isfinite(found.squares).all():
        check_features(layout.given(frame))
    sums = bag_sums(X, codes, len(names))[1] if wanted else None
    part = Part(names, np.bincount(codes), checksums(X, codes) if check else None)
    data, rows = BagData(X, codes, None, None), None
    if merged:
        data = merge_rows(data)
    if keep or data.frequencies is not None:
        rows = data.X, data.bags, data.frequencies
    return part, found, sums, rows


def again(frame, layout, what, part, view, function, args):
    """A chunk in a later pass: what a function makes of its features and bags, if it is what it was."""
    now, first = len(frame), 0 if part is None else part.sizes.sum()
    if now != first:
        refuse_change(f"had {first} rows in the first pass and has {now} in the {what}")
    if not now:
        return None
    names = pd.Index(layout.bag_column(frame), tupleize_cols=False)
    codes = pd.Index(part.names, tupleize_cols=False).get_indexer(names)
    X, changed = layout.matrix(frame), (codes < 0).any()
    if part.checks is not None and not changed:
        (was, bounds), (found, _) = part.checks, checksums(X, codes)
        changed = not np.all(np.abs(found - was) <= SAME * bounds)  # NaN: changed
    if changed:
        refuse_change(f"holds other values in the {what} than in the first pass")
    center, scale, constant = view
    X -= center
    X /= scale
    if constant:
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
    """What is known of a chunk after the first pass.

    Attributes
    ----------
    names, sizes : ndarray, shape (n_bags,)
        Its bags, and the instances of each.
    checks : tuple or None
        Of `checksums`.
    rows : ndarray of int, shape (n_bags,)
        Of the proportions.
    """

    names: np.ndarray
    sizes: np.ndarray
    checks: tuple | None
    rows: np.ndarray | None = None


@dataclass(eq=False)
class Instances(InChunks):
    """The features of all chunks; the first pass adds one chunk after the other.

    Attributes
    ----------
    engine : Engine
    layout : Layout
    sizes : ndarray of int, shape (n_bags,)
        Of all bags.
    kept : list of tuple, or None
        All rows, where these are few: their features before they are centered and scaled, rows of the proportions,
        and frequencies.
    room : float
        Bytes of features that may still be kept.
    sums : ndarray, shape (n_bags, n_features), or None
        Before the features are centered and scaled; None where each bag is whole.
    total : Moments
        Likewise, of the features.
    parts : list of Part or None
        For each chunk; None for a chunk without rows.
    center, scale : ndarray, shape (n_features,), or float
    constant : bool
        Whether the feature 1 is added.
    """

    engine: Engine
    layout: Layout
    sizes: np.ndarray
    kept: list | None = None
    room: float = 0.0
    sums: np.ndarray | None = None
    total: Moments | None = None
    parts: list = field(default_factory=list)
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
        used = self.sizes > 0
        means = self.sums[used] / self.sizes[used, None]
        means = (means - self.center) / self.scale
        return np.column_stack([means, *[np.ones(len(means))] * self.constant])

    def run(self, what, function, args=()):
        """A pass: pairs of a `Part` and what ``function(X, codes, *args)`` returned, of chunks with rows."""
        more = args if isinstance(args, list) else [args] * len(self.parts)
        view, parts = (self.center, self.scale, self.constant), self.parts
        tasks = [(what, p, view, function, m) for p, m in zip(parts, more, strict=True)]
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
        n, mean, squares = self.total
        scale = np.broadcast_to(self.scale, mean.shape)
        squares = squares / np.outer(scale, scale)
        total = Moments(n, (mean - self.center) / scale, squares)
        mass = self.sizes @ shares
        sums = class_sums(self.sums, shares) - mass[:, None] * self.center
        return *within_of_sums(sums / scale, mass, total), squares / n


def add_chunk(X, rows, part, moments, sums, kept):
    """One more chunk, of `summarize`, with the rows of the proportions that are its bags."""
    X.parts.append(replace(part, rows=rows))
    X.sizes[rows] += part.sizes
    X.total = moments if X.total is None else merge(X.total, moments)
    if sums is not None:
        if X.sums is None:
            X.sums = np.zeros((len(X.sizes), sums.shape[1]))
        X.sums[rows] += sums
    if X.kept is not None:
        X.room -= np.inf if kept is None else kept[0].nbytes
        if X.room < 0:
            X.kept = None
        else:
            times = np.broadcast_to(1 if kept[2] is None else kept[2], len(kept[1]))
            X.kept.append((kept[0], rows[kept[1]], times))


def in_memory(X):
    """All features, the rows of the proportions that are their bags, and frequencies, of `Instances` that are kept."""
    features, bags, times = (np.concatenate(part) for part in zip(*X.kept, strict=True))
    times = times if (times > 1).any() else None
    return (features - X.center) / X.scale, bags, times


def _nothing(one, n_bags):
    """Zeros to which a number, or rows of single bags, are added."""
    shape = (n_bags, *one.shape[1:]) if np.ndim(one) else ()
    return np.zeros(shape, getattr(one, "dtype", float))


def _by_bag(X, codes, function, args):
    return function(X, *args, codes, int(codes.max()) + 1)


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


def losses_of(Z, loss, known):
    """For each chunk the loss of its bags; ValueError for one that compares bags and cannot know the others."""
    if known.counts is None:  # none are looked at
        return [loss] * len(Z.parts)
    loss, place = loss.of_all(known), np.cumsum(Z.sizes > 0) - 1
    if loss.fewest_bags > 1:
        raise ValueError(
            f"{loss!r} compares bags, of which a chunk holds some only: define its method `of_all`, see "
            "llpbook.bag_losses.BagLoss, or fit it to a sample of whole bags, sample_bags(…)"
        )
    return [part and loss.some(place[part.rows]) for part in Z.parts]


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
        self.losses = losses_of(Z, loss, known)
        self.penalty = np.broadcast_to(penalty, Z.shape[1])
        self.n, self.n_passes = int(known.sizes.sum()), 0

    def at(self, w):
        """See `LinearObjective.at`: one pass."""
        few, self.n_passes = self.has_few_roots(w), self.n_passes + 1
        of_chunks = zip(self.Z.counts(self.known), self.losses, strict=True)
        args = [(given, loss, w, few) for given, loss in of_chunks]
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
    whole, here = needed == "whole bags", effective_n_jobs(engine.n_jobs) == 1
    plain, kept = replace(layout, model=None), None if merged is None else []
    X = Instances(engine, plain, np.zeros(n_bags, int), kept, KEPT)
    keep = merged is not None and here
    args = needed == "class moments", not whole, check, keep, bool(merged)
    for number, one in enumerate(engine.run("first pass", summarize, layout, args)):
        if one is None:
            X.parts.append(None)
            continue
        rows = rows_of(one[0].names, n_bags, keys, number, engine)
        if whole:
            refuse_scattered(X, rows, number)
        add_chunk(X, rows, *one)
    refuse_shares_of_rows(X.sizes, keys)
    return X


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


def refuse_scattered(X, rows, number):
    """A bag in two chunks, where the method needs it whole."""
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
