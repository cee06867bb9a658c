r"""From rates of strata to the people of each place: cells that meet both margins, their slopes and variances."""

from dataclasses import replace

import numpy as np

from ._strata import TINY, fit_rates, label_spread, place_sums

#: Rounds of proportional fitting, and how close, in people, the margins must be met.
FITTING_ROUNDS, CLOSE = 500, 1e-6


def fitted_cells(margins, rates):
    r"""People by place, group and class that meet both margins and keep the odds ratios of the rates.

    :math:`x_{kgj} = N_{kg}\, s_{rgj}\, \alpha_{kg} \beta_{kj}`, equation :eq:`eq-ecological-cells`, by iterative
    proportional fitting: what all in a place share is taken from its counts.

    Parameters
    ----------
    margins : Margins
    rates : ndarray, shape (n_strata, n_groups, n_classes)

    Returns
    -------
    ndarray, shape (n_places, n_groups, n_classes)
    """
    N, c = margins.members, margins.counts
    # eq: eq-ecological-cells
    x = N[:, :, None] * rates[margins.stratum]
    for _ in range(FITTING_ROUNDS):
        sums = np.einsum("kgj->kj", x)
        if np.abs(sums - c).max() <= CLOSE * max(1.0, c.max()):
            break
        x = x * np.divide(c, sums, out=np.zeros_like(c), where=sums > 0)[:, None, :]
        sums = np.einsum("kgj->kg", x)
        x = x * np.divide(N, sums, out=np.zeros_like(N), where=sums > 0)[:, :, None]
    return x


def given_margins(variances):
    """Covariances of the cells of each place given the sum over its groups.

    Parameters
    ----------
    variances : ndarray, shape (n_places, n_groups, n_contrasts, n_contrasts)

    Returns
    -------
    ndarray, shape (n_places, n_columns, n_columns)
        Columns: groups by contrasts.
    """
    K, G, d, _ = variances.shape
    tall = variances.reshape(K, G * d, d)
    inverse = np.linalg.inv(variances.sum(axis=1) + TINY * np.eye(d))
    result = -tall @ inverse @ tall.transpose(0, 2, 1)
    blocks = result.reshape(K, G, d, G, d)
    own = np.arange(G)
    blocks[:, own, :, own, :] += variances.transpose(1, 0, 2, 3)
    return result


def cell_slopes(margins, cells, deviation):
    """Sums by stratum: derivatives of the cells by the scores, and their covariance given the scores.

    Parameters
    ----------
    margins : Margins
    cells : ndarray, shape (n_places, n_groups, n_classes)
    deviation : float

    Returns
    -------
    slopes, chance : ndarray, shape (n_strata, n_columns, n_columns)
    """
    N = margins.members[:, :, None]
    shares = np.divide(cells, N, out=np.zeros_like(cells), where=N > 0)
    W = label_spread(shares, margins.contrasts) * N[..., None]
    slopes = margins.by_stratum(given_margins(W))
    chance = given_margins(W + 0.5 * deviation**2 * W @ W)
    return slopes, margins.by_stratum(chance)


def standard_shares(margins):
    """Shares of the groups minus those of the stratum, rotated and scaled to unit variance over people.

    Returns
    -------
    ndarray, shape (n_places, n_directions)
        One direction less than groups; fewer where shares do not differ.
    """
    n = margins.sizes[:, None]
    of_strata = margins.by_stratum(margins.members) / margins.by_stratum(n)
    gaps = margins.members / n - of_strata[margins.stratum]
    values, vectors = np.linalg.eigh((gaps * n).T @ gaps / n.sum())
    kept = values > TINY * max(values.max(), TINY)
    return gaps @ vectors[:, kept] / np.sqrt(values[kept])


def push_of_shares(margins, sums, rates, shares):
    """Change of the gradient by a shift of everybody's scores in proportion to each direction of the shares.

    Parameters
    ----------
    margins : Margins
    sums : Sums
    rates : ndarray, shape (n_strata, n_groups, n_classes)
    shares : ndarray, shape (n_places, n_directions)
        From `standard_shares`.

    Returns
    -------
    ndarray, shape (n_strata, n_columns, n_directions * n_contrasts)
    """
    N, W = margins.members, label_spread(rates, margins.contrasts)
    parts = []
    for z in shares.T:
        pairs = (z[:, None, None] * N[:, :, None] * N[:, None, :])[..., None, None]
        weights = margins.by_stratum(pairs * sums.inverses[:, None, None])
        moved = np.einsum("rgij,rghjk,rhkl->rgil", W, weights, W)
        parts.append(-moved.reshape(len(rates), -1, W.shape[-1]))
    return np.concatenate(parts, axis=2)


def shifted_fit(margins, sums, fit, prior, shift):
    """Fit with a stated shift of the scores of everybody in a place; the rates are those without it.

    Parameters
    ----------
    margins : Margins
    sums : Sums
    fit : Fit
        Without the shift.
    prior : Prior
        Of the fit.
    shift : ndarray, shape (n_places, n_contrasts)

    Returns
    -------
    Fit
    """
    alone = replace(margins, stratum=np.arange(len(margins.stratum)))
    of_places = place_sums(alone, sums.inverses)
    shifted = replace(of_places, shift=shift, stratum=margins.stratum)
    return fit_rates(margins, shifted, prior, fit)
