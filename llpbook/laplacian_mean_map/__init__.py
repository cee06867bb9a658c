r"""Laplacian and alternating Mean Map: class means per bag, tied to those of similar bags; labels that fit best.

If class means differ between bags, give each bag its own, :math:`m_{kj}`, and ask that similar bags have similar class
means. With :math:`V_{kl}` the similarity of the means of two bags,

.. math:: \min_{M} \sum_k D_k \bigl\lVert \bar x_k - \textstyle\sum_j \pi_{kj} m_{kj} \bigr\rVert^2
          + \tau \sum_j \Bigl( \tfrac12 \sum_{k, l} V_{kl} \lVert m_{kj} - m_{lj} \rVert^2
          + \varepsilon \sum_k \lVert m_{kj} \rVert^2 \Bigr) .

Then follow the mean operator and MeanMap's classifier. `AlternatingMeanMap` continues: it labels the instances of each
bag so that the counts are right and the loss is smallest, fits these labels, and repeats.

Chapter: ``book/laplacian_mean_map``. Sources: patrini2014; grid of franco2023.
"""

from .._counts import whole_counts
from ._alternating import AlternatingMeanMap, WarmMeanMap, alternate
from ._graph import gaussian_similarity, laplacian_times
from ._laplacian import (
    LaplacianMeanMap,
    bag_class_means,
    normal_equations,
    operator_by_adjoint,
    operator_of_bags,
    operator_weights,
)
from ._solver import solve_normal_equations

__all__ = ["AlternatingMeanMap", "LaplacianMeanMap"]
