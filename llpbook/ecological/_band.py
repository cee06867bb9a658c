"""The band of a rate: from the fit of a model within bags, and a limit of its error."""

from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp

from .._input import ArrayLike, Matrix, Proportions, check_column
from ..base import merge_rows, one_column, warn
from ..count_likelihood import posterior
from ..uncertainty import (
    bag_gradients,
    caution_of_held_rates,
    check_gradient,
    covariance_of,
    group_sums,
    loose_bounds,
    members_of,
    of_second_class,
    rate_table,
    read_fit,
    released,
    slack_of_counts,
)

#: Bags with members of a group below which its share in the bag says nothing.
FEWEST = 3
#: The part of the fitted difference that the context leaves at least.
LEAST_PART = 0.5
#: By default a band has this part of the width of the bounds: less than half, also where it is rounded.
WIDTH = 0.4999
#: Standard errors by which a stated error of a share loosens a bound.
LOOSE = 2.0


@dataclass(frozen=True, eq=False)
class Cells:
    """Checked input of a band: rows in the order of their bags, equal rows merged.

    Attributes
    ----------
    fit : Problem
        Of the model, with these rows.
    members : ndarray of bool, shape (n_groups, n_rows)
    names : ndarray, shape (n_groups,)
    classes : ndarray, shape (n_classes,)
    slack : ndarray, shape (n_bags,)
        Largest error of each count by rounding.
    places : ndarray of bool, shape (n_places, n_rows)
        The groups, or each group in each unit.
    group_of : ndarray of int, shape (n_places,)
    index : pandas.Index
        The rows of a table of places and classes.
    """

    fit: Any
    members: np.ndarray
    names: np.ndarray
    classes: np.ndarray
    slack: np.ndarray
    places: np.ndarray
    group_of: np.ndarray
    index: pd.Index

    @property
    def n_columns(self):
        """Number of classes of a place in a table: of two classes, the second only."""
        return len(self.fit.weights)

    @property
    def scores(self):
        """Scores of the rows by the model."""
        return one_column(self.fit.Z @ self.fit.weights.T)

    @property
    def observed(self):
        """Counts of the bags."""
        return self.fit.observed

    def probabilities(self, scores):
        """Probability of each class given the counts of the bags, shape (n_rows, n_classes)."""
        q = posterior(scores, self.observed, self.fit.loss.exact_up_to)[1]
        q = np.column_stack([1 - q, q]) if q.ndim == 1 else q
        return np.clip(q, 0, 1)


class Split(NamedTuple):
    """Splits of a class between the members of a group and the others in each bag, one row per rate.

    Attributes
    ----------
    inside : ndarray, shape (n_rates, n_bags)
        Members of the group.
    even : ndarray, shape (n_rates, n_bags)
        Members with the class if all in the bag had the same rate.
    lean : ndarray, shape (n_rates, n_bags)
        Members with the class by the model, less the even ones.
    swing : ndarray, shape (n_rates, n_bags)
        Change of the count by a change of the difference by 1: members times the share of the others.
    low, high : ndarray, shape (n_rates, n_bags)
        The bounds that need no assumption.
    """

    inside: np.ndarray
    even: np.ndarray
    lean: np.ndarray
    swing: np.ndarray
    low: np.ndarray
    high: np.ndarray

    def total(self, counts):
        """Rates from counts per bag."""
        return counts.sum(axis=1) / self.inside.sum(axis=1)


def rates_within(split, lean):
    r"""Rates in the groups for a stated difference within each bag.

    :math:`R_G = \frac{1}{n_G} \sum_k n_{kG}\, [y_k + (1 - q_k) D_k]`, equation :eq:`eq-ecological-within`, each bag cut
    at its bounds.

    Parameters
    ----------
    split : Split
    lean : ndarray, shape (n_rates, n_bags)
        ``n_kG (1 - q_k) D_k``: members with the class, less those if all in the bag had the same rate.

    Returns
    -------
    ndarray, shape (n_rates,)
    """
    # eq: eq-ecological-within
    return split.total(np.clip(split.even + lean, split.low, split.high))


def context(members, observed):
    r"""Share of a group in the bag of each row, minus its mean over the instances.

    :math:`z_k = n_{kG} / n_k - n_G / n`.

    Parameters
    ----------
    members : ndarray of bool, shape (n_rows,)
    observed : BagCounts

    Returns
    -------
    ndarray, shape (n_rows,)
    """
    inside = observed.sums(members.astype(float))
    z = inside / observed.sizes - inside.sum() / observed.sizes.sum()
    return z[observed.bags]


def rates_between(split, limit):
    r"""Smallest and largest rate that a limit allows.

    Over :math:`D_k` within :math:`\lambda` of a value between :math:`\tfrac12 \hat D_k` and :math:`\hat D_k`, equation
    :eq:`eq-ecological-band`.

    Parameters
    ----------
    split : Split
    limit : float or ndarray, shape (n_rates,)

    Returns
    -------
    low, high : ndarray, shape (n_rates,)
    """
    part, change = LEAST_PART * split.lean, split.swing.T * limit
    # eq: eq-ecological-band
    low = rates_within(split, np.minimum(part, split.lean) - change.T)
    return low, rates_within(split, np.maximum(part, split.lean) + change.T)


def default_limit(split):
    """Largest limit for each rate whose band has `WIDTH` of the width of the bounds, shape (n_rates,)."""
    most = WIDTH * (split.total(split.high) - split.total(split.low))
    low, high = np.zeros(len(most)), np.full(len(most), 2.0)
    for _ in range(40):
        middle = (low + high) / 2
        ends = rates_between(split, middle)
        narrow = ends[1] - ends[0] < most
        low, high = np.where(narrow, middle, low), np.where(narrow, high, middle)
    return low


def contextual_scores(cells, members, z):
    """Scores of a fit in which the share of a group in the bag is one more feature of everybody.

    Parameters
    ----------
    cells : Cells
    members : ndarray of bool, shape (n_rows,)
    z : ndarray, shape (n_rows,)
        From `context`; as a feature it has variance 1.

    Returns
    -------
    ndarray, shape (n_rows,) or (n_rows, n_classes)
    """
    fit, observed = cells.fit, cells.observed
    deviation = np.sqrt(observed.total(z**2) / observed.sizes.sum())
    wider = sp.hstack if sp.issparse(fit.Z) else np.hstack
    Z = wider([fit.Z, (z / deviation)[:, None]])
    Z = Z.tocsr() if sp.issparse(Z) else Z
    start = np.column_stack([fit.weights, np.zeros(len(fit.weights))])
    penalty = np.append(fit.penalty, fit.penalty.max())
    loss = fit.loss.with_deviation(0.0)
    objective = replace(fit, loss=loss, Z=Z, penalty=penalty).objective()
    return one_column(Z @ objective.solve(start).w.T)


def group_rate_band(
    model: Any, X: Matrix, bags: ArrayLike, proportions: Proportions, group: ArrayLike, *,
    units: ArrayLike | None = None, counts: ArrayLike | None = None,
    limit: float | None = None, rounding: float = 0.0,
) -> pd.DataFrame:  # fmt: skip
    """Estimate rates of classes in groups, with a band for a difference within bags that no bag shows.

    Parameters
    ----------
    model : CountLogistic or Pipeline
        Fitted to these bags. Its features should tell the group apart.
    X : array-like, shape (n_instances, n_features)
    bags : array-like, shape (n_instances,)
    proportions : array-like, Series, dict or DataFrame
        See `llpbook.proportions.check_proportions`.
    group : array-like, shape (n_instances,)
        A mask, of which True is the group; or a name for each instance, for a row per name.
    units : array-like, shape (n_instances,), optional
        Names of larger units, such as the county of a precinct: then a row per unit and group.
    counts : array-like of int, shape (n_instances,), optional
        How many equal instances each row stands for, as in a table of cells; one if not given.
    limit : float, optional
        By how much the difference between the rate in the group and in the rest of the same bag may leave the range
        from half of the fitted difference to the whole. If not given, the largest limit with which the band is less
        than half as wide as the bounds; column ``limit`` says which.
    rounding : float, default 0.0
        How far each share may be from the true one, for the bounds: 0.005 for shares in percent.

    Returns
    -------
    DataFrame
        Columns ``low`` and ``high``, the band; ``plain``, the rate of the model; ``contextual``, the rate where the
        share of the group in the bag is one more feature, not cut at the band; ``limit``; ``least`` and ``most``, the
        bounds that need no assumption (two standard errors looser where shares have errors); ``n``. A row per group:
        the rate of the second class, ``attrs["class"]``; with more classes, a row per group and class.

    Raises
    ------
    ValueError
        For malformed input, another model, a model that was fitted to other bags, shares or counts, or a limit that is
        negative or no number.

    Notes
    -----
    The band is no confidence interval. The rate lies in it if in each bag the difference is within the limit; where the
    bags that break this hold a part ε of the members, the rate leaves the band by ε at most. An `LLPWarning` says where
    the chance of the bags alone leaves the band. A group in fewer than three bags, or with the same share in all, gets
    the bounds and an `LLPWarning`; so does a group that shares no bag with others, where the bounds are its rate. Costs
    one fit per group.

    Examples
    --------
    >>> import numpy as np
    >>> from llpbook import CountLogistic
    >>> share = np.linspace(0.1, 0.9, 40)           # of group 1 in 40 bags of 1,000
    >>> members = np.round(1000 * share).astype(int)
    >>> X, bags = np.tile([[0.0], [1.0]], (40, 1)), np.repeat(np.arange(40), 2)
    >>> counts = np.column_stack([1000 - members, members]).ravel()
    >>> p = 0.2 + 0.4 * share                       # 20 % of group 0, 60 % of group 1
    >>> model = CountLogistic().fit(X, bags, p, counts=counts)
    >>> band = group_rate_band(model, X, bags, p, X[:, 0], counts=counts)
    >>> band["plain"].round(2).tolist()
    [0.2, 0.6]
    >>> bool((band["low"] < [0.2, 0.6]).all() and (band["high"] > [0.2, 0.6]).all())
    True
    """
    if limit is not None and not (isinstance(limit, Real) and 0 <= limit < np.inf):
        raise ValueError(f"limit must be a number, 0 or more, or None, got {limit!r}")
    cells = read_cells(model, X, bags, proportions, group, counts, rounding, units)
    split = split_of(cells, cells.probabilities(cells.scores))
    limits = default_limit(split) if limit is None else np.full(len(split.even), limit)
    low, high = rates_between(split, limits)
    least, most = split.total(split.low), split.total(split.high)
    unseen = np.repeat(unseen_groups(cells, counts)[cells.group_of], cells.n_columns)
    low, high = np.where(unseen, least, low), np.where(unseen, most, high)
    table = {"low": low, "high": high, "plain": rates_within(split, split.lean)}
    table["contextual"] = contextual_rates(cells)
    table |= {"limit": np.where(unseen, np.inf, limits), "least": least, "most": most}
    table["n"] = split.inside.sum(axis=1).astype(int)
    rates = pd.DataFrame(table, cells.index)
    if cells.n_columns == 1:
        rates = of_second_class(rates, cells.classes)
    rates.attrs["widest"] = limit is None
    intervals = plain_intervals(cells)
    if units is None and intervals is not None:
        warn_of_chance(cells, rates, intervals)
    return rates


def split_of(cells, q):
    """Compute the `Split` of each place and class; of two classes the second only.

    Parameters
    ----------
    cells : Cells
    q : ndarray, shape (n_rows, n_classes)
        Probabilities given the counts.

    Returns
    -------
    Split
    """
    observed, places = cells.observed, cells.places.astype(float)
    sizes, inside = observed.sizes, observed.sums(places.T).T
    kept = range(1, 2) if len(cells.classes) == 2 else range(len(cells.classes))
    counts = observed.counts.reshape(len(sizes), -1)
    errors = observed.errors.reshape(len(sizes), -1)[:, :: counts.shape[1] + 1]
    swing, parts = inside * (1 - inside / sizes), []
    for column, k in enumerate(kept):
        even = inside * observed.sums(q[:, k]) / sizes
        fitted = observed.sums((places * q[:, k]).T).T
        slack = cells.slack + LOOSE * np.sqrt(errors[:, column])
        low, high = loose_bounds(sizes, counts[:, column], inside, slack)
        parts.append([inside, even, fitted - even, swing, low, high])
    stacked = (np.stack(p, axis=1) for p in zip(*parts, strict=True))
    return Split._make(field.reshape(-1, len(sizes)) for field in stacked)


def contextual_rates(cells):
    """Rates by the contextual fits, one fit per group, for each place and class."""
    parts = np.empty((len(cells.places), cells.n_columns))
    for g, members in enumerate(cells.members):
        z, rows = context(members, cells.observed), cells.group_of == g
        scores = cells.scores
        if np.ptp(z) > 1e-9:
            scores = contextual_scores(cells, members, z)
        split = split_of(
            replace(cells, places=cells.places[rows]), cells.probabilities(scores)
        )
        parts[rows] = rates_within(split, split.lean).reshape(-1, cells.n_columns)
    return parts.ravel()


def unseen_groups(cells, counts=None):
    """Mask of groups with bounds only, with a warning: too few bags, equal shares, or bags that mix no groups."""
    observed, names = cells.observed, cells.names
    inside = observed.sums(cells.members.astype(float).T).T
    same = np.ptp(inside / observed.sizes, axis=1) < 1e-9
    pure = ((inside == 0) | (inside == observed.sizes)).all(axis=1)
    unseen = (same | ((inside > 0).sum(axis=1) < FEWEST)) & ~pure
    if counts is None and inside.max() <= 1:
        warn(
            "no bag has more than one row of a group, and each row counts as one person: was counts= forgotten?"
        )
    for name in names[unseen].tolist():
        warn(
            f"group {name!r} is in too few bags, or has the same share in all: its band is the bounds"
        )
    if pure.any():
        warn(
            f"no bag mixes group {names[pure].tolist()[0]!r} with others, so its rate is the share of its bags, "
            "without a model. If group says what most people of a bag are, this is the rate in such bags and not of "
            "these people: make a row per bag and group, with counts"
        )
    return unseen | pure


def plain_intervals(cells):
    """Intervals of 95 % of the plain rates, with a warning where the penalty holds one; None without an interval."""
    try:
        V = covariance_of(cells.fit)
    except ValueError as error:
        warn(
            f"the band leaves out the chance of the bags, for want of an interval: {error}"
        )
        return None
    sums = group_sums(cells.fit, cells.members, None, 0.0)
    table = rate_table(sums, V, cells.names, cells.classes, 0.95)
    caution_of_held_rates(table, V, len(cells.fit.used), cells.fit.weights.size)
    return table


def warn_of_chance(cells, band, table):
    """Warn where the 95 % interval of the plain rate, the chance of the bags, leaves the band."""
    low = np.maximum(table["low"].to_numpy(), band["least"])
    high = np.minimum(table["high"].to_numpy(), band["most"])
    over = (low < band["low"] - 0.01) | (high > band["high"] + 0.01)
    n_bags = len(cells.observed.sizes)
    if over.any():
        warn(
            f"by the chance of the {n_bags} bags alone, the rates of {over.sum()} of {len(band)} rows may leave the "
            f"band, such as {band.index[over][0]!r}: its 95 % interval is [{low[over].iloc[0]:.2f}, "
            f"{high[over].iloc[0]:.2f}]; report the bounds beside the band"
        )


def read_cells(
    model, X, bags, proportions, group, counts=None, rounding=0.0, units=None
):
    """Check the input of a band, and return `Cells`."""
    fit, data = read_fit(model, X, bags, proportions, None, counts)
    n = len(data.bags)
    members, names = members_of(group, data, X)
    where, unit_names = np.ones((1, n), dtype=bool), None
    if units is not None:
        check_column("units", units, len(np.asarray(group)), X)
        where, unit_names = members_of(units, data, X)
    n_groups = len(members)
    fit, masks = merged(fit, data, np.vstack([members, where]))
    members, where = masks[:n_groups], masks[n_groups:]
    gradient, n = bag_gradients(fit).sum(axis=0), fit.observed.sizes.sum()
    check_gradient(fit.weights, gradient, n, fit.curvature, fit.slack)
    fit = released(fit, members, names)
    slack = np.zeros(len(fit.observed.sizes))
    if not fit.observed.errors.any():
        slack = slack_of_counts(data, rounding)[fit.used]
    every = np.ndindex(len(where), n_groups)
    pairs = [(u, g) for u, g in every if (where[u] & members[g]).any()]
    rows = [names[g] for _, g in pairs]
    if unit_names is not None:
        rows = [(unit_names[u], names[g]) for u, g in pairs]
    return Cells(
        fit, members, names, data.classes, slack,
        places=np.array([where[u] & members[g] for u, g in pairs]),
        group_of=np.array([g for _, g in pairs]), index=band_index(rows, data.classes),
    )  # fmt: skip


def merged(fit, data, masks):
    """Sort the fit and masks of rows by bag; merge equal rows of a bag of a dense matrix."""
    Z, observed, every = fit.Z, fit.observed, masks
    if isinstance(Z, np.ndarray):
        rows = merge_rows(replace(data, X=np.column_stack([Z, every.T])))
        Z, every = rows.X[:, : Z.shape[1]], rows.X[:, Z.shape[1] :].T > 0
        codes = np.searchsorted(fit.used, rows.bags)
        observed = replace(observed, bags=codes, frequencies=rows.frequencies)
    order = np.argsort(observed.bags, kind="stable")
    fit = replace(fit, Z=Z[order], observed=observed.reordered(order))
    return fit, every[:, order]


def band_index(names, classes):
    """Index of names, or of pairs of unit and group; with more than two classes also of classes."""
    several = len(classes) > 2
    if not isinstance(names[0], tuple):
        levels = ["group", "class"][: 1 + several]
        rows = [(name,) for name in names]
    else:
        levels, rows = ["unit", "group", "class"][: 2 + several], names
    if several:
        rows = [(*row, k) for row in rows for k in classes]
    if len(levels) == 1:
        return pd.Index([row[0] for row in rows], name=levels[0])
    return pd.MultiIndex.from_tuples(rows, names=levels)
