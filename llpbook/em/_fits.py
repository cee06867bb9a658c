"""A classifier fitted to guessed labels, its scores, and logistic regression fitted again and again, each time warm."""

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_factor, cho_solve
from sklearn.base import clone

from ..base import NotIdentifiableError

#: Largest entry of the gradient at which `WarmFits` stops: two digits below the tolerance of the last fits.
WARM_TOL = 1e-10
#: A matrix of Newton's method is kept while a step leaves less than the first share of the gradient; above the second,
#: scikit-learn's solver takes over.
KEEP, FAIL = 0.5, 0.9
#: Entries of a block of X that stays in the processor's cache while it is used twice.
CACHED = 2**17
#: The diagonal of a Newton matrix is larger by this share, that of the intercept by `TINY`, so that it has a factor
#: where features are collinear or all instances are far from the boundary.
REGULAR, TINY = 1e-10, 1e-6


def refuse_one_label(y):
    """Refuse labels that are all equal.

    Parameters
    ----------
    y : ndarray of int, shape (n_instances,)

    Raises
    ------
    NotIdentifiableError
        If there is one class only.
    """
    if (y == y[0]).all():
        raise NotIdentifiableError(
            "every instance gets the same label, from which nothing can be learned: one "
            "class is the largest of every bag alike (init='proportions' draws labels "
            "instead), or the counts of the other round to 0 in every bag"
        )


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


class WarmFits:
    """Logistic regression of two classes, fitted again and again to labels of which few change.

    Newton's method from the last fit, whose matrix is kept while its steps are good; its factor costs
    :math:`O(n d^2 + d^3)`, a step :math:`O(n d)`. Where a step with a new matrix is bad, scikit-learn's solver, which
    searches along the step, does the fit.

    Parameters
    ----------
    model : LogisticRegression
        With ``warm_start=True``; its coefficients are those of the last fit.
    X : ndarray or sparse array, shape (n_instances, n_features)
    """

    def __init__(self, model, X):
        self.model, self.X, self.w = model, X, np.zeros(X.shape[1] + 1)
        self.y = self.factor = None

    def __call__(self, y):
        """Log-odds of the fit to labels 0 and 1.

        Parameters
        ----------
        y : ndarray of int8, shape (n_instances,)

        Returns
        -------
        ndarray, shape (n_instances,)
        """
        f, g = self._move_to(y)
        new = False  # whether the matrix is that of these weights
        while (size := np.abs(g).max()) > WARM_TOL:
            if self.factor is None:
                self.factor, new = newton_factor(f, self.X, self.model.C), True
            w = self.w - cho_solve(self.factor, g)
            f_w, g_w = gradient(w, self.X, y, self.model.C)
            left = np.abs(g_w).max() / size
            if new and not left < FAIL:
                if size > self.model.tol:
                    f, g = self._start_anew()
                break  # else these weights are as good as rounding allows
            if left < 1:
                self.w, f, g = w, f_w, g_w
            if not left < KEEP:
                self.factor = None
            new = False
        self.f, self.g = f, g
        self._hand_over()
        return f

    def _move_to(self, y):
        """Log-odds and gradient at the last weights for new labels, of which most are the last ones."""
        last, self.y = self.y, y
        if last is None:
            refuse_one_label(y)
            return gradient(self.w, self.X, y, self.model.C)
        rows = np.flatnonzero(y != last)
        change = (last[rows] - y[rows]) / len(y)
        return self.f, self.g + np.append(self.X[rows].T @ change, change.sum())

    def _start_anew(self):
        """scikit-learn's fit."""
        self._hand_over()
        self.model.fit(self.X, self.y.astype(int))
        self.w = np.append(self.model.coef_[0], self.model.intercept_)
        self.factor = None
        return gradient(self.w, self.X, self.y, self.model.C)

    def _hand_over(self):
        """To the model, for its next fit."""
        self.model.classes_ = np.array([0, 1])
        self.model.coef_ = self.w[None, :-1].copy()
        self.model.intercept_ = self.w[-1:].copy()


def blocks(X):
    """Rows of a dense X in blocks; a sparse one whole."""
    dense = isinstance(X, np.ndarray)
    step = max(1, CACHED // X.shape[1]) if dense else X.shape[0]
    for start in range(0, X.shape[0], step):
        rows = slice(start, start + step)
        yield rows, X[rows] if dense else X


def gradient(w, X, y, C):
    """Log-odds, and the gradient of the mean loss plus penalty; the last weight is the intercept."""
    f, g = np.empty(len(y)), np.append(w[:-1] / C, 0.0)
    for rows, part in blocks(X):
        f[rows] = part @ w[:-1] + w[-1]
        residual = logistic(f[rows]) - y[rows]
        g[:-1] += part.T @ residual
        g[-1] += residual.sum()
    return f, g / len(y)


def newton_factor(f, X, C):
    """Cholesky factor of the second derivatives at log-odds f."""
    d = X.shape[1]
    H = np.diag(np.append(np.full(d, 1 / C), TINY))
    for rows, part in blocks(X):
        s = logistic(f[rows])
        v = s * (1 - s)
        if sp.issparse(X):
            H[:d, :d] += (part.T @ sp.diags_array(v) @ part).toarray()
        else:
            H[:d, :d] += (part.T * v) @ part
        H[d, :d] += part.T @ v
        H[d, d] += v.sum()
    H[:d, d] = H[d, :d]
    H[np.diag_indices_from(H)] *= 1 + REGULAR
    return cho_factor(H / len(f))


def logistic(f):
    """`scipy.special.expit` with an absolute error of 1e-16, three times as fast."""
    return 0.5 + 0.5 * np.tanh(0.5 * f)
