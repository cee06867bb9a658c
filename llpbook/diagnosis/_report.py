"""What `llpbook.diagnosis.diagnose` returns: p-values, the variants that they leave, and what follows from these."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from .. import all_estimators
from ..taxonomy import STATEMENTS, VARIANTS

MEANING = {
    "X_Y": "features tell nothing about the label",
    "X_B": "bags have the same features",
    "Y_B": "bags have the same label proportions",
    "X_Y|B": "within a bag, features tell nothing about the label",
    "X_B|Y": "within a class, bags have the same features",
    "Y_B|X": "given the features, the bag tells nothing about the label",
}


def as_symbols(statement):
    """``"X_B|Y"`` as ``"X ⊥ B | Y"``."""
    return statement.replace("_", " ⊥ ").replace("|", " | ")


@dataclass(frozen=True)
class Diagnosis:
    """Which variants the data leave possible; `print` it.

    A p-value below ``alpha`` rejects an independence. Nothing can confirm one, and no variant is rejected for what
    depends on what: hard, which claims no independence, is never rejected.

    Attributes
    ----------
    tests : DataFrame
        One row a statement tested: ``test``, ``statistic``, ``pvalue`` (NaN where the data cannot say anything).
    alpha : float
        Level of each test.
    n_bags, n_instances : int
        Bags that hold instances, and their instances.
    n_labelled : int
        Instances with a known label, which the tests with labels use.
    exact : bool
        Whether the proportions are whole counts of the instances, up to rounding.
    """

    tests: pd.DataFrame
    alpha: float
    n_bags: int
    n_instances: int
    n_labelled: int
    exact: bool

    @property
    def pvalues(self):
        """The p-value of each statement tested, a Series."""
        return self.tests["pvalue"]

    @property
    def rejected(self):
        """The statements rejected, a list."""
        return self.pvalues.index[self.pvalues < self.alpha].tolist()

    @property
    def variants(self):
        """The named variants none of whose independences is rejected, a list.

        In lower case, those that claim the most independences first."""
        kept = {n.lower(): s for n, s in VARIANTS.items() if not s & {*self.rejected}}
        return sorted(kept, key=lambda name: -len(kept[name]))

    @property
    def simplest(self):
        """Of `variants`, those that claim the most independences."""
        claims = {name.lower(): len(held) for name, held in VARIANTS.items()}
        most = max(claims[name] for name in self.variants)
        return [name for name in self.variants if claims[name] == most]

    def verdict(self, statement):
        """``"rejected"``, ``"not rejected"`` or ``"not tested"``."""
        p = self.pvalues.get(statement, np.nan)
        if np.isnan(p):
            return "not tested"
        return "rejected" if p < self.alpha else "not rejected"

    def __str__(self):
        return "\n".join(_report(self))

    def plot(self, ax=None):
        """The p-values on a logarithmic scale, with the level.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            A new figure if not given.

        Returns
        -------
        matplotlib Axes
        """
        return _plot(self, ax)


def _report(d):
    """The lines of the report."""
    known = f", {d.n_labelled} labels" if d.n_labelled else ", no labels"
    lines = [f"{d.n_instances} instances in {d.n_bags} bags{known}; level {d.alpha:g}"]
    for name, row in d.tests.iterrows():
        p = f"p = {row['pvalue']:.3g}" if row["pvalue"] >= 1e-6 else "p < 1e-6"
        p = "no test" if np.isnan(row["pvalue"]) else p
        lines.append(
            f"  {as_symbols(name):<9}  {p:<12} {d.verdict(name):<12}  {MEANING[name]}"
        )
    missing = [as_symbols(s) for s in STATEMENTS if d.verdict(s) == "not tested"]
    if missing:
        lines.append(f"cannot be told from these data: {', '.join(missing)}")
    lines.append(f"variants not rejected: {', '.join(d.variants)}")
    lines.append(f"the simplest of them: {', '.join(d.simplest)}")
    if not d.exact:
        lines.append(
            "the proportions are no whole counts of these instances: the noise of X ⊥ B | Y is taken at its largest, "
            "and Y ⊥ B rests on rounded counts"
        )
    return [*lines, *_selection(d), "assumptions of the methods:", *_assumptions(d)]


def _selection(d):
    """What the variant means for model selection."""
    if {"Y_B", "X_B"} & {*d.rejected}:
        yield (
            "model selection: bags differ, so held-out bags are not like those trained on; split every bag into "
            "training and validation parts (split-bag), large bags permitting"
        )
    else:
        yield (
            "model selection: bags look alike, as in the naive variant; whole bags (full-bag) or parts of bags "
            "(split-bag) may be held out"
        )


def _assumptions(d):
    """For each method: its assumption, and what became of it."""
    for method, cls in all_estimators():
        statement, words = cls.assumes
        state = (
            "none of the six"
            if statement is None
            else f"{as_symbols(statement)} {d.verdict(statement)}"
        )
        yield f"  {method}: {words} ({state})"


def _plot(d, ax):
    """Dots for the p-values; statements not tested are named, in grey."""
    from ..plotting import PALETTE

    if ax is None:
        import matplotlib.pyplot as plt

        _, ax = plt.subplots(figsize=(6.4, 2.8), layout="constrained")
    rows = {name: len(STATEMENTS) - i for i, name in enumerate(STATEMENTS)}
    for name, at in rows.items():
        state = d.verdict(name)
        if state == "not tested":
            words = "needs labels" if not d.n_labelled else "no test"
            ax.text(1.3e-4, at, words, va="center", color="#666666", fontsize=9)
            continue
        color, marker = (PALETTE[1], "X") if state == "rejected" else (PALETTE[0], "o")
        ax.plot(
            max(d.pvalues[name], 1e-4), at, marker, color=color, ms=8, clip_on=False
        )
    ax.axvline(d.alpha, color="#666666", linewidth=1)
    ax.text(
        d.alpha, len(rows) + 0.6, f" level {d.alpha:g}", color="#666666", fontsize=9
    )
    ax.set(
        xscale="log", xlim=(1e-4, 1), ylim=(0.4, len(rows) + 0.6),
        xlabel="p-value (those below 0.0001 on the left edge)",
        yticks=list(rows.values()),
        yticklabels=[f"{as_symbols(s)}" for s in rows],
    )  # fmt: skip
    return ax
