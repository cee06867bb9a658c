"""Keys that are not found: the nearest ones of the other side, what tells them apart, and the line that mends it."""

import difflib
import re
import unicodedata

import numpy as np
import pandas as pd

#: What pandas does to a name such as that of Namibia, and the cure.
READ_AS_MISSING = (
    "pandas reads names such as 'NA' or 'None' as missing unless told otherwise: "
    "pd.read_csv(…, keep_default_na=False, na_values=[''])"
)
#: Keys that are looked at for one that resembles the missing one.
LOOKED_AT = 20_000


def quote(value):
    """A value as the user wrote it, not as NumPy wraps it."""
    return repr(value.item() if isinstance(value, np.generic) else value)


def is_number(key):
    """True for a key that is a number; True and False are none."""
    return isinstance(key, int | float | np.number) and not isinstance(key, bool)


def as_text(key):
    """A key as text: of a number that is whole, without a decimal point; of a date, without the time."""
    whole = is_number(key) and np.isfinite(key) and key == round(key)
    return str(int(key)) if whole else str(key).removesuffix(" 00:00:00")


def reduced(key):
    """A key without its type, outer spaces, capital letters, accents, leading zeros, and ``.0`` at its end."""
    text = unicodedata.normalize("NFKD", as_text(key))
    text = "".join(c for c in text if not unicodedata.combining(c)).casefold()
    text = re.sub(r"(?<=\d)\.0+$", "", " ".join(text.split()))
    return re.sub(r"^0+(?=\d)", "", text)


def differences(key, other):
    """Describe the difference of two keys that are equal when `reduced`."""
    one, two = as_text(key), as_text(other)
    if kind(key) != kind(other):
        yield "type"
    spaces = [(t != " ".join(t.split())) for t in (one, two)]
    if any(spaces):
        yield "spaces"
    one, two = (re.sub(r"\.0+$", "", " ".join(t.split())) for t in (one, two))
    if re.match("0*", one)[0] != re.match("0*", two)[0]:
        yield "leading zeros"
    one, two = one.lstrip("0"), two.lstrip("0")
    if one.casefold() == two.casefold() and one != two:
        yield "capital letters"
    elif one != two:
        yield "accents"


def mending(key, other):
    """Methods of a Series or Index of text like ``key`` that make it like ``other``, in the syntax of pandas."""
    text, target = as_text(key), " ".join(as_text(other).split())
    target = target.removesuffix(".0")
    if is_number(key):
        whole = isinstance(key, int | np.integer)
        line = ".astype(str)" if whole else ".astype(int).astype(str)"
        line *= not is_number(other)
    elif not isinstance(key, str):
        line = ".astype(str)"  # of True, an interval of pd.cut, a date
    else:
        line = ".str.strip()" * (text != text.strip())
        line += r".str.replace(r'\s+', ' ', regex=True)" * (
            " ".join(text.split()) != text.strip()
        )
        line += ".str.removesuffix('.0')" * text.strip().endswith(".0")
    if target.startswith("0") and len(text.strip()) < len(target):
        line += f".str.zfill({len(target)})"
    apart = set(differences(key, other))
    line += ".str.casefold()" * ("capital letters" in apart)
    return line + ".str.normalize('NFC')" * ("accents" in apart)


def resembling(key, keys):
    """The first of some keys that equals ``key`` when both are `reduced`, or None."""
    wanted = reduced(key)
    return next((k for k in keys if reduced(k) == wanted), None)


def nearest(key, keys, n=3):
    """A few keys that are spelled most like ``key``; the first ones where none is."""
    texts = dict(zip(map(as_text, keys), keys, strict=True))
    close = [texts[t] for t in difflib.get_close_matches(as_text(key), texts, n)]
    return close or list(keys[:n])


def explain_key(key, keys, name="bags", other="proportions"):
    """Explain a missing key: the nearest keys and their type, and how both sides are made alike.

    Parameters
    ----------
    key : hashable
        Of ``name``.
    keys : sequence
        Of ``other``.
    name, other : str
        Arguments, for the message.

    Returns
    -------
    str
    """
    keys = list(keys[:LOOKED_AT])
    if isinstance(key, np.datetime64):
        key = pd.Timestamp(key)
    pairs = [k for k in keys if isinstance(k, tuple)]
    if pairs and not isinstance(key, tuple) and key in {e for k in pairs for e in k}:
        return f"the keys of {other} are tuples such as {pairs[0]!r}: if they are bag and class, pass {other}.unstack()"
    alike = resembling(key, keys)
    if alike is not None:
        index = f"{other}.index"
        lines = [f"{name} = {name}{line}" for line in [mending(key, alike)] if line]
        lines += [f"{index} = {index}{line}" for line in [mending(alike, key)] if line]
        what = " and ".join(differences(key, alike)) or "type"
        return (
            f"{quote(key)} ({kind(key)}) and the key {quote(alike)} ({kind(alike)}) differ in {what}"
            + f"; to make both alike: {' and '.join(lines)}" * bool(lines)
        )
    if keys == list(range(len(keys))):
        return f"the keys of {other} are the row numbers 0 to {len(keys) - 1}: name the bags by set_index"
    some = ", ".join(quote(k) for k in nearest(key, keys))
    return f"the nearest keys of {other} are {some} ({kind(keys[0])})"


def kind(key):
    """The type of a key, in a word."""
    if is_number(key):
        return "a number"
    return "text" if isinstance(key, str) else with_article(key)


def with_article(value):
    """The name of the type of a value, such as "an Interval"."""
    name = type(value).__name__
    return f"a{'n' * (name[0] in 'AEIOaeio')} {name}"


#: Types of an index that read text as one of their values: "01/02/2020" as a date of January.
_READ_TEXT = {
    pd.DatetimeIndex, pd.TimedeltaIndex, pd.PeriodIndex, pd.CategoricalIndex,
}  # fmt: skip


def places_of(keys, names):
    """Place of each name among the keys, -1 for none. Text is no date, though pandas would read it as one."""
    if type(keys) is not type(names) and {type(keys), type(names)} & _READ_TEXT:
        keys, names = keys.astype(object), names.astype(object)
    return keys.get_indexer(names)
