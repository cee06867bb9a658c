"""Tables of experiments: cells times seeds, one row of a CSV file for each, on disk as soon as it is known.

A file reads ``protocol, <the cell>, seed, <results>, seconds``: the columns between ``protocol`` and ``seed`` are the
parameters of the cell. A run that was stopped goes on where it stood. No row is lost or made twice, because

- one process at a time fills a table (`_locked`);
- a row is on disk before the next one (`_append`), and a last line without its end is no row: it is made again;
- a file is read whole, and refused for a line that this module would not have written so (`_read`).

Beside it, ``TABLE.meta.json`` says which command and which package versions made which rows.
"""

import csv
import io
import json
import os
import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

RESULTS = Path(__file__).parent / "results"
PACKAGES = ("numpy", "scipy", "scikit-learn", "llpbook")
# Of networks: its versions round differently.
PACKAGES += ("torch",) if find_spec("torch") else ()


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


class DamagedTableError(ValueError):
    """A file of results, or what stands beside it, cannot be used as it is."""


def cells(**values):
    """All combinations of the values as a list of dicts."""
    combinations = product(*values.values())
    return [dict(zip(values, some, strict=True)) for some in combinations]


def select(cells, only):
    """The cells that agree with every condition: a dict of the values to keep, by the key of a cell."""
    chosen = cells
    for key, values in only.items():
        if key not in cells[0]:
            raise ValueError(
                f"only: {key!r} is not a parameter of the cells; they have {list(cells[0])}"
            )
        known, wanted = [as_text(c[key]) for c in cells], [*map(as_text, values)]
        for value in wanted:
            if value not in known:
                names = ", ".join(dict.fromkeys(known))
                raise ValueError(f"only: no cell has {key}={value}; known: {names}")
        chosen = [cell for cell in chosen if as_text(cell[key]) in wanted]
    if not chosen:
        raise ValueError(f"only: no cell meets all of {only}")
    return chosen


def set_values(table, values):
    """The table with other values of its free parameters, given as text; their rows go to the same file."""
    for key in values:
        if key not in table.free:
            free = ", ".join(table.free) or "none"
            raise ValueError(f"set: {key!r} is fixed in {table.name}; free are: {free}")
    new = {key: table.free[key](text) for key, text in values.items()}
    changed = [{**cell, **new} for cell in table.cells]
    distinct = {tuple(cell.items()): cell for cell in changed}
    return replace(table, cells=[*distinct.values()])


def outcome(model, X, y, X_new, y_new, **more):
    """Results of a row: accuracy of a search on new instances and on those in bags, ``more``, and what it chose."""
    found = {
        "accuracy": np.mean(model.predict(X_new) == y_new),
        "in_bags": np.mean(model.predict(X) == y),
        **more,
    }
    chosen = " ".join(  # numbers, or trees
        f"{k}={getattr(v, 'max_iter', v):.3g}" for k, v in model.best_params_.items()
    )
    return {**{k: round(float(v), 6) for k, v in found.items()}, "chosen": chosen}


def as_text(value):
    """A value as it stands in the file: numbers to 10 digits."""
    text = f"{value:.10g}" if isinstance(value, float) else str(value)
    if "\n" in text or "\r" in text:
        raise ValueError(f"a value of a row must not hold a line break, got {text!r}")
    return text


def _key(cell, seed):
    return (*map(as_text, cell.values()), str(seed))


def _line(values):
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerow(values)
    return buffer.getvalue()


@cache  # the parameters of many rows are few words
def _number(text):
    """A number as `as_text` writes it; other text as it is."""
    for kind in (int, float):
        try:
            return as_text(kind(text))
        except ValueError:
            pass
    return text


def _parse(line):
    """The values of a line; none if `_line` would not have written them so, to the letter."""
    try:
        if (
            line and b'"' not in line and b"\r" not in line
        ):  # nearly all, and ten times as fast
            return line.decode().split(",")
        row = next(csv.reader([line.decode()]), [])
    except (UnicodeDecodeError, csv.Error):
        return []
    return row if _line(row).encode() == line + b"\n" else []


def _read(table, results=None):
    """Header and rows of a table, or of a name, as text, all of it checked; the rows by cell and seed.

    Two rows of one cell and seed are one, if they differ in nothing but the time that they took, the last column.
    """
    name = getattr(table, "name", table)
    path, header, rows = Path(results or RESULTS) / f"{name}.csv", [], {}
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    for number, line in enumerate(lines, start=1):
        row = _parse(line)
        header = header or row
        keys = row[1 : header.index("seed") + 1] if "seed" in header else []
        if not keys or len(row) != len(header) or [*map(_number, keys)] != keys:
            raise DamagedTableError(
                f"{path} line {number} is no header, or no row that was written under the header: mend or delete the "
                "line, then run the table again"
            )
        if number > 1 and rows.setdefault(tuple(keys), row)[:-1] != row[:-1]:
            raise DamagedTableError(
                f"{path} line {number} has the parameters of an earlier row, but other results: delete one of them"
            )
    if header and isinstance(table, Table):
        _refuse_other(table, header, [row[0] for row in rows.values()])
    return header, rows


def _refuse_other(table, header, protocols):
    """ValueError where a file is not of the parameters and of the protocol of a table."""
    keys, wrong = list(table.cells[0]), ""
    for other in set(protocols) - {table.protocol}:
        wrong = f"rows of protocol {other!r}, the code is {table.protocol!r}"
    if header[: len(keys) + 2] != ["protocol", *keys, "seed"]:
        wrong = f"the columns {header}, not the parameters {keys} of the table"
    if wrong:
        raise ValueError(
            f"{table.name}.csv holds {wrong}: move {table.name}.csv and {table.name}.meta.json away, or delete them, "
            "and run the table anew, or go back to the code that wrote them"
        )


def done(table, results=None):
    """The (cell, seed) pairs, as tuples of text, that the file of a table holds; errors as of `run_table`."""
    return set(_read(table, results)[1])


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


def _append(file, text):
    """Append the whole text, on disk before this returns, or nothing."""
    before, rest = os.fstat(file.fileno()).st_size, memoryview(text.encode())
    try:
        while rest:  # a write may be short
            rest = rest[file.write(rest) :]
        os.fsync(file.fileno())
    except OSError:
        file.truncate(before)
        raise


def run_table(
    table, seeds=5, jobs=1, only=None, results=None, command=None, report=None
):
    """Run what is missing of a table; rows that are there stay.

    Parameters
    ----------
    table : Table
    seeds : int, default 5
        Seeds 0, …, ``seeds - 1``.
    jobs : int, default 1
        Processes that compute; only the calling one writes.
    only : dict of str to list, optional
        Parameters of the cells, and the values to keep.
    results : path, optional
        Folder of the files; that of the package if not given.
    command : str, optional
        What to note as the command.
    report : callable, optional
        Called with cell, seed, results, number of rows written and number of rows to write, after each row.

    Returns
    -------
    int
        Number of rows written.

    Raises
    ------
    ValueError
        If no cell has a value of ``only``, or the file holds rows of another protocol or with other columns;
        `DamagedTableError` if a line is damaged, or another process fills the table.
    """
    path = Path(results or RESULTS) / f"{table.name}.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    wanted = list(product(range(seeds), select(table.cells, only or {})))
    with _locked(path):
        header, have = _read(table, path.parent)
        missing = [(c, seed) for seed, c in wanted if _key(c, seed) not in have]
        if missing:
            command = command or f"run_table({table.name!r}, seeds={seeds})"
            _note_run(table, path.with_suffix(".meta.json"), command, len(have))
            _fill(table, path, header, missing, jobs, report)
    return len(missing)


def _timed(run, cell, seed):
    start = time.perf_counter()
    found = run(cell, seed)
    return cell, seed, {**found, "seconds": round(time.perf_counter() - start, 4)}


def _fill(table, path, header, missing, jobs, report):
    """Compute the missing rows and append each as soon as it is known."""
    tasks = (delayed(_timed)(table.run, *task) for task in missing)
    answers = Parallel(n_jobs=jobs, return_as="generator_unordered")(tasks)
    with open(path, "ab", buffering=0) as file:
        file.truncate(path.read_bytes().rfind(b"\n") + 1)  # what a crash cut short
        for count, (cell, seed, found) in enumerate(answers, start=1):
            columns = ["protocol", *cell, "seed", *found]
            if header and columns != header:
                raise ValueError(
                    f"{path.name} has the columns {header}, a new row {columns}: raise the protocol version"
                )
            row = [table.protocol, *_key(cell, seed), *map(as_text, found.values())]
            _append(file, ("" if header else _line(columns)) + _line(row))
            header = columns
            if report:
                report(cell, seed, found, count, len(missing))


def _note_run(table, path, command, first_row):
    """Note the command and the package versions of the rows to come, unless they are those of the rows before."""
    protocol, runs, keys = table.protocol, [], ("first_row", "command", "packages")
    if path.exists():
        try:
            meta = json.loads(path.read_text(encoding="utf-8"))
            protocol = meta["protocol"]
            runs = [{key: run[key] for key in keys} for run in meta["runs"]]
        except (ValueError, KeyError, TypeError) as error:
            raise DamagedTableError(
                f"{path} is damaged ({error}); delete it: the rows are kept, with which versions they were made is lost"
            ) from error
    if protocol != table.protocol:
        raise ValueError(
            f"{path} is of protocol {protocol!r}, the code is {table.protocol!r}: move it to where its rows are, "
            "or delete it"
        )
    runs = runs if first_row else []  # without a row: of a run that was stopped
    packages = {name: version(name) for name in PACKAGES}
    if not runs or (runs[-1]["command"], runs[-1]["packages"]) != (command, packages):
        values = first_row, command, packages
        runs.append(dict(zip(keys, values, strict=True)))
    meta = {"table": table.name, "protocol": protocol, "runs": runs}
    part = path.with_suffix(".part")  # a crash leaves the old file or the new one
    part.write_text(json.dumps(meta, indent=2) + "\n", encoding="utf-8")
    part.replace(path)


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
    header, rows = _read(table, results)
    if not header:
        known = sorted(path.stem for path in Path(results or RESULTS).glob("*.csv"))
        raise ValueError(
            f"table {getattr(table, 'name', table)!r} has no results; there are results of: {', '.join(known)}"
        )
    text = io.StringIO("".join(map(_line, [header, *rows.values()])))
    options = {"keep_default_na": False, "na_values": ["nan"]}
    frame = pd.read_csv(text, dtype={"protocol": str}, **options)
    return frame.sort_values(header[1 : header.index("seed") + 1], ignore_index=True)


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
    if value not in frame.columns:
        raise ValueError(
            f"value={value!r} is not a column of the table; it has {list(frame.columns)}"
        )
    keys = list(frame.columns[1 : frame.columns.get_loc("seed")])
    groups = frame.groupby(keys)[value]
    return groups.agg(mean="mean", sd="std", n_seeds="count").reset_index()
