"""`python -m bench`: measure, print the table, write what was asked for."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from importlib import import_module
from types import FrameType, ModuleType

from bench.machine import describe
from bench.report import as_json, write_docs, write_results
from bench.results import Row, missed, plain_table
from bench.stage import QUICK, Scale, staged

# In the order of the table. The idle sessions come last: their remains weigh on what follows.
MEASURES = (
    "throughput",
    "echo",
    "attribution",
    "attach",
    "stalled",
    "start",
    "halt",
    "checkpoint",
    "exec_gate",
    "journal",
    "gate",
    "reach",
    "relay",
    "web",
    "mcp",
    "idle",
)
_DOCS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "docs")


def main() -> int:
    options = _options()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _leave)  # so that everything is taken down
    names = options.only or list(MEASURES)
    measures = [import_module(f"bench.measure_{name}") for name in names]
    rows: list[Row] = []
    failed = False
    with staged(QUICK if options.quick else Scale()) as stage:
        machine = describe(stage)
        for name in stage.missing:
            print(f"bench: {name} is not installed; its ratios are n/a", file=sys.stderr)
        for name, measure in zip(names, measures, strict=True):
            began = time.monotonic()
            try:
                rows += _measured(measure, stage)
            except Exception as error:
                failed = True
                print(f"bench: {name} failed: {type(error).__name__}: {error}", file=sys.stderr)
                if options.debug:
                    raise
            print(f"bench: {name} took {time.monotonic() - began:.1f} s", file=sys.stderr)
    print(plain_table(rows))
    for row in rows:
        if row.note:
            print(f"  {row.name}: {row.note}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            file.write(as_json(machine, rows))
    if options.into:
        write_results(options.into, machine, rows)
        print(f"bench: all samples and the plot are in {options.into}/results.*", file=sys.stderr)
    if options.update_docs:
        write_docs(_DOCS, machine, rows, measures, _command(options))
    return 1 if options.strict and (failed or missed(rows)) else 0


def _measured(measure: ModuleType, stage: object) -> list[Row]:
    rows: list[Row] = measure.measure(stage)
    return rows


def _command(options: argparse.Namespace) -> str:
    return ".venv/bin/python -m bench" + (" --quick" if options.quick else "")


def _leave(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small amounts: does it all work?")
    parser.add_argument("--json", metavar="FILE", help="write all samples there")
    parser.add_argument("--into", metavar="DIRECTORY", help="results.json and results.svg there")
    parser.add_argument("--only", action="append", choices=MEASURES, help="may be repeated")
    parser.add_argument("--update-docs", action="store_true", help="write docs/benchmarks.*")
    parser.add_argument("--strict", action="store_true", help="exit 1 when a target is missed")
    parser.add_argument("--debug", action="store_true", help="stop at the first failure")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
