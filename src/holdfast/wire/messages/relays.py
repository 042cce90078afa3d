"""Messages about where this host can be reached from elsewhere: its relays."""

from __future__ import annotations

from holdfast.model.info import RelayState
from holdfast.wire.messages.base import Answer, Request


class SetRelays(Request):
    """Dial these relays from now on, and leave those; what is not named stays as it is. Kept across
    restarts, beside those of config.toml. Answered by Relays."""

    tag = "set_relays"
    relays: tuple[str, ...] = ()  # URLs, with #sha256:… for a certificate that nobody vouches for
    leave: tuple[str, ...] = ()


class GetRelays(Request):
    """Which relays this host has dialled. Answered by Relays."""

    tag = "get_relays"


class Relays(Answer):
    tag = "relays"
    relays: tuple[RelayState, ...]
