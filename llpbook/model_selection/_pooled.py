"""Scores of whole bags by predictions out of fold."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.metaestimators import available_if

from .._typing import NDArray
from ..base._sklearn import check_method_params, safe_indexing

#: In front of the name of a score: whole bags are scored, once, by predictions that are all held out.
POOLED = "pooled_"
#: Rows of the training and of the validation part, for each split.
Splits: TypeAlias = Sequence[tuple[NDArray, NDArray]]


class OutOfFold(ClassifierMixin, BaseEstimator):
    """Predicts each instance of its own training data by the fit that has not seen the instance.

    So a whole bag can be scored by predictions that are all held out, though no split holds out all of it.

    Parameters
    ----------
    estimator : LLPClassifier or Pipeline
        `set_params` sets its parameters.
    splits : list of (train, test)
        Rows; each row is in one test part.

    Attributes
    ----------
    models_ : list
        One fit per split, made when they are asked for first: a search's last fit, which predicts nothing, costs none.
    classes_ : ndarray, shape (n_classes,)

    Examples
    --------
    >>> from llpbook import BagMeanRegression, FullBagKFold, load_bags
    >>> from llpbook.model_selection import OutOfFold
    >>> data = load_bags("heart", bag_size=8, random_state=0)
    >>> splits = list(FullBagKFold(3, random_state=0).split(data.X, groups=data.bags))
    >>> held_out = OutOfFold(BagMeanRegression(), splits)
    >>> held_out = held_out.fit(data.X, data.bags, proportions=data.proportions)
    >>> len(held_out.models_), held_out.predict(data.X).shape
    (3, (270,))
    """

    def __init__(self, estimator: Any, splits: Splits):
        self.estimator, self.splits = estimator, splits

    def set_params(self, **params):
        """Set parameters of the estimator inside."""
        self.estimator.set_params(**params)
        return self

    def fit(self, X, bags, **given):
        """Take the data of all splits.

        Parameters
        ----------
        X : array-like, shape (n_instances, n_features)
        bags : array-like, shape (n_instances,)
        **given
            Parameters of the fits: ``proportions`` and ``labels``, with the name of a step in front for a `Pipeline`.
            Those that are as long as X are cut with it.

        Returns
        -------
        OutOfFold
        """
        self.given_ = X, bags, given
        return self

    def fit_whole(self):
        """The estimator inside, fitted to all instances."""
        X, bags, given = self.given_
        return self.estimator.fit(X, bags, **given)

    @cached_property
    def models_(self):
        X, bags, given = self.given_
        # Shares belong to bags; they are not cut, even if there are as many bags as instances.
        shares = {k: v for k, v in given.items() if k.endswith("proportions")}
        models = []
        for train, _ in self.splits:
            cut = {**check_method_params(X, given, train), **shares}
            model = clone(self.estimator)
            models.append(model.fit(safe_indexing(X, train), bags[train], **cut))
        return models

    @property
    def classes_(self):
        return self.models_[0].classes_

    def predict(self, X):
        """The class of each instance; X must be that of the fit, row by row."""
        return self._each("predict", X)

    @available_if(lambda self: hasattr(self.estimator, "predict_proba"))
    def predict_proba(self, X):
        """The probability of each class; X must be that of the fit, row by row."""
        return self._each("predict_proba", X)

    def _each(self, method, X):
        parts = [
            getattr(model, method)(safe_indexing(X, test))
            for model, (_, test) in zip(self.models_, self.splits, strict=True)
        ]
        rows = np.concatenate([test for _, test in self.splits])
        return np.concatenate(parts)[np.argsort(rows)]


def are_pooled(scoring):
    """Whether whole bags are scored once, by predictions that are all held out."""
    scorers = scoring.values() if isinstance(scoring, dict) else [scoring]
    found = {scorer.pooled for scorer in scorers}
    if len(found) > 1:
        raise ValueError(
            f"scoring must not mix scores that are pooled with others, got {list(scoring)}: fit two searches"
        )
    return found.pop()


def times_held_out(splits, n):
    """How many of the splits hold out each of ``n`` instances, shape (n,)."""
    return np.bincount(np.concatenate([test for _, test in splits]), minlength=n)


def default_score(splits, n):
    """The score of a search that names none: pooled where each of ``n`` instances is held out once."""
    once = (times_held_out(splits, n) == 1).all()
    return (POOLED if once else "") + "log_likelihood"


def check_partition(splits, n):
    """ValueError where splits do not hold out each of ``n`` instances once."""
    held = times_held_out(splits, n)
    if (held != 1).any():
        i = np.argmax(held != 1)
        raise ValueError(
            "cv must hold out each instance once for a pooled score, as SplitBagKFold and FullBagKFold do; instance "
            f"{i} is held out {held[i]} times"
        )
