"""The relay that a host of root runs: nobody, once it serves, also where its program is in root's
home; and nothing of what it does is less for that."""

from __future__ import annotations

import os
import pwd
import shlex
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from process.commanding import HOLD, PATIENCE_S, Hold
from process.own_relay import Relayed, listens
from process.waiting import until, wait_ended

NOBODY = pwd.getpwnam("nobody").pw_uid

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="needs root")


class Readable(Relayed):
    """A host in a mount namespace of its own, where all may read the interpreter, as they may where
    it was installed for everybody; here it may be in root's home."""

    def up(self, *words: str) -> None:
        script = f'{_opened(Path(sys.base_prefix), Path(self.home))} exec "$@"'
        entering = ["unshare", "--mount", "--propagation", "private", "sh", "-ec", script, "sh"]
        done = subprocess.run(
            [*entering, HOLD, "up", "-d", *words],
            env=self.env,
            capture_output=True,
            timeout=PATIENCE_S,
        )
        assert done.returncode == 0, done
        self.own()


def _opened(place: Path, scratch: Path) -> str:
    """Commands by which everybody gets to this directory."""
    closed = [each for each in (*reversed(place.parents), place) if not each.stat().st_mode & 1]
    if not closed:
        return ""
    aside = shlex.quote(str(scratch / "aside"))
    top, here = shlex.quote(str(closed[0])), shlex.quote(str(place))
    return (
        f"mkdir {aside}; mount --bind {here} {aside}; mount -t tmpfs -o mode=755 none {top};"
        f" mkdir -p {here}; mount --bind {aside} {here};"
    )


@pytest.fixture
def host() -> Iterator[Readable]:
    made = Readable()
    yield made
    made.close()


@pytest.fixture
def elsewhere() -> Iterator[Hold]:
    made = Hold()
    yield made
    made.close()


def users_of(pid: int) -> set[int]:
    """Real, effective, saved and for files."""
    (line,) = (
        each
        for each in Path(f"/proc/{pid}/status").read_text().splitlines()
        if each.startswith("Uid:")
    )
    return {int(word) for word in line.split()[1:]}


@pytest.mark.requirement("R4")
@pytest.mark.parametrize("words", [(), ("--listen", "0.0.0.0")], ids=["loopback", "network"])
def test_the_relay_of_a_host_of_root_is_nobody_and_serves_as_before(
    host: Readable, elsewhere: Hold, words: tuple[str, ...]
) -> None:
    host.up(*words)
    assert users_of(host.relay_pid()) == {NOBODY}
    assert users_of(host.supervisor()) == {0}
    elsewhere.ok("join", "-", "--machine", "box", stdin=host.link().encode())
    host.ok("run", "-d", "--name", "work", "--", "cat")
    elsewhere.ok("send", "box/work", "typed there", "--enter")
    elsewhere.ok("wait", "box/work", "--for", "text:typed there", "--timeout", "20")
    # Its registry is written by nobody, who could not open it.
    host.kill(host.relay_pid())
    until("the relay is back", lambda: host.relay_pid() and host.own())
    assert users_of(host.relay_pid()) == {NOBODY}
    assert [each["name"] for each in elsewhere.json("ls")] == ["work"]


def test_it_still_dies_with_the_supervisor(host: Readable) -> None:
    """The kernel forgets that wish when a process becomes somebody else."""
    host.up()
    port = int(host.own().rpartition(":")[2])
    relay = os.pidfd_open(host.relay_pid())
    os.kill(host.supervisor(), signal.SIGKILL)
    wait_ended(relay)
    os.close(relay)
    until("there is another, on the same port", lambda: host.relay_pid() and listens(port))


@pytest.mark.requirement("R4")
def test_where_its_program_is_in_roots_home_it_is_nobody_and_sees_nothing_else_there(
    elsewhere: Hold,
) -> None:
    """Here the interpreter often is; where it is not, there is nothing to hide."""
    with Relayed() as host:
        host.up()
        relay = host.relay_pid()
        assert users_of(relay) == {NOBODY}, Path(host.home, "host.log").read_text()
        if closed := closed_above(Path(sys.base_prefix)):
            seen = set(os.listdir(f"/proc/{relay}/root{closed}"))
            assert seen == {Path(sys.base_prefix).relative_to(closed).parts[0]}
        elsewhere.ok("join", "-", "--machine", "box", stdin=host.link().encode())
        assert elsewhere.json("--on", "box", "ls") == []
        with urllib.request.urlopen(host.own(), timeout=PATIENCE_S) as page:
            assert b"<html" in page.read().lower()


def test_where_no_namespace_is_to_be_had_it_stays_and_says_why() -> None:
    with Relayed() as host:
        without = ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin"]
        done = subprocess.run(
            [*without, HOLD, "up", "-d"], env=host.env, capture_output=True, timeout=PATIENCE_S
        )
        assert done.returncode == 0, done
        host.own()
        users, log = users_of(host.relay_pid()), Path(host.home, "host.log").read_text()
        if closed_above(Path(sys.base_prefix)):
            assert users == {0} and "cannot be read by nobody" in log
            assert "cannot have a mount namespace" in log
        else:
            assert users == {NOBODY}


def closed_above(place: Path) -> Path | None:
    ways = (*reversed(place.parents), place)
    return next((each for each in ways if not each.stat().st_mode & 1), None)
