"""The table of natural bags: same draws for all methods, no label where none belongs, errors and marks by hand."""

from dataclasses import replace

import numpy as np
import pytest

from llpbook import all_estimators, diagnose
from llpbook.datasets import load_bags
from llpbook.proportions import label_proportions
from studies import load, natural, run_table

STORED = natural.TABLES[0]


def small_table(tmp_path, accuracies, errors):
    """A table of four methods on all groupings, of these accuracies and errors, one for each seed."""

    def fake(cell, seed):
        k = int(cell["method"] == "MeanMap")
        return {
            "accuracy": accuracies[cell["method"]][seed],
            "soft": accuracies[cell["method"]][seed],
            "soft_error": errors[k][seed],
            "worth": 12.4,
            "chosen": "C=1",
            "soft_chosen": "C=1",
        }

    cells = [c for c in STORED.cells if c["method"] in accuracies]
    run_table(replace(STORED, cells=cells, run=fake), seeds=3, results=tmp_path)


def test_every_estimator_has_a_cell():
    shown = {type(estimator).__name__ for estimator, _ in natural.METHODS.values()}
    # CountCalibration is around another method; `studies.calibration` has its table.
    methods = {name for name, _ in all_estimators()} - {"CountCalibration"}
    missing = methods - shown
    assert not missing, f"add to METHODS of book/studies/natural.py: {missing}"
    assert shown - methods == {"LogisticRegression"}
    settings = [
        sum(np.prod([len(v) for v in some.values()]) for some in np.atleast_1d(grid))
        for _, grid in natural.METHODS.values()
    ]
    assert max(settings) <= 5


def test_the_column_of_the_bags_is_taken_out():
    data = load_bags("adult", by="education")
    X, _, groups = natural.table_of("adult by education")
    years = data.X["education-num"].to_numpy()
    assert X.shape[1] == data.X.shape[1] - 1
    assert all(len(np.unique(years[groups == k])) == 1 for k in np.unique(groups))
    names = load_bags("adult", by="occupation").X.columns
    assert not [name for name in names if name.startswith("occupation")]


def test_standard_errors_and_stars_by_hand(tmp_path):
    accuracies = {
        "majority": [0.7, 0.7, 0.7],
        "ridge": [0.7, 0.8, 0.9],  # gains 0, 10, 20: 10 with se 5.77
        "MeanMap": [0.78, 0.80, 0.82],  # gains 10 with se 1.15
        "labels": [0.9, 0.9, 0.9],
    }
    small_table(tmp_path, accuracies, [[0.1, 0.2, 0.3], [0.1, 0.1, 0.4]])
    row = natural.chapter_table("MeanMap", tmp_path).loc["adult by education"]
    assert row.to_dict() == {
        "majority": "70.0 (0.0)",
        "ridge": "80.0 (5.8)*",  # sqrt(((-10)² + 0 + 10²) / 2 / 3) = 5.77
        "MeanMap": "80.0 (1.2)",  # sqrt((2² + 0 + 2²) / 2 / 3) = 1.15
        "labels": "90.0 (0.0)",
        "worth": 12,
        "warns": "2 of 3",  # a tie counts
    }
    with pytest.raises(ValueError, match="method must be one of"):
        natural.chapter_table("mean_map", tmp_path)


# --- what the chapters say ---------------------------------------------------------------------------------


@pytest.mark.parametrize("how", natural.GROUPINGS)
def test_diagnose_rejects_equal_classes_on_natural_bags_only(how):
    pvalues = []
    for seed in range(10):
        X, _, y, _, bags = natural.make_problem(how, seed)
        shares = label_proportions(y, bags, classes=[0, 1])
        found = diagnose(X, bags, shares, n_permutations=59, random_state=0)
        pvalues.append(found.tests.loc["X_B|Y", "pvalue"])
    if how == "adult, random":
        assert np.mean(np.array(pvalues) < 0.05) < 0.5
    else:
        assert max(pvalues) < 1e-3


OCCUPATION, EDUCATION, LOANS, RANDOM = natural.GROUPINGS
# Method and column; the bags on which its mean is above, and below, the majority class by two standard errors.
ABOVE = {
    ("ridge", "accuracy"): [OCCUPATION, EDUCATION],
    ("WeightedLDA", "soft"): [OCCUPATION],
    ("InvCal", "soft"): [OCCUPATION, EDUCATION],
    ("ConvSVM", "accuracy"): [OCCUPATION],
    ("AlternatingMeanMap", "accuracy"): [OCCUPATION],
    ("EMLR", "soft"): [OCCUPATION, RANDOM],
    ("CountLogistic", "soft"): [OCCUPATION, RANDOM],
    ("CountBoosting", "soft"): [OCCUPATION, EDUCATION],
    ("BagLogistic", "soft"): [OCCUPATION],
    ("BagBoosting", "soft"): [OCCUPATION, RANDOM],
}
BELOW = {
    ("MeanMap", "accuracy"): [OCCUPATION, EDUCATION, LOANS, RANDOM],
    ("LaplacianMeanMap", "accuracy"): [OCCUPATION, EDUCATION, LOANS, RANDOM],
    ("AlternatingMeanMap", "accuracy"): [EDUCATION, LOANS, RANDOM],
    ("WeightedLDA", "accuracy"): [EDUCATION, LOANS],
    ("ClusterModelSelection", "accuracy"): [EDUCATION],
    ("AOCKernelKMeans", "accuracy"): [EDUCATION, LOANS],
    ("EMLR", "accuracy"): [RANDOM],
    ("KDEDifference", "accuracy"): [OCCUPATION, EDUCATION, RANDOM],
    ("LSDD", "accuracy"): [OCCUPATION, EDUCATION],
    ("SMIC", "accuracy"): [OCCUPATION, EDUCATION, LOANS, RANDOM],
}
# Above the majority class nowhere.
NOWHERE = [
    "MeanMap", "LaplacianMeanMap", "AlterSVM", "ClusterModelSelection",
    "AOCKernelKMeans", "KDEDifference", "LSDD", "DSDD", "SMIC",
]  # fmt: skip


def gain(column="accuracy", over="majority"):
    """Mean gain over another method, and its standard error, by method and bags."""
    wide = load(STORED).pivot(index=["how", "seed"], columns="method").dropna()
    gains = wide[column].sub(wide["accuracy", over], axis=0).groupby("how")
    return gains.mean(), gains.sem()


def test_where_methods_are_above_and_below_the_majority():
    for sign, places in ((1, ABOVE), (-1, BELOW)):
        for (method, column), hows in places.items():
            mean, error = gain(column)
            for how in hows:
                sure = sign * mean[method][how] > 2 * error[method][how]
                assert sure, (method, column, how)
    mean, error = gain()
    for method in NOWHERE:
        assert (mean[method] <= 2 * error[method]).all(), method


@pytest.mark.parametrize("column", ["accuracy", "soft"])
def test_no_method_is_above_the_majority_on_the_loans(column):
    mean, error = (part.loc[LOANS].drop("labels") for part in gain(column))
    assert (mean <= 2 * error).all()
    worth = load(STORED).groupby("how")["worth"].mean()
    assert worth[LOANS] < 25 and 30 < worth[RANDOM] < 50


def test_what_the_search_does_not_warn_of():
    """The majority class is seldom as good on held-out shares where labels with the right shares are wrong."""
    error = load(STORED).pivot(
        index=["how", "seed"], columns="method", values="soft_error"
    )
    error = error.dropna()
    warned = error.ge(error["majority"], axis=0).groupby("how").mean()
    for method in ("AlternatingMeanMap", "AlterSVM", "ClusterModelSelection", "EMLR"):
        assert warned[method][EDUCATION] < 0.2
        assert gain()[0][method][EDUCATION] < 0
    for method in ("MeanMap", "LaplacianMeanMap", "SMIC", "AOCKernelKMeans"):
        assert warned[method].min() > 0.5, method
    for method in ("AlterSVM", "ConvSVM", "ClusterModelSelection", "labels"):
        assert warned[method][RANDOM] > 0.8
    pooled = load(STORED).groupby("method")["warned"].min()
    for method in ("KDEDifference", "LSDD", "DSDD", "SMIC"):
        assert pooled[method] == 1
