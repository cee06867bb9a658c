r"""Bags of a wanted variant, made from instances with labels.

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

import numpy as np
from sklearn.utils import check_random_state

from .._typing import ArrayLike, Matrix, Proportions, RandomState
from ..base import crosstab
from ._count_tables import bag_counts, deal, fill_table, fit_margins, round_table
from ._generated_bags import GeneratedBags, describe
from ._task import read_task
from ._variant_tables import (
    chance_bags,
    cluster_to_bag,
    cross_bag_table,
    hard_table,
    intermediate_table,
    label_collider_table,
    project_rows,
    variant_table,
)

__all__ = ["GeneratedBags", "make_bags"]


def make_bags(
    X: Matrix,
    y: ArrayLike,
    variant: str,
    *,
    n_bags: int | None = None,
    sizes: ArrayLike | None = None,
    proportions: Proportions | None = None,
    clusters: ArrayLike | None = None,
    random_state: RandomState = None,
) -> GeneratedBags:
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
        Those of k-means clusters of X if not given, but such that the proportions add up to the class prior. A Series
        beside ``proportions`` is matched by its keys.
    proportions : array-like or DataFrame, shape (n_bags,) or (n_bags, n_classes), optional
        Those of k-means clusters if not given. A vector is the share of the second of two classes. Where they do not
        add up to the classes of y, the odds of all bags shift alike.
    clusters : array-like, shape (n_instances,), optional
        What bags depend on besides the label; k-means clusters of the standardized X, ``n_bags`` many, if not given.
        For label collider and cross-bag: strata within which y and X are independent; instances with about the same
        estimated P(y | x) if not given. The variant then holds as well as that estimate.
    random_state : int, RandomState or None

    Returns
    -------
    GeneratedBags
        ``bags, proportions = make_bags(…)``; ``.sizes``, ``.report``, ``.to_dataset(X, y)``.

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
