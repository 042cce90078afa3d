"""S1, A9: a file system without a free inode, which is not a full one: what exists can be written,
and nothing new can be made. Rights on such a disk: test_revoking_on_a_bad_disk."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator

import pytest

from faults.hosting import FaultHost, is_alive, process_key
from faults.test_revoking_on_a_bad_disk import mend, spoil
from faults.test_storage import mount, session_directories
from holdfast.model.errors import StorageFailed
from holdfast.model.state import Ending, Level
from holdfast.wire.messages import journal, turn
from holdfast.wire.messages import session as m
from process.waiting import until

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="mounting needs root")


@pytest.fixture
def host() -> Iterator[FaultHost]:
    """Its home is a file system of its own, with few inodes."""
    host = FaultHost()
    home = host.home
    mount("-t", "tmpfs", "-o", "size=4m,nr_inodes=120,mode=0700", "holdfast-test", str(home))
    try:
        yield host.up()
    finally:
        mend(home)
        host.down()
        subprocess.run(["umount", "-l", str(home)], check=False, timeout=10)
        with contextlib.suppress(OSError):
            home.rmdir()


@pytest.mark.requirement("S1", "A5", "A9")
@pytest.mark.timeout(90)
def test_without_inodes_the_living_work_halt_and_end_and_new_sessions_are_refused(
    host: FaultHost, level: Level
) -> None:
    client = host.client()
    living = client.run(["cat"], level=level)
    ending = client.run(["/bin/sh", "-c", "read line; exit 7"], level=level)
    process, before = process_key(living.pid), session_directories(host)
    assert process is not None
    spoil(host.home, "no inodes")
    with pytest.raises(StorageFailed):
        client.run(["cat"], level=level)
    assert session_directories(host) == before
    client.send(living.id, "still here")
    until("it echoes", lambda: "still here" in client.screen(living.id).text or None)
    client.ask(turn.Seize(0, living.id, halt=True), turn.Halted)
    client.ask(turn.Resume(0, living.id), m.Done)
    client.send(ending.id, "go")
    assert until("its end is known", lambda: client.show(ending.id).ending) == Ending(code=7)
    # A daemon that starts without inodes has all of it too.
    host.wait_new_daemon(host.kill_daemon())
    client.reconnect()
    assert is_alive(process) and client.show(living.id).pid == process.pid
    assert client.show(ending.id).ending == Ending(code=7)
    client.ask(turn.Seize(0, living.id, halt=True), turn.Halted)
    client.ask(turn.Resume(0, living.id), m.Done)

    mend(host.home)
    tombstone = host.home / "sessions" / ending.id / "tombstone.json"
    until("the tombstone is written", lambda: tombstone.exists() or None)
    client.send(living.id, "and again")
    until("it echoes", lambda: "and again" in client.screen(living.id).text or None)
    for session in (living.id, ending.id):
        judged = client.ask(journal.Verify(0, session, True), journal.Verified).judgement
        assert judged.status == "continuous", judged
    assert client.run(["cat"], level=level).pid > 0
    assert "Traceback" not in host.log(), host.log()
