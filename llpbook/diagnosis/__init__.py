r"""Which variant of the problem is it? The tests that say which variants the data leave possible.

Features X, label Y and bag B of an instance can depend on one another in seven named ways (`llpbook.taxonomy`), and
what can be learned depends on which of them holds. `diagnose` tests the statements of independence: all six with
labels, three from bags and proportions alone. A variant is rejected if one of its independences is.

Distributions of features are compared by their mean embeddings: permutations of bags within groups for X against B and
Y, a table of counts for Y and B, a classifier that may see the bag for Y ⊥ B | X, and the lack of fit of a linear model
of the bag means for X ⊥ B | Y without labels.

Chapter: ``book/diagnosis``. Sources: franco2023 (section 4.5, which leaves the tests open); rahimi2007 for the
features, anderson2001 for the permutations, lundborg2024 for Y ⊥ B | X, imhof1961 for the approximation of a quadratic
form by three moments.
"""

import numpy as np
import pandas as pd
from sklearn.utils import check_random_state

from ..base import check_bags, check_features, check_labels, check_proportions
from ._independence import (
    TestResult,
    add_trees,
    bag_effects,
    between_energy,
    cell_codes,
    cell_sums,
    class_probabilities,
    conditional_mean,
    crosstab,
    effect_basis,
    embed,
    group_means,
    label_test,
    label_tests,
    out_of_fold,
    permutation_test,
    proportion_tests,
    table_test,
)
from ._lack_of_fit import (
    AffineResult,
    BagMoments,
    Design,
    Shape,
    affine_design,
    affine_test,
    bag_moments,
    class_means_are_known,
    cumulants,
    fit_cumulants,
    gram_cumulants,
    label_covariance,
    lack_of_fit,
    noise_cumulants,
    noise_shape,
    smooth_noise,
    within_class_noise,
)
from ._report import Diagnosis

__all__ = [
    "AffineResult",
    "BagMoments",
    "Design",
    "Diagnosis",
    "Shape",
    "TestResult",
    "add_trees",
    "affine_design",
    "affine_test",
    "bag_effects",
    "bag_moments",
    "between_energy",
    "cell_codes",
    "cell_sums",
    "class_means_are_known",
    "class_probabilities",
    "conditional_mean",
    "crosstab",
    "cumulants",
    "diagnose",
    "effect_basis",
    "embed",
    "fit_cumulants",
    "gram_cumulants",
    "group_means",
    "label_covariance",
    "label_test",
    "label_tests",
    "lack_of_fit",
    "noise_cumulants",
    "noise_shape",
    "out_of_fold",
    "permutation_test",
    "proportion_tests",
    "smooth_noise",
    "table_test",
    "within_class_noise",
]


def diagnose(
    X, bags, proportions, labels=None, alpha=0.05, n_permutations=199, random_state=0
):
    r"""Which variants of the taxonomy do these bags leave possible?

    Without labels, three statements can be tested: Y ⊥ B from the counts, X ⊥ B from the features, and X ⊥ B | Y since
    it makes the mean embeddings of the bags affine in their proportions. With labels all six can. A variant is rejected
    if one of its independences is.

    Parameters
    ----------
    X : array-like, shape (n_instances, n_features)
    bags : array-like, shape (n_instances,)
    proportions : array-like, Series, dict or DataFrame
        See `llpbook.base.check_proportions`.
    labels : array-like, shape (n_instances,), optional
        Class labels, -1 for unknown; the tests then are on the instances with a label, and need no proportions.
    alpha : float, default 0.05
        Level of each test.
    n_permutations : int, default 199
    random_state : int, RandomState or None, default 0

    Returns
    -------
    Diagnosis
        ``.variants``, ``.pvalues``, ``.plot()``; `print` it.

    Raises
    ------
    ValueError
        For malformed input; see `llpbook.base`.

    Notes
    -----
    The affine test needs more bags than there are classes. A shift of the features that goes with the proportions, for
    all classes alike, looks to it like other class means; it shows only where it is so large that the bags vary less
    inside than classes so far apart would have them vary.
    """
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must lie in (0, 1), got {alpha}")
    if n_permutations < 1:
        raise ValueError(f"n_permutations must be at least 1, got {n_permutations}")
    X, rng = check_features(X), check_random_state(random_state)
    matrix, classes, keys = check_proportions(proportions)
    codes = check_bags(bags, len(X), len(matrix), keys)
    sizes = np.bincount(codes, minlength=len(matrix))
    wanted = sizes[:, None] * matrix
    exact = bool((np.abs(wanted - np.round(wanted)) < 0.02).all())
    known = np.zeros(len(X), dtype=bool)
    if labels is None:
        found = proportion_tests(X, codes, matrix, exact, n_permutations, rng)
    else:
        columns = check_labels(labels, classes, len(X))
        known = columns >= 0
        if not known.any():
            raise ValueError("labels holds no known label; pass None instead")
        found = label_tests(X[known], codes[known], columns[known], n_permutations, rng)
    columns = ["test", "statistic", "pvalue"]
    tests = pd.DataFrame.from_dict(found, orient="index", columns=columns)
    return Diagnosis(
        tests, alpha, int((sizes > 0).sum()), len(X), int(known.sum()), exact
    )
