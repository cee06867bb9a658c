"""Problems for all tests; nearly every builder returns X, y, bags and shares of shape (n_bags, n_classes).

| Builder | What it draws |
| --- | --- |
| `gaussian_bags` | K Gaussian classes in random bags: shares are nearly equal |
| `uneven_bags` | K Gaussian classes in bags whose shares differ: most methods beat chance easily |
| `overlapping_classes` | X and y only, for the variants of the taxonomy |
| `named` | the same bags under names, and their shares as a frame in another order |
| `quick` | an estimator with a fixed seed that fits fast |
| `thinned` | every k-th instance of a study's split |
| `Newton` | no problem, but a stand-in for boosters of other libraries |
| `binary_objective` | no problem, but MeanMap's objective of two classes and its gradient, as printed |
"""

from importlib.util import find_spec

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, RegressorMixin

from llpbook import BagNetwork, all_estimators
from llpbook.proportions import label_proportions


def every_estimator():
    """Estimators by name: those of the package, and `BagNetwork` where PyTorch is installed."""
    more = {"BagNetwork": BagNetwork} if find_spec("torch") else {}
    return dict(sorted({**dict(all_estimators()), **more}.items()))


def quick(cls, **params):
    """An instance with a fixed seed, few starts and a search of one generation, where the estimator has these."""
    own = cls().get_params()
    params |= {"random_state": 0, "n_init": 2}
    params |= {"max_iter": 1} if "population_size" in own else {}
    return cls(**{name: value for name, value in params.items() if name in own})


def gaussian_bags(n=240, d=4, size=6, n_classes=2, seed=0, apart=1.5):
    """A normal distribution for each class, in random bags: X, y, bags, proportions."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    X = rng.normal(size=(n, d)) + apart * rng.normal(size=(n_classes, d))[y]
    bags = rng.permutation(n) // size
    return X, y, bags, label_proportions(y, bags, classes=range(n_classes))


def uneven_bags(n=240, d=3, size=12, n_classes=2, seed=0, apart=1.5):
    """Class k has the mean (apart k, …, apart k); bags are cut from an order by noisy label, so their shares differ."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    X = rng.normal(size=(n, d)) + apart * y[:, None]
    bags = np.argsort(np.argsort(y + rng.normal(size=n))) // size
    return X, y, bags, label_proportions(y, bags, classes=range(n_classes))


def named(bags, P, classes=None, seed=0):
    """Names of the bags, one per instance, and a frame of the shares whose rows are in another order."""
    order = np.random.default_rng(seed).permutation(len(P))
    names = np.array([f"county {k}" for k in order])
    return names[bags], pd.DataFrame(P, names, classes).sort_index()


def overlapping_classes(seed=0, n=600, d=3, n_classes=2):
    """Instances and labels for all variants: classes overlap, as the label collider needs."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.array([2.0, 1.5, *np.ones(d - 2)])
    scores = np.column_stack([k * X[:, 0] + k % 2 * X[:, 1] for k in range(n_classes)])
    y = (scores / n_classes + rng.gumbel(size=scores.shape)).argmax(axis=1)
    return X, y


def thinned(split, step):
    """A function like `studies.complexllp.split` that keeps every ``step``-th instance."""

    def some(name, k):
        X, X_new, y, y_new, bags, _ = split(name, k)
        keep = slice(None, None, step)
        shares = label_proportions(y[keep], bags[keep], classes=[0, 1])
        return X[keep], X_new[keep], y[keep], y_new[keep], bags[keep], shares

    return some


def binary_objective(w, X, mu, lam):
    """MeanMap's objective of two classes and its gradient, per instance, as printed."""
    n, f = len(X), X @ w
    value = np.logaddexp(f, -f).mean() - mu[0] @ w + lam / (2 * n) * w @ w
    return value, X.T @ np.tanh(f) / n - mu[0] + lam / n * w


class Newton(RegressorMixin, BaseEstimator):
    """A stand-in for a booster: steps of a linear model by gradient and curvature of its objective."""

    def __init__(self, objective="squares", num_class=1, n_steps=60):
        self.objective, self.num_class, self.n_steps = objective, num_class, n_steps

    def fit(self, X, bags):
        Z = np.column_stack([X, np.ones(len(X))])
        width = () if self.num_class == 1 else (self.num_class,)
        self.w_ = np.zeros((Z.shape[1], *width))
        for _ in range(self.n_steps):
            gradient, hessian = self.objective(bags, Z @ self.w_)
            assert gradient.shape == hessian.shape == (len(X), *width)
            curvature = np.einsum(
                "nj,nk,n->jk", Z, Z, hessian.reshape(len(X), -1)[:, 0]
            )
            self.w_ -= np.linalg.solve(curvature, Z.T @ gradient)
        return self

    def predict(self, X):
        return np.column_stack([X, np.ones(len(X))]) @ self.w_
