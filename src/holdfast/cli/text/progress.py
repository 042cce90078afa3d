"""How far something is that takes a while: one line on stderr, written over and over, and taken
away when it is done. Nothing where stderr is no terminal."""

from __future__ import annotations

import contextlib
import os
import sys

from holdfast.cli.text.sanitize import sanitize
from holdfast.cli.text.table import amount

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from holdfast.wire.messages.checkpoints import ProgressEvent

_BAR_COLUMNS = 20
_CLEAR = "\r\x1b[K"
_PHASES = {
    "ask": "asking its program for its state",
    "freeze": "writing its memory",
    "store": "storing it",
    "check": "checking its record",
    "load": "reading and checking it",
    "start": "starting its processes",
}


def progress_text(told: ProgressEvent) -> str:
    """As a person reads it."""
    what = f"{told.name}: {told.work}: {_PHASES.get(told.phase, told.phase)}"
    if told.total > 0:
        share = min(1.0, max(0.0, told.done / told.total))
        bar = "#" * int(share * _BAR_COLUMNS)
        return f"{what} [{bar:-<{_BAR_COLUMNS}}] {share:.0%} of {amount(told.total)}"
    return f"{what}, {amount(told.done)}" if told.done else what


@contextlib.contextmanager
def progress_line() -> Iterator[Callable[[ProgressEvent], None] | None]:
    """To be called with what the host tells; None: there is nobody to show it to."""
    if not sys.stderr.isatty():
        yield None
        return
    shown = False

    def show(told: ProgressEvent) -> None:
        nonlocal shown
        columns = _columns() - 1
        text = "" if told.over else sanitize(progress_text(told))[: max(0, columns)]
        shown = not told.over
        print(f"{_CLEAR}{text}", end="", file=sys.stderr, flush=True)

    try:
        yield show
    finally:
        if shown:
            print(_CLEAR, end="", file=sys.stderr, flush=True)


def _columns() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except OSError:
        return 80
