"""Reading and checking what users hand in: arguments, bags, shares, kernels, hyper-parameters, and their types.

Nothing here is public: the rooms that teach a function hand it on, such as `llpbook.proportions.check_proportions`.
Every room may use the names below. This folder imports nothing of the package.
"""

from ._arguments import (
    NotIdentifiableError,
    as_column,
    check_bags,
    check_codes,
    check_column,
    check_features,
    check_flag,
    check_labels,
    check_positional,
    check_whole,
    explain,
    filters_kept,
    hidden_number,
    keyed_rows,
    label_codes,
    numbers,
    page,
    read_counts,
    refuse_huge,
    refuse_mask,
    refuse_unusable,
    repeated_rows,
    rows_of_instances,
    sorted_values,
)
from ._cells import OF_CHUNKS, REPEAT, refuse_cells, row_keys
from ._elsewhere import advised, refuse_missing
from ._kernels import (
    WITHOUT_GRAM,
    gram_matrix,
    kernel_coefficient,
    kernel_features,
    refuse_indefinite,
)
from ._keys import places_of, quote, with_article
from ._parameters import constraints
from ._rounded import (
    BY_CHANCE,
    printed_step,
    restored,
    whole_bags,
)
from ._rows import refuse_shares_of_rows, whole
from ._shares import (
    Matched,
    check_proportions,
    doubt_of_numbers,
    fill_empty_rows,
    in_order_of,
    match_bags,
    refuse_columns,
    require_rank,
    sum_to_one,
)
from ._sklearn import (
    BaseLoss,
    HasMethods,
    IdentityLink,
    Interval,
    InvalidParameterError,
    StrOptions,
    check_method_params,
    num_samples,
    safe_indexing,
    safe_split,
)
from ._tables import as_frame, is_foreign, reading, refuse_lazy
from ._totals import SURE, doubt_of_totals, named_totals, sums_of_rows
from ._types import ArrayLike, Chunks, Matrix, NDArray, Proportions, RandomState
