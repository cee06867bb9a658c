"""Every estimator that the package exports keeps the contract of `llpbook.base`."""

import ast
import inspect
import pickle
import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from problems import gaussian_bags
from problems import quick as make
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import llpbook
from llpbook import all_estimators
from llpbook.base import LLPClassifier, LLPWarning, NotIdentifiableError
from llpbook.model_selection import proportion_scorer
from llpbook.proportions import label_proportions

# Many bags for every method: those for two bags say that they pool them.
pytestmark = pytest.mark.filterwarnings("ignore:.* bags into two samples")
ESTIMATORS = [cls for _, cls in all_estimators()]
each = pytest.mark.parametrize("cls", ESTIMATORS, ids=lambda cls: cls.__name__)


def problem(seed=0, n=120, d=3):
    """Separable enough that any method beats chance: (X, y, bags, proportions)."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    X = rng.normal(size=(n, d)) + 2.5 * y[:, None]
    bags = np.repeat(np.arange(n // 6), 6)
    order = np.argsort(y + rng.normal(size=n))  # bags with different proportions
    X, y = X[order], y[order]
    return X, y, bags, label_proportions(y, bags)


def scores(model, X):
    return (
        model.decision_function(X)
        if hasattr(model, "decision_function")
        else model.predict_proba(X)
    )


def test_discovery_finds_the_package():
    assert {"MeanMap", "MajorityClass", "BagMeanRegression"} <= {
        cls.__name__ for cls in ESTIMATORS
    }


@each
def test_fit_returns_the_estimator_and_sets_attributes(cls):
    X, _, bags, P = problem()
    model = make(cls)
    assert model.fit(X, bags, P) is model
    assert model.n_features_in_ == 3
    np.testing.assert_array_equal(model.classes_, [0, 1])


@each
def test_clone_and_params(cls):
    X, _, bags, P = problem()
    model = make(cls)
    assert clone(model).get_params() == model.get_params()
    assert (
        clone(model.fit(X, bags, P)).__dict__.keys() == make(cls).__dict__.keys()
    )  # a clone is not fitted
    for name, value in model.get_params().items():
        model.set_params(**{name: value})
    with pytest.raises(ValueError, match="no_such_parameter"):
        model.set_params(no_such_parameter=1)


@each
def test_every_parameter_is_constrained_and_documented(cls):
    params = set(make(cls).get_params())
    assert params == set(cls._parameter_constraints)
    section = inspect.getdoc(cls).split("Attributes\n")[0]
    documented = set()
    for line in section.splitlines():
        name = re.match(r"(\w[\w, ]*) : ", line)
        documented |= set(name[1].split(", ")) if name else set()
    assert params <= documented
    X, _, bags, P = problem()
    for name in params:
        with pytest.raises(ValueError, match=name):
            make(cls).set_params(**{name: object()}).fit(X, bags, P)


@each
def test_the_docstring_states_the_default_of_every_parameter(cls):
    section = inspect.getdoc(cls).split("Attributes\n")[0]
    line = r"(?m)^(\w[\w, ]*) : .*?(?:see `(\w+)`|default (.+)|optional)$"
    stated = {}
    for names, other, default in re.findall(line, section):
        shared = dict(all_estimators())[other]().get_params() if other else {}
        value = ast.literal_eval(default or "None")
        stated |= {name: shared.get(name, value) for name in names.split(", ")}
    assert stated == cls().get_params()


@each
def test_predictions_have_the_documented_shapes(cls):
    X, y, bags, P = problem()
    model = make(cls).fit(X, bags, P)
    assert set(model.predict(X)) <= {0, 1}
    assert model.predict_proportions(X, bags).shape == (20, 2)
    np.testing.assert_allclose(model.predict_proportions(X, bags).sum(axis=1), 1)
    assert model.score(X, y) == np.mean(model.predict(X) == y)
    if hasattr(model, "predict_proba"):
        assert model.predict_proba(X).shape == (120, 2)
        np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    if hasattr(model, "decision_function"):
        assert model.decision_function(X).shape == (120,)
        np.testing.assert_array_equal(
            model.predict(X), (model.decision_function(X) > 0).astype(int)
        )


@each
def test_predictions_are_in_the_users_label_space(cls):
    X, y, bags, P = problem()
    numbers = make(cls).fit(X, bags, P).predict(X)
    words = make(cls).fit(X, bags, pd.DataFrame(P, columns=["no", "yes"])).predict(X)
    np.testing.assert_array_equal(words == "yes", numbers == 1)
    signs = make(cls).fit(X, bags, pd.DataFrame(P, columns=[-1, 1]))
    assert signs.score(X, 2 * y - 1) == np.mean(numbers == y)


@each
def test_all_forms_of_bags_and_proportions_give_the_same_model(cls):
    X, _, bags, P = problem()
    reference = scores(make(cls).fit(X, bags, P), X)
    names = np.array([f"county {k}" for k in range(20)])
    p = pd.Series(P[:, 1], names)
    forms = [
        (bags, P[:, 1]),
        (bags.tolist(), P.tolist()),
        (pd.Series(bags), pd.Series(P[:, 1])),
        (names[bags], p),
        (names[bags], p.sample(frac=1, random_state=0)),
        (names[bags], p.to_dict()),
        (pd.Categorical(names[bags]), pd.DataFrame(P, names)),
        (
            1000 - 7 * bags,
            pd.Series(P[:, 1], 1000 - 7 * np.arange(20)),
        ),  # not contiguous, not sorted
    ]
    for number, (form_bags, form_p) in enumerate(forms):
        found = scores(make(cls).fit(X, form_bags, form_p), X)
        np.testing.assert_allclose(
            found, reference, atol=1e-6, err_msg=f"form {number}"
        )


@each
def test_dataframe_in(cls):
    X, _, bags, P = problem()
    frame = pd.DataFrame(X, columns=["age", "bmi", "dose"])
    model = make(cls).fit(frame, bags, P)
    assert list(model.feature_names_in_) == ["age", "bmi", "dose"]
    shuffled = frame.set_axis(
        np.random.default_rng(0).permutation(120)
    )  # read by position, whatever the index
    np.testing.assert_allclose(
        scores(make(cls).fit(shuffled, bags, P), X=shuffled), scores(model, frame)
    )
    series = pd.Series(bags, shuffled.index)
    np.testing.assert_allclose(
        scores(make(cls).fit(shuffled, series, P), X=shuffled), scores(model, frame)
    )


@each
def test_input_is_left_alone(cls):
    X, _, bags, P = problem()
    before = X.copy(), bags.copy(), P.copy()
    make(cls).fit(X, bags, P).predict_proportions(X, bags)
    for now, then in zip((X, bags, P), before, strict=True):
        np.testing.assert_array_equal(now, then)


@each
def test_same_seed_same_model_and_refit_forgets(cls):
    X, _, bags, P = problem()
    model = make(cls).fit(X, bags, P)
    first = scores(model, X)
    np.testing.assert_array_equal(scores(make(cls).fit(X, bags, P), X), first)
    other = problem(seed=1, d=5)
    model.fit(other[0], other[2], pd.DataFrame(other[3], columns=["a", "b"]))
    np.testing.assert_array_equal(scores(model.fit(X, bags, P), X), first)
    np.testing.assert_array_equal(model.classes_, [0, 1])


@each
def test_permutation_of_instances_and_bags_changes_nothing(cls):
    X, _, bags, P = problem()
    reference = scores(make(cls).fit(X, bags, P), X)
    order, rename = (
        np.random.default_rng(1).permutation(120),
        np.random.default_rng(2).permutation(20),
    )
    np.testing.assert_allclose(
        scores(make(cls).fit(X[order], bags[order], P), X), reference, atol=1e-6
    )
    renamed = make(cls).fit(X, rename[bags], P[np.argsort(rename)])
    np.testing.assert_allclose(scores(renamed, X), reference, atol=1e-6)


@each
def test_rows_without_instances_change_nothing(cls):
    X, _, bags, P = problem()
    more = np.vstack([P, [[0.9, 0.1], [0.1, 0.9]]])
    np.testing.assert_allclose(
        scores(make(cls).fit(X, bags, more), X),
        scores(make(cls).fit(X, bags, P), X),
        atol=1e-9,
    )


@each
def test_pickle(cls):
    X, _, bags, P = problem()
    model = make(cls).fit(X, bags, P)
    np.testing.assert_array_equal(
        scores(pickle.loads(pickle.dumps(model)), X), scores(model, X)
    )


@each
def test_pipeline(cls):
    X, y, bags, P = problem()
    pipe = make_pipeline(StandardScaler(), make(cls))
    pipe.fit(X, bags, **{f"{cls.__name__.lower()}__proportions": P})
    by_hand = make(cls).fit(StandardScaler().fit_transform(X), bags, P)
    np.testing.assert_allclose(
        pipe.predict(X), by_hand.predict(StandardScaler().fit_transform(X))
    )
    assert 0 <= pipe.score(X, y) <= 1
    assert proportion_scorer(P)(pipe, X, bags) <= 0


@each
@pytest.mark.parametrize("keyed", [False, True], ids=["array", "keyed"])
def test_grid_search_needs_no_label(cls, keyed):
    X, _, bags, P = problem()
    names = np.array([f"b{k}" for k in range(20)])
    bags, P = (
        (names[bags], pd.DataFrame(P, names, ["no", "yes"])) if keyed else (bags, P)
    )
    name, value = (
        next((k, v) for k, v in make(cls).get_params().items())
        if make(cls).get_params()
        else (None, None)
    )
    grid = {name: [value]} if name else {}
    for cv in (
        GroupKFold(4),
        3,
    ):  # whole bags; an integer splits each bag, because `bags` is stratified on
        search = GridSearchCV(
            make(cls), grid, scoring=proportion_scorer(P), cv=cv, error_score="raise"
        )
        search.fit(X, bags, groups=bags if cv != 3 else None, proportions=P)
        assert -1 <= search.best_score_ <= 0
        reference = scores(make(cls).fit(X, bags, P), X)
        np.testing.assert_allclose(
            scores(search.best_estimator_, X), reference, atol=1e-9
        )


@each
def test_grid_search_on_bags_of_size_one(cls):
    # scikit-learn slices a fit parameter that is as long as X; keyed proportions survive that.
    X, y, *_ = problem()
    p = pd.Series(y.astype(float))
    params = make(cls).get_params()
    grid = {next(iter(params)): [next(iter(params.values()))]} if params else {}
    search = GridSearchCV(
        make(cls),
        grid,
        scoring=proportion_scorer(p),
        cv=GroupKFold(4),
        error_score="raise",
    )
    search.fit(X, np.arange(120), groups=np.arange(120), proportions=p)
    assert -1 <= search.best_score_ <= 0


@each
def test_bags_of_size_one_are_learned(cls):
    X, y, *_ = problem()
    model = make(cls).fit(X, np.arange(120), y.astype(float))
    assert model.score(X, y) >= (
        max(y.mean(), 1 - y.mean()) if cls.__name__ == "MajorityClass" else 0.9
    )


@each
def test_known_labels(cls):
    X, y, bags, P = problem()
    unknown = make(cls).fit(X, bags, P, labels=np.full(120, -1))
    np.testing.assert_allclose(
        scores(unknown, X), scores(make(cls).fit(X, bags, P), X), atol=1e-9
    )
    labels = np.where(np.arange(120) % 3 == 0, y, -1)
    assert make(cls).fit(X, bags, P, labels=labels).score(X, y) >= 0.5
    words = np.array(["no", "yes"], dtype=object)[y]
    words[::2] = -1
    keyed = make(cls).fit(X, bags, pd.DataFrame(P, columns=["no", "yes"]), labels=words)
    assert set(keyed.predict(X)) <= {"no", "yes"}


@each
def test_several_classes_or_a_clear_refusal(cls):
    rng = np.random.default_rng(3)
    y = rng.integers(0, 3, 150)
    X, bags = (
        rng.normal(size=(150, 2)) + 4 * np.array([[0, 0], [1, 0], [0, 1]])[y],
        rng.permutation(150) // 6,
    )
    P = pd.DataFrame(label_proportions(y, bags), columns=["low", "mid", "high"])
    if not make(cls).__sklearn_tags__().classifier_tags.multi_class:
        with pytest.raises(ValueError, match="proportions"):
            make(cls).fit(X, bags, P)
        return
    model = make(cls).fit(X, bags, P)
    assert list(model.classes_) == ["low", "mid", "high"]
    assert model.predict_proportions(X, bags).shape == (25, 3)
    assert scores(model, X).shape == (150, 3)


# --- one vocabulary -----------------------------------------------------------------------------------------

#: Names that were in use for what has a name in the vocabulary of CONTRIBUTING, which says what each means.
BARRED = {
    "lam", "lambda_", "penalty", "start", "n_starts", "starts", "max_rounds", "max_gen", "n_iter", "step",
    "regressor", "classifier", "base_estimator", "seed", "eps",
}  # fmt: skip
KNOWN = {
    "alpha": "float", "C": "float", "C_p": "float", "tol": "float", "max_iter": "int", "n_init": "int",
    "verbose": "int", "n_jobs": "int", "random_state": "int, RandomState or None",
}  # fmt: skip


def documented(cls, section):
    """Names in a section of the docstring of a class, with their types."""
    text = inspect.getdoc(cls) or ""
    found = re.search(
        rf"(?s)^{section}\n-+\n(.*?)(\n\n\w+\n---|\Z)", text, re.MULTILINE
    )
    names = {}
    for line in found[1].splitlines() if found else []:
        entry = re.match(r"(\w[\w, ]*) : (.*)", line)
        if entry:
            names |= dict.fromkeys(entry[1].split(", "), entry[2])
    return names


@each
def test_parameters_have_the_words_of_the_vocabulary(cls):
    params, told = cls().get_params(), documented(cls, "Parameters")
    assert not BARRED & set(params)
    for name, kind in KNOWN.items():
        if name in params and "see `" not in told[name]:
            assert told[name].startswith(kind), name
    assert params.get("random_state") is None and params.get("verbose", 0) == 0
    assert params.get("n_jobs") is None
    assert not ("alpha" in params and "C" in params)
    X, _, bags, P = problem()
    bad = {"tol": 0.0, "max_iter": 1.5, "n_init": 0, "C": 0.0, "alpha": -1.0}
    for name in set(bad) & set(params):
        with pytest.raises(ValueError, match=name):
            make(cls).set_params(**{name: bad[name]}).fit(X, bags, P)


@each
def test_fitted_attributes_are_documented_and_there(cls):
    X, _, bags, P = problem()
    options = [{}, {"kernel": "rbf"}] if "kernel" in cls().get_params() else [{}]
    found = set()
    for option in options:
        model = make(cls).set_params(**option)
        frame = pd.DataFrame(X, columns=["age", "bmi", "dose"])
        model.fit(frame, bags, P)
        found |= set(vars(model)) - set(model.get_params())
    everywhere = set(documented(LLPClassifier, "Attributes"))
    own = set(documented(cls, "Attributes")) | {
        name
        for base in cls.__mro__[1:]
        if base.__module__.startswith("llpbook") and base is not LLPClassifier
        for name in documented(base, "Attributes")
    }
    assert {name for name in found if not name.startswith("_")} <= own | everywhere
    assert {name for name in own - everywhere if name.endswith("_")} <= found


#: Iterations that end without a condition of optimality: a search, and rounds that bags held out end.
NO_GAP = {"BagBoosting", "ClusterModelSelection", "CountBoosting"}


@each
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_an_iterative_fit_says_how_far_it_is_from_its_end(cls):
    X, _, bags, P = gaussian_bags(n=200, d=6, size=8, seed=1, apart=0.5)
    model = make(cls)
    limit = {"max_iter", "max_cutting_planes"} & set(model.get_params())
    if limit and cls.__name__ not in NO_GAP:
        model.set_params(**dict.fromkeys(limit, 1000))
    model.fit(X, bags, P)
    if not hasattr(model, "n_iter_"):
        assert not hasattr(model, "gap_") and not limit
        return
    assert isinstance(model.n_iter_, int) and model.n_iter_ >= 0
    if cls.__name__ in NO_GAP:
        return
    tol = getattr(model, "tol", 1e-6)
    assert isinstance(model.gap_, float) and 0 <= model.gap_ <= 2 * tol
    if limit:
        short = make(cls).set_params(**dict.fromkeys(limit, 1)).fit(X, bags, P)
        assert short.gap_ > model.gap_ and short.n_iter_ < model.n_iter_


@each
def test_equal_shares_are_refused_or_said_in_the_same_words(cls):
    X, _, bags, P = problem()
    same = np.tile([0.7, 0.3], (len(P), 1))
    words = "proportions are the same in every bag in use \\(0.7, 0.3\\)"
    if cls.__name__ == "MajorityClass":
        make(cls).fit(X, bags, same)
    elif make(cls)._equal_shares == "refused":
        with pytest.raises(NotIdentifiableError, match=words):
            make(cls).fit(X, bags, same)
    else:
        with pytest.warns(LLPWarning, match=words):
            try:
                make(cls).fit(X, bags, same)
            except (
                NotIdentifiableError
            ) as error:  # the start of EM has nothing to begin from
                assert "init=" in str(error)
    if cls._names_classes_by_shares:
        with pytest.raises(NotIdentifiableError, match="could swap the two"):
            make(cls).fit(X, bags, np.full((len(P), 2), 0.5))


@each
def test_a_penalty_and_a_distance_warn_of_scales(cls):
    X, _, bags, P = problem()
    kernels = [{}, {"kernel": "rbf"}] if "kernel" in cls().get_params() else [{}]
    for option in kernels:
        model = make(cls).set_params(**option)
        acts = "distances" if option else model._scale
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", LLPWarning)
            model.fit(X * [1, 1, 1e4], bags, P)
        said = [str(w.message) for w in caught if "on one scale" in str(w.message)]
        verb = {"distances": "measures", "penalty": "penalizes", None: "nothing"}[acts]
        assert len(said) == (acts is not None) and all(verb in text for text in said)


# --- malformed input ---------------------------------------------------------------------------------------

NAN = float("nan")
BAD = {
    # proportions
    "proportions too short": ({"p": [0.5] * 3}, "bags holds"),
    "proportions of one bag only": ({"p": [0.5]}, "bags holds"),
    "proportions empty": ({"p": []}, "proportions must have shape"),
    "proportions negative": (
        {"p": [-0.1, 0.5, 0.5, 0.5]},
        r"proportions must lie in \[0, 1\], got -0.1 for bag 0",
    ),
    "proportions above one": (
        {"p": [0.5, 1.2, 0.5, 0.5]},
        r"proportions must lie in \[0, 1\], got 1.2 for bag 1",
    ),
    "proportions in percent": (
        {"p": [20, 50, 50, 50]},
        r"proportions must lie in \[0, 1\]",
    ),
    "proportions NaN": ({"p": [0.5, NAN, 0.5, 0.5]}, "proportions.*nan for bag 1"),
    "proportions infinite": (
        {"p": [0.5, np.inf, 0.5, 0.5]},
        "proportions.*inf for bag 1",
    ),
    "proportions None": ({"p": None}, "proportions"),
    "proportions a scalar": ({"p": 0.5}, "proportions must have shape"),
    "proportions text": ({"p": ["a", "b", "c", "d"]}, "proportions must be numbers"),
    "proportions ragged": (
        {"p": [[0.5, 0.5], [1.0], [0.5, 0.5], [0.5, 0.5]]},
        "proportions must be numbers",
    ),
    "proportions rows not one": (
        {"p": [[0.5, 0.4], [0.5, 0.5], [1, 0], [0, 1]]},
        "proportions of bag 0 sum to 0.9",
    ),
    "proportions counts": (
        {"p": [[2, 1], [1, 2], [3, 0], [0, 3]]},
        r"proportions must lie in \[0, 1\]",
    ),
    "proportions one column": (
        {"p": [[0.5], [0.5], [0.5], [0.5]]},
        "proportions has one column",
    ),
    "proportions one column frame": (
        {"p": pd.DataFrame({"yes": [0.2, 0.5, 0.5, 0.8]})},
        "proportions has one column",
    ),
    "proportions 3-D": ({"p": np.full((4, 2, 1), 0.5)}, "proportions must have shape"),
    "proportions duplicate key": (
        {"p": pd.Series([0.2, 0.5, 0.5, 0.8], [0, 1, 1, 3])},
        "proportions.*more than one",
    ),
    "proportions duplicate class": (
        {"p": pd.DataFrame([[0.2, 0.8]] * 4, columns=["a", "a"])},
        "proportions has two columns",
    ),
    "proportions all zero": (
        {"p": [0.0] * 4},
        "proportions says that every instance is of class",
    ),
    "proportions all one": (
        {"p": [1.0] * 4},
        "proportions says that every instance is of class",
    ),
    "proportions missing key": (
        {"p": {0: 0.2, 1: 0.5, 2: 0.8}},
        "bags holds .*3.* not a key of proportions",
    ),
    "proportions dict empty": ({"p": {}}, "proportions must have shape"),
    "proportions dict mixed": (
        {"p": {0: 0.2, 1: [0.5, 0.5], 2: 0.5, 3: 0.5}},
        "proportions must be numbers",
    ),
    "proportions complex": ({"p": np.array([0.5j, 0.5, 0.5, 0.5])}, "proportions"),
    # bags
    "bags too short": (
        {"bags": [0, 1, 2]},
        "bags must have one entry for each of the 12",
    ),
    "bags too long": (
        {"bags": [0] * 13},
        "bags must have one entry for each of the 12",
    ),
    "bags empty": ({"bags": []}, "bags must have one entry"),
    "bags 2-D": ({"bags": np.zeros((12, 1), dtype=int)}, "bags must have one entry"),
    "bags None": ({"bags": None}, "bags"),
    "bags negative": (
        {"bags": [-1] + [0, 1, 2] * 3 + [3, 3]},
        "bags must not be negative, got -1",
    ),
    "bags beyond the rows": ({"bags": [0, 1, 2, 3, 4] * 2 + [0, 1]}, "bags holds 4"),
    "bags not contiguous": ({"bags": [10, 20, 30, 40] * 3}, "bags holds 40"),
    "bags fractional": ({"bags": [0.5, 1, 2, 3] * 3}, "bags must be integers"),
    "bags NaN": (
        {"bags": [NAN, 1, 2, 3] * 3},
        "bags has a missing value at position 0",
    ),
    "bags names without keys": (
        {"bags": ["a", "b", "c", "d"] * 3},
        "bags holds 'a'.*keyed",
    ),
    "bags a name that is no key": (
        {"bags": ["a", "b", "c", "e"] * 3, "p": dict(a=0.1, b=0.2, c=0.3, d=0.4)},
        "bags holds .*e.* not a key",
    ),
    "bags missing name": (
        {"bags": ["a", "b", "c", None] * 3, "p": dict(a=0.1, b=0.2, c=0.3, d=0.4)},
        "bags has a missing value at position 3",
    ),
    "bags as words for numbers": (
        {"bags": ["0", "1", "2", "3"] * 3, "p": pd.Series([0.1, 0.2, 0.3, 0.4])},
        "bags holds '0'",
    ),
    "bags with another index than X": (
        {
            "X": pd.DataFrame(np.eye(12)),
            "bags": pd.Series([0, 1, 2, 3] * 3, np.arange(12)[::-1]),
        },
        "bags.index differs from X.index",
    ),
    # X
    "X NaN": ({"X": np.where(np.eye(12), NAN, 0.0)}, "X is not valid.*NaN"),
    "X infinite": (
        {"X": np.where(np.eye(12), np.inf, 0.0)},
        "X is not valid.*infinity",
    ),
    "X 1-D": ({"X": np.arange(12.0)}, "X is not valid.*2D"),
    "X 3-D": ({"X": np.zeros((12, 2, 2))}, "X is not valid.*dim 3"),
    "X empty": ({"X": np.zeros((0, 3)), "bags": []}, "X is not valid.*0 sample"),
    "X without features": ({"X": np.zeros((12, 0))}, "X is not valid.*0 feature"),
    "X text": ({"X": np.full((12, 2), "a", dtype=object)}, "X is not valid"),
    "X complex": ({"X": np.eye(12) * 1j}, "X is not valid.*[Cc]omplex"),
    "X None": ({"X": None}, "X is not valid"),
    "X ragged": ({"X": [[1.0, 2.0]] * 11 + [[1.0]]}, "X is not valid"),
    # labels
    "labels too short": (
        {"labels": [0, 1]},
        "labels must have one entry for each of the 12",
    ),
    "labels unknown class": ({"labels": [7] + [-1] * 11}, "labels holds 7"),
    "labels NaN": (
        {"labels": [NAN] + [-1] * 11},
        "labels has a missing value at position 0",
    ),
    "labels 2-D": (
        {"labels": np.zeros((12, 1), dtype=int)},
        "labels must have one entry",
    ),
    "labels with a class -1": (
        {
            "labels": [-1] * 12,
            "p": pd.DataFrame(
                [[0.2, 0.8], [0.5, 0.5], [0.7, 0.3], [1, 0]], columns=[-1, 1]
            ),
        },
        "labels marks unknown instances by -1",
    ),
}


def test_the_matrix_of_malformed_input_is_large():
    assert len(BAD) >= 40


@each
@pytest.mark.parametrize("case", BAD)
def test_malformed_input(cls, case):
    given, message = BAD[case]
    X = np.random.default_rng(0).normal(size=(12, 3))
    fit = {
        "X": X,
        "bags": [0, 1, 2, 3] * 3,
        "p": [0.2, 0.5, 0.8, 0.4],
        "labels": None,
    } | given
    with pytest.raises(ValueError, match=message):
        make(cls).fit(fit["X"], fit["bags"], fit["p"], labels=fit["labels"])


@each
def test_malformed_prediction(cls):
    X, _, bags, P = problem()
    with pytest.raises(NotFittedError):
        make(cls).predict(X)
    model = make(cls).fit(X, bags, P)
    for bad in (X[:, :2], np.where(X > 0, NAN, X), X[0]):
        with pytest.raises(ValueError, match="X is not valid"):
            model.predict(bad)
    frame = make(cls).fit(pd.DataFrame(X, columns=list("abc")), bags, P)
    with pytest.raises(ValueError, match=r"X is not valid.*feature names"):
        frame.predict(pd.DataFrame(X, columns=list("abd")))
    for bad in (bags[:-1], np.full(120, NAN)):
        with pytest.raises(ValueError, match="bags"):
            model.predict_proportions(X, bad)


@each
def test_sparse_works_or_is_refused(cls):
    X, _, bags, P = problem()
    X = np.where(X > 1, X, 0)
    if make(cls).__sklearn_tags__().input_tags.sparse:
        dense, sparse = (
            scores(make(cls).fit(data, bags, P), data) for data in (X, sp.csr_array(X))
        )
        np.testing.assert_allclose(sparse, dense, atol=1e-4)
    else:
        with pytest.raises(ValueError, match="X is not valid"):
            make(cls).fit(sp.csr_array(X), bags, P)


# --- the surface --------------------------------------------------------------------------------------------

PACKAGE = Path(llpbook.__file__).parent


def test_private_names_of_scikit_learn_are_imported_in_one_file():
    users = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                full = [f"{node.module}.{name.name}" for name in node.names]
            elif isinstance(node, ast.Import):
                full = [name.name for name in node.names]
            else:
                continue
            if any(re.match(r"sklearn\b.*\._", name) for name in full):
                users.add(path.relative_to(PACKAGE).as_posix())
    assert users == {"base/_sklearn.py"}
