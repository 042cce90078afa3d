"""Requests to list, approve and deny what a policy holds. Whether the asker may is judged by the
session machine; an approval of a session that it may not observe does not exist for it."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Protocol

from holdfast.core.gate.approvals import ApprovalStatus
from holdfast.host.connection.operator_connection import OperatorConnection
from holdfast.host.connection.operators import AttendedSession, Operators
from holdfast.host.gate.approval_notices import ApprovalNotices
from holdfast.host.session_store import Stored
from holdfast.model.actor import Actor
from holdfast.model.approval_info import ApprovalInfo
from holdfast.model.errors import InvalidArgument, LevelUnavailable, NoSuchApproval
from holdfast.model.ids import SessionId
from holdfast.model.limits import APPROVAL_ID_MIN_CHARS
from holdfast.ports.try_first import TryFirst
from holdfast.wire.messages import gate_approvals as m
from holdfast.wire.messages.base import Answer


class ApprovalSession(AttendedSession, Protocol):
    """A live session, as far as its approvals are asked about."""

    approving: ApprovalNotices


class SessionsSeenBy(Protocol):
    """The live sessions that an actor may see."""

    def seen_live(self, actor: Actor) -> Sequence[ApprovalSession]: ...


class NoBranches(TryFirst):
    """Sessions cannot be branched yet."""

    async def tried(self, session: SessionId, approval: str) -> ApprovalInfo:
        raise LevelUnavailable(
            "nothing can be tried first yet: no level can branch a session",
            hint="approve or deny it by what `hold approvals` shows",
        )


class ApprovalRequests:
    """Handlers of one host."""

    def __init__(self, registry: SessionsSeenBy, audience: Operators, branches: TryFirst) -> None:
        self._registry, self._audience, self._branches = registry, audience, branches

    def approvals(
        self,
        operator: OperatorConnection,
        request: m.GetApprovals,
        found: ApprovalSession | Stored | None,
    ) -> Answer:
        lives: Sequence[ApprovalSession] = []
        if found is None:
            lives = self._seen(operator)
        elif not isinstance(found, Stored):
            lives = [found]
        every = [info for live in lives for info in live.approving.all()]
        every.sort(key=lambda info: (info.status != ApprovalStatus.PENDING, info.asked_at))
        return m.ApprovalsShown(request.id, tuple(every))

    def approve(
        self, operator: OperatorConnection, request: m.Approve
    ) -> Answer | Awaitable[Answer]:
        if request.try_first:
            return self._tried(operator, request)
        return self._decide(operator, request, approve=True)

    async def _tried(self, operator: OperatorConnection, request: m.Approve) -> Answer:
        live, id = self._find(operator, request.approval)
        return m.ApprovalShown(request.id, await self._branches.tried(live.spec.id, id))

    def deny(self, operator: OperatorConnection, request: m.Deny) -> Answer:
        return self._decide(operator, request, approve=False)

    def _decide(
        self, operator: OperatorConnection, request: m.Approve | m.Deny, *, approve: bool
    ) -> Answer:
        live, id = self._find(operator, request.approval)
        decided = live.approving.decide(
            operator.actor.id, id, request.note, request.seen, approve=approve
        )
        return m.ApprovalShown(request.id, decided)

    def _seen(self, operator: OperatorConnection) -> list[ApprovalSession]:
        seen = self._registry.seen_live(operator.actor)
        return [live for live in seen if self._audience.others_may_see(operator, live)]

    def _find(self, operator: OperatorConnection, text: str) -> tuple[ApprovalSession, str]:
        """By its id, or by a beginning of it that no other has."""
        if len(text) < APPROVAL_ID_MIN_CHARS:
            raise InvalidArgument(
                f"{text[:40]!r} is too short to name an approval",
                hint=f"its id, or {APPROVAL_ID_MIN_CHARS} or more characters of it",
            )
        every = [(live, info) for live in self._seen(operator) for info in live.approving.all()]
        named = [(live, info) for live, info in every if info.id.startswith(text)]
        pending = [each for each in named if each[1].status == ApprovalStatus.PENDING]
        if len(pending) == 1:
            return pending[0][0], pending[0][1].id
        if len(pending) > 1:
            raise InvalidArgument(
                f"several approvals begin with {text!r}", hint="write more of the id"
            )
        if named:
            status = named[-1][1].status
            raise NoSuchApproval(f"it is no longer waiting: it was {status}")
        raise NoSuchApproval(
            f"nothing waits for approval by {text[:40]!r}", hint="`hold approvals` lists what waits"
        )
