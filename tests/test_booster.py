"""Boosted trees for losses of bags against scikit-learn's own on single labels, and against a slow loop."""

import pickle
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, logit, softmax, xlogy
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)

from llpbook._linear._booster import boost_trees, tree_scores

ROUNDS = 12


def curved(n=1500, d=3, n_classes=2, seed=0):
    """Labels with a boundary that only trees find, and features of a hundred values: each has a bin of its own."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.uniform(size=(n, d)), 2)
    z = 6 * (X[:, 0] - 0.5) * (X[:, 1] - 0.5) + rng.normal(0, 0.3, n)
    return X, np.digitize(z, np.quantile(z, np.arange(1, n_classes) / n_classes))


def everywhere(X):
    return np.ones(len(X), dtype=bool)


def logistic(scores, y):
    s = expit(scores)
    value = -np.mean(xlogy(y, s) + xlogy(1 - y, 1 - s))
    return value, s - y, s * (1 - s)


def multinomial(scores, y):
    s = softmax(scores, axis=1)
    hot = np.eye(scores.shape[1])[y]
    return -np.mean(np.log(s[hot == 1])), s - hot, s * (1 - s)


def squares(scores, y):
    return np.mean((y - scores) ** 2), scores - y, np.ones_like(scores)


class Watched:
    """A step that keeps the scores which it was shown."""

    def __init__(self, step):
        self.step, self.seen = step, []

    def __call__(self, scores):
        self.seen.append(scores.copy())
        return self.step(scores)


def options(X, learning_rate, leaves=8):
    return {
        "learning_rate": learning_rate, "max_iter": ROUNDS, "max_leaf_nodes": leaves,
        "min_samples_leaf": max(20, len(X) // 50), "early_stopping": False,
    }  # fmt: skip


@pytest.mark.parametrize("learning_rate, leaves", [(0.1, 8), (1.0, 15), (1.5, 4)])
def test_bags_of_one_are_the_classifier_of_scikit_learn(learning_rate, leaves):
    X, y = curved()
    start = np.full(len(y), logit(y.mean()))
    step = Watched(partial(logistic, y=y))
    given = X, start, step, everywhere(X), learning_rate, ROUNDS
    boost_trees(*given, max_leaf_nodes=leaves)
    theirs = HistGradientBoostingClassifier(**options(X, learning_rate, leaves))
    staged = theirs.fit(X, y).staged_decision_function(X)
    assert_allclose(step.seen[1:], list(staged), atol=1e-6)
    assert np.ptp(step.seen[-1]) > 0.5


def test_bags_of_one_of_several_classes_are_the_classifier_of_scikit_learn():
    X, y = curved(n_classes=3)
    start = np.log(np.bincount(y) / len(y))
    start = np.tile(start - start.mean(), (len(y), 1))
    step = Watched(partial(multinomial, y=y))
    boost_trees(X, start, step, everywhere(X), 0.5, ROUNDS)
    theirs = HistGradientBoostingClassifier(**options(X, 0.5)).fit(X, y)
    staged = theirs.staged_decision_function(X)
    assert_allclose(step.seen[1:], list(staged), atol=1e-6)


def share_step(scores, bags, shares, held_out, smallest=0.05):
    """Cross-entropy of mean probabilities of bags, its gradient, and the Hessian that boosting of counts takes."""
    s, sizes = expit(scores), np.bincount(bags)
    mean = np.bincount(bags, s) / sizes
    value = -(xlogy(shares, mean) + xlogy(1 - shares, 1 - mean))
    slope = (mean - shares) / (mean * (1 - mean))
    hessian = np.maximum(s * (1 - s), smallest)
    return value[held_out].mean(), slope[bags] * s * (1 - s), hessian


def bag_problem(size=5, seed=0):
    X, y = curved(seed=seed)
    # Ten values: a bin without an instance to learn from would be a tie of two cuts.
    X = np.round(X, 1)
    bags = np.random.default_rng(seed).permutation(len(y)) // size
    shares = np.bincount(bags, y) / size
    held_out = np.arange(len(shares)) % 5 == 0
    start = 0.5 * (X[:, 0] - X[:, 2])
    step = partial(share_step, bags=bags, shares=shares, held_out=held_out)
    return X, start, step, ~held_out[bags]


def slowly(X, start, step, rows, learning_rate, max_iter):
    """The definition: each round a fresh regressor of Newton targets, weighted by the Hessian."""
    scores, history = start, []
    tree = HistGradientBoostingRegressor(**options(X, 1.0) | {"max_iter": 1})
    for _ in range(max_iter):
        value, gradient, hessian = step(scores)
        history.append(value)
        # A weight of 0 would also change the bins of some versions of scikit-learn.
        weight = np.where(rows, hessian, 1e-12)
        target = np.where(rows, -gradient / hessian, 0)
        scores = scores + learning_rate * tree.fit(X, target, weight).predict(X)
    return scores, np.array([*history, step(scores)[0]])


@pytest.mark.parametrize("learning_rate", [0.3, 1.5])
def test_boosting_is_a_loop_of_weighted_newton_regressions(learning_rate):
    X, start, step, rows = bag_problem()
    ours = Watched(step)
    _, history = boost_trees(X, start, ours, rows, learning_rate, ROUNDS)
    scores, slow = slowly(X, start, step, rows, learning_rate, ROUNDS)
    assert_allclose(ours.seen[-1], scores, atol=1e-6)
    assert_allclose(history, slow, atol=1e-6)
    assert history.min() < history[0] - 0.001


def test_what_the_loss_says_of_rows_held_out_changes_no_tree():
    X, start, step, rows = bag_problem()

    def garbage(scores):
        value, gradient, hessian = step(scores)
        return value, np.where(rows, gradient, np.nan), np.where(rows, hessian, -np.inf)

    (one, first), (two, second) = (
        boost_trees(X, start, say, rows, *more, max_iter=ROUNDS)
        for say, more in ((step, ()), (garbage, (1.5,)))  # the default
    )
    assert_array_equal(first, second)
    assert_array_equal(tree_scores(one, X), tree_scores(two, X))
    all_rows, _ = boost_trees(X, start, step, everywhere(X), max_iter=ROUNDS)
    assert np.abs(tree_scores(all_rows, X) - tree_scores(one, X)).max() > 0.01


def test_trees_end_at_the_first_best_round():
    X, y = curved()
    told = [5, 4, 2, 3, 2, 6, 2]
    step = Watched(lambda f: (told[len(step.seen) - 1], *logistic(f, y)[1:]))
    start = X[:, 0] - 0.5
    trees, history = boost_trees(X, start, step, everywhere(X), 0.5, len(told) - 1)
    assert_array_equal(history, told)
    assert_array_equal(start + tree_scores(trees, X), step.seen[2])
    assert (step.seen[3] != step.seen[2]).any()


def test_trees_end_when_rounds_no_longer_help():
    X, y = curved()
    told = [3, 2, 1, *[2] * 90]
    step = Watched(lambda f: (told[len(step.seen) - 1], *logistic(f, y)[1:]))
    trees, history = boost_trees(X, X[:, 0] - 0.5, step, everywhere(X), 0.5)
    assert len(history) == 3 + 15 and len(trees._predictors) == 2


@pytest.mark.parametrize("n_columns", [None, 1, 3])
def test_without_a_round_there_is_no_tree(n_columns):
    X, _ = curved(200)
    start = np.ones(200 if n_columns is None else (200, n_columns))
    step = lambda f: (7.0, f, np.ones_like(f))  # noqa: E731
    trees, history = boost_trees(X, start, step, everywhere(X), max_iter=0)
    assert history.tolist() == [7.0]
    assert_array_equal(tree_scores(trees, X[:50]), np.zeros_like(start[:50]))


def test_a_leaf_holds_a_fiftieth_of_the_instances_and_a_tree_eight_leaves():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 2))
    y = X[:, 0] ** 9  # a few instances differ from all
    step, start = partial(squares, y=y), np.zeros(5000)
    trees, _ = boost_trees(X, start, step, everywhere(X), max_iter=1)
    _, leaves = np.unique(tree_scores(trees, X), return_counts=True)
    assert 2 < len(leaves) <= 8 and leaves.min() >= 100
    step, few = partial(squares, y=y[:45]), everywhere(X[:45])
    trees, _ = boost_trees(X[:45], start[:45], step, few, max_iter=1)
    _, leaves = np.unique(tree_scores(trees, X[:45]), return_counts=True)
    assert len(leaves) == 2 and leaves.min() >= 20


def test_each_round_is_reported_once():
    X, y = curved(300)
    step, rounds = partial(logistic, y=y), []
    start = np.zeros(300)
    told = {"after_round": lambda: rounds.append(1)}
    boost_trees(X, start, step, everywhere(X), max_iter=5, **told)
    assert len(rounds) == 5


def test_trees_are_pickled_without_the_data():
    X, y = curved()
    step, start = partial(logistic, y=y), np.zeros(len(y))
    trees, _ = boost_trees(X, start, step, everywhere(X), max_iter=1)
    stored = pickle.dumps(trees)
    assert len(stored) < X.nbytes / 2
    again = tree_scores(pickle.loads(stored), X)
    assert_array_equal(again, tree_scores(trees, X))
