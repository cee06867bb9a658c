r"""Rates in groups from bags as they were published: a band for an effect that no bag shows.

The members of a group may behave differently where their group is a large part of the bag: a *contextual* effect. Let
:math:`z_k` be the share of the group in bag :math:`k`, less its mean. With an effect :math:`\gamma`, the log-odds are

.. math:: f_i = \langle w, x_i \rangle + \gamma z_{b(i)}, \qquad |\gamma| \le \frac{\lambda}{\bar p (1 - \bar p)},

where :math:`\bar p` is the share of the class in all bags and :math:`\lambda` the stated limit: by how much the rate
may change, to first order, from a bag without members of the group to a bag of members only. For each :math:`\gamma`
the weights are fitted to the counts; the rates at both ends, at 0 and at the fitted effect give the band.

Chapter: ``book/ecological``. Sources: robinson1950, duncan1953 and goodman1953; the band is ours.
"""

from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from sklearn.pipeline import Pipeline

from ._typing import ArrayLike, Matrix, Proportions
from .base import BagLoss, LinearObjective, merge_rows, one_column, warn
from .count_likelihood import CountLoss
from .uncertainty import (
    covariance_of,
    group_sums,
    group_table,
    in_bags,
    loose_bounds,
    members_of,
    posterior_rates,
    rate_table,
    read_fit,
)

__all__ = ["group_rate_band"]

#: Bags with members of a group below which its share in the bag says nothing.
FEWEST = 3


@dataclass(frozen=True, eq=False)
class Shifted(BagLoss):
    """A loss of bags at scores to which a fixed part is added.

    Attributes
    ----------
    loss : BagLoss
    offset : ndarray, of the shape of the scores
    """

    loss: BagLoss
    offset: np.ndarray
    several_classes = takes_errors = by_bag = True

    def of_counts(self, scores, known):
        """See `BagLoss.of_counts`."""
        return self.loss.of_counts(scores + self.offset, known)

    def evaluate(self, scores, known, state=None):
        """See `BagLoss.evaluate`."""
        return self.loss.evaluate(scores + self.offset, known, state)

    def factors(self, scores, known, state=None):
        """See `BagLoss.factors`."""
        return self.loss.factors(scores + self.offset, known, state)

    def n_factors(self, n_rows):
        """See `BagLoss.n_factors`."""
        return self.loss.n_factors(n_rows)


@dataclass(frozen=True, eq=False)
class Cells:
    """Checked input: rows in the order of their bags, the equal ones merged.

    Attributes
    ----------
    Z : ndarray or sparse array, shape (n_rows, n_columns)
        With the 1 of an intercept.
    known : BagCounts
    members : ndarray of bool, shape (n_groups, n_rows)
    start : ndarray, shape (1, n_columns) or (n_classes, n_columns)
        The weights of the model.
    penalty : ndarray, shape (n_columns,)
    C : float
    exact_up_to : int
    fit : Linear
        The model with these rows.
    """

    Z: Any
    known: Any
    members: np.ndarray
    start: np.ndarray
    penalty: np.ndarray
    C: float
    exact_up_to: int
    fit: Any = None


def context(members, known):
    r"""The share of a group in the bag of each row, less its mean over the instances.

    :math:`z_k = n_{kG} / n_k - n_G / n`, equation :eq:`eq-ecological-context`.

    Parameters
    ----------
    members : ndarray of bool, shape (n_rows,)
    known : BagCounts

    Returns
    -------
    ndarray, shape (n_rows,)
    """
    inside = known.sums(members.astype(float))
    # eq: eq-ecological-context
    z = inside / known.sizes - inside.sum() / known.sizes.sum()
    return z[known.bags]


def largest_effect(limit, share):
    r"""The largest effect of a context on the log-odds that a limit on the rate allows.

    :math:`\lambda / (\bar p (1 - \bar p))`, equation :eq:`eq-ecological-limit`.

    Parameters
    ----------
    limit : float
        By how much the rate may change from a bag without members of the group to a bag of members only.
    share : float or ndarray
        Of the class in all bags.

    Returns
    -------
    float or ndarray
    """
    # eq: eq-ecological-limit
    return limit / np.maximum(share * (1 - share), 1e-12)


def rate_at(cells, members, offset):
    r"""The rates in a group under a stated effect: a fit to the counts with an offset, and its posterior.

    :math:`\hat w(\gamma) = \arg\max_w \sum_k \log P(c_k \mid Zw + \gamma z) - \lVert w \rVert^2 / 2C`, equation
    :eq:`eq-ecological-refit`.

    Parameters
    ----------
    cells : Cells
    members : ndarray of bool, shape (n_groups, n_rows)
    offset : ndarray, shape (n_rows,) or (n_rows, n_classes)

    Returns
    -------
    ndarray, shape (n_groups, 1) or (n_groups, n_classes)
    """
    loss = Shifted(CountLoss(cells.exact_up_to), offset)
    # eq: eq-ecological-refit
    w = LinearObjective(loss, cells.Z, cells.known, cells.penalty).solve(cells.start).w
    scores = one_column(cells.Z @ w.T) + offset
    return posterior_rates(scores, cells.known, members, cells.exact_up_to)


def rate_with_context(cells, members, z):
    """The rates in a group where the share of the group in the bag is one more feature of everybody.

    Parameters
    ----------
    cells : Cells
    members : ndarray of bool, shape (n_rows,)
    z : ndarray, shape (n_rows,)
        From `context`; as a feature it has variance 1.

    Returns
    -------
    ndarray, shape (1,) or (n_classes,)
    """
    deviation = np.sqrt(cells.known.total(z**2) / cells.known.sizes.sum())
    Z = cells.Z if isinstance(cells.Z, np.ndarray) else cells.Z.toarray()
    wider = replace(
        cells,
        Z=np.column_stack([Z, z / deviation]),
        start=np.column_stack([cells.start, np.zeros(len(cells.start))]),
        penalty=np.append(cells.penalty, 1 / cells.C),
    )
    return rate_at(wider, members[None], np.zeros(scores_shape(cells)))[0]


def scores_shape(cells):
    """The shape of scores: one column for two classes."""
    n, K = cells.Z.shape[0], len(cells.start)
    return (n,) if K == 1 else (n, K)


def rates_at_limit(cells, members, z, limit):
    """The rates of each class at both signs of the largest effect on its log-odds.

    Parameters
    ----------
    cells : Cells
    members : ndarray of bool, shape (n_rows,)
    z : ndarray, shape (n_rows,)
    limit : float

    Returns
    -------
    ndarray, shape (2, 1) or (2, n_classes)
    """
    shares = cells.known.sizes @ cells.known.shares / cells.known.sizes.sum()
    classes = range(len(cells.start)) if len(cells.start) > 1 else [1]
    found = np.empty((2, len(cells.start)))
    for column, k in enumerate(classes):
        for row, sign in enumerate((-1, 1)):
            offset = np.zeros((len(z), len(cells.start)))
            offset[:, column] = sign * largest_effect(limit, shares[k]) * z
            found[row, column] = rate_at(cells, members[None], one_column(offset))[
                0, column
            ]
    return found


def group_rate_band(
    model: Any, X: Matrix, bags: ArrayLike, proportions: Proportions, group: ArrayLike, *,
    counts: ArrayLike | None = None, limit: float = 0.3, rounding: float = 0.0,
) -> pd.DataFrame:  # fmt: skip
    """Rates of classes in groups of the instances in bags, with a band for an effect that no bag shows.

    Parameters
    ----------
    model : CountLogistic or Pipeline
        Fitted to these bags. Its features should tell the group apart.
    X : array-like, shape (n_instances, n_features)
    bags : array-like, shape (n_instances,)
    proportions : array-like, Series, dict or DataFrame
        See `llpbook.base.check_proportions`.
    group : array-like, shape (n_instances,)
        A mask, of which True is the group; or a name for each instance, for a row per name.
    counts : array-like of int, shape (n_instances,), optional
        How many equal instances each row stands for, as in a table of cells; one if not given.
    limit : float, default 0.3
        By how much the rate of a class may change, to first order, from a bag without members of the group to a bag of
        members only, beyond what the features explain; in both directions.
    rounding : float, default 0.0
        How far each share may be from the true one, for the bounds: 0.005 for shares in percent.

    Returns
    -------
    DataFrame
        Columns ``low`` and ``high``, the band; ``plain``, the rate without the effect; ``contextual``, the rate where
        the share of the group in the bag is one more feature; ``least`` and ``most``, the bounds that need no
        assumption (0 and 1 where shares have errors); ``n``. A row per group: the rate of the second class; with more
        classes, a row per group and class.

    Raises
    ------
    ValueError
        For malformed input, another model, or a limit that is negative or no number.

    Notes
    -----
    The band covers both signs of the effect up to the limit, the contextual fit, and the 95 % interval of the plain
    rate. It is no confidence interval: it holds if the effect is within the limit. Print it for several limits. For a
    group in fewer than three bags, or with the same share in all, it is the bounds, and an `LLPWarning` says so. It
    costs two fits per group and class and one more per group.

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
    if not (isinstance(limit, Real) and 0 <= limit < np.inf):
        raise ValueError(f"limit must be a number, 0 or more, got {limit!r}")
    cells, data, names = read_cells(model, X, bags, proportions, group, counts)
    plain = rate_at(cells, cells.members, np.zeros(scores_shape(cells)))
    least, most = bounds_of(cells, rounding)
    chance = interval(cells, names, data.classes)
    parts = {"contextual": plain.copy(), "low": plain.copy(), "high": plain.copy()}
    for g, members in enumerate(cells.members):
        z = context(members, cells.known)
        if alone(members, z, cells.known):
            warn(
                f"group {names[g]!r} is in too few bags, or has the same share in all: its band is the bounds"
            )
            parts["low"][g], parts["high"][g] = least[g], most[g]
            continue
        parts["contextual"][g] = rate_with_context(cells, members, z)
        ends = rates_at_limit(cells, members, z, float(limit))
        every = np.vstack([plain[g], parts["contextual"][g], ends, *chance[:, [g]]])
        parts["low"][g], parts["high"][g] = every.min(axis=0), every.max(axis=0)
    return band_table(cells, parts | {"plain": plain}, least, most, names, data.classes)


def interval(cells, names, classes):
    """Both ends of the 95 % intervals of `group_rate`, shape (2, n_groups, n_columns); none where it has none."""
    try:
        V = covariance_of(cells.fit)
    except ValueError as error:
        warn(
            f"the band leaves out the chance of the bags, for want of an interval: {error}"
        )
        return np.empty((0, *cells.members.shape))
    sums = group_sums(cells.fit, cells.members, None, 0.0)
    table = rate_table(sums, V, names, classes, 0.95)
    shape = len(names), len(cells.start)
    return np.array([table[end].to_numpy().reshape(shape) for end in ("low", "high")])


def alone(members, z, known):
    """Whether the share of a group cannot act: too few bags hold it, or all hold the same share."""
    held = in_bags(members[None], known.bags, len(known.sizes), known.frequencies)
    return (held > 0).sum() < FEWEST or np.ptp(z) < 1e-9


def bounds_of(cells, rounding):
    """The bounds of Duncan and Davis, each of the shape of the rates; 0 and 1 where shares have errors."""
    known, K = cells.known, len(cells.start)
    inside = in_bags(cells.members, known.bags, len(known.sizes), known.frequencies)
    if known.errors.any():
        return np.zeros((len(inside), K)), np.ones((len(inside), K))
    counts, ends = known.counts.reshape(len(known.sizes), -1), []
    for column in counts.T:
        found = loose_bounds(known.sizes, column, inside, known.sizes * float(rounding))
        ends.append([end.sum(axis=1) / inside.sum(axis=1) for end in found])
    low, high = (np.column_stack(end) for end in zip(*ends, strict=True))
    return low, high


def band_table(cells, parts, least, most, names, classes):
    """The DataFrame that `group_rate_band` returns; of two classes the arrays hold the second only."""
    n = cells.known.of_rows(cells.members.T).sum(axis=0)
    columns = {name: np.clip(part, least, most) for name, part in parts.items()}
    columns |= {"least": least, "most": most}
    columns["n"] = np.broadcast_to(n[:, None], least.shape).astype(int)
    if len(classes) == 2:
        columns = {name: np.column_stack([v, v]) for name, v in columns.items()}
    order = ["low", "high", "plain", "contextual", "least", "most", "n"]
    return group_table(columns, names, classes)[order]


def read_cells(model, X, bags, proportions, group, counts):
    """Checked input as `Cells`, the `BagData`, and the names of the groups."""
    fit, data = read_fit(model, X, bags, proportions, None, counts)
    members, names = members_of(group, X, counts, len(data.bags))
    last = model[-1] if isinstance(model, Pipeline) else model
    penalty = np.full(fit.Z.shape[1], 1 / last.C)
    if last.fit_intercept and not last.penalize_intercept:
        penalty[-1] = 0.0
    Z, known = fit.Z, fit.known
    if isinstance(Z, np.ndarray):
        rows = np.column_stack([Z, members.T])
        merged = merge_rows(replace(data, X=rows))
        Z, members = merged.X[:, : Z.shape[1]], merged.X[:, Z.shape[1] :].T > 0
        codes = np.searchsorted(fit.used, merged.bags)
        known = replace(known, bags=codes, frequencies=merged.frequencies)
    order = np.argsort(known.bags, kind="stable")
    shape = fit.weights, penalty, last.C, fit.exact_up_to
    Z, known = Z[order], known.reordered(order)
    fit = fit._replace(Z=Z, known=known)
    return Cells(Z, known, members[:, order], *shape, fit), data, names
