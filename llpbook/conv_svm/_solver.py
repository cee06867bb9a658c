"""The relaxed problem for some labellings: an interior-point method on alpha and the weights of the labellings."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_factor, cho_solve
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from ..base import warn
from ._steps import cut, main_columns, quadratics, relaxed_value

#: Steps of the interior-point method, and the length of one, at which to give up; how far towards the boundary one
#: goes.
MAX_STEPS, LEAST_STEP, TO_BOUNDARY = 300, 1e-9, 0.99
#: How far from its bounds a first alpha stands, in units of its mean, and a first theta from the quadratics.
INSIDE, AWAY = 0.3, 0.1
#: Weight of new labellings in a warm start, together, and the least weight of one.
NEW_WEIGHT, LEAST_WEIGHT = 0.1, 1e-3
#: Labellings that are added at once, and from how many one climbs to each; the accuracy of a solution in units of the
#: fall at which one stops, and the best.
AT_ONCE, TRIED, ACCURACY, LEAST_GAP = 4, 2, 0.2, 1e-7
#: So few instances that the matrix of inner products costs nothing; it rounds less.
SMALL = 400
#: The least gap to aim at, in units of that at which one stops.
FLOOR = 0.1
#: What rounding adds to a diagonal, so that a factorisation goes through.
ROUNDING = 1e-13


@dataclass
class Relaxed:
    """The data of a relaxed problem; with ``gram``, the inner products of rows, where that is less work."""

    X: np.ndarray
    Y: np.ndarray
    C: float
    gram: np.ndarray | None

    def gradients(self, alpha):
        """Of each labelling's quadratic at alpha, columns: the quadratic is half their inner product with alpha."""
        signed = self.Y * alpha
        if self.gram is not None:
            return (self.Y * (signed @ self.gram)).T
        return (self.Y * (self.X @ (self.X.T @ signed.T)).T).T

    def hessian_solver(self, mu, D):
        """Solves with the sum of mu_t times (K * y_t y_t'), plus D: by factors where they are few (Woodbury)."""
        if self.gram is not None:
            H = (self.Y.T * mu) @ self.Y
            H *= self.gram
            H[np.diag_indices_from(H)] += D + ROUNDING * H.diagonal().max()
            factor = cho_factor(H.T, overwrite_a=True, check_finite=False)
            return lambda B: cho_solve(factor, B, check_finite=False)
        roots = np.sqrt(mu)[:, None] * self.Y / np.sqrt(D)
        scaled = [sp.diags_array(root) @ self.X for root in roots]
        F = np.hstack([S.toarray() if sp.issparse(S) else S for S in scaled])
        inner = F.T @ F
        inner[np.diag_indices_from(inner)] *= 1 + ROUNDING
        inner[np.diag_indices_from(inner)] += 1
        factor = cho_factor(inner, overwrite_a=True, check_finite=False)

        def solve(B):
            B = (B.T / np.sqrt(D)).T
            x = B - F @ cho_solve(factor, F.T @ B, check_finite=False)
            rest = B - x - F @ (F.T @ x)  # of large numbers: refine once
            x += rest - F @ cho_solve(factor, F.T @ rest, check_finite=False)
            return (x.T / np.sqrt(D)).T

        return solve


@dataclass
class Point:
    """A point inside: alpha with multipliers z and u of its bounds, mu, theta above the quadratics, by s."""

    alpha: np.ndarray
    mu: np.ndarray
    theta: float
    s: np.ndarray
    z: np.ndarray
    u: np.ndarray

    def parts(self):
        """All of it, in the order of the fields."""
        return self.alpha, self.mu, self.theta, self.s, self.z, self.u

    def gap(self, C):
        """Sum of the products that vanish at the solution."""
        return self.alpha @ self.z + (C - self.alpha) @ self.u + self.mu @ self.s

    def moved(self, step, t):
        """The point after a part of a step."""
        pairs = zip(self.parts(), step.parts(), strict=True)
        return Point(*(a + t * d for a, d in pairs))

    def reach(self, step, C):
        """The part of a step after which a bound is met."""
        positive = self.alpha, C - self.alpha, self.mu, self.s, self.z, self.u
        change = step.alpha, -step.alpha, step.mu, step.s, step.z, step.u
        falls = (
            np.max(-d / a, initial=0) for a, d in zip(positive, change, strict=True)
        )
        return 1 / max(*falls, 1e-300)


class Newton:
    """Newton's method for the conditions of the relaxed problem, linearised at one point; one factorisation.

    All conditions are polynomials of degree two, so that what a step leaves of them is known exactly.
    """

    def __init__(self, problem, point):
        self.problem, self.point = problem, point
        alpha, mu, _, s, z, u = point.parts()
        room, G = problem.C - alpha, problem.gradients(alpha)
        self.room, self.G = room, G
        self.rest = (
            1 - G @ mu + z - u, alpha @ G / 2 - point.theta + s, mu.sum() - 1,
            mu * s, alpha * z, room * u,
        )  # fmt: skip

    def factorise(self):
        """The linear system: the Hessian of alpha, and what is left of it for mu and theta."""
        alpha, mu, _, s, z, u = self.point.parts()
        self.solve = self.problem.hessian_solver(mu, z / alpha + u / self.room)
        self.SG = self.solve(self.G)
        T = len(mu)
        self.border = np.ones((T + 1, T + 1))
        self.border[:T, :T] = self.G.T @ self.SG + np.diag(s / mu)
        self.border[T, T] = 0

    def bounds(self):
        """The value at alpha, and the primal objective at mu, which bounds the best one."""
        mu = self.point.mu / self.point.mu.sum()
        quadratics, slope = self.point.alpha @ self.G / 2, 1 - self.G @ mu
        primal = mu @ quadratics + self.problem.C * np.maximum(0, slope).sum()
        return self.point.alpha.sum() - quadratics.max(), primal

    def step(self, rest):
        """The step at which the linearised conditions fall by ``rest``."""
        r_alpha, r_s, r_mu, p_s, p_z, p_u = rest
        alpha, mu, _, _, z, u = self.point.parts()
        Sb = self.solve(r_alpha - p_z / alpha + p_u / self.room)
        right = np.append(r_s + self.G.T @ Sb - p_s / mu, -r_mu)
        d_mu, d_theta = np.split(np.linalg.solve(self.border, right), [len(mu)])
        d = Sb - self.SG @ d_mu
        d_s = d_theta[0] - r_s - d @ self.G
        d_z, d_u = (-p_z - z * d) / alpha, (-p_u + u * d) / self.room
        return Point(d, d_mu, d_theta[0], d_s, d_z, d_u)

    def direction(self, least):
        """Mehrotra's: a step to the solution tells how far to aim, and what of the conditions it would leave.

        Not below a gap of ``least``: nearer to the bounds the linear systems lose their digits.
        """
        self.factorise()
        C, n_products = self.problem.C, 2 * len(self.room) + len(self.border) - 1
        each = least / n_products
        first = self.step((*self.rest[:3], *(p - each for p in self.rest[3:])))
        gap, t = self.point.gap(C), min(1.0, self.point.reach(first, C))
        aim = (self.point.moved(first, t).gap(C) / gap) ** 3
        each = max(min(1.0, aim) * gap / n_products, each)
        G = self.problem.gradients(first.alpha)
        left = (
            -G @ first.mu, first.alpha @ G / 2, 0.0, first.mu * first.s - each,
            first.alpha * first.z - each, -first.alpha * first.u - each,
        )  # fmt: skip
        pairs = zip(self.rest, left, strict=True)
        return self.step([rest + second for rest, second in pairs])


def first_point(problem, warm):
    """A point inside, from alpha and mu nearby, or from the squared hinge for even mu; new labellings have no mu."""
    n, T = problem.X.shape[0], len(problem.Y)
    if warm is None:
        mu = np.full(T, 1 / T)
        alpha = problem.hessian_solver(mu, np.full(n, 1 / problem.C))(np.ones(n))
    else:
        alpha, old = warm
        new = T - len(old)
        mu = np.append((1 - NEW_WEIGHT) * old, np.full(new, NEW_WEIGHT / max(new, 1)))
        mu = np.maximum(mu, LEAST_WEIGHT) / np.maximum(mu, LEAST_WEIGHT).sum()
    margin = INSIDE * min(np.abs(alpha).mean(), problem.C)
    alpha = np.clip(alpha, margin, problem.C - margin)
    G = problem.gradients(alpha)
    q, slope = alpha @ G / 2, 1 - G @ mu
    away = AWAY * max(q.max(), alpha.sum())
    theta = q.max() + away
    each = (mu @ (theta - q) + away) / (2 * n + T)
    z, u = np.maximum(0, -slope), np.maximum(0, slope)
    room = problem.C - alpha
    return Point(alpha, mu, theta, theta - q, z + each / alpha, u + each / room)


def follow(problem, point, tol):
    """The central path from a point on, until the relative gap is small or the steps are; returns that, too."""
    t = 1.0
    for _ in range(MAX_STEPS):
        newton = Newton(problem, point)
        low, high = newton.bounds()
        gap = (high - low) / high
        if gap <= tol or t < LEAST_STEP:
            break
        direction = newton.direction(FLOOR * tol * max(low, 0))
        t = min(1.0, TO_BOUNDARY * point.reach(direction, problem.C))
        point = point.moved(direction, t)
    return point, gap


def solve_relaxed(X, Y, C, gram=None, warm=None, tol=1e-6):
    """The alpha that maximises `relaxed_value` over [0, C], and the weights of the labellings.

    Parameters
    ----------
    X : ndarray or sparse array, shape (n, d)
    Y : ndarray of -1 and 1, shape (T, n)
    C : float
    gram : ndarray, shape (n, n), optional
        Inner products of rows of X, where there are many columns.
    warm : (ndarray, ndarray), optional
        alpha, and the weights of the first labellings, where others are new.
    tol : float, default 1e-6
        Gap between the value and the primal objective, relative.

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
        warn(
            f"the relaxed problem stopped at a relative gap of {gap:.1e}, above {tol}; scale the features, or lower C",
            ConvergenceWarning,
        )
    return point.alpha, point.mu / point.mu.sum()


def violated(X, Y, columns, alpha, bags, fewest, most, ascent):
    """Labellings with longer weights than those at hand, the longest first: the best cut of each group of columns."""
    groups, tried = (AT_ONCE, TRIED) if ascent else (1, 0)
    new = [
        cut(X, columns[:, k::groups], alpha, bags, fewest, most, ascent, tried)
        for k in range(min(groups, columns.shape[1]))
    ]
    new = np.unique(new, axis=0)
    q = quadratics(X, new, alpha)
    new = new[np.argsort(-q, kind="stable")]
    longest = quadratics(X, Y, alpha).max()
    return new[: (q > (1 + 1e-6) * longest).sum()]


def minimise(X, bags, fewest, most, C, ascent=True, max_cuts=20, tol=1e-3):
    r"""The relaxed problem by cutting planes: solve for the labellings at hand, add some that are violated, repeat.

    With ascent up to four labellings are added at once, from four groups of columns; without, one, as in the paper.
    With T labellings at hand some ten steps of :math:`O(n d^2 T^2)` a time, or :math:`O(n^3)` where 2 d T exceeds n,
    which takes an n x n matrix.

    Parameters
    ----------
    X : ndarray or sparse array, shape (n_instances, n_features)
    bags, fewest, most
        As for `best_labels`.
    C : float
    ascent : bool, default True
        See `cut`.
    max_cuts : int, default 20
        The most labellings.
    tol : float, default 1e-3
        Relative fall of the value below which no more labellings are added.

    Returns
    -------
    alpha : ndarray, shape (n_instances,)
    Y : ndarray of -1 and 1, shape (n_labellings, n_instances)
    mu : ndarray, shape (n_labellings,)
        Weights of the labellings, which sum to 1.
    values : list of float
        Of the relaxed problem, one each time that labellings were added: they do not rise.
    """
    with threadpool_limits(1):
        n, d = X.shape
        columns, rest = main_columns(X), (bags, fewest, most, ascent)
        Y = cut(X, columns, np.full(n, 1 / n), *rest)[None, :]
        accuracy = max(ACCURACY * tol, LEAST_GAP)
        gram, warm, values = None, None, []
        while True:
            if gram is None and (2 * len(Y) * d > n or n <= SMALL):
                gram = X @ X.T
                gram = gram.toarray() if sp.issparse(gram) else gram
            alpha, mu = warm = solve_relaxed(X, Y, C, gram, warm, accuracy)
            values.append(float(relaxed_value(X, Y, alpha)))
            if len(values) > 1 and values[-2] - values[-1] <= tol * values[-1]:
                break
            new = violated(X, Y, columns, alpha, *rest)[: max_cuts - len(Y)]
            if len(new) == 0:
                break
            Y = np.vstack([Y, new])
    return alpha, Y, mu, values
