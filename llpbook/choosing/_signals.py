"""Signals that bags and shares give without labels, within a limit of time."""

import time
from functools import partial
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils import check_random_state

from ..base import NotIdentifiableError, TimeIsUp, time_limit
from ..baselines import MajorityClass
from ..count_likelihood import CountBoosting, CountLogistic
from ..em import EMLR
from ..model_selection import (
    FullBagKFold,
    OutOfFold,
    SplitBagKFold,
    bag_part,
    count_log_likelihood,
)
from ..proportions import class_prior, identifiability

#: By name: what may be recommended, and ``other``, a method that assumes something else, to compare with.
METHODS = {
    "line": CountLogistic(C=0.1),
    "trees": CountBoosting(),
    "other": EMLR(C=0.01),
    "majority": MajorityClass(),
}
#: Folds of the gain; instances that are enough to look at, and the least number of bags to look at.
FOLDS, MOST, LEAST = 3, 10_000, 30
#: Numbers other than 0 in the rows that a fit sees; of more, a part of each bag is fitted to.
MOST_NUMBERS = 7_000_000
#: Numbers of a sparse matrix, zeros included, up to which it is made dense for trees: 400 MB.
MOST_DENSE = 50_000_000
#: Weights above which a Newton matrix of logistic regression, in EM, is too large.
MANY_WEIGHTS = 1000


class Signals(NamedTuple):
    """Signals of the bags without labels; NaN where one could not be computed, or not in time.

    - ``n_instances``, ``n_features``, ``n_bags``, ``n_classes``: bags without instances are not counted.
    - ``largest``: the share of the largest class.
    - ``worth``: how many labels the bags are worth (`llpbook.proportions.identifiability`), for the class for which
      they are worth least.
    - ``agreement``: the share of instances to which the line and EM give the same label.
    - ``other``: the share of the instances that the likelier of line and trees gives to another class than the largest.
    - ``line``, ``trees``: gain of the count likelihood with a line and with trees on held-out parts of bags, in nats,
      for the bags that were looked at.
    - ``whole``: gain of the better of the two on held-out whole bags.
    - ``trees_tried``: False where X is sparse and as a dense matrix, which trees need, too large.
    """

    n_instances: int
    n_features: int
    n_bags: int
    n_classes: int
    largest: float
    worth: float
    agreement: float = np.nan
    other: float = np.nan
    line: float = np.nan
    trees: float = np.nan
    whole: float = np.nan
    trees_tried: bool = True

    @property
    def gain(self):
        """The larger of the two gains."""
        return float(np.fmax(self.line, self.trees))

    @property
    def likelier(self):
        """The name of the method with the larger gain."""
        return "trees" if self.trees > self.line else "line"


class Clock:
    """The time that is left of a limit, and the names of the fits that were not tried because of the limit.

    Parameters
    ----------
    seconds : float
    progress : Progress
    """

    def __init__(self, seconds, progress):
        self.end, self.progress = time.perf_counter() + seconds, progress
        self.first, self.not_tried = 0.0, []

    def attempt(self, what, compute, cost=1, otherwise=np.nan, share=1):
        """The result of a computation, if it takes no more than a share of the time that is left.

        Parameters
        ----------
        what : str
            Its name in ``not_tried``.
        compute : callable
        cost : float, default 1
            In units of what the first attempt took; where less time is left, there is no attempt.
        otherwise : object, default NaN
            The result where the time is too short.
        share : float, default 1

        Returns
        -------
        object
        """
        began = time.perf_counter()
        left = share * (self.end - began)
        try:
            if cost * self.first < left:
                with time_limit(left):
                    return compute()
        except TimeIsUp:
            pass
        finally:
            self.first = self.first or time.perf_counter() - began
            self.progress.step(what)
        self.not_tried.append(what)
        return otherwise


def agreement(first, second):
    """The share of instances for which two methods predict the same label.

    Parameters
    ----------
    first, second : ndarray, shape (n_instances,)
        Predicted labels.

    Returns
    -------
    float
    """
    # eq: eq-choosing-agreement
    return float(np.mean(first == second))


def held_out_gain(estimator, X, bags, proportions, splits):
    r"""Log-likelihood of the bags' counts under out-of-fold probabilities, minus that under the class prior.

    :math:`G = \sum_k \log \frac{P(c_k \mid \hat p)}{P(c_k \mid \eta)}`, equation :eq:`eq-choosing-gain`.

    Parameters
    ----------
    estimator : LLPClassifier
        With ``predict_proba``.
    X : ndarray or sparse array, shape (n_instances, n_features)
    bags : ndarray of int, shape (n_instances,)
        Without gaps.
    proportions : ndarray, shape (n_bags, n_classes)
    splits : list of (ndarray, ndarray)
        Rows to fit to, and rows held out; each row is held out once.

    Returns
    -------
    float
        In nats.
    """
    scores = []
    for model in (estimator, MajorityClass()):
        fitted = OutOfFold(clone(model), splits).fit(X, bags, proportions=proportions)
        p = fitted.predict_proba(X)
        scores.append(count_log_likelihood(p, bags, proportions))
    # eq: eq-choosing-gain
    return len(proportions) * (scores[0] - scores[1])


def whole_bags(bags, proportions, rng):
    """Whole bags, drawn until they hold `MOST` instances, but at least `LEAST` of them.

    For a class whose share is the same in all of these, the bag that differs most in it is added.

    Parameters
    ----------
    bags : ndarray of int, shape (n_instances,)
        Without gaps.
    proportions : ndarray, shape (n_bags, n_classes)
    rng : RandomState

    Returns
    -------
    ndarray of int
        Rows of their instances, ascending.
    """
    sizes, order = np.bincount(bags), rng.permutation(len(proportions))
    enough = 1 + int(np.searchsorted(np.cumsum(sizes[order]), MOST))
    drawn = order[: max(LEAST, enough)]
    gaps = np.abs(proportions - proportions[drawn[0]])
    alike = gaps[drawn].max(axis=0) < 1e-9
    drawn = np.append(drawn, gaps.argmax(axis=0)[alike])
    return np.flatnonzero(np.isin(bags, drawn))


def to_dense(X):
    """Convert a sparse matrix to an array; return an array as it is."""
    return X.toarray() if sp.issparse(X) else X


#: The steps before trees where features are sparse: what dense features get, too.
DENSE = make_pipeline(
    FunctionTransformer(to_dense, accept_sparse=True), StandardScaler()
)


class Sample(NamedTuple):
    """The bags of which signals are computed.

    - ``X``: scaled features.
    - ``bags``: without gaps, rows of ``proportions``.
    - ``part``: a mask of the rows that a method is fitted to.
    - ``errors``: covariances of the errors of the shares, or None.
    """

    X: object
    bags: np.ndarray
    proportions: np.ndarray
    part: np.ndarray
    errors: np.ndarray | None = None

    def with_errors(self, method):
        """A clone of a method that knows the errors of the shares, where it can use them."""
        method = clone(method)
        if self.errors is not None and "proportion_errors" in method.get_params():
            method.set_params(proportion_errors=self.errors)
        return method

    def fit(self, method):
        """Fit a clone of a method to the sample."""
        rows = slice(None) if self.part.all() else self.part
        return self.with_errors(method).fit(
            self.X[rows], self.bags[rows], self.proportions
        )

    def gain(self, method, splits):
        """`held_out_gain`; NaN where a class is in no bag of a fold."""
        splits = [(train[self.part[train]], test) for train, test in splits]
        try:
            return held_out_gain(
                self.with_errors(method), self.X, self.bags, self.proportions, splits
            )
        except NotIdentifiableError:
            return np.nan

    def whole_bag_splits(self, rng):
        """Splits by folds of whole bags."""
        n_folds = min(FOLDS, len(self.proportions))
        folds = FullBagKFold(n_folds, proportions=self.proportions, random_state=rng)
        return list(folds.split(self.X, groups=self.bags))

    def agreement(self, model):
        """`agreement` of a fitted model with the other method; NaN where that one refuses the bags."""
        other, weights = METHODS["other"], self.X.shape[1] * model.classes_[1:].size
        if weights > MANY_WEIGHTS:
            inside = LogisticRegression(C=other.C, max_iter=1000)
            other = clone(other).set_params(estimator=inside)
        try:
            return agreement(model.predict(self.X), self.fit(other).predict(self.X))
        except NotIdentifiableError:
            return np.nan


def draw_sample(X, bags, proportions, scaler, rng, errors=None):
    """Draw whole bags, and scale their features."""
    rows = whole_bags(bags, proportions, rng)
    used, codes = np.unique(bags[rows], return_inverse=True)
    Z, part = scaler.fit_transform(X[rows]), np.ones(len(rows), dtype=bool)
    numbers = Z.nnz if sp.issparse(Z) else Z.size
    if numbers > MOST_NUMBERS:
        part = bag_part(codes, MOST_NUMBERS / numbers, rng)
    errors = None if errors is None else errors[used]
    return Sample(Z, codes, proportions[used], part, errors)


def measure(sample, rng, clock, try_trees=True):
    """Compute the signals that need fits, the cheapest first.

    Parameters
    ----------
    sample : Sample
    rng : RandomState
        Of the folds.
    clock : Clock
    try_trees : bool, default True

    Returns
    -------
    measured : dict
        ``agreement``, ``line``, ``trees`` and ``whole`` of `Signals`.
    model : LLPClassifier or None
        The likelier of line and trees; its classes are the columns of the proportions. None if the time is up.

    Raises
    ------
    NotIdentifiableError
        If the bags cannot be fitted.
    """
    folds, measured = SplitBagKFold(FOLDS, random_state=rng), {"trees": np.nan}
    parts = list(folds.split(sample.bags, groups=sample.bags))
    best, trees = METHODS["line"], METHODS["trees"]
    fit = partial(sample.fit, best)
    model = clock.attempt("CountLogistic", fit, otherwise=None)
    if model is None:
        return measured, None
    gain = partial(sample.gain, best, parts)
    measured["line"] = clock.attempt("gain of CountLogistic", gain, FOLDS - 1)
    agreement_of_model = partial(sample.agreement, model)
    measured["agreement"] = clock.attempt("EMLR", agreement_of_model, share=0.5)
    if try_trees:
        before = clone(DENSE) if sp.issparse(sample.X) else FunctionTransformer()
        dense = sample._replace(X=before.fit_transform(sample.X))
        gain = partial(dense.gain, trees, parts)
        what = "gain of CountBoosting"
        measured["trees"] = clock.attempt(what, gain, FOLDS - 1, share=0.5)
    if measured["trees"] > measured["line"]:
        best, sample = trees, dense
        fit = partial(sample.fit, trees)
        fitted = clock.attempt("CountBoosting", fit, otherwise=None)
        model = model if fitted is None else make_pipeline(before, fitted)
    gain = partial(sample.gain, best, sample.whole_bag_splits(rng))
    measured["whole"] = clock.attempt("gain on whole bags", gain, FOLDS - 1)
    return measured, model


def look(X, bags, proportions, scaler, random_state, clock, errors=None):
    """Compute all signals of given bags.

    Parameters
    ----------
    X : ndarray or sparse array, shape (n_instances, n_features)
    bags : ndarray of int, shape (n_instances,)
        Without gaps.
    proportions : ndarray, shape (n_bags, n_classes)
    scaler : transformer
        Fitted here.
    random_state : int, RandomState or None
        Of the bags that are looked at, and of the folds.
    clock : Clock
    errors : ndarray, shape (n_bags, n_classes, n_classes), optional
        Covariances of the errors of the shares.

    Returns
    -------
    signals : Signals
    model : LLPClassifier or None
        See `measure`.
    refusal : str or None
        Why the bags that are looked at cannot be fitted.
    """
    prior = class_prior(proportions, np.bincount(bags))
    worth = identifiability(bags, proportions).worth_in_labels.min()
    rng = check_random_state(random_state)
    signals = Signals(
        n_instances=X.shape[0],
        n_features=X.shape[1],
        n_bags=len(proportions),
        n_classes=len(prior),
        largest=float(prior.max()),
        worth=float(worth),
        trees_tried=not sp.issparse(X) or X.shape[0] * X.shape[1] <= MOST_DENSE,
    )
    try:
        sample = draw_sample(X, bags, proportions, scaler, rng, errors)
        measured, model = measure(sample, rng, clock, signals.trees_tried)
    except NotIdentifiableError as error:
        return signals, None, str(error)
    if model is not None:
        measured["other"] = float(np.mean(model.predict(sample.X) != prior.argmax()))
    return signals._replace(**measured), model, None
