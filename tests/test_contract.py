"""Every estimator that the package exports keeps the contract of `llpbook.base`."""

import ast
import importlib
import inspect
import pickle
import pkgutil
import re
import warnings
from contextlib import nullcontext
from functools import cache, partial
from itertools import combinations, product
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from problems import every_estimator, gaussian_bags, quick, uneven_bags
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

import llpbook
from llpbook import fit_chunks
from llpbook.base import LLPClassifier, LLPWarning, NotIdentifiableError, StrOptions
from llpbook.beyond_memory import _instances
from llpbook.model_selection import proportion_scorer
from llpbook.proportions import label_proportions

# Many bags for every method: those for two bags say that they pool them.
pytestmark = pytest.mark.filterwarnings("ignore:.* bags into two samples")
ESTIMATORS = [*every_estimator().values()]
each = pytest.mark.parametrize("cls", ESTIMATORS, ids=lambda cls: cls.__name__)


#: One of each kind: linear with a kernel, iterative with features of its own, two samples that trees or widths divide.
KINDS = [llpbook.MeanMap, llpbook.EMLR, llpbook.KDEDifference]
kinds = pytest.mark.parametrize("cls", KINDS, ids=lambda cls: cls.__name__)
#: Separable enough that any method beats chance: (X, y, bags, proportions) of 20 bags.
problem = partial(uneven_bags, n=120, size=6, apart=2.5)


def make(cls, **params):
    """A fast estimator: few folds, centers and rounds."""
    own = cls().get_params()
    params = {"n_folds": 2, "n_centers": 30, "n_tuning": 60} | params
    if "learning_rate" in own:
        params = {"max_iter": 20} | params
    params = {name: value for name, value in params.items() if name in own}
    return quick(cls).set_params(**params)


@cache
def fitted(cls):
    """The fit to `problem()` that tests read and do not change."""
    X, _, bags, P = problem()
    return make(cls).fit(X, bags, P)


@cache
def plain_scores(cls):
    return scores(fitted(cls), problem()[0])


def scores(model, X):
    return (
        model.decision_function(X)
        if hasattr(model, "decision_function")
        else model.predict_proba(X)
    )


def test_the_same_code_checks_the_input_of_all():
    """So malformed input is tried on one estimator, and forms of input on three."""
    assert {"MeanMap", "MajorityClass", "BagMeanRegression"} <= {
        cls.__name__ for cls in ESTIMATORS
    }
    for method in ("fit", "predict", "predict_proportions", "score"):
        # With the bags of instances CountLogistic adds to what all do, see tests/test_count_likelihood.py.
        tried = {getattr(cls, method) for cls in [*KINDS, llpbook.CountLogistic]}
        assert {getattr(cls, method) for cls in ESTIMATORS} <= tried


@each
def test_fit_returns_the_estimator_and_sets_attributes(cls):
    X, _, bags, P = problem()
    before = X.copy(), bags.copy(), P.copy()
    model = make(cls)
    assert model.fit(X, bags, P) is model
    assert model.n_features_in_ == 3
    assert_array_equal(model.classes_, [0, 1])
    model.predict_proportions(X, bags)
    for now, then in zip((X, bags, P), before, strict=True):  # input is left alone
        assert_array_equal(now, then)
    assert_array_equal(scores(model, X), plain_scores(cls))
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(scores(again, X), plain_scores(cls))


@each
def test_clone_and_params(cls):
    model = make(cls)
    assert clone(model).get_params() == model.get_params()
    assert vars(clone(fitted(cls))).keys() == vars(make(cls)).keys()  # not fitted
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
def test_the_cure_names_a_parameter(cls):
    assert cls._cure.split()[-1] in [*make(cls).get_params(), "more"]


@each
def test_the_docstring_states_the_default_of_every_parameter(cls):
    section = inspect.getdoc(cls).split("Attributes\n")[0]
    line = r"(?m)^(\w[\w, ]*) : .*?(?:see `(\w+)`|default (.+)|optional)$"
    stated = {}
    for names, other, default in re.findall(line, section):
        shared = every_estimator()[other]().get_params() if other else {}
        value = ast.literal_eval(default or "None")
        stated |= {name: shared.get(name, value) for name in names.split(", ")}
    assert stated == cls().get_params()


@each
def test_predictions_have_the_documented_shapes(cls):
    X, y, bags, _ = problem()
    model = fitted(cls)
    assert set(model.predict(X)) <= {0, 1}
    assert model.predict_proportions(X, bags).shape == (20, 2)
    assert_allclose(model.predict_proportions(X, bags).sum(axis=1), 1)
    assert model.score(X, y) == np.mean(model.predict(X) == y)
    if hasattr(model, "predict_proba"):
        assert model.predict_proba(X).shape == (120, 2)
        assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    if hasattr(model, "decision_function"):
        assert model.decision_function(X).shape == (120,)
        assert_array_equal(model.predict(X), model.decision_function(X) > 0)


@each
def test_predictions_are_in_the_users_label_space(cls):
    X, y, bags, P = problem()
    numbers = fitted(cls).predict(X)
    signs = make(cls).fit(X, bags, pd.DataFrame(P, columns=[-1, 1]))
    assert signs.score(X, 2 * y - 1) == np.mean(numbers == y)


@each
def test_dataframe_in(cls):
    X, _, bags, P = problem()
    frame = pd.DataFrame(X, columns=["age", "bmi", "dose"])
    # read by position, whatever the index
    shuffled = frame.set_axis(np.random.default_rng(0).permutation(120))
    series, shares = pd.Series(bags, shuffled.index), pd.Series(P[:, 1])
    model = make(cls).fit(shuffled, series, shares.sample(frac=1, random_state=0))
    assert list(model.feature_names_in_) == ["age", "bmi", "dose"]
    assert_allclose(scores(model, frame), plain_scores(cls), rtol=1e-6)


@each
@pytest.mark.filterwarnings("ignore:BagNetwork predicts the same")
def test_a_refit_forgets(cls):
    """The data and the parameters of the fit before, with a kernel too."""
    X, _, bags, P = problem()
    other = problem(n=60, seed=1, d=5, apart=9.0)
    frame = pd.DataFrame(other[3][:, ::-1], columns=["a", "b"])
    kernels = ["linear", "rbf"] if "kernel" in cls().get_params() else [None]
    for kernel, before in product(kernels, kernels):
        own = {"kernel": kernel} if kernel else {}
        plain = make(cls, **own)
        changed = {
            k: listed(OTHER, cls, k)
            for k in ("C", "C_p", "alpha", "bag_deviation", "lapse")
        }
        model = make(cls, **{"kernel": before}, **changed)
        model.fit(other[0], other[2], frame)
        model.set_params(**plain.get_params(deep=False)).fit(X, bags, P)
        assert_array_equal(scores(model, X), scores(plain.fit(X, bags, P), X))
        assert_array_equal(model.classes_, [0, 1])
        assert {*vars(model)} == {*vars(plain)}


@each
def test_order_and_rows_without_instances_change_nothing(cls):
    X, _, bags, P = problem()
    order = np.random.default_rng(1).permutation(120)
    rename = np.random.default_rng(2).permutation(20)
    more = np.vstack([P[np.argsort(rename)], [[0.9, 0.1], [0.1, 0.9]]])
    turned = make(cls).fit(X[order], rename[bags][order], more)
    assert_allclose(scores(turned, X), plain_scores(cls), atol=1e-6)


@each
def test_pipeline(cls):
    X, y, bags, P = problem()
    pipe = make_pipeline(StandardScaler(), make(cls))
    pipe.fit(X, bags, **{f"{cls.__name__.lower()}__proportions": P})
    by_hand = make(cls).fit(StandardScaler().fit_transform(X), bags, P)
    assert_allclose(pipe.predict(X), by_hand.predict(StandardScaler().fit_transform(X)))
    assert 0 <= pipe.score(X, y) <= 1
    assert proportion_scorer(P)(pipe, X, bags) <= 0


def searched(cls, proportions, cv):
    """scikit-learn's search with a grid of one setting."""
    name, value = next(iter(make(cls).get_params().items()))
    options = {"scoring": proportion_scorer(proportions), "error_score": "raise"}
    return GridSearchCV(make(cls), {name: [value]}, cv=cv, **options)


@kinds
@pytest.mark.parametrize("keyed", [False, True], ids=["array", "keyed"])
def test_grid_search_needs_no_label(cls, keyed):
    X, _, bags, P = problem()
    if keyed:
        names = np.array([f"b{k}" for k in range(20)])
        bags, P = names[bags], pd.DataFrame(P, names, ["no", "yes"])
    for cv in (GroupKFold(3), 3):  # whole bags; an integer splits each bag
        search = searched(cls, P, cv)
        search.fit(X, bags, groups=bags if cv != 3 else None, proportions=P)
        assert -1 <= search.best_score_ <= 0
        found = scores(search.best_estimator_, X)
        assert_allclose(found, plain_scores(cls), atol=1e-9)


@kinds
def test_grid_search_on_bags_of_size_one(cls):
    # scikit-learn slices a fit parameter that is as long as X; keyed proportions survive that.
    X, y, *_ = problem()
    p = pd.Series(y.astype(float))
    search = searched(cls, p, GroupKFold(4))
    search.fit(X, np.arange(120), groups=np.arange(120), proportions=p)
    assert -1 <= search.best_score_ <= 0


@each
def test_bags_of_size_one_are_learned(cls):
    X, y, *_ = problem()
    model = make(cls).fit(X, np.arange(120), y.astype(float))
    largest = max(y.mean(), 1 - y.mean())
    assert model.score(X, y) >= (largest if cls.__name__ == "MajorityClass" else 0.9)


@each
def test_known_labels(cls):
    X, y, bags, P = problem()
    unknown = make(cls).fit(X, bags, P, labels=np.full(120, -1))
    assert_allclose(scores(unknown, X), plain_scores(cls), atol=1e-9)
    words = np.array(["no", "yes"], dtype=object)[y]
    some = np.where(np.arange(120) % 3 == 0, words, -1)
    keyed = make(cls).fit(X, bags, pd.DataFrame(P, columns=["no", "yes"]), labels=some)
    assert keyed.score(X, words) >= 0.5


@each
def test_several_classes_or_a_clear_refusal(cls):
    X, _, bags, P = gaussian_bags(n=150, d=2, n_classes=3, seed=3, apart=4)
    P = pd.DataFrame(P, columns=["low", "mid", "high"])
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
NO_GAP = {"BagBoosting", "BagNetwork", "ClusterModelSelection", "CountBoosting"}


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
        said = pytest.warns(ConvergenceWarning, match=f"{cls.__name__}.* stopped after")
        with said if "max_iter" in limit else nullcontext():
            short = make(cls).set_params(**dict.fromkeys(limit, 1)).fit(X, bags, P)
        assert short.gap_ > model.gap_ and short.n_iter_ < model.n_iter_


@each
def test_equal_shares_are_refused_or_said_in_the_same_words(cls):
    X, _, bags, P = problem()
    same = np.tile([0.75, 0.25], (len(P), 1))
    words = "proportions are the same in every bag in use \\(0.75, 0.25\\)"
    if cls.__name__ == "MajorityClass":
        make(cls).fit(X, bags, same)
    elif make(cls)._equal_shares == "refused":
        with pytest.raises(NotIdentifiableError, match=words):
            make(cls).fit(X, bags, same)
    else:
        with pytest.warns(LLPWarning, match=words):
            try:
                make(cls).fit(X, bags, same)
            except NotIdentifiableError as error:  # EM has nothing to begin from
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
    "proportions empty": ({"p": []}, "proportions must have shape"),
    "proportions None": ({"p": None}, "proportions"),
    "proportions text": ({"p": ["a", "b", "c", "d"]}, "proportions must be numbers"),
    "proportions ragged": ({"p": [[0.5, 0.5], [1.0], [0.5, 0.5], [0.5, 0.5]]}, "proportions must be numbers"),
    "proportions one column frame": ({"p": pd.DataFrame({"yes": [0.2, 0.5, 0.5, 0.8]})},
        "proportions has one column"),
    "proportions duplicate key": ({"p": pd.Series([0.2, 0.5, 0.5, 0.8], [0, 1, 1, 3])}, "proportions.*more than one"),
    "proportions all zero": ({"p": [0.0] * 4}, "proportions says that every instance is of class"),
    "proportions missing key": ({"p": {0: 0.2, 1: 0.5, 2: 0.8}}, "bags holds .*3.* not a key of proportions"),
    # bags
    "bags empty": ({"bags": []}, "bags must have one entry"),
    "bags NaN": ({"bags": [NAN, 1, 2, 3] * 3}, "bags has a missing value at position 0"),
    "bags names without keys": ({"bags": ["a", "b", "c", "d"] * 3}, "bags holds 'a'.*keyed"),
    "bags missing name": ({"bags": ["a", "b", "c", None] * 3, "p": dict(a=0.1, b=0.2, c=0.3, d=0.4)},
        "bags has a missing value at position 3"),
    "bags as words for numbers": ({"bags": ["0", "1", "2", "3"] * 3, "p": pd.Series([0.1, 0.2, 0.3, 0.4])},
        "bags holds '0'"),
    "bags with another index than X": (
        {"X": pd.DataFrame(np.eye(12)), "bags": pd.Series([0, 1, 2, 3] * 3, np.arange(12)[::-1])},
        "bags.index differs from X.index"),
    # X
    "X NaN": ({"X": np.where(np.eye(12), NAN, 0.0)}, "X is not valid.*NaN"),
    "X infinite": ({"X": np.where(np.eye(12), np.inf, 0.0)}, "X is not valid.*infinity"),
    "X 1-D": ({"X": np.arange(12.0)}, "X is not valid.*2D"),
    "X empty": ({"X": np.zeros((0, 3)), "bags": []}, "X is not valid.*0 sample"),
    "X complex": ({"X": np.eye(12) * 1j}, "X is not valid.*[Cc]omplex"),
    "X huge": ({"X": np.full((12, 2), 1e300)}, "X is not valid.*1e.300.*too large"),
    # labels
    "labels NA": ({"labels": [pd.NA] + [-1] * 11}, "labels has a missing value at position 0"),
    "labels with a class -1": (
        {"labels": [-1] * 12, "p": pd.DataFrame([[0.2, 0.8], [0.5, 0.5], [0.7, 0.3], [1, 0]], columns=[-1, 1])},
        "labels marks unknown instances by -1"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_malformed_input(case):
    given, message = BAD[case]
    X = np.random.default_rng(0).normal(size=(12, 3))
    good = {"X": X, "bags": [0, 1, 2, 3] * 3, "p": [0.2, 0.5, 0.8, 0.4]}
    X, bags, p, labels = (good | {"labels": None} | given).values()
    with pytest.raises(ValueError, match=message):
        llpbook.MeanMap().fit(X, bags, p, labels=labels)


@each
def test_malformed_prediction(cls):
    X, _, bags, P = problem()
    with pytest.raises(NotFittedError):
        make(cls).predict(X)
    model = fitted(cls)
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
        forms = X, sp.csr_array(X)
        dense, sparse = (scores(make(cls).fit(Z, bags, P), Z) for Z in forms)
        assert_allclose(sparse, dense, atol=1e-4)
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
    assert users == {"_input/_sklearn.py"}


ROOMS = {info.name for info in pkgutil.iter_modules(llpbook.__path__)}
FROZEN = sorted(room for room in ROOMS if not room.startswith("_") and room != "typing")
frozen_rooms = pytest.mark.parametrize("room", FROZEN)
#: The order of what several functions take.
ORDER = ["model", "estimator", "X", "bags", "proportions", "group", "labels"]


def frozen(room):
    """The public objects of a room by name."""
    module = importlib.import_module(f"llpbook.{room}")
    return {name: getattr(module, name) for name in module.__all__}


def signatures(room):
    """The functions of a room and the constructors of its estimators."""
    for name, value in frozen(room).items():
        estimator = inspect.isclass(value) and hasattr(value, "get_params")
        if (getattr(value.__init__, "__module__", None) or "").startswith("sklearn."):
            continue  # a search, whose parameters are scikit-learn's
        if inspect.isfunction(value) or estimator:
            yield name, inspect.signature(value).parameters.values(), estimator


@frozen_rooms
def test_options_are_passed_by_name(room):
    for name, parameters, estimator in signatures(room):
        positional = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
        if estimator:
            assert len(positional) <= 2, name
        else:
            assert all(p.default is p.empty for p in positional), name


@frozen_rooms
def test_common_arguments_have_one_order(room):
    for name, parameters, _ in signatures(room):
        if name == "label_worth":  # its model may come from labels or other bags
            continue
        placed = [p.name for p in parameters if p.kind is not p.KEYWORD_ONLY]
        places = [ORDER.index(one) for one in placed if one in ORDER]
        assert places == sorted(places), name


@frozen_rooms
def test_public_parameters_have_hints(room):
    for name, parameters, _ in signatures(room):
        bare = [p.name for p in parameters if p.annotation is p.empty]
        assert not bare, f"{name}: {bare}"


@frozen_rooms
def test_only_classes_and_functions_are_frozen(room):
    for name, value in frozen(room).items():
        assert inspect.isclass(value) or inspect.isfunction(value), name
        inner = name.startswith(("_", "check_", "read_", "warn_"))
        assert name == "check_margins" or not inner, name


def test_a_public_name_is_in_one_room():
    for one, other in combinations(FROZEN, 2):
        assert not {*frozen(one)} & {*frozen(other)}, (one, other)


# --- every parameter acts -----------------------------------------------------------------------------------

ERRORS = np.full(10, 0.1)


def own_module(n_features, n_scores):
    """A linear model as a module of PyTorch."""
    return importlib.import_module("torch").nn.Linear(n_features, n_scores)


#: Another value than the default; (name of estimator, parameter) goes before the parameter's own.
OTHER = {
    "C": 1e-3, "C_p": 0.01, "alpha": 100.0, "bag_deviation": 1.0, "bag_weights": "uniform",
    "class_prior": "match",
    "crossover_probability": 0.9,
    "batch_size": 16, "consistency_weight": 5.0,
    "epsilon": 0.5, "estimator": LogisticRegression(C=1e-3), "exact_up_to": 2,
    "fit_intercept": False, "gamma": 5.0, "hidden": (8,), "init": llpbook.MeanMap(), "kernel": "rbf",
    "lapse": 0.2, "learning_rate": 0.1, "max_cutting_planes": 1, "max_iter": 1,
    "max_leaf_nodes": 2, "mix_bags": True, "module": own_module,
    "mutation_variance": 0.1, "n_centers": 5, "n_clusters": 3,
    "n_folds": 5, "n_init": 6, "n_neighbors": 2, "n_tuning": 20, "penalize_intercept": True,
    "population_size": 5, "proportion_errors": ERRORS, "proportion_noise": "laplace",
    "radius": 2.0, "random_state": 1, "shrinkage": 0.5, "sigma": 3.0, "smoothness": 10.0,
    "soft": True, "tol": 0.3, "tournament_size": 0.5, "validation_fraction": 0.4,
    ("CountCalibration", "estimator"): llpbook.MeanMap(100.0),
    ("BagBoosting", "estimator"): HistGradientBoostingRegressor(max_depth=1),
    ("CountBoosting", "estimator"): HistGradientBoostingRegressor(max_depth=1),
    ("DSDD", "alpha"): 3.0, ("EMLR", "tol"): 20.0, ("InvCal", "bag_weights"): "size",
    ("LSDD", "alpha"): 3.0, ("SMIC", "n_neighbors"): 15,
}  # fmt: skip
#: What else is set where a parameter acts in some settings only, or many starts end at one answer.
WHERE = {
    "gamma": {"kernel": "rbf"}, "proportion_noise": {"proportion_errors": ERRORS},
    ("AOCKernelKMeans", "max_iter"): {"kernel": "rbf", "n_init": 1},
    ("AOCKernelKMeans", "n_init"): {"kernel": "rbf", "n_init": 1},
    ("AOCKernelKMeans", "random_state"): {"kernel": "rbf", "n_init": 1},
    **{("AlterSVM", name): {"C_p": 0.1, "n_init": 1} for name in (
        "annealing", "bag_weights", "init", "n_init", "random_state")},
    ("AlternatingMeanMap", "max_iter"): {"init": "random"},
    ("LaplacianMeanMap", "tol"): {"alpha": 0.001},
    ("AlternatingMeanMap", "random_state"): {"init": "random"},
    # With other seeds the one bag held out keeps the first weights, whatever the training does.
    **{("BagNetwork", name): {"random_state": 3} for name in ("consistency", "loss", "max_iter")},
    **{("BagNetwork", name): {"random_state": 3, "consistency": "vat"} for name in ("consistency_weight", "radius")},
    ("EMLR", "init"): {"max_iter": 1}, ("EMLR", "random_state"): {"init": "random"},
    ("EMLR", "tol"): {"soft": True},
    **{("ClusterModelSelection", name): {"max_iter": 5} for name in (
        "crossover_probability", "max_iter", "mutation_variance", "tournament_size")},
}  # fmt: skip
#: Parameters that change no fit, and why.
IDLE = {
    "device": "where it runs",
    "n_jobs": "work at once, the same answer",
    "verbose": "news",
    ("SMIC", "random_state"): "draws the starts of k-means, which end at one answer",
}
PARAMETERS = [
    pytest.param(cls, name, id=f"{cls.__name__}-{name}")
    for cls in ESTIMATORS
    for name in cls().get_params()
    if name not in IDLE and (cls.__name__, name) not in IDLE
]


@cache
def ragged_bags():
    """Classes that overlap in bags of 3 to 16: X, bags, proportions."""
    rng, sizes = np.random.default_rng(0), [3, 4, 5, 6, 7, 8, 9, 10, 12, 16]
    bags = np.repeat(np.arange(10), sizes)
    share = rng.permutation(np.linspace(0.1, 0.9, 10))[bags]
    y = (rng.random(len(bags)) < share).astype(int)
    X = rng.normal(size=(len(bags), 3)) + 0.7 * y[:, None]
    return X, bags, label_proportions(y, bags)


def listed(table, cls, name):
    return table.get((cls.__name__, name), table.get(name))


@pytest.mark.parametrize(("cls", "name"), PARAMETERS)
@pytest.mark.filterwarnings("ignore")
def test_every_parameter_acts(cls, name):
    X, bags, P = ragged_bags()
    value, where = listed(OTHER, cls, name), listed(WHERE, cls, name) or {}
    options = [c for c in cls._parameter_constraints[name] if isinstance(c, StrOptions)]
    if options and (value is None or name == "init"):
        default = cls().get_params()[name]
        value = min(options[0].options - {default}, default=value)
    assert value is not None, f"a value for {name} is missing in OTHER"
    where = {key: v for key, v in where.items() if key in cls().get_params()}
    plain = make(cls, **where).fit(X, bags, P)
    other = make(cls, **{**where, name: value}).fit(X, bags, P)
    assert not np.array_equal(scores(plain, X), scores(other, X))


#: Settings beside which every other parameter must act, too.
BESIDE = {
    "kernel": {"kernel": "rbf"}, "deviation": {"bag_deviation": 1.0}, "errors": {"proportion_errors": ERRORS},
    "noise": {"proportion_errors": ERRORS, "proportion_noise": "laplace"}, "no intercept": {"fit_intercept": False},
    "penalized": {"penalize_intercept": True},
}  # fmt: skip
#: Pairs in which a parameter does not act: its docstring says so, or here every start, or step, ends at one answer.
IDLE_BESIDE = {
    "no intercept": {"penalize_intercept"}, "noise": {"exact_up_to"},
    "one answer": {"n_init", "annealing", "tol"},
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("beside", BESIDE)
@pytest.mark.parametrize(
    "cls",
    [c for c in ESTIMATORS if {"kernel", "proportion_errors"} & {*c().get_params()}],
)
def test_every_parameter_acts_beside_another_or_is_refused(cls, beside):
    X, bags, P = ragged_bags()
    own, setting = cls().get_params(), BESIDE[beside]
    if not {*setting} <= {*own}:
        return
    idle = {*IDLE, *setting, *IDLE_BESIDE["one answer"], *IDLE_BESIDE.get(beside, ())}
    plain = scores(make(cls, **setting).fit(X, bags, P), X)
    for name in sorted({*own} - idle):
        value = listed(OTHER, cls, name)
        where = {
            k: v
            for k, v in (listed(WHERE, cls, name) or {}).items()
            if k in own and k != name
        }
        options = [
            c for c in cls._parameter_constraints[name] if isinstance(c, StrOptions)
        ]
        if options and (value is None or name == "init"):
            value = min(options[0].options - {own[name]}, default=value)
        both = setting | {k: v for k, v in where.items() if k not in setting}
        try:
            other = make(cls, **both | {name: value}).fit(X, bags, P)
        except ValueError as error:
            assert {name, *setting} & {*re.findall(r"\w+", str(error))}, name
            continue
        alone = scores(make(cls, **both).fit(X, bags, P), X) if where else plain
        assert not np.array_equal(alone, scores(other, X)), name


# --- scikit-learn's own checks ------------------------------------------------------------------------------


class EachABag:
    """Bags of one instance, so that ``fit(X, y)`` is what scikit-learn expects of a classifier."""

    def fit(self, X, y):
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None")
        validate_data(self, X, y, accept_sparse=True)
        check_classification_targets(y)
        classes, codes = np.unique(np.asarray(y), return_inverse=True)
        if len(classes) < 2:
            raise ValueError("one class")
        P = pd.DataFrame(np.eye(len(classes))[codes.ravel()], columns=classes)
        return super().fit(X, np.arange(len(P)), P)


def of_labels(cls):
    """The estimator with ``fit(X, y)``, where pickle finds it."""
    name = f"{cls.__name__}OfLabels"
    found = type(name, (EachABag, cls), {"__module__": __name__})
    return globals().setdefault(name, found)


#: Checks of scikit-learn that fail, and why.
EXPECTED = {
    "AlternatingMeanMap": {"check_non_transformer_estimators_n_iter": "three fits"},
    "ClusterModelSelection": {
        f"check_{name}": "asks for one cluster; there are two or more"
        for name in (
            "dont_overwrite_parameters",
            "fit2d_1feature",
            "fit2d_predict1d",
            "methods_subset_invariance",
        )
    },
    "MajorityClass": {"check_classifiers_train": "it learns nothing of X"},
}
for _name in ("DSDD", "KDEDifference", "LSDD", "SMIC"):
    EXPECTED[_name] = {
        "check_classifier_not_supporting_multiclass": "the refusal names proportions"
    }
#: Their checks take more than two seconds.
SLOW = (
    "AlterSVM BagBoosting BagNetwork ClusterModelSelection ConvSVM CountBoosting "
    "CountCalibration DSDD LSDD SMIC"
)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "cls",
    [
        pytest.param(cls, marks=[pytest.mark.slow] * (cls.__name__ in SLOW.split()))
        for cls in ESTIMATORS
    ],
)
def test_scikit_learn_takes_them_for_classifiers(cls):
    expected = EXPECTED.get(cls.__name__, {})
    model = of_labels(cls)()
    found = check_estimator(
        model, expected_failed_checks=expected, on_skip=None, on_fail=None
    )
    status = {x["check_name"]: x for x in found if x["status"] in ("failed", "xfail")}
    assert {name: str(x["exception"]) for name, x in status.items() if x["status"] == "failed"} == {}  # fmt: skip
    assert set(expected) == set(status)
    assert len(found) > 40


# --- a fit that fails, and rows that stand for many ---------------------------------------------------------------


@pytest.mark.parametrize("cls", ["MeanMap", "EMLR", "InvCal", "CountLogistic"])
def test_a_refused_or_interrupted_fit_leaves_the_estimator_as_it_was(cls, monkeypatch):
    cls = getattr(llpbook, cls)
    X, _, bags, P = gaussian_bags()
    good = pd.DataFrame(P, columns=["no", "yes"])
    bad = pd.DataFrame(0 * P + [0.0, 1.0], columns=["yes", "no"])
    first = cls()
    with pytest.raises(ValueError):
        first.fit(X, bags, bad)
    with pytest.raises(NotFittedError):
        first.predict(X)
    model = cls().fit(X, bags, good)
    before = model.predict(X)
    with pytest.raises(ValueError):
        model.fit(X, bags, bad)
    assert_array_equal(model.predict(X), before)

    def stop(self, data):
        self.classes_ = None
        raise KeyboardInterrupt

    monkeypatch.setattr(cls, "_fit", stop)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X[:, :2], bags, good)
    assert_array_equal(model.predict(X), before)


CELLS = {
    "plain": {}, "rbf": {"kernel": "rbf"}, "laplacian": {"kernel": "laplacian"}, "weights": {"bag_weights": "uniform"},
    "counts": {"exact_up_to": 2}, "penalized": {"penalize_intercept": True}, "deviation": {"bag_deviation": 1.0},
    **{loss: {"loss": loss} for loss in ("normal", "proportion", "squares", "easy", "forward")},
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("labeled", [False, True], ids=["", "labels"])
@pytest.mark.parametrize(
    ("cls", "more"),
    [
        pytest.param(cls, more, id=f"{cls.__name__}-{name}")
        for cls in ESTIMATORS
        for name, more in CELLS.items()
        if {*more} <= {*cls().get_params()}
        if name == "plain" or cls._uses_frequencies or "Boosting" in cls.__name__
    ],
)
def test_frequencies_are_equal_rows(cls, more, labeled):
    X, y, bags, _ = problem()
    times = np.random.default_rng(0).integers(0, 4, len(X))
    rows = np.repeat(np.arange(len(X)), times)
    for classes in (y, (y + bags) % 3):
        P = label_proportions(classes[rows], bags[rows])
        labels = np.where(y + bags > 9, classes, -1) if labeled else 0 * y - 1
        two = make(cls, **more)
        try:
            two.fit(X[rows], bags[rows], P, labels[rows])
        except ValueError as error:  # two classes only, or no labels: in both forms
            with pytest.raises(ValueError, match=re.escape(str(error)[:60])):
                make(cls, **more).fit(X, bags, P, labels, counts=times)
            continue
        one = make(cls, **more).fit(X, bags, P, labels, counts=times)
        assert_allclose(scores(one, X), scores(two, X), atol=1e-4)
        if hasattr(two, "gamma_"):
            assert one.gamma_ == pytest.approx(two.gamma_)


#: What a fit from chunks may ask of them, by what `_sums_needed` declares.
SUMS = {
    "bag means": {"bag_means"},
    "class moments": {"bag_means", "class_moments"},
    "instances": {"bag_means", "objective", "sums_by_bag"},
    "whole bags": {"objective", "sums_by_bag"},
}


@each
def test_declared_sums_are_enough_for_the_fit_in_memory(cls, monkeypatch):
    X, _, bags, P = problem()
    frame = pd.DataFrame(X, columns=list("abc"))
    model = make(cls, scheme="sws")
    declared = model._sums_needed()
    monkeypatch.setattr(_instances, "KEPT", 0)  # else small data are read as a whole
    for name in set.union(*SUMS.values()) - SUMS.get(declared, set()):
        refused = Mock(side_effect=AssertionError(f"{declared!r} is not {name}"))
        monkeypatch.setattr(_instances.Instances, name, refused)
    rows = np.random.default_rng(0).permutation(len(X))  # bags lie in several chunks
    if declared == "whole bags":
        rows = np.argsort(bags, kind="stable")
    table, first = frame.assign(bag=bags).iloc[rows], np.count_nonzero(bags < 7)
    from_chunks = partial(fit_chunks, proportions=P, bags="bag")
    chunks = [table[:first], table[first:]]
    if declared is None:
        with pytest.raises(ValueError, match="does not reduce to sums over chunks"):
            from_chunks(model, chunks)
    else:
        wanted = scores(clone(model).fit(frame, bags, P), frame)
        found = scores(from_chunks(model, chunks), frame)
        assert_allclose(found, wanted, atol=1e-4 * np.abs(wanted).max())
