"""Approvals of one session as others see them: each step is recorded, then announced."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable
from typing import NamedTuple

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
from holdfast.model.errors import ApprovalChanged, StorageFailed
from holdfast.model.gate import Part
from holdfast.model.ids import HOST_ACTOR, ActorId
from holdfast.model.shell_state import ShellState
from holdfast.wire.messages.gate_approvals import ApprovalMessage

_CHANGES_SHOWN = 20  # of what changed since; the rest is only counted
_FILES_LOOKED_AT = 20  # of those that others wrote and it uses
_VERSION_CHARS = 16
_PRINTED = "output: "  # a change that changes nothing of what would be done
_FILE = "file:"


def version_of(info: ApprovalInfo) -> str:
    """The same as long as nothing of it changed that a decision rests on: not who has approved, and
    not what was printed meanwhile, which goes on all the time."""
    rests_on = info.replace(
        name="",
        approved_by=(),
        status="",
        version="",
        changed=tuple(each for each in info.changed if not each.startswith(_PRINTED)),
    )
    packed = json.dumps(rests_on.pack(), sort_keys=True)
    return hashlib.sha256(packed.encode(errors="surrogatepass")).hexdigest()[:_VERSION_CHARS]


_File = tuple[int, int, int, int]  # device, inode, time of change, size


class _WhenAsked(NamedTuple):
    """How things were."""

    shell: ShellState | None  # None: the shell does not report
    files: dict[str, _File | None]  # that others wrote and it uses; None: not there

    @classmethod
    def of(cls, approval: Approval, shell: ShellState | None) -> _WhenAsked:
        wrote = (each.what for each in approval.contributors if each.part is Part.FILE)
        paths = {what.removeprefix(_FILE) for what in wrote if what.startswith(f"{_FILE}/")}
        return cls(shell, {path: _file(path) for path in sorted(paths)[:_FILES_LOOKED_AT]})

    def changed_files(self) -> Iterable[str]:
        for path, before in self.files.items():
            after = _file(path)
            if after != before:
                how = "was removed" if after is None else "changed" if before else "was made"
                yield f"file: {path} {how}"


def _file(path: str) -> _File | None:
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size


class ApprovalNotices:
    """Records and announces what happens to one session's approvals."""

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
        self._asked: dict[str, _WhenAsked] = {}  # by id; of what an earlier daemon asked nothing

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
        self._asked[approval.id] = _WhenAsked.of(approval, self._shell_state())
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
            self._asked.pop(approval.id, None)

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
        info = ApprovalInfo(
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
            approval.text_known,
            approval.cwd,
            spec.user,
            spec.workspace or spec.cwd,
            self._changes_known(approval) if pending else True,
        )
        return info.replace(version=version_of(info))

    def _changes_known(self, approval: Approval) -> bool:
        asked = self._asked.get(approval.id)
        if asked is None:
            return False
        reported = asked.shell is not None and self._shell_state() is not None
        return reported or not self._spec().is_shell

    def _changed(self, approval: Approval) -> Iterable[str]:
        """In the session, since it was asked: what it would do may have changed."""
        asked, after = self._asked.get(approval.id), self._shell_state()
        before = asked.shell if asked is not None else None
        found = changes(before, after) if after is not None else ()
        cwd = self._cwd()
        if cwd != approval.cwd and not any(each.kind == "cwd" for each in found):
            yield f"directory: {approval.cwd} -> {cwd}"
        for each in found[:_CHANGES_SHOWN]:
            yield change_text.text(each)
        if len(found) > _CHANGES_SHOWN:
            yield f"and {len(found) - _CHANGES_SHOWN} more changes of the shell's state"
        if asked is not None:
            yield from asked.changed_files()
        if printed := self._offset() - approval.offset:
            yield f"{_PRINTED}{printed} bytes"

    # -- deciding -------------------------------------------------------------------------------

    def decide(
        self, actor: ActorId, id: str, note: str, seen: str, *, approve: bool
    ) -> ApprovalInfo:
        """As an event; what the actor could see of it is recorded with the decision, with the
        version of it that the actor says to have read."""
        approval, saw = self._approvals.get(id), ""
        if approval is not None:
            info = self.info(approval)
            if approve and seen and seen != info.version:
                raise ApprovalChanged(
                    f"{id} has changed since you read it",
                    hint="`hold approvals` shows it as it is now; read it again, then decide",
                )
            saw = json.dumps({**info.pack(), "seen": seen[: len(info.version)]})
        self._handle(ev.ApprovalDecided(actor, now(), id, approve, shown_text(note), saw))
        known = {each.id: each for each in (*self._approvals.decided, *self._approvals.pending)}
        return self.info(known[id])
