"""Every method that can take 36,631 instances in 179 features, on the 26 sets of bags of `studies.complexllp`.

A row is one set, one method and one split: the k-th split is seed k (``--seeds 10`` runs ten). No label enters a
choice. Each setting of a method's grid is fitted to one half of each bag and predicts the other half, and the other
way round; then whole bags are scored by these predictions, by two criteria:

- ``shares``: the mean absolute error of the mean probabilities, weighted by size, or of the shares of predicted labels
  where a method has no probabilities;
- ``likelihood``: the log-likelihood of the counts of the bags (`llpbook.model_selection.count_log_likelihood`), the
  default of `LLPGridSearchCV`; labels without probabilities err at one rate, the most likely one.

``accuracy_X`` and ``f1_X`` (of the positive class) are results on the 12,211 instances held out: of the setting that
criterion X chooses, fitted to all bags, and, for ``untuned``, of the first setting of the grid. It was written down
before this table was run, but for trees and counts after a first run of these methods on split 0
(`studies.bag_losses`); it is not always the default of the package. Ties go to this setting. ``score_X`` is the
criterion's value of its choice, larger is better. ``cpu_seconds`` is the processor time of one fit of the untuned
setting; ``chosen_X`` are the chosen settings.

The methods for two bags choose their widths and penalties themselves, and take the class prior that the shares tell.
``labels`` is logistic regression on the true labels: the limit of the linear methods. Labels choose its setting, which
stands in the columns of both criteria. ``labels`` and ``majority`` see no bags, so that their rows stand for all sets
(``any``).

All methods of the package are here but these, of which no fit to the first set ended within 75 seconds: `ConvSVM`
(linear, ten cutting planes), `AOCKernelKMeans` (three starts; its kernel matrix is quadratic in the instances) and
`SMIC`.
"""

import time
import warnings

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import ParameterGrid

from llpbook import (
    DSDD,
    EMLR,
    LSDD,
    AlternatingMeanMap,
    AlterSVM,
    BagBoosting,
    BagLogistic,
    BagMeanRegression,
    ClusterModelSelection,
    CountBoosting,
    CountLogistic,
    InvCal,
    KDEDifference,
    LaplacianMeanMap,
    LLPGridSearchCV,
    MajorityClass,
    MeanMap,
    SplitBagKFold,
    WeightedLDA,
)

from . import complexllp
from .bag_losses import best_published, choose
from .runner import Table, cells, load

ANY = "any"  # stands for all sets
PROTOCOL = "outside-1"
CRITERIA = {"shares": "pooled_weighted_mae", "likelihood": "pooled_log_likelihood"}
CHOICES = (*CRITERIA, "untuned")
VALUES = ["accuracy", "f1"]
BEST = "best of eight"
PENALTIES = [100.0, 1.0, 10.0, 1e3]
TREES = {"C": [0.01, 0.1], "max_iter": [50, 10]}
# By name: estimator and grid. The first setting is the untuned one. To add a method, add an entry.
METHODS = {
    "ridge": (BagMeanRegression(), {"alpha": [1.0, 0.01, 100.0]}),
    "MeanMap": (MeanMap(), {"alpha": PENALTIES}),
    "LaplacianMeanMap": (LaplacianMeanMap(), {"alpha": PENALTIES}),
    "WeightedLDA": (WeightedLDA(), {"shrinkage": [0.5, 0.1, 0.9]}),
    "InvCal": (InvCal(), {"C_p": [1.0, 0.1, 10.0, 100.0]}),
    "CountLogistic": (CountLogistic(), {"C": [0.01, 1e-3, 0.1, 1.0]}),
    "BagLogistic": (BagLogistic("proportion"), {"C": [0.01, 1e-3, 0.1, 1.0]}),
    "EMLR": (EMLR(), {"C": [0.01, 1e-3, 0.1, 1.0]}),
    "CountBoosting": (CountBoosting(), TREES),
    "BagBoosting": (BagBoosting("proportion"), TREES),
    "AlterSVM": (AlterSVM(n_init=3), {"C": [0.01, 1e-3, 0.1]}),
    "ClusterModelSelection": (
        ClusterModelSelection(max_iter=3, population_size=10),
        {"n_clusters": [6, 3, 9]},
    ),
    "KDEDifference": (KDEDifference(class_prior="match"), {}),
    "DSDD": (DSDD(class_prior="match", n_folds=3), {}),
    "LSDD": (LSDD(class_prior="match"), {}),
    "AlternatingMeanMap": (AlternatingMeanMap(), {"alpha": [100.0, 10.0, 1e3]}),
    "EMLR soft": (EMLR(soft=True), {"C": [0.01, 1e-3, 0.1]}),
}
LIMITS = {
    "majority": (MajorityClass(), {}),
    "labels": (LogisticRegression(max_iter=1000), {"C": [0.01, 1.0]}),
}


def build(method, seed):
    """An estimator and its grid.

    Parameters
    ----------
    method : str
        A key of ``METHODS`` or ``LIMITS``.
    seed : int
        The random state, where the estimator has one.

    Returns
    -------
    estimator : classifier
    grid : dict of list
        The first setting is the untuned one.
    """
    estimator, grid = {**METHODS, **LIMITS}[method]
    if "random_state" in estimator.get_params():
        estimator = clone(estimator).set_params(random_state=seed)
    return estimator, grid


def choices(estimator, grid, X, bags, shares, seed):
    """What each criterion chooses on halves of the bags; no label is seen.

    Parameters
    ----------
    estimator : LLPClassifier
    grid : dict of list
    X : ndarray, shape (n, n_features)
    bags : ndarray of int, shape (n,)
    shares : ndarray, shape (n_bags, 2)
    seed : int
        Of the halves.

    Returns
    -------
    dict of str to (dict, float)
        By criterion, the setting and its score.
    """
    cv, scoring = SplitBagKFold(2, random_state=seed), CRITERIA
    found = LLPGridSearchCV(estimator, grid, scoring=scoring, refit=False, cv=cv)
    results = found.set_params(error_score="raise").fit(X, bags, shares).cv_results_
    chosen = {}
    for name in CRITERIA:
        scores = results[f"mean_test_{name}"]
        chosen[name] = results["params"][scores.argmax()], scores.max()
    return chosen


def fit_and_judge(estimator, settings, X, given, X_new, y_new):
    """Results of some settings on new instances; equal settings are fitted once.

    Parameters
    ----------
    estimator : classifier
    settings : dict of str to dict
        By choice; the fit of "untuned" is timed.
    X : ndarray, shape (n, n_features)
    given : tuple
        What else ``fit`` takes: bags and shares, or labels.
    X_new : ndarray, shape (n_new, n_features)
    y_new : ndarray of 0 and 1, shape (n_new,)

    Returns
    -------
    dict of str to float
    """
    known = {}
    for setting in settings.values():
        if as_words(setting) not in known:
            start = time.process_time()
            model = clone(estimator).set_params(**setting).fit(X, *given)
            spent, labels = time.process_time() - start, model.predict(X_new)
            f1 = f1_score(y_new, labels, zero_division=0.0)
            known[as_words(setting)] = np.mean(labels == y_new), f1, spent
    found = {how: known[as_words(setting)] for how, setting in settings.items()}
    return {
        **{f"accuracy_{how}": result[0] for how, result in found.items()},
        **{f"f1_{how}": result[1] for how, result in found.items()},
        "cpu_seconds": found["untuned"][2],
    }


def as_words(setting):
    """A setting as it stands in a row; also what tells settings apart."""
    return " ".join(f"{key}={value}" for key, value in setting.items())


def run(cell, seed):
    """One row: a set, a method and the split ``seed``."""
    name = complexllp.names()[0] if cell["dataset"] == ANY else cell["dataset"]
    X, X_new, y, y_new, bags, shares = complexllp.split(name, seed)
    estimator, grid = build(cell["method"], seed)
    with warnings.catch_warnings(action="ignore"):
        if cell["method"] == "labels":
            given, setting = (y,), choose(estimator, grid, X, (y,), None)
            chosen = dict.fromkeys(CRITERIA, (setting, np.nan))
        else:
            given = bags, shares
            chosen = choices(estimator, grid, X, bags, shares, seed)
        settings = {how: setting for how, (setting, _) in chosen.items()}
        settings["untuned"] = ParameterGrid(grid)[0]
        found = fit_and_judge(estimator, settings, X, given, X_new, y_new)
    found |= {f"score_{how}": score for how, (_, score) in chosen.items()}
    words = {f"chosen_{how}": as_words(settings[how]) for how in CRITERIA}
    return {**{key: round(float(value), 6) for key, value in found.items()}, **words}


TABLES = [
    Table(
        "outside",
        PROTOCOL,
        cells(dataset=[ANY], method=list(LIMITS))
        + cells(dataset=complexllp.names(), method=list(METHODS)),
        run,
        "all methods that can take 36,631 instances on 26 sets of bags that others made and published results of",
        value="accuracy_likelihood",
    )
]


def by_set(value="accuracy", results=None):
    """Our results on each set, the mean over the splits that a method has run.

    Parameters
    ----------
    value : {"accuracy", "f1"}, default "accuracy"
    results : path, optional
        Folder of the files; that of the studies if not given.

    Returns
    -------
    DataFrame
        A row per set, method and choice ("shares", "likelihood" or "untuned"), with ``variant``, ``ours``, the
        ``majority`` on the same splits and the number ``n`` of splits.

    Raises
    ------
    ValueError
        As `load`, or if ``value`` is not a result.
    """
    if value not in VALUES:
        raise ValueError(f"value must be one of {VALUES}, got {value!r}")
    rows = load("outside", results)
    columns = {f"{value}_{how}": how for how in CHOICES}
    majority = rows[rows["method"] == "majority"].set_index("seed")
    majority = majority[f"{value}_untuned"].rename("majority")
    keys = ["dataset", "method", "seed"]
    long = rows[rows["dataset"] != ANY][[*keys, *columns]].rename(columns=columns)
    long = long.melt(keys, var_name="choice", value_name="ours")
    long = long.join(majority, on="seed").dropna()
    means = long.groupby(["dataset", "method", "choice"], sort=False)
    found = means[["ours", "majority"]].mean().assign(n=means.size()).reset_index()
    return found.assign(variant=found["dataset"].map(complexllp.variant))


def by_variant(value="accuracy", results=None):
    """Our results by variant, means over its sets.

    Parameters
    ----------
    value, results
        As for `by_set`.

    Returns
    -------
    DataFrame
        A row per method and choice, a column per variant; nan where a method has not run on all sets of a variant.
    """
    found = by_set(value, results)
    groups = found.groupby(["method", "choice", "variant"])["ours"]
    sizes = pd.Series(map(complexllp.variant, complexllp.names())).value_counts()
    wide = groups.mean().unstack().reindex(columns=sorted(sizes.index))
    wide = wide.where(groups.size().unstack().eq(sizes))
    order = pd.MultiIndex.from_product(
        [[*METHODS], CHOICES], names=["method", "choice"]
    )
    return wide.reindex(order[order.isin(wide.index)])


def table(value="accuracy", results=None):
    """The published results beside ours, in percent, by variant.

    Parameters
    ----------
    value, results
        As for `by_set`.

    Returns
    -------
    DataFrame
        A column per variant. First the rows of the best published method of each set when it chose by the criterion
        ``abs`` or ``hypergeo`` (`studies.bag_losses.best_published`: the best is told by labels), then a row for each
        of our methods and choices that has run on all sets of a variant, then ``majority`` and ``labels``.
    """
    theirs = best_published(value).T
    theirs.index = pd.MultiIndex.from_product([[BEST], theirs.index])
    rows = load("outside", results)
    limits = rows[rows["dataset"] == ANY].groupby("method")[f"{value}_shares"].mean()
    beside = pd.DataFrame({name: 100 * limits for name in theirs.columns})
    beside.index = pd.MultiIndex.from_product([beside.index, [""]])
    ours = 100 * by_variant(value, results).dropna(how="all")
    return pd.concat([theirs, ours, beside]).rename_axis(ours.index.names).round(1)


def their_majority():
    """The published accuracy of the majority class: that of the methods that call nobody positive.

    Returns
    -------
    float
        Mean over the published splits, which are not ours.
    """
    rows = complexllp.published()
    return float(rows.loc[rows["f1_mean"] == 0, "acc_mean"].median())


def over_majority(results=None):
    """Accuracies less that of the majority class on the same splits, ours and the best published ones.

    Parameters
    ----------
    results : path, optional
        As for `by_set`.

    Returns
    -------
    DataFrame
        A row per set, method and choice: ``variant``; ``over``, in points; ``n``, the number of splits. The method
        "best of eight" is the best published one of a set when all chose by ``abs`` or ``hypergeo``, without labels,
        or by ``oracle``, with labels; labels tell which one is the best.
    """
    found = by_set(results=results)
    found["over"] = 100 * (found["ours"] - found["majority"])
    rows = complexllp.published().rename(columns={"metric": "choice"})
    best = rows.groupby(["dataset", "choice"])["acc_mean"].max() - their_majority()
    theirs = (100 * best).rename("over").reset_index()
    theirs = theirs.assign(method=BEST, n=int(rows["n"].max()))
    columns = ["dataset", "method", "choice", "over", "n"]
    both = pd.concat([theirs[columns], found[columns]], ignore_index=True)
    return both.assign(variant=both["dataset"].map(complexllp.variant))


def leads(results=None):
    """How far each of our methods is ahead of the best of eight, set by set.

    Parameters
    ----------
    results : path, optional
        As for `by_set`.

    Returns
    -------
    DataFrame
        The rows of `over_majority` that are ours, with ``best``, the better of the two label-free criteria of the best
        of eight, and ``lead``, in points: each side over its own majority class.
    """
    found = over_majority(results)
    theirs = found["method"] == BEST
    best = found[theirs & (found["choice"] != "oracle")].groupby("dataset")["over"]
    ours = found[~theirs].join(best.max().rename("best"), on="dataset")
    return ours.assign(lead=ours["over"] - ours["best"])
