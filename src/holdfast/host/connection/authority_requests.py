"""Requests about actors, envelopes, the turn, halt and the journal. One method per message."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from holdfast.adapters import signing
from holdfast.core import events as ev
from holdfast.core.session import TurnStep
from holdfast.core.turn import events as turn
from holdfast.host.clock import now
from holdfast.host.session import blame
from holdfast.host.session.journal_queries import Records
from holdfast.host.session.live_session import LiveSession
from holdfast.host.session_store import Stored
from holdfast.model.actor import Actor
from holdfast.model.envelope import ALL, Envelope, Right, Scope, rights_of
from holdfast.model.errors import BadSignature, GrantInvalid, InvalidArgument
from holdfast.model.ids import ActorId
from holdfast.model.limits import EXEC_KEY_MAX_CHARS, TURN_TEXT_MAX_CHARS
from holdfast.wire.actor_claim import claim_text
from holdfast.wire.grants import decode_chain
from holdfast.wire.messages import access as access_messages
from holdfast.wire.messages import journal as journal_messages
from holdfast.wire.messages import session as m
from holdfast.wire.messages import turn as turn_messages

if TYPE_CHECKING:
    from holdfast.host.connection.operator_connection import OperatorConnection
    from holdfast.host.daemon import Daemon

_JOURNAL_PIECE_MAX_BYTES = 512 << 10  # of one answer: half a frame, of blame too


class AuthorityRequests:
    """Answers for one daemon."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self.by_tag: dict[str, Callable[[OperatorConnection, Any], Any]] = {
            "claim": self._claim,
            "add_actor": self._add_actor,
            "list_actors": self._list_actors,
            "show_actor": self._show_actor,
            "revoke_actor": self._revoke_actor,
            "grant": self._grant,
            "revoke": self._revoke,
            "list_envelopes": self._list_envelopes,
            "turn": self._turn,
            "request_turn": self._request_turn,
            "withdraw_turn": self._withdraw_turn,
            "grant_turn": self._grant_turn,
            "yield_turn": self._yield_turn,
            "hand_off_turn": self._hand_off_turn,
            "revoke_turn": self._revoke_turn,
            "set_turn_policy": self._set_policy,
            "set_blind": self._set_blind,
            "seize": self._seize,
            "halt": self._halt,
            "resume": self._resume,
            "catch_up": self._catch_up,
            "journal": self._journal,
            "verify": self._verify,
            "prove": self._prove,
            "blame": self._blame,
        }

    # -- who ----------------------------------------------------------------------------------

    def _claim(self, operator: OperatorConnection, claim: access_messages.Claim) -> m.Answer:
        assert operator.named is not None  # it said hello
        text = claim_text(self._daemon.store.host_key.public, operator.challenge, operator.named)
        if claim.grant:
            actor = self._admitted(operator, claim, text)
        else:
            actor = self._daemon.actors.find(operator.local_actor, claim.actor)
            self._daemon.actors.check_claim(actor, text, claim.signature)
        operator.becomes(actor)
        return access_messages.ActorShown(claim.id, actor)

    def _admitted(
        self, operator: OperatorConnection, claim: access_messages.Claim, text: bytes
    ) -> Actor:
        """Who shows a grant need not be known: the grant names its key, and whose sessions it is
        about, whatever unix user asks."""
        operator.becomes(operator.actor)  # or it is too late, and what it showed before stands
        key = decode_chain(claim.grant).last.holder
        if claim.actor != ActorId.of_key(key):
            raise GrantInvalid("the grant is for another actor than the one claimed")
        if not signing.check(key, text, claim.signature):
            raise BadSignature("the claim is not signed with the key the grant is for")
        return self._daemon.admission.admit(operator.connection, key, claim.grant, now())

    def _add_actor(
        self, operator: OperatorConnection, request: access_messages.AddActor
    ) -> m.Answer:
        self._daemon.actors.check_manages(operator.actor)
        actor = self._daemon.actors.add(
            operator.actor.uid,
            request.name,
            request.kind,
            request.key,
            request.display,
            request.colour,
        )
        return access_messages.ActorShown(request.id, actor)

    def _list_actors(
        self, operator: OperatorConnection, request: access_messages.ListActors
    ) -> m.Answer:
        return access_messages.Actors(
            request.id, tuple(self._daemon.actors.seen_by(operator.actor))
        )

    def _show_actor(
        self, operator: OperatorConnection, request: access_messages.ShowActor
    ) -> m.Answer:
        actors = self._daemon.actors
        actor = operator.actor
        if request.actor:
            actor = actors.find(operator.actor, request.actor)
        return access_messages.ActorShown(request.id, actor, tuple(actors.envelopes_of(actor)))

    def _revoke_actor(
        self, operator: OperatorConnection, request: access_messages.RevokeActor
    ) -> m.Answer:
        self._daemon.actors.check_manages(operator.actor)
        actor = self._daemon.actors.find(operator.actor, request.actor)
        live = self._daemon.live_sessions()
        revoked = self._daemon.actors.revoke(operator.actor.id, actor, live)
        self._daemon.authority_changed(operator.actor, revoked, None)
        return access_messages.ActorShown(request.id, revoked)

    # -- envelopes ----------------------------------------------------------------------------

    def _grant(
        self, operator: OperatorConnection, request: access_messages.GrantEnvelope
    ) -> m.Answer:
        actors = self._daemon.actors
        subject = actors.find(operator.actor, request.actor)
        envelope = Envelope(
            ActorId(subject.id),
            self._scope(operator, request.scope),
            rights_of(request.rights),
            request.expires_at,
            request.inputs_per_s,
            request.bytes_per_s,
            operator.actor.id,
            now(),
        ).checked()
        actors.grant(envelope, self._daemon.live_sessions())
        self._daemon.authority_changed(operator.actor, subject, envelope)
        return self._envelopes(request.id, operator, [envelope])

    def _revoke(
        self, operator: OperatorConnection, request: access_messages.RevokeEnvelope
    ) -> m.Answer:
        actors = self._daemon.actors
        subject = actors.find(operator.actor, request.actor)
        scope = self._scope(operator, request.scope)
        left = actors.narrow_to_nothing(
            operator.actor, subject, scope, self._daemon.live_sessions()
        )
        self._daemon.authority_changed(operator.actor, subject, left)
        return self._envelopes(request.id, operator, [left])

    def _list_envelopes(
        self, operator: OperatorConnection, request: access_messages.ListEnvelopes
    ) -> m.Answer:
        actors = self._daemon.actors
        found = [
            envelope
            for actor in actors.seen_by(operator.actor)
            for envelope in actors.envelopes_of(actor)
        ]
        if request.session:
            session = self._daemon.registry.find(operator.actor, request.session)
            known = session.info if isinstance(session, Stored) else session.spec
            scopes = {ALL, Scope.session(known.id), *(Scope.label(name) for name in known.labels)}
            found = [envelope for envelope in found if envelope.scope in scopes]
        return self._envelopes(request.id, operator, found)

    def _envelopes(
        self, request: int, operator: OperatorConnection, found: list[Envelope]
    ) -> m.Answer:
        names = self._names(operator)
        return access_messages.Envelopes(request, tuple(found), names)

    def _scope(self, operator: OperatorConnection, text: str) -> Scope:
        if text == "all" or text.startswith("label:"):
            return Scope.parse(text)
        name = text.removeprefix("session:")
        found = self._daemon.registry.find(operator.actor, name)
        return Scope.session(found.info.id if isinstance(found, Stored) else found.spec.id)

    # -- the turn -----------------------------------------------------------------------------

    def _turn(self, operator: OperatorConnection, request: turn_messages.GetTurn) -> m.Answer:
        return self._shown(request.id, operator, self._live(operator, request.session))

    def _request_turn(
        self, operator: OperatorConnection, request: turn_messages.RequestTurn
    ) -> m.Answer:
        actor = operator.actor.id
        return self._step(operator, request, turn.RequestStep(actor, now(), request.message))

    def _withdraw_turn(
        self, operator: OperatorConnection, request: turn_messages.WithdrawTurn
    ) -> m.Answer:
        return self._step(operator, request, turn.WithdrawStep(operator.actor.id))

    def _grant_turn(
        self, operator: OperatorConnection, request: turn_messages.GrantTurn
    ) -> m.Answer:
        to = self._daemon.actors.find(operator.actor, request.to).id if request.to else None
        return self._step(operator, request, turn.GrantStep(operator.actor.id, to, now()))

    def _yield_turn(
        self, operator: OperatorConnection, request: turn_messages.YieldTurn
    ) -> m.Answer:
        return self._step(operator, request, turn.YieldStep(operator.actor.id, now()))

    def _hand_off_turn(
        self, operator: OperatorConnection, request: turn_messages.HandOffTurn
    ) -> m.Answer:
        to = self._daemon.actors.find(operator.actor, request.to).id
        step = turn.HandOff(operator.actor.id, to, now(), request.message)
        return self._step(operator, request, step)

    def _revoke_turn(
        self, operator: OperatorConnection, request: turn_messages.RevokeTurn
    ) -> m.Answer:
        step = turn.RevokeStep(operator.actor.id, now(), request.reason)
        return self._step(operator, request, step)

    def _set_blind(self, operator: OperatorConnection, request: turn_messages.SetBlind) -> m.Answer:
        live = self._live(operator, request.session)
        if request.blind and live.core.turn.holder is None:
            live.handle(
                TurnStep(operator.actor.id, now(), turn.RequestStep(operator.actor.id, now()))
            )
        return self._step(operator, request, turn.BlindStep(operator.actor.id, request.blind))

    def _set_policy(
        self, operator: OperatorConnection, request: turn_messages.SetTurnPolicy
    ) -> m.Answer:
        live = self._live(operator, request.session)
        live.handle(ev.PolicyAsked(operator.actor.id, now(), request.policy))
        return self._shown(request.id, operator, live)

    def _step(self, operator: OperatorConnection, request: Any, step: turn.TurnEvent) -> m.Answer:
        live = self._live(operator, request.session)
        live.note_connection(operator)
        live.handle(TurnStep(operator.actor.id, now(), step))
        return self._shown(request.id, operator, live)

    def _shown(self, request: int, operator: OperatorConnection, live: LiveSession) -> m.Answer:
        return turn_messages.TurnShown(
            request, live.turning.info(), live.core.turn.holder == operator.actor.id
        )

    # -- seize and halt -----------------------------------------------------------------------

    def _seize(
        self, operator: OperatorConnection, request: turn_messages.Seize
    ) -> Awaitable[m.Answer]:
        live, actor = self._live(operator, request.session), operator.actor.id
        only = self._only(operator, live, request.only_actor)
        live.note_connection(operator)
        receipt = live.turning.receipt(only or ("session" if request.halt else ""))
        live.handle(ev.SeizeAsked(actor, now(), request.reason, request.halt, only))

        async def seized() -> m.Answer:
            return turn_messages.Halted(request.id, await live.halts.complete_receipt(receipt))

        return seized()

    def _halt(
        self, operator: OperatorConnection, request: turn_messages.Halt
    ) -> Awaitable[m.Answer]:
        live, actor = self._live(operator, request.session), operator.actor.id
        only = self._only(operator, live, request.only_actor)
        receipt = live.turning.receipt(only or "session")
        live.handle(ev.HaltAsked(actor, now(), request.reason, only))

        async def halted() -> m.Answer:
            return turn_messages.Halted(request.id, await live.halts.complete_receipt(receipt))

        return halted()

    def _resume(
        self, operator: OperatorConnection, request: turn_messages.Resume
    ) -> Awaitable[m.Answer]:
        live = self._live(operator, request.session)
        if request.force_lease:
            return self._force_lease(operator, live, request)
        live.handle(ev.ResumeAsked(operator.actor.id, now()))

        async def resumed() -> m.Answer:
            await live.halts.resumed()
            return m.Done(request.id)

        return resumed()

    def _force_lease(
        self, operator: OperatorConnection, live: LiveSession, request: turn_messages.Resume
    ) -> Awaitable[m.Answer]:
        actor, spec, leasing = operator.actor.id, live.spec, live.leasing
        live.core.authority.check(actor, Right.GRANT, spec.id, spec.labels, now())
        if leasing is None:
            raise InvalidArgument("the session is pinned to its host, and has no lease to force")

        async def forced() -> m.Answer:
            await leasing.force(actor, request.force_lease[:TURN_TEXT_MAX_CHARS])
            return m.Done(request.id)

        return forced()

    def _only(self, operator: OperatorConnection, live: LiveSession, name: str) -> str:
        if not name:
            return ""
        live.halts.check_leaves()
        return self._daemon.actors.find(operator.actor, name).id

    # -- what was recorded --------------------------------------------------------------------

    async def _catch_up(
        self, operator: OperatorConnection, request: turn_messages.CatchUp
    ) -> m.Answer:
        if len(request.key) > EXEC_KEY_MAX_CHARS:
            raise InvalidArgument(f"a key has at most {EXEC_KEY_MAX_CHARS} characters")
        live = self._live(operator, request.session)
        handoff = await live.handoffs.for_actor(
            operator.actor.id, request.since_seq, look=True, key=request.key
        )
        return turn_messages.CaughtUp(request.id, handoff)

    async def _journal(
        self, operator: OperatorConnection, request: journal_messages.GetJournal
    ) -> m.Answer:
        records = self._records(operator, request.session)
        if request.since_seq < 1:
            raise InvalidArgument("journal records are numbered from 1")
        limit = min(max(request.max_bytes, 1), _JOURNAL_PIECE_MAX_BYTES)
        found, more = await asyncio.to_thread(records.piece, request.since_seq, limit)
        names = self._names(operator)
        return journal_messages.JournalShown(request.id, records.session, tuple(found), more, names)

    async def _verify(
        self, operator: OperatorConnection, request: journal_messages.Verify
    ) -> m.Answer:
        records = self._records(operator, request.session)
        judgement = await asyncio.to_thread(records.judged, request.thorough)
        return journal_messages.Verified(request.id, judgement)

    async def _prove(
        self, operator: OperatorConnection, request: journal_messages.Prove
    ) -> m.Answer:
        records = self._records(operator, request.session)
        return await asyncio.to_thread(records.proven, request.id, request.first, request.last)

    async def _blame(
        self, operator: OperatorConnection, request: journal_messages.Blame
    ) -> m.Answer:
        found = self._daemon.registry.find(operator.actor, request.session)
        if isinstance(found, Stored):
            of = blame.gathered_ended(self._daemon, found)
        else:
            of = blame.gathered(found)
        lines = await asyncio.to_thread(blame.lines, of)
        first, last = max(1, request.first), request.last or len(lines)
        asked = blame.fitting(lines[first - 1 : last], _JOURNAL_PIECE_MAX_BYTES)
        return journal_messages.Blamed(request.id, tuple(asked), len(lines))

    # -- common to several --------------------------------------------------------------------

    def _live(self, operator: OperatorConnection, session: str) -> LiveSession:
        return self._daemon.requests.live(operator, session)

    def _names(self, operator: OperatorConnection) -> dict[str, str]:
        """Of the actors it may know of, by id."""
        return {each.id: each.name for each in self._daemon.actors.seen_by(operator.actor)}

    def _records(self, operator: OperatorConnection, session: str) -> Records:
        """The journal of a session, live or ended."""
        found = self._daemon.registry.find(operator.actor, session)
        if isinstance(found, Stored):
            return Records(self._daemon.store, found.info.id)
        found.journal.flush()
        return Records(self._daemon.store, found.spec.id, found.journal.seq)
