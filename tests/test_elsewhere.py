"""Arguments of other tools, and what stands in another's place: each is refused with the line to write instead."""

import inspect
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from llpbook import (
    CountBoosting,
    CountLogistic,
    FullBagKFold,
    InvCal,
    LLPGridSearchCV,
    LLPWarning,
    MeanMap,
    check_margins,
    ecological_rates,
    identifiability,
    label_proportions,
    random_bags,
)
from llpbook.proportions import check_proportions

BAGS = np.repeat(np.arange(12), 10)
X = np.random.default_rng(0).normal(size=(120, 2)) + BAGS[:, None] / 4
Y = (X[:, 0] > 1.5).astype(int)
P = np.bincount(BAGS, Y) / 10
#: What a message says about "<6".
MIDDLE = "classes.replace('<6', 3).astype(int)"
#: Calls with an argument of another tool, and what to write instead.
OF_OTHERS = {
    "CountLogistic takes no class_weight: the shares say": lambda: CountLogistic(
        class_weight="balanced"
    ),
    "CountLogistic takes no alpha: write C, which is large": lambda: CountLogistic(
        alpha=1
    ),
    "MeanMap takes no C: write alpha, which is large": lambda: MeanMap(C=1),
    "InvCal takes no C: write C_p": lambda: InvCal(C=1),
    "CountBoosting takes no max_depth: write max_leaf_nodes": lambda: CountBoosting(
        max_depth=3
    ),
    "CountLogistic takes no kernal: perhaps kernel. It takes C": lambda: CountLogistic(
        kernal="rbf"
    ),
    "CountLogistic takes no solver. It takes C": lambda: CountLogistic(solver="lbfgs"),
    "MeanMap.fit takes no sample_weight: frequencies": lambda: MeanMap().fit(
        X, BAGS, P, sample_weight=np.ones(len(X))
    ),
    "MeanMap.fit takes no groups: the groups are the bags": lambda: MeanMap().fit(
        X, Y, groups=BAGS
    ),
    "MeanMap.fit takes no y: labels of instances": lambda: MeanMap().fit(X, y=Y),
    "CountLogistic.fit takes no sample_weight": lambda: make_pipeline(
        StandardScaler(), CountLogistic()
    ).fit(X, BAGS, countlogistic__sample_weight=np.ones(len(X))),
}


@pytest.mark.parametrize("words", OF_OTHERS)
def test_arguments_of_other_tools_say_what_to_write(words):
    with pytest.raises(TypeError, match=re.escape(words)):
        OF_OTHERS[words]()


def test_checked_signatures_are_those_that_were_written():
    assert next(iter(inspect.signature(MeanMap).parameters)) == "alpha"
    parameters = inspect.signature(MeanMap.fit).parameters
    assert list(parameters) == ["self", "X", "bags", "proportions", "labels", "counts"]

    class Open(MeanMap):
        def __init__(self, alpha=1.0, **others):
            super().__init__(alpha)
            self.others = others

    assert Open(any=1).others == {"any": 1}


@pytest.mark.parametrize("labels", [Y, Y > 0, np.array(["no", "yes"])[Y], X[:, 0] // 1])
def test_labels_in_the_place_of_bags_without_shares(labels):
    words = "proportions is missing.*If the second argument holds labels of instances"
    for method in (MeanMap(), LLPGridSearchCV(MeanMap(), {"alpha": [1]})):
        with pytest.raises(ValueError, match=words):
            method.fit(X, labels)
        with pytest.raises(ValueError, match=r"params=.'proportions': prop") as error:
            method.fit(X, BAGS)
        assert "holds labels" not in str(error.value)


def test_the_line_for_labels_that_are_hidden_works():
    with pytest.raises(ValueError, match="labels hidden") as error:
        CountLogistic().fit(X, Y)
    lines = re.search(r"bags = (.*?) and proportions = (.*\))$", str(error.value))
    names = {"random_bags": random_bags, "label_proportions": label_proportions}
    bags = eval(lines[1], names | {"X": X})
    shares = eval(lines[2], names | {"labels": Y, "bags": bags})
    assert np.bincount(bags).tolist() == [20] * 6
    assert_allclose(20 * shares[:, 1], np.bincount(bags, Y))


def test_shares_in_the_place_of_bags():
    means = np.array([X[k == BAGS].mean(axis=0) for k in range(12)])
    for rows, shares in ((means, P), (X, P[BAGS]), (means, pd.Series(P))):
        with pytest.raises(ValueError, match=r"like shares.*fit\(X, np.arange\(len"):
            CountLogistic().fit(rows, shares)
    model = CountLogistic().fit(means, np.arange(12), P, counts=np.full(12, 10))
    assert model.score(X, Y) > 0.6


@pytest.mark.parametrize("name", ["{}", "ward {}"])
def test_bags_in_the_place_of_shares(name):
    bags = np.array([name.format(k) for k in BAGS]) if "w" in name else BAGS
    for third in (bags, pd.Series(bags)):
        with pytest.raises(ValueError, match=r"if these are the bags, they come sec"):
            MeanMap().fit(X, Y, third)


def test_labels_in_the_place_of_bags_are_doubted():
    with pytest.warns(LLPWarning, match="only 0 and 1 of the 12 rows of proportions"):
        CountLogistic().fit(X, Y, np.linspace(0.2, 0.8, 12))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CountLogistic(C=1).fit(X[BAGS > 3], BAGS[BAGS > 3], P)
        CountLogistic(C=1).fit(X, BAGS, P)


def test_bags_of_two_columns_are_joined():
    table = pd.DataFrame({"county": BAGS // 3, "year": BAGS % 3})
    shares = pd.Series(P, pd.MultiIndex.from_frame(table.drop_duplicates()))
    for bags, line in (
        (table, "from_frame(bags)"),
        (table.to_numpy(), "from_arrays(bags.T)"),
    ):
        with pytest.raises(ValueError, match=re.escape(line)):
            CountLogistic().fit(X, bags, shares)
        names = eval(f"pd.MultiIndex.{line}", {"pd": pd, "bags": bags})
        one = CountLogistic().fit(X, names, shares)
        assert_allclose(one.coef_, CountLogistic().fit(X, BAGS, P).coef_)


SIZES = np.array([3, 7, 12, 8, 15, 5, 10, 10, 20, 6, 14, 10])
#: Shares of three bags, each with its classes by name.
NAMED = {"a": {"no": 0.8, "yes": 0.2}, "b": {"yes": 0.5, "no": 0.5}, "c": {"yes": 1.0}}


@pytest.mark.parametrize("form", [list, np.array, pd.Series])
def test_sizes_in_the_place_of_bags(form):
    bags = np.repeat(np.arange(12), SIZES)
    shares = np.bincount(bags, Y) / SIZES
    sizes = form(SIZES)
    calls = [
        lambda: CountLogistic().fit(X, sizes, shares),
        lambda: list(FullBagKFold(2).split(X, groups=sizes)),
        lambda: label_proportions(Y, sizes),
        lambda: identifiability(sizes, shares),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r"size.* pass np.repeat\(") as error:
            call()
        line = re.search(r"np\.repeat\(np.*?\), \w+\)", str(error.value))[0]
        right = eval(line, {"np": np, "bags": sizes, "groups": sizes})
        assert right.tolist() == bags.tolist()
    with pytest.raises(ValueError, match=r"120 inst.*, got shape \(119,\)") as error:
        CountLogistic().fit(X, bags[1:], shares)
    assert "np.repeat" not in str(error.value)


def test_sizes_keyed_by_bag_in_the_place_of_bags():
    sizes = pd.Series(SIZES, list("lkjihgfedcba"))
    with pytest.raises(ValueError, match=r"sizes of 12 bags.* sum is 120") as error:
        CountLogistic().fit(X, sizes, pd.Series(P, sizes.index))
    right = eval(str(error.value).rpartition("pass ")[2], {"np": np, "bags": sizes})
    assert pd.Series(right).value_counts().to_dict() == sizes.to_dict()


@pytest.mark.parametrize("row", [dict, pd.Series])
@pytest.mark.parametrize("form", [dict, list, pd.Series])
def test_classes_in_another_order_in_each_bag(form, row):
    rows = {name: row(shares) for name, shares in NAMED.items()}
    shares = list(rows.values()) if form is list else form(rows)
    with pytest.raises(ValueError, match="another order in each") as error:
        check_proportions(shares)
    line = re.search(r"pass (.*), the positive", str(error.value))[1]
    mended = eval(line, {"pd": pd, "proportions": shares})
    matrix, classes, keys = check_proportions(mended)
    assert matrix.tolist() == [[0.8, 0.2], [0.5, 0.5], [0, 1]]
    assert classes.tolist() == ["no", "yes"]
    assert keys.tolist() == ([0, 1, 2] if form is list else ["a", "b", "c"])


def between(error, before, after="\n"):
    """The code between some words of a message."""
    return (str(error.value) + "\n").partition(before)[2].partition(after)[0]


@pytest.mark.parametrize("name", ["weights", "totals", "precinct_pops"])
def test_weights_of_places_are_their_people(name):
    groups = pd.DataFrame({"young": [60, 40, 20, 10], "old": [10, 20, 30, 60]})
    with pytest.raises(TypeError, match="each place has the weight of its people"):
        ecological_rates(groups, groups, **{name: groups.sum(axis=1)})


def test_tables_that_crosstab_divides_in_another_way():
    right = pd.crosstab(BAGS, Y, normalize="index")
    for how, words in (("all", "but all numbers do"), ("columns", "each column does")):
        with pytest.raises(ValueError, match=f"{words}.*normalize='index'"):
            check_proportions(pd.crosstab(BAGS, Y, normalize=how))
    model = CountLogistic().fit(X, BAGS, right)
    table = pd.crosstab(BAGS, Y, normalize="index", margins=True)  # with a row "All"
    assert_allclose(CountLogistic().fit(X, BAGS, table).coef_, model.coef_)


def test_scores_of_scikit_learn_take_the_classes_by_the_alphabet():
    shares = pd.DataFrame({"rich": P, "not rich": 1 - P})
    truth = np.array(["not rich", "rich"])[Y]
    model = CountLogistic(C=10).fit(X, BAGS, shares)
    chance = model.predict_proba(X)[:, 1]
    assert roc_auc_score(truth == model.classes_[1], chance) > 0.9  # as the page says
    assert roc_auc_score(truth, chance) < 0.1  # why it says so


@pytest.mark.parametrize(
    "text", ["{}-{} %", "{} – {}%", "0.{:02} to 0.{:02}", "{}%-{}%"]
)
def test_ranges_in_the_place_of_shares(text):
    low = np.arange(10, 70, 5)
    proportions = pd.Series([text.format(k, k + 10) for k in low])
    with pytest.raises(ValueError, match="is a range") as error:
        CountLogistic().fit(X, BAGS, proportions)
    ends = eval(between(error, "ends = ", ", pass"), {"proportions": proportions})
    middle = eval(between(error, "its middle, ", ", and"), {"ends": ends})
    assert_allclose(middle, low / 100 + 0.05)
    scope = {"ends": ends, "CountLogistic": CountLogistic}
    model = eval(between(error, ", and "), scope)
    assert_allclose(model.proportion_errors, 0.1 / 12**0.5)
    assert model.fit(X, BAGS, middle).score(X, Y) > 0.6


def test_ranges_in_two_columns_or_as_intervals():
    P2 = pd.DataFrame({"low": P * 0.9, "high": P * 0.9 + 0.1})
    with pytest.raises(ValueError, match="the least and the most") as error:
        CountLogistic().fit(X, BAGS, P2)
    assert_allclose(
        eval(between(error, "can be, pass ", ", and"), {"P": P2}), P2.mean(axis=1)
    )
    proportions = pd.Series(pd.IntervalIndex.from_arrays(P2["low"], P2["high"]))
    with pytest.raises(ValueError, match="these are ranges") as error:
        CountLogistic().fit(X, BAGS, proportions)
    middle = eval(between(error, "middles, "), {"proportions": proportions})
    assert_allclose(middle, P2.mean(axis=1))


@pytest.mark.parametrize("form", [list, tuple, np.array])
def test_a_table_per_bag_in_the_place_of_rows(form):
    tables = form([X[k == BAGS] for k in range(12)])
    with pytest.raises(ValueError, match="a table for each bag") as error:
        CountLogistic().fit(tables, np.arange(12), P)
    scope = {"np": np, "X": tables}
    assert_allclose(eval("np.concatenate(X)", scope), X)
    assert eval(between(error, "bags = "), scope).tolist() == BAGS.tolist()
    ragged = [X[:3], X[3:20]]
    with pytest.raises(ValueError, match="a table for each bag"):
        CountLogistic().fit(ragged, [0, 1], [0.2, 0.8])


@pytest.mark.parametrize("form", [np.asarray, pd.DataFrame])
def test_a_column_per_bag_in_the_place_of_bags(form):
    bags = form(np.eye(12, dtype=int)[BAGS])
    with pytest.raises(ValueError, match="each column marks a bag") as error:
        CountLogistic().fit(X, bags, P)
    right = eval(between(error, "pass "), {"np": np, "bags": bags})
    assert np.asarray(right).tolist() == BAGS.tolist()
    with pytest.raises(ValueError, match="the bag that holds most of it"):
        CountLogistic().fit(X, 0.7 * np.asarray(bags) + 0.3 / 12, P)


def test_margins_of_error_in_the_place_of_standard_errors():
    shares = pd.Series(P, [f"ward {k}" for k in range(12)])
    bags = shares.index[BAGS]
    for wrong, words in (
        (-555555555, "got -5.55556e.08 for bag 'ward 3'"),
        (np.nan, "got nan for bag 'ward 3'"),
        (8.5, "holds 8.5, which is too large.*by 100.*by 1.645"),
    ):
        errors = pd.Series(0.05, shares.index)
        errors["ward 3"] = wrong
        with pytest.raises(ValueError, match=words):
            CountLogistic(proportion_errors=errors).fit(X, bags, shares)


@pytest.mark.parametrize("index", [[], ["place"], ["place", "sex"]])
def test_long_tables_of_groups_become_wide(index):
    old = np.arange(10, 90, 10)
    wide = pd.DataFrame({"f": old, "m": 90 - old}, [f"p{k}" for k in old])
    wide = wide.rename_axis(index="place", columns="sex")
    groups = wide.stack().rename("n").reset_index()
    groups = groups.set_index(index) if index else groups
    with pytest.raises(ValueError, match=r"must be a place.*unstack\(\)") as error:
        check_margins(groups, wide)
    assert_allclose(eval(between(error, "a place: pass "), {"groups": groups}), wide)


def test_groups_that_overlap_are_asked_about():
    groups = pd.DataFrame({"a": [60, 40, 20, 12], "b": [10, 20, 33, 60]})
    classes = groups.rename(columns={"a": "no", "b": "yes"})
    with pytest.raises(ValueError, match=r"rule='rest'.*a person in several columns"):
        check_margins(groups.assign(any_race=[5, 6, 7, 8]), classes)


def test_small_numbers_that_are_not_published():
    old = np.arange(10, 90, 10)
    groups = pd.DataFrame({"young": 100 - old, "old": old})
    classes = pd.DataFrame({"well": 100 - old // 10, "ill": old // 10})
    hidden = classes.astype(object).where(classes >= 6, "<6")
    for read, then in (
        (check_margins, "Then take rule"),
        (ecological_rates, "Then pass both"),
    ):
        with pytest.raises(ValueError, match=re.escape(MIDDLE) + ".*" + then):
            read(groups, hidden)
        with pytest.raises(ValueError, match=r"groups.replace\('\*', MIDDLE"):
            read(groups.astype(object).where(groups > 12, "*"), classes)
    margins = check_margins(groups, eval(MIDDLE, {"classes": hidden}), rule="scale")
    assert margins.classes["ill"].tolist() == [3] * 5 + [6, 7, 8]
