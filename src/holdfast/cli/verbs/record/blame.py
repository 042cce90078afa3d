"""`hold blame`: whose command made this line?"""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Iterator

from holdfast.cli.arguments import Options, Parser, verb_parser
from holdfast.cli.text.sanitize import sanitize
from holdfast.cli.text.table import clock
from holdfast.model.info import BlameLine
from holdfast.sdk.client import Host
from holdfast.wire.messages import journal as journal_messages

SUMMARY = "show which command and actor produced each line"

_COMMAND_CHARS = 24
_LINE_CHARS = 1000


def parser() -> Parser:
    parser = verb_parser(
        "blame",
        "Print every line of the output that is held, of a live session or an ended one, with the "
        "actor and the command that produced it. Lines that no command produced have none: the "
        "last prompt, or all of a program that is not a shell.",
        "  hold blame build\n"
        "  hold blame build -L 10,20\n"
        "  hold blame build -L 10, --json | jq 'select(.actor == \"bot\").text'",
    )
    parser.add_value("-L", "A,B", "only these lines", type=_range, dest="lines", default=(1, None))
    parser.add_json()
    parser.add_session(reads=True)
    return parser


def run(options: Options) -> None:
    with Host(client="hold blame") as host:
        lines = _lines(host, options.session, *options.lines)
        if options.json:
            import json

            for line in lines:
                print(json.dumps(line.pack()))
        else:
            _print(list(lines))


def _range(text: str) -> tuple[int, int | None]:
    """A,B or A, or ,B or A alone."""
    first, comma, last = text.partition(",")
    wrong = any(part and not part.isdecimal() for part in (first, last))
    begin = int(first or 1) if not wrong else 0
    end = (int(last) if last else None) if comma else begin
    if wrong or not first + last or begin < 1 or (end is not None and end < begin):
        raise ArgumentTypeError(f"not a range of lines like 10,20: {text[:40]!r}")
    return begin, end


def _lines(host: Host, session: str, first: int, last: int | None) -> Iterator[BlameLine]:
    """As many answers as it takes."""
    while last is None or first <= last:
        blamed = host.ask(journal_messages.Blame(0, session, first, last), journal_messages.Blamed)
        yield from blamed.lines
        first += len(blamed.lines)
        if not blamed.lines or first > blamed.total:
            return


def _print(lines: list[BlameLine]) -> None:
    rows = [
        (
            sanitize(line.actor) or "-",
            f"#{line.command}" if line.command is not None else "-",
            clock(line.at) if line.at is not None else "-",
            sanitize(line.command_text, _COMMAND_CHARS) or "-",
            str(line.number),
        )
        for line in lines
    ]
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(5)]
    for row, line in zip(rows, lines, strict=True):
        left = "  ".join(cell.ljust(width) for cell, width in zip(row[:4], widths, strict=False))
        print(f"{left}  {row[4]:>{widths[4]}}) {sanitize(line.text, _LINE_CHARS)}".rstrip())
