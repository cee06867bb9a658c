"""Bags of a wanted variant: exact counts, the structure they have, cvxpy and slow versions."""

from contextlib import nullcontext
from itertools import product

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import overlapping_classes as problem

from llpbook import taxonomy, variants
from llpbook._counts import crosstab
from llpbook.datasets import make_dataset
from llpbook.mean_map import MeanMap
from llpbook.variants import make_bags
from llpbook.variants._task import score_strata
from llpbook.variants._variant_tables import collider_counts, cross_bag_counts

NAMES = [name.lower() for name in taxonomy.VARIANTS]


# --- counts --------------------------------------------------------------------------------------------------


@pytest.mark.equation("eq-var-ipf")
def test_fitting_keeps_odds_ratios_and_meets_margins():
    rng = np.random.default_rng(0)
    start, goal = rng.gamma(1, size=(3, 4)), rng.gamma(5, size=(3, 4))
    margins = [goal.sum(axis=1, keepdims=True), goal.sum(axis=0, keepdims=True)]
    found, gap = variants.fit_margins(start, margins, 1e-12)
    assert_allclose(found.sum(axis=0), goal.sum(axis=0))
    assert_allclose(found.sum(axis=1), goal.sum(axis=1))
    assert gap < 1e-12
    odds = [t[:-1, :-1] * t[1:, 1:] / (t[1:, :-1] * t[:-1, 1:]) for t in (start, found)]
    assert_allclose(*odds)


def test_controlled_rounding():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        whole = rng.integers(0, 9, size=(6, 4))
        margins = [whole.sum(axis=k, keepdims=True) for k in (1, 0)]
        start = rng.gamma(1, size=(6, 4))
        table, _ = variants.fit_margins(start, margins, 1e-13, 100_000)
        found = variants.round_table(table)
        assert_array_equal(found.sum(axis=0), whole.sum(axis=0))
        assert_array_equal(found.sum(axis=1), whole.sum(axis=1))
        assert np.abs(found - table).max() < 1
    assert_array_equal(variants.round_table(1.0 * whole), whole)


def test_controlled_rounding_is_the_best_of_all():
    table = np.array([[0.3, 0.7], [0.9, 1.1], [0.8, 0.2]])
    ways = [
        np.column_stack([np.array(up), [1, 2, 1] - np.array(up)])
        for up in product((0, 1), repeat=3)
        if sum(up) == 2
    ]
    best = min(ways, key=lambda way: np.abs(way - table).sum())
    assert_array_equal(variants.round_table(table), best)


def test_fill_table_meets_both_margins():
    rng, cells = np.random.RandomState(0), np.array([7, 11, 3])
    table = np.outer([9, 4, 8], cells) / 21
    totals = np.zeros((2, 3, 3))
    for _ in range(300):
        for i, exact in enumerate((True, False)):
            found = variants.fill_table(table, np.array([9, 4, 8]), cells, rng, exact)
            assert_array_equal(found.sum(axis=1), [9, 4, 8])
            assert_array_equal(found.sum(axis=0), cells)
            assert not exact or (found >= np.floor(table)).all()
            totals[i] += found / 300
    assert_allclose(totals[0], table, atol=0.35)
    assert_allclose(totals[1], table, atol=0.35)


def test_fill_table_gives_way_where_whole_parts_are_above_the_wanted_sums():
    table, rng = np.array([[3.0, 2.0], [1.0, 4.0]]), np.random.RandomState(0)
    for rows, columns in (([4, 6], [4, 6]), ([6, 4], [3, 7]), ([9, 0], [4, 5])):
        found = variants.fill_table(table, np.array(rows), np.array(columns), rng)
        assert_array_equal(found.sum(axis=1), rows)
        assert_array_equal(found.sum(axis=0), columns)
        assert found.min() >= 0


def test_bag_counts():
    sizes, shares = np.array([10, 20, 30]), np.array([0.1, 0.5, 0.7])
    wanted = sizes[:, None] * np.column_stack([1 - shares, shares])
    assert_allclose(variants.bag_counts(wanted, sizes, np.array([28, 32])), wanted)
    # Wanted 32 positives, there are 42: all odds shift by one factor.
    counts = variants.bag_counts(100 * wanted, 100 * sizes, np.array([1800, 4200]))
    assert_array_equal(counts.sum(axis=1), 100 * sizes)
    assert_array_equal(counts.sum(axis=0), [1800, 4200])
    factors = counts[:, 1] / counts[:, 0] / (shares / (1 - shares))
    assert_allclose(factors, factors[0], rtol=0.02)
    pure = np.array([[10.0, 0.0], [0.0, 10.0]])
    met = variants.bag_counts(pure, np.array([10, 10]), np.array([8, 12]))
    assert_array_equal(met.sum(axis=0), [8, 12])


def test_simple_bags_are_dealt_by_lot_whatever_the_order_of_the_rows():
    X, y = problem(n=2000)
    order = np.lexsort((X[:, 0], y))
    X, y = X[order], y[order]
    wanted = {"sizes": [400] * 5, "proportions": np.linspace(0.3, 0.7, 5)}
    bags = make_bags(X, y, "simple", **wanted, random_state=0).bags
    for k in (0, 1):
        x, b = X[y == k, 0], bags[y == k]
        n = np.bincount(b)
        z = (np.bincount(b, x) / n - x.mean()) / (x.std() / np.sqrt(n))
        assert np.abs(z).max() < 4


# --- one table a variant -------------------------------------------------------------------------------------


def test_projection_on_the_simplex():
    A = np.random.default_rng(0).normal(size=(5, 4))
    found, x = variants.project_rows(A), cp.Variable((5, 4))
    simplex = [x >= 0, cp.sum(x, axis=1) == 1]
    cp.Problem(cp.Minimize(cp.sum_squares(x - A)), simplex).solve(solver=cp.CLARABEL)
    assert_allclose(found, x.value, atol=1e-5)


@pytest.mark.equation("eq-var-least-squares")
def test_least_squares_is_cvxpys():
    rng = np.random.RandomState(0)
    cells = np.array([[90.0, 10.0], [40.0, 60.0], [20.0, 80.0]])
    for shares in ([0.2, 0.4, 0.6, 0.8], [0.0, 1.0, 0.5, 0.5]):  # in reach, and not
        wanted = 75 * np.column_stack([1 - np.array(shares), shares])
        A = variants.cluster_to_bag(cells, wanted, rng)
        x = cp.Variable((3, 4))
        simplex = [x >= 0, cp.sum(x, axis=1) == 1]
        goal = cp.Minimize(cp.sum_squares(x.T @ cells - wanted))
        best = cp.Problem(goal, simplex).solve(solver=cp.CLARABEL)
        assert_allclose(A.sum(axis=1), 1)
        assert A.min() >= 0
        assert np.sum((A.T @ cells - wanted) ** 2) == pytest.approx(best, abs=0.05)


@pytest.mark.equation("eq-var-hard")
def test_hard_table_has_the_margins_and_no_independence():
    cells, counts = np.array([[90, 10], [40, 60]]), np.array([[80, 20], [50, 50]])
    table = variants.hard_table(cells, counts, np.random.RandomState(0))
    assert_allclose(table.sum(axis=0), cells, rtol=1e-6)
    assert_allclose(table.sum(axis=1), counts, rtol=1e-6)
    given_both = table / cells
    assert np.ptp(given_both, axis=1).min() > 0.02  # on the cluster, given the label
    assert np.ptp(given_both, axis=2).min() > 0.02  # on the label, given the cluster
    odds = table[0, 0] * table[1, 1] / (table[0, 1] * table[1, 0])
    assert abs(np.log(odds[0] / odds[1])) > 0.05  # nor X ⊥ Y | B, as of any two-way fit


@pytest.mark.equation("eq-var-label-collider")
def test_label_collider_table():
    cells, counts = np.array([[70, 30], [40, 60]]), np.array([[65, 35], [45, 55]])
    table, gap = variants.label_collider_table(cells, counts)
    assert gap < 1e-6
    assert_allclose(table.sum(axis=0), cells, rtol=1e-5)
    assert_allclose(table.sum(axis=1), counts, rtol=1e-5)
    assert_allclose(table.sum(axis=2), 50, rtol=1e-5)
    cells, counts = np.array([[100, 0], [0, 100]]), np.array([[65, 35], [35, 65]])
    assert variants.label_collider_table(cells, counts)[1] > 0.05  # out of reach


@pytest.mark.equation("eq-var-cross-bag")
def test_cross_bag_table():
    cells = np.array([[70, 30], [45, 55]])
    P = np.array([[0.9, 0.1], [0.5, 0.5], [0.2, 0.8]])
    table, gap = variants.cross_bag_table(cells, np.array([60, 60, 80]), P)
    assert gap.max() < 1e-3
    assert_allclose(table.sum(axis=0), cells, atol=0.01)
    within = table / table.sum(axis=(1, 2), keepdims=True)
    product_ = within.sum(axis=2)[:, :, None] * within.sum(axis=1)[:, None, :]
    assert_allclose(within, product_, atol=2e-3)
    assert_allclose(within.sum(axis=1), P, atol=2e-3)
    same = P[1:2].repeat(3, 0)
    assert variants.cross_bag_table(cells, np.ones(3), same)[1].max() > 0.1


# --- make_bags -----------------------------------------------------------------------------------------------


def check(made, y, n_bags):
    """What holds for all variants."""
    classes = np.unique(y)
    assert made.bags.min() == 0 and made.bags.max() == n_bags - 1
    assert_array_equal(made.sizes, np.bincount(made.bags))
    assert list(made.proportions.columns) == classes.tolist()
    for k in range(n_bags):
        shares = [np.mean(y[made.bags == k] == c) for c in classes]
        assert_allclose(made.proportions.iloc[k], shares)


@pytest.mark.parametrize("variant", ["simple", "hard", "intermediate"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_sizes_and_proportions_are_met_to_one_instance(variant, n_classes):
    X, y = problem(n=900, n_classes=n_classes)
    prior = np.bincount(y) / len(y)
    P = np.random.default_rng(1).dirichlet(20 * prior, 7)  # and seven equal bags
    P += prior - P.mean(axis=0)
    if variant == "intermediate":
        P = prior + 0.4 * (P - prior)  # within the reach of clusters that are not pure
    made = make_bags(X, y, variant, proportions=P, random_state=0)
    check(made, y, 7)
    assert variant == "intermediate" or np.ptp(made.sizes) <= 1
    assert made.report[1] == "proportions: met to one instance"
    off = np.abs(made.proportions.to_numpy() - P) * made.sizes[:, None]
    assert off.max() < 1 + 1e-6


@pytest.mark.filterwarnings("ignore:MeanMap is too sure")  # which needs X ⊥ B | Y
@pytest.mark.parametrize("variant", NAMES)
def test_every_variant_can_be_made(variant):
    X, y = problem(n=800)
    names = np.array(["no", "yes"])[y]
    made = make_bags(pd.DataFrame(X), names, variant, n_bags=6, random_state=3)
    check(made, names, 6)
    assert made.variant == variant and len(made.report) == 2
    by_chance = variant in ("naive", "feature collider")
    assert (made.report[1] == "proportions: those of chance") == by_chance
    bags, P = made
    assert bags is made.bags and P is made.proportions
    name = variant.upper().replace("-", "_")
    again = make_bags(X, names, name, n_bags=6, random_state=3)
    assert_array_equal(again.bags, made.bags)
    other = make_bags(X, names, variant.replace(" ", "_"), n_bags=6, random_state=4)
    assert (other.bags != made.bags).any()
    data = make_dataset(pd.DataFrame(X), names, bags)
    if not by_chance:
        assert data.evaluate(MeanMap().fit(*data)) > 0.5


def test_defaults_are_those_of_clusters():
    X, y = problem()
    made = make_bags(X, y, "intermediate", n_bags=5, random_state=0)
    simple = make_bags(X, y, "simple", clusters=made.bags, random_state=0)
    assert_array_equal(simple.sizes, made.sizes)
    assert_allclose(simple.proportions, made.proportions)
    naive = make_bags(X, y, "naive", clusters=made.bags, random_state=0)
    assert_array_equal(naive.sizes, made.sizes)
    assert make_bags(X, y, "naive").sizes.shape == (10,)
    three = y + (X[:, 2] > 1)
    names = np.array(["b", "a", "c"])[three]
    own = make_bags(X, y, "intermediate", clusters=names)
    assert_array_equal(own.bags, np.array([1, 0, 2])[three])
    # Of clusters that are not as many as bags, bags still have sizes and shares of k-means clusters.
    for given, met in (({"n_bags": 5}, made.sizes), ({"sizes": [120] * 5}, 120)):
        hard = make_bags(X, y, "hard", clusters=names, **given, random_state=0)
        assert_array_equal(hard.sizes, met)
        gap = np.abs(hard.proportions - made.proportions).to_numpy()
        assert (gap * hard.sizes[:, None]).max() < 1 + 1e-6 or "sizes" in given
        assert gap.max() < 0.05
    other = make_bags(X, y, "intermediate", clusters=names, n_bags=5, random_state=0)
    assert other.sizes.shape == (5,)


def test_clusters_do_not_depend_on_units():
    X, y = problem()
    made = make_bags(X, y, "intermediate", n_bags=5, random_state=0)
    other = make_bags(X * [1, 1024, 1], y, "intermediate", n_bags=5, random_state=0)
    assert_array_equal(other.bags, made.bags)
    constant = np.column_stack([X, np.full(600, 1e9)])
    other = make_bags(constant, y, "intermediate", n_bags=5, random_state=0)
    assert_array_equal(other.bags, made.bags)
    ten = make_bags(np.arange(600)[:, None] % 10, y, "intermediate", random_state=0)
    assert_array_equal(ten.sizes, 60)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_strata_are_of_instances_of_about_the_same_chance(n_classes):
    X, y = problem(n=630, n_classes=n_classes)
    strata = score_strata(X, y, np.random.RandomState(0))
    cells = crosstab(strata, y)
    assert len(cells) == 12  # one for fifty instances, of two at least
    shares = cells / cells.sum(axis=1, keepdims=True)
    assert shares.std(axis=0).max() > 0.15  # 0.06 of strata by lot
    if n_classes == 2:
        assert np.ptp(cells.sum(axis=1)) <= 1
        assert np.corrcoef(shares[:, 1], range(12))[0, 1] > 0.9
        few = score_strata(X[:70], y[:70], np.random.RandomState(0))
        assert np.bincount(few).tolist() == [35, 35]
    check(make_bags(X, y, "label collider", n_bags=4, random_state=0), y, 4)


def test_a_label_collider_is_pulled_to_the_prior_no_further_than_needed():
    cells, sizes = np.array([[70, 30], [40, 60]]), np.array([100, 100])
    for positive, pulls in (([0.35, 0.55], 0), ([0.0, 0.9], 2)):
        wanted = np.column_stack([1 - np.array(positive), positive])
        table, counts = collider_counts(cells, sizes, wanted)
        assert_allclose(table.sum(axis=2), 50, rtol=1e-3)
        pulled = 0.45 + 0.8**pulls * (np.array(positive) - 0.45)
        assert_allclose(counts[:, 1], 100 * pulled, atol=0.51)
    less = np.array([[91, 9], [19, 81]])  # of one pull
    assert variants.label_collider_table(cells, less)[1] > 2e-4


def test_intermediate_reaches_targets_that_clusters_allow():
    X, y = problem(n=1000)
    P = np.linspace(0.35, 0.65, 8) + y.mean() - 0.5
    clusters = make_bags(X, y, "intermediate", n_bags=8, random_state=0).bags
    wanted = {"sizes": [125] * 8, "proportions": P, "clusters": clusters}
    made = make_bags(X, y, "intermediate", **wanted, random_state=0)
    gap = np.abs(made.proportions[1] - P)
    assert gap.max() < 0.01 and np.abs(made.sizes - 125).max() <= 1
    # Given the cluster, bag and label are independent, to the rounding.
    cells = clusters * 2 + y
    table = crosstab(cells, made.bags).reshape(8, 2, 8).astype(float)
    n = crosstab(clusters, y)
    share = table / np.maximum(n, 1)[:, :, None]
    assert (np.abs(share[:, 0] - share[:, 1]) < 2.0 / n.min(axis=1)[:, None]).all()


def test_what_was_not_met_is_said():
    X, y = problem()
    y3, near = y + (X[:, 2] > 1), y.mean() + np.array([0.105, -0.095])  # 1.5 missed
    for labels, variant, P in (
        (y, "simple", np.array([[0.1, 0.9], [0.4, 0.6]])),
        (y, "simple", np.column_stack([1 - near, near])),
        (y, "intermediate", np.array([[0.0, 1.0], [1.0, 0.0]])),
        (y3, "simple", np.array([[0.1, 0.1, 0.8], [0.2, 0.2, 0.6]])),
    ):
        made = make_bags(X, labels, variant, sizes=[300, 300], proportions=P)
        found = made.proportions.to_numpy()
        gap = np.abs(found - P).max(axis=1)
        k = gap.argmax()
        asked, got = (", ".join(f"{v:.3f}" for v in m[k]) for m in (P, found))
        text = (
            f"proportions: missed by up to {gap[k]:.3f} (bag {k}: {asked} wanted, {got} made), by {gap.mean():.3f} "
            "on average"
        )
        title, sizes, shares = str(made).splitlines()
        assert title == f"{variant}: 600 instances in 2 bags" and shares == text
        assert sizes == "sizes: met" or variant == "intermediate"
    made = make_bags(X, y, "cross-bag", n_bags=4, random_state=0)
    assert made.report[0] == "sizes: as they come out"
    wanted = [100, 100, 100, 300]
    made = make_bags(X, y, "cross-bag", sizes=wanted, random_state=0)
    off = np.abs(made.sizes - wanted)
    text = (
        f"sizes: missed by up to {off.max()} instances, by {off.mean():.1f} on average"
    )
    assert off.any() and made.report[0] == text


def test_variants_that_the_data_rule_out():
    X, _ = problem(n=900)
    y = (X[:, 0] > 0).astype(int)
    with pytest.raises(ValueError, match="X tells the label"):
        make_bags(X, y, "label_collider", clusters=y)
    X, y = problem(n=900)
    with pytest.raises(ValueError, match="no mean of the bags' proportions"):
        make_bags(X, y, "cross_bag", proportions=[0.45, 0.5, 0.55], random_state=0)
    X, y = problem(n=300, n_classes=3)
    with pytest.raises(ValueError, match="more than two classes"):
        make_bags(X, y, "cross-bag", n_bags=3)


def test_a_stratum_a_little_beyond_the_bags_is_refused():
    cells, sizes = np.array([[5, 95], [50, 50]]), np.array([100, 100])
    for share, refused in ((0.92, True), (0.94, False)):
        wanted = np.array([[1 - share, share], [0.6, 0.4]])
        said = r"a group of 100 instances with the class shares \[0.05, 0.95\]"
        with pytest.raises(ValueError, match=said) if refused else nullcontext():
            cross_bag_counts(cells, sizes, wanted)
    own = cross_bag_counts(np.array([[5, 95], [300, 100]]), np.ones(4), None)[2]
    assert_allclose(own[:, 1], [0.25, 0.25, 0.25, 0.95])  # quantiles over instances


@pytest.mark.parametrize("gap", [0, 2, 5, 20])
def test_cross_bag_leaves_no_bag_empty(gap):
    """Bags of classes that the features tell apart are pure, and hold instances; what cannot be is refused."""
    y = np.repeat([0, 1], 300)
    X = np.random.default_rng(0).normal(size=(600, 2))
    X[:, 0] += gap * y
    made = make_bags(X, y, "cross-bag", random_state=0)
    check(made, y, 10)
    assert made.sizes.min() >= 1
    if gap == 20:
        P = made.proportions.to_numpy()
        assert np.minimum(P[:, 0], P[:, 1]).max() == 0
        with pytest.raises(ValueError, match=r"without instances, \[1\].*leave out"):
            make_bags(X, y, "cross-bag", proportions=[0, 0.5, 1], clusters=y)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": np.ones((600, 2))}, "10 k-means clusters need as many distinct rows"),
        ({"sizes": [300, 299]}, "sizes must sum to the 600 instances, got 599"),
        ({"sizes": [300.5, 299.5]}, r"sizes must be whole numbers .* got \[300.5, 299.5\]"),
        ({"sizes": [600, 0]}, r"sizes must be whole numbers from 1, .* got \[600, 0\]"),
        ({"sizes": [300, 300], "n_bags": 3}, "number of bags differs.*'n_bags': 3"),
        ({"proportions": np.ones((2, 3)) / 3}, r"and must have \[0, 1\]"),
        ({"proportions": pd.DataFrame([[0.5, 0.5]], columns=["a", 1])}, r"and must have \[0, 1\]"),
        ({"variant": "naive", "proportions": [0.5, 0.5]}, "leaves them to chance"),
        ({"clusters": [1, 2]}, "clusters must have one entry for each of the 600"),
    ],
)  # fmt: skip
def test_malformed_input(change, message):
    X, y = problem()
    with pytest.raises(ValueError, match=message):
        make_bags(**{"X": X, "y": y, "variant": "simple", **change})


def test_columns_of_wanted_proportions_are_read_by_name():
    X, y = problem()
    names = np.array(["no", "yes"])[y]
    yes = np.array([-0.2, 0.2]) + y.mean()
    wanted = pd.DataFrame({"yes": yes, "no": 1 - yes})
    made = make_bags(X, names, "simple", proportions=wanted, random_state=0)
    gap = np.abs(made.proportions["yes"] - yes)
    assert (gap * made.sizes < 1.5).all()


@pytest.mark.parametrize("variant", ["label collider", "cross-bag"])
def test_a_class_of_one_instance_has_no_strata(variant):
    X, y = np.random.default_rng(0).normal(size=(12, 2)), np.arange(12) == 3
    with pytest.raises(ValueError, match="y must hold two instances of each class"):
        make_bags(X, y.astype(int), variant, n_bags=2, random_state=0)
