"""Does the worth of bags in labels, direction by direction, predict what the fit to the counts loses?

A task is one of `studies.benchmark` (two draws) or of `studies.choosing`. The fit is `CountLogistic` with its default;
``gap`` is its loss in accuracy on the new instances, in points, against logistic regression on the labels of the bags
with the same penalty, ``lead`` its gain against the majority class.

Predictions are made with two models in the place of the truth: ``labels``, logistic regression on all instances, old
and new, which only a study has; and ``fit``, the fit itself, which every user has. For each, ``median`` and
``harmonic`` are of the spectrum of `llpbook.label_worth` (its offset left out), ``valid`` whether it vouches for the
losses, ``excess`` its excess error in points less that of labels, and ``penalized`` the same with the penalty: the mean
accuracy of 40 draws of the weights with the mean and the covariance that the penalized fits to labels and to counts
have in the limit, the second less the first. ``worth`` is today's number (`llpbook.identifiability`), the smallest
over the classes.
"""

import warnings

import numpy as np
from scipy.special import expit, softmax
from sklearn.linear_model import LogisticRegression

from llpbook import CountLogistic, MajorityClass, NotIdentifiableError, label_worth
from llpbook.base import append_one, one_column
from llpbook.count_likelihood import bag_counts
from llpbook.proportions import identifiability, label_proportions
from llpbook.theory import count_information, label_information

from . import benchmark, choosing
from .runner import Table

PROTOCOL = "label-worth-1"
C, N_DRAWS = 0.1, 40


def all_cells():
    """The tasks of the benchmark with bags, and those of choosing."""
    kinds = [(c["dataset"], c["kind"], c["bag_size"]) for c in benchmark.all_cells()]
    tasks = dict.fromkeys(task for task in kinds if task[1] != benchmark.ANY)
    tasks = [
        t for t in tasks if not (t[1] == benchmark.NATURAL and t[2] == benchmark.ANY)
    ]
    found = [("benchmark", ", ".join(map(str, task))) for task in tasks]
    for part, some in choosing.TASKS.items():
        found += [(part, task) for task in some]
    return [dict(zip(("part", "task"), each, strict=True)) for each in found]


def make_problem(part, task, seed):
    """One draw: instances in bags and new ones, their labels, and the bags."""
    if part != "benchmark":
        return choosing.make_problem(part, task, seed)
    name, kind, size = task.split(", ")
    size = size if size == benchmark.NATURAL else int(size)
    return benchmark.make_problem(name, kind, size, seed)


def probabilities(scores):
    """Of the classes, shape (n, n_classes, n_draws), from scores of shape (n, n_columns, n_draws)."""
    if scores.shape[1] == 1:
        s = expit(scores)
        return np.concatenate([1 - s, s], axis=1)
    return softmax(scores, axis=1)


def expected_accuracy(J, W, Z, rng):
    """Accuracy if the model W is the truth and a penalized fit has the information J, over draws of its weights."""
    penalty = np.full(Z.shape[1], 1 / C)
    penalty[-1] = 1e-6
    penalty = np.tile(penalty, len(W))
    B = np.linalg.inv(J + np.diag(penalty))
    values, vectors = np.linalg.eigh(B @ J @ B.T)
    root = vectors * np.sqrt(np.maximum(values, 0))
    mean = W.ravel() - B @ (penalty * W.ravel())
    drawn = mean[:, None] + root @ rng.normal(size=(len(J), N_DRAWS))
    scores = np.einsum("nd,kds->nks", Z, drawn.reshape(*W.shape, N_DRAWS))
    chosen = probabilities(scores).argmax(axis=1)
    truth = probabilities((Z @ W.T)[:, :, None])[:, :, 0]
    return np.take_along_axis(truth, chosen, axis=1).mean()


def predictions(model, X, X_new, bags, shares):
    """What the worth of the bags says of the losses, with a model in the place of the truth."""
    told = label_worth(X, bags, shares, model)
    each = np.eye(shares.shape[1])[np.arange(len(X)) % shares.shape[1]]
    alone = label_worth(X, np.arange(len(X)), each, model)
    W = np.column_stack(
        [model.coef_, np.broadcast_to(model.intercept_, len(model.coef_))]
    )
    Z, everyone = append_one(X), append_one(np.vstack([X, X_new]))
    scores = one_column(Z @ W.T)
    J = count_information(Z, scores, bag_counts(bags, shares))
    H = label_information(Z, scores)
    one, other = (
        expected_accuracy(some, W, everyone, np.random.default_rng(0))
        for some in (H, J)
    )
    slopes = np.maximum(told.spectrum[len(W) :], 1e-9)
    return {
        "median": np.median(slopes),
        "harmonic": len(slopes) / np.sum(1 / slopes),
        "valid": float(told.valid),
        "excess": 100 * min(told.excess_error - alone.excess_error, 1.0),
        "penalized": 100 * (one - other),
    }


def run(cell, seed):
    """One row: a task and a draw."""
    X, X_new, y, y_new, bags = make_problem(cell["part"], cell["task"], seed)
    classes = np.unique(y)
    shares = label_proportions(y, bags, classes=classes)
    with warnings.catch_warnings(action="ignore"):
        try:
            fit = CountLogistic(C=C).fit(X, bags, shares)
        except NotIdentifiableError:
            fit = None
        labels = LogisticRegression(C=C, max_iter=1000).fit(X, y)
        truth = LogisticRegression(C=1.0, max_iter=1000).fit(
            np.vstack([X, X_new]), np.append(y, y_new)
        )
        majority = MajorityClass().fit(X, bags, shares)
        codes = np.searchsorted(classes, y_new)
        right = {"labels": np.mean(labels.predict(X_new) == y_new)}
        right["majority"] = np.mean(majority.predict(X_new) == codes)
        right["fit"] = (
            right["majority"] if fit is None else np.mean(fit.predict(X_new) == codes)
        )
        # The classes of the truth are those of the shares: 0, 1, …
        truth.classes_ = np.arange(len(classes))
        found = {}
        for name, model in (("labels", truth), ("fit", fit)):
            told = dict.fromkeys(
                ("median", "harmonic", "valid", "excess", "penalized"), np.nan
            )
            if model is not None:
                told = predictions(model, X, X_new, bags, shares)
            found |= {f"{key}, {name}": value for key, value in told.items()}
    row = {
        "gap": 100 * (right["labels"] - right["fit"]),
        "lead": 100 * (right["fit"] - right["majority"]),
        "worth": identifiability(bags, shares).worth_in_labels.min(),
        "n": len(X), "d": X.shape[1], "bags": len(shares), "classes": len(classes),
        **found,
    }  # fmt: skip
    return {key: round(float(value), 6) for key, value in row.items()}


TABLES = [
    Table(
        "label_worth",
        PROTOCOL,
        all_cells(),
        run,
        "what the worth of bags in labels predicts of the accuracy of the likelihood of the counts",
        value="gap",
    )
]
