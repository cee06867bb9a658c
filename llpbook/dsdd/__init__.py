r"""DSDD: the sign of the density difference, without a density.

For every function with values in :math:`[-1, 1]`, :math:`\int |p - p'| \ge \int g\, (p - p')`, with equality for
:math:`g = \operatorname{sign}(p - p')`, the labels that are sought. So clip a linear model :math:`g = \Phi\alpha` by
:math:`R(z) = \max(-1, \min(1, z))`, replace integrals by means over the two samples, and minimize

.. math:: J(\alpha) = w' \operatorname{mean}_{j} R(g(x'_j)) - w \operatorname{mean}_{i} R(g(x_i))
          + \tfrac{\lambda}{2} \lVert \alpha \rVert^2 .

:math:`J` is convex plus concave. CCCP bounds the concave part by a plane, minimizes, tightens the bound, and repeats;
each round is a quadratic program. The weights :math:`w, w'` are 1 in the paper.

Chapter: ``book/dsdd``. Source: duplessis2013 (section 3, appendix A), whose equation numbers are given below.
"""

from numbers import Integral, Real

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from .._input import ArrayLike, RandomState
from ..base import (
    Interval,
    StrOptions,
    candidates,
    choose_centers,
    fold_numbers,
    in_blocks,
    median_distance,
    require_memory,
    thin,
    tune,
    warn,
)
from ..density_difference import TwoBagClassifier, gaussian_basis
from ._cccp import (
    Round,
    cccp,
    clip,
    convex_part,
    hinge,
    minimize_bound,
    objective,
    sign_gap,
    tighten_bound,
    upper_bound,
)

__all__ = ["DSDD"]

#: Widths that ``sigma="cv"`` tries, in units of the median distance between instances.
SIGMAS = (1.5, 1.0, 0.75, 0.5, 0.25)
#: Penalties that ``alpha="cv"`` tries, in units of the mean of :math:`\lVert \varphi(x) \rVert^2`.
LAMS = (1e-1, 1e-2, 1e-3, 1e-4)
#: Peak memory of a fit, in matrices of instances by centers.
COPIES = 4.0


def cv_gaps(basis, lams, folds, weights=(1.0, 1.0), step=lambda: None, **cccp_options):
    r"""Held-out value of the objective without its penalty, for each penalty.

    Each instance is scored by the fit without its fold: equation :eq:`eq-dsdd-cv`. No instance label is used. The basis
    functions stay as they are, since centers do not tell the two samples apart.

    Parameters
    ----------
    basis : (ndarray, ndarray)
        Shapes (n, m) and (n', m).
    lams : array-like, shape (n_lams,)
        Each is solved from the one before, so order them by size. Only the solution of the first round is handed on,
        a convex problem: the result does not depend on the order.
    folds : (ndarray of int, ndarray of int)
        Fold of each instance of the two samples, see `llpbook.base.fold_numbers`.
    weights : tuple of float, default (1.0, 1.0)
    step : callable, optional
        Called after each fold.
    **cccp_options
        Keyword arguments of `cccp`.

    Returns
    -------
    ndarray, shape (n_lams,)
        `sign_gap` of held-out values: the smaller, the better.
    """
    p, q = held_out = [np.empty((len(lams), len(part))) for part in basis]
    for k in range(np.max(np.concatenate(folds)) + 1):
        out, warm = [fold == k for fold in folds], None
        train = [part[~left] for part, left in zip(basis, out, strict=True)]
        for row, lam in enumerate(lams):
            rounds = cccp(train, lam, weights, warm=warm, **cccp_options)
            warm, alpha = (rounds[0].alpha, rounds[0].nu), rounds[-1].alpha
            for g, part, left in zip(held_out, basis, out, strict=True):
                g[row, left] = part[left] @ alpha
        step()
    # eq: eq-dsdd-cv
    return np.array([sign_gap(p[i], q[i], weights) for i in range(len(lams))])


def penalty_unit(basis):
    r"""Unit of the penalty: the mean of the squared norm of the basis functions.

    :math:`\operatorname{mean} \lVert \varphi(x) \rVert^2`. In this unit the effect of a
    penalty on g depends neither on the number of basis functions nor much on their width.

    Parameters
    ----------
    basis : (ndarray, ndarray)
        Shapes (n, m) and (n', m).

    Returns
    -------
    float
    """
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
    alpha : float, "cv" or array-like, default "cv"
        Weight of the penalty, the :math:`\lambda` of equation 7. "cv" chooses among `LAMS` times the mean of
        :math:`\lVert \varphi(x) \rVert^2`; or give your own to choose from.
    n_centers : int, default 300
        Basis functions: one at each instance (the paper), or at so many at random if there are more.
    init : {"hinge", "convex"}, default "hinge"
        First bound; see `cccp`. "convex" is the paper's.
    n_folds : int, default 5
        Folds of the cross-validation, at most as many as the smaller sample has instances.
    n_tuning : int, default 1000
        Instances of each sample that the cross-validation uses; of more, always the same lot. The last fit uses all.
    class_prior : "balanced", "match" or float, default "balanced"
        Share of the positive class among the instances to predict: a half (the paper), that of the training data, or
        a number. The last two need proportions.
    max_iter : int, default 100
        Rounds of CCCP after the first. 0 for the first alone, without a warning: with ``init="hinge"`` the support
        vector machine of one sample against the other.
    tol : float, default 1e-9
        See `cccp`.
    random_state : int, RandomState or None, default None
        For the folds, where there is a choice, and the centers, where there are more than ``n_centers`` instances.
    verbose : int, default 0
        1 prints the progress of the cross-validation, at most a line a second.

    Attributes
    ----------
    classes_ : ndarray, shape (2,)
    pooled_proportions_ : (float, float) or None
    centers_ : ndarray, shape (m, n_features)
    sigma_, alpha_ : float
        As used.
    coef_ : ndarray, shape (m,)
        The paper's :math:`\alpha`.
    history_ : list of Round
        The course of CCCP: bits, bound and objective of each round.
    cv_results_ : DataFrame
        Columns ``sigma``, ``alpha``, ``score`` (minus `cv_gaps`, which estimates a lower bound of the :math:`L_1`
        distance; NaN where there was nothing to choose).
    n_iter_ : int
        Rounds.
    gap_ : float
        Relative error of the minimum of the last bound; where ``max_iter`` ended the rounds, at least the relative fall
        of the objective in the last one.

    Raises
    ------
    NotIdentifiableError
        If all proportions are equal.
    ValueError
        For malformed input; see `llpbook.base`.

    Notes
    -----
    A round costs :math:`O((n + n') m + s^2 m)` per Newton step, for s instances at a kink; it has some tens of steps.
    Tuning runs 20 pairs in five folds, on at most ``n_tuning`` instances of each sample; on 20,000 + 20,000 a tuned fit
    takes some ten seconds. A local minimum is found, not the global one.

    Repeating every instance changes the fit: with a copy in another fold, cross-validation prefers narrow bumps; and
    where all instances are centers, each bump is there twice, which halves the penalty. Swapping the classes: see
    `llpbook.density_difference.TwoBagClassifier`.

    Examples
    --------
    >>> from llpbook.density_difference import labeling_error_rate, toy_problem
    >>> X, y, bags = toy_problem(1, n=40, random_state=0)
    >>> model = DSDD(random_state=0).fit(X, bags)
    >>> labeling_error_rate(model.predict(X), y) < 0.2
    True
    """

    cost = "a second for 80 instances, ten for 2,000, twenty for 40,000"
    _parameter_constraints = {
        "sigma": [StrOptions({"cv", "median"}), Real, "array-like"],
        "alpha": [StrOptions({"cv"}), Real, "array-like"],
        "init": [StrOptions({"hinge", "convex"})],
        "n_tuning": [Interval(Integral, 2, None, closed="left")],
        "max_iter": [Interval(Integral, 0, None, closed="left")],
    }

    def __init__(
        self, sigma: float | str | ArrayLike = "cv",
        alpha: float | str | ArrayLike = "cv", *, n_centers: int = 300,
        init: str = "hinge", n_folds: int = 5, n_tuning: int = 1000,
        class_prior: float | str = "balanced", max_iter: int = 100, tol: float = 1e-9,
        random_state: RandomState = None, verbose: int = 0,
    ):  # fmt: skip
        self.sigma, self.alpha, self.init = sigma, alpha, init
        self.n_centers, self.n_folds, self.n_tuning = n_centers, n_folds, n_tuning
        self.max_iter, self.tol = max_iter, tol
        self.class_prior, self.random_state = class_prior, random_state
        self.verbose = verbose

    def _fit_two(self, samples, weights):
        rng, X = check_random_state(self.random_state), np.vstack(samples)
        self.centers_ = choose_centers(X, self.n_centers, rng)
        n, m = len(X), len(self.centers_)
        name = f"DSDD with {m} centers on {n} instances"
        require_memory(name, 8.0 * COPIES * n * m, "take a smaller n_centers")
        options = {"init": self.init, "max_iter": self.max_iter, "tol": self.tol}
        seed = rng.randint(2**31 - 1)
        self._tune(samples, weights, median_distance(X), seed, options)
        basis = [gaussian_basis(part, self.centers_, self.sigma_) for part in samples]
        self.history_ = cccp(basis, self.alpha_, weights, **options)
        self.coef_, self.n_iter_ = self.history_[-1].alpha, len(self.history_)
        self._judge()

    def _judge(self):
        """Store the gap; warn where the last round is no local minimum."""
        last = self.history_[-1]
        self.gap_ = last.gap
        if self.n_iter_ > self.max_iter > 0 and last.gain > self.tol:
            now, before = last.objective, self.history_[-2].objective
            self.gap_ = max(self.gap_, (before - now) / abs(now))
            warn(
                f"DSDD stopped after {self.n_iter_} rounds (max_iter={self.max_iter}), "
                "while its objective was still falling; raise max_iter, or alpha",
                ConvergenceWarning,
            )

    def _tune(self, samples, weights, unit, seed, options):
        """Choose the width and the penalty by cross-validation, if there is a choice."""
        parts, rows = [thin(X, self.n_tuning) for X in samples], []
        n_folds = min(self.n_folds, len(parts[0]), len(parts[1]))
        folds = [fold_numbers(len(part), n_folds, seed) for part in parts]
        sigmas = candidates("sigma", self.sigma, SIGMAS, unit)
        progress = self._progress(len(sigmas) * n_folds, "fold")
        for sigma in sigmas:
            basis = [gaussian_basis(part, self.centers_, sigma) for part in parts]
            lams = candidates("alpha", self.alpha, LAMS, penalty_unit(basis))
            scores = np.full(len(lams), np.nan)
            if len(sigmas) * len(lams) > 1:
                scores = -cv_gaps(basis, lams, folds, weights, progress.step, **options)
            rows += [(sigma, *pair) for pair in zip(lams, scores, strict=True)]
        best, self.cv_results_ = tune(rows, sigma=float, alpha=float)
        self.sigma_, self.alpha_ = best["sigma"], best["alpha"]

    def _scores(self, X):
        r"""Values of the function whose sign is the label; beyond -1 and 1 the size has no meaning.

        :math:`g(x) = \sum_\ell \alpha_\ell \varphi_\ell(x)` (section 3.2).
        """
        centers, sigma, coef = self.centers_, self.sigma_, self.coef_
        return in_blocks(
            X, len(centers), lambda part: gaussian_basis(part, centers, sigma) @ coef
        )
