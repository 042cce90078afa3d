"""Checking a proof without a host: the signed form and the witness, and what each of them says."""

from __future__ import annotations

import json

from holdfast.cli.journal.files import read_file
from holdfast.cli.journal.proof_records import read_records
from holdfast.journal.proof import WITNESS_BYTES, SignedProof, check_signed, check_witness, linked
from holdfast.model.errors import InvalidArgument
from holdfast.model.record import Malformed, Record

_HEX = set("0123456789abcdefABCDEF")


class ProofFinding(Record):
    """Whether it is valid, and what that means."""

    valid: bool
    lines: tuple[str, ...]


def checked(
    what: str, records_path: str, session: str | None, first: int | None, last: int | None
) -> ProofFinding:
    """`what` is a witness in hexadecimal, or a file with one or with a signed proof."""
    records = read_records(records_path) if records_path else None
    given = _witness(what) or _read(what)
    if isinstance(given, bytes):
        return _check_witness(given, records, session, first, last)
    return _check_signed(given, records, session, first, last)


def valid_proof(path: str, session: str) -> SignedProof:
    """A signed proof about this session, as `hold verify` wants it."""
    from holdfast.wire.ed25519 import check

    proof = _read(path)
    if not isinstance(proof, SignedProof):
        raise InvalidArgument(f"not a signed proof: {path}", hint="a witness is not enough here")
    if proof.session != session or not check_signed(proof, check):
        raise InvalidArgument(
            f"not a valid proof about {session}: {path}", hint="see `hold proof check`"
        )
    return proof


# -- reading ----------------------------------------------------------------------------------


def _witness(text: str) -> bytes:
    text = text.strip()
    return bytes.fromhex(text) if len(text) == 2 * WITNESS_BYTES and set(text) <= _HEX else b""


def _read(path: str) -> bytes | SignedProof:
    """The signed proof in a file is what counts, also when it is behind a witness, as `hold
    proof` prints them, or inside a provenance file."""
    data = read_file(path)
    if len(data) == WITNESS_BYTES:
        return data
    try:
        text = data.decode()
        brace = text.find("{")
        if brace < 0:
            witness = _witness(text)
            if not witness:
                raise Malformed("neither a witness nor a signed proof")
            return witness
        body = text[brace:]
        fields = json.loads(body)
        if isinstance(fields, dict) and fields.get("holdfast") == "provenance v1":
            body = json.dumps(fields.get("proof"))
        return SignedProof.of_text(body)
    except (ValueError, RecursionError) as error:  # Malformed is one too
        raise InvalidArgument(
            f"not a proof: {path}: {error}", hint="`hold proof NAME FROM TO` makes one"
        ) from error


# -- judging ----------------------------------------------------------------------------------


def _check_witness(
    witness: bytes,
    records: list[bytes] | None,
    session: str | None,
    first: int | None,
    last: int | None,
) -> ProofFinding:
    if records is None or session is None:
        raise InvalidArgument(
            "a witness is checked against the records and the session's id",
            hint="give --records FILE and --session ID; a signed proof needs neither",
        )
    link = linked(records)
    if link is None:
        return _invalid("the records are not an unbroken range")
    first, last = first or link.first, last or link.last
    if not check_witness(witness, session, first, last, records):
        asked = f"entries {first} to {last} of {session}"
        return _invalid(f"these records are not the witnessed {asked}")
    return ProofFinding(
        True,
        (
            f"valid: these {last - first + 1} records are entries {first} to {last} of {session}, "
            "unbroken and unchanged",
            "a witness bears no signature: it is as trustworthy as the channel it came by",
        ),
    )


def _check_signed(
    proof: SignedProof,
    records: list[bytes] | None,
    session: str | None,
    first: int | None,
    last: int | None,
) -> ProofFinding:
    from holdfast.wire.ed25519 import check

    wrong = _otherwise(proof, session, first, last)
    if wrong:
        return _invalid(wrong)
    if not check_signed(proof, check):
        return _invalid(
            "the proof is not signed by a host that the session's own key named, or was changed"
        )
    if records is not None and not check_signed(proof, check, records):
        return _invalid(
            "the proof is signed, but these records are not the ones it is of",
            f"it is of entries {proof.first} to {proof.last} of {proof.session}",
        )
    return ProofFinding(True, tuple(_meaning(proof, records is not None, session is not None)))


def _invalid(why: str, *more: str) -> ProofFinding:
    return ProofFinding(False, (f"invalid: {why}", *more))


def _otherwise(proof: SignedProof, session: str | None, first: int | None, last: int | None) -> str:
    """In which way it is about something else than it must be about."""
    if session is not None and session != proof.session:
        return f"it is about session {proof.session}, not {session[:40]}"
    if first not in (None, proof.first) or last not in (None, proof.last):
        return f"it is about entries {proof.first} to {proof.last}, not those asked for"
    return ""


def _meaning(proof: SignedProof, with_records: bool, with_session: bool) -> list[str]:
    lines = [
        f"valid: host {proof.host_key.hex()[:16]}, which session {proof.session} named with its "
        f"own key, signed that its entries {proof.first} to {proof.last} are one unbroken chain",
        f"the last of them has the hash {proof.after.hex()}",
    ]
    if with_records:
        lines.append("the records given are those entries, unchanged")
    else:
        lines.append("what the entries say is not shown by it: give their records with --records")
    if not with_session:
        lines.append("compare the session's id with the one you know, or give it with --session")
    return lines
