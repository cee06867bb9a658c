"""The two steps, the objective that they minimize, and the levels of C."""

import numpy as np

from .._counts import ranks
from .._linear import minimize_hinges


def objective(w, f, y, bags, shares, C, penalties):
    r"""Objective of alter-∝SVM, a function of labels and hyperplane.

    Equation :eq:`eq-alter-svm-objective`.

    Parameters
    ----------
    w : ndarray, shape (n_features,)
    f : ndarray, shape (n_instances,)
        Scores, with the intercept.
    y : ndarray of -1 and 1, shape (n_instances,)
    bags : ndarray of int, shape (n_instances,)
    shares : ndarray, shape (n_bags,)
        Share of the positive class in each bag.
    C : float
    penalties : ndarray, shape (n_bags,)
        :math:`c_k`. An infinite entry means that the share is kept, at no cost.

    Returns
    -------
    float
    """
    sizes = np.maximum(np.bincount(bags, minlength=len(shares)), 1)
    predicted = np.bincount(bags, y > 0, minlength=len(shares)) / sizes
    hinges = np.maximum(0, 1 - y * f)
    soft = np.isfinite(penalties)
    errors = np.abs(predicted - shares)[soft]
    # eq: eq-alter-svm-objective
    return w @ w / 2 + C * hinges.sum() + penalties[soft] @ errors


def svm_step(X, y, C, *, intercept=True, warm=None, tol=1e-9):
    """Fit the support vector machine for given labels.

    Parameters
    ----------
    X : ndarray or sparse array, shape (n_instances, n_features)
    y : ndarray of -1 and 1, shape (n_instances,)
    C : float
    intercept : bool, default True
    warm : tuple, optional
        Weights, intercept and multipliers near the solution, and the first width of rounding.
    tol : float, default 1e-9
        Stop at this gap between primal and dual objective, relative to the minimum.

    Returns
    -------
    w : ndarray, shape (n_features,)
    b : float
    nu : ndarray, shape (n_instances,)
        Multipliers; ``(nu * y) @ X`` is w.
    n_iter : int
        Newton steps.
    gap : float
        Gap between primal and dual objective at the end, relative to the minimum.
    """
    ones = np.ones(len(y))
    return minimize_hinges(
        X, y, ones, C * ones, intercept=intercept, warm=warm, tol=tol
    )


def flip_gain(f):
    r"""Fall of the hinge if a label turns from -1 to 1; it increases with the score.

    :math:`\delta_i = \max(0, 1 + f_i) - \max(0, 1 - f_i)`, equation :eq:`eq-alter-svm-gain`.

    Parameters
    ----------
    f : ndarray

    Returns
    -------
    ndarray
    """
    # eq: eq-alter-svm-gain
    return np.maximum(0, 1 + f) - np.maximum(0, 1 - f)


def count_cost(r, size, share, penalty):
    r"""Cost of one more positive in a bag that has r positives.

    :math:`\frac{c_k}{n_k} (|r + 1 - n_k p_k| - |r - n_k p_k|)`; it does not fall with r: equation
    :eq:`eq-alter-svm-count`.

    Parameters
    ----------
    r, size, share, penalty : ndarray or float
        Arrays that can be broadcast together.

    Returns
    -------
    ndarray
    """
    before, after = r / size - share, (r + 1) / size - share
    # eq: eq-alter-svm-count
    return penalty * (np.abs(after) - np.abs(before))


def bag_step(f, bags, shares, C, penalties):
    r"""Best labels of all bags for given scores, exactly.

    Equation :eq:`eq-alter-svm-bag-step`.

    The r-th largest score of a bag becomes positive if its gain exceeds the cost of one more positive. Gains fall along
    the ranks and costs do not fall, so no sum over ranks is needed. :math:`O(n \log n)`.

    Parameters
    ----------
    f, bags, shares, C, penalties
        As for `objective`.

    Returns
    -------
    ndarray of -1 and 1, shape (n_instances,)
    """
    size = np.bincount(bags, minlength=len(shares))[bags]
    cost = count_cost(ranks(f, bags), size, shares[bags], penalties[bags])
    # eq: eq-alter-svm-bag-step
    return np.where(C * flip_gain(f) > cost, 1.0, -1.0)


def first_level(X, y):
    r"""First value of C, at which the scores spread by half a margin.

    At small C every instance is inside the margin, so :math:`w = C \sum_j (y_j - \bar y) x_j`, and the spread of the
    scores is proportional to C, equation :eq:`eq-alter-svm-first`.

    Parameters
    ----------
    X : ndarray or sparse array, shape (n_instances, n_features)
    y : ndarray of -1 and 1, shape (n_instances,)

    Returns
    -------
    float
        Infinite if all instances are equal.
    """
    # eq: eq-alter-svm-first
    spread = (X @ ((y - y.mean()) @ X)).std()
    return 0.5 / spread if spread > 0 else np.inf


def levels(C, first, *, factor=3.0):
    """Values of C from the first to the last, each ``factor`` times the one before.

    Parameters
    ----------
    C, first : float
        The last value, and the first one, if it is below C.
    factor : float, default 3.0

    Returns
    -------
    list of float
    """
    values = [min(first, C)]
    while values[-1] < C:
        values.append(min(factor * values[-1], C))
    return values
