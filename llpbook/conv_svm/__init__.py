r"""conv-∝SVM: the labels relaxed to a mixture of labelings, a convex problem without starts.

Over all labelings whose shares agree, :math:`\mathcal Y`, the dual of the support vector machine depends on
:math:`y y^\top` only. Let that be any mixture :math:`M = \sum_t \mu_t y_t y_t^\top`, and the problem is convex:

.. math:: \min_{\mu \in \Delta} \max_{0 \le \alpha \le C} \sum_i \alpha_i - \tfrac12 \sum_t \mu_t
          \Bigl\lVert \sum_i \alpha_i y_{ti} x_i \Bigr\rVert^2 .

Few labelings matter: they are added one by one, each of those with the longest weights for the current
:math:`\alpha`. The leading eigenvector of M says what the labels are, if they are any.

Chapter: ``book/conv_svm``. Source: yu2013 (section 5); the method of cuts from li2009.
"""

from numbers import Integral, Real

import numpy as np

from .._hinge import minimize_hinges
from ..base import (
    Interval,
    KernelClassifier,
    Progress,
    StrOptions,
    require_memory,
)
from ._solver import minimize, peak_memory, solve_relaxed
from ._steps import (
    allowed_counts,
    best_labels,
    certified_value,
    climb,
    cut,
    leading_labels,
    longest_columns,
    main_columns,
    quadratics,
    relaxed_value,
)

__all__ = [
    "ConvSVM",
    "allowed_counts",
    "best_labels",
    "certified_value",
    "climb",
    "cut",
    "labeled_value",
    "leading_labels",
    "longest_columns",
    "main_columns",
    "minimize",
    "minimize_hinges",
    "peak_memory",
    "quadratics",
    "relaxed_value",
    "solve_relaxed",
]


def labeled_value(X, y, C):
    r"""The minimum of the support vector machine for one labeling: never below the optimum of the relaxation.

    Equation :eq:`eq-conv-svm-labeled`.

    Parameters
    ----------
    X : ndarray or sparse array, shape (n_instances, n_features)
    y : ndarray of -1 and 1, shape (n_instances,)
    C : float

    Returns
    -------
    float
    """
    ones = np.ones(len(y))
    w = minimize_hinges(X, y, ones, C * ones, intercept=False, tol=1e-6)[0]
    # eq: eq-conv-svm-labeled
    return w @ w / 2 + C * np.maximum(0, 1 - y * (X @ w)).sum()


class ConvSVM(KernelClassifier):
    r"""conv-∝SVM (Yu et al. 2013): a convex relaxation over mixtures of labelings.

    Parameters
    ----------
    C : float, default 1.0
        What a unit of the hinge of an instance costs.
    epsilon : float, default 0.0
        By how much the share of a labeling may differ from that of a bag; where no count will do, the nearest are
        allowed.
    kernel : {"linear", "rbf", "laplacian", "precomputed"} or callable, default "linear"
    gamma : float or "scale", default "scale"
        Kernel coefficient; "scale" is 1 / (n_features * X.var()).
    fit_intercept : bool, default True
        Add the feature 1; its weight is penalized like the others.
    cuts : {"ascent", "paper"}, default "ascent"
        How labelings are found: along single columns, as in the paper, and from there by ascent.
    max_cuts : int, default 20
        The most labelings; by ascent up to four are added in a round.
    tol : float, default 1e-3
        Relative fall of the relaxed value from one round of cuts to the next at which to stop.
    verbose : int, default 0
        Progress over rounds of cuts: 0 none, 1 a line per second, 2 a line per round.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
    coef_ : ndarray, shape (1, n_features) or (n_classes, n_features)
        Not with a kernel.
    intercept_ : ndarray, shape (1,) or (n_classes,)
        0 with a kernel, which has the constant feature inside.
    dual_coef_ : ndarray, shape (n_instances, 1)
        Weights of the training instances, with a kernel only.
    objective_curve_ : list of float
        Of the relaxed problem, one for each round of cuts; with two classes, as are those that follow.
    labeled_value_ : float
        Of the support vector machine for the allowed labeling that agrees best with the scores.
    upper_bound_ : float
        The last of ``objective_curve_``: the relaxed value over the labelings found. The optimum of the relaxation over
        all allowed labelings is not above it, but for a part in 10,000 (the tolerance of the solver), and can be far
        below: the value falls until no labeling is missing.
    lower_bound_ : float
        Certified, see `certified_value`: the optimum of the relaxation, and so the value of every allowed labeling, is
        not below it.
    relaxation_gap_ : float
        1 less the ratio of ``upper_bound_`` to ``labeled_value_``: an estimate, too small where cuts are missing, and
        sometimes negative. ``1 - lower_bound_ / labeled_value_`` is certified, and never too small.
    n_iter_ : int
        Rounds of cuts.
    n_cuts_ : int
        Labelings in use.
    gap_ : float
        Relative fall of the relaxed value in the last round, as ``tol``; in the first round from ``C`` times the number
        of instances, the value without any labeling. 0 if the search found no labeling that would lower the value;
        above ``tol`` if ``max_cuts`` ended the fit.
    estimators_ : list of ConvSVM, or None
        One per class, for more than two.

    Raises
    ------
    ValueError
        For malformed input; see `llpbook.base`.

    Notes
    -----
    With d features and T labelings :math:`O(n d^2 T^2)` an iteration; with a kernel, or many features, :math:`O(n^3)`,
    some ten iterations in each round of cuts. Linear, memory is :math:`O(d T (n + d T))`, or
    :math:`O(n^2)` where 2 d T exceeds n, and :math:`O(d^2)`; ``fit`` refuses what the machine does not have. Known
    labels are held fixed.

    If the two classes are swapped, predictions are swapped too. If every instance is given twice, each hinge counts
    twice, so ``C`` must be halved for the same problem; a bag twice as large may also have counts nearer to its share,
    so with ``epsilon`` above 0 more labelings are allowed. Cuts are found by a search, so even with ``C`` halved and
    ``epsilon=0`` about 2 % of predictions changed on random problems of 96 instances.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 200)
    >>> X = rng.normal(size=(200, 2)) + 3.0 * y[:, None] - 1.5
    >>> bags = np.repeat(np.arange(40), 5)
    >>> p = np.bincount(bags, y) / 5
    >>> float(ConvSVM().fit(X, bags, p).score(X, y)) > 0.9
    True
    """

    assumes = (None, "a wide margin separates the classes through the origin")
    cost = "seconds for 10,000 instances; with a kernel, cubic"
    _several_classes = "one-vs-rest"
    _equal_shares, _names_classes_by_shares = "warned", True
    _parameter_constraints = {
        **KernelClassifier._parameter_constraints,
        "C": [Interval(Real, 0, None, closed="neither")],
        "epsilon": [Interval(Real, 0, 1, closed="both")],
        "cuts": [StrOptions({"ascent", "paper"})],
        "max_cuts": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "verbose": ["verbose"],
    }
    _gram_copies = 6.0

    def __init__(
        self, C=1.0, epsilon=0.0, kernel="linear", gamma="scale", fit_intercept=True,
        cuts="ascent", max_cuts=20, tol=1e-3, verbose=0,
    ):  # fmt: skip
        self.C, self.epsilon, self.kernel, self.gamma = C, epsilon, kernel, gamma
        self.fit_intercept, self.cuts = fit_intercept, cuts
        self.max_cuts, self.tol, self.verbose = max_cuts, tol, verbose

    def _fit(self, data):
        n, d = data.X.shape
        if self.kernel == "linear":  # with a kernel the base class asks
            require_memory(
                f"ConvSVM on {n} instances, {d} features, {self.max_cuts} labelings",
                peak_memory(n, d + self.fit_intercept, self.max_cuts),
                "lower max_cuts, or take fewer instances or features",
            )
        super()._fit(data)

    def _solve(self, data, Z):
        usual = self.max_cuts // 2 + 1 if self.cuts == "ascent" else None
        progress = Progress(self, self.max_cuts, "round", usual)
        sizes, shares = data.bag_sizes, data.proportions[:, 1]
        known = np.arange(len(sizes)) >= len(sizes) - data.n_pure
        epsilon = np.where(known, 0, self.epsilon)
        rest = data.bags, *allowed_counts(sizes, shares, epsilon)
        alpha, Y, mu, self.objective_curve_, self.gap_ = minimize(
            Z, *rest, self.C, self.cuts == "ascent", self.max_cuts, self.tol,
            progress.step,
        )  # fmt: skip
        w = (alpha * leading_labels(Y, mu)) @ Z

        def error(f):
            found = np.bincount(data.bags, f > 0, minlength=len(sizes))
            return np.abs(found - sizes * shares).sum()

        # The sign of an eigenvector is free: the bags choose it.
        w = w if error(Z @ w) <= error(-(Z @ w)) else -w
        y = best_labels(Z @ w, *rest)
        self.labeled_value_ = float(labeled_value(Z, y, self.C))
        self.upper_bound_ = self.objective_curve_[-1]
        self.lower_bound_ = certified_value(Z, alpha, *rest, self.C)
        self.relaxation_gap_ = 1 - self.upper_bound_ / self.labeled_value_
        self.n_iter_, self.n_cuts_ = len(self.objective_curve_), len(Y)
        return w[None, :]
