"""Interface of instances that are read in chunks, in place of a matrix of features."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

#: Rows that are enough to see how often a class is predicted.
SOME_ROWS = 1000


def evenly_spaced(n, most):
    """Numbers of at most so many of n rows, shape (min(n, most),)."""
    return np.linspace(0, n - 1, min(n, most)).astype(int)


class InChunks(ABC):
    """Interface that takes the place of X in a fit from chunks; `llpbook.beyond_memory.fit_chunks` implements it.

    It stands for one row per bag, the mean of the bag, with the size of the bag as its frequency. An estimator that
    asks for ``data.bag_means(X)`` only, or minimizes the objective of a linear model, works as it is; it says so in
    ``LLPClassifier._sums_needed``.

    Attributes
    ----------
    shape : (int, int)
        Bags with instances, and columns.
    """

    @abstractmethod
    def bag_means(self):
        """Means of the bags with instances, an ndarray of this shape."""

    @abstractmethod
    def moments(self):
        """Means and standard deviations of the columns, each an ndarray of shape (n_columns,)."""

    @abstractmethod
    def some_rows(self):
        """About `SOME_ROWS` rows of all chunks, and how many instances each stands for."""

    @abstractmethod
    def with_constant(self):
        """Copy with the feature 1 as the last column."""

    @abstractmethod
    def objective(self, loss, observed, penalty=0.0, linear=None):
        """Objective of a linear model over all chunks; parameters as of `llpbook.count_likelihood.LinearObjective`."""

    @abstractmethod
    def sums_by_bag(self, function, *args):
        """Sum results of a function over chunks; rows of bags are put into the rows of the proportions.

        Parameters
        ----------
        function : callable
            ``function(X, *args, bags, n_bags)``, defined in a module, returns a tuple of numbers and of arrays of
            shape (n_bags, n_columns), for the instances of a chunk and their bags.

        Returns
        -------
        list
        """

    @abstractmethod
    def class_moments(self, shares):
        """Moments for discriminant analysis, with the shares of each bag as the weights of its instances.

        Parameters
        ----------
        shares : ndarray, shape (n_bags, n_classes)

        Returns
        -------
        means : ndarray, shape (n_classes, n_features)
        within, total : ndarray, shape (n_features, n_features)
            Covariances within classes, and of all instances.
        """
