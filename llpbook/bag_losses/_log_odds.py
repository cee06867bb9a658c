"""A classifier around a model of another library that returns log-odds."""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from .._input import (
    ArrayLike,
    Matrix,
    NDArray,
    Proportions,
    as_frame,
    num_samples,
    refuse_cells,
    safe_indexing,
)
from .._linear import BagLoss
from ..base import plain_keys, predict_proportions, probabilities, read_bags
from ._learners import LOSSES, loss_of


class LogOddsClassifier(ClassifierMixin, BaseEstimator):
    """A classifier from a model that returns log-odds: a booster of another library, or a trained network.

    Two ways of use. ``fit(X, bags, proportions)`` fits a clone of a regressor of XGBoost or LightGBM by a loss of bags,
    so that searches, `CountCalibration` and `bag_bootstrap` can fit it, too. Or wrap a model that is trained already,
    and predict.

    Parameters
    ----------
    model : regressor or callable
        A regressor whose parameter ``objective`` may be a function and whose ``predict`` returns scores, or a function
        from X to scores. Scores are log-odds of the second class, shape (n_instances,), or have a column per class,
        whose soft-max are the probabilities.
    loss : {"counts", "normal", "proportion", "squares", "easy", "forward"} or BagLoss, default "counts"
        What ``fit`` minimizes; of several classes "counts", "proportion", "squares" or "easy".
    classes : sequence, optional
        Class labels in the order of the scores, of a model that is trained already; 0 and 1 if not given. ``fit`` takes
        the classes of the proportions.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
    model_ : regressor
        The clone that ``fit`` has fitted.
    bag_labels_ : ndarray, shape (n_bags,), or None
        Names of the bags, if the proportions had keys.

    Notes
    -----
    ``fit`` passes X on as it is, so that missing values and categories are the model's to handle. It sets the
    parameters ``objective``; for several classes ``num_class``; and for LightGBM ``metric="None"``, since its own
    metric compares scores with bag numbers. To stop early by bags that are held out, train the model yourself and wrap
    it.

    Examples
    --------
    >>> import numpy as np
    >>> from llpbook import proportion_scorer
    >>> from llpbook.bag_losses import LogOddsClassifier
    >>> X, bags = np.array([[-2.0], [1.0], [1.0], [3.0]]), [0, 0, 1, 1]
    >>> model = LogOddsClassifier(lambda X: X[:, 0], classes=["no", "yes"])
    >>> model.predict(X).tolist()
    ['no', 'yes', 'yes', 'yes']
    >>> model.predict_proportions(X, bags).tolist()
    [[0.5, 0.5], [0.0, 1.0]]
    >>> round(proportion_scorer([0.5, 1.0])(model.set_params(classes=None), X, bags), 3)
    -0.117
    """

    def __init__(
        self, model: Any, loss: str | BagLoss = "counts", *,
        classes: Sequence[Hashable] | None = None,
    ):  # fmt: skip
        self.model, self.loss, self.classes = model, loss, classes

    def fit(
        self, X: Matrix, bags: ArrayLike, proportions: Proportions, *,
        counts: ArrayLike | None = None,
    ) -> "LogOddsClassifier":  # fmt: skip
        """Fit a clone of the regressor by the loss of bags.

        Parameters
        ----------
        X : array-like or sparse array, shape (n_instances, n_features)
        bags : array-like, shape (n_instances,)
        proportions : array-like, Series, dict or DataFrame
            See `llpbook.proportions.check_proportions`.
        counts : array-like of int, shape (n_instances,), optional
            How many equal instances each row stands for; one if not given.

        Returns
        -------
        LogOddsClassifier

        Raises
        ------
        ValueError
            For malformed bags or proportions, a model without the parameter ``objective``, and a loss that is not
            known or has two classes where the proportions have more.
        """
        no_features = np.empty((num_samples(X), 0))  # X is the model's to check
        data = read_bags(no_features, bags, proportions, original=X, counts=counts)
        X = as_frame(X)
        if counts is None:
            refuse_cells(X, data.bags, data.proportions)
        else:
            X = safe_indexing(X, data.kept)
        n_classes = len(data.classes)
        loss = checked_loss(self.loss, n_classes).with_prior(data.class_prior)
        objective = loss.objective(data.proportions, data.frequencies)
        params = parameters(self.model, objective, n_classes)
        self.model_ = clone(self.model).set_params(**params).fit(X, data.bags)
        self._fitted_classes, keys = np.asarray(data.classes), data.bag_labels
        self.bag_labels_ = None if keys is None else plain_keys(keys)
        return self

    def __sklearn_is_fitted__(self):
        return hasattr(self, "classes_")

    @property
    def classes_(self) -> NDArray:
        """Class labels in the order of the scores."""
        if hasattr(self, "_fitted_classes"):
            return self._fitted_classes
        try:
            if hasattr(self.model, "fit"):
                check_is_fitted(self.model)
        except NotFittedError as error:
            raise AttributeError("classes_ is known after fit") from error
        return np.asarray([0, 1] if self.classes is None else self.classes)

    def decision_function(self, X: Matrix) -> NDArray:
        """Compute log-odds of the second class, or one score per class.

        Parameters
        ----------
        X : array-like or sparse array, shape (n_instances, n_features)

        Returns
        -------
        ndarray, shape (n_instances,) or (n_instances, n_classes)

        Raises
        ------
        ValueError
            If the model is a classifier, or its scores are not of this shape.
        """
        check_is_fitted(self)
        model = getattr(self, "model_", self.model)
        if hasattr(model, "predict") and is_classifier(model):
            raise ValueError(
                f"model must return log-odds, and {type(model).__name__} is a classifier: fit the regressor of its "
                "library, or take the classifier as it is if it has learned the classes"
            )
        X = as_frame(X)
        scores = model.predict(X) if hasattr(model, "predict") else model(X)
        return checked_scores(scores, num_samples(X), self.classes_)

    def predict_proba(self, X: Matrix) -> NDArray:
        """Predict class probabilities, shape (n_instances, n_classes)."""
        return probabilities(self.decision_function(X))

    def predict(self, X: Matrix) -> NDArray:
        """Predict the class of each instance, shape (n_instances,)."""
        scores = self.decision_function(X)
        best = scores > 0 if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[best.astype(int)]

    def predict_proportions(
        self, X: Matrix, bags: ArrayLike, *, soft: bool = False,
        counts: ArrayLike | None = None,
    ) -> NDArray | pd.DataFrame:  # fmt: skip
        """Predict the shares of bags; see `llpbook.base.predict_proportions`."""
        return predict_proportions(self, X, bags, soft=soft, counts=counts)


def checked_loss(loss, n_classes):
    """Return a loss or the one of a name; refuse one that is not known or not for so many classes."""
    name, loss = loss, loss_of(loss)
    if not isinstance(loss, BagLoss):
        raise ValueError(
            f"loss must be a BagLoss or one of {', '.join(LOSSES)}, got {name!r}"
        )
    if n_classes > 2 and not loss.several_classes:
        several = [key for key, other in LOSSES.items() if other.several_classes]
        raise ValueError(
            f"loss={name!r} has two classes, and proportions have {n_classes}: take one of "
            f"{', '.join(several)}"
        )
    return loss


def parameters(model, objective, n_classes):
    """Parameters of a model that make it minimize an objective."""
    own = model.get_params() if hasattr(model, "get_params") else {}
    if "objective" not in own or is_classifier(model):
        raise ValueError(
            "model must be a regressor with the parameter objective, such as XGBRegressor or LGBMRegressor, to be "
            f"fitted; got {model!r}. A model that is trained already is wrapped, and not fitted"
        )
    params = {"objective": objective}
    if "boosting_type" in own:  # LightGBM
        params["metric"] = own.get("metric", "None")
    return params | ({"num_class": n_classes} if n_classes > 2 else {})


def checked_scores(scores, n_instances, classes):
    """Log-odds of two classes or a column per class; ValueError for scores of another shape."""
    scores, n_classes = np.asarray(scores, dtype=float), len(classes)
    if scores.ndim == 2 and scores.shape[1] == 1:
        scores = scores[:, 0]
    log_odds = n_classes == 2 and scores.shape == (n_instances,)
    if not log_odds and scores.shape != (n_instances, n_classes):
        raise ValueError(
            f"model must return scores of shape (n_instances, {n_classes}) for the classes {classes.tolist()}"
            f"{', or their log-odds' * (n_classes == 2)}, got {scores.shape} for {n_instances} instances; name the "
            "classes by classes="
        )
    if n_classes == 2 and scores.ndim == 2:
        return scores[:, 1] - scores[:, 0]
    return scores
