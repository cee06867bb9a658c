"""Intervals of any statistic of any estimator, by drawing whole bags with replacement."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy.stats import norm
from sklearn.base import clone
from sklearn.utils import check_random_state, get_tags

from .._input import (
    ArrayLike,
    Matrix,
    Proportions,
    RandomState,
    check_whole,
    keyed_rows,
    safe_indexing,
)
from ..base import (
    NotIdentifiableError,
    Progress,
    check_learner,
    comparing,
    fit_to_bags,
    read_bags,
    warn,
)
from ._accuracy import no_features
from ._table import check_level

#: Parameters of estimators with an entry per row of the proportions.
PER_BAG = ("bag_weights", "proportion_errors")
KINDS = ("normal", "percentile", "studentized")


@dataclass(frozen=True)
class BagBootstrap:
    """Values of a statistic on all bags and on drawn bags, from `bag_bootstrap`.

    Attributes
    ----------
    estimate : ndarray, shape (n_values,)
        Of the fit to all bags.
    replicates : ndarray, shape (n_fitted, n_values)
        Of the fits to drawn bags.
    estimate_errors, replicate_errors : ndarray or None, of the same shapes
        Standard errors, where the statistic gives them.
    failed : int
        Draws that could not be fitted.

    Examples
    --------
    >>> from llpbook import BagMeanRegression, bag_bootstrap, load_bags
    >>> X, bags, proportions = load_bags("heart", bag_size=8, random_state=0)
    >>> def share_ill(model):
    ...     return (model.predict(X) == "present").mean()
    >>> model = BagMeanRegression()
    >>> result = bag_bootstrap(model, X, bags, proportions, share_ill, n_resamples=20, random_state=0)
    >>> result.interval().columns.tolist()
    ['low', 'high']
    """

    estimate: np.ndarray
    replicates: np.ndarray
    estimate_errors: np.ndarray | None = None
    replicate_errors: np.ndarray | None = None
    failed: int = 0

    @property
    def errors(self):
        """Standard deviations of the replicates, shape (n_values,)."""
        return self.replicates.std(axis=0, ddof=1)

    def interval(self, level=0.95, kind="normal"):
        """Intervals of the values.

        Parameters
        ----------
        level : float, default 0.95
        kind : {"normal", "percentile", "studentized"}, default "normal"
            The estimate and the standard deviation of the replicates, which covers better than quantiles of the
            replicates (chapter ``book/uncertainty``); or quantiles of the errors of the replicates, each in its own
            standard errors, where the statistic gives these.

        Returns
        -------
        DataFrame
            Columns ``low`` and ``high``, a row per value.

        Raises
        ------
        ValueError
            For a level outside of (0, 1), another kind, or "studentized" without standard errors.
        """
        check_level(level)
        if kind not in KINDS:
            raise ValueError(f"kind must be one of {KINDS}, got {kind!r}")
        tails = np.array([(1 - level) / 2, (1 + level) / 2])
        if kind == "percentile":
            low, high = np.quantile(self.replicates, tails, axis=0)
        elif kind == "normal":
            low, high = self.estimate + norm.ppf(tails)[:, None] * self.errors
        elif self.replicate_errors is None:
            raise ValueError(
                "kind='studentized' needs a statistic that returns a pair: values and their standard errors"
            )
        else:
            off = (self.replicates - self.estimate) / self.replicate_errors
            ends = np.quantile(off, tails, axis=0)
            high, low = self.estimate - self.estimate_errors * ends
        return pd.DataFrame({"low": low, "high": high})


def draw_bags(bags, n_bags, drawn):
    """Rows of drawn bags, and new numbers of their bags: a bag that is drawn twice becomes two bags.

    Parameters
    ----------
    bags : ndarray of int, shape (n_instances,)
    n_bags : int
    drawn : ndarray of int, shape (n_drawn,)

    Returns
    -------
    rows, codes : ndarray of int, shape (n_rows,)
    """
    order = np.argsort(bags, kind="stable")
    sizes = np.bincount(bags, minlength=n_bags)
    first = np.cumsum(sizes) - sizes
    codes = np.repeat(np.arange(len(drawn)), sizes[drawn])
    start = np.cumsum(sizes[drawn]) - sizes[drawn]
    return order[first[drawn][codes] + np.arange(len(codes)) - start[codes]], codes


def parameters_of_bags(estimator, data):
    """Parameters with an entry per bag, of an estimator, its steps and the estimators inside of them.

    Parameters
    ----------
    estimator : estimator or Pipeline
    data : BagData

    Returns
    -------
    dict of str: ndarray
        In the order of the rows of the proportions.
    """
    per_bag, n_bags = {}, len(data.proportions)
    for key, value in estimator.get_params().items():
        name = key.rpartition("__")[2]
        if name in PER_BAG and value is not None and not isinstance(value, str):
            rows = keyed_rows(name, value, n_bags, data.bag_labels)
            if len(rows) != n_bags:
                raise ValueError(
                    f"{key} must have an entry for each of {n_bags} bags, got {len(rows)}"
                )
            per_bag[key] = rows
    return per_bag


def _evaluate(estimator, X, bags, proportions, counts, statistic):
    """Values of the statistic on a fit, and their standard errors or None."""
    model = fit_to_bags(clone(estimator), X, bags, proportions, counts=counts)
    value = statistic(model)
    pair = value if isinstance(value, tuple) else (value, None)
    if pair[0] is None:
        raise ValueError("statistic must return a number or numbers, got None")
    return [None if v is None else np.atleast_1d(np.asarray(v, float)) for v in pair]


def _replicate(estimator, X, data, shares, drawn, statistic, own):
    estimator = clone(estimator).set_params(**{k: v[drawn] for k, v in own.items()})
    rows, codes = draw_bags(data.bags, len(shares), drawn)
    shares = shares.iloc[drawn].reset_index(drop=True)
    counts = None if data.frequencies is None else data.frequencies[rows]
    X = safe_indexing(X, rows)
    try:
        with comparing():
            return _evaluate(estimator, X, codes, shares, counts, statistic)
    except NotIdentifiableError:  # the caller counts these, and warns
        return None


def bag_bootstrap(
    estimator: Any, X: Matrix, bags: ArrayLike, proportions: Proportions,
    statistic: Callable, *, counts: ArrayLike | None = None,
    n_resamples: int = 200, random_state: RandomState = None,
    n_jobs: int | None = None, verbose: int = 0,
) -> BagBootstrap:  # fmt: skip
    """Bootstrap a statistic of a fitted model by drawing whole bags with replacement.

    Parameters
    ----------
    estimator : estimator or Pipeline
        Cloned and fitted for each draw. Its ``proportion_errors`` and ``bag_weights`` follow the bags that are drawn.
    X : array-like, shape (n_instances, n_features)
    bags : array-like, shape (n_instances,)
    proportions : array-like, Series, dict or DataFrame
        See `llpbook.proportions.check_proportions`.
    statistic : callable
        ``statistic(model)`` returns a number or a vector, or for studentized intervals a pair of these and their
        standard errors. With ``n_jobs`` it must be picklable.
    counts : array-like of int, shape (n_instances,), optional
        How many equal instances each row stands for, as in a table of cells; the fits take them. One if not given.
    n_resamples : int, default 200
    random_state : int, RandomState or None
    n_jobs : int, optional
        Processes, as in joblib.
    verbose : int, default 0
        1 prints the progress, at most a line a second.

    Returns
    -------
    BagBootstrap

    Raises
    ------
    ValueError
        If ``n_resamples`` is below 2, no draw can be fitted, the input is malformed, or a step of a pipeline looks at
        ``y``.

    Notes
    -----
    Measured (chapter ``book/uncertainty``): it covers for `CountLogistic` in 100 random bags of 5. For
    `MeanMap` with a weak penalty it fails, because a draw whose shares differ little has class means far outside of the
    data, and so weights without bound. Draws that cannot be fitted at all are counted in ``failed``, and an
    `LLPWarning` says so.

    Examples
    --------
    >>> import numpy as np
    >>> from llpbook import BagMeanRegression, bag_bootstrap, load_bags
    >>> X, bags, proportions = load_bags("heart", bag_size=8, random_state=0)
    >>> def share_ill(model):
    ...     return np.mean(model.predict(X) == "present")
    >>> model = BagMeanRegression()
    >>> result = bag_bootstrap(model, X, bags, proportions, share_ill, n_resamples=20, random_state=0)
    >>> result.replicates.shape, bool(0.3 < result.estimate < 0.6)
    ((20, 1), True)
    """
    check_whole("n_resamples", n_resamples, 2)
    if get_tags(estimator).input_tags.pairwise:
        raise ValueError(
            "estimator has kernel='precomputed', whose X has a column for each instance, while each draw has others: "
            "pass features as X, and the kernel as a function kernel(X, Z)"
        )
    check_learner(estimator)
    noisy = any(
        key.endswith("proportion_noise") and value is not None
        for key, value in estimator.get_params().items()
    )
    data = read_bags(
        no_features(bags), bags, proportions, original=X, noisy=noisy, counts=counts
    )
    if data.kept is not None:
        X = safe_indexing(X, np.flatnonzero(data.kept))
    own = parameters_of_bags(estimator, data)
    estimator = clone(estimator).set_params(**own)
    used = np.flatnonzero(data.bag_sizes)
    shares = pd.DataFrame(data.proportions, columns=data.classes)
    estimate, errors = _evaluate(
        estimator, X, data.bags, shares, data.frequencies, statistic
    )
    rng = check_random_state(random_state)
    draws = (used[rng.randint(len(used), size=len(used))] for _ in range(n_resamples))
    tasks = (
        delayed(_replicate)(estimator, X, data, shares, drawn, statistic, own)
        for drawn in draws
    )
    fitted = _fit_draws(tasks, n_resamples, n_jobs, verbose)
    values, spreads = zip(*fitted, strict=True)
    each = None if errors is None else np.array(spreads)
    failed = n_resamples - len(fitted)
    return BagBootstrap(estimate, np.array(values), errors, each, failed)


def _fit_draws(tasks, n_resamples, n_jobs, verbose):
    """Values of the draws that can be fitted; warns of the others."""
    progress = Progress("bag_bootstrap", verbose, n_resamples, unit="draw")
    fitted = []
    for values in Parallel(n_jobs=n_jobs, return_as="generator")(tasks):
        if values is not None:
            fitted.append(values)
        progress.step()
    if len(fitted) < 2:
        raise ValueError(
            f"only {len(fitted)} of {n_resamples} draws can be fitted: there are too few bags"
        )
    if len(fitted) < n_resamples:
        warn(
            f"{n_resamples - len(fitted)} of {n_resamples} draws of bags cannot be fitted, because their shares do not "
            "differ; the others are used, so the intervals are too narrow"
        )
    return fitted
