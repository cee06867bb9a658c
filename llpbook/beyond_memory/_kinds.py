"""How each estimator is made of sums: one class per kind of sums."""

from dataclasses import replace
from functools import partial

import numpy as np

from ..baselines import BagMeanRegression
from ..count_likelihood import CountLogistic
from ..discriminant import Gaussians, WeightedLDA, inverse_root, warn_of_rank, whitened
from ..invcal import InvCal
from ..laplacian_mean_map import LaplacianMeanMap
from ..mean_map import (
    MeanMap,
    class_means,
    mean_operator,
    warn_of_errors,
)
from ._first import standardized
from ._passes import counts_terms, mean_map_terms, predictions, shortened
from ._sums import means_of_sums, within_of_sums

#: Length of a Newton step, in standard errors, that ends a start on some chunks, and the most passes of MeanMap as a
#: start, which is without an end where class means differ between bags.
ROUGH, FEW = 0.1, 4


class OfBagMeans:
    """InvCal and BagMeanRegression: an instance per bag, its mean, and the method as it is."""

    products = whole_bags = False

    def __init__(self, model):
        refuse_kernel(model)

    def by_class(self, matrix):
        return 0

    def fit(self, model, data, state, passes):
        means = bag_means(data, state, passes.layout)[data.bags]
        model._fit_checked(replace(data, X=means))


def bag_means(data, state, layout):
    """The means of all bags, with the constant 1 where the layout has it; 0 for a bag without instances."""
    sums, _ = standardized(state, layout, data.bag_sizes)
    if layout.constant:
        sums = np.column_stack([sums, data.bag_sizes])
    return sums / np.maximum(data.bag_sizes, 1)[:, None]


class OfDiscriminant:
    """WeightedLDA by SWS: class sums, and products of all instances."""

    products, whole_bags = True, False

    def __init__(self, model):
        if model.scheme != "sws":
            raise ValueError(
                f"WeightedLDA from chunks needs scheme='sws', got {model.scheme!r}: the weights of 'fws' and 'wws' are "
                "one number per instance and class, which change in each iteration; "
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
        root = inverse_root(within, basis, shrinkage=model.shrinkage)
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
        mu = self.operator(model, data, state, passes.layout)
        some, H, w = passes.some(state), None, np.zeros(mu.shape)
        terms = partial(mean_map_terms, mu=mu, lam=model.alpha)
        if some is not None:
            rough = ROUGH * np.sqrt(state.total.n / passes.rows(some))
            w, _, _, H = passes.newton("start", terms, w, state, some, rough)
        found = passes.newton("Newton pass", terms, w, state, hessian=H)
        w, model.n_iter_, model.gap_, _ = found
        weights = 2 * w if len(w) == 1 else w
        model.mean_operator_ = mu
        model._store_linear(weights, model.n_features_in_)
        passes.warn_if_short(model)
        if data.covariances is None:
            sums = predictions(passes, weights, state, data.proportions.shape)
            warn_of_errors(model, *sums, data.proportions)

    def operator(self, model, data, state, layout):
        means = self.class_means(data, state, layout)
        model.class_prior_, model.class_means_ = data.class_prior, means
        return mean_operator(data.class_prior, means)

    def class_means(self, data, state, layout):
        if not self.classes_do:
            given = data.proportions, data.bag_weights, data.covariances
            return class_means(bag_means(data, state, layout), *given)
        mass = data.bag_sizes @ data.proportions
        sums, _ = standardized(state, layout, mass)
        if layout.constant:
            sums = np.column_stack([sums, mass])
        return means_of_sums(sums, data.proportions, data.bag_sizes)


class OfLaplacian(OfMeanMap):
    """LaplacianMeanMap: the mean operator from the bag means and their graph; then MeanMap's passes."""

    def __init__(self, model):
        refuse_kernel(model)
        self.classes_do = False
        if model.similarity != "gaussian":
            raise ValueError(
                f"similarity={model.similarity!r} compares all pairs of instances, which does not reduce to sums over "
                "chunks: take similarity='gaussian'; or " + ways_out(model)
            )

    def operator(self, model, data, state, layout):
        means = bag_means(data, state, layout)[data.bags]
        return model._operator(data, *model._graph(replace(data, X=means), means))


class OfCounts:
    """CountLogistic: MeanMap's answer is the start; then passes over whole bags."""

    products, whole_bags = False, True

    def __init__(self, model):
        refuse_kernel(model)
        if model.proportion_noise is not None:
            raise ValueError(
                f"fit_chunks does not take proportion_noise={model.proportion_noise!r}; clip the shares to [0, 1] and "
                "take proportion_errors alone, which biases shares near 0 and 1, or "
                + ways_out(model)
            )

    def by_class(self, matrix):
        return 1

    def fit(self, model, data, state, passes):
        passes = passes.with_constant(model.fit_intercept)
        start, some = OfMeanMap(MeanMap()), passes.some(state)
        mu = mean_operator(
            data.class_prior, start.class_means(data, state, passes.layout)
        )
        twice = 2 if len(mu) == 1 else 1  # MeanMap halves the log-odds of two classes
        terms, H = partial(mean_map_terms, mu=mu, lam=twice**2 / model.C), None
        n = state.total.n
        rough = ROUGH * np.sqrt(n / (n if some is None else passes.rows(some)))
        zero = np.zeros(mu.shape)
        w, *_ = passes.newton("start", terms, zero, state, some, rough, most=FEW)
        terms = partial(counts_terms, data=data, model=model)
        w = shortened(passes, terms, twice * w, state, some or passes.two())
        if some is not None:
            w, _, _, H = passes.newton("start", terms, w, state, some, rough)
        found = passes.newton("pass over counts", terms, w, state, hessian=H)
        w, model.n_iter_, model.gap_, _ = found
        model._store_linear(w, model.n_features_in_)
        model.loss_ = model._bag_loss(data.class_prior)
        passes.warn_if_short(model)


KINDS = {
    InvCal: OfBagMeans,
    BagMeanRegression: OfBagMeans,
    WeightedLDA: OfDiscriminant,
    MeanMap: OfMeanMap,
    LaplacianMeanMap: OfLaplacian,
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
