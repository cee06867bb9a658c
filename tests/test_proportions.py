"""Proportions and their errors against loops, enumeration, and the hand example of stolpe2011 (Fig. 1)."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from llpbook import MeanMap, theory
from llpbook import proportions as pr
from llpbook._input import _arguments
from llpbook._linear import bag_counts

# Fig. 1: bags {x1, x3, x7}, {x2, x4, x5, x6}, {x8, x9} and the labels that the learner does not see.
BAGS = np.array([0, 1, 0, 1, 1, 1, 0, 2, 2])
Y = np.array([1, 0, 1, 0, 1, 1, 0, 0, 0])
SIZES = np.array([3, 4, 2])
PI = np.array([[1 / 3, 2 / 3], [1 / 2, 1 / 2], [1, 0]])


@pytest.mark.equation("eq-prop-averaging")
def test_averaging_matrix_gives_bag_means():
    X = np.random.default_rng(0).normal(size=(9, 4))
    means = np.array([X[k == BAGS].mean(axis=0) for k in range(3)])
    assert_allclose(pr.averaging_matrix(BAGS) @ X, means)


def test_averaging_matrix_keeps_a_row_for_an_empty_bag():
    S = pr.averaging_matrix([0, 2], n_bags=4)
    assert_array_equal(S.toarray(), [[1, 0], [0, 0], [0, 1], [0, 0]])


@pytest.mark.equation("eq-prop-gamma", "eq-prop-prior")
def test_hand_example_of_figure_1():
    assert_allclose(pr.label_proportions(Y, BAGS), PI)
    assert_allclose(pr.class_prior(PI, SIZES), [5 / 9, 4 / 9])


def test_pure_bags_of_any_size_have_shares_of_exactly_one():
    bags = np.repeat(np.arange(60), np.arange(1, 61))
    shares = pr.label_proportions(bags % 2, bags)
    assert set(np.unique(shares)) == {0.0, 1.0}


def test_class_prior_is_the_share_of_labels():
    rng = np.random.default_rng(1)
    y, bags = rng.integers(0, 3, 200), rng.integers(0, 17, 200)
    # three bags without instances: NaN rows that must not matter
    with np.errstate(invalid="raise"):
        shares = pr.label_proportions(y, bags, n_bags=20)
    prior = pr.class_prior(shares, np.bincount(bags, minlength=20))
    assert_allclose(prior, np.bincount(y) / 200)
    assert np.isnan(shares[17:]).all()


@pytest.mark.equation("eq-prop-mse", "eq-prop-mae")
def test_errors_against_loops():
    rng = np.random.default_rng(2)
    h, classes = 6, 3
    sizes = rng.integers(1, 9, h)
    P, G = rng.dirichlet(np.ones(classes), h), rng.dirichlet(np.ones(classes), h)
    n = sizes.sum()
    eta, eta_g = (
        [sum(sizes[i] * Q[i, j] for i in range(h)) / n for j in range(classes)]
        for Q in (P, G)
    )
    mse = weight = prior = 0.0
    for j in range(classes):
        prior += (eta[j] - eta_g[j]) ** 2 / classes
        for i in range(h):
            mse += (P[i, j] - G[i, j]) ** 2 / (h * classes)
            weight += eta[j] * sizes[i] / n * (P[i, j] - G[i, j]) ** 2 / (h * classes)
    assert pr.proportion_mse(P, G) == pytest.approx(mse)
    assert pr.proportion_weighted_mse(P, G, sizes) == pytest.approx(weight)
    assert pr.prior_mse(P, G, sizes) == pytest.approx(prior)
    mae = sum(abs(P[i, j] - G[i, j]) for i in range(h) for j in range(classes)) / 2 / h
    assert pr.proportion_mae(P, G) == pytest.approx(mae)


def test_mae_of_two_classes_is_the_gap_of_the_positive_share():
    p, q = np.array([0.2, 0.9, 0.5]), np.array([0.1, 0.4, 0.5])
    matrices = [np.column_stack([1 - v, v]) for v in (p, q)]
    assert pr.proportion_mae(*matrices) == pytest.approx(np.mean(np.abs(p - q)))
    assert pr.proportion_mae(*matrices, bag_sizes=[1, 0, 0]) == pytest.approx(0.1)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_weighted_mae_is_at_most_the_error_rate(n_classes):
    """And equal to it, as the chapter on model selection says, where no bag has errors of both kinds."""
    rng, bags = np.random.default_rng(0), np.repeat(range(5), [1, 4, 9, 2, 24])
    for _ in range(20):
        y, z = rng.integers(0, n_classes, (2, 40))
        for other, equal in ((z, False), (np.where(y == 0, z, y), True)):
            shares = [
                pr.label_proportions(v, bags, classes=range(n_classes))
                for v in (y, other)
            ]
            error = pr.proportion_mae(*shares, bag_sizes=np.bincount(bags))
            gap = np.mean(y != other) - error
            assert gap == pytest.approx(0) if equal else gap > -1e-12


def test_a_bag_without_instances_has_no_say_in_the_weighted_errors():
    P = np.array([[0.5, 0.5], [0.2, 0.8], [np.nan, np.nan]])
    G = np.array([[0.4, 0.6], [0.2, 0.8], [np.nan, np.nan]])
    assert pr.proportion_mae(P, G, bag_sizes=[10, 10, 0]) == pytest.approx(0.05)
    weighted = 0.01 * (0.35 + 0.65) / 12
    assert pr.proportion_weighted_mse(P, G, [10, 10, 0]) == pytest.approx(weighted)
    assert pr.prior_mse(P, G, [10, 10, 0]) == pytest.approx(0.0025)


@pytest.mark.equation("eq-prop-count")
@pytest.mark.parametrize("n_classes", [2, 3])
def test_count_labelings_against_enumeration(n_classes):
    rng = np.random.default_rng(n_classes)
    bags, y = np.array([0, 0, 0, 1, 1, 2, 2]), rng.integers(0, n_classes, 7)
    target = pr.label_proportions(y, bags, classes=range(n_classes))
    every = product(range(n_classes), repeat=7)
    made = (
        pr.label_proportions(labels, bags, classes=range(n_classes)) for labels in every
    )
    hits = sum(np.array_equal(shares, target) for shares in made)
    counts = target * np.bincount(bags)[:, None]
    assert pr.count_labelings(counts) == hits


def test_count_labelings_of_figure_1_and_beyond_floats():
    assert pr.count_labelings(PI * SIZES[:, None]) == 3 * 6 * 1
    assert len(str(pr.count_labelings([[25, 25]] * 20))) == 283
    for bad in ([[0.5, 0.5]], [[-1, 2]], [[np.nan, 1]], [[np.inf, 1]], [1, 2]):
        with pytest.raises(ValueError, match=r"counts must be whole numbers, none neg"):
            pr.count_labelings(bad)


@pytest.mark.equation("eq-prop-worth")
def test_worth_of_pure_bags_is_their_instances_and_of_equal_bags_nothing():
    y = np.array([0] * 30 + [1] * 70)
    pure = pr.identifiability(y, [0.0, 1.0])
    assert_allclose(pure.worth_in_labels, [100, 100])
    equal = pr.identifiability(np.arange(100) % 10, np.full(10, 0.7))
    assert_allclose(equal.worth_in_labels, 0, atol=1e-12)
    assert (pure.rank, equal.rank, equal.condition_number) == (2, 1, np.inf)
    assert "not identifiable" in str(equal) and "full rank" in str(pure)
    assert pure._repr_html_() == f"<pre>{pure}</pre>"


@pytest.mark.parametrize("m", [10, 50])
def test_random_bags_are_worth_their_level_and_about_a_slope(m):
    # the sentences after Theorem 2: the offset is worth all instances, a weak slope one label, one of 4 about 2.5
    x = np.random.default_rng(0).normal(size=1000 * m)
    Z, bags = np.column_stack([np.ones(len(x)), x]), np.arange(len(x)) // m
    known = bag_counts(bags, np.full((1000, 2), 0.5))
    for slope, worth in ((0.25, 1.0), (1.0, 1.12), (4.0, 2.6)):
        J = theory.count_information(Z, slope * x, known)
        H = theory.label_information(Z, slope * x)
        found = np.sort(np.linalg.eigvals(np.linalg.solve(H, J)).real) * m
        assert found[1] == pytest.approx(m, rel=1e-6)
        assert found[0] == pytest.approx(worth, rel=0.08)


def test_worth_is_the_number_of_labels_with_the_variance_of_the_class_means():
    """The best linear estimate of m+ - m- from bag means, written out, beside labels of that number."""
    sizes, p = np.array([4, 9, 2, 7]), np.array([0.2, 0.4, 0.9, 0.6])
    H = (
        np.linalg.pinv(np.sqrt(sizes)[:, None] * np.column_stack([1 - p, p]))
        * sizes**0.5
    )
    worth = pr.identifiability(np.repeat(range(4), sizes), p).worth_in_labels[1]
    eta = sizes @ p / 22
    assert (H[1] - H[0]) ** 2 @ (1 / sizes) == pytest.approx(
        1 / (worth * eta * (1 - eta))
    )


def test_noise_is_the_spread_of_random_bags():
    bags = np.r_[np.zeros(6, int), np.full(3, 2)]  # bag 1 holds nothing
    rng, y = np.random.default_rng(0), np.repeat([0, 1], [5, 4])
    labels = (rng.permutation(y) for _ in range(2000))
    drawn = [pr.identifiability(bags, pr.label_proportions(z, bags)) for z in labels]
    found = np.mean([r.spread**2 for r in drawn], axis=0)
    assert_allclose(found, drawn[0].noise ** 2, rtol=0.1)
    # One less than the number of bags, about.
    assert np.mean([r.worth_in_labels for r in drawn]) == pytest.approx(1, rel=0.2)


@pytest.mark.equation("eq-prop-worth")
def test_identifiability_is_its_definition():
    # Three classes; bags of 0 to 6 instances, the empty ones in the middle and last.
    sizes = np.array([1, 3, 0, 6, 2, 0])
    P = np.random.default_rng(5).dirichlet([1] * 3, 6)
    report = pr.identifiability(np.repeat(np.arange(6), sizes), P)
    prior = sum(n * p for n, p in zip(sizes, P, strict=True)) / 12
    variance = sum(n * (p - prior) ** 2 for n, p in zip(sizes, P, strict=True)) / 12
    assert (report.n_bags, report.n_instances, report.n_classes) == (4, 12, 3)
    assert_allclose(report.spread, variance**0.5)
    assert_allclose(report.worth_in_labels, 12 * variance / (prior * (1 - prior)))
    assert report.rank == 3
    assert report.condition_number == pytest.approx(np.linalg.cond(P[sizes > 0]))
    spread, noise = (", ".join(f"{v:.3f}" for v in each)
                     for each in (report.spread, report.noise))  # fmt: skip
    worth = ", ".join(f"{v:.0f}" for v in report.worth_in_labels)
    assert str(report) == (
        "12 instances in 4 bags, 3 classes\n"
        f"rank of the proportions: 3 (full rank), condition number {np.linalg.cond(P[sizes > 0]):.1f}\n"
        f"spread of the shares: {spread} (random bags of these sizes: {noise})\n"
        f"worth, to tell class means apart, each class against the rest: {worth} labeled instances"
    )


def test_a_rank_does_not_count_rounding_and_needs_as_many_bags_as_classes():
    p = 0.5 + 2e-9 * (-1.0) ** np.arange(100)  # equal shares, but for rounding
    equal = pr.identifiability(np.arange(100), p)
    assert (equal.rank, equal.condition_number) == (1, np.inf)
    near = pr.identifiability(np.arange(40), 0.4 + 1e-5 * (-1.0) ** np.arange(40))
    assert near.rank == 2
    few = pr.identifiability([0, 1], [[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]])
    assert (few.rank, few.condition_number) == (2, np.inf)


def test_a_class_that_never_occurs_is_worth_nothing():
    report = pr.identifiability([0, 1, 1], [[0.5, 0.5, 0.0], [0.2, 0.8, 0.0]])
    assert report.worth_in_labels[2] == report.noise[2] == 0


def test_shares_in_single_precision_are_computed_with_in_double():
    P = np.random.default_rng(6).dirichlet([1] * 3, (2, 4)).astype(np.float32)
    Q, mse = P.astype(float), pr.proportion_weighted_mse
    assert mse(*P, [1, 2, 3, 4]) == mse(*Q, [1, 2, 3, 4])
    single, double = (pr.identifiability(range(4), p[0]) for p in (P, Q))
    assert single.condition_number == double.condition_number
    assert pr.count_labelings(np.array([[2 - 5e-7, 1 + 5e-7, 5e-7]])) == 3


def test_errors_match_bags_and_classes_by_name():
    names = ["b", "c", "a"]
    given = pd.DataFrame([[0.2, 0.8], [0.5, 0.5], [1.0, 0.0]], names, ["no", "yes"])
    found = given.sort_index()[["yes", "no"]]
    sizes = pd.Series({"a": 4, "b": 2, "c": 6})
    assert pr.proportion_mae(given, found) == 0
    assert pr.proportion_mse(given, found) == 0
    assert pr.prior_mse(given, found, sizes) == 0
    prior, array = pr.class_prior(given, sizes), given.to_numpy()
    assert_allclose(prior, pr.class_prior(array, [2, 6, 4]))
    off = found.add([0.1, -0.1])
    assert pr.proportion_mae(given, off, bag_sizes=sizes) == pytest.approx(0.1)
    with pytest.raises(ValueError, match="predicted is matched by its keys"):
        pr.proportion_mae(given, found.rename({"a": "x"}))
    # Beside an array the keys are its row numbers: names are not read by position.
    with pytest.raises(ValueError, match="bag_sizes is matched by its keys"):
        pr.class_prior(array, sizes)
    turned = pd.Series([2, 6, 4], [0, 1, 2])[::-1]
    assert_array_equal(pr.class_prior(array, turned), prior)


def test_no_row_number_allocates_by_its_value():
    bags, y = np.array([0, 10**12]), np.array([0, 1])
    model = MeanMap().fit(np.eye(2), [0, 1], [0.2, 0.8])
    for call in (
        lambda: pr.label_proportions(y, bags),
        lambda: pr.label_proportions(y, [0, 1], n_bags=10**12),
        lambda: model.predict_proportions(np.eye(2), bags),
    ):
        with pytest.raises(ValueError, match=r"bags up to (9{12}|10{12})"):
            call()
    assert (
        len(pr.label_proportions(y, [0, _arguments.MOST_ROWS - 1]))
        == _arguments.MOST_ROWS
    )
    with pytest.raises(ValueError, match=r"more than 1000000 rows.* keyed by bag"):
        pr.label_proportions(y, [0, _arguments.MOST_ROWS])


def test_tables_of_another_length_are_refused():
    P = np.full((3, 2), 0.5)
    for call in (
        lambda: pr.class_prior(P, [1]),
        lambda: pr.proportion_mse(P, P[:1]),
        lambda: pr.proportion_mae(P, P[:, :1]),
        lambda: pr.proportion_mae(P, P, bag_sizes=[1, 2]),
        lambda: pr.prior_mse(P, [0.5, 0.5], [1, 1, 1]),
        lambda: pr.proportion_mse(P[:, 1], P[:, 1]),
        lambda: pr.class_prior(P, P),
    ):
        with pytest.raises(ValueError, match="must have one"):
            call()
    with pytest.raises(ValueError, match=r"must lie in \[0, 1\], got nan for bag 1, w"):
        pr.identifiability([0, 1], [0.5, np.nan])
    pr.identifiability([0, 2], [0.5, np.nan, 0.2])  # bag 1 holds nothing


def test_identifiability_reads_keys():
    bags = np.array(["b", "a", "a", "a"])
    keyed = pr.identifiability(bags, pd.Series({"a": 0.2, "b": 0.9}))
    plain = pr.identifiability([1, 0, 0, 0], [0.2, 0.9])
    assert_array_equal(keyed.worth_in_labels, plain.worth_in_labels)
    rows = pr.identifiability(bags, {"b": [0.1, 0.9], "a": [0.8, 0.2]})
    assert_allclose(rows.spread, plain.spread)
    with pytest.raises(ValueError, match="bags holds 'b'"):
        pr.identifiability(bags, pd.Series({"a": 0.2, "c": 0.9}))
