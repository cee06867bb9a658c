"""The contract of an estimator that learns from label proportions, and what several estimators share.

Every estimator of this package derives from `LLPClassifier`: ``fit(X, bags, proportions, labels=None)``, then
``predict``, ``predict_proportions(X, bags)`` and scikit-learn's tools. A method whose scores are linear in features,
its own or those of a kernel, derives from `KernelClassifier` and adds the length of its idea. Input is checked here,
once; inner functions trust it.
"""

from .._checks import (
    NotIdentifiableError,
    check_bags,
    check_column,
    check_features,
    check_flag,
    check_positional,
    check_whole,
    keyed_rows,
    label_codes,
    page,
    read_counts,
)
from .._shares import check_proportions, fill_empty_rows, in_order_of, require_rank
from .._typing import ArrayLike, Matrix, NDArray, Proportions, RandomState
from ._bag_counts import BagCounts, bag_counts
from ._bag_data import (
    BagData,
    error_covariances,
    labels_to_pure_bags,
    merge_rows,
    read_bags,
    single_rows,
)
from ._bag_effects import NODES, WEIGHTS, estimate_deviation, prior_precision
from ._bag_learners import BoostedBagModel, LinearBagModel
from ._bag_loss import (
    SMALLEST_MEAN,
    BagLoss,
    ProportionLoss,
    SumOfLosses,
    curvature,
    read_scores,
)
from ._chunked import InChunks
from ._counts import (
    by_bag,
    crosstab,
    label_by_counts,
    label_by_seats,
    ranks,
    take_seats,
    transport,
    whole_counts,
)
from ._estimator import LLPClassifier, told, whole_or_nothing
from ._kernels import (
    WITHOUT_GRAM,
    KernelClassifier,
    append_one,
    gram_matrix,
    kernel_coefficient,
    kernel_features,
    refuse_indefinite,
)
from ._objective import (
    MOST_WEIGHTS,
    LinearObjective,
    Point,
    Solution,
    blocks,
    expit,
    fisher_scoring,
    gram_blocks,
    label_factors,
    linear_objective,
    one_column,
    softplus,
    weighted_gram,
)
from ._predictions import (
    bag_shares,
    class_scores,
    in_blocks,
    predict_proportions,
    probabilities,
    require_probabilities,
)
from ._running import (
    LLPWarning,
    LongFitWarning,
    Progress,
    TimeIsUp,
    require_memory,
    time_limit,
    warn,
    warn_once,
)
from ._sklearn import HasMethods, Interval, StrOptions, safe_split
from ._tilt import MISCOUNT, TILT_STEPS, tilt_classes, tilt_step
from ._tuning import (
    candidates,
    canonical_order,
    choose_centers,
    fold_numbers,
    median_distance,
    row_order,
    seed_of_bins,
    thin,
    tune,
)
from ._warnings import (
    warn_if_short,
    warn_if_too_sure,
    warn_of_moments,
    warn_of_scale,
)

__all__ = [
    "BagLoss",
    "KernelClassifier",
    "LLPClassifier",
    "LLPWarning",
    "LinearBagModel",
    "LongFitWarning",
    "NotIdentifiableError",
    "ProportionLoss",
    "SumOfLosses",
]
