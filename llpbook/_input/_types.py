"""Types of the arguments that users pass; `llpbook.typing` documents them."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NewType, TypeAlias

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

__all__ = ["ArrayLike", "Chunks", "Matrix", "NDArray", "Proportions", "RandomState"]

#: Features: an array or what becomes one, a data frame, or a sparse matrix or array.
Matrix: TypeAlias = ArrayLike | pd.DataFrame | sp.sparray | sp.spmatrix
#: Label proportions by row number, or by key of the bag.
Proportions: TypeAlias = ArrayLike | pd.Series | pd.DataFrame | Mapping[Hashable, Any]
#: A seed, or a generator that goes on from call to call.
RandomState: TypeAlias = int | np.random.RandomState | None
#: Data in parts: files, data frames, functions that return one, or objects of Dask and pyarrow.
Chunks: TypeAlias = (
    Sequence[str | Path | pd.DataFrame | Callable[[], pd.DataFrame] | Any]
    | str
    | Path
    | pd.DataFrame
)
if (
    not TYPE_CHECKING
):  # `help` prints names to look up, not the forty members of a union

    def _name(name, module="llpbook.typing"):
        alias = NewType(name, object)
        alias.__module__ = module
        return alias

    ArrayLike = _name("ArrayLike", "numpy.typing")
    Matrix, Proportions = _name("Matrix"), _name("Proportions")
    RandomState, Chunks = _name("RandomState"), _name("Chunks")
