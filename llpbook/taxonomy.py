r"""The variants of learning from label proportions: patterns of dependence between features, label and bag.

An instance has features X, a label Y and a bag B. Six statements say what depends on what: each pair independent or
not, and each pair given the third variable,

.. math:: U \perp V \mid W \quad\Longleftrightarrow\quad p(u, v, w)\, p(w) = p(u, w)\, p(v, w)
          \text{ for all } u, v, w .

Of the 64 patterns of answers, two rules of inference leave 18, and 10 of these have features that depend on the label.
Some directed acyclic graph (DAG) on X, Y and B implies seven of the ten by d-separation; these are the named variants.

A *pattern* is the frozenset of the statements that hold, written as in ``STATEMENTS`` (``"X_Y|B"``: X and Y are
independent given B). A *DAG* is a frozenset of edges ``(parent, child)``. A *joint* is an array of probabilities with
the axes X, Y, B; entries may be ``fractions.Fraction``, then every test is exact.

Chapter: ``book/taxonomy``. Source: franco2023 (section 2, Table 1, A.1).
"""

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from itertools import combinations, compress, count, permutations, product
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.utils import check_random_state

from ._input import ArrayLike

__all__ = [
    "dags_of",
    "independences",
    "name_of",
    "pattern_of_dag",
    "table",
    "varies_between_bags",
]

#: Features, label, bag: the order of the axes of a joint.
NODES = ("X", "Y", "B")

#: The two variables of each statement, and the one that is given.
ROLES = [
    (a, b, given)
    for a, b in combinations(NODES, 2)
    for given in (None, *(v for v in NODES if v not in (a, b)))
]
#: The six statements of independence, the columns of `table`.
STATEMENTS = ("X_Y", "X_B", "Y_B", "X_Y|B", "X_B|Y", "Y_B|X")

#: The names that the paper gives to patterns (franco2023, Table 1).
VARIANTS = {
    "Naive": frozenset({"X_B", "Y_B", "X_B|Y", "Y_B|X"}),
    "Label collider": frozenset({"X_B"}),
    "Feature collider": frozenset({"Y_B"}),
    "Cross-bag": frozenset({"X_Y|B"}),
    "Simple": frozenset({"X_B|Y"}),
    "Intermediate": frozenset({"Y_B|X"}),
    "Hard": frozenset(),
}


class Rule(NamedTuple):
    """If all premises hold, all statements of at least one conclusion hold; `print` it."""

    premises: frozenset
    conclusions: tuple

    def __str__(self):
        left = " and ".join(sorted(self.premises))
        either = (" and ".join(sorted(c)) for c in self.conclusions)
        return f"{left} => {' or '.join(either)}"

    def breaks(self, pattern):
        """True if a pattern has all premises and no conclusion."""
        return self.premises <= pattern and not any(
            c <= pattern for c in self.conclusions
        )


# --- patterns ------------------------------------------------------------------------------------------------


def statement(a, b, given=None):
    """Name of the statement that a and b are independent, given the third variable or not.

    Parameters
    ----------
    a, b : {"X", "Y", "B"}
    given : {"X", "Y", "B"}, optional

    Returns
    -------
    str
        One of ``STATEMENTS``.

    Raises
    ------
    ValueError
        If a variable is unknown or named twice.

    Examples
    --------
    >>> statement("B", "X", given="Y")
    'X_B|Y'
    """
    named = [v for v in (a, b, given) if v is not None]
    if not set(named) <= set(NODES) or len(set(named)) < len(named):
        raise ValueError(
            f"a, b and given must be different variables of {NODES}, got {named}"
        )
    pair = "_".join(sorted((a, b), key=NODES.index))
    return pair if given is None else f"{pair}|{given}"


def patterns():
    """All 64 sets of statements, in the order of a truth table: the first statement varies slowest."""
    truth = product((True, False), repeat=len(STATEMENTS))
    return [frozenset(compress(STATEMENTS, row)) for row in truth]


def rule_one():
    r"""Rules of intersection, in all roles; they need a positive joint distribution.

    :math:`U \perp V \mid W` and :math:`U \perp W \mid V` imply :math:`U \perp V` and :math:`U \perp W`, equation
    :eq:`eq-tax-rule-one`.

    Returns
    -------
    list of Rule
        Three: V and W may change places.

    Notes
    -----
    Source: franco2023, A.1, rule (1). Less than positivity is enough: draw an edge between :math:`v` and :math:`w`
    where :math:`p(v, w) > 0`; the rule holds if this graph is connected.
    """
    # eq: eq-tax-rule-one
    return [
        Rule(
            frozenset({statement(u, v, w), statement(u, w, v)}),
            (frozenset({statement(u, v), statement(u, w)}),),
        )
        for u, v, w in permutations(NODES)
        if v < w
    ]


def rule_two():
    r"""Rules of contraction, in all roles; they hold for every joint distribution.

    :math:`U \perp V \mid W` and :math:`U \perp W` imply :math:`U \perp V` and :math:`U \perp W \mid V`, equation
    :eq:`eq-tax-rule-two`.

    Returns
    -------
    list of Rule
        Six: one for each order of the three variables.

    Notes
    -----
    Source: franco2023, A.1, rule (2), which is the second conclusion alone, turned around: :math:`U \perp V \mid W` and
    :math:`U \not\perp W \mid V` imply :math:`U \not\perp W`. Next to rule one both forms leave the same patterns;
    where rule one does not hold, only this one is complete.
    """
    # eq: eq-tax-rule-two
    return [
        Rule(
            frozenset({statement(u, v, w), statement(u, w)}),
            (frozenset({statement(u, v), statement(u, w, v)}),),
        )
        for u, v, w in permutations(NODES)
    ]


def rule_binary(binary):
    r"""Additional rules for variables with two values.

    If V has two values, :math:`U \perp W` and :math:`U \perp W \mid V` imply :math:`U \perp V` or :math:`W \perp V`.

    Parameters
    ----------
    binary : iterable of {"X", "Y", "B"}
        The variables that have two values.

    Returns
    -------
    list of Rule
        One for each binary variable, with two conclusions of which one must hold.

    Notes
    -----
    Known as weak transitivity. Not in franco2023, which says that its taxonomy does not depend on the number of
    classes: with two, one of the ten patterns (the fourth row of its Table 1) cannot be; with a feature of two values,
    another (the sixth).
    """
    rules = []
    for v in binary:
        u, w = (other for other in NODES if other != v)
        premises = frozenset({statement(u, w), statement(u, w, v)})
        either = (frozenset({statement(u, v)}), frozenset({statement(w, v)}))
        rules.append(Rule(premises, either))
    return rules


def _check_pattern(pattern):
    """The pattern as a frozenset; ValueError if a member is not one of the statements."""
    unknown = sorted(set(pattern) - set(STATEMENTS))
    if unknown:
        raise ValueError(f"pattern must be a set of {STATEMENTS}, got {unknown}")
    return frozenset(pattern)


def broken_rules(pattern, positive=True, binary=()):
    """List the rules that a pattern breaks.

    Parameters
    ----------
    pattern : iterable of str
        The statements that hold; all others do not.
    positive : bool, default True
        True if every combination of values has a positive probability; if not, rule one is left out.
    binary : iterable of {"X", "Y", "B"}, default ()
        The variables that have two values.

    Returns
    -------
    list of Rule
    """
    pattern = _check_pattern(pattern)
    rules = rule_two() + rule_binary(binary) + (rule_one() if positive else [])
    return [rule for rule in rules if rule.breaks(pattern)]


def consistent(pattern, positive=True, binary=()):
    """True if some joint distribution has exactly this pattern.

    Parameters
    ----------
    pattern : iterable of str
    positive : bool, default True
    binary : iterable of {"X", "Y", "B"}, default ()
        See `broken_rules`.

    Returns
    -------
    bool

    Examples
    --------
    >>> sum(consistent(p) for p in patterns())
    18
    """
    return not broken_rules(pattern, positive, binary)


def interesting():
    """The ten consistent patterns in which features and label depend, rows 2 to 11 of the paper's Table 1."""
    return [p for p in patterns() if consistent(p) and "X_Y" not in p]


# --- graphs --------------------------------------------------------------------------------------------------


def _has_cycle(edges):
    """True if no order of the nodes has all parents before their children."""
    orders = [{v: k for k, v in enumerate(order)} for order in permutations(NODES)]
    return not any(all(at[p] < at[c] for p, c in edges) for at in orders)


def as_dag(dag):
    """The graph as a frozenset of edges; ValueError if it has a directed cycle or another node than X, Y and B."""
    dag = frozenset(dag)
    if other := {v for edge in dag for v in edge} - set(NODES):
        raise ValueError(f"dag must have no node but {NODES}, got {sorted(other)}")
    if _has_cycle(dag):
        raise ValueError(f"dag must have no directed cycle, got {sorted(dag)}")
    return dag


def all_dags():
    """The 25 directed acyclic graphs on X, Y and B, as sets of edges (parent, child), fewest edges first."""
    choices = [((), ((a, b),), ((b, a),)) for a, b in combinations(NODES, 2)]
    graphs = [frozenset(sum(edges, ())) for edges in product(*choices)]
    return sorted((dag for dag in graphs if not _has_cycle(dag)), key=len)


def d_separated(dag, a, b, given=None):
    r"""True if ``given``, the third node or nothing, d-separates two nodes of a DAG on X, Y and B.

    Equation :eq:`eq-tax-d-separation`: then, and only then, does every joint distribution that factors along the DAG
    have a and b independent given the third node, or without a condition.

    Parameters
    ----------
    dag : set of (str, str)
        Edges (parent, child).
    a, b : {"X", "Y", "B"}
    given : {"X", "Y", "B"}, optional

    Returns
    -------
    bool

    Raises
    ------
    ValueError
        If a node is unknown or named twice, or the graph has a cycle.
    """
    dag = as_dag(dag)
    statement(a, b, given)  # raises if these are not different nodes
    joined = [{*edge} for edge in dag]
    (w,) = {*NODES} - {a, b}
    if {a, b} in joined:
        return False
    collider = {(a, w), (b, w)} <= dag
    # eq: eq-tax-d-separation
    return not ({a, w} in joined and {b, w} in joined) or collider == (given is None)


def pattern_of_dag(dag: Iterable[tuple[str, str]]) -> frozenset:
    """Pattern that a DAG implies.

    Parameters
    ----------
    dag : set of (str, str)
        Edges (parent, child) between X, Y and B.

    Returns
    -------
    frozenset of str

    Raises
    ------
    ValueError
        If ``dag`` has a cycle or other nodes.

    Examples
    --------
    >>> from llpbook.taxonomy import pattern_of_dag
    >>> sorted(pattern_of_dag([("Y", "X"), ("Y", "B")]))
    ['X_B|Y']
    """
    dag = as_dag(dag)
    separated = [(a, b, w) for a, b, w in ROLES if d_separated(dag, a, b, w)]
    return frozenset(statement(a, b, w) for a, b, w in separated)


# --- names ---------------------------------------------------------------------------------------------------


def _names():
    """Names of the ten patterns in the order of `interesting`; the paper leaves three without one: "No DAG (1)" …"""
    names = {pattern: name for name, pattern in VARIANTS.items()}
    number = count(1)
    return {p: names.get(p) or f"No DAG ({next(number)})" for p in interesting()}


def name_of(pattern: Iterable[str]) -> str:
    """Name of a pattern.

    Parameters
    ----------
    pattern : iterable of str

    Returns
    -------
    str
        A name of `table`, or "Uninteresting" where features and label are independent.

    Raises
    ------
    ValueError
        If the pattern is inconsistent; the message names a rule it breaks.

    Examples
    --------
    >>> name_of({"X_B|Y"})
    'Simple'
    """
    pattern = _check_pattern(pattern)
    if broken := broken_rules(pattern):
        raise ValueError(
            f"pattern {sorted(pattern)} is inconsistent, it breaks {broken[0]}"
        )
    return "Uninteresting" if "X_Y" in pattern else _names()[pattern]


def dags_of(name: str) -> list[frozenset]:
    """List the DAGs that imply the pattern of a name.

    Parameters
    ----------
    name : str
        As `name_of` returns it, in upper or lower case.

    Returns
    -------
    list of frozenset of (str, str)

    Raises
    ------
    ValueError
        If no pattern has this name.

    Examples
    --------
    >>> from llpbook.taxonomy import dags_of
    >>> sorted(map(sorted, dags_of("simple")))
    [[('B', 'Y'), ('Y', 'X')], [('X', 'Y'), ('Y', 'B')], [('Y', 'B'), ('Y', 'X')]]
    """
    named = {n.lower(): p for p, n in _names().items()}
    key = str(name).lower()
    if key == "uninteresting":
        return [dag for dag in all_dags() if d_separated(dag, "X", "Y")]
    if key not in named:
        raise ValueError(
            f"name must be one of {[*named, 'uninteresting']}, got {name!r}"
        )
    return [dag for dag in all_dags() if pattern_of_dag(dag) == named[key]]


def table() -> pd.DataFrame:
    """Table of the taxonomy: the ten patterns, their names, and the number of DAGs that imply each.

    Returns
    -------
    DataFrame
        Ten rows in the order of the paper's Table 1; columns ``name``, the six ``STATEMENTS`` (True for
        independent) and ``n_dags``.

    Examples
    --------
    >>> from llpbook.taxonomy import table
    >>> table()[["name", "n_dags"]].head(3)
             name  n_dags
    0       Naive       2
    1  No DAG (1)       0
    2  No DAG (2)       0
    """
    implied = Counter(pattern_of_dag(dag) for dag in all_dags())
    names = _names()
    held = {s: [s in pattern for pattern in names] for s in STATEMENTS}
    n_dags = [implied[pattern] for pattern in names]
    return pd.DataFrame({"name": names.values(), **held, "n_dags": n_dags})


# --- joint distributions -------------------------------------------------------------------------------------


def as_joint(joint):
    """The joint distribution as an array of floats or fractions with the axes X, Y, B; ValueError if it is none."""
    joint = np.asarray(joint)
    joint = joint if joint.dtype == object else joint.astype(float)
    if joint.ndim != 3:
        raise ValueError(f"joint must have the 3 axes X, Y, B, got {joint.ndim}")
    if not (joint >= 0).all():
        raise ValueError(f"joint must have no negative entry or NaN, got {joint.min()}")
    if abs(joint.sum() - 1) > 1e-9:
        raise ValueError(f"joint must sum to 1, got {joint.sum()}")
    return joint


def random_joint(dag, sizes=3, random_state=None):
    r"""Draw a joint distribution that factors along a DAG.

    :math:`p(x, y, b) = \prod_v p(v \mid \text{parents of } v)`, equation :eq:`eq-tax-factor`; each conditional
    distribution is drawn evenly from the simplex.

    Parameters
    ----------
    dag : set of (str, str)
        Edges (parent, child) between X, Y and B.
    sizes : int or (int, int, int), default 3
        Number of values of X, Y and B.
    random_state : int, RandomState or None

    Returns
    -------
    ndarray, shape ``sizes``

    Raises
    ------
    ValueError
        If ``dag`` has a cycle or other nodes.
    """
    dag = as_dag(dag)
    sizes = np.broadcast_to(sizes, 3)
    rng, joint = check_random_state(random_state), np.ones((1, 1, 1))
    for axis, v in enumerate(NODES):
        shape = [n if (u, v) in dag else 1 for u, n in zip(NODES, sizes, strict=True)]
        factor = rng.dirichlet(np.ones(sizes[axis]), shape)
        # eq: eq-tax-factor
        joint = joint * factor.swapaxes(axis, 3)[..., 0]
    return joint


def dependence(joint, a, b, given=None):
    r"""Distance of two variables from independence: 0 if they are independent.

    :math:`\max_{u, v, w} |p(u, v, w)\, p(w) - p(u, w)\, p(v, w)|`, equation :eq:`eq-tax-independence`; without
    ``given`` there is no :math:`w`.

    Parameters
    ----------
    joint : array-like, shape (n_x, n_y, n_b)
    a, b : {"X", "Y", "B"}
    given : {"X", "Y", "B"}, optional

    Returns
    -------
    float or Fraction

    Raises
    ------
    ValueError
        If a variable is unknown or named twice, or the joint distribution is none.
    """
    statement(a, b, given)  # raises if these are not different variables
    joint, i, j = as_joint(joint), NODES.index(a), NODES.index(b)
    if given is None:
        joint = joint.sum(3 - i - j, keepdims=True)
    p_a, p_b = joint.sum(j, keepdims=True), joint.sum(i, keepdims=True)
    p_given = p_a.sum(i, keepdims=True)
    # eq: eq-tax-independence
    return np.abs(joint * p_given - p_a * p_b).max()


def independences(joint: ArrayLike, *, tol: float = 1e-9) -> frozenset:
    """Pattern of a joint distribution.

    Parameters
    ----------
    joint : array-like, shape (n_x, n_y, n_b)
    tol : float, default 1e-9
        Largest `dependence` that counts as none; 0 is right for fractions.

    Returns
    -------
    frozenset of str

    Examples
    --------
    >>> import numpy as np
    >>> from llpbook.taxonomy import independences
    >>> sorted(independences(np.full((2, 2, 2), 1 / 8)))  # all independent
    ['X_B', 'X_B|Y', 'X_Y', 'X_Y|B', 'Y_B', 'Y_B|X']
    """
    independent = [(a, b, w) for a, b, w in ROLES if dependence(joint, a, b, w) <= tol]
    return frozenset(statement(a, b, w) for a, b, w in independent)


def unfaithful_examples():
    r"""Joint distributions with the three patterns that no DAG implies.

    Returns
    -------
    dict of str to ndarray of Fraction
        By name, as in `table`; all entries are positive.

    Notes
    -----
    No DAG (1), shape (2, 2, 2): features and label are fair coins, so is the bag, and the bag tells nothing of either;
    but the feature equals the label with probability 5/8 in one bag and 7/8 in the other. In signs,
    :math:`p = \tfrac18 (1 + \tfrac12 s_x s_y + \tfrac14 s_x s_y s_b)`: without the terms :math:`s_x s_b` and
    :math:`s_y s_b` the pairs are independent, the last term makes them depend given the third.

    No DAG (2), shape (2, 3, 2): given one of three equally frequent classes, feature and bag are independent coins.
    :math:`p(x = 1 \mid y) = \tfrac12 + (\tfrac14, -\tfrac14, 0)` tells the first class from the second,
    :math:`p(b = 1 \mid y) = \tfrac12 + (\tfrac18, \tfrac18, -\tfrac14)` tells the third from the others. The two
    vectors are orthogonal, which is :math:`X \perp B`. With two classes this cannot be, see `rule_binary`.

    No DAG (3), shape (4, 2, 2): X is two fair bits; the label follows the first bit and the bag the second, each with
    probability 3/4. This is the paper's example of "orthogonal features"; what it takes is that they are independent.
    """
    quarter = Fraction(1, 4)
    pair, three, bits = (np.empty(n, object) for n in [(2, 2, 2), (2, 3, 2), (4, 2, 2)])
    for x, y, b in np.ndindex(2, 2, 2):
        agree = (-1) ** (x + y)
        pair[x, y, b] = (1 + agree * (2 + (-1) ** b) * quarter) / 8
    for x, y, b in np.ndindex(2, 3, 2):
        p_x = (2 + (-1) ** x * (1, -1, 0)[y]) * quarter
        p_b = (4 + (-1) ** b * (1, 1, -2)[y]) * quarter / 2
        three[x, y, b] = p_x * p_b / 3
    for x, y, b in np.ndindex(4, 2, 2):
        p_y = (3 if x // 2 == y else 1) * quarter
        bits[x, y, b] = quarter * p_y * (3 if x % 2 == b else 1) * quarter
    return {f"No DAG ({k})": p for k, p in enumerate((pair, three, bits), 1)}


# --- what the bag does to the Bayes classifier ---------------------------------------------------------------


def posterior(joint):
    r"""The label given features and bag, :math:`p(y \mid x, b)`; NaN where these never come together."""
    joint = as_joint(joint).astype(float)
    with np.errstate(invalid="ignore"):
        return joint / joint.sum(1, keepdims=True)


def shifted_posterior(joint):
    r"""Posterior from the label proportion of the bag and the pooled posterior.

    :math:`p(y \mid x)\, p(y \mid b) / p(y)`, scaled to sum to 1 over :math:`y`, equation :eq:`eq-tax-shift`. It is
    `posterior` if :math:`X \perp B \mid Y`: all that a bag changes is the class prior.

    Parameters
    ----------
    joint : array-like, shape (n_x, n_y, n_b)
        Every label has a positive probability.

    Returns
    -------
    ndarray of float, shape (n_x, n_y, n_b)
        NaN where it would divide by 0.
    """
    joint = as_joint(joint).astype(float)
    p_xy, p_yb = joint.sum(2, keepdims=True), joint.sum(0, keepdims=True)
    scores = p_xy * p_yb / p_xy.sum(0, keepdims=True)
    with np.errstate(invalid="ignore"):
        # eq: eq-tax-shift
        return scores / scores.sum(1, keepdims=True)


def bayes_errors(joint):
    r"""Bayes errors of classifiers that do not see the bag, and of those that do.

    :math:`1 - \sum_x \max_y p(x, y)` and :math:`1 - \sum_{x, b} \max_y p(x, y, b)`, equation :eq:`eq-tax-bayes`. They
    are equal just if one classifier is the best in every bag.

    Parameters
    ----------
    joint : array-like, shape (n_x, n_y, n_b)

    Returns
    -------
    without_bag, with_bag : float
    """
    p = as_joint(joint).astype(float)
    # eq: eq-tax-bayes
    return 1 - p.sum(2).max(1).sum(), 1 - p.max(1).sum()


def varies_between_bags() -> pd.DataFrame:
    """Table of the distributions that may differ between bags, by variant.

    Returns
    -------
    DataFrame
        One row per name of `table`, True where it depends on the bag: the proportions P(Y|B), the features P(X|B), the
        posterior P(Y|X,B) and the class-conditional features P(X|Y,B). The last column is True where features and label
        depend within a bag.

    Examples
    --------
    >>> from llpbook.taxonomy import varies_between_bags
    >>> varies_between_bags().loc["Simple"].tolist()
    [True, True, True, False, True]
    """
    rows = table().set_index("name")
    independent = {
        "P(Y|B)": "Y_B",
        "P(X|B)": "X_B",
        "P(Y|X,B)": "Y_B|X",
        "P(X|Y,B)": "X_B|Y",
        "X tells of Y in a bag": "X_Y|B",
    }
    return pd.DataFrame({column: ~rows[s] for column, s in independent.items()})
