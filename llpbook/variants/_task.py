"""What `llpbook.variants.make_bags` is asked for: checked, and completed by what clusters of the features have."""

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

BY_CHANCE = ("naive", "feature collider")  # proportions are those of chance
BY_STRATA = ("label collider", "cross-bag")
BY_CLUSTERS = ("intermediate", "hard", "feature collider")


class Task(NamedTuple):
    """What bags to make.

    The variant; the class of each instance as a code, and the classes; sizes (n_bags,) and proportions (n_bags,
    n_classes) wanted, and whether each was given; the cluster or stratum of each instance, and whether the
    clusters are the bags that are wanted.
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
    """The checked arguments of `make_bags`; what is not given is that of k-means clusters, as in the paper."""
    variant, A = variant_name(variant), check_features(X)
    classes, codes = label_codes(y, len(A), X)
    wanted = _read_wanted(proportions, classes, variant)
    sizes = _read_sizes(sizes, len(A), proportions)
    if clusters is not None:
        column = check_column("clusters", clusters, len(A), X)
        clusters = pd.factorize(column, sort=True)[0]
    model = None if variant in BY_STRATA else clusters  # strata are no model for bags
    n_bags = _count_bags(n_bags, model, sizes=sizes, proportions=wanted)
    same = model is None or model.max() + 1 == n_bags
    sizes_given, given = sizes is not None, wanted is not None
    if given and not sizes_given:
        sizes = whole_counts(np.ones(n_bags), len(A))
    untold = sizes is None or not (given or variant in BY_CHANCE)
    if (untold and not same) or (model is None and (untold or variant in BY_CLUSTERS)):
        model = kmeans_clusters(A, n_bags, rng)
    clusters = _clusters_for(variant, clusters, model, A, codes, rng)
    if untold:
        counts = crosstab(model, codes)
        sizes = counts.sum(axis=1) if sizes is None else sizes
        wanted = counts / counts.sum(axis=1, keepdims=True)
    return Task(
        variant, codes, classes, sizes, wanted, sizes_given, given, clusters,
        same and not sizes_given and not given,
    )  # fmt: skip


def _clusters_for(variant, clusters, model, X, codes, rng):
    """What the bags depend on besides the label: nothing, strata, or clusters."""
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
    found = cross_val_predict(model, X, codes, cv=folds, method="predict_proba")
    n, n_strata = len(X), int(np.clip(len(X) // 50, 2, 200))
    if found.shape[1] == 2:
        return np.argsort(np.argsort(found[:, 1])) * n_strata // n
    return KMeans(n_strata, n_init=1, random_state=rng).fit_predict(found)


def variant_name(variant):
    """The name of a variant in lower case; case, spaces, hyphens and underscores do not matter."""
    known = {name.lower().replace("-", " "): name.lower() for name in taxonomy.VARIANTS}
    key = str(variant).lower().replace("-", " ").replace("_", " ")
    if key not in known:
        raise ValueError(
            f"variant must be one of {', '.join(known.values())}, got {variant!r}"
        )
    return known[key]


def _count_bags(n_bags, model, **given):
    """The number of bags that all of the arguments agree on; else that of the model bags, or 10."""
    lengths = {
        name: len(value) for name, value in given.items() if value is not None
    } | ({} if n_bags is None else {"n_bags": check_whole("n_bags", n_bags, 2)})
    if len(set(lengths.values())) > 1:
        raise ValueError(f"the number of bags differs between arguments: {lengths}")
    found = next(iter(lengths.values()), 10 if model is None else model.max() + 1)
    if found < 2:
        raise ValueError(f"n_bags must be a whole number from 2, got {found}")
    return found


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
        raise ValueError(f"sizes must be whole numbers from 1, one a bag, got {sizes}")
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
