"""Run a table: ``python -m studies TABLE [--seeds 5] [--jobs 2] [--only dataset=heart method=MeanMap]``.

Where a table leaves parameters free, ``--set priors=0.3,0.7 sizes=60,40`` runs its cells with other values.
"""

import argparse
import shlex
import sys

from . import summary, tables
from .runner import HERE, RESULTS, as_text, done, run_table, set_values


def parse_only(conditions):
    """``["dataset=heart,vote", "bag_size=2"]`` as ``{"dataset": ["heart", "vote"], "bag_size": ["2"]}``."""
    only = {}
    for condition in conditions:
        key, sign, values = condition.partition("=")
        if not sign or not values:
            raise ValueError(
                f"--only reads key=value or key=value,value, got {condition!r}"
            )
        only.setdefault(key, []).extend(values.split(","))
    return only


def parse_set(assignments):
    """``["priors=0.3,0.7"]`` as ``{"priors": "0.3,0.7"}``."""
    values = {}
    for assignment in assignments:
        key, sign, value = assignment.partition("=")
        if not sign or not value or key in values:
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


def main(argv=None):
    """Command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        "python -m studies",
        description="Run a table; rows that are there stay.",
    )
    parser.add_argument("table", nargs="?", metavar="TABLE", help="see --list")
    parser.add_argument(
        "--seeds", type=positive, default=5, help="seeds 0 … SEEDS-1 (default: 5)"
    )
    parser.add_argument(
        "--jobs", type=positive, default=1, help="processes (default: 1)"
    )
    parser.add_argument(
        "--only",
        nargs="+",
        default=[],
        metavar="KEY=VALUE",
        help="these cells only; VALUE may be v,w",
    )
    parser.add_argument(
        "--set",
        nargs="+",
        default=[],
        metavar="KEY=VALUE",
        help="other values of what the table leaves free",
    )
    parser.add_argument(
        "--list",
        action="store_true",
        help="list the tables, and the rows that are there",
    )
    parser.add_argument(
        "--results",
        metavar="DIR",
        help="folder of the results (default: book/studies/results)",
    )
    args = parser.parse_args(argv)
    known = tables()
    if args.list:
        for table in known.values():
            try:
                state = f"{len(done(table, args.results))} rows"
            except ValueError as error:
                state = f"not usable: {error}"
            print(
                f"{table.name}: {table.doc}\n    protocol {table.protocol}, {len(table.cells)} cells a seed, {state}"
            )
        return 0
    if args.table not in known:
        parser.error(f"which table? {args.table!r} is none of: {', '.join(known)}")
    command = [
        "python",
        "-m",
        "studies",
        args.table,
        "--seeds",
        str(args.seeds),
        "--jobs",
        str(args.jobs),
    ]
    command += ["--set", *args.set] if args.set else []
    command += ["--only", *args.only] if args.only else []

    def report(cell, seed, found, count, total):
        values = " ".join(f"{key}={as_text(value)}" for key, value in cell.items())
        print(
            f"[{count}/{total}] {values} seed={seed}: {found['seconds']:.1f} s",
            file=sys.stderr,
            flush=True,
        )

    try:
        table = set_values(known[args.table], parse_set(args.set))
        written = run_table(
            table,
            args.seeds,
            args.jobs,
            parse_only(args.only),
            args.results,
            shlex.join(command),
            report,
        )
        print(summary(table, table.value, args.results).round(4).to_string(index=False))
    except ValueError as error:
        parser.error(str(error))
    print(
        f"{written} new rows in {args.results or RESULTS.relative_to(HERE.parents[1])}/{args.table}.csv"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
