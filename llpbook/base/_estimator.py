"""The contract of an estimator, and scores that are linear in features or in those of a kernel."""

from abc import ABC, abstractmethod
from contextlib import contextmanager
from dataclasses import replace
from numbers import Real

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.special import expit, log_expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score
from sklearn.utils import gen_batches
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from ..proportions import averaging_matrix, check_flag, label_proportions
from ._chunked import InChunks
from ._input import (
    NotIdentifiableError,
    _show,
    check_bag_weights,
    check_bags,
    check_column,
    check_differences,
    error_covariances,
    explain,
    labels_to_pure_bags,
    merge_rows,
    page,
    read_bags,
    refuse_huge,
    refuse_unusable,
    single_rows,
)
from ._kernels import (
    gram_matrix,
    kernel_coefficient,
    kernel_features,
    refuse_indefinite,
)
from ._running import Progress, require_memory, warn, warn_once
from ._sklearn import Interval, InvalidParameterError, StrOptions


def warn_if_short(
    estimator,
    left="a gradient of {:.1e}",
    advice="scale the features, penalize more, or raise max_iter",
    slack=2,
):
    """Warn that an iterative fit stopped short, if it did.

    Parameters
    ----------
    estimator : LLPClassifier
        With ``n_iter_``, ``gap_`` (what is left of the optimality condition) and ``tol``, on the scale of the gap.
    left : str
        What the gap is, with a place for the number.
    advice : str
    slack : float, default 2
        A gap of so many tolerances is short.
    """
    if estimator.gap_ > slack * estimator.tol:
        warn(
            f"{type(estimator).__name__} stopped after {estimator.n_iter_} iterations with "
            f"{left.format(estimator.gap_)}, above tol={estimator.tol}; {advice}",
            ConvergenceWarning,
        )


def probabilities(scores):
    """Class probabilities from log-odds of the positive class, or from the scores of several classes.

    Parameters
    ----------
    scores : ndarray, shape (n_instances,) or (n_instances, n_classes)

    Returns
    -------
    ndarray, shape (n_instances, n_classes)
    """
    if scores.ndim == 1:
        return np.column_stack([expit(-scores), expit(scores)])
    return softmax(scores, axis=1)


@contextmanager
def told(estimator):
    """A fit that warns once from each place, and whose errors name the pages to read.

    Parameters
    ----------
    estimator : LLPClassifier
    """
    try:
        with warn_once():
            yield
    except ValueError as error:
        if not hasattr(error, "__notes__"):  # an inner fit has said so already
            error.add_note(f"To read: {' and '.join(estimator._pages(error))}")
        raise


#: Where a room without a chapter of its name is told.
CHAPTER = {"baselines": "intro.html#two-baselines"}


class LLPClassifier(ClassifierMixin, BaseEstimator, ABC):
    """Base of all estimators: validation, one-vs-rest, prediction from scores, proportions of predictions.

    A subclass states what it ``assumes`` and its ``cost``, learns in ``_fit(data)`` from checked `BagData` and stores
    attributes in ``*_``, and scores checked instances in ``_scores(X)`` or gives their ``_probabilities(X)``. Known
    labels have become pure bags by then (``data.before`` has them as given), and ``bag_weights`` and
    ``proportion_errors``, where it has such parameters, are ``data.bag_weights`` and ``data.covariances``. In
    scikit-learn's tools ``bags`` takes the place of ``y``.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
        The classes, in the order of the columns of ``proportions``.
    n_features_in_ : int
    feature_names_in_ : ndarray of str, shape (n_features,)
        Where X was a DataFrame.
    bag_labels_ : pandas.Index or None
        The names of the bags, where ``proportions`` was keyed by them.
    estimators_ : list of LLPClassifier, or None
        One per class, where several classes are fitted one against the rest.
    assumes : (str or None, str)
        The statement of independence that the method needs, a key such as "X_B|Y" of `llpbook.taxonomy`, or None where
        it is none of these; and the assumption in words.
    cost : str
        What a fit costs, in words.
    """

    assumes: tuple[str | None, str] | None = None
    cost: str | None = None
    _parameter_constraints: dict
    _accept_sparse: bool | str = False
    #: Several classes: as the method can, "one-vs-rest", or "refused".
    _several_classes = "native"
    #: Whether scores are log-odds, and so give probabilities.
    _log_odds = False
    #: Whether ``_fit`` looks at ``data.frequencies``, so that one row can stand for many equal instances.
    _uses_frequencies = False
    #: What the same shares in every bag do, and whether two classes with equal shares could be swapped: see
    #: `check_differences`.
    _equal_shares, _names_classes_by_shares = "refused", False
    #: What acts on the scale of the features, beside a kernel: "penalty", "distances" or None.
    _scale: str | None = None
    # scikit-learn's names for where the "?" of the HTML display leads to: the chapter.
    _doc_link_module = "llpbook"
    _doc_link_template = "{page}"

    def _pages(self, error):
        """What to read after an error: how to hand in data, or what shares can tell; and the method."""
        if not isinstance(error, InvalidParameterError):
            why = isinstance(error, NotIdentifiableError)
            yield page("proportions" if why else "your_data")
        yield self._get_doc_link() or page("intro")

    def _doc_link_url_param_generator(self):
        room = type(self).__module__.split(".")[1]
        return {"page": page(CHAPTER.get(room, room))}

    def fit(self, X, bags, proportions=None, labels=None, *, counts=None):
        """Learn from bags and their label proportions.

        Parameters
        ----------
        X : array-like, shape (n_instances, n_features)
            Sparse where the method allows it; with ``kernel="precomputed"`` the kernel matrix.
        bags : array-like, shape (n_instances,)
            The bag of each instance: rows or keys of ``proportions``.
        proportions : array-like, Series, dict or DataFrame
            Required; see `llpbook.base.check_proportions`. A `Pipeline` takes it as ``STEP__proportions``.
        labels : array-like, shape (n_instances,), optional
            Known labels, -1 for unknown.
        counts : array-like of int, shape (n_instances,), optional
            How many equal instances each row of X stands for, as in a table of cells; one if not given. These are
            frequencies, not weights of a survey. Attributes that are one per instance are then one per row, or one per
            instance for a method that cannot use frequencies.

        Returns
        -------
        LLPClassifier
            This estimator, fitted.

        Raises
        ------
        ValueError
            If the input is malformed; the message names argument, value and rule, and a note the pages to read. The
            estimator is then as it was before.
        """
        before = self.__dict__.copy()
        try:
            with told(self):
                data = self._validate_fit(X, bags, proportions, labels, counts)
                self._fit_checked(self._in_cells(data))
        except BaseException:  # an interrupted fit, too, must not leave half a model
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        return self

    def _in_cells(self, data):
        """Equal rows of a bag as one row with a frequency where the method can use it, else each row by itself."""
        if not self._uses_frequencies:
            return single_rows(data)
        linear = getattr(self, "kernel", "linear") == "linear"
        return merge_rows(data) if linear else data

    def _progress(self, steps, unit="step", usual=None):
        """`Progress` under the name of this estimator."""
        name = type(self).__name__
        return Progress(name, self.verbose, steps, unit=unit, usual=usual)

    def _fit_checked(self, data):
        """`_fit`; several classes one against the rest, where the method knows two only."""
        self.estimators_ = None
        if len(data.classes) == 2 or self._several_classes != "one-vs-rest":
            return self._fit(data)
        self.estimators_ = [clone(self) for _ in data.classes]
        for k, one in enumerate(self.estimators_):
            one.classes_, part = np.array([0, 1]), data.one_vs_rest(k)
            check_differences(part, one, part=True)
            one._fit_checked(part)

    @abstractmethod
    def _fit(self, data):
        """Learn from `BagData`."""

    def _sums_needed(self):
        """What a fit to X in chunks, see `InChunks`, needs of them.

        Returns
        -------
        str or None
            "bag means" or "class moments", which one pass over the chunks gives; "instances", if a pass per step of a
            solver sums over single instances, or "whole bags", if it sums over bags, each of which lies in one chunk;
            None where the fit does not reduce to sums. A kernel never does.
        """
        return None

    def _validate_fit(self, X, bags, proportions, labels=None, counts=None):
        """Check hyper-parameters and input; set what the input says; return `BagData`, known labels as pure bags."""
        self._validate_params()
        if proportions is None:
            step = type(self).__name__.lower()
            raise ValueError(
                "proportions is missing: pass fit(X, bags, proportions); a Pipeline takes STEP__proportions, "
                f"such as make_pipeline(…, {type(self).__name__}()).fit(X, bags, {step}__proportions=proportions)"
            )
        noisy = self.get_params(deep=False).get("proportion_noise") is not None
        X_checked = self._check_X(X, reset=True)
        data = read_bags(X_checked, bags, proportions, labels, X, noisy, counts=counts)
        data = self._accept(data)
        warn_of_scale(self, data.X, data.frequencies)
        return data

    def _accept(self, data):
        """Check what the shares say and set it; known labels become pure bags, hyper-parameters parts of the data."""
        own = self.get_params(deep=False)
        noisy = own.get("proportion_noise") is not None
        if (data.class_prior > 0).sum() < 2:
            only = _show(data.classes[data.class_prior.argmax()])
            raise ValueError(
                f"proportions says that every instance is of class {only}; a classifier needs at least two classes"
            )
        if len(data.classes) > 2 and self._several_classes == "refused":
            raise ValueError(
                f"proportions must be of two classes for {type(self).__name__}, got {data.classes.tolist()}"
            )
        self.classes_, self.bag_labels_ = data.classes, data.bag_labels
        data = labels_to_pure_bags(data, noisy)
        weights, errors = own.get("bag_weights"), own.get("proportion_errors")
        data = replace(
            data,
            bag_weights=None if weights is None else check_bag_weights(weights, data),
            covariances=None if errors is None else error_covariances(errors, data),
        )
        check_differences(data, self)
        return data

    def _validate_predict(self, X):
        """Check that the model is fitted and X has its features."""
        check_is_fitted(self)
        return self._check_X(X, reset=False)

    def _check_X(self, X, reset):
        """scikit-learn's check of X, in messages that name it."""
        options = {"accept_sparse": self._accept_sparse, "dtype": np.float64}
        try:
            refuse_unusable(X)
            checked = validate_data(self, X, reset=reset, **options)
            refuse_huge(checked)
            return checked
        except (TypeError, ValueError) as error:  # TypeError: sparse where dense is due
            raise ValueError(
                f"X is not valid input for {type(self).__name__}: {explain(X, error)}"
            ) from error

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = bool(self._accept_sparse)
        tags.input_tags.pairwise = getattr(self, "kernel", None) == "precomputed"
        tags.classifier_tags.multi_class = self._several_classes != "refused"
        return tags

    @available_if(lambda self: hasattr(self, "_scores"))
    def decision_function(self, X):
        """Score of the positive class (above 0: predicted), or one score a class.

        Parameters
        ----------
        X : array-like, shape (n_instances, n_features)

        Returns
        -------
        ndarray, shape (n_instances,) or (n_instances, n_classes)
        """
        X = self._validate_predict(X)
        if self.estimators_ is None:
            return self._scores(X)
        return np.column_stack([part._scores(X) for part in self.estimators_])

    @available_if(lambda self: self._log_odds or hasattr(self, "_probabilities"))
    def predict_proba(self, X):
        """Class probabilities, shape (n_instances, n_classes); one-vs-rest: normalized."""
        if hasattr(self, "_probabilities"):
            return self._probabilities(self._validate_predict(X))
        scores = self.decision_function(X)
        if self.estimators_ is None:
            return probabilities(scores)
        # In logarithms: where each class is all but impossible, no share is 0 / 0.
        return softmax(log_expit(scores), axis=1)

    def predict(self, X):
        """The class of each instance.

        Parameters
        ----------
        X : array-like, shape (n_instances, n_features)

        Returns
        -------
        ndarray, shape (n_instances,)
            Entries of ``classes_``.
        """
        by_scores = hasattr(self, "decision_function")
        scores = self.decision_function(X) if by_scores else self.predict_proba(X)
        if scores.ndim == 1:
            return self.classes_[(scores > 0).astype(int)]
        return self.classes_[scores.argmax(axis=1)]

    def score(self, X, y, sample_weight=None):
        """Accuracy: for evaluation, where the labels of instances are known.

        Parameters
        ----------
        X : array-like, shape (n_instances, n_features)
        y : array-like, shape (n_instances,)
            True labels.
        sample_weight : array-like, shape (n_instances,), optional

        Returns
        -------
        float

        Raises
        ------
        ValueError
            If ``y`` holds a value that is not among ``classes_``, as the names of bags would be.
        """
        predicted = self.predict(X)
        truth = check_column("y", y, len(predicted), X)
        classes = set(self.classes_.tolist())
        strange = [v for v in pd.unique(truth).tolist() if v not in classes]
        if strange:
            raise ValueError(
                f"y holds {strange[0]!r}, which is none of the classes {self.classes_.tolist()}: score compares with "
                "labels of instances. To compare with proportions, pass scoring=proportion_scorer(proportions)"
            )
        return float(accuracy_score(truth, predicted, sample_weight=sample_weight))

    def predict_proportions(self, X, bags, n_bags=None, soft=False):
        """The share of each class among the predictions for each bag; see `predict_proportions`."""
        return predict_proportions(self, X, bags, n_bags, soft)


def in_order(names):
    """Names of bags sorted; those that cannot be compared, by type and text."""
    try:
        return names.sort_values()
    except TypeError:
        return names[np.argsort([f"{type(n).__name__} {n}" for n in names])]


def bag_shares(predicted, bags, n_bags=None, classes=None):
    """The share of each class in each bag, of predicted labels or of predicted probabilities.

    Parameters
    ----------
    predicted : ndarray, shape (n_instances,) or (n_instances, n_classes)
        A label for each instance; or a matrix of probabilities, whose means are taken.
    bags : ndarray of int, shape (n_instances,)
    n_bags : int, optional
        ``max(bags) + 1`` if not given.
    classes : ndarray, shape (n_classes,)
        For labels only.

    Returns
    -------
    ndarray, shape (n_bags, n_classes)
        The row of a bag without instances is NaN.
    """
    if predicted.ndim == 1:
        return label_proportions(predicted, bags, n_bags, classes)
    means = averaging_matrix(bags, n_bags) @ predicted
    means[np.bincount(bags, minlength=len(means)) == 0] = np.nan
    return means


def require_probabilities(estimator):
    """ValueError where an estimator predicts no probabilities."""
    if not hasattr(estimator, "predict_proba"):
        raise ValueError(
            f"soft=True takes the means of probabilities, and {type(estimator).__name__} has no predict_proba; "
            "soft=False counts its labels, and CountCalibration around it has probabilities"
        )


def predict_proportions(estimator, X, bags, n_bags=None, soft=False):
    """The share of each class among an estimator's predictions for each bag; a `Pipeline` is an estimator too.

    Parameters
    ----------
    estimator : estimator or Pipeline
        Fitted.
    X : array-like, shape (n_instances, n_features)
    bags : array-like, shape (n_instances,)
        The bags of these instances; they need not be those of the fit.
    n_bags : int, optional
        Number of rows where bags are integers; ``max(bags) + 1`` if not given.
    soft : bool, default False
        False: the share of the instances whose predicted label is the class. True: the mean of the predicted
        probabilities, which estimates the share of a bag better: labels leave out a class that is likely nowhere, such
        as a rare one.

    Returns
    -------
    ndarray or DataFrame, shape (n_bags, n_classes)
        Row ``k`` is bag ``k``, NaN for a bag without instances. Where the fit had proportions keyed by bag, or bags
        are not integers: a DataFrame with one row for each bag that occurs, in the order of the fit, then the others
        sorted, and the classes as columns.

    Raises
    ------
    ValueError
        If ``bags`` has another length than ``X`` or a missing value, or with ``soft=True`` the estimator has no
        probabilities.
    """
    check_flag("soft", soft)
    if soft:
        require_probabilities(estimator)
    predicted = estimator.predict_proba(X) if soft else estimator.predict(X)
    classes = estimator.classes_
    values = check_column("bags", bags, len(predicted), X)
    last = estimator[-1] if hasattr(estimator, "steps") else estimator
    keys = getattr(last, "bag_labels_", None)
    if keys is None and pd.api.types.infer_dtype(values) in ("integer", "floating"):
        codes = check_bags(values, len(predicted), n_bags)
        return bag_shares(predicted, codes, n_bags, classes)
    found = pd.Index(pd.unique(values), tupleize_cols=False)
    known = pd.Index([]) if keys is None else keys[keys.isin(found)]
    names = known.append(in_order(found[~found.isin(known)]))
    codes = names.get_indexer(pd.Index(values, tupleize_cols=False))
    shares = bag_shares(predicted, codes, len(names), classes)
    return pd.DataFrame(shares, names, classes)


#: A probability of an estimator counts as no less.
SMALLEST = 1e-12


def class_scores(model, X, n_classes):
    """Logarithms of probabilities, up to a constant an instance, or what the classifier has in their place.

    Parameters
    ----------
    model : classifier
        Fitted to labels 0, 1, …, of which some may not have occurred.
    X : ndarray or sparse array, shape (n_instances, n_features)
    n_classes : int

    Returns
    -------
    ndarray, shape (n_instances, n_classes)
    """
    if hasattr(model, "predict_proba") and not isinstance(model, LogisticRegression):
        found = np.log(np.maximum(model.predict_proba(X), SMALLEST))
    else:
        found = model.decision_function(X)
        found = found if found.ndim == 2 else np.column_stack([0 * found, found])
    scores = np.full((X.shape[0], n_classes), found.min() + np.log(SMALLEST))
    scores[:, model.classes_] = found
    return scores


#: Distances, or values of a kernel, between new and training instances that are held at once: they stay near the cache.
BLOCK = 2**20


def in_blocks(X, n_columns, function):
    """A function of instances, taken of some rows at a time, so that no matrix on the way to it is large.

    Parameters
    ----------
    X : ndarray or sparse array, shape (n_instances, n_features)
    n_columns : int
        Of the largest matrix that ``function`` makes.
    function : callable
        From rows of X to an array with as many rows.

    Returns
    -------
    ndarray
        With ``n_instances`` rows.
    """
    parts = gen_batches(X.shape[0], max(1, BLOCK // n_columns))
    return np.concatenate([function(X[part]) for part in parts])


#: The way out of a matrix that is too large.
WITHOUT_GRAM = (
    "take kernel='linear' behind sklearn.kernel_approximation.Nystroem in a pipeline, or "
    "fewer instances"
)


class KernelClassifier(LLPClassifier):
    r"""Base of methods whose scores are linear in the features, or in those of a kernel.

    A subclass defines ``_solve(data, features)``, which returns weights of the features: one row for two classes, or
    one a class. The features are X, with the constant 1 as the last column for an intercept; or, with a kernel, columns
    whose inner products are its matrix, plus 1 for an intercept. With ``_free_intercept`` there is no constant among
    them, and the intercept, which no penalty holds, is returned as a last column of the weights.

    Parameters
    ----------
    kernel : {"linear", "rbf", "laplacian", "precomputed"} or callable
    gamma : float or "scale"
        Kernel coefficient; "scale" is 1 / (n_features * X.var()).
    fit_intercept : bool
        Add the feature 1, whose weight is a weight like the others, or a free intercept.

    Attributes
    ----------
    coef_ : ndarray, shape (1, n_features) or (n_classes, n_features)
        Not with a kernel.
    intercept_ : ndarray, shape (1,) or (n_classes,)
        With a kernel 0, which has the constant feature inside, unless the intercept is free.
    dual_coef_ : ndarray, shape (n_instances, 1) or (n_instances, n_classes)
        Weights of the training instances ``X_fit_``, with a kernel only.
    X_fit_ : ndarray, shape (n_instances, n_features)
        The training instances, with a kernel only.
    gamma_ : float
        The kernel coefficient that was used, with a kernel only.
    """

    _accept_sparse = "csr"
    _scale = "penalty"
    #: Whether the intercept is no weight of a feature, and no penalty holds it.
    _free_intercept = False
    #: Peak memory of a fit with a kernel, in kernel matrices.
    _gram_copies = 5.0
    _parameter_constraints = {
        "kernel": [StrOptions({"linear", "rbf", "laplacian", "precomputed"}), callable],
        "gamma": [StrOptions({"scale"}), Interval(Real, 0, None, closed="neither")],
        "fit_intercept": ["boolean"],
    }

    @abstractmethod
    def _solve(self, data, features):
        """Weights of the features, shape (1, n_columns) or (n_classes, n_columns)."""

    def _fit(self, data):
        X = data.X
        if self.kernel == "linear":
            weights = self._solve(data, self._linear_features(X))
            self._store_linear(weights, X.shape[1])
        else:
            n, name = X.shape[0], type(self).__name__
            require_memory(
                f"{name} with a kernel on {n} instances",
                8.0 * self._gram_copies * n**2,
                WITHOUT_GRAM,
            )
            self.X_fit_, self.gamma_ = X, kernel_coefficient(self.gamma, X)
            gram = self._gram(X)
            features, to_dual = kernel_features(gram)
            refuse_indefinite(gram, features, self.kernel)
            self._gram(X[:1])  # a callable must give single rows, too: predict asks
            weights = self._solve(data, features)
            rank = features.shape[1]
            self.dual_coef_ = to_dual(weights[:, :rank].T)
            self.intercept_ = weights[:, rank:].sum(axis=1)

    def _linear_features(self, X):
        """X, and the constant 1 for an intercept that is a weight."""
        constant = self.fit_intercept and not self._free_intercept
        return append_one(X) if constant else X

    def _store_linear(self, weights, d):
        """Store the weights of the ``d`` features of X and, where there is one more column, the intercept."""
        # The sum is over one column, or over none: 0 without an intercept.
        self.coef_, self.intercept_ = weights[:, :d], weights[:, d:].sum(axis=1)

    def _gram(self, X):
        """Kernel of X and the training instances, plus 1 for an intercept that is a weight."""
        gram = gram_matrix(X, self.X_fit_, self.kernel, self.gamma_)
        return gram + (self.fit_intercept and not self._free_intercept)

    def _scores(self, X):
        if self.kernel == "linear":
            scores = X @ self.coef_.T
        else:
            scores = in_blocks(
                X, self.X_fit_.shape[0], lambda part: self._gram(part) @ self.dual_coef_
            )
        scores = scores + self.intercept_
        return scores[:, 0] if scores.shape[1] == 1 else scores


#: Ratio of the largest to the smallest standard deviation of the features above which `warn_of_scale` speaks: of a
#: penalty, and of distances, which a single wide feature takes over.
SCALES = {"penalty": 1000, "distances": 30}
#: Standard deviations between a mean and 0, and the largest standard deviation, which a penalty makes wrong.
OFFSETS, TINY = 30, 1e-3


def warn_of_scale(estimator, X, frequencies=None):
    """Warn where a penalty or a distance acts on features of very different scale, far from 0, or tiny.

    Parameters
    ----------
    estimator : LLPClassifier
        Its ``_scale`` says what acts; with a kernel it is distances, and of one that is computed by the user nothing is
        known.
    X : ndarray or sparse array, shape (n_instances, n_features)
        Of a sparse one nothing is said: columns of counts are rare by nature.
    frequencies : ndarray, shape (n_instances,), optional
        Of the rows.
    """
    if isinstance(X, np.ndarray):
        means = np.average(X, axis=0, weights=frequencies)
        squares = np.average((X - means) ** 2, axis=0, weights=frequencies)
        warn_of_moments(estimator, means, np.sqrt(squares))


def warn_of_moments(estimator, means, stds):
    """`warn_of_scale` from the means and standard deviations of the features, each of shape (n_features,)."""
    kernel, acts = getattr(estimator, "kernel", "linear"), estimator._scale
    if kernel != "linear":
        acts = None if kernel == "precomputed" or callable(kernel) else "distances"
    if acts is None:
        return
    means = np.abs(means)
    varies = stds > 1e-10 * (means + stds)
    if not varies.any():
        return
    means, stds, found = means[varies], stds[varies], []
    ratio, offset = stds.max() / stds.min(), (means / stds).max()
    if ratio > SCALES[acts]:
        found.append(f"their standard deviations differ by a factor of {ratio:.0f}")
    if acts == "penalty" and offset > OFFSETS:
        found.append(f"a mean is {offset:.0f} standard deviations from 0")
    if acts == "penalty" and stds.max() < TINY:
        found.append(f"no standard deviation is above {stds.max():.1g}")
    if found:
        what = {"penalty": "penalizes its weights", "distances": "measures distances"}
        warn(
            f"{type(estimator).__name__} {what[acts]}, but the features are not on one scale: {', and '.join(found)}; "
            "put a StandardScaler in front"
        )


def append_one(X):
    """X with the constant feature 1 as its last column, dense, sparse or in chunks as X is."""
    if isinstance(X, InChunks):
        return X.with_constant()
    ones = np.ones((X.shape[0], 1))
    if isinstance(X, np.ndarray):
        return np.hstack([X, ones])
    return sp.hstack([X, ones], format="csr")
