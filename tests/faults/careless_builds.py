"""Builds of the host with one thing left out, as somebody in a hurry might. Each must be caught by
the judge of histories.py, or of swarm.py; the same run with nothing left out must pass.

Every build here, the careful one too, can be killed at the worst moment: when an input has just
gone into custody and nobody was told yet.
"""

from __future__ import annotations

from faults.crash_points import customized_host
from faults.hosting import FaultHost
from process.waiting import until

_ARMED = "HOLDFAST_TEST_ARMED"

_MOMENT = f"""
import os, signal
from holdfast.adapters.session_memory import input_ledger
def moment():
    try:
        os.unlink(os.environ["{_ARMED}"])
    except FileNotFoundError:
        return
    os.kill(os.getpid(), signal.SIGKILL)
taken = input_ledger.InputLedger.take
def take(self, operator, seq, data):
    taken(self, operator, seq, data)
    moment()
input_ledger.InputLedger.take = take
"""

CAREFUL = ""

CARELESS = {
    "anybody may write": """
from holdfast.core.turn import events, machine
assert events.WroteStep in machine._HANDLERS
machine._HANDLERS[events.WroteStep] = lambda self, event: []
""",
    "accepted before it is taken": """
from holdfast.host.session import input_custody
really = input_custody.InputCustody.take_inputs
def later(self, answers):
    for waiting in self._inputs._queue:
        answers.settled(waiting, self._ring.head)
    self._loop.call_later(0.05, really, self, answers)
input_custody.InputCustody.take_inputs = later
""",
    "one form is not recorded": """
from holdfast.host.session import input_custody
really_stage = input_custody.InputCustody._stage
def stage(self, first, secret):
    if first.form != "submit":
        really_stage(self, first, secret)
input_custody.InputCustody._stage = stage
""",
    "rights are judged once": """
from holdfast.core.access import authority
judged = {}
really_rights = authority.Authority._rights_of
def rights_of(self, actor, session, labels, now, **how):
    found = judged.get((actor, session))
    if found is None or not found.rights:
        found = judged[actor, session] = really_rights(self, actor, session, labels, now, **how)
    return found
authority.Authority._rights_of = rights_of
""",
    "a repeat is typed again": """
from holdfast.core import input_machine
assert input_machine.InputMachine.is_new
input_machine.InputMachine.is_new = lambda self, offered: True
""",
    "gathered keys die with the daemon": """
from holdfast.adapters.session_memory import burst_page
assert burst_page.BurstPage.settle
burst_page.BurstPage.settle = lambda self, last_taken: self.clear()
""",
    "the turn is not kept": """
from holdfast.core.turn import machine
really_kept = machine.TurnMachine.kept
machine.TurnMachine.kept = lambda self: really_kept(machine.TurnMachine())
""",
}

# Caught by the judge of swarm.py.
CARELESS_OF_COMMANDS = {
    "keys die with the daemon": """
from holdfast.host.session import exec_runs
assert exec_runs.Executions.kept
exec_runs.Executions.kept = lambda self: ()
""",
    "refused after Enter": """
from holdfast.host.session import shell_commands
from holdfast.model.errors import SessionBusy
really_begins = shell_commands.ShellCommands.exec_begins
def begins(self, execution):
    really_begins(self, execution)
    if not execution.record.keyed and int(execution.record.digest, 16) % 3 == 0:
        self._give_up(execution, SessionBusy("said too soon"))
shell_commands.ShellCommands.exec_begins = begins
""",
}

# Caught by the judge of gate_run.py.
CARELESS_AT_THE_GATE = {
    "the verdict is asked for and not heeded": """
from holdfast.core import session
from holdfast.model.gate import ALLOWED
judged = session.SessionMachine._commit_judged
session._HANDLERS[session.ev.CommitJudged] = (
    lambda self, event: judged(self, event.replace(verdict=ALLOWED))
)
""",
    "what was let pass is not recorded": """
from holdfast.host.gate import session_gate
assert session_gate.SessionGate.record_passing
session_gate.SessionGate.record_passing = lambda self, piece, secret: None
""",
    "what waits is not kept": """
from holdfast.core import session
assert session.SessionMachine.gate_kept
session.SessionMachine.gate_kept = lambda self: None
""",
    "a decision is not recorded": """
from holdfast.host.gate import approval_notices
assert approval_notices.ApprovalNotices.closed
approval_notices.ApprovalNotices.closed = lambda self, approval, by, note, saw: None
""",
}

# Shown by a run of its own: it takes a program that does not read.
WHAT_WAITS_IS_NOT_JUDGED_AGAIN = """
from holdfast.core import session
assert session.SessionMachine._refuse_waiting
session.SessionMachine._refuse_waiting = lambda self: []
"""


def build(source: str) -> FaultHost:
    host = customized_host(_MOMENT + source)
    host.environment[_ARMED] = str(host.work / "moment")
    return host


def kill_at_the_moment(host: FaultHost) -> int:
    """The daemon dies with an input in its hands. Gives its pid."""
    pid = until("there is a daemon", host.daemon_pid)
    path = host.work / "moment"
    path.touch()
    until("the moment came", lambda: not path.exists())
    return pid
