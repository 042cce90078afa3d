"""The network is locked for a dump only where there is a connection; one that is made in the moment
before the tree stands still has the dump done again, with the lock. CRIU is played by the test."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.adapters.criu import dump, swrk
from holdfast.adapters.criu.protobuf import decode, encode, field
from holdfast.adapters.proc import foreign_connections
from holdfast.model.restore import DumpedTree
from holdfast.model.spec import Place

TREE = DumpedTree(shell=2, tty="/dev/pts/0", tty_keys=(), mounts=(), groups={}, gate=False)
_NETWORK_LOCK = 64  # in `criu_opts`


class PlayedCriu:
    """Writes an image, asks whether to go on, and is done as it is told."""

    def __init__(self, images: Path) -> None:
        self._images = images
        self.locks: list[int] = []
        self.found: list[set[str]] = []

    async def start(self, theirs: int) -> int:
        sock = socket.socket(fileno=os.dup(theirs))
        self._task = asyncio.get_running_loop().create_task(self._play(sock))
        return os.pidfd_open(os.getpid())

    async def _play(self, sock: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        sock.setblocking(False)
        with sock:
            asked = decode(await loop.sock_recv(sock, 1 << 16))
            options = decode(next(each.data for each in asked if each.number == 2))
            self.locks += [int(each.value) for each in options if each.number == _NETWORK_LOCK]
            self.found.append(set(os.listdir(self._images)))
            (self._images / "core.img").touch()
            said = encode((field(1, "post-dump"),))
            await loop.sock_sendall(sock, encode((field(1, swrk.Kind.NOTIFY), field(5, said))))
            answer = {each.number: each.value for each in decode(await loop.sock_recv(sock, 99))}
            done = field(1, swrk.Kind.DUMP), field(2, bool(answer.get(3)))
            await loop.sock_sendall(sock, encode(done))


@pytest.mark.parametrize(
    ("connected", "locks"),
    [
        ([False, False], [swrk.LOCK_SKIP]),
        ([True], [swrk.LOCK_NFTABLES]),
        ([False, True], [swrk.LOCK_SKIP, swrk.LOCK_NFTABLES]),
    ],
)
def test_the_network_is_locked_where_there_is_a_connection(
    connected: list[bool], locks: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: Iterator[bool] = iter(connected)
    monkeypatch.setattr(foreign_connections, "any_connection", lambda _pids: next(looks))
    criu, captured = PlayedCriu(tmp_path), []

    async def frozen() -> None:
        captured.append(os.listdir(tmp_path))

    async def story() -> None:
        images = os.open(tmp_path, os.O_RDONLY)
        place = Place(pid=1, shell_pid=2, tty="/dev/pts/0", cgroup=str(tmp_path / "no-group"))
        try:
            await dump.dump(criu.start, place, TREE, images, frozen, leave_running=True)
        finally:
            os.close(images)

    asyncio.run(story())
    assert criu.locks == locks
    assert captured == [["core.img"]], "what the tree was is captured once, when it counts"
    assert criu.found == [set()] * len(locks), "nothing of the first dump is left for the second"
    assert list(looks) == []
