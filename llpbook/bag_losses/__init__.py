r"""Losses of bags: objectives that see whole bags, for any learner that follows a gradient.

A loss of bags takes the log-odds :math:`f` of the instances, their bags and the shares, and returns a value, its
gradient by :math:`f` and a positive curvature,

.. math:: \min_f \; \sum_k \ell_k \bigl( f_i, i \in B_k; \, p_k \bigr) + \text{penalty} .

The proportion loss compares the share and the mean prediction of a bag; `EasyLoss` gives every instance a label that
is right in the mean; `ForwardLoss` asks which of two bags an instance is from; `NormalLoss` takes the count as normal;
`EntropyTerm` and `ConsistencyTerm` learn from the model's own predictions. A linear model, boosted trees, XGBoost,
LightGBM and networks minimize any of them.

Chapter: ``book/bag_losses``. Sources: mann2007 and ardehaly2017 for the proportion loss, tsai2020 for its
consistency term, busafekete2023 for the unbiased loss, scott2020 and zhang2022 for pairs of bags.
"""

from .._linear import (
    SMALLEST_MEAN,
    BagLoss,
    BoostedBagModel,
    LinearBagModel,
    ProportionLoss,
    SumOfLosses,
    curvature,
    read_scores,
)
from ..count_likelihood import CountLoss
from ._learners import (
    LOSSES,
    BagBatches,
    BagBoosting,
    BagLogistic,
    loss_of,
)
from ._log_odds import LogOddsClassifier
from ._normal import ROUNDING, NormalLoss
from ._terms import (
    ConsistencyTerm,
    EntropyTerm,
    WithCopies,
    adversarial_shift,
    first_half,
)
from ._unbiased import (
    SMALLEST_CHANCE,
    EasyLoss,
    ForwardLoss,
    easy_label_variance,
    easy_labels,
    forward,
    pair_bags,
    transition,
    unmixed_labels,
)

__all__ = [
    "BagBatches",
    "BagBoosting",
    "BagLogistic",
    "BagLoss",
    "ConsistencyTerm",
    "CountLoss",
    "EasyLoss",
    "EntropyTerm",
    "ForwardLoss",
    "LinearBagModel",
    "LogOddsClassifier",
    "NormalLoss",
    "ProportionLoss",
    "SumOfLosses",
    "WithCopies",
    "adversarial_shift",
]
