"""A session's held output as an asciicast v3 file: a header line, then `[interval, code, data]`.

The journal knows when things happened to the session and how much had been printed by then; it does
not time the output itself. So the bytes between two such moments are cut at line ends and spread
evenly, the first of them at the earlier moment. The file says so in a comment, and the provenance
file (provenance.py) lists the moments that are known.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from holdfast.cli.journal.pages import NumberedEntry
from holdfast.cli.text.sanitize import sanitize
from holdfast.journal import entries as e
from holdfast.model.info import SessionInfo
from holdfast.model.record import Record

_PIECES_MAX = 1000  # that the output between two known moments is cut into
_REPLACEMENT = "�"
_SAID = (
    "# when output came is known only at the journal's entries; in between it is interpolated",
    "# who did what: the provenance file beside this one",
)


class Replaced(Record):
    """Bytes that are no UTF-8, which this format cannot carry: one replacement character each."""

    offset: int
    hex: str


class Anchor(Record):
    """A moment at which it is known how much had been printed."""

    seq: int
    offset: int
    at: float


class Recording(Record):
    """What a cast is made of."""

    info: SessionInfo
    held_from: int
    held: bytes
    anchors: tuple[Anchor, ...]  # rising in both
    bodies: tuple[e.Body, ...]  # what happened at each
    names: tuple[str, ...]  # and who did it
    ending: e.EndedEntry | None


def recording(
    info: SessionInfo,
    held_from: int,
    held: bytes,
    kept: Sequence[NumberedEntry],
    names: Sequence[str],
) -> Recording:
    """`kept`: the whole journal; `names`: of the actor of each entry."""
    anchors: list[Anchor] = []
    bodies, who = [], []
    offset, at, end = 0, 0.0, held_from + len(held)
    for each, name in zip(kept, names, strict=True):
        known = 0 if each.entry.seq == 1 else getattr(each.entry.body, "offset", None)
        if known is None:
            continue
        offset, at = max(offset, min(known, end)), max(at, each.entry.at)
        anchors.append(Anchor(each.entry.seq, offset, at))
        bodies.append(each.entry.body)
        who.append(name)
    ending = next((k.entry.body for k in kept if isinstance(k.entry.body, e.EndedEntry)), None)
    return Recording(info, held_from, held, tuple(anchors), tuple(bodies), tuple(who), ending)


# -- the file ---------------------------------------------------------------------------------


def cast(of: Recording, *, with_input: bool) -> tuple[list[bytes], list[Replaced]]:
    """The file's lines, and what in them is not what was printed."""
    began, cols, rows = _beginning(of)
    header = {
        "version": 3,
        "term": {"cols": cols, "rows": rows, "type": "xterm-256color"},
        "timestamp": int(began),
        "command": " ".join(of.info.argv),
        "title": of.info.name,
    }
    replaced: list[Replaced] = []
    lines = [json.dumps(header), *_SAID]
    last = 0.0
    for at, code, data in _events(of, began, with_input, replaced):
        since = round(max(at - began, last), 6)
        lines.append(json.dumps([round(since - last, 6), code, data]))
        last = since
    return [line.encode() + b"\n" for line in lines], replaced


def _events(
    of: Recording, began: float, with_input: bool, replaced: list[Replaced]
) -> Iterator[tuple[float, str, str]]:
    offset, at = of.held_from, began
    for anchor, body, name in zip(of.anchors, of.bodies, of.names, strict=True):
        if anchor.offset < of.held_from:
            continue
        end = _whole_character(of, anchor.offset)
        yield from _output(of, offset, end, at, anchor.at, replaced)
        offset, at = max(offset, end), anchor.at
        yield from _happened(body, name, at, with_input)
    printed_at = max(at, of.info.last_output_at or at)
    yield from _output(of, offset, of.held_from + len(of.held), at, printed_at, replaced)
    status = _exit_status(of.ending)
    if status is not None:
        yield max(printed_at, of.info.ended_at or printed_at), "x", str(status)


def _happened(
    body: e.Body, name: str, at: float, with_input: bool
) -> Iterator[tuple[float, str, str]]:
    if isinstance(body, e.CommandBegan):
        yield at, "m", f"{sanitize(name)}: {sanitize(body.text)}"
    elif isinstance(body, e.Resized):
        yield at, "r", f"{body.cols}x{body.rows}"
    elif isinstance(body, e.InputEntry) and with_input:
        yield at, "i", body.data.decode(errors="replace")


def _exit_status(ending: e.EndedEntry | None) -> int | None:
    if ending is None or ending.lost is not None:
        return None
    return 128 + ending.signal if ending.signal is not None else ending.code


def _beginning(of: Recording) -> tuple[float, int, int]:
    """When the first byte held was printed, as far as that is known, and the terminal's size."""
    at, cols, rows = of.info.created_at, of.info.size.cols, of.info.size.rows
    before: Anchor | None = None
    for anchor, body in zip(of.anchors, of.bodies, strict=True):
        if anchor.offset > of.held_from:
            if before is not None:
                part = (of.held_from - before.offset) / (anchor.offset - before.offset)
                at = before.at + part * (anchor.at - before.at)
            return at, cols, rows
        before, at = anchor, anchor.at
        if isinstance(body, e.Began | e.Resized) and body.cols and body.rows:
            cols, rows = body.cols, body.rows
        if anchor.offset == of.held_from:
            return at, cols, rows
    return at, cols, rows


# -- output -----------------------------------------------------------------------------------


def _output(
    of: Recording, start: int, end: int, at: float, until: float, replaced: list[Replaced]
) -> Iterator[tuple[float, str, str]]:
    """The bytes from `start` to `end`, over the time from `at` to `until`."""
    data = of.held[start - of.held_from : max(end, start) - of.held_from]
    pieces = _pieces(data)
    for index, piece in enumerate(pieces):
        when = at + (until - at) * index / len(pieces)
        yield when, "o", _text(piece, start, replaced)
        start += len(piece)


def _pieces(data: bytes) -> list[bytes]:
    lines = data.splitlines(keepends=True)
    each = -(-len(lines) // _PIECES_MAX) or 1
    return [b"".join(lines[index : index + each]) for index in range(0, len(lines), each)]


def _whole_character(of: Recording, offset: int) -> int:
    """This offset, or a little before it, where no character is cut in two."""
    for back in range(4):
        at = offset - back - of.held_from
        if not 0 <= at < len(of.held) or of.held[at] & 0xC0 != 0x80:
            return offset - back
    return offset


def _text(data: bytes, offset: int, replaced: list[Replaced]) -> str:
    shown = []
    while data:
        try:
            shown.append(data.decode())
            break
        except UnicodeDecodeError as wrong:
            shown += (data[: wrong.start].decode(), _REPLACEMENT)
            bad = data[wrong.start : wrong.end]
            replaced.append(Replaced(offset + wrong.start, bad.hex()))
            offset, data = offset + wrong.end, data[wrong.end :]
    return "".join(shown)
