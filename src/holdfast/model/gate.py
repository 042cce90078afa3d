"""What a policy is asked before an effect commits, and what it answers.

Values only. Who computes the facts, asks and keeps what is held: host/gate; how approvals are
counted: core/gate.
"""

from __future__ import annotations

from enum import StrEnum

from holdfast.model.actor import ActorKind
from holdfast.model.ids import ActorId, SessionId
from holdfast.model.record import Record


class EffectKind(StrEnum):
    """What is about to happen."""

    LINE = "line"  # the session's shell takes a command line
    INPUT = "input"  # a program other than the shell reads a line or keys that commit something
    EXEC = "exec"  # a process executes a program
    WRITE_OPEN = "write-open"  # a process opens a file for writing
    UNLINK = "unlink"
    RENAME = "rename"
    CONNECT = "connect"
    SIGNAL = "signal"
    FORK = "fork"
    CHECKPOINT = "checkpoint"
    MOVE = "move"
    END = "end"


class Part(StrEnum):
    """How an actor had a part in an effect."""

    TRIGGER = "trigger"  # set it off: pressed Enter, or asked for it
    TYPED = "typed"  # typed some of the text
    INPUT = "input"  # typed into the program that does it
    STATE = "state"  # set shell state that it uses: a variable, alias, function, PATH, cwd, trap
    FILE = "file"  # wrote a file that it executes or reads as code
    SHAPED = "shaped"  # wrote last in a shell that does not report what it holds


_DID = {
    Part.TRIGGER: "sets it off",
    Part.TYPED: "typed a part of it",
    Part.INPUT: "typed into the program that does it",
    Part.STATE: "set {what}, which it uses",
    Part.FILE: "wrote {what}, which it uses",
    Part.SHAPED: "wrote in the shell when nobody could see what it changed",
}


class Contributor(Record):
    """An actor behind an effect, and how."""

    actor: ActorId  # its id
    name: str  # its name
    kind: ActorKind  # what kind of actor it is
    part: Part  # how
    what: str = ""  # of state and files: which, as `var:PATH`, `alias:ls`, `file:/tmp/s.sh`
    command: int = 0  # the number of the command by which it did that; 0: none, or not known

    @property
    def did(self) -> str:
        """How it had a part in the effect, for people."""
        text = _DID[self.part].format(what=self.what or "state of the shell")
        return f"{text} (command {self.command})" if self.command else text


class ProposedEffect(Record):
    """An effect that has not committed, with everything a policy may judge it by."""

    session: SessionId
    name: str  # of the session
    labels: tuple[str, ...]
    level: str
    epoch: int
    kind: EffectKind
    actor: ActorId  # who sets it off
    contributors: tuple[Contributor, ...]  # the one who sets it off is among them, and first
    text: str = ""  # of a line: exactly what the shell is about to take
    text_known: bool = True  # False: the shell did not say; `text` is empty
    argv: tuple[str, ...] = ()
    path: str = ""  # of the program, or of the file
    cwd: str = ""
    workspace: str = ""  # the session's
    # NAME=VALUE, what differs from how the session began; NAME alone if its value is not known
    environment: tuple[str, ...] = ()
    destination: str = ""  # of a connection: host:port
    turn_holder: str = ""  # the actor's id
    approved_by: tuple[ActorId, ...] = ()  # those who approved this very effect


class Outcome(StrEnum):
    """What is to be done with an effect."""

    ALLOW = "allow"
    REFUSE = "refuse"
    HOLD = "hold"  # until enough others approve


class Verdict(Record):
    """A policy's answer."""

    outcome: Outcome
    reason: str = ""  # for people, and for agents: which rule, and what to do
    policy: str = ""  # where the rule is: `host`, `label:x`, `session`, with its id
    quorum: int = 1  # of a hold: so many must approve
    approvers: tuple[str, ...] = ()  # names or kinds who may; empty: all with the right `approve`


ALLOWED = Verdict(Outcome.ALLOW)


def is_approver(approvers: tuple[str, ...], name: str, kind: str) -> bool:
    """Whether a hold names this actor, by name or kind, among those who may approve. A device that
    joined by an invite is somebody's phone or browser: where people may, it may."""
    if not approvers or name in approvers or kind in approvers:
        return True
    return kind == ActorKind.DEVICE and ActorKind.HUMAN in approvers
