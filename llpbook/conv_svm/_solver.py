"""The relaxed problem for some labellings: an interior-point method on alpha and the weights of the labellings."""

import warnings

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_factor, cho_solve
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from ._steps import cut, main_columns, quadratics, relaxed_value

#: Steps of the interior-point method, how far towards the boundary one goes, and by how much the target falls: less
#: after a short step.
MAX_STEPS, TO_BOUNDARY, CENTRING, SHORT, RECENTRING = 80, 0.95, 0.15, 0.5, 0.7
#: How far from the boundary a warm start stands, as a share of its mean and of C, and the weight of a new labelling.
INSIDE, NEW_WEIGHT = 0.02, 0.1


def hessian_solver(X, Y, mu, D, gram):
    """Solves with the sum of mu_t times (K * y_t y_t'), plus D: by factors where they are few (Woodbury)."""
    if gram is not None:
        H = gram * ((Y.T * mu) @ Y)
        H[np.diag_indices_from(H)] += D
        factor = cho_factor(H, overwrite_a=True, check_finite=False)
        return lambda B: cho_solve(factor, B, check_finite=False)
    roots = np.sqrt(mu)[:, None] * Y
    scaled = [sp.diags_array(root) @ X for root in roots]
    F = np.hstack([S.toarray() if sp.issparse(S) else S for S in scaled])
    inner = (F / D[:, None]).T @ F
    inner[np.diag_indices_from(inner)] += 1
    factor = cho_factor(inner, check_finite=False)

    def solve(B):
        DB = (B.T / D).T
        return DB - ((F @ cho_solve(factor, F.T @ DB)).T / D).T

    return solve


def newton_step(X, Y, gram, C, alpha, mu, theta, s, z, u, sigma):
    """The direction to the point of the central path with the products sigma."""
    G = (Y * (X @ (X.T @ (Y * alpha).T)).T).T  # columns: the gradient of each quadratic
    off = alpha @ G / 2 - theta + s
    solve = hessian_solver(X, Y, mu, z / alpha + u / (C - alpha), gram)
    rhs = 1 - G @ mu + sigma / alpha - sigma / (C - alpha)
    both = solve(np.column_stack([rhs, G]))
    T = len(mu)
    A = np.ones((T + 1, T + 1))
    A[:T, :T] = G.T @ both[:, 1:] + np.diag(s / mu)
    A[T, T] = 0
    right = np.append(sigma / mu - s + off + G.T @ both[:, 0], 1 - mu.sum())
    d_mu, d_theta = np.split(np.linalg.solve(A, right), [T])
    d_alpha = both[:, 0] - both[:, 1:] @ d_mu
    d_z = sigma / alpha - z - z / alpha * d_alpha
    d_u = sigma / (C - alpha) - u + u / (C - alpha) * d_alpha
    d_s = d_theta[0] - d_alpha @ G - off
    return d_alpha, d_mu, d_theta[0], d_s, d_z, d_u


def longest(values, steps):
    """How far one may go before a positive value vanishes, at most 1."""
    falling = steps < 0
    reach = -values[falling] / steps[falling]
    return min(1.0, TO_BOUNDARY * reach.min(initial=np.inf))


def first_point(X, Y, C, warm):
    """alpha, mu, theta, s, z, u inside, at about one distance from all bounds."""
    n, T = X.shape[0], len(Y)
    # Along the diagonal of the box, the best point.
    even = n / (2 * quadratics(X, Y, np.ones(n)).max())
    alpha, mu = np.full(n, min(C / 2, even)), np.full(T, 1 / T)
    if warm is not None:
        margin = INSIDE * warm[0].mean()
        alpha = np.clip(warm[0], margin, C - INSIDE * C)
        mu = np.append((1 - NEW_WEIGHT) * warm[1], NEW_WEIGHT)
        mu = np.maximum(mu, 1e-4) / np.maximum(mu, 1e-4).sum()
    q = quadratics(X, Y, alpha)
    theta = q.max() + 0.2 * max(q.max(), alpha.sum())
    sigma = (mu @ (theta - q) + 0.2 * alpha.sum()) / (2 * n + T)
    return alpha, mu, theta, theta - q, sigma / alpha, sigma / (C - alpha)


def moved(point, step, C):
    """The point after the longest step that stays inside, and the length of that."""
    alpha, mu, _, s, z, u = point
    d_alpha, d_mu, _, d_s, d_z, d_u = step
    bounded = (alpha, C - alpha, mu, s, z, u)
    steps = (d_alpha, -d_alpha, d_mu, d_s, d_z, d_u)
    t = min(longest(*pair) for pair in zip(bounded, steps, strict=True))
    return tuple(a + t * d for a, d in zip(point, step, strict=True)), t


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
        alpha, and the weights of all labellings but the last.
    tol : float, default 1e-6
        Gap, relative to the sum of alpha.

    Returns
    -------
    alpha : ndarray, shape (n,)
    mu : ndarray, shape (T,)
    """
    point, t = first_point(X, Y, C, warm), 1.0
    for _ in range(MAX_STEPS):
        alpha, mu, theta, s, z, u = point
        sigma = (alpha @ z + (C - alpha) @ u + mu @ s) / (2 * len(alpha) + len(mu))
        sigma *= CENTRING if t > SHORT else RECENTRING
        point, t = moved(point, newton_step(X, Y, gram, C, *point, sigma), C)
        alpha, mu, theta, s, z, u = point
        gap = alpha @ z + (C - alpha) @ u + mu @ s
        gap = max(gap, np.abs(quadratics(X, Y, alpha) - theta + s).max()) / alpha.sum()
        if gap <= tol and abs(mu.sum() - 1) < 1e-6:
            break
    else:
        warnings.warn(
            f"the relaxed problem stopped at a relative gap of {gap:.1e}, above {tol}",
            ConvergenceWarning,
            stacklevel=2,
        )
    return alpha, mu / mu.sum()


def minimise(X, bags, fewest, most, C, ascent=True, max_cuts=20, tol=1e-3):
    r"""The relaxed problem by cutting planes: solve for the labellings at hand, add one that is violated, repeat.

    :math:`O(n d^2 T^2)` a step with T labellings at hand, or :math:`O(n^3)` where d T exceeds n, which takes an n x n
    matrix.

    Parameters
    ----------
    X : ndarray or sparse array, shape (n_instances, n_features)
    bags, fewest, most
        As for `best_labels`.
    C : float
    ascent : bool, default True
        See `cut`.
    max_cuts : int, default 20
    tol : float, default 1e-3
        Relative fall of the value below which no more labellings are added.

    Returns
    -------
    alpha : ndarray, shape (n_instances,)
    Y : ndarray of -1 and 1, shape (n_labellings, n_instances)
    mu : ndarray, shape (n_labellings,)
        Weights of the labellings, which sum to 1.
    values : list of float
        Of the relaxed problem, one a cut: they do not rise.
    """
    with threadpool_limits(1):
        n, d = X.shape
        columns, rest = main_columns(X), (bags, fewest, most, ascent)
        Y = cut(X, columns, np.full(n, 1 / n), *rest)[None, :]
        gram, warm, values = None, None, []
        while True:
            if gram is None and len(Y) * d > n:
                gram = X @ X.T
                gram = gram.toarray() if sp.issparse(gram) else gram
            alpha, mu = warm = solve_relaxed(X, Y, C, gram, warm)
            values.append(float(relaxed_value(X, Y, alpha)))
            if len(Y) == max_cuts:
                break
            if len(Y) > 1 and values[-2] - values[-1] <= tol * abs(values[-1]):
                break
            new = cut(X, columns, alpha, *rest)
            longest_there = quadratics(X, Y, alpha).max()
            if quadratics(X, new[None], alpha)[0] <= (1 + 1e-6) * longest_there:
                break
            Y = np.vstack([Y, new])
    return alpha, Y, mu, values
