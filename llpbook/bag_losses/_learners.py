"""Two learners of any loss of bags, a linear one and boosting; and batches of whole bags for others."""

from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd
from sklearn.utils import check_random_state

from .._input import ArrayLike, RandomState, as_column, check_column, check_whole
from .._linear import BagLoss, BoostedBagModel, LinearBagModel, ProportionLoss
from ..base import StrOptions
from ..count_likelihood import CountLoss
from ._normal import NormalLoss
from ._unbiased import EasyLoss, ForwardLoss

#: The losses by the names that `BagLogistic` and `BagBoosting` know.
LOSSES = {
    "counts": CountLoss(),
    "normal": NormalLoss(),
    "proportion": ProportionLoss(),
    "squares": ProportionLoss("squares"),
    "easy": EasyLoss(),
    "forward": ForwardLoss(),
}


def loss_of(name):
    """Loss of `LOSSES` by its name, None for an unknown one; a loss is returned as it is."""
    return LOSSES.get(name) if isinstance(name, str) else name


class BagLogistic(LinearBagModel):
    r"""A linear model of log-odds by any loss of bags.

    Parameters
    ----------
    loss : {"counts", "normal", "proportion", "squares", "easy", "forward"} or BagLoss, default "counts"
        "counts" is `CountLogistic`.
    C : float, default 0.1
        The penalty is :math:`\lVert w \rVert^2 / (2C)`.
    kernel : {"linear", "rbf", "laplacian", "precomputed"} or callable, default "linear"
    gamma : float or "scale", default "scale"
        Kernel coefficient of "rbf" and "laplacian"; "scale" is 1 / (n_features * X.var()).
    fit_intercept : bool, default True
    penalize_intercept : bool, default False
        False leaves the intercept free; True adds the feature 1, whose weight is penalized like the others. Without
        an intercept it does not act.
    proportion_errors : None or array-like, default None
        See `CountLogistic`; for losses that can use them, "counts" and "normal".
    proportion_noise : {None, "gaussian", "laplace"}, default None
        See `CountLogistic`.
    bag_deviation : None, float or "estimate", default None
        See `CountLogistic`; for the loss "counts".
    max_iter : int, default 1000
    tol : float, default 1e-5
        Largest entry of the gradient of the objective per instance at which to stop.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
    loss_ : BagLoss
        The loss that was minimized, with the class prior where it needs that.
    bag_deviation_ : float
        The deviation of the intercepts of bags that was used; 0 for none.
    bag_effects_, bag_effect_errors_ : ndarray, shape (n_bags,)
        The intercept of each row of the proportions given its count, and its standard deviation. ``predict(X, bags)``
        and ``predict_proba(X, bags)`` use them for instances of these bags.
    coef_ : ndarray, shape (1, n_features) or (n_classes, n_features)
        Log-odds. Not with a kernel.
    intercept_ : ndarray, shape (1,) or (n_classes,)
    dual_coef_ : ndarray, shape (n_instances, 1) or (n_instances, n_classes)
        With a kernel only.
    objective_ : float
        The penalized loss at the solution.
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
    The losses "normal" and "forward" know two classes; several are fitted one against the rest. "easy" is convex, the
    others are not: Fisher scoring starts at slopes of 0, for "normal" from the solution of "proportion"; where there
    are fewer bags than weights it starts a second time, from the solution of "proportion", and the lower minimum is
    kept. In bags
    of size 1 "counts", "proportion" and "easy" are ridge-penalized logistic regression; known labels become such bags.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 200)
    >>> X = rng.normal(size=(200, 2)) + 3.0 * y[:, None]
    >>> bags = np.repeat(np.arange(40), 5)
    >>> p = np.bincount(bags, y) / 5
    >>> float(BagLogistic("proportion").fit(X, bags, p).score(X, y)) > 0.9
    True
    """

    assumes = (
        ("Y_B|X", "X_B|Y"),
        "one P(y | x), or one P(x | y), holds in all bags; log-odds linear in x. By "
        "loss: 'proportion' and 'squares' need one P(y | x) or one P(x), 'forward' "
        "needs one P(x | y), 'easy' needs one P(x)",
    )
    cost = "a few logistic regressions: a quarter to half a second for 100,000"
    _parameter_constraints = {
        "loss": [StrOptions({*LOSSES}), BagLoss],
    }

    def __init__(
        self, loss: str | BagLoss = "counts", C: float = 0.1, *,
        kernel: str | Callable = "linear", gamma: float | str = "scale",
        fit_intercept: bool = True, penalize_intercept: bool = False,
        proportion_errors: ArrayLike | None = None,
        proportion_noise: str | None = None,
        bag_deviation: float | str | None = None, max_iter: int = 1000,
        tol: float = 1e-5,
    ):  # fmt: skip
        self.loss, self.C, self.kernel, self.gamma = loss, C, kernel, gamma
        self.fit_intercept, self.penalize_intercept = fit_intercept, penalize_intercept
        self.proportion_errors = proportion_errors
        self.proportion_noise, self.bag_deviation = proportion_noise, bag_deviation
        self.max_iter, self.tol = max_iter, tol

    def _bag_loss(self):
        return loss_of(self.loss)


class BagBoosting(BoostedBagModel):
    r"""Boosting by any loss of bags.

    Starts from a linear model of the same loss. Each round fits trees to the Newton steps of the log-odds. The rounds
    end when the loss of bags that were held out has not fallen for 15 rounds, and those up to the best are kept.

    Parameters
    ----------
    loss : {"counts", "normal", "proportion", "squares", "easy", "forward"} or BagLoss, default "counts"
        "counts" is `CountBoosting`.
    learning_rate : float, default 1.5
        Share of each step that is added to the log-odds.
    max_iter : int, default 100
        Most rounds.
    max_leaf_nodes : int, default 8
        Leaves of a tree.
    validation_fraction : float, default 0.1
        Share of the bags that are held out to say which round is the best; their labels stay unknown.
    C : float, default 0.1
        Of the linear start, see `BagLogistic`.
    proportion_errors : None or array-like, default None
        See `CountLogistic`; for losses that can use them, "counts" and "normal".
    verbose : int, default 0
        1 prints a line a second while the rounds go on, 2 a line for each round.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
    loss_ : BagLoss
    start_coef_ : ndarray, shape (1, n_features + 1) or (n_classes, n_features + 1)
        The linear start, its intercept last.
    trees_ : object
        The trees up to the best round.
    n_iter_ : int
        Rounds that are kept.
    validation_loss_ : ndarray
        The mean loss of the bags held out, before the first round and after each.

    Raises
    ------
    NotIdentifiableError
        If the proportions cannot give a start, see `BagLogistic`.
    ValueError
        For malformed input; see `llpbook.base`.

    Notes
    -----
    Of few bags (up to three per class) none is held out, and the loss of all bags chooses. Where one bag is held out,
    "forward" cannot pair it, and keeps the start.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 400)
    >>> X = rng.normal(size=(400, 2)) + 3.0 * y[:, None]
    >>> bags = np.repeat(np.arange(80), 5)
    >>> p = np.bincount(bags, y) / 5
    >>> float(BagBoosting("proportion").fit(X, bags, p).score(X, y)) > 0.9
    True
    """

    assumes = (
        ("Y_B|X", "X_B|Y"),
        "one P(y | x), or one P(x | y), holds in all bags. By loss: 'proportion' and "
        "'squares' need one P(y | x) or one P(x), 'forward' needs one P(x | y), 'easy' "
        "needs one P(x)",
    )
    cost = "boosted trees: a second or two for 100,000"
    _parameter_constraints = {
        "loss": [StrOptions({*LOSSES}), BagLoss],
    }

    def __init__(
        self, loss: str | BagLoss = "counts", *,
        learning_rate: float = 1.5, max_iter: int = 100, max_leaf_nodes: int = 8,
        validation_fraction: float = 0.1, C: float = 0.1,
        proportion_errors: ArrayLike | None = None, verbose: int = 0,
    ):  # fmt: skip
        self.loss, self.C = loss, C
        self.learning_rate, self.max_iter = learning_rate, max_iter
        self.max_leaf_nodes = max_leaf_nodes
        self.validation_fraction = validation_fraction
        self.proportion_errors, self.verbose = proportion_errors, verbose

    def _bag_loss(self):
        return loss_of(self.loss)


class BagBatches:
    """Batches of whole bags, for a learner that sees some instances at a time.

    Iterating gives, for each batch, the rows of its instances: as ``batch_sampler`` of a PyTorch ``DataLoader`` it
    keeps each bag in one batch. Each pass has another order of the bags.

    Parameters
    ----------
    bags : array-like, shape (n_instances,)
    bags_per_batch : int, default 8
    random_state : int, RandomState instance or None, default None

    Raises
    ------
    ValueError
        If ``bags`` is empty or not of one dimension, or ``bags_per_batch`` is no whole number above 0.

    Examples
    --------
    >>> [rows.tolist() for rows in BagBatches([0, 1, 0, 1], 2, random_state=0)]
    [[0, 1, 2, 3]]
    """

    def __init__(
        self, bags: ArrayLike, bags_per_batch: int = 8, *,
        random_state: RandomState = None,
    ):  # fmt: skip
        bags = as_column(bags)
        if bags.ndim != 1 or len(bags) == 0:
            raise ValueError(
                f"bags must be of one dimension and not empty, got shape {bags.shape}"
            )
        check_column("bags", bags, len(bags))
        codes = pd.factorize(bags, sort=True)[0]
        order = np.argsort(codes, kind="stable")
        self.rows = np.split(order, np.cumsum(np.bincount(codes))[:-1])
        self.bags_per_batch = check_whole("bags_per_batch", bags_per_batch)
        self.random = check_random_state(random_state)

    def __len__(self) -> int:
        return -(-len(self.rows) // self.bags_per_batch)

    def __iter__(self) -> Iterator[np.ndarray]:
        order = self.random.permutation(len(self.rows))
        for first in range(0, len(order), self.bags_per_batch):
            chosen = order[first : first + self.bags_per_batch]
            yield np.sort(np.concatenate([self.rows[k] for k in chosen]))
