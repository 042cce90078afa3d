"""Messages about effects that wait for approval."""

from __future__ import annotations

from holdfast.model.approval_info import ApprovalInfo
from holdfast.model.ids import SessionId
from holdfast.wire.messages.base import Answer, Message, Request


class GetApprovals(Request, tag="approvals"):
    """What waits for approval, of one session or all that the asker may see, with what was decided
    lately. Answered by ApprovalsShown."""

    session: str = ""  # name or id; empty is all


class Approve(Request, tag="approve"):
    """Let it happen, as far as this actor is concerned; it is judged once more before it does.
    `not_permitted` without the right `approve` in its session, and to whoever had a part in it.
    Answered by ApprovalShown."""

    approval: str  # its id, or a beginning of `APPROVAL_ID_MIN_CHARS` or more that is unique
    note: str = ""  # for people to read in the journal; cut to `TURN_TEXT_MAX_CHARS`
    # decide nothing, and only try it out in a branch of the session that is thrown away;
    # `level_unavailable` where sessions cannot be branched, which is everywhere yet
    try_first: bool = False
    # the `version` that the actor read; when it is another by now, `approval_changed`. Empty: not
    # checked
    seen: str = ""


class Deny(Request, tag="deny"):
    """Refuse it, for good; by anybody who could approve it. Answered by ApprovalShown."""

    approval: str  # as in `approve`
    note: str = ""  # for whoever asked, and people who read the journal; cut as there
    seen: str = (
        ""  # the `version` that the actor read, for the journal; it is refused whatever it is
    )


class ApprovalsShown(Answer, tag="approvals_shown"):
    approvals: tuple[ApprovalInfo, ...]  # what waits first, the oldest first


class ApprovalShown(Answer, tag="approval_shown"):
    approval: ApprovalInfo  # as it is after that


class ApprovalMessage(Message, tag="approval_event"):
    """Something waits for approval, or no longer does. To all who watch the session or are
    attached to it."""

    session: SessionId  # id of the session
    # `asked`, `approved`, `denied`, `expired` or `withdrawn`; `counted` when more must approve
    step: str
    at: float  # when, seconds since 1970
    actor: str  # who did it, by name; empty is the host
    approval: ApprovalInfo  # as it is after that
    note: str = ""  # what was said with it
