r"""Beyond memory: the same fits from chunks of data that no machine holds.

What a method needs of the instances is often a sum over them, and a sum over all instances is the sum of those of
chunks, wherever these lie:

.. math:: \sum_i h(x_i, b_i) = \sum_c \sum_{i \in \text{chunk } c} h(x_i, b_i) .

Bag sums make InvCal and the regression on bag means, class sums and products make discriminant analysis, class sums and
a few passes of Newton's method make MeanMap (bag sums for Laplacian Mean Map), and such passes over whole bags make
CountLogistic. `fit_chunks` does all of these, on any engine that has a ``map``. What needs all pairs of instances, or a
label for each, does not reduce to sums; `sample_bags` is the way out.

Chapter: ``book/beyond_memory``. Sources: chan1983 for merging moments; louis1982 for the Hessian of the counts.
"""

from ._chunks import ChunkError, EngineError, read_path, row_groups
from ._fit import fit_chunks, sample_bags
from ._sums import (
    SLICE,
    Moments,
    bag_sums,
    class_hessian,
    class_sums,
    count_hessian,
    count_terms,
    label_information,
    means_of_sums,
    merge,
    moments,
    newton_decrement,
    partition_terms,
    trace_factor,
    within_of_sums,
)

__all__ = [
    "SLICE",
    "ChunkError",
    "EngineError",
    "Moments",
    "bag_sums",
    "class_hessian",
    "class_sums",
    "count_hessian",
    "count_terms",
    "fit_chunks",
    "label_information",
    "means_of_sums",
    "merge",
    "moments",
    "newton_decrement",
    "partition_terms",
    "read_path",
    "row_groups",
    "sample_bags",
    "trace_factor",
    "within_of_sums",
]
