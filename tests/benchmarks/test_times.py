"""CPU seconds of a fit to bags, most of them beside a fit to the labels of the same instances: `make bench`."""

import time
from functools import cache

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC, LinearSVC

from llpbook import (
    DSDD,
    EMLR,
    AlternatingMeanMap,
    AlterSVM,
    AOCKernelKMeans,
    BagMeanRegression,
    ClusterModelSelection,
    ConvSVM,
    CountBoosting,
    CountLogistic,
    InvCal,
    LaplacianMeanMap,
    MeanMap,
    WeightedLDA,
    recommend,
)
from llpbook.model_selection import FullBagKFold, LLPGridSearchCV, SplitBagKFold
from llpbook.proportions import label_proportions

# A shared machine stretches wall time; process time is what a fit costs.
pytestmark = pytest.mark.benchmark(timer=time.process_time)


@cache
def problem(n=100_000, size=50, d=20, n_classes=2):
    """Random bags: X, y, bags, proportions."""
    more = {"n_informative": 8, "n_clusters_per_class": 1} if n_classes > 2 else {}
    X, y = make_classification(n, d, n_classes=n_classes, random_state=0, **more)
    bags = np.random.default_rng(0).permutation(n) // size
    return X, y, bags, label_proportions(y, bags)


@cache
def cost_of_labels(kind, *given):
    X, y, *_ = problem(*given)
    model, start = {m.__name__: m for m in LABELS}[kind](), time.process_time()
    model.fit(X, y)
    return time.process_time() - start


LABELS = LogisticRegression, HistGradientBoostingClassifier, SVC, LinearSVC
LR, TREES, RBF, LINEAR = (m.__name__ for m in LABELS)
LARGE, FIVE = (100_000, 500), (100_000, 50, 20, 5)
TWO = {"kernel": "rbf", "random_state": 0}
# Most CPU of a fit as a multiple of that of a fit to labels, and the least accuracy.
BESIDE = [
    (CountLogistic(), (), LR, 4, 0.86),
    (CountLogistic(), LARGE, LR, 4, 0.86),
    (CountLogistic(), FIVE, LR, 20, 0.8),
    (MeanMap(), (), LR, 5, 0.85),
    (BagMeanRegression(), (), LR, 2, 0.85),
    (LaplacianMeanMap(), (), LR, 9, 0.85),
    (LaplacianMeanMap(n_neighbors=50), (100_000, 5), LR, 300, 0.85),
    (AlternatingMeanMap(), (), LR, 30, 0.86),
    (EMLR(), (), LR, 25, 0.86),
    (EMLR(), FIVE, LR, 25, 0.8),
    (WeightedLDA("sws"), FIVE, LR, 1, 0.7),
    (WeightedLDA("fws"), FIVE, LR, 2, 0.7),
    (WeightedLDA("wws"), FIVE, LR, 15, 0.6),
    (InvCal(), (), LINEAR, 2, 0.85),
    (InvCal(kernel="rbf"), (2000, 4), RBF, 40, 0.8),
    (CountBoosting(), (), TREES, 12, 0.9),
    (AlterSVM(random_state=0), (), LINEAR, 200, 0.8),
    (AlterSVM(**TWO), (2000,), RBF, 200, 0.8),
    (ConvSVM(), (2000, 50, 180), LINEAR, 500, 0),
    (ConvSVM(kernel="rbf"), (2000,), RBF, 2000, 0),
    (AOCKernelKMeans(**TWO), (2000,), RBF, 60, 0.3),
]


@pytest.mark.parametrize(("model", "given", "labels", "times", "accuracy"), BESIDE)
def test_beside_labels(benchmark, model, given, labels, times, accuracy):
    X, y, bags, P = problem(*given)
    benchmark.extra_info["labels"] = cost = cost_of_labels(labels, *given)
    benchmark.pedantic(model.fit, (X, bags, P), rounds=1)
    assert model.score(X, y) > accuracy
    assert benchmark.stats["min"] < times * max(cost, 0.01)


GRID = {"alpha": np.logspace(0, 5, 12), "bag_weights": ["size", "uniform"]}
SECONDS = {
    "recommend": (recommend, (), 3),
    "recommend, large bags": (recommend, LARGE, 5),
    "split bags": (LLPGridSearchCV(MeanMap(), GRID, cv=SplitBagKFold(5)).fit, (), 60),
    "full bags": (LLPGridSearchCV(MeanMap(), GRID, cv=FullBagKFold(5)).fit, (), 60),
    "cluster selection": (ClusterModelSelection(max_iter=3).fit, (10_000, 16), 120),
    "DSDD": (DSDD(random_state=0).fit, (5000, 2500), 30),
}


@pytest.mark.parametrize("name", SECONDS)
def test_seconds(benchmark, name):
    fit, given, seconds = SECONDS[name]
    X, _, bags, P = problem(*given)
    benchmark.pedantic(fit, (X, bags, P), rounds=1)
    assert benchmark.stats["min"] < seconds
