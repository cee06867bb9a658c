"""The studies of the penalty and of the worth in labels: metrics, problems, and what the pages say of the rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from problems import gaussian_bags

from llpbook.comparison import paired_differences
from studies import load, penalty


def test_a_metric_is_the_identity_after_its_map():
    X, _, bags, P = gaussian_bags(200, d=3)
    X = X @ np.array([[2.0, 0, 0], [1, 1, 0], [0, 0, 0.1]])
    T = penalty.features_of("covariance", X, bags, P)
    assert_allclose(T @ T.T, np.linalg.inv(np.cov(X.T)))
    assert_allclose(np.cov((X @ T).T), np.eye(3), atol=1e-12)
    T = penalty.features_of("information", X, bags, P)
    M = np.linalg.inv(T @ T.T)
    assert np.trace(M) == pytest.approx(3.03)
    means = np.array([X[bags == k].mean(axis=0) for k in range(bags.max() + 1)])
    apart = (means - X.mean(axis=0)) * np.sqrt(np.bincount(bags))[:, None]
    found = (M - 0.01 * np.eye(3)) / 3
    assert_allclose(found, apart.T @ apart / np.sum(apart**2), atol=1e-9)


def test_the_bag_with_more_positives_has_the_smaller_mean():
    X, _, y, _, bags = penalty.misleading(None, 0)
    shares, means = np.bincount(bags, y) / 50, np.bincount(bags, X[:, 0]) / 50
    assert shares[0] > shares[1] and means[0] < means[1]
    assert np.mean((X[:, 0] > 0) == y) == 1
    row = penalty.run({"part": "two bags", "task": "natural", "metric": "given"}, 0)
    assert row["accuracy labels"] == 1 and row["accuracy 0.1"] < 0.1


def test_what_the_pages_say_of_the_penalty():
    table = penalty.less()
    assert abs(table.loc["given, 3 / trace", "difference"]) < 0.3
    for metric in ("covariance", "information"):
        assert table.filter(like=metric, axis=0)["difference"].max() < -3.5
    rows = load("penalty").query("part == 'two bags'")
    accuracy = rows.filter(regex="^accuracy [0-9]")
    assert rows["seed"].nunique() == 20 and accuracy.to_numpy().max() < 0.1
    wide = load("benchmark").query("method == 'CountLogistic'")
    columns = {"accuracy_untuned": "untuned", "accuracy_likelihood": "held out"}
    wide = wide.set_index(["dataset", "kind", "bag_size", "seed"])
    scores = wide.rename(columns=columns)[[*columns.values()]]
    gain = paired_differences(100 * scores.dropna(), "untuned", unit="dataset")
    assert gain["difference"].abs().item() < 2 * gain["error"].item()


def test_the_fit_in_the_place_of_the_truth_does_not_rank_the_tasks():
    rows = load("label_worth").query("seed == 0 and classes == 2")
    assert load("label_worth")["seed"].eq(0).all() and len(load("label_worth")) == 252
    for _, part in rows.groupby(rows["part"] == "benchmark"):
        rank = {name: part[name].corr(part["gap"], "spearman")
                for name in ("penalized, labels", "penalized, fit")}  # fmt: skip
        by_shares = (-part["worth"] / part["d"]).corr(part["gap"], "spearman")
        assert rank["penalized, labels"] > 0.7 and by_shares > 0.6
        assert rank["penalized, fit"] < 0.3


def test_the_search_is_why_the_counts_are_behind_on_adult():
    """On the same draws: C by shares of labels (natural), and by mean probabilities (bag_losses_natural)."""
    natural = load("natural").query("how.str.startswith('adult')")
    of = natural.pivot(index=["how", "seed"], columns="method", values="accuracy")
    losses = load("bag_losses_natural")
    losses = losses.query("learner == 'linear' and method == 'counts'")
    better = losses.set_index(["how", "seed"])["accuracy"]
    gain = 100 * of[["CountLogistic", "ridge"]].rsub(better, axis=0)
    gain = gain.groupby("how").mean().dropna()
    assert gain["CountLogistic"].between(2, 3.5).all()
    ahead = gain["ridge"][["adult by occupation", "adult, random"]]
    assert len(gain["ridge"]) == 3 and (ahead > 0.9).all()
