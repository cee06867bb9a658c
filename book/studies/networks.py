"""Networks on bags by each loss, beside the other methods of the book.

All networks are `llpbook.BagNetwork` with its defaults, fixed before the runs: two hidden layers of 64 units; for
images two layers of convolutions. They differ in the loss: ``proportion``, ``counts``, ``squares``, ``easy`` and
``forward`` are those of `llpbook.bag_losses.LOSSES`; ``vat`` is the proportion loss with the consistency of LLP-VAT,
``mixed`` the proportion loss with mixed bags, ``mixed counts`` the likelihood with them. ``labels`` is the same network
on bags of one instance: the labels, the limit. ``forward`` knows two classes, and has no row of other tasks.

``networks``: the tasks of `studies.benchmark`, its draws and its results on new instances, untuned.
``networks_tuned``: the same where bags have 50 instances and are naive or simple; learning rate and penalty are chosen
by the shares of halves of the bags held out, ``accuracy_shares`` of `studies.outside`.
``networks_natural``: the draws of `studies.natural`.
``networks_others``: the 26 sets of `studies.complexllp`; seed k is split k.
``networks_images``: random bags of handwritten digits, ten classes: scikit-learn's 1,797 of 8 x 8 pixels, of which
1,280 are in bags; and, where the file ``mnist.npz`` is at hand (`MNIST`), 10,240 of MNIST, and its 10,000 test images,
all shrunk to 14 x 14 pixels: a pixel is the mean of four. There a network has at most 50 epochs, not 100: an epoch has
eight times the steps. Both cut what a row costs.
``CountBoosting``, ``labels (trees)`` and, of digits, the linear ``CountLogistic`` take the pixels as features.

Columns beside those: ``cpu_fit`` is the processor time of the fit, ``n_epochs`` how many epochs ran and ``best_epoch``
the one that was kept (of several classes one against the rest: the mean over the networks).
"""

import os
import time
import warnings
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_digits
from sklearn.ensemble import HistGradientBoostingClassifier

from llpbook import BagNetwork, CountBoosting, CountLogistic, NotIdentifiableError
from llpbook.comparison import paired_differences
from llpbook.datasets import random_bags
from llpbook.proportions import label_proportions

from . import benchmark, complexllp, natural, outside
from .runner import Table, cells, load

PROTOCOL = "networks-1"
#: Where MNIST lies, which this repository does not hold: arrays X (n, 784), y, X_test, y_test or the names of Keras.
MNIST = Path(os.environ.get("LLPBOOK_MNIST", "mnist.npz"))
LABELS, TREES, BOOSTING = "labels", "labels (trees)", "CountBoosting"
LINEAR = "CountLogistic"
METHODS = {
    "proportion": {"loss": "proportion"},
    "counts": {"loss": "counts"},
    "squares": {"loss": "squares"},
    "easy": {"loss": "easy"},
    "vat": {"loss": "proportion", "consistency": "vat"},
    "mixed": {"loss": "proportion", "mix_bags": True},
    "mixed counts": {"loss": "counts", "mix_bags": True},
    "forward": {"loss": "forward"},
}
#: Other settings: the first two are tried on digits in bags of 64, where the training of 100 epochs is not at its end,
#: the others on MNIST, where by the defaults the network in such bags predicts one class for all.
VARIANTS = {
    "400 epochs": {"loss": "proportion", "max_iter": 400},
    "rate 0.02": {"loss": "proportion", "max_iter": 400, "learning_rate": 0.02},
    "proportion rate 0.001": {"loss": "proportion", "learning_rate": 0.001},
    "counts rate 0.001": {"loss": "counts", "learning_rate": 0.001},
}
GRID = {"learning_rate": [0.005, 0.001], "alpha": [1e-4, 1e-2]}
TUNED = ("proportion", "counts")
IMAGES = {"digits": (16, 64, 256), "mnist": (16, 64, 256, 1024)}
N_DIGITS, N_MNIST = 1280, 10_240
#: Other settings for images.
SETTINGS = {"digits": {}, "mnist": {"max_iter": 50}}
#: Instances tested on per instance trained on, where draws share instances. Those of MNIST share the test images alone.
RATIOS = {"digits": (1797 - N_DIGITS) / N_DIGITS, "mnist": 0, **natural.RATIOS}


def convolutions(n_features, n_scores):
    """A small convolutional network for square images: two layers of 3 x 3, each followed by a maximum over 2 x 2."""
    import torch

    width = int(n_features**0.5)
    nn, last = torch.nn, 16 * (width // 4) ** 2
    return nn.Sequential(
        nn.Unflatten(1, (1, width, width)),
        nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(last, n_scores),
    )  # fmt: skip


def bags_of(method, y, bags, n_classes):
    """Bags and shares that a method sees: for the limit, bags of one instance."""
    bags = np.arange(len(y)) if method == LABELS else bags
    return bags, label_proportions(y, bags, classes=range(n_classes))


def epochs(model):
    """How many epochs ran, and which was kept."""
    parts = model.estimators_ or [model]
    return {
        "n_epochs": np.mean([len(part.validation_loss_) - 1 for part in parts]),
        "best_epoch": np.mean([part.n_iter_ for part in parts]),
    }


def fitted(model, method, parts, n_classes):
    """A fitted model, and the processor seconds of its fit."""
    X, _, y, _, bags = parts
    start = time.process_time()
    with warnings.catch_warnings(action="ignore"):
        if method == TREES:
            model.fit(X, y)
        else:
            model.fit(X, *bags_of(method, y, bags, n_classes))
    return model, time.process_time() - start


def row(model, method, parts, n_classes):
    """Columns of a row: results on new instances, time and epochs; nan where the method refuses the bags."""
    names = [*benchmark.VALUES, "cpu_fit", "n_epochs", "best_epoch"]
    found, failed = dict.fromkeys(names, np.nan), ""
    try:
        model, spent = fitted(model, method, parts, n_classes)
        found |= benchmark.judge(model, parts[1], parts[3], n_classes)
        found["cpu_fit"] = spent
        if isinstance(model, BagNetwork):
            found |= epochs(model)
    except NotIdentifiableError as error:
        failed = type(error).__name__
    found = {key: round(float(value), 6) for key, value in found.items()}
    return {**found, "n_bags": parts[4].max() + 1, "failed": failed}


def network(method, seed, **more):
    """The network of a method."""
    one_thread()
    own = {**METHODS, **VARIANTS}.get(method, {})
    return BagNetwork(**own, **more, random_state=seed)


def one_thread():
    """Results depend on the order of sums, and so on the number of threads."""
    import torch

    torch.set_num_threads(1)


def tasks_of_benchmark():
    """Each task of the benchmark with each method that takes its classes."""
    tasks = {
        tuple(cell[key] for key in ("dataset", "kind", "bag_size")): None
        for cell in benchmark.all_cells()
    }
    for (dataset, kind, size), method in (
        (task, method) for method in (LABELS, *METHODS) for task in tasks
    ):
        limit = size in (benchmark.ANY, benchmark.NATURAL)
        wanted = limit if method == LABELS else kind != benchmark.ANY
        if wanted and (method != "forward" or benchmark.DATASETS[dataset][1] == 2):
            yield {"dataset": dataset, "kind": kind, "bag_size": size, "method": method}


def run(cell, seed):
    """One row of the benchmark."""
    parts = benchmark.make_problem(
        cell["dataset"], cell["kind"], cell["bag_size"], seed
    )
    K = benchmark.DATASETS[cell["dataset"]][1]
    return row(network(cell["method"], seed), cell["method"], parts, K)


def run_tuned(cell, seed):
    """One row of the benchmark, tuned by shares held out."""
    parts = benchmark.make_problem(
        cell["dataset"], cell["kind"], cell["bag_size"], seed
    )
    K, model = benchmark.DATASETS[cell["dataset"]][1], network(cell["method"], seed)
    shares = label_proportions(parts[2], parts[4], classes=range(K))
    with warnings.catch_warnings(action="ignore"):
        found = outside.choices(model, GRID, parts[0], parts[4], shares, seed)
    setting, _ = found["shares"]
    model.set_params(**setting)
    return {**row(model, cell["method"], parts, K), "chosen": outside.as_words(setting)}


def run_natural(cell, seed):
    """One row of natural bags."""
    parts = natural.make_problem(cell["how"], seed)
    return row(network(cell["method"], seed), cell["method"], parts, 2)


def run_others(cell, seed):
    """One row of the bags of others."""
    *parts, _ = complexllp.split(cell["dataset"], seed)
    return row(network(cell["method"], seed), cell["method"], parts, 2)


def shrunk(X):
    """Images of 28 x 28 pixels as rows of 14 x 14, each the mean of four."""
    return X.reshape(len(X), 14, 2, 14, 2).mean(axis=(2, 4)).reshape(len(X), -1)


@lru_cache(maxsize=1)
def images(dataset):
    """Pixels in [0, 1] and labels of a data set: those to draw bags from, and new ones, None where they are drawn."""
    if dataset == "digits":
        X, y = load_digits(return_X_y=True)
        return X / 16, y, None, None
    with np.load(MNIST) as data:
        names = {name.lower(): data[name] for name in data.files}
    X, y = names.get("x_train", names.get("x")), names.get("y_train", names.get("y"))
    X, X_new = (shrunk(Z) / 255 for Z in (X, names["x_test"]))
    return X, y.astype(int), X_new, names["y_test"].astype(int)


@lru_cache(maxsize=1)
def make_images(dataset, size, seed):
    """Images in random bags, and new ones; the images do not depend on the size of the bags."""
    X, y, X_new, y_new = images(dataset)
    rng = np.random.RandomState(seed)
    rows = rng.permutation(len(y))
    n = N_DIGITS if dataset == "digits" else N_MNIST
    if X_new is None:
        X_new, y_new = X[rows[n:]], y[rows[n:]]
    size = 16 if size == benchmark.ANY else int(size)
    bags = random_bags(n, bag_size=size, random_state=rng)
    return X[rows[:n]], X_new, y[rows[:n]], y_new, bags


def run_images(cell, seed):
    """One row of images."""
    method = cell["method"]
    parts = make_images(cell["dataset"], cell["bag_size"], seed)
    if method == BOOSTING:
        model = CountBoosting()
    elif method == LINEAR:
        model = CountLogistic()
    elif method == TREES:
        model = HistGradientBoostingClassifier(early_stopping=False)
    else:
        own = SETTINGS[cell["dataset"]]
        model = network(method, seed, module=convolutions, **own)
    return row(model, method, parts, 10)


def cells_of_images():
    """Each size of bags with each method; the limits see no bags."""
    found = []
    for dataset, sizes in IMAGES.items():
        own = [method for method in METHODS if method != "forward"]
        found += cells(
            dataset=[dataset], bag_size=[benchmark.ANY], method=[LABELS, TREES]
        )
        found += cells(dataset=[dataset], bag_size=sizes, method=[*own, BOOSTING])
    some, others = [*VARIANTS][:2], [*VARIANTS][2:]
    found += cells(dataset=["digits"], bag_size=IMAGES["digits"], method=[LINEAR])
    found += cells(dataset=["digits"], bag_size=[64], method=some)
    return found + cells(dataset=["mnist"], bag_size=IMAGES["mnist"], method=others)


SIMPLE = [
    cell
    for cell in tasks_of_benchmark()
    if cell["bag_size"] == 50
    and cell["kind"] in ("naive", "simple")
    and cell["method"] in TUNED
]
TABLES = [
    Table(
        "networks",
        PROTOCOL,
        list(tasks_of_benchmark()),
        run,
        "networks by each loss on the tasks of the benchmark",
    ),
    Table("networks_tuned", PROTOCOL, SIMPLE, run_tuned, "networks tuned by shares"),
    Table(
        "networks_natural",
        PROTOCOL,
        cells(how=list(natural.GROUPINGS), method=[LABELS, *METHODS]),
        run_natural,
        "networks by each loss on the bags of the study natural",
    ),
    Table(
        "networks_others",
        PROTOCOL,
        cells(method=["proportion", "counts"], dataset=complexllp.names()),
        run_others,
        "networks on the bags of others",
    ),
    Table(
        "networks_images",
        PROTOCOL,
        cells_of_images(),
        run_images,
        "networks by each loss on images of digits in random bags",
    ),
]


#: Other methods of the benchmark to compare with, by their names there.
RIVALS = ("CountBoosting", "CountLogistic", "BagBoosting", "labels (trees)", "majority")
TASK = ["dataset", "kind", "bag_size", "seed"]


def accuracies(folder=None, *, refusals=True):
    """Accuracies on the tasks of the benchmark, in percent: networks and, of the same draws and untuned, other methods.

    Parameters
    ----------
    folder : path, optional
        Of the results; that of the studies if not given.
    refusals : bool, default True
        A refusal counts as the majority class; False leaves it nan.

    Returns
    -------
    DataFrame
        A row per task and seed of which there is a network, a column per method; nan where a method was not run.
    """
    nets = load("networks", folder).assign(method=lambda t: "network, " + t["method"])
    rows = load("benchmark", folder).rename(columns={"accuracy_untuned": "accuracy"})
    rows = pd.concat([nets, rows[rows["method"].isin(RIVALS)]])
    rows["bag_size"] = rows["bag_size"].astype(str)
    rows["accuracy"] *= 100
    table = rows.set_index([*TASK, "method"])["accuracy"].unstack()
    whole = table.xs(benchmark.ANY, level="kind").droplevel("bag_size")
    limits = ["network, labels", "labels (trees)", "majority"]
    tasks = table[table.index.get_level_values("kind") != benchmark.ANY]
    same = pd.MultiIndex.from_frame(tasks.index.to_frame()[["dataset", "seed"]])
    other = whole.reindex(same)[limits].set_axis(tasks.index)
    tasks = tasks.fillna(other)
    sizes = rows.groupby([*TASK, "method"]).size().unstack()
    ran = sizes.reindex(index=tasks.index, columns=tasks.columns).notna()
    for method in tasks.columns.difference(limits) if refusals else []:
        refused = tasks[method].isna() & ran[method]
        tasks.loc[refused, method] = tasks.loc[refused, "majority"]
    return tasks[
        tasks.filter(like="network, ").drop(columns=limits[0]).notna().any(axis=1)
    ]


def beside(reference, scores=None):
    """What each network gains over a method, on all tasks that both have.

    Parameters
    ----------
    reference : str
        A column of `accuracies`.
    scores : DataFrame, optional
        Of `accuracies`, or some of its rows.

    Returns
    -------
    DataFrame
        A row per network: the mean of the differences over data sets, in points, its standard error over data sets,
        and the number of tasks.
    """
    scores = accuracies() if scores is None else scores
    found = {}
    for method in scores.filter(like="network, "):
        gaps = (scores[method] - scores[reference]).dropna()
        each = gaps.groupby("dataset").mean()
        found[method] = {"gap": each.mean(), "error": each.sem(), "tasks": len(gaps)}
    return pd.DataFrame(found).T


def stopped(folder=None):
    """Of the networks of the benchmark: the share that kept the first weights, and that was still improving at the end.

    Parameters
    ----------
    folder : path, optional
        As of `accuracies`.

    Returns
    -------
    DataFrame
        A row per loss and size of bags, in percent, with the number of tasks.
    """
    rows = load("networks", folder)
    rows = rows[(rows["method"] != LABELS) & rows["best_epoch"].notna()]
    longest = BagNetwork().max_iter
    rows = rows.assign(
        first=100.0 * (rows["best_epoch"] == 0),
        last=100.0 * (rows["best_epoch"] > 0.97 * longest),
        tasks=1,
    )
    found = rows.groupby(["method", "bag_size"], sort=False)
    return found.agg({"first": "mean", "last": "mean", "tasks": "sum"})


def natural_bags(folder=None):
    """Accuracies on natural bags, in percent: networks, and of the same draws tuned methods of `studies.natural`.

    Parameters
    ----------
    folder : path, optional
        As of `accuracies`.

    Returns
    -------
    DataFrame
        A row per grouping and draw that all networks have, ``how`` and ``seed``; a column per method.
    """
    nets = load("networks_natural", folder).assign(
        method=lambda t: "network, " + t["method"]
    )
    rows = pd.concat([load("natural", folder).query("method in @RIVALS"), nets])
    table = 100 * rows.pivot(index=["how", "seed"], columns="method", values="accuracy")
    return table.dropna()


def pictures(folder=None):
    """Accuracies on images, in percent.

    Parameters
    ----------
    folder : path, optional
        As of `accuracies`.

    Returns
    -------
    DataFrame
        A row per data set, size of bags and draw, of the limits with the size "any"; a column per method; nan where
        a method was not run or refuses the bags.
    """
    rows = load("networks_images", folder)
    return 100 * rows.pivot(
        index=["dataset", "bag_size", "seed"], columns="method", values="accuracy"
    )


def over_draws(scores, reference=None):
    """Means over draws, each with its standard error, which counts the instances that draws share.

    Parameters
    ----------
    scores : DataFrame
        Of `natural_bags` or `pictures`.
    reference : str, optional
        A method that is subtracted.

    Returns
    -------
    DataFrame
        A row per level of the index but the seed, and per method: that of `paired_differences`.
    """
    if reference is None:
        scores, reference = scores.assign(nothing=0.0), "nothing"
    kept = scores.index.names[:-1]
    parts = {
        name: paired_differences(
            some, reference, unit="seed", by=kept, test_train_ratio=RATIOS[name]
        )
        for name, some in scores.groupby(level=0)
    }
    return pd.concat(parts.values())


def others(folder=None):
    """Accuracies on the bags of others, in percent: our network on one split, and published means of 30.

    Parameters
    ----------
    folder : path, optional
        As of `accuracies`.

    Returns
    -------
    DataFrame
        A row per set that has been run: ``BagNetwork``; ``CountBoosting`` on the same split, untuned; the networks of
        `studies.complexllp`, chosen without labels by the absolute error of shares; ``majority``.
    """
    own = load("networks_others", folder).query("method == 'proportion' and seed == 0")
    rivals = load("outside", folder).query("seed == 0").set_index("dataset")
    published = pd.read_csv(complexllp.FOLDER / "results.csv").query("metric == 'abs'")
    published = published.pivot(index="dataset", columns="model", values="acc_mean")
    table = own.set_index("dataset")[["accuracy"]].set_axis(["BagNetwork"], axis=1)
    trees = rivals.query("method == 'CountBoosting'")["accuracy_untuned"]
    majority = rivals.query("method == 'majority'")["accuracy_untuned"].iloc[0]
    table = table.assign(CountBoosting=trees, majority=majority)
    return 100 * table.join(published[["dllp", "llp-vat", "llpfc", "mixbag"]])
