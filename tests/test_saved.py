"""A saved model is arrays and builtins: it loads under another version of pandas, and where pyarrow is missing."""

import datetime
import io
import pickle
import pickletools
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from problems import gaussian_bags, named, uneven_bags
from sklearn.base import BaseEstimator
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from test_contract import ESTIMATORS, make, problem

from llpbook import (
    AlterSVM,
    BagMeanRegression,
    CountLogistic,
    KDEDifference,
    LLPGridSearchCV,
    LLPWarning,
    MeanMap,
    proportion_scorer,
)

pytestmark = pytest.mark.filterwarnings("ignore:.* bags into two samples")
PLAIN = (
    type(None), bool, int, float, complex, str, bytes, datetime.date,
    np.generic, np.dtype, np.random.Generator, np.random.RandomState,
)  # fmt: skip


def others(value, path="", seen=None):
    """Paths and types of what is no array, no builtin, no estimator of scikit-learn, and no object of llpbook."""
    seen = set() if seen is None else seen
    if isinstance(value, PLAIN) or sp.issparse(value) or id(value) in seen:
        return
    seen.add(id(value))
    parts = vars(value) if hasattr(value, "__dict__") else {}
    module, kind = type(value).__module__, type(value)
    if kind is np.ndarray:
        parts = dict(enumerate(value.ravel())) if value.dtype == object else {}
    elif isinstance(value, list | tuple | set | frozenset):
        parts = dict(enumerate(value))
    elif kind is dict:
        parts = {("key", k): k for k in value} | value
    elif not module.startswith(("sklearn.", "llpbook.")):
        yield path, f"{module}.{kind.__name__}"
        return
    for name, part in parts.items():
        yield from others(part, f"{path}.{name}", seen)


def modules_in(model):
    """The modules of pandas and pyarrow that a pickle asks for."""
    code = pickletools.genops(pickle.dumps(model))
    texts = {text for _, text, _ in code if isinstance(text, str)}
    return {t for t in texts if t.split(".")[0] in ("pandas", "pyarrow", "polars")}


def options(cls):
    return [{}, {"kernel": "rbf"}] if "kernel" in cls().get_params() else [{}]


def by_name(seed=0):
    """A table with names of columns, and shares keyed by names of bags."""
    X, _, bags, P = problem()
    names, keyed = named(bags, P, ["no", "yes"])
    return pd.DataFrame(X, columns=["age", "bmi", "dose"]), names, keyed


@pytest.mark.parametrize("cls", ESTIMATORS, ids=lambda cls: cls.__name__)
def test_a_fitted_model_is_arrays_and_builtins(cls):
    X, names, keyed = by_name()
    for option in options(cls):
        model = make(cls).set_params(**option).fit(X, names, keyed)
        assert list(others(model)) == []
        assert modules_in(model) == set()
        again = pickle.loads(pickle.dumps(model))
        assert_array_equal(again.predict(X), model.predict(X))
        assert_array_equal(again.bag_labels_, keyed.index)
        one, other = (m.predict_proportions(X, names) for m in (model, again))
        pd.testing.assert_frame_equal(one, other)


def test_a_model_saved_by_another_version_warns(monkeypatch):
    X, names, keyed = by_name()
    model = CountLogistic().fit(X, names, keyed)
    file, state = pickle.dumps(make_pipeline(model)), model.__getstate__()
    again = pickle.loads(file)[0]  # by the same version, without a warning
    assert set(vars(again)) == set(vars(model))
    old = state.pop("_llpbook_version")
    monkeypatch.setattr("llpbook.base._estimator.__version__", "99.0")
    for load, saved in (
        (lambda: pickle.loads(file), old),
        (lambda: CountLogistic().__setstate__(state), "before 0.1"),
    ):
        words = f"CountLogistic was saved by llpbook {saved}, and this is llpbook 99.0"
        with pytest.warns(LLPWarning, match=words):
            load()


@pytest.mark.parametrize("cls", ESTIMATORS, ids=lambda cls: cls.__name__)
def test_skops_saves_every_model(cls):
    skops = pytest.importorskip("skops.io")
    X, names, keyed = by_name()
    for option in options(cls):
        model = make(cls).set_params(**option).fit(X, names, keyed)
        saved = skops.dumps(model)
        kinds = skops.get_untrusted_types(data=saved)
        own = [kind for kind in kinds if not kind.startswith("llpbook.")]
        # What a booster of scikit-learn itself asks for.
        trees = "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor"
        assert own == [trees] * hasattr(model, "trees_")
        again = skops.loads(saved, trusted=kinds)
        assert_array_equal(again.predict(X), model.predict(X))
        pd.testing.assert_frame_equal(*(m.predict_proportions(X, names) for m in (model, again)))  # fmt: skip


KEYS = {
    "text": [f"ward {k}" for k in range(20)],
    "numbers": range(100, 120),
    "Int64": pd.array(range(100, 120), dtype="Int64"),
    "float": np.arange(20) / 2,
    "string": pd.array([f"ward {k}" for k in range(20)], dtype="string"),
    "category": pd.Categorical([f"ward {k}" for k in range(20)]),
    "pairs": [("north", k) for k in range(20)],
    "days": pd.date_range("2020-01-01", periods=20),
    "hours elsewhere": pd.date_range("2020-01-01", periods=20, freq="h", tz="Asia/Tokyo"),
    "dates": [datetime.date(2020, 1, k + 1) for k in range(20)],
    "bytes": [b"%d" % k for k in range(20)],
}  # fmt: skip


@pytest.mark.parametrize("kind", KEYS)
def test_names_of_bags_of_any_type(kind):
    X, _, bags, P = problem()
    keys = KEYS[kind]
    index = pd.MultiIndex.from_tuples(keys) if kind == "pairs" else pd.Index(keys)
    shares = pd.Series(P[:, 1], index)
    names = [list(keys)[k] for k in bags]
    model = CountLogistic(bag_deviation="estimate").fit(X, names, shares)
    assert list(others(model)) == [] and modules_in(model) == set()
    again = pickle.loads(pickle.dumps(model))
    assert type(again.bag_labels_) is np.ndarray
    by_bag = again.predict_proportions(X, names)
    assert by_bag.index.tolist() == index.to_flat_index().tolist()
    # The intercepts of the bags of the fit are found by their names.
    assert_array_equal(again.decision_function(X, names), model.decision_function(X, names))  # fmt: skip
    assert np.ptp((model.decision_function(X, names) - model.decision_function(X))[bags == 3]) < 1e-12  # fmt: skip


def test_states_of_every_kind_are_plain():
    """Several classes, known labels, cells, intercepts of bags, tables of tuning."""
    X, names, keyed = by_name()
    X3, _, bags3, P3 = gaussian_bags(n=150, d=2, n_classes=3, seed=3, apart=4)
    three = pd.DataFrame(P3, columns=pd.Index(["low", "mid", "high"]))
    words = np.array(["no", "yes"], dtype=object)[problem()[1]]
    labels = np.where(np.arange(120) % 3 == 0, words, -1)
    models = [
        MeanMap().fit(X3, bags3, three),
        BagMeanRegression().fit(X3, bags3, three),
        MeanMap().fit(X, names, keyed, labels),
        CountLogistic().fit(X, names, keyed, counts=pd.Series([2] * 120)),
        CountLogistic(bag_deviation=0.3).fit(X, names, keyed),
        AlterSVM(n_init=2, random_state=0).fit(X, names, keyed),
        KDEDifference().fit(X, names, keyed),
    ]
    for model in models:
        assert list(others(model)) == [] and modules_in(model) == set()
        again = pickle.loads(pickle.dumps(model))
        for table in ("cv_results_", "starts_"):
            assert hasattr(again, table) == hasattr(model, table) == (table in vars(model))  # fmt: skip
            if hasattr(model, table):
                assert isinstance(getattr(again, table), pd.DataFrame)
                pd.testing.assert_frame_equal(*(getattr(m, table) for m in (again, model)))  # fmt: skip


def test_parameters_with_keys_are_saved_as_dicts_and_fit_the_same():
    X, names, keyed = by_name()
    errors = pd.Series(np.linspace(0.01, 0.05, 20), keyed.index[::-1])
    model = CountLogistic(proportion_errors=errors).fit(X, names, keyed)
    assert model.proportion_errors is errors  # as the user gave it, until it is saved
    assert modules_in(model) == set()
    again = pickle.loads(pickle.dumps(model))
    assert again.proportion_errors == errors.to_dict()
    before = again.coef_.copy()
    assert_array_equal(again.fit(X, names, keyed).coef_, before)
    weights = pd.array(np.arange(1, 21), dtype="Int64")
    model = MeanMap(bag_weights=weights).fit(X, names, keyed)
    assert modules_in(model) == set()
    assert_array_equal(pickle.loads(pickle.dumps(model)).bag_weights, np.arange(1, 21))


def people():
    """Text, categories, numbers with gaps; the pipeline of README.md."""
    rng = np.random.default_rng(0)
    job = np.repeat(["clerk", "cook", "nurse", "smith"], 50)
    age = rng.normal(size=200) + np.repeat([-1, -0.5, 0.5, 1], 50)
    table = pd.DataFrame({"age": np.where(age > 2, np.nan, age)})
    table["sex"] = pd.Categorical(rng.choice(["f", "m"], 200))
    table["town"] = rng.choice(["Bern", "Rome"], 200)
    rich = pd.Series(age + rng.normal(size=200) > 0)
    job = pd.Series(job)
    columns = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), make_column_selector(dtype_include="number")),
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")),
    )  # fmt: skip
    return table, job, rich.groupby(job).mean(), make_pipeline(columns, CountLogistic())


def test_pipelines_and_searches_are_saved_without_pandas():
    table, job, shares, pipe = people()
    grid, of_two = {"countlogistic__C": [0.1, 1]}, pd.DataFrame({"poor": 1 - shares, "rich": shares})  # fmt: skip
    assert modules_in(pipe.fit(table, job, countlogistic__proportions=shares)) == set()
    for proportions in (shares, of_two):
        scorers = [None, proportion_scorer(proportions, error="mae")]
        for scoring in scorers:
            search = LLPGridSearchCV(pipe, grid, scoring=scoring, cv=2)
            search.fit(table, job, proportions)
            assert modules_in(search) == set()
            file = io.BytesIO()
            joblib.dump(search, file)
            file.seek(0)
            again = joblib.load(file)
            assert_allclose(again.predict_proba(table), search.predict_proba(table))
            scores = [m.scorer_(m.best_estimator_, table, job) for m in (again, search)]
            assert scores[0] == scores[1]


def test_a_scorer_keeps_the_names_and_the_order_of_its_classes():
    X, names, keyed = by_name()
    model = MeanMap().fit(X, names, keyed)
    turned = proportion_scorer(keyed[["yes", "no"]])
    again = pickle.loads(pickle.dumps(turned))
    assert again(model, X, names) == turned(model, X, names)
    assert list(again.proportions.columns) == ["yes", "no"]
    pairs = pd.DataFrame(keyed.to_numpy(), pd.MultiIndex.from_product([["a"], keyed.index]), keyed.columns)  # fmt: skip
    scorer = pickle.loads(pickle.dumps(proportion_scorer(pairs)))
    of_pairs = [("a", name) for name in names]
    assert scorer(model, X, of_pairs) == turned(model, X, names)


def test_what_the_walk_finds():
    """The test of the tests: it sees an index, a frame in a list, and a key."""

    class Holder(BaseEstimator):
        __module__ = "llpbook.fake"

    model = Holder()
    model.a_ = [pd.Series([1.0])]
    model.b_ = np.array([pd.Period("2020-01")], dtype=object)
    model.c_ = {pd.Timedelta(1, "D").to_timedelta64(): {"x": pd.Index(["a"])}}
    assert len(list(others(model))) == 3
    assert modules_in(pd.Index(["a"])) and not modules_in(np.array(["a"]))


@pytest.mark.parametrize("cls", [MeanMap, BagMeanRegression])
def test_a_fit_that_fails_leaves_the_tables_alone(cls):
    X, _, bags, P = uneven_bags()
    model = cls()
    with pytest.raises(AttributeError, match="cv_results_"):
        len(model.cv_results_)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, bags, P)
    assert not hasattr(model, "cv_results_")
