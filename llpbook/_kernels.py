"""Kernels as every kernel method of this package reads them: scikit-learn's names, a callable, or a given matrix."""

import numpy as np
from sklearn.metrics.pairwise import pairwise_kernels


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
        If a callable returns a matrix of another shape.
    """
    if kernel == "precomputed":
        return X
    if not callable(kernel):
        return pairwise_kernels(X, Z, metric=kernel, gamma=gamma)
    gram = np.asarray(kernel(X, Z))
    if gram.shape != (X.shape[0], Z.shape[0]):
        raise ValueError(
            f"kernel must return a matrix of shape {(X.shape[0], Z.shape[0])}, got {gram.shape}"
        )
    return gram
