"""One thread per process and one state of NumPy's generator: a test does the same on each machine and in any order."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
import scipy.linalg
import sklearn.linear_model
from threadpoolctl import threadpool_limits

# Plugins may have loaded NumPy before this file, when its environment variables come too late.
LIBRARIES = (scipy.linalg, sklearn.linear_model)
LIMITS = threadpool_limits(1)


@pytest.fixture(autouse=True)
def same_state():
    """What takes random_state=None draws from this generator; a figure is gone after its test."""
    np.random.seed(0)  # noqa: NPY002 (scikit-learn draws from it)
    yield
    plt.close("all")
