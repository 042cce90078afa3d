"""`hold why`: who is behind this process, port, file, variable, line?"""

from __future__ import annotations

from holdfast.cli.arguments import Options, Parser, print_json, verb_parser
from holdfast.cli.text.provenance import render
from holdfast.sdk.client import Host
from holdfast.wire.messages import gate_provenance as messages

SUMMARY = "show who is behind a process, a port, a variable, a line"


def parser() -> Parser:
    parser = verb_parser(
        "why",
        "Print who is behind something in the session, and the commands by which it came about. "
        "TARGET is pid:N (the host's number, as `hold graph` shows it), port:N, file:PATH, "
        "var:NAME, alias:NAME, func:NAME, option:NAME, trap:NAME, hash:NAME, path:DIRECTORY, "
        "dir:NAME, job:PID, cwd, umask, line:N of the scrollback (as `hold blame` numbers them) or "
        "command:N.",
        "  hold why build var:PATH\n  hold why build port:8080\n  hold why build line:12 --json",
    )
    parser.add_json()
    parser.add_session(reads=True)
    parser.add_value("target", "TARGET", "what is asked about, as above")
    return parser


def run(options: Options) -> None:
    with Host(client="hold why") as host:
        request = messages.AskWhy(0, options.session, options.target)
        why = host.ask(request, messages.WhyShown).why
    if options.json:
        print_json(why.pack())
    else:
        print(render(why), end="")
