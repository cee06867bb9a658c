"""The contract of an estimator."""

from abc import ABC, abstractmethod
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pandas as pd
from scipy.special import log_expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from .. import __version__
from .._input import (
    InvalidParameterError,
    NotIdentifiableError,
    advised,
    as_frame,
    check_column,
    constraints,
    explain,
    filters_kept,
    page,
    quote,
    refuse_huge,
    refuse_missing,
    refuse_unusable,
)
from ._bag_data import (
    check_bag_weights,
    check_differences,
    error_covariances,
    labels_to_pure_bags,
    merge_rows,
    read_bags,
    single_rows,
)
from ._chunked import InChunks
from ._predictions import predict_proportions, probabilities
from ._running import Progress, warn, warn_once
from ._stored import StoredTable, plain, plain_keys
from ._warnings import warn_of_bag_labels, warn_of_codes, warn_of_scale

#: A class with under `RARE` of the share of the most frequent one may be so rare that the best rule leaves it out. On
#: 48 data sets logistic regression on labels predicted any other class for under `SELDOM` of its share on one only,
#: where no line separates the classes.
RARE, SELDOM = 0.3, 0.25
#: With fewer different scores the features are few cells, of which rates are asked, and not classes.
CELLS = 20


def numbers_of_rows(kernel):
    """Numbers of the rows of a kernel matrix as its only feature; ValueError where it has other columns than rows."""
    n = kernel.shape[0]
    if kernel.shape[1] != n:
        raise ValueError(
            f"X must have one column for each of the {n} training instances with kernel='precomputed', got "
            f"{kernel.shape[1]}"
        )
    return np.arange(n, dtype=float)[:, None]


def warn_of_missing_class(estimator, data):
    """Warn where a fit predicts a class for hardly any instance, although the shares hold many of it.

    Parameters
    ----------
    estimator : LLPClassifier
        Fitted; one that never looks at the shares' differences is left alone.
    data : BagData
    """
    prior, differences = data.class_prior, np.ptp(data.proportions[data.used], axis=0)
    scored = hasattr(estimator, "_scores") or hasattr(estimator, "_probabilities")
    # Another warning is about equal shares.
    differ = data.has_shares and differences.max() > 0
    if not scored or estimator._equal_shares == "ignored" or not differ:
        return
    X, frequencies = data.some_rows()
    scores = estimator._scores_of(X)
    predicted = np.bincount(estimator._class_numbers(scores), frequencies, len(prior))
    predicted = predicted / predicted.sum()
    missed = (predicted < SELDOM * prior) & (prior >= RARE * prior.max())
    if not missed.any() or len(np.unique(scores)) < CELLS:
        return
    k = int(np.argmax(missed * prior))
    warn(
        f"{type(estimator).__name__} predicts class {quote(data.classes[k])} for {predicted[k]:.0%} of {len(scores)} "
        f"training instances, although {prior[k]:.0%} are of it by the shares. Its probabilities or scores may still "
        f"rank them. Try {estimator._cure}, and compare by LLPGridSearchCV",
        of_one_fit=True,
    )


@contextmanager
def fitting(estimator, *others):
    """Within this context a fit starts from nothing, warns once from each place, and names pages in its errors.

    Parameters
    ----------
    estimator : LLPClassifier
    *others : estimator or None
        Fitted with it. What they learned earlier is gone, and comes back if this fit is refused or interrupted.
    """
    all_of_them = [one for one in (estimator, *others) if one is not None]
    before = [(one, vars(one).copy()) for one in all_of_them]
    for one, state in before:
        for name in state:
            if name.endswith("_") and not name.startswith("_"):
                del vars(one)[name]
    try:
        with warn_once(), filters_kept():
            yield
    except BaseException as error:
        for one, state in before:
            vars(one).clear()
            vars(one).update(state)
        # An inner fit may have named the pages already.
        if isinstance(error, ValueError) and not hasattr(error, "__notes__"):
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
    bag_labels_ : ndarray, shape (n_bags,), or None
        The names of the bags, where ``proportions`` was keyed by them.
    estimators_ : list of LLPClassifier, or None
        One per class, where several classes are fitted one against the rest.
    assumes : (str, tuple of str, or None; str)
        The statement of independence that the method needs, a key such as "X_B|Y" of `llpbook.taxonomy`; several of
        which one is enough; or None where it is none of these. And the assumption in words.
    cost : str
        What a fit costs, in words.

    Examples
    --------
    >>> import numpy as np
    >>> from llpbook.base import LLPClassifier
    >>> class LargestMean(LLPClassifier):
    ...     cost = "a mean"
    ...     def _fit(self, data):
    ...         self.mean_ = data.X[:, 0].mean()
    ...     def _scores(self, X):
    ...         return X[:, 0] - self.mean_
    >>> model = LargestMean().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1], [0.0, 1.0])
    >>> model.predict([[0.5], [2.5]]).tolist()
    [0, 1]
    """

    assumes: tuple[str | tuple[str, ...] | None, str] | None = None
    cost: str | None = None
    #: A package that a fit needs beside the dependencies of this one.
    _needs: str | None = None
    #: Where a parameter is not what its name means everywhere, see `llpbook._input.constraints`.
    _parameter_constraints: dict = {}
    _accept_sparse: bool | str = False
    #: Several classes: as the method can, "one-vs-rest", or "refused".
    _several_classes = "native"
    #: Whether scores are log-odds, and so give probabilities.
    _log_odds = False
    #: Whether ``_fit`` looks at ``data.frequencies``, so that one row can stand for many equal instances.
    _uses_frequencies = False
    #: Whether each known label is a pure bag of its own: see `labels_to_pure_bags`.
    _labels_alone = False
    #: What the same shares in every bag do, and whether two classes with equal shares could be swapped: see
    #: `check_differences`.
    _equal_shares, _names_classes_by_shares = "refused", False
    #: What acts on the scale of the features, beside a kernel: "penalty", "distances" or None.
    _scale: str | None = None
    #: What to change where a class is hardly predicted.
    _cure = "features that tell more"
    # Tables of some fits.
    cv_results_, starts_ = StoredTable(), StoredTable()
    # scikit-learn's names for where the "?" of the HTML display leads to: the chapter.
    _doc_link_module = "llpbook"
    _doc_link_template = "{page}"

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        cls._parameter_constraints = constraints(cls)
        if "__init__" in vars(cls):
            cls.__init__ = advised(cls.__init__)

    def __getstate__(self):
        state = {key: plain(value) for key, value in super().__getstate__().items()}
        return state | {"_llpbook_version": __version__}

    def __setstate__(self, state):
        saved = state.pop("_llpbook_version", "before 0.1")
        if saved != __version__:
            warn(
                f"{type(self).__name__} was saved by llpbook {saved}, and this is llpbook {__version__}, which may "
                "read it wrongly: load it with the version that saved it, or fit it again"
            )
        super().__setstate__(state)

    def _pages(self, error):
        """Pages to read after an error: how to pass data or what shares can tell, and the chapter of the method."""
        if not isinstance(error, InvalidParameterError):
            why = isinstance(error, NotIdentifiableError)
            yield page("proportions" if why else "your_data")
        yield self._get_doc_link() or page("intro")

    def _doc_link_url_param_generator(self):
        room = type(self).__module__.split(".")[1]
        return {"page": page(CHAPTER.get(room, room))}

    @advised
    def fit(self, X, bags, proportions=None, labels=None, *, counts=None):
        """Learn from bags and their label proportions.

        Parameters
        ----------
        X : array-like, shape (n_instances, n_features)
            Sparse where the method allows it; with ``kernel="precomputed"`` the kernel matrix.
        bags : array-like, shape (n_instances,)
            The bag of each instance: rows or keys of ``proportions``.
        proportions : array-like, Series, dict or DataFrame
            Required; see `llpbook.proportions.check_proportions`. A `Pipeline` takes it as ``STEP__proportions``.
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
        with fitting(self):
            self._fit_data(self._read(X, bags, proportions, labels, counts))
        return self

    def _fit_data(self, data):
        """Fit to `BagData`: all fits come here, from memory, from chunks, and to two bags."""
        data = self._accept(data)
        warn_of_scale(self, data.X, data.frequencies)
        warn_of_codes(self, data.X)
        warn_of_bag_labels(data.bag_sizes, data.proportions)
        cells, self._columns = self._in_cells(data), None
        if data.kernel is not None:
            self._columns = cells.X[:, 0].astype(int)
            data = cells = cells.with_kernel()
        self.estimators_ = None
        if len(data.classes) == 2 or self._several_classes != "one-vs-rest":
            self._fit(cells)
        else:
            self._fit_one_vs_rest(cells)
        warn_of_missing_class(self, data)

    def _in_cells(self, data):
        """Merge equal rows of a bag if the method can use frequencies, else repeat rows by their frequencies."""
        if isinstance(data.X, InChunks):
            return data
        if not self._uses_frequencies:
            return single_rows(data)
        linear = getattr(self, "kernel", "linear") == "linear"
        return merge_rows(data) if linear else data

    def _progress(self, steps, unit="step", usual=None):
        """`Progress` under the name of this estimator."""
        name = type(self).__name__
        return Progress(name, self.verbose, steps, unit=unit, usual=usual)

    def _fit_one_vs_rest(self, data):
        """Fit a clone to each class against the rest, where the method knows two classes only."""
        self.estimators_ = [clone(self) for _ in data.classes]
        for k, one in enumerate(self.estimators_):
            one.classes_, one.estimators_ = np.array([0, 1]), None
            part = data.one_vs_rest(k)
            check_differences(part, one, part=True)
            one._fit(part)

    @abstractmethod
    def _fit(self, data):
        """Learn from `BagData`."""

    def _sums_needed(self):
        """Sums that a fit to X in chunks needs, see `InChunks`.

        Returns
        -------
        str or None
            "bag means" or "class moments", which one pass over the chunks gives; "instances", if a pass per step of a
            solver sums over single instances, or "whole bags", if it sums over bags, each of which lies in one chunk;
            None where the fit does not reduce to sums. A kernel never does.
        """
        return None

    def _read(self, X, bags, proportions, labels=None, counts=None):
        """Check the hyper-parameters and the input, and return `BagData`."""
        self._validate_params()
        refuse_missing(proportions, bags, type(self).__name__)
        noisy = self.get_params(deep=False).get("proportion_noise") is not None
        rows, kernel = self._check_X(X, reset=True), None
        if self.__sklearn_tags__().input_tags.pairwise:
            rows, kernel = numbers_of_rows(rows), rows
        data = read_bags(rows, bags, proportions, labels, X, noisy, counts=counts)
        return replace(data, kernel=kernel)

    def _accept(self, data):
        """Check the shares, set the attributes that depend on them only, and return `_with_parameters`."""
        if (data.class_prior > 0).sum() < 2:
            only = quote(data.classes[data.class_prior.argmax()])
            raise ValueError(
                f"proportions says that every instance is of class {only}; a classifier needs at least two classes"
            )
        if len(data.classes) > 2 and self._several_classes == "refused":
            raise ValueError(
                f"proportions must be of two classes for {type(self).__name__}, got {data.classes.tolist()}"
            )
        keys, self.classes_ = data.bag_labels, data.classes
        self.bag_labels_ = None if keys is None else plain_keys(keys)
        data = self._with_parameters(data)
        check_differences(data, self)
        return data

    def _with_parameters(self, data):
        """Add known labels as pure bags, and the hyper-parameters with a value per bag, to the data."""
        own = self.get_params(deep=False)
        noisy = own.get("proportion_noise") is not None
        data = labels_to_pure_bags(data, noisy, self._labels_alone)
        weights, errors = own.get("bag_weights"), own.get("proportion_errors")
        return replace(
            data,
            bag_weights=None if weights is None else check_bag_weights(weights, data),
            covariances=None if errors is None else error_covariances(errors, data),
        )

    def _validate_predict(self, X):
        """Check that the model is fitted and X has its features."""
        check_is_fitted(self)
        X = self._check_X(X, reset=False)
        columns = getattr(self, "_columns", None)
        return X if columns is None else X[:, columns]

    @filters_kept()
    def _check_X(self, X, reset):
        """Check X by scikit-learn's checks, with X named in their messages."""
        options = {"accept_sparse": self._accept_sparse, "dtype": np.float64}
        try:
            X = as_frame(X)
            refuse_unusable(X)
            checked = validate_data(self, X, reset=reset, **options)
            refuse_huge(checked)
            return checked
        except (TypeError, ValueError) as error:  # TypeError: sparse where dense is due
            name, said = type(self).__name__, explain(X, error)
            if hasattr(getattr(self, "estimator", None), "steps"):
                said += f". {name} goes last in the pipeline: make_pipeline(*steps, {name}(method))"
            raise ValueError(f"X is not valid input for {name}: {said}") from error

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = bool(self._accept_sparse)
        tags.input_tags.pairwise = getattr(self, "kernel", None) == "precomputed"
        tags.classifier_tags.multi_class = self._several_classes != "refused"
        return tags

    @available_if(lambda self: hasattr(self, "_scores"))
    def decision_function(self, X):
        """Compute the score of the positive class (above 0: predicted), or one score per class.

        Parameters
        ----------
        X : array-like, shape (n_instances, n_features)

        Returns
        -------
        ndarray, shape (n_instances,) or (n_instances, n_classes)
        """
        return self._decision(self._validate_predict(X))

    @filters_kept()
    def _decision(self, X):
        """`decision_function` of checked instances."""
        if self.estimators_ is None:
            return self._scores(X)
        return np.column_stack([part._scores(X) for part in self.estimators_])

    @available_if(lambda self: self._log_odds or hasattr(self, "_probabilities"))
    @filters_kept()
    def predict_proba(self, X):
        """Predict class probabilities, shape (n_instances, n_classes); those of one-vs-rest are normalized."""
        if hasattr(self, "_probabilities"):
            return self._probabilities(self._validate_predict(X))
        scores = self.decision_function(X)
        if self.estimators_ is None:
            return probabilities(scores)
        # In logarithms: where each class is all but impossible, no share is 0 / 0.
        return softmax(log_expit(scores), axis=1)

    def predict(self, X):
        """Predict the class of each instance.

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
        return self.classes_[self._class_numbers(scores)]

    def _scores_of(self, X):
        """Scores of checked instances or, where the method has none, probabilities."""
        by_scores = hasattr(self, "_scores")
        return self._decision(X) if by_scores else self._probabilities(X)

    @staticmethod
    def _class_numbers(scores):
        """Positions in ``classes_`` of the largest scores."""
        return (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)

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
                "labels of instances. A search over parameters compares with proportions by LLPGridSearchCV, or in "
                "scikit-learn's by scoring=proportion_scorer(proportions)"
            )
        return float(np.average(predicted == truth, weights=sample_weight))

    def predict_proportions(self, X, bags, n_bags=None, soft=False, *, counts=None):
        """Share of each class among the predictions for each bag; see `predict_proportions`."""
        return predict_proportions(self, X, bags, n_bags, soft, counts=counts)
