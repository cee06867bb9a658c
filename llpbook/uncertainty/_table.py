"""Coefficients with standard errors, intervals and tests, printed as statistics packages print them."""

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import f as fisher
from scipy.stats import t as student

from .._input import ArrayLike, Matrix, Proportions
from .._printed import Printed
from ..base import NotIdentifiableError, one_column, require_memory
from ._cautions import caution, caution_of_penalty, deviations
from ._covariance import Sandwich, laplace_covariance
from ._sandwich import (
    AWAY,
    BagSums,
    bag_gradients,
    bag_hessians,
    influences,
    read_fit,
    sandwich,
    split_model,
)
from ._units import in_units


def check_level(level):
    """ValueError unless a level lies between 0 and 1."""
    if not (isinstance(level, Real) and 0 < level < 1):
        raise ValueError(f"level must lie between 0 and 1, got {level!r}")


@dataclass(frozen=True)
class CoefficientTable(Printed):
    """Coefficients of a `CountLogistic` with their sandwich covariance; `print` it.

    Attributes
    ----------
    coefficients : Series
        By name, in the units of the features that were given.
    covariance : Sandwich or LaplaceCovariance
        Of the coefficients; ``covariance_`` is its DataFrame.
    n_instances, n_bags : int
    C : float
    level : float
        Of the intervals that are printed.
    classes : tuple
        Of the model: coefficients of two classes are those of the log-odds of the second.

    Examples
    --------
    >>> import numpy as np
    >>> from llpbook import CountLogistic, coefficient_table, load_bags
    >>> X, bags, proportions = load_bags("heart", bag_size=8, random_state=0)
    >>> X = (X - X.mean()) / X.std()
    >>> result = coefficient_table(CountLogistic().fit(X, bags, proportions), X, bags, proportions)
    >>> result.table.shape[0], result.n_bags
    (14, 34)
    """

    coefficients: pd.Series
    covariance: Any
    n_instances: int
    n_bags: int
    C: float
    level: float = 0.95
    classes: tuple = ()

    @property
    def df(self):
        """Degrees of freedom of the t distribution: bags minus coefficients; infinite for Laplace's approximation."""
        return self.covariance.df

    @property
    def covariance_(self):
        """The covariance matrix of the coefficients, a DataFrame."""
        names = self.coefficients.index
        return pd.DataFrame(self.covariance.block(), names, names)

    @property
    def errors(self):
        """Standard errors, a Series."""
        variances = self.covariance.variances()
        return pd.Series(np.sqrt(variances), self.coefficients.index)

    def interval(self, level=None):
        """Lower and upper ends of intervals, a DataFrame with the columns ``low`` and ``high``.

        Parameters
        ----------
        level : float, optional
            The level of the table if not given.
        """
        level = self.level if level is None else level
        check_level(level)
        half = student.isf((1 - level) / 2, self.df) * self.errors
        b = self.coefficients
        return pd.DataFrame({"low": b - half, "high": b + half})

    @property
    def table(self):
        """A row per coefficient: ``coef``, ``error``, ``t``, ``p_value``, ``low``, ``high``."""
        t = self.coefficients / self.errors
        values = {
            "coef": self.coefficients,
            "error": self.errors,
            "t": t,
            "p_value": 2 * student.sf(np.abs(t), self.df),
        }
        return pd.DataFrame(values).join(self.interval())

    def test(self, names, value=0.0):
        """Test that several coefficients have given values, by Wald's F.

        With several classes the coefficients of a feature sum to 0 (the penalty sets their level); each row compares a
        class with the mean of the classes. Coefficients that follow from others do not count in the degrees of freedom.

        Parameters
        ----------
        names : str or list of str
        value : float or array-like, default 0.0

        Returns
        -------
        statistic, p_value : float

        Raises
        ------
        ValueError
            For a name that is no coefficient.
        """
        names = [names] if isinstance(names, str) else list(names)
        strange = [n for n in names if n not in self.coefficients.index]
        if strange or not names:
            raise ValueError(
                f"names must be coefficients, of {self.coefficients.index.tolist()}, got {names!r}"
            )
        gap = self.coefficients[names] - value
        names = uncertain(names, gap, self.errors)
        errors = self.errors[names].to_numpy()
        rows = self.coefficients.index.get_indexer(names)
        R = self.covariance.block(rows) / np.outer(errors, errors)
        values, vectors = np.linalg.eigh(R)  # of correlations: free of units
        kept = values > 1e-8 * values[-1]
        parts = (vectors[:, kept].T @ (gap[names] / errors)) ** 2 / values[kept]
        F = float(parts.mean())
        return F, float(fisher.sf(F, len(parts), min(self.df, 1e9)))

    def __str__(self):
        return as_text(self)


def as_text(result):
    """A `CoefficientTable` as statistics packages print it."""
    table, tail = result.table, (1 - result.level) / 2
    ends = [f"[{tail:.3g}", f"{1 - tail:.3g}]"]
    table.columns = ["coef", "std err", "t", "P>|t|", *ends]
    four = dict.fromkeys(["coef", "std err", *ends], "{:.4g}".format)
    three = dict.fromkeys(["t", "P>|t|"], "{:.3f}".format)
    body = table.to_string(formatters=four | three).splitlines()
    how = f"sandwich over bags, t with {result.df} df"
    if np.isinf(result.df):
        how = "Laplace's approximation, the penalty as prior"
    head = (
        f"{result.n_instances} instances, {result.n_bags} bags, C={result.C:g}; {how}"
    )
    heads = [head]
    if len(result.classes) == 2:
        first, second = result.classes
        heads.append(f"log-odds of class {second} against class {first}")
    line = "=" * max(map(len, [*heads, *body]))
    thin = line.replace("=", "-")
    return "\n".join([line, *heads, thin, body[0], thin, *body[1:], line])


def uncertain(names, gap, errors):
    """The coefficients with a standard error above 0; a feature that is 0 everywhere has the coefficient 0 exactly.

    Parameters
    ----------
    names : list of str
    gap : Series
        Of the coefficients and what is tested of them.
    errors : Series

    Returns
    -------
    list of str

    Raises
    ------
    ValueError
        If none has an error, or one without is tested against another value.
    """
    exact = [n for n in names if errors[n] == 0]
    if any(gap[n] != 0 for n in exact) or len(exact) == len(names):
        raise ValueError(
            f"names holds {exact[0]!r}, whose column is 0 everywhere: it has no error, and nothing is tested"
        )
    return [n for n in names if n not in exact]


def make_table(weights, V, A, names, last, n_instances, n_bags, level):
    """Build a `CoefficientTable` from weights and their covariance, in the units of the features as given.

    Parameters
    ----------
    weights : ndarray, shape (1, n_columns) or (n_classes, n_columns)
    V : Sandwich or LaplaceCovariance
    A, names
        From `in_units`.
    last : CountLogistic
    n_instances, n_bags : int
    level : float

    Returns
    -------
    CoefficientTable
    """
    check_level(level)
    b, V = pd.Series(A @ weights.ravel(), names), V.in_units(A)
    classes = tuple(last.classes_.tolist())
    result = CoefficientTable(b, V, n_instances, n_bags, last.C, level, classes)
    caution_of_penalty("coefficient", b, result.errors, b + V.step, V.C)
    return result


def check_maximum(weights, sums, penalty):
    """The observed Hessian with the penalty, checked: positive definite, and from more bags than weights.

    Parameters
    ----------
    weights : ndarray, shape (1, n_columns) or (n_classes, n_columns)
    sums : BagSums
    penalty : ndarray, shape (n_weights, n_weights)

    Returns
    -------
    ndarray, shape (n_weights, n_weights)

    Raises
    ------
    NotIdentifiableError
        If there are no more bags than weights, or the likelihood has no strict maximum here.
    """
    J = sums.hessian + penalty
    if len(sums.used) <= weights.size:
        raise NotIdentifiableError(
            f"{len(sums.used)} bags cannot give standard errors of {weights.size} coefficients: there must be more "
            "bags than coefficients (coefficient_table and group_rate have an answer for bags in memory)"
        )
    lowest = np.linalg.eigvalsh(J)[0]
    if lowest <= 0:
        raise NotIdentifiableError(
            f"the penalized likelihood has no strict maximum at the model (smallest curvature {lowest:.3g}): a smaller "
            "C gives it one"
        )
    return J


def check_converged(weights, sums, J, V, penalty, slack=np.inf):
    """ValueError where the model is not at the maximum of the likelihood of these bags.

    Parameters
    ----------
    weights : ndarray, shape (1, n_columns) or (n_classes, n_columns)
    sums : BagSums
    J, V : ndarray, shape (n_weights, n_weights)
        Curvature and covariance.
    penalty : sparse array, shape (n_weights, n_weights)
    slack : float, optional
        The largest entry of the gradient per instance that a fit to these bags can have left.
    """
    left = check_gradient(weights, sums.gradient, sums.n_instances, penalty, slack)
    # In a direction that only the penalty holds the bags say nothing, and V is 0; it may be anywhere in its prior.
    inverse = np.linalg.inv(J)
    errors = np.sqrt(np.maximum(np.diag(V), np.diag(inverse)))
    moved = np.abs(inverse @ left) / errors
    if not moved.max() <= AWAY:
        raise ValueError(
            f"model is not at the maximum for these bags: a Newton step moves a coefficient by {moved.max():.2g} "
            "standard errors. Pass the bags, proportions, labels and counts of its fit, or fit with a smaller tol"
        )


def check_gradient(weights, gradient, n_instances, penalty, slack):
    """The penalized gradient, shape (n_weights,); ValueError where it is larger than a converged fit leaves."""
    left = gradient - penalty @ weights.ravel()
    gap = np.abs(left).max() / n_instances
    if gap > slack:
        raise ValueError(
            f"model is not at the maximum for these bags: the gradient per instance is {gap:.2g}, the fit left at most "
            f"{slack:.2g}. Pass the bags, proportions, labels and counts that it was fitted to"
        )
    return left


def fit_covariance(fit):
    """Sandwich covariance of the weights of a model, from its bags in memory.

    Parameters
    ----------
    fit : Problem

    Returns
    -------
    covariance : ndarray, shape (n_weights, n_weights)
    psi : ndarray, shape (n_bags, n_weights)
        From `influences`.
    J : ndarray, shape (n_weights, n_weights)
    """
    require_memory(
        f"the curvature of {len(fit.used)} bags",
        32.0 * len(fit.used) * fit.weights.size**2,
        "give the bags in chunks to chunk_coefficient_table",
    )
    G, H = bag_gradients(fit), bag_hessians(fit)
    sums = BagSums(fit.observed.sizes.sum(), fit.used, G.sum(axis=0), H.sum(axis=0))
    J = check_maximum(fit.weights, sums, fit.curvature)
    psi = influences(G, H, J)
    V = sandwich(psi)
    check_converged(fit.weights, sums, J, V, fit.curvature, fit.slack)
    return V, psi, J


def covariance_of(fit):
    """Covariance of the weights: the sandwich, or Laplace's approximation with no more bags than weights.

    Parameters
    ----------
    fit : Problem

    Returns
    -------
    Sandwich or LaplaceCovariance
    """
    left = len(fit.used) - fit.weights.size
    if left > 0:
        V, _, J = fit_covariance(fit)
        return Sandwich.of(V, left, fit.weights, J, fit.curvature)
    gradient = bag_gradients(fit).sum(axis=0)
    n = fit.observed.sizes.sum()
    check_gradient(fit.weights, gradient, n, fit.curvature, fit.slack)
    return laplace_covariance(fit)


def caution_of(fit, deviation=0.0):
    """Warn of few bags, and of bags that deviate from the fit; see `caution`."""
    scores = one_column(fit.Z @ fit.weights.T)
    n_bags, n_weights = len(fit.used), fit.weights.size
    parts = deviations(scores, fit.Z, fit.observed) if n_bags > n_weights else []
    caution(n_bags, n_weights, parts, deviation)


def coefficient_table(
    model: Any, X: Matrix, bags: ArrayLike, proportions: Proportions, *,
    labels: ArrayLike | None = None, counts: ArrayLike | None = None,
    names: list[str] | None = None, level: float = 0.95,
) -> CoefficientTable:  # fmt: skip
    """Coefficients of a fitted `CountLogistic` with standard errors, tests and intervals.

    Parameters
    ----------
    model : CountLogistic or Pipeline
        Fitted. The scalers of a pipeline are undone (see `in_units`), and count as known.
    X : array-like, shape (n_instances, n_features)
    bags : array-like, shape (n_instances,)
    proportions : array-like, Series, dict or DataFrame
        See `llpbook.proportions.check_proportions`.
    labels : array-like, shape (n_instances,), optional
        Those that the model was fitted with. Each labeled instance counts as a bag.
    counts : array-like of int, shape (n_instances,), optional
        How many equal instances each row stands for; one if not given.
    names : list of str, optional
        Of the features.
    level : float, default 0.95
        Of the intervals.

    Returns
    -------
    CoefficientTable

    Raises
    ------
    NotIdentifiableError
        If the likelihood has no strict maximum at the model.
    ValueError
        If the model is no linear `CountLogistic`, is not at its maximum for these bags, or the input is malformed.

    Notes
    -----
    Trust it where P(y | x) is the same in all bags, or differs by the intercepts of a model with ``bag_deviation``;
    measured coverage is in chapter ``book/uncertainty``. An `LLPWarning` says where the bags deviate from the model
    beyond their counts, where they are fewer than 30, leave fewer than 20 degrees of freedom or are under three per
    coefficient, and where a penalty a hundred times as weak would move a coefficient by more than its error (a Newton
    step says by how much). With no more bags than coefficients the penalty stands as a prior (Laplace's approximation).

    Costs two gradients of the likelihood per coefficient; memory is n_bags times the square of the number of
    coefficients. Laplace's approximation costs no more than a step of the fit.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from llpbook import CountLogistic, coefficient_table
    >>> rng = np.random.default_rng(0)
    >>> X = pd.DataFrame({"dose": rng.normal(size=1000)})
    >>> bags = np.arange(1000) // 10
    >>> y = rng.random(1000) < 1 / (1 + np.exp(-2 * X["dose"]))
    >>> shares = y.groupby(bags).mean()
    >>> result = coefficient_table(CountLogistic(C=1000).fit(X, bags, shares), X, bags, shares)
    >>> low, high = result.interval().loc["dose"]
    >>> bool(low < 2 < high)
    True
    """
    fit, _ = read_fit(model, X, bags, proportions, labels, counts)
    V = covariance_of(fit)
    caution_of(fit, fit.loss.bag_deviation)
    before, last = split_model(model)
    A, names = in_units(before, last, X, names)
    n = int(fit.observed.sizes.sum())
    return make_table(fit.weights, V, A, names, last, n, len(fit.used), level)
