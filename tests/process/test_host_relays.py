"""`hold host`: a host is told where its relays are, and is at all of them at once."""

from __future__ import annotations

import json
import re
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from process.commanding import Hold
from process.proxying import ConnectProxy
from process.relaying import RelayProcess
from process.terminals import Terminal
from process.waiting import until


@pytest.fixture
def host() -> Iterator[Hold]:
    made = Hold()
    yield made
    made.close()


@pytest.fixture
def elsewhere() -> Iterator[Hold]:
    made = Hold()
    yield made
    made.close()


def states(host: Hold) -> dict[str, bool]:
    return {each["address"]: each["reached"] for each in host.json("host")}


def join(client: Hold, host: Hold, role: str = "execute") -> dict[str, Any]:
    link = re.search(r"http\S+/i#\S+", host.ok("invite", "--all", "--role", role))
    assert link is not None
    client.ok("join", "-", "--machine", "box", stdin=link.group().encode())
    found: dict[str, Any] = json.loads(Path(client.home, "machines.json").read_text())
    return found


@pytest.mark.requirement("R1", "F5")
def test_a_host_is_at_all_of_its_relays_and_losing_one_loses_nobodys_way(
    host: Hold, elsewhere: Hold
) -> None:
    with RelayProcess() as first, RelayProcess() as second:
        shown = host.json("host", "--relay", first.url, "--relay", second.url)  # and it is started
        assert [(each["address"], each["source"], each["reached"]) for each in shown] == [
            (first.url, "set", True),
            (second.url, "set", True),
        ]
        known = join(elsewhere, host)
        assert set(known["machines"][0]["relays"]) == {first.url, second.url}
        session = host.shell("main")
        first.process.kill()
        assert elsewhere.json("show", "box/main")["id"] == session
        until("the loss is seen", lambda: states(host) == {first.url: False, second.url: True})
        assert f"ok  relay: {second.url}: connected" in host.ok("doctor")
        assert f"--  relay: {first.url}: " in host.ok("doctor")


def test_what_was_set_is_kept_and_dialled_by_the_next_daemon_and_host(host: Hold) -> None:
    with RelayProcess() as relay:
        host.ok("host", "--relay", relay.url)
        host.ok("daemon", "restart")
        until("the new daemon is there", lambda: states(host) == {relay.url: True})
        host.ok("down")
        host.ok("up", "-d")
        until("the new host is there", lambda: states(host) == {relay.url: True})
        assert host.json("host", "--no-relay", relay.url) == []
        host.ok("daemon", "restart")
        assert host.json("host") == []
    assert "no relay" in host.ok("host")


@pytest.mark.requirement("F5", "R1")
def test_relay_restarts_are_survived_and_an_attached_operator_sees_nothing(
    host: Hold, elsewhere: Hold
) -> None:
    relay = RelayProcess("--limit", "drain_s=0.3")
    url, port = relay.url, relay.port
    host.ok("host", "--relay", url)
    join(elsewhere, host)
    host.shell("main")
    local = Terminal(host, "attach", "main")
    local.until_shown("$")
    before = host.json("show", "main")
    for round_ in range(3):
        number = (signal.SIGTERM, signal.SIGKILL, signal.SIGTERM)[round_]
        relay.signal(number)
        until("the loss is seen", lambda: states(host) == {url: False})
        local.type(b"echo round-$((%d + 100))\r" % round_)
        local.until(b"round-%d" % (round_ + 100))
        relay.__exit__(None, None, None)
        relay = RelayProcess("--limit", "drain_s=0.3", listen=f"127.0.0.1:{port}")
        until("it is there again", lambda: states(host) == {url: True})
        assert elsewhere.json("show", "box/main")["pid"] == before["pid"]
    after = host.json("show", "main")
    assert (after["pid"], after["epoch"], after["operators"]) == (
        before["pid"],
        before["epoch"],
        before["operators"],
    )
    assert "relay" not in local.screen.text() and "lost" not in local.screen.text()
    local.close()
    relay.__exit__(None, None, None)


def test_a_relay_that_does_not_answer_is_said_and_tried_until_it_does(host: Hold) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
        done = host("host", "--relay", f"http://127.0.0.1:{port}")
        assert done.returncode == 1 and "no relay answers" in done.stdout, done
        assert done.stderr == "hold host: not all are reached; the host goes on trying\n"
    with RelayProcess(listen=f"127.0.0.1:{port}") as relay:
        until("it is reached", lambda: states(host) == {relay.url: True})


@pytest.mark.requirement("R1")
@pytest.mark.parametrize("tls", [False, True])
def test_a_host_gets_to_its_relay_through_a_proxy(host: Hold, elsewhere: Hold, tls: bool) -> None:
    """The relay's name is known to the proxy alone: there is no other way."""
    with RelayProcess(*(["--self-signed"] if tls else [])) as relay:
        target = f"relay.invalid:{relay.port}"
        url = f"{'https' if tls else 'http'}://{target}"
        pinned = f"{url}#sha256:{relay.fingerprint}" if tls else url
        with ConnectProxy({target: relay.port}) as proxy:
            variable = "https_proxy" if tls else "http_proxy"
            for home in (host, elsewhere):
                home.env[variable] = proxy.url
            (state,) = host.json("host", "--relay", pinned)
            assert (state["address"], state["reached"]) == (pinned, True)
            assert proxy.asked == [f"CONNECT {target} HTTP/1.1"]
            known = join(elsewhere, host)  # with the fingerprint in the link
            assert known["machines"][0]["relays"] == [pinned]
            session = host.shell("main")
            assert elsewhere.json("show", "box/main")["id"] == session
        until("the proxy is gone, and so is the relay", lambda: states(host) == {pinned: False})


def test_a_relay_on_this_machine_is_not_asked_for_at_a_proxy(host: Hold) -> None:
    with RelayProcess() as relay, ConnectProxy({}) as proxy:
        host.env["http_proxy"] = host.env["all_proxy"] = proxy.url
        (state,) = host.json("host", "--relay", relay.url)
        assert state["reached"] and proxy.asked == []


def test_a_wrong_fingerprint_is_no_relay_and_a_right_one_takes_its_place(host: Hold) -> None:
    with RelayProcess("--self-signed") as relay:
        done = host("host", "--relay", f"{relay.url}#sha256:{'0' * 64}")
        assert done.returncode == 1 and "fingerprint" in done.stdout
        pinned = f"{relay.url}#sha256:{relay.fingerprint}"
        (state,) = host.json("host", "--relay", pinned)
        assert (state["address"], state["reached"]) == (pinned, True)
        assert host.json("host", "--no-relay", relay.url) == [], "the URL alone names it"


def test_what_makes_no_sense_is_refused_and_changes_nothing(host: Hold) -> None:
    with RelayProcess() as relay:
        Path(host.home, "config.toml").write_text(f'relays = ["{relay.url}"]\n')
        host.ok("up", "-d")
        for wrong in (
            "relay.example",
            "ftp://relay.example",
            "https://a:b@c",
            "http://x#sha256:12",
        ):
            host.fails("invalid_argument", "host", "--relay", wrong)
        host.fails("invalid_argument", "host", "--no-relay", "https://never.example")
        assert "config.toml" in host.fails("invalid_argument", "host", "--no-relay", relay.url)
        many = [f"http://127.0.0.1:{port}" for port in range(1, 18)]
        host.fails("limit_reached", "host", *(word for url in many for word in ("--relay", url)))
        until("the one there was", lambda: states(host) == {relay.url: True})
        assert not Path(host.home, "relays.json").exists()
        host.ok("host", "--relay", relay.url)  # it is known already: nothing to add
        assert len(states(host)) == 1


def test_only_who_manages_the_host_says_where_it_is_met(host: Hold) -> None:
    host.ok("up", "-d")
    host.ok("actor", "add", "bot", "--kind", "agent")
    host.ok("grant", "bot", "execute", "--all")
    host.fails("not_permitted", "--as", "bot", "host", "--relay", "http://127.0.0.1:1")
    host.fails("not_permitted", "--as", "bot", "host")
    assert host.json("host") == []


def test_a_damaged_list_of_relays_stops_no_host(host: Hold) -> None:
    Path(host.home, "relays.json").write_text("{")
    host.ok("up", "-d")
    assert host.json("host") == []
    assert "relays.json" in Path(host.home, "host.log").read_text()
