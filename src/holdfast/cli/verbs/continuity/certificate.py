"""`hold certificate`: what became of a session over hosts and epochs, on one page that anyone can
check."""

from __future__ import annotations

from holdfast.cli.arguments import MixedParser, Options, Parser, print_json, verb_parser
from holdfast.cli.journal.files import read_file, write_file
from holdfast.cli.journal.proof_records import read_records, write_records
from holdfast.cli.text.certificate import certificate_lines
from holdfast.journal.certificate import Certificate, fault_of
from holdfast.model.errors import InvalidArgument
from holdfast.sdk.client import Host
from holdfast.wire.messages import journal as journal_messages

SUMMARY = "make or check a certificate of a session's continuity"

EXIT_INVALID = 1


def parser() -> Parser:
    parser = verb_parser(
        "certificate",
        "Certify the session's continuity: one identity, one unbroken chain, its epochs and hosts, "
        "how it came back each time and what that cost. `hold certificate check` checks such a "
        "file without a host, and exits with 0 only when it is valid; with the records of the "
        "journal also what it says of them.",
        "  hold certificate build -o build.certificate\n"
        "  hold certificate check build.certificate\n"
        "  hold certificate build -o build.certificate --records build.records\n"
        "  hold certificate check build.certificate --records build.records",
        kind=MixedParser,
        usage="hold certificate NAME [-o FILE] [--records FILE] [--json]\n"
        "       hold certificate check FILE [--records FILE] [--session ID] [--json]",
    )
    parser.add_argument("-o", dest="out", default="", metavar="FILE", help="write it there")
    parser.add_argument(
        "--records", default="", metavar="FILE", help="the journal's records: written, or checked"
    )
    parser.add_value("--session", "ID", "check: whose it must be", dest="id")
    parser.add_json()
    parser.add_value("session", "NAME", "a session's name or id; or the word check")
    parser.add_value("file", "FILE", "what is to be checked", nargs="?")
    return parser


def run(options: Options) -> int:
    if options.file is None:
        return _make(options)
    if options.session != "check":
        raise InvalidArgument(
            "a certificate is of one session", hint="to write it to a file: -o FILE"
        )
    return _check(options)


def _make(options: Options) -> int:
    with Host(client="hold certificate") as host:
        asked = journal_messages.Certify(0, options.session)
        text = host.ask(asked, journal_messages.Certified).certificate
        certificate = Certificate.of_text(text)
        if options.records:
            write_records(host, options.records, certificate)
    if options.out:
        write_file(options.out, text.encode() + b"\n")
    if options.json:
        print(text)
    else:
        print(*certificate_lines(certificate), sep="\n")
    return 0


def _check(options: Options) -> int:
    from holdfast.wire.ed25519 import check

    certificate = _read(options.file)
    records = read_records(options.records) if options.records else None
    fault = fault_of(certificate, check, records)
    if not fault and options.id not in (None, certificate.session):
        fault = f"it is about session {certificate.session}, not {options.id[:40]}"
    if options.json:
        about = {"session": certificate.session, "first": certificate.first}
        print_json({"valid": not fault, "fault": fault, **about, "last": certificate.last})
    elif fault:
        print(f"invalid: {fault}")
    else:
        print("valid", *certificate_lines(certificate), sep="\n")
        if records is not None:
            print("  the records given are its entries, and say the same")
        if options.id is None:
            print("  compare the session's id with the one you know, or give it with --session")
    return EXIT_INVALID if fault else 0


def _read(path: str) -> Certificate:
    try:
        return Certificate.of_text(read_file(path).decode())
    except ValueError as error:  # Malformed is one too
        raise InvalidArgument(
            f"not a certificate: {path}: {error}", hint="`hold certificate NAME -o FILE` makes one"
        ) from error
