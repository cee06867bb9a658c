"""Time of a whole tuned DSDD, and of a supervised support vector machine on the same data."""

import pytest
from sklearn.svm import SVC

from llpbook.base import median_distance
from llpbook.density_difference import gaussian_basis, toy_problem
from llpbook.dsdd import DSDD, cccp, penalty_unit


@pytest.mark.parametrize("n", [40, 1000, 5000])
@pytest.mark.benchmark(group="dsdd: tuned")
def test_tuned_fit(benchmark, n):
    X, y, bags = toy_problem(2, n=n, random_state=0)
    model = DSDD(random_state=0)
    benchmark.pedantic(model.fit, (X, bags), rounds=3 if n < 100 else 1)
    assert model.fit(X, bags, [0.3, 0.7]).score(X, y) > 0.7
    assert benchmark.stats["min"] < (2 if n < 100 else 30)


@pytest.mark.parametrize("n", [40, 1000])
@pytest.mark.benchmark(group="dsdd: one penalty and width")
def test_one_fit(benchmark, n):
    X, _, bags = toy_problem(2, n=n, random_state=0)
    Phi = gaussian_basis(X, X[:: max(1, n // 150)], 0.5 * median_distance(X))
    basis = Phi[bags == 0], Phi[bags == 1]
    lam = 0.01 * penalty_unit(basis)
    rounds = benchmark.pedantic(cccp, (basis, lam), rounds=5)
    assert rounds[-1].gap <= 1e-9


@pytest.mark.parametrize("n", [40, 1000])
@pytest.mark.benchmark(group="dsdd: supervised")
def test_supervised_svm(benchmark, n):
    X, y, _ = toy_problem(2, n=n, random_state=0)
    benchmark.pedantic(SVC().fit, (X, y), rounds=3)
