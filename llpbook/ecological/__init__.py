r"""Rates in groups from bags as they were published: a band for the difference that no bag shows.

In bag :math:`k` let :math:`y_k` be the share of a class, :math:`s_k` the share of a group, and :math:`D_k` the rate in
the group less the rate in the rest. The rate in the group is

.. math:: r_{kG} = y_k + (1 - s_k) D_k .

The share is published; the difference within the bag is not. A model of many bags supplies :math:`\hat D_k`, and the
relation between bags may differ from the one within them. `group_rate_band` reports the rates for all differences
between half of the fitted one and the whole, and a limit to either side; `effect_needed` says how strong an unseen
effect must be to change a statement; `goodman` is the regression of the field, `polling_errors` the errors of shares
that belong to other people than those asked.

Chapter: ``book/ecological``. Sources: robinson1950, duncan1953, goodman1953 and mccartan2026; the band is ours.
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
from ._practice import goodman, least_squares, polling_errors
from ._rates import EcologicalRates, ecological_rates
from ._report import (
    band_sentences,
    effect_needed,
    plot_band,
    robustness_value,
)

__all__ = [
    "EcologicalRates",
    "band_sentences",
    "ecological_rates",
    "effect_needed",
    "goodman",
    "group_rate_band",
    "plot_band",
    "polling_errors",
]
