r"""Linear models of log-odds by any loss of bags: one objective, and one solver for all losses.

.. math:: F(w) = \ell(Zw) - \langle a, w \rangle + \tfrac12 \sum_j \lambda_j w_j^2

A loss gives the value, the gradient and factors of its expected curvature by scores; `LinearObjective` turns these into
derivatives by weights; `fisher_scoring` needs nothing else, for data in memory and for sums over chunks.
"""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize
from scipy.special import softmax

from .._counts import by_bag
from ..base import InChunks, blocks, check_time, expit, one_column

#: Most weights, and most multiplications of a step by few factors, for which a linear system is solved.
MOST_WEIGHTS, MOST_WORK = 1500, 5e10
#: Halvings of a step, and the share of the promised fall of the objective that a step must bring.
HALVINGS, ARMIJO = 60, 1e-4
#: Rounding error of an objective, relative to its value.
ROUNDING = 1e-12
#: A step is short if its square in standard errors is less: about a three-hundredth of one.
SETTLED = 1e-5
#: Steps of scoring after which L-BFGS goes on: scoring usually takes about five, but on saddles it is slow.
PATIENCE = 15
#: Instances beyond which L-BFGS takes a smaller tolerance, as standard errors become small.
MANY = 10_000
#: What is added to a curvature, as a share of its largest: a direction without any has no gradient either.
RIDGE = 1e-10


def label_factors(scores):
    r"""Factors of the curvature of logistic regression by single instances, see `BagLoss.factors`.

    :math:`\operatorname{diag} s - s s^\top = \sum_m s_m (e_m - s)(e_m - s)^\top` for several classes.

    Parameters
    ----------
    scores : ndarray, shape (n_instances,) or (n_instances, n_classes)

    Returns
    -------
    list of ndarray, each of the shape of scores
    """
    if scores.ndim == 1:
        s = expit(scores)
        return [np.sqrt(s * (1 - s))]
    s = softmax(scores, axis=1)
    eye = np.eye(s.shape[1])
    return [np.sqrt(q)[:, None] * (e - s) for q, e in zip(s.T, eye, strict=True)]


@dataclass(frozen=True, eq=False)
class Point:
    """Value and derivatives of an objective at given weights.

    Attributes
    ----------
    w : ndarray, shape (n_rows, n_columns)
        One row for two classes, or one row per class.
    value : float
    gradient : ndarray, of the shape of w
    information : ndarray, shape (w.size, w.size), or callable that returns it
        Expected second derivatives of the loss, without the penalty.
    factors : callable, or None
        Returns a matrix of few rows, shape (n, w.size), whose product with itself is the information.
    penalty : ndarray, shape (w.size,)
    """

    w: np.ndarray
    value: float
    gradient: np.ndarray
    information: object
    penalty: np.ndarray
    factors: object = None

    @property
    def is_finite(self):
        """True if value and gradient are finite numbers."""
        return bool(np.isfinite(self.value) and np.isfinite(self.gradient).all())

    def is_better(self, old, fall):
        """True if the value is less than the old one by the fall or more; without a fall, if the gradient is less."""
        if fall is None:
            return np.abs(self.gradient).max() < np.abs(old.gradient).max()
        return self.is_finite and self.value <= old.value + fall

    def step(self):
        """Newton step by the information, of the shape of w."""
        g, penalty = self.gradient.ravel(), self.penalty
        if self.factors is not None:
            F = self.factors()
            # Where nothing is penalized, a little: the inverse must exist, and the factors outweigh it.
            D = np.maximum(penalty, 0.01 * penalty.max(initial=1e-6))
            inner = np.eye(len(F)) + (F / D) @ F.T
            u = g / D
            step = u - (F.T @ cho_solve(cho_factor(inner), F @ u)) / D
        else:
            H = self.information() if callable(self.information) else self.information
            H = H + np.diag(penalty)
            H[np.diag_indices_from(H)] += RIDGE * max(H.diagonal().max(), 1e-6)
            step = cho_solve(cho_factor(H), g)
        return -step.reshape(self.w.shape)


class LinearObjective:
    """The penalized loss of bags of a linear model.

    Parameters
    ----------
    loss : BagLoss
    Z : ndarray or sparse array, shape (n_rows, n_columns)
        Features; a constant column is the intercept.
    observed : BagCounts
    penalty : float or ndarray, shape (n_columns,), default 0.0
        Weight of half of the square of each weight: ``1 / C``, and 0 for a free intercept.
    linear : ndarray, shape (1, n_columns) or (n_classes, n_columns), optional
        What is subtracted, times the weights.

    Notes
    -----
    The rows are kept in the order of their bags, which makes sums over bags some times as fast.
    """

    def __init__(self, loss, Z, observed, penalty=0.0, linear=None):
        if (observed.bags[1:] < observed.bags[:-1]).any():
            order = by_bag(observed.bags, len(observed.sizes))
            Z = Z[order] if sp.issparse(Z) else Z.take(order, axis=0)
            observed = observed.reordered(order)
        self.loss, self.Z, self.observed = loss, Z, observed
        self.penalty, self.linear = np.broadcast_to(penalty, Z.shape[1]), linear
        self.n, self._state = int(observed.sizes.sum()), None

    def changed(self, *, loss=None, penalty=None, counts=None):
        """Copy the objective with another loss or penalty, or other counts.

        Parameters
        ----------
        loss : BagLoss, optional
        penalty : ndarray, shape (n_columns,), optional
        counts : ndarray, shape (n_bags,), optional

        Returns
        -------
        LinearObjective
        """
        loss = self.loss if loss is None else loss
        penalty = self.penalty if penalty is None else penalty
        observed = (
            self.observed if counts is None else replace(self.observed, counts=counts)
        )
        return LinearObjective(loss, self.Z, observed, penalty, self.linear)

    def at(self, w):
        """Evaluate the objective at given weights.

        Parameters
        ----------
        w : ndarray, shape (1, n_columns) or (n_classes, n_columns)

        Returns
        -------
        Point
        """
        scores = one_column(self.Z @ w.T)
        value, slope, self._state = self.loss.evaluate(
            scores, self.observed, self._state
        )
        # eq: eq-counts-objective
        value += 0.5 * float(np.sum(self.penalty * w * w))
        gradient = (self.Z.T @ self.observed.of_rows(slope)).T.reshape(w.shape)
        gradient = gradient + self.penalty * w
        if self.linear is not None:
            value, gradient = value - np.sum(self.linear * w), gradient - self.linear
        return self._point(w, scores, float(value), gradient, self._state)

    def _point(self, w, scores, value, gradient, state):
        """Make a `Point` whose curvature is computed only if a step needs it, as few rows where possible."""
        check_time()
        return Point(
            w, value, gradient, partial(self.information, scores, state),
            np.tile(self.penalty, len(w)),
            partial(self.factors, scores, state) if self.has_few_factors(w) else None,
        )  # fmt: skip

    def has_few_factors(self, w):
        """True if a step at given weights is computed from `factors`, and not from the information."""
        rows = self.loss.n_factors(len(w)) * len(self.observed.sizes)
        if w.size <= MOST_WEIGHTS:
            return self.loss.by_bag and rows < w.size
        return self.loss.by_bag and rows**2 * w.size <= MOST_WORK

    def factors(self, scores, state=None):
        r"""Factors of the information: :math:`\sum_{i \in B_k} a_{mi} \otimes x_i` for each factor and bag.

        Parameters
        ----------
        scores : ndarray, shape (n_rows,) or (n_rows, n_classes)
        state : object, optional
            State of the loss at these scores, from `BagLoss.evaluate`.

        Returns
        -------
        ndarray, shape (n_factors * n_bags, n_weights)
        """
        sums = self.observed.weighted_sums
        return np.vstack(
            [
                np.hstack([sums(c, self.Z) for c in a.reshape(len(a), -1).T])
                for a in self.loss.factors(scores, self.observed, state)
            ]
        )

    def information(self, scores, state=None):
        """Expected second derivatives of the loss, shape (n_weights, n_weights); parameters as of `factors`."""
        if self.loss.by_bag:
            F = self.factors(scores, state)
            return F.T @ F
        factors = [
            a.reshape(len(a), -1)
            for a in self.loss.factors(scores, self.observed, state)
        ]

        def weights(a, b):
            return self.observed.of_rows(sum(f[:, a] * f[:, b] for f in factors))

        return gram_blocks(self.Z, weights, factors[0].shape[1])

    def solve(self, start, max_iter=1000, tol=1e-5):
        """Find weights at a local minimum; see `fisher_scoring`.

        By L-BFGS where the curvature would be too large a matrix, or where scoring is slow, because the observed
        curvature is far from the expected one.

        Parameters
        ----------
        start : ndarray, shape (1, n_columns) or (n_classes, n_columns)
        max_iter : int
        tol : float

        Returns
        -------
        Solution
        """
        if start.size > MOST_WEIGHTS and not self.has_few_factors(start):
            return descend(self.at, start, self.n, max_iter, tol)
        fast = fisher_scoring(self.at, start, self.n, min(max_iter, PATIENCE), tol)
        if fast.settled or max_iter <= PATIENCE:
            return fast
        tol *= min(1.0, MANY / self.n)
        slow = descend(self.at, fast.w, self.n, max_iter - fast.n_iter, tol)
        return replace(slow, n_iter=fast.n_iter + slow.n_iter)


def linear_objective(loss, Z, observed, penalty=0.0, linear=None):
    """Make the `LinearObjective` of features in memory or in chunks, with its parameters."""
    if isinstance(Z, InChunks):
        return Z.objective(loss, observed, penalty, linear)
    return LinearObjective(loss, Z, observed, penalty, linear)


def weighted_gram(Z, weights):
    r""":math:`\sum_i a_i x_i x_i^\top`, shape (n_columns, n_columns)."""
    if sp.issparse(Z):
        return (Z.T @ sp.diags_array(weights) @ Z).toarray()
    return sum(x.T @ (x * weights[rows, None]) for rows, x in blocks(Z))


def gram_blocks(Z, weights, K):
    """Symmetric matrix of K by K blocks, of which block (a, b) is `weighted_gram` for ``weights(a, b)``."""
    H = np.empty((K, K), object)
    for a in range(K):
        for b in range(a, K):
            H[a, b] = weighted_gram(Z, weights(a, b))
            H[b, a] = H[a, b].T
    return np.block(H.tolist())


@dataclass(frozen=True, eq=False)
class Solution:
    """Result of a solver.

    Attributes
    ----------
    w : ndarray, shape (1, n_columns) or (n_classes, n_columns)
    value : float
        Of the objective.
    n_iter : int
    gap : float
        Largest entry of the gradient per instance.
    settled : bool
        True if the last step was short, too.
    """

    w: np.ndarray
    value: float
    n_iter: int
    gap: float
    settled: bool = True


def fisher_scoring(at, start, n, max_iter=1000, tol=1e-5):
    """Find a local minimum by Newton steps with the expected curvature, halved until the objective falls.

    Parameters
    ----------
    at : callable
        From weights to a `Point`.
    start : ndarray, shape (1, n_columns) or (n_classes, n_columns)
    n : int
        Instances.
    max_iter : int
    tol : float
        Bound on the entries of the gradient per instance. The last step must be short, too.

    Returns
    -------
    Solution
    """
    point, n_iter = at(start), 0
    if not point.is_finite:
        raise ValueError(
            f"a loss must give finite numbers, got the value {point.value}"
        )
    while True:
        step = point.step()
        slope = float(np.sum(point.gradient * step))
        gap = float(np.abs(point.gradient).max() / n)
        if gap <= tol and -slope <= SETTLED:
            # This last step is short: it is taken without a look.
            return Solution(point.w + step, point.value + slope / 2, n_iter, gap)
        if n_iter == max_iter:
            break
        # A step too short for the objective to tell is judged by the gradient.
        tiny = -slope <= ROUNDING * abs(point.value)
        for halvings in range(1 if tiny else HALVINGS):
            rate = 0.5**halvings
            new = at(point.w + rate * step)
            if new.is_better(point, None if tiny else ARMIJO * rate * slope):
                break
        else:
            break
        point, n_iter = new, n_iter + 1
    return Solution(point.w, point.value, n_iter, gap, False)


def descend(at, start, n, max_iter=1000, tol=1e-5):
    """Find a local minimum by L-BFGS, with the parameters of `fisher_scoring`; needs no curvature."""

    def objective(flat):
        point = at(flat.reshape(start.shape))
        return point.value / n, point.gradient.ravel() / n

    options = {"maxiter": max_iter, "gtol": tol, "ftol": 0.0, "maxfun": 2 * max_iter}
    end = minimize(
        objective, start.ravel(), method="L-BFGS-B", jac=True, options=options
    )
    gap = float(np.abs(end.jac).max())
    return Solution(end.x.reshape(start.shape), n * end.fun, int(end.nit), gap)
