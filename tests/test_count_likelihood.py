"""CountLikelihood against the slow and obvious version, and where theory says what must come out."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from llpbook.count_likelihood import CountLikelihood, direction


@pytest.mark.equation("eq-count-likelihood-direction")
def test_direction_is_a_covariance():
    rng = np.random.default_rng(0)
    means, shares, sizes = rng.normal(size=(5, 3)), rng.random(5), np.arange(1, 6)
    # every bag as often as it has instances
    x, p = np.repeat(means, sizes, axis=0), np.repeat(shares, sizes)
    slow = [np.cov(x[:, j], p, ddof=0)[0, 1] for j in range(3)]
    np.testing.assert_allclose(direction(means, shares, sizes), slow, atol=1e-12)


def test_the_supervised_limit_separates_two_clouds():
    X, y = make_blobs(100, centers=[[-3, 0], [3, 1]], random_state=0)
    model = CountLikelihood().fit(X, np.arange(100), y.astype(float))
    assert model.score(X, y) == 1
