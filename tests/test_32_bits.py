"""Counts are int64 everywhere; where NumPy takes indices it wants `np.intp`, which has 32 bits in a browser.

Here both have 64 bits, so int64 is played by C's long long, which NumPy tells apart from its index type: it stays what
it is through sums, differences and slices, as int64 does.
"""

import importlib
import pkgutil
import types

import numpy as np
import pytest
from problems import uneven_bags
from test_consistency import CALLS, NEEDS, OTHERS, WITH, called
from test_contract import each, make

import llpbook
from llpbook._counts import crosstab

pytestmark = pytest.mark.filterwarnings("ignore")
MODULES = [
    importlib.import_module(module.name)
    for module in pkgutil.walk_packages(llpbook.__path__, "llpbook.")
]
wide = np.longlong


def indices(values):
    """Refuse what NumPy cannot cast safely to an index of 32 bits."""
    if np.asarray(values).dtype.char == np.dtype(wide).char:
        raise TypeError("Cannot cast array data from dtype('int64') to dtype('int32')")
    return values


class Ufunc:
    """A ufunc whose `reduceat` looks at its indices."""

    def __init__(self, ufunc):
        self._ufunc = ufunc

    def __call__(self, *arguments, **options):
        return self._ufunc(*arguments, **options)

    def __getattr__(self, name):
        return getattr(self._ufunc, name)

    def reduceat(self, values, at, *arguments, **options):
        return self._ufunc.reduceat(values, indices(at), *arguments, **options)


class Narrow(types.ModuleType):
    """NumPy where an index has 32 bits: what Pyodide 0.27.7 refuses is refused here."""

    int64 = wide

    def __getattr__(self, name):
        value = getattr(np, name)
        return Ufunc(value) if isinstance(value, np.ufunc) else value

    def repeat(self, values, repeats, *arguments, **options):
        return np.repeat(values, indices(repeats), *arguments, **options)

    def bincount(self, values, *arguments, **options):
        return np.bincount(indices(values), *arguments, **options)

    def take(self, values, at, *arguments, **options):
        return np.take(values, indices(at), *arguments, **options)

    def asarray(self, values, dtype=None, **options):
        array = np.asarray(values, dtype, **options)  # leaves a type of the same size
        return array if dtype is None else array.astype(dtype)


class Draws(np.random.RandomState):
    """A generator whose numbers have 32 bits, too."""

    def binomial(self, n, p, size=None):
        return super().binomial(indices(n), p, size)


@pytest.fixture
def narrow(monkeypatch):
    numpy = Narrow("numpy")
    for module in MODULES:
        if vars(module).get("np") is np:
            monkeypatch.setattr(module, "np", numpy)
    return numpy


def test_the_narrow_numpy_refuses_int64_where_pyodide_does(narrow):
    at = np.arange(3).astype(narrow.int64)
    for call in (narrow.add.reduceat, narrow.maximum.reduceat, narrow.repeat):
        with pytest.raises(TypeError, match="int64"):
            call(np.ones(3), np.cumsum(at) - at)
        call(np.ones(3), at.astype(np.intp))
    with pytest.raises(TypeError, match="int64"):
        narrow.bincount(at)
    assert narrow.bincount(narrow.asarray(at, dtype=narrow.intp)).tolist() == [1, 1, 1]


@each
def test_estimators_fit_where_an_index_has_32_bits(narrow, cls):
    X, _, bags, P = uneven_bags(n=120, size=6, apart=2.5)
    counts, bags = 1 + np.arange(120).astype(wide) % 2, bags.astype(wide)
    model = make(cls).fit(X, bags, P)
    model.predict_proportions(X, bags)
    make(cls).fit(X, bags, P, counts=counts)


def wider(arguments):
    """Arguments whose whole numbers are int64, and whose seed is a generator of 32 bits."""
    arguments = dict(arguments)
    for name, value in arguments.items():
        if isinstance(value, np.ndarray) and value.dtype.kind == "i":
            arguments[name] = value.astype(wide)
        if name == "random_state":
            arguments[name] = Draws(value)
    return arguments


@pytest.mark.parametrize("name", CALLS)
def test_functions_work_where_an_index_has_32_bits(narrow, name):
    called(name, **wider(CALLS[name]))
    if "counts" in OTHERS.get(name, {}):
        at = name, "counts"
        more = NEEDS.get(at, {}) | WITH.get(at, {}) | {"counts": OTHERS[name]["counts"]}
        called(name, **wider(CALLS[name] | more))


def test_chapters_cross_labels_of_64_bits(narrow):
    rows, columns = np.array([[0, 0, 1, 1], [0, 1, 0, 1]]).astype(wide)
    assert crosstab(rows, columns, (2, 2)).tolist() == [[1, 1], [1, 1]]
