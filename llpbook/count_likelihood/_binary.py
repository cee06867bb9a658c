"""The likelihood of the counts of two classes, and the posterior of each label."""

import numpy as np
from scipy.special import logit

from .._linear import MISCOUNT, TILT_STEPS
from ..base import expit, softplus

#: Added to a variance, it makes the saddlepoint's probability of a certain count 1.
LATTICE = 1 / (2 * np.pi)
#: Numbers of a part of bags; without Laplace errors, whose bags may be large, there are at most so many parts.
EXACT_CELLS, MOST_PARTS = 2**21, 10


def tilt(f, observed, start=None):
    r"""Number to add to the log-odds of a bag so that the expected count is the observed one.

    :math:`\sum_{i \in B_k} \sigma(f_i + t_k) + \tau_k^2 t_k = c_k`, equation :eq:`eq-counts-tilt`, with
    :math:`\tau_k^2` the variance of the error of the count. Newton's method inside a bracket, all bags at once.

    Parameters
    ----------
    f : ndarray, shape (n_instances,)
        Log-odds.
    observed : BagCounts
    start : ndarray, shape (n_bags,), optional
        The tilt for other log-odds that were nearly these.

    Returns
    -------
    ndarray, shape (n_bags,)
        Infinite for a bag that is known to be pure.
    """
    n, c, tau = observed.sizes, observed.counts, observed.errors
    t, low, high = bracket(f, observed, start)
    for _ in range(TILT_STEPS):
        pi = expit(f + t[observed.bags])
        # eq: eq-counts-tilt
        gap = observed.sums(pi) + tau * np.where(tau > 0, t, 0) - c
        gap[np.abs(gap) <= MISCOUNT * n] = 0
        low, high = np.where(gap < 0, t, low), np.where(gap > 0, t, high)
        slope = observed.sums(pi * (1 - pi)) + tau
        with np.errstate(over="ignore"):  # then the bracket is halved
            new = t - np.divide(gap, slope, out=np.zeros_like(gap), where=slope > 0)
        wrong = (gap != 0) & ~((new > low) & (new < high))
        t = np.where(wrong, low / 2 + high / 2, new)
        # A Newton step leaves at most gap²/2 slope of a small gap.
        if not wrong.any() and np.all(gap**2 <= MISCOUNT * n * slope):
            break
    return t


def bracket(f, observed, start=None):
    """First guess of the tilt, and bounds of it from below and above.

    Parameters
    ----------
    f, observed, start
        As of `tilt`. Without a start the guess is the tilt of a bag whose instances are alike.

    Returns
    -------
    t, low, high : ndarray, shape (n_bags,)
    """
    n, c, tau = observed.sizes, observed.counts, observed.errors
    bottom, top = observed.bounds(f)
    goal, noisy = logit(np.clip(c / n, 0, 1)), np.maximum(tau, 1e-300)
    low = np.where(tau > 0, (c - n) / noisy, goal - top)
    high = np.where(tau > 0, c / noisy, goal - bottom)
    if start is None:
        mean = np.clip(observed.sums(expit(f)) / n, 1e-12, 1 - 1e-12)
        start = np.where(tau > 0, 0.0, goal - logit(mean))
    return np.clip(start, low, high), low, high


def exact_posterior(pi, observed, t):
    r"""Probability of the count, and of each label given the count, by a sum over all labelings.

    With :math:`F_i(j)` the probability of j positives among the first i instances of the bag (equation
    :eq:`eq-counts-forward`) and :math:`G_i(j)` that the rest brings j to the observed count, the posterior is
    :math:`\pi_i \sum_j F_{i-1}(j) G_i(j + 1) / P`, equation :eq:`eq-counts-posterior`.

    Parameters
    ----------
    pi : ndarray, shape (n_instances,)
        Tilted probabilities, not all 0 or 1 in a bag.
    observed : BagCounts
    t : ndarray, shape (n_bags,)
        The tilt: an uncertain count is weighed as it was before it.

    Returns
    -------
    log_p : ndarray, shape (n_bags,)
    posterior : ndarray, shape (n_instances,)
        In time and memory :math:`O(m)` an instance, for a largest bag of m.
    """
    order = np.argsort(observed.bags, kind="stable")
    first = np.cumsum(observed.sizes) - observed.sizes
    place = np.arange(len(pi)) - first[observed.bags[order]], observed.bags[order]
    s = np.zeros((observed.sizes.max(), len(observed.sizes)))
    s[place] = pi[order]
    weights, shift = count_weights(observed, t, len(s))
    F, G = np.zeros((2, len(s) + 1, *weights.shape))
    F[0, :, 0], G[-1] = 1.0, weights
    for i in range(len(s)):
        # eq: eq-counts-forward
        F[i + 1] = (1 - s[i])[:, None] * F[i]
        F[i + 1, :, 1:] += s[i][:, None] * F[i, :, :-1]
    for i in reversed(range(len(s))):
        G[i] = (1 - s[i])[:, None] * G[i + 1]
        G[i, :, :-1] += s[i][:, None] * G[i + 1, :, 1:]
    # eq: eq-counts-posterior
    joint = s * np.einsum("ikj,ikj->ik", F[:-1, :, :-1], G[1:, :, 1:])
    posterior = np.empty_like(pi)
    posterior[order] = (joint / G[0, :, 0])[place]
    return np.log(G[0, :, 0]) + shift, posterior


def count_weights(observed, t, largest):
    """Likelihood of the observed count for each true count, tilted as the labels are.

    Parameters
    ----------
    observed : BagCounts
    t : ndarray, shape (n_bags,)
    largest : int
        Size of the largest bag.

    Returns
    -------
    weights : ndarray, shape (n_bags, largest + 1)
        The largest is 1.
    shift : ndarray, shape (n_bags,)
        Logarithm of what they were divided by.
    """
    away = np.arange(largest + 1) - observed.counts[:, None]
    tau, t = observed.errors[:, None], t[:, None]
    certain = (tau == 0) & (np.abs(away) >= 1)
    hat = np.log(np.maximum(1 - np.abs(away), 1e-300)) - t * away
    bell = -0.5 * (away + tau * t) ** 2 / np.maximum(tau, 1e-300)
    if observed.laplace:
        bell = -np.abs(away) / np.sqrt(np.maximum(tau, 1e-300) / 2) - t * away
    log_w = np.where(certain, -np.inf, np.where(tau > 0, bell, hat))
    shift = log_w.max(axis=1)
    return np.exp(log_w - shift[:, None]), shift


def saddlepoint_posterior(pi, observed):
    r"""Probability of the count, and of each label given the count, from three moments of the tilted count.

    :math:`P \approx (1 + 2 \pi V)^{-1/2}`, equation :eq:`eq-counts-saddlepoint`, with :math:`V = \sum_i v_i`,
    :math:`v_i = \pi_i (1 - \pi_i)`: 1 where the count is certain, the normal density at its mean where it is not. The
    posterior is the gradient of its logarithm, equation :eq:`eq-counts-saddle-posterior`.

    Parameters
    ----------
    pi : ndarray, shape (n_instances,)
        Tilted probabilities.
    observed : BagCounts

    Returns
    -------
    log_p : ndarray, shape (n_bags,)
    posterior : ndarray, shape (n_instances,)
        Off from the exact one by some thousandths for bags of 50.
    """
    v, tau = pi * (1 - pi), observed.errors
    V = observed.sums(v) + tau
    third = observed.sums(v * (1 - 2 * pi))
    third = np.divide(third, V, out=np.zeros_like(V), where=V > 0)
    # eq: eq-counts-saddlepoint
    log_p = -0.5 * np.log((LATTICE + V) / (LATTICE + tau))
    # eq: eq-counts-saddle-posterior
    skew = (1 - 2 * pi) - third[observed.bags]
    return log_p, pi - 0.5 * v / (LATTICE + V)[observed.bags] * skew


def count_posterior(f, observed, exact_up_to=20, *, t=None):
    r"""Log-likelihood of the count of each bag, and the posterior of each label, given the count.

    The tilt changes the log-likelihood by :math:`-\sum_i \mathrm{KL}(\pi_i \Vert s_i) = \sum_i \log (1 - s_i) -
    \log (1 - \pi_i) - t_k c_k`, equation :eq:`eq-counts-tilted`; what remains is computed by `exact_posterior` or
    `saddlepoint_posterior`.

    Parameters
    ----------
    f : ndarray, shape (n_instances,)
        Log-odds.
    observed : BagCounts
    exact_up_to : int, default 20
        Size of the largest bag whose likelihood is computed exactly; with Laplace errors all are.
    t : ndarray, shape (n_bags,), optional
        The `tilt`, where it is known.

    Returns
    -------
    log_likelihood : ndarray, shape (n_bags,)
    posterior : ndarray, shape (n_instances,)
        Its difference to :math:`\sigma(f_i)` is the gradient of the sum of the log-likelihoods.
    """
    t, noisy = tilt(f, observed) if t is None else t, observed.errors > 0
    if observed.laplace:  # beyond this its tails would weigh more than the count
        most = np.sqrt(2 / np.where(noisy, observed.errors, 1))
        t = np.where(noisy, np.clip(t, -most, most), t)
    tilted = f + t[observed.bags]
    pi = expit(tilted)
    log_p, posterior = saddlepoint_posterior(pi, observed)
    small = (observed.sizes <= exact_up_to) & np.isfinite(t)
    for part in exact_parts(small, observed):
        of_instances, single = observed.part(part).instances()
        rows = np.flatnonzero(part[observed.bags])[of_instances]
        log_p[part], posterior[rows] = exact_posterior(pi[rows], single, t[part])
    pure, gaussian = np.isinf(t), noisy & (not observed.laplace)
    t, moved = np.where(pure, 0, t), softplus(tilted)
    if pure.any():
        moved = np.where(pure[observed.bags], pi * f, moved)
    misfit = t * observed.counts - np.where(gaussian, observed.errors * t**2 / 2, 0)
    # eq: eq-counts-tilted
    return log_p + observed.sums(moved - softplus(f)) - misfit, posterior


def count_factors(f, observed, deviation=0.0):
    r"""Factors of the Fisher information of the counts.

    Of the bags' counts the weights have the information :math:`\sum_k V_k \bar x_k \bar x_k^\top + r_k r_k^\top /
    2 V_k^2` up to :math:`O(1 / V_k)`, equation :eq:`eq-counts-information`. Where each bag has an intercept of the
    deviation :math:`\tau`, the variance of a count is :math:`V_k + \tau^2 V_k^2`.

    Parameters
    ----------
    f : ndarray, shape (n_instances,)
        Log-odds.
    observed : BagCounts
    deviation : float, default 0.0
        Of the intercepts.

    Returns
    -------
    list of two ndarray, shape (n_instances,)
        The sums :math:`\sum_{i \in B_k} a_i x_i` are :math:`\sqrt{V_k}\, \bar x_k` and
        :math:`r_k / \sqrt2 V_k`.
    """
    s = expit(f)
    v = s * (1 - s)
    V = np.maximum(observed.sums(v) + observed.errors, 1e-12)
    skew = (1 - 2 * s) - (observed.sums(v * (1 - 2 * s)) / V)[observed.bags]
    wider = 1 + deviation**2 * V
    more = (1 + 2 * deviation**2 * V) / wider
    # eq: eq-counts-information
    return [
        v / np.sqrt(V * wider)[observed.bags],
        v * skew * (more / (np.sqrt(2) * V))[observed.bags],
    ]


def exact_parts(small, observed):
    """Masks of bags whose likelihood is computed exactly, in parts of about one size, to save memory.

    Parameters
    ----------
    small : ndarray of bool, shape (n_bags,)
        Bags that are small enough.
    observed : BagCounts
        With Laplace errors all bags with errors are among them.

    Returns
    -------
    list of ndarray of bool, shape (n_bags,)
    """
    order = np.argsort(observed.sizes, kind="stable")
    order = order[(small | (observed.laplace & (observed.errors > 0)))[order]]
    cells, first, parts = (observed.sizes[order] + 1.0) ** 2, 0, []
    least = EXACT_CELLS if observed.laplace else cells.sum() / MOST_PARTS
    most = max(EXACT_CELLS, least)
    while first < len(order):
        # A part of j bags takes j times the square of its largest.
        taken = np.arange(1, len(order) - first + 1) * cells[first:]
        last = first + max(1, int(np.searchsorted(taken, most)))
        part = np.zeros(len(observed.sizes), bool)
        part[order[first:last]] = True
        parts.append(part)
        first = last
    return parts
