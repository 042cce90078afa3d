"""The Python SDK against a real host: commands, looking, waiting, the turn, events."""

from __future__ import annotations

import asyncio
import os
import socket
from contextlib import aclosing
from pathlib import Path

import pytest
import uvloop

from holdfast import Result, Running, Session, blocking, connect, errors, events
from holdfast.journal import entries
from holdfast.model.limits import EXECS_REMEMBERED, TURN_PAUSE_S
from holdfast.model.size import Size
from holdfast.wire.messages import session as m
from process.acting import add_actor, connected
from process.commanding import Hold
from process.sdking import PATIENCE_S, lines_of, reached, run, shell

# -- commands ---------------------------------------------------------------------------------


@pytest.mark.requirement("R6", "G4")
def test_a_command_gives_its_true_status_its_output_and_its_place_in_the_journal(
    host_home: Hold,
) -> None:
    async def work() -> tuple[Result, list[str]]:
        async with reached(host_home) as hold:
            session = await shell(hold, "status")
            result = await session.submit("printf 'a\\e[1mb\\e[0m\\nc\\n'; (exit 3)")
            return result, [each.body.tag async for each in session.journal(result.seq)]

    result, recorded = run(work())
    assert (result.status, result.ok) == (3, False)
    assert result.output_bytes == b"a\x1b[1mb\x1b[0m\r\nc\r\n"
    assert result.output == "ab\nc\n"
    assert result.duration_s > 0 and result.refused is None and result.held is None
    assert recorded[:2] == ["command_began", "command_ended"]


def test_commands_one_after_another_need_no_waiting(host_home: Hold) -> None:
    async def work() -> list[int | None]:
        async with reached(host_home) as hold:
            session = await shell(hold, "row")
            return [(await session.submit(f"(exit {each})")).status for each in range(8)]

    assert run(work()) == list(range(8))


@pytest.mark.requirement("G4")
def test_the_same_key_again_runs_nothing_and_gives_the_same_result(
    host_home: Hold, tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    command = f"echo once >> {ran}; echo $RANDOM"

    async def first() -> Result:
        async with reached(host_home) as hold:
            return await (await shell(hold, "keyed")).submit(command, key="deploy-42")

    async def again() -> Result:
        """By another program: another operator, the same actor."""
        async with reached(host_home) as hold:
            session = await hold.session("keyed")
            await session.submit("echo in between")
            return await session.submit(command, key="deploy-42")

    assert run(first()) == run(again())
    assert lines_of(ran) == ["once"]


@pytest.mark.requirement("G4")
def test_the_same_key_joins_a_command_that_still_runs(host_home: Hold, tmp_path: Path) -> None:
    go = tmp_path / "go"
    os.mkfifo(go)

    async def work() -> tuple[Result, Result]:
        async with reached(host_home) as one, reached(host_home) as other:
            session = await shell(one, "joined")
            begun = await session.start(f"echo begun; cat {go}; echo ended", key="k")
            second = await (await other.session("joined")).start(
                f"echo begun; cat {go}; echo ended", key="k"
            )
            assert not begun.done and not second.done
            await asyncio.to_thread(go.write_text, "between\n")
            return await begun.result(PATIENCE_S), await second.result(PATIENCE_S)

    first, second = run(work())
    assert first == second
    assert first.output == "begun\nbetween\nended\n"


def test_a_key_names_one_command_and_is_its_actors_own(host_home: Hold) -> None:
    add_actor(host_home, "keymaker", "execute", "--all")

    async def work() -> tuple[int | None, int | None]:
        async with reached(host_home) as hold, reached(host_home, "keymaker") as other:
            session = await shell(hold, "mine")
            mine = await session.submit("(exit 1)", key="k")
            with pytest.raises(errors.InvalidArgument, match="another command"):
                await session.submit("(exit 2)", key="k")
            await session.yield_turn()
            theirs = await (await other.session("mine")).submit("(exit 2)", key="k")
            return mine.status, theirs.status

    assert run(work()) == (1, 2)


def test_a_repeat_that_is_not_remembered_any_more_is_unknown_and_types_nothing(
    host_home: Hold, tmp_path: Path
) -> None:
    ran = tmp_path / "ran"

    async def others() -> None:
        async with reached(host_home) as hold:
            session = await hold.session("forgotten")
            for _ in range(EXECS_REMEMBERED):
                await session.submit("true")

    async def begin() -> str:
        async with reached(host_home) as hold:
            return (await shell(hold, "forgotten")).id

    session = run(begin())
    with connected(host_home) as host:
        connection = host.connection
        line = m.Exec(connection.next_id(), session, 1, f"echo ran >> {ran}")
        assert isinstance(connection.ask(line, PATIENCE_S), m.ExecBegan)
        while not isinstance(connection.answer_to(line.id, PATIENCE_S), m.ExecEnded):
            pass
        again = line.replace(id=connection.next_id())
        assert isinstance(connection.ask(again, PATIENCE_S), m.ExecBegan), "it is remembered"
        run(others())
        with pytest.raises(errors.InputUnknown):
            connection.ask(line.replace(id=connection.next_id()), PATIENCE_S)
    assert lines_of(ran) == ["ran"]


def test_a_refused_command_does_not_use_up_its_key(host_home: Hold, tmp_path: Path) -> None:
    go = tmp_path / "go"
    os.mkfifo(go)

    async def work() -> tuple[Result, Result]:
        async with reached(host_home) as hold:
            session = await shell(hold, "refused")
            busy = await session.start(f"cat {go}")
            refused = await session.submit("echo now", key="k", raises=False)
            await asyncio.to_thread(go.write_text, "")
            await busy.result(PATIENCE_S)
            return refused, await session.submit("echo now", key="k")

    refused, result = run(work())
    assert refused.refused is not None and refused.status is None
    assert (refused.refused.code, refused.refused.retryable) == ("session_busy", True)
    assert refused.refused.hint
    assert result.output == "now\n"


def test_a_running_commands_output_comes_as_it_is_printed(host_home: Hold, tmp_path: Path) -> None:
    go = tmp_path / "go"
    os.mkfifo(go)

    async def work() -> tuple[bytes, bytes, Result]:
        async with reached(host_home) as hold:
            session = await shell(hold, "stream")
            job = await session.start(f"echo one; cat {go}")
            early, late = b"", b""
            async for piece in job.output():
                early += piece.data
                if b"one" in early:
                    break
            assert not job.done
            await asyncio.to_thread(go.write_text, "two\n")
            async for piece in job.output():
                late += piece.data
            return early, late, await job.result(PATIENCE_S)

    early, late, result = run(work())
    assert early == b"one\r\n"
    assert late == result.output_bytes == b"one\r\ntwo\r\n"


def test_a_command_that_takes_too_long_goes_on(host_home: Hold, tmp_path: Path) -> None:
    go = tmp_path / "go"
    os.mkfifo(go)

    async def work() -> Result:
        async with reached(host_home) as hold:
            session = await shell(hold, "late")
            with pytest.raises(errors.TimedOut):
                await session.submit(f"cat {go}", key="k", timeout=0.2)
            await asyncio.to_thread(go.write_text, "still there\n")
            return await session.submit(f"cat {go}", key="k", timeout=PATIENCE_S)

    assert run(work()).output == "still there\n"


def test_of_much_output_the_last_is_kept_and_the_loss_is_told(host_home: Hold) -> None:
    async def work() -> Result:
        async with reached(host_home) as hold:
            session = await shell(hold, "much")
            return await session.submit("yes 0123456789abcdef | head -c 20000000; echo; echo end")

    result = run(work())
    assert result.status == 0 and result.output.endswith("end\n")
    assert 0 < len(result.output_bytes) <= 8 << 20
    printed = 20_000_000 + 20_000_000 // 17 + 2 + 5  # a newline is printed as two bytes
    assert abs(result.lost_bytes + len(result.output_bytes) - printed) < 100


# -- input and looking ------------------------------------------------------------------------


async def test_text_keys_and_signals_reach_the_program(host_home: Hold) -> None:
    async with reached(host_home) as hold:
        session = await shell(hold, "keys")
        at = await session.type("cat", enter=True)
        await session.wait_for(state="input", timeout=PATIENCE_S)
        await session.type("héllo")
        await session.keys("Enter")
        assert await session.wait_for(text="^h.llo\nh.llo$", timeout=PATIENCE_S)
        assert await session.wait_for(text="llo", since=at, timeout=PATIENCE_S) == "llo"
        await session.signal("INT")
        await session.wait_for(state="prompt", timeout=PATIENCE_S)
        await session.resize((100, 30))
        screen = await session.screen()
        assert screen.size == Size(100, 30) and not screen.alternate
        assert "héllo" in screen.lines and screen.offset > at
        with pytest.raises(errors.InvalidArgument):
            await session.signal("NOSUCH")


@pytest.mark.requirement("M8")
def test_a_secret_is_typed_only_where_one_is_asked_for(host_home: Hold) -> None:
    async def work() -> tuple[str, str]:
        async with reached(host_home) as hold:
            session = await shell(hold, "secretive")
            with pytest.raises(errors.InvalidArgument, match="no secret is asked for"):
                await session.type("hunter2", enter=True, secret=True)
            await session.type("read -s word; echo it has ${#word}", enter=True)
            await session.wait_for(state="secret", timeout=PATIENCE_S)
            await session.type("hunter2", enter=True, secret=True)
            await session.wait_for(text="^it has 7", timeout=PATIENCE_S)
            kept = [str(entry.body) async for entry in session.journal()]
            return (await session.screen(scrollback=True)).text, " ".join(kept)

    screen, kept = run(work())
    assert "hunter2" not in screen and "hunter2" not in kept


def test_output_is_read_by_offset_and_ends_with_the_session(host_home: Hold) -> None:
    async def work() -> tuple[bytes, bytes]:
        async with reached(host_home) as hold:
            session = await shell(hold, "offsets")
            await session.submit("seq 1 2000")
            await session.type("exit", enter=True)
            whole, position = b"", 0
            async for piece in session.output(0):
                assert (piece.offset, piece.gap) == (position, 0)
                whole, position = whole + piece.data, piece.end
            middle = b"".join([piece.data async for piece in session.output(500)])
            return whole, middle

    whole, middle = run(work())
    assert b"\r\n2000\r\n" in whole and whole[500:] == middle


@pytest.mark.requirement("A2")
def test_a_reader_who_may_not_write_reads_on_and_one_who_may_not_watch_is_told(
    host_home: Hold,
) -> None:
    add_actor(host_home, "reader", "execute", "--all")

    async def work() -> bytes:
        async with reached(host_home) as hold, reached(host_home, "reader") as other:
            session = await shell(hold, "narrowed")
            seen = b""
            with pytest.raises(errors.NotPermitted):
                async for piece in (await other.session("narrowed")).output(0):
                    before, seen = seen, seen + piece.data
                    if not before:
                        await asyncio.to_thread(host_home.ok, "grant", "reader", "read", "--all")
                        await session.submit("echo narrowed")
                    elif seen.count(b"narrowed\r\n") == 2:
                        await asyncio.to_thread(host_home.ok, "revoke", "reader", "--all")
            return seen

    assert run(work()).count(b"narrowed\r\n") == 2  # typed, and printed


@pytest.mark.requirement("A2")
def test_who_is_revoked_sees_no_more_of_the_command_it_began(
    host_home: Hold, tmp_path: Path
) -> None:
    add_actor(host_home, "begun-it", "execute", "--all")
    go_on = tmp_path / "go-on"
    os.mkfifo(go_on)

    async def work() -> str:
        async with reached(host_home) as mine, reached(host_home, "begun-it") as other:
            await shell(mine, "followed")
            session = await other.session("followed")
            running = await session.start(f"echo before; cat {go_on}; echo after")
            async for piece in running.output():
                if b"before" in piece.data:
                    break
            await asyncio.to_thread(host_home.ok, "revoke", "begun-it", "--all")
            with pytest.raises(errors.NotPermitted):
                await running.result(PATIENCE_S)
            await asyncio.to_thread(go_on.write_text, "meanwhile\n")
            watched = await mine.session("followed")
            await watched.wait_for(state="prompt", timeout=PATIENCE_S)
            assert "meanwhile\nafter" in (await watched.screen()).text, "it goes on without it"
            return running.printed()

    assert run(work()) == "before\n"


@pytest.mark.requirement("M1")
def test_a_reader_that_fell_behind_is_told_of_the_gap(host_home: Hold) -> None:
    async def work() -> tuple[int, int, int]:
        async with reached(host_home) as hold:
            session = await shell(hold, "behind")
            seen = gaps = position = 0
            async with aclosing(session.output(0)) as pieces:
                await anext(pieces)  # it is attached
                await session.submit("head -c 30000000 /dev/zero | tr '\\0' x; echo")
                async for piece in pieces:
                    seen, gaps, position = seen + len(piece.data), gaps + piece.gap, piece.end
                    if position >= (await session.info()).output_offset:
                        break
            return seen, gaps, position

    seen, gaps, position = run(work())
    assert gaps > 0 and position > 30_000_000
    assert seen + gaps == pytest.approx(position, abs=4096)  # but for the first piece


async def test_waiting_ends_with_what_was_waited_for_or_says_why_not(host_home: Hold) -> None:
    async with reached(host_home) as hold:
        session = await shell(hold, "waits")
        with pytest.raises(errors.TimedOut):
            await session.wait_for(state="secret", timeout=0.1)
        with pytest.raises(errors.TimedOut):
            await session.wait_for(text="never printed", timeout=0.1)
        with pytest.raises(errors.InvalidArgument):
            await session.wait_for(text="(", timeout=1)
        waiting = asyncio.create_task(session.wait_for(text="^ready 7$", timeout=PATIENCE_S))
        await session.submit("echo ready $((3 + 4))")
        assert await waiting == "ready 7"
        await session.type("read -s answer", enter=True)
        state = await session.wait_for(state=("input", "secret"), timeout=PATIENCE_S)
        assert state == "secret"
        ending = asyncio.create_task(session.wait_for(ended=True, timeout=PATIENCE_S))
        text = asyncio.create_task(session.wait_for(text="never", timeout=PATIENCE_S))
        await asyncio.sleep(0)
        assert await session.end() == await ending
        with pytest.raises(errors.SessionEnded):
            await text


@pytest.mark.requirement("S6")
def test_a_port_is_waited_for_and_its_process_named(host_home: Hold) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    async def work() -> tuple[int, str, bool]:
        async with reached(host_home) as hold:
            session = await shell(hold, "ports")
            assert (await session.graph()).listening(port) is None
            await session.start(f"python3 -m http.server {port} --bind 127.0.0.1")
            process = await session.wait_for(port=port, timeout=PATIENCE_S)
            return process.pid, process.name, port in (await session.graph()).ports()

    pid, name, listed = run(work())
    assert listed and name.startswith("python") and pid > 0


# -- sessions and events ----------------------------------------------------------------------


async def test_sessions_are_found_started_and_ended(host_home: Hold) -> None:
    async with reached(host_home) as hold:
        assert hold.host.key and hold.host.name and hold.host.actor
        session = await hold.run(["sleep", "600"], name="started", labels=["a"], size="90x20")
        info = await session.info()
        assert (info.labels, info.size) == (("a",), Size(90, 20))
        assert (await hold.session(session.id)).name == "started"
        assert "started" in [each.name for each in await hold.sessions()]
        with pytest.raises(errors.NoSuchSession) as missing:
            await hold.session("nowhere")
        assert missing.value.code == "no_such_session" and not missing.value.retryable
        assert (await session.end()).signal is not None
        assert (await session.end()).signal is not None, "ending it again tells the same"
        ended = [each.id for each in await hold.sessions(ended=True)]
        assert session.id in ended
        assert (await hold.host_info()).version


def test_events_tell_the_present_state_then_every_change_then_the_end(host_home: Hold) -> None:
    async def work() -> list[events.Event]:
        async with reached(host_home) as hold:
            session = await shell(hold, "told")
            seen: list[events.Event] = []
            async for event in session.events():
                seen.append(event)
                if len(seen) == 1:
                    await session.type("cat", enter=True)
                elif isinstance(event, events.StateChanged) and event.state == "input":
                    await session.keys("C-d")
                    await session.type("exit 4", enter=True)
            return seen

    seen = run(work())
    states = [each.state for each in seen if isinstance(each, events.StateChanged)]
    assert states[0] == "prompt" and "input" in states
    last = seen[-1]
    assert isinstance(last, events.Ended) and last.ending.code == 4
    assert any(isinstance(each, events.TurnChanged) and each.yours for each in seen)


def test_events_of_all_sessions_come_in_one_stream(host_home: Hold) -> None:
    async def work() -> set[str]:
        async with reached(host_home) as hold:
            await shell(hold, "here-before")
            ended: set[str] = set()
            async with aclosing(hold.events()) as stream:
                first = await anext(stream)
                assert isinstance(first, events.StateChanged)
                one = await hold.run(["sh", "-c", "exit 1"], name="gone-soon")
                async for event in stream:
                    if isinstance(event, events.Ended):
                        ended.add(event.name)
                        if event.session == one.id:
                            return ended
            return ended

    assert "gone-soon" in run(work())


@pytest.mark.requirement("A3", "M6")
def test_two_handles_on_a_session_count_together_and_lose_nothing(host_home: Hold) -> None:
    async def work() -> tuple[str, list[str]]:
        async with reached(host_home) as hold:
            await shell(hold, "twice")
            one, two = await hold.session("twice"), await hold.session("twice")
            await one.type("echo ")
            await two.type("typed by both", enter=True)
            await one.wait_for(text="^typed by both", timeout=PATIENCE_S)
            await one.wait_for(state="prompt", timeout=PATIENCE_S)
            outputs = [
                (await (await hold.session("twice")).submit(f"echo {number}")).output
                for number in range(3)
            ]
            return (await one.screen()).text, outputs

    screen, outputs = run(work())
    assert outputs == ["0\n", "1\n", "2\n"]
    assert screen.count("typed by both") == 2


# -- the turn ---------------------------------------------------------------------------------


@pytest.mark.requirement("A4", "R6")
def test_a_turn_is_asked_for_held_while_the_block_runs_and_given_back(host_home: Hold) -> None:
    add_actor(host_home, "waiter", "execute", "--all")

    async def work() -> list[str]:
        async with reached(host_home) as mine, reached(host_home, "waiter") as theirs:
            session = await shell(mine, "turns")
            other = await theirs.session("turns")
            held = []
            async with session.turn():
                held.append((await other.turn_state()).holder)
                with pytest.raises(errors.TurnHeld):
                    await other.type("x")
                with pytest.raises(errors.TimedOut):
                    async with other.turn("please", timeout=0.1):
                        pass
                assert (await session.turn_state()).turn.queue == (), "it waits no longer"
                asked = asyncio.create_task(_hold_turn(other))
                async for event in session.events():
                    if isinstance(event, events.TurnRequested):
                        assert (event.actor, event.message) == ("waiter", "my turn")
                        break
            held.append(await asked)
            held.append((await session.turn_state()).holder)
            return held

    first, second, third = run(work())
    assert (second, third) == ("waiter", "") and first not in ("", "waiter")


async def _hold_turn(session: Session) -> str:
    async with session.turn("my turn", timeout=PATIENCE_S):
        return (await session.turn_state()).holder


@pytest.fixture(scope="module")
def agent(host_home: Hold) -> str:
    add_actor(host_home, "agent", "execute", "--all")
    return "agent"


@pytest.mark.requirement("A5", "R6")
@pytest.mark.parametrize("told", [True, False], ids=["told before", "not told yet"])
@pytest.mark.parametrize("halt", [True, False], ids=["halted", "running"])
def test_whoever_lost_the_turn_in_a_block_writes_nothing_more_in_it(
    host_home: Hold, agent: str, halt: bool, told: bool
) -> None:
    name = f"seized-{halt}-{told}"

    async def work() -> tuple[str, str, str]:
        async with reached(host_home) as human, reached(host_home, agent) as other:
            watched = await shell(human, name)
            session = await other.session(name)
            async with session.turn() as turn:
                await session.type("echo ", enter=False)
                await watched.seize(halt=halt, reason="stop, please")
                if told:
                    await asyncio.wait_for(turn.lost.wait(), PATIENCE_S)
                with pytest.raises(errors.TurnLost) as lost:
                    await (session.submit("never") if halt else session.type("never"))
                assert not lost.value.retryable
                await watched.resume() if halt else None
                await watched.keys("C-c")
                await watched.yield_turn()  # free again, but not the agent's to take back
                with pytest.raises(errors.TurnLost):
                    await session.submit("echo never")
                with pytest.raises(errors.TurnLost):
                    await session.signal("INT")
            await watched.wait_for(state="prompt", timeout=PATIENCE_S)
            return turn.lost_to, turn.reason, (await watched.screen()).text

    by, reason, screen = run(work())
    assert by and reason == "stop, please"
    assert "never" not in screen


@pytest.mark.requirement("A4", "R6")
def test_a_turn_held_in_code_outlasts_every_pause_of_the_policy(
    host_home: Hold, agent: str
) -> None:
    """The hold is shorter than the pause after which the turn would move: so it was renewed."""

    async def work() -> tuple[str, str]:
        async with reached(host_home) as human, reached(host_home, agent) as other:
            watched = await shell(human, "long-block")
            session = await other.session("long-block")
            async with session.turn(hold_for=TURN_PAUSE_S * 0.9) as turn:
                with pytest.raises(errors.TimedOut):
                    async with watched.turn("me too", timeout=TURN_PAUSE_S * 1.5):
                        pass
                holder = (await session.turn_state()).holder
                await session.submit("echo still mine", timeout=PATIENCE_S)
                assert not turn.lost.is_set()
            return holder, (await session.turn_state()).holder

    assert run(work()) == (agent, "")


@pytest.mark.requirement("A4")
def test_the_holders_running_command_keeps_the_turn_and_its_end_lets_it_go(
    host_home: Hold, agent: str
) -> None:
    """Nothing was declared: the policy passes the turn on after a pause, and not before."""

    async def work() -> tuple[str, bool]:
        async with reached(host_home) as human, reached(host_home, agent) as other:
            watched = await shell(human, "long-command")
            session = await other.session("long-command")
            await session.request_turn()
            running = await session.start("read -t 30 answer")
            await session.wait_for(state="input", timeout=PATIENCE_S)
            with pytest.raises(errors.TimedOut):
                async with watched.turn("me", timeout=TURN_PAUSE_S * 1.5):
                    pass
            holder = (await session.turn_state()).holder
            await session.type("done", enter=True)
            assert (await running.result(timeout=PATIENCE_S)).status == 0
            async with watched.turn("me now", timeout=PATIENCE_S):
                return holder, (await watched.turn_state()).yours

    assert run(work()) == (agent, True)


@pytest.mark.requirement("A4", "R6")
def test_a_lost_turn_is_told_with_its_true_reason(host_home: Hold, agent: str) -> None:
    async def lost_by(how: str) -> str:
        name = f"lost-{how}"
        async with reached(host_home) as human, reached(host_home, agent) as other:
            watched = await shell(human, name)
            session = await other.session(name)
            async with reached(host_home, agent) as elsewhere, session.turn(hold_for=0) as turn:
                if how == "idle":
                    await watched.request_turn("me")
                elif how == "yield":
                    await (await elsewhere.session(name)).yield_turn()
                else:
                    await watched.seize(reason="it loops")
                await asyncio.wait_for(turn.lost.wait(), PATIENCE_S)
                with pytest.raises(errors.TurnLost) as lost:
                    await session.type("x")
                holder = (await watched.turn_state()).holder
                return lost.value.message.replace(holder, "HUMAN") if holder else lost.value.message

    async def work() -> list[str]:
        return [await lost_by(how) for how in ("idle", "seize", "yield")]

    idle, seized, given = run(work())
    assert idle == (
        "the turn of lost-idle expired: you wrote nothing for too long "
        "(policy free-when-idle); HUMAN has it now"
    )
    assert seized == "HUMAN seized the turn of lost-seize: it loops"
    assert given == (
        "agent, which is you, gave the turn of lost-yield up through another connection; "
        "nobody has it now"
    )


@pytest.mark.requirement("A5")
def test_a_turn_that_could_not_be_given_can_still_be_lost(host_home: Hold, agent: str) -> None:
    async def work() -> str:
        async with reached(host_home) as human, reached(host_home, agent) as other:
            watched = await shell(human, "kept-turn")
            session = await other.session("kept-turn")
            async with session.turn() as turn:
                with pytest.raises(errors.NoSuchActor):
                    await session.hand_off("nobody-of-that-name")
                await watched.seize(reason="mine")
                await asyncio.wait_for(turn.lost.wait(), PATIENCE_S)
            return turn.reason

    assert run(work()) == "mine"


async def test_a_seizure_halts_and_says_what_had_happened(host_home: Hold) -> None:
    async with reached(host_home) as hold:
        session = await shell(hold, "halts")
        receipt = await session.seize(halt=True, reason="look")
        assert receipt.frozen and receipt.journal_seq > 0
        with pytest.raises(errors.SessionHalted):
            await session.type("x")
        await session.resume()
        assert (await session.submit("echo on")).output == "on\n"
        told = await session.catch_up(since=1)
        assert [each.text for each in told.commands] == ["echo on"]
        lines = await session.blame()
        assert any(line.command_text == "echo on" and line.text == "on" for line in lines)


def test_acts_are_recorded_under_the_actor_that_was_asked_for(host_home: Hold) -> None:
    actor = add_actor(host_home, "robot", "execute", "--all")

    async def work() -> list[bytes]:
        async with reached(host_home, "robot") as hold:
            assert hold.host.actor == "robot"
            async with reached(host_home) as mine:
                await shell(mine, "acted")
            typed = await hold.session("acted")
            await typed.type("true", enter=True)
            found = await _typed_by(typed, "robot")
            assert found == await _typed_by(typed, actor)
            return found

    assert b"".join(run(work())).endswith(b"\r")


async def _typed_by(session: Session, actor: str) -> list[bytes]:
    bodies = [entry.body async for entry in session.journal(actor=actor)]
    return [body.data for body in bodies if isinstance(body, entries.InputEntry)]


def test_another_event_loop_does_as_well(host_home: Hold) -> None:
    async def work() -> tuple[str, bytes]:
        async with reached(host_home) as hold:
            session = await shell(hold, "uv")
            result = await session.submit("echo fast")
            async with session.turn(), aclosing(session.output(0)) as pieces:
                return result.output, (await anext(pieces)).data

    output, printed = uvloop.run(asyncio.wait_for(work(), PATIENCE_S))
    assert output == "fast\n" and printed


# -- the blocking face ------------------------------------------------------------------------


@pytest.mark.requirement("R6")
def test_the_same_without_async(host_home: Hold) -> None:
    with blocking.connect(f"{host_home.home}/run/hold.sock") as hold:
        session = hold.run(["bash", "--norc"], name="plain")
        session.wait_for(state="prompt", timeout=PATIENCE_S)
        assert session.submit("(exit 5)", key="k").status == 5
        job = session.start("seq 3")
        assert isinstance(job, blocking.Running) and not isinstance(job, Running)
        assert b"".join(piece.data for piece in job.output()) == b"1\r\n2\r\n3\r\n"
        with session.turn() as turn:
            session.type("exit", enter=True)
            assert not turn.lost
        *_, last = session.events()
        assert isinstance(last, events.Ended)
        with pytest.raises(errors.NoSuchSession):
            hold.session("nowhere")


def test_a_host_that_is_not_there_is_said_at_once(tmp_path: Path) -> None:
    async def work() -> None:
        async with connect(str(tmp_path / "hold.sock")):
            pass

    with pytest.raises(errors.HostDown):
        run(work())
    with pytest.raises(errors.HostDown):
        blocking.connect(str(tmp_path / "hold.sock"))


async def test_what_is_left_open_is_told_when_the_connection_is_closed(host_home: Hold) -> None:
    async with reached(host_home) as hold:
        session = await shell(hold, "closing")
        begun = asyncio.Event()

        async def read() -> None:
            async for _ in session.output(0):  # first what was printed before
                begun.set()

        waiting = asyncio.create_task(session.wait_for(ended=True))
        reading = asyncio.create_task(read())
        await asyncio.wait_for(begun.wait(), PATIENCE_S)  # and the wait was asked for before
    for task in (waiting, reading):
        with pytest.raises(errors.HostLost):
            await task
    with pytest.raises(errors.HostLost):
        await session.screen()
