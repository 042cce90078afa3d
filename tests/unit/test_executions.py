"""What a session remembers of the command lines that somebody waits for."""

from __future__ import annotations

import pytest

from holdfast.host.session.exec_runs import Execution, Executions, command_bytes
from holdfast.host.session.parcel import SavedExec
from holdfast.keeper.protocol import MESSAGE_MAX_BYTES
from holdfast.model.errors import InvalidArgument, SessionBusy
from holdfast.model.ids import OperatorId
from holdfast.model.limits import (
    ARGV_KEPT_MAX_BYTES,
    EXEC_KEY_MAX_CHARS,
    EXECS_REMEMBERED,
    KEYED_EXECS_REMEMBERED,
)
from holdfast.wire.messages import session as m

ME, OTHER = OperatorId("1" * 32), OperatorId("2" * 32)
ACTOR = "a" * 26


def request(seq: int, key: str = "", command: str = "make") -> m.Exec:
    return m.Exec(1, "s", seq, command, key)


def begun(executions: Executions, asked: m.Exec, operator: OperatorId = ME) -> Execution:
    execution = executions.begin(ACTOR, operator, asked, 0)
    executions.typed()
    return execution


def test_a_key_finds_what_it_began_from_any_operator_of_its_actor_only() -> None:
    executions = Executions(())
    first = begun(executions, request(1, "k"))
    assert executions.find(ACTOR, OTHER, request(9, "k")) is first
    assert executions.find("b" * 26, ME, request(1, "k")) is None
    with pytest.raises(InvalidArgument):
        executions.find(ACTOR, ME, request(2, "k", "make clean"))


def test_without_a_key_only_the_same_number_of_the_same_operator_is_the_same() -> None:
    executions = Executions(())
    first = begun(executions, request(1))
    assert executions.find(ACTOR, ME, request(1)) is first
    assert executions.find(ACTOR, ME, request(2)) is None
    assert executions.find(ACTOR, OTHER, request(1)) is None
    assert executions.find(ACTOR, ME, request(1, "k")) is None


def test_those_without_a_key_push_out_none_that_has_one_and_each_kind_is_bounded() -> None:
    executions = Executions(())
    begun(executions, request(1, "k"))
    for number in range(2, 100):
        begun(executions, request(number))
    assert executions.find(ACTOR, ME, request(1, "k")) is not None
    for number in range(KEYED_EXECS_REMEMBERED):
        begun(executions, request(100 + number, f"k{number}"))
    assert executions.find(ACTOR, ME, request(1, "k")) is None
    assert len(executions.kept()) == KEYED_EXECS_REMEMBERED + EXECS_REMEMBERED


def test_one_that_was_refused_pushes_out_nobody() -> None:
    executions = Executions(())
    for number in range(KEYED_EXECS_REMEMBERED):
        begun(executions, request(number + 1, f"k{number}"))
    for number in range(100):
        executions.forget(executions.begin(ACTOR, ME, request(900 + number, f"x{number}"), 0))
    assert executions.find(ACTOR, ME, request(1, "k0")) is not None


def test_a_new_daemon_carries_on_what_was_typed_and_forgets_what_was_not() -> None:
    executions = Executions(())
    ended, running = begun(executions, request(1, "a")), begun(executions, request(2, "b"))
    begun(executions, request(3, "c"))
    ended.fails(SessionBusy("not now"))
    running.begins(7, 70)
    kept = tuple(SavedExec.unpack(record.pack()) for record in executions.kept())
    again = Executions(kept)
    left = again.unfinished({ME: 2}.__getitem__)
    assert left is not None and left.restored
    assert (left.record.command, left.record.journal_seq) == (7, 70)
    found = again.find(ACTOR, ME, request(1, "a"))
    assert found is not None and found.over and found.record.failure[0] == "session_busy"
    assert again.find(ACTOR, ME, request(3, "c")) is None, "the ledger has no such input"


def test_a_key_has_a_bounded_length() -> None:
    with pytest.raises(InvalidArgument):
        Executions(()).begin(ACTOR, ME, request(1, "k" * (EXEC_KEY_MAX_CHARS + 1)), 0)


def test_all_that_is_remembered_leaves_room_in_what_the_keeper_holds() -> None:
    import msgpack

    record = SavedExec(
        "f" * 32, True, ME, 1 << 40, "f" * 16, 1 << 40, 1e9, 1 << 30, True, 1 << 40, 1e6, 255,
        "/" + "é" * 49, 1 << 40, ("input_unknown", "x" * 150, "x" * 60),
    )  # fmt: skip
    count = KEYED_EXECS_REMEMBERED + EXECS_REMEMBERED
    size = len(msgpack.packb([record.pack()] * count))
    # Beside it: the command line, ten command records of five hundred characters, the rest.
    assert size + ARGV_KEPT_MAX_BYTES < MESSAGE_MAX_BYTES


@pytest.mark.parametrize(
    "command", ["a\x03", "a\0b", "a\x1b[201~\rb", "a\rb", "\x7fa", "a\x9b"], ids=ascii
)
def test_a_command_line_with_a_control_character_is_refused(command: str) -> None:
    with pytest.raises(InvalidArgument, match="control character"):
        command_bytes(command, bracketed=True)


def test_newlines_and_pasted_tabs_are_text() -> None:
    assert command_bytes("a\n\tb", bracketed=True) == b"\x1b[200~a\n\tb\x1b[201~\r"
    with pytest.raises(InvalidArgument, match=r"U\+0009"):
        command_bytes("a\tb", bracketed=False)  # there a tab completes a word
