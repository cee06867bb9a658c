"""The relaxed problem over all labelings that agree with the shares, by cutting planes.

There are too many such labelings to list, but few have weight in the mixture. So a round has two steps (`minimize`).
First it solves the relaxed problem for the labelings at hand (`solve_relaxed`). Then it searches for violated
labelings, whose quadratics at the new alpha are larger than those of all labelings at hand, and adds them (`violated`).

The value does not rise from round to round. If the search found a violated labeling whenever there is one, the value
would end at that of all labelings. To find the most violated one is hard, so the search is a heuristic, and the value
at the end is an upper bound. Rounds end when the value falls by less than a small share of itself, when no violated
labeling is found, or when there are as many labelings as allowed.

Nearly all of the cost is in the relaxed problems, some ten linear systems in each round.
"""

import numpy as np
from threadpoolctl import threadpool_limits

from .._linear import TINY, as_array
from ._interior import solve_relaxed
from ._steps import cut, main_columns, quadratics, relaxed_value

#: Labelings that are added in a round, and the number of ascents of which each is the best. Without ascent one
#: labeling is added, as in the paper.
AT_ONCE, TRIED = 4, 2
#: Accuracy of the relaxed problem of a round, in units of the fall at which rounds end; and the finest accuracy that
#: rounding allows.
ACCURACY, LEAST_GAP = 0.2, 1e-7
#: A labeling is added if its quadratic exceeds all others by more than this share, which is above rounding errors.
LONGER = 1e-6
#: Up to so many instances the matrix of inner products is always used: it is cheap and has smaller rounding errors.
SMALL = 400


def violated(X, Y, columns, alpha, bags, fewest, most, ascent):
    """Labelings with larger quadratics than those at hand, the largest first: the best cut of each group of columns."""
    n_groups = min(AT_ONCE if ascent else 1, columns.shape[1])
    groups = [columns[:, k::n_groups] for k in range(n_groups)]
    cuts = [
        cut(X, group, alpha, bags, fewest, most, ascent=ascent, n_tried=TRIED)
        for group in groups
    ]
    new = np.unique(cuts, axis=0)
    q, longest = quadratics(X, new, alpha), quadratics(X, Y, alpha).max()
    order = np.argsort(-q, kind="stable")
    return new[order[: (q > (1 + LONGER) * longest).sum()]]


def by_gram(n, d, T):
    """True if inner products of all instances are less work for T labelings than their features."""
    return 2 * T * d > n or n <= SMALL


def peak_memory(n, d, T):
    """Bytes of a fit without a kernel: the Hessian by one of the two ways, the cuts, and moments of the features."""
    hessian = 3 * n**2 if by_gram(n, d, T) else 2 * d * T * (n + d * T)
    return 8.0 * (hessian + 6 * n * d + 3 * d**2)


def minimize(
    X, bags, fewest, most, C, *, ascent=True, max_planes=20, tol=1e-3, progress=None
):
    r"""Solve the relaxed problem by cutting planes: solve for the labelings at hand, add violated ones, repeat.

    With ascent, up to four labelings are added in a round, from four groups of columns; without ascent one, as in the
    paper. With T labelings at hand a round has some ten steps of :math:`O(n d^2 T^2)`, or of :math:`O(n^3)` if 2 d T
    exceeds n, which needs an n x n matrix.

    Parameters
    ----------
    X : ndarray or sparse array, shape (n_instances, n_features)
    bags, fewest, most
        As for `best_labels`.
    C : float
    ascent : bool, default True
        See `cut`.
    max_planes : int, default 20
        Largest number of labelings.
    tol : float, default 1e-3
        Stop if the value falls by less than this share of itself in a round.
    progress : callable, optional
        Called with a text after each round.

    Returns
    -------
    alpha : ndarray, shape (n_instances,)
    Y : ndarray of -1 and 1, shape (n_labelings, n_instances)
    mu : ndarray, shape (n_labelings,)
        Weights of the labelings, which sum to 1.
    values : list of float
        Value of the relaxed problem after each round; the values do not rise.
    gap : float
        Relative fall of the value in the last round; the first round falls from C n, the value without any labeling. 0
        if no violated labeling was found.
    """
    with threadpool_limits(1):
        n, d = X.shape
        columns, alpha = main_columns(X), np.full(n, 1 / n)
        Y = cut(X, columns, alpha, bags, fewest, most, ascent=ascent)[None, :]
        accuracy = max(ACCURACY * tol, LEAST_GAP)
        gram, warm, values = None, None, [C * n]
        while True:
            if gram is None and by_gram(n, d, len(Y)):
                gram = as_array(X @ X.T)
            warm = solve_relaxed(X, Y, C, gram=gram, warm=warm, tol=accuracy)
            alpha, mu = warm
            values.append(float(relaxed_value(X, Y, alpha)))
            if progress:
                progress(f"relaxed value {values[-1]:.6g}")
            gap = max(values[-2] - values[-1], 0) / max(values[-1], TINY)
            if len(values) > 2 and gap <= tol:
                break
            new = violated(X, Y, columns, alpha, bags, fewest, most, ascent)
            gap *= len(new) > 0
            if len(new) == 0 or len(Y) == max_planes:
                break
            Y = np.vstack([Y, new[: max_planes - len(Y)]])
    return alpha, Y, mu, values[1:], gap
