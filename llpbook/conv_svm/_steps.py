"""The allowed labelings, the relaxed problem, its cuts, and the labels of a mixture."""

import numpy as np
from scipy.linalg import eigh
from scipy.sparse import issparse

from .._counts import ranks
from .._linear import as_array, minimize_hinges


def allowed_counts(sizes, shares, epsilon):
    r"""The fewest and the most positives that a bag may have.

    :math:`|r / n_k - p_k| \le \epsilon_k`. If no count satisfies this, the nearest count is allowed, or both if
    two are equally near (`whole_counts` would choose one).

    Parameters
    ----------
    sizes : ndarray of int, shape (n_bags,)
    shares : ndarray, shape (n_bags,)
        Share of the positive class in each bag.
    epsilon : float or ndarray, shape (n_bags,)

    Returns
    -------
    fewest, most : ndarray of int, shape (n_bags,)
    """
    target, slack = sizes * shares, 1e-9
    fewest = np.ceil(target - sizes * epsilon - slack)
    most = np.floor(target + sizes * epsilon + slack)
    none = fewest > most
    fewest = np.where(none, np.ceil(target - 0.5 - slack), fewest)
    most = np.where(none, np.floor(target + 0.5 + slack), most)
    return tuple(np.clip(bound, 0, sizes).astype(int) for bound in (fewest, most))


def best_labels(scores, bags, fewest, most):
    r"""The allowed labels whose inner product with the scores is the largest.

    Equation :eq:`eq-conv-svm-bag-step`.

    Parameters
    ----------
    scores : ndarray, shape (n_instances,)
    bags : ndarray of int, shape (n_instances,)
    fewest, most : ndarray of int, shape (n_bags,)

    Returns
    -------
    ndarray of -1 and 1, shape (n_instances,)
    """
    rank = ranks(scores, bags)
    # eq: eq-conv-svm-bag-step
    positive = (rank < fewest[bags]) | ((scores > 0) & (rank < most[bags]))
    return np.where(positive, 1.0, -1.0)


def quadratics(X, Y, alpha):
    r"""Half the squared length of the weights of each labeling.

    Parameters
    ----------
    X : ndarray or sparse array, shape (n_instances, n_features)
    Y : ndarray of -1 and 1, shape (n_labelings, n_instances)
    alpha : ndarray, shape (n_instances,)

    Returns
    -------
    ndarray, shape (n_labelings,)
    """
    return ((Y * alpha) @ X) ** 2 @ np.ones(X.shape[1]) / 2


def relaxed_value(X, Y, alpha):
    r"""Objective of the relaxed problem, which alpha maximizes.

    Equation :eq:`eq-conv-svm-relaxed`.

    Parameters
    ----------
    X, Y, alpha
        As for `quadratics`.

    Returns
    -------
    float
    """
    # eq: eq-conv-svm-relaxed
    return alpha.sum() - quadratics(X, Y, alpha).max()


def labeled_value(X, y, C):
    """The minimum of the support vector machine for one labeling; the optimum of the relaxation is never above it.

    Parameters
    ----------
    X : ndarray or sparse array, shape (n_instances, n_features)
    y : ndarray of -1 and 1, shape (n_instances,)
    C : float

    Returns
    -------
    float
    """
    ones = np.ones(len(y))
    w = minimize_hinges(X, y, ones, C * ones, intercept=False, tol=1e-6)[0]
    return w @ w / 2 + C * np.maximum(0, 1 - y * (X @ w)).sum()


def longest_columns(X, alpha, bags, fewest, most):
    r"""Largest length of the weights of any allowed labeling along each column separately.

    :math:`h_j = \max_{y \in \mathcal Y} \lvert \sum_i \alpha_i y_i x_{ij} \rvert`, one sort for each column and sign.

    Parameters
    ----------
    X : ndarray or sparse array, shape (n_instances, n_features)
    alpha : ndarray, shape (n_instances,)
    bags, fewest, most
        As for `best_labels`.

    Returns
    -------
    ndarray, shape (n_features,)
    """
    X, lengths = X.tocsc() if issparse(X) else X, np.empty(X.shape[1])
    for j in range(X.shape[1]):
        s = alpha * as_array(X[:, [j]])[:, 0]
        lengths[j] = max(best_labels(f, bags, fewest, most) @ f for f in (s, -s))
    return lengths


def certified_value(X, alpha, bags, fewest, most, C):
    r"""A lower bound of the optimum of the relaxed problem over all allowed labelings.

    :math:`\sum_i \alpha_i - \frac12 \sum_j h_j^2`, equation :eq:`eq-conv-svm-certified`, for the multiple of alpha
    within the bound C at which it is largest.

    Parameters
    ----------
    X : ndarray or sparse array, shape (n_instances, n_features)
    alpha : ndarray, shape (n_instances,)
        From 0 to C. The nearer alpha is to the optimum, the larger is the bound.
    bags, fewest, most
        As for `best_labels`.
    C : float

    Returns
    -------
    float
        At least 0. :math:`O(d n \log n)`.
    """
    lengths, total = longest_columns(X, alpha, bags, fewest, most), alpha.sum()
    if total == 0:
        return 0.0
    squares, longest = lengths @ lengths, C / alpha.max()
    t = min(total / squares, longest) if squares > 0 else longest
    # eq: eq-conv-svm-certified
    return float(t * total - t**2 * squares / 2)


def main_columns(X, *, share=0.9, most=100):
    """The leading columns of a singular value decomposition of X; their rows have nearly the inner products of X.

    Parameters
    ----------
    X : ndarray or sparse array, shape (n_instances, n_features)
    share : float, default 0.9
        Share of the sum of squares that is kept.
    most : int, default 100

    Returns
    -------
    ndarray, shape (n_instances, n_columns)
    """
    d = X.shape[1]
    moment = as_array(X.T @ X)
    values, vectors = eigh(moment, subset_by_index=[max(d - most, 0), d - 1])
    values, vectors = values[::-1], vectors[:, ::-1]
    kept = int(np.searchsorted(values.cumsum(), share * np.trace(moment))) + 1
    return X @ vectors[:, :kept]


def cut(X, columns, alpha, bags, fewest, most, *, ascent=True, n_tried=10):
    r"""A labeling whose weights are long.

    Equation :eq:`eq-conv-svm-cut`.

    The cut of the paper takes the best labels for each column and sign. Ascent continues from the best of these: it
    takes the best labels for the gradient of the length, repeatedly. The length is convex, so no step lowers it.

    Parameters
    ----------
    X : ndarray or sparse array, shape (n_instances, n_features)
    columns : ndarray, shape (n_instances, n_columns)
        See `main_columns`.
    alpha : ndarray, shape (n_instances,)
    bags, fewest, most
        As for `best_labels`.
    ascent : bool, default True
    n_tried : int, default 10

    Returns
    -------
    ndarray of -1 and 1, shape (n_instances,)
    """
    scores = [sign * alpha * column for column in columns.T for sign in (1, -1)]
    tried = np.array([best_labels(s, bags, fewest, most) for s in scores])
    # eq: eq-conv-svm-cut
    reached = np.einsum("ti,ti->t", tried, np.array(scores))
    if not ascent:
        return tried[reached.argmax()]
    starts = tried[np.argsort(-reached)[:n_tried]]
    best = np.array([climb(X, alpha, y, bags, fewest, most) for y in starts])
    return best[quadratics(X, best, alpha).argmax()]


def climb(X, alpha, y, bags, fewest, most):
    """Take ascent steps from one labeling until the labels no longer change."""
    for _ in range(50):
        new = best_labels(alpha * (X @ ((alpha * y) @ X)), bags, fewest, most)
        if (new == y).all():
            break
        y = new
    return y


def leading_labels(Y, mu):
    r"""Real labels whose outer product is nearest to the mixture.

    Equation :eq:`eq-conv-svm-leading`.

    The leading eigenvector of :math:`M = \sum_t \mu_t y_t y_t^\top`, times the root of its eigenvalue; its sign is
    arbitrary.

    Parameters
    ----------
    Y : ndarray of -1 and 1, shape (n_labelings, n_instances)
    mu : ndarray, shape (n_labelings,)

    Returns
    -------
    ndarray, shape (n_instances,)
    """
    half = np.sqrt(mu)[:, None] * Y
    # eq: eq-conv-svm-leading
    return np.linalg.eigh(half @ half.T)[1][:, -1] @ half
