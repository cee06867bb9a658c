"""What every study has to keep: problems that are what they say, no label in a fit, rows that can be made again."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import thinned

from llpbook.proportions import label_proportions
from studies import (
    bag_losses,
    benchmark,
    calibration,
    choosing,
    complexllp,
    counts_fair,
    load,
    natural,
    tables,
)

SMALL = complexllp.names()[7]
GERMAN = ("german by purpose",)


def named(value):
    """A case in the name of a test: without addresses, which differ between processes."""
    return getattr(value, "__name__", None) or str(value)


@pytest.fixture(autouse=True)
def few_instances(monkeypatch):
    """The bags of others with every fortieth instance."""
    monkeypatch.setattr(complexllp, "split", thinned(complexllp.split, 40))


#: By name of the table, for a cell: who draws its problem, under which name, and of what.
CELLS = [
    ("benchmark", ("heart", "simple", 10, "CountLogistic"), benchmark, "make_problem", ("heart", "simple", 10)),
    ("benchmark", ("heart", "simple", 10, "ridge"), benchmark, "make_problem", ("heart", "simple", 10)),
    ("benchmark", ("heart", "any", "any", "labels (linear)"), benchmark, "make_problem", ("heart", "any", "any")),
    ("natural", (*GERMAN, "InvCal"), natural, "make_problem", GERMAN),
    ("natural", (*GERMAN, "EMLR"), natural, "make_problem", GERMAN),
    ("natural", (*GERMAN, "labels"), natural, "make_problem", GERMAN),
    ("outside", (SMALL, "InvCal"), complexllp, "split", (SMALL,)),
    ("bag_losses_natural", (*GERMAN, "linear", "normal"), natural, "make_problem", GERMAN),
    ("counts_fair", ("image", "Naive", "MeanMap"), counts_fair, "make_problem", ("image", "Naive")),
    ("calibration", ("digits", 8, "ridge"), calibration, "make_problem", ("digits", 8)),
]  # fmt: skip
#: What tells of labels in the bags, or of time.
FREE = {"in_bags", "cpu_fit", "cpu_search", "cpu_seconds"}


def dealt(X, X_new, y, y_new, bags, *rest):
    """A problem with the labels of each bag dealt anew within it."""
    order = np.random.default_rng(0).permutation(len(y))
    changed = np.empty_like(y)
    by_bag = order[np.argsort(bags[order], kind="stable")]
    changed[np.argsort(bags, kind="stable")] = y[by_bag]
    assert (changed != y).mean() > 0.1
    assert_array_equal(label_proportions(changed, bags), label_proportions(y, bags))
    return X, X_new, changed, y_new, bags, *rest


@pytest.mark.parametrize(
    ("table", "values", "room", "draw", "problem"), CELLS, ids=named
)
def test_labels_reach_fit_and_choice_through_shares_alone(
    table, values, room, draw, problem, monkeypatch
):
    """Labels dealt anew within each bag change the limit of labels alone; the same cell and seed give the same row."""
    found, own = tables()[table], getattr(room, draw)
    cell = dict(zip(found.cells[0], values, strict=True))

    def row():
        made = found.run(cell, 1)
        return {key: str(value) for key, value in made.items() if key not in FREE}

    plain, drawn = row(), []

    def anew(*args):
        drawn.append(args[:-1])
        return dealt(*own(*args))

    monkeypatch.setattr(room, draw, anew)
    assert (row() == plain) == ("labels" not in values[-1])
    assert problem in drawn


PROBLEMS = [
    *[(benchmark.make_problem, ("german", kind, 50)) for kind in benchmark.KINDS],
    *[(natural.make_problem, (how,)) for how in natural.GROUPINGS],
    *[(counts_fair.make_problem, ("image", v)) for v in counts_fair.VARIANTS],
    *[(calibration.make_problem, ("digits", size)) for size in (8, 25)],
    *[(choosing.make_problem, ("making", how)) for how in ("diabetes, hard, 10", "german by purpose")],
    (choosing.make_problem, ("testing", "sonar, random, 10")),
]  # fmt: skip


@pytest.mark.parametrize(("draw", "args"), PROBLEMS, ids=named)
def test_problems_are_paired_scaled_and_drawn_by_the_seed(draw, args):
    given = (*args, 3)
    X, X_new, y, y_new, bags = draw(*given)
    assert len(X) == len(y) == len(bags) and len(X_new) == len(y_new) > 0
    assert_allclose(X.mean(axis=0), 0, atol=1e-8)
    sizes = np.bincount(bags)
    assert (sizes > 0).all() and len(sizes) >= 4
    rows = {x.tobytes() for x in X.round(9)}
    overlap = np.mean([x.tobytes() in rows for x in X_new.round(9)])
    assert overlap < 0.5  # some data hold the same row twice
    for one, again in zip((X, X_new, y, y_new, bags), draw(*given), strict=True):
        assert_array_equal(one, again)
    other = draw(*args, 4)
    assert other[0].shape != X.shape or not np.array_equal(other[0], X)


#: Of what size bags are, and how far shares spread beyond those of random bags.
SPREAD = [
    (benchmark.make_problem, ("german", "naive", 50), 50, False),
    (benchmark.make_problem, ("german", "hard", 50), 50, True),
    (counts_fair.make_problem, ("banana", "Naive"), 25, False),
    (counts_fair.make_problem, ("banana", "Hard"), 25, True),
    (calibration.make_problem, ("adult", 8), 8, False),
    (bag_losses.make_problem, ("1e4 in bags of 500",), 500, False),
]


@pytest.mark.parametrize(("draw", "args", "size", "wide"), SPREAD, ids=named)
def test_bags_have_their_size_and_kinds_their_spread(draw, args, size, wide):
    _, _, y, _, bags = draw(*args, 0)
    assert_array_equal(np.bincount(bags), size)
    shares = label_proportions(y, bags)[:, 1]
    ratio = shares.std(ddof=1) / np.sqrt(y.var() / size)
    assert (ratio > 1.5) == wide and ratio > 0.5


#: Stored rows that are made again: table, values of the cell, seed, columns, tolerance.
STORED = [
    *[("yu2013_meanmap", ("heart", m, 64), 0, ["accuracy"], 0.02) for m in ("MeanMap", "BagMeanRegression")],
    *[("alter_svm_hard", (s,), 0, ["accuracy"], 0.05) for s in ("MeanMap", "k-means", "supervised", "C=0.1")],
    *[("natural", (*GERMAN, m), 0, ["accuracy", "soft", "error", "soft_error", "worth"], 0.005)
      for m in ("majority", "ridge", "MeanMap", "BagLogistic")],
    *[("thread", (m,), 1, ["accuracy"], 0.015) for m in ("ridge", "MeanMap")],
    *[("uncertainty_coverage", cell, 3, ["width", "off", "rate_width", "said", "accuracy"], 0.005)
      for cell in (("random", 100, 5, 100.0), ("X_B|Y", 30, 50, 100.0))],
    ("calibration", ("digits", 25, "ridge"), 0, ["accuracy", "ece_held"], 0.01),
    ("perezortiz2016", ("iris", "SWS-LDA", 10), 0, ["accuracy"], 0.02),
    ("duplessis2013_table1", ("heart", "LSDD", "0.2-0.8", "40-40"), 0, ["ler"], 0.02),
    ("outside", (SMALL, "ridge"), 0, ["accuracy_untuned"], 0.1),
]  # fmt: skip


@pytest.mark.parametrize(("table", "values", "seed", "columns", "atol"), STORED)
def test_a_stored_row_is_made_again(table, values, seed, columns, atol):
    found, rows = tables()[table], load(table)
    cell = dict(zip(found.cells[0], values, strict=True)) | {"seed": seed}
    [stored] = rows[(rows[list(cell)] == cell).all(axis=1)].to_dict("records")
    del cell["seed"]
    again = found.run(cell, seed)
    off = {key: again[key] - stored[key] for key in columns}
    assert max(map(abs, off.values())) < atol, off


@pytest.mark.slow
@pytest.mark.parametrize("name", tables())
def test_stored_rows_are_in_range(name):
    rows = load(tables()[name])
    assert not rows.duplicated([*tables()[name].cells[0], "seed"]).any()
    for column in rows:
        if column.partition("_")[0] in ("accuracy", "auc", "ece", "f1", "ler"):
            found = pd.to_numeric(rows[column], errors="coerce").dropna()
            assert found.between(0, 1).all(), column
