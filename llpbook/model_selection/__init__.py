r"""Model selection without instance labels: whole bags or parts of bags held out, and scored by their shares.

Choose the setting :math:`\theta` with the smallest mean error of the predicted shares over splits into a training part
and a validation part :math:`V_s` (Algorithm 1 of the paper),

.. math:: \hat\theta = \operatorname*{arg\,min}_\theta \frac1S \sum_{s=1}^{S}
          \operatorname{Err}\bigl( \Gamma(f_{s, \theta}; V_s), \, \Pi \bigr) ,

where :math:`f_{s, \theta}` has learned from the rest and :math:`\Gamma` are the shares of its predictions. Splitters
follow scikit-learn's protocol with the bags as ``groups``; scorers are called with the bags in the place of labels; the
searches are scikit-learn's. No instance label is seen.

Chapter: ``book/model_selection``. Sources: franco2023 (section 5), hernandez2019 (the folds of whole bags).
"""

from .._input import (
    check_bags,
    check_column,
    filters_kept,
    match_bags,
    refuse_cells,
)
from ._pooled import (
    OutOfFold,
    are_pooled,
    check_partition,
    default_score,
    with_shares,
)
from ._scorers import (
    ProportionScorer,
    count_distribution,
    count_log_likelihood,
    exact_score,
    expected_squared_error,
    proportion_scorer,
)
from ._search import (
    BagSearch,
    LLPGridSearchCV,
    LLPRandomizedSearchCV,
    compare_with_majority,
    expand_rows,
    forget,
    of_labels,
    read_scoring,
    score_majority,
    select_setting,
    take_best,
    trials,
)
from ._splitters import (
    BagSplitter,
    FullBagKFold,
    SplitBagBootstrap,
    SplitBagKFold,
    SplitBagShuffle,
    bag_order,
    bag_part,
    count_rows,
    split_bag_folds,
)

__all__ = [
    "BagSplitter",
    "FullBagKFold",
    "LLPGridSearchCV",
    "LLPRandomizedSearchCV",
    "OutOfFold",
    "ProportionScorer",
    "SplitBagBootstrap",
    "SplitBagKFold",
    "SplitBagShuffle",
    "count_log_likelihood",
    "proportion_scorer",
]
