"""The limits of one relay. The defaults and their reasons are in model.limits; `--limit` changes
one for a bigger or smaller machine."""

from __future__ import annotations

from holdfast.model import limits
from holdfast.model.errors import InvalidArgument
from holdfast.model.record import Record


class Bounds(Record):
    """See model.limits for each."""

    frame_max_bytes: int = limits.RELAY_FRAME_MAX_BYTES
    hosts_max: int = limits.RELAY_HOSTS_MAX
    operators_max: int = limits.RELAY_OPERATORS_MAX
    sessions_max: int = limits.RELAY_SESSIONS_MAX
    host_sessions_max: int = limits.RELAY_HOST_SESSIONS_MAX
    epochs_max: int = limits.RELAY_EPOCHS_MAX
    sockets_max: int = limits.RELAY_SOCKETS_MAX
    address_sockets: int = limits.RELAY_ADDRESS_SOCKETS
    handshake_s: float = limits.RELAY_HANDSHAKE_S
    heartbeat_s: float = limits.RELAY_HEARTBEAT_S
    close_s: float = limits.RELAY_CLOSE_S
    drain_s: float = limits.RELAY_DRAIN_S
    operator_streams: int = limits.RELAY_OPERATOR_STREAMS
    host_streams: int = limits.RELAY_HOST_STREAMS
    subscriptions: int = limits.RELAY_SUBSCRIPTIONS
    announce_max: int = limits.RELAY_ANNOUNCE_MAX
    stream_window_bytes: int = limits.RELAY_STREAM_WINDOW_BYTES
    broadcast_window_bytes: int = limits.RELAY_BROADCAST_WINDOW_BYTES
    operator_queue_bytes: int = limits.RELAY_OPERATOR_QUEUE_BYTES
    connection_bytes: int = limits.RELAY_CONNECTION_BYTES
    held_max_bytes: int = limits.RELAY_HELD_MAX_BYTES
    socket_bytes: int = limits.RELAY_SOCKET_BYTES
    answers_max: int = limits.RELAY_ANSWERS_MAX
    failed_proofs: int = limits.RELAY_FAILED_PROOFS
    failed_proofs_per_s: float = limits.RELAY_FAILED_PROOFS_PER_S
    opens: int = limits.RELAY_OPENS
    opens_per_s: float = limits.RELAY_OPENS_PER_S
    rises: int = limits.RELAY_RISES
    rises_per_s: float = limits.RELAY_RISES_PER_S
    beat_s: float = limits.RELAY_BEAT_S
    silence_s: float = limits.RELAY_SILENCE_S
    find_s: float = limits.RELAY_FIND_S
    addresses_max: int = limits.RELAY_ADDRESSES_MAX


def bounds_of(changes: list[str]) -> Bounds:
    """The defaults with `name=value` changes."""
    made = Bounds()
    for change in changes:
        name, _, text = change.partition("=")
        default = Bounds._defaults.get(name)
        if default is None:
            raise InvalidArgument(
                f"there is no limit {name[:40]!r}", hint="docs/relay.md lists all"
            )
        try:
            value = type(default)(text)
        except ValueError:
            raise InvalidArgument(
                f"not a valid value for the limit {name}: {text[:40]!r}"
            ) from None
        if not 0 < value < 1 << 40:
            raise InvalidArgument(f"the limit {name} cannot be {text[:40]}")
        made = made.replace(**{name: value})
    return made
