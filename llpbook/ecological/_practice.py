"""Goodman's regression, the field's usual method, and errors of shares of other people than those asked."""

from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from .._input import ArrayLike, Proportions, check_column
from ..base import NotIdentifiableError, read_bags
from ..uncertainty import (
    group_table,
    in_bags,
    members_of,
    no_features,
    refuse_groups_in_cells,
)


def goodman(
    bags: ArrayLike, proportions: Proportions, group: ArrayLike, *,
    counts: ArrayLike | None = None, weights: str = "size",
) -> pd.DataFrame:  # fmt: skip
    r"""Fit Goodman's regression: shares of a class on shares of the groups, by weighted least squares.

    Parameters
    ----------
    bags : array-like, shape (n_instances,)
    proportions : array-like, Series, dict or DataFrame
        See `llpbook.proportions.check_proportions`.
    group : array-like, shape (n_instances,)
        A name for each instance; or a mask, whose True and False are the groups.
    counts : array-like of int, shape (n_instances,), optional
        How many equal instances each row stands for; one if not given.
    weights : {"size", "uniform"}, default "size"
        Of the bags.

    Returns
    -------
    DataFrame
        Columns ``rate``, ``error`` and ``n``. A row per group: the rate of the second class; with more classes, a row
        per group and class.

    Raises
    ------
    NotIdentifiableError
        If the shares of the groups do not differ enough between bags.
    ValueError
        For malformed input.

    Notes
    -----
    Right if the rate of a group has no relation to the shares of the groups in its bag; rates outside of [0, 1] say
    that it has one. The errors are those of bags as the units, whatever their variances (HC1).

    Examples
    --------
    >>> import numpy as np
    >>> share = np.linspace(0.1, 0.9, 40)
    >>> members = np.round(1000 * share).astype(int)
    >>> bags, group = np.repeat(np.arange(40), 2), np.tile(["a", "b"], 40)
    >>> counts = np.column_stack([1000 - members, members]).ravel()
    >>> goodman(bags, 0.2 + 0.4 * members / 1000, group, counts=counts)["rate"].round(2).to_dict()
    {'a': 0.2, 'b': 0.6}
    """
    if weights not in ("size", "uniform"):
        raise ValueError(f"weights must be 'size' or 'uniform', got {weights!r}")
    Z = no_features(bags)
    data = read_bags(Z, bags, proportions, original=bags, counts=counts)
    groups = check_column("group", group, len(Z), bags)
    mask = groups.dtype == bool
    groups = groups.astype(int) if mask else groups
    members, names = members_of(groups, data, bags)
    refuse_groups_in_cells(members, data)
    names = names.astype(bool) if mask else names
    inside = in_bags(members, data.bags, len(data.bag_sizes), data.frequencies)
    used = data.bag_sizes > 0
    sizes = data.bag_sizes[used]
    S, Y = (inside / np.maximum(data.bag_sizes, 1))[:, used].T, data.proportions[used]
    w = sizes / sizes.mean() if weights == "size" else np.ones(len(sizes))
    if len(S) <= S.shape[1] or np.linalg.cond(S * np.sqrt(w)[:, None]) > 1e8:
        raise NotIdentifiableError(
            f"the shares of the {S.shape[1]} groups do not differ enough between the {len(S)} bags for a regression"
        )
    rates, errors = least_squares(S, Y, w)
    n = np.broadcast_to(inside.sum(axis=1)[:, None], rates.shape).astype(int)
    return group_table({"rate": rates, "error": errors, "n": n}, names, data.classes)


def least_squares(S, Y, w):
    r"""Weighted least squares of each column of Y on S, with errors that are right for any variances (HC1).

    :math:`\hat R = (S^\top W S)^{-1} S^\top W Y`, equation :eq:`eq-ecological-goodman`.

    Parameters
    ----------
    S : ndarray, shape (n_bags, n_groups)
    Y : ndarray, shape (n_bags, n_classes)
    w : ndarray, shape (n_bags,)

    Returns
    -------
    rates, errors : ndarray, shape (n_groups, n_classes)
    """
    inverse = np.linalg.inv(S.T @ (w[:, None] * S))
    # eq: eq-ecological-goodman
    rates = inverse @ S.T @ (w[:, None] * Y)
    lever = w[:, None] * (S @ inverse)
    variances = (lever**2).T @ (Y - S @ rates) ** 2
    return rates, np.sqrt(variances * len(S) / (len(S) - S.shape[1]))


def polling_errors(
    bags: ArrayLike, proportions: Proportions, *,
    counts: ArrayLike | None = None, design: float = 1.0,
) -> Any:  # fmt: skip
    r"""Standard errors of shares that belong to other people than those asked, for ``proportion_errors``.

    With the share :math:`p_k` among all voters of a district, the share among :math:`n_k` respondents has the standard
    error :math:`\sqrt{d\, p_k (1 - p_k) / n_k}`.

    Parameters
    ----------
    bags : array-like, shape (n_instances,)
        Of the respondents.
    proportions : array-like, Series, dict or DataFrame
        Of everybody in the bag; see `llpbook.proportions.check_proportions`.
    counts : array-like of int, shape (n_instances,), optional
        How many equal respondents each row stands for; one if not given.
    design : float, default 1.0
        The design effect: the variance divided by that of a simple random sample.

    Returns
    -------
    Series or ndarray, shape (n_bags,)
        Standard errors, keyed as the proportions are; for more than two classes a covariance matrix per bag, an array
        of shape (n_bags, n_classes, n_classes) in the order of the proportions.

    Raises
    ------
    ValueError
        For malformed input, or a design effect that is not above 0.

    Notes
    -----
    For statements about all voters of the bags state no errors: for them the shares are exact. For statements about
    the respondents the errors are right if one P(y | x) holds in all bags. Where only the shares of the classes
    differ between bags, slopes with these errors are far too steep: the labels of respondents scatter around the
    share, while a fit takes an error as unrelated to the labels. The respondents must be drawn from the voters of
    their bag; who answers more often by class biases the shares, and no error describes a bias.

    Examples
    --------
    >>> import numpy as np
    >>> from llpbook import CountLogistic
    >>> rng = np.random.default_rng(0)
    >>> X, bags = rng.normal(size=(400, 1)), np.repeat(np.arange(20), 20)
    >>> p = rng.uniform(0.2, 0.8, size=20)
    >>> errors = polling_errors(bags, p, design=1.5)
    >>> model = CountLogistic(proportion_errors=errors).fit(X, bags, p)
    >>> bool(np.allclose(errors, np.sqrt(1.5 * p * (1 - p) / 20)))
    True
    """
    if not (isinstance(design, Real) and 0 < design < np.inf):
        raise ValueError(f"design must be a number above 0, got {design!r}")
    data = read_bags(no_features(bags), bags, proportions, original=bags, counts=counts)
    P, n = data.proportions, np.maximum(data.bag_sizes, 1)
    if len(data.classes) > 2:
        spread = P[:, :, None] * (np.eye(P.shape[1]) - P[:, None, :])
        return design * spread / n[:, None, None]
    errors = np.sqrt(design * P[:, 1] * (1 - P[:, 1]) / n)
    return errors if data.bag_labels is None else pd.Series(errors, data.bag_labels)
