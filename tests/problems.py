"""Bags that several test files draw."""

import numpy as np

from llpbook.proportions import label_proportions


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
