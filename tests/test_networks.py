"""Networks on bags against slow and obvious versions in NumPy; but for two, the tests need PyTorch."""

import subprocess
import sys
from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import gaussian_bags, uneven_bags
from scipy.special import expit, log_softmax, softmax
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from llpbook import BagNetwork, LLPGridSearchCV, MeanMap, networks
from llpbook._linear import bag_counts
from llpbook.bag_losses import (
    LOSSES,
    CountLoss,
    EasyLoss,
    ForwardLoss,
    ProportionLoss,
    adversarial_shift,
)
from llpbook.base import LLPWarning, read_bags
from llpbook.networks import _training
from llpbook.proportions import label_proportions

# --- without PyTorch -------------------------------------------------------------------------------------------------


def test_the_room_imports_without_torch_and_a_fit_says_what_is_missing():
    code = (
        "import sys\n"
        "class Blocked:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'torch': raise ImportError(name)\n"
        "sys.meta_path.insert(0, Blocked())\n"
        "from llpbook import BagNetwork, all_estimators\n"
        "assert 'BagNetwork' not in dict(all_estimators())\n"
        "try: BagNetwork().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1], [0.0, 1.0])\n"
        "except ImportError as error: print(error)"
    )
    alone = [sys.executable, "-c", code]
    done = subprocess.run(alone, capture_output=True, text=True, check=True)
    assert "pip install torch" in done.stdout


@pytest.mark.equation("eq-networks-mix")
@pytest.mark.parametrize("drawn", [1, 2, 4, 5])
def test_the_count_of_drawn_instances_over_all_drawings(drawn):
    labels = np.eye(3)[[0, 0, 1, 2, 2]]
    every = [labels[list(rows)].sum(axis=0) for rows in combinations(range(5), drawn)]
    mean, covariance = networks.count_of_drawn(5, labels.mean(axis=0), drawn)
    assert_allclose(mean, np.mean(every, axis=0))
    assert_allclose(covariance, np.cov(np.transpose(every), ddof=0), atol=1e-12)


def observed_of(bags, shares):
    return bag_counts(np.asarray(bags), np.asarray(shares, dtype=float))


def test_a_mixed_bag_has_the_expected_count_of_its_parts():
    sizes = np.array([6, 9, 4])
    bags, p = np.repeat(np.arange(3), sizes), np.array([1 / 6, 1 / 3, 3 / 4])
    observed = observed_of(bags, np.column_stack([1 - p, p]))
    random, mixed = np.random.RandomState(0), 0
    for _ in range(40):
        rows, some = networks.mix_some(observed, np.array([0, 2]), random)
        assert_array_equal(np.bincount(some.bags), some.sizes)
        for bag, own in enumerate((0, 2)):
            members = rows[some.bags == bag]
            assert len(set(members)) == len(members) and own in bags[members]
            drawn = np.bincount(bags[members], minlength=3)
            # The parts of the two bags sum to 1, but for rounding; at least one instance is of each.
            assert (drawn / sizes).sum() == pytest.approx(1, abs=0.25)
            # One bag is drawn whole, or two are drawn in part; a mean of counts is known, and its variance.
            assert some.counts[bag] == pytest.approx(drawn @ p)
            left = drawn * (sizes - drawn) / (sizes - 1)
            assert some.errors[bag] == pytest.approx(left @ (p * (1 - p)))
            mixed += (drawn > 0).sum() == 2
    assert 25 < mixed < 55


def test_mixtures_are_drawn_by_the_generator_that_is_given():
    observed = observed_of(np.repeat([0, 1], 9), [[0.5, 0.5], [0.2, 0.8]])
    first, again = (
        networks.mix_some(observed, np.arange(2), np.random.RandomState(3))[0]
        for _ in range(2)
    )
    assert_array_equal(first, again)


def test_batches_are_whole_bags_and_each_bag_is_in_one():
    sizes = np.array([3, 50, 10, 1, 1, 7, 20])
    for seed in range(5):
        found = networks.draw_batches(sizes, 10, np.random.RandomState(seed))
        assert_array_equal(np.sort(np.concatenate(found)), np.arange(7))
        order, wanted, before = np.random.RandomState(seed).permutation(7), {}, 0
        for bag in order:  # by its first instance, where a batch has ten
            wanted.setdefault(before // 10, []).append(bag)
            before += sizes[bag]
        for bags, own in zip(found, wanted.values(), strict=True):
            assert_array_equal(bags, np.sort(own))


# --- with PyTorch ----------------------------------------------------------------------------------------------------

try:
    import torch
except ImportError:
    torch = None
needs_torch = pytest.mark.skipif(
    torch is None, reason="needs PyTorch: `make networks`, see CONTRIBUTING.md"
)


def double(values):
    return torch.tensor(np.asarray(values), dtype=torch.float64)


def two_layers(n_classes, seed=0):
    """A smooth network of two layers in double precision, with and without PyTorch, and ten instances."""
    rng = np.random.default_rng(seed)
    A, B = rng.normal(size=(3, 5)), rng.normal(size=(5, n_classes))
    X = rng.normal(size=(10, 3))
    B = B[:, 0] if n_classes == 1 else B
    return (
        lambda Z: torch.tanh(Z @ double(A)) @ double(B),
        lambda Z: np.tanh(Z @ A) @ B,
        X,
    )


def divergence(scores, moved):
    """KL of the predictions, in NumPy, per instance."""
    if scores.ndim == 1:
        scores, moved = (np.column_stack([0 * f, f]) for f in (scores, moved))
    terms = log_softmax(scores, axis=1) - log_softmax(moved, axis=1)
    return (softmax(scores, axis=1) * terms).sum(axis=1)


@needs_torch
@pytest.mark.equation("eq-networks-consistency")
@pytest.mark.parametrize("n_columns", [1, 3])
def test_the_consistency_is_a_divergence_from_predictions_held_fixed(n_columns):
    network, slow, X = two_layers(n_columns)
    moved = X + np.random.default_rng(1).normal(size=X.shape)
    found = networks.divergence(network(double(X)), network(double(moved)))
    assert found.item() == pytest.approx(divergence(slow(X), slow(moved)).mean())
    scale = torch.ones((), dtype=torch.float64, requires_grad=True)
    torch.manual_seed(0)
    loss = networks.consistency_loss(lambda Z: scale * network(Z), double(X), 0.3)
    [slope] = torch.autograd.grad(loss, scale)
    torch.manual_seed(0)
    shift = networks.worst_shift(network, double(X), 0.3).numpy()
    sides = [
        divergence(slow(X), (1 + h) * slow(X + shift)).mean() for h in (-1e-5, 1e-5)
    ]
    assert slope.item() == pytest.approx((sides[1] - sides[0]) / 2e-5, rel=1e-5)


@needs_torch
@pytest.mark.equation("eq-networks-shift")
def test_the_worst_shift_is_along_the_gradient_of_the_log_odds():
    network, slow, X = two_layers(1)
    shift = networks.worst_shift(network, double(X), 0.3).numpy()
    assert_allclose(np.linalg.norm(shift, axis=1), 0.3)
    along = adversarial_shift(slow, X, radius=0.3)
    cosines = np.sum(shift * along, axis=1) / 0.3**2
    assert (np.abs(cosines) > 0.999).all()


@needs_torch
def test_the_worst_shift_of_several_classes_beats_random_ones():
    network, slow, X = two_layers(3)
    rng = np.random.default_rng(0)
    found = divergence(
        slow(X), slow(X + networks.worst_shift(network, double(X), 0.01).numpy())
    )
    others = []
    for _ in range(200):
        shift = rng.normal(size=X.shape)
        shift *= 0.01 / np.linalg.norm(shift, axis=1, keepdims=True)
        others.append(divergence(slow(X), slow(X + shift)))
    # One step of power iteration from a random direction: not always the worst, but far worse than a random one.
    assert (found > np.median(others, axis=0)).all()
    assert found.mean() > 0.8 * np.max(others, axis=0).mean()


@needs_torch
@pytest.mark.parametrize("name", LOSSES)
def test_torch_differentiates_every_loss_of_bags(name):
    _, _, bags, P = uneven_bags(n=60, size=6)
    scores, loss = np.random.default_rng(0).normal(size=60), LOSSES[name]
    f = torch.tensor(scores, requires_grad=True)
    value = networks.bag_loss(f, loss, observed_of(bags, P))
    wanted, gradient, _ = loss(scores, bags, P)
    assert value.item() == pytest.approx(wanted)
    (3 * value).backward()
    assert_allclose(f.grad.numpy(), 3 * gradient)


@needs_torch
def test_the_forward_loss_is_that_of_llpfc():
    """Zhang et al.: multiply the prediction by the matrix of P(bag | class), weighed, and take the loss of the bag."""
    sizes, p = np.array([8, 5]), np.array([0.75, 0.2])
    bags, prior = np.repeat([0, 1], sizes), sizes @ p / 13
    scores = np.random.default_rng(0).normal(size=13)
    f = double(scores).requires_grad_()
    shares = np.column_stack([1 - p, p])
    joint = shares * (sizes / 13)[:, None]
    matrix = joint / joint.sum(axis=0)  # P(bag | class) in the mixture of the two bags
    positive = torch.sigmoid(f)
    chances = torch.stack([1 - positive, positive], dim=1) @ double(matrix).T
    slow = -torch.log(chances[np.arange(13), bags]).sum()
    loss = ForwardLoss(prior=(1 - prior, prior))
    found = networks.bag_loss(f, loss, observed_of(bags, shares))
    assert found.item() == pytest.approx(slow.item())
    gradients = [torch.autograd.grad(value, f)[0].numpy() for value in (found, slow)]
    assert_allclose(*gradients, atol=1e-12)


def adam_by_hand(w, gradients, rate):
    """Weights after steps of Adam; ``gradients`` yields functions of the weights."""
    mean, square = np.zeros_like(w), np.zeros_like(w)
    for t, gradient in enumerate(gradients, start=1):
        g = gradient(w)
        mean, square = 0.9 * mean + 0.1 * g, 0.999 * square + 0.001 * g**2
        size = np.sqrt(square / (1 - 0.999**t)) + 1e-8
        w = w - rate * mean / (1 - 0.9**t) / size
    return w


@needs_torch
@pytest.mark.parametrize("name", ["proportion", "easy", "vat"])
def test_the_training_is_adam_on_batches_of_whole_bags(name, monkeypatch):
    X, _, bags, P = uneven_bags(n=60, size=12)  # five bags, of which none is held out
    options = {"hidden": (), "alpha": 0.05, "max_iter": 3, "batch_size": 20}
    weight = np.zeros(3)
    if name == "vat":
        # A stand-in whose gradient is 1 shows its weight in each epoch.
        name, options["consistency"], rise = "proportion", "vat", [1 / 1.2, 1, 1]
        weight = 0.05 * np.exp(-5 * (1 - np.array(rise)) ** 2)
        stand_in = lambda network, X, radius: network(torch.ones(1, 3))[0]  # noqa: E731
        monkeypatch.setattr(_training, "consistency_loss", stand_in)
    model = BagNetwork(name, **options, random_state=0)
    random = np.random.RandomState(0)
    with networks.seeded(random.randint(2**31 - 1), "cpu"):
        first = [*networks.multilayer(3, 1, ()).parameters()]
    start = np.append(*(part.detach().numpy().astype(float).ravel() for part in first))
    prior = (P.mean(axis=0)[0], P.mean(axis=0)[1])
    loss = {"proportion": ProportionLoss(), "easy": EasyLoss(prior)}[name]
    X, observed = networks.in_canonical_order(read_bags(X, bags, P), loss)

    def gradients():
        for epoch in range(3):
            for batch in networks.draw_batches(observed.sizes, 20, random):
                rows = np.isin(observed.bags, batch)
                Z = np.column_stack([X, np.ones(60)])[rows]

                def gradient(w, Z=Z, own=observed.bags[rows], more=weight[epoch]):
                    slope = loss(Z @ w, own, observed.shares)[1]
                    return Z.T @ slope / len(Z) + options["alpha"] * w + more

                yield gradient

    wanted = adam_by_hand(start, gradients(), model.learning_rate)
    model.fit(X, observed.bags, observed.shares)
    assert model.n_iter_ == 3  # the loss of all bags has fallen
    found = np.append(*(a.ravel() for a in model.weights_.values()))
    assert_allclose(found, wanted, atol=1e-5)


@needs_torch
def test_the_best_epoch_of_the_bags_held_out_is_kept(monkeypatch):
    X, _, bags, P = gaussian_bags(n=240, size=6, apart=0.8)
    one_epoch, trained_on = _training.one_epoch, []

    def spy(model, network, adam, seen, random, epoch):
        trained_on.append(seen)
        one_epoch(model, network, adam, seen, random, epoch)

    monkeypatch.setattr(_training, "one_epoch", spy)
    model = BagNetwork(max_iter=60, random_state=0).fit(X, bags, P)
    history = model.validation_loss_
    assert model.n_iter_ == np.argmin(history) < len(history) - 1
    assert history[model.n_iter_] < history[0]
    assert len(history) - 1 == len(trained_on) == model.n_iter_ + 30 < 60
    held_out = networks.held_out_bags(
        observed_of(bags, P), X, model.validation_fraction
    )
    rows = held_out[bags]
    found = np.sort(trained_on[0].X.numpy(), axis=0)
    assert_allclose(found, np.sort(X[~rows], axis=0), rtol=1e-6)


@needs_torch
@pytest.mark.parametrize("name", ["counts", "easy", "forward"])
def test_an_epoch_is_judged_without_drop_out_and_by_shares(name):
    X, _, bags, P = gaussian_bags(n=240, size=6, apart=2)
    model = BagNetwork(name, module=own_module, max_iter=5, random_state=0)
    model.fit(X, bags, P)
    held_out = networks.held_out_bags(observed_of(bags, P), X, 0.1)
    rows, judge = held_out[bags], CountLoss() if name == "counts" else ProportionLoss()
    value, _, _ = judge(model.decision_function(X)[rows], bags[rows], P)
    found = model.validation_loss_[model.n_iter_]
    assert found == pytest.approx(value / held_out.sum(), rel=1e-4)


@needs_torch
@pytest.mark.parametrize("n_classes", [2, 3])
def test_bags_of_one_are_supervised_learning(n_classes):
    X, y, _, _ = gaussian_bags(n=300, n_classes=n_classes, apart=4, seed=1)
    shares = np.eye(n_classes)[y]
    model = BagNetwork("counts", max_iter=40, random_state=0)
    assert model.fit(X, np.arange(300), shares).score(X, y) > 0.97
    assert model.predict_proba(X).shape == (300, n_classes)


@needs_torch
def test_a_network_bends_where_a_line_cannot():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    y = (np.linalg.norm(X, axis=1) > 1.2).astype(int)
    bags = np.argsort(np.argsort(y + rng.normal(size=600))) // 10
    P = np.bincount(bags, y) / 10
    model = BagNetwork(random_state=0).fit(X, bags, P)
    assert MeanMap().fit(X, bags, P).score(X, y) < 0.75 < 0.9 < model.score(X, y)


@needs_torch
def test_a_mixed_bag_within_its_interval_has_no_gradient():
    observed = observed_of(np.repeat([0, 1], 10), [[0.5, 0.5], [0.1, 0.9]])
    noisy = observed.__class__(
        observed.bags, observed.sizes, observed.counts, np.array([4.0, 4.0])
    )
    f = torch.zeros(20, dtype=torch.float64, requires_grad=True)
    assert_array_equal(networks.is_sure(np.zeros(20), observed), [False, False])
    assert_array_equal(networks.is_sure(np.zeros(20), noisy), [True, True])
    low = (
        f - 4.0
    )  # shares of 0.02: five counts too low in the first bag, nine in the second
    networks.bag_loss(low, ProportionLoss(), noisy).backward()
    assert (f.grad.numpy()[:10] == 0).all() == (5 - 10 * expit(-4) < 2 * 2.576)
    assert (f.grad.numpy()[10:] < 0).all()
    f.grad = None  # the likelihood knows the errors, and takes the bag as it is
    networks.bag_loss(low, CountLoss(), noisy).backward()
    assert (f.grad.numpy()[:10] < 0).all()


@needs_torch
@pytest.mark.parametrize("loss", ["easy", "forward"])
def test_mixed_bags_are_refused_where_bags_are_compared(loss):
    X, _, bags, P = uneven_bags()
    with pytest.raises(ValueError, match="mix_bags=True needs a loss that compares"):
        BagNetwork(loss, mix_bags=True).fit(X, bags, P)


@needs_torch
def test_the_generator_of_torch_is_left_alone():
    X, _, bags, P = uneven_bags()
    before = torch.get_rng_state()
    model = BagNetwork(max_iter=2, consistency="vat", random_state=0).fit(X, bags, P)
    model.predict(X)
    assert_array_equal(torch.get_rng_state(), before)


def own_module(n_features, n_scores):
    return torch.nn.Sequential(
        torch.nn.Linear(n_features, 9),
        torch.nn.Dropout(0.2),
        torch.nn.Tanh(),
        torch.nn.Linear(9, n_scores),
    )


@needs_torch
def test_a_module_of_ones_own():
    X, y, bags, P = uneven_bags(apart=2.5)
    model = BagNetwork(module=own_module, random_state=0)
    model.fit(X, bags, P)
    assert model.score(X, y) > 0.9
    assert model.weights_["0.weight"].shape == (9, 3)
    again = clone(model).fit(X, bags, P)  # drop-out is drawn by random_state
    assert_array_equal(again.decision_function(X), model.decision_function(X))
    wrong = BagNetwork(module=lambda n, _: torch.nn.Linear(n, 2))
    with pytest.raises(ValueError, match=r"module must return scores .*got \(1, 2\)"):
        wrong.fit(X, bags, P)


@needs_torch
def test_pipelines_and_searches():
    X, y, bags, P = uneven_bags(apart=2.5)
    pipe = make_pipeline(StandardScaler(), BagNetwork(max_iter=20, random_state=0))
    search = LLPGridSearchCV(pipe, {"bagnetwork__hidden": [(4,), (32,)]}, cv=2)
    assert search.fit(X, bags, P).best_estimator_.score(X, y) > 0.9


@needs_torch
@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"hidden": (0,)}, "hidden must be a whole number from 1, got 0"),
        ({"device": "no such"}, "device must be one that PyTorch has here"),
        ({"learning_rate": 1e30}, "diverges: take a smaller learning_rate"),
    ],
    ids=str,
)
def test_what_cannot_be_trained_is_refused(more, message):
    X, _, bags, P = uneven_bags()
    with pytest.raises(ValueError, match=message):
        BagNetwork(**more, random_state=0).fit(X, bags, P)


@needs_torch
def test_a_refit_is_a_first_fit_and_the_order_of_rows_does_not_act():
    X, _, bags, P = uneven_bags()
    model = BagNetwork("easy", max_iter=3, random_state=0).fit(X[:, :2], bags, P[::-1])
    model.set_params(max_iter=2).fit(X, bags, P)
    other = BagNetwork("easy", max_iter=2, random_state=0).fit(X[::-1], bags[::-1], P)
    assert_array_equal(model.decision_function(X), other.decision_function(X))


@needs_torch
def test_equal_predictions_are_said():
    """Where features say nothing, the network ends at the mean share."""
    X, y, bags, _ = uneven_bags()
    P = label_proportions(y * (X[:, 0] > 1.5), bags)
    with pytest.warns(LLPWarning, match="the same for all instances: the mean share"):
        BagNetwork("counts", random_state=0).fit(np.ones_like(X), bags, P)
