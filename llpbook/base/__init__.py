"""The contract of an estimator that learns from label proportions, and what any room may use.

Every estimator of this package derives from `LLPClassifier`: ``fit(X, bags, proportions, labels=None)``, then
``predict``, ``predict_proportions(X, bags)`` and scikit-learn's tools. A method whose scores are linear in features,
its own or those of a kernel, derives from `KernelClassifier` and adds the length of its idea. Input is checked here,
once; inner functions trust it.

Public are the names in ``__all__``. A room may use all names below; a part such as ``_bag_data`` is private. What only
linear models by a loss of bags need is in ``llpbook._linear``, for its neighbors.
"""

from .._input import (
    ArrayLike,
    Chunks,
    HasMethods,
    Interval,
    Matrix,
    NDArray,
    NotIdentifiableError,
    Proportions,
    RandomState,
    StrOptions,
)
from ._bag_data import (
    BagData,
    error_covariances,
    labels_to_pure_bags,
    merge_rows,
    read_bags,
    single_rows,
)
from ._chunked import SOME_ROWS, InChunks, evenly_spaced
from ._estimator import LLPClassifier, fitting
from ._kernels import KernelClassifier, append_one
from ._numbers import blocks, expit, one_column, softplus
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
    check_time,
    comparing,
    quiet,
    require_memory,
    time_limit,
    warn,
)
from ._steps import (
    check_fitted_to_bags,
    check_learner,
    fit_to_bags,
    flat_steps,
    last_step,
    learns_from_bags,
    split_steps,
)
from ._stored import StoredShares, plain_keys
from ._tuning import (
    candidates,
    canonical_order,
    choose_centers,
    feature_free_order,
    fold_numbers,
    median_distance,
    row_keys,
    row_order,
    seed_of_bins,
    thin,
    tune,
)
from ._warnings import warn_if_short

__all__ = [
    "KernelClassifier",
    "LLPClassifier",
    "LLPWarning",
    "LongFitWarning",
    "NotIdentifiableError",
]
