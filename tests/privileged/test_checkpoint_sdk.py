"""Checkpoint, restore and what stands in their way, from Python programs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast import Checkpoint, Movability, RestoreReport, Session, blocking, errors
from holdfast import Hold as Host
from holdfast.model.restore import ContinuityKind
from privileged.checkpointing import entries, movable_host
from process.acting import add_actor
from process.commanding import Hold
from process.sdking import PATIENCE_S, reached, run


@pytest.fixture(scope="module")
def hold() -> Iterator[Hold]:
    with movable_host() as hold:
        yield hold


async def movable(host: Host, name: str) -> Session:
    """A bash at its prompt, which can be checkpointed."""
    environment = {"PS1": "$ ", "LC_ALL": "C.UTF-8", "PATH": os.environ["PATH"]}
    session = await host.run(["bash", "--norc"], name=name, env=environment, level="movable")
    await session.wait_for(state="prompt", timeout=PATIENCE_S)
    return session


@pytest.mark.requirement("M2")
def test_a_session_is_put_to_sleep_and_restored_with_the_same_processes(hold: Hold) -> None:
    async def work() -> None:
        async with reached(hold) as host:
            session = await movable(host, "shell")
            pid = (await session.submit("X=42; echo $$")).output

            running = await session.checkpoint("while it runs")
            assert isinstance(running, Checkpoint) and running.note == "while it runs"
            assert (running.session, running.name, running.epoch) == (session.id, "shell", 1)
            await session.wait_for(state="prompt", timeout=PATIENCE_S)

            made = await session.checkpoint(end=True)
            assert await host.checkpoints("shell") == (made, running)
            assert set(await host.checkpoints()) >= {made, running}
            assert (await session.info()).state == "asleep"
            asleep = [info for info in await host.sessions(lost=True) if info.id == session.id]
            assert [info.state for info in asleep] == ["asleep"]
            with pytest.raises(errors.SessionAsleep):
                await session.keys("x")

            back = await host.restore("shell")
            assert (back.id, back.found.epoch) == (session.id, 2)
            report = back.restored
            assert isinstance(report, RestoreReport)
            assert (report.checkpoint, report.epoch_before, report.epoch) == (made.id, 1, 2)
            assert (report.kind, report.inputs_lost) == (ContinuityKind.MEMORY, 0)
            assert (await back.submit("echo $$")).output == pid
            # The handle of before is still a handle on it.
            assert (await session.submit("echo $X")).output == "42\n"

    run(work())


@pytest.mark.requirement("M3", "M5")
def test_a_restore_says_what_did_not_come_back(hold: Hold) -> None:
    async def work() -> None:
        async with reached(hold) as host:
            session = await movable(host, "older")
            older = await session.checkpoint()
            await session.submit("echo later")
            with pytest.raises(errors.InvalidArgument, match="runs; only what is asleep"):
                await host.restore(older)
            await session.checkpoint(end=True)
            back = await host.restore(older)
            assert back.restored is not None and back.restored.checkpoint == older.id
            assert back.restored.inputs_lost == 1
            await back.wait_for(state="prompt", timeout=PATIENCE_S)

    run(work())


def test_an_open_file_that_changed_is_a_reason_to_refuse_a_restore_unless_it_is_a_log(
    hold: Hold, tmp_path: Path
) -> None:
    data, log = tmp_path / "data", tmp_path / "log"

    async def work() -> None:
        async with reached(hold) as host:
            session = await movable(host, "logging")
            await session.submit(f"exec 5>{data} 6>>{log}; echo one >&5")
            await session.checkpoint(end=True)
            log.write_text("grown\n")
            data.write_text("one\nmore\n")
            with pytest.raises(errors.RestoreFailed, match="changed after it had stopped"):
                await host.restore("logging")
            assert (await session.info()).state == "asleep"
            data.write_text("one\n")
            back = await host.restore("logging")
            await back.submit("echo two >&5; echo two >&6")
            assert data.read_text() == "one\ntwo\n"
            assert log.read_text() == "grown\ntwo\n"

    run(work())


def test_a_cold_restore_gives_the_successor_and_says_which_kind_it_is(hold: Hold) -> None:
    async def work() -> None:
        async with reached(hold) as host:
            session = await movable(host, "given-up")
            made = await session.checkpoint(end=True)
            successor = await host.restore("given-up", cold=True)
            assert successor.id != session.id
            assert successor.restored is not None
            assert successor.restored.kind is ContinuityKind.COLD
            with pytest.raises(errors.SessionEnded):
                await host.restore(made)

    run(work())


def test_what_stands_in_the_way_is_told_by_process(hold: Hold) -> None:
    async def work() -> None:
        async with reached(hold) as host:
            session = await movable(host, "held-back")
            found = await session.can_move()
            assert isinstance(found, Movability) and found.movable
            assert found.estimate.bytes > 0
            await session.start(f"exec {TRACED}")
            await session.wait_for(text="traced", timeout=PATIENCE_S)
            found = await session.can_move()
            assert not found.movable
            findings = [each for process in found.processes for each in process.findings]
            assert any(each.verdict == "blocks" and each.remedy for each in findings)
            with pytest.raises(errors.CheckpointFailed):
                await session.checkpoint()
            assert not (await session.info()).state.is_over

    run(work())


# A process that traces itself from a child cannot be dumped.
TRACED = """python3 -c 'import ctypes, os, signal, time
child = os.fork()
if child == 0:
    ctypes.CDLL(None).ptrace(0, 0, 0, 0)
    os.kill(os.getpid(), signal.SIGSTOP)
os.waitpid(child, os.WUNTRACED)
print("tra" + "ced", flush=True)
time.sleep(1000)'"""


@pytest.mark.requirement("A2")
def test_an_actor_without_the_right_gets_the_reason(hold: Hold) -> None:
    add_actor(hold, "eve", "execute", "--all")

    async def work() -> None:
        async with reached(hold) as mine, reached(hold, "eve") as host:
            await movable(mine, "guarded")
            session = await host.session("guarded")
            with pytest.raises(errors.NotPermitted, match="checkpoint"):
                await session.checkpoint()

    run(work())


def test_a_pinned_session_says_so_until_it_is_unpinned(hold: Hold) -> None:
    async def work() -> None:
        async with reached(hold) as host:
            session = await movable(host, "pinned")
            await session.pin()
            assert (await session.info()).pinned
            await session.unpin()
            assert not (await session.info()).pinned

    run(work())


@pytest.mark.requirement("M2")
def test_the_same_without_async(hold: Hold) -> None:
    with blocking.connect(f"{hold.home}/run/hold.sock") as host:
        session = host.run(["bash", "--norc"], name="waits", level="movable")
        session.wait_for(state="prompt", timeout=PATIENCE_S)
        assert session.can_move().movable
        session.pin()
        made = session.checkpoint("from a script", end=True)
        assert host.checkpoints("waits") == (made,)
        assert session.restored is None
        assert session.info().state == "asleep"
        back = host.restore(made)
        assert isinstance(back, blocking.Session) and back.restored is not None
        assert back.restored.checkpoint == made.id
        assert back.submit("echo here").output == "here\n"
    (entry,) = entries(hold, "waits", "restored")
    assert entry["epoch"] == 2
