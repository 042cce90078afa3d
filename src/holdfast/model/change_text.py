"""One change of a shell's state as one line for a new turn holder: the text for
`model.shell_state.Change`. What changed is found in `core.shell_changes`."""

from __future__ import annotations

from holdfast.model.shell_state import Change, ChangeKind, What

_WORDS = {
    ChangeKind.ENV: "variable",
    ChangeKind.ALIAS: "alias",
    ChangeKind.FUNCTION: "function",
    ChangeKind.OPTION: "option",
    ChangeKind.TRAP: "trap on",
    ChangeKind.HASH: "remembered command",
    ChangeKind.JOB: "job",
}


def text(change: Change) -> str:
    """One line for people, without control characters."""
    before, after = _plain(change.before), _plain(change.after)
    name = _plain(change.name)
    if change.kind is ChangeKind.CWD:
        return f"directory: {before} -> {after}"
    if change.kind is ChangeKind.UMASK:
        return f"umask: {before} -> {after}"
    if change.kind is ChangeKind.PATH:
        return f"PATH: {_plain(_path(change))}"
    if change.kind is ChangeKind.OPTION:
        return f"option {name}: {'off' if change.what is What.REMOVED else 'on'}"
    if change.kind is ChangeKind.JOB:
        return _job(name, change.what, before, after)
    said = f"{_WORDS[change.kind]} {name} {change.what}"
    if change.what is What.CHANGED and (before or after):
        return f"{said}: {before} -> {after}"
    if change.what is What.ADDED and after:
        return f"{said}: {after}"
    return said


def _path(change: Change) -> str:
    """Directories added and removed; if only the order changed, the whole PATH."""
    old, new = change.before.split(":"), change.after.split(":")
    if change.what is not What.CHANGED:
        return f"{change.what} {change.after}".rstrip()
    came = [f"{d or '.'}{' (first)' if d == new[0] else ''}" for d in new if d not in old]
    went = [d or "." for d in old if d not in new]
    said = [f"added {', '.join(came)}"] if came else []
    said += [f"removed {', '.join(went)}"] if went else []
    return "; ".join(said) or f"now in the order {change.after}"


def _job(pid: str, what: What, before: str, after: str) -> str:
    if what is What.REMOVED:
        return f"job {pid} gone: {before}"
    return f"job {pid}: {after}" if what is What.ADDED else f"job {pid}: {before} -> {after}"


def _plain(value: str) -> str:
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in value)
