"""A program that dials a host whose daemon is being replaced, or which is gone."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest

from holdfast.model.errors import HostDown
from holdfast.sdk import host_start
from holdfast.sdk.connection import Connection, new_operator
from holdfast.wire.frames import encode
from holdfast.wire.messages.session import Welcome

Served = Callable[[socket.socket], None]


def _greet(client: socket.socket) -> None:
    client.sendall(encode(Welcome(1, "fake", 1)))


def _say_nothing(client: socket.socket) -> None:
    """As a supervisor does whose first daemon did not start: nobody reads what waits for it."""


@contextmanager
def _listening(path: Path, serve: Served) -> Iterator[None]:
    """One client is served, then there is no socket any more."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(path))
    listener.listen()

    def once() -> None:
        with closing(listener):
            client, _ = listener.accept()
            with closing(client):
                path.unlink()
                serve(client)

    thread = threading.Thread(target=once)
    thread.start()
    yield
    thread.join(10)
    assert not thread.is_alive()


@pytest.mark.requirement("S1")
def test_a_host_that_went_before_it_greeted_is_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s"
    started = []
    with ExitStack() as hosts:
        hosts.enter_context(_listening(path, _say_nothing))

        def start(where: str) -> bool:
            started.append(where)
            hosts.enter_context(_listening(path, _greet))
            return True

        monkeypatch.setattr(host_start, "starter", start)
        connection = Connection(str(path), new_operator(), "test")
        connection.close()
    assert started == [str(path)] and connection.welcome.host == "fake"


@pytest.mark.requirement("S1")
def test_a_host_that_was_stopped_after_it_greeted_stays_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(where: str) -> bool:
        pytest.fail(f"{where} was started")

    path = tmp_path / "s"
    monkeypatch.setattr(host_start, "starter", start)
    with _listening(path, _greet):
        Connection(str(path), new_operator(), "test").close()
    with pytest.raises(HostDown):
        Connection(str(path), new_operator(), "test")
