"""`hold proof`: a range of a journal proven without the rest, and such a proof checked."""

from __future__ import annotations

from holdfast.cli.arguments import MixedParser, Options, Parser, count, verb_parser
from holdfast.cli.journal.files import write_file
from holdfast.cli.journal.proof_check import checked
from holdfast.cli.journal.proof_records import write_records
from holdfast.journal.proof import SignedProof
from holdfast.model.errors import InvalidArgument
from holdfast.sdk.client import Host
from holdfast.wire.messages import journal as journal_messages

SUMMARY = "make or check a proof of a range of the journal"

EXIT_INVALID = 1


def parser() -> Parser:
    parser = verb_parser(
        "proof",
        "Prove that the journal's entries FROM to TO are one unbroken chain: a 36-byte witness in "
        "hexadecimal, and a proof signed by the host. `hold proof check` checks either without a "
        "host, and exits with 0 only when it is valid. The witness needs the records and the "
        "session's id, and is as trustworthy as the channel it came by. The signed proof needs "
        "neither; with the records it shows what they say, too.",
        "  hold proof build 1 last -o build.proof --records build.records\n"
        "  hold proof check build.proof --session 85scy2rce36rayr08p0d6181tq\n"
        "  hold proof check build.proof --records build.records\n"
        "  hold proof check 00000005fe... --records build.records --session 85scy2rc...",
        kind=MixedParser,
        usage="hold proof NAME FROM TO [-o FILE] [--records FILE]\n"
        "       hold proof check FILE-OR-WITNESS [--records FILE] [--session ID] "
        "[--from N] [--to N]",
    )
    parser.add_argument("-o", dest="out", default="", metavar="FILE", help="the signed proof there")
    parser.add_argument(
        "--records", default="", metavar="FILE", help="the range's records: written, or checked"
    )
    parser.add_value("--session", "ID", "check: whose it must be", dest="id")
    parser.add_value("--from", "N", "check: where it must begin", type=count, dest="first")
    parser.add_value("--to", "N", "check: where it must end", type=count, dest="last")
    parser.add_value("session", "NAME", "a session's name or id; or the word check")
    parser.add_value("rest", "FROM TO", "entries; or what is to be checked", nargs="*")
    return parser


def run(options: Options) -> int:
    # Two words behind it are a range: a session may be called check.
    if options.session == "check" and len(options.rest) == 1:
        finding = checked(options.rest[0], options.records, options.id, options.first, options.last)
        print("\n".join(finding.lines))
        return 0 if finding.valid else EXIT_INVALID
    if len(options.rest) != 2:
        raise InvalidArgument(
            "a proof is of a range", hint="`hold proof NAME FROM TO`; TO may be the word last"
        )
    return _prove(options, *options.rest)


def _prove(options: Options, first: str, last: str) -> int:
    with Host(client="hold proof") as host:
        request = journal_messages.Prove(
            0, options.session, _entry(first), 0 if last == "last" else _entry(last)
        )
        proven = host.ask(request, journal_messages.Proven)
        if options.records:
            proof = SignedProof.of_text(proven.proof)
            write_records(host, options.records, proof)
    print(proven.witness.hex())
    if options.out:
        write_file(options.out, proven.proof.encode() + b"\n")
    else:
        print(proven.proof)
    return 0


def _entry(text: str) -> int:
    if not text.isdecimal() or len(text) > 18 or not int(text):
        raise InvalidArgument(f"not an entry's number: {text[:40]!r}", hint="they begin with 1")
    return int(text)
