"""The quadratic program of one round of CCCP: a proximal point method on its dual, by Newton's method."""

import numpy as np

#: Width of the smoothing of kinks from a cold and a warm start, the factor by which it shrinks per step, its minimum.
COLD_WIDTH, WARM_WIDTH, SHRINK, LEAST_WIDTH = 1.0, 0.03, 5.0, 1e-6
#: Proximal steps, and Newton steps in each, after which to give up.
MAX_STEPS = 60


def newton_direction(gradient, Phi_free, stiffness, lam):
    r"""Solve :math:`(\lambda I + \Phi_F^\top D \Phi_F)\, d = -\nabla` in the smaller dimension (Woodbury)."""
    n_free, b = Phi_free.shape
    if n_free < b:
        inner = Phi_free @ Phi_free.T + np.diag(lam / stiffness)
        correction = np.linalg.solve(inner, Phi_free @ gradient) @ Phi_free
        return (correction - gradient) / lam
    half = Phi_free * np.sqrt(stiffness)[:, None]
    return -np.linalg.solve(half.T @ half + lam * np.eye(b), gradient)


def step_length(slope, descent):
    """A step in [0, 1] where the increasing slope has nearly vanished, and the rest of it over ``descent``."""
    low, high, at_low, at_high = 0.0, 1.0, -descent, slope(1.0)
    step, now = high, at_high
    for k in range(40):
        if now <= 0.1 * descent and (step == 1 or now >= -0.1 * descent):
            break
        if now > 0:
            high, at_high = step, now
        else:
            low, at_low = step, now
        step = (low * at_high - high * at_low) / (at_high - at_low)
        step = step if k % 3 < 2 else (low + high) / 2
        now = slope(step)
    return step, abs(now) / descent


def minimize_smoothed(alpha, nu, Phi, epsilon, cap, linear, lam, width, tol):
    r"""Minimum of the bound with its kinks smoothed around the current multipliers, by Newton's method.

    The hinge :math:`v \max(0, z)` becomes :math:`\max_{0 \le \nu \le v} \nu z - \frac{s}{2 v} (\nu - \nu^{old})^2`,
    where s is ``width``; its maximizer is :math:`\operatorname{clip}(\nu^{old} + \frac{v}{s} z, 0, v)`. This is the
    proximal point method on the dual (rockafellar1976). Where no instance changes sides of a kink one Newton step
    reaches the minimum.
    """
    stiffness, exact, g, nu_old = cap / width, False, Phi @ alpha, nu
    for _ in range(MAX_STEPS):
        raw = nu_old + stiffness * (g - epsilon)
        nu = np.clip(raw, 0, cap)
        gradient = lam * alpha - linear + nu @ Phi
        rest = gradient @ gradient / (2 * lam)
        size = lam / 2 * alpha @ alpha + nu.sum()
        if exact or rest <= 0.1 * tol * size:
            break
        free = (raw > 0) & (raw < cap)
        d = newton_direction(gradient, Phi[free], stiffness[free], lam)
        along, flat, bend = Phi @ d, (lam * alpha - linear) @ d, lam * d @ d
        rate = stiffness * along

        def slope(step, raw=raw, rate=rate, along=along, flat=flat, bend=bend):
            moved = np.minimum(np.maximum(raw + step * rate, 0), cap)
            return flat + step * bend + moved @ along

        step, left = step_length(slope, -gradient @ d)
        exact = step == 1 and left < 1e-8
        alpha, g = alpha + step * d, g + step * along
    gap = rest + cap @ np.maximum(0, g - epsilon) - nu @ (g - epsilon)
    return alpha, nu, gap / max(size, 1e-300)


def minimize_bound(b, c, basis, lam, weights=(1.0, 1.0), warm=None, tol=1e-9):
    r"""The minimum of the bound over alpha: the quadratic program of one round.

    Equation :eq:`eq-dsdd-inner` (9). Its dual is a box, :math:`\max_{0 \le \nu \le v} -\epsilon^\top \nu -
    \frac{1}{2 \lambda} \lVert u - \Phi^\top \nu \rVert^2`, with :math:`\alpha = (u - \Phi^\top \nu) / \lambda`. The
    proximal point method on the dual: Newton's method with less and less smoothing.

    Parameters
    ----------
    b, c, basis, lam, weights
        As for `llpbook.dsdd.upper_bound`.
    warm : (ndarray, ndarray), optional
        alpha and nu to start from: the solution of a problem nearby.
    tol : float, default 1e-9
        Duality gap at which to stop, relative to the size of the dual's terms.

    Returns
    -------
    alpha : ndarray, shape (m,)
    nu : ndarray, shape (n + n',)
        Multipliers of the constraints on the slack variables, the first sample before the second.
    gap : float
        Duality gap reached, relative: alpha is at most so much above the minimum.
    """
    Phi, sizes = np.vstack(basis), [len(part) for part in basis]
    epsilon = np.repeat([1.0, -1.0], sizes)
    cap = np.repeat(np.divide(weights, sizes), sizes)
    linear = (cap * np.concatenate([c, b])) @ Phi
    width, nu = (COLD_WIDTH, cap / 2) if warm is None else (WARM_WIDTH, warm[1])
    alpha = (linear - nu @ Phi) / lam if warm is None else warm[0]
    for _ in range(MAX_STEPS):
        alpha, nu, gap = minimize_smoothed(
            alpha, nu, Phi, epsilon, cap, linear, lam, width, tol
        )
        if gap <= tol:
            break
        width = max(width / SHRINK, LEAST_WIDTH)
    return alpha, nu, gap
