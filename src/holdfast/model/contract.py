"""The contract: every promise of the product, from which level on it is held in full, and what is
left to the application. `hold contract` prints it for a host.

tests/requirements compares it with the list of promises and their tests: what no test shows is not
in this version.
"""

from __future__ import annotations

from enum import StrEnum

from holdfast.model.record import Record
from holdfast.model.state import Level


class PromiseState(StrEnum):
    """What a promise is worth on one host."""

    HELD = "held"
    UNAVAILABLE = "not available at this level"
    HANDED = "handed to the application"


class Promise(Record):
    """One of them."""

    id: str
    text: str
    level: Level = Level.PLAIN  # from here on it is held in full
    below: str = ""  # what it comes to below that level; empty: nothing
    handed: str = ""  # what is left to the application
    absent: bool = False  # this version does not have it


class PromiseHere(Record):
    """One of them, on one host."""

    id: str
    promise: str  # the sentence
    state: PromiseState
    note: str = ""  # what is less than promised, and why
    handed: str = ""  # what is left to the application, also where it is held


_NOT_HERE = "not in this version"
_CONTAINED, _MOVABLE = Level.CONTAINED, Level.MOVABLE


def on_host(promise: Promise, level: Level) -> PromiseHere:
    """`level`: the highest that the host gives."""
    state, note = PromiseState.HELD, ""
    if promise.absent:
        state, note = PromiseState.UNAVAILABLE, _NOT_HERE
    elif not level.reaches(promise.level):
        note = f"in full at level {promise.level.value}"
        if promise.below:
            note += f"; {promise.below}"
        # Without it, what comes of the promise is all in the application's hands.
        elif promise.handed:
            state = PromiseState.HANDED
        else:
            state = PromiseState.UNAVAILABLE
    return PromiseHere(promise.id, promise.text, state, note, promise.handed)


CONTRACT: tuple[Promise, ...] = (
    Promise(
        "S1",
        "Nobody owns a session: it ends by its own end or by a permitted `end`, never "
        "because a client, its creator, a login or the daemon went away.",
    ),
    Promise(
        "S2",
        "A session's id is derived from its own key and names it for as long as there "
        "is memory of it, whatever client, daemon or transport is used.",
    ),
    Promise(
        "S3",
        "Any number of operators attach, leave and come back; the execution is not "
        "restarted or disturbed, and its pids stay.",
    ),
    Promise(
        "S4",
        "A client killed at any instant is replaced by another of any kind that knows "
        "nothing but the session's id.",
    ),
    Promise(
        "S5",
        "One execution, many views; building one is bounded work, however long the session ran.",
    ),
    Promise(
        "S6",
        "The live graph (processes, terminal, files, sockets) is answered from the "
        "kernel, never from memory of what was launched.",
    ),
    Promise(
        "S7",
        "Working, at the prompt, waiting for input, waiting for a secret, stopped, "
        "halted and ended are told apart from kernel evidence.",
    ),
    Promise(
        "S8",
        "What each session costs while it lives (memory, processes, descriptors, disk) "
        "is shown per session and per host.",
        level=_CONTAINED,
        below=("below it memory and processes are counted by descent, without what left the tree"),
    ),
    Promise(
        "A1",
        "Every input of every actor comes through one ingest: one order, one attribution.",
    ),
    Promise(
        "A2",
        "What an actor may do is judged on the host at the moment of the input, per actor.",
    ),
    Promise(
        "A3",
        "Inputs have one total order and carry their actor; two writers' keystrokes never mix.",
    ),
    Promise(
        "A4",
        "The turn is requested, granted, yielded, handed off, revoked and expires; who "
        "is next is policy.",
    ),
    Promise(
        "A5",
        "A permitted operator halts the tree and takes the turn from a holder that does"
        " not cooperate; later writes of the loser are refused.",
        level=_CONTAINED,
        below=(
            "below it a tree is stopped process by process, by signals: what starts "
            "meanwhile is chased"
        ),
    ),
    Promise(
        "A6",
        "Whoever takes the turn over is shown what changed, and is judged again against it.",
    ),
    Promise(
        "A7",
        "An effect staged by one actor and set off by another is recorded with both.",
        level=_CONTAINED,
        below=(
            "below it what a program did is attributed by the shell's commands, not by the kernel"
        ),
    ),
    Promise(
        "A8",
        "Before an effect commits, a replaceable policy may allow, refuse or hold it.",
        level=_CONTAINED,
        below=(
            "below it command lines are judged at Enter, and what programs run and write is not"
        ),
    ),
    Promise(
        "A9",
        "An ended session leaves a tombstone with its true exit status, and its id "
        "never lives again. A lost one is told apart from it everywhere, and resolves "
        "to its successor.",
    ),
    Promise(
        "A10",
        "An input carries how far its actor had seen, and may be refused if the state moved on.",
        absent=True,
    ),
    Promise(
        "A11",
        "A connection from inside a session has at most the authority of the actors behind it.",
        level=_CONTAINED,
        below=(
            "below it nobody can tell who is behind a process: changes of authority from "
            "inside are refused"
        ),
    ),
    Promise(
        "M1",
        "A client that disconnects loses nothing: the view comes back, and the output "
        "of the gap is held up to a named bound; what rolled off is counted.",
        handed="output older than the buffer; a client must bear a state that moved on",
    ),
    Promise(
        "M2",
        "When a host dies, identity and durable state survive; where there is a "
        "checkpoint, memory, tree and descriptors too, in the next epoch.",
        level=_MOVABLE,
        below=(
            "below it identity, record and what was known of the session survive; its "
            "memory does not"
        ),
        handed="a compatible kernel and instruction set; connections to peers outside die",
    ),
    Promise(
        "M3",
        "A lost connection to a peer outside leaves local state consistent and is listed.",
        level=_MOVABLE,
        handed=(
            "reconnecting, resyncing and idempotency: nothing is promised about the remote half"
        ),
    ),
    Promise(
        "M4",
        "Branches share a copy-on-write base and diverge; their lineage can be verified.",
        level=_MOVABLE,
        handed="external effects: idempotency keys and compensations",
        absent=True,
    ),
    Promise(
        "M5",
        "No recovery replays a journal, so replay cannot diverge.",
        handed="time travel and scale to zero by replay do not exist",
    ),
    Promise(
        "M6",
        "After a crash an input is known as taken, or reported as unknown; never as "
        "done when it may not be, and never applied twice. What was in flight in a lost"
        " session is named until that is acknowledged.",
        handed="atomicity is the data layer's",
    ),
    Promise(
        "M7",
        "Conflicting actors see one state, ordered and attributed; refused writes are recorded.",
        handed="the meaning of contradictory intents",
    ),
    Promise(
        "M8",
        "Authority is judged at the input against the current state, with the originator bound.",
        handed="which effects across actors are legitimate",
    ),
    Promise(
        "M9",
        "Abandoned sessions are reclaimed by a discipline that is on by default; a "
        "session doing work is not idle. What ended long ago is removed from disk by a "
        "stated retention.",
        level=_MOVABLE,
        below="below it an idle session can be ended, and not evicted to come back",
        handed="the thresholds are policy",
    ),
    Promise(
        "F1",
        "At most one incarnation of a session can be attached to, also in a partition.",
        level=_CONTAINED,
        below="below it a fence stops the processes by signals",
    ),
    Promise(
        "F2",
        "Leases carry a rising token; a session chooses to be pinned (default) or re-homeable.",
    ),
    Promise(
        "F3",
        "A session is re-homed only after its old lease is known to have expired; old "
        "epochs are refused everywhere.",
    ),
    Promise(
        "F4",
        "A session's own programs can read its fencing token, to pass it on.",
    ),
    Promise(
        "F5",
        "Losing a relay stops no pinned session and cuts off no local operator.",
    ),
    Promise(
        "N1",
        "Migration has six phases, each of which can fail back to a running source.",
        level=_MOVABLE,
    ),
    Promise(
        "N2",
        "A target is named, or chosen by what it can do.",
        level=_MOVABLE,
    ),
    Promise(
        "N3",
        "Where a session is between two hosts can be seen at every moment.",
        level=_MOVABLE,
    ),
    Promise(
        "N4",
        "A standby group promotes its furthest member under the fence and names what "
        "was accepted after its last sync.",
        level=_MOVABLE,
        absent=True,
    ),
    Promise(
        "N5",
        "A replica group respawns members elsewhere with the same derived identity.",
        absent=True,
    ),
    Promise(
        "N6",
        "A fork group branches from one point, with a record anyone can recompute.",
        level=_MOVABLE,
        absent=True,
    ),
    Promise(
        "N7",
        "A 36-byte witness shows a range of the chain intact without the whole log.",
    ),
    Promise(
        "N8",
        "A chain is continuous, forked, unverifiable or migrated, and says which.",
    ),
    Promise(
        "N9",
        "A break is a signed record with a typed reason and a new entity with lineage, "
        "told to everybody who knows the session, never papered over.",
    ),
    Promise(
        "R1",
        "A host dials out and opens no inbound port.",
    ),
    Promise(
        "R2",
        "Many machines and sessions are addressed from one place.",
    ),
    Promise(
        "R3",
        "Attaching needs an authenticated actor authorised for this session; knowing an"
        " id entitles to nothing.",
    ),
    Promise(
        "R4",
        "A compromised relay can deny service; it cannot read, forge or strip.",
    ),
    Promise(
        "R5",
        "Roles: admin, execute, read, approve-only.",
    ),
    Promise(
        "R6",
        "Clients: command line, web, Python, MCP, chat, ssh and HTTP.",
    ),
    Promise(
        "R7",
        (
            "Files of a session are listed, read, written and copied through the same "
            "channel, as its user."
        ),
        absent=True,
    ),
    Promise(
        "R8", "A one-shot command runs on a machine without a session that is kept.", absent=True
    ),
    Promise(
        "R9",
        ("Services act by HTTP and by webhook, each bound to its envelope; events go out signed."),
        absent=True,
    ),
    Promise("R10", "Whoever is waited for is told, also with no client open.", absent=True),
    Promise("R11", "A right can be asked for, granted for a time, and refused.", absent=True),
    Promise("R12", "Every act may carry a reference that can be searched.", absent=True),
    Promise("R13", "Another implementation can prove its conformance by a kit.", absent=True),
    Promise(
        "G1",
        "An agent may submit a structured action, validated before it runs.",
    ),
    Promise(
        "G2",
        "Each action leaves a full trace.",
    ),
    Promise(
        "G3",
        "Each action is scored on validity, success and unintended effects.",
    ),
    Promise(
        "G4",
        "Errors are for machines too, and say how to recover.",
    ),
    Promise(
        "G5",
        "Policy can use an actor's measured score.",
    ),
)
