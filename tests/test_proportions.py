"""Proportions and their errors against loops, enumeration, and the hand example of stolpe2011 (Fig. 1)."""

import warnings
from itertools import product

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from llpbook import (
    CountLogistic,
    LLPWarning,
    MeanMap,
    bag_report,
    diagnose,
    fit_chunks,
    identifiability,
    theory,
)
from llpbook import proportions as pr
from llpbook._input import _arguments
from llpbook._input._rounded import possible_counts
from llpbook._linear import bag_counts
from llpbook.base import read_bags
from llpbook.ecological import polling_errors
from llpbook.proportions import restore_counts

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


# --- shares that were printed with few digits ------------------------------------------------------------------------


def counts_by_enumeration(shares, size, half):
    """All counts of a bag that agree with its shares."""
    every = product(range(size + 1), repeat=len(shares) - 1)
    rows = np.array([(*c, size - sum(c)) for c in every])
    rows = rows[rows[:, -1] >= 0]
    near = np.abs(rows / size - shares) <= half + 1e-7
    return rows[near.all(axis=1)]


@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_possible_counts_are_those_of_enumeration(n_classes):
    rng = np.random.default_rng(n_classes)
    for _ in range(300):
        size, decimals = int(rng.integers(1, 15)), int(rng.integers(1, 3))
        shares = rng.dirichlet(np.ones(n_classes))
        if rng.random() < 0.7:
            shares = rng.multinomial(size, shares) / size
        shares, half = shares.round(decimals), 10.0**-decimals / 2
        rows = counts_by_enumeration(shares, size, half)
        low, high = possible_counts(shares[None], np.array([size]), half)
        if not len(rows):
            assert (low > high).any()
        else:
            assert_array_equal(low[0], rows.min(axis=0))
            assert_array_equal(high[0], rows.max(axis=0))
            assert (low == high).all() == (len(rows) == 1)


def bags_of_counts(sizes, n_classes=2, seed=0):
    """Bags, and the true counts of their classes."""
    rng = np.random.default_rng(seed)
    counts = [rng.multinomial(n, rng.dirichlet(np.ones(n_classes))) for n in sizes]
    return np.repeat(np.arange(len(sizes)), sizes), np.array(counts)


@pytest.mark.parametrize(
    ("sizes", "decimals", "n_classes"),
    [([9] * 30, 2, 2), ([4] * 30, 1, 2), ([7, 8, 9, 30, 45] * 4, 2, 2), ([600, 731] * 9, 3, 2),
     ([9, 10, 11] * 9, 2, 3), ([5, 40] * 9, 2, 5)],
)  # fmt: skip
def test_rounded_shares_become_counts_again(sizes, decimals, n_classes):
    bags, counts = bags_of_counts(sizes, n_classes)
    exact = counts / counts.sum(axis=1, keepdims=True)
    printed = pd.DataFrame(exact.round(decimals), columns=list("abcde")[:n_classes])
    back = restore_counts(bags, printed)
    assert back.step == pytest.approx(10.0**-decimals)
    assert (back.possible == "one").all() and f"{len(sizes)} of {len(sizes)}" in str(
        back
    )
    assert_array_equal(back.counts, counts)
    assert_allclose(back.proportions, exact, atol=1e-15)
    assert back.proportions.columns.tolist() == printed.columns.tolist()
    if (
        n_classes == 2
    ):  # a Series, a dict and an array in single precision keep their form
        share = printed["b"]
        assert_allclose(restore_counts(bags, share).proportions, exact[:, 1])
        assert_allclose(restore_counts(bags, share.to_dict()).proportions, exact[:, 1])
        single = share.to_numpy(np.float32)
        assert_allclose(restore_counts(bags, single).proportions, exact[:, 1])


def test_rows_made_to_sum_to_one_become_counts_again():
    bags, counts = bags_of_counts([9] * 30, 3)
    exact = counts / 9
    printed = exact.round(2)
    for row, share in zip(printed, exact, strict=True):
        most = np.abs(share - row).argmax()  # takes the rest of its row
        row[most] = round(row[most] + 1 - row.sum(), 2)
    assert (printed != exact.round(2)).any()
    assert_allclose(restore_counts(bags, printed).proportions, exact)
    assert_allclose(
        identifiability(bags, printed).spread, identifiability(bags, exact).spread
    )


@pytest.mark.parametrize("step", [0.05, 0.02, 0.005])
def test_a_step_of_several_units_is_seen(step):
    bags, counts = bags_of_counts([7, 12] * 9)
    exact = counts[:, 1] / counts.sum(axis=1)
    back = restore_counts(bags, step * np.round(exact / step))
    assert back.step == pytest.approx(step)
    assert_allclose(back.proportions, exact)


def test_bags_with_several_possible_counts_are_named_and_stay():
    bags, counts = bags_of_counts([9] * 20 + [1000])
    printed = (counts / counts.sum(axis=1, keepdims=True)).round(2)
    back = restore_counts(bags, pd.DataFrame(printed))
    assert back.possible.tolist() == ["one"] * 20 + ["several"]
    assert "several, so their shares stay as they are: 1 bags (20)" in str(back)
    assert_allclose(back.proportions.loc[20], printed[20])
    assert back.counts.loc[20].isna().all()
    assert "steps of 0.01: turned back into counts in 20 of 21 bags" in str(
        identifiability(bags, printed)
    )


def test_shares_of_other_people_are_no_counts():
    rng = np.random.default_rng(0)
    bags, shares = np.repeat(np.arange(30), 9), rng.uniform(0.1, 0.9, 30).round(2)
    back = restore_counts(bags, shares)
    assert_array_equal(back.proportions, shares)
    assert "no rounded counts" in str(back) and "none" in str(back)
    assert "steps" not in str(identifiability(bags, shares))


def test_a_share_that_is_no_count_among_counts_is_told_of():
    bags, counts = bags_of_counts([9] * 30)
    printed = pd.Series((counts[:, 1] / 9).round(2), [f"county {k}" for k in range(30)])
    names = printed.index.to_numpy()[bags]
    typed = printed.copy()
    typed["county 3"] = 0.35
    with pytest.warns(
        LLPWarning,
        match="no count of 9 instances gives the share 0.35 of bag 'county 3'",
    ):
        data = read_bags(np.zeros((len(bags), 1)), names, typed)
    assert_allclose(
        np.delete(data.proportions[:, 1], 3), np.delete(counts[:, 1] / 9, 3)
    )
    assert data.proportions[3, 1] == 0.35
    with warnings.catch_warnings(action="error"):
        read_bags(np.zeros((len(bags), 1)), names, printed)


def test_all_readers_take_rounded_shares_as_the_counts_that_they_were():
    rng = np.random.default_rng(0)
    bags, counts = bags_of_counts([8, 9, 10, 11, 30] * 8)
    exact = counts[:, 1] / counts.sum(axis=1)
    printed = exact.round(2)
    x = rng.normal(size=(len(bags), 2)) + exact[bags][:, None]

    def answers(shares):
        model = CountLogistic().fit(x, bags, shares)
        table = pd.DataFrame(x).assign(bag=bags)
        return {
            "fit": model.coef_,
            "means": MeanMap().fit(x, bags, shares).coef_,
            "chunks": fit_chunks(CountLogistic(), [table], shares, bags="bag").coef_,
            "spread": identifiability(bags, shares).spread,
            "diagnose": diagnose(x, bags, shares, random_state=0).pvalues.to_numpy(),
            "report": bag_report(model, x, bags, shares).table["z"].to_numpy(),
            "polls": polling_errors(bags, shares),
        }

    wanted = answers(exact)
    assert np.isfinite(wanted["diagnose"]).all()  # also Y ⊥ B, a test of whole counts
    for name, values in answers(printed).items():
        assert_allclose(values, wanted[name], rtol=1e-6, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_counts_of_a_bag_sum_to_its_size_however_their_shares_were_printed(n_classes):
    rng = np.random.default_rng(0)
    sizes = rng.integers(1500, 600_000, size=60)
    exact = rng.dirichlet(np.ones(n_classes), size=60)
    Z = np.zeros((60, 1))
    for shares in (exact, exact.round(7), exact * (1 - 1e-7), exact.astype(np.float32)):
        data = read_bags(Z, np.arange(60), shares, counts=sizes)
        counts = (
            sizes[:, None] * bag_counts(data.bags, data.proportions, None, sizes).shares
        )
        assert_allclose(counts.sum(axis=1), sizes, rtol=1e-12)
        assert_allclose(counts, sizes[:, None] * exact, atol=0.5)
