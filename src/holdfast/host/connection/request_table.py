"""The one table of requests: tag -> what it needs, and its handler.

`answer` is the way of every request: the rule is checked, the session that it names is found, then
the handler runs. Handlers are in the room of their subject (session, access, reach).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Protocol, cast

from holdfast.core.access import host_rules, inside_rules
from holdfast.core.access.authority import Authority
from holdfast.core.access.envelope_book import Live
from holdfast.core.access.host_rules import RULES, About, Rule
from holdfast.host.access.requests import AccessRequests
from holdfast.host.clock import now
from holdfast.host.connection.forwarding import Forwarding
from holdfast.host.connection.from_inside import WrittenElsewhere, note_writers
from holdfast.host.connection.host_requests import HostRequests
from holdfast.host.continuity.moving.requests import MoveRequests
from holdfast.host.continuity.preflight import PreflightRequests
from holdfast.host.continuity.requests import CheckpointRequests
from holdfast.host.gate.action_requests import ActionRequests
from holdfast.host.gate.approval_requests import ApprovalRequests
from holdfast.host.gate.policy_requests import PolicyRequests
from holdfast.host.gate.provenance_requests import ProvenanceRequests
from holdfast.host.reach.requests import ReachRequests
from holdfast.host.session.input_requests import InputRequests
from holdfast.host.session.journal_requests import JournalRequests
from holdfast.host.session.requests import SessionRequests
from holdfast.host.session.turn_requests import TurnRequests
from holdfast.host.session_store import Stored
from holdfast.model.actor import Actor
from holdfast.model.errors import SessionAsleep, Unsupported
from holdfast.model.inside import Inside
from holdfast.wire.messages import session as m
from holdfast.wire.messages.forward import Forward
from holdfast.wire.messages.gate_actions import Act
from holdfast.wire.messages.turn import Seize
from holdfast.wire.request_classes import may_name_by_prefix

if TYPE_CHECKING:
    from holdfast.host.connection.operator_connection import OperatorConnection

Reply = m.Answer | Awaitable[m.Answer | None] | None
Handler = Callable[..., Reply]


# What needs a live session enough to wake one that is asleep because nobody used it.
WAKES = frozenset(("attach", "exec", "action", "forward", "submit", "keys"))


class WakesSessions(Protocol):
    """Brings a session back that is asleep."""

    def would_wake(self, stored: Stored) -> bool: ...

    async def wake(self, stored: Stored, actor: str) -> None: ...


class FindSessions(Protocol):
    """Sessions that an actor may observe, by name or id."""

    def find_live(self, actor: Actor, text: str) -> object | None: ...

    def find(self, actor: Actor, text: str, *, by_prefix: bool) -> object: ...

    def find_running(self, actor: Actor, text: str, *, by_prefix: bool) -> object: ...

    def as_judged(self, found: Any) -> Live: ...


def handlers(
    session: SessionRequests,
    ways_in: InputRequests,
    turn: TurnRequests,
    journal: JournalRequests,
    access: AccessRequests,
    provenance: ProvenanceRequests,
    reach: ReachRequests,
    forwarding: Forwarding,
    host: HostRequests,
    actions: ActionRequests,
    approvals: ApprovalRequests,
    policy: PolicyRequests,
    checkpoints: CheckpointRequests,
    preflight: PreflightRequests,
    moves: MoveRequests,
) -> dict[str, Handler]:
    """One row per request, with the rows of core.access.host_rules."""
    return {
        "run": session.run,
        "list": session.list,
        "show": session.show,
        "graph": session.graph,
        "can_move": preflight.can_move,
        "screen": session.screen,
        "attach": session.attach,
        "detach": session.detach,
        "share": session.share,
        "watch": session.watch,
        "rename": session.rename,
        "pin": session.pin,
        "detach_terminals": session.detach_terminals,
        "end": session.end,
        "acknowledge": session.acknowledge,
        "checkpoint": checkpoints.checkpoint,
        "checkpoints": checkpoints.checkpoints,
        "restore": checkpoints.restore,
        "delete_checkpoint": checkpoints.delete,
        "revive": session.revive,
        "input": ways_in.input,
        "submit": ways_in.submit,
        "keys": ways_in.keys,
        "exec": ways_in.exec,
        "action": actions.act,
        "trace": actions.trace,
        "score": actions.score,
        "resize": ways_in.resize,
        "signal": ways_in.signal,
        "forward": forwarding.open,
        "turn": turn.turn,
        "request_turn": turn.step,
        "withdraw_turn": turn.step,
        "grant_turn": turn.step,
        "yield_turn": turn.step,
        "hand_off_turn": turn.step,
        "revoke_turn": turn.step,
        "set_blind": turn.set_blind,
        "set_turn_policy": turn.set_turn_policy,
        "seize": turn.seize,
        "halt": turn.halt,
        "resume": turn.resume,
        "catch_up": journal.catch_up,
        "journal": journal.journal,
        "verify": journal.verify,
        "prove": journal.prove,
        "certificate": journal.certificate,
        "blame": journal.blame,
        "why": provenance.why,
        "adopt": provenance.adopt,
        "claim": access.claim,
        "add_actor": access.add_actor,
        "list_actors": access.list_actors,
        "show_actor": access.show_actor,
        "revoke_actor": access.revoke_actor,
        "grant": access.grant,
        "revoke": access.revoke,
        "list_envelopes": access.list_envelopes,
        "make_invite": access.make_invite,
        "list_invites": access.list_invites,
        "revoke_invite": access.revoke_invite,
        "list_devices": access.list_devices,
        "revoke_device": access.revoke_device,
        "see_invite": access.join,
        "join": access.join,
        "policy_show": policy.show,
        "policy_set": policy.set,
        "policy_check": policy.check,
        "policy_explain": policy.explain,
        "policy_off": policy.off,
        "set_relays": reach.set_relays,
        "get_relays": reach.get_relays,
        "get_ticket": reach.get_ticket,
        "host": host.host,
        "can_take": preflight.can_take,
        "move": moves.move,
        "metrics": host.metrics,
        "prune": host.prune,
        "reap": host.reap,
        "restart_daemon": host.restart_daemon,
        "shutdown": host.shutdown,
        "approvals": approvals.approvals,
        "approve": approvals.approve,
        "deny": approvals.deny,
    }


class RequestTable:
    """Answers requests of one host."""

    def __init__(
        self,
        rows: dict[str, Handler],
        sessions: FindSessions,
        authority: Authority,
        host_uid: int,
        waker: WakesSessions | None = None,
    ) -> None:
        self.rows: dict[str, tuple[Rule, Handler]] = {tag: (RULES[tag], rows[tag]) for tag in rows}
        self._sessions, self._authority, self._host_uid = sessions, authority, host_uid
        self._waker = waker

    def answer(self, operator: OperatorConnection, request: m.Request) -> Reply:
        """The answer, or an awaitable of it, or None when a channel answers later."""
        try:
            return self._answer(operator, request)
        except SessionAsleep:
            stored = self._asleep(operator, request)
            if stored is None or self._waker is None:
                raise
            return self._awake_first(self._waker, stored, operator, request)

    def _asleep(self, operator: OperatorConnection, request: Any) -> Stored | None:
        """The session that the request would wake; the actor may observe it."""
        if request.tag not in WAKES or self._waker is None:
            return None
        found = self._sessions.find(operator.actor, request.session, by_prefix=False)
        return found if isinstance(found, Stored) and self._waker.would_wake(found) else None

    async def _awake_first(
        self, waker: WakesSessions, stored: Stored, operator: OperatorConnection, request: m.Request
    ) -> m.Answer | None:
        """Judged again when it is awake, and by then by the session too."""
        with operator.waiting_for(stored.info.id):
            await waker.wake(stored, operator.actor.id)
        reply = self._answer(operator, request)
        return await reply if isinstance(reply, Awaitable) else reply

    def _answer(self, operator: OperatorConnection, request: m.Request) -> Reply:
        row = self.rows.get(request.tag)
        if row is None:
            raise Unsupported(f"this host does not know {request.tag!r}")
        rule, handler = row
        actor = operator.actor
        host_rules.check(rule, self._authority, actor, operator.uid, self._host_uid, now())
        found = self._session(rule.scope, actor, request) if rule.scope is not About.HOST else None
        if operator.inside is not None:
            self._check_inside(operator, operator.inside, request, found)
            if request.tag in inside_rules.WRITES:
                note_writers(operator.inside, cast(WrittenElsewhere, found))
        if rule.scope is About.HOST:
            return handler(operator, request)
        return handler(operator, request, found)

    def _check_inside(
        self, operator: OperatorConnection, inside: Inside, request: Any, found: object | None
    ) -> None:
        """From inside a session, the other actors behind the connection are judged too."""
        tag = request.tag
        inside_rules.check_told(tag, inside)
        if isinstance(request, m.Run) and request.with_keys:
            inside_rules.refuse_keys()
        others = inside_rules.others_behind(
            inside, operator.actor.id, sensitive=tag in inside_rules.SENSITIVE
        )
        if not others:
            return
        rights = inside_rules.rights_needed(
            tag,
            writes=isinstance(request, m.Attach) and not request.observe,
            halts=isinstance(request, Seize) and bool(request.halt or request.only_actor),
        )
        session = None if found is None else self._sessions.as_judged(found)
        inside_rules.check_others(
            tag,
            rights,
            self._authority,
            operator.actor,
            others,
            session,
            now(),
            _input_size(request),
        )

    def _session(self, scope: About, actor: Actor, request: Any) -> object:
        if scope is About.ANY and not request.session:
            return None
        if (live := self._sessions.find_live(actor, request.session)) is not None:
            return live
        by_prefix = may_name_by_prefix(
            request.tag,
            observe=isinstance(request, m.Attach) and request.observe,
            exact=isinstance(request, m.Show) and request.exact,
        )
        find = self._sessions.find_running if scope is About.LIVE else self._sessions.find
        return find(actor, request.session, by_prefix=by_prefix)


def _input_size(request: m.Request) -> int | None:
    """Bytes that it types, as far as it says; None when it is no input."""
    match request:
        case m.Input():
            return len(request.data)
        case m.Submit():
            return len(request.text.encode())
        case m.Exec():
            return len(request.command.encode())
        case Act():
            return len(request.action.encode())
        case m.Keys():
            return len(request.keys)
        case Forward():
            return 0
    return None
