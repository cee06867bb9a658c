"""Scores of a model on bags whose shares are known, and their expected values."""

from collections.abc import Callable, Hashable, Mapping
from typing import Any

import numpy as np
from scipy.stats import hypergeom

from .._counts import whole_counts
from .._input import (
    ArrayLike,
    NDArray,
    Proportions,
    check_flag,
    doubt_of_numbers,
    in_order_of,
    keyed_rows,
    match_bags,
    refuse_cells,
    rows_of_instances,
)
from ..base import (
    StoredShares,
    bag_shares,
    check_fitted_to_bags,
    require_probabilities,
)
from ..proportions import (
    proportion_mae,
    proportion_mse,
    proportion_weighted_mse,
)
from ._splitters import count_rows


def regression_error(proportions, predicted, bag_sizes):
    r"""Error rate of labels, if it is the same in all bags: by regression of predicted on given shares.

    Where the error rates are the same in all bags (:math:`X \perp B \mid Y`), predicted shares are linear in the given
    ones, :math:`\mathbb E \tilde p_k = e_- + (1 - e_+ - e_-) p_k`. The line is fitted by least squares, weighted by
    size, and the error rate is read off: of two classes :math:`p + m - 2 p m - 2 p (1 - p) b`, where p and m are the
    means of given and of predicted shares and b is the slope.

    The model enters by two numbers only, the mean m and the slope b. So the error does not see how far the predicted
    shares lie from the line, nor whether the right instances of a bag are chosen; where error rates differ between bags
    the line means nothing, and a slope above 1 may make the error negative. Shares that are all equal have no slope: it
    counts as 0, as of predictions that ignore the features.

    Parameters
    ----------
    proportions, predicted : ndarray, shape (n_bags, n_classes)
    bag_sizes : ndarray, shape (n_bags,)
        Instances that are scored.

    Returns
    -------
    float
        In the terms of `unbiased_error` this takes the variance of the shares as it is found, where the other one takes
        that of random bags.
    """
    weights = (bag_sizes / bag_sizes.sum())[:, None]
    prior, mean = (weights * proportions).sum(axis=0), (weights * predicted).sum(axis=0)
    apart = np.sqrt(weights) * (proportions - prior).round(DIGITS)
    slopes = np.linalg.lstsq(
        apart, np.sqrt(weights) * (predicted - mean), rcond=NO_SLOPE
    )
    # Row l: the predictions that instances of class l get; its entry l is right.
    hits = mean + (np.eye(len(prior)) - prior) @ slopes[0]
    return float(1 - prior @ np.diag(hits))


#: Shares that agree to so many digits are equal; directions that carry less than this part of the shares carry none.
DIGITS, NO_SLOPE = 9, 1e-9

#: Errors of predicted shares by name: ``error(proportions, predicted, bag_sizes)``.
ERRORS = {
    "mae": lambda P, predicted, sizes: proportion_mae(P, predicted),
    "weighted_mae": lambda P, predicted, sizes: proportion_mae(
        P, predicted, bag_sizes=sizes
    ),
    "mse": lambda P, predicted, sizes: proportion_mse(P, predicted),
    "weighted_mse": proportion_weighted_mse,
    "regression": regression_error,
}
LIKELIHOOD, UNBIASED = "log_likelihood", "unbiased"
#: All scores by name.
SCORES = (*ERRORS, LIKELIHOOD, UNBIASED)
#: Scores that need the sizes of whole bags, and those that estimate the error rate of labels.
SIZED, OF_LABELS = (LIKELIHOOD, UNBIASED), (UNBIASED, "regression")
#: Up to this size of a bag the distribution of its count is exact, above it normal.
EXACT_UP_TO = 500
#: No probability counts as less.
SURE = 1e-6
#: The error rates of predicted labels that the likelihood tries, where an estimator has no probabilities.
ERROR_RATES = (0.01, 0.02, *np.arange(1, 11) / 20)
#: Errors are rounded to multiples of this: sums over splits are exact, and ties are ties on every processor.
GRAIN = 2.0**-40


def expected_squared_error(p, false_negative, false_positive, part, size):
    r"""Expected squared error of the predicted share of a random part of a bag.

    Equation :eq:`eq-ms-expected`.

    Parameters
    ----------
    p : float
        Share of positives of the whole bag.
    false_negative, false_positive : float
        Error rates of the classifier on positives and on negatives, the same in all bags.
    part, size : int
        Instances of the part, and of the bag.

    Returns
    -------
    float
    """
    bias = (1 - p) * false_positive - p * false_negative
    chance = p * false_negative * (1 - false_negative)
    chance = chance + (1 - p) * false_positive * (1 - false_positive)
    missing = p * (1 - p) * (size - part) / np.maximum(size - 1, 1)
    seen = (1 - false_negative - false_positive) ** 2
    # eq: eq-ms-expected
    return bias**2 + (chance + seen * missing) / part


def count_distribution(probabilities, bags, n_bags):
    r"""Distribution of the number of positives in each bag, for independent labels.

    Poisson-binomial, one instance at a time.

    Parameters
    ----------
    probabilities : ndarray, shape (n_instances,)
        Of the positive class.
    bags : ndarray of int, shape (n_instances,)
    n_bags : int

    Returns
    -------
    ndarray, shape (n_bags, largest + 1)
        Row k, column c: the probability of c positives in bag k. :math:`O(n_{bags} m^2)` for a largest bag of m.
    """
    sizes, order = np.bincount(bags, minlength=n_bags), np.argsort(bags, kind="stable")
    rank = np.arange(len(bags)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    padded = np.zeros((sizes.max(initial=0), n_bags))
    padded[rank, bags[order]] = probabilities[order]
    P = np.zeros((n_bags, len(padded) + 1))
    P[:, 0] = 1.0
    for s in padded[:, :, None]:
        P[:, 1:] = (1 - s) * P[:, 1:] + s * P[:, :-1]
        P[:, :1] *= 1 - s
    return P


def exact_score(s, bags, parts, sizes, positives):
    r"""Log-likelihood of the known counts, by the exact distribution.

    Equation :eq:`eq-ms-likelihood`.

    Of a whole bag the count is known. Of a part it is hypergeometric, and the score is the logarithm of the probability
    that it equals the predicted count.

    Parameters
    ----------
    s : ndarray, shape (n_instances,)
        Predicted probabilities of the positive class.
    bags : ndarray of int, shape (n_instances,)
    parts, sizes, positives : ndarray of int, shape (n_bags,)
        For each bag: its instances here, its instances in all, and how many of these are positive.

    Returns
    -------
    ndarray, shape (n_bags,)
    """
    counts = np.arange(parts.max() + 1)
    chances = hypergeom.pmf(counts, sizes[:, None], positives[:, None], parts[:, None])
    predicted = count_distribution(s, bags, len(parts))
    # eq: eq-ms-likelihood
    return np.log(np.maximum((chances * predicted).sum(axis=1), 1e-300))


def normal_score(s, bags, parts, sizes, positives):
    r"""Log-likelihood of the known counts by a normal distribution of the predicted count, for large bags.

    Parameters and result are those of `exact_score`.
    """
    p, mean = positives / sizes, np.bincount(bags, s, len(parts))
    missing = parts * p * (1 - p) * (sizes - parts) / np.maximum(sizes - 1, 1)
    variance = np.bincount(bags, s * (1 - s), len(parts)) + missing + 1 / 12
    misfit = (parts * p - mean) ** 2 / variance
    return -0.5 * (np.log(2 * np.pi * variance) + misfit)


def count_log_likelihood(
    probabilities: NDArray, bags: NDArray, proportions: NDArray, *,
    bag_sizes: NDArray | None = None, counts: ArrayLike | None = None,
) -> float:  # fmt: skip
    """Mean over bags of the log-likelihood of their counts under predicted probabilities.

    See `exact_score`, which serves bags of up to 500 instances here, and `normal_score` for larger ones. Of whole bags
    it is highest, on average, at the true probabilities; of parts it cannot tell how sure a model should be.

    Parameters
    ----------
    probabilities : ndarray, shape (n_instances, n_classes)
        Those below 1e-6 count as 1e-6.
    bags : ndarray of int, shape (n_instances,)
        Rows of ``proportions``.
    proportions : ndarray, shape (n_bags, n_classes)
        Of whole bags.
    bag_sizes : ndarray of int, shape (n_bags,), optional
        Of whole bags; if not given, the instances are all of their bags.
    counts : array-like of int, shape (n_instances,), optional
        How many equal instances each row stands for; one if not given.

    Returns
    -------
    float
        Of more than two classes, the sum over the classes, each against the rest.

    Examples
    --------
    >>> import numpy as np
    >>> from llpbook.model_selection import count_log_likelihood
    >>> bags, shares = np.array([0, 0, 1, 1]), np.array([[0.5, 0.5], [0.0, 1.0]])
    >>> for s in (np.array([0.5, 0.5, 0.9, 0.9]), np.array([0.5, 0.5, 0.5, 0.5])):
    ...     print(f"{count_log_likelihood(np.column_stack([1 - s, s]), bags, shares):.3f}")
    -0.452
    -1.040
    """
    every = rows_of_instances(counts, len(bags))
    probabilities, bags = probabilities[every], bags[every]
    used, codes, parts = np.unique(bags, return_inverse=True, return_counts=True)
    sizes = parts if bag_sizes is None else bag_sizes[used]
    columns, scores = range(proportions.shape[1])[-1:], np.zeros(len(used))
    of_class = whole_counts(proportions[used], sizes)
    for j in columns if proportions.shape[1] == 2 else range(proportions.shape[1]):
        s = np.clip(probabilities[:, j], SURE, 1 - SURE)
        large = parts > EXACT_UP_TO
        for chosen, score in ((~large, exact_score), (large, normal_score)):
            if chosen.any():
                rows, renamed = chosen[codes], np.cumsum(chosen) - 1
                scores[chosen] += score(
                    s[rows], renamed[codes[rows]],
                    parts[chosen], sizes[chosen], of_class[chosen, j],
                )  # fmt: skip
    return float(scores.mean())


def label_log_likelihood(labels, classes, bags, proportions, bag_sizes=None):
    """`count_log_likelihood` of predicted labels that err independently, all at the same rate.

    The rate between 0.01 and 0.5 that is most likely is taken: the labels alone do not say how sure they are.
    """
    hits = labels[:, None] == classes[None, :]
    others = len(classes) - 1
    guesses = (np.where(hits, 1 - rate, rate / others) for rate in ERROR_RATES)
    return max(
        count_log_likelihood(q, bags, proportions, bag_sizes=bag_sizes) for q in guesses
    )


def unbiased_weights(proportions, bag_sizes):
    r"""Unbiased estimate of the class probabilities of any instance of a bag, from the share of the bag.

    Parameters
    ----------
    proportions : ndarray, shape (n_bags, n_classes)
        Of whole bags that are drawn from one population; NaN for a bag without instances.
    bag_sizes : ndarray, shape (n_bags,)
        Of whole bags.

    Returns
    -------
    ndarray, shape (n_bags, n_classes)
        Rows sum to 1; entries may lie outside of [0, 1]. The class prior is that of the other bags, so that it may be
        estimated without a bias; of a single bag the row is its share.

    Notes
    -----
    Source: busafekete2023 (EasyLLP), with the prior given; the prior of the other bags is ours.
    """
    shares, sizes = np.nan_to_num(proportions), bag_sizes[:, None]
    counts, others = sizes * shares, bag_sizes.sum() - sizes
    of_others = (counts.sum(axis=0) - counts) / np.maximum(others, 1)
    prior = np.where(others > 0, of_others, shares)
    return sizes * (shares - prior) + prior


def unbiased_error(proportions, predicted, parts, bag_sizes):
    """Unbiased estimate of the error rate of predicted labels, for bags that are drawn from one population.

    Each instance counts as right by the weight that `unbiased_weights` gives its predicted class, so that the error is
    linear in the predicted shares. Its noise grows with the bags: a weight has a variance of about the size of the bag
    times p (1 - p). Where bags are not drawn from one population the error has no meaning as a rate.

    Parameters
    ----------
    proportions, predicted : ndarray, shape (n_bags, n_classes)
        Of whole bags; of the instances that are scored, any row where there is none.
    parts, bag_sizes : ndarray of int, shape (n_bags,)
        Instances that are scored; instances of the whole bags.

    Returns
    -------
    float
    """
    weights = unbiased_weights(proportions, bag_sizes)
    hits = (weights * np.nan_to_num(predicted)).sum(axis=1)
    return float(1 - parts @ hits / parts.sum())


class ProportionScorer(StoredShares):
    """A scorer for scikit-learn's model selection that sees bags and proportions only; see `proportion_scorer`.

    Examples
    --------
    >>> from llpbook import BagMeanRegression, load_bags, proportion_scorer
    >>> data = load_bags("heart", bag_size=8, random_state=0)
    >>> scorer = proportion_scorer(data.proportions, error="mae")
    >>> type(scorer).__name__
    'ProportionScorer'
    >>> model = BagMeanRegression().fit(*data)
    >>> -0.3 < scorer(model, data.X, data.bags) < 0  # minus the error: larger is better
    True
    """

    #: True if a search passes predictions out of fold.
    pooled = False

    def __init__(self, proportions, error="mae", bag_sizes=None, soft=None):
        self.proportions, self.error = proportions, error
        self.bag_sizes, self.soft = bag_sizes, soft

    def __repr__(self):
        return f"{type(self).__name__}({self.error!r})"

    def with_proportions(self, proportions, bag_sizes):
        """The scorer itself or, where it has no proportions, one with these and with the sizes of their bags."""
        if self.proportions is not None:
            return self
        sizes = bag_sizes if self.error in SIZED else None
        return ProportionScorer(proportions, self.error, sizes, self.soft)

    def __call__(self, estimator, X, bags, counts=None):
        """Score a fitted estimator on instances of whole bags or of parts of bags: larger is better."""
        check_fitted_to_bags(estimator)
        n, classes = count_rows(X), estimator.classes_
        matched = match_bags(self.proportions, bags, n, X)
        matrix = in_order_of(classes, matched.matrix, matched.classes)
        if counts is None:
            refuse_cells(X, matched.codes, matrix)
        rows = rows_of_instances(counts, n, X)
        predicted, codes = self._predictions(estimator, X)[rows], matched.codes[rows]
        parts = np.bincount(codes, minlength=len(matrix))
        doubt_of_numbers(matched, parts)
        sized = self.error in SIZED and self.bag_sizes is not None
        sizes = self._sizes(matched.keys, parts) if sized else parts
        if self.error != LIKELIHOOD:
            shares = bag_shares(predicted, codes, len(matrix), classes)
            score = -self._error(matrix, shares, parts, sizes)
        elif predicted.ndim == 2:
            score = count_log_likelihood(predicted, codes, matrix, bag_sizes=sizes)
        else:
            score = label_log_likelihood(predicted, classes, codes, matrix, sizes)
        return float(np.round(score / GRAIN) * GRAIN)

    def _predictions(self, estimator, X):
        """Predicted probabilities or labels, chosen by ``soft``."""
        soft = self.soft
        if soft is None:
            of_labels = isinstance(self.error, str) and self.error in OF_LABELS
            soft = hasattr(estimator, "predict_proba") and not of_labels
        if not soft:
            return estimator.predict(X)
        require_probabilities(estimator)
        return estimator.predict_proba(X)

    def _error(self, proportions, predicted, parts, sizes):
        if self.error == UNBIASED:
            return unbiased_error(proportions, predicted, parts, sizes)
        error, used = ERRORS.get(self.error, self.error), parts > 0
        return error(proportions[used], predicted[used], parts[used])

    def _sizes(self, keys, parts):
        """Sizes of the whole bags, in the order of the proportions."""
        sizes = keyed_rows("bag_sizes", self.bag_sizes, len(parts), keys)
        if sizes.shape != parts.shape:
            raise ValueError(
                f"bag_sizes must be one size for each of the {len(parts)} rows of proportions, got shape {sizes.shape}"
            )
        short = np.flatnonzero((parts > 0) & ~(sizes >= parts))
        if short.size:
            k = int(short[0])
            bag = k if keys is None else keys.tolist()[k]
            raise ValueError(
                f"bag_sizes must be those of whole bags, got {sizes[k]:g} for bag {bag!r}, "
                f"of which {parts[k]} instances are scored"
            )
        return np.nan_to_num(sizes).astype(int)


def proportion_scorer(
    proportions: Proportions | None, *, error: str | Callable = "mae",
    bag_sizes: ArrayLike | Mapping[Hashable, Any] | None = None,
    soft: bool | None = None,
) -> ProportionScorer:  # fmt: skip
    r"""Make a scorer that compares predicted with given proportions: no instance label is needed.

    Call it as ``scorer(estimator, X, bags)``; larger is better. Errors count negative, so that 0 is best.

    Parameters
    ----------
    proportions : None, array-like, Series, dict or DataFrame
        As for ``fit``; all bags, whole. None: those that `LLPGridSearchCV` is fitted to, with the sizes of their bags.
    error : str or callable, default "mae"
        - "mae": the mean over bags of `llpbook.proportions.proportion_mae` (franco2023, eq. 1); "weighted_mae": bags
          weigh their instances (yu2013);
        - "mse", "weighted_mse": other errors of `llpbook.proportions` (stolpe2011);
        - "log_likelihood": that of the counts under predicted probabilities, `count_log_likelihood`. The labels of an
          estimator without probabilities err at one rate, the most likely one, `label_log_likelihood`;
        - "unbiased": the error rate of labels for bags that are drawn from one population, `unbiased_error`
          (busafekete2023);
        - "regression": the error rate of labels for error rates that are the same in all bags, `regression_error`;
        - a function ``error(proportions, predicted, bag_sizes)`` of two matrices, shape (n_bags_present, n_classes),
          and the instances of these bags.
    bag_sizes : array-like, Series or dict, shape (n_bags,), optional
        Sizes of the whole bags: for "log_likelihood" and "unbiased", where parts of bags are scored. Those with keys
        are matched by them: by the keys of ``proportions``, or by its row numbers where it has none.
    soft : None or bool, default None
        True: predicted shares are mean probabilities; False: shares of predicted labels. None: mean probabilities where
        the estimator has ``predict_proba``, but labels for "unbiased" and "regression", which estimate their error
        rate.

    Returns
    -------
    ProportionScorer

    Raises
    ------
    ValueError
        If ``error`` is not known, ``bag_sizes`` are given for another one, or ``soft`` is True and the estimator has no
        ``predict_proba``.

    Notes
    -----
    Shares of labels prefer bad models where a class is rare. The most accurate labels leave out a class that is likely
    nowhere, so that their shares are wrong; a model that labels worse, but in the right numbers, has better shares. For
    people of `adult` in bags by native country the likelihood of the counts has worse shares of labels than a ridge
    regression that is less accurate, and far better mean probabilities (chapter, "Which score?").

    Examples
    --------
    >>> search = GridSearchCV(MeanMap(), grid, scoring=proportion_scorer(p), cv=SplitBagKFold(5))  # doctest: +SKIP
    >>> search.fit(X, bags, groups=bags, proportions=p)  # doctest: +SKIP
    """
    named = isinstance(error, str) and error in SCORES
    if not callable(error) and not named:
        raise ValueError(
            f"error must be a function or one of {', '.join(SCORES)}, got {error!r}"
        )
    if bag_sizes is not None and error not in SIZED:
        raise ValueError(
            f"bag_sizes are for error={LIKELIHOOD!r} and {UNBIASED!r} only, got {error!r}"
        )
    check_flag("soft", soft, also=(None,))
    return ProportionScorer(proportions, error, bag_sizes, soft)
