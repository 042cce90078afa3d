"""Which captured files a restore puts back: by what was asked for, and by who changed them.

A session that ran on after its checkpoint changed files itself: going back to the checkpoint, they
go back with it. What changed after the session had stopped was changed by somebody else, and is not
overwritten unless that is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from holdfast.model.captured_files import FileDifference, RestoreFiles
from holdfast.model.errors import FilesChanged
from holdfast.model.limits import CAPTURE_NAMED

_CHOICE = (
    "`hold restore --files restore` puts back what the checkpoint has, and keeps beside what is "
    "there now; `--files keep` leaves all as it is"
)


class FilesDecision(NamedTuple):
    put_back: tuple[FileDifference, ...]
    left: tuple[FileDifference, ...]  # that differ, and stay as they are


def decide(
    found: Sequence[FileDifference], choice: RestoreFiles, stopped_at: float
) -> FilesDecision:
    """`stopped_at`: when the session was over. Raises FilesChanged when somebody has to decide."""
    every = tuple(found)
    if choice is RestoreFiles.RESTORE:
        return FilesDecision(every, ())
    if choice is RestoreFiles.KEEP:
        _check_sizes(every)
        return FilesDecision((), every)
    own = tuple(each for each in every if each.changed_ns <= stopped_at * 1e9)
    others = tuple(each for each in every if each.changed_ns > stopped_at * 1e9)
    if asked := [each for each in others if each.file is not None and each.file.open]:
        raise FilesChanged(
            f"files that the session has open were changed after it had stopped: {_names(asked)}",
            hint=_CHOICE,
        )
    return FilesDecision(own, others)


def _check_sizes(found: Sequence[FileDifference]) -> None:
    """CRIU restores an open file only with the size that it had."""
    other = [
        each
        for each in found
        if each.file is not None
        and each.file.open
        and (each.missing or each.size != each.file.size)
    ]
    if other:
        raise FilesChanged(
            f"files that the session has open have another size now: {_names(other)}",
            hint="they cannot be kept as they are: `--files restore` keeps them beside",
        )


def _names(found: Sequence[FileDifference]) -> str:
    named = ", ".join(each.path for each in found[:CAPTURE_NAMED])
    return named + (f" and {len(found) - CAPTURE_NAMED} others" * (len(found) > CAPTURE_NAMED))
