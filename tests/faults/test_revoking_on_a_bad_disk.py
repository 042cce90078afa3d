"""A2, A5: rights are taken away at once on any state of the disk, and recorded when it allows."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from faults.crash_points import customized_host
from faults.hosting import FaultHost
from faults.test_storage import fill, mount
from holdfast.model.envelope import ALL, Envelope, Right, Scope
from holdfast.model.errors import InviteInvalid, StorageFailed
from process.waiting import until
from unit.admitting import FakeDaemon, restarted
from unit.granting import HOST, NOW, Party

STATES = ("full", "no inodes", "read-only")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small file system of its own, with few inodes."""
    home = tmp_path / "disk"
    home.mkdir()
    mount("-t", "tmpfs", "-o", "size=2m,nr_inodes=120,mode=0700", "holdfast-test", str(home))
    try:
        yield home
    finally:
        while os.path.ismount(home):
            subprocess.run(["umount", "-l", str(home)], check=True, timeout=10)


def spoil(home: Path, state: str) -> None:
    if state == "full":
        fill(home)
    elif state == "no inodes":
        with contextlib.suppress(OSError):
            for number in range(1000):
                (home / f"filler-{number}").touch()
    else:
        # Beside the files that are open: the kernel refuses to take those from their writers.
        mount("--bind", str(home), str(home))
        mount("-o", "remount,bind,ro", str(home))


def mend(home: Path) -> None:
    if not os.access(home, os.W_OK):
        subprocess.run(["umount", str(home)], check=True, timeout=10)
    for filler in home.glob("filler*"):
        filler.unlink()


def kept(home: Path, name: str) -> dict[str, object]:
    found = json.loads((home / f"{name}.json").read_text())
    assert isinstance(found, dict)
    return found


def revoked_on_disk(home: Path, name: str) -> bool:
    actors = kept(home, "authority")["actors"]
    assert isinstance(actors, list)
    return any(each["name"] == name and each["revoked_at"] for each in actors)


@pytest.fixture
def host(disk: Path) -> Iterator[FaultHost]:
    host = FaultHost()
    host.home.rmdir()
    host.home.symlink_to(disk)
    try:
        yield host.up()
    finally:
        mend(disk)
        home = host.home
        host.down()
        home.unlink(missing_ok=True)


def ok(host: FaultHost, *words: str) -> subprocess.CompletedProcess[str]:
    done = host.hold(*words)
    assert done.returncode == 0, (words, done.stderr, host.log()[-2000:])
    return done


def refused(host: FaultHost, code: str, *words: str) -> None:
    done = host.hold(*words)
    assert done.returncode != 0 and f"({code})" in done.stderr, (words, done)


@pytest.mark.requirement("A2", "A5")
@pytest.mark.timeout(120)
@pytest.mark.parametrize("state", STATES)
def test_taking_rights_away_works_at_once_on_any_disk_and_giving_them_does_not(
    host: FaultHost, disk: Path, state: str
) -> None:
    ok(host, "run", "-d", "--name", "work", "--", "cat")
    for actor in ("agent", "narrowed", "emptied", "spare"):
        ok(host, "actor", "add", actor)
    for actor in ("agent", "narrowed", "emptied"):
        ok(host, "grant", actor, "execute", "--all")
    ok(host, "--as", "agent", "screen", "work")
    spoil(disk, state)

    refused(host, "storage_failed", "grant", "spare", "execute", "--all")
    answers = [
        json.loads(ok(host, "actor", "revoke", "agent", "--json").stdout),
        json.loads(ok(host, "revoke", "emptied", "--all", "--json").stdout),
    ]
    narrowed = ok(host, "grant", "narrowed", "read", "--all")
    for answer in answers:
        assert bool(answer["unrecorded"]) is (state == "read-only")
    assert ("not on disk yet" in narrowed.stderr) is (state == "read-only")
    refused(host, "actor_revoked", "--as", "agent", "screen", "work")
    refused(host, "access_revoked", "--as", "emptied", "screen", "work")
    refused(host, "not_permitted", "--as", "narrowed", "send", "work", "x")

    if state == "read-only":
        assert not revoked_on_disk(disk, "agent")
        findings = {each["name"] for each in json.loads(ok_doctor(host))["findings"]}
        assert "rights" in findings
        mend(disk)
        until("the revocation is recorded", lambda: revoked_on_disk(disk, "agent") or None)
    assert revoked_on_disk(disk, "agent")
    host.wait_new_daemon(host.kill_daemon())
    refused(host, "actor_revoked", "--as", "agent", "screen", "work")
    refused(host, "access_revoked", "--as", "emptied", "screen", "work")


_FAILING = """
import errno, os
really = os.fsync
def fsync(fd):
    if os.path.exists({flag!r}):
        raise OSError(errno.EIO, os.strerror(errno.EIO))
    really(fd)
os.fsync = os.fdatasync = fsync
"""


@pytest.mark.requirement("A2", "A5")
@pytest.mark.timeout(120)
def test_a_failing_disk_keeps_nobodys_rights_alive(tmp_path: Path) -> None:
    """As the kernel reports it when a device loses what was written: EIO at fsync."""
    failing = tmp_path / "failing"
    host = customized_host(_FAILING.format(flag=str(failing)))
    try:
        host.up()
        ok(host, "run", "-d", "--name", "work", "--", "cat")
        for actor in ("agent", "emptied", "spare"):
            ok(host, "actor", "add", actor)
            ok(host, "grant", actor, "execute", "--all")
            ok(host, "--as", actor, "screen", "work")
        failing.touch()
        refused(host, "storage_failed", "grant", "spare", "admin", "--all")
        for words in (("actor", "revoke", "agent"), ("revoke", "emptied", "--all")):
            answer = json.loads(ok(host, *words, "--json").stdout)
            assert "Input/output error" in answer["unrecorded"], answer
        refused(host, "actor_revoked", "--as", "agent", "screen", "work")
        refused(host, "access_revoked", "--as", "emptied", "screen", "work")
        for verb in ("halt", "resume", "seize"):
            ok(host, verb, "work")
        failing.unlink()
        until("it is recorded", lambda: revoked_on_disk(host.home, "agent") or None)
        until("doctor has no complaint", lambda: "rights" not in found(host) or None)
        host.wait_new_daemon(host.kill_daemon())
        refused(host, "actor_revoked", "--as", "agent", "screen", "work")
        refused(host, "access_revoked", "--as", "emptied", "screen", "work")
    finally:
        host.down()


def found(host: FaultHost) -> set[str]:
    """What `hold doctor` complains of."""
    return {each["name"] for each in json.loads(ok_doctor(host))["findings"] if not each["ok"]}


def ok_doctor(host: FaultHost) -> str:
    """Its exit status says whether everything is well, which it is not."""
    return host.hold("doctor", "--json").stdout


@pytest.mark.requirement("A2", "R3")
@pytest.mark.timeout(60)
@pytest.mark.parametrize("state", STATES)
async def test_devices_and_invites_are_revoked_at_once_on_any_disk(disk: Path, state: str) -> None:
    phone, tablet = Party(31), Party(32)

    daemon = FakeDaemon(disk, HOST)
    used, unused = daemon.invite(), daemon.invite()
    daemon.admission.admit("one", phone.key, daemon.joins(phone, used), NOW + 1)
    assert daemon.rights(phone)
    spoil(disk, state)
    with pytest.raises(StorageFailed):
        daemon.invite()
    daemon.revocation.revoke_invite(daemon.owner, unused.id.hex(), False, NOW + 2)
    daemon.revocation.revoke_device(daemon.owner, phone.actor, NOW + 2)
    assert not daemon.rights(phone)
    files = daemon.actors.file, daemon.admission.file
    assert {bool(each.unrecorded()) for each in files} == {state == "read-only"}
    mend(disk)
    async with asyncio.timeout(20):
        while any(each.unrecorded() for each in files):
            await asyncio.sleep(0.05)
    after = restarted(daemon)
    assert not after.rights(phone)
    with pytest.raises(InviteInvalid):
        after.joins(tablet, unused)


@pytest.mark.requirement("A2")
async def test_a_disk_whose_fsync_fails_keeps_no_right_alive(
    disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    phone = Party(31)

    def failing(fd: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    daemon = FakeDaemon(disk, HOST)
    daemon.admission.admit("one", phone.key, daemon.joins(phone, daemon.invite()), NOW + 1)
    monkeypatch.setattr(os, "fsync", failing)
    daemon.revocation.revoke_device(daemon.owner, phone.actor, NOW + 2)
    assert not daemon.rights(phone)
    files = daemon.actors.file, daemon.admission.file
    assert all("Input/output error" in each.unrecorded() for each in files)
    monkeypatch.undo()
    async with asyncio.timeout(20):
        while any(each.unrecorded() for each in files):
            await asyncio.sleep(0.05)
    assert not restarted(daemon).rights(phone)


def test_an_envelope_within_the_one_it_replaces_gives_nothing() -> None:
    wide = Envelope(Party(1).actor, ALL, (Right.INPUT, Right.OBSERVE), 100.0, inputs_per_s=5.0)
    for narrower in (
        {"rights": ()},
        {"rights": (Right.OBSERVE,)},
        {"expires_at": 50.0},
        {"inputs_per_s": 1.0, "bytes_per_s": 9.0},
    ):
        assert wide.replace(**narrower).is_within(wide)
    for wider in (
        {"rights": (Right.OBSERVE, Right.HALT)},
        {"expires_at": None},
        {"expires_at": 101.0},
        {"inputs_per_s": None},
        {"scope": Scope.label("ci")},
        {"actor": Party(2).actor},
    ):
        assert not wide.replace(**wider).is_within(wide)
