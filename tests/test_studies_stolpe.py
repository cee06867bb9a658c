"""The protocol of stolpe2011: what chooses a model, ranks, and no label where none belongs."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from llpbook.cluster_selection import ClusterModelSelection
from studies import cluster_times, load, paper_table, stolpe2011
from studies.stolpe2011 import METHODS


def small(n=80):
    rng = np.random.default_rng(0)
    y = np.arange(n) % 2
    X = rng.normal(size=(n, 2)) + 6 * y[:, None]
    bags = rng.permutation(n) // 8
    p = np.bincount(bags, y) / np.bincount(bags)
    return X, y, bags, np.column_stack([1 - p, p])


def test_choices_are_what_they_say():
    # Candidate 0 is best on even folds, 1 on odd ones, 2 is even and best on average.
    accuracy = np.array([[0.9, 0.1, 0.6], [0.1, 0.9, 0.6]] * 5)
    held, own = np.tile([3, 2, 1], (10, 1)), np.tile([1, 2, 3], (10, 1))
    found = stolpe2011.choose(accuracy, held, own)
    assert found["best"] == found["held_out"] == 0.6
    assert found["crossed"] == pytest.approx(0.1)
    assert found["in_sample"] == 0.5 and found["mean"] == pytest.approx(1.6 / 3)


@pytest.mark.parametrize(("size", "whole"), [(2, True), (16, True), (64, False)])
def test_a_quarter_is_held_out(size, whole):
    bags = np.arange(240) // size
    fit, held = stolpe2011.hold_out(bags, 0)
    assert sorted([*fit, *held]) == list(range(240)) and abs(len(held) - 60) <= size
    assert whole != bool({*bags[fit]} & {*bags[held]})


def test_labels_reach_a_fit_through_shares_alone(monkeypatch):
    seen, own = [], ClusterModelSelection.fit

    def spy(self, X, bags, proportions, labels=None):
        seen.append((bags, np.asarray(proportions), labels))
        return own(self, X, bags, proportions)

    monkeypatch.setattr(ClusterModelSelection, "fit", spy)
    X, y, bags, P = small()
    stolpe2011.fold("k-means", X, bags, P, X, 1 - y, 0)
    assert len(seen) == 2 * len(METHODS["k-means"][0])
    for given, shares, labels in seen:
        assert labels is None and shares.shape == (given.max() + 1, 2)
    swapped = stolpe2011.fold("k-means", X, bags, P, X, y, 0)
    errors = stolpe2011.fold("k-means", X, bags, P, X, 1 - y, 0)
    for one, two in zip(swapped[1:], errors[1:], strict=True):
        assert_array_equal(one, two)  # what chooses has not seen y_new


def rows(values):
    """Rows of one bag size and seed, the same on all data sets."""
    return pd.DataFrame(
        {"bag_size": 16, "seed": 0, "dataset": d, "method": m, "best": a}
        for d in stolpe2011.DATASETS
        for m, a in values.items()
    )


def test_ranks_need_all_data_sets_and_share_ties(monkeypatch):
    full = rows({"LLP": 0.9, "AOC-KK": 0.8, "InvCal": 0.8, "MeanMap": 0.1})
    monkeypatch.setattr(stolpe2011, "load_rows", lambda name, results: full)
    found = stolpe2011.ranks().set_index("method")["rank"]
    assert found.to_dict() == {"LLP": 1, "AOC-KK": 2.5, "InvCal": 2.5, "MeanMap": 4}
    assert not len(stolpe2011.complete())  # four of seven methods
    monkeypatch.setattr(stolpe2011, "load_rows", lambda name, results: full[:-1])
    assert not len(stolpe2011.ranks())


def test_stored_ranks_add_up_and_stand_beside_the_printed_ones():
    both = stolpe2011.compare()
    sums = both.query("bag_size < 128").groupby("bag_size")["ours"].sum()
    assert len(sums) and np.allclose(sums, 10)
    printed = paper_table("stolpe2011_table2").set_index(["method", "bag_size"])
    keys = list(zip(both["method"], both["bag_size"], strict=True))
    assert {*both["bag_size"]} >= {*stolpe2011.complete()["bag_size"]}
    assert both["paper"].tolist() == printed.loc[keys, "average_rank"].tolist()


def test_time_is_linear_for_clusters_and_quadratic_for_kernels():
    times = load("cluster_times")
    for method, least, slope in (("LLP", 10_000, 1), ("AOC-KK", 1000, 2)):
        own = times[(times["method"] == method) & (times["n"] >= least)]
        found = np.polyfit(np.log(own["n"]), np.log(own["cpu"]), 1)[0]
        assert abs(found - slope) < 0.25
        assert own["accuracy"].min() > 0.85
    X, _, bags = cluster_times.two_classes(160, 0)
    assert X.min() == 0 and X.max() == 1 and (np.bincount(bags) == 16).all()
