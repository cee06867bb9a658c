r"""MeanMap: class means from bag means, then a classifier that needs nothing else of the labels.

If instances do not depend on the bag given the class, each bag mean is a mixture of the class means with the label
proportions as weights, :math:`S X = \Pi M`. Solve for the class means :math:`M`, form the mean operator
:math:`\hat\mu`, which is all that the likelihood of an exponential family knows of the labels, and minimise

.. math:: \sum_i \log \sum_y \exp \langle \phi(x_i, y), \theta \rangle - n \langle \hat\mu, \theta \rangle
          + \tfrac{\lambda}{2} \lVert \theta \rVert^2 .

Chapter: ``book/mean_map``. Sources: quadrianto2009; grid and protocol of yu2013 (section 6.2).
"""

from numbers import Real

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import minimize as scipy_minimize
from scipy.special import logsumexp, softmax
from sklearn.utils._param_validation import Interval, StrOptions

from ._kernels import gram_matrix, kernel_coefficient
from .base import (
    LLPClassifier,
    NotIdentifiableError,
    absorb_labels,
    append_one,
    check_bag_weights,
    probabilities,
    warn_if_short,
)


def class_means(bag_means, proportions, weights):
    r"""Weighted least-squares solution of bag means = proportions times class means.

    :math:`M = (\Pi^\top W \Pi)^{-1} \Pi^\top W S X`, equation :eq:`eq-mean-map-class-means`.

    Parameters
    ----------
    bag_means : ndarray, shape (n_bags, n_features)
    proportions : ndarray, shape (n_bags, n_classes)
    weights : ndarray, shape (n_bags,)
        Weight of each bag, 0 for one to leave out.

    Returns
    -------
    ndarray, shape (n_classes, n_features)

    Raises
    ------
    NotIdentifiableError
        If the weighted proportions have a rank below ``n_classes``.
    """
    root = np.sqrt(weights / weights.max())[:, None]
    # eq: eq-mean-map-class-means
    means, _, rank, _ = np.linalg.lstsq(
        root * proportions, root * bag_means, rcond=1e-8
    )
    n_classes = proportions.shape[1]
    if rank < n_classes:
        raise NotIdentifiableError(
            f"proportions has rank {rank} over the bags in use, which cannot tell {n_classes} class means apart: "
            "shares must differ between bags, and every class must occur"
        )
    return means


def mean_operator(prior, means):
    r"""The mean of the features of instance and label together.

    :math:`\hat\mu = \eta\, m_+ - (1 - \eta)\, m_-` for two classes (equation :eq:`eq-mean-map-operator`), one row
    :math:`\eta_y m_y` a class for more (equation :eq:`eq-mean-map-operator-multi`).

    Parameters
    ----------
    prior : ndarray, shape (n_classes,)
    means : ndarray, shape (n_classes, n_features)

    Returns
    -------
    ndarray, shape (1, n_features) or (n_classes, n_features)
    """
    if len(prior) == 2:
        # eq: eq-mean-map-operator
        return (prior[1] * means[1] - prior[0] * means[0])[None, :]
    # eq: eq-mean-map-operator-multi
    return prior[:, None] * means


def binary_objective(w, X, mu, lam):
    r"""Objective of two classes and its gradient, per instance.

    :math:`\frac1n \sum_i \log(2 \cosh \langle w, x_i \rangle) - \langle \hat\mu, w \rangle
    + \frac{\lambda}{2n} \lVert w \rVert^2`, equations :eq:`eq-mean-map-binary` and :eq:`eq-mean-map-gradient`.

    Parameters
    ----------
    w : ndarray, shape (n_features,)
    X : ndarray or sparse array, shape (n_instances, n_features)
    mu : ndarray, shape (1, n_features)
    lam : float

    Returns
    -------
    value : float
    gradient : ndarray, shape (n_features,)
    """
    n, f = X.shape[0], X @ w
    size = np.abs(f)
    log_partition = (
        size.sum() + np.log1p(np.exp(-2 * size)).sum()
    )  # log(2 cosh f), without overflow
    # eq: eq-mean-map-binary
    value = log_partition / n - mu[0] @ w + lam / (2 * n) * w @ w
    # eq: eq-mean-map-gradient
    return value, X.T @ np.tanh(f) / n - mu[0] + lam / n * w


def binary_hessian(w, X, mu, lam):
    r"""Hessian of `binary_objective`.

    Equation :eq:`eq-mean-map-hessian`.

    Parameters
    ----------
    w, X, mu, lam
        As for `binary_objective`.

    Returns
    -------
    ndarray, shape (n_features, n_features)
        :math:`\frac1n \sum_i \operatorname{sech}^2(\langle w, x_i \rangle)\, x_i x_i^\top + \frac{\lambda}{n} I`.
    """
    n, d = X.shape
    root = (
        1 / np.cosh(np.clip(X @ w, -300, 300))[:, None]
    )  # square root of the curvature sech²
    half = X * root if isinstance(X, np.ndarray) else X.multiply(root).tocsr()
    gram = half.T @ half if isinstance(X, np.ndarray) else (half.T @ half).toarray()
    # eq: eq-mean-map-hessian
    return gram / n + lam / n * np.eye(d)


def softmax_objective(theta, X, mu, lam):
    r"""Objective of several classes and its gradient, per instance.

    Equation :eq:`eq-mean-map-softmax`.

    Parameters
    ----------
    theta : ndarray, shape (n_classes * n_features,)
        One row of weights a class, flattened.
    X : ndarray or sparse array, shape (n_instances, n_features)
    mu : ndarray, shape (n_classes, n_features)
    lam : float

    Returns
    -------
    value : float
    gradient : ndarray, shape (n_classes * n_features,)
    """
    n, rows = X.shape[0], theta.reshape(mu.shape)
    scores = X @ rows.T
    value = (
        logsumexp(scores, axis=1).sum() / n
        - np.sum(mu * rows)
        + lam / (2 * n) * theta @ theta
    )
    # eq: eq-mean-map-softmax
    gradient = (X.T @ softmax(scores, axis=1)).T / n - mu + lam / n * rows
    return value, gradient.ravel()


def minimise(X, mu, lam, max_iter=1000, tol=1e-6):
    r"""Weights that minimise the MeanMap objective.

    Two classes and at most 500 features: Newton's method in a trust region, then one plain Newton step. Else L-BFGS.

    Parameters
    ----------
    X : ndarray or sparse array, shape (n_instances, n_features)
    mu : ndarray, shape (1, n_features) or (n_classes, n_features)
    lam : float
    max_iter : int
    tol : float
        Bound on the entries of the gradient at the solution, relative to the norm of ``mu`` where this exceeds 1.

    Returns
    -------
    weights : ndarray, shape of ``mu``
        For two classes, the probability of the positive one is :math:`\sigma(2 \langle w, x \rangle)`.
    n_iter : int
    gap : float
        Largest entry of the gradient, on the scale of ``tol``.
    """
    scale = max(1.0, float(np.linalg.norm(mu)))
    objective = binary_objective if len(mu) == 1 else softmax_objective
    options = {"maxiter": max_iter, "gtol": tol * scale}
    if len(mu) == 1 and mu.size <= 500:
        method, hessian = "trust-exact", binary_hessian
        options["initial_trust_radius"] = 10.0
    else:
        method, hessian = "L-BFGS-B", None
        options |= {"ftol": 0.0, "maxcor": 20, "maxfun": 2 * max_iter}
    args = (X, mu, lam)
    found = scipy_minimize(
        objective,
        np.zeros(mu.size),
        args,
        method,
        jac=True,
        hess=hessian,
        options=options,
    )
    if hessian is not None and found.success:
        # Near the minimum the full Newton step is safe, and squares the error.
        found.x = found.x - np.linalg.solve(found.hess, found.jac)
    gap = np.abs(objective(found.x, *args)[1]).max() / scale
    return found.x.reshape(mu.shape), int(found.nit), float(gap)


def kernel_features(gram):
    r"""Features with the kernel as inner products, and the way back to instances.

    With :math:`K = U D U^\top`, the rows of :math:`Z = U D^{1/2}` reproduce the kernel; weights :math:`w` on them are
    :math:`\alpha = U D^{-1/2} w` on the instances: equation :eq:`eq-mean-map-kernel`.

    Parameters
    ----------
    gram : ndarray, shape (n_instances, n_instances)
        Symmetric and positive semi-definite.

    Returns
    -------
    features : ndarray, shape (n_instances, rank)
    to_dual : ndarray, shape (n_instances, rank)
        ``alpha = to_dual @ w``.
    """
    values, vectors = eigh(gram)
    keep = values > 1e-12 * values[-1] * len(values)
    root, vectors = np.sqrt(values[keep]), vectors[:, keep]
    # eq: eq-mean-map-kernel
    return vectors * root, vectors / root


class MeanMap(LLPClassifier):
    r"""MeanMap classifier (Quadrianto et al. 2009).

    Parameters
    ----------
    lam : float, default 1.0
        Weight of the penalty :math:`\frac{\lambda}{2} \lVert \theta \rVert^2`; the sum over instances is not averaged.
    kernel : {"linear", "rbf", "laplacian", "precomputed"} or callable, default "linear"
        Anything but "linear" costs :math:`O(n^3)` time and :math:`O(n^2)` memory.
    gamma : float or "scale", default "scale"
        Kernel coefficient; "scale" is 1 / (n_features * X.var()).
    fit_intercept : bool, default True
        Add the feature 1; its weight is penalised like the others.
    bag_weights : {"size", "uniform"} or array-like, shape (n_bags,), default "size"
        The matrix :math:`W` of the least squares: bag sizes, or 1 for each bag (the paper), or your own, as rows of
        ``proportions``: small where a proportion is uncertain, 0 to leave a bag out.
    max_iter : int, default 1000
    tol : float, default 1e-6
        Largest entry of the gradient of the objective per instance at which to stop.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
    coef_ : ndarray, shape (1, n_features) or (n_classes, n_features)
        Weights on the scale of log-odds, twice the :math:`w` of the paper for two classes. Not with a kernel.
    intercept_ : ndarray, shape (1,) or (n_classes,)
        0 with a kernel, which has the constant feature inside.
    dual_coef_ : ndarray, shape (n_instances, 1) or (n_instances, n_classes)
        Weights of the training instances, with a kernel only.
    class_prior_ : ndarray, shape (n_classes,)
    class_means_, mean_operator_ : ndarray
        As estimated, in the features used by the solver (the constant 1 last, with an intercept).
    n_iter_ : int

    Raises
    ------
    NotIdentifiableError
        If all bags in use have the same proportions, or fewer of them differ than there are classes.
    ValueError
        For malformed input; see `llpbook.base`.

    Notes
    -----
    Linear: :math:`O(n d^2)` an iteration for two classes, :math:`O(n d K)` for more. With bags of size 1 this is
    ridge-penalised logistic regression: scikit-learn's with ``C = 4 / lam`` (two classes), ``C = 1 / lam`` (more).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 200)
    >>> X = rng.normal(size=(200, 2)) + 3.0 * y[:, None]
    >>> bags = np.repeat(np.arange(40), 5)
    >>> p = np.bincount(bags, y) / 5
    >>> float(MeanMap().fit(X, bags, p).score(X, y)) > 0.9
    True
    """

    _accept_sparse = "csr"
    _parameter_constraints = {  # noqa: RUF012
        "lam": [Interval(Real, 0, None, closed="left")],
        "kernel": [StrOptions({"linear", "rbf", "laplacian", "precomputed"}), callable],
        "gamma": [StrOptions({"scale"}), Interval(Real, 0, None, closed="neither")],
        "fit_intercept": ["boolean"],
        "bag_weights": [StrOptions({"size", "uniform"}), "array-like"],
        "max_iter": [Interval(Real, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self, lam=1.0, kernel="linear", gamma="scale", fit_intercept=True,
        bag_weights="size", max_iter=1000, tol=1e-6,
    ):  # fmt: skip
        self.lam = lam
        self.kernel = kernel
        self.gamma = gamma
        self.fit_intercept = fit_intercept
        self.bag_weights = bag_weights
        self.max_iter = max_iter
        self.tol = tol

    def fit(self, X, bags, proportions, labels=None):
        """Estimate the class means from the bags, then the classifier from these.

        Parameters
        ----------
        X : array-like or sparse, shape (n_instances, n_features)
            With ``kernel="precomputed"`` the kernel matrix, shape (n_instances, n_instances).
        bags : array-like, shape (n_instances,)
        proportions : array-like, Series, dict or DataFrame
            See `llpbook.base.check_proportions`.
        labels : array-like, shape (n_instances,), optional
            Known labels, -1 for unknown: each class gets a pure bag of its labelled instances.

        Returns
        -------
        MeanMap
            This estimator, fitted.
        """
        data = absorb_labels(self._validate_fit(X, bags, proportions, labels))
        features, to_dual = self._features(data.X)
        weights = check_bag_weights(self.bag_weights, data)
        means = class_means(data.bag_means(features), data.proportions, weights)
        mu = mean_operator(data.class_prior, means)
        theta, n_iter, gap = minimise(features, mu, self.lam, self.max_iter, self.tol)
        warn_if_short(self, n_iter, gap, self.tol)
        self.class_prior_, self.class_means_ = data.class_prior, means
        self.mean_operator_, self.n_iter_ = mu, n_iter
        theta = 2 * theta if len(theta) == 1 else theta  # log-odds are 2 <w, x>
        if to_dual is None:
            d = data.X.shape[1]
            # The sum is over one column, or over none: 0 without an intercept.
            self.coef_, self.intercept_ = theta[:, :d], theta[:, d:].sum(axis=1)
        else:
            self.dual_coef_, self.intercept_ = to_dual @ theta.T, 0.0
        return self

    def _features(self, X):
        """What the solver works on, and for a kernel the way back to instances."""
        if self.kernel == "linear":
            return append_one(X) if self.fit_intercept else X, None
        self.X_fit_, self.gamma_ = X, kernel_coefficient(self.gamma, X)
        return kernel_features(self._gram(X))

    def _gram(self, X):
        """Kernel of X and the training instances, plus 1 for an intercept."""
        gram = gram_matrix(X, self.X_fit_, self.kernel, self.gamma_)
        return gram + self.fit_intercept

    def decision_function(self, X):
        """Log-odds of the positive class, or one score a class.

        Parameters
        ----------
        X : array-like, shape (n_instances, n_features)

        Returns
        -------
        ndarray, shape (n_instances,) or (n_instances, n_classes)
        """
        X = self._validate_predict(X)
        linear = self.kernel == "linear"
        basis, weights = (
            (X, self.coef_.T) if linear else (self._gram(X), self.dual_coef_)
        )
        scores = basis @ weights + self.intercept_
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict_proba(self, X):
        """Class probabilities, shape (n_instances, n_classes)."""
        return probabilities(self.decision_function(X))
