"""The protocol of alter-∝SVM on the hard problem: the draw, the skeptic's clusters, the errors of shares."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from studies import alter_svm as room
from studies import load, tables


def test_a_draw_has_bags_of_fifty_and_their_shares():
    X, y, bags, shares = room.make_problem(3)
    again = room.make_problem(3)
    assert X.shape == (1000, 20) and (np.bincount(bags) == 50).all()
    assert_allclose(shares, [y[bags == k].mean() for k in range(20)])
    for one, other in zip((X, y, bags, shares), again, strict=True):
        assert_array_equal(one, other)


@pytest.mark.parametrize("positive", [0, 1])
def test_clusters_are_named_by_the_shares(positive):
    rng = np.random.default_rng(0)
    side, bags = rng.integers(0, 2, 200), np.arange(200) // 20
    X, y = rng.normal(size=(200, 2)) + 9.0 * side[:, None], side == positive
    shares = np.bincount(bags, y) / 20
    assert room.NamedClusters().fit(X, bags, shares).score(X, y) == 1


def test_the_best_start_is_no_worse_than_the_chosen_ones():
    rows = load(tables()["alter_svm_starts"])
    assert (rows["best"] >= rows[["accuracy", "by_shares", "mean"]].max(axis=1)).all()
    assert (rows["objective"] <= rows["mean_objective"]).all()
    assert rows.groupby(["C", "annealing"]).size().min() >= 12
