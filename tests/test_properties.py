"""Whatever form the input has: the right answer, equal to the plain call, or an error that names the argument.

``make properties`` runs thousands of examples; `make test` a seeded slice.
"""

import contextlib
import os
import tempfile
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from problems import quick as make
from sklearn.base import clone

from llpbook import all_estimators, fit_chunks
from llpbook.bag_losses import EasyLoss
from llpbook.conv_svm import ConvSVM
from llpbook.density_difference import KDEDifference
from llpbook.diagnosis import diagnose
from llpbook.em import EMLR
from llpbook.mean_map import MeanMap
from llpbook.proportions import label_proportions

# Many bags for every method: those for two bags say that they pool them; drawn labels may say little, or too much.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.* bags into two samples",
    "ignore:.* is too sure",
    "ignore:proportions hardly differ",
    "ignore:the shares of the two samples differ",
)
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
        known = None if labels is None else problem.labels
        plain = make(cls).fit(problem.X, problem.bags, problem.p, labels=known)
    except ValueError as error:  # equal shares, say: then in every form
        with pytest.raises(type(error)):
            make(cls).fit(X, bags, p, labels=labels)
        return
    model = make(cls).fit(X, bags, p, labels=labels)
    wanted = scores(plain, problem.X)
    size = max(1.0, np.abs(wanted).max())
    assert_allclose(scores(model, X) / size, wanted / size, atol=1e-5)
    shares = model.predict_proportions(X, bags)
    assert len(shares) == len(problem.p)


# --- few bags, small bags, ties: diagnosis, bags made ----------------------------------------------------------------

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


# --- a fit and the same fit in another form ---------------------------------------------------------------------------

#: Settings beside the default, of the estimators that have them.
SETTINGS = [
    {}, {}, {"kernel": "rbf"}, {"kernel": "laplacian", "gamma": 0.5}, {"fit_intercept": False},
    {"penalize_intercept": True}, {"bag_weights": "uniform"}, {"bag_deviation": 0.5}, {"soft": True},
    {"scheme": "sws"}, {"scheme": "fws"}, {"init": "random"},
    *({"loss": loss} for loss in ("normal", "proportion", "squares", "easy", "forward", EasyLoss(factor="worth"))),
]  # fmt: skip
ALL = [cls for _, cls in all_estimators()]
#: Fast settings; and one solver stops where another begins.
QUICK = {
    "AlterSVM": {"n_init": 1}, "BagBoosting": {"max_iter": 3}, "CountBoosting": {"max_iter": 3},
    "ConvSVM": {"max_cutting_planes": 2}, "CountCalibration": {"n_folds": 2}, "LSDD": {"sigma": 1.0, "alpha": 0.1},
    "DSDD": {"sigma": 1.0, "alpha": 0.1}, "KDEDifference": {"sigma": 1.0}, "SMIC": {"n_neighbors": 3},
    "CountLogistic": {"tol": 1e-9}, "BagLogistic": {"tol": 1e-8}, "MeanMap": {"tol": 1e-9},
    "LaplacianMeanMap": {"tol": 1e-9}, "AlternatingMeanMap": {"tol": 1e-9},
}  # fmt: skip


class Form:
    """A drawn problem: rows that stand for several instances, bags of very different sizes, two or three classes."""

    def __init__(self, seed, cls, setting, few_levels, labeled):
        rng = np.random.default_rng(seed)
        own = {k: v for k, v in setting.items() if k in cls().get_params()}
        self.model = make(cls, **QUICK.get(cls.__name__, {}) | own)
        K, L = int(rng.integers(2, 4)), int(rng.integers(4, 9))
        self.bags = rng.permutation(np.repeat(np.arange(L), rng.integers(2, 9, L)))
        y = (self.bags + rng.integers(0, K, len(self.bags)) ** 2) % K
        y[:K] = np.arange(K)
        X = rng.normal(size=(len(y), 2)) + y[:, None] * [1.5, -1.0]
        self.X, self.rng, self.L = np.round(X) if few_levels else X, rng, L
        self.counts = rng.integers(1, 4, len(y))
        self.P = label_proportions(
            np.repeat(y, self.counts),
            np.repeat(self.bags, self.counts),
            classes=range(K),
        )
        known = rng.random(len(y)) < 0.3 * labeled
        self.labels = np.where(known, y, -1) if known.any() else None

    def fit(self, rows=None, P=None, bags=None, model=None, **more):
        """The scores of the drawn instances by a fit to some rows, each as often as it is named."""
        model = clone(self.model) if model is None else model
        rows = np.arange(len(self.X)) if rows is None else rows
        bags = self.bags[rows] if bags is None else bags
        labels = None if self.labels is None else self.labels[rows]
        model.fit(self.X[rows], bags, self.P if P is None else P, labels, **more)
        return scores(model, self.X)

    def plain(self):
        return self.fit(np.repeat(np.arange(len(self.X)), self.counts))


def in_cells(form):
    return form.fit(counts=form.counts)


def in_another_order(form):
    return form.fit(
        form.rng.permutation(np.repeat(np.arange(len(form.X)), form.counts))
    )


def cells_in_another_order(form):
    order = form.rng.permutation(len(form.X))
    return form.fit(order, counts=form.counts[order])


def with_named_bags(form):
    names = form.rng.permutation([f"bag {k}" for k in range(form.L)])
    shares = pd.DataFrame(form.P, names, range(form.P.shape[1]))
    shares.loc["nobody"] = np.eye(form.P.shape[1])[0]
    shares = shares.sample(frac=1, random_state=0)
    return form.fit(P=shares, bags=names[form.bags], counts=form.counts)


def refitted(form):
    model, other = clone(form.model), 1 / form.P.shape[1]
    frame = pd.DataFrame(form.X, columns=["a", "b"]).assign(c=form.X[:, 0] ** 2)
    shares = pd.DataFrame(0.5 * form.P[::-1] + 0.5 * other).rename(columns=str)
    with contextlib.suppress(ValueError):
        model.fit(frame, form.bags, shares)
    return form.fit(model=model, counts=form.counts)


def from_chunks(form):
    model = clone(form.model)
    needed = model._sums_needed() if hasattr(model, "_sums_needed") else None
    linear = getattr(model, "kernel", "linear") == "linear"
    if needed is None or not linear or form.labels is not None:
        return None  # does not reduce to sums; labels would be bags of chunks
    rows = np.repeat(np.arange(len(form.X)), form.counts)
    frame = pd.DataFrame(form.X[rows], columns=["a", "b"]).assign(bag=form.bags[rows])
    part = form.rng.integers(0, 3, form.L)[frame["bag"]]
    fit_chunks(model, [frame[part == k] for k in range(3)], form.P, bags="bag")
    return scores(model, pd.DataFrame(form.X, columns=["a", "b"]))


def in_threads(form):
    before = list(warnings.filters)
    with ThreadPoolExecutor(3) as pool:
        answers = list(pool.map(lambda _: form.fit(counts=form.counts), range(3)))
    assert list(warnings.filters) == before
    np.testing.assert_array_equal(answers[0], answers[1])
    np.testing.assert_array_equal(answers[0], answers[2])
    return answers[0]


FORMS = [
    in_cells,
    in_another_order,
    cells_in_another_order,
    with_named_bags,
    refitted,
    from_chunks,
    in_threads,
]


REORDERED = [in_another_order, cells_in_another_order, with_named_bags]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
@examples
@given(
    seed=st.integers(0, 10**6),
    cls=st.sampled_from(ALL),
    setting=st.sampled_from(SETTINGS),
    few_levels=st.booleans(),
    labeled=st.booleans(),
)
def test_a_fit_in_another_form_is_the_same_fit(
    form, seed, cls, setting, few_levels, labeled
):
    if setting.get("loss") == "forward" and form in REORDERED:
        return  # among equal shares the numbers of the bags decide, see `pair_bags`
    # Cutting planes stop early here, where ties would decide.
    case = Form(seed, cls, setting, few_levels and cls is not ConvSVM, labeled)
    try:
        wanted = case.plain()
    except ValueError as error:  # equal shares, three classes, no labels: in each form
        with contextlib.suppress(type(error)):
            assert form(case) is None, error
        return
    found = form(case)
    if found is not None:
        size = max(1.0, np.abs(wanted[np.isfinite(wanted)]).max(initial=0))
        assert_allclose(found / size, wanted / size, atol=1e-4)
