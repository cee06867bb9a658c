"""`Diagnosis`, the result of `llpbook.diagnosis.diagnose`: p-values, the variants left, and the conclusions."""

import textwrap
from dataclasses import dataclass

import numpy as np
import pandas as pd

from .. import all_estimators
from .._printed import Printed
from ..taxonomy import STATEMENTS, VARIANTS

MEANING = {
    "X_Y": "features tell nothing about the label",
    "X_B": "bags have the same features",
    "Y_B": "bags have the same label proportions",
    "X_Y|B": "within a bag, features tell nothing about the label",
    "X_B|Y": "within a class, bags have the same features",
    "Y_B|X": "given the features, the bag tells nothing about the label",
}

#: In standard deviations: whole bags may be held out only where shifts of this size would have been found.
SMALL_SHIFT = 0.1
#: Columns of the printed report.
WIDTH = 100


def as_symbols(statement):
    """``"X_B|Y"`` as ``"X ⊥ B | Y"``."""
    return statement.replace("_", " ⊥ ").replace("|", " | ")


def as_text(p):
    """A p-value in words."""
    return "no test" if np.isnan(p) else f"p = {p:.3g}" if p >= 1e-6 else "p < 1e-6"


def at_most(pvalues, alpha):
    """True where p-values are at most alpha, up to rounding."""
    return pvalues <= alpha * (1 + 1e-9)


@dataclass(frozen=True)
class Diagnosis(Printed):
    """The variants that the data leave possible; `print` it.

    A small p-value rejects an independence. Nothing can confirm one, and no variant is rejected for what depends on
    what: hard, which claims no independence, is never rejected.

    Attributes
    ----------
    tests : DataFrame
        One row per statement tested: ``test``, ``statistic``, ``pvalue`` (NaN where the data cannot say anything),
        ``detectable`` (the smallest shift that would have been found four times in five, in standard deviations),
        ``note``.
    by_column : DataFrame, shape (n_features, n_tests)
        The p-value of each column of X, for the statements that are about X; NaN where a column was not tested.
    alpha : float
        Level of each statement, and of each variant.
    n_bags, n_instances : int
        Bags that hold instances, and their instances.
    n_labeled : int
        Instances with a known label.
    exact : bool
        True if the proportions are taken as counts of these instances.
    judged : bool
        True if ``exact`` was not stated, and is judged by whether they are whole counts.

    Examples
    --------
    >>> from llpbook import diagnose, load_bags
    >>> data = load_bags("heart", bag_size=8, random_state=0)
    >>> diagnosis = diagnose(*data, n_permutations=99, random_state=0)
    >>> diagnosis.n_bags, diagnosis.exact
    (34, True)
    """

    tests: pd.DataFrame
    by_column: pd.DataFrame
    alpha: float
    n_bags: int
    n_instances: int
    n_labeled: int
    exact: bool
    judged: bool

    @property
    def pvalues(self):
        """The p-value of each statement tested, a Series."""
        return self.tests["pvalue"]

    @property
    def rejected(self):
        """The statements rejected, each at the level ``alpha`` by itself, a list."""
        return self.pvalues.index[at_most(self.pvalues, self.alpha)].tolist()

    @property
    def variant_pvalues(self):
        """The p-value of each named variant, a Series; 1 where none of its independences was tested.

        The smallest p-value of its independences, by Holm's correction times the number of those tested."""
        corrected = {}
        for name, claims in VARIANTS.items():
            p = self.pvalues[self.pvalues.index.isin(claims)].dropna()
            corrected[name.lower()] = min(1.0, len(p) * p.min()) if len(p) else 1.0
        return pd.Series(corrected)

    @property
    def variants(self):
        """The named variants that are not rejected, a list.

        In lower case, those that claim the most independences first; no order of likelihood."""
        p = self.variant_pvalues
        kept = [n for n in VARIANTS if not at_most(p[n.lower()], self.alpha)]
        return [n.lower() for n in sorted(kept, key=lambda n: -len(VARIANTS[n]))]

    @property
    def whole_bags(self):
        """True if held-out whole bags are about like the training bags, as far as these data can tell.

        Naive is kept, none of its statements is rejected, and a shift of features or shares by `SMALL_SHIFT` would have
        been found."""
        if "naive" not in self.variants or VARIANTS["Naive"] & {*self.rejected}:
            return False
        two = self.tests.reindex(["X_B", "Y_B"])
        return bool(
            two["pvalue"].notna().all() and (two["detectable"] <= SMALL_SHIFT).all()
        )

    def moving(self, statement):
        """The columns of X that by themselves contradict a statement, Bonferroni's correction made, a Series."""
        if statement not in self.by_column:
            return pd.Series(dtype=float)
        p = self.by_column[statement].dropna()
        return p[at_most(p * len(p), self.alpha)].sort_values()

    def verdict(self, statement):
        """``"rejected"``, ``"not rejected"`` or ``"not tested"``."""
        p = self.pvalues.get(statement, np.nan)
        if np.isnan(p):
            return "not tested"
        return "rejected" if at_most(p, self.alpha) else "not rejected"

    def to_frame(self):
        """The report as a DataFrame, one row for each of the six statements."""
        return _frame(self)

    def __str__(self):
        return _text(self)

    @classmethod
    def of(cls, problem, joined, alpha, judged):
        """Build a diagnosis from the results of the tests: for each statement the name of its test, and the result."""
        tests, by_column = _tables(joined, problem.names)
        n_bags, n_labeled = len(np.unique(problem.bags)), (problem.labels >= 0).sum()
        return cls(
            tests, by_column, alpha, n_bags, n_instances=len(problem.X),
            n_labeled=int(n_labeled), exact=problem.exact, judged=judged,
        )  # fmt: skip


def _tables(joined, names):
    """The tables ``tests`` and ``by_column`` of a `Diagnosis`."""
    rows = {s: [name, *r[:3], r.note] for s, (name, r) in joined.items()}
    columns = ["test", "statistic", "pvalue", "detectable", "note"]
    tests = pd.DataFrame.from_dict(rows, orient="index", columns=columns)
    by_column = {s: r.by_column for s, (_, r) in joined.items()}
    tested = {s: p for s, p in by_column.items() if p is not None}
    return tests, pd.DataFrame(tested, index=names)


def _frame(d):
    """A row for each of the six statements."""
    tests = d.tests.reindex([*STATEMENTS])
    columns = {
        "statement": [as_symbols(s) for s in STATEMENTS],
        "meaning": [MEANING[s] for s in STATEMENTS],
        "p": tests["pvalue"].to_numpy(),
        "verdict": [d.verdict(s) for s in STATEMENTS],
        "would find": tests["detectable"].to_numpy(),
        "moving": [", ".join(d.moving(s).index) for s in STATEMENTS],
        "test": tests["test"].fillna("needs labels").to_numpy(),
        "note": tests["note"].fillna("").to_numpy(),
    }
    return pd.DataFrame(columns).set_index("statement")


def _text(d):
    """The report as text, wrapped."""
    lines = [*_head(d), *_statements(d), *_conclusions(d), _selection(d)]
    lines += ["assumptions of the methods:", *_assumptions(d)]
    wrap, wrapped = textwrap.TextWrapper(WIDTH), []
    for line in lines:
        wrap.subsequent_indent = " " * (len(line) - len(line.lstrip()) + 4)
        wrapped += wrap.wrap(line)
    return "\n".join(wrapped)


def _head(d):
    """Lines on the size of the data, and on the assumptions."""
    labels = f"{d.n_labeled} labels" if d.n_labeled else "no labels"
    yield (
        f"{d.n_instances} instances in {d.n_bags} bags, {labels}; level {d.alpha:g}; "
        "Holm's correction within a variant"
    )
    if d.exact:
        why = " (whole counts; if they are estimates, say exact=False)" * d.judged
        shares = f"the shares are counts of these very instances{why}"
    else:
        why = " (they are no whole counts of these instances)" * d.judged
        shares = f"the shares may carry error{why}"
    yield f"assumed: instances are independent of one another; {shares}"


def _statements(d):
    """Lines on each statement tested: p-value and verdict; the smallest shift it finds; the columns that move."""
    for s, row in d.tests.iterrows():
        yield (
            f"  {as_symbols(s):<9}  {as_text(row['pvalue']):<12} {d.verdict(s):<12}  {MEANING[s]}"
        )
        if np.isnan(row["pvalue"]):
            yield f"      {row['note']}"
            continue
        moving = d.moving(s)
        unit = "of the label" if s == "Y_B" else "in every direction of the features"
        unit = "of what the features leave of the label" if s == "Y_B|X" else unit
        words = f"would find a shift of {row['detectable']:.2f} sd {unit}, four times in five"
        if len(moving):
            named = [f"{name} ({as_text(p)})" for name, p in moving[:5].items()]
            more = f" and {len(moving) - 5} more" if len(moving) > 5 else ""
            words += f"; by itself moves: {', '.join(named)}{more}"
        yield f"      {words}"


def _conclusions(d):
    """Lines on the variants left, and on the limits of these data."""
    yield f"variants not rejected: {', '.join(d.variants)}"
    missing = [as_symbols(s) for s in STATEMENTS if d.verdict(s) == "not tested"]
    blind = "a shift smaller than those above, or one that no smooth feature shows"
    if not d.n_labeled:
        blind += "; whether features shift along with the shares, whatever the class"
    untold = f"{', '.join(missing)}; " if missing else ""
    yield f"not told by these data: {untold}{blind}. What is not rejected is not shown to hold"


def _selection(d):
    """One line on the splits that model selection may use."""
    if d.whole_bags:
        return (
            f"model selection: no bag was seen to differ, and shifts of {SMALL_SHIFT:g} sd in all features together "
            "would have been seen four times in five: whole bags may be held out (full-bag); parts of each bag "
            "(split-bag) are safe as well"
        )
    if {"Y_B", "X_B", "X_B|Y", "Y_B|X"} & {*d.rejected}:
        why = "bags differ, so whole bags held out are not like those trained on"
    else:
        why = "no difference of bags was found, but these tests could miss one that matters"
    return f"model selection: hold out a part of each bag (split-bag); {why}"


def _assumptions(d):
    """Lines on the methods for so many bags, by the statement that each assumes, with its verdict."""
    from ..density_difference import TwoBagClassifier

    by_statement = {}
    for name, cls in all_estimators():
        if d.n_bags == 2 or not issubclass(cls, TwoBagClassifier):
            by_statement.setdefault(cls.assumes[0], []).append(name)
    of_none = by_statement.pop(None)
    for needed, names in sorted(by_statement.items(), key=lambda each: str(each[0])):
        either = (needed,) if isinstance(needed, str) else needed
        verdicts = " or ".join(f"{as_symbols(s)} ({d.verdict(s)})" for s in either)
        yield f"  {verdicts}: {', '.join(names)}"
    yield f"  none of the six: {', '.join(of_none)}"
