"""Deviation of the random intercepts of bags, estimated by maximum likelihood."""

import numpy as np
from scipy.optimize import minimize_scalar

from .._linear import prior_precision
from ..base import one_column

#: The largest deviation that is tried, in log-odds, and how exactly it is estimated.
MOST_DEVIATION, STEP_OF_DEVIATION = 4.0, 0.005
#: The deviation of the weights' prior, beyond which their scale and the deviation of the bags are one.
WIDEST_PRIOR = 1.0


def restricted(solution, objective):
    r"""Minus the log-likelihood with the weights integrated out.

    By Laplace's approximation with the penalty as the prior: the objective plus
    :math:`\tfrac12 \log\det(I + P^{-1/2} F^\top F P^{-1/2})`, with factors :math:`F` of the information.

    Parameters
    ----------
    solution : Solution
    objective : LinearObjective

    Returns
    -------
    float
    """
    F = objective.factors(one_column(objective.Z @ solution.w.T))
    F = F / np.sqrt(prior_precision(objective.penalty, len(solution.w)))
    gram = F @ F.T if len(F) < F.shape[1] else F.T @ F
    values = np.maximum(np.linalg.eigvalsh(gram), 0)
    return solution.value + 0.5 * float(np.log1p(values).sum())


def estimate_deviation(objective, start, max_iter=1000, tol=1e-5):
    """Estimate the deviation of the intercepts by the likelihood of the counts, with the weights integrated out.

    Where weights are free, weights and deviation could grow together, and a few bags would not notice: a prior of the
    deviation 1 or less holds the weights here, whatever the penalty of the objective.

    Parameters
    ----------
    objective : LinearObjective
        Of a loss with the method ``with_deviation``.
    start : ndarray, shape (1, n_columns)
    max_iter : int
    tol : float

    Returns
    -------
    float
        0 where no deviation is better than none.
    """
    held = objective.penalty > 0
    penalty = np.where(held, np.maximum(objective.penalty, WIDEST_PRIOR**-2), 0.0)
    objective, last = objective.changed(penalty=penalty), [start]

    def value(deviation):
        loss = objective.loss.with_deviation(float(deviation))
        trial = objective.changed(loss=loss)
        solution = trial.solve(last[0], max_iter, tol)
        last[0] = solution.w
        return restricted(solution, trial)

    none = value(0.0)
    best = minimize_scalar(
        value, bounds=(0, MOST_DEVIATION), method="bounded",
        options={"xatol": STEP_OF_DEVIATION},
    )  # fmt: skip
    return float(best.x) if best.fun < none else 0.0
