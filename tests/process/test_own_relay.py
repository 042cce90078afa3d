"""`hold up` brings a relay of its own: a link at once, and nothing that depends on it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from process.commanding import HOLD, PATIENCE_S, Hold
from process.own_relay import Relayed, listens
from process.terminals import Terminal
from process.waiting import until, wait_ended

MAKEFILE = Path(__file__).parents[2] / "Makefile"


@pytest.fixture
def host() -> Iterator[Relayed]:
    made = Relayed()
    yield made
    made.close()


@pytest.fixture
def elsewhere() -> Iterator[Hold]:
    """Somebody's other machine: no host, another home."""
    made = Hold()
    yield made
    made.close()


def start_time(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]


def port_of(url: str) -> int:
    found = re.match(r"https?://\S+?:(\d+)", url)
    assert found is not None, url
    return int(found[1])


@pytest.mark.requirement("R1", "R2", "S4")
def test_up_prints_a_link_by_which_another_device_lists_and_attaches(
    host: Relayed, elsewhere: Hold
) -> None:
    with contextlib.closing(Terminal(host, "up")) as terminal:
        said = terminal.until(b"takes it back").decode()
        assert "▀" in said or "█" in said, "a QR code for a phone"
        link = re.search(r"hold join '(http\S+)'", said)
        assert link is not None, said
        host.shell("main")
        for _ in range(2):  # it uses nothing up
            seen = elsewhere.ok("join", "-", "--look", stdin=link[1].encode()).splitlines()
            assert " invites you to all sessions on " in seen[0], seen
            assert seen[1].startswith("with admin, for ") and "one device" in seen[2], seen
        assert elsewhere.json("machines") == []
        elsewhere.ok("join", "-", "--machine", "box", stdin=link[1].encode())
        assert [each["name"] for each in elsewhere.json("ls")] == ["main"]
        attached = Terminal(elsewhere, "attach", "box/main")
        attached.until_shown("$")
        attached.type(b"echo from-$((40 + 2))-elsewhere\r")
        attached.until_shown("from-42-elsewhere")
        attached.type(b"\x1cd")
        assert attached.wait() == 0
        attached.close()
        elsewhere.ok("--on", "box", "seize", "main")  # it is mine: it may stop an agent
        assert "frozen" in elsewhere.ok("--on", "box", "halt", "main")
        elsewhere.ok("--on", "box", "resume", "main")
        other = Hold()
        other.fails("invite_used", "join", "-", stdin=link[1].encode())  # it was for one
        other.close()
    assert host.json("ls")[0]["name"] == "main", "who follows the log is not the host"


def test_up_that_returns_says_in_one_line_how_to_make_a_link(host: Relayed) -> None:
    assert host.ok("up", "-d").splitlines() == [
        "the host is up; `hold invite --all --role admin` makes a link to it"
    ]


def test_a_link_that_no_phone_can_open_says_so_and_how_to_have_one(
    host: Relayed, tmp_path: Path
) -> None:
    host.up()
    main = host.shell("main")
    said = host.ok("invite", "--all", "--role", "admin")
    refused = make_phone(host, tmp_path)
    assert refused.returncode != 0 and "/i#" not in refused.stdout, refused
    what = f'put `relay = "0.0.0.0"` into {host.home}/config.toml, then `hold daemon restart`'
    assert what in said and what in refused.stderr
    assert "hold down" not in said + refused.stderr  # which is refused while sessions live
    assert "only this machine can open this link" in said
    Path(host.home, "config.toml").write_text('relay = "0.0.0.0"\n')
    host.ok("daemon", "restart")
    until("it listens for others", lambda: host.own().startswith("https://"))
    made = make_phone(host, tmp_path)
    assert made.returncode == 0 and made.stdout.startswith("https://"), made
    assert "with admin in all sessions" in made.stdout and "only this" not in made.stdout
    assert host.json("show", "main")["id"] == main


def make_phone(host: Relayed, place: Path) -> subprocess.CompletedProcess[str]:
    """`make phone` where everything is set up."""
    Path(place, ".venv/bin").mkdir(parents=True, exist_ok=True)
    Path(place, ".venv/.ready-runtime").touch()
    with contextlib.suppress(FileExistsError):
        Path(place, ".venv/bin/hold").symlink_to(HOLD)
    words = [
        "make",
        "--no-print-directory",
        "-C",
        str(place),
        "-f",
        str(MAKEFILE),
        "INPUTS=",
        "phone",
    ]
    return subprocess.run(words, env=host.env, capture_output=True, text=True, timeout=PATIENCE_S)


@pytest.mark.requirement("F5", "R1")
def test_a_killed_relay_is_back_by_itself_and_a_local_operator_sees_nothing(
    host: Relayed, elsewhere: Hold
) -> None:
    host.up()
    host.shell("main")
    elsewhere.ok("join", "-", "--machine", "box", stdin=host.link().encode())
    pid = host.json("show", "main")["pid"]
    began, port = start_time(pid), port_of(host.own())
    local = Terminal(host, "attach", "main")
    local.until_shown("$")
    local.type(b"echo be$((1))fore\r")
    local.until_shown("be1fore")
    for _ in range(3):
        host.kill(old := host.relay_pid())
        until("another relay", partial(_another, host, old))
    local.type(b"echo meanwh$((1))le\r")
    local.until(b"meanwh1le")  # typed and seen while the relay is away
    assert port_of(host.own()) == port, "links stay good"
    assert [each["name"] for each in elsewhere.json("ls")] == ["main"]
    host.ok("turn", "main", "yield")
    elsewhere.ok("send", "--enter", "box/main", "echo ag$((1))in")
    local.until(b"ag1in")
    assert (host.json("show", "main")["pid"], start_time(pid)) == (pid, began)
    shown = local.screen.text()
    assert "again" not in shown and "lost" not in shown and "reconnect" not in shown, shown
    local.close()


def _another(host: Relayed, old: int) -> bool:
    return host.relay_pid() not in (0, old)


@pytest.mark.requirement("F5", "S1")
def test_a_killed_daemon_leaves_the_relay_and_comes_back_to_it(
    host: Relayed, elsewhere: Hold
) -> None:
    host.up()
    host.shell("main")
    elsewhere.ok("join", "-", "--machine", "box", stdin=host.link().encode())
    relay, pid = host.relay_pid(), host.json("show", "main")["pid"]
    host.kill(host.json("daemon", "status")["daemon_pid"])
    until("the new daemon is at the relay", lambda: host.own())
    assert host.relay_pid() == relay
    assert elsewhere.json("show", "box/main")["pid"] == pid


@pytest.mark.requirement("F5")
def test_a_killed_supervisor_leaves_no_relay_and_the_next_one_has_the_same_port(
    host: Relayed, elsewhere: Hold
) -> None:
    host.up()
    elsewhere.ok("join", "-", "--machine", "box", stdin=host.link().encode())
    relay, port = os.pidfd_open(host.relay_pid()), port_of(host.own())
    host.kill(host.supervisor())
    wait_ended(relay)
    os.close(relay)
    assert port_of(host.own()) == port
    assert elsewhere.json("ls") == [], "the machine that was joined is found where it was"
    host.ok("down")
    assert not listens(port), "it went with its host"


def test_a_taken_port_is_replaced_by_one_that_stays(host: Relayed) -> None:
    with socket.socket() as squatter:
        squatter.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            squatter.bind(("127.0.0.1", 7420))
            squatter.listen()
        except OSError:
            pass  # somebody else has it: as good
        host.up()
        port = port_of(host.own())
        assert port != 7420
        host.ok("down")
    host.up()  # the usual one may be free now; links name the other
    assert port_of(host.own()) == port
    assert json.loads(Path(host.home, "relay.json").read_text()) == {"port": port}


@pytest.mark.parametrize("by", ["option", "configuration"])
def test_a_port_that_was_asked_for_is_that_one_or_none(host: Relayed, by: str) -> None:
    with socket.socket() as squatter:
        squatter.bind(("127.0.0.1", 0))
        squatter.listen()
        port = squatter.getsockname()[1]
        place = f"127.0.0.1:{port}"
        if by == "configuration":
            Path(host.home, "config.toml").write_text(f'relay = "{place}"\n')
        options = ("--listen", place) if by == "option" else ()
        said = host.fails("relay_unreachable", "up", "-d", *options)
        assert "in use" in said
        until("it says why not", lambda: "in use" in host.json("host")[0]["said"])
        assert not host.relay_pid()
    assert port_of(host.own()) == port, "it is tried again until it can be had"


def test_without_a_relay_nothing_listens_and_no_link_is_made(host: Relayed) -> None:
    host.ok("up", "-d", "--no-relay")
    assert host.ok("host") == "this host is at no relay: it cannot be reached from other machines\n"
    assert host.relay_pid() == 0
    assert "hold host --relay" in host.fails(
        "invalid_argument", "invite", "--all", "--role", "read"
    )
    host.ok("daemon", "restart")
    assert host.relay_pid() == 0, "what `hold up` said holds for every daemon"


def test_what_up_said_of_the_relay_holds_when_another_command_starts_the_host(
    host: Relayed,
) -> None:
    host.ok("up", "-d", "--no-relay")
    host.shell("main")
    host.ok("down")
    assert [each["name"] for each in host.json("ls")] == ["main"]
    assert host.json("host") == [] and host.relay_pid() == 0


def test_the_configuration_turns_it_off_and_on_while_the_host_runs(host: Relayed) -> None:
    config = Path(host.home, "config.toml")
    config.write_text('relay = "off"\n')
    host.ok("up", "-d")
    session = host.shell("main")
    assert host.json("host") == [] and host.relay_pid() == 0
    config.write_text('relay = "127.0.0.1"\n')
    host.ok("daemon", "restart")
    relay = host.own() and host.relay_pid()
    assert relay
    host.ok("daemon", "restart")
    assert host.own() and host.relay_pid() == relay, "a new daemon does not disturb it"
    config.write_text('relay = "off"\n')
    host.ok("daemon", "restart")
    until("it is gone", lambda: host.relay_pid() == 0)
    assert host.json("host") == []
    assert host.json("show", "main")["id"] == session


@pytest.mark.requirement("R1", "R4")
def test_in_a_network_the_link_carries_the_certificates_fingerprint(
    host: Relayed, elsewhere: Hold
) -> None:
    host.up("--listen", "0.0.0.0")
    own = host.own()
    assert own.startswith("https://") and "127.0.0.1" not in own and "0.0.0.0" not in own
    pin = own.partition("#sha256:")[2]
    link = host.link()
    parts = link.partition("#")[2].split(".")
    assert len(parts) == 4 and link.startswith(own.partition("#")[0] + "/i#")
    # Another certificate than that of the link is another relay: nothing is said to it.
    other = ".".join((*parts[:3], "A" * 43))
    elsewhere.fails("relay_unreachable", "join", f"{link.partition('#')[0]}#{other}")
    without = ".".join(parts[:3])
    elsewhere.fails("relay_unreachable", "join", f"{link.partition('#')[0]}#{without}")
    elsewhere.ok("join", "-", "--machine", "box", stdin=link.encode())
    kept = json.loads(Path(elsewhere.home, "machines.json").read_text())
    assert kept["machines"][0]["relays"] == [own]
    assert len(pin) == 64
    assert elsewhere.json("ls") == []
    host.ok("down")
    host.up("--listen", "0.0.0.0")
    assert host.own() == own, "the certificate and the port are kept"
    assert elsewhere.json("ls") == []


@pytest.mark.parametrize("where", ["0.0.0", "nowhere", "0.0.0.0:0", "[::]:70000", "[::1]x", ":80"])
def test_a_place_that_makes_no_sense_starts_nothing(host: Relayed, where: str) -> None:
    host.fails("invalid_argument", "up", "-d", "--listen", where)
    assert not Path(host.home, "run/supervisor.lock").exists()


def test_the_environment_may_not_make_a_host_that_only_fails(host: Relayed) -> None:
    done = subprocess.run(
        [HOLD, "up", "-d"],
        env={**host.env, "HOLDFAST_RELAY": "nonsense"},
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert done.returncode == 69 and "nonsense" in done.stderr, done
