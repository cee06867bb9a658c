r"""Beyond memory: the same fits from chunks of data that no machine holds.

What a method needs of the instances is often a sum over them, and a sum over all instances is the sum of those of
chunks, wherever these lie:

.. math:: \sum_i h(x_i, b_i) = \sum_c \sum_{i \in \text{chunk } c} h(x_i, b_i) .

Bag sums make InvCal and the regression on bag means, class sums and products make discriminant analysis. MeanMap,
Laplacian Mean Map, CountLogistic and BagLogistic minimize sums over instances or whole bags, whose value, gradient and
curvature each chunk returns. `fit_chunks` does all of these, on any backend of joblib. What needs all pairs of
instances, or a label for each, does not reduce to sums; `sample_bags` is the way out.

Chapter: ``book/beyond_memory``. Source: chan1983 for merging moments.
"""

from .._linear import MOST_WEIGHTS, LinearObjective, Point, bag_counts
from ._chunks import ChunkError, Engine, EngineError, Layout, row_groups
from ._fit import fit_chunks, noise_of, read_chunks, sample_bags
from ._instances import ChunkObjective, Terms, bags_alone, in_chunk, losses_of, terms
from ._sums import Moments, bag_sums, class_sums, merge, moments, within_of_sums

__all__ = ["ChunkError", "EngineError", "fit_chunks", "row_groups", "sample_bags"]
