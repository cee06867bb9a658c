"""Hard EM at n = 100,000, d = 20, 2,000 random bags, and labels of five classes: `make bench`."""

import numpy as np
import pytest
from sklearn.datasets import make_classification

from llpbook.base import label_by_counts
from llpbook.em import EMLR
from llpbook.proportions import label_proportions


def test_fit(benchmark):
    X, y = make_classification(n_samples=110_000, n_features=20, random_state=0)
    bags = np.random.default_rng(0).permutation(100_000) // 50
    P = label_proportions(y[:100_000], bags)
    model = benchmark.pedantic(EMLR().fit, (X[:100_000], bags, P), rounds=1)
    assert model.score(X[100_000:], y[100_000:]) > 0.86
    assert benchmark.stats["min"] < 10


@pytest.mark.parametrize("n_classes", [2, 5])
def test_labels(benchmark, n_classes):
    rng = np.random.default_rng(0)
    bags = rng.permutation(100_000) // 50
    counts = rng.multinomial(50, np.ones(n_classes) / n_classes, 2000)
    labels = benchmark(
        label_by_counts, rng.normal(size=(100_000, n_classes)), bags, counts
    )
    assert np.bincount(labels).sum() == 100_000
