"""The result as JSON and as docs/benchmarks.md."""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from types import ModuleType

from bench.chart import svg
from bench.results import Row, markdown_table

Machine = Mapping[str, object]

_INTRODUCTION = """# Benchmarks

<!-- Written by `python -m bench --update-docs`. Do not edit by hand. -->

    {command}

Holdfast beside tmux, dtach and screen in one run on one machine: the systems take turns, so that
whatever else the machine does hits all of them. Values are medians unless a percentile is named.
Believe the ratios more than the numbers.

![The table below as bars](benchmarks.svg)

"""

_NOT_MEASURED = """## What is not measured

- A terminal that draws. The client's terminal is a PTY that is read as fast as it prints, so a
  person sees no more than their own terminal emulator can show, in any of these systems.
- A network. Everything is on one machine; over `ssh` the line decides.
- Latency while the session prints a flood, and many clients that type at once.
- Memory of the sessions' own programs, and of screens that have been drawn: an idle session that
  printed little has none.
- What holdfast does beside (exactly-once input, output that survives a daemon crash, containment):
  it is in all of its numbers, and in none of the peers'.
"""


def as_json(machine: Machine, rows: Sequence[Row]) -> str:
    made = [{**asdict(row), "ratio": row.ratio, "met": row.met} for row in rows]
    return json.dumps({"machine": machine, "rows": made}, indent=1, ensure_ascii=False) + "\n"


def write_results(directory: str, machine: Machine, rows: Sequence[Row]) -> None:
    """All samples as results.json, and the table as bars in results.svg."""
    os.makedirs(directory, exist_ok=True)
    with open(f"{directory}/results.json", "w", encoding="utf-8") as file:
        file.write(as_json(machine, rows))
    with open(f"{directory}/results.svg", "w", encoding="utf-8") as file:
        file.write(svg(rows))


def document(
    machine: Machine, rows: Sequence[Row], measures: Sequence[ModuleType], command: str
) -> str:
    parts = [_INTRODUCTION.format(command=command), _machine(machine), markdown_table(rows)]
    notes = [f"- {row.name}: {row.note}" for row in rows if row.note]
    parts.append("\n\nNotes of this run:\n\n" + "\n".join(notes) + "\n" if notes else "\n")
    parts.append("\n## How each is measured\n")
    for measure in measures:
        head, _, rest = inspect.cleandoc(measure.__doc__ or "").partition("\n\n")
        parts.append(f"\n**{head}** {' '.join(rest.split())}\n")
    return "".join(parts) + "\n" + _NOT_MEASURED


def _machine(machine: Machine) -> str:
    versions = machine["versions"]
    assert isinstance(versions, dict)
    peers = ", ".join(f"{name} {version}" for name, version in versions.items())
    missing = machine["missing"]
    absent = f" Not installed: {missing}." if missing else ""
    return (
        f"{machine['date']}, {machine['cpu']}, {machine['cores']} cores, Linux "
        f"{machine['kernel']}, Python {machine['python']}; {peers}.{absent} Load average before: "
        f"{machine['load_average_before']}.\n\n"
    )


def write_docs(
    directory: str,
    machine: Machine,
    rows: Sequence[Row],
    measures: Sequence[ModuleType],
    command: str,
) -> None:
    with open(f"{directory}/benchmarks.md", "w", encoding="utf-8") as file:
        file.write(document(machine, rows, measures, command))
    with open(f"{directory}/benchmarks.svg", "w", encoding="utf-8") as file:
        file.write(svg(rows))
