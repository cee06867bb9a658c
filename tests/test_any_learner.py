"""Losses of bags in learners of others: the code of the page `any_learner`, and what the learners make of a loss."""

import contextlib
import importlib.util
import io
import pickle
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import Newton
from scipy.special import expit
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from llpbook import (
    CountCalibration,
    FullBagKFold,
    LLPGridSearchCV,
    bag_bootstrap,
    bag_report,
    proportion_scorer,
)
from llpbook.bag_losses import (
    BagBatches,
    BagBoosting,
    BagLogistic,
    ConsistencyTerm,
    EasyLoss,
    ForwardLoss,
    LogOddsClassifier,
    NormalLoss,
    ProportionLoss,
    WithCopies,
)
from llpbook.base import predict_proportions
from llpbook.count_likelihood import CountLoss
from llpbook.datasets import random_bags

LIBRARIES = ("xgboost", "lightgbm", "torch")
PAGE = Path(__file__).resolve().parents[1] / "book" / "any_learner.md"
BLOCKS = re.findall(r"```python\n(.*?)```\n\n(?:```text\n(.*?)```)?", PAGE.read_text("utf-8"), re.S)  # fmt: skip
NUMBER = r"\d+\.\d+"
LOSSES = [CountLoss(), NormalLoss(), ProportionLoss("squares"), EasyLoss(), ForwardLoss()]  # fmt: skip


def needs(library):
    """The mark of a test that needs one of the libraries."""
    missing = importlib.util.find_spec(library) is None
    return pytest.mark.skipif(missing, reason=f"{library} is not installed")


def problem(n_bags=40, size=10, random_state=0):
    """Labels that the first two of three features tell, with noise, in random bags."""
    rng = np.random.default_rng(random_state)
    X = rng.normal(size=(n_bags * size, 3))
    y = (rng.random(len(X)) < expit(2 * X[:, 0] - X[:, 1])).astype(int)
    bags = rng.permutation(np.repeat(np.arange(n_bags), size))
    return X, y, bags, np.bincount(bags, y) / size


# --- the page --------------------------------------------------------------------------------------------------


def library_of(code):
    """The library that a block of code imports, or None."""
    imported = re.findall(r"^(?:from|import) (\w+)", code, re.M)
    found = {*imported} & {*LIBRARIES}
    assert len(found) < 2
    return found.pop() if found else None


def printed(code, namespace):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, str(PAGE), "exec"), namespace)
    return out.getvalue()


@pytest.fixture(scope="module")
def start():
    """Names after the blocks that need no library, and what these blocks print."""
    namespace = {}
    pairs = [(printed(c, namespace), o) for c, o in BLOCKS if library_of(c) is None]
    return namespace, pairs


def assert_prints(found, stated):
    assert re.sub(NUMBER, "#", found) == re.sub(NUMBER, "#", stated)
    numbers = [[float(x) for x in re.findall(NUMBER, t)] for t in (found, stated)]
    assert_allclose(*numbers, atol=0.0201)


def test_the_page_has_code_and_output_for_each_library():
    assert {library_of(code) for code, _ in BLOCKS} == {None, *LIBRARIES}
    assert all(re.search(NUMBER, output) for _, output in BLOCKS)


def test_the_page_prints_what_it_says(start):
    for found, stated in start[1]:
        assert_prints(found, stated)


def test_another_draw_of_the_bags_moves_the_second_digit(start):
    """*Over eight draws of the bags, the accuracy has a standard deviation of about 0.005.*"""
    names, found = start[0], []
    X, y = names["X"], names["y"]
    for seed in range(8):
        bags = random_bags(X, bag_size=50, random_state=seed)
        model = BagBoosting(names["loss"]).fit(X, bags, np.bincount(bags, y) / 50)
        found.append(model.score(names["X_new"], names["y_new"]))
    assert_allclose(np.std(found, ddof=1), 0.005, atol=0.003)


@pytest.mark.parametrize(
    "library", [pytest.param(x, marks=needs(x)) for x in LIBRARIES]
)
def test_the_page_prints_what_it_says_with(library, start):
    namespace = dict(start[0])
    if library == "torch":  # as tests/conftest.py does for the others
        importlib.import_module("torch").set_num_threads(1)
    for code, stated in BLOCKS:
        if library_of(code) == library:
            assert_prints(printed(code, namespace), stated)


# --- the objective, without the libraries ----------------------------------------------------------------------


def test_bags_and_scores_in_single_precision_are_those_in_double():
    X, _, bags, p = problem(n_bags=300, size=3)
    objective = CountLoss().objective(p)
    scores = X[:, 0].astype(np.float32)
    single = objective(bags.astype(np.float32), scores)
    assert_array_equal(single, objective(bags, scores.astype(float)))


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_an_objective_can_be_stored(loss):
    X, _, bags, p = problem()
    loss = loss.with_prior([1 - p.mean(), p.mean()])
    plain = loss.objective(p)
    again = pickle.loads(pickle.dumps(plain))
    assert_array_equal(again(bags, X[:, 0]), plain(bags, X[:, 0]))


@pytest.mark.parametrize("wrong", [0.5, -1, 100])
def test_wrong_bags_of_a_booster_are_named_as_the_argument_of_its_fit(wrong):
    X, _, bags, p = problem()
    with pytest.raises(ValueError, match=r"^bags .* second argument of its fit"):
        ProportionLoss().objective(p)(np.where(bags == 0, wrong, bags), X[:, 0])
    with pytest.raises(ValueError, match="scores") as said:
        ProportionLoss().objective(p)(bags, np.full(len(X), np.nan))
    assert "fit" not in str(said.value)


# --- XGBoost and LightGBM --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "library, name, start, options",
    [
        ("xgboost", "XGB", {"base_score": 0.5}, {"base_score": 0, "max_depth": 3}),
        ("lightgbm", "LGBM", {"boost_from_average": False}, {"num_leaves": 6, "verbose": -1}),
    ],
)  # fmt: skip
def test_bags_of_size_1_are_the_logistic_regression_of_a_library(
    library, name, start, options
):
    X, y, _, _ = problem()
    module = pytest.importorskip(library)
    options = {"n_estimators": 8, "learning_rate": 0.2, "n_jobs": 1} | options
    theirs = getattr(module, f"{name}Classifier")(**options | start).fit(X, y)
    objective = CountLoss().objective(y.astype(float))
    ours = getattr(module, f"{name}Regressor")(objective=objective, **options)
    ours.fit(X, np.arange(len(y)))
    raw = {"output_margin" if name == "XGB" else "raw_score": True}
    margin = theirs.predict(X, **raw)
    s = expit(margin)
    assert (s * (1 - s)).min() > 0.05  # their curvature is above the bound of ours
    assert np.ptp(margin) > 2
    assert_allclose(ours.predict(X), margin, atol=1e-4)
    again = pickle.loads(pickle.dumps(ours))  # with its objective
    assert_array_equal(again.fit(X, np.arange(len(y))).predict(X), ours.predict(X))


# --- PyTorch ---------------------------------------------------------------------------------------------------


def torch_loss(scores, bags, shares):
    """The proportion loss, written for automatic differentiation: two classes, or a column of scores per class."""
    import torch

    if scores.ndim == 1:
        scores = torch.stack([torch.zeros_like(scores), scores], dim=1)
    s, value = torch.softmax(scores, dim=1), 0.0
    for k in np.unique(bags):
        p = torch.tensor(shares[k])
        rows = torch.tensor(np.flatnonzero(bags == k))
        mean = s[rows].mean(dim=0)
        value = value + len(rows) * (torch.special.xlogy(p, p / mean)).sum()
    return value


def rows_of_shares(n_classes, random_state=0):
    X, _, bags, p = problem(n_bags=12, random_state=random_state)
    if n_classes == 2:
        return X, bags, p, np.column_stack([1 - p, p])
    rng = np.random.default_rng(random_state)
    shares = rng.dirichlet(np.ones(n_classes), len(p))
    return X, bags, shares, shares


@needs("torch")
@pytest.mark.parametrize("n_classes", [2, 3])
def test_backward_of_the_gradient_is_the_gradient_of_the_loss_in_torch(n_classes):
    import torch

    X, bags, proportions, shares = rows_of_shares(n_classes)
    torch.manual_seed(0)
    width = 1 if n_classes == 2 else n_classes
    network = torch.nn.Sequential(
        torch.nn.Linear(3, 5), torch.nn.Tanh(), torch.nn.Linear(5, width)
    ).double()

    def scores_of():
        scores = network(torch.tensor(X))
        return scores[:, 0] if n_classes == 2 else scores

    scores = scores_of()
    value, gradient, _ = ProportionLoss()(scores.detach(), bags, proportions)
    scores.backward(torch.tensor(gradient))
    ours = [w.grad.clone() for w in network.parameters()]
    network.zero_grad()
    theirs = torch_loss(scores_of(), bags, shares)
    theirs.backward()
    assert_allclose(value, theirs.item(), rtol=1e-10)
    for one, weights in zip(ours, network.parameters(), strict=True):
        assert_allclose(one, weights.grad, rtol=1e-8, atol=1e-10)


@needs("torch")
def test_the_gradient_of_consistency_is_that_of_torch():
    import torch

    X, bags, p, shares = rows_of_shares(2)
    loss = WithCopies(ProportionLoss()) + 0.3 * ConsistencyTerm()
    scores = torch.tensor(X[:, :2].T.ravel(), requires_grad=True)
    value, gradient, _ = loss(scores.detach(), np.tile(bags, 2), p)
    first, moved = scores.reshape(2, -1)
    s = torch.sigmoid(first)
    log = torch.nn.functional.logsigmoid
    divergence = s * (log(first) - log(moved)) + (1 - s) * (log(-first) - log(-moved))
    theirs = torch_loss(first, bags, shares) + 0.3 * divergence.sum()
    theirs.backward()
    assert_allclose(value, theirs.item(), rtol=1e-10)
    assert_allclose(gradient, scores.grad, rtol=1e-8, atol=1e-10)


@needs("torch")
def test_a_data_loader_gives_each_bag_whole_and_once():
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    X, _, bags, _ = problem(n_bags=11)
    data = TensorDataset(torch.tensor(X), torch.tensor(bags))
    loader = DataLoader(data, batch_sampler=BagBatches(bags, 4, random_state=0))
    batches = [numbers.numpy() for _, numbers in loader]
    assert len(batches) == len(loader) == 3
    for numbers in batches:
        assert_array_equal(np.unique(numbers, return_counts=True)[1], 10)
    assert_array_equal(np.sort(np.concatenate(batches)), np.sort(bags))


# --- a classifier of log-odds ----------------------------------------------------------------------------------


def test_a_fit_of_log_odds_minimizes_the_loss():
    X, p, *_ = problem()
    bags = np.arange(
        len(X)
    )  # of size 1, where the loss is curved enough for such steps
    model = LogOddsClassifier(Newton(n_steps=400), "proportion").fit(X, bags, p)
    best = BagLogistic("proportion", C=1e6, tol=1e-8).fit(X, bags, p)
    assert_allclose(model.decision_function(X), best.decision_function(X), atol=2e-3)
    assert_allclose(model.predict_proba(X)[:, 1], expit(model.decision_function(X)))
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.predict(X), model.predict(X))


def test_rows_of_log_odds_that_are_visibly_cells_are_refused():
    model = LogOddsClassifier(Newton(), "proportion")
    cells = np.tile([[0.0], [1.0]], (40, 1))  # each kind of row once in each bag
    with pytest.raises(ValueError, match="counts"):
        model.fit(cells, np.repeat(np.arange(40), 2), np.linspace(0.11, 0.93, 40))  # fmt: skip


def test_rounded_shares_are_restored_to_counts_before_a_fit_of_log_odds():
    X, _, bags, p = problem(n_bags=30, size=7)
    exact, rounded = (
        LogOddsClassifier(Newton(n_steps=30), "proportion").fit(X, bags, shares)
        for shares in (p, p.round(2))
    )
    assert not np.array_equal(p, p.round(2))
    assert_allclose(rounded.decision_function(X), exact.decision_function(X))


def test_log_odds_of_several_classes_and_named_bags():
    rng = np.random.default_rng(0)
    y, names = rng.integers(0, 3, 600), np.array(["a", "b", "c"])
    X = 3 * np.eye(3)[y] + rng.normal(size=(600, 3))
    order = np.argsort(np.argsort(y + rng.normal(size=600)))
    bags = np.char.add("bag ", (order // 20).astype(str))
    shares = pd.crosstab(bags, names[y], normalize="index")
    model = LogOddsClassifier(Newton(), "proportion").fit(X, bags, shares)
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert model.score(X, names[y]) > 0.85 and model.model_.num_class == 3
    predicted = model.predict_proportions(X, bags, soft=True)
    assert predicted.index.tolist() == shares.index.tolist()
    assert np.abs(predicted - shares).to_numpy().max() < 0.2
    with pytest.raises(ValueError, match="has two classes, and proportions have 3"):
        LogOddsClassifier(Newton(), "forward").fit(X, bags, shares)


def test_the_tools_take_a_classifier_of_log_odds():
    X, y, bags, p = problem()
    model = LogOddsClassifier(Newton(), "proportion")
    pipe = make_pipeline(StandardScaler(), model)
    grid = {"logoddsclassifier__model__n_steps": [1, 60]}
    search = LLPGridSearchCV(pipe, grid).fit(X, bags, p)
    assert search.best_params_ == {"logoddsclassifier__model__n_steps": 60}
    options = {"cv": FullBagKFold(3), "scoring": proportion_scorer(p)}
    theirs = GridSearchCV(model, {"model__n_steps": [1, 60]}, **options)
    theirs.fit(X, bags, groups=bags, proportions=p)
    assert theirs.best_score_ > theirs.cv_results_["mean_test_score"].min()
    assert bag_report(search, X, bags, p).table["stands_out"].sum() == 0
    sure = CountCalibration(model, n_folds=3).fit(X, bags, p)
    assert 0.3 < sure.slope_ < 1.5 and sure.score(X, y) > 0.75
    options = {"n_resamples": 3, "random_state": 0}
    drawn = bag_bootstrap(model, X, bags, p, lambda m: m.predict(X).mean(), **options)
    assert np.ptp(drawn.replicates) > 0


def test_a_trained_model_and_a_function_are_wrapped():
    X, _, bags, p = problem()
    objective = ProportionLoss().objective(p)
    booster = Newton(objective).fit(X, bags)
    wrapped = LogOddsClassifier(booster)
    by_fit = LogOddsClassifier(Newton(), "proportion").fit(X, bags, p)
    assert_array_equal(wrapped.predict(X), by_fit.predict(X))
    assert proportion_scorer(p)(wrapped, X, bags) == proportion_scorer(p)(by_fit, X, bags)  # fmt: skip
    network = LogOddsClassifier(lambda X: booster.predict(X)[:, None], classes=["no", "yes"])  # fmt: skip
    assert_array_equal(network.predict(X) == "yes", wrapped.predict(X) == 1)
    two = LogOddsClassifier(lambda X: np.column_stack([0 * X[:, 0], booster.predict(X)]))  # fmt: skip
    assert_allclose(two.predict_proba(X), wrapped.predict_proba(X))
    shares = wrapped.predict_proportions(X, bags, soft=True)
    assert_allclose(predict_proportions(two, X, bags, soft=True), shares)
    with pytest.raises(NotFittedError):
        bag_report(LogOddsClassifier(LinearRegression()), X, bags, p)


def trained(X, bags, p):
    return Newton(ProportionLoss().objective(p)).fit(X, bags)


WRONG = {
    r"Newton has no classes_.*LogOddsClassifier\(model\)": lambda X, bags, p: (
        proportion_scorer(p)(trained(X, bags, p), X, bags)
    ),
    "LinearRegression has no classes_": lambda X, bags, p: predict_proportions(
        LinearRegression().fit(X, bags), X, bags
    ),
    "LogOddsClassifier around a regressor": lambda X, bags, p: LLPGridSearchCV(
        Newton(), {}
    ).fit(X, bags, p),
    "LogOddsClassifier around a regressor of": lambda X, bags, p: CountCalibration(
        LinearRegression()
    ).fit(X, bags, p),
    "parameter objective": lambda X, bags, p: LogOddsClassifier(LinearRegression()).fit(
        X, bags, p
    ),
    "is wrapped, and not fitted": lambda X, bags, p: LogOddsClassifier(np.sum).fit(
        X, bags, p
    ),
    "LogisticRegression is a classifier": lambda X, bags, p: LogOddsClassifier(
        LogisticRegression().fit(X, bags % 2)
    ).predict(X),
    "loss must be a BagLoss or one of counts": lambda X, bags, p: LogOddsClassifier(
        Newton(), "logistic"
    ).fit(X, bags, p),
    r"shape \(n_instances, 2\).*got \(400, 3\)": lambda X, bags, p: LogOddsClassifier(
        lambda X: X
    ).predict(X),
    "bags holds 39, but proportions has no such row": lambda X, bags, p: (
        LogOddsClassifier(Newton()).fit(X, bags, p[:5])
    ),
}


@pytest.mark.parametrize("words", WRONG)
def test_wrong_uses_of_log_odds_are_named(words):
    X, _, bags, p = problem()
    with pytest.raises(ValueError, match=words):
        WRONG[words](X, bags, p)


@pytest.mark.parametrize("library, name", [("xgboost", "XGB"), ("lightgbm", "LGBM")])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_boosters_of_others_are_classifiers(library, name, n_classes):
    module = pytest.importorskip(library)
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, 600)
    X = 3 * np.eye(3)[y] + rng.normal(size=(600, 3))
    X[rng.random(X.shape) < 0.05] = np.nan  # which boosters can read
    bags = np.argsort(np.argsort(y + rng.normal(size=600))) // 20
    P = np.array([np.bincount(y[bags == k], minlength=n_classes) / 20 for k in range(30)])  # fmt: skip
    booster = getattr(module, f"{name}Regressor")(n_estimators=20, n_jobs=1)
    if library == "lightgbm":
        booster.set_params(verbose=-1)
    model = LogOddsClassifier(booster).fit(X, bags, P)
    assert model.score(X, y) > 0.75
    search = LLPGridSearchCV(model, {"model__max_depth": [2, 3]}, cv=2).fit(X, bags, P)
    assert np.isfinite(search.best_score_)
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.predict(X), model.predict(X))
