"""Data sets: sizes and class counts as published, rules for missing values, bags, and labels that stay private."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from sklearn.metrics import balanced_accuracy_score

from llpbook.base import LLPWarning
from llpbook.datasets import (
    _encodings,
    binary_labels,
    dataset_names,
    load,
    load_bags,
    load_table,
    make_dataset,
    provenance,
    random_bags,
)
from llpbook.datasets._encodings import twonorm
from llpbook.mean_map import MeanMap

# By file: instances, columns one-hot (two values: one column), columns full one-hot, class counts; not read from the
# package.
PUBLISHED = """
a1a 1605 119 119 -1:1210 1:395; adult 48842 104 105 <=50K:37155 >50K:11687; appendicitis 106 7 7 0:85 1:21;
australian 690 14 14 0:383 1:307; banana 5300 2 2 -1:2924 1:2376; bands 365 19 19 noband:230 band:135;
breast-cancer 286 38 41 201 85; breast-w 699 9 9 benign:458 malignant:241; card 690 51 51 -:383 +:307;
census-income-balanced 37136 494 496 -50000:18568 50000+:18568; cleveland 297 13 13 0:160 1:54 2:35 3:35 4:13;
colic 368 60 62 yes:232 no:136; credit-a 690 42 46 -:383 +:307; default-credit-card 30000 23 23 0:23364 1:6636;
dermatology 366 34 34 112 72 61 52 49 20; diabetes 768 8 8 tested_negative:500 tested_positive:268;
dna 2000 180 180 n:1051 ie:485 ei:464; ecoli 336 7 7 143 77 52 35 20 5 2 2;
flare 1066 37 41 H:331 D:239 C:211 B:147 E:95 F:43; german 1000 59 61 good:700 bad:300;
glass 214 9 9 2:76 1:70 7:29 3:17 5:13 6:9; haberman 306 3 3 negative:225 positive:81;
hayes-roth 160 4 4 1:65 2:64 3:31; heart 270 13 13 absent:150 present:120; heart-c 303 22 25 0:164 1:139;
hepatitis 155 19 19 live:123 die:32; horse 364 58 58 lived:224 died:88 euthanized:52;
housevotes 232 16 32 democrat:124 republican:108; image 2310 18 18 1:1320 -1:990; ionosphere 351 34 34 g:225 b:126;
iris 150 4 4 50 50 50; mammographic 830 5 5 0:427 1:403; new-thyroid 215 5 5 normal:150 hyper:35 hypo:30;
nursery 12960 26 27 4320 4266 4044 328 2;
primary-tumor 339 23 37 84 39 29 28 24 24 20 16 14 14 10 9 7 6 6 2 2 2 1 1 1; saheart 462 9 10 0:302 1:160;
satimage 4435 36 36 1:1072 7:1038 3:961 2:479 5:470 4:415; segment 2310 19 19 330 330 330 330 330 330 330;
sonar 208 60 60 M:111 R:97; soybean 683 83 99 92 91 91 88 44 44 20 20 20 20 20 20 20 20 20 16 15 14 8;
vote 435 16 32 democrat:267 republican:168; wine 178 13 13 2:71 1:59 3:48; zoo 101 21 36 41 20 13 10 8 5 4
"""
# What each paper prints, under the name it prints: instances, columns, and the file whose class counts it has,
# where that has another name.
PRINTED = """
stolpe2011: credit-a 690 42; vote 435 16; colic 368 60; ionosphere 351 34; sonar 208 60; diabetes 768 8; breast-cancer
  286 38; heart-c 303 22
duplessis2013: australian 690 14; banana 5300 2; diabetes 768 8; german 1000 20; heart 270 13; image 2310 18;
  ionosphere 351 34; saheart 462 9; thyroid 215 5; twonorm 7400 20
perezortiz2016: appendicitis 106 7; bands 365 19; breast 286 15 breast-cancer; card 690 51; colic 368 60; credit-a 690
  43; haberman 306 3; heart 270 13; hepatitis 155 19; housevotes 232 16; mammographic 830 5; pima 768 8 diabetes;
  wisconsin 683 9; cleveland 297 13; dermatology 358 34; ecoli 336 7; flare 1066 38; glass 214 9; hayes-roth 160 4;
  horse 364 58; iris 150 4; nursery 12960 26; primary-tumor 339 23; soybean 683 84; wine 178 13; zoo 101 21
yu2013: heart 270 13; heart-c 303 13; colic 366 22; vote 435 16; breast-cancer 683 10; australian 690 14; credit-a 690
  15; breast-w 699 9; a1a 1605 119; dna 2000 180; satimage 4435 36
franco2023: default-credit-card 30000 23
"""
WISCONSIN = {"benign": 444, "malignant": 239}
OTHER_COUNTS = {
    ("duplessis2013", "thyroid"): {"normal": 150, "diseased": 65},
    ("duplessis2013", "twonorm"): None,
    ("perezortiz2016", "wisconsin"): WISCONSIN,
    ("perezortiz2016", "dermatology"): [111, 71, 60, 48, 48, 20],
    ("yu2013", "colic"): {"yes": 230, "no": 136},
    ("yu2013", "breast-cancer"): WISCONSIN,
}


def counted(words):
    """Class counts of a file: by class, or from the largest to the smallest."""
    pairs = [word.rpartition(":") for word in words]
    if not pairs[0][0]:
        return [int(count) for *_, count in pairs]
    whole = all(name.lstrip("-").isdecimal() for name, *_ in pairs)
    return {int(name) if whole else name: int(count) for name, _, count in pairs}


FILES = {
    name: (*map(int, sizes[:3]), counted(sizes[3:]))
    for name, *sizes in map(str.split, PUBLISHED.split(";"))
}
PAPERS = {
    paper: {
        name: (int(n), int(m), OTHER_COUNTS.get((paper, name), (*file, name)[0]))
        for name, n, m, *file in map(str.split, rows.split(";"))
    }
    for paper, rows in re.findall(r"^(\w+):(.*(?:\n  .*)*)", PRINTED, re.M)
}
PAPER_ROWS = [(paper, name) for paper, rows in PAPERS.items() for name in rows]


def check_counts(y, expected):
    counts = y.value_counts()
    if isinstance(expected, list):
        assert counts.tolist() == expected
    else:
        assert counts.to_dict() == expected


@pytest.mark.parametrize("name", FILES)
def test_file_has_the_published_size_and_classes(name):
    n, onehot, full, counts = FILES[name]
    for encoding, width in (("onehot", onehot), ("full", full)):
        X, y = load(name, encoding=encoding)
        assert X.shape == (n, width) and len(y) == n
        assert X.columns.is_unique and np.isfinite(X.to_numpy()).all()
        assert X.dtypes.unique().tolist() == [np.float64]
        assert X.index.equals(y.index)
    check_counts(y, counts)
    known = provenance(name)
    assert (known["n"], known["onehot"], known["full"]) == (n, onehot, full)
    assert known["raw"] == load(name, encoding="raw")[0].shape[1]
    assert {str(k): v for k, v in y.value_counts().items()} == known["classes"]
    assert known["licence"] and known["citation"] and known["source"]
    assert "positive" not in known or known["positive"] in y.unique()
    assert ("positive" in known) == (y.nunique() == 2)


def test_every_shipped_file_is_tested_and_described():
    files = {path.name for path in _encodings.DATA.glob("*.csv.gz")}
    assert files == {f"{name}.csv.gz" for name in FILES}
    sets = _encodings.catalog()["sets"].values()
    assert files == {e["file"] for e in sets if "file" in e}


@pytest.mark.parametrize(("paper", "name"), PAPER_ROWS)
def test_paper_encoding_has_the_printed_size(paper, name):
    n, m, counts = PAPERS[paper][name]
    X, y = load(name, encoding=paper)
    assert X.shape == (n, m) and X.index.equals(y.index)
    assert np.isfinite(X.to_numpy()).all()
    if counts is not None:
        check_counts(y, FILES[counts][3] if isinstance(counts, str) else counts)
    printed = provenance(name, encoding=paper)
    assert (printed["n"], printed["m"], printed["n_classes"]) == (n, m, y.nunique())


def test_every_row_of_a_paper_is_tested():
    for paper, rows in PAPERS.items():
        untested = set(dataset_names(encoding=paper)) - set(rows)
        assert untested <= {"adult", "census-kdd"}
    ours = [*_encodings.catalog()["sets"]]
    assert dataset_names() == dataset_names(encoding="raw") == ours
    with pytest.raises(ValueError, match=r"did you mean 'yu2013'.* 'full', 'stolpe2011'"):  # fmt: skip
        dataset_names(encoding="yu2014")


@pytest.mark.parametrize(
    ("name", "width", "printed"), [("adult", 108, 179), ("census-kdd", 503, 506)]
)
def test_a_width_that_is_not_established_is_said_to_be_so(name, width, printed):
    words = f"franco2023 prints {printed} columns for '{name}', these are {width}"
    with pytest.warns(LLPWarning, match=words):
        X, _ = load(name, encoding="franco2023")
    assert X.shape == (FILES.get(name, FILES["census-income-balanced"])[0], width)
    assert any(column.endswith("=?") for column in X)
    assert provenance(name, encoding="franco2023")["m"] == width


def test_views():
    assert load("pima")[0].equals(load("diabetes")[0])
    assert load("wisconsin")[0].shape == (683, 9)
    X, _ = load("breast-cancer-libsvm")
    assert X.shape == (683, 10) and "Id" in X
    assert "Id" not in load("breast-w")[0]
    check_counts(load("thyroid")[1], {"normal": 150, "diseased": 65})
    # Our name of a set works in a paper's encoding where one set of the paper is made from it.
    assert load("diabetes", encoding="perezortiz2016")[0].shape == (768, 8)
    assert load("breast-cancer", encoding="perezortiz2016")[0].shape == (286, 15)


def test_housevotes_is_vote_without_incomplete_rows():
    X, y = load("vote", missing="drop")
    same, labels = load("housevotes")
    assert np.array_equal(X, same) and np.array_equal(y, labels)


# --- encodings ---------------------------------------------------------------------------------------------------


@pytest.fixture
def toy():
    """A table with every kind of column, and the specification that goes with it."""
    table = pd.DataFrame(
        {
            "size": ["10-14", "5-9", None, "0-4", "5-9"],
            "sex": ["m", "f", "f", None, "m"],
            "dose": [1.0, np.nan, 3.0, 10.0, 4.0],
            "empty": [np.nan] * 5,
            "one": ["v"] * 5,
        }
    )
    return table, {"nominal": ["size", "sex", "one"], "encoding": "onehot"}


def test_onehot_by_hand(toy):
    table, spec = toy
    X = _encodings.encode(table, spec, "impute")
    # Size 5-9 and sex f are the most frequent (f before m on a tie), the median dose is 3.5, an empty column becomes 0.
    expected = {
        "size=0-4": [0, 0, 0, 1, 0],
        "size=5-9": [0, 1, 1, 0, 1],
        "size=10-14": [1, 0, 0, 0, 0],
        "sex=m": [1, 0, 0, 0, 1],
        "dose": [1, 3.5, 3, 10, 4],
        "empty": [0] * 5,
        "one=v": [1] * 5,
    }
    pd.testing.assert_frame_equal(X, pd.DataFrame(expected, dtype=float))


def test_raw_and_full_by_hand(toy):
    table, spec = toy
    raw = _encodings.encode(table, {**spec, "encoding": "raw"}, "impute")
    assert raw["size"].tolist() == [2, 1, 1, 0, 1]
    assert raw["sex"].tolist() == [1, 0, 0, 0, 1]
    full = _encodings.encode(table, {**spec, "encoding": "full"}, "impute")
    assert list(full.columns[3:5]) == ["sex=f", "sex=m"] and full.shape[1] == 8
    assert (full["sex=f"] + full["sex=m"] == 1).all()


def test_keep_leaves_nan_in_every_column_of_the_value(toy):
    table, spec = toy
    X = _encodings.encode(table, spec, "keep")
    assert X.iloc[2].isna().tolist() == [True] * 3 + [False, False, True, False]
    assert X.iloc[3].isna().tolist() == [False] * 3 + [True, False, True, False]
    assert X.isna().to_numpy().sum() == 3 + 1 + 1 + 5


def test_category_makes_a_value_of_missing(toy):
    table, spec = toy
    X = _encodings.encode(table, spec, "category")
    assert X["size=?"].tolist() == [0, 0, 1, 0, 0]
    assert [c for c in X if c.startswith("sex")] == ["sex=?", "sex=f", "sex=m"]
    assert X["dose"].tolist() == [1, 3.5, 3, 10, 4]


def test_declared_values_and_numbers(toy):
    table, spec = toy
    spec |= {"declared": {"sex": ["x"]}, "numbers": ["size"]}
    assert "sex=x" not in _encodings.encode(table, spec, "impute")
    spec |= {"use_declared": True}
    X = _encodings.encode(table, spec, "impute")
    assert X["size"].tolist() == [10, 5, 5, 0, 5]
    assert X["sex=x"].tolist() == [0] * 5 and "sex=f" in X
    kept = _encodings.encode(table, spec, "keep")
    assert kept["size"].isna().tolist() == [0, 0, 1, 0, 0]


def test_missing_in_credit_a_and_colic():
    kept, y = load("credit-a", encoding="raw", missing="keep")
    assert kept.isna().to_numpy().sum() == 67 and kept.isna().any(axis=1).sum() == 37
    dropped, labels = load("credit-a", encoding="raw", missing="drop")
    complete = kept.notna().all(axis=1)
    assert len(dropped) == 690 - 37 and np.array_equal(dropped, kept[complete])
    assert np.array_equal(labels, y[complete])
    for missing, n in (("impute", 368), ("keep", 368), ("drop", 7)):
        assert load("colic", missing=missing)[0].shape == (n, 60)


def test_perezortiz_breast_has_numbers_for_ordinals():
    X, _ = load("breast", encoding="perezortiz2016")
    assert sorted(X["age"].unique()) == [20, 30, 40, 50, 60, 70]
    assert sorted(X["inv-nodes"].unique()) == [0, 3, 6, 9, 12, 15, 24]
    assert X["deg-malig"].between(1, 3).all()
    assert sum(c.startswith("breast-quad=") for c in X) == 5


def test_german_is_coded_by_the_number_in_the_name():
    X, _ = load("german", encoding="duplessis2013")
    assert sorted(X["purpose"].unique()) == [40, 41, 42, 43, 44, 45, 46, 48, 49, 410]


def test_classes_keeps_some():
    X, y = load("satimage", classes=(1, 7))
    assert set(y) == {1, 7} and len(X) == 1072 + 1038 and X.index.equals(y.index)
    with pytest.raises(ValueError, match="classes=9 is not known"):
        load("satimage", classes=(1, 9))


@pytest.mark.parametrize("arguments, message", [
    (("hart",), "name='hart' is not known; did you mean 'heart'"), (("heart", "yu2012"), "did you mean 'yu2013'"),
    (("sonar", "yu2013"), "'yu2013' has other sets: name='sonar' is not .* 'heart', 'heart-c', 'colic'"),
    (("heart", "raw", "ignore"), "missing='ignore' is not known; known: 'impute', 'keep', 'drop', 'category'"),
])  # fmt: skip
def test_unknown_names(arguments, message):
    with pytest.raises(ValueError, match=message):
        load(arguments[0], **dict(zip(("encoding", "missing"), arguments[1:], strict=False)))  # fmt: skip


def test_provenance_is_a_copy():
    provenance("heart")["notes"].append("changed")
    assert "changed" not in provenance("heart")["notes"]


def test_what_the_data_page_says_of_copies():
    """Decimal points of australian are those of credit-a; image is segment without its constant column."""
    mine, other = (load(n, encoding="raw")[0] for n in ("australian", "credit-a"))
    for column, theirs in (("A2", "A2"), ("A3", "A3"), ("A7", "A8")):
        assert mine[column].max() == other[theirs].max() < 100
    X, y = load("segment")
    image, sign = load("image")
    assert X["region-pixel-count"].nunique() == 1
    assert image.equals(X.drop(columns="region-pixel-count"))
    assert ((sign == 1) == y.isin(["brickface", "sky", "foliage", "path"])).all()


def test_twonorm():
    X = twonorm(20000, 5)
    y, a = X.pop("class"), 2 / np.sqrt(5)
    # Five standard errors of a mean of some 10,000 values.
    assert np.allclose(X[y == 1].mean(), a, atol=0.05)
    assert np.allclose(X[y == 0].mean(), -a, atol=0.05)
    assert np.allclose(np.cov(X[y == 1].T), np.eye(5), atol=0.08)
    # The sign of the sum is the Bayes rule; its error is Phi(-2) = 0.02275.
    assert np.mean((X.sum(axis=1) > 0) != (y == 1)) == pytest.approx(0.02275, abs=0.005)
    assert load("twonorm")[0].shape == (7400, 20)


# --- bags --------------------------------------------------------------------------------------------------------


def test_random_bags():
    bags = random_bags(np.zeros(23), bag_size=5, random_state=0)
    assert np.bincount(bags).tolist() == [5, 5, 5, 5, 3]
    assert np.array_equal(bags, random_bags(23, bag_size=5, random_state=0))
    sizes = np.bincount(random_bags(23, n_bags=5, random_state=0))
    assert sizes.tolist() == [5, 5, 4, 5, 4]  # chunks of the shuffled instances
    for one in ({"n_bags": 4}, {"bag_size": 1}):
        assert sorted(random_bags(4, **one)) == [0, 1, 2, 3]
    order = np.random.RandomState(0).permutation(23)
    assert (bags[order] == np.arange(23) // 5).all()


@pytest.mark.parametrize("arguments, message", [
    ({}, "either bag_size or n_bags"), ({"bag_size": 2, "n_bags": 2}, "either bag_size or n_bags"),
    ({"bag_size": 11}, "bag_size .* from 1 to 10, got 11"), ({"n_bags": 11}, "n_bags .* from 1 to 10, got 11"),
    ({"bag_size": True}, "got True"),
])  # fmt: skip
def test_random_bags_refuses(arguments, message):
    with pytest.raises(ValueError, match=message):
        random_bags(10, **arguments)


def test_dataset_fits_and_evaluates_out_of_the_box():
    ds = load_bags("iris", random_state=0, n_bags=75)
    clf = MeanMap().fit(*ds)
    assert list(clf.classes_) == list(ds.classes)
    predicted, y = clf.predict(ds.X), ds.true_labels_for_evaluation()
    assert ds.evaluate(clf) == ds.evaluate(predicted) == np.mean(predicted == y) > 0.85
    balanced = balanced_accuracy_score(y, predicted)
    assert ds.evaluate(clf, metric=balanced_accuracy_score) == pytest.approx(balanced)


def test_dataset_holds_what_it_says():
    ds = load_bags("credit-a", bag_size=100, random_state=3)
    X, y = load("credit-a")
    got, bags, proportions = ds
    assert got.equals(X)
    assert ds.n_bags == 7 and ds.bag_sizes.tolist() == [100] * 6 + [90]
    assert list(proportions.columns) == ["-", "+"] and ds.classes.tolist() == ["-", "+"]
    shares = (y == "+").groupby(bags).mean()
    assert np.allclose(proportions["+"], shares)
    assert np.array_equal(ds.true_labels_for_evaluation(), y)
    assert np.array_equal(bags, random_bags(690, bag_size=100, random_state=3))
    assert np.array_equal(ds.bag_names, np.arange(7)) and ds.proportions.index.equals(pd.RangeIndex(7))  # fmt: skip
    named = load_bags("credit-a", n_bags=7, random_state=4, missing="drop", classes=["+", "-"])  # fmt: skip
    assert np.array_equal(named.bags, random_bags(653, n_bags=7, random_state=4))
    assert "'credit-a': 690 instances, 42 features, 7 bags, 2 classes" in repr(ds)


def test_labels_are_private():
    ds = load_bags("heart", bag_size=16, random_state=0)
    labels = load("heart")[1].to_numpy()
    public = {name: getattr(ds, name) for name in dir(ds) if not name.startswith("_")}
    arrays = [np.asarray(v) for v in [*public.values(), *ds] if not callable(v)]
    assert not any(np.array_equal(a, labels) for a in arrays)
    copy = ds.true_labels_for_evaluation()
    copy[:] = "absent"
    assert np.array_equal(ds.true_labels_for_evaluation(), labels)


def test_natural_bags_of_adult():
    ds = load_bags("adult", by="occupation")
    X, y = load("adult")
    assert list(ds.X) == [c for c in X if not c.startswith("occupation")]
    assert ds.n_bags == 15 and ds.bag_names[-1] == "(missing)" and ds.bag_sizes[-1] == 2809  # fmt: skip
    sales = list(ds.bag_names).index("Sales")
    assert ds.bag_sizes[sales] == 5504
    share = np.mean(y[ds.bags == sales] == ">50K")
    assert ds.proportions.loc[sales, ">50K"] == pytest.approx(share)


def test_natural_bags_of_a_numeric_column_and_dropped_rows():
    ds = load_bags("dermatology", by="age", missing="drop")
    # The ages are the only missing values: as bags they form one, and no row is dropped.
    assert ds.bag_names[-1] == "(missing)"
    assert ds.bag_sizes[-1] == 8 and ds.bag_sizes.sum() == 366
    whole = load_bags("breast-cancer", by="menopause", missing="drop")
    assert whole.bag_sizes.sum() == 277
    assert whole.bag_names.tolist() == ["ge40", "lt40", "premeno"]
    complete = load_table("breast-cancer").drop(columns="menopause").notna().all(axis=1)
    assert np.array_equal(whole.X, load_bags("breast-cancer", by="menopause").X[complete])  # fmt: skip
    # a column that is left out of the features may name the bags; rows and bags are cut together
    own = load_bags("breast-w", by="Id")
    assert "Id" not in own.X and own.n_bags == load_table("breast-w")["Id"].nunique()
    few = load_bags("dermatology", by="age", classes=["psoriasis", "lichen planus"])
    table = load_table("dermatology")
    table = table[table["class"].isin(["psoriasis", "lichen planus"])]
    assert (few.bag_sizes[:-1].tolist() == table["age"].value_counts().sort_index().tolist())  # fmt: skip
    assert np.array_equal(few.true_labels_for_evaluation(), table["class"])
    with pytest.raises(ValueError, match="did you mean 'occupation'"):
        load_bags("adult", by="ocupation")


def test_load_bags_wants_one_way_to_make_bags():
    for arguments, got in (({}, "none"), ({"bag_size": 3, "by": "age"}, "bag_size and by")):  # fmt: skip
        with pytest.raises(ValueError, match=f"one of bag_size, n_bags and by, got {got}"):  # fmt: skip
            load_bags("adult", **arguments)


def test_positive_class():
    for positive, classes in (("absent", ["present", "absent"]), (None, ["absent", "present"])):  # fmt: skip
        ds = load_bags("heart", bag_size=16, positive=positive)
        assert ds.classes.tolist() == classes
    assert load_bags("satimage", bag_size=16, classes=(1, 7)).classes.tolist() == [1, 7]
    rest = load_bags("dna", bag_size=16, positive="ie", random_state=0)
    assert rest.classes.tolist() == [0, 1]
    assert rest.true_labels_for_evaluation().sum() == 485
    with pytest.raises(ValueError, match="did you mean 'present'"):
        load_bags("heart", bag_size=16, positive="Present")


def test_binary_labels():
    assert binary_labels(["a", "b", "a"], "a").tolist() == [1, 0, 1]
    for y, positive, words in (
        ([0, 1], "1", "known: 0, 1"),
        ([], 1, "one label per"),
        ([[1]], 1, "one label per"),
    ):
        with pytest.raises(ValueError, match=words):
            binary_labels(y, positive)


def test_make_dataset_from_arrays():
    X = np.arange(12.0).reshape(6, 2)
    ds = make_dataset(X, [0, 1, 1, 0, 1, 0], ["u", "v", "u", "v", "w", "w"])
    assert ds.bags.tolist() == [0, 1, 0, 1, 2, 2]
    assert ds.bag_names.tolist() == ["u", "v", "w"]
    assert ds.proportions.to_numpy().tolist() == [[0.5, 0.5]] * 3
    assert ds.X is X
    assert repr(ds) == "BagDataset('data': 6 instances, 2 features, 3 bags, 2 classes)"
    one = make_dataset(sp.csr_array(X), list("abcabc"), [0] * 6, positive="b", name="one")  # fmt: skip
    assert one.proportions.to_numpy().tolist() == [[pytest.approx(2 / 3), pytest.approx(1 / 3)]]  # fmt: skip
    assert one.true_labels_for_evaluation().tolist() == [0, 1, 0] * 2
    assert "'one': 6 instances" in repr(one)
    for given, words in (
        ((X[:, 0], [0] * 6, [0] * 6), r"shape \(n_instances, n_features\), got \(6,\)"),
        ((X, [0] * 6, [0] * 6), r"at least two classes, got \[0\]"),
    ):
        with pytest.raises(ValueError, match=words):
            make_dataset(*given)
    swapped = make_dataset(X, [0, 1, 1, 0, 1, 0], [2, 2, 2, 9, 9, 9], positive=0)
    assert swapped.classes.tolist() == [1, 0] and swapped.bag_names.tolist() == [2, 9]
    assert swapped.proportions[0].tolist() == pytest.approx([1 / 3, 2 / 3])


def test_make_dataset_compares_indices_and_keeps_its_own_labels():
    y, X = np.array([0, 1, 1]), pd.DataFrame({"x": [1.0, 2.0, 3.0]})
    data = make_dataset(X, y, [0, 0, 1])
    y[:] = 0
    assert data.true_labels_for_evaluation().tolist() == [0, 1, 1]
    with pytest.raises(ValueError, match=r"bags\.index differs from X\.index"):
        make_dataset(X, y, pd.Series([0, 0, 1], [2, 1, 0]))


def test_evaluate_refuses_other_labels():
    ds = load_bags("heart", bag_size=16, random_state=0)
    for wrong, words in (
        (np.zeros(270, dtype=int), "predictions hold 0, which is none of the classes"),
        (["absent"] * 3, r"one for each instance, \(270,\), got \(3,\)"),
    ):
        with pytest.raises(ValueError, match=words):
            ds.evaluate(wrong)


# --- the page ----------------------------------------------------------------------------------------------------


def test_the_page_lists_every_set_with_its_size_and_source():
    page = (Path(__file__).resolve().parents[1] / "book/data.md").read_text("utf-8")
    for name in dataset_names():
        about = provenance(name)
        row = rf"\| {re.escape(name)} \| {about['n']:,}.* \| {about['raw']}/{about['onehot']} \|"
        assert re.search(row, page), name
        entry = page.partition(f"- **{name}**. ")[2].partition("\n- **")[0]
        assert entry.startswith(about["title"]), name


def test_a_table_is_what_load_encodes():
    table = load_table("adult")
    X, y = load("adult")
    assert table.columns[-1] == "class" and (table["class"] == y).all()
    assert table["workclass"].isna().sum() == 2799
    assert_array_equal(table["age"], X["age"])
