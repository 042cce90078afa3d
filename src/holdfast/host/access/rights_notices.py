"""Passes a change of rights on to everything that goes by them: sessions record it, take the turn,
views and connections from actors that lost the right to them, and streams through relays end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from holdfast.core import events as ev
from holdfast.host.clock import now
from holdfast.host.session.parcel import SessionSpec
from holdfast.model.actor import Actor
from holdfast.model.envelope import Envelope
from holdfast.model.ids import HOST_ACTOR, ActorId, SessionId


class JudgedSession(Protocol):
    """A live session, as far as a change of rights concerns it."""

    spec: SessionSpec

    def authority_changed(self, by: Actor, subject: Actor, envelope: Envelope | None) -> None: ...

    def handle(self, event: ev.AuthorityChanged) -> object: ...


class RightsNotices:
    """Of one host."""

    def __init__(
        self,
        sessions: Mapping[SessionId, JudgedSession],
        review_grants: Callable[[float], None],
        judge_streams: Callable[[ActorId | None], None],
    ) -> None:
        self.sessions = sessions
        self._review_grants, self._judge_streams = review_grants, judge_streams

    def authority_changed(self, by: Actor, subject: Actor, envelope: Envelope | None) -> None:
        """Recorded in every session it is about, then in force there: at once (A2). None: the
        subject was revoked."""
        if envelope is None:
            self._review_grants(now())  # what the subject handed on ends with it
        for live in list(self.sessions.values()):
            if subject.may_touch(live.spec.uid):
                live.authority_changed(by, subject, envelope)
        self._judge_streams(None if envelope is None else subject.id)

    def grants_changed(self) -> None:
        """A presented grant no longer counts: in force in every session, at once."""
        for live in list(self.sessions.values()):
            live.handle(ev.AuthorityChanged(HOST_ACTOR, now()))
        self._judge_streams(None)
