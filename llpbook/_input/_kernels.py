"""Kernel matrices and features: from scikit-learn's names, a callable, or a precomputed matrix."""

import numpy as np
import scipy.sparse as sp
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpstrf
from sklearn.metrics.pairwise import pairwise_kernels

#: Relative error above which a matrix is not that of a kernel: far above rounding, in single precision too.
NO_KERNEL = 1e-4


def kernel_coefficient(gamma, X, frequencies=None):
    """Value of ``gamma``; "scale" is 1 / (n_features * X.var()), as in scikit-learn's SVMs.

    Parameters
    ----------
    gamma : float or "scale"
    X : ndarray or sparse array, shape (n_instances, n_features)
    frequencies : ndarray, shape (n_instances,), optional
        How many equal instances each row stands for.

    Returns
    -------
    float
    """
    if gamma != "scale":
        return float(gamma)
    if frequencies is not None:
        share = frequencies / (frequencies.sum() * X.shape[1])
        center = (share @ X).sum()
        dense = isinstance(X, np.ndarray)
        squares = (X - center) ** 2 if dense else X.multiply(X)
        variance = (share @ squares).sum() - (0 if dense else center**2)
    elif isinstance(X, np.ndarray):
        variance = X.var()
    else:
        variance = X.multiply(X).mean() - X.mean() ** 2
    return 1.0 / (X.shape[1] * float(variance)) if variance > 0 else 1.0


def gram_matrix(X, Z, kernel, gamma):
    """Kernel matrix between the rows of X and those of Z.

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
        If the products differ from the matrix, tested by one random vector; or if the matrix is 0.
    """
    if features.shape[1] == 0:
        raise ValueError(f"kernel={kernel!r} is 0 between all instances")
    probe = np.random.RandomState(0).normal(size=len(gram))
    product = gram @ probe
    difference = product - features @ (probe @ features)
    if np.linalg.norm(difference) > NO_KERNEL * np.linalg.norm(product):
        raise ValueError(
            f"kernel={kernel!r} gives a matrix that is no kernel: it must be symmetric and positive semi-definite, as "
            "similarities are; distances D become similarities by np.exp(-gamma * D**2)"
        )


def kernel_features(gram, tol=1e-12):
    r"""Features whose inner products are the kernel, and the map from their weights to weights of instances.

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
