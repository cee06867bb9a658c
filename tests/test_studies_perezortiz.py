"""The protocol of perezortiz2016: folds, bags, no label where none belongs."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold, cross_val_score

from llpbook.datasets import random_bags
from llpbook.discriminant import WeightedLDA
from llpbook.proportions import label_proportions
from studies import load, perezortiz2016

# --- perezortiz2016 ----------------------------------------------------------------------------------------


def test_constant_predictions_have_the_printed_deviation():
    """Folds are stratified: only then is the deviation of a constant prediction as small as printed."""
    X, y = perezortiz2016.problem("glass")
    first = DummyClassifier(strategy="constant", constant=0)
    means, spreads = [], []
    for seed in range(20):
        folds = StratifiedKFold(10, shuffle=True, random_state=seed)
        scores = 100 * cross_val_score(first, X, y, cv=folds)
        means.append(scores.mean())
        spreads.append(scores.std(ddof=1))
    assert abs(np.mean(means) - 32.73) < 0.1  # the share of the first class
    assert np.mean(spreads) < 3 and min(spreads) < 1.6


def test_lda_is_supervised_and_bags_are_not():
    X, y = perezortiz2016.problem("iris")
    cell = {"dataset": "iris", "method": "LDA", "bag_size": 1}
    assert perezortiz2016.run(cell, 0)["accuracy"] > 0.96
    shuffled = np.random.default_rng(0).permutation(y)
    cell = {"method": "WWS-LDA", "bag_size": 150}
    with pytest.raises(ValueError, match="the same in every bag"):
        perezortiz2016.fit_and_predict(cell, X, shuffled, X, 0)


def test_labels_reach_the_fit_through_counts_alone(monkeypatch):
    seen = []
    own = WeightedLDA.fit

    def spy(self, X, bags, proportions, labels=None):
        seen.append((np.bincount(bags), proportions, labels))
        return own(self, X, bags, proportions)

    monkeypatch.setattr(WeightedLDA, "fit", spy)
    X, y = perezortiz2016.problem("iris")
    cell = {"method": "SWS-LDA", "bag_size": 10}
    perezortiz2016.fit_and_predict(cell, X[::2], y[::2], X[1::2], 3)
    sizes, shares, labels = seen[0]
    assert sizes.tolist() == [10] * 7 + [5] and labels is None
    counts = shares * sizes[:, None]
    assert_allclose(counts, np.round(counts), atol=1e-9)
    assert_array_equal(counts.sum(axis=0).round(), np.bincount(y[::2]))


def test_singular_covariance_on_nursery():
    """The sentence "worth 35 points of supervised accuracy": a pseudo-inverse instead of the least variance."""
    from llpbook import discriminant

    X, y = perezortiz2016.problem("nursery")
    rows = np.random.default_rng(0).permutation(len(X))[:3000]
    X, y = X[rows], np.unique(y[rows], return_inverse=True)[1]
    model = WeightedLDA("sws").fit(X, np.arange(3000), np.eye(y.max() + 1)[y])
    values, vectors = np.linalg.eigh(model.covariance_)
    kept = values > 1e-8 * values[-1]
    gaussians = discriminant.Gaussians(
        model.means_, vectors[:, kept] / np.sqrt(values[kept]), model.class_prior_
    )
    coef, intercept = discriminant.discriminants(gaussians)
    dropped = np.mean((X @ coef.T + intercept).argmax(axis=1) == y)
    assert 0.25 < model.score(X, y) - dropped < 0.45


# --- numbers in the prose of the chapters ------------------------------------------------------------------


def accuracies():
    rows = load("perezortiz2016")
    return rows.groupby(["dataset", "method", "bag_size"])["accuracy"].mean()


def test_bags_of_ten_are_nearly_labels_where_classes_are_clusters():
    found = accuracies()
    for dataset in ("wine", "iris", "dermatology", "soybean"):
        assert found[dataset, "WWS-LDA", 10] > found[dataset, "LDA", 1] - 0.03


def test_five_rounds_would_explain_nursery_and_no_other():
    found = accuracies()
    assert found["nursery", "WWS-LDA", 10] < 0.72 < 0.88
    for dataset in ("iris", "wine"):
        X, y = perezortiz2016.problem(dataset)
        X = (X - X.mean(axis=0)) / X.std(axis=0)
        early = []
        for seed in range(3):
            bags = random_bags(y, bag_size=10, random_state=seed)
            model = WeightedLDA("wws", max_iter=5)
            with pytest.warns(ConvergenceWarning):
                model.fit(X, bags, label_proportions(y, bags))
            early.append(model.score(X, y))
        assert found[dataset, "WWS-LDA", 10] > np.mean(early) + 0.05
