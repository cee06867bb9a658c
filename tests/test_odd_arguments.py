"""Each argument with None, nan, -1, a word, a masked array, …: a ValueError that names it."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from llpbook import (
    MeanMap,
    comparison,
    datasets,
    diagnose,
    model_selection,
    plotting,
)
from llpbook import proportions as shares
from llpbook.diagnosis import two_bag_test
from llpbook.variants import make_bags

rng = np.random.default_rng(0)
BAGS, Y = np.repeat(np.arange(6), 10), rng.integers(0, 2, 60)
X, P = rng.normal(size=(60, 2)) + Y[:, None], np.bincount(BAGS, Y) / 10
TWO, SIZES = np.column_stack([1 - P, P]), np.full(6, 10)
MODEL = MeanMap().fit(X, BAGS, P)
SCORES = np.array([[0.9, 0.8], [0.7, 0.6]])
ODD = {
    "None": None,
    "nan": float("nan"),
    "inf": float("inf"),
    "-1": -1,
    "0": 0,
    "1.5": 1.5,
    "word": "hello",
    "[]": [],
    "masked": np.ma.masked_equal([1.0, 2.0, 3.0], 2.0),
    "object": object(),
    "10^12": 10**12,
}


def search(X, bags, proportions, scoring, cv):
    grid = {"alpha": [1.0, 10.0]}
    found = model_selection.LLPGridSearchCV(MeanMap(), grid, scoring=scoring, cv=cv)
    return found.fit(X, bags, proportions)


def scored(X, bags, proportions, error, bag_sizes):
    scorer = model_selection.proportion_scorer(
        proportions, error=error, bag_sizes=bag_sizes
    )
    return scorer(MODEL, X, bags)


def splits(splitter):
    def call(X, groups, **options):
        return list(splitter(**options).split(X, groups=groups))

    return call


SPLIT = {"X": X, "groups": BAGS, "n_splits": 2}
THREE = {"proportions": TWO, "predicted": TWO, "bag_sizes": SIZES}
# name: (call, good arguments, values that are good as well)
CALLS = {
    "diagnose": (diagnose, {"X": X, "bags": BAGS, "proportions": P, "alpha": 0.05, "exact": True, "n_permutations": 99},
     "exact=None exact=0 n_permutations=10^12"),
    "two_bag_test": (two_bag_test, {"X_p": X[:30], "X_q": X[30:], "n_permutations": 19, "alpha": 0.05},
     "n_permutations=10^12"),
    "make_bags": (make_bags, {"X": X, "y": Y, "variant": "simple", "n_bags": 3}, "n_bags=None"),
    "make_bags by size": (make_bags, {"X": X, "y": Y, "variant": "simple", "sizes": SIZES, "proportions": P,
     "clusters": BAGS}, "sizes=None proportions=None clusters=None"),
    "label_proportions": (shares.label_proportions, {"y": Y, "bags": BAGS, "n_bags": 6, "classes": [0, 1]},
     "n_bags=None classes=None"),
    "averaging_matrix": (shares.averaging_matrix, {"bags": BAGS, "n_bags": 6}, "n_bags=None"),
    "identifiability": (shares.identifiability, {"bags": BAGS, "proportions": P}, ""),
    "class_prior": (shares.class_prior, {"proportions": TWO, "bag_sizes": SIZES}, ""),
    "mse": (shares.proportion_mse, {"proportions": TWO, "predicted": TWO}, ""),
    "mae": (shares.proportion_mae, THREE, "bag_sizes=None"),
    "weighted_mse": (shares.proportion_weighted_mse, THREE, ""),
    "prior_mse": (shares.prior_mse, THREE, ""),
    "count_labelings": (shares.count_labelings, {"counts": [[3, 2], [1, 4]]}, ""),
    "random_bags": (
        lambda y, bag_size: datasets.random_bags(y, bag_size=bag_size, random_state=0),
        {"y": 60, "bag_size": 5},
        "y=10^12 y=masked",  # as many as asked for; an array's values are not read
    ),
    "make_dataset": (datasets.make_dataset, {"X": X, "y": Y, "bags": BAGS}, ""),
    "load": (datasets.load, {"name": "iris", "encoding": "onehot", "missing": "impute", "classes": ["Iris-setosa"]},
     "missing=None classes=None"),
    "binary_labels": (lambda y: datasets.binary_labels(y, 1), {"y": Y}, ""),
    "predict_proportions": (MODEL.predict_proportions, {"X": X, "bags": BAGS, "soft": True}, ""),
    "search": (search, {"X": X, "bags": BAGS, "proportions": P, "scoring": "mse", "cv": 2},
     "scoring=None cv=None cv=[] cv=masked cv=object cv=nan cv=inf cv=1.5 cv=word cv=10^12 cv=-1 cv=0"),
    "scorer": (scored, {"X": X, "bags": BAGS, "proportions": P, "error": "log_likelihood", "bag_sizes": SIZES},
     "bag_sizes=None"),
    "FullBagKFold": (splits(model_selection.FullBagKFold), SPLIT | {"proportions": P}, "proportions=None"),
    "SplitBagKFold": (splits(model_selection.SplitBagKFold), SPLIT | {"shuffle": True}, ""),
    "SplitBagShuffle": (splits(model_selection.SplitBagShuffle), SPLIT | {"test_size": 0.5}, "n_splits=10^12"),
    "SplitBagBootstrap": (splits(model_selection.SplitBagBootstrap), SPLIT | {"test_size": 0.5, "out_of_bag": True},
     "n_splits=10^12"),
    "plot_bags": (plotting.plot_bags, {"X": X, "bags": BAGS, "proportions": P, "class_names": ["a", "b"],
     "max_bags": 3}, "class_names=None max_bags=10^12"),
    "plot_critical_difference": (plotting.plot_critical_difference, {"ranks": [1.5, 1.5, 3], "n_sets": 9, "control": 2,
     "level": 0.05}, "n_sets=10^12 control=None control=0"),
    "rank_methods": (comparison.rank_methods, {"scores": SCORES}, ""),
    "friedman": (comparison.friedman, {"scores": SCORES, "correct_ties": True}, ""),
    "friedman_from_ranks": (comparison.friedman_from_ranks, {"ranks": [1, 2, 3], "n_sets": 9, "tie_factor": 0.5},
     "n_sets=10^12 tie_factor=0"),
    "critical_difference": (comparison.critical_difference, {"n_methods": 4, "n_sets": 8, "test": "nemenyi",
     "level": 0.05}, "n_methods=10^12 n_sets=10^12"),
    "indistinct_groups": (comparison.indistinct_groups, {"ranks": [1, 2, 3], "critical": 1},
     "critical=1.5 critical=10^12"),
    "wilcoxon_test": (comparison.wilcoxon_test, {"first": P, "second": P}, ""),
    "resampled_t_test": (comparison.resampled_t_test, {"first": P, "second": P, "test_train_ratio": 0.5},
     "test_train_ratio=0 test_train_ratio=1.5 test_train_ratio=10^12"),
    "effect_sizes": (comparison.effect_sizes, {"first": P, "second": P}, ""),
    "draw_dag": (plotting.draw_dag, {"dag": {("X", "Y")}}, "dag=[]"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("call", "argument"), [(c, a) for c, (_, good, _) in CALLS.items() for a in good]
)
def test_an_odd_argument_is_named(call, argument):
    function, good, passes = CALLS[call]
    for name, value in ODD.items():
        if f"{argument}={name}" in passes.split():
            continue
        with pytest.raises(ValueError, match=rf"\b{argument}\b"):
            function(**good | {argument: value})
            pytest.fail(f"{argument}={name} was accepted")
    assert not plt.get_fignums()
