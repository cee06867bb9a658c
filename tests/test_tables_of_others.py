"""Tables of Polars and Arrow, pandas' own types, and what has not read its rows."""

import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pandas.testing import assert_frame_equal
from problems import uneven_bags
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from llpbook import (
    CountCalibration,
    CountLogistic,
    LLPGridSearchCV,
    MeanMap,
    SplitBagKFold,
    bag_bootstrap,
    bag_report,
    check_margins,
    fit_chunks,
    identifiability,
    proportion_scorer,
    recommend,
    sample_bags,
)
from llpbook._input import as_frame, check_proportions
from llpbook.base import LLPWarning
from llpbook.beyond_memory import ChunkError
from llpbook.datasets import load_table, plain_table

ROOT = Path(__file__).resolve().parents[1]


class Column:
    """A column of the stand-in for Polars."""

    def __init__(self, values):
        self.values = values

    def to_numpy(self):
        return self.values

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.values, dtype)

    def __len__(self):
        return len(self.values)


class Frame:
    """A stand-in for Polars where it is missing: nulls are NaN in numbers, None elsewhere; iterates over columns."""

    __module__ = "polars.dataframe.frame"

    def __init__(self, frame):
        self.frame, self.columns = frame, [str(c) for c in frame.columns]

    def __getitem__(self, name):
        column = self.frame[name]
        if pd.api.types.is_numeric_dtype(column):
            return Column(column.to_numpy())
        return Column(column.astype(object).where(column.notna(), None).to_numpy())

    def __iter__(self):
        return iter([self[name] for name in self.columns])

    def __len__(self):
        return len(self.frame)

    def to_pandas(self):
        raise ModuleNotFoundError("pyarrow")


def polars(frame):
    pl = pytest.importorskip("polars")
    rows = frame.astype(object).where(frame.notna(), None)
    return pl.DataFrame({c: pl.Series(c, rows[c].tolist()) for c in frame})


def arrow(frame):
    pa = pytest.importorskip("pyarrow")
    rows = frame.astype(object).where(frame.notna(), None)
    return pa.table({c: rows[c].tolist() for c in frame})


def arrow_types(frame):
    pytest.importorskip("pyarrow")
    return frame.convert_dtypes(dtype_backend="pyarrow")


def text_as(dtype):
    def convert(frame):
        text = frame.select_dtypes(exclude=["number", "bool"]).columns
        return frame.astype(dict.fromkeys(text, dtype))

    return convert


#: The same table in the types that people have.
TYPES = {
    "objects": lambda frame: frame.astype(object).where(frame.notna(), None),
    "str": lambda frame: frame,
    "string": text_as("string[python]"),
    "category": text_as("category"),
    "nullable": lambda frame: frame.convert_dtypes(),
    "Arrow in pandas": arrow_types,
    "Polars' stand-in": Frame,
    "Polars": polars,
    "Arrow": arrow,
}
FOREIGN = ("Polars' stand-in", "Polars", "Arrow")
every_type = pytest.mark.parametrize("kind", TYPES)
foreign = pytest.mark.parametrize("kind", FOREIGN)


def mixed(n=600):
    """People with gaps in numbers, in text, in truth values and in a code; bags and shares."""
    rng = np.random.default_rng(0)
    bags, age = rng.integers(0, 12, n), rng.normal(size=n)
    y = (age + bags / 6 - 1 + rng.normal(size=n) > 0).astype(int)
    frame = pd.DataFrame({"age": age, "kids": rng.integers(0, 4, n).astype(float)})
    frame["job"] = rng.choice(["clerk", "cook"], n).astype(object)
    frame["district"] = rng.integers(100, 105, n).astype(float)
    frame["owner"] = (rng.random(n) < 0.5).astype(object)
    for row, column in enumerate(frame.columns):
        frame.loc[row, column] = None
    return frame, bags, np.bincount(bags, y) / np.bincount(bags)


def recipe():
    """The columns of the page `your_data`."""
    one_hot = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    return make_column_transformer(
        (numbers, ["age", "kids"]), (one_hot, ["job", "district", "owner"])
    )


# --- the recipes -------------------------------------------------------------------------------------------------


@every_type
def test_the_recipe_gives_the_same_model_for_every_type(kind):
    frame, bags, p = mixed()
    codes = ["district"]
    step = FunctionTransformer(plain_table, kw_args={"codes": codes})
    pipe = make_pipeline(step, recipe(), CountLogistic())
    expected = pipe.fit(frame, bags, countlogistic__proportions=p).predict_proba(frame)
    table = TYPES[kind](frame)
    if isinstance(table, Frame):  # which scikit-learn does not know
        table = plain_table(table, codes=codes)
    found = pipe.fit(table, bags, countlogistic__proportions=p).predict_proba(table)
    assert_allclose(found, expected, atol=1e-9)
    names = pipe[:-1][-1].get_feature_names_out()
    assert len(names) == 2 + 3 + 6 + 3  # a missing value is a value


@every_type
def test_a_plain_table_is_floats_and_text(kind):
    frame, *_ = mixed(40)
    plain = plain_table(TYPES[kind](frame), codes=["district"])
    assert list(plain.columns) == list(frame.columns)
    assert plain.dtypes.map(str).tolist() == ["float64", "float64", "object", "object", "object"]  # fmt: skip
    assert_array_equal(plain.isna(), frame.isna())
    assert_allclose(plain["age"], frame["age"].astype(float))
    there = plain.notna()
    assert set(plain["district"][there["district"]]) <= {"100", "101", "102", "103", "104"}  # fmt: skip
    assert set(plain["owner"][there["owner"]]) == {"True", "False"}
    again = plain_table(plain, codes=["district"])
    assert_frame_equal(again, plain)


def test_a_plain_table_of_one_new_person_fits_the_pipeline():
    frame, bags, p = mixed()
    pipe = make_pipeline(recipe(), CountLogistic())
    pipe.fit(plain_table(frame, codes=["district"]), bags, countlogistic__proportions=p)
    new = pd.DataFrame([{"age": 1, "district": 104, "job": "astronaut"}])
    new = plain_table(new.reindex(columns=frame.columns), codes=["district"])
    assert 0 < pipe.predict_proba(new)[0, 1] < 1


def test_a_plain_table_keeps_what_it_should():
    from decimal import Decimal

    times = pd.date_range("2020-01-01", periods=2)
    frame = pd.DataFrame({"when": times, "n": [Decimal("1.5"), None]}, index=[7, 3])
    with pytest.warns(LLPWarning, match=r"^'when' of the table holds times"):
        plain = plain_table(frame)
    assert_array_equal(plain["when"], times)
    assert_array_equal(plain["n"], [1.5, np.nan])
    assert plain.index.tolist() == [7, 3]
    twice = plain_table(pd.DataFrame([[1, "a"]], columns=["x", "x"]))
    assert twice.iloc[0].tolist() == [1.0, "a"]
    with pytest.raises(ValueError, match="codes holds 'ward', which is no column"):
        plain_table(frame, codes=["ward"])
    with pytest.raises(ValueError, match="table must be a table, got ndarray"):
        plain_table(np.ones((2, 2)))


def test_a_plain_table_warns_of_times_and_the_recipe_of_the_page_mends_them():
    days = pd.to_datetime(["2020-01-03 00:00", None, "2021-01-01 12:00"])
    frame = pd.DataFrame({"age": [1.0, 2, 3], "date": days, "until": days.date})
    with pytest.warns(LLPWarning, match=r"^'date', 'until' of the table holds times"):
        plain_table(frame)
    page = (ROOT / "book" / "src" / "your_data.md").read_text("utf-8")
    recipe = re.search(r"`(people\[.days.\] = .*?)`", page)[1]
    for column in ("date", "until"):
        people = frame[["age", column]].set_axis(["age", "date"], axis=1)
        exec(recipe, {"pd": pd, "people": people})
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            plain = plain_table(people)
        assert_array_equal(plain["days"], [2, np.nan, 366])


def blocks(name):
    text = (ROOT / name).read_text("utf-8")
    return re.findall(r"```(?:python|\{code-cell\} ipython3)\n(.*?)```", text, re.S)


@every_type
def test_the_lines_of_readme_run_on_every_type(kind):
    """What README.md does with its table, after the table has become one of another type."""
    code = next(
        block for block in blocks("README.md") if "plain_table(people)" in block
    )
    begin, rest = code.split("people = plain_table(people)", 1)
    columns = rest.split("print(recommend")[0]
    names = {}
    begin = begin.replace(".head(3000)", '[["age", "sex", "occupation", "workclass", "class"]].head(400)')  # fmt: skip
    exec(begin, names)
    names["people"] = TYPES[kind](names["people"])
    exec("people = plain_table(people)" + columns, names)
    pipe = make_pipeline(names["columns"], CountLogistic())
    pipe.fit(names["people"], names["bags"], countlogistic__proportions=names["shares"])
    assert pipe.predict(names["people"]).shape == (400,)


@every_type
def test_the_columns_of_the_page_run_on_every_type(kind):
    cells = blocks("book/src/your_data.md")
    lines = [cell for cell in cells if "plain_table(people)" in cell or "one_hot = " in cell]  # fmt: skip
    people = load_table("adult")[["age", "sex", "workclass"]].head(300)
    names = {"people": TYPES[kind](people), **globals()}
    for cell in lines:
        exec(cell, names)
    X = names["columns"].fit_transform(names["people"])
    assert np.isfinite(X.to_numpy(float)).all() and X.shape[1] > 4
    assert all(
        isinstance(names[n], list) for n in ("numeric", "nominal")
    )  # see test_saved.py


# --- what fits and reports read ----------------------------------------------------------------------------------


def numbers(kind):
    """X, names of bags and shares of `uneven_bags`, the first in another table, and as arrays."""
    X, _, bags, P = uneven_bags(n=240, apart=2.0)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    return TYPES[kind](frame), frame, bags, P[:, 1]


@foreign
def test_fits_and_reports_read_foreign_tables(kind):
    table, frame, bags, p = numbers(kind)
    counts = np.repeat([1, 2], 120)
    column = TYPES[kind](pd.DataFrame({"bag": bags, "n": counts}))
    keys, times = column["bag"], column["n"]
    model = CountLogistic().fit(table, keys, p, counts=times)
    plain = CountLogistic().fit(frame, bags, p, counts=counts)
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    assert_allclose(model.predict_proba(table), plain.predict_proba(frame), rtol=1e-12)
    model, plain = CountLogistic().fit(table, keys, p), CountLogistic().fit(frame, bags, p)  # fmt: skip
    wanted = plain.predict_proportions(frame, bags)
    assert_allclose(model.predict_proportions(table, keys), wanted, rtol=1e-12)
    assert_frame_equal(bag_report(model, table, keys, p).table, bag_report(plain, frame, bags, p).table)  # fmt: skip
    assert str(identifiability(keys, p)) == str(identifiability(bags, p))


@foreign
def test_shares_of_a_foreign_table(kind):
    if kind == "Polars' stand-in":
        pytest.skip("its shares are those of Polars")
    shares = pd.DataFrame({"county": ["a", "b", "c"], "rich": [0.1, 0.5, 0.7]})
    with pytest.raises(ValueError, match=r"\.to_pandas\(\)\.set_index\('county'\)\['rich'\]"):  # fmt: skip
        check_proportions(TYPES[kind](shares))
    columns = TYPES[kind](pd.DataFrame({"no": [0.9, 0.5], "yes": [0.1, 0.5]}))
    matrix, classes, _ = check_proportions(columns)
    assert_allclose(matrix, [[0.9, 0.1], [0.5, 0.5]])
    assert list(classes) == ["no", "yes"]
    assert_allclose(check_proportions(TYPES[kind](shares)["rich"])[0][:, 1], shares["rich"])  # fmt: skip


@pytest.mark.parametrize("kind", ["Polars", "Arrow"])
def test_searches_calibration_and_bootstrap_read_foreign_tables(kind):
    table, frame, bags, p = numbers(kind)
    grid = {"countlogistic__C": [0.1, 1]}
    found = []
    for X in (table, frame):
        pipe = make_pipeline(StandardScaler(), CountLogistic())
        search = LLPGridSearchCV(pipe, grid, cv=2).fit(X, bags, p)
        sure = CountCalibration(pipe, n_folds=3).fit(X, bags, p)

        def rate(model, X=X):
            return model.predict(X).mean()

        drawn = bag_bootstrap(pipe, X, bags, p, rate, n_resamples=3, random_state=0)
        found.append([search.predict_proba(X), sure.predict_proba(X), drawn.replicates])
    for one, other in zip(*found, strict=True):
        assert_allclose(one, other)


@foreign
def test_nulls_are_told_by_their_column(kind):
    _, frame, bags, p = numbers(kind)
    hole = frame.assign(word="x")
    hole.loc[3, "b"] = np.nan
    words = r"column 'word' holds text.*Also, column 'b' holds missing values \(NaN\)"
    for X in (TYPES[kind](hole), hole):
        with pytest.raises(ValueError, match=words):
            CountLogistic().fit(X, bags, p)
        with pytest.raises(ValueError, match=words):
            recommend(X, bags, p)
    names = TYPES[kind](pd.DataFrame({"bag": [None, *map(str, bags[1:])]}))["bag"]
    keyed = pd.Series(p, [str(k) for k in range(20)])
    with pytest.raises(ValueError, match="bags has a missing value at position 0"):
        MeanMap().fit(frame, names, keyed)


@foreign
def test_chunks_may_be_foreign_tables(kind):
    _, frame, bags, p = numbers(kind)
    frame = frame.assign(bag=bags, note="text that no fit reads")
    parts = [frame[bags < 8], frame[bags >= 8]]
    chunks = [TYPES[kind](part) for part in parts]
    options = {"bags": "bag", "features": ["a", "b", "c"]}
    plain = fit_chunks(CountLogistic(), parts, p, **options)
    forms = [
        chunks,
        [lambda: chunks[0], lambda: chunks[1]],
        TYPES[kind](frame),  # one table
        [TYPES[kind](frame)],
    ]
    for form in forms:
        model = fit_chunks(CountLogistic(), form, p, **options)
        assert_allclose(model.coef_, plain.coef_, rtol=1e-9)
    drawn = sample_bags(chunks, p, 5, random_state=0, **options)
    assert_frame_equal(drawn, sample_bags(parts, p, 5, random_state=0, **options))
    with pytest.raises(ChunkError, match="chunk 1 has no column 'c'; it has"):
        fit_chunks(CountLogistic(), [chunks[0], TYPES[kind](parts[1][["a", "b", "bag"]])], p, **options)  # fmt: skip
    objects = [parts[0], parts[1].astype({"a": object, "c": object})]
    model = fit_chunks(CountLogistic(), objects, p, **options)  # as in memory
    assert_allclose(model.coef_, plain.coef_, rtol=1e-9)
    hole = parts[1].copy()
    hole.iloc[3, 1] = np.nan
    with pytest.raises(ChunkError, match=r"(?s)chunk 1.*missing values"):
        fit_chunks(CountLogistic(), [chunks[0], TYPES[kind](hole)], p, **options)


@foreign
def test_splitters_and_scorers_read_foreign_tables(kind):
    """Also where shares are no counts, so that the rows are compared with one another."""
    table, frame, bags, p = numbers(kind)
    keys = TYPES[kind](pd.DataFrame({"bag": bags}))["bag"]
    found = [
        [
            test.tolist()
            for _, test in SplitBagKFold(3, random_state=0).split(X, groups=groups)
        ]
        for X, groups in ((table, keys), (frame, bags))
    ]
    assert found[0] == found[1]
    p = np.clip(p + 0.013, 0, 1)
    model = CountLogistic().fit(frame, bags, p)
    score = proportion_scorer(p)
    assert score(model, table, keys) == score(model, frame, bags)


def test_a_plan_of_counts_and_a_struct_are_named():
    margins = pd.DataFrame({"a": [3, 2], "b": [4, 5]})
    lazy = plan("LazyFrame", "collect")
    with pytest.raises(ValueError, match=r"groups is a LazyFrame.*groups\.collect\(\)"):
        check_margins(lazy, margins)
    with pytest.raises(
        ValueError, match=r"classes is a LazyFrame.*classes\.collect\(\)"
    ):
        check_margins(margins, lazy)
    struct = pd.DataFrame({"x": [1.0, 2.0], "pair": [[1, 2], [3, 4]]})
    struct = Frame(struct)
    struct.frame["pair"] = struct.frame["pair"].astype(object)
    with pytest.raises(ValueError, match="pair"):
        CountLogistic().fit(struct, [0, 1], [0.2, 0.8])
    pl = pytest.importorskip("polars")
    struct = pl.DataFrame({"x": [1.0, 2.0], "pair": [{"a": 1}, {"a": 2}]})
    with pytest.raises(ValueError, match="pair"):
        CountLogistic().fit(struct, [0, 1], [0.2, 0.8])


def test_a_data_set_of_arrow_is_its_fragments(tmp_path):
    pytest.importorskip("pyarrow")
    from pyarrow.dataset import dataset

    _, frame, bags, p = numbers("str")
    frame = frame.assign(bag=bags)
    for i in range(2):
        frame[bags % 2 == i].to_parquet(tmp_path / f"{i}.parquet")
    model = fit_chunks(CountLogistic(), dataset(tmp_path), p, bags="bag")
    plain = fit_chunks(CountLogistic(), [frame], p, bags="bag")
    assert_allclose(model.coef_, plain.coef_, rtol=1e-9)


# --- rows that are not read yet ----------------------------------------------------------------------------------


def plan(name, method):
    """An object of another library that would read its rows by a method."""
    return type(name, (), {method: lambda self: None})()


PLANS = {
    "LazyFrame": ("collect", r"pass {}\.collect\(\)"),
    "DuckDBPyRelation": ("fetchdf", r"pass {}\.df\(\)"),
    "RecordBatchReader": ("read_all", r"pass {}\.read_all\(\)"),
    "FileSystemDataset": ("to_table", r"pass {}\.to_table\(\)"),
    "SparkDataFrame": ("toPandas", r"pass {}\.toPandas\(\)"),
    "DaskFrame": ("__dask_graph__", r"pass {}\.compute\(\)"),
}


@pytest.mark.parametrize("name", PLANS)
def test_rows_that_are_not_read_are_refused_by_name_in_every_argument(name):
    X, _, bags, P = uneven_bags()
    method, mend = PLANS[name]
    lazy, p = plan(name, method), P[:, 1]
    calls = {
        "X": lambda: CountLogistic().fit(lazy, bags, p),
        "bags": lambda: CountLogistic().fit(X, lazy, p),
        "proportions": lambda: CountLogistic().fit(X, bags, lazy),
        "labels": lambda: MeanMap().fit(X, bags, p, labels=lazy),
        "counts": lambda: MeanMap().fit(X, bags, p, counts=lazy),
        "table": lambda: plain_table(lazy),
    }
    for argument, call in calls.items():
        words = rf"{argument} is a {name}, whose rows are not read yet: "
        with pytest.raises(ValueError, match=words + mend.format(argument)):
            call()


@pytest.mark.parametrize("name", ["LazyFrame", "DuckDBPyRelation", "SparkDataFrame"])
def test_chunks_that_are_not_read_name_what_stands_in_their_place(name):
    lazy, p = plan(name, PLANS[name][0]), [0.2, 0.8]
    for chunks, which in ((lazy, "chunks"), ([lazy], "chunk 0"), ([lambda: lazy], "chunk 0")):  # fmt: skip
        with pytest.raises(ChunkError, match=rf"{which} is a {name}.*\[lazy\.\w+\]"):
            fit_chunks(CountLogistic(), chunks, p, bags="bag")


def test_lazy_frames_of_polars_themselves():
    pl = pytest.importorskip("polars")
    table, frame, bags, p = numbers("Polars")
    lazy = table.lazy()
    with pytest.raises(ValueError, match=r"X is a LazyFrame.*X\.collect\(\)"):
        CountLogistic().fit(lazy, bags, p)
    with_bags = table.with_columns(pl.Series("bag", bags)).lazy()
    with pytest.raises(ChunkError, match=r"chunk 0 is a LazyFrame.*\[lazy\.collect\]"):
        fit_chunks(CountLogistic(), [with_bags], p, bags="bag")
    model = fit_chunks(CountLogistic(), [with_bags.collect], p, bags="bag")
    plain = fit_chunks(CountLogistic(), [frame.assign(bag=bags)], p, bags="bag")
    assert_allclose(model.coef_, plain.coef_, rtol=1e-9)


def test_what_is_no_foreign_table_is_left_alone():
    frame, array = pd.DataFrame({"a": [1]}), np.ones(2)
    assert as_frame(frame) is frame and as_frame(array) is array
