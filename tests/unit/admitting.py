"""A host as far as admission knows it: a home on disk, its key, its actors, and sessions that only
remember what they were told. No sockets, no processes; time is what the test says."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from holdfast.adapters.signing import SigningKey
from holdfast.core.access.envelope_book import Live
from holdfast.core.access.user_quotas import UserQuotas
from holdfast.core.events import AuthorityChanged
from holdfast.host import clock
from holdfast.host.access.actor_book import ActorBook
from holdfast.host.access.admission import Admission
from holdfast.host.access.revocation import Revocation
from holdfast.host.access.rights_notices import RightsNotices
from holdfast.host.connection.operators import Operators
from holdfast.model.actor import Actor
from holdfast.model.envelope import Envelope
from holdfast.model.grant import Grant, GrantChain, Reach
from holdfast.model.ids import ActorId, SessionId
from holdfast.model.invite import Invite
from holdfast.wire import grants
from holdfast.wire.messages.admission import MakeInvite
from unit.granting import HOST, HOUR, NOW, SESSION, Party

UID = 1000
LABELS = ("team-a", "x")


class FakeSession:
    """What a live session is told of rights."""

    def __init__(self, session: SessionId, labels: tuple[str, ...], uid: int) -> None:
        self.spec: Any = SimpleNamespace(id=session, labels=labels, uid=uid)
        self.told: list[tuple[str, str, Envelope | None]] = []
        self.judged_again = 0

    def authority_changed(self, by: Actor, subject: Actor, envelope: Envelope | None) -> None:
        self.told.append((by.name, subject.name, envelope))
        self.judged_again += 1

    def handle(self, _: AuthorityChanged) -> None:
        self.judged_again += 1


class Connected:
    """A connection, as far as it is known who acts by it."""

    sessions_used: tuple[()] = ()
    user = "uid 1000"
    is_trusted = True
    watches: frozenset[str] = frozenset()

    def __init__(self, connection: str, actor: ActorId | None) -> None:
        self.connection, self._actor = connection, actor

    def acts_as(self, actor: ActorId) -> bool:
        return self._actor == actor


class FakeDaemon:
    """Its home stays when it is made anew: that is a restart."""

    def __init__(self, state: Path, host: Party = HOST) -> None:
        clock._latest, clock._behind = 0.0, None
        self.home = SimpleNamespace(state=str(state))
        self.store = SimpleNamespace(host_key=SigningKey(host.seed))
        self.actors = ActorBook(str(state))
        self.session = FakeSession(SESSION, LABELS, UID)
        self.registry = SimpleNamespace(live={SESSION: self.session})
        self.admission = Admission(
            self.actors,
            self.store.host_key,
            str(state),
            self.live_sessions,
            lambda: ("https://relay.example",),
        )
        notices = RightsNotices(
            self.registry.live, lambda _: self.admission.review(float(NOW)), lambda _: None
        )
        self.notices = notices
        self.revocation = Revocation(self.actors, self.admission, notices, host.key)
        none: Any = SimpleNamespace(operator_left=lambda _: None)
        sessions: Any = self.registry
        self.operators = Operators(
            none, sessions, self.actors, self.admission, notices, none, host.key, UserQuotas(), none
        )
        self.owner = self.actors.of_user(UID)  # who may do everything in its own sessions

    def connects(self, connection: str, actor: ActorId | None) -> Any:
        """One that said who it is; None: it did not yet."""
        operator: Any = Connected(connection, actor)
        self.operators.add(operator)
        return operator

    def live_sessions(self) -> list[Live]:
        return [(SESSION, LABELS, UID)]

    # -- what tests do ----------------------------------------------------------------------------

    def invite(self, by: Actor | None = None, now: float = NOW, **changes: Any) -> Invite:
        fields: dict[str, Any] = {
            "reach": ("label:team-a",),
            "rights": ("execute",),
            "expires_s": float(HOUR),
            "lasts_s": 8.0 * HOUR,
            "uses": 1,
            "delegations": 5,
        }
        asked = MakeInvite(1, **{**fields, **changes})
        made, _ = self.admission.make_invite(by or self.owner, asked, Reach(asked.reach), now)
        return made

    def joins(self, who: Party, invite: Invite, name: str = "", now: float = NOW + 1) -> bytes:
        return self.admission.redeem(invite.id, who.key, name, now)

    def actor(self, who: Party) -> Actor:
        found = self.actors.get(who.actor)
        assert found is not None
        return found

    def rights(self, who: Party, now: float = NOW + 2) -> set[str]:
        return {*self.actors.authority.rights(who.actor, SESSION, LABELS, now)}


def restarted(daemon: FakeDaemon) -> FakeDaemon:
    return FakeDaemon(Path(daemon.home.state))


def handed_on(chain: bytes, giver: Party, to: Party, **changes: Any) -> bytes:
    """One more link, as `hold delegate` makes it."""
    had = grants.decode_chain(chain)
    last = had.links[-1]
    grant: Grant = giver.says(to, last, **{"not_before": NOW, "serial": os.urandom(16), **changes})
    return grants.encode_chain(
        GrantChain((*had.links, grants.sign_grant(grant, giver.signing.sign)))
    )
