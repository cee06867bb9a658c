"""One function for all estimators whose fit reduces to sums over chunks."""

from builtins import map as in_this_process
from dataclasses import dataclass, replace
from functools import partial
from numbers import Real

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state
from sklearn.utils._tags import get_tags
from sklearn.utils.validation import check_is_fitted

from ..base import (
    BagData,
    check_bags,
    check_features,
    check_proportions,
    fill_empty_rows,
    told,
    warn,
    warn_of_moments,
)
from ..baselines import BagMeanRegression
from ..count_likelihood import CountLogistic, bag_counts
from ..discriminant import Gaussians, WeightedLDA, inverse_root, warn_of_rank, whitened
from ..invcal import InvCal
from ..mean_map import (
    MeanMap,
    class_means,
    counted_errors,
    mean_operator,
    predicted_counts,
    warn_of_errors,
)
from ..proportions import check_whole
from ._chunks import ChunkError, Engine, Layout, name_of, thinned, with_columns
from ._sums import (
    bag_sums,
    class_sums,
    count_terms,
    means_of_sums,
    merge,
    moments,
    newton_decrement,
    partition_terms,
    within_of_sums,
)

#: Rows, and share of the rows, from which the passes over all chunks start: the solution on some chunks is near.
START_ROWS, START_SHARE = 200_000, 0.05
#: Length of a Newton step, in standard errors, that ends such a start, and below which a step needs no check.
ROUGH = 0.1


def fit_chunks(
    estimator, chunks, proportions, *, bags, features=None, map=in_this_process,
    read=None, tol=1e-3, max_passes=50, timeout=600.0, verbose=0,
):  # fmt: skip
    r"""Fit an estimator to data that is read in chunks, with the answer of the fit in memory.

    Parameters
    ----------
    estimator : estimator or Pipeline
        `MeanMap`, `CountLogistic`, `InvCal` and `BagMeanRegression` with a linear kernel, or `WeightedLDA` with the
        scheme "sws". In a `Pipeline` the steps before it must be fitted already (such as a `ColumnTransformer`, fitted
        to one chunk that holds all categories), but the last of them may be a `StandardScaler`, which the first pass
        fits.
    chunks : sequence, or Dask DataFrame
        Each chunk is read several times. It is a path (.parquet, .feather, .csv), a DataFrame, a function without
        arguments that returns one, a Dask ``delayed``, or whatever ``read`` understands. Chunks without rows are left
        out.
    proportions : array-like, Series, dict or DataFrame
        See `llpbook.base.check_proportions`.
    bags : hashable
        The column of the chunks that names the bag of each instance.
    features : list, optional
        The columns of the instances; all others of the first chunk if not given.
    map : callable, default the builtin ``map``
        Applies a function to a list of tasks. It returns the results in order, or futures with ``result(timeout)``:
        ``executor.map`` of `concurrent.futures`, ``client.map`` of a Dask client, or a function of your own.
    read : callable, optional
        From a chunk to a DataFrame, for chunks of another kind.
    tol : float, default 1e-3
        The passes end with the first Newton step that is shorter than so many standard errors of the weights.
    max_passes : int, default 50
        Over all chunks, for `MeanMap` and `CountLogistic`.
    timeout : float or None, default 600.0
        Seconds without any answer of an engine with futures, after which the fit ends with an error.
    verbose : int, default 0
        1 prints a line for each pass.

    Returns
    -------
    estimator
        The same, fitted, with the attributes of a fit in memory; `WeightedLDA` without ``weights_``. ``gap_`` of
        `MeanMap` and `CountLogistic` is the length of the last step in standard errors, ``n_iter_`` the number of
        passes over all chunks that it took.

    Raises
    ------
    ValueError
        If the estimator does not reduce to sums, or the input is malformed; `ChunkError` names the chunk that is
        damaged, lacks a column, or changed during the fit, and for `CountLogistic` two chunks that share a bag.
    NotIdentifiableError
        As of the estimator.
    EngineError
        If a worker died, or gave no answer within ``timeout``.

    Notes
    -----
    `InvCal`, `BagMeanRegression` and `WeightedLDA` take one pass; `MeanMap` one, about three Newton passes, and one
    that counts its predictions; `CountLogistic` about seven. A worker needs the memory of one chunk in double
    precision three times. The caller needs the sums of all bags, or for `WeightedLDA` and for `MeanMap` with
    ``bag_weights="size"`` those of the classes and the size of each bag.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from llpbook import MeanMap
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 200)
    >>> frame = pd.DataFrame({"x": rng.normal(size=200) + 3.0 * y, "bag": np.repeat(np.arange(40), 5)})
    >>> chunks = [frame[:70], frame[70:]]
    >>> model = fit_chunks(MeanMap(), chunks, np.bincount(frame.bag, y) / 5, bags="bag")
    >>> float(model.score(frame[["x"]], y)) > 0.9
    True
    """
    steps, scaler, model = parts(estimator)
    kind = kind_of(model)
    if not (isinstance(tol, Real) and tol > 0):
        raise ValueError(f"tol must be above 0, got {tol!r}")
    check_whole("max_passes", max_passes)
    engine = Engine(chunks, map, timeout)
    with told(model):
        model._validate_params()
        layout = with_columns(engine, Layout(bags, features, read, steps))
        matrix, *names = check_proportions(proportions, empty_rows=True)
        state = first_pass(engine, layout, kind, matrix, names[1])
        given = (
            pd.DataFrame([state.total.mean], columns=layout.features)
            if not steps
            else None
        )
        if scaler is not None:
            layout = standardize(scaler, state, layout, given)
        else:
            warn_of_moments(model, state.total.mean, state.total.scale)
        named = given is not None and estimator is model
        model._check_X(given if named else [state.total.mean], reset=True)
        rows = np.flatnonzero(state.sizes)
        matrix = fill_empty_rows(matrix, rows, names[1])
        data = BagData(None, rows, matrix, *names, sizes=state.sizes)
        data = model._accept(data)
        model.estimators_ = None
        say = partial(print, type(model).__name__, flush=True) if verbose else None
        kind.fit(model, data, state, Passes(engine, layout, tol, max_passes, say))
    return estimator


def parts(estimator):
    """The fitted steps of a pipeline, its scaler that is not fitted, and the classifier."""
    if not isinstance(estimator, Pipeline):
        return (), None, estimator
    *before, (_, model) = estimator.steps
    steps = [step for _, step in before if step not in (None, "passthrough")]
    scaler = None
    if (
        steps
        and isinstance(steps[-1], StandardScaler)
        and not hasattr(steps[-1], "scale_")
    ):
        scaler = steps.pop()
    for step in steps:
        if get_tags(step).requires_fit:
            try:
                check_is_fitted(step)
            except ValueError as error:
                raise ValueError(
                    f"{type(step).__name__} must be fitted before fit_chunks, which fits only a StandardScaler that "
                    "stands last before the estimator: fit the step to one chunk, or to a sample of rows, first"
                ) from error
    return tuple(steps), scaler, model


# --- the first pass --------------------------------------------------------------------------------------------


@dataclass
class FirstPass:
    """What the first pass over the chunks learns.

    Attributes
    ----------
    total : Moments
        Of all instances, in the columns after the steps.
    sizes : ndarray of int, shape (n_bags,)
    sums : ndarray, shape (n_bags, n_features) or (n_classes, n_features)
        Of the instances of each bag, or of each class.
    labels, rows : dict of int to ndarray
        The names of the bags of each chunk, and their rows in the proportions.
    """

    total: object
    sizes: np.ndarray
    sums: np.ndarray
    labels: dict
    rows: dict


def summarize(frame, layout, products):
    """A chunk in the first pass: its bags, their sizes and sums, and its moments."""
    codes, labels = pd.factorize(layout.bag_column(frame))
    X = layout.matrix(frame)
    found = moments(X, products)
    if not np.isfinite(found.squares).all():
        check_features(X if layout.steps else frame[layout.features])
    return labels, *bag_sums(X, codes, len(labels)), found


def first_pass(engine, layout, kind, matrix, keys):
    """Read all chunks once."""
    sizes, owner = np.zeros(len(matrix), int), np.full(len(matrix), -1)
    total, sums, labels, rows = None, None, {}, {}
    for number, found in engine.run("first pass", summarize, layout, (kind.products,)):
        if found is None:
            continue
        name = name_of(number, engine.chunks[number])
        labels[number], bag_sizes, part, here = found
        try:
            codes = check_bags(labels[number], len(bag_sizes), len(matrix), keys)
        except ValueError as error:
            raise ChunkError(f"{name}: {error}") from error
        if kind.whole_bags and (owner[codes] >= 0).any():
            twice = (owner[codes] >= 0).argmax()
            refuse_scattered(labels[number][twice], owner[codes[twice]], number, layout)
        owner[codes], rows[number] = number, codes
        sizes[codes] += bag_sizes
        total = here if total is None else merge(total, here)
        by_class = kind.by_class(matrix)
        if sums is None:
            sums = np.zeros((matrix.shape[by_class], part.shape[1]))
        if by_class:
            sums += class_sums(part, matrix[codes])
        else:
            sums[codes] += part
    if total is None:
        raise ValueError("chunks hold no rows")
    return FirstPass(total, sizes, sums, labels, rows)


def refuse_scattered(bag, first, second, layout):
    """A bag in two chunks, where the method needs it whole."""
    raise ChunkError(
        f"bag {bag!r} has instances in chunk {first} and in chunk {second}, but CountLogistic needs each bag whole in "
        f"one chunk. Bring the bags together first: chunks = frame.shuffle(on={layout.bags!r}) of a Dask DataFrame, or "
        f"chunks = [part for _, part in frame.groupby(frame[{layout.bags!r}].map(hash) % n_chunks)] of one in memory; "
        "MeanMap and InvCal take the chunks as they are"
    )


def standardize(scaler, state, layout, given):
    """Fit a `StandardScaler` from the moments of all chunks; the layout that applies it."""
    n, mean, var = state.total.n, state.total.mean, state.total.scale**2
    eps = np.finfo(float).eps
    constant = var <= n * eps * var + (n * mean * eps) ** 2  # as scikit-learn decides
    # Two rows set what does not depend on the rows: names and numbers of features.
    two = (
        np.vstack([mean, mean + 1]) if given is None else pd.concat([given, given + 1])
    )
    scaler.fit(two)
    scaler.n_samples_seen_ = n
    if scaler.with_mean or scaler.with_std:
        scaler.mean_ = mean
    if scaler.with_std:
        scaler.var_, scaler.scale_ = var, np.where(constant, 1.0, np.sqrt(var))
    return replace(
        layout,
        center=mean if scaler.with_mean else None,
        scale=scaler.scale_ if scaler.with_std else None,
    )


def standardized(state, layout, mass):
    """The sums, and the moments with products, in the columns that the estimator sees."""
    d = len(state.total.mean)
    center = np.zeros(d) if layout.center is None else layout.center
    scale = np.ones(d) if layout.scale is None else layout.scale
    n, mean, squares = state.total
    if squares.ndim == 2:
        squares = squares / np.outer(scale, scale)
    total = type(state.total)(n, (mean - center) / scale, squares)
    return (state.sums - mass[:, None] * center) / scale, total


# --- one fit per kind of estimator -----------------------------------------------------------------------------


class OfBagMeans:
    """InvCal and BagMeanRegression: an instance per bag, its mean, and the method as it is."""

    products = whole_bags = False

    def __init__(self, model):
        refuse_kernel(model)

    def by_class(self, matrix):
        return 0

    def fit(self, model, data, state, passes):
        sums, _ = standardized(state, passes.layout, data.bag_sizes)
        means = sums[data.bags] / data.bag_sizes[data.bags][:, None]
        model._fit_checked(replace(data, X=means))


class OfDiscriminant:
    """WeightedLDA by SWS: class sums, and products of all instances."""

    products, whole_bags = True, False

    def __init__(self, model):
        if model.scheme != "sws":
            raise ValueError(
                f"WeightedLDA by chunks needs scheme='sws', got {model.scheme!r}: the weights of 'fws' and 'wws' are one "
                "number per instance and class, which change in each iteration; "
                + ways_out(model)
            )

    def by_class(self, matrix):
        return 1

    def fit(self, model, data, state, passes):
        warn_of_rank(data)
        mass = data.bag_sizes @ data.proportions
        sums, total = standardized(state, passes.layout, mass)
        means, within = within_of_sums(sums, mass, total)
        scale = total.scale
        scale[scale <= 1e-12 * (np.abs(total.mean) + scale)] = np.inf
        basis = whitened(total.squares / total.n / np.outer(scale, scale), scale)
        root = inverse_root(within, basis, model.shrinkage)
        model._store(Gaussians(means, root, mass / mass.sum()), within)
        model.n_iter_, model.gap_ = 0, 0.0


class OfMeanMap:
    """MeanMap: the mean operator from class sums, or bag means where bags have other weights; then Newton passes."""

    products = whole_bags = False

    def __init__(self, model):
        refuse_kernel(model)
        by_size = isinstance(model.bag_weights, str) and model.bag_weights == "size"
        self.classes_do = by_size and model.proportion_errors is None

    def by_class(self, matrix):
        return int(self.classes_do)

    def fit(self, model, data, state, passes):
        passes = passes.with_constant(model.fit_intercept)
        means = self.class_means(data, state, passes.layout)
        mu = mean_operator(data.class_prior, means)
        some = passes.some(state)
        w, terms = np.zeros(mu.shape), partial(mean_map_terms, mu=mu, lam=model.alpha)
        if some is not None:
            rough = ROUGH * np.sqrt(state.total.n / passes.rows(some))
            w, *_ = passes.newton("start", terms, w, state, rough, only=some)
        w, model.n_iter_, model.gap_ = passes.newton("Newton pass", terms, w, state)
        weights = 2 * w if len(w) == 1 else w
        model.class_prior_, model.class_means_ = data.class_prior, means
        model.mean_operator_ = mu
        model._store_linear(weights, model.n_features_in_)
        passes.warn_if_short(model)
        if data.covariances is None:
            stated, found = passes.predictions(weights, state, data.proportions.shape)
            warn_of_errors(
                model, stated / state.total.n, *counted_errors(found, data.proportions)
            )

    def class_means(self, data, state, layout):
        sizes = data.bag_sizes
        mass = sizes @ data.proportions if self.classes_do else sizes
        sums, _ = standardized(state, layout, mass)
        if layout.constant:
            sums = np.column_stack([sums, mass])
        if self.classes_do:
            return means_of_sums(sums, data.proportions, sizes)
        bag_means = sums / np.maximum(sizes, 1)[:, None]
        given = data.proportions, data.bag_weights, data.covariances
        return class_means(bag_means, *given)


class OfCounts:
    """CountLogistic: MeanMap's answer is the start; then passes over whole bags."""

    products, whole_bags = False, True

    def __init__(self, model):
        refuse_kernel(model)

    def by_class(self, matrix):
        return 1

    def fit(self, model, data, state, passes):
        passes = passes.with_constant(model.fit_intercept)
        start, some = OfMeanMap(MeanMap()), passes.some(state)
        mu = mean_operator(
            data.class_prior, start.class_means(data, state, passes.layout)
        )
        halved = 2 if len(mu) == 1 else 1  # MeanMap halves the log-odds of two classes
        terms = partial(mean_map_terms, mu=mu, lam=halved**2 / model.C)
        share = 1.0 if some is None else passes.rows(some) / state.total.n
        rough = ROUGH / np.sqrt(share)
        w, *_ = passes.newton(
            "start", terms, np.zeros(mu.shape), state, rough, only=some
        )
        terms = partial(counts_terms, data=data, model=model)
        if some is not None:
            w, *_ = passes.newton("start", terms, halved * w, state, rough, only=some)
            halved = 1
        w, model.n_iter_, model.gap_ = passes.newton(
            "pass over counts", terms, halved * w, state
        )
        model._store_linear(w, model.n_features_in_)
        passes.warn_if_short(model)


KINDS = {
    InvCal: OfBagMeans,
    BagMeanRegression: OfBagMeans,
    WeightedLDA: OfDiscriminant,
    MeanMap: OfMeanMap,
    CountLogistic: OfCounts,
}


def kind_of(model):
    """How an estimator is fitted, or a ValueError that says what to do instead."""
    if type(model) not in KINDS:
        raise ValueError(
            f"{type(model).__name__} does not reduce to sums over chunks; "
            + ways_out(model)
        )
    return KINDS[type(model)](model)


def refuse_kernel(model):
    kernel = getattr(model, "kernel", "linear")
    if kernel != "linear":
        raise ValueError(
            f"kernel={kernel!r} compares all pairs of instances, which does not reduce to sums over chunks: take "
            "kernel='linear' behind a fitted Nystroem in a pipeline; or "
            + ways_out(model)
        )


def ways_out(model):
    name = type(model).__name__
    return (
        f"fit {name} to a sample of whole bags, sample_bags(chunks, proportions, n_bags, bags=…), or take one of "
        f"{', '.join(kind.__name__ for kind in KINDS)}"
    )


# --- passes ----------------------------------------------------------------------------------------------------


def mean_map_chunk(frame, layout, w):
    """`partition_terms` of a chunk."""
    return partition_terms(w, layout.matrix(frame))


def codes_of(frame, layout, labels):
    """The bags of a chunk in the order of the first pass."""
    names = pd.Index(layout.bag_column(frame), tupleize_cols=False)
    codes = pd.Index(labels, tupleize_cols=False).get_indexer(names)
    if (codes < 0).any():
        raise ValueError(
            f"bag {names[codes < 0][0]!r} was not there in the first pass: chunks must not change"
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
    value, gradient = value + np.sum(w * w) / (2 * model.C), gradient + w / model.C
    return value, gradient, hessian + np.eye(w.size) / model.C if curved else None


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

    def newton(self, what, terms, w, state, tol=None, only=None):
        """Newton steps until one is short; a step that is long and goes up is halved.

        Over all chunks the Hessian of CountLogistic is computed once, and then updated by what the gradients tell of
        it (Broyden, Fletcher, Goldfarb, Shanno), since it costs as much as the rest.
        """
        tol, cheap = tol or self.tol, only is None and terms.func is counts_terms
        hessian = before = None
        for n_iter in range(1, self.max_passes + 1):
            curved = hessian is None or not cheap
            value, gradient, fresh = terms(self, what, w, state, only, curved)
            if before and gap > ROUGH and not value <= before[1] + 1e-11 * abs(value):
                step, gap = step / 2, gap / 2
                w = before[0] + step
                continue
            hessian = fresh if curved else updated(hessian, step, gradient - before[2])
            before = w, value, gradient
            step, gap = newton_decrement(gradient, hessian)
            w = w + step
            if self.say:
                self.say(f"{what} {n_iter}: a step of {gap:.2g} standard errors")
            if gap <= tol:
                break
        return w, n_iter, gap

    def warn_if_short(self, model):
        """Warn where the last step was not short."""
        if model.gap_ > self.tol:
            warn(
                f"{type(model).__name__} stopped after {model.n_iter_} passes with a step of {model.gap_:.2g} standard "
                f"errors, above tol={self.tol}; scale the features, penalize more, or raise max_passes",
                ConvergenceWarning,
            )

    def predictions(self, weights, state, shape):
        """`predicted_counts` of all chunks."""
        stated, found = 0.0, np.zeros(shape, int)
        more = {number: (weights, labels) for number, labels in state.labels.items()}
        run = self.engine.run(
            "count of predictions", predictions_chunk, self.layout, more
        )
        for number, part in run:
            if part is not None:
                stated += part[0]
                found[state.rows[number]] += part[1]
        return stated, found


def updated(hessian, step, change):
    """The Hessian that maps the last step to the change of the gradient, as near as possible to the one before."""
    s, y = step.ravel(), change.ravel()
    if s @ y <= 0:
        return hessian
    Hs = hessian @ s
    return hessian - np.outer(Hs, Hs) / (s @ Hs) + np.outer(y, y) / (s @ y)


# --- a sample of bags ------------------------------------------------------------------------------------------


def chosen_rows(frame, layout, names):
    """The rows of a chunk that lie in some bags."""
    return frame.loc[
        pd.Index(layout.bag_column(frame), tupleize_cols=False).isin(names)
    ]


def sample_bags(
    chunks, proportions, n_bags, *, bags, features=None, map=in_this_process, read=None,
    timeout=600.0, random_state=None,
):  # fmt: skip
    """All instances of some bags, drawn at random: for methods that need the instances together.

    Parameters
    ----------
    chunks, proportions, bags, features, map, read, timeout
        As for `fit_chunks`.
    n_bags : int
        Bags to draw.
    random_state : int, RandomState or None, default None

    Returns
    -------
    DataFrame
        The features and the column of the bags. Methods take it as ``fit(frame[features], frame[bags], proportions)``,
        where ``proportions`` are the same.

    Raises
    ------
    ValueError
        If there are fewer bags; `ChunkError` and `EngineError` as of `fit_chunks`.
    """
    matrix, _, keys = check_proportions(proportions, empty_rows=True)
    names = pd.RangeIndex(len(matrix)) if keys is None else keys
    check_whole("n_bags", n_bags, most=len(names))
    drawn = check_random_state(random_state).choice(len(names), n_bags, replace=False)
    engine = Engine(chunks, map, timeout)
    layout = with_columns(engine, Layout(bags, features, read))
    run = engine.run("sample of bags", chosen_rows, layout, (names[np.sort(drawn)],))
    found = [part for _, part in run if part is not None]
    if not found:
        raise ValueError("chunks hold no rows")
    return pd.concat(found, ignore_index=True)[[*layout.features, bags]]
