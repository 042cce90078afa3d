"""S8, M9: what sessions cost is shown per session and per host, and as metrics."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from faults.hosting import FaultHost
from holdfast.host.config import Config
from holdfast.model.errors import InvalidArgument
from process.waiting import until

TOKEN = "0123456789abcdef" * 2
MEMORY = "python3 -c 'import sys; held = bytearray(64 << 20); print(1); sys.stdin.read()'"


@pytest.fixture(params=["plain", "contained"])
def host(request: pytest.FixtureRequest) -> Iterator[FaultHost]:
    with FaultHost() as host:
        (host.home / "config.toml").write_text(f'level = "{request.param}"\n')
        yield host.up()


def output(host: FaultHost, *words: str) -> str:
    done = host.hold(*words)
    assert done.returncode == 0, (words, done)
    return done.stdout


def metrics(host: FaultHost) -> dict[str, int]:
    lines = [line for line in output(host, "metrics").splitlines() if not line.startswith("#")]
    return {name: int(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


@pytest.mark.requirement("S8")
@pytest.mark.timeout(60)
def test_what_each_session_costs_is_shown_as_the_kernel_counts_it(host: FaultHost) -> None:
    output(host, "run", "-d", "--name", "large", "--", "sh", "-c", f"{MEMORY}; true")
    output(host, "run", "-d", "--name", "small", "--", "sh", "-c", "sleep 600 & sleep 600; true")

    def costs() -> dict[str, dict[str, int]] | None:
        listed = json.loads(output(host, "ls", "--long", "--json"))
        found = {each["name"]: each["residency"] for each in listed}
        ready = found["large"]["memory_bytes"] > 64 << 20 and found["small"]["processes"] == 4
        return found if ready else None

    found = until("both have started what they run", costs)
    assert found["small"]["memory_bytes"] < 32 << 20
    assert found["small"]["descriptors"] >= 3 * found["small"]["processes"] - 3
    assert found["small"]["disk_bytes"] >= 64 << 10, "its journal's reserve"
    shown = json.loads(output(host, "show", "large", "--json"))["residency"]
    assert shown["memory_bytes"] > 64 << 20
    assert "of memory, " in output(host, "show", "large")
    assert "MEMORY" in output(host, "ls", "--long") and "MEMORY" not in output(host, "ls")
    assert json.loads(output(host, "ls", "--json"))[0]["residency"] is None
    said = re.search(r"^sessions use (.*)$", host.hold("doctor").stdout, re.MULTILINE)
    assert said is not None and re.fullmatch(
        r"[\d.]+ MiB of memory, \d+ processes, \d+ descriptors, [\d.]+ [KM]iB of disk", said[1]
    ), said
    total = json.loads(host.hold("doctor", "--json").stdout)["residency"]
    assert total["processes"] == sum(each["processes"] for each in found.values())
    assert total["memory_bytes"] > 64 << 20


@pytest.mark.requirement("S8", "M9")
@pytest.mark.timeout(60)
def test_metrics_count_sessions_inputs_refusals_connections_and_restarts(host: FaultHost) -> None:
    output(host, "run", "-d", "--name", "waits", "--", "cat")
    until("it waits", lambda: metrics(host)['holdfast_sessions{state="input"}'] or None)
    assert metrics(host)["holdfast_sessions_idle"] == 1
    before = metrics(host)
    output(host, "send", "waits", "hello")
    output(host, "actor", "add", "reader")
    output(host, "grant", "reader", "read", "--all")
    assert host.hold("--as", "reader", "send", "waits", "no").returncode != 0
    after = metrics(host)
    assert after["holdfast_inputs_total"] == before["holdfast_inputs_total"] + 1
    assert after["holdfast_refusals_total"] == before["holdfast_refusals_total"] + 1
    assert after["holdfast_connections_total"] > before["holdfast_connections_total"]
    assert after["holdfast_processes"] >= 1 and after["holdfast_memory_bytes"] > 0
    assert host.hold("--as", "reader", "metrics").returncode != 0
    host.wait_new_daemon(host.kill_daemon())
    assert metrics(host)["holdfast_daemon_restarts_total"] == 1


@pytest.mark.requirement("S8")
@pytest.mark.timeout(60)
def test_metrics_of_the_own_relay_are_for_whoever_has_the_token() -> None:
    with FaultHost({"HOLDFAST_RELAY": "127.0.0.1"}) as host:
        (host.home / "config.toml").write_text(f'metrics_token = "{TOKEN}"\n')
        host.up()

        def address() -> str | None:
            relays = json.loads(output(host, "host", "--json"))
            return next((each["address"] for each in relays if each["reached"]), None)

        url = until("the relay is there", address)
        listed = [Path(f"/proc/{each.pid}/cmdline").read_text() for each in host.processes()]
        assert any("holdfast.relay" in words for words in listed)
        assert not any(TOKEN in words for words in listed)
        for header in (None, "Bearer wrong", TOKEN):
            with pytest.raises(urllib.error.HTTPError) as refused:
                fetch(url, header)
            assert refused.value.code == 401
        host.client().run(["cat"], name="counted")
        shown = fetch(url, f"Bearer {TOKEN}")
        assert "holdfast_relay_hosts 1" in shown
        assert 'holdfast_sessions{state="input"} 1' in shown
        host.wait_new_daemon(host.kill_daemon())
        assert "holdfast_daemon_restarts_total 1" in fetch(url, f"Bearer {TOKEN}")


def fetch(url: str, authorization: str | None) -> str:
    headers = {"Authorization": authorization} if authorization else {}
    request = urllib.request.Request(f"{url.partition('#')[0]}/metrics", headers=headers)
    with urllib.request.urlopen(request, timeout=10) as answer:
        text: bytes = answer.read()
    return text.decode()


def test_a_token_that_could_be_guessed_from_its_hash_is_refused() -> None:
    with pytest.raises(InvalidArgument):
        Config(metrics_token="short").checked()
