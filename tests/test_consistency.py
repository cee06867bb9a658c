"""The package against itself: every public function and estimator by the same rules.

`CALLS` has a call of each public function with more than one answer, `OTHERS` other values of its options.
"""

import ast
import importlib
import inspect
import re
import sys
import warnings
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, is_dataclass
from functools import cache, partial
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from matplotlib.figure import Figure
from matplotlib.text import Text
from problems import every_estimator
from scipy.stats import loguniform
from sklearn.base import clone
from test_contract import make
from test_functions import public_functions

import llpbook
from llpbook import (
    BagLogistic,
    BagMeanRegression,
    CountLogistic,
    LLPGridSearchCV,
    LLPRandomizedSearchCV,
    MeanMap,
    fit_chunks,
)
from llpbook.bag_losses import (
    BagBatches,
    ConsistencyTerm,
    ProportionLoss,
    WithCopies,
)
from llpbook.base import seed_of_bins
from llpbook.model_selection import (
    FullBagKFold,
    SplitBagBootstrap,
    SplitBagKFold,
    SplitBagShuffle,
)

pytestmark = pytest.mark.filterwarnings("ignore")
plt.switch_backend("agg")


# --- a call of each public function ----------------------------------------------------------------------------------

RNG = np.random.default_rng(3)
BAGS, GROUP = np.repeat(np.arange(30), 4), RNG.random(120) < np.repeat([0.3, 0.7], 60)
X = np.column_stack([GROUP, RNG.normal(size=120) + BAGS / 20])
Y = (RNG.random(120) < 1 / (1 + np.exp(1 - X @ [1.0, 1.0]))).astype(int)
P, COUNTS = np.bincount(BAGS, Y) / 4, RNG.integers(1, 3, 120)
LABELS = np.where(RNG.random(120) < 0.5, Y, -1)
TWO = np.column_stack([1 - P, P])
MODEL = CountLogistic(1.0, tol=1e-9).fit(X, BAGS, P)
P_WIDE = np.tile(
    [0.25, 0.75, 0.25, 1.0, 0.5, 0.5], 5
)  # bags differ beyond their features
WIDE = CountLogistic(1.0, tol=1e-9).fit(X, BAGS, P_WIDE)
MANY = 0.1 * RNG.random((9, 3)) + np.arange(3)
TIED = np.array([[1, 2, 2], [1, 2, 3], [1, 1, 3], [2, 1, 3], [1, 3, 3], [1, 2, 3]])
HALVES = pd.DataFrame(
    MANY, pd.MultiIndex.from_product([["a", "b", "c"], range(3)], names=["half", "set"])
)
FRAME = pd.DataFrame(X, columns=["old", "x"]).assign(bag=BAGS)
CHUNKS = [FRAME[FRAME["bag"] % 2 == k] for k in (0, 1)]
COUNTED_CHUNKS = [chunk.assign(n=COUNTS[chunk.index]) for chunk in CHUNKS]
BAND = ["low", "high", "plain", "contextual", "limit", "least", "most", "n"]
BAND = pd.DataFrame([[0.47, 0.72, 0.55, 0.7, 0.3, 0.22, 0.98, 900]], ["old"], BAND)
OLD = np.round(
    1000 * np.column_stack([1 - np.linspace(0.1, 0.9, 40), np.linspace(0.1, 0.9, 40)])
)
ILL = RNG.binomial(1000, OLD @ [0.2e-3, 0.6e-3])
ILL = np.column_stack([1000 - ILL, ILL])
CHAIN = {("Y", "X"), ("X", "B")}
JOINT = np.full((2, 2, 2), 1 / 8) + 1e-3 * np.arange(-3.5, 4).reshape(2, 2, 2)


def share_predicted(model):
    return model.predict(X).mean()


def curved(X):
    return X[:, 0] ** 3 + X[:, 1] ** 3


def table(*names, **more):
    """Arguments by the names that they have in all functions."""
    common = {
        "model": MODEL, "estimator": BagMeanRegression(), "X": X, "bags": BAGS, "proportions": P, "group": GROUP,
        "chunks": CHUNKS, "y": Y, "bag_sizes": np.full(30, 4), "predicted": 0.9 * TWO + 0.05,
    }  # fmt: skip
    return {name: common[name] for name in names} | more


OF_BAGS, OF_GROUPS = ("X", "bags", "proportions"), ("bags", "proportions", "group")
CALLS = {
    "accuracy_bounds": table("bags", "proportions", predicted=Y),
    "adversarial_shift": {"decision_function": curved, "X": X},
    "average_ranks": {"scores": MANY},
    "averaging_matrix": table("bags"),
    "bag_bootstrap": table("estimator", *OF_BAGS, statistic=share_predicted, n_resamples=4, random_state=0),
    "bag_deviation": table("X", "bags", model=WIDE, proportions=P_WIDE, n_resamples=9, random_state=0),
    "bag_influence": table("model", *OF_BAGS),
    "bag_report": table("model", *OF_BAGS),
    "band_sentences": {"band": BAND},
    "binary_labels": table("y", positive=1),
    "chunk_coefficient_table": table("model", "chunks", "proportions", bags="bag", features=["old", "x"]),
    "chunk_group_rate": table(
        "model", "chunks", "proportions", bags="bag", group="old", features=["old", "x"]
    ),
    "check_margins": {"groups": pd.DataFrame(OLD), "classes": pd.DataFrame(ILL + np.eye(40, 2))},
    "class_prior": table("bag_sizes", proportions=TWO),
    "coefficient_table": table("model", *OF_BAGS),
    "count_labelings": {"counts": [[3, 2], [1, 4]]},
    "count_log_likelihood": table("bags", proportions=TWO, probabilities=MODEL.predict_proba(X)),
    "critical_difference": {"n_methods": 4, "n_sets": 8},
    "dags_of": {"name": "simple"},
    "dataset_names": {},
    "diagnose": table(*OF_BAGS, n_permutations=99),
    "draw_dag": {"dag": CHAIN},
    "draw_dags": {},
    "ecological_rates": {"groups": OLD, "classes": ILL},
    "effect_needed": table("model", "X", *OF_GROUPS),
    "effect_sizes": {"first": MANY[:, 0], "second": MANY[:, 1]},
    "expected_accuracy": table("model", "X"),
    "fit_chunks": table("estimator", "chunks", "proportions", bags="bag"),
    "friedman": {"scores": MANY.round(1)},
    "friedman_from_ranks": {"ranks": [1.1, 2.2, 2.7], "n_sets": 9},
    "goodman": table(*OF_GROUPS),
    "group_rate": table("model", "X", *OF_GROUPS),
    "group_rate_band": table("model", "X", *OF_GROUPS),
    "group_rate_bounds": table(*OF_GROUPS),
    "identifiability": table("bags", "proportions"),
    "independences": {"joint": JOINT},
    "indistinct_groups": {"ranks": [1.1, 2.2, 2.7], "critical": 1.0},
    "label_proportions": table("bags", "y"),
    "label_worth": table("model", *OF_BAGS),
    "labeling_error_rate": table("y", labels=1 - Y),
    "load": {"name": "heart"},
    "load_bags": {"name": "heart", "bag_size": 8, "random_state": 0},
    "load_table": {"name": "heart"},
    "make_bags": table("X", "y", variant="simple", random_state=0),
    "make_dataset": table("X", "y", "bags"),
    "name_of": {"pattern": {"X_B|Y"}},
    "needed": {"checked": 100},
    "paired_differences": {"scores": pd.DataFrame(MANY).rename_axis("set"), "reference": 0, "unit": "set"},
    "pattern_of_dag": {"dag": CHAIN},
    "plain_table": {"table": FRAME},
    "plot_bags": table(*OF_BAGS),
    "plot_band": {"band": BAND},
    "plot_critical_difference": {"ranks": {"a": 1.1, "b": 2.2, "c": 2.7}, "n_sets": 9},
    "plot_tomography": {"table": None},
    "polling_errors": table("bags", "proportions"),
    "prior_mse": table("predicted", "bag_sizes", proportions=TWO),
    "proportion_mae": table("predicted", proportions=TWO),
    "proportion_mse": table("predicted", proportions=TWO),
    "proportion_scorer": table("proportions"),
    "proportion_weighted_mse": table("predicted", "bag_sizes", proportions=TWO),
    "provenance": {"name": "heart"},
    "random_bags": table("y", bag_size=6, random_state=0),
    "rank_methods": {"scores": MANY},
    "restore_counts": table("bags", proportions=P.round(2)),
    "recommend": table(*OF_BAGS),
    "resampled_t_test": {"first": MANY[:, 0], "second": MANY[:, 1], "test_train_ratio": 0.5},
    "sample_bags": table("chunks", "proportions", bags="bag", n_bags=5, random_state=0),
    "table": {},
    "tomography": table(*OF_GROUPS),
    "toy_problem": {"which": 1, "random_state": 0},
    "two_bag_test": {"X_p": X[:60], "X_q": X[60:], "n_permutations": 19},
    "use_style": {},
    "varies_between_bags": {},
    "wilcoxon_test": {"first": MANY[:, 0], "second": MANY[:, 1]},
}  # fmt: skip


def called(name, /, **more):
    """The answer of a public function to its call, with other values of some options."""
    arguments = CALLS[name] | more
    if name == "plot_tomography":
        arguments["table"] = FUNCTIONS["tomography"][0](**CALLS["tomography"])
    with matplotlib.rc_context():  # use_style stays here
        answer = FUNCTIONS[name][0](**arguments)
    return answer(MODEL, X, BAGS) if name == "proportion_scorer" else answer


FUNCTIONS = public_functions()


def test_every_public_function_is_called():
    missing = {*FUNCTIONS} - {"row_groups", *CALLS}  # row_groups needs pyarrow
    assert not missing, f"CALLS lacks {sorted(missing)}"


def scores(model, Z=X):
    """What a model says of instances."""
    score = getattr(model, "decision_function", None) or model.predict_proba
    return score(Z)


def text(answer):
    """What an answer says, to be compared: each digit of its numbers, names, the texts and lines of a figure."""
    return re.sub(r"at 0x\w+|at [0-9A-F]{8,}", "", repr(said(answer)))


def said(answer):
    if isinstance(answer, np.ndarray):
        return answer.shape, answer.tolist()
    if sp.issparse(answer):
        return said(answer.toarray())
    if isinstance(answer, pd.DataFrame | pd.Series):
        names = [
            getattr(answer, part, pd.Index([])).tolist()
            for part in ("index", "columns")
        ]
        return *names, answer.astype(object).to_numpy().tolist(), str(answer.attrs)
    if isinstance(answer, Mapping):
        return {str(key): said(value) for key, value in answer.items()}
    if isinstance(answer, tuple | list | set | frozenset):
        return [said(one) for one in answer]
    if is_dataclass(answer):
        return [said(getattr(answer, field.name)) for field in fields(answer)]
    figure = answer if isinstance(answer, Figure) else getattr(answer, "figure", None)
    if figure is not None:
        texts = [text.get_text() for text in figure.findobj(Text)]
        lines = [line.get_xydata().tolist() for ax in figure.axes for line in ax.lines]
        return texts, lines, figure.get_size_inches().tolist()
    if hasattr(answer, "__dict__") and not callable(answer):
        return type(answer).__name__, said(vars(answer))
    return answer


# --- every random number comes from random_state ----------------------------------------------------------------------


def global_generator():
    _, keys, *place = np.random.get_state()  # noqa: NPY002
    return keys.tolist(), place


@cache
def plain(name):
    """What the call says, and whether it has drawn from the global generator."""
    before = global_generator()
    return text(called(name)), global_generator() != before


@pytest.mark.parametrize("name", CALLS)
def test_no_public_function_draws_from_the_global_generator(name):
    assert not plain(name)[1]


@pytest.mark.parametrize(
    "name", [n for n, (_, p) in FUNCTIONS.items() if "random_state" in p]
)
def test_another_random_state_gives_another_answer(name):
    answers = (text(called(name, random_state=seed)) for seed in range(1, 9))
    assert any(answer != plain(name)[0] for answer in answers)  # of few, some are ties


def test_no_variant_of_bags_draws_from_the_global_generator():
    before = global_generator()
    for variant in ("naive", "intermediate", "label collider", "cross-bag"):
        called("make_bags", variant=variant, n_bags=4)
    assert global_generator() == before


SPLITTERS = FullBagKFold, SplitBagKFold, SplitBagShuffle, SplitBagBootstrap
SEARCHES = {
    "grid": LLPGridSearchCV(MeanMap(), {"alpha": [1.0, 2.0]}, cv=2),
    "random": LLPRandomizedSearchCV(
        MeanMap(), {"alpha": loguniform(0.1, 9.0)}, n_iter=2, cv=2, random_state=0
    ),
}
#: Anything with a fit, by name.
FITTED = every_estimator() | SEARCHES


#: Settings that save a search.
FAST = {
    "DSDD": {"sigma": 1.0, "alpha": 0.1}, "LSDD": {"sigma": 1.0, "alpha": 0.1}, "SMIC": {"n_neighbors": 5},
    "ConvSVM": {"max_cutting_planes": 2},
}  # fmt: skip


def made(name):
    """An estimator, with its seed and few starts, or a search."""
    found = FITTED[name]
    return (
        make(found, **FAST.get(name, {})) if isinstance(found, type) else clone(found)
    )


@pytest.mark.parametrize("name", FITTED)
def test_no_fit_draws_from_the_global_generator(name):
    before = global_generator()
    scores(made(name).fit(X, BAGS, P))
    assert global_generator() == before


@pytest.mark.parametrize("splitter", SPLITTERS)
def test_no_splitter_draws_from_the_global_generator(splitter):
    before = global_generator()
    list(splitter(2, random_state=0).split(X, groups=BAGS))
    assert global_generator() == before


def test_batches_and_searches_are_drawn_by_their_seed():
    before = global_generator()
    one, again, other = (
        text(list(BagBatches(BAGS, random_state=k))) for k in (0, 0, 1)
    )
    assert one == again != other
    search = made("random")
    drawn = [
        text(search.set_params(random_state=k).fit(X, BAGS, P).cv_results_["params"])
        for k in (0, 0, 1)
    ]
    assert drawn[0] == drawn[1] != drawn[2]
    assert global_generator() == before


#: Of scikit-learn's classes with a random_state those that draw nothing with the solvers that are used here.
DRAWS_NOTHING = {"LogisticRegression", "Ridge"}


def test_whatever_of_scikit_learn_may_draw_is_told_its_seed():
    for path in Path(llpbook.__file__).parent.rglob("*.py"):
        tree = ast.parse(path.read_text())
        imports = [n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)]
        known = {
            alias.name: getattr(importlib.import_module(n.module), alias.name)
            for n in imports if n.level == 0 and n.module.startswith("sklearn.") for alias in n.names
        }  # fmt: skip
        for call in ast.walk(tree):
            name = getattr(getattr(call, "func", None), "id", None)
            if isinstance(known.get(name), type) and name not in DRAWS_NOTHING:
                takes = "random_state" in inspect.signature(known[name]).parameters
                given = {keyword.arg for keyword in call.keywords}
                assert not takes or "random_state" in given, f"{path.name}: {name}"


def test_bins_of_many_rows_are_drawn_by_the_seed():
    rng = np.random.RandomState(0)
    assert seed_of_bins(200_000, rng) == 0  # nothing is drawn, and nothing else moves
    assert rng.randint(9) == np.random.RandomState(0).randint(9)
    first, other = (seed_of_bins(200_001, np.random.RandomState(k)) for k in (0, 1))
    assert first == seed_of_bins(200_001, np.random.RandomState(0)) != other
    mapper = importlib.import_module("sklearn.ensemble._hist_gradient_boosting.binning")
    assert mapper._BinMapper().subsample == 200_000


# --- a refit is a fit -------------------------------------------------------------------------------------------------

THREE = np.column_stack([P / 2, P / 2, 1 - P])
THREE[::3] = THREE[::3, [1, 2, 0]]
NAMED = pd.DataFrame(TWO, [f"bag {k}" for k in range(30)], ["no", "yes"])
#: Fits one after the other, each of which leaves something that the next has not: kernels, names, classes, labels.
FITS = {
    "named": lambda m: m.fit(FRAME[["old", "x"]], NAMED.index[BAGS], NAMED),
    "kernel": lambda m: m.set_params(kernel="rbf").fit(X, BAGS, P),
    "labels": lambda m: m.fit(X, BAGS, P, LABELS),
    "three classes": lambda m: m.fit(X[:, 1:], BAGS, THREE),
    "chunks": lambda m: fit_chunks(m, CHUNKS, P, bags="bag"),
    "counts": lambda m: m.fit(X, BAGS, P, counts=COUNTS),
    "deviation": lambda m: m.set_params(bag_deviation=1.0).fit(X, BAGS, P),
    "errors": lambda m: m.set_params(proportion_errors=np.full(30, 0.05)).fit(X, BAGS, P),
    "two bags": lambda m: m.fit(X, BAGS // 15),
}  # fmt: skip


def attributes(model):
    """What a fit has left, to be compared."""
    return {
        k: text(v)
        for k, v in vars(model).items()
        if k not in model.get_params(deep=False)
    }


@pytest.mark.parametrize("name", every_estimator())
def test_a_refit_is_a_fit(name):
    model, one = made(name), made(name)
    defaults = model.get_params()
    for what in [*FITS, *list(FITS)[-2::-1]]:
        one = clone(one).set_params(**defaults)
        try:
            FITS[what](one)
        except (ValueError, TypeError):  # what this estimator does not do
            continue
        FITS[what](model.set_params(**defaults))
        assert attributes(model) == attributes(one), what


def test_groups_are_those_of_all_chunks():
    groups = np.array(["a", "b", "c"])[np.where(BAGS < 10, 2, np.arange(120) % 2)]
    frame = FRAME.assign(group=groups)
    model = CountLogistic(1.0, tol=1e-9).fit(X, BAGS, P)
    wanted = FUNCTIONS["group_rate"][0](model, X, BAGS, P, groups)
    first = frame[frame["bag"] < 10]  # holds the last group only
    rest = [frame[frame["bag"] == k] for k in range(10, 30)]
    for chunks in ([first, *rest], [*rest, first], [rest[0], first, *rest[1:]]):
        found = FUNCTIONS["chunk_group_rate"][0](
            model, chunks, P, "group", bags="bag", features=["old", "x"]
        )
        pd.testing.assert_frame_equal(found, wanted, check_index_type=False, atol=1e-7)


def test_groups_have_one_type_in_all_chunks():
    frame = FRAME.assign(group=FRAME["old"] > 0)
    named = frame.assign(group=frame["group"].astype(int))
    chunks = [frame[frame["bag"] < 10], named[named["bag"] >= 10]]
    with pytest.raises(ValueError, match="group holds True and False in some chunks"):
        called("chunk_group_rate", chunks=chunks, group="group", features=["old", "x"])


def test_copies_have_rows_of_their_own():
    loss = WithCopies(ProportionLoss()) + 0.1 * ConsistencyTerm()
    rows, bags = np.vstack([X, X]), np.tile(BAGS, 2)
    one = np.ones(240, int)
    with pytest.raises(ValueError, match="in the same bags and order"):
        BagLogistic(loss).fit(rows, bags, P)  # a linear model sorts rows by bags
    with pytest.raises(ValueError, match="counts must not be given, nor equal rows"):
        BagLogistic(loss).fit(rows, bags, P, counts=one)


KERNELS = {
    "": {}, "rbf": {"kernel": "rbf"}, "laplacian": {"kernel": "laplacian"},
    "callable": {"kernel": lambda A, B: (1 + A @ B.T) ** 2},
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "kernel"),
    [
        pytest.param(name, kernel, id=f"{name} {kernel}")
        for name, cls in every_estimator().items()
        for kernel in KERNELS
        if not kernel or "kernel" in cls().get_params()
    ],
)
def test_a_prediction_does_not_depend_on_the_other_rows(name, kernel):
    model = made(name).set_params(**KERNELS[kernel]).fit(X, BAGS, P)
    new = X[np.random.default_rng(0).permutation(120)] + np.array([0.0, 0.5])  # as many
    together = scores(model, new)
    for rows in (slice(0, 1), slice(1, 70), slice(70, None)):
        np.testing.assert_allclose(scores(model, new[rows]), together[rows], atol=1e-9)
    half = scores(model, np.vstack([new, X[:7]]))[: len(new)]
    np.testing.assert_allclose(half, together, atol=1e-9)


# --- a kernel matrix and the kernel of its features ------------------------------------------------------------------


def product(A, B):
    return 1 + A @ B.T


@pytest.mark.parametrize(
    "name",
    [n for n, cls in every_estimator().items() if "kernel" in cls().get_params()],
)
@pytest.mark.parametrize("labels", [None, LABELS], ids=["", "labels"])
def test_a_kernel_matrix_with_counts_is_the_kernel_of_repeated_rows(name, labels):
    K, times = product(X, X), np.tile([0, 1, 2], 40)  # as many as before
    rows = np.repeat(np.arange(120), times)
    wanted = made(name).set_params(kernel=product)
    wanted.fit(X[rows], BAGS[rows], P, None if labels is None else labels[rows])
    model = made(name).set_params(kernel="precomputed")
    model.fit(K, BAGS, P, labels, counts=times)
    np.testing.assert_allclose(
        scores(model, K),
        scores(wanted),
        rtol=1e-6,
        atol=1e-6 * np.abs(scores(wanted)).max(),
    )
    assert model.n_features_in_ == 120
    model.fit(K[:60, :60], BAGS[:60], P[:15])  # nothing of the other rows is left
    assert scores(model, K[:, :60]).shape == (120,)
    with pytest.raises(ValueError, match="one column for each of the 60 training"):
        model.fit(K[:60], BAGS[:60], P[:15])
    with pytest.raises(ValueError, match="similarities"):
        model.fit(K + np.triu(K.max() * np.ones_like(K), 1), BAGS, P)


def test_a_kernel_matrix_is_not_drawn_from():
    with pytest.raises(ValueError, match="each draw has others: pass features as X"):
        called("bag_bootstrap", estimator=MeanMap(kernel="precomputed"), X=X @ X.T)


# --- keys are compared exactly ----------------------------------------------------------------------------------------

KEYS = {
    "text and numbers": [1, "1", 2, "2", None, 0],
    "fractions": [1.0, 1.4, 0.6, 2.0, None, 0.0],
    "pairs": [("a", 1), ("a", "1"), ("b", 1), ("b", "1"), None, ("a", 0)],
    "large": [2**53, 2**53 + 1, 2**53 + 2, 2**60 + 1, None, 2**60],
}  # fmt: skip
FORMS = {
    "list": list,
    "tuple": tuple,
    "objects": lambda keys: pd.Series(keys, dtype=object).to_numpy(),
    "Series": lambda keys: pd.Series(keys, dtype=object),
    "Categorical": lambda keys: pd.Series(keys, dtype=object).astype("category"),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", KEYS)
def test_keys_are_compared_exactly(kind, form):
    *keys, _, other = KEYS[kind]
    codes, shares = np.arange(120) // 30, np.array([0.1, 0.9, 0.3, 0.6])
    bags = FORMS[form]([keys[code] for code in codes])
    keyed = dict(zip([other, *keys], [0.5, *shares], strict=True))
    wanted = MeanMap().fit(X, codes, shares)
    for model in (MeanMap(), LLPGridSearchCV(MeanMap(), {"alpha": [1.0]}, cv=2)):
        model.fit(X, bags, keyed)
        np.testing.assert_allclose(scores(model), scores(wanted))
        found = model.predict_proportions(X, bags)
        assert found.index.tolist() == keys
        np.testing.assert_array_equal(found, wanted.predict_proportions(X, codes))
    splits = zip(
        FullBagKFold(2).split(X, groups=bags),
        FullBagKFold(2).split(X, groups=codes),
        strict=True,
    )
    assert all((a == b).all() for pair in splits for a, b in zip(*pair, strict=True))
    assert len(BagBatches(bags, 1)) == 4
    with pytest.raises(ValueError, match="not a key of proportions"):
        MeanMap().fit(
            X, bags, {key: share for key, share in keyed.items() if key != keys[1]}
        )


@pytest.mark.parametrize("form", ["list", "objects", "Series"])
def test_a_number_and_its_text_are_two_classes_and_groups(form):
    y = np.array([1, "1"], dtype=object)[Y]
    given = FORMS[form](y.tolist())
    table = pd.DataFrame(TWO, columns=[1, "1"])
    model = MeanMap().fit(
        X, BAGS, table, FORMS[form](np.where(LABELS < 0, -1, y).tolist())
    )
    wanted = MeanMap().fit(X, BAGS, P, LABELS)
    np.testing.assert_allclose(scores(model), scores(wanted))
    assert model.score(X, given) == wanted.score(X, Y)
    shares = FUNCTIONS["label_proportions"][0](given, BAGS, classes=[1, "1"])
    np.testing.assert_array_equal(shares, TWO)
    assert FUNCTIONS["label_proportions"][0](given, BAGS).shape == (30, 2)
    rates = FUNCTIONS["group_rate"][0](MODEL, X, BAGS, P, given)
    assert sorted(map(repr, rates.index)) == ["'1'", "1"]


@pytest.mark.parametrize("form", FORMS)
def test_two_bags_without_shares_may_be_a_number_and_its_text(form):
    bags = FORMS[form]([1, "1"] * 60)
    found = made("KDEDifference").fit(X, bags)
    wanted = made("KDEDifference").fit(X, np.arange(120) % 2)
    np.testing.assert_array_equal(scores(found), scores(wanted))


def test_numbers_that_a_float_cannot_tell_apart_are_refused_as_bags():
    keys = [2**53, 2**53 + 1]
    shares, bags = pd.Series([0.2, 0.8], keys), np.repeat(keys, 60)
    MeanMap().fit(X, bags, shares)
    with pytest.raises(ValueError, match="type float64, which cannot tell it"):
        MeanMap().fit(X, bags.astype(float), shares)
    single = np.repeat(np.float32([2**24, 2**24 + 2]), 60)
    with pytest.raises(ValueError, match="type float32, which cannot tell it"):
        MeanMap().fit(X, single, {2**24: 0.2, 2**24 + 1: 0.5, 2**24 + 2: 0.8})


@pytest.mark.parametrize("form", ["%m/%d/%Y", "%Y-%m-%d", "%d %b %Y"])
def test_text_is_no_date(form):
    """Pandas reads it as one, and the third of February as the second of March."""
    days = pd.date_range("2020-01-01", periods=30)
    shares, words = pd.Series(P, days), days.strftime(form)
    wanted = MeanMap().fit(X, BAGS, P).coef_
    np.testing.assert_array_equal(MeanMap().fit(X, days[BAGS], shares).coef_, wanted)
    with pytest.raises(ValueError, match="not a key of proportions"):
        MeanMap().fit(X, words[BAGS], shares)
    with pytest.raises(ValueError, match="not a key of proportions"):
        MeanMap().fit(X, days[BAGS], shares.set_axis(words))
    model = MeanMap().fit(X, days[BAGS], shares)
    assert len(model.predict_proportions(X, np.array(words)[BAGS])) == 30


#: Settings with which first guesses lead to different answers.
STARTS = {
    "AOCKernelKMeans": {"n_init": 1}, "AlterSVM": {"n_init": 1, "C_p": 0.1}, "EMLR": {"init": "random"},
}  # fmt: skip


@pytest.mark.parametrize("name", STARTS)
def test_equal_rows_of_several_bags_may_stand_in_any_order(name):
    """A first guess is drawn per row, so that rows need an order of their own."""
    few = np.round(X)
    for seed in range(3):
        model = FITTED[name](random_state=seed, **STARTS[name])
        wanted = scores(model.fit(few, BAGS, P), few)
        turn = np.random.default_rng(seed).permutation(len(few))
        answer = scores(model.fit(few[turn], BAGS[turn], P), few)
        np.testing.assert_allclose(answer, wanted, atol=1e-8)


# --- fits in threads ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FITTED)
def test_fits_in_threads_leave_the_filters_of_warnings_alone(name):
    """Each is fitted in three threads at once, which change turns as often as they can."""
    before, interval = list(warnings.filters), sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(3) as pool:
            fits = list(pool.map(lambda _: made(name).fit(X, BAGS, P), range(3)))
            said = list(pool.map(scores, fits))
    finally:
        sys.setswitchinterval(interval)
    assert list(warnings.filters) == before
    np.testing.assert_array_equal(said[0], said[1])


def test_the_package_sets_no_filter_of_warnings():
    """They are those of the whole process; what is not to be said is kept quiet where it would be said."""
    setters = {"catch_warnings", "simplefilter", "filterwarnings", "resetwarnings"}
    for path in Path(llpbook.__file__).parent.rglob("*.py"):
        calls = [
            n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Call)
        ]
        names = {
            getattr(call.func, "attr", getattr(call.func, "id", "")) for call in calls
        }
        assert not names & setters, path.name


# --- an option acts, or is refused ------------------------------------------------------------------------------------


#: By function and option: another value, and what else is set where the option acts in some settings only.
OTHERS = {
    "accuracy_bounds": {"counts": COUNTS, "rounding": 0.1},
    "adversarial_shift": {"radius": 0.2, "step": 0.5},
    "averaging_matrix": {"counts": COUNTS, "n_bags": 40},
    "bag_bootstrap": {"counts": COUNTS, "n_resamples": 5},
    "bag_deviation": {"counts": COUNTS, "C": (1.0, 10.0), "n_resamples": 19},
    "bag_influence": {"labels": LABELS, "counts": COUNTS, "group": GROUP},
    "bag_report": {"counts": COUNTS, "proportion_errors": np.full(30, 0.05), "level": 0.5},
    "band_sentences": {"outcome": "being registered"},
    "check_margins": {"rule": "scale"},
    "chunk_coefficient_table": {"counts": "n", "features": ["x", "old"], "level": 0.5},
    "chunk_group_rate": {"counts": "n", "features": ["x", "old"], "level": 0.5, "rounding": 0.1},
    "coefficient_table": {"labels": LABELS, "counts": COUNTS, "names": ["old", "x"], "level": 0.5},
    "count_log_likelihood": {"counts": COUNTS, "bag_sizes": np.full(30, 8)},
    "critical_difference": {"test": "nemenyi", "level": 0.05},
    "dataset_names": {"encoding": "franco2023"},
    "diagnose": {"labels": LABELS, "counts": COUNTS, "alpha": 0.2, "exact": True, "n_permutations": 199},
    "ecological_rates": {"strata": np.arange(40) % 2, "correlation": 0.5, "level": 0.5},
    "effect_needed": {"value": 0.5, "counts": COUNTS, "rounding": 0.1},
    "expected_accuracy": {"counts": COUNTS, "bags": BAGS, "proportions": P},
    "fit_chunks": {"counts": "n", "features": ["x", "old"]},
    "friedman": {"correct_ties": False},
    "friedman_from_ranks": {"tie_factor": 0.5},
    "goodman": {"counts": COUNTS, "weights": "uniform"},
    "group_rate": {"labels": LABELS, "counts": COUNTS, "level": 0.5, "rounding": 0.1},
    "group_rate_band": {"units": BAGS // 10, "counts": COUNTS, "limit": 0.1, "rounding": 0.1},
    "group_rate_bounds": {"counts": COUNTS, "rounding": 0.1},
    "identifiability": {"counts": COUNTS},
    "independences": {"tol": 0.01},
    "label_proportions": {"counts": COUNTS, "n_bags": 40, "classes": [1, 0]},
    "label_worth": {"counts": COUNTS},
    "load": {"encoding": "raw", "missing": "keep", "classes": ["Iris-setosa", "Iris-virginica"]},
    "load_bags": {
        "bag_size": 9, "n_bags": 7, "by": "sex", "encoding": "raw", "missing": "keep", "positive": "absent",
        "classes": ["Iris-setosa", "Iris-virginica"],
    },
    "make_bags": {
        "n_bags": 5, "sizes": np.full(12, 10), "proportions": np.linspace(0.2, 0.9, 10), "clusters": GROUP,
    },
    "make_dataset": {"positive": 0, "name": "mine"},
    "paired_differences": {"by": ["half"], "test_train_ratio": 0.5},
    "plain_table": {"codes": ["old"]},
    "plot_bags": {"class_names": ["a", "b"], "counts": COUNTS, "max_bags": 4, "figsize": (9, 9)},
    "plot_band": {"truth": [0.4]},
    "plot_critical_difference": {"control": "b", "level": 0.05, "figsize": (9, 9)},
    "polling_errors": {"counts": COUNTS, "design": 2.0},
    "proportion_mae": {"bag_sizes": np.arange(30)},
    "proportion_scorer": {"error": "mse", "bag_sizes": np.full(30, 8), "soft": False},
    "provenance": {"encoding": "full"},
    "random_bags": {"bag_size": 7, "n_bags": 9},
    "recommend": {"labels": LABELS, "counts": COUNTS, "proportion_errors": np.full(30, 0.1)},
    "restore_counts": {"counts": COUNTS},
    "sample_bags": {"counts": "n", "features": ["x"]},
    "tomography": {"model": MODEL, "X": X, "counts": COUNTS, "rounding": 0.1},
    "toy_problem": {"n": 20, "priors": (0.4, 0.6)},
    "two_bag_test": {"n_permutations": 29, "alpha": 0.2},
}  # fmt: skip


#: Options that change no answer, and why.
IDLE = {
    "n_jobs": "work at once",
    "verbose": "news",
    "check_chunks": "notices chunks that change",
    "max_seconds": "a limit of time",
    "ax": "where a figure is drawn",
}
OF_CHUNKS = ("chunk_coefficient_table", "chunk_group_rate")
#: What else is set in both calls, where an option acts in some settings only.
NEEDS = {
    ("friedman", "correct_ties"): {"scores": TIED},
    ("goodman", "weights"): {"counts": COUNTS},
    **{("load", option): {"name": "credit-a"} for option in ("encoding", "missing")},
    **{("load_bags", option): {"name": "credit-a"} for option in ("encoding", "missing")},
    ("load", "classes"): {"name": "iris"},
    ("load_bags", "classes"): {"name": "iris"},
    ("paired_differences", "by"): {"scores": HALVES},
    **{("proportion_scorer", option): {"error": "log_likelihood"} for option in ("bag_sizes", "soft")},
    **{
        (name, "counts"): {"chunks": COUNTED_CHUNKS, "features": ["old", "x"]}
        for name in ("fit_chunks", "sample_bags", *OF_CHUNKS)
    },
}  # fmt: skip
OF_MODEL = (
    "bag_influence",
    "coefficient_table",
    "effect_needed",
    "group_rate",
    "group_rate_band",
)
TURNED = CountLogistic(1.0, tol=1e-9).fit(FRAME[["x", "old"]], BAGS, P)
COUNTED = CountLogistic(1.0, tol=1e-9).fit(X, BAGS, P, counts=COUNTS)
LABELED = CountLogistic(1.0, tol=1e-9).fit(X, BAGS, P, LABELS)
#: What must be changed with it.
WITH = {
    ("expected_accuracy", "bags"): {"proportions": P},
    ("expected_accuracy", "proportions"): {"bags": BAGS},
    **{(name, "counts"): {"model": COUNTED} for name in (*OF_MODEL, *OF_CHUNKS)},
    **{(name, "features"): {"model": TURNED} for name in OF_CHUNKS},
    **{
        (name, "labels"): {"model": LABELED}
        for name in ("bag_influence", "coefficient_table", "group_rate")
    },
    ("load_bags", "n_bags"): {"bag_size": None},
    ("load_bags", "by"): {"bag_size": None},
    ("random_bags", "n_bags"): {"bag_size": None},
    ("tomography", "model"): {"X": X},
    ("tomography", "X"): {"model": MODEL},
}
OPTIONS = [
    pytest.param(name, option, id=f"{name}-{option}")
    for name, (_, parameters) in FUNCTIONS.items()
    for option, p in parameters.items()
    if p.default is not p.empty and option not in IDLE and option != "random_state"
]


@pytest.mark.parametrize(("name", "option"), OPTIONS)
def test_every_option_of_a_public_function_acts(name, option):
    needs, changed = NEEDS.get((name, option), {}), WITH.get((name, option), {})
    before = global_generator()
    other = called(name, **needs | changed | {option: OTHERS[name][option]})
    assert global_generator() == before
    assert text(other) != (text(called(name, **needs)) if needs else plain(name)[0])
    if changed:  # alone it is refused, with the name of what is missing
        with pytest.raises(ValueError, match="|".join(changed)):
            called(name, **needs | {option: OTHERS[name][option]})


# --- defaults ---------------------------------------------------------------------------------------------------------

#: Each default that is a value: a change of one changes everybody's results, and belongs to the change log.
DEFAULTS = """
AOCKernelKMeans(C_p=1.0, kernel="linear", gamma="scale", n_init=10, max_iter=100)
AlterSVM(C=0.1, C_p=10.0, kernel="linear", gamma="scale", fit_intercept=True, bag_weights="size", annealing="fast", \
init="random", n_init=10)
AlternatingMeanMap(alpha=1.0, init="laplacian", max_iter=100, bag_weights="size", kernel="linear", gamma="scale", \
fit_intercept=True, tol=1e-06)
BagBatches(bags_per_batch=8)
BagBoosting(loss="counts", learning_rate=1.5, max_iter=100, max_leaf_nodes=8, validation_fraction=0.1, C=0.1)
BagBootstrap(failed=0)
BagLogistic(loss="counts", C=0.1, kernel="linear", gamma="scale", fit_intercept=True, penalize_intercept=False, \
max_iter=1000, tol=1e-05)
BagMeanRegression(alpha=1.0, bag_weights="size")
BagNetwork(loss="proportion", hidden=(64, 64), learning_rate=0.005, alpha=0.0001, batch_size=128, max_iter=100, \
validation_fraction=0.1, consistency_weight=0.05, radius=0.5, mix_bags=False, device="cpu")
BagReport(spread_limit=inf, deviation=nan)
ClusterModelSelection(n_clusters=6, labeler="exhaustive", combine="weighted", max_iter=10, population_size=25, \
mutation_variance=1.0, crossover_probability=0.3, tournament_size=0.25)
CoefficientTable(level=0.95, classes=())
ConvSVM(C=1.0, epsilon=0.0, kernel="linear", gamma="scale", fit_intercept=True, cutting_planes="ascent", \
max_cutting_planes=20, tol=0.001)
CountBoosting(learning_rate=1.5, max_iter=100, max_leaf_nodes=8, validation_fraction=0.1, C=0.1, exact_up_to=20)
CountCalibration(n_folds=10, lapse=0.01, exact_up_to=20)
CountLogistic(C=0.1, kernel="linear", gamma="scale", fit_intercept=True, penalize_intercept=False, exact_up_to=20, \
max_iter=1000, tol=1e-05)
CountLoss(exact_up_to=20, bag_deviation=0.0)
DSDD(sigma="cv", alpha="cv", n_centers=300, init="hinge", n_folds=5, n_tuning=1000, class_prior="balanced", \
max_iter=100, tol=1e-09)
EMLR(C=1.0, init="majority", soft=False, stop="fixed_point", max_iter=500, tol=0.0001)
EasyLoss(factor="size")
FullBagKFold(n_splits=5)
Identifiability(step=0.0, n_restored=0, doubt="")
InvCal(C_p=1.0, epsilon=0.1, epsilon_unit="log_odds", kernel="linear", gamma="scale", fit_intercept=True, \
bag_weights="uniform", tol=1e-09)
KDEDifference(sigma="cv", class_prior="balanced")
LLPGridSearchCV(refit=True, pre_dispatch="2*n_jobs", error_score=nan, return_train_score=False)
LLPRandomizedSearchCV(n_iter=10, refit=True, pre_dispatch="2*n_jobs", error_score=nan, return_train_score=False)
LSDD(sigma="cv", alpha="cv", criterion="l2", n_centers=300, n_folds=5, class_prior="balanced")
LogOddsClassifier(loss="counts")
LaplacianMeanMap(alpha=1.0, smoothness=0.1, sigma="median", epsilon=0.0, bag_weights="size", \
operator_weights="size", kernel="linear", gamma="scale", fit_intercept=True, max_iter=1000, tol=1e-06)
MeanMap(alpha=1.0, kernel="linear", gamma="scale", fit_intercept=True, bag_weights="size", max_iter=1000, tol=1e-06)
ProportionLoss(divergence="cross_entropy")
ProportionScorer(error="mae")
SMIC(n_neighbors="cv")
SplitBagBootstrap(n_splits=5, test_size=0.5, out_of_bag=False)
SplitBagKFold(n_splits=5, shuffle=True)
SplitBagShuffle(n_splits=5, test_size=0.5)
Table(rows="")
TestResult(detectable=nan, note="")
WeightedLDA(scheme="wws", logits="posterior", max_iter=300, tol=1e-05)
accuracy_bounds(rounding=0.0)
adversarial_shift(radius=0.1, step=0.0001)
bag_bootstrap(n_resamples=200)
bag_deviation(C=(0.1, 1.0), n_resamples=99)
bag_report(level=0.05)
check_margins(rule="drop")
chunk_coefficient_table(check_chunks=True, level=0.95)
chunk_group_rate(check_chunks=True, level=0.95, rounding=0.0)
coefficient_table(level=0.95)
critical_difference(test="bonferroni-dunn", level=0.1)
diagnose(alpha=0.05, n_permutations=199, random_state=0)
ecological_rates(level=0.95)
effect_needed(rounding=0.0)
fit_chunks(check_chunks=True)
friedman(correct_ties=True)
friedman_from_ranks(tie_factor=1)
goodman(weights="size")
group_rate(level=0.95, rounding=0.0)
group_rate_band(rounding=0.0)
group_rate_bounds(rounding=0.0)
independences(tol=1e-09)
load(encoding="onehot")
load_bags(encoding="onehot")
make_dataset(name="data")
paired_differences(by=(), test_train_ratio=0)
plain_table(codes=())
plot_bags(max_bags=8)
plot_critical_difference(level=0.1)
polling_errors(design=1.0)
proportion_scorer(error="mae")
provenance(encoding="onehot")
recommend(max_seconds=60.0, random_state=0)
tomography(rounding=0.0)
toy_problem(n=30, priors=(0.3, 0.7))
two_bag_test(n_permutations=999, alpha=0.05, random_state=0)
"""
PINNED = [line for line in DEFAULTS.splitlines() if line]


def defaults_of(found):
    """Those of a public object that are values, as its call would be written; "" where there are none."""
    parameters = inspect.signature(found).parameters.values()
    own = [p for p in parameters if p.default not in (p.empty, None)]
    values = [f"{p.name}={p.default!r}" for p in own if p.name != "verbose"]
    return f"{found.__name__}({', '.join(values)})".replace("'", '"') * bool(values)


def public_objects():
    for room in llpbook._ROOMS:
        module = importlib.import_module(f"llpbook.{room}")
        for found in map(partial(getattr, module), module.__all__):
            if inspect.isfunction(found) or (
                inspect.isclass(found) and not issubclass(found, Exception)
            ):
                yield found


@pytest.mark.parametrize("line", PINNED, ids=lambda line: line.partition("(")[0])
def test_a_default_is_what_it_was(line):
    found = {one.__name__: one for one in public_objects()}
    assert defaults_of(found[line.partition("(")[0]]) == line


def test_every_default_is_pinned():
    missing = {*map(defaults_of, public_objects())} - {"", *PINNED}
    assert not missing, f"DEFAULTS lacks {sorted(missing)}"
