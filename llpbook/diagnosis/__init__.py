r"""Diagnosis: tests of independence that show which variants of the problem the data leave possible.

Features X, label Y and bag B of an instance can depend on one another in seven named ways (`llpbook.taxonomy`), and
what can be learned depends on which of them holds. `diagnose` tests the statements of independence: three from bags and
proportions alone, all six with labels, which add tests and replace none. A variant is rejected if one of its
independences is; nothing is ever confirmed, and every test that found nothing says what it would have found.

X ⊥ B | Y without labels: the lack of fit of bag means that should be affine in the proportions,

.. math:: Q = \min_{\mu} \sum_b n_b \Big\lVert m_b - \sum_y \pi_{by}\, \mu_y \Big\rVert^2 .

X against B and Y: permutations of bags within groups (anderson2001). Y against B: a table of counts. Y ⊥ B | X: a
classifier that may see the bag (lundborg2024). Features are compared in three views: whitened components, Fourier
features (rahimi2007), and each column alone.

Chapter: ``book/diagnosis``. Source: franco2023 (section 4.5, which leaves the tests open).
"""

from ._affine import (
    ERRORS_LEFT,
    NO_DIRECTION,
    NO_LACK,
    NO_VARIANCE,
    AffineResult,
    affine_test,
    affine_tests,
    bag_moments,
    difference_variance,
    expected_lack,
    lack_of_fit,
    no_test,
    without_class_differences,
)
from ._diagnose import (
    check_levels,
    diagnose,
    join_tests,
    read_problem,
    tests_with_labels,
    tests_without_labels,
)
from ._permutations import permutation_test, table_test, two_bag_test
from ._report import Diagnosis
from ._views import TestResult, Views, combine_views, smallest_shift, views

__all__ = ["Diagnosis", "TestResult", "diagnose", "two_bag_test"]
