"""Candidates for advice on many tasks, and what a user can see of each task before any label is known.

``python -m studies.choosing`` writes what the package says of the rows to ``llpbook/choosing/study.json``.

A row is one task and one draw. Up to 1,000 instances (``large``: 10,000) are in bags and up to 2,000 are new; of small
data sets half are new. Both are standardized by the instances in bags.

``choosing_outside`` asks `llpbook.choosing.recommend` for advice on each whole set of `studies.complexllp`, and fits
what it names: ``accuracy``; ``majority``; ``fit``, the accuracy of the likelier of line and trees whatever the verdict.

The ``part`` of a task is *making* or *testing*; no data set is in both. Its bags (``how``) are natural, by a column
that is taken out of the features, or made: *random* bags of one size, or *simple*, *intermediate* and *hard* bags of
one size with shares uniform on 0.2 to 0.8 (times twice the prior of the rarer class; ten k-means clusters). The tasks
``outside …`` are the sets of bags of `studies.complexllp`, with every eighth instance and the split of the draw.

``accuracy X`` is the accuracy on the new instances of candidate X, each with one setting fixed for all tasks, fitted to
all bags (the majority class for one that raises `NotIdentifiableError`); ``log-odds`` is the mean of the log-odds of
three of them. The signals see bags and shares only:

- ``worth``: the labels that the bags are worth (`llpbook.proportions.identifiability`), the smallest over the classes;
- ``agree X, Z``: the share of the instances in bags for which candidates X and Z predict the same label;
- ``nats X``: the log-likelihood per bag of the counts of whole bags, from predictions out of three folds of parts of
  bags; ``whole X``: out of folds of whole bags; both less those of the majority class;
- ``largest``: the share of the largest class in the bags; ``sure``: the mean over the instances of the largest
  probability that the count likelihood predicts.
"""

import json
import warnings
from contextlib import suppress
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from llpbook import (
    EMLR,
    AlterSVM,
    BagLogistic,
    BagMeanRegression,
    ClusterModelSelection,
    CountBoosting,
    CountLogistic,
    InvCal,
    LaplacianMeanMap,
    MajorityClass,
    MeanMap,
    NotIdentifiableError,
    WeightedLDA,
    choosing,
)
from llpbook.choosing import held_out_gain, recommend
from llpbook.choosing._decision import ENOUGH, SLACK
from llpbook.choosing._signals import FOLDS, METHODS
from llpbook.datasets import load_bags, random_bags
from llpbook.model_selection import FullBagKFold, SplitBagKFold
from llpbook.proportions import identifiability, label_proportions
from llpbook.variants import make_bags

from . import complexllp, outside
from .people import CENSUS
from .runner import Table, cells, load

PROTOCOL = "choosing-1"
N_BAGGED, N_LARGE, N_NEW, THIN = 1000, 10_000, 2000, 8
MADE = ("simple", "intermediate", "hard")
NATURAL = {
    "making": {
        "census-income-balanced": ("education", "major_industry", "marital_status"),
        "default-credit-card": ("AGE", "EDUCATION"),
        "german": ("purpose", "employment", "age"),
        "mammographic": ("margin",),
    },
    "testing": {
        "adult": ("occupation", "education", "native-country", "workclass", "age"),
        "credit-a": ("A6",),
        "breast-cancer": ("tumor-size",),
    },
}
# By data set: kinds of bags and their sizes.
BAGS = {
    "making": {
        "census-income-balanced": [("random", 10), ("random", 50), ("hard", 50)],
        "default-credit-card": [(how, 50) for how in ("random", *MADE)],
        "german": [("random", 10), ("random", 50), ("simple", 10)],
        "banana": [(how, size) for how in ("random", *MADE) for size in (10, 50)],
        "ionosphere": [("random", 10), ("simple", 10), ("hard", 10)],
        "diabetes": [(how, 10) for how in ("random", *MADE)],
        "satimage": [(how, 50) for how in ("random", *MADE)] + [("random", 10)],
        "segment": [("random", 50), ("intermediate", 50)],
        "dna": [("random", 10), ("simple", 50), ("hard", 50)],
        "wine": [("random", 10), ("simple", 10)],
        "housevotes": [("random", 10), ("intermediate", 10)],
        "mammographic": [("random", 50), ("simple", 50), ("hard", 50)],
        "default-credit-card, large": [("random", 50), ("hard", 500)],
    },
    "testing": {
        "adult": [(how, size) for how in ("random", *MADE) for size in (10, 50, 250)],
        "heart": [(how, 10) for how in ("random", *MADE)],
        "sonar": [("random", 10), ("simple", 10)],
        "saheart": [(how, 10) for how in ("random", *MADE)],
        "credit-a": [(how, 50) for how in ("random", *MADE)],
        "dermatology": [("random", 10), ("hard", 10)],
        "nursery": [(how, 50) for how in ("random", *MADE)],
        "iris": [("random", 5), ("simple", 5)],
        "adult, large": [("random", 50), ("hard", 500), ("intermediate", 500)],
    },
}
CANDIDATES = {
    "counts": CountLogistic(C=0.1),
    "counts, C = 1": CountLogistic(C=1.0),
    "counts, C = .01": CountLogistic(C=0.01),
    "count trees": CountBoosting(),
    "EM": EMLR(C=0.01),
    "shares": BagLogistic("proportion", C=0.1),
    "InvCal": InvCal(),
    "ridge": BagMeanRegression(),
    "MeanMap": MeanMap(),
    "LaplacianMeanMap": LaplacianMeanMap(),
    "WeightedLDA": WeightedLDA(),
    "AlterSVM": AlterSVM(n_init=2, random_state=0),
    "clusters": ClusterModelSelection(max_iter=2, population_size=8, random_state=0),
    "majority": MajorityClass(),
}
AVERAGED = ("counts", "EM", "count trees")
COMPARED = ("counts", "counts, C = 1", "EM", "count trees", "InvCal", "MeanMap")
SCORED = ("counts", "counts, C = 1", "count trees", "EM")


def _all_tasks(part):
    """The tasks of a part, by name: data set, kind of bags or column, size or None."""
    found = {
        f"{name} by {column}": (name, column, None)
        for name, columns in NATURAL[part].items()
        for column in columns
    }
    for name, kinds in BAGS[part].items():
        for how, size in kinds:
            found[f"{name}, {how}, {size}"] = name, how, size
    if part == "testing":
        found |= {f"outside {name}": (name, "outside", None) for name in OUTSIDE}
    return found


OUTSIDE = complexllp.names()
TASKS = {part: _all_tasks(part) for part in ("making", "testing")}


def bags_of(how, size, X, y, rng):
    """Bags that are made: see the module.

    Parameters
    ----------
    how : {"random", "simple", "intermediate", "hard"}
    size : int
    X : ndarray, shape (n, n_features)
    y : ndarray, shape (n,)
    rng : RandomState

    Returns
    -------
    ndarray of int, shape (n,)
    """
    n_bags = len(X) // size
    if how == "random":
        return random_bags(y, bag_size=size, random_state=rng)
    sizes = np.diff(np.linspace(0, len(X), n_bags + 1).astype(int))
    classes, counts = np.unique(y, return_counts=True)
    if len(classes) == 2:
        prior = 2 * min(counts) / len(y)
        shares = rng.uniform(0.2, 0.8, n_bags) * prior
        shares = 1 - shares if counts[1] > counts[0] else shares
    else:
        shares = rng.dirichlet(3 * counts / len(y), n_bags)
    kinds = KMeans(10, n_init=1, random_state=rng).fit_predict(X)
    options = {} if how == "simple" else {"clusters": kinds}
    return make_bags(
        X, y, how, sizes=sizes, proportions=shares, random_state=rng, **options
    ).bags


def make_problem(part, task, seed):
    """Instances in bags and new ones.

    Parameters
    ----------
    part : {"making", "testing"}
    task : str
        A key of ``TASKS[part]``.
    seed : int

    Returns
    -------
    X, X_new : ndarray
    y, y_new : ndarray
        Serve the shares and the evaluation.
    bags : ndarray of int
    """
    name, how, size = TASKS[part][task]
    if how == "outside":
        X, X_new, y, y_new, bags, _ = complexllp.split(name, seed)
        used = np.unique(bags[::THIN], return_inverse=True)[1]
        return X[::THIN], X_new, y[::THIN], y_new, used
    name, _, large = name.partition(", ")
    few = name == "census-income-balanced" and size is None
    data = load_bags(name, n_bags=1) if size else load_bags(name, by=how)
    X = (data.X[list(CENSUS)] if few else data.X).to_numpy(dtype=float)
    y = data.true_labels_for_evaluation()
    rng, n = np.random.RandomState(seed), N_LARGE if large else N_BAGGED
    n = min(n, len(X) // 2)
    rows = rng.permutation(len(X))[: n + N_NEW]
    scaler = StandardScaler().fit(X[rows[:n]])
    Z, y = scaler.transform(X[rows]), y[rows]
    old = data.bags[rows[:n]] if size is None else bags_of(how, size, Z[:n], y[:n], rng)
    return Z[:n], Z[n:], y[:n], y[n:], np.unique(old, return_inverse=True)[1]


def log_odds(model, X):
    """Log-odds of each class, at most 20 in size."""
    p = np.clip(model.predict_proba(X), 1e-9, 1)
    return np.log(p / np.clip(1 - p, 1e-9, 1))


def held_out_scores(X, bags, shares, seed):
    """Log-likelihood per bag of the counts of whole bags, from predictions out of fold, less that of the majority.

    Parameters
    ----------
    X : ndarray, shape (n, n_features)
    bags : ndarray of int, shape (n,)
    shares : ndarray, shape (n_bags, n_classes)
    seed : int
        Of the folds.

    Returns
    -------
    dict of str to float
        ``nats X`` and ``whole X`` for each X of ``SCORED``; nan where a fold cannot be fitted: fewer than three
        bags, or a class in no bag of it.
    """
    found = {}
    for key, cv in (
        ("nats", SplitBagKFold(FOLDS, random_state=seed)),
        ("whole", FullBagKFold(FOLDS, proportions=shares, random_state=seed)),
    ):
        found |= {f"{key} {name}": np.nan for name in SCORED}
        if key == "whole" and len(shares) < FOLDS:
            continue
        given = X, bags, shares, list(cv.split(X, groups=bags))
        for name in SCORED:
            # A rare class may be in no bag of a fold.
            with suppress(NotIdentifiableError):
                gain = held_out_gain(CANDIDATES[name], *given)
                found[f"{key} {name}"] = gain / len(shares)
    return found


def fit_or_majority(model, X, bags, shares):
    """The fit of a candidate; the majority class in its place if it refuses the bags."""
    try:
        return clone(model).fit(X, bags, shares)
    except NotIdentifiableError:
        return MajorityClass().fit(X, bags, shares)


def run(cell, seed):
    """One row: a task and a draw."""
    X, X_new, y, y_new, bags = make_problem(cell["part"], cell["task"], seed)
    classes, counts = np.unique(y, return_counts=True)
    shares = label_proportions(y, bags, classes=classes)
    codes = np.searchsorted(classes, y_new)
    with warnings.catch_warnings(action="ignore"):
        models = {
            name: fit_or_majority(model, X, bags, shares)
            for name, model in CANDIDATES.items()
        }
        row = held_out_scores(X, bags, shares, seed)
        limit = LogisticRegression(C=0.1, max_iter=1000).fit(X, y)
    seen = {name: models[name].predict(X) for name in COMPARED}
    facts = identifiability(bags, shares)
    odds = sum(log_odds(models[name], X_new) for name in AVERAGED)
    row |= {
        "n": len(X),
        "d": X.shape[1],
        "bags": len(shares),
        "classes": len(classes),
        "worth": facts.worth_in_labels.min(),
        "sure": models["counts"].predict_proba(X).max(axis=1).mean(),
        "largest": counts.max() / len(y),
        **{
            f"agree {a}, {b}": np.mean(seen[a] == seen[b])
            for a, b in combinations(COMPARED, 2)
        },
        **{
            f"accuracy {name}": np.mean(model.predict(X_new) == codes)
            for name, model in models.items()
        },
        "accuracy log-odds": np.mean(odds.argmax(axis=1) == codes),
        "accuracy labels": np.mean(limit.predict(X_new) == y_new),
    }
    return {key: round(float(value), 6) for key, value in row.items()}


def run_outside(cell, seed):
    """One row: the advice on a set of bags of others, and how good it is on the instances held out."""
    X, X_new, _, y_new, bags, shares = complexllp.split(cell["dataset"], seed)
    with warnings.catch_warnings(action="ignore"):
        # Rows do not depend on the speed of the machine.
        advice = recommend(X, bags, shares[:, 1], max_seconds=np.inf, random_state=seed)
        method = METHODS[advice.signals.likelier]
        scaler = StandardScaler().fit(X)
        fitted = clone(method).fit(scaler.transform(X), bags, shares[:, 1])
    fit = np.mean(fitted.predict(scaler.transform(X_new)) == y_new)
    majority = np.mean(y_new == advice.majority)
    refused = advice.verdict == "do not fit"
    values = {"accuracy": majority if refused else fit, "fit": fit}
    values |= {"majority": majority, **advice.signals._asdict()}
    del values["other"]  # of the fit that is stored as "fit"
    del values["trees_tried"]  # always
    found = {key: round(float(value), 6) for key, value in values.items()}
    return {**found, "verdict": advice.verdict, "method": type(method).__name__}


def signal_table(results=None):
    """The rows of the study with what the rules use.

    Parameters
    ----------
    results : path, optional
        Folder of the files; that of the studies if not given.

    Returns
    -------
    DataFrame
        The rows, and ``best``, the accuracy of the best candidate; ``line`` and ``trees``, the gains in nats of the
        counts of all bags, ``gain`` the larger; ``whole``, the gain of the likelier of the two on held-out whole bags;
        ``agreement`` of the count likelihood and EM.
    """
    rows = load("choosing", results)
    best = rows[[f"accuracy {name}" for name in CANDIDATES]].max(axis=1)
    gains = {"line": "nats counts", "trees": "nats count trees"}
    found = {key: rows["bags"] * rows[column] for key, column in gains.items()}
    gain = np.fmax(found["line"], found["trees"])
    better = np.where(
        found["trees"] > found["line"], rows["whole count trees"], rows["whole counts"]
    )
    agreement, whole = rows["agree counts, EM"], rows["bags"] * better
    return rows.assign(best=best, **found, gain=gain, whole=whole, agreement=agreement)


def likelier(row):
    """The line or the trees of the count likelihood, whichever gains more."""
    return "count trees" if row["trees"] > row["line"] else "counts"


def agrees(row):
    """Whether two methods disagree on clearly fewer instances than are outside of the largest class."""
    return 1 - row["agreement"] <= SLACK * (1 - row["largest"])


def verdict(row):
    """Whether to fit: two methods must agree, or the bags be worth as many labels as there are features."""
    if not agrees(row):
        return "weak" if row["worth"] >= row["d"] else "do not fit"
    return "fit" if row["gain"] >= ENOUGH and row["whole"] > 0 else "weak"


def advised(row):
    """The candidate that the advice names."""
    return "majority" if verdict(row) == "do not fit" else likelier(row)


def three_lines(row):
    """The rule that was tried first: majority, trees or line."""
    if row["worth"] < row["d"] and row["agreement"] < 0.8:
        return "majority"
    return likelier(row)


def most_likely(row):
    """The best of four by the likelihood of held-out parts of bags."""
    return max(SCORED, key=lambda name: row[f"nats {name}"])


def most_likely_whole(row):
    """The best of four by the likelihood of held-out whole bags."""
    scores = {name: row[f"whole {name}"] for name in SCORED}
    known = {name: score for name, score in scores.items() if not np.isnan(score)}
    return max(known, key=known.get, default="counts")


def by_worth(row):
    """The count likelihood if the bags are worth as many labels as there are features, else the majority class."""
    return "counts" if row["worth"] >= row["d"] else "majority"


def by_gain(row):
    """The likelier of line and trees if it gains anything, else the majority class."""
    return likelier(row) if row["gain"] > 0 else "majority"


def by_agreement(row):
    """The likelier of line and trees if two methods agree, else the majority class."""
    return likelier(row) if agrees(row) else "majority"


RULES = {
    "advice": advised,
    "three lines": three_lines,
    "likelier of line and trees": likelier,
    "best of four, parts": most_likely,
    "best of four, whole bags": most_likely_whole,
    "worth alone": by_worth,
    "gain alone": by_gain,
    "agreement alone": by_agreement,
    "mean of log-odds": lambda row: "log-odds",
    **{f"always {name}": lambda row, name=name: name for name in CANDIDATES},
}


def regrets(part, results=None):
    """Points of accuracy that each rule loses against the best candidate: a row per task and draw, by data set.

    Parameters
    ----------
    part, results
        As for `compare_rules`.

    Returns
    -------
    DataFrame
        A column per rule; the levels of the index are "dataset", "task" and "draw".
    """
    rows = signal_table(results).query("part == @part")
    lost = {}
    for name, rule in RULES.items():
        chosen = [row[f"accuracy {rule(row)}"] for _, row in rows.iterrows()]
        lost[name] = (100 * (rows["best"] - chosen)).to_numpy()
    sets = [source(part, task) for task in rows["task"]]
    index = pd.MultiIndex.from_arrays(
        [sets, rows["task"], rows["seed"]], names=["dataset", "task", "draw"]
    )
    return pd.DataFrame(lost, index)


def compare_rules(part, results=None):
    """Points of accuracy that each rule loses against the best candidate of each task.

    Parameters
    ----------
    part : {"making", "testing"}
    results : path, optional
        As for `signal_table`.

    Returns
    -------
    DataFrame
        A row per rule, in points: ``regret``, its mean over tasks; ``worst``; ``below``, the number of tasks on which
        the choice is more than a point below the majority class; ``tasks``. Draws of a task are averaged first.
    """
    rows, lost = signal_table(results).query("part == @part"), regrets(part, results)
    majority = 100 * (rows["best"] - rows["accuracy majority"]).to_numpy()
    over = (-lost).add(majority, axis=0).groupby("task").mean()
    lost = lost.groupby("task").mean()
    table = {"regret": lost.mean(), "worst": lost.max(), "below": (over < -1).sum()}
    return pd.DataFrame(table).sort_values("regret").assign(tasks=len(lost))


def calibration(part, rule=verdict, draw=None, results=None):
    """How often each verdict was right.

    Parameters
    ----------
    part : {"making", "testing"}
    rule : callable, default `verdict`
        The verdict on a row of `signal_table`.
    draw : int, optional
        One draw only.
    results : path, optional
        As for `signal_table`.

    Returns
    -------
    DataFrame
        A row per verdict: ``n`` rows; ``most``, how many of them are of one data set, the most frequent; ``below`` and
        ``far_below``, on how many of them the likelier of line and trees is less accurate than the majority class, by
        anything and by more than two points; ``lead``, its mean lead over the majority class in points.
    """
    rows = signal_table(results).query("part == @part")
    rows = rows if draw is None else rows[rows["seed"] == draw]
    fit = np.array([row[f"accuracy {likelier(row)}"] for _, row in rows.iterrows()])
    lead = 100 * (fit - rows["accuracy majority"])
    groups = lead.groupby(rows.apply(rule, axis=1))
    sets = pd.Series(
        [source(*key) for key in zip(rows["part"], rows["task"], strict=True)],
        rows.index,
    )
    counts = {
        "n": groups.size(),
        "most": groups.agg(lambda v: sets[v.index].value_counts().iloc[0]),
        "below": groups.agg(lambda v: (v < 0).sum()),
        "far_below": groups.agg(lambda v: (v < -2).sum()),
        "lead": groups.mean(),
    }
    order = [v for v in ("fit", "weak", "do not fit", "no fit") if v in counts["n"]]
    return pd.DataFrame(counts).loc[order]


def source(part, task):
    """The data set that a task is made of."""
    name = TASKS[part][task][0].partition(", ")[0]
    return "adult" if name in OUTSIDE else name


SINGLE = {
    "agreement": agrees,
    "gain": lambda row: row["gain"] >= ENOUGH and row["whole"] > 0,
    "worth": lambda row: row["worth"] >= row["d"],
}


def calibrate_signals(part, results=None):
    """`calibration` of the verdict "fit" that each signal alone would give, and of the three together."""
    rules = {
        name: lambda row, holds=holds: "fit" if holds(row) else "no fit"
        for name, holds in SINGLE.items()
    }
    found = {
        name: calibration(part, rule, None, results) for name, rule in rules.items()
    }
    found["advice"] = calibration(part, results=results)
    return pd.DataFrame({name: table.loc["fit"] for name, table in found.items()}).T


def outside_table(results=None):
    """The advice on the sets of bags of others, by variant.

    Parameters
    ----------
    results : path, optional
        As for `signal_table`.

    Returns
    -------
    DataFrame
        A row per variant: the numbers of sets with each verdict; in points of accuracy over the majority class,
        ``best`` (the mean of the best of eight published methods on each set, told by labels), ``advice`` and
        ``fitted`` (what is named, and what is fitted whatever the verdict); ``lowest``, of ``advice`` on a set.
    """
    rows = load("choosing_outside", results).groupby("dataset").first()
    best = outside.leads().groupby("dataset")["best"].first()
    variant = rows.index.map(complexllp.variant)
    over = 100 * rows[["accuracy", "fit"]].sub(rows["majority"], axis=0)
    groups = over.assign(best=best).groupby(variant)
    means = groups[["best", "accuracy", "fit"]].mean()
    verdicts = pd.crosstab(variant, rows["verdict"].to_numpy())
    verdicts = verdicts.reindex(columns=["fit", "weak", "do not fit"], fill_value=0)
    lowest = groups["accuracy"].min().rename("lowest")
    means = means.rename(columns={"accuracy": "advice", "fit": "fitted"})
    return verdicts.join(means).join(lowest).rename_axis("variant")


def findings(results=None):
    """What the package says of the study, in ``llpbook/choosing/study.json``.

    Parameters
    ----------
    results : path, optional
        As for `signal_table`.

    Returns
    -------
    dict
        ``record``: for each verdict on the test tasks how often it was given, how often of these to one data set, and
        how often the fit was less accurate than the majority class. ``fewest``: bags of a test task. ``order``: the
        methods, the one with the least regret over both parts first; of several settings of a method, the first.
    """
    table = calibration("testing", results=results)
    rows = signal_table(results).query("part == 'testing'")
    regrets = [compare_rules(part, results)["regret"] for part in ("making", "testing")]
    lost = {
        type(model).__name__: sum(float(regret[f"always {name}"]) for regret in regrets)
        for name, model in reversed(CANDIDATES.items())
        if name != "majority"
    }
    counts = table[["n", "most", "below"]].astype(int)
    return {
        "record": {verdict: row.tolist() for verdict, row in counts.iterrows()},
        "fewest": int(rows["bags"].min()),
        "order": sorted(lost, key=lost.get),
    }


TABLES = [
    Table(
        "choosing",
        PROTOCOL,
        [
            cell
            for part, tasks in TASKS.items()
            for cell in cells(part=[part], task=list(tasks))
        ],
        run,
        "candidates for advice, and what a user sees of each task without labels",
        value="accuracy counts",
    ),
    Table(
        "choosing_outside",
        PROTOCOL,
        cells(dataset=OUTSIDE),
        run_outside,
        "the advice on 26 sets of bags that others made, and the accuracy of what it names",
    ),
]


if __name__ == "__main__":
    path = Path(choosing.__file__).with_name("study.json")
    path.write_text(json.dumps(findings(), indent=1) + "\n")
    print(path)
