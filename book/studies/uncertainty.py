"""How sure: coverage of intervals, accuracy without labels on twenty tasks, ecological inference, shares with noise.

``uncertainty_coverage``: five standardized features with the slopes `SLOPES`, bags of one size. ``world`` says how the
bags come about; the truth is what logistic regression finds on the labels of very many instances.

- ``random``: one logistic model, bags at random. Both assumptions hold.
- ``Y_B|X``: the features of a bag are shifted by its own normal vector (deviation 0.7), and the same logistic model
  holds in all bags: Y and B are independent given X.
- ``X_B|Y``: the share of a bag is uniform on [0.1, 0.9], and features are normal given the class: X and B are
  independent given Y.
- ``neither``: as ``Y_B|X``, but the log-odds of a bag have an offset of their own, half of its first shift plus normal
  noise of deviation 0.5.

A row is one draw. ``in_90`` and ``in_95`` are the shares of the five slopes that their intervals contain, ``plain_95``
without the correction for the bag's own curvature and with normal quantiles, ``width`` the mean width of the intervals
of 95 %. ``rate_90`` and ``rate_95`` say whether the interval of `group_rate` contains the true rate of the instances
whose first feature is positive. All these are nan where no standard error is given,
because the fit is at no strict maximum. ``said``, ``said_given`` and ``accuracy`` are the expected accuracy without and
with the counts, and the true one.

``uncertainty_bootstrap``: worlds as above, 100 bags of 5, 100 resamples, for `CountLogistic` and `MeanMap`. ``spread``
is the median, over the slopes, of the deviation of the replicates, ``error`` that of the size of the error, ``largest``
the largest replicate.

``uncertainty_accuracy``: twenty tasks of `studies.choosing`, `CountLogistic(C=0.1)` behind a scaler. ``regressed`` is
the accuracy that follows from a regression of the given shares on the predicted ones.

``uncertainty_ecological``: sixty precincts of 200 people, of which a share is in a group, and two covariates of each
person. The rate of the class in the group is to be told. ``world``:

- ``constant``: the rates of the group and of the rest are those of all precincts;
- ``covariates``: a covariate is larger in precincts with many of the group, and counts for the class;
- ``context``: the precinct itself counts for the class, by its share of the group, whoever lives there.

``Goodman`` is his regression, ``King`` the model of King (1997) as PyEI samples it ("king99", 2 chains of 500 draws
after 500), ``counts: group`` and ``counts: all`` are `group_rate` with the group as the only feature, and with the
covariates too. ``rate`` and ``low``, ``high`` are the estimate and its interval of 95 %, ``truth`` the rate among these
people. King's rows need PyEI (``pip install pyei``).

``uncertainty_noise``: adult, random bags; noise with the scale 1 / (epsilon n_k) is added to the share of each bag, so
that the counts are epsilon-differentially private (one person changes a count by one). Accuracy on new instances of
`CountLogistic(C=0.1)`: ``clipped`` takes shares clipped to [0, 1] for true, ``gaussian`` and ``laplace`` state the
noise; ``labels`` have in addition 100 known labels.
"""

import warnings
from contextlib import suppress
from functools import lru_cache

import numpy as np
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from llpbook import CountLogistic, MeanMap, NotIdentifiableError
from llpbook.proportions import label_proportions
from llpbook.uncertainty import (
    accuracy_bounds,
    bag_bootstrap,
    bag_gradients,
    bag_hessians,
    coefficient_table,
    expected_accuracy,
    group_rate,
    group_rate_bounds,
    read_fit,
)

from . import choosing
from .runner import Table, cells, load

PROTOCOL = "uncertainty-1"
SLOPES, OFFSET = np.array([1.0, -1.0, 0.5, 0.5, 0.0]), -0.5
SHIFT, RESAMPLES = 0.7, 100
WORLDS = ("random", "Y_B|X", "X_B|Y", "neither")


def draw(world, n_bags, size, rng):
    """Instances in bags.

    Parameters
    ----------
    world : str
        See the module.
    n_bags, size : int
    rng : Generator

    Returns
    -------
    X : ndarray, shape (n_bags * size, 5)
    y : ndarray of 0 and 1
    bags : ndarray of int
    """
    bags = np.repeat(np.arange(n_bags), size)
    X = rng.normal(size=(len(bags), len(SLOPES)))
    if world == "X_B|Y":
        y = (rng.random(len(bags)) < rng.uniform(0.1, 0.9, n_bags)[bags]).astype(int)
        return X + np.outer(y - 0.5, SLOPES), y, bags
    log_odds = np.full(n_bags, OFFSET)
    if world != "random":
        shift = SHIFT * rng.normal(size=(n_bags, len(SLOPES)))
        X += shift[bags]
        if world == "neither":
            log_odds += 0.5 * shift[:, 0] + 0.5 * rng.normal(size=n_bags)
    y = (rng.random(len(bags)) < expit(X @ SLOPES + log_odds[bags])).astype(int)
    return X, y, bags


@lru_cache
def true_slopes(world):
    """What logistic regression finds on the labels of many instances."""
    if world != "neither":
        return SLOPES
    X, y, _ = draw(world, 200_000, 5, np.random.default_rng(123))
    return LogisticRegression(C=1e6).fit(X, y).coef_[0]


def plain_errors(model, X, bags, P):
    """Standard errors without the correction: the sandwich of the gradients."""
    fit, _ = read_fit(model, X, bags, P)
    J = bag_hessians(fit).sum(axis=0) + fit.curvature.toarray()
    psi = np.linalg.solve(J, bag_gradients(fit).T)
    return np.sqrt((psi**2).sum(axis=1))


def intervals(model, X, bags, P, truth, group, real):
    """What the intervals of a fit contain: see the module."""
    found, table = {}, coefficient_table(model, X, bags, P)
    for level in (90, 95):
        ends = table.interval(level / 100).to_numpy()[:5]
        found[f"in_{level}"] = np.mean((ends[:, 0] < truth) & (truth < ends[:, 1]))
    off = np.abs(model.coef_[0] - truth)
    found["plain_95"] = np.mean(off < 1.96 * plain_errors(model, X, bags, P)[:5])
    found["width"] = np.mean(ends[:, 1] - ends[:, 0])
    found["off"] = np.mean(off)
    for level in (90, 95):
        rate = group_rate(model, X, bags, P, group, level=level / 100).iloc[0]
        found[f"rate_{level}"] = float(rate["low"] <= real <= rate["high"])
    found["rate_width"] = rate["high"] - rate["low"]
    return found | {"bounds_width": rate["most"] - rate["least"]}


INTERVALS = (
    "in_90", "in_95", "plain_95", "width", "off", "rate_90", "rate_95", "rate_width",
    "bounds_width",
)  # fmt: skip


def run_coverage(cell, seed):
    """One draw: see the module."""
    world, L, size = cell["world"], cell["n_bags"], cell["bag_size"]
    X, y, bags = draw(world, L, size, np.random.default_rng([seed, L, size]))
    P, group = label_proportions(y, bags), X[:, 0] > 0
    model = CountLogistic(C=cell["C"], tol=1e-6).fit(X, bags, P)
    given = model, X, bags, P, true_slopes(world), group, y[group].mean()
    found = dict.fromkeys(INTERVALS, np.nan)
    with suppress(NotIdentifiableError), warnings.catch_warnings(action="ignore"):
        found = intervals(*given)  # bags that deviate are what is measured
    found["said"] = expected_accuracy(model, X)
    found["said_given"] = expected_accuracy(model, X, bags=bags, proportions=P)
    found["accuracy"] = model.score(X, y)
    return {key: round(float(value), 5) for key, value in found.items()}


def slopes_of(model):
    """The coefficients."""
    return model.coef_[0]


ESTIMATORS = {
    "CountLogistic": CountLogistic(C=100.0),
    "MeanMap": MeanMap(alpha=0.04),
}


def run_bootstrap(cell, seed):
    """One draw: see the module."""
    world = cell["world"]
    X, y, bags = draw(world, 100, 5, np.random.default_rng([seed, 100, 5]))
    P, truth = label_proportions(y, bags), true_slopes(world)
    drawn = bag_bootstrap(
        ESTIMATORS[cell["method"]],
        X,
        bags,
        P,
        slopes_of,
        n_resamples=RESAMPLES,
        random_state=seed,
    )
    found = {}
    for kind in ("percentile", "normal"):
        for level in (90, 95):
            ends = drawn.interval(level / 100, kind).to_numpy()
            inside = (ends[:, 0] < truth) & (truth < ends[:, 1])
            found[f"{kind}_{level}"] = np.mean(inside)
        found[f"{kind}_width"] = np.mean(ends[:, 1] - ends[:, 0])
    found["spread"] = np.median(drawn.errors)
    found["error"] = np.median(np.abs(drawn.estimate - truth))
    found["largest"] = np.abs(drawn.replicates).max()
    return {key: round(float(value), 5) for key, value in found.items()}


SEVERAL = ("dna", "satimage", "wine")
SKIPPED = ("large", "outside", ", 250", "iris", "dermatology", "nursery")
#: Of `studies.choosing`: natural groupings, random bags and variants.
TASKS = [
    (part, task)
    for part in ("making", "testing")
    for task in choosing.TASKS[part]
    if not any(word in task for word in SKIPPED)
]


def twenty():
    """Every other few of the tasks of two classes, so that twenty are left, in the order of `studies.choosing`."""
    return [TASKS[int(i)] for i in np.linspace(0, len(TASKS) - 1, 20)]


def regressed_accuracy(predicted, given, sizes):
    """Goodman's regression of given shares on predicted ones, read as an accuracy.

    Parameters
    ----------
    predicted, given : ndarray, shape (n_bags,)
        Shares of the positive class.
    sizes : ndarray, shape (n_bags,)

    Returns
    -------
    float
        Not held within [0, 1].
    """
    design = np.column_stack([1 - predicted, predicted]) * np.sqrt(sizes)[:, None]
    negative, positive = np.linalg.lstsq(design, given * np.sqrt(sizes), rcond=None)[0]
    m = sizes @ predicted / sizes.sum()
    return float(m * positive + (1 - m) * (1 - negative))


def run_accuracy(cell, seed):
    """One draw of a task: see the module."""
    X, _, y, _, bags = choosing.make_problem(cell["part"], cell["task"], seed)
    classes, counts = np.unique(y, return_counts=True)
    P = label_proportions(y, bags, classes=classes)
    model = CountLogistic(C=0.1).fit(X, bags, P)
    codes = np.searchsorted(classes, y)
    predicted, sizes = model.predict(X), np.bincount(bags)
    low, high = accuracy_bounds(predicted, bags, P)
    shares = np.bincount(bags, predicted == 1) / sizes
    found = {
        "n_bags": len(P),
        "largest": counts.max() / len(y),
        "accuracy": np.mean(predicted == codes),
        "said": expected_accuracy(model, X),
        "said_given": expected_accuracy(model, X, bags=bags, proportions=P),
        "low": low,
        "high": high,
        "regressed": regressed_accuracy(shares, P[:, 1], sizes),
    }
    return {key: round(float(value), 5) for key, value in found.items()}


RIVALS = ["Goodman", "King", "counts: group", "counts: all"]


def precincts(world, rng, n_bags=60, size=200):
    """People in precincts: whether in the group, two covariates, the class, and the precinct."""
    bags = np.repeat(np.arange(n_bags), size)
    share = rng.uniform(0.1, 0.9, n_bags)
    group = rng.random(len(bags)) < share[bags]
    Z = rng.normal(size=(len(bags), 2))
    log_odds = -0.5 + group
    if world == "covariates":
        Z[:, 0] += 2 * (share - 0.5)[bags]
        log_odds = log_odds - 1.5 * Z[:, 0] + 0.5 * Z[:, 1]
    if world == "context":
        log_odds = log_odds - 2.5 * (share - 0.5)[bags]
    y = (rng.random(len(bags)) < expit(log_odds)).astype(int)
    return group, Z, y, bags


def goodman(inside, given, sizes):
    """Goodman's regression of the share of the class on the share of the group: rate and its standard error.

    Parameters
    ----------
    inside, given : ndarray, shape (n_bags,)
        Shares of the group and of the class.
    sizes : ndarray, shape (n_bags,)

    Returns
    -------
    rate, error : float
        Of the group; the error is robust to unequal variances (HC2).
    """
    root = np.sqrt(sizes)
    A = np.column_stack([inside, 1 - inside]) * root[:, None]
    inverse = np.linalg.inv(A.T @ A)
    rates = inverse @ A.T @ (given * root)
    left = (given * root - A @ rates) / np.sqrt(1 - np.sum(A @ inverse * A, axis=1))
    psi = (A * left[:, None]) @ inverse
    return rates[0], np.sqrt(np.sum(psi[:, 0] ** 2))


def king(inside, given, sizes, seed):
    """King's model by PyEI: mean and the middle 95 % of the draws of the group's rate."""
    from pyei.two_by_two import TwoByTwoEI

    model = TwoByTwoEI("king99", lmbda=0.5)
    model.fit(
        inside, given, sizes, tune=500, draws=500, chains=2, cores=1,
        random_seed=seed, progressbar=False,
    )  # fmt: skip
    drawn = np.asarray(model.sampled_voting_prefs[0])
    return drawn.mean(), *np.quantile(drawn, [0.025, 0.975])


def run_ecological(cell, seed):
    """One draw and one method: see the module."""
    world, method = cell["world"], cell["method"]
    group, Z, y, bags = precincts(world, np.random.default_rng(seed))
    P, sizes = label_proportions(y, bags), np.bincount(bags)
    inside = np.bincount(bags, group) / sizes
    if method == "Goodman":
        rate, error = goodman(inside, P[:, 1], sizes)
        low, high = rate - 2.0 * error, rate + 2.0 * error
    elif method == "King":
        rate, low, high = king(inside, P[:, 1], sizes, seed)
    else:
        X = np.column_stack([group, Z]) if method == "counts: all" else group[:, None]
        model = CountLogistic(C=100.0, tol=1e-6).fit(X.astype(float), bags, P)
        row = group_rate(model, X.astype(float), bags, P, group).iloc[0]
        rate, low, high = row["rate"], row["low"], row["high"]
    bounds = group_rate_bounds(bags, P, group).iloc[0]
    found = {"rate": rate, "low": low, "high": high, "truth": y[group].mean()}
    found |= {"least": bounds["low"], "most": bounds["high"]}
    return {key: round(float(value), 5) for key, value in found.items()}


def run_noise(cell, seed):
    """One draw, one epsilon, one size: see the module."""
    size, epsilon = cell["bag_size"], cell["epsilon"]
    X, X_new, y, y_new, _ = choosing.make_problem("testing", "adult, random, 50", seed)
    y, y_new = (np.unique(v, return_inverse=True)[1] for v in (y, y_new))
    rng = np.random.default_rng(seed)
    n = len(X) // size * size
    X, y, bags = X[:n], y[:n], rng.permutation(n) // size
    scale = 1 / (epsilon * size)
    shares = label_proportions(y, bags)[:, 1]
    noisy = shares + rng.laplace(scale=scale, size=len(shares))
    errors = np.full(len(shares), np.sqrt(2) * scale)
    known = np.where(rng.permutation(n) < 100, y, -1)
    stated = {"proportion_errors": errors}
    fits = {
        "exact": ({}, shares, None),
        "clipped": ({}, noisy.clip(0, 1), None),
        "gaussian": ({**stated, "proportion_noise": "gaussian"}, noisy, None),
        "laplace": ({**stated, "proportion_noise": "laplace"}, noisy, None),
        "labels": ({**stated, "proportion_noise": "laplace"}, noisy, known),
    }
    found = {"majority": np.bincount(y_new).max() / len(y_new)}
    for name, (options, given, labels) in fits.items():
        model = CountLogistic(C=0.1, **options).fit(X, bags, given, labels)
        found[name] = model.score(X_new, y_new)
    alone = LogisticRegression(C=0.1, max_iter=1000).fit(X[known >= 0], y[known >= 0])
    found["labels alone"] = alone.score(X_new, y_new)
    return {key: round(float(value), 5) for key, value in found.items()}


def coverage_cells():
    """Worlds, sizes and penalties: `CountLogistic(C=100)` everywhere, C = 1 where bags are few."""
    found = []
    for L in (30, 100, 1000):
        for size in (5, 50, 500)[: 2 if L == 1000 else 3]:
            found.append(("random", L, size, 100.0))
        size = 10 if L == 1000 else 50
        found += [(world, L, size, 100.0) for world in WORLDS[1:]]
    found += [(w, L, 50, 1.0) for w in WORLDS[:2] for L in (30, 100)]
    keys = "world", "n_bags", "bag_size", "C"
    return [dict(zip(keys, values, strict=True)) for values in found]


TABLES = [
    Table(
        "uncertainty_coverage",
        PROTOCOL,
        coverage_cells(),
        run_coverage,
        "coverage of intervals of slopes and of a group rate",
        value="in_95",
    ),
    Table(
        "uncertainty_bootstrap",
        PROTOCOL,
        cells(world=["random"], method=list(ESTIMATORS)),
        run_bootstrap,
        "coverage of whole bags drawn with replacement",
        value="percentile_95",
    ),
    Table(
        "uncertainty_accuracy",
        PROTOCOL,
        [{"part": part, "task": task} for part, task in twenty()],
        run_accuracy,
        "accuracy, and what is said of it without labels, on twenty tasks",
    ),
    Table(
        "uncertainty_ecological",
        PROTOCOL,
        cells(world=["constant", "covariates", "context"], method=RIVALS),
        run_ecological,
        "the rate of a class in a group, beside ecological inference",
        value="rate",
    ),
    Table(
        "uncertainty_noise",
        PROTOCOL,
        cells(bag_size=[10, 50], epsilon=[0.1, 0.3, 1.0, 3.0, 10.0]),
        run_noise,
        "accuracy against the epsilon of shares with Laplace noise",
        value="laplace",
    ),
]


def coverage_table(results=None):
    """Per cell: how many of 100 intervals contain the truth, and the mean width of those of 95 %.

    Parameters
    ----------
    results : path, optional
        Folder of the rows.

    Returns
    -------
    DataFrame
        ``slopes_90``, ``slopes_95``, ``plain_95``, ``rate_90``, ``rate_95`` in percent, ``width``, ``draws``, and
        ``refused``, the draws without a standard error.
    """
    frame = load("uncertainty_coverage", results)
    groups = frame.groupby(["C", "world", "n_bags", "bag_size"], sort=False)
    names = {"in_90": "slopes_90", "in_95": "slopes_95"}
    shown = ["in_90", "in_95", "plain_95", "rate_90", "rate_95"]
    table = 100 * groups[shown].mean().rename(columns=names)
    table["width"] = groups["width"].mean()
    table["draws"], table["refused"] = (
        groups.size(),
        groups.size() - groups["width"].count(),
    )
    order = {world: i for i, world in enumerate(WORLDS)}
    return table.sort_index(key=lambda level: level.map(lambda v: order.get(v, v)))


def bootstrap_table(results=None):
    """Per method: how many of 100 intervals contain the truth, their width, and the largest coefficient of a draw."""
    groups = load("uncertainty_bootstrap", results).groupby("method")
    kinds = ["percentile_90", "percentile_95", "normal_90", "normal_95"]
    table = 100 * groups[kinds].mean()
    table["width"], table["largest"] = (
        groups["normal_width"].median(),
        groups["largest"].median(),
    )
    table["draws"] = groups.size()
    return table


def accuracy_table(results=None):
    """Per task, means over draws: what is said of accuracy, and the truth; ``regressed`` for two classes."""
    frame = load("uncertainty_accuracy", results)
    columns = ["n_bags", "accuracy", "said", "said_given", "regressed", "low", "high"]
    table = frame.groupby("task", sort=False)[columns].mean()
    table.loc[table.index.str.startswith(SEVERAL), "regressed"] = np.nan
    return table


def ecological_table(results=None):
    """Per world and method: mean rate and truth, width of the intervals, how many of 100 contain the truth, draws."""
    frame = load("uncertainty_ecological", results)
    frame["width"] = frame["high"] - frame["low"]
    frame["inside"] = 100.0 * frame["truth"].between(frame["low"], frame["high"])
    groups = frame.groupby(["world", "method"])
    table = groups[["rate", "truth", "width", "inside"]].mean()
    return table.assign(draws=groups.size())
