"""A live session -> a checkpoint. The session stands still while its tree is written, and then runs
on or, if that was asked for, is ended with it and asleep. If it runs on, the memory of its large
processes is not written in that time: it is read from ghosts afterwards (adapters/criu/ghosts.py).

Input that comes meanwhile waits, and is delivered in order. Whatever fails, the session runs on and
the reason is given; only when all is safely stored may CRIU end the tree.

Deliberately absent: who may (core.session), and where checkpoints are kept (image_store.py).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import platform
import shutil
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from holdfast.adapters import pty
from holdfast.adapters.criu import dump as criu
from holdfast.adapters.criu import find
from holdfast.adapters.criu.ghost_images import GhostPages
from holdfast.adapters.criu.ghosts import Ghosts
from holdfast.adapters.halt import cgroup
from holdfast.adapters.launch.unread_reader import UnreadReader
from holdfast.adapters.session_memory import layout
from holdfast.adapters.shell.integration import state_path
from holdfast.adapters.shell.report_fifo import look
from holdfast.core import events as ev
from holdfast.host import levels
from holdfast.host.clock import now
from holdfast.host.config import Config
from holdfast.host.continuity.image_store import ImageStore
from holdfast.host.continuity.image_writer import GhostMemory
from holdfast.host.continuity.kept_ghosts import KeptGhosts, LastGhosts
from holdfast.host.continuity.progress import WorkProgress
from holdfast.host.continuity.restore_facts import (
    FACTS,
    IMAGES,
    MEMORY,
    PARCEL,
    SHELL_STATE,
    UNTYPED,
    RestoreFacts,
)
from holdfast.host.continuity.workspace_files import FileTaking
from holdfast.journal import entries
from holdfast.keeper import boottime
from holdfast.model.checkpoint import (
    Checkpoint,
    CheckpointDescription,
    CheckpointId,
    CheckpointKind,
    MachineNeeds,
    Waking,
)
from holdfast.model.errors import (
    CheckpointFailed,
    HoldfastError,
    LevelUnavailable,
    StorageFailed,
    why_not,
)
from holdfast.model.gate import EffectKind
from holdfast.model.home import Home
from holdfast.model.ids import HOST_ACTOR, ActorId
from holdfast.model.limits import CHECKPOINT_NOTE_MAX_CHARS
from holdfast.model.restore import DumpedTree
from holdfast.model.state import Level
from holdfast.ports.launch import Launch

if TYPE_CHECKING:
    from holdfast.host.session.live_session import LiveSession

_ENDS_S = 30.0  # for CRIU to end a tree that was checkpointed, and the keeper to say so
_TRACED_LOOK_S = 0.05
_MAKING = "checkpointing"  # directories of the state in which checkpoints are put together


class CheckpointingHost(Protocol):
    """The daemon, as far as a checkpoint needs it."""

    @property
    def home(self) -> Home: ...

    @property
    def launcher(self) -> Launch: ...

    @property
    def images(self) -> ImageStore: ...

    @property
    def config(self) -> Config: ...


class _Captured:
    """What the session is besides its tree, at the moment in which that stands still."""

    def __init__(self, live: LiveSession, home: Home, tree: DumpedTree, unread: bytes) -> None:
        live.output.drain()
        live.commands.read_reports()
        live.journal.flush()
        self.journal_seq, self.journal_head = live.journal.seq, live.journal.head
        tree = tree.replace(groups=criu.groups(live.spec.place.cgroup))
        shell_state = b""
        if live.spec.shell:
            path = state_path(levels.bell_path(home, live.spec.process_tag))
            with contextlib.suppress(OSError), open(path, "rb") as file:
                shell_state = file.read()
        self._files = {
            FACTS: RestoreFacts(live.spec.id, tree, live.core.size, unread).packed(),
            PARCEL: live.parcel_bytes(),
            UNTYPED: look(live.fds.input),
            SHELL_STATE: shell_state,
        }
        self._memory = layout.copy(live.ring.memfd)

    def close(self) -> None:
        os.close(self._memory)

    def write(self, directory: str) -> None:
        """Slow: in a thread."""
        layout.save(self._memory, f"{directory}/{MEMORY}")
        for name, data in self._files.items():
            with open(f"{directory}/{name}", "wb") as file:
                file.write(data)


def clear_unfinished(state: str) -> None:
    """A daemon died over them."""
    shutil.rmtree(f"{state}/{_MAKING}", ignore_errors=True)


class Making:
    """Of one checkpoint, of a session that runs."""

    def __init__(
        self,
        host: CheckpointingHost,
        live: LiveSession,
        actor: str,
        note: str,
        ends: bool,
        waking: Waking,
        progress: WorkProgress,
        kept: KeptGhosts,
        *,
        stands: bool = False,
    ) -> None:
        """`stands`: the tree stands still afterwards, frozen by its group, until somebody lets it
        run: it is moving, and whoever may end it may have it moved."""
        self._stands = stands
        self._taking: asyncio.Task[Checkpoint] | None = None
        self._host, self._live, self._actor = host, live, actor
        self._progress, self._waking, self._kept = progress, waking, kept
        self._note, self._ends = note[:CHECKPOINT_NOTE_MAX_CHARS], ends
        self._began, self._at = boottime.now(), time.time()
        self._id = CheckpointId.of_random(os.urandom(16))
        self._directory = f"{host.home.state}/{_MAKING}/{self._id}"
        self._over = False
        self._captured: _Captured | None = None
        self._ghosts = Ghosts(live.spec.place)
        self._last_ghosts: LastGhosts | None = None  # of its last checkpoint
        self._memory = GhostMemory()
        self._files: FileTaking | None = None
        self._made: Checkpoint | None = None

    @property
    def may_be_stopped(self) -> bool:
        """Not once CRIU has been allowed to end the tree."""
        return not (self._ends and self._made)

    async def run(self) -> Checkpoint:
        """Raises CheckpointFailed, and what machine and store refuse."""
        await self.ask()
        live, actor = self._live, self._actor
        try:
            return await self._make()
        except BaseException as error:
            if not live.is_closed:
                live.journal.happened(actor, entries.CheckpointFailedEntry(_reason(error)))
            raise
        finally:
            self._let_go()

    async def take(self) -> Checkpoint:
        """For one that stands still afterwards. Whatever comes of it, somebody lets it run."""
        self._taking = asyncio.ensure_future(self._make())
        return await self._taking

    def give_up(self) -> None:
        """Nobody needs it any more; what was taken is not kept."""
        if self._taking is not None and not self._taking.done():
            self._taking.cancel()

    async def ask(self) -> None:
        """Whether it may be. From here on input waits. Raises what refuses it."""
        live, actor = self._live, self._actor
        if not live.spec.level.reaches(Level.MOVABLE):
            raise LevelUnavailable(
                f"{live.spec.name} is at level {live.spec.level}; only a movable session can be "
                "checkpointed",
                hint="`hold doctor` says what this host lacks; sessions get their level at start",
            )
        passed, ends = None, self._ends or self._stands
        if actor != HOST_ACTOR:  # the host's own policy is nobody's act that another could judge
            passed = await live.gate.check(
                EffectKind.CHECKPOINT, ActorId(actor), "end" if ends else "", may_wait=True
            )
        live.handle(ev.CheckpointAsked(actor, now(), ends, passed))

    def _let_go(self) -> None:
        """Once: what waited is taken. Not of a tree that was ended with its checkpoint: the keeper
        is about to say so, and then it is asleep."""
        ended = not self.may_be_stopped and not criu.runs(self._live.spec.place)
        if not self._over and not self._live.is_closed and not ended:
            self._live.handle(ev.CheckpointOver(HOST_ACTOR, now()))
        self._over = True

    async def _make(self) -> Checkpoint:
        try:
            os.makedirs(f"{self._directory}/{IMAGES}", mode=0o700)
            most = self._host.config.capture_max_bytes
            self._files = FileTaking(self._live.spec, self._host.home, most, self._directory)
            await self._files.ahead()
            async with self._live.halts.undisturbed():
                times = await self._dump()
            if not self._ends:
                # The session runs on: what was captured is stored behind its back.
                if not self._stands:
                    self._let_go()
                await self._store(times.frozen_ms)
        except OSError as error:
            raise CheckpointFailed(f"it cannot be stored: {why_not(error)}") from error
        except (
            StorageFailed
        ) as error:  # wherever the disk was full, it is the same to whoever asked
            raise CheckpointFailed(error.message, hint=error.hint) from error
        finally:
            if self._captured is not None:
                self._captured.close()
            await asyncio.to_thread(self._clear)
        if self._ends:
            await asyncio.wait_for(asyncio.shield(self._live.closing.tombstone), _ENDS_S)
        assert self._made is not None
        return self._made

    async def _dump(self) -> criu.DumpTimes:
        live, place = self._live, self._live.spec.place
        slave = pty.open_slave(live.fds.master)
        try:
            tree = criu.look(place, slave, gate=live.fds.gate >= 0)
        finally:
            os.close(slave)
        images = os.open(f"{self._directory}/{IMAGES}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        reader = UnreadReader()
        since = boottime.now()
        self._progress.phase("freeze", measure=lambda: _size_of(images))

        async def frozen() -> None:
            unread = await reader.read()
            if not live.core.state.is_checkpointing:
                raise CheckpointFailed(f"it is {live.core.state.phase} by now")
            self._captured = _Captured(live, self._host.home, tree, unread)
            assert self._files is not None
            await self._files.finish()
            if self._stands:
                cgroup.ask_to_freeze(place.cgroup)
            if self._ends:
                await asyncio.to_thread(criu.finish_images, images, gate=tree.gate)
                await self._store((boottime.now() - since) * 1000)
                live.handle(ev.CheckpointStored(self._actor, now(), self._id, self._waking))

        async def start(socket: int) -> int:
            if not (self._ends or self._stands):  # else nothing is gained: it does not run on
                await _finished(self._prepare_ghosts)
            return await self._host.launcher.start_criu(socket, self._ghosts.extra)

        try:
            launcher = self._host.launcher
            await launcher.start_unread_reader(reader.theirs.fileno(), live.fds.master)
            reader.started()
            live.keeper.dump(under_way=True)
            times = await criu.dump(
                start,
                place,
                tree,
                images,
                frozen,
                leave_running=not self._ends,
            )
            if not self._ends:
                await asyncio.to_thread(criu.finish_images, images, gate=tree.gate)
        except BaseException:
            if not self.may_be_stopped and criu.runs(place):  # so it is not in its checkpoint
                await self._host.images.delete(self._id)
            raise
        finally:
            live.keeper.dump(under_way=False)
            reader.close()
            os.close(images)
        return times

    async def _store(self, frozen_ms: float) -> None:
        """Written, in the store, in the journal, on disk."""
        live, captured, images = self._live, self._captured, self._host.images
        assert captured is not None and self._files is not None
        self._progress.phase("store")
        await asyncio.to_thread(captured.write, self._directory)
        await _finished(self._read_ghosts)
        await asyncio.to_thread(self._files.write)
        found = await asyncio.to_thread(find.find)
        description = CheckpointDescription(
            session=live.spec.id,
            session_name=live.spec.name,
            epoch=live.spec.epoch,
            kind=CheckpointKind.MEMORY,
            created_at=self._at,
            created_by=self._actor,
            level=live.spec.level,
            machine=MachineNeeds(
                platform.machine(),
                platform.release(),
                "" if isinstance(found, str) else await asyncio.to_thread(found.version),
            ),
            journal_seq=captured.journal_seq,
            journal_head=captured.journal_head,
            note=self._note,
            frozen_ms=round(frozen_ms, 1),
            total_ms=round((boottime.now() - self._began) * 1000, 1),
        )
        made = await images.save(
            description,
            self._directory,
            self._progress.bytes,
            id=self._id,
            captured=self._files.summary,
            memory=self._memory,
        )
        entry = entries.CheckpointedEntry(
            *(made.id, made.journal_seq, made.raw_bytes, made.frozen_ms, made.note, self._ends)
        )
        try:
            live.journal.record(self._actor, entry, forced=True)
            if why := await live.journal.sync():
                raise CheckpointFailed(f"it cannot be recorded: {why}")
        except HoldfastError:
            await images.delete(self._id)
            raise
        self._made = made
        self._keep_ghosts()

    def _prepare_ghosts(self) -> None:
        """For this CRIU. One that gave up may have left ghosts of another moment. In a thread."""
        self._ghosts.close()
        self._ghosts = Ghosts(self._live.spec.place)
        self._ghosts.prepare()

    def _read_ghosts(self) -> None:
        """Which memory they hold. In a thread."""
        self._ghosts.collect()
        before = {}
        self._last_ghosts = last = self._kept.take(self._live.spec.id)
        if last is not None:
            before = {ghost.pid: ghost for ghost in last.ghosts.found}
            self._memory.before = last.chunks
        for ghost in self._ghosts.found:
            pages = GhostPages(f"{self._directory}/{IMAGES}", ghost, before.get(ghost.pid))
            self._memory.files[f"{IMAGES}/{pages.name}"] = pages
        self._memory.copied_at_once = self._ghosts.copied_at_once()

    def _keep_ghosts(self) -> None:
        """They say what changed until the next checkpoint."""
        live = self._live
        if live.spec.checkpoint_every_s and self._ghosts.found and not live.is_closed:
            self._kept.keep(live.spec.id, LastGhosts(self._ghosts, self._memory.chunks))
            self._ghosts = Ghosts(live.spec.place)

    def _clear(self) -> None:
        """In a thread."""
        self._memory.close()
        self._ghosts.close()
        if self._last_ghosts is not None:
            self._last_ghosts.ghosts.close()
        shutil.rmtree(self._directory, ignore_errors=True)


async def _finished(work: Callable[[], None]) -> None:
    """In a thread, which is waited for also if the caller is cancelled: what it made is cleared
    away only then."""
    working = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        await asyncio.shield(working)
    except asyncio.CancelledError:
        await asyncio.wait([working])
        raise


def _size_of(directory: int) -> int:
    with os.scandir(directory) as files:
        return sum(each.stat().st_size for each in files)


def _reason(error: BaseException) -> str:
    return error.message if isinstance(error, HoldfastError) else str(error) or "it was given up"


async def settle_interrupted(live: LiveSession) -> None:
    """The daemon before was about to have the tree ended with its checkpoint. CRIU may be doing so,
    or found that nobody answers it and lets the tree run on; while it works it traces the tree."""
    place, let_go = live.spec.place, False
    while not live.is_closed and criu.runs(place):  # if it does not, its keeper is about to say so
        if criu.is_traced(place):
            let_go = False
        elif let_go:  # twice: CRIU lets it go also a moment before it ends
            live.handle(ev.CheckpointOver(HOST_ACTOR, now()))
            return
        else:
            let_go = True
        await asyncio.sleep(_TRACED_LOOK_S)
