"""Whatever form the input has: the right answer, equal to the plain call, or an error that names the argument.

``make properties`` runs thousands of examples; `make test` a seeded slice.
"""

import os
import tempfile

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from problems import quick as make
from sklearn.base import clone

from llpbook import base, datasets, plotting, proportions
from llpbook import dsdd as dsdd_room
from llpbook import model_selection as ms
from llpbook.density_difference import (
    KDEDifference,
    gaussian_basis,
    kde,
    kde_log_density,
    label_two_samples,
    labeling_error_rate,
    lscv_width,
    pool_bags,
    prior_weights,
)
from llpbook.diagnosis import diagnose, two_bag_test
from llpbook.dsdd import DSDD
from llpbook.em import EMLR
from llpbook.lsdd import LSDD, lsdd
from llpbook.mean_map import MeanMap
from llpbook.smic import SMIC
from llpbook.taxonomy import VARIANTS
from llpbook.variants import make_bags

# Many bags for every method: those for two bags say that they pool them.
pytestmark = pytest.mark.filterwarnings("ignore:.* bags into two samples")
N_EXAMPLES = int(os.environ.get("LLPBOOK_EXAMPLES", "8"))
examples = settings(
    max_examples=N_EXAMPLES,
    derandomize="LLPBOOK_EXAMPLES" not in os.environ,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
# One of each kind; `tests/test_contract.py` says why three are enough.
kinds = pytest.mark.parametrize("cls", [MeanMap, EMLR, KDEDifference])


class Problem:
    """A small problem in its plain form: X float64, bags 0, 1, …, a share of positives each; labels for a third."""

    def __init__(self, seed, shape):
        rng = np.random.default_rng(seed)
        sizes = {
            "equal": [6] * 8,
            "one huge": [40, 4, 4, 4],
            "single instances": [1] * 40,
            "uneven": [2, 3, 20, 5, 9, 1],
        }[shape]
        self.bags = np.repeat(np.arange(len(sizes)), sizes)
        self.y = (rng.random(len(self.bags)) < 0.5).astype(int)
        self.y[:2], self.y[-2:] = 0, 1
        X = np.round(rng.normal(size=(len(self.y), 2)) + 2 * self.y[:, None], 2)
        self.X = X.astype(np.float32).astype(float)  # the same in single precision
        self.p = np.bincount(self.bags, self.y) / np.array(sizes)
        self.labels = np.where(rng.random(len(self.y)) < 0.3, self.y, -1)
        self.names = np.array([f"bag {k}" for k in rng.permutation(len(sizes))])


problems = st.builds(
    Problem,
    st.integers(0, 10**6),
    st.sampled_from(["equal", "one huge", "single instances", "uneven"]),
)


def read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


def memory_mapped(X):
    with tempfile.NamedTemporaryFile(suffix=".npy") as file:
        np.save(file.name, X)
        return np.load(file.name, mmap_mode="r")


X_FORMS = {
    "float32": lambda X: X.astype(np.float32),
    "list": lambda X: X.tolist(),
    "frame": lambda X: pd.DataFrame(X, columns=["a", "b"]),
    "nullable": lambda X: pd.DataFrame(X, columns=["a", "b"]).convert_dtypes(),
    "object": lambda X: X.astype(object),
    "fortran": np.asfortranarray,
    "strided": lambda X: np.repeat(X, 2, axis=0)[::2],
    "read-only": read_only,
    "memory-mapped": memory_mapped,
    "unmasked": lambda X: np.ma.masked_array(X),
}
SPARSE_FORMS = {
    "csr": sp.csr_array,
    "csc": sp.csc_array,
    "coo": sp.coo_array,
    "csr_matrix": sp.csr_matrix,
}
BAG_FORMS = {
    "list": lambda b, _: b.tolist(),
    "uint8": lambda b, _: b.astype(np.uint8),
    "float": lambda b, _: b.astype(float),
    "Int64": lambda b, _: pd.array(b, dtype="Int64"),
    "Series": lambda b, _: pd.Series(b),
    "read-only": lambda b, _: read_only(b),
}
KEYED_BAGS = {
    "names": lambda b, names: names[b],
    "object": lambda b, names: names[b].astype(object),
    "categorical": lambda b, names: pd.Categorical(names[b]),
    "string": lambda b, names: pd.array(names[b], dtype="string"),
    "list": lambda b, names: names[b].tolist(),
}


def keyed(form, p, names, rng):
    """Proportions keyed by the names of bags, in any order, with a bag that nobody is in."""
    series = pd.Series([*p, 0.5], [*names, "empty"]).sample(frac=1, random_state=rng)
    matrix = pd.DataFrame({0: 1 - series, 1: series})
    return {
        "Series": series,
        "nullable": series.astype("Float64"),
        "dict": series.to_dict(),
        "dict of rows": {k: [1 - v, v] for k, v in series.items()},
        "DataFrame": matrix,
        "missing row": series.where(series.index != "empty"),
    }[form]


KEYED = ["Series", "nullable", "dict", "dict of rows", "DataFrame", "missing row"]
ARRAYS = {
    "list": lambda p: p.tolist(),
    "rows": lambda p: np.column_stack([1 - p, p]),
    "more rows": lambda p: np.append(p, [0.3, np.nan]),
    "nearly": lambda p: np.clip(p * (1 + 5e-7), 0, None),
    "Float64": lambda p: pd.array(p, dtype="Float64"),
}


def scores(model, X):
    score = getattr(model, "decision_function", None) or model.predict_proba
    return score(X)


@kinds
@examples
@given(data=st.data(), problem=problems)
def test_every_form_gives_the_plain_answer(cls, data, problem):
    sparse = make(cls).__sklearn_tags__().input_tags.sparse
    forms = X_FORMS | (SPARSE_FORMS if sparse else {})
    X = forms[data.draw(st.sampled_from(sorted(forms)))](problem.X)
    if data.draw(st.booleans()):
        form = data.draw(st.sampled_from(KEYED))
        p = keyed(form, problem.p, problem.names, data.draw(st.integers(0, 99)))
        turn = KEYED_BAGS[data.draw(st.sampled_from(sorted(KEYED_BAGS)))]
    else:
        form = data.draw(st.sampled_from(sorted(ARRAYS)))
        p = ARRAYS[form](problem.p)
        turn = BAG_FORMS[data.draw(st.sampled_from(sorted(BAG_FORMS)))]
    bags = turn(problem.bags, problem.names)
    labels = problem.labels if data.draw(st.booleans()) else None
    if labels is not None and data.draw(st.booleans()):
        labels = pd.array(labels, dtype="Int64")
    try:
        plain = make(cls).fit(
            problem.X,
            problem.bags,
            problem.p,
            labels=None if labels is None else problem.labels,
        )
    except ValueError as error:  # equal shares, say: then in every form
        with pytest.raises(type(error)):
            make(cls).fit(X, bags, p, labels=labels)
        return
    model = make(cls).fit(X, bags, p, labels=labels)
    wanted = scores(plain, problem.X)
    size = max(1.0, np.abs(wanted).max())
    np.testing.assert_allclose(scores(model, X) / size, wanted / size, atol=1e-5)
    shares = model.predict_proportions(X, bags)
    assert len(shares) == len(problem.p)


def spoil(rng):
    """Ways to spoil one argument, and the argument that the message must name."""

    def put(values, what):
        values = values.astype(object if not isinstance(what, float) else values.dtype)
        values = values.copy()
        values[rng.integers(len(values))] = what
        return values

    nan = float("nan")
    return {
        "X nan": ("X", lambda g: put(g["X"], nan)),
        "X inf": ("X", lambda g: put(g["X"], float("inf"))),
        "X huge": ("X", lambda g: put(g["X"], 1e200)),
        "X complex": ("X", lambda g: g["X"] * 1j),
        "X text": ("X", lambda g: np.full(g["X"].shape, "a")),
        "X masked": ("X", lambda g: np.ma.masked_equal(g["X"], g["X"][0, 0])),
        "X one-dimensional": ("X", lambda g: g["X"][:, 0]),
        "X shorter": ("bags", None),
        "X times": (
            "X",
            lambda g: pd.DataFrame({"t": pd.date_range("2020", periods=len(g["X"]))}),
        ),
        "bags nan": ("bags", lambda g: put(g["bags"].astype(float), nan)),
        "bags None": ("bags", lambda g: put(g["bags"], None)),
        "bags beyond": ("bags", lambda g: put(g["bags"], 10**6)),
        "bags negative": ("bags", lambda g: put(g["bags"], -1)),
        "bags fraction": ("bags", lambda g: put(g["bags"].astype(float), 0.5)),
        "bags shorter": ("bags", lambda g: g["bags"][:-1]),
        "bags columns": ("bags", lambda g: np.column_stack([g["bags"]] * 2)),
        "bags masked": ("bags", lambda g: np.ma.masked_equal(g["bags"], g["bags"][0])),
        "bags index": (
            "bags",
            lambda g: pd.Series(g["bags"], np.arange(len(g["bags"]))[::-1]),
        ),
        "proportions nan": ("proportions", lambda g: put(g["proportions"], nan)),
        "proportions below": ("proportions", lambda g: put(g["proportions"], -0.01)),
        "proportions percent": ("proportions", lambda g: 100 * g["proportions"] + 2),
        "proportions counts": (
            "proportions",
            lambda g: np.column_stack([g["proportions"], g["proportions"] + 1]),
        ),
        "proportions short": ("bags|proportions", lambda g: g["proportions"][:1]),
        "proportions empty": ("proportions", lambda g: []),
        "proportions text": ("proportions", lambda g: ["half"] * len(g["proportions"])),
        "proportions twice": (
            "proportions",
            lambda g: pd.Series(g["proportions"], [0] * len(g["proportions"])),
        ),
        "labels other": ("labels", lambda g: put(g["labels"], 7)),
        "labels nan": ("labels", lambda g: put(g["labels"].astype(float), nan)),
        "labels NA": ("labels", lambda g: put(g["labels"], pd.NA)),
        "labels shorter": ("labels", lambda g: g["labels"][:-1]),
        "labels masked": ("labels", lambda g: np.ma.masked_equal(g["labels"], -1)),
    }


# --- functions ---------------------------------------------------------------------------------------------


@examples
@given(
    problem=problems,
    bags=st.sampled_from(sorted(BAG_FORMS)),
    shares=st.sampled_from(["list", "rows", "Float64"]),
)
def test_functions_of_proportions(problem, bags, shares):
    turned = BAG_FORMS[bags](problem.bags, None)
    if bags != "float":  # a function of codes wants integers
        found = proportions.label_proportions(problem.y, np.asarray(turned, dtype=int))
        np.testing.assert_allclose(found[:, 1], problem.p)
    matrix, classes, _ = base.check_proportions(ARRAYS[shares](problem.p))
    np.testing.assert_allclose(matrix[:, 1], problem.p)
    assert list(classes) == [0, 1]


@examples
@given(
    problem=problems,
    form=st.sampled_from(sorted(X_FORMS)),
    bags=st.sampled_from(sorted(KEYED_BAGS)),
)
def test_data_sets_of_bags(problem, form, bags):
    X = X_FORMS[form](problem.X)
    named = KEYED_BAGS[bags](problem.bags, problem.names)
    found = datasets.make_dataset(X, problem.y, named)
    shares = pd.Series(found.proportions[1].to_numpy(), found.bag_names)
    np.testing.assert_allclose(shares[problem.names], problem.p)
    assert found.evaluate(problem.y) == 1.0
    problem.y[:] = 0  # the data set has its own copy
    assert found.true_labels_for_evaluation().any()


@examples
@given(
    problem=problems,
    form=st.sampled_from(KEYED),
    bags=st.sampled_from(sorted(KEYED_BAGS)),
)
def test_identifiability_reads_keys(problem, form, bags):
    if form == "missing row":  # of a bag that nobody is in: `fit` reads it too
        form = "DataFrame"
    shares = keyed(form, problem.p, problem.names, 0)
    found = proportions.identifiability(
        KEYED_BAGS[bags](problem.bags, problem.names), shares
    )
    plain = proportions.identifiability(problem.bags, problem.p)
    np.testing.assert_allclose(found.worth_in_labels, plain.worth_in_labels)


def read_by_fit(data, problem):
    """The same bags and shares in a form that `fit` reads."""
    if data.draw(st.booleans()):
        form = data.draw(st.sampled_from(KEYED))
        turn = KEYED_BAGS[data.draw(st.sampled_from(sorted(KEYED_BAGS)))]
        return turn(problem.bags, problem.names), keyed(
            form, problem.p, problem.names, data.draw(st.integers(0, 99))
        )
    turn = BAG_FORMS[data.draw(st.sampled_from(sorted(BAG_FORMS)))]
    p = ARRAYS[data.draw(st.sampled_from(sorted(ARRAYS)))](problem.p)
    return turn(problem.bags, None), p


@examples
@given(
    data=st.data(),
    problem=problems,
    form=st.sampled_from(sorted(X_FORMS)),
    known=st.booleans(),
)
def test_a_diagnosis_reads_every_form(data, problem, form, known):
    """The order of keyed bags changes the permutations drawn, so the p-values agree up to their own error."""
    bags, p = read_by_fit(data, problem)
    X, labels = X_FORMS[form](problem.X), problem.labels if known else None
    found = diagnose(X, bags, p, labels=labels, n_permutations=99)
    plain = diagnose(
        problem.X, problem.bags, problem.p, labels=labels, n_permutations=99
    )
    assert found.pvalues.index.equals(plain.pvalues.index)
    both = pd.concat([found.pvalues, plain.pvalues], axis=1).astype(float)
    assert (both.isna().sum(axis=1) != 1).all()
    assert (np.abs(both.diff(axis=1).iloc[:, 1].dropna()) < 0.35).all()
    assert str(found)


@examples
@given(data=st.data(), problem=problems, seed=st.integers(0, 10**6))
def test_a_diagnosis_names_what_is_spoiled(data, problem, seed):
    ways = spoil(np.random.default_rng(seed))
    way = data.draw(st.sampled_from(sorted(set(ways) - {"X shorter", "X huge"})))
    names, change = ways[way]
    asked = {
        "X": problem.X,
        "bags": problem.bags,
        "proportions": problem.p,
        "labels": np.append(problem.labels[:-1], -1),
    }
    spoiled = "proportions" if way == "proportions short" else names.split("|")[0]
    asked[spoiled] = change(asked)
    if way == "bags index":
        asked["X"] = pd.DataFrame(problem.X)
    with pytest.raises((ValueError, TypeError), match=names):
        diagnose(**asked, n_permutations=99)


@examples
@given(
    problem=problems,
    form=st.sampled_from(sorted(X_FORMS)),
    variant=st.sampled_from(["naive", "simple", "intermediate", "hard"]),
    n_bags=st.integers(2, 5),
)
def test_bags_are_made_of_every_form(problem, form, variant, n_bags):
    turned = make_bags(
        X_FORMS[form](problem.X), problem.y.tolist(), variant, n_bags, random_state=0
    )
    bags, shares = turned
    plain = make_bags(problem.X, problem.y, variant, n_bags, random_state=0)
    np.testing.assert_array_equal(bags, plain.bags)
    counts = pd.crosstab(bags, problem.y)
    np.testing.assert_allclose(
        np.asarray(shares)[counts.index, 1], counts[1] / counts.sum(axis=1)
    )


@examples
@given(
    problem=problems,
    form=st.sampled_from(sorted(X_FORMS)),
    label=st.sampled_from([kde, lsdd]),
    larger=st.sampled_from(["p", "q", None]),
)
def test_two_samples_in_every_form(problem, form, label, larger):
    turn, half = X_FORMS[form], len(problem.X) // 2
    order = np.random.default_rng(0).permutation(len(problem.X))
    X_p, X_q = problem.X[order[:half]], problem.X[order[half:]]
    shares = None if larger else (0.2, 0.8)
    found = label(turn(X_p), turn(X_q), shares, larger)
    plain = label(X_p, X_q, shares, larger)
    np.testing.assert_array_equal(np.concatenate(found), np.concatenate(plain))
    one, other = (
        two_bag_test(*pair, n_permutations=19)
        for pair in ((turn(X_p), turn(X_q)), (X_p, X_q))
    )
    assert one.pvalue == other.pvalue
    with pytest.raises(ValueError, match="X_p"):
        label(turn(X_p[:0]), X_q)
    with pytest.raises(ValueError, match="X_p and X_q"):
        label(X_p[:, :1], X_q)


@settings(examples, max_examples=max(2, N_EXAMPLES // 20))
@given(data=st.data(), problem=problems)
def test_pictures_read_every_form(data, problem):
    bags, p = read_by_fit(data, problem)
    axes = plotting.plot_bags(problem.X, bags, p)
    plain = plotting.plot_bags(problem.X, problem.bags, problem.p)
    assert len(np.ravel(axes)) == len(np.ravel(plain))
    plt.close("all")


# --- two samples -------------------------------------------------------------------------------------------

METHODS = {
    "kde": KDEDifference(),
    "kde fixed": KDEDifference(0.7),
    "lsdd": LSDD(random_state=0),
    "lsdd fixed": LSDD(0.7, 0.1, random_state=0),
    "lsdd by the sign": LSDD("median", criterion="sign", random_state=0),
    "dsdd": DSDD([0.5, 1.0], "cv", random_state=0),
    "dsdd fixed": DSDD("median", 0.5, random_state=0),
    "smic": SMIC([3, 7]),
}
methods = st.sampled_from(sorted(METHODS))


class Pair:
    """Two samples on a grid, so that shifts by whole numbers and scales by powers of two are exact."""

    def __init__(self, seed, sizes, d, kind):
        self.rng = np.random.default_rng(seed)
        n = sum(sizes)
        self.y = (self.rng.random(n) < np.repeat([0.2, 0.8], sizes)).astype(int)
        X = self.rng.normal(size=(n, d)) + 2 * self.y[:, None]
        fineness = {"fine": 1024, "ties": 1, "skewed": 1024}[kind]
        X = np.exp(X / 2) if kind == "skewed" else X
        self.X = np.round(X * fineness) / fineness
        self.bags = np.repeat([0, 1], sizes)
        self.parts = self.X[: sizes[0]], self.X[sizes[0] :]


pairs = st.builds(
    Pair,
    st.integers(0, 10**6),
    st.tuples(st.integers(8, 30), st.integers(8, 30)),
    st.integers(1, 3),
    st.sampled_from(["fine", "ties", "skewed"]),
)
free = st.sampled_from(["fine", "skewed"])  # no two instances are equal
distinct = st.builds(
    Pair,
    st.integers(0, 10**6),
    st.tuples(st.integers(8, 30), st.integers(8, 30)),
    st.integers(1, 3),
    free,
)


def agree(found, wanted):
    size = np.abs(wanted).max() + 1e-300
    np.testing.assert_allclose(found / size, wanted / size, atol=1e-5)


@examples
@given(pair=pairs, method=methods)
def test_exchanged_samples_exchange_the_labels(pair, method):
    model, (P, Q) = METHODS[method], pair.parts
    one = label_two_samples(model, P, Q, larger="p")
    two = label_two_samples(model, Q, P, larger="q")
    np.testing.assert_array_equal(one[0], two[1])
    np.testing.assert_array_equal(one[1], two[0])
    told = label_two_samples(model, P, Q, (0.8, 0.2))
    back = label_two_samples(model, Q, P, (0.2, 0.8))
    np.testing.assert_array_equal(told[0], back[1])
    np.testing.assert_array_equal(told[1], back[0])


@examples
@given(pair=pairs, method=methods)
def test_the_score_changes_its_sign_with_the_samples(pair, method):
    if method == "smic":  # a cluster with equal shares of both samples has no sign
        method = "kde"
    model = METHODS[method]
    one = model.fit(pair.X, pair.bags).decision_function(pair.X)
    two = model.fit(pair.X, 1 - pair.bags).decision_function(pair.X)
    agree(-two, one)
    told = model.fit(pair.X, pair.bags, [0.3, 0.9]).decision_function(pair.X)
    swapped = model.fit(pair.X, pair.bags, [0.7, 0.1]).decision_function(pair.X)
    agree(-swapped, told)


@examples
@given(pair=pairs, method=methods, seed=st.integers(0, 10**6))
def test_order_place_and_unit_of_two_samples_change_no_label(pair, method, seed):
    model, rng = METHODS[method], np.random.default_rng(seed)
    P, Q = pair.parts
    plain = label_two_samples(model, P, Q)
    orders = rng.permutation(len(P)), rng.permutation(len(Q))
    shuffled = label_two_samples(model, P[orders[0]], Q[orders[1]])
    for found, order, wanted in zip(shuffled, orders, plain, strict=True):
        np.testing.assert_array_equal(found, wanted[order])
    offset = rng.integers(-(2**20), 2**20, P.shape[1]).astype(float)
    moved = label_two_samples(model, P + offset, Q + offset)
    np.testing.assert_array_equal(np.concatenate(moved), np.concatenate(plain))
    if "kde fixed" != method != "lsdd fixed":  # their width is in units of X
        unit = 2.0 ** rng.integers(-10, 10)
        if method == "dsdd":
            model = clone(model).set_params(sigma=[0.5 * unit, unit])
        scaled = label_two_samples(model, unit * P, unit * Q)
        np.testing.assert_array_equal(np.concatenate(scaled), np.concatenate(plain))


@examples
@given(
    pair=pairs,
    sigma=st.sampled_from([0.3, 1.0, 4.0]),
    lam=st.sampled_from([0.01, 0.1, 1.0]),
    copies=st.integers(2, 4),
)
def test_repeated_instances_do_what_the_notes_say(pair, sigma, lam, copies):
    X, bags = np.repeat(pair.X, copies, axis=0), np.repeat(pair.bags, copies)
    one, many = (KDEDifference(sigma).fit(*d) for d in ((pair.X, pair.bags), (X, bags)))
    agree(many.decision_function(pair.X), one.decision_function(pair.X))
    one = LSDD(sigma, lam).fit(pair.X, pair.bags)
    many = LSDD(sigma, lam * copies).fit(X, bags)
    agree(many.decision_function(pair.X), one.decision_function(pair.X))
    assert many.l2_distance_ == pytest.approx(one.l2_distance_, rel=1e-6, abs=1e-12)


@examples
@given(pair=pairs, seed=st.integers(0, 10**6))
def test_features_in_another_order_or_turned_are_as_far_apart(pair, seed):
    d = pair.X.shape[1]
    turn = np.linalg.qr(np.random.default_rng(seed).normal(size=(d, d)))[0]
    for model in (KDEDifference(0.7), LSDD(0.7, 0.1)):
        plain = model.fit(pair.X, pair.bags).decision_function(pair.X)
        for other in (pair.X[:, ::-1], pair.X @ turn):
            agree(model.fit(other, pair.bags).decision_function(other), plain)


@examples
@given(pair=pairs, seed=st.integers(0, 10**6))
def test_the_two_bag_test_knows_no_units(pair, seed):
    P, Q = pair.parts
    if not np.ptp(pair.X, axis=0).all():
        return
    rng = np.random.default_rng(seed)
    unit, offset = 2.0 ** rng.integers(-5, 5), rng.integers(-99, 99)
    plain = two_bag_test(P, Q, n_permutations=19)
    other = two_bag_test(P * unit + offset, Q * unit + offset, n_permutations=19)
    assert other.statistic == pytest.approx(plain.statistic, rel=1e-6)
    assert 1 / 20 <= plain.pvalue <= 1 and other.pvalue == plain.pvalue


@examples
@given(problem=problems, seed=st.integers(0, 10**6), eta=st.floats(0.01, 0.99))
def test_pools_and_weights(problem, seed, eta):
    rng, sizes, p = np.random.default_rng(seed), np.bincount(problem.bags), problem.p
    prior, n = np.average(p, weights=sizes), len(problem.y)
    in_p, *shares = pool_bags(problem.bags, p, sizes)
    assert shares[0] > prior > shares[1]
    assert in_p.sum() * shares[0] + (~in_p).sum() * shares[1] == pytest.approx(
        n * prior
    )
    swapped = pool_bags(problem.bags, 1 - p, sizes)[0]
    level = np.abs(p - prior)[problem.bags] < 1e-6
    np.testing.assert_array_equal(swapped[~level], ~in_p[~level])
    assert not in_p[level].any() and not swapped[level].any()
    names = rng.permutation(len(p))
    renamed = pool_bags(
        names[problem.bags], p[np.argsort(names)], sizes[np.argsort(names)]
    )
    np.testing.assert_array_equal(renamed[0], in_p)
    assert renamed[1:] == pytest.approx(shares)
    w = prior_weights(*shares, eta)
    assert sum(w) == pytest.approx(2) and min(w) >= 0
    assert prior_weights(1 - shares[1], 1 - shares[0], 1 - eta)[::-1] == pytest.approx(
        w
    )
    labels = rng.integers(0, 2, n)
    error = labeling_error_rate(labels, problem.y)
    assert 0 <= error <= 0.5
    for other in (
        (1 - labels, problem.y),
        (problem.y, labels),
        (labels, 1 - problem.y),
    ):
        assert labeling_error_rate(*other) == pytest.approx(error)


@examples
@given(pair=distinct, batch=st.integers(1, 60), sigma=st.floats(0.05, 20))
def test_widths_and_densities_of_one_sample(pair, batch, sigma):
    X, d = pair.X, pair.X.shape[1]
    width, table = lscv_width(X)
    assert width in table["sigma"].to_numpy()
    assert lscv_width(X[::-1])[0] == width
    assert lscv_width(4 * X)[0] == pytest.approx(4 * width)
    at = pair.rng.normal(size=(9, d))
    log_p = kde_log_density(at, X, sigma)
    np.testing.assert_allclose(kde_log_density(at, X, sigma, batch), log_p, rtol=1e-9)
    np.testing.assert_allclose(
        kde_log_density(4 * at, 4 * X, 4 * sigma), log_p - d * np.log(4), rtol=1e-8
    )


@examples
@given(pair=pairs, lam=st.sampled_from([0.01, 0.3, 3.0]), seed=st.integers(0, 10**6))
def test_the_bound_of_dsdd_is_above_and_touches(pair, lam, seed):
    rng = np.random.default_rng(seed)
    basis = [gaussian_basis(part, pair.X, 1.0) for part in pair.parts]
    alpha = rng.normal(size=len(pair.X))
    c, b = (rng.random(len(part)) for part in pair.parts)
    weights = (0.7, 1.3)
    value = dsdd_room.objective(alpha, basis, lam, weights)
    assert dsdd_room.upper_bound(alpha, b, c, basis, lam, weights) >= value - 1e-9
    tight = dsdd_room.upper_bound(
        alpha, *dsdd_room.tighten_bound(alpha, basis), basis, lam, weights
    )
    assert tight == pytest.approx(value)
    back = dsdd_room.objective(-alpha, basis[::-1], lam, weights[::-1])
    assert back == pytest.approx(value)
    course = [r.objective for r in dsdd_room.cccp(basis, lam, weights, max_iter=20)]
    assert (np.diff(course) <= 1e-7).all()


# --- few bags, small bags, ties: diagnosis, bags made, splits, searches, what is given for each bag ------------------

sizes_of_bags = st.lists(st.integers(1, 8), min_size=1, max_size=6)
seeds = st.integers(0, 10**6)


def little(sizes, seed, levels=None):
    """X, bags, y and shares of little data; with ``levels`` few values in X, down to a constant."""
    rng = np.random.default_rng(seed)
    bags = np.repeat(np.arange(len(sizes)), sizes)
    y = (rng.random(len(bags)) < rng.random()).astype(int)
    X = rng.normal(size=(len(bags), 2)) + 2 * y[:, None]
    if levels is not None:
        X = np.round(X * levels / 4)
    return X, bags, y, np.bincount(bags, y) / np.array(sizes)


@examples
@given(
    sizes=sizes_of_bags,
    seed=seeds,
    levels=st.sampled_from([None, 1, 4]),
    known=st.sampled_from([0.0, 0.1, 0.5, 1.0]),
    exact=st.sampled_from([None, True, False]),
    order=st.randoms(use_true_random=False),
)
@pytest.mark.filterwarnings("error")
def test_a_diagnosis_tests_or_says_why_not(sizes, seed, levels, known, exact, order):
    X, bags, y, p = little(sizes, seed, levels)
    labels = np.where(np.random.default_rng(seed).random(len(y)) < known, y, -1)
    labels = labels if (labels >= 0).any() else None
    asked = {"labels": labels, "exact": exact, "n_permutations": 99}
    if not np.ptp(X, axis=0).any():
        with pytest.raises(ValueError, match="X has no column with two values"):
            diagnose(X, bags, p, **asked)
        return
    found = diagnose(X, bags, p, **asked)
    tested = found.tests[found.pvalues.notna()]
    assert tested["pvalue"].between(0, 1).all() and (tested["detectable"] >= 0).all()
    untested = found.tests[found.pvalues.isna()]
    assert (untested["note"] != "").all() and untested["detectable"].isna().all()
    report = " ".join(str(found).split())
    assert all(note in report for note in untested["note"])
    assert "hard" in found.variants and len(found.to_frame()) == 6
    names = [f"bag {k}" for k in range(len(p))]
    shares = list(zip(names, p, strict=True))
    named = diagnose(X, np.array(names)[bags], dict(shares), **asked)
    assert str(named) == str(found)
    order.shuffle(shares)  # numbers of bags change, and with them the draws
    turned = diagnose(X, np.array(names)[bags], dict(shares), **asked)
    assert (turned.pvalues.isna() == found.pvalues.isna()).all()


@examples
@given(
    sizes=st.lists(st.integers(1, 12), min_size=2, max_size=5),
    seed=seeds,
    variant=st.sampled_from(sorted(VARIANTS)),
    asked=st.sets(st.sampled_from(["sizes", "proportions", "clusters"])),
    order=st.randoms(use_true_random=False),
)
def test_bags_are_made_as_asked_or_refused(sizes, seed, variant, asked, order):
    X, bags, y, _ = little(sizes, seed)
    rng = np.random.default_rng(seed)
    names = [f"bag {k}" for k in range(len(sizes))]
    wanted = pd.Series(np.round(rng.random(len(sizes)), 2), names)
    given_ = {"sizes": sizes, "proportions": wanted.to_numpy(), "clusters": bags}
    given_ = {k: v for k, v in given_.items() if k in asked}
    given_["n_bags"] = len(sizes)
    try:
        made = make_bags(X, y, variant, **given_, random_state=0)
    except ValueError as error:  # says which argument, or that y, X rule it out
        assert any(
            word in str(error)
            for word in ("proportions", "n_bags", "variant", "y must hold", "n_splits")
        )
        return
    assert made.sizes.sum() == len(y) and (made.sizes > 0).all()
    np.testing.assert_array_equal(made.sizes, np.bincount(made.bags))
    shares = proportions.label_proportions(y, made.bags, classes=[0, 1])
    np.testing.assert_allclose(made.proportions, shares)
    if variant != "Cross-bag" and "sizes" in asked:
        loose = variant == "Intermediate"  # sizes as the clusters allow
        assert loose or made.sizes.tolist() == sizes
    again = make_bags(X, y, variant, **given_, random_state=0)
    np.testing.assert_array_equal(again.bags, made.bags)
    if {"sizes", "proportions"} <= asked:
        entries = list(zip(names, sizes, strict=True))
        order.shuffle(entries)
        keyed_too = {"proportions": wanted, "sizes": pd.Series(dict(entries))}
        again = make_bags(X, y, variant, **given_ | keyed_too, random_state=0)
        np.testing.assert_array_equal(again.bags, made.bags)


@examples
@given(
    sizes=sizes_of_bags,
    seed=seeds,
    n_splits=st.integers(2, 6),
    share=st.floats(0.05, 0.95),
    order=st.randoms(use_true_random=False),
)
def test_splits_are_parts_of_all(sizes, seed, n_splits, share, order):
    X, bags, _, p = little(sizes, seed)
    names = [f"bag {k}" for k in range(len(sizes))]
    shares = list(zip(names, p, strict=True))
    order.shuffle(shares)
    n, rows = len(bags), np.arange(len(bags))
    kinds = {
        "whole": lambda p: ms.FullBagKFold(n_splits, p, random_state=0),
        "sizes": lambda p: ms.FullBagKFold(n_splits),
        "folds": lambda p: ms.SplitBagKFold(n_splits, random_state=0),
        "in order": lambda p: ms.SplitBagKFold(n_splits, shuffle=False),
        "shuffle": lambda p: ms.SplitBagShuffle(n_splits, share, random_state=0),
        "draws": lambda p: ms.SplitBagBootstrap(n_splits, share, random_state=0),
        "rest": lambda p: ms.SplitBagBootstrap(n_splits, share, True, random_state=0),
    }
    for kind, splitter in kinds.items():
        try:
            found = list(splitter(p).split(X, groups=bags))
        except ValueError as error:  # fewer bags than folds; a part without instances
            assert "n_splits" in str(error)
            continue
        named = splitter(dict(shares)).split(X, groups=np.array(names)[bags])
        for (train, test), other in zip(found, named, strict=True):
            np.testing.assert_array_equal(
                np.concatenate([train, test]), np.concatenate(other)
            )
            assert len(train) and len(test)
            if kind in ("folds", "in order", "shuffle", "whole", "sizes"):
                np.testing.assert_array_equal(np.sort(np.append(train, test)), rows)
            elif kind == "rest":
                assert not np.intersect1d(train, test).size
            else:
                assert len(train) + len(test) == n
            if kind in ("whole", "sizes"):
                assert not np.intersect1d(bags[train], bags[test]).size
            if kind in ("folds", "in order", "shuffle"):
                part = share if kind == "shuffle" else 1 / n_splits
                drawn = np.bincount(bags[test], minlength=len(sizes))
                assert (np.abs(drawn - part * np.array(sizes)) < 1 + 1e-9).all()
        if kind in ("folds", "in order", "whole", "sizes"):
            tests = np.concatenate([test for _, test in found])
            np.testing.assert_array_equal(np.sort(tests), rows)


@settings(examples, max_examples=max(2, N_EXAMPLES // 2))
@given(
    sizes=st.lists(st.integers(2, 8), min_size=2, max_size=6),
    seed=seeds,
    scoring=st.sampled_from([None, *ms.SCORES]),
    cv=st.sampled_from([2, ms.SplitBagShuffle(2, random_state=0), ms.FullBagKFold(2)]),
    order=st.randoms(use_true_random=False),
)
@pytest.mark.filterwarnings("ignore")
def test_a_search_is_algorithm_1_whatever_the_keys(sizes, seed, scoring, cv, order):
    X, bags, _, p = little(sizes, seed)
    lams = [0.1, 1.0, 100.0]
    names = [f"bag {k}" for k in range(len(sizes))]
    shares = list(zip(names, p, strict=True))
    order.shuffle(shares)
    search = ms.LLPGridSearchCV(MeanMap(), {"alpha": lams}, scoring=scoring, cv=cv)
    try:
        found = search.fit(X, bags, p)
    except ValueError as error:
        words = ("proportions", "no setting", "All the", "n_splits")
        assert any(word in str(error) for word in words)
        with pytest.raises(ValueError, match="|".join(words)):
            search.fit(X, np.array(names)[bags], dict(shares))
        return
    best, scores = found.best_params_, found.cv_results_["mean_test_score"]
    named = search.fit(X, np.array(names)[bags], dict(shares))
    np.testing.assert_allclose(named.cv_results_["mean_test_score"], scores, atol=1e-6)
    sampled = ms.LLPRandomizedSearchCV(
        MeanMap(), {"alpha": lams}, n_iter=3, scoring=scoring, cv=cv, random_state=0
    ).fit(X, bags, p)
    np.testing.assert_allclose(
        np.sort(sampled.cv_results_["mean_test_score"]), np.sort(scores)
    )
    if np.isfinite(scores).all():
        cv = ms.SplitBagKFold(2, random_state=0) if cv == 2 else cv
        splits = list(cv.split(X, groups=bags))
        if scoring is None:
            scoring = ms.default_score(splits, len(X))
            if scoring.startswith(ms.POOLED):
                return
        scorer = ms.read_scoring(scoring, p, pd.Series(sizes))
        chosen, errors = ms.select_setting(
            MeanMap(),
            [{"alpha": lam} for lam in lams],
            splits,
            (X, bags, p),
            scorer,
        )
        assert chosen == best
        np.testing.assert_allclose(-errors.mean(axis=1), scores)


@pytest.mark.filterwarnings("ignore:MeanMap")
@examples
@given(
    sizes=st.lists(st.integers(1, 8), min_size=2, max_size=6),
    seed=seeds,
    named=st.booleans(),
    form=st.sampled_from(["Series", "dict", "nullable"]),
    order=st.randoms(use_true_random=False),
)
def test_what_is_given_for_each_bag_is_matched_by_its_key(
    sizes, seed, named, form, order
):
    X, bags, _, p = little(sizes, seed)
    rng = np.random.default_rng(seed)
    keys = rng.permutation([f"bag {k}" for k in range(len(sizes))]).tolist()
    keys = keys if named else list(range(len(sizes)))
    shares = pd.Series(p, keys) if named else p
    matrix = np.column_stack([1 - p, p])
    guess = rng.dirichlet([1, 1], len(sizes))
    table = pd.DataFrame(matrix, keys, [0, 1]) if named else matrix
    turn = rng.permutation(len(sizes))

    def key(values):
        """The same values by key, in another order."""
        turned = pd.Series(np.asarray(values)[turn], [keys[i] for i in turn])
        return {
            "Series": turned,
            "dict": turned.to_dict(),
            "nullable": turned.convert_dtypes(),
        }[form]

    wider = np.array(sizes) + rng.integers(0, 3, len(sizes))
    model = MeanMap().fit(X, bags, np.where(np.arange(len(p)) % 2, 0.3, 0.7))
    groups = np.array(keys)[bags]
    one, other = (
        ms.proportion_scorer(shares, "log_likelihood", given_)(model, X, groups)
        for given_ in (wider, key(wider))
    )
    assert one == other
    turned = pd.DataFrame(guess[turn], [keys[i] for i in turn], [0, 1])[[1, 0]]
    for error in ("proportion_mae", "proportion_weighted_mse", "prior_mse"):
        function = getattr(proportions, error)
        wanted = function(matrix, guess, wider)
        assert function(table, guess, key(wider)) == pytest.approx(wanted)
        if named:  # columns too
            assert function(table, turned, wider) == pytest.approx(wanted)
    data = base.read_bags(X, groups, shares)
    np.testing.assert_array_equal(
        base.check_bag_weights(key(wider), data),
        base.check_bag_weights(wider.astype(float), data),
    )
    stranger = pd.Series([*wider[1:], 1], [*keys[1:], "a stranger"])
    for call in (
        lambda: ms.proportion_scorer(shares, "log_likelihood", stranger)(
            model, X, groups
        ),
        lambda: proportions.class_prior(table, stranger),
        lambda: base.check_bag_weights(stranger, data),
        lambda: plotting.plot_proportions(shares, stranger),
    ):
        with pytest.raises(ValueError, match=r"is matched by its keys.* as an array"):
            call()
