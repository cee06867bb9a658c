"""Fits from chunks: the sums by loops, the answer of the fit in memory, engines, and what is said of bad chunks."""

import itertools
import os
import re
import signal
import sys
import warnings
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace as Lazy

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from llpbook import (
    EMLR,
    BagLogistic,
    BagMeanRegression,
    CountLogistic,
    InvCal,
    LaplacianMeanMap,
    LLPWarning,
    MeanMap,
    NotIdentifiableError,
    WeightedLDA,
    beyond_memory,
    fit_chunks,
    sample_bags,
)
from llpbook._linear import LinearObjective, _objective, bag_counts
from llpbook.bag_losses import (
    BagLoss,
    EasyLoss,
    EntropyTerm,
    ForwardLoss,
    ProportionLoss,
)
from llpbook.beyond_memory import ChunkError, EngineError, _chunks, _instances
from llpbook.count_likelihood import CountLoss
from llpbook.discriminant import weighted_means, within_covariance
from llpbook.uncertainty import chunk_coefficient_table, chunk_group_rate


def problem(n=2000, d=3, size=10, K=2, seed=0, spread=0.3):
    """A frame with the columns x0, …, "bag" and "y", sorted by bag, and the shares; every second bag is larger by 6."""
    rng = np.random.default_rng(seed)
    level = spread * rng.normal(size=(n // size, d))
    bags = (np.arange(n) - 3 * (np.arange(n) // size % 2)) // size
    X = (rng.normal(size=(n, d)) + level[bags]) * np.arange(1, d + 1) + 5
    scores = ((X - 5) / np.arange(1, d + 1)) @ rng.normal(size=(d, K))
    y = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(d)])
    frame["bag"], frame["y"] = bags, y
    counts = np.stack([np.bincount(bags, y == k) for k in range(K)], axis=1)
    return frame, counts / counts.sum(axis=1, keepdims=True)


def cut(frame, *where):
    """Parts of a frame, cut before some rows."""
    return [frame[a:b] for a, b in itertools.pairwise([0, *where, len(frame)])]


def features(frame):
    return [name for name in frame if name[0] == "x"]


def in_memory(model, frame, shares):
    """The fit that has all."""
    step = getattr(model, "steps", [("", model)])[-1][0]
    name = f"{step}__proportions" if step else "proportions"
    return model.fit(frame[features(frame)], frame["bag"], **{name: shares})


def from_chunks(model, chunks, shares, **options):
    """The fit from chunks, with features by name."""
    options = {"bags": "bag", **options}
    if "features" not in options:
        options["features"] = features(chunks[0])
    return fit_chunks(model, chunks, shares, **options)


def weights(model):
    model = model[-1] if hasattr(model, "steps") else model
    if model.estimators_:
        return np.vstack([weights(part) for part in model.estimators_])
    return np.column_stack([model.coef_, model.intercept_])


FRAME, SHARES = problem(400)
KEYED = pd.Series(SHARES[:, 1], [f"b{k}" for k in range(40)])


@pytest.fixture(autouse=True)
def none_kept(monkeypatch):
    """Small data are kept after the first pass; here each pass reads, as it does of large data."""
    monkeypatch.setattr(_instances, "KEPT", 0)


# --- sums ------------------------------------------------------------------------------------------------------


@pytest.mark.equation("eq-beyond-memory-sums", "eq-beyond-memory-class-sums")
def test_sums_by_loops():
    frame, shares = problem(200)
    X, bags = frame[features(frame)].to_numpy(), frame["bag"].to_numpy()
    for order in (np.arange(200), np.random.default_rng(0).permutation(200)):
        sizes, sums = beyond_memory.bag_sums(X[order], bags[order], 22)
        by_loop, by_class = np.zeros((22, 3)), np.zeros((2, 3))
        for x, bag in zip(X, bags, strict=True):
            by_loop[bag] += x
            by_class += np.outer(shares[bag], x)
        assert_allclose(sums, by_loop, rtol=1e-12)
        assert_array_equal(sizes, np.bincount(bags, minlength=22))
        found = beyond_memory.class_sums(sums[:20], shares)
        assert_allclose(found, by_class, rtol=1e-12)


@pytest.mark.equation("eq-beyond-memory-moments")
@pytest.mark.parametrize("products", [False, True])
def test_moments_merge_to_those_of_all_also_far_from_zero(products):
    X = np.random.default_rng(0).normal(size=(300, 2)) + 1e6
    parts = [beyond_memory.moments(part, products) for part in np.split(X, [1, 120])]
    found = beyond_memory.merge(beyond_memory.merge(*parts[:2]), parts[2])
    assert found.n == 300
    assert_allclose(found.mean, X.mean(axis=0), rtol=1e-12)
    assert_allclose(found.scale, X.std(axis=0), rtol=1e-9)
    if products:
        assert_allclose(found.squares / 300, np.cov(X.T, bias=True), atol=1e-9)


@pytest.mark.equation("eq-beyond-memory-within")
def test_covariance_within_classes_from_sums():
    frame, shares = problem(K=3)
    X, bags = frame[features(frame)].to_numpy(), frame["bag"].to_numpy()
    sums = beyond_memory.class_sums(X, shares[bags])
    total = beyond_memory.moments(X, products=True)
    found = beyond_memory.within_of_sums(sums, shares[bags].sum(axis=0), total)
    means = weighted_means(X, shares[bags])
    assert_allclose(found[0], means)
    assert_allclose(found[1], within_covariance(X, shares[bags], means))
    mass = np.append(shares[bags].sum(axis=0), 0)
    nobody = np.vstack([sums, 0 * sums[:1]])
    assert_allclose(beyond_memory.within_of_sums(nobody, mass, total)[0][3], total.mean)


@pytest.mark.equation("eq-beyond-memory-terms")
@pytest.mark.parametrize("K", [2, 3])
def test_terms_of_chunks_of_whole_bags_add_up(K):
    frame, shares = problem(300, K=K)
    X, bags = frame[features(frame)].to_numpy() - 5, frame["bag"].to_numpy()
    w = np.random.default_rng(1).normal(size=(1 if K == 2 else K, 3)) / 3
    known = bag_counts(bags, shares)
    point = LinearObjective(CountLoss(), X, known).at(w)
    value, gradient, information = 0.0, 0.0, 0.0
    for start, end in ((0, 7), (7, 30)):
        rows = (bags >= start) & (bags < end)
        part = beyond_memory.bags_alone(known, slice(start, end))
        found = beyond_memory.terms(
            X[rows], bags[rows] - start, part, CountLoss(), w, few=False
        )
        value, gradient = value + found.value, gradient + found.gradient
        information = information + found.curvature
    assert_allclose(value, point.value)
    assert_allclose(gradient, point.gradient)
    assert_allclose(information, point.information())


# --- the answer of the fit in memory ---------------------------------------------------------------------------


class OwnPreset(CountLogistic):
    """A subclass that nobody names."""


ESTIMATORS = [
    MeanMap(alpha=2.0),
    MeanMap(bag_weights="uniform", fit_intercept=False),
    LaplacianMeanMap(n_neighbors=5, bag_weights="uniform"),
    InvCal(C_p=0.5),
    BagMeanRegression(),
    WeightedLDA("sws", shrinkage=0.1),
    CountLogistic(C=0.1, tol=1e-7),
    OwnPreset(C=1.0, tol=1e-8, penalize_intercept=True),
    BagLogistic(loss="squares", tol=1e-7),
    BagLogistic(loss="easy", tol=1e-7),
]


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("scaled", [True, False])
@pytest.mark.parametrize("model", ESTIMATORS, ids=str)
def test_same_answer_as_in_memory(model, scaled, K):
    frame, shares = problem(600, K=K, d=2)
    make = partial(make_pipeline, StandardScaler()) if scaled else lambda m: m
    wanted = in_memory(make(clone(model)), frame, shares)
    found = from_chunks(make(clone(model)), cut(frame, 100, 113, 400), shares)
    assert_allclose(weights(found), weights(wanted), rtol=0, atol=1e-4)
    X = frame[features(frame)]
    assert np.mean(found.predict(X) == wanted.predict(X)) > 0.99
    last, whole = (found[-1], wanted[-1]) if scaled else (found, wanted)
    fitted = [{k for k in vars(m) if k[-1] == "_"} for m in (whole, last)]
    assert fitted[0] - {"weights_"} == fitted[1]
    assert_array_equal(found.feature_names_in_, wanted.feature_names_in_)
    if scaled:
        assert vars(found[0]).keys() == vars(wanted[0]).keys()
        for name in ("mean_", "var_", "scale_", "n_samples_seen_", "n_features_in_"):
            assert_allclose(getattr(found[0], name), getattr(wanted[0], name))


@dataclass(frozen=True)
class OwnComparison(BagLoss):
    """A loss of a user that compares bags, and knows nothing of chunks."""

    fewest_bags = 2

    def of_counts(self, scores, observed):
        return ForwardLoss().of_counts(scores, observed)


COMPARING = {
    "forward": ForwardLoss(),
    "worth": EasyLoss(factor="worth"),
    "sum": ProportionLoss() + 0.5 * ForwardLoss(),
    "sum of two": EasyLoss(factor="worth") + 0.3 * ForwardLoss() + EntropyTerm(),
}


@pytest.mark.parametrize("name", COMPARING)
@pytest.mark.parametrize("n", [160, 170])  # an even and an odd number of bags
def test_bags_that_a_loss_compares_may_lie_in_different_chunks(name, n):
    frame, shares = problem(n, d=2)
    model = BagLogistic(COMPARING[name], C=1.0, tol=1e-6)
    wanted = weights(in_memory(model, frame, shares)).copy()
    alike = np.argsort(np.argsort(shares[:, 1], kind="stable"))[frame["bag"]] // 5
    for part in (frame["bag"] % 3, alike, frame["bag"]):  # the last: a bag per chunk
        chunks = [chunk for _, chunk in frame.groupby(part)]
        assert_allclose(weights(from_chunks(model, chunks, shares)), wanted, atol=1e-3)


def test_three_classes_compare_bags_one_against_the_rest_in_chunks():
    frame, shares = problem(600, d=2, K=3)
    model = BagLogistic("forward", tol=1e-8)
    wanted = in_memory(model, frame, shares).decision_function(frame[["x0", "x1"]])
    model = from_chunks(model, cut(frame, 100, 113, 400), shares)
    assert_allclose(model.decision_function(frame[["x0", "x1"]]), wanted, atol=1e-4)


def test_a_loss_that_cannot_compare_bags_of_other_chunks_is_refused():
    frame, shares = problem(600, d=2)
    for loss in (OwnComparison(), ProportionLoss() + OwnComparison()):
        with pytest.raises(ValueError, match="compares bags, of which a chunk holds"):
            from_chunks(BagLogistic(loss), cut(frame, 100), shares)


@pytest.mark.parametrize("model", ESTIMATORS[:-1], ids=str)
def test_small_data_are_read_once_and_large_data_of_few_cells_too(model, monkeypatch):
    monkeypatch.setattr(_instances, "KEPT", 2**28)
    frame, shares = problem(4000, d=2, size=400)
    reads, parts = [], cut(frame, 800, 1600)
    chunks = [lambda part=part: reads.append(1) or part for part in parts]
    model = make_pipeline(StandardScaler(), clone(model))
    given = {"features": features(frame)}
    found = weights(from_chunks(model, chunks, shares, **given))
    assert_allclose(found, weights(in_memory(model, frame, shares)), atol=1e-8)
    assert len(reads) == 3
    frame[features(frame)] = frame[features(frame)].round(-1)
    monkeypatch.setattr(_instances, "KEPT", 3000)
    reads.clear()
    parts[:] = [frame[:1600], frame[1600:]]
    chunks = [lambda part=part: reads.append(1) or part for part in parts]
    found = weights(from_chunks(model, chunks, shares, **given))
    assert_allclose(found, weights(in_memory(model, frame, shares)), atol=1e-6)
    assert len(reads) == 2 or not model[-1]._uses_frequencies
    monkeypatch.setattr(_instances, "KEPT", 0)
    reads.clear()
    from_chunks(model, chunks, shares, **given)
    one_pass = isinstance(model[-1], InvCal | BagMeanRegression | WeightedLDA)
    assert (len(reads) == 2) == one_pass


@pytest.mark.parametrize("model", ESTIMATORS[:6], ids=str)
def test_bags_may_span_chunks_and_rows_come_in_any_order(model):
    frame, shares = problem(600)
    mixed = frame.sample(frac=1, random_state=0)
    wanted = weights(in_memory(model, frame, shares)).copy()
    chunks = cut(mixed, 3, 200, 599)
    for order in (chunks, chunks[::-1], [mixed], cut(mixed, *range(100, 600, 100))):
        assert_allclose(weights(from_chunks(model, order, shares)), wanted, atol=1e-6)


def test_fewer_bags_than_weights():
    frame, shares = problem(60, d=12)
    model = CountLogistic(C=1.0, tol=1e-7)
    wanted = weights(in_memory(model, frame, shares)).copy()
    found = from_chunks(model, cut(frame, 40), shares)
    assert_allclose(weights(found), wanted, atol=1e-5)


@pytest.mark.parametrize("model", [MeanMap(tol=1e-9), CountLogistic(tol=1e-8)])
def test_more_weights_than_a_matrix_is_made_of(model, monkeypatch):
    frame, shares = problem(400, d=3)
    wanted = weights(in_memory(model, frame, shares)).copy()
    monkeypatch.setattr(_objective, "MOST_WORK", 0)
    monkeypatch.setattr(_objective, "fisher_scoring", None)
    for room in (_instances, _objective):
        monkeypatch.setattr(room, "MOST_WEIGHTS", 2)
    found = from_chunks(model, cut(frame, 100), shares)
    assert_allclose(weights(found), wanted, atol=1e-5)
    assert_allclose(weights(in_memory(model, frame, shares)), wanted, atol=1e-5)


@pytest.mark.parametrize("given", [{}, {"with_mean": False}, {"with_std": False}])
def test_scalers_that_do_less_and_features_that_hardly_vary(given):
    frame, shares = problem(600)
    frame["x3"], frame["x4"] = 7.25, 1e8 / 3
    frame["x5"] = 1e-9 * (frame["x0"] - frame["x0"].mean())
    made = [make_pipeline(StandardScaler(**given), InvCal()) for _ in range(2)]
    with warnings.catch_warnings(action="ignore"):
        found = from_chunks(made[0], cut(frame, 500), shares)
        wanted = in_memory(made[1], frame, shares)
    if given != {"with_std": False}:
        assert_allclose(found[0].scale_, wanted[0].scale_, rtol=1e-6)
    assert_allclose(weights(found)[:, :3], weights(wanted)[:, :3], atol=1e-6)
    plain = [make_pipeline(StandardScaler(**given), InvCal()) for _ in range(2)]
    found = weights(from_chunks(plain[0], cut(FRAME, 300), SHARES))
    assert_allclose(found, weights(in_memory(plain[1], FRAME, SHARES)), atol=1e-6)
    numbered = FRAME.set_axis([0, 1, 2, "bag", "y"], axis=1)
    again = from_chunks(plain[0], [numbered], SHARES, features=[0, 1, 2])
    assert_allclose(weights(again), found)
    assert not {"feature_names_in_"} & {*vars(again[0]), *vars(again[1])}
    lda = from_chunks(WeightedLDA("sws"), cut(frame[["x0", "x3", "bag"]], 500), shares)
    wanted = in_memory(WeightedLDA("sws"), frame[["x0", "x3", "bag"]], shares)
    assert_allclose(weights(lda), weights(wanted), atol=1e-8)


def test_errors_weights_and_noise_of_bags_count_as_in_memory():
    frame, shares = problem(600)
    keyed = pd.DataFrame(shares, index=[f"b{k}" for k in range(60)])
    keyed.loc["nobody"] = 0.5
    keyed = keyed.sample(frac=1, random_state=0)  # nobody's row is the third
    frame["bag"] = "b" + frame["bag"].astype(str)
    errors = pd.Series(np.linspace(0.05, 0.2, 61), keyed.index)
    own = pd.Series(np.linspace(0, 2, 61), keyed.index)
    drawn = keyed[1] + np.random.default_rng(7).laplace(scale=errors / np.sqrt(2))
    assert drawn.min() < 0
    noise = {"proportion_noise": "laplace", "proportion_errors": errors}
    for model, given in (
        (MeanMap(proportion_errors=errors), keyed),
        (MeanMap(bag_weights=own), keyed),
        (CountLogistic(tol=1e-7, proportion_errors=errors), keyed),
        (CountLogistic(tol=1e-7, **noise), drawn),
        (InvCal(bag_weights=own), keyed),
    ):
        wanted = weights(in_memory(model, frame, given)).copy()
        found = weights(from_chunks(model, cut(frame, 300), given))
        assert_allclose(found, wanted, rtol=1e-5)
        assert model.bag_labels_ is not None


def test_a_fitted_transformer_and_columns_of_each_type():
    frame, shares = problem(600)
    frame = frame.astype({"x0": "f4", "x1": "Float32"})
    frame["xkind"] = np.where(frame["x0"] > 5, "a", "b")
    columns = make_column_transformer(
        (OneHotEncoder(drop="first"), ["xkind"]), remainder="passthrough"
    )
    columns.fit(frame[features(frame)])
    for step in (FunctionTransformer(np.asarray), FunctionTransformer(sp.csr_array)):
        plain = weights(from_chunks(make_pipeline(step, InvCal()), [FRAME], SHARES))
        assert_allclose(plain, weights(in_memory(InvCal(), FRAME, SHARES)))
    for step in (columns, "passthrough"):
        some = frame if step is columns else frame.drop(columns="xkind")
        model = make_pipeline(step, StandardScaler(), MeanMap())
        found = weights(from_chunks(model, cut(some, 500), shares)).copy()
        assert_allclose(found, weights(in_memory(model, some, shares)), atol=1e-9)
    with pytest.raises(ValueError, match="OneHotEncoder must be fitted before fit_ch"):
        from_chunks(make_pipeline(OneHotEncoder(), MeanMap()), [frame], shares)


# --- chunks and engines ----------------------------------------------------------------------------------------


def test_paths_and_functions(tmp_path):
    wanted = weights(from_chunks(MeanMap(), [FRAME], SHARES)).copy()
    chunks, given = cut(FRAME, 300), {"bags": "bag", "features": features(FRAME)}
    paths = [tmp_path / f"part-{i}.csv.gz" for i in range(2)]
    for chunk, path in zip(chunks, paths, strict=True):
        chunk.to_csv(path, index=False)
    functions = [partial(pd.read_csv, path) for path in paths]
    for some in (paths, list(map(str, paths)), functions):
        found = fit_chunks(MeanMap(), some, SHARES, **given)
        assert_allclose(weights(found), wanted, atol=1e-8)
    parts = [c.drop(columns="y") for c in chunks]
    everything = fit_chunks(MeanMap(), parts, SHARES, bags="bag")
    assert_array_equal(everything.feature_names_in_, features(FRAME))


def lazy(frame):
    """What is known of a task of Dask."""
    return Lazy(__dask_graph__=1, compute=lambda: frame, key="part-key")


def fragment(frame, path="a.parquet"):
    """What is known of a data set of pyarrow and its fragments."""

    def to_table(columns):
        return Lazy(to_pandas=lambda: frame if columns is None else frame[columns])

    def split_by_row_group():
        return [fragment(part, path) for part in cut(frame, 60)]

    found = Lazy(to_table=to_table, split_by_row_group=split_by_row_group, path=path)
    found.get_fragments = lambda: [found]
    return found


def test_tasks_and_fragments_without_their_libraries(monkeypatch, tmp_path):
    (tmp_path / "part.parquet").touch()
    wanted = weights(from_chunks(MeanMap(), [FRAME], SHARES)).copy()
    given = {"features": features(FRAME)}
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "pyarrow.dataset", None)
        said("read: ImportError: it needs pyarrow: pip", ["a.parquet"], **given)
    said("chunk 0 .*: a path must end in .parquet or .csv", ["a.feather"], **given)
    monkeypatch.setattr(_chunks, "data_set", partial(fragment, FRAME))
    groups = beyond_memory.row_groups("b.parquet")
    tasks = [lazy(part) for part in cut(FRAME, 60)]
    frames = Lazy(to_delayed=lambda: tasks)
    for chunks in ("c.parquet", tmp_path, groups, tasks, frames, FRAME):
        found = fit_chunks(MeanMap(), chunks, SHARES, bags="bag", **given)
        assert_allclose(weights(found), wanted, atol=1e-8)
    for chunk, name in (
        (lazy(FRAME.drop(columns="x2")), "part-key"),
        (fragment(FRAME.drop(columns="x2")), "a.parquet"),
        (partial(pd.DataFrame, "ab"), "ab"),
    ):
        said(rf"chunk 1 \({name}\) (has no|cannot)", [FRAME, chunk], **given)


def test_a_folder_that_holds_no_rows_or_other_folders_is_said(tmp_path):
    given, empty = {"features": features(FRAME)}, tmp_path / "a.parquet"
    (empty / "_temporary").mkdir(parents=True)
    for mark in (empty / "_SUCCESS", empty / ".crc", empty / "_temporary" / "_0"):
        mark.touch()
        for chunks in ([FRAME, empty], [FRAME, str(empty)]):
            said("chunk 1 .*a.parquet.* is a folder without files", chunks, **given)
        said("chunk 0 .*a.parquet.* is a folder without files", tmp_path, **given)
    (tmp_path / ".hidden").mkdir()
    (tmp_path / "year=2020").mkdir()
    wanted = "the folder 'year=2020' in it, which would be left out"
    said(wanted, tmp_path, error=ValueError, **given)


def test_a_worker_that_died_is_said(monkeypatch):
    def work(*args):
        raise BrokenExecutor

    monkeypatch.setattr(_chunks, "work", work)
    said("died in the first pass", [FRAME], error=EngineError)
    deaths = [type(name, (Exception,), {})() for name in ("KilledWorker", "Other")]
    assert [_chunks.died(error) for error in deaths] == [True, False]
    with (
        joblib.parallel_config(backend="multiprocessing"),
        pytest.raises(ValueError, match=r"waits for ever .* take 'loky'"),
    ):
        from_chunks(MeanMap(), [FRAME], SHARES)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_the_backends_of_joblib_compute_the_same(backend):
    wanted = weights(from_chunks(CountLogistic(), [FRAME], SHARES)).copy()
    chunks = cut(FRAME, 200, 300)
    found = from_chunks(CountLogistic(), chunks, SHARES, n_jobs=2)
    assert_allclose(weights(found), wanted, atol=1e-8)
    with joblib.parallel_config(backend=backend, n_jobs=2):
        found = from_chunks(CountLogistic(), chunks, SHARES)
    assert_allclose(weights(found), wanted, atol=1e-8)


def test_a_line_with_too_many_fields_is_refused(tmp_path):
    path, options = tmp_path / "a.csv", {"bags": "bag", "features": features(FRAME)}
    lines = FRAME.to_csv(index=False).splitlines()
    for places in ([1], [7], range(1, 401)):
        longer = [line + ",5" * (i in places) for i, line in enumerate(lines)]
        path.write_text("\n".join(longer))
        with pytest.raises(
            ChunkError, match=r"a\.csv.*(more fields|Expected 5 fields)"
        ):
            fit_chunks(MeanMap(), [path], SHARES, **options)


def end_of_worker(frame, last, marks):
    """A chunk that kills the process that reads it, the given time."""
    reads = len(list(marks.iterdir()))
    (marks / str(reads)).touch()
    if reads == last:
        os.kill(os.getpid(), signal.SIGKILL)
    return frame


@pytest.mark.slow
@pytest.mark.parametrize("which", [0, 1])
def test_a_killed_process_is_said_and_never_a_hang(which, tmp_path):
    chunks = [FRAME[:100], partial(end_of_worker, FRAME[100:], which, tmp_path)]
    given = {"n_jobs": 2, "features": features(FRAME)}
    match = r"a worker process died in the (first )?pass"
    said(match, chunks, error=EngineError, **given)


# --- Dask, Ray, Spark ------------------------------------------------------------------------------------------


@pytest.mark.dask
def test_dask_frames_delayed_and_paths(tmp_path):
    distributed = pytest.importorskip("distributed")
    dd = pytest.importorskip("dask.dataframe")
    wanted = weights(from_chunks(CountLogistic(), [FRAME], SHARES)).copy()
    lazy = dd.from_pandas(FRAME.set_index("bag", drop=False), npartitions=4)
    mixed = dd.from_pandas(FRAME.sample(frac=1, random_state=0), 4, sort=False)
    path = tmp_path / "a.csv"
    FRAME.to_csv(path, index=False)
    options = {"bags": "bag", "features": features(FRAME)}
    local = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(**local) as cluster, distributed.Client(cluster):
        whole = mixed.shuffle(on="bag", npartitions=20).persist()
        for chunks in (lazy, lazy.persist(), lazy.to_delayed(), [path], whole):
            with joblib.parallel_config(backend="dask"):
                found = fit_chunks(CountLogistic(), chunks, SHARES, **options)
            assert_allclose(weights(found), wanted, atol=1e-5)
        with joblib.parallel_config(backend="dask"):
            with pytest.raises(ChunkError, match=r"frame\.shuffle\(on='bag'\)"):
                fit_chunks(CountLogistic(), mixed, SHARES, **options)
            mark = tmp_path / "marks"
            mark.mkdir()
            chunks = [FRAME[:100], partial(end_of_worker, FRAME[100:], 3, mark)]
            try:  # Dask repeats a task, or has forgotten it
                found = fit_chunks(CountLogistic(), chunks, SHARES, **options)
                assert_allclose(weights(found), wanted, atol=1e-5)
            except EngineError as error:
                assert "a worker process died" in str(error)
    predicted = lazy[features(FRAME)].map_partitions(found.predict, meta=(None, int))
    assert_array_equal(predicted.compute(), found.predict(FRAME[features(FRAME)]))


PAGE = Path(__file__).resolve().parents[1] / "book" / "src" / "beyond_memory.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.S | re.M)


@pytest.mark.dask
def test_dask_as_on_the_page(tmp_path):
    pytest.importorskip("pyarrow")
    pytest.importorskip("dask.distributed")
    [code] = [b for b in BLOCKS if b.startswith("import dask")]
    frame, shares = problem(1000)
    frame = frame.drop(columns="y").rename(columns={"bag": "key"})
    for number, part in enumerate(cut(frame, 300, 600)):
        part.to_parquet(tmp_path / f"part-{number}.parquet")
    names = {"parquet": tmp_path, "shares": shares}
    names |= {"fit_chunks": fit_chunks, "CountLogistic": CountLogistic}
    exec(compile(code, str(PAGE), "exec"), names)
    wanted = weights(from_chunks(CountLogistic(), [frame], shares, bags="key"))
    assert_allclose(weights(names["model"]), wanted, atol=1e-5)
    names["client"].close()
    names["cluster"].close()


# --- what is said of bad chunks --------------------------------------------------------------------------------


def said(match, chunks, shares=SHARES, model=None, error=ChunkError, **options):
    with pytest.raises(error, match=match):
        from_chunks(model or MeanMap(), chunks, shares, **options)


def test_empty_chunks_are_left_out():
    wanted = weights(from_chunks(CountLogistic(), [FRAME], SHARES)).copy()
    chunks = [FRAME[:0], pd.DataFrame(), FRAME[:200], FRAME[:0], FRAME[200:]]
    found = from_chunks(CountLogistic(), chunks, SHARES, features=features(FRAME))
    assert_allclose(weights(found), wanted, atol=1e-8)
    for given in ({}, {"features": None}):
        said("chunks hold no rows", [FRAME[:0]], error=ValueError, **given)
    for given in ({}, {"features": ["x0"]}):
        with pytest.raises(ValueError, match="chunks hold no rows"):
            sample_bags([FRAME[:0]], SHARES, 2, bags="bag", **given)


def test_what_is_wrong_with_a_chunk_is_said_with_its_name(tmp_path):
    def spoiled(row, **values):
        second = FRAME[200:].copy()
        for name, value in values.items():
            second[name] = second[name].astype(object)
            second.iloc[row, second.columns.get_loc(name)] = value
        return [FRAME[:200], second]

    matrix = "chunk 1: X must be a matrix of finite numbers: column 'x1' holds"
    broken, lacking = FRAME[200:].assign(x1=np.nan), FRAME.drop(columns="x2")
    infinite = FRAME.assign(x1=FRAME["x1"].where(FRAME.index != 3, np.inf))
    for match, chunks in {
        "chunk 1: column 'bag' has a missing value at pos": spoiled(3, bag=None),
        "numbered from 0; if yours start": [FRAME.assign(bag=FRAME.bag + 1)],
        f"{matrix} text": spoiled(0, x1="a"),
        f"{matrix} missing values": [FRAME[:200], broken],
        r"chunk 1 has no column 'x2'; it has \['x0'": [FRAME, lacking],
        "chunk 0: X must be a matrix of finite numbers": [infinite],
    }.items():
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            said(match, chunks)
    said("bags holds 0, which is not a key .*; give its share", [FRAME], KEYED)
    named = {"features": ["x0"]}
    said("chunk 0 must be a DataFrame.* got int", [lambda: 5], **named)
    dates = FRAME.assign(x0=pd.Timestamp("2020-01-01"))
    said("chunk 0: X must be .*(numbers|dtype).*", [dates], **named)
    both = pd.concat([FRAME, FRAME["y"]], axis=1)  # twice, but not needed
    assert from_chunks(InvCal(), [both], SHARES, features=["x0"]).n_features_in_ == 1
    path = tmp_path / "part-7.csv.gz"
    path.write_bytes(b"cut short")
    said(r"chunk 1 \(.*part-7\.csv\.gz\) cannot be read: BadGzipFile", [FRAME, path])
    step = FunctionTransformer(lambda X: X.assign(x0=abs(X["x0"])))
    model, chunks = make_pipeline(step, MeanMap()), [FRAME, FRAME.assign(x0="text")]
    said("chunk 1: TypeError: bad operand", chunks, model=model)
    twice = FRAME.drop(columns="y").set_axis(["x0", "x0", "x2", "bag"], axis=1)
    said("chunk 0 has two columns with the name 'x0'", [twice], features=None)


def test_what_is_wrong_with_the_shares_is_said():
    unknown, more = SHARES.copy(), np.vstack([SHARES, [[np.nan, np.nan]]])
    unknown[3] = np.nan
    wanted = weights(from_chunks(MeanMap(), [FRAME], SHARES)).copy()
    assert_array_equal(weights(from_chunks(MeanMap(), [FRAME], more)), wanted)
    for shares, match in (
        (unknown, "got nan for bag 3, which has instances"),
        (SHARES[FRAME["bag"]], "has 400 entries, one per instance, for only 40 bags"),
        (SHARES[:, 1] + 0.5, "state the noise: CountLogistic.proportion_noise="),
    ):
        said(match, [FRAME], shares, error=ValueError)
    pairs = FRAME[:8].assign(bag=np.arange(8) // 2)  # four of eight bags are empty
    assert from_chunks(InvCal(), [pairs], SHARES[:8]).intercept_.shape == (1,)
    three = [pairs.assign(bag=np.arange(8) // 3)]
    for chunks in (three, cut(three[0], 2, 5)):
        per_row = SHARES[three[0]["bag"]]
        said(
            "8 entries, one per instance, for only 3 .*the column 'bag'",
            chunks, per_row, error=ValueError,
        )  # fmt: skip
        per_row = pd.Series(per_row[:, 1], three[0].index)
        said(
            r"proportions.groupby\(bags\).first\(\), with bags the column 'bag'",
            chunks, per_row, error=ValueError,
        )  # fmt: skip
    keyed = pd.Series(SHARES[:8, 1], range(8)).rename_axis("bag")
    assert from_chunks(BagMeanRegression(), three, keyed).n_features_in_ == 3
    with pytest.raises(NotIdentifiableError, match="same in every bag") as caught:
        from_chunks(InvCal(), [FRAME], np.full(40, 0.5))
    assert "To read:" in caught.value.__notes__[0]


def cells(n_bags=40):
    """Two groups in each of some bags, their numbers of people, and the shares of the bags."""
    rng = np.random.default_rng(0)
    sizes = rng.integers(20, 200, (n_bags, 2))
    ones = rng.binomial(sizes, [0.3, 0.7]).sum(axis=1)
    frame = pd.DataFrame({"x": np.tile([0.0, 1.0], n_bags), "n": sizes.ravel()})
    return frame.assign(bag=np.repeat(range(n_bags), 2)), ones / sizes.sum(axis=1)


#: Of each kind of sums, with and without frequencies of its own.
OF_COUNTS = [
    CountLogistic(C=10.0), MeanMap(), LaplacianMeanMap(), InvCal(), BagMeanRegression(), WeightedLDA(scheme="sws"),
    BagLogistic(), make_pipeline(StandardScaler(), BagLogistic("easy")),
]  # fmt: skip


@pytest.mark.parametrize("kept", [0, 2**28])
@pytest.mark.parametrize("model", OF_COUNTS, ids=str)
@pytest.mark.filterwarnings("default::llpbook.base.LLPWarning")
def test_counts_of_a_column_are_repeated_rows(model, kept, monkeypatch):
    monkeypatch.setattr(_instances, "KEPT", kept)
    frame, shares = cells()
    frame = pd.concat([frame.assign(x2=frame["bag"] % 3), frame.assign(x2=2.0)])
    frame = frame.sort_values("bag", kind="stable").reset_index(drop=True)
    frame.loc[7, "n"], shares = 0, shares + 0.1 * (np.arange(40) % 2)
    people = frame.loc[frame.index.repeat(frame["n"])]
    options = {"features": ["x", "x2"]}
    whole = from_chunks(clone(model), [people], shares, **options)
    text = frame.assign(n=frame["n"].astype(str))
    for chunks in (cut(frame, 24, 80), [frame[:0], *cut(text, 24, 28)]):
        counted = from_chunks(clone(model), chunks, shares, counts="n", **options)
        assert_allclose(weights(counted), weights(whole), rtol=1e-5, atol=1e-7)
    if hasattr(model, "steps"):
        assert counted[0].n_samples_seen_ == len(people)


def test_intervals_and_rates_of_chunks_with_counts():
    frame, shares = cells()
    people = frame.loc[frame.index.repeat(frame["n"])]
    model = fit_chunks(
        CountLogistic(C=10.0), [people], shares, bags="bag", features=["x"]
    )
    one = {"bags": "bag", "features": ["x"]}
    chunks = cut(frame.astype({"n": float}), 30)
    for call in (
        partial(chunk_coefficient_table, model, proportions=shares),
        partial(chunk_group_rate, model, proportions=shares, group="x"),
    ):
        wanted, found = call([people], **one), call(chunks, counts="n", **one)
        if not isinstance(wanted, pd.DataFrame):
            wanted, found = wanted.interval(), found.interval()
        assert_allclose(found, wanted, rtol=1e-6)
    some = sample_bags(chunks, shares, 5, counts="n", random_state=0, **one)
    assert list(some) == ["x", "bag", "n"] and some["bag"].nunique() == 5


def test_rows_that_are_visibly_cells_are_refused_in_chunks_too():
    frame, shares = cells()
    chunks, one = cut(frame, 30), {"bags": "bag", "features": ["x"]}
    for model in (CountLogistic(C=10.0), InvCal()):
        with pytest.raises(
            ValueError, match=r"counts is missing: the 80 rows .*column of ones"
        ):
            fit_chunks(model, chunks, shares, **one)
        ones = [part.assign(one=1) for part in chunks]
        fit_chunks(model, ones, shares, counts="one", **one)
    fit_chunks(CountLogistic(), [FRAME], SHARES + 0.001 * np.array([1, -1]), bags="bag")


@pytest.mark.parametrize(
    ("values", "match"),
    [
        (
            ["1,200"] * 80,
            r"chunk 0: column 'n' must be .*text '1,200': counts.str.replace",
        ),
        ([-1] * 80, "column 'n' must be whole numbers, 0 or more.*got -1"),
        ([2.5] * 80, "column 'n' must be whole numbers"),
        ([None] + [3] * 79, "column 'n' has a missing value at position 0"),
        ([0] * 80, "chunks hold no rows"),
    ],
)
def test_wrong_counts_of_chunks_are_named(values, match):
    frame, shares = cells()
    frame["n"] = values
    with pytest.raises(ValueError, match=match):
        fit_chunks(CountLogistic(), [frame], shares, bags="bag", counts="n")
    with pytest.raises(ValueError, match=r"none of them that of the counts .'n'."):
        fit_chunks(
            CountLogistic(), [frame], shares, bags="bag", counts="n", features=["n"]
        )


def test_counts_that_change_are_noticed():
    frame, shares = cells()
    turns = iter(range(100))
    chunk = lambda: frame.assign(n=frame["n"] + next(turns))  # noqa: E731
    with pytest.raises(ChunkError, match="holds other values in the"):
        fit_chunks(
            CountLogistic(), [chunk], shares, bags="bag", counts="n", features=["x"]
        )


def test_totals_and_row_numbers_off_by_one_are_refused_in_chunks():
    frame, shares = cells()
    total = frame.groupby("x", as_index=False)["n"].sum().assign(bag=40)
    n = frame.groupby("bag")["n"].sum()
    with_total = [frame, total], np.append(shares, (shares * n).sum() / n.sum())
    options = {"bags": "bag", "counts": "n", "features": ["x"]}
    with pytest.raises(ValueError, match="bag 40 is the sum of 40 other bags"):
        fit_chunks(CountLogistic(), *with_total, **options)
    off = [frame.assign(bag=frame["bag"] + 1)], np.append(shares, 0.5)
    with pytest.raises(
        ValueError, match="each row is that of the bag with the next number"
    ):
        fit_chunks(CountLogistic(), *off, **options)


def test_scattered_bags_are_refused_where_they_matter():
    said(
        r"bag 20 has instances in chunk 2 and in chunk 3, but CountLogistic needs .*shuffle\(on='bag'\)",
        [FRAME[:0], *cut(FRAME, 100, 205)], model=CountLogistic(C=0.1),
    )  # fmt: skip
    mended = [part for _, part in FRAME.groupby(FRAME["bag"].map(hash) % 3)]
    assert from_chunks(CountLogistic(C=0.1), mended, SHARES).n_iter_ > 0


def test_more_columns_than_the_first_chunk_are_refused():
    first, second = (part.drop(columns="y") for part in cut(FRAME, 200))
    match = "chunk 2 has the column 'z', which chunk 1 has not; name the"
    for call in (fit_chunks, sample_bags):
        given = (MeanMap(),) if call is fit_chunks else ()
        run = partial(call, *given, proportions=SHARES, bags="bag")
        run = run if given else partial(run, n_bags=40)
        with pytest.raises(ChunkError, match=match):
            run(chunks=[pd.DataFrame(), first, second.assign(z=1.0)])
        assert run(chunks=[pd.DataFrame(), first, second]) is not None


CHANGES = {
    "drawn": lambda f: f.assign(x0=np.random.default_rng(0).normal(size=400)),
    "edited": lambda f: f.assign(x1=f["x1"] + 1e-6 * (f.index == 7)),
    "bags": lambda f: f.assign(bag=f["bag"] + (f.index == 7)),
    "missing": lambda f: f.assign(x2=f["x2"].where(f.index != 7)),
    "shorter": lambda f: f[:-5],
    "empty": lambda f: f[:0],
}  # fmt: skip


def changed_later(frame, change, first=1):
    """A chunk that the passes after the first find changed."""
    left = [frame] * first
    return lambda: left.pop() if left else change(frame)


@pytest.mark.parametrize("kind", CHANGES)
@pytest.mark.parametrize("model", [MeanMap(), CountLogistic()], ids=str)
def test_other_values_in_a_later_pass_are_noticed(kind, model):
    for first in (1, 3):
        left = {"shorter": 395, "empty": 0}.get(kind)
        match = f"chunk 1: it holds other values in the pass {first} than in the first"
        if left is not None:
            match = f"had 400 rows in the first pass and has {left} in the pass {first}"
        chunks = [FRAME[:0], changed_later(FRAME, CHANGES[kind], first)]
        said(match, chunks, model=model, features=features(FRAME))
    filled = [FRAME[:200], changed_later(FRAME[:0], lambda f: FRAME[200:])]
    said("had 0 rows in the first pass and has 200", filled, model=model)
    unchecked = changed_later(FRAME, CHANGES["edited"])
    given = {"features": features(FRAME), "check_chunks": False}
    assert from_chunks(model, [unchecked], SHARES, **given).n_iter_ > 1


def test_other_rounding_is_no_change():
    frame = FRAME.astype({"x0": "f4"}).assign(x1=1e8 + FRAME["x1"])
    near = frame.assign(x1=frame["x1"] * (1 + 1e-16), x2=frame["x2"] * (1 + 1e-15))
    turns = itertools.cycle([frame, near, frame.sample(frac=1, random_state=0)])
    given = {"features": features(FRAME), "bags": "bag"}
    model = make_pipeline(StandardScaler(), CountLogistic(C=0.1))
    assert fit_chunks(model, [lambda: next(turns)], SHARES, **given)[-1].n_iter_ > 1


def test_a_failed_fit_leaves_the_one_before():
    model = make_pipeline(StandardScaler(), MeanMap())
    from_chunks(model, [FRAME], SHARES)
    before = dict(vars(model[0])), dict(vars(model[1]))
    moved = FRAME.assign(x0=100 * FRAME["x0"] + 500)
    chunk = changed_later(moved, lambda f: f.assign(x0=0.0))
    said("holds other values", [chunk], model=model, features=features(FRAME))
    assert (vars(model[0]), vars(model[1])) == before


def test_warnings_of_the_fit_in_memory_come_from_chunks_too():
    with pytest.warns(LLPWarning, match="not on one scale"):
        from_chunks(InvCal(), [FRAME.assign(x0=FRAME["x0"] * 1e6)], SHARES)
    with pytest.warns(ConvergenceWarning, match="stopped after 1 iterations"):
        from_chunks(MeanMap(max_iter=1), [FRAME], SHARES)
    noise = np.random.default_rng(0).normal(size=400)
    level = FRAME[["bag"]].assign(x0=5 * SHARES[FRAME["bag"], 1] + noise)
    with pytest.warns(LLPWarning, match="MeanMap is too sure"):
        from_chunks(MeanMap(alpha=1e-6), cut(level, 150), SHARES)


@pytest.mark.parametrize("kept", [0, 2**28])
@pytest.mark.parametrize("model", [CountLogistic, BagMeanRegression])
def test_a_class_that_is_hardly_predicted_warns_from_chunks_too(
    model, kept, monkeypatch
):
    """Of chunks that are not kept, some rows are looked at, each as often as it stands for others."""
    monkeypatch.setattr(_instances, "KEPT", kept)
    rng = np.random.default_rng(0)
    bags, x = np.repeat(np.arange(60), 20), 1.1 * rng.normal(size=1200)
    shares = np.bincount(bags, x + 0.3 * rng.normal(size=1200) > 0.7) / 20
    frame, words = pd.DataFrame({"x0": x, "bag": bags}), "predicts class 1 for [0-5]%"
    held, free = (1e-4, 10.0) if model is CountLogistic else (1e6, 1e-9)
    with pytest.warns(LLPWarning, match=words):
        from_chunks(model(held), cut(frame, 20, 1000), shares)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        from_chunks(model(free), cut(frame, 20, 1000), shares)


@pytest.mark.parametrize(
    ("model", "match"),
    [
        (EMLR(), r"EMLR\(\) does not reduce to sums .*: fit it to a sample of whole"),
        (MeanMap(kernel="rbf"), "kernel='rbf'.* does not reduce .* fitted Nystroem"),
        (WeightedLDA("wws"), r"WeightedLDA\(\) does not reduce"),
    ],
    ids=str,
)
def test_what_does_not_reduce_is_refused_with_a_way_out(model, match):
    said(match, [FRAME], model=model, error=ValueError)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"chunks": iter([FRAME])}, "chunks is an iterator, which can be read only"),
        ({"chunks": []}, "chunks is empty"),
        ({"chunks": Path(__file__).parent}, r"chunks is the folder .* without"),
        ({"chunks": ["http://a.org/a.csv"]}, "the address .* nothing is fetched"),
        ({"features": ["x0", "bag"]}, r"of the bags \('bag'\), got \['x0', 'bag'\]"),
        ({"features": ["x0", "x0"]}, "features must be different columns"),
    ],
)
def test_arguments_are_checked(options, match):
    given = {"estimator": MeanMap(), "chunks": [FRAME], "features": features(FRAME)}
    with pytest.raises(ValueError, match=match):
        fit_chunks(proportions=SHARES, bags="bag", **given | options)


# --- a sample of bags ------------------------------------------------------------------------------------------


def test_a_sample_holds_whole_bags(capsys):
    mixed = FRAME.sample(frac=1, random_state=0)
    found = sample_bags(cut(mixed, 130), SHARES, 7, bags="bag", random_state=0)
    assert found.columns.tolist() == ["x0", "x1", "x2", "y", "bag"]
    assert (
        found["bag"].value_counts().isin([7, 13]).all() and found["bag"].nunique() == 7
    )
    again = sample_bags(cut(mixed, 200), SHARES, 7, bags="bag", random_state=0)
    assert set(again["bag"]) == set(found["bag"])
    with pytest.raises(ValueError, match="n_bags must be a whole number from 1 to 40"):
        sample_bags([FRAME], SHARES, 41, bags="bag")
    unknown = np.where(np.arange(40) < 35, np.nan, SHARES[:, 1])
    found = sample_bags([FRAME], unknown, 5, bags="bag")
    assert sorted(found["bag"].unique()) == [35, 36, 37, 38, 39]
    said = "only 38 of the 39 bags that were drawn from the 40 bags .* column 'bag' "
    with pytest.raises(ValueError, match=said):
        sample_bags([FRAME[FRAME["bag"] != 7]], SHARES, 39, bags="bag", random_state=9)
    some = KEYED.where(KEYED.index.isin(["b3", "b20", "b31"]))[::-1] * 2  # noisy ones
    chunks = cut(FRAME.assign(bag="b" + FRAME["bag"].astype(str)), 205)
    given = {"features": ["x2", "x0"], "bags": "bag", "verbose": 2}
    found = sample_bags(chunks, some, 3, **given)
    wanted = FRAME[FRAME["bag"].isin([3, 20, 31])]
    assert found.columns.tolist() == ["x2", "x0", "bag"]
    assert_array_equal(found[["x2", "x0"]], wanted[["x2", "x0"]])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" in ")[0] for line in lines] == [
        f"sample_bags, sample of bags: {k} of at most 2 chunks" for k in (1, 2)
    ]
