"""Choices that several methods share: an order of instances, folds, centers, a unit of distance, a grid."""

import numpy as np
import pandas as pd
from scipy.spatial.distance import pdist

from .._input import row_keys


def canonical_order(X):
    """Lexicographic order of the rows, the same however X is permuted.

    Random choices (folds, centers) are made on rows in this order, so that permuting instances changes nothing.

    Parameters
    ----------
    X : ndarray, shape (n, n_features)

    Returns
    -------
    ndarray of int, shape (n,)
        ``X[canonical_order(X)]`` is sorted by the first column, ties by the second, and so on.
    """
    return np.lexsort(X.T[::-1])


def feature_free_order(shares, sizes, means):
    """Order of bags that does not depend on the order of the bags, of the features or of the classes.

    By the share of the rarest class, then of the next; ties by the length of the bag mean, then by the size. What is
    still tied, or where two classes are equally rare, is ordered as given.

    Parameters
    ----------
    shares : ndarray, shape (n_bags, n_classes)
    sizes : ndarray of int, shape (n_bags,)
    means : ndarray, shape (n_bags, n_features)

    Returns
    -------
    ndarray of int, shape (n_bags,)
    """
    rarest = np.argsort(np.round(sizes @ shares / sizes.sum(), 12), kind="stable")
    lengths = np.linalg.norm(means, axis=1)
    lengths = np.round(lengths / max(lengths.max(), 1e-300), 10)
    order = canonical_order(np.column_stack([sizes, means]))
    keys = np.column_stack([np.round(shares[:, rarest], 10), lengths])[order]
    return order[canonical_order(keys)]


def row_order(data):
    """Order of the rows of bags that does not depend on theirs; faster than `canonical_order`, and for sparse X too.

    Rows are sorted by their inner product with a fixed random vector, summed in the order of the features, so that
    equal rows, and no others, have equal keys. Equal rows follow the `feature_free_order` of their bags, then their
    labels.

    Parameters
    ----------
    data : BagData

    Returns
    -------
    ndarray of int, shape (n,)
    """
    keys = row_keys(data.X)
    order = np.argsort(keys, kind="stable")
    if (np.diff(keys[order]) > 0).all():
        return order
    means = data.bag_means(data.X)
    bags = np.argsort(feature_free_order(data.proportions, data.bag_sizes, means))
    labels = np.zeros(len(keys)) if data.labels is None else data.labels
    return np.lexsort((labels, bags[data.bags], keys))


def thin(X, max_points):
    """Draw at most ``max_points`` rows, with a fixed seed, in canonical order.

    Parameters
    ----------
    X : ndarray, shape (n, n_features)
    max_points : int

    Returns
    -------
    ndarray, shape (min(n, max_points), n_features)
        The same set of rows, however X is permuted.
    """
    if len(X) <= max_points:
        return X
    keep = np.random.default_rng(0).choice(len(X), max_points, replace=False)
    return X[canonical_order(X)[keep]]


def median_distance(X):
    """Median of the distances between different rows, the unit of all widths.

    Parameters
    ----------
    X : ndarray, shape (n, n_features)
        Of more than 500 rows, as many are taken by `thin`.

    Returns
    -------
    float
        Over pairs of unequal rows where most pairs are equal; 1 where all are.
    """
    distances = pdist(thin(X, 500))
    if len(distances) and np.median(distances) > 0:
        return float(np.median(distances))
    apart = distances[distances > 0]
    return float(np.median(apart)) if len(apart) else 1.0


def fold_numbers(n, n_folds, seed):
    """Assign instances to folds at random, as many to each fold, up to one.

    For the cross-validation inside a method; stored results rest on these draws. Splitters for users are in
    `llpbook.model_selection`.

    Parameters
    ----------
    n, n_folds, seed : int
        The same seed gives samples of equal size the same folds: swapping the two bags changes nothing.

    Returns
    -------
    ndarray of int, shape (n,)
    """
    return np.random.RandomState(seed).permutation(n) % n_folds


#: Rows above which scikit-learn's trees on histograms draw those that make the bins.
MOST_BINNED = 200_000


def seed_of_bins(n_rows, rng):
    """Draw the ``random_state`` of trees on histograms, if so many rows need one."""
    return rng.randint(2**31 - 1) if n_rows > MOST_BINNED else 0


def choose_centers(X, n_centers, rng):
    """Choose centers of basis functions: all instances, or some at random.

    Parameters
    ----------
    X : ndarray, shape (n, n_features)
    n_centers : int
    rng : RandomState

    Returns
    -------
    ndarray, shape (min(n_centers, n), n_features)
        Drawn from the rows in canonical order: permuting the instances changes nothing.
    """
    X = X[canonical_order(X)]
    return X[np.sort(rng.permutation(len(X))[:n_centers])]


def candidates(name, value, grid, unit=1.0):
    """Read the values of a hyper-parameter to choose from.

    Parameters
    ----------
    name : str
        For the error message.
    value : str, float or array-like
        "cv" for the method's own grid, "median" for the unit, or the user's numbers, as they are.
    grid : sequence of float
        In units of ``unit``.
    unit : float, default 1.0

    Returns
    -------
    ndarray, shape (m,)

    Raises
    ------
    ValueError
        If the user's own are not finite numbers above 0.
    """
    if isinstance(value, str):
        return unit * np.array(grid if value == "cv" else [1.0])
    own = np.atleast_1d(np.asarray(value, dtype=float))
    if own.ndim != 1 or own.size == 0 or not (np.isfinite(own) & (own > 0)).all():
        raise ValueError(f"{name} must be finite numbers above 0, got {value!r}")
    return own


def tune(rows, **columns):
    """Make the table of a cross-validation, and choose its best row.

    Parameters
    ----------
    rows : list of tuple
        The values of the hyper-parameters, then the score: the larger, the better; NaN where nothing is compared.
    **columns
        Names of the hyper-parameters and their types.

    Returns
    -------
    best : dict
        The hyper-parameters of the first row whose score is the largest, up to a relative 1e-9: a tie is a tie on every
        processor.
    cv_results : DataFrame
        One column per hyper-parameter, and ``score``.
    """
    table = pd.DataFrame(rows, columns=[*columns, "score"]).astype(columns)
    score = table["score"].fillna(-np.inf).to_numpy()
    row = int(np.argmax(score >= score.max() - 1e-9 * np.abs(score.max())))
    return {name: kind(table[name].iloc[row]) for name, kind in columns.items()}, table
