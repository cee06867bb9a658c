r"""DSDD: the sign of the density difference, without a density.

For every function with values in :math:`[-1, 1]`, :math:`\int |p - p'| \ge \int g\, (p - p')`, with equality for
:math:`g = \operatorname{sign}(p - p')`, the labels that are sought. So clip a linear model :math:`g = \Phi\alpha` by
:math:`R(z) = \max(-1, \min(1, z))`, replace integrals by means over the two samples, and minimize

.. math:: J(\alpha) = w' \operatorname{mean}_{j} R(g(x'_j)) - w \operatorname{mean}_{i} R(g(x_i))
          + \tfrac{\lambda}{2} \lVert \alpha \rVert^2 .

:math:`J` is convex plus concave. CCCP bounds the concave part by a plane, minimizes, tightens the bound, and repeats;
each round is a quadratic program. The weights :math:`w, w'` are 1 in the paper.

Chapter: ``book/dsdd``. Source: duplessis2013 (section 3, appendix A), whose equation numbers are given below.
"""

from ._cccp import (
    Round,
    cccp,
    clip,
    convex_part,
    hinge,
    objective,
    sign_gap,
    tighten_bound,
    upper_bound,
)
from ._estimator import (
    COPIES,
    DSDD,
    LAMS,
    SIGMAS,
    cv_gaps,
    penalty_unit,
)
from ._solver import minimize_bound

__all__ = ["DSDD"]
