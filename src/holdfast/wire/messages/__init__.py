"""Every message of the protocol, one module for each subject, and the table that finds one by tag.

base           what a message is
session        sessions: start, attach, input, commands with a result, output, state
access         actors and envelopes
turn           the turn, halts, and what changed since an actor last looked
journal        the journal, verdicts, proofs, blame
admission      invites and devices
gate_approvals effects that wait for approval
gate_policy    policies of the gate
checkpoints    checkpoints: made, listed, restored
forward        connections to ports of a session
gate_provenance who is behind what a session holds, runs and printed
gate_actions   structured actions, their traces and scores
host_links     tickets for other hosts, and links to them
moving         moves of sessions to other hosts
preflight      whether a session could be moved
relays         the relays of a host
shared_output  output encrypted once for all readers
"""

from __future__ import annotations

from holdfast.wire.messages import (
    access,
    admission,
    checkpoints,
    forward,
    gate_actions,
    gate_approvals,
    gate_policy,
    gate_provenance,
    host_links,
    journal,
    moving,
    preflight,
    relays,
    session,
    shared_output,
    turn,
)
from holdfast.wire.messages.base import Message

# Only these modules: another protocol may use the same tags for its own messages.
_PARTS = (
    *(session, access, turn, journal, admission, forward, relays, shared_output),
    *(gate_approvals, gate_policy, gate_actions, gate_provenance),
    *(checkpoints, preflight, host_links, moving),
)
BY_TAG = {
    each.tag: each
    for part in _PARTS
    for each in vars(part).values()
    if isinstance(each, type) and issubclass(each, Message) and each.tag
}
