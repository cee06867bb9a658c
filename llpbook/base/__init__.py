"""The contract of an estimator that learns from label proportions, and what several estimators share.

Every estimator of this package derives from `LLPClassifier`: ``fit(X, bags, proportions, labels=None)``, then
``predict``, ``predict_proportions(X, bags)`` and scikit-learn's tools. A method whose scores are linear in features,
its own or those of a kernel, derives from `KernelClassifier` and adds the length of its idea. Input is checked here,
once; inner functions trust it.
"""

# Private in scikit-learn: one place to change.
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from ._estimator import (
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
    LLPWarning,
    NotIdentifiableError,
    check_bag_weights,
    check_bags,
    check_column,
    check_features,
    check_labels,
    check_positional,
    check_proportions,
    label_codes,
    labels_to_pure_bags,
    page,
    read_bags,
    refuse_twins,
)
from ._kernels import gram_matrix, kernel_coefficient, kernel_features
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
    "BagData",
    "HasMethods",
    "Interval",
    "KernelClassifier",
    "LLPClassifier",
    "LLPWarning",
    "NotIdentifiableError",
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
    "label_codes",
    "labels_to_pure_bags",
    "median_distance",
    "page",
    "predict_proportions",
    "probabilities",
    "ranks",
    "read_bags",
    "refuse_twins",
    "row_order",
    "thin",
    "tune",
    "warn_if_short",
    "warn_of_scale",
]
