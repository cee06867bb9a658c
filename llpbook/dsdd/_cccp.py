"""The objective, convex plus concave, its bound, and CCCP, which minimizes the bound and tightens it, in turn."""

from typing import NamedTuple

import numpy as np

from .._linear import minimize_hinges

#: Width over which kinks are rounded at first, from a warm start.
WARM_WIDTH = 0.03


def clip(z):
    r"""The ramp: z cut to the interval from -1 to 1.

    :math:`R(z) = \max(-1, \min(1, z))` (section 3.2).

    Parameters
    ----------
    z : float or ndarray

    Returns
    -------
    float or ndarray
    """
    return np.clip(z, -1.0, 1.0)


def hinge(z, epsilon):
    r"""The convex piece of the ramp: 0 up to a kink, then slope 1.

    :math:`C_\epsilon(z) = \max(0, z - \epsilon)`, so that :math:`R = C_{-1} - C_1 - 1` (appendix A).

    Parameters
    ----------
    z : float or ndarray
    epsilon : float or ndarray

    Returns
    -------
    float or ndarray
    """
    return np.maximum(0.0, z - epsilon)


def sign_gap(g_p, g_q, weights=(1.0, 1.0)):
    r"""Mean of the clipped function over the second sample, minus its mean over the first.

    :math:`w' \operatorname{mean}_j R(g'_j) - w \operatorname{mean}_i R(g_i)` (equation 6). On
    instances that the function was not fitted to, minus this estimates a lower bound of the :math:`L_1` distance.

    Parameters
    ----------
    g_p, g_q : ndarray, shape (n,) and (n',)
        Values of the function on the two samples.
    weights : tuple of float, default (1.0, 1.0)
        :math:`w, w'`; see `llpbook.density_difference.prior_weights`.

    Returns
    -------
    float
        The smaller, the better the signs of g separate the samples.
    """
    return float(weights[1] * clip(g_q).mean() - weights[0] * clip(g_p).mean())


def objective(alpha, basis, lam, weights=(1.0, 1.0)):
    r"""Objective of DSDD, a convex plus a concave function.

    :math:`J(\alpha)`, equation :eq:`eq-dsdd-objective` (7).

    Parameters
    ----------
    alpha : ndarray, shape (m,)
    basis : (ndarray, ndarray)
        Basis functions at the instances of the first and the second sample, shapes (n, m) and (n', m).
    lam : float
        Above 0.
    weights : tuple of float, default (1.0, 1.0)

    Returns
    -------
    float
    """
    gap = sign_gap(basis[0] @ alpha, basis[1] @ alpha, weights)
    # eq: eq-dsdd-objective
    return gap + lam / 2 * alpha @ alpha


def convex_part(alpha, basis, lam, weights=(1.0, 1.0)):
    r"""The convex part of the objective.

    :math:`w' \operatorname{mean}_j C_{-1}(g'_j) + w \operatorname{mean}_i C_1(g_i)
    + \frac{\lambda}{2} \lVert \alpha \rVert^2` (appendix A).

    Parameters
    ----------
    alpha, basis, lam, weights
        As for `objective`.

    Returns
    -------
    float
    """
    on_p = weights[0] * hinge(basis[0] @ alpha, 1).mean()
    on_q = weights[1] * hinge(basis[1] @ alpha, -1).mean()
    return on_p + on_q + lam / 2 * alpha @ alpha


def upper_bound(alpha, b, c, basis, lam, weights=(1.0, 1.0)):
    r"""The convex bound of the objective that one round of CCCP minimizes.

    Convex part plus a plane above the concave part, since :math:`C_\epsilon(z) \ge t (z - \epsilon)` for t in [0, 1]:
    equation :eq:`eq-dsdd-bound` (9, with the slack variables at their best).

    Parameters
    ----------
    alpha : ndarray, shape (m,)
    b : ndarray, shape (n',)
        Bits of the second sample, in [0, 1].
    c : ndarray, shape (n,)
        Bits of the first sample.
    basis, lam, weights
        As for `objective`.

    Returns
    -------
    float
        At least `objective`; equal to it where b and c come from `tighten_bound`.
    """
    on_p = weights[0] * (1 + np.mean(c * (-1 - basis[0] @ alpha)))
    on_q = weights[1] * (1 - np.mean(b * (1 - basis[1] @ alpha)))
    # eq: eq-dsdd-bound
    return convex_part(alpha, basis, lam, weights) + on_p - on_q


def tighten_bound(alpha, basis):
    r"""The plane that touches the concave part at alpha.

    :math:`b_j = 1[g'_j \ge 1]`, :math:`c_i = 1[g_i \ge -1]`, equation :eq:`eq-dsdd-tighten` (8).

    Parameters
    ----------
    alpha : ndarray, shape (m,)
    basis : (ndarray, ndarray)

    Returns
    -------
    b : ndarray, shape (n',)
        1 for an instance of the second sample that is given up: clipped on the wrong side.
    c : ndarray, shape (n,)
        0 for an instance of the first sample that is given up.
    """
    b = basis[1] @ alpha >= 1
    # eq: eq-dsdd-tighten
    c = basis[0] @ alpha >= -1
    return b.astype(float), c.astype(float)


def minimize_bound(b, c, basis, lam, weights=(1.0, 1.0), warm=None, tol=1e-9):
    r"""The minimum of the bound over alpha: the quadratic program of one round.

    Equation :eq:`eq-dsdd-inner` (9), as a support vector machine without intercept, by `minimize_hinges`: with a bit
    of 1 the bounded loss of an instance is a hinge of its score that falls, with a bit of 0 one that rises.

    Parameters
    ----------
    b, c, basis, lam, weights
        As for `upper_bound`, with bits that are 0 or 1.
    warm : (ndarray, ndarray), optional
        alpha and nu to start from: the solution of a problem nearby.
    tol : float, default 1e-9
        Duality gap at which to stop, relative to the penalty and the hinges.

    Returns
    -------
    alpha : ndarray, shape (m,)
    nu : ndarray, shape (n + n',)
        Multipliers of the constraints on the slack variables, the first sample before the second.
    gap : float
        Duality gap reached, relative: alpha is at most so much above the minimum.
    """
    sizes, falls = [len(part) for part in basis], np.append(c, b) == 1
    cap, signs = np.repeat(np.divide(weights, sizes), sizes), np.where(falls, 1.0, -1.0)

    def turned(nu):  # the multiplier of the hinge from that of the slack, and back
        return np.where(falls, cap - nu, nu)

    if warm is not None:
        warm = warm[0], 0.0, turned(warm[1]) / lam, WARM_WIDTH
    kinks = np.repeat([1.0, -1.0], sizes) * signs
    alpha, _, nu, _, gap = minimize_hinges(
        np.vstack(basis), signs, kinks, cap / lam,
        intercept=False, warm=warm, tol=tol, cost="1 / alpha",
    )  # fmt: skip
    return alpha, turned(lam * nu), gap


class Round(NamedTuple):
    """State after one round of `cccp`.

    Attributes
    ----------
    alpha : ndarray, shape (m,)
        Minimum of the bound.
    b, c : ndarray, shape (n',) and (n,)
        Bits of the bound that was minimized.
    nu : ndarray, shape (n + n',)
        Multipliers.
    gap : float
        How well the minimum was found; see `minimize_bound`.
    bound, objective : float
        Both at alpha. The difference is the gain of tightening.
    gain : float
        The smaller of this difference and the fall of the objective since the round before.
    """

    alpha: np.ndarray
    b: np.ndarray
    c: np.ndarray
    nu: np.ndarray
    gap: float
    bound: float
    objective: float
    gain: float


def cccp(
    basis, lam, weights=(1.0, 1.0), init="hinge", warm=None, max_iter=100, tol=1e-9
):
    r"""Tighten the bound and minimize it, in turn, until the bound is tight at its minimum.

    The algorithm of section 3.2. The objective never rises, and since there are finitely many bits it stops.

    Parameters
    ----------
    basis, lam, weights
        As for `objective`.
    init : {"hinge", "convex"}, default "hinge"
        Bits of the first bound: no instance given up, b = 0 and c = 1, which is the support vector machine of the first
        sample against the second; or b = c = 0, the convex part alone (the paper), which pulls the function down to -1
        on the second sample and nowhere up; the procedure may stop there.
    warm : (ndarray, ndarray), optional
        alpha and nu of the first round of a problem nearby; the result does not depend on it.
    max_iter : int, default 100
        Rounds after the first.
    tol : float, default 1e-9
        For `minimize_bound`, and the gain below which a round is the last.

    Returns
    -------
    rounds : list of Round
        The last one holds the solution. Longer than ``max_iter``: stopped short, unless its bound is tight.
    """
    b, c = np.zeros(len(basis[1])), np.full(len(basis[0]), float(init == "hinge"))
    rounds, before = [], np.inf
    while len(rounds) <= max_iter:
        # eq: eq-dsdd-inner
        alpha, nu, gap = minimize_bound(b, c, basis, lam, weights, warm=warm, tol=tol)
        bound = upper_bound(alpha, b, c, basis, lam, weights)
        now = objective(alpha, basis, lam, weights)
        gain = min(bound, before) - now
        rounds.append(Round(alpha, b, c, nu, gap, bound, now, gain))
        if gain <= tol:  # tight, or only ties flip bits
            break
        warm, before = (alpha, nu), now
        b, c = tighten_bound(alpha, basis)
    return rounds
