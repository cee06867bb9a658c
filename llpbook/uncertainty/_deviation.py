"""Standard deviation of a random intercept per bag, estimated and tested without labels."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.utils import check_random_state

from .._input import ArrayLike, Matrix, Proportions, RandomState, check_whole
from .._linear import prior_precision
from .._printed import Printed
from ..count_likelihood import estimate_deviation
from ._sandwich import read_fit

#: Deviations that the statistic tries, in log-odds.
TRIED = np.array([0.0, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0])
#: The p-value up to which bags are said to differ.
SURE = 0.05
CONFOUNDED = (
    "Intercepts that follow the means of the features look like slopes: no count shows "
    "them, and a small deviation does not rule them out."
)


@dataclass(frozen=True)
class BagDeviation(Printed):
    """Estimate and test of the deviation of bags, from `bag_deviation`; `print` it.

    Attributes
    ----------
    estimate : float
        The standard deviation of the intercepts, in log-odds; nan where the bags cannot tell.
    p_value : float
        Of the statement that there are no such intercepts: the larger one of both penalties.
    verdict : {"differ", "no sign", "cannot tell"}
    estimates, p_values : dict of float: float
        By the penalty C.
    reason : str
        The reason for the verdict "cannot tell"; empty otherwise.
    n_bags, n_coefficients : int

    Examples
    --------
    >>> from llpbook.uncertainty import BagDeviation
    >>> print(BagDeviation(0.4, 0.01, "differ", {0.1: 0.4}, {0.1: 0.01}, "", 60, 3))  # doctest: +ELLIPSIS
    60 bags differ beyond their features: an intercept per bag has the standard deviation 0.40 in log-odds...
    """

    estimate: float
    p_value: float
    verdict: str
    estimates: dict
    p_values: dict
    reason: str
    n_bags: int
    n_coefficients: int

    def __str__(self):
        if self.verdict == "cannot tell":
            return f"{self.n_bags} bags cannot tell whether they differ: {self.reason}"
        no = "no sign that " if self.verdict == "no sign" else ""
        return (
            f"{no}{self.n_bags} bags differ beyond their features: an intercept per bag has the standard deviation "
            f"{self.estimate:.2f} in log-odds (p = {self.p_value:.3f}). {CONFOUNDED}"
        )


@dataclass(frozen=True, eq=False)
class NormalCounts:
    r"""Counts near a fit, as a linear model with normal errors: :math:`c_k - m_k \approx a_k^\top \delta + e_k`.

    With :math:`a_k = \sum_{i \in B_k} v_i x_i` and :math:`\mathrm{Var}\, e_k = V_k + \tau^2 V_k^2`: the second part is
    that of an intercept. The deviation :math:`\tau` is one of log-odds, so it does not depend on how many instances
    the bags have.

    Attributes
    ----------
    V, noise, y : ndarray, shape (n_bags,)
        Variances of the counts, those of stated errors of the counts, and differences.
    A : ndarray, shape (n_bags, n_columns)
    precision : ndarray, shape (n_columns,)
        Of the prior of the change of the weights.
    slope : float
        Change of a share per unit of the log-odds.
    """

    V: np.ndarray
    noise: np.ndarray
    y: np.ndarray
    A: np.ndarray
    precision: np.ndarray
    slope: float = 0.25

    @classmethod
    def of(cls, s, counts, errors, Z, observed):
        """Build it without a prior, from probabilities s of the rows and the counts of one class with their errors."""
        v = s * (1 - s)
        V, A = observed.sums(v), observed.weighted_sums(v, Z)
        slope = float(V.sum() / observed.sizes.sum())
        V = np.maximum(V, 1e-9)
        return cls(V, errors, counts - observed.sums(s), A, np.zeros(A.shape[1]), slope)

    def with_prior(self, w, precision):
        """Copy with the prior of the weights w that the counts were fitted with."""
        return replace(self, y=self.y + self.A @ w, precision=precision)

    def flat(self):
        """Copy with a prior so wide that the weights are free, where columns are not 0."""
        size = ((self.A**2) / self.V[:, None]).sum(axis=0)
        return replace(self, precision=np.where(size > 0, 1e-8 * size, 1.0))

    def log_likelihood(self, deviation):
        """Log-likelihood of the counts, with the weights integrated out."""
        D = self.V + self.noise + deviation**2 * self.V**2
        H = np.diag(self.precision) + self.A.T @ (self.A / D[:, None])
        b = self.A.T @ (self.y / D)
        fit = self.y @ (self.y / D) - b @ np.linalg.solve(H, b)
        return -0.5 * (np.log(D).sum() + np.linalg.slogdet(H)[1] + fit)

    def ratio(self):
        """Twice the log-likelihood ratio of the best deviation of `TRIED` against none, and the best deviation."""
        values = [self.log_likelihood(tau) for tau in TRIED]
        best = int(np.argmax(values))
        return 2 * (values[best] - values[0]), float(TRIED[best])


def joined(parts):
    """Join the `NormalCounts` of several chunks."""
    V = np.concatenate([part.V for part in parts])
    n = sum(part.V.sum() / max(part.slope, 1e-12) for part in parts)
    return NormalCounts(
        V, noise=np.concatenate([part.noise for part in parts]),
        y=np.concatenate([part.y for part in parts]),
        A=np.concatenate([part.A for part in parts]),
        precision=parts[0].precision, slope=V.sum() / n,
    )  # fmt: skip


def drawn_counts(s, observed, rng):
    """Draw counts of the bags with probabilities s of the rows."""
    # the numbers of this generator are `np.intp`, frequencies int64
    times = 1 if observed.frequencies is None else observed.frequencies.astype(np.intp)
    labels = rng.binomial(times, s)
    return np.bincount(observed.bags, labels, len(observed.sizes))


def p_value_of_none(objective, n_resamples, rng):
    """p-value of no intercepts, by a bootstrap of counts from the fit without them, and the weights of that fit.

    Parameters
    ----------
    objective : LinearObjective
        Of a `CountLoss`.
    n_resamples : int
    rng : RandomState

    Returns
    -------
    p_value : float
    null : ndarray, shape (1, n_columns)
        The weights without intercepts.
    """
    Z, precision = objective.Z, prior_precision(objective.penalty)

    def statistic(trial, start):
        w = trial.solve(start).w
        s, observed = expit(np.asarray(Z @ w[0])), trial.observed
        near = NormalCounts.of(s, observed.counts, observed.errors, Z, observed)
        return near.with_prior(w[0], precision).ratio()[0], w

    own, null = statistic(objective, np.zeros((1, Z.shape[1])))
    s, observed = expit(np.asarray(Z @ null[0])), objective.observed
    drawn = [drawn_counts(s, observed, rng) for _ in range(n_resamples)]
    larger = sum(statistic(objective.changed(counts=c), null)[0] >= own for c in drawn)
    return (1 + larger) / (1 + n_resamples), null


def bag_deviation(
    model: Any, X: Matrix, bags: ArrayLike, proportions: Proportions, *,
    counts: ArrayLike | None = None, C: tuple[float, ...] = (0.1, 1.0),
    n_resamples: int = 99, random_state: RandomState = None,
) -> BagDeviation:  # fmt: skip
    r"""Test and estimate how far bags differ beyond their features, without labels.

    The model is :math:`\operatorname{logit} P(y = 1 \mid x, k) = \langle w, x \rangle + b + u_k`,
    :math:`u_k \sim N(0, \tau^2)`. The deviation :math:`\tau` makes the counts likeliest, with the weights integrated
    out; counts drawn from the fit with :math:`\tau = 0` give the p-value.

    Parameters
    ----------
    model : CountLogistic or Pipeline
        Fitted to these bags, two classes; its features, scaled by the steps of a pipeline, are taken, not its C.
    X : array-like, shape (n_instances, n_features)
    bags : array-like, shape (n_instances,)
    proportions : array-like, Series, dict or DataFrame
        See `llpbook.proportions.check_proportions`.
    counts : array-like of int, shape (n_instances,), optional
        How many equal instances each row stands for; one if not given.
    C : tuple of float, default (0.1, 1.0)
        Penalties at which the question is asked. Only an answer that all give counts: a strong penalty leaves slopes
        too small, which looks like bags that differ, and a weak one explains bags by chance slopes.
    n_resamples : int, default 99
        Draws of the bootstrap. The p-value is at least 1 / (1 + n_resamples).
    random_state : int, RandomState or None, default None

    Returns
    -------
    BagDeviation

    Raises
    ------
    ValueError
        For more than two classes, shares with stated errors, another model, or malformed input.

    Notes
    -----
    Intercepts that follow the means of the features leave no trace in the counts: the verdict is then "no sign", or a
    small estimate. Log-odds that are no line look like bags that differ. With no more bags than coefficients, and where
    the penalties disagree, the verdict is "cannot tell". Costs ``n_resamples`` fits per penalty. The estimate and the
    test are ours; adaptive quadrature is that of mixed logistic regression.

    Examples
    --------
    >>> import numpy as np
    >>> from llpbook import CountLogistic
    >>> rng = np.random.default_rng(0)
    >>> bags, X = np.repeat(np.arange(60), 40), rng.normal(size=(2400, 1))
    >>> X += rng.normal(size=60)[bags][:, None]
    >>> log_odds = X[:, 0] + rng.normal(size=60)[bags]     # an intercept of deviation 1
    >>> y = rng.random(2400) < 1 / (1 + np.exp(-log_odds))
    >>> p = np.bincount(bags, y) / 40
    >>> deviation = bag_deviation(CountLogistic().fit(X, bags, p), X, bags, p, random_state=0)
    >>> deviation.verdict, bool(0.8 < deviation.estimate < 1.3)
    ('differ', True)
    """
    check_whole("n_resamples", n_resamples)
    penalties = check_penalties(C)
    fit, data = read_fit(model, X, bags, proportions, None, counts)
    if len(fit.weights) > 1 or fit.observed.errors.any():
        raise ValueError(
            "proportions must be of two classes and without stated errors, because one intercept per bag moves one "
            f"log-odds: give the share of one class against the rest, got {data.classes.tolist()}"
        )
    n_bags, n_coefficients = len(fit.used), fit.weights.size
    if n_bags <= n_coefficients:
        why = f"there are {n_coefficients} coefficients, which explain any difference between them"
        return BagDeviation(
            np.nan, np.nan, "cannot tell", {}, {}, why, n_bags, n_coefficients
        )
    rng, estimates, p_values = check_random_state(random_state), {}, {}
    for one in penalties:
        penalty = np.where(fit.penalty > 0, 1 / one, 0.0)
        loss = fit.loss.with_deviation(0.0)
        objective = replace(fit, loss=loss, penalty=penalty).objective()
        p_values[one], null = p_value_of_none(objective, n_resamples, rng)
        estimates[one] = estimate_deviation(objective, null)
    return judged(estimates, p_values, n_bags, n_coefficients)


def check_penalties(C):
    """Penalties as a list of floats."""
    values = np.ravel(np.asarray(C, float))
    if not (len(values) and np.isfinite(values).all() and values.min() > 0):
        raise ValueError(f"C must hold positive numbers, got {C!r}")
    return values.tolist()


def judged(estimates, p_values, n_bags, n_coefficients):
    """Join the answers for all penalties to a `BagDeviation`."""
    p, sure = max(p_values.values()), [value <= SURE for value in p_values.values()]
    estimate, reason = estimates[max(estimates)], ""
    verdict = "differ" if all(sure) else "no sign"
    if any(sure) and not all(sure):
        answers = ", ".join(f"p = {v:.2f} at C = {C:g}" for C, v in p_values.items())
        estimate, verdict = np.nan, "cannot tell"
        reason = f"the answer depends on the penalty ({answers})"
    return BagDeviation(
        estimate, p, verdict, estimates, p_values, reason, n_bags, n_coefficients
    )
