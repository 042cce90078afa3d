"""Effects that a policy holds until enough others approve, of one session.

    pending -> approved: as many as the policy asks for have approved; it is then judged again
            -> denied: somebody who could approve said no
            -> expired: nobody did in time
            -> withdrawn: by whoever asked, or because it can no longer happen

Nobody approves what they had a part in. Whether an actor has the right to approve in the session is
judged before it comes here (core.session). Deliberately absent: what happens to the effect.
"""

from __future__ import annotations

from enum import StrEnum

from holdfast.model.actor import ActorKind
from holdfast.model.errors import LimitReached, NoSuchApproval, NotPermitted
from holdfast.model.gate import Contributor, ProposedEffect, Verdict, is_approver
from holdfast.model.ids import ActorId
from holdfast.model.limits import (
    APPROVAL_TEXT_MAX_BYTES,
    APPROVALS_PENDING,
    APPROVALS_REMEMBERED,
)
from holdfast.model.record import Record


class ApprovalStatus(StrEnum):
    """What has become of a request for approval."""

    PENDING = "pending"
    APPROVED = "approved"
    DENIED = "denied"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"


class Approval(Record):
    """What is asked, of whom, and who said yes."""

    id: str
    kind: str  # of the effect
    text: str  # exactly what would be done
    actor: ActorId  # who sets it off
    contributors: tuple[Contributor, ...]
    reason: str
    policy: str
    quorum: int
    approvers: tuple[str, ...]  # names or kinds; empty: everybody with the right
    asked_at: float
    expires_at: float
    approved_by: tuple[ActorId, ...] = ()
    status: ApprovalStatus = ApprovalStatus.PENDING
    text_known: bool = True
    cwd: str = ""  # when it was asked
    offset: int = 0  # of the output then

    def may_approve(self, actor: ActorId, name: str, kind: ActorKind) -> bool:
        """Apart from the right to approve in that session."""
        return is_approver(self.approvers, name, kind) and not self.has_part(actor)

    def has_part(self, actor: ActorId) -> bool:
        return actor == self.actor or any(each.actor == actor for each in self.contributors)


class Approvals:
    """Those of one session."""

    def __init__(self, pending: tuple[Approval, ...] = ()) -> None:
        self._pending = {each.id: each for each in pending}
        self._decided: list[Approval] = []

    @property
    def pending(self) -> tuple[Approval, ...]:
        return tuple(self._pending.values())

    @property
    def decided(self) -> tuple[Approval, ...]:
        """The latest, oldest first."""
        return tuple(self._decided)

    def get(self, id: str) -> Approval | None:
        return self._pending.get(id)

    def ask(
        self,
        id: str,
        effect: ProposedEffect,
        verdict: Verdict,
        now: float,
        expires_at: float,
        offset: int,
    ) -> Approval:
        """A new one. Raises LimitReached when no more can be kept."""
        size = sum(len(each.text.encode()) for each in self.pending) + len(effect.text.encode())
        if len(self._pending) >= APPROVALS_PENDING or size > APPROVAL_TEXT_MAX_BYTES:
            raise LimitReached("too much waits for approval in this session to hold this too")
        approval = Approval(
            id,
            str.__str__(effect.kind),
            effect.text,
            effect.actor,
            effect.contributors,
            verdict.reason,
            verdict.policy,
            max(1, verdict.quorum),
            verdict.approvers,
            now,
            expires_at,
            text_known=effect.text_known,
            cwd=effect.cwd,
            offset=offset,
        )
        self._pending[id] = approval
        return approval

    def check(self, id: str, actor: ActorId, name: str, kind: ActorKind) -> Approval:
        """That this actor may decide about it."""
        approval = self._pending.get(id)
        if approval is None:
            raise NoSuchApproval(
                f"nothing waits for approval by {id}", hint="`hold approvals` lists what waits"
            )
        if approval.has_part(actor):
            raise NotPermitted(
                f"{name} had a part in it, and nobody approves their own",
                hint="somebody else has to decide; ^C in the session withdraws it",
            )
        if not approval.may_approve(actor, name, kind):
            raise NotPermitted(
                f"the policy lets {', '.join(approval.approvers)} decide about it, not {name}"
            )
        return approval

    def approve(self, id: str, actor: ActorId, name: str, kind: ActorKind) -> Approval:
        """By one more. Its status says whether they are enough."""
        approval = self.check(id, actor, name, kind)
        if actor not in approval.approved_by:
            approval = approval.replace(approved_by=(*approval.approved_by, actor))
        if len(approval.approved_by) < approval.quorum:
            self._pending[id] = approval
            return approval
        return self._over(approval, ApprovalStatus.APPROVED)

    def deny(self, id: str, actor: ActorId, name: str, kind: ActorKind) -> Approval:
        return self._over(self.check(id, actor, name, kind), ApprovalStatus.DENIED)

    def withdraw(self, id: str) -> Approval | None:
        """What it is about will not happen."""
        approval = self._pending.get(id)
        return None if approval is None else self._over(approval, ApprovalStatus.WITHDRAWN)

    def expire(self, now: float) -> tuple[Approval, ...]:
        due = [each for each in self.pending if each.expires_at <= now]
        return tuple(self._over(each, ApprovalStatus.EXPIRED) for each in due)

    def next_expiry(self) -> float | None:
        return min((each.expires_at for each in self._pending.values()), default=None)

    def _over(self, approval: Approval, status: ApprovalStatus) -> Approval:
        del self._pending[approval.id]
        approval = approval.replace(status=status)
        self._decided.append(approval)
        del self._decided[:-APPROVALS_REMEMBERED]
        return approval
