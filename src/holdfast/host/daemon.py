"""The daemon: every session and operator of this host, and what ties them together."""

from __future__ import annotations

import asyncio
import logging
import os
import pwd
import socket
import time
import zlib
from functools import cached_property, partial

from holdfast import __version__
from holdfast.adapters.ghostty.screen import GhosttyScreen
from holdfast.adapters.halt import cgroup
from holdfast.adapters.launch.client import Launcher
from holdfast.adapters.proc.observation import ProcObservation
from holdfast.adapters.proc.peer import OwnTraces
from holdfast.adapters.real_paths import RealPaths
from holdfast.core import events as ev
from holdfast.core.activity import judge
from holdfast.host import config, levels, metrics, takeover
from holdfast.host.access.actor_book import ActorBook
from holdfast.host.access.admission import Admission
from holdfast.host.access.requests import AccessRequests
from holdfast.host.access.revocation import Revocation
from holdfast.host.access.rights_notices import RightsNotices
from holdfast.host.clock import now
from holdfast.host.connection.forwarding import Forwarding
from holdfast.host.connection.host_requests import HostRequests
from holdfast.host.connection.operators import Operators
from holdfast.host.connection.request_table import RequestTable, handlers
from holdfast.host.continuity.eviction import Eviction
from holdfast.host.continuity.handover import messages as handover_messages
from holdfast.host.continuity.handover.source import HandoverSource
from holdfast.host.continuity.handover.target import HandoverTarget
from holdfast.host.continuity.image_store import ImageStore, open_image_store
from holdfast.host.continuity.image_transfer import ImageTransfer
from holdfast.host.continuity.moving.moves import Moves
from holdfast.host.continuity.moving.requests import MoveRequests
from holdfast.host.continuity.periodic import (
    PeriodicCheckpoints,
    bring_back,
    put_all_to_sleep,
)
from holdfast.host.continuity.preflight import PreflightRequests
from holdfast.host.continuity.reaper import Reaper
from holdfast.host.continuity.requests import CheckpointRequests
from holdfast.host.continuity.session_continuity import SessionContinuity
from holdfast.host.coordination_point import CoordinationPoint, terms_of
from holdfast.host.gate.action_requests import ActionRequests
from holdfast.host.gate.answerer_link import AnswererLink
from holdfast.host.gate.approval_requests import ApprovalRequests, NoBranches
from holdfast.host.gate.effect_judge import EffectJudge
from holdfast.host.gate.judge import Judge
from holdfast.host.gate.policy_book import PolicyBook
from holdfast.host.gate.policy_requests import PolicyRequests
from holdfast.host.gate.policy_store import PolicyStore
from holdfast.host.gate.provenance_requests import ProvenanceRequests
from holdfast.host.gate.score_book import ScoreBook
from holdfast.host.keeper_link import Keepers
from holdfast.host.lost_sessions import KEEPER_LOST, LostSessions
from holdfast.host.metrics import Counts
from holdfast.host.metrics_socket import MetricsSocket
from holdfast.host.near_end_writer import NearEndWriter
from holdfast.host.reach.host_links import HostLinkService
from holdfast.host.reach.relay_list import RelayList
from holdfast.host.reach.relay_presence import RelayPresence
from holdfast.host.reach.remote_stream import StreamHost
from holdfast.host.reach.requests import ReachRequests
from holdfast.host.residency import ResidencyMeter, total
from holdfast.host.retention import Retention
from holdfast.host.revival import Revival
from holdfast.host.session import closing, fencing_token, near_look
from holdfast.host.session.input_requests import InputRequests
from holdfast.host.session.journal_requests import JournalRequests
from holdfast.host.session.lease import HostLeases
from holdfast.host.session.live_session import LiveSession
from holdfast.host.session.requests import SessionRequests
from holdfast.host.session.snapshot_place import SnapshotPlace
from holdfast.host.session.start import start
from holdfast.host.session.turn_requests import TurnRequests
from holdfast.host.session.user_usage import UserUsage
from holdfast.host.session_registry import Registry
from holdfast.host.session_store import SessionStore, Stored
from holdfast.host.supervisor_link import SupervisorLink, start_supervisor
from holdfast.model.errors import HoldfastError
from holdfast.model.gate import EffectKind
from holdfast.model.home import Home
from holdfast.model.ids import ActorId, SessionId
from holdfast.model.info import Finding, HostInfo, IdleSession, PrunedSession, Residency
from holdfast.model.size import Size
from holdfast.model.state import Level
from holdfast.ports.gate_policy import GatePolicy
from holdfast.ports.launch import Launch
from holdfast.ports.observation import Observation
from holdfast.ports.screen import ScreenPort
from holdfast.wire.messages.session import StateEvent

log = logging.getLogger(__name__)

_SUPERVISOR_AGAIN_S = 5.0  # between tries to start one


class Daemon:
    """One host."""

    gate_policy: GatePolicy | None = None  # in place of the policies that were set

    def __init__(
        self, home: Home, supervisor: SupervisorLink, listener: socket.socket, starts: int
    ) -> None:
        self.home = home
        self.keepers = Keepers(home.run)
        self.answerers = AnswererLink(home.run)
        self._supervisor, self._listener = supervisor, listener
        self.config, self._config_error = config.carried(home.config, first=starts == 0)
        self.store = SessionStore(home.state)
        self.counts = Counts()
        self.actors = ActorBook(home.state)
        self.scores = ScoreBook(home.state, self.actors.name)
        self.registry: Registry[LiveSession] = Registry(self.store, self.actors.authority)
        self.policies = PolicyBook(
            PolicyStore(home.state),
            self.registry.live,
            self._make_effect_judge(),
            os.getuid(),
            self._is_over_for_good,
        )
        self.near_ends = NearEndWriter(self.store, partial(near_look.look, name=self.actors.name))
        self.forwarding = Forwarding()
        self.gate_judge = Judge(self.gate_policy or self.policies)
        self.observation: Observation = ProcObservation(judge)
        nofile = int(os.environ.get("HOLDFAST_NOFILE_SOFT", "0"))
        # One name per home, the same for every daemon of it: it names our cgroup directory.
        self.instance = f"{os.getuid()}-{zlib.crc32(home.state.encode()):08x}"
        self.launcher: Launch = Launcher(self.instance, self.keepers.directory, nofile=nofile)
        self.leases = HostLeases(
            terms_of(self.config.coordination, self.config.lease_s),
            CoordinationPoint(self.config.coordination, f"{home.state}/registry.sqlite"),
            home,
            self.store.host_key.public,
        )
        self.uid = os.getuid()
        quotas = self.config.user_quotas
        self.usage = UserUsage(
            quotas,
            self.uid,
            self.registry.live,
            f"{home.state}/sessions",
            self.store.disk_bytes,
        )
        host_key = self.store.host_key
        self.admission = Admission(
            self.actors,
            host_key,
            home.state,
            self.registry.judged,
            lambda: self.relay_list.shared(),
        )
        self.notices = RightsNotices(self.registry.live, self.admission.review, self._judge)
        self.operators = Operators(
            listener,
            self.registry,
            self.actors,
            self.admission,
            self.notices,
            self.forwarding,
            host_key.public,
            quotas,
            OwnTraces(
                frozenset(each for each in (os.getpid(), supervisor.pid) if each),
                self.keepers.directory,
                cgroup.PREFIX + self.instance,
            ),
        )
        self.links = HostLinkService(
            host_key,
            home.state,
            home.socket,
            lambda: self.relay_list.shared(),
            ImageTransfer(lambda: self.images, self.store, home.state),
        )
        self.reach = RelayPresence(
            self.registry.live,
            self.store,
            StreamHost(self.admission, self.registry, self.operators, self.links),
            starts,
            self.registry,
        )
        own = os.environ.get("HOLDFAST_RELAY", "") or self.config.relay
        metrics_name = f"holdfast-metrics-{self.instance}"
        self.relay_list = RelayList(
            home.state,
            self.reach,
            supervisor.relay,
            self.config.relays,
            own,
            self.config.metrics_token,
            metrics_name,
        )
        self._metrics = MetricsSocket(metrics_name, self.config.metrics_token, self.metrics)
        self.meter = ResidencyMeter(self.store)
        self.retention = Retention(
            self.store,
            self.config.retention_days,
            self.config.retention_bytes,
            self._session_pruned,
        )
        self.continuity = SessionContinuity(self)
        self.lost = LostSessions(
            self.store,
            self.registry,
            self.actors.authority,
            self.reach.over,
            self.continuity.latest_id,
            self.continuity.is_restoring,
        )
        self.handover = HandoverSource(self.links, self.store, self.registry, self.reach.over)
        self.links.serve(handover_messages.SERVICE, HandoverTarget(self).serve)
        self.eviction = Eviction(self.continuity, self.store)
        self.reaper = Reaper(self.registry.live, self.config.idle_policy, self.eviction)
        self.moves = Moves(self)
        self.operators.answer = self._request_table().answer
        self.operators.on_link = self.links.answer_local
        self._tidying = set[asyncio.Task[None]]()
        self._started_at = time.time()
        self.starts = starts  # daemons before this one
        self._stopped = asyncio.get_running_loop().create_future()
        self._level: asyncio.Task[Level]

    def _is_over_for_good(self, session: SessionId) -> bool:
        """It has ended, or another one follows it, with its policies."""
        stored = self.store.tombstone(session)
        return stored is not None and not stored.may_come_back

    @cached_property
    def images(self) -> ImageStore:
        """Opened when first used: a store that cannot be reached stops nothing else."""
        place, quota = self.config.checkpoint_store, self.config.checkpoint_quota_bytes
        return open_image_store(place, quota, self.home.state, self.store.host_key)

    def _judge(self, subject: ActorId | None) -> None:
        """The rights of this actor have changed, or of several."""
        self.reach.judge(subject)
        self.operators.judge_inside(subject)

    def _make_effect_judge(self) -> EffectJudge:
        return EffectJudge(RealPaths(), self.scores, self.actors.authority.actor, self._user_of)

    def _user_of(self, session: SessionId) -> str:
        live = self.registry.live.get(session)
        return live.spec.user if live is not None else ""

    def _request_table(self) -> RequestTable:
        actors, host_key = self.actors, self.store.host_key.public
        revocation = Revocation(actors, self.admission, self.notices, host_key)
        journal = JournalRequests(self.store, actors, self.make_tall_screen)
        provenance = ProvenanceRequests(self.store, actors, journal.gather)
        ways_in = InputRequests(self.operators.open_channel)
        revival = Revival(
            self.store,
            self.lost,
            actors.authority,
            self.policies,
            actors,
            partial(start, self),
            self.continuity.following,
        )
        rows = handlers(
            SessionRequests(
                self.registry,
                self.store,
                self.meter,
                self.operators,
                partial(start, self),
                self.lost,
                provenance.annotated,
                revival,
            ),
            ways_in,
            TurnRequests(actors),
            journal,
            AccessRequests(
                actors, self.admission, revocation, self.notices, self.registry, host_key
            ),
            provenance,
            ReachRequests(self.relay_list, self.links, actors.authority, self.config.admit_hosts),
            self.forwarding,
            HostRequests(self, self.registry.live),
            ActionRequests(ways_in, self.store, actors, self.scores, self.registry.may_see_id),
            ApprovalRequests(self.registry, self.operators, NoBranches()),
            PolicyRequests(
                self.policies,
                actors,
                self.store,
                self._make_effect_judge,
                self.registry.judged,
                lambda actor, session: self.registry.find_live(actor, session) is not None,
                self.uid,
            ),
            CheckpointRequests(
                self.registry, actors, self.continuity, revival, self.lost.close_for_good
            ),
            PreflightRequests(self.home, self.config.capture_max_bytes, self.config.labels),
            MoveRequests(self.moves),
        )
        return RequestTable(rows, self.registry, actors.authority, self.uid, self.eviction)

    # -- life ---------------------------------------------------------------------------------

    async def run(self) -> None:
        """Carry on what an earlier daemon left, then serve until told to stop."""
        loop = asyncio.get_running_loop()
        self.continuity.clear_unfinished()
        takeover.carry_on(self)
        self.moves.carry_on()
        self.actors.file.prepare()
        self.admission.file.prepare()
        self._supervisor.listen(loop, self.stop, self._supervisor_lost, self.relay_list.own.heard)
        self.operators.listen()
        # Asking CRIU takes a moment: meanwhile the sessions there are served already.
        self._level = loop.create_task(asyncio.to_thread(levels.highest))
        self._supervisor.ready()
        await self._metrics.listen()
        self.relay_list.start()
        log.info("daemon %d ready, %d sessions", os.getpid(), len(self.registry.live))
        by_themselves = [
            loop.create_task(self.retention.run()),
            loop.create_task(self.reaper.run()),
            loop.create_task(PeriodicCheckpoints(self.registry.live, self.continuity).run()),
            loop.create_task(bring_back(self.registry.returning(), self.eviction)),
        ]
        try:
            await self._stopped
        finally:
            for each in by_themselves:
                each.cancel()
            self._metrics.close()
            self._supervisor.close(loop)
            await self.links.close()
            if "images" in vars(self):
                await self.images.close()
            await self.reach.close()
            self.operators.close()
            self.near_ends.close()
            self.moves.close()
            for live in list(self.registry.live.values()):
                live.close(keep=True)
            self.answerers.close()
            self.scores.close()
            self.gate_judge.close()
            await self.leases.close()
            await self.launcher.close()

    def stop(self) -> None:
        """Leave; the supervisor starts a new daemon unless it was told to stop as well."""
        if not self._stopped.done():
            self._stopped.set_result(None)

    def shut_down(self) -> None:
        """Leave, and the supervisor too. Sessions run on in the custody of their keepers."""
        if not self.registry.live:
            levels.remove_cgroup_home(self.instance)
        self._supervisor.stop()
        self.stop()

    async def checkpoint_all(self, actor: ActorId) -> tuple[tuple[str, ...], dict[str, str]]:
        """They come back with the next host."""
        live = self.registry.live.values()
        return await put_all_to_sleep(live, self.continuity, self.store, actor)

    async def end_all(self, actor: ActorId) -> None:
        """Every session that this actor may end. The others run on."""
        ending = []
        for live in list(self.registry.live.values()):
            try:
                passed = await live.gate.check(EffectKind.END, actor, "", may_wait=False)
                live.handle(ev.EndAsked(actor, now(), passed))
                ending.append(live.closing.tombstone)
            except HoldfastError as error:
                log.info("%s runs on: %s", live.spec.name, error.message)
        if ending:
            await asyncio.wait(ending, timeout=2 * closing.RETRY_S)

    def _supervisor_lost(self) -> None:
        """Start another one, which starts another daemon: the next owner of the listening socket.
        Clients that connect meanwhile wait in its backlog."""
        log.warning("the supervisor is gone; starting another")
        try:
            start_supervisor(self.home.run, self._listener.fileno())
        except OSError as error:
            log.error("cannot start a supervisor: %s; trying again", error)
            loop = asyncio.get_running_loop()
            loop.call_later(_SUPERVISOR_AGAIN_S, self._supervisor_lost)
            return
        self.stop()

    # -- what sessions tell -------------------------------------------------------------------

    def make_screen(self, size: Size) -> ScreenPort:
        return GhosttyScreen(size, self.config.scrollback_lines)

    def make_tall_screen(self, size: Size) -> ScreenPort:
        """One from which nothing scrolls away by itself; who uses it clears it (blame.py)."""
        return GhosttyScreen(size, None)

    def watch(self, live: LiveSession) -> None:
        """Hear what its keeper has to say."""
        live.keeper.listen(
            live.main_ended,
            live.frozen_by_keeper,
            partial(self._keeper_lost, live),
            live.exec_gate.keeper_left,
        )

    def session_began(self, live: LiveSession) -> None:
        self.operators.update_watching(live)
        self.reach.announce(live)

    # -- the end of a session -----------------------------------------------------------------

    def _keeper_lost(self, live: LiveSession) -> None:
        """Nobody can learn how it ends, or carry it on: it is lost, and it alone."""
        self.keepers.forget(live.spec.process_tag)
        if live.is_closed:
            return
        log.error("the keeper of %s is gone; the session ends with it", live.spec.id)
        self.near_ends.write_now(live)  # while it can still be seen
        live.kill()
        live.spawn(self._close_lost(live))

    async def _close_lost(self, live: LiveSession) -> None:
        if live.spec.place.cgroup:  # which can be removed once it is empty
            await asyncio.to_thread(cgroup.kill, live.spec.place.cgroup)
        live.main_ended(self.lost.with_checkpoint(KEEPER_LOST, live.spec.id))

    def release_ended(self, live: LiveSession, stored: Stored) -> None:
        """Its tombstone is written: the custody is given up, and what the host has of it goes."""
        self.registry.ended(live, stored)
        self.reach.ended(live.spec.id)
        live.keeper.release()
        if live.spec.place.cgroup:
            cgroup.remove(live.spec.place.cgroup)
        levels.remove_bell(self.home, live.spec.process_tag)
        fencing_token.remove(self.home, live.spec.process_tag)
        SnapshotPlace(self.home, live.spec.process_tag, live.spec.uid).remove()
        self.operators.state_changed(live, live.state())

    def moved_away(self, live: LiveSession, stored: Stored) -> None:
        """It goes on at another host: nothing of it runs here, and its tombstone says where."""
        tag, info = live.spec.process_tag, stored.info
        ended = StateEvent(info.id, info.name, info.state, time.time(), "", info.ending)
        for operator in self.operators.watchers(live):
            operator.event(ended)
        self.registry.ended(live, stored)
        self.reach.withdraw(live.spec.id)
        live.keeper.release()
        cgroup.remove(live.spec.place.cgroup)
        levels.remove_bell(self.home, tag)
        fencing_token.remove(self.home, tag)
        SnapshotPlace(self.home, tag, live.spec.uid).remove()
        live.close(keep=False)

    def bury_lost(self, session: SessionId) -> None:
        """It was on its way to another host when this machine restarted, and did not get there."""
        for stored in self.store.unburied():
            if stored.info.id == session:
                buried = self.lost.bury(stored, self.actors.name, self.make_screen)
                self.registry.remember(buried)

    # -- what it is ---------------------------------------------------------------------------

    async def highest_level(self) -> Level:
        return await asyncio.shield(self._level)

    async def host_info(self, *, residency: bool) -> HostInfo:
        findings = await asyncio.to_thread(levels.findings, self.home)
        return HostInfo(
            version=__version__,
            daemon_pid=os.getpid(),
            supervisor_pid=self._supervisor.pid,
            relay_pid=self._supervisor.relay_pid,
            started_at=self._started_at,
            restarts=self.starts,
            user=pwd.getpwuid(self.uid).pw_name,
            level=await self.highest_level(),
            home=self.home.state,
            sessions=len(self.registry.live),
            findings=(
                *findings,
                *self._config_findings(),
                *self._rights_findings(),
                *self.policies.findings(),
                *self.relay_list.findings(),
            ),
            residency=await self._used() if residency else None,
        )

    async def _used(self) -> Residency:
        live = self.registry.live.values()
        return total(await self.meter.of((each.spec.id, each.spec.place) for each in live))

    async def metrics(self) -> str:
        infos = [live.info() for live in self.registry.live.values()]
        used = await self._used()
        ended = await asyncio.to_thread(self.retention.disk_bytes)
        here, came = self.operators.connected(), self.operators.came
        await self.reaper.look()
        return metrics.text(infos, used, ended, self.counts, here, came, self.starts, self.reaper)

    async def reap(self, actor: ActorId, *, dry_run: bool) -> tuple[IdleSession, ...]:
        return await self.reaper.reap(actor, dry_run=dry_run)

    async def prune(self, *, dry_run: bool) -> tuple[PrunedSession, ...]:
        return await self.retention.prune(dry_run=dry_run)

    def _session_pruned(self, left: Stored) -> None:
        self.registry.updated(left)
        self.usage.disk_changed(left.uid)
        tidying = asyncio.get_running_loop().create_task(self.continuity.delete_all(left.info.id))
        self._tidying.add(tidying)  # or nobody holds it
        tidying.add_done_callback(self._tidying.discard)

    def _rights_findings(self) -> list[Finding]:
        why = self.actors.file.unrecorded() or self.admission.file.unrecorded()
        if not why:
            return []
        detail = f"a revocation is in force but not on disk: {why}"
        return [Finding("rights", False, detail, "mend the disk before this daemon stops")]

    def _config_findings(self) -> list[Finding]:
        if not self._config_error:
            return []
        return [Finding("configuration", False, self._config_error, "mend it, then restart")]
