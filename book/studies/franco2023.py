"""The experiment of franco2023 (section 6): four ways to hold out instances, by which three methods choose a setting.

A row is one case (a data set in bags of one variant), one method, one strategy and one execution. The protocol is the
paper's, completed from its public code where the paper is silent: all features scaled to [-1, 1] by all instances; a
quarter of the rows held out by ``ShuffleSplit`` with the paper's seeds; shares of the training part; as many splits as
bags; half of each bag validates in *split-bag-shuffle* and *split-bag-bootstrap*; the setting with the smallest mean
absolute error of the shares of predicted labels, the first where several tie; a fit of this setting to all bags.
``accuracy`` is that on the rows held out, ``error`` the mean absolute error of the chosen setting on the validation
parts, ``chosen`` the setting.

Methods, all with the paper's grids:

- ``EM/LR``: from random labels, ended by the rule of the public code (`llpbook.em`).
- ``LMM``: without intercept, all bags of equal weight, ended after 100 steps, as in the R program that the paper runs
  (`lmm_weights`).
- ``LMM reversed``: ours; the same, but of settings that tie the one with the largest σ is chosen, not the smallest
  (digits and the full-bag strategy only).
- ``LMM one penalty``: ours; the public code sets the penalty of its grid under a name that its fit does not read
  (``lambda``, where the class has ``lmd``), so that all its fits have the penalty 1; this grid has that penalty only.
- ``alter-SVM``: linear; an error of a share costs the same in each bag. One random start (the paper has ten).
- ``EM/LR settled``: ours; from majority labels until no label changes (two strategies only). ``ridge``: ours, on bag
  means.

Methods without a choice have the strategy ``none``: ``majority``, and ``labels``, logistic regression on the true
labels. The strategy ``oracle`` tells the accuracy of the setting that the labels held out would choose, an upper bound
for every strategy; ``mean`` is the mean accuracy of all settings, which is what a choice at random would reach.

``size`` says what is reduced: so many instances of the training part, the same share of each bag, and the bags' shares
recomputed; 0 is the whole part. Whatever the size, data with more than ``MANY`` features (adult, 179, and the digits,
784) keep their first ``DIRECTIONS`` principal directions, not centered, so that a model without an intercept keeps its
origin.

The bags of adult and default-credit-card are the published ones. Those of covertype and of the digits are ours, by
`llpbook.variants.make_bags`: k-means clusters of the scaled features are the bags of *intermediate*, and their sizes
and shares are the targets of the other variants. The data are not part of the book: `local_file` says which are needed.
"""

import os
import re
import warnings
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.decomposition import TruncatedSVD
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import ParameterGrid, ShuffleSplit
from sklearn.preprocessing import MinMaxScaler

from llpbook import (
    EMLR,
    AlterSVM,
    BagMeanRegression,
    FullBagKFold,
    MajorityClass,
    SplitBagBootstrap,
    SplitBagKFold,
    SplitBagShuffle,
)
from llpbook.base import NotIdentifiableError
from llpbook.laplacian_mean_map import gaussian_similarity, operator_by_adjoint
from llpbook.model_selection import bag_part
from llpbook.proportions import averaging_matrix, label_proportions
from llpbook.variants import make_bags

from ._agreement import paper_table
from .complexllp import HELD_OUT, SEEDS
from .runner import Table

PROTOCOL = "franco2023-1"
SIZE, MANY, DIRECTIONS = 3000, 100, 50
#: Of L-BFGS in R: iterations, moves remembered, and the relative fall that ends it.
STEPS, MEMORY, FALL = 100, 5, 1e7 * np.finfo(float).eps
HALVINGS = 20
EPSILON, EQUAL = 1e-12, 1e-9
FOLDER = "LLPBOOK_LOCAL"
FULL_BAG = "full-bag-stratified-k-fold"
STRATEGIES = (FULL_BAG, "split-bag-bootstrap", "split-bag-k-fold", "split-bag-shuffle")
VARIANTS = ("naive", "simple", "intermediate", "hard")
POWERS = [0.01, 0.1, 1.0, 10.0, 100.0, 1000.0]
GRID_LMM = {
    "alpha": [0.0, 1.0, 10.0, 100.0],
    "smoothness": [0.01, 0.1, 1.0],
    "sigma": [0.25, 0.5, 1.0],
}
METHODS = {
    "EM/LR": (EMLR(init="random", stop="llp-learn", max_iter=100), {"C": POWERS}),
    "LMM": (None, GRID_LMM),
    "LMM reversed": (None, {**GRID_LMM, "sigma": GRID_LMM["sigma"][::-1]}),
    "LMM one penalty": (None, {**GRID_LMM, "alpha": [1.0]}),
    "alter-SVM": (
        AlterSVM(bag_weights="uniform", n_init=1),
        {"C": POWERS, "C_p": POWERS},
    ),
    "EM/LR settled": (EMLR(), {"C": POWERS}),
    "ridge": (BagMeanRegression(), {"alpha": [0.01, 0.1, 1.0, 10.0, 100.0]}),
}
#: The names of the paper's methods in its table of results.
PUBLISHED = {"kdd-lr": "EM/LR", "lmm": "LMM", "llp-svm-lin": "alter-SVM"}
LIMITS = {"majority": MajorityClass(), "labels": LogisticRegression(max_iter=1000)}


def cases():
    """Names of the published cases, ``DATA-VARIANT-Nbags-…``.

    Returns
    -------
    list of str
    """
    return list(paper_table("franco2023_results")["dataset"].unique())


def read_case(name):
    """What the name of a case says.

    Parameters
    ----------
    name : str
        See `cases`.

    Returns
    -------
    data, variant : str
    n_bags : int

    Raises
    ------
    ValueError
        If it is not such a name.
    """
    found = re.fullmatch(rf"(.+)-({'|'.join(VARIANTS)})-(\d+)bags-cluster-.+", name)
    if not found:
        raise ValueError(f"name must be DATA-VARIANT-Nbags-cluster-…, got {name!r}")
    return found[1], found[2], int(found[3])


def local_file(name):
    """The path of a file of data that the book may not ship.

    Parameters
    ----------
    name : str
        Below the folder that the environment variable ``LLPBOOK_LOCAL`` names (``local`` if it is not set):
        ``franco2023/adult.npz`` and ``franco2023/default-credit-card.npz`` (features ``X``, labels ``y`` and an array
        of bag numbers by the name of each case, from the repository gaabrielfranco/llp-variants-kdd),
        ``covtype12.csv.gz`` (classes 1 and 2, the column ``class`` last) and ``mnist.npz`` (as of Keras).

    Returns
    -------
    Path

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    """
    path = Path(os.environ.get(FOLDER, "local")) / name
    if not path.exists():
        raise FileNotFoundError(
            f"{path} is missing: this study needs data that the book may not ship. Set {FOLDER} to the folder that "
            f"holds {name}; the docstring of studies.franco2023.local_file says what it contains"
        )
    return path


def _covertype():
    table = pd.read_csv(local_file("covtype12.csv.gz"))
    X = table.drop(columns="class").to_numpy(np.float32)
    return X, (table["class"] == 1).to_numpy(int)


def _digits(first, second):
    """Pixels of two digits; the more frequent digit is positive, as in the paper's bags."""
    with np.load(local_file("mnist.npz")) as data:
        digit = np.concatenate([data["y_train"], data["y_test"]])
        rows = np.isin(digit, [first, second])
        X = np.concatenate([data["x_train"], data["x_test"]])[rows]
    y = (digit[rows] == second).astype(int)
    return X.reshape(len(X), -1).astype(np.float32), y if 2 * y.sum() > len(
        y
    ) else 1 - y


@lru_cache(maxsize=16)
def load_data(data, n_bags):
    """A data set.

    Parameters
    ----------
    data : str
        As `read_case` gives it.
    n_bags : int
        Number of clusters.

    Returns
    -------
    X : ndarray of float32, shape (n, n_features)
        Scaled to [-1, 1]; many features turned to ``DIRECTIONS``.
    y : ndarray of 0 and 1, shape (n,)
    clusters : ndarray of int, shape (n,), or None
        Of k-means, the best of ten starts; None where the bags are published.

    Raises
    ------
    FileNotFoundError
        See `local_file`.
    """
    digits = re.fullmatch(r"mnist-digits-(\d)-(\d)", data)
    if digits:
        X, y = _digits(*map(int, digits.groups()))
    elif data == "covertype-classes-1-2":
        X, y = _covertype()
    else:
        with np.load(local_file(f"franco2023/{data}.npz")) as held:
            X, y = held["X"], held["y"].astype(int)
    X, clusters = MinMaxScaler((-1, 1)).fit_transform(X), None
    if data not in ("adult", "default-credit-card"):
        clusters = KMeans(n_bags, n_init=10, random_state=0).fit_predict(X)
    if X.shape[1] > MANY:
        X = TruncatedSVD(DIRECTIONS, random_state=0).fit_transform(X)
    return X, y, clusters


@lru_cache(maxsize=64)
def load_bags(name):
    """The bags of a case.

    Parameters
    ----------
    name : str
        See `cases`.

    Returns
    -------
    ndarray of int, shape (n,)

    Raises
    ------
    FileNotFoundError
        See `local_file`.
    """
    data, variant, n_bags = read_case(name)
    X, y, clusters = load_data(data, n_bags)
    if clusters is None:
        with np.load(local_file(f"franco2023/{data}.npz")) as held:
            return held[name].astype(int)
    if variant == "intermediate":
        return clusters
    sizes, given = np.bincount(clusters), {}
    if variant != "naive":
        given["proportions"] = np.bincount(clusters, y) / sizes
    made = make_bags(
        X, y, variant, sizes=sizes, clusters=clusters, random_state=0, **given
    )
    return made.bags


def split(name, k, size=SIZE):
    """The k-th execution of a case.

    Parameters
    ----------
    name : str
        See `cases`.
    k : int
        0 to 29, the place of the seed in ``SEEDS``.
    size : int, default SIZE
        Instances of the training part that are kept, the same share of each bag; 0 for all.

    Returns
    -------
    X, X_new : ndarray
        Training part, and the whole part held out.
    y, y_new : ndarray of 0 and 1
        Serve the proportions and the evaluation.
    bags : ndarray of int
    shares : ndarray, shape (n_bags, 2)
        Of the instances that are kept.
    """
    data, _, n_bags = read_case(name)
    (X, y, _), bags = load_data(data, n_bags), load_bags(name)
    splits = ShuffleSplit(n_splits=1, test_size=HELD_OUT, random_state=SEEDS[k])
    train, new = next(splits.split(X))
    if 0 < size < len(train):
        rng = np.random.RandomState(SEEDS[k])
        train = train[bag_part(bags[train], size / len(train), rng)]
    shares = label_proportions(y[train], bags[train], classes=[0, 1])
    return X[train].astype(float), X[new], y[train], y[new], bags[train], shares


def splitter(strategy, n_splits, shares, seed):
    """The splitter of a strategy.

    Parameters
    ----------
    strategy : str
        One of ``STRATEGIES``.
    n_splits : int
    shares : ndarray, shape (n_bags, 2)
    seed : int

    Returns
    -------
    BagSplitter
    """
    if strategy == FULL_BAG:
        return FullBagKFold(n_splits, proportions=shares, random_state=seed)
    kind = {
        "split-bag-k-fold": SplitBagKFold,
        "split-bag-shuffle": SplitBagShuffle,
        "split-bag-bootstrap": SplitBagBootstrap,
    }[strategy]
    return kind(n_splits, random_state=seed)


def descend(X, operators, penalties):
    """Weights of `llpbook.mean_map.MeanMap` for several operators and penalties at once, by 100 steps of L-BFGS.

    Steps, memory and the fall that ends it are those of R's optimizer. Without a penalty there is no minimum where
    classes can be separated: there the last step decides.

    Parameters
    ----------
    X : ndarray, shape (n, n_features)
    operators : ndarray, shape (n_features, n_problems)
    penalties : ndarray, shape (n_problems,)

    Returns
    -------
    ndarray, shape (n_features, n_problems)
    """
    weights, past = np.full(operators.shape, 1e-3), []
    value, slope = mean_map_objectives(weights, X, operators, penalties)
    active = np.isfinite(value)
    for _ in range(STEPS):
        step, length = direction(slope, past), 1.0 * active
        enough = 1e-4 * (step * slope).sum(axis=0)
        for _ in range(HALVINGS):
            new = mean_map_objectives(weights + length * step, X, operators, penalties)
            short = active & (new[0] > value + length * enough)
            length = np.where(short, length / 2, length)
            if not short.any():
                break
        small = value - new[0] <= FALL * np.maximum(1.0, np.abs(value))
        length = np.where(short, 0.0, length)
        past = [*past[-MEMORY + 1 :], (length * step, (new[1] - slope) * ~short)]
        weights, active = weights + length * step, active & ~short & ~small
        value = np.where(short, value, new[0])
        slope = np.where(short, slope, new[1])
        if not active.any():
            break
    return weights


def mean_map_objectives(weights, X, operators, penalties):
    """MeanMap's objectives and gradients, a column for each problem."""
    n, f = len(X), X @ weights
    size = np.abs(f)
    value = (size + np.log1p(np.exp(-2 * size))).mean(axis=0)
    value += ((penalties / (2 * n) * weights - operators) * weights).sum(axis=0)
    return value, X.T @ np.tanh(f) / n - operators + penalties / n * weights


def direction(slope, past):
    """The step of L-BFGS, a column for each problem, from the last moves and changes of the gradient."""
    step, kept = -slope, []
    if not past:
        return step / np.maximum(1.0, np.linalg.norm(slope, axis=0))
    for move, change in reversed(past):
        bend = (move * change).sum(axis=0)
        rho = np.where(bend > 0, 1 / np.where(bend > 0, bend, 1.0), 0.0)
        a = rho * (move * step).sum(axis=0)
        step = step - a * change
        kept.append((move, change, rho, a))
    move, change, rho, _ = kept[0]
    size = (change**2).sum(axis=0) * rho
    step = step / np.where(size > 0, size, 1.0)
    for move, change, rho, a in reversed(kept):
        step = step + (a - rho * (change * step).sum(axis=0)) * move
    return step


def lmm_weights(X, bags, shares, settings):
    """Weights of LMM as the paper's R program has it: all bags count the same, and there is no intercept.

    Parameters
    ----------
    X : ndarray, shape (n, n_features)
    bags : ndarray of int, shape (n,)
    shares : ndarray, shape (n_bags, 2)
    settings : list of dict

    Returns
    -------
    ndarray, shape (n_features, n_settings)
        NaN where all bags have the same shares. Where some bag is alone in the graph, ``EPSILON`` pulls its class means
        to 0.
    """
    sizes = np.bincount(bags, minlength=len(shares))
    used = sizes > 0
    means = averaging_matrix(bags, n_bags=len(shares))[used] @ X
    ones, operators = np.ones(used.sum()), {}
    for width, tau in {(s["sigma"], s["smoothness"]) for s in settings}:
        given = means, shares[used], ones, ones / ones.sum()
        graph = gaussian_similarity(means, width), tau
        try:
            mu = operator_by_adjoint(*given, *graph)[0]
        except NotIdentifiableError:  # far apart: the graph leaves some bag alone
            alike = np.ptp(shares[used, 1]) < EQUAL
            mu = operator_by_adjoint(*given, *graph, epsilon=EPSILON)[0]
            mu = np.full(X.shape[1], np.nan) if alike else mu
        operators[width, tau] = mu
    mu = np.array([operators[s["sigma"], s["smoothness"]] for s in settings])
    tasks = np.column_stack([[s["alpha"] for s in settings], mu])
    _, first, same = np.unique(
        tasks.round(7), axis=0, return_index=True, return_inverse=True
    )
    tasks = tasks[first]  # where bags are far apart, many widths give one operator
    return descend(X, tasks[:, 1:].T, tasks[:, 0])[:, same]


def predict_all(method, settings, X, bags, shares, X_new, seed):
    """Predictions of all settings of a method; no label is seen.

    Parameters
    ----------
    method : str
        A key of ``METHODS``.
    settings : list of dict
    X : ndarray, shape (n, n_features)
    bags : ndarray of int, shape (n,)
    shares : ndarray, shape (n_bags, 2)
    X_new : ndarray, shape (n_new, n_features)
    seed : int

    Returns
    -------
    ndarray, shape (n_settings, n_new)
        0 and 1; NaN where the bags have one class only, or their shares do not tell the classes apart.
    """
    if METHODS[method][0] is None:
        scores = X_new @ lmm_weights(X, bags, shares, settings)
        return np.where(np.isnan(scores), np.nan, scores >= 0).T
    estimator, labels = METHODS[method][0], np.full((len(settings), len(X_new)), np.nan)
    if not shares[bags].any(axis=0).all():  # the bags that are left have one class
        return labels
    if "random_state" in estimator.get_params():
        estimator = clone(estimator).set_params(random_state=seed)
    for row, setting in zip(labels, settings, strict=True):
        try:
            model = clone(estimator).set_params(**setting).fit(X, bags, shares)
        except NotIdentifiableError:
            continue
        row[:] = model.predict(X_new)
    return labels


def answered(labels, bags, shares):
    """Labels with the majority class in the place of NaN, where a fit gave no answer."""
    majority = np.bincount(bags, minlength=len(shares)) @ shares
    return np.where(np.isnan(labels), majority.argmax(), labels)


def share_errors(labels, bags, shares):
    """Mean absolute error of the shares of each row of labels, over the bags that are there; NaN counts as 1."""
    sizes = np.bincount(bags, minlength=len(shares))
    used = sizes > 0
    found = labels @ averaging_matrix(bags, n_bags=len(shares))[used].T
    return np.nan_to_num(np.abs(found - shares[used, 1]).mean(axis=1), nan=1.0)


def choose(method, X, bags, shares, cv, seed):
    """The setting that a strategy chooses, and its error; no label is seen.

    Parameters
    ----------
    method, X, bags, shares, seed
        As for `predict_all`.
    cv : BagSplitter

    Returns
    -------
    setting : dict
        The first with the smallest mean of the mean absolute errors. A fit that fails has the largest error, 1.
    error : float
    """
    settings, errors = list(ParameterGrid(METHODS[method][1])), []
    for train, test in cv.split(X, groups=bags):
        fitted = X[train], bags[train], shares
        labels = predict_all(method, settings, *fitted, X[test], seed)
        errors.append(share_errors(labels, bags[test], shares))
    means = np.mean(errors, axis=0)
    return settings[means.argmin()], float(means.min())


def _judge(cell, problem, seed):
    """Accuracy, validation error, mean accuracy of all settings, and the setting."""
    X, X_new, y, y_new, bags, shares = problem
    method, given = cell["method"], (X, bags, shares)
    if method in LIMITS:
        given = (X, y) if method == "labels" else given
        labels = clone(LIMITS[method]).fit(*given).predict(X_new)
        return np.mean(labels == y_new), np.nan, np.nan, {}
    if cell["strategy"] == "oracle":
        settings = list(ParameterGrid(METHODS[method][1]))
        labels = predict_all(method, settings, *given, X_new, seed)
        labels = answered(labels, bags, shares)
        right = (labels == y_new).mean(axis=1)
        return right.max(), np.nan, right.mean(), settings[right.argmax()]
    cv = splitter(cell["strategy"], len(shares), shares, seed)
    setting, error = choose(method, *given, cv, seed)
    labels = answered(predict_all(method, [setting], *given, X_new, seed), bags, shares)
    return np.mean(labels == y_new), error, np.nan, setting


def run(cell, seed):
    """One row: a case, a method, a strategy and the execution ``seed``."""
    problem = split(cell["dataset"], seed, cell["size"])
    with warnings.catch_warnings(action="ignore"):
        *numbers, setting = _judge(cell, problem, SEEDS[seed])
    names = ("accuracy", "error", "mean")
    row = {k: round(float(v), 6) for k, v in zip(names, numbers, strict=True)}
    return {**row, "chosen": " ".join(f"{k}={v:g}" for k, v in setting.items())}


def all_cells():
    """The cells: the published ones, and beside them what is ours."""
    published = paper_table("franco2023_results")[["dataset", "model", "split_method"]]
    rows = [(d, PUBLISHED[m], s) for d, m, s in published.itertuples(index=False)]
    for name in cases():
        rows += [(name, m, "oracle") for m in ("EM/LR", "LMM")]
        rows += [(name, m, s) for m in ("ridge", "LMM one penalty") for s in STRATEGIES]
        rows += [(name, "EM/LR settled", s) for s in (FULL_BAG, "split-bag-shuffle")]
        rows += [(name, m, "none") for m in LIMITS]
        if name.startswith("mnist"):
            rows.append((name, "LMM reversed", FULL_BAG))
    return [
        {"dataset": d, "size": SIZE, "method": m, "strategy": s}
        for d, m, s in sorted(rows, key=lambda row: cases().index(row[0]))
    ]


TABLES = [
    Table(
        "franco2023",
        PROTOCOL,
        all_cells(),
        run,
        "franco2023, section 6: four ways to hold out instances, on 36 of the paper's 112 cases",
        free={"size": int},
    )
]
