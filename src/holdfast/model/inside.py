"""A connection that comes from inside a session: which one, and the actors behind it (A11)."""

from __future__ import annotations

from holdfast.model.ids import ActorId, SessionId
from holdfast.model.record import Record


class Inside(Record):
    """What the kernel says of the process at the other end."""

    session: SessionId
    # The actors behind the process, the one that set it off first; all writers when nobody can
    # tell.
    actors: tuple[ActorId, ...]
    # Everybody that may have had a hand in what runs in the session: its creator and all that wrote
    # there.
    writers: tuple[ActorId, ...]
    # The kernel tells whose a process is: not so at level plain.
    told: bool = True
