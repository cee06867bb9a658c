"""How `llpbook.datasets` reads a raw table and makes it numbers; the facts on each set are data/provenance.json."""

import difflib
import json
import os
import re
from functools import cache
from http.client import HTTPException
from pathlib import Path
from urllib.error import URLError

import numpy as np
import pandas as pd
from sklearn.datasets import fetch_openml

from ..base import warn

DATA = Path(__file__).parent / "data"
PLAIN = ("raw", "onehot", "full")
MISSING = ("impute", "keep", "drop", "category")


@cache
def catalog():
    """The whole of provenance.json; callers must not change it."""
    return json.loads((DATA / "provenance.json").read_text(encoding="utf-8"))


def unknown(argument, value, known):
    """The error for a name that is not known, with those that are close to it."""
    known = [repr(name) for name in pd.Index(list(known)).tolist()]
    close = difflib.get_close_matches(repr(value), known, n=3)
    hint = f"did you mean {' or '.join(close)}? " if close else ""
    return ValueError(
        f"{argument}={value!r} is not known; {hint}known: {', '.join(known)}"
    )


def recipe(name, encoding):
    """All that says how to make one set in one encoding: facts of its file, then of the set, then of the paper."""
    for argument, value in (("name", name), ("encoding", encoding)):
        if not isinstance(value, str):
            raise ValueError(f"{argument} must be a name, got {value!r}")
    sets, papers = catalog()["sets"], catalog()["papers"]
    if encoding in PLAIN:
        entry = {"set": name, "encoding": encoding}
    elif encoding in papers:
        own = papers[encoding]["sets"]
        # The name the paper prints wins: yu2013's breast-cancer is not the breast-cancer of the others.
        ours = {e["set"]: e for e in own.values()}
        entry = own.get(name) or ours.get(name)
        if entry is None:
            raise unknown(f"encoding={encoding!r} has other sets: name", name, own)
    else:
        raise unknown("encoding", encoding, [*PLAIN, *papers])
    if entry["set"] not in sets:
        raise unknown("name", name, sets)
    view = sets[entry["set"]]
    of = view.get("of", entry["set"])
    return sets[of] | view | entry | {"file_of": of}


def as_labels(values):
    """Class labels as integers where all of them are, else as strings."""
    values = pd.Series(np.asarray(values), name="class").astype(str)
    whole = all(re.fullmatch(r"-?\d+", label) for label in values.unique())
    return values.astype(np.int64) if whole else values


def read_table(spec):
    """The raw table: numeric columns as floats, nominal ones as strings, ``class`` last."""
    if spec["file_of"] == "twonorm":
        return twonorm(spec["n"])
    if "file" in spec:
        return read_csv(DATA / spec["file"], spec)
    folder = os.environ.get("LLPBOOK_DATA")
    path = Path(folder or "") / spec["local"]
    if not folder or not path.is_file():
        return _fetch(spec, folder)
    return whole(read_csv(path, spec), spec, str(path))


def read_csv(path, spec):
    """A CSV with a header, missing values empty, the last column ``class``; spaces in names become underscores."""
    header = list(pd.read_csv(path, nrows=0).columns)
    if header[-1] != "class":
        raise ValueError(
            f"the last column of {path} must be called 'class', it is {header[-1]!r}"
        )
    text = {"class", *spec.get("nominal", [])}
    types = {name: str if name.replace(" ", "_") in text else float for name in header}
    try:
        # "None" and "NA" are values here, only an empty field is missing.
        table = pd.read_csv(path, dtype=types, keep_default_na=False, na_values=[""])
    except ValueError as error:
        raise ValueError(
            f"{path} has a column that should be numeric but is not: {error}"
        ) from error
    return table.rename(columns=lambda name: name.replace(" ", "_"))


def _fetch(spec, folder):
    """A set that is not shipped, from OpenML by scikit-learn, which keeps a cache."""
    name, cause = spec["file_of"], None
    if "openml" in spec:
        try:
            found = fetch_openml(data_id=spec["openml"], as_frame=True, parser="auto")
        except (URLError, ConnectionError, TimeoutError, HTTPException) as error:
            cause = error
        else:
            return _from_openml(found, spec)
    here = f"it is {folder}, which has no such file" if folder else "it is not set"
    way = (
        f"fetch_openml(data_id={spec.get('openml')}) failed: {cause}"
        if cause
        else "OpenML has no copy of this set"
    )
    raise FileNotFoundError(
        f"data set {name!r} is not shipped. Either put {spec['local']} into the folder that the "
        f"environment variable LLPBOOK_DATA names ({here}; formats: llpbook.datasets.load), "
        f"or let scikit-learn download it once, with a network connection ({way})"
    ) from cause


def _from_openml(found, spec):
    table = found.data.rename(columns=lambda name: name.replace(" ", "_"))
    nominal = set(spec.get("nominal", []))
    # OpenML calls some 0/1 columns nominal; their strings are numbers here.
    columns = {c: table[c].astype(object if c in nominal else float) for c in table}
    table = pd.DataFrame(columns).assign(
        **{"class": np.asarray(found.target, dtype=object).astype(str)}
    )
    if "keep_classes" in spec:
        table = table[table["class"].isin(spec["keep_classes"])].reset_index(drop=True)
    return whole(table, spec, f"OpenML's data set {spec['openml']}")


def whole(table, spec, source):
    """The table, if it has as many rows and columns as the set has."""
    if table.shape != (spec["n"], spec["raw"] + 1):
        raise ValueError(
            f"{source} has {table.shape[0]} rows and {table.shape[1] - 1} columns; "
            f"{spec['file_of']!r} must have {spec['n']} and {spec['raw']}"
        )
    return table


def twonorm(n, d=20):
    """Breiman's two normal classes, whose means are 4 apart, as a table."""
    rng = np.random.RandomState(0)
    y = rng.randint(0, 2, size=n)
    X = rng.standard_normal((n, d)) + (2 * y[:, None] - 1) * 2 / np.sqrt(d)
    table = pd.DataFrame(X, columns=[f"x{i}" for i in range(1, d + 1)])
    return table.assign(**{"class": y})


def choose_rows(table, spec):
    """The rows a set is made of, and its classes: complete cases, rows with known values, merged classes."""
    if spec.get("complete"):
        table = table.dropna()
    table = table.dropna(subset=spec.get("require", []))
    labels = as_labels(table.pop("class").replace(spec.get("merge", {})))
    return table.reset_index(drop=True), labels


def levels_of(values, declared=()):
    """The values of a nominal column in order: by leading number where all start with one, else alphabetically."""
    found = sorted({str(v) for v in values.dropna().unique()} | set(declared))
    if all(re.match(r"-?\d+", value) for value in found):
        found.sort(key=lambda value: int(re.match(r"-?\d+", value)[0]))
    return found


def encode(table, spec, missing):
    """The raw table as a DataFrame of floats; ``missing`` is one of MISSING but "drop"."""
    nominal = [c for c in table if c in spec.get("nominal", [])]
    if not nominal and not table.isna().to_numpy().any():
        return table
    numbers = nominal if spec.get("numbers") == "all" else spec.get("numbers", [])
    declared = spec.get("declared", {}) if spec.get("use_declared") else {}
    columns = {}
    for name in table:
        values = table[name]
        if name not in nominal or values.isna().all():
            # A column without any value has no median: it becomes 0.
            known = values.astype(float)
            fill = np.nan if missing == "keep" else np.nan_to_num(known.median())
            columns[name] = known.fillna(fill)
            continue
        values = values.astype(object)
        if missing == "category":
            values = values.fillna("?")
        levels = levels_of(values, declared.get(name, ()))
        codes = pd.Series(pd.Categorical(values, categories=levels).codes, dtype=float)
        codes = codes.where(codes >= 0)
        if missing != "keep":
            codes = codes.fillna(codes.mode()[0])
        if name in numbers:
            found = [int(re.search(r"\d+", level)[0]) for level in levels]
            columns[name] = codes.map(dict(enumerate(found)))
        elif spec["encoding"] == "raw":
            columns[name] = codes
        else:
            # Of two values the first needs no column.
            first = int(spec["encoding"] == "onehot" and len(levels) == 2)
            for k in range(first, len(levels)):
                column = np.where(codes.isna(), np.nan, codes == k)
                columns[f"{name}={levels[k]}"] = column
    return pd.DataFrame(np.column_stack(list(columns.values())), columns=list(columns))


def warn_of_width(name, spec, encoding, width):
    """Say so where the width that a paper prints cannot be had."""
    if "printed_m" in spec:
        warn(
            f"{encoding} prints {spec['printed_m']} columns for {name!r}, these are {width}: {spec['note']}",
        )
