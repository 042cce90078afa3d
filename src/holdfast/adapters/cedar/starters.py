"""Policies that need no writing, and are a beginning for one's own: `hold policy show` prints them.

Written in TOML where TOML can say it.
"""

from __future__ import annotations

import json
import re

from holdfast.model.errors import PolicyInvalid

PREFIX = "starter:"
_TWO_PERSON = "two-person"

_PLAIN = {
    "agents-observe": '''\
# Agents may look. A line that an agent set off, typed some of, or shaped is refused.
default = "allow"

[[rule]]
name = "agents-observe"
who = "agent"
then = "refuse"
reason = "agents may look here, and change nothing"
''',
    "hold-destructive": '''\
# What destroys waits for a person, if an agent had a part in it. So does what could not be read.
default = "allow"

[[rule]]
name = "hold-destructive"
who = "agent"
what = ["line", "input"]
destructive = true
then = "hold"
approvers = "human"
reason = "it may destroy something, and an agent had a part in it"

# Programs that scripts start (level contained). Builds remove single files all the time.
[[rule]]
name = "hold-destructive-programs"
who = "agent"
what = "exec"
destroys = ["rm-recursive", "disk", "shutdown", "force-push", "discard-work", "rewrite-history",
            "drop-table", "delete-rows", "empty-store", "delete-resource", "kill-all", "accounts",
            "firewall", "packages", "sessions", "stop-service"]
unread = false
then = "hold"
approvers = "human"
reason = "a program may destroy something, and an agent had a part in it"
''',
    "agents-in-workspace": '''\
# What an agent had a part in writes nothing outside the session's workspace. People may.
default = "allow"

[[rule]]
name = "agents-in-workspace"
who = "agent"
what = ["line", "input"]
writes_outside = true
then = "refuse"
reason = "an agent writes only in the session's workspace"

# What programs do (level contained): files are judged when they are opened, so what a program's
# own code says need not be known.
[[rule]]
name = "agents-in-workspace-programs"
who = "agent"
what = ["exec", "write-open", "unlink", "rename"]
writes_outside = true
unread = false
then = "refuse"
reason = "an agent writes only in the session's workspace"
''',
}  # fmt: skip

NAMES = (*sorted(_PLAIN), f"{_TWO_PERSON} PATTERN")


def starter(name: str) -> str:
    """The text of one, by what follows `starter:`. Raises PolicyInvalid."""
    if name in _PLAIN:
        return _PLAIN[name]
    word, pattern = re.match(r"([\w-]*)[ :]?(.*)", name, re.DOTALL).groups()  # type: ignore[union-attr]
    if word == _TWO_PERSON and pattern.strip():
        return _two_person(pattern.strip())
    if word == _TWO_PERSON:
        raise PolicyInvalid(
            "two-person needs a pattern of commands",
            hint="hold policy set starter:'two-person terraform apply*'",
        )
    raise PolicyInvalid(f"there is no starter {name[:60]!r}", hint=f"one of {', '.join(NAMES)}")


def _two_person(pattern: str) -> str:
    if not pattern.isprintable():
        raise PolicyInvalid(f"not a pattern: {pattern[:60]!r}")
    # A text of TOML is one of JSON, if its characters are printable.
    lines = json.dumps(pattern, ensure_ascii=False)
    return f"""\
# Who presses Enter is not enough: one other person approves. So does what could not be read.
default = "allow"

[[rule]]
name = "two-person"
what = ["line", "input"]
lines = {lines}
then = "hold"
quorum = 1
approvers = "human"
reason = "two people: one presses Enter, another one approves"

# The same command in a script (level contained). What a held line starts is approved with it.
[[rule]]
name = "two-person-programs"
what = "exec"
lines = {lines}
unread = false
then = "hold"
quorum = 1
approvers = "human"
reason = "two people: one runs it, another one approves"
"""
