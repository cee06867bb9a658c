"""Splits, scores and searches by bags: against slow versions, enumeration, simulation, and scikit-learn's own tools."""

import contextlib
import io
import pickle
import re
import warnings
from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from joblib import parallel_config
from numpy.testing import assert_allclose, assert_array_equal
from problems import uneven_bags
from scipy.stats import hypergeom, norm
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    LeaveOneOut,
    LeavePOut,
    ParameterGrid,
    RepeatedKFold,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from llpbook import FullBagKFold, LLPGridSearchCV, LLPRandomizedSearchCV, base
from llpbook import model_selection as ms
from llpbook.baselines import BagMeanRegression, MajorityClass
from llpbook.count_likelihood import CountLogistic
from llpbook.invcal import InvCal
from llpbook.mean_map import MeanMap
from llpbook.model_selection import (
    OutOfFold,
    SplitBagBootstrap,
    SplitBagKFold,
    SplitBagShuffle,
)
from llpbook.model_selection._scorers import proportion_scorer
from llpbook.proportions import label_proportions

examples = settings(max_examples=60, derandomize=True, deadline=None, database=None)


def problem(n=240):
    X, y, bags, P = uneven_bags(n)
    return X, y, bags, P[:, 1]


@st.composite
def bag_columns(draw):
    """Bags of any sizes, in any order, numbered or named."""
    sizes = draw(st.lists(st.integers(1, 9), min_size=1, max_size=12))
    bags = np.repeat(np.arange(len(sizes)), sizes)
    rng = np.random.RandomState(draw(st.integers(0, 1000)))
    bags = rng.permutation(len(sizes))[bags][rng.permutation(len(bags))]
    return np.array([f"ward {b}" for b in bags]) if draw(st.booleans()) else bags


# --- splits ----------------------------------------------------------------------------------------------------------


@pytest.mark.equation("eq-ms-folds")
@examples
@given(bag_columns(), st.integers(2, 12), st.booleans(), st.integers(0, 99))
def test_split_bag_folds_are_a_balanced_partition_of_each_bag(bags, k, shuffle, seed):
    splitter = SplitBagKFold(k, shuffle=shuffle, random_state=seed)
    if k > len(bags):
        with pytest.raises(ValueError, match="leaves no"):
            list(splitter.split(bags, groups=bags))
        return
    folds, counts = np.full(len(bags), -1), []
    for train, test in splitter.split(bags, groups=bags):
        assert_array_equal(np.sort(np.r_[train, test]), np.arange(len(bags)))
        assert (folds[test] == -1).all()
        folds[test] = len(counts)
        counts.append([np.sum(bags[test] == b) for b in np.unique(bags)])
    counts = np.array(counts)
    if not shuffle:  # in turn, as the instances come
        in_turn = np.argsort(pd.factorize(bags)[0], kind="stable")
        assert_array_equal(folds[in_turn], np.arange(len(bags)) % k)
    assert (np.ptp(counts, axis=0) <= 1).all()  # in each bag
    # small bags do not all meet in the first folds
    assert np.ptp(counts.sum(axis=1)) <= 1
    assert len(counts) == splitter.get_n_splits() == k


@pytest.mark.parametrize("draw, value", [(ms.split_bag_folds, 2), (ms.bag_part, 0.5)])
def test_parts_pair_any_two_instances_of_a_bag(draw, value):
    codes, together = np.repeat([0, 1], 4), np.zeros((8, 8))
    for seed in range(600):
        part = draw(codes, value, np.random.RandomState(seed))
        together += part[:, None] == part[None, :]
    inside = codes[:, None] == codes[None, :]
    assert_allclose(together[inside & ~np.eye(8, dtype=bool)] / 600, 1 / 3, atol=0.08)


@pytest.mark.equation("eq-ms-part")
@examples
@given(bag_columns(), st.floats(0.05, 0.95), st.integers(0, 99))
def test_parts_of_bags_keep_the_share_up_to_one_instance(bags, share, seed):
    codes = pd.factorize(bags)[0]
    part = ms.bag_part(codes, share, np.random.RandomState(seed))
    for k, size in enumerate(np.bincount(codes)):
        assert abs(part[codes == k].sum() - share * size) < 1 + 1e-9
    assert abs(part.sum() - share * len(codes)) < 1 + 1e-9


def test_each_instance_validates_as_often_as_its_share_says():
    bags, hits = np.repeat([0, 1, 2], [1, 2, 6]), np.zeros(9)
    splitter = SplitBagShuffle(4000, test_size=0.3, random_state=0)
    for train, test in splitter.split(bags, groups=bags):
        assert not set(train) & set(test) and len(train) + len(test) == 9
        hits[test] += 1
    assert_allclose(hits / 4000, 0.3, atol=0.03)
    drawn = ms._splitters.draw_from_bags(
        np.array([1, 0, 1, 2, 0]), np.array([6000, 4000, 0]), np.random.RandomState(0)
    )
    assert_allclose(np.bincount(drawn, minlength=5) / 1000, [2, 3, 2, 0, 3], atol=0.15)


@pytest.mark.parametrize("size, part", [(0.01, "validation"), (0.99, "training")])
@pytest.mark.parametrize("splitter", [SplitBagShuffle, SplitBagBootstrap])
def test_a_split_without_a_part_says_which(splitter, size, part):
    splits = splitter(1, test_size=size, random_state=0).split([0] * 3, groups=[0] * 3)
    with pytest.raises(ValueError, match=rf"\)? leaves no {part} part of 3 instances"):
        list(splits)


def test_defaults_and_limits_of_splitters():
    for splitter in (FullBagKFold, SplitBagKFold, SplitBagShuffle, SplitBagBootstrap):
        assert splitter().n_splits == splitter().get_n_splits() == 5
        assert splitter(n_splits=2).random_state is None
        if hasattr(splitter(), "test_size"):
            assert splitter(1).test_size == 0.5 and splitter(1).n_splits == 1
            for none in (0, 1.0):
                with pytest.raises(ValueError, match=f"between 0 and 1, got {none}"):
                    splitter(test_size=none)
        else:
            with pytest.raises(ValueError, match=r"n_splits must be .* 2"):
                splitter(1)
    assert SplitBagKFold().shuffle and not SplitBagBootstrap().out_of_bag
    assert FullBagKFold().proportions is None


@examples
@given(bag_columns(), st.integers(0, 99), st.booleans())
def test_bootstrap_draws_from_the_right_bags(bags, seed, out_of_bag):
    splitter = SplitBagBootstrap(3, test_size=0.4, out_of_bag=out_of_bag, random_state=seed)  # fmt: skip
    names, sizes = np.unique(bags, return_counts=True)
    try:
        splits = list(splitter.split(bags, groups=bags))
    except ValueError as error:
        assert len(bags) < 4 and "leaves no" in str(error)
        return
    for train, test in splits:
        for name, size in zip(names, sizes, strict=True):
            drawn, held = np.sum(bags[train] == name), np.sum(bags[test] == name)
            assert abs(drawn - 0.6 * size) < 1 + 1e-9
            assert out_of_bag or drawn + held == size
        if out_of_bag:  # what does not train, each once
            assert_array_equal(test, np.setdiff1d(np.arange(len(bags)), train))


def test_parts_of_the_bootstrap_overlap_by_about_forty_per_cent():
    bags = np.repeat(np.arange(6), 200)
    splits = SplitBagBootstrap(100, random_state=0).split(bags, groups=bags)
    overlap = [np.isin(np.unique(test), train).mean() for train, test in splits]
    assert np.mean(overlap) == pytest.approx(1 - (1 - 1 / 200) ** 100, abs=0.01)


@examples
@given(bag_columns(), st.integers(2, 12), st.integers(0, 99), st.booleans())
def test_whole_bags_stay_whole_and_no_fold_is_empty(bags, k, seed, told):
    names = np.unique(bags)
    shares = pd.Series(np.random.RandomState(seed).rand(len(names)), names)
    splitter = FullBagKFold(k, proportions=shares if told else None, random_state=seed)
    if k > len(names):
        with pytest.raises(ValueError, match=f"n_splits={k} must not exceed"):
            list(splitter.split(bags, groups=bags))
        return
    tested = []
    for train, test in splitter.split(bags, groups=bags):
        assert len(test) and not set(bags[train]) & set(bags[test])
        tested.append(test)
    assert_array_equal(np.sort(np.concatenate(tested)), np.arange(len(bags)))
    if not told:  # largest first, each to the lightest: no fold is heavier than another by more than its last bag
        weights = [len(t) for t in tested]
        assert np.ptp(weights) <= pd.Series(bags).value_counts().max()


def test_folds_of_whole_bags_by_size_are_those_of_scikit_learn_where_sizes_differ():
    sizes = np.random.RandomState(0).permutation(np.arange(3, 20))
    bags = np.repeat(np.arange(17), sizes)
    ours = FullBagKFold(4).split(bags, groups=bags)
    theirs = GroupKFold(4).split(bags, groups=bags)
    for (_, test), (_, expected) in zip(ours, theirs, strict=True):
        assert_array_equal(test, expected)
    sizes, folds, held = np.tile([3, 2, 3, 2, 4], 8), np.empty(40, int), np.zeros(3)
    for bag in sorted(
        range(40), key=lambda bag: -sizes[bag]
    ):  # of equal ones the first
        folds[bag] = held.argmin()
        held[held.argmin()] += sizes[bag]
    found = ms._splitters.whole_bag_folds(sizes[:, None].astype(float), 3)
    assert_array_equal(found, folds)


def test_chances_of_the_next_bag():
    counts = np.array([[4.0, 0.0], [2.0, 2.0], [1.0, 3.0]])
    prior = np.array([7.0, 5.0]) / 12
    chances = ms._splitters.next_bag_chances
    # an empty fold, and one short of positives: by the squared number of positives
    for held in ([0, 0], [3, 1]):
        assert_allclose(chances(counts, np.array(held), prior), [0, 4 / 13, 9 / 13])
    assert_allclose(chances(counts, np.array([1, 3]), prior), [16 / 21, 4 / 21, 1 / 21])
    # no positives are left
    assert_allclose(chances(counts[:1], np.array([3, 1]), prior), [1])
    three = np.array([[3.0, 0, 0], [0, 1.0, 2.0]])
    slow = []
    for row in three:
        mixed = row + np.array([1, 1, 0])
        mixed = mixed / mixed.sum()
        slow.append(np.exp(-np.sqrt(((mixed - [0.6, 0.3, 0.1]) ** 2).sum())))
    found = chances(three, np.array([1, 1, 0]), np.array([0.6, 0.3, 0.1]))
    assert_allclose(found, slow / np.sum(slow))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("seed", range(5))
def test_whole_bags_are_drawn_by_their_chances(n_classes, seed):
    """The rule bag by bag: the counts of bags of other sizes, in the order in which bags come, shares by their keys."""
    rng, names = np.random.RandomState(3), np.random.RandomState(5).permutation(12)
    bags, P = np.repeat(names, rng.randint(1, 9, 12)), rng.dirichlet(np.ones(n_classes), 12)  # fmt: skip
    order = pd.unique(bags)
    shares = pd.DataFrame(P, names).sample(frac=1, random_state=0)
    shares.loc[99] = np.nan  # a bag without instances
    counts = np.array([(bags == b).sum() * shares.loc[b] for b in order])
    rng, left, folds = np.random.RandomState(seed), [*range(12)], np.full(12, -1)
    while left:
        held = np.array([counts[folds == f].sum(axis=0) for f in range(4)])
        fold, prior = held.sum(axis=1).round(6).argmin(), counts.sum(axis=0) / len(bags)
        chances = ms._splitters.next_bag_chances(counts[left], held[fold], prior)
        folds[left.pop(rng.choice(len(left), p=chances))] = fold
    found = FullBagKFold(4, proportions=shares, random_state=seed).split(bags, groups=bags)  # fmt: skip
    for fold, (_, test) in enumerate(found):
        assert_array_equal(test, np.flatnonzero(np.isin(bags, order[folds == fold])))


@pytest.mark.parametrize("splitter", [
    FullBagKFold(3, random_state=0), FullBagKFold(3, proportions=np.linspace(0, 1, 9), random_state=0),
    SplitBagKFold(3, random_state=0), SplitBagShuffle(3, random_state=0), SplitBagBootstrap(3, random_state=0),
    SplitBagBootstrap(3, out_of_bag=True, random_state=0),
], ids=str)  # fmt: skip
def test_protocol_of_splitters(splitter):
    bags = np.arange(45) % 9
    first, again = (list(splitter.split(np.empty((45, 2)), groups=bags)) for _ in "12")
    for a, b in zip(first, again, strict=True):  # the same seed, the same splits
        assert_array_equal(a[0], b[0])
        assert_array_equal(a[1], b[1])
    assert splitter.get_n_splits(None, None, bags) == len(first) == 3
    copied = pickle.loads(pickle.dumps(splitter))
    assert str(copied) == str(splitter)
    copied.random_state = 1
    other = list(copied.split(np.empty((45, 2)), groups=bags))
    same = all(np.array_equal(a[1], b[1]) for a, b in zip(first, other, strict=True))
    assert same == (str(splitter) == str(FullBagKFold(3, random_state=0)))  # by sizes
    if getattr(splitter, "proportions", None) is None:
        names = np.array(list("ihgfedcba"))[bags]  # renamed, in another order
        for a, b in zip(first, splitter.split(names, groups=names), strict=True):
            assert_array_equal(a[1], b[1])
    frame = pd.DataFrame(index=range(45))
    with pytest.raises(ValueError, match="index differs"):
        next(splitter.split(frame, groups=pd.Series(bags, range(45, 0, -1))))


# --- scores ----------------------------------------------------------------------------------------------------------


@pytest.mark.equation("eq-ms-expected")
@pytest.mark.parametrize("part, size, positives", [(2, 4, 1), (3, 3, 2), (1, 1, 1)])
def test_expected_squared_error_equals_enumeration(part, size, positives):
    fn, fp, p = 0.3, 0.15, positives / size
    y = np.arange(size) < positives
    total = 0.0
    parts = list(combinations(range(size), part))
    for rows in parts:
        for flips in product([0, 1], repeat=part):
            rate = np.where(y[list(rows)], fn, fp)
            chance = np.prod(np.where(flips, rate, 1 - rate))
            predicted = np.mean(y[list(rows)] ^ np.array(flips, dtype=bool))
            total += chance * (predicted - p) ** 2 / len(parts)
    found = ms.expected_squared_error(p, fn, fp, part, size)
    assert found == pytest.approx(total)


def slow_counts(s):
    """All labelings, one by one."""
    found = np.zeros(len(s) + 1)
    for labels in product([0, 1], repeat=len(s)):
        found[sum(labels)] += np.prod(np.where(labels, s, 1 - np.asarray(s)))
    return found


def test_distribution_of_counts_equals_enumeration():
    rng = np.random.RandomState(0)
    bags = np.array([2, 0, 2, 2, 0, 2, 3])
    s = rng.rand(7)
    found = ms.count_distribution(s, bags, 4)
    assert found.shape == (4, 5)
    for k in range(4):
        slow = slow_counts(s[bags == k])
        assert_allclose(found[k, : len(slow)], slow, atol=1e-15)
        assert_allclose(found[k, len(slow) :], 0)


@pytest.mark.equation("eq-ms-likelihood")
def test_log_likelihood_of_whole_bags_and_of_parts():
    rng = np.random.RandomState(1)
    bags, s = np.repeat([0, 2], [3, 5]), rng.uniform(0.1, 0.9, 8)
    P = np.array([[1 / 3, 2 / 3], [0.5, 0.5], [0.8, 0.2]])
    probabilities = np.column_stack([1 - s, s])
    exact = [np.log(slow_counts(s[:3])[2]), np.log(slow_counts(s[3:])[1])]
    found = ms.count_log_likelihood(probabilities, bags, P)
    assert found == pytest.approx(np.mean(exact))
    # of a part: that the predicted count and what it may be are equal
    sizes = np.array([9, 4, 10])
    expected = []
    for k, rows in ((0, slice(0, 3)), (2, slice(3, 8))):
        m, positives = len(s[rows]), round(sizes[k] * P[k, 1])
        chances = hypergeom(sizes[k], positives, m).pmf(np.arange(m + 1))
        expected.append(np.log(chances @ slow_counts(s[rows])))
    found = ms.count_log_likelihood(probabilities, bags, P, bag_sizes=sizes)
    assert found == pytest.approx(np.mean(expected))


def test_the_normal_form_has_the_moments_of_the_exact_one():
    """On bags so small that each part of the variance shows."""
    rng = np.random.RandomState(2)
    s, bags, sizes = rng.rand(6), np.repeat([0, 1], 3), np.array([5, 4])
    known = hypergeom(sizes, np.array([2, 1]), 3)
    variance = np.bincount(bags, s * (1 - s)) + known.var() + 1 / 12
    expected = norm.logpdf(np.bincount(bags, s), known.mean(), np.sqrt(variance))
    parts, positives = np.array([3, 3]), np.array([2, 1])
    assert_allclose(ms._scorers.normal_score(s, bags, parts, sizes, positives), expected)  # fmt: skip


@pytest.mark.parametrize("size, form", [(500, "exact_score"), (501, "normal_score")])
def test_up_to_500_instances_counts_are_exact_and_rounded(size, form):
    rng = np.random.RandomState(6)
    s, one, sizes = rng.rand(size), np.zeros(size, int), np.array([size])
    count = 145 if size == 501 else 286
    # a share that comes back as a count a little too small
    P = np.array([[1 - count / size, count / size - 1e-9]])
    found = ms.count_log_likelihood(np.column_stack([1 - s, s]), one, P)
    expected = getattr(ms._scorers, form)(s, one, sizes, sizes, np.array([count]))
    assert found == pytest.approx(expected[0], abs=1e-12)
    # beside a part of a larger bag, which is small
    both, s = np.append(one, [1, 1, 1]), np.append(s, [0.2, 0.4, 0.9])
    Q, whole = np.vstack([[0.25, 0.75], P]), np.array([800, size])
    found = ms.count_log_likelihood(np.column_stack([1 - s, s]), 1 - both, Q, bag_sizes=whole)  # fmt: skip
    about = (np.array([x]) for x in (3, 800, 600))
    small = ms._scorers.exact_score(s[-3:], np.zeros(3, int), *about)
    assert found == pytest.approx((expected[0] + small[0]) / 2, abs=1e-12)


class Fixed(BagMeanRegression):
    """Predicts what it is told, with or without probabilities."""

    def __init__(self, scores=(), classes=(0, 1)):
        self.scores, self.classes_ = scores, np.array(classes)
        self.n_features_in_ = 1

    def predict(self, X):
        return self.classes_[(np.asarray(self.scores)[: len(X)] > 0.5).astype(int)]


class FixedProbabilities(Fixed):
    def predict_proba(self, X):
        s = np.asarray(self.scores)[: len(X)]
        return np.column_stack([1 - s, s])


def test_shares_are_mean_probabilities_where_there_are_any():
    s, bags = np.array([0.9, 0.2, 0.6, 0.7, 0.4, 0.8]), [0, 0, 2, 2, 2, 2]
    p = [0.5, np.nan, 0.25]
    X, hard, soft = np.zeros((6, 1)), Fixed(s), FixedProbabilities(s)
    given_, sizes = np.array([[0.5, 0.5], [0.75, 0.25]]), np.array([2, 4])
    means = np.array([[0.45, 0.55], [0.375, 0.625]])
    labels = np.array([[0.5, 0.5], [0.25, 0.75]])
    prior = sizes / 6 @ given_
    errors = {
        "mae": lambda a, b, n: np.mean(np.abs(a - b)),
        "weighted_mae": lambda a, b, n: n / 6 @ np.abs(a - b)[:, 1],
        "mse": lambda a, b, n: np.mean((a - b) ** 2),
        "weighted_mse": lambda a, b, n: np.mean(np.outer(n / 6, prior) * (a - b) ** 2),
        "regression": ms._scorers.regression_error,
    }
    assert {*errors} == {*ms._scorers.ERRORS}
    for name, error in errors.items():
        of_labels = proportion_scorer(p, error=name, soft=False)(hard, X, bags)
        assert of_labels == proportion_scorer(p, error=name)(hard, X, bags)
        assert of_labels == proportion_scorer(p, error=name, soft=False)(soft, X, bags)
        assert of_labels == pytest.approx(-error(given_, labels, sizes), abs=1e-11)
        of_means = proportion_scorer(p, error=name, soft=True)(soft, X, bags)
        assert of_means == pytest.approx(-error(given_, means, sizes), abs=1e-11)
        default = of_labels if name == "regression" else of_means
        assert proportion_scorer(p, error=name)(soft, X, bags) == default
    own = proportion_scorer(p, error=lambda a, b, n: np.abs(a - b)[:, 1].sum())
    assert own(soft, X, bags) == pytest.approx(-0.425)
    own = proportion_scorer(p, error=lambda a, b, bag_sizes: float(bag_sizes @ [1, 10]))
    assert own(hard, X, bags) == -42
    # the likelihood of labels, though there are probabilities
    likelihood = proportion_scorer(p, error="log_likelihood", soft=False)
    assert likelihood(soft, X, bags) == likelihood(hard, X, bags)


def all_partitions(instances, sizes):
    """Every way to deal instances to bags of given sizes."""
    if not sizes:
        yield []
        return
    for first in combinations(sorted(instances), sizes[0]):
        for rest in all_partitions(instances - set(first), sizes[1:]):
            yield [first, *rest]


@pytest.mark.parametrize("sizes", [(2, 2, 2), (1, 2, 3), (4, 2), (1,) * 4])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("part", [1, 9])
def test_the_unbiased_error_is_unbiased_over_all_bags_of_a_population(
    sizes, n_classes, part
):
    n = sum(sizes)
    y, z = np.arange(n) ** 2 % 5 % n_classes, np.arange(n) % n_classes
    hits, errors, rates = np.zeros((n, n_classes)), [], []
    for dealt in all_partitions(set(range(n)), list(sizes)):
        bags = np.empty(n, dtype=int)
        for k, members in enumerate(dealt):
            bags[list(members)] = k
        P = label_proportions(y, bags, classes=range(n_classes))
        weights = ms._scorers.unbiased_weights(P, np.array(sizes))
        assert_allclose(weights.sum(axis=1), 1)
        hits += weights[bags]
        # score at most so many instances of each bag: the first ones
        rank = np.array([np.sum(bags[:i] == bags[i]) for i in range(n)])
        seen = rank < part
        shares = label_proportions(z[seen], bags[seen], n_bags=len(P), classes=range(n_classes))  # fmt: skip
        counts = np.bincount(bags[seen], minlength=len(P))
        errors.append(ms._scorers.unbiased_error(P, shares, counts, np.array(sizes)))
        rates.append(np.mean(z[seen] != y[seen]))
    assert_allclose(hits / len(errors), np.eye(n_classes)[y], atol=1e-12)
    if part == 9:
        assert np.mean(errors) == pytest.approx(rates[0])
    if set(sizes) == {1}:  # of labels known one by one it is the error rate itself
        assert_allclose(errors, rates)


def test_one_bag_says_no_more_than_its_share():
    P, sizes = np.array([[0.25, 0.75], [np.nan, np.nan]]), np.array([4, 0])
    weights = ms._scorers.unbiased_weights(P, sizes)
    assert_allclose(weights[0], P[0])
    predicted = np.array([[0.5, 0.5], [np.nan, np.nan]])
    assert ms._scorers.unbiased_error(P, predicted, sizes, sizes) == pytest.approx(0.5)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_regression_finds_error_rates_that_are_the_same_in_all_bags(n_classes):
    rng = np.random.default_rng(n_classes)
    P, sizes = rng.dirichlet(np.ones(n_classes), 7), rng.integers(1, 30, 7)
    turns = rng.dirichlet(np.ones(n_classes), n_classes)  # row: true, column: predicted
    prior = sizes @ P / sizes.sum()
    error = ms._scorers.regression_error(P, P @ turns, sizes)
    assert error == pytest.approx(1 - prior @ np.diag(turns))
    # two numbers: what lies beside the line does not count, if it is orthogonal
    noise = rng.normal(size=(7, n_classes))
    root = np.sqrt(sizes)[:, None]
    basis = np.linalg.qr(root * P)[0]
    noise = (noise - basis @ (basis.T @ noise)) / root
    assert ms._scorers.regression_error(P, P @ turns + noise, sizes) == pytest.approx(error)  # fmt: skip


def test_equal_shares_have_no_slope():
    P, sizes = np.tile([0.2, 0.8], (4, 1)), np.full(4, 5)
    q = np.array([0.1, 0.3, 0.9, 0.5])
    found = ms._scorers.regression_error(P, np.column_stack([1 - q, q]), sizes)
    m = q.mean()
    assert found == pytest.approx(0.8 + m - 2 * 0.8 * m)
    tiny = P + 1e-13 * np.array([[1, -1], [-1, 1], [1, -1], [-1, 1]])
    again = ms._scorers.regression_error(tiny, np.column_stack([1 - q, q]), sizes)
    assert again == pytest.approx(found)


def test_likelihood_scorer_with_and_without_probabilities():
    s, bags = np.array([0.9, 0.2, 0.6, 0.7, 0.4, 0.8]), [0, 0, 2, 2, 2, 2]
    p = [0.5, np.nan, 0.25]
    X, scorer = np.zeros((6, 1)), proportion_scorer(p, error="log_likelihood")
    exact = np.log(slow_counts(s[:2])[1]) + np.log(slow_counts(s[2:])[1])
    assert scorer(FixedProbabilities(s), X, bags) == pytest.approx(exact / 2, abs=1e-11)
    # impossible under the model, yet finite: no probability is below 1e-6
    sure = FixedProbabilities(np.zeros(6))
    exact = np.log(2e-6) + np.log(4e-6)
    assert scorer(sure, X, bags) == pytest.approx(exact / 2, abs=1e-5)
    # labels err at the rate that is most likely; sizes of whole bags reach the scores
    whole, codes = np.array([4, 0, 8]), np.asarray(bags)
    P = np.column_stack([1 - np.nan_to_num(p), np.nan_to_num(p)])
    labels, t = [[0.5, 0.5], [0, 0], [0.25, 0.75]], (s > 0.5)[:, None] == [0, 1]
    rate = ms._scorers.unbiased_error(P, np.array(labels), np.array([2, 0, 4]), whole)
    of_parts = proportion_scorer(p, error="unbiased", bag_sizes=whole)
    assert of_parts(Fixed(s), X, bags) == pytest.approx(-rate, abs=1e-11)
    for sizes in (None, whole):
        found = [
            ms.count_log_likelihood(np.where(t, 1 - r, r), codes, P, bag_sizes=sizes)
            for r in (0.01, 0.02, *np.arange(1, 11) / 20)
        ]
        assert np.argmax(found) > 2
        scorer = proportion_scorer(p, error="log_likelihood", bag_sizes=sizes)
        assert scorer(Fixed(s), X, bags) == pytest.approx(max(found), abs=1e-11)


def test_keys_sizes_and_classes_are_matched_by_name():
    s, names = [0.9, 0.2, 0.6, 0.7], np.array(["v", "v", "u", "u"])
    table = pd.DataFrame({"yes": [1.0, 0.5], "no": [0.0, 0.5]}, ["u", "v"])
    model = FixedProbabilities(s, classes=["no", "yes"])  # columns in another order
    X = np.zeros((4, 1))
    assert proportion_scorer(table, soft=False)(model, X, names) == 0
    assert proportion_scorer(table)(model, X, names) == pytest.approx(-0.2)
    sizes = pd.Series({"v": 4, "u": 8})
    codes, P = np.array([1, 1, 0, 0]), np.array([[0.0, 1.0], [0.5, 0.5]])
    direct = ms.count_log_likelihood(model.predict_proba(X), codes, P, bag_sizes=np.array([8, 4]))  # fmt: skip

    def scored(sizes, shares=table, bags=names, model=model):
        scorer = proportion_scorer(shares, error="log_likelihood", bag_sizes=sizes)
        return scorer(model, X, bags)

    assert scored(sizes) == scored(dict(sizes)) == pytest.approx(direct, abs=1e-11)
    more = pd.concat([table, pd.DataFrame({"yes": 0.5, "no": 0.5}, ["w"])])
    assert scored(dict(sizes) | {"w": np.nan}, more) == scored(sizes)  # nobody of w
    exactly = pd.Series({"v": 2, "u": 2})
    assert scored(exactly) == scored(None)
    with pytest.raises(ValueError, match="got 1 for bag 1, of which 2 instances"):
        scored([8, 1], P, codes, FixedProbabilities(s))
    for wrong, shown in (
        (sizes.replace(4, -4), "-4"),
        (sizes.replace(4, 1), "1"),
        (sizes.replace(4, np.nan), "nan"),
    ):
        with pytest.raises(ValueError, match=f"got {shown} for bag 'v', of which 2"):
            scored(wrong)
    for wrong in ((sizes.drop("v"),), (sizes, P, codes)):
        with pytest.raises(ValueError, match="bag_sizes is matched by its keys"):
            scored(*wrong)
    # Beside an array of proportions the keys are its row numbers, in any order.
    turned, plain = pd.Series([4, 8], [1, 0]), FixedProbabilities(s)
    assert scored(turned, P, codes, plain) == scored([8, 4], P, codes, plain)
    with pytest.raises(ValueError, match="one size for each of the 2 rows"):
        scored([1, 2, 3])
    for other in (np.full((2, 3), 1 / 3), pd.DataFrame(np.eye(2), columns=["a", "b"])):
        with pytest.raises(ValueError, match="proportions has the classes"):
            proportion_scorer(other)(model, X, codes)


def test_scorers_name_what_is_wrong():
    with pytest.raises(ValueError, match="bag_sizes are for error='log_like"):
        proportion_scorer([0.5], error="regression", bag_sizes=[3])
    assert repr(proportion_scorer(None, error="mse")) == "ProportionScorer('mse')"
    with pytest.raises(ValueError, match="soft must be None, True or False, got 'yes'"):
        proportion_scorer([0.5], soft="yes")
    X = np.zeros((2, 1))
    with pytest.raises(
        ValueError, match=r"soft=True .* predict_proba, which Fixed has not"
    ):
        proportion_scorer([0.5], soft=True)(Fixed([0.1, 0.9]), X, [0, 0])


def test_ties_are_ties_whatever_the_order_of_the_splits():
    X, bags, scores = np.zeros((10, 1)), np.zeros(10, int), []
    for positives in (4, 3, 2):
        model = Fixed(np.arange(10) < positives)
        scores.append(proportion_scorer([0.5])(model, X, bags))
    assert_allclose(scores, [-0.1, -0.2, -0.3], atol=1e-11)
    a, b, c = scores
    assert (a + b) + c == a + (b + c)
    assert all((2**40 * score).is_integer() for score in scores)  # exact in any order


def test_labels_of_three_classes_err_at_the_most_likely_rate():
    class Three(BagMeanRegression):
        classes_, n_features_in_ = np.arange(3), 1

        def predict(self, X):
            return np.array([2, 0, 2])

    P = np.array([[1, 0, 2]]) / 3
    found = proportion_scorer(P, error="log_likelihood")(Three(), np.zeros((3, 1)), [0] * 3)  # fmt: skip
    expected = []
    for rate in (0.01, 0.02, *np.arange(1, 11) / 20):
        Q = np.full((3, 3), rate / 2)
        Q[[0, 1, 2], [2, 0, 2]] = 1 - rate
        each = (np.log(slow_counts(Q[:, j])[c]) for j, c in enumerate((1, 0, 2)))
        expected.append(sum(each))
    assert found == pytest.approx(max(expected), abs=1e-11)


# --- searches --------------------------------------------------------------------------------------------------------


def mean_scores(search):
    return search.cv_results_["mean_test_score"]


GRID = {"alpha": [1.0, 30.0, 1000.0]}
SPLITTERS = [
    FullBagKFold(4),
    SplitBagKFold(4, random_state=0),
    SplitBagShuffle(3, random_state=0),
    SplitBagBootstrap(3, random_state=0),
]


@pytest.mark.equation("eq-ms-select")
@pytest.mark.parametrize("splitter", SPLITTERS, ids=lambda s: type(s).__name__)
@pytest.mark.parametrize("error", ["mae", "weighted_mae", "log_likelihood"])
def test_search_is_algorithm_1_and_scikit_learns_grid_search(splitter, error):
    X, _, bags, p = problem()
    sizes = np.bincount(bags) if error == "log_likelihood" else None
    scorer = proportion_scorer(p, error=error, bag_sizes=sizes)
    splits, settings_ = list(splitter.split(X, groups=bags)), list(ParameterGrid(GRID))
    best, errors = ms.select_setting(MeanMap(), settings_, splits, (X, bags, p), scorer)
    ours = LLPGridSearchCV(MeanMap(), GRID, scoring=error, cv=splitter)
    ours.fit(X, bags, p)
    theirs = GridSearchCV(MeanMap(), GRID, scoring=scorer, cv=splitter)
    theirs.fit(X, bags, groups=bags, proportions=p)
    assert ours.best_params_ == theirs.best_params_ == best
    for search in (ours, theirs):
        for s in range(len(splits)):
            found = search.cv_results_[f"split{s}_test_score"]
            assert_allclose(-found, errors[:, s], atol=1e-11)
    refit = MeanMap(**best).fit(X, bags, p)
    assert_allclose(ours.best_estimator_.coef_, refit.coef_)
    scores = cross_val_score(
        MeanMap(**best), X, bags, groups=bags, scoring=scorer, cv=splitter,
        params={"proportions": p},
    )  # fmt: skip
    assert scores.mean() == pytest.approx(ours.best_score_)


class Spy(MeanMap):
    """Remembers all that reaches it."""

    calls: list = []

    def fit(self, X, bags, proportions, labels=None):
        Spy.calls.append((X, bags, proportions, labels))
        return super().fit(X, bags, proportions, labels)


def test_a_search_sees_bags_and_whole_proportions_only():
    X, y, bags, p = problem()
    X = np.column_stack([np.arange(len(X)) / 100, X])
    cv, some = SplitBagKFold(3, random_state=0), np.where(np.arange(len(y)) % 3, -1, y)
    for known in (some, None):
        Spy.calls = []
        search = LLPGridSearchCV(Spy(), {"alpha": [1e3, 1e5]}, cv=cv)
        search.fit(X, bags, p, known)
        assert len(Spy.calls) == 7
        for rows, codes, shares, labels in Spy.calls:
            at = np.round(100 * rows[:, 0]).astype(int)
            assert shares is p and (labels is None) == (known is None)
            assert_array_equal(codes, bags[at])
            assert known is None or (labels == known[at]).all()
    assert search.score(X, y) == search.best_estimator_.score(X, y) > 0.6
    with pytest.raises(ValueError, match="none of the classes"):
        search.score(X, bags)
    for given_ in ((bags,), (bags, 30, True)):
        shares = search.best_estimator_.predict_proportions(X, *given_)
        assert_array_equal(search.predict_proportions(X, *given_), shares)


@pytest.mark.parametrize("order", ["same", "another"])
@pytest.mark.parametrize("form", ["array", "series", "dict", "frame", "extra rows"])
def test_proportions_as_long_as_x_are_not_cut(form, order):
    X, y, *_ = problem(n=40)
    bags, p = np.arange(40), np.empty(40)
    bags = bags if order == "same" else np.random.RandomState(0).permutation(40)
    p[bags] = y
    if form == "extra rows":  # as many as instances, but half of the bags are empty
        bags = bags // 2
        p = np.append(label_proportions(y, bags)[:, 1], np.full(20, np.nan))
    names = np.array([f"b{k}" for k in range(40)])
    given_ = {
        "array": p, "extra rows": p, "series": pd.Series(p, names), "dict": dict(zip(names, p, strict=True)),
        "frame": pd.DataFrame({"no": 1 - p, "yes": p}, names),
    }[form]  # fmt: skip
    codes = bags if form in ("array", "extra rows") else names[bags]
    search = LLPGridSearchCV(MeanMap(), GRID, scoring="mae", cv=4)
    search.fit(X, codes, given_)
    splits = list(SplitBagKFold(4, random_state=0).split(X, groups=bags))
    task, settings_ = (X, bags, p), list(ParameterGrid(GRID))
    scorer = proportion_scorer(p)
    best, errors = ms.select_setting(MeanMap(), settings_, splits, task, scorer)
    assert search.best_params_ == best
    assert_allclose(-mean_scores(search), errors.mean(axis=1))


def test_names_of_bags_and_a_pipeline():
    X, _, bags, p = problem()
    names = np.array([f"county {k}" for k in range(20)])
    keyed = pd.Series(p, names).sample(frac=1, random_state=0)
    pipe = make_pipeline(StandardScaler(), MeanMap())
    grid = {"meanmap__alpha": GRID["alpha"]}
    named = LLPGridSearchCV(pipe, grid, cv=4).fit(X, names[bags], keyed)
    table = named.predict_proportions(X, names[bags])
    assert list(table.index) == list(keyed.index)
    with sklearn.config_context(enable_metadata_routing=True):
        routed = LLPGridSearchCV(pipe, grid, cv=4).fit(X, bags, p)
    assert_allclose(mean_scores(named), mean_scores(routed))
    assert_array_equal(named.predict(X), routed.predict(X))


@pytest.mark.parametrize("error", ["mae", "log_likelihood", "unbiased"])
def test_a_scorer_without_proportions_gets_those_of_the_search(error):
    X, _, bags, p = problem()
    sizes = None if error == "mae" else np.bincount(bags)
    scores = []
    for scorer in (
        proportion_scorer(None, error=error, soft=False),
        proportion_scorer(p, error=error, bag_sizes=sizes, soft=False),
    ):
        search = LLPGridSearchCV(MeanMap(), GRID, scoring=scorer, cv=4).fit(X, bags, p)
        scores.append(mean_scores(search))
    assert_array_equal(*scores)
    with pytest.raises(ValueError, match="proportions"):
        proportion_scorer(None, error=error)(search.best_estimator_, X, bags)


@pytest.mark.parametrize("scoring", [make_scorer(accuracy_score), {"a": "roc_auc"}])
def test_a_score_that_compares_with_bags_is_refused(scoring):
    X, _, bags, p = problem()
    words = r"scoring must compare proportions.*proportion_scorer"
    with pytest.raises(ValueError, match=words):
        LLPGridSearchCV(MeanMap(), GRID, scoring=scoring).fit(X, bags, p)


def test_a_randomized_search_draws_from_the_same_scores():
    X, _, bags, p = problem()
    grid = LLPGridSearchCV(MeanMap(), GRID, cv=4).fit(X, bags, p)
    drawn = LLPRandomizedSearchCV(MeanMap(), GRID, n_iter=3, cv=4, random_state=0)
    drawn.fit(X, bags, p)
    assert drawn.best_params_ == grid.best_params_
    assert_allclose(np.sort(mean_scores(drawn)), np.sort(mean_scores(grid)))


def test_jobs_progress_defaults_and_clones():
    X, _, bags, p = problem()
    plain = LLPGridSearchCV(MeanMap(), GRID, scoring="mae").fit(X, bags, p)
    assert plain.n_splits_ == 5 and plain.cv is None
    out = io.StringIO()
    with contextlib.redirect_stdout(out), parallel_config("threading"):
        parallel = clone(plain).set_params(verbose=1, n_jobs=2).fit(X, bags, p)
    assert "Fitting 5 folds" in out.getvalue()
    assert_array_equal(mean_scores(plain), mean_scores(parallel))
    two = clone(plain).set_params(scoring=["mae", "mse"], refit="mae")
    wanted = two.fit(X, bags, p).majority_score_
    assert two.fit(X, bags, p[::-1]).majority_score_ != wanted
    assert two.fit(X, bags, p).majority_score_ == wanted
    with pytest.warns(base.LLPWarning, match="no better than the majority"):
        first = LLPGridSearchCV(MajorityClass(), {}, cv=3).fit(X, bags, p)
    assert first.majority_score_ == first.best_score_
    unfit = LLPGridSearchCV(MeanMap(), GRID, refit=False, cv=3).fit(X, bags, p)
    assert not hasattr(unfit, "best_estimator_")
    assert unfit.best_params_ in list(ParameterGrid(GRID))


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("cv", [4, SplitBagShuffle(3), FullBagKFold(4)])
def test_the_score_of_the_majority_is_under_the_same_splits(named, cv):
    X, _, bags, p = problem()
    names = np.array([f"county {k}" for k in range(20)])
    given_ = (names[bags], pd.Series(p, names)) if named else (bags, p)
    frame = pd.DataFrame({"word": np.where(X[:, 0] > 1, "a", "b")})  # no numbers
    pipe = make_pipeline(OneHotEncoder(), MeanMap())
    errors = ["mae", "log_likelihood", "regression"]
    search = LLPGridSearchCV(pipe, {"meanmap__alpha": [10.0]}, scoring=errors, refit="mae", cv=cv)  # fmt: skip
    search.fit(frame, *given_)
    by_hand = LLPGridSearchCV(MajorityClass(), {}, scoring=errors, refit=False, cv=cv)
    by_hand.fit(X, *given_)
    if not isinstance(cv, SplitBagShuffle):  # whose splits are drawn anew
        for error in errors:
            expected = by_hand.cv_results_[f"mean_test_{error}"][0]
            assert search.majority_score_[error] == expected
    assert search.best_score_ > search.majority_score_["mae"]


@pytest.mark.parametrize("scoring", ["mae", "log_likelihood", "pooled_mae"])
def test_labels_are_compared_with_the_labels_of_the_majority(scoring):
    """Where the winner has no probabilities, those of the majority class do not count either."""
    X, _, bags, p = problem()
    cv, error = SplitBagKFold(4, random_state=0), scoring.removeprefix("pooled_")
    sizes = np.bincount(bags) if error == "log_likelihood" else None
    scorer = proportion_scorer(p, error=error, bag_sizes=sizes, soft=False)
    parts = [test for _, test in cv.split(X, None, bags)]
    parts = [slice(None)] if scoring != error else parts
    larger = MajorityClass().fit(X, bags, p)
    by_hand = np.mean([scorer(larger, X[test], bags[test]) for test in parts])
    with warnings.catch_warnings(action="ignore"):
        own = BagMeanRegression()
        for model, grid in ((own, {}), (make_pipeline(MeanMap()), {"meanmap": [own]})):
            search = LLPGridSearchCV(model, grid, scoring=scoring, cv=cv)
            found = search.fit(X, bags, p).majority_score_
            assert found == pytest.approx(by_hand, abs=1e-9)
    soft = LLPGridSearchCV(MeanMap(), {}, scoring=scoring, cv=cv).fit(X, bags, p)
    assert soft.majority_score_ != pytest.approx(by_hand, abs=1e-6)


def test_a_choice_that_does_not_beat_the_majority_is_told(capsys):
    X, _, bags, p = problem()
    noise = np.random.default_rng(0).normal(size=X.shape)
    weak, order = {"alpha": [1e-3]}, np.argsort(bags)
    two = {"scoring": ["log_likelihood", "mse"], "refit": "log_likelihood"}
    for options, hint in (
        ({}, False), ({"scoring": "log_likelihood"}, True), ({"scoring": "mae", "cv": FullBagKFold(4)}, False),
        (two | {"cv": SplitBagShuffle(2)}, True),
        ({"cv": [(order[18:], order[:18])]}, True),  # one bag is in both parts
    ):  # fmt: skip
        search = LLPGridSearchCV(MeanMap(), weak, **{"cv": 4} | options)
        with pytest.warns(base.LLPWarning) as caught:
            search.fit(noise, bags, p)
        both = f"{search.best_score_:.4g}, that of the majority class {pd.Series(search.majority_score_).iloc[0]:.4g}"
        words = "LLPGridSearchCV chose, {'alpha': 0.001}, is no better than the majority class: its score is "
        (text,) = (str(w.message) for w in caught)
        assert words + both in text and ("parts of small bags" in text) == hint
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = LLPGridSearchCV(MeanMap(), GRID, cv=4, verbose=1).fit(X, bags, p)
    both = f"score is {found.best_score_:.4g}, that of the majority class {found.majority_score_:.4g}"
    assert f"LLPGridSearchCV: the best {both}\n" in capsys.readouterr().out
    many = {"scoring": ["mae", "mse"], "refit": False}
    both = LLPRandomizedSearchCV(MeanMap(), weak, n_iter=1, cv=4, **many)
    with warnings.catch_warnings():  # nobody has chosen
        warnings.simplefilter("error", base.LLPWarning)
        both.fit(noise, bags, p)
    assert both.majority_score_["mae"] < both.majority_score_["mse"] < 0


POOLED_CASES = [
    ("pooled_mae", SplitBagKFold(4, random_state=0)),
    ("pooled_log_likelihood", SplitBagKFold(3, random_state=1)),
    ("pooled_unbiased", FullBagKFold(3)),
]


@pytest.mark.parametrize(
    ("scoring", "cv"), POOLED_CASES, ids=[c[0] for c in POOLED_CASES]
)
@pytest.mark.parametrize("form", ["plain", "named", "singles"])
def test_a_pooled_score_is_that_of_whole_bags_predicted_out_of_fold(scoring, cv, form):
    X, y, bags, p = problem(n=60 if form == "singles" else 240)
    if form == "singles":  # as many rows of proportions as of X
        bags = np.random.default_rng(0).permutation(60)
        p = np.empty(60)
        p[bags] = y
    labels = np.where(np.arange(len(y)) % 7 == 0, y, -1)
    expected = []
    for alpha in GRID["alpha"]:
        s = np.empty(len(X))
        for train, test in cv.split(X, groups=bags):
            model = MeanMap(alpha).fit(X[train], bags[train], p, labels[train])
            s[test] = model.predict_proba(X[test])[:, 1]
        scorer = proportion_scorer(p, error=scoring.removeprefix("pooled_"))
        expected.append(scorer(FixedProbabilities(s), X, bags))
    names = np.array([f"b{k}" for k in range(len(p))])
    given_ = (names[bags], pd.Series(p, names)) if form == "named" else (bags, p)
    frame = pd.DataFrame(X, columns=list("uvw"))
    pipe = make_pipeline(FunctionTransformer(), MeanMap())
    grid = {"meanmap__alpha": GRID["alpha"]}
    for search in (
        LLPGridSearchCV(pipe, grid, scoring=scoring, cv=cv),
        LLPGridSearchCV(pipe, grid, scoring=[scoring], refit=scoring, cv=cv),
    ):
        search.fit(frame, *given_, labels)
        key = "score" if search.scoring == scoring else scoring
        found = search.cv_results_[f"mean_test_{key}"]
        assert_allclose(found, expected, atol=1e-9)
        best = GRID["alpha"][int(np.argmax(expected))]
        assert search.best_params_ == {"meanmap__alpha": best}
        whole = MeanMap(best).fit(X, bags, p, labels)
        assert_allclose(search.best_estimator_[-1].coef_, whole.coef_)
        assert list(search.feature_names_in_) == list("uvw")
    with pytest.warns(base.LLPWarning, match="no better than the majority"):
        alone = LLPGridSearchCV(MajorityClass(), {}, scoring=scoring, cv=cv)
        alone.fit(X, *given_, labels)
    assert search.majority_score_ == {scoring: alone.best_score_}


def test_a_method_without_probabilities_is_pooled_by_its_labels():
    X, _, bags, p = problem()
    search = LLPGridSearchCV(BagMeanRegression(), {}, scoring="pooled_mae", cv=4)
    z = np.empty(240)
    for train, test in SplitBagKFold(4, random_state=0).split(X, groups=bags):
        z[test] = BagMeanRegression().fit(X[train], bags[train], p).predict(X[test])
    expected = np.mean(np.abs(label_proportions(z, bags)[:, 1] - p))
    assert -search.fit(X, bags, p).best_score_ == pytest.approx(expected)


@pytest.mark.parametrize(
    "cv",
    [KFold(3), KFold(3, shuffle=True), LeaveOneOut(), LeavePOut(2), RepeatedKFold(), ShuffleSplit(), TimeSeriesSplit()],
    ids=lambda cv: type(cv).__name__,
)  # fmt: skip
def test_splitters_of_rows_are_refused(cv):
    X, _, bags, p = problem()
    words = re.escape(f"cv={cv} splits rows") + ".* SplitBagKFold.* FullBagKFold"
    for search in (LLPGridSearchCV, LLPRandomizedSearchCV):
        with pytest.raises(ValueError, match=words):
            search(MeanMap(), GRID, cv=cv).fit(X, bags, p)


@pytest.mark.parametrize("name", ["groups", "sample_weight", "meanmap__proportions"])
def test_a_search_names_what_its_fit_takes(name):
    X, _, bags, p = problem()
    for search in (LLPGridSearchCV, LLPRandomizedSearchCV):
        words = rf"{search.__name__}.fit takes no {name}: pass fit\(X, bags, prop"
        with pytest.raises(TypeError, match=words):
            search(MeanMap(), GRID).fit(X, bags, p, **{name: bags})


def test_splits_that_regard_the_bags_are_taken():
    X, _, bags, p = problem()
    later = [bags.max() - 1, bags.max()]
    weeks = [(np.flatnonzero(bags < b), np.flatnonzero(bags == b)) for b in later]
    for cv in (GroupKFold(3), StratifiedKFold(3), weeks):
        search = LLPGridSearchCV(MeanMap(), GRID, cv=cv).fit(X, bags, p)
        assert np.isfinite(search.best_score_)
    for _, test in StratifiedKFold(3).split(X, bags):  # an equal part of each bag
        parts = np.bincount(bags[test], minlength=len(p))
        assert (abs(parts - np.bincount(bags) / 3) < 1).all()


def test_what_cannot_be_pooled_is_refused():
    X, _, bags, p = problem()
    grid = LLPGridSearchCV(MeanMap(), GRID, scoring="pooled_mae")
    rows = np.arange(240)
    for cv, said in (
        (SplitBagShuffle(3, random_state=0), ""),
        ([(rows[:9], rows[9:239])], "0 is held out 0 "),
        ([(rows[1:], rows[:1]), (rows[:1], rows[1:]), (rows[5:], rows[3:5])], "3 is held out 2 "),
        ([(rows[:9], rows[9:]), (rows[9:], rows[:8])], "8 is held out 0 "),
    ):  # fmt: skip
        words = "cv must hold out each instance once.* instance " + said
        with pytest.raises(ValueError, match=words):
            grid.set_params(cv=cv).fit(X, bags, p)
    mixed = {"scoring": ["mae", "pooled_mae"], "refit": "mae", "cv": None}
    with pytest.raises(ValueError, match="scoring must not mix scores that are pooled"):
        grid.set_params(**mixed).fit(X, bags, p)


def test_the_default_score_is_pooled_where_each_instance_is_held_out_once():
    X, _, bags, p = problem()
    for cv, score in (
        (None, "pooled_log_likelihood"),
        (FullBagKFold(4), "pooled_log_likelihood"),
        (SplitBagShuffle(3, random_state=0), "log_likelihood"),
        ([(np.arange(120), np.arange(120, 240))], "log_likelihood"),
        ([(np.arange(120, 240), np.arange(120))], "log_likelihood"),
    ):
        search = LLPGridSearchCV(MeanMap(), GRID, cv=cv).fit(X, bags, p)
        named = clone(search).set_params(scoring=score).fit(X, bags, p)
        assert_array_equal(mean_scores(search), mean_scores(named))


class Fails(MeanMap):
    def fit(self, X, bags, proportions, labels=None):
        if self.alpha == 30.0:
            raise ValueError("cannot")
        return super().fit(X, bags, proportions, labels)


def test_a_value_that_breaks_the_rule_of_its_parameter_is_refused():
    """Of the method, of a step, of an estimator in the grid: before any fit."""
    X, _, bags, p = problem()
    pipe = make_pipeline(StandardScaler(), CountLogistic())
    for grid, words in (
        ({"countlogistic__C": [1.0, -1]}, "'C' parameter of CountLogistic .* Got -1"),
        ({"standardscaler__with_std": [2.5]}, "'with_std' parameter of StandardSc"),
        ({"countlogistic": [MeanMap(), InvCal(-3)]}, "'C_p' .* InvCal .* Got -3"),
    ):
        with pytest.raises(ValueError, match="^The " + words):
            LLPGridSearchCV(pipe, grid).fit(X, bags, p)
    random = LLPRandomizedSearchCV(pipe, {"countlogistic__C": norm(-9)}, n_iter=2)
    with pytest.raises(ValueError, match=r"^The 'C' parameter .* Got .*-"):
        random.fit(X, bags, p)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
@pytest.mark.parametrize("scoring", ["mae", "pooled_mae"])
def test_a_setting_that_fails_is_last_or_raises(scoring):
    X, _, bags, p = problem()
    search = LLPGridSearchCV(Fails(), GRID, scoring=scoring, cv=3)
    with pytest.warns(UserWarning, match="failed|non-finite"):
        search.fit(X, bags, p)
    assert search.best_params_["alpha"] != 30.0
    assert np.isnan(mean_scores(search)[1])
    with pytest.raises(ValueError, match="cannot"):
        search.set_params(error_score="raise").fit(X, bags, p)


def test_a_search_in_which_every_setting_fails_is_refused():
    X, _, bags, _ = problem(n=48)
    # without the last bag, all shares are equal
    search = LLPGridSearchCV(MeanMap(), GRID, scoring="mae", cv=FullBagKFold(4))
    with (
        pytest.warns(sklearn.exceptions.FitFailedWarning),
        pytest.warns(UserWarning, match="non-finite"),
        pytest.raises(ValueError, match=r"no setting has .* the same in every bag"),
    ):
        search.fit(X, bags, [0.5, 0.5, 0.5, 0.25])
    with pytest.raises(ValueError, match=r"All the 3 fits failed.*(?s:.)* the same in every bag"):  # fmt: skip
        clone(search).set_params(scoring=None).fit(X, bags, [0.5, 0.5, 0.5, 0.25])
    for ask in (search.score, search.predict_proportions):
        with pytest.raises(NotFittedError):
            ask(X, bags)
    whole = search.set_params(cv=SplitBagKFold(4)).fit(X, bags, [0.5, 0.5, 0.5, 0.25])
    assert np.isfinite(whole.best_score_)


def test_a_search_of_rows_with_frequencies_is_that_of_expanded_rows():
    X, y, bags, p = uneven_bags(120, size=10)
    counts = np.random.default_rng(0).integers(0, 4, len(X))
    rows = np.repeat(np.arange(len(X)), counts)
    p = label_proportions(y[rows], bags[rows])
    few = np.where(np.arange(len(X)) == rows[0], y, -1)
    frame = pd.DataFrame(X, columns=list("abc"))
    one, other = (
        LLPGridSearchCV(CountLogistic(), {"C": [0.1, 10.0]}, cv=3).fit(*given, **more)
        for given, more in (
            ((frame, bags, p), {"counts": counts, "labels": few}),
            ((frame.iloc[rows], bags[rows], p), {"labels": few[rows]}),
        )
    )
    assert_array_equal(mean_scores(one), mean_scores(other))
    assert_array_equal(one.best_estimator_.coef_, other.best_estimator_.coef_)
    with pytest.raises(ValueError, match="counts must be whole numbers"):
        one.fit(frame, bags, p, counts=counts + 0.5)


# --- a search against itself ------------------------------------------------------------------------------------------


def bags_of_one(n=60):
    """As many bags as instances, in another order than the rows; a number per bag."""
    rng = np.random.default_rng(0)
    X, bags, p = rng.normal(size=(n, 2)), rng.permutation(n), np.empty(n)
    p[bags] = X[:, 0] + rng.normal(size=n) > 0
    return X, bags, p, rng.uniform(0.01, 0.5, n)


@pytest.mark.filterwarnings("ignore")  # random bags teach little
@pytest.mark.parametrize("scoring", [None, "mae"])
@pytest.mark.parametrize(
    "model, grid, name",
    [
        (MeanMap(), {"alpha": [1.0]}, "bag_weights"),
        (BagMeanRegression(), {"alpha": [1.0]}, "bag_weights"),
        (InvCal(), {"C_p": [1.0]}, "bag_weights"),
        (CountLogistic(), {"C": [0.1]}, "proportion_errors"),
        (make_pipeline(StandardScaler(), MeanMap()), {"meanmap__alpha": [1.0]}, "meanmap__bag_weights"),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_a_search_reads_what_bags_have_in_the_order_of_the_shares(
    model, grid, name, scoring
):
    X, bags, p, own = bags_of_one()
    steps = name.rpartition("__")[0]
    key = f"{steps}__proportions" if steps else "proportions"
    few = np.repeat(np.random.default_rng(1).permutation(60)[:20], 3)
    # The second time 20 bags of 3, among 60 rows of shares.
    for codes, shares in ((bags, p), (few, own + 0.2)):
        wanted = clone(model).set_params(**{name: own})
        wanted.fit(X, codes, **{key: shares})
        for values in (own, pd.Series(own)[::-1]):
            one = clone(model).set_params(**{name: values})
            search = LLPGridSearchCV(one, grid, scoring=scoring, error_score="raise")
            found = search.fit(X, codes, shares).best_estimator_
            assert_allclose(found.decision_function(X), wanted.decision_function(X))
        several = {name: [own, np.ones(60), own[::-1]]}  # per bag, in the grid
        search = LLPGridSearchCV(model, several, scoring=scoring, error_score="raise")
        search.fit(X, codes, shares)
        best = clone(model).set_params(**search.best_params_)
        assert_allclose(
            search.decision_function(X),
            best.fit(X, codes, **{key: shares}).decision_function(X),
        )


@pytest.mark.parametrize("scoring", [None, "mae", ["mae", "mse"]])
@pytest.mark.parametrize("refit", [True, False])
def test_a_search_forgets_its_last_fit(scoring, refit):
    X, _, bags, P = uneven_bags()
    wanted = "mae" if isinstance(scoring, list) and refit else refit
    frame = pd.DataFrame(X, columns=list("abc"))
    search = LLPGridSearchCV(BagMeanRegression(), {"alpha": [0.1, 1.0]})
    search.fit(frame, bags, P)
    search.set_params(scoring=scoring, refit=wanted).fit(X[:, :2], bags, P[:, ::-1])
    fresh = LLPGridSearchCV(
        BagMeanRegression(), {"alpha": [0.1, 1.0]}, scoring=scoring, refit=wanted
    )
    fresh.fit(X[:, :2], bags, P[:, ::-1])
    assert set(vars(search)) == set(vars(fresh))
    assert hasattr(search, "best_estimator_") == refit == hasattr(search, "predict")
    before = dict(vars(search))
    with pytest.raises(ValueError, match="proportions"):  # refused: nothing is lost
        search.fit(X, bags, P[:3])
    assert dict(vars(search)) == before


@pytest.mark.parametrize("scoring", [None, "mae"])
def test_a_search_cuts_a_precomputed_kernel_in_rows_and_columns(scoring):
    X, _, bags, P = uneven_bags(n=120, size=6)
    K, grid = X @ X.T, {"alpha": [1.0, 10.0]}
    search = LLPGridSearchCV(MeanMap(kernel="precomputed"), grid, scoring=scoring)
    plain = LLPGridSearchCV(MeanMap(kernel=lambda A, B: A @ B.T), grid, scoring=scoring)
    plain.fit(X, bags, P)
    for form in (K, pd.DataFrame(K), K.tolist(), sp.csr_array(K)):
        search.fit(form, bags, P)
        assert search.best_params_ == plain.best_params_
        assert_allclose(search.best_score_, plain.best_score_)
        assert_allclose(search.decision_function(K), plain.decision_function(X))
    with pytest.raises(ValueError, match="counts repeats rows"):
        search.fit(K, bags, P, counts=np.full(120, 2))
    held_out = OutOfFold(MeanMap(kernel="precomputed"), fold_splits(bags))
    by_hand = OutOfFold(MeanMap(kernel=lambda A, B: A @ B.T), fold_splits(bags))
    held_out.fit(K, bags, proportions=P)
    by_hand.fit(X, bags, proportions=P)
    assert_allclose(held_out.predict_proba(K), by_hand.predict_proba(X))


def fold_splits(bags):
    return list(SplitBagKFold(3, random_state=0).split(bags, groups=bags))


def test_predictions_out_of_fold_are_those_of_the_last_fit():
    X, _, bags, P = uneven_bags()
    model = OutOfFold(BagMeanRegression(), fold_splits(bags))
    first = clone(model).fit(X, bags, proportions=P).predict(X)
    model.fit(X, bags, proportions=P).set_params(alpha=1e6)  # of the next fit
    assert_array_equal(model.predict(X), first)
    other = OutOfFold(BagMeanRegression(1e6), fold_splits(bags))
    other.fit(X, bags, proportions=P[:, ::-1])
    model.fit(X, bags, proportions=P[:, ::-1])
    assert_array_equal(model.predict(X), other.predict(X))
    assert (model.predict(X) != first).any() and model.models_[0].alpha == 1e6


def test_a_search_within_a_cross_validation_is_one_of_ours():
    X, _, bags, p = problem()
    splits = {"cv": FullBagKFold(3), "groups": bags, "params": {"proportions": p}}
    score = proportion_scorer(p)
    grid = {"alpha": [0.1, 10.0]}
    theirs = GridSearchCV(MeanMap(), grid, cv=FullBagKFold(2), scoring=score)
    with pytest.raises(ValueError, match="not handed its groups: make it LLPGridSearchCV"):  # fmt: skip
        cross_val_score(theirs, X, bags, scoring=score, error_score="raise", **splits)
    found = cross_val_score(LLPGridSearchCV(MeanMap(), grid), X, bags, scoring=score, **splits)  # fmt: skip
    assert np.isfinite(found).all()
