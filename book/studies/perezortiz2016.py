"""The protocol of perezortiz2016, section III: ten folds, random bags of 3, 5 and 10 of the training part.

For each data set and seed, split the instances into ten folds, stratified by class; cut nine of them into random bags,
fit, and predict the instances of the tenth. The accuracy is the mean over the folds. Every method sees the same folds
and bags. ``LDA`` is supervised (Table I): bags of one instance, whose weights are the labels.

One seed is one division into folds and bags, as one cell of the paper is: its mean stands on a single one.

What the paper leaves open, and what is done here:

- Whether folds are stratified: they are; the deviations that it prints for constant predictions (glass 32.73 ± 0.78)
  leave nothing else.
- Where bags are drawn: from the nine folds, the last bag holds what remains.
- The scaling, on which distances of FWS depend: mean 0 and variance 1 on the training part. "features as they are"
  among the settings does not.
- How an instance is classified: by the discriminant scores, with the class prior. "no prior" among the settings leaves
  it out.
- What eq. 7 takes the soft-max of: the same scores. "linear logits" among the settings takes it to the letter.
- Classes that are in no training bag are never predicted.
- The stopping rule is the paper's, a total change below 1e-5, with at most 1,000 rounds; ``n_short`` counts the folds
  that need more.
"""

import warnings
from functools import lru_cache

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.preprocessing import StandardScaler

from llpbook.base import LLPWarning
from llpbook.datasets import dataset_names, load, random_bags
from llpbook.discriminant import WeightedLDA
from llpbook.proportions import label_proportions

from ._agreement import agreement, paper_table, resolution
from .runner import Table, cells, summary

PROTOCOL = "perezortiz2016-1"
N_FOLDS = 10
N_PAPER = 1  # divisions into folds and bags behind a printed mean
BAG_SIZES = (3, 5, 10)

# By the names in the paper. To add a method, add an entry.
METHODS = {
    "LDA": {"scheme": "sws"},
    "SWS-LDA": {"scheme": "sws"},
    "FWS-LDA": {"scheme": "fws"},
    "WWS-LDA": {"scheme": "wws"},
}


@lru_cache(maxsize=1)
def problem(dataset):
    """Features and codes of the classes of a data set.

    Parameters
    ----------
    dataset : str
        A name of the paper's Table I in its encoding, or any other of `llpbook.datasets.dataset_names`.

    Returns
    -------
    X : ndarray, shape (n_instances, n_features)
    y : ndarray of int, shape (n_instances,)
    """
    own = dataset in dataset_names(encoding="perezortiz2016")
    X, labels = load(dataset, encoding="perezortiz2016" if own else "onehot")
    return X.to_numpy(), np.unique(labels, return_inverse=True)[1]


def read_dataset(text):
    """The name of a data set, or a ValueError that lists them."""
    known = dict.fromkeys([*dataset_names(encoding="perezortiz2016"), *dataset_names()])
    if text not in known:
        raise ValueError(f"dataset must be one of {', '.join(known)}, got {text!r}")
    return text


def fit_and_predict(cell, X, y, X_new, seed):
    """Predictions for new instances, rounds, and whether they were too few.

    Parameters
    ----------
    cell : dict
        ``method``, ``bag_size`` and maybe ``setting``.
    X : ndarray, shape (n_instances, n_features)
        The training part.
    y : ndarray of int, shape (n_instances,)
        Serves the proportions alone.
    X_new : ndarray, shape (n_new, n_features)
    seed : int

    Returns
    -------
    predicted : ndarray, shape (n_new,)
    n_iter : int
    short : bool
    """
    options = SETTINGS[cell.get("setting", "default")]
    if options.get("scale", True):
        scaler = StandardScaler().fit(X)
        X, X_new = scaler.transform(X), scaler.transform(X_new)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        bags = random_bags(len(y), bag_size=cell["bag_size"], random_state=seed)
        shares = label_proportions(y, bags, classes=range(y.max() + 1))
        own = {**METHODS[cell["method"]], "logits": options.get("logits", "posterior")}
        rounds = options.get("rounds", 1000)
        model = WeightedLDA(**own, max_iter=rounds, tol=1e-5 / len(y))
        scores = model.fit(X, bags, shares).predict_proba(X_new)
    caught = [
        w for w in caught if "will take about" not in str(w.message)
    ]  # a slow fit
    unknown = [w for w in caught if w.category not in (LLPWarning, ConvergenceWarning)]
    assert not unknown, unknown[0].message
    if options.get("no prior"):
        prior = model.class_prior_
        scores = np.divide(scores, prior, out=np.zeros_like(scores), where=prior > 0)
    if "directions" in options:
        scores = -_distances(model, X_new, options["directions"])
    short = any(w.category is ConvergenceWarning for w in caught)
    return scores.argmax(axis=1), model.n_iter_, short


def _distances(model, X, k):
    """Squared distances to the class means in the first k directions; infinite for a class without instances."""
    basis = model.scalings_[:, :k]
    gaps = (X @ basis)[:, None] - model.means_ @ basis
    return np.where(model.class_prior_ > 0, (gaps**2).sum(axis=2), np.inf)


def run(cell, seed):
    """One row: a data set, a method, a bag size, and a seed for folds and bags."""
    X, y = problem(cell["dataset"])
    kind = SETTINGS[cell.get("setting", "default")].get("folds", StratifiedKFold)
    folds = kind(N_FOLDS, shuffle=True, random_state=seed)
    found, rounds, short = [], [], 0
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class")
        splits = list(folds.split(X, y))
    for train, test in splits:
        predicted, n_iter, stopped = fit_and_predict(
            cell, X[train], y[train], X[test], seed
        )
        found.append(np.mean(predicted == y[test]))
        rounds.append(n_iter)
        short += stopped
    return {
        "accuracy": round(float(np.mean(found)), 6),
        "fold_sd": round(float(np.std(found, ddof=1)), 6),
        "rounds": round(float(np.mean(rounds)), 1),
        "n_short": short,
    }


def compare(table="perezortiz2016", results=None):
    """Tables I and II of the paper next to ours, in per cent.

    Parameters
    ----------
    table : Table or str
    results : path, optional

    Returns
    -------
    DataFrame
        ``dataset, method, bag_size, paper, paper_sd, ours, sd, n_seeds`` for the cells in both, ``setting`` where the
        table has it, and what `agreement` says, with the `resolution` of Table II for both tables, since Table I has
        one method. LDA has the bag size 1. The paper's deviation is over folds, ours over seeds.
    """
    ours = summary(table, results=results).rename(columns={"mean": "ours"})
    ours[["ours", "sd"]] *= 100
    names = {"acc_mean": "paper", "acc_std": "paper_sd"}
    names |= {"lda_acc_mean": "paper", "lda_acc_std": "paper_sd"}
    one = paper_table("perezortiz2016_table1").assign(method="LDA", bag_size=1)
    two = paper_table("perezortiz2016_table2")
    resolves = resolution(two, ["dataset", "bag_size"], "acc_mean")
    both = [t.rename(columns=names) for t in (one, two)]
    first = ["dataset", "method", "bag_size", "paper", "paper_sd"]
    printed = [t[first].merge(ours, on=first[:3]) for t in both]
    return agreement(pd.concat(printed, ignore_index=True), N_PAPER, resolves)


SETTINGS = {
    "default": {},
    "features as they are": {"scale": False},
    "no prior": {"no prior": True},
    "linear logits": {"logits": "linear"},
    "one round": {"rounds": 1},
    "five rounds": {"rounds": 5},
    "nearest mean in two directions": {"directions": 2},
    "folds not stratified": {"folds": KFold},
}
SETTING_METHODS = {
    "features as they are": ["FWS-LDA"],
    "no prior": ["SWS-LDA", "FWS-LDA", "WWS-LDA"],
    "linear logits": ["WWS-LDA"],
}
SHIPPED = dataset_names(encoding="perezortiz2016")

TABLES = [
    Table(
        "perezortiz2016",
        PROTOCOL,
        cells(dataset=SHIPPED, method=["LDA"], bag_size=[1])
        + cells(dataset=SHIPPED, method=list(METHODS)[1:], bag_size=BAG_SIZES),
        run,
        "Tables I and II of Perez-Ortiz et al. (2016), and any data set by --set dataset=NAME",
        free={"dataset": read_dataset},
    ),
    Table(
        "perezortiz2016_settings",
        PROTOCOL,
        [
            {**cell, "setting": setting}
            for setting, methods in SETTING_METHODS.items()
            for cell in cells(
                dataset=["heart", "housevotes", "card", "iris", "wine", "dermatology"],
                method=methods,
                bag_size=BAG_SIZES,
            )
        ],
        run,
        "the same in the settings that the paper leaves open",
    ),
]
