"""Run a table: ``python -m studies TABLE [--seeds 5] [--jobs 2] [--only dataset=heart method=MeanMap]``.

Where a table leaves parameters free, ``--set priors=0.3,0.7 sizes=60,40`` runs its cells with other values.
``--scheduler ADDRESS`` spreads the rows over a Dask cluster instead of ``--jobs`` processes; its workers must be able
to import ``llpbook`` and ``studies``. In Python, `run_table` inside ``joblib.parallel_config("dask")`` does the same.
"""

import argparse
import shlex
import sys
from contextlib import contextmanager

import joblib

from . import load, summary, tables
from .runner import RESULTS, as_text, done, run_table, set_values


def parse_only(conditions):
    """``["dataset=heart,vote", "bag_size=2"]`` as ``{"dataset": ["heart", "vote"], "bag_size": ["2"]}``."""
    only = {}
    for condition in conditions:
        key, _, values = condition.partition("=")
        if not values:
            raise ValueError(
                f"--only reads key=value or key=value,value, got {condition!r}"
            )
        only.setdefault(key, []).extend(values.split(","))
    return only


def parse_set(assignments):
    """``["priors=0.3,0.7"]`` as ``{"priors": "0.3,0.7"}``."""
    values = {}
    for assignment in assignments:
        key, _, value = assignment.partition("=")
        if not value or key in values:
            raise ValueError(
                f"--set reads key=value, each key once, got {assignment!r}"
            )
        values[key] = value
    return values


def positive(text):
    """A whole number from 1."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {value}")
    return value


def read_arguments(argv):
    """The parser, for its errors, and what it read."""
    about = "Run a table; rows that are there stay."
    parser = argparse.ArgumentParser("python -m studies", description=about)
    add = parser.add_argument
    add("table", nargs="?", metavar="TABLE", help="see --list")
    add("--seeds", type=positive, default=5, help="seeds 0 … SEEDS-1 (default: 5)")
    add("--jobs", type=positive, default=1, help="processes (default: 1)")
    pairs = {"nargs": "+", "default": [], "metavar": "KEY=VALUE"}
    add("--only", **pairs, help="these cells only; VALUE may be v,w")
    add("--set", **pairs, help="other values of what the table leaves free")
    add("--list", action="store_true", help="list the tables, and the rows there are")
    add("--scheduler", metavar="ADDRESS", help="compute on a Dask cluster")
    where = "folder of the results (default: book/studies/results)"
    add("--results", metavar="DIR", help=where)
    return parser, parser.parse_args(argv)


@contextmanager
def cluster(address):
    """Spread what joblib runs over the Dask cluster at an address; without one, nothing changes."""
    if address is None:
        yield
        return
    try:
        from dask.distributed import Client
    except ImportError as error:
        raise ValueError(
            '--scheduler needs Dask: pip install "dask[distributed]"'
        ) from error
    with Client(address), joblib.parallel_config("dask"):
        yield


def cost(table, results):
    """How long a seed takes in one process, from the rows there are, in words."""
    seconds = load(table, results).groupby([*table.cells[0]])["seconds"].mean()
    known = len(seconds)
    some = "" if known >= len(table.cells) else f" for the {known} cells with rows"
    return f"{seconds.sum() / 3600:.2g} CPU hours a seed{some}"


def list_tables(results):
    """Print what can be run, how many rows there are, and what a seed costs."""
    for table in tables().values():
        try:
            state = f"{len(done(table, results))} rows"
            state += f", {cost(table, results)}" if state != "0 rows" else ""
        except ValueError as error:
            state = f"not usable: {error}"
        n_cells = f"{len(table.cells)} cells a seed"
        print(f"{table.name}: {table.doc}")
        print(f"    protocol {table.protocol}, {n_cells}, {state}")


def report(cell, seed, found, count, total):
    """Print that a row is known."""
    values = " ".join(f"{key}={as_text(value)}" for key, value in cell.items())
    text = f"[{count}/{total}] {values} seed={seed}: {found['seconds']:.1f} s"
    print(text, file=sys.stderr, flush=True)


def main(argv=None):
    """Command line; returns the exit status."""
    parser, args = read_arguments(argv)
    if args.list:
        list_tables(args.results)
        return 0
    known = tables()
    if args.table not in known:
        parser.error(f"which table? {args.table!r} is none of: {', '.join(known)}")
    # As it is noted beside the rows: without the folder of the results.
    command = f"python -m studies {args.table} --seeds {args.seeds} --jobs {args.jobs}"
    for option, pairs in (("--set", args.set), ("--only", args.only)):
        command += f" {shlex.join([option, *pairs])}" if pairs else ""
    try:
        table = set_values(known[args.table], parse_set(args.set))
        run = args.seeds, args.jobs, parse_only(args.only), args.results, command
        with cluster(args.scheduler):
            written = run_table(table, *run, report)
        print(summary(table, table.value, args.results).round(4).to_string(index=False))
    except ValueError as error:
        parser.error(str(error))
    folder = args.results or RESULTS.relative_to(RESULTS.parents[2])
    print(f"{written} new rows in {folder}/{args.table}.csv")
    return 0


if __name__ == "__main__":
    sys.exit(main())
