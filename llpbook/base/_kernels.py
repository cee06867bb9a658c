"""Kernels as every kernel method of this package reads them: scikit-learn's names, a callable, or a given matrix."""

from abc import abstractmethod

import numpy as np
import scipy.sparse as sp
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpstrf
from sklearn.metrics.pairwise import pairwise_kernels

from ._chunked import InChunks
from ._estimator import LLPClassifier
from ._predictions import in_blocks
from ._running import require_memory

#: Relative error above which a matrix is not that of a kernel: far above rounding, in single precision too.
NO_KERNEL = 1e-4


def kernel_coefficient(gamma, X):
    """The number behind ``gamma``; "scale" is 1 / (n_features * X.var()), as in scikit-learn's SVMs.

    Parameters
    ----------
    gamma : float or "scale"
    X : ndarray or sparse array, shape (n_instances, n_features)

    Returns
    -------
    float
    """
    if gamma != "scale":
        return float(gamma)
    variance = (
        X.var() if isinstance(X, np.ndarray) else X.multiply(X).mean() - X.mean() ** 2
    )
    return 1.0 / (X.shape[1] * float(variance)) if variance > 0 else 1.0


def gram_matrix(X, Z, kernel, gamma):
    """Kernel between the rows of X and those of Z.

    Parameters
    ----------
    X : ndarray or sparse array, shape (n, n_features)
        With ``kernel="precomputed"`` the matrix itself, shape (n, m).
    Z : ndarray or sparse array, shape (m, n_features)
    kernel : str or callable
        "precomputed", a name of scikit-learn's ``pairwise_kernels``, or ``kernel(X, Z)`` that returns the matrix.
    gamma : float
        Used by the kernels that have it.

    Returns
    -------
    ndarray, shape (n, m)

    Raises
    ------
    ValueError
        If a callable returns a matrix of another shape or anything but finite numbers, or a precomputed one has another
        number of columns.
    """
    if kernel == "precomputed":
        if X.shape[1] != Z.shape[0]:
            raise ValueError(
                f"X must have one column for each of the {Z.shape[0]} training instances with kernel='precomputed', "
                f"got {X.shape[1]}"
            )
        return X.toarray() if sp.issparse(X) else X
    if not callable(kernel):
        if kernel == "rbf" and not (sp.issparse(X) or sp.issparse(Z)):
            # Only differences count; squares of numbers far from 0 would round them away.
            center = Z.mean(axis=0)
            X, Z = (X - center,) * 2 if X is Z else (X - center, Z - center)
        return pairwise_kernels(X, Z, metric=kernel, gamma=gamma)
    gram = np.asarray(kernel(X, Z))
    if gram.shape != (X.shape[0], Z.shape[0]):
        raise ValueError(
            f"kernel must return a matrix of shape {(X.shape[0], Z.shape[0])}, got {gram.shape}"
        )
    if gram.dtype.kind not in "biuf" or not np.isfinite(gram).all():
        raise ValueError(
            f"kernel must return finite real numbers; those of {kernel!r} are of type {gram.dtype}, or not finite"
        )
    return gram


def refuse_indefinite(gram, features, kernel):
    """Refuse a matrix that is no kernel: distances, for instance, or one that is not symmetric.

    Parameters
    ----------
    gram : ndarray, shape (n_instances, n_instances)
    features : ndarray, shape (n_instances, rank)
        Of `kernel_features`, whose products are the matrix if it is symmetric and positive semi-definite.
    kernel : str or callable
        For the message.

    Raises
    ------
    ValueError
        If they are not, tried on one random vector; or if the matrix is 0.
    """
    if features.shape[1] == 0:
        raise ValueError(f"kernel={kernel!r} is 0 between all instances")
    probe = np.random.RandomState(0).normal(size=len(gram))
    wanted, found = gram @ probe, features @ (probe @ features)
    if np.linalg.norm(wanted - found) > NO_KERNEL * np.linalg.norm(wanted):
        raise ValueError(
            f"kernel={kernel!r} gives a matrix that is no kernel: it must be symmetric and positive semi-definite, as "
            "similarities are; distances D become similarities by np.exp(-gamma * D**2)"
        )


def kernel_features(gram, tol=1e-12):
    r"""Features with the kernel as inner products, and the way back to instances.

    The pivoted Cholesky factor :math:`K = Z Z^\top` of rank r; weights :math:`w` of its columns are
    :math:`\alpha = L^{-\top} w` on the r pivots, with :math:`L` their rows of :math:`Z`, a triangle, and 0 elsewhere.
    :math:`O(n r^2)`.

    Parameters
    ----------
    gram : ndarray, shape (n_instances, n_instances)
        Symmetric and positive semi-definite.
    tol : float, default 1e-12
        A pivot below this share of the largest diagonal entry ends the factor.

    Returns
    -------
    features : ndarray, shape (n_instances, rank)
    to_dual : callable
        From weights, shape (rank, m), to those of instances, shape (n_instances, m).
    """
    factor, order, rank, _ = dpstrf(gram, tol=tol * gram.diagonal().max(), lower=1)
    factor, order = np.tril(factor)[:, :rank], order - 1
    features = np.empty_like(factor)
    features[order] = factor

    def to_dual(weights):
        alpha = np.zeros((len(gram), weights.shape[1]))
        triangle = factor[:rank]
        alpha[order[:rank]] = solve_triangular(triangle, weights, lower=True, trans="T")
        return alpha

    return features, to_dual


#: The way out of a matrix that is too large.
WITHOUT_GRAM = (
    "take kernel='linear' behind sklearn.kernel_approximation.Nystroem in a pipeline, or "
    "fewer instances"
)


class KernelClassifier(LLPClassifier):
    r"""Base of methods whose scores are linear in the features, or in those of a kernel.

    A subclass defines ``_solve(data, features)``, which returns weights of the features: one row for two classes, or
    one a class. The features are X, with the constant 1 as the last column for an intercept; or, with a kernel, columns
    whose inner products are its matrix, plus 1 for an intercept. With ``_free_intercept`` there is no constant among
    them, and the intercept, which no penalty holds, is returned as a last column of the weights.

    Parameters
    ----------
    kernel : {"linear", "rbf", "laplacian", "precomputed"} or callable
    gamma : float or "scale"
        Kernel coefficient; "scale" is 1 / (n_features * X.var()).
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
    #: Whether the intercept is no weight of a feature, and no penalty holds it.
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
        self.X_fit_, self.gamma_ = X, kernel_coefficient(self.gamma, X)
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
    """X with the constant feature 1 as its last column, dense, sparse or in chunks as X is."""
    if isinstance(X, InChunks):
        return X.with_constant()
    ones = np.ones((X.shape[0], 1))
    if isinstance(X, np.ndarray):
        return np.hstack([X, ones])
    return sp.hstack([X, ones], format="csr")
