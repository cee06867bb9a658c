"""Losses of single instances that the shares correct: EasyLLP, and the forward correction of LLPFC."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import logit, logsumexp

from .._linear import BagLoss, curvature, label_factors
from ..base import expit, probabilities, warn

#: A probability of the forward model counts as no less.
SMALLEST_CHANCE = 1e-12
#: A label of `EasyLoss` of which a fit warns: bags of 500 and an even prior have a standard deviation of 11.
FAR = 50.0


def easy_labels(observed, prior):
    r"""Label of each bag that replaces the unknown labels of its instances.

    :math:`\tilde y_k = n_k (p_k - \eta) + \eta`, equation :eq:`eq-losses-easy`. Its mean, given the true label of the
    instance, is that label if the labels of all instances are independent with the class prior; it can be far outside
    of [0, 1].

    Parameters
    ----------
    observed : BagCounts
    prior : ndarray, shape (n_classes,)

    Returns
    -------
    ndarray, shape (n_bags, n_classes)
        Rows sum to 1.
    """
    # eq: eq-losses-easy
    return observed.sizes[:, None] * (observed.shares - prior) + prior


def easy_label_variance(size, prior):
    r"""Variance of the label of `easy_labels` around the true one.

    :math:`(n - 1) \eta (1 - \eta)`, equation :eq:`eq-losses-easy-variance`.

    Parameters
    ----------
    size : int or ndarray
        Of the bag.
    prior : float

    Returns
    -------
    float or ndarray
    """
    # eq: eq-losses-easy-variance
    return (size - 1) * prior * (1 - prior)


def unmixed_labels(observed, prior):
    r"""Labels of `easy_labels` with a factor that comes from the shares of all bags, in place of the size of each bag.

    :math:`\tilde y_k = \eta + (\operatorname{diag} \eta - \eta \eta^\top) S^{-1} (p_k - \eta)`, S the covariance matrix
    of the shares of an instance's bag, equation :eq:`eq-losses-unmixed`. Its mean, given the true label of the
    instance, is that label if features and bags are independent given the label.

    Parameters
    ----------
    observed : BagCounts
    prior : ndarray, shape (n_classes,)

    Returns
    -------
    ndarray, shape (n_bags, n_classes)
        Rows sum to 1.
    """
    apart = observed.shares - prior
    spread = (apart * observed.sizes[:, None]).T @ apart / observed.sizes.sum()
    within = np.diag(prior) - np.outer(prior, prior)
    # eq: eq-losses-unmixed
    return prior + apart @ np.linalg.pinv(spread, rcond=1e-9, hermitian=True) @ within


@dataclass(frozen=True)
class EasyLoss(BagLoss):
    r"""The logarithmic loss of `easy_labels`: its mean is that of the true labels (busafekete2023).

    Parameters
    ----------
    factor : {"size", "worth"}, default "size"
        Factor of :math:`p_k - \eta` in the label: the size of the bag, which is right in random bags; or n / w of all
        bags, w their worth in labels, see `unmixed_labels`, which is right wherever features and bags are independent
        given the label.
    prior : sequence of float, shape (n_classes,), optional
        Shares of the classes in all bags; those of the bags that are given, if not given. A batch of some bags needs
        it.

    Notes
    -----
    Unbiased for random bags and a known prior: labels must be independent with one class prior. With the factor
    "worth" all bags must be given at once. The gradient is :math:`s_i - \tilde y_i` and the curvature that of logistic
    regression; below the labels that are above 1 the value has no bound. Where bags of very different sizes make the
    labels of a class sum to less than 0, no intercept is the best, and a linear model with a free one is refused; with
    the factor "worth" the sum is the count of the class.

    Raises
    ------
    ValueError
        For another factor or a prior that is none; in a call for a single bag that is given no prior, or with the
        factor "worth": its labels would all be its share, whatever the labels are.

    Examples
    --------
    >>> from llpbook.bag_losses import EasyLoss
    >>> value, gradient, hessian = EasyLoss(prior=(0.5, 0.5))([0.0, 0.0], [0, 0], [1.0])
    >>> gradient.tolist()  # both scores should rise
    [-1.0, -1.0]
    """

    prior: tuple | None = None
    factor: str = "size"
    several_classes, bounded = True, False

    @property
    def fewest_bags(self):
        """One bag has a label only beside a prior of all bags, and no factor of all bags."""
        return 2 if self.prior is None or self.factor == "worth" else 1

    def __post_init__(self):
        if self.factor not in ("size", "worth"):
            raise ValueError(f"factor must be 'size' or 'worth', got {self.factor!r}")
        _keep_tuple(self)

    def labels(self, observed):
        """Labels of the bags, shape (n_bags, n_classes)."""
        make = easy_labels if self.factor == "size" else unmixed_labels
        return make(observed, _prior(self, observed))

    def check_counts(self, observed):
        """See `BagLoss.check_counts`; warns of labels that are far outside of [0, 1]."""
        labels = np.abs(self.labels(observed)).max(axis=1)
        worst = labels.argmax()
        if labels[worst] > FAR:
            warn(
                f"the loss 'easy' gives each instance of a bag of {observed.sizes[worst]} the label "
                f"{labels[worst]:.0f}, not 0 or 1, and its variance is large; loss='proportion' has no such labels"
            )
        return observed

    def of_counts(self, scores, observed):
        """See `BagLoss.of_counts`."""
        return self.of_all(observed).of_counts(scores, observed)

    def of_all(self, observed):
        """See `BagLoss.of_all`: the labels of all bags."""
        return LossOfLabels(self.labels(observed))

    def factors(self, scores, observed, state=None):
        """See `BagLoss.factors`: those of logistic regression."""
        return label_factors(scores)

    def with_prior(self, prior):
        """See `BagLoss.with_prior`; a prior that was given stays."""
        return _with_prior(self, prior)


@dataclass(frozen=True, eq=False)
class LossOfLabels(BagLoss):
    """The logarithmic loss of one label for all instances of a bag.

    Parameters
    ----------
    labels : ndarray, shape (n_bags, n_classes)
        Rows sum to 1.
    """

    labels: np.ndarray
    several_classes, bounded = True, False

    def of_counts(self, scores, observed):
        """See `BagLoss.of_counts`."""
        s, columns = probabilities(scores), slice(None) if scores.ndim == 2 else 1
        labels = self.labels[observed.bags]
        if scores.ndim == 1:  # exact where a probability is rounded to 0
            value = observed.total(np.logaddexp(0, scores) - labels[:, 1] * scores)
        else:
            total = logsumexp(scores, axis=1)
            value = observed.total(total - np.sum(labels * scores, axis=1))
        return value, (s - labels)[:, columns], curvature(s[:, columns])

    def factors(self, scores, observed, state=None):
        """See `BagLoss.factors`: those of logistic regression."""
        return label_factors(scores)

    def some(self, bags):
        """See `BagLoss.some`."""
        return LossOfLabels(self.labels[bags])


def _keep_tuple(loss):
    """Store the prior of a loss as a tuple, so that losses can be compared; ValueError if it is no distribution."""
    if loss.prior is not None:
        prior = np.asarray(loss.prior, dtype=float)
        valid = prior.ndim == 1 and prior.min() >= 0 and abs(prior.sum() - 1) < 1e-6
        if not valid:
            raise ValueError(
                f"prior must be shares of the classes that sum to 1, got {loss.prior!r}"
            )
        object.__setattr__(loss, "prior", tuple(prior.tolist()))


def _with_prior(loss, prior):
    """The loss with this prior, or with its own prior if that has as many classes."""
    if loss.prior is None:
        return replace(loss, prior=prior)
    if len(loss.prior) != len(prior):
        raise ValueError(
            f"the prior of {loss!r} must have one share per class, {len(prior)}"
        )
    return loss


def _prior(loss, observed):
    """The class prior of a loss, by default that of the bags."""
    if loss.prior is not None:
        return np.asarray(loss.prior, dtype=float)
    return observed.sizes @ observed.shares / observed.sizes.sum()


def pair_bags(shares):
    """Pair the bag of the largest share with that of the smallest, and so on inwards.

    Of an even number of bags no other pairing has a larger sum of squared differences. Of an odd number, the bag in the
    middle is paired with that of the largest share, which then is in two pairs, with half the weight in each. Among
    equal shares the number of the bag decides, and of known labels, which are bags of one, the order of the rows:
    other numbers may pair them otherwise, and change some labels (12 % in twenty bags of ten).

    Parameters
    ----------
    shares : ndarray, shape (n_bags,)

    Returns
    -------
    ndarray of int, shape (n_pairs, 2)
        The bag of the larger share first.
    """
    order = np.argsort(shares, kind="stable")
    half = len(order) // 2
    pairs = np.column_stack([order[::-1][:half], order[:half]])
    if len(order) % 2 and half:
        pairs = np.vstack([pairs, [order[-1], order[half]]])
    return pairs


def transition(shares, weights):
    r"""Probability that an instance of either class is from the first of two mixed bags.

    Equation :eq:`eq-losses-transition`.

    Parameters
    ----------
    shares, weights : ndarray, shape (n_pairs, 2)
        Shares of the positive class, and numbers of instances that the bags stand for.

    Returns
    -------
    negative, positive : ndarray, shape (n_pairs,)
        :math:`\rho_0 = P(\text{first} \mid y = 0)` and :math:`\rho_1 = P(\text{first} \mid y = 1)`.
    prior : ndarray, shape (n_pairs,)
        Share of the positive class in the mixture.
    """
    parts = np.stack([weights * (1 - shares), weights * shares])
    total = parts.sum(axis=2)
    # eq: eq-losses-transition
    first = np.divide(parts[..., 0], total, out=np.zeros_like(total), where=total > 0)
    return *first, total[1] / weights.sum(axis=1)


@dataclass(frozen=True)
class ForwardLoss(BagLoss):
    r"""The logarithmic loss of the question which of two bags an instance is from.

    Equation :eq:`eq-losses-forward`. The forward correction of label noise, for pairs of bags (zhang2022; scott2020 for
    the pairs): the bag is a noisy label with known rates of error.

    Parameters
    ----------
    prior : sequence of float, shape (2,), optional
        As of `EasyLoss`.

    Notes
    -----
    Consistent where bags differ in their shares of the classes alone, features and bags being independent given the
    label: the true log-odds have the smallest expected loss. Two bags with the same share tell nothing. Linear models
    use the expected curvature :math:`P'^2 / (P (1 - P))`. Trees get that of logistic regression at the same log-odds:
    divided by the expected one, which is next to 0 where the shares of a pair are close, steps are decided by noise.

    Raises
    ------
    ValueError
        For a prior that is none; in a call for a single bag, which has no other to be paired with.

    Examples
    --------
    >>> from llpbook import BagLogistic, load_bags
    >>> from llpbook.bag_losses import ForwardLoss
    >>> data = load_bags("heart", bag_size=8, random_state=0)
    >>> model = BagLogistic(loss=ForwardLoss()).fit(*data)
    >>> data.evaluate(model) > 0.6
    True
    """

    prior: tuple | None = None
    fewest_bags = 2

    def __post_init__(self):
        _keep_tuple(self)

    def of_counts(self, scores, observed):
        """See `BagLoss.of_counts`."""
        return self.of_all(observed).of_counts(scores, observed)

    def factors(self, scores, observed, state=None):
        """See `BagLoss.factors`."""
        return self.of_all(observed).factors(scores, observed)

    def of_all(self, observed):
        """See `BagLoss.of_all`: the pairs of all bags."""
        prior, shares = _prior(self, observed)[1], observed.shares[:, 1]
        pairs, places = pair_bags(shares), np.full((4, len(shares)), -1)
        times = np.bincount(pairs.ravel(), minlength=len(shares))
        weights = (observed.sizes / np.maximum(times, 1))[pairs]
        for place in (0, 1):
            for turn, index in enumerate(_one_of_each(pairs[:, place])):
                places[2 * place + turn, pairs[index, place]] = index
        return LossOfPairs(transition(shares[pairs], weights), prior, times, places)

    def with_prior(self, prior):
        """See `EasyLoss.with_prior`."""
        return _with_prior(self, prior)


@dataclass(frozen=True, eq=False)
class LossOfPairs(BagLoss):
    """The loss of `ForwardLoss` for stated pairs of bags.

    Parameters
    ----------
    rates : tuple of ndarray, shape (n_pairs,)
        Of `transition`.
    prior : float
        Share of the positive class in all bags.
    times : ndarray of int, shape (n_bags,)
        In how many pairs each bag is.
    places : ndarray of int, shape (4, n_bags)
        The pair of which a bag is the first, another one, the pair of which it is the second, another one; -1 for none.
    """

    rates: tuple
    prior: float
    times: np.ndarray
    places: np.ndarray

    def of_counts(self, scores, observed):
        """See `BagLoss.of_counts`."""
        value, gradient = 0.0, np.zeros_like(scores)
        for rows, share, (loss, slope, _) in self._of_places(scores, observed):
            value += share @ observed.of_rows(loss, rows)
            gradient[rows] += share * slope
        return float(value), gradient, curvature(expit(scores))

    def factors(self, scores, observed, state=None):
        """See `BagLoss.factors`."""
        information = np.zeros_like(scores)
        for rows, share, (_, _, expected) in self._of_places(scores, observed):
            information[rows] += share * expected
        return [np.sqrt(information)]

    def _of_places(self, scores, observed):
        """Yield the instances of the first bags of pairs, then of the second: rows, their weights, and `forward`."""
        for place, pair in enumerate(self.places):
            rows = np.flatnonzero(pair[observed.bags] >= 0)
            bags = observed.bags[rows]
            negative, positive, mixed = (rate[pair[bags]] for rate in self.rates)
            yield (
                rows,
                1 / self.times[bags],
                forward(
                    scores[rows],
                    negative,
                    positive,
                    mixed,
                    self.prior,
                    is_first=place < 2,
                ),
            )

    def some(self, bags):
        """See `BagLoss.some`."""
        return replace(self, times=self.times[bags], places=self.places[:, bags])


def _one_of_each(bags):
    """Split the numbers of the pairs into one or two parts in which no bag occurs twice."""
    first = np.unique(bags, return_index=True)[1]
    second = np.setdiff1d(np.arange(len(bags)), first)
    return [first, second] if len(second) else [first]


def forward(f, negative, positive, mixed, prior, is_first):
    r"""Loss of each instance under the forward model, its derivative, and the expected second derivative.

    Parameters
    ----------
    f : ndarray, shape (n,)
        Log-odds under the class prior.
    negative, positive, mixed : ndarray, shape (n,)
        Of the pair of each instance: what `transition` returns, in its order.
    prior : float
        Share of the positive class in all bags.
    is_first : bool
        True if the instances are from the first bags of their pairs.

    Returns
    -------
    loss, gradient, information : ndarray, shape (n,)
    """
    low, high = SMALLEST_CHANCE, 1 - SMALLEST_CHANCE
    shift = logit(np.clip(mixed, low, high)) - logit(np.clip(prior, low, high))
    s = expit(f + shift)
    # eq: eq-losses-forward
    first = np.clip(negative + (positive - negative) * s, low, high)
    slope = (positive - negative) * s * (1 - s)
    chance = first if is_first else 1 - first
    gradient = -slope / first if is_first else slope / (1 - first)
    return -np.log(chance), gradient, slope**2 / (first * (1 - first))
