r"""Which variant of the problem is it? The tests that say which variants the data leave possible.

Features X, label Y and bag B of an instance can depend on one another in seven named ways (`llpbook.taxonomy`), and
what can be learned depends on which of them holds. `diagnose` tests the statements of independence: three from bags and
proportions alone, all six with labels, which add tests and replace none. A variant is rejected if one of its
independences is; nothing is ever confirmed, and every test that found nothing says what it would have found.

Features are compared in three views (`views`): whitened components, Fourier features, and each column alone. X against
B and Y: permutations of bags within groups. Y against B: a table of counts. X ⊥ B | Y without labels: the lack of fit
of bag means that should be affine in the proportions,

.. math:: Q = \min_{\mu} \sum_k n_k \Big\lVert m_k - \sum_c \pi_{kc}\, \mu_c \Big\rVert^2 .

Y ⊥ B | X: a classifier that may see the bag.

Chapter: ``book/diagnosis``. Sources: franco2023 (section 4.5, which leaves the tests open); rahimi2007 for the
Fourier features, anderson2001 for the permutations, liu2020 for the combination of p-values, lundborg2024 for Y ⊥ B |
X, imhof1961 for the approximation of a quadratic form by three moments.
"""

from ._combine import (
    TestResult,
    cauchy_combination,
    combine_views,
    pearson_tail,
    smallest_shift,
)
from ._diagnose import (
    check_levels,
    diagnose,
    join_tests,
    read_problem,
    tests_with_labels,
    tests_without_labels,
)
from ._features import Views, embed, normal_scores, unit_total, views, waves, whiten
from ._label_given_features import (
    LEAST_LEFT,
    class_probabilities,
    conditional_mean,
    effect_basis,
    label_shifts,
    label_test,
    out_of_fold,
)
from ._lack_of_fit import (
    NO_LACK,
    NO_VARIANCE,
    AffineResult,
    affine_pvalue,
    affine_test,
    affine_tests,
    lack_of_fit,
    no_test,
    ratio_tail,
    without_class_differences,
)
from ._noise import (
    NO_DIRECTION,
    Design,
    Shape,
    affine_design,
    bag_moments,
    class_means_are_known,
    cumulants,
    expected_lack,
    fit_cumulants,
    gram_cumulants,
    label_covariance,
    noise_cumulants,
    noise_shape,
    smooth_noise,
    taken_variance,
    third_moment_cumulant,
    within_class_noise,
)
from ._permutations import (
    between_energy,
    cell_codes,
    cell_sums,
    group_means,
    permutation_test,
    permuted_energies,
    smallest_table_shift,
    table_test,
    three_moments,
    two_bag_test,
)
from ._report import Diagnosis, as_symbols

__all__ = ["Diagnosis", "TestResult", "diagnose", "two_bag_test"]
