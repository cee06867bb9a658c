"""Which method finds P(y | x) from infinitely many bags: exact solutions in small worlds, one per dependence.

A world is a mixture of kinds of bags; each kind draws its instances, which have three values, from its own joint
distribution of value and label. Bags of a fixed size are enumerated with their probabilities: how many instances of
each value, and how many positives. So the expectation of each objective is a finite sum, and its minimizer over all
functions of the three values is what the method converges to.
"""

from functools import cache
from itertools import product
from math import comb

import numpy as np
import pandas as pd
from scipy.optimize import minimize
from scipy.special import expit, logit, xlogy

VALUES = 3
#: By name: weight of each kind of bag, and its joint distribution, shape (values, labels).
POSITIVE, NEGATIVE = np.array([0.1, 0.3, 0.6]), np.array([0.5, 0.3, 0.2])
EARLY, LATE = np.array([0.6, 0.3, 0.1]), np.array([0.1, 0.2, 0.7])


def by_label(share):
    """P(x | y) is the same in all bags."""
    return np.column_stack([(1 - share) * NEGATIVE, share * POSITIVE])


def by_value(x, positive):
    """The values have the distribution x, and given them the labels are positive with some probabilities."""
    return np.column_stack([x * (1 - positive), x * positive])


BALANCED = np.array([0.3, 0.4, 0.3])
RISING = np.array([0.55, 0.2, 0.7])
WORLDS = {
    "random bags": [(1.0, by_label(0.4))],
    "X ⊥ B | Y": [(0.5, by_label(0.1)), (0.5, by_label(0.7))],
    "Y ⊥ B | X": [(0.5, by_value(EARLY, RISING)), (0.5, by_value(LATE, RISING))],
    "X ⊥ B": [
        (0.5, by_value(BALANCED, np.array([0.25, 0.1, 0.45]))),
        (0.5, by_value(BALANCED, np.array([0.75, 0.3, 0.9]))),
    ],
    "neither": [
        (0.5, by_value(EARLY, np.array([0.25, 0.1, 0.45]))),
        (0.5, by_value(LATE, np.array([0.75, 0.3, 0.9]))),
    ],
}


@cache
def bags_of(world, size):
    """All bags of a size.

    Parameters
    ----------
    world : str
    size : int

    Returns
    -------
    H : ndarray, shape (n, VALUES)
        Instances of each value.
    c : ndarray, shape (n,)
        Positives.
    P : ndarray, shape (n,)
        Probability.
    """
    rows = []
    for h in product(range(size + 1), repeat=VALUES):
        if sum(h) != size:
            continue
        orders = comb(size, h[0]) * comb(size - h[0], h[1])
        total = np.zeros(size + 1)
        for weight, joint in WORLDS[world]:
            counts = np.array([orders * weight])
            for value, times in enumerate(h):
                for _ in range(times):
                    counts = np.convolve(counts, joint[value])
            total += counts
        rows += [(*h, c, p) for c, p in enumerate(total)]
    table = np.array(rows)
    return table[:, :VALUES], table[:, VALUES].astype(int), table[:, -1]


def truth(world):
    """P(y = 1 | x) of all bags together, and P(x)."""
    joint = sum(weight * each for weight, each in WORLDS[world])
    return joint[:, 1] / joint.sum(axis=1), joint.sum(axis=1)


def count_likelihoods(s, H, c):
    """Probability of the count of each bag, if the labels are independent with probabilities s."""
    found, size = np.empty(len(H)), int(H[0].sum())
    for first in range(
        0, len(H), size + 1
    ):  # the bags of one composition follow one another
        counts = np.array([1.0])
        for value, times in enumerate(H[first].astype(int)):
            for _ in range(times):
                counts = np.convolve(counts, [1 - s[value], s[value]])
        found[first : first + size + 1] = counts
    return found


def lowest(objective, start):
    return expit(minimize(objective, start, method="BFGS", tol=1e-12).x)


def solutions(world, size):
    """What each method converges to.

    Parameters
    ----------
    world : str
    size : int
        Of the bags, at least 2.

    Returns
    -------
    DataFrame
        One row per method: P(y = 1 | x) by value.
    """
    H, c, P = bags_of(world, size)
    star, px = truth(world)
    p, shares, eta = c / size, H / size, px @ star
    spread = P @ (p - eta) ** 2
    slope = (P * (p - eta)) @ shares / spread
    start = logit(np.clip(star, 0.02, 0.98))

    def proportion(f):
        mean = shares @ expit(f)
        return -P @ (xlogy(p, mean) + xlogy(1 - p, 1 - mean))

    def counts(f):
        return -P @ np.log(np.maximum(count_likelihoods(expit(f), H, c), 1e-300))

    def forward(f):
        value = 0.0
        for a, b in product(range(size + 1), repeat=2):
            if b < a:
                given = weight[b] * D[a], weight[a] * D[b]
                value -= pair(f, a / size, b / size, *given)
        return value

    def pair(f, first, second, of_first, of_second):
        """Log-likelihood of the question which of two bags an instance of either is from."""
        high, low = first / (first + second), (1 - first) / (2 - first - second)
        tilted = expit(f + logit((first + second) / 2) - logit(eta))
        q = np.clip(low + (high - low) * tilted, 1e-12, 1 - 1e-12)
        return of_first @ np.log(q) + of_second @ np.log(1 - q)

    # By the count of a bag: how often the values occur.
    D = np.array([P[c == k] @ shares[c == k] for k in range(size + 1)])
    weight = np.array([P[c == k].sum() for k in range(size + 1)])
    square = (shares * P[:, None]).T @ shares
    found = {
        "MeanMap": eta * (px + (1 - eta) * slope) / px,
        "ridge": np.linalg.solve(square, (shares * P[:, None]).T @ p),
        "proportion loss": lowest(proportion, start),
        "counts": lowest(counts, start),
        "hard EM": hard_em(H, c, P, star, px),
        "EasyLLP": (P * (size * (p - eta) + eta)) @ shares / px,
        "EasyLLP, n/w": (P * (eta + eta * (1 - eta) / spread * (p - eta)))
        @ shares
        / px,
    }
    found["forward pairs"] = min(
        (lowest(forward, f) for f in (start, np.zeros(VALUES))),
        key=lambda s: forward(logit(np.clip(s, 1e-9, 1 - 1e-9))),
    )
    return pd.DataFrame(found).T


def hard_em(H, c, P, start, px):
    """Labels by rank within each bag and their shares by value, in turns."""
    s, size = start, H[0].sum()
    for _ in range(200):
        number = np.zeros(VALUES)
        for h, left, weight in zip(H, c, P, strict=True):
            for value in np.argsort(-s):
                given = min(h[value], left)
                number[value] += weight * given / size
                left = left - given
        new = number / px
        if np.allclose(new, s, atol=1e-12):
            break
        s = new
    return s


def table(size=3):
    """The largest error of each method in each world.

    Parameters
    ----------
    size : int, default 3
        Of the bags.

    Returns
    -------
    DataFrame
        One row per method, one column per world.
    """
    cells = {
        world: (solutions(world, size) - truth(world)[0]).abs().max(axis=1)
        for world in WORLDS
    }
    return pd.DataFrame(cells)
