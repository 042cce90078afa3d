"""A live session, as it should be known if its host died: looked at in two steps. `look`, on the
event loop, reads what belongs to the daemon; `NearLook.finished`, in a thread, reads the shell's
state file.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from holdfast.adapters.session_memory.output_ring import Ring
from holdfast.adapters.shell.state_file import read_exported
from holdfast.core.session import SessionMachine
from holdfast.host.near_end import NearEnd
from holdfast.host.session import describe
from holdfast.host.session.output import OutputPump
from holdfast.host.session.parcel import SessionSpec
from holdfast.host.session.presence import Presence
from holdfast.host.session.screen_view import View
from holdfast.host.session.shell_commands import ShellCommands
from holdfast.model.info import HeldLine, LastKnown
from holdfast.model.limits import NEAR_END_OUTPUT_BYTES
from holdfast.model.record import Record
from holdfast.model.state import SessionState


class NearLook(Record):
    """What the event loop saw, and where the rest is."""

    seen: NearEnd
    state_file: str  # the shell's; empty: it reports none
    nonce: str
    uid: int
    first_cwd: str

    def finished(self, before: Callable[[], NearEnd | None]) -> NearEnd:
        """With what the shell last reported. Reads files and takes them apart: not on the loop.
        `before`: what was written last, for what can no longer be seen of a tree that is gone."""
        if self.seen.known.cwd:
            return self._with_report()
        last = before()
        known = self.seen.known.replace(cwd=last.known.cwd if last is not None else self.first_cwd)
        if last is not None:
            known = known.replace(state=last.known.state)
        return self.replace(seen=self.seen.replace(known=known))._with_report()

    def _with_report(self) -> NearEnd:
        if not self.state_file:
            return self.seen
        reported = read_exported(self.state_file, self.nonce, self.uid)
        if reported is None:
            return self.seen
        environment, jobs = reported
        known = self.seen.known.replace(jobs=jobs)
        return self.seen.replace(known=known, environment=environment)


class NearSession(Protocol):
    """A live session, as far as its near end is concerned."""

    spec: SessionSpec
    core: SessionMachine
    ring: Ring
    view: View
    presence: Presence
    commands: ShellCommands
    output: OutputPump

    def state(self) -> SessionState: ...

    @property
    def state_file(self) -> str: ...


def look(live: NearSession, name: Callable[[str | None], str]) -> NearLook:
    """Cheap: nothing is parsed, and a session that has no screen yet does not get one for this."""
    spec, ring, core = live.spec, live.ring, live.core
    clients = {each.id: each.client for each in live.presence.attached()}
    painted_at, painted = live.view.painted()
    start = max(ring.tail, ring.head - NEAR_END_OUTPUT_BYTES)
    seen = NearEnd(
        known=LastKnown(
            at=time.time(),
            state=live.state(),
            cwd=describe.cwd_now(spec),
            held=tuple(
                HeldLine(each.id, each.text, name(each.actor)) for each in core.approvals.pending
            ),
            present=describe.present(core.attachments, clients, name),
            holder=name(core.turn.holder),
        ),
        size=core.size,
        title=live.view.title,
        output_from=start,
        output=ring.copy(start, ring.head),
        painted_at=painted_at,
        painted=painted,
        last_output_at=live.output.last_at,
        last_command=live.commands.last,
    )
    return NearLook(seen, live.state_file, spec.nonce, spec.uid, spec.cwd)
