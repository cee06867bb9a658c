"""What `llpbook.variants.make_bags` reads and returns: checked input, and the bags with what was met of the targets."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from .. import taxonomy
from ..base import check_proportions
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


def read_sizes(sizes, n_instances):
    """Bag sizes as whole numbers, or None."""
    if sizes is None:
        return None
    counts = np.asarray(sizes)
    whole = counts.ndim == 1 and counts.dtype.kind in "iuf"
    if not whole or not (counts == np.round(counts)).all() or (counts < 1).any():
        raise ValueError(f"sizes must be whole numbers from 1, one a bag, got {sizes}")
    if counts.sum() != n_instances:
        raise ValueError(
            f"sizes must sum to the {n_instances} instances, got {counts.sum():g}"
        )
    return counts.astype(int)


def read_wanted(proportions, classes):
    """Wanted proportions as a matrix with one column for each of the classes, or None."""
    if proportions is None:
        return None
    matrix, columns, _ = check_proportions(proportions)
    if isinstance(proportions, pd.DataFrame):
        if set(columns) != set(classes):
            raise ValueError(
                f"proportions has the columns {list(columns)}, y the classes {classes.tolist()}"
            )
        matrix = proportions[list(classes)].to_numpy(dtype=float)
    if matrix.shape[1] != len(classes):
        raise ValueError(
            f"proportions must have one column for each of the {len(classes)} classes of y, got {matrix.shape[1]}"
        )
    return matrix


def count_bags(n_bags, **given):
    """The number of bags that all of the arguments agree on; None if none is given."""
    lengths = {
        name: len(value) for name, value in given.items() if value is not None
    } | ({} if n_bags is None else {"n_bags": n_bags})
    if len(set(lengths.values())) > 1:
        raise ValueError(f"the number of bags differs between arguments: {lengths}")
    found = next(iter(lengths.values()), None)
    if found is not None and (found < 2 or found != int(found)):
        raise ValueError(f"n_bags must be a whole number from 2, got {found}")
    return found


def variant_name(variant):
    """The name of a variant in lower case, for any spelling.

    Case, spaces, hyphens and underscores do not matter.

    Parameters
    ----------
    variant : str

    Returns
    -------
    str

    Raises
    ------
    ValueError
        If there is no such variant.
    """
    known = {name.lower().replace("-", " "): name.lower() for name in taxonomy.VARIANTS}
    key = str(variant).lower().replace("-", " ").replace("_", " ")
    if key not in known:
        raise ValueError(
            f"variant must be one of {', '.join(known.values())}, got {variant!r}"
        )
    return known[key]


def read_clusters(clusters, n_instances):
    """Clusters as codes 0, 1, …, or None."""
    if clusters is None:
        return None
    values = np.asarray(clusters)
    if values.shape != (n_instances,) or pd.isna(values).any():
        raise ValueError(
            f"clusters must name one cluster for each of the {n_instances} instances, none missing, got shape "
            f"{values.shape}"
        )
    return pd.factorize(values, sort=True)[0]


def describe(bags, codes, classes, task, variant, wanted):
    """The bags made, with what was met of sizes and proportions.

    Parameters
    ----------
    bags, codes : ndarray of int, shape (n_instances,)
    classes : ndarray, shape (n_classes,)
    task : Task
        See `llpbook.variants.Task`.
    variant : str
    wanted : ndarray, shape (n_bags, n_classes), or None

    Returns
    -------
    GeneratedBags
    """
    n_bags = len(task.sizes)
    sizes = np.bincount(bags, minlength=n_bags)
    made = (
        np.column_stack(
            [
                np.bincount(bags[codes == y], minlength=n_bags)
                for y in range(len(classes))
            ]
        )
        / np.maximum(sizes, 1)[:, None]
    )
    report = [size_report(sizes, task.sizes), share_report(made, wanted, sizes)]
    clusters = None if variant in ("naive", "simple") else task.clusters
    return GeneratedBags(
        bags, pd.DataFrame(made, columns=classes), sizes, task.sizes, wanted, clusters,
        variant, report,
    )  # fmt: skip


def size_report(made, wanted):
    """In words, how far the bag sizes are from those wanted."""
    off = np.abs(made - wanted)
    if not off.any():
        return "sizes: met"
    return (
        f"sizes: missed by up to {off.max()} instances, by {off.mean():.1f} on average"
    )


def share_report(made, wanted, sizes):
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
