"""Standard errors and rates of groups from chunks of whole bags that do not fit into memory at once."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from .._input import Chunks, Proportions
from .._linear import bag_counts
from ..base import BagData, error_covariances, one_column
from ..beyond_memory import Engine, Layout, noise_of, part_counts, read_chunks
from ._accuracy import check_classes
from ._cautions import caution, caution_of_rates, deviations
from ._covariance import Sandwich
from ._deviation import joined
from ._groups import group_sums, rate_table, read_groups
from ._sandwich import (
    BagSums,
    Linear,
    bag_squares,
    bag_sums,
    penalty_of,
    slack_of,
    split_model,
)
from ._table import (
    CoefficientTable,
    check_converged,
    check_level,
    check_maximum,
    make_table,
)
from ._units import in_units


class Fit:
    """A fitted model and its chunks after the first pass.

    Parameters
    ----------
    model, chunks, proportions, bags, features, n_jobs, check_chunks, verbose
        As for `chunk_coefficient_table`.
    group : hashable, optional
        A column that is read, too.
    """

    def __init__(
        self, model, chunks, proportions, bags, features, n_jobs, check_chunks, verbose,
        group=None,
    ):  # fmt: skip
        self.before, last = split_model(model)
        names = getattr(model, "feature_names_in_", None)
        features = names if features is None else features
        steps = () if self.before is None else tuple(s for _, s in self.before.steps)
        steps = tuple(s for s in steps if s not in (None, "passthrough"))
        engine = Engine("chunks", chunks, n_jobs, verbose)
        layout = Layout(bags, features, steps, group)
        check = {"noisy": noise_of(last), "check": check_chunks}
        data = read_chunks(engine, proportions, layout, "whole bags", **check)
        check_classes(data, last)
        check_columns(data.X, last, names)
        errors = last.proportion_errors
        covariances = None if errors is None else error_covariances(errors, data)
        shape = data.bags, data.proportions, covariances, data.frequencies
        laplace = last.proportion_noise == "laplace"
        self.known = replace(bag_counts(*shape), laplace=laplace)
        self.last, self.data, self.X = last, data, data.X
        self.weights = last.coef_
        if last.fit_intercept:
            self.weights = np.column_stack([last.coef_, last.intercept_])
            self.X = self.X.with_constant()
        self.penalty = penalty_of(last, self.weights)

    def sums(self, what, function, *args, group=None):
        """A pass: what ``function(Linear, *args)`` makes of each chunk."""
        X = replace(self.X, layout=replace(self.X.layout, group=group))
        loss = self.last.loss_
        of_model = self.weights, self.penalty, loss.exact_up_to, loss.bag_deviation
        counts = self.X.counts(self.known)
        shares = [part and self.data.proportions[part.rows] for part in X.parts]
        if group is not None:
            counts = zip(counts, shares, strict=True)
        more = [(function, given, of_model, args) for given in counts]
        return X.run(what, _linear if group is None else _grouped, more)

    def covariance(self, deviation=0.0):
        """The `Sandwich` of the weights, in two passes; with the warnings of `caution_of`."""
        passed = self.sums("pass over gradients", sums_and_deviations)
        found, parts = zip(*(one for _, one in passed), strict=True)
        gradient, hessian = (sum(one[j] for one in found) for j in (2, 3))
        sums = BagSums(self.data.n_instances, self.data.bags, gradient, hessian)
        J, L = check_maximum(self.weights, sums, self.penalty), len(sums.used)
        squares = self.sums("pass over squares", bag_squares, J)
        V = L / (L - 1) * sum(one for _, one in squares)
        check_converged(self.weights, sums, J, V, self.penalty, slack_of(self.last))
        whole = [joined(one) for one in zip(*parts, strict=True)]
        caution(len(self.data.bags), self.weights.size, whole, deviation)
        return Sandwich.of(V, L - len(V), self.weights, J, self.penalty)


def check_columns(X, last, names):
    """ValueError where chunks have other features than the model, or the same in another order."""
    columns = list(X.layout.features)
    if X.shape[1] != last.n_features_in_ or (
        names is not None and columns != list(names)
    ):
        wanted = f"{last.n_features_in_} features" if names is None else list(names)
        raise ValueError(
            f"features must be the columns that the model was fitted to, in their order, {wanted}, got {columns}"
        )


def sums_and_deviations(fit):
    """What the first pass makes of a chunk: `bag_sums`, and `deviations`."""
    scores = one_column(fit.Z @ fit.weights.T)
    return bag_sums(fit), deviations(scores, fit.Z, fit.known)


def _linear(X, codes, function, given, of_model, args):
    weights, penalty, exact_up_to, deviation = of_model
    of_bags = part_counts(codes, given), penalty, exact_up_to, codes
    return function(Linear(weights, X, *of_bags, deviation=deviation), *args)


def _grouped(X, codes, groups, function, given, of_model, args):
    return _linear(X, codes, function, given[0], of_model, (groups, given[1], *args))


def chunk_coefficient_table(
    model: Any, chunks: Chunks, proportions: Proportions, *, bags: Hashable,
    features: list | None = None, n_jobs: int | None = None, check_chunks: bool = True,
    verbose: int = 0, level: float = 0.95,
) -> CoefficientTable:  # fmt: skip
    """`coefficient_table` of bags that do not fit into memory at once.

    Parameters
    ----------
    model : CountLogistic or Pipeline
        Fitted to all these bags, in memory or by `llpbook.beyond_memory.fit_chunks`.
    chunks, proportions, bags, n_jobs, check_chunks, verbose
        As for `llpbook.beyond_memory.fit_chunks`; each bag is in one chunk. There are three passes.
    features : list, optional
        The columns of the features; those that the model was fitted to if not given, or all but ``bags``.
    level : float, default 0.95

    Returns
    -------
    CoefficientTable

    Raises
    ------
    NotIdentifiableError, ValueError, EngineError
        As of `coefficient_table` and of `llpbook.beyond_memory.fit_chunks`.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from llpbook import CountLogistic, fit_chunks
    >>> from llpbook.uncertainty import chunk_coefficient_table
    >>> rng = np.random.default_rng(0)
    >>> table = pd.DataFrame({"dose": rng.normal(size=1000), "bag": np.arange(1000) // 10})
    >>> ill = rng.random(1000) < 1 / (1 + np.exp(-2 * table["dose"]))
    >>> shares, chunks = ill.groupby(table["bag"]).mean(), [table[:500], table[500:]]
    >>> model = fit_chunks(CountLogistic(C=1000), chunks, shares, bags="bag")
    >>> found = chunk_coefficient_table(model, chunks, shares, bags="bag")
    >>> low, high = found.interval().loc["dose"]
    >>> bool(low < 2 < high)
    True
    """
    check_level(level)
    of_chunks = bags, features, n_jobs, check_chunks, verbose
    fit = Fit(model, chunks, proportions, *of_chunks)
    V = fit.covariance(fit.last.loss_.bag_deviation)
    columns = pd.DataFrame(columns=fit.X.layout.features)
    A, names = in_units(fit.before, fit.last, columns)
    sizes = fit.data.n_instances, len(fit.data.bags)
    return make_table(fit.weights, V, A, names, fit.last, *sizes, level)


def sums_of_chunk(fit, groups, shares, exact, rounding):
    """`group_sums` of the groups of a chunk, by name."""
    if groups.dtype == bool and not groups.any():
        return {}
    members, names = read_groups(groups, len(groups))
    data = BagData(fit.Z, fit.known.bags, shares, None) if exact else None
    sums = group_sums(fit, members, data, rounding)
    return dict(zip(names.tolist(), zip(*sums, strict=True), strict=True))


def chunk_group_rate(
    model: Any, chunks: Chunks, proportions: Proportions, group: Hashable, *,
    bags: Hashable, features: list | None = None, n_jobs: int | None = None, check_chunks: bool = True,
    verbose: int = 0, level: float = 0.95, rounding: float = 0.0,
) -> pd.DataFrame:  # fmt: skip
    """`group_rate` of bags that do not fit into memory at once.

    Parameters
    ----------
    model, chunks, proportions, bags, features, n_jobs, check_chunks, verbose, level
        As for `chunk_coefficient_table`. There are four passes.
    group : hashable
        The column of the chunks that says the group of each instance: True and False, of which True is the group, or
        names. It may be one of the features.
    rounding : float, default 0.0
        See `group_rate`.

    Returns
    -------
    DataFrame
        As of `group_rate`.

    Raises
    ------
    NotIdentifiableError, ValueError, EngineError
        As of `chunk_coefficient_table`.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from llpbook import CountLogistic, fit_chunks
    >>> from llpbook.uncertainty import chunk_group_rate
    >>> rng = np.random.default_rng(0)
    >>> table = pd.DataFrame({"old": rng.random(2000) < 0.5, "bag": np.arange(2000) // 20})
    >>> table["old"] = table["old"].astype(float)
    >>> ill = rng.random(2000) < 0.2 + 0.4 * table["old"]
    >>> shares, chunks = ill.groupby(table["bag"]).mean(), [table[:1000], table[1000:]]
    >>> model = fit_chunks(CountLogistic(C=1000), chunks, shares, bags="bag")
    >>> rates = chunk_group_rate(model, chunks, shares, "old", bags="bag")
    >>> rates["rate"].round(1).tolist()
    [0.2, 0.6]
    """
    check_level(level)
    of_chunks = bags, features, n_jobs, check_chunks, verbose
    fit = Fit(model, chunks, proportions, *of_chunks, group)
    V, exact = fit.covariance(), not fit.known.errors.any()
    run = fit.sums("pass over groups", sums_of_chunk, exact, rounding, group=group)
    totals: dict = {}
    for _, found in run:
        for name, sums in found.items():
            before = totals.get(name, [0.0] * len(sums))
            totals[name] = [a + b for a, b in zip(before, sums, strict=True)]
    if not totals:
        raise ValueError("group must hold True for at least one instance")
    names = pd.Index(list(totals)).sort_values()
    sums = [np.array(column) for column in zip(*map(totals.get, names), strict=True)]
    table = rate_table(sums, V, names.to_numpy(), fit.data.classes, level)
    return caution_of_rates(table, V, len(fit.data.bags), fit.weights.size)
