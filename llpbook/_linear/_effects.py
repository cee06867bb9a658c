"""Quadrature over intercepts of bags, which are normal."""

import numpy as np

from ..base import expit

#: Nodes of Gauss-Hermite quadrature and the logarithms of their weights.
NODES = np.polynomial.hermite.hermgauss(11)[0]
WEIGHTS = np.log(np.polynomial.hermite.hermgauss(11)[1])


def averaged_probabilities(scores, errors):
    """Mean probability of a score with a normal error.

    Parameters
    ----------
    scores : ndarray, shape (n_instances,)
    errors : float or ndarray, shape (n_instances,)
        Standard deviations.

    Returns
    -------
    ndarray, shape (n_instances,)
    """
    weights = np.exp(WEIGHTS) / np.sqrt(np.pi)
    return sum(
        w * expit(scores + np.sqrt(2) * errors * x)
        for x, w in zip(NODES, weights, strict=True)
    )
