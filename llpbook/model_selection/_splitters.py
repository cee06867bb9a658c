"""Training and validation parts: whole bags, or a part of each bag."""

from numbers import Real

import numpy as np
import pandas as pd
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils import check_random_state

from .._input import (
    REPEAT,
    Proportions,
    RandomState,
    check_column,
    check_flag,
    check_whole,
    match_bags,
    num_samples,
    refuse_cells,
)


def count_rows(X):
    """Number of instances of X; ValueError where X has no rows."""
    try:
        return num_samples(X)
    except TypeError as error:
        raise ValueError(f"X must have one row per instance: {error}") from error


def bag_order(codes, rng=None):
    """Order the instances bag by bag.

    Parameters
    ----------
    codes : ndarray of int, shape (n_instances,)
        The bag of each instance.
    rng : RandomState, optional
        Shuffles the instances within their bags; without it they keep their order.

    Returns
    -------
    ndarray of int, shape (n_instances,)
        Rows of the instances.
    """
    n = len(codes)
    order = np.arange(n) if rng is None else rng.permutation(n)
    return order[np.argsort(codes[order], kind="stable")]


def split_bag_folds(codes, n_folds, rng=None):
    r"""Fold of each instance: instances are numbered in turn, bag by bag.

    Equation :eq:`eq-ms-folds`.

    Parameters
    ----------
    codes : ndarray of int, shape (n_instances,)
    n_folds : int
    rng : RandomState, optional
        Shuffles within the bags first.

    Returns
    -------
    ndarray of int, shape (n_instances,)
        Each bag, and the whole, has as many instances in each fold, up to one.
    """
    folds = np.empty(len(codes), dtype=int)
    # eq: eq-ms-folds
    folds[bag_order(codes, rng)] = np.arange(len(codes)) % n_folds
    return folds


def bag_part(codes, share, rng):
    r"""Draw a random part of each bag, without replacement.

    Equation :eq:`eq-ms-part`.

    Parameters
    ----------
    codes : ndarray of int, shape (n_instances,)
    share : float
        In (0, 1).
    rng : RandomState

    Returns
    -------
    ndarray of bool, shape (n_instances,)
        True for ``share`` times the size of each bag, up to one instance; for each instance as likely.
    """
    part = np.empty(len(codes), dtype=bool)
    order, start = bag_order(codes, rng), rng.random_sample()
    # eq: eq-ms-part
    part[order] = np.diff(np.floor(start + share * np.arange(len(codes) + 1))) > 0
    return part


def draw_from_bags(codes, counts, rng):
    """Draw with replacement from each bag.

    Parameters
    ----------
    codes : ndarray of int, shape (n_instances,)
        0, …, n_bags - 1, each with an instance.
    counts : ndarray of int, shape (n_bags,)
        Number of draws from each bag.
    rng : RandomState

    Returns
    -------
    ndarray of int, shape (counts.sum(),)
        Rows of the instances drawn, bag after bag.
    """
    sizes, drawn = np.bincount(codes), np.repeat(np.arange(len(counts)), counts)
    starts = np.cumsum(sizes) - sizes
    within = (rng.random_sample(len(drawn)) * sizes[drawn]).astype(int)
    return bag_order(codes)[starts[drawn] + within]


def next_bag_chances(counts, held, prior):
    """Probability of each bag to be the next one of a fold.

    Parameters
    ----------
    counts : ndarray, shape (n_left, n_classes)
        Instances of each class in the bags that are left.
    held : ndarray, shape (n_classes,)
        Instances of each class that the fold holds already.
    prior : ndarray, shape (n_classes,)
        Shares of the classes over all bags.

    Returns
    -------
    ndarray, shape (n_left,)
        Source: Hernández-González (2019), as the public code for franco2023 has it.
    """
    if len(prior) == 2:
        lacking = int(held[1] <= prior[1] * held.sum() + 1e-9)
        weights = counts[:, lacking] ** 2
        if not weights.any():
            weights = counts[:, 1 - lacking] ** 2
    else:
        mixed = counts + held
        gaps = mixed / mixed.sum(axis=1, keepdims=True) - prior
        weights = np.exp(-np.linalg.norm(gaps, axis=1))
    return weights / weights.sum()


def whole_bag_folds(counts, n_folds, rng=None):
    """Fold of each bag, such that folds are alike in size and, with ``rng``, in the classes.

    Parameters
    ----------
    counts : ndarray, shape (n_bags, n_classes)
        Instances of each class in each bag, of one column where proportions are not known.
    n_folds : int
        At most ``n_bags``.
    rng : RandomState, optional
        Draws the next bag by `next_bag_chances`; without it the largest is next, of equal ones the first.

    Returns
    -------
    ndarray of int, shape (n_bags,)
        The next bag always goes to the fold with the fewest instances, so none is empty.
    """
    held = np.zeros((n_folds, counts.shape[1]))
    folds, prior = np.full(len(counts), -1), counts.sum(axis=0) / counts.sum()
    by_size = np.argsort(-counts.sum(axis=1), kind="stable")
    for bag in by_size:
        fold = held.sum(axis=1).round(6).argmin()
        if rng is not None:
            left = np.flatnonzero(folds < 0)
            chances = next_bag_chances(counts[left], held[fold], prior)
            bag = left[rng.choice(len(left), p=chances)]
        folds[bag] = fold
        held[fold] += counts[bag]
    return folds


class BagSplitter(BaseCrossValidator):
    """Base of the splitters: scikit-learn's protocol with the bags as ``groups``.

    Bags may be numbers or names. Renaming the bags changes no split; the order of the instances does.

    Examples
    --------
    >>> import numpy as np
    >>> from llpbook.model_selection import BagSplitter, SplitBagKFold
    >>> issubclass(SplitBagKFold, BagSplitter)
    True
    >>> bags = np.repeat([0, 1], 4)
    >>> [len(test) for train, test in SplitBagKFold(4).split(bags, groups=bags)]
    [2, 2, 2, 2]
    """

    #: Whether instances of one bag come into different parts.
    _cuts_bags = True
    # scikit-learn's metadata routing hands ``groups`` on without being asked.
    __metadata_request__split = {"groups": True}

    def _check(self, least=1):
        """Refuse invalid numbers of splits and shares."""
        n, share = self.n_splits, getattr(self, "test_size", 0.5)
        check_whole("n_splits", n, least)
        for name in ("shuffle", "out_of_bag"):
            check_flag(name, getattr(self, name, True))
        if not isinstance(share, Real) or not 0 < share < 1:
            raise ValueError(
                f"test_size must be a share of each bag, between 0 and 1, got {share!r}"
            )

    def get_n_splits(self, X=None, y=None, groups=None):
        """The number of splits, ``n_splits``; the arguments are not used."""
        return self.n_splits

    def split(self, X, y=None, groups=None):
        """Yield the rows of the training and the validation part of each split.

        Parameters
        ----------
        X : array-like, shape (n_instances, n_features)
            Only its length is used, and its index, if it has one.
        y : object
            Not used.
        groups : array-like, shape (n_instances,)
            The bag of each instance.

        Yields
        ------
        train, test : ndarray of int

        Raises
        ------
        ValueError
            If ``groups`` is missing or malformed, or there are too few instances or bags.
        """
        if groups is None:
            raise ValueError(
                f"groups must be the bags for {type(self).__name__}: pass groups=bags. A search inside cross_val_score "
                "is not handed its groups: make it LLPGridSearchCV, and pass params={'proportions': proportions}"
            )
        n = count_rows(X)
        codes = pd.factorize(check_column("groups", groups, n, X))[0]
        if self._cuts_bags:
            refuse_cells(X, codes, remedy=REPEAT)
        for train, test in self._parts(codes, groups, X):
            if not len(train) or not len(test):
                part = "validation" if len(train) else "training"
                raise ValueError(f"{self} leaves no {part} part of {n} instances")
            yield train, test

    def _folds(self, folds):
        """Yield the splits in which each fold in turn is the validation part."""
        for k in range(self.n_splits):
            yield np.flatnonzero(folds != k), np.flatnonzero(folds == k)


class FullBagKFold(BagSplitter):
    """Whole bags in folds that are alike in size and in the share of positives.

    Right where bags are alike but for chance (*Naive*), so that a model of some bags serves the others.

    Parameters
    ----------
    n_splits : int, default 5
        At most the number of bags; as many leaves one bag out at a time.
    proportions : None or array-like, Series, dict or DataFrame, default None
        As for ``fit``; bags are then drawn into the folds such that shares are alike, by the rule of
        Hernández-González (2019). Without it sizes alone are balanced, and nothing is drawn.
    random_state : int, RandomState or None, default None

    Notes
    -----
    Drawing costs :math:`O(L^2)` for :math:`L` bags, half a second for 10,000.

    Examples
    --------
    >>> import numpy as np
    >>> bags = np.repeat(np.arange(4), 5)
    >>> [bags[test][0].item() for _, test in FullBagKFold(4).split(bags, groups=bags)]
    [0, 1, 2, 3]
    """

    _cuts_bags = False

    def __init__(
        self, n_splits: int = 5, *, proportions: Proportions | None = None,
        random_state: RandomState = None,
    ):  # fmt: skip
        self.n_splits, self.proportions = n_splits, proportions
        self.random_state = random_state
        self._check(least=2)

    def _parts(self, codes, groups, X):
        n_bags, rng = codes.max() + 1, None
        if self.n_splits > n_bags:
            raise ValueError(
                f"n_splits={self.n_splits} must not exceed the number of bags, {n_bags}"
            )
        counts = np.bincount(codes)[:, None].astype(float)
        if self.proportions is not None:
            matched = match_bags(self.proportions, groups, len(codes), X)
            first = np.unique(codes, return_index=True)[1]
            counts = counts * matched.matrix[matched.codes[first]]
            rng = check_random_state(self.random_state)
        return self._folds(whole_bag_folds(counts, self.n_splits, rng)[codes])


class SplitBagKFold(BagSplitter):
    """Each bag cut into folds, so that every bag is in each training and each validation part.

    Folds are a partition. Bags smaller than the number of folds are spread over some of them, and none is lost.

    Parameters
    ----------
    n_splits : int, default 5
    shuffle : bool, default True
        Shuffle the instances within their bags first.
    random_state : int, RandomState or None, default None

    Notes
    -----
    Source: franco2023, section 5.1, which asks for bags at least as large as the number of folds.

    Examples
    --------
    >>> import numpy as np
    >>> from llpbook import SplitBagKFold
    >>> bags = np.repeat([0, 1], 4)
    >>> splits = SplitBagKFold(2, random_state=0).split(bags, groups=bags)
    >>> [np.bincount(bags[test]).tolist() for train, test in splits]
    [[2, 2], [2, 2]]
    """

    def __init__(
        self, n_splits: int = 5, *, shuffle: bool = True,
        random_state: RandomState = None,
    ):  # fmt: skip
        self.n_splits, self.shuffle = n_splits, shuffle
        self.random_state = random_state
        self._check(least=2)

    def _parts(self, codes, groups, X):
        rng = check_random_state(self.random_state) if self.shuffle else None
        return self._folds(split_bag_folds(codes, self.n_splits, rng))


class SplitBagShuffle(BagSplitter):
    """A random part of each bag for validation, the rest for training, drawn anew for each split.

    Parameters
    ----------
    n_splits : int, default 5
    test_size : float, default 0.5
        Share of each bag that validates, met up to one instance.
    random_state : int, RandomState or None, default None

    Notes
    -----
    Source: franco2023, Algorithm 2.

    Examples
    --------
    >>> import numpy as np
    >>> from llpbook import SplitBagShuffle
    >>> bags = np.repeat([0, 1], 4)
    >>> splits = SplitBagShuffle(2, test_size=0.25, random_state=0).split(bags, groups=bags)
    >>> [np.bincount(bags[test]).tolist() for train, test in splits]
    [[1, 1], [1, 1]]
    """

    def __init__(
        self, n_splits: int = 5, *, test_size: float = 0.5,
        random_state: RandomState = None,
    ):  # fmt: skip
        self.n_splits, self.test_size = n_splits, test_size
        self.random_state = random_state
        self._check()

    def _parts(self, codes, groups, X):
        rng = check_random_state(self.random_state)
        for _ in range(self.n_splits):
            part = bag_part(codes, self.test_size, rng)
            yield np.flatnonzero(~part), np.flatnonzero(part)


class SplitBagBootstrap(BagSplitter):
    """Draws with replacement from each bag.

    As the paper has it, training and validation part are drawn independently: with ``test_size=0.5`` about 40 % of the
    instances that validate have also been learned from. With ``out_of_bag=True`` the same instances train, and those
    that do not train validate.

    Parameters
    ----------
    n_splits : int, default 5
    test_size : float, default 0.5
        Of a bag of size m, ``test_size * m`` draws validate and the other ``m`` minus as many draws train, met up to
        one instance.
    out_of_bag : bool, default False
    random_state : int, RandomState or None, default None

    Notes
    -----
    Source: franco2023, section 5.3; the out-of-bag form is ours. Rows of a part may occur several times.

    Examples
    --------
    >>> import numpy as np
    >>> from llpbook import SplitBagBootstrap
    >>> bags = np.repeat([0, 1], 4)
    >>> splits = SplitBagBootstrap(2, random_state=0).split(bags, groups=bags)
    >>> [np.bincount(bags[train]).tolist() for train, test in splits]
    [[2, 2], [2, 2]]
    """

    def __init__(
        self, n_splits: int = 5, *, test_size: float = 0.5, out_of_bag: bool = False,
        random_state: RandomState = None,
    ):  # fmt: skip
        self.n_splits, self.test_size = n_splits, test_size
        self.out_of_bag, self.random_state = out_of_bag, random_state
        self._check()

    def _parts(self, codes, groups, X):
        rng, sizes = check_random_state(self.random_state), np.bincount(codes)
        for _ in range(self.n_splits):
            part = bag_part(codes, self.test_size, rng)
            validating = np.bincount(codes[part], minlength=len(sizes))
            train = draw_from_bags(codes, sizes - validating, rng)
            test = draw_from_bags(codes, validating, rng)
            if self.out_of_bag:
                test = np.setdiff1d(np.arange(len(codes)), train)
            yield train, test
