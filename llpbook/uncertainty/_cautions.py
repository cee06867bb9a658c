"""Warnings where bags contradict the assumptions of an interval."""

import numpy as np
from scipy.special import expit, softmax

from ..base import warn
from ._covariance import WEAKER
from ._deviation import NormalCounts

#: Below so many bags or degrees of freedom intervals are too short; below so many bags per weight rates have none.
FEW_BAGS, FEW_DEGREES, FEW_PER_WEIGHT = 30, 20, 3
#: A change of a rate that no report shows.
UNSEEN = 0.002
#: Bags deviate from a model if the deviation is above the first number, in log-odds, and twice the logarithm of the
#: likelihood ratio above the second, which chance exceeds in one of 200 fits.
NOTABLE, SURE_RATIO = 0.1, 6.6


def deviations(scores, Z, observed):
    """Deviation of the bags from a fit beyond the chance of the counts, per class.

    Parameters
    ----------
    scores : ndarray, shape (n_rows,) or (n_rows, n_classes)
    Z : ndarray or sparse array, shape (n_rows, n_columns)
    observed : BagCounts

    Returns
    -------
    list of NormalCounts
        One per column of scores: sums over bags, so those of chunks can be joined.
    """
    S = expit(scores)[:, None] if scores.ndim == 1 else softmax(scores, axis=1)
    L, errors = len(observed.sizes), observed.errors
    counts = observed.counts.reshape(L, -1)
    errors = errors[:, None] if errors.ndim == 1 else np.diagonal(errors, 0, 1, 2)
    of_classes = zip(S.T, counts.T, errors.T, strict=True)
    return [NormalCounts.of(s, c, e, Z, observed) for s, c, e in of_classes]


def caution(n_bags, n_weights, parts, deviation=0.0):
    """Warn where bags are few, and where they deviate from the model beyond the chance of their counts.

    Parameters
    ----------
    n_bags, n_weights : int
    parts : list of NormalCounts
        From `deviations`.
    deviation : float, default 0.0
        Of the intercepts of bags, if the model has them: then it explains such bags.
    """
    few = caution_of_few(n_bags, n_weights)
    if few or deviation:
        return
    ratio, most = max(part.flat().ratio() for part in parts)
    if ratio > SURE_RATIO and most > NOTABLE:
        points = 100 * most * max(part.slope for part in parts)
        warn(
            f"the shares of {n_bags} bags deviate from the model by {most:.2g} in log-odds (about {points:.0f} points) "
            "beyond the chance of their counts: either the log-odds are no line (try squares of features, or "
            "CountBoosting), or bags have an effect that is not in the features, and intervals hold only if it is "
            "unrelated to them. Report group_rate_bounds, and group_rate_band for a stated limit; bag_report names the "
            "bags, and bag_deviation='estimate' widens intervals of slopes"
        )


def caution_of_few(n_bags, n_weights):
    """Warn where there are too few bags for an interval; True where there are no more bags than weights."""
    left = n_bags - n_weights
    instead = "group_rate gives the bounds in place of an interval; state C, or take fewer features"
    if left <= 0:
        warn(
            f"{n_bags} bags for {n_weights} coefficients: the penalty stands as a prior (Laplace's approximation), and "
            f"an interval says what C allows rather than what the bags show, and can be far too short. {instead}"
        )
    elif n_bags < FEW_PER_WEIGHT * n_weights:
        warn(
            f"{n_bags} bags are under {FEW_PER_WEIGHT} for each of {n_weights} coefficients: an interval of 95 % holds "
            f"less often than it says (a rate 50 to 80 times in 100 with random bags). {instead}"
        )
    elif n_bags < FEW_BAGS or left < FEW_DEGREES:
        warn(
            f"{n_bags} bags and {left} degrees of freedom are few: with under {FEW_BAGS} bags or {FEW_DEGREES} degrees "
            "an interval of 95 % holds less often than it says (82 to 88 times in 100 with 30 random bags and two "
            "features). Report group_rate_bounds beside it, or take fewer features"
        )
    return left <= 0


def caution_of_rates(table, V, n_bags, n_weights):
    """Replace intervals of rates by the bounds where bags are few; else warn of doubtful intervals.

    Parameters
    ----------
    table : DataFrame
        From `rate_table`.
    V : Sandwich or LaplaceCovariance
    n_bags, n_weights : int

    Returns
    -------
    DataFrame
    """
    caution_of_held_rates(table, V, n_bags, n_weights)
    table = table.drop(columns="weaker")
    if n_bags < FEW_PER_WEIGHT * n_weights:
        return table.assign(low=table["least"], high=table["most"])
    open_ends = table["least"] < table["most"]
    pinned = table.index[open_ends & ((table["low"] <= 0) | (table["high"] >= 1))]
    if len(pinned):
        first = ", ".join(map(str, pinned[:3]))
        more = ", …" if len(pinned) > 3 else ""
        warn(
            f"{len(pinned)} of {len(table)} intervals end at 0 or 1 ({first}{more}): a rate so near to the end has no "
            "symmetric interval, and the model may be too sure. Report the bounds, least and most"
        )
    return table


def caution_of_held_rates(table, V, n_bags, n_weights):
    """`caution_of_penalty` of rates, unless bags are so few that the penalty must hold them.

    Parameters
    ----------
    table : DataFrame
        From `rate_table`.
    V : Sandwich or LaplaceCovariance
    n_bags, n_weights : int
    """
    if n_bags >= FEW_PER_WEIGHT * n_weights:
        errors = table["error"].clip(lower=UNSEEN)
        caution_of_penalty("rate", table["rate"], errors, table["weaker"], V.C)


def caution_of_penalty(what, values, errors, weaker, C):
    """Warn where a weaker penalty would move an estimate by more than its error.

    Parameters
    ----------
    what : str
    values, errors, weaker : Series
        Estimates, their standard errors, and estimates by a Newton step with a penalty `WEAKER` times as weak.
    C : float
    """
    moved = ((weaker - values).abs() / errors).fillna(0)
    if (moved > 1).any():
        at, weak = int(moved.argmax()), WEAKER * C
        warn(
            f"the penalty C={C:g} holds {(moved > 1).sum()} of {len(moved)} {what}s: with C={weak:g} that of "
            f"{moved.index[at]} would be about {weaker.iloc[at]:.3g} instead of {values.iloc[at]:.3g}, "
            f"{moved.iloc[at]:.1f} standard errors away, which no interval counts. Fit with C={weak:g} where there are "
            "several bags per coefficient; else choose C by LLPGridSearchCV and report the bounds"
        )
