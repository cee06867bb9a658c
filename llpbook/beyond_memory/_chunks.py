"""Reading chunks, and passes over all of them on any engine."""

from concurrent.futures import BrokenExecutor, Executor
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing.pool import Pool
from pathlib import Path

import numpy as np
import pandas as pd

from ..base import check_column, check_features

#: Relative difference of two sums that is rounding.
SAME = 1e-12


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
        return read_csv(path, columns)
    raise ValueError(
        "a path must end in .parquet, .feather or .csv (.csv.gz, …); pass read=, a function from a chunk to a DataFrame"
    )


def read_csv(path, columns=None):
    """A CSV file. With `usecols` pandas would not count the fields of a line, and values would move silently."""
    frame = pd.read_csv(path)
    if not isinstance(frame.index, pd.RangeIndex):
        raise ValueError("its lines have more fields than its header has names")
    return frame if columns is None else frame[columns]


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
    model : str or None
        Name of the chunk whose columns are the features, while the other chunks must have no more columns.
    """

    bags: object
    features: object = None
    read: object = None
    steps: tuple = ()
    center: object = None
    scale: object = None
    constant: bool = False
    model: object = None

    def frame(self, chunk, name):
        """The DataFrame of a chunk, with the columns that are needed."""
        wanted = None if self.features is None else [*self.features, self.bags]
        try:
            frame = self._load(chunk, None if self.model else wanted)
        except Exception as error:
            raise ChunkError(
                f"{name} cannot be read: {type(error).__name__}: {error}"
            ) from error
        if not isinstance(frame, pd.DataFrame):
            raise ChunkError(
                f"{name} must be a DataFrame, or read as one, got {type(frame).__name__}"
            )
        if len(frame):  # a part without rows may have no columns either
            check_columns(frame, name, wanted or [self.bags], self)
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
        if self.steps and not isinstance(given, pd.DataFrame):
            given = with_names(given, self.steps)
        columns = [given.iloc[:, j] for j in range(given.shape[1])]
        X = np.empty((len(frame), len(columns) + self.constant), order="F")
        for j, column in enumerate(columns):
            X[:, j] = numbers(column, given)
            if self.center is not None:
                X[:, j] -= self.center[j]
            if self.scale is not None:
                X[:, j] /= self.scale[j]
        if self.constant:
            X[:, -1] = 1
        return X

    def bag_column(self, frame):
        """The names of the bags of the instances of a chunk, none missing."""
        return check_column(f"column {self.bags!r}", frame[self.bags], len(frame))


def check_columns(frame, name, wanted, layout):
    """Refuse a chunk that lacks a column, has one twice, or has more than the chunk that is the model for all."""
    missing = [c for c in wanted if c not in frame.columns]
    if missing:
        raise ChunkError(
            f"{name} has no column {missing[0]!r}; it has {frame.columns.tolist()}"
        )
    twice = frame.columns[frame.columns.duplicated()]
    twice = [c for c in twice if layout.features is None or c in wanted]
    if twice:
        raise ChunkError(f"{name} has two columns with the name {twice[0]!r}")
    more = [c for c in frame.columns if layout.model and c not in wanted]
    if more:
        raise ChunkError(
            f"{name} has the column {more[0]!r}, which {layout.model} has not; name the columns by features="
        )


def with_names(values, steps):
    """A matrix that the steps return, as a DataFrame, with the names of its columns if the last step has them."""
    values = values.toarray() if hasattr(values, "toarray") else np.asarray(values)
    try:
        names = steps[-1].get_feature_names_out()
        frame = pd.DataFrame(values, columns=names)
    except (AttributeError, TypeError, ValueError):
        frame = pd.DataFrame(values)
    return frame.infer_objects() if values.dtype == object else frame


def numbers(column, frame):
    """A column of a frame as an array of numbers, or the error that names each column without numbers."""
    values = as_numbers(column)
    if values is None:
        check_features(frame)
        raise ValueError(f"X must be numbers, got dtype {column.dtype}")
    return values


def checksums(frame, layout):
    """Sums by which a later pass notices other rows; they do not depend on the order of the rows.

    Returns
    -------
    number : int
        Of the bags, and of the columns that hold no numbers, exactly: the sum of a hash of each row.
    sums : ndarray
        Of each column of numbers, whose last digits may differ between processors: its products with a number in
        [0, 1] that is made from the hash of the row, and with the column of numbers before it.
    bounds : ndarray
        Of what is summed.
    """
    columns = [as_numbers(frame[name]) for name in layout.features]
    exact = [f for f, c in zip(layout.features, columns, strict=True) if c is None]
    key = pd.util.hash_pandas_object(frame[[layout.bags, *exact]], index=False)
    key = key.to_numpy()
    before = weight = key / 2.0**64
    sums, bounds, length = [], [], np.sqrt(len(key))
    for column in (c for c in columns if c is not None):
        values = column.astype(np.float64, copy=False)
        weighted = weight @ values
        if not np.isfinite(weighted):
            known = np.isfinite(values)
            values = np.where(known, values, 0)
            sums, bounds = [*sums, weight @ known], [*bounds, len(values)]
            weighted = weight @ values
        size = np.sqrt(values @ values)
        sums += [weighted, before @ values]
        bounds += [np.sqrt(len(key)) * size, length * size]
        before, length = values, size
    return int(key.sum()), np.array(sums), np.array(bounds)


def as_numbers(column):
    """A column as an array of real numbers, NaN where one is missing; None if the column holds something else."""
    if isinstance(column.dtype, np.dtype):
        return np.asarray(column) if column.dtype.kind in "fiub" else None
    if pd.api.types.is_numeric_dtype(column):
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    return None


def refuse_change(name, what, first, now):
    """Refuse another number of rows, or `checksums` that differ by more than rounding, than in the first pass."""
    (n_first, first), (n_now, now) = first, now
    if n_now != n_first:
        said = f"had {n_first} rows in the first pass and has {n_now} in the {what}"
    elif now is first or same_sums(first, now):
        return
    else:
        said = f"holds other values in the {what} than in the first pass"
    raise ChunkError(
        f"{name} {said}: chunks must not change during a fit, and a function that makes a chunk must make the same one "
        "each time"
    )


def same_sums(first, now):
    """Whether two `checksums` differ by rounding at most."""
    if now[0] != first[0] or now[1].shape != first[1].shape:
        return False
    return not np.any(np.abs(now[1] - first[1]) > SAME * first[2])


def work(function, layout, task):
    """One chunk of a pass, on a worker: its number of rows with its checksums, and what the function makes of it."""
    number, chunk, more = task
    name = name_of(number, chunk)
    frame = layout.frame(chunk, name)
    if not len(frame):  # a shuffle leaves such partitions
        return (0, None), None
    try:
        sums = checksums(frame, layout) if layout.features else None
        return (len(frame), sums), function(frame, layout, *more)
    except ValueError as error:
        raise ChunkError(f"{name}: {error}") from error
    except Exception as error:
        raise ChunkError(f"{name}: {type(error).__name__}: {error}") from error


def listed(chunks):
    """Chunks as a list that can be read several times."""
    if hasattr(chunks, "to_delayed"):
        chunks = chunks.to_delayed()
    if isinstance(chunks, str | Path) and Path(chunks).is_dir():
        raise ValueError(
            f'chunks is a folder; pass its files: sorted(Path({str(chunks)!r}).glob("*.parquet"))'
        )
    if isinstance(chunks, str | Path | pd.DataFrame):
        chunks = [chunks]
    if not hasattr(chunks, "__iter__"):
        raise ValueError(
            "chunks must be a list of paths, of DataFrames, or of functions that return a DataFrame, got "
            f"{type(chunks).__name__}"
        )
    if iter(chunks) is chunks:
        raise ValueError(
            "chunks is an iterator, which can be read only once; a fit reads the chunks several times: pass a list "
            "of paths, of DataFrames, or of functions that return a DataFrame"
        )
    chunks = list(chunks)
    if not chunks:
        raise ValueError("chunks is empty")
    return chunks


class Engine:
    """Passes over chunks by a ``map``.

    Parameters
    ----------
    chunks : sequence, or Dask DataFrame
    map : callable
        ``map(function, tasks)`` gives the results in the order of the tasks, or futures of them: objects with
        ``result(timeout)``.
    timeout : float or None
        Seconds to wait for the next chunk in order, after which a pass ends with `EngineError`; where ``map`` gives no
        futures, that is up to the engine.
    """

    def __init__(self, chunks, map, timeout=None):
        self.chunks = listed(chunks)
        owner = getattr(map, "__self__", None)
        if isinstance(owner, Pool):
            raise ValueError(
                "map is that of a multiprocessing Pool, which never says that a worker has died: pass the map of a "
                "concurrent.futures.ProcessPoolExecutor"
            )
        self.submit = self._submitter(map, owner)
        self.timeout, self.seen = timeout, {}

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
            answers = list(answers) if isinstance(answers, list) else answers
            for task, answer in zip(tasks, in_turn(answers), strict=True):
                yield task[0], self._checked(answer, what, *task[:2])
        except Exception as error:
            if not died(error):
                raise
            raise EngineError(
                f"a worker process died in the {what}: if it ran out of memory, make the chunks smaller; then fit "
                "again with a new executor or cluster"
            ) from error
        finally:  # after an error, or where the caller has seen enough
            for answer in answers if isinstance(answers, list) else ():
                if hasattr(answer, "cancel"):
                    answer.cancel()

    def _checked(self, answer, what, number, chunk):
        name = name_of(number, chunk)
        seen, result = self._wait(answer, what, name)
        if seen[0] == 0 or seen[1] is not None:  # all but the look at the columns
            refuse_change(name, what, self.seen.setdefault(number, seen), seen)
        return result

    @property
    def sizes(self):
        """The number of rows of each chunk."""
        return {number: n for number, (n, _) in self.seen.items()}

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


def in_turn(answers):
    """The answers of an engine in order; a list forgets each after its turn, so that their memory is free."""
    if not isinstance(answers, list):
        yield from answers
        return
    for place in range(len(answers)):
        yield answers[place]
        answers[place] = None


def died(error):
    """Whether an error says that a worker died: that of an executor, or of Dask after several deaths."""
    return isinstance(error, BrokenExecutor) or type(error).__name__ == "KilledWorker"


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
                model = name_of(number, engine.chunks[number])
                return replace(layout, features=columns, model=model)
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
