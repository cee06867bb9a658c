r"""Hinges with a ridge penalty, minimized exactly: the support vector machines of all margin methods.

.. math:: \min_{w, b} \tfrac12 \lVert w \rVert^2 + \sum_i c_i \max(0, e_i - a_i f_i), \qquad
          f_i = \langle w, x_i \rangle + b

with signs a, offsets e and costs c. Two loops, one inside the other, find the minimum (`minimize_hinges`):

*Rounds.* A hinge :math:`c \max(0, z)` is the maximum of :math:`\nu z` over multipliers :math:`0 \le \nu \le c`. If
:math:`\frac{s}{2c} (\nu - \nu^{old})^2` is subtracted from :math:`\nu z`, its kink is rounded over the width s. The
multipliers at the minimum of the rounded problem are the :math:`\nu^{old}` of the next round, whose width is smaller;
in the first round they are c/2, which gives Huber's hinge. This is the proximal point method on the dual problem: it
converges to the exact solution whatever the widths, and faster with small ones (rockafellar1976). Rounds stop when the
gap between the primal and the dual objective is small, relative to the primal one.

*Newton steps.* The gradient of the rounded problem is piecewise linear. Its slope depends on the *band*, the instances
whose multipliers lie between their bounds. A Newton step solves a linear system of the band, and a line search makes
the objective fall, so that the steps converge. Near the minimum the band does not change, and one step reaches it.

With m instances in the band and d features a Newton step costs :math:`O(n d + m d \min(m, d))` time and
:math:`O(\min(m, d)^2)` memory. Ten to fifty steps in all are usual.
"""

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse.linalg import LinearOperator, cg
from sklearn.exceptions import ConvergenceWarning

from ..base import warn

#: Width of the first round, half the distance between the margins of a support vector machine; factor from one width
#: to the next; least width, below which rounding decides on which side of its kink an instance lies.
FIRST_WIDTH, SHRINK, LEAST_WIDTH = 1.0, 0.2, 1e-6
#: Largest and usual number of rounds; largest number of Newton steps in a round, and of trials in a search for a zero.
MAX_ROUNDS, USUAL_ROUNDS, MAX_NEWTON, MAX_TRIALS = 60, 8, 50, 60
#: Accuracy of a round, in units of that of the result: the error of a round adds to the gap.
INNER = 0.1
#: The largest linear system that is factorized. Conjugate gradients solve larger ones, down to this share of the
#: gradient or in so many steps: a Newton step need not be exact.
LARGEST_SYSTEM, RESIDUAL, MAX_CG = 3000, 0.05, 200
#: Addition to a diagonal, in units of its rounding error. It is larger than the error, so the matrix of dependent
#: features stays positive definite.
ROUNDING = 500
#: Derivatives by the intercept, in units of all costs: at which it is searched by itself, if no instance is in the
#: band; at which that search ends; and at which a slope counts as 0.
UNBALANCED, BALANCED, FLAT = 1e-6, 1e-9, 1e-12
#: Slopes at the end of a step, in units of the first slope: above the first number the step is shortened, until the
#: slope is below the second.
TOO_LONG, SHORT_ENOUGH = 0.5, 0.1
#: Instead of 0 in a denominator.
TINY = 1e-300


def newton_direction(X, band, stiffness, gradient, pull, largest=LARGEST_SYSTEM):
    """The Newton step of w and of b, which minimizes the quadratic model of the rounded objective.

    ``stiffness`` holds the second derivatives of the hinges in the band, ``gradient`` the derivatives by w, ``pull`` is
    the derivative by b, or None without an intercept. The intercept is eliminated, which centers the rows of the band.
    Features far from 0 or nearly dependent cost Newton steps, but the factorization succeeds: rounding cannot make
    the matrix indefinite.
    """
    rows, total, mean = X[band], stiffness.sum(), np.zeros_like(gradient)
    m, d = rows.shape
    if m == 0:
        return -gradient, 0.0  # only the ridge has curvature, none along the intercept
    if pull is not None:
        mean = stiffness @ rows / total
        gradient = gradient - pull * mean
    exact = solve_in_band if m < d else solve_in_features
    solve = exact if min(m, d) <= largest else solve_by_products
    step = solve(rows, stiffness, mean, gradient)
    return step, 0.0 if pull is None else -(mean @ step) - pull / total


def solve_in_band(rows, stiffness, mean, gradient):
    """The step by a system with an unknown for each instance of the band (Woodbury)."""
    products, shift = as_array(rows @ rows.T), rows @ mean
    centered = products - shift[:, None] - shift + mean @ mean
    right = rows @ gradient - mean @ gradient
    beta = solve_definite(centered, products, 1 / stiffness, right)
    return beta @ rows - beta.sum() * mean - gradient


def solve_in_features(rows, stiffness, mean, gradient):
    """The step by a system with an unknown for each feature."""
    half = scale_rows(rows, np.sqrt(stiffness))
    hessian = as_array(half.T @ half)
    centered = hessian - stiffness.sum() * np.outer(mean, mean)
    return solve_definite(centered, hessian, 1, -gradient)


def solve_by_products(rows, stiffness, mean, gradient):
    """An approximate step by conjugate gradients, which need no matrix."""

    def times(v):
        u = stiffness * (rows @ v - mean @ v)
        return v + u @ rows - u.sum() * mean

    hessian = LinearOperator(2 * gradient.shape, times, dtype=gradient.dtype)
    return cg(hessian, -gradient, rtol=RESIDUAL, maxiter=MAX_CG)[0]


def as_array(A):
    """A product of sparse matrices as an array."""
    return A.toarray() if sp.issparse(A) else A


def scale_rows(A, factors):
    """Each row times its factor, dense or sparse as the rows are."""
    return sp.diags_array(factors) @ A if sp.issparse(A) else factors[:, None] * A


def solve_definite(A, before, ridge, right):
    """Solve with A, which is overwritten, plus a diagonal that exceeds the rounding error of A ``before`` centering."""
    rounding = ROUNDING * np.finfo(A.dtype).eps * before.diagonal()
    A[np.diag_indices_from(A)] += ridge + rounding
    return cho_solve(cho_factor(A, check_finite=False), right)


def zero_of_slope(slope, low, high, tol=None):
    """Find a zero of an increasing function between two points, by regula falsi and, each third time, bisection.

    Nearly 0 is ``tol``, or without it the share `SHORT_ENOUGH` of the value at ``low``. Where the function has one sign
    between the points, the end that is nearer to its zero is returned.
    """
    at_low, at_high = slope(low), slope(high)
    tol = SHORT_ENOUGH * abs(at_low) if tol is None else tol
    if at_low >= 0 or at_high <= 0:
        return low if at_low >= 0 else high
    for trial in range(MAX_TRIALS):
        middle = (low * at_high - high * at_low) / (at_high - at_low)
        middle = middle if trial % 3 < 2 else (low + high) / 2
        here = slope(middle)
        if abs(here) <= tol:
            break
        low, at_low = (low, at_low) if here > 0 else (middle, here)
        high, at_high = (high, at_high) if here < 0 else (middle, here)
    return middle


def best_intercepts(f, a, e, c):
    """The least and the largest intercept that minimize the hinges of scores f without one.

    The slope begins at minus the costs of the positive signs and rises by c where a hinge bends: a weighted quantile.
    """
    bends = a * e - f
    order = np.argsort(bends, kind="stable")
    slope, flat = np.cumsum(c[order]) - c[a > 0].sum(), FLAT * c.sum()
    first = min(np.searchsorted(slope, -flat), len(f) - 1)
    last = min(first + (abs(slope[first]) <= flat), len(f) - 1)
    return bends[order[first]], bends[order[last]]


class Rounded:
    """The problem with its kinks rounded over a width about old multipliers.

    All multipliers are parts of the costs c, from 0 to 1.
    """

    def __init__(self, X, a, e, c, intercept, width, old):
        self.X, self.a, self.e, self.c, self.intercept = X, a, e, c, intercept
        self.width, self.signed, self.n_steps = width, c * a, 0
        self.at_zero, self.fall = old + e / width, a / width  # of the multipliers

    def minimize(self, w, b, tol):
        """Newton's method; returns w, b, scores, multipliers and a bound of the gain that is left.

        The bound, as a share of the objective, is half the square of the gradient of w, since the ridge makes the
        objective strongly convex, plus the pull on b times the size of b.
        """
        f = self.X @ w + b
        for _ in range(MAX_NEWTON):
            self.n_steps += 1
            parts, gradient, pull, band = self.derivatives(w, f)
            bound = gradient @ gradient / 2 + abs(pull or 0) * (1 + abs(b))
            bound /= max(w @ w / 2 + self.hinges(f), TINY)
            if bound <= tol:
                break
            shift = self.best_shift(f, pull, band)
            if shift:
                b, f = b + shift, f + shift
                continue
            step = self.newton_step(gradient, pull, band)
            slope = self.slope_along(w, f, step)
            first = abs(gradient @ step[0] + (pull or 0) * step[1])
            whole = slope(1.0) <= TOO_LONG * first
            length = 1.0 if whole else zero_of_slope(slope, 0.0, 1.0)
            w, b, f = (old + length * d for old, d in zip((w, b, f), step, strict=True))
        return w, b, f, parts, bound

    def hinges(self, f):
        """The sum of the hinges, without rounding."""
        z = less(self.e, self.a * f)
        return self.c @ np.maximum(z, 0, out=z)

    def multipliers(self, f):
        """The multipliers at scores f, which are minus the slopes of the rounded hinges."""
        return clipped(less(self.at_zero, self.fall * f))

    def derivatives(self, w, f):
        """The multipliers, the gradient by w, the derivative by b or None without an intercept, and the band."""
        parts = self.multipliers(f)
        signed = (parts * self.signed).astype(self.X.dtype, copy=False)
        gradient = w.astype(self.X.dtype, copy=False) - signed @ self.X
        pull = -float(signed.sum()) if self.intercept else None
        return parts, gradient, pull, np.flatnonzero((parts > 0) & (parts < 1))

    def best_shift(self, f, pull, band, enough=1):
        """Best change of the intercept alone, if the derivative along it is not 0 and the band is small; else 0."""
        total = self.c.sum()
        if len(band) >= enough or abs(pull or 0) <= UNBALANCED * total:
            return 0.0

        def slope(shift):
            return -(self.signed @ self.multipliers(f + shift))

        near = best_intercepts(f, self.a, self.e, self.c)[0]  # without rounding
        low, high = near - self.width, near + self.width
        return zero_of_slope(slope, low, high, tol=BALANCED * total)

    def newton_step(self, gradient, pull, band, largest=LARGEST_SYSTEM):
        """Compute the steps of w and b, and the change of the scores by both."""
        stiffness = (self.c[band] / self.width).astype(gradient.dtype)
        d, d_b = newton_direction(self.X, band, stiffness, gradient, pull, largest)
        return d, d_b, self.X @ d + d_b

    def slope_along(self, w, f, step):
        """Slope of the rounded objective along a step, as a function of the part of it that is taken."""
        d, _, along = step
        flat, bend, pull = w @ d, d @ d, self.signed * along
        start, fall = less(self.at_zero, self.fall * f), self.fall * along

        def slope(part):
            return flat + part * bend - clipped(less(start, part * fall)) @ pull

        return slope


def less(a, b):
    """The difference a - b in the place of b: new arrays of this length take longer than the sums."""
    return np.subtract(a, b, out=b)


def clipped(parts):
    """Numbers between 0 and 1, in the place of those handed in."""
    np.maximum(parts, 0, out=parts)
    return np.minimum(parts, 1, out=parts)


def minimize_hinges(
    X, a, e, c, *, intercept=True, warm=None, tol=1e-9, cost="C", progress=None
):
    r"""The exact minimum, by rounds of ever smaller width.

    Parameters
    ----------
    X : ndarray or sparse array, shape (n, d)
    a, e, c : ndarray, shape (n,)
        Signs, offsets and costs of the hinges.
    intercept : bool, default True
    warm : (ndarray, float, ndarray, float), optional
        Weights, intercept and multipliers near the solution, and the first width.
    tol : float, default 1e-9
        Largest gap between primal and dual objective, relative to the primal one.
    cost : str, default "C"
        The user's parameter that c is proportional to, for a warning.
    progress : callable, optional
        Called with a text after each round.

    Returns
    -------
    w : ndarray, shape (d,)
    b : float
        The middle of the interval of optimal values.
    nu : ndarray, shape (n,)
        Multipliers, between 0 and c.
    n_iter : int
        Newton steps in all rounds; the evaluation that ends a round counts as one.
    gap : float
        Gap between primal and dual objective at the end, relative to the primal one. If it is above ``tol``, the
        function warns. The objective is above its minimum by at most this share of itself.
    """
    cold = np.zeros(X.shape[1]), 0.0, c / 2, FIRST_WIDTH
    (w, b, nu, width), n_iter = cold if warm is None else warm, 0
    for _ in range(MAX_ROUNDS):
        problem = Rounded(X, a, e, c, intercept, width, nu / c)
        w, b, f, parts, gap = problem.minimize(w, b, INNER * tol)
        n_iter += problem.n_steps
        if gap > INNER * tol and width < FIRST_WIDTH:  # too far for so narrow a kink
            width, gap = width / SHRINK**2, np.inf
            continue
        nu, primal = c * parts, problem.hinges(f)
        gap += (primal - nu @ (e - a * f)) / max(w @ w / 2 + primal, TINY)
        if progress:
            progress(f"relative gap {gap:.1e}")
        if gap <= tol:
            break
        width = max(SHRINK * width, LEAST_WIDTH)
    else:
        warn(
            f"a support vector machine is solved to a relative accuracy of {gap:.1e} only, not of {tol:.1e}; scale "
            f"the features, or lower {cost}",
            ConvergenceWarning,
        )
    if intercept:
        b += sum(best_intercepts(f, a, e, c)) / 2
    return w, b, nu, n_iter, float(gap)
