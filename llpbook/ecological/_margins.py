"""Read two published tables: the groups of each place, and the classes of each place."""

import numpy as np
import pandas as pd

from .._input import check_column, hidden_number, numbers, places_of, quote
from ..base import NotIdentifiableError, warn
from ._strata import Margins

#: Places below which no rate is fitted.
FEWEST_PLACES = 3
#: Largest relative difference of the two sums of people of a place.
SUMS_AGREE = 1e-6
#: Largest error of a share that was rounded to a percent.
ROUNDED = 0.006


def read_margins(groups, classes, strata=None):
    """Check two tables, and return `Margins`; places without people are left out.

    Parameters
    ----------
    groups, classes, strata
        See `ecological_rates`.

    Returns
    -------
    Margins

    Raises
    ------
    NotIdentifiableError
        If there are too few places, or the shares of no group differ.
    ValueError
        For malformed input.
    """
    members, places, group_names = _read_counts("groups", groups)
    counts, others, class_names = _read_counts("classes", classes)
    if places is not None and others is not None:
        counts = counts[_matched(groups, classes)]
    if len(members) != len(counts):
        cure = turned(members, counts)
        raise ValueError(
            f"groups and classes must have a row per place each, got {len(members)} and {len(counts)} rows"
            + f"; {cure}" * bool(cure)
        )
    codes, names = _read_strata(strata, places, len(members))
    sizes = members.sum(axis=1)
    gaps = np.abs(sizes - counts.sum(axis=1))
    if (gaps > SUMS_AGREE * np.maximum(sizes, 1)).any():
        k = int(np.argmax(gaps))
        place = k if places is None else places[k]
        cure = (
            "check_margins(groups, classes) lists what does not agree and reconciles it"
        )
        raise ValueError(
            f"groups and classes must have the same sum in each place, got {sizes[k]:g} and {counts[k].sum():g} people "
            f"in place {quote(place)}; {turned(members, counts) or cure}"
        )
    _warn_of_percent(sizes)
    there = np.flatnonzero(sizes > 0)
    order = there[np.argsort(codes[there], kind="stable")]
    kept, codes = np.unique(codes[order], return_inverse=True)
    margins = Margins(
        members=members[order], counts=counts[order], stratum=codes,
        groups=group_names, classes=class_names, strata=names[kept],
    )  # fmt: skip
    return require_differences(margins)


def _read_counts(argument, table):
    """Counts, names of places or None, and names of columns."""
    frame = isinstance(table, pd.DataFrame)
    hidden = hidden_number(np.ravel(np.asarray(table)).tolist(), argument)
    if hidden:
        raise ValueError(
            f"{argument} must be numbers: {hidden}. Then pass both to check_margins with rule='scale'"
        )
    values = numbers(argument, table)
    if values.ndim != 2 or values.shape[1] < 2:
        raise ValueError(
            f"{argument} must be a table with a row per place and two or more columns of counts, got shape "
            f"{values.shape}"
        )
    cure = shares_as_counts(argument, values, frame)
    if cure and (values != np.round(values)).any():
        raise ValueError(f"{argument} must be counts of people, and {cure}")
    wrong = ~(np.isfinite(values) & (values >= 0))
    if wrong.any():
        k, j = np.argwhere(wrong)[0]
        raise ValueError(
            f"{argument} must be counts of people, 0 or more, got {quote(values[k, j])} in row {k}, column {j}; a "
            "place that has not reported is left out of both tables, an empty cell is a 0, and a small number that is "
            "not published the middle of what it can be"
        )
    columns = pd.Index(table.columns) if frame else pd.RangeIndex(values.shape[1])
    if not values.any(axis=0).all():
        empty = columns[~values.any(axis=0)][0]
        raise ValueError(
            f"{argument} has nobody in column {quote(empty)}: leave it out"
        )
    named = frame and not isinstance(table.index, pd.RangeIndex)
    if named and not table.index.is_unique:
        twice = table.index[table.index.duplicated()][0]
        raise ValueError(
            f"{argument} must have a row per place, got place {quote(twice)} more than once"
        )
    return values, table.index if named else None, columns


def _matched(groups, classes):
    """Rows of the second table in the order of the places of the first."""
    places, others = groups.index, classes.index
    rows = places_of(others, places)
    if (rows < 0).any() or len(others) != len(places):
        lost = places[rows < 0] if (rows < 0).any() else others.difference(places)
        cure = turned(groups, classes)
        raise ValueError(
            f"groups and classes must have the same places: {quote(lost[0])} is in one of them only"
            + f"; {cure}" * bool(cure)
        )
    return rows


def turned(groups, classes):
    """Say which of two tables to transpose, if their places or sums agree then; "" if none.

    Parameters
    ----------
    groups, classes : DataFrame or ndarray
        Of DataFrames the places are compared, of arrays the sums.

    Returns
    -------
    str
    """

    def agree(one, other):
        if len(one) != len(other):
            return False
        if isinstance(one, pd.DataFrame):
            if one.index.nlevels != other.index.nlevels:
                return False
            return bool(one.index.isin(other.index).all())
        return np.allclose(one.sum(axis=1), other.sum(axis=1), rtol=SUMS_AGREE)

    cures = {
        "groups.T and classes.T": agree(groups.T, classes.T),
        "groups.T": agree(groups.T, classes),
        "classes.T": agree(groups, classes.T),
    }
    cure = next((cure for cure, mends in cures.items() if mends), None)
    return f"a row must be a place, not a column: pass {cure}" if cure else ""


def as_wide(table, name):
    """Say how to make a row per place of a table with a row per place and group; "" where it is none."""
    words = [c for c in table if table[c].map(type).eq(str).all()]
    left, named = table.columns.drop(words), not isinstance(table.index, pd.RangeIndex)
    keys = [table[c] for c in words] + [table.index] * named
    if len(left) != 1 or len(keys) != 2 or any(key.is_unique for key in keys):
        return ""
    append = ", append=True" * named
    return f"A row must be a place: pass {name}.set_index({words}{append})[{quote(left[0])}].unstack()"


def shares_as_counts(argument, values, frame=True):
    """Say how to make counts of a table of shares or percent; "" where it is none.

    Parameters
    ----------
    argument : str
        "groups" or "classes".
    values : ndarray, shape (n_places, n_columns)
        NaN where a number is missing.
    frame : bool
        Whether the user has a DataFrame.

    Returns
    -------
    str
    """
    sums = np.nansum(values, axis=1)
    sums = sums[sums > 0]
    for whole, unit in ((1, "shares"), (100, "percent")):
        rounding = ROUNDED * whole * values.shape[1]
        if len(sums) and (np.abs(sums - whole) <= rounding).all():
            line = (
                f"{argument}.div({argument}.sum(axis=1), axis=0).mul(sizes, axis=0)"
                if frame
                else f"{argument} / {argument}.sum(axis=1, keepdims=True) * sizes[:, None]"
            )
            return (
                f"these are {unit}, which sum to {whole} in each place: with the people of each place in sizes, pass "
                f"{line}"
            )
    return ""


def _warn_of_percent(sizes):
    """Warn where each place has 100 people, as two columns of whole percent seem to."""
    if len(sizes) and np.all(sizes == 100):
        warn(
            "each place has 100 people, so all weigh alike: if the tables hold percent, multiply both by the people of "
            "each place and divide by 100, as groups.mul(sizes / 100, axis=0)"
        )


def _read_strata(strata, places, n):
    """The number of the stratum of each place, and the names of the strata."""
    if strata is None:
        return np.zeros(n, dtype=int), pd.Index(["all"])
    if isinstance(strata, str):
        if places is None or strata not in places.names:
            names = [] if places is None else list(places.names)
            raise ValueError(
                f"strata must name a level of the index of groups, one of {names}, or be one value per place, got "
                f"{strata!r}"
            )
        strata = places.get_level_values(strata)
    elif isinstance(strata, pd.Series) and places is not None:
        rows = places_of(strata.index, places)
        if (rows < 0).any():
            raise ValueError(
                f"strata has no entry for place {quote(places[rows < 0][0])}"
            )
        strata = strata.to_numpy()[rows]
    codes, names = pd.factorize(check_column("strata", strata, n), sort=True)
    return codes, pd.Index(names)


def require_differences(margins):
    """Return the margins; NotIdentifiableError where they cannot identify a rate."""
    if len(margins.sizes) < FEWEST_PLACES:
        raise NotIdentifiableError(
            f"rates need {FEWEST_PLACES} places or more, got {len(margins.sizes)}"
        )
    shares = margins.members / margins.sizes[:, None]
    if np.ptp(shares, axis=0).max() < 1e-9:
        raise NotIdentifiableError(
            "the shares of the groups are the same in all places, so the classes of the places say nothing of rates"
        )
    return margins
