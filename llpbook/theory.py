r"""The information in the counts of bags, and the number of labels that they are worth in each direction.

Labels are independent given the features, with log-odds :math:`f = \langle w, x \rangle`. Known labels have the
information :math:`H = \sum_i v_i x_i x_i^\top`, :math:`v_i = s_i (1 - s_i)`. The count of a bag has the part of it that
lies between bags,

.. math:: J = \sum_k V_k \bar x_k \bar x_k^\top + \frac{r_k r_k^\top}{N_k} + O(1 / V_k), \qquad
          V_k = \sum_{i \in B_k} v_i, \quad \bar x_k = \frac1{V_k} \sum_{i \in B_k} v_i x_i,

with :math:`r_k` and :math:`N_k` of `projected_information`. The eigenvalues of :math:`n H^{-1} J` are the effective
numbers of labels, one per direction of w: with that many labels per direction the error would be the same.

Chapters: ``book/theory`` and, with proofs and code, ``book/theory_proofs``. Sources: the chapters name them for each
theorem; the eigenvalues are ours.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.linalg import eigh
from scipy.special import expit
from sklearn.utils.validation import check_is_fitted

from ._input import check_column
from ._linear import (
    LinearObjective,
    bag_counts,
    gram_blocks,
    label_factors,
    weighted_gram,
)
from ._printed import Printed
from .base import (
    ArrayLike,
    Matrix,
    Proportions,
    append_one,
    check_fitted_to_bags,
    one_column,
    read_bags,
    split_steps,
)
from .count_likelihood import CountLoss, exact_posterior

__all__ = ["LabelWorth", "label_worth"]

#: Bags per weight below which the prediction of the losses was too low in the simulations of the chapter.
BAGS_PER_WEIGHT = 10
#: Directions with less of the largest information of labels have none: the common shift of all classes.
FLAT = 1e-9


def label_information(Z, scores, frequencies=None):
    r"""Fisher information of known labels.

    :math:`H = \sum_i v_i x_i x_i^\top`, equation :eq:`eq-theory-labels`.

    Parameters
    ----------
    Z : ndarray or sparse array, shape (n_rows, n_columns)
    scores : ndarray, shape (n_rows,) or (n_rows, n_classes)
    frequencies : ndarray, shape (n_rows,), optional
        Number of instances that each row stands for.

    Returns
    -------
    ndarray, shape (n_weights, n_weights)
        Of several classes the weights of one class after those of another.
    """
    factors = [a.reshape(len(a), -1) for a in label_factors(scores)]
    times = 1.0 if frequencies is None else frequencies

    def weights(j, k):
        return times * sum(a[:, j] * a[:, k] for a in factors)

    # eq: eq-theory-labels
    return gram_blocks(Z, weights, factors[0].shape[1])


def exact_information(Z, f, observed):
    r"""Fisher information of the counts by a sum over all counts of each bag, for two classes and small bags.

    :math:`J = \sum_k \operatorname{Var} \mathrm{E}(U_k \mid c_k)`, equation :eq:`eq-theory-exact`.

    Parameters
    ----------
    Z : ndarray or sparse array, shape (n_instances, n_columns)
    f : ndarray, shape (n_instances,)
    observed : BagCounts
        Only the sizes of the bags matter.

    Returns
    -------
    ndarray, shape (n_columns, n_columns)
    """
    s, J, sizes = expit(f), np.zeros((Z.shape[1], Z.shape[1])), observed.sizes
    zeros = np.zeros(len(sizes))
    for c in range(sizes.max() + 1):
        all_have_c = replace(observed, counts=np.minimum(c, sizes), errors=zeros)
        log_p, q = exact_posterior(s, all_have_c, zeros)
        P = np.where(sizes >= c, np.exp(log_p), 0)
        # eq: eq-theory-exact
        gradients = observed.weighted_sums(np.nan_to_num(q - s), Z)
        J += (P[:, None] * gradients).T @ gradients
    return J


def projected_information(Z, f, observed):
    r"""Information in the first two orthogonal polynomials of the counts of two classes: never above the exact one.

    :math:`J = \sum_k V_k \bar x_k \bar x_k^\top + r_k r_k^\top / N_k`, equation :eq:`eq-theory-counts`.

    Parameters
    ----------
    Z : ndarray or sparse array, shape (n_rows, n_columns)
    f : ndarray, shape (n_rows,)
    observed : BagCounts

    Returns
    -------
    ndarray, shape (n_columns, n_columns)
    """
    s, bags = expit(f), observed.bags
    v = s * (1 - s)
    V = np.maximum(observed.sums(v), 1e-100)
    d = 1 - 2 * s - (observed.sums(v * (1 - 2 * s)) / V)[bags]
    # eq: eq-theory-counts
    N = 2 * (V**2 - observed.sums(v**2)) + observed.sums(v * d**2)
    N = np.maximum(N, 1e-12 * V**2)  # 0 up to rounding where one label is uncertain
    factors = v / np.sqrt(V)[bags], v * d / np.sqrt(N)[bags]
    F = np.vstack([observed.weighted_sums(a, Z) for a in factors])
    return F.T @ F


def count_information(Z, scores, observed, exact_up_to=20):
    r"""Fisher information of the counts of bags: exact for small bags of two classes, else by a formula.

    The formula is `projected_information`; of several classes its first term only. Both are lower bounds.

    Parameters
    ----------
    Z : ndarray or sparse array, shape (n_rows, n_columns)
    scores : ndarray, shape (n_rows,) or (n_rows, n_classes)
    observed : BagCounts
    exact_up_to : int, default 20
        Largest bag, of two classes, for which :eq:`eq-theory-exact` is summed instead.

    Returns
    -------
    ndarray, shape (n_weights, n_weights)
    """
    bags = observed.bags
    small = (observed.sizes <= exact_up_to) & (scores.ndim == 1)
    J = np.zeros((scores[:1].size * Z.shape[1],) * 2)
    if small.any():
        rows = np.flatnonzero(small[bags])
        if observed.frequencies is not None:
            rows = np.repeat(rows, observed.frequencies[rows].astype(np.intp))
        codes = (np.cumsum(small) - 1)[bags[rows]]
        part = replace(observed.part(small), bags=codes, frequencies=None)
        J += exact_information(Z[rows], scores[rows], part)
    if not small.all():
        rows = np.flatnonzero(~small[bags])
        rows = rows[np.argsort(bags[rows], kind="stable")]
        part = observed.reordered(np.argsort(bags, kind="stable")).part(~small)
        if scores.ndim == 1:
            J += projected_information(Z[rows], scores[rows], part)
        else:
            J += LinearObjective(CountLoss(), Z[rows], part).information(scores[rows])
    return J


def worth_spectrum(J, H, n):
    """Effective numbers of labels, one per direction, largest first: the eigenvalues of ``n J`` relative to ``H``.

    Equation :eq:`eq-theory-spectrum`.

    Parameters
    ----------
    J, H : ndarray, shape (n_weights, n_weights)
        Information of the counts and of n labels.
    n : int

    Returns
    -------
    spectrum : ndarray, shape (n_directions,)
    directions : ndarray, shape (n_weights, n_directions)
        Of the weights; ``directions.T @ H @ directions`` is n times the identity matrix.
    """
    values, vectors = np.linalg.eigh(H)
    kept = values > FLAT * values[-1]
    root = vectors[:, kept] * np.sqrt(n / values[kept])
    # eq: eq-theory-spectrum
    spectrum, turned = eigh(root.T @ J @ root)
    return np.maximum(spectrum[::-1], 0), root @ turned[:, ::-1]


@dataclass(frozen=True, eq=False)
class LabelWorth(Printed):
    """Effective numbers of labels and predicted losses, from `label_worth`; `print` it.

    Attributes
    ----------
    spectrum : ndarray, shape (n_directions,)
        Effective numbers of labels per direction of the weights, largest first; the first is that of the offset.
    directions : ndarray, shape (n_weights, n_directions)
        The directions, in the order of the spectrum: weights of the features, then that of the intercept.
    harmonic_mean : float
        One number for all directions, which determines the log loss. 0 if some direction has no information.
    excess_log_loss : float
        Mean log loss of the fit without a penalty, minus that of the true probabilities; inf where a direction has no
        information.
    excess_error : float
        Share of wrong labels of the fit without a penalty, minus that of the true probabilities; NaN for several
        classes.
    reasons : tuple of str
        Reasons not to trust the predicted losses; empty if there are none.

    Examples
    --------
    >>> from sklearn.preprocessing import StandardScaler
    >>> from llpbook import CountLogistic, label_worth, load_bags
    >>> X, bags, proportions = load_bags("heart", bag_size=4, random_state=0)
    >>> model = CountLogistic().fit(StandardScaler().fit_transform(X), bags, proportions)
    >>> worth = label_worth(StandardScaler().fit_transform(X), bags, proportions, model)
    >>> worth.directions.shape, worth.valid
    ((14, 14), False)
    """

    spectrum: np.ndarray
    directions: np.ndarray
    harmonic_mean: float
    excess_log_loss: float
    excess_error: float
    reasons: tuple

    @property
    def valid(self) -> bool:
        """True if there is no reason not to trust the predicted losses."""
        return not self.reasons

    def __str__(self):
        some = ", ".join(f"{v:.3g}" for v in self.spectrum[:4])
        more = ", …" if len(self.spectrum) > 4 else ""
        lines = [
            f"effective labels per direction: {some}{more}; harmonic mean {self.harmonic_mean:.3g}",
            f"predicted excess: log loss {self.excess_log_loss:.3g}, error {self.excess_error:.3g}",
        ]
        return "\n".join([*lines, *(f"not valid: {r}" for r in self.reasons)])


def label_worth(
    X: Matrix, bags: ArrayLike, proportions: Proportions | None, model: Any, *,
    counts: ArrayLike | None = None,
) -> LabelWorth:  # fmt: skip
    r"""Compute the worth of the bags in labels, per direction, and predict the losses of a fit to their counts.

    Parameters
    ----------
    X : array-like or sparse array, shape (n_instances, n_features)
    bags : array-like, shape (n_instances,)
    proportions : array-like, Series, dict or DataFrame, or None
        See `llpbook.proportions.check_proportions`. Only the classes matter: the information is an expectation. None
        plans bags whose shares are not known yet.
    model : fitted estimator or Pipeline
        Linear in the log-odds, with ``coef_`` and ``intercept_``, such as `CountLogistic`. Its probabilities are taken
        as the true ones: a fit to labels, or to other bags, serves to plan.
    counts : array-like of int, shape (n_instances,), optional
        Number of instances that each row stands for.

    Returns
    -------
    LabelWorth

    Raises
    ------
    ValueError
        For malformed input, if the model is not linear in the log-odds, or if its classes are not those of the
        proportions.

    Notes
    -----
    :math:`\operatorname{tr}(\bar H J^{-1}) / 2` is the excess of the log loss, :math:`\bar H` the information of one
    label (:eq:`eq-theory-excess`), and :math:`\frac14 \operatorname{tr}(K J^{-1})` that of the error, where
    :math:`K = \mathrm{E}[\delta(f) x x^\top]` is estimated by a kernel. Both leave out the bias of a penalty, and
    are limits for many bags. The cost is :math:`O(n d + L d^2 + d^3)`, d the number of weights.

    Examples
    --------
    >>> from sklearn.preprocessing import StandardScaler
    >>> from llpbook import CountLogistic, label_worth, load_bags
    >>> X, bags, proportions = load_bags("heart", bag_size=4, random_state=0)
    >>> X = StandardScaler().fit_transform(X)
    >>> model = CountLogistic().fit(X, bags, proportions)
    >>> worth = label_worth(X, bags, proportions, model)
    >>> len(worth.spectrum), round(worth.spectrum[0])
    (14, 270)
    >>> from sklearn.cluster import KMeans
    >>> other = KMeans(68, n_init=1, random_state=0).fit_predict(X)
    >>> bool(label_worth(X, other, None, model).harmonic_mean > 1.5 * worth.harmonic_mean)
    True
    """
    Z, W, classes = _linear(model, X)
    if proportions is None:
        values = check_column("bags", bags, Z.shape[0], X)
        bags, names = pd.factorize(values, sort=True)
        shares = np.full((len(names), len(classes)), 1 / len(classes))
        proportions = pd.DataFrame(shares, columns=classes)
    data = read_bags(Z, bags, proportions, original=X, counts=counts)
    if data.classes.tolist() != classes:
        raise ValueError(
            f"proportions has the classes {data.classes.tolist()}, the model {classes}"
        )
    Z, n = append_one(data.X), data.n_instances
    observed = bag_counts(data.bags, data.proportions, None, data.frequencies)
    scores = one_column(np.asarray(Z @ W.T))
    J = count_information(Z, scores, observed)
    H = label_information(Z, scores, data.frequencies)
    spectrum, directions = worth_spectrum(J, H, n)
    reasons = _doubts(spectrum, len(observed.sizes))
    with np.errstate(divide="ignore"):
        costs = 1 / spectrum
    K = _boundary(Z, scores, data.frequencies)
    return LabelWorth(
        spectrum, directions, float(len(spectrum) / costs.sum()), excess_log_loss(spectrum),
        excess_error(spectrum, directions, K), reasons,
    )  # fmt: skip


def excess_log_loss(spectrum):
    r"""Expected mean log loss of a fit to the counts, minus that of the true probabilities.

    :math:`\frac12 \sum_j 1 / w_j`, equation :eq:`eq-theory-excess`.

    Parameters
    ----------
    spectrum : ndarray, shape (n_directions,)

    Returns
    -------
    float
    """
    with np.errstate(divide="ignore"):
        # eq: eq-theory-excess
        return float(np.sum(1 / spectrum) / 2)


def excess_error(spectrum, directions, K):
    r"""Expected share of wrong labels of a fit to the counts, minus that of the true probabilities.

    :math:`\frac14 \operatorname{tr}(K J^{-1})`.

    Parameters
    ----------
    spectrum, directions
        From `worth_spectrum`.
    K : ndarray, shape (n_weights, n_weights), or None
        The second moment of the instances at the boundary times their density there.

    Returns
    -------
    float
        NaN without K.
    """
    if K is None:
        return float("nan")
    at = np.einsum("ij,ik,kj->j", directions, K, directions)
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.nansum(np.where(at > 0, at / spectrum, 0)) / 4)


def _boundary(Z, scores, frequencies):
    """The mean of x xᵀ at log-odds of 0 times their density there, by a Gaussian kernel; None for several classes."""
    if scores.ndim > 1:
        return None
    times = np.ones(len(scores)) if frequencies is None else frequencies
    mean = np.average(scores, weights=times)
    sd = np.sqrt(np.average((scores - mean) ** 2, weights=times))
    width = 1.06 * max(sd, 1e-12) * times.sum() ** -0.2
    density = np.exp(-0.5 * (scores / width) ** 2) / (np.sqrt(2 * np.pi) * width)
    return weighted_gram(Z, times * density / times.sum())


def _doubts(spectrum, n_bags):
    """Reasons not to trust the predicted losses."""
    reasons = []
    if none := int(np.sum(spectrum <= FLAT * spectrum[0])):
        reasons.append(
            f"the counts say nothing about {none} of {len(spectrum)} directions"
        )
    if n_bags < BAGS_PER_WEIGHT * len(spectrum):
        reasons.append(
            f"{n_bags} bags for {len(spectrum)} weights: with fewer than {BAGS_PER_WEIGHT} bags per weight "
            "the losses are larger than predicted"
        )
    return tuple(reasons)


def _linear(model, X):
    """Features as the last step of a model sees them, its weights with the intercept last, and its classes."""
    check_fitted_to_bags(model)
    before, model = split_steps(model)
    check_is_fitted(model)
    needed = ("coef_", "intercept_", "predict_proba")
    if not all(hasattr(model, name) for name in needed):
        raise ValueError(
            "model must be linear in the log-odds, with coef_, intercept_ and predict_proba, such as CountLogistic; "
            f"got {type(model).__name__}"
        )
    Z = X if before is None else before.transform(X)
    Z = (
        model._validate_predict(Z)
        if hasattr(model, "_validate_predict")
        else np.asarray(Z, float)
    )
    weights = np.atleast_2d(model.coef_)
    offset = np.broadcast_to(np.atleast_1d(model.intercept_), len(weights))
    return Z, np.column_stack([weights, offset]), model.classes_.tolist()
