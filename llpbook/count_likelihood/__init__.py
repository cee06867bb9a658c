r"""The likelihood of the counts: what was observed of a bag is how many of its instances are positive.

Labels are independent given the features, with log-odds :math:`f(x)`. Then the number of positives :math:`C_k` of a bag
is a sum of independent coin flips, whose distribution is Poisson-binomial, and the maximum-likelihood score function is

.. math:: \max_f \sum_k \log P \Bigl( \sum_{i \in B_k} y_i = c_k \Bigm| f \Bigr) - \text{penalty},
          \qquad c_k = n_k p_k .

Tilt the log-odds of a bag by one number until the expected count is the observed one: that part is exact and easy.
What is left, the probability of a count at its own mean, is a sum over labelings for small bags (forward and backward
over the instances, :math:`O(n_k^2)`) and a saddlepoint approximation for large ones (:math:`O(n_k)`). The gradient is
the posterior probability of each label given the count, minus the prior one: a linear model climbs it by Fisher
scoring, trees by boosting.

Chapter: ``book/count_likelihood``. Sources: kuck2005, sun2017, shukla2023 for learning from counts; daniels1954 for the
saddlepoint; the guard and counts with errors are ours.
"""

from .._linear import (
    MISCOUNT,
    TILT_STEPS,
    BagCounts,
    BoostedBagModel,
    LinearBagModel,
    LinearObjective,
    bag_counts,
    fisher_scoring,
)
from ._binary import (
    LATTICE,
    bracket,
    count_factors,
    count_posterior,
    count_weights,
    exact_parts,
    exact_posterior,
    saddlepoint_posterior,
    tilt,
)
from ._calibration import (
    CountCalibration,
    bag_folds,
    calibrate,
    calibration_objective,
    fit_rows,
    held_out_scores,
    lapsed,
    scores_of,
    spread,
)
from ._deviation import estimate_deviation, restricted
from ._intercepts import Intercepts, bag_intercepts, expected_probabilities
from ._loss import CountLoss, posterior
from ._models import CountBoosting, CountLogistic, mean_map_start
from ._several import class_factors, class_posterior, saddlepoint_classes

__all__ = ["CountBoosting", "CountCalibration", "CountLogistic"]
