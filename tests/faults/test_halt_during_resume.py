"""A halt asked for while the tree is being let go holds: for input, for `hold show`, and for the
daemon that comes next."""

from __future__ import annotations

import json

from faults.hosting import PATIENCE_S, FaultHost
from holdfast.wire.frames import encode
from holdfast.wire.messages import turn as turn_messages


def test_a_halt_asked_for_during_a_resume_holds(shared_host: FaultHost) -> None:
    host = shared_host
    done = host.hold("run", "-d", "--name", "held", "--level", "plain", "--", "cat")
    assert done.returncode == 0, done.stderr
    assert host.hold("halt", "held").returncode == 0
    asker = host.client().connection
    resume, halt = asker.next_id(), asker.next_id()
    # In one piece: the halt is there before the kernel was asked, in a thread, to let the tree go.
    asker.send_frame(
        encode(turn_messages.Resume(resume, "held")) + encode(turn_messages.Halt(halt, "held"))
    )
    for request in (resume, halt):
        asker.answer_to(request, PATIENCE_S)
    assert json.loads(host.hold("show", "held", "--json").stdout)["state"] == "halted"
    assert "session_halted" in host.hold("send", "held", "x").stderr
    host.wait_new_daemon(host.kill_daemon())
    assert "session_halted" in host.hold("send", "held", "x").stderr
