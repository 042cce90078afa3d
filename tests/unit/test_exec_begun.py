"""What becomes of a command line that was typed and of which the shell has reported no beginning
when the host looks: only one that is still in the line editor is refused."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.adapters.shell.integration import LINE_PROBE, make_fifo
from holdfast.core.line_authors import TypedLine
from holdfast.host.session import shell_commands
from holdfast.host.session.exec_runs import Execution
from holdfast.host.session.line_attribution import LastInput
from holdfast.host.session.nested_shells import ReportingShells
from holdfast.host.session.shell_commands import ShellCommands
from holdfast.model.errors import InputUnknown, InvalidArgument
from holdfast.model.ids import OperatorId
from holdfast.model.state import SessionState
from holdfast.wire.messages import session as m

NONCE = "0123456789abcdef"
ME = OperatorId("1" * 32)
COMMAND = "touch f\necho 'two"
_PATIENCE_S = 20.0


class Desk:
    """The commands of a session whose shell is a FIFO that the test writes to."""

    def __init__(self, path: Path) -> None:
        self.typed: list[bytes] = []
        self.on_look: Callable[[], None] = lambda: None  # when the kernel is asked for the state
        self.line: str | None = None  # the text at the prompt; None: the shell does not answer
        self.fifo = make_fifo(str(path), os.getuid(), os.getgid())
        self.tasks: list[asyncio.Task[Any]] = []
        attribution: Any = SimpleNamespace(
            reports_in_hand=0,
            at_prompt=True,
            last=LastInput(),
            unread=lambda: 0,
            began=lambda later: TypedLine(),
            ended=lambda: None,
            prompted=lambda later, seq: None,
            prompt_told=lambda has_text: None,
            cleared=lambda: None,
        )
        provenance: Any = SimpleNamespace(
            prompt_seen=True,
            began=lambda body, by, at, text, blind: body,
            prompted=lambda seq: None,
            look=lambda: None,
        )
        spec: Any = SimpleNamespace(
            name="s",
            shell="bash",
            nonce=NONCE,
            gate_keys=True,
            place=SimpleNamespace(shell_pid=os.getpid(), pid=os.getpid()),
        )
        inputs: Any = SimpleNamespace(is_empty=True)
        record: Any = SimpleNamespace(seq=1, happened=lambda by, body: None)
        ring: Any = SimpleNamespace(head=0)
        shells = ReportingShells(spec, (), lambda pid: None)
        self.commands = ShellCommands(
            *(spec, -1, self.fifo, ring, attribution, inputs, record, (), (), provenance, shells),
            walked_history=True,
            type_as_host=self._type,
            activity=self._activity,
            may_type=lambda actor: True,
            drain_output=lambda: None,
            save=lambda: None,
            changed=lambda: None,
            runs=lambda by: None,
            name=str,
            spawn=self._spawn,
        )

    def _spawn(self, work: Any) -> Any:
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.append(task)
        return task

    def _activity(self) -> SessionState:
        self.on_look()
        return SessionState.PROMPT

    def _type(self, data: bytes) -> None:
        self.typed.append(data)
        if data == LINE_PROBE and self.line is not None:
            encoded = self.line.encode().replace(b"\n", b"%0A")
            pieces = [b"T 1 0 " + encoded] if encoded else []
            self.report(*pieces, b"L 1 %d whole 0" % len(pieces))
            self.commands.read_reports()

    def report(self, *bodies: bytes) -> None:
        for body in bodies:
            os.write(self.fifo, b"\0HOLD1 " + NONCE.encode() + b" " + body + b"\0")

    async def run(self) -> Execution:
        """A line was typed, the timer fires, and what it asks for is done."""
        asked = m.Exec(1, "s", 1, COMMAND, "k")
        execution = self.commands.executions.begin("a" * 26, ME, asked, 0)
        self.commands.exec_begins(execution)
        async with asyncio.timeout(_PATIENCE_S):
            while not execution.over:
                await asyncio.sleep(0)
            await asyncio.gather(*self.tasks)
        return execution


@pytest.fixture
def desk_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], Desk]]:
    monkeypatch.setattr(shell_commands, "BEGIN_WAIT_S", 0.0)
    monkeypatch.setattr(shell_commands, "is_replaced", lambda pid: False)
    desks: list[Desk] = []

    def make() -> Desk:
        desks.append(Desk(tmp_path / "fifo"))
        return desks[-1]

    yield make
    for desk in desks:
        os.close(desk.fifo)


@pytest.mark.parametrize("when", ["before the timer", "while the state is asked for"])
async def test_a_short_command_whose_reports_nobody_took_up_yet_has_its_result(
    desk_of: Callable[[], Desk], when: str
) -> None:
    reports = (b"B 1 0 unknown /", b"E 1 7 /", b"P 2 7 /")

    desk = desk_of()
    if when == "before the timer":
        desk.report(*reports)
    else:

        def late() -> None:
            desk.on_look = lambda: None
            desk.report(*reports)

        desk.on_look = late
    execution = await desk.run()
    assert (execution.record.status, execution.record.failure) == (7, ())
    assert desk.typed == []


@pytest.mark.parametrize("line", ["", "something else", None])
async def test_a_line_that_is_not_in_the_editor_may_have_run_and_nothing_is_typed(
    desk_of: Callable[[], Desk], line: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shell_commands, "_LINE_WAIT_S", 0.01)

    desk = desk_of()
    desk.line = line
    execution = await desk.run()
    assert execution.record.failure[0] == InputUnknown.code
    assert set(desk.typed) == {LINE_PROBE}


async def test_a_line_that_is_still_in_the_editor_is_refused_and_cleared(
    desk_of: Callable[[], Desk],
) -> None:
    desk = desk_of()
    desk.line = COMMAND + "\n"
    execution = await desk.run()
    assert execution.record.failure[0] == InvalidArgument.code
    assert "not complete" in execution.record.failure[1]
    assert desk.typed == [LINE_PROBE, b"\x03"]


async def test_reports_that_come_while_the_shell_is_asked_count(
    desk_of: Callable[[], Desk],
) -> None:
    desk = desk_of()
    desk.line = COMMAND
    typed = desk._type

    def then_begins(data: bytes) -> None:
        typed(data)
        desk.report(b"B 1 0 unknown /", b"E 1 0 /", b"P 2 0 /")
        desk.commands.read_reports()

    desk.commands._type_as_host = then_begins
    execution = await desk.run()
    assert (execution.record.status, execution.record.failure) == (0, ())
    assert desk.typed == [LINE_PROBE]
