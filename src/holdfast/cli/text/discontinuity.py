"""Why a session could not go on, in a few words for people."""

from __future__ import annotations

from holdfast.cli.text.sanitize import sanitize
from holdfast.model.discontinuity import DiscontinuityCause

_HASH_CHARS = 12


def reason_text(reason: str, cause: DiscontinuityCause | None) -> str:
    """`its host died (host_lost, in boot 3f2a…, without a checkpoint)`."""
    kind = "unknown" if cause is None else sanitize(cause.kind)
    details = "" if cause is None else "".join(f", {each}" for each in _details(cause))
    return f"{sanitize(reason)} ({kind}{details})"


def _details(cause: DiscontinuityCause) -> list[str]:
    said = []
    if cause.boot_id:
        last = f"last checkpoint {cause.checkpoint}" if cause.checkpoint else "without a checkpoint"
        said += [f"in boot {sanitize(cause.boot_id)}", sanitize(last)]
    if cause.at:
        said.append(f"from entry {cause.at}")
    if cause.a or cause.b:
        said.append(f"hashes {cause.a[:_HASH_CHARS] or '?'} and {cause.b[:_HASH_CHARS] or '?'}")
    return said
