"""The problem of a linear model by a loss of bags: its objective and, of a fitted model, its weights."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from .._input import require_rank
from ..base import append_one
from ._bag_counts import BagCounts, bag_counts
from ._losses import BagLoss, ProportionLoss, refuse_unbounded
from ._objective import linear_objective

#: Precision of the prior of a free intercept, as a share of the largest: next to none.
NEXT_TO_NONE = 1e-4


@dataclass(frozen=True, eq=False)
class Problem:
    r"""Objective of a linear model by a loss of bags, :math:`\ell(Zw) + \tfrac12 \sum_j \lambda_j w_j^2`.

    Attributes
    ----------
    loss : BagLoss
        With the class prior and the deviation of bags' intercepts that it needs.
    Z : ndarray, sparse array or InChunks, shape (n_rows, n_columns)
        The features of the solver, with the 1 of an intercept as the last column.
    observed : BagCounts
        Counts of the bags with instances, with their errors and the distribution of these.
    penalty : ndarray, shape (n_columns,)
        1 / C, and 0 for a free intercept.
    used : ndarray of int, shape (n_bags,)
        Rows of the proportions that the bags of ``observed`` are; -1 for an instance with a known label.
    weights : ndarray, shape (1, n_columns) or (n_classes, n_columns), or None
        Of a fitted model.
    slack : float, default infinity
        The largest entry of the gradient per instance that the fit may have left.
    rows : ndarray of int, shape (n_rows,), or slice
        Rows of the input that those of ``Z`` are.
    """

    loss: BagLoss
    Z: object
    observed: BagCounts
    penalty: np.ndarray
    used: np.ndarray | None = None
    weights: np.ndarray | None = None
    slack: float = np.inf
    rows: np.ndarray | slice = field(default_factory=lambda: slice(None))

    def objective(self):
        """Make the `LinearObjective`, whose rows are in the order of their bags."""
        return linear_objective(self.loss, self.Z, self.observed, self.penalty)

    @cached_property
    def curvature(self):
        """Second derivatives of the penalty, a sparse array of shape (n_weights, n_weights).

        The level of the free intercepts of several classes is not identified: it is penalized, so that the curvature
        is positive.
        """
        penalty = np.tile(self.penalty, len(self.weights))
        matrix = sp.diags_array(penalty, format="csr")
        if len(self.weights) > 1 and not penalty.all():
            level = sp.csr_array([(penalty == 0) / np.sqrt(len(self.weights))])
            matrix = matrix + level.T @ level * penalty.max()
        return matrix


def linear_problem(loss, Z, observed, C, classes, *, free_intercept, used=None):
    """Make the `Problem` of features, with the 1 of a free intercept added as the last column.

    Parameters
    ----------
    loss : BagLoss
    Z : ndarray, sparse array or InChunks, shape (n_rows, n_columns)
    observed : BagCounts
    C : float
    classes : ndarray, shape (n_classes,)
        For the error.
    free_intercept : bool
    used : ndarray of int, shape (n_bags,), optional

    Returns
    -------
    Problem

    Raises
    ------
    ValueError
        If the loss falls without end as a free intercept moves.
    """
    penalty = np.full(Z.shape[1] + free_intercept, 1 / C)
    if free_intercept:
        refuse_unbounded(loss, observed, classes)
        Z, penalty[-1] = append_one(Z), 0.0
    return Problem(loss, Z, observed, penalty, used)


def observed_counts(data, loss, laplace=False):
    """Counts of the bags with instances; ValueError if the loss cannot use the errors that were stated.

    Parameters
    ----------
    data : BagData
    loss : BagLoss
    laplace : bool, default False
        True if the errors have a Laplace distribution.

    Returns
    -------
    BagCounts
    """
    if data.covariances is not None and not loss.takes_errors:
        raise ValueError(
            f"proportion_errors are of no use to {loss!r}; the likelihood of the counts, loss='counts', takes them"
        )
    observed = bag_counts(
        data.bags, data.proportions, data.covariances, data.frequencies, laplace=laplace
    )
    return loss.check_counts(observed)


def minimize_from_zero(objective, has_intercept, max_iter=1000, tol=1e-5):
    """Minimize an objective from zero slopes.

    Where there are fewer bags than weights also from the solution of the proportion loss; the lower minimum is kept.

    Parameters
    ----------
    objective : LinearObjective
    has_intercept : bool
        True if the last column is an intercept, which starts at the class prior.
    max_iter : int
    tol : float

    Returns
    -------
    Solution
    """
    Z, observed, loss = objective.Z, objective.observed, objective.loss
    require_rank(observed.shares, observed.sizes)
    prior = observed.sizes @ observed.shares / objective.n
    start = np.zeros((1 if len(prior) == 2 else len(prior), Z.shape[1]))
    logs = np.log(np.maximum(prior, 0.5 / objective.n))
    if has_intercept:
        start[:, -1] = logs[1] - logs[0] if len(start) == 1 else logs - logs.mean()
    paths, solutions = [loss.before], []
    if len(observed.sizes) < start.size and not isinstance(loss, ProportionLoss):
        paths.append((ProportionLoss(),))
    for path in dict.fromkeys(paths):
        w, possible = start, observed.possible()
        for first in path:
            first_objective = linear_objective(first, Z, possible, objective.penalty)
            w = first_objective.solve(w, max_iter, tol).w
        solutions.append(objective.solve(w, max_iter, tol))
    return min(solutions, key=lambda solution: solution.value)


def prior_precision(penalty, n_rows=1):
    """Penalty as the precision of a prior, which is next to 0 for a free intercept, shape (n_weights,)."""
    return np.tile(np.maximum(penalty, NEXT_TO_NONE * penalty.max()), n_rows)
