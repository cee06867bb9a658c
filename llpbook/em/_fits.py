"""A classifier fitted to guessed labels, its scores, and logistic regression fitted again and again, each time warm."""

from collections import deque
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
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

#: Largest entry of the gradient before the last step of `WarmFits`: the tolerance of the last fits, which that step
#: usually lowers by a factor of thirty.
WARM_TOL = 1e-8
#: A matrix of Newton's method is kept while a step leaves less than the first share of the gradient; above the second,
#: another solver takes over, unless the gradient is below `NEAR`, where rounding decides.
KEEP, FAIL, NEAR = 0.2, 0.9, 1e-8
#: Shares of a Newton step that are tried, and steps that correct the matrix.
RATES, STEPS = (1.0, 0.5, 0.25, 0.125), 12
#: The diagonal of a Newton matrix is larger by this share, and that of a weight without penalty is at least `TINY`, so
#: that it has a factor where features are collinear or all instances are far from the boundary.
REGULAR, TINY = 1e-10, 1e-6
#: Entries of X above which the changes by a step are computed in single precision.
LIGHT = 500_000


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


class Place(NamedTuple):
    """Weights, and what `WarmFits` computed there.

    Attributes
    ----------
    w : ndarray, shape (n_rows * n_features,)
    f, s : ndarray, shape (n_rows, n_instances)
        Scores and probabilities.
    g : ndarray, of the shape of w
        Gradient of the objective where t is 0.
    """

    w: np.ndarray
    f: np.ndarray
    s: np.ndarray
    g: np.ndarray


class WarmFits:
    r"""Penalized logistic regression, fitted again and again to labels of which few change.

    It minimizes :math:`\frac1n \sum_i \log(1 + e^{\langle w, x_i \rangle}) - \langle t, w \rangle
    + \frac1{2n} \sum_j \lambda_j w_j^2`, and its like for several classes, from the last solution.
    The labels enter by :math:`t = X^\top y / n` only, so second derivatives that were computed for other labels still
    hold: BFGS steps correct the last Newton matrix, which is computed anew where a step is bad; a bad step of a new
    matrix is shortened. The last step, from a gradient below ``tol``, is taken without computing the gradient again.

    A matrix costs :math:`O(n d^2 + d^3)`, a step :math:`O(n d)`; for K classes, K^2 and K times that. If X is large,
    what a step changes is computed in single precision: steps are short, so their rounding errors are far below
    ``tol``. The first step of a new matrix, which may be long, is computed in double precision.

    Parameters
    ----------
    X : ndarray or sparse array, shape (n_instances, n_features)
    penalty : ndarray, shape (n_features,) or (n_classes * n_features,)
        The :math:`\lambda_j` of two classes, or of several, one class after the other, as all weights are.
    tol : float
        Bound on the entries of the gradient before the last step.

    Attributes
    ----------
    w : ndarray, of the shape of penalty
        After the last step.
    """

    def __init__(self, X, penalty, *, tol=WARM_TOL):
        self.X, self.penalty, self.tol = X, penalty, tol
        self.factor, self.steps, self.light = None, deque(maxlen=STEPS), None
        if isinstance(X, np.ndarray) and X.size > LIGHT:
            self.light = light_blocks(X)
        self.here = self._at(np.zeros(len(penalty)))

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
        ndarray, shape (n_instances,) or (n_instances, n_classes)
            Log-odds, or scores of the classes.
        """
        self.target, step = target.copy(), np.zeros_like(target)
        while (largest := np.abs(self.here.g - target).max()) > self.tol:
            if new := self.factor is None:
                self.factor = newton_factor(self.here.s, self.X, self.penalty)
                self.steps.clear()
            left = self._descend(target, new)
            if new and left >= FAIL:
                if largest > NEAR:
                    self.here, self.factor = self._at(fallback(self.here.w)), None
                break  # else these weights are as good as rounding allows
            if left >= KEEP:
                self.factor = None
        else:
            if self.factor is not None:
                step = corrected_step(self.factor, self.steps, target - self.here.g)
        self.w = self.here.w + step
        return one_column(np.asarray((self.here.f + self._along(step)).T, order="C"))

    def gap(self):
        """Largest entry of the gradient after the last step."""
        return float(np.abs(self._at(self.w).g - self.target).max())

    def _descend(self, target, new):
        """A step, or the first good part of it if the matrix is new; returns the share of the gradient that is left."""
        down, left = target - self.here.g, np.inf
        step = corrected_step(self.factor, self.steps, down)
        for rate in RATES if new else RATES[:1]:
            w = self.here.w + rate * step
            there = self._at(w) if new or self.light is None else self._near(w)
            left = np.linalg.norm(there.g - target) / np.linalg.norm(down)
            if left < FAIL:
                step, change = there.w - self.here.w, there.g - self.here.g
                if (curve := change @ step) > 0:
                    self.steps.append((step, change, curve))
                self.here = there
                return left
        return np.inf

    def _at(self, w):
        """The `Place` of some weights."""
        n, d = self.X.shape
        W, g = w.reshape(-1, d), self.penalty * w
        f, s = np.empty((len(W), n)), np.empty((len(W), n))
        for rows, part in blocks(self.X):
            f[:, rows] = W @ part.T
            s[:, rows] = chances(f[:, rows])
            g += (s[:, rows] @ part).ravel()
        return Place(w, f, s, g / n)

    def _near(self, w):
        """The `Place` of weights near the last ones; the differences are computed in single precision."""
        _, f, s, g = self.here
        step = w - self.here.w
        W = step.reshape(len(f), -1).astype(np.float32)
        new_f, new_s, change = np.empty_like(f), np.empty_like(s), np.zeros(W.shape)
        for rows, part in self.light:
            new_f[:, rows] = f[:, rows] + W @ part
            new_s[:, rows] = chances(new_f[:, rows])
            change += (new_s[:, rows] - s[:, rows]).astype(np.float32) @ part.T
        change = (change.ravel() + self.penalty * step) / f.shape[1]
        return Place(w, new_f, new_s, g + change)

    def _along(self, step):
        """Change of the scores by a step, shape (n_rows, n_instances)."""
        W = step.reshape(len(self.here.f), -1)
        if self.light is None:
            return W @ self.X.T
        return np.hstack([W.astype(np.float32) @ part for _, part in self.light])


def corrected_step(factor, steps, q):
    """The factor's step for a gradient -q, corrected by what the last steps did to the gradient (BFGS)."""
    along = []
    for step, change, curve in reversed(steps):
        along.append(step @ q / curve)
        q = q - along[-1] * change
    q = cho_solve(factor, q)
    for (step, change, curve), a in zip(steps, reversed(along), strict=True):
        q = q + (a - change @ q / curve) * step
    return q


def light_blocks(X):
    """Pairs of a slice and the rows of X in it, as columns and in single precision."""
    parts = ((rows, part.astype(np.float32)) for rows, part in blocks(X))
    return [(rows, np.asarray(part.T, order="C")) for rows, part in parts]


def chances(scores):
    """Probabilities of scores, shape (1, n), or of the classes, shape (n_classes, n)."""
    if len(scores) == 1:
        return expit(scores)
    s = np.exp(scores - scores.max(axis=0))
    s /= s.sum(axis=0)
    return s


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


def newton_factor(s, X, penalty):
    """Cholesky factor of the second derivatives for probabilities s, shape (n_rows, n_instances)."""
    H = gram_blocks(X, lambda a, b: s[a] * ((a == b) - s[b]), len(s))
    H += np.diag(np.where(penalty > 0, penalty, TINY))
    H[np.diag_indices_from(H)] *= 1 + REGULAR
    return cho_factor(H / s.shape[1])
