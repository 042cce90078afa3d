"""`hold exec`: one command line in a session's own shell."""

from __future__ import annotations

import contextlib
import sys
import time

from holdfast.cli.arguments import Parser, add_session, seconds, utf8, verb_parser
from holdfast.cli.text import raw_stdout
from holdfast.model.errors import HoldfastError, HostDown, HostLost, InputUnknown, TimedOut
from holdfast.model.state import SessionState
from holdfast.sdk.client import Host
from holdfast.sdk.client_core.client_machine import expect, finish
from holdfast.sdk.client_core.event_reader import about_to_prompt, wait_for_state
from holdfast.sdk.client_core.retry_policy import PROMPT_S
from holdfast.wire.messages import session as m

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from typing import Any

    from holdfast.model.info import SessionInfo

SUMMARY = "run one command line in a session's shell; print its output, exit with its status"

EXIT_INTERRUPTED = 130


class _ExecParser(Parser):
    """Everything after `--` is the command, also what looks like our own options. argparse would
    take `NAME` for both positionals as soon as an option is between them."""

    def parse_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> Any:
        words = list(sys.argv[2:] if args is None else args)
        cut = words.index("--") if "--" in words else len(words)
        options = super().parse_args(words[:cut], namespace)
        try:
            options.command += [utf8(word) for word in words[cut + 1 :]]
        except Exception as error:
            self.error(str(error))
        if not options.command:
            self.error("no command; write `hold exec NAME -- CMD...`")
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
        kind=_ExecParser,
        usage="hold exec NAME [--timeout S] -- CMD...",
    )
    parser.add_argument(
        "--timeout", type=seconds, metavar="S", help="wait at most this long (5, 90s, 2m, 1h)"
    )
    add_session(parser)
    parser.add_argument(
        "command", nargs="*", metavar="CMD", type=utf8, help="the command line, or its words"
    )
    return parser


def run(options: argparse.Namespace) -> int:
    with Host(client="hold exec") as host:
        # By id from here on: the name may be another session's when we have to come back.
        info = host.show(options.session)
        if info.state is SessionState.WORKING and about_to_prompt(info):
            _await_prompt(info, options.timeout)
        command = _Command(host, info, _line(options.command))
        try:
            return command.run(options.timeout)
        except KeyboardInterrupt:
            print(f"hold: stopped waiting; {command.whereabouts()}", file=sys.stderr)
            return EXIT_INTERRUPTED


def _line(words: list[str]) -> str:
    if len(words) == 1:
        return words[0]
    import shlex

    return shlex.join(words)


def _await_prompt(info: SessionInfo, timeout: float | None) -> None:
    """By a connection of its own: events would pile up beside the command's output."""
    deadline = time.monotonic() + (PROMPT_S if timeout is None else min(PROMPT_S, timeout))
    with Host(client="hold exec") as watcher, contextlib.suppress(TimedOut):
        finish(wait_for_state(watcher.io(deadline), info.id, (SessionState.PROMPT,)))


class _Command:
    """One command line on its way."""

    def __init__(self, host: Host, info: SessionInfo, line: str) -> None:
        self._host = host
        self._info = info
        self._line = line
        self._seq = host.next_seq(info.id)
        self._began = False
        self._out = raw_stdout.Newlines()

    def run(self, timeout: float | None) -> int:
        deadline = None if timeout is None else time.monotonic() + timeout
        for _ in range(2):
            try:
                return self._follow(deadline)
            except HostLost as lost:
                # Returns only when it is certain that nothing was typed.
                self._find_out(lost)
            except TimedOut:
                self._flush()
                raise TimedOut(
                    f"the command did not end within {timeout:g} s; {self.whereabouts()}",
                    hint=f"follow it: `hold tail -f {self._info.name}`",
                ) from None
        raise InputUnknown("the host was lost twice", hint="see `hold daemon status`")

    def whereabouts(self) -> str:
        if not self._began:
            return f"whether {self._info.name} began it is not known"
        return f"it goes on in {self._info.name}"

    def _follow(self, deadline: float | None) -> int:
        connection = self._host.connection
        request = m.Exec(connection.next_id(), self._info.id, self._seq, self._line)
        connection.send(request)
        while True:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            answer = connection.answer_to(request.id, left)
            if isinstance(answer, m.ExecBegan):
                self._began = True
            elif isinstance(answer, m.ExecOutput):
                self._print(answer.data)
            elif isinstance(answer, m.ExecEnded):
                self._flush()
                return self._ended(answer)

    def _print(self, data: bytes) -> None:
        if sys.stdout.isatty():
            raw_stdout.write(data)
        else:
            self._out.write(data)

    def _flush(self) -> None:
        self._out.close()

    def _ended(self, ended: m.ExecEnded) -> int:
        if ended.lost_bytes:
            print(
                f"hold: {ended.lost_bytes} bytes of output rolled off before they could be read",
                file=sys.stderr,
            )
        if not self._began:
            print("hold: the shell did not run this line; see `hold screen`", file=sys.stderr)
        return ended.status & 0xFF

    def _find_out(self, lost: HostLost) -> None:
        """The daemon was replaced. The session's ledger knows whether the line was typed; the
        stream of its output, though, ended with the old daemon."""
        self._flush()
        try:
            self._host.come_back()
            taken = finish(self._taken())
            info = self._host.show(self._info.id)
        except (HostDown, HostLost) as error:
            raise InputUnknown(
                f"the host was lost; {self.whereabouts()}", hint=error.hint
            ) from lost
        if taken:
            raise self._interrupted(info) from lost

    async def _taken(self) -> bool:
        io = self._host.io()
        channel = self._host.next_channel()
        attach = m.Attach(0, self._info.id, channel, observe=True, raw=True)
        attached = expect(await io.exchange(attach), m.Attached)
        await io.exchange(m.Detach(0, channel))
        return attached.input_seq >= self._seq

    def _interrupted(self, info: SessionInfo) -> HoldfastError:
        name, last = info.name, info.last_command
        mine = (
            last is not None and last.began_at >= self._info.created_at and last.text == self._line
        )
        if last is None or not mine:
            return InputUnknown(
                "the daemon was replaced before the shell reported this command; it was typed",
                hint=f"look at `hold screen {name}` before you run it again",
            )
        where = f"`hold tail {name} --since {last.began_offset}` has its output"
        if last.status is None:
            return HostLost(
                "the daemon was replaced while the command ran; it is still running",
                hint=f"`hold wait {name} --for prompt`, then {where}",
            )
        return HostLost(
            f"the daemon was replaced while the command ran; it ended with {last.status}",
            hint=where,
        )
