"""Both ends of a move when something on them fails: an effect that raises is done once more, and
what is settled comes to an end."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgpack
import pytest

from holdfast.core.continuity import move_events as ev
from holdfast.core.continuity.migration import SourceMove, TargetMove
from holdfast.core.continuity.move_table import SourceState, TargetState
from holdfast.host.continuity import restore
from holdfast.host.continuity.handover import messages as handover_messages
from holdfast.host.continuity.handover import target as handover
from holdfast.host.continuity.moving import messages as m
from holdfast.host.continuity.moving import runner as running
from holdfast.host.continuity.moving import session_files
from holdfast.host.continuity.moving import source as leaving
from holdfast.host.continuity.moving.move_book import KeptSource, KeptTarget, MoveBook
from holdfast.host.continuity.moving.runner import MoveRunner
from holdfast.host.continuity.moving.source import SourceRunner
from holdfast.host.continuity.moving.target import TargetRunner
from holdfast.host.continuity.progress import WorkProgress
from holdfast.host.continuity.restore_facts import RestoreFacts
from holdfast.host.session import fencing_token
from holdfast.host.session.live_session import LiveSession
from holdfast.host.session.parcel import StateBlob
from holdfast.host.session_store import Stored
from holdfast.model.captured_files import RestoreFiles
from holdfast.model.checkpoint import CheckpointId, CheckpointKind
from holdfast.model.errors import CheckpointInvalid, HostLost, StorageFailed
from holdfast.model.home import Home
from holdfast.model.ids import ActorId, SessionId
from holdfast.model.state import Ending
from unit.scripted_io import INFO

SESSION, MOVE = SessionId("0" * 26), "0f" * 16
CHECKPOINT = CheckpointId.of_random(bytes(16))
ACTOR = ActorId("a" * 26)


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "_RECOVERS_S", 0.0)


class Host:
    """What a runner needs of a daemon; nothing else is there."""

    def __init__(self, state: Path) -> None:
        self.home = Home(str(state), "", str(state / "run"))
        self.deleted: list[str] = []
        self.dialled = 0
        self.forgotten: list[SessionId] = []
        key = SimpleNamespace(public=b"h")
        self.store = SimpleNamespace(
            host_key=key,
            directory=lambda session: f"{state}/sessions/{session}",
            rise=lambda session: None,
            forget_arrival=self.forgotten.append,
        )
        self.registry = SimpleNamespace(live={}, risen=self._risen)
        self.leases = SimpleNamespace(point=None)
        self.images = SimpleNamespace(delete=self._delete)
        self.links = SimpleNamespace(dial=self._dial)

    def watch(self, live: object) -> None: ...

    def _risen(self, live: object) -> None:
        self.registry.live[SESSION] = live

    async def _delete(self, id: CheckpointId) -> None:
        self.deleted.append(id)

    async def _dial(self, *_: object) -> None:
        self.dialled += 1
        raise HostLost("the ticket is no good, and a stranger is not told so")


def coming(host: Host, state: TargetState) -> TargetRunner:
    machine = TargetMove(1, MOVE)
    machine.state, machine.tree, machine.epoch = state, True, 2
    propose = m.Propose(MOVE, SESSION, "build", "root", 0, 1, "first", host.home)
    kept = KeptTarget(SESSION, propose, b"s", "", "", 0.0, machine.kept(), None)
    return TargetRunner(
        cast(Any, host), MoveBook(host.home.state), kept, lambda runner, reason: None
    )


async def test_an_effect_that_fails_is_done_once_more_with_all_that_follow() -> None:
    machine = TargetMove(1, MOVE)
    machine.state, machine.tree = TargetState.DELIVERING, True
    done: list[ev.MoveEffect] = []
    lives = asyncio.Event()

    class Failing(MoveRunner):
        failures = 1

        def _store(self) -> None: ...

        def _carry_out(self, effect: ev.MoveEffect) -> None:
            if isinstance(effect, ev.AdoptEpoch) and self.failures:
                self.failures -= 1
                raise OSError(28, "no space left on device")
            done.append(effect)
            if isinstance(effect, ev.DeliverHeld):
                self.give(ev.Delivered(0.0))
            elif isinstance(effect, ev.LiveHere):
                lives.set()

    failing = Failing("build", lambda runner, reason: None)
    failing.machine = machine
    failing.give(ev.Recovered(0.0, True))
    await asyncio.wait_for(lives.wait(), 5.0)
    assert [type(each) for each in done] == [ev.AdoptEpoch, ev.DeliverHeld, ev.LiveHere]


async def test_a_claimed_session_that_cannot_be_adopted_is_restored_and_adopted_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody else has it: the lease is this host's."""
    host = Host(tmp_path)
    target = coming(host, TargetState.DELIVERING)
    tree: Any = SimpleNamespace(phases=(), reset=())
    target._restored, target._checkpoint = tree, cast(Any, _checkpoint())
    kept: Any = SimpleNamespace(spec=SimpleNamespace(process_tag="tag", name="build"))
    monkeypatch.setattr(target, "_parcel", lambda: kept)
    live = SimpleNamespace(deposit=lambda: None, start=lambda: None)
    lives = asyncio.Event()
    revived: list[object] = []
    restored: list[object] = []

    def revive(*_: object) -> object:
        revived.append(target._restored)
        if len(revived) == 1:
            raise StorageFailed("no space left on device")
        return live

    async def restore_tree() -> ev.MoveEvent:
        restored.append(target._restored)
        if len(restored) == 1:
            raise StorageFailed("still none")
        target._restored = tree
        return ev.TreeRestored(0.0)

    monkeypatch.setattr(restore, "revive", revive)
    monkeypatch.setattr(restore, "life_of", lambda *_: None)
    monkeypatch.setattr(target, "_restore", restore_tree)
    monkeypatch.setattr(target, "_live_here", lives.set)
    target.give(ev.Recovered(0.0, True))
    await asyncio.wait_for(lives.wait(), 5.0)
    assert target.state is TargetState.LIVE and target.live is cast(Any, live)
    assert len(revived) == len(restored) == 2
    assert restored == [None, None]  # the descriptors of the first are gone with its life


def _checkpoint() -> object:
    return SimpleNamespace(id=CHECKPOINT, raw_bytes=0, journal_seq=1)


def test_an_epoch_that_cannot_be_written_is_not_adopted(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that it is adopted when this is repeated."""

    def full(*_: object) -> None:
        raise StorageFailed("no space left on device")

    monkeypatch.setattr(fencing_token, "write", full)
    live: Any = SimpleNamespace(
        _daemon=SimpleNamespace(home=None), spec=SimpleNamespace(epoch=1, process_tag="tag")
    )  # anything else that it did would fail otherwise
    with pytest.raises(StorageFailed):
        LiveSession.adopt_epoch(live, 3)


async def test_a_settled_move_ends_also_when_its_target_has_forgotten_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The daemon before died between its last word and forgetting the move itself."""
    monkeypatch.setattr(leaving, "REDIAL_S", 0.0)
    host, machine = Host(tmp_path), SourceMove(1, MOVE)
    machine.state = SourceState.MOVED
    book = MoveBook(host.home.state)
    kept = KeptSource(
        SESSION, "ticket", ACTOR, "second", 0.0, machine.kept(), None, CHECKPOINT, settled=True
    )
    book.keep(kept)
    source = SourceRunner(cast(Any, host), book, None, kept, "build", lambda runner, reason: None)
    source.carry_on()
    await asyncio.wait_for(source.over, 5.0)
    assert host.dialled > 1  # the target may wait for that word
    assert list(book.sources()) == [] and host.deleted == [CHECKPOINT]


async def test_that_it_is_settled_is_kept_before_the_target_may_forget_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host, machine = Host(tmp_path), SourceMove(1, MOVE)
    machine.state = SourceState.MOVED
    book = MoveBook(host.home.state)
    kept = KeptSource(SESSION, "ticket", ACTOR, "second", 0.0, machine.kept(), None)
    source = SourceRunner(cast(Any, host), book, None, kept, "build", lambda runner, reason: None)
    known: list[bool] = []

    async def send(message: object) -> None:
        known.extend(each.settled for each in book.sources())

    monkeypatch.setattr(source, "send", send)
    await source._heard(m.MoveSettled(True))
    assert known == [True]
    source.close()


async def test_a_checkpoint_that_came_before_its_name_is_deleted_with_a_move_that_failed(
    tmp_path: Path,
) -> None:
    host = Host(tmp_path)
    target = coming(host, TargetState.RECEIVING)
    target.link = cast(Any, SimpleNamespace(brought=CHECKPOINT, send=_nothing))
    target.give(ev.Noted(0.0, ev.MoveNote.CALLED_OFF, "why"))
    for task in tuple(target._tasks):
        await task
    assert target.state is TargetState.DISCARDED
    assert host.deleted == [CHECKPOINT] and host.forgotten == [SESSION]


async def _nothing(*_: object) -> None: ...


class OfferedLink:
    """Of a source that makes an offer, and then neither speaks nor leaves."""

    peer_name, session = "first", SESSION

    def __init__(self, offer: handover_messages.Offer) -> None:
        self._offer: handover_messages.Offer | None = offer
        self.said: list[bytes] = []

    async def send(self, data: bytes) -> None:
        self.said.append(data)

    async def receive(self) -> bytes | None:
        offer, self._offer = self._offer, None
        if offer is None:
            await asyncio.get_running_loop().create_future()
            return None
        return bytes(msgpack.packb({"t": offer.tag, **offer.pack()}))


async def test_an_offer_of_something_that_is_no_checkpoint_is_answered_and_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handover, "_LAST_READ_S", 0.0)
    stored = Stored(INFO.replace(id=SESSION), 0)
    link = OfferedLink(handover_messages.Offer(stored, "../x", False, RestoreFiles.ASK))
    target = handover.HandoverTarget(cast(Any, Host(tmp_path)))
    await asyncio.wait_for(target.serve(cast(Any, link)), 5.0)
    assert len(link.said) == 1 and b"names no checkpoint" in link.said[0]


# -- whose session it is ----------------------------------------------------------------------


def of_user(user: str, uid: int) -> Any:
    return SimpleNamespace(spec=SimpleNamespace(id=SESSION, user=user, uid=uid))


async def test_what_comes_by_a_move_is_of_the_user_that_was_proposed(tmp_path: Path) -> None:
    target = coming(Host(tmp_path), TargetState.RESTORED)
    target._check_user(of_user("root", 0))
    for other in (of_user("root", 1000), of_user("nobody", 0)):
        with pytest.raises(CheckpointInvalid, match="was proposed"):
            target._check_user(other)


async def test_a_checkpoint_restores_no_session_of_another_user_than_was_offered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = Host(tmp_path)
    info = INFO.replace(id=SESSION, ending=Ending(checkpoint=CHECKPOINT))
    host.store.tombstone = lambda session: Stored(info, 1000)

    async def load(*_: object) -> None: ...

    host.images.load = load
    monkeypatch.setattr(restore, "check_machine", lambda checkpoint: None)
    monkeypatch.setattr(restore._Restore, "_check_journal", lambda self: (1, 0))
    monkeypatch.setattr(restore._Restore, "_file", lambda self, name: b"")
    monkeypatch.setattr(StateBlob, "of_blob", lambda blob: of_user("root", 0))
    facts = SimpleNamespace(session=SESSION)
    monkeypatch.setattr(RestoreFacts, "of_bytes", lambda data: facts)
    checkpoint: Any = SimpleNamespace(
        id=CHECKPOINT, session=SESSION, epoch=1, raw_bytes=0, kind=CheckpointKind.MEMORY
    )
    progress = WorkProgress(SESSION, "build", "restore", lambda event: None)
    with pytest.raises(CheckpointInvalid, match="another user"):
        await restore.restore(cast(Any, host), checkpoint, "", progress)


# -- what takes a while is not done in the loop -----------------------------------------------


async def test_files_and_the_undoing_of_a_restore_do_not_hold_up_the_daemon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[str] = []

    def note(*_: object) -> None:
        threads.append(threading.current_thread().name)

    session = tmp_path / "session"
    session.mkdir()
    (session / "launch").write_bytes(b"sealed")
    sent: list[m.File] = []

    async def send(piece: m.File) -> None:
        sent.append(piece)

    read = session_files._read

    def noted(*asked: Any) -> object:
        note()
        return read(*asked)

    monkeypatch.setattr(session_files, "_read", noted)
    known: session_files.Known = {}
    await session_files.send_files(str(session), known, send)
    await session_files.send_files(str(session), known, send)  # nothing has changed
    assert [(each.path, each.data) for each in sent] == [("launch", b"sealed")]
    target = coming(Host(tmp_path), TargetState.RECEIVING)
    monkeypatch.setattr(target._files, "take", note)
    await target._heard(sent[0])
    target._tree_undo = contextlib.ExitStack()
    target._tree_undo.callback(note)
    await target._let_go_of_tree()
    target.close()
    assert len(threads) == 4 and threading.current_thread().name not in threads
