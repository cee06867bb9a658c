r"""MyRoom: TODO in one sentence, what is minimized or computed, and from what.

.. math:: w = \frac1n \sum_k n_k (p_k - \eta) (\bar x_k - \bar x)

Chapter ``book/my_room``. Source: TODO the paper and its equations.
"""

from .base import ArrayLike, LLPClassifier, NDArray

# What users import; `direction` is a step of the derivation.
__all__ = ["MyRoom"]


def direction(bag_means: NDArray, shares: NDArray, sizes: NDArray) -> NDArray:
    """The covariance of bag means and shares over the bags, weighted by size.

    Parameters
    ----------
    bag_means : ndarray, shape (n_bags, n_features)
    shares : ndarray, shape (n_bags,)
        Of the positive class.
    sizes : ndarray, shape (n_bags,)

    Returns
    -------
    ndarray, shape (n_features,)
    """
    weights = sizes / sizes.sum()
    # eq: eq-my-room-direction
    return weights * (shares - weights @ shares) @ (bag_means - weights @ bag_means)


class MyRoom(LLPClassifier):
    """Score an instance along the direction in which bag means follow the shares.

    Parameters
    ----------
    bag_weights : {"size", "uniform"} or array-like, shape (n_bags,), default "size"
        Weights of the bags in the covariance.

    Attributes
    ----------
    coef_ : ndarray, shape (n_features,)
    center_ : ndarray, shape (n_features,)

    Raises
    ------
    ValueError
        For malformed input; see `llpbook.base`.

    Notes
    -----
    :math:`O(n d)`.

    Examples
    --------
    >>> from llpbook import MyRoom
    >>> X = [[0.0], [1.0], [2.0], [3.0]]
    >>> MyRoom().fit(X, [0, 0, 1, 1], [0.2, 0.8]).predict(X).tolist()
    [0, 0, 1, 1]
    """

    assumes = (None, "TODO what must hold of the bags")
    cost = "TODO what a fit costs"
    _several_classes, _scale = "one-vs-rest", "distances"

    # At most two parameters by position; all others after the star.
    def __init__(self, *, bag_weights: str | ArrayLike = "size"):
        self.bag_weights = bag_weights

    def _fit(self, data):
        used = data.used
        means, weights = data.bag_means(data.X)[used], data.bag_weights[used]
        self.center_ = data.X.mean(axis=0)
        self.coef_ = direction(means, data.proportions[used, 1], weights)

    def _scores(self, X):
        return (X - self.center_) @ self.coef_
