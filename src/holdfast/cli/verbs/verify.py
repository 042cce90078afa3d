"""`hold verify`: is a session's journal whole?"""

from __future__ import annotations

from holdfast.cli.arguments import MixedParser, Parser, add_json, utf8, verb_parser
from holdfast.model.errors import InvalidArgument

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from holdfast.model.info import Judgement

SUMMARY = "check that a session's journal is whole"

EXIT_NOT_INTACT = 1


def parser() -> Parser:
    parser = verb_parser(
        "verify",
        "Check a session's journal, live or ended: every link, seal and signature, and its end "
        "against the signed head. Says intact, torn tail, or damaged with the first broken link, "
        "its kind, and what can still be trusted. Exits with 0 only when it is intact. With --dir "
        "no host is needed; the id must be one you know from elsewhere.",
        "  hold verify build\n"
        "  hold verify build --thorough --json | jq .signed_through\n"
        "  hold verify --dir /backup/journal --session 85scy2rce36rayr08p0d6181tq",
        kind=MixedParser,
        usage="hold verify NAME [OPTIONS]\n       hold verify --dir DIR --session ID [OPTIONS]",
    )
    parser.add_argument(
        "--thorough", action="store_true", help="check every entry, not only every sealed block"
    )
    parser.add_argument("--dir", default="", metavar="DIR", help="read these files, ask no host")
    parser.add_argument(
        "--session", dest="id", default="", type=utf8, metavar="ID", help="whose they must be"
    )
    add_json(parser)
    parser.add_argument(
        "session", nargs="?", default="", type=utf8, metavar="NAME", help="a session's name or id"
    )
    return parser


def run(options: argparse.Namespace) -> int:
    judged = _offline(options) if options.dir else _by_host(options)
    intact = judged.verdict == "intact" and judged.status != "unverifiable"
    if options.json:
        import json

        print(json.dumps(judged.pack(), indent=1))
    else:
        from holdfast.cli.judgement_text import verdict_lines

        for line in verdict_lines(judged):
            print(line)
    return 0 if intact else EXIT_NOT_INTACT


def _by_host(options: argparse.Namespace) -> Judgement:
    from holdfast.sdk.client import Host
    from holdfast.wire import authority as a

    if not options.session or options.id:
        raise InvalidArgument(
            "which session?", hint="`hold verify NAME`, or --dir DIR --session ID without a host"
        )
    with Host(client="hold verify") as host:
        request = a.Verify(0, options.session, options.thorough)
        return host.ask(request, a.Verified).judgement


def _offline(options: argparse.Namespace) -> Judgement:
    from holdfast.cli.journal_files import open_journal
    from holdfast.journal.ed25519 import check
    from holdfast.journal.judging import judge
    from holdfast.model.ids import SessionId

    if options.session:
        raise InvalidArgument(
            "--dir reads files, and names are a host's", hint="give the whole id with --session"
        )
    try:
        session = SessionId(options.id)
    except ValueError:
        raise InvalidArgument(
            f"not a session's whole id: {options.id[:40]!r}",
            hint="--session ID, as `hold show` prints it; it is what the files are held against",
        ) from None
    journal = open_journal(options.dir, session)
    return judge(journal, session, check, thorough=options.thorough)
