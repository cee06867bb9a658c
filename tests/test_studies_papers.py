"""The papers' tables beside ours: every cell has one verdict, and what is called explained follows the rule."""

import pytest

from studies import load, open_cells, paper_table, papers

pytestmark = pytest.mark.slow  # all rows of five papers
TOTALS = {
    "stolpe2011": 27,
    "duplessis2013": 120,
    "yu2013": 168,
    "perezortiz2016": 28 + 252 - 2 - 18,
    "franco2023": 306,
}


@pytest.fixture(scope="module")
def found():
    return {paper: papers.cells(paper) for paper in papers.PAPERS}


@pytest.mark.parametrize("paper", papers.PAPERS)
def test_every_cell_stands_once_and_has_one_verdict(found, paper):
    cells = found[paper]
    assert len(cells) == TOTALS[paper]
    assert not cells.duplicated(papers.KEYS).any()
    assert cells["verdict"].isin(papers.VERDICTS).all()
    differs = cells["verdict"] == "differs"
    assert (cells.loc[~differs, "why"] == "").all()
    assert cells.loc[differs, "why"].isin(["small", "explained", "open"]).all()
    assert ((cells["reading"] != "") == (cells["why"] == "explained")).all()
    assert (cells["difference"] - (cells["here"] - cells["paper"])).abs().max() < 1e-9


def test_a_small_difference_is_below_what_the_table_resolves(found):
    cells = found["yu2013"]
    gap = papers.resolution(
        paper_table("yu2013_table2"), ["dataset", "bag_size"], "acc_mean"
    )
    size = cells["difference"].abs()
    assert (size[cells["why"] == "small"] < gap).all()
    assert (size[cells["why"].isin(["open", "explained"])] >= gap).all()


def test_a_reading_counts_where_more_cells_agree_and_fewer_differ_on_as_many_draws():
    table = papers.readings("duplessis2013").set_index(["method", "reading"])
    for key, row in table.iterrows():
        better = row["then agree"] > row["agree"]
        better &= row["then differ"] < row["differ"]
        assert row["counts"] == (better and row["draws"] >= 100), key
    counted = table[table["counts"]]
    assert set(counted.index.get_level_values("method")) == {"KM", "SC", "SMIC"}
    assert not papers.readings("yu2013").set_index("reading")["counts"]["no intercept"]


def test_an_explained_cell_agrees_under_the_best_reading_or_is_a_constant(found):
    cells = found["duplessis2013"]
    part = cells[(cells["method"] == "SC") & (cells["why"] == "explained")]
    assert (part["reading"] == "unit range and 7 with itself").all() and len(part)
    other = papers._duplessis("unit range and 7 with itself")[0].set_index(papers.KEYS)
    assert (
        other.loc[list(map(tuple, part[papers.KEYS].values)), "verdict"] == "agrees"
    ).all()
    cells = found["perezortiz2016"]
    constant = cells["reading"] == "the print is a constant"
    assert set(cells[constant]["dataset"]) == {"glass", "primary-tumor"}
    assert set(cells[constant]["table"]) == {"II"}  # Table I is not constant


def test_counts_and_overview_add_up(found, monkeypatch):
    monkeypatch.setattr(papers, "cells", found.__getitem__)
    table = papers.overview()
    body, total = table.iloc[:-1], table.iloc[-1]
    for column in table.columns.drop("draws"):
        assert body[column].sum() == total[column]
    assert total["cells"] == sum(TOTALS.values()) and total["printed"] == 901
    assert (table[list(papers.VERDICTS)].sum(axis=1) == table["cells"]).all()
    assert (table[["small", "explained", "open"]].sum(axis=1) == table["differs"]).all()
    part = papers.counts(found["yu2013"], "method").loc["MeanMap"]
    assert part["draws"] == "4–10" and part["cells"] == 42
    names, cells, *verdicts = papers.own_verdicts("yu2013", "MeanMap").cells
    assert names == ["2"] and cells == ["42"]
    assert [int(of) for (of,) in verdicts] == [part[v] for v in papers.VERDICTS]
    assert papers.own_verdicts("yu2013", name="all").cells[1] == [str(TOTALS["yu2013"])]


def test_the_open_cells_are_the_largest_and_their_changes_stand_beside_the_print():
    largest = open_cells.largest()[open_cells.CELL]
    assert set(largest.itertuples(index=False, name=None)) == set(open_cells.CELLS)
    table, rows = open_cells.beside(), load("open_cells")
    key = ("perezortiz2016", "II", "wisconsin", "FWS-LDA", 10)
    row = table.loc[key]
    own = rows[(rows[open_cells.CELL] == list(key)).all(axis=1)]
    means = own.groupby("change")["value"].mean()
    gaps = (means - row["paper"]).abs()
    assert row["nearest"] == "no prior" and gaps["no prior"] == gaps.min()
    assert row["then"] == means[row["nearest"]] and row["tried"] == len(means) == 6
    left = (row["then"] - row["paper"]) / (row["here"] - row["paper"])
    assert row["left"] == pytest.approx(left)
    assert not (table["nearest"] == "penalty by labels").any()


def test_the_tables_of_a_page_show_every_cell_with_its_verdict(found):
    two = found["perezortiz2016"].query("table == 'II'")
    heads, *columns = papers.difference_table(two, "points").cells
    assert len(heads) == len(set(heads)) == two[["method", "dataset"]].nunique().prod()
    shown = "".join(text for column in columns for text in column)
    for verdict, mark in (("differs", "*"), ("not distinguishable", "?")):
        assert shown.count(mark) == (two["verdict"] == verdict).sum()
    one = two.query("method == 'FWS-LDA' and bag_size == 5 and dataset == 'iris'")
    row = heads.index("FWS-LDA, iris")
    assert columns[1][row].startswith(
        f"{one['difference'].item():+.1f}".replace("-", "−")
    )
    names, *rest = papers.cell_table(two, "percent").cells
    assert len(names) == len(set(names)) == len(two)
    assert sum(text.startswith("differs") for text in rest[-1]) == shown.count("*")
    assert papers.cell_table(two, "percent").heads[0] == "data set, method, bag size"


def test_the_table_of_verdicts_counts_draws_from_fewest_to_most(found):
    table = papers.verdict_table(found["yu2013"], "method", "Table 2", rows="method")
    draws = found["yu2013"].query("method == 'MeanMap'")["draws"]
    at = table.heads.index("draws"), table.cells[0].index("MeanMap")
    assert table.cells[at[0]][at[1]] == f"{draws.min()}–{draws.max()}"
