"""How often the tests of `llpbook.diagnosis.diagnose` reject: their level where a variant holds, their power where not.

Bags and proportions alone reach the tests. For each variant, number of bags and bag size, draw instances of two
classes, make bags of the variant, and test; the rates over many draws are the level of a test where the independence
holds, and its power where it does not. One row is 50 draws.

What is drawn:

- ``blobs``: five features, Gaussian, the two classes 1.5 standard deviations apart in the first, the second class with
  half the variance in the second. The two classes are equally likely.
- ``adult``: rows of that data set, with its 0.24 of positives, drawn anew each time.

Bags have one size, or sizes up to 16 times as large as others, around a mean; proportions are uniform on [0.2, 0.8]
times twice the prior, so that they add up about to it. Naive and the feature collider leave proportions to chance.
Intermediate and hard bags depend on ten k-means clusters.
"""

import numpy as np
from sklearn.cluster import KMeans

from ..datasets import binary_labels, load
from ..diagnosis import diagnose
from ..variants import largest_remainder, make_bags
from .runner import Table, cells

PROTOCOL = "variants-1"
N_DRAWS = 50
POSITIVE = ">50K"
BY_CHANCE = ("naive", "feature collider")
STATEMENTS = ("Y_B", "X_B", "X_B|Y")


def draw_instances(data, n, rng):
    """Instances and labels, as the module says.

    Parameters
    ----------
    data : {"blobs", "adult"}
    n : int
    rng : RandomState

    Returns
    -------
    X : ndarray, shape (n, n_features)
    y : ndarray of 0 and 1, shape (n,)
    """
    if data == "adult":
        X, y = adult()
        rows = rng.choice(len(X), n, replace=False)
        return X[rows], y[rows]
    y = (rng.random_sample(n) < 0.5).astype(int)
    X = rng.normal(size=(n, 5))
    X[:, 1] *= np.where(y == 1, 0.5**0.5, 1.0)
    X[:, 0] += 1.5 * y
    return X, y


def adult(cache=[]):  # noqa: B006
    """The adult data set, read once a process."""
    if not cache:
        X, y = load("adult")
        cache.append((X.to_numpy(), binary_labels(y, POSITIVE)))
    return cache[0]


def draw_bags(cell, rng):
    """One problem: instances, and bags of the variant of the cell.

    Parameters
    ----------
    cell : dict
    rng : RandomState

    Returns
    -------
    X : ndarray, shape (n_instances, n_features)
    y : ndarray of 0 and 1, shape (n_instances,)
    made : GeneratedBags
    """
    L, n = cell["n_bags"], cell["n_bags"] * cell["bag_size"]
    X, y = draw_instances(cell["data"], n, rng)
    shares = np.ones(L) if cell["sizes"] == "equal" else 4.0 ** np.linspace(-1, 1, L)
    options = {"sizes": largest_remainder(shares, n), "random_state": rng}
    if cell["variant"] not in BY_CHANCE:
        prior = np.clip(y.mean(), 0.05, 0.95)
        options["proportions"] = rng.uniform(0.2, 0.8, L) * 2 * min(prior, 0.5)
    if cell["variant"] in ("intermediate", "hard", "feature collider"):
        scaled = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-12)
        options["clusters"] = KMeans(10, n_init=1, random_state=rng).fit_predict(scaled)
    return X, y, make_bags(X, y, cell["variant"], **options)


def run(cell, seed):
    """One row: the shares of draws in which each test rejects at 5 %."""
    pvalues = []
    for draw in range(N_DRAWS):
        rng = np.random.RandomState(seed * N_DRAWS + draw)
        X, _, made = draw_bags(cell, rng)
        found = diagnose(X, *made, n_permutations=99, random_state=rng).pvalues
        pvalues.append([found[s] for s in STATEMENTS])
    pvalues = np.array(pvalues)
    rates = (pvalues < 0.05).mean(axis=0)
    return {
        **{f"reject {s}": float(r) for s, r in zip(STATEMENTS, rates, strict=True)},
        "tested X_B|Y": float(np.isfinite(pvalues[:, 2]).mean()),
    }


SIZES, NUMBERS = (5, 10, 20, 50, 100, 200), (4, 8, 16, 32, 64)
FOUR = ["naive", "simple", "intermediate", "hard"]


def grid(variants, n_bags, bag_sizes, data="blobs", sizes="equal"):
    """Cells of the table."""
    return cells(
        data=[data],
        variant=variants,
        sizes=[sizes],
        n_bags=list(n_bags),
        bag_size=list(bag_sizes),
    )


TABLES = [
    Table(
        "diagnosis_levels",
        PROTOCOL,
        grid(FOUR, [10], SIZES)
        + grid(FOUR, NUMBERS, [30])
        + grid(["naive", "simple"], [10, 100], [10, 50], sizes="uneven")
        + grid(["label collider", "feature collider"], [10], [50, 200])
        + grid(FOUR, [10, 50], [20, 100], data="adult"),
        run,
        "level and power of the tests of variants from bags and proportions; 50 draws a row",
        value="reject X_B|Y",
    )
]
