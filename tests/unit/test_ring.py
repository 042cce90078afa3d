"""Ring and ledger: every byte once, at its offset, also for a second daemon."""

from __future__ import annotations

import os
import pty
import tty
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.adapters.session_memory.input_ledger import CONDUIT_PAGES, InputLedger
from holdfast.adapters.session_memory.layout import PAGE, copy
from holdfast.adapters.session_memory.output_ring import Hangup, Ring, make_conduit, unread
from holdfast.model.ids import OperatorId
from holdfast.model.limits import LEDGER_OPERATORS

A, B = OperatorId("a" * 32), OperatorId("b" * 32)


def operator(number: int) -> OperatorId:
    return OperatorId(f"{number:032x}")


@pytest.fixture
def ring() -> Iterator[Ring]:
    made = Ring.create(64 << 10)
    yield made
    made.close()


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    master, slave = pty.openpty()
    tty.setraw(slave)
    os.set_blocking(master, False)
    yield master, slave
    for fd in (master, slave):
        os.close(fd)


def successor(ring: Ring) -> Ring:
    """What a new daemon makes of the same descriptors."""
    again = Ring(os.dup(ring.memfd), os.dup(ring.conduit))
    again.recover()
    return again


def next_ledger(ring: Ring, conduit: int) -> InputLedger:
    """The same of the inputs."""
    again = InputLedger(ring, conduit)
    again.recover()
    return again


@settings(max_examples=60, derandomize=True, deadline=None)
@given(st.lists(st.integers(1, 15_000), max_size=30))
def test_what_was_printed_is_at_its_offset_until_it_rolls_off(bursts: list[int]) -> None:
    ring, printed = Ring.create(64 << 10), b""
    for index, size in enumerate(bursts):
        data = bytes((index + i) % 251 for i in range(size))
        os.write(ring.conduit, data)
        ring.recover()
        printed += data
    assert ring.head == len(printed)
    assert ring.copy(ring.tail, ring.head) == printed[ring.tail :]
    again = successor(ring)
    assert (again.head, again.tail) == (ring.head, ring.tail)
    again.close()
    ring.close()


def test_a_daemon_killed_between_conduit_and_ring_loses_nothing(
    ring: Ring, terminal: tuple[int, int]
) -> None:
    master, slave = terminal
    os.write(slave, b"first ")
    ring.pump(master, PAGE)
    os.write(slave, b"second")
    os.splice(master, ring.conduit, PAGE)  # and here it dies
    again = successor(ring)
    assert again.copy(0, again.head) == b"first second"
    again.close()


def test_a_daemon_killed_before_noting_the_head_loses_nothing(ring: Ring) -> None:
    os.write(ring.conduit, b"noted ")
    ring.recover()
    os.write(ring.conduit, b"not noted")
    os.splice(ring.conduit, ring.memfd, 9)  # the kernel moved the position; nobody noted it
    again = successor(ring)
    assert again.copy(0, again.head) == b"noted not noted"
    again.close()


def test_a_terminal_nobody_has_open_is_a_hangup(ring: Ring) -> None:
    master, slave = pty.openpty()
    os.set_blocking(master, False)
    os.write(slave, b"last words")
    os.close(slave)
    assert ring.pump(master, PAGE) == 10
    with pytest.raises(Hangup):
        ring.pump(master, PAGE)
    os.close(master)


def test_a_checkpoint_is_the_old_or_the_new_one(ring: Ring) -> None:
    assert ring.load_checkpoint() is None
    for offset in range(5):
        ring.save_checkpoint(offset, b"state %d" % offset)
        assert successor(ring).load_checkpoint() == (offset, b"state %d" % offset)


def test_an_untouched_ring_takes_no_memory() -> None:
    ring = Ring.create(1 << 30)
    blocks = os.fstat(ring.memfd).st_blocks * 512
    ring.close()
    assert blocks <= 4 * PAGE


# -- the ledger -------------------------------------------------------------------------------


def test_inputs_reach_the_terminal_in_order_and_are_remembered(
    ring: Ring, terminal: tuple[int, int]
) -> None:
    master, slave = terminal
    ledger = InputLedger(ring, make_conduit())
    ledger.take(A, 1, b"one ")
    ledger.take(B, 1, b"two ")
    ledger.take(A, 2, b"three")
    assert ledger.type_into(master)
    assert os.read(slave, 100) == b"one two three"
    assert ledger.operators() == {A: 2, B: 1}
    ledger.close()


def test_a_new_daemon_types_what_the_old_one_took_and_did_not_type(
    ring: Ring, terminal: tuple[int, int]
) -> None:
    master, slave = terminal
    conduit = make_conduit()
    InputLedger(ring, os.dup(conduit)).take(A, 7, b"not lost")
    again = next_ledger(ring, conduit)
    assert again.last_seq(A) == 7
    again.type_into(master)
    assert os.read(slave, 100) == b"not lost"


@pytest.mark.parametrize("written", [True, False])
def test_a_kill_while_staging_is_settled_by_the_length_of_the_pipe(
    ring: Ring, monkeypatch: pytest.MonkeyPatch, written: bool
) -> None:
    conduit = make_conduit()
    ledger = InputLedger(ring, conduit)
    ledger.take(A, 1, b"before")
    real_write = os.write

    def die(fd: int, data: bytes) -> int:
        if written:
            real_write(fd, data)
        raise SystemExit

    monkeypatch.setattr(os, "write", die)
    with pytest.raises(SystemExit):
        ledger.take(A, 2, b"doubtful")
    monkeypatch.undo()
    again = next_ledger(ring, conduit)
    assert again.last_seq(A) == (2 if written else 1)
    assert unread(conduit) == len(b"before" + b"doubtful" * written)


def test_the_longest_idle_operator_is_forgotten_first(ring: Ring) -> None:
    ledger = InputLedger(ring, make_conduit())
    for number in range(1, LEDGER_OPERATORS + 1):
        ledger.take(operator(number), 1, b"")
    ledger.take(operator(1), 2, b"")  # number 2 is now the longest idle
    ledger.take(operator(999), 1, b"")
    assert ledger.last_seq(operator(1)) == 2
    assert ledger.last_seq(operator(2)) == 0
    assert ledger.last_seq(operator(999)) == 1
    ledger.close()


@pytest.mark.parametrize("size", [1, 600, 2100, 4095, 4096, 4097, 9000])
def test_inputs_of_any_size_fill_the_conduit_without_failing(ring: Ring, size: int) -> None:
    ledger, seq = InputLedger(ring, make_conduit()), 0
    while ledger.room() >= size:
        seq += 1
        ledger.take(A, seq, b"x" * size)
    assert seq == min(CONDUIT_PAGES // -(-size // PAGE), CONDUIT_PAGES)
    ledger.close()


def test_room_is_never_promised_that_is_not_there(ring: Ring, terminal: tuple[int, int]) -> None:
    master, slave = terminal
    ledger = InputLedger(ring, make_conduit())
    assert ledger.room() == CONDUIT_PAGES * PAGE
    seq = 0
    for size in (1, 5000, 4096, 3, 20_000, 4095, 30_000, 60_000):
        if size <= ledger.room():
            seq += 1
            ledger.take(A, seq, b"k" * size)
        ledger.type_into(master)
        os.read(slave, 3000)
    assert ledger.last_seq(A) == seq
    ledger.close()


def test_a_copy_of_the_memory_has_all_of_it_and_shares_nothing(ring: Ring) -> None:
    os.write(ring.conduit, b"printed")
    ring.recover()
    ring.save_checkpoint(3, b"painted")
    InputLedger(ring, make_conduit()).take(A, 7, b"typed")
    twin = Ring(copy(ring.memfd), make_conduit())
    twin.recover()
    os.write(ring.conduit, b" later")
    ring.recover()
    assert (twin.copy(0, twin.head), twin.load_checkpoint()) == (b"printed", (3, b"painted"))
    assert InputLedger(twin, make_conduit()).last_seq(A) == 7
    assert ring.copy(0, ring.head) == b"printed later"
    twin.close()
