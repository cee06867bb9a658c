"""Tables of rates, differences and parts from a joint estimate, and the correlation that would change a rate."""

from numbers import Real

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from sklearn.utils import check_random_state

from ..base import warn
from ..uncertainty import count_bounds
from ._joint import Difference, Ratios, all_rates, answers, gain_of_strata, moves

#: Between the names of a difference.
MINUS = " − "
#: A gain of strata under so many of its standard errors says that they hurt, above as many that they help.
CLEAR = 2.0
#: Columns that are rates.
RATES = ["rate", "low", "high", "band_low", "band_high"]


def rate_table(result, by_stratum):
    """Table of rates with bounds, cut at the bounds; for all places, or by stratum."""
    joint, m = result.joint, result.joint.margins
    columns = answers(
        joint, all_rates(m), result.level, result.correlation, by_stratum=by_stratum
    )
    sizes, counts = m.sizes[:, None, None], m.counts[:, None, :]
    least, most = count_bounds(sizes, counts, m.members[:, :, None])
    sums = [m.by_stratum(x).astype(float) for x in (least, most, m.members)]
    least, most, n = sums if by_stratum else [x.sum(axis=0) for x in sums]
    n = np.repeat(n, len(m.classes), axis=-1).ravel()
    names, levels = [m.groups, m.classes], ["group", "class"]
    if by_stratum:
        names, levels = [m.strata, *names], ["stratum", *levels]
    index = pd.MultiIndex.from_product(names, names=levels)
    table = pd.DataFrame({k: v.ravel() for k, v in columns.items()}, index)[n > 0]
    least, most = (x.ravel()[n > 0] / n[n > 0] for x in (least, most))
    n = np.rint(n[n > 0]).astype(int)
    rates = table[RATES].clip(least, most, axis=0)
    return table.assign(**rates, least=least, most=most, n=n)


def difference_table(result, groups, classes):
    """See `EcologicalRates.difference`."""
    if (groups is None) == (classes is None):
        raise ValueError("difference needs groups= or classes=, a pair of names")
    m, rates = result.joint.margins, all_rates(result.joint.margins)
    rows = np.arange(len(rates.top)).reshape(len(m.groups), -1)
    if groups is not None:
        a, b = rows[_pair("groups", groups, m.groups)]
        names = {"groups": [MINUS.join(map(str, groups))], "class": m.classes}
    else:
        a, b = rows.T[_pair("classes", classes, m.classes)]
        names = {"group": m.groups, "classes": [MINUS.join(map(str, classes))]}
    index = pd.MultiIndex.from_product(names.values(), names=names)
    first, second = (Ratios(rates.top[i], rates.bottom[i]) for i in (a, b))
    quantity = Difference(first, second)
    columns = answers(result.joint, quantity, result.level, result.correlation)
    table = pd.DataFrame({"difference": columns.pop("rate"), **columns}, index)
    ends = ["low", "high", "band_low", "band_high"]
    return table.assign(**table[ends].clip(-1, 1))


def among_table(result, classes):
    """See `EcologicalRates.among`."""
    m, rates = result.joint.margins, all_rates(result.joint.margins)
    columns = [_position("classes", name, m.classes) for name in classes]
    if len(columns) < 2 or len(set(columns)) < len(columns):
        raise ValueError(
            f"classes must be two or more different names, got {list(classes)!r}"
        )
    rows = np.arange(len(rates.top)).reshape(len(m.groups), -1)[:, columns].ravel()
    inside = np.isin(np.arange(len(m.classes)), columns)
    quantity = Ratios(rates.top[rows], rates.bottom[rows] * inside)
    names = [m.groups, m.classes[columns]]
    index = pd.MultiIndex.from_product(names, names=["group", "class"])
    table = pd.DataFrame(
        answers(result.joint, quantity, result.level, result.correlation), index
    )
    n = np.rint(result.joint.cells.sum(axis=0)[:, inside].sum(axis=1)).astype(int)
    return table.assign(n=np.repeat(n, len(columns)), **table[RATES].clip(0, 1))


def correlation_for(result, value, group, class_):
    """See `EcologicalRates.correlation_needed`."""
    if not (isinstance(value, Real) and 0 <= value <= 1):
        raise ValueError(f"value must be a rate in [0, 1], got {value!r}")
    m, rates = result.joint.margins, all_rates(result.joint.margins)
    row = _position("group", group, m.groups) * len(m.classes)
    row += _position("class_", class_, m.classes)
    quantity = Ratios(rates.top[[row]], rates.bottom[[row]])

    interval = answers(result.joint, quantity, result.level, 0.0)

    def beyond(correlation):
        down, up = moves(result.joint, quantity, correlation)
        low, high = interval["low"] + down, interval["high"] + up
        return max(low[0] - value, value - high[0])

    if beyond(0.0) <= 0:
        return 0.0
    return np.inf if beyond(1.0) > 0 else float(brentq(beyond, 0, 1, xtol=1e-3))


def gain_table(margins, random_state):
    """See `EcologicalRates.gain_of_strata`."""
    m = margins
    if len(m.strata) == 1 or len(m.strata) == len(m.sizes):
        raise ValueError(
            f"strata must be two or more, of two places or more, got {len(m.strata)} for {len(m.sizes)} places"
        )
    gains = gain_of_strata(m, check_random_state(random_state))
    gain, error = gains.mean(), gains.std(ddof=1) / np.sqrt(len(gains))
    if gain < -CLEAR * error:
        warn(
            f"held-out places are less probable with the strata than with one rate everywhere (gain {gain:.2g} ± "
            f"{error:.1g} per place): their rates do not differ, or the strata are too small. They widen the intervals "
            "and bring rates no nearer to the truth; use larger strata, or none"
        )
    return pd.Series({"gain": gain, "error": error, "places": len(gains)})


def homogeneous_places(result, share):
    """See `EcologicalRates.homogeneous`."""
    if not (isinstance(share, Real) and 0.5 < share <= 1):
        raise ValueError(f"share must be a number above 0.5, up to 1, got {share!r}")
    m, table = result.joint.margins, result.table
    there = (m.members >= share * m.sizes[:, None]).T.astype(float)
    n, sums = there @ m.sizes, there @ m.counts
    with np.errstate(invalid="ignore"):  # no such place: NaN
        rate = sums / n[:, None]
    index = pd.MultiIndex.from_product([m.groups, m.classes], names=["group", "class"])
    alone = pd.DataFrame({"rate": rate.ravel()}, index)
    for name, values in {"places": there.sum(axis=1), "n": np.rint(n)}.items():
        alone[name] = np.repeat(values.astype(int), len(m.classes))
    ends = table[["rate", "band_low", "band_high"]].reindex(index)
    return alone.join(ends.rename(columns={"rate": "estimate"}))


def _position(argument, name, names):
    if name not in names:
        raise ValueError(f"{argument} must be among {names.tolist()}, got {name!r}")
    return names.get_loc(name)


def _pair(argument, pair, names):
    if isinstance(pair, str) or len(pair) != 2 or pair[0] == pair[1]:
        raise ValueError(f"{argument} must be a pair of different names, got {pair!r}")
    return [_position(argument, name, names) for name in pair]
