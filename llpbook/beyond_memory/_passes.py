"""Passes over the chunks, and Newton's method on their sums."""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning

from ..base import bag_counts, warn
from ..mean_map import predicted_counts
from ._chunks import Engine, Layout, thinned
from ._sums import count_terms, newton_decrement, partition_terms

#: Rows, and share of the rows, from which the passes over all chunks start: the solution on some chunks is near.
START_ROWS, START_SHARE = 200_000, 0.05
#: Newton steps, in standard errors: one that needs no look at the objective; one after which MeanMap's Hessian stays as
#: it is; and how far the weights go before that of the counts is computed anew.
SHORT, NEAR, FAR = 0.1, 0.01, 1.0


def mean_map_chunk(frame, layout, w):
    """`partition_terms` of a chunk."""
    return partition_terms(w, layout.matrix(frame))


def codes_of(frame, layout, labels):
    """The bags of a chunk in the order of the first pass."""
    names = pd.Index(layout.bag_column(frame), tupleize_cols=False)
    codes = pd.Index(labels, tupleize_cols=False).get_indexer(names)
    if (codes < 0).any():
        raise ValueError(
            f"bag {names[codes < 0].tolist()[0]!r} was not there in the first pass: chunks must not change"
        )
    return codes


def counts_chunk(frame, layout, w, labels, shares, covariances, exact_up_to, curved):
    """`count_terms` of a chunk."""
    known = bag_counts(codes_of(frame, layout, labels), shares, covariances)
    return count_terms(w, layout.matrix(frame), known, exact_up_to, curved)


def predictions_chunk(frame, layout, w, labels):
    """`predicted_counts` of a chunk."""
    codes = codes_of(frame, layout, labels)
    return predicted_counts(layout.matrix(frame) @ w.T, codes, len(labels))


def mean_map_terms(passes, what, w, state, only, curved, mu, lam):
    """MeanMap's objective, its gradient and Hessian, of all instances from those of some chunks."""
    value, gradient, hessian = passes.total(what, mean_map_chunk, (w,), only)
    n = state.total.n
    value += lam / 2 * np.sum(w * w) - n * np.sum(mu * w)
    return value, gradient + lam * w - n * mu, hessian + lam * np.eye(w.size)


def counts_terms(passes, what, w, state, only, curved, data, model):
    """CountLogistic's objective, its gradient and Hessian, of all instances from those of some chunks."""
    more = {}
    for number, rows in state.rows.items():
        errors = None if data.covariances is None else data.covariances[rows]
        about = state.labels[number], data.proportions[rows], errors
        more[number] = (w, *about, model.exact_up_to, curved)
    value, gradient, hessian = passes.total(what, counts_chunk, more, only, curved)
    penalty = np.full(w.shape, 1 / model.C)
    if model.fit_intercept and not model.penalize_intercept:
        penalty[:, -1] = 0
    value, gradient = value + np.sum(penalty * w * w) / 2, gradient + penalty * w
    return value, gradient, hessian + np.diag(penalty.ravel()) if curved else None


@dataclass
class Passes:
    """Passes of a fit over its chunks, and Newton's method on their sums.

    Attributes
    ----------
    engine : Engine
    layout : Layout
    tol : float
    max_passes : int
    say : callable or None
        Called with a text after each pass.
    """

    engine: Engine
    layout: Layout
    tol: float
    max_passes: int
    say: object = None

    def with_constant(self, constant):
        """The same with the feature 1."""
        return replace(self, layout=replace(self.layout, constant=bool(constant)))

    def rows(self, only):
        """Instances in some chunks."""
        return sum(self.engine.sizes[number] for number in only)

    def some(self, state):
        """Chunks to start from, or None where all are needed."""
        least = max(START_ROWS, START_SHARE * state.total.n)
        return thinned(self.engine, state.total.n, least)

    def two(self):
        """Two chunks with rows, for what need not be exact."""
        filled = [number for number, size in self.engine.sizes.items() if size]
        return sorted({filled[0], filled[len(filled) // 2]})

    def total(self, what, function, more, only, curved=True):
        """Sums over chunks; of some chunks, times the share of the rows that they hold."""
        value, gradient, hessian = 0.0, 0.0, 0.0
        for _, found in self.engine.run(what, function, self.layout, more, only):
            if found is not None:
                value, gradient = value + found[0], gradient + found[1]
                hessian = hessian + found[2] if curved else None
        if only is None:
            return value, gradient, hessian
        times = self.rows(range(len(self.engine.chunks))) / self.rows(only)
        return times * value, times * gradient, times * hessian if curved else None

    def newton(
        self, what, terms, w, state, only=None, tol=None, hessian=None, most=None
    ):
        """Newton steps until one is short; a step that is long and goes up is halved.

        Where the last Hessian will do, none is computed: it is updated by what the gradients tell of it (Broyden,
        Fletcher, Goldfarb, Shanno). The Hessian of the counts costs as much as the rest and is an approximation, which
        the update improves.
        """
        counts, before, gap, step = terms.func is counts_terms, None, np.inf, 0.0
        moved = 0.0
        curved = hessian is None
        for n_iter in range(1, (most or self.max_passes) + 1):
            value, gradient, fresh = terms(self, what, w, state, only, curved)
            if before and gap > SHORT and not value <= before[1] + 1e-11 * abs(value):
                step, gap = step / 2, gap / 2
                w = before[0] + step
                continue
            if curved:
                hessian = fresh
            elif before:
                hessian = updated(hessian, step, gradient - before[2])
            before = w, value, gradient
            step, gap = newton_decrement(gradient, hessian)
            w, moved = w + step, gap + moved * (not curved)
            curved = moved > FAR if counts else gap > NEAR
            if self.say:
                self.say(f"{what} {n_iter}: a step of {gap:.2g} standard errors")
            if gap <= (tol or self.tol):
                break
        return w, n_iter, gap, hessian

    def warn_if_short(self, model):
        """Warn where the last step was not short."""
        if model.gap_ > self.tol:
            warn(
                f"{type(model).__name__} stopped after {model.n_iter_} passes with a step of {model.gap_:.2g} standard "
                f"errors, above tol={self.tol}; scale the features, penalize more, or raise max_passes",
                ConvergenceWarning,
            )


def shortened(passes, terms, w, state, only):
    """Weights halved until the objective falls no more.

    Where class means differ between bags, MeanMap's weights can be so large that all labels are sure, and Newton's
    steps from there lead anywhere.
    """
    value = terms(passes, "start", w, state, only, False)[0]
    while True:
        half = terms(passes, "start", w / 2, state, only, False)[0]
        if not half < value:
            return w
        w, value = w / 2, half


def predictions(passes, weights, state, shape):
    """`predicted_counts` of all chunks."""
    stated, found, expected = 0.0, np.zeros(shape, int), np.zeros(shape)
    more = {number: (weights, labels) for number, labels in state.labels.items()}
    run = passes.engine.run(
        "count of predictions", predictions_chunk, passes.layout, more
    )
    for number, part in run:
        if part is not None:
            stated += part[0]
            found[state.rows[number]] += part[1]
            expected[state.rows[number]] += part[2]
    return stated, found, expected


def updated(hessian, step, change):
    """The Hessian that maps the last step to the change of the gradient, as near as possible to the one before."""
    s, y = step.ravel(), change.ravel()
    if s @ y <= 0:
        return hessian
    Hs = hessian @ s
    return hessian - np.outer(Hs, Hs) / (s @ Hs) + np.outer(y, y) / (s @ y)
