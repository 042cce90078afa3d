"""The daemon's end of the channel to the keeper."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any

from holdfast.keeper import channel
from holdfast.model.ids import SessionId
from holdfast.model.record import Record
from holdfast.model.state import Ending


class Collected(Record):
    """A session an earlier daemon left in custody."""

    session: SessionId
    fds: dict[str, int]
    blob: bytes
    ending: Ending | None


class KeeperLink:
    """Deposits and news. Sending blocks for at most the keeper's turn of its loop: it does nothing
    slow, and an unanswered keeper means there is no host any more."""

    def __init__(self, fd: int) -> None:
        self._sock = socket.socket(fileno=fd)
        self._sock.setblocking(True)
        self.keeper_pid = 0
        self._early: list[channel.Parcel] = []  # news that came while collecting

    def collect(self) -> list[Collected]:
        """Everything in custody. Before `listen`; news that comes meanwhile is kept for it."""
        found: list[Collected] = []
        after: str | None = None
        while True:
            channel.send(self._sock, {"do": "collect", "after": after})
            parcel = self._answer()
            if parcel.head["news"] == "all":
                self.keeper_pid = parcel.head["keeper_pid"]
                return found
            after = parcel.head["session"]
            status = parcel.head["status"]
            found.append(
                Collected(
                    SessionId(after),
                    dict(zip(parcel.head["names"], parcel.fds, strict=True)),
                    parcel.blob,
                    None if status is None else Ending(**status),
                )
            )

    def _answer(self) -> channel.Parcel:
        """The keeper's next answer. A session may end while we collect: that is news, not the
        answer, and asking again would collect the next session twice."""
        while True:
            parcel = channel.receive(self._sock)
            if parcel is None:
                raise ConnectionError("the keeper is gone")
            if parcel.head["news"] in ("deposit", "all"):
                return parcel
            self._early.append(parcel)

    def listen(
        self,
        loop: asyncio.AbstractEventLoop,
        ended: Callable[[SessionId, Ending], None],
        terminate: Callable[[], None],
        lost: Callable[[], None],
        froze: Callable[[SessionId], None],
        relay: Callable[[str, str, str], None],
    ) -> None:
        """News from now on."""
        self._sock.setblocking(False)

        def on_news(parcel: channel.Parcel) -> None:
            if parcel.head["news"] == "ended":
                ended(SessionId(parcel.head["session"]), Ending(**parcel.head["status"]))
            elif parcel.head["news"] == "terminate":
                terminate()
            elif parcel.head["news"] == "froze":
                froze(SessionId(parcel.head["session"]))
            elif parcel.head["news"] == "relay":
                relay(parcel.head["url"], parcel.head["pin"], parcel.head["why"])

        def on_readable() -> None:
            try:
                parcel = channel.receive(self._sock)
            except BlockingIOError:
                return
            except ConnectionResetError:  # it died with messages of ours unread
                parcel = None
            if parcel is None:
                loop.remove_reader(self._sock)
                lost()
            else:
                on_news(parcel)

        loop.add_reader(self._sock, on_readable)
        for parcel in self._early:
            loop.call_soon(on_news, parcel)
        self._early.clear()

    def close(self, loop: asyncio.AbstractEventLoop) -> None:
        """No more news: what they are about is being given back."""
        loop.remove_reader(self._sock)

    def deposit(self, session: SessionId, pid: int, fds: dict[str, int], blob: bytes) -> None:
        self._send({"do": "deposit", "session": session, "pid": pid, "names": list(fds)}, blob, fds)

    def update(self, session: SessionId, blob: bytes) -> None:
        self._send({"do": "update", "session": session}, blob)

    def release(self, session: SessionId) -> None:
        self._send({"do": "release", "session": session})

    def lease(self, session: SessionId, group: str, until: float | None) -> None:
        """Freeze this control group at that moment of CLOCK_BOOTTIME unless another is said before;
        None: not any more."""
        self._send({"do": "lease", "session": session, "group": group, "until": until})

    def relay(self, address: str, ports: list[int], words: list[str]) -> None:
        """Run a relay that listens there, or with no address none."""
        self._send({"do": "relay", "listen": address, "ports": ports, "words": words})

    def ready(self) -> None:
        self._send({"do": "ready"})

    def stop(self) -> None:
        self._send({"do": "stop"})

    def _send(
        self, head: dict[str, Any], blob: bytes = b"", fds: dict[str, int] | None = None
    ) -> None:
        self._sock.setblocking(True)
        try:
            channel.send(self._sock, head, blob, *(fds or {}).values())
        except (BrokenPipeError, ConnectionResetError):
            pass  # the keeper is gone; `lost` is told so, and ends what there is
        finally:
            self._sock.setblocking(False)
