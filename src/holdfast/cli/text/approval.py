"""What waits for approval, for people to read."""

from __future__ import annotations

import time

from holdfast.cli.text.sanitize import sanitize
from holdfast.cli.text.table import ago
from holdfast.model.approval_info import ApprovalInfo
from holdfast.wire.messages.gate_approvals import ApprovalMessage


def held_sentence(approval: ApprovalInfo) -> str:
    """That it waits, for whom, and what to do; one line."""
    who = " or ".join(approval.approvers) or "somebody else"
    if approval.quorum > 1:
        who = f"{approval.quorum} of them: {who}"
    reason = f" ({sanitize(approval.reason)})" if approval.reason else ""
    return (
        f"it waits for approval by {who}{reason}: `hold approve {approval.id}`; ^C in the session "
        "takes it back"
    )


def approval_news(event: ApprovalMessage, you: str) -> str:
    """What happened to one, for the notice line of an attached terminal."""
    approval, by = event.approval, sanitize(event.actor)
    yours = approval.actor == you
    whose = "your" if yours else f"{sanitize(approval.actor)}'s"
    what = "line" if approval.kind in ("line", "input") else sanitize(approval.kind)
    if event.step == "asked":
        who = " or ".join(map(sanitize, approval.approvers)) or "somebody else"
        decide = "^C takes it back" if yours else f"`hold approve {approval.id}`"
        return f"{whose} {what} waits for approval by {who}; {decide}"
    note = f": {sanitize(event.note)}" if event.note else ""
    if event.step == "counted":
        have = f"{len(approval.approved_by)} of {approval.quorum}"
        return f"{by} approved {whose} {what} ({have}){note}"
    if event.step in ("approved", "denied"):
        return f"{by} {event.step} {whose} {what}{note}"
    return f"the approval of {whose} {what} is {event.step}"


def approval_lines(approval: ApprovalInfo) -> list[str]:
    """Everything that somebody who decides must see."""
    now = time.time()
    head = f"{approval.id}  {approval.status}  {sanitize(approval.name)}  {approval.kind}"
    if approval.status == "pending":
        head += f"  asked {ago(now - approval.asked_at)} ago, {ago(approval.expires_at - now)} left"
    lines = [head]
    known = approval.text_known or approval.text
    text = approval.text if known else "(the shell does not say what it is)"
    # All of it: nobody approves what was cut away.
    lines += [f"    | {sanitize(line, len(line))}" for line in text.split("\n")]
    for each in approval.contributors:
        lines.append(f"    {sanitize(each.name)} ({each.kind}): {sanitize(each.did)}")
    where = f"    in {sanitize(approval.cwd)} as {sanitize(approval.user)}"
    lines.append(f"{where}, workspace {sanitize(approval.workspace)}")
    if approval.reason or approval.policy:
        where = f" ({sanitize(approval.policy)})" if approval.policy else ""
        lines.append(f"    because: {sanitize(approval.reason) or 'no reason given'}{where}")
    approved = ", ".join(map(sanitize, approval.approved_by)) or "nobody yet"
    who = f", of {' or '.join(map(sanitize, approval.approvers))}" if approval.approvers else ""
    lines.append(f"    approved by: {approved} (needs {approval.quorum}{who})")
    lines += [f"    changed since: {sanitize(each)}" for each in approval.changed]
    if approval.status == "pending":
        if not approval.changes_known:
            lines.append("    changed since: not known; the host or the shell does not say")
        lines.append(f"    to approve what you read here: {_command(approval)}")
    return lines


def _command(approval: ApprovalInfo) -> str:
    return f"hold approve {approval.id} --seen {approval.version}"
