"""Fits at n = 100,000, d = 20, 2,000 bags, beside supervised learning on the same data: `make bench`."""

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression

from llpbook.baselines import BagMeanRegression
from llpbook.mean_map import MeanMap
from llpbook.proportions import label_proportions


@pytest.fixture(scope="module")
def problem():
    X, y = make_classification(n_samples=100_000, n_features=20, random_state=0)
    bags = np.random.default_rng(0).permutation(100_000) // 50
    return X, y, bags, label_proportions(y, bags)


def test_supervised_limit(benchmark, problem):
    X, y, _, _ = problem
    assert benchmark(LogisticRegression().fit, X, y).score(X, y) > 0.8


@pytest.mark.parametrize(
    "model", [MeanMap(), BagMeanRegression()], ids=lambda m: type(m).__name__
)
def test_bags(benchmark, problem, model):
    X, y, bags, P = problem
    assert benchmark(model.fit, X, bags, P).score(X, y) > 0.8
