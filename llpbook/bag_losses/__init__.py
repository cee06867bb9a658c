r"""Losses of bags: objectives that see whole bags, for any learner that follows a gradient.

A loss of bags takes the log-odds :math:`f` of the instances, their bags and the shares, and returns a value, its
gradient by :math:`f` and a positive curvature,

.. math:: \min_f \; \sum_k \ell_k \bigl( f_i, i \in B_k; \, p_k \bigr) + \text{penalty} .

The proportion loss compares the share and the mean prediction of a bag; `EasyLoss` gives every instance a label that
is right in the mean; `ForwardLoss` asks which of two bags an instance is from; `CountLoss` is the likelihood of chapter
`count_likelihood`, for large bags exact by a fast Fourier transform; `EntropyTerm` and `ConsistencyTerm` learn from the
model's own predictions. A linear model, boosted trees, XGBoost, LightGBM and networks minimize any of them.

Chapter: ``book/bag_losses``. Sources: ardehaly2017 and tsai2020 for the proportion loss and its consistency term,
busafekete2023 for the unbiased loss, scott2020 and zhang2022 for pairs of bags, tarlow2012 for the tree of counts.
"""

from ._fft import (
    convolve_rows,
    count_tree,
    fft_count_posterior,
    fft_posterior,
    pass_down,
)
from ._learners import (
    LOSSES,
    BagBatches,
    BagBoosting,
    BagLogistic,
    LossClassifier,
    known_alone,
    loss_of,
    objective,
    two_parts,
    warn_of_easy,
)
from ._losses import ROUNDING, SMALLEST_MEAN, CountLoss, NormalLoss, ProportionLoss
from ._protocol import BagLoss, SumOfLosses, first_half, read_scores
from ._terms import ConsistencyTerm, EntropyTerm, WithCopies, adversarial_shift
from ._unbiased import (
    SMALLEST_CHANCE,
    EasyLoss,
    ForwardLoss,
    easy_label_variance,
    easy_labels,
    easy_value_variance,
    forward,
    pair_bags,
    transition,
)

__all__ = [
    "LOSSES",
    "ROUNDING",
    "SMALLEST_CHANCE",
    "SMALLEST_MEAN",
    "BagBatches",
    "BagBoosting",
    "BagLogistic",
    "BagLoss",
    "ConsistencyTerm",
    "CountLoss",
    "EasyLoss",
    "EntropyTerm",
    "ForwardLoss",
    "LossClassifier",
    "NormalLoss",
    "ProportionLoss",
    "SumOfLosses",
    "WithCopies",
    "adversarial_shift",
    "convolve_rows",
    "count_tree",
    "easy_label_variance",
    "easy_labels",
    "easy_value_variance",
    "fft_count_posterior",
    "fft_posterior",
    "first_half",
    "forward",
    "known_alone",
    "loss_of",
    "objective",
    "pair_bags",
    "pass_down",
    "read_scores",
    "transition",
    "two_parts",
    "warn_of_easy",
]
