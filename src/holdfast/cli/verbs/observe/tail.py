"""`hold tail`: what a session printed."""

from __future__ import annotations

import sys
from collections.abc import Callable

from holdfast.cli.arguments import Options, Parser, count, verb_parser
from holdfast.cli.text import raw_stdout
from holdfast.sdk.client import Host
from holdfast.sdk.client_core.client_machine import finish
from holdfast.sdk.client_core.output_reader import OutputReader, Piece

SUMMARY = "print a session's output, and follow it"

EXIT_INTERRUPTED = 130


def parser() -> Parser:
    parser = verb_parser(
        "tail",
        "Print the output the session still holds, byte for byte as the program wrote it, escape "
        "sequences included. Output that has rolled off is reported on standard error.",
        "  hold tail build -n 20\n"
        "  hold tail -f build            until the session ends; survives a daemon restart\n"
        "  hold tail build --since 4096  from this offset on (`hold show` has offsets)\n"
        "  hold tail build --plain | grep error",
    )
    parser.add_flag("-f", "--follow", help="go on until the session ends")
    parser.add_value("--since", "OFFSET", "from this output offset on", type=count)
    parser.add_argument("-n", "--lines", type=count, metavar="N", help="the last N lines only")
    parser.add_flag("--plain", help="without escape sequences")
    parser.add_session(reads=True)
    return parser


def run(options: Options) -> int:
    with Host(client="hold tail") as host:
        # From offset 0: the host answers with a Gap up to what it still holds.
        output = OutputReader(host.io(), options.session, options.since or 0)
        head = finish(output.open()).info.output_offset
        try:
            _print(output, head, options)
        except KeyboardInterrupt:
            again = f"`hold tail -f {output.name} --since {output.offset}`"
            print(f"hold: stopped; {again} goes on from here", file=sys.stderr)
            return EXIT_INTERRUPTED
    return 0


def _print(output: OutputReader, head: int, options: Options) -> None:
    write = _plain_writer() if options.plain else _byte_writer()
    last = _LastLines(options.lines) if options.lines is not None else None
    while options.follow or output.offset < head:
        if last is not None and output.offset >= head:
            write(last.held)
            last = None
        piece = finish(output.next())
        if not isinstance(piece, Piece):
            break
        if piece.gap:
            print(
                f"hold: {piece.gap} bytes before offset {piece.offset} are no longer held",
                file=sys.stderr,
            )
        data = piece.data if options.follow else piece.data[: max(0, head - piece.offset)]
        (last.add if last is not None else write)(data)
    if last is not None:
        write(last.held)


def _byte_writer() -> Callable[[bytes], None]:
    """Byte for byte; but a terminal is not asked what the program asked its own: the answers would
    be typed into the reader's shell."""
    if not sys.stdout.isatty():
        return raw_stdout.write
    from holdfast.wire.terminal_queries import strip_queries

    return lambda data: raw_stdout.write(strip_queries(data))


def _plain_writer() -> Callable[[bytes], None]:
    from holdfast.sdk.plain_text import PlainText

    text = PlainText()
    return lambda data: raw_stdout.write(text.feed(data).encode())


class _LastLines:
    """The end of a stream, never more than it needs to keep."""

    def __init__(self, lines: int) -> None:
        self._lines = lines
        self.held = b""

    def add(self, data: bytes) -> None:
        held = self.held + data
        # A newline at the very end closes the last line; it does not begin another.
        at = len(held) - held.endswith(b"\n")
        for _ in range(self._lines):
            at = held.rfind(b"\n", 0, max(at, 0))
            if at < 0:
                break
        self.held = held[at + 1 :] if self._lines else b""
