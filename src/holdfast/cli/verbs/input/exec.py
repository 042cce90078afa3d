"""`hold exec`: one command line in a session's own shell."""

from __future__ import annotations

import array
import contextlib
import fcntl
import os
import stat
import sys
import termios
import time
from collections.abc import Sequence

from holdfast.cli.arguments import Options, Parser, seconds, utf8, verb_parser
from holdfast.cli.text import raw_stdout
from holdfast.cli.text.approval import held_sentence
from holdfast.model.errors import HostLost, OutputGap, TimedOut
from holdfast.model.info import SessionInfo
from holdfast.model.state import SessionState
from holdfast.sdk.client import Host
from holdfast.sdk.client_core.client_machine import finish
from holdfast.sdk.client_core.event_reader import about_to_prompt, wait_for_state
from holdfast.sdk.client_core.exec_reader import ExecReader
from holdfast.sdk.client_core.retry_policy import PROMPT_S
from holdfast.wire.messages import session as m

SUMMARY = "run one command line in a session's shell; print its output, exit with its status"

EXIT_INTERRUPTED = 130
EXIT_NOT_RUN = 125  # as `env` and `timeout` have it


class CommandParser(Parser):
    """Everything after `--` is the command, also what looks like our own options. argparse would
    take `NAME` for both positionals as soon as an option is between them."""

    def parse_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Options | None = None
    ) -> Options:
        words = list(sys.argv[2:] if args is None else args)
        cut = words.index("--") if "--" in words else len(words)
        options = super().parse_args(words[:cut], namespace)
        try:
            options.command += [utf8(word) for word in words[cut + 1 :]]
        except Exception as error:
            self.error(str(error))
        if not options.command and not getattr(options, "file", ""):
            self.error(f"no command; write `{self.prog} NAME -- CMD...`")
        return options


def parser() -> Parser:
    parser = verb_parser(
        "exec",
        "Run one command line in the session's own shell, which must be at its prompt: with its "
        "directory, variables and functions. Prints the command's output and exits with its "
        "status. One CMD is the command line itself; several are quoted word by word. After a "
        "timeout, or ^C here, the command goes on in the session.",
        "  hold exec build -- make test\n"
        "  hold exec build -- 'cd src && ls *.c | wc -l'     one word: the shell reads it\n"
        "  hold exec build --timeout 30 -- ./migrate         124 if it takes longer",
        kind=CommandParser,
        usage="hold exec NAME [--timeout S] -- CMD...",
    )
    parser.add_value("--timeout", "S", "wait at most this long (5, 90s, 2m, 1h)", type=seconds)
    parser.add_session()
    parser.add_value("command", "CMD", "the command line, or its words", nargs="*")
    parser.runs_command = True
    return parser


def run(options: Options) -> int:
    with Host(client="hold exec") as host:
        # By id from here on: the name may be another session's when we have to come back.
        info = host.show(options.session, exact=True)
        if info.state is SessionState.WORKING and about_to_prompt(info):
            await_prompt(info, options.timeout, "hold exec")
        deadline = None if options.timeout is None else time.monotonic() + options.timeout
        request = m.Exec(0, info.id, host.next_seq(info.id), _line(options.command))
        reader = ExecReader(host.io(deadline), request)
        try:
            return _print_to_end(reader, info.name)
        except KeyboardInterrupt:
            print(f"hold: stopped waiting; {_whereabouts(reader, info)}", file=sys.stderr)
            return EXIT_INTERRUPTED
        except TimedOut:
            raise TimedOut(
                f"the command did not end within {options.timeout:g} s; "
                f"{_whereabouts(reader, info)}",
                hint=f"follow it: `hold tail -f {info.name}`",
            ) from None
        except HostLost as lost:
            if reader.began:
                lost.hint = f"when it is back: `hold show {info.name}`"
            raise


def _line(words: list[str]) -> str:
    if len(words) == 1:
        return words[0]
    import shlex

    return shlex.join(words)


def await_prompt(info: SessionInfo, timeout: float | None, client: str) -> None:
    """By a connection of its own: events would pile up beside the command's output."""
    deadline = time.monotonic() + (PROMPT_S if timeout is None else min(PROMPT_S, timeout))
    with Host(client=client) as watcher, contextlib.suppress(TimedOut):
        finish(wait_for_state(watcher.io(deadline), info.id, (SessionState.PROMPT,)))


def _whereabouts(reader: ExecReader, info: SessionInfo) -> str:
    if reader.held:
        return f"it waits for approval in {info.name}"
    if not reader.began:
        return f"whether {info.name} began it is not known"
    return f"it goes on in {info.name}"


def _print_to_end(reader: ExecReader, name: str) -> int:
    """Its exit status. After a lost connection its output comes from the beginning again, and what
    was printed already is left out by its offset."""
    out = raw_stdout.Newlines()
    write = raw_stdout.write if sys.stdout.isatty() else out.write
    end: int | None = None  # offset behind what was printed
    missed = goes_on = 0  # bytes that were lost, and where output goes on behind the last of them
    unread = _UnreadStdin()
    try:
        while not isinstance(answer := finish(reader.next()), m.ExecEnded):
            unread.look()
            if isinstance(answer, m.ExecHeld):
                print(f"hold: {held_sentence(answer.approval)}", file=sys.stderr, flush=True)
            elif isinstance(answer, m.ExecOutput):
                end = answer.offset if end is None else end
                if answer.offset > end:
                    missed, goes_on = missed + answer.offset - end, answer.offset
                write(answer.data[max(0, end - answer.offset) :])
                end = max(end, answer.offset + len(answer.data))
        unread.look()
    finally:
        out.close()
    missed = max(missed, 0 if reader.joined else answer.lost_bytes)
    if not reader.began:  # the status is that of an earlier command
        print(f"hold: the shell did not run this line; see `hold screen {name}`", file=sys.stderr)
        return EXIT_NOT_RUN
    if missed:
        raise OutputGap(
            f"{missed} bytes of output rolled off before they could be read; the command ended "
            f"with status {answer.status}",
            hint=f"`hold tail {name} --since {goes_on}` has what came behind them, while it is "
            "held; a larger ring (`hold run --ring`) or a file holds more",
        )
    return answer.status & 0xFF


class _UnreadStdin:
    """Says once that something waits on our standard input: the command reads the session's
    terminal, and does not get it."""

    def __init__(self) -> None:
        self._said = False
        self.look()

    def look(self) -> None:
        if not self._said and _something_to_read():
            self._said = True
            print(
                "hold: standard input is not used: the command reads the session's terminal "
                "(`hold send` types into it)",
                file=sys.stderr,
            )


def _something_to_read() -> bool:
    """Whether a pipe or a file stands ready there with data. Nothing is taken from it."""
    try:
        mode = os.fstat(0).st_mode
        if stat.S_ISREG(mode):
            return os.lseek(0, 0, os.SEEK_CUR) < os.fstat(0).st_size
        if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
            return False
        waiting = array.array("i", [0])
        fcntl.ioctl(0, termios.FIONREAD, waiting)
    except OSError:
        return False
    return waiting[0] > 0
