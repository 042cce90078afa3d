"""What a relay keeps over its own end: with a file, the highest epochs; and what it says when it
cannot (F1)."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.adapters.signing import SigningKey
from holdfast.wire import relay_messages as r
from process.relaying import PATIENCE_S, RelayProcess, at, bounded, fresh_session

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.requirement("F1")
def test_a_relay_with_a_registry_refuses_lower_epochs_after_it_was_killed(tmp_path: Path) -> None:
    registry = str(tmp_path / "new" / "registry.sqlite")
    key, session = fresh_session()
    owner, thief = SigningKey.generate(), SigningKey.generate()

    async def before(relay: RelayProcess) -> None:
        async with at(relay) as dialler:
            assert (await (await dialler.host(owner)).announce((key, 5))).refused == ()
        relay.process.kill()

    async def after(relay: RelayProcess) -> None:
        async with at(relay) as dialler:
            other = await dialler.host(thief)
            for epoch in (4, 5):
                refused = (await other.announce((key, epoch))).refused
                assert refused == (r.AnnounceRefusal(session, "fenced", 5),)
            assert (await (await dialler.host(owner)).announce((key, 5))).refused == ()

    with RelayProcess("--registry", registry) as relay:
        bounded(before(relay))
    with RelayProcess("--registry", registry) as relay:
        bounded(after(relay))


def test_two_relays_on_one_file_share_their_epochs(tmp_path: Path) -> None:
    """Not what it is for, but it must not break the rule: each sees what the other wrote."""
    registry = ("--registry", str(tmp_path / "registry.sqlite"))

    async def scene(one: RelayProcess, other: RelayProcess) -> None:
        async with at(one) as here, at(other) as there:
            key, session = fresh_session()
            first, second = await here.host(), await there.host()
            await first.announce((key, 1))
            assert (await second.announce((key, 1))).refused[0].code == "fenced"
            assert (await second.announce((key, 2))).refused == ()
            assert await first.hear(r.Superseded) == r.Superseded(session, 2)

    with RelayProcess(*registry) as one, RelayProcess(*registry) as other:
        bounded(scene(one, other))


def test_a_registry_that_cannot_be_written_refuses_new_epochs_and_goes_on(tmp_path: Path) -> None:
    """A full disk, played by a file system that may not grow."""
    disk = tmp_path / "small"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", disk], capture_output=True
    )
    if mounted.returncode != 0:
        pytest.skip("mounting a small disk needs root")

    async def scene(relay: RelayProcess) -> None:
        async with at(relay) as dialler:
            host, operator = await dialler.host(), await dialler.operator()
            key, session = fresh_session()
            assert (await host.announce((key, 1))).refused == ()
            with pytest.raises(OSError, match="No space"), (disk / "ballast").open("wb", 0) as file:
                while True:
                    file.write(bytes(4096))
            codes = set[str]()
            async with asyncio.timeout(PATIENCE_S):
                while not codes:
                    some = [(SigningKey.generate(), 1) for _ in range(16)]
                    codes = {one.code for one in (await host.announce(*some)).refused}
            assert codes == {"storage_failed"}
            assert (await operator.open(session)).epoch == 1
            (disk / "ballast").unlink()
            assert (await host.announce((SigningKey.generate(), 1))).refused == ()

    try:
        with RelayProcess("--registry", str(disk / "registry.sqlite")) as relay:
            bounded(scene(relay))
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


def test_sessions_that_would_stay_for_ever_are_rationed() -> None:
    """Anybody can make keys; a shared registry must not be filled with them."""

    async def scene(relay: RelayProcess) -> None:
        async with at(relay) as dialler:
            host = await dialler.host()
            some = [(SigningKey.generate(), 1) for _ in range(5)]
            refused = (await host.announce(*some)).refused
            assert [one.code for one in refused] == ["rate_limited"] * 2
            # What is known costs nothing: a host that comes back is not held up.
            again = await dialler.host(host.key)
            assert (await again.announce(*some[:3])).refused == ()

    with RelayProcess(
        *("--registry", ":memory:", "--limit", "rises=3", "--limit", "rises_per_s=0.001")
    ) as relay:
        bounded(scene(relay))


@pytest.mark.parametrize(
    "words",
    [
        ["--registry", "x", "--nats", "nats://127.0.0.1:1"],
        ["--nats", "nats://127.0.0.1:1", "--cluster", "a.b"],
        ["--nats", "nats://127.0.0.1:1", "--cluster", ""],
        ["--nats", "nats://127.0.0.1:1", "--nats-replicas", "7"],
    ],
)
def test_words_that_do_not_go_together_are_refused(words: list[str]) -> None:
    said = subprocess.run(
        [sys.executable, "-m", "holdfast.relay", *words],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert said.returncode == 64
    assert "invalid_argument" in said.stderr


@pytest.mark.requirement("F5")
def test_make_cluster_starts_relays_that_are_one_and_ends_all_it_started() -> None:
    script = subprocess.Popen(
        [sys.executable, ROOT / "scripts" / "cluster"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    assert script.stdout is not None
    try:
        urls: list[str] = []
        for line in script.stdout:
            if line.startswith("relays"):
                urls = line.split()[1:]
            if "^C" in line:
                break
        children = Path(f"/proc/{script.pid}/task/{script.pid}/children").read_text().split()
        assert len(children) == 5

        async def scene() -> None:
            one, other = (_Started(url) for url in urls)
            async with at(one) as here, at(other) as there:
                host, operator = await here.host(), await there.operator()
                assert (await operator.open(host.key.public)).host == host.key.public

        bounded(scene())
        script.send_signal(signal.SIGINT)
        assert script.wait(PATIENCE_S * 2) == 0
        assert not [pid for pid in children if Path(f"/proc/{pid}").exists()]
    finally:
        if script.poll() is None:
            script.terminate()
            script.wait(PATIENCE_S * 2)
        script.stdout.close()


class _Started(RelayProcess):
    """One that somebody else started."""

    def __init__(self, url: str) -> None:
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+", url), url
        self.url, self.name = url, url.partition("//")[2]
        self.home = os.devnull
