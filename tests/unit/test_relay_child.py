"""The supervisor's second child: which port, when again, and what a daemon is told."""

from __future__ import annotations

import gc
import os
import selectors
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.keeper.relay_child import News, RelayChild

_FAKE = """#!{python}
import os, sys, time
words = sys.argv[1:]
fd = int(words[words.index("--ready-fd") + 1])
where = words[words.index("--listen") + 1]
if "--fail" in words:
    sys.exit(7)
os.write(fd, f"ready http://{{where}} sha256:ab\\n".encode())
os.close(fd)
time.sleep(600)
"""


class Keeping:
    """A supervisor's loop, turned by hand."""

    def __init__(self) -> None:
        self.selector = selectors.DefaultSelector()
        self.told: list[News] = []
        self.logged: list[str] = []
        self.child = RelayChild(self.selector, self.told.append, self.logged.append)

    def want(self, *words: str, listen: str = "127.0.0.1", ports: tuple[int, ...] = (0,)) -> None:
        self.child.want({"do": "relay", "listen": listen, "ports": list(ports), "words": [*words]})

    def start(self) -> None:
        assert self.child.start_at is not None
        self.child.start()

    def hear(self) -> News:
        """The next thing the relay says."""
        before = len(self.told)
        while len(self.told) == before:
            found = self.selector.select(10)
            assert found, "it says nothing"
            for key, _ in found:
                key.data()
        return self.told[-1]

    def reap(self) -> int:
        process = self.child._process
        assert process is not None
        process.wait(10)
        process.returncode = None
        status: dict[str, Any] = {"signal": signal.SIGKILL}
        assert self.child.ended(process.pid, status)
        return process.pid


@pytest.fixture
def keeping(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Keeping]:
    fake = tmp_path / "python"
    fake.write_text(_FAKE.format(python=sys.executable))
    fake.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(fake))
    made = Keeping()
    yield made
    made.child.close()


def port_of(news: News) -> int:
    return int(news["url"].rpartition(":")[2])


def test_a_relay_is_started_and_the_daemon_is_told_where(keeping: Keeping) -> None:
    keeping.want()
    keeping.start()
    news = keeping.hear()
    assert (news["news"], news["pin"], news["why"]) == ("relay", "sha256:ab", "")
    assert port_of(news) > 0


def test_a_new_daemon_is_told_again_and_nothing_is_started_anew(keeping: Keeping) -> None:
    keeping.want(ports=(0,))
    keeping.start()
    news = keeping.hear()
    keeping.want(ports=(port_of(news), 0))  # it knows the port by now
    assert keeping.told == [news, news] and keeping.child.start_at is None


def test_an_ended_relay_is_started_again_on_the_same_port_later_each_time(
    keeping: Keeping,
) -> None:
    keeping.want()
    keeping.start()
    port, waits = port_of(keeping.hear()), []
    for _ in range(4):
        assert keeping.child._process is not None
        keeping.child._process.kill()
        keeping.reap()
        assert keeping.told[-1]["url"] == "" and "signal" in keeping.told[-1]["why"]
        waits.append(keeping.child._backoff)
        keeping.start()
        assert port_of(keeping.hear()) == port
    assert waits == sorted(set(waits)), "longer each time"


def test_one_that_cannot_start_is_tried_again_and_holds_no_descriptor(
    keeping: Keeping, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    gc.collect()  # what another test left is not closed in between
    open_before = len(os.listdir("/proc/self/fd"))
    keeping.want()
    for _ in range(10):
        keeping.start()
    assert len(os.listdir("/proc/self/fd")) == open_before
    assert "cannot be started" in keeping.told[-1]["why"]
    assert keeping.child._backoff == 10.0


def test_one_that_ends_before_it_is_ready_is_tried_again(keeping: Keeping) -> None:
    keeping.want("--fail")
    keeping.start()
    keeping.reap()
    assert keeping.told[-1]["why"] and keeping.child.start_at is not None


def test_the_first_free_port_of_those_to_try_is_taken(keeping: Keeping) -> None:
    with socket.socket() as taken, socket.socket() as free:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        free.bind(("127.0.0.1", 0))
        wanted = free.getsockname()[1]
        free.close()
        keeping.want(ports=(taken.getsockname()[1], wanted, 0))
        keeping.start()
        assert port_of(keeping.hear()) == wanted


def test_a_port_that_must_be_is_waited_for(keeping: Keeping) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        keeping.want(ports=(port,))
        keeping.start()
        assert "in use" in keeping.told[-1]["why"] and keeping.child._process is None
    keeping.start()
    assert port_of(keeping.hear()) == port


def test_another_order_replaces_it_and_none_ends_it(keeping: Keeping) -> None:
    keeping.want()
    keeping.start()
    keeping.hear()
    keeping.want("--other")
    first = keeping.reap()
    keeping.start()
    keeping.hear()
    assert keeping.child._process is not None and keeping.child._process.pid != first
    keeping.want(listen="")
    keeping.reap()
    keeping.start()
    assert keeping.child._process is None and keeping.child.start_at is None
    assert keeping.told[-1]["url"], "of an end that was asked for nobody is told"


def test_a_child_that_is_not_the_relay_is_not_taken_for_it(keeping: Keeping) -> None:
    keeping.want()
    keeping.start()
    keeping.hear()
    assert not keeping.child.ended(1, {"code": 0})
