"""Base class of methods that are linear in the features, or in those of a kernel."""

from abc import abstractmethod

import numpy as np
import scipy.sparse as sp

from .._input import (
    WITHOUT_GRAM,
    gram_matrix,
    kernel_coefficient,
    kernel_features,
    refuse_indefinite,
)
from ._chunked import InChunks
from ._estimator import LLPClassifier
from ._predictions import in_blocks
from ._running import require_memory


class KernelClassifier(LLPClassifier):
    r"""Base of methods whose scores are linear in the features, or in those of a kernel.

    A subclass defines ``_solve(data, features)``, which returns weights of the features: one row for two classes, or
    one per class. The features are X, with the constant 1 as the last column for an intercept; or, with a kernel,
    columns whose inner products are its matrix, plus 1 for an intercept. With ``_free_intercept`` there is no constant
    among them, and the unpenalized intercept is returned as the last column of the weights.

    Parameters
    ----------
    kernel : {"linear", "rbf", "laplacian", "precomputed"} or callable
    gamma : float or "scale"
        Kernel coefficient of "rbf" and "laplacian"; "scale" is 1 / (n_features * X.var()).
    fit_intercept : bool
        Add the feature 1, whose weight is a weight like the others, or a free intercept.

    Attributes
    ----------
    coef_ : ndarray, shape (1, n_features) or (n_classes, n_features)
        Not with a kernel.
    intercept_ : ndarray, shape (1,) or (n_classes,)
        With a kernel 0, which has the constant feature inside, unless the intercept is free.
    dual_coef_ : ndarray, shape (n_instances, 1) or (n_instances, n_classes)
        Weights of the training instances ``X_fit_``, with a kernel only.
    X_fit_ : ndarray, shape (n_instances, n_features)
        The training instances, with a kernel only.
    gamma_ : float
        The kernel coefficient that was used, with a kernel only.

    Examples
    --------
    >>> import numpy as np
    >>> from llpbook.base import KernelClassifier
    >>> class MeanShare(KernelClassifier):
    ...     cost = "one linear system"
    ...     def __init__(self, kernel="linear", gamma="scale", fit_intercept=True):
    ...         self.kernel, self.gamma, self.fit_intercept = kernel, gamma, fit_intercept
    ...     def _solve(self, data, features):
    ...         Z, shares = features, data.proportions[data.bags, 1]
    ...         gram = Z.T @ Z + np.eye(Z.shape[1])
    ...         return np.linalg.solve(gram, Z.T @ (2 * shares - 1))[None]
    >>> model = MeanShare().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1], [0.0, 1.0])
    >>> model.coef_.shape, bool(model.coef_[0, 0] > 0)
    ((1, 1), True)
    """

    _accept_sparse = "csr"
    _scale, _cure = "penalty", "a smaller alpha"
    #: True if the intercept is not penalized, and is no weight of a feature.
    _free_intercept = False
    #: Peak memory of a fit with a kernel, in kernel matrices.
    _gram_copies = 5.0

    @abstractmethod
    def _solve(self, data, features):
        """Weights of the features, shape (1, n_columns) or (n_classes, n_columns)."""

    def _fit(self, data):
        X, (n, d) = data.X, data.X.shape
        if self.kernel == "linear":
            constant = self.fit_intercept and not self._free_intercept
            weights = self._solve(data, append_one(X) if constant else X)
            # The sum is over one column, or over none: 0 without an intercept.
            self.coef_, self.intercept_ = weights[:, :d], weights[:, d:].sum(axis=1)
            return
        what = f"{type(self).__name__} with a kernel on {n} instances"
        require_memory(what, 8.0 * self._gram_copies * n**2, WITHOUT_GRAM)
        self.X_fit_ = X
        self.gamma_ = kernel_coefficient(self.gamma, X, data.frequencies)
        gram = self._gram(X)
        features, to_dual = kernel_features(gram)
        refuse_indefinite(gram, features, self.kernel)
        self._gram(X[:1])  # a callable must give single rows, too: predict asks
        weights = self._solve(data, features)
        rank = features.shape[1]
        self.dual_coef_ = to_dual(weights[:, :rank].T)
        self.intercept_ = weights[:, rank:].sum(axis=1)

    def _gram(self, X):
        """Kernel of X and the training instances, plus 1 for an intercept that is a weight."""
        gram = gram_matrix(X, self.X_fit_, self.kernel, self.gamma_)
        return gram + (self.fit_intercept and not self._free_intercept)

    def _scores(self, X):
        if self.kernel == "linear":
            scores = X @ self.coef_.T
        else:
            scores = in_blocks(
                X, self.X_fit_.shape[0], lambda part: self._gram(part) @ self.dual_coef_
            )
        scores = scores + self.intercept_
        return scores[:, 0] if scores.shape[1] == 1 else scores


def append_one(X):
    """Append the constant feature 1 as the last column to X, dense, sparse or in chunks as X is."""
    if isinstance(X, InChunks):
        return X.with_constant()
    ones = np.ones((X.shape[0], 1))
    if isinstance(X, np.ndarray):
        return np.hstack([X, ones])
    return sp.hstack([X, ones], format="csr")
