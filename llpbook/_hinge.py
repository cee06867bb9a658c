r"""Hinges with a ridge penalty, by Newton's method on the smoothed problem; shared by the margin methods.

.. math:: \min_{w, b} \tfrac12 \lVert w \rVert^2 + \sum_i c_i \max(0, e_i - a_i (\langle w, x_i \rangle + b))

with signs a, offsets e and caps c. A hinge is smoothed about a known multiplier: :math:`\max_{0 \le \nu \le c} \nu z -
\frac{s}{2c} (\nu - \nu^{old})^2`. With :math:`\nu^{old} = c/2` this is Huber's hinge, rounded over the width s; with
the multipliers of the step before it is the proximal point method on the dual, whose limit is exact (rockafellar1976).
"""

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_factor, cho_solve
from sklearn.exceptions import ConvergenceWarning

from .base import warn

#: Widths of the exact method: the first, the factor from one to the next, and the least.
FIRST_WIDTH, SHRINK, LEAST_WIDTH = 1.0, 0.2, 1e-6
#: Proximal steps, and Newton steps in each, after which to give up.
MAX_STEPS, MAX_NEWTON = 60, 50
#: The largest system that is solved by a factorisation; larger ones by conjugate gradients, down to this residual.
LARGEST_SYSTEM, RESIDUAL, MAX_CG = 3000, 0.05, 200


def newton_direction(X, band, stiffness, g, g_b, largest=LARGEST_SYSTEM):
    r"""Minimise the quadratic model; the intercept is eliminated, which centres the rows of the band.

    The smaller of two systems, in features or in the band (Woodbury); conjugate gradients where both are large.
    ``g_b`` is None without an intercept.
    """
    part, total, mean = X[band], stiffness.sum(), np.zeros_like(g)
    n_band, d = part.shape
    if n_band == 0:
        return -g, 0.0  # the intercept is flat here
    if g_b is not None:
        mean = stiffness @ part / total
        g = g - g_b * mean
    if min(n_band, d) > largest:
        step = conjugate_gradients(part, stiffness, mean, g)
    elif n_band < d:
        shift, inner = part @ mean, part @ part.T
        inner = as_array(inner) - shift[:, None] - shift + mean @ mean
        inner[np.diag_indices(n_band)] += 1 / stiffness
        beta = cho_solve(cho_factor(inner, check_finite=False), part @ g - mean @ g)
        step = beta @ part - beta.sum() * mean - g
    else:
        half = sp.diags_array(np.sqrt(stiffness)) @ part
        H = as_array(half.T @ half) - total * np.outer(mean, mean)
        H[np.diag_indices(d)] += 1
        step = -cho_solve(cho_factor(H, check_finite=False), g)
    return step, 0.0 if g_b is None else -(mean @ step) - g_b / total


def as_array(A):
    """A product of sparse matrices as an array."""
    return A.toarray() if sp.issparse(A) else A


def conjugate_gradients(part, stiffness, mean, g):
    """An inexact Newton direction."""
    x, r = np.zeros_like(g), -g
    p, rho = r, r @ r
    stop = RESIDUAL**2 * rho
    for _ in range(MAX_CG):
        u = stiffness * (part @ p - mean @ p)
        Hp = p + u @ part - u.sum() * mean
        alpha = rho / (p @ Hp)
        x, r = x + alpha * p, r - alpha * Hp
        rho, last = r @ r, rho
        if rho <= stop:
            break
        p = r + (rho / last) * p
    return x


def zero_of_slope(slope, low, high, tol):
    """Where an increasing function vanishes, between two points; regula falsi with bisection."""
    at_low, at_high = slope(low), slope(high)
    for k in range(60):
        if at_low >= 0 or at_high <= 0:
            return low if at_low >= 0 else high
        middle = (low * at_high - high * at_low) / (at_high - at_low)
        middle = middle if k % 3 < 2 else (low + high) / 2
        now = slope(middle)
        if abs(now) <= tol:
            return middle
        low, at_low = (low, at_low) if now > 0 else (middle, now)
        high, at_high = (high, at_high) if now < 0 else (middle, now)
    return middle


def best_intercept(f, a, e, c):
    """The intercept that minimises the hinges of scores f without one; the middle, where several do.

    The slope jumps by c at each point where a hinge bends, from minus the sum of c over positive signs: a weighted
    quantile.
    """
    bends = a * e - f
    order = np.argsort(bends, kind="stable")
    slope = np.cumsum(c[order]) - c[a > 0].sum()
    tol = 1e-12 * c.sum()
    first = min(np.searchsorted(slope, -tol), len(f) - 1)
    last = min(first + (abs(slope[first]) <= tol), len(f) - 1)
    return (bends[order[first]] + bends[order[last]]) / 2


class Smoothed:
    """The smoothed problem at one point: multipliers, value and gradient."""

    def __init__(self, a, e, c, width, old):
        self.a, self.e, self.c, self.width, self.old = a, e, c, width, old
        self.rate = c / width

    def multipliers(self, f):
        """Raw, whose place in [0, c] tells the band, and clipped."""
        raw = self.old + self.rate * (self.e - self.a * f)
        return raw, np.clip(raw, 0, self.c)

    def value(self, f, nu):
        """Sum of the smoothed hinges."""
        move = nu - self.old
        return nu @ (self.e - self.a * f) - self.width / 2 * (move @ (move / self.c))


def minimise_smoothed(X, problem, w, b, intercept, tol):
    """Newton's method with a line search; returns w, b, the scores, the multipliers and the square of the gradient."""
    f = X @ w + b
    for _ in range(MAX_NEWTON):
        raw, nu = problem.multipliers(f)
        signed = nu * problem.a
        g, g_b = w - signed @ X, -signed.sum() if intercept else None
        size = w @ w / 2 + problem.c @ np.maximum(0, problem.e - problem.a * f)
        slack = g @ g / 2 + (0 if g_b is None else abs(g_b) * (1 + abs(b)))
        if slack <= tol * size:
            break
        band = np.flatnonzero((raw > 0) & (raw < problem.c))
        if intercept and len(band) == 0 and abs(g_b) > 1e-6 * problem.c.sum():
            b, f = centre(problem, f, b)
            continue
        d, d_b = newton_direction(X, band, problem.rate[band], g, g_b)
        along = X @ d + d_b
        step = line_search(problem, f, along, w @ d, d @ d)
        w, b, f = w + step * d, b + step * d_b, f + step * along
    return w, b, f, nu, slack / max(size, 1e-300)


def centre(problem, f, b):
    """Search the intercept alone: the zero of the slope, which lies near that of the hinges as they are."""
    a, e, c = problem.a, problem.e, problem.c
    shift = best_intercept(f, a, e, c)

    def slope(db):
        return -(a @ problem.multipliers(f + db)[1])

    reach = problem.width
    shift = zero_of_slope(slope, shift - reach, shift + reach, 1e-9 * c.sum())
    return b + shift, f + shift


def line_search(problem, f, along, flat, bend):
    """A step in [0, 1] along a direction of descent: 1 unless the slope turns; else where it vanishes."""
    rate = problem.a * along

    def slope(step):
        return flat + step * bend - problem.multipliers(f + step * along)[1] @ rate

    start = slope(0.0)
    if slope(1.0) <= 0.5 * abs(start):
        return 1.0
    return zero_of_slope(slope, 0.0, 1.0, 0.1 * abs(start))


def minimise_hinges(X, a, e, c, intercept=True, warm=None, tol=1e-9):
    r"""The exact minimum, by proximal steps of ever smaller width.

    Parameters
    ----------
    X : ndarray or sparse array, shape (n, d)
    a, e, c : ndarray, shape (n,)
    intercept : bool, default True
    warm : (ndarray, float, ndarray, float), optional
        Weights, intercept and multipliers nearby, and the width to begin with.
    tol : float, default 1e-9
        Gap between primal and dual, relative.

    Returns
    -------
    w : ndarray, shape (d,)
    b : float
        The middle, where several are as good.
    nu : ndarray, shape (n,)
        Multipliers, between 0 and c.
    """
    cold = np.zeros(X.shape[1]), 0.0, c / 2, FIRST_WIDTH
    w, b, nu, width = cold if warm is None else warm
    for _ in range(MAX_STEPS):
        problem = Smoothed(a, e, c, width, nu)
        w, b, f, new, rest = minimise_smoothed(X, problem, w, b, intercept, 0.1 * tol)
        if rest > 0.1 * tol and width < FIRST_WIDTH:  # too far for so narrow a kink
            width, gap = width / SHRINK**2, np.inf
            continue
        nu, z = new, e - a * f
        hinges = c @ np.maximum(0, z)
        gap = rest + (hinges - nu @ z) / max(w @ w / 2 + hinges, 1e-300)
        if gap <= tol:
            break
        width = max(SHRINK * width, LEAST_WIDTH)
    else:
        warn(
            f"a support vector machine stopped at a relative gap of {gap:.1e}, above {tol:.1e}; scale the features, or "
            "lower C",
            ConvergenceWarning,
        )
    if intercept:
        b += best_intercept(f, a, e, c)
    return w, b, nu
