"""The protocol of stolpe2011, section 4.1: eight data sets, ten folds, random bags of 2 to 128, many models a method.

For each data set, bag size and seed: scale each feature to [0, 1], split the instances into ten folds, cut nine of them
into random bags, fit every candidate of a method, and predict the instances of the tenth. The paper reports, for each
method, the accuracy of its *best* candidate, found by the labels on which it is reported. Here one row holds:

- ``best``: that number, the largest of the candidates' mean accuracies over the folds, and which candidate it is;
- ``crossed``: the candidate that is best on five folds, scored on the other five, and the reverse: chosen by labels,
  but by other ones. What ``best`` has more is the optimism of a maximum.
- ``held_out``: in each fold the candidate with the smallest error of proportions on a quarter of the training part,
  which the candidates did not see; then fitted to the whole training part. No label chooses. What ``crossed`` has more
  is the price of that.
- ``in_sample``: in each fold the candidate with the smallest error on the training bags themselves (equations 6 and 7,
  added), as LLP chooses weights.
- ``mean``: of all candidates, a choice by chance.

Candidates: LLP with 2, 4 or 6 clusters and either labeler, as the paper's ``product`` or our ``sum`` of errors;
k-means is the same with all weights 1, the sum, and the exhaustive labeler. AOC-KK, MeanMap and InvCal have the six
kernels of the paper, the last two with two penalties each. Cluster methods predict by their means, or by naive Bayes,
nearest neighbors or a tree that is trained on the labels they give. ``ridge`` on bag means has five penalties.

What the paper leaves open or what would take weeks, and what is done here:

- Two generations of ten individuals, not ten of 25; three numbers of clusters, not eleven; three classifiers, not six.
  ``stolpe2011_settings`` runs the paper's numbers on a few cells.
- Features are scaled by all instances: it needs no label. Folds are stratified by class.
- Held out are whole bags where there are at least eight, else a quarter of each bag.
- Where a fit ends in `NotIdentifiableError`, the majority class of the training bags answers.
- AOC-KK: lambda is 1, three starts. MeanMap: its penalty is 1 or 10. InvCal: ``C_p`` is 1 or 10.
"""

import warnings
from functools import lru_cache, partial

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import polynomial_kernel
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import minmax_scale
from sklearn.tree import DecisionTreeClassifier

from llpbook.base import LLPWarning
from llpbook.baselines import BagMeanRegression
from llpbook.cluster_selection import (
    ClusterModelSelection,
    cluster_means,
    label_clusters,
)
from llpbook.comparison import rank_methods
from llpbook.datasets import binary_labels, load, provenance, random_bags
from llpbook.invcal import InvCal
from llpbook.kernel_kmeans import AOCKernelKMeans
from llpbook.mean_map import MeanMap
from llpbook.model_selection import FullBagKFold, SplitBagKFold
from llpbook.proportions import (
    label_proportions,
    prior_mse,
    proportion_mae,
    proportion_weighted_mse,
)

from ._agreement import agreement, paper_table, resolution
from .runner import Table, cells
from .runner import load as load_rows
from .yu2013 import MajorityFallback

PROTOCOL = "stolpe2011-1"
N_FOLDS = 10
DATASETS = [
    "sonar", "breast-cancer", "heart-c", "ionosphere", "colic", "vote", "diabetes",
    "credit-a",
]  # fmt: skip
BAG_SIZES = (2, 4, 8, 16, 32, 64, 128)
CLUSTERS = (2, 4, 6)
N_PAPER = 1  # divisions into folds and bags behind a printed rank


def polynomial(degree, X, Z):
    """The polynomial kernel, (1 + gamma x'z) to the degree, with gamma = 1 / n_features."""
    return polynomial_kernel(X, Z, degree)


KERNELS = {
    "linear": {"kernel": "linear"},
    "quadratic": {"kernel": partial(polynomial, 2)},
    "cubic": {"kernel": partial(polynomial, 3)},
    "rbf .01": {"kernel": "rbf", "gamma": 0.01},
    "rbf .1": {"kernel": "rbf", "gamma": 0.1},
    "rbf 1": {"kernel": "rbf", "gamma": 1.0},
}
# Trained on the labels that a cluster method gives to its instances.
CLASSIFIERS = {
    "means": None,
    "naive Bayes": GaussianNB(),
    "neighbors": KNeighborsClassifier(5),
    "tree": DecisionTreeClassifier(min_samples_leaf=5, random_state=0),
}


class LabeledKMeans(ClusterModelSelection):
    """k-means with all features alike, and the best labels of its clusters: LLP without its strategy."""

    def _fit(self, data):
        X, bags, P = data.X, data.bags, data.proportions
        self.feature_weights_ = np.ones(X.shape[1])
        kmeans = self._kmeans(len(X), np.random.RandomState(self.random_state))
        self.objective_, clusters, self.labeling_ = label_clusters(
            self.feature_weights_, X, bags, P, None, kmeans, "exhaustive", "sum"
        )
        self.cluster_means_ = cluster_means(X, clusters)


def strategies(combine, max_iter=2, population_size=10):
    """LLP with each number of clusters and labeler, by name."""
    return {
        f"{k} {labeler}": ClusterModelSelection(
            k,
            labeler=labeler,
            combine=combine,
            max_iter=max_iter,
            population_size=population_size,
        )
        for k in CLUSTERS
        for labeler in ("exhaustive", "greedy")
    }


# By name: estimators by name, and whether classifiers are trained on the labels that they give. To add a method, add an
# entry.
METHODS = {
    "LLP": (strategies("product"), True),
    "LLP sum": (strategies("sum"), True),
    "k-means": ({str(k): LabeledKMeans(k) for k in CLUSTERS}, True),
    "AOC-KK": (
        {name: AOCKernelKMeans(n_init=3, **k) for name, k in KERNELS.items()},
        True,
    ),
    "MeanMap": (
        {
            f"{name} {lam:g}": MeanMap(alpha=lam, **k)
            for name, k in KERNELS.items()
            for lam in (1.0, 10.0)
        },
        False,
    ),
    "InvCal": (
        {
            f"{name} {C_p:g}": InvCal(C_p=C_p, **k)
            for name, k in KERNELS.items()
            for C_p in (1.0, 10.0)
        },
        False,
    ),
    "ridge": (
        {f"{a:g}": BagMeanRegression(alpha=a) for a in (0.01, 0.1, 1, 10, 100)},
        False,
    ),
    "LLP long": (strategies("product", 10, 25), True),
    "LLP sum long": (strategies("sum", 10, 25), True),
}
LONG = ["LLP long", "LLP sum long"]
TABLE_2 = ["LLP", "AOC-KK", "InvCal", "MeanMap"]


@lru_cache(maxsize=1)
def problem(dataset):
    """Features in [0, 1], and labels 0 and 1, in the encoding of the paper.

    Parameters
    ----------
    dataset : str

    Returns
    -------
    X : ndarray, shape (n_instances, n_features)
    y : ndarray of int, shape (n_instances,)
    """
    table, labels = load(dataset, encoding="stolpe2011")
    positive = provenance(dataset, encoding="stolpe2011")["positive"]
    return minmax_scale(table.to_numpy()), binary_labels(labels, positive)


def candidates(method):
    """Names of the candidates of a method."""
    estimators, cluster = METHODS[method]
    if not cluster:
        return list(estimators)
    return [f"{name}, {how}" for name in estimators for how in CLASSIFIERS]


def predictions(method, X, bags, proportions, wanted, seed):
    """What each candidate predicts.

    Parameters
    ----------
    method : str
    X : ndarray, shape (n_instances, n_features)
    bags : ndarray of int, shape (n_instances,)
    proportions : ndarray, shape (n_bags, 2)
    wanted : list of ndarray
        Instances to predict.
    seed : int

    Returns
    -------
    list of list of ndarray
        For each candidate, for each entry of ``wanted``.
    """
    estimators, cluster = METHODS[method]
    found = []
    for estimator in estimators.values():
        model = clone(estimator)
        if "random_state" in model.get_params():
            model.set_params(random_state=seed)
        model = MajorityFallback(model).fit(X, bags, proportions)
        found.append([model.predict(Z) for Z in wanted])
        labels = getattr(model.model_, "labels_", None)
        labels = model.predict(X) if labels is None else labels
        for classifier in [*CLASSIFIERS.values()][1:] if cluster else []:
            several = (labels != labels[0]).any()
            trained = clone(classifier if several else DummyClassifier()).fit(X, labels)
            found.append([trained.predict(Z) for Z in wanted])
    return found


def hold_out(bags, seed):
    """A quarter of the instances: of whole bags where there are at least eight, else of each bag.

    Parameters
    ----------
    bags : ndarray of int, shape (n_instances,)
    seed : int

    Returns
    -------
    fit, held : ndarray of int
        Rows.
    """
    whole = bags.max() >= 7
    splitter = FullBagKFold if whole else SplitBagKFold
    return next(splitter(4, random_state=seed).split(bags, groups=bags))


def fold(method, X, bags, P, X_new, y_new, seed):
    """Accuracies of the candidates, and what may choose among them.

    Parameters
    ----------
    method : str
    X, bags, P : ndarray
        The training part, in bags.
    X_new, y_new : ndarray
        Instances to predict, and their labels for evaluation.
    seed : int

    Returns
    -------
    accuracy, held_error, own_error : ndarray, shape (n_candidates,)
    """
    sizes = np.bincount(bags)
    accuracy, own = [], []
    for new, old in predictions(method, X, bags, P, [X_new, X], seed):
        shares = label_proportions(old, bags, classes=[0, 1])
        accuracy.append(np.mean(new == y_new))
        own.append(
            proportion_weighted_mse(P, shares, sizes) + prior_mse(P, shares, sizes)
        )
    fit, held = hold_out(bags, seed)
    inside, part = np.unique(bags[fit], return_inverse=True)
    outside, rest = np.unique(bags[held], return_inverse=True)
    held_error = [
        proportion_mae(
            P[outside],
            label_proportions(z, rest, classes=[0, 1]),
            bag_sizes=np.bincount(rest),
        )
        for (z,) in predictions(method, X[fit], part, P[inside], [X[held]], seed)
    ]
    return np.array(accuracy), np.array(held_error), np.array(own)


def choose(accuracy, held, own):
    """The numbers of a row, from tables of folds by candidates.

    Parameters
    ----------
    accuracy, held, own : ndarray, shape (n_folds, n_candidates)

    Returns
    -------
    dict
    """
    by_fold, half = np.arange(len(accuracy)), np.arange(len(accuracy)) % 2 == 0
    crossed = [
        accuracy[part][:, accuracy[~part].mean(axis=0).argmax()]
        for part in (half, ~half)
    ]
    found = {
        "best": accuracy.mean(axis=0).max(),
        "crossed": np.concatenate(crossed).mean(),
        "held_out": accuracy[by_fold, held.argmin(axis=1)].mean(),
        "in_sample": accuracy[by_fold, own.argmin(axis=1)].mean(),
        "mean": accuracy.mean(),
    }
    return {key: round(float(value), 6) for key, value in found.items()}


def run(cell, seed):
    """One row: a data set, a bag size, a method, and a seed for folds and bags."""
    X, y = problem(cell["dataset"])
    folds = StratifiedKFold(N_FOLDS, shuffle=True, random_state=seed)
    found = []
    with warnings.catch_warnings():
        for category in (ConvergenceWarning, LLPWarning):
            warnings.simplefilter("ignore", category)
        for train, test in folds.split(X, y):
            bags = random_bags(y[train], bag_size=cell["bag_size"], random_state=seed)
            P = label_proportions(y[train], bags, classes=[0, 1])
            found.append(
                fold(cell["method"], X[train], bags, P, X[test], y[test], seed)
            )
    tables = [np.array(t) for t in zip(*found, strict=True)]
    names = candidates(cell["method"])
    return {
        **choose(*tables),
        "n_candidates": len(names),
        "best_candidate": names[tables[0].mean(axis=0).argmax()],
    }


def complete(results=None):
    """Rows of the bag sizes and seeds that have every method on every data set.

    Parameters
    ----------
    results : path, optional

    Returns
    -------
    DataFrame
    """
    rows = load_rows("stolpe2011", results)
    count = rows.groupby(["seed", "bag_size"])["best"].transform("size")
    return rows[count == len(DATASETS) * (len(METHODS) - len(LONG))]


def ranks(choice="best", methods=TABLE_2, results=None):
    """Average ranks over the data sets, for each bag size and seed with rows for all methods and data sets.

    Parameters
    ----------
    choice : str
        A column: how the candidate of each method is chosen.
    methods : sequence of str
    results : path, optional

    Returns
    -------
    DataFrame
        ``bag_size, seed, method, rank``; 1 is the best, ties share a rank.
    """
    rows = load_rows("stolpe2011", results)
    rows = rows[rows["method"].isin(methods)]
    wide = rows.pivot(
        index=["bag_size", "seed", "dataset"], columns="method", values=choice
    ).dropna()
    full = wide.groupby(["bag_size", "seed"]).transform("size") == len(DATASETS)
    places = rank_methods(wide[full]) if full.any() else wide[full]
    mean = places.groupby(["bag_size", "seed"]).mean()
    return mean.stack().rename("rank").reset_index()


def compare(choice="best", results=None):
    """Average ranks beside Table 2 of the paper.

    Parameters
    ----------
    choice : str
        As for `ranks`.
    results : path, optional

    Returns
    -------
    DataFrame
        ``bag_size, method, paper, paper_sd, ours, sd, n_seeds`` and what `agreement` says. At 128 the paper ranks three
        methods, so do we.
    """
    most = ranks(choice, results=results).query("bag_size < 128")
    last = ranks(choice, TABLE_2[:3], results).query("bag_size == 128")
    ours = (
        pd.concat([most, last])
        .groupby(["bag_size", "method"])["rank"]
        .agg(ours="mean", sd="std", n_seeds="count")
        .reset_index()
    )
    printed = paper_table("stolpe2011_table2")
    resolves = resolution(printed, ["bag_size"], "average_rank")
    printed = printed.rename(columns={"average_rank": "paper"})
    both = printed.assign(paper_sd=np.nan).merge(ours, on=["method", "bag_size"])
    return agreement(both.sort_values(["bag_size", "method"]), N_PAPER, resolves)


TABLES = [
    Table(
        "stolpe2011",
        PROTOCOL,
        cells(
            bag_size=[16, 64, 4, 128, 2, 8, 32],
            dataset=DATASETS,
            method=[m for m in METHODS if m not in LONG],
        ),
        run,
        "Table 2 of Stolpe and Morik (2011): the best of many models, and models chosen without labels",
        value="best",
    ),
    Table(
        "stolpe2011_settings",
        PROTOCOL,
        cells(bag_size=[16], dataset=["heart-c", "vote"], method=LONG),
        run,
        "the same with the ten generations of 25 individuals of the paper",
        value="best",
    ),
]
