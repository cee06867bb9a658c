"""A classifier fitted to guessed labels, its scores, and logistic regression fitted again and again, each time warm."""

from collections import deque

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import softmax
from sklearn.base import clone

from .._linear import gram_blocks
from ..base import (
    NotIdentifiableError,
    append_one,
    blocks,
    class_scores,
    expit,
    one_column,
)

#: Largest entry of the gradient at which `WarmFits` stops: two digits below the tolerance of the last fits.
WARM_TOL = 1e-10
#: A matrix of Newton's method is kept while a step leaves less than the first share of the gradient; above the second,
#: another solver takes over, unless the gradient is below `NEAR`, where rounding decides.
KEEP, FAIL, NEAR = 0.2, 0.9, 1e-8
#: Shares of a Newton step that are tried, and steps that correct the matrix.
RATES, STEPS = (1.0, 0.5, 0.25, 0.125), 12
#: The diagonal of a Newton matrix is larger by this share, and that of a weight without penalty is at least `TINY`, so
#: that it has a factor where features are collinear or all instances are far from the boundary.
REGULAR, TINY = 1e-10, 1e-6


def fit_to_labels(estimator, X, q):
    """The classifier, fitted to labels or to weights of labels.

    Parameters
    ----------
    estimator : classifier
        One with ``warm_start=True`` starts from its last fit, unless the classes have changed.
    X : ndarray or sparse array, shape (n_instances, n_features)
    q : ndarray, shape (n_instances,) or (n_instances, n_classes)
        Labels, or their weights: where an entry is neither 0 nor 1, an instance takes part with each of its labels,
        weighted.

    Returns
    -------
    classifier

    Raises
    ------
    NotIdentifiableError
        If there is one class only.
    """
    rows, y = (None, q.astype(int)) if q.ndim == 1 else np.nonzero(q)
    if (y == y[0]).all():
        raise NotIdentifiableError(
            "every instance gets the same label, from which nothing can be learned: one "
            "class is the largest of every bag alike (init='proportions' draws labels "
            "instead), or the counts of the other round to 0 in every bag"
        )
    if len(getattr(estimator, "classes_", ())) != len(np.unique(y)):
        estimator = clone(estimator)
    if len(y) == len(q):
        return estimator.fit(X, y)
    return estimator.fit(X[rows], y, sample_weight=q[rows, y])


class WarmFits:
    r"""Penalized logistic regression, fitted again and again to labels of which few change.

    It minimizes :math:`\frac1n \sum_i \log(1 + e^{\langle w, x_i \rangle}) - \langle t, w \rangle
    + \frac1{2n} \sum_j \lambda_j w_j^2`, and its like for several classes, from the last solution.
    The labels enter by :math:`t = X^\top y / n` only, so second derivatives that were computed for other labels still
    hold: BFGS steps correct the last Newton matrix, which is computed anew where a step is bad; a bad step of a new
    matrix is shortened. A matrix costs :math:`O(n d^2 + d^3)`, a step :math:`O(n d)`; for K classes, K^2 and K times
    that.

    Parameters
    ----------
    X : ndarray or sparse array, shape (n_instances, n_features)
    penalty : ndarray, shape (n_features,) or (n_classes * n_features,)
        The :math:`\lambda_j` of two classes, or of several, one class after the other, as all weights are.
    tol : float
        Stop if no entry of the gradient is larger.

    Attributes
    ----------
    w : ndarray, of the shape of penalty
    f : ndarray, shape (n_instances,) or (n_instances, n_classes)
        Log-odds, or scores of the classes.
    gap : float
        Largest entry of the gradient.
    """

    def __init__(self, X, penalty, *, tol=WARM_TOL):
        self.X, self.penalty, self.tol = X, penalty, tol
        self.factor, self.steps = None, deque(maxlen=STEPS)
        self.w = np.zeros(len(penalty))
        self.f, self.g = self._at(self.w)

    def __call__(self, target, fallback):
        """Scores of the next fit.

        Parameters
        ----------
        target : ndarray, of the shape of penalty
            The vector t.
        fallback : callable
            From weights to those of the minimum: a solver that does not fail where Newton steps are too long.

        Returns
        -------
        ndarray, of the shape of f
        """
        new = False  # whether the matrix is that of these weights
        while (largest := np.abs(self.g - target).max()) > self.tol:
            if self.factor is None:
                self.factor, new = newton_factor(self.f, self.X, self.penalty), True
                self.steps.clear()
            step, left = self._direction(target - self.g), np.inf
            for rate in RATES if new else RATES[:1]:
                f, g = self._at(self.w + rate * step)
                left = np.linalg.norm(g - target) / np.linalg.norm(self.g - target)
                if left < FAIL:
                    self._move(rate * step, f, g)
                    break
            else:
                if new:
                    if largest > NEAR:
                        self.w, self.factor = fallback(self.w), None
                        self.f, self.g = self._at(self.w)
                    break  # else these weights are as good as rounding allows
            if not left < KEEP:
                self.factor = None
            new = False
        self.gap = float(np.abs(self.g - target).max())
        return self.f

    def _move(self, step, f, g):
        change = g - self.g
        if (curve := change @ step) > 0:
            self.steps.append((step, change, curve))
        self.w, self.f, self.g = self.w + step, f, g

    def _at(self, w):
        """Scores, and the gradient where t is 0."""
        n, d = self.X.shape
        W, g = w.reshape(-1, d), self.penalty * w
        f = np.empty((n, len(W)))
        for rows, part in blocks(self.X):
            F = W @ part.T
            f[rows] = F.T
            if len(W) == 1:
                s = expit(F)
            else:  # a soft-max
                s = np.exp(F - F.max(axis=0))
                s /= s.sum(axis=0)
            g += (s @ part).ravel()
        return one_column(f), g / n

    def _direction(self, q):
        """The factor's step for a gradient -q, corrected by what the last steps did to the gradient (BFGS)."""
        along = []
        for step, change, curve in reversed(self.steps):
            along.append(step @ q / curve)
            q = q - along[-1] * change
        q = cho_solve(self.factor, q)
        for (step, change, curve), a in zip(self.steps, reversed(along), strict=True):
            q = q + (a - change @ q / curve) * step
        return q


def warm_logistic(model, X, K):
    """scikit-learn's logistic regression by `WarmFits`, fitted again and again.

    Parameters
    ----------
    model : LogisticRegression
        With ``warm_start=True``; its coefficients become those of the last fit. It does the fits in which Newton steps
        fail.
    X : ndarray or sparse array, shape (n_instances, n_features)
    K : int
        Number of classes; to labels that lack one, a clone is fitted.

    Returns
    -------
    callable
        From labels, an ndarray of int16 of shape (n_instances,), to log-odds, or scores of several classes.
    """
    Z, (n, d) = append_one(X), X.shape
    units = np.eye(K)[:, 1:] if K == 2 else np.eye(K)
    penalty = np.tile(np.append(np.full(d, 1 / model.C), 0.0), units.shape[1])
    fits, last = WarmFits(Z, penalty), np.zeros(n, np.int16)
    target = units[last].T @ Z / n

    def put(w):
        W = w.reshape(target.shape)
        model.classes_ = np.arange(K)
        model.coef_, model.intercept_ = W[:, :-1].copy(), W[:, -1].copy()

    def fit(y):
        def by_scikit_learn(w):
            put(w)
            model.fit(X, y.astype(int))
            return np.column_stack([model.coef_, model.intercept_]).ravel()

        if not np.bincount(y, minlength=K).all():
            return class_scores(fit_to_labels(clone(model), X, y), X, K)
        rows = np.flatnonzero(y != last)
        target[:] += (units[y[rows]] - units[last[rows]]).T @ Z[rows] / n
        last[:] = y
        f = fits(target.ravel(), by_scikit_learn)
        put(fits.w)
        return f

    return fit


def newton_factor(f, X, penalty):
    """Cholesky factor of the second derivatives at scores f."""
    s = softmax(f, axis=1) if f.ndim == 2 else expit(f)[:, None]
    H = gram_blocks(X, lambda a, b: s[:, a] * ((a == b) - s[:, b]), s.shape[1])
    H += np.diag(np.where(penalty > 0, penalty, TINY))
    H[np.diag_indices_from(H)] *= 1 + REGULAR
    return cho_factor(H / len(f))
