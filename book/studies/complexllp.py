"""The 26 released sets of bags of "The Complex Landscape of LLP Evaluation", its splits, and its published results.

All sets hold the same 48,842 instances of Adult and differ in their bags. The protocol of the paper: a quarter of the
rows is held out by ``ShuffleSplit`` with one of 30 seeds, all features are scaled to [-1, 1] by the training part, and
the shares are those of the training part. The released instances have another order than those of the paper: a seed
gives a split of the same kind, not the same split.

The files stand in the folder ``complexllp2024``, with their source and licence.
"""

from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.model_selection import ShuffleSplit
from sklearn.preprocessing import MinMaxScaler

from llpbook.proportions import label_proportions

FOLDER = Path(__file__).parent / "complexllp2024"
HELD_OUT = 0.25
#: Of the 30 executions, in the order of the paper.
SEEDS = (
    189395, 962432364, 832061813, 316313123, 1090792484, 1041300646,
    242592193, 634253792, 391077503, 2644570296, 1925621443, 3585833024,
    530107055, 3338766924, 3029300153, 2924454568, 1443523392, 2612919611,
    2781981831, 3394369024, 641017724, 626917272, 1164021890, 3439309091,
    1066061666, 411932339, 1446558659, 1448895932, 952198910, 3882231031,
)  # fmt: skip


@lru_cache(maxsize=1)
def _bags():
    return pd.read_csv(FOLDER / "bags.csv.gz")


@lru_cache(maxsize=1)
def _instances():
    with np.load(FOLDER / "adult179.npz") as data:
        return data["X"].astype(float), data["y"].astype(int)


@lru_cache(maxsize=1)
def _parts(k):
    """Rows of the k-th training part and of the part held out, and all features scaled."""
    X, _ = _instances()
    splits = ShuffleSplit(n_splits=1, test_size=HELD_OUT, random_state=SEEDS[k])
    train, new = next(splits.split(X))
    return train, new, MinMaxScaler((-1, 1)).fit(X[train]).transform(X)


def names():
    """Names of the sets: ``adult-VARIANT-…``.

    Returns
    -------
    list of str
    """
    return list(_bags().columns)


def variant(name):
    """The variant of a set: hard, intermediate, naive or simple.

    Parameters
    ----------
    name : str
        See `names`.

    Returns
    -------
    str
    """
    return name.split("-")[1]


def load_set(name):
    """All instances of a set.

    Parameters
    ----------
    name : str
        See `names`.

    Returns
    -------
    X : ndarray, shape (48842, 179)
        Not scaled, in [0, 1].
    y : ndarray of 0 and 1
    bags : ndarray of int

    Raises
    ------
    ValueError
        If there is no set of this name.
    """
    if name not in names():
        raise ValueError(f"name must be one of {names()}, got {name!r}")
    return *_instances(), _bags()[name].to_numpy()


def split(name, k):
    """The k-th split of a set.

    Parameters
    ----------
    name : str
        See `names`.
    k : int
        0 to 29, the place of the seed in ``SEEDS``.

    Returns
    -------
    X, X_new : ndarray, shape (36631, 179) and (12211, 179)
        Training part and the part held out, scaled to [-1, 1] by the training part.
    y, y_new : ndarray of 0 and 1
        Serve the proportions and the evaluation.
    bags : ndarray of int, shape (36631,)
        Numbered 0, 1, ….
    shares : ndarray, shape (n_bags, 2)
        Of the training part.

    Raises
    ------
    ValueError
        If there is no set of this name, or no k-th seed.
    """
    if k not in range(len(SEEDS)):
        raise ValueError(f"k must be one of 0 to {len(SEEDS) - 1}, got {k!r}")
    _, y, bags = load_set(name)
    train, new, X = _parts(k)
    bags = np.unique(bags[train], return_inverse=True)[1]
    shares = label_proportions(y[train], bags, classes=[0, 1])
    return X[train], X[new], y[train], y[new], bags, shares


def published():
    """The results that the paper's repository holds for these sets.

    Returns
    -------
    DataFrame
        ``dataset``, ``model``, ``metric`` (what chose the hyper-parameters: abs, hypergeo or oracle), ``acc_mean``,
        ``acc_std``, ``f1_mean`` and ``f1_std`` over ``n`` executions.
    """
    return pd.read_csv(FOLDER / "results.csv")
