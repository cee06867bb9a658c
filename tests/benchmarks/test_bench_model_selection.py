"""48 settings of MeanMap in five folds, n = 100,000, d = 20, 2,000 bags, in processor seconds: `make bench`."""

import time

import numpy as np
import pytest
from sklearn.datasets import make_classification

from llpbook.mean_map import MeanMap
from llpbook.model_selection import FullBagKFold, LLPGridSearchCV, SplitBagKFold
from llpbook.proportions import label_proportions

GRID = {
    "alpha": np.logspace(0, 5, 12).tolist(),
    "fit_intercept": [True, False],
    "bag_weights": ["size", "uniform"],
}


@pytest.fixture(scope="module")
def problem():
    X, y = make_classification(n_samples=100_000, n_features=20, random_state=0)
    bags = np.random.default_rng(0).permutation(100_000) // 50
    return X, y, bags, label_proportions(y, bags)


@pytest.mark.benchmark(timer=time.process_time)
@pytest.mark.parametrize(
    "cv",
    [SplitBagKFold(5, random_state=0), FullBagKFold(5)],
    ids=lambda cv: type(cv).__name__,
)
def test_search(benchmark, problem, cv):
    X, y, bags, P = problem
    search = LLPGridSearchCV(MeanMap(), GRID, cv=cv)
    benchmark.pedantic(search.fit, (X, bags, P), rounds=1)
    assert search.score(X, y) > 0.8
    assert benchmark.stats["min"] < 2 * 30  # half a minute of two processors


@pytest.mark.benchmark(timer=time.process_time)
@pytest.mark.parametrize("error", ["mae", "log_likelihood"])
def test_splits_and_scores(benchmark, problem, error):
    X, _, bags, P = problem
    search = LLPGridSearchCV(MeanMap(), {"alpha": [1e3]}, scoring=error)
    benchmark.pedantic(search.fit, (X, bags, P), rounds=1)
