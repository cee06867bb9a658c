"""What `llpbook.variants.make_bags` returns: the bags, with what was met of the targets."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..base import crosstab
from ..datasets import BagDataset


@dataclass(frozen=True)
class GeneratedBags:
    """Bags made by `llpbook.variants.make_bags`; `print` says what was met.

    ``bags, proportions = make_bags(…)`` works. Where an array is expected, it is that of the bags.

    Attributes
    ----------
    bags : ndarray of int, shape (n_instances,)
        Rows of ``proportions``.
    proportions : DataFrame, shape (n_bags, n_classes)
        As achieved; the columns are the classes, in their order.
    sizes : ndarray of int, shape (n_bags,)
        As achieved.
    target_sizes : ndarray, shape (n_bags,)
    target_proportions : ndarray, shape (n_bags, n_classes), or None
        None for the variants in which labels and bags are independent.
    clusters : ndarray of int, shape (n_instances,), or None
        What B depends on besides the label: clusters, or strata of P(y | x).
    variant : str
    report : list of str
        What was met, and what was missed by how much.

    Examples
    --------
    >>> from llpbook import load, make_bags
    >>> X, y = load("heart")
    >>> made = make_bags(X, y, "simple", n_bags=10, random_state=0)
    >>> bags, proportions = made
    >>> made.to_dataset(X, y).n_bags
    10
    """

    bags: np.ndarray
    proportions: pd.DataFrame
    sizes: np.ndarray
    target_sizes: np.ndarray
    target_proportions: object
    clusters: object
    variant: str
    report: list

    def __iter__(self):
        return iter((self.bags, self.proportions))

    def __array__(self, dtype=None, copy=None):
        return np.array(self.bags, dtype=dtype)

    def __str__(self):
        n, L = len(self.bags), len(self.sizes)
        return "\n".join([f"{self.variant}: {n} instances in {L} bags", *self.report])

    def to_dataset(self, X, y, name=None):
        """A `BagDataset` of these bags, for the ``X, y`` they were made of."""
        names = np.array([f"bag {k}" for k in range(len(self.sizes))], dtype=object)
        y = np.asarray(y)
        return BagDataset(
            X, self.bags, self.proportions, y, names, name or self.variant
        )


def describe(bags, task, wanted=None):
    """The bags made, with what was met of sizes and proportions; a ValueError if a bag holds no instance."""
    sizes = np.bincount(bags, minlength=len(task.sizes))
    if (sizes == 0).any():
        raise ValueError(
            f"variant={task.variant!r} leaves bags without instances, {np.flatnonzero(sizes == 0).tolist()}: with "
            "these proportions the others take them all; leave out these bags, or the argument proportions"
        )
    made = crosstab(bags, task.codes) / sizes[:, None]
    report = [_size_report(sizes, task), _share_report(made, wanted, sizes)]
    clusters = None if task.variant in ("naive", "simple") else task.clusters
    return GeneratedBags(
        bags, pd.DataFrame(made, columns=task.classes), sizes, task.sizes, wanted,
        clusters, task.variant, report,
    )  # fmt: skip


def _size_report(made, task):
    """In words, how far the bag sizes are from those wanted, or that none were."""
    off = np.abs(made - task.sizes)
    if not off.any():
        return "sizes: met"
    if not task.sizes_given:
        return "sizes: as they come out"
    return (
        f"sizes: missed by up to {off.max()} instances, by {off.mean():.1f} on average"
    )


def _share_report(made, wanted, sizes):
    """In words, how far the proportions are from those wanted, or that none were."""
    if wanted is None:
        return "proportions: those of chance"
    if (np.abs(made - wanted) * sizes[:, None] < 1 + 1e-6).all():
        return "proportions: met to one instance"
    gap = np.abs(made - wanted).max(axis=1)
    bag = int(gap.argmax())
    asked, found = (", ".join(f"{v:.3f}" for v in m[bag]) for m in (wanted, made))
    return (
        f"proportions: missed by up to {gap[bag]:.3f} (bag {bag}: {asked} wanted, {found} made), by {gap.mean():.3f} "
        "on average"
    )
