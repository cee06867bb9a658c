import pytest
from llpbook.toy import double


@pytest.mark.equation("eq-double")
def test_double():
    assert double(1) == 2


@pytest.mark.parametrize(
    "x", [1, pytest.param(2, marks=pytest.mark.equation("eq-mean"))]
)
def test_mean(x):
    assert double(x) == 2 * x
