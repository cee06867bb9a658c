"""The core of linear models by a loss of bags: losses, counts, objective, solvers, bag effects, boosting, hinges.

Nothing here is public: `llpbook.bag_losses` exports the losses and the two learners, `llpbook.count_likelihood` the
objective and the counts. Only the rooms in `NEIGHBORS` may use the names below; others use `llpbook.base`.
"""

from ._bag_counts import BagCounts, bag_counts
from ._effects import NODES, WEIGHTS, averaged_probabilities
from ._groups import WEAK, without_hold
from ._hinge import (
    MAX_ROUNDS,
    TINY,
    USUAL_ROUNDS,
    Rounded,
    as_array,
    minimize_hinges,
    scale_rows,
    zero_of_slope,
)
from ._learners import (
    BagLossClassifier,
    BoostedBagModel,
    LinearBagModel,
    held_out_bags,
)
from ._losses import (
    SMALLEST_MEAN,
    BagLoss,
    ProportionLoss,
    SumOfLosses,
    curvature,
    read_scores,
)
from ._objective import (
    MOST_WEIGHTS,
    LinearObjective,
    Point,
    Solution,
    fisher_scoring,
    gram_blocks,
    label_factors,
    linear_objective,
    weighted_gram,
)
from ._problem import (
    Problem,
    linear_problem,
    minimize_from_zero,
    observed_counts,
    prior_precision,
)
from ._tilt import MISCOUNT, TILT_STEPS, tilt_classes, tilt_step
from ._warnings import warn_if_held, warn_if_too_sure

#: The rooms that may import from here; a test compares them with the rooms that do.
NEIGHBORS = (
    "alter_svm",
    "bag_losses",
    "beyond_memory",
    "conv_svm",
    "count_likelihood",
    "dsdd",
    "em",
    "invcal",
    "mean_map",
    "networks",
    "theory",
    "uncertainty",
)
