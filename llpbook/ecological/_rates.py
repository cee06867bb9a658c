"""Rates of groups from two published tables, by strata of places, with all contrasts from one joint estimate."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from typing import Any

import pandas as pd

from .._input import ArrayLike, RandomState, advised
from .._printed import Printed
from ..base import warn
from ..uncertainty import check_level
from ._joint import Joint, fit_joint
from ._margins import read_margins
from ._questions import (
    among_table,
    correlation_for,
    difference_table,
    gain_table,
    homogeneous_places,
    rate_table,
)
from ._report import plot_rates, rate_sentences

#: Correlations that a band allows for: usually, and where the test of context rejects at the level `UNLIKELY`.
CORRELATION, DOUBTED, UNLIKELY = 0.3, 0.6, 0.01
#: The part of the width of the bounds from which a band says hardly more than they do.
AS_WIDE = 0.9


@dataclass(frozen=True)
class EcologicalRates(Printed):
    """Rates of classes in groups, from `ecological_rates`.

    Attributes
    ----------
    table : DataFrame
        A row per group and class: ``rate``; ``error``; ``low`` and ``high``, the interval; ``band_low`` and
        ``band_high``; ``least`` and ``most``, the bounds that need no assumption; ``n``, people of the group.
    by_stratum : DataFrame
        The columns of ``table`` in each stratum.
    deviation : float
        Standard deviation of the log-odds of a group between the places of a stratum, beyond chance.
    interaction : float
        Standard deviation of the log-odds of a group between strata, beyond effects of group and of stratum.
    context : float
        Level of a test of the shares of the groups in a place as a feature of everybody: small where the counts speak
        against rates without a relation to these shares. A large one proves nothing: most such relations leave no
        trace in the margins.
    correlation, level : float

    Examples
    --------
    >>> from llpbook.ecological import EcologicalRates, ecological_rates
    >>> rates = ecological_rates([[9, 1], [5, 5], [2, 8]], [[7, 3], [6, 4], [4, 6]])
    >>> isinstance(rates, EcologicalRates)
    True
    """

    joint: Joint
    correlation: float
    level: float

    @property
    def deviation(self):
        """Standard deviation of the log-odds of a group between places."""
        return self.joint.deviation

    @property
    def interaction(self):
        """Standard deviation of the log-odds of a group between strata; 0 with one stratum."""
        several = len(self.joint.margins.strata) > 1
        return self.joint.parts[0].fit.sd if several else 0.0

    @property
    def context(self):
        """Level of the test of context."""
        return self.joint.context

    @cached_property
    def table(self):
        """Rates of each class in each group."""
        return rate_table(self, by_stratum=False)

    @cached_property
    def by_stratum(self):
        """Rates of each class in each group of each stratum where the group has people."""
        return rate_table(self, by_stratum=True)

    def difference(
        self, *, groups: Sequence[Any] | None = None, classes: Sequence[Any] | None = None
    ) -> pd.DataFrame:  # fmt: skip
        """Difference of the rates of two groups, per class; or of two classes, per group.

        Parameters
        ----------
        groups : pair of names, optional
        classes : pair of names, optional

        Returns
        -------
        DataFrame
            A row per class, or per group; the pair is the entry of the other level of the index, ``groups`` or
            ``classes``. Columns ``difference``, ``error``, ``low``, ``high``, ``band_low``, ``band_high``. They come
            from the joint estimate: the two rates share the counts of each place.

        Raises
        ------
        ValueError
            If not one pair is given, or a name is not in the table.
        """
        return difference_table(self, groups, classes)

    def among(self, classes: Sequence[Any]) -> pd.DataFrame:
        """Shares of given classes among the members of a group in these classes, such as of parties among voters.

        Parameters
        ----------
        classes : sequence of names
            Two or more.

        Returns
        -------
        DataFrame
            A row per group and class, with the columns of ``table`` but for the bounds; ``n`` is the expected number
            of members in these classes.

        Raises
        ------
        ValueError
            If a name is not in the table, is there twice, or is the only one.
        """
        return among_table(self, classes)

    def correlation_needed(self, value: float, *, group: Any, class_: Any) -> float:
        """Smallest correlation with which the band of a rate reaches a value.

        Parameters
        ----------
        value : float
            A rate.
        group, class_ : names
            Of a row of ``table``.

        Returns
        -------
        float
            Infinite where no correlation up to 1 is enough.

        Raises
        ------
        ValueError
            If the value is no rate, or a name is not in the table.
        """
        return correlation_for(self, value, group, class_)

    def gain_of_strata(self, random_state: RandomState = 0) -> pd.Series:
        """Gain of strata in the log-probability of the counts of held-out places.

        Parameters
        ----------
        random_state : int, RandomState instance or None, default 0
            Decides which places are held out together.

        Returns
        -------
        Series
            ``gain``, log-probability per held-out place with strata less that with one rate everywhere; ``error``, its
            standard error over places; ``places``, how many were held out. Above 2 errors the strata help: in the study
            ``ecological_gain`` their rates were then nearer to the truth. Near 0 nothing is said. Below -2 errors an
            `LLPWarning` says that they hurt: they are too small, or their rates do not differ.

        Raises
        ------
        ValueError
            If there are no strata, or none has two places.
        """
        return gain_table(self.joint.margins, random_state)

    def homogeneous(self, share: float = 0.9) -> pd.DataFrame:
        """Rates in places that hold one group almost alone, where its rate hardly needs a model.

        Parameters
        ----------
        share : float, default 0.9
            The least share of the group.

        Returns
        -------
        DataFrame
            A row per group and class: ``rate`` in these places, of everybody there; ``places``; ``n``, people; beside
            it ``estimate``, ``band_low`` and ``band_high`` for all members of the group. Such places may differ from
            those where the group is mixed with others.

        Raises
        ------
        ValueError
            If the share is not between 0.5 and 1.
        """
        return homogeneous_places(self, share)

    def sentences(self, table: pd.DataFrame | None = None) -> pd.Series:
        """Write a sentence for a report for each row of a table, with the assumption that it needs.

        Parameters
        ----------
        table : DataFrame, optional
            Rows of ``table``, which is taken if not given, or from `difference` or `among`.

        Returns
        -------
        Series of str
        """
        table = self.table if table is None else table
        return rate_sentences(table, self.level, self.correlation)

    def plot(
        self, table: pd.DataFrame | None = None, *, truth: ArrayLike | None = None, ax: Any = None
    ) -> Any:  # fmt: skip
        """Draw each row of a table: the bounds thin, the band wide, the interval dark, a point for the value.

        Parameters
        ----------
        table : DataFrame, optional
            Rows of ``table``, which is taken if not given, or from `difference` or `among`.
        truth : array-like, shape (n_rows,), optional
            True values, as crosses.
        ax : matplotlib Axes, optional
            A new figure if not given.

        Returns
        -------
        matplotlib Axes
        """
        table = self.table if table is None else table
        return plot_rates(table, self.level, self.correlation, truth, ax)

    def with_correlation(self, correlation: float) -> "EcologicalRates":
        """Copy the rates with another correlation of the band.

        Parameters
        ----------
        correlation : float
            In [0, 1].

        Returns
        -------
        EcologicalRates

        Raises
        ------
        ValueError
            If the correlation is outside of [0, 1].
        """
        return replace(self, correlation=_check_correlation(correlation))

    def __str__(self):
        m = self.joint.margins
        where = f"{len(m.sizes):,} places"
        if len(m.strata) > 1:
            where += f" in {len(m.strata):,} strata"
        return "\n".join(
            [
                f"Rates in {len(m.groups)} groups from {where}, {m.sizes.sum():,.0f} people",
                self.table.round(3).to_string(),
                f"low, high: {100 * self.level:g} % interval if rates do not depend on shares within a stratum",
                f"band: the same for correlations up to {self.correlation:g} of the two",
                "least, most: bounds without an assumption",
            ]
        )


@advised
def ecological_rates(
    groups: ArrayLike | pd.DataFrame, classes: ArrayLike | pd.DataFrame, *,
    strata: ArrayLike | str | None = None, correlation: float | None = None, level: float = 0.95,
) -> EcologicalRates:  # fmt: skip
    r"""Estimate rates of classes in groups from two tables of counts: groups per place, and classes per place.

    Parameters
    ----------
    groups : DataFrame or array-like, shape (n_places, n_groups)
        Number of people of each group in each place.
    classes : DataFrame or array-like, shape (n_places, n_classes)
        Number of people of each class; matched by the names of the places where both tables have names. In each place
        both tables sum to the same number, see `check_margins`.
    strata : array-like, shape (n_places,), Series, or name of a level of the index, optional
        The larger unit of each place, such as the county of a precinct. Each has rates of its own, shrunk together as
        far as the counts allow. One rate for all places if not given.
    correlation : float, optional
        The largest correlation that the band allows for, within strata, between the effects of places and the shares of
        the groups. If not given 0.3, or 0.6 where the counts speak for such a relation; where all cells are known it
        was mostly 0.1 to 0.5.
    level : float, default 0.95
        Of the intervals.

    Returns
    -------
    EcologicalRates
        It prints; ``table`` and ``by_stratum`` are DataFrames.

    Raises
    ------
    NotIdentifiableError
        If there are under three places, or no group's share differs between places.
    ValueError
        For malformed input.

    Notes
    -----
    With :math:`N_{kg}` members of group g in place k of stratum r, the counts of the classes have the mean
    :math:`\sum_g N_{kg}\, s(\theta_{rg})`, equation :eq:`eq-ecological-strata`, with :math:`\theta_{rg} = \mu_g + a_r +
    b_{rg}`. Rates are averaged over the variance of the interactions b, and the cells of each place meet both of its
    margins. The interval holds if, beyond chance, the rates of a group in the places of a stratum have no relation to
    its share there. No margin shows such a relation; the band allows for one. Where a test finds one all the same, an
    `LLPWarning` says so. Cost: O(n_places) once, then O(n_strata) per step of the fits.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from llpbook import ecological_rates
    >>> rng = np.random.default_rng(0)
    >>> share = np.linspace(0.1, 0.9, 40)
    >>> old = np.round(1000 * share).astype(int)
    >>> ill = rng.binomial(old, 0.6) + rng.binomial(1000 - old, 0.2)  # 60 % of the old, 20 % of the young
    >>> groups = pd.DataFrame({"young": 1000 - old, "old": old})
    >>> classes = pd.DataFrame({"well": 1000 - ill, "ill": ill})
    >>> rates = ecological_rates(groups, classes)
    >>> rates.table["rate"].xs("ill", level="class").round(1).to_dict()
    {'young': 0.2, 'old': 0.6}
    """
    chosen = CORRELATION if correlation is None else _check_correlation(correlation)
    check_level(level)
    joint = fit_joint(read_margins(groups, classes, strata))
    result = EcologicalRates(joint, chosen, level)
    if result.context < UNLIKELY and correlation is None:
        result = result.with_correlation(DOUBTED)
    _warn_of_rates(result)
    return result


def _warn_of_rates(result):
    """Warn of groups with little more than bounds, and of rates that depend on the share of the group."""
    table = result.table
    width = (table["band_high"] - table["band_low"]) / (table["most"] - table["least"])
    wide = (width >= AS_WIDE).groupby(level="group", sort=False).all()
    for name in wide[wide].index:
        warn(
            f"the places say hardly more of group {name!r} than the bounds do: it is small, or its share hardly "
            "differs between places; merge it with another group, or report the bounds"
        )
    if result.context < UNLIKELY:
        warn(
            f"the counts speak for rates of a group that depend on its share in the place (p = {result.context:.1g}): "
            f"the interval does not hold; the band allows for correlations up to {result.correlation:g}. Try smaller "
            "strata, and report the bounds"
        )


def _check_correlation(correlation):
    if not (isinstance(correlation, Real) and 0 <= correlation <= 1):
        raise ValueError(f"correlation must be a number in [0, 1], got {correlation!r}")
    return float(correlation)
