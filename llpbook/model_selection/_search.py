"""Searches over settings: Algorithm 1 as it is written, and scikit-learn's with bags."""

import copy
from numbers import Integral

import numpy as np
import pandas as pd
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.utils.validation import check_is_fitted

from ..base import (
    check_bags,
    check_column,
    check_proportions,
    page,
    predict_proportions,
)
from ._scorers import ERRORS, LIKELIHOOD, ProportionScorer, proportion_scorer
from ._splitters import SplitBagKFold, count_rows


def select_setting(estimator, settings, splits, data, scorer):
    r"""Algorithm 1 of franco2023 as it is written.

    Equation :eq:`eq-ms-select`.

    Parameters
    ----------
    estimator : LLPClassifier
    settings : list of dict
        Values of hyper-parameters.
    splits : list of (train, test)
        Rows of the training and the validation part, see `SplitBagKFold` and others.
    data : (X, bags, proportions)
        Arrays.
    scorer : callable
        Of `proportion_scorer`.

    Returns
    -------
    best : dict
        The first of the settings with the smallest mean error.
    errors : ndarray, shape (n_settings, n_splits)
    """
    X, bags, proportions = data
    errors = np.empty((len(settings), len(splits)))
    for i, setting in enumerate(settings):
        for s, (train, test) in enumerate(splits):
            model = clone(estimator).set_params(**setting)
            model.fit(X[train], bags[train], proportions)
            errors[i, s] = -scorer(model, X[test], bags[test])
    # eq: eq-ms-select
    return settings[errors.mean(axis=1).argmin()], errors


class BagSearch:
    """What the searches add to scikit-learn's: bags and proportions, a splitter and a scorer for them."""

    def fit(self, X, bags, proportions=None, labels=None):
        """Choose by cross-validation over bags, then fit the best setting to all of them.

        Parameters
        ----------
        X : array-like, shape (n_instances, n_features)
        bags : array-like, shape (n_instances,)
        proportions : array-like, Series, dict or DataFrame
            Required; see `llpbook.base.check_proportions`.
        labels : array-like, shape (n_instances,), optional
            Known labels, -1 for unknown: they reach the fits, not the scores.

        Returns
        -------
        BagSearch
            This search, fitted.

        Raises
        ------
        ValueError
            If the input is malformed, ``scoring`` compares with anything but proportions, or every setting fails in a
            split, as where the training bags have equal shares.
        """
        if proportions is None:
            raise ValueError("proportions is missing: pass fit(X, bags, proportions)")
        matrix, classes, keys = check_proportions(proportions, empty_rows=True)
        bags = check_column("bags", bags, count_rows(X), X)
        codes = check_bags(bags, len(bags), len(matrix), keys)
        sizes = np.bincount(codes, minlength=len(matrix))
        run = copy.copy(self)  # hyper-parameters stay as the user gave them
        run.scoring = read_scoring(self.scoring, proportions, pd.Series(sizes, keys))
        if self.cv is None or isinstance(self.cv, Integral):
            run.cv = SplitBagKFold(5 if self.cv is None else self.cv, random_state=0)
        if len(matrix) == len(bags):
            # scikit-learn cuts what is as long as X: let row i be the bag of instance i
            names = pd.RangeIndex(len(matrix)) if keys is None else keys
            rows = pd.unique(codes)
            proportions = pd.DataFrame(matrix[rows], names[rows], classes)
        given = {"proportions": proportions, "labels": labels}
        steps = getattr(self.estimator, "steps", None)
        prefix = f"{steps[-1][0]}__" if steps else ""
        given = {prefix + k: v for k, v in given.items() if v is not None}
        with config_context(enable_metadata_routing=False):
            super(BagSearch, run).fit(X, bags, groups=bags, **given)
        means = [v for k, v in run.cv_results_.items() if k.startswith("mean_test_")]
        if not np.isfinite(means).any():
            raise ValueError("no setting has a score in every split: see the warnings")
        vars(self).update({k: v for k, v in vars(run).items() if k.endswith("_")})
        return self

    def score(self, X, y):
        """Accuracy of the best estimator: for evaluation, where the labels of instances are known.

        Parameters
        ----------
        X : array-like, shape (n_instances, n_features)
        y : array-like, shape (n_instances,)
            True labels.

        Returns
        -------
        float
        """
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.score(X, y)

    def predict_proportions(self, X, bags, n_bags=None):
        """The share of each class among the predictions for each bag; see `llpbook.base.predict_proportions`."""
        check_is_fitted(self, "best_estimator_")
        return predict_proportions(self.best_estimator_, X, bags, n_bags)


def read_scoring(scoring, proportions, sizes):
    """What a search was given as ``scoring``, made a scorer or a dict of scorers.

    Parameters
    ----------
    scoring : None, str, ProportionScorer, or a list or dict of them
        See `LLPGridSearchCV`.
    proportions : array-like, Series, dict or DataFrame
    sizes : Series, shape (n_bags,)
        Of the whole bags.

    Returns
    -------
    ProportionScorer or dict

    Raises
    ------
    ValueError
        If it is anything else: scikit-learn's scores would compare predictions with bags.
    """
    if isinstance(scoring, dict) and scoring:
        return {
            name: read_scoring(one, proportions, sizes) for name, one in scoring.items()
        }
    if isinstance(scoring, list | tuple | set):
        return read_scoring({name: name for name in scoring}, proportions, sizes)
    if isinstance(scoring, ProportionScorer):
        return scoring
    name = "mae" if scoring is None else scoring
    if not isinstance(name, str) or name not in (*ERRORS, LIKELIHOOD):
        known = ", ".join([*ERRORS, LIKELIHOOD])
        raise ValueError(
            f"scoring must compare proportions: one of {known}, or proportion_scorer(proportions, error), got "
            f"{scoring!r}, which would compare predictions with bags"
        )
    return proportion_scorer(proportions, name, sizes if name == LIKELIHOOD else None)


class LLPGridSearchCV(BagSearch, GridSearchCV):
    """Choose hyper-parameters from a grid by held-out shares: scikit-learn's ``GridSearchCV`` with bags.

    ``fit(X, bags, proportions)`` and, of a `Pipeline` too, no parameter besides. All else is scikit-learn's.

    Parameters
    ----------
    estimator : LLPClassifier or Pipeline
    param_grid : dict or list of dict
    scoring : None, str, ProportionScorer, or a list or dict of them, default None
        A name of `proportion_scorer`, "mae" if None; of several, ``refit`` names the one that decides.
    n_jobs : int, default None
        ``joblib.parallel_config(backend="dask")`` distributes the fits.
    refit : bool, str or callable, default True
    cv : None, int or splitter, default None
        An integer (None: 5) is ``SplitBagKFold(cv, random_state=0)``.
    verbose : int, default 0
        1: how many fits; 2 and more: each of them.
    pre_dispatch : int or str, default "2*n_jobs"
    error_score : "raise" or numeric, default nan
        The score of a fit that failed, with a warning.
    return_train_score : bool, default False

    Attributes
    ----------
    best_estimator_, best_params_, best_score_, best_index_, cv_results_, scorer_, n_splits_, refit_time_
        As scikit-learn's. A tie goes to the first setting of the grid.

    Notes
    -----
    Algorithm 1 of franco2023; without ``n_jobs`` it is `select_setting` and a fit to all bags.

    Examples
    --------
    >>> search = LLPGridSearchCV(MeanMap(), {"alpha": [1, 10, 100]})  # doctest: +SKIP
    >>> search.fit(X, bags, proportions).predict(X)  # doctest: +SKIP
    """


class LLPRandomizedSearchCV(BagSearch, RandomizedSearchCV):
    """Choose hyper-parameters among random ones by held-out shares: scikit-learn's ``RandomizedSearchCV`` with bags.

    Parameters
    ----------
    estimator : LLPClassifier or Pipeline
    param_distributions : dict or list of dict
        Lists, or distributions with ``rvs``.
    n_iter : int, default 10
    scoring, n_jobs, refit, cv, verbose, pre_dispatch, error_score, return_train_score
        See `LLPGridSearchCV`.
    random_state : int, RandomState or None, default None

    Attributes
    ----------
    best_estimator_, best_params_, best_score_, best_index_, cv_results_, scorer_, n_splits_, refit_time_
        As scikit-learn's.
    """


# Where the "?" of scikit-learn's HTML display leads to: the chapter, which shows the class without these two lines.
BagSearch._doc_link_module = "llpbook"
BagSearch._doc_link_template = page("model_selection")
