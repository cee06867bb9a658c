"""What a chunk returns: sums whose size does not grow with the rows, and what is made of the sums of all chunks."""

from typing import NamedTuple

import numpy as np
from scipy.special import softmax

from ..count_likelihood import posterior
from ..mean_map import binary_hessian, binary_objective, class_means, softmax_objective

#: Rows of a chunk that a sum over single rows looks at together, so that the work needs little memory.
SLICE = 2**14


class Moments(NamedTuple):
    """Number, mean and squared deviations of rows.

    Attributes
    ----------
    n : int
    mean : ndarray, shape (n_features,)
    squares : ndarray, shape (n_features,) or (n_features, n_features)
        Sums of the squared deviations from the mean, or of their products.
    """

    n: int
    mean: np.ndarray
    squares: np.ndarray

    @property
    def scale(self):
        """Standard deviations, shape (n_features,)."""
        squares = self.squares
        return np.sqrt((np.diag(squares) if squares.ndim == 2 else squares) / self.n)


def bag_sums(X, bags, n_bags):
    r"""Size and sum of each bag.

    Equation :eq:`eq-beyond-memory-sums`.

    Parameters
    ----------
    X : ndarray, shape (n_instances, n_features)
    bags : ndarray of int, shape (n_instances,)
    n_bags : int

    Returns
    -------
    sizes : ndarray of int, shape (n_bags,)
    sums : ndarray, shape (n_bags, n_features)
        Of two chunks they add up, also for a bag with rows in both.
    """
    sizes = np.bincount(bags, minlength=n_bags)
    starts = np.cumsum(sizes) - sizes
    if sizes.all() and (bags[1:] >= bags[:-1]).all():  # bags side by side: much faster
        sums = [np.add.reduceat(column, starts) for column in X.T]
    else:
        # eq: eq-beyond-memory-sums
        sums = [np.bincount(bags, column, n_bags) for column in X.T]
    return sizes, np.column_stack(sums)


def moments(X, products=False):
    """The `Moments` of the rows of a chunk.

    Parameters
    ----------
    X : ndarray, shape (n_instances, n_features)
    products : bool, default False
        Whether products of two features are summed, too.

    Returns
    -------
    Moments
    """
    mean = X.mean(axis=0)
    if products:
        centered = X - mean
        return Moments(len(X), mean, centered.T @ centered)
    centered = (column - m for column, m in zip(X.T, mean, strict=True))
    return Moments(len(X), mean, np.array([c @ c for c in centered]))


def merge(first, second):
    r"""The moments of two chunks together.

    Equation :eq:`eq-beyond-memory-moments`. No sum of raw squares is formed, whose difference to the square of the sum
    would lose the digits of a feature far from 0.

    Parameters
    ----------
    first, second : Moments

    Returns
    -------
    Moments
    """
    n, apart = first.n + second.n, second.mean - first.mean
    matrix = first.squares.ndim == 2
    between = np.outer(apart, apart) if matrix else apart**2
    # eq: eq-beyond-memory-moments
    squares = first.squares + second.squares + first.n * second.n / n * between
    return Moments(n, first.mean + second.n / n * apart, squares)


def class_sums(sums, shares):
    r"""The sum of the instances for each class, each instance counted with the shares of its bag.

    Equation :eq:`eq-beyond-memory-class-sums`.

    Parameters
    ----------
    sums : ndarray, shape (n_bags, n_features)
    shares : ndarray, shape (n_bags, n_classes)

    Returns
    -------
    ndarray, shape (n_classes, n_features)
    """
    # eq: eq-beyond-memory-class-sums
    return shares.T @ sums


def means_of_sums(sums, shares, sizes):
    r"""MeanMap's class means from class sums, without the means of the bags.

    Equation :eq:`eq-beyond-memory-class-means`; bags weigh their size. With
    :math:`N^{1/2} \Pi = Q R` the normal equations are the least squares of K rows :math:`R M = R^{-\top} B`, which
    `llpbook.mean_map.class_means` solves.

    Parameters
    ----------
    sums : ndarray, shape (n_classes, n_features)
        Of `class_sums`, over all bags.
    shares : ndarray, shape (n_bags, n_classes)
    sizes : ndarray of int, shape (n_bags,)

    Returns
    -------
    ndarray, shape (n_classes, n_features)

    Raises
    ------
    NotIdentifiableError
        If the shares have a rank below ``n_classes``.
    """
    R = np.linalg.qr(np.sqrt(sizes / sizes.max())[:, None] * shares, mode="r")
    rows = np.linalg.lstsq(R.T, sums / sizes.max(), rcond=None)[0]
    # eq: eq-beyond-memory-class-means
    return class_means(rows, R, np.ones(len(R)))


def within_of_sums(sums, mass, total):
    r"""SWS's class means and covariance within classes.

    Equation :eq:`eq-beyond-memory-within`.

    Parameters
    ----------
    sums : ndarray, shape (n_classes, n_features)
        Of `class_sums`, over all bags.
    mass : ndarray, shape (n_classes,)
        Instances of each class.
    total : Moments
        Of all instances, with products.

    Returns
    -------
    means : ndarray, shape (n_classes, n_features)
        The mean of all instances for a class without any.
    covariance : ndarray, shape (n_features, n_features)
    """
    means = np.where(
        mass[:, None] > 0, sums / np.maximum(mass, 1e-300)[:, None], total.mean
    )
    apart = means - total.mean
    # eq: eq-beyond-memory-within
    return means, (total.squares - (apart * mass[:, None]).T @ apart) / total.n


def partition_terms(w, X):
    r"""MeanMap's part of a chunk: sum of the log-partition function, its gradient and its Hessian.

    Equation :eq:`eq-beyond-memory-partition`. Everything else in the objective of MeanMap is known from class sums.

    Parameters
    ----------
    w : ndarray, shape (1, n_columns) or (n_classes, n_columns)
    X : ndarray, shape (n_instances, n_columns)

    Returns
    -------
    value : float
    gradient : ndarray, of the shape of w
    hessian : ndarray, shape (w.size, w.size)
    """
    value, gradient, hessian, none = 0.0, 0.0, 0.0, np.zeros(w.shape)
    for start in range(0, len(X), SLICE):
        part = X[start : start + SLICE]
        of_mean = binary_objective if len(w) == 1 else softmax_objective
        mean, slope = of_mean(w.ravel(), part, none, 0)
        # eq: eq-beyond-memory-partition
        value += len(part) * mean
        gradient += len(part) * slope.reshape(w.shape)
        if len(w) == 1:
            hessian += len(part) * binary_hessian(w[0], part, none, 0)
        else:
            hessian += label_information(softmax(part @ w.T, axis=1), part)
    return value, gradient, hessian


def label_information(p, X):
    r"""The information of independent labels on the weights: :math:`\sum_i C(p_i) \otimes x_i x_i^\top`.

    :math:`C(p) = p (1 - p)` for two classes, :math:`\operatorname{diag} p - p p^\top` for more.

    Parameters
    ----------
    p : ndarray, shape (n_instances,) or (n_instances, n_classes)
        Probabilities.
    X : ndarray, shape (n_instances, n_columns)

    Returns
    -------
    ndarray, shape (n_columns, n_columns) or (n_classes * n_columns, n_classes * n_columns)
    """
    if p.ndim == 1:
        return X.T @ (X * (p * (1 - p))[:, None])
    rows = [
        [
            X.T @ (X * (p[:, a] * ((a == b) - p[:, b]))[:, None])
            for b in range(p.shape[1])
        ]
        for a in range(p.shape[1])
    ]
    return np.block(rows)


def count_terms(w, X, known, exact_up_to=20, curved=True):
    r"""CountLogistic's part of a chunk of whole bags: minus the log-likelihood, its gradient and its Hessian.

    Parameters
    ----------
    w : ndarray, shape (1, n_columns) or (n_classes, n_columns)
    X : ndarray, shape (n_instances, n_columns)
    known : BagCounts
    exact_up_to : int, default 20
    curved : bool, default True
        Whether the Hessian is wanted, which costs as much as the rest.

    Returns
    -------
    value : float
    gradient : ndarray, of the shape of w
        Equation :eq:`eq-beyond-memory-score`.
    hessian : ndarray, shape (w.size, w.size), or None
        Of `count_hessian`.
    """
    scores = X @ w.T
    log_likelihood, q, s = posterior(
        scores[:, 0] if len(w) == 1 else scores, known, exact_up_to
    )
    # eq: eq-beyond-memory-score
    gradient = ((s - q).reshape(len(X), -1).T @ X).reshape(w.shape)
    hessian = count_hessian(q, s, X, known) if curved else None
    return -float(log_likelihood.sum()), gradient, hessian


def count_hessian(q, s, X, known):
    r"""The observed information of counts: that of labels, less what the labels still vary given the counts.

    Equation :eq:`eq-beyond-memory-louis`. Given the count, the covariance of the labels of a bag is taken as
    :math:`\zeta (\operatorname{diag} v - v v^\top / (V + \tau^2))` with :math:`v_i = q_i (1 - q_i)` and the standard
    error :math:`\tau` of the count. Its trace is exact. Where the count is exact, its rows sum to 0, as they must.

    Parameters
    ----------
    q, s : ndarray, shape (n_instances,) or (n_instances, n_classes)
        Probabilities of the labels given the counts, and without the counts.
    X : ndarray, shape (n_instances, n_columns)
    known : BagCounts

    Returns
    -------
    ndarray, shape (w.size, w.size)
        Near the maximum of the likelihood positive definite, not everywhere.
    """
    if q.ndim == 2:
        return class_hessian(q, s, X, known)
    v = q * (1 - q)
    r, V = known.sums(X * v[:, None]), known.sums(v) + known.errors
    V = np.where(V > 0, V, np.inf)
    factor = trace_factor(known.sums(v), known.sums(v * v) / V)
    r *= np.sqrt(factor / V)[:, None]
    # eq: eq-beyond-memory-louis
    return X.T @ (X * (s * (1 - s) - factor[known.bags] * v)[:, None]) + r.T @ r


def class_hessian(q, s, X, known):
    """`count_hessian` of several classes: the covariance of the labels of an instance stands in the place of its v.

    Parameters
    ----------
    q, s : ndarray, shape (n_instances, n_classes)
    X : ndarray, shape (n_instances, n_columns)
    known : BagCounts

    Returns
    -------
    ndarray, shape (n_classes * n_columns, n_classes * n_columns)
    """
    L, (K, d) = len(known.sizes), (q.shape[1], X.shape[1])
    R, squares = np.empty((L, K, K, d)), np.empty((L, K, K))
    length = (q * q).sum(axis=1)
    for a in range(K):
        for b in range(K):
            v = q[:, a] * ((a == b) - q[:, b])
            R[:, a, b] = known.sums(X * v[:, None])
            own = (a == b) - q[:, a] - q[:, b] + length
            squares[:, a, b] = known.sums(q[:, a] * q[:, b] * own)
    R = R.reshape(L, K, K * d)
    V = np.linalg.pinv(known.covariances(q), rcond=1e-9, hermitian=True)
    trace = known.sums((q * (1 - q)).sum(axis=1))
    factor = trace_factor(trace, (V * squares).sum(axis=(1, 2)))
    scaled = X * np.sqrt(factor)[known.bags, None]
    labels = label_information(s, X) - label_information(q, scaled)
    return labels + np.tensordot(
        V @ R * factor[:, None, None], R, axes=((0, 1), (0, 1))
    )


def trace_factor(trace, lost):
    """What a covariance that lost a part of its trace is multiplied by to have it again.

    Parameters
    ----------
    trace, lost : ndarray, shape (n_bags,)
        The true trace, and what the approximation lacks of it.

    Returns
    -------
    ndarray, shape (n_bags,)
        1 where all is lost, as in a bag of one, and where nothing is, as in a pure bag.
    """
    left = trace - lost
    some = (lost > 0) & (left > 1e-6 * trace)  # a saddlepoint's q may be below 0
    return np.where(some, trace / np.where(some, left, 1), 1.0)


def newton_decrement(gradient, hessian):
    r"""The Newton step, and its length in standard errors.

    :math:`\sqrt{g^\top H^{-1} g}`, equation :eq:`eq-beyond-memory-decrement`. An eigenvalue of H that is
    negative counts as its absolute value, so that the step goes downhill, and one that is 0 as 1e-10 of the largest.

    Parameters
    ----------
    gradient : ndarray, of any shape
        Of a sum over all instances, not of a mean.
    hessian : ndarray, shape (gradient.size, gradient.size)

    Returns
    -------
    step : ndarray, of the shape of gradient
    decrement : float
    """
    values, vectors = np.linalg.eigh(hessian)
    size = np.maximum(np.abs(values), 1e-10 * np.abs(values).max())
    along = vectors.T @ gradient.ravel()
    # eq: eq-beyond-memory-decrement
    decrement = float(np.sqrt(np.sum(along**2 / size)))
    return -(vectors @ (along / size)).reshape(gradient.shape), decrement
