r"""Tests of independence between features, label and bag: what `llpbook.diagnosis.diagnose` reports.

An instance has features X, a label Y and a bag B. Distributions of features are compared by their mean embeddings
:math:`\mathbb E\, \phi(X)`, :math:`\phi` being the standardised features and random Fourier features of them. With
labels, X and B, X and Y, X and B given Y, X and Y given B are tested by the energy of the embeddings between cells
(the bags, the classes, the bags within a class, the classes within a bag),

.. math:: T = \sum_g \sum_{k \in g} n_k \lVert m_k - m_g \rVert^2 ,

against its permutations within the groups :math:`g`. Y ⊥ B is a question about a table of counts; Y ⊥ B | X is asked of
a classifier that may see the bag. Without labels, X ⊥ B | Y is tested by `llpbook.diagnosis.affine_test`.

Chapter: ``book/diagnosis``. Sources: franco2023 (section 4.5, which leaves the tests open); rahimi2007 for the
features, anderson2001 for the permutations, lundborg2024 for Y ⊥ B | X.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.linalg import eigh
from scipy.spatial.distance import pdist
from scipy.stats import chi2, norm, random_table
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.utils import check_random_state

from ._lack_of_fit import affine_test


class TestResult(NamedTuple):
    """A statistic and its p-value; NaN where the data cannot say anything."""

    statistic: float
    pvalue: float

    __test__ = False  # not for pytest to collect


# --- features ------------------------------------------------------------------------------------------------


def embed(X, n_components=30, n_frequencies=30, random_state=None):
    r"""Features whose means tell distributions apart: linear and Fourier.

    The columns, standardised, or their first principal components, :math:`z`, and :math:`\cos \omega_j^\top z`,
    :math:`\sin \omega_j^\top z` with :math:`\omega_j \sim N(0, s^{-2} I)`, :math:`s` the median distance between
    instances (:eq:`eq-diag-embedding`). Each of the two blocks is centred and scaled to a total variance of 1.

    Parameters
    ----------
    X : ndarray, shape (n_instances, n_features)
    n_components : int, default 30
        Most linear features.
    n_frequencies : int, default 30
        Each gives two features.
    random_state : int, RandomState or None

    Returns
    -------
    ndarray, shape (n_instances, at most n_components + 2 * n_frequencies)

    Raises
    ------
    ValueError
        If every column of X is constant.
    """
    rng, spread = check_random_state(random_state), np.ptp(X, axis=0)
    if not spread.any():
        raise ValueError("X has no column with two values: nothing can depend on it")
    Z = X[:, spread > 0]
    Z = (Z - Z.mean(axis=0)) / Z.std(axis=0)
    if Z.shape[1] > n_components:
        Z = Z @ eigh(Z.T @ Z)[1][:, -n_components:]
    some = Z[rng.permutation(len(Z))[:500]]
    distances = pdist(some)
    scale = np.median(distances[distances > 0]) if distances.any() else 1.0
    angles = Z @ (rng.normal(size=(Z.shape[1], n_frequencies)) / scale)
    # eq: eq-diag-embedding
    waves = np.hstack([np.cos(angles), np.sin(angles)])
    blocks = [block - block.mean(axis=0) for block in (Z, waves)]
    return np.hstack([b / np.sqrt(np.square(b).sum() / len(b)) for b in blocks])


def cell_codes(*keys):
    """Number the combinations of keys that occur.

    Parameters
    ----------
    *keys : array-like, shape (n_instances,)

    Returns
    -------
    ndarray of int, shape (n_instances,)
        0, 1, …, sorted by the first key, then the second, ….
    """
    return pd.MultiIndex.from_arrays(keys).factorize(sort=True)[0]


def crosstab(rows, columns):
    """Counts of the pairs of two codes, shape (n_rows, n_columns)."""
    shape = rows.max() + 1, columns.max() + 1
    flat = np.bincount(rows * shape[1] + columns, minlength=shape[0] * shape[1])
    return flat.reshape(shape)


# --- permutations --------------------------------------------------------------------------------------------


def cell_sums(rows, cells, n_cells):
    """Sum the rows of each cell.

    Parameters
    ----------
    rows : ndarray, shape (n_instances, n_columns)
    cells : ndarray of int, shape (n_instances,)
    n_cells : int

    Returns
    -------
    ndarray, shape (n_cells, n_columns)
    """
    at = (cells, np.arange(len(cells)))
    return sp.csr_array((np.ones(len(cells)), at), shape=(n_cells, len(cells))) @ rows


def group_means(rows, groups):
    """The mean of the group of each instance, shape of ``rows``."""
    sizes = np.bincount(groups)
    return (cell_sums(rows, groups, len(sizes)) / sizes[:, None])[groups]


def between_energy(features, cells, groups):
    r"""Energy of the mean embeddings between the cells of a group, summed over groups.

    :math:`T = \sum_g \sum_{k \in g} n_k \lVert m_k - m_g \rVert^2`, :eq:`eq-diag-energy`.

    Parameters
    ----------
    features : ndarray, shape (n_instances, n_embedded)
    cells, groups : ndarray of int, shape (n_instances,)
        Codes 0, 1, …, each of which occurs; all instances of a cell are in one group.

    Returns
    -------
    float
    """
    sizes = np.bincount(cells)
    gaps = cell_sums(features - group_means(features, groups), cells, len(sizes))
    # eq: eq-diag-energy
    return float(np.square(gaps).sum(axis=1) @ (1 / sizes))


def permutation_test(
    features, cells, groups=None, n_permutations=199, random_state=None
):
    r"""Do embeddings differ between the cells of a group?

    Exact: under independence given the group, every permutation of instances within groups is as likely. The p-value
    is the rank of the energy among its permutations, :eq:`eq-diag-permutation`. Cost
    :math:`O(n_{\text{permutations}}\, n D)`.

    Parameters
    ----------
    features : ndarray, shape (n_instances, n_embedded)
    cells : ndarray of int, shape (n_instances,)
        Codes 0, 1, ….
    groups : ndarray of int, shape (n_instances,), optional
        What to condition on; one group if not given. All instances of a cell are in one group.
    n_permutations : int, default 199
    random_state : int, RandomState or None

    Returns
    -------
    TestResult
        NaN if no group has two cells.
    """
    rng = check_random_state(random_state)
    groups = np.zeros_like(cells) if groups is None else groups
    statistic = between_energy(features, cells, groups)
    if (pd.Series(cells).groupby(groups).nunique() < 2).all():
        return TestResult(statistic, np.nan)
    order = np.lexsort((cells, groups))
    starts = np.flatnonzero(np.diff(cells[order], prepend=-1))
    root = np.diff(np.append(starts, len(cells)))[:, None] ** -0.5
    # Centred in groups, so that only the sums over cells change; single precision halves the time.
    rows = (features - group_means(features, groups))[order].astype(np.float32)
    blocks = groups[order]

    def energy(index):
        sums = np.add.reduceat(rows[index], starts, axis=0) * root
        return float(np.vdot(sums, sums))

    observed, exceeding = energy(np.arange(len(rows))) * (1 - 1e-6), 0
    for _ in range(n_permutations):
        exceeding += energy(np.lexsort((rng.random(len(rows)), blocks))) >= observed
    # eq: eq-diag-permutation
    return TestResult(statistic, (1 + exceeding) / (1 + n_permutations))


def table_test(counts, n_draws=1999, random_state=None):
    r"""Do the shares of the columns differ between the rows of a table of counts?

    The statistic is :math:`G = 2 \sum_{kj} o_{kj} \log (o_{kj} / e_{kj})`, :eq:`eq-diag-g`. Where all expected counts
    are 5 or more, its p-value is that of :math:`\chi^2`; else it is the rank among random tables with these margins.

    Parameters
    ----------
    counts : ndarray of int, shape (n_rows, n_columns)
        Rows and columns without a count are left out.
    n_draws : int, default 1999
    random_state : int, RandomState or None

    Returns
    -------
    TestResult
        NaN if fewer than two rows or columns are left.
    """
    rng, counts = check_random_state(random_state), np.asarray(counts)
    counts = counts[counts.sum(axis=1) > 0][:, counts.sum(axis=0) > 0]
    if min(counts.shape) < 2:
        return TestResult(0.0, np.nan)
    margins = counts.sum(axis=1), counts.sum(axis=0)
    expected = np.outer(*margins) / counts.sum()

    def g(table):
        ratio = np.where(table > 0, table / expected, 1.0)
        # eq: eq-diag-g
        return 2 * (table * np.log(ratio)).sum(axis=(-2, -1))

    statistic = float(g(counts))
    if expected.min() >= 5:
        return TestResult(
            statistic,
            float(chi2.sf(statistic, (counts.shape[0] - 1) * (counts.shape[1] - 1))),
        )
    draws = random_table(*margins, seed=rng)
    block = max(1, 10**6 // counts.size)  # tables at a time, to bound the memory
    exceeding = sum(
        int((g(draws.rvs(min(block, n_draws - at))) >= statistic * (1 - 1e-9)).sum())
        for at in range(0, n_draws, block)
    )
    return TestResult(statistic, (1 + exceeding) / (1 + n_draws))


# --- the label and the bag, given the features ---------------------------------------------------------------


def out_of_fold(fit, target, n_folds, rng):
    """Predictions for each instance by a model that has not seen it.

    Parameters
    ----------
    fit : callable
        ``fit(train, test)`` with indices; returns predictions for ``test``.
    target : ndarray, shape (n_instances, n_columns)
        Only its shape is used.
    n_folds : int
    rng : RandomState

    Returns
    -------
    ndarray, shape of ``target``
    """
    folds, predicted = rng.permutation(len(target)) % n_folds, np.empty(target.shape)
    for fold in range(n_folds):
        test = folds == fold
        predicted[test] = fit(np.flatnonzero(~test), np.flatnonzero(test))
    return predicted


def add_trees(X, target, base, train, test):
    """Boosted trees on what a smooth model leaves of each column.

    Parameters
    ----------
    X : ndarray, shape (n_instances, n_features)
    target, base : ndarray, shape (n_instances, n_columns)
        What to predict, and what the smooth model predicts.
    train, test : ndarray of int

    Returns
    -------
    ndarray, shape (n_test, n_columns)
    """
    predicted = base[test].copy()
    for column in range(target.shape[1]):
        trees = HistGradientBoostingRegressor(
            learning_rate=0.15, max_iter=25, max_leaf_nodes=8, l2_regularization=5.0,
            max_bins=63, early_stopping=False,
        )  # fmt: skip
        trees.fit(X[train], (target - base)[train, column])
        predicted[:, column] += trees.predict(X[test])
    return predicted


def class_probabilities(X, features, onehot, rng, n_folds=5):
    r"""Probabilities of the classes given the features, out of fold.

    Logistic regression, then boosted trees on what it leaves.

    Parameters
    ----------
    X : ndarray, shape (n_instances, n_features)
    features : ndarray, shape (n_instances, n_embedded)
        See `embed`; the smooth part of the model is linear in them.
    onehot : ndarray, shape (n_instances, n_classes)
    rng : RandomState
    n_folds : int, default 5

    Returns
    -------
    ndarray, shape (n_instances, n_classes)
    """
    smooth = features * np.sqrt(features.shape[1] / 2)  # features of variance 1

    def fit(train, test):
        base, codes = np.zeros(onehot.shape), onehot[train].argmax(axis=1)
        if len(np.unique(codes)) == 1:
            return np.tile(onehot[train[0]], (len(test), 1))
        model = LogisticRegression(solver="newton-cholesky", max_iter=50)
        model.fit(smooth[train], codes)
        base[:, model.classes_] = model.predict_proba(smooth)
        if base.shape[1] > 2:
            return add_trees(X, onehot, base, train, test)
        second = add_trees(X, onehot[:, 1:], base[:, 1:], train, test)
        return np.hstack([1 - second, second])

    found = np.clip(out_of_fold(fit, onehot, n_folds, rng), 1e-3, None)
    return found / found.sum(axis=1, keepdims=True)


def conditional_mean(X, features, target, rng, n_folds=3):
    """Mean of the columns given the features, out of fold.

    Ridge regression, then boosted trees on what it leaves.

    Parameters
    ----------
    X : ndarray, shape (n_instances, n_features)
    features : ndarray, shape (n_instances, n_embedded)
    target : ndarray, shape (n_instances, n_columns)
    rng : RandomState
    n_folds : int, default 3

    Returns
    -------
    ndarray, shape of ``target``
    """
    smooth = features * np.sqrt(features.shape[1] / 2)

    def fit(train, test):
        base = Ridge().fit(smooth[train], target[train]).predict(smooth)
        return add_trees(X, target, base.reshape(target.shape), train, test)

    return out_of_fold(fit, target, n_folds, rng)


def bag_effects(residuals, basis, bags, n_bags, ridge=10.0):
    r"""How each bag shifts the labels.

    Ridge regression of the residuals of its instances on a few features.

    :math:`\beta_b = (S_b^\top S_b + \kappa I)^{-1} S_b^\top e_b`, less their mean over instances:
    :eq:`eq-diag-bag-effects`.

    Parameters
    ----------
    residuals : ndarray, shape (n_instances, n_columns)
    basis : ndarray, shape (n_instances, n_basis)
    bags : ndarray of int, shape (n_instances,)
    n_bags : int
    ridge : float, default 10.0
        In instances, where the basis has unit variance.

    Returns
    -------
    ndarray, shape (n_bags, n_basis, n_columns)
        0 for a bag without instances, before centring.
    """
    J, size = basis.shape[1], np.bincount(bags, minlength=n_bags)
    outer = (basis[:, :, None] * basis[:, None, :]).reshape(len(basis), -1)
    gram = cell_sums(outer, bags, n_bags).reshape(n_bags, J, J)
    cross = (basis[:, :, None] * residuals[:, None, :]).reshape(len(basis), -1)
    right = cell_sums(cross, bags, n_bags).reshape(n_bags, J, -1)
    beta = np.linalg.solve(gram + ridge * np.eye(J), right)
    # eq: eq-diag-bag-effects
    return beta - np.tensordot(size / size.sum(), beta, 1)


def effect_basis(features, scores):
    """Features along which bags may differ.

    The constant, the predicted probabilities and five leading features.

    Parameters
    ----------
    features : ndarray, shape (n_instances, n_embedded)
    scores : ndarray, shape (n_instances, n_scores)

    Returns
    -------
    ndarray, shape (n_instances, 1 + n_scores + 5)
        Columns of mean 0 and variance 1, after the first, which is 1.
    """
    leading = features @ eigh(features.T @ features)[1][:, -5:]
    basis = np.hstack([scores, leading])
    basis = (basis - basis.mean(axis=0)) / np.maximum(basis.std(axis=0), 1e-12)
    return np.hstack([np.ones((len(basis), 1)), basis])


def label_test(X, features, labels, bags, random_state=None):
    r"""Does the bag tell more about the label than the features do?

    With residuals :math:`e = y - \hat P(y \mid x)` out of fold, learn on one half of the instances what the bag adds,
    :math:`f(x, b)` (`bag_effects`), and on the other half correlate the residuals with :math:`f` less its mean given
    the features, :math:`z = e\,(f - \hat{\mathbb E}[f \mid x])`: under Y ⊥ B | X its mean is 0, and
    :math:`\sqrt n\, \bar z / \operatorname{sd}(z)` is standard normal (:eq:`eq-diag-label`), even where either model is
    somewhat wrong, as only the product of the two errors counts. The halves then change roles, and the mean of the two
    statistics, whose variance is at most 1, is compared with the normal distribution, one-sided.

    Parameters
    ----------
    X : ndarray, shape (n_instances, n_features)
    features : ndarray, shape (n_instances, n_embedded)
        See `embed`.
    labels : ndarray of int, shape (n_instances,)
        Codes of the classes.
    bags : ndarray of int, shape (n_instances,)
    random_state : int, RandomState or None

    Returns
    -------
    TestResult
        NaN with fewer than 50 instances, one class or one bag.
    """
    rng, onehot = check_random_state(random_state), np.eye(labels.max() + 1)[labels]
    if len(X) < 50 or min(len(np.unique(labels)), len(np.unique(bags))) < 2:
        return TestResult(np.nan, np.nan)
    probabilities = class_probabilities(X, features, onehot, rng)
    # For two classes the second column says it all.
    keep = slice(1, None) if onehot.shape[1] == 2 else slice(None)
    residuals, scores = (onehot - probabilities)[:, keep], probabilities[:, 1:]
    basis = effect_basis(features, scores)
    half, statistics = rng.permutation(len(X)) % 2, []
    for side in (0, 1):
        learn, test = half != side, half == side
        beta = bag_effects(residuals[learn], basis[learn], bags[learn], bags.max() + 1)
        shift = np.einsum("ij,ijc->ic", basis, beta[bags])
        shift -= conditional_mean(X, features, shift, rng)
        z = (residuals * shift)[test].sum(axis=1)
        statistics.append(np.sqrt(len(z)) * z.mean() / max(z.std(), 1e-300))
    statistic = float(np.mean(statistics))
    # eq: eq-diag-label
    return TestResult(statistic, float(norm.sf(statistic)))


# --- all of them --------------------------------------------------------------------------------------------


def proportion_tests(X, bags, proportions, exact, n_permutations, rng):
    """The three tests that need no labels.

    Parameters
    ----------
    X : ndarray, shape (n_instances, n_features)
    bags : ndarray of int, shape (n_instances,)
    proportions : ndarray, shape (n_bags, n_classes)
    exact : bool
        See `llpbook.diagnosis.affine_test`.
    n_permutations : int
    rng : RandomState

    Returns
    -------
    dict of str to (str, float, float)
        For each statement the name of the test, its statistic and its p-value.
    """
    features = embed(X, random_state=rng)
    sizes = np.bincount(bags, minlength=len(proportions))
    counts = np.round(sizes[:, None] * proportions).astype(int)
    cells = cell_codes(bags)
    return {
        "X_B": ("permutation of bags", *permutation_test(
            features, cells, None, n_permutations, rng)),
        "Y_B": ("G-test of the counts", *table_test(counts, random_state=rng)),
        "X_B|Y": ("affine bag means", *affine_test(
            features, bags, proportions, exact)[:2]),
    }  # fmt: skip


def label_tests(X, bags, labels, n_permutations, rng):
    """The tests of all six statements, with labels.

    Parameters
    ----------
    X : ndarray, shape (n_instances, n_features)
    bags, labels : ndarray of int, shape (n_instances,)
    n_permutations : int
    rng : RandomState

    Returns
    -------
    dict of str to (str, float, float)
        For each statement the name of the test, its statistic and its p-value.
    """
    features = embed(X, random_state=rng)
    b, y = (cell_codes(codes) for codes in (bags, labels))
    both = cell_codes(bags, labels)

    def permute(cells, groups=None):
        return permutation_test(features, cells, groups, n_permutations, rng)

    return {
        "X_Y": ("permutation of labels", *permute(y)),
        "X_B": ("permutation of bags", *permute(b)),
        "Y_B": ("G-test of the counts", *table_test(
            crosstab(b, y), random_state=rng)),
        "X_Y|B": ("permutation of labels within bags", *permute(both, b)),
        "X_B|Y": ("permutation of bags within classes", *permute(both, y)),
        "Y_B|X": ("held-out gain by the bag", *label_test(
            X, features, y, b, rng)),
    }  # fmt: skip
