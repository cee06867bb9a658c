"""Published tables: rows of totals, margins that do not agree."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from llpbook import LLPWarning, check_margins
from llpbook._input import named_totals, sums_of_rows
from llpbook.ecological import ecological_rates, goodman


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


# --- check_margins ---------------------------------------------------------------------------------------------------


def tables(n_places=12, seed=0):
    """People of three groups and votes for two classes, which agree."""
    rng = np.random.default_rng(seed)
    names = [f"P{k}" for k in range(n_places)]
    groups = pd.DataFrame(rng.integers(50, 400, (n_places, 3)), names, ["a", "b", "c"])
    yes = rng.binomial(groups.sum(axis=1), 0.4)
    votes = pd.DataFrame({"no": groups.sum(axis=1) - yes, "yes": yes})
    return groups, votes


def problems_of(margins):
    """Places by problem."""
    return {k: v.index.tolist() for k, v in margins.problems.groupby("problem")}


@pytest.mark.parametrize("rule", ["drop", "scale", "rest"])
def test_tables_that_agree_are_handed_on_as_they_are(rule):
    groups, votes = tables()
    margins = check_margins(groups, votes.iloc[::-1], rule=rule)
    assert "agree in all places" in str(margins) and margins.problems.empty
    pd.testing.assert_frame_equal(margins.groups, groups, check_dtype=False)
    pd.testing.assert_frame_equal(
        margins.classes, votes.loc[groups.index], check_dtype=False
    )
    table = groups.stack()
    assert_array_equal(margins.counts, table)
    assert margins.bags.tolist() == table.index.get_level_values(0).tolist()
    assert margins.group.tolist() == table.index.get_level_values(1).tolist()
    assert_array_equal(margins.X.to_numpy().argmax(axis=1), np.tile([0, 1, 2], 12))
    rates = goodman(
        margins.bags, margins.proportions, margins.group, counts=margins.counts
    )
    assert rates["n"].to_dict() == groups.sum().to_dict()


def test_each_rule_does_what_it_says():
    groups, votes = tables()
    votes.loc["P3", "yes"] += 30  # more votes than people
    votes.loc["P5", "no"] = 3  # fewer, and the larger difference
    votes.loc["P7", "no"] -= 1
    dropped, scaled, rest = (
        check_margins(groups, votes, rule=rule) for rule in ("drop", "scale", "rest")
    )
    for margins in (dropped, scaled, rest):
        found = problems_of(margins)
        assert found == {
            "classes sum to more than groups": ["P3"],
            "classes sum to less than groups": ["P5", "P7"],
        }
        difference = votes.sum(axis=1) - groups.sum(axis=1)
        assert "votes" not in str(margins)  # the classes may be anything
        assert (
            margins.problems["difference"].to_dict()
            == difference[["P3", "P5", "P7"]].to_dict()
        )
        assert_array_equal(margins.groups.sum(axis=1), margins.classes.sum(axis=1))
        others = groups.index.difference(["P3", "P5", "P7"])
        pd.testing.assert_frame_equal(
            margins.groups.loc[others], groups.loc[others], check_dtype=False
        )
    assert (
        set(dropped.groups.index)
        == set(others)
        == set(groups.index) - {"P3", "P5", "P7"}
    )
    pd.testing.assert_frame_equal(scaled.classes, votes, check_dtype=False)
    ideal = groups.mul(votes.sum(axis=1) / groups.sum(axis=1), axis=0)
    assert (scaled.groups - ideal).abs().to_numpy().max() < 1
    assert "P3" not in rest.groups.index and rest.classes.loc["P7", "rest"] == 1
    assert rest.classes["rest"].sum() == -difference[["P5", "P7"]].sum()
    assert "the sum of the classes, all by one factor" in str(scaled)


@pytest.mark.parametrize("as_index", [True, False])
def test_totals_of_rows_and_columns_are_left_out(as_index):
    groups, votes = tables()
    whole = [t.assign(total=t.sum(axis=1)) for t in (groups, votes)]
    name = "Total" if as_index else "zz"
    whole = [pd.concat([t, t.sum().to_frame(name).T]) for t in whole]
    margins = check_margins(*whole)
    assert problems_of(margins) == {"row of totals": [name]}
    assert "column 'total' of groups is left out" in str(margins)
    pd.testing.assert_frame_equal(margins.groups, groups, check_dtype=False)
    pd.testing.assert_frame_equal(margins.classes, votes, check_dtype=False)


def test_subtotals_and_a_total_that_does_not_add_up_are_left_out():
    groups, votes = tables()
    both = []
    for table in (groups, votes):
        parts = [
            table[:5],
            table[:5].sum().to_frame("north").T,
            table[5:],
            table[5:].sum().to_frame("south").T,
        ]
        both.append(pd.concat([*parts, table.sum().to_frame("All").T + 7]))
    margins = check_margins(*both)
    assert problems_of(margins) == {"row of totals": ["All", "north", "south"]}
    assert margins.groups.index.tolist() == groups.index.tolist()


def test_a_total_of_more_than_the_columns_asks_for_the_missing_ones():
    groups, votes = tables()
    total = groups.drop(columns="c").assign(total=groups.sum(axis=1))
    assert f"exceeds them by {groups['c'].sum():,}" in str(
        check_margins(total, votes, rule="scale")
    )
    one = votes.assign(total=votes.sum(axis=1)).drop(columns="no")
    with pytest.raises(
        ValueError,
        match=r"classes.assign\(others=classes\['total'\] - classes\['yes'\]\)",
    ):
        check_margins(groups, one)


def test_places_without_numbers_and_missing_numbers():
    groups, votes = tables()
    votes, groups = votes.astype(float), groups.astype("Int64")
    votes.loc["P1"] = np.nan  # has not reported
    votes.loc["P2"] = 0
    groups.loc["P4"] = pd.NA
    groups.loc["P6"], votes.loc["P6"] = 0, 0
    groups.loc["P8", "b"], votes.loc["P8", "yes"] = pd.NA, np.nan  # after unstack
    votes.loc["P8", "no"] = groups.loc["P8"].sum()
    margins = check_margins(groups, votes.drop(index="P9"))
    assert problems_of(margins) == {
        "nobody in either table": ["P6"],
        "nobody in classes: has it reported?": ["P2", "P1"]
        if groups.loc["P2"].sum() > groups.loc["P1"].sum()
        else ["P1", "P2"],
        "nobody in groups": ["P4"],
        "only in groups": ["P9"],
    }
    assert margins.groups.loc["P8", "b"] == 0 and margins.classes.loc["P8", "yes"] == 0
    assert "column 'yes' of classes misses 1 numbers" in str(margins)


def test_places_in_regions_keep_both_names():
    groups, classes = tables()
    regions = pd.MultiIndex.from_arrays(
        [list("uvw") * 4, groups.index], names=["region", "place"]
    )
    groups, classes = groups.set_axis(regions), classes.set_axis(regions)
    total = groups.sum().to_frame(("x", "Total")).T
    total = pd.concat([groups, total]).rename_axis(regions.names)
    margins = check_margins(total, classes.assign(none=0))
    assert problems_of(margins) == {"only in groups": [("x", "Total")]}
    assert "column 'none' of classes has nobody" in str(margins)
    assert margins.groups.index.names == ["region", "place"]
    found = goodman(
        margins.bags, margins.proportions, margins.group, counts=margins.counts
    )
    assert found["n"].sum() == classes.to_numpy().sum()
    rates = ecological_rates(margins.groups, margins.classes, strata="region")
    assert rates.table["n"].xs("yes", level="class").tolist() == groups.sum().tolist()


def test_a_place_that_stands_there_twice():
    groups, votes = tables()
    same = pd.concat([groups, groups.loc[["P3"]]])
    assert check_margins(same, votes).problems.empty
    other = pd.concat([groups, groups.loc[["P3"]] + 5])
    margins = check_margins(other, votes)
    assert problems_of(margins) == {"several different rows in groups": ["P3"]}
    assert "P3" not in margins.groups.index


def test_what_is_no_table_of_counts_is_refused():
    groups, votes = tables()
    for table, match in (
        (groups / groups.sum(axis=1).max(), "for shares, pass groups.mul"),
        (groups - 100, "whole numbers, 0 or more, got -"),
        (
            groups.rename_axis("precinct").reset_index(),
            r"groups.set_index\('precinct'\)",
        ),
        (
            groups.astype(str).replace({"a": {str(groups["a"].iloc[0]): "1,234"}}),
            "thousands=",
        ),
        (groups["a"], "must be a DataFrame"),
        (groups.set_axis(range(12)), "share no place: groups has 0, classes 'P0'"),
    ):
        with pytest.raises(ValueError, match=match):
            check_margins(table, votes)
    with pytest.raises(ValueError, match="rule must be one of"):
        check_margins(groups, votes, rule="mean")
    with pytest.raises(
        ValueError,
        match=r"agree in no place under rule='drop'.*rule='scale' and rule='rest'",
    ):
        check_margins(groups + 1, votes)
    with pytest.raises(ValueError, match="class 'rest' already"):
        check_margins(groups + 1, votes.rename(columns={"no": "rest"}), rule="rest")


def in_units(table, unit, digits):
    """Shares or percent of each place, rounded as a table prints them."""
    return (table.div(table.sum(axis=1), axis=0) * unit).round(digits)


@pytest.mark.parametrize("unit, digits, word", [(1, 3, "shares"), (100, 1, "percent")])
def test_shares_are_no_counts_and_the_line_that_is_named_makes_them_counts(unit, digits, word):  # fmt: skip
    groups, votes = tables()
    right = ecological_rates(groups, votes).table["rate"]
    shown = {"groups": in_units(groups, unit, digits), "classes": in_units(votes, unit, digits)}  # fmt: skip
    sizes, counts = groups.sum(axis=1), {}
    for name, table in shown.items():
        pair = {"groups": groups, "classes": votes} | {name: table}
        with pytest.raises(ValueError, match=f"these are {word}, which sum to {unit}"):
            check_margins(**pair)
        with pytest.raises(ValueError, match=f"these are {word}") as refused:
            ecological_rates(**pair)
        line = str(refused.value).split("pass ")[1]
        counts[name] = eval(line, {"sizes": sizes, name: table})
    again = ecological_rates(counts["groups"], counts["classes"])
    assert (again.table["rate"] - right).abs().max() < 0.02
    whole = check_margins(counts["groups"].round(), counts["classes"].round(), rule="scale")  # fmt: skip
    assert len(whole.groups) == 12
    with pytest.raises(ValueError, match="these are") as refused:
        ecological_rates(shown["groups"].to_numpy(), votes.to_numpy())
    names = {"groups": shown["groups"].to_numpy(), "sizes": sizes.to_numpy()}
    made = eval(str(refused.value).split("pass ")[1], names)
    assert np.allclose(made.sum(axis=1), sizes)


def test_whole_percent_of_two_groups_are_said():
    groups, votes = tables()
    percent = in_units(groups, 100, 0).assign(b=lambda t: 100 - t["a"])[["a", "b"]]
    classes = in_units(votes, 100, 0).assign(yes=lambda t: 100 - t["no"])
    with pytest.warns(LLPWarning, match="each place has 100 people"):
        ecological_rates(percent, classes[["no", "yes"]])


@pytest.mark.parametrize("side", ["groups", "classes", "both"])
@pytest.mark.parametrize("form", ["frames", "arrays"])
def test_tables_with_places_as_columns_are_named(side, form):
    groups, votes = tables()
    pair = {"groups": groups, "classes": votes}
    cure = {"both": "pass groups.T and classes.T$"}.get(side, rf"pass {side}\.T$")
    pair |= {k: t.T for k, t in pair.items() if side in (k, "both")}
    if form == "frames":
        with pytest.raises(ValueError, match=cure):
            check_margins(**pair)
    else:
        pair = {k: t.to_numpy() for k, t in pair.items()}
    with pytest.raises(ValueError, match=cure):
        ecological_rates(**pair)


def test_people_counted_twice_are_asked_for_and_not_scaled_silently():
    groups, votes = tables()
    twice = "12 of 12 places the classes sum to more than the groups, typically to 2.00"
    for rule in ("drop", "rest"):
        with pytest.raises(ValueError, match=twice):
            check_margins(groups, 2 * votes, rule=rule)
    assert twice in str(check_margins(groups, 2 * votes, rule="scale"))
    some = votes.copy()
    some.iloc[:5] *= 2
    assert "typically" not in str(check_margins(groups, some))


def test_parts_of_each_place_are_summed_by_the_line_that_is_named():
    groups, votes = tables()
    day = votes // 3
    parts = pd.concat({"day": day, "mail": votes - day}, names=["mode"])
    deep = parts.swaplevel().sort_index()
    with pytest.raises(ValueError, match=r"several different ones for each.*groupby"):
        check_margins(groups, parts.droplevel("mode"))
    with pytest.raises(ValueError, match="has a level more") as refused:
        check_margins(groups, deep)
    line = str(refused.value).split("pass ")[1]
    margins = check_margins(groups, eval(line, {"classes": deep}))
    assert margins.problems.empty and len(margins.groups) == 12


def test_a_code_for_what_is_not_known_is_left_out_by_the_line_that_is_named():
    groups, votes = tables()
    groups.iloc[2, 0] = -666666666
    with pytest.raises(ValueError, match="marks what is not known") as refused:
        check_margins(groups, votes)
    line = str(refused.value).split("place: ")[1]
    assert len(eval(line, {"groups": groups})) == 11
