"""The contract of an estimator that learns from label proportions, and what several estimators share.

Every estimator of this package derives from `LLPClassifier`: ``fit(X, bags, proportions, labels=None)``, then
``predict``, ``predict_proportions(X, bags)`` and scikit-learn's tools. A method whose scores are linear in features,
its own or those of a kernel, derives from `KernelClassifier` and adds the length of its idea. Input is checked here,
once; inner functions trust it.
"""

# Private in scikit-learn: one place to change.
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from ._estimator import (
    WITHOUT_GRAM,
    KernelClassifier,
    LLPClassifier,
    append_one,
    predict_proportions,
    probabilities,
    warn_if_short,
    warn_of_scale,
)
from ._input import (
    BAG_WEIGHTS,
    BagData,
    NotIdentifiableError,
    check_bag_weights,
    check_bags,
    check_column,
    check_features,
    check_labels,
    check_positional,
    check_proportions,
    keyed_rows,
    label_codes,
    labels_to_pure_bags,
    read_bags,
    refuse_twins,
)
from ._kernels import (
    gram_matrix,
    kernel_coefficient,
    kernel_features,
    refuse_indefinite,
)
from ._running import (
    LLPWarning,
    LongFitWarning,
    Progress,
    machine_memory,
    require_memory,
    warn,
    warn_once,
)
from ._tuning import (
    candidates,
    canonical_order,
    choose_centers,
    fold_numbers,
    median_distance,
    ranks,
    row_order,
    thin,
    tune,
)

__all__ = [
    "BAG_WEIGHTS",
    "WITHOUT_GRAM",
    "BagData",
    "HasMethods",
    "Interval",
    "KernelClassifier",
    "LLPClassifier",
    "LLPWarning",
    "LongFitWarning",
    "NotIdentifiableError",
    "Progress",
    "StrOptions",
    "append_one",
    "candidates",
    "canonical_order",
    "check_bag_weights",
    "check_bags",
    "check_column",
    "check_features",
    "check_labels",
    "check_positional",
    "check_proportions",
    "choose_centers",
    "fold_numbers",
    "gram_matrix",
    "kernel_coefficient",
    "kernel_features",
    "keyed_rows",
    "label_codes",
    "labels_to_pure_bags",
    "machine_memory",
    "median_distance",
    "predict_proportions",
    "probabilities",
    "ranks",
    "read_bags",
    "refuse_indefinite",
    "refuse_twins",
    "require_memory",
    "row_order",
    "thin",
    "tune",
    "warn",
    "warn_if_short",
    "warn_of_scale",
    "warn_once",
]
