"""Sums over chunks, whose size does not grow with the rows, and the results from the sums of all chunks."""

from typing import NamedTuple

import numpy as np


class Moments(NamedTuple):
    """Number, mean and squared deviations of rows.

    Attributes
    ----------
    n : int
    mean : ndarray, shape (n_features,)
    squares : ndarray, shape (n_features,) or (n_features, n_features)
        Sums of the squared deviations from the mean, or of their products.
    """

    n: int
    mean: np.ndarray
    squares: np.ndarray

    @property
    def scale(self):
        """Standard deviations, shape (n_features,)."""
        squares = self.squares
        return np.sqrt((np.diag(squares) if squares.ndim == 2 else squares) / self.n)


def bag_sums(X, bags, n_bags):
    r"""Compute the size and the sum of each bag.

    Equation :eq:`eq-beyond-memory-sums`.

    Parameters
    ----------
    X : ndarray, shape (n_instances, n_features)
    bags : ndarray of int, shape (n_instances,)
    n_bags : int

    Returns
    -------
    sizes : ndarray of int, shape (n_bags,)
    sums : ndarray, shape (n_bags, n_features)
        Of two chunks they add up, also for a bag with rows in both.
    """
    sizes = np.bincount(bags, minlength=n_bags)
    starts = np.cumsum(sizes) - sizes
    if sizes.all() and (bags[1:] >= bags[:-1]).all():  # bags side by side: much faster
        sums = [np.add.reduceat(column, starts) for column in X.T]
    else:
        # eq: eq-beyond-memory-sums
        sums = [np.bincount(bags, column, n_bags) for column in X.T]
    return sizes, np.column_stack(sums)


def moments(X, products=False, times=None):
    """Compute the `Moments` of the instances of a chunk.

    Parameters
    ----------
    X : ndarray, shape (n_rows, n_features)
    products : bool, default False
        Also sum products of two features.
    times : ndarray of int, shape (n_rows,), optional
        How many equal instances each row stands for; one if not given.

    Returns
    -------
    Moments
    """
    n = len(X) if times is None else int(times.sum())
    mean = X.mean(axis=0) if times is None else times @ X / n
    if products:
        centered = X - mean
        weighted = centered if times is None else times[:, None] * centered
        return Moments(n, mean, weighted.T @ centered)
    centered = (column - m for column, m in zip(X.T, mean, strict=True))
    squares = [c @ c if times is None else times @ c**2 for c in centered]
    return Moments(n, mean, np.array(squares))


def merge(first, second):
    r"""Merge the moments of two chunks.

    Equation :eq:`eq-beyond-memory-moments`. No sum of raw squares is formed, whose difference to the square of the sum
    would lose the digits of a feature far from 0.

    Parameters
    ----------
    first, second : Moments

    Returns
    -------
    Moments
    """
    n, apart = first.n + second.n, second.mean - first.mean
    matrix = first.squares.ndim == 2
    between = np.outer(apart, apart) if matrix else apart**2
    # eq: eq-beyond-memory-moments
    squares = first.squares + second.squares + first.n * second.n / n * between
    return Moments(n, first.mean + second.n / n * apart, squares)


def class_sums(sums, shares):
    r"""Sum the instances for each class, weighted by the shares of their bags.

    Equation :eq:`eq-beyond-memory-class-sums`.

    Parameters
    ----------
    sums : ndarray, shape (n_bags, n_features)
    shares : ndarray, shape (n_bags, n_classes)

    Returns
    -------
    ndarray, shape (n_classes, n_features)
    """
    # eq: eq-beyond-memory-class-sums
    return shares.T @ sums


def within_of_sums(sums, mass, total):
    r"""Compute the class means and the covariance within classes of the scheme SWS.

    Equation :eq:`eq-beyond-memory-within`.

    Parameters
    ----------
    sums : ndarray, shape (n_classes, n_features)
        Of `class_sums`, over all bags.
    mass : ndarray, shape (n_classes,)
        Instances of each class.
    total : Moments
        Of all instances, with products.

    Returns
    -------
    means : ndarray, shape (n_classes, n_features)
        The mean of all instances for a class without any.
    covariance : ndarray, shape (n_features, n_features)
    """
    means = np.where(
        mass[:, None] > 0, sums / np.maximum(mass, 1e-300)[:, None], total.mean
    )
    apart = means - total.mean
    # eq: eq-beyond-memory-within
    return means, (total.squares - (apart * mass[:, None]).T @ apart) / total.n
