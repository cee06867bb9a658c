"""A table of an experiment: cells times seeds, one row of a CSV for each, written as soon as it is known.

A run that was stopped goes on where it stood; rows of another protocol are refused, not mixed in. A file reads
``protocol, <the cell>, seed, <results>, seconds``: the columns between ``protocol`` and ``seed`` are the parameters of
the cell. Next to it, ``TABLE.meta.json`` says which command and which package versions made which rows.
"""

import csv
import io
import json
import os
import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

HERE = Path(__file__).parent
RESULTS = HERE / "results"
PACKAGES = ("numpy", "scipy", "scikit-learn", "llpbook")


@dataclass(frozen=True)
class Table:
    """What to run.

    Attributes
    ----------
    name : str
        The file is ``NAME.csv``.
    protocol : str
        Version of the protocol, in every row. Change it whenever a change of code or data can change a number.
    cells : list of dict
        Parameters of each cell, all with the same keys; values are str, int, float or bool.
    run : callable
        ``run(cell, seed) -> dict`` of results, the same keys for every cell. Defined in a module, for parallel runs.
    doc : str
        One line for ``--list``.
    value : str
        The column of results that `summary` shows.
    free : dict of str to callable
        Parameters that may take values beyond those of the cells, see `set_values`; each with a function from the text
        of a value to the value, which raises ValueError.
    """

    name: str
    protocol: str
    cells: list
    run: Callable
    doc: str = ""
    value: str = "accuracy"
    free: dict = field(default_factory=dict)


def cells(**values):
    """All combinations of the values as a list of dicts."""
    return [
        dict(zip(values, combination, strict=True))
        for combination in product(*values.values())
    ]


def outcome(model, X, y, X_new, y_new, **more):
    """What a search among hyper-parameters found, as the results of a row.

    Parameters
    ----------
    model : estimator
        Fitted, with ``best_params_``, numbers or trees.
    X, X_new : ndarray
        Instances in bags, and new ones.
    y, y_new : ndarray
        Their labels.
    **more : float
        What else was measured.

    Returns
    -------
    dict
        ``accuracy`` on new instances, ``in_bags`` on those in bags, ``more``, and ``chosen``.
    """
    found = {
        "accuracy": np.mean(model.predict(X_new) == y_new),
        "in_bags": np.mean(model.predict(X) == y),
        **more,
    }
    chosen = " ".join(
        f"{k}={getattr(v, 'max_iter', v):.3g}" for k, v in model.best_params_.items()
    )
    return {**{k: round(float(v), 6) for k, v in found.items()}, "chosen": chosen}


def as_text(value):
    """A value as it stands in the file: numbers to 10 digits."""
    text = f"{value:.10g}" if isinstance(value, float) else str(value)
    if "\n" in text or "\r" in text:
        raise ValueError(f"a value of a row must not hold a line break, got {text!r}")
    return text


def select(cells, only):
    """The cells that agree with every condition.

    Parameters
    ----------
    cells : list of dict
    only : dict of str to list
        Key of a cell, and the values to keep.

    Returns
    -------
    list of dict

    Raises
    ------
    ValueError
        If a key or a value occurs in no cell, or no cell meets all conditions.
    """
    for key, wanted in only.items():
        if key not in cells[0]:
            raise ValueError(
                f"only: {key!r} is not a parameter of the cells; they have {list(cells[0])}"
            )
        known = list(dict.fromkeys(as_text(cell[key]) for cell in cells))
        for value in map(as_text, wanted):
            if value not in known:
                raise ValueError(
                    f"only: no cell has {key}={value}; known: {', '.join(known)}"
                )
    wanted = {key: {as_text(v) for v in values} for key, values in only.items()}
    chosen = [
        cell
        for cell in cells
        if all(as_text(cell[key]) in values for key, values in wanted.items())
    ]
    if not chosen:
        raise ValueError(f"only: no cell meets all of {only}")
    return chosen


def set_values(table, values):
    """The table with other values of its free parameters; results go to the same file, as rows of their own.

    Parameters
    ----------
    table : Table
    values : dict of str to str

    Returns
    -------
    Table

    Raises
    ------
    ValueError
        If a parameter is not free, or cannot take the value.
    """
    for key in values:
        if key not in table.free:
            raise ValueError(
                f"set: {key!r} is fixed in {table.name}; free are: {', '.join(table.free) or 'none'}"
            )
    new = {key: table.free[key](text) for key, text in values.items()}
    changed = [{**cell, **new} for cell in table.cells]
    distinct = list({tuple(cell.items()): cell for cell in changed}.values())
    return replace(table, cells=distinct)


class DamagedTableError(ValueError):
    """A file of results, or what stands beside it, cannot be read as it is."""


def _read(path):
    """Header and rows as text, without a last line that a crash cut short; a row that stands twice, once.

    Rows are equal if they are but for the time that they took, the last column. A line that this module would not have
    written so, to the letter, is damage.
    """
    data = path.read_bytes() if path.exists() else b""
    header, seen = [], {}
    for number, line in enumerate(data.split(b"\n")[:-1], start=1):
        row, advice = _parse(line), "mend or delete the line, then run the table again"
        if not header:
            header, n_keys = row, row.index("seed") + 1 if "seed" in row else 0
            if not n_keys:
                raise DamagedTableError(f"{path} line {number} is no header: {advice}")
            continue
        if len(row) != len(header) or [*map(_number, row[1:n_keys])] != row[1:n_keys]:
            raise DamagedTableError(
                f"{path} line {number} is no row that was written under this header: {advice}"
            )
        other = seen.setdefault(tuple(row[:n_keys]), row)
        if other[:-1] != row[:-1]:
            raise DamagedTableError(
                f"{path} line {number} has the parameters of an earlier row, but other results: "
                "delete one of them"
            )
    return header, list(seen.values())


def _parse(line):
    """The values of a line, or none if it is not, to the letter, what is written for them."""
    try:
        text = line.decode("utf-8")
        row = next(csv.reader([text]), [])
    except (UnicodeDecodeError, csv.Error):
        return []
    return row if _line(row) == text + "\n" else []


def _number(text):
    """A number as `as_text` writes it; other text as it is."""
    for kind in (int, float):
        try:
            return as_text(kind(text))
        except ValueError:
            continue
    return text


@contextmanager
def _locked(path):
    """One process at a time fills a table; the lock is the system's and ends with the process."""
    import fcntl  # not on Windows, where results can be read, not made

    with open(path.with_suffix(".lock"), "w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise DamagedTableError(
                f"{path.name} is being filled by another process; wait for it"
            ) from error
        yield


def _append(path, text):
    """Append the whole text, on disk before it returns, or nothing."""
    with open(path, "ab", buffering=0) as file:
        before, rest = file.tell(), memoryview(text.encode())
        try:
            while rest:  # a write may be short
                rest = rest[file.write(rest) :]
            os.fsync(file.fileno())
        except OSError:
            file.truncate(before)
            raise


def _replace(path, text):
    """Write a file whole: a reader, or a crash, sees the old one or the new one."""
    part = path.with_suffix(".part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)


def _line(values):
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerow(values)
    return buffer.getvalue()


def done(table, results=None):
    """The (cell, seed) pairs, as text, that the file of a table holds.

    Parameters
    ----------
    table : Table
    results : path, optional

    Returns
    -------
    set of tuple of str

    Raises
    ------
    ValueError
        If the file holds rows of another protocol or with other parameters.
    DamagedTableError
        If a line is damaged, or two lines of the same parameters have different results.
    """
    path = Path(results or RESULTS) / f"{table.name}.csv"
    header, rows = _read(path)
    if not header:
        return set()
    keys = list(table.cells[0])
    advice = (
        f"move {path.name} and {table.name}.meta.json away, or delete them, and run the table anew, or go back to the "
        "code that wrote them"
    )
    if header[: len(keys) + 2] != ["protocol", *keys, "seed"]:
        raise ValueError(
            f"{path.name} has the columns {header}, not the parameters {keys} of the table: {advice}"
        )
    other = sorted({row[0] for row in rows} - {table.protocol})
    if other:
        raise ValueError(
            f"{path.name} holds rows of protocol {other[0]!r}, the code is {table.protocol!r}: {advice}"
        )
    return {tuple(row[1 : len(keys) + 2]) for row in rows}


def _timed(run, cell, seed):
    start = time.perf_counter()
    found = run(cell, seed)
    return cell, seed, {**found, "seconds": round(time.perf_counter() - start, 4)}


def run_table(
    table, seeds=5, jobs=1, only=None, results=None, command=None, report=None
):
    """Run what is missing of a table.

    Parameters
    ----------
    table : Table
    seeds : int, default 5
        Seeds 0, …, ``seeds - 1``.
    jobs : int, default 1
        Processes that compute; only the calling one writes.
    only : dict of str to list, optional
        See `select`.
    results : path, optional
        Folder of the files; that of the package if not given.
    command : str, optional
        What to store as the command.
    report : callable, optional
        Called with (cell, seed, results, number of rows written, number of rows to write) after each row.

    Returns
    -------
    int
        Number of rows written.

    Raises
    ------
    ValueError
        If the file holds rows of another protocol or with other columns.
    DamagedTableError
        If a line is damaged, or another process fills the table.
    """
    folder = Path(results or RESULTS)
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder / f"{table.name}.csv"):
        return _run(table, seeds, jobs, only, folder, command, report)


def _run(table, seeds, jobs, only, folder, command, report):
    cells, keys = select(table.cells, only or {}), list(table.cells[0])
    path = folder / f"{table.name}.csv"
    have = done(table, folder)
    missing = [
        (cell, seed)
        for seed in range(seeds)
        for cell in cells
        if _key(cell, seed) not in have
    ]
    if not missing:
        return 0
    _cut(path)
    header = _read(path)[0]
    _write_meta(
        table, folder, command or f"run_table({table.name!r}, seeds={seeds})", len(have)
    )
    answers = Parallel(n_jobs=jobs, return_as="generator_unordered")(
        delayed(_timed)(table.run, *task) for task in missing
    )
    for count, (cell, seed, found) in enumerate(answers, start=1):
        columns = ["protocol", *keys, "seed", *found]
        if header and columns != header:
            raise ValueError(
                f"{path.name} has the columns {header}, a new row {columns}: raise the protocol version"
            )
        row = _line([table.protocol, *_key(cell, seed), *map(as_text, found.values())])
        _append(path, row if header else _line(columns) + row)
        header = columns
        if report:
            report(cell, seed, found, count, len(missing))
    return len(missing)


def _key(cell, seed):
    return (*map(as_text, cell.values()), str(seed))


def _cut(path):
    """Remove a last line that a crash cut short."""
    if path.exists():
        data = path.read_bytes()
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            os.truncate(path, whole)


def _write_meta(table, folder, command, rows_before):
    """Note the command and the package versions of the rows to come, unless they are those of the rows before."""
    path, runs = folder / f"{table.name}.meta.json", []
    if path.exists():
        runs, protocol = _read_meta(path)
        if protocol != table.protocol:
            raise ValueError(
                f"{path} is of protocol {protocol!r}, the code is {table.protocol!r}: move it to where its rows are, "
                "or delete it"
            )
        runs = runs if rows_before else []  # without a row: of a run that was stopped
    entry = {"command": command, "packages": {name: version(name) for name in PACKAGES}}
    if not runs or any(runs[-1][key] != entry[key] for key in entry):
        runs.append({"first_row": rows_before, **entry})
    meta = {"table": table.name, "protocol": table.protocol, "runs": runs}
    _replace(path, json.dumps(meta, indent=2) + "\n")


def _read_meta(path):
    """The runs that a file beside a table tells of, and their protocol."""
    try:
        meta = json.loads(path.read_text(encoding="utf-8"))
        runs, protocol = meta["runs"], meta["protocol"]
        for run in runs:
            run["command"], run["packages"], run["first_row"]
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedTableError(
            f"{path} is damaged ({error}); delete it: the rows are kept, with which versions they were made is lost"
        ) from error
    return runs, protocol


def load(table, results=None):
    """The rows of a table.

    Parameters
    ----------
    table : Table or str
        A table or its name.
    results : path, optional
        Folder of the files; that of the package if not given.

    Returns
    -------
    DataFrame
        Sorted by cell and seed.

    Raises
    ------
    ValueError
        If there is no such file, or, where a `Table` is given, its rows are of another protocol.
    """
    name, folder = (
        table if isinstance(table, str) else table.name,
        Path(results or RESULTS),
    )
    if isinstance(table, Table):
        done(table, folder)
    header, rows = _read(folder / f"{name}.csv")
    if not header:
        known = sorted(path.stem for path in folder.glob("*.csv"))
        raise ValueError(
            f"table {name!r} has no results; there are results of: {', '.join(known) or 'no table'}"
        )
    text = "".join(map(_line, [header, *rows]))
    frame = pd.read_csv(
        io.StringIO(text),
        dtype={"protocol": str},
        keep_default_na=False,
        na_values=["nan"],
    )
    return frame.sort_values(header[1 : header.index("seed") + 1]).reset_index(
        drop=True
    )


def summary(table, value="accuracy", results=None):
    """Mean and standard deviation over the seeds of each cell.

    Parameters
    ----------
    table : Table or str
    value : str, default "accuracy"
        The column of results.
    results : path, optional

    Returns
    -------
    DataFrame
        The parameters of the cell, ``mean``, ``sd`` (with n - 1; NaN for one seed) and ``n_seeds``.

    Raises
    ------
    ValueError
        As `load`, or if there is no such column.
    """
    frame = load(table, results)
    keys = list(frame.columns[1 : frame.columns.get_loc("seed")])
    if value not in frame.columns:
        raise ValueError(
            f"value={value!r} is not a column of the table; it has {list(frame.columns)}"
        )
    return (
        frame.groupby(keys)[value]
        .agg(mean="mean", sd="std", n_seeds="count")
        .reset_index()
    )


def paper_table(name):
    """A table as a paper prints it.

    Parameters
    ----------
    name : str
        For instance "yu2013_table2"; rows that the source lacks are lacking here.

    Returns
    -------
    DataFrame

    Raises
    ------
    ValueError
        If there is no such table.
    """
    known = {path.stem: path for path in sorted((HERE / "tables").glob("*.csv"))}
    if name not in known:
        raise ValueError(f"name={name!r} is not a table; known: {', '.join(known)}")
    return pd.read_csv(known[name])
