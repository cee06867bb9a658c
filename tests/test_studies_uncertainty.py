"""The study of coverage: its worlds are what they say, and rivals by hand."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from studies import bag_deviation as differ
from studies import uncertainty as study


@pytest.mark.parametrize("world", ["random", "Y_B|X", "X_B|Y"])
def test_the_true_slopes_are_those_of_labels(world):
    X, y, _ = study.draw(world, 20_000, 5, np.random.default_rng(1))
    found = LogisticRegression(C=1e6).fit(X, y).coef_[0]
    assert_allclose(found, study.true_slopes(world), atol=0.04)


def test_bags_have_an_effect_of_their_own_where_they_should():
    for world, least, most in (("Y_B|X", 0, 0.02), ("neither", 0.05, 1)):
        X, y, bags = study.draw(world, 300, 200, np.random.default_rng(0))
        model = LogisticRegression(C=1e6).fit(X, y)
        s = model.predict_proba(X)[:, 1]
        miss = np.bincount(bags, y - s) / np.sqrt(np.bincount(bags, s * (1 - s)))
        # What the variance has beyond 1 is the variance of the bags' effects times that of the labels in a bag.
        effect = (miss.var() - 1) / np.bincount(bags, s * (1 - s)).mean()
        assert least <= max(effect, 0) <= most


def test_goodmans_regression_by_hand():
    inside = np.array([0.0, 0.5, 1.0])
    rate, error = study.goodman(inside, np.array([0.2, 0.35, 0.5]), np.ones(3))
    assert rate == pytest.approx(0.5) and error == pytest.approx(0)
    rng = np.random.default_rng(0)
    found = []
    for _ in range(200):
        x, sizes = rng.uniform(size=40), np.full(40, 100)
        p = 0.6 * x + 0.3 * (1 - x) + 0.1 * rng.normal(size=40)
        found.append(study.goodman(x, p, sizes))
    rates, errors = np.transpose(found)
    assert rates.mean() == pytest.approx(0.6, abs=0.01)
    assert errors.mean() == pytest.approx(rates.std(), rel=0.2)


def test_accuracy_by_regression_is_fooled_by_bags_that_are_predicted_well():
    # Within each bag the labels are drawn by lot; half of the predictions are right.
    rng = np.random.default_rng(0)
    share, bags = rng.uniform(size=200), np.repeat(np.arange(200), 50)
    y, predicted = (rng.random((2, 10_000)) < share[bags]).astype(int)
    shares = [np.bincount(bags, v) / 50 for v in (predicted, y)]
    said = study.regressed_accuracy(*shares, np.full(200, 50))
    assert said > 0.9 and np.mean(predicted == y) < 0.72


def test_bags_differ_as_they_should_and_rows_are_made_again():
    rng = np.random.default_rng(0)
    for world, tau in (("own", 0.0), ("own", 1.0), ("follows", 0.0)):
        X, y, bags, P = differ.draw(world, tau, 300, 100, rng)
        s = expit(X @ differ.SLOPES + differ.OFFSET)
        V = np.bincount(bags, s * (1 - s))
        u = np.bincount(bags, y - s) / V
        mean = np.bincount(bags, X[:, 3]) / 100
        follows = np.corrcoef(u, mean)[0, 1]
        assert (follows > 0.7) == (world == "follows")
        excess = max(u.var() - np.mean(1 / V), 0)
        spread = 0.5 if world == "follows" else tau
        assert np.sqrt(excess) == pytest.approx(spread, abs=0.25)
        assert_allclose(P[:, 1], np.bincount(bags, y) / 100)
    cell = differ.coverage_cells()[3]
    row = differ.run_coverage(cell, 0)
    assert row == differ.run_coverage(cell, 0) and 0 <= row["mixed_95"] <= 1
