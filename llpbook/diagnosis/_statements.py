"""Which tests each statement of independence gets, without labels and with them, and one result of several."""

import numpy as np

from ..base import crosstab, whole_counts
from ._combine import TestResult, twice_the_smaller
from ._features import views
from ._label_given_features import label_test
from ._lack_of_fit import affine_tests
from ._permutations import cell_codes, permutation_test, spread, table_test


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
    counts = whole_counts(matrix, np.bincount(bags, minlength=len(matrix)))
    table = TestResult(np.nan, np.nan, note="the shares may carry error of any size")
    if exact:
        table = table_test(counts, max(1999, n_permutations), alpha, rng)
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
        found = tests_of_labeled(X, y, b, alpha, n_permutations, rng)
    else:
        note = "the labeled instances have equal features"
        nothing = TestResult(np.nan, np.nan, note=note)
        about_features = ("X_Y", "X_Y|B", "X_B|Y", "Y_B|X")
        found = {s: {"labeled instances": nothing} for s in about_features}
    if not problem.exact:
        table = table_test(crosstab(b, y), max(1999, n_permutations), alpha, rng)
        found["Y_B"] = {"Pearson's X² of the labels": table}
    return found


def tests_of_labeled(X, y, b, alpha, n_permutations, rng):
    """Tests of the four statements about features, on instances whose label is known.

    Parameters
    ----------
    X : ndarray, shape (n_labeled, n_features)
        Not all rows equal.
    y, b : ndarray of int, shape (n_labeled,)
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
