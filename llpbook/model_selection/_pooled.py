"""Scores of whole bags by predictions out of fold."""

from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if

from .._input import NDArray, Proportions, check_method_params, filters_kept, safe_split
from ..base import comparing, fit_to_bags

#: Prefix of the name of a score: whole bags are scored, once, by predictions that are all held out.
POOLED = "pooled_"
#: Rows of the training and of the validation part, for each split.
Splits: TypeAlias = Sequence[tuple[NDArray, NDArray]]


class Around(ClassifierMixin, BaseEstimator):
    """An estimator inside another one, whose parameters a search sets: base of `WithShares` and `OutOfFold`."""

    def set_params(self, **params):
        """Set parameters of the estimator inside."""
        self.estimator.set_params(**params)
        return self

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = get_tags(self.estimator).input_tags.pairwise
        return tags

    @available_if(lambda self: hasattr(self.estimator, "predict_proba"))
    def predict_proba(self, X):
        """The probability of each class."""
        return self._each("predict_proba", X)

    def predict(self, X):
        """The class of each instance."""
        return self._each("predict", X)


@dataclass(eq=False)
class OfSearch:
    """Settings that all fits of a search share, in workers too.

    Attributes
    ----------
    proportions : array-like, Series, dict or DataFrame
    comparing : bool
        True while settings are compared.
    """

    proportions: Proportions
    comparing: bool = False

    @contextmanager
    def settings_compared(self):
        """Within this context no fit warns of what concerns it alone."""
        self.comparing = True
        try:
            with filters_kept():
                yield
        finally:
            self.comparing = False


class WithShares(Around):
    """An estimator, or a pipeline of any depth, with the proportions that each of its fits gets whole.

    scikit-learn cuts each parameter of a fit that is as long as X, and names each by the step that it goes to; the
    candidates of a search have steps of different names.

    Parameters
    ----------
    estimator : LLPClassifier or Pipeline
    search : OfSearch
        Clones share it.
    """

    def __init__(self, estimator: Any, search: OfSearch):
        self.estimator, self.search = estimator, search

    def __sklearn_clone__(self):
        return WithShares(clone(self.estimator), self.search)

    def fit(self, X, bags, labels=None):
        """Fit the estimator inside."""
        with comparing(self.search.comparing):
            fit_to_bags(self.estimator, X, bags, self.search.proportions, labels)
        return self

    @property
    def classes_(self):
        return self.estimator.classes_

    def _each(self, method, X):
        return getattr(self.estimator, method)(X)


class OutOfFold(Around):
    """Predict each training instance by the fit that has not seen it.

    So a whole bag can be scored by predictions that are all held out, though no split holds out the whole bag.

    Parameters
    ----------
    estimator : LLPClassifier or Pipeline
        `set_params` sets its parameters.
    splits : list of (train, test)
        Rows; each row is in one test part.

    Attributes
    ----------
    models_ : list
        One fit per split, made while settings are compared, or when they are asked for first: a search's last fit,
        which predicts nothing, costs none.
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

    def fit(self, X, bags, **params):
        """Store the data of all splits; models are fitted when they are first needed.

        Parameters
        ----------
        X : array-like, shape (n_instances, n_features)
        bags : array-like, shape (n_instances,)
        **params
            Parameters of the fits: ``proportions`` and ``labels``, with the name of a step in front for a `Pipeline`.
            Those that are as long as X are cut with it, except for ``proportions``.

        Returns
        -------
        OutOfFold
        """
        self.data_, self.fits_ = (clone(self.estimator), X, bags, params), None
        if self.search.comparing:  # an error is then one of the fit, not of the score
            self.fits_ = self._fit_each()
        return self

    def fit_whole(self):
        """Fit the estimator inside to all instances."""
        model, X, bags, params = self.data_
        return clone(model).fit(X, bags, **params)

    @property
    def search(self):
        return getattr(self.estimator, "search", OfSearch(None))

    @property
    def models_(self):
        if self.fits_ is None:
            self.fits_ = self._fit_each()
        return self.fits_

    def _fit_each(self):
        with comparing():
            return [self._fit_to(train) for train, _ in self.splits]

    def _fit_to(self, train):
        """Fit a clone of the estimator inside to given rows."""
        model, X, bags, params = self.data_
        # Shares belong to bags; they are not cut, even if there are as many bags as instances.
        shares = {k: v for k, v in params.items() if k.endswith("proportions")}
        cut = {**check_method_params(X, params, train), **shares}
        X_train = safe_split(model, X, None, train)[0]
        return clone(model).fit(X_train, bags[train], **cut)

    @property
    def classes_(self):
        return self.models_[0].classes_

    def _each(self, method, X):
        """Predictions for X, which must be that of the fit, row by row."""
        parts = []
        for model, (train, test) in zip(self.models_, self.splits, strict=True):
            X_test = safe_split(model, X, None, test, train)[0]
            parts.append(getattr(model, method)(X_test))
        rows = np.concatenate([test for _, test in self.splits])
        return np.concatenate(parts)[np.argsort(rows)]


def with_shares(estimator, proportions, splits=None):
    """Wrap an estimator with its shares, and in `OutOfFold` where there are splits."""
    wrapped = WithShares(estimator, OfSearch(proportions))
    return wrapped if splits is None else OutOfFold(wrapped, splits)


def are_pooled(scoring):
    """True if whole bags are scored once, by predictions that are all held out."""
    scorers = scoring.values() if isinstance(scoring, dict) else [scoring]
    pooled = {scorer.pooled for scorer in scorers}
    if len(pooled) > 1:
        raise ValueError(
            f"scoring must not mix scores that are pooled with others, got {list(scoring)}: fit two searches"
        )
    return pooled.pop()


def times_held_out(splits, n):
    """Number of the splits that hold out each of ``n`` instances, shape (n,)."""
    return np.bincount(np.concatenate([test for _, test in splits]), minlength=n)


def default_score(splits, n):
    """Name of the default score of a search: pooled where each of ``n`` instances is held out once."""
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
