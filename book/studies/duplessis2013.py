"""The protocol of duplessis2013, section 4.2: two bags of given class balance from a data set, labeled without labels.

For each data set and seed, draw two disjoint bags with given sizes and shares of the positive class (0.2 and 0.8 in
Table 1, 0.35 and 0.65 in Table 2; 40 instances each). Each method labels the instances of both bags, from the features
and (DSDD, LSDD, KDE) from the bag of each; the labeling error rate is the share of wrong labels, or of right ones if
these are fewer. Every method sees the same draws. Beside the six methods of the paper stands the one that its
conclusion dismisses: a support vector machine with default parameters on the bag numbers (SVC). And DSDD without its
clip, for Table 1 and new instances: "first round" is its first round alone, the hinge loss on the same bumps, tuned on
the same grid by the same held-out score. It stands in the rows and not in `compare`.

The table of new instances has no counterpart in the paper. The methods that can predict are fitted on the same draws
and judged on all instances of the data set that are in neither bag. The names of the classes come from the one bit that
the second bag has more positives, so no swap is forgiven; the error is the mean of the error rates in the two classes,
since the rule is for balanced classes.

What the paper leaves open, and what is done here:

- Whether the numbers of positives are exact or random: exact, rounded to whole instances. "counts drawn" among the
  settings draws them.
- The scaling: each feature has mean 0 and variance 1 over all instances of the set, as in the benchmark files that the
  names come from (australian and saheart are not among these). "features as they are" among the settings does not, and
  "unit range and one start" scales to [0, 1], as in other collections of the time, with one random start of k-means.
- Whether an instance is one of the 7 nearest neighbors of spectral clustering: it is not. "unit range and 7 with
  itself" counts it, as scikit-learn does, in the unit range and with one start.
- The number of draws: any; the paper does not say its own. Both its tables draw from the same pool of instances, half
  of them positive, so what is blind to the bags is printed twice; its 30 pairs of means are as near as those of 1,140
  draws (`draws_behind`, standard error 300): N_PAPER.
- The grids of the cross-validations, and the solver's start: those of the estimators. CCCP of DSDD starts from the
  hinge loss; "DSDD from the convex part" among the settings is the paper's start.
- The rate itself: the paper's formula adds the error rates of two bags, where it must mean their average.
"""

import warnings
from functools import lru_cache, partial

import numpy as np
import pandas as pd
from scipy.stats import ttest_rel
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.neighbors import kneighbors_graph
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC
from sklearn.utils import check_random_state

from llpbook.base import canonical_order
from llpbook.datasets import load
from llpbook.density_difference import KDEDifference, class_counts, labeling_error_rate
from llpbook.dsdd import DSDD
from llpbook.lsdd import LSDD
from llpbook.mean_map import MeanMap
from llpbook.smic import SMIC, name_clusters

from ._agreement import agreement, paper_table, resolution
from .runner import Table, cells
from .runner import load as load_rows

PROTOCOL = "duplessis2013-2"
N_PAPER = 1000  # draws behind a printed mean, to one digit: see above
DATASETS = (
    "australian", "banana", "diabetes", "german", "heart",
    "image", "ionosphere", "saheart", "thyroid", "twonorm",
)  # fmt: skip


def _read_pair(name, text, number, holds, rule):
    parts = text.replace(",", "-").split("-")
    try:
        values = [number(part) for part in parts]
    except ValueError:
        values = []
    if len(values) != 2 or not all(map(holds, values)):
        raise ValueError(f"{name} must be two {rule}, as a,b or a-b, got {text!r}")
    return "-".join(f"{value:.10g}" for value in values)


def read_priors(text):
    """``"0.3,0.7"`` or ``"0.3-0.7"`` as ``"0.3-0.7"``; a ValueError for what is not two numbers in [0, 1]."""
    return _read_pair("priors", text, float, lambda p: 0 <= p <= 1, "numbers in [0, 1]")


def read_sizes(text):
    """``"60,40"`` or ``"60-40"`` as ``"60-40"``; a ValueError for what is not two whole numbers from 2."""
    return _read_pair("sizes", text, int, lambda n: n >= 2, "whole numbers from 2")


FREE = {"priors": read_priors, "sizes": read_sizes}  # what ``--set`` may change


def two_bags(estimator, report):
    """A method that is an estimator fitted to the two bags: (X, bags, seed) -> (labels, what it chose)."""

    def label(X, bags, seed):
        model = estimator()
        if "random_state" in model.get_params():
            model.set_params(random_state=seed)
        model.fit(X, bags)
        return model.predict(X), report(model)

    return label


def cluster_labels(X, method, random_state=None, n_init=10, n_neighbors=7):
    """Two clusters by scikit-learn: two of the competitors.

    Parameters
    ----------
    X : array-like, shape (n_instances, n_features)
    method : {"k-means", "spectral"}
        k-means: the best of several starts. Spectral: normalized cut of the graph of the nearest other instances,
        joined where either is a neighbor of the other with weight 1, of both 2; scikit-learn warns where that graph is
        not connected.
    random_state : int, RandomState or None
        Used on the canonically ordered instances.
    n_init : int, default 10
        Of k-means, also as the last step of spectral clustering. A single start takes random instances as centers.
    n_neighbors : int, default 7
        Of spectral clustering: other instances. The paper says 7; 6 is right if the 7 count the instance itself, as
        scikit-learn's own graph does.

    Returns
    -------
    ndarray of 0 and 1, shape (n_instances,)

    Raises
    ------
    ValueError
        For another method, or as many neighbors as instances for "spectral".
    """
    X = np.asarray(X, dtype=float)
    order, labels = canonical_order(X), np.empty(len(X), dtype=int)
    if method == "k-means":
        init = "random" if n_init == 1 else "k-means++"
        model = KMeans(2, init=init, n_init=n_init, random_state=random_state)
        labels[order] = model.fit_predict(X[order])
    elif method == "spectral":
        if len(X) <= n_neighbors:
            raise ValueError(
                f"X must have at least {n_neighbors + 1} instances, got {len(X)}"
            )
        graph = kneighbors_graph(X[order], n_neighbors)
        model = SpectralClustering(
            2, affinity="precomputed", random_state=random_state,
            eigen_solver="arpack", n_init=n_init,
        )  # fmt: skip
        labels[order] = model.fit_predict(graph + graph.T)
    else:
        raise ValueError(f"method must be 'k-means' or 'spectral', got {method!r}")
    return labels


def _clustering(method, **options):
    """A method that is a clustering of all instances."""

    def label(X, bags, seed):
        return cluster_labels(X, method, seed, **options), ""

    return label


def _by_bag_numbers(X, bags, seed):
    """A default support vector machine that tells the bags apart, on the instances it learned from."""
    return SVC().fit(X, bags).predict(X), ""


def _tuned(model):
    return f"sigma={model.sigma_:.4g} alpha={model.alpha_:.4g}"


def _widths(model):
    return "sigma={:.4g} sigma'={:.4g}".format(*model.sigmas_)


# By the names in the paper, and SVC. To add a method, add an entry.
METHODS = {
    "DSDD": two_bags(DSDD, _tuned),
    "LSDD": two_bags(LSDD, _tuned),
    "KDE": two_bags(KDEDifference, _widths),
    "KM": _clustering("k-means"),
    "SC": _clustering("spectral"),
    "SMIC": two_bags(SMIC, lambda model: f"t={model.n_neighbors_}"),
    "SVC": _by_bag_numbers,
}
# DSDD without its clip; beside METHODS in Table 1 only.
FIRST_ROUND = {"first round": two_bags(partial(DSDD, max_iter=0), _tuned)}


@lru_cache
def features(dataset, scaling="standard"):
    """Features and labels of a data set.

    Parameters
    ----------
    dataset : str
        One of ``DATASETS``.
    scaling : {"standard", "[0, 1]", "none"}, default "standard"
        Over all instances of the set.

    Returns
    -------
    X : ndarray, shape (n_instances, n_features)
    y : ndarray, shape (n_instances,)
    """
    X, y = load(dataset, encoding="duplessis2013")
    scalers = {"standard": StandardScaler, "[0, 1]": MinMaxScaler}
    X = X.to_numpy() if scaling == "none" else scalers[scaling]().fit_transform(X)
    return X, y.to_numpy()


def draw_two_bags(X, y, sizes, priors, random_state=None):
    """Two disjoint bags with given class balances from a labeled data set; the counts are exact, that is rounded.

    Parameters
    ----------
    X : ndarray, shape (n_instances, n_features)
    y : ndarray, shape (n_instances,)
        Two classes, the larger one positive.
    sizes : (int, int)
    priors : (float, float)
        Share of the positive class in the first and second bag.
    random_state : int, RandomState or None

    Returns
    -------
    X : ndarray, shape (sum of sizes, n_features)
    y, bags : ndarray of 0 and 1, shape (sum of sizes,)
    rows : ndarray of int, shape (sum of sizes,)
        Which rows of X they are.

    Raises
    ------
    ValueError
        If a class has too few instances.
    """
    rng, y = check_random_state(random_state), np.unique(y, return_inverse=True)[1]
    have = np.bincount(y)
    counts = np.array([class_counts(*c) for c in zip(sizes, priors, strict=True)])
    if (counts.sum(axis=0) > have).any():
        raise ValueError(
            f"sizes and priors ask for {counts.sum(axis=0).tolist()} instances of the classes, y has {have.tolist()}"
        )
    pools = [rng.permutation(np.flatnonzero(y == c)) for c in (0, 1)]
    ends = np.cumsum(counts, axis=0)
    chosen = [
        pools[c][ends[b, c] - counts[b, c] : ends[b, c]] for b in (0, 1) for c in (0, 1)
    ]
    rows = np.concatenate(chosen)
    return X[rows], y[rows], np.repeat([0, 1], counts.sum(axis=1)), rows


def make_problem(
    dataset, priors, sizes, seed, scaling="standard", counts="exact", return_index=False
):
    """The two bags of one repetition.

    Parameters
    ----------
    dataset : str
        One of ``DATASETS``.
    priors, sizes : str
        Of the first and the second bag, ``"0.2-0.8"`` and ``"40-40"``.
    seed : int
    scaling : {"standard", "[0, 1]", "none"}, default "standard"
    counts : {"exact", "drawn"}, default "exact"
        Numbers of positives: rounded, or binomial.
    return_index : bool, default False

    Returns
    -------
    X : ndarray, shape (n_instances, n_features)
    y, bags : ndarray of 0 and 1, shape (n_instances,)
    rows : ndarray of int, shape (n_instances,)
        Their rows in `features`, with ``return_index`` only.

    Raises
    ------
    ValueError
        If the data set has too few instances of a class.
    """
    X, y = features(dataset, scaling)
    priors = [float(p) for p in priors.split("-")]
    sizes, rng = [int(n) for n in sizes.split("-")], check_random_state(seed)
    if counts == "drawn":
        priors = [rng.binomial(n, p) / n for n, p in zip(sizes, priors, strict=True)]
    drawn = draw_two_bags(X, y, sizes, priors, rng)
    return drawn if return_index else drawn[:3]


def evaluate(label, X, y, bags, seed):
    """One method on one draw; the labels serve the evaluation alone.

    Parameters
    ----------
    label : callable
        ``label(X, bags, seed) -> (labels, what it chose)``; a value of ``METHODS``.
    X, y, bags : ndarray
        From `make_problem`.
    seed : int

    Returns
    -------
    dict
        ``ler``, the labeling error rate; ``chosen``, the hyper-parameters; ``warned``, the kinds of warnings raised.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        labels, chosen = label(X, bags, seed)
    kinds = {str(w.message).split(",")[0].split(";")[0] for w in caught}
    return {
        "ler": round(labeling_error_rate(labels, y), 10),
        "chosen": chosen,
        "warned": "; ".join(sorted(kinds)),
    }


def run(cell, seed):
    """One row: a data set, a method, the two priors and sizes, and a seed."""
    problem = make_problem(cell["dataset"], cell["priors"], cell["sizes"], seed)
    return evaluate({**METHODS, **FIRST_ROUND}[cell["method"]], *problem, seed)


# Which table of the paper has these priors.
PAPER_TABLES = {"0.2-0.8": "duplessis2013_table1", "0.35-0.65": "duplessis2013_table2"}


def comparable(errors, level=0.05):
    """Which methods are the best, or not to be told from the best: the bold face of the paper's tables.

    Parameters
    ----------
    errors : DataFrame, shape (n_seeds, n_methods)
        Each row the errors of the same draw.
    level : float, default 0.05

    Returns
    -------
    Series of bool
        For each method: whether its mean is the smallest, or a paired two-sided t-test against the method with the
        smallest mean has a p-value of at least ``level``. A method with the same error on every draw is not different.

    Raises
    ------
    ValueError
        If an error is missing, or there are fewer than two draws.
    """
    if len(errors) < 2 or errors.isna().any(axis=None):
        raise ValueError(
            f"errors must have at least 2 draws, each with all methods, got shape {errors.shape} "
            f"with {int(errors.isna().sum().sum())} missing"
        )
    best = errors[errors.mean().idxmin()]

    def is_comparable(error):
        gap = error - best
        if gap.nunique() == 1:  # no variance to test against
            return bool(gap.iloc[0] == 0)
        return bool(ttest_rel(error, best).pvalue >= level)

    return errors.apply(is_comparable)


def compare(
    table="duplessis2013_table1", priors=None, sizes="40-40", results=None, setting=None
):
    """A table of the paper next to ours, for ``METHODS``.

    Parameters
    ----------
    table : Table or str
    priors, sizes : str
        Rows to take; the priors are those of the paper's table of that name if not given, else of its Table 1.
    results : path, optional
    setting : str, optional
        For the table of settings: which one.

    Returns
    -------
    DataFrame
        ``dataset, method, paper, paper_sd, ours, sd, n_seeds``, then what `agreement` says, and ``bold``. The paper's
        columns are NaN for SVC, and for priors and sizes of neither of its tables. ``bold`` is ours, `comparable` over
        the draws that all methods have.

    Raises
    ------
    ValueError
        If there are no such rows.
    """
    rows, name = load_rows(table, results), getattr(table, "name", table)
    if priors is None:
        priors = next((p for p, t in PAPER_TABLES.items() if t == name), "0.2-0.8")
    keep = (rows["priors"] == priors) & (rows["sizes"] == sizes)
    keep &= rows["method"].isin(list(METHODS))
    if setting is not None:
        keep &= rows["setting"] == setting
    rows = rows[keep]
    if rows.empty:
        raise ValueError(
            f"the table has no rows with priors={priors!r} and sizes={sizes!r}"
            + (f" and setting={setting!r}" if setting else "")
        )
    ours = (
        rows.groupby(["dataset", "method"])["ler"]
        .agg(ours="mean", sd="std", n_seeds="count")
        .reset_index()
    )
    wide = rows.pivot(index=["dataset", "seed"], columns="method", values="ler")
    bold = pd.concat(
        {
            dataset: comparable(part.dropna(axis=1, how="all").dropna())
            for dataset, part in wide.groupby("dataset")
        }
    )
    ours["bold"] = bold.loc[pd.MultiIndex.from_frame(ours[["dataset", "method"]])].array
    printed = PAPER_TABLES.get(priors) if sizes == "40-40" else None
    paper = paper_table(printed or "duplessis2013_table1")
    resolves = resolution(paper, ["dataset"], "ler_mean")
    paper = paper.rename(columns={"ler_mean": "paper", "ler_std": "paper_sd"})
    if printed is None:
        paper[["paper", "paper_sd"]] = np.nan
    order = {method: i for i, method in enumerate(METHODS)}
    both = ours.merge(paper, on=["dataset", "method"], how="left")
    both = agreement(both, N_PAPER, resolves)
    both = both.sort_values("method", key=lambda m: m.map(order), kind="stable")
    both = both.sort_values("dataset", kind="stable").reset_index(drop=True)
    first = ["dataset", "method", "paper", "paper_sd"]
    return both[[*first, *(c for c in both if c not in [*first, "bold"]), "bold"]]


def _drawn(cell):
    return METHODS[cell["method"]], {"counts": "drawn"}


def _raw(cell):
    return METHODS[cell["method"]], {"scaling": "none"}


ONE_START = {
    "KM": _clustering("k-means", n_init=1),
    "SC": _clustering("spectral", n_init=1),
}


def _unit(cell):
    return {**METHODS, **ONE_START}[cell["method"]], {"scaling": "[0, 1]"}


def _with_itself(cell):
    label = _clustering("spectral", n_init=1, n_neighbors=6)
    return label, {"scaling": "[0, 1]"}


# What the paper leaves open, by name: (cell -> method and how data are made), methods and priors it is run for.
BOTH = ("0.2-0.8", "0.35-0.65")
SETTINGS = {
    "features as they are": (_raw, tuple(METHODS), BOTH[:1]),
    "counts drawn": (_drawn, tuple(METHODS), BOTH[:1]),
    "unit range and one start": (_unit, tuple(METHODS), BOTH),
    "unit range and 7 with itself": (_with_itself, ("SC",), BOTH),
    "DSDD from the convex part": (
        lambda cell: (two_bags(partial(DSDD, init="convex"), _tuned), {}),
        ("DSDD",),
        BOTH[:1],
    ),
    "LSDD by the sign": (
        lambda cell: (two_bags(partial(LSDD, criterion="sign"), _tuned), {}),
        ("LSDD",),
        BOTH[:1],
    ),
    "LSDD with the public grid": (
        lambda cell: (
            two_bags(partial(LSDD, sigma="public", alpha="public"), _tuned),
            {},
        ),
        ("LSDD",),
        BOTH,
    ),
}


def run_setting(cell, seed):
    """One row of the settings."""
    label, options = SETTINGS[cell["setting"]][0](cell)
    problem = make_problem(
        cell["dataset"], cell["priors"], cell["sizes"], seed, **options
    )
    return evaluate(label, *problem, seed)


def _named(estimator):
    """A method for new instances: fit two bags and their shares."""

    def fit(X, y, bags, shares, seed):
        model = estimator()
        if "random_state" in model.get_params():
            model.set_params(random_state=seed)
        return model.fit(X, bags, shares).predict

    return fit


def _named_clusters(X, y, bags, shares, seed):
    """The two clusters of k-means, the one with the larger share in the second bag positive."""
    model = KMeans(2, n_init=10, random_state=seed).fit(X)
    second = model.labels_ == 1
    positive = name_clusters(second, bags == 0, shares, (1.0, 1.0))
    return lambda Z: (model.predict(Z) == positive).astype(int)


# Methods that predict: (X, y, bags, shares, seed) -> function of new instances; only the last reads y.
PREDICTORS = {
    "DSDD": _named(DSDD),
    "first round": _named(partial(DSDD, max_iter=0)),
    "LSDD": _named(LSDD),
    "KDE": _named(KDEDifference),
    "KM": _named_clusters,
    "SMIC": _named(SMIC),
    "SVC": lambda X, y, bags, shares, seed: SVC().fit(X, bags).predict,
    "MeanMap": _named(MeanMap),
    "supervised": lambda X, y, bags, shares, seed: SVC().fit(X, y).predict,
}


def run_new(cell, seed):
    """One row of the table of new instances.

    Parameters
    ----------
    cell : dict
        ``dataset``, ``method`` (of ``PREDICTORS``), ``priors``, ``sizes``.
    seed : int

    Returns
    -------
    dict
        ``error`` on the instances in neither bag, the mean of the rates in the two classes; ``ler``, the labeling error
        rate on the bags.
    """
    X, y, bags, rows = make_problem(
        cell["dataset"], cell["priors"], cell["sizes"], seed, return_index=True
    )
    whole, classes = features(cell["dataset"])
    new = np.setdiff1d(np.arange(len(whole)), rows)
    truth = (classes[new] == np.unique(classes)[1]).astype(int)
    shares = [float(p) for p in cell["priors"].split("-")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        predict = PREDICTORS[cell["method"]](X, y, bags, shares, seed)
        wrong, labels = predict(whole[new]) != truth, predict(X)
    error = np.mean([wrong[truth == k].mean() for k in (0, 1)])
    return {
        "error": round(float(error), 10),
        "ler": round(labeling_error_rate(labels, y), 10),
    }


def _cells(priors, methods=tuple(METHODS)):
    return cells(
        dataset=DATASETS, method=list(methods), priors=[priors], sizes=["40-40"]
    )


TABLES = [
    Table(
        "duplessis2013_table1",
        PROTOCOL,
        _cells("0.2-0.8", [*METHODS, *FIRST_ROUND]),
        run,
        "Table 1 of du Plessis & Sugiyama (2013): labeling error rates, 40 + 40 instances, priors 0.2 and 0.8",
        value="ler",
        free=FREE,
    ),
    Table(
        "duplessis2013_table2",
        PROTOCOL,
        _cells("0.35-0.65"),
        run,
        "Table 2 of du Plessis & Sugiyama (2013): the same with priors 0.35 and 0.65",
        value="ler",
        free=FREE,
    ),
    Table(
        "duplessis2013_settings",
        PROTOCOL,
        [
            {**cell, "setting": setting}
            for setting, (_, methods, all_priors) in SETTINGS.items()
            for priors in all_priors
            for cell in _cells(priors, methods)
        ],
        run_setting,
        "Table 1 in the settings that du Plessis & Sugiyama (2013) leave open",
        value="ler",
        free=FREE,
    ),
    Table(
        "duplessis2013_new",
        PROTOCOL,
        [*_cells("0.2-0.8", PREDICTORS), *_cells("0.35-0.65", PREDICTORS)],
        run_new,
        "Errors on the instances in neither bag, for the methods of du Plessis & Sugiyama (2013) that predict",
        value="error",
    ),
]
