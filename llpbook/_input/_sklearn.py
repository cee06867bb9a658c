"""Private names of scikit-learn that the package uses: the one file that a new version of scikit-learn can break.

A name that has become public is imported from its public home where it is used, and leaves this file.
"""

from sklearn._loss.link import IdentityLink
from sklearn._loss.loss import BaseLoss
from sklearn.utils import _safe_indexing as safe_indexing
from sklearn.utils._param_validation import (
    HasMethods,
    Interval,
    InvalidParameterError,
    StrOptions,
)
from sklearn.utils.metaestimators import _safe_split as safe_split
from sklearn.utils.validation import _check_method_params as check_method_params
from sklearn.utils.validation import _num_samples as num_samples
