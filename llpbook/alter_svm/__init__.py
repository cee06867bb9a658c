r"""alter-∝SVM: a support vector machine with unknown labels that agree with the shares.

The labels of the training instances are variables of the problem, like the hyperplane:

.. math:: \min_{y, w, b} \tfrac12 \lVert w \rVert^2 + C \sum_i \max\bigl(0, 1 - y_i (\langle w, x_i \rangle + b)\bigr)
          + \sum_k c_k \lvert \tilde p_k(y) - p_k \rvert, \qquad \tilde p_k(y) = \tfrac1{n_k} \sum_{i \in B_k} [y_i = 1]

For known labels this is a support vector machine. For a known hyperplane, a sort gives the best labels of each bag. The
two steps alternate while C is raised from a small value. There are several random starts; the lowest objective is kept.

Chapter: ``book/alter_svm``. Source: yu2013 (sections 3, 4 and 6.2).
"""

from collections.abc import Callable

import numpy as np
import pandas as pd
from sklearn.base import clone

from .._counts import ranks
from .._input import ArrayLike, RandomState
from ..base import (
    HasMethods,
    KernelClassifier,
    StrOptions,
    check_learner,
    fit_to_bags,
    row_order,
)
from ._solver import minimize
from ._steps import (
    bag_step,
    count_cost,
    first_level,
    flip_gain,
    levels,
    objective,
    svm_step,
)

__all__ = ["AlterSVM"]


class AlterSVM(KernelClassifier):
    r"""alter-∝SVM (Yu et al. 2013): labels and hyperplane in turn.

    Parameters
    ----------
    C : float, default 0.1
        Cost of a unit of the hinge of an instance.
    C_p : float, default 10.0
        Cost of an error of 1 in the share of a bag; it is multiplied by the weight of the bag.
    kernel : {"linear", "rbf", "laplacian", "precomputed"} or callable, default "linear"
        A kernel other than "linear" needs :math:`O(n^2)` memory.
    gamma : float or "scale", default "scale"
        Kernel coefficient of "rbf" and "laplacian"; "scale" is 1 / (n_features * X.var()).
    fit_intercept : bool, default True
        Whether the score has an offset b, which is not penalized.
    bag_weights : {"size", "uniform"} or array-like, shape (n_bags,), default "size"
        Factors of ``C_p``: the sizes of bags, as in the authors' code; 1 for each bag, as the paper prints; or one
        number per row of ``proportions``. With weight 0 the share of a bag is not used.
    annealing : {"fast", "paper", "none"}, default "fast"
        How ``C`` is raised: from `first_level` by factors of 3; as in the paper, from 1.5e-5 ``C`` by factors of 1.5;
        or not at all.
    init : "random" or estimator, default "random"
        The first labels agree with the shares. They are random, or they follow the scores or probabilities of another
        estimator of label proportions, or of a `Pipeline` that ends in one. A clone of the estimator is fitted to the
        same bags (section 7.2), and there is one start.
    n_init : int, default 10
    n_jobs : int, default None
        Number of starts that run at once; see `joblib.Parallel`.
    verbose : int, default 0
        Progress over starts: 0 none, 1 a line per second, 2 a line per start.
    random_state : int, RandomState or None, default None

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
    coef_ : ndarray, shape (1, n_features) or (n_classes, n_features)
        Weights of the features; absent with a kernel.
    intercept_ : ndarray, shape (1,) or (n_classes,)
    dual_coef_ : ndarray, shape (n_instances, 1)
        Weights of the training instances; only with a kernel.
    labels_ : ndarray, shape (n_instances,)
        Labels of the training instances at the minimum. This and the next four are attributes for two classes only.
    objective_ : float
        Objective at the minimum.
    starts_ : DataFrame
        ``objective`` and ``share_error`` of each start.
    n_iter_ : int
        Turns of the best start.
    gap_ : float
        Upper bound of the relative fall of ``objective_`` that is possible with the same labels: 0 if the weights are
        those of the support vector machine for ``labels_``. Other labels may have a lower objective.
    estimators_ : list of AlterSVM, or None
        One per class, for more than two.

    Raises
    ------
    ValueError
        For malformed input; see `llpbook.base`.

    Notes
    -----
    A start takes some fifty turns of :math:`O(n d^2 + n \log n)`. Known labels are held fixed. The problem has many
    local minima, and the labeling with the lowest objective need not be the most accurate. With bags of size 1 and a
    large ``C_p`` the fit is the support vector machine.

    The random starts are not mirrored if the two classes are swapped, so the fit may end in another local minimum: on
    random problems of 96 instances 1 % of predictions changed, 3 % with an rbf kernel. If every instance is given
    twice, each hinge counts twice and, with weights by size, so does each share: with ``C`` and ``C_p`` halved the
    problem is the same, but the starts differ, and 1 % to 3 % of predictions changed.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 200)
    >>> X = rng.normal(size=(200, 2)) + 3.0 * y[:, None]
    >>> bags = np.repeat(np.arange(40), 5)
    >>> p = np.bincount(bags, y) / 5
    >>> float(AlterSVM(random_state=0).fit(X, bags, p).score(X, y)) > 0.9
    True
    """

    assumes = (None, "a wide margin separates the classes, within bags and across")
    cost = "some tens of support vector machines, for ten starts"
    _several_classes, _cure = "one-vs-rest", "a larger C_p"
    _equal_shares, _names_classes_by_shares = "warned", True
    _free_intercept = True
    _gram_copies = 5.5
    _parameter_constraints = {
        "annealing": [StrOptions({"fast", "paper", "none"})],
        "init": [
            StrOptions({"random"}),
            HasMethods(["fit", "decision_function"]),
            HasMethods(["fit", "predict_proba"]),
        ],
    }

    def __init__(
        self, C: float = 0.1, C_p: float = 10.0, *, kernel: str | Callable = "linear",
        gamma: float | str = "scale", fit_intercept: bool = True,
        bag_weights: str | ArrayLike = "size", annealing: str = "fast",
        init: object = "random", n_init: int = 10, n_jobs: int | None = None,
        verbose: int = 0, random_state: RandomState = None,
    ):  # fmt: skip
        self.C, self.C_p, self.kernel, self.gamma = C, C_p, kernel, gamma
        self.fit_intercept, self.bag_weights = fit_intercept, bag_weights
        self.annealing, self.init, self.n_init = annealing, init, n_init
        self.n_jobs, self.verbose, self.random_state = n_jobs, verbose, random_state

    def _fit(self, data):
        if not isinstance(self.init, str):
            check_learner(self.init, "init")
        super()._fit(data)

    def _solve(self, data, Z):
        penalties = self.C_p * data.bag_weights
        penalties[len(penalties) - data.n_pure :] = np.inf  # bags of known labels
        scores = self._first(data)
        progress = self._progress(self.n_init if scores is None else 1, "start")
        best, starts = minimize(
            Z, data.bags, data.proportions[:, 1], self.C, penalties,
            intercept=self.fit_intercept, annealing=self.annealing, scores=scores,
            n_init=self.n_init, order=row_order(data), seed=self.random_state,
            n_jobs=self.n_jobs, progress=progress.step,
        )  # fmt: skip
        self.labels_ = np.empty(len(data.bags), self.classes_.dtype)
        self.labels_[best.layout.order] = self.classes_[(best.y > 0).astype(int)]
        self.objective_, self.n_iter_, self.gap_ = best.value, best.n_turns, best.gap
        self.starts_ = pd.DataFrame(starts, columns=["objective", "share_error"])
        return np.append(best.w, best.b)[None, :]

    def _first(self, data):
        """Scores that give the first labels, or None."""
        if self.init == "random":
            return None
        model = clone(self.init)
        fit_to_bags(model, data.X, data.bags, data.proportions)
        if hasattr(model, "decision_function"):
            return model.decision_function(data.X)
        return model.predict_proba(data.X)[:, 1]
