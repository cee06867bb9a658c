"""Covariance matrices of weights: the sandwich, and Laplace's approximation with no more bags than weights."""

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from .._linear import prior_precision
from ..base import one_column, require_memory

#: Factor of the weaker penalty, towards which a Newton step shows the effect of the penalty.
WEAKER = 100


@dataclass(frozen=True, eq=False)
class Sandwich:
    """Sandwich covariance, stored as a full matrix.

    Attributes
    ----------
    matrix : ndarray, shape (n_weights, n_weights)
    df : float
        Degrees of freedom of the t distribution.
    C : float
        Of the penalty.
    step : ndarray, shape (n_weights,)
        Change of the weights by a Newton step with a penalty `WEAKER` times as weak.
    """

    matrix: np.ndarray
    df: float
    C: float = np.nan
    step: np.ndarray | float = 0.0

    @classmethod
    def of(cls, matrix, df, weights, J, penalty):
        """Build it with its step, from weights at the maximum, the penalized curvature J, and that of the penalty."""
        left_out = (1 - 1 / WEAKER) * penalty
        H = J - left_out
        # Where the counts alone have no maximum, the step with the whole penalty is a smaller one.
        H = H if np.linalg.eigvalsh(H)[0] > 0 else J
        step = np.linalg.solve(H, left_out @ weights.ravel())
        return cls(matrix, df, 1 / penalty.diagonal().max(), step)

    def quadratic(self, slopes):
        """Variances of linear functions of the weights, for their slopes, shape (n_functions, n_weights)."""
        return np.sum((slopes @ self.matrix) * slopes, axis=1)

    def in_units(self, A):
        """Covariance of coefficients ``A @ weights``."""
        return replace(self, matrix=A @ (A @ self.matrix).T, step=A @ self.step)

    def block(self, rows=slice(None)):
        """Covariance matrix of chosen coefficients."""
        return self.matrix[rows][:, rows]

    def variances(self):
        """Variances of all coefficients."""
        return self.matrix.diagonal()


@dataclass(frozen=True, eq=False)
class LaplaceCovariance:
    r"""Inverse of :math:`P + F^\top F`, never formed as a matrix, for a prior of precision P and factors F of few rows.

    :math:`P^{-1} - R^\top R`, where :math:`R^\top R` is the reduction of the prior variance by the counts.

    Attributes
    ----------
    units : sparse array, shape (n_coefficients, n_weights)
    variance : ndarray, shape (n_weights,)
        Of the prior.
    taken : ndarray, shape (n_factors, n_weights)
        R.
    df : float
        Infinite: normal quantiles.
    """

    units: object
    variance: np.ndarray
    taken: np.ndarray
    df: float = np.inf
    C, step = np.nan, 0.0

    def quadratic(self, slopes):
        """See `Sandwich`."""
        left = (slopes @ self.taken.T) ** 2
        return np.maximum(slopes**2 @ self.variance - left.sum(axis=1), 0)

    def in_units(self, A):
        """See `Sandwich`."""
        return replace(self, units=sp.csr_array(A @ self.units))

    def block(self, rows=slice(None)):
        """See `Sandwich`."""
        A = self.units[rows]
        require_memory(
            f"the covariance of {A.shape[0]} coefficients",
            16.0 * A.shape[0] ** 2,
            "read errors and intervals, which need no matrix",
        )
        left = A @ self.taken.T
        return (A @ sp.diags_array(self.variance) @ A.T).toarray() - left @ left.T

    def variances(self):
        """See `Sandwich`."""
        left = np.sum((self.units @ self.taken.T) ** 2, axis=1)
        return np.maximum((self.units**2) @ self.variance - left, 0)


def laplace_covariance(fit):
    r"""Covariance of the weights by Laplace's approximation, with the penalty as the prior.

    Parameters
    ----------
    fit : Problem

    Returns
    -------
    LaplaceCovariance
        With the expected information of the counts. A free intercept has next to no prior.
    """
    F = information_factors(fit)
    variance = 1 / prior_precision(fit.curvature.diagonal())
    scaled = F * variance
    inner = np.linalg.cholesky(np.eye(len(F)) + scaled @ F.T)
    eye = sp.eye_array(len(variance), format="csr")
    return LaplaceCovariance(eye, variance, np.linalg.solve(inner, scaled))


def information_factors(fit):
    """Matrix of few rows whose product with itself is the expected information of the counts of a `Problem`."""
    objective = fit.objective()
    return objective.factors(one_column(objective.Z @ fit.weights.T))
