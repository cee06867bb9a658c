r"""Rates in groups from bags as they were published, and how far they may be wrong.

In place :math:`k` let :math:`y_k` be the share of a class, :math:`q_k` the share of a group, and :math:`D_k` the rate
in the group less the rate in the rest. The rate in the group is

.. math:: R_{kG} = y_k + (1 - q_k) D_k .

The share is published; the difference within the place is not. `check_margins` says where the two tables of a
publication do not agree, and hands on tables that do. `ecological_rates` takes two tables of counts and the
regions of the places, its strata: each region has rates of its own, pulled together as far as the counts say, with an
interval, a band for relations between rates and shares that no table shows, and all contrasts. `group_rate_band` does
it for a model with features of people, with a limit on the differences; `goodman` is the regression of the field,
`polling_errors` the errors of shares that belong to other people than those asked.

Chapter: ``book/ecological``. Sources: robinson1950, duncan1953, goodman1953 and mccartan2026; the bands are ours.
"""

from ._band import (
    LEAST_PART,
    Split,
    context,
    contextual_scores,
    group_rate_band,
    rates_between,
    rates_within,
    read_cells,
    split_of,
)
from ._cells import fitted_cells, push_of_shares
from ._joint import moves, shifted_cells, worst_directions
from ._practice import goodman, least_squares, polling_errors
from ._published import CheckedMargins, check_margins
from ._rates import EcologicalRates, ecological_rates
from ._report import (
    band_sentences,
    effect_needed,
    plot_band,
    robustness_value,
)
from ._strata import label_spread, log_posterior, place_variances

__all__ = [
    "CheckedMargins",
    "EcologicalRates",
    "band_sentences",
    "check_margins",
    "ecological_rates",
    "effect_needed",
    "goodman",
    "group_rate_band",
    "plot_band",
    "polling_errors",
]
