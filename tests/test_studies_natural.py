"""The table of natural bags: same draws for all methods, no label where none belongs, errors and marks by hand."""

from dataclasses import replace

import numpy as np
import pytest

from llpbook import all_estimators, diagnose
from llpbook.datasets import load_bags
from llpbook.proportions import label_proportions
from studies import natural, run_table

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
