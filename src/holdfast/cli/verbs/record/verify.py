"""`hold verify`: is a session's journal whole?"""

from __future__ import annotations

from collections.abc import Callable

from holdfast.cli.arguments import MixedParser, Options, Parser, print_json, verb_parser
from holdfast.cli.journal.files import open_journal
from holdfast.cli.journal.pages import Pages
from holdfast.cli.journal.proof_check import valid_proof
from holdfast.cli.text.verdict import verdict_lines
from holdfast.journal.judging import judge
from holdfast.model.errors import InvalidArgument
from holdfast.model.ids import SessionId
from holdfast.model.info import Judgement
from holdfast.sdk.client import Host
from holdfast.wire.messages import journal as journal_messages

SUMMARY = "check that a session's journal is whole"

EXIT_NOT_INTACT = 1


def parser() -> Parser:
    parser = verb_parser(
        "verify",
        "Check a session's journal, live or ended: every link, seal and signature, and its end "
        "against the signed head. Says intact, torn tail, or damaged with the first broken link, "
        "its kind, and what can still be trusted. Exits with 0 only when it is intact. With --dir "
        "no host is needed; the id must come from another source. With --proof it must also "
        "go as far as a proof that you kept, and agree with it.",
        "  hold verify build\n"
        "  hold verify build --thorough --json | jq .signed_through\n"
        "  hold verify build --proof build.proof\n"
        "  hold verify --dir /backup/journal --session 85scy2rce36rayr08p0d6181tq",
        kind=MixedParser,
        usage="hold verify NAME [OPTIONS]\n       hold verify --dir DIR --session ID [OPTIONS]",
    )
    parser.add_flag("--thorough", help="check every entry, not only every sealed block")
    parser.add_argument("--dir", default="", metavar="DIR", help="read these files, ask no host")
    parser.add_value("--session", "ID", "whose they must be", dest="id", default="")
    parser.add_argument(
        "--proof", default="", metavar="FILE", help="a signed proof it must agree with"
    )
    parser.add_json()
    parser.add_value("session", "NAME", "a session's name or id", nargs="?", default="")
    return parser


def run(options: Options) -> int:
    judged = _offline(options) if options.dir else _by_host(options)
    # What a proof says may be against it although it is whole in itself.
    intact = judged.verdict == "intact" and judged.status in ("continuous", "migrated")
    if options.json:
        print_json(judged.pack())
    else:
        print(*verdict_lines(judged), sep="\n")
    return 0 if intact else EXIT_NOT_INTACT


def _by_host(options: Options) -> Judgement:
    if not options.session or options.id:
        raise InvalidArgument(
            "which session?", hint="`hold verify NAME`, or --dir DIR --session ID without a host"
        )
    with Host(client="hold verify") as host:
        request = journal_messages.Verify(0, options.session, options.thorough)
        judged = host.ask(request, journal_messages.Verified).judgement
        if options.proof:
            pages = Pages(host, judged.session)
            return _against_proof(judged, options.proof, pages.hash_at)
        return judged


def _offline(options: Options) -> Judgement:
    from holdfast.wire.ed25519 import check

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
    judged = judge(journal, session, check, thorough=options.thorough)
    if options.proof:
        return _against_proof(judged, options.proof, lambda seq: journal.hash_at(session, seq))
    return judged


def _against_proof(judged: Judgement, path: str, hash_at: Callable[[int], bytes]) -> Judgement:
    """The journal held against an outside memory of it: it must go as far, and have been the same
    there. Of a journal that is damaged already nothing more is said."""
    proof = valid_proof(path, judged.session)
    if judged.verdict == "damaged":
        return judged
    if proof.last > judged.records:
        return judged.replace(
            status="unverifiable",
            gap_from=judged.records + 1,
            gap_to=proof.last,
            detail=f"the proof knows of entry {proof.last}, and it is not here",
        )
    if hash_at(proof.last) != proof.after:
        return judged.replace(
            status="forked",
            gap_from=proof.last,
            gap_to=proof.last,
            detail=f"the proof was signed for another history through entry {proof.last}",
        )
    return judged
