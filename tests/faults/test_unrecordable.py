"""A5, S1: whoever may stop a session can, whatever the disk does; what could not be recorded is
said, and recorded when it can be."""

from __future__ import annotations

import os

import pytest

from faults.crash_points import customized_host
from faults.hosting import FaultHost
from faults.test_storage import fill
from faults.test_storage import small_disk as small_disk
from holdfast.adapters.journal_files.segments import JournalReader
from holdfast.journal import entries
from holdfast.model.errors import StorageFailed
from holdfast.model.size import Size
from holdfast.model.state import Ending, SessionState
from holdfast.model.turn_info import Receipt
from holdfast.sdk.client import Host
from holdfast.wire.messages import journal as journal_messages
from holdfast.wire.messages import session as m
from holdfast.wire.messages import turn as turn_messages
from process.waiting import until

_COMINGS = 220  # each was two entries, of 400 bytes; of the reserve less than 70 KiB are left
_WORDY = "x" * 200


def recorded(host: FaultHost, session: str) -> list[entries.Entry]:
    return list(JournalReader(f"{host.home}/sessions/{session}").entries())


def type_until_refused(client: Host, session: str) -> None:
    with pytest.raises(StorageFailed):
        for _ in range(2000):
            client.send(session, "x" * 1000)


def seize(client: Host, session: str) -> Receipt:
    return client.ask(
        turn_messages.Seize(0, session, halt=True, reason=_WORDY), turn_messages.Halted
    ).receipt


def come_and_go(host: FaultHost, session: str, times: int) -> None:
    with Host(path=host.socket, client=_WORDY) as observer:
        for channel in range(times):
            observer.ask(m.Attach(0, session, channel, observe=True, raw=True), m.Attached)
            observer.ask(m.Detach(0, channel), m.Done)


@pytest.mark.requirement("A5", "S1")
@pytest.mark.timeout(90)
def test_nobody_uses_up_what_stopping_needs_and_without_it_stopping_works_all_the_same(
    small_disk: FaultHost,
) -> None:
    host, client = small_disk, small_disk.client()
    info = client.run(["cat"], size=Size(80, 24))
    filler = fill(host.home)
    type_until_refused(client, info.id)
    come_and_go(host, info.id, _COMINGS)
    receipt = seize(client, info.id)
    assert (receipt.frozen, receipt.unrecorded) == (True, ""), "who comes and goes uses it up"

    halts = 1
    while not receipt.unrecorded:
        receipt = seize(client, info.id)
        halts += 1
        assert receipt.frozen and halts < 1000
    client.ask(turn_messages.Resume(0, info.id), m.Done)
    shown = client.show(info.id)
    assert shown.state is not SessionState.HALTED and shown.unrecorded
    # The size moves with who comes: that is no reason to keep anybody out either.
    client.ask(m.Attach(0, info.id, 1, size=Size(100, 30)), m.Attached)
    assert client.show(info.id).size == Size(100, 30)
    with pytest.raises(StorageFailed):
        client.send(info.id, "unrecorded")

    filler.unlink()
    until("all is recorded", lambda: not client.show(info.id).unrecorded or None)
    client.send(info.id, "there is room again")
    kinds = [entry.body for entry in recorded(host, info.id)]
    assert sum(isinstance(body, entries.HaltedEntry) for body in kinds) == halts
    assert sum(isinstance(body, entries.ResumedEntry) for body in kinds) == 1
    missing = {body.what: body.count for body in kinds if isinstance(body, entries.Unrecorded)}
    came = sum(isinstance(body, entries.AttachedEntry) for body in kinds)
    assert (came + missing["attached"], missing["resized"]) == (_COMINGS + 1, 1)
    assert came < _COMINGS / 4 and missing["detached"] > _COMINGS / 2
    times = [entry.at for entry in recorded(host, info.id)]
    assert times == sorted(times), "what waited has the time at which it happened"
    assert (
        client.ask(journal_messages.Verify(0, info.id), journal_messages.Verified).judgement.verdict
        == "intact"
    )

    filler = fill(host.home)
    while not seize(client, info.id).unrecorded:
        pass
    client.ask(turn_messages.Resume(0, info.id), m.Done)
    assert client.end(info.id).ending == Ending(signal=1), "there is no room for a tombstone"
    filler.unlink()
    closed = "its end is recorded behind all that came before"
    until(
        closed,
        lambda: (
            client.ask(
                journal_messages.Verify(0, info.id), journal_messages.Verified
            ).judgement.closed_by
            or None
        ),
    )
    last = [entry.body for entry in recorded(host, info.id)]
    ends = [type(body) for body in last if not isinstance(body, entries.SealEntry)][-3:]
    assert ends == [entries.ResumedEntry, entries.EndAskedEntry, entries.EndedEntry]


_DISK_BREAKS = """
import os
whole = os.fdatasync
def fdatasync(fd):
    if os.path.exists(os.environ["HOLDFAST_HOME"] + "/broken"):
        raise OSError(5, "it broke")
    whole(fd)
os.fdatasync = fdatasync
"""


@pytest.mark.requirement("A5")
@pytest.mark.timeout(60)
def test_a_disk_that_fails_keeps_nobody_from_stopping() -> None:
    host = customized_host(_DISK_BREAKS).up()
    try:
        client = host.client()
        info = client.run(["cat"])
        (host.home / "broken").touch()
        receipt = seize(client, info.id)
        assert receipt.frozen and "it broke" in receipt.unrecorded
        (host.home / "broken").unlink()
        # What the kernel once failed to write is in doubt for good, whatever it says afterwards.
        assert "it broke" in seize(client, info.id).unrecorded
        client.ask(turn_messages.Resume(0, info.id), m.Done)
        with pytest.raises(StorageFailed):
            client.send(info.id, "in doubt")
        done = host.hold("end", info.id)
        assert done.returncode == 0 and "the journal does not have all" in done.stderr
        assert os.path.exists(f"{host.home}/sessions/{info.id}/tombstone.json")
    finally:
        host.down()
