"""Bags that do not fit a model, and the influence of each bag on it."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit, softmax
from scipy.stats import norm

from .._input import ArrayLike, Matrix, Proportions
from .._printed import Printed
from ._accuracy import class_probabilities, read_shares
from ._cautions import SURE_RATIO
from ._deviation import NormalCounts
from ._groups import class_of, of_second_class, one_group
from ._sandwich import bag_gradients, bag_hessians, influences, read_fit, split_model
from ._table import check_level, fit_covariance
from ._units import in_units

#: Deviations of a normal variable, in units of its median absolute one.
MEDIAN = norm.isf(0.25)
#: The total is off beyond so many standard errors: 3.5 deviations where the model saw as many bags as these.
OFF = 5.0
#: Bags that a plot names.
NAMED = 12


@dataclass(frozen=True)
class BagReport(Printed):
    """Observed and expected shares per bag, from `bag_report`; `print` shows the worst.

    Attributes
    ----------
    table : DataFrame
        A row per bag with instances, worst first; with more than two classes, per bag and class. Columns ``n``,
        ``observed`` and ``expected`` (shares), ``error`` (the standard error of their difference), ``z``, and
        ``stands_out``.
    spread : float
        How many standard errors the differences typically have, 1 for a model that fits. Bags stand out against this.
    spread_limit : float
        Chance leaves the spread of a model that fits below this: 1 + 2.3 / sqrt(bags).
    limit : float
        The z beyond which a bag stands out.
    deviation : float
        How far the shares deviate beyond the chance of their counts, a standard deviation in log-odds; with several
        classes the largest. The spread grows with the instances of a bag, the deviation does not. 0 where chance could
        have made it: in 0 to 3 of 100 fits to bags that do not differ it is above 0, in 15 with two bags per
        coefficient and a weak penalty.

    Examples
    --------
    >>> from llpbook import CountLogistic, bag_report, load_bags
    >>> X, bags, proportions = load_bags("heart", bag_size=8, random_state=0)
    >>> model = CountLogistic().fit(X, bags, proportions)
    >>> report = bag_report(model, X, bags, proportions)
    >>> report.table.shape, bool(report.spread < report.spread_limit)
    ((34, 6), True)
    """

    table: pd.DataFrame
    spread: float
    limit: float
    spread_limit: float = np.inf
    deviation: float = np.nan

    @property
    def shift(self):
        """Observed minus expected count over all bags, in standard errors of the counts: a Series by class."""
        t = self.table
        parts = pd.DataFrame(
            {
                "off": t["n"] * (t["observed"] - t["expected"]),
                "square": (t["n"] * t["error"]) ** 2,
            }
        )
        if t.index.names[-1] == "class":
            parts = parts.groupby(level="class", sort=False).sum()
        else:
            parts = parts.sum().to_frame(class_of(t).removeprefix("class ")).T
        return parts["off"] / np.sqrt(np.maximum(parts["square"], 1e-300))

    def __str__(self):
        out = int(self.table["stands_out"].sum())
        shown = self.table.head(max(5, min(out, NAMED))).round(3)
        beyond = "no more than chance gives"
        if self.deviation:
            beyond = f"by {self.deviation:.2g} in log-odds beyond the chance of counts"
        shift = _said_of(self.shift)
        apart = "Apart from the shift, the" if shift else "The"
        return (
            f"{shift}{out} of {len(self.table)} stand out: |z| > {self.limit:.1f}; typical differences are "
            f"{self.spread:.2f} standard errors (by chance up to {self.spread_limit:.2f}).\n"
            f"{apart} shares{class_of(self.table, ' of ')} deviate {beyond}.\n"
            f"{shown.to_string()}"
        )

    def plot(self, ax=None):
        """Plot observed minus expected shares, in standard errors, against expected ones; names bags that stand out.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            A new figure if not given.

        Returns
        -------
        matplotlib Axes
        """
        from ..plotting import literal, pyplot

        if ax is None:
            _, ax = pyplot().subplots(figsize=(6, 3.6), layout="constrained")
        stands_out = self.table["stands_out"]
        near, out = self.table[~stands_out], self.table[stands_out]
        ax.plot(near["expected"], near["z"], "o", markersize=3)
        ax.plot(out["expected"], out["z"], "s")
        for name, row in out.head(NAMED).iterrows():
            text, place = literal(name), (row["expected"], row["z"])
            ax.annotate(text, place, (5, 0), textcoords="offset points", va="center")
        for end in (-self.limit, 0, self.limit):
            ax.axhline(end, color="gray", linewidth=0.8, linestyle=":" if end else "-")
        up = "observed minus expected,\nstandard errors"
        share = literal(f"expected share{class_of(self.table, ' of ')}")
        ax.set(xlabel=share, ylabel=up)
        return ax


def _said_of(shift):
    """A sentence where the total of a class is off beyond chance, else nothing."""
    worst = shift.abs().idxmax()
    if not abs(shift[worst]) > OFF:
        return ""
    word = "more" if shift[worst] > 0 else "fewer"
    return (
        f"All bags together have {word} of class {worst} than the model expects, by {abs(shift[worst]):.1f} "
        "standard errors: the model does not fit these bags. Refit it, or look for what changed.\n"
    )


def miss(P, data, covariances=None):
    r"""Observed and expected shares of each bag, and the standard error of their difference.

    :math:`z_k = (p_k - \bar s_k) / \mathrm{se}_k`,
    :math:`\mathrm{se}_k^2 = \frac{1}{n_k^2} \sum_{i \in B_k} s_i (1 - s_i)`, equation :eq:`eq-uncertainty-z`.

    Parameters
    ----------
    P : ndarray, shape (n_instances, n_classes)
        Probabilities.
    data : BagData
    covariances : ndarray, shape (n_bags, n_classes, n_classes), optional
        Of stated errors of the shares.

    Returns
    -------
    expected, errors, z : ndarray, shape (n_bags, n_classes)
    """
    expected = data.bag_means(P)
    variances = data.bag_means(P * (1 - P)) / np.maximum(data.bag_sizes, 1)[:, None]
    if covariances is not None:
        variances = variances + np.diagonal(covariances, 0, 1, 2)
    errors = np.sqrt(variances)
    # eq: eq-uncertainty-z
    z = (data.proportions - expected) / np.maximum(errors, 1e-300)
    return expected, errors, z


def bag_report(
    model: Any, X: Matrix, bags: ArrayLike, proportions: Proportions, *,
    counts: ArrayLike | None = None, proportion_errors: ArrayLike | None = None,
    level: float = 0.05,
) -> BagReport:  # fmt: skip
    """Compare the share of each bag with the share that a model expects, worst first.

    Parameters
    ----------
    model : estimator or Pipeline
        Fitted, with ``predict_proba``.
    X : array-like, shape (n_instances, n_features)
    bags : array-like, shape (n_instances,)
    proportions : array-like, Series, dict or DataFrame
        See `llpbook.proportions.check_proportions`.
    counts : array-like of int, shape (n_instances,), optional
        How many equal instances each row stands for; one if not given.
    proportion_errors : array-like, Series or dict, optional
        Standard errors of the shares, or their covariance matrices, as of `CountLogistic`. A share rounded to a
        percent has 0.003. With them shares may lie outside of [0, 1]. Those of the model if not given.
    level : float, default 0.05
        The probability that any bag stands out from a model that fits.

    Returns
    -------
    BagReport

    Raises
    ------
    ValueError
        If the model has no probabilities, or the input is malformed.

    Examples
    --------
    >>> import pandas as pd
    >>> from llpbook import CountLogistic, bag_report
    >>> X = pd.DataFrame({"old": [0, 1, 0, 1, 0, 1, 0, 1] * 25})
    >>> bags = X.index // 20
    >>> shares = pd.Series([0.5, 0.45, 0.5, 0.55, 0.5, 0.5, 0.45, 0.5, 0.55, 0.95])
    >>> report = bag_report(CountLogistic().fit(X, bags, shares), X, bags, shares)
    >>> int(report.table.index[0])  # the bag that fits worst
    9
    """
    check_level(level)
    data = read_shares(model, X, bags, proportions, proportion_errors, counts)
    P = class_probabilities(model, X, data)
    table = _report_table(data, miss(P, data, data.covariances))
    spread = float(np.median(np.abs(table["z"])) / MEDIAN)
    limit = max(spread, 1.0) * norm.isf(level / 2 / len(table))
    table["stands_out"] = table["z"].abs() > limit
    order = np.argsort(-table["z"].abs().to_numpy(), kind="stable")
    by_chance = 1 + 2.3 / np.sqrt((data.bag_sizes > 0).sum())
    return BagReport(
        table=table.iloc[order],
        spread=spread,
        limit=float(limit),
        spread_limit=float(by_chance),
        deviation=max(beyond_chance(P, data)),
    )


def beyond_chance(P, data):
    """Yield per class how far the shares deviate beyond the chance of the counts, in log-odds; see `NormalCounts`."""
    used, n = data.bag_sizes > 0, data.bag_sizes
    V, off = data.bag_means(P * (1 - P)), data.proportions - data.bag_means(P)
    V = n[:, None] * V
    errors = np.zeros_like(V)
    if data.covariances is not None:
        errors = n[:, None] ** 2 * np.diagonal(data.covariances, 0, 1, 2)
    columns = zip(V[used].T, errors[used].T, (n[:, None] * off)[used].T, strict=True)
    for v, e, y in columns:
        near = NormalCounts(np.maximum(v, 1e-9), e, y, v[:, None], np.zeros(1))
        ratio, deviation = near.flat().ratio()
        yield deviation if ratio > SURE_RATIO else 0.0


def _bag_names(data, rows):
    """Names of the bags in given rows of the proportions."""
    names = data.bag_labels
    names = np.arange(len(data.proportions)) if names is None else names
    return pd.Index(names[rows], name="bag", tupleize_cols=False)


def _report_table(data, missed):
    """The table of a `BagReport`: a row per bag, or per bag and class."""
    used, K = data.bag_sizes > 0, len(data.classes)
    parts, names = [data.proportions, *missed], _bag_names(data, used)
    columns = ("observed", "expected", "error", "z")
    kept = data.classes if K > 2 else data.classes[1:]
    values = [part[used][:, -len(kept) :].ravel() for part in parts]
    if K > 2:
        pairs = [names, data.classes]
        names = pd.MultiIndex.from_product(pairs, names=["bag", "class"])
    n = np.repeat(data.bag_sizes[used], len(kept))
    table = pd.DataFrame({"n": n, **dict(zip(columns, values, strict=True))}, names)
    return table if K > 2 else of_second_class(table, data.classes)


def bag_influence(
    model: Any, X: Matrix, bags: ArrayLike, proportions: Proportions, *,
    labels: ArrayLike | None = None, counts: ArrayLike | None = None,
    group: ArrayLike | None = None,
) -> pd.DataFrame:  # fmt: skip
    """Approximate change of the coefficients, or of a group's rate, if one bag were left out, for each bag.

    Parameters
    ----------
    model : CountLogistic or Pipeline
        Fitted to these bags.
    X : array-like, shape (n_instances, n_features)
    bags : array-like, shape (n_instances,)
    proportions : array-like, Series, dict or DataFrame
        See `llpbook.proportions.check_proportions`.
    labels : array-like, shape (n_instances,), optional
        The known labels that the model was fitted with.
    counts : array-like of int, shape (n_instances,), optional
        How many equal instances each row stands for, as in a table of cells; one if not given.
    group : array-like of bool, shape (n_instances,), optional
        If given, the changes are those of the mean predicted probabilities of these instances, not of coefficients.

    Returns
    -------
    DataFrame
        A row per bag, keyed as ``proportions``; a column per coefficient, or with a group per class. One Newton step
        without the bag, so an approximation.

    Raises
    ------
    NotIdentifiableError, ValueError
        As of `coefficient_table`.

    Examples
    --------
    >>> from llpbook import CountLogistic, load_bags
    >>> from llpbook.uncertainty import bag_influence
    >>> X, bags, proportions = load_bags("heart", bag_size=8, random_state=0)
    >>> X = (X - X.mean()) / X.std()
    >>> model = CountLogistic().fit(X, bags, proportions)
    >>> bag_influence(model, X, bags, proportions).shape  # bags, coefficients
    (34, 14)
    """
    fit, data = read_fit(model, X, bags, proportions, labels, counts)
    J = fit_covariance(fit)[2]
    G, H = bag_gradients(fit), bag_hessians(fit)
    changes = -influences(G, H, J, left=1.0)
    keep = fit.used >= 0
    index = _bag_names(data, fit.used[keep])
    if group is not None:
        rows = np.flatnonzero(one_group(group, data, X)[fit.rows])
        moved = _moved_rates(fit, changes[keep], rows)
        return pd.DataFrame(moved, index, data.classes[-moved.shape[1] :])
    before, last = split_model(model)
    A, columns = in_units(before, last, X)
    return pd.DataFrame(changes[keep] @ A.T, index, columns)


def _moved_rates(fit, changes, rows):
    """The change of the mean probabilities of some instances; with two classes, of the second class."""
    Z, K, often = fit.Z[rows], len(fit.weights), fit.observed.frequencies
    often = np.ones(len(rows)) if often is None else often[rows]
    often = often / often.sum()
    scores = Z @ fit.weights.T
    if K == 1:
        s = expit(scores[:, 0])
        return (changes @ ((often * s * (1 - s)) @ Z))[:, None]
    P = softmax(scores, axis=1)
    by_score = (Z @ changes.reshape(-1, Z.shape[1]).T).reshape(len(P), -1, K)
    by_score = by_score.transpose(1, 0, 2)
    change = P * (by_score - np.sum(P * by_score, axis=2, keepdims=True))
    return np.average(change, axis=1, weights=often)
