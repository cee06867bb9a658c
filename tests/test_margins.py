"""Published tables: rows of totals, margins that do not agree."""

import numpy as np
import pytest

from llpbook._input import named_totals, sums_of_rows


def precincts(n_rows=12, seed=0):
    """Counts of two groups and of one of two classes."""
    rng = np.random.default_rng(seed)
    return rng.integers(50, 400, size=(n_rows, 3))


@pytest.mark.parametrize("place", [0, 5, 12])
def test_a_row_of_totals_is_found_wherever_it_stands(place):
    table = precincts()
    total = np.insert(table, place, table.sum(axis=0), axis=0)
    found = sums_of_rows(total)
    assert list(found) == [place]
    assert found[place].tolist() == [i for i in range(13) if i != place]
    assert sums_of_rows(table) == {}


@pytest.mark.parametrize("heads", [False, True])
def test_subtotals_and_the_total_of_all_are_found_together(heads):
    table, rows = precincts(), []
    for county in (slice(0, 3), slice(3, 8), slice(8, 12)):
        part, total = table[county], table[county].sum(axis=0, keepdims=True)
        rows += [total, part] if heads else [part, total]
    rows.append(table.sum(axis=0, keepdims=True))
    found = sums_of_rows(np.vstack(rows))
    assert sorted(found) == ([0, 4, 10, 15] if heads else [3, 9, 14, 15])
    assert [len(rows) for _, rows in sorted(found.items())] == [3, 5, 4, 12]


def test_a_total_of_rounded_shares_is_found_within_their_slack():
    counts = precincts().astype(float)
    sizes = counts[:, 0] + counts[:, 1]
    sizes, yes = (
        np.append(sizes, sizes.sum()),
        np.append(counts[:, 2], counts[:, 2].sum()),
    )
    share = (yes / sizes).round(2)
    table = np.column_stack([sizes, sizes * share])
    slack = np.column_stack([0 * sizes, 0.005 * sizes])
    assert list(sums_of_rows(table, slack)) == [12]
    assert sums_of_rows(table[:-1], slack[:-1]) == {}
    table[-1, 1] += 0.02 * sizes[-1]
    assert sums_of_rows(table, slack) == {}


def test_small_counts_that_happen_to_add_up_are_no_totals():
    rng = np.random.default_rng(0)
    for _ in range(200):
        assert sums_of_rows(rng.integers(0, 4, size=(30, 2))) == {}
        assert sums_of_rows(rng.integers(0, 60, size=(40, 3))) == {}
    assert sums_of_rows(np.array([[2, 1], [3, 2], [5, 3]])) == {}
    assert sums_of_rows(np.array([[200, 100], [200, 100]])) == {}


def test_names_of_totals():
    says = [
        "Total",
        "TOTALS:",
        "Wake subtotal",
        "Sub-total",
        "Grand Total",
        "Sum",
        "All",
    ]
    others = ["Totalville", "Sumter", "Allendale", "01", 7, None, "Precinct 3"]
    assert named_totals(says).all()
    assert not named_totals(others).any()
