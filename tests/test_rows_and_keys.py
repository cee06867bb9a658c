"""Tables as they come: shares per row, row numbers off by one, keys that are not found, cells without counts."""

import io
import re

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_array

import llpbook
from llpbook import (
    CountLogistic,
    FullBagKFold,
    LLPGridSearchCV,
    MeanMap,
    SplitBagKFold,
    SplitBagShuffle,
    _input,
    bag_bootstrap,
    diagnose,
    group_rate,
    identifiability,
    proportion_scorer,
    recommend,
)
from llpbook.bag_losses import ProportionLoss
from llpbook.base import LLPWarning
from llpbook.ecological import (
    band_sentences,
    effect_needed,
    goodman,
    group_rate_band,
    plot_band,
    polling_errors,
)
from llpbook.uncertainty import (
    accuracy_bounds,
    bag_report,
    coefficient_table,
    expected_accuracy,
    group_rate_bounds,
    plot_tomography,
    tomography,
)


def people(n_bags=20, size=15, seed=1):
    """A table of instances: x, group, bag, label, and the share of their bag in each row."""
    rng = np.random.default_rng(seed)
    bag = np.repeat(np.arange(n_bags), size)
    x = rng.normal(size=len(bag)) + np.repeat(rng.normal(size=n_bags), size)
    y = (rng.random(len(bag)) < 1 / (1 + np.exp(-2 * x))).astype(int)
    table = pd.DataFrame({"x": x, "group": x > 0, "bag": bag, "y": y})
    return table.assign(share=table.groupby("bag")["y"].transform("mean"))


def fitted(X, bags, shares):
    return CountLogistic().fit(X, bags, shares).coef_


def mended(error, **names):
    """What the line gives that a message offers."""
    line = str(error.value).rpartition("such as ")[2]
    return eval(line, {"pd": pd, "np": np}, names)


T = people()
SHUFFLED = T.sample(frac=1, random_state=0)
TWO = pd.DataFrame({0: 1 - T["share"], 1: T["share"]})
#: Shares per row, and bags: of the table, one after the other.
PER_ROW = {
    "a column": (T, T["share"]),
    "two columns": (T, TWO),
    "three classes": (T, pd.DataFrame({"a": T["share"] / 2, "b": T["share"] / 2, "c": 1 - T["share"]})),
    "a dict": (T, T["share"].to_dict()),
    "an array": (T, T["share"].to_numpy()),
    "two columns of an array": (T, TWO.to_numpy()),
    "a list": (T, T["share"].tolist()),
    "another order": (SHUFFLED, SHUFFLED["share"]),
    "the order of the table, rows shuffled": (SHUFFLED, T["share"]),
    "more rows than X": (T[T["bag"] % 2 == 0], T["share"]),
    "some rows of each bag": (T[::3], T["share"]),
    "bags from 1": (T.assign(bag=T["bag"] + 1), T["share"]),
    "bags in tens": (T.assign(bag=10 * T["bag"]), T["share"]),
    "bags by name": (T.assign(bag="P" + T["bag"].astype(str)), T["share"]),
    "rows by name": (T.set_axis("row" + T.index.astype(str)), T["share"].set_axis("row" + T.index.astype(str))),
    "rows by place and number": (
        T.set_axis(pd.MultiIndex.from_arrays([T["bag"].array // 5, T.index])),
        T["share"].set_axis(pd.MultiIndex.from_arrays([T["bag"].array // 5, T.index])),
    ),
    "labels": (T, T["y"]),
    "an index from 1": (T.set_axis(T.index + 1), T["share"].set_axis(T.index + 1)),
}  # fmt: skip
READERS = {
    "fit": lambda t, p: CountLogistic().fit(t[["x"]], t["bag"], p),
    "MeanMap": lambda t, p: MeanMap().fit(t[["x"]], t["bag"], p),
    "diagnose": lambda t, p: diagnose(t[["x"]], t["bag"], p),
    "identifiability": lambda t, p: identifiability(t["bag"], p),
    "goodman": lambda t, p: goodman(t["bag"], p, t["group"]),
    "polling_errors": lambda t, p: polling_errors(t["bag"], p),
    "group_rate_bounds": lambda t, p: group_rate_bounds(t["bag"], p, t["group"]),
    "tomography": lambda t, p: tomography(t["bag"], p, t["group"]),
    "accuracy_bounds": lambda t, p: accuracy_bounds(t["y"], t["bag"], p),
    "recommend": lambda t, p: recommend(t[["x"]], t["bag"], p),
    "search": lambda t, p: LLPGridSearchCV(MeanMap(), {"alpha": [1]}).fit(t[["x"]], t["bag"], p),
    "splitter": lambda t, p: list(FullBagKFold(2, proportions=p).split(t, groups=t["bag"])),
    "scorer": lambda t, p: proportion_scorer(p)(MODEL, t[["x"]], t["bag"]),
    "loss": lambda t, p: ProportionLoss()(t["x"].to_numpy(), t["bag"], p),
    "plot_bags": lambda t, p: llpbook.plotting.plot_bags(t[["x", "y"]], t["bag"], p),
}  # fmt: skip
MODEL = CountLogistic().fit(T[["x"]], T["bag"], T.groupby("bag")["share"].first())


@pytest.mark.parametrize("case", PER_ROW)
def test_shares_per_row_are_refused_with_the_line_that_mends_them(case):
    table, shares = PER_ROW[case]
    X, bags = table[["x"]], table["bag"]
    with pytest.raises(ValueError, match="one share per bag") as error:
        fitted(X, bags, shares)
    right = table.groupby("bag")["y" if case == "labels" else "share"]
    right = right.mean() if case == "labels" else right.first()
    found = mended(error, proportions=shares, bags=bags, X=X)
    found = found.iloc[:, -1] if isinstance(found, pd.DataFrame) else found
    if case == "three classes":
        right = 1 - right
    pd.testing.assert_series_equal(found.astype(float), right, check_names=False)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("case", ["a column", "a dict", "bags by name", "an array"])
def test_shares_per_row_are_refused_everywhere(reader, case):
    with pytest.raises(ValueError, match="one share per bag"):
        READERS[reader](*PER_ROW[case])


def rightful():
    """Tables and shares by bag that resemble shares of rows."""
    rng = np.random.default_rng(0)
    t, by_bag = T, T.groupby("bag")["share"].first()
    yield "by bag", t, by_bag
    yield "numbers of rows", t, pd.Series(by_bag.to_numpy())
    yield "an array", t, by_bag.to_numpy()
    yield (
        "two columns",
        t,
        pd.DataFrame({0: 1 - by_bag, 1: by_bag}).reset_index(drop=True),
    )
    yield "an index with the name of the bags", t, by_bag.rename_axis("bag")
    yield "half of the bags", t[t["bag"] < 10], pd.Series(by_bag.to_numpy())
    many = pd.Series(rng.random(300)).round(2)
    yield (
        "as many bags as rows, most without instances",
        t.assign(bag=t["bag"] * 7),
        many.rename_axis("place"),
    )
    yield "the same as an array", t.assign(bag=t["bag"] * 7), many.to_numpy()
    single = t.assign(bag=np.arange(300))
    yield "bags of one", single, pd.Series(t["y"].to_numpy())
    yield (
        "bags of one, numbers in any order",
        single.assign(bag=rng.permutation(300)),
        t["y"].to_numpy(),
    )
    yield (
        "bags of one, by name",
        single.assign(bag=single["bag"].map("b{}".format)),
        pd.Series(t["y"].to_numpy(), single["bag"].map("b{}".format)),
    )
    yield "a part of bags of one", single[::2], pd.Series(t["y"].to_numpy())
    drawn = single.iloc[rng.integers(0, 300, 300)]
    yield "bags of one, drawn with replacement", drawn, t["y"].to_numpy()
    yield "bags of one, drawn, with keys", drawn, pd.Series(t["y"].to_numpy())
    yield "pairs of equal shares", t, pd.Series(np.repeat([0.2, 0.8], 10))
    ordered = t.sort_values("x").reset_index(drop=True)
    yield "bags in any order", ordered, by_bag


@pytest.mark.parametrize(
    ("table", "shares"), [pytest.param(*c[1:], id=c[0]) for c in rightful()]
)
def test_shares_by_bag_are_read(table, shares):
    X, bags = table[["x"]], table["bag"]
    found = _input.match_bags(shares, bags, len(X), X)
    assert found.codes.tolist() == list(
        np.asarray(bags) if found.keys is None else found.keys.get_indexer(bags)
    )
    model = CountLogistic().fit(X, bags, shares)
    array = CountLogistic().fit(X.to_numpy(), found.codes, found.matrix[:, -1])
    assert_allclose(model.coef_, array.coef_)


def test_the_folds_of_a_search_do_not_resemble_rows():
    shares = T.groupby("bag")["share"].first()
    for p in (shares, pd.Series(shares.to_numpy()), shares.to_numpy()):
        for cv in (FullBagKFold(20), 5):
            search = LLPGridSearchCV(
                CountLogistic(), {"C": [1.0, 10.0]}, cv=cv, error_score="raise"
            )
            assert search.fit(T[["x"]], T["bag"], p).best_params_["C"] in (1.0, 10.0)
    for train, test in FullBagKFold(10).split(T, groups=T["bag"]):
        model = CountLogistic().fit(
            T[["x"]].iloc[train], T["bag"].iloc[train], pd.Series(shares.to_numpy())
        )
        assert (
            proportion_scorer(shares)(model, T[["x"]].iloc[test], T["bag"].iloc[test])
            <= 0
        )


def test_shares_that_have_the_index_of_the_rows_and_differ_in_a_bag_are_refused():
    noisy = T["share"] + np.linspace(0, 0.01, len(T))
    with pytest.raises(
        ValueError, match=r"shares of bag 0 differ: 0\.\d+ and 0\.\d+.*rename_axis"
    ):
        fitted(T[["x"]], T["bag"], noisy)
    named = noisy.rename_axis("bag")
    assert_allclose(
        fitted(T[["x"]], T["bag"], named), fitted(T[["x"]], T["bag"], noisy.to_numpy())
    )


def test_bags_of_one_row_whose_numbers_are_no_row_numbers_are_asked_about():
    rng = np.random.default_rng(0)
    table = T.assign(bag=rng.permutation(len(T)))
    with pytest.raises(
        ValueError, match=r"by bag and by row.*set_axis\(bags\).*rename_axis"
    ):
        fitted(table[["x"]], table["bag"], table["y"])
    by_row = fitted(table[["x"]], table["bag"], table["y"].set_axis(table["bag"]))
    assert_allclose(
        by_row, fitted(table[["x"]], np.arange(300), T["y"].to_numpy()), 1e-6
    )
    by_bag = fitted(table[["x"]], table["bag"], table["y"].rename_axis("bag"))
    assert_allclose(
        by_bag, fitted(table[["x"]], table["bag"].to_numpy(), T["y"].to_numpy())
    )


def off_by_one(total):
    """Bags 1 to 20, and a table of shares under row numbers from 0, with a row of totals or one bag more."""
    t = T.assign(bag=T["bag"] + 1)
    return t, [*T.groupby("bag")["share"].first(), total]


@pytest.mark.parametrize("total", [T["y"].mean(), 0.5, 0.123])
@pytest.mark.parametrize(
    "form",
    [np.array, pd.Series, lambda p: pd.DataFrame({"a": 1 - np.array(p), "b": p})],
)
def test_row_numbers_that_are_off_by_one_are_refused_by_the_counts(total, form):
    rng = np.random.default_rng(0)
    t, shares = off_by_one(total)
    t = t.drop(rng.choice(len(t), 30, replace=False))  # bags of different sizes
    for bag, part in t.groupby("bag"):
        shares[bag - 1] = part["y"].mean()
    with pytest.raises(
        ValueError, match="bags are numbered from 1 to 20, and the 21 rows"
    ):
        fitted(t[["x"]], t["bag"], form(shares))
    with pytest.raises(
        ValueError, match="that each row is that of the bag with the next number"
    ):
        identifiability(t["bag"], form(shares))
    fitted(t[["x"]], t["bag"], form([0.4, *shares[:-1]]))  # bag 0 has no instances


def test_row_numbers_that_may_be_off_by_one_are_asked_about():
    t, shares = off_by_one(
        0.4567
    )  # bags of one size: each share is a count of any of them
    with pytest.warns(
        LLPWarning,
        match="bag 0 has no instances. If the rows are those of bags 1 to 20 and a row of",
    ):
        fitted(t[["x"]], t["bag"], pd.Series(shares))
    fitted(t[["x"]], t["bag"], pd.Series(shares, range(21)).rename_axis("bag"))
    fitted(t[["x"]], t["bag"], np.array(shares))


def test_a_key_that_names_two_rows_says_whether_they_agree():
    t = T.set_index("bag")
    with pytest.raises(
        ValueError, match=r"got more than one entry .*: 0; .*groupby\(level=0\)\.first"
    ) as error:
        fitted(T[["x"]], T["bag"], t["share"])
    assert len(mended_by("pass ", error, proportions=t["share"])) == 20
    with pytest.raises(
        ValueError, match=r": 'a', once with \[0.2\] and once with \[0.3\]"
    ):
        fitted(T[["x"]], T["bag"], pd.Series([0.2, 0.3], ["a", "a"]))
    two = pd.DataFrame({"n": [0.2, 0.4], "y": [0.8, 0.6]}, ["a", "a"])
    with pytest.raises(
        ValueError, match=r"once with \[0.2, 0.8\] and once with \[0.4, 0.6\]"
    ):
        fitted(T[["x"]], T["bag"], two)
    with pytest.raises(ValueError, match="without a name: proportions"):
        fitted(T[["x"]], T["bag"], pd.Series([0.2, 0.3], ["a", None]))


def mended_by(before, error, **names):
    """What the line behind some words of a message gives."""
    return eval(str(error.value).rpartition(before)[2], {"pd": pd, "np": np}, names)


#: Names of bags in the rows and in the shares, and a part of the sentence.
KEYS = {
    "number for text": (range(1, 21), [f"{k:03}" for k in range(1, 21)], "type and leading zeros"),
    "text for number": ([str(k) for k in range(20)], range(20), r"'0' \(text\) and the key 0 .* differ in type"),
    "text of a float": ([f"{k}.0" for k in range(20)], [str(k) for k in range(20)], "differ in"),
    "float for text": (np.arange(1.0, 21.0), [f"{k:02}" for k in range(1, 21)], "type and leading zeros"),
    "leading zeros": ([str(k) for k in range(1, 21)], [f"{k:05}" for k in range(1, 21)], "differ in leading zeros"),
    "fewer zeros": ([f"{k:05}" for k in range(1, 21)], [str(k) for k in range(1, 21)], "differ in leading zeros"),
    "zeros for number": ([f"{k:05}" for k in range(1, 21)], range(1, 21), "differ in type and leading zeros"),
    "space behind": ([f"P{k} " for k in range(20)], [f"P{k}" for k in range(20)], "differ in spaces"),
    "space in the shares": ([f"P{k}" for k in range(20)], [f" P{k}" for k in range(20)], "differ in spaces"),
    "hard space": ([f"P\u00a0{k}" for k in range(20)], [f"P {k}" for k in range(20)], "differ in spaces"),
    "two spaces": ([f"P {k}" for k in range(20)], [f"P  {k}" for k in range(20)], "differ in spaces"),
    "intervals": (pd.interval_range(0, 20), [f"({k}, {k + 1}]" for k in range(20)], r"an Interval\) .* differ in type"),
    "text of intervals": ([f"({k}, {k + 1}]" for k in range(20)], pd.interval_range(0, 20), "differ in type"),
    "dates": (pd.date_range("2024-01-30", periods=20), pd.date_range("2024-01-30", periods=20).astype(str), "in type"),
    "text of dates": (pd.date_range("2024", periods=20).astype(str), pd.date_range("2024", periods=20), "in type"),
    "capitals": ([f"WAKE {k}" for k in range(20)], [f"Wake {k}" for k in range(20)], "differ in capital letters"),
    "accents": ([f"Cue\u0301{k}" for k in range(20)], [f"Cu\u00e9{k}" for k in range(20)], "differ in accents"),
    "several": ([f"wake {k} " for k in range(20)], [f"Wake {k}" for k in range(20)], "spaces and capital letters"),
}  # fmt: skip


@pytest.mark.parametrize("case", KEYS)
def test_keys_that_differ_by_their_form_come_with_the_lines_that_make_them_alike(case):
    names, keys, sentence = KEYS[case]
    table = T.assign(
        bag=np.asarray(names)[T["bag"]]
        if case != "text of a float"
        else np.array(names)[T["bag"]]
    )
    by_bag = T.groupby("bag")["share"].first()
    shares = by_bag.set_axis(list(keys))
    with pytest.raises(
        ValueError, match=rf"not a key of proportions.*{sentence}"
    ) as error:
        fitted(table[["x"]], table["bag"], shares)
    scope = {"bags": table["bag"], "proportions": shares.copy()}
    for line in str(error.value).rpartition("alike: ")[2].split(" and "):
        exec(line, {}, scope)
    assert_allclose(
        fitted(table[["x"]], scope["bags"], scope["proportions"]),
        fitted(T[["x"]], T["bag"], by_bag),
    )


def test_categories_and_edges_of_cut():
    by_bag = T.groupby("bag")["share"].first()
    where = pd.cut(T["bag"] + 0.5, range(26))  # five intervals hold nobody
    shares = T["y"].groupby(where, observed=False).mean()
    assert shares.isna().sum() == 5
    right = fitted(T[["x"]], T["bag"], by_bag)
    assert_allclose(fitted(T[["x"]], where, shares), right)
    assert_allclose(fitted(T[["x"]], where, shares[::-1]), right)
    with pytest.raises(ValueError, match="outside of the edges of"):
        fitted(T[["x"]], pd.cut(T["bag"] + 0.5, range(20)), shares)
    codes = pd.Series(pd.factorize(T["bag"].where(T["bag"] < 19))[0])
    with pytest.raises(ValueError, match=r"got -1; pd\.factorize and cat\.codes write"):
        fitted(T[["x"]], codes, by_bag.to_numpy())


def said_of_key(names, shares):
    with pytest.raises(ValueError, match="not a key of proportions") as error:
        fitted(T[["x"]], np.asarray(names, dtype=object)[T["bag"]], shares)
    return str(error.value)


def test_a_key_that_is_not_found_is_shown_with_the_nearest_ones():
    names = ["Wake", "Durham", "Orange", *(f"County {k}" for k in range(17))]
    shares = T.groupby("bag")["share"].first()
    found = said_of_key(["Wakee", *names[1:]], shares.set_axis(names))
    assert "bags holds 'Wakee'" in found and "(1 of 20 bags are none)" in found
    assert "the nearest keys of proportions are 'Wake'" in found
    found = said_of_key(names, shares)
    assert (
        "the keys of proportions are the row numbers 0 to 19: name the bags by set_index"
        in found
    )
    found = said_of_key(range(1, 21), shares.reset_index(drop=True))
    assert "bags holds 20" in found and "row numbers 0 to 19" in found
    pairs = shares.set_axis(pd.MultiIndex.from_product([names, ["a"]]))
    assert (
        "tuples such as ('Wake', 'a'): if they are bag and class, pass proportions.unstack()"
        in said_of_key(names, pairs)
    )


#: Counts that are read, and what they are.
READ = [["12", "0", "3"], [12.0, 0.0, 3.0], ["12.0", "0", " 3"], pd.Series([12, 0, 3], dtype="Int64"),
        pd.Series([12, 0, 3], dtype="Float64"), pd.Series(["12", "0", "3"], dtype="string"), np.array([12, 0, 3], "u2"),
        np.array([12, 0, 3], object), pd.Series(["12", "0", "3"], dtype="category")]  # fmt: skip
NO_COUNTS = {
    "parts": ([12.5, 1, 1], "leave out counts, and pass the weighted share of each"),
    "negative": ([-1, 1, 1], "got -1. A negative number is often a mark"),
    "nothing": ([np.nan, 1, 1], "counts has a missing value at position 0"),
    "NA": (pd.Series([None, 1, 1], dtype="Int64"), "missing value at position 0"),
    "None": ([None, 1, 1], "missing value at position 0"),
    "infinite": ([np.inf, 1, 1], "got inf"),
    "mask": ([True, False, True], "got True and False"),
    "mask with NA": (
        pd.Series([True, False, True], dtype="boolean"),
        "got True and False",
    ),
    "thousands": (
        ["1,234", "5", "6"],
        r"got the text '1,234': counts.str.replace(',', '').astype(int)",
    ),
    "points": (["1.234.567", "5", "6"], r"counts.str.replace('.', '').astype(int)"),
    "words": (["many", "5", "6"], "got the text 'many'"),
    "suppressed": (["<5", "5", "6"], "counts.replace('<5', 2).astype(int). Leaving"),
    "a mark": (["9", "*", "6"], "counts.replace('*', MIDDLE).astype(int)"),
    "of bags": (
        [7, 8],
        "got shape (2,): they are of the rows. The sizes of the bags are",
    ),
    "dates": (np.array(["2024-01-01"] * 3, "M8[D]"), "counts must be numbers"),
}


@pytest.mark.parametrize("values", READ, ids=lambda v: str(getattr(v, "dtype", v)))
def test_counts_are_read_once_whatever_their_type(values):
    assert _input.read_counts(values, 3).tolist() == [12, 0, 3]


@pytest.mark.parametrize("case", NO_COUNTS)
def test_what_is_no_count_has_its_sentence(case):
    values, sentence = NO_COUNTS[case]
    with pytest.raises(ValueError, match=re.escape(sentence)):
        _input.read_counts(values, 3)


#: What stands where a share should be, in the second of three bags, and a part of the sentence.
P3 = pd.Series([0.2, 0.5, 0.7], ["a", "b", "c"])
NO_SHARES = {
    "percent in text": (
        P3.map("{:.0%}".format),
        r"'20%' is text: proportions.str.rstrip('% ').astype(float) / 100",
    ),
    "percent with a space": (P3.map("{:.1%}".format).str.replace("%", " %"), "/ 100"),
    "percent with a comma": (
        P3.map("{:.1%}".format).str.replace(".", ","),
        ".str.replace(',', '.').str.rstrip",
    ),
    "comma": (P3.astype(str).str.replace(".", ","), "if it is a decimal comma"),
    "suppressed": (
        P3.astype(object).replace(0.5, "*"),
        "'*' is text. Where a share is not published",
    ),
    "suppressed percent": (
        P3.astype(object).replace(0.2, "<5%"),
        "'<5%' is text: put the middle of what it can be, proportions.replace('<5%', 0.025)",
    ),
    "suppressed number": (
        P3.astype(object).replace(0.2, "<0.1"),
        "proportions.replace('<0.1', 0.05)",
    ),
    "with noise": (P3.replace(0.2, -0.02), 'proportion_noise="laplace"), or "gauss'),
    "successes and failures": (
        np.array([[20, 3], [5, 8]]),
        "proportions / proportions.sum(axis=1, keepdims=True), where the columns are",
    ),
    "successes and trials": (
        np.array([[20, 33], [5, 8]]),
        "If one column counts all people, proportions[:, 0] / proportions[:, 1]",
    ),
    "trials and successes": (
        pd.DataFrame({"n": [33, 8], "ill": [20, 5]}, ["a", "b"]),
        "axis=0). If one column counts all people, proportions['ill'] / proportions['n']",
    ),
    "per 100,000": (2e5 * P3, "a rate per 1,000 or 100,000 people by that number"),
    "parts per 100,000": (20050.5 * P3, "100,000 people is divided by that number"),
    "nobody": (
        pd.DataFrame({"x": [0.5, 0], "y": [0.5, 0]}, ["a", "b"]),
        "sum to 0, not 1: nobody was counted there. Leave out such bags, proportions[(prop",
    ),
    "nobody in an array": (
        np.array([[0.5, 0.5], [0.0, 0.0]]),
        "proportions[~proportions.any(axis=1)] = np.nan",
    ),
    "one class of several": (
        pd.DataFrame({"x": [0.9, 0.5], "y": [np.nan, 0.5]}, ["a", "b"]),
        "proportions.fillna({'y': 1 - proportions.sum(axis=1)})",
    ),
    "not reported": (
        P3.replace(0.5, np.nan),
        "a bag with instances needs a share. If it has not reported",
    ),
    "negative": (
        P3.replace(0.5, -0.11),
        "got -0.11 for bag 'b'; a share is not negative",
    ),
    "percent": (P3 * 100, "got 20.0 for bag 'a'; divide percent by 100, and counts"),
    "one is percent": (
        P3.replace(0.5, 50),
        "got 50.0 for bag 'b'; divide percent by 100",
    ),
    "scores": (60 + 20.5 * P3, "Means of a number, such as test scores"),
    "high scores": (500 + 290.5 * P3, "got 558.1 for bag 'a'; Means of a number"),
    "counts": (P3 * 1000, "counts by the sizes of the bags"),
    "votes": (
        pd.DataFrame({"x": [20, 3], "y": [5, 8]}, ["a", "b"]),
        "counts: proportions.div(proportions.sum(axis=1)",
    ),
    "percent of classes": (
        pd.DataFrame({"x": [20.4, 30], "y": [79.6, 70]}, ["a", "b"]),
        "these are percent",
    ),
    "rounded percent of classes": (
        pd.DataFrame({"x": [20.4, 30], "y": [79.5, 70]}, ["a", "b"]),
        "these are percent",
    ),
    "more than all": (
        P3.replace(0.5, 1.02),
        "a share is not above 1. If it is a count by a size",
    ),
    "infinite": (P3.replace(0.5, np.inf), "proportions.replace(np.inf, np.nan)"),
    "a code": (P3.replace(0.5, -666666666), "proportions[proportions >= 0]"),
    "a code of classes": (
        pd.DataFrame({"x": [-999, 0.2], "y": [-999, 0.8]}, ["a", "b"]),
        "proportions[(proportions >= 0).all(axis=1)]",
    ),
    "votes for two offices": (3 * P3, "counted several times"),
    "a row per class": (
        pd.DataFrame({"a": [0.3, 0.7], "b": [0.1, 0.9], "c": [0.5, 0.5]}, ["x", "y"]),
        "but each column does: a row must be a bag, and a column a class: pass proportions.T",
    ),
    "a class is missing": (
        pd.DataFrame({"x": [0.5, 0.2], "y": [0.5, 0.8], "z": [0, np.nan]}, ["a", "b"]),
        "class 'z' does not occur there, as after unstack: proportions.fillna(0)",
    ),
    "a column of totals": (
        pd.DataFrame(
            {"x": [0.5, 0.2], "y": [0.5, 0.8], "total": [1.0, 1.0]}, ["a", "b"]
        ),
        "column 'total' is the sum of the others: drop it",
    ),
}


@pytest.mark.parametrize("case", NO_SHARES)
def test_what_is_no_share_has_its_sentence(case):
    values, sentence = NO_SHARES[case]
    bags = np.repeat(getattr(values, "index", np.arange(2)), 5)
    with pytest.raises(ValueError, match=re.escape(sentence)):
        fitted(np.arange(float(len(bags)))[:, None], bags, values)


def cells(n_bags=60, n_kinds=2, seed=0):
    """A table of cells: bag, group, count, and shares of a class that half of group 0 has."""
    rng = np.random.default_rng(seed)
    n = rng.integers(20, 400, (n_bags, n_kinds))
    ones = rng.binomial(n, np.linspace(0.2, 0.8, n_kinds))
    names = [f"g{k}" for k in range(n_kinds)]
    table = pd.DataFrame(
        {
            "bag": np.repeat(np.arange(n_bags), n_kinds),
            "group": np.tile(names, n_bags),
            "n": n.ravel(),
        }
    )
    return table, pd.Series(ones.sum(axis=1) / n.sum(axis=1))


@pytest.mark.parametrize("n_kinds", [2, 3, 12])
def test_cells_without_counts_are_refused(n_kinds):
    table, shares = cells(n_kinds=n_kinds)
    X, bags, group = (
        pd.get_dummies(table["group"], dtype=float),
        table["bag"],
        table["group"],
    )
    model = CountLogistic(C=10, tol=1e-9).fit(X, bags, shares, counts=table["n"])
    calls = {
        "fit": lambda X: CountLogistic(C=10).fit(X, bags, shares),
        "sparse": lambda X: CountLogistic().fit(csr_array(X), bags, shares),
        "search": lambda X: LLPGridSearchCV(CountLogistic(), {"C": [1]}).fit(
            X, bags, shares
        ),
        "scorer": lambda X: proportion_scorer(shares)(model, X, bags),
        "group_rate": lambda X: group_rate(model, X, bags, shares, group),
        "diagnose": lambda X: diagnose(X, bags, shares),
        "recommend": lambda X: recommend(X, bags, shares),
        "group_rate_bounds": lambda X: group_rate_bounds(bags, shares, group),
        "goodman": lambda X: goodman(bags, shares, group),
        "splitter": lambda X: list(SplitBagKFold(2).split(X, groups=bags)),
        "shuffle": lambda X: list(SplitBagShuffle(2).split(X, groups=bags)),
        "bag_bootstrap": lambda X: bag_bootstrap(
            CountLogistic(), X, bags, shares, lambda m: m.coef_, n_resamples=2
        ),
    }
    for call in calls.values():
        with pytest.raises(ValueError, match="visibly cells of a table"):
            call(X)
    some = table[
        table["n"] > 40
    ].index  # cells without people are left out of such tables
    with pytest.raises(ValueError, match="counts is missing"):
        CountLogistic().fit(X.loc[some], bags[some], shares)
    CountLogistic(C=10).fit(X, bags, shares, counts=np.ones(len(X), int))


def test_instances_are_not_taken_for_cells():
    rng = np.random.default_rng(0)
    for size, n_kinds, repeat in (
        (2, 2, 1),
        (3, 2, 1),
        (5, 4, 1),
        (10, 30, 1),
        (4, 2, 2),
    ):
        bags = np.repeat(np.arange(400 // size), size)
        for _ in range(20):
            X = rng.integers(0, n_kinds, (len(bags), repeat)).astype(float)
            _input.refuse_cells(X, bags, columns(rng.random(len(bags) // size)))
    table, _ = cells()
    whole = columns(rng.integers(0, 3, 60) / 2)  # pairs of which each has one of a kind
    _input.refuse_cells(pd.get_dummies(table["group"]), table["bag"].to_numpy(), whole)


def columns(p):
    return np.column_stack([1 - p, p])


def test_the_bounds_of_cells_hold_the_truth():
    table, shares = cells()
    bounds = group_rate_bounds(table["bag"], shares, table["group"], counts=table["n"])
    assert (bounds["low"] <= [0.2, 0.8]).all() and (bounds["high"] >= [0.2, 0.8]).all()
    assert bounds["n"].sum() == table["n"].sum()


def test_identifiability_says_where_shares_are_no_counts_of_so_few_rows():
    table, shares = cells()
    assert "pass counts=" in str(identifiability(table["bag"], shares))
    assert "pass counts=" not in str(
        identifiability(table["bag"], shares, counts=table["n"])
    )
    assert "pass counts=" not in str(
        identifiability(T["bag"], T.groupby("bag")["share"].first().round(2))
    )


def with_totals(names, rows):
    """Cells of two groups in 30 places, and further places that are sums of these, by name and places."""
    table, _ = cells(30)
    n = table["n"].to_numpy().reshape(30, 2)
    ones = np.random.default_rng(1).binomial(n.sum(axis=1), 0.4)
    n = np.vstack([n, *(n[r].sum(axis=0) for r in rows)])
    ones = np.append(ones, [ones[r].sum() for r in rows]).astype(int)
    keys = [f"P{k}" for k in range(30)] + list(names)
    long = pd.DataFrame(
        {"bag": np.repeat(keys, 2), "g": np.tile([0.0, 1.0], len(keys)), "n": n.ravel()}
    )
    return long, pd.Series(ones / n.sum(axis=1), keys)


@pytest.mark.parametrize("name", ["Total", "Summe", "99", "Wake County"])
def test_a_bag_that_is_the_sum_of_the_others_is_refused(name):
    long, shares = with_totals([name], [slice(30)])
    with pytest.raises(
        ValueError, match=f"bag '{name}' is the sum of 30 other bags .*no bag"
    ):
        CountLogistic(C=10).fit(long[["g"]], long["bag"], shares, counts=long["n"])
    with pytest.raises(ValueError, match="is the sum of 30 other bags"):
        identifiability(long["bag"], shares, counts=long["n"])
    order = np.random.default_rng(0).permutation(len(long))
    with pytest.raises(ValueError, match="is the sum of 30 other bags"):
        group_rate_bounds(
            long["bag"][order], shares, long["g"][order], counts=long["n"][order]
        )


def test_subtotals_and_names_of_totals_are_said():
    long, shares = with_totals(["North total", "Total"], [slice(10, 30), slice(30)])
    with pytest.raises(ValueError, match="bag 'Total' is the sum of 30 other bags"):
        fitted_cells(long, shares)
    long.loc[long["bag"] == "Total", "n"] += 7  # of a table that does not agree
    part, rest = long[long["bag"] != "North total"], shares.drop("North total")
    with pytest.warns(
        LLPWarning, match="bag 'Total' has the name of a total, but is not the sum"
    ):
        fitted_cells(part, rest)
    fitted_cells(part[part["bag"] != "Total"], rest)  # a total without rows is no bag


def test_a_subtotal_without_a_name_is_refused():
    long, shares = with_totals(["Wake"], [slice(20, 30)])
    with pytest.raises(ValueError, match="bag 'Wake' is the sum of 10 other bags"):
        fitted_cells(long, shares)


def test_subtotals_in_a_block_are_refused():
    regions = [slice(0, 30, 2), slice(1, 30, 2)]  # not side by side
    long, shares = with_totals(["North", "South"], regions)
    match = "bags 'North', 'South' together are the sum of 30 other bags"
    with pytest.raises(ValueError, match=match):
        fitted_cells(long, shares)
    long, shares = with_totals(["North", "South", "State"], [*regions, slice(30)])
    with pytest.raises(ValueError, match="bag 'State' is the sum of 2 other bags"):
        fitted_cells(long, shares)
    twice = pd.concat([long[long["n"] > 0].head(60)] * 2)  # two years of one table
    twice["bag"] = np.repeat(range(60), 2)
    fitted_cells(twice, np.tile(shares[:30], 2))


def test_round_sizes_and_shares_agree_by_chance():
    sizes, shares = [100, 100, 200, 400], [0.3, 0.5, 0.4, 0.6]
    bags = np.repeat(range(4), sizes)
    fitted(2 * np.random.default_rng(0).normal(size=(800, 1)), bags, shares)


def fitted_cells(long, shares):
    return CountLogistic(C=10).fit(long[["g"]], long["bag"], shares, counts=long["n"])


def test_bags_that_are_half_of_all_are_no_totals():
    bags = np.repeat([0, 1, 2, 3], [30, 30, 40, 100])
    shares = [0.2, 0.5, 0.8, 0.6]  # 6 + 15 + 32 are not 60
    fitted(2 * np.random.default_rng(0).normal(size=(200, 1)), bags, shares)


def test_each_table_of_rates_names_its_class():
    """Of two candidates in alphabetical columns the rate is that of the second."""
    table, dem = cells()
    shares = pd.DataFrame({"dem": dem, "rep": 1 - dem})
    X, bags, group, n = table["group"] == "g1", table["bag"], table["group"], table["n"]
    X = X.to_frame().astype(float)
    model = CountLogistic(C=100, tol=1e-9).fit(X, bags, shares, counts=n)
    of_model = {
        "model": model,
        "X": X,
        "bags": bags,
        "proportions": shares,
        "counts": n,
    }
    band = group_rate_band(**of_model, group=group)
    report = bag_report(**of_model)
    lines = tomography(bags, shares, X["group"] == 1, model=model, X=X, counts=n)
    tables = {
        "group_rate": group_rate(**of_model, group=group),
        "group_rate_band": band,
        "some columns of a band": band[["low", "high"]].round(2),
        "effect_needed": effect_needed(**of_model, group=group),
        "group_rate_bounds": group_rate_bounds(bags, shares, group, counts=n),
        "goodman": goodman(bags, shares, group, counts=n),
        "tomography": lines,
        "bag_report": report.table,
    }
    for name, found in tables.items():
        assert "class rep" in found.to_string().splitlines()[0], name
        assert "class rep" in found._repr_html_(), name
    assert "log-odds of class rep against class dem" in str(
        coefficient_table(**of_model)
    )
    assert "The shares of class rep deviate" in str(report)
    assert (
        band_sentences(band).str.startswith("The rate of the class rep in group").all()
    )
    assert plot_band(band).get_xlabel() == "rate of class rep"
    assert plot_tomography(lines).get_xlabel() == "rate of class rep in the group"
    assert report.plot().get_xlabel() == "expected share of class rep"
    plt.close("all")


def test_a_table_of_several_classes_has_them_in_its_rows():
    table, dem = cells()
    shares = pd.DataFrame({"dem": dem, "none": 0.5 - dem / 2, "rep": 0.5 - dem / 2})
    bounds = group_rate_bounds(
        table["bag"], shares, table["group"], counts=table["n"], rounding=0.01
    )
    assert bounds.columns.name is None
    assert bounds.index.get_level_values("class").unique().tolist() == [
        "dem",
        "none",
        "rep",
    ]


def test_noisy_shares_are_not_searched_for_totals(recwarn):
    shares = [-0.2, 0.5, 1.1, 0.6]
    bags = np.repeat(range(4), [30, 30, 40, 100])
    errors = np.full(4, 0.3)
    model = CountLogistic(proportion_noise="laplace", proportion_errors=errors)
    model.fit(2 * np.random.default_rng(0).normal(size=(200, 1)), bags, shares)
    assert not [w for w in recwarn if w.category is RuntimeWarning]


def test_bags_that_a_bootstrap_draws_twice_are_no_cells():
    """Their rows are equal in two bags, which is more even than chance, where the shares are no counts."""
    rng = np.random.default_rng(0)
    bags, X = rng.integers(0, 12, 600), rng.normal(size=(600, 2))
    shares = np.linspace(0.1, 0.9, 12)
    options = {"n_resamples": 4, "random_state": 0}
    drawn = bag_bootstrap(MeanMap(), X, bags, shares, lambda m: m.coef_, **options)
    assert drawn.failed == 0 and len(drawn.replicates) == 4


def of_six_cells():
    """Each of six kinds of rows once in each bag, and the shares of the bags."""
    rng = np.random.default_rng(0)
    T = pd.DataFrame(
        [(b, s, e) for b in range(30) for s in (0, 1) for e in range(3)],
        columns=["bag", "sex", "edu"],
    )
    n = pd.Series(rng.integers(5, 200, 180))
    ones = pd.Series(rng.binomial(n, 0.3 + 0.2 * T["sex"] + 0.1 * T["edu"]))
    return T, n, ones.groupby(T["bag"]).sum() / n.groupby(T["bag"]).sum()


@pytest.mark.filterwarnings("default::llpbook.base.LLPWarning")
@pytest.mark.parametrize(
    "call",
    [
        lambda T, P, **k: tomography(T["bag"], P, T["sex"] == 1, **k),
        lambda T, P, **k: group_rate_bounds(T["bag"], P, T["sex"], **k),
        lambda T, P, **k: bag_report(of_cells(), T[["sex", "edu"]], T["bag"], P, **k),
        lambda T, P, **k: expected_accuracy(
            of_cells(), T[["sex", "edu"]], bags=T["bag"], proportions=P, **k
        ),
        lambda T, P, **k: tomography(
            T["bag"], P, T["sex"] == 1, model=of_cells(), X=T[["sex", "edu"]], **k
        ),
    ],
)
def test_groups_of_cells_and_models_of_cells_want_counts(call):
    T, n, P = of_six_cells()
    with pytest.raises(ValueError, match="counts is missing: the 180 rows"):
        call(T, P)
    call(T, P, counts=n)
    mixed = T.assign(bag=np.random.default_rng(0).permutation(T["bag"]))
    call(mixed, P.round(2))  # people in random bags, with estimated shares


def of_cells():
    T, n, P = of_six_cells()
    return CountLogistic(10.0).fit(T[["sex", "edu"]], T["bag"], P, counts=n)


def as_published(table, **options):
    """A table written to a file and read again as pandas does by itself."""
    return pd.read_csv(io.StringIO(table.to_csv(index=False)), **options)


@pytest.mark.parametrize("lost", ["both", "people", "shares"])
def test_a_place_named_na_is_read_again_by_the_line_that_is_named(lost):
    rng = np.random.default_rng(0)
    code = np.array(["AO", "NA", "ZA", "ZM"])[rng.integers(0, 4, size=200)]
    people = pd.DataFrame({"country": code, "x": rng.normal(size=200)})
    table = pd.DataFrame({"country": ["AO", "NA", "ZA", "ZM"], "share": [0.2, 0.3, 0.6, 0.7]})  # fmt: skip
    read = {"people": people, "shares": table}
    read |= {k: as_published(t) for k, t in read.items() if lost in (k, "both")}

    def fit():
        shares = read["shares"].set_index("country")["share"]
        return CountLogistic().fit(read["people"][["x"]], read["people"]["country"], shares)  # fmt: skip

    with pytest.raises(ValueError, match="keep_default_na=False") as refused:
        fit()
    options = re.search(r"read_csv\(…, (.*?)\)", str(refused.value))[1]
    options = eval(f"dict({options})")
    read = {"people": as_published(people, **options), "shares": as_published(table, **options)}  # fmt: skip
    assert "NA" in fit().bag_labels_


@pytest.mark.parametrize("name", ["bags", "groups", "group", "strata", "units", "clusters"])  # fmt: skip
def test_names_may_have_been_read_as_missing_and_numbers_not(name):
    with pytest.raises(ValueError, match="'NA' or 'None' as missing"):
        _input.check_column(name, ["a", None], 2)
    for other in ("y", "counts", "labels", "predicted"):
        with pytest.raises(ValueError, match="missing value") as refused:
            _input.check_column(other, [1, None], 2)
        assert "'NA'" not in str(refused.value)
