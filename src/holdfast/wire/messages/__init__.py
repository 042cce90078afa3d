"""Every message of the protocol, one module for each subject, and the table that finds one by tag.

base           what a message is
session        sessions: start, attach, input, output, state
access         actors and envelopes
turn           the turn, halts, and what changed since an actor last looked
journal        the journal, verdicts, proofs, blame
admission      invites and devices
exec           a command line whose result somebody waits for
forward        connections to ports of a session
relays         the relays of a host
shared_output  output encrypted once for all readers
"""

from __future__ import annotations

from holdfast.wire.messages import (
    access,
    admission,
    forward,
    journal,
    relays,
    session,
    shared_output,
    turn,
)
from holdfast.wire.messages import exec as exec_messages
from holdfast.wire.messages.base import Message

# Only these modules: another protocol may use the same tags for its own messages.
_PARTS = (
    *(session, access, turn, journal, admission),
    *(exec_messages, forward, relays, shared_output),
)
_OURS = {part.__name__ for part in _PARTS}


def _all(kind: type[Message]) -> list[type[Message]]:
    return [kind, *(each for sub in kind.__subclasses__() for each in _all(sub))]


BY_TAG = {each.tag: each for each in _all(Message) if each.tag and each.__module__ in _OURS}
