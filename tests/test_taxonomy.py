"""The taxonomy against the paper's table, a second d-separation, and joint distributions of every pattern."""

import re
from fractions import Fraction
from itertools import combinations, permutations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from llpbook import taxonomy as tax
from llpbook.taxonomy import NODES, STATEMENTS, VARIANTS

# franco2023, Table 1, rows 2 to 11: name, then 1 for each independence in the order of STATEMENTS, then the DAGs drawn.
# Rows 8 to 11 and the counts are as in sections 4 and A.2, which describe them in words.
PAPER = [
    ("Naive", "011011", 2),
    ("", "011000", 0),
    ("", "010010", 0),
    ("Label collider", "010000", 1),
    ("", "001001", 0),
    ("Feature collider", "001000", 1),
    ("Cross-bag", "000100", 3),
    ("Simple", "000010", 3),
    ("Intermediate", "000001", 3),
    ("Hard", "000000", 6),
]


# --- patterns and rules --------------------------------------------------------------------------------------


def test_numbers_of_the_paper():
    patterns = tax.patterns()
    kept = [p for p in patterns if tax.consistent(p)]
    assert len(patterns) == len(set(patterns)) == 64
    assert len(kept) == 18
    assert sum(tax.consistent(p, positive=False) for p in patterns) == 22
    assert sum("X_Y" in p for p in kept) == 8
    assert len(tax.interesting()) == 10
    implied = {tax.pattern_of_dag(dag) for dag in tax.all_dags()}
    assert len(tax.all_dags()) == len(set(tax.all_dags())) == 25
    assert len(implied) == 11
    assert implied & set(tax.interesting()) == set(VARIANTS.values())
    assert len(tax.dags_of("Uninteresting")) == 6


def test_table_is_the_papers():
    table = tax.table()
    assert list(table) == ["name", *STATEMENTS, "n_dags"]
    assert all(table[s].dtype == bool for s in STATEMENTS)
    for (_, row), (name, truth, n_dags) in zip(table.iterrows(), PAPER, strict=True):
        assert row["name"] == name or (not name and row["name"].startswith("No DAG"))
        assert "".join(str(int(row[s])) for s in STATEMENTS) == truth
        assert row["n_dags"] == n_dags == len(tax.dags_of(row["name"]))
    assert table["name"].is_unique


def test_names_and_patterns_go_both_ways():
    for name, pattern in VARIANTS.items():
        assert tax.name_of(pattern) == name
        assert {tax.pattern_of_dag(d) for d in tax.dags_of(name.lower())} == {pattern}
    assert tax.name_of({"X_Y"}) == "Uninteresting"


def implies(premises, conclusion):
    """Whether no pattern of the book's has the premises without the conclusion."""
    kept = filter(tax.consistent, tax.patterns())
    return all(conclusion <= p for p in kept if set(premises) <= p)


@pytest.mark.equation("eq-tax-rule-one", "eq-tax-rule-two")
def test_rules_in_all_roles():
    assert len(tax.rule_one()) == 3 and len(tax.rule_two()) == 6
    for u, v, w in permutations("XYB"):

        def s(a, b, given=None):
            pair = "_".join(x for x in "XYB" if x in (a, b))
            return pair + (f"|{given}" if given else "")

        assert implies({s(u, v, w), s(u, w, v)}, {s(u, v), s(u, w)})
        assert implies({s(u, v, w), s(u, w)}, {s(u, v), s(u, w, v)})
    assert not implies({"X_B", "Y_B"}, {"X_B|Y"})


def test_the_other_46_break_a_rule():
    inconsistent = [p for p in tax.patterns() if not tax.consistent(p)]
    assert len(inconsistent) == 46
    for pattern in inconsistent:
        for rule in tax.broken_rules(pattern):
            assert rule.premises <= pattern
            assert not any(conclusion <= pattern for conclusion in rule.conclusions)
        said = f"pattern {sorted(pattern)} is inconsistent, it breaks {tax.broken_rules(pattern)[0]}"
        with pytest.raises(ValueError, match=re.escape(said)):
            tax.name_of(pattern)
    assert str(tax.rule_one()[0]) == "X_B|Y and X_Y|B => X_B and X_Y"
    assert str(tax.rule_binary("X")[0]) == "Y_B and Y_B|X => X_Y or X_B"


def positive_joint_of(pattern, sizes=(4, 4, 4)):
    """A positive joint distribution of at most these sizes with a pattern: from a DAG, else roles swapped; or None."""
    for dag in tax.all_dags():
        if tax.pattern_of_dag(dag) == pattern:
            return tax.random_joint(dag, sizes, 0)
    sign = np.array([1, -1])
    xor = (1 + np.einsum("i,j,k->ijk", sign, sign, sign) / 2) / 8
    for base in (xor, *tax.unfaithful_examples().values()):
        for axes in permutations(range(3)):
            joint = np.transpose(base, axes)
            fits = np.less_equal(joint.shape, sizes).all()
            if fits and tax.independences(joint) == pattern:
                return joint
    return None


@pytest.mark.parametrize("index", range(18))
def test_each_of_the_18_has_a_positive_distribution(index):
    pattern = [p for p in tax.patterns() if tax.consistent(p)][index]
    joint = positive_joint_of(pattern)
    assert joint is not None and (joint > 0).all()
    assert tax.independences(joint) == pattern


def test_rule_two_as_printed_leaves_34_patterns_and_18_next_to_rule_one():
    """Errata, rule (2): of the two conclusions of contraction it has the one with a condition."""
    one, kept = tax.rule_one(), []
    for p in tax.patterns():
        told = [s for r in tax.rule_two() if r.premises <= p for s in r.conclusions[0]]
        kept += [p] * (p >= {s for s in told if "|" in s})
    assert len(kept) == 34
    beside = [
        p for p in kept if all(r.conclusions[0] <= p for r in one if r.premises <= p)
    ]
    assert beside == [p for p in tax.patterns() if tax.consistent(p)]


# --- where the rules end -------------------------------------------------------------------------------------


def test_two_classes_forbid_the_fourth_row():
    fourth = frozenset({"X_B", "X_B|Y"})
    assert tax.name_of(fourth) == "No DAG (2)"
    assert not tax.consistent(fourth, binary="Y") and tax.consistent(fourth)
    assert sum(tax.consistent(p, binary="Y") for p in tax.interesting()) == 9


def test_two_values_of_a_feature_forbid_the_sixth_row():
    sixth = frozenset({"Y_B", "Y_B|X"})
    assert tax.name_of(sixth) == "No DAG (3)"
    left = {
        v: [p for p in tax.interesting() if tax.consistent(p, binary=v)]
        for v in ("X", "B", "XY")
    }
    assert set(tax.interesting()) - set(left["X"]) == {sixth}
    assert len(left["B"]) == 10 and len(left["XY"]) == 8
    assert set(VARIANTS.values()) <= set(left["XY"])


def test_without_positivity_four_more_patterns_exist():
    more = {p for p in tax.patterns() if tax.consistent(p, positive=False)}
    more -= {p for p in tax.patterns() if tax.consistent(p)}
    coin, pure = np.zeros((2, 2, 2, 2), object)
    coin[0, 0, 0] = coin[1, 1, 1] = Fraction(1, 2)  # X = Y = B
    for x, y in np.ndindex(2, 2):  # pure bags: Y = B, and a noisy X
        pure[x, y, y] = Fraction(1 + 2 * (x == y), 8)
    turned = [pure.transpose(axes) for axes in [(0, 1, 2), (1, 0, 2), (2, 1, 0)]]
    assert {tax.independences(joint, tol=0) for joint in [coin, *turned]} == more
    assert frozenset({"X_Y|B", "X_B|Y"}) in more  # bags of size one


def test_disjoint_regions_of_the_features_are_not_enough():
    """Errata, Sec. 2.2: Y differs from its usual probability at x = 1 only, B at x = 2 only."""
    p_y, p_b = np.array([0.2, 0.8, 0.2]), np.array([0.3, 0.3, 0.9])
    joint = np.einsum("xy,xb->xyb", np.c_[1 - p_y, p_y], np.c_[1 - p_b, p_b]) / 3
    assert "Y_B|X" in tax.independences(joint) and "Y_B" not in tax.independences(joint)


@pytest.mark.parametrize(("binary", "number"), [("Y", 17), ("XYB", 15)])
def test_what_the_binary_rule_leaves_exists_with_two_values(binary, number):
    sizes = tuple(2 if v in binary else 4 for v in NODES)
    left = [p for p in tax.patterns() if tax.consistent(p, binary=binary)]
    assert len(left) == number
    for pattern in left:
        joint = positive_joint_of(pattern, sizes)
        assert tax.independences(joint) == pattern
        assert np.less_equal(joint.shape, sizes).all()


# --- graphs --------------------------------------------------------------------------------------------------


@pytest.mark.equation("eq-tax-factor", "eq-tax-d-separation", "eq-tax-independence")
@pytest.mark.parametrize("sizes", [2, (4, 2, 3)])
@pytest.mark.parametrize("index", range(25))
def test_d_separation_is_independence_in_generic_distributions(index, sizes):
    dag = tax.all_dags()[index]
    for seed in range(5):
        joint = tax.random_joint(dag, sizes, seed)
        gaps = {
            tax.statement(a, b, given): tax.dependence(joint, a, b, given)
            for a, b in combinations(NODES, 2)
            for given in (None, *(set(NODES) - {a, b}))
        }
        implied = tax.pattern_of_dag(dag)
        assert max([gaps[s] for s in implied], default=0) < 1e-15
        assert min([g for s, g in gaps.items() if s not in implied], default=1) > 1e-7
        assert tax.independences(joint) == implied


@pytest.mark.equation("eq-tax-factor")
def test_random_joint_is_the_product_of_its_conditionals():
    dag = {("B", "X"), ("Y", "X")}
    joint = tax.random_joint(dag, (2, 3, 4), 0)
    assert joint.shape == (2, 3, 4) and joint.sum() == pytest.approx(1)
    p_y, p_b = joint.sum((0, 2)), joint.sum((0, 1))
    p_x = joint / joint.sum(0)
    assert_allclose(np.einsum("y,b,xyb->xyb", p_y, p_b, p_x), joint)
    assert_array_equal(joint, tax.random_joint(dag, (2, 3, 4), 0))
    assert tax.random_joint(dag).shape == (3, 3, 3)


def test_random_joint_is_even_on_the_simplex():
    """A share of Dirichlet(1, 1, 1) has variance 1/18."""
    draws = np.array([tax.random_joint({("X", "Y")}, 3, s) for s in range(2000)])
    p_xy = draws.sum(axis=3)
    p_x = p_xy.sum(axis=2)
    for p in (p_x, p_xy / p_x[:, :, None], draws.sum(axis=(1, 2))):
        assert_allclose(p.var(axis=0), 1 / 18, rtol=0.12)


# --- joint distributions -------------------------------------------------------------------------------------


def slow_dependence(joint, a, b, given):
    """The definition, value by value, with conditional probabilities."""
    (c,) = set(NODES) - {a, b}
    p = np.transpose(joint, [NODES.index(v) for v in (a, b, c)])
    if given is None:
        p = p.sum(2)[:, :, None]
    worst = 0
    for i, j, k in np.ndindex(p.shape):
        p_w = p[:, :, k].sum()
        within = p[i, j, k] / p_w - p[i, :, k].sum() / p_w * p[:, j, k].sum() / p_w
        worst = max(worst, abs(within) * p_w**2)
    return worst


@pytest.mark.equation("eq-tax-independence")
def test_dependence_is_its_definition():
    joint = np.random.default_rng(1).dirichlet(np.ones(24)).reshape(2, 3, 4)
    for a, b in permutations(NODES, 2):
        for given in (None, *(set(NODES) - {a, b})):
            slow = slow_dependence(joint, a, b, given)
            assert tax.dependence(joint, a, b, given) == pytest.approx(slow)


def test_unfaithful_examples_realize_the_three_patterns_exactly():
    table = tax.table().set_index("name")
    examples = tax.unfaithful_examples()
    assert list(examples) == list(table.index[table["n_dags"] == 0])
    for name, joint in examples.items():
        assert all(isinstance(p, Fraction) and p > 0 for p in joint.ravel())
        assert joint.sum() == 1
        pattern = tax.independences(joint, tol=0)
        assert tax.name_of(pattern) == name
        assert all((s in pattern) == table.loc[name, s] for s in STATEMENTS)
        assert tax.independences(joint.astype(float)) == pattern


# --- the Bayes classifier ------------------------------------------------------------------------------------


def test_posterior_is_bayes_theorem():
    joint = tax.random_joint(tax.dags_of("Hard")[0], (3, 2, 4), 0)
    slow = np.empty_like(joint)
    for x, y, b in np.ndindex(joint.shape):
        slow[x, y, b] = joint[x, y, b] / sum(joint[x, k, b] for k in range(2))
    assert_allclose(tax.posterior(joint), slow)


@pytest.mark.equation("eq-tax-shift")
def test_shifted_posterior_is_right_just_if_features_follow_the_label():
    for name, pattern in VARIANTS.items():
        for dag in tax.dags_of(name):
            joint = tax.random_joint(dag, 3, 1)
            exact = np.allclose(tax.shifted_posterior(joint), tax.posterior(joint))
            assert exact == ("X_B|Y" in pattern), (name, sorted(dag))
    joint = tax.unfaithful_examples()["No DAG (2)"]
    assert_allclose(tax.shifted_posterior(joint), tax.posterior(joint))


@pytest.mark.equation("eq-tax-bayes")
def test_bayes_errors_are_the_best_of_all_classifiers():
    joint = tax.random_joint(tax.dags_of("Hard")[0], (3, 2, 2), 0)
    without, within = tax.bayes_errors(joint)
    rules = list(np.ndindex(2, 2, 2))  # a label for each of three x

    def error(rule, b):
        return sum(joint[x, 1 - label, b] for x, label in enumerate(rule))

    one = min(error(rule, 0) + error(rule, 1) for rule in rules)
    two = min(error(rule, 0) for rule in rules) + min(error(rule, 1) for rule in rules)
    assert without == pytest.approx(one) and within == pytest.approx(two)
    assert one > two


def varies(joint):
    """Whether P(Y|B), P(X|B), P(Y|X,B) and P(X|Y,B) differ between bags."""
    p_b = joint.sum((0, 1))
    p_y, p_x = joint.sum(0) / p_b, joint.sum(1) / p_b
    return [
        np.ptp(p.astype(float), axis=-1).max() > 1e-9
        for p in (p_y, p_x, tax.posterior(joint), joint / joint.sum(0))
    ]


def test_what_varies_between_bags_is_what_the_table_says():
    columns = ["P(Y|B)", "P(X|B)", "P(Y|X,B)", "P(X|Y,B)"]
    effects = tax.varies_between_bags()
    for name in VARIANTS:
        for dag in tax.dags_of(name):
            joint = tax.random_joint(dag, 3, 0)
            assert varies(joint) == effects.loc[name, columns].tolist(), name
            if not effects.loc[name, "P(Y|X,B)"]:
                without, within = tax.bayes_errors(joint)
                assert without == pytest.approx(within, abs=1e-12)
    for name, joint in tax.unfaithful_examples().items():
        assert varies(joint) == effects.loc[name, columns].tolist(), name
    inside = effects["X tells of Y in a bag"]
    assert inside.index[~inside].tolist() == ["Cross-bag"]


def test_pure_bags_have_no_error_and_an_unseen_value_has_no_posterior():
    joint = np.zeros((3, 2, 2))
    joint[0, 0, 0] = joint[1, 1, 1] = 0.5  # x = 2 never happens
    assert tax.bayes_errors(joint) == (0, 0)
    assert_array_equal(tax.posterior(joint)[0, :, 0], [1, 0])
    with np.errstate(invalid="raise"):
        for found in (tax.posterior(joint), tax.shifted_posterior(joint)):
            assert np.isnan(found[2]).all()


# --- what cannot be answered ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tax.statement("X", "Z", "Y"), "different variables of .* got \\['X', 'Z', 'Y'\\]"),
        (lambda: tax.dependence(np.full((2, 2, 2), 1 / 8), "X", "Y", "X"), "different"),
        (lambda: tax.name_of({"Y_X", "X_B"}), "pattern must be a set of .*, got \\['Y_X'\\]"),
        (lambda: tax.dags_of("easy"), "one of .*'hard', 'uninteresting'\\], got 'easy'"),
        (lambda: tax.d_separated({("X", "Y"), ("Y", "X")}, "X", "Y"), r"cycle, got \[\('X', 'Y'\), \('Y', 'X'\)\]"),
        (lambda: tax.pattern_of_dag({("X", "Z")}), "no node but .*, got \\['Z'\\]"),
        (lambda: tax.independences(np.full((2, 2), 0.25)), "3 axes X, Y, B, got 2"),
        (lambda: tax.independences(np.full((2, 2, 2), 1.001 / 8)), "sum to 1, got 1.0"),
        (lambda: tax.independences(np.full((2, 2, 2), 0.999 / 8)), "sum to 1, got 0.99"),
        (lambda: tax.independences(np.full((2, 2, 2), np.nan)), "NaN"),
        (lambda: tax.independences(np.array([[[2.0, -1.0]]])), "negative entry or NaN, got -1"),
    ],
)  # fmt: skip
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
