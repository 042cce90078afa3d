"""`hold send`: text into a session, as if pasted."""

from __future__ import annotations

import sys

from holdfast.cli.arguments import Options, Parser, verb_parser
from holdfast.model.errors import InvalidArgument
from holdfast.model.limits import INPUT_MAX_BYTES
from holdfast.sdk.client import Host

SUMMARY = "type text into a session"


def parser() -> Parser:
    parser = verb_parser(
        "send",
        "Type TEXT into the session as one paste. Enter is pressed only with --enter. Returns when "
        "the host has it in custody: from then on it reaches the program exactly once.",
        "  hold send build --enter yes\n"
        "  hold send build --enter -- -v       text that begins with a dash\n"
        "  git diff | hold send review -       text from standard input",
    )
    parser.add_flag("--enter", help="press Enter after it")
    parser.add_json()
    parser.add_session()
    parser.add_value("text", "TEXT", "the text; - reads standard input")
    return parser


def run(options: Options) -> None:
    text = _standard_input() if options.text == "-" else options.text
    if not text and not options.enter:
        return
    with Host(client="hold send") as host:
        accepted = host.send(options.session, text, enter=options.enter)
    if accepted.held:
        waits = f"its Enter waits for approval {accepted.held}: `hold approvals` says of what"
        print(f"hold: {waits}", file=sys.stderr)
    if options.json:
        import json

        # `id` numbers the request on this connection; it means nothing outside of it.
        print(json.dumps({k: v for k, v in accepted.pack().items() if k != "id"}))


def _standard_input() -> str:
    data = sys.stdin.buffer.read(INPUT_MAX_BYTES + 1)
    if len(data) > INPUT_MAX_BYTES:
        raise InvalidArgument(
            f"more than {INPUT_MAX_BYTES} bytes at once", hint="send it in pieces, or as a file"
        )
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise InvalidArgument(f"standard input is not UTF-8: {error.reason}") from error
