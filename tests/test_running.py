"""What a fit says while it runs: warnings at the caller's line, once a fit; memory; progress."""

import subprocess
import sys
import warnings
from collections import Counter
from inspect import signature
from pathlib import Path

import numpy as np
import pytest
from problems import every_estimator, quick, uneven_bags
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import llpbook
from llpbook.base import LLPWarning, LongFitWarning, Progress, _running, require_memory
from llpbook.model_selection import FullBagKFold, proportion_scorer

ROOT = Path(llpbook.__file__).parent
ESTIMATORS = every_estimator()


def problem(n_classes=2):
    return uneven_bags(96, size=8, n_classes=n_classes, apart=1)


def small(name, **params):
    return quick(ESTIMATORS[name], **params)


def scale(name):
    X, _, bags, P = problem()
    return small(name), X * [1, 1, 1e5], bags, P


def stop(name):
    """The shortest search, to a tolerance that it cannot meet."""
    X, _, bags, P = problem(3 if "TwoBag" not in str(ESTIMATORS[name].__mro__) else 2)
    limits = dict.fromkeys(("max_iter", "max_cutting_planes"), 1)
    return small(name, tol=1e-14, **limits), X, bags, P


PROVOCATIONS = [scale, stop]


def spy_on(monkeypatch):
    """Where in the package each warning came from; each step takes two seconds."""
    found, real = [], _running._users_frame
    clock = iter(range(0, 10**9, 2))

    def spy(frame):
        code = frame.f_code
        found.append((str(Path(code.co_filename).relative_to(ROOT)), code.co_name))
        return real(frame)

    monkeypatch.setattr(_running, "_users_frame", spy)
    monkeypatch.setattr(_running, "LONG", -1)
    monkeypatch.setattr(_running.time, "perf_counter", lambda: next(clock))
    return found


def line_of(marker):
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    return next(k for k, line in enumerate(lines, 1) if line.endswith(f"  # {marker}"))


def check(caught, places, marker, most=1):
    """All at one line of this file, from each place once."""
    assert len(caught) == len(places)
    for warning in caught:
        assert warning.filename == __file__, warning
        assert warning.lineno == line_of(marker), warning
    assert max(Counter(places).values(), default=1) <= most, places


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("provoke", PROVOCATIONS)
def test_every_warning_is_at_the_users_line_once_a_fit(provoke, name, monkeypatch):
    model, X, bags, P = provoke(name)
    pipe = make_pipeline(FunctionTransformer(), model)
    shares = {f"{pipe.steps[-1][0]}__proportions": P}
    places = spy_on(monkeypatch)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pipe.fit(X, bags, **shares)  # in a pipeline
    check(caught, places, "in a pipeline")
    options = {"scoring": proportion_scorer(P), "error_score": "raise"}
    search = GridSearchCV(pipe, {}, cv=FullBagKFold(2), **options)
    places.clear()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        search.fit(X, bags, groups=bags, **shares)  # in a grid search
    check(caught, places, "in a grid search", most=3)  # two folds, then all


def test_outside_of_a_fit_nothing_is_held_back():
    def speak():
        _running.warn("a", RuntimeWarning)

    with pytest.warns(RuntimeWarning) as caught:
        speak()
        speak()
    assert [w.filename for w in caught] == [__file__] * 2
    with pytest.warns(RuntimeWarning) as caught, _running.warn_once():
        with _running.warn_once():
            speak()
        speak()
    assert len(caught) == 1


def test_two_warnings_of_one_function_are_both_said_in_a_fit():
    def speak():
        _running.warn("a", RuntimeWarning)
        _running.warn("b", RuntimeWarning)

    with pytest.warns(RuntimeWarning) as caught, _running.warn_once():
        speak()
        speak()
    assert [str(w.message) for w in caught] == ["a", "b"]


def test_a_script_without_a_file_is_the_users_too(capfd):
    code = "from llpbook.base import warn; warn('so it is')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # fmt: skip
    assert done.stderr.startswith("<string>:1: LLPWarning: so it is")


def test_a_worker_has_no_line_of_the_user(monkeypatch):
    monkeypatch.setattr(_running, "_INSIDE", "")
    with pytest.warns(LLPWarning) as caught:
        require_memory("this", 0.5 * _running.machine_memory(), "take less")
    assert caught[0].filename == _running.__file__


def test_what_the_machine_does_not_have_is_refused(monkeypatch):
    monkeypatch.setattr(_running, "machine_memory", lambda: 8 * 2.0**30)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        require_memory("this", 2 * 2.0**30, "take less")
    with pytest.warns(LLPWarning, match=r"this needs about 3.0 GiB of memory, of 8.0"):
        require_memory("this", 3 * 2.0**30, "take less")
    with pytest.warns(
        LLPWarning, match=r"6.0 GiB of memory, of 8.0 GiB .*; take less$"
    ):
        require_memory("this", 6 * 2.0**30, "take less")
    words = r"^this needs about 7.0 GiB .* more than 75% of the 8.0 GiB .*: take less$"
    with pytest.raises(ValueError, match=words):
        require_memory("this", 7 * 2.0**30, "take less")


def test_no_limit_of_time_is_later_than_that_around_it(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(_running.time, "perf_counter", lambda: now[0])
    with _running.time_limit(5), _running.time_limit(9):
        now[0] = 5.0
        _running.check_time()
        for step in (_running.check_time, Progress("Timed", 0, 9).step):
            now[0] = 5.5
            with pytest.raises(_running.TimeIsUp):
                step()
        with pytest.raises(_running.TimeIsUp):
            _running.check_time(6.0)
    _running.check_time()


def test_the_limit_of_a_container_counts(monkeypatch, tmp_path):
    whole, limit = _running.machine_memory(), tmp_path / "memory.max"
    assert 2**28 < whole < float("inf")
    monkeypatch.setattr(_running, "CGROUP_LIMITS", (limit, tmp_path / "none"))
    for text, expected in (("max\n", whole), ("1048576\n", 2**20)):
        limit.write_text(text)
        assert _running.machine_memory() == expected


@pytest.mark.parametrize("kernel", ["rbf", "precomputed"])
@pytest.mark.parametrize("name", [n for n, c in ESTIMATORS.items() if "kernel" in signature(c).parameters])  # fmt: skip
def test_a_kernel_method_refuses_before_it_allocates(name, kernel, monkeypatch):
    X, _, bags, P = problem()
    X = X if kernel == "rbf" else X @ X.T
    own = 0.8 if name == "InvCal" else getattr(ESTIMATORS[name], "_gram_copies", 0.8)
    monkeypatch.setattr(_running, "machine_memory", lambda: 1.3 * own * 8 * 96**2)
    monkeypatch.setattr(np, "exp", None)  # no kernel is computed
    words = rf"{name} (with a kernel )?on 96 instances.* needs about .* fewer instances"
    with pytest.raises(ValueError, match=words):
        small(name, kernel=kernel).fit(X, bags, P)


def test_progress_is_told_once_a_second_and_on_request_only(monkeypatch, capsys):
    clock = iter([0.0, 0.5, 1.0, 1.5, 2.0, 2.6])
    monkeypatch.setattr(_running.time, "perf_counter", lambda: next(clock))
    progress = Progress("Telling", 1, 50, unit="round", usual=10)
    for k in range(5):
        progress.step(f"step {k}")
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 and lines[1].startswith(
        "Telling: 4 of at most 50 rounds in 2 s"
    )
    assert lines[0].endswith("about 4 s to go, if 10 are enough; step 1")


#: The last line of progress: steps at most, and what their attributes say of them.
LAST = {
    "AOCKernelKMeans": ("2 starts", lambda m: f"lowest objective {m.objective_:.6g}"),
    "AlterSVM": (
        "2 starts", lambda m: f"lowest objective {m.starts_['objective'].min():.6g}"
    ),
    "AlternatingMeanMap": ("100 rounds", lambda m: "% of the labels changed"),
    "ConvSVM": ("20 rounds", lambda m: f"relaxed value {m.upper_bound_:.6g}"),
    "InvCal": ("60 rounds", lambda m: f"relative gap {m.gap_:.1e}"),
    "WeightedLDA": (
        "300 iterations", lambda m: f"weights change by {m.gap_:.1e} per instance"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LAST)
def test_the_last_line_of_progress_says_how_the_fit_ended(name, capsys):
    X, _, bags, P = problem()
    model = small(name, verbose=2).fit(X, bags, P)
    *before, last = capsys.readouterr().out.splitlines()
    most, said = LAST[name]
    assert last.startswith(f"{name}: {len(before) + 1} of at most {most} ")
    assert last.endswith(said(model))
    if name in ("AlternatingMeanMap", "ConvSVM", "WeightedLDA"):  # else starts, Newton
        assert len(before) + 1 == model.n_iter_


def test_the_pace_is_that_of_the_later_half_of_the_steps(monkeypatch, capsys):
    clock = iter([0.0, 4.0, 5.0, 6.0, 7.0])
    monkeypatch.setattr(_running.time, "perf_counter", lambda: next(clock))
    progress = Progress("Telling", 2, 10)
    for _ in range(4):
        progress.step()
    assert "4 of at most 10 steps in 7 s, about 6 s to go" in capsys.readouterr().out


def test_a_long_fit_says_so_unasked(monkeypatch, capsys):
    for seconds, warns in ((0.9, False), (1.2, True)):
        clock = iter([seconds * k for k in range(9)])
        monkeypatch.setattr(_running.time, "perf_counter", clock.__next__)
        progress = Progress("Silent", 0, 61)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(7):
                progress.step()
        assert [w.category for w in caught] == [LongFitWarning] * warns
    words = "Silent will take about 66 s more (6 of at most 61 steps took 7 s)"
    assert words in str(caught[0].message)
    assert capsys.readouterr().out == ""
