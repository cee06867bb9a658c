r"""Uncertainty: standard errors, group rates, accuracy and misfit, without labels of instances.

The bags are the units that were observed, so the variance is taken over bags. With :math:`g_k` the gradient of the
log-likelihood of the counts of bag :math:`k`, :math:`J` the observed Hessian and :math:`J_k` the part of the bag,

.. math:: \psi_k = \bigl( J - \tfrac12 J_k \bigr)^{-1} g_k, \qquad
          \mathrm{Cov}(\hat w) = \frac{L}{L - 1} \sum_k \psi_k \psi_k^\top .

`coefficient_table` prints the coefficients of a `CountLogistic` with intervals; `bag_bootstrap` draws whole bags for
any estimator; `group_rate` estimates the rate of a class in a group, with the bounds of Duncan and Davis that need no
assumption; `expected_accuracy` and `accuracy_bounds` judge accuracy without labels; `bag_report` names the bags that do
not fit, and `bag_influence` gives the influence of each bag on the model.

Chapter: ``book/uncertainty``. Sources: duncan1953 for the bounds, goodman1953 and king1997 for ecological inference;
the sandwich for counts is ours.
"""

from .._linear import BagCounts, Problem
from ._accuracy import (
    accuracy_bounds,
    agreement_bounds,
    class_probabilities,
    expected_accuracy,
    no_features,
    read_shares,
    slack_of_counts,
)
from ._bootstrap import BagBootstrap, bag_bootstrap, draw_bags
from ._cautions import caution_of_held_rates
from ._chunks import chunk_coefficient_table, chunk_group_rate
from ._covariance import (
    LaplaceCovariance,
    Sandwich,
    information_factors,
    laplace_covariance,
)
from ._deviation import BagDeviation, NormalCounts, bag_deviation, judged
from ._groups import (
    apart,
    class_of,
    count_bounds,
    group_covariances,
    group_rate,
    group_rate_bounds,
    group_sums,
    group_table,
    in_bags,
    loose_bounds,
    members_of,
    of_second_class,
    plot_tomography,
    posterior_rates,
    rate_table,
    rates_and_slopes,
    refuse_groups_in_cells,
    released,
    tomography,
)
from ._report import BagReport, bag_influence, bag_report, miss
from ._sandwich import (
    STEP,
    BagSums,
    bag_gradients,
    bag_hessians,
    influences,
    read_fit,
    sandwich,
    steps_of,
)
from ._table import (
    CoefficientTable,
    check_gradient,
    check_level,
    check_maximum,
    coefficient_table,
    covariance_of,
)

__all__ = [
    "BagBootstrap",
    "BagDeviation",
    "BagReport",
    "CoefficientTable",
    "accuracy_bounds",
    "bag_bootstrap",
    "bag_deviation",
    "bag_influence",
    "bag_report",
    "chunk_coefficient_table",
    "chunk_group_rate",
    "coefficient_table",
    "expected_accuracy",
    "group_rate",
    "group_rate_bounds",
    "plot_tomography",
    "tomography",
]
