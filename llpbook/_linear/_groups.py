"""Models of groups alone, where each group has log-odds of its own: there the penalty should not decide."""

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from ..base import InChunks, one_column, probabilities, warn

#: The C for rates of groups. On made tables of 20 to 300 bags of 50 to 5,000 people with minorities of 3 to 50 %, rates
#: have the smallest error at this C, and their intervals hold most often.
WEAK = 10.0
#: A fit warns where the penalty moves the probability of a group by so much, and by so many standard errors.
MOVED, ERRORS = 0.01, 1.0
#: Tolerance of the solution with a weak penalty: far below the standard errors of large tables.
TOL = 1e-9
#: Bags per group below which the penalty is left alone, and rows that show whether there are few groups.
FEWEST_BAGS, PROBE = 3, 1000


def groups_of(Z):
    """The features of each group, if they are indicators of groups and of nothing else.

    Parameters
    ----------
    Z : ndarray or sparse array, shape (n_rows, n_columns)
        With the 1 of an intercept.

    Returns
    -------
    ndarray, shape (n_groups, n_columns), or None
        Linearly independent, so that each group has log-odds of its own; None for other features.
    """
    probe = Z[:PROBE].toarray() if sp.issparse(Z) else Z[:PROBE]
    if len(np.unique(probe, axis=0)) > Z.shape[1]:
        return None
    U = np.unique(Z.toarray() if sp.issparse(Z) else Z, axis=0)
    few = 2 <= len(U) <= Z.shape[1] <= len(U) + 1
    return U if few and np.linalg.matrix_rank(U) == len(U) else None


def without_hold(problem):
    """The problem solved with a penalty that is weak for rates of groups, and their features.

    Parameters
    ----------
    problem : Problem
        With the weights of the fit.

    Returns
    -------
    weaker : Problem or None
        With its own weights; None where the penalty is weak already, where more than groups is modeled, and where there
        are few bags.
    groups : ndarray, shape (n_groups, n_columns), or None
    """
    weak, in_chunks = problem.penalty.max() <= 1 / WEAK, isinstance(problem.Z, InChunks)
    if weak or in_chunks or not hasattr(problem.loss, "with_deviation"):
        return None, None
    groups = groups_of(problem.Z)
    if groups is None or len(problem.observed.sizes) < FEWEST_BAGS * len(groups):
        return None, None
    weaker = replace(problem, penalty=np.minimum(problem.penalty, 1 / WEAK))
    solution = weaker.objective().solve(problem.weights, tol=TOL)
    w = solution.w.copy()
    if len(w) > 1 and not problem.penalty.all():
        w[:, -1] -= w[:, -1].mean()  # as a fit does
    slack = 10 * max(solution.gap, TOL)
    return replace(weaker, weights=w, slack=slack), groups


def warn_if_groups_held(problem):
    """Warn where a penalty holds the probability of a group, and nothing but groups is modeled.

    Parameters
    ----------
    problem : Problem
        With the weights of the fit.
    """
    weaker, groups = without_hold(problem)
    if weaker is None:
        return
    w, free = problem.weights, weaker.weights
    ends = [probabilities(one_column(groups @ v.T)) for v in (w, free)]
    moved = np.abs(ends[1] - ends[0]).max(axis=1)
    objective = weaker.objective()
    H = objective.information(one_column(objective.Z @ free.T))
    classes = np.eye(len(w)) - (len(w) > 1) / len(w)  # the level of several is free
    rows = np.kron(classes, groups)
    inverse = np.linalg.inv(H + weaker.curvature.toarray())
    errors = np.sqrt(np.einsum("ij,jk,ik->i", rows, inverse, rows))
    shift = np.abs(rows @ (free - w).ravel()) / errors
    held = (moved > MOVED) & (shift.reshape(len(w), -1).max(axis=0) > ERRORS)
    if held.any():
        g = int(np.argmax(moved * held))
        k = int(np.argmax(np.abs(ends[1] - ends[0])[g]))
        warn(
            f"the features are indicators of groups, and the penalty C={1 / problem.penalty.max():g} holds the "
            f"probabilities of {held.sum()} of {len(groups)}: one is {ends[0][g, k]:.2f} and would be "
            f"{ends[1][g, k]:.2f} with C={WEAK:g}, which is more than chance. Fit with C={WEAK:g}"
        )
