"""Two learners of the likelihood of the counts: a linear one, and one around any regressor."""

from functools import partial
from numbers import Integral, Real

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, softmax
from sklearn.base import clone

from ..base import (
    HasMethods,
    Interval,
    KernelClassifier,
    LLPClassifier,
    Progress,
    StrOptions,
    append_one,
    canonical_order,
    warn_if_short,
)
from ..mean_map import class_means, mean_operator
from ..mean_map import minimize as mean_map
from ..proportions import averaging_matrix
from ._binary import bag_counts, count_posterior
from ._booster import boost_trees, tree_scores
from ._several import class_posterior

#: A Newton target divides by a variance, which counts as no less.
SMALLEST_VARIANCE = 0.05
#: Rounds of boosting without progress on the bags held out, after which it ends.
PATIENCE = 15
#: Rounds that a fit usually takes, with those without progress, for the estimate of its time.
USUAL = 30


def posterior(scores, known, exact_up_to=20):
    """`count_posterior` of one column of scores, `class_posterior` of several, and the probabilities before it.

    Parameters
    ----------
    scores : ndarray, shape (n_instances,) or (n_instances, n_classes)
    known : BagCounts
    exact_up_to : int, default 20

    Returns
    -------
    log_likelihood : ndarray, shape (n_bags,)
    posterior, prior : ndarray, of the shape of scores
    """
    if scores.ndim == 1:
        return *count_posterior(scores, known, exact_up_to), expit(scores)
    return *class_posterior(scores, known), softmax(scores, axis=1)


def objective(w, X, known, C, exact_up_to=20):
    r"""Penalized negative log-likelihood of the counts and its gradient, per instance.

    :math:`\frac1n \bigl( -\sum_k \log P(c_k \mid Xw) + \frac{1}{2C} \lVert w \rVert^2 \bigr)`, equation
    :eq:`eq-counts-objective`.

    Parameters
    ----------
    w : ndarray, shape (n_features,) or (n_classes * n_features,)
    X : ndarray or sparse array, shape (n_instances, n_features)
    known : BagCounts
    C : float
    exact_up_to : int, default 20

    Returns
    -------
    value : float
    gradient : ndarray, of the shape of w
    """
    n, d = X.shape
    rows = w.reshape(-1, d)
    scores = X @ rows.T
    scores = scores[:, 0] if len(rows) == 1 else scores
    log_likelihood, q, s = posterior(scores, known, exact_up_to)
    # eq: eq-counts-objective
    gradient = (X.T @ (s - q)).T.reshape(rows.shape) / n + rows / (C * n)
    return (w @ w / (2 * C) - log_likelihood.sum()) / n, gradient.ravel()


def maximize(X, known, start, C=1.0, exact_up_to=20, max_iter=1000, tol=1e-5):
    """Weights of a linear model at a local maximum of the penalized likelihood, by L-BFGS.

    Parameters
    ----------
    X : ndarray or sparse array, shape (n_instances, n_features)
    known : BagCounts
    start : ndarray, shape (1, n_features) or (n_classes, n_features)
        The likelihood has several maxima.
    C : float
    exact_up_to, max_iter : int
    tol : float
        Bound on the entries of the gradient per instance.

    Returns
    -------
    weights : ndarray, of the shape of start
    n_iter : int
    gap : float
        Largest entry of the gradient.
    """
    return descend(objective, start, (X, known, C, exact_up_to), max_iter, tol)


def descend(objective, start, args, max_iter, tol):
    """Weights at a local minimum of an objective per instance, by L-BFGS.

    Parameters
    ----------
    objective : callable
        ``objective(w, *args)`` returns a value and its gradient.
    start : ndarray, shape (1, n_columns) or (n_classes, n_columns)
    args : tuple
    max_iter : int
    tol : float
        Bound on the entries of the gradient.

    Returns
    -------
    weights : ndarray, of the shape of start
    n_iter : int
    gap : float
        Largest entry of the gradient.
    """
    options = {"maxiter": max_iter, "gtol": tol, "ftol": 0.0, "maxfun": 2 * max_iter}
    found = minimize(
        objective, start.ravel(), args, "L-BFGS-B", jac=True, options=options
    )
    return found.x.reshape(start.shape), int(found.nit), float(np.abs(found.jac).max())


class CountLogistic(KernelClassifier):
    r"""Logistic regression from counts: the maximum of their likelihood.

    Parameters
    ----------
    C : float, default 0.1
        The penalty is :math:`\lVert w \rVert^2 / (2C)`, as in scikit-learn's ``LogisticRegression``.
    kernel : {"linear", "rbf", "laplacian", "precomputed"} or callable, default "linear"
    gamma : float or "scale", default "scale"
        Kernel coefficient; "scale" is 1 / (n_features * X.var()).
    fit_intercept : bool, default True
        Add the feature 1; its weight is penalized like the others.
    exact_up_to : int, default 20
        Bags of two classes with at most so many instances have their exact likelihood, others the saddlepoint's.
    proportion_errors : None or array-like, shape (n_bags,) or (n_bags, n_classes, n_classes), default None
        Where proportions are estimates, the standard error of each share of the positive class, as rows of
        ``proportions`` or a Series with their keys; for several classes the covariance matrix of each row.
    proportion_noise : {None, "gaussian", "laplace"}, default None
        The distribution of noise that was added to the shares on purpose, with the standard deviations
        ``proportion_errors``; a Laplace scale b has the standard deviation :math:`\sqrt 2\, b`. Then shares may lie
        outside of [0, 1], and must not be clipped. "laplace" is for two classes, exact, and costs :math:`O(n_k^2)` per
        bag. None takes errors as normal, and shares in [0, 1].
    max_iter : int, default 1000
    tol : float, default 1e-5
        Largest entry of the gradient of the objective per instance at which to stop.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
    coef_ : ndarray, shape (1, n_features) or (n_classes, n_features)
        Log-odds. Not with a kernel.
    intercept_ : ndarray, shape (1,) or (n_classes,)
        0 with a kernel, which has the constant feature inside.
    dual_coef_ : ndarray, shape (n_instances, 1) or (n_instances, n_classes)
        Weights of the training instances, with a kernel only.
    n_iter_ : int
    gap_ : float
        Largest entry of the gradient of the objective per instance: 0 at a local minimum.

    Raises
    ------
    NotIdentifiableError
        If all bags have the same proportions, or fewer of them differ than there are classes.
    ValueError
        For malformed input; see `llpbook.base`.

    Notes
    -----
    :math:`O(n d)` an iteration. The objective is not convex; the start is MeanMap's solution with the same penalty.
    With bags of size 1 this is ridge-penalized logistic regression.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 200)
    >>> X = rng.normal(size=(200, 2)) + 3.0 * y[:, None]
    >>> bags = np.repeat(np.arange(40), 5)
    >>> p = np.bincount(bags, y) / 5
    >>> float(CountLogistic().fit(X, bags, p).score(X, y)) > 0.9
    True
    """

    assumes = ("Y_B|X", "one P(y | x) holds in all bags, with log-odds linear in x")
    cost = "some logistic regressions: half a second for 100,000"
    _log_odds = True
    _parameter_constraints = {
        **KernelClassifier._parameter_constraints,
        "C": [Interval(Real, 0, None, closed="neither")],
        "exact_up_to": [Interval(Integral, 0, None, closed="left")],
        "proportion_errors": ["array-like", None],
        "proportion_noise": [StrOptions({"gaussian", "laplace"}), None],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self, C=0.1, kernel="linear", gamma="scale", fit_intercept=True,
        exact_up_to=20, proportion_errors=None, proportion_noise=None,
        max_iter=1000, tol=1e-5,
    ):  # fmt: skip
        self.C, self.exact_up_to = C, exact_up_to
        self.proportion_errors = proportion_errors
        self.proportion_noise = proportion_noise
        self.kernel, self.gamma, self.fit_intercept = kernel, gamma, fit_intercept
        self.max_iter, self.tol = max_iter, tol

    def _solve(self, data, Z):
        known = bag_counts(data.bags, data.proportions, data.covariances)
        known = known._replace(laplace=check_noise(self, data))
        weights, self.n_iter_, self.gap_ = maximize(
            Z, known, mean_map_start(Z, known, self.C),
            self.C, self.exact_up_to, self.max_iter, self.tol,
        )  # fmt: skip
        warn_if_short(self)
        return weights


def check_noise(estimator, data):
    """Whether the noise of the shares is Laplace noise.

    Parameters
    ----------
    estimator : CountLogistic
    data : BagData

    Returns
    -------
    bool

    Raises
    ------
    ValueError
        If its size is not stated, or there are more than two classes for Laplace noise.
    """
    noise = estimator.proportion_noise
    if noise is not None and data.covariances is None:
        raise ValueError(
            f"proportion_noise={noise!r} needs proportion_errors, the standard deviation of the noise of each share"
        )
    if noise == "laplace" and len(data.classes) > 2:
        raise ValueError(
            f"proportion_noise='laplace' is for two classes, got {data.classes.tolist()}; 'gaussian' takes more"
        )
    return noise == "laplace"


def mean_map_start(Z, known, C):
    """MeanMap's weights for the penalty of ``C``, as those of log-odds.

    Parameters
    ----------
    Z : ndarray or sparse array, shape (n_instances, n_columns)
        Features, with the 1 of an intercept.
    known : BagCounts
    C : float

    Returns
    -------
    ndarray, shape (1, n_columns) or (n_classes, n_columns)

    Raises
    ------
    NotIdentifiableError
        If the shares do not tell class means apart.
    """
    bag_means = averaging_matrix(known.bags, len(known.sizes)) @ Z
    bag_means = bag_means if isinstance(bag_means, np.ndarray) else bag_means.toarray()
    shares, prior = known.shares, known.sizes @ known.shares / known.sizes.sum()
    mu = mean_operator(prior, class_means(bag_means, shares, known.sizes))
    if len(mu) == 1:  # MeanMap halves the log-odds of two classes
        return 2 * mean_map(Z, mu, 4 / C)[0]
    return mean_map(Z, mu, 1 / C)[0]


def newton_target(q, s):
    r"""What a regressor fits in a round: a Newton step of the log-odds.

    Equation :eq:`eq-counts-newton`.

    Parameters
    ----------
    q, s : ndarray
        Posterior and prior probabilities.

    Returns
    -------
    ndarray, of their shape
    """
    # eq: eq-counts-newton
    return (q - s) / np.maximum(s * (1 - s), SMALLEST_VARIANCE)


def curvature(s):
    r"""What trees divide a gradient by: the curvature of logistic regression, :math:`\max(s (1 - s), .05)`.

    The second derivatives of a loss of bags have no sign of their own, and can be larger; this stands for them. The K
    scores of an instance all
    move at once: their joint curvature, where the classes are equally probable, is K / (K - 1) times that of one.

    Parameters
    ----------
    s : ndarray, shape (n_instances,) or (n_instances, n_classes)
        Probabilities.

    Returns
    -------
    ndarray, of the shape of s
    """
    joint = s.shape[1] / (s.shape[1] - 1) if s.ndim == 2 else 1.0
    return joint * np.maximum(s * (1 - s), SMALLEST_VARIANCE)


def newton_step(scores, known, held_out, exact_up_to=20):
    """What `boost_trees` asks at some scores: minus the likelihood of bags held out, gradient and Hessian.

    With one column of scores the quotient of gradient and Hessian is minus the `newton_target`.

    Parameters
    ----------
    scores : ndarray, shape (n_instances,) or (n_instances, n_classes)
    known : BagCounts
    held_out : ndarray of bool, shape (n_bags,)
        Bags whose mean log-likelihood is measured; if there are none, that of all is.
    exact_up_to : int, default 20

    Returns
    -------
    value : float
    gradient, hessian : ndarray, of the shape of scores
    """
    log_likelihood, q, s = posterior(scores, known, exact_up_to)
    judged = held_out if held_out.any() else ~held_out
    return -log_likelihood[judged].mean(), s - q, curvature(s)


def boost(scores, known, fit_round, learning_rate, max_iter, held_out, exact_up_to=20):
    """Add regressors to scores until the bags held out gain no more.

    Parameters
    ----------
    scores : ndarray, shape (n_instances,) or (n_instances, n_classes)
        The start.
    known : BagCounts
    fit_round : callable
        ``fit_round(target, rows)`` fits regressors to the target on some instances and returns them, and what they
        predict for all.
    learning_rate : float
        Share of each prediction that is added.
    max_iter : int
        Rounds.
    held_out : ndarray of bool, shape (n_bags,)
        Bags that no regressor sees; if there are none, progress is measured on all.
    exact_up_to : int

    Returns
    -------
    rounds : list
        The regressors up to the best round.
    history : ndarray, shape (n_rounds + 1,)
        Mean log-likelihood of the bags held out, before the first round and after each.
    """
    judged = held_out if held_out.any() else ~held_out
    rows, rounds, history = ~held_out[known.bags], [], []
    for _ in range(max_iter + 1):
        log_likelihood, q, s = posterior(scores, known, exact_up_to)
        history.append(log_likelihood[judged].mean())
        best = int(np.argmax(history))
        if len(history) - 1 - best >= PATIENCE or len(rounds) == max_iter:
            break
        fitted, predicted = fit_round(newton_target(q, s), rows)
        rounds.append(fitted)
        scores = scores + learning_rate * predicted
    return rounds[:best], np.array(history)


def held_out_bags(known, X, share):
    """Every tenth bag, say, in the order of their shares, and neither the first nor the last.

    Parameters
    ----------
    known : BagCounts
    X : ndarray, shape (n_instances, n_features)
        Bag means break ties of shares, so that the order of the bags does not matter.
    share : float
        Of the bags, to hold out; at least one is. None is if there are no more bags than three for each class.

    Returns
    -------
    ndarray of bool, shape (n_bags,)
    """
    L, K = known.shares.shape
    held_out = np.zeros(L, dtype=bool)
    if L > 3 * K:
        m = max(1, int(share * L))
        means = averaging_matrix(known.bags, L) @ X
        order = canonical_order(np.hstack([known.shares[:, ::-1], means]))
        held_out[order[((np.arange(m) + 0.5) * L / m).astype(int)]] = True
    return held_out


class CountBoosting(LLPClassifier):
    r"""Boosting of the likelihood of the counts, around any regressor.

    Starts from `CountLogistic`. Each round fits trees, or a regressor of your own, to the Newton target of the
    log-odds. The rounds up to the best one by the likelihood of bags that were held out are kept.

    Parameters
    ----------
    estimator : None or regressor, default None
        None is a tree of eight leaves on histograms, with at least n / 50 instances in a leaf, see `boost_trees`. A
        regressor is cloned and fitted once a round and class.
    learning_rate : float, default 1.5
        Share of each prediction that is added to the log-odds.
    max_iter : int, default 100
        Rounds. With trees all of them are run; with a regressor the rounds end after 15 without progress.
    validation_fraction : float, default 0.1
        Share of the bags that are held out to say which round is best. No labels of instances are needed.
    C : float, default 0.1
        Of the linear start, see `CountLogistic`. A line that is held back leaves more to the trees; with few bags they
        cannot make up for it.
    exact_up_to : int, default 20
        See `CountLogistic`.
    proportion_errors : None or array-like, shape (n_bags,) or (n_bags, n_classes, n_classes), default None
        See `CountLogistic`.
    verbose : int, default 0
        1 prints a line a second while the rounds go on, 2 a line for each round.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
    start_coef_ : ndarray, shape (1, n_features + 1) or (n_classes, n_features + 1)
        The linear start, its intercept last.
    trees_ : object
        The trees up to the best round, for `tree_scores`. None with a regressor.
    regressors_ : list of list of estimator
        The regressors of each round, one a column of scores. Empty without a regressor.
    n_iter_ : int
        The best round, which is the last one kept.
    validation_log_likelihood_ : ndarray
        Mean over the bags held out, before the first round and after each.

    Raises
    ------
    NotIdentifiableError
        If the proportions cannot give a start, see `CountLogistic`.
    ValueError
        For malformed input; see `llpbook.base`.

    Notes
    -----
    With trees a round costs :math:`O(n d)`, because the features are binned once; with a regressor it costs a fit of
    the regressor on all instances. If there are few bags (up to three a class), none is held out, and the likelihood
    of all bags names the best round.

    Bags are held out by their place in the order of the shares of the second class. So exchanging the two classes, or
    doubling the data, can hold out others and change the predictions. Trees do not depend on the scale of the features;
    the linear start does.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 200)
    >>> X = rng.normal(size=(200, 2)) + 3.0 * y[:, None]
    >>> bags = np.repeat(np.arange(40), 5)
    >>> p = np.bincount(bags, y) / 5
    >>> float(CountBoosting().fit(X, bags, p).score(X, y)) > 0.9
    True
    """

    assumes = ("Y_B|X", "one P(y | x) holds in all bags")
    cost = "boosted trees: three seconds for 100,000"
    _log_odds, _scale = True, "penalty"  # of the linear start
    _parameter_constraints = {
        "estimator": [HasMethods(["fit", "predict"]), None],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 0, None, closed="left")],
        "validation_fraction": [Interval(Real, 0, 0.5, closed="right")],
        "C": [Interval(Real, 0, None, closed="neither")],
        "exact_up_to": [Interval(Integral, 0, None, closed="left")],
        "proportion_errors": ["array-like", None],
        "verbose": ["verbose"],
    }

    def __init__(
        self, estimator=None, learning_rate=1.5, max_iter=100, validation_fraction=0.1,
        C=0.1, exact_up_to=20, proportion_errors=None, verbose=0,
    ):  # fmt: skip
        self.estimator, self.learning_rate = estimator, learning_rate
        self.max_iter, self.verbose = max_iter, verbose
        self.validation_fraction, self.C = validation_fraction, C
        self.exact_up_to, self.proportion_errors = exact_up_to, proportion_errors

    def _fit(self, data):
        known, X = self._in_order(data)
        held_out = held_out_bags(known, X, self.validation_fraction)
        Z, rows = append_one(X), ~held_out[known.bags]
        seen = known.part(~held_out)
        start = mean_map_start(Z[rows], seen, self.C)
        self.start_coef_, *_ = maximize(Z[rows], seen, start, self.C, self.exact_up_to)
        offset = one_column(Z @ self.start_coef_.T)
        boosted = self._boost_trees if self.estimator is None else self._boost
        history = boosted(X, offset, known, held_out)
        self.validation_log_likelihood_ = history
        self.n_iter_ = int(np.argmax(history))

    def _boost_trees(self, X, offset, known, held_out):
        step = partial(
            newton_step, known=known, held_out=held_out, exact_up_to=self.exact_up_to
        )
        progress = Progress(self, self.max_iter, "round")
        self.regressors_ = []
        self.trees_, history = boost_trees(
            X, offset, step, ~held_out[known.bags], self.learning_rate,
            self.max_iter, after_round=progress.step,
        )  # fmt: skip
        return -history

    def _boost(self, X, offset, known, held_out):
        progress = Progress(self, self.max_iter, "round", usual=USUAL)

        def fit_round(target, rows):
            targets = target.reshape(len(X), -1)[rows].T
            fitted = [clone(self.estimator).fit(X[rows], column) for column in targets]
            progress.step()
            return fitted, predict_round(fitted, X)

        self.trees_ = None
        self.regressors_, history = boost(
            offset, known, fit_round, self.learning_rate, self.max_iter, held_out,
            self.exact_up_to,
        )  # fmt: skip
        return history

    def _in_order(self, data):
        """Counts and instances, these in an order of their own: where a tree splits a tie depends on it."""
        shares = data.proportions[data.bags]
        order = canonical_order(np.hstack([data.X, shares]))
        bags = data.bags[order], data.proportions, data.covariances
        return bag_counts(*bags), data.X[order]

    def _scores(self, X):
        scores = one_column(append_one(X) @ self.start_coef_.T)
        if self.trees_ is not None:
            return scores + tree_scores(self.trees_, X)
        for fitted in self.regressors_:
            scores = scores + self.learning_rate * predict_round(fitted, X)
        return scores


def predict_round(fitted, X):
    """What the regressors of a round add, before the learning rate.

    Parameters
    ----------
    fitted : list of estimator
        One a column of scores.
    X : ndarray, shape (n_instances, n_features)

    Returns
    -------
    ndarray, shape (n_instances,) or (n_instances, n_classes)
    """
    return one_column(np.column_stack([part.predict(X) for part in fitted]))


def one_column(scores):
    """A matrix of one column as a vector, others as they are.

    Parameters
    ----------
    scores : ndarray, shape (n_instances, n_columns)

    Returns
    -------
    ndarray, shape (n_instances,) or (n_instances, n_columns)
    """
    return scores[:, 0] if scores.shape[1] == 1 else scores
