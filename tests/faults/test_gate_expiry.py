"""What nobody approves in time is refused, also when the daemon was killed meanwhile."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from faults.crash_points import customized_host
from faults.gate_run import GateRun, prepared
from faults.hosting import FaultHost
from process.waiting import until

# Far less than the quarter of an hour that people get.
SHORT = """
from holdfast.host.gate import session_gate
assert session_gate.APPROVAL_LIFE_S > 60
session_gate.APPROVAL_LIFE_S = 3.0
"""


@pytest.fixture(scope="module")
def hasty_host() -> Iterator[FaultHost]:
    with customized_host(SHORT) as host:
        yield prepared(host)


@pytest.mark.requirement("A8")
@pytest.mark.parametrize("killed", [False, True], ids=["", "killed"])
def test_a_held_line_that_nobody_approves_in_time_is_refused(
    hasty_host: FaultHost, killed: bool
) -> None:
    host = hasty_host
    run = GateRun(host, f"hasty-{killed}")
    run.submit("held")
    (asked,) = until("it is held", run.pending)
    if killed:
        host.wait_new_daemon(host.kill_daemon())
        assert run.pending() in ([asked], []), "by the same id, and until the same moment"
    until("it is refused", lambda: not run.pending())
    shown = json.loads(host.hold("approvals", run.name, "--json").stdout)
    if not killed:  # what was decided lately is remembered by one daemon
        assert [(each["id"], each["status"]) for each in shown] == [(asked, "expired")]
    assert host.hold("--as", "ann", "approve", asked).returncode != 0
    over = host.hold("log", run.name, "--json", "--kind", "approval_over").stdout
    assert asked in over and "expired" in over
    run.submit("last")
    until("the line after it runs", lambda: run.ran("last"))
    assert run.ran("held") == 0
    run.end()
