"""Run a table: ``python -m llpbook.reproduce TABLE [--seeds 5] [--jobs 2] [--only dataset=heart method=MeanMap]``."""

import argparse
import shlex
import sys

from . import summary, tables
from .runner import HERE, RESULTS, as_text, done, run_table


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


def positive(text):
    """A whole number from 1."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {value}")
    return value


def main(argv=None):
    """Command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        "python -m llpbook.reproduce",
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
        "--list",
        action="store_true",
        help="list the tables, and the rows that are there",
    )
    parser.add_argument(
        "--results",
        metavar="DIR",
        help="folder of the results (default: that of the source checkout)",
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
    if args.results is None and not (HERE.parents[1] / "pyproject.toml").exists():
        parser.error(
            "this is an installed copy, whose results are not to be changed: give --results DIR"
        )
    command = [
        "python",
        "-m",
        "llpbook.reproduce",
        args.table,
        "--seeds",
        str(args.seeds),
        "--jobs",
        str(args.jobs),
    ]
    command += ["--only", *args.only] if args.only else []

    def report(cell, seed, found, count, total):
        values = " ".join(f"{key}={as_text(value)}" for key, value in cell.items())
        print(
            f"[{count}/{total}] {values} seed={seed}: {found['seconds']:.1f} s",
            file=sys.stderr,
            flush=True,
        )

    try:
        written = run_table(
            known[args.table],
            args.seeds,
            args.jobs,
            parse_only(args.only),
            args.results,
            shlex.join(command),
            report,
        )
        print(
            summary(known[args.table], results=args.results)
            .round(4)
            .to_string(index=False)
        )
    except ValueError as error:
        parser.error(str(error))
    print(
        f"{written} new rows in {args.results or RESULTS.relative_to(HERE.parents[1])}/{args.table}.csv"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
