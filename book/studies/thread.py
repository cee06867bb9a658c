"""The thread of the book: the patients of heart in wards of eight, twenty fixed draws, and a table that grows.

Draw ``seed``, 0 to 19, is ``load_bags("heart", bag_size=8, random_state=seed)``: 34 wards of 270 patients. The wards
are in five parts. One part after the other is held out, so that each patient is *new* once; the other wards are given
with their shares, and all patients are standardized by theirs. Methods, grids and the two criteria, to which no label
of a patient belongs, are those of the study `natural`, and so are the columns of a row, means over the five parts:
``in_bags`` is the accuracy on the patients of the given wards, ``accuracy`` that on new patients, both with the setting
chosen by the shares of predicted labels; ``soft`` is the accuracy on new patients with the setting chosen by mean
probabilities.

All draws divide the same 270 patients: a standard error says what other wards would change, not what other patients
would.
"""

import numpy as np
from sklearn.preprocessing import StandardScaler

from llpbook.datasets import load_bags

from .natural import METHODS, judge
from .runner import Table, cells

PROTOCOL = "thread-1"
BAG_SIZE, PARTS = 8, 5


def make_problem(seed, part=0):
    """One draw of wards, one part of them held out.

    Parameters
    ----------
    seed : int
    part : int

    Returns
    -------
    tuple
        As `natural.make_problem` returns it; the bags are the wards that are given.
    """
    data = load_bags("heart", bag_size=BAG_SIZE, random_state=seed)
    y = (data.true_labels_for_evaluation() == data.classes[1]).astype(int)
    wards = np.random.RandomState(seed).permutation(data.bags.max() + 1)
    new = np.isin(data.bags, wards[part::PARTS])
    Z = StandardScaler().fit(data.X[~new]).transform(data.X)
    bags = np.unique(data.bags[~new], return_inverse=True)[1]
    return Z[~new], Z[new], y[~new], y[new], bags


def run(cell, seed):
    """One row: a method and a seed."""
    problems = [make_problem(seed, part) for part in range(PARTS)]
    parts = [judge(cell["method"], problem, seed) for problem in problems]
    sizes = [len(problem[1]) for problem in problems]
    return {
        key: round(float(np.average([some[key] for some in parts], weights=sizes)), 6)
        for key in ("accuracy", "soft", "in_bags", "error", "soft_error", "warned")
    }


TABLES = [
    Table(
        "thread",
        PROTOCOL,
        cells(method=list(METHODS)),
        run,
        "all methods on heart in wards of eight: the table that grows from chapter to chapter",
    )
]
