"""Pipelines of any depth, and steps that take the bags for labels."""

import re
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from problems import named
from scipy.special import expit
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.cross_decomposition import PLSRegression
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import BaggingClassifier, VotingClassifier
from sklearn.feature_selection import (
    RFE,
    RFECV,
    SelectFromModel,
    SelectKBest,
    VarianceThreshold,
)
from sklearn.frozen import FrozenEstimator
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import (
    GridSearchCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
)
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler, TargetEncoder
from sklearn.utils import all_estimators

from llpbook import (
    BagMeanRegression,
    CountCalibration,
    CountLogistic,
    FullBagKFold,
    LLPGridSearchCV,
    LLPRandomizedSearchCV,
    MeanMap,
    bag_bootstrap,
    bag_report,
    coefficient_table,
    fit_chunks,
    label_worth,
    proportion_scorer,
)
from llpbook.base import LLPWarning, check_learner, flat_steps, predict_proportions
from llpbook.base._steps import label_readers
from llpbook.uncertainty import expected_accuracy


def problem(n_bags=40, size=15, d=8, seed=0):
    """The first two of ``d`` features tell the class; the bags of others differ in features that do not."""
    rng = np.random.default_rng(seed)
    bags = np.repeat(np.arange(n_bags), size)
    X = rng.normal(size=(len(bags), d))
    X[:, :2] += rng.normal(scale=0.3, size=(n_bags, 2))[bags]
    X[:, 2:] += rng.normal(scale=2.0, size=(n_bags, d - 2))[bags]
    y = (rng.random(len(bags)) < expit(3 * X[:, 0] - 3 * X[:, 1])).astype(int)
    return X, y, bags, np.bincount(bags, y) / size


# --- which transformers look at y -------------------------------------------------------------------------------

LABELS = np.random.default_rng(0).integers(0, 4, 120)
NUMBERS = np.abs(np.random.default_rng(1).normal(size=(120, 6)) + 2 * np.eye(6)[LABELS])
COLUMN = np.random.default_rng(2).integers(0, 4, 120).astype(float)
CLASSIFIERS = [("a", LogisticRegression()), ("b", LogisticRegression(C=0.1))]
REGRESSORS = [("a", Ridge()), ("b", Ridge(9))]
#: What cannot be made without an argument, or measures nothing with its defaults.
ARGUMENTS = {
    "CCA": {"n_components": 1},
    "ColumnTransformer": {"transformers": [("a", PCA(2), [0, 1, 2])]},
    "DictionaryLearning": {"n_components": 2, "max_iter": 2},
    "FeatureHasher": {"n_features": 16},
    "FeatureUnion": {"transformer_list": [("a", PCA(2))]},
    "GaussianRandomProjection": {"n_components": 2},
    "GenericUnivariateSelect": {"param": 50},
    "HashingVectorizer": {"n_features": 16},
    "MiniBatchDictionaryLearning": {"n_components": 2, "max_iter": 2},
    "PLSCanonical": {"n_components": 1},
    "PLSSVD": {"n_components": 1},
    "RFECV": {"estimator": LogisticRegression(), "cv": 2},
    "SelectKBest": {"k": 3},
    "SelectPercentile": {"percentile": 50},
    "SparseCoder": {"dictionary": np.eye(6)},
    "SparseRandomProjection": {"n_components": 2},
    "StackingClassifier": {"estimators": CLASSIFIERS},
    "StackingRegressor": {"estimators": REGRESSORS},
    "VotingClassifier": {"estimators": CLASSIFIERS},
    "VotingRegressor": {"estimators": REGRESSORS},
} | {
    name: {"estimator": Ridge()}
    for name in ("RFE", "SelectFromModel", "SequentialFeatureSelector")
}
TEXTS = [f"word w{k} w{j}" for k, j in zip(LABELS, LABELS[::-1], strict=True)]
INPUTS = {
    "DictVectorizer": [{"a": v} for v in COLUMN],
    "FeatureHasher": [{"a": v} for v in COLUMN],
    "HashingVectorizer": TEXTS,
    "IsotonicRegression": NUMBERS[:, 0],
    "KernelCenterer": NUMBERS @ NUMBERS.T,
    "TargetEncoder": COLUMN[:, None],
}
#: Of labels, of images, and without a transform of new rows: none can be a step before an estimator.
NO_STEPS = {"LabelBinarizer", "LabelEncoder", "MultiLabelBinarizer", "PatchExtractor", "TSNE"}  # fmt: skip
TRANSFORMERS = [(n, c) for n, c in all_estimators("transformer") if n not in NO_STEPS]


def measured(step, X):
    """Whether another y gives another transformation."""
    found = []
    for y in (LABELS, np.random.default_rng(3).permutation(LABELS)):
        Z = clone(step).fit(X, y).transform(X)
        found.append(Z.toarray() if hasattr(Z, "toarray") else np.asarray(Z))
    same = found[0].shape == found[1].shape and np.allclose(*found, equal_nan=True)
    return not same


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("name", "cls"), TRANSFORMERS, ids=[n for n, _ in TRANSFORMERS]
)
def test_what_looks_at_y_is_what_another_y_changes(name, cls):
    """Measured for every transformer of scikit-learn: its tags do not say it of all."""
    step = cls(**ARGUMENTS.get(name, {}))
    if "random_state" in step.get_params():
        step.set_params(random_state=0)
    looks = bool(label_readers(make_pipeline(step, CountLogistic())))
    assert looks == measured(step, INPUTS.get(name, NUMBERS))


class Elsewhere(TransformerMixin, BaseEstimator):
    """A step of another library without scikit-learn's tags: its fit needs y."""

    def fit(self, X, y):
        return self

    def transform(self, X):
        return X


class Sampler(BaseEstimator):
    """As those of imbalanced-learn, which draw rows by y."""

    def fit_resample(self, X, y):
        return X, y

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X


PREFIT = SelectFromModel(LogisticRegression().fit(NUMBERS, LABELS), prefit=True)
READERS = {
    "selectkbest": make_pipeline(SelectKBest(), CountLogistic()),
    "lineardiscriminantanalysis": make_pipeline(LinearDiscriminantAnalysis(), CountLogistic()),
    "elsewhere": make_pipeline(Elsewhere(), CountLogistic()),
    "sampler": make_pipeline(Sampler(), CountLogistic()),
    "rfecv": make_pipeline(RFECV(CountLogistic()), CountLogistic()),
    "featureunion__k": make_pipeline(FeatureUnion([("k", SelectKBest()), ("p", PCA())]), CountLogistic()),
    "c__t": make_pipeline(Pipeline([("c", ColumnTransformer([("t", TargetEncoder(), [0])]))]), CountLogistic()),
    "clf__a": Pipeline([("s", StandardScaler()), ("clf", Pipeline([("a", SelectKBest()), ("b", MeanMap())]))]),
    "featureunion__s": make_pipeline(FeatureUnion([("s", SelectFromModel(CountLogistic()))]), CountLogistic()),
    "kbest": make_pipeline(SelectFromModel(Pipeline([("kbest", SelectKBest()), ("c", CountLogistic())])), MeanMap()),
}  # fmt: skip
BY_WEIGHTS = RFE(
    make_pipeline(StandardScaler(), CountLogistic()),
    importance_getter="named_steps.countlogistic.coef_",
)
SAFE = {
    "scaler": make_pipeline(StandardScaler(), CountLogistic()),
    "variance": make_pipeline(VarianceThreshold(), CountLogistic()),
    "frozen": make_pipeline(FrozenEstimator(SelectKBest(k=3).fit(NUMBERS, LABELS)), CountLogistic()),
    "prefit": make_pipeline(PREFIT, CountLogistic()),
    "nothing": make_pipeline("passthrough", None, CountLogistic()),
    "of shares": make_pipeline(SelectFromModel(CountLogistic()), BagMeanRegression()),
    "rfe of shares": make_pipeline(BY_WEIGHTS, MeanMap()),
    "alone": MeanMap(),
}  # fmt: skip


@pytest.mark.parametrize("name", READERS)
def test_a_step_that_looks_at_y_is_found_at_any_depth(name):
    with pytest.raises(
        ValueError,
        match=rf"(?s)step '\S*{name}', .*looks at y.*SelectFromModel\(CountLogistic",
    ):
        check_learner(READERS[name])


@pytest.mark.parametrize("name", SAFE)
def test_a_step_that_does_not_look_at_the_bags_is_left_alone(name):
    check_learner(SAFE[name])


def test_searches_calibration_bootstrap_and_first_labels_refuse_such_a_step():
    from llpbook import AlterSVM

    X, _, bags, p = problem()
    pipe = make_pipeline(StandardScaler(), SelectKBest(k=3), CountLogistic())
    grid = {"selectkbest__k": [2, 3]}
    calls = [
        lambda: LLPGridSearchCV(pipe, grid).fit(X, bags, p),
        lambda: LLPRandomizedSearchCV(pipe, grid).fit(X, bags, p),
        lambda: LLPGridSearchCV(CountCalibration(pipe), {"lapse": [0.01]}, error_score="raise").fit(X, bags, p),
        lambda: CountCalibration(pipe).fit(X, bags, p),
        lambda: bag_bootstrap(pipe, X, bags, p, lambda model: model.predict(X).mean()),
        lambda: AlterSVM(init=pipe).fit(X, bags, p),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(ValueError, match=r"'selectkbest', a SelectKBest, which looks at y"):  # fmt: skip
            call()


def test_candidates_of_a_grid_are_looked_at_one_by_one():
    X, _, bags, p = problem()
    pipe = Pipeline([("select", PCA(2)), ("clf", CountLogistic())])
    with pytest.raises(ValueError, match="'select', a SelectKBest"):
        LLPGridSearchCV(pipe, {"select": [PCA(3), SelectKBest(k=3)]}).fit(X, bags, p)
    with pytest.raises(ValueError, match="'clf__selectkbest', a SelectKBest"):
        LLPGridSearchCV(pipe, {"clf": [MeanMap(), READERS["selectkbest"]]}).fit(X, bags, p)  # fmt: skip
    with pytest.raises(ValueError, match="fit of LogisticRegression takes no proport"):
        LLPGridSearchCV(pipe, [{}, {"clf": [LogisticRegression()]}]).fit(X, bags, p)
    # What the grid replaces in each of its settings is never fitted.
    pipe.set_params(select=SelectKBest())
    LLPGridSearchCV(pipe, {"select": [PCA(3), "passthrough"]}).fit(X, bags, p)


# --- fitted models that took the bags for labels -----------------------------------------------------------------


def uses(model, X, bags, p):
    """Functions of ours that see a whole model."""
    return [
        lambda: bag_report(model, X, bags, p),
        lambda: predict_proportions(model, X, bags),
        lambda: proportion_scorer(p)(model, X, bags),
        lambda: expected_accuracy(model, X),
    ]


def test_a_plain_pipeline_says_nothing_but_what_is_asked_of_it_later_does():
    X, _, bags, p = problem()
    pipe = make_pipeline(StandardScaler(), SelectKBest(k=3), CountLogistic())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pipe.fit(X, bags, countlogistic__proportions=p)
    more = [
        lambda: coefficient_table(pipe, X, bags, p),
        lambda: label_worth(X, bags, p, pipe),
    ]
    for use in uses(pipe, X, bags, p) + more:
        with pytest.warns(LLPWarning, match="'selectkbest' of the pipeline, a SelectK"):
            use()


def test_a_pipeline_that_saw_labels_is_left_alone():
    X, y, bags, p = problem()
    supervised = make_pipeline(SelectKBest(k=3), LogisticRegression()).fit(X, y)
    voting = VotingClassifier(CLASSIFIERS, voting="soft").fit(X, y)
    frozen = CalibratedClassifierCV(FrozenEstimator(CountLogistic().fit(X, bags, p)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for model in (supervised, voting, frozen.fit(X, y)):
            for use in uses(model, X, bags, p)[1:]:
                use()


def test_classes_that_are_bags_are_refused_wherever_they_are_seen():
    """`CalibratedClassifierCV` takes proportions as it is, the ensembles with scikit-learn's routing."""
    X, _, bags, p = problem()
    line = CountLogistic()
    models = [CalibratedClassifierCV(line).fit(X, bags, proportions=p)]
    with sklearn.config_context(enable_metadata_routing=True):
        routed = CountLogistic().set_fit_request(proportions=True)
        models += [
            VotingClassifier([("a", routed)]).fit(X, bags, proportions=p),
            BaggingClassifier(routed, n_estimators=2).fit(X, bags, proportions=p),
        ]  # fmt: skip
    for model in models:
        assert_array_equal(model.classes_, range(40))
        name = type(model).__name__
        words = (
            rf"model is a {name} .*CountLogistic inside of it has \[0, 1\].*CountCal"
        )
        for use in uses(model, X, bags, p):
            with pytest.raises(ValueError, match=words):
                use()
        with pytest.raises(ValueError, match="takes no proportions"):
            LLPGridSearchCV(model, {}).fit(X, bags, p)


# --- pipelines in pipelines --------------------------------------------------------------------------------------


def nested(C=0.1):
    """A pipeline whose last step is a pipeline, twice."""
    inner = Pipeline([("pca", PCA(5)), ("clf", CountLogistic(C=C))])
    return Pipeline([("pre", StandardScaler()), ("mid", Pipeline([("inner", inner)]))])


NAME = "mid__inner__clf__"


def flat(C=0.1):
    """The same steps in one pipeline."""
    return make_pipeline(StandardScaler(), PCA(5), CountLogistic(C=C))


def test_steps_are_named_as_from_outside():
    names = [step.name for step in flat_steps(nested())]
    assert names == ["pre", "mid__inner__pca", "mid__inner__clf"]
    assert [step.name for step in flat_steps(MeanMap())] == [""]


@pytest.mark.parametrize("scoring", [None, "mae"])
def test_a_search_finds_the_step_at_any_depth(scoring):
    X, y, bags, p = problem()
    words, keyed = named(bags, np.column_stack([1 - p, p]))
    labels = np.where(np.arange(len(y)) % 5 == 0, y, -1)
    found = []
    for pipe, name in ((nested(), NAME), (flat(), "countlogistic__")):
        search = LLPGridSearchCV(pipe, {name + "C": [0.001, 1]}, scoring=scoring, cv=3)
        search.fit(X, words, keyed, labels)
        assert type(search.best_estimator_) is Pipeline
        found.append(search.cv_results_["mean_test_score"])
        found.append(search.predict_proba(X)[:, 1])
    assert_allclose(found[0], found[2])
    assert_allclose(found[1], found[3])


@pytest.mark.parametrize("scoring", [None, "log_likelihood"])
def test_pipelines_and_methods_compete_in_one_grid(scoring):
    X, _, bags, p = problem()
    few = make_pipeline(PCA(3), CountLogistic())
    candidates = [BagMeanRegression(), few, nested()]
    pipe = Pipeline([("s", StandardScaler()), ("clf", MeanMap())])
    options = {"scoring": scoring, "cv": 3}
    search = LLPGridSearchCV(pipe, {"clf": candidates}, **options).fit(X, bags, p)
    scores = search.cv_results_["mean_test_score"]
    assert np.isfinite(scores).all()
    for one, score in zip(candidates, scores, strict=True):  # each as if it were alone
        alone = clone(pipe).set_params(clf=one)
        alone = LLPGridSearchCV(alone, {}, **options).fit(X, bags, p)
        assert_allclose(alone.best_score_, score)


def test_as_many_bags_as_instances_are_not_cut():
    X, y, *_ = problem()
    bags = np.arange(len(y))
    scores = [
        LLPGridSearchCV(pipe, {}, scoring="mae").fit(X, bags, y.astype(float)).best_score_
        for pipe in (nested(), flat())
    ]  # fmt: skip
    assert scores[0] == scores[1] > -0.4


def test_calibration_and_bootstrap_around_pipelines_in_pipelines():
    X, _, bags, p = problem()
    words, keyed = named(bags, np.column_stack([1 - p, p]))

    def rate(model):
        return model.predict(X).mean()

    own = pd.Series(0.02, keyed.index)
    found = []
    for pipe, name in ((nested(), NAME), (flat(), "countlogistic__")):
        model = CountCalibration(pipe, n_folds=3).fit(X, words, keyed)
        pipe = pipe.set_params(**{name + "proportion_errors": own})
        drawn = bag_bootstrap(
            pipe, X, words, keyed, rate, n_resamples=5, random_state=0
        )
        found.append((model.predict_proba(X), drawn.replicates))
    for one, other in zip(*found, strict=True):
        assert_allclose(one, other)


def test_chunks_and_tables_of_pipelines_in_pipelines():
    X, _, bags, p = problem()
    frame = pd.DataFrame(X, columns=list("abcdefgh")).assign(bag=bags)
    chunks, columns = [frame[:300], frame[300:]], list("abcdefgh")
    before = make_pipeline(PCA(5).fit(frame[columns]))
    found = []
    for pipe in (
        Pipeline([("pre", before), ("mid", make_pipeline(StandardScaler(), make_pipeline(CountLogistic())))]),
        make_pipeline(before[0], StandardScaler(), CountLogistic()),
    ):  # fmt: skip
        fit_chunks(pipe, chunks, p, bags="bag")
        table = coefficient_table(pipe, frame[columns], bags, p).table
        worth = label_worth(frame[columns], bags, p, pipe)
        rates = bag_report(pipe, frame[columns], bags, p).table
        found.append(
            (
                table,
                worth.excess_error,
                rates,
                predict_proportions(pipe, frame[columns], bags),
            )
        )
    for one, other in zip(*found, strict=True):
        assert_allclose(np.asarray(one, float), np.asarray(other, float))


def test_a_selector_that_sees_shares_is_handed_them_and_finds_the_features():
    X, y, bags, p = problem()
    chosen = SelectFromModel(CountLogistic(), max_features=2, threshold=-np.inf)
    pipe = make_pipeline(StandardScaler(), chosen, CountLogistic())
    search = LLPGridSearchCV(pipe, {"selectfrommodel__max_features": [2, 4]})
    search.fit(X, bags, p)
    best = search.best_estimator_.named_steps["selectfrommodel"].get_support()
    assert best[:2].all()
    by_bags = make_pipeline(StandardScaler(), SelectKBest(k=2), CountLogistic())
    by_bags.fit(X, bags, countlogistic__proportions=p)
    assert not by_bags[1].get_support()[:2].any()  # what the refusal is about
    assert search.score(X, y) > by_bags.score(X, y) + 0.2
    model = CountCalibration(search.best_estimator_, n_folds=3).fit(X, bags, p)
    assert model.score(X, y) > by_bags.score(X, y) + 0.2


def test_names_of_features_and_the_columns_of_a_table_reach_inner_steps():
    X, _, bags, p = problem()
    people = pd.DataFrame(X[:, :2], columns=["a", "b"]).assign(
        job=np.where(bags % 3, "cook", "clerk")
    )
    columns = make_column_transformer(
        (StandardScaler(), ["a", "b"]), (OneHotEncoder(), ["job"])
    )
    pipe = Pipeline([("columns", columns), ("clf", make_pipeline(BagMeanRegression()))])
    grid = {"clf__bagmeanregression__alpha": [1, 10]}
    search = LLPGridSearchCV(pipe, grid).fit(people, bags, p)
    assert list(search.feature_names_in_) == ["a", "b", "job"]


# --- the table of tools on the page `your_data` ------------------------------------------------------------------

PAGE = (Path(__file__).parents[1] / "book/src/your_data.md").read_text("utf-8")
TABLE = PAGE.partition("### Which tools")[2].partition("\n(sec-")[0]
ROWS = re.findall(r"(?m)^\| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", TABLE)[2:]
TOOLS = {tuple(re.findall(r"`(\w+)`", tools)): safe for tools, safe, _ in ROWS}
FREE = {"FrozenEstimator": lambda: FrozenEstimator(PCA(2))}


def answers(*answer):
    every = {**dict(all_estimators()), "PLSRegression": PLSRegression}
    return [
        pytest.param(FREE.get(name) or partial(every[name], **ARGUMENTS.get(name, {})), id=name)
        for names, safe in TOOLS.items()
        for name in names
        if safe in answer and (name in every or name in FREE)
    ]  # fmt: skip


@pytest.mark.parametrize("tool", answers("yes"))
def test_steps_that_the_page_calls_safe_pass(tool):
    check_learner(make_pipeline(tool(), CountLogistic()))


@pytest.mark.parametrize("tool", answers("no"))
def test_tools_that_the_page_calls_unsafe_are_refused(tool):
    X, _, bags, p = problem()
    model = tool()
    if hasattr(model, "transform") and not hasattr(model, "estimators"):
        model = make_pipeline(model, CountLogistic())
    words = r"SelectFromModel\(CountLogistic\(\)\)|takes no proportions"
    with pytest.raises(ValueError, match=words):
        LLPGridSearchCV(model, {}).fit(X, bags, p)


@pytest.mark.parametrize("gap", [1, 2])
def test_probabilities_of_bags_that_scikit_learn_numbers_anew(gap):
    X, _, bags, p = problem()
    county, shares = gap * bags, pd.Series(p, gap * np.arange(len(p)))
    how = next(how for names, (*_, how) in zip(TOOLS, ROWS, strict=True) if "cross_val_predict" in names)  # fmt: skip
    line = re.search(r"`(shares\[[^`]*)`", how)[1]
    names_of_page = {"np": np, "shares": shares, "county": county}

    def predicted(values):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # scikit-learn expects a class per bag
            return cross_val_predict(
                CountLogistic(), X, county, groups=county, cv=FullBagKFold(5),
                params={"proportions": values}, method="predict_proba",
            )[:, :2]  # fmt: skip

    right = np.empty((len(X), 2))
    for train, test in FullBagKFold(5).split(X, groups=county):
        model = CountLogistic().fit(X[train], county[train], shares)
        right[test] = model.predict_proba(X[test])
    assert_allclose(predicted(eval(line, names_of_page)), right)
    by_number = shares.reindex(range(gap * len(shares)), fill_value=0.5).to_numpy()
    assert np.allclose(predicted(by_number), right) == (
        gap == 1
    )  # why the page says so


def test_the_lines_of_the_page_score_by_proportions():
    """The arguments as the page has them, under its names."""
    X, y, county, shares = problem()
    pipe = Pipeline([("columns", StandardScaler()), ("clf", CountLogistic())])
    called = {
        name: line
        for names, (*_, how) in zip(TOOLS, ROWS, strict=True)
        for line in re.findall(r"`(groups=[^`]+|scoring=[^`]+)`", how)
        for name in names
    }
    assert len(called) == 6
    tools = {"FullBagKFold": FullBagKFold, "proportion_scorer": proportion_scorer}
    names = {"county": county, "shares": shares, **tools}
    options = {name: eval(f"dict({line})", names) for name, line in called.items()}
    scores = cross_val_score(pipe, X, county, **options["cross_val_score"])
    assert -0.2 < scores.mean() < 0
    both = cross_validate(pipe, X, county, **options["cross_validate"])
    assert_allclose(both["test_score"], scores)
    curve = learning_curve(pipe, X, county, **options["learning_curve"])[2]
    assert curve[-1].mean() == pytest.approx(scores.mean())
    options["GridSearchCV"].pop("params")
    groups = options["GridSearchCV"].pop("groups")
    search = GridSearchCV(pipe, {"clf__C": [0.1]}, **options["GridSearchCV"])
    search.fit(X, county, groups=groups, clf__proportions=shares)
    assert search.best_score_ == pytest.approx(scores.mean())
    with_shares = {"params": {"clf__proportions": shares}}
    out = cross_val_predict(pipe, X, county, **options["cross_val_predict"], **with_shares)  # fmt: skip
    assert np.mean(out == y) > 0.75
    drop = permutation_importance(search, X, county, **options["permutation_importance"], random_state=0)  # fmt: skip
    assert drop.importances_mean[:2].min() > drop.importances_mean[2:].max()
