"""How often the tests of `llpbook.diagnosis.diagnose` reject: level where a statement holds, power where not.

Draw instances of a kind, make bags of a variant, test; the rates over many draws are the level of a test where the
statement holds and its power where it does not. One row is 50 draws; each test is counted at 5 %, by itself, and so is
what is left of the variants. ``shares`` says how `diagnose` is told to take them: judged, as counts, as estimates.

What is drawn (``data``), two classes, five features, the classes 1.5 apart in the first, unless it says otherwise:

- ``blobs``: Gaussian, the second class with half the variance in the second feature.
- ``heavy``, ``skewed``: instead of Gaussian, t with 1.5 degrees of freedom; lognormal.
- ``one-hot``: 8 nominal columns of 3 to 8 values, most of them rare, as 44 columns of 0 and 1.
- ``covariances``: the second class has four times the variance in two features, and correlated ones.
- ``three classes``: the third 1.5 apart in the second feature.
- ``rare``: blobs with a prior of 0.05.
- ``wide``: fifty Gaussian features, of which the classes differ in one.
- ``adult``: rows of that data set, 104 columns, 0.24 of positives, drawn anew each time.

``simple`` deals by the label alone, with shares uniform on [0.2, 0.8] times twice the prior; ``naive`` deals at random;
``intermediate`` and ``hard`` follow ten k-means clusters. The other variants are simple ones spoiled: ``one column``
shifts one feature by 0.3 sd in each bag, at random; ``rare column`` makes a value of 0.02 ten times as likely in every
second bag; ``thin`` shifts a direction in which the features have a tenth of their standard deviation. ``surveyed``,
``rounded`` and ``sampled`` are simple ones whose shares carry error: those of a survey of 100 in each bag; rounded to
one decimal; the shares of a population of which the bag is a sample.

Bags have one size; ``uneven`` is sizes up to 16 times as large as others; ``power law`` sizes fall like 1 / k, from 2
up.
"""

import numpy as np
import pandas as pd
from sklearn.cluster import KMeans

from llpbook.base import whole_counts
from llpbook.datasets import binary_labels, load
from llpbook.diagnosis import diagnose
from llpbook.variants import make_bags

from .runner import Table, cells

PROTOCOL = "diagnosis-4"
N_DRAWS = 50
POSITIVE = ">50K"
BY_CHANCE = ("naive", "feature collider")
STATEMENTS = ("X_Y", "X_B", "Y_B", "X_Y|B", "X_B|Y", "Y_B|X")
SPOILED = ("one column", "rare column", "thin")
WITH_ERROR = ("surveyed", "rounded", "sampled")


def draw_instances(data, n, rng):
    """Instances and labels, as the module says.

    Parameters
    ----------
    data : str
    n : int
    rng : RandomState

    Returns
    -------
    X : ndarray, shape (n, n_features)
    y : ndarray of int, shape (n,)
    """
    if data == "adult":
        X, y = adult()
        rows = rng.choice(len(X), n, replace=False)
        return X[rows], y[rows]
    if data == "one-hot":
        return draw_nominal(n, rng)
    prior = 0.05 if data == "rare" else 0.5
    y = (rng.random_sample(n) < prior).astype(int)
    if data == "three classes":
        y = rng.randint(0, 3, n)
    d = 50 if data == "wide" else 5
    X = rng.normal(size=(n, d))
    if data == "heavy":
        X = rng.standard_t(1.5, size=(n, d))
    if data == "skewed":
        X = np.exp(X)
    if data == "covariances":
        wide = X @ np.array(
            [[2, 0, 0, 0, 0], [0, 2, 1, 0, 0], [0, 0, 1, 0, 0]] + [[0] * 5] * 2
        )
        X[:, :3] = np.where(y[:, None] == 1, wide[:, :3], X[:, :3])
    if data in ("blobs", "rare"):
        X[:, 1] *= np.where(y == 1, 0.5**0.5, 1.0)
    X[:, 0] += 1.5 * (y == 1)
    X[:, 1] += 1.5 * (y == 2)
    return X, y


def draw_nominal(n, rng):
    """Eight nominal columns, one-hot, whose values depend on the class."""
    y, blocks = rng.randint(0, 2, n), []
    for j, size in enumerate((3, 4, 5, 5, 6, 6, 7, 8)):
        chance = 0.5 ** np.arange(1, size + 1)
        table = np.array([chance, np.roll(chance, 1) if j < 2 else chance])
        table /= table.sum(axis=1, keepdims=True)
        values = (rng.random_sample((n, 1)) > table[y].cumsum(axis=1)).sum(axis=1)
        blocks.append(np.eye(size)[np.minimum(values, size - 1)])
    return np.hstack(blocks), y


def adult(cache=[]):  # noqa: B006
    """The adult data set, read once a process."""
    if not cache:
        X, y = load("adult")
        cache.append((X.to_numpy(), binary_labels(y, POSITIVE)))
    return cache[0]


def draw_sizes(kind, n_bags, bag_size):
    """Sizes of the bags: equal, uneven, or after a power law."""
    n = n_bags * bag_size
    if kind == "power law":
        shares = 1.0 / np.arange(1, n_bags + 1)
        return 2 + whole_counts(shares, n - 2 * n_bags)
    shares = np.ones(n_bags) if kind == "equal" else 4.0 ** np.linspace(-1, 1, n_bags)
    return whole_counts(shares, n)


def spoil(X, bags, how, rng):
    """Features that differ between bags, as the module says."""
    X = X.copy()
    if how == "one column":
        X[:, 3] += 0.3 * rng.normal(size=bags.max() + 1)[bags]
    if how == "rare column":
        chance = np.where(bags % 2, 0.2, 0.02)
        X[:, 3] = rng.random_sample(len(X)) < chance
    if how == "thin":
        X[:, 4] = X[:, 3] + 0.1 * X[:, 4] + 0.1 * rng.normal(size=bags.max() + 1)[bags]
    return X


def with_error(shares, how, rng):
    """Shares as they are published, of two classes."""
    p = np.asarray(shares)[:, 1]
    if how == "surveyed":
        p = rng.binomial(100, p) / 100
    if how == "rounded":
        p = p.round(1)
    return pd.DataFrame({0: 1 - p, 1: p})


def draw_bags(cell, rng):
    """One problem: instances, and bags of the variant of the cell.

    Parameters
    ----------
    cell : dict
    rng : RandomState

    Returns
    -------
    X : ndarray, shape (n_instances, n_features)
    y : ndarray of int, shape (n_instances,)
    made : GeneratedBags
    """
    L, variant = cell["n_bags"], cell["variant"]
    n = L * cell["bag_size"]
    X, y = draw_instances(cell["data"], n, rng)
    if variant in SPOILED or variant in WITH_ERROR:
        variant = "simple"
    sizes = draw_sizes(cell["sizes"], L, cell["bag_size"])
    options = {"sizes": sizes, "random_state": rng}
    if variant not in BY_CHANCE and y.max() == 2:
        options["proportions"] = rng.dirichlet([3, 3, 3], L)
    elif variant not in BY_CHANCE:
        prior = np.clip(y.mean(), 0.05, 0.95)
        options["proportions"] = rng.uniform(0.2, 0.8, L) * 2 * min(prior, 0.5)
    if variant in ("intermediate", "hard", "feature collider"):
        scaled = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-12)
        options["clusters"] = KMeans(10, n_init=1, random_state=rng).fit_predict(scaled)
    return X, y, make_bags(X, y, variant, **options)


def draw_problem(cell, rng):
    """Features, bags and shares, spoiled or with error where the cell says so, and labels.

    Parameters
    ----------
    cell : dict
    rng : RandomState

    Returns
    -------
    X : ndarray, shape (n_instances, n_features)
    bags : ndarray of int, shape (n_instances,)
    proportions : DataFrame, shape (n_bags, n_classes)
    y : ndarray of int, shape (n_instances,)
    """
    if cell["variant"] == "sampled":
        L, size = cell["n_bags"], cell["bag_size"]
        p, bags = rng.uniform(0.2, 0.8, L), np.repeat(np.arange(L), size)
        y = (rng.random_sample(L * size) < p[bags]).astype(int)
        X = rng.normal(size=(L * size, 5))
        X[:, 0] += 1.5 * y
        return X, bags, pd.DataFrame({0: 1 - p, 1: p}), y
    X, y, made = draw_bags(cell, rng)
    X, shares = spoil(X, made.bags, cell["variant"], rng), made.proportions
    if cell["variant"] in WITH_ERROR:
        shares = with_error(shares, cell["variant"], rng)
    return X, made.bags, shares, y


def run(cell, seed):
    """One row: the shares of draws in which each test rejects at 5 %."""
    found = []
    for draw in range(N_DRAWS):
        rng = np.random.RandomState(seed * N_DRAWS + draw)
        X, bags, shares, y = draw_problem(cell, rng)
        d = diagnose(
            X, bags, shares, labels=y if cell["labels"] else None, n_permutations=79 if cell["labels"] else 59,
            exact={"judged": None, "counts": True, "estimates": False}[cell["shares"]],
            random_state=rng,
        )  # fmt: skip
        found.append(d)
    pvalues = np.array([d.pvalues.reindex(STATEMENTS) for d in found], dtype=float)
    row = {}
    for j, statement in enumerate(STATEMENTS):
        row[f"tested {statement}"] = float(np.isfinite(pvalues[:, j]).mean())
        row[f"reject {statement}"] = float((pvalues[:, j] <= 0.05).mean())
    row["naive kept"] = float(np.mean(["naive" in d.variants for d in found]))
    row["simple kept"] = float(np.mean(["simple" in d.variants for d in found]))
    row["whole bags"] = float(np.mean([d.whole_bags for d in found]))
    return row


def grid(
    data, variants, n_bags, bag_sizes, sizes="equal", labels=False, shares="judged"
):
    """Cells of the table."""
    return cells(
        data=list(data), variant=list(variants), sizes=[sizes], labels=[int(labels)],
        shares=[shares], n_bags=list(n_bags), bag_size=list(bag_sizes),
    )  # fmt: skip


FOUR = ("naive", "simple", "intermediate", "hard")
HOSTILE = ("heavy", "skewed", "one-hot", "covariances", "three classes", "rare", "wide")
NULL = ("naive", "simple")

LEVELS = [
    *grid(["blobs"], NULL, [10], [5, 50]),
    *grid(HOSTILE, ["simple"], [10], [50]),
    *grid(["blobs"], ["simple"], [10], [50], "power law"),
    *grid(["blobs", "rare"], ["naive"], [200], [5]),
    *grid(["blobs"], ["simple"], [500], [10]),
    *grid(["blobs", "heavy"], ["simple"], [200], [2]),
    *grid(["one-hot", "heavy"], ["naive"], [20], [20]),
    *grid(["adult"], ["simple"], [20], [50]),
    *grid(["blobs"], ["surveyed", "rounded"], [10], [500], shares="estimates"),
    *grid(["blobs"], ["sampled"], [10], [500], shares="estimates"),
]
WITH_LABELS = [
    *grid(["blobs", "heavy"], ["naive"], [10], [50], labels=True),
    *grid(["blobs", "heavy"], ["intermediate"], [10], [100], labels=True),
    *grid(["one-hot"], ["simple"], [10], [50], labels=True),
]
POWER = [
    *grid(["blobs"], ["intermediate", "hard"], [10], [5, 10, 20, 50, 100]),
    *grid(["wide"], ["one column", "rare column"], [10], [50]),
    *grid(["blobs"], ["thin"], [10], [50]),
    *grid(["heavy"], ["hard"], [10], [50]),
    *grid(["blobs"], ["surveyed"], [10], [500], shares="counts"),
    *grid(["blobs"], ["hard"], [10], [100], labels=True),
]

TABLES = [
    Table(
        "diagnosis_levels",
        PROTOCOL,
        LEVELS + WITH_LABELS + POWER,
        run,
        "level and power of the tests of variants; 50 draws a row",
        value="reject X_B|Y",
    )
]
