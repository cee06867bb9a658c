"""Whatever form the input has: the right answer, equal to the plain call, or an error that names the argument.

``make properties`` runs thousands of examples; `make test` a seeded slice.
"""

import os
import tempfile

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from problems import quick as make

from llpbook.density_difference import KDEDifference
from llpbook.diagnosis import diagnose
from llpbook.em import EMLR
from llpbook.mean_map import MeanMap

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
