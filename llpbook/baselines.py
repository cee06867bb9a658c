"""Baselines that any method has to beat: the majority class, and a regression of proportions on bag means.

Chapter: ``book/intro``.
"""

import numpy as np
from sklearn.linear_model import Ridge

from .base import ArrayLike, LLPClassifier

__all__ = ["BagMeanRegression", "MajorityClass"]


class MajorityClass(LLPClassifier):
    """Predict the class with the largest prior for every instance.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
    class_prior_ : ndarray, shape (n_classes,)
        Known from the proportions alone.

    Raises
    ------
    ValueError
        For malformed input; see `llpbook.base`.

    Examples
    --------
    >>> from llpbook import MajorityClass, load_bags
    >>> data = load_bags("heart", bag_size=8, random_state=0)
    >>> model = MajorityClass().fit(*data)
    >>> model.class_prior_.round(2).tolist(), round(data.evaluate(model), 2)
    ([0.56, 0.44], 0.56)
    """

    assumes = (None, "nothing of the features: what any method has to beat")
    cost = "none"
    _equal_shares = "ignored"
    _accept_sparse = "csr"
    _uses_frequencies = True

    def _fit(self, data):
        self.class_prior_ = data.class_prior

    def _probabilities(self, X):
        """Repeat the class prior for each instance."""
        return np.tile(self.class_prior_, (X.shape[0], 1))


class BagMeanRegression(LLPClassifier):
    """Ridge regression of the proportions on the bag means; predicts the class with the largest share.

    Each bag mean is a row of the regression, with its proportions as responses. The regression is then applied to
    single instances.

    Parameters
    ----------
    alpha : float, default 1.0
        Ridge penalty.
    bag_weights : {"size", "uniform"} or array-like, shape (n_bags,), default "size"
        Weights of the bags in the regression.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
    coef_ : ndarray, shape (n_classes, n_features)
    intercept_ : ndarray, shape (n_classes,)

    Raises
    ------
    ValueError
        For malformed input; see `llpbook.base`.

    Notes
    -----
    :math:`O(n d + L d^2)`. With bags of size 1 this is ridge regression on 0/1 labels. Data given twice act as half of
    ``alpha``. Scores are no probabilities; `llpbook.count_likelihood.CountCalibration` learns these from counts.

    Examples
    --------
    >>> from llpbook import BagMeanRegression, load_bags
    >>> data = load_bags("heart", bag_size=8, random_state=0)
    >>> model = BagMeanRegression().fit(*data)
    >>> data.evaluate(model) > 0.7
    True
    """

    assumes = ("Y_B|X", "one P(y | x), linear in x, holds in all bags")
    cost = "a ridge regression on the means of the bags"
    _equal_shares, _scale, _cure = "warned", "penalty", "a smaller alpha"
    _accept_sparse = "csr"
    _uses_frequencies = True

    def __init__(self, alpha: float = 1.0, *, bag_weights: str | ArrayLike = "size"):
        self.alpha, self.bag_weights = alpha, bag_weights

    def _sums_needed(self):
        return "bag means"

    def _fit(self, data):
        means, used = data.bag_means(data.X), data.used
        ridge = Ridge(alpha=self.alpha)
        ridge.fit(means[used], data.proportions[used], data.bag_weights[used])
        self.coef_, self.intercept_ = ridge.coef_, ridge.intercept_

    def _scores(self, X):
        """Predicted share of the positive class minus that of the negative, or of each class, one column per class."""
        shares = X @ self.coef_.T + self.intercept_
        return shares[:, 1] - shares[:, 0] if len(self.classes_) == 2 else shares
