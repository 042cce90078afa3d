"""The policies that the scenarios of the gate are tried under, as what `hold policy set` takes."""

from __future__ import annotations

# What an agent had a part in is not for a person to set off. An agent's own doing is free.
_SHARED = """\
@id("everything")
permit (principal, action, resource);

@id("not-for-another-to-set-off")
@reason("an agent had a part in this, and somebody else sets it off")
forbid (principal is Human, action, resource)
when { context.triggers && context.kinds.contains("agent") };
"""
_FORBIDDEN = """\
default = "allow"

[[rule]]
name = "no-agents"
who = "agent"
then = "refuse"
reason = "no agent acts here"
"""

# One line that no agent enters; an empty one, and every other, it may.
_ONE_LINE = """\
default = "allow"

[[rule]]
name = "not-this-line"
who = "agent"
what = ["line", "input"]
lines = ["echo sprung*"]
then = "refuse"
reason = "no agent enters this line"
"""

POLICIES = {
    "everything": 'default = "allow"\n',
    "shared": _SHARED,
    "forbidden": _FORBIDDEN,
    "one line": _ONE_LINE,
    "held": _FORBIDDEN.replace('then = "refuse"', 'then = "hold"'),
    "workspace": "starter:agents-in-workspace",
}
