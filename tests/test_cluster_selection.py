"""Cluster model selection against errors computed from predictions, brute force, and data that it must solve."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.cluster import AgglomerativeClustering
from sklearn.datasets import make_blobs

from llpbook import NotIdentifiableError
from llpbook import cluster_selection as cs
from llpbook._counts import crosstab
from llpbook.base import _running
from llpbook.cluster_selection import ClusterModelSelection
from llpbook.proportions import (
    label_proportions,
    prior_mse,
    proportion_weighted_mse,
)


def quick(*args, **params):
    return ClusterModelSelection(*args, **{"max_iter": 1, "random_state": 0, **params})


def clustered(n=60, k=4, n_classes=2, seed=0):
    """Clusters, bags of different sizes (one empty), and proportions that no labeling fits."""
    rng = np.random.default_rng(seed)
    bags = rng.choice([0, 1, 3, 4], n, p=[0.1, 0.2, 0.3, 0.4])
    P = rng.dirichlet(np.ones(n_classes), 5)
    return rng.integers(0, k, n), bags, P, rng.integers(-1, n_classes, n)


def slow_error(labeling, clusters, bags, P, labels=None, combine="weighted"):
    """The definition, by predictions of instances."""
    y, used = labeling[clusters], np.unique(bags)
    shares = label_proportions(y, bags, n_bags=len(P), classes=range(P.shape[1]))[used]
    sizes = np.bincount(bags)[used]
    wrong = None
    if labels is not None:
        wrong = np.mean(y[labels >= 0] != labels[labels >= 0])
    weighted = proportion_weighted_mse(P[used], shares, sizes)
    prior = prior_mse(P[used], shares, sizes)
    if combine == "product":
        return (weighted * prior * (1.0 if wrong is None else wrong)) ** 0.5
    return weighted + prior * (combine == "sum") + (wrong or 0.0)


def forms_of(clusters, bags, P, labels=None):
    k, hits = clusters.max() + 1, None
    if labels is not None:
        known = labels >= 0
        hits = crosstab(clusters[known], labels[known], (k, P.shape[1]))
        hits = hits / known.sum()
    return cs.error_forms(crosstab(bags, clusters, (len(P), k)), P, hits=hits)


@pytest.mark.equation("eq-clusters-table", "eq-clusters-weight")
@pytest.mark.equation("eq-clusters-prior", "eq-clusters-combined")
@pytest.mark.parametrize("combine", ["weighted", "sum", "product"])
@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_errors_from_the_table_are_errors_of_predictions(n_classes, known, combine):
    clusters, bags, P, labels = clustered(n_classes=n_classes)
    labels = labels if known else None
    every = np.array(list(product(range(n_classes), repeat=4)))
    forms = forms_of(clusters, bags, P, labels)
    found = cs.labeling_errors(every, forms, combine=combine)
    slow = [slow_error(row, clusters, bags, P, labels, combine) for row in every]
    assert_allclose(found, slow, atol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_exhaustive_is_the_best_of_all_and_no_worse_than_greedy(n_classes, monkeypatch):
    monkeypatch.setattr(cs, "BLOCK", 7)  # several blocks, the last one not full
    for seed in range(10):
        clusters, bags, P, _ = clustered(n_classes=n_classes, seed=seed)
        forms = forms_of(clusters, bags, P)
        labeling, error = cs.label_exhaustively(forms)
        every = map(np.array, product(range(n_classes), repeat=4))
        slow = min(every, key=lambda row: slow_error(row, clusters, bags, P))
        assert_array_equal(labeling, slow)
        assert error == pytest.approx(slow_error(slow, clusters, bags, P))
        assert error <= cs.label_greedily(forms)[1] + 1e-12


def test_of_equally_good_labelings_the_first_is_taken_whatever_the_block(monkeypatch):
    forms = cs.error_forms(np.array([[5, 5]]), np.array([[0.5, 0.5]]))
    for block in (1, 2, 3, 4):
        monkeypatch.setattr(cs, "BLOCK", block)
        assert cs.label_exhaustively(forms)[0].tolist() == [0, 1]
    forms = cs.error_forms(np.array([[5, 5]]), np.array([[0.75, 0.25]]))
    assert cs.label_greedily(forms)[0].tolist() == [0, 0]


def test_of_labelings_whose_errors_differ_by_rounding_the_first_is_taken():
    rng = np.random.default_rng(0)
    for _ in range(20):  # the third cluster holds as many of each bag as the others
        table = rng.integers(1, 30, (5, 3))
        table[:, 2] = table[:, 0] + table[:, 1]
        p = rng.uniform(0.4, 0.6, 5)
        forms = cs.error_forms(table, np.column_stack([1 - p, p]))
        assert cs.label_exhaustively(forms)[0].tolist() == [0, 0, 1]


@pytest.mark.equation("eq-clusters-greedy")
@pytest.mark.parametrize("combine", ["weighted", "sum", "product"])
@pytest.mark.parametrize("seed", [0, 7])
def test_greedy_goes_through_the_clusters_once(seed, combine):
    clusters, bags, P, _ = clustered(n_classes=3, seed=seed)
    labeling = np.zeros(4, dtype=int)
    for i in range(4):
        best = np.inf  # the paper prints 0 here, below which nothing is
        for j in range(3):
            trial = labeling.copy()
            trial[i] = j
            error = slow_error(trial, clusters, bags, P, None, combine)
            if error < best - 1e-12:
                best, label = error, j
        labeling[i] = label
    found, error = cs.label_greedily(forms_of(clusters, bags, P), combine=combine)
    assert_array_equal(found, labeling)
    assert error == pytest.approx(best)


def search(evaluate, d, seed=0, **options):
    """Algorithm 1 with small steps; its results, and all weights, one array per generation."""
    seen = []

    def watched(W):
        seen.append(W)
        return evaluate(W)

    given = {"max_iter": 30, "population_size": 25, "mutation_variance": 0.04}
    given |= {"crossover_probability": 0.3, "tournament_size": 0.25, **options}
    found = cs.evolve(watched, d, np.random.RandomState(seed), **given)
    return *found, seen


def test_the_strategy_keeps_the_best_and_stays_in_the_box():
    def evaluate(W):
        return [(float(np.sum((w - [1, 0.5, 0]) ** 2)), "kept") for w in W]

    best, history, seen = search(evaluate, 3)
    every = np.vstack(seen)
    assert every.min() >= 0 and (every.max(axis=1) == 1).all()
    errors = np.sum((every - [1, 0.5, 0]) ** 2, axis=1)
    assert best[0] == history[-1] == errors.min()
    assert_array_equal(best[-1], every[errors.argmin()])
    assert (np.diff(history) <= 0).all() and len(history) == 30
    assert best[1] == "kept" and best[0] < 0.01
    assert len(seen[0]) == 25 and 25 < np.mean([len(W) for W in seen[1:]]) < 55


def test_the_best_is_kept_although_it_dies():
    dies = {"max_iter": 6, "population_size": 2, "tournament_size": 0.01}
    for seed in range(10):
        errors = iter(np.random.default_rng(seed).permutation(100).tolist())
        seen = []

        def evaluate(W, errors=errors, seen=seen):
            seen.extend(next(errors) for _ in W)
            return [(error,) for error in seen[-len(W) :]]

        best, history, _ = search(evaluate, 2, seed, **dies)
        assert best[0] == history[-1] == min(seen)


def test_the_variance_of_mutations_is_one_and_all_may_have_children():
    how = {"max_iter": 2, "mutation_variance": 1e-4, "crossover_probability": 1.0}
    *_, (first, second) = search(lambda W: [(0.0,)] * len(W), 50, **how)
    assert len(second) == 25 + 50
    assert 0.005 < np.std(second[:25] - first) < 0.015


def test_the_nearest_mean_is_in_weighted_squares():
    X, _, bags, P = blobs(noise=0)
    model = quick(3, population_size=2).fit(X, bags, P)
    rng = np.random.default_rng(0)
    model.cluster_means_, model.labeling_ = rng.normal(size=(5, 2)), np.arange(5) % 2
    model.feature_weights_ = np.array([1, 0.05])
    Z = rng.normal(size=(200, 2))
    squares = (Z[:, None] - model.cluster_means_) ** 2 @ model.feature_weights_
    assert_array_equal(model.predict(Z), squares.argmin(axis=1) % 2)


def test_known_labels_add_the_share_that_is_wrong():
    X, _, bags, P = blobs(noise=0)
    labels = np.where(np.arange(300) < 15, np.arange(300) % 2, -1)
    given = X, bags, P, labels, AgglomerativeClustering(4), "exhaustive", "weighted"
    error, clusters, labeling = cs.label_clusters(np.ones(2), *given)
    assert error == pytest.approx(slow_error(labeling, clusters, bags, P, labels))
    assert error > 0.1  # a coin for a label


@pytest.mark.filterwarnings("ignore:proportions are the same")
def test_classes_with_equal_shares_are_refused():
    X, _, bags, _ = blobs(noise=0)
    model = quick(2, population_size=2)
    with pytest.raises(NotIdentifiableError, match="classes 0 and 1 equal shares"):
        model.fit(X, bags, np.full(30, 0.5))
    with pytest.raises(NotIdentifiableError, match="classes 0 and 1 equal shares"):
        model.fit(X, bags, np.full(30, 0.5), labels=np.full(300, -1))  # none is known
    model.fit(X, bags, np.full(30, 0.4))  # the sizes of the clusters say which
    P = np.tile([0.5, 0.25, 0.25], (30, 1))
    with pytest.raises(NotIdentifiableError, match="classes 1 and 2"):
        model.fit(X, bags, P)
    model.fit(X, bags, np.tile([0.6, 0.4, 0, 0], (30, 1)))


def test_a_tournament_is_of_a_share_of_the_population():
    """The mean of the smallest of five numbers drawn from 0 to 49."""
    drawn = cs.tournament(np.arange(50), 5000, 0.1, np.random.RandomState(0))
    wanted = np.sum((np.arange(1, 50) / 50) ** 5)
    assert drawn.mean() == pytest.approx(wanted, abs=0.5)


def test_a_child_takes_each_weight_from_one_of_two_parents():
    W = np.random.default_rng(0).uniform(size=(40, 200))
    W[:, 0] = 1  # so that no child is scaled
    children = cs.cross(W, 1.0, np.random.RandomState(0))
    own = (children == W).mean(axis=1)
    crossed = own < 1  # the others met themselves
    assert crossed.sum() > 30 and (abs(own[crossed] - 0.5) < 0.2).all()
    fathers = []
    for child, mother in zip(children[crossed], W[crossed], strict=True):
        rest = child != mother
        fathers += np.flatnonzero((W[:, rest] == child[rest]).all(axis=1)).tolist()
    assert len(fathers) == crossed.sum() and min(fathers) < 5 and max(fathers) > 34


def test_a_weight_multiplies_the_square_of_a_distance():
    X = np.array([[0.0, 0], [0, 3], [10, 0], [10, 3]])  # squares 16 and 9, weighted
    found = cs.cluster(AgglomerativeClustering(2), X, np.array([0.16, 1]))
    assert found[0] == found[1] != found[2] == found[3]


def blobs(n_classes=2, noise=3, seed=0):
    """Clear classes in two features, nothing in the others."""
    centers = 8 * np.array([[0, 0], [1, 0], [0, 1]])[:n_classes]
    X, y = make_blobs(300, centers=centers, random_state=seed)
    rng = np.random.default_rng(seed)
    X = np.hstack([X, 12 * rng.uniform(size=(300, noise))])
    bags = rng.permutation(300) // 10
    return X, y, bags, label_proportions(y, bags, classes=range(n_classes))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_separated_blobs_are_solved_exactly(n_classes):
    X, y, bags, P = blobs(n_classes, noise=0)
    model = quick(n_classes, max_iter=2, population_size=5)
    names = np.array(["b", "c", "a"][:n_classes])
    model.fit(X, bags, pd.DataFrame(P, columns=names))
    assert model.score(X, names[y]) == 1 and model.objective_ < 1e-12
    means = model.cluster_means_
    assert_array_equal(model.cluster_labels_, model.predict(means))


def test_known_labels_name_the_clusters_where_shares_cannot():
    X, y, bags, _ = blobs(noise=0)
    labels = np.where(np.arange(300) < 20, y, -1)
    model = quick(2, population_size=3)
    assert model.fit(X, bags, np.full(30, 0.5), labels=labels).score(X, y) == 1
    swapped = np.where(labels >= 0, 1 - labels, -1)
    assert model.fit(X, bags, np.full(30, 0.5), labels=swapped).score(X, y) == 0


# --- what a user is told -------------------------------------------------------------------------------------


def test_numbers_that_a_caller_types_take_no_memory_by_their_value(monkeypatch):
    X, _, bags, P = blobs()
    X, bags, huge = X[:40], bags[:40], 10**12
    greedy = quick(huge, labeler="greedy", population_size=2)
    assert greedy.fit(X, bags, P).cluster_means_.shape == (40, 5)
    with pytest.raises(ValueError, match=r"labeler='exhaustive' would try 2\*\*40"):
        ClusterModelSelection(huge, max_iter=huge).fit(X, bags, P)
    with pytest.raises(
        ValueError, match=r"population_size=10{12} needs about .*: take"
    ):
        ClusterModelSelection(population_size=huge).fit(X, bags, P)
    monkeypatch.setattr(_running, "machine_memory", lambda: 3e4)
    with pytest.raises(
        ValueError, match="with 40 clusters and population_size=2 needs"
    ):
        greedy.fit(X, bags, P)


def test_other_names_of_bags_round_to_the_same_error():
    X = np.random.default_rng(0).normal(size=(60, 2))
    given = None, AgglomerativeClustering(4), "exhaustive", "weighted"
    for seed in range(9):
        _, bags, P, _ = clustered(seed=seed)
        error = cs.label_clusters(np.ones(2), X, bags, P, *given)[0]
        assert cs.label_clusters(np.ones(2), X, 4 - bags, P[::-1], *given)[0] == error


def test_parts_of_the_search_by_hand(monkeypatch):
    found = cs.normalize(np.array([[0, 0], [-1, 0.5], [2, 0.25]]))
    assert_array_equal(found, [[1, 1], [0, 1], [1, 0.25]])
    X, clusters = np.arange(10.0).reshape(5, 2) ** 2, np.array([1, 0, 1, 1, 0])
    wanted = [X[clusters == k].mean(axis=0) for k in (0, 1)]
    assert_allclose(cs.cluster_means(X, clusters), wanted)
    children = cs.cross(np.ones((4000, 2)), 0.3, np.random.RandomState(0))
    assert len(children) == pytest.approx(1200, abs=90)
    for n, k in ((4, 4), (6, 6), (9, 6)):
        kmeans = quick()._kmeans(n, np.random.RandomState(0))
        assert (kmeans.n_clusters, kmeans.n_init, kmeans.max_iter) == (k, 1, 20)
    forms = forms_of(*clustered()[:3])
    monkeypatch.setattr(cs, "MOST_LABELINGS", 2**4)
    cs.label_exhaustively(forms)
    monkeypatch.setattr(cs, "MOST_LABELINGS", 2**4 - 1)
    with pytest.raises(ValueError, match=r"would try 2\*\*4 labelings"):
        cs.label_exhaustively(forms)


@pytest.mark.parametrize("combine", ["weighted", "sum", "product"])
@pytest.mark.parametrize("labeler", ["exhaustive", "greedy"])
def test_the_objective_is_the_error_of_the_clusters_found(labeler, combine):
    """Of three classes, of which no bag has the last."""
    X, _, bags, P = blobs(2, noise=1)
    P = np.column_stack([np.roll(P, 1, axis=0), np.zeros(30)])
    how = {"labeler": labeler, "combine": combine, "max_iter": 2}
    model = quick(4, **how, population_size=3).fit(X, bags, P)
    squares = (X[:, None] - model.cluster_means_) ** 2 @ model.feature_weights_
    clusters = squares.argmin(axis=1)
    slow = slow_error(model.labeling_, clusters, bags, P, None, combine)
    assert model.objective_ == model.history_[-1] == pytest.approx(slow, abs=1e-11)
    assert model.n_iter_ == 2 and 2 not in model.labeling_
    assert_array_equal(model.predict(X), model.labeling_[clusters])


@pytest.mark.filterwarnings("error:Number of distinct clusters")
def test_a_search_that_weighs_a_constant_feature_alone_is_quiet():
    kmeans = quick(2)._kmeans(4, np.random.RandomState(0))
    assert not cs.cluster(kmeans, np.ones((4, 1)), np.ones(1)).any()
