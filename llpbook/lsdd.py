r"""LSDD: least-squares estimation of the difference of two densities, and its sign.

Fit a sum of Gaussian bumps :math:`g = \sum_\ell \theta_\ell \varphi_\ell` to the difference :math:`f = p - p'` itself:
:math:`\frac12 \int (g - f)^2` is, up to a constant, :math:`\frac12 \theta^\top H \theta - h^\top \theta` with
:math:`H = \int \varphi \varphi^\top` known exactly and :math:`h = \int \varphi f` a difference of two means. With a
penalty,

.. math:: \hat\theta = (H + \lambda I)^{-1} \hat h .

**Units.** :math:`H = v\, G` with the volume :math:`v = (\pi \sigma^2)^{d/2}` and
:math:`G_{\ell m} = \exp(-\lVert z_\ell - z_m \rVert^2 / 4 \sigma^2)`. In dimension 20 the volume runs over 26 orders of
magnitude between two common widths, so that one :math:`\lambda` is no penalty for one width and all there is for the
other. Here :math:`\lambda = v \mu` with :math:`\mu` (``lam``) relative to the diagonal of :math:`H`: then
:math:`\hat\theta = \vartheta / v` with :math:`\vartheta = (G + \mu I)^{-1} \hat h`. A positive factor does not change a
sign, so :math:`\vartheta` is what is stored and used to classify. But :math:`v` depends on the width, so for the choice
of a width it has to come back: the criterion on held-out data,

.. math:: \tfrac12 \hat\theta^\top H \hat\theta - \tilde h^\top \hat\theta
          = v^{-1} \bigl[ \tfrac12 \vartheta^\top G \vartheta - \tilde h^\top \vartheta \bigr],

estimates :math:`\frac12 \int (g - f)^2 - \frac12 \int f^2`, and no width changes the second term. The bracket alone
counts in another unit of volume for each width, and prefers wide bumps. (With :math:`X` in other units of length all
criteria are multiplied by one number, so the choice is the same.)

Chapter: ``book/lsdd``. Source: duplessis2013 (section 2.4 and appendix B).
"""

from itertools import product
from numbers import Integral, Real

import numpy as np
from scipy.linalg import eigh
from sklearn.utils import check_random_state, gen_batches

from .base import (
    Interval,
    StrOptions,
    candidates,
    choose_centers,
    fold_numbers,
    median_distance,
    tune,
)
from .density_difference import TwoBagClassifier, gaussian_basis, scores_in_one_unit

#: Widths of the cross-validation, in units of the median distance; each is :math:`1 / \sqrt 2` of the one before.
SIGMAS = 2.0 ** np.arange(1, -3.5, -0.5)
#: Penalties of the cross-validation, in units of the diagonal of H.
LAMS = np.logspace(1, -3, 9)


def basis_integrals(centers, sigma):
    r"""Integrals of products of two Gaussian bumps, with 1 on the diagonal.

    :math:`G_{\ell m} = \exp(-\lVert z_\ell - z_m \rVert^2 / 4 \sigma^2)`, equation :eq:`eq-lsdd-gram`. The integrals
    themselves are :math:`H = v\, G`, see `log_volume`.

    Parameters
    ----------
    centers : ndarray, shape (b, n_features)
    sigma : float

    Returns
    -------
    ndarray, shape (b, b)
    """
    # eq: eq-lsdd-gram
    return gaussian_basis(centers, centers, np.sqrt(2) * sigma)


def log_volume(sigma, n_features):
    r"""Logarithm of the integral of one squared bump.

    :math:`\log v = \frac d2 \log(\pi \sigma^2)`, equation :eq:`eq-lsdd-volume`.

    Parameters
    ----------
    sigma : float or ndarray
    n_features : int

    Returns
    -------
    float or ndarray
    """
    # eq: eq-lsdd-volume
    return n_features / 2 * np.log(np.pi * sigma**2)


def mean_difference(samples, centers, sigma, weights=(1.0, 1.0)):
    r"""Difference of the means of the basis functions over the two samples.

    :math:`\hat h = \frac wn \sum_i \varphi(x_i) - \frac{w'}{n'} \sum_j \varphi(x'_j)`, equation :eq:`eq-lsdd-h`.

    Parameters
    ----------
    samples : (ndarray, ndarray)
        The two samples, shapes (n, n_features) and (n', n_features).
    centers : ndarray, shape (b, n_features)
    sigma : float
    weights : tuple of float, default (1.0, 1.0)
        :math:`w, w'`, see `llpbook.density_difference.prior_weights`; 1 in the paper.

    Returns
    -------
    ndarray, shape (b,)
    """
    mean_p, mean_q = (basis_sums(X, centers, sigma)[0] / len(X) for X in samples)
    # eq: eq-lsdd-h
    return weights[0] * mean_p - weights[1] * mean_q


def basis_sums(X, centers, sigma, n_widths=1, batch_size=1024):
    r"""Sums of the basis functions over a sample, for a sequence of widths.

    Dividing a width by :math:`\sqrt 2` squares the bump, :math:`\varphi_{\sigma / \sqrt 2} = \varphi_\sigma^2`
    (equation :eq:`eq-lsdd-squaring`), so that one exponential serves all widths. :math:`O(n b (d + n_\sigma))` time,
    one batch of rows at a time.

    Parameters
    ----------
    X : ndarray, shape (n, n_features)
    centers : ndarray, shape (b, n_features)
    sigma : float
        The largest width.
    n_widths : int, default 1
    batch_size : int, default 1024

    Returns
    -------
    ndarray, shape (n_widths, b)
        Row ``k`` belongs to the width ``sigma / 2 ** (k / 2)``.
    """
    sums = np.zeros((n_widths, len(centers)))
    for batch in gen_batches(len(X), batch_size):
        phi = gaussian_basis(X[batch], centers, sigma)
        for k in range(n_widths):
            if k:
                # eq: eq-lsdd-squaring
                phi *= phi
            sums[k] += phi.sum(axis=0)
    return sums


def solve(G, h, lam):
    r"""The penalised least-squares solution, in closed form.

    :math:`\vartheta = (G + \mu I)^{-1} \hat h`, equation :eq:`eq-lsdd-theta`: :math:`v` times the paper's
    :math:`\hat\theta`, with the penalty :math:`\lambda = v \mu`.

    Parameters
    ----------
    G : ndarray, shape (b, b)
    h : ndarray, shape (b,)
    lam : float
        :math:`\mu`, positive.

    Returns
    -------
    ndarray, shape (b,)
    """
    # eq: eq-lsdd-theta
    return np.linalg.solve(G + lam * np.eye(len(G)), h)


def criterion(G, h, theta):
    r"""The squared error of the fit, but for a constant and the factor 1/v.

    :math:`\frac12 \vartheta^\top G \vartheta - h^\top \vartheta`, equation :eq:`eq-lsdd-criterion`.

    Parameters
    ----------
    G : ndarray, shape (b, b)
    h : ndarray, shape (b,)
        Of the data on which to judge.
    theta : ndarray, shape (b,)

    Returns
    -------
    float
    """
    # eq: eq-lsdd-criterion
    return 0.5 * theta @ G @ theta - h @ theta


def l2_distance(G, h, theta, log_v=0.0):
    r"""Estimate of the squared L2 distance of the two densities.

    :math:`\int (p - p')^2 \approx 2 \hat h^\top \hat\theta - \hat\theta^\top H \hat\theta`, equation
    :eq:`eq-lsdd-distance`. Of the two plain estimates :math:`\hat h^\top \hat\theta` and
    :math:`\hat\theta^\top H \hat\theta` this combination has the smaller bias from the penalty: its error is
    quadratic in the error of :math:`\hat\theta`.

    Parameters
    ----------
    G : ndarray, shape (b, b)
    h, theta : ndarray, shape (b,)
    log_v : float, default 0.0
        `log_volume`; with 0 the distance is in units of 1/v.

    Returns
    -------
    float
    """
    value = 2 * h @ theta - theta @ G @ theta
    # eq: eq-lsdd-distance
    return float(value * np.exp(-log_v))


def lsdd(samples, centers, sigma, lam, weights=(1.0, 1.0)):
    r"""Coefficients of the estimated density difference, for a given width and penalty.

    Parameters
    ----------
    samples : (ndarray, ndarray)
        The two samples, shapes (n, n_features) and (n', n_features).
    centers : ndarray, shape (b, n_features)
    sigma : float
    lam : float
        Relative to the diagonal of :math:`H`.
    weights : tuple of float, default (1.0, 1.0)

    Returns
    -------
    ndarray, shape (b,)
        :math:`\vartheta`; ``gaussian_basis(X, centers, sigma) @ theta / exp(log_volume(sigma, d))`` estimates
        :math:`p - p'`.
    """
    h = mean_difference(samples, centers, sigma, weights)
    return solve(basis_integrals(centers, sigma), h, lam)


def fold_differences(samples, weights, centers, sigma, n_widths, folds):
    r"""The vector h of each fold and of the data without it, for each width.

    Parameters
    ----------
    samples : (ndarray, ndarray)
        The two samples, shapes (n, n_features) and (n', n_features).
    weights : (float, float)
    centers : ndarray, shape (b, n_features)
    sigma : float
        The largest width.
    n_widths : int
    folds : (ndarray of int, ndarray of int)
        Fold of each row of the two samples, 0, 1, …; each fold has rows of both.

    Returns
    -------
    train, test : ndarray, shape (n_widths, b, n_folds)
    """
    train = test = 0.0
    signs = (weights[0], -weights[1])
    for X, fold, weight in zip(samples, folds, signs, strict=True):
        sizes = np.bincount(fold)
        parts = (X[fold == k] for k in range(len(sizes)))
        sums = [basis_sums(part, centers, sigma, n_widths) for part in parts]
        sums = np.stack(sums, axis=-1)
        rest = sums.sum(axis=-1, keepdims=True) - sums
        test = test + weight * sums / sizes
        train = train + weight * rest / (len(X) - sizes)
    return train, test


def penalty_path(G, h, lams):
    r"""Solutions for all penalties and several right-hand sides from one decomposition.

    :math:`G = U S U^\top`, :math:`\vartheta = U (S + \mu I)^{-1} U^\top h`, equation :eq:`eq-lsdd-path`.
    :math:`O(b^3 + b^2 K n_\mu)`.

    Parameters
    ----------
    G : ndarray, shape (b, b)
    h : ndarray, shape (b, n_folds)
    lams : ndarray, shape (n_lams,)

    Returns
    -------
    ndarray, shape (n_lams, b, n_folds)
    """
    values, vectors = eigh(G)
    values = np.maximum(values, 0)  # below 0 by rounding only
    shrunk = (vectors.T @ h) / (values[:, None] + lams[:, None, None])
    # eq: eq-lsdd-path
    return vectors @ shrunk


def l2_criteria(G, theta, test):
    r"""The criterion of `criterion` on what each fold leaves out, for all penalties.

    Equation :eq:`eq-lsdd-cv`.

    Parameters
    ----------
    G : ndarray, shape (b, b)
    theta : ndarray, shape (n_lams, b, n_folds)
    test : ndarray, shape (b, n_folds)

    Returns
    -------
    ndarray, shape (n_lams,)
        Mean over the folds.
    """
    # eq: eq-lsdd-cv
    scores = (0.5 * G @ theta - test) * theta
    return scores.sum(axis=1).mean(axis=1)


def sign_criteria(samples, weights, centers, sigma, theta, folds, batch_size=1024):
    r"""How well the signs separate what each fold leaves out.

    :math:`-\int [g > 0]\, (c\,p - c' p')`, estimated by shares of held-out instances (equation :eq:`eq-lsdd-cv-sign`):
    its minimum over all g is at the sign of the density difference, and it has no unit.

    Parameters
    ----------
    samples : (ndarray, ndarray)
    weights : (float, float)
    centers : ndarray, shape (b, n_features)
    sigma : float
        The largest width.
    theta : ndarray, shape (n_widths, n_lams, b, n_folds)
    folds : (ndarray of int, ndarray of int)
    batch_size : int, default 1024

    Returns
    -------
    ndarray, shape (n_widths, n_lams)
    """
    scores = np.zeros(theta.shape[:2])
    signs, n_folds = (-weights[0], weights[1]), theta.shape[-1]
    for X, fold, sign in zip(samples, folds, signs, strict=True):
        for k in range(n_folds):
            left_out = X[fold == k]
            # eq: eq-lsdd-cv-sign
            share = sign / (n_folds * len(left_out))
            for batch in gen_batches(len(left_out), batch_size):
                phi = gaussian_basis(left_out[batch], centers, sigma)
                for i, coef in enumerate(theta[..., k]):
                    phi = phi * phi if i else phi
                    scores[i] += share * (phi @ coef.T > 0).sum(axis=0)
    return scores


def cross_validate(samples, weights, centers, sigmas, lams, folds, criterion="l2"):
    r"""Held-out scores of all widths and penalties.

    Parameters
    ----------
    samples : (ndarray, ndarray)
    weights : (float, float)
    centers : ndarray, shape (b, n_features)
    sigmas : ndarray, shape (n_sigmas,)
        Each :math:`1 / \sqrt 2` of the one before.
    lams : ndarray, shape (n_lams,)
    folds : (ndarray of int, ndarray of int)
    criterion : {"l2", "sign"}, default "l2"
        `l2_criteria` or `sign_criteria`.

    Returns
    -------
    ndarray, shape (n_sigmas, n_lams)
        The larger, the better; for "l2" in units of the volume of the best width, since only after division by
        :math:`v` can widths be compared, equation :eq:`eq-lsdd-units`.
    """
    train, test = fold_differences(
        samples, weights, centers, sigmas[0], len(sigmas), folds
    )
    grams = [basis_integrals(centers, s) for s in sigmas]
    theta = [penalty_path(G, h, lams) for G, h in zip(grams, train, strict=True)]
    if criterion == "sign":
        theta = np.array(theta)
        return -sign_criteria(samples, weights, centers, sigmas[0], theta, folds)
    values = np.array([l2_criteria(*t) for t in zip(grams, theta, test, strict=True)])
    # eq: eq-lsdd-units
    scale = np.repeat(-log_volume(sigmas, centers.shape[1]), len(lams))
    return scores_in_one_unit(values.ravel(), scale).reshape(values.shape)


class LSDD(TwoBagClassifier):
    r"""Sign of the least-squares density difference (duplessis2013).

    With proportions class 1 is the positive class; without, there are two bags and the labels are true up to a swap.
    Many bags are pooled into those above and those below the class prior (see
    `llpbook.density_difference.TwoBagClassifier`).

    Parameters
    ----------
    sigma : float, "cv", "median" or array-like, default "cv"
        Width of the bumps: the best of `SIGMAS` times the median distance, that distance, a number, or the best of your
        own.
    lam : float, "cv" or array-like, default "cv"
        Penalty in units of the diagonal of :math:`H`, :math:`(\pi \sigma^2)^{d/2}`: the best of `LAMS`, a number, or
        the best of your own.
    criterion : {"l2", "sign"}, default "l2"
        What cross-validation compares: the squared error of the estimated density difference (the paper), or how well
        its sign separates held-out instances, which matters where a few dense places rule the squared error (many
        features, many more instances than centres).
    n_centers : int, default 300
        All instances are centres if there are no more.
    n_folds : int, default 5
        Of the cross-validation; fewer where a sample is smaller.
    class_prior : "balanced", "match" or float, default "balanced"
        Share of the positive class among the instances to predict: a half (the paper), that of the training data, or
        a number. The last two need proportions.
    random_state : int, RandomState or None
        For folds and centres.

    Attributes
    ----------
    classes_ : ndarray, shape (2,)
    pooled_proportions_ : (float, float) or None
    centers_ : ndarray, shape (b, n_features)
    coef_ : ndarray, shape (b,)
        :math:`\vartheta = v \hat\theta`.
    sigma_, lam_ : float
    log_volume_ : float
        :math:`\log v`.
    l2_distance_ : float
        Estimate of :math:`\int (c\,p - c' p')^2` times :math:`v`, see `l2_distance`.
    cv_results_ : DataFrame
        Columns ``sigma``, ``lam``, ``score`` (`cross_validate`; NaN where there was nothing to choose).

    Raises
    ------
    NotIdentifiableError
        If all proportions are equal.
    ValueError
        For malformed input; see `llpbook.base`.

    Notes
    -----
    :math:`O(n b (d + n_\sigma) + n_\sigma b^3)` for n instances and b centres.

    Examples
    --------
    >>> from llpbook.density_difference import labeling_error_rate, toy_problem
    >>> X, y, bags = toy_problem(2, n=200, random_state=0)
    >>> labeling_error_rate(LSDD(random_state=0).fit(X, bags).predict(X), y) < 0.2
    True
    """

    _parameter_constraints = {
        **TwoBagClassifier._parameter_constraints,
        "sigma": [StrOptions({"median", "cv"}), Real, "array-like"],
        "lam": [StrOptions({"cv"}), Real, "array-like"],
        "criterion": [StrOptions({"l2", "sign"})],
        "n_centers": [Interval(Integral, 1, None, closed="left")],
        "n_folds": [Interval(Integral, 2, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self, sigma="cv", lam="cv", criterion="l2", n_centers=300, n_folds=5,
        class_prior="balanced", random_state=None,
    ):  # fmt: skip
        self.sigma, self.lam, self.criterion = sigma, lam, criterion
        self.n_centers, self.n_folds = n_centers, n_folds
        self.class_prior, self.random_state = class_prior, random_state

    def _fit_two(self, samples, weights):
        rng, X = check_random_state(self.random_state), np.vstack(samples)
        self.centers_ = choose_centers(X, self.n_centers, rng)
        self._tune(samples, weights, median_distance(X), rng.randint(2**31 - 1))
        G = basis_integrals(self.centers_, self.sigma_)
        h = mean_difference(samples, self.centers_, self.sigma_, weights)
        self.coef_ = solve(G, h, self.lam_)
        self.log_volume_ = float(log_volume(self.sigma_, X.shape[1]))
        self.l2_distance_ = l2_distance(G, h, self.coef_)

    def _tune(self, samples, weights, unit, seed):
        """The width and the penalty, by cross-validation where there is a choice."""
        sigmas = candidates("sigma", self.sigma, SIGMAS, unit)
        lams = candidates("lam", self.lam, LAMS)
        scores = np.full((len(sigmas), len(lams)), np.nan)
        if scores.size > 1:
            n_folds = min(self.n_folds, *map(len, samples))
            folds = [fold_numbers(len(X), n_folds, seed) for X in samples]
            scores = cross_validate(
                samples, weights, self.centers_, sigmas, lams, folds, self.criterion
            )
        grid = product(sigmas, lams)
        rows = [(*pair, score) for pair, score in zip(grid, scores.flat, strict=True)]
        best, self.cv_results_ = tune(rows, sigma=float, lam=float)
        self.sigma_, self.lam_ = best["sigma"], best["lam"]

    def _scores(self, X):
        r"""The estimated density difference times v, which does not change its sign."""
        phi = (
            gaussian_basis(X[batch], self.centers_, self.sigma_) @ self.coef_
            for batch in gen_batches(len(X), 1024)
        )
        return np.concatenate(list(phi))

    def density_difference(self, X):
        r"""The estimate of the weighted density difference itself.

        Parameters
        ----------
        X : array-like, shape (n_instances, n_features)

        Returns
        -------
        ndarray, shape (n_instances,)
            May overflow in high dimension.
        """
        return self.decision_function(X) * np.exp(-self.log_volume_)
