"""What is known of a live session should its host die: its *near end*. Journal and spec are on disk
anyway; here is the rest, which is memory otherwise: where it is, its shell's environment, the last
of its output and its screen, who is there, what waits for approval.

Taken from a live session by session/near_look.py, written by near_end_writer.py, read by the burial
of a lost session (lost_sessions.py) and by `hold revive` (revival.py). It holds the values of the
environment, so its file is sealed. Nothing in it is ever executed.
"""

from __future__ import annotations

from collections.abc import Callable

from holdfast.core.vt_boundary import complete_prefix
from holdfast.model.info import CommandRecord, LastKnown, SessionInfo
from holdfast.model.record import Record
from holdfast.model.size import Size
from holdfast.ports.screen import ScreenPort

# What the layer gives to every session is no difference between one and its successor.
_OURS = ("HOLDFAST_", "HOLD_")


class NearEnd(Record):
    """As it is on disk. Names of fields are a format: another version may have written it."""

    known: LastKnown
    size: Size
    title: str
    output_from: int  # offset of the first byte of `output`
    output: bytes
    painted_at: int  # offset at which `painted` is what the screen shows
    painted: bytes  # empty: nobody has looked at the screen; the output alone makes it
    last_output_at: float | None = None
    last_command: CommandRecord | None = None
    environment: dict[str, str] | None = None  # None: the shell did not report it

    @property
    def output_to(self) -> int:
        return self.output_from + len(self.output)

    def applied_to(self, info: SessionInfo) -> SessionInfo:
        """What was known at the start, brought up to this."""
        return info.replace(
            cwd=self.known.cwd,
            size=self.size,
            title=self.title,
            holder=self.known.holder,
            output_offset=self.output_to,
            held_from=self.output_from,
            last_output_at=self.last_output_at,
            last_command=self.last_command,
            last_known=self.known,
        )

    def screen(self, make: Callable[[Size], ScreenPort]) -> str:
        """The last screen as text, as far as what was kept of the output makes it."""
        screen = make(self.size)
        try:
            rest = self.output
            if self.painted and self.painted_at >= self.output_from:
                screen.feed(self.painted)
                rest = self.output[self.painted_at - self.output_from :]
            screen.feed(rest[: complete_prefix(rest, len(rest))])
            return screen.text()
        finally:
            screen.close()


def differences(before: dict[str, str], after: dict[str, str] | None) -> tuple[str, ...]:
    """The names of the variables that are not the same, without those of the layer."""
    if after is None:
        return ()
    names = {name for name in {*before, *after} if before.get(name) != after.get(name)}
    return tuple(sorted(name for name in names if not name.startswith(_OURS)))
