"""A table with a caption, for readers of a page, of a notebook and of a terminal."""

import re
from html import escape
from textwrap import fill, wrap

import pandas as pd


class Table:
    """A DataFrame with a caption: HTML where a notebook or the site shows it, plain text everywhere else.

    The last line of a cell shows it. A missing value becomes "–", and a negative number has a minus sign.

    Parameters
    ----------
    frame : DataFrame, shape (n_rows, n_columns)
        Its index names the rows.
    caption : str
        What a row is, the units, the order, which direction is good, and what ± means: it stands alone.
    columns : dict
        For each head, in words with the unit, a format and the columns of ``frame`` that share the cell, such as
        ``("{:.1f} ± {:.1f}", "gap", "error")``; a format alone is that of the column named so.
    rows : str, default ""
        Head of the index.

    Raises
    ------
    ValueError
        If ``frame`` has no such column.

    Examples
    --------
    >>> import pandas as pd
    >>> from llpbook.plotting import Table
    >>> gaps = pd.DataFrame({"gap": [-0.52, 9.31], "error": [1.9, 2.3]}, ["ridge", "counts"])
    >>> Table(gaps, "Points below labels.", {"gap, points": ("{:.1f} ± {:.1f}", "gap", "error")}, rows="method")
    Points below labels.
    <BLANKLINE>
                  gap,
    method      points
    ------  ----------
    ridge   −0.5 ± 1.9
    counts   9.3 ± 2.3
    """

    def __init__(
        self, frame: pd.DataFrame, caption: str, columns: dict, rows: str = ""
    ):
        self.caption, self.heads = caption, [rows, *columns]
        names = [
            ", ".join(map(str, key)) if isinstance(key, tuple) else str(key)
            for key in frame.index
        ]
        cells = [_cells(frame, head, form) for head, form in columns.items()]
        self.cells = [names, *cells]

    def _repr_html_(self):
        heads = "".join(
            f'<th scope="col">{escape(head)}</th>' if head else "<td></td>"
            for head in self.heads
        )
        body = ""
        for name, *row in zip(*self.cells, strict=True):
            cells = "".join(f"<td>{escape(cell)}</td>" for cell in row)
            body += f'<tr><th scope="row">{escape(name)}</th>{cells}</tr>'
        return (
            f'<figure class="book-table"><figcaption>{escape(self.caption)}</figcaption>'
            f'<div tabindex="0"><table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div></figure>'
        )

    def __repr__(self):
        longest = [
            max(map(len, [*head.split(), *column]), default=1)
            for head, column in zip(self.heads, self.cells, strict=True)
        ]
        wrapped = [
            wrap(head, max(width, 1)) or [""]
            for head, width in zip(self.heads, longest, strict=True)
        ]
        height = max(map(len, wrapped))
        columns = [
            [""] * (height - len(head)) + head + ["-" * width] + column
            for head, width, column in zip(wrapped, longest, self.cells, strict=True)
        ]
        lines = [fill(self.caption, 80), ""]
        for name, *row in zip(*columns, strict=True):
            cells = map(str.rjust, row, longest[1:])
            lines.append("  ".join([name.ljust(longest[0]), *cells]).rstrip())
        return "\n".join(lines)


def _cells(frame, head, form):
    """Texts of a column of a table."""
    form, *names = (form, head) if isinstance(form, str) else form
    absent = [name for name in names if name not in frame.columns]
    if absent:
        raise ValueError(
            f"columns must name columns of the frame, {list(frame.columns)}, got {absent[0]!r}"
        )
    rows = frame[names].itertuples(index=False, name=None)
    return [_text(form, *args) for args in rows]


def _text(form, *args):
    if pd.isna(args[0]):
        return "–"
    return re.sub(r"-(?=\d)", "−", form.format(*args))
