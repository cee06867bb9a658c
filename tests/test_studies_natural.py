"""The table of natural bags: same draws for all methods, no label where none belongs, errors and marks by hand."""

import numpy as np
import pytest

from llpbook import all_estimators, diagnose
from llpbook.datasets import load_bags
from llpbook.proportions import label_proportions
from studies import natural


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
