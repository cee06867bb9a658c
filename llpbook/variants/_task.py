"""Check the arguments of `llpbook.variants.make_bags`, and take missing ones from clusters of the features."""

from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.cluster import KMeans
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from .. import taxonomy
from .._counts import crosstab, whole_counts
from .._input import (
    check_column,
    check_features,
    check_proportions,
    check_whole,
    in_order_of,
    keyed_rows,
    label_codes,
)
from ..base import seed_of_bins

BY_CHANCE = ("naive", "feature collider")  # proportions differ by chance only
BY_STRATA = ("label collider", "cross-bag")
BY_CLUSTERS = ("intermediate", "hard", "feature collider")


class Task(NamedTuple):
    """Checked arguments of `make_bags`.

    The variant; the class of each instance as a code, and the classes; sizes (n_bags,) and proportions (n_bags,
    n_classes) wanted; sizes_given and wanted_given, True where the user stated them; the cluster or stratum of each
    instance; clusters_are_bags, True where the clusters themselves are the bags.
    """

    variant: str
    codes: np.ndarray
    classes: np.ndarray
    sizes: np.ndarray
    wanted: np.ndarray
    sizes_given: bool
    wanted_given: bool
    clusters: np.ndarray
    clusters_are_bags: bool


def read_task(X, y, variant, n_bags, sizes, proportions, clusters, rng):
    """Check the arguments of `make_bags`; those not given are taken from k-means clusters, as in the paper."""
    variant, A = variant_name(variant), check_features(X)
    classes, codes = label_codes(y, len(A), X)
    wanted = _read_wanted(proportions, classes, variant)
    sizes = _read_sizes(sizes, len(A), proportions)
    if clusters is not None:
        column = check_column("clusters", clusters, len(A), X)
        clusters = pd.factorize(column, sort=True)[0]
    model = None if variant in BY_STRATA else clusters  # strata are not the bags
    n_bags = _count_bags(n_bags, model, sizes=sizes, proportions=wanted)
    same = model is None or model.max() + 1 == n_bags
    sizes_given, wanted_given = sizes is not None, wanted is not None
    if wanted_given and not sizes_given:
        sizes = whole_counts(np.ones(n_bags), len(A))
    missing = sizes is None or not (wanted_given or variant in BY_CHANCE)
    needs_model = missing or variant in BY_CLUSTERS
    if (missing and not same) or (model is None and needs_model):
        model = kmeans_clusters(A, n_bags, rng)
    clusters = _clusters_for(variant, clusters, model, A, codes, rng)
    if missing:
        counts = crosstab(model, codes)
        sizes = counts.sum(axis=1) if sizes is None else sizes
        wanted = counts / counts.sum(axis=1, keepdims=True)
    return Task(
        variant, codes, classes, sizes, wanted, sizes_given, wanted_given, clusters,
        clusters_are_bags=same and not sizes_given and not wanted_given,
    )  # fmt: skip


def _clusters_for(variant, clusters, model, X, codes, rng):
    """Groups that the bags depend on besides the label: one group, strata, or clusters."""
    if variant in ("naive", "simple"):
        return np.zeros(len(X), dtype=int)
    if clusters is None:
        return score_strata(X, codes, rng) if variant in BY_STRATA else model
    return clusters


def kmeans_clusters(X, n_clusters, rng):
    """Codes of k-means clusters of the standardized features."""
    if len(np.unique(X, axis=0)) < n_clusters:
        raise ValueError(
            f"n_bags={n_clusters} k-means clusters need as many distinct rows of X; give sizes, proportions, clusters"
        )
    scale = X.std(axis=0)
    model = KMeans(n_clusters, n_init=1, max_iter=100, random_state=rng)
    return model.fit_predict(X / np.where(scale > 0, scale, 1)).astype(np.intp)


def score_strata(X, codes, rng):
    """Codes of strata of instances whose label is predicted with about the same probability.

    Quantiles of P(y = 1 | x), estimated out of fold by boosted trees; of more than two classes, k-means clusters of the
    probabilities. Within a stratum of the true probabilities, label and features are independent.
    """
    model = HistGradientBoostingClassifier(
        max_iter=40, max_leaf_nodes=8, l2_regularization=5.0, early_stopping=False,
        random_state=seed_of_bins(len(X), rng),
    )  # fmt: skip
    least = np.bincount(codes).min()
    if least < 2:
        raise ValueError(
            "y must hold two instances of each class or more; or give clusters"
        )
    folds = StratifiedKFold(min(5, least), shuffle=True, random_state=rng)
    P = cross_val_predict(model, X, codes, cv=folds, method="predict_proba")
    n, n_strata = len(X), int(np.clip(len(X) // 50, 2, 200))
    if P.shape[1] == 2:
        return np.argsort(np.argsort(P[:, 1])) * n_strata // n
    return KMeans(n_strata, n_init=1, random_state=rng).fit_predict(P)


def variant_name(variant):
    """The name of a variant in lower case; case, spaces, hyphens and underscores do not matter."""
    names = {name.lower().replace("-", " "): name.lower() for name in taxonomy.VARIANTS}
    key = str(variant).lower().replace("-", " ").replace("_", " ")
    if key not in names:
        raise ValueError(
            f"variant must be one of {', '.join(names.values())}, got {variant!r}"
        )
    return names[key]


def _count_bags(n_bags, model, **arguments):
    """The number of bags on which all arguments agree; without arguments that of the model bags, or 10."""
    lengths = {name: len(v) for name, v in arguments.items() if v is not None}
    if n_bags is not None:
        lengths["n_bags"] = check_whole("n_bags", n_bags, 2)
    if len(set(lengths.values())) > 1:
        raise ValueError(f"the number of bags differs between arguments: {lengths}")
    number = next(iter(lengths.values()), 10 if model is None else model.max() + 1)
    if number < 2:
        raise ValueError(f"n_bags must be a whole number from 2, got {number}")
    return number


def _read_sizes(sizes, n_instances, proportions):
    """Bag sizes as whole numbers in the order of the proportions, or None."""
    if sizes is None:
        return None
    if proportions is not None:
        matrix, _, keys = check_proportions(proportions)
        sizes = keyed_rows("sizes", sizes, len(matrix), keys)
    counts = np.asarray(sizes)
    whole = counts.ndim == 1 and counts.dtype.kind in "iuf"
    if not whole or not (counts == np.round(counts)).all() or (counts < 1).any():
        raise ValueError(
            f"sizes must be whole numbers from 1, one per bag, got {sizes}"
        )
    if counts.sum() != n_instances:
        raise ValueError(
            f"sizes must sum to the {n_instances} instances, got {counts.sum():g}"
        )
    return counts.astype(int)


def _read_wanted(proportions, classes, variant):
    """Wanted proportions as a matrix with one column for each of the classes, or None."""
    if proportions is None:
        return None
    if variant in BY_CHANCE:
        message = f"proportions must not be given for variant={variant!r}"
        raise ValueError(f"{message}, which leaves them to chance")
    matrix, columns, _ = check_proportions(proportions)
    return in_order_of(classes, matrix, columns)
