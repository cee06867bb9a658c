"""The book's own benchmark: every method on five kinds of bags, three bag sizes and fourteen data sets of all sizes.

Draw half of a data set, at most 1,000 instances, for the bags, and up to 2,000 of the others as new ones; standardize
both by the instances in bags. This draw depends on the data set and the seed, the bags on these, their kind and size:
all methods, kinds and sizes meet the same instances, so that differences are paired. ``kind``, the bags:

- ``naive``: random bags. They are what the taxonomy calls naive, so random bags are no kind of their own.
- ``simple``, ``intermediate``, ``hard``: by `llpbook.variants.make_bags`; where bags depend on the features, by ten
  k-means clusters. The wanted shares are draws from a Dirichlet distribution around the class prior: their standard
  deviation is a third of that of one label. The data may not allow all of them; then the nearest that they do.
- ``natural``: by a column, which is taken out (``GROUPINGS``); ``bag_size`` is "natural", too.

Sizes are 10, 50 and 250; where they do not divide the instances, some bags have more. Tasks with fewer than four bags
are left out. ``any`` stands for all kinds and sizes: ``majority`` and the two limits, logistic regression and boosted
trees on the true labels, see no bags. Natural bags have features of their own, and so limits of their own.

All methods of the package, at most six settings each, fixed before the runs; the first one, ``untuned``, is the default
of the package. (Grids of four settings were run first; half of their choices were at an edge.) Two criteria choose
without labels, as in `studies.outside` (the likelihood is also the loss of the count methods): ``shares`` and
``likelihood``, of whole bags predicted out of fold. Labels choose the settings of the limits. The methods for two bags
take tasks with two classes, choose their widths and penalties themselves, and take the class prior from the shares.

Columns, for each choice, of the fit to all bags: ``accuracy``, ``auc`` (of several classes the mean over one-vs-rest),
``loss`` (the mean logarithmic loss, no probability below 1e-6) and ``ece`` (`studies.calibration.judge`) on new
instances; nan where a method has no probabilities. ``cpu_fit`` are the processor seconds of the untuned fit,
``cpu_search`` those of the choice. ``failed`` is the name of the exception where a method refuses the bags: then there
are no results, and the summaries take those of the majority. ``warned`` are the classes of the warnings of the untuned
fit, ``n_bags`` is the number of bags.
"""

import time
import warnings
from functools import lru_cache

import numpy as np
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import ParameterGrid
from sklearn.preprocessing import StandardScaler

from llpbook import (
    DSDD,
    EMLR,
    LSDD,
    SMIC,
    AlternatingMeanMap,
    AlterSVM,
    AOCKernelKMeans,
    BagBoosting,
    BagLogistic,
    BagMeanRegression,
    ClusterModelSelection,
    ConvSVM,
    CountBoosting,
    CountLogistic,
    InvCal,
    KDEDifference,
    LaplacianMeanMap,
    MajorityClass,
    MeanMap,
    NotIdentifiableError,
    WeightedLDA,
)
from llpbook.datasets import load, load_bags
from llpbook.proportions import label_proportions
from llpbook.variants import make_bags

from . import bag_losses, calibration, outside
from .runner import Table, cells

PROTOCOL = "benchmark-2"
N_BAGGED, N_NEW, LEAST_BAGS, N_CLUSTERS = 1000, 2000, 4, 10
KINDS, SIZES = ("naive", "simple", "intermediate", "hard"), (10, 50, 250)
ANY, NATURAL = "any", "natural"
CHOICES, VALUES = outside.CHOICES, ["accuracy", "auc", "loss", "ece"]
SPREAD = 8  # of the shares: p (1 - p) / (SPREAD + 1) is their variance
# By name: instances, classes. Of nursery the three large classes.
DATASETS = {
    "iris": (150, 3),
    "wine": (178, 3),
    "sonar": (208, 2),
    "heart": (270, 2),
    "credit-a": (690, 2),
    "diabetes": (768, 2),
    "german": (1000, 2),
    "dna": (2000, 3),
    "segment": (2310, 7),
    "satimage": (4435, 6),
    "banana": (5300, 2),
    "nursery": (12630, 3),
    "default-credit-card": (30000, 2),
    "adult": (48842, 2),
}
PARTS = {"nursery": ["not_recom", "priority", "spec_prior"]}
GROUPINGS = {
    "credit-a": "A6",
    "german": "purpose",
    "nursery": "Has_nurs",
    "default-credit-card": "AGE",
    "adult": "occupation",
}
WEAK = {"alpha": [1.0, 10.0, 100.0, 1e3, 1e4, 1e5]}
STRONG, TEN = [0.1, 1e-3, 0.01, 1.0, 10.0, 100.0], [1.0, 1e-3, 0.01, 0.1, 10.0, 100.0]
TREES = {"C": [0.1, 1.0, 10.0], "max_iter": [100, 15]}
# By name: estimator and grid. The first setting is the default of the package. To add a method, add an entry.
METHODS = {
    "ridge": (BagMeanRegression(), {"alpha": [1.0, 0.01, 0.1, 10.0, 100.0, 1e3]}),
    "MeanMap": (MeanMap(), WEAK),
    "LaplacianMeanMap": (LaplacianMeanMap(), WEAK),
    "WeightedLDA": (WeightedLDA(), {"shrinkage": [None, 0.1, 0.3, 0.5, 0.9, 0.99]}),
    "InvCal": (InvCal(), {"C_p": TEN}),
    "EMLR": (EMLR(), {"C": [1.0, 1e-4, 1e-3, 0.01, 0.1, 10.0]}),
    "CountLogistic": (CountLogistic(), {"C": STRONG}),
    "BagLogistic": (
        BagLogistic("proportion"),
        {"C": [0.1, 0.01, 1.0, 10.0, 100.0, 1e3]},
    ),
    "KDEDifference": (KDEDifference(class_prior="match"), {}),
    "LSDD": (LSDD(class_prior="match"), {}),
    "CountBoosting": (CountBoosting(), TREES),
    "BagBoosting": (BagBoosting("proportion"), TREES),
    "AlternatingMeanMap": (AlternatingMeanMap(), WEAK),
    "AlterSVM": (AlterSVM(n_init=3), {"C": STRONG}),
    "ClusterModelSelection": (
        ClusterModelSelection(max_iter=3, population_size=10),
        {"n_clusters": [6, 2, 3, 4, 5]},
    ),
    "AOCKernelKMeans": (
        AOCKernelKMeans(),
        {"C_p": [1.0, 0.01, 0.1, 10.0, 100.0, 1e3]},
    ),
    "DSDD": (DSDD(class_prior="match", n_folds=3), {}),
    "SMIC": (SMIC(), {}),
    "ConvSVM": (ConvSVM(max_cutting_planes=10), {"C": TEN}),
}
LIMITS = {
    "majority": (MajorityClass(), {}),
    "labels (linear)": (LogisticRegression(max_iter=1000), {"C": TEN}),
    "labels (trees)": (
        HistGradientBoostingClassifier(early_stopping=False),
        {"learning_rate": [0.1, 0.03], "max_iter": [100, 50, 300]},
    ),
}


def takes(method, dataset):
    """Whether a method is for as many classes as a data set has."""
    tags = {**METHODS, **LIMITS}[method][0].__sklearn_tags__()
    return DATASETS[dataset][1] == 2 or tags.classifier_tags.multi_class


def all_cells():
    """What there is to run: tasks of four bags or more, each with the methods that take its classes."""
    limits, tasks = [], []
    for name, (n, _) in DATASETS.items():
        own = [NATURAL] if name in GROUPINGS else []
        limits += cells(
            dataset=[name], kind=[ANY, *own], bag_size=[ANY], method=[*LIMITS]
        )
        sizes = [s for s in SIZES if min(n // 2, N_BAGGED) // s >= LEAST_BAGS]
        some = cells(dataset=[name], kind=KINDS, bag_size=sizes, method=[*METHODS])
        some += cells(dataset=[name], kind=own, bag_size=own, method=[*METHODS])
        tasks += [cell for cell in some if takes(cell["method"], name)]
    for cell in limits:
        cell["bag_size"] = cell["kind"]
    return limits + tasks


@lru_cache(maxsize=4)
def table_of(name, natural):
    """Features, labels 0, 1, … and, where they are natural, bags of a data set."""
    classes = PARTS.get(name)
    if natural:
        data = load_bags(name, by=GROUPINGS[name], classes=classes)
        X, y, groups = data.X, data.true_labels_for_evaluation(), data.bags
    else:
        (X, y), groups = load(name, classes=classes), None
    return X.to_numpy(dtype=float), np.unique(y, return_inverse=True)[1], groups


def draw_bags(X, y, kind, size, rng):
    """Bags of a size and a kind other than natural, shape (n,)."""
    n = len(y) // size
    sizes = np.diff(np.linspace(0, len(y), n + 1).round().astype(int))
    options = {"sizes": sizes, "random_state": rng}
    if kind != "naive":
        prior = np.bincount(y) / len(y)
        options["proportions"] = rng.dirichlet(SPREAD * prior, n)
    if kind in ("intermediate", "hard"):
        kinds = KMeans(N_CLUSTERS, n_init=1, random_state=rng)
        options["clusters"] = kinds.fit_predict(X)
    return make_bags(X, y, kind, **options).bags


@lru_cache(maxsize=1)
def make_problem(dataset, kind, size, seed):
    """One draw: instances in bags and new ones.

    Parameters
    ----------
    dataset : str
    kind : str
        Of ``KINDS``, "natural", or "any" for a single bag.
    size : int or str
        Of the bags; not looked at for natural bags and a single one.
    seed : int

    Returns
    -------
    X, X_new : ndarray, shape (n, n_features) and (n_new, n_features)
        Standardized by the mean and deviation of X.
    y, y_new : ndarray of int
        0, 1, …; serve the proportions and the evaluation.
    bags : ndarray of int, shape (n,)
    """
    X, y, groups = table_of(dataset, kind == NATURAL)
    rows = np.random.RandomState(seed).permutation(len(y))
    n = min(len(y) // 2, N_BAGGED)
    rows = rows[: n + N_NEW]
    Z, y = StandardScaler().fit(X[rows[:n]]).transform(X[rows]), y[rows]
    if kind == NATURAL:
        bags = groups[rows[:n]]
    elif kind == ANY:
        bags = np.zeros(n, dtype=int)
    else:
        rng = np.random.RandomState([seed, KINDS.index(kind), int(size)])
        bags = draw_bags(Z[:n], y[:n], kind, int(size), rng)
    return Z[:n], Z[n:], y[:n], y[n:], np.unique(bags, return_inverse=True)[1]


def area(scores, y):
    """Area under the ROC curve; of several classes, the mean over those of one against the rest."""
    if scores.ndim == 1:
        return roc_auc_score(y, scores)
    return np.mean([roc_auc_score(y == k, s) for k, s in enumerate(scores.T)])


def judge(model, X, y, n_classes):
    """Results on new instances, by the names of ``VALUES``."""
    found = dict.fromkeys(VALUES, np.nan) | {"accuracy": np.mean(model.predict(X) == y)}
    if hasattr(model, "predict_proba"):
        scores = P = model.predict_proba(X)
        P = np.clip(P, 1e-6, 1)
        result = calibration.judge(P / P.sum(axis=1, keepdims=True), y)
        found |= {"loss": result["loss"], "ece": result["ece"]}
        scores = scores[:, 1] if n_classes == 2 else scores
    else:
        scores = model.decision_function(X)
    return found | {"auc": area(scores, y)}


def build(method, seed):
    """An estimator, its random state the seed where it has one, and its grid."""
    estimator, grid = {**METHODS, **LIMITS}[method]
    estimator = clone(estimator)  # the choice sets parameters
    if "random_state" in estimator.get_params():
        estimator.set_params(random_state=seed)
    return estimator, grid


def choose(method, X, y, bags, shares, seed):
    """The settings by choice; labels choose for the limits, and for nothing else."""
    estimator, grid = build(method, seed)
    settings = dict.fromkeys(CHOICES, ParameterGrid(grid)[0])
    if method in LIMITS and method != "majority":
        best = bag_losses.choose(estimator, grid, X, (y,), None)
        return settings | dict.fromkeys(outside.CRITERIA, best)
    if not grid:
        return settings
    found = outside.choices(estimator, grid, X, bags, shares, seed)
    return settings | {how: setting for how, (setting, _) in found.items()}


def fit_all(estimator, settings, X, given, X_new, y_new, n_classes):
    """Results by choice, processor seconds and warnings of the untuned fit; equal settings are fitted once."""
    known, found = {}, {}
    for how in ("untuned", *outside.CRITERIA):
        words = outside.as_words(settings[how])
        if words not in known:
            start = time.process_time()
            with warnings.catch_warnings(record=True) as heard:
                warnings.simplefilter("always")
                model = clone(estimator).set_params(**settings[how]).fit(X, *given)
            spent = time.process_time() - start
            known[words] = judge(model, X_new, y_new, n_classes), spent, heard
        found |= {f"{value}_{how}": v for value, v in known[words][0].items()}
    _, spent, heard = known[outside.as_words(settings["untuned"])]
    names = {warning.category.__name__ for warning in heard}
    return {**found, "cpu_fit": spent}, " ".join(sorted(names))


def run(cell, seed):
    """One row: a task, a method and a seed."""
    task = cell["dataset"], cell["kind"], cell["bag_size"], seed
    X, X_new, y, y_new, bags = make_problem(*task)
    K, method = DATASETS[cell["dataset"]][1], cell["method"]
    shares = label_proportions(y, bags, classes=range(K))
    estimator, _ = build(method, seed)
    labeled = method in LIMITS and method != "majority"
    given = (y,) if labeled else (bags, shares)
    found = {f"{value}_{how}": np.nan for value in VALUES for how in CHOICES}
    found |= {"cpu_fit": np.nan, "cpu_search": np.nan, "n_bags": bags.max() + 1}
    failed = warned = ""
    settings = {how: {} for how in CHOICES}
    with warnings.catch_warnings(action="ignore"):
        try:
            start = time.process_time()
            settings = choose(method, X, y, bags, shares, seed)
            found["cpu_search"] = time.process_time() - start
            results = fit_all(estimator, settings, X, given, X_new, y_new, K)
            found, warned = found | results[0], results[1]
        except NotIdentifiableError as error:
            failed = type(error).__name__
    found = {key: round(float(value), 6) for key, value in found.items()}
    words = {f"chosen_{how}": outside.as_words(settings[how]) for how in CHOICES[:2]}
    return {**found, "failed": failed, "warned": warned, **words}


TABLES = [
    Table(
        "benchmark",
        PROTOCOL,
        all_cells(),
        run,
        "all methods on five kinds of bags, three bag sizes and fourteen data sets: the page of the benchmark",
        value="accuracy_likelihood",
    ),
]
