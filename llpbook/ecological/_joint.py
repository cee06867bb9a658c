"""Joint estimate of all cells: values, intervals and bands of any quotient of sums of cells."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.stats import chi2, multivariate_normal
from scipy.stats import t as student

from ._cells import (
    cell_slopes,
    fitted_cells,
    push_of_shares,
    shifted_fit,
    standard_shares,
)
from ._strata import (
    Fit,
    Margins,
    Sums,
    average_fits,
    fit_deviation,
    label_spread,
    misfits,
    place_variances,
    prior_of,
)

#: Parts of the places that are held out in turn.
FOLDS = 5


class Ratios(NamedTuple):
    """Quotients of sums of cells, such as the rate of a class in a group.

    Attributes
    ----------
    top, bottom : ndarray, shape (n_ratios, n_groups, n_classes)
        Weights of the cells in numerator and denominator.
    """

    top: np.ndarray
    bottom: np.ndarray

    def of(self, cells):
        """Values for cells of shape (..., n_groups, n_classes), shape (..., n_ratios); NaN where nobody is."""
        top = np.einsum("mgc,...gc->...m", self.top, cells)
        bottom = np.einsum("mgc,...gc->...m", self.bottom, cells)
        return np.divide(top, bottom, out=np.full_like(top, np.nan), where=bottom > 0)

    def gradient(self, cells):
        """Derivatives by the cells, shape (..., n_ratios, n_groups, n_classes)."""
        bottom = np.einsum("mgc,...gc->...m", self.bottom, cells)[..., None, None]
        slopes = self.top - self.of(cells)[..., None, None] * self.bottom
        return np.divide(slopes, bottom, out=np.zeros_like(slopes), where=bottom > 0)


class Difference(NamedTuple):
    """The difference of two `Ratios`, with the same methods."""

    first: Ratios
    second: Ratios

    def of(self, cells):
        """Values, see `Ratios.of`."""
        return self.first.of(cells) - self.second.of(cells)

    def gradient(self, cells):
        """Derivatives by the cells, see `Ratios.gradient`."""
        return self.first.gradient(cells) - self.second.gradient(cells)


class Part(NamedTuple):
    """One of the fits that are averaged: weight, fit, and cells of shape (n_strata, n_groups, n_classes)."""

    weight: float
    fit: Fit
    cells: np.ndarray


@dataclass(frozen=True)
class Joint:
    """Joint estimate of all cells from the margins.

    Attributes
    ----------
    margins : Margins
    deviation : float
        Standard deviation of the log-odds of a group between the places of a stratum, beyond chance.
    freedom : float
        Degrees of freedom of that deviation.
    sums : Sums
    parts : tuple of Part
        The most probable one first.
    """

    margins: Margins
    deviation: float
    freedom: float
    sums: Sums
    parts: tuple

    @cached_property
    def cells(self):
        """The mean of the parts, shape (n_strata, n_groups, n_classes)."""
        return sum(part.weight * part.cells for part in self.parts)

    @cached_property
    def slopes(self):
        """Derivatives of the cells by the scores, and covariances given the scores, by stratum."""
        cells = fitted_cells(self.margins, self.parts[0].fit.rates)
        return cell_slopes(self.margins, cells, self.deviation)

    @cached_property
    def context(self):
        """Level of the `context_test`."""
        return context_test(self)

    @cached_property
    def responses(self):
        """Change of all cells by a shift along each of the standardized shares, to first order."""
        fit = self.parts[0].fit
        push = push_of_shares(self.margins, self.sums, fit.rates, self.shares)
        return (self.slopes[0] @ fit.response(push)).sum(axis=0)

    @cached_property
    def shares(self):
        """Shares of the groups within strata, standardized."""
        return standard_shares(self.margins)


def fit_joint(margins):
    """Compute the `Joint` estimate of all cells."""
    deviation, freedom, sums, fit = fit_deviation(margins)
    parts = [
        Part(weight, fit, margins.by_stratum(fitted_cells(margins, fit.rates)))
        for weight, fit in average_fits(margins, sums, fit)
    ]
    return Joint(margins, deviation, freedom, sums, tuple(parts))


def all_rates(margins):
    """The rate of each class in each group as `Ratios`."""
    G, J = len(margins.groups), len(margins.classes)
    top = np.eye(G * J).reshape(G, J, G, J)
    bottom = np.repeat(top.sum(axis=1), J, axis=0)
    return Ratios(top.reshape(-1, G, J), bottom)


def answers(joint, quantity, level, correlation, by_stratum=False):
    """Value, error, interval and band of each quantity.

    Parameters
    ----------
    joint : Joint
    quantity : Ratios or Difference
    level : float
    correlation : float
        The largest one, in absolute value, that the band allows for.
    by_stratum : bool, default False
        True for values in each stratum, False for those in all places.

    Returns
    -------
    dict of str to ndarray, shape (n_ratios,) or (n_strata, n_ratios)
    """
    cells = joint.cells if by_stratum else joint.cells.sum(axis=0)
    value, error = quantity.of(cells), np.sqrt(variances(joint, quantity, by_stratum))
    half = student.isf((1 - level) / 2, joint.freedom) * error
    down, up = moves(joint, quantity, correlation, by_stratum)
    return {
        "rate": value, "error": error, "low": value - half, "high": value + half,
        "band_low": value - half + down, "band_high": value + half + up,
    }  # fmt: skip


def variances(joint, quantity, by_stratum=False):
    """Variance of each quantity: within the averaged fits, and between them."""
    slopes, chance = joint.slopes
    cells = [p.cells if by_stratum else p.cells.sum(axis=0) for p in joint.parts]
    values = [quantity.of(x) for x in cells]
    mean = sum(p.weight * v for p, v in zip(joint.parts, values, strict=True))
    total = np.zeros_like(mean)
    for part, x, value in zip(joint.parts, cells, values, strict=True):
        g = quantity.gradient(x) @ joint.margins.contrasts
        g = g.reshape((*g.shape[:-2], -1))
        if by_stratum:
            spread = slopes @ part.fit.covariances() @ slopes.transpose(0, 2, 1)
            within = np.einsum("rmi,rij,rmj->rm", g, spread + chance, g)
        else:
            spread = part.fit.spread(slopes) + chance.sum(axis=0)
            within = np.einsum("mi,ij,mj->m", g, spread, g)
        total += part.weight * (within + (value - mean) ** 2)
    return total


def moves(joint, quantity, correlation, by_stratum=False):
    r"""Largest change of each quantity, down and up, by a correlation.

    Everybody in place k is shifted by :math:`\gamma^\top z_k`, with the standardized shares z of its groups and
    :math:`\lVert \gamma \rVert \le \rho \tau`, equation :eq:`eq-ecological-correlation`.

    Parameters
    ----------
    joint, quantity, correlation, by_stratum
        See `answers`.

    Returns
    -------
    down, up : ndarray, shape (n_ratios,) or (n_strata, n_ratios)
    """
    best = joint.parts[0]
    before = quantity.of(best.cells if by_stratum else best.cells.sum(axis=0))
    changes = [np.zeros_like(before)]
    # eq: eq-ecological-correlation
    size = correlation * joint.deviation
    for direction in worst_directions(joint, quantity) if size else []:
        for sign in (-1, 1):
            cells = shifted_cells(joint, sign * size * direction)
            after = quantity.of(cells if by_stratum else cells.sum(axis=0))
            changes.append(after - before)
    return np.min(changes, axis=0), np.max(changes, axis=0)


def worst_directions(joint, quantity):
    """Unit shifts along the standardized shares that move one of the quantities most, to first order.

    Returns
    -------
    ndarray, shape (n_shifts, n_directions * n_contrasts)
        Each once, whatever its sign.
    """
    best, H = joint.parts[0], joint.margins.contrasts
    g = quantity.gradient(best.cells.sum(axis=0)) @ H
    slopes = g.reshape(len(g), -1) @ joint.responses
    size = np.linalg.norm(slopes, axis=1, keepdims=True)
    kept = size[:, 0] > 1e-9 * max(size.max(initial=0), 1e-9)
    units = slopes[kept] / size[kept]
    lead = np.argmax(np.abs(units) > 1e-6, axis=1)
    units = units * np.sign(np.take_along_axis(units, lead[:, None], axis=1))
    return np.unique(units.round(6), axis=0)


def shifted_cells(joint, shift):
    """Cells by stratum where a shift along the standardized shares, in log-odds, acts on everybody.

    Parameters
    ----------
    joint : Joint
    shift : ndarray, shape (n_directions * n_contrasts,)

    Returns
    -------
    ndarray, shape (n_strata, n_groups, n_classes)
    """
    margins, fit = joint.margins, joint.parts[0].fit
    # The difference of two log-odds is the square root of 2 times a contrast.
    scores = joint.shares @ shift.reshape(joint.shares.shape[1], -1) / np.sqrt(2)
    fit = shifted_fit(margins, joint.sums, fit, prior_of(margins, fit.sd), scores)
    return margins.by_stratum(fitted_cells(margins, fit.rates))


def context_test(joint):
    """Level of a score test of the shares of the groups, within strata, as features of everybody.

    The mean of the levels of the averaged fits: nearly all of such a relation looks like a difference between the
    groups, and what is left depends on the variance of the interactions.

    Parameters
    ----------
    joint : Joint

    Returns
    -------
    float
        NaN where the shares do not differ within strata.
    """
    m, z = joint.margins, joint.shares
    if not z.shape[1]:
        return np.nan
    levels = []
    for part in joint.parts:
        rates = part.fit.rates[m.stratum]
        gaps = misfits(m, part.fit.rates)
        W = label_spread(rates, m.contrasts)
        slopes = z[:, :, None, None] * np.einsum("kg,kgij->kij", m.members, W)[:, None]
        slopes = slopes.reshape(len(z), -1, W.shape[-1])
        score = np.einsum("kai,kij,kj->a", slopes, joint.sums.inverses, gaps)
        J = np.einsum("kai,kij,kbj->ab", slopes, joint.sums.inverses, slopes)
        push = push_of_shares(m, joint.sums, part.fit.rates, z)
        J -= np.einsum("ria,rib->ab", push, part.fit.response(push))
        levels.append(
            part.weight * chi2.sf(score @ np.linalg.pinv(J) @ score, len(score))
        )
    return float(sum(levels))


def gain_of_strata(margins, random_state):
    """Log-probability of the counts of held-out places with strata, minus that with one stratum.

    Parameters
    ----------
    margins : Margins
    random_state : RandomState

    Returns
    -------
    ndarray, shape (n_held_out,)
        A number per place; a place that is alone in its stratum is never held out.
    """
    fold = np.full(len(margins.stratum), -1)
    for r in range(len(margins.strata)):
        rows = np.flatnonzero(margins.stratum == r)
        if len(rows) > 1:
            fold[rows] = random_state.permutation(len(rows)) % FOLDS
    one = replace(margins, stratum=0 * margins.stratum, strata=margins.strata[:1])
    logs = []
    for m in (margins, one):
        parts = [_held_out(m, fold == k) for k in range(FOLDS) if (fold == k).any()]
        logs.append(np.concatenate(parts))
    return logs[0] - logs[1]


def _held_out(margins, out):
    """Log-density of the counts of some places by the fit to the others."""

    def part(rows):
        return replace(
            margins, members=margins.members[rows], counts=margins.counts[rows],
            stratum=margins.stratum[rows],
        )  # fmt: skip

    seen, left = part(~out), part(out)
    deviation, _, sums, start = fit_deviation(seen)
    fit = average_fits(seen, sums, start)[0][1]
    rates, d = fit.rates[left.stratum], left.contrasts.shape[1]
    gaps = misfits(left, fit.rates)
    W = left.members[:, :, None, None] * label_spread(rates, left.contrasts)
    slopes = W.transpose(0, 2, 1, 3).reshape(len(W), d, -1)
    spread = slopes @ fit.covariances()[left.stratum] @ slopes.transpose(0, 2, 1)
    V = spread + place_variances(left, fit.rates, deviation)
    return np.array(
        [multivariate_normal.logpdf(gap, cov=v) for gap, v in zip(gaps, V, strict=True)]
    )
