"""Losses of bags: values by definition and brute force, gradients by differences, what theory says; the learners."""

import pickle
from contextlib import nullcontext
from dataclasses import replace
from itertools import permutations, product

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import gaussian_bags
from scipy.optimize import approx_fprime, check_grad
from scipy.special import expit, logit, softmax
from scipy.stats import entropy as scipy_entropy
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression

from llpbook._linear import BagCounts, LinearObjective, bag_counts, read_scores
from llpbook.bag_losses import (
    BagBatches,
    BagBoosting,
    BagLogistic,
    BagLoss,
    ConsistencyTerm,
    EasyLoss,
    EntropyTerm,
    ForwardLoss,
    NormalLoss,
    ProportionLoss,
    WithCopies,
    adversarial_shift,
    easy_label_variance,
    easy_labels,
    first_half,
    forward,
    pair_bags,
    transition,
    unmixed_labels,
)
from llpbook.bag_losses._learners import LOSSES
from llpbook.base import LLPWarning
from llpbook.count_likelihood import (
    CountBoosting,
    CountLogistic,
    CountLoss,
)
from llpbook.datasets import load_bags
from llpbook.proportions import label_proportions

EACH = {
    **LOSSES,
    "saddlepoint": CountLoss(0),
    "entropy": EntropyTerm(),
    "sum": ProportionLoss() + 0.3 * EntropyTerm(),
    "unmixed": EasyLoss(factor="worth"),
    "told the prior": EasyLoss(np.array([0.4, 0.6])) + ForwardLoss([0.4, 0.6]) * 2,
}
each = pytest.mark.parametrize("loss", EACH.values(), ids=EACH)
SEVERAL = {k: v for k, v in EACH.items() if v.several_classes}


def small(seed=0, n=24, n_bags=5, n_classes=2):
    """Scores, bags with and without a pure one, and their shares."""
    rng = np.random.default_rng(seed)
    bags = np.append(np.arange(n_bags), rng.integers(0, n_bags, n - n_bags))
    y = rng.integers(0, n_classes, n)
    y[bags == 1] = 1
    shares = label_proportions(y, bags, classes=np.arange(n_classes))
    f = 1.5 * rng.normal(size=n if n_classes == 2 else (n, n_classes))
    return f, bags, shares[:, 1] if n_classes == 2 else shares


# --- the protocol --------------------------------------------------------------------------------------------


@each
@pytest.mark.parametrize("seed", range(4))
def test_the_gradient_is_the_derivative_of_the_value(loss, seed):
    f, bags, p = small(seed)
    gradient = loss(f, bags, p)[1]
    numeric = approx_fprime(f, lambda z: loss(z, bags, p)[0], 1e-6)
    assert_allclose(gradient, numeric, atol=2e-5)


@pytest.mark.parametrize("loss", SEVERAL.values(), ids=SEVERAL)
def test_the_gradient_of_several_classes(loss):
    if loss == EACH["told the prior"]:
        pytest.skip("of two classes")
    F, bags, P = small(3, n_classes=3)

    def value(z):
        return loss(z.reshape(F.shape), bags, P)[0]

    def slope(z):
        return loss(z.reshape(F.shape), bags, P)[1].ravel()

    assert check_grad(value, slope, F.ravel(), epsilon=1e-6) < 1e-4
    assert_allclose(slope(F.ravel()).reshape(F.shape).sum(axis=1), 0, atol=1e-9)


@each
def test_a_loss_takes_a_batch_and_names_of_bags_in_any_order(loss):
    f, bags, p = small(1)
    if loss in (EACH["easy"], EACH["forward"]):
        loss = loss.with_prior(np.array([0.5, 0.5]))
    one = np.isin(bags, [3, 1])
    value, gradient, hessian = loss(f[one], bags[one], p)
    renamed = np.where(bags[one] == 3, 0, 1)
    again = loss(f[one].tolist(), renamed.tolist(), p[[3, 1]].tolist())
    assert_allclose([value, *gradient], [again[0], *again[1]], atol=1e-9)
    assert hessian.shape == gradient.shape == (one.sum(),)
    assert np.isfinite(hessian).all() and hessian.min() >= 0


#: The curvatures of a logistic regression that a loss returns, if not one.
TIMES = {EACH["entropy"]: 0, EACH["told the prior"]: 3}


@each
@pytest.mark.parametrize("n_classes", [2, 3])
def test_frequencies_are_repeated_rows_and_the_curvature_is_logistic(loss, n_classes):
    if n_classes == 3 and (loss not in SEVERAL.values() or loss in TIMES):
        loss = EasyLoss([0.5, 0.2, 0.3])
    f, bags, p = small(2, n_classes=n_classes)
    P = p if p.ndim == 2 else np.column_stack([1 - p, p])
    times, errors = np.arange(24) % 3 + 1, np.full(5, 0.01)[:, None, None]
    errors = errors * (np.eye(n_classes) - 1 / n_classes)
    rows = np.repeat(np.arange(24), times)
    few, many = f, f[rows]
    known = bag_counts(bags, P, errors, times), bag_counts(bags[rows], P, errors)
    found, wanted = loss.of_counts(few, known[0]), loss.of_counts(many, known[1])
    assert found[0] == pytest.approx(wanted[0])
    assert_allclose(found[1][rows], wanted[1], atol=1e-9)
    factors = loss.factors(few, known[0]), loss.factors(many, known[1])
    assert len(factors[0]) == loss.n_factors(1 if n_classes == 2 else 3)
    assert_allclose(np.array(factors[0])[:, rows], factors[1], atol=1e-9)
    s = softmax(f, axis=1) if n_classes == 3 else expit(f)
    logistic = np.maximum(s * (1 - s), 0.05) * (1.5 if n_classes == 3 else 1)
    assert_allclose(found[2], TIMES.get(loss, 1) * logistic)


def test_one_bag_is_refused_where_its_number_means_nothing():
    told, one = [0.6, 0.4], ([0.0, 1.0], [1, 1], [0.2, 0.5])
    for loss in (
        ForwardLoss(told), EasyLoss(), EasyLoss(told, "worth"),
        0.5 * EntropyTerm() + ForwardLoss(), WithCopies(EasyLoss()),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"must be 2 or more for .*, got 1: "):
            loss(*one)
    for loss in (CountLoss(), NormalLoss(), ProportionLoss(), EasyLoss(told)):
        assert np.abs(loss(*one)[1]).max() > 0


@each
def test_a_loss_is_finite_where_predictions_are_certain_and_wrong(loss):
    f = np.array([800.0, -800, 750, -750, 0, 0])
    value, gradient, hessian = loss(f, [0, 0, 1, 1, 2, 2], [0.0, 1.0, 0.5])
    assert np.isfinite(value) and np.isfinite(gradient).all()
    assert np.isfinite(hessian).all()


def test_losses_are_added_weighed_compared_and_stored():
    f, bags, p = small(4)
    total = ProportionLoss() + 0.25 * EntropyTerm() + EasyLoss() * 2
    parts = [loss(f, bags, p) for loss in (ProportionLoss(), EntropyTerm(), EasyLoss())]
    for j in range(3):
        expected = parts[0][j] + 0.25 * parts[1][j] + 2 * parts[2][j]
        assert_allclose(total(f, bags, p)[j], expected)
    assert pickle.loads(pickle.dumps(total)) == total
    assert ProportionLoss() == ProportionLoss() != ProportionLoss("squares")
    told = EasyLoss(np.array([0.4, 0.6]))
    assert told == EasyLoss([0.4, 0.6]) != EasyLoss() and len({told, EasyLoss()}) == 2
    assert not (ForwardLoss() + EntropyTerm()).several_classes
    assert (EntropyTerm() + NormalLoss()).before == (ProportionLoss(),)
    F, bags, P = small(4, n_classes=3)
    both = ProportionLoss() + 0.5 * ProportionLoss("squares")
    roots = both.factors(F, read_scores(F, bags, P)[1])
    assert_allclose(sum(root**2 for root in roots), both(F, bags, P)[2])
    assert (EntropyTerm() + NormalLoss()).before == (ProportionLoss(),)
    with pytest.raises(TypeError):
        ProportionLoss() + 1


@pytest.mark.parametrize(
    "change, message",
    [
        ({"scores": [0.0, np.nan]}, "scores must be finite"),
        ({"scores": np.zeros((2, 3))}, "one column per class of proportions, 2"),
        ({"scores": np.zeros((2, 2))}, "loss of two classes"),
        ({"bags": ["a", "b"]}, "bags other than integers need proportions keyed"),
        ({"scores": [], "bags": []}, "not empty"),
        ({"scores": [1j, 0]}, "scores must be numbers: real"),
    ],
)
def test_malformed_input_is_named(change, message):
    given = {"scores": [0.0, 1.0], "bags": [0, 1], "proportions": [0.5, 0.5], **change}
    with pytest.raises(ValueError, match=message):
        NormalLoss()(**given)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: ProportionLoss("kl"), "divergence must be"),
        (lambda: EasyLoss([0.5, 0.6]), "prior must be shares of the classes"),
        (lambda: EasyLoss([-0.5, 1.5]), r"shares of the .* got \[-0.5, 1.5\]"),
        (lambda: ForwardLoss([[0.5, 0.5]]), "prior must be shares of the classes"),
        (lambda: EasyLoss([0, 1]).with_prior(np.ones(3) / 3), "per class, 3"),
        (lambda: BagBatches([]), r"one dimension and not empty, got shape \(0,\)"),
        (lambda: EasyLoss(factor="n"), "'size' or 'worth', got 'n'"),
        (lambda: BagBatches([0], 0), "bags_per_batch must be a whole number from 1"),
        (lambda: EasyLoss() * -1, "weighed by a positive number, got -1"),
    ],
)
def test_wrong_parameters_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


# --- the proportion loss -------------------------------------------------------------------------------------


@pytest.mark.equation("eq-losses-proportion", "eq-losses-entropy")
@pytest.mark.parametrize("n_classes", [2, 3])
def test_losses_by_their_definition(n_classes):
    f, bags, p = small(6, n_classes=n_classes)
    s = softmax(f, axis=1) if f.ndim == 2 else np.column_stack([1 - expit(f), expit(f)])
    P = p if p.ndim == 2 else np.column_stack([1 - p, p])
    kl = squares = 0.0
    sizes = np.bincount(bags)
    prior = sizes @ P / len(bags)
    labels = sizes[:, None] * (P - prior) + prior
    easy = -np.sum(labels[bags] * np.log(s))
    assert EasyLoss()(f, bags, p)[0] == pytest.approx(easy)
    entropy = scipy_entropy(s, axis=1).sum()
    assert EntropyTerm()(f, bags, p)[0] == pytest.approx(entropy)
    for k in range(5):
        mean, size = s[bags == k].mean(axis=0), np.sum(bags == k)
        kl += size * scipy_entropy(P[k], mean)
        squares += size * np.sum((P[k] - mean) ** 2)
    assert ProportionLoss()(f, bags, p)[0] == pytest.approx(kl)
    assert ProportionLoss("squares")(f, bags, p)[0] == pytest.approx(squares)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", ["counts", "proportion", "easy", "saddlepoint"])
def test_bags_of_one_are_logistic_regression(name, n_classes):
    rng = np.random.default_rng(0)
    F, Y = (
        2 * rng.normal(size=(12, n_classes)),
        np.eye(n_classes)[np.arange(12) % 3 % n_classes],
    )
    s = softmax(F, axis=1)
    f, p = (F, Y) if n_classes == 3 else (F[:, 1] - F[:, 0], Y[:, 1])
    value, gradient, _ = EACH[name](f, np.arange(12), p)
    assert value == pytest.approx(-np.sum(Y * np.log(s)))
    assert_allclose(gradient, s - Y if n_classes == 3 else s[:, 1] - p, atol=1e-9)


def test_forward_in_pure_bags_of_equal_sizes_is_balanced_logistic_regression():
    f, bags = np.random.default_rng(2).normal(size=20), np.repeat([0, 1], 10)
    value, gradient, _ = ForwardLoss([0.8, 0.2])(f, bags, [0.0, 1.0])
    s = expit(f - logit(0.2))  # under classes of equal size
    assert value == pytest.approx(-np.log(np.where(bags, s, 1 - s)).sum())
    assert_allclose(gradient, s - bags, atol=1e-9)


def test_the_forward_loss_is_stationary_at_the_truth():
    """Five values of x in two bags that differ in their shares alone; expectations are sums."""
    P = np.random.default_rng(3).dirichlet(np.ones(5), 2)  # P(x | y)
    shares, prior = np.array([0.7, 0.2]), 0.35
    f = np.log(P[1] / P[0]) + logit(prior)
    bags, inside = (
        np.repeat([0, 1], [300, 500]),
        np.column_stack([1 - shares, shares]) @ P,
    )
    slope = ForwardLoss([1 - prior, prior])(np.tile(f, 160), bags, shares)[1]
    expected = 300 * inside[0] * slope[:5] + 500 * inside[1] * slope[-5:]
    assert_allclose(expected, 0, atol=1e-12)


def test_in_random_bags_the_posterior_is_least_and_its_advantage_is_exact():
    """The theorem on the proportion loss, by all bags of three of three kinds of instances; and of equal shares."""
    chances, truth = np.array([0.5, 0.3, 0.2]), np.array([0.1, 0.4, 0.9])
    prior, kinds = chances @ truth, np.array(list(product(range(3), repeat=3)))
    weight = np.prod(chances[kinds], axis=1)

    def risk(s):
        total = 0.0
        for y in product([0, 1], repeat=3):
            p = weight * np.prod(np.where(y, truth[kinds], 1 - truth[kinds]), axis=1)
            for f, chance in zip(logit(s[kinds]), p, strict=True):
                total += chance * ProportionLoss()(f, [0, 0, 0], [np.mean(y)])[0]
        return total

    best, q = risk(truth), truth[kinds].mean(axis=1)
    gain = 3 * weight @ scipy_entropy([q, 1 - q], [[prior], [1 - prior]])
    assert risk(np.full(3, prior)) - best == pytest.approx(gain)
    for move in np.vstack([np.eye(3), -np.eye(3)]):
        assert risk(expit(logit(truth) + 0.1 * move)) > best + 1e-6
    for loss in (ProportionLoss(), ProportionLoss("squares")):
        value, gradient, _ = loss(
            np.full(24, logit(0.25)), np.arange(24) // 4, [0.25] * 6
        )
        assert_allclose([value, *gradient], 0, atol=1e-12)


# --- the count of a bag --------------------------------------------------------------------------------------


@pytest.mark.equation("eq-losses-normal")
def test_the_normal_loss_is_a_normal_density():
    f, bags, p = small(8)
    s, expected = expit(f), 0.0
    for k in range(5):
        mine = s[bags == k]
        variance = np.sum(mine * (1 - mine)) + 1 / 12
        count = round(p[k] * len(mine))
        expected -= norm.logpdf(count, mine.sum(), np.sqrt(variance))
    constant = 5 * np.log(2 * np.pi) / 2
    assert NormalLoss()(f, bags, p)[0] == pytest.approx(expected - constant)
    known = read_scores(f, bags, p)[1]
    vague = replace(known, errors=np.full(5, 2.0))
    spread = np.sqrt(np.bincount(bags, s * (1 - s)) + 1 / 12 + 2)
    told = -norm.logpdf(known.counts, np.bincount(bags, s), spread).sum() - constant
    assert NormalLoss().of_counts(f, vague)[0] == pytest.approx(told)


def test_factors_of_the_normal_loss_and_of_pairs_are_variances_of_the_gradient():
    """The information is the mean square of the gradient: over normal counts, and over the two bags of a pair."""
    f, bags, p = small(8)
    s = expit(f)
    known = replace(read_scores(f, bags, p)[1], errors=np.arange(5.0))
    spread = np.sqrt(np.bincount(bags, s * (1 - s)) + 1 / 12 + known.errors)
    nodes, chances = np.polynomial.hermite_e.hermegauss(5)
    mean_square = 0.0
    for z, chance in zip(nodes, chances / chances.sum(), strict=True):
        drawn = replace(known, counts=np.bincount(bags, s) + z * spread)
        g = NormalLoss().of_counts(f, drawn)[1]
        mean_square = mean_square + chance * np.outer(g, g)
    factors = NormalLoss().factors(f, known)
    found = sum(np.outer(a, a) for a in factors) * (bags[:, None] == bags)
    assert_allclose(found, mean_square * (bags[:, None] == bags), atol=1e-12)
    given = f, np.full(24, 0.3), np.full(24, 0.8), np.full(24, 0.4), 0.35
    (first, g, square), (second, h, _) = (forward(*given, is_first=k) for k in (1, 0))
    chance = np.exp(-first)
    assert_allclose(chance + np.exp(-second), 1)
    assert_allclose(chance * g + (1 - chance) * h, 0, atol=1e-12)
    assert_allclose(chance * g**2 + (1 - chance) * h**2, square)


# --- unbiased losses -----------------------------------------------------------------------------------------


@pytest.mark.equation("eq-losses-easy", "eq-losses-easy-variance")
@pytest.mark.parametrize("size", [1, 2, 5])
def test_easy_labels_are_right_in_the_mean_and_vary_as_stated(size):
    prior, bags = 0.3, np.zeros(size, int)
    for truth in (0, 1):
        first = second = 0.0
        for others in product([0, 1], repeat=size - 1):
            y = np.array([truth, *others])
            chance = np.prod(np.where(y[1:], prior, 1 - prior))
            known = read_scores(np.zeros(size), bags, [y.mean()])[1]
            label = easy_labels(known, np.array([1 - prior, prior]))[0, 1]
            first, second = first + chance * label, second + chance * label**2
        assert first == pytest.approx(truth)
        variance = easy_label_variance(size, prior)
        assert second - first**2 == pytest.approx(variance, abs=1e-12)


@pytest.mark.equation("eq-losses-unmixed")
@pytest.mark.parametrize("n_classes", [2, 3])
def test_unmixed_labels_are_right_in_the_mean_of_each_class(n_classes):
    rng = np.random.default_rng(0)
    sizes, P = rng.integers(1, 9, 12), rng.dirichlet(np.ones(n_classes), 12)
    bags = np.repeat(np.arange(12), sizes)
    known = read_scores(np.zeros((len(bags), n_classes)), bags, P)[1]
    prior = sizes @ P / len(bags)
    of_class = sizes[:, None] * P / (len(bags) * prior)  # P(bag | class)
    labels = unmixed_labels(known, prior)
    np.testing.assert_allclose(of_class.T @ labels, np.eye(n_classes), atol=1e-12)
    np.testing.assert_allclose(labels.sum(axis=1), 1)


@pytest.mark.parametrize("n_bags", [2, 4, 6, 8])
def test_pairs_have_the_largest_squared_differences(n_bags):
    shares = np.round(np.random.default_rng(n_bags).random(n_bags), 1)
    found = np.sum(np.diff(shares[pair_bags(shares)], axis=1) ** 2)
    best = max(
        np.sum((shares[list(order[::2])] - shares[list(order[1::2])]) ** 2)
        for order in permutations(range(n_bags))
        if all(a < b for a, b in zip(order[::2], order[1::2], strict=True))
    )
    assert found == pytest.approx(best)
    # Of equal shares the numbers decide; of an odd number the largest is twice in a pair.
    assert pair_bags(np.zeros(4)).tolist() == [[3, 0], [2, 1]]
    assert pair_bags(np.array([0.5, 0.5, 0.2])).tolist() == [[1, 2], [1, 0]]
    pure = [r.tolist() for r in transition(np.ones((1, 2)), np.array([[1.0, 3.0]]))]
    assert pure == [[0], [0.25], [1]]


@pytest.mark.equation("eq-losses-transition", "eq-losses-forward")
def test_an_odd_number_of_pairs_by_its_definition():
    """The bag of the largest share is in two pairs, and counts half in each; pairs and weights by hand."""
    f = np.random.default_rng(5).normal(size=9)
    bags, shares = np.repeat([0, 1, 2], [2, 3, 4]), np.array([0.5, 0.9, 0.1])
    prior, loss, expected, square = 0.4, ForwardLoss([0.6, 0.4]), 0.0, np.zeros(9)
    weight = {0: 2.0, 1: 1.5, 2: 4.0}
    for one, two in ((1, 2), (1, 0)):
        size = np.array([weight[one], weight[two]])
        p = shares[[one, two]]
        mixed = size @ p / size.sum()
        ratio = np.exp(f) * (1 - prior) / prior  # p(x | 1) / p(x | 0)
        density = p[:, None] * ratio + 1 - p[:, None]
        first = size[0] * density[0] / (size @ density)
        assert 0 < mixed < 1
        expected -= 0.5 * np.log(first[bags == one]).sum()
        expected -= np.log(1 - first[bags == two]).sum()
        rates = *transition(p[None], size[None]), prior, True
        square += forward(f, *rates)[2] * ((bags == one) / 2 + (bags == two))
    assert loss(f, bags, shares)[0] == pytest.approx(expected)
    known = read_scores(f, bags, shares)[1]
    assert_allclose(loss.factors(f, known)[0] ** 2, square)


def test_the_prior_is_that_of_instances_and_is_passed_on():
    f, bags, p = small(13)
    sizes = np.bincount(bags)
    prior = np.array([1 - sizes @ p / sizes.sum(), sizes @ p / sizes.sum()])
    for loss in (EasyLoss(), ForwardLoss()):
        told, other = loss.with_prior(prior), type(loss)([0.2, 0.8])
        assert loss(f, bags, p)[0] == pytest.approx(told(f, bags, p)[0])
        assert loss(f, bags, p)[0] != pytest.approx(other(f, bags, p)[0])
        assert told.with_prior([0.2, 0.8]) == told
        assert (loss + EntropyTerm()).with_prior(prior).parts[0] == told
        assert WithCopies(loss).with_prior(prior).loss == told
        value = told(f, bags, p)[0] + 0.1 * EntropyTerm()(f, bags, p)[0]
        both = (loss + 0.1 * EntropyTerm()).with_prior(prior)
        assert both(f, bags, p)[0] == pytest.approx(value)  # keeps its weights


# --- terms ---------------------------------------------------------------------------------------------------


@pytest.mark.equation("eq-losses-consistency")
def test_the_consistency_term_is_a_divergence_and_its_gradient():
    f, bags, p = small(10)
    moved = f + np.random.default_rng(0).normal(size=len(f))
    both, twice = np.append(f, moved), np.tile(bags, 2)
    s, t = expit(f), expit(moved)
    value, gradient, _ = ConsistencyTerm()(both, twice, p)
    assert value == pytest.approx(scipy_entropy([s, 1 - s], [t, 1 - t]).sum())
    numeric = approx_fprime(both, lambda z: ConsistencyTerm()(z, twice, p)[0], 1e-6)
    assert_allclose(gradient, numeric, atol=1e-5)
    assert ConsistencyTerm()(np.append(f, f), twice, p)[0] == pytest.approx(0)


@pytest.mark.parametrize("loss", [CountLoss(), NormalLoss(), EasyLoss()])
def test_copies_do_not_count_in_a_loss_of_bags(loss):
    f, bags, p = small(11)
    both, twice = np.append(f, f + 1), np.tile(bags, 2)
    value, gradient, hessian = WithCopies(loss)(both, twice, p)
    alone = loss(f, bags, p)
    assert value == pytest.approx(alone[0])
    assert_allclose(gradient, np.append(alone[1], 0 * f), atol=1e-12)
    assert_allclose(hessian[: len(f)], alone[2])


def test_a_half_has_half_of_each_bag():
    bags, counts = np.array([0, 0, 1]), np.array([1.0, 1.0])
    known = BagCounts(bags, np.array([2, 1]), counts, np.array([0.5, 0.25]))
    both = BagCounts(np.tile(bags, 2), 2 * known.sizes, 2 * counts, 4 * known.errors)
    scores, half = first_half(np.arange(6.0), both)
    assert_array_equal(scores, [0, 1, 2])
    for name in ("bags", "sizes", "counts", "errors"):
        assert_allclose(getattr(half, name), getattr(known, name))
    for n, turned in ((5, both.bags[:5]), (6, [0, 0, 1, 0, 1, 0])):
        with pytest.raises(ValueError, match="scores must be those of all instances"):
            first_half(np.arange(n), replace(both, bags=np.array(turned)))


def test_the_adversarial_shift_changes_predictions_most():
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(6, 3)), np.array([1.0, -2.0, 0.5])

    def score(Z):
        return np.sin(Z @ w) + Z[:, 0] ** 2

    r = adversarial_shift(score, X, radius=1e-3)
    assert_allclose(np.linalg.norm(r, axis=1), 1e-3)
    worst = np.abs(score(X + r) - score(X))
    for _ in range(50):
        other = rng.normal(size=X.shape)
        other *= 1e-3 / np.linalg.norm(other, axis=1, keepdims=True)
        assert (np.abs(score(X + other) - score(X)) < 1.01 * worst).all()
    # A step at c is seen from steps beyond it, by default of 1e-4; the shift is then of length 0.1.
    for c, options, seen in ((9e-5, {}, 0.1), (2e-4, {}, 0), (0.5, {"step": 1}, 0.1)):
        found = adversarial_shift(lambda Z, c=c: 1.0 * (Z[:, 1] > c), 0 * X, **options)
        assert_allclose(found, np.tile([0, seen, 0], (6, 1)))


# --- learners ------------------------------------------------------------------------------------------------


def bags_of(n=600, size=10, seed=0, d=3):
    return gaussian_bags(n, d, size, seed=seed)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_counts_is_count_logistic(kernel):
    X, _, bags, P = bags_of(200)
    one = BagLogistic("counts", C=0.5, kernel=kernel).fit(X, bags, P)
    two = CountLogistic(C=0.5, kernel=kernel).fit(X, bags, P)
    assert_allclose(one.decision_function(X), two.decision_function(X))
    one, two = (cls(max_iter=9).fit(X, bags, P) for cls in (BagBoosting, CountBoosting))
    assert_allclose(one.decision_function(X), two.decision_function(X))


@pytest.mark.parametrize("name", ["counts", "proportion", "easy"])
def test_linear_learners_of_labels_are_logistic_regression(name):
    X, y, _, _ = bags_of(200)
    alone = np.arange(200), y.astype(float)
    found = BagLogistic(name, C=0.1, tol=1e-9).fit(X, *alone)
    truth = LogisticRegression(C=0.1, tol=1e-10).fit(X, y)  # its intercept is free
    assert_allclose(found.coef_, truth.coef_, atol=1e-5)
    assert_allclose(found.intercept_, truth.intercept_, atol=1e-5)
    found = BagLogistic(name, C=0.1, penalize_intercept=True, tol=1e-9).fit(X, *alone)
    Z = np.column_stack([X, np.ones(200)])
    truth = LogisticRegression(C=0.1, fit_intercept=False, tol=1e-10).fit(Z, y)
    weights = np.append(found.coef_, found.intercept_)
    assert_allclose(weights, truth.coef_[0], atol=1e-5)


@pytest.mark.parametrize("name", LOSSES)
def test_linear_learners_end_where_the_gradient_is_zero(name):
    X, y, bags, P = bags_of()
    model = BagLogistic(name, C=0.1, tol=1e-7).fit(X, bags, P)
    w = np.append(model.coef_, model.intercept_)
    Z = np.column_stack([X, np.ones(len(X))])

    def value(w):
        return model.loss_(Z @ w, bags, P)[0] + w[:3] @ w[:3] / 0.2

    assert model.objective_ == pytest.approx(value(w))
    assert model.gap_ < 1e-6 and model.score(X, y) > 0.85
    steps = 1e-3 * np.random.default_rng(0).normal(size=(20, 4))
    assert all(value(w + step) > value(w) for step in steps)


@pytest.mark.parametrize("name", LOSSES)
def test_every_loss_boosts_beyond_a_line(name):
    """A ring: no line is right for more than the larger class."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 2))
    y = (np.sum(X**2, axis=1) > 1.4).astype(int)
    bags = np.argsort(np.argsort(y + rng.normal(size=6000))) // 10
    P = label_proportions(y, bags)
    model = BagBoosting(name, max_iter=40).fit(X[:], bags, P)
    assert model.score(X, y) > 0.75 and model.n_iter_ > 5
    history = model.validation_loss_
    assert history[model.n_iter_] == history.min() < history[0]


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("learner", [BagLogistic, BagBoosting])
def test_three_classes(learner, name):
    data = load_bags("iris", bag_size=5, random_state=0)
    own = {"max_iter": 10} if learner is BagBoosting else {}
    model = learner(name, **own).fit(data.X, data.bags, data.proportions)
    assert data.evaluate(model.predict(data.X)) > 0.6
    assert (model.estimators_ is None) == LOSSES[name].several_classes
    assert_allclose(model.predict_proba(data.X).sum(axis=1), 1)


def test_easy_labels_beyond_fifty_are_warned_of():
    rng = np.random.default_rng(0)
    for sizes, times, said in (
        ([60, 101, 41], 1, "a bag of 101 the label 51, not 0 or 1"),
        ([60, 101, 41], 3, "a bag of 303 the label 152, "),
        ([58, 99, 41], 1, None),  # the label 50
    ):
        bags, p = np.repeat(np.arange(3), sizes), np.array([0.0, 1.0, 0.0])
        X = rng.normal(size=(len(bags), 2)) + p[bags, None]
        given, counts = (X, bags, p), np.full(len(bags), times)
        for loss in ("easy", 0.5 * EasyLoss()):
            with pytest.warns(LLPWarning, match=said) if said else nullcontext():
                BagLogistic(loss, fit_intercept=False).fit(*given, counts=counts)
        BagLogistic(EasyLoss(factor="worth")).fit(*given, counts=counts)  # no warning


@pytest.mark.parametrize("learner", [BagLogistic, BagBoosting])
def test_the_learner_tells_the_loss_the_prior_of_all_bags(learner):
    X, y, bags, P = bags_of()
    model = learner("easy").fit(X, bags, P)
    assert_allclose(model.loss_.prior, [1 - y.mean(), y.mean()])


@pytest.mark.parametrize("name", ["proportion", "squares"])
def test_factors_are_roots_of_the_curvature_where_the_loss_is_zero(name):
    rng = np.random.default_rng(0)
    Z, w = rng.normal(size=(120, 3)), rng.normal(size=(1, 3))
    bags, f = np.repeat(np.arange(10), 12), Z @ w[0]
    known = read_scores(f, bags, np.bincount(bags, expit(f)) / 12)[1]
    objective = LinearObjective(LOSSES[name], Z, known)
    slope = [
        objective.at(w + d).gradient[0]
        for d in np.vstack([np.eye(3), -np.eye(3)]) * 1e-4
    ]
    hessian = (np.array(slope[:3]) - slope[3:]) / 2e-4
    assert_allclose(objective.at(w).information(), hessian, rtol=1e-4, atol=1e-4)


def test_a_loss_that_is_no_number_is_named():
    class Broken(BagLoss):
        def of_counts(self, scores, known):
            return np.nan, np.full_like(scores, np.nan), np.ones_like(scores)

    X, _, bags, P = bags_of(200)
    for learner in (BagLogistic, BagBoosting):
        with pytest.raises(ValueError, match="must give finite numbers"):
            learner(Broken()).fit(X, bags, P)


def test_keys_of_proportions_are_followed():
    f, bags, p = small(3)
    names = np.array(["a", "b", "c", "d", "e"])
    given = pd.Series(p, names)[::-1]
    for loss in (CountLoss(), ForwardLoss()):
        found = loss(f, names[bags], given)[1]
        assert_allclose(found, loss(f, bags, p)[1])
        gradient = loss.objective(given)(names[bags], f)[0]
        assert_allclose(gradient, found)


def test_errors_of_shares_are_for_losses_that_use_them():
    X, _, bags, P = bags_of(200)
    errors = np.full(len(P), 0.1)
    one = BagLogistic(proportion_errors=errors).fit(X, bags, P)
    two = CountLogistic(proportion_errors=errors).fit(X, bags, P)
    assert_array_equal(one.coef_, two.coef_)
    for name in ("counts", "normal"):
        told = BagLogistic(name, proportion_errors=errors).fit(X, bags, P).coef_
        assert np.abs(told - BagLogistic(name).fit(X, bags, P).coef_).max() > 1e-3
    with pytest.raises(ValueError, match="proportion_errors are of no use"):
        BagLogistic("proportion", proportion_errors=errors).fit(X, bags, P)


# --- batches -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("per_batch", [1, 3, 100])
def test_batches_hold_whole_bags_and_each_instance_once(per_batch):
    bags = np.random.default_rng(0).integers(0, 7, 50) * 3
    batches = BagBatches(bags, per_batch, random_state=1)
    passes = [list(batches), list(batches)]
    for found in passes:
        assert len(found) == len(batches)
        assert_array_equal(np.sort(np.concatenate(found)), np.arange(50))
        for rows in found:
            assert set(bags[rows]).isdisjoint(bags[np.setdiff1d(np.arange(50), rows)])
            assert len(set(bags[rows])) <= per_batch
    if per_batch == 1:
        assert [r.tolist() for r in passes[0]] != [r.tolist() for r in passes[1]]
    assert len(BagBatches(np.arange(17))) == 3  # of 8
    names = np.char.zfill(bags.astype(str), 2)
    again = [r.tolist() for r in BagBatches(names, per_batch, random_state=1)]
    assert again == [r.tolist() for r in passes[0]]


def test_easy_labels_without_a_best_intercept_are_refused():
    rng = np.random.default_rng(0)
    sizes = np.append(20, np.full(10, 2))
    bags, p = np.repeat(np.arange(11), sizes), np.zeros(11)
    p[[0, 3]] = 0.9, 0.5
    X = rng.normal(size=(len(bags), 2)) + p[bags][:, None]
    eta = sizes @ p / len(bags)
    labels = (sizes * (p - eta) + eta)[bags]  # sum to 172 for 40 instances
    named = pd.DataFrame({"no": 1 - p, "yes": p})
    stated = EasyLoss((1 - eta, eta))
    refused = (
        BagLogistic("easy"),
        BagLogistic(stated),
        BagBoosting("easy"),
        BagLogistic("easy", kernel="rbf"),
    )
    for model in (*refused, BagLogistic(ProportionLoss() + EasyLoss())):
        with pytest.raises(ValueError, match="far from class 'no' it falls by"):
            model.fit(X, bags, named)
    with pytest.raises(ValueError, match=rf"falls by {labels.sum() - 40:.3g} per unit"):
        BagLogistic("easy").fit(X, bags, p)
    for model in (
        BagLogistic("easy", penalize_intercept=True),
        BagLogistic("easy", fit_intercept=False),
        BagLogistic(EasyLoss(factor="worth")),
    ):
        assert model.fit(X, bags, named).gap_ <= model.tol
    # the other side, a prior that is not theirs, and several classes
    with pytest.raises(ValueError, match="far from class 1 it falls"):
        BagLogistic("easy").fit(X, bags, 1 - p)
    with pytest.raises(ValueError, match="far from class 0 it falls"):
        BagLogistic(EasyLoss((0.9, 0.1))).fit(
            X[:20], np.arange(20) // 5, [0.8, 0.9, 0.8, 0.6]
        )
    three = np.column_stack([1 - p, p / 3, 2 * p / 3])
    three[5] = 0.8, 0.2, 0.0
    with pytest.raises(ValueError, match="far from class 0 it falls"):
        BagLogistic("easy").fit(X, bags, three)


@pytest.mark.parametrize("learner", [BagLogistic, BagBoosting])
def test_each_class_against_the_rest_has_its_own_errors(learner):
    rng, (n, L, K) = np.random.default_rng(0), (300, 30, 3)
    y = rng.integers(0, K, n)
    X, bags = rng.normal(size=(n, 2)) + np.eye(3)[y, :2] * 2, np.arange(n) // 10
    P = label_proportions(y, bags, classes=range(3))
    A = rng.normal(size=(L, 3, 3)) * np.array([0.01, 0.02, 0.2])[None, :, None]
    errors = np.eye(3) - 1 / 3
    errors = errors @ (A @ A.transpose(0, 2, 1)) @ errors  # rows sum to 0
    fast = {"max_iter": 3} if learner is BagBoosting else {}
    model = learner("normal", proportion_errors=errors, **fast).fit(X, bags, P)
    for k in range(3):
        own = learner("normal", proportion_errors=np.sqrt(errors[:, k, k]), **fast)
        own.fit(X, bags, P[:, k])
        assert_allclose(model.decision_function(X)[:, k], own.decision_function(X))
    turned = errors[:, [2, 0, 1]][:, :, [2, 0, 1]]
    model.set_params(proportion_errors=turned)
    again = model.fit(X, bags, P[:, [2, 0, 1]]).decision_function(X)
    model.set_params(proportion_errors=errors)
    wanted = model.fit(X, bags, P).decision_function(X)
    assert_allclose(again, wanted[:, [2, 0, 1]])
