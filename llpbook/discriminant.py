r"""Weighted discriminant analysis: each instance has a weight in each class, and the weights keep the counts.

Linear discriminant analysis needs class means, the covariance within classes, and the class prior. Let instance
:math:`i` of bag :math:`k` count with weight :math:`w_{ij}` in class :math:`j`,

.. math:: m_j = \frac{\sum_i w_{ij} x_i}{\sum_i w_{ij}}, \qquad
          S_w = \frac1{\sum_{ij} w_{ij}} \sum_{ij} w_{ij} (x_i - m_j)(x_i - m_j)^\top, \qquad
          \sum_{i \in B_k} w_{ij} = n_k \pi_{kj} .

SWS takes the share of the bag, :math:`w_{ij} = \pi_{kj}`. FWS refines the weights by distances to the class means, WWS
by the probabilities of the classifier itself, both until the weights converge.

Chapter: ``book/discriminant``. Source: perezortiz2016.
"""

from dataclasses import dataclass
from numbers import Real

import numpy as np
from scipy.special import log_softmax
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import gen_batches

from .base import (
    ArrayLike,
    InChunks,
    Interval,
    LLPClassifier,
    StrOptions,
    one_column,
    warn,
    warn_if_short,
)

__all__ = ["WeightedLDA"]

#: Least variance within classes, as a share of the variance of all instances.
LEAST = 1e-6
#: Entries of a block of X that stays in the processor's cache while it is used twice.
CACHED = 2**15
#: Entries of X above which weights are refined in single precision while they change by more.
LIGHT, ROUGH = 500_000, 1e-4


def weighted_means(X, weights):
    r"""Class means of weighted instances.

    Equation :eq:`eq-da-means`; perezortiz2016, eqs. 1 and 5.

    Parameters
    ----------
    X : ndarray, shape (n_instances, n_features)
    weights : ndarray, shape (n_instances, n_classes)

    Returns
    -------
    ndarray, shape (n_classes, n_features)
        The mean of all instances for a class without weight.
    """
    mass = weights.sum(axis=0)
    sums = weights.T @ X
    if not mass.all():
        sums[mass == 0] = X.mean(axis=0)
    # eq: eq-da-means
    return sums / np.where(mass > 0, mass, 1.0)[:, None]


def within_covariance(X, weights, means):
    r"""Covariance within classes.

    Equation :eq:`eq-da-within`; perezortiz2016, eqs. 2 and 6.

    Parameters
    ----------
    X : ndarray, shape (n_instances, n_features)
        Centered: digits are lost where means are large.
    weights : ndarray, shape (n_instances, n_classes)
    means : ndarray, shape (n_classes, n_features)
        From `weighted_means`.

    Returns
    -------
    ndarray, shape (n_features, n_features)
    """
    mass, each = weights.sum(axis=0), weights.sum(axis=1)
    moments = -(means * mass[:, None]).T @ means
    for rows in gen_batches(len(X), max(1, CACHED // X.shape[1])):
        moments += (X[rows].T * each[rows]) @ X[rows]
    # eq: eq-da-within
    return moments / mass.sum()


def between_covariance(means, mass):
    r"""Covariance of the class means.

    The paper does not define it.

    Parameters
    ----------
    means : ndarray, shape (n_classes, n_features)
    mass : ndarray, shape (n_classes,)
        Weight of each class.

    Returns
    -------
    ndarray, shape (n_features, n_features)
    """
    share = mass / mass.sum()
    M = means - share @ means
    return (M * share[:, None]).T @ M


def whitening(X):
    """Directions in which instances have covariance 1, without directions in which they do not vary.

    Parameters
    ----------
    X : ndarray, shape (n_instances, n_features)

    Returns
    -------
    ndarray, shape (n_features, rank)
    """
    scale = X.std(axis=0)
    scale[scale <= 1e-12 * np.abs(X).max(axis=0)] = np.inf
    Z = X - X.mean(axis=0)
    Z /= scale
    return whitened(Z.T @ Z / len(Z), scale)


def whitened(correlation, scale):
    """`whitening` from the correlations of the features and their standard deviations.

    Parameters
    ----------
    correlation : ndarray, shape (n_features, n_features)
    scale : ndarray, shape (n_features,)
        Infinite for a feature that does not vary.

    Returns
    -------
    ndarray, shape (n_features, rank)
    """
    values, vectors = np.linalg.eigh(correlation)
    kept = values > 1e-9 * max(values[-1], 1e-9)
    return vectors[:, kept] / np.sqrt(values[kept]) / scale[:, None]


def inverse_root(S, basis, *, shrinkage=None):
    r"""A matrix R with :math:`R R^\top = S^{-1}`, also where S is nearly singular.

    A direction in which instances vary and no class varies separates the classes best. A pseudo-inverse would remove
    it; here its variance is set to 1e-6 of that of all instances.

    Parameters
    ----------
    S : ndarray, shape (n_features, n_features)
        Covariance within classes.
    basis : ndarray, shape (n_features, rank)
        From `whitening`: directions in which no instance varies are left out.
    shrinkage : float, optional
        :math:`(1 - s) S + s \frac{\operatorname{tr} S}{d} I` replaces S.

    Returns
    -------
    ndarray, shape (n_features, rank)
    """
    if shrinkage is not None:
        S = (1 - shrinkage) * S + shrinkage * np.trace(S) / len(S) * np.eye(len(S))
    values, vectors = np.linalg.eigh(basis.T @ S @ basis)
    return basis @ vectors / np.sqrt(np.maximum(values, LEAST))


@dataclass(frozen=True)
class Gaussians:
    """Classes as normal distributions with one covariance.

    Attributes
    ----------
    means : ndarray, shape (n_classes, n_features)
    root : ndarray, shape (n_features, rank)
        From `inverse_root`.
    prior : ndarray, shape (n_classes,)
    """

    means: np.ndarray
    root: np.ndarray
    prior: np.ndarray


def fit_gaussians(X, weights, basis, *, shrinkage=None):
    """Linear discriminant analysis of weighted instances.

    Parameters
    ----------
    X : ndarray, shape (n_instances, n_features)
    weights : ndarray, shape (n_instances, n_classes)
    basis, shrinkage
        As for `inverse_root`.

    Returns
    -------
    Gaussians
    """
    means = weighted_means(X, weights)
    within = within_covariance(X, weights, means)
    root = inverse_root(within, basis, shrinkage=shrinkage)
    return Gaussians(means, root, weights.sum(axis=0) / weights.sum())


def gaussians_of_chunks(data, shrinkage=None):
    """`fit_gaussians` with the shares of the bags as weights, and the covariance, from chunks.

    Parameters
    ----------
    data : BagData
        Its X are `InChunks`.
    shrinkage
        As for `inverse_root`.

    Returns
    -------
    Gaussians
    covariance : ndarray, shape (n_features, n_features)
    """
    means, within, total = data.X.class_moments(data.proportions)
    scale = np.sqrt(np.diag(total))
    size = np.abs(means).max(axis=0) + scale
    scale = np.where(scale > 1e-12 * size, scale, np.inf)
    basis = whitened(total / np.outer(scale, scale), scale)
    root = inverse_root(within, basis, shrinkage=shrinkage)
    return Gaussians(means, root, data.class_prior), within


def discriminants(model, *, logits="posterior"):
    r"""Weights and intercepts of the discriminant scores.

    Equation :eq:`eq-da-scores`.

    :math:`\delta_j(x) = x^\top S_w^{-1} m_j - \frac12 m_j^\top S_w^{-1} m_j + \log \eta_j`, with the origin at the
    mean of all classes.

    Parameters
    ----------
    model : Gaussians
    logits : {"posterior", "linear"}
        "linear" leaves out the terms that do not depend on x: eq. 7 of the paper to the letter.

    Returns
    -------
    coef : ndarray, shape (n_classes, n_features)
    intercept : ndarray, shape (n_classes,)
        Minus infinity for a class without instances.
    """
    center = model.prior @ model.means
    white = (model.means - center) @ model.root
    coef = white @ model.root.T
    with np.errstate(divide="ignore"):
        log_prior = np.log(model.prior)
    if logits == "linear":
        return coef, np.where(model.prior > 0, 0.0, log_prior) - coef @ center
    # eq: eq-da-scores
    return coef, log_prior - 0.5 * (white**2).sum(axis=1) - coef @ center


def closeness(X, means):
    r"""Closeness of each instance to each class mean.

    Equation :eq:`eq-da-closeness`; perezortiz2016, eq. 3.

    :math:`1 - d(x_i, m_j) / \sum_z d(x_i, m_z)` with the Euclidean distance. The K values of an instance sum to K - 1.

    Parameters
    ----------
    X : ndarray, shape (n_instances, n_features)
    means : ndarray, shape (n_classes, n_features)

    Returns
    -------
    ndarray, shape (n_instances, n_classes)
        All the same for an instance at distance 0 from all means.
    """
    distances = np.column_stack([np.linalg.norm(X - m, axis=1) for m in means])
    total = distances.sum(axis=1, keepdims=True)
    share = np.divide(
        distances, total, out=np.full_like(distances, 1 / len(means)), where=total > 0
    )
    # eq: eq-da-closeness
    return 1 - share


def matched_weights(log_closeness, starts, counts):
    r"""Weights proportional to closeness that keep the counts of each bag.

    Equation :eq:`eq-da-weights`.

    :math:`w_{ij} = n_k \pi_{kj} \, p^*_{ij} / \sum_{i' \in B_k} p^*_{i'j}`; perezortiz2016, eq. 4.

    Parameters
    ----------
    log_closeness : ndarray, shape (n_instances, n_classes)
        :math:`\log p^*`, up to a constant per bag and class; the instances of a bag are adjacent.
    starts : ndarray of int, shape (n_bags,)
        First instance of each bag.
    counts : ndarray, shape (n_bags, n_classes)

    Returns
    -------
    ndarray, shape (n_instances, n_classes)
        Spread evenly over a bag in which no instance is close to the class at all.
    """
    sizes = np.diff(np.append(starts, len(log_closeness)))
    top = np.maximum.reduceat(log_closeness, starts)
    nowhere = np.isneginf(top)
    if nowhere.any():
        log_closeness = np.where(np.repeat(nowhere, sizes, 0), 0.0, log_closeness)
        top = np.where(nowhere, 0.0, top)
    near = np.exp(log_closeness - spread(top, sizes))
    # eq: eq-da-weights
    return near * spread(counts / np.add.reduceat(near, starts), sizes)


def spread(rows, sizes):
    """The row of its bag for each instance, stored column by column: the sums over classes are fast then."""
    return np.repeat(rows.T, sizes, axis=1).T


def projections(model):
    r"""Directions in which class means vary most, compared with the instances within a class.

    :math:`S_b v = \nu S_w v` with :math:`v^\top S_w v = 1`: eigenvectors of :math:`R^\top S_b R`, times :math:`R`.

    Parameters
    ----------
    model : Gaussians

    Returns
    -------
    directions : ndarray, shape (n_features, n_components)
        One per eigenvalue above 0, at most one less than classes.
    ratio : ndarray, shape (n_components,)
        Each eigenvalue's share of their sum.
    """
    spread = model.root.T @ between_covariance(model.means, model.prior) @ model.root
    values, vectors = np.linalg.eigh(spread)
    values, vectors = values[::-1], vectors[:, ::-1]
    kept = values[: len(model.means) - 1] > 1e-10 * values[:1].clip(1e-100)
    directions = model.root @ vectors[:, : len(kept)][:, kept]
    largest = np.abs(directions).argmax(axis=0)
    signs = np.sign(directions[largest, np.arange(directions.shape[1])])
    ratio = values[: len(kept)][kept]
    return directions * signs, ratio / max(ratio.sum(), 1e-300)


class WeightedLDA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, LLPClassifier):
    r"""Linear discriminant analysis with weights from label proportions (Pérez-Ortiz et al. 2016).

    Parameters
    ----------
    scheme : {"sws", "fws", "wws"}, default "wws"
        Weights: the shares of the bag; refined by distances to the class means; refined by the classifier itself.
    logits : {"posterior", "linear"}, default "posterior"
        WWS takes the soft-max of the discriminant scores ("posterior"), or of their part that is linear in x, with the
        origin at the mean of the classes ("linear", eq. 7 to the letter). Predictions use the discriminant scores. It
        does not act with another scheme.
    shrinkage : float in [0, 1], optional
        Shrinkage of the covariance within classes towards a multiple of the identity.
    max_iter : int, default 300
    tol : float, default 1e-5
        Stop if the weights of an instance change by less, on average. The paper's rule, a total change below 1e-5,
        is ``tol=1e-5 / n``.
    verbose : int, default 0
        1 prints progress, one line per second.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
    coef_ : ndarray, shape (1, n_features) or (n_classes, n_features)
        Weights of the scores, which are log-odds of the positive class for two classes.
    intercept_ : ndarray, shape (1,) or (n_classes,)
    means_ : ndarray, shape (n_classes, n_features)
    covariance_ : ndarray, shape (n_features, n_features)
        Within classes, before shrinkage.
    weights_ : ndarray, shape (n_instances, n_classes)
    class_prior_ : ndarray, shape (n_classes,)
    scalings_ : ndarray, shape (n_features, n_components)
        Directions of `transform`, at most one less than classes, in which classes have covariance 1. First comes the
        direction along which the class means vary most. The largest entry of each direction is positive.
    explained_variance_ratio_ : ndarray, shape (n_components,)
    n_iter_ : int
    gap_ : float
        Mean change of the weights of an instance in the last iteration: 0 at a fixed point.

    Raises
    ------
    NotIdentifiableError
        If all bags have the same proportions.
    ValueError
        For malformed input; see `llpbook.base`.

    Notes
    -----
    :math:`O(n d (d + K))` per iteration. With bags of size 1 every scheme is scikit-learn's
    ``LinearDiscriminantAnalysis(solver="eigen")``. A class that is in no bag is never predicted. An `LLPWarning` is
    given if the proportions tell only some of the classes apart. Swapping two classes swaps the predictions; giving all
    data twice changes nothing.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 200)
    >>> X = rng.normal(size=(200, 2)) + 3.0 * y[:, None]
    >>> bags = np.repeat(np.arange(40), 5)
    >>> p = np.bincount(bags, y) / 5
    >>> float(WeightedLDA().fit(X, bags, p).score(X, y)) > 0.9
    True
    """

    assumes = ("X_B|Y", "each class is one normal distribution, the same in all bags")
    cost = "ten to three hundred discriminant analyses"
    _log_odds, _cure = True, "another scheme"
    _parameter_constraints = {
        "scheme": [StrOptions({"sws", "fws", "wws"})],
        "logits": [StrOptions({"posterior", "linear"})],
        "shrinkage": [Interval(Real, 0, 1, closed="both"), None],
    }

    def __init__(
        self, scheme: str = "wws", *, logits: str = "posterior",
        shrinkage: float | None = None, max_iter: int = 300, tol: float = 1e-5,
        verbose: int = 0,
    ):  # fmt: skip
        self.scheme, self.logits, self.shrinkage = scheme, logits, shrinkage
        self.max_iter, self.tol, self.verbose = max_iter, tol, verbose

    @property
    def _scale(self):
        return "distances" if self.scheme == "fws" else None

    def _sums_needed(self):
        return "class moments" if self.scheme == "sws" else None

    def _fit(self, data):
        warn_of_rank(data)
        if isinstance(data.X, InChunks):
            self.n_iter_, self.gap_ = 0, 0.0
            model, within = gaussians_of_chunks(data, self.shrinkage)
            return self._store(model, within)
        order = np.argsort(data.bags, kind="stable")
        X, shares = data.X[order], data.proportions[data.bags[order]]
        X -= (center := X.mean(axis=0))
        basis, sizes = whitening(X), data.bag_sizes[data.bag_sizes > 0]
        starts = (np.cumsum(sizes) - sizes).astype(np.intp)
        counts = shares[starts] * sizes[:, None]
        weights = self._refine(X, shares, basis, starts, counts)
        self.weights_ = weights[np.argsort(order)]
        model = fit_gaussians(X, weights, basis, shrinkage=self.shrinkage)
        self._store(model, within_covariance(X, weights, model.means), center)

    def _refine(self, X, weights, basis, starts, counts):
        self.gap_ = 0.0 if self.scheme == "sws" else np.inf
        self.n_iter_, progress = 0, self._progress(self.max_iter, "iteration")
        for Z, axes, tol in precisions(self, X, basis):
            weights, wanted = weights.astype(Z.dtype), counts.astype(Z.dtype)
            while self.gap_ > tol and self.n_iter_ < self.max_iter:
                near = self._log_closeness(Z, weights, axes)
                before, weights = weights, matched_weights(near, starts, wanted)
                self.gap_ = float(np.abs(weights - before).sum() / len(X))
                self.n_iter_ += 1
                progress.step(f"weights change by {self.gap_:.1e} per instance")
        left = "weights that change by {:.1e} per instance"
        warn_if_short(self, left, "raise max_iter", slack=1)
        return weights

    def _log_closeness(self, X, weights, basis):
        if self.scheme == "fws":
            return np.log(np.maximum(closeness(X, weighted_means(X, weights)), 1e-300))
        model = fit_gaussians(X, weights, basis, shrinkage=self.shrinkage)
        coef, intercept = discriminants(model, logits=self.logits)
        return log_softmax(scores_by_class(X, coef, intercept), axis=1)

    def _store(self, model, covariance, origin=0.0):
        model = Gaussians(model.means + origin, model.root, model.prior)
        self.means_, self.class_prior_ = model.means, model.prior
        self.covariance_ = covariance
        coef, intercept = discriminants(model)
        if len(coef) == 2:
            coef, intercept = coef[1:] - coef[:1], intercept[1:] - intercept[:1]
        self.coef_, self.intercept_ = coef, intercept
        self.scalings_, self.explained_variance_ratio_ = projections(model)
        self._n_features_out = self.scalings_.shape[1]

    def _scores(self, X):
        return one_column(X @ self.coef_.T + self.intercept_)

    def transform(self, X: ArrayLike) -> np.ndarray:
        """Instances in the directions that separate the classes best, with the origin at the mean of the classes.

        Parameters
        ----------
        X : array-like, shape (n_instances, n_features)

        Returns
        -------
        ndarray, shape (n_instances, n_components)
        """
        X = self._validate_predict(X)
        return (X - self.class_prior_ @ self.means_) @ self.scalings_


def scores_by_class(X, coef, intercept):
    """Scores, shape (n_instances, n_classes), of the type of X; in memory those of a class lie side by side."""
    scores = np.stack([X @ w for w in coef.astype(X.dtype)])
    scores += intercept[:, None]
    return scores.T


def precisions(model, X, basis):
    """Instances, their basis and the tolerance of `WeightedLDA`: of many first in single precision, then in double.

    The first are in directions in which they have covariance 1, so that no direction loses its digits. The weights are
    the same there if nothing is shrunk.
    """
    if model.scheme == "wws" and model.shrinkage is None and X.size > LIGHT:
        Z = X.astype(np.float32) @ basis.astype(np.float32)
        yield Z, np.eye(Z.shape[1], dtype=np.float32), max(ROUGH, model.tol)
    yield X, basis, model.tol


def warn_of_rank(data):
    """Warn if the shares of several classes differ, but not enough to tell each class from the others."""
    shares = data.proportions[data.used]
    n_classes = int((shares.max(axis=0) > 0).sum())
    rank = np.linalg.matrix_rank(shares, tol=1e-8 * np.linalg.norm(shares, 2))
    if rank < n_classes:
        warn(
            f"proportions have rank {rank} over the bags, which cannot tell {n_classes} class means apart: some "
            "classes are told from the others only together",
        )
