"""A ticket with which the host of a session may bring it to another one: fetched there, by whoever
has credentials at both."""

from __future__ import annotations

from holdfast.model.errors import NoSuchCheckpoint
from holdfast.model.ids import SessionId
from holdfast.sdk.client import Host
from holdfast.sdk.moving import fetch_ticket
from holdfast.wire.messages.checkpoints import CheckpointList, ListCheckpoints

_CHECKPOINT = "ck-"


def ticket_for(source: Host, target: str, host: str) -> str:
    """`target`: a checkpoint, or the name or whole id of a session; `host`: a machine, or the path
    of a host's socket. Raises what either of the two refuses."""
    return fetch_ticket(source, _session_of(source, target), host).ticket


def _session_of(source: Host, target: str) -> SessionId:
    if not target.startswith(_CHECKPOINT):
        return source.show(target, exact=True).id
    for each in source.ask(ListCheckpoints(0), CheckpointList).checkpoints:
        if each.id == target:
            return each.session
    raise NoSuchCheckpoint(f"there is no checkpoint {target}")
