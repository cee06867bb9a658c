"""Boosting by a loss of whole bags: scikit-learn's trees on histograms."""

from numbers import Integral

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

# ``_encode_y``, ``_should_stop``, ``_predictors``, ``_raw_predict`` and ``_loss`` below are private, too:
# tests/test_booster.py says when they change.
from .._input import BaseLoss, IdentityLink, Interval

#: Fewest instances in a leaf.
SMALLEST_LEAF = 20
#: A leaf has at least the share of the instances that so many leaves would have.
MOST_LEAVES = 50
#: Rounds without progress on the bags held out, after which boosting ends.
PATIENCE = 15


class _BagLoss(BaseLoss):
    """Loss for scikit-learn's trees, whose derivatives come from a function of the caller."""

    def __init__(self, start, step, rows, after_round):
        n_columns = start.shape[1] if start.ndim == 2 else None
        super().__init__(closs=None, link=IdentityLink(), n_classes=n_columns)
        self.is_multiclass = start.ndim == 2
        self.start, self.step, self.rows = start, step, rows
        self.after_round, self.history = after_round, []
        self.derivatives = self.measure(np.zeros_like(start))

    def fit_intercept_only(self, y_true, sample_weight=None):
        return np.zeros(self.n_classes or 1)

    def measure(self, added):
        """Compute gradient and Hessian at the current scores, and append the value to the history."""
        scores = self.start + added.reshape(self.start.shape)
        value, *derivatives = self.step(scores)
        self.history.append(value)
        return derivatives

    def __call__(self, y_true, raw_prediction, sample_weight=None, n_threads=1):
        # scikit-learn asks before the first round, and after each: see `_Trees`.
        if raw_prediction.any():
            self.derivatives = self.measure(raw_prediction)
            self.after_round()
        return self.history[-1]

    def gradient_hessian(
        self, y_true, raw_prediction, sample_weight=None,
        gradient_out=None, hessian_out=None, n_threads=1,
    ):  # fmt: skip
        outputs = (gradient_out, hessian_out)
        for out, column in zip(outputs, self.derivatives, strict=True):
            out[:] = 0
            out[self.rows] = column[self.rows]
        return outputs


class _Trees(HistGradientBoostingRegressor):
    """Regressor with as many columns of scores as its loss, which stops by the history of the loss."""

    _parameter_constraints = {
        **HistGradientBoostingRegressor._parameter_constraints,
        "max_iter": [Interval(Integral, 0, None, closed="left")],
    }

    def _encode_y(self, y):
        y = super()._encode_y(y)
        self.n_trees_per_iteration_ = self.loss.n_classes or 1
        self.as_vector_ = self.loss.n_classes is None
        return y

    def _should_stop(self, scores):
        history = self._loss.history  # its first entry is that before any round
        return len(history) - 1 - int(np.argmin(history)) >= PATIENCE


def boost_trees(
    X, start, step, rows, learning_rate=1.5, max_iter=100, *, max_leaf_nodes=8,
    after_round=lambda: None,
):  # fmt: skip
    r"""Fit trees to a loss of whole bags: Newton steps on histograms of the features, which are binned once.

    Parameters
    ----------
    X : ndarray, shape (n_instances, n_features)
    start : ndarray, shape (n_instances,) or (n_instances, n_columns)
        Scores before the first tree.
    step : callable
        ``step(scores)`` returns a value, the gradient and a diagonal Hessian, which is positive. The value is a float
        that is to be small, measured on the bags held out, or on all bags if none is. Gradient and Hessian are of the
        shape of scores.
    rows : ndarray of bool, shape (n_instances,)
        Instances that the trees learn from. The gradient and the Hessian of the others are not used.
    learning_rate : float, default 1.5
        Share of each Newton step that is taken.
    max_iter : int, default 100
        Most rounds; a round fits one tree to each column of scores. They end when 15 rounds have not lowered the value.
    max_leaf_nodes : int, default 8
        Most leaves of a tree. Each leaf has at least 20 instances and at least a fiftieth of all.
    after_round : callable, optional
        Called once a round, without arguments.

    Returns
    -------
    trees : object
        Up to the best round, for `tree_scores`.
    history : ndarray, shape (n_rounds + 1,)
        The value before the first round and after each. The best round is its first minimum.

    Notes
    -----
    :math:`O(n d)` a round and column, beside the step. The bins are those of all rows of ``X``, quantiles of a drawing
    of 200,000 with a fixed seed where there are more, so the trees are the same in each fit on rows in the same order.
    """
    loss = _BagLoss(np.asarray(start, dtype=float), step, rows, after_round)
    trees = _Trees(
        loss=loss, learning_rate=learning_rate, max_iter=max_iter,
        max_leaf_nodes=max_leaf_nodes, early_stopping=True, scoring="loss",
        validation_fraction=None, random_state=0,
        min_samples_leaf=max(SMALLEST_LEAF, len(X) // MOST_LEAVES),
    ).fit(X, np.zeros(len(X)))  # fmt: skip
    del trees._predictors[int(np.argmin(loss.history)) :]
    # The loss holds the data, and its step need not be one that can be pickled.
    trees.loss = trees._loss = None
    return trees, np.array(loss.history)


def tree_scores(trees, X):
    """Sum of the trees, which is added to the scores of the start.

    Parameters
    ----------
    trees : object
        Of `boost_trees`.
    X : ndarray, shape (n_instances, n_features)

    Returns
    -------
    ndarray, shape (n_instances,) or (n_instances, n_columns)
    """
    added = trees._raw_predict(X)
    return added[:, 0] if trees.as_vector_ else added
