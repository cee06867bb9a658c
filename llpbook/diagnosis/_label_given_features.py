r"""The test of Y ⊥ B | X: does the bag predict the labels beyond the features, in held-out data?"""

import numpy as np
from scipy.linalg import eigh
from scipy.stats import norm
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.utils import check_random_state

from ..base import seed_of_bins
from ._permutations import cell_sums
from ._views import FREQUENCIES, TestResult, smallest_shift, unit_total, waves

#: No test of Y ⊥ B | X if the features explain more than 1 minus this share of the variance that bags seem to add.
LEAST_LEFT = 0.6


def embed(X, rng, n_components=30):
    """Standardized columns or their first principal components, with Fourier features of them; the variance is 1."""
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    if Z.shape[1] > n_components:
        Z = Z @ eigh(Z.T @ Z)[1][:, -n_components:]
    return np.hstack([unit_total(Z), unit_total(waves(Z, FREQUENCIES, rng))])


def out_of_fold(fit, target, n_folds, rng):
    """Predictions for each instance, shape of ``target``, by ``fit(train, test)``, which has not seen it."""
    folds, predicted = rng.permutation(len(target)) % n_folds, np.empty(target.shape)
    for fold in range(n_folds):
        test = folds == fold
        predicted[test] = fit(np.flatnonzero(~test), np.flatnonzero(test))
    return predicted


def add_trees(X, target, base, train, test, rng):
    """Predictions of the columns of ``target`` by ``base`` and boosted trees on what it leaves."""
    predicted, seed = base[test].copy(), seed_of_bins(len(train), rng)
    for column in range(target.shape[1]):
        trees = HistGradientBoostingRegressor(
            learning_rate=0.15, max_iter=30, max_leaf_nodes=8, l2_regularization=5.0,
            max_bins=63, early_stopping=False, random_state=seed,
        )  # fmt: skip
        trees.fit(X[train], (target - base)[train, column])
        predicted[:, column] += trees.predict(X[test])
    return predicted


def class_probabilities(X, features, onehot, rng, n_folds=5):
    """Probabilities of the classes out of fold: logistic regression, then boosted trees on what it leaves."""
    smooth = features * np.sqrt(features.shape[1] / 2)  # features of variance 1

    def fit(train, test):
        base, codes = np.zeros(onehot.shape), onehot[train].argmax(axis=1)
        if len(np.unique(codes)) == 1:
            return np.tile(onehot[train[0]], (len(test), 1))
        model = LogisticRegression(solver="newton-cholesky", max_iter=50)
        model.fit(smooth[train], codes)
        base[:, model.classes_] = model.predict_proba(smooth)
        if base.shape[1] > 2:
            return add_trees(X, onehot, base, train, test, rng)
        second = add_trees(X, onehot[:, 1:], base[:, 1:], train, test, rng)
        return np.hstack([1 - second, second])

    P = np.clip(out_of_fold(fit, onehot, n_folds, rng), 1e-3, None)
    return P / P.sum(axis=1, keepdims=True)


def conditional_mean(X, features, target, rng, n_folds=3):
    """Mean of the columns given the features out of fold: ridge, then boosted trees on what it leaves."""
    smooth = features * np.sqrt(features.shape[1] / 2)

    def fit(train, test):
        base = Ridge().fit(smooth[train], target[train]).predict(smooth)
        return add_trees(X, target, base.reshape(target.shape), train, test, rng)

    return out_of_fold(fit, target, n_folds, rng)


def label_shifts(residuals, basis, bags, n_bags, ridge=10.0):
    r"""Shift of the labels by each bag: :math:`\beta_b = (S_b^\top S_b + \kappa I)^{-1} S_b^\top e_b` minus their mean.

    Ridge regression of the residuals of its instances on a few features; shape (n_bags, n_basis, n_columns).
    """
    J, size = basis.shape[1], np.bincount(bags, minlength=n_bags)
    outer = (basis[:, :, None] * basis[:, None, :]).reshape(len(basis), -1)
    gram = cell_sums(outer, bags, n_bags).reshape(n_bags, J, J)
    cross = (basis[:, :, None] * residuals[:, None, :]).reshape(len(basis), -1)
    right = cell_sums(cross, bags, n_bags).reshape(n_bags, J, -1)
    beta = np.linalg.solve(gram + ridge * np.eye(J), right)
    return beta - np.tensordot(size / size.sum(), beta, 1)


def effect_basis(features, scores):
    """Features along which bags may differ: 1, the predicted probabilities and five leading features."""
    leading = features @ eigh(features.T @ features)[1][:, -5:]
    basis = np.hstack([scores, leading])
    basis = (basis - basis.mean(axis=0)) / np.maximum(basis.std(axis=0), 1e-12)
    return np.hstack([np.ones((len(basis), 1)), basis])


def label_test(X, labels, bags, alpha=0.05, random_state=None):
    r"""Test whether the bag predicts the label beyond the features.

    With residuals :math:`e = y - \hat P(y \mid x)` out of fold, learn on one half of the instances what the bag adds,
    :math:`f(x, b)` (`label_shifts`), and on the other half correlate the residuals with :math:`f` less its mean given
    the features, :math:`z = e\,(f - \hat{\mathbb E}[f \mid x])`: under Y ⊥ B | X its mean is 0, and
    :math:`\sqrt n\, \bar z / \operatorname{sd}(z)` is standard normal (lundborg2024), up to the product of the
    errors of the two models. The halves then change roles, and the mean of the two statistics, whose variance is at
    most 1, is compared with the normal distribution, one-sided.

    Where the features tell the bag, :math:`f - \hat{\mathbb E}[f \mid x]` is little more than the error of its model,
    and so might the rest of the statistic be: if less than `LEAST_LEFT` of the variance of :math:`f` is left, there
    is no test.

    Parameters
    ----------
    X : ndarray, shape (n_instances, n_features)
        Normal scores, say; no column is constant.
    labels : ndarray of int, shape (n_instances,)
        Codes of the classes.
    bags : ndarray of int, shape (n_instances,)
    alpha : float, default 0.05
        For the smallest shift that would be found.
    random_state : int, RandomState or None

    Returns
    -------
    TestResult
        NaN, with a note, with fewer than 50 instances, one class, one bag, or a bag that the features tell.
    """
    rng, onehot = check_random_state(random_state), np.eye(labels.max() + 1)[labels]
    if len(X) < 50 or min(len(np.unique(labels)), len(np.unique(bags))) < 2:
        return TestResult(
            np.nan, np.nan, note="fewer than 50 labels, 2 classes, 2 bags"
        )
    features = embed(X, rng)
    probabilities = class_probabilities(X, features, onehot, rng)
    # For two classes the second column suffices.
    keep = slice(1, None) if onehot.shape[1] == 2 else slice(None)
    residuals, scores = (onehot - probabilities)[:, keep], probabilities[:, 1:]
    basis = effect_basis(features, scores)
    half, statistics, left = rng.permutation(len(X)) % 2, [], []
    for side in (0, 1):
        learn, test = half != side, half == side
        beta = label_shifts(residuals[learn], basis[learn], bags[learn], bags.max() + 1)
        shift = np.einsum("ij,ijc->ic", basis[test], beta[bags[test]])
        # Within the half, because the residuals here depend on the other half's labels.
        own = shift - conditional_mean(X[test], features[test], shift, rng)
        left.append(np.square(own).sum() / max(np.square(shift).sum(), 1e-300))
        z = (residuals[test] * own).sum(axis=1)
        statistics.append(np.sqrt(len(z)) * z.mean() / max(z.std(), 1e-300))
    if np.mean(left) < LEAST_LEFT:
        return TestResult(np.nan, np.nan, note="the features tell the bag")
    statistic = float(np.mean(statistics))
    # Of half the instances; degrees of freedom: bags times columns of the basis.
    dof = (bags.max() + 1) * basis.shape[1]
    shift = smallest_shift(dof**-0.5, 2 * dof, len(X), alpha, n_views=1)
    return TestResult(statistic, float(norm.sf(statistic)), shift)
