"""The daemon: every session and operator of this host, and what ties them together."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import pwd
import socket
import time
import zlib

from holdfast import __version__
from holdfast.adapters.ghostty.screen import GhosttyScreen
from holdfast.adapters.halt import cgroup
from holdfast.adapters.launch.client import Launcher
from holdfast.adapters.proc.observation import ProcObservation
from holdfast.core import events as ev
from holdfast.core.access.envelope_book import Live
from holdfast.core.activity import judge
from holdfast.core.attachments import Seat
from holdfast.host import config, levels, takeover
from holdfast.host.access.actor_book import ActorBook
from holdfast.host.access.admission import Admission
from holdfast.host.clock import now
from holdfast.host.connection.forwarding import Forwarding
from holdfast.host.connection.operator_connection import OperatorConnection
from holdfast.host.connection.output_channels import OutputChannel
from holdfast.host.connection.requests import Requests
from holdfast.host.keeper_link import KeeperLink
from holdfast.host.reach.relay_list import RelayList
from holdfast.host.reach.relay_presence import RelayPresence
from holdfast.host.session import fencing_token
from holdfast.host.session.describe import waiting_line
from holdfast.host.session.lease import HostLeases
from holdfast.host.session.live_session import LiveSession
from holdfast.host.session_registry import Registry
from holdfast.host.session_store import SessionStore, Stored
from holdfast.model.actor import Actor
from holdfast.model.envelope import Envelope
from holdfast.model.errors import LimitReached, StorageFailed
from holdfast.model.home import Home
from holdfast.model.ids import HOST_ACTOR, OperatorId, SessionId
from holdfast.model.info import Finding, HostInfo
from holdfast.model.limits import OPERATORS_MAX
from holdfast.model.size import Size
from holdfast.model.state import Ending, Level, SessionState
from holdfast.ports.launch import Launch
from holdfast.ports.observation import Observation
from holdfast.ports.screen import ScreenPort
from holdfast.wire.messages import session as m

log = logging.getLogger(__name__)

_LINGER_S = 30.0  # an ended session's output waits this long for a slow reader
_ACCEPT_RETRY_S = 0.5
_BURY_RETRY_S = 5.0  # a tombstone that could not be written is tried again


class Daemon:
    """One host."""

    def __init__(
        self, home: Home, keeper: KeeperLink, listener: socket.socket, starts: int
    ) -> None:
        self.home = home
        self.keeper = keeper
        self.config, self._config_error = config.carried(home.config, first=starts == 0)
        self.store = SessionStore(home.state)
        self.actors = ActorBook(home.state)
        self.admission = Admission(self)
        self.registry = Registry(self.store, self.actors.authority)
        self.forwarding = Forwarding(self)
        self.requests = Requests(self)
        self.reach = RelayPresence(self)
        own = os.environ.get("HOLDFAST_RELAY", "") or self.config.relay
        self.relaying = RelayList(self, self.config.relays, own)
        self.observation: Observation = ProcObservation(judge)
        nofile = int(os.environ.get("HOLDFAST_NOFILE_SOFT", "0"))
        # One name per home, the same for every daemon of it: it names our cgroup directory.
        self.instance = f"{os.getuid()}-{zlib.crc32(home.state.encode()):08x}"
        self.launcher: Launch = Launcher(self.instance, nofile=nofile)
        self.leases = HostLeases(self)
        self.operators: set[OperatorConnection] = set()
        self.uid = os.getuid()
        self._listener = listener
        self._started_at = time.time()
        self.starts = starts  # daemons before this one
        self._stopped = asyncio.get_running_loop().create_future()
        self._leaving: asyncio.Task[None] | None = None
        self._level: asyncio.Task[Level]

    # -- life ---------------------------------------------------------------------------------

    async def run(self) -> None:
        """Carry on what an earlier daemon left, then serve until told to stop."""
        loop = asyncio.get_running_loop()
        takeover.carry_on(self)
        self.keeper.listen(
            loop,
            self._session_ended,
            self._terminate,
            self._keeper_lost,
            self._froze,
            self.relaying.own.heard,
        )
        self._listener.setblocking(False)
        loop.add_reader(self._listener, self._on_connection)
        # Asking CRIU takes a moment: meanwhile the sessions there are served already.
        self._level = loop.create_task(asyncio.to_thread(levels.highest))
        self.keeper.ready()
        self.relaying.start()
        log.info("daemon %d ready, %d sessions", os.getpid(), len(self.registry.live))
        try:
            await self._stopped
        finally:
            loop.remove_reader(self._listener)
            self.keeper.close(loop)
            await self.reach.close()
            for operator in list(self.operators):
                operator.close()
            for live in list(self.registry.live.values()):
                live.close(keep=True)
            await self.leases.close()
            await self.launcher.close()

    def stop(self) -> None:
        """Leave; the keeper starts a new daemon unless it was told to stop as well."""
        if not self._stopped.done():
            self._stopped.set_result(None)

    def _terminate(self) -> None:
        log.info("the keeper was asked to go: ending the sessions")
        self._leaving = asyncio.get_running_loop().create_task(self.end_all_and_stop())

    async def end_all_and_stop(self) -> None:
        lives = list(self.registry.live.values())
        for live in lives:
            live.handle(ev.EndAsked(HOST_ACTOR, now()))
        if lives:
            await asyncio.wait(
                [live.tombstone_written for live in lives], timeout=2 * _BURY_RETRY_S
            )
        levels.remove_cgroup_home(self.instance)
        self.keeper.stop()
        self.stop()

    def _froze(self, session: SessionId) -> None:
        """The keeper had no word of a lease in time. Ours may have been on its way."""
        live = self.registry.live.get(session)
        if (
            live is not None and not live.is_over and live.lease_allows()
        ):  # else it is fenced by now
            live.halts.reconcile()

    def _keeper_lost(self) -> None:
        """Without the keeper nobody can learn a session's end or carry it on: this is host death,
        and it is better said than left half alive."""
        log.error("the keeper is gone; its sessions end with it")
        lives = list(self.registry.live.values())
        for live in lives:
            live.kill()
        try:
            for live in lives:
                live.main_ended(Ending(lost="its keeper died"))
        finally:
            with contextlib.suppress(OSError):
                os.unlink(self.home.socket)
            self.stop()

    # -- operators ----------------------------------------------------------------------------

    def _on_connection(self) -> None:
        try:
            sock, _ = self._listener.accept()
        except BlockingIOError:
            return
        except OSError as error:
            # Out of descriptors, most likely: let those who wait wait, do not spin.
            log.error("cannot accept: %s", error)
            loop = asyncio.get_running_loop()
            loop.remove_reader(self._listener)
            loop.call_later(_ACCEPT_RETRY_S, loop.add_reader, self._listener, self._on_connection)
            return
        operator = OperatorConnection(self, sock)
        if operator.uid not in (0, self.uid) and self.uid != 0:
            operator.close()  # the socket's mode forbids it already
            return
        self.came(operator)

    def came(self, operator: OperatorConnection) -> None:
        """From this machine, or through a relay."""
        self.operators.add(operator)
        if len(self.operators) > OPERATORS_MAX:
            operator.refuse(LimitReached("this host serves its limit of operators", hint="later"))

    def operator_left(self, operator: OperatorConnection) -> None:
        self.operators.discard(operator)
        self.forwarding.gone(operator)
        for live in tuple(operator.touched):
            live.connection_closed(operator)
        self.admission.withdraw(operator.connection)
        if operator.watches:
            for live in self.registry.live.values():
                self._update_watching(live)

    def welcome(self, operator: OperatorConnection) -> m.Welcome:
        return m.Welcome(
            m.PROTOCOL_VERSION,
            socket.gethostname(),
            os.getpid(),
            host_key=self.store.host_key.public,
            challenge=operator.challenge,
            actor=operator.actor.name,
        )

    def join(self, operator: OperatorConnection, channel: OutputChannel) -> None:
        operator.channels[channel.number] = channel
        if channel.live is not None:
            channel.live.audience[operator] = channel.live.audience.get(operator, 0) + 1
            channel.live.note_connection(operator)

    def leave(self, operator: OperatorConnection, channel: OutputChannel) -> None:
        """A channel ended, by either side."""
        if operator.channels.pop(channel.number, None) is None:
            return
        live = channel.live
        if live is None:
            return
        if operator.remote is not None and live.ending is None:  # else it still reads the rest
            operator.remote.left(channel.number)
        live.audience[operator] -= 1
        if not live.audience[operator]:
            del live.audience[operator]
        if operator.id is not None and not _having(live, operator.id, channel.number):
            live.record_detach(operator, channel.number)
        if live.ending is not None and not live.audience:
            self._lay_to_rest(live)

    # -- what sessions tell -------------------------------------------------------------------

    def make_screen(self, size: Size) -> ScreenPort:
        return GhosttyScreen(size, self.config.scrollback_lines)

    def make_tall_screen(self, size: Size) -> ScreenPort:
        """One from which nothing scrolls away by itself; who uses it clears it (blame.py)."""
        return GhosttyScreen(size, None)

    def session_began(self, live: LiveSession) -> None:
        self._update_watching(live)
        self.reach.began(live)

    def tell_answerer(self, live: LiveSession, seat: Seat | None) -> None:
        for operator in tuple(live.audience):
            for channel in tuple(operator.channels.values()):  # who reads nothing may go here
                if channel.live is live and channel.number >= 0:
                    here = operator.id, channel.number
                    answers = seat is not None and (seat.operator, seat.channel) == here
                    operator.event(m.Answering(channel.number, answers))

    def announce(self, live: LiveSession) -> None:
        seats = live.core.attachments
        event = m.OperatorEvent(live.spec.id, seats.count(), seats.observers(), live.core.size)
        for operator in tuple({*live.audience, *self.watchers(live)}):
            operator.event(event)

    def state_changed(self, live: LiveSession, state: SessionState) -> None:
        event = self.state_event(live, state)
        for operator in self.watchers(live):
            operator.event(event)

    def state_event(self, live: LiveSession, state: SessionState) -> m.StateEvent:
        line = waiting_line(live, state)
        return m.StateEvent(live.spec.id, live.spec.name, state, time.time(), line, live.ending)

    def watch(self, operator: OperatorConnection, session: str) -> None:
        operator.watches.add(session)
        for live in self.registry.live.values():
            self._update_watching(live)

    def watchers(self, live: LiveSession) -> list[OperatorConnection]:
        return [
            operator
            for operator in self.operators
            if operator.watches & {"", live.spec.id} and self.registry.may_see(operator.actor, live)
        ]

    def _update_watching(self, live: LiveSession) -> None:
        live.watching.set_watched(bool(self.watchers(live)))

    # -- authority ----------------------------------------------------------------------------

    def live_sessions(self) -> list[Live]:
        """Every one, as far as authority is concerned."""
        return [
            (live.spec.id, live.spec.labels, live.spec.uid) for live in self.registry.live.values()
        ]

    def authority_changed(self, by: Actor, subject: Actor, envelope: Envelope | None) -> None:
        """Recorded in every session it is about, then in force there: at once (A2)."""
        if envelope is None:
            self.admission.review(now())  # what the subject handed on is over too
        for live in list(self.registry.live.values()):
            if subject.may_touch(live.spec.uid):
                live.authority_changed(by, subject, envelope)
        self.reach.judge(None if envelope is None else subject.id)

    def rights_changed(self) -> None:
        """What somebody shows counts no more: in force in every session, at once."""
        for live in list(self.registry.live.values()):
            live.handle(ev.AuthorityChanged(HOST_ACTOR, now()))
        self.reach.judge()

    def dismiss(self, live: LiveSession, who: OperatorId, channel: int) -> None:
        """This operator may not watch any more: its channel is closed, and it learns why."""
        for operator, found in _having(live, who, channel):
            operator.event(m.Dismissed(channel))
            self.leave(operator, found)
            if operator.remote is not None:
                operator.remote.judge()

    # -- the end of a session -----------------------------------------------------------------

    def _session_ended(self, session: SessionId, ending: Ending) -> None:
        live = self.registry.live.get(session)
        if live is not None:
            live.main_ended(ending)

    def bury(self, live: LiveSession) -> None:
        """Journal and tombstone first; only then is the custody given up."""
        stored = Stored(live.info().replace(operators=0, observers=0), live.spec.uid)
        output, screen = live.ring.copy(live.ring.tail, live.ring.head), live.view.text()
        try:
            if not live.journal.complete():
                raise StorageFailed(live.journal.unrecorded())
            self.store.bury(stored, output, screen)
        except StorageFailed as error:
            log.error("tombstone of %s: %s; trying again", live.spec.id, error)
            asyncio.get_running_loop().call_later(_BURY_RETRY_S, self.bury, live)
            return
        self.registry.ended(live, stored)
        self.reach.ended(live.spec.id)
        self.keeper.release(live.spec.id)
        if live.spec.place.cgroup:
            cgroup.remove(live.spec.place.cgroup)
        levels.remove_bell(self.home, live.spec.mark)
        fencing_token.remove(self.home, live.spec.mark)
        self.state_changed(live, SessionState.ENDED)
        if not live.tombstone_written.done():
            live.tombstone_written.set_result(stored)
        for operator in tuple(live.audience):
            operator.pump()
        if not live.audience:
            self._lay_to_rest(live)
        else:
            asyncio.get_running_loop().call_later(_LINGER_S, self._let_go, live)

    def _let_go(self, live: LiveSession) -> None:
        """Readers too slow for an ended session: their connection ends, so that they notice. The
        rest of the output is on disk; whoever comes back gets it from there."""
        for operator in tuple(live.audience):
            operator.close()

    def _lay_to_rest(self, live: LiveSession) -> None:
        if live.tombstone_written.done():
            live.close(keep=False)

    # -- what it is ---------------------------------------------------------------------------

    @property
    def relays(self) -> tuple[str, ...]:
        """As others are to dial them."""
        return self.relaying.shared()

    async def highest_level(self) -> Level:
        return await asyncio.shield(self._level)

    async def host_info(self) -> HostInfo:
        findings = await asyncio.to_thread(levels.findings, self.home)
        return HostInfo(
            version=__version__,
            daemon_pid=os.getpid(),
            keeper_pid=self.keeper.keeper_pid,
            started_at=self._started_at,
            restarts=self.starts,
            user=pwd.getpwuid(self.uid).pw_name,
            level=await self.highest_level(),
            home=self.home.state,
            sessions=len(self.registry.live),
            findings=(*findings, *self._config_findings(), *self.relaying.findings()),
        )

    def _config_findings(self) -> list[Finding]:
        if not self._config_error:
            return []
        return [Finding("configuration", False, self._config_error, "mend it, then restart")]


def _having(
    live: LiveSession, who: OperatorId, channel: int
) -> list[tuple[OperatorConnection, OutputChannel]]:
    """By which connections this operator has this channel: one that came back may still be here by
    its old one, and its seat stands until the last of them leaves it."""
    found = ((each, each.channels.get(channel)) for each in live.audience if each.id == who)
    return [(each, at) for each, at in found if at is not None and at.live is live]
