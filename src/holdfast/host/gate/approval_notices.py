"""Approvals of one session as others see them: each step is recorded, then everybody is told."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable

from holdfast.core import events as ev
from holdfast.core.gate.approvals import Approval, Approvals, ApprovalStatus
from holdfast.core.shell_changes import changes
from holdfast.core.turn.machine import shown_text
from holdfast.host.clock import now
from holdfast.host.connection.operator_connection import OperatorConnection
from holdfast.host.session.parcel import SessionSpec
from holdfast.host.session.record import SessionRecord
from holdfast.journal import entries
from holdfast.model import change_text
from holdfast.model.approval_info import ApprovalInfo
from holdfast.model.errors import StorageFailed
from holdfast.model.ids import HOST_ACTOR, ActorId
from holdfast.model.shell_state import ShellState
from holdfast.wire.messages.gate_approvals import ApprovalMessage

_CHANGES_SHOWN = 20  # of what changed since; the rest is only counted


class ApprovalNotices:
    """Records and reports what happens to one session's approvals."""

    def __init__(
        self,
        spec: Callable[[], SessionSpec],
        approvals: Approvals,
        record: SessionRecord,
        *,
        name: Callable[[str], str],
        recipients: Callable[[], Iterable[OperatorConnection]],
        shell_state: Callable[[], ShellState | None],
        cwd: Callable[[], str],
        offset: Callable[[], int],
        handle: Callable[[ev.SessionEvent], object],
    ) -> None:
        self._spec, self._approvals, self._journal = spec, approvals, record
        self._name, self._recipients = name, recipients
        self._shell_state, self._cwd, self._offset = shell_state, cwd, offset
        self._handle = handle
        self._shells: dict[str, ShellState | None] = {}  # when it was asked, by id

    # -- what happened --------------------------------------------------------------------------

    def asked(self, approval: Approval, number: int) -> None:
        """What cannot be recorded is not held but refused."""
        try:
            self._journal.record(
                approval.actor,
                entries.ApprovalAskedEntry(
                    approval.id,
                    approval.kind,
                    approval.text,
                    approval.quorum,
                    approval.approvers,
                    approval.expires_at,
                ),
            )
        except StorageFailed as error:
            if number:
                self._handle(ev.CommitFailed(HOST_ACTOR, now(), number, error))
            else:
                self._handle(ev.EffectDropped(HOST_ACTOR, now(), approval.id))
            return
        self._shells[approval.id] = self._shell_state()
        self._announce("asked", approval.actor, approval)

    def closed(self, approval: Approval, by: str, note: str, saw: str) -> None:
        step: str = approval.status
        match approval.status:
            case ApprovalStatus.PENDING | ApprovalStatus.APPROVED:
                enough = approval.status is ApprovalStatus.APPROVED
                step = step if enough else "counted"
                body: entries.Body = entries.ApprovedEntry(approval.id, note, saw, enough)
            case ApprovalStatus.DENIED:
                body = entries.DeniedEntry(approval.id, note, saw)
            case _:
                body = entries.ApprovalOverEntry(approval.id, approval.status)
        self._journal.happened(by, body)
        self._announce(step, by, approval, note)
        if approval.status is not ApprovalStatus.PENDING:
            self._shells.pop(approval.id, None)

    def _announce(self, step: str, by: str, approval: Approval, note: str = "") -> None:
        info = self.info(approval)
        told = ApprovalMessage(self._spec().id, step, now(), self._name(by), info, note)
        for operator in self._recipients():
            operator.event(told)

    # -- what it is -----------------------------------------------------------------------------

    def all(self) -> list[ApprovalInfo]:
        """What waits, then what was decided, the latest last."""
        both = (*self._approvals.pending, *self._approvals.decided)
        return [self.info(each) for each in both]

    def info(self, approval: Approval) -> ApprovalInfo:
        spec, pending = self._spec(), approval.status is ApprovalStatus.PENDING
        return ApprovalInfo(
            approval.id,
            spec.id,
            spec.name,
            approval.kind,
            approval.text,
            self._name(approval.actor),
            approval.contributors,
            approval.reason,
            approval.policy,
            approval.quorum,
            tuple(map(self._name, approval.approved_by)),
            approval.asked_at,
            approval.expires_at,
            str.__str__(approval.status),
            tuple(self._changed(approval)) if pending else (),
            approval.approvers,
        )

    def _changed(self, approval: Approval) -> Iterable[str]:
        """In the session, since it was asked: what it would do may be something else now."""
        before, after = self._shells.get(approval.id), self._shell_state()
        found = changes(before, after) if after is not None else ()
        cwd = self._cwd()
        if cwd != approval.cwd and not any(each.kind == "cwd" for each in found):
            yield f"directory: {approval.cwd} -> {cwd}"
        for each in found[:_CHANGES_SHOWN]:
            yield change_text.text(each)
        if len(found) > _CHANGES_SHOWN:
            yield f"and {len(found) - _CHANGES_SHOWN} more changes of the shell's state"
        if printed := self._offset() - approval.offset:
            yield f"output: {printed} bytes"

    # -- deciding -------------------------------------------------------------------------------

    def decide(self, actor: ActorId, id: str, note: str, *, approve: bool) -> ApprovalInfo:
        """As an event; what the actor could see of it is recorded with the decision."""
        approval = self._approvals.get(id)
        saw = "" if approval is None else json.dumps(self.info(approval).pack())
        self._handle(ev.ApprovalDecided(actor, now(), id, approve, shown_text(note), saw))
        known = {each.id: each for each in (*self._approvals.decided, *self._approvals.pending)}
        return self.info(known[id])
