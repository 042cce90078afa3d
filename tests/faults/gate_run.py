"""One session under a policy, with lines that are allowed, held and refused; and a judge of what
became of them. The same for a careful build, which may be killed anywhere, and for careless ones.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from faults.hosting import FaultHost
from holdfast.model.errors import GateRefused, HoldfastError, HostLost
from holdfast.sdk.client import Host
from holdfast.wire.messages import gate_approvals
from holdfast.wire.messages import session as m
from process.waiting import until

POLICY = """
default = "allow"
[[rule]]
name = "held"
lines = "echo held*"
then = "hold"
[[rule]]
name = "never"
lines = "echo never*"
then = "refuse"
"""
_RUN_S = 20.0  # for a line that may run to have run


def nothing() -> None:
    """No fault while it is held, or before it is decided."""


class GateRun:
    """Each line writes its own file: what ran, and how often, is seen there."""

    def __init__(self, host: FaultHost, name: str) -> None:
        self.host, self.name = host, name
        self.directory = host.work / name
        self.directory.mkdir()
        self.faults: list[str] = []
        self._seq = 0
        policy = host.work / "gate.toml"
        policy.write_text(POLICY)
        self._ok("run", "-d", "--name", name, "--level", "plain", "--", "bash", "--norc")
        self._ok("wait", name, "--for", "prompt")
        self._ok("policy", "set", str(policy), "--session", name)
        self._ok("grant", "ann", "approve", name)
        self.client: Host = host.client()

    def _ok(self, *words: str) -> str:
        done = self.host.hold(*words)
        assert done.returncode == 0, done.stderr + self.host.log()
        return done.stdout

    # -- the run ----------------------------------------------------------------------------------

    def ran(self, word: str) -> int:
        """How often the line of this word did."""
        file = self.directory / word
        return len(file.read_text().splitlines()) if file.exists() else 0

    def submit(self, word: str) -> None:
        """Once, whatever happens to the daemon: the same number is the same input."""
        self._seq += 1
        line = f"echo {word} >> {self.directory / word}"
        while True:
            ask = self.client.connection
            try:
                ask.ask(m.Submit(ask.next_id(), self.name, self._seq, line), 20)
                return
            except HostLost:
                self.client.reconnect()
            except GateRefused:
                return

    def pending(self) -> list[str]:
        asked = gate_approvals.GetApprovals(0, self.name)
        found = self.client.ask(asked, gate_approvals.ApprovalsShown).approvals
        return [each.id for each in found if each.status == "pending"]

    def _approve(self) -> None:
        """Until it is: a decision that a dying daemon had in its hands counted, or did not."""
        until("it is approved", lambda: self._approved())

    def _approved(self) -> bool:
        for each in self.pending():
            self.host.hold("--as", "ann", "approve", each)
        return not self.pending()

    def _runs(self, word: str) -> bool:
        deadline = time.monotonic() + _RUN_S
        while not self.ran(word):
            if time.monotonic() > deadline:
                self.faults.append(f"{word} never ran")
                return False
            time.sleep(0.02)
        return True

    def play(
        self, while_held: Callable[[], object] = nothing, deciding: Callable[[], object] = nothing
    ) -> list[str]:
        """Everything that is wrong with it; nothing for a careful build."""
        self.submit("free")
        if not self._runs("free"):
            return self.faults
        self.submit("held")
        while_held()
        try:
            until("it is held", lambda: self.pending() or self.ran("held"), 10)
        except AssertionError:
            return [*self.faults, "what was held is held no longer"]
        if self.ran("held"):
            return [*self.faults, "what is held ran before anybody approved it"]
        deciding()
        self._approve()
        if self._runs("held"):
            self.submit("never")
            self.submit("last")
            self._runs("last")
        self.faults += [
            f"{word} ran {self.ran(word)} times"
            for word, times in (("free", 1), ("held", 1), ("never", 0), ("last", 1))
            if self.ran(word) != times
        ]
        return self.faults + self._journal_faults()

    # -- its journal ------------------------------------------------------------------------------

    def _journal_faults(self) -> list[str]:
        """A command begins only behind the judgement that let it; and what was held, only behind an
        approval that was enough."""
        allowed: list[str] = []
        approved = False
        faults = []
        for entry in map(json.loads, self._ok("log", self.name, "--json").splitlines()):
            body: dict[str, Any] = entry["body"]
            if entry["kind"] == "judged" and body["outcome"] == "allow":
                allowed.append(body["text"].strip())
            elif entry["kind"] == "approved":
                approved = approved or body["enough"]
            elif entry["kind"] == "command_began":
                text = body["text"].strip()
                if text not in allowed:
                    faults.append(f"nothing recorded lets {text!r} run")
                elif text.startswith("echo held") and not approved:
                    faults.append(f"{text!r} ran before an approval of it was recorded")
        return faults

    def end(self) -> None:
        try:
            self.client.reconnect()
            self.client.end(self.name)
        except HoldfastError:
            self.host.hold("end", self.name)


def prepared(host: FaultHost) -> FaultHost:
    """With somebody who may approve."""
    host.up()
    done = host.hold("actor", "add", "ann", "--kind", "human")
    assert done.returncode == 0, done.stderr
    return host


def gone(path: Path) -> None:
    """The daemon died where it was armed to."""
    until("the daemon came by there and died", lambda: not path.exists())
