"""The file beside an exported cast: which output, command and input is whose, by the journal's
entries and their hashes; a signed proof that these entries are one unbroken chain; and what is
missing. Output itself is not in the journal, so its hash here is only this file's word."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import Any

from holdfast.cli.journal.asciicast import Recording, Replaced
from holdfast.cli.journal.pages import NumberedEntry, Pages
from holdfast.journal import entries as e

_TIMING = (
    "known is when these amounts of output had been printed, to within 0.05 s; in between, lines "
    "are spread evenly"
)


def provenance(
    of: Recording,
    kept: Sequence[NumberedEntry],
    pages: Pages,
    *,
    cast_name: str,
    cast: bytes,
    replaced: list[Replaced],
    proof: str,
    trouble: str,
) -> bytes:
    """The file. `proof`: the signed one as JSON text, or ""; `trouble`: why it is missing, or what
    of the journal could not be read."""
    end = of.held_from + len(of.held)
    commands = list(_commands(kept, pages))
    described = {
        "holdfast": "provenance v1",
        "cast": cast_name,
        "cast_sha256": hashlib.sha256(cast).hexdigest(),
        "session": of.info.id,
        "name": of.info.name,
        "entries": {"first": kept[0].entry.seq, "last": kept[-1].entry.seq} if kept else None,
        "actors": {each: pages.name(each) for each in _actors(kept)},
        "output": {
            "from": of.held_from,
            "to": end,
            "sha256": hashlib.sha256(of.held).hexdigest(),
            "replaced": [each.pack() for each in replaced],
        },
        "timing": {"known": [each.pack() for each in of.anchors], "meaning": _TIMING},
        "ranges": list(_ranges(commands, of.held_from, end)),
        "commands": commands,
        "inputs": list(_inputs(kept, pages)),
        "missing": _missing(of, kept, pages, commands, trouble),
        "proof": json.loads(proof) if proof else None,
    }
    return json.dumps(described, indent=1).encode() + b"\n"


def _actors(kept: Sequence[NumberedEntry]) -> list[str]:
    return sorted({each.entry.actor for each in kept} - {e.HOST})


def _place(kept: NumberedEntry) -> dict[str, Any]:
    return {"seq": kept.entry.seq, "at": kept.entry.at, "hash": kept.hash.hex()}


def _commands(kept: Sequence[NumberedEntry], pages: Pages) -> Iterator[dict[str, Any]]:
    ends = {k.entry.body.number: k for k in kept if isinstance(k.entry.body, e.CommandEnded)}
    for each in kept:
        body = each.entry.body
        if not isinstance(body, e.CommandBegan):
            continue
        ended = ends.get(body.number)
        end = ended.entry.body if ended is not None else None
        assert end is None or isinstance(end, e.CommandEnded)
        yield {
            "number": body.number,
            "text": body.text,
            "cwd": body.cwd,
            "actor": each.entry.actor,
            "actor_name": pages.name(each.entry.actor),
            "authors": list(body.authors),
            "from": body.offset,
            "to": end.offset if end is not None else None,
            "status": end.status if end is not None else None,
            "began": _place(each),
            "ended": _place(ended) if ended is not None else None,
        }


def _ranges(commands: list[dict[str, Any]], start: int, end: int) -> Iterator[dict[str, Any]]:
    """All of the held output, in order: what a command printed is its actor's. In between are
    prompts and what was typed at them, which no command printed."""
    at = start
    for command in commands:
        first, last = command["from"], end if command["to"] is None else command["to"]
        if last <= at:
            continue
        if first > at:
            yield {"from": at, "to": min(first, end), "command": None, "actor": None}
        first = max(first, at)
        if first < min(last, end):
            who = {"command": command["number"], "actor": command["actor"]}
            yield {"from": first, "to": min(last, end), **who}
        at = min(last, end)
    if at < end:
        yield {"from": at, "to": end, "command": None, "actor": None}


def _inputs(kept: Sequence[NumberedEntry], pages: Pages) -> Iterator[dict[str, Any]]:
    for each in kept:
        body = each.entry.body
        if isinstance(body, e.InputEntry):
            what = {"form": body.form, "bytes": len(body.data), "offset": body.offset}
        elif isinstance(body, e.BlindInput):
            what = {"form": "secret", "bytes": body.size, "offset": None}
        else:
            continue
        actor = each.entry.actor
        yield {"actor": actor, "actor_name": pages.name(actor), **what, **_place(each)}


def _missing(
    of: Recording,
    kept: Sequence[NumberedEntry],
    pages: Pages,
    commands: list[dict[str, Any]],
    trouble: str,
) -> dict[str, Any]:
    """What this export does not show, and why."""
    blind = [
        {"on": k.entry.body.on, "actor": k.entry.actor, **_place(k)}
        for k in kept
        if isinstance(k.entry.body, e.BlindTurn)
    ]
    secret = sum(k.entry.body.size for k in kept if isinstance(k.entry.body, e.BlindInput))
    gone = [c["number"] for c in commands if c["to"] is not None and c["to"] <= of.held_from]
    return {
        "output_rolled_off": of.held_from,  # bytes printed before the first one held
        "commands_rolled_off": gone,
        "secret_bytes": secret,  # typed, and kept nowhere
        "blind_turns": blind,  # what was printed in them is kept nowhere
        "lost_inputs": [
            _place(k) for k in kept if isinstance(k.entry.body, e.Voided)
        ],  # recorded, and never arrived
        "trouble": trouble,
    }
