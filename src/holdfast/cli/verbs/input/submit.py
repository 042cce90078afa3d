"""`hold submit`: one structured action in a session's own shell."""

from __future__ import annotations

import sys
import time
from argparse import ArgumentTypeError

from holdfast.cli.arguments import Options, Parser, count, print_json, seconds, verb_parser
from holdfast.cli.text import raw_stdout
from holdfast.cli.text.action import one_line
from holdfast.cli.verbs.input.exec import EXIT_INTERRUPTED, CommandParser, await_prompt
from holdfast.model.action import Action, ActionRetry
from holdfast.model.errors import HoldfastError, InvalidArgument, StorageFailed, TimedOut
from holdfast.model.info import SessionInfo
from holdfast.model.limits import ACTION_MAX_BYTES
from holdfast.model.measured import ActionTrace
from holdfast.model.state import SessionState
from holdfast.sdk.client import Host
from holdfast.sdk.client_core.action_retry import Attempts
from holdfast.sdk.client_core.client_machine import finish
from holdfast.sdk.client_core.event_reader import about_to_prompt
from holdfast.sdk.client_core.exec_reader import ExecReader
from holdfast.wire.messages import session as m
from holdfast.wire.messages.gate_actions import Act, ActionTaken, GetTrace, TraceShown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SUMMARY = "run a structured action: declared, measured against what it did, and scored"

_OUTPUT_KEPT_BYTES = 64 << 10  # of the output, for --json: the last of it


def parser() -> Parser:
    parser = verb_parser(
        "submit",
        "Run one command line in the session's own shell, as `hold exec` does, and say before what "
        "it is for and what it is expected to do. The host checks that before anything runs, and "
        "measures afterwards what was different: files, processes left running, ports, the shell's "
        "environment. `hold trace` shows it, `hold score` counts. Exits with 0 if everything that "
        "was declared was met, else with the command's status, or 1 if that is 0.",
        "  hold submit build --intent 'run the tests' --expect-file 'report/**' -- make test\n"
        "  hold submit web --intent 'start it' --expect-port 3000 -- 'npm start &'\n"
        "  hold submit build --key release-42 --retry 3 --file action.json --json",
        kind=CommandParser,
        usage="hold submit NAME --intent T [options] (--file ACTION.json | -- CMD...)",
    )
    parser.add_value("--intent", "T", "what it is for, in a sentence", default="")
    parser.add_value("--expect-status", "N", "exit status; 0 unless said", type=count)
    parser.add_values("--expect-file", "GLOB", "a file that it creates, changes or deletes")
    parser.add_values("--expect-port", "N", "a port that it listens on afterwards", type=_port)
    parser.add_value("--key", "K", "names it: the same key again runs nothing", default="")
    parser.add_value("--retry", "N", "try again when the turn or shell is busy", type=count)
    parser.add_value("--file", "ACTION.json", "the action as JSON; - reads it from standard input")
    parser.add_value("--timeout", "S", "wait at most this long (5, 90s, 2m, 1h)", type=seconds)
    parser.add_json()
    parser.add_session()
    parser.add_value("command", "CMD", "the command line, or its words", nargs="*")
    parser.runs_command = True
    return parser


def run(options: Options) -> int:
    form = _form(options)
    with Host(client="hold submit") as host:
        # By id from here on: the name may be another session's when we have to come back.
        info = host.show(options.session, exact=True)
        if info.state is SessionState.WORKING and about_to_prompt(info):
            await_prompt(info, options.timeout, "hold submit")
        deadline = None if options.timeout is None else time.monotonic() + options.timeout
        submitted = _Submitted(host, info, form, deadline, shows=not options.json)
        try:
            submitted.to_its_end()
        except KeyboardInterrupt:
            print(f"hold: stopped waiting; {submitted.whereabouts()}", file=sys.stderr)
            return EXIT_INTERRUPTED
        except TimedOut:
            raise TimedOut(
                f"the action did not end within {options.timeout:g} s; {submitted.whereabouts()}",
                hint=f"its trace: `hold trace {info.name} {submitted.id or 'KEY'}`",
            ) from None
        trace = host.ask(GetTrace(0, info.id, submitted.id, True), TraceShown).trace
    if options.json:
        from holdfast.sdk.plain_text import plain

        output = plain(bytes(submitted.output[-_OUTPUT_KEPT_BYTES:]))
        print_json({**trace.pack(), "repeated": submitted.repeated, "output": output})
    else:
        print(f"hold: {one_line(trace)}", file=sys.stderr)
    return _exit_status(trace)


def _exit_status(trace: ActionTrace) -> int:
    if trace.score is not None and trace.score.success:
        return 0
    return ((trace.status or 0) & 0xFF) or 1


class _Submitted:
    """One action on its way."""

    def __init__(
        self,
        host: Host,
        info: SessionInfo,
        form: Any,
        deadline: float | None,
        *,
        shows: bool,
    ) -> None:
        import json

        self._host, self._info, self._deadline, self._shows = host, info, deadline, shows
        self._text = json.dumps(form)
        self._attempts = Attempts(_retry_of(form))
        self.id = ""  # once it was typed
        self.repeated = False
        self.output = bytearray()

    def whereabouts(self) -> str:
        where = self._info.name
        return f"it goes on in {where}" if self.id else f"whether {where} began it is not known"

    def to_its_end(self) -> None:
        io = self._host.io(self._deadline)
        while True:
            seq, codes = self._host.next_seq(self._info.id), tuple(self._attempts.codes)
            reader = ExecReader(io, Act(0, self._info.id, seq, self._text, codes))
            try:
                self._follow(reader)
                return
            except HoldfastError as refusal:
                pause = self._attempts.after(refusal, taken=bool(self.id))
            finally:
                reader.close()
            finish(io.sleep(pause))

    def _follow(self, reader: ExecReader) -> None:
        out = raw_stdout.Newlines()
        write = raw_stdout.write if sys.stdout.isatty() else out.write
        end: int | None = None  # offset behind what was printed
        try:
            while not isinstance(answer := finish(reader.next()), m.ExecEnded):
                if isinstance(answer, ActionTaken):
                    self.id, self.repeated = answer.action, answer.repeated
                elif isinstance(answer, m.ExecOutput):
                    end = answer.offset if end is None else end
                    data = answer.data[max(0, end - answer.offset) :]
                    end = max(end, answer.offset + len(answer.data))
                    if self._shows:
                        write(data)
                    else:
                        self.output += data
                        del self.output[:-_OUTPUT_KEPT_BYTES]
        finally:
            out.close()


def _form(options: Options) -> Any:
    """The action as it is sent. What is no action at all is for the host to refuse."""
    form: Any = _of_file(options.file) if options.file else {}
    if not isinstance(form, dict):
        return form
    if options.command:
        if "command" in form:
            raise InvalidArgument("the command is in the file already", hint="leave one out")
        words = options.command
        form["command"] = words[0] if len(words) == 1 else words
    said = {"intent": options.intent, "key": options.key}
    form |= {name: value for name, value in said.items() if value}
    expect = {
        "status": options.expect_status,
        "files": options.expect_file,
        "ports": options.expect_port,
    }
    given = {name: value for name, value in expect.items() if value not in (None, [])}
    if given:
        form["expect"] = _object(form, "expect") | given
    if options.retry is not None:
        form["retry"] = _object(form, "retry") | {"times": options.retry}
    return form


def _object(form: dict[str, Any], field: str) -> dict[str, Any]:
    value = form.get(field, {})
    if not isinstance(value, dict):
        raise InvalidArgument(
            f"action.{field} must be an object; nothing was run",
            hint="docs/action-schema.json has its form",
        )
    return value


def _of_file(path: str) -> object:
    import json

    try:
        if path == "-":
            data = sys.stdin.buffer.read(ACTION_MAX_BYTES + 1)
        else:
            with open(path, "rb") as file:
                data = file.read(ACTION_MAX_BYTES + 1)
    except OSError as error:
        raise StorageFailed(f"cannot read {path}: {error.strerror}") from error
    if len(data) > ACTION_MAX_BYTES:
        raise InvalidArgument(
            f"the action has more than {ACTION_MAX_BYTES} bytes; nothing was run",
            hint="put a long script into a file, and run that",
        )
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InvalidArgument(
            f"the action is not JSON: {error}; nothing was run",
            hint='such as {"intent": "run the tests", "command": "make test"}',
        ) from None


def _retry_of(form: object) -> ActionRetry:
    """Of a form that the host may refuse, and then not for its retries."""
    try:
        return Action.parsed(form).retry
    except InvalidArgument:
        return ActionRetry()


def _port(text: str) -> int:
    number = count(text)
    if not 1 <= number <= 65535:
        raise ArgumentTypeError(f"not a port: {text}")
    return number
