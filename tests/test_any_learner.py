"""Losses of bags in learners of others: the code of the page `any_learner`, and what the learners make of a loss."""

import contextlib
import importlib.util
import io
import pickle
import re
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit

from llpbook.bag_losses import (
    BagBatches,
    BagBoosting,
    ConsistencyTerm,
    EasyLoss,
    ForwardLoss,
    NormalLoss,
    ProportionLoss,
    WithCopies,
)
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
