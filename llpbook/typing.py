"""Types in the signatures of the package, under the names that `help` shows.

ArrayLike, NDArray
    The types of `numpy.typing`.
Matrix
    Features: an array or anything that NumPy makes an array, a DataFrame, or a sparse matrix or array.
Proportions
    Label proportions by row number (an array, a list) or by key of the bag (a Series, a DataFrame, a dict); see
    `llpbook.proportions.check_proportions`.
RandomState
    A seed, a generator that continues from call to call, or None.
Chunks
    Data in parts: files, DataFrames, functions that return a DataFrame, or objects of Dask and pyarrow; see
    `llpbook.beyond_memory.fit_chunks`.
"""

from ._input import ArrayLike, Chunks, Matrix, NDArray, Proportions, RandomState

__all__ = ["ArrayLike", "Chunks", "Matrix", "NDArray", "Proportions", "RandomState"]
