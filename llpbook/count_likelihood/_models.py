"""Two learners of the likelihood of the counts: a linear one, and boosting."""

from collections.abc import Callable

import numpy as np

from .._input import ArrayLike
from .._linear import BoostedBagModel, LinearBagModel
from ..mean_map import class_means, mean_operator, minimize
from ._loss import CountLoss


class CountLogistic(LinearBagModel):
    r"""Logistic regression from counts: the maximum of their likelihood.

    Parameters
    ----------
    C : float, default 0.1
        The penalty is :math:`\lVert w \rVert^2 / (2C)`, as in scikit-learn's ``LogisticRegression``.
    kernel : {"linear", "rbf", "laplacian", "precomputed"} or callable, default "linear"
    gamma : float or "scale", default "scale"
        Kernel coefficient of "rbf" and "laplacian"; "scale" is 1 / (n_features * X.var()).
    fit_intercept : bool, default True
    penalize_intercept : bool, default False
        False leaves the intercept free; True adds the feature 1, whose weight is penalized like the others. Without
        an intercept it does not act.
    exact_up_to : int, default 20
        Bags of two classes with at most so many instances have their exact likelihood, others the saddlepoint's. With
        Laplace noise it does not act.
    proportion_errors : None or array-like, shape (n_bags,) or (n_bags, n_classes, n_classes), default None
        Where proportions are estimates, the standard error of each share of the positive class, as rows of
        ``proportions`` or a Series with their keys; for several classes the covariance matrix of each row. A margin of
        error of 90 % is 1.645 standard errors.
    proportion_noise : {None, "gaussian", "laplace"}, default None
        The distribution of noise that was added to the shares on purpose, with the standard deviations
        ``proportion_errors``; a Laplace scale b has the standard deviation :math:`\sqrt 2\, b`. Then shares may lie
        outside of [0, 1], and must not be clipped. "laplace" is for two classes, exact, and costs :math:`O(n_k^2)` per
        bag. None takes errors as normal, and shares in [0, 1].
    bag_deviation : None, float or "estimate", default None
        The standard deviation of an intercept of each bag, in log-odds, where bags differ beyond their features; for
        two classes. "estimate" finds the one that makes the counts likeliest. None is no intercept.
    max_iter : int, default 1000
    tol : float, default 1e-5
        Largest entry of the gradient of the objective per instance at which to stop.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
    coef_ : ndarray, shape (1, n_features) or (n_classes, n_features)
        Log-odds. Not with a kernel.
    intercept_ : ndarray, shape (1,) or (n_classes,)
        0 with a kernel and a penalized intercept, which has the constant feature inside.
    dual_coef_ : ndarray, shape (n_instances, 1) or (n_instances, n_classes)
        Weights of the training instances, with a kernel only.
    loss_ : CountLoss
    bag_deviation_ : float
        The deviation of the intercepts of bags that was used; 0 for none.
    bag_effects_, bag_effect_errors_ : ndarray, shape (n_bags,)
        The intercept of each row of the proportions given its count, and its standard deviation. ``predict(X, bags)``
        and ``predict_proba(X, bags)`` use them for instances of these bags.
    objective_ : float
        Minus the penalized log-likelihood at the solution.
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
    This is `llpbook.bag_losses.BagLogistic` with the loss "counts". :math:`O(n d + L d^2)` an iteration of Fisher
    scoring. The objective is not convex; the start has slopes of 0, and where there are fewer bags than weights a
    second start is the solution of the proportion loss, and the better of the two maxima is kept. With bags of size 1
    this is ridge-penalized logistic regression.

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

    assumes = (
        ("Y_B|X", "X_B|Y"),
        "one P(y | x), or one P(x | y), holds in all bags; log-odds linear in x",
    )
    cost = "a few logistic regressions: a quarter to half a second for 100,000"

    def __init__(
        self, C: float = 0.1, *, kernel: str | Callable = "linear",
        gamma: float | str = "scale", fit_intercept: bool = True,
        penalize_intercept: bool = False, exact_up_to: int = 20,
        proportion_errors: ArrayLike | None = None,
        proportion_noise: str | None = None,
        bag_deviation: float | str | None = None, max_iter: int = 1000,
        tol: float = 1e-5,
    ):  # fmt: skip
        self.C, self.exact_up_to = C, exact_up_to
        self.kernel, self.gamma = kernel, gamma
        self.fit_intercept, self.penalize_intercept = fit_intercept, penalize_intercept
        self.proportion_errors = proportion_errors
        self.proportion_noise, self.bag_deviation = proportion_noise, bag_deviation
        self.max_iter, self.tol = max_iter, tol

    def _bag_loss(self):
        return CountLoss(self.exact_up_to)


def mean_map_start(Z, observed, C):
    """Weights of log-odds by MeanMap, for the penalty of ``C``.

    Parameters
    ----------
    Z : ndarray or sparse array, shape (n_instances, n_columns)
        Features, with the 1 of an intercept.
    observed : BagCounts
    C : float

    Returns
    -------
    ndarray, shape (1, n_columns) or (n_classes, n_columns)

    Raises
    ------
    NotIdentifiableError
        If the shares do not tell class means apart.
    """
    sums = observed.sums(Z)
    sums = sums if isinstance(sums, np.ndarray) else sums.toarray()
    shares, prior = (
        observed.shares,
        observed.sizes @ observed.shares / observed.sizes.sum(),
    )
    means = class_means(sums / observed.sizes[:, None], shares, observed.sizes)
    mu, factor = mean_operator(prior, means), 4 if len(prior) == 2 else 1
    W = minimize(Z, mu, factor / C, frequencies=observed.frequencies)[0]
    return 2 * W if len(mu) == 1 else W  # MeanMap halves log-odds


class CountBoosting(BoostedBagModel):
    r"""Boosting of trees by the likelihood of the counts.

    Starts from a linear model. Each round fits trees to the Newton target of the
    log-odds. The rounds end when bags that were held out have not become likelier for 15 rounds, and those up to the
    best are kept.

    Parameters
    ----------
    learning_rate : float, default 1.5
        Share of each prediction that is added to the log-odds.
    max_iter : int, default 100
        Most rounds.
    max_leaf_nodes : int, default 8
        Leaves of a tree.
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
    loss_ : CountLoss
    start_coef_ : ndarray, shape (1, n_features + 1) or (n_classes, n_features + 1)
        The linear start, its intercept last.
    trees_ : object
        The trees up to the best round.
    n_iter_ : int
        The best round, which is the last one kept.
    validation_loss_ : ndarray
        Minus the mean log-likelihood of the bags held out, before the first round and after each.

    Raises
    ------
    NotIdentifiableError
        If the proportions cannot give a start, see `CountLogistic`.
    ValueError
        For malformed input; see `llpbook.base`.

    Notes
    -----
    This is `llpbook.bag_losses.BagBoosting` with the loss "counts". A round costs :math:`O(n d)`, because the
    features are binned once. If there are few bags (up to three a class), none is held out, and the likelihood of all
    bags names the best round.

    Trees do not depend on the scale of the features; the linear start does. Where two splits are equally good, the
    first feature is taken: the order of the columns decides.

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

    assumes = (
        ("Y_B|X", "X_B|Y"),
        "one P(y | x), or one P(x | y), holds in all bags",
    )
    cost = "boosted trees: a second or two for 100,000"

    def __init__(
        self, *, learning_rate: float = 1.5,
        max_iter: int = 100, max_leaf_nodes: int = 8, validation_fraction: float = 0.1,
        C: float = 0.1, exact_up_to: int = 20,
        proportion_errors: ArrayLike | None = None, verbose: int = 0,
    ):  # fmt: skip
        self.learning_rate = learning_rate
        self.max_iter, self.max_leaf_nodes = max_iter, max_leaf_nodes
        self.validation_fraction, self.C = validation_fraction, C
        self.exact_up_to, self.proportion_errors = exact_up_to, proportion_errors
        self.verbose = verbose

    def _bag_loss(self):
        return CountLoss(self.exact_up_to)
