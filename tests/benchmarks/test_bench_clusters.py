"""Cluster model selection to a million instances, ten features, k = 6, three generations; AOC-KK: `make bench`."""

import numpy as np
import pytest

from llpbook.cluster_selection import ClusterModelSelection
from llpbook.kernel_kmeans import AOCKernelKMeans
from llpbook.proportions import label_proportions


def two_gaussians(n, d=10, seed=0):
    """As in the paper's Fig. 3, in bags of 16, to [0, 1]."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    X = rng.normal(size=(n, d)) + y[:, None]
    bags = rng.permutation(n) // 16
    return (X - X.min(0)) / np.ptp(X, axis=0), y, bags, label_proportions(y, bags)


@pytest.mark.parametrize("n", [10_000, 100_000, 1_000_000])
@pytest.mark.benchmark(group="cluster model selection")
def test_cluster_selection(benchmark, n):
    X, y, bags, P = two_gaussians(n)
    model = ClusterModelSelection(max_iter=3, n_jobs=2, random_state=0)
    benchmark.pedantic(model.fit, (X, bags, P), rounds=1)
    assert model.score(X, y) > 0.8
    assert benchmark.stats["min"] < 120


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.benchmark(group="AOC kernel k-means, ten starts")
def test_kernel_kmeans(benchmark, kernel):
    X, y, bags, P = two_gaussians(2000)
    model = AOCKernelKMeans(kernel=kernel, random_state=0)
    benchmark.pedantic(model.fit, (X, bags, P), rounds=1)
    assert model.score(X, y) > 0.8
    assert benchmark.stats["min"] < 2
