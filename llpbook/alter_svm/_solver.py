"""How fast the alternation goes: one Newton step on a rounded hinge a turn, and a sort of each bag in place."""

from dataclasses import dataclass

import numpy as np
from joblib import Parallel, delayed
from sklearn.utils import check_random_state
from threadpoolctl import threadpool_limits

from .._hinge import newton_direction, zero_of_slope
from ._steps import (
    bag_step,
    count_cost,
    first_level,
    levels,
    objective,
    svm_step,
)

#: Over how much the kink of the hinge is rounded while C is raised, and then in turn to finish a start.
WIDTH, FINISH = 0.5, (0.15,)
#: The paper's first C as a share of the last, and its factor.
PAPER_FIRST, PAPER_FACTOR = 1.5e-5, 1.5
#: Relative fall of the objective at which a level ends, and a width of the finish; turns after which both do.
LEVEL_TOL, FINISH_TOL, MAX_TURNS = 3e-4, 1e-4, 100
#: By how much less than that a turn may fall whose step was shortened.
SHORT = 0.1
#: Exact turns that end a fit, the fall of the objective at which they do, and the gap of the machines in them.
MAX_EXACT, EXACT_TOL, EXACT_GAP = 5, 1e-5, 1e-6
#: Above so many numbers turns read them in single precision: they wait for memory.
LIGHT = 5_000_000
#: The largest system of a turn that is factorised.
LARGEST = 300
#: Fewer instances than this at the kink say too little about the intercept, which is then searched by itself.
LEAST_BAND = 5


def rounded_hinge(z, width):
    """The hinge max(0, 1 - z) with its kink rounded, and minus its slope."""
    slope = np.clip(0.5 + (1 - z) / width, 0, 1)
    return slope * (1 - z) + width / 2 * slope * (1 - slope), slope


@dataclass
class Block:
    """Bags of one size, whose instances stand in a row; ``costs`` of one more positive, by rank."""

    rows: slice
    size: int
    shares: np.ndarray
    costs: np.ndarray


class Layout:
    """Instances in an order where each bag stands in a row, bags of one size together.

    ``order`` is a given order of instances, whatever theirs is: equal scores of a bag become positive in it.
    """

    def __init__(self, order, bags, shares, penalties, loss):
        sizes = np.bincount(bags, minlength=len(shares))
        used, first = np.unique(bags[order], return_index=True)
        used = used[np.lexsort((first, sizes[used]))]
        place = np.empty(len(shares), int)
        place[used] = np.arange(len(used))
        self.order = order[np.argsort(place[bags[order]], kind="stable")]
        self.bags, self.shares, self.penalties = bags[self.order], shares, penalties
        self.loss, self.blocks, start = loss, [], 0
        for size in np.unique(sizes[used]):
            own = used[sizes[used] == size]
            rows = slice(start, start + size * len(own))
            column = shares[own, None], penalties[own, None]
            costs = count_cost(np.arange(size), size, *column, loss)
            self.blocks.append(Block(rows, size, shares[own], costs))
            start = rows.stop

    def best_labels(self, f, C, width):
        """Labels as of `bag_step`, by the rounded hinge."""
        y = np.empty(len(f))
        for block in self.blocks:
            part = f[block.rows].reshape(-1, block.size)
            ranked = np.sort(part, axis=1)[:, ::-1]
            gain = rounded_hinge(-ranked, width)[0] - rounded_hinge(ranked, width)[0]
            count = (block.costs < C * gain).sum(axis=1)
            y[block.rows] = top(part, ranked, count).ravel()
        return y

    def top_labels(self, f):
        """As many positives in each bag as its share says, rounded: those with the largest scores."""
        y = np.empty(len(f))
        for block in self.blocks:
            part = f[block.rows].reshape(-1, block.size)
            count = np.round(block.size * block.shares).astype(int)
            y[block.rows] = top(part, np.sort(part, axis=1)[:, ::-1], count).ravel()
        return y


def top(part, ranked, count):
    """+1 for the ``count`` largest of each row, else -1; of equal ones the first."""
    last = np.take_along_axis(ranked, np.maximum(count - 1, 0)[:, None], axis=1)
    chosen = part >= np.where(count[:, None] > 0, last, np.inf)
    for row in np.flatnonzero(chosen.sum(axis=1) > count):
        first = np.argsort(-part[row], kind="stable")[: count[row]]
        chosen[row] = False
        chosen[row, first] = True
    return np.where(chosen, 1.0, -1.0)


class Start:
    """One start: labels, hyperplane and scores, from the first level to the last."""

    def __init__(self, X, layout, y, intercept, light=None):
        self.X, self.layout, self.y, self.intercept = X, layout, y, intercept
        self.light = X if light is None else light  # for turns
        self.w, self.b, self.f = np.zeros(X.shape[1]), 0.0, np.zeros(X.shape[0])
        self.value, self.n_turns = np.inf, 0

    def alternate(self, C, width, tol):
        """Turns at one level, until the objective of the rounded hinge falls no more; it never rises."""
        values = [self.rounded_value(C, width)]
        for _ in range(MAX_TURNS):
            slope = self.newton_step(C, width)
            value = self.relabel(C, width)
            whole = value <= values[-1]
            if not whole:
                self.shorten(slope)
                value = self.relabel(C, width)
            values.append(value)
            self.n_turns += 1
            fall = tol if whole else SHORT * tol  # a short step says less
            if len(values) > 2 and values[-2] - value <= fall * value:
                break
        return values

    def rounded_value(self, C, width):
        """The objective of the rounded hinge, for the labels as they are."""
        hinges = rounded_hinge(self.y * self.f, width)[0].sum()
        return C * hinges + objective(self.w, self.f, self.y, *self.problem(0.0))

    def relabel(self, C, width):
        """The exact labels; returns the objective of the rounded hinge."""
        self.y = self.layout.best_labels(self.f, C, width)
        return self.rounded_value(C, width)

    def newton_step(self, C, width):
        """Towards the machine for the labels as they are; returns the slope along the step, a function."""
        y, w = self.y, self.w
        slope = rounded_hinge(y * self.f, width)[1]
        at_kink = (slope > 0) & (slope < 1)
        unbalanced = abs(slope @ y) > 1e-6 * len(y)
        if self.intercept and unbalanced and at_kink.sum() < LEAST_BAND:
            self.search_intercept(width)
            slope = rounded_hinge(y * self.f, width)[1]
            at_kink = (slope > 0) & (slope < 1)
        X, f, band = self.light, self.f, np.flatnonzero(at_kink)
        signed = (C * slope * y).astype(X.dtype)
        g = w.astype(X.dtype) - signed @ X
        g_b = -float(signed.sum()) if self.intercept else None
        stiffness = np.full(len(band), C / width, X.dtype)
        d, d_b = newton_direction(X, band, stiffness, g, g_b, LARGEST)
        self.step, along = (d, d_b), X @ d + d_b
        self.along, self.w, self.b, self.f = along, w + d, self.b + d_b, f + along

        def along_step(t):
            pull = rounded_hinge(y * (f + t * along), width)[1] * y
            return w @ d + t * (d @ d) - C * (pull @ along)

        return along_step

    def shorten(self, slope):
        """Take back a part of the step, to where its slope vanishes."""
        start = slope(0.0)
        back = zero_of_slope(slope, 0.0, 1.0, 0.1 * abs(start)) - 1
        self.w, self.b = self.w + back * self.step[0], self.b + back * self.step[1]
        self.f = self.f + back * self.along

    def search_intercept(self, width):
        """The intercept for which the hinges of both classes pull alike; one of the class that is there, if one is."""
        y, f, k = self.y, self.f, max(int((self.y > 0).sum()) - 1, 0)

        def slope(shift):
            return -(y @ rounded_hinge(y * (f + shift), width)[1])

        kink = np.partition(y - f, k)[k]
        shift = zero_of_slope(slope, kink - width, kink + width, 1e-9 * len(f))
        self.b, self.f = self.b + shift, f + shift

    def problem(self, C):
        """Arguments that the steps share."""
        layout = self.layout
        return layout.bags, layout.shares, C, layout.penalties, layout.loss


def run_levels(start, annealing, C):
    """All levels, then the finish; returns the start."""
    first = C
    if annealing == "fast":
        first = first_level(start.X, start.y)
    elif annealing == "paper":
        first = PAPER_FIRST * C
    for level in levels(C, first, PAPER_FACTOR if annealing == "paper" else 3.0):
        start.alternate(level, WIDTH, LEVEL_TOL)
    for width in FINISH:
        start.alternate(C, width, FINISH_TOL)
    start.f = start.X @ start.w + start.b
    start.y = bag_step(start.f, *start.problem(C))
    start.value = objective(start.w, start.f, start.y, *start.problem(C))
    return start


def finish_exactly(start, C):
    """Exact machines and exact labels, until the objective falls no more."""
    nu = C * rounded_hinge(start.y * start.f, FINISH[-1])[1]
    for _ in range(MAX_EXACT):
        warm = start.w, start.b, nu, FINISH[-1]
        w, b, nu = svm_step(start.X, start.y, C, start.intercept, warm, EXACT_GAP)
        f = start.X @ w + b
        y = bag_step(f, *start.problem(C))
        value = objective(w, f, y, *start.problem(C))
        fall = start.value - value
        if fall > 0:
            start.w, start.b, start.f, start.y, start.value = w, b, f, y, value
        if fall <= EXACT_TOL * value:
            break


def share_error(start):
    """Mean error of the shares that signs of scores predict, each bag by its size."""
    layout = start.layout
    sizes = np.bincount(layout.bags, minlength=len(layout.shares))
    found = np.bincount(layout.bags, start.f > 0, minlength=len(layout.shares))
    return np.abs(found - sizes * layout.shares).sum() / len(start.f)


def minimise(
    X, bags, shares, C, penalties, loss="absolute", intercept=True, annealing="fast", scores=None,
    n_starts=10, order=None, seed=0, n_jobs=None, progress=None,
):  # fmt: skip
    r"""The lowest of some local minima of `objective`, one for each start.

    :math:`O(n d^2 + n \log n)` a turn, some fifty turns a start; with d above the number of instances at the kink,
    less; no matrix is n x n.

    Parameters
    ----------
    X : ndarray or sparse array, shape (n_instances, n_features)
    bags, shares, C, penalties, loss
        As for `objective`.
    intercept : bool, default True
    annealing : {"fast", "paper", "none"}, default "fast"
        As of `AlterSVM`.
    scores : ndarray, shape (n_instances,), optional
        The first labels are those of the largest scores in each bag; one start. Else they are random, with as many
        positives in each bag as its share says.
    n_starts : int, default 10
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
        With ``w``, ``b``, ``value`` and ``n_turns``; ``y`` and ``f`` are in the order ``layout.order``.
    starts : list of (float, float)
        Objective and mean error of the shares for each start, before the best one is finished exactly.
    """
    order = np.arange(len(bags)) if order is None else order
    layout = Layout(order, bags, shares, penalties, loss)
    Z, dense = X[layout.order], isinstance(X, np.ndarray)
    # An offset of the features moves b alone; without it no digits are lost.
    center = Z.mean(axis=0) if dense and intercept else np.zeros(X.shape[1])
    if dense:
        Z -= center
    light = Z.astype(np.float32) if dense and Z.size > LIGHT else None
    n_starts = n_starts if scores is None else 1
    seeds = check_random_state(seed).randint(2**31 - 1, size=n_starts)

    def run(one):
        draws = np.random.RandomState(one).random_sample(len(bags))
        first = draws if scores is None else scores[layout.order]
        y = layout.top_labels(first)
        return run_levels(Start(Z, layout, y, intercept, light), annealing, C)

    with threadpool_limits(1):
        pool = Parallel(n_jobs, prefer="threads", return_as="generator")
        best, found = None, []
        for start in pool(delayed(run)(one) for one in seeds):
            found.append((start.value, share_error(start)))
            best = start if best is None or start.value < best.value else best
            if progress:
                progress(f"lowest objective {best.value:.6g}")
        finish_exactly(best, C)
    best.b -= center @ best.w
    return best, found
