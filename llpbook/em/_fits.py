"""A classifier fitted to guessed labels, its scores, and logistic regression fitted again and again, each time warm."""

from collections import deque

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.base import clone

from ..base import NotIdentifiableError, append_one, blocks, expit, weighted_gram

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
    refuse_one_label(y)
    if len(getattr(estimator, "classes_", ())) != len(np.unique(y)):
        estimator = clone(estimator)
    if len(y) == len(q):
        return estimator.fit(X, y)
    return estimator.fit(X[rows], y, sample_weight=q[rows, y])


def refuse_one_label(y):
    """NotIdentifiableError if all labels are equal."""
    if (y == y[0]).all():
        raise NotIdentifiableError(
            "every instance gets the same label, from which nothing can be learned: one "
            "class is the largest of every bag alike (init='proportions' draws labels "
            "instead), or the counts of the other round to 0 in every bag"
        )


class WarmFits:
    r"""Penalized logistic regression of two classes, fitted again and again to labels of which few change.

    It minimizes :math:`\frac1n \sum_i \log(1 + e^{\langle w, x_i \rangle}) - \langle t, w \rangle
    + \frac1{2n} \sum_j \lambda_j w_j^2` from the nearer of the last two solutions. The labels enter by
    :math:`t = X^\top y / n` only, so second derivatives that were computed for other labels still hold: BFGS steps
    correct the last Newton matrix, which is computed anew where a step is bad; a bad step of a new matrix is shortened.
    A matrix costs :math:`O(n d^2 + d^3)`, a step :math:`O(n d)`.

    Parameters
    ----------
    X : ndarray or sparse array, shape (n_instances, n_features)
    penalty : ndarray, shape (n_features,)
        The :math:`\lambda_j`.
    tol : float
        Stop if no entry of the gradient is larger.

    Attributes
    ----------
    w : ndarray, shape (n_features,)
    f : ndarray, shape (n_instances,)
        Log-odds.
    gap : float
        Largest entry of the gradient.
    """

    def __init__(self, X, penalty, *, tol=WARM_TOL):
        self.X, self.penalty, self.tol = X, penalty, tol
        self.factor, self.steps = None, deque(maxlen=STEPS)
        self.w = np.zeros(X.shape[1])
        self.f, self.g = self._at(self.w)
        self.before = self.w, self.f, self.g

    def __call__(self, target, fallback):
        """Log-odds of the next fit.

        Parameters
        ----------
        target : ndarray, shape (n_features,)
            The vector t.
        fallback : callable
            From weights to those of the minimum: a solver that does not fail where Newton steps are too long.

        Returns
        -------
        ndarray, shape (n_instances,)
        """
        self._start(target)
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

    def _start(self, target):
        """At the last solution or at the one before: labels may swing between two sides."""
        last = self.w, self.f, self.g
        if np.linalg.norm(self.before[2] - target) < np.linalg.norm(self.g - target):
            (self.w, self.f, self.g), self.factor = self.before, None
        self.before = last

    def _move(self, step, f, g):
        change = g - self.g
        if (curve := change @ step) > 0:
            self.steps.append((step, change, curve))
        self.w, self.f, self.g = self.w + step, f, g

    def _at(self, w):
        """Log-odds, and the gradient where t is 0."""
        f, g = np.empty(self.X.shape[0]), self.penalty * w
        for rows, part in blocks(self.X):
            f[rows] = part @ w
            g += part.T @ expit(f[rows])
        return f, g / len(f)

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


def warm_logistic(model, X):
    """scikit-learn's logistic regression of two classes by `WarmFits`, fitted again and again.

    Parameters
    ----------
    model : LogisticRegression
        With ``warm_start=True``; its coefficients become those of the last fit. It does the fits in which Newton steps
        fail.
    X : ndarray or sparse array, shape (n_instances, n_features)

    Returns
    -------
    callable
        From labels, an ndarray of int8 of shape (n_instances,), to log-odds.
    """
    Z, (n, d) = append_one(X), X.shape
    fits = WarmFits(Z, np.append(np.full(d, 1 / model.C), 0.0))
    last, target = np.zeros(n, np.int8), np.zeros(d + 1)

    def put(w):
        model.classes_ = np.array([0, 1])
        model.coef_, model.intercept_ = w[None, :-1].copy(), w[-1:].copy()

    def fit(y):
        def by_scikit_learn(w):
            put(w)
            model.fit(X, y.astype(int))
            return np.append(model.coef_[0], model.intercept_)

        refuse_one_label(y)
        rows = np.flatnonzero(y != last)
        target[:] += Z[rows].T @ (y[rows] - last[rows]) / n
        last[:] = y
        f = fits(target, by_scikit_learn)
        put(fits.w)
        return f

    return fit


def newton_factor(f, X, penalty):
    """Cholesky factor of the second derivatives at log-odds f."""
    s = expit(f)
    H = weighted_gram(X, s * (1 - s)) + np.diag(np.where(penalty > 0, penalty, TINY))
    H[np.diag_indices_from(H)] *= 1 + REGULAR
    return cho_factor(H / len(f))
