"""What a fit from chunks costs, beside what a user has: one read of the files, and learners that see labels.

Data are made in chunks on disk: n instances of twenty normal features in single precision, labels by logistic
regression, in random bags of fifty. So the assumptions of all methods hold. Files hold at most 500,000 rows each, 84
bytes per row: 10^8 rows need 8.5 GB, in the folder ``LLPBOOK_CHUNKS`` or that of temporary files, and are deleted when
the study ends.

``wall`` and ``cpu`` are seconds of the fit, after the start of the workers; ``memory`` is the peak of the process that
computes, the largest of several, in MB, with Python and its libraries; ``passes`` are the Newton passes and one more.
Methods:

- ``read``: all columns of all files, once.
- ``InvCal``, ``MeanMap``, ``CountLogistic`` (C = 0.1) by `fit_chunks` behind a StandardScaler.
- ``SGD on labels``: one epoch of ``SGDClassifier.partial_fit`` on the true labels, averaged, the penalty tuned before
  on the first chunk.
- ``logistic on labels``: scikit-learn's ``LogisticRegression`` with all in memory, reading counted.

``engine`` none is this process; ``processes`` are those of joblib; ``dask`` a local cluster. The stored rows are of an
earlier version, whose CountLogistic started from MeanMap and then took five passes. Every process computes with one
thread. Needs pyarrow and psutil, and Linux; dask where it is asked for.
"""

import atexit
import multiprocessing
import os
import shutil
import tempfile
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
from scipy.special import expit
from scipy.stats import poisson
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from llpbook import CountLogistic, FullBagKFold, InvCal, LLPGridSearchCV, MeanMap
from llpbook.beyond_memory import fit_chunks, sample_bags
from llpbook.comparison import paired_differences

from .runner import Table, cells, load

PROTOCOL = "beyond_memory-1"
N_FEATURES, BAG_SIZE, ROWS, N_NEW = 20, 50, 500_000, 50_000
FEATURES = [f"x{j}" for j in range(N_FEATURES)]
METHODS = {
    "InvCal": InvCal,
    "MeanMap": MeanMap,
    "CountLogistic": lambda: CountLogistic(C=0.1),
}
PENALTIES = [1e-7, 1e-6, 1e-5, 1e-4, 1e-3]


def draw(n, seed):
    """Instances in random bags of fifty.

    Parameters
    ----------
    n : int
        A multiple of 50.
    seed : int or sequence of int

    Returns
    -------
    DataFrame
        Features, "bag" from 0, and "y".
    """
    rng = np.random.default_rng(seed)
    bags = np.arange(n) // BAG_SIZE
    X = rng.normal(size=(n, N_FEATURES))
    slopes = np.linspace(-0.8, 0.8, N_FEATURES)
    frame = pd.DataFrame(X.astype(np.float32), columns=FEATURES)
    frame["bag"] = bags
    frame["y"] = (rng.random(n) < expit(X @ slopes - 0.5)).astype(np.int8)
    return frame


_made = {}


def new_folder(made):
    """An empty folder for files; those that were made before are deleted, because all together fill a disk."""
    for paths, _ in made.values():
        shutil.rmtree(paths[0].parent)
    made.clear()
    where = os.environ.get("LLPBOOK_CHUNKS")
    folder = Path(tempfile.mkdtemp(prefix="llpbook-", dir=where))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def files(n, seed):
    """The chunks of a row on disk, made where they are not there, and the shares of all bags."""
    if (n, seed) not in _made:
        folder = new_folder(_made)
        rows, paths, shares = min(ROWS, n // 10), [], []
        for number in range(n // rows):
            frame = draw(rows, [seed, number])
            frame["bag"] += number * (rows // BAG_SIZE)
            shares.append(frame.groupby("bag")["y"].mean().to_numpy())
            paths.append(folder / f"part-{number:04}.parquet")
            frame.to_parquet(paths[-1])
        _made[n, seed] = paths, np.concatenate(shares)
    return _made[n, seed]


def read_all(paths):
    """Read all columns of all files, once."""
    return sum(len(pd.read_parquet(path)) for path in paths)


def sgd_on_labels(paths):
    """One epoch on true labels; what is tuned before is not counted."""
    first = pd.read_parquet(paths[0])
    scaler, half = StandardScaler().fit(first[FEATURES]), len(first) // 2
    X = scaler.transform(first[FEATURES])
    options = {"loss": "log_loss", "average": True, "random_state": 0}
    tried = [SGDClassifier(alpha=a, **options) for a in PENALTIES]
    right = [
        m.partial_fit(X[:half], first["y"][:half], [0, 1]).score(
            X[half:], first["y"][half:]
        )
        for m in tried
    ]
    model = SGDClassifier(alpha=PENALTIES[int(np.argmax(right))], **options)

    def fit():
        for path in paths:
            frame = pd.read_parquet(path)
            model.partial_fit(scaler.transform(frame[FEATURES]), frame["y"], [0, 1])
        return make_pipeline(scaler, model)

    return fit


def logistic_on_labels(paths):
    """All instances in memory."""
    frame = pd.concat([pd.read_parquet(path) for path in paths])
    y = frame.pop("y").to_numpy()
    return make_pipeline(StandardScaler(), LogisticRegression()).fit(frame[FEATURES], y)


def prepared(method, paths, shares, n_jobs):
    """The function whose time is taken; it returns a fitted model, or a number."""
    if method == "read":
        return lambda: read_all(paths)
    if method == "SGD on labels":
        return sgd_on_labels(paths)
    if method == "logistic on labels":
        return lambda: logistic_on_labels(paths)
    model = make_pipeline(StandardScaler(), METHODS[method]())
    given = {"bags": "bag", "features": FEATURES, "n_jobs": n_jobs}
    return lambda: fit_chunks(model, paths, shares, **given)


def warmed(_):
    """A task that makes a worker import what it needs."""
    return os.getpid(), time.sleep(0.2)


@contextmanager
def engine(name, workers):
    """The ``n_jobs`` of an engine, with its workers started."""
    with ExitStack() as stack:
        if name == "dask":
            from dask.distributed import Client, LocalCluster

            options = {"threads_per_worker": 1, "dashboard_address": None}
            cluster = stack.enter_context(LocalCluster(workers, **options))
            stack.enter_context(Client(cluster))
            stack.enter_context(joblib.parallel_config(backend="dask"))
        n_jobs = None if name == "none" else workers
        joblib.Parallel(n_jobs)(joblib.delayed(warmed)(k) for k in range(4 * workers))
        yield n_jobs


def processor_time():
    """Seconds of this process and its children."""
    import psutil

    this = psutil.Process()
    family = [this, *this.children(recursive=True)]
    return sum(sum(process.cpu_times()[:2]) for process in family)


def peak(pid):
    """The most memory that a process has had, in MB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    [line] = [line for line in lines if line.startswith("VmHWM")]
    return int(line.split()[1]) / 1024


def measure(cell, paths, shares):
    """One fit, in a process of its own."""
    import psutil

    method, workers = cell["method"], cell["workers"]
    with engine(cell["engine"], workers) as n_jobs:
        fit = prepared(method, paths, shares, n_jobs)
        cpu, start = processor_time(), time.perf_counter()
        model = fit()
        wall, cpu = time.perf_counter() - start, processor_time() - cpu
        family = (
            psutil.Process().children(recursive=True)
            if cell["engine"] != "none"
            else []
        )
        memory = max(peak(p.pid) for p in family) if family else peak(os.getpid())
    found = {"wall": wall, "cpu": cpu, "memory": memory, "passes": 1, "accuracy": 0.0}
    if method != "read":
        new = draw(N_NEW, [99, 99])
        found["accuracy"] = model.score(new[FEATURES], new["y"])
        if method in ("MeanMap", "CountLogistic"):
            found["passes"] += model[-1].n_iter_
    return {key: round(float(value), 4) for key, value in found.items()}


def run(cell, seed):
    """One row: a method on chunks of n instances."""
    return alone(measure, cell, *files(cell["n"], seed))


def alone(function, *given):
    """What a function returns in a process of its own, with one thread."""
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    from concurrent.futures import ProcessPoolExecutor  # a browser has no processes

    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, spawn) as executor:
        return executor.submit(function, *given).result()


# --- the case of the chapter: conversions that are reported in aggregate ------------------------------------------

DEVICES, SITES = ["desktop", "phone", "tablet"], ["games", "news", "search", "shop"]
IMPRESSION = ["device", "site", "hour", "visits", "position"]
CAMPAIGNS, NOISE = 40, 4.0
#: Log-odds of a conversion, by device and site, of the visits before, and of the place on the page.
BASE, OF_DEVICE, OF_SITE = -3.6, [0.3, -0.5, 0.0], [-0.8, -0.3, 1.0, 0.6]
OF_VISITS, OF_POSITION = 0.35, -0.15
VISITS = 1.5  # their mean


def impressions(day, n, seed=0):
    """The log of a day: made-up impressions of forty campaigns.

    Campaigns buy different devices and sites. Whether an impression leads to a conversion depends on the impression
    alone.

    Parameters
    ----------
    day, n, seed : int

    Returns
    -------
    DataFrame
        The columns `IMPRESSION`, "key" (day and campaign) and "converted", which no learner sees.
    """
    rng = np.random.default_rng([seed, day])
    campaign = np.sort(rng.integers(0, CAMPAIGNS, n))
    taste = np.random.default_rng(seed)
    of_device = taste.dirichlet([2.0] * 3, CAMPAIGNS).cumsum(axis=1)[campaign]
    of_site = taste.dirichlet([1.0] * 4, CAMPAIGNS).cumsum(axis=1)[campaign]
    device = (rng.random((n, 1)) > of_device[:, :-1]).sum(axis=1)
    site = (rng.random((n, 1)) > of_site[:, :-1]).sum(axis=1)
    visits, position = rng.poisson(VISITS, n), rng.integers(1, 7, n)
    f = BASE + np.take(OF_DEVICE, device) + np.take(OF_SITE, site)
    f += OF_VISITS * visits + OF_POSITION * position
    columns = {
        "device": np.take(DEVICES, device),
        "site": np.take(SITES, site),
        "hour": rng.integers(0, 24, n),
        "visits": visits,
        "position": position,
        "key": 100 * day + campaign,
        "converted": (rng.random(n) < expit(f)).astype(int),
    }
    return pd.DataFrame(columns)


def report(log, rng, noise=NOISE):
    """What an aggregation service tells of a day: counts by key, the conversions with Laplace noise.

    Parameters
    ----------
    log : DataFrame
        Of `impressions`.
    rng : Generator
    noise : float
        Scale of the noise.

    Returns
    -------
    DataFrame
        Indexed by key: "impressions", and "conversions", which can be negative.
    """
    table = log.groupby("key")["converted"].agg(["size", "sum"])
    table.columns = ["impressions", "conversions"]
    noise = rng.laplace(scale=noise, size=len(table))
    return table.assign(conversions=table["conversions"] + noise)


def true_rates():
    """The rates of conversion that `impressions` draws from.

    Returns
    -------
    Series
        By device and site.
    """
    visits, position = np.arange(60), np.arange(1, 7)
    f = BASE + np.add.outer(OF_DEVICE, OF_SITE)[:, :, None, None]
    f = f + OF_VISITS * visits[:, None] + OF_POSITION * position
    rates = (expit(f).mean(axis=3) @ poisson.pmf(visits, VISITS)).ravel()
    names = ["device", "site"]
    return pd.Series(rates, pd.MultiIndex.from_product([DEVICES, SITES], names=names))


DAYS_IN_FILE, ROWS_OF_DAY = 50, 10_000
_case = {}


def case_files(n, noise, seed):
    """The log in Parquet files of fifty days, made where they are not there, and the reports."""
    if (n, noise, seed) not in _case:
        folder = new_folder(_case)
        rng, paths, reports = np.random.default_rng([seed, 1]), [], []
        for first in range(0, n // ROWS_OF_DAY, DAYS_IN_FILE):
            days = range(first, min(first + DAYS_IN_FILE, n // ROWS_OF_DAY))
            logs = [impressions(day, ROWS_OF_DAY, seed) for day in days]
            reports += [report(log, rng, noise) for log in logs]
            paths.append(folder / f"days-{first:04}.parquet")
            pd.concat(logs).drop(columns="converted").to_parquet(paths[-1])
        _case[n, noise, seed] = paths, pd.concat(reports)
    return _case[n, noise, seed]


def case_model(paths, estimator):
    """The pipeline of the chapter; the categories are those of the first file."""
    one = pd.read_parquet(paths[0])[IMPRESSION]
    codes = OneHotEncoder(drop="first"), ["device", "site"]
    columns = make_column_transformer(codes, remainder="passthrough").fit(one)
    return make_pipeline(columns, StandardScaler(), estimator)


#: What held-out shares choose from, and the most bags of the sample that they are of.
C_P, SAMPLE = [1e-4, 1e-3, 1e-2, 1e-1, 1.0], 1000


def chosen_penalty(paths, shares):
    """C_p of InvCal by held-out shares of a sample of bags, for as many times more bags as there are."""
    n_bags = min(SAMPLE, len(shares))
    options = {"bags": "key", "features": IMPRESSION, "random_state": 0}
    sample = sample_bags(paths, shares, n_bags, **options)
    grid, cv = {"invcal__C_p": C_P}, FullBagKFold(5)
    search = LLPGridSearchCV(case_model(paths, InvCal()), grid, scoring="mse", cv=cv)
    search.fit(sample[IMPRESSION], sample["key"], shares[sample["key"].unique()])
    return search.best_params_["invcal__C_p"] * n_bags / len(shares)


def case_fit(cell, seed, paths, reports):
    """The fitted pipeline of a row."""
    shares = (reports["conversions"] / reports["impressions"]).clip(0, 1)
    method, given = cell["method"], {"bags": "key", "features": IMPRESSION}
    if method == "labels":
        days = range(cell["n"] // ROWS_OF_DAY)
        log = pd.concat([impressions(day, ROWS_OF_DAY, seed) for day in days])
        model = case_model(paths, LogisticRegression(C=1.0))
        return model.fit(log[IMPRESSION], log["converted"])
    estimator = InvCal()
    if method == "InvCal tuned":
        estimator = InvCal(C_p=chosen_penalty(paths, shares))
    if method == "CountLogistic":
        errors = np.sqrt(2) * cell["noise"] / reports["impressions"]
        errors = errors if cell["noise"] else None
        estimator = CountLogistic(C=1.0, proportion_errors=errors)
    return fit_chunks(case_model(paths, estimator), paths, shares, **given)


def measure_case(cell, seed, paths, reports):
    """One fit, in a process of its own, and the errors of its rates over the impressions of the first file."""
    cpu = processor_time()
    model = case_fit(cell, seed, paths, reports)
    cpu = processor_time() - cpu
    found = {"cpu": cpu, "memory": peak(os.getpid()), "passes": 1}
    if cell["method"] == "CountLogistic":
        found["passes"] += model[-1].n_iter_
    log = pd.read_parquet(paths[0])
    rate = pd.Series(model.predict_proba(log[IMPRESSION])[:, 1], log.index)
    truth = true_rates()
    rate = rate.groupby([log["device"], log["site"]]).mean()
    off = (rate - truth).abs()
    found |= {"mean_error": off.mean(), "largest": off.max()}
    return {key: round(float(value), 5) for key, value in found.items()}


def run_case(cell, seed):
    """One row: the case of the chapter on n impressions."""
    return alone(measure_case, cell, seed, *case_files(cell["n"], cell["noise"], seed))


def cost_table(results=None):
    """The rows of the table `beyond_memory` that the chapter prints.

    Returns
    -------
    DataFrame
        One row per method, number of instances, engine and number of workers, without the engines with one worker;
        ``reads`` is ``cpu`` in units of that of one read, ``newton`` the number of Newton passes, and ``wall`` is
        missing where it exceeds ``cpu`` by a quarter: the fit waited for other work.
    """
    rows = load("beyond_memory", results)
    keys = ["method", "n", "engine", "workers"]
    rows = rows[(rows["engine"] == "none") | (rows["workers"] > 1)]
    rows = rows.groupby(keys, sort=False)[["wall", "cpu", "memory", "passes"]].mean()
    read = rows["cpu"].xs(("read", "none", 1), level=["method", "engine", "workers"])
    rows["wall"] = rows["wall"].where(rows["wall"] < 1.25 * rows["cpu"])
    rows.insert(2, "reads", rows["cpu"] / rows.index.get_level_values("n").map(read))
    rows["newton"] = rows.pop("passes") - 1
    digits = {"wall": 1, "cpu": 1, "reads": 1, "memory": 0, "newton": 0}
    return rows.round(digits).reset_index()


def case_table(results=None):
    """The rows of the table `beyond_memory_case` that the chapter prints: means over the draws, and their number.

    Returns
    -------
    DataFrame
        One row per method, number of impressions and scale of the noise; ``se`` is the standard error of
        ``mean_error``.
    """
    rows = load("beyond_memory_case", results)
    groups = rows.groupby(["method", "n", "noise"])
    table = groups[["mean_error", "largest", "cpu"]].mean()
    table.insert(0, "draws", groups.size())
    cases = rows.set_index(["n", "noise", "seed", "method"])["mean_error"].unstack()
    errors = paired_differences(cases, None, unit="seed", by=["n", "noise"])["error"]
    errors = errors.reorder_levels(["method", "n", "noise"])
    table.insert(2, "se", errors)
    digits = {"mean_error": 4, "se": 4, "largest": 4, "cpu": 1}
    return table.round(digits).reset_index()


ALONE = ["read", *METHODS, "SGD on labels"]
TABLES = [
    Table(
        "beyond_memory",
        PROTOCOL,
        cells(
            method=[*ALONE, "logistic on labels"],
            n=[10**5, 10**6, 10**7],
            engine=["none"],
            workers=[1],
        )
        + cells(
            method=list(METHODS),
            n=[10**7],
            engine=["processes", "dask"],
            workers=[1, 2],
        )
        + cells(method=ALONE, n=[10**8], engine=["none"], workers=[1])
        + cells(
            method=["CountLogistic"],
            n=[10**8],
            engine=["processes", "dask"],
            workers=[2],
        ),
        run,
        "time and memory of fits from chunks of 10^5 to 10^8 rows, on one worker and two",
        value="cpu",
    ),
    Table(
        "beyond_memory_case",
        "beyond_memory_case-1",
        cells(
            method=["InvCal", "InvCal tuned", "CountLogistic"],
            n=[10**5, 10**6, 10**7],
            noise=[0.0, NOISE],
        )
        + cells(method=["labels"], n=[10**5, 10**6], noise=[0.0]),
        run_case,
        "conversions in reports: errors of the rates of segments, of 10^5 to 10^7 impressions, with noise and without",
        value="mean_error",
    ),
]
