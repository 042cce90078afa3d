"""`hold log`: what was done to a session, by whom."""

from __future__ import annotations

import json
import sys
import time
from argparse import ArgumentTypeError
from collections.abc import Iterator

from holdfast.cli.arguments import Options, Parser, seconds, verb_parser
from holdfast.cli.journal.pages import NumberedEntry, Pages
from holdfast.cli.text.journal_entry import fields, what
from holdfast.cli.text.sanitize import sanitize
from holdfast.cli.text.table import clock
from holdfast.journal.entries import BY_TAG, MAY_FOLLOW, InputEntry, SealEntry
from holdfast.model.errors import InvalidArgument
from holdfast.sdk.client import Host

SUMMARY = "show what was done to a session, and by whom"

_FOLLOW_S = 0.5  # between looks for new entries


def parser() -> Parser:
    parser = verb_parser(
        "log",
        "Print the session's journal, live or ended, one line per entry: its number, when, who, "
        "what. Keys typed in a row by one actor are one line; secrets are only counted; the host's "
        "seals are left out (--kind sealed shows them).",
        "  hold log build\n"
        "  hold log build --actor bot --since 10m\n"
        "  hold log build --kind command_began --kind command_ended\n"
        "  hold log build --since 120 --json | jq -r .hash",
    )
    parser.add_value("--actor", "A", "only of this actor", default="")
    parser.add_value(
        "--since", "SEQ|AGE", "from this entry on, or of the last 10m, 2h", type=_since
    )
    parser.add_values("--kind", "K", "only this kind; may be repeated", dest="kinds")
    parser.add_flag("-f", "--follow", help="go on until it is closed")
    parser.add_json()
    parser.add_session(reads=True)
    return parser


def run(options: Options) -> None:
    _check_kinds(options.kinds)
    with Host(client="hold log") as host:
        pages = Pages(host, options.session)
        show = _print_json if options.json else _Lines(seals="sealed" in options.kinds)
        for kept in _entries(pages, _first(options.since, pages), follow=options.follow):
            if kept is None:
                _flush(show)
            elif _wanted(kept, options, pages):
                show(kept, pages)
        _flush(show)
    if pages.unlinked:
        print(
            f"hold: entry {pages.unlinked} is not linked to the one before it; "
            f"see `hold verify {pages.session[:8]}`",
            file=sys.stderr,
        )


def _since(text: str) -> int | float:
    """An entry's number as an int, or an age in seconds as a float."""
    if text.isdecimal() and len(text) < 18:
        return int(text)
    try:
        if text[-1:].isalpha():
            return seconds(text)
        raise ArgumentTypeError(text)
    except ArgumentTypeError:
        raise ArgumentTypeError(
            f"not an entry's number and not an age like 90s, 10m, 2h, 1d: {text[:40]!r}"
        ) from None


def _first(since: int | float | None, pages: Pages) -> int:
    if isinstance(since, float):
        return pages.first_since(time.time() - since)
    return max(1, since or 1)


def _check_kinds(kinds: list[str]) -> None:
    for kind in kinds:
        if kind not in BY_TAG:
            raise InvalidArgument(
                f"there is no kind of entry {kind[:40]!r}", hint=f"one of {', '.join(BY_TAG)}"
            )


def _entries(pages: Pages, first: int, *, follow: bool) -> Iterator[NumberedEntry | None]:
    """Entries as they come; None when there is none for now."""
    closed = False
    while True:
        for kept in pages.entries(first):
            first = kept.entry.seq + 1
            closed = closed or kept.entry.body.tag in MAY_FOLLOW
            yield kept
        if not follow or closed:
            return
        yield None
        time.sleep(_FOLLOW_S)


def _wanted(kept: NumberedEntry, options: Options, pages: Pages) -> bool:
    entry = kept.entry
    if options.kinds and entry.body.tag not in options.kinds:
        return False
    return not options.actor or options.actor in (entry.actor, pages.name(entry.actor))


def _print_json(kept: NumberedEntry, pages: Pages) -> None:
    print(json.dumps(fields(kept, pages.name)))


def _flush(show: object) -> None:
    if isinstance(show, _Lines):
        show.flush()
    sys.stdout.flush()


class _Lines:
    """One line per entry. Keys of one operator in a row are held until something else comes."""

    def __init__(self, *, seals: bool) -> None:
        self._seals = seals
        self._held: NumberedEntry | None = None  # keys gathered so far, as one entry
        self._through = 0
        self._pages: Pages | None = None

    def __call__(self, kept: NumberedEntry, pages: Pages) -> None:
        self._pages = pages
        body = kept.entry.body
        if isinstance(body, SealEntry) and not self._seals:
            return
        if not isinstance(body, InputEntry) or body.form != "keys":
            self.flush()
            self._line(kept, kept.entry.seq)
        elif self._continues(kept):
            assert self._held is not None
            held = self._held.entry.body
            assert isinstance(held, InputEntry)
            joined = held.replace(data=held.data + body.data)
            self._held = self._held.replace(entry=self._held.entry.replace(body=joined))
            self._through = kept.entry.seq
        else:
            self.flush()
            self._held, self._through = kept, kept.entry.seq

    def _continues(self, kept: NumberedEntry) -> bool:
        if self._held is None:
            return False
        held, body = self._held.entry.body, kept.entry.body
        assert isinstance(held, InputEntry) and isinstance(body, InputEntry)
        return (self._held.entry.actor, held.operator) == (kept.entry.actor, body.operator)

    def flush(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            self._line(held, self._through)

    def _line(self, kept: NumberedEntry, through: int) -> None:
        assert self._pages is not None
        entry, name = kept.entry, self._pages.name
        number = str(entry.seq) if through == entry.seq else f"{entry.seq}-{through}"
        when = clock(entry.at)
        print(f"{number:>7}  {when}  {sanitize(name(entry.actor)):<10} {what(entry.body, name)}")
