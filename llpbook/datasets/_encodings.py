"""Read raw tables and encode them as numbers; the facts on each set are in data/provenance.json."""

import difflib
import json
import re
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

DATA = Path(__file__).parent / "data"
PLAIN = ("raw", "onehot", "full")
MISSING = ("impute", "keep", "drop", "category")


@cache
def catalog():
    """The whole of provenance.json; callers must not change it."""
    return json.loads((DATA / "provenance.json").read_text(encoding="utf-8"))


def unknown(argument, value, valid):
    """The error for an unknown name, with the valid names that are close to it."""
    valid = [repr(name) for name in pd.Index(list(valid)).tolist()]
    close = difflib.get_close_matches(repr(value), valid, n=3)
    hint = f"did you mean {' or '.join(close)}? " if close else ""
    return ValueError(
        f"{argument}={value!r} is not known; {hint}known: {', '.join(valid)}"
    )


def recipe(name, encoding):
    """Recipe of one set in one encoding: facts of its file, overridden by those of the set, then of the paper."""
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
    return sets[view.get("of", entry["set"])] | view | entry


def as_labels(values):
    """Class labels as integers where all of them are, else as strings."""
    values = pd.Series(np.asarray(values), name="class").astype(str)
    whole = all(re.fullmatch(r"-?\d+", label) for label in values.unique())
    return values.astype(np.int64) if whole else values


def read_table(spec):
    """Raw features as floats and nominal strings, missing values as NaN, and the column "class"."""
    if "file" not in spec:
        return twonorm(spec["n"])
    path = DATA / spec["file"]
    text = {"class", *spec.get("nominal", [])}
    header = pd.read_csv(path, nrows=0).columns
    types = {name: str if name.replace(" ", "_") in text else float for name in header}
    # "None" and "NA" are values here, only an empty field is missing.
    table = pd.read_csv(path, dtype=types, keep_default_na=False, na_values=[""])
    return table.rename(columns=lambda name: name.replace(" ", "_"))


def twonorm(n, d=20):
    """Breiman's two normal classes, whose means are 4 apart, as a table."""
    rng = np.random.RandomState(0)
    y = rng.randint(0, 2, size=n)
    X = rng.standard_normal((n, d)) + (2 * y[:, None] - 1) * 2 / np.sqrt(d)
    table = pd.DataFrame(X, columns=[f"x{i}" for i in range(1, d + 1)])
    table["class"] = y
    return table


def choose_rows(table, spec):
    """Choose the rows of a set, and its classes: complete cases, rows with required values, merged classes."""
    if spec.get("complete"):
        table = table.dropna()
    table = table.dropna(subset=spec.get("require", []))
    labels = as_labels(table.pop("class").replace(spec.get("merge", {})))
    return table.reset_index(drop=True), labels


def levels_of(values, declared=()):
    """The values of a nominal column in order: by leading number where all start with one, else alphabetically."""
    levels = sorted({str(v) for v in values.dropna().unique()} | set(declared))
    if all(re.match(r"-?\d+", value) for value in levels):
        levels.sort(key=lambda value: int(re.match(r"-?\d+", value)[0]))
    return levels


def encode(table, spec, missing):
    """Encode the raw table as a DataFrame of floats; ``missing`` is one of MISSING but "drop"."""
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
            numeric = values.astype(float)
            fill = np.nan if missing == "keep" else np.nan_to_num(numeric.median())
            columns[name] = numeric.fillna(fill)
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
            values = [int(re.search(r"\d+", level)[0]) for level in levels]
            columns[name] = codes.map(dict(enumerate(values)))
        elif spec["encoding"] == "raw":
            columns[name] = codes
        else:
            # Of two values the first needs no column.
            first = int(spec["encoding"] == "onehot" and len(levels) == 2)
            for k in range(first, len(levels)):
                column = np.where(codes.isna(), np.nan, codes == k)
                columns[f"{name}={levels[k]}"] = column
    return pd.DataFrame(np.column_stack(list(columns.values())), columns=list(columns))
