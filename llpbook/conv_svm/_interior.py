r"""The relaxed problem for given labelings, by an interior-point method on alpha and the weights of the labelings.

With a level :math:`\theta` above all quadratics :math:`q_t(\alpha) = \frac12 \lVert \sum_i \alpha_i y_{ti} x_i
\rVert^2` the problem is to maximize :math:`\sum_i \alpha_i - \theta`. With the weights :math:`\mu_t` of the labelings,
multipliers z and u of the bounds :math:`0 \le \alpha_i` and :math:`\alpha_i \le C`, and slacks s, a solution satisfies

.. math:: 1 - \sum_t \mu_t \nabla q_t(\alpha) + z - u = 0, \quad q_t(\alpha) + s_t = \theta, \quad
          \sum_t \mu_t = 1, \quad \alpha_i z_i = 0, \quad (C - \alpha_i) u_i = 0, \quad \mu_t s_t = 0 .

The method keeps the factors of the products positive, and the products near a common number that falls to 0. A step is
a Newton step for these conditions with Mehrotra's second-order correction, and ends before the first bound. The problem
is convex, so this path leads to a solution. At each point the value of :math:`\alpha` and the primal objective of
:math:`\mu` bound the value of the solution from below and above; the steps end when the bounds are near each other,
after some ten steps.

A step solves a linear system with an unknown for each instance, whose matrix is the sum of :math:`\mu_t K \circ y_t
y_t^\top` plus a diagonal. That costs :math:`O(n^3)` time and :math:`O(n^2)` memory. With d features and T labelings the
rank of the sum is at most d T; by its factors a step costs :math:`O(n d^2 T^2)` time and :math:`O(n d T)` memory.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.exceptions import ConvergenceWarning

from .._linear import TINY, as_array, scale_rows
from ..base import warn

#: Largest number of steps, and the length of a step at which the method stops because of rounding.
MAX_STEPS, LEAST_STEP = 300, 1e-9
#: Largest part of the way to the first bound that a step takes: a point on a bound could not leave it.
TO_BOUNDARY = 0.99
#: Smallest gap that a step aims at, in units of the gap at which the steps end: nearer to the bounds the linear
#: systems are ill conditioned.
FLOOR = 0.1
#: Distance of the first alpha from its bounds, in units of its mean; distance of the first theta above the quadratics,
#: in units of the largest one.
INSIDE, AWAY = 0.3, 0.1
#: Weight of all new labelings together at a warm start, and the least weight of any labeling there: a weight of 0
#: could not grow.
NEW_WEIGHT, LEAST_WEIGHT = 0.1, 1e-3
#: Share that is added to a diagonal, so that a factorization succeeds in spite of rounding.
ROUNDING = 1e-13


@dataclass
class Relaxed:
    """The data of a relaxed problem; with ``gram``, the inner products of rows of X, if that is less work."""

    X: np.ndarray
    Y: np.ndarray
    C: float
    gram: np.ndarray | None

    def gradients(self, alpha):
        """Gradients of the quadratics, one column per labeling; half its product with alpha is the quadratic."""
        signed = self.Y * alpha
        if self.gram is not None:
            return (self.Y * (signed @ self.gram)).T
        return (self.Y * (self.X @ (self.X.T @ signed.T)).T).T

    def hessian_solver(self, mu, diagonal):
        """A function that solves with the Hessian of the quadratics, weighted by mu, plus a diagonal."""
        if self.gram is None:
            return self.solver_by_factors(mu, diagonal)
        H = (self.Y.T * mu) @ self.Y
        H *= self.gram
        H[np.diag_indices_from(H)] += diagonal + ROUNDING * H.diagonal().max()
        factor = cho_factor(H.T, overwrite_a=True, check_finite=False)
        return lambda B: cho_solve(factor, B, check_finite=False)

    def solver_by_factors(self, mu, diagonal):
        """`hessian_solver` by a matrix with a row for each feature of each labeling (Woodbury), refined once."""
        root = np.sqrt(diagonal)
        rows = np.sqrt(mu)[:, None] * self.Y / root
        F = np.hstack([as_array(scale_rows(self.X, row)) for row in rows])
        inner = F.T @ F
        inner[np.diag_indices_from(inner)] *= 1 + ROUNDING
        inner[np.diag_indices_from(inner)] += 1
        factor = cho_factor(inner, overwrite_a=True, check_finite=False)

        def once(B):
            return B - F @ cho_solve(factor, F.T @ B, check_finite=False)

        def solve(B):
            B = (B.T / root).T
            x = once(B)
            x += once(B - x - F @ (F.T @ x))
            return (x.T / root).T

        return solve


class Point(NamedTuple):
    """A point inside of all bounds, or a step between two such points; ``duals`` holds z, u and s in this order."""

    alpha: np.ndarray
    mu: np.ndarray
    theta: float
    duals: np.ndarray

    def factors(self, C):
        """The factors of the duals in the products; for a step, with C = 0, the changes of these factors."""
        return np.concatenate([self.alpha, C - self.alpha, self.mu])

    def gap(self, C):
        """Sum of the products that vanish at the solution."""
        return self.factors(C) @ self.duals

    def moved(self, step, part):
        """The point after a part of a step."""
        return Point._make(a + part * d for a, d in zip(self, step, strict=True))

    def reach(self, step, C):
        """The part of a step after which it meets a bound."""
        of_factors = (-step.factors(0.0) / self.factors(C)).max()
        return 1 / max(of_factors, (-step.duals / self.duals).max(), TINY)


class Newton:
    """Newton's method for the conditions of a solution, at one point: one factorization, any number of steps."""

    def __init__(self, problem, point):
        self.problem, self.point, n = problem, point, len(point.alpha)
        self.slopes, self.ends = problem.gradients(point.alpha), [n, 2 * n]
        lower, upper, slack = np.split(point.duals, self.ends)
        self.residuals = (
            1 - self.slopes @ point.mu + lower - upper,
            point.alpha @ self.slopes / 2 - point.theta + slack,
            point.mu.sum() - 1,
            point.factors(problem.C) * point.duals,
        )

    def bounds(self):
        """The value at alpha, and the primal objective at mu, which bounds the best value from above."""
        mu = self.point.mu / self.point.mu.sum()
        quadratics, gain = self.point.alpha @ self.slopes / 2, 1 - self.slopes @ mu
        primal = mu @ quadratics + self.problem.C * np.maximum(0, gain).sum()
        return self.point.alpha.sum() - quadratics.max(), primal

    def direction(self, least):
        """Mehrotra's step, to a gap of ``least`` or above.

        A first step, to that gap, tells how far the gap can fall, and which terms of second order are left.
        """
        point, C, n_products = self.point, self.problem.C, len(self.point.duals)
        self.factorize()
        first = self.step(least / n_products)
        part = min(1.0, point.reach(first, C))
        fall = (point.moved(first, part).gap(C) / point.gap(C)) ** 3
        slopes, products = self.problem.gradients(first.alpha), first.factors(0.0)
        left = -slopes @ first.mu, first.alpha @ slopes / 2, 0.0, products * first.duals
        aim = max(min(1.0, fall) * point.gap(C), least)
        return self.step(aim / n_products, left)

    def factorize(self):
        """The linear systems: for alpha, and, with alpha eliminated, for mu and theta."""
        self.ratios = self.point.duals / self.point.factors(self.problem.C)
        lower, upper, slack = np.split(self.ratios, self.ends)
        self.solve = self.problem.hessian_solver(self.point.mu, lower + upper)
        self.solved, T = self.solve(self.slopes), len(slack)
        self.border = np.ones((T + 1, T + 1))
        self.border[:T, :T] = self.slopes.T @ self.solved + np.diag(slack)
        self.border[T, T] = 0

    def step(self, product, left=4 * (0.0,)):
        """The step that makes all products ``product`` and the residuals 0, given terms ``left`` of second order."""
        pairs = zip(self.residuals, left, strict=True)
        in_alpha, in_theta, in_mu, products = (a + b for a, b in pairs)
        pulls = (products - product) / self.point.factors(self.problem.C)
        lower, upper, slack = np.split(pulls, self.ends)
        at_mu = self.solve(in_alpha - lower + upper)
        right = np.append(in_theta + self.slopes.T @ at_mu - slack, -in_mu)
        *mu, theta = np.linalg.solve(self.border, right)
        alpha = at_mu - self.solved @ mu
        step = Point(alpha, np.array(mu), theta, None)
        duals = -pulls - self.ratios * step.factors(0.0)
        duals[self.ends[1] :] = theta - in_theta - alpha @ self.slopes  # rounds less
        return step._replace(duals=duals)


def first_point(problem, warm):
    """A point inside: near alpha and mu of fewer labelings, or near the solution for squared hinges and equal mu."""
    n, T = problem.X.shape[0], len(problem.Y)
    if warm is None:
        mu = np.full(T, 1 / T)
        alpha = problem.hessian_solver(mu, np.full(n, 1 / problem.C))(np.ones(n))
    else:
        alpha, old = warm  # followed by the weights of new labelings, all positive
        new = np.full(T - len(old), NEW_WEIGHT / max(T - len(old), 1))
        mu = np.maximum(np.append((1 - NEW_WEIGHT) * old, new), LEAST_WEIGHT)
        mu /= mu.sum()
    margin = INSIDE * min(np.abs(alpha).mean(), problem.C)
    alpha = np.clip(alpha, margin, problem.C - margin)
    slopes = problem.gradients(alpha)
    quadratics, gain = alpha @ slopes / 2, 1 - slopes @ mu
    away = AWAY * max(quadratics.max(), alpha.sum())
    theta = quadratics.max() + away
    product = (mu @ (theta - quadratics) + away) / (2 * n + T)
    lower = np.maximum(0, -gain) + product / alpha
    upper = np.maximum(0, gain) + product / (problem.C - alpha)
    return Point(alpha, mu, theta, np.concatenate([lower, upper, theta - quadratics]))


def follow(problem, point, tol):
    """Take steps from a point until the relative gap or the steps are small; return the last point and its gap."""
    part = 1.0
    for _ in range(MAX_STEPS):
        newton = Newton(problem, point)
        low, high = newton.bounds()
        gap = (high - low) / high
        if gap <= tol or part < LEAST_STEP:
            break
        step = newton.direction(FLOOR * tol * max(low, 0))
        part = min(1.0, TO_BOUNDARY * point.reach(step, problem.C))
        point = point.moved(step, part)
    return point, gap


def solve_relaxed(X, Y, C, *, gram=None, warm=None, tol=1e-6):
    """The alpha that maximizes `relaxed_value` over [0, C], and the weights of the labelings.

    Parameters
    ----------
    X : ndarray or sparse array, shape (n, d)
    Y : ndarray of -1 and 1, shape (T, n)
    C : float
    gram : ndarray, shape (n, n), optional
        Inner products of the rows of X, useful if there are many columns.
    warm : (ndarray, ndarray), optional
        alpha, and the weights of the first labelings; the other labelings are new.
    tol : float, default 1e-6
        Largest gap between the value and the primal objective, relative to the objective.

    Returns
    -------
    alpha : ndarray, shape (n,)
    mu : ndarray, shape (T,)
    """
    problem = Relaxed(X, Y, C, gram)
    point, gap = follow(problem, first_point(problem, warm), tol)
    if gap > tol and warm is not None:
        point, gap = follow(problem, first_point(problem, None), tol)
    if gap > tol:
        message = f"a relative accuracy of {gap:.1e} only, not of {tol:.1e}; scale the features, lower C or raise tol"
        warn(
            f"the relaxed problem of conv-∝SVM is solved to {message}",
            ConvergenceWarning,
        )
    return point.alpha, point.mu / point.mu.sum()
