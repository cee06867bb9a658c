r"""conv-∝SVM: labels relaxed to a mixture of labelings, a convex problem that needs no starts.

Let :math:`\mathcal Y` be the set of labelings that agree with the shares. The dual of the support vector machine
depends on a labeling through :math:`y y^\top` only. If this matrix is replaced by any mixture
:math:`M = \sum_t \mu_t y_t y_t^\top`, the problem is convex:

.. math:: \min_{\mu \in \Delta} \max_{0 \le \alpha \le C} \sum_i \alpha_i - \tfrac12 \sum_t \mu_t
          \Bigl\lVert \sum_i \alpha_i y_{ti} x_i \Bigr\rVert^2 .

Few labelings have weight. They are added in rounds, those with the longest weights for the current :math:`\alpha`.
The leading eigenvector of M gives the labels.

Chapter: ``book/conv_svm``. Source: yu2013 (section 5); the cutting planes from li2009.
"""

from collections.abc import Callable
from numbers import Integral, Real

import numpy as np

from .._counts import ranks
from ..base import Interval, KernelClassifier, StrOptions, require_memory
from ._solver import minimize, peak_memory, solve_relaxed
from ._steps import (
    allowed_counts,
    best_labels,
    certified_value,
    climb,
    cut,
    labeled_value,
    leading_labels,
    longest_columns,
    main_columns,
    quadratics,
    relaxed_value,
)

__all__ = ["ConvSVM"]


class ConvSVM(KernelClassifier):
    r"""conv-∝SVM (Yu et al. 2013): a convex relaxation over mixtures of labelings.

    Parameters
    ----------
    C : float, default 1.0
        Cost of a unit of the hinge of an instance.
    epsilon : float, default 0.0
        Allowed difference between the share of a labeling and the given share of a bag. If no count satisfies it, the
        nearest counts are allowed.
    kernel : {"linear", "rbf", "laplacian", "precomputed"} or callable, default "linear"
    gamma : float or "scale", default "scale"
        Kernel coefficient of "rbf" and "laplacian"; "scale" is 1 / (n_features * X.var()).
    fit_intercept : bool, default True
        Add the feature 1; its weight is penalized like the others.
    cutting_planes : {"ascent", "paper"}, default "ascent"
        How violated labelings are found: along single columns, as in the paper; "ascent" continues from these.
    max_cutting_planes : int, default 20
        Largest number of labelings; with ascent up to four are added in a round.
    tol : float, default 1e-3
        Stop if the relaxed value falls by less than this, relative to itself, from one round to the next.
    verbose : int, default 0
        Progress over rounds: 0 none, 1 a line per second, 2 a line per round.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
    coef_ : ndarray, shape (1, n_features) or (n_classes, n_features)
        Weights of the features; absent with a kernel.
    intercept_ : ndarray, shape (1,) or (n_classes,)
        0 with a kernel, to which the constant feature is added.
    dual_coef_ : ndarray, shape (n_instances, 1)
        Weights of the training instances; only with a kernel.
    objective_curve_ : list of float
        Value of the relaxed problem after each round. This and all that follow except ``estimators_`` are
        attributes for two classes only.
    labeled_value_ : float
        Value of the support vector machine for the allowed labeling that agrees best with the scores.
    upper_bound_ : float
        The last of ``objective_curve_``: the relaxed value over the labelings found. The optimum of the relaxation over
        all allowed labelings is not above it, up to one part in 10,000 (the tolerance of the solver). It can be far
        below, because the value falls until no labeling is missing.
    lower_bound_ : float
        Certified bound, see `certified_value`: neither the optimum of the relaxation nor the value of any allowed
        labeling is below it.
    relaxation_gap_ : float
        ``1 - upper_bound_ / labeled_value_``: an estimate, too small if cutting planes are missing, and sometimes
        negative. ``1 - lower_bound_ / labeled_value_`` is certified, and never too small.
    n_iter_ : int
        Rounds, each of which solves the relaxed problem and adds cutting planes.
    n_cutting_planes_ : int
        Labelings in use.
    gap_ : float
        Relative fall of the relaxed value in the last round, on the scale of ``tol``. The first round falls from ``C``
        times the number of instances, the value without any labeling. 0 if the search found no labeling that
        would lower the value; above ``tol`` if ``max_cutting_planes`` ended the fit.
    estimators_ : list of ConvSVM, or None
        One per class, for more than two.

    Raises
    ------
    ValueError
        For malformed input; see `llpbook.base`.

    Notes
    -----
    With d features and T labelings an iteration costs :math:`O(n d^2 T^2)`; with a kernel, or many features,
    :math:`O(n^3)`. A round has some ten iterations. With the linear kernel, memory is
    :math:`O(d T (n + d T))`, or :math:`O(n^2)` if 2 d T exceeds n, and :math:`O(d^2)`; ``fit`` refuses to start if
    there is less. Known labels are held fixed.

    If the two classes are swapped, the predictions are swapped. If every instance is given twice, each hinge counts
    twice, so ``C`` must be halved for the same problem. A bag twice as large may also have counts nearer to its share,
    so with ``epsilon`` above 0 more labelings are allowed. The labelings are found by a search, so even with ``C``
    halved and ``epsilon=0`` about 2 % of predictions changed on random problems of 96 instances.

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
    _several_classes, _cure = "one-vs-rest", "a larger C"
    _equal_shares, _names_classes_by_shares = "warned", True
    _parameter_constraints = {
        "epsilon": [Interval(Real, 0, 1, closed="both")],
        "cutting_planes": [StrOptions({"ascent", "paper"})],
        "max_cutting_planes": [Interval(Integral, 1, None, closed="left")],
    }
    _gram_copies = 6.0

    def __init__(
        self, C: float = 1.0, epsilon: float = 0.0, *,
        kernel: str | Callable = "linear", gamma: float | str = "scale",
        fit_intercept: bool = True, cutting_planes: str = "ascent",
        max_cutting_planes: int = 20, tol: float = 1e-3, verbose: int = 0,
    ):  # fmt: skip
        self.C, self.epsilon, self.kernel, self.gamma = C, epsilon, kernel, gamma
        self.fit_intercept, self.cutting_planes = fit_intercept, cutting_planes
        self.max_cutting_planes, self.tol = max_cutting_planes, tol
        self.verbose = verbose

    def _fit(self, data):
        (n, d), most = data.X.shape, self.max_cutting_planes
        if self.kernel == "linear":  # with a kernel the base class checks it
            require_memory(
                f"ConvSVM on {n} instances, {d} features, {most} labelings",
                peak_memory(n, d + self.fit_intercept, most),
                "lower max_cutting_planes, or take fewer instances or features",
            )
        super()._fit(data)

    def _solve(self, data, Z):
        max_planes, ascent = self.max_cutting_planes, self.cutting_planes == "ascent"
        usual = max_planes // 2 + 1 if ascent else None
        progress = self._progress(max_planes, "round", usual)
        sizes, shares = data.bag_sizes, data.proportions[:, 1]
        pure = np.arange(len(sizes)) >= len(sizes) - data.n_pure
        bags, epsilon = data.bags, np.where(pure, 0, self.epsilon)
        fewest, most = allowed_counts(sizes, shares, epsilon)
        alpha, Y, mu, self.objective_curve_, self.gap_ = minimize(
            Z, bags, fewest, most, self.C, ascent=ascent, max_planes=max_planes,
            tol=self.tol, progress=progress.step,
        )  # fmt: skip
        w = (alpha * leading_labels(Y, mu)) @ Z

        def error(f):
            positives = np.bincount(bags, f > 0, minlength=len(sizes))
            return np.abs(positives - sizes * shares).sum()

        # The sign of an eigenvector is arbitrary: the bags choose it.
        w = w if error(Z @ w) <= error(-(Z @ w)) else -w
        y = best_labels(Z @ w, bags, fewest, most)
        self.labeled_value_ = float(labeled_value(Z, y, self.C))
        self.upper_bound_ = self.objective_curve_[-1]
        self.lower_bound_ = certified_value(Z, alpha, bags, fewest, most, self.C)
        self.relaxation_gap_ = 1 - self.upper_bound_ / self.labeled_value_
        self.n_iter_, self.n_cutting_planes_ = len(self.objective_curve_), len(Y)
        return w[None, :]
