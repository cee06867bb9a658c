"""The margin methods beside support vector machines on the true labels, in CPU seconds: `make bench`."""

import time

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.svm import SVC, LinearSVC

from llpbook.alter_svm import AlterSVM
from llpbook.invcal import InvCal
from llpbook.proportions import label_proportions

# A shared machine stretches wall time; process time is what a fit costs.
timer = {"group": "margins", "timer": time.process_time}


def problem(n, d=20, size=50, seed=0):
    X, y = make_classification(n_samples=n, n_features=d, random_state=seed)
    bags = np.random.default_rng(seed).permutation(n) // size
    return X, y, bags, label_proportions(y, bags)


def measure(benchmark, model, data, limit, at_least):
    """One fit, within the limit in seconds, that is right at least so often."""
    X, y, bags, P = data
    benchmark.pedantic(model.fit, (X, bags, P), rounds=1)
    assert model.score(X, y) > at_least
    assert benchmark.stats["min"] < limit


@pytest.mark.benchmark(**timer)
@pytest.mark.parametrize("n", [2000, 100_000])
def test_supervised_linear(benchmark, n):
    X, y, _, _ = problem(n)
    benchmark.pedantic(LinearSVC().fit, (X, y), rounds=1)


@pytest.mark.benchmark(**timer)
def test_supervised_rbf(benchmark):
    X, y, _, _ = problem(2000)
    benchmark.pedantic(SVC().fit, (X, y), rounds=1)


@pytest.mark.benchmark(**timer)
def test_invcal_linear(benchmark):
    measure(benchmark, InvCal(), problem(100_000), 0.1, 0.8)


@pytest.mark.benchmark(**timer)
def test_invcal_rbf(benchmark):
    measure(benchmark, InvCal(kernel="rbf"), problem(2000, size=4), 2, 0.8)


@pytest.mark.benchmark(**timer)
@pytest.mark.parametrize(
    ("n", "d", "limit"), [(100_000, 20, 15), (12_000, 1024, 30), (1_000_000, 20, 180)]
)
def test_alter_linear(benchmark, n, d, limit):
    at_least = 0.8 if d == 20 else 0.4  # of 1,024 features 1,020 are noise
    model = AlterSVM(C=1.0, random_state=0)
    measure(benchmark, model, problem(n, d), limit, at_least)


@pytest.mark.benchmark(**timer)
def test_alter_rbf(benchmark):
    model = AlterSVM(C=1.0, kernel="rbf", random_state=0)
    measure(benchmark, model, problem(2000), 6, 0.8)
