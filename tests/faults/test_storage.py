"""S1, A9: a disk that is full or read-only costs new sessions, never the living or the true end."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from faults.crash_points import customized_host
from faults.hosting import FaultHost, is_alive, process_key
from faults.leftovers import assert_in_order
from holdfast.model.errors import StorageFailed
from holdfast.model.state import Ending, Level
from process.waiting import until

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="mounting needs root")


@pytest.fixture
def small_disk() -> Iterator[FaultHost]:
    """A host whose home is a file system of one megabyte."""
    host = FaultHost()
    mount("-t", "tmpfs", "-o", "size=1m,mode=0700", "holdfast-test", str(host.home))
    try:
        yield host.up()
    finally:
        with contextlib.suppress(subprocess.CalledProcessError):
            mount("-o", "remount,rw,size=4m", str(host.home))
        home = host.home
        host.down()
        subprocess.run(["umount", "-l", str(home)], check=False, timeout=10)
        with contextlib.suppress(OSError):
            home.rmdir()


def mount(*words: str) -> None:
    subprocess.run(["mount", *words], check=True, timeout=10, capture_output=True)


def fill(home: Path) -> Path:
    path = home / "filler"
    with path.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(b"x" * 4096):
            pass
    return path


def session_directories(host: FaultHost) -> set[str]:
    return set(os.listdir(host.home / "sessions"))


@pytest.mark.requirement("S1", "A9")
@pytest.mark.timeout(60)
def test_a_full_disk_refuses_new_sessions_and_keeps_the_living_and_their_ends(
    small_disk: FaultHost, level: Level
) -> None:
    host = small_disk
    client = host.client()
    living = client.run(["cat"], level=level)
    ending = client.run(["/bin/sh", "-c", "read line; exit 7"], level=level)
    process, before = process_key(living.pid), session_directories(host)
    assert process is not None
    filler = fill(host.home)
    with pytest.raises(StorageFailed):
        client.run(["cat"], level=level)
    assert session_directories(host) == before
    if level is Level.CONTAINED:
        assert {group.name for group in host.groups()} == before
    client.send(living.id, "still here")
    until("it echoes", lambda: "still here" in client.screen(living.id).text or None)
    client.send(ending.id, "go")
    seen = until("its end is known", lambda: client.show(ending.id).ending)
    assert seen == Ending(code=7)
    filler.unlink()
    tombstone = host.home / "sessions" / ending.id / "tombstone.json"
    until("the tombstone is written", lambda: tombstone.exists() or None)
    host.wait_new_daemon(host.kill_daemon())
    client.reconnect()
    assert client.show(ending.id).ending == Ending(code=7)
    assert is_alive(process) and client.show(living.id).pid == process.pid
    assert client.run(["cat"], level=level).pid > 0


@pytest.mark.requirement("A9")
@pytest.mark.timeout(60)
def test_an_end_on_a_full_disk_outlives_the_daemon_that_saw_it(small_disk: FaultHost) -> None:
    host = small_disk
    client = host.client()
    ending = client.run(["/bin/sh", "-c", "read line; exit 7"])
    filler = fill(host.home)
    client.send(ending.id, "go")
    until("its end is known", lambda: client.show(ending.id).ending)
    host.wait_new_daemon(host.kill_daemon())
    client.reconnect()
    filler.unlink()
    tombstone = host.home / "sessions" / ending.id / "tombstone.json"
    until("the tombstone is written", lambda: tombstone.exists() or None)
    assert client.show(ending.id).ending == Ending(code=7)


@pytest.mark.requirement("S1")
@pytest.mark.timeout(60)
def test_a_read_only_state_directory_refuses_new_sessions_and_spares_the_living(
    small_disk: FaultHost, level: Level
) -> None:
    host = small_disk
    client = host.client()
    living = client.run(["cat"], level=level)
    (host.home / "host.log").unlink()  # held open for writing, it would forbid the remount
    mount("--bind", str(host.home / "sessions"), str(host.home / "sessions"))
    try:
        mount("-o", "remount,bind,ro", str(host.home / "sessions"))
        with pytest.raises(StorageFailed):
            client.run(["cat"], level=level)
        assert session_directories(host) == {living.id}
        client.send(living.id, "still here")
        until("it echoes", lambda: "still here" in client.screen(living.id).text or None)
        host.wait_new_daemon(host.kill_daemon())
        client.reconnect()
        assert client.show(living.id).pid == living.pid
        with pytest.raises(StorageFailed):  # the new daemon cannot record: nothing is typed
            client.send(living.id, "unrecorded")
    finally:
        # Lazily: the journal of the living is open there.
        subprocess.run(["umount", "-l", str(host.home / "sessions")], check=True, timeout=10)
    assert client.run(["cat"], level=level).pid > 0


_SPEC_FAILS_ONCE = """
import holdfast.host.session_store as store
whole = store.SessionStore.save_spec
def save_spec(self, stored):
    store.SessionStore.save_spec = whole
    raise store.StorageFailed("no room")
store.SessionStore.save_spec = save_spec
"""


@pytest.mark.requirement("S1")
@pytest.mark.parametrize("level", [Level.PLAIN, Level.CONTAINED])
def test_a_start_that_fails_at_its_last_step_leaves_the_daemon_and_nothing_else(
    level: Level,
) -> None:
    host = customized_host(_SPEC_FAILS_ONCE).up()
    try:
        with host.client() as client:
            daemon = host.daemon_pid()
            with pytest.raises(StorageFailed):
                client.run(["bash", "--norc"], level=level)
            again = [
                client.run(["bash", "--norc"], level=level) for _ in range(3)
            ]  # reuses the numbers
            assert all(client.screen(info.id) is not None for info in again)
            assert host.daemon_pid() == daemon
            assert_in_order(host, client)
    finally:
        host.down()
