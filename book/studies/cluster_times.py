"""Time against the number of instances, as in Fig. 3 of stolpe2011: two normal classes, ten features, bags of 16.

The classes have unit variance and means that differ by one in every feature, which is scaled to [0, 1]. LLP has six
clusters, the exhaustive labeler and three generations of 25, as there; AOC-KK a radial kernel with gamma = 0.1 and ten
starts. ``cpu`` is the processor time of one fit on one core, in seconds; the accuracy is on the instances of the bags.
"""

import time

import numpy as np

from llpbook.cluster_selection import ClusterModelSelection
from llpbook.kernel_kmeans import AOCKernelKMeans
from llpbook.proportions import label_proportions

from .runner import Table, cells

PROTOCOL = "cluster_times-1"
METHODS = {
    "LLP": ClusterModelSelection(max_iter=3, random_state=0),
    "AOC-KK": AOCKernelKMeans(kernel="rbf", gamma=0.1, random_state=0),
}


def two_classes(n, seed):
    """The data of one row.

    Parameters
    ----------
    n, seed : int

    Returns
    -------
    X : ndarray, shape (n, 10)
    y, bags : ndarray of int, shape (n,)
    """
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 10)) + y[:, None]
    return (X - X.min(axis=0)) / np.ptp(X, axis=0), y, rng.permutation(n) // 16


def run(cell, seed):
    """One row: a method, a number of instances, and a seed for the data."""
    X, y, bags = two_classes(cell["n"], seed)
    model = METHODS[cell["method"]]
    P = label_proportions(y, bags, classes=[0, 1])
    start = time.process_time()
    model.fit(X, bags, P)
    cpu = time.process_time() - start
    return {"accuracy": round(model.score(X, y), 6), "cpu": round(cpu, 4)}


TABLES = [
    Table(
        "cluster_times",
        PROTOCOL,
        cells(method=["AOC-KK"], n=[500, 1000, 2000, 4000])
        + cells(method=["LLP"], n=[1000, 10_000, 100_000, 1_000_000]),
        run,
        "time of cluster model selection and AOC-KK against the number of instances",
        value="cpu",
    )
]
