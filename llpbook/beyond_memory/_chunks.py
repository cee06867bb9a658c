"""Reading chunks, and passes over all of them on any engine."""

from concurrent.futures import BrokenExecutor, Executor
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing.pool import Pool
from pathlib import Path

import numpy as np
import pandas as pd

from ..base import check_column, check_features


class ChunkError(ValueError):
    """A chunk cannot be read, or holds something else than the other chunks; the message names it."""


class EngineError(RuntimeError):
    """A worker died, or gave no answer in time; the message says what was waited for."""


def read_path(path, columns=None):
    """A file of Parquet, Feather or CSV as a DataFrame, by its ending; with other endings pass your own ``read``.

    Parameters
    ----------
    path : str or Path
    columns : list of str, optional
        Only these are read.

    Returns
    -------
    DataFrame
    """
    endings = Path(path).suffixes
    if ".parquet" in endings:
        return pd.read_parquet(path, columns=columns)
    if ".feather" in endings:
        return pd.read_feather(path, columns=columns)
    if ".csv" in endings:
        return pd.read_csv(path, usecols=columns)
    raise ValueError(
        "a path must end in .parquet, .feather or .csv (.csv.gz, …); pass read=, a function from a chunk to a DataFrame"
    )


def read_row_group(path, group, columns=None):
    """One row group of a Parquet file."""
    import pyarrow.parquet

    with pyarrow.parquet.ParquetFile(path) as file:
        return file.read_row_group(group, columns=columns).to_pandas()


def row_groups(path):
    """The row groups of a Parquet file as chunks, for a file that is too large for one worker.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    list of callable
        Chunks for `fit_chunks`.
    """
    import pyarrow.parquet

    with pyarrow.parquet.ParquetFile(path) as file:
        return [partial(read_row_group, path, g) for g in range(file.num_row_groups)]


def name_of(number, chunk):
    """How messages call a chunk: by its number, and by its path or key where it has one."""
    known = None if isinstance(chunk, pd.DataFrame) else getattr(chunk, "key", None)
    if isinstance(chunk, str | Path):
        known = str(chunk)
    elif isinstance(chunk, partial):
        known = ", ".join(map(str, chunk.args))
    return f"chunk {number}" + f" ({known})" * (known is not None)


@dataclass(frozen=True)
class Layout:
    """What a worker needs to know to turn a chunk into numbers.

    Attributes
    ----------
    bags : hashable
        The column that names the bag.
    features : list, or None
        The columns of the instances; None for all others.
    read : callable, or None
        From a chunk to a DataFrame.
    steps : tuple of transformers
        Fitted, applied in this order.
    center, scale : ndarray, shape (n_features,), or None
        Subtracted, and divided by, after the steps.
    constant : bool
        Whether the constant 1 is the last column.
    """

    bags: object
    features: object = None
    read: object = None
    steps: tuple = ()
    center: object = None
    scale: object = None
    constant: bool = False

    def frame(self, chunk, name):
        """The DataFrame of a chunk, with the columns that are needed."""
        wanted = None if self.features is None else [*self.features, self.bags]
        try:
            frame = self._load(chunk, wanted)
        except Exception as error:
            raise ChunkError(
                f"{name} cannot be read: {type(error).__name__}: {error}"
            ) from error
        if not isinstance(frame, pd.DataFrame):
            raise ChunkError(
                f"{name} must be a DataFrame, or read as one, got {type(frame).__name__}"
            )
        missing = [c for c in wanted or [self.bags] if c not in frame.columns]
        if missing:
            raise ChunkError(
                f"{name} has no column {missing[0]!r}; it has {frame.columns.tolist()}"
            )
        return frame

    def _load(self, chunk, wanted):
        if self.read is not None:
            return self.read(chunk)
        if isinstance(chunk, str | Path):
            return read_path(chunk, wanted)
        if hasattr(chunk, "__dask_graph__"):
            return chunk.compute(scheduler="synchronous")
        return chunk() if callable(chunk) else chunk

    def matrix(self, frame):
        """The instances of a chunk in double precision, shape (n_instances, n_columns), by column in memory."""
        given = frame[self.features]
        for step in self.steps:
            given = step.transform(given)
        if hasattr(given, "toarray"):
            given = given.toarray()
        columns = (
            [given[c] for c in given] if isinstance(given, pd.DataFrame) else given.T
        )
        X = np.empty((len(frame), len(columns) + self.constant), order="F")
        for j, column in enumerate(columns):
            X[:, j] = numbers(column, frame, self.features)
            if self.center is not None:
                X[:, j] -= self.center[j]
            if self.scale is not None:
                X[:, j] /= self.scale[j]
        if self.constant:
            X[:, -1] = 1
        return X

    def bag_column(self, frame):
        """The names of the bags of the instances of a chunk, none missing."""
        return check_column("bags", frame[self.bags], len(frame))


def numbers(column, frame, features):
    """A column as an array of numbers; what is none is explained by its name."""
    if isinstance(column, np.ndarray) or isinstance(column.dtype, np.dtype):
        values = np.asarray(column)
        if values.dtype.kind in "fiub":
            return values
    elif pd.api.types.is_numeric_dtype(column):
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    check_features(frame[features])
    raise ValueError(f"X must be numbers, got dtype {column.dtype}")


def work(function, layout, task):
    """One chunk of a pass, on a worker: number of rows, and what the function makes of them."""
    number, chunk, more = task
    name = name_of(number, chunk)
    frame = layout.frame(chunk, name)
    if not len(frame):  # a shuffle leaves such partitions
        return 0, None
    try:
        return len(frame), function(frame, layout, *more)
    except ValueError as error:
        raise ChunkError(f"{name}: {error}") from error


class Engine:
    """Passes over chunks by a ``map``.

    Parameters
    ----------
    chunks : sequence, or Dask DataFrame
    map : callable
        ``map(function, tasks)`` gives the results in the order of the tasks, or futures of them: objects with
        ``result(timeout)``.
    timeout : float or None
        Seconds without any result after which a pass ends with `EngineError`; where ``map`` gives no futures, that is
        up to the engine.
    """

    def __init__(self, chunks, map, timeout=None):
        if hasattr(chunks, "to_delayed"):
            chunks = chunks.to_delayed()
        if isinstance(chunks, str | Path | pd.DataFrame):
            chunks = [chunks]
        if iter(chunks) is chunks:
            raise ValueError(
                "chunks is an iterator, which can be read only once; a fit reads the chunks several times: pass a list "
                "of paths, of DataFrames, or of functions that return a DataFrame"
            )
        self.chunks = list(chunks)
        if not self.chunks:
            raise ValueError("chunks is empty")
        owner = getattr(map, "__self__", None)
        if isinstance(owner, Pool):
            raise ValueError(
                "map is that of a multiprocessing Pool, which never says that a worker has died: pass the map of a "
                "concurrent.futures.ProcessPoolExecutor"
            )
        self.submit = self._submitter(map, owner)
        self.timeout, self.sizes = timeout, {}

    def _submitter(self, map, owner):
        if isinstance(owner, Executor):  # its map gives no futures, so no timeout
            return lambda function, tasks: [owner.submit(function, t) for t in tasks]
        if not (hasattr(owner, "scheduler_info") and hasattr(owner, "compute")):
            return map

        def by_dask(function, tasks):
            """Parts of a Dask collection become part of the graph, so that a lost one is made again."""
            if not any(hasattr(chunk, "__dask_graph__") for _, chunk, _ in tasks):
                return map(function, tasks, pure=False)
            from dask import delayed

            lazy = delayed(function, pure=False)
            return owner.compute([lazy(task) for task in tasks])

        return by_dask

    def run(self, what, function, layout, more=None, only=None):
        """One pass.

        Parameters
        ----------
        what : str
            Its name, for messages.
        function : callable
            ``function(frame, layout, *more)``, defined in a module.
        layout : Layout
        more : dict of int to tuple, or tuple, optional
            More arguments, for each chunk or for all.
        only : sequence of int, optional
            Numbers of the chunks to read.

        Yields
        ------
        number : int
        result : object
            None for a chunk without rows.
        """
        wanted = range(len(self.chunks)) if only is None else only
        own = more if isinstance(more, dict) else dict.fromkeys(wanted, more or ())
        tasks = [
            (number, self.chunks[number], own.get(number, ())) for number in wanted
        ]
        answers = ()
        try:
            answers = self.submit(partial(work, function, layout), tasks)
            for (number, chunk, _), answer in zip(tasks, answers, strict=True):
                n, result = self._wait(answer, what, name_of(number, chunk))
                if n != self.sizes.setdefault(number, n):
                    raise ChunkError(
                        f"{name_of(number, chunk)} had {self.sizes[number]} rows in the first pass and has {n} in the "
                        f"{what}: chunks must not change during a fit"
                    )
                yield number, result
        except BrokenExecutor as error:
            raise EngineError(
                f"a worker process died in the {what}: if it ran out of memory, make the chunks smaller; then fit "
                "again with a new executor"
            ) from error
        finally:  # after an error, or where the caller has seen enough
            for answer in answers if isinstance(answers, list) else ():
                if hasattr(answer, "cancel"):
                    answer.cancel()

    def _wait(self, answer, what, name):
        if not hasattr(answer, "result"):
            return answer
        try:
            return answer.result(timeout=self.timeout)
        except TimeoutError as error:
            if answer.done():
                raise
            raise EngineError(
                f"the {what} got no answer for {name} within timeout={self.timeout:g} seconds: the worker may be gone "
                "or busy; look at the engine, or raise timeout"
            ) from error


def thinned(engine, n_rows, least):
    """Two chunks or more, evenly spread, that hold about so many rows; None where these would be a third of all."""
    filled = [number for number, size in engine.sizes.items() if size]
    count = max(2, int(np.ceil(len(filled) * least / n_rows)))
    if 3 * count > len(filled):
        return None
    return [
        filled[i] for i in ((np.arange(count) + 0.5) * len(filled) / count).astype(int)
    ]


def with_columns(engine, layout):
    """The layout with the features named: by default all columns of the first chunk but that of the bags."""
    if layout.features is None:
        for number in range(len(engine.chunks)):
            [(_, columns)] = engine.run(
                "look at the columns", column_names, layout, only=[number]
            )
            if columns is not None:
                return replace(layout, features=columns)
        raise ValueError("chunks hold no rows")
    features = list(layout.features)
    if layout.bags in features or len(set(features)) < len(features):
        raise ValueError(
            f"features must be different columns, none of them that of the bags ({layout.bags!r}), got {features}"
        )
    return replace(layout, features=features)


def column_names(frame, layout):
    """All columns but that of the bags."""
    return [name for name in frame.columns if name != layout.bags]
