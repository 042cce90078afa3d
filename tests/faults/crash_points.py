"""A daemon that dies at a chosen line, or that has a chosen fault.

A `sitecustomize` on the host's PYTHONPATH changes the daemon's own code as it starts, nothing on
disk. A crash point is *armed* by a file and works once: the daemon removes the file and kills
itself with SIGKILL, before or after the call named. A fault stays. Both name real attributes, so
a renamed one fails loudly in the host's log instead of testing nothing.
"""

from __future__ import annotations

from pathlib import Path

from faults.hosting import FaultHost
from process.waiting import until

# name -> (module, class or "", attribute)
CALLS = {
    "create": ("holdfast.host.session_store", "SessionStore", "create"),
    "launch": ("holdfast.adapters.launch.client", "", "_launched"),
    "make_ring": ("holdfast.adapters.session_memory.output_ring", "Ring", "create"),
    "save_spec": ("holdfast.host.session_store", "SessionStore", "save_spec"),
    "deposit": ("holdfast.host.keeper_link", "KeeperLink", "deposit"),
    "bury": ("holdfast.host.session_store", "SessionStore", "bury"),
    "release": ("holdfast.host.keeper_link", "KeeperLink", "release"),
    "note": ("holdfast.adapters.session_memory.input_ledger", "InputLedger", "_note"),
    "type": ("holdfast.adapters.session_memory.input_ledger", "InputLedger", "type_into"),
    "drain": ("holdfast.adapters.session_memory.output_ring", "Ring", "_drain"),
    "checkpoint": ("holdfast.adapters.session_memory.output_ring", "Ring", "save_checkpoint"),
    "collect": ("holdfast.host.keeper_link", "KeeperLink", "collect"),
    "ready": ("holdfast.host.supervisor_link", "SupervisorLink", "ready"),
    "begin": ("holdfast.adapters.session_memory.burst_page", "BurstPage", "begin"),
    "prepare": ("holdfast.adapters.session_memory.burst_page", "BurstPage", "prepare"),
    "commit": ("holdfast.adapters.session_memory.burst_page", "BurstPage", "commit"),
    "clear": ("holdfast.adapters.session_memory.burst_page", "BurstPage", "clear"),
    "settle": ("holdfast.adapters.session_memory.burst_page", "BurstPage", "settle"),
    "take": ("holdfast.adapters.session_memory.input_ledger", "InputLedger", "take"),
    "record": ("holdfast.adapters.journal_files.writer", "JournalWriter", "record"),
    "append": ("holdfast.adapters.journal_files.writer", "JournalWriter", "append"),
    "seal": ("holdfast.adapters.journal_files.writer", "JournalWriter", "seal"),
    "moved": ("holdfast.host.session.turn_notices", "TurnNotices", "record"),
    "keep": ("holdfast.host.session.live_session", "LiveSession", "save_parcel"),
    "changed": (
        "holdfast.host.access.rights_notices",
        "RightsNotices",
        "authority_changed",
    ),
    "halt": ("holdfast.adapters.halt.freeze", "", "halt"),
    "stop": ("holdfast.adapters.halt.stop_tree", "", "send"),
    "frozen": ("holdfast.adapters.halt.cgroup", "", "freeze"),
    "go": ("holdfast.adapters.halt.freeze", "", "resume"),
    "gate_keep": ("holdfast.host.gate.session_gate", "SessionGate", "keep"),
    "gate_look": ("holdfast.host.gate.session_gate", "SessionGate", "look"),
    "gate_judged": ("holdfast.host.gate.session_gate", "SessionGate", "record_judged"),
    "passing": ("holdfast.host.gate.session_gate", "SessionGate", "record_passing"),
    "asked": ("holdfast.host.gate.approval_notices", "ApprovalNotices", "asked"),
    "closed": ("holdfast.host.gate.approval_notices", "ApprovalNotices", "closed"),
    "put_unread": ("holdfast.adapters.pty", "", "put_unread"),
    "image_saved": ("holdfast.host.continuity.checkpoint_book", "CheckpointBook", "saved"),
    "stored": ("holdfast.host.session.live_session", "LiveSession", "parcel_bytes"),
    "answered": ("holdfast.adapters.criu.swrk", "", "answer"),
    "facts": ("holdfast.host.continuity.restore_facts", "RestoreFacts", "of_bytes"),
    "token": ("holdfast.host.session.fencing_token", "", "write"),
    "asked_launcher": ("holdfast.adapters.launch.client", "", "_send"),
    "recovered": ("holdfast.host.continuity.restore", "", "recover"),
    "rise": ("holdfast.host.session_store", "SessionStore", "rise"),
    "thaw": ("holdfast.adapters.halt.cgroup", "", "thaw"),
}

_CRASH = """
import functools, importlib, os, signal, sys
ARMED = {armed!r}
# One point is passed by a process of its launcher.
IN_LAUNCHER = "holdfast.adapters.launch.process" in sys.orig_argv
DAEMON = os.getppid() if IN_LAUNCHER else os.getpid()
def dies(point, call):
    @functools.wraps(call)
    def wrapped(*args, **kwargs):
        for side in ("before", "after"):
            if side == "after":
                result = call(*args, **kwargs)
            try:
                os.unlink(f"{{ARMED}}/{{side}}-{{point}}")
            except FileNotFoundError:
                continue
            os.kill(DAEMON, signal.SIGKILL)
        return result
    return wrapped
for point, (module, owner, name) in {calls!r}.items():
    if IN_LAUNCHER != (point == "put_unread"):
        continue
    place = importlib.import_module(module)
    place = getattr(place, owner) if owner else place
    setattr(place, name, dies(point, getattr(place, name)))
"""

# What a careless implementation would do. Each must be caught by the judges in numbered.py. Where a
# kill does the harm, `moment()` marks the spot: the daemon dies there once, when armed.
FAULTS = {
    # Output through the daemon's own memory: what was read and not yet stored dies with it.
    "ring reads, then stores": """
from holdfast.adapters.session_memory import output_ring
def pump(self, master, budget):
    try:
        data = os.read(master, 4096)
    except BlockingIOError:
        return 0
    except OSError:
        raise output_ring.Hangup from None
    moment()
    os.write(self.conduit, data)
    self._drain(len(data))
    return len(data)
assert output_ring.Ring.pump and output_ring.Ring._drain
output_ring.Ring.pump = pump
""",
    # The head is noted only now and then and the file position not asked: stored output is
    # overwritten. (Rounded when it is read: the keeper would note the true one in between.)
    "ring trusts only its noted head": """
from holdfast.adapters.session_memory import layout, output_ring
assert output_ring.Ring._recover_head and output_ring.Ring._drain
def recover(self):
    head = self._words[layout.HEAD_WORD] = self._words[layout.HEAD_WORD] // 16384 * 16384
    os.lseek(self.memfd, layout.DATA_AT + head % self.capacity, os.SEEK_SET)
    return head
def drain(self, waiting):
    real(self, waiting)
    moment()
real = output_ring.Ring._drain
output_ring.Ring._recover_head = recover
output_ring.Ring._drain = drain
""",
    # The ledger is never written: a repeat after a crash looks new, and is typed twice.
    "ledger notes nothing": """
from holdfast.adapters.session_memory import input_ledger
assert input_ledger.InputLedger.take and input_ledger.InputLedger._note
input_ledger.InputLedger._note = lambda self, operator, seq: None
def typed(self, master):
    done = real(self, master)
    moment()
    return done
real = input_ledger.InputLedger.type_into
input_ledger.InputLedger.type_into = typed
""",
    # Noted before it is in custody: a crash in between loses an input that counts as taken.
    "ledger notes first": """
from holdfast.adapters.session_memory import input_ledger
assert input_ledger.InputLedger.take and input_ledger.InputLedger._note
def take(self, operator, seq, data):
    self._note(operator, seq)
    moment()
    real(self, operator, seq, data)
real = input_ledger.InputLedger.take
input_ledger.InputLedger.take = take
""",
}

_MOMENT = """
import os, signal
ARMED = {armed!r}
def moment():
    try:
        os.unlink(ARMED + "/moment")
    except FileNotFoundError:
        return
    os.kill(os.getpid(), signal.SIGKILL)
"""


def crashing_host() -> FaultHost:
    """A host whose daemon dies where it is told to."""
    host = FaultHost()
    armed = host.work / "armed"
    armed.mkdir()
    _customize(host, _CRASH.format(armed=str(armed), calls=CALLS), launcher=True)
    return host


def arm(host: FaultHost, point: str) -> Path:
    """`before-NAME` or `after-NAME` of CALLS. The file is gone once it happened."""
    side, _, name = point.partition("-")
    assert side in ("before", "after") and name in CALLS
    path = host.work / "armed" / point
    path.touch()
    return path


def customized_host(source: str) -> FaultHost:
    """A host whose daemon runs `source` before everything else."""
    host = FaultHost()
    _customize(host, source)
    return host


def faulty_host(fault: str) -> FaultHost:
    """A host whose daemon has one of FAULTS."""
    host = FaultHost()
    armed = host.work / "armed"
    armed.mkdir()
    _customize(host, _MOMENT.format(armed=str(armed)) + FAULTS[fault])
    return host


def kill_at_the_moment(host: FaultHost) -> None:
    """The daemon of a faulty host dies where its fault does harm."""
    path = host.work / "armed" / "moment"
    path.touch()
    until("the moment came", lambda: not path.exists() or None)


def _customize(host: FaultHost, source: str, launcher: bool = False) -> None:
    """`launcher`: that of the daemon too."""
    directory = host.work / "site"
    directory.mkdir()
    chosen = "'HOLDFAST_SUPERVISOR_FD' in os.environ"
    if launcher:
        chosen += " or 'holdfast.adapters.launch.process' in sys.orig_argv"
    only_daemon = f"import os, sys\nif {chosen}:\n"
    body = "".join(f"    {line}\n" for line in source.splitlines())
    (directory / "sitecustomize.py").write_text(only_daemon + body)
    host.environment["PYTHONPATH"] = str(directory)
