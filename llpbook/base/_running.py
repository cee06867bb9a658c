"""Messages of a running fit: warnings at the user's own line, the memory that it needs, the time that it will take."""

import os
import sys
import sysconfig
import time
import warnings
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

import sklearn

#: Shares of the machine's memory above which a fit warns of its need, and refuses.
WARN_SHARE, REFUSE_SHARE = 0.25, 0.75
#: Seconds of a fit that are still to come, above which it says so unasked.
LONG = 60.0
#: First steps of a fit, which may take longer than the rest; unasked it speaks after them.
UNLIKE = 5
#: Where a container's limit of memory stands, in bytes or "max".
CGROUP_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)

#: Files that are not the user's: of this package, of all that are installed beside scikit-learn, and Python's own.
_INSIDE = (
    f"{Path(__file__).parents[1]}{os.sep}",
    f"{Path(sklearn.__file__).parents[1]}{os.sep}",
    f"{sysconfig.get_path('stdlib')}{os.sep}",
    "<frozen",
)

_said = ContextVar("said", default=None)
_comparing = ContextVar("comparing", default=False)
_quiet = ContextVar("quiet", default=False)
_deadline = ContextVar("deadline", default=float("inf"))


class LLPWarning(UserWarning):
    """The fit went on with a fallback; the message says which.

    Examples
    --------
    >>> import warnings
    >>> from llpbook import KDEDifference, load_bags
    >>> data = load_bags("heart", bag_size=8, random_state=0)
    >>> with warnings.catch_warnings(record=True) as said:
    ...     warnings.simplefilter("always")
    ...     model = KDEDifference().fit(*data)
    >>> [str(w.message)[:32] for w in said]
    ['KDEDifference measures distances', 'KDEDifference pooled 34 bags int']
    """


class LongFitWarning(UserWarning):
    """A fit will take long; the message says how long, and ``verbose=1`` shows its progress.

    Examples
    --------
    >>> import warnings
    >>> from llpbook.base import LongFitWarning
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", LongFitWarning)  # stop before a long fit
    ...     warnings.warn("2 hours", LongFitWarning)
    Traceback (most recent call last):
        ...
    llpbook.base._running.LongFitWarning: 2 hours
    """


class TimeIsUp(Exception):
    """A fit within `time_limit` would have taken longer."""


@contextmanager
def time_limit(seconds):
    """Within this context fits end with `TimeIsUp` at their first step after so many seconds.

    Parameters
    ----------
    seconds : float
        A limit inside another one cannot be later than that.
    """
    token = _deadline.set(min(_deadline.get(), time.perf_counter() + seconds))
    try:
        yield
    finally:
        _deadline.reset(token)


def check_time(now=None):
    """Raise `TimeIsUp` after the end of a `time_limit`; iterative fits ask at each step, and give the time if known."""
    if (now or time.perf_counter()) > _deadline.get():
        raise TimeIsUp


@contextmanager
def warn_once():
    """Within this context each place in the code warns once; a context inside another one changes nothing."""
    token = None if _said.get() is not None else _said.set(set())
    try:
        yield
    finally:
        if token is not None:
            _said.reset(token)


def _users_frame(frame):
    """Find the innermost frame of the user's own code or, in a worker process, which has none, the frame that warns."""
    outside = frame
    while outside is not None and outside.f_code.co_filename.startswith(_INSIDE):
        outside = outside.f_back
    return outside or frame


def is_comparing():
    """True where fits are `comparing`, to bags that were checked before."""
    return _comparing.get()


@contextmanager
def comparing(are_compared=True):
    """Within this context fits are compared with one another, and warn of nothing that concerns a single one.

    A search, a cross-validation and a bootstrap of this package enter it where they fit, be it in a worker. Under a
    tool of scikit-learn each fit warns, as scikit-learn's own estimators do.
    """
    token = _comparing.set(are_compared or _comparing.get())
    try:
        yield
    finally:
        _comparing.reset(token)


@contextmanager
def quiet():
    """Within this context nothing is warned of, as in further fits to parts of data whose first fit has warned.

    A filter of Python's `warnings` would be one for all threads.
    """
    token = _quiet.set(True)
    try:
        yield
    finally:
        _quiet.reset(token)


def warn(message, category=LLPWarning, *, of_one_fit=False):
    """Warn at the user's own line, however deep the call; in a fit, once from each place in the code.

    Parameters
    ----------
    message : str
    category : type, default LLPWarning
    of_one_fit : bool, default False
        True for a warning that is left out where fits are `comparing`.
    """
    if _quiet.get() or (of_one_fit and _comparing.get()):
        return
    frame, said = sys._getframe(1), _said.get()
    place = frame.f_code, frame.f_lineno
    if said is not None:
        if place in said:
            return
        said.add(place)
    frame = _users_frame(frame)
    names = frame.f_globals
    warnings.warn_explicit(
        message, category, frame.f_code.co_filename, frame.f_lineno,
        names.get("__name__"), names.setdefault("__warningregistry__", {}),
    )  # fmt: skip


def machine_memory():
    """Memory that this process may use: that of the machine, or the limit of its container.

    Returns
    -------
    float
        Bytes; infinite where the system does not say.
    """
    limits = [float("inf")]
    if hasattr(os, "sysconf"):
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for path in CGROUP_LIMITS:
        text = path.read_text().strip() if path.is_file() else ""
        limits += [int(text)] if text.isdigit() else []
    return min(limits)


def require_memory(name, n_bytes, way_out):
    """Warn before a computation that needs much memory, and refuse one that needs more than the machine has.

    Parameters
    ----------
    name : str
        What needs it: an estimator and the size of its problem.
    n_bytes : float
        The peak.
    way_out : str
        What to do instead.

    Raises
    ------
    ValueError
        Above ``REFUSE_SHARE`` of `machine_memory`; above ``WARN_SHARE`` an `LLPWarning` says what is needed.
    """
    has = machine_memory()
    if n_bytes <= WARN_SHARE * has:
        return
    need = f"{name} needs about {n_bytes / 2**30:.1f} GiB of memory"
    if n_bytes > REFUSE_SHARE * has:
        raise ValueError(
            f"{need}, more than {REFUSE_SHARE:.0%} of the {has / 2**30:.1f} GiB that this machine has: {way_out}"
        )
    warn(f"{need}, of {has / 2**30:.1f} GiB that this machine has; {way_out}")


def _duration(seconds):
    for unit, length in (("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


class Progress:
    """Progress of a long fit: a line per second if ``verbose`` asks for it, else one warning if it will take long.

    Parameters
    ----------
    name : str
        Of what is running.
    verbose : int
        How much is printed: 0 nothing, 1 a line a second, 2 a line for each step.
    steps : int
        The most steps that there will be.
    unit : str, default "step"
        What a step is.
    usual : int, optional
        How many steps are usual, where this is far below ``steps``; the estimate is made for as many.
    """

    def __init__(self, name, verbose, steps, *, unit="step", usual=None):
        self.name, self.verbose = name, verbose
        self.steps, self.unit, self.usual = steps, unit, min(usual or steps, steps)
        self.spoke, self.marks = None, [time.perf_counter()]

    def step(self, news=""):
        """Count a step that is done.

        Parameters
        ----------
        news : str, optional
            What a line of progress tells beside the time.

        Raises
        ------
        TimeIsUp
            After the end of a `time_limit`.
        """
        now, done = time.perf_counter(), len(self.marks)
        check_time(now)
        self.marks.append(now)
        spent, first = now - self.marks[0], self.spoke is None
        if spent < 1 and self.verbose < 2:
            return
        # Pace of the later half of the steps, because the first are often slower.
        pace = (now - self.marks[done // 2]) / (done - done // 2)
        left = pace * max(self.usual - done, 0)
        usual = "" if self.usual == self.steps else f", if {self.usual} are enough"
        if self.verbose and (first or self.verbose > 1 or now - self.spoke >= 1):
            self.spoke = now
            news = f"; {news}" if news else ""
            print(
                f"{self.name}: {done} of at most {self.steps} {self.unit}s in {_duration(spent)}, "
                f"about {_duration(left)} to go{usual}{news}",
                flush=True,
            )
        elif first and not self.verbose and (done > UNLIKE or spent > LONG / 4):
            self.spoke = now
            if left > LONG:
                warn(
                    f"{self.name} will take about {_duration(left)} more ({done} of at most {self.steps} "
                    f"{self.unit}s took {_duration(spent)}{usual}); verbose=1 shows its progress",
                    LongFitWarning,
                )
