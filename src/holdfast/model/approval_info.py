"""What is shown of an effect that waits for approval: the fields of `hold approvals --json`."""

from __future__ import annotations

from holdfast.model.gate import Contributor
from holdfast.model.ids import SessionId
from holdfast.model.record import Record


class ApprovalInfo(Record):
    """An effect that a policy holds until enough others approve."""

    id: str  # 8 hexadecimal digits
    session: SessionId  # the session's id
    name: str  # its name
    kind: str  # of the effect: `line`, `input`, `signal`, `end`, ...
    text: str  # exactly what would be done; of a line what the shell is about to take
    actor: str  # who sets it off, by name
    contributors: tuple[Contributor, ...]  # everybody who had a part in it, that actor first
    reason: str  # why it is held, in the policy's words
    policy: str  # where that rule is: `host`, `label:NAME` or `session`, with its id
    quorum: int  # so many must approve
    approved_by: tuple[str, ...]  # who has approved, by name
    asked_at: float  # seconds since 1970
    expires_at: float  # then it is refused, seconds since 1970
    # `pending`, `approved`, `denied`, `expired` or `withdrawn`
    status: str
    changed: tuple[str, ...] = ()  # what changed in the session since it was asked, for people
    approvers: tuple[str, ...] = ()  # names or kinds who may approve; empty: all with the right
    text_known: bool = True  # false: the shell did not say what its line is; `text` is empty
    cwd: str = ""  # the working directory when it was asked
    user: str = ""  # the unix user that it would run as
    workspace: str = ""  # the session's
    # false: what changed is not known, besides what `changed` has: it was asked before this daemon
    # began, or the shell does not report its state
    changes_known: bool = True
    # names all that a decision rests on; another one must be read again. `approve` takes it
    version: str = ""
