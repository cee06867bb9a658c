"""Standard errors and rates of groups from chunks of whole bags that do not fit into memory at once."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from .._input import Chunks, Proportions
from ..base import BagData, one_column
from ..beyond_memory import Engine, Layout, in_chunk, noise_of, read_chunks
from ._accuracy import check_classes
from ._cautions import caution, caution_of_rates, deviations
from ._covariance import Sandwich
from ._deviation import joined
from ._groups import group_sums, rate_table, read_groups
from ._sandwich import BagSums, bag_squares, bag_sums, split_model
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
    model, chunks, proportions, bags, counts, features, n_jobs, check_chunks, verbose
        As for `chunk_coefficient_table`.
    group : hashable, optional
        A column that is read, too.
    """

    def __init__(
        self, model, chunks, proportions, *, bags, counts, features, n_jobs,
        check_chunks, verbose, group=None,
    ):  # fmt: skip
        self.before, self.last = split_model(model)
        names = getattr(model, "feature_names_in_", None)
        features = names if features is None else features
        steps = () if self.before is None else tuple(s for _, s in self.before.steps)
        steps = tuple(s for s in steps if s not in (None, "passthrough"))
        engine = Engine("chunks", chunks, n_jobs, verbose)
        layout = Layout(bags, features, steps, group, counts)
        data = read_chunks(
            engine, proportions, layout, "whole bags", noisy=noise_of(self.last),
            check=check_chunks,
        )  # fmt: skip
        check_classes(data, self.last)
        check_columns(data.X, self.last, names)
        self.data, self.problem = data, self.last.problem(data)

    def sums(self, what, function, *args, group=None):
        """Run a pass: pairs of a part and of ``function(Problem, *args)`` for its chunk."""
        X, observed = self.problem.Z, self.problem.observed
        X = replace(X, layout=replace(X.layout, group=group))
        tasks = []
        for part, counts in zip(X.parts, X.counts(observed), strict=True):
            problem = replace(self.problem, Z=None, observed=counts, used=None)
            shares = part and self.data.proportions[part.rows]
            own = args if group is None else (shares, *args)
            tasks.append((function, problem, own))
        return X.run(what, _of_chunk if group is None else _of_groups, tasks)

    def covariance(self, deviation=0.0):
        """Compute the `Sandwich` of the weights in two passes, with the warnings of `caution_of`."""
        problem, n_bags = self.problem, len(self.data.bags)
        weights, curvature = problem.weights, problem.curvature
        chunks = [one for _, one in self.sums("pass over gradients", sums_of_bags)]
        gradient = sum(sums.gradient for sums, _ in chunks)
        hessian = sum(sums.hessian for sums, _ in chunks)
        sums = BagSums(self.data.n_instances, self.data.bags, gradient, hessian)
        J = check_maximum(weights, sums, curvature)
        squares = self.sums("pass over squares", bag_squares, J)
        V = n_bags / (n_bags - 1) * sum(one for _, one in squares)
        check_converged(weights, sums, J, V, curvature, problem.slack)
        of_classes = zip(*(parts for _, parts in chunks), strict=True)
        whole = [joined(parts) for parts in of_classes]
        caution(n_bags, weights.size, whole, deviation)
        return Sandwich.of(V, n_bags - len(V), weights, J, curvature)


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


def sums_of_bags(fit):
    """Compute the `bag_sums` and the `deviations` of a chunk."""
    scores = one_column(fit.Z @ fit.weights.T)
    return bag_sums(fit), deviations(scores, fit.Z, fit.observed)


def _of_chunk(X, codes, function, problem, args, times=None):
    observed = in_chunk(problem.observed, codes, times)
    return function(replace(problem, Z=X, observed=observed), *args)


def _of_groups(X, codes, groups, function, problem, args, times=None):
    return _of_chunk(X, codes, function, problem, (groups, *args), times)


def chunk_coefficient_table(
    model: Any, chunks: Chunks, proportions: Proportions, *, bags: Hashable,
    counts: Hashable | None = None, features: list | None = None, n_jobs: int | None = None, check_chunks: bool = True,
    verbose: int = 0, level: float = 0.95,
) -> CoefficientTable:  # fmt: skip
    """`coefficient_table` of bags that do not fit into memory at once.

    Parameters
    ----------
    model : CountLogistic or Pipeline
        Fitted to all these bags, in memory or by `llpbook.beyond_memory.fit_chunks`.
    chunks, proportions, bags, counts, n_jobs, check_chunks, verbose
        As for `llpbook.beyond_memory.fit_chunks`; each bag is in one chunk. There are three passes.
    features : list, optional
        The columns of the features; those that the model was fitted to if not given, or all others.
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
    >>> table = chunk_coefficient_table(model, chunks, shares, bags="bag")
    >>> low, high = table.interval().loc["dose"]
    >>> bool(low < 2 < high)
    True
    """
    check_level(level)
    fit = Fit(
        model, chunks, proportions, bags=bags, counts=counts, features=features,
        n_jobs=n_jobs, check_chunks=check_chunks, verbose=verbose,
    )  # fmt: skip
    V = fit.covariance(fit.last.loss_.bag_deviation)
    columns = pd.DataFrame(columns=fit.data.X.layout.features)
    A, names = in_units(fit.before, fit.last, columns)
    n, n_bags = fit.data.n_instances, len(fit.data.bags)
    return make_table(fit.problem.weights, V, A, names, fit.last, n, n_bags, level)


def sums_of_chunk(fit, groups, shares, exact, rounding):
    """`group_sums` of the groups of a chunk, by name."""
    if groups.dtype == bool and not groups.any():
        return {}
    members, names = read_groups(groups, len(groups))
    data, observed = None, fit.observed
    if exact:
        times = observed.frequencies
        data = BagData(fit.Z, observed.bags, shares, None, frequencies=times)
    sums = zip(*group_sums(fit, members, data, rounding), strict=True)
    return dict(zip(names.tolist(), sums, strict=True))


def chunk_group_rate(
    model: Any, chunks: Chunks, proportions: Proportions, group: Hashable, *,
    bags: Hashable, counts: Hashable | None = None, features: list | None = None,
    n_jobs: int | None = None, check_chunks: bool = True, verbose: int = 0, level: float = 0.95, rounding: float = 0.0,
) -> pd.DataFrame:  # fmt: skip
    """`group_rate` of bags that do not fit into memory at once.

    Parameters
    ----------
    model, chunks, proportions, bags, counts, features, n_jobs, check_chunks, verbose, level
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
    fit = Fit(
        model, chunks, proportions, bags=bags, counts=counts, features=features,
        n_jobs=n_jobs, check_chunks=check_chunks, verbose=verbose, group=group,
    )  # fmt: skip
    V, exact = fit.covariance(), not fit.problem.observed.errors.any()
    run = fit.sums("pass over groups", sums_of_chunk, exact, rounding, group=group)
    totals: dict = {}
    masks = set()
    for _, groups in run:
        masks |= {isinstance(name, bool) for name in groups}
        for name, sums in groups.items():
            before = totals.get(name, [0.0] * len(sums))
            totals[name] = [a + b for a, b in zip(before, sums, strict=True)]
    if not totals:
        raise ValueError("group must hold True for at least one instance")
    if masks == {True, False}:
        raise ValueError(
            "group holds True and False in some chunks and names in others: give it one type in all chunks"
        )
    names = pd.Index(list(totals)).sort_values()
    sums = [np.array(column) for column in zip(*map(totals.get, names), strict=True)]
    table = rate_table(sums, V, names.to_numpy(), fit.data.classes, level)
    n_weights = fit.problem.weights.size
    return caution_of_rates(table, V, len(fit.data.bags), n_weights)
