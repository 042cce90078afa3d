"""The answer to `hold why`, for people."""

from __future__ import annotations

from holdfast.cli.text.sanitize import sanitize
from holdfast.cli.text.table import clock
from holdfast.model.why import WhoIsBehind

_COMMAND_CHARS = 200


def render(why: WhoIsBehind) -> str:
    """One line that answers, then one for each command of the chain."""
    names = ", ".join(map(sanitize, why.originators))
    if why.adopted:
        who = f"{names} (adopted)"
    elif not why.known:
        who = f"unknown; may be of {names}" if names else "unknown"
    else:
        who = names or "nobody here"
    lines = [f"{sanitize(why.target)}: {who}"]
    if why.note:
        lines.append(f"  {sanitize(why.note)}")
    for link in why.chain:
        text = sanitize(link.text, _COMMAND_CHARS)
        others = [name for name in link.authors if name != link.actor]
        typed = f", with input of {', '.join(map(sanitize, others))}" if others else ""
        lines.append(f"  #{link.number}  {clock(link.at)}  {sanitize(link.actor)}{typed}  {text}")
        lines.append(f"      {sanitize(link.what)}")
    return "\n".join(lines) + "\n"
