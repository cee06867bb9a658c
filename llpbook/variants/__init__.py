r"""Make bags of a chosen variant from instances with labels.

A variant says how bag B, features X and label Y depend on one another (`llpbook.taxonomy`). To make bags of one from
instances with labels, choose a table of counts, bag by cluster by class, with the structure of the variant and the
margins of the task,

.. math:: \sum_c t_{bcy} = n_b \pi_{by}, \qquad \sum_b t_{bcy} = n_{cy},

and deal the instances of each cluster and class to the bags accordingly. The table is scaled to the margins by
iterative proportional fitting,

.. math:: t \leftarrow t \cdot \frac{m_{\text{wanted}}}{m(t)} \quad \text{for each margin in turn,}

then rounded such that rows and columns keep their sums. `llpbook.diagnosis` tests which variant given bags are.

Chapter: ``book/variants``. Sources: franco2023 (sections 4 and A.4, which leave the algorithms open); deming1940 for
the fitting; cox1987 for the rounding.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from sklearn.utils import check_random_state

from .._counts import crosstab
from .._input import ArrayLike, Matrix, Proportions, RandomState
from ._task import read_task
from ._variant_tables import (
    bag_counts,
    chance_bags,
    cluster_to_bag,
    cross_bag_table,
    deal,
    fill_table,
    fit_margins,
    hard_table,
    intermediate_table,
    label_collider_table,
    project_rows,
    round_table,
    variant_table,
)

__all__ = ["GeneratedBags", "make_bags"]


@dataclass(frozen=True)
class GeneratedBags:
    """Bags made by `llpbook.variants.make_bags`; `print` shows how well sizes and proportions are met.

    ``bags, proportions = make_bags(…)`` works.

    Attributes
    ----------
    bags : ndarray of int, shape (n_instances,)
        Rows of ``proportions``.
    proportions : DataFrame, shape (n_bags, n_classes)
        As achieved; the columns are the classes, in their order.
    sizes : ndarray of int, shape (n_bags,)
        As achieved.
    variant : str
    report : list of str
        Sizes and proportions: met, or missed by how much.

    Examples
    --------
    >>> from llpbook import load, make_bags
    >>> X, y = load("heart")
    >>> made = make_bags(X, y, "simple", n_bags=10, random_state=0)
    >>> bags, proportions = made
    >>> print(made)
    simple: 270 instances in 10 bags
    sizes: met
    proportions: met to one instance
    """

    bags: np.ndarray
    proportions: pd.DataFrame
    sizes: np.ndarray
    variant: str
    report: list

    def __iter__(self):
        return iter((self.bags, self.proportions))

    def __str__(self):
        n, L = len(self.bags), len(self.sizes)
        return "\n".join([f"{self.variant}: {n} instances in {L} bags", *self.report])


def describe(bags, task, wanted=None):
    """Build `GeneratedBags` with their report; ValueError if a bag holds no instance."""
    sizes = np.bincount(bags, minlength=len(task.sizes))
    if (sizes == 0).any():
        raise ValueError(
            f"variant={task.variant!r} leaves bags without instances, {np.flatnonzero(sizes == 0).tolist()}: with "
            "these proportions the others take them all; leave out these bags, or the argument proportions"
        )
    made = crosstab(bags, task.codes) / sizes[:, None]
    report = [_size_report(sizes, task), _share_report(made, wanted, sizes)]
    shares = pd.DataFrame(made, columns=task.classes)
    return GeneratedBags(bags, shares, sizes, task.variant, report)


def _size_report(made, task):
    """One line on the distance of the bag sizes from those wanted."""
    off = np.abs(made - task.sizes)
    if not off.any():
        return "sizes: met"
    if not task.sizes_given:
        return "sizes: as they come out"
    return (
        f"sizes: missed by up to {off.max()} instances, by {off.mean():.1f} on average"
    )


def _share_report(made, wanted, sizes):
    """One line on the distance of the proportions from those wanted."""
    if wanted is None:
        return "proportions: those of chance"
    if (np.abs(made - wanted) * sizes[:, None] < 1 + 1e-6).all():
        return "proportions: met to one instance"
    gap = np.abs(made - wanted).max(axis=1)
    bag = int(gap.argmax())
    goal, got = (", ".join(f"{v:.3f}" for v in m[bag]) for m in (wanted, made))
    return (
        f"proportions: missed by up to {gap[bag]:.3f} (bag {bag}: {goal} wanted, {got} made), by {gap.mean():.3f} "
        "on average"
    )


def make_bags(
    X: Matrix, y: ArrayLike, variant: str, *, n_bags: int | None = None,
    sizes: ArrayLike | None = None, proportions: Proportions | None = None,
    clusters: ArrayLike | None = None, random_state: RandomState = None,
) -> GeneratedBags:  # fmt: skip
    r"""Assign labeled instances to bags that make a variant of the problem.

    Counts are exact, not draws: sizes and proportions are met to one instance where they can be, and ``report`` says by
    how much not. Which instance of a cluster and class goes to which bag is random.

    - naive: bags are drawn, whatever features and label. Proportions are those of chance.
    - simple: bags depend on the label alone.
    - intermediate: on the cluster alone; the clusters themselves if neither ``sizes`` nor ``proportions`` is given.
    - hard: on both.
    - feature collider: as hard, with proportions that are those of chance.
    - label collider: on the label within strata in which it is equally likely, but not on the stratum. The proportions
      are pulled towards the prior as far as that asks for.
    - cross-bag: such that, within a bag, the stratum does not tell the label. Sizes come out as they must; proportions
      not given are quantiles of the class shares of the strata.

    Parameters
    ----------
    X : array-like, shape (n_instances, n_features)
    y : array-like, shape (n_instances,)
    variant : str
        A name of `llpbook.taxonomy.VARIANTS`, in any case, with spaces, hyphens or underscores.
    n_bags : int, optional
        As many as ``sizes``, ``proportions`` or ``clusters`` have; else 10.
    sizes : array-like of int, shape (n_bags,), optional
        If not given: equal beside ``proportions``, else those of k-means clusters of X. A Series beside ``proportions``
        is matched by its keys.
    proportions : array-like or DataFrame, shape (n_bags,) or (n_bags, n_classes), optional
        Those of k-means clusters if not given. A vector is the share of the second of two classes. Where they do not
        add up to the classes of y, the odds of all bags shift alike.
    clusters : array-like, shape (n_instances,), optional
        Groups that bags depend on besides the label; ``n_bags`` k-means clusters of the standardized X if not given.
        For label collider and cross-bag: strata within which y and X are independent; instances with about the same
        estimated P(y | x) if not given. The variant then holds as well as that estimate.
    random_state : int, RandomState or None

    Returns
    -------
    GeneratedBags
        ``bags, proportions = make_bags(…)``; ``.sizes``, ``.report``.

    Raises
    ------
    ValueError
        For malformed input; if ``proportions`` are given for a variant that leaves them to chance; or if X and y rule
        the variant out: a label collider where X tells the label, cross-bag with proportions that are not extreme
        enough, or that leave a bag without instances. Also if y or clusters is a pandas object in another order than X.

    Notes
    -----
    Source: franco2023, A.4; the algorithms are ours.

    Examples
    --------
    >>> from llpbook import load, make_bags
    >>> X, y = load("heart")
    >>> made = make_bags(X, y, "simple", n_bags=5, random_state=0)
    >>> made.sizes.tolist(), made.proportions.shape
    ([37, 84, 37, 64, 48], (5, 2))
    """
    rng = check_random_state(random_state)
    task = read_task(X, y, variant, n_bags, sizes, proportions, clusters, rng)
    if task.variant == "naive":
        return describe(chance_bags(task.sizes, rng), task)
    if task.variant == "intermediate" and task.clusters_are_bags:
        return describe(task.clusters, task, task.wanted)
    table, counts, wanted = variant_table(task, rng)
    cells = crosstab(task.clusters, task.codes)
    exact = task.variant not in ("label collider", "cross-bag")
    whole = [
        fill_table(table[:, :, y], counts[:, y], cells[:, y], rng, exact)
        for y in range(len(task.classes))
    ]
    dealt = np.stack(whole).transpose(2, 0, 1).reshape(-1, len(counts))
    kinds = task.clusters * len(task.classes) + task.codes
    return describe(deal(kinds, dealt, rng), task, wanted)
