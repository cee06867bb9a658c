r"""Model of the rates of groups by stratum, fitted to the margins of places.

Place :math:`k` of stratum :math:`r` has :math:`N_{kg}` members of group g and :math:`c_{kj}` people of class j. The
log-odds of a group in a stratum are :math:`\theta_{rg} = \mu_g + a_r + b_{rg}`; effects of groups and strata are hardly
penalized, interactions b have a variance v that the counts estimate.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.linalg import helmert
from scipy.optimize import brentq
from scipy.special import softmax

#: Standard deviations, in log-odds, of the priors of group and stratum (about uniform rates), and of that of sqrt(v).
SD_MAIN, SD_OF_SD = 2.0, 1.0
#: The deviations sqrt(v) over which rates are averaged, and the one of the first fits.
SDS, FIRST_SD = np.array([0.02, 0.1, 0.2, 0.35, 0.55, 0.85, 1.3, 2.0]), 0.5
#: Rounds for the variances of the places; Gauss-Newton steps.
ROUNDS, STEPS = 4, 100
#: Change of the objective, absolute or relative, that ends these.
CHANGE, ROUNDING = 1e-6, 1e-10
#: Weights of the average below which a fit is left out.
SMALL_WEIGHT = 1e-4
#: Added to variances of places without people of two kinds.
TINY = 1e-9


@dataclass(frozen=True, eq=False)
class Margins:
    """Checked margins, places in the order of their strata.

    Attributes
    ----------
    members : ndarray, shape (n_places, n_groups)
    counts : ndarray, shape (n_places, n_classes)
    stratum : ndarray of int, shape (n_places,)
    groups, classes, strata : pandas.Index
        Their names.
    """

    members: np.ndarray
    counts: np.ndarray
    stratum: np.ndarray
    groups: pd.Index
    classes: pd.Index
    strata: pd.Index

    @property
    def contrasts(self):
        """Orthonormal contrasts of the classes, shape (n_classes, n_classes - 1)."""
        return helmert(len(self.classes)).T

    @property
    def sizes(self):
        """People per place."""
        return self.members.sum(axis=1)

    def by_stratum(self, values):
        """Sums over the places of each stratum, along the first axis."""
        return sums_by_stratum(values, self.stratum)


def sums_by_stratum(values, stratum):
    """Sums along the first axis of places that are ordered by stratum."""
    return np.add.reduceat(values, np.unique(stratum, return_index=True)[1])


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums over the places of each stratum, which the normal likelihood with stated variances needs.

    Under a shift the rows are places, whose slopes are added to those of their strata.

    Attributes
    ----------
    inverses : ndarray, shape (n_places, n_contrasts, n_contrasts)
        Of the variances of the counts.
    weights : ndarray, shape (n_strata, n_groups, n_groups, n_contrasts, n_contrasts)
        Sums of ``N_kg N_kh`` times the inverse.
    targets : ndarray, shape (n_strata, n_groups, n_contrasts)
        Sums of ``N_kg`` times inverse times counts.
    constant : float
        The part of twice the negative log-likelihood without the rates.
    shift : ndarray, shape (n_places, n_contrasts), optional
        Of the scores of everybody in a place.
    stratum : ndarray, shape (n_places,), optional
        Beside a shift.
    """

    inverses: np.ndarray
    weights: np.ndarray
    targets: np.ndarray
    constant: float
    shift: np.ndarray | None = None
    stratum: np.ndarray | None = None

    def rates(self, scores, contrasts):
        """Rates of the classes in each row, shape (n_rows, n_groups, n_classes)."""
        if self.shift is not None:
            scores = scores[self.stratum] + self.shift[:, None]
        return softmax(scores @ contrasts.T, axis=2)

    def by_stratum(self, values):
        """Sums of rows over the places of each stratum; the values where the rows are strata."""
        return values if self.shift is None else sums_by_stratum(values, self.stratum)


@dataclass(frozen=True, eq=False)
class Fit:
    """Most probable log-odds for one variance of the interactions.

    Attributes
    ----------
    sd : float
        Square root of that variance.
    scores : ndarray, shape (n_strata, n_groups, n_contrasts)
    mean : ndarray, shape (n_groups * n_contrasts,)
        Of the scores of the groups over strata.
    rates : ndarray, shape (n_strata, n_groups, n_classes)
    evidence : float
        Log-probability of the counts with the scores averaged out (Laplace).
    inverse, carry : ndarray, shape (n_strata, n_columns, n_columns)
        Covariance of the scores of a stratum given the mean, and their slopes by the mean.
    of_mean : ndarray, shape (n_columns, n_columns)
        Covariance of the mean.
    information : ndarray, shape (n_strata, n_columns, n_columns)
    """

    sd: float
    scores: np.ndarray
    mean: np.ndarray
    rates: np.ndarray
    evidence: float
    inverse: np.ndarray
    carry: np.ndarray
    of_mean: np.ndarray
    information: np.ndarray

    def spread(self, slopes):
        """Covariance of sums over strata of linear functions of the scores.

        Parameters
        ----------
        slopes : ndarray, shape (n_strata, n_functions, n_columns)

        Returns
        -------
        ndarray, shape (n_functions, n_functions)
        """
        within = np.einsum("rij,rjk,rlk->il", slopes, self.inverse, slopes)
        common = (slopes @ self.carry).sum(axis=0)
        return within + common @ self.of_mean @ common.T

    def covariances(self):
        """Covariance of the scores of each stratum, shape (n_strata, n_columns, n_columns)."""
        return self.inverse + self.carry @ self.of_mean @ self.carry.transpose(0, 2, 1)

    def response(self, push):
        """Change of the scores where the gradient of their objective changes.

        Parameters
        ----------
        push : ndarray, shape (n_strata, n_columns, n_directions)

        Returns
        -------
        ndarray, of the shape of push
        """
        common = np.einsum("rij,rik->jk", self.carry, push)
        return self.inverse @ push + self.carry @ (self.of_mean @ common)


def label_spread(rates, contrasts):
    """Covariance of the label of one person, in contrasts of the classes.

    Parameters
    ----------
    rates : ndarray, shape (..., n_classes)
    contrasts : ndarray, shape (n_classes, n_contrasts)

    Returns
    -------
    ndarray, shape (..., n_contrasts, n_contrasts)
    """
    means = rates @ contrasts
    squares = np.einsum("...c,ci,cj->...ij", rates, contrasts, contrasts)
    return squares - means[..., :, None] * means[..., None, :]


def place_variances(margins, rates, deviation):
    r"""Variance of the counts of each place, in contrasts.

    :math:`V_k = \sum_g N_{kg} W_{rg} + \tfrac12 \tau^2 \sum_g N_{kg}^2 W_{rg}^2`, equation
    :eq:`eq-ecological-place-variance`: the labels, and an effect of each group in the place.

    Parameters
    ----------
    margins : Margins
    rates : ndarray, shape (n_strata, n_groups, n_classes)
    deviation : float
        The standard deviation τ of the effects, in log-odds.

    Returns
    -------
    ndarray, shape (n_places, n_contrasts, n_contrasts)
    """
    W = label_spread(rates, margins.contrasts)
    N, r = margins.members, margins.stratum
    # eq: eq-ecological-place-variance
    of_labels = np.einsum("kg,kgij->kij", N, W[r])
    of_effects = 0.5 * deviation**2 * np.einsum("kg,kgij->kij", N**2, (W @ W)[r])
    return of_labels + of_effects + TINY * np.eye(W.shape[-1])


def misfits(margins, rates):
    """Counts of the places minus their means, in contrasts, shape (n_places, n_contrasts)."""
    means = np.einsum("kg,kgc->kc", margins.members, rates[margins.stratum])
    return (margins.counts - means) @ margins.contrasts


def place_sums(margins, inverses):
    """The `Sums` of places with stated inverses of the variances of their counts."""
    N = margins.members
    pairs = N[:, :, None] * N[:, None, :]
    weights = margins.by_stratum(pairs[..., None, None] * inverses[:, None, None])
    counts = margins.counts @ margins.contrasts
    weighted = np.einsum("kij,kj->ki", inverses, counts)
    targets = margins.by_stratum(N[:, :, None] * weighted[:, None, :])
    logs = -np.linalg.slogdet(inverses / (2 * np.pi))[1].sum()
    return Sums(inverses, weights, targets, logs + (weighted * counts).sum())


def log_posterior(sums, prior, scores, mean, contrasts):
    r"""Log-probability of counts and scores, the rates, and the slopes by the means of their contrasts.

    :math:`\log p = -\tfrac12 \sum_k (c_k - m_k)^\top V_k^{-1} (c_k - m_k) + \log p(\theta)` with :math:`m_k = \sum_g
    N_{kg}\, s(\theta_{rg})`, equation :eq:`eq-ecological-strata`.

    Parameters
    ----------
    sums : Sums
    prior : Prior
    scores : ndarray, shape (n_strata, n_groups, n_contrasts)
    mean : ndarray, shape (n_columns,)
    contrasts : ndarray, shape (n_classes, n_contrasts)

    Returns
    -------
    value : float
    rates : ndarray, shape (n_rows, n_groups, n_classes)
    misfit : ndarray, shape (n_rows, n_groups, n_contrasts)
        The slopes of the likelihood by the rates.
    """
    rates = sums.rates(scores, contrasts)
    means = rates @ contrasts
    fitted = np.einsum("rghij,rhj->rgi", sums.weights, means)
    # eq: eq-ecological-strata
    value = -0.5 * (
        sums.constant - 2 * (sums.targets * means).sum() + (means * fitted).sum()
    )
    value += prior.log_density(scores, mean)
    return value, rates, sums.targets - fitted


@dataclass(frozen=True, eq=False)
class Prior:
    """Normal prior of the scores of strata around a mean, and of the mean around a center."""

    sd: float
    precision: np.ndarray
    mean_precision: np.ndarray
    center: np.ndarray

    def log_density(self, scores, mean):
        """Log-density up to a constant that no deviation changes."""
        gaps = scores.reshape(len(scores), -1) - mean
        of_strata = np.einsum("ri,ij,rj->", gaps, self.precision, gaps)
        gap = mean - self.center
        logs = len(gaps) * np.linalg.slogdet(self.precision)[1]
        return 0.5 * (logs - of_strata - gap @ self.mean_precision @ gap)


def prior_of(margins, sd):
    """The `Prior` for a standard deviation of the interactions, in log-odds."""
    G, d = len(margins.groups), len(margins.classes) - 1
    shared = SD_MAIN**2 if len(margins.strata) > 1 else 0.0
    covariance = (shared + sd**2 * np.eye(G)) / 2  # of a contrast: half of a log-odds'
    shares = margins.counts.sum(axis=0) + 0.5
    center = np.tile(np.log(shares) @ margins.contrasts, G)
    precision = np.kron(np.linalg.inv(covariance), np.eye(d))
    return Prior(sd, precision, np.eye(G * d) * 2 / SD_MAIN**2, center)


def fit_rates(margins, sums, prior, start=None):
    """Find the most probable scores by Gauss-Newton steps.

    Parameters
    ----------
    margins : Margins
    sums : Sums
    prior : Prior
    start : Fit, optional

    Returns
    -------
    Fit
    """
    H, R, G = margins.contrasts, len(margins.strata), len(margins.groups)
    mean, shape = prior.center, (R, G, H.shape[1])
    scores = np.broadcast_to(mean.reshape(shape[1:]), shape)
    if start is not None:
        scores, mean = start.scores, start.mean
    value, rates, misfit = log_posterior(sums, prior, scores, mean, H)
    for _ in range(STEPS):
        system = curvature_of(sums, prior, rates, H)
        slopes = slopes_of(sums, misfit, rates, H)
        of_scores, of_mean = newton_step(system, prior, scores, mean, slopes)
        length = 1.0
        while True:
            moved = scores + length * of_scores, mean + length * of_mean
            new = log_posterior(sums, prior, moved[0], moved[1], H)
            loss = min(TINY * abs(value), 10 * CHANGE)  # by rounding
            if new[0] >= value - loss or length < 1e-4:
                break
            length /= 2
        change, (scores, mean) = abs(new[0] - value), moved
        value, rates, misfit = new
        if change < max(CHANGE, ROUNDING * abs(value)):
            break
    inverse, carry, precision, information = curvature_of(sums, prior, rates, H)
    evidence = value + 0.5 * (
        np.linalg.slogdet(inverse)[1].sum() - np.linalg.slogdet(precision)[1]
    )
    return Fit(
        prior.sd, scores, mean, softmax(scores @ H.T, axis=2), evidence, inverse, carry,
        np.linalg.inv(precision), information,
    )  # fmt: skip


def curvature_of(sums, prior, rates, contrasts):
    """Curvature of the log-posterior: of the strata, of the mean, and between the two.

    Returns
    -------
    inverse, carry : ndarray, shape (n_strata, n_columns, n_columns)
    precision : ndarray, shape (n_columns, n_columns)
    information : ndarray, shape (n_strata, n_columns, n_columns)
        Of the counts alone.
    """
    W, n = label_spread(rates, contrasts), prior.precision.shape[0]
    blocks = W[:, :, None] @ sums.weights @ W[:, None]
    blocks = blocks.transpose(0, 1, 3, 2, 4).reshape(len(rates), n, n)
    information = sums.by_stratum(blocks)
    inverse = np.linalg.inv(information + prior.precision)
    carry = inverse @ prior.precision
    precision = prior.mean_precision + prior.precision @ (np.eye(n) - carry).sum(axis=0)
    return inverse, carry, precision, information


def slopes_of(sums, misfit, rates, contrasts):
    """Slopes of the likelihood by the scores of each stratum, shape (n_strata, n_columns)."""
    W = label_spread(rates, contrasts)
    slopes = np.einsum("rgij,rgj->rgi", W, misfit)
    return sums.by_stratum(slopes.reshape(len(rates), -1))


def newton_step(system, prior, scores, mean, slopes):
    """Step of scores and mean to the maximum of the local quadratic."""
    inverse, carry, precision, _ = system
    gaps = (scores.reshape(len(scores), -1) - mean) @ prior.precision
    slopes = slopes - gaps
    slope = gaps.sum(axis=0) - prior.mean_precision @ (mean - prior.center)
    of_mean = np.linalg.solve(precision, slope + np.einsum("rij,ri->j", carry, slopes))
    of_scores = np.einsum("rij,rj->ri", inverse, slopes) + carry @ of_mean
    return of_scores.reshape(scores.shape), of_mean


def fit_deviation(margins):
    """Estimate the deviation τ of places beyond chance by Pearson's statistic, with the sums and the fit for it.

    Returns
    -------
    deviation : float
    freedom : float
        Degrees of freedom that the rates leave.
    sums : Sums
    fit : Fit
    """
    shares = (margins.counts + 0.5) / (margins.counts + 0.5).sum(axis=1)[:, None]
    spread = label_spread(shares, margins.contrasts)
    variances = margins.sizes[:, None, None] * spread
    variances = variances + TINY * np.eye(spread.shape[-1])
    sums = place_sums(margins, np.linalg.inv(variances))
    prior, fit = prior_of(margins, FIRST_SD), None
    for _ in range(ROUNDS):
        fit = fit_rates(margins, sums, prior, fit)
        used = np.einsum("rij,rji->", fit.covariances(), fit.information)
        freedom = max(margins.counts.shape[0] * spread.shape[-1] - used, 1.0)
        deviation = pearson_deviation(margins, fit.rates, freedom)
        variances = place_variances(margins, fit.rates, deviation)
        sums = place_sums(margins, np.linalg.inv(variances))
    return deviation, freedom, sums, fit


def pearson_deviation(margins, rates, freedom):
    """Deviation with which the squared misfits of the counts sum to their degrees of freedom, 0 or more."""
    gaps = misfits(margins, rates)
    of_labels = place_variances(margins, rates, 0.0)
    of_effects = place_variances(margins, rates, 1.0) - of_labels

    def excess(square):
        inverse = np.linalg.inv(of_labels + square * of_effects)
        return np.einsum("ki,kij,kj->", gaps, inverse, gaps) - freedom

    top = 1.0
    while excess(top) > 0 and top < 1e6:
        top *= 10
    return 0.0 if excess(0.0) <= 0 else float(np.sqrt(brentq(excess, 0.0, top)))


def average_fits(margins, sums, start):
    """Fit for each of `SDS`, with weights: evidence times a half-normal prior of the deviation.

    Returns
    -------
    list of (float, Fit)
        Fits of a weight above `SMALL_WEIGHT`, the most probable one first.
    """
    sds = SDS if len(margins.strata) > 1 else np.array([FIRST_SD])
    fits = [start]
    for sd in sds[::-1]:
        fits.append(fit_rates(margins, sums, prior_of(margins, sd), fits[-1]))
    fits = fits[:0:-1]
    logs = np.array([fit.evidence for fit in fits]) - (sds / SD_OF_SD) ** 2 / 2
    width = np.gradient(sds) if len(sds) > 1 else 1.0
    weights = softmax(logs + np.log(width))
    order = np.argsort(-weights, kind="stable")
    kept = [i for i in order if weights[i] > SMALL_WEIGHT]
    total = weights[kept].sum()
    return [(weights[i] / total, fits[i]) for i in kept]
