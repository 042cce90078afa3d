"""Patterns of rules, such as `terraform apply*`: `*` matches any text, everything else itself.

A pattern matches a command if it *could* be what the shell takes: `terraform $x` may be an apply.
"""

from __future__ import annotations

UNKNOWN = "…"  # in a command: text that only the running shell knows


def could_match(pattern: str, command: str) -> bool:
    """Whether some text in place of what is unknown makes the command match. A pattern without a
    star at its end means the command alone, or with arguments behind it."""
    if not pattern.endswith("*") and could_match(f"{pattern} *", command):
        return True
    # A word that is not known may become none, or several: the blanks beside it are unknown too.
    command = command.replace(f" {UNKNOWN}", UNKNOWN).replace(f"{UNKNOWN} ", UNKNOWN)
    # reached: how many characters of the command may be used up by the pattern so far.
    reached = _through_unknown({0}, command)
    for mark in pattern:
        if not reached:
            return False
        if mark == "*":
            reached = set(range(min(reached), len(command) + 1))
            continue
        stepped = {at + 1 for at in reached if at < len(command) and command[at] == mark}
        # Unknown text may hold this character, and more of them.
        stayed = {at for at in reached if at < len(command) and command[at] == UNKNOWN}
        stayed |= {at for at in reached if at > 0 and command[at - 1] == UNKNOWN}
        reached = _through_unknown(stepped | stayed, command)
    return len(command) in reached


def _through_unknown(reached: set[int], command: str) -> set[int]:
    """Unknown text may be empty."""
    found = set(reached)
    for at in sorted(reached):
        while at < len(command) and command[at] == UNKNOWN:
            at += 1
            found.add(at)
    return found


def matching(patterns: tuple[str, ...], lines: tuple[str, ...]) -> tuple[str, ...]:
    """Those that one of the commands could match."""
    return tuple(
        pattern for pattern in patterns if any(could_match(pattern, line) for line in lines)
    )
