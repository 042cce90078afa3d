"""The Python SDK's conveniences for commands and several sessions, against a real host."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
from contextlib import aclosing
from pathlib import Path
from typing import get_args

import pytest

import holdfast
from holdfast import blocking, errors, events
from holdfast.model.limits import ACTION_COMMAND_MAX_CHARS, FRAME_MAX_BYTES, INPUT_MAX_BYTES
from holdfast.model.shell_line import below_shell
from holdfast.sdk.aio.command_file import needs_file
from process.acting import add_actor
from process.commanding import Hold
from process.sdking import PATIENCE_S, reached, run, shell


async def test_a_session_that_exists_is_given_if_one_says_so(host_home: Hold) -> None:
    async with reached(host_home) as hold:
        first = await hold.run(["cat"], name="one-only", env={}, extra_env={"A": "b"})
        again = await hold.run(["cat"], name="one-only", exist_ok=True)
        assert again.id == first.id
        with pytest.raises(errors.NameTaken):
            await hold.run(["cat"], name="one-only")
        with pytest.raises(errors.InvalidArgument):
            await hold.run(["cat"], exist_ok=True)


async def test_a_directory_and_variables_are_for_one_command_only(
    host_home: Hold, tmp_path: Path
) -> None:
    there = tmp_path / "it's here"
    there.mkdir()

    async with reached(host_home) as hold:
        session = await shell(hold, "below")
        before = (await session.submit("pwd")).output
        given = await session.submit('pwd; echo "$V" # x', cwd=str(there), env={"V": "a 'b' \\ $c"})
        assert (given.output, given.status) == (f"{there}\na 'b' \\ $c\n", 0)
        assert (await session.submit('pwd; echo "<$V>"')).output == f"{before}<>\n"
        assert (await session.submit("true", cwd="/not/there")).status != 0
        with pytest.raises(errors.InvalidArgument):
            await session.submit("true", env={"A B": ""})


def test_the_line_for_fish_quotes_as_fish_reads() -> None:
    line = below_shell("echo 'a\\b'", "/x y", {"V": "it's"}, fish=True)
    assert line == "env -C '/x y' V='it\\'s' fish -c 'echo \\'a\\\\b\\''"


async def test_a_busy_shell_is_waited_for_if_one_says_so(host_home: Hold, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)

    async with reached(host_home) as hold:
        session = await shell(hold, "queued")
        slow = await session.start(f"cat {gate}")
        with pytest.raises(errors.SessionBusy):
            await session.submit("true")
        queued = asyncio.ensure_future(session.submit("echo then", wait_prompt=PATIENCE_S))
        await asyncio.to_thread(gate.write_text, "")
        assert (await queued).output == "then\n"
        assert (await slow.result(PATIENCE_S)).status == 0


@pytest.mark.requirement("G4")
async def test_a_command_is_found_again_by_its_key_alone(host_home: Hold, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)

    async with reached(host_home) as hold:
        await (await shell(hold, "found-again")).start(f"cat {gate}; (exit 4)", key="k")
    async with reached(host_home) as hold:
        session = await hold.session("found-again")
        running = await session.running("k")
        assert not running.done
        await asyncio.to_thread(gate.write_text, "a word\n")
        assert (await running.result(PATIENCE_S)).status == 4
        again = await (await session.running("k")).result(PATIENCE_S)
        assert (again.status, again.output) == (4, "a word\n")
        with pytest.raises(errors.InvalidArgument, match="no command"):
            await session.running("never")


@pytest.mark.requirement("G4")
@pytest.mark.parametrize("how", ["kill", "end", "keeper", "observe"])
async def test_a_command_that_was_cut_off_is_no_refusal_and_its_output_is_given(
    host_home: Hold, how: str
) -> None:
    name = f"cut-off-by-{how}"
    if how == "observe":
        add_actor(host_home, "cut-off", "execute", "--all")

    async with reached(host_home) as mine:
        await shell(mine, name)
    async with reached(host_home, "cut-off" if how == "observe" else None) as hold:
        session = await hold.session(name)
        running = await session.start("printf 'so far: '; read x; kill -9 $$", key="k")
        async for piece in running.output():
            if b"so far" in piece.data:
                break
        if how == "kill":
            await session.type("", enter=True)
        elif how == "end":
            host_home.ok("end", name)
        elif how == "keeper":
            os.kill((await session.info()).keeper_pid, signal.SIGKILL)
        else:
            host_home.ok("revoke", "cut-off", name)
        with pytest.raises(errors.HoldfastError) as caught:
            await running.result(PATIENCE_S)
        expected = {"keeper": errors.SessionLost, "observe": errors.AccessRevoked}
        assert isinstance(caught.value, expected.get(how, errors.SessionEnded))
        assert b"so far: " in (caught.value.output_bytes or b"")
        with pytest.raises(expected.get(how, errors.SessionEnded)) as refused:
            await session.submit("true")
        assert refused.value.output_bytes is None


async def test_a_running_command_is_interrupted_and_killed_and_its_shell_is_not(
    host_home: Hold,
) -> None:
    async with reached(host_home) as hold:
        session = await shell(hold, "stopped-short")
        for stop, status in (("interrupt", 130), ("kill", 137)):
            running = await session.start("sleep 1000")
            await session.wait_for(state="working", timeout=PATIENCE_S)
            while not any("sleep" in each.name for each in (await session.graph()).processes):
                await asyncio.sleep(0.01)
            await getattr(running, stop)()
            assert (await running.result(PATIENCE_S)).status == status
            await getattr(running, stop)()  # it has ended: nothing happens
        assert (await session.submit("echo alive")).output == "alive\n"


async def test_the_first_of_several_sessions_is_waited_for(host_home: Hold) -> None:
    async with reached(host_home) as hold:
        both = [await shell(hold, name) for name in ("first-of", "second-of")]
        waiting = asyncio.ensure_future(hold.wait_any(both, text="^ready$", timeout=PATIENCE_S))
        await both[1].submit("echo ready")
        found, text = await waiting
        assert found is both[1] and text == "ready"
        with pytest.raises(errors.TimedOut):
            await hold.wait_any(both, state="secret", timeout=0.1)


async def test_events_of_one_session_are_had_by_its_name_or_it_is_said_that_there_is_none(
    host_home: Hold,
) -> None:
    async with reached(host_home) as hold:
        session = await shell(hold, "eventful")
        async with aclosing(hold.events("eventful")) as stream:
            first = await anext(stream)
            assert isinstance(first, events.StateChanged) and first.session == session.id
        with pytest.raises(errors.NoSuchSession):
            await anext(hold.events("not-there"))


@pytest.mark.parametrize("kind", ["bash", "fish"])
def test_a_command_longer_than_an_input_goes_by_a_file_that_does_not_stay(
    host_home: Hold, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    text = "x" * (2 * INPUT_MAX_BYTES)
    count = "echo ${#kept}" if kind == "bash" else "string length -- $kept"
    assign = f"kept='{text}'" if kind == "bash" else f"set -g kept '{text}'"

    async def work() -> None:
        async with reached(host_home) as hold:
            session = await hold.run([kind, *(["--norc"] if kind == "bash" else [])])
            await session.wait_for(state="prompt", timeout=PATIENCE_S)
            command = f"{assign}; {count}; false"
            result = await session.submit(command, key="long")
            assert (result.status, result.output) == (1, f"{len(text)}\n")
            assert result.command == command
            again = await session.submit(command, key="long")
            assert (again.seq, again.output) == (result.seq, result.output)
            assert (await session.submit(count)).output == f"{len(text)}\n", "in the shell itself"
            await session.end()

    run(work())
    assert list(tmp_path.glob("holdfast-*")) == []


@pytest.mark.requirement("G1")
@pytest.mark.parametrize("form", ["line", "words"])
def test_an_action_longer_than_its_record_goes_by_a_file_and_is_measured(
    host_home: Hold, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, work_in = tmp_path / "by-file", tmp_path / "work"
    for directory in (place, work_in):
        directory.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    text = "it's " * ACTION_COMMAND_MAX_CHARS
    program = "open('out', 'w').write(''.join(__import__('sys').argv[1:])); exit(4)"
    command: str | list[str] = f"printf %s {shlex.quote(text)} > out; (exit 4)"
    if form == "words":
        command = ["python3", "-c", program, text[: len(text) // 2], text[len(text) // 2 :]]

    async def work() -> None:
        async with reached(host_home) as hold:
            session = await hold.run(["bash", "--norc"], cwd=str(work_in))
            await session.wait_for(state="prompt", timeout=PATIENCE_S)
            expect = {"files": ["out"], "status": 4}
            done = await session.act(command, intent="write it", expect=expect, key="long")
            assert done.ok and done.score == 1.0, done.trace
            again = await session.act(command, intent="write it", expect=expect, key="long")
            assert again.id == done.id
            await session.end()

    run(work())
    assert (work_in / "out").read_text() == text
    assert list(place.iterdir()) == []


def test_a_long_command_for_another_machine_is_refused_with_what_to_do() -> None:
    assert not needs_file("short", is_here=False)
    assert not needs_file("x" * ACTION_COMMAND_MAX_CHARS, is_here=False, of_action=True)
    with pytest.raises(errors.InvalidArgument, match="characters"):
        needs_file("x" * ACTION_COMMAND_MAX_CHARS + "x", is_here=False, of_action=True)
    with pytest.raises(errors.InvalidArgument, match="another machine"):
        needs_file("x" * INPUT_MAX_BYTES, is_here=False)


def test_the_types_of_what_is_given_are_public() -> None:
    for name in ("SessionInfo", "Process", "LiveGraph", "TurnState", "Ending", "SessionState"):
        assert isinstance(getattr(holdfast, name), type)
    assert get_args(holdfast.StateName) == tuple(map(str, holdfast.SessionState))


def test_the_blocking_face_waits_for_several_too(host_home: Hold) -> None:
    with blocking.connect(f"{host_home.home}/run/hold.sock") as hold:
        one = hold.run(["cat"], name="waited-blocking")
        one.type("", enter=False)
        found, state = hold.wait_any([one], state=("input", "working"), timeout=PATIENCE_S)
        assert found is one and state in ("input", "working")


async def test_an_empty_command_line_is_refused_as_that(host_home: Hold) -> None:
    async with reached(host_home) as hold:
        session = await shell(hold, "nothing")
        for key in ("", "with-a-key"):
            with pytest.raises(errors.InvalidArgument, match="is empty"):
                await session.submit("", key=key)


async def test_what_no_message_can_carry_is_refused_and_the_connection_stays(
    host_home: Hold,
) -> None:
    async with reached(host_home) as hold:
        session = await shell(hold, "beyond")
        for refused in (
            session.submit("echo \udc80"),
            session.type("\udc80"),
            session.submit("true", intent="why" * FRAME_MAX_BYTES),
            session.signal(1 << 70),
            session.wait_for(text="never", since=1 << 70),
        ):
            with pytest.raises(errors.InvalidArgument):
                await refused
        for port in (0, 1 << 16):
            with pytest.raises(errors.InvalidArgument, match="not a port"):
                session.forward(port)
        seen = session.output(since=0)
        assert (await anext(seen)).data
        await seen.aclose()
        assert (await session.submit("echo still here")).output == "still here\n"


async def test_of_a_command_that_reads_the_terminal_nobody_is_told_to_wait_for_its_end(
    host_home: Hold,
) -> None:
    async with reached(host_home) as hold:
        session = await shell(hold, "asking")
        nested = await session.start("sh -c 'exec bash --norc --noprofile'")
        await session.wait_for(state="input", timeout=PATIENCE_S)
        with pytest.raises(errors.TerminalInUse, match=r"\(bash, pid ") as in_use:
            await session.submit("true")
        assert "C-d" in in_use.value.hint
        await session.keys("C-d")
        await nested.result(PATIENCE_S)
        reading = await session.start("read x")
        await session.wait_for(state="input", timeout=PATIENCE_S)
        with pytest.raises(errors.SessionBusy, match="waits for a line") as busy:
            await session.submit("true")
        assert "--enter LINE" in busy.value.hint and "hold wait" not in busy.value.hint
        await session.keys("Enter")
        await reading.result(PATIENCE_S)


async def test_why_a_shell_cannot_take_a_command_is_said_as_what_it_is(host_home: Hold) -> None:
    async with reached(host_home) as hold:
        session = await shell(hold, "reasons")
        await session.type("echo left here")
        await session.wait_for(text="left here", timeout=PATIENCE_S)
        with pytest.raises(errors.TextAtPrompt, match="echo left here"):
            await session.submit("true")
        await session.keys("C-c")
        reading = await session.start("read x")
        await session.wait_for(state="input", timeout=PATIENCE_S)
        with pytest.raises(errors.SessionBusy):
            await session.submit("true")
        await session.keys("Enter")
        await reading.result(PATIENCE_S)
        await session.type("cat", enter=True)
        await session.wait_for(state="input", timeout=PATIENCE_S)
        with pytest.raises(errors.TerminalInUse):
            await session.submit("true")
        await session.halt()
        with pytest.raises(errors.SessionHalted):
            await session.submit("true")
        await session.resume()
