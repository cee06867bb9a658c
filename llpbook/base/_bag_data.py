"""Checked bags, and what is made of them: known labels as pure bags, equal rows with frequencies."""

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np

from .._counts import crosstab
from .._input import (
    NotIdentifiableError,
    check_labels,
    doubt_of_numbers,
    doubt_of_totals,
    fill_empty_rows,
    keyed_rows,
    match_bags,
    quote,
    read_counts,
    refuse_cells,
    repeated_rows,
    restored,
    row_keys,
)
from ..proportions import averaging_matrix
from ._chunked import SOME_ROWS, InChunks, evenly_spaced
from ._running import is_comparing, require_memory, warn

#: The covariance matrix of the shares of two classes whose variance is 1.
OF_TWO = np.array([[1.0, -1.0], [-1.0, 1.0]])


@dataclass(frozen=True)
class BagData:
    """Checked training data, the input of all methods.

    Attributes
    ----------
    X : ndarray or sparse array, shape (n_instances, n_features)
    bags : ndarray of int, shape (n_instances,)
        Rows of ``proportions``.
    proportions : ndarray, shape (n_bags, n_classes)
        Rows without instances are allowed.
    classes : ndarray, shape (n_classes,)
    bag_labels : pandas.Index or None
        The user's names of the bags where ``proportions`` was keyed by them.
    labels : ndarray of int, shape (n_instances,), or None
        Column of ``classes`` for an instance with a known label, else -1.
    n_pure : int
        Pure bags, last in ``proportions``, that `labels_to_pure_bags` made from known labels. All are pure in a fit
        without shares, where the number of a bag serves as the label.
    before : BagData or None
        The bags with the labels, from which `labels_to_pure_bags` made these.
    bag_weights : ndarray, shape (n_bags,), or None
        Checked by `check_bag_weights`, where the estimator has this parameter.
    covariances : ndarray, shape (n_bags, n_classes, n_classes), or None
        Of the error of each row of ``proportions``, by `error_covariances`; None where none is stated.
    frequencies : ndarray of int, shape (n_rows,), or None
        How many equal instances each row of X stands for, at least 1; None for one. With frequencies, what is said
        above to be of n_instances is one per row.
    chance : float
        The probability that chance makes as many shares possible counts, where counts were restored from their digits.
    kept : ndarray of bool, or None
        Which rows of X as given are here: those that stand for an instance. None without ``frequencies``.
    kernel : ndarray, sparse array or None
        The kernel matrix of a user, of which X has the numbers of the rows until `with_kernel`.
    """

    X: object
    bags: np.ndarray
    proportions: np.ndarray
    classes: np.ndarray
    bag_labels: object = None
    labels: object = None
    n_pure: int = 0
    before: object = None
    bag_weights: object = None
    covariances: object = None
    frequencies: object = None
    chance: float = 0.0
    kept: object = None
    kernel: object = None

    @property
    def has_shares(self):
        """False in a fit without shares."""
        return self.n_pure < len(self.proportions)

    @property
    def used(self):
        """Mask of the bags that a method uses: those with instances and a weight, shape (n_bags,)."""
        return (self.bag_sizes if self.bag_weights is None else self.bag_weights) > 0

    @cached_property
    def bag_sizes(self):
        """Instances in each bag, shape (n_bags,)."""
        sizes = np.bincount(self.bags, self.frequencies, len(self.proportions))
        return sizes.round().astype(np.int64)

    @property
    def n_instances(self):
        """Instances of all bags."""
        return int(self.bag_sizes.sum())

    @cached_property
    def S(self):
        """The averaging matrix, sparse, shape (n_bags, n_instances)."""
        S = averaging_matrix(self.bags, n_bags=len(self.proportions))
        if self.frequencies is not None:
            S.data = (self.frequencies / self.bag_sizes[self.bags])[S.indices]
        return S

    def bag_means(self, features):
        """Means of the rows of ``features``, dense, sparse or in chunks, over each bag, shape (n_bags, n_features)."""
        if isinstance(features, InChunks):
            features = features.bag_means()
        means = self.S @ features
        return means if isinstance(means, np.ndarray) else means.toarray()

    def sums(self, values):
        """Sums of values of rows over the instances of each bag, shape (n_bags, n_columns)."""
        times = 1 if self.frequencies is None else self.frequencies
        columns = [
            np.bincount(self.bags, times * v, len(self.proportions)) for v in values.T
        ]
        return np.column_stack(columns)

    def some_rows(self):
        """About `SOME_ROWS` rows of X, evenly spaced, and how many instances each stands for, None for one."""
        if isinstance(self.X, InChunks):
            return self.X.some_rows()
        rows, times = evenly_spaced(self.X.shape[0], SOME_ROWS), self.frequencies
        return self.X[rows], None if times is None else times[rows]

    def with_kernel(self):
        """Data with the kernel between the rows that are left, each as often as it is there, as X."""
        rows = self.X[:, 0].astype(int)
        same = np.array_equal(rows, np.arange(self.kernel.shape[0]))
        X = self.kernel if same else self.kernel[np.ix_(rows, rows)]
        return replace(self, X=X, before=self.before and self.before.with_kernel())

    def one_vs_rest(self, k):
        """Copy with two classes: the k-th, as the positive one, against the others."""
        positive = self.proportions[:, k]
        labels = self.labels
        if labels is not None:
            labels = np.where(labels < 0, -1, labels == k)
        covariances = self.covariances
        if covariances is not None:
            covariances = covariances[:, [[k]], [[k]]] * OF_TWO
        return replace(
            self,
            proportions=np.column_stack([1 - positive, positive]),
            classes=np.array([0, 1]),
            covariances=covariances,
            labels=labels,
            before=self.before and self.before.one_vs_rest(k),
        )

    @cached_property
    def class_prior(self):
        """Share of each class over all instances, shape (n_classes,)."""
        shares = np.where(self.bag_sizes[:, None] > 0, self.proportions, 0.0)
        return self.bag_sizes @ shares / self.n_instances


#: Fewest rows among which equal ones are looked for, most columns, and the rows that are looked at to see whether it
#: pays: not where some column has as many values as half of these.
FEW_ROWS, MANY_COLUMNS, PROBE = 1000, 1000, 400


def merge_rows(data):
    """Merge equal rows of a bag to one row with a frequency, where that halves the rows.

    Parameters
    ----------
    data : BagData

    Returns
    -------
    BagData
        The same object where it does not pay.
    """
    X, n = data.X, data.X.shape[0]
    if n < FEW_ROWS or not isinstance(X, np.ndarray) or X.shape[1] > MANY_COLUMNS:
        return data
    probe = X[:: max(1, n // PROBE)]
    if any(len(np.unique(column)) > len(probe) // 2 for column in probe.T):
        return data
    keys = row_keys(X)
    order = np.lexsort((keys, data.bags))
    key, bags = keys[order], data.bags[order]
    other = (key[1:] != key[:-1]) | (bags[1:] != bags[:-1])
    first = np.flatnonzero(np.append(True, other))
    if len(first) > n // 2:
        return data
    rows = X[order]
    cell = np.repeat(first, np.diff(np.append(first, n)))
    if (rows != rows[cell]).any():  # two rows with one key: next to impossible
        return data
    times = np.ones(n, int) if data.frequencies is None else data.frequencies[order]
    frequencies = np.add.reduceat(times, first)
    return replace(data, X=rows[first], bags=bags[first], frequencies=frequencies)


def single_rows(data):
    """Repeat each row by its frequency, for a method that cannot use frequencies."""
    if data.frequencies is None:
        return data
    cells = float(data.frequencies.sum()) * data.X.shape[1]
    require_memory("an X with one row per instance", 8 * cells, "fit a sample")
    rows = repeated_rows(data.frequencies)
    before = data.before and single_rows(data.before)
    labels = None if data.labels is None else data.labels[rows]
    return replace(
        data,
        X=data.X[rows],
        bags=data.bags[rows],
        frequencies=None,
        labels=labels,
        before=before,
    )


def read_bags(
    X, bags, proportions, labels=None, original=None, noisy=False, *, counts=None
):
    """Check bags, proportions and labels, and make `BagData` of them: the one place where they come together.

    Parameters
    ----------
    X : ndarray or sparse array, shape (n_instances, n_features)
        Checked.
    bags : array-like, shape (n_instances,)
    proportions : array-like, Series, dict or DataFrame
        See `check_proportions`. The row of a bag without instances may be NaN.
    labels : array-like, shape (n_instances,), optional
        Known labels, -1 for unknown.
    original : object, optional
        X as the user gave it, whose index is compared with those of ``bags`` and ``labels``.
    noisy : bool, default False
        See `check_proportions`.
    counts : array-like of int, shape (n_instances,), optional
        Frequencies of the rows of X. Rows that stand for no instance are left out.

    Returns
    -------
    BagData

    Raises
    ------
    ValueError
        If something is malformed, or a bag with instances has no proportions.
    """
    n = X.shape[0]
    matched = match_bags(proportions, bags, n, original, noisy=noisy)
    classes, keys = matched.classes, matched.keys
    columns = None if labels is None else check_labels(labels, classes, n, original)
    times = None if counts is None else read_counts(counts, n, original)
    used = matched.codes if times is None else matched.codes[times > 0]
    matrix = fill_empty_rows(matched.matrix, used, keys)
    data = BagData(X, matched.codes, matrix, classes, keys, columns)
    if times is not None:
        data = with_counts(data, times)
    if not noisy:
        data = with_restored(data)
    if (
        times is None and not is_comparing()
    ):  # bags that are drawn twice have equal rows
        refuse_cells(X, data.bags, data.proportions)
    doubts = [doubt_of_numbers(matched, data.bag_sizes)]
    if not noisy:
        doubts += [doubt_of_totals(data.proportions, data.bag_sizes, keys)]
    for doubt in filter(None, doubts):
        warn(doubt, of_one_fit=True)
    return data


def with_counts(data, times):
    """Rows with frequencies, without those that stand for no instance."""
    kept = times > 0
    labels = None if data.labels is None else data.labels[kept]
    rows = {"X": data.X[kept], "bags": data.bags[kept], "labels": labels}
    return replace(data, **rows, frequencies=times[kept], kept=kept)


def with_restored(data):
    """Shares that were printed with few digits as the counts that they were; see `restored`."""
    counts = restored(data.proportions, data.bag_sizes)
    if text := counts.odd(data.bag_labels):
        warn(text)
    return replace(data, proportions=counts.shares, chance=counts.chance)


#: Shares that differ by no more are equal: rounding.
EQUAL = 1e-8


def check_differences(data, estimator, part=False):
    """Refuse bags whose shares do not differ, or warn of them, for all estimators alike.

    Parameters
    ----------
    data : BagData
        After `labels_to_pure_bags`.
    estimator : LLPClassifier
        Its ``_equal_shares`` says what the same shares in every bag do to the method: "refused" where it learns from
        their differences, "warned" where it can go on without differences, "ignored" where it
        never looks. Its ``_names_classes_by_shares`` says that it only asks labels to agree with shares, so that two
        classes with equal shares could be swapped.
    part : bool, default False
        True for one class against the rest: such parts refuse and do not warn.

    Raises
    ------
    NotIdentifiableError
    """
    reaction, shares = estimator._equal_shares, data.proportions[data.used]
    if reaction == "ignored":
        return
    name = type(estimator).__name__
    if estimator._names_classes_by_shares:
        for j, k in combinations(np.flatnonzero(shares.max(axis=0) > 0), 2):
            if (np.abs(shares[:, j] - shares[:, k]) <= EQUAL).all():
                raise NotIdentifiableError(
                    f"proportions give classes {quote(data.classes[j])} and {quote(data.classes[k])} equal shares in "
                    f"every bag: {name} could swap the two and agree as well. A share must differ; or give some labels="
                )
    # One class against the rest may be absent.
    if (np.ptp(shares, axis=0) > EQUAL).any() or shares[0].max() == 1:
        if not part:
            warn_of_little_worth(data)
        return
    same = ", ".join(f"{share:.6g}" for share in shares[0])
    if reaction == "refused":
        raise NotIdentifiableError(
            f"proportions are the same in every bag in use ({same}): {name} learns from their differences. Shares "
            "must differ between bags; or give some labels="
        )
    if part:
        return
    warn(
        f"proportions are the same in every bag in use ({same}): no difference between bags tells the classes apart, "
        f"and {name} rests on its assumption, {estimator.assumes[1]!r}"
    )


def warn_of_little_worth(data):
    """Warn where the shares differ so little that all bags together are worth less than one label."""
    eta = data.class_prior
    spread = data.bag_sizes @ (data.proportions - eta) ** 2
    worth = np.max(spread[eta > 0] / np.maximum(eta * (1 - eta), 1e-12)[eta > 0])
    n_bags = int(data.used.sum())
    if worth < 1 and n_bags > len(eta):
        warn(
            f"proportions hardly differ between bags: all {n_bags} bags together are worth {worth:.2g} labels "
            "(see identifiability), so what is learned may be chance. Are these the shares of the classes "
            f"{', '.join(quote(k) for k in data.classes[:3])}?"
        )


def one_row_per_label(data):
    """Give each instance with a known label a row of its own: n bags with one label each, not one bag with n."""
    times = np.where(data.labels < 0, 1, data.frequencies)
    rows = repeated_rows(times)
    return replace(
        data, X=data.X[rows], bags=data.bags[rows], labels=data.labels[rows],
        frequencies=(data.frequencies // times)[rows],
    )  # fmt: skip


def labels_to_pure_bags(data, noisy=False, alone=False):
    """Turn known labels into proportions: one pure bag per class, and each bag without its labeled instances.

    With every label known the bags are the classes: supervised learning. Where proportions and labels disagree by more
    than rounding, what is left of a bag is clipped to possible shares, and an `LLPWarning` says so.

    Parameters
    ----------
    data : BagData
    noisy : bool, default False
        True if noise was added to the shares: then nothing is clipped.
    alone : bool, default False
        True to make each row with a known label a bag of its own, as the likelihood of counts wants it.

    Returns
    -------
    BagData
        With ``n_classes`` more bags (rows), or one for each known label, and ``labels`` None; the same object where no
        label is known.
    """
    if data.labels is None or (data.labels < 0).all():
        return data if data.labels is None else replace(data, labels=None)
    before, (L, K) = data, data.proportions.shape
    if alone and data.frequencies is not None:
        data = one_row_per_label(data)
    labeled = data.labels >= 0
    rows = np.flatnonzero(labeled)
    if data.frequencies is not None:
        rows = rows[repeated_rows(data.frequencies[rows])]
    counts = crosstab(data.bags[rows], data.labels[rows], (L, K))
    left = data.bag_sizes[:, None] * data.proportions - counts
    if left.min() < -1 and not noisy:
        bag = int(left.min(axis=1).argmin())
        name = bag if data.bag_labels is None else data.bag_labels[bag]
        warn(
            f"bag {quote(name)} has more labeled instances of a class than its proportions allow; its rest is clipped"
        )
    left = left if noisy else np.maximum(left, 0)
    total = left.sum(axis=1, keepdims=True)
    shares = np.divide(left, total, out=data.proportions.copy(), where=total > 0)
    bags, pure, own = data.bags.copy(), np.eye(K), data.labels[labeled]
    bags[labeled] = L + (np.arange(len(own)) if alone else own)
    shares = np.vstack([shares, pure[own] if alone else pure])
    return replace(
        data, bags=bags, proportions=shares, labels=None, n_pure=len(shares) - L,
        before=before,
    )  # fmt: skip


def check_bag_weights(bag_weights, data):
    """Read one weight per bag: bag sizes, 1 for each bag, or numbers of the user.

    Parameters
    ----------
    bag_weights : {"size", "uniform"} or array-like, shape (n_bags,)
        An array is in the order of the rows of ``proportions``; a Series or dict is keyed as these are.
    data : BagData
        After `labels_to_pure_bags`, where labels are known; the pure bags that it appends weigh their size, with
        "uniform" 1.

    Returns
    -------
    ndarray, shape (n_bags,)
        0 for a bag without instances.

    Raises
    ------
    ValueError
        If an array has another length, a negative or non-finite entry, or is 0 on all bags with instances.
    """
    sizes = data.bag_sizes.astype(float)
    if isinstance(bag_weights, str) and bag_weights == "size":
        return sizes
    weights = np.minimum(sizes, 1)
    if not isinstance(bag_weights, str):
        n_rows = len(sizes) - data.n_pure
        own = keyed_rows("bag_weights", bag_weights, n_rows, data.bag_labels)
        if own.shape != (n_rows,) or not (np.isfinite(own) & (own >= 0)).all():
            raise ValueError(
                f"bag_weights must be one finite, non-negative number for each of the {n_rows} rows of proportions, "
                f"got {bag_weights!r}"
            )
        weights[:n_rows] *= own
        weights[n_rows:] = sizes[n_rows:]
    if not weights.any():
        raise ValueError(
            f"bag_weights must not be 0 for every bag with instances, got {bag_weights!r}"
        )
    return weights


def error_covariances(proportion_errors, data):
    r"""Covariance matrix of the error of each row of the proportions.

    For two classes :math:`\mathrm{se}_k^2 \left(\begin{smallmatrix} 1 & -1 \\ -1 & 1 \end{smallmatrix}\right)`. Known
    labels carry no error: where :math:`l` of the :math:`n_k` instances of a bag are known, the error of the share of
    the others is :math:`n_k / (n_k - l)` times as large.

    Parameters
    ----------
    proportion_errors : Series, dict or array-like, shape (n_bags,) or (n_bags, n_classes, n_classes)
        The standard error of the share of the positive class in each bag, for two classes; or the covariance matrix of
        the shares of each bag. An array is in the order of the rows of ``proportions``; what has keys is matched by
        them, see `keyed_rows`.
    data : BagData
        After `labels_to_pure_bags`.

    Returns
    -------
    ndarray, shape (n_bags, n_classes, n_classes)
        0 for the pure bags.

    Raises
    ------
    ValueError
        If keys are not those of the proportions, an error is missing, negative or not finite, the shape is another, or
        a matrix is no covariance of shares that sum to 1.
    """
    n_bags, n_classes = len(data.proportions) - data.n_pure, len(data.classes)
    errors = keyed_rows("proportion_errors", proportion_errors, n_bags, data.bag_labels)
    odd = ~(errors >= 0) if errors.shape == (n_bags,) and n_classes == 2 else False
    if np.any(odd):
        k = int(np.argmax(odd))
        bag = quote(k if data.bag_labels is None else data.bag_labels[k])
        raise ValueError(
            "proportion_errors must be one finite standard error, not negative, for each of the "
            f"{n_bags} rows of proportions (two classes), got {errors[k]:g} for bag {bag}: leave out the bag and its "
            "rows if the error is not known; 0 says that the share is exact"
        )
    if errors.shape == (n_bags,) and n_classes == 2:
        if errors.max() > 1 and data.proportions.max() <= 1:
            raise ValueError(
                f"proportion_errors holds {errors.max():g}, which is too large for the standard error of a share: "
                "divide percent by 100, and a margin of error of 90 % by 1.645"
            )
        errors = errors[:, None, None] ** 2 * OF_TWO
    if (
        errors.shape != (n_bags, n_classes, n_classes)
        or not np.isfinite(errors).all()
        or not np.allclose(errors.sum(axis=1), 0)
        or not np.allclose(errors, errors.transpose(0, 2, 1))
        or np.linalg.eigvalsh(errors).min() < -1e-10
    ):
        raise ValueError(
            "proportion_errors must be one finite standard error, not negative, for each of the "
            f"{n_bags} rows of proportions (two classes), or one covariance matrix of the "
            f"{n_classes} shares each, whose rows sum to 0, got {proportion_errors!r}"
        )
    # Exactly 0, because counts with these errors must sum to the size of their bag.
    errors = errors - errors.mean(axis=1, keepdims=True)
    errors = errors - errors.mean(axis=2, keepdims=True)
    left, all_sizes = data.bag_sizes[:n_bags], (data.before or data).bag_sizes
    wider = np.divide(all_sizes[:n_bags], left, out=np.zeros(n_bags), where=left > 0)
    errors = errors * wider[:, None, None] ** 2
    return np.append(errors, np.zeros((data.n_pure, n_classes, n_classes)), axis=0)
