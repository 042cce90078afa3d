"""`hold attach`, without a host: what it leaves behind when it ends."""

from __future__ import annotations

import signal
from typing import cast

import pytest

from holdfast.cli.attach import terminal_client
from holdfast.cli.attach.predicted_typing import AUTO
from holdfast.cli.attach.raw_terminal import RawTerminal
from holdfast.cli.attach.terminal_client import AttachDetached, TerminalClient


def test_no_timer_runs_on_when_an_attachment_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """A timer that fires while the interpreter exits would kill it: `hold attach` would end with
    SIGALRM instead of 0."""
    running: list[float] = []

    class Client(TerminalClient):
        def _serve_connection(self, *_: object) -> None:
            running.append(signal.getitimer(signal.ITIMER_REAL)[0])
            raise AttachDetached("")

    monkeypatch.setattr(terminal_client, "signals_as_bytes", lambda: None)
    monkeypatch.setattr(signal, "ITIMER_REAL", signal.ITIMER_PROF)  # this process has its own
    client = Client("s", observe=False, predict=AUTO)
    client._ahead.connected(True, 0.001)
    with pytest.raises(AttachDetached):
        client.serve(cast(RawTerminal, None))
    assert running[0] > 0
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def test_what_was_typed_and_not_confirmed_is_counted_while_the_host_is_away() -> None:
    client = TerminalClient("s", observe=False)
    client._unacked.add(b"rm -rf build\r")
    assert client.untaken_bytes() == 0  # it is on its way
    client._away_since = 1.0
    assert client.untaken_bytes() == 13
    client._unacked.taken(1)
    assert client.untaken_bytes() == 0
