"""S1, S3: a host that served many is as light as one that served none."""

from __future__ import annotations

from pathlib import Path

import pytest

from faults.hosting import FaultHost, children, descriptor_count, process_key
from faults.leftovers import assert_in_order
from holdfast.model.state import Level
from holdfast.wire.messages import session as m
from process.waiting import until

SESSIONS = 100
SLACK = 2  # a connection of ours that is being closed


def zombies(pid: int) -> list[int]:
    return [child for child in children(pid) if process_key(child) is None]


def grown(baseline: dict[int, int]) -> list[int]:
    return [pid for pid, before in baseline.items() if descriptor_count(pid) > before + SLACK]


@pytest.mark.requirement("S1", "S3")
@pytest.mark.timeout(100)
def test_a_hundred_sessions_and_attachments_leave_no_descriptor_zombie_or_group(
    host: FaultHost,
) -> None:
    client = host.client()
    supervisor, daemon = host.supervisor_pid(), client.host().daemon_pid
    warm = client.run(
        ["bash", "--norc"]
    )  # the launcher and everything loaded late is there after this
    until("a prompt", lambda: client.show(warm.id).state == "prompt" or None)
    client.screen(warm.id)
    client.end(warm.id)
    baseline = {pid: descriptor_count(pid) for pid in (supervisor, daemon)}
    for number in range(SESSIONS):
        argv = ["bash", "-c", "exit 3"] if number % 2 else ["/bin/true"]
        level = (Level.PLAIN, Level.CONTAINED)[number // 2 % 2]
        client.run(argv, level=level)
    until("all ended", lambda: not client.sessions() or None)
    lasting = client.run(["bash", "--norc"])
    connection = client.connection
    for number in range(SESSIONS):
        connection.ask(m.Attach(connection.next_id(), lasting.id, number, raw=number % 2 == 0), 10)
        connection.ask(m.Detach(connection.next_id(), number), 10)
        with host.client() as passing:
            passing.connection.ask(m.Attach(1, lasting.id, 1), 10)
    until("they left", lambda: client.show(lasting.id).operators == 0 or None)
    client.end(lasting.id)
    until("descriptors are given back", lambda: not grown(baseline) or None, 8)
    until("no zombie is left", lambda: not zombies(supervisor) + zombies(daemon) or None, 8)
    assert_in_order(host, client)
    assert Path(f"/proc/{daemon}").exists(), "the same daemon served all of it"
