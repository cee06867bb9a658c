"""The way of a diagnosis: input, checked; the tests; one result a statement; the report."""

from typing import NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from ..base import check_features, read_bags, whole_counts
from ..proportions import check_whole
from ._combine import check_level
from ._report import read_results
from ._statements import join_tests, tests_with_labels, tests_without_labels


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
    sizes = np.bincount(codes, minlength=len(matrix))
    counts, sizes = whole_counts(matrix, sizes), sizes[:, None]
    whole = bool((np.abs(counts - sizes * matrix) < 0.02).all())
    if exact and not whole:
        matrix = np.where(sizes > 0, counts / np.maximum(sizes, 1), matrix)
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
