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

from typing import NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from ..base import check_features, read_bags
from ..proportions import check_whole
from ._combine import (
    TestResult,
    cauchy_combination,
    check_level,
    combine_views,
    pearson_tail,
    smallest_shift,
    twice_the_smaller,
)
from ._features import Views, embed, normal_scores, unit_total, views, waves, whiten
from ._label_given_features import (
    LEAST_LEFT,
    add_trees,
    class_probabilities,
    conditional_mean,
    effect_basis,
    label_shifts,
    label_test,
    out_of_fold,
)
from ._lack_of_fit import (
    NO_TEST,
    AffineResult,
    BagMoments,
    Design,
    Shape,
    affine_design,
    affine_pvalue,
    affine_test,
    affine_tests,
    bag_moments,
    class_means_are_known,
    cumulants,
    fit_cumulants,
    gram_cumulants,
    is_varied,
    label_covariance,
    lack_of_fit,
    noise_cumulants,
    noise_shape,
    ratio_tail,
    smooth_noise,
    third_moment_cumulant,
    within_class_noise,
    without_class_differences,
)
from ._permutations import (
    between_energy,
    cell_codes,
    cell_sums,
    crosstab,
    group_means,
    permutation_test,
    permuted_energies,
    smallest_table_shift,
    spread,
    table_test,
    three_moments,
    two_bag_test,
)
from ._report import SMALL_SHIFT, Diagnosis, as_symbols, read_results

__all__ = [
    "LEAST_LEFT",
    "NO_TEST",
    "SMALL_SHIFT",
    "AffineResult",
    "BagMoments",
    "Design",
    "Diagnosis",
    "Problem",
    "Shape",
    "TestResult",
    "Views",
    "add_trees",
    "affine_design",
    "affine_pvalue",
    "affine_test",
    "affine_tests",
    "as_symbols",
    "bag_moments",
    "between_energy",
    "cauchy_combination",
    "cell_codes",
    "cell_sums",
    "check_level",
    "check_levels",
    "class_means_are_known",
    "class_probabilities",
    "combine_views",
    "conditional_mean",
    "crosstab",
    "cumulants",
    "diagnose",
    "effect_basis",
    "embed",
    "fit_cumulants",
    "gram_cumulants",
    "group_means",
    "is_varied",
    "join_tests",
    "label_covariance",
    "label_shifts",
    "label_test",
    "lack_of_fit",
    "noise_cumulants",
    "noise_shape",
    "normal_scores",
    "out_of_fold",
    "over_columns",
    "pearson_tail",
    "permutation_test",
    "permuted_energies",
    "ratio_tail",
    "read_problem",
    "read_results",
    "smallest_shift",
    "smallest_table_shift",
    "smooth_noise",
    "spread",
    "table_test",
    "tests_of_labelled",
    "tests_with_labels",
    "tests_without_labels",
    "third_moment_cumulant",
    "three_moments",
    "twice_the_smaller",
    "two_bag_test",
    "unit_total",
    "views",
    "waves",
    "whiten",
    "within_class_noise",
    "without_class_differences",
]


class Problem(NamedTuple):
    """Checked input of `diagnose`.

    X (n_instances, n_features); bags (n_instances,) and labels (n_instances,) as codes, -1 for an unknown label;
    proportions (n_bags, n_classes); exact, whether they are counts of these instances; names (n_features,) of the
    columns.
    """

    X: np.ndarray
    bags: np.ndarray
    proportions: np.ndarray
    labels: np.ndarray
    exact: bool
    names: list


def read_problem(X, bags, proportions, labels=None, exact=None):
    """Read the input of `diagnose`, and judge whether the proportions are counts of these instances.

    Parameters
    ----------
    X, bags, proportions, labels, exact
        See `diagnose`.

    Returns
    -------
    Problem

    Raises
    ------
    ValueError
        For malformed input; see `llpbook.base`.
    """
    if np.ndim(exact) or exact not in (None, True, False):
        raise ValueError(f"exact must be None, True or False, got {exact!r}")
    given, X = X, check_features(X)
    names = [str(c) for c in getattr(given, "columns", range(X.shape[1]))]
    data = read_bags(X, bags, proportions, labels, given)
    codes, matrix, known = data.bags, data.proportions, data.labels
    if labels is None:
        known = np.full(len(X), -1)
    elif not (known >= 0).any():
        raise ValueError("labels holds no known label; pass None instead")
    counts = np.bincount(codes, minlength=len(matrix))[:, None] * matrix
    whole = bool((np.abs(counts - np.round(counts)) < 0.02).all())
    if exact and not whole:
        counts = np.round(counts)
        sums = counts.sum(axis=1, keepdims=True)
        matrix = np.where(sums > 0, counts / np.maximum(sums, 1), matrix)
    return Problem(X, codes, matrix, known, whole if exact is None else exact, names)


def check_levels(alpha, correction, n_permutations, n_together):
    """Whether permutations can reject at all at this level.

    Parameters
    ----------
    alpha : float
    correction : {"holm", None}
    n_permutations : int
    n_together : int
        Statements tested together, at most, in a variant.

    Raises
    ------
    ValueError
        If a parameter is out of range, or the least p-value of a permutation test is above the level.
    """
    check_level(alpha)
    if not isinstance(correction, str | None) or correction not in ("holm", None):
        raise ValueError(f"correction must be 'holm' or None, got {correction!r}")
    check_whole("n_permutations", n_permutations, 0)
    level = alpha / (n_together if correction else 1)
    enough = max(19, int(np.ceil(1 / level - 1 - 1e-9)))
    if n_permutations < enough:
        together = f" / {n_together} statements" if correction else ""
        raise ValueError(
            f"n_permutations={n_permutations} makes {1 / (1 + n_permutations):.3g} the least p-value of a permutation "
            f"test; for alpha={alpha:g}{together} take n_permutations={enough} or more"
        )


def tests_without_labels(problem, alpha, n_permutations, rng):
    """The three tests of bags and proportions, on all instances.

    Parameters
    ----------
    problem : Problem
    alpha : float
    n_permutations : int
    rng : RandomState

    Returns
    -------
    dict of str to dict of str to TestResult
        For each statement, its tests by name.
    """
    X, bags, matrix, exact = problem.X, problem.bags, problem.proportions, problem.exact
    seen, cells = views(X, random_state=rng), cell_codes(bags)
    counts = np.bincount(bags, minlength=len(matrix))[:, None] * matrix
    table = TestResult(np.nan, np.nan, note="the shares may carry error of any size")
    if exact:
        table = table_test(
            np.round(counts).astype(int), max(1999, n_permutations), alpha, rng
        )
    moving = permutation_test(seen, cells, None, n_permutations, alpha, rng, "one bag")
    affine = affine_tests(seen, bags, matrix, exact, alpha)
    size = X.shape[1], seen.columns
    return {
        "X_B": {"permutation of bags": over_columns(moving, *size)},
        "Y_B": {"Pearson's X² of the counts": table},
        "X_B|Y": {"affine bag means": over_columns(affine, *size)},
    }


def over_columns(found, n_features, columns):
    """The result with the p-values of its columns at their places among all columns of X."""
    if found.by_column is None:
        return found
    return found._replace(by_column=spread(found.by_column, columns, n_features))


def tests_with_labels(problem, alpha, n_permutations, rng):
    """What labels add: tests of four statements, and of Y ⊥ B where the proportions do not tell it.

    Parameters
    ----------
    problem : Problem
        The instances with a known label are used.
    alpha : float
    n_permutations : int
    rng : RandomState

    Returns
    -------
    dict of str to dict of str to TestResult
    """
    known = problem.labels >= 0
    X, y, b = problem.X[known], problem.labels[known], cell_codes(problem.bags[known])
    y = cell_codes(y)
    if np.ptp(X, axis=0).any():
        found = tests_of_labelled(X, y, b, alpha, n_permutations, rng)
    else:
        note = "the labelled instances have equal features"
        nothing = TestResult(np.nan, np.nan, note=note)
        about_features = ("X_Y", "X_Y|B", "X_B|Y", "Y_B|X")
        found = {s: {"labelled instances": nothing} for s in about_features}
    if not problem.exact:
        table = table_test(crosstab(b, y), max(1999, n_permutations), alpha, rng)
        found["Y_B"] = {"Pearson's X² of the labels": table}
    return found


def tests_of_labelled(X, y, b, alpha, n_permutations, rng):
    """Tests of the four statements about features, on instances whose label is known.

    Parameters
    ----------
    X : ndarray, shape (n_labelled, n_features)
        Not all rows equal.
    y, b : ndarray of int, shape (n_labelled,)
        Class and bag, as codes 0, 1, ….
    alpha : float
    n_permutations : int
    rng : RandomState

    Returns
    -------
    dict of str to dict of str to TestResult
    """
    seen, both = views(X, random_state=rng), cell_codes(b, y)

    def permute(cells, groups, single):
        found = permutation_test(
            seen, cells, groups, n_permutations, alpha, rng, single
        )
        return over_columns(found, X.shape[1], seen.columns)

    labels = permute(y, None, "all labels are of one class")
    within_bags = permute(both, b, "no bag has labels of two classes")
    within_classes = permute(both, y, "no class has labels in two bags")
    Z = seen.features[:, -len(seen.columns) :]
    return {
        "X_Y": {"permutation of labels": labels},
        "X_Y|B": {"permutation of labels within bags": within_bags},
        "X_B|Y": {"permutation of bags within classes": within_classes},
        "Y_B|X": {"held-out gain by the bag": label_test(Z, y, b, alpha, rng)},
    }


def join_tests(tests):
    """One result a statement: where two tests are of one statement, twice the smaller p-value.

    Parameters
    ----------
    tests : dict of str to TestResult
        By name; one or two.

    Returns
    -------
    name : str
    TestResult
    """
    able = {n: r for n, r in tests.items() if np.isfinite(r.pvalue)}
    if not able:
        why = "; ".join(f"{r.note} ({n})" for n, r in tests.items())
        note = why if len(tests) > 1 else next(iter(tests.values())).note
        return " + ".join(tests), TestResult(np.nan, np.nan, note=note)
    if len(able) == 1:
        return next(iter(able.items()))
    pvalue = twice_the_smaller([r.pvalue for r in able.values()])
    first = min(able.values(), key=lambda r: r.pvalue)
    shift = np.nanmin([r.detectable for r in able.values()])
    columns = [r.by_column for r in able.values() if r.by_column is not None]
    by_column = np.minimum(1, len(columns) * np.fmin.reduce(columns))
    note = "twice the smaller of " + ", ".join(
        f"{r.pvalue:.2g} ({n})" for n, r in able.items()
    )
    return " + ".join(able), TestResult(first.statistic, pvalue, shift, by_column, note)


def diagnose(
    X, bags, proportions, labels=None, alpha=0.05, exact=None, correction="holm",
    n_permutations=199, random_state=0,
):  # fmt: skip
    r"""Which variants of the taxonomy do these bags leave possible?

    From bags and proportions three statements can be tested, on all instances: Y ⊥ B from the counts, X ⊥ B from the
    features, and X ⊥ B | Y since it makes the mean embeddings of the bags affine in their proportions. Labels add
    tests of the other three, and a second one of X ⊥ B | Y. A variant is rejected if one of its independences is.

    Parameters
    ----------
    X : array-like, shape (n_instances, n_features)
        Rows independent of one another. The names of columns of a DataFrame are used in the report.
    bags : array-like, shape (n_instances,)
    proportions : array-like, Series, dict or DataFrame
        See `llpbook.base.check_proportions`.
    labels : array-like, shape (n_instances,), optional
        Class labels, -1 for unknown; whose label is known must be chance.
    alpha : float, default 0.05
        Level at which a true statement, or a true variant, is rejected.
    exact : bool or None, default None
        Whether the proportions are counts of these very instances, up to rounding to the nearest count. None: if they
        are whole counts. If they are not (a survey, a census of other people), say False: Y ⊥ B is then tested with
        labels only, and X ⊥ B | Y where errors of the shares cannot show.
    correction : {"holm", None}, default "holm"
        For the several statements of one variant: Holm's, so that a true variant is rejected with probability alpha at
        most. None: at alpha each.
    n_permutations : int, default 199
    random_state : int, RandomState or None, default 0

    Returns
    -------
    Diagnosis
        ``.variants``, ``.pvalues``, ``.tests``, ``.by_column``, ``.to_frame()``, ``.plot()``; `print` it.

    Raises
    ------
    ValueError
        For malformed input, see `llpbook.base`; for fewer permutations than the level needs.

    Notes
    -----
    The affine test needs more bags than there are classes. A shift of the features that goes with the proportions, for
    all classes alike, looks to it like other class means; it shows only where it is so large that the bags vary less
    inside than classes so far apart would have them vary. Cost: :math:`O(R n D)` for :math:`R` permutations.
    """
    check_levels(alpha, correction, n_permutations, 3 if labels is None else 4)
    problem, rng = (
        read_problem(X, bags, proportions, labels, exact),
        check_random_state(random_state),
    )
    found = tests_without_labels(problem, alpha, n_permutations, rng)
    if labels is not None:
        more = tests_with_labels(problem, alpha, n_permutations, rng)
        found = {s: found.get(s, {}) | more.get(s, {}) for s in [*found, *more]}
    joined = {statement: join_tests(tests) for statement, tests in found.items()}
    return read_results(problem, joined, alpha, correction, exact is None)
