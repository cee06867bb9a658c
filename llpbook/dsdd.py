r"""DSDD: the sign of the density difference, without a density.

For every function with values in :math:`[-1, 1]`, :math:`\int |p - p'| \ge \int g\, (p - p')`, with equality for
:math:`g = \operatorname{sign}(p - p')`, the labels that are sought. So clip a linear model :math:`g = \Phi\alpha` by
:math:`R(z) = \max(-1, \min(1, z))`, replace integrals by means over the two samples, and minimise

.. math:: J(\alpha) = w' \operatorname{mean}_{j} R(g(x'_j)) - w \operatorname{mean}_{i} R(g(x_i))
          + \tfrac{\lambda}{2} \lVert \alpha \rVert^2 .

:math:`J` is convex plus concave. CCCP bounds the concave part by a plane, minimises, tightens the bound, and repeats;
each round is a quadratic programme. The weights :math:`w, w'` are 1 in the paper.

Chapter: ``book/dsdd``. Source: duplessis2013 (section 3, appendix A), whose equation numbers are given below.
"""

import warnings
from numbers import Integral, Real
from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array, check_random_state

from .base import (
    Interval,
    StrOptions,
    candidates,
    choose_centers,
    fold_numbers,
    median_distance,
    tune,
)
from .density_difference import TwoBagClassifier, gaussian_basis

#: Widths that ``sigma="cv"`` tries, in units of the median distance between instances.
SIGMAS = (1.5, 1.0, 0.75, 0.5, 0.25)
#: Penalties that ``lam="cv"`` tries, in units of the mean of :math:`\lVert \varphi(x) \rVert^2`.
LAMS = (1e-1, 1e-2, 1e-3, 1e-4)


def clip(z):
    r"""The ramp: z cut to the interval from -1 to 1.

    :math:`R(z) = \max(-1, \min(1, z))`, equation :eq:`eq-dsdd-clip` (section 3.2).

    Parameters
    ----------
    z : float or ndarray

    Returns
    -------
    float or ndarray
    """
    # eq: eq-dsdd-clip
    return np.clip(z, -1.0, 1.0)


def hinge(z, epsilon):
    r"""The convex piece of the ramp: 0 up to a kink, then slope 1.

    :math:`C_\epsilon(z) = \max(0, z - \epsilon)`, equation :eq:`eq-dsdd-hinge`; :math:`R = C_{-1} - C_1 - 1`, equation
    :eq:`eq-dsdd-split` (appendix A).

    Parameters
    ----------
    z : float or ndarray
    epsilon : float or ndarray

    Returns
    -------
    float or ndarray
    """
    # eq: eq-dsdd-hinge, eq-dsdd-split
    return np.maximum(0.0, z - epsilon)


def sign_gap(g_p, g_q, weights=(1.0, 1.0)):
    r"""Mean of the clipped function over the second sample, less that over the first.

    :math:`w' \operatorname{mean}_j R(g'_j) - w \operatorname{mean}_i R(g_i)`, equation :eq:`eq-dsdd-empirical` (6). On
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
        The smaller, the better the signs of g tell the samples apart.
    """
    gap = weights[1] * clip(g_q).mean() - weights[0] * clip(g_p).mean()
    # eq: eq-dsdd-empirical
    return float(gap)


def objective(alpha, basis, lam, weights=(1.0, 1.0)):
    r"""What DSDD minimises; neither convex nor concave.

    :math:`J(\alpha)`, equation :eq:`eq-dsdd-objective` (7).

    Parameters
    ----------
    alpha : ndarray, shape (b,)
    basis : (ndarray, ndarray)
        Basis functions at the instances of the first and the second sample, shapes (n, b) and (n', b).
    lam : float
        Above 0.
    weights : tuple of float, default (1.0, 1.0)

    Returns
    -------
    float
    """
    gap = sign_gap(*(Phi @ alpha for Phi in basis), weights)
    # eq: eq-dsdd-objective
    return gap + lam / 2 * alpha @ alpha


def convex_part(alpha, basis, lam, weights=(1.0, 1.0)):
    r"""The convex part of the objective.

    :math:`w' \operatorname{mean}_j C_{-1}(g'_j) + w \operatorname{mean}_i C_1(g_i)
    + \frac{\lambda}{2} \lVert \alpha \rVert^2`, equation :eq:`eq-dsdd-convex` (appendix A).

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
    # eq: eq-dsdd-convex
    return on_p + on_q + lam / 2 * alpha @ alpha


def concave_part(alpha, basis, weights=(1.0, 1.0)):
    r"""The concave part of the objective.

    :math:`-w' \operatorname{mean}_j C_1(g'_j) - w \operatorname{mean}_i C_{-1}(g_i) + w - w'`, equation
    :eq:`eq-dsdd-concave` (appendix A, where equal weights cancel the constant).

    Parameters
    ----------
    alpha, basis, weights
        As for `objective`.

    Returns
    -------
    float
    """
    on_p = weights[0] * (1 - hinge(basis[0] @ alpha, -1).mean())
    on_q = weights[1] * (1 + hinge(basis[1] @ alpha, 1).mean())
    # eq: eq-dsdd-concave
    return on_p - on_q


def concave_bound(alpha, b, c, basis, weights=(1.0, 1.0)):
    r"""A plane that lies above the concave part, whatever the bits b and c in [0, 1].

    :math:`w' \operatorname{mean}_j b_j (1 - g'_j) + w \operatorname{mean}_i c_i (-1 - g_i) + w - w'`, equation
    :eq:`eq-dsdd-concave-bound` (appendix A.1): :math:`C_\epsilon(z) \ge t (z - \epsilon)` for t in [0, 1].

    Parameters
    ----------
    alpha : ndarray, shape (b,)
    b, c : ndarray, shape (n',) and (n,)
        b belongs to the second sample, c to the first, as in the paper.
    basis, weights
        As for `objective`.

    Returns
    -------
    float
    """
    on_p = weights[0] * (1 + np.mean(c * (-1 - basis[0] @ alpha)))
    on_q = weights[1] * (1 - np.mean(b * (1 - basis[1] @ alpha)))
    # eq: eq-dsdd-concave-bound
    return on_p - on_q


def upper_bound(alpha, b, c, basis, lam, weights=(1.0, 1.0)):
    r"""The convex bound of the objective that one round of CCCP minimises.

    Convex part plus plane, equation :eq:`eq-dsdd-bound` (9, with the slack variables at their best).

    Parameters
    ----------
    alpha, b, c, basis, weights
        As for `concave_bound`.
    lam : float

    Returns
    -------
    float
        At least `objective`; equal to it where b and c come from `tighten_bound`.
    """
    plane = concave_bound(alpha, b, c, basis, weights)
    # eq: eq-dsdd-bound
    return convex_part(alpha, basis, lam, weights) + plane


def tighten_bound(alpha, basis):
    r"""The plane that touches the concave part at alpha.

    :math:`b_j = 1[g'_j \ge 1]`, :math:`c_i = 1[g_i \ge -1]`, equation :eq:`eq-dsdd-tighten` (8).

    Parameters
    ----------
    alpha : ndarray, shape (b,)
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


def newton_direction(gradient, Phi_free, stiffness, lam):
    r"""Newton's step for the smoothed bound.

    Solves :math:`(\lambda I + \Phi_F^\top T \Phi_F)\, d = -\nabla`, equation :eq:`eq-dsdd-newton`, in the smaller of
    the two dimensions (Woodbury). :math:`O(|F| b \min(|F|, b))`.

    Parameters
    ----------
    gradient : ndarray, shape (b,)
    Phi_free : ndarray, shape (n_free, b)
        Rows of the instances within the rounded kink.
    stiffness : ndarray, shape (n_free,)
        Curvature of the rounded kink, the diagonal of T.
    lam : float

    Returns
    -------
    ndarray, shape (b,)
    """
    n_free, b = Phi_free.shape
    if n_free < b:
        inner = Phi_free @ Phi_free.T + np.diag(lam / stiffness)
        correction = np.linalg.solve(inner, Phi_free @ gradient) @ Phi_free
        # eq: eq-dsdd-newton
        return (correction - gradient) / lam
    half = Phi_free * np.sqrt(stiffness)[:, None]
    return -np.linalg.solve(half.T @ half + lam * np.eye(b), gradient)


def step_length(slope, descent):
    """Where the derivative along a direction of descent has nearly vanished, at most 1.

    Regula falsi, every third step a bisection.

    Parameters
    ----------
    slope : callable
        Derivative of a convex function at a step in [0, 1].
    descent : float
        Above 0: minus the slope at 0.

    Returns
    -------
    step : float
    left : float
        Slope there, relative to ``descent``.
    """
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


def minimise_smoothed(alpha, nu, Phi, epsilon, cap, linear, lam, width, tol):
    r"""The bound with each kink rounded about the multiplier that is known, by Newton's method.

    The hinge :math:`v \max(0, u)` becomes :math:`\max_{0 \le \nu \le v} \nu u - \frac{s}{2 v} (\nu - \nu^{old})^2`,
    whose maximiser is :math:`\operatorname{clip}(\nu^{old} + \frac{v}{s} u, 0, v)`, equation :eq:`eq-dsdd-proximal`.
    The result is smooth, and where no instance changes sides of a kink one Newton step reaches its minimum.

    Parameters
    ----------
    alpha : ndarray, shape (b,)
        Where to start.
    nu : ndarray, shape (n + n',)
        Multipliers.
    Phi : ndarray, shape (n + n', b)
        Both samples, the first on top.
    epsilon, cap : ndarray, shape (n + n',)
        Kink and slope v of each hinge.
    linear : ndarray, shape (b,)
        The bound is :math:`\frac{\lambda}{2} \lVert \alpha \rVert^2 - q^\top \alpha + \sum_k v_k \max(0, g_k -
        \epsilon_k)`; this is q.
    lam, width, tol : float
        ``width`` is s.

    Returns
    -------
    alpha : ndarray, shape (b,)
    nu : ndarray, shape (n + n',)
        New multipliers, in [0, v].
    gap : float
        Bound at alpha less the dual value of the multipliers, relative to the size of the latter.
    """
    stiffness, exact, g, nu_old = cap / width, False, Phi @ alpha, nu
    for _ in range(60):
        raw = nu_old + stiffness * (g - epsilon)
        # eq: eq-dsdd-proximal
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


def minimise_bound(b, c, basis, lam, weights=(1.0, 1.0), warm=None, tol=1e-9):
    r"""The minimum of the bound over alpha: the quadratic programme of one round.

    Equation :eq:`eq-dsdd-inner` (9). Its dual is a box, :math:`\max_{0 \le \nu \le v} -\epsilon^\top \nu -
    \frac{1}{2 \lambda} \lVert q - \Phi^\top \nu \rVert^2` with :math:`\alpha = (q - \Phi^\top \nu) / \lambda`, equation
    :eq:`eq-dsdd-dual`. Multipliers by the proximal point method: `minimise_smoothed` with kinks ever less rounded.

    Parameters
    ----------
    b, c, basis, lam, weights
        As for `upper_bound`.
    warm : (ndarray, ndarray), optional
        alpha and nu to start from: the solution of a problem nearby.
    tol : float, default 1e-9
        Duality gap at which to stop, relative to the size of the dual's terms.

    Returns
    -------
    alpha : ndarray, shape (b,)
    nu : ndarray, shape (n + n',)
        Multipliers of the constraints on the slack variables, the first sample before the second.
    gap : float
        Duality gap reached: what alpha may be worse than the minimum, relative.
    """
    Phi, sizes = np.vstack(basis), [len(part) for part in basis]
    epsilon = np.repeat([1.0, -1.0], sizes)
    cap = np.repeat(np.divide(weights, sizes), sizes)
    linear = (cap * np.concatenate([c, b])) @ Phi
    width, nu = (1.0, cap / 2) if warm is None else (0.03, warm[1])
    # eq: eq-dsdd-dual
    alpha = (linear - nu @ Phi) / lam if warm is None else warm[0]
    for _ in range(60):
        alpha, nu, gap = minimise_smoothed(
            alpha, nu, Phi, epsilon, cap, linear, lam, width, tol
        )
        if gap <= tol:
            break
        width = max(width / 5, 1e-6)
    # eq: eq-dsdd-inner
    return alpha, nu, gap


class Round(NamedTuple):
    """One round of `cccp`.

    Attributes
    ----------
    alpha : ndarray, shape (b,)
        Minimum of the bound.
    b, c : ndarray, shape (n',) and (n,)
        Bits of the bound that was minimised.
    nu : ndarray, shape (n + n',)
        Multipliers.
    gap : float
        How well the minimum was found; see `minimise_bound`.
    bound, objective : float
        Both at alpha. The difference is what tightening gains.
    """

    alpha: np.ndarray
    b: np.ndarray
    c: np.ndarray
    nu: np.ndarray
    gap: float
    bound: float
    objective: float


def cccp(
    basis, lam, weights=(1.0, 1.0), start="hinge", warm=None, max_iter=100, tol=1e-9
):
    r"""Tighten the bound and minimise it, in turn, until the bound is tight where it is least.

    The algorithm of section 3.2. The objective never rises, and since there are finitely many bits it stops.

    Parameters
    ----------
    basis, lam, weights
        As for `objective`.
    start : {"hinge", "convex"}, default "hinge"
        Bits of the first bound: no instance given up, b = 0 and c = 1, which is the support vector machine of the first
        sample against the second; or b = c = 0, the convex part alone (the paper), which pulls the function to -1 on
        the second sample and nowhere up, and may stop there.
    warm : (ndarray, ndarray), optional
        alpha and nu of the first round of a problem nearby; the result does not depend on it.
    max_iter : int, default 100
        Rounds after the first.
    tol : float, default 1e-9
        For `minimise_bound`, and the gain below which a round is the last.

    Returns
    -------
    rounds : list of Round
        The last one holds the solution. Stopped short if longer than ``max_iter``.
    """
    data = (basis, lam, weights)
    b, c = np.zeros(len(basis[1])), np.full(len(basis[0]), float(start == "hinge"))
    rounds, before = [], np.inf
    while len(rounds) <= max_iter:
        alpha, nu, gap = minimise_bound(b, c, *data, warm=warm, tol=tol)
        bound, now = upper_bound(alpha, b, c, *data), objective(alpha, *data)
        rounds.append(Round(alpha, b, c, nu, gap, bound, now))
        if min(bound, before) - now <= tol:  # tight, or flipping bits of ties
            break
        warm, before = (alpha, nu), now
        b, c = tighten_bound(alpha, basis)
    return rounds


def cv_gaps(basis, lams, folds, weights=(1.0, 1.0), **options):
    r"""Held-out value of the objective without its penalty, for each penalty.

    Each instance is scored by the fit without its fold: equation :eq:`eq-dsdd-cv`. No instance label is used. The basis
    functions stay as they are, since centres do not tell the two samples apart.

    Parameters
    ----------
    basis : (ndarray, ndarray)
        Shapes (n, b) and (n', b).
    lams : array-like, shape (m,)
        Each is solved from the one before, so order them by size. Only the solution of the first round is handed on,
        a convex problem: the result does not depend on the order.
    folds : (ndarray of int, ndarray of int)
        Fold of each instance of the two samples, see `llpbook.base.fold_numbers`.
    weights : tuple of float, default (1.0, 1.0)
    **options
        For `cccp`.

    Returns
    -------
    ndarray, shape (m,)
        `sign_gap` of held-out values: the smaller, the better.
    """
    held_out = [np.empty((len(lams), len(part))) for part in basis]
    for k in range(folds[0].max() + 1):
        out, warm = [fold == k for fold in folds], None
        train = [part[~left] for part, left in zip(basis, out, strict=True)]
        for row, lam in enumerate(lams):
            rounds = cccp(train, lam, weights, warm=warm, **options)
            warm, alpha = (rounds[0].alpha, rounds[0].nu), rounds[-1].alpha
            for g, part, left in zip(held_out, basis, out, strict=True):
                g[row, left] = part[left] @ alpha
    # eq: eq-dsdd-cv
    return np.array([sign_gap(p, q, weights) for p, q in zip(*held_out, strict=True)])


def penalty_unit(basis):
    r"""The scale of the penalty: the mean of the squared norm of the basis functions.

    :math:`\operatorname{mean} \lVert \varphi(x) \rVert^2`, equation :eq:`eq-dsdd-unit`. In this unit the effect of a
    penalty on g depends neither on the number of basis functions nor much on their width.

    Parameters
    ----------
    basis : (ndarray, ndarray)
        Shapes (n, b) and (n', b).

    Returns
    -------
    float
    """
    # eq: eq-dsdd-unit
    return float(np.mean(np.sum(np.vstack(basis) ** 2, axis=1)))


class DSDD(TwoBagClassifier):
    r"""Direct estimation of the sign of the density difference (duplessis2013, section 3).

    Two bags need no proportions: ``fit(X, bags)``; class 1 is where the first bag is denser, the true labeling up to a
    swap. With proportions class 1 is the positive class. Many bags are pooled into those above and those below the
    class prior (see `TwoBagClassifier`).

    Parameters
    ----------
    sigma : float, "cv", "median" or array-like, default "cv"
        Width of the Gaussian basis functions, in the units of X. "cv" chooses among `SIGMAS` times the median distance
        of instances, "median" takes that distance; or give your own to choose from.
    lam : float, "cv" or array-like, default "cv"
        Weight of the penalty, the :math:`\lambda` of equation 7. "cv" chooses among `LAMS` times the mean of
        :math:`\lVert \varphi(x) \rVert^2`; or give your own to choose from.
    n_centers : int, default 300
        Basis functions: one at each instance (the paper), or at so many at random if there are more.
    start : {"hinge", "convex"}, default "hinge"
        First bound; see `cccp`. "convex" is the paper's.
    n_folds : int, default 5
        Folds of the cross-validation, at most as many as the smaller sample has instances.
    class_prior : "balanced", "match" or float, default "balanced"
        Share of the positive class among the instances to predict: a half (the paper), that of the training data, or
        a number. The last two need proportions.
    max_iter : int, default 100
        Rounds of CCCP after the first.
    tol : float, default 1e-9
        See `cccp`.
    random_state : int, RandomState or None, default None
        For folds and, beyond ``n_centers`` instances, centres.

    Attributes
    ----------
    classes_ : ndarray, shape (2,)
    pooled_proportions_ : (float, float) or None
    centers_ : ndarray, shape (b, n_features)
    sigma_, lam_ : float
        As used.
    coef_ : ndarray, shape (b,)
        The paper's :math:`\alpha`.
    rounds_ : list of Round
        The course of CCCP: bits, bound and objective of each round.
    cv_results_ : DataFrame
        Columns ``sigma``, ``lam``, ``score`` (minus `cv_gaps`, which estimates a lower bound of the :math:`L_1`
        distance; NaN where there was nothing to choose).
    n_iter_ : int
        Rounds.

    Raises
    ------
    NotIdentifiableError
        If all proportions are equal.
    ValueError
        For malformed input; see `llpbook.base`.

    Notes
    -----
    A round costs :math:`O((n + n') b + s^2 b)` a Newton step, for s instances at a kink; there are some tens of steps.
    A local minimum is found, not the global one.

    Examples
    --------
    >>> from llpbook.density_difference import labeling_error_rate, toy_problem
    >>> X, y, bags = toy_problem(1, n=40, random_state=0)
    >>> model = DSDD(random_state=0).fit(X, bags)
    >>> labeling_error_rate(model.predict(X), y) < 0.2
    True
    """

    _parameter_constraints = {
        **TwoBagClassifier._parameter_constraints,
        "sigma": [StrOptions({"cv", "median"}), Real, "array-like"],
        "lam": [StrOptions({"cv"}), Real, "array-like"],
        "n_centers": [Interval(Integral, 1, None, closed="left")],
        "start": [StrOptions({"hinge", "convex"})],
        "n_folds": [Interval(Integral, 2, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "random_state": ["random_state"],
    }

    def __init__(
        self, sigma="cv", lam="cv", n_centers=300, start="hinge", n_folds=5,
        class_prior="balanced", max_iter=100, tol=1e-9, random_state=None,
    ):  # fmt: skip
        self.sigma, self.lam, self.start = sigma, lam, start
        self.n_centers, self.n_folds = n_centers, n_folds
        self.max_iter, self.tol = max_iter, tol
        self.class_prior, self.random_state = class_prior, random_state

    def _fit_two(self, samples, weights):
        rng, X = check_random_state(self.random_state), np.vstack(samples)
        self.centers_ = choose_centers(X, self.n_centers, rng)
        options = {"start": self.start, "max_iter": self.max_iter, "tol": self.tol}
        seed = rng.randint(2**31 - 1)
        self._tune(samples, weights, median_distance(X), seed, options)
        basis = [gaussian_basis(part, self.centers_, self.sigma_) for part in samples]
        self.rounds_ = cccp(basis, self.lam_, weights, **options)
        self.coef_, self.n_iter_ = self.rounds_[-1].alpha, len(self.rounds_)
        gap = self.rounds_[-1].gap
        if self.n_iter_ > self.max_iter or gap > max(self.tol, 1e-6):
            warnings.warn(
                f"DSDD stopped after {self.n_iter_} rounds of max_iter={self.max_iter} with a duality gap of {gap:.1e} "
                f"for tol={self.tol}; raise max_iter, or lam, or tol",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _tune(self, samples, weights, unit, seed, options):
        """The width and the penalty, by cross-validation where there is a choice."""
        n_folds, rows = min(self.n_folds, *map(len, samples)), []
        folds = [fold_numbers(len(part), n_folds, seed) for part in samples]
        sigmas = candidates("sigma", self.sigma, SIGMAS, unit)
        for sigma in sigmas:
            basis = [gaussian_basis(part, self.centers_, sigma) for part in samples]
            lams = candidates("lam", self.lam, LAMS, penalty_unit(basis))
            scores = np.full(len(lams), np.nan)
            if len(sigmas) * len(lams) > 1:
                scores = -cv_gaps(basis, lams, folds, weights, **options)
            rows += [(sigma, *pair) for pair in zip(lams, scores, strict=True)]
        best, self.cv_results_ = tune(rows, sigma=float, lam=float)
        self.sigma_, self.lam_ = best["sigma"], best["lam"]

    def _scores(self, X):
        r"""The function whose sign is the label; its size means nothing beyond -1 and 1.

        :math:`g(x) = \sum_\ell \alpha_\ell \varphi_\ell(x)`, equation :eq:`eq-dsdd-model`.
        """
        # eq: eq-dsdd-model
        return gaussian_basis(X, self.centers_, self.sigma_) @ self.coef_


def dsdd(X_p, X_q, **params):
    """Label two unlabeled samples, as the paper states the task.

    Parameters
    ----------
    X_p, X_q : array-like, shape (n, n_features) and (n', n_features)
        Samples of the same two classes, mixed in different shares.
    **params
        Of `DSDD`: ``sigma``, ``lam``, ``random_state`` and the others.

    Returns
    -------
    labels_p, labels_q : ndarray of int, shape (n,) and (n',)
        1 where the first sample is denser, else -1: the classes, up to a swap.

    Raises
    ------
    ValueError
        If a sample is malformed, or they differ in their features.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X_p = np.vstack([rng.normal(2, 1, (32, 2)), rng.normal(-2, 1, (8, 2))])
    >>> X_q = np.vstack([rng.normal(2, 1, (8, 2)), rng.normal(-2, 1, (32, 2))])
    >>> labels_p, labels_q = dsdd(X_p, X_q, random_state=0)
    >>> int((labels_p == 1).sum()), int((labels_q == 1).sum())
    (32, 8)
    """
    samples = []
    for name, X in (("X_p", X_p), ("X_q", X_q)):
        try:
            samples.append(check_array(X, dtype=np.float64, ensure_min_samples=2))
        except ValueError as error:
            raise ValueError(f"{name} is not valid input for dsdd: {error}") from error
    features = [X.shape[1] for X in samples]
    if features[0] != features[1]:
        raise ValueError(
            f"X_p and X_q must have the same features, got {features[0]} and {features[1]}"
        )
    X, bags = np.vstack(samples), np.repeat([0, 1], [len(X) for X in samples])
    labels = np.where(DSDD(**params).fit(X, bags).predict(X) == 1, 1, -1)
    return labels[bags == 0], labels[bags == 1]
