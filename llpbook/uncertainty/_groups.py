"""Rates of classes in groups of instances: bounds that need no assumption, rates of a model, and pictures per bag."""

from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.stats import t as student

from .._input import ArrayLike, Matrix, Proportions, check_column, refuse_cells
from .._linear import WEAK, without_hold
from ..base import one_column, read_bags, warn
from ..count_likelihood import posterior
from ._accuracy import (
    both_or_neither,
    class_probabilities,
    expected_labels,
    no_features,
    read_shares,
    slack_of_counts,
)
from ._cautions import UNSEEN, caution_of_rates
from ._sandwich import STEP, read_fit
from ._table import caution_of, check_level, covariance_of

#: The part of its standard error by which a penalty may hold a rate of a group.
HELD = 0.1


def read_groups(group, n_instances, original=None):
    """Groups as numbers.

    Parameters
    ----------
    group : array-like, shape (n_instances,)
        A mask, of which only True is a group; or a name for each instance.
    n_instances : int
    original : object, optional
        X as the user gave it, see `check_column`.

    Returns
    -------
    members : ndarray of bool, shape (n_groups, n_instances)
    names : ndarray, shape (n_groups,)

    Raises
    ------
    ValueError
        If the length differs from the number of instances, a value is missing, or a mask is empty.
    """
    values = check_column("group", group, n_instances, original)
    if values.dtype.kind == "f" and (values == np.round(values)).all():
        values = values.astype(int)  # a column of 0.0 and 1.0 names the groups 0 and 1
    codes, names = pd.factorize(values, sort=True)
    names = np.asarray(names)
    if values.dtype == bool:
        if not values.any():
            raise ValueError("group must hold True for at least one instance")
        return values[None], np.array([True])
    return codes == np.arange(len(names))[:, None], names


def members_of(group, data, original=None):
    """`read_groups` for the rows that stand for an instance.

    Parameters
    ----------
    group : array-like, shape (n_instances,)
    data : BagData
        The bags of these instances.
    original : object, optional
        X, or the bags, as given; see `llpbook.base.check_column`.

    Returns
    -------
    members : ndarray of bool, shape (n_groups, n_rows)
    names : ndarray, shape (n_groups,)
    """
    if data.kept is None:
        return read_groups(group, len(data.bags), original)
    members, names = read_groups(group, len(data.kept), original)
    members = members[:, data.kept]
    occurs = members.any(axis=1)
    return members[occurs], names[occurs]


def one_group(group, data, original=None):
    """The mask of a single group; ValueError where there are more.

    Parameters
    ----------
    group, data, given
        See `members_of`.

    Returns
    -------
    ndarray of bool, shape (n_rows,)
    """
    members, names = members_of(group, data, original)
    if len(names) == 1:
        return members[0]
    hint = ": use group == 1" if set(names.tolist()) == {0, 1} else ""
    raise ValueError(
        f"group must be a mask of True and False, got the groups {names.tolist()[:5]}{hint}"
    )


def refuse_groups_in_cells(members, data):
    """`refuse_cells` by the groups of the rows, where no counts were given."""
    if data.frequencies is None:
        refuse_cells(members.T.astype(float), data.bags, data.proportions)


def in_bags(members, bags, n_bags, frequencies=None):
    """Number of instances of each group in each bag, shape (n_groups, n_bags)."""
    times = np.ones(len(bags)) if frequencies is None else frequencies
    return np.array([np.bincount(bags[m], times[m], n_bags) for m in members], int)


def count_bounds(sizes, counts, inside):
    r"""The least and the largest count of a class in a part of each bag.

    :math:`\max(0, c_k - (n_k - n_{kG})) \le c_{kG} \le \min(n_{kG}, c_k)`, equation :eq:`eq-uncertainty-bounds`.

    Parameters
    ----------
    sizes, counts : ndarray, shape (n_bags,)
        Of the bags, and of the class in them.
    inside : ndarray, shape (..., n_bags)
        Instances of the part.

    Returns
    -------
    low, high : ndarray, shape (..., n_bags)
    """
    # eq: eq-uncertainty-bounds
    return np.maximum(0, counts - (sizes - inside)), np.minimum(inside, counts)


def group_table(columns, names, classes):
    """Arrays of shape (n_groups, n_classes) as columns; of two classes the second only."""
    if len(classes) == 2:
        index = pd.Index(names, name="group")
        table = pd.DataFrame({k: v[:, 1] for k, v in columns.items()}, index)
        return of_second_class(table, classes)
    index = pd.MultiIndex.from_product([names, classes], names=["group", "class"])
    return pd.DataFrame({k: v.ravel() for k, v in columns.items()}, index)


def of_second_class(table, classes):
    """The table with the second of two classes, which it is about, over its columns, so that a print names it."""
    name = classes[1]
    table.attrs["class"] = name.item() if isinstance(name, np.generic) else name
    return table.rename_axis(columns=f"class {name}")


def class_of(table, before=""):
    """The class that a table of `of_second_class` is about, behind a word; empty where it names none."""
    if "class" in table.attrs:
        return f"{before}class {table.attrs['class']}"
    name = str(table.columns.name)  # stays where a computation drops `attrs`
    return f"{before}{name}" if name.startswith("class ") else ""


def loose_bounds(sizes, counts, inside, slack):
    """`count_bounds` where each count may be wrong by ``slack``."""
    low = count_bounds(sizes, counts - slack, inside)[0]
    return low, count_bounds(sizes, counts + slack, inside)[1]


def _bounds(members, data, rounding):
    """Least and largest rates, of shape (n_groups, n_classes)."""
    inside = in_bags(members, data.bags, len(data.bag_sizes), data.frequencies)
    slack = slack_of_counts(data, rounding)
    ends = [
        loose_bounds(data.bag_sizes, data.bag_sizes * share, inside, slack)
        for share in data.proportions.T
    ]
    n = inside.sum(axis=1, keepdims=True)
    return [np.sum(end, axis=2).T / n for end in zip(*ends, strict=True)]


def group_rate_bounds(
    bags: ArrayLike, proportions: Proportions, group: ArrayLike, *,
    counts: ArrayLike | None = None, rounding: float = 0.0,
) -> pd.DataFrame:  # fmt: skip
    """Bounds of the rates of classes in groups, over all labels that fit the shares (Duncan and Davis 1953).

    Parameters
    ----------
    bags : array-like, shape (n_instances,)
    proportions : array-like, Series, dict or DataFrame
        See `llpbook.proportions.check_proportions`.
    group : array-like, shape (n_instances,)
        A mask, of which True is the group; or a name for each instance, for a row per name.
    counts : array-like of int, shape (n_instances,), optional
        How many equal instances each row stands for, as in a table of cells; one if not given.
    rounding : float, default 0.0
        How far each share may be from the true one, for the bounds: 0.005 for shares in percent.

    Returns
    -------
    DataFrame
        Columns ``low``, ``high`` and ``n``, the instances in the group. A row per group: the rate of the second class;
        with more classes, a row per group and class.

    Raises
    ------
    ValueError
        For malformed input.

    Notes
    -----
    The limits of each single rate are sharp for exact shares: some labels with the given shares attain them.

    Examples
    --------
    >>> from llpbook import group_rate_bounds
    >>> group_rate_bounds([0, 0, 0, 0], [0.75], ["old", "old", "old", "young"])["low"].round(2).to_dict()
    {'old': 0.67, 'young': 0.0}
    """
    data = read_bags(no_features(bags), bags, proportions, original=bags, counts=counts)
    members, names = members_of(group, data, bags)
    refuse_groups_in_cells(members, data)
    low, high = _bounds(members, data, rounding)
    times = np.ones(len(data.bags)) if counts is None else data.frequencies
    n_in = np.broadcast_to((members @ times).astype(int)[:, None], low.shape)
    return group_table({"low": low, "high": high, "n": n_in}, names, data.classes)


def posterior_rates(scores, observed, members, exact_up_to=20):
    r"""Expected rate of each class in each group, given the counts of the bags.

    :math:`\hat R_G = \frac{1}{n_G} \sum_{i \in G} q_i`, equation :eq:`eq-uncertainty-rate`.

    Parameters
    ----------
    scores : ndarray, shape (n_instances,) or (n_instances, n_classes)
    observed : BagCounts
    members : ndarray of bool, shape (n_groups, n_instances)
    exact_up_to : int, default 20

    Returns
    -------
    ndarray, shape (n_groups, 1) or (n_groups, n_classes)
        With two classes, the rate of the second class.
    """
    q = posterior(scores, observed, exact_up_to)[1]
    q = np.clip(q, 0, 1) if q.ndim == 1 else q
    members = observed.of_rows(members.T).T
    # eq: eq-uncertainty-rate
    return members @ q.reshape(len(q), -1) / members.sum(axis=1, keepdims=True)


def apart(members, observed):
    """Split the groups into parts, so that no two groups of a part share a bag.

    Parameters
    ----------
    members : ndarray of bool, shape (n_groups, n_rows)
    observed : BagCounts

    Returns
    -------
    list of list of int
    """
    parts = []
    for g, held in enumerate(in_bags(members, observed.bags, len(observed.sizes)) > 0):
        part = next((p for p in parts if not (p[0] & held).any()), None)
        if part is None:
            parts.append([held, [g]])
        else:
            part[0] |= held
            part[1].append(g)
    return [groups for _, groups in parts]


def group_covariances(scores, observed, members, exact_up_to=20):
    r"""Covariance of each label with the count of a class in a group, given the counts of the bags.

    :math:`\sum_{j \in G} \mathrm{Cov}(y_i, y_j \mid c)`, equation :eq:`eq-uncertainty-rate-variance`: the derivative of
    :math:`q_i` when the scores of the whole group rise together. Groups that share no bag rise at once.

    Parameters
    ----------
    scores, observed, members, exact_up_to
        As for `posterior_rates`.

    Yields
    ------
    groups : list of int
    k : int
        The class, 0 for the second of two.
    covariances : ndarray, shape (n_rows, n_columns)
        Each bag has at most one of the groups.
    """
    columns = scores.reshape(len(scores), -1)

    def expected(scores):
        q = posterior(one_column(scores), observed, exact_up_to)[1]
        return q.reshape(columns.shape)

    for groups in apart(members, observed):
        rows = members[groups].any(axis=0)
        for k in range(columns.shape[1]):
            shift = np.zeros_like(columns)
            shift[rows, k] = STEP
            change = expected(columns + shift) - expected(columns - shift)
            # eq: eq-uncertainty-rate-variance
            yield groups, k, change / (2 * STEP)


def group_rate(
    model: Any, X: Matrix, bags: ArrayLike, proportions: Proportions, group: ArrayLike, *,
    labels: ArrayLike | None = None, counts: ArrayLike | None = None,
    level: float = 0.95, rounding: float = 0.0,
) -> pd.DataFrame:  # fmt: skip
    """Rates of classes in groups of the instances in bags, by a model and by the counts, with intervals.

    Parameters
    ----------
    model : CountLogistic or Pipeline
        Fitted to these bags. For other methods see `bag_bootstrap`.
    X : array-like, shape (n_instances, n_features)
    bags : array-like, shape (n_instances,)
    proportions : array-like, Series, dict or DataFrame
        See `llpbook.proportions.check_proportions`.
    group : array-like, shape (n_instances,)
        A mask, of which True is the group; or a name for each instance, for a row per name. It may depend on the
        features of the model, and on nothing else that tells of the class.
    labels : array-like, shape (n_instances,), optional
        Those that the model was fitted with.
    counts : array-like of int, shape (n_instances,), optional
        How many equal instances each row stands for, as in a table of cells; one if not given.
    level : float, default 0.95
    rounding : float, default 0.0
        How far each share may be from the true one, for the bounds: 0.005 for shares in percent.

    Returns
    -------
    DataFrame
        Columns ``rate``, ``error``, ``low``, ``high`` (the interval, cut at the bounds; the bounds themselves with
        under three bags per coefficient), ``least``, ``most`` (the bounds of `group_rate_bounds`; 0 and 1 where shares
        have errors) and ``n``. A row per group: the rate of the second class; with more classes, a row per group and
        class.

    Raises
    ------
    NotIdentifiableError, ValueError
        As of `coefficient_table`.

    Notes
    -----
    The rate describes the instances in the bags, not a population from which they were drawn. Its variance is the
    variance of the labels given their counts, plus the variance due to the weights. An `LLPWarning` says where the
    bags deviate from the model, where they are few (see `coefficient_table`), where a penalty a hundred times as weak
    would move a rate by more than its error, and where an interval ends at 0 or 1.
    What needs no assumption stands beside the rate: ``least`` and ``most``.

    Examples
    --------
    >>> import numpy as np
    >>> from llpbook import CountLogistic, group_rate
    >>> rng = np.random.default_rng(0)
    >>> old, bags = (rng.random(2000) < 0.5).astype(int), np.arange(2000) // 20
    >>> ill = rng.random(2000) < 0.2 + 0.4 * old  # 20 % of the young, 60 % of the old
    >>> shares = np.bincount(bags, ill) / 20
    >>> model = CountLogistic(C=1000).fit(old[:, None], bags, shares)
    >>> group_rate(model, old[:, None], bags, shares, old)["rate"].round(1).tolist()
    [0.2, 0.6]
    """
    check_level(level)
    fit, data = read_fit(model, X, bags, proportions, labels, counts)
    members, names = members_of(group, data, X)
    members = members[:, fit.rows]
    V, free = covariance_of(fit), released(fit, members, names)
    fit, V = (fit, V) if free is fit else (free, covariance_of(free))
    caution_of(fit)
    sums = group_sums(
        fit, members, None if fit.observed.errors.any() else data, rounding
    )
    table = rate_table(sums, V, names, data.classes, level)
    return caution_of_rates(table, V, len(fit.used), fit.weights.size)


def released(fit, members, names):
    """The fit without a penalty that holds a rate, and a warning, where nothing but the groups asked for is modeled.

    Parameters
    ----------
    fit : Problem
        Of a model at its maximum.
    members : ndarray of bool, shape (n_groups, n_rows)
    names : ndarray, shape (n_groups,)

    Returns
    -------
    Problem
        The same object where no rate moves by more than a tenth of its standard error, and where a group has rows
        with other features.
    """
    free, _ = without_hold(fit)
    constant = (np.ptp(rows, axis=0).max() == 0 for rows in rows_of(fit.Z, members))
    if free is None or not all(constant):
        return fit
    try:
        V = covariance_of(free)
    except ValueError:
        return fit  # no interval without the penalty: a caution of it follows
    classes = range(max(2, len(fit.weights)))
    table = rate_table(group_sums(free, members, None, 0.0), V, names, classes, 0.95)
    values, errors = table["rate"].to_numpy(), table["error"].to_numpy()
    before = rates_and_slopes(fit, members)[0].ravel()
    moved = np.abs(values - before)
    held = moved > np.maximum(HELD * errors, UNSEEN)
    if not held.any():
        return fit
    at = int(np.argmax(moved * held))
    group = table.index[at][0] if len(fit.weights) > 1 else table.index[at]
    warn(
        f"the penalty C={1 / fit.penalty.max():g} holds {held.sum()} of {len(held)} rates of groups, such as that of "
        f"{group}: {before[at]:.3f}, and {values[at]:.3f} with C={WEAK:g}, {moved[at] / errors[at]:.1f} standard "
        f"errors away. The rates are those of C={WEAK:g}; fit with C={WEAK:g} to have them of the model, too"
    )
    return free


def rows_of(Z, members):
    """The features of the members of each group, dense."""
    for m in members:
        yield Z[m].toarray() if sp.issparse(Z) else Z[m]


def group_sums(fit, members, data, rounding):
    """Sums over each group: number, expected count, its slopes, its variance, and bounds if ``data`` is given.

    Parameters
    ----------
    fit : Problem
    members : ndarray of bool, shape (n_groups, n_instances)
    data : BagData or None
        None where the shares do not bound the rates.
    rounding : float

    Returns
    -------
    list of ndarray
        The first axis of each is that of the groups.
    """
    n = fit.observed.of_rows(members.T).sum(axis=0)[:, None]
    rates, slopes, variances = rates_and_slopes(fit, members)
    sums = [n[:, 0], n * rates, n[:, :, None] * slopes, n**2 * variances]
    bounds = [] if data is None else _bounds(members, data, rounding)
    return sums + [n * end for end in bounds]


def rate_table(sums, V, names, classes, level):
    """The DataFrame that `group_rate` returns.

    Parameters
    ----------
    sums : list of ndarray
        From `group_sums`.
    V : Sandwich or LaplaceCovariance
        Of the weights.
    names : ndarray, shape (n_groups,)
    classes : ndarray, shape (n_classes,)
    level : float

    Returns
    -------
    DataFrame
    """
    n = sums[0][:, None]
    rates, slopes = sums[1] / n, sums[2] / n[:, :, None]
    # The variance of the labels given the weights, and that due to the weights.
    flat = slopes.reshape(-1, slopes.shape[2])
    of_weights = V.quadratic(flat).reshape(rates.shape)
    errors = np.sqrt(sums[3] / n**2 + of_weights)
    weaker = rates + np.sum(slopes * V.step, axis=2)
    if rates.shape[1] == 1:
        rates, errors = np.hstack([1 - rates, rates]), np.hstack([errors, errors])
        weaker = np.hstack([1 - weaker, weaker])
    ends = [end / n for end in sums[4:]]
    least, most = ends or (np.zeros_like(rates), np.ones_like(rates))
    half = student.isf((1 - level) / 2, V.df) * errors
    inside = {"rate": rates, "low": rates - half, "high": rates + half}
    inside["weaker"] = weaker
    columns = {name: np.clip(value, least, most) for name, value in inside.items()}
    n_in = np.broadcast_to(n.astype(int), rates.shape)
    columns |= {"error": errors, "least": least, "most": most, "n": n_in}
    order = ["rate", "error", "low", "high", "least", "most", "n", "weaker"]
    return group_table(columns, names, classes)[order]


def rates_and_slopes(fit, members):
    r"""Rates of the groups, their derivatives by the weights, and their variances given the weights.

    The derivative of :math:`n_G \hat R_G` by the weights is :math:`\sum_i x_i \sum_{j \in G} \mathrm{Cov}(y_i, y_j \mid
    c)`: one shift of the group gives the slopes and the variance.
    """
    observed, Z, K, exact = fit.observed, fit.Z, len(fit.weights), fit.loss.exact_up_to
    scores = one_column(Z @ fit.weights.T)
    held = in_bags(members, observed.bags, len(observed.sizes)) > 0
    n = observed.of_rows(members.T).sum(axis=0)
    slopes, variances = np.zeros((len(n), K, fit.weights.size)), np.zeros((len(n), K))
    for groups, k, moved in group_covariances(scores, observed, members, exact):
        of_bags = np.hstack([observed.weighted_sums(v, Z) for v in moved.T])
        own = observed.of_rows(moved[:, k])
        for g in groups:
            slopes[g, k] = of_bags[held[g]].sum(axis=0) / n[g]
            variances[g, k] = max(own[members[g]].sum(), 0) / n[g] ** 2
    return posterior_rates(scores, observed, members, exact), slopes, variances


def tomography(
    bags: ArrayLike, proportions: Proportions, group: ArrayLike, *, model: Any = None,
    X: Matrix | None = None, counts: ArrayLike | None = None, rounding: float = 0.0,
) -> pd.DataFrame:  # fmt: skip
    """Bounds and expected rates of the positive class in a group and outside of it, per bag.

    Parameters
    ----------
    bags : array-like, shape (n_instances,)
    proportions : array-like, Series, dict or DataFrame
        Of two classes.
    group : array-like of bool, shape (n_instances,)
    model : estimator or Pipeline, optional
        With ``predict_proba``; then the expected rates given the counts are among the columns.
    X : array-like, shape (n_instances, n_features), optional
        For a model, which needs it.
    counts : array-like of int, shape (n_instances,), optional
        How many equal instances each row stands for; one if not given.
    rounding : float, default 0.0
        How far each share may be from the true one, for the bounds: 0.005 for shares in percent.

    Returns
    -------
    DataFrame
        A row per bag with instances, keyed as ``proportions``: ``share`` (of the class), ``inside`` (share of the
        group); ``low``, ``high`` (bounds of the rate in the group), ``rest_low``, ``rest_high`` (in the rest); with a
        model ``rate`` and ``rest_rate``. NaN where there is nobody. Where the model states errors of the shares, the
        bounds are 0 and 1.

    Raises
    ------
    ValueError
        If the group is no mask, there are more than two classes, only one of model and X is given, or the input is
        malformed.

    Examples
    --------
    >>> from llpbook.uncertainty import tomography
    >>> tomography([0, 0, 0, 0], [0.75], [True, True, True, False])[["low", "high", "rest_low"]].round(2)
    class 1   low  high  rest_low
    0        0.67   1.0       0.0
    """
    both_or_neither(model=model, X=X)
    data = read_shares(model, X, bags, proportions, counts=counts)
    times = np.ones(len(data.bags)) if counts is None else data.frequencies
    inside_group = one_group(group, data, bags)
    refuse_groups_in_cells(inside_group[None], data)
    if len(data.classes) != 2:
        raise ValueError(
            f"proportions must be of two classes, got {data.classes.tolist()}"
        )
    P = None if model is None else class_probabilities(model, X, data)
    labels = None if P is None else times * expected_labels(P, model, data)[:, 1]
    sizes, p = data.bag_sizes, data.proportions[:, 1]
    inside = np.bincount(data.bags, times * inside_group, len(sizes))
    columns = {"share": p, "inside": inside / np.maximum(sizes, 1)}
    slack = sizes if data.covariances is not None else slack_of_counts(data, rounding)
    for name, members in {"": inside_group, "rest_": ~inside_group}.items():
        size = np.bincount(data.bags, times * members, len(sizes))
        ends = loose_bounds(sizes, sizes * p, size, slack)
        if labels is not None:
            expected = np.bincount(data.bags[members], labels[members], len(sizes))
            ends += (np.clip(expected, ends[0], ends[1]),)
        with np.errstate(invalid="ignore"):  # NaN where a bag has no members
            for end, value in zip(("low", "high", "rate"), ends, strict=False):
                columns[name + end] = value / size
    index = range(len(sizes)) if data.bag_labels is None else data.bag_labels
    return of_second_class(pd.DataFrame(columns, index)[sizes > 0], data.classes)


def plot_tomography(table: pd.DataFrame, *, ax: Any = None) -> Any:
    """Draw the line of each bag on which its two rates lie, and the rates that a model expects.

    Parameters
    ----------
    table : DataFrame
        From `tomography`; with a model's rates these are marked.
    ax : matplotlib Axes, optional
        A new figure if not given.

    Returns
    -------
    matplotlib Axes
        The rate in the group on the horizontal axis, the rate in the rest on the vertical axis. A bag has no line if
        none or all of its instances are in the group.

    Examples
    --------
    >>> from llpbook.uncertainty import plot_tomography, tomography
    >>> ax = plot_tomography(tomography([0, 0, 0, 0], [0.75], [True, True, True, False]))
    >>> ax.get_xlim() == ax.get_ylim()
    True
    """
    from ..plotting import GRAY, literal, pyplot

    if ax is None:
        _, ax = pyplot().subplots(figsize=(4.2, 4.0), layout="constrained")
    both = table[(table["inside"] > 0) & (table["inside"] < 1)]
    across, up = both[["low", "high"]].T, both[["rest_high", "rest_low"]].T
    ax.plot(across.to_numpy(), up.to_numpy(), color=GRAY, linewidth=0.8)
    if "rate" in both:
        ax.plot(both["rate"], both["rest_rate"], "o", markersize=4)
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
    rate = literal(f"rate{class_of(table, ' of ')}")
    ax.set(xlabel=f"{rate} in the group", ylabel=f"{rate} in the rest")
    return ax
