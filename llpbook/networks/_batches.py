"""Batches of whole bags, and bags that are mixed of two."""

import numpy as np

from .._input import repeated_rows
from .._linear import BagCounts


def draw_batches(sizes, batch_size, random):
    """Cut a random order of the bags into batches: a bag is in the batch in which its first instance falls.

    Parameters
    ----------
    sizes : ndarray of int, shape (n_bags,)
    batch_size : int
        Instances.
    random : RandomState

    Returns
    -------
    list of ndarray of int
        Numbers of bags, in ascending order.
    """
    order = random.permutation(len(sizes))
    before = np.cumsum(sizes[order]) - sizes[order]
    cuts = np.flatnonzero(np.diff(before // batch_size)) + 1
    return [np.sort(bags) for bags in np.split(order, cuts)]


def whole_bags(observed, bags):
    """Rows of the instances of some bags, in the order of these, and the counts of the bags.

    Parameters
    ----------
    observed : BagCounts
    bags : ndarray of int, shape (n,)

    Returns
    -------
    rows : ndarray of int
    BagCounts
    """
    S, sizes = observed.matrix, observed.sizes[bags]
    rows = np.concatenate([S.indices[S.indptr[k] : S.indptr[k + 1]] for k in bags])
    codes = repeated_rows(sizes)
    return rows, BagCounts(codes, sizes, observed.counts[bags], observed.errors[bags])


def count_of_drawn(size, shares, drawn):
    r"""Mean and covariance of the class counts among instances that are drawn from a bag without replacement.

    Equation :eq:`eq-networks-mix`: :math:`m p` and :math:`m \frac{n - m}{n - 1} (\operatorname{diag} p - p p^\top)`.

    Parameters
    ----------
    size : int
        n, instances of the bag.
    shares : ndarray, shape (n_classes,)
        p, of the classes.
    drawn : int
        m, instances drawn.

    Returns
    -------
    mean : ndarray, shape (n_classes,)
    covariance : ndarray, shape (n_classes, n_classes)
    """
    # eq: eq-networks-mix
    factor = drawn * (size - drawn) / max(size - 1, 1)
    return drawn * shares, factor * (np.diag(shares) - np.outer(shares, shares))


def mix_some(observed, bags, random):
    r"""Mix about half of some bags with another bag.

    Of a bag and its partner, drawn from all, shares :math:`\gamma` and :math:`1 - \gamma` of the instances are drawn,
    :math:`\gamma` uniform on [0, 1] (asanomi2023).

    Parameters
    ----------
    observed : BagCounts
        Of all bags that are trained on.
    bags : ndarray of int, shape (n,)
    random : RandomState

    Returns
    -------
    rows : ndarray of int
        Of the instances drawn.
    BagCounts
        The expected counts of these bags; their errors are the variances and covariances of the counts.
    """
    S, shares, all_sizes = observed.matrix, observed.shares, observed.sizes
    rows, sizes, counts, errors = [], [], [], []
    for bag in bags:
        parts = [(bag, all_sizes[bag])]
        if len(all_sizes) > 1 and random.random_sample() < 0.5:
            partner = (bag + random.randint(1, len(all_sizes))) % len(all_sizes)
            share = random.random_sample()
            parts = [
                (k, max(1, round(part * all_sizes[k])))
                for k, part in ((bag, share), (partner, 1 - share))
            ]
        for k, drawn in parts:
            own = S.indices[S.indptr[k] : S.indptr[k + 1]]
            rows.append(random.choice(own, drawn, replace=False))
        drawings = [count_of_drawn(all_sizes[k], shares[k], m) for k, m in parts]
        counts.append(sum(mean for mean, _ in drawings))
        errors.append(sum(covariance for _, covariance in drawings))
        sizes.append(sum(drawn for _, drawn in parts))
    counts, errors = np.array(counts), np.array(errors)
    if shares.shape[1] == 2:
        counts, errors = counts[:, 1], errors[:, 1, 1]
    sizes = np.array(sizes)
    codes = repeated_rows(sizes)
    return np.concatenate(rows), BagCounts(codes, sizes, counts, errors)
