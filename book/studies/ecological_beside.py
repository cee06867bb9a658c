"""The tables on which other tools of ecological inference are tried, and what they said: errors, hits, seconds.

``python -m studies.ecological_beside FOLDER`` writes the tables for ``ecological_beside.R`` and
``ecological_beside_pyei.py``, whose rates are stored as ``results/ecological_beside.csv``; truth is joined here, and
never in the files that a method reads.
"""

import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from llpbook import ecological_rates

from . import ecological, strata
from .runner import RESULTS

#: Six made worlds: of `studies.strata` with 20 strata of 6 places, and tables whose relation is reversed.
WORLDS = ("one rate", "by stratum", "places differ", "related", "strongly related")


def tables():
    """The tables by name."""
    found = {"senc": ecological.senc_table(), "robinson": ecological.robinson_table()}
    found["reg"] = strata.PUBLISHED["reg"]()
    for world in WORLDS:
        found[world] = strata.made(world, "20 x 6", "large", 2, 0)
    found["small minority"] = strata.made("by stratum", "20 x 6", "small", 2, 0)
    found["reversed"] = strata.as_margins(ecological.reversed_bags())
    return found


def write(folder):
    """A file per table: columns ``group0`` …, ``class0`` …, one row per place."""
    for name, d in tables().items():
        parts = {"group": d.groups, "class": d.classes}
        columns = [f"{kind}{j}" for kind, t in parts.items() for j in range(t.shape[1])]
        values = np.rint(np.column_stack([*parts.values()])).astype(int)
        pd.DataFrame(values, columns=columns).to_csv(
            Path(folder) / f"{name}.csv", index=False
        )


def results():
    """A row per table and method: mean absolute error, hits and mean width of the intervals, CPU seconds, worst Rhat.

    The methods are those of ``ecological_beside.csv``, and `llpbook.ecological_rates` with its interval and its band.
    """
    rows, out = pd.read_csv(RESULTS / "ecological_beside.csv"), []
    for name, d in tables().items():
        strata_of = d.strata if len(np.unique(d.strata)) > 1 else None
        with warnings.catch_warnings(action="ignore"):
            own = ecological_rates(d.groups, d.classes, strata=strata_of).table
        parts = dict(iter(rows[rows["table"] == name].groupby("method", sort=False)))
        band = own.drop(columns=["low", "high"]).rename(columns=lambda c: c.removeprefix("band_"))  # fmt: skip
        for method, part in {**parts, "interval": own, "band": band}.items():
            low, high = part["low"].to_numpy(), part["high"].to_numpy()
            out.append({
                "table": name, "method": method, "error": np.abs(part["rate"].to_numpy() - d.truth).mean(),
                "inside": ((low <= d.truth) & (d.truth <= high)).mean(), "width": (high - low).mean(),
                "seconds": part.get("cpu_seconds", pd.Series(np.nan)).iloc[0],
                "rhat": part.get("rhat", pd.Series(np.nan)).max(),
            })  # fmt: skip
    return pd.DataFrame(out)


if __name__ == "__main__":
    write(sys.argv[1])
