"""Warnings of a linear fit: a penalty that is too strong, and probabilities that are too near 0 and 1."""

import numpy as np
import scipy.sparse as sp

from ..base import InChunks, one_column, probabilities, warn

#: Product of the constant C of a penalty and the total variance of the features below which log-odds hardly vary: under
#: the prior of the penalty their variance is this product. Between 3 and 10 a fit is as good as any on average.
#: Features of which at least one is standardized have a total variance of 1: then a small C was meant.
HELD, USUAL, STANDARD = 0.1, (3, 10), 0.99


def warn_if_held(estimator, X, w, frequencies=None):
    """Warn where a penalty holds all log-odds near the intercept, because the features vary too little for it.

    Parameters
    ----------
    estimator : LLPClassifier
        Linear.
    X : ndarray or sparse array, shape (n_instances, n_features)
    w : ndarray, shape (1, n_features) or (n_classes, n_features)
        Of the fit: where its log-odds vary more than under the prior of the penalty, nothing is held.
    frequencies : ndarray, shape (n_instances,), optional
        Of the rows.
    """
    C = estimator.C
    often = np.ones(X.shape[0]) if frequencies is None else frequencies
    means = X.T @ often / often.sum()
    squares = X.power(2).T @ often if sp.issparse(X) else np.einsum("ij,ij->i", X, X)
    total = float(np.sum(squares) if sp.issparse(X) else squares @ often)
    total = total / often.sum() - float(np.sum(means**2))
    scores = X @ w.T
    varies = np.max(often @ (scores - often @ scores / often.sum()) ** 2 / often.sum())
    held = varies < C * total
    if held and 0 < total < STANDARD and C * total < HELD:
        ends = (float(f"{bound / total:.2g}") for bound in USUAL)  # 110, not 1.1e+02
        low, high = (f"{end:,g}" for end in ends)
        warn(
            f"{type(estimator).__name__} with C={C:g} holds all log-odds near the intercept, because the variances of "
            f"the features sum to {total:.2g}; values of C between {low} and {high} are usual, or choose it by "
            "LLPGridSearchCV"
        )


#: `warn_if_too_sure` warns if the share of wrong labels that the shares show exceeds `TOO_SURE` times the share that
#: the model states, by at least `SHOWN`.
TOO_SURE, SHOWN = 3.0, 0.1


#: It also warns if a model states fewer wrong labels than `NO_ERRORS` and the counts of at least `ENOUGH_BAGS` bags
#: imply more than `IMPLIED`.
NO_ERRORS, IMPLIED, ENOUGH_BAGS = 0.0005, 0.1, 30


def predicted_counts(X, weights, bags, n_bags, frequencies=None):
    """Predicted and expected counts of a linear model, as sums that add up over parts of the data.

    Parameters
    ----------
    X : ndarray or sparse array, shape (n_instances, n_columns)
    weights : ndarray, shape (1, n_columns) or (n_classes, n_columns)
        Of log-odds.
    bags : ndarray of int, shape (n_instances,)
    n_bags : int
    frequencies : ndarray of int, shape (n_instances,), optional
        How many equal instances each row stands for.

    Returns
    -------
    stated : float
        Sum of the probabilities of the classes that are not predicted.
    predicted : ndarray of int, shape (n_bags, n_classes)
        Instances of each bag that are predicted to be of each class.
    expected : ndarray, shape (n_bags, n_classes)
        Sums of the probabilities of each class in each bag.
    """
    proba = probabilities(one_column(X @ weights.T))
    times = np.ones(len(bags)) if frequencies is None else frequencies
    chosen = np.eye(proba.shape[1])[proba.argmax(axis=1)]
    predicted, expected = (
        np.column_stack([np.bincount(bags, times * q, n_bags) for q in each.T])
        for each in (chosen, proba)
    )
    stated = float(np.sum(times * (1 - proba.max(axis=1))))
    return stated, predicted.astype(int), expected


def shown_errors(predicted, proportions):
    """Share of labels that predicted counts show to be wrong, and the share that chance alone would show.

    In each bag at least so many labels are wrong as the predicted counts differ from the given ones.

    Parameters
    ----------
    predicted : ndarray of int, shape (n_bags, n_classes)
        Of `predicted_counts`.
    proportions : ndarray, shape (n_bags, n_classes)

    Returns
    -------
    shown : float
    chance : float
        ``shown`` for the true labels, if the instances of each bag were drawn with the given shares.
    """
    n, sizes = predicted.sum(), predicted.sum(axis=1, keepdims=True)
    shown = np.abs(predicted - sizes * proportions).sum() / (2 * n)
    # The mean distance of a normal variable from its mean is 0.8 standard deviations.
    chance = 0.4 * np.sqrt(sizes * proportions * (1 - proportions)).sum() / n
    return float(shown), float(chance)


def implied_errors(expected, proportions):
    r"""Share of wrong labels that the counts imply, for a model that is sure of each label.

    :math:`\frac1n \sum_k (c_k - \hat c_k)^2` with the expected counts :math:`\hat c_k`: if labels are wrong
    independently of one another, the variance of a count is about the number of wrong labels.

    Parameters
    ----------
    expected : ndarray, shape (n_bags, n_classes)
        Of `predicted_counts`.
    proportions : ndarray, shape (n_bags, n_classes)

    Returns
    -------
    float
        Can exceed 1 if the counts miss in one direction.
    """
    sizes = expected.sum(axis=1, keepdims=True)
    return float(np.sum((expected - sizes * proportions) ** 2) / (2 * sizes.sum()))


def warn_if_too_sure(estimator, Z, weights, data):
    """Warn if probabilities near 0 and 1 contradict the shares: then the class means are wrong.

    Parameters
    ----------
    estimator : LLPClassifier
    Z : ndarray, sparse array or InChunks, shape (n_instances, n_columns)
        The training instances.
    weights : ndarray, shape (1, n_columns) or (n_classes, n_columns)
        Of log-odds.
    data : BagData
    """
    P = data.proportions
    if isinstance(Z, InChunks):
        stated, predicted, expected = Z.sums_by_bag(predicted_counts, weights)
    else:
        stated, predicted, expected = predicted_counts(
            Z, weights, data.bags, len(P), data.frequencies
        )
    stated = stated / predicted.sum()
    shown, chance = shown_errors(predicted, P)
    refuted = shown > SHOWN + TOO_SURE * stated + chance
    counter = f"the shares show that at least {shown:.0%} are"
    if stated < NO_ERRORS and len(P) >= ENOUGH_BAGS and not refuted:
        implied = implied_errors(expected, P)
        refuted = implied > IMPLIED
        counter = (
            f"the counts of the bags miss as if {min(implied, 0.5):.0%} or more were"
        )
    if refuted:
        warn(
            f"{type(estimator).__name__} is too sure: its probabilities say that {stated:.2%} of the predicted labels "
            f"are wrong, but {counter}. The estimated class means do not fit the "
            "instances: class means differ between bags, or the shares differ too little. Look at diagnose, raise "
            "alpha, or take CountLogistic, which does not estimate class means"
        )
