"""Bags that were published as such, with the truth that their tables hold, and made bags with a reversed relation."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import expit

FOLDER = Path(__file__).parent / "published"
RACES = {"white": "wh", "black": "bl", "natam": "natam"}
PARTIES = ["dem", "rep", "non"]


class Published(NamedTuple):
    """A table of bags, one row per bag and group.

    Attributes
    ----------
    X : DataFrame, shape (n_rows, n_groups)
        1 in the column of the group of the row.
    bags : ndarray of int, shape (n_rows,)
    proportions : DataFrame, shape (n_bags, n_classes)
    group : ndarray of str, shape (n_rows,)
    counts : ndarray of int, shape (n_rows,)
        People of the group in the bag.
    truth : Series
        The rates, by group, or by group and class for more than two classes. Never an input of a fit.
    """

    X: pd.DataFrame
    bags: np.ndarray
    proportions: pd.DataFrame
    group: np.ndarray
    counts: np.ndarray
    truth: pd.Series


def table(people, cells, classes):
    """A `Published` table.

    Parameters
    ----------
    people : DataFrame, shape (n_bags, n_groups)
    cells : ndarray, shape (n_bags, n_groups, n_classes)
        Of which only the sums over groups are given to a fit.
    classes : list
    """
    L, groups = len(people), people.columns.to_numpy()
    group = np.tile(groups, L)
    X = pd.DataFrame({name: (group == name).astype(float) for name in groups})
    margins, rates = cells.sum(axis=1), cells.sum(axis=0)
    rates = rates / rates.sum(axis=1, keepdims=True)
    shares = pd.DataFrame(margins / margins.sum(axis=1, keepdims=True), columns=classes)
    truth = pd.DataFrame(rates, pd.Index(groups, name="group"), classes)
    truth = truth.rename_axis(columns="class").sort_index()
    truth = truth[classes[1]] if len(classes) == 2 else truth.stack()
    of = np.repeat(np.arange(L), len(groups))
    return Published(X, of, shares, group, people.to_numpy().ravel(), truth)


def senc():
    """Party by race: 212 precincts of North Carolina, three groups and three classes."""
    given = pd.read_csv(FOLDER / "senc.csv")
    cells = np.array([[given[r + p] for p in PARTIES] for r in RACES.values()])
    return table(given[list(RACES)], cells.transpose(2, 0, 1), PARTIES)


def reg():
    """Registration by race: 275 Southern counties."""
    given = pd.read_csv(FOLDER / "reg.csv")
    black = (given["X"] * given["N"]).round().astype(int)
    people = pd.DataFrame({"black": black, "white": given["N"] - black})
    return two_classes(people, given[["W1", "W2"]].fillna(0).to_numpy())


def two_classes(people, rates):
    """A `Published` table of the classes 0 and 1 from the rate of each group in each bag."""
    yes = np.round(people.to_numpy() * rates).astype(int)
    return table(people, np.stack([people.to_numpy() - yes, yes], axis=2), [0, 1])


def reversed_bags(n_bags=60, seed=0):
    """Made bags: members of the group have the class more often, but bags with many members have it less often."""
    rng = np.random.default_rng(seed)
    share, n = rng.beta(1.2, 6.0, n_bags), rng.integers(2_000, 200_000, n_bags)
    rest = expit(-2.5 - 8 * share + 0.5 * rng.normal(size=n_bags))
    members = np.round(n * share).astype(int)
    people = pd.DataFrame({"member": members, "other": n - members})
    return two_classes(people, np.column_stack([0.02 + 1.5 * rest, rest]))
