r"""LSDD: least-squares estimation of the difference of two densities, and its sign.

Fit a sum of Gaussian bumps :math:`g = \sum_\ell \theta_\ell \varphi_\ell` to the difference :math:`f = p - p'` itself:
:math:`\frac12 \int (g - f)^2` is, up to a constant, :math:`\frac12 \theta^\top H \theta - h^\top \theta` with
:math:`H = \int \varphi \varphi^\top` known exactly and :math:`h = \int \varphi f` a difference of two means. With a
penalty,

.. math:: \hat\theta = (H + \lambda I)^{-1} \hat h .

**Units.** :math:`H = v\, G` with the volume :math:`v = (\pi \sigma^2)^{d/2}` and
:math:`G_{\ell m} = \exp(-\lVert z_\ell - z_m \rVert^2 / 4 \sigma^2)`. In dimension 20 the volume runs over 26 orders of
magnitude between two common widths, so that the same :math:`\lambda` is negligible for one width and dominates for the
other. Here :math:`\lambda = v \mu` with :math:`\mu` (``alpha``) relative to the diagonal of :math:`H`: then
:math:`\hat\theta = \vartheta / v` with :math:`\vartheta = (G + \mu I)^{-1} \hat h`. A positive factor does not change a
sign, so :math:`\vartheta` is what is stored and used to classify. But :math:`v` depends on the width, so the choice
of a width needs it: the criterion on held-out data,

.. math:: \tfrac12 \hat\theta^\top H \hat\theta - \tilde h^\top \hat\theta
          = v^{-1} \bigl[ \tfrac12 \vartheta^\top G \vartheta - \tilde h^\top \vartheta \bigr],

estimates :math:`\frac12 \int (g - f)^2 - \frac12 \int f^2`, and no width changes the second term. The bracket alone
has another unit for each width, and prefers wide bumps. (With :math:`X` in other units of length all
criteria are multiplied by one number, so the choice is the same.)

Chapter: ``book/lsdd``. Source: duplessis2013 (section 2.4 and appendix B).
"""

from numbers import Real

import numpy as np
from scipy.linalg import eigh
from sklearn.utils import check_random_state, gen_batches

from ._input import ArrayLike, Matrix, NDArray, RandomState
from .base import (
    StrOptions,
    candidates,
    choose_centers,
    fold_numbers,
    in_blocks,
    median_distance,
    require_memory,
    tune,
)
from .density_difference import (
    TwoBagClassifier,
    gaussian_basis,
    scores_in_one_unit,
)

__all__ = ["LSDD"]

#: Widths of ``sigma="cv"``, in units of the median distance.
SIGMAS = 2.0 ** np.arange(1, -3.5, -0.5)
#: Penalties of ``alpha="cv"``, in units of the diagonal of H.
LAMS = np.logspace(1, -3, 9)
#: Widths of the public implementations, in the units of the data: ``sigma="public"``.
PUBLIC_SIGMAS = np.array([0.25, 0.5, 0.75, 1, 1.2, 1.5, 2, 2.2, 2.5, 3, 5])
#: Peak memory of a fit, in matrices of centers by centers and by penalties and folds.
COPIES = 4.0
#: Penalties of the public implementations, added to H as they are: ``alpha="public"``.
PUBLIC_LAMS = np.logspace(-3, 1, 9)


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

    :math:`\log v = \frac d2 \log(\pi \sigma^2)`.

    Parameters
    ----------
    sigma : float or ndarray
    n_features : int

    Returns
    -------
    float or ndarray
    """
    return n_features / 2 * np.log(np.pi * sigma**2)


def basis_sum(X, centers, sigma, batch_size=1024):
    """Sum of the basis functions over a sample, one batch of rows at a time.

    Parameters
    ----------
    X : ndarray, shape (n, n_features)
    centers : ndarray, shape (b, n_features)
    sigma : float
    batch_size : int, default 1024

    Returns
    -------
    ndarray, shape (b,)
    """
    batches = gen_batches(len(X), batch_size)
    return sum(gaussian_basis(X[rows], centers, sigma).sum(axis=0) for rows in batches)


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
    mean_p, mean_q = (basis_sum(X, centers, sigma) / len(X) for X in samples)
    # eq: eq-lsdd-h
    return weights[0] * mean_p - weights[1] * mean_q


def solve(G, h, lam):
    r"""The penalized least-squares solution, in closed form.

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
        ``gaussian_basis(X, centers, sigma) @ theta / exp(log_volume(sigma, d))`` estimates :math:`p - p'`.
    """
    # eq: eq-lsdd-theta
    return np.linalg.solve(G + lam * np.eye(len(G)), h)


def l2_distance(G, h, theta, log_v):
    r"""Estimate of the squared L2 distance of the two densities.

    :math:`\int (p - p')^2 \approx v^{-1} (2 \hat h^\top \vartheta - \vartheta^\top G \vartheta)`, equation
    :eq:`eq-lsdd-distance`. Its error is quadratic in the error of :math:`\vartheta`.

    Parameters
    ----------
    G : ndarray, shape (b, b)
    h, theta : ndarray, shape (b,)
    log_v : float
        `log_volume`.

    Returns
    -------
    float
        Infinite or 0 where a floating-point number cannot hold it, in some hundreds of dimensions.
    """
    with np.errstate(over="ignore", under="ignore"):
        # eq: eq-lsdd-distance
        return float((2 * h @ theta - theta @ G @ theta) * np.exp(-log_v))


def fold_differences(samples, centers, sigma, folds, weights=(1.0, 1.0)):
    """`mean_difference` of each fold and of the other folds, from one sum per fold.

    Parameters
    ----------
    samples, centers, sigma, weights
        As for `mean_difference`.
    folds : (ndarray of int, ndarray of int)
        Fold of each row of the two samples, 0, 1, …; each fold has rows of both.

    Returns
    -------
    train, test : ndarray, shape (b, n_folds)
    """
    train = test = 0.0
    for X, fold, weight in zip(samples, folds, (weights[0], -weights[1]), strict=True):
        sizes = np.bincount(fold)
        parts = (X[fold == k] for k in range(len(sizes)))
        sums = np.transpose([basis_sum(part, centers, sigma) for part in parts])
        others = sums.sum(axis=1, keepdims=True) - sums
        test = test + weight * sums / sizes
        train = train + weight * others / (len(X) - sizes)
    return train, test


def penalty_path(G, h, lams):
    r"""Solutions for all penalties and several right-hand sides from one decomposition.

    :math:`G = U S U^\top`, :math:`\vartheta = U (S + \mu I)^{-1} U^\top h`.
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
    return vectors @ shrunk


def l2_criteria(G, theta, test):
    r"""Mean over the folds of the criterion on the held-out fold, for all penalties.

    :math:`\frac12 \vartheta^\top G \vartheta - \tilde h^\top \vartheta`, equation :eq:`eq-lsdd-cv` without its 1/v.

    Parameters
    ----------
    G : ndarray, shape (b, b)
    theta : ndarray, shape (n_lams, b, n_folds)
    test : ndarray, shape (b, n_folds)

    Returns
    -------
    ndarray, shape (n_lams,)
    """
    # eq: eq-lsdd-cv
    return ((0.5 * G @ theta - test) * theta).sum(axis=1).mean(axis=1)


def sign_criteria(samples, centers, sigma, theta, folds, weights=(1.0, 1.0)):
    r"""Mean over the folds of the separation of held-out instances by the signs, for all penalties.

    :math:`-\int [g > 0]\, (w\,p - w' p')`, estimated by shares of held-out instances:
    its minimum over all g is at the sign of the density difference, and it has no unit.

    Parameters
    ----------
    samples, centers, sigma, folds, weights
        As for `fold_differences`.
    theta : ndarray, shape (n_lams, b, n_folds)

    Returns
    -------
    ndarray, shape (n_lams,)
    """
    total, n_folds = 0.0, theta.shape[-1]
    for X, fold, weight in zip(samples, folds, (-weights[0], weights[1]), strict=True):
        for k in range(n_folds):
            g = model_values(X[fold == k], centers, sigma, theta[:, :, k].T)
            total = total + weight * np.mean(g > 0, axis=0) / n_folds
    return total


def model_values(X, centers, sigma, theta):
    """Values of the model times v, some rows at a time.

    Parameters
    ----------
    X : ndarray, shape (n, n_features)
    centers : ndarray, shape (b, n_features)
    sigma : float
    theta : ndarray, shape (b,) or (b, m)

    Returns
    -------
    ndarray, shape (n,) or (n, m)
    """
    return in_blocks(
        X, len(centers), lambda part: gaussian_basis(part, centers, sigma) @ theta
    )


def cross_validate(
    samples, centers, sigma, lams, folds, weights=(1.0, 1.0), criterion="l2"
):
    """Criterion of cross-validation for one width and all penalties.

    Parameters
    ----------
    samples, centers, sigma, folds, weights
        As for `fold_differences`.
    lams : ndarray, shape (n_lams,)
    criterion : {"l2", "sign"}, default "l2"
        `l2_criteria` or `sign_criteria`.

    Returns
    -------
    ndarray, shape (n_lams,)
        The smaller, the better; of two widths the "l2" values are comparable after division by :math:`v`.
    """
    train, test = fold_differences(samples, centers, sigma, folds, weights)
    G = basis_integrals(centers, sigma)
    theta = penalty_path(G, train, lams)
    if criterion == "sign":
        return sign_criteria(samples, centers, sigma, theta, folds, weights)
    return l2_criteria(G, theta, test)


class LSDD(TwoBagClassifier):
    r"""Sign of the least-squares density difference (duplessis2013).

    With proportions class 1 is the positive class; without, there are two bags and the labels are true up to a swap.
    Many bags are pooled into those above and those below the class prior (see
    `llpbook.density_difference.TwoBagClassifier`).

    Parameters
    ----------
    sigma : float, "cv", "median", "public" or array-like, default "cv"
        Width of the bumps. "cv": the best of `SIGMAS` times the median distance; "median": this distance; "public": the
        best of `PUBLIC_SIGMAS` in the units of X; or a number, or the best of several numbers.
    alpha : float, "cv", "public" or array-like, default "cv"
        Penalty in units of the diagonal of :math:`H`, :math:`v = (\pi \sigma^2)^{d/2}`: the best of `LAMS`, a number,
        or the best of several. "public": the best of `PUBLIC_LAMS` / v, but at least 1e-12; with ``sigma="public"``
        this is the grid of the public implementations.
    criterion : {"l2", "sign"}, default "l2"
        What cross-validation compares: the squared error of the estimated density difference (the paper), or how well
        its sign separates held-out instances, which matters where a few dense regions decide the squared error (many
        features, many more instances than centers).
    n_centers : int, default 300
        All instances are centers if there are no more.
    n_folds : int, default 5
        Of the cross-validation; fewer where a sample is smaller.
    class_prior : "balanced", "match" or float, default "balanced"
        Share of the positive class among the instances to predict: a half (the paper), that of the training data, or
        a number. The last two need proportions.
    random_state : int, RandomState or None, default None
        For folds and centers.
    verbose : int, default 0
        1 prints the progress of the cross-validation, at most a line a second.

    Attributes
    ----------
    classes_ : ndarray, shape (2,)
    pooled_proportions_ : (float, float) or None
    centers_ : ndarray, shape (b, n_features)
    coef_ : ndarray, shape (b,)
        :math:`\vartheta = v \hat\theta`.
    sigma_, alpha_ : float
    log_volume_ : float
        :math:`\log v`.
    l2_distance_ : float
        Estimate of :math:`\int (w\,p - w' p')^2`, see `l2_distance`.
    cv_results_ : DataFrame
        Columns ``sigma``, ``alpha``, ``score``: minus `cross_validate`, for "l2" divided by v, in units of the volume
        of the best width; the larger, the better, NaN where there was nothing to choose.

    Raises
    ------
    NotIdentifiableError
        If all proportions are equal.
    ValueError
        For malformed input; see `llpbook.base`.

    Notes
    -----
    :math:`O(n_\sigma (n b d + b^3))` for n instances and b centers, in memory for one batch of instances and some
    matrices of :math:`b^2`.

    Repeating every instance changes the fit: with a copy in another fold, cross-validation prefers narrow bumps; and
    where all instances are centers, each bump is there twice, which halves the penalty. Swapping the classes: see
    `llpbook.density_difference.TwoBagClassifier`.

    Examples
    --------
    >>> from llpbook.density_difference import labeling_error_rate, toy_problem
    >>> X, y, bags = toy_problem(2, n=200, random_state=0)
    >>> labeling_error_rate(LSDD(random_state=0).fit(X, bags).predict(X), y) < 0.2
    True
    """

    cost = "seconds for 100,000 instances"
    _parameter_constraints = {
        "sigma": [StrOptions({"median", "cv", "public"}), Real, "array-like"],
        "alpha": [StrOptions({"cv", "public"}), Real, "array-like"],
        "criterion": [StrOptions({"l2", "sign"})],
    }

    def __init__(
        self, sigma: float | str | ArrayLike = "cv",
        alpha: float | str | ArrayLike = "cv", *, criterion: str = "l2",
        n_centers: int = 300, n_folds: int = 5, class_prior: float | str = "balanced",
        random_state: RandomState = None, verbose: int = 0,
    ):  # fmt: skip
        self.sigma, self.alpha, self.criterion = sigma, alpha, criterion
        self.n_centers, self.n_folds = n_centers, n_folds
        self.class_prior, self.random_state = class_prior, random_state
        self.verbose = verbose

    def _fit_two(self, samples, weights):
        rng, X = check_random_state(self.random_state), np.vstack(samples)
        self.centers_ = choose_centers(X, self.n_centers, rng)
        self._tune(samples, weights, median_distance(X), rng.randint(2**31 - 1))
        G = basis_integrals(self.centers_, self.sigma_)
        h = mean_difference(samples, self.centers_, self.sigma_, weights)
        self.coef_ = solve(G, h, self.alpha_)
        self.log_volume_ = float(log_volume(self.sigma_, X.shape[1]))
        self.l2_distance_ = l2_distance(G, h, self.coef_, self.log_volume_)

    def _tune(self, samples, weights, unit, seed):
        """Choose the width and the penalty by cross-validation, if there is a choice."""
        n_folds = min(self.n_folds, len(samples[0]), len(samples[1]))
        folds = [fold_numbers(len(X), n_folds, seed) for X in samples]
        public = isinstance(self.sigma, str) and self.sigma == "public"
        centers, (b, d) = self.centers_, self.centers_.shape
        sigmas = candidates(
            "sigma", PUBLIC_SIGMAS if public else self.sigma, SIGMAS, unit
        )
        grid = [(sigma, self._penalties(log_volume(sigma, d))) for sigma in sigmas]
        pairs = [(sigma, lam) for sigma, lams in grid for lam in lams]
        needs = 8.0 * COPIES * b * (b + len(grid[0][1]) * n_folds)
        require_memory(f"LSDD with {b} centers, {n_folds} folds", needs, "take fewer")
        values = np.full(len(pairs), np.nan)
        if len(pairs) > 1:
            progress, values = self._progress(len(grid), "width"), []
            for sigma, lams in grid:
                values += [*cross_validate(
                    samples, centers, sigma, lams, folds, weights, self.criterion
                )]  # fmt: skip
                progress.step()
        scores = -np.array(values)
        if self.criterion == "l2" and len(pairs) > 1:
            # eq: eq-lsdd-cv
            log_v = log_volume(np.array([sigma for sigma, _ in pairs]), d)
            scores = scores_in_one_unit(-scores, -log_v)
        rows = [(*pair, score) for pair, score in zip(pairs, scores, strict=True)]
        best, self.cv_results_ = tune(rows, sigma=float, alpha=float)
        self.sigma_, self.alpha_ = best["sigma"], best["alpha"]

    def _penalties(self, log_v):
        """The candidates for lam at one width, relative to the diagonal of H."""
        if isinstance(self.alpha, str) and self.alpha == "public":
            return np.maximum(PUBLIC_LAMS * np.exp(-log_v), 1e-12)
        return candidates("alpha", self.alpha, LAMS)

    def _scores(self, X):
        r"""Estimated density difference times v; the factor does not change its sign."""
        return model_values(X, self.centers_, self.sigma_, self.coef_)

    def density_difference(self, X: Matrix) -> NDArray:
        r"""Estimate the weighted density difference itself.

        Parameters
        ----------
        X : array-like, shape (n_instances, n_features)

        Returns
        -------
        ndarray, shape (n_instances,)
            May overflow in high dimension.
        """
        return self.decision_function(X) * np.exp(-self.log_volume_)
