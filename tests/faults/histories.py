"""What actors did and were told, what the journal says, what the program read: and the judge of the
three.

The journal claims to be the one total order. The judge takes its order as the order of all effects
and looks for a contradiction: with what the program read, with what anybody was told, with who held
the turn or had the right at that place, and with real time (what ended before something else began
comes before it). If there is none, the history is linearizable: the journal's order is the witness.
The judge knows the meaning of the entries and nothing of how the host works.
"""

from __future__ import annotations

import bisect
import heapq
import re
from collections import Counter
from dataclasses import dataclass
from itertools import accumulate
from math import inf
from pathlib import Path

from holdfast.adapters.journal_files.segments import JournalReader
from holdfast.journal import entries
from holdfast.journal.entries import Entry
from holdfast.model.limits import JOURNAL_ENTRY_MAX_BYTES

TAG = re.compile(rb"<([a-z0-9]+\.[0-9]+)>")
OK, REFUSED, UNKNOWN = "ok", "refused", "unknown"
_FORBIDDEN = {"not_permitted", "no_such_session"}  # a session one may not see is not there


@dataclass
class Op:
    """One thing an actor asked for, from its first try until it knew. `unknown` has no end."""

    actor: str
    kind: str
    tag: str
    start: float
    end: float = inf
    outcome: str = UNKNOWN
    code: str = ""
    shown: str | None = None  # the holder it was shown; "" is nobody
    subject: str = ""  # whose rights it is about
    at_seq: int = 0  # where the journal was, as a receipt says


@dataclass
class Scene:
    """Everything there is to judge."""

    ops: list[Op]
    typed: bytes  # what the program read
    journal: list[Entry]
    kills: int  # daemons killed once they served
    early: int = 0  # daemons killed while they started

    @classmethod
    def of(cls, ops: list[Op], read: Path, directory: Path, kills: int, early: int = 0) -> Scene:
        journal = list(JournalReader(str(directory)).entries())
        return cls(ops, read.read_bytes(), journal, kills, early)


def faults(scene: Scene) -> list[str]:
    """Every contradiction. Empty: one total order explains everything."""
    try:
        inputs = _surviving(scene.journal)
    except ValueError as error:
        return [str(error)]
    return [
        *_bytes(scene, inputs),
        *_answers(scene, inputs),
        *_turns(scene),
        *_rights(scene),
        *_halts(scene),
        *_real_time(scene, inputs),
        *_carried_on(scene),
    ]


# -- the journal, replayed ----------------------------------------------------------------------


def _surviving(journal: list[Entry]) -> list[tuple[Entry, entries.InputEntry]]:
    """The inputs that reached the terminal, as the journal has it: those not voided."""
    found: list[tuple[Entry, entries.InputEntry]] = []
    for entry in journal:
        body = entry.body
        if isinstance(body, entries.InputEntry):
            found.append((entry, body))
        elif isinstance(body, entries.Voided):
            last = found.pop() if found else None
            same = last is not None and (last[1].operator, last[1].last_seq) == (
                body.operator,
                body.last_seq,
            )
            if not same:
                raise ValueError(f"entry {entry.seq} voids an input that is not the last")
    return found


def _holders(journal: list[Entry]) -> list[tuple[int, str]]:
    """Who holds the turn from which entry on."""
    held = [(0, "")]
    for entry in journal:
        if isinstance(entry.body, entries.TurnMoved | entries.CarriedOn):
            held.append((entry.seq, entry.body.holder))
    return held


def _places(inputs: list[tuple[Entry, entries.InputEntry]]) -> dict[str, float]:
    """Of each tagged input, the entry it is in, and how far back there: keys typed together are
    one entry."""
    return {
        tag[1].decode(): entry.seq + tag.start() / JOURNAL_ENTRY_MAX_BYTES
        for entry, body in inputs
        for tag in TAG.finditer(body.data)
    }


# -- what reached the terminal --------------------------------------------------------------------


def _bytes(scene: Scene, inputs: list[tuple[Entry, entries.InputEntry]]) -> list[str]:
    """The journal accounts for every byte the program read, in its order, and for no other."""
    recorded = b"".join(body.data for _, body in inputs)
    if recorded == scene.typed:
        return []
    at = next(
        (i for i, (a, b) in enumerate(zip(recorded, scene.typed, strict=False)) if a != b),
        min(len(recorded), len(scene.typed)),
    )
    around = slice(max(0, at - 40), at + 40)
    return [
        f"at byte {at} the journal has {recorded[around]!r}, the program read "
        f"{scene.typed[around]!r}"
    ]


def _answers(scene: Scene, inputs: list[tuple[Entry, entries.InputEntry]]) -> list[str]:
    """Acknowledged: exactly once, and by whom it was; unknown: at most once; refused: never."""
    typed = Counter(tag.decode() for tag in TAG.findall(scene.typed))
    authors = {
        tag.decode(): entry.actor for entry, body in inputs for tag in TAG.findall(body.data)
    }
    recorded = Counter(tag.decode() for _, body in inputs for tag in TAG.findall(body.data))
    wanted = {OK: (1, 1), REFUSED: (0, 0), UNKNOWN: (0, 1)}
    found = []
    for op in scene.ops:
        if op.kind != "input":
            continue
        low, high = wanted[op.outcome]
        for where, times in (("typed", typed[op.tag]), ("recorded", recorded[op.tag])):
            if not low <= times <= high:
                found.append(f"{op.tag} was {op.outcome} {op.code}, and was {where} {times} times")
        if authors.get(op.tag, op.actor) != op.actor:
            found.append(f"{op.tag} was {op.actor}'s, and is recorded as {authors[op.tag]}'s")
        typed.pop(op.tag, None)
    found += [f"nobody sent {tag}, which was typed {times} times" for tag, times in typed.items()]
    return found


# -- who might ------------------------------------------------------------------------------------


def _turns(scene: Scene) -> list[str]:
    """Nobody but the holder wrote, and each move begins where the one before ended."""
    found, holder = [], ""
    for entry in scene.journal:
        body = entry.body
        if isinstance(body, entries.CarriedOn):
            holder = body.holder
        elif isinstance(body, entries.TurnMoved):
            if body.before != holder:
                found.append(f"entry {entry.seq} moves the turn from one who does not have it")
            holder = body.holder
        elif isinstance(body, entries.InputEntry) and entry.actor and entry.actor != holder:
            found.append(
                f"entry {entry.seq}: {entry.actor} wrote {body.data[:30]!r}, {holder} has the turn"
            )
    return found


def _rights(scene: Scene) -> list[str]:
    """Nobody wrote who had no right to: by the journal, and by what the admin was told and when."""
    found: list[str] = []
    without: set[str] = set()
    for entry in scene.journal:
        body = entry.body
        if isinstance(body, entries.EnvelopeSet):
            (without.discard if "input" in body.rights else without.add)(body.subject)
        elif isinstance(body, entries.InputEntry) and entry.actor in without:
            found.append(f"entry {entry.seq}: {entry.actor} wrote {body.data[:30]!r} without right")
    changes: dict[str, list[Op]] = {}
    for op in scene.ops:
        if op.kind in ("revoke", "grant"):
            changes.setdefault(op.subject, []).append(op)
    for op in scene.ops:
        if op.kind == "input" and op.outcome != UNKNOWN:
            mine = changes.get(op.actor, [])
            if op.outcome == OK and _surely_without(mine, op):
                found.append(f"{op.tag} was accepted while {op.actor} had no right to write")
            if op.code in _FORBIDDEN and not _perhaps_without(mine, op):
                found.append(f"{op.tag} was refused, but {op.actor} had the right to write")
    return found


def _surely_without(changes: list[Op], op: Op) -> bool:
    """Between a revocation that was confirmed and the next grant, which had not begun."""
    for change, after in zip(changes, [*changes[1:], None][: len(changes)], strict=True):
        until = after.start if after is not None else inf
        over = change.kind == "revoke" and change.outcome == OK and change.end < op.start
        if over and op.end < until:
            return True
    return False


def _perhaps_without(changes: list[Op], op: Op) -> bool:
    for change, after in zip(changes, [*changes[1:], None][: len(changes)], strict=True):
        until = after.end if after is not None else inf
        if change.kind == "revoke" and change.start < op.end and op.start < until:
            return True
    return False


def _halts(scene: Scene) -> list[str]:
    """While it is halted nothing is written. A new daemon may not know of a halt just asked for;
    one that was confirmed it does."""
    found, asked, confirmed = [], False, False
    for entry in scene.journal:
        body = entry.body
        if isinstance(body, entries.HaltAskedEntry):
            asked = True
        elif isinstance(body, entries.HaltedEntry):
            confirmed = True
        elif isinstance(body, entries.CarriedOn):
            asked = confirmed
        elif isinstance(body, entries.ResumedEntry):
            asked = confirmed = False
        elif isinstance(body, entries.InputEntry) and entry.actor and asked:
            found.append(f"entry {entry.seq}: {body.data[:30]!r} was written in a halted session")
    return found


# -- real time ------------------------------------------------------------------------------------


def _real_time(scene: Scene, inputs: list[tuple[Entry, entries.InputEntry]]) -> list[str]:
    """The journal's order of effects agrees with the order in which they were seen from outside,
    and everything anybody was shown was so at some place between."""
    places = _places(inputs)
    for entry in scene.journal:
        if isinstance(entry.body, entries.TurnMoved) and entry.body.reason:
            for tag in TAG.findall(entry.body.reason.encode()):
                places[tag.decode()] = entry.seq
    effects = sorted(
        ((places[op.tag], op) for op in scene.ops if op.tag in places), key=lambda one: one[0]
    )
    found, latest = [], None
    for _, op in effects:
        if latest is not None and op.end < latest.start:
            found.append(f"{op.tag} ended before {latest.tag} began, and comes after it")
        if latest is None or op.start > latest.start:
            latest = op
    found += [
        f"{op.kind} {op.tag} was confirmed, and is not recorded"
        for op in scene.ops
        if op.kind in ("seize", "hand_off_turn", "revoke_turn")
        and op.outcome == OK
        and op.tag not in places
    ]
    return found + _looks(scene, effects)


def _looks(scene: Scene, effects: list[tuple[float, Op]]) -> list[str]:
    """Each look at the turn gets the earliest place that fits what came before it; it must not be
    behind what began after it."""
    held = _holders(scene.journal)
    ended = sorted(((op.end, place) for place, op in effects), reverse=True)
    begun = sorted((op.start, place) for place, op in effects)
    first_after = list(accumulate((place for _, place in reversed(begun)), min))[::-1]
    found: list[str] = []
    done: list[tuple[float, float]] = []  # looks, with the places they got
    low = 0.0
    looks = [op for op in scene.ops if op.end < inf and _is_look(op)]
    for op in sorted(looks, key=lambda one: one.start):
        while ended and ended[-1][0] < op.start:
            low = max(low, ended.pop()[1])
        while done and done[0][0] < op.start:
            low = max(low, heapq.heappop(done)[1])
        later = bisect.bisect_right(begun, (op.end, inf))
        high = first_after[later] if later < len(begun) else len(scene.journal) + 1
        place = _first_fit(held, op, low, high)
        if place is None:
            found.append(
                f"{op.kind} {op.tag} by {op.actor} saw {op.shown!r} {op.code}, which was not so "
                f"between entries {low} and {high}"
            )
        else:
            heapq.heappush(done, (op.end, place))
    return found


def _is_look(op: Op) -> bool:
    return op.shown is not None or op.code == "turn_held"


def _first_fit(held: list[tuple[int, str]], op: Op, low: float, high: float) -> float | None:
    """The first place from `low` on and before `high` where the turn was as the op saw it."""
    first = bisect.bisect_right(held, (low, "~")) - 1
    for since, holder in held[first:]:
        place = max(since, low)
        if place >= high:
            return None
        if op.shown is not None and holder == op.shown:
            return place
        if op.shown is None and holder not in ("", op.actor):
            return place
    return None


# -- from one daemon to the next ------------------------------------------------------------------


def _carried_on(scene: Scene) -> list[str]:
    """Once for each daemon that came to serve; one that was killed before may have got as far. The
    turn is where it was; a last move that nobody was told of may not have been kept."""
    confirmed = {op.tag for op in scene.ops if op.outcome == OK}
    found, times, holder, before = [], 0, "", ""
    for entry in scene.journal:
        body = entry.body
        if isinstance(body, entries.TurnMoved):
            told = any(tag.decode() in confirmed for tag in TAG.findall(body.reason.encode()))
            before = body.holder if told else body.before
            holder = body.holder
        elif isinstance(body, entries.CarriedOn):
            times += 1
            if body.holder not in (holder, before):
                found.append(f"entry {entry.seq} carries on with another holder than there was")
            holder = before = body.holder
        elif not isinstance(body, _WITHOUT_NEWS):
            before = holder  # something happened since: that move was kept
    if not scene.kills <= times <= scene.kills + scene.early:
        found.append(f"{scene.kills} daemons were replaced, {times} said that they carry on")
    return found


# What stands between a move of the turn and its being kept, or is written by who carries on.
_WITHOUT_NEWS = (
    entries.SealEntry,
    entries.RefusedEntry,
    entries.TurnAsked,
    entries.TurnWithdrawn,
    entries.Voided,
    entries.TailCut,
)
