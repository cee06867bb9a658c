"""Reading chunks, and passes over all of them by joblib."""

from __future__ import annotations

from concurrent.futures import BrokenExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from joblib.parallel import get_active_backend

from .._input import (
    as_frame,
    check_column,
    check_features,
    is_foreign,
    read_counts,
    reading,
)
from ..base import Progress


class ChunkError(ValueError):
    """A chunk cannot be read, or holds something else than the other chunks; the message names it.

    Examples
    --------
    >>> import pandas as pd
    >>> from llpbook import CountLogistic, fit_chunks
    >>> from llpbook.beyond_memory import ChunkError
    >>> one = pd.DataFrame({"x": [0.0, 1.0, 2.0, 3.0], "bag": [0, 0, 1, 1]})
    >>> other = one.drop(columns="x")
    >>> try:
    ...     fit_chunks(CountLogistic(), [one, other], [0.2, 0.8], bags="bag")
    ... except ChunkError as error:
    ...     print("refused")
    refused
    """


class EngineError(RuntimeError):
    """A worker died; the message says in which pass.

    Examples
    --------
    >>> from llpbook.beyond_memory import EngineError
    >>> issubclass(EngineError, RuntimeError)
    True
    """


def read(chunk, columns=None):
    """Read a chunk as a DataFrame; of a file or a table of another library only the given columns."""
    if isinstance(chunk, str | Path):
        endings = Path(chunk).suffixes
        if ".csv" in endings:
            return read_csv(chunk, columns)
        if ".parquet" not in endings:
            raise ValueError(
                "a path must end in .parquet or .csv (.csv.gz, …); pass functions that read your files: "
                "[functools.partial(read, path) for path in paths]"
            )
        chunk = data_set(chunk)
    if hasattr(chunk, "__dask_graph__"):  # which has every attribute
        return chunk.compute()
    if hasattr(chunk, "to_table"):
        return chunk.to_table(columns=columns).to_pandas()
    return as_frame(chunk() if callable(chunk) else chunk, columns)


def data_set(path):
    """Open a Parquet file, or a folder of them, as a data set of pyarrow."""
    if Path(path).is_dir() and not any(map(holds_rows, Path(path).rglob("*"))):
        raise ValueError(
            "it is a folder without files: did the job that writes it end?"
        )
    try:
        from pyarrow.dataset import dataset
    except ImportError as error:
        raise ImportError("it needs pyarrow: pip install pyarrow") from error
    return dataset(path, format="parquet")


def holds_rows(path):
    """True if a path in a folder holds rows; names with a leading _ or . are those of marks, such as _SUCCESS."""
    return path.is_file() and path.name[0] not in "._"


def read_csv(path, columns=None):
    """Read a CSV file whole: with `usecols` pandas would not count the fields of a line, and values could shift."""
    frame = pd.read_csv(path)
    if not isinstance(frame.index, pd.RangeIndex):
        raise ValueError("its lines have more fields than its header has names")
    return frame if columns is None else frame[columns]


def row_groups(path: str | Path) -> list:
    """List the row groups of a Parquet file as chunks, for a file that is too large for one worker.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    list of pyarrow.dataset.Fragment
        Chunks for `fit_chunks`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import pandas as pd
    >>> from llpbook import BagMeanRegression, fit_chunks
    >>> from llpbook.beyond_memory import row_groups
    >>> table = pd.DataFrame({"x": range(8), "bag": [0, 0, 0, 0, 1, 1, 1, 1]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "people.parquet"
    ...     table.to_parquet(path, row_group_size=4)
    ...     chunks = row_groups(path)
    ...     model = fit_chunks(BagMeanRegression(), chunks, {0: 0.2, 1: 0.8}, bags="bag")
    >>> len(chunks), model.predict([[0.0], [7.0]]).tolist()
    (2, [0, 1])
    """
    files = data_set(path).get_fragments()
    return [group for file in files for group in file.split_by_row_group()]


#: The forms of chunks.
FORMS = "a list of paths, of tables, or of functions that return a table"


def listed(chunks):
    """Chunks as a list that can be read several times."""
    if hasattr(chunks, "to_delayed"):
        chunks = chunks.to_delayed()
    if isinstance(chunks, str | Path) and Path(chunks).is_dir():
        folder, chunks = chunks, sorted(Path(chunks).glob("*.parquet"))
        if not chunks:
            raise ValueError(f"chunks is the folder {str(folder)!r}, without .parquet")
        inside = [p.name for p in Path(folder).iterdir() if p.is_dir()]
        left = [n for n in inside if n[0] not in "._" and not n.endswith(".parquet")]
        if left:
            raise ValueError(
                f"chunks is the folder {str(folder)!r} with the folder {left[0]!r} in it, which would be left out: "
                "pass a list of all files, sorted(Path(folder).rglob('*.parquet'))"
            )
    if hasattr(chunks, "get_fragments"):  # of a data set of pyarrow
        chunks = list(chunks.get_fragments())
    if isinstance(chunks, str | Path | pd.DataFrame) or is_foreign(chunks):
        chunks = [chunks]
    refuse_plan("chunks", chunks)
    if not hasattr(chunks, "__iter__"):
        raise ValueError(f"chunks must be {FORMS}, got {type(chunks).__name__}")
    if iter(chunks) is chunks:
        raise ValueError(
            f"chunks is an iterator, which can be read only once; chunks are read several times: pass {FORMS}"
        )
    chunks = list(chunks)
    if not chunks:
        raise ValueError("chunks is empty")
    for number, chunk in enumerate(chunks):
        refuse_plan(f"chunk {number}", chunk)
        # nothing is fetched behind the user's back, as pandas would
        if isinstance(chunk, str) and "://" in chunk:
            raise ValueError(
                f"chunks holds the address {chunk!r}, and nothing is fetched: download the file, or pass a function "
                f"that reads it, functools.partial(pandas.read_parquet, {chunk!r})"
            )
    return chunks


def refuse_plan(name, chunk):
    """Refuse what has not read its rows, such as a LazyFrame, and say what stands in its place."""
    call = reading(chunk)
    if call not in (None, "compute()", "to_table()"):  # which `read` calls
        raise ChunkError(
            f"{name} is a {type(chunk).__name__}, whose rows are not read yet: pass what reads them, "
            f"[lazy.{call[:-2]}], without calling it, or the table, lazy.{call}"
        )


def name_of(number, chunk):
    """Name of a chunk in messages: its number, and its path or key where it has one."""
    name = None
    if isinstance(chunk, str | Path):
        name = chunk
    elif isinstance(chunk, partial):
        name = ", ".join(map(str, chunk.args))
    elif not isinstance(chunk, pd.DataFrame):
        key = "key" if hasattr(chunk, "__dask_graph__") else "path"
        name = getattr(chunk, key, None)
    return f"chunk {number}" + f" ({name})" * (name is not None)


@dataclass(frozen=True)
class Layout:
    """Columns and steps by which a worker turns a chunk into numbers.

    Attributes
    ----------
    bags : hashable
        The column that names the bag.
    features : list, or None
        The columns of the instances; None for all others.
    steps : tuple of transformers
        Fitted, applied in this order.
    group, counts : hashable
        Columns that are read, too, without being features: of groups, and of how many instances a row stands for.
    model : str or None
        Name of the chunk whose columns are the features, while the other chunks must have no more columns.
    """

    bags: object
    features: object = None
    steps: tuple = ()
    group: object = None
    counts: object = None
    model: object = None

    @property
    def others(self):
        """Columns that are no features."""
        others = (self.bags, self.group, self.counts)
        return [column for column in others if column is not None]

    def frame(self, chunk, name):
        """Read the DataFrame of a chunk, with the columns that are needed."""
        wanted = None
        if self.features is not None:
            wanted = list(dict.fromkeys([*self.features, *self.others]))
        try:
            frame = read(chunk, None if self.model else wanted)
        except Exception as error:
            kind = type(error).__name__
            raise ChunkError(f"{name} cannot be read: {kind}: {error}") from error
        if not isinstance(frame, pd.DataFrame):
            refuse_plan(name, frame)
            raise ChunkError(
                f"{name} must be a DataFrame, or read as one, got {type(frame).__name__}"
            )
        if len(frame):  # a part without rows may have no columns either
            check_columns(frame, name, wanted or self.others, self)
        return frame

    def transformed(self, frame):
        """Features of a chunk after the steps, as a DataFrame."""
        X = frame[self.features]
        for step in self.steps:
            X = step.transform(X)
        if isinstance(X, pd.DataFrame):
            return X
        X = X.toarray() if hasattr(X, "toarray") else np.asarray(X)
        try:
            frame = pd.DataFrame(X, columns=self.steps[-1].get_feature_names_out())
        except (AttributeError, TypeError, ValueError):
            frame = pd.DataFrame(X)
        return frame.infer_objects()

    def matrix(self, frame):
        """Features of a chunk in double precision, shape (n_instances, n_features), by column in memory."""
        X = self.transformed(frame)
        if any(dtype.kind not in "fiub" for dtype in X.dtypes):
            # of objects that are numbers, or a message that names each column
            return np.array(check_features(X), order="F")
        return np.array(X.to_numpy(np.float64, na_value=np.nan), order="F")

    def instances(self, frame):
        """Rows of a chunk that stand for an instance, and for how many, an ndarray of int; None for one each."""
        if self.counts is None:
            return frame, None
        name = f"column {self.counts!r}"
        times = read_counts(frame[self.counts], len(frame), name=name, some=False)
        return frame[times > 0], times[times > 0]

    def bag_column(self, frame):
        """Names of the bags of the instances of a chunk, none missing."""
        return check_column(
            f"column {self.bags!r}", frame[self.bags], len(frame), kind="bags"
        )


def check_columns(frame, name, wanted, layout):
    """Refuse a chunk that lacks a column, has one twice, or has more than the chunk that is the model for all."""
    has, model = frame.columns, layout.model
    missing = [c for c in wanted if c not in has]
    twice = [c for c in has[has.duplicated()] if layout.features is None or c in wanted]
    more = [c for c in has if model and c not in wanted]
    if missing:
        raise ChunkError(f"{name} has no column {missing[0]!r}; it has {has.tolist()}")
    if twice:
        raise ChunkError(f"{name} has two columns with the name {twice[0]!r}")
    if more:
        raise ChunkError(
            f"{name} has the column {more[0]!r}, which {model} has not; name the columns by features="
        )


def work(function, layout, number, chunk, args):
    """Apply the function of a pass to one chunk, on a worker; an error names the chunk."""
    name = name_of(number, chunk)
    frame = layout.frame(chunk, name)
    try:
        return function(frame, layout, *args)
    except Exception as error:
        kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
        raise ChunkError(f"{name}: {kind}{error}") from error


class Engine:
    """Passes over chunks by joblib, with the backend that is active.

    Parameters
    ----------
    name : str
        Of what asks for the passes.
    chunks : sequence, path, DataFrame or Dask DataFrame
    n_jobs : int or None
    verbose : int
        See `llpbook.base.Progress`.
    """

    def __init__(self, name, chunks, n_jobs, verbose):
        self.name, self.chunks = name, listed(chunks)
        self.n_jobs, self.verbose = n_jobs, verbose
        backend = get_active_backend()[0]
        if type(backend).__name__ == "MultiprocessingBackend":
            raise ValueError(
                "joblib's backend 'multiprocessing' waits for ever for a process that has died: take 'loky'"
            )
        generates = backend.supports_return_generator
        self.return_as = "generator" if generates else "list"

    def run(self, what, function, layout, args=()):
        """Run one pass.

        Parameters
        ----------
        what : str
            Its name, for messages.
        function : callable
            ``function(frame, layout, *args)``, defined in a module.
        layout : Layout
        args : tuple, or list of tuple
            For all chunks, or for each.

        Yields
        ------
        object
            The results of the function, in the order of the chunks.
        """
        own = args if isinstance(args, list) else [args] * len(self.chunks)
        progress = Progress(
            f"{self.name}, {what}", self.verbose, len(own), unit="chunk"
        )
        parallel = Parallel(self.n_jobs, batch_size=1, return_as=self.return_as)
        tasks = enumerate(zip(self.chunks, own, strict=True))
        try:
            for result in parallel(
                delayed(work)(function, layout, number, chunk, arguments)
                for number, (chunk, arguments) in tasks
            ):
                progress.step()
                yield result
        except Exception as error:
            if not died(error):
                raise
            raise EngineError(
                f"a worker process died in the {what}: if it ran out of memory, make the chunks smaller; then fit again"
            ) from error


def died(error):
    """True if an error means that a worker died: that of a pool, or of Dask after several deaths."""
    of_dask = "KilledWorker", "FutureCancelledError"
    return isinstance(error, BrokenExecutor) or type(error).__name__ in of_dask


def with_columns(engine, layout):
    """Copy a layout with named features: by default all columns of the first chunk but those of bags and groups."""
    if layout.features is None:
        for number, chunk in enumerate(engine.chunks):
            name = name_of(number, chunk)
            frame = layout.frame(chunk, name)
            if len(frame):
                columns = [c for c in frame.columns if c not in layout.others]
                return replace(layout, features=columns, model=name)
        raise ValueError("chunks hold no rows")
    features = list(layout.features)
    taken = {"bags": layout.bags, "counts": layout.counts}
    twice = [f"{what} ({c!r})" for what, c in taken.items() if c in features]
    if twice or len(set(features)) < len(features):
        of = (twice or ["bags"])[0]
        raise ValueError(
            f"features must be different columns, none of them that of the {of}, got {features}"
        )
    return replace(layout, features=features)
