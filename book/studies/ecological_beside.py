"""The tables on which other tools of ecological inference are tried, and what they said: errors, hits, seconds.

``python -m studies.ecological_beside FOLDER`` writes the tables for ``ecological_beside.R``, whose rates are stored as
``results/ecological_beside.csv``; truth is joined here, and never in the files that a method reads.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd

from . import ecological, strata
from .runner import RESULTS

#: Six made worlds: of `studies.strata` with 20 strata of 6 places, and tables whose relation is reversed.
WORLDS = ("one rate", "by stratum", "places differ", "related", "strongly related")
SMALL = ("small minority",)


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
        groups, classes = (t.set_axis([f"{k}{j}" for j in range(t.shape[1])], axis=1) for k, t in (("group", d.groups), ("class", d.classes)))  # fmt: skip
        both = pd.concat([groups.reset_index(drop=True), classes.reset_index(drop=True)], axis=1)  # fmt: skip
        both.round().astype(int).to_csv(Path(folder) / f"{name}.csv", index=False)


def results():
    """A row per table and method: mean absolute error, hits and mean width of the intervals, seconds, worst Rhat."""
    rows = pd.read_csv(RESULTS / "ecological_beside.csv")
    known = {name: d.truth for name, d in tables().items()}
    out = []
    for (name, method), part in rows.groupby(["table", "method"], sort=False):
        truth = known[name]
        inside = (part["low"].to_numpy() <= truth) & (truth <= part["high"].to_numpy())
        out.append({
            "table": name, "method": method, "error": np.abs(part["rate"] - truth).mean(), "inside": inside.mean(),
            "width": (part["high"] - part["low"]).mean(), "seconds": part["cpu_seconds"].iloc[0], "rhat": part["rhat"].max(),
        })  # fmt: skip
    return pd.DataFrame(out)


if __name__ == "__main__":
    write(sys.argv[1])
