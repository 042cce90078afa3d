"""Messages about where this host can be reached from elsewhere: its relays."""

from __future__ import annotations

from holdfast.model.info import RelayState
from holdfast.wire.messages.base import Answer, Request


class SetRelays(Request, tag="set_relays"):
    """Dial these relays from now on, and leave those; what is named in neither stays as it is. The
    change is on disk before it is answered, and holds for later daemons. A relay of config.toml, or
    the host's own, cannot be left this way. A URL that is known with another fingerprint gets the
    new one. Whether a relay is reached shows later. Answered by Relays."""

    # URLs, `https://` or `http://`, followed by `#sha256:` and 64 hexadecimal digits for a
    # certificate that no authority signed
    relays: tuple[str, ...] = ()
    leave: tuple[str, ...] = ()  # URLs; the fingerprint may be left out


class GetRelays(Request, tag="get_relays"):
    """The relays that this host uses. Answered by Relays."""


class Relays(Answer, tag="relays"):
    relays: tuple[RelayState, ...]  # those of config.toml, those that were set, and the host's own
