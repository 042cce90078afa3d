"""A session of which nothing is known but its id and a relay where it may be: ID@RELAY-URL.

Nobody need have joined its machine. The relay is asked where the session is, and is not believed:
the session's own key must vouch for the host and the epoch. Then that host is dialled like any
other, with this client's own key and, if it has one, a grant that fits. What may be done there is
the host's to say: an id entitles to nothing.
"""

from __future__ import annotations

import asyncio
import contextlib

from holdfast.dial.address import relay_address
from holdfast.model.errors import Fenced, InvalidArgument, NoSuchActor, NoSuchSession
from holdfast.model.ids import SessionId
from holdfast.sdk import identity
from holdfast.sdk.identity import Identity
from holdfast.sdk.reach import machines
from holdfast.sdk.reach.machines import Machine

AT = "@"  # in no name of a session, a machine or an actor
_FIND_S = 30.0
_LAST_WORDS_S = 0.2

# Where a session was when this program last found it. A relay forgets a session whose host is away,
# has fenced it, or saw it end; the host itself knows which, so it is the one to be asked then.
_last: dict[SessionId, bytes] = {}


def parse_address(text: str) -> Machine:
    """What `ID@RELAY-URL` means: a machine whose key is not known yet. Nobody is asked yet."""
    session, _, relay = text.partition(AT)
    try:
        wanted = SessionId(session)
    except ValueError:
        raise InvalidArgument(
            f"a relay is asked for a whole id, not for {session[:40]!r}",
            hint="26 letters and digits, as `hold show --json` has them",
        ) from None
    relay_address(relay)  # or it says what is wrong with it
    return Machine(text, "", (relay,), "", session=wanted)


def locate(machine: Machine, acting: Identity | None = None) -> Machine:
    """The same with the key of the host that has the session now, and with what we come there
    with; `acting`: as whom, if that is settled. Raises NoSuchSession, Fenced, or what is the matter
    with the relay."""
    from holdfast.sdk.reach.relay_thread import wait_for

    session = SessionId(machine.session)
    try:
        key = _last[session] = wait_for(_find(machine.relays[0], session), _FIND_S)
    except NoSuchSession:
        if session not in _last:
            raise
        key = _last[session]
    name, grant = _credentials(key, acting or identity.chosen())
    return machine.replace(host_key=key.hex(), identity=name, grant=grant)


async def _find(relay: str, session: SessionId) -> bytes:
    from holdfast.dial.relay_link import RelayLink

    link = RelayLink(relay_address(relay))
    try:
        await link.start()
        stream = await link.open(b"", session)
        seen = machines.highest_epoch(session)
        if stream.epoch < seen:
            raise Fenced(
                f"the relay leads to epoch {stream.epoch} of the session, and it has had {seen}: "
                "that incarnation is over",
                hint="ask another relay, or wait for its host to come back",
            )
        stream.close()
        return stream.host.key
    except NoSuchSession as error:
        raise NoSuchSession(
            f"no host at {link.address.url} has the session {session} now",
            hint="it has ended, is fenced, or its host is at another relay or away",
        ) from error
    finally:
        asyncio.get_running_loop().call_later(_LAST_WORDS_S, link.close)


def _credentials(host_key: bytes, acting: Identity | None) -> tuple[str, str]:
    """Which key to act with there, unless that is settled, and the chain to show. A chain is worth
    something to its holder alone: the one from joining this host goes with the key that joined."""
    for known in machines.machines():
        if known.key == host_key and (acting is None or known.grant_of(acting.public)):
            return known.identity, known.grant
    if acting is not None:
        return acting.name, ""
    with contextlib.suppress(NoSuchActor):
        identity.load(identity.DEVICE)
        return identity.DEVICE, ""
    raise NoSuchActor(
        "this client has no key of its own to come with",
        hint="`hold actor key NAME` makes one; have it admitted, then use --as NAME",
    )
