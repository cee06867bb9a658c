"""A toy."""

import numpy as np

from .base import BaseClassifier

SCALE = 2


def double(x):
    """Twice the input.

    Parameters
    ----------
    x : float
    """
    # the factor is that of the text
    # eq: eq-double
    return SCALE * np.asarray(x)


class Toy(BaseClassifier):
    r"""A model with \alpha in its summary.

    Nothing more.
    """

    def __init__(self, lam=1.0):
        self.lam = lam

    def fit(self, x):
        """Fit the toy.

        A long story.
        """
        # eq: eq-mean, eq-double
        self.mean_ = double(x).mean()
        return self

    @property
    def two(self):
        return 2

    def _hidden(self):
        return 0
