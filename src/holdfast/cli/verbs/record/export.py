"""`hold export`: a session's output as a file to replay, and whose it is."""

from __future__ import annotations

from holdfast.cli.arguments import Options, Parser, verb_parser
from holdfast.cli.journal.asciicast import cast, recording
from holdfast.cli.journal.export_provenance import provenance
from holdfast.cli.journal.files import write_file
from holdfast.cli.journal.pages import NumberedEntry, Pages
from holdfast.cli.text import raw_stdout
from holdfast.journal.excerpt import excerpt
from holdfast.journal.proof import SignedProof
from holdfast.model.errors import HoldfastError
from holdfast.model.info import SessionInfo
from holdfast.sdk.client import Host
from holdfast.sdk.client_core.client_machine import finish
from holdfast.sdk.client_core.output_reader import OutputReader, Piece
from holdfast.wire.messages import journal as journal_messages

SUMMARY = "export a session's output as an asciicast, with provenance"


def parser() -> Parser:
    parser = verb_parser(
        "export",
        "Write the output that is held as an asciicast v3 file, with resizes, a marker at each "
        "command, and the exit status; and beside it FILE.provenance.json, which says whose each "
        "range, command and input is, by journal entries with their hashes and a signed proof, "
        "and what is missing. Output is timed only as far as the journal knows; in between the "
        "times are interpolated.",
        "  hold export build -o build.cast\n"
        "  hold export build -o build.cast --input --records build.records\n"
        "  hold proof check build.cast.provenance.json --records build.records",
    )
    parser.add_argument(
        "-o",
        dest="out",
        default="",
        metavar="FILE",
        help="default: NAME.cast; -: standard output, and no other file",
    )
    parser.add_flag("--input", help="typed keys too; never secret ones")
    parser.add_argument(
        "--records", default="", metavar="FILE", help="the journal's records too, for the proof"
    )
    parser.add_session(reads=True)
    return parser


def run(options: Options) -> None:
    with Host(client="hold export") as host:
        info, held_from, held = _output(host, options.session)
        pages = Pages(host, info.id)
        kept, trouble = _journal(pages)
        proof, unproven = _proof(host, info.id, kept)
    names = [pages.name(each.entry.actor) for each in kept]
    of = recording(info, held_from, held, kept, names)
    lines, replaced = cast(of, with_input=options.input)
    if options.out == "-":
        raw_stdout.write(b"".join(lines))
        _write_records(options.records, kept)
        return
    path = options.out or f"{info.name}.cast"
    beside = f"{path}.provenance.json"
    described = provenance(
        of,
        kept,
        pages,
        cast_name=path.rsplit("/", 1)[-1],
        cast=b"".join(lines),
        replaced=replaced,
        proof=proof,
        trouble=trouble or unproven,
    )
    write_file(path, lines)
    write_file(beside, described)
    print(f"{path}: {len(held)} bytes of output, {held_from} before them are no longer held")
    print(f"{beside}: {len(kept)} journal entries{'' if proof else ', NOT proven'}")
    _write_records(options.records, kept)


def _write_records(path: str, kept: list[NumberedEntry]) -> None:
    if path:
        write_file(path, list(excerpt(each.record for each in kept)))


def _output(host: Host, session: str) -> tuple[SessionInfo, int, bytes]:
    """What is held now, and from which offset on."""
    output = OutputReader(host.io(), session, 0)
    info = finish(output.open()).info
    pieces: list[bytes] = []
    held_from = output.offset
    while output.offset < info.output_offset and isinstance(piece := finish(output.next()), Piece):
        if piece.gap:  # what came before it is not next to what comes
            pieces, held_from = [], piece.offset
        pieces.append(piece.data)
    held = b"".join(pieces)[: max(0, info.output_offset - held_from)]
    return info, held_from, held


def _journal(pages: Pages) -> tuple[list[NumberedEntry], str]:
    """All entries that can be read, and why not more."""
    kept: list[NumberedEntry] = []
    try:
        for each in pages.entries():
            kept.append(each)
    except HoldfastError as error:
        return kept, error.message
    if pages.unlinked:
        return kept, f"entry {pages.unlinked} is not linked to the one before it"
    return kept, ""


def _proof(host: Host, session: str, kept: list[NumberedEntry]) -> tuple[str, str]:
    """The signed proof of these entries, or why there is none."""
    if not kept:
        return "", "the journal cannot be read"
    try:
        last = kept[-1]
        proof = host.ask(
            journal_messages.Prove(0, session, 1, last.entry.seq), journal_messages.Proven
        ).proof
        if SignedProof.of_text(proof).after != last.hash:
            return "", "the host proves other entries than it shows"
        return proof, ""
    except HoldfastError as error:
        return "", error.message
