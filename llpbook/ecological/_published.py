"""Two published tables, of groups and of classes: what does not agree, place by place, and both reconciled."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from .._counts import whole_counts
from .._input import (
    SURE,
    as_frame,
    hidden_number,
    named_totals,
    numbers,
    quote,
    refuse_lazy,
    sums_of_rows,
)
from .._printed import Printed
from ._margins import as_wide, shares_as_counts, turned

#: Rows of a print for one kind of problem.
SHOWN = 8
#: What does not agree, in the order of a print; and what a rule does with places whose two sums differ.
TOTALS, MORE, FEWER = (
    "row of totals",
    "classes sum to more than groups",
    "classes sum to less than groups",
)
PROBLEMS = [
    TOTALS,
    "several different rows in groups",
    "several different rows in classes",
    "only in groups",
    "only in classes",
    "nobody in either table",
    "nobody in classes: has it reported?",
    "nobody in groups",
    MORE,
    FEWER,
]
LEFT_OUT = "left out"
OVERLAP = ". If groups counts a person in several columns, correct this first"
ROUNDED_SUMS = "rule='scale', which mends what rounding leaves"
SCALED = "groups scaled to the sum of the classes, all by one factor"
SAME_PLACES = "Are the places the index of both tables, written in the same way (01 or 1, text or numbers)?"
RULES = {
    "drop": {MORE: LEFT_OUT, FEWER: LEFT_OUT},
    "scale": {MORE: SCALED, FEWER: SCALED},
    "rest": {MORE: LEFT_OUT, FEWER: "people without a class are the class 'rest'"},
}


@dataclass(frozen=True, eq=False)
class CheckedMargins(Printed):
    """Two tables that agree, and the problems of the published ones, from `check_margins`; `print` it.

    Attributes
    ----------
    X : DataFrame, shape (n_cells, n_groups)
        For the next call, a row per place and group: 1 in the column of the group.
    bags, group, counts : Series, shape (n_cells,)
        The place, the group, and the people of each row.
    proportions : DataFrame, shape (n_places, n_classes)
        The shares of the classes, keyed by place.
    groups : DataFrame, shape (n_places, n_groups)
        Counts of the places that are kept. A row sums to the same number as that of ``classes``.
    classes : DataFrame, shape (n_places, n_classes)
    problems : DataFrame
        A row per place that did not agree, by problem, largest difference first: ``problem``, ``groups`` and
        ``classes`` (their sums as published), ``difference`` (classes minus groups), and ``action``.
    notes : list of str
        Columns that were left out, and missing numbers that were read as 0.

    Examples
    --------
    >>> import pandas as pd
    >>> from llpbook import check_margins
    >>> groups = pd.DataFrame({"old": [40, 70], "young": [60, 30]}, index=["a", "b"])
    >>> classes = pd.DataFrame({"no": [50, 35], "yes": [50, 65]}, index=["a", "b"])
    >>> margins = check_margins(groups, classes)
    >>> margins.counts.tolist(), margins.proportions["yes"].tolist()
    ([40, 60, 70, 30], [0.5, 0.65])
    """

    X: pd.DataFrame
    bags: pd.Series
    group: pd.Series
    counts: pd.Series
    proportions: pd.DataFrame
    groups: pd.DataFrame
    classes: pd.DataFrame
    problems: pd.DataFrame
    notes: list

    def __str__(self):
        lines = list(self.notes)
        for (problem, action), rows in self.problems.groupby(
            ["problem", "action"], sort=False
        ):
            lines.append(f"{problem}: {len(rows)} ({action})")
            shown = rows[["groups", "classes", "difference"]].head(SHOWN)
            lines += ["  " + line for line in shown.to_string().splitlines()]
            lines += [f"  … and {len(rows) - SHOWN} more"] * (len(rows) > SHOWN)
        lines = lines or ["the two tables agree in all places"]
        people = int(self.counts.sum())
        shape = f"{self.groups.shape[1]} groups, {self.classes.shape[1]} classes"
        return "\n".join(
            [*lines, f"kept: {len(self.classes)} places, {shape}, {people:,} people"]
        )


def check_margins(
    groups: pd.DataFrame, classes: pd.DataFrame, *, rule: str = "drop"
) -> CheckedMargins:
    """Compare the groups with the classes of published tables, place by place, and make them agree.

    Parameters
    ----------
    groups : DataFrame, shape (n_places, n_groups)
        People of each group, with the places as index.
    classes : DataFrame, shape (n_places, n_classes)
        People of each class, such as votes for each party, with the same index in any order.
    rule : {"drop", "scale", "rest"}, default "drop"
        What is done with a place whose groups and classes sum to different numbers. "drop" leaves it out. "scale"
        scales its groups to the sum of its classes, which is right if the same part of each group has no class, as
        where each group voted as often. "rest" makes the people without a class a class of their own, and leaves out
        places whose classes sum to more than their groups.

    Returns
    -------
    CheckedMargins
        ``groups`` and ``classes`` with equal sums, for `ecological_rates`; and the arguments of a fit to cells.

    Raises
    ------
    ValueError
        If a table is no table of counts, the two share no place, or no place is left.

    Notes
    -----
    Left out under each rule: rows of totals (which equal the sum of all other rows or of the rows beside them, or are
    named so); places that stand in one table only, or several times with different numbers; and places with nobody in
    the groups or in the classes, which may not have reported. A column that is the sum of the other columns is no
    group and no class. A missing number in a row that has others is read as 0, as after ``unstack``.

    Examples
    --------
    >>> import pandas as pd
    >>> groups = pd.DataFrame({"old": [40, 70, 110], "young": [60, 50, 110]}, index=["a", "b", "Total"])
    >>> classes = pd.DataFrame({"no": [50, 35, 85], "yes": [50, 65, 115]}, index=["a", "b", "Total"])
    >>> print(check_margins(groups, classes, rule="scale"))
    row of totals: 1 (left out)
             groups  classes  difference
      Total     220      200         -20
    classes sum to less than groups: 1 (groups scaled to the sum of the classes, all by one factor)
         groups  classes  difference
      b     120      100         -20
    kept: 2 places, 2 groups, 2 classes, 200 people
    """
    if rule not in RULES:
        raise ValueError(f"rule must be one of {list(RULES)}, got {rule!r}")
    problems: list[pd.DataFrame] = []
    notes: list[str] = []
    tables = {"groups": groups, "classes": classes}
    for name, table in tables.items():
        table = without_totals(read_counts_of_places(table, name), name, notes)
        tables[name] = table[~repeated(table, problems, name)]
    G, V = shared_places(tables["groups"], tables["classes"], problems)
    G, V = (
        filled(table, name, notes) for table, name in ((G, "groups"), (V, "classes"))
    )
    judged = problems_of_places(G, V)
    action = judged.map(RULES[rule]).fillna(LEFT_OUT)
    off = judged != ""
    problems.append(table_of_problems(G[off], V[off], judged[off], action[off]))
    kept = ~off | (action != LEFT_OUT)
    too_many = classes_too_many(G, V, judged)
    if not kept.any():
        others = " and ".join(f"rule={other!r}" for other in RULES if other != rule)
        raise ValueError(
            f"groups and classes agree in no place under rule={rule!r} ({judged.value_counts().to_dict()}): "
            f"{too_many or f'see the other rules, {others}{OVERLAP}'}"
        )
    notes += [too_many] * bool(too_many)
    G, V = (
        without_nobody(t, n, notes)
        for t, n in ((G[kept], "groups"), (V[kept], "classes"))
    )
    members, labeled = G.sum(axis=1), V.sum(axis=1)
    if rule == "rest" and (members > labeled).any():
        if "rest" in V.columns:
            raise ValueError("classes has a class 'rest' already: rename it")
        V = V.assign(rest=members - labeled)
    elif rule == "scale":
        scaled = whole_counts(G.to_numpy(float), labeled.to_numpy())
        G = pd.DataFrame(scaled, G.index, G.columns)
    return margins_of(G, V, pd.concat(problems), notes)


def read_counts_of_places(table, name):
    """Read a table of counts, keyed by place, as floats; NaN where a number is missing.

    Parameters
    ----------
    table : DataFrame
    name : str
        Of the argument, for messages.

    Returns
    -------
    DataFrame
    """
    refuse_lazy(name, table)
    frame = as_frame(table)
    pandas = name if frame is table else f"{name}.to_pandas()"
    table = frame
    if (
        not isinstance(table, pd.DataFrame)
        or table.empty
        or not table.columns.is_unique
    ):
        raise ValueError(
            f"{name} must be a DataFrame with a row per place and one named column per "
            f"{'group' if name == 'groups' else 'class'}, got {type(table).__name__}, shape {np.shape(table)}"
        )
    refuse_text(table, name, pandas)
    values = numbers(name, table.astype(float))
    wrong = (values < 0) | (values != np.round(values)) & ~np.isnan(values)
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        hint = ""
        if values[row, column] < 0:
            hint = f"; if it marks what is not known, leave out the place: {name}[~({name} < 0).any(axis=1)]"
        elif cure := shares_as_counts(name, values):
            hint = f"; {cure}.round(), and {ROUNDED_SUMS}"
        elif np.nanmax(values) <= 1:
            hint = f"; for shares, pass {name}.mul(sizes, axis=0).round() with the people of each place"
        else:
            hint = f"; if they were computed, pass {name}.round(), and {ROUNDED_SUMS}"
        raise ValueError(
            f"{name} must hold counts: whole numbers, 0 or more, got {values[row, column]:g} for place "
            f"{quote(table.index[row])}, column {quote(table.columns[column])}{hint}"
        )
    return pd.DataFrame(values, table.index, table.columns)


def refuse_text(table, name, pandas):
    """Refuse text in the place of counts: names of the places, thousands, or marks of numbers not published."""
    for column in table.columns:
        texts = [v for v in table[column] if isinstance(v, str)]
        if texts:
            numeric = pd.to_numeric(table[column], errors="coerce").notna()
            hidden = hidden_number(texts, pandas) if numeric.any() else ""
            if hidden:
                raise ValueError(
                    f"{name} holds text in column {quote(column)}: {hidden}. Then take rule='scale'"
                )
            cure = as_wide(table, pandas) or (
                f"If the column names the places, pass {pandas}.set_index({quote(column)}); numbers like 1,234 are "
                "read by pd.read_csv(…, thousands=',')"
            )
            raise ValueError(
                f"{name} holds the text {texts[0]!r} in column {quote(column)}. {cure}"
            )


def without_totals(table, name, notes):
    """Remove a column that is the sum of the others, or named so."""
    others = table.sum(axis=1).to_numpy()[:, None] - table.fillna(0)
    summed = (table.isna() | (table == others)).all()
    named = named_totals(table.columns)
    by_chance = np.log1p(table).sum() < np.log(SURE)
    summed &= (table.shape[1] > 2) & ~by_chance
    for column in table.columns[summed | named]:
        others = table.drop(columns=column)
        if others.shape[1] < 2:
            raise ValueError(
                f"{name} must have two columns or more beside {quote(column)}, which is a total: pass "
                f"{name}.assign(others={name}[{quote(column)}] - {name}[{quote(others.columns[0])}])"
                f".drop(columns={quote(column)})"
            )
        left = int(table[column].sum() - others.sum().sum())
        more = f", but exceeds them by {left:,} in all: are some missing?" * (left > 0)
        notes.append(
            f"column {quote(column)} of {name} is left out as the sum of the others{more}"
        )
        table = others
    return table


def repeated(table, problems, name):
    """Mark the rows of places that stand there several times; of equal rows the first is kept."""
    again = table.index.duplicated(keep=False)
    equal = table.reset_index().duplicated().to_numpy()
    several = table.index.isin(table.index[table.index.duplicated() & ~equal])
    if several.all():
        raise ValueError(
            f"{name} must have a row per place, and has several different ones for each, such as "
            f"{quote(table.index[0])}: if they are parts, such as ways of voting, pass {name}.groupby(level=0).sum(), "
            "without rows that are totals of others"
        )
    sums = table[several].sum(axis=1)
    problems.append(
        rows_of_problems(
            sums.groupby(level=0).sum(), name, f"several different rows in {name}"
        )
    )
    return several | (again & equal)


def shared_places(groups, classes, problems):
    """Restrict both tables to the places that are in both, in the order of the groups."""
    alike = groups.index.nlevels == classes.index.nlevels
    both = groups.index[groups.index.isin(classes.index) if alike else []]
    if not len(both):
        first, second = (quote(t.index[0]) for t in (groups, classes))
        cure = turned(groups, classes) or further_level(groups, classes)
        raise ValueError(
            f"groups and classes share no place: groups has {first}, classes {second}, and so on"
            + (f"; {cure}" if cure else f". {SAME_PLACES}")
        )
    said = both.append([table.index for table in problems])
    for name, table in (("groups", groups), ("classes", classes)):
        sums = table[~table.index.isin(said)].sum(axis=1)
        problems.append(rows_of_problems(sums, name, f"only in {name}"))
    return groups.loc[both], classes.loc[both]


def further_level(groups, classes):
    """Say how to sum over a level of the index that one of two tables has alone; "" if none."""
    tables = {"groups": groups.index, "classes": classes.index}
    (_, less), (name, more) = sorted(tables.items(), key=lambda kv: kv[1].nlevels)
    if less.nlevels == more.nlevels:
        return ""
    table = groups if name == "groups" else classes
    if table.shape[1] == 1:
        return (
            f"a row must be a place: pass {name}[{quote(table.columns[0])}].unstack()"
        )
    levels = [n for n in range(more.nlevels) if more.names[n] in less.names]
    levels = levels or list(range(less.nlevels))
    which = levels[0] if len(levels) == 1 else levels
    return (
        f"the index of {name} has a level more: where its rows are parts of a place, such as ways of voting, and none "
        f"is a total, pass {name}.groupby(level={which}).sum()"
    )


def filled(table, name, notes):
    """Replace missing numbers by 0, with a note where the row has others."""
    lost = table.isna()
    some = lost[~lost.all(axis=1)].sum()
    for column, n in some[some > 0].items():
        notes.append(
            f"column {quote(column)} of {name} misses {n} numbers, which are read as 0"
        )
    return table.fillna(0).astype(np.int64)


def without_nobody(table, name, notes):
    """Remove columns of zeros."""
    nobody = (table == 0).all()
    notes += [
        f"column {quote(c)} of {name} has nobody and is left out"
        for c in table.columns[nobody]
    ]
    return table.loc[:, ~nobody]


def problems_of_places(G, V):
    """Name the first problem of each place, "" for none."""
    members, labeled = G.sum(axis=1), V.sum(axis=1)
    totals = np.zeros(len(G), bool)
    totals[list(sums_of_rows(np.column_stack([G, V.iloc[:, :-1]])))] = True
    kinds = {
        TOTALS: totals | named_totals(G.index),
        "nobody in either table": (members == 0) & (labeled == 0),
        "nobody in classes: has it reported?": labeled == 0,
        "nobody in groups": members == 0,
        MORE: labeled > members,
        FEWER: labeled < members,
    }
    return pd.Series(np.select(list(kinds.values()), list(kinds), ""), G.index)


def classes_too_many(G, V, judged):
    """Ask for the reason where the classes of most places sum to more than the groups; "" elsewhere."""
    more = judged == MORE
    if more.sum() <= len(more) / 2:
        return ""
    ratio = np.median(V[more].sum(axis=1) / G[more].sum(axis=1))
    return (
        f"in {more.sum()} of {len(more)} places the classes sum to more than the groups, typically to {ratio:.2f} "
        "times as much. Does classes count a person in several rows, such as offices, ways of voting or a total, or is "
        "a group missing? Correct this first: rule='scale' would hide it"
    )


def table_of_problems(G, V, problem, action):
    """Rows for `CheckedMargins.problems`."""
    sums = {"groups": G.sum(axis=1), "classes": V.sum(axis=1)}
    table = pd.DataFrame({"problem": problem, **sums})
    table["difference"] = table["classes"] - table["groups"]
    return table.assign(action=action).astype({c: "Int64" for c in table.columns[1:4]})


def rows_of_problems(sums, name, problem):
    """Rows for places of which one table says nothing that can be used."""
    empty = {"groups": pd.NA, "classes": pd.NA}
    table = pd.DataFrame(empty, sums.index, dtype="Int64")
    table[name] = sums.astype("Int64")
    table = table.assign(difference=pd.array([pd.NA] * len(table), dtype="Int64"))
    table.insert(0, "problem", problem)
    return table.assign(action=LEFT_OUT)


def margins_of(G, V, problems, notes):
    """The `CheckedMargins` of two tables that agree, with the cells of the groups."""
    size = problems["difference"].fillna(problems[["groups", "classes"]].max(axis=1))
    kind = pd.Categorical(problems["problem"], PROBLEMS).codes
    order = np.lexsort([-size.abs().to_numpy(float), kind])
    group = np.tile(G.columns, len(G))
    return CheckedMargins(
        X=pd.DataFrame({g: (group == g).astype(float) for g in G.columns}),
        bags=pd.Series(G.index.to_flat_index().repeat(G.shape[1]), name="place"),
        group=pd.Series(group, name="group"),
        counts=pd.Series(G.to_numpy().ravel(), name="people"),
        proportions=V.div(V.sum(axis=1), axis=0),
        groups=G,
        classes=V,
        problems=problems.iloc[order],
        notes=notes,
    )
