"""Exact counts of large bags by divide and conquer: a tree of halves whose distributions are convolved by FFT."""

import numpy as np
from scipy.signal import fftconvolve
from scipy.special import entr, expit, log_expit

from ..count_likelihood import exact_posterior, tilt

#: Rows of so many columns are convolved directly, which is faster for them.
SHORT = 32


def count_tree(pi):
    r"""Distributions of the counts of ever larger parts of a bag.

    Equation :eq:`eq-losses-tree`.

    Parameters
    ----------
    pi : ndarray, shape (n,)
        Probabilities of the labels.

    Returns
    -------
    list of ndarray
        Level h has shape (m / 2^h, 2^h + 1), for the power of two m that holds n: row r is the distribution of the
        count of the instances ``r * 2**h`` to ``(r + 1) * 2**h``. Instances beyond n are negative for sure. The last
        level has one row, the distribution of the count of the bag. In time :math:`O(n \log^2 n)`.
    """
    padded = np.zeros(1 << (len(pi) - 1).bit_length())
    padded[: len(pi)] = pi
    levels = [np.column_stack([1 - padded, padded])]
    while len(levels[-1]) > 1:
        left, right = levels[-1][::2], levels[-1][1::2]
        # eq: eq-losses-tree
        levels.append(np.maximum(convolve_rows(left, right), 0))
    return levels


def pass_down(levels, weights):
    r"""Posterior of each label given what is known of the count, from the tree of `count_tree`.

    Downwards, each part is told how likely each of its counts makes what is known, equation :eq:`eq-losses-down`.

    Parameters
    ----------
    levels : list of ndarray
    weights : ndarray, shape (m + 1,)
        How likely each count makes what is known: 1 at a known count, else 0.

    Returns
    -------
    ndarray, shape (m,)
    """
    told = weights[None, :]
    for level in reversed(levels[:-1]):
        size = level.shape[1] - 1
        both = np.empty_like(level)
        for side in (0, 1):
            other = level[1 - side :: 2, ::-1]
            # eq: eq-losses-down
            both[side::2] = convolve_rows(told, other)[:, size : 2 * size + 1]
        told = np.maximum(both, 0)
        told /= told.max(axis=1, keepdims=True)
    joint = told * levels[0]
    return joint[:, 1] / joint.sum(axis=1)


def convolve_rows(one, two):
    """The rows of two matrices convolved: by Fourier transform, or directly where the second has few columns.

    Parameters
    ----------
    one, two : ndarray, shape (n_rows, n_one) and (n_rows, n_two)

    Returns
    -------
    ndarray, shape (n_rows, n_one + n_two - 1)
    """
    if two.shape[1] > SHORT:
        return fftconvolve(one, two, axes=1)
    found = np.zeros((len(one), one.shape[1] + two.shape[1] - 1))
    for j, column in enumerate(two.T):
        found[:, j : j + one.shape[1]] += one * column[:, None]
    return found


def fft_posterior(pi, known):
    r"""Probability of each count and posterior of each label, as `exact_posterior` but in :math:`O(n \log^2 n)`.

    Parameters
    ----------
    pi : ndarray, shape (n_instances,)
        Tilted probabilities: the observed count is the expected one, and so none of its chances is lost in rounding.
    known : BagCounts
        Counts are whole and known.

    Returns
    -------
    log_p : ndarray, shape (n_bags,)
    posterior : ndarray, shape (n_instances,)
    """
    log_p, posterior = np.empty(len(known.sizes)), np.empty_like(pi)
    order = np.argsort(known.bags, kind="stable")
    for k, rows in enumerate(np.split(order, np.cumsum(known.sizes)[:-1])):
        levels = count_tree(pi[rows])
        weights = np.zeros(levels[-1].shape[1])
        weights[int(known.counts[k])] = 1.0
        log_p[k] = np.log(levels[-1][0, int(known.counts[k])])
        posterior[rows] = pass_down(levels, weights)[: len(rows)]
    return log_p, posterior


def fft_count_posterior(f, known, exact_up_to=20):
    """`llpbook.count_likelihood.count_posterior` with the exact likelihood for bags of every size.

    Parameters
    ----------
    f : ndarray, shape (n_instances,)
        Log-odds.
    known : BagCounts
        Whole counts without errors.
    exact_up_to : int, default 20
        Bags up to this size take the recursion, larger ones the transform.

    Returns
    -------
    log_likelihood : ndarray, shape (n_bags,)
    posterior : ndarray, shape (n_instances,)

    Raises
    ------
    ValueError
        If a count is not whole, or has an error.
    """
    vague = (known.counts != np.round(known.counts)) | (known.errors > 0)
    if vague.any():
        raise ValueError(
            f"ExactCountLoss needs whole counts that are known, got a count of {known.counts[vague][0]:.6g}; "
            "CountLoss takes others"
        )
    t = tilt(f, known)
    pi = expit(f + t[known.bags])
    log_p, posterior = np.zeros(len(known.sizes)), pi.copy()
    small = known.sizes <= exact_up_to
    for part, compute in ((small, exact_posterior), (~small, fft_posterior)):
        part = part & np.isfinite(t)  # a pure bag has its labels
        if part.any():
            rows, args = part[known.bags], (t[part],) * (compute is exact_posterior)
            log_p[part], posterior[rows] = compute(pi[rows], known.part(part), *args)
    cross = pi * log_expit(f) + (1 - pi) * log_expit(-f)
    return log_p + known.sums(cross + entr(pi) + entr(1 - pi)), posterior
