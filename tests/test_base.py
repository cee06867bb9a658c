"""The contract's parts: reading of bags, proportions and labels, and what is made of them."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from llpbook import base
from llpbook.mean_map import MeanMap
from llpbook.proportions import label_proportions, proportion_mse


@pytest.mark.parametrize(
    "proportions",
    [
        [0.25, 1.0],
        np.array([[0.75, 0.25], [0.0, 1.0]]),
        pd.Series([0.25, 1.0]),
        {0: 0.25, 1: 1.0},
        {0: [0.75, 0.25], 1: [0.0, 1.0]},
        pd.DataFrame([[0.75, 0.25], [0.0, 1.0]]),
    ],
)
def test_all_forms_of_proportions_mean_the_same(proportions):
    matrix, classes, _ = base.check_proportions(proportions)
    np.testing.assert_allclose(matrix, [[0.75, 0.25], [0, 1]])
    np.testing.assert_array_equal(classes, [0, 1])


def test_keys_are_matched_by_name_and_not_by_order():
    shares = pd.Series({"b": 0.1, "a": 0.9, "unused": 0.5})
    matrix, _, keys = base.check_proportions(shares)
    codes = base.check_bags(["a", "b", "a"], 3, len(matrix), keys)
    np.testing.assert_allclose(matrix[codes, 1], [0.9, 0.1, 0.9])


@pytest.mark.parametrize(
    "bags",
    [
        [3, 1001],
        [3.0, 1001.0],
        pd.Series([3, 1001], dtype="Int64"),
        pd.array([3, 1001]),
    ],
)
def test_integer_keys_need_not_be_contiguous(bags):
    _, _, keys = base.check_proportions(pd.Series([0.2, 0.4], index=[1001, 3]))
    np.testing.assert_array_equal(base.check_bags(bags, 2, 2, keys), [1, 0])


def test_nullable_and_float_codes_are_read_as_integers():
    for bags in (
        pd.Series([0, 1], dtype="Int64"),
        [0.0, 1.0],
        np.array([0, 1], dtype=np.uint8),
    ):
        np.testing.assert_array_equal(base.check_bags(bags, 2, 2), [0, 1])


def test_labels_are_columns_and_minus_one():
    classes = np.array(["no", "yes"], dtype=object)
    np.testing.assert_array_equal(
        base.check_labels(["yes", -1, "no"], classes, 3), [1, -1, 0]
    )
    np.testing.assert_array_equal(
        base.check_labels(np.array(["yes", -1]), classes, 2), [1, -1]
    )  # now "-1", a string
    for labels, message in (
        (["yes"], "labels must have one entry for each of the 2"),
        (["yes", "maybe"], "labels holds 'maybe'"),
    ):
        with pytest.raises(ValueError, match=message):
            base.check_labels(labels, classes, 2)
    with pytest.raises(ValueError, match="-1 is one of the classes"):
        base.check_labels([1, -1], np.array([-1, 1]), 2)


def test_absorbed_labels_keep_the_counts_of_every_class():
    rng = np.random.default_rng(0)
    y, bags = rng.integers(0, 3, 60), np.arange(60) // 6
    P = label_proportions(y, bags)
    known = np.where(rng.random(60) < 0.4, y, -1)
    data = base.labels_to_pure_bags(
        base.BagData(np.zeros((60, 1)), bags, P, np.arange(3), labels=known)
    )
    assert data.n_pure == 3 and data.labels is None
    np.testing.assert_allclose(data.class_prior, np.bincount(y) / 60)
    for k in range(
        10
    ):  # what is left of a bag is the proportion of its unlabelled instances
        rest = (bags == k) & (known < 0)
        np.testing.assert_allclose(
            data.proportions[k],
            np.bincount(y[rest], minlength=3) / max(rest.sum(), 1),
            atol=1e-12,
        )


def test_no_known_label_changes_nothing():
    data = base.BagData(
        np.zeros((2, 1)),
        np.array([0, 1]),
        np.eye(2),
        np.arange(2),
        labels=np.array([-1, -1]),
    )
    assert base.labels_to_pure_bags(data).n_pure == 0
    X, bags, p = (
        np.random.default_rng(1).normal(size=(20, 2)),
        np.arange(20) // 5,
        [0.2, 0.8, 0.4, 0.6],
    )
    with_none = MeanMap().fit(X, bags, p, labels=np.full(20, -1))
    np.testing.assert_array_equal(with_none.coef_, MeanMap().fit(X, bags, p).coef_)


def test_all_labels_known_is_supervised_learning():
    rng = np.random.default_rng(2)
    y = rng.integers(0, 2, 200)
    X, bags = rng.normal(size=(200, 3)) + y[:, None], np.arange(200) // 10
    p = np.bincount(bags, y) / 10
    ones = np.column_stack([X, np.ones(200)])
    supervised = LogisticRegression(C=4, fit_intercept=False, tol=1e-10).fit(ones, y)
    model = MeanMap(lam=1.0).fit(X, bags, p, labels=y)
    np.testing.assert_allclose(
        np.append(model.coef_, model.intercept_), supervised.coef_[0], atol=1e-4
    )


def test_some_labels_help():
    scores = {0.0: [], 0.3: []}
    for seed in range(20):
        rng = np.random.default_rng(seed)
        y = rng.integers(0, 2, 400)
        X, bags = rng.normal(size=(400, 10)) + 0.5 * y[:, None], np.arange(400) // 50
        p = np.bincount(bags, y) / 50
        for share, found in scores.items():
            labels = np.where(rng.random(400) < share, y, -1)
            found.append(MeanMap().fit(X, bags, p, labels=labels).score(X, y))
    assert np.mean(scores[0.3]) > np.mean(scores[0.0]) + 0.1


def test_contradicting_labels_warn():
    with pytest.warns(base.LLPWarning, match="bag 1 has more labelled instances"):
        MeanMap().fit(
            np.eye(6), [0, 0, 0, 1, 1, 1], [1.0, 0.0], labels=[-1, -1, -1, 1, 1, -1]
        )


def test_predicted_proportions_of_new_bags():
    X, bags, p = np.array([[-1.0], [1.0], [-1.0], [-2.0]]), [0, 0, 1, 1], [0.5, 0.0]
    model = MeanMap().fit(X, bags, p)
    new = model.predict_proportions(X, [2, 2, 0, 0])
    np.testing.assert_allclose(new[[0, 2]], [[1, 0], [0.5, 0.5]])
    assert np.isnan(new[1]).all() and new.shape == (3, 2)
    assert model.predict_proportions(X, bags, n_bags=5).shape == (5, 2)
    with pytest.raises(ValueError, match="bags"):
        model.predict_proportions(X, [0, 0, 1])
    frame = MeanMap().fit(
        X,
        ["u", "u", "v", "v"],
        pd.DataFrame({"no": [0.5, 1], "yes": [0.5, 0]}, ["u", "v"]),
    )
    table = frame.predict_proportions(X, ["z", "z", "v", "v"])
    assert list(table.index) == ["v", "z"] and list(table.columns) == ["no", "yes"]
    assert table.loc["z", "yes"] == 0.5


def test_scorer_sees_only_the_bags_that_occur():
    X, bags, p = (
        np.array([[-1.0], [1.0], [-1.0], [-2.0]]),
        np.array([0, 0, 1, 1]),
        [0.5, 0.25],
    )
    model = MeanMap().fit(X, bags, [0.5, 0.0])
    assert base.proportion_scorer(p)(model, X, bags) == pytest.approx(-0.125)
    assert base.proportion_scorer(p)(model, X[:2], bags[:2]) == 0
    assert base.proportion_scorer(p, proportion_mse)(
        model, X[2:], bags[2:]
    ) == pytest.approx(-(0.25**2))
