"""What changed in a shell while others held the turn: two states in, the differences out.

A new holder trusts what it is about to type only if it knows what will be made of it: a PATH that
leads elsewhere, an alias, a trap. `model.change_text` says one difference in one line.

Deliberately absent: who made a change (the journal knows who held the turn when), any judgement of
it, and the values of variables that do not shape commands (`model.shell_state` has none).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from holdfast.model.limits import CHANGE_VALUE_MAX_CHARS
from holdfast.model.shell_state import Change, ChangeKind, ShellState, What, shapes_commands


def changes(before: ShellState | None, after: ShellState) -> tuple[Change, ...]:
    """What is different now, in a fixed order. Without an earlier state nothing is known to be."""
    if before is None:
        return ()
    return tuple(_changes(before, after))


def _changes(before: ShellState, after: ShellState) -> Iterator[Change]:
    if before.cwd != after.cwd:
        yield _change(ChangeKind.CWD, "", What.CHANGED, before.cwd, after.cwd)
    if before.umask != after.umask:
        yield _change(ChangeKind.UMASK, "", What.CHANGED, before.umask, after.umask)
    for name, what, old, new in _differences(before.exported, after.exported):
        shown = shapes_commands(name)
        kind = ChangeKind.PATH if name == "PATH" else ChangeKind.ENV
        yield _change(kind, name, what, old if shown else "", new if shown else "")
    both = before.exported.keys() | after.exported.keys()
    for name, what, old, new in _differences(before.variables, after.variables):
        if name not in both:  # it was said above
            yield _change(ChangeKind.ENV, name, what, old, new)
    yield from _of(ChangeKind.ALIAS, before.aliases, after.aliases)
    for name, what, old, new in _differences(before.functions, after.functions):
        if what is not What.CHANGED or (old and new):  # else one of the bodies is not known
            yield Change(ChangeKind.FUNCTION, name, what)
    options = dict.fromkeys(before.options, ""), dict.fromkeys(after.options, "")
    yield from _of(ChangeKind.OPTION, *options)
    yield from _of(ChangeKind.TRAP, before.traps, after.traps)
    yield from _of(ChangeKind.HASH, before.hashed, after.hashed)
    yield from _of(ChangeKind.JOB, before.jobs, after.jobs)


def _of(kind: ChangeKind, before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[Change]:
    for name, what, old, new in _differences(before, after):
        yield _change(kind, name, what, old, new)


def _differences(
    before: Mapping[str, str], after: Mapping[str, str]
) -> Iterator[tuple[str, What, str, str]]:
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name), after.get(name)
        if old is None:
            yield name, What.ADDED, "", new or ""
        elif new is None:
            yield name, What.REMOVED, old, ""
        elif old != new:
            yield name, What.CHANGED, old, new


def _change(kind: ChangeKind, name: str, what: What, before: str, after: str) -> Change:
    return Change(kind, name, what, _cut(before), _cut(after))


def _cut(value: str) -> str:
    return value if len(value) <= CHANGE_VALUE_MAX_CHARS else value[:CHANGE_VALUE_MAX_CHARS] + "…"
