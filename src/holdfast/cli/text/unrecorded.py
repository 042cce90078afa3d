"""What was done although the disk did not take its record. Said on stderr, where no program takes
it for the answer."""

from __future__ import annotations

import sys

from holdfast.cli.text.sanitize import sanitize


def tell_unrecorded(why: str) -> None:
    """Of something done to a session."""
    if why:
        _tell(f"done, but the journal does not have all of it: {why}")


def tell_revocation_unrecorded(why: str) -> None:
    if why:
        _tell(
            f"in force, but not on disk yet: {why}. The host keeps trying; if its daemon is "
            "killed before that works, revoke again"
        )


def _tell(text: str) -> None:
    print(f"hold: {sanitize(text)}", file=sys.stderr)
