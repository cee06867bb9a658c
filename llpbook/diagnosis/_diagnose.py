"""`diagnose`: check the input, run the tests of each statement of independence, and join them to one result each."""

from typing import NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from .._counts import crosstab, whole_counts
from .._input import (
    BY_CHANCE,
    ArrayLike,
    Matrix,
    Proportions,
    RandomState,
    check_features,
    check_whole,
)
from ..base import read_bags, single_rows
from ..taxonomy import STATEMENTS
from ._affine import affine_tests
from ._label_given_features import label_test
from ._permutations import cell_codes, permutation_test, table_test
from ._report import Diagnosis
from ._views import TestResult, check_level, views


class Problem(NamedTuple):
    """Checked input of `diagnose`.

    X (n_instances, n_features); bags (n_instances,) and labels (n_instances,) as codes, -1 for an unknown label;
    proportions (n_bags, n_classes); exact, True if they are counts of these instances; names (n_features,) of the
    columns.
    """

    X: np.ndarray
    bags: np.ndarray
    proportions: np.ndarray
    labels: np.ndarray
    exact: bool
    names: list


def read_problem(X, bags, proportions, labels=None, exact=None, counts=None):
    """Check the input of `diagnose`; by default judge if the proportions are counts of these instances."""
    if np.ndim(exact) or exact not in (None, True, False):
        raise ValueError(f"exact must be None, True or False, got {exact!r}")
    features = check_features(X)
    names = [str(c) for c in getattr(X, "columns", range(features.shape[1]))]
    data = read_bags(features, bags, proportions, labels, X, counts=counts)
    data = single_rows(data)
    codes, matrix, classes = data.bags, data.proportions, data.labels
    if labels is None:
        classes = np.full(len(codes), -1)
    elif not (classes >= 0).any():
        raise ValueError("labels holds no known label; pass None instead")
    sizes = np.bincount(codes, minlength=len(matrix))
    nearest, sizes = whole_counts(matrix, sizes), sizes[:, None]
    whole = bool((np.abs(nearest - sizes * matrix) < 0.02).all())
    # In large bags rounded shares of any other people are possible counts, too.
    whole &= data.chance <= BY_CHANCE
    if exact and not whole:
        matrix = np.where(sizes > 0, nearest / np.maximum(sizes, 1), matrix)
    exact = whole if exact is None else exact
    return Problem(data.X, codes, matrix, classes, exact, names)


def check_levels(alpha, n_permutations, n_together):
    """Refuse levels at which the permutation tests of ``n_together`` statements cannot reject."""
    check_level(alpha)
    check_whole("n_permutations", n_permutations, 0)
    enough = max(19, int(np.ceil(n_together / alpha - 1 - 1e-9)))
    if n_permutations < enough:
        raise ValueError(
            f"n_permutations={n_permutations} makes {1 / (1 + n_permutations):.3g} the least p-value of a permutation "
            f"test; for alpha={alpha:g} / {n_together} statements take n_permutations={enough} or more"
        )


def tests_without_labels(problem, alpha, n_permutations, rng):
    """Run the three tests of bags and proportions, on all instances: statement, name of the test, result."""
    X, bags, matrix, exact = problem.X, problem.bags, problem.proportions, problem.exact
    seen, cells = views(X, random_state=rng), cell_codes(bags)
    counts = whole_counts(matrix, np.bincount(bags, minlength=len(matrix)))
    note = "the shares may carry error of any size; exact=True takes them for counts"
    table = TestResult(np.nan, np.nan, note=note)
    if exact:
        table = table_test(counts, max(1999, n_permutations), alpha, rng)
    moving = permutation_test(seen, cells, None, n_permutations, alpha, rng, "one bag")
    return [
        ("X_B", "permutation of bags", moving),
        ("Y_B", "Pearson's X² of the counts", table),
        ("X_B|Y", "affine bag means", affine_tests(seen, bags, matrix, exact, alpha)),
    ]


def tests_with_labels(problem, alpha, n_permutations, rng):
    """Run the tests of labels: of four statements, and of Y ⊥ B where the proportions may carry error."""
    labeled = problem.labels >= 0
    X, b, y = problem.X[labeled], problem.bags[labeled], problem.labels[labeled]
    b, y = cell_codes(b), cell_codes(y)
    if np.ptp(X, axis=0).any():
        tests = _tests_of_labeled(X, y, b, alpha, n_permutations, rng)
    else:
        note = "the labeled instances have equal features"
        none = TestResult(np.nan, np.nan, note=note)
        about_features = ("X_Y", "X_Y|B", "X_B|Y", "Y_B|X")
        tests = [(s, "labeled instances", none) for s in about_features]
    if not problem.exact:
        table = table_test(crosstab(b, y), max(1999, n_permutations), alpha, rng)
        tests.append(("Y_B", "Pearson's X² of the labels", table))
    return tests


def _tests_of_labeled(X, y, b, alpha, n_permutations, rng):
    """Run the tests of the four statements about features, not all of them equal, where all labels are known."""
    seen, both = views(X, random_state=rng), cell_codes(b, y)
    single = {
        "X_Y": ("labels", y, None, "all labels are of one class"),
        "X_Y|B": ("labels within bags", both, b, "no bag has labels of two classes"),
        "X_B|Y": ("bags within classes", both, y, "no class has labels in two bags"),
    }
    tests = []
    for statement, (what, cells, groups, note) in single.items():
        test = permutation_test(seen, cells, groups, n_permutations, alpha, rng, note)
        tests.append((statement, f"permutation of {what}", test))
    Z = seen.features[:, -seen.varied.sum() :]
    gain = label_test(Z, y, b, alpha, rng)
    return [*tests, ("Y_B|X", "held-out gain by the bag", gain)]


def join_tests(tests):
    """Join one or two tests of a statement, to a name and a result; of two, the p-value is twice the smaller one."""
    able = {n: r for n, r in tests.items() if np.isfinite(r.pvalue)}
    if not able and len(tests) > 1:
        note = "; ".join(f"{r.note} ({n})" for n, r in tests.items())
        return " + ".join(tests), TestResult(np.nan, np.nan, note=note)
    if len(able) < 2:
        return next(iter((able or tests).items()))
    first, second = sorted(able.values(), key=lambda r: r.pvalue)
    note = "twice the smaller of " + ", ".join(
        f"{r.pvalue:.2g} ({n})" for n, r in able.items()
    )
    columns = [r.by_column for r in (first, second) if r.by_column is not None]
    return " + ".join(able), TestResult(
        first.statistic,
        min(1.0, 2 * first.pvalue),
        np.fmin(first.detectable, second.detectable),
        np.minimum(1, len(columns) * np.fmin.reduce(columns)),
        note,
    )


def diagnose(
    X: Matrix,
    bags: ArrayLike,
    proportions: Proportions,
    *,
    labels: ArrayLike | None = None,
    counts: ArrayLike | None = None,
    alpha: float = 0.05,
    exact: bool | None = None,
    n_permutations: int = 199,
    random_state: RandomState = 0,
) -> Diagnosis:
    r"""Test which variants of the taxonomy given bags leave possible.

    From bags and proportions three statements can be tested, on all instances: Y ⊥ B from the counts, X ⊥ B from the
    features, and X ⊥ B | Y since it makes the mean embeddings of the bags affine in their proportions. Labels add
    tests of the other three, and a second one of X ⊥ B | Y. A variant is rejected if one of its independences is.

    Parameters
    ----------
    X : array-like, shape (n_instances, n_features)
        Rows independent of one another. The names of columns of a DataFrame are used in the report.
    bags : array-like, shape (n_instances,)
    proportions : array-like, Series, dict or DataFrame
        See `llpbook.proportions.check_proportions`.
    labels : array-like, shape (n_instances,), optional
        Class labels, -1 for unknown; whose label is known must be chance.
    counts : array-like of int, shape (n_instances,), optional
        How many equal instances each row stands for, as in a table of cells; one if not given. Each is then a row of
        its own.
    alpha : float, default 0.05
        Level at which a true statement is rejected, and by Holm's correction for its several statements a true variant.
    exact : bool or None, default None
        True if the proportions are counts of these very instances, up to rounding to the nearest count. None: True if
        they are whole counts. Say False for other shares (a survey, a census of other people): Y ⊥ B is then tested
        with labels only, and X ⊥ B | Y where errors of the shares cannot show.
    n_permutations : int, default 199
    random_state : int, RandomState or None, default 0

    Returns
    -------
    Diagnosis
        ``.variants``, ``.pvalues``, ``.tests``, ``.by_column``, ``.to_frame()``; `print` it.

    Raises
    ------
    ValueError
        For malformed input, see `llpbook.base`; for fewer permutations than the level needs.

    Notes
    -----
    The affine test needs more bags than there are classes. A shift of the features that goes with the proportions, for
    all classes alike, looks to it like other class means. Cost: :math:`O(R n D)` for :math:`R` permutations.

    Examples
    --------
    >>> import numpy as np
    >>> from llpbook import diagnose
    >>> rng = np.random.default_rng(0)
    >>> bags = np.repeat(np.arange(6), 50)
    >>> X = rng.normal(size=(300, 2)) + rng.normal(size=(6, 2))[bags]
    >>> diagnosis = diagnose(X, bags, np.arange(2, 8) / 10)
    >>> diagnosis.verdict("X_B|Y"), "simple" in diagnosis.variants
    ('rejected', False)
    """
    check_levels(alpha, n_permutations, 3 if labels is None else 4)
    problem = read_problem(X, bags, proportions, labels, exact, counts)
    rng = check_random_state(random_state)
    tests = tests_without_labels(problem, alpha, n_permutations, rng)
    if labels is not None:
        tests += tests_with_labels(problem, alpha, n_permutations, rng)
    by_statement = {
        s: {name: result for about, name, result in tests if about == s}
        for s in STATEMENTS
    }
    joined = {s: join_tests(tests) for s, tests in by_statement.items() if tests}
    return Diagnosis.of(problem, joined, alpha, judged=exact is None)
