"""Searches over settings: Algorithm 1 as it is written, and scikit-learn's with bags."""

import copy
import time
from numbers import Integral

import numpy as np
import pandas as pd
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    LeaveOneOut,
    LeavePOut,
    RandomizedSearchCV,
    RepeatedKFold,
    ShuffleSplit,
    TimeSeriesSplit,
    check_cv,
    cross_validate,
)
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from .._input import (
    check_bags,
    check_column,
    filters_kept,
    match_bags,
    page,
    refuse_cells,
    refuse_missing,
    rows_of_instances,
    safe_indexing,
)
from ..base import check_learner, comparing, predict_proportions, quiet, warn
from ..baselines import MajorityClass
from ._pooled import (
    POOLED,
    are_pooled,
    check_partition,
    default_score,
    with_shares,
)
from ._scorers import SCORES, ProportionScorer, proportion_scorer
from ._splitters import BagSplitter, SplitBagKFold, count_rows


def select_setting(estimator, settings, splits, data, scorer):
    r"""Choose the setting with the smallest mean error: Algorithm 1 of franco2023 as it is written.

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
            with comparing():
                model.fit(X[train], bags[train], proportions)
            errors[i, s] = -scorer(model, X[test], bags[test])
    # eq: eq-ms-select
    return settings[errors.mean(axis=1).argmin()], errors


def expand_rows(estimator, X, bags, labels, counts):
    """Repeat the rows of features, bags and labels by their counts; a kernel matrix becomes an array."""
    n, pairwise = len(bags), get_tags(estimator).input_tags.pairwise
    if pairwise and not hasattr(X, "tocsr"):
        X = np.asarray(X)  # whose columns can be cut like its rows
    if counts is None:
        return X, bags, labels
    if pairwise:
        raise ValueError(
            "counts repeats rows, and a precomputed kernel has a column for each of them: repeat both before the "
            "search, rows = np.repeat(np.arange(len(K)), counts) and K[np.ix_(rows, rows)]"
        )
    rows = rows_of_instances(counts, n, X)
    if labels is not None:
        labels = check_column("labels", labels, n, X)[rows]
    return safe_indexing(X, rows), bags[rows], labels


def forget(search):
    """Remove what an earlier fit left."""
    for name in [k for k in vars(search) if k.endswith("_")]:
        delattr(search, name)


def refuse_others(search, others):
    """TypeError where ``fit`` gets arguments that it does not take."""
    if others:
        raise TypeError(
            f"{type(search).__name__}.fit takes no {', '.join(others)}: pass fit(X, bags, proportions, labels, "
            "counts=...). The shares need no name of a step, the bags are the groups, and of weights only counts of "
            "equal rows are taken"
        )


def checking(estimator, evaluate):
    """``evaluate`` behind a check: InvalidParameterError for a value that breaks a rule, before anything is fitted."""

    def checked(settings, **more):
        settings = list(settings)
        for setting in settings:
            model = clone(estimator).set_params(**setting)
            for one in (model.get_params() | {"": model}).values():
                if hasattr(one, "_parameter_constraints") and not isinstance(one, type):
                    one._validate_params()
        return evaluate(settings, **more)

    return checked


def require_a_score(search, X, bags, params):
    """ValueError with the error of the first setting, where no setting has a score in every split."""
    means = [v for k, v in search.cv_results_.items() if k.startswith("mean_test_")]
    if np.isfinite(means).any():
        return
    first, why = clone(search.estimator), "its score is no number"
    first.set_params(**search.cv_results_["params"][0])
    try:
        cross_validate(
            first, X, bags, groups=bags, scoring=search.scoring, cv=search.cv,
            params=params, error_score="raise",
        )  # fmt: skip
    except ValueError as error:
        why = error
    raise ValueError(f"no setting has a score in every split; the first setting: {why}")


def take_best(search, pooled):
    """Take the best estimator out of what was put around it; one with pooled scores is fitted only now."""
    best, began = search.best_estimator_, time.perf_counter()
    if pooled:
        best = best.fit_whole()
        search.refit_time_ = time.perf_counter() - began
    search.best_estimator_ = best.estimator
    if hasattr(best.estimator, "feature_names_in_"):
        search.feature_names_in_ = best.estimator.feature_names_in_


class BagSearch:
    """Mixin of the searches: adds bags and proportions to scikit-learn's, with a splitter and a scorer for them."""

    def fit(self, X, bags, proportions=None, labels=None, *, counts=None, **others):
        """Choose by cross-validation over bags, then fit the best setting to all of them.

        Parameters
        ----------
        X : array-like, shape (n_instances, n_features)
        bags : array-like, shape (n_instances,)
        proportions : array-like, Series, dict or DataFrame
            Required; see `llpbook.proportions.check_proportions`.
        labels : array-like, shape (n_instances,), optional
            Known labels, -1 for unknown: they reach the fits, not the scores.
        counts : array-like of int, shape (n_instances,), optional
            How many equal instances each row stands for. The rows are expanded, since folds cut between instances.
        **others
            None is taken.

        Returns
        -------
        BagSearch
            This search, fitted.

        Raises
        ------
        TypeError
            If there are others.
        ValueError
            If the input is malformed, ``cv`` splits rows without regard to the bags, ``scoring`` compares with anything
            but proportions, an estimator does not learn from bags, a step before it looks at ``y``, or every setting
            fails in a split, as where the training bags have equal shares.
        """
        refuse_others(self, others)
        refuse_missing(proportions, bags, None)
        for trial in trials(self):
            check_learner(trial)
        matrix, _, keys, codes = match_bags(proportions, bags, count_rows(X), X)
        if counts is None:
            refuse_cells(X, codes, matrix)
        bags = check_column("bags", bags, count_rows(X), X)
        X, bags, labels = expand_rows(self.estimator, X, bags, labels, counts)
        codes = check_bags(bags, len(bags), len(matrix), keys)
        sizes = np.bincount(codes, minlength=len(matrix))
        run = copy.copy(self)  # hyper-parameters stay as the user gave them
        forget(run)
        run.cv = read_splits(self.cv, X, bags)
        scoring = self.scoring
        if scoring is None:
            scoring = default_score(run.cv, len(bags))
        run.scoring = read_scoring(scoring, proportions, pd.Series(sizes, keys))
        with config_context(enable_metadata_routing=False):
            run._choose(X, bags, proportions, labels)
        forget(self)
        vars(self).update({k: v for k, v in vars(run).items() if k.endswith("_")})
        return self

    def _run_search(self, evaluate_candidates, *, callback_ctx=None):
        """Compare the settings, among which no fit warns of what concerns it alone; an invalid one is refused."""
        context = {} if callback_ctx is None else {"callback_ctx": callback_ctx}
        evaluate = checking(self.estimator, evaluate_candidates)
        with self.estimator.search.settings_compared():
            super()._run_search(evaluate, **context)

    def _choose(self, X, bags, proportions, labels):
        """Score all settings and the majority class, with scorers and splits that are read, and fit the best."""
        pooled = are_pooled(self.scoring)
        params, splits = {} if labels is None else {"labels": labels}, None
        if pooled:
            check_partition(self.cv, len(bags))
            splits, self.cv = self.cv, [(np.arange(len(bags)),) * 2]
        self.estimator = with_shares(self.estimator, proportions, splits)
        majority = with_shares(MajorityClass(), proportions, splits)
        super().fit(X, bags, groups=bags, **params)
        require_a_score(self, X, bags, params)
        if hasattr(self, "best_estimator_"):
            take_best(self, pooled)
        chosen = getattr(self, "best_estimator_", self.estimator)
        soft = hasattr(chosen, "predict_proba")
        scoring = self.scoring if soft else of_labels(self.scoring)
        scores = score_majority(majority, scoring, self.cv, bags, params)
        self.majority_score_ = scores if self.multimetric_ else scores["score"]
        compare_with_majority(self, bags)

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

    def predict_proportions(self, X, bags, n_bags=None, soft=False, *, counts=None):
        """The share of each class among the predictions for each bag; see `llpbook.base.predict_proportions`."""
        check_is_fitted(self, "best_estimator_")
        best = self.best_estimator_
        return predict_proportions(best, X, bags, n_bags, soft, counts=counts)


def trials(search):
    """The estimator with each estimator of the grid in its place, not fitted.

    Parameters
    ----------
    search : LLPGridSearchCV or LLPRandomizedSearchCV

    Yields
    ------
    estimator
    """
    name = "param_grid" if hasattr(search, "param_grid") else "param_distributions"
    grids = getattr(search, name)
    for grid in grids if isinstance(grids, list | tuple) else [grids]:
        lists = {k: v for k, v in dict(grid).items() if isinstance(v, list | tuple)}
        choices = {k: v for k, v in lists.items() if any(hasattr(x, "fit") for x in v)}
        first = {key: values[0] for key, values in choices.items()}
        yield clone(search.estimator).set_params(**first)
        for key, values in choices.items():
            for value in values[1:]:
                yield clone(search.estimator).set_params(**first | {key: value})


def of_labels(scoring):
    """Copies of scorers that score labels where they are free to choose between labels and probabilities."""
    if isinstance(scoring, dict):
        return {name: of_labels(scorer) for name, scorer in scoring.items()}
    scorer = copy.copy(scoring)
    scorer.soft = False if scorer.soft is None else scorer.soft
    return scorer


def score_majority(majority, scoring, splits, bags, params):
    """Scores of the majority class under the splits of a search, by the name of the scorer; a single one is "score"."""
    X = np.zeros((len(bags), 1))
    with filters_kept(), quiet():  # the fits of the search have warned
        scores = cross_validate(
            majority, X, bags, groups=bags, scoring=scoring, cv=splits, params=params
        )
    return {k[5:]: float(v.mean()) for k, v in scores.items() if k.startswith("test_")}


def compare_with_majority(search, bags):
    """Warn where the setting that was chosen scores no higher than the majority class, and print both scores.

    Of several scores the one that ``refit`` names counts. Where parts of bags were scored, which favors probabilities
    that are all alike, the warning says so.
    """
    own, majority = getattr(search, "best_score_", None), search.majority_score_
    if isinstance(majority, dict):
        majority = majority.get(search.refit) if isinstance(search.refit, str) else None
    if own is None or majority is None:
        return
    both = f"{own:.4g}, that of the majority class {majority:.4g}"
    if search.verbose:
        print(f"{type(search).__name__}: the best score is {both}")
    if own <= majority:
        parts = not are_pooled(search.scoring) and any(
            np.isin(bags[test], bags[train]).any() for train, test in search.cv
        )
        hint = "; parts of small bags favor probabilities that are all alike: compare by 'pooled_log_likelihood'"
        warn(
            f"the setting that {type(search).__name__} chose, {search.best_params_}, is no better than the majority "
            f"class: its score is {both}; do not use it without a reason beside the score{hint * parts}"
        )


#: Splitters that read neither ``y`` nor ``groups``, both of which are the bags.
ROW_SPLITTERS = (
    KFold,
    LeaveOneOut,
    LeavePOut,
    RepeatedKFold,
    ShuffleSplit,
    TimeSeriesSplit,
)


def read_splits(cv, X, bags):
    """List the rows of each training and validation part: all settings, and the majority class, meet the same.

    Parameters
    ----------
    cv : None, int, splitter or iterable of (train, test)
        See `LLPGridSearchCV`.
    X : array-like, shape (n_instances, n_features)
    bags : array-like, shape (n_instances,)

    Returns
    -------
    list of (train, test)

    Raises
    ------
    ValueError
        If ``cv`` splits rows without regard to the bags.
    """
    if isinstance(cv, ROW_SPLITTERS):
        raise ValueError(
            f"cv={cv} splits rows without regard to the bags, so it cuts bags into uneven parts, whose shares nobody "
            "knows. Take an integer or SplitBagKFold, which hold out an equal part of each bag, FullBagKFold or "
            "GroupKFold, which hold out whole bags, or a list of (train, test) that keeps bags whole"
        )
    if cv is None or isinstance(cv, Integral):
        cv = SplitBagKFold(5 if cv is None else cv, random_state=0)
    splitter = check_cv(cv)
    rows = bags if isinstance(splitter, BagSplitter) else X
    return list(splitter.split(rows, bags, bags))


def read_scoring(scoring, proportions, sizes):
    """Turn the ``scoring`` of a search into a scorer or a dict of scorers.

    Parameters
    ----------
    scoring : str, ProportionScorer, or a list or dict of them
        See `LLPGridSearchCV`. A scorer without proportions gets those of the search.
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
        return scoring.with_proportions(proportions, sizes)
    if not isinstance(scoring, str) or scoring.removeprefix(POOLED) not in SCORES:
        raise ValueError(
            f"scoring must compare proportions: one of {', '.join(SCORES)}, with or without {POOLED!r} in front, or "
            f"proportion_scorer(proportions, error), got {scoring!r}, which would compare predictions with bags"
        )
    scorer = proportion_scorer(None, error=scoring.removeprefix(POOLED))
    scorer = scorer.with_proportions(proportions, sizes)
    scorer.pooled = scoring.startswith(POOLED)
    return scorer


class LLPGridSearchCV(BagSearch, GridSearchCV):
    """Choose hyper-parameters from a grid by held-out shares: scikit-learn's ``GridSearchCV`` with bags.

    ``fit(X, bags, proportions)`` and, of a `Pipeline` too, no parameter besides. All else is scikit-learn's.

    Parameters
    ----------
    estimator : LLPClassifier or Pipeline
    param_grid : dict or list of dict
    scoring : None, str, ProportionScorer, or a list or dict of them, default None
        A name of `proportion_scorer`; of several, ``refit`` names the one that decides. With "pooled" in front of a
        name, as in "pooled_log_likelihood", each instance is predicted by the fit that has not seen it, and then each
        whole bag is scored once: parts of bags, whose shares nobody knows, are not scored. Then there is one split in
        ``cv_results_``, with no deviation, and ``cv`` must hold out each instance once. None:
        "pooled_log_likelihood" where ``cv`` does so, otherwise "log_likelihood".
    n_jobs : int, default None
        ``joblib.parallel_config(backend="dask")`` distributes the fits.
    refit : bool, str or callable, default True
    cv : None, int, splitter or list of (train, test), default None
        An integer (None: 5) is ``SplitBagKFold(cv, random_state=0)``. Splitters of rows, such as scikit-learn's
        ``KFold``, are refused.
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
    majority_score_ : float, or dict of str to float
        The score of `MajorityClass` under the same splits; of several scores one each. Its labels are scored, not its
        probabilities, where the best estimator has no probabilities. Where the best score is not above it, an
        `LLPWarning` says so; ``verbose`` prints both.

    Notes
    -----
    Algorithm 1 of franco2023; without ``n_jobs``, and with a score that is not pooled, it is `select_setting` and a fit
    to all bags.

    The default follows from the study of the chapter ("Which score?"): 18 candidates on 17 natural groupings, and
    settings of single methods in small random bags.

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
    majority_score_ : float, or dict of str to float
        See `LLPGridSearchCV`.

    Examples
    --------
    >>> from llpbook import BagMeanRegression, LLPRandomizedSearchCV, load_bags
    >>> from scipy.stats import loguniform
    >>> data = load_bags("heart", bag_size=8, random_state=0)
    >>> search = LLPRandomizedSearchCV(BagMeanRegression(), {"alpha": loguniform(0.1, 10)}, n_iter=3, random_state=0)
    >>> bool(0.1 <= search.fit(*data).best_params_["alpha"] <= 10)
    True
    """


# Where the "?" of scikit-learn's HTML display leads to: the chapter, which shows the class without these two lines.
BagSearch._doc_link_module = "llpbook"  # type: ignore[attr-defined]
BagSearch._doc_link_template = page("model_selection")  # type: ignore[attr-defined]
