"""Learners from counts, n = 100,000, d = 20, 2,000 random bags, on new instances: `make bench`."""

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from llpbook.count_likelihood import CountBoosting, CountLogistic
from llpbook.proportions import label_proportions

FIFTY = ExtraTreesRegressor(50, min_samples_leaf=50, random_state=0)


@pytest.fixture(scope="module")
def data():
    return make_classification(n_samples=110_000, n_features=20, random_state=0)


@pytest.mark.parametrize(
    "model, accuracy",
    [(LogisticRegression(), 0.86), (HistGradientBoostingClassifier(), 0.92)],
    ids=["linear", "boosted"],
)
def test_supervised(benchmark, data, model, accuracy):
    X, y = data
    benchmark.pedantic(model.fit, (X[:100_000], y[:100_000]), rounds=1)
    assert model.score(X[100_000:], y[100_000:]) > accuracy


@pytest.mark.parametrize(
    "model, n, accuracy, seconds",
    [
        (CountLogistic(), 100_000, 0.863, 1),
        (CountBoosting(), 100_000, 0.91, 8),
        (CountBoosting(), 10_000, 0.86, 1.5),
        (CountBoosting(C=0.01), 10_000, 0.865, 1.5),
        (CountBoosting(FIFTY, C=0.01), 10_000, 0.87, 90),
    ],
    ids=["linear", "boosted", "a tenth", "a tenth, C=0.01", "a tenth, fifty trees"],
)
def test_counts(benchmark, data, model, n, accuracy, seconds):
    X, y = data
    bags = np.random.default_rng(0).permutation(n) // 50
    P = label_proportions(y[:n], bags)
    benchmark.pedantic(model.fit, (X[:n], bags, P), rounds=1)
    assert model.score(X[100_000:], y[100_000:]) > accuracy
    assert benchmark.stats["min"] < seconds
