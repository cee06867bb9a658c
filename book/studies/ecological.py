"""Bags that were published as such, with the truth that their tables hold; people in bags; and made bags.

The table ``band`` asks of many of them whether `llpbook.group_rate_band` holds the true rates.
"""

import warnings
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import expit, logit, softmax

from llpbook import CountLogistic, group_rate_band
from llpbook.datasets import load_table

from .runner import Table, cells

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


def senc(swapped=False, chosen=slice(None)):
    """Party by race: 212 precincts of North Carolina, three groups and three classes.

    Parameters
    ----------
    swapped : bool, default False
        Whether parties are the groups, and races the classes.
    chosen : slice or ndarray of int, default all
        Of the precincts.
    """
    given = pd.read_csv(FOLDER / "senc.csv").iloc[chosen]
    cells = np.array([[given[r + p] for p in PARTIES] for r in RACES.values()])
    cells = cells.transpose(2, 0, 1)
    if swapped:
        return table(given[PARTIES], cells.transpose(0, 2, 1), list(RACES))
    return table(given[list(RACES)], cells, PARTIES)


def counties():
    """The county of each row of `senc`."""
    return np.repeat(pd.read_csv(FOLDER / "senc.csv")["county"].to_numpy(), len(RACES))


class Margins(NamedTuple):
    """Two tables as published, and the cells that nobody publishes.

    Attributes
    ----------
    groups, classes : DataFrame, shapes (n_places, n_groups) and (n_places, n_classes)
    strata : ndarray, shape (n_places,)
    cells : ndarray, shape (n_places, n_groups, n_classes)
        The truth; never an input of a fit.
    """

    groups: pd.DataFrame
    classes: pd.DataFrame
    strata: np.ndarray
    cells: np.ndarray

    @property
    def truth(self):
        """Rates, in the order of the table of `ecological_rates`."""
        total = self.cells.sum(axis=0)
        return (total / total.sum(axis=1, keepdims=True)).ravel()


def senc_table():
    """Party by race in 212 precincts of eight counties of North Carolina."""
    file = pd.read_csv(FOLDER / "senc.csv")
    cells = np.array([[file[r + p] for p in PARTIES] for r in RACES.values()])
    cells = cells.transpose(2, 0, 1)
    return Margins(file[list(RACES)], file[PARTIES], file["county"].to_numpy(), cells)


def robinson_table(people=500):
    """Illiterate by birth abroad in 1,976 counties of 48 states, 1930, as if each county had so many people."""
    file = pd.read_csv(FOLDER / "forgnlit30c.csv").dropna()
    born = np.rint(people * file["X"].to_numpy())
    members = np.column_stack([people - born, born])
    illiterate = members * file[["W2", "W1"]].to_numpy()
    cells = np.stack([members - illiterate, illiterate], axis=2)
    groups = pd.DataFrame(members, columns=["born here", "born abroad"])
    classes = pd.DataFrame(cells.sum(axis=1), columns=["literate", "illiterate"])
    return Margins(groups, classes, file["state"].to_numpy(), cells)


def reg(chosen=slice(None)):
    """Registration by race: 275 Southern counties, or some of them."""
    given = pd.read_csv(FOLDER / "reg.csv").iloc[chosen]
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


def tilted(n_bags, seed):
    """Made bags of two groups: both rates change with the share of the members, those of the members more or less."""
    rng = np.random.default_rng([seed, n_bags])
    shape = [(1.2, 8), (1.2, 2.4), (20, 80), (0.5, 0.9)][rng.integers(4)]
    share, n = rng.beta(*shape, n_bags), np.exp(rng.uniform(7.6, 12.2, n_bags))
    p = rng.choice([0.03, 0.1, 0.3, 0.5, 0.8])
    unit = 1 / (p * (1 - p))
    gap, slope, own = rng.normal(scale=[0.25, 0.2, 0.1]) * 4 * p * (1 - p)
    noise = rng.uniform(0.2, 0.8) * rng.normal(size=(3, n_bags))
    z, s = share - share.mean(), share.mean()
    f = logit(p) + unit * slope * z + 0.7 * noise[0]
    rates = [f + unit * (gap * (1 - s) + own * z) + 0.7 * noise[1]]
    rates = expit(np.column_stack([*rates, f - unit * gap * s + 0.7 * noise[2]]))
    members = np.round(n * share).astype(int)
    people = pd.DataFrame({"member": members, "other": n.astype(int) - members})
    return two_classes(people, rates)


def confounded(n_bags, seed):
    """Made bags of two to four groups and classes: three unseen properties act on who lives there and on the rates."""
    rng = np.random.default_rng([seed, n_bags, 1])
    G, K = rng.integers(2, 5, size=2)
    seen = rng.normal(size=(n_bags, 3))
    who = rng.normal(scale=1.2, size=G) + seen @ rng.normal(scale=0.8, size=(3, G))
    who = softmax(who + rng.normal(scale=0.6, size=(n_bags, G)), axis=1)
    people = np.round(np.exp(rng.normal(8, 1.2, n_bags))[:, None] * who).astype(int)
    base, of_group = rng.normal(scale=1.3, size=K), rng.normal(scale=0.7, size=(G, K))
    of_bag = rng.normal(scale=0.3, size=(3, K)) + rng.normal(scale=0.15, size=(G, 3, K))
    f = (
        base
        + of_group[:, None]
        + seen @ of_bag
        + rng.normal(scale=0.3, size=(G, n_bags, K))
    )
    cells = rng.multinomial(people, softmax(f, axis=2).transpose(1, 0, 2))
    keep = people.sum(axis=1) > 0
    people = pd.DataFrame(people[keep], columns=[f"group {g}" for g in range(G)])
    return table(people, cells[keep], list(range(K)))


@cache
def adult():
    """Eleven columns of `adult` that serve as bags, groups and classes."""
    given = load_table("adult")
    text = given[["occupation", "education", "native-country", "relationship"]].astype(
        str
    )
    made = {
        "occupation": text["occupation"], "education": text["education"],
        "country": text["native-country"], "age": given["age"].clip(upper=75),
        "occupation and education": text["occupation"] + text["education"],
        "occupation and relationship": text["occupation"] + text["relationship"],
        "sex": given["sex"].astype(str),
        "race": given["race"].astype(str).where(given["race"].isin(["White", "Black"]), "rest"),
        "rich": (given["class"] == ">50K").astype(int),
        "married": given["marital-status"].astype(str).str.startswith("Married").astype(int),
        "long hours": (given["hours-per-week"] > 40).astype(int),
    }  # fmt: skip
    return pd.DataFrame(made)


#: What tells a bag, a group and a class of people; a column is not asked of bags that it defines.
PEOPLE = [
    (bag, group, label)
    for bag in (
        "occupation", "education", "country", "age", "occupation and education",
        "occupation and relationship",
    )
    for group, label in [
        ("sex", "rich"), ("race", "rich"), ("sex", "married"), ("race", "long hours"),
        ("married", "rich"),
    ]
    if not ("relationship" in bag and "married" in (group, label))
]  # fmt: skip


def people(seed):
    """People of `adult` in bags by a column or two, with a group and a class that change with the seed."""
    bag, group, label = PEOPLE[seed % len(PEOPLE)]
    found = adult().groupby([bag, group, label]).size().unstack(fill_value=0)
    found = found.unstack(group, fill_value=0)
    names = found.columns.get_level_values(1).unique()
    cells = np.array([[found[k, g] for k in (0, 1)] for g in names]).transpose(2, 0, 1)
    return table(
        pd.DataFrame(cells.sum(axis=2), columns=names.astype(str)), cells, [0, 1]
    )


def drawn(kind, n_bags, seed):
    """A `Published` table of a kind; of the published bags ``n_bags`` are drawn."""
    rng = np.random.default_rng([seed, n_bags])
    if kind == "people":
        return people(seed)
    if kind in ("tilted", "confounded", "reversed"):
        made = {"tilted": tilted, "confounded": confounded, "reversed": reversed_bags}
        return made[kind](n_bags, seed)
    total = 275 if kind == "counties" else 212
    chosen = np.sort(rng.choice(total, n_bags, replace=False))
    return reg(chosen) if kind == "counties" else senc(kind == "parties", chosen)


def fitted(d, C=10.0, **options):
    """Fit a model, by default with the C for rates of groups; return the arguments of functions of groups, too."""
    model = CountLogistic(C, **options)
    model = model.fit(d.X, d.bags, d.proportions, counts=d.counts)
    return (model, d.X, d.bags, d.proportions, d.group), {"counts": d.counts}


def run(cell, seed):
    """How many true rates the band holds, and how wide the band is."""
    d = drawn(**cell, seed=seed)
    given, options = fitted(d)
    with warnings.catch_warnings(action="ignore"):
        band = group_rate_band(*given, **options)
    width, truth = band["high"] - band["low"], d.truth
    return {
        "rates": len(truth),
        "inside": int(((band["low"] <= truth) & (truth <= band["high"])).sum()),
        "width": round(float((width / (band["most"] - band["least"])).max()), 4),
        "limit": round(float(band["limit"].median()), 4),
        "error": round(float((band["plain"] - truth).abs().mean()), 4),
    }


PUBLISHED = cells(kind=["counties", "precincts", "parties"], n_bags=[14, 30, 100])
MADE = cells(kind=["tilted", "confounded", "reversed"], n_bags=[14, 50, 200])
TABLES = [
    Table(
        "band",
        "band-3",
        [*PUBLISHED, *cells(kind=["people"], n_bags=[0]), *MADE],
        run,
        "whether the band of a rate holds the truth, on published and made bags",
        "inside",
    )
]
