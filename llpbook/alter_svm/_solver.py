r"""Solver of alter-∝SVM: from several starts, through levels of C, in turns of a Newton step and a sort.

The problem has many local minima, and no known method is sure to find the lowest one. Of several starts the one with
the lowest objective is kept (`minimize`). A start has these steps:

1. *First labels.* In each bag as many positives as its share says, at random or by given scores.
2. *Levels.* C rises from a small value to its final one (`run_levels`). A level begins with the labels and weights at
   which the previous level ended.
3. *Turns* of a level (`Start.turn`). A Newton step changes the weights for the current labels; the kinks of the hinges
   are rounded, so that they have second derivatives. Then each bag gets the best labels for the new scores, by a sort.
   If the objective is higher than before, the step is shortened to the point where the objective is lowest along it,
   and the labels are chosen again. So the objective does not rise from turn to turn. A level ends when the objective
   falls by less than a small share of itself (`Start.alternate`).
4. *Finish.* The last turns have a narrower rounding. Only the best start is finished exactly (`finish_exactly`): an
   exact support vector machine and the best labels in turn, until the objective falls no more.

A turn costs :math:`O(n d^2 + n \log n)` time, or less if fewer instances than features are at a kink. Some fifty turns
per start are usual. Memory holds one copy of the features, and for many features another one in single precision.
"""

import numpy as np
from joblib import Parallel, delayed
from sklearn.utils import check_random_state
from threadpoolctl import threadpool_limits

from .._linear import TINY, Rounded, zero_of_slope
from ._layout import Layout, rounded_hinge
from ._steps import bag_step, first_level, levels, objective, svm_step

#: Width over which kinks are rounded while C rises, and at the finish of a start, in units of a score. A wide kink
#: contains many instances, so a Newton step is long; a narrow kink is nearer to the hinge.
WIDTH, FINISH_WIDTH = 0.5, 0.15
#: Width at which an exact support vector machine begins where that for nearly the same labels is known.
NEXT_WIDTH = 0.006
#: The paper's first C, in units of the last, and its factor from one C to the next.
PAPER_FIRST, PAPER_FACTOR = 1.5e-5, 1.5
#: Relative fall of the objective in a turn at which a level ends, and at which the finish of a start ends.
LEVEL_TOL, FINISH_TOL = 3e-4, 1e-4
#: Factor of these tolerances after a shortened step, which lowers the objective less.
SHORT = 0.1
#: Fewest turns of a level, since the first begins with the weights of another C; and most turns.
MIN_TURNS, MAX_TURNS = 2, 100
#: Most exact turns of the best start, relative fall of the objective at which they end, and relative gap to which
#: their support vector machines are solved.
MAX_EXACT, EXACT_TOL, EXACT_GAP = 5, 1e-5, 1e-6
#: Above so many entries the turns use single precision: their time is bound by memory bandwidth.
LIGHT = 500_000
#: The largest linear system of a turn that is factorized; conjugate gradients solve larger ones approximately.
LARGEST = 300
#: With fewer instances than this at a kink the curvature along the intercept is unreliable, so the intercept is
#: searched by itself before the Newton step.
LEAST_BAND = 5


class Start:
    """One start: labels y, weights w, intercept b, scores f. Turns use ``light``, the features or a rounded copy."""

    def __init__(self, X, light, layout, y, intercept):
        self.X, self.light, self.layout, self.intercept = X, light, layout, intercept
        self.w, self.b, self.f, self.y = np.zeros(X.shape[1]), 0.0, np.zeros(len(y)), y
        self.value, self.gap, self.n_turns = np.inf, np.inf, 0

    def alternate(self, C, width, tol):
        """Take turns until the rounded objective falls by less than ``tol`` of itself; return its values."""
        values = [self.rounded_objective(C, width)]
        for _ in range(MAX_TURNS):
            value, whole = self.turn(C, width, values[-1])
            least = (tol if whole else SHORT * tol) * value
            values.append(value)
            self.n_turns += 1
            if len(values) > MIN_TURNS and values[-2] - value <= least:
                break
        return values

    def turn(self, C, width, last):
        """Take a Newton step and the best labels; return the rounded objective, and True after a whole step."""
        problem = self.rounded_problem(C, width)
        step = self.newton_step(problem)
        w, f = self.w, self.f
        value = self.move(step, 1.0, C, width)
        if value <= last:
            return value, True
        back = zero_of_slope(problem.slope_along(w, f, step), 0.0, 1.0) - 1
        return self.move(step, back, C, width), False

    def rounded_problem(self, C, width):
        """The support vector machine for the current labels, with rounded kinks."""
        ones = np.ones(len(self.y))
        return Rounded(self.light, self.y, ones, C * ones, self.intercept, width, 0.5)

    def newton_step(self, problem):
        """Compute a Newton step; if few instances are in the band, move the intercept first."""
        _, gradient, pull, band = problem.derivatives(self.w, self.f)
        shift = problem.best_shift(self.f, pull, band, LEAST_BAND)
        if shift:
            self.b, self.f = self.b + shift, self.f + shift
            _, gradient, pull, band = problem.derivatives(self.w, self.f)
        return problem.newton_step(gradient, pull, band, LARGEST)

    def move(self, step, part, C, width):
        """Take a part of a step, and the best labels there; return the rounded objective."""
        d_w, d_b, d_f = step
        self.w, self.b = self.w + part * d_w, self.b + part * d_b
        self.f = self.f + part * d_f
        self.y = self.layout.best_labels(self.f, C, width)
        return self.rounded_objective(C, width)

    def rounded_objective(self, C, width):
        """The objective with rounded hinges."""
        hinges = rounded_hinge(self.y * self.f, width).sum()
        ridge = self.w @ self.w / 2
        return float(ridge + C * hinges + self.layout.share_cost(self.y))

    def objective(self, w, f, y, C):
        """The objective with exact hinges."""
        at = self.layout
        return float(objective(w, f, y, at.bags, at.shares, C, at.penalties))

    def exactly(self, w, b, C):
        """Weights and intercept, with their scores, best labels and exact objective."""
        f, at = self.X @ w + b, self.layout
        y = bag_step(f, at.bags, at.shares, C, at.penalties)
        return w, b, f, y, self.objective(w, f, y, C)

    def exact_svm(self, X, nu, C, width=NEXT_WIDTH):
        """Fit the exact support vector machine for the current labels; ``nu`` are multipliers near the solution."""
        warm, intercept = (self.w, self.b, nu, width), self.intercept
        return svm_step(X, self.y, C, intercept=intercept, warm=warm, tol=EXACT_GAP)


def run_levels(start, annealing, C):
    """Run all levels of a start, then its finish; return the start."""
    values = [C]
    if annealing == "fast":
        values = levels(C, first_level(start.X, start.y))
    elif annealing == "paper":
        values = levels(C, PAPER_FIRST * C, factor=PAPER_FACTOR)
    for level in values:
        start.alternate(level, WIDTH, LEVEL_TOL)
    start.alternate(C, FINISH_WIDTH, FINISH_TOL)
    _, _, start.f, start.y, start.value = start.exactly(start.w, start.b, C)
    return start


def finish_exactly(start, C):
    """Alternate the exact support vector machine and best labels until the objective falls no more; store the gap.

    The gap is an upper bound of the relative fall of the objective that is possible with the same labels.
    """
    nu = C * start.rounded_problem(C, FINISH_WIDTH).multipliers(start.f)
    for turn in range(MAX_EXACT):
        width = NEXT_WIDTH if turn else FINISH_WIDTH
        w, b, nu, *_ = start.exact_svm(start.light, nu, C, width)
        w, b, f, y, value = start.exactly(w, b, C)
        fall = start.value - value
        if fall > 0:
            start.w, start.b, start.f, start.y, start.value = w, b, f, y, value
        if fall <= EXACT_TOL * value:
            break
    w, b, *_, gap = start.exact_svm(start.X, nu, C)
    best = start.objective(w, start.X @ w + b, start.y, C)
    start.gap = float(gap + (start.value - best) / max(start.value, TINY))


def share_error(start):
    """Mean error of the shares of predicted labels, bags weighted by size."""
    bags, shares = start.layout.bags, start.layout.shares
    return np.abs(np.bincount(bags, (start.f > 0) - shares[bags])).sum() / len(bags)


def minimize(
    X, bags, shares, C, penalties, *, intercept=True, annealing="fast", scores=None,
    n_init=10, order=None, seed=0, n_jobs=None, progress=None,
):  # fmt: skip
    r"""Find the lowest of several local minima of `objective`, one for each start.

    :math:`O(n d^2 + n \log n)` per turn, or less if fewer instances than features are at a kink; some fifty turns per
    start. No matrix is n x n.

    Parameters
    ----------
    X : ndarray or sparse array, shape (n_instances, n_features)
    bags, shares, C, penalties
        As for `objective`.
    intercept : bool, default True
    annealing : {"fast", "paper", "none"}, default "fast"
        As for `AlterSVM`.
    scores : ndarray, shape (n_instances,), optional
        The largest scores in each bag are the first positives, and there is one start. Without scores the first labels
        are random, with as many positives in each bag as its share says.
    n_init : int, default 10
    order : ndarray of int, shape (n_instances,), optional
        Random labels are drawn for instances in this order.
    seed : int or RandomState, default 0
    n_jobs : int, optional
        See `joblib.Parallel`; one thread per start.
    progress : callable, optional
        Called with a text after each start, in the calling thread.

    Returns
    -------
    best : Start
        With ``w``, ``b``, ``value``, ``gap`` and ``n_turns``; ``y`` and ``f`` are in the order ``layout.order``.
    starts : list of (float, float)
        Objective and mean error of the shares for each start, before the best one is finished exactly.
    """
    order = np.arange(len(bags)) if order is None else order
    layout = Layout(order, bags, shares, penalties)
    Z, dense = X[layout.order], isinstance(X, np.ndarray)
    # An offset of the features moves b alone; without it no digits are lost.
    center = Z.mean(axis=0) if dense and intercept else np.zeros(X.shape[1])
    if dense:
        Z -= center
    light = Z.astype(np.float32) if dense and Z.size > LIGHT else Z
    seeds = check_random_state(seed).randint(2**31 - 1, size=n_init)
    draws = (np.random.RandomState(one).random_sample(len(bags)) for one in seeds)
    first = draws if scores is None else [scores[layout.order]]

    def run(scores):
        y = layout.first_labels(scores)
        return run_levels(Start(Z, light, layout, y, intercept), annealing, C)

    best, starts = None, []
    with threadpool_limits(1):
        pool = Parallel(n_jobs, prefer="threads", return_as="generator")
        for start in pool(delayed(run)(f) for f in first):
            starts.append((start.value, share_error(start)))
            best = start if best is None or start.value < best.value else best
            if progress:
                progress(f"lowest objective {best.value:.6g}")
        finish_exactly(best, C)
    best.b -= center @ best.w
    return best, starts
