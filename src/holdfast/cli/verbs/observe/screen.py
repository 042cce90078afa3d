"""`hold screen`: what a session's terminal shows, as text."""

from __future__ import annotations

from holdfast.cli.arguments import Options, Parser, verb_parser
from holdfast.sdk.client import Host

SUMMARY = "print a session's screen as it is now"


def parser() -> Parser:
    parser = verb_parser(
        "screen",
        "Print the session's screen as plain text. An ended session shows its last one.",
        "  hold screen build\n  hold screen build --scrollback | less\n"
        "  hold screen build --json | jq -r .title",
    )
    parser.add_flag("--scrollback", help="with the lines above the screen")
    parser.add_json()
    parser.add_session(reads=True)
    return parser


def run(options: Options) -> None:
    with Host(client="hold screen") as host:
        shown = host.screen(options.session, scrollback=options.scrollback)
    if options.json:
        import json

        # `id` numbers the request on this connection; it means nothing outside of it.
        fields = {key: value for key, value in shown.pack().items() if key != "id"}
        print(json.dumps(fields, indent=1))
    else:
        text = shown.text.rstrip("\n")
        print(text, end="\n" if text else "")
